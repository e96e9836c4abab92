/* merge_test.c - merge patches: RFC 7386's examples, random ones, differences. */
#include "test_support.h"

#include <errno.h>
#include <stdio.h>

#include "base/buf.h"
#include "doc_testing.h"
#include "equal.h"
#include "patch.h"
#include "write.h"

static void assert_text(const struct vg_json *v, const char *want)
{
    VG_AUTO(arena) a = {0};
    VG_AUTO(buf) got = {0};
    VG_AUTO(buf) expected = {0};
    assert_int_equal(vg_json_write(&got, v, 0), 0);
    assert_int_equal(vg_json_write(&expected, vg_doc(&a, want), 0), 0);
    vg_assert_slice_equal(vg_buf_slice(&got), vg_buf_slice(&expected));
}

/* ---- applying ---- */

struct row {
    const char *doc, *patch, *want; /* the text, so the order of members too */
};

static void run_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        VG_AUTO(arena) a = {0};
        struct vg_json *doc = vg_doc(&a, rows[i].doc), *patch = vg_doc(&a, rows[i].patch), v;
        assert_int_equal(vg_json_merge_apply(&a, doc, patch, &v, NULL), 0);
        assert_text(&v, rows[i].want);
        assert_text(doc, rows[i].doc);
        assert_text(patch, rows[i].patch);
    }
}

/* RFC 7386, section 3 and appendix A. */
static void the_examples_of_rfc_7386_hold(void **state)
{
    static const struct row rows[] = {
        {"{'a':'b'}", "{'a':'c'}", "{'a':'c'}"},
        {"{'a':'b'}", "{'b':'c'}", "{'a':'b','b':'c'}"},
        {"{'a':'b'}", "{'a':null}", "{}"},
        {"{'a':'b','b':'c'}", "{'a':null}", "{'b':'c'}"},
        {"{'a':['b']}", "{'a':'c'}", "{'a':'c'}"},
        {"{'a':'c'}", "{'a':['b']}", "{'a':['b']}"},
        {"{'a':{'b':'c'}}", "{'a':{'b':'d','c':null}}", "{'a':{'b':'d'}}"},
        {"{'a':[{'b':'c'}]}", "{'a':[1]}", "{'a':[1]}"},
        {"['a','b']", "['c','d']", "['c','d']"},
        {"{'a':'b'}", "['c']", "['c']"},
        {"{'a':'foo'}", "null", "null"},
        {"{'a':'foo'}", "'bar'", "'bar'"},
        {"{'e':null}", "{'a':1}", "{'e':null,'a':1}"},
        {"[1,2]", "{'a':'b','c':null}", "{'a':'b'}"},
        {"{}", "{'a':{'bb':{'ccc':null}}}", "{'a':{'bb':{}}}"},
        {"{'title':'Goodbye!','author':{'givenName':'John','familyName':'Doe'},"
         "'tags':['example','sample'],'content':'This will be unchanged'}",
         "{'title':'Hello!','phoneNumber':'+01-123-456-7890','author':{'familyName':null},"
         "'tags':['example']}",
         "{'title':'Hello!','author':{'givenName':'John'},'tags':['example'],"
         "'content':'This will be unchanged','phoneNumber':'+01-123-456-7890'}"},
    };
    (void)state;
    run_rows(rows, VG_ARRAY_LEN(rows));
}

static void corners_of_the_merge_hold(void **state)
{
    static const struct row rows[] = {
        {"{}", "{}", "{}"},
        {"null", "{}", "{}"},
        {"1", "{'a':{'b':null}}", "{'a':{}}"},
        {"{'a':1}", "{}", "{'a':1}"},
        {"{'a':null}", "{'a':{'b':null}}", "{'a':{}}"},
        {"{'a':{'b':1}}", "{'a':{}}", "{'a':{'b':1}}"},
        {"{'a':1}", "{'a':[null,{'b':null}]}", "{'a':[null,{'b':null}]}"}, /* arrays as they are */
        {"{'a':1,'b':2,'c':3}", "{'d':4,'b':null,'a':5}", "{'a':5,'c':3,'d':4}"},
        {"{'':{'':1}}", "{'':{'':null,'x':2}}", "{'':{'x':2}}"},
        {"{'a':{'b':{'c':{'d':1}}}}", "{'a':{'b':{'c':{'e':2}},'f':3}}",
         "{'a':{'b':{'c':{'d':1,'e':2}},'f':3}}"},
        {"{'n':12345678901234567890.1000}", "{'m':1e999}",
         "{'n':12345678901234567890.1000,'m':1e999}"},
    };
    (void)state;
    run_rows(rows, VG_ARRAY_LEN(rows));
}

/* ---- the difference ---- */

static void the_difference_is_the_smallest_merge_patch(void **state)
{
    static const struct row rows[] = {
        {"{'a':1,'b':2}", "{'a':1,'b':3}", "{'b':3}"},
        {"{'a':1,'b':2}", "{'b':2}", "{'a':null}"},
        {"{'a':1}", "{'a':1,'b':{'c':[]}}", "{'b':{'c':[]}}"},
        {"{'a':{'b':1,'c':2}}", "{'a':{'b':1}}", "{'a':{'c':null}}"},
        {"{'a':{'b':1}}", "{'a':{}}", "{'a':{'b':null}}"},
        {"{'a':[1,2]}", "{'a':[1,3]}", "{'a':[1,3]}"},
        {"{'a':[1,{'x':1}]}", "{'a':[1.0,{'x':10e-1}]}", "{}"}, /* equal numbers are no change */
        {"{'a':null}", "{'a':null}", "{}"},
        {"{'a':null,'b':1}", "{'a':null}", "{'b':null}"},
        {"{'a':1}", "{'a':[null,{'b':null}]}", "{'a':[null,{'b':null}]}"},
        {"{'a':[]}", "{'a':{}}", "{'a':{}}"},
        {"{'a':1}", "null", "null"},
        {"[1]", "{'a':{}}", "{'a':{}}"},
        {"{'a':1}", "[null]", "[null]"},
        {"{'b':1,'a':{'d':1,'c':2}}", "{'a':{'c':2,'d':1},'b':1}", "{}"},
    };
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        VG_AUTO(arena) a = {0};
        struct vg_json *from = vg_doc(&a, rows[i].doc), *to = vg_doc(&a, rows[i].patch), d, v;
        assert_int_equal(vg_json_merge_diff(&a, from, to, &d, NULL), 0);
        assert_text(&d, rows[i].want);
        assert_int_equal(vg_json_merge_apply(&a, from, &d, &v, NULL), 0);
        assert_int_equal(vg_json_equal(&v, to), 1);
    }
}

static void a_null_that_no_merge_patch_makes_is_named(void **state)
{
    static const struct {
        const char *from, *to, *path, *key;
    } rows[] = {
        {"{}", "{'a':null}", "/a", "a"},
        {"{'a':1}", "{'a':null}", "/a", "a"},
        {"{'a':{'b':1}}", "{'a':{'b':{'c':null}}}", "/a/b", "c"},
        {"{'x':{'y':1}}", "{'x':{'y':1,'z':{'q':{'r':null}}}}", "/x/z", "r"},
        {"[]", "{'a':{'b':null}}", "", "b"},
        {"{'a':[]}", "{'a':{'b':null}}", "/a", "b"},
    };
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        VG_AUTO(arena) a = {0};
        struct vg_json d = vg_json_bool(true);
        struct vg_status st = {0};
        char want[VG_STATUS_MESSAGE_MAX];
        snprintf(want, sizeof want,
                 "no merge patch makes this document: at \"%s\", member \"%s\" is null",
                 rows[i].path, rows[i].key);
        assert_int_equal(
            vg_json_merge_diff(&a, vg_doc(&a, rows[i].from), vg_doc(&a, rows[i].to), &d, &st),
            VIGIL_E_PATCH_FAILED);
        assert_string_equal(st.message, want);
        assert_true(vg_json_is_true(&d));
    }
}

/* ---- random documents ---- */

/* The RFC's own recursive algorithm; its depth is the patch's. */
static struct vg_json model_merge(struct vg_arena *a, const struct vg_json *target,
                                  const struct vg_json *patch)
{
    struct vg_json out;
    if (patch->type != VG_JSON_OBJECT)
        return *patch;
    out = vg_json_object();
    if (vg_json_is(target, VG_JSON_OBJECT))
        assert_int_equal(vg_json_clone(a, target, &out), 0);
    VG_JSON_FOREACH_MEMBER (m, patch) {
        struct vg_slice key = vg_json_key(m);
        if (m->value.type == VG_JSON_NULL) {
            vg_json_object_remove(&out, key);
            continue;
        }
        struct vg_json v = model_merge(a, vg_json_get(&out, key), &m->value);
        assert_int_equal(vg_json_object_set(a, &out, key, v), 0);
    }
    return out;
}

static int rounds(void)
{
    return vg_test_is_long() ? 500000 : 10000;
}

static void random_merges_agree_with_the_rfcs_algorithm(void **state)
{
    struct vg_rng rng;
    (void)state;
    vg_rng_seed(&rng, vg_test_seed());
    for (int round = 0; round < rounds(); round++) {
        VG_AUTO(arena) a = {0};
        struct vg_random_doc d = {&a, &rng, true, 5};
        struct vg_json doc = vg_random_value(&d, 4), patch = vg_random_value(&d, 4), v;
        struct vg_json before;
        assert_int_equal(vg_json_clone(&a, &doc, &before), 0);
        struct vg_json want = model_merge(&a, &doc, &patch);
        assert_int_equal(vg_json_merge_apply(&a, &doc, &patch, &v, NULL), 0);
        assert_int_equal(vg_json_equal(&v, &want), 1);
        assert_int_equal(vg_json_equal(&doc, &before), 1);
    }
}

static void random_differences_lead_from_one_to_the_other(void **state)
{
    struct vg_rng rng;
    uint32_t refused = 0;
    (void)state;
    vg_rng_seed(&rng, vg_test_seed());
    for (int round = 0; round < rounds(); round++) {
        VG_AUTO(arena) a = {0};
        struct vg_random_doc d = {&a, &rng, round % 2 == 0, 5};
        struct vg_json from = vg_random_value(&d, 4), to = vg_random_value(&d, 4), patch, v;
        int r = vg_json_merge_diff(&a, &from, &to, &patch, NULL);
        refused += r < 0;
        if (r < 0) {
            assert_int_equal(r, VIGIL_E_PATCH_FAILED);
            assert_true(d.nulls);
            continue;
        }
        assert_int_equal(vg_json_merge_apply(&a, &from, &patch, &v, NULL), 0);
        assert_int_equal(vg_json_equal(&v, &to), 1);
    }
    assert_in_range(refused, 100, (uint32_t)rounds() / 2);
}

/* ---- size and memory ---- */

/* {"k0":[0],...}, rising or falling. */
static void large_text(struct vg_buf *b, uint32_t n, char prefix, bool falling)
{
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(
            vg_buf_printf(b, "%s'%c%u':[%u]", i ? "," : "{", prefix, falling ? n - 1 - i : i, i),
            0);
    assert_int_equal(vg_buf_append(b, "}", 2), 0);
}

/* Quadratic search would take minutes here. */
static void large_objects_are_merged_fast(void **state)
{
    static const char prefixes[] = {'k', 'x'}; /* the same keys in opposite order; other keys */
    (void)state;
    for (size_t i = 0; i < sizeof prefixes; i++) {
        VG_AUTO(arena) a = {0};
        VG_AUTO(buf) one = {0};
        VG_AUTO(buf) two = {0};
        struct vg_json d, v;
        large_text(&one, 100000, 'k', false);
        large_text(&two, 100000, prefixes[i], true);
        struct vg_json *from = vg_doc(&a, one.p), *to = vg_doc(&a, two.p);
        assert_int_equal(vg_json_merge_diff(&a, from, to, &d, NULL), 0);
        assert_int_equal(d.n, i == 0 ? 100000 : 200000);
        assert_int_equal(vg_json_merge_apply(&a, from, &d, &v, NULL), 0);
        assert_int_equal(vg_json_equal(&v, to), 1);
    }
}

/* Nests "core" in n objects. */
static struct vg_json deep(struct vg_arena *a, uint32_t n, struct vg_json core)
{
    for (uint32_t i = 0; i < n; i++) {
        struct vg_json obj = vg_json_object();
        assert_int_equal(vg_json_object_add(a, &obj, VG_SLICE_LIT("k"), core), 0);
        core = obj;
    }
    return core;
}

static void the_deepest_objects_are_merged(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    struct vg_json from = deep(&a, VG_JSON_DEPTH_MAX, vg_json_bool(true)), d, v;
    struct vg_json to = deep(&a, VG_JSON_DEPTH_MAX, vg_json_bool(false));
    assert_int_equal(vg_json_merge_diff(&a, &from, &to, &d, NULL), 0);
    assert_int_equal(vg_json_merge_apply(&a, &from, &d, &v, NULL), 0);
    assert_int_equal(vg_json_equal(&v, &to), 1);
    from = deep(&a, VG_JSON_DEPTH_MAX + 1, vg_json_bool(true));
    to = deep(&a, VG_JSON_DEPTH_MAX + 1, vg_json_bool(false));
    assert_int_equal(vg_json_merge_diff(&a, &from, &to, &d, NULL), VIGIL_E_JSON_DEPTH);
    assert_int_equal(vg_json_merge_apply(&a, &from, &to, &v, NULL), VIGIL_E_JSON_DEPTH);
}

static void failing_allocations_leave_the_inputs_alone(void **state)
{
    (void)state;
    VG_AUTO(arena) mine = {0};
    VG_AUTO(buf) one = {0};
    VG_AUTO(buf) two = {0};
    large_text(&one, 40, 'k', false);
    large_text(&two, 40, 'k', true);
    struct vg_json *from = vg_doc(&mine, one.p), *to = vg_doc(&mine, two.p);
    struct vg_json *from_before = vg_doc(&mine, one.p), *to_before = vg_doc(&mine, two.p);
    VG_ALLOC_FAIL_LOOP (n) {
        VG_AUTO(arena) a;
        struct vg_json d = vg_json_bool(true), v = d;
        struct vg_status st = {0};
        vg_arena_init(&a, 64, 0);
        int r = vg_json_merge_diff(&a, from, to, &d, &st);
        if (r == 0)
            r = vg_json_merge_apply(&a, from, &d, &v, &st);
        if (vg_test_alloc_failed()) {
            assert_int_equal(r, -ENOMEM);
            assert_int_equal(st.err, -ENOMEM);
            assert_true(vg_json_is_true(&v));
        } else {
            assert_int_equal(r, 0);
            assert_int_equal(vg_json_equal(&v, to), 1);
        }
        assert_int_equal(vg_json_equal(from, from_before), 1);
        assert_int_equal(vg_json_equal(to, to_before), 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_of_rfc_7386_hold),
        cmocka_unit_test(corners_of_the_merge_hold),
        cmocka_unit_test(the_difference_is_the_smallest_merge_patch),
        cmocka_unit_test(a_null_that_no_merge_patch_makes_is_named),
        cmocka_unit_test(random_merges_agree_with_the_rfcs_algorithm),
        cmocka_unit_test(random_differences_lead_from_one_to_the_other),
        cmocka_unit_test(large_objects_are_merged_fast),
        cmocka_unit_test(the_deepest_objects_are_merged),
        cmocka_unit_test(failing_allocations_leave_the_inputs_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
