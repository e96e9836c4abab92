/* seal_test.c - what is sealed has one order and a header that tells the truth about it. */
#include "test_support.h"

#include <errno.h>
#include <stdio.h>

#include "header.h"
#include "object_testing.h"
#include "json/doc_testing.h"
#include "json/equal.h"
#include "json/write.h"

static void assert_value(const struct vg_test_obj *o, const char *want)
{
    char *text = vg_strdup(want);
    assert_non_null(text);
    for (char *p = text; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    vg_assert_slice_equal(o->value, vg_slice_str(text));
    vg_free(text);
}

static void assert_label(const struct vg_test_obj *o, const char *key, const char *value)
{
    struct vg_slice got;
    assert_true(vg_labels_find(&o->h.labels, vg_slice_str(key), &got));
    vg_assert_slice_equal(got, vg_slice_str(value));
}

#define assert_text(got, want) vg_assert_slice_equal((got), vg_slice_str(want))

static void type_metadata_and_identity_come_first_and_the_revision_goes(void **state)
{
    (void)state;
    VG_AUTO(test_obj)
    o = vg_test_obj(&vg_test_pods,
                    " { 'spec' : {'z':1, 'a' : [ 2 ]}, 'metadata':{'labels':{}, 'resourceVersion':"
                    "'7', 'uid':'u','x':1, 'namespace':'ns','generateName':'g','name':'n'}, '':0,"
                    "'apiVersion':'v1', 'kind':'Pod' }");
    assert_value(&o, "{'kind':'Pod','apiVersion':'v1','metadata':{'name':'n','generateName':'g',"
                     "'namespace':'ns','uid':'u','labels':{},'x':1},'spec':{'z':1,'a':[2]},'':0}");
    assert_memory_equal(o.value.p + o.h.item_at, "\"metadata\"", 10);
    assert_memory_equal(o.value.p + o.h.rev_at, ",\"labels\"", 9);
    assert_text(vg_obj_name(&o.h), "n");
    assert_text(vg_obj_namespace(&o.h), "ns");
    assert_text(vg_obj_uid(&o.h), "u");
    assert_false(vg_obj_is_deleting(&o.h));
}

static void a_name_alone_is_enough(void **state)
{
    (void)state;
    VG_AUTO(test_obj) o = vg_test_obj(&vg_test_no_fields, "{'metadata':{'name':'n'}}");
    assert_value(&o, "{'metadata':{'name':'n'}}");
    assert_int_equal(o.h.item_at, 1);
    assert_memory_equal(o.value.p + o.h.rev_at, "}}", 2);
    assert_int_equal(o.h.labels.n, 0);
    assert_int_equal(o.h.n_fields, 0);
    assert_int_equal(vg_obj_namespace(&o.h).n, 0);
    assert_int_equal(vg_obj_uid(&o.h).n, 0);
    assert_int_equal(vg_obj_field(&o.h, 0).n, 0);
    assert_int_equal(vg_obj_trigger(&o.h).n, 0);
}

static void null_metadata_reads_as_absent(void **state)
{
    (void)state;
    VG_AUTO(test_obj)
    o = vg_test_obj(&vg_test_no_fields, "{'metadata':{'name':'n','namespace':null,'uid':null,"
                                        "'labels':null,'deletionTimestamp':null}}");
    assert_int_equal(vg_obj_namespace(&o.h).n, 0);
    assert_int_equal(vg_obj_uid(&o.h).n, 0);
    assert_int_equal(o.h.labels.n, 0);
    assert_false(vg_obj_is_deleting(&o.h));
}

static void a_deletion_timestamp_is_flagged(void **state)
{
    (void)state;
    VG_AUTO(test_obj)
    o = vg_test_obj(&vg_test_no_fields, "{'metadata':{'name':'n','deletionTimestamp':'2026'}}");
    assert_true(vg_obj_is_deleting(&o.h));
}

static void labels_are_sorted_and_found_in_the_value(void **state)
{
    (void)state;
    VG_AUTO(test_obj)
    o = vg_test_obj(&vg_test_pods,
                    "{'metadata':{'name':'n','labels':{'b':'2','a/x':'1','':'','c':null}}}");
    assert_int_equal(o.h.labels.n, 4);
    assert_text(vg_labels_key(&o.h.labels, 0), "");
    assert_text(vg_labels_key(&o.h.labels, 1), "a/x");
    assert_text(vg_labels_key(&o.h.labels, 2), "b");
    assert_label(&o, "a/x", "1");
    assert_label(&o, "b", "2");
    assert_label(&o, "", "");
    assert_label(&o, "c", "");
    assert_false(o.h.flags & VG_OBJ_LABELS_IN_TAIL);
    assert_ptr_equal(o.h.labels.base, o.value.p);
}

static void one_escaped_label_copies_them_all(void **state)
{
    (void)state;
    VG_AUTO(test_obj)
    o = vg_test_obj(&vg_test_pods, "{'metadata':{'name':'n\\\\','labels':{'z':'1','q\\'':'\\n<',"
                                   "'\303\244':'\\u00e4','n':null}}}");
    assert_true(o.h.flags & VG_OBJ_LABELS_IN_TAIL);
    assert_text(vg_obj_name(&o.h), "n\\");
    assert_int_equal(o.h.labels.n, 4);
    assert_label(&o, "z", "1");
    assert_label(&o, "q\"", "\n<");
    assert_label(&o, "\303\244", "\303\244");
    assert_label(&o, "n", "");
}

static void fields_read_as_text_in_the_kinds_order(void **state)
{
    (void)state;
    VG_AUTO(test_obj)
    o = vg_test_obj(
        &vg_test_pods,
        "{'metadata':{'name':'n'},'status':{'phase':'Run\\tning','podIP':12.50},'spec':"
        "{'schedulerName':null,'hostNetwork':true,'nodeName':'n1','restartPolicy':{}}}");
    assert_text(vg_obj_field(&o.h, 0), "n1");
    assert_text(vg_obj_trigger(&o.h), "n1");
    assert_text(vg_obj_field(&o.h, 1), "");
    assert_text(vg_obj_field(&o.h, 2), "");
    assert_text(vg_obj_field(&o.h, 3), "");
    assert_text(vg_obj_field(&o.h, 4), "true");
    assert_text(vg_obj_field(&o.h, 5), "Run\tning");
    assert_text(vg_obj_field(&o.h, 6), "12.50");
    assert_text(vg_obj_field(&o.h, 7), "");
    assert_text(vg_obj_field(&o.h, 9), "");
}

static void a_missing_field_reads_as_its_kind_says(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{'metadata':{'name':'n'}}",
        "{'metadata':{'name':'n'},'spec':null}",
        "{'metadata':{'name':'n'},'spec':[{'hostNetwork':true}]}",
        "{'metadata':{'name':'n'},'spec':{'hostNetwork':null}}",
        "{'metadata':{'name':'n'},'hostNetwork':true,'x':{'spec':{'hostNetwork':true}}}",
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(texts); i++) {
        VG_AUTO(test_obj) o = vg_test_obj(&vg_test_pods, texts[i]);
        assert_text(vg_obj_field(&o.h, 4), "false");
        assert_text(vg_obj_field(&o.h, 0), "");
    }
}

static void paths_may_be_deep_shared_escaped_and_prefixes_of_each_other(void **state)
{
    (void)state;
    static const struct vg_obj_field_def defs[] = {
        {.label = "a", .path = {"a"}},
        {.label = "long", .path = {"a", "b", "c", "d", "e", "f", "g", "h"}},
        {.label = "again", .path = {"a", "b", "c", "d", "e", "f", "g", "h"}},
        {.label = "quoted", .path = {"a", "k\"<"}},
        {.label = "unicode", .path = {"a", "\303\244"}},
        {.label = "name", .path = {"metadata", "name"}},
    };
    static const struct vg_obj_fields fields = {defs, VG_ARRAY_LEN(defs), 2};
    VG_AUTO(test_obj)
    o = vg_test_obj(&fields,
                    "{'metadata':{'name':'n'},'a':{'k\\'<':'q','\303\244':'u','b':{'c':{'d'"
                    ":{'e':{'f':{'g':{'h':-3}}}}}}}}");
    static const char *const want[] = {"", "-3", "-3", "q", "u", "n"};
    for (uint32_t i = 0; i < VG_ARRAY_LEN(want); i++)
        assert_text(vg_obj_field(&o.h, i), want[i]);
    assert_int_equal(o.h.trigger, 2);
    assert_int_equal(vg_obj_fields_find(&fields, VG_SLICE_LIT("quoted")), 3);
    assert_int_equal(vg_obj_fields_find(&fields, VG_SLICE_LIT("quote")), VG_OBJ_NO_TRIGGER);
}

static void as_many_fields_as_allowed_are_found(void **state)
{
    (void)state;
    static char names[VG_OBJ_FIELDS_MAX + 1][16];
    struct vg_obj_field_def defs[VG_OBJ_FIELDS_MAX + 1];
    VG_AUTO(buf) text;
    vg_buf_init(&text, 0);
    assert_int_equal(vg_buf_printf(&text, "{\"metadata\":{\"name\":\"n\"}"), 0);
    for (unsigned i = 0; i <= VG_OBJ_FIELDS_MAX; i++) {
        snprintf(names[i], sizeof names[i], "f%02u", i);
        defs[i] = (struct vg_obj_field_def){.label = names[i], .path = {names[i]}};
        assert_int_equal(vg_buf_printf(&text, ",\"f%02u\":%u", i, i), 0);
    }
    assert_int_equal(vg_buf_append_byte(&text, '}'), 0);
    struct vg_obj_fields fields = {defs, VG_OBJ_FIELDS_MAX, VG_OBJ_NO_TRIGGER};
    VG_AUTO(test_obj) o = vg_test_seal(&fields, vg_buf_slice(&text));
    assert_text(vg_obj_field(&o.h, 31), "31");
    assert_text(vg_obj_field(&o.h, 0), "0");
    assert_text(vg_obj_field(&o.h, VG_OBJ_NO_TRIGGER), "");
}

static int seal_err(const struct vg_obj_fields *fields, const char *text, struct vg_status *status)
{
    VG_AUTO(obj_sealed) s;
    VG_AUTO(arena) arena;
    vg_obj_sealed_init(&s);
    vg_arena_init(&arena, 0, 0);
    int err = vg_obj_seal(fields, vg_doc(&arena, text), &s, status);
    if (err < 0)
        assert_int_equal(s.value.n + s.header.n, 0);
    return err;
}

static void what_cannot_be_stored_is_refused_with_a_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"[]", "not a JSON object"},
        {"'x'", "not a JSON object"},
        {"{}", "metadata is missing or not an object"},
        {"{'metadata':[]}", "metadata is missing or not an object"},
        {"{'metadata':{}}", "metadata.name is missing or not a string"},
        {"{'metadata':{'name':''}}", "metadata.name is missing or not a string"},
        {"{'metadata':{'name':1}}", "metadata.name is missing or not a string"},
        {"{'metadata':{'name':'n','namespace':1}}", "metadata.namespace is not a string"},
        {"{'metadata':{'name':'n','uid':{}}}", "metadata.uid is not a string"},
        {"{'metadata':{'name':'n','labels':[]}}", "metadata.labels is not an object"},
        {"{'metadata':{'name':'n','labels':'x'}}", "metadata.labels is not an object"},
        {"{'metadata':{'name':'n','labels':{'a':1}}}",
         "a value in metadata.labels is not a string"},
        {"{'metadata':{'name':'n','labels':{'a':{}}}}",
         "a value in metadata.labels is not a string"},
        {"{'kind':1,'metadata':{'name':'n'}}", "kind is not a string"},
        {"{'apiVersion':null,'metadata':{'name':'n'}}", "apiVersion is not a string"},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(cases); i++) {
        struct vg_status status = {0};
        assert_int_equal(seal_err(&vg_test_pods, cases[i].text, &status), VIGIL_E_INVALID);
        assert_string_equal(status.message, cases[i].message);
    }
}

static void malformed_descriptions_of_fields_are_refused(void **state)
{
    (void)state;
    struct vg_obj_fields many = {vg_test_pod_defs, VG_OBJ_FIELDS_MAX + 1, VG_OBJ_NO_TRIGGER};
    struct vg_obj_fields far = {vg_test_pod_defs, 2, 2};
    assert_int_equal(seal_err(&many, "{'metadata':{'name':'n'}}", NULL), VIGIL_E_INVALID);
    assert_int_equal(seal_err(&far, "{'metadata':{'name':'n'}}", NULL), VIGIL_E_INVALID);
}

static void text_that_is_no_json_is_refused_and_leaves_nothing(void **state)
{
    (void)state;
    VG_AUTO(obj_sealed) s;
    VG_AUTO(arena) arena;
    vg_obj_sealed_init(&s);
    vg_arena_init(&arena, 0, 0);
    struct vg_slice good = VG_SLICE_LIT("{\"metadata\":{\"name\":\"n\"}}");
    assert_int_equal(vg_obj_seal_text(&vg_test_pods, good, &arena, &s, NULL), 0);
    assert_int_equal(vg_obj_seal_text(&vg_test_pods, VG_SLICE_LIT("{"), &arena, &s, NULL),
                     VIGIL_E_JSON_SYNTAX);
    assert_int_equal(s.value.n + s.header.n, 0);
}

static void labels_and_values_beyond_the_limits_are_too_large(void **state)
{
    (void)state;
    VG_AUTO(arena) arena;
    VG_AUTO(obj_sealed) s;
    vg_arena_init(&arena, 0, 0);
    vg_obj_sealed_init(&s);
    char *big = vg_malloc(VG_OBJ_VALUE_MAX);
    assert_non_null(big);
    memset(big, 'x', VG_OBJ_VALUE_MAX);
    struct vg_json *o = vg_doc(&arena, "{'metadata':{'name':'n','labels':{'a':'b'}},'data':''}");
    struct vg_json *labels = vg_json_get_str(vg_json_get_str(o, "metadata"), "labels");
    labels->members[0].value = vg_json_string_ref(vg_slice(big, VG_LABEL_BYTES_MAX));
    assert_int_equal(vg_obj_seal(&vg_test_pods, o, &s, NULL), 0);
    labels->members[0].value = vg_json_string_ref(vg_slice(big, VG_LABEL_BYTES_MAX + 1));
    assert_int_equal(vg_obj_seal(&vg_test_pods, o, &s, NULL), VIGIL_E_TOO_LARGE);
    labels->n = 0;
    *vg_json_get_str(o, "data") = vg_json_string_ref(vg_slice(big, VG_OBJ_VALUE_MAX));
    assert_int_equal(vg_obj_seal(&vg_test_pods, o, &s, NULL), VIGIL_E_TOO_LARGE);
    assert_int_equal(s.value.n, 0);
    vg_free(big);
}

static void a_header_can_be_made_again_from_the_value(void **state)
{
    (void)state;
    VG_AUTO(buf) text;
    VG_AUTO(buf) header;
    vg_buf_init(&text, 0);
    vg_buf_init(&header, 0);
    vg_test_pod(&text, 7, 20);
    VG_AUTO(test_obj) o = vg_test_seal(&vg_test_pods, vg_buf_slice(&text));
    struct vg_obj_layout layout = {o.h.item_at, o.h.rev_at};
    assert_int_equal(vg_obj_make_header(&vg_test_pods, o.value, layout, &header, NULL), 0);
    vg_assert_slice_equal(vg_buf_slice(&header), o.header);
}

static void a_header_is_not_made_of_text_with_a_label_twice(void **state)
{
    (void)state;
    VG_AUTO(buf) header;
    vg_buf_init(&header, 0);
    struct vg_slice text =
        VG_SLICE_LIT("{\"metadata\":{\"name\":\"n\",\"labels\":{\"a\":\"1\",\"a\":\"2\"}}}");
    struct vg_obj_layout layout = {1, 20};
    assert_int_equal(vg_obj_make_header(&vg_test_pods, text, layout, &header, NULL),
                     VIGIL_E_INVALID);
    assert_int_equal(header.n, 0);
}

static void lack_of_memory_is_reported_and_nothing_leaks(void **state)
{
    (void)state;
    static const char text[] =
        "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"\\n\",\"labels\":{\"b\":\"\\t\",\"a\":\"\"}},"
        "\"spec\":{\"nodeName\":\"\\u0001\"}}";
    VG_ALLOC_FAIL_LOOP (n) {
        VG_AUTO(obj_sealed) s;
        VG_AUTO(arena) arena;
        vg_obj_sealed_init(&s);
        vg_arena_init(&arena, 0, 0);
        int err = vg_obj_seal_text(&vg_test_pods, vg_slice_str(text), &arena, &s, NULL);
        bool failed = vg_test_alloc_failed();
        assert_int_equal(err, failed ? -ENOMEM : 0);
        assert_int_equal(s.header.n > 0, !failed);
    }
}

/* ---- random objects ---- */

static struct vg_json random_labels(struct vg_random_doc *d)
{
    struct vg_json v = vg_json_object();
    for (uint64_t n = vg_rng_below(d->rng, 9); n > 0; n--) {
        size_t k = vg_rng_below(d->rng, VG_ARRAY_LEN(vg_random_keys));
        size_t w = vg_rng_below(d->rng, VG_ARRAY_LEN(vg_random_keys));
        vg_doc_must(vg_json_object_set(d->arena, &v, vg_slice_str(vg_random_keys[k]),
                                       vg_json_string_ref(vg_slice_str(vg_random_keys[w]))));
    }
    return v;
}

/* Members in any order, some of them absent. */
static struct vg_json random_meta(struct vg_random_doc *d)
{
    static const char *const texts[] = {"uid", "namespace", "generateName", "resourceVersion"};
    struct vg_json v = vg_random_object(d, 3);
    for (uint64_t n = vg_rng_below(d->rng, 7); n > 0; n--) {
        size_t k = vg_rng_below(d->rng, VG_ARRAY_LEN(texts));
        vg_doc_must(vg_json_object_set(d->arena, &v, vg_slice_str(texts[k]),
                                       vg_json_string_ref(VG_SLICE_LIT("t\"<\303\244"))));
    }
    vg_doc_must(vg_json_object_set(d->arena, &v, VG_SLICE_LIT("name"),
                                   vg_json_string_ref(VG_SLICE_LIT("web-0"))));
    if (vg_rng_below(d->rng, 3))
        vg_doc_must(vg_json_object_set(d->arena, &v, VG_SLICE_LIT("labels"), random_labels(d)));
    return v;
}

static struct vg_json random_object(struct vg_random_doc *d)
{
    struct vg_json v = vg_random_object(d, 4);
    if (vg_rng_below(d->rng, 2))
        vg_doc_must(vg_json_object_set(d->arena, &v, VG_SLICE_LIT("kind"),
                                       vg_json_string_ref(VG_SLICE_LIT("K"))));
    vg_doc_must(vg_json_object_set(d->arena, &v, VG_SLICE_LIT("metadata"), random_meta(d)));
    if (vg_rng_below(d->rng, 2))
        vg_doc_must(vg_json_object_set(d->arena, &v, VG_SLICE_LIT("apiVersion"),
                                       vg_json_string_ref(VG_SLICE_LIT("v1"))));
    return v;
}

static const struct vg_obj_field_def random_defs[] = {
    {.label = "a", .path = {"a"}, .missing = "none"},
    {.label = "a.b", .path = {"a", "b"}},
    {.label = "c.a", .path = {"c", "a"}},
    {.label = "m~n.", .path = {"m~n", ""}, .missing = "x"},
};
static const struct vg_obj_fields random_fields = {random_defs, 4, 1};

/* The model: the same by way of the tree. */
static struct vg_slice model_field(const struct vg_json *o, const struct vg_obj_field_def *def)
{
    for (const char *const *p = def->path; *p; p++)
        o = vg_json_get_str(o, *p);
    if (vg_json_is(o, VG_JSON_BOOL))
        return vg_json_is_true(o) ? VG_SLICE_LIT("true") : VG_SLICE_LIT("false");
    if (vg_json_is(o, VG_JSON_STRING) || vg_json_is(o, VG_JSON_NUMBER))
        return vg_json_text(o);
    return vg_slice_str(def->missing ? def->missing : "");
}

static void assert_header_is_true(const struct vg_test_obj *o, const struct vg_json *tree)
{
    const struct vg_json *meta = vg_json_get_str(tree, "metadata");
    const struct vg_json *labels = vg_json_get_str(meta, "labels");
    vg_assert_slice_equal(vg_obj_name(&o->h), vg_json_text(vg_json_get_str(meta, "name")));
    vg_assert_slice_equal(vg_obj_namespace(&o->h),
                          vg_json_text(vg_json_get_str(meta, "namespace")));
    vg_assert_slice_equal(vg_obj_uid(&o->h), vg_json_text(vg_json_get_str(meta, "uid")));
    for (uint32_t i = 0; i < random_fields.n; i++)
        vg_assert_slice_equal(vg_obj_field(&o->h, i), model_field(tree, &random_defs[i]));
    assert_int_equal(o->h.labels.n, labels ? labels->n : 0);
    for (uint32_t i = 0; i < o->h.labels.n; i++) {
        struct vg_slice value;
        assert_true(vg_labels_find(&o->h.labels, vg_json_key(&labels->members[i]), &value));
        vg_assert_slice_equal(value, vg_json_text(&labels->members[i].value));
    }
}

static void assert_value_is_the_object(const struct vg_test_obj *o, struct vg_json *tree,
                                       struct vg_arena *arena)
{
    struct vg_json *back;
    vg_json_object_remove(vg_json_get_str(tree, "metadata"), VG_SLICE_LIT("resourceVersion"));
    assert_int_equal(vg_json_parse(arena, o->value, NULL, &back, NULL), 0);
    assert_int_equal(vg_json_equal(tree, back), 1);
}

static void random_objects_are_sealed_truthfully(void **state)
{
    (void)state;
    struct vg_rng rng;
    vg_rng_seed(&rng, vg_test_seed());
    for (int round = 0; round < (vg_test_is_long() ? 200000 : 3000); round++) {
        VG_AUTO(arena) arena;
        VG_AUTO(buf) text;
        vg_arena_init(&arena, 0, 0);
        vg_buf_init(&text, 0);
        struct vg_random_doc d = {&arena, &rng, true, 5};
        struct vg_json tree = random_object(&d);
        assert_int_equal(vg_json_write(&text, &tree, 0), 0);
        VG_AUTO(test_obj) o = vg_test_seal(&random_fields, vg_buf_slice(&text));
        assert_header_is_true(&o, &tree);
        assert_value_is_the_object(&o, &tree, &arena);
        VG_AUTO(test_obj) again = vg_test_seal(&random_fields, o.value);
        vg_assert_slice_equal(again.value, o.value);
        vg_assert_slice_equal(again.header, o.header);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(type_metadata_and_identity_come_first_and_the_revision_goes),
        cmocka_unit_test(a_name_alone_is_enough),
        cmocka_unit_test(null_metadata_reads_as_absent),
        cmocka_unit_test(a_deletion_timestamp_is_flagged),
        cmocka_unit_test(labels_are_sorted_and_found_in_the_value),
        cmocka_unit_test(one_escaped_label_copies_them_all),
        cmocka_unit_test(fields_read_as_text_in_the_kinds_order),
        cmocka_unit_test(a_missing_field_reads_as_its_kind_says),
        cmocka_unit_test(paths_may_be_deep_shared_escaped_and_prefixes_of_each_other),
        cmocka_unit_test(as_many_fields_as_allowed_are_found),
        cmocka_unit_test(what_cannot_be_stored_is_refused_with_a_sentence),
        cmocka_unit_test(malformed_descriptions_of_fields_are_refused),
        cmocka_unit_test(text_that_is_no_json_is_refused_and_leaves_nothing),
        cmocka_unit_test(labels_and_values_beyond_the_limits_are_too_large),
        cmocka_unit_test(a_header_can_be_made_again_from_the_value),
        cmocka_unit_test(a_header_is_not_made_of_text_with_a_label_twice),
        cmocka_unit_test(lack_of_memory_is_reported_and_nothing_leaks),
        cmocka_unit_test(random_objects_are_sealed_truthfully),
    };
    return cmocka_run_group_tests_name("seal", tests, NULL, NULL);
}
