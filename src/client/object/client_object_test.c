/* client_object_test.c - objects: what the index knows, from wherever the bytes came. */
#include "test_support.h"

#include <errno.h>
#include <stdlib.h>

#include "client_object_testing.h"
#include "object_int.h"

#define assert_text(t, want) vg_assert_slice_equal(vg_slice_of(t), vg_slice_str(want))

static const char pod[] =
    "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"web-0\",\"namespace\":"
    "\"default\",\"uid\":\"u-1\",\"resourceVersion\":\"42\",\"labels\":{\"tier\":\"front\","
    "\"app\":\"web\"},\"annotations\":{\"a.b/c\":\"plain\",\"json\":\"{\\\"x\\\":1}\"},"
    "\"ownerReferences\":[{\"kind\":\"Node\",\"name\":\"n\",\"uid\":\"n1\"},{\"kind\":"
    "\"ReplicaSet\",\"name\":\"web\",\"uid\":\"r1\",\"controller\":true}]},\"spec\":{}}";

static const struct vigil_object *parse(const char *json)
{
    struct vigil_error err;
    const struct vigil_object *o = vigil_object_parse(vigil_text(json), &err);
    if (!o)
        fail_msg("%s: %s", json, err.message);
    return o;
}

static void the_index_knows_what_is_asked_for_often(void **state)
{
    (void)state;
    const struct vigil_object *o = parse(pod);
    assert_text(vigil_object_json(o), pod);
    assert_text(vigil_object_kind(o), "Pod");
    assert_text(vigil_object_api_version(o), "v1");
    assert_text(vigil_object_name(o), "web-0");
    assert_text(vigil_object_namespace(o), "default");
    assert_text(vigil_object_key(o), "default/web-0");
    assert_text(vigil_object_uid(o), "u-1");
    assert_text(vigil_object_resource_version(o), "42");
    assert_text(vigil_object_label(o, "app"), "web");
    assert_text(vigil_object_label(o, "tier"), "front");
    assert_null(vigil_object_label(o, "none").p);
    assert_text(vigil_object_annotation(o, "a.b/c"), "plain");
    assert_null(vigil_object_annotation(o, "none").p);
    assert_null(vigil_object_annotation(o, "json").p); /* escaped: vigil_value_copy */
    vigil_object_unref(o);
}

static void a_cluster_scoped_object_has_its_name_as_key(void **state)
{
    (void)state;
    const struct vigil_object *o = parse(" {\"metadata\":{\"name\":\"n1\"}}\n");
    assert_text(vigil_object_key(o), "n1");
    assert_text(vigil_object_name(o), "n1");
    assert_text(vigil_object_namespace(o), "");
    assert_text(vigil_object_kind(o), "");
    assert_text(vigil_object_uid(o), "");
    assert_text(vigil_object_resource_version(o), "");
    assert_text(vigil_object_json(o), "{\"metadata\":{\"name\":\"n1\"}}");
    vigil_object_unref(o);
}

static void escaped_texts_are_unescaped_into_the_block(void **state)
{
    (void)state;
    const struct vigil_object *o =
        parse("{\"k\\u0069nd\":\"P\\u006fd\",\"metadata\":{\"n\\u0061me\":\"\\u0077eb\","
              "\"namespace\":\"d\\u00e9\",\"uid\":\"\\\"\",\"resourceVersion\":\"\\u0037\","
              "\"labels\":{\"z\":\"1\",\"\\u0061\":\"\\u0062\",\"m\":null,\"z\":\"2\"}}}");
    assert_text(vigil_object_kind(o), "Pod");
    assert_text(vigil_object_key(o), "d\xc3\xa9/web");
    assert_text(vigil_object_uid(o), "\"");
    assert_text(vigil_object_resource_version(o), "7");
    assert_text(vigil_object_label(o, "a"), "b");
    assert_text(vigil_object_label(o, "m"), "");
    assert_text(vigil_object_label(o, "z"), "1"); /* of two the first */
    struct vg_labels labels = vg_object_labels(o);
    assert_int_equal(labels.n, 3);
    assert_true(vg_labels_is_sound(&labels, SIZE_MAX));
    vigil_object_unref(o);
}

static void of_members_given_twice_the_first_counts(void **state)
{
    (void)state;
    const struct vigil_object *o = parse(
        "{\"kind\":\"A\",\"metadata\":{\"name\":\"a\",\"name\":\"b\",\"uid\":null,\"uid\":\"u\"},"
        "\"kind\":\"B\",\"metadata\":{\"name\":\"c\",\"namespace\":\"d\"}}");
    assert_text(vigil_object_kind(o), "A");
    assert_text(vigil_object_key(o), "a");
    assert_text(vigil_get_string(o, "metadata.name"), "a");
    vigil_object_unref(o);
}

static void many_labels_in_any_order_are_sorted(void **state)
{
    (void)state;
    VG_AUTO(buf) b = {0};
    assert_int_equal(vg_buf_printf(&b, "{\"metadata\":{\"name\":\"x\",\"labels\":{"), 0);
    for (unsigned i = 0; i < 500; i++)
        assert_int_equal(
            vg_buf_printf(&b, "%s\"k%03u\":\"v%u\"", i ? "," : "", (i * 77) % 500, (i * 77) % 500),
            0);
    assert_int_equal(vg_buf_printf(&b, "}}}"), 0);
    const struct vigil_object *o = vigil_object_parse((struct vigil_text){b.p, b.n}, NULL);
    assert_non_null(o);
    struct vg_labels labels = vg_object_labels(o);
    assert_int_equal(labels.n, 500);
    assert_true(vg_labels_is_sound(&labels, SIZE_MAX));
    assert_text(vigil_object_label(o, "k123"), "v123");
    vigil_object_unref(o);
}

static void an_item_of_a_list_is_completed_by_the_kind_of_the_list(void **state)
{
    (void)state;
    struct vg_object_type type = {VG_SLICE_LIT("v1"), vg_object_item_kind(VG_SLICE_LIT("PodList"))};
    const struct vigil_object *o;
    assert_int_equal(
        vg_object_make(VG_SLICE_LIT("{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"uid\":"
                                    "\"c\",\"labels\":{\"l\":\"m\"}}}"),
                       &type, &o),
        0);
    assert_text(vigil_object_json(o),
                "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\","
                "\"namespace\":\"b\",\"uid\":\"c\",\"labels\":{\"l\":\"m\"}}}");
    assert_text(vigil_object_kind(o), "Pod");
    assert_text(vigil_object_api_version(o), "v1");
    assert_text(vigil_object_uid(o), "c");
    assert_text(vigil_object_label(o, "l"), "m");
    assert_text(vigil_get_string(o, "kind"), "Pod");
    vigil_object_unref(o);
    /* An item that says what it is stays as it is. */
    assert_int_equal(vg_object_make(VG_SLICE_LIT("{\"apiVersion\":\"x/v1\",\"kind\":\"Y\","
                                                 "\"metadata\":{\"name\":\"a\"}}"),
                                    &type, &o),
                     0);
    assert_text(vigil_object_kind(o), "Y");
    assert_text(vigil_object_api_version(o), "x/v1");
    vigil_object_unref(o);
    assert_true(vg_slice_eq(vg_object_item_kind(VG_SLICE_LIT("List")), VG_SLICE_LIT("List")));
}

static void a_watch_frame_is_taken_apart(void **state)
{
    (void)state;
    struct vg_watch_frame f;
    const struct vigil_object *o;
    assert_int_equal(vg_watch_frame_read(VG_SLICE_LIT("{\"type\":\"ADDED\",\"object\":{\"kind\":"
                                                      "\"Pod\",\"metadata\":{\"name\":\"a\"}}}\n"),
                                         &f),
                     0);
    vg_assert_slice_equal(f.type, VG_SLICE_LIT("ADDED"));
    assert_int_equal(vg_object_make(f.object, NULL, &o), 0);
    assert_text(vigil_object_name(o), "a");
    vigil_object_unref(o);
    static const char *const bad[] = {"",
                                      "[]",
                                      "{}",
                                      "{\"type\":\"ADDED\"}",
                                      "{\"object\":{}}",
                                      "{\"type\":1,\"object\":{}}",
                                      "{\"type\":\"ADDED\",\"object\":[]}",
                                      "{\"type\":\"ADDED\",\"object\":{}",
                                      "{\"type\":\"ADDED\",\"object\":{}}x"};
    for (size_t i = 0; i < VG_ARRAY_LEN(bad); i++)
        assert_true(vg_watch_frame_read(vg_slice_str(bad[i]), &f) < 0);
}

static void what_is_no_object_is_refused_with_a_reason(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        int code;
    } cases[] = {{"", VIGIL_E_INVALID},
                 {"[]", VIGIL_E_INVALID},
                 {"1", VIGIL_E_INVALID},
                 {"{", VIGIL_E_INVALID},
                 {"{}", VIGIL_E_INVALID},
                 {"{\"metadata\":{}}", VIGIL_E_INVALID},
                 {"{\"metadata\":[]}", VIGIL_E_INVALID},
                 {"{\"metadata\":{\"name\":\"\"}}", VIGIL_E_INVALID},
                 {"{\"metadata\":{\"name\":1}}", VIGIL_E_INVALID},
                 {"{\"metadata\":{\"name\":null}}", VIGIL_E_INVALID},
                 {"{\"metadata\":{\"name\":\"\\x\"}}", VIGIL_E_INVALID},
                 {"{\"metadata\":{\"name\":\"a\",\"labels\":{\"b\":1}}}", VIGIL_E_INVALID},
                 {"{\"metadata\":{\"name\":\"a\"}} x", VIGIL_E_INVALID},
                 {"{\"metadata\":{\"name\":\"a\"}", VIGIL_E_INVALID}};
    for (size_t i = 0; i < VG_ARRAY_LEN(cases); i++) {
        struct vigil_error err = {0};
        assert_null(vigil_object_parse(vigil_text(cases[i].json), &err));
        assert_int_equal(err.code, cases[i].code);
        assert_true(err.message[0]);
    }
}

static void texts_over_their_caps_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"name", "namespace", "uid", "resourceVersion"};
    for (size_t i = 0; i < VG_ARRAY_LEN(names); i++) {
        VG_AUTO(buf) b = {0};
        struct vigil_error err;
        assert_int_equal(vg_buf_printf(&b, "{\"metadata\":{\"%s\":\"%0*d\",\"name\":\"a\"}}",
                                       names[i], (int)VG_OBJECT_TEXT_MAX + 1, 0),
                         0);
        assert_null(vigil_object_parse((struct vigil_text){b.p, b.n}, &err));
        assert_int_equal(err.code, VIGIL_E_TOO_LARGE);
    }
}

static void the_longest_key_of_bad_bytes_fits(void **state)
{
    (void)state;
    VG_AUTO(buf) b = {0};
    VG_AUTO(buf) bad = {0};
    assert_int_equal(vg_buf_append(&bad, "\\n", 2), 0);
    while (bad.n < VG_OBJECT_TEXT_MAX)
        assert_int_equal(vg_buf_append_byte(&bad, (char)0xff), 0);
    assert_int_equal(vg_buf_printf(&b, "{\"metadata\":{\"namespace\":\"%.*s\",\"name\":\"%.*s\"}}",
                                   (int)bad.n, bad.p, (int)bad.n, bad.p),
                     0);
    const struct vigil_object *o = vigil_object_parse((struct vigil_text){b.p, b.n}, NULL);
    assert_non_null(o);
    assert_int_equal(vigil_object_name(o).n, 1 + 3 * (VG_OBJECT_TEXT_MAX - 2));
    assert_int_equal(vigil_object_namespace(o).n, 1 + 3 * (VG_OBJECT_TEXT_MAX - 2));
    vigil_object_unref(o);
}

static void the_controller_is_found_among_the_owners(void **state)
{
    (void)state;
    const struct vigil_object *o = parse(pod), *alone = parse("{\"metadata\":{\"name\":\"n1\"}}");
    struct vigil_text kind, name, uid;
    assert_true(vigil_object_controller(o, &kind, &name, &uid));
    assert_text(kind, "ReplicaSet");
    assert_text(name, "web");
    assert_text(uid, "r1");
    assert_false(vigil_object_controller(alone, &kind, &name, &uid));
    vigil_object_unref(o);
    vigil_object_unref(alone);
}

static void a_merge_makes_a_new_object(void **state)
{
    (void)state;
    const struct vigil_object *o = parse(pod);
    struct vigil_error err;
    const struct vigil_object *m = vigil_object_merge(
        o, vigil_text("{\"metadata\":{\"labels\":{\"app\":null,\"x\":\"y\"}}}"), &err);
    assert_non_null(m);
    assert_null(vigil_object_label(m, "app").p);
    assert_text(vigil_object_label(m, "x"), "y");
    assert_text(vigil_object_label(o, "app"), "web");
    vigil_object_unref(m);
    assert_null(vigil_object_merge(o, vigil_text("{"), &err));
    assert_int_equal(err.code, VIGIL_E_INVALID);
    assert_null(vigil_object_merge(o, vigil_text("{\"metadata\":null}"), &err));
    assert_int_equal(err.code, VIGIL_E_INVALID);
    VG_ALLOC_FAIL_LOOP (n) {
        m = vigil_object_merge(o, vigil_text("{\"spec\":{\"a\":1}}"), &err);
        if (vg_test_alloc_failed()) {
            assert_null(m);
            assert_int_equal(err.code, VIGIL_E_MEMORY);
        }
        vigil_object_unref(m);
    }
    vigil_object_unref(o);
}

static void an_object_is_one_allocation(void **state)
{
    (void)state;
    vg_alloc_fail_at(1000, 0);
    const struct vigil_object *o = parse(pod);
    assert_int_equal(vg_alloc_fail_at(0, 0), 1);
    vigil_object_unref(o);
    VG_ALLOC_FAIL_LOOP (n) {
        struct vigil_error err;
        o = vigil_object_parse(vigil_text(pod), &err);
        if (vg_test_alloc_failed())
            assert_int_equal(err.code, VIGIL_E_MEMORY);
        vigil_object_unref(o);
    }
}

static void share(unsigned index, void *arg)
{
    const struct vigil_object *o = arg;
    for (unsigned i = 0; i < 10000 + index; i++) {
        vigil_object_ref(o);
        assert_true(vigil_text_is(vigil_object_label(o, "app"), "web"));
        vigil_object_unref(o);
    }
    vigil_object_unref(o);
}

static void threads_share_an_object(void **state)
{
    (void)state;
    const struct vigil_object *o = parse(pod);
    for (int i = 0; i < 4; i++)
        vigil_object_ref(o);
    vigil_object_unref(o); /* the last of the threads frees it */
    vg_test_threads(4, share, (void *)(uintptr_t)o);
}

static void the_index_costs_little(void **state)
{
    (void)state;
    const struct vigil_object *o = vg_test_pod(7, 1);
    /* Struct, twelve bytes for each label, and the key. */
    assert_int_equal(sizeof(struct vigil_object), 40);
    assert_true(vigil_object_json(o).n > 4000);
    vigil_object_unref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_index_knows_what_is_asked_for_often),
        cmocka_unit_test(a_cluster_scoped_object_has_its_name_as_key),
        cmocka_unit_test(escaped_texts_are_unescaped_into_the_block),
        cmocka_unit_test(of_members_given_twice_the_first_counts),
        cmocka_unit_test(many_labels_in_any_order_are_sorted),
        cmocka_unit_test(an_item_of_a_list_is_completed_by_the_kind_of_the_list),
        cmocka_unit_test(a_watch_frame_is_taken_apart),
        cmocka_unit_test(what_is_no_object_is_refused_with_a_reason),
        cmocka_unit_test(texts_over_their_caps_are_refused),
        cmocka_unit_test(the_longest_key_of_bad_bytes_fits),
        cmocka_unit_test(the_controller_is_found_among_the_owners),
        cmocka_unit_test(a_merge_makes_a_new_object),
        cmocka_unit_test(an_object_is_one_allocation),
        cmocka_unit_test(threads_share_an_object),
        cmocka_unit_test(the_index_costs_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
