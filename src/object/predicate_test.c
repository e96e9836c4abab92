/* predicate_test.c - predicates match what their parts say, and know what they pin. */
#include "test_support.h"

#include <errno.h>
#include <stdio.h>

#include "base/rng.h"
#include "object_testing.h"
#include "predicate.h"

static const struct vg_label_selector *labels(const char *text)
{
    const struct vg_label_selector *s = NULL;
    assert_int_equal(vg_label_selector_parse(vg_slice_str(text), &s, NULL), 0);
    return s;
}

static const struct vg_field_selector *fields(const char *text)
{
    const struct vg_field_selector *s = NULL;
    assert_int_equal(vg_field_selector_parse(vg_slice_str(text), &s, NULL), 0);
    return s;
}

static struct vg_obj_predicate *predicate(const char *ns, const char *name, const char *l,
                                          const char *f)
{
    struct vg_obj_predicate_opts opts = {.fields = &vg_test_pods,
                                         .ns = vg_slice_str(ns),
                                         .name = vg_slice_str(name),
                                         .take_labels = labels(l),
                                         .take_fields = fields(f)};
    struct vg_obj_predicate *p = NULL;
    assert_int_equal(vg_obj_predicate_new(&opts, &p, NULL), 0);
    return p;
}

static struct vg_test_obj web_0(void)
{
    return vg_test_obj(&vg_test_pods,
                       "{'metadata':{'name':'web-0','namespace':'ns','labels':{'app':'web','n':'3'"
                       "}},'spec':{'nodeName':'n1'},'status':{'phase':'Running'}}");
}

static void a_predicate_is_the_and_of_its_parts(void **state)
{
    (void)state;
    static const struct {
        const char *ns, *name, *labels, *fields;
        bool matches;
    } cases[] = {
        {"", "", "", "", true},
        {"ns", "web-0", "app=web", "spec.nodeName=n1", true},
        {"n", "", "", "", false},
        {"", "web", "", "", false},
        {"", "", "app in (web,db),!x,n>2", "", true},
        {"", "", "app!=web", "", false},
        {"", "", "", "metadata.name=web-0,metadata.namespace=ns", true},
        {"", "", "", "metadata.name=web-1", false},
        {"", "", "", "metadata.namespace!=ns", false},
        {"", "", "", "spec.nodeName=n1,status.phase!=Failed", true},
        {"", "", "", "spec.nodeName=", false},
        {"", "", "", "spec.hostNetwork=false", true},
        {"", "", "", "status.podIPs=", true},
        {"ns", "web-0", "app=web", "spec.nodeName=n2", false},
        {"ns", "web-0", "app=db", "spec.nodeName=n1", false},
        {"ns", "", "", "metadata.namespace=other", false},
    };
    VG_AUTO(test_obj) o = web_0();
    for (size_t i = 0; i < VG_ARRAY_LEN(cases); i++) {
        struct vg_obj_predicate *p =
            predicate(cases[i].ns, cases[i].name, cases[i].labels, cases[i].fields);
        if (vg_obj_predicate_matches(p, &o.h) != cases[i].matches)
            fail_msg("case %zu", i);
        assert_int_equal(vg_obj_predicate_is_all(p), i == 0);
        assert_null(vg_obj_predicate_unref(p));
    }
}

static void without_selectors_everything_matches(void **state)
{
    (void)state;
    VG_AUTO(test_obj) o = web_0();
    struct vg_obj_predicate *p = NULL;
    struct vg_obj_predicate_opts opts = {.fields = &vg_test_no_fields};
    assert_int_equal(vg_obj_predicate_new(&opts, &p, NULL), 0);
    assert_true(vg_obj_predicate_is_all(p));
    assert_true(vg_obj_predicate_matches(p, &o.h));
    assert_true(vg_obj_predicate_size(p) > 0);
    vg_obj_predicate_unref(p);
    assert_null(vg_obj_predicate_unref(NULL));
}

static void selectors_of_nothing_match_nothing(void **state)
{
    (void)state;
    VG_AUTO(test_obj) o = web_0();
    for (int i = 0; i < 2; i++) {
        struct vg_obj_predicate *p = NULL;
        struct vg_obj_predicate_opts opts = {
            .fields = &vg_test_pods,
            .take_labels = i ? vg_label_selector_nothing() : NULL,
            .take_fields = i ? NULL : vg_field_selector_nothing(),
        };
        assert_int_equal(vg_obj_predicate_new(&opts, &p, NULL), 0);
        assert_false(vg_obj_predicate_is_all(p));
        assert_false(vg_obj_predicate_matches(p, &o.h));
        vg_obj_predicate_unref(p);
    }
}

static void assert_pin(bool is_set, struct vg_slice got, const char *want)
{
    assert_int_equal(is_set, want != NULL);
    if (want)
        vg_assert_slice_equal(got, vg_slice_str(want));
}

static void what_is_pinned_is_known(void **state)
{
    (void)state;
    static const struct {
        const char *ns, *name, *fields, *pin_ns, *pin_name, *pin_trigger;
    } cases[] = {
        {"", "", "", NULL, NULL, NULL},
        {"ns", "n", "", "ns", "n", NULL},
        {"", "", "metadata.name=n,metadata.namespace==ns", "ns", "n", NULL},
        {"ns", "", "metadata.namespace=other", "ns", NULL, NULL},
        {"", "", "spec.nodeName=n1,spec.nodeName=n2", NULL, NULL, "n1"},
        {"", "", "spec.nodeName=", NULL, NULL, ""},
        {"", "", "spec.nodeName!=n1,metadata.name!=n", NULL, NULL, NULL},
        {"", "", "status.phase=Running", NULL, NULL, NULL},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(cases); i++) {
        struct vg_obj_predicate *p = predicate(cases[i].ns, cases[i].name, "", cases[i].fields);
        struct vg_slice got = {0};
        assert_pin(vg_obj_predicate_namespace(p, &got), got, cases[i].pin_ns);
        assert_pin(vg_obj_predicate_name(p, &got), got, cases[i].pin_name);
        assert_pin(vg_obj_predicate_trigger(p, &got), got, cases[i].pin_trigger);
        vg_obj_predicate_unref(p);
    }
}

static void the_trigger_alone_is_told_from_more(void **state)
{
    (void)state;
    static const struct {
        const char *ns, *name, *labels, *fields;
        bool is_trigger;
    } cases[] = {
        {"", "", "", "spec.nodeName=n1", true},
        {"", "", "", "spec.nodeName=", true},
        {"", "", "", "", false},
        {"", "", "", "spec.nodeName!=n1", false},
        {"", "", "", "status.phase=Running", false},
        {"", "", "", "spec.nodeName=n1,spec.nodeName=n2", false},
        {"", "", "", "spec.nodeName=n1,status.phase=Running", false},
        {"ns", "", "", "spec.nodeName=n1", false},
        {"", "web-0", "", "spec.nodeName=n1", false},
        {"", "", "app=web", "spec.nodeName=n1", false},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(cases); i++) {
        struct vg_obj_predicate *p =
            predicate(cases[i].ns, cases[i].name, cases[i].labels, cases[i].fields);
        assert_int_equal(vg_obj_predicate_is_trigger(p), cases[i].is_trigger);
        vg_obj_predicate_unref(p);
    }
}

static void a_kind_without_trigger_pins_none(void **state)
{
    (void)state;
    struct vg_obj_fields plain = vg_test_pods;
    plain.trigger = VG_OBJ_NO_TRIGGER;
    struct vg_obj_predicate_opts opts = {.fields = &plain,
                                         .take_fields = fields("spec.nodeName=n1")};
    struct vg_obj_predicate *p = NULL;
    struct vg_slice got;
    assert_int_equal(vg_obj_predicate_new(&opts, &p, NULL), 0);
    assert_false(vg_obj_predicate_trigger(p, &got));
    vg_obj_predicate_unref(p);
}

static void fields_that_the_kind_has_not_are_refused(void **state)
{
    (void)state;
    struct vg_status status = {0};
    struct vg_obj_predicate *p = NULL;
    struct vg_obj_predicate_opts opts = {.fields = &vg_test_pods,
                                         .take_labels = labels("a=b"),
                                         .take_fields = fields("spec.nodeName=n,spec.x=1")};
    assert_int_equal(vg_obj_predicate_new(&opts, &p, &status), VIGIL_E_INVALID);
    assert_string_equal(status.message, "field label not supported: spec.x");
    assert_null(p);
}

static void a_selector_resolved_elsewhere_is_taken_by_its_indexes(void **state)
{
    (void)state;
    VG_AUTO(test_obj) o = web_0();
    struct vg_field_term terms[] = {
        {VG_SLICE_LIT("spec.host"), VG_SLICE_LIT("n1"), VG_FIELD_EQUALS, 0},
        {VG_SLICE_LIT("metadata.name"), VG_SLICE_LIT("web-0"), VG_FIELD_EQUALS, VG_OBJ_FIELD_NAME},
    };
    struct vg_obj_predicate_opts opts = {.fields = &vg_test_pods};
    struct vg_obj_predicate *p = NULL;
    struct vg_slice got;
    assert_int_equal(vg_field_selector_from_terms(terms, 2, &opts.take_fields), 0);
    assert_int_equal(vg_obj_predicate_new(&opts, &p, NULL), 0);
    assert_true(vg_obj_predicate_matches(p, &o.h));
    assert_pin(vg_obj_predicate_trigger(p, &got), got, "n1");
    vg_obj_predicate_unref(p);
    terms[0].index = vg_test_pods.n;
    assert_int_equal(vg_field_selector_from_terms(terms, 2, &opts.take_fields), 0);
    assert_int_equal(vg_obj_predicate_new(&opts, &p, NULL), VIGIL_E_INVALID);
}

/* Contract, section 4: no->yes ADDED, yes->yes MODIFIED, yes->no DELETED, no->no none. */
static void changes_follow_the_selector_not_the_storage(void **state)
{
    (void)state;
    VG_AUTO(test_obj) in = web_0();
    VG_AUTO(test_obj) out = vg_test_obj(&vg_test_pods, "{'metadata':{'name':'web-0'}}");
    struct vg_obj_predicate *p = predicate("", "", "app", "");
    const struct vg_obj_header *states[] = {NULL, &out.h, &in.h};
    static const enum vg_obj_change want[3][3] = {
        {VG_OBJ_NONE, VG_OBJ_NONE, VG_OBJ_ADDED},
        {VG_OBJ_NONE, VG_OBJ_NONE, VG_OBJ_ADDED},
        {VG_OBJ_DELETED, VG_OBJ_DELETED, VG_OBJ_MODIFIED},
    };
    for (int before = 0; before < 3; before++)
        for (int after = 0; after < 3; after++)
            assert_int_equal(vg_obj_predicate_change(p, states[before], states[after]),
                             want[before][after]);
    vg_obj_predicate_unref(p);
}

static void a_predicate_owes_nothing_to_its_request(void **state)
{
    (void)state;
    VG_AUTO(test_obj) o = web_0();
    char ns[] = "ns", name[] = "web-0";
    struct vg_obj_predicate *p = predicate(ns, name, "", "");
    ns[0] = name[0] = 'X';
    assert_true(vg_obj_predicate_matches(p, &o.h));
    assert_ptr_equal(vg_obj_predicate_ref(p), p);
    vg_obj_predicate_unref(p);
    assert_true(vg_obj_predicate_matches(p, &o.h));
    vg_obj_predicate_unref(p);
}

static void lack_of_memory_is_reported_and_nothing_leaks(void **state)
{
    (void)state;
    VG_ALLOC_FAIL_LOOP (n) {
        struct vg_obj_predicate_opts opts = {.fields = &vg_test_pods, .ns = VG_SLICE_LIT("ns")};
        struct vg_obj_predicate *p = NULL;
        int err = vg_label_selector_parse(VG_SLICE_LIT("a=b"), &opts.take_labels, NULL);
        if (err == 0)
            err = vg_field_selector_parse(VG_SLICE_LIT("spec.nodeName=n"), &opts.take_fields, NULL);
        if (err == 0)
            err = vg_obj_predicate_new(&opts, &p, NULL);
        else
            vg_label_selector_free(opts.take_labels);
        assert_int_equal(err, vg_test_alloc_failed() ? -ENOMEM : 0);
        vg_obj_predicate_unref(p);
    }
}

/* ---- random requests against a model that reads the parts one by one ---- */

struct parts {
    const char *ns, *name, *app, *node;
};

static const char *pick(struct vg_rng *rng, const char *const v[3])
{
    return v[vg_rng_below(rng, 3)];
}

static struct parts random_parts(struct vg_rng *rng)
{
    static const char *const ns[] = {"", "a", "b"}, *const name[] = {"", "x", "y"};
    static const char *const app[] = {"", "web", "db"}, *const node[] = {"", "n1", "n2"};
    return (struct parts){pick(rng, ns), pick(rng, name), pick(rng, app), pick(rng, node)};
}

static bool model_matches(const struct parts *want, const struct parts *o)
{
    return (!*want->ns || strcmp(want->ns, o->ns) == 0) &&
           (!*want->name || strcmp(want->name, o->name) == 0) &&
           (!*want->app || strcmp(want->app, o->app) == 0) &&
           (!*want->node || strcmp(want->node, o->node) == 0);
}

/* Half of the requests say namespace and name in the field selector. */
static struct vg_obj_predicate *random_predicate(const struct parts *w, bool by_fields)
{
    char l[32] = "", f[128] = "";
    size_t n = 0;
    if (*w->app)
        snprintf(l, sizeof l, "app=%s", w->app);
    if (*w->node)
        n += (size_t)snprintf(f + n, sizeof f - n, "spec.nodeName=%s,", w->node);
    if (by_fields && *w->ns)
        n += (size_t)snprintf(f + n, sizeof f - n, "metadata.namespace=%s,", w->ns);
    if (by_fields && *w->name)
        snprintf(f + n, sizeof f - n, "metadata.name=%s", w->name);
    return predicate(by_fields ? "" : w->ns, by_fields ? "" : w->name, l, f);
}

static struct vg_test_obj random_pod(const struct parts *o)
{
    char text[256];
    snprintf(text, sizeof text,
             "{'metadata':{'name':'%s','namespace':'%s','labels':{'app':'%s'}},'spec':{'nodeName':"
             "'%s'}}",
             o->name, o->ns, o->app, o->node);
    return vg_test_obj(&vg_test_pods, text);
}

static void random_predicates_agree_with_the_model(void **state)
{
    (void)state;
    struct vg_rng rng;
    vg_rng_seed(&rng, vg_test_seed());
    for (int i = 0; i < 5000; i++) {
        struct parts want = random_parts(&rng), have = random_parts(&rng);
        have.name = *have.name ? have.name : "z"; /* objects have names */
        struct vg_obj_predicate *p = random_predicate(&want, vg_rng_below(&rng, 2));
        VG_AUTO(test_obj) o = random_pod(&have);
        assert_int_equal(vg_obj_predicate_matches(p, &o.h), model_matches(&want, &have));
        vg_obj_predicate_unref(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_predicate_is_the_and_of_its_parts),
        cmocka_unit_test(without_selectors_everything_matches),
        cmocka_unit_test(selectors_of_nothing_match_nothing),
        cmocka_unit_test(what_is_pinned_is_known),
        cmocka_unit_test(the_trigger_alone_is_told_from_more),
        cmocka_unit_test(a_kind_without_trigger_pins_none),
        cmocka_unit_test(fields_that_the_kind_has_not_are_refused),
        cmocka_unit_test(a_selector_resolved_elsewhere_is_taken_by_its_indexes),
        cmocka_unit_test(changes_follow_the_selector_not_the_storage),
        cmocka_unit_test(a_predicate_owes_nothing_to_its_request),
        cmocka_unit_test(lack_of_memory_is_reported_and_nothing_leaks),
        cmocka_unit_test(random_predicates_agree_with_the_model),
    };
    return cmocka_run_group_tests_name("predicate", tests, NULL, NULL);
}
