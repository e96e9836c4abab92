/* strategic_test.c - strategic merge over a small schema; real ones are tested with the kinds. */
#include "test_support.h"

#include <errno.h>

#include "base/buf.h"
#include "equal.h"
#include "strategic.h"
#include "write.h"

static const struct vg_merge_schema port = {(const struct vg_merge_field[]){{0}}};
static const struct vg_merge_field item_fields[] = {
    {"ports", VG_MERGE_LIST, "port", &port},
    {0},
};
static const struct vg_merge_schema item = {item_fields};
static const struct vg_merge_field root_fields[] = {
    {"items", VG_MERGE_LIST, "name", &item},
    {"set", VG_MERGE_LIST, NULL, NULL},
    {"keyless", VG_MERGE_LIST, NULL, NULL},
    {"whole", VG_MERGE_REPLACE, NULL, NULL},
    {0},
};
static const struct vg_merge_schema root = {root_fields};

static int apply(struct vg_arena *a, const char *doc, const char *patch, struct vg_json *ret,
                 struct vg_status *st)
{
    struct vg_json *d, *p;
    assert_int_equal(vg_json_parse(a, vg_slice_str(doc), NULL, &d, NULL), 0);
    assert_int_equal(vg_json_parse(a, vg_slice_str(patch), NULL, &p, NULL), 0);
    return vg_json_strategic_apply(a, d, p, &root, ret, st);
}

static void assert_gives(const char *doc, const char *patch, const char *want)
{
    VG_AUTO(arena) a = {0};
    VG_AUTO(buf) out = {0};
    struct vg_json v;
    struct vg_status st = {0};
    if (apply(&a, doc, patch, &v, &st) < 0)
        fail_msg("%s: %s", patch, st.message);
    assert_int_equal(vg_json_write(&out, &v, 0), 0);
    vg_assert_slice_equal(vg_buf_slice(&out), vg_slice_str(want));
}

static void assert_refused(const char *doc, const char *patch, int err, const char *message)
{
    VG_AUTO(arena) a = {0};
    struct vg_json v;
    struct vg_status st = {0};
    assert_int_equal(apply(&a, doc, patch, &v, &st), err);
    assert_string_equal(st.message, message);
}

#define TWO "{\"items\":[{\"name\":\"a\",\"v\":1},{\"name\":\"b\",\"v\":2}]}"

static void objects_merge_and_nulls_remove(void **state)
{
    (void)state;
    assert_gives("{\"a\":{\"x\":1,\"y\":2},\"b\":1}", "{\"a\":{\"x\":null,\"z\":3},\"b\":null}",
                 "{\"a\":{\"y\":2,\"z\":3}}");
    assert_gives("{\"a\":1}", "{\"n\":{\"x\":null,\"y\":[{\"z\":null}]}}",
                 "{\"a\":1,\"n\":{\"y\":[{}]}}");
    assert_gives("{\"a\":1}", "null", "{\"a\":1}");
    assert_gives("{\"a\":[1,2]}", "{\"a\":[3]}", "{\"a\":[3]}");
    assert_gives("{\"whole\":{\"x\":1}}", "{\"whole\":{\"y\":2}}", "{\"whole\":{\"y\":2}}");
    assert_gives("{\"a\":{\"x\":1}}", "{\"a\":5}", "{\"a\":5}");
}

static void items_merge_by_key(void **state)
{
    (void)state;
    assert_gives(TWO, "{\"items\":[{\"name\":\"b\",\"v\":9}]}",
                 "{\"items\":[{\"name\":\"a\",\"v\":1},{\"name\":\"b\",\"v\":9}]}");
    assert_gives(
        TWO, "{\"items\":[{\"name\":\"c\"}]}",
        "{\"items\":[{\"name\":\"c\"},{\"name\":\"a\",\"v\":1},{\"name\":\"b\",\"v\":2}]}");
    assert_gives(
        "{\"items\":[{\"name\":\"a\",\"ports\":[{\"port\":1,\"n\":\"x\"}]}]}",
        "{\"items\":[{\"name\":\"a\",\"ports\":[{\"port\":1,\"n\":\"y\"},{\"port\":2}]}]}",
        "{\"items\":[{\"name\":\"a\",\"ports\":[{\"port\":1,\"n\":\"y\"},{\"port\":2}]}]}");
    assert_refused(TWO, "{\"items\":[{\"v\":1}]}", VIGIL_E_INTERNAL,
                   "map: map[v:1] does not contain declared merge key: name");
    assert_refused(TWO, "{\"items\":[\"x\"]}", VIGIL_E_INTERNAL,
                   "list element types are not identical: [[map[name:a v:1] map[name:b v:2]] [x]]");
    assert_refused("{\"items\":[[1]]}", "{\"items\":[[2]]}", VIGIL_E_PATCH_FAILED,
                   "lists of lists are not supported");
    assert_refused("{\"keyless\":[{}]}", "{\"keyless\":[{}]}", VIGIL_E_INTERNAL,
                   "cannot merge lists without merge key for struct");
}

static void scalars_merge_as_a_set(void **state)
{
    (void)state;
    assert_gives("{\"set\":[\"a\",\"b\"]}", "{\"set\":[\"b\",\"c\"]}",
                 "{\"set\":[\"a\",\"b\",\"c\"]}");
    assert_gives("{\"set\":[\"a\",\"b\"]}", "{\"$deleteFromPrimitiveList/set\":[\"a\",\"x\"]}",
                 "{\"set\":[\"b\"]}");
    assert_gives("{}", "{\"$deleteFromPrimitiveList/set\":[\"a\"]}", "{}");
    assert_refused("{}", "{\"$deleteFromPrimitiveList\":[]}", VIGIL_E_PATCH_INVALID,
                   "invalid patch format of primitive list");
}

static void directives_delete_and_replace(void **state)
{
    (void)state;
    assert_gives(TWO, "{\"items\":[{\"$patch\":\"delete\",\"name\":\"a\"}]}",
                 "{\"items\":[{\"name\":\"b\",\"v\":2}]}");
    assert_gives(TWO, "{\"items\":[{\"$patch\":\"replace\"},{\"name\":\"z\"}]}",
                 "{\"items\":[{\"name\":\"z\"}]}");
    assert_gives("{\"a\":{\"x\":1}}", "{\"a\":{\"$patch\":\"replace\",\"y\":1}}",
                 "{\"a\":{\"y\":1}}");
    assert_gives("{\"a\":{\"x\":1}}", "{\"a\":{\"$patch\":\"delete\"}}", "{\"a\":{}}");
    assert_gives("{}", "{\"a\":{\"$patch\":\"delete\"}}", "{}");
    assert_refused(TWO, "{\"items\":[{\"$patch\":\"merge\"}]}", VIGIL_E_INTERNAL,
                   "merging lists cannot yet be specified in the patch");
    assert_refused(TWO, "{\"items\":[{\"$patch\":\"x\",\"name\":\"a\"}]}", VIGIL_E_INTERNAL,
                   "unknown patch type: x in map: map[$patch:x name:a]");
    assert_refused(TWO, "{\"items\":[{\"$patch\":\"delete\"}]}", VIGIL_E_INTERNAL,
                   "map: map[$patch:delete] does not contain declared merge key: name");
}

static void only_retained_keys_stay(void **state)
{
    (void)state;
    assert_gives("{\"a\":{\"x\":1,\"y\":2}}", "{\"a\":{\"$retainKeys\":[\"y\",\"z\"],\"z\":3}}",
                 "{\"a\":{\"y\":2,\"z\":3}}");
    assert_refused("{\"a\":{}}", "{\"a\":{\"$retainKeys\":[\"y\"],\"z\":3}}", VIGIL_E_PATCH_INVALID,
                   "invalid patch format of retainKeys");
    assert_refused("{\"a\":{}}", "{\"a\":{\"$retainKeys\":\"y\"}}", VIGIL_E_PATCH_INVALID,
                   "invalid patch format of retainKeys");
}

static void order_can_be_set(void **state)
{
    (void)state;
    assert_gives(TWO, "{\"$setElementOrder/items\":[{\"name\":\"b\"},{\"name\":\"a\"}]}",
                 "{\"items\":[{\"name\":\"b\",\"v\":2},{\"name\":\"a\",\"v\":1}]}");
    assert_gives("{\"set\":[\"a\",\"b\",\"c\"]}",
                 "{\"$setElementOrder/set\":[\"d\",\"a\"],\"set\":[\"d\"]}",
                 "{\"set\":[\"d\",\"a\",\"b\",\"c\"]}");
    assert_refused(TWO,
                   "{\"$setElementOrder/items\":[{\"name\":\"a\"}],\"items\":[{\"name\":\"b\"}]}",
                   VIGIL_E_INTERNAL,
                   "The order in patch list:\n[map[name:b]]\n doesn't match $setElementOrder "
                   "list:\n[map[name:a]]\n");
    assert_refused(TWO, "{\"$setElementOrder/items\":\"x\"}", VIGIL_E_INTERNAL,
                   "expected a []interface {}, but received a string");
    assert_refused(TWO, "{\"$setElementOrder\":[]}", VIGIL_E_PATCH_INVALID,
                   "invalid patch format of setElementOrder list");
}

static void other_patches_are_refused(void **state)
{
    (void)state;
    assert_refused("{}", "[1]", VIGIL_E_PATCH_INVALID,
                   "json: cannot unmarshal array into Go value of type map[string]interface {}");
}

static void inputs_stay_as_they_are(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    struct vg_json *d, *p, d_before, p_before, v;
    struct vg_slice patch = VG_SLICE_LIT("{\"items\":[{\"name\":\"a\",\"v\":null},{\"$patch\":"
                                         "\"delete\",\"name\":\"b\"}],\"$setElementOrder/items\":["
                                         "{\"name\":\"a\"}]}");
    assert_int_equal(vg_json_parse(&a, VG_SLICE_LIT(TWO), NULL, &d, NULL), 0);
    assert_int_equal(vg_json_parse(&a, patch, NULL, &p, NULL), 0);
    assert_int_equal(vg_json_clone(&a, d, &d_before), 0);
    assert_int_equal(vg_json_clone(&a, p, &p_before), 0);
    assert_int_equal(vg_json_strategic_apply(&a, d, p, &root, &v, NULL), 0);
    assert_int_equal(vg_json_equal(d, &d_before), 1);
    assert_int_equal(vg_json_equal(p, &p_before), 1);
}

/* A set of 4,000 with 4,000 others would take 32 million comparisons and more. */
static void work_is_limited(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    VG_AUTO(buf) doc = {0};
    VG_AUTO(buf) patch = {0};
    struct vg_json *d, *p, v;
    struct vg_status st = {0};
    for (int i = 0; i < 4000; i++) {
        assert_int_equal(vg_buf_printf(&doc, "%s%d", i ? "," : "{\"set\":[", i), 0);
        assert_int_equal(vg_buf_printf(&patch, "%s%d", i ? "," : "{\"set\":[", i + 4000), 0);
    }
    assert_int_equal(vg_buf_printf(&doc, "]}"), 0);
    assert_int_equal(vg_buf_printf(&patch, "]}"), 0);
    assert_int_equal(vg_json_parse(&a, vg_buf_slice(&doc), NULL, &d, NULL), 0);
    assert_int_equal(vg_json_parse(&a, vg_buf_slice(&patch), NULL, &p, NULL), 0);
    assert_int_equal(vg_json_strategic_apply(&a, d, p, &root, &v, &st), VIGIL_E_TOO_LARGE);
}

static void memory_may_fail_anywhere(void **state)
{
    (void)state;
    VG_AUTO(arena) in = {0};
    struct vg_json *d, *p;
    struct vg_slice patch = VG_SLICE_LIT(
        "{\"$setElementOrder/items\":[{\"name\":\"b\"},{\"name\":\"c\"}],\"items\":[{\"name\":"
        "\"b\",\"ports\":[{\"port\":1}]},{\"name\":\"c\"}],\"set\":[\"x\"],\"n\":{\"m\":1}}");
    assert_int_equal(vg_json_parse(&in, VG_SLICE_LIT(TWO), NULL, &d, NULL), 0);
    assert_int_equal(vg_json_parse(&in, patch, NULL, &p, NULL), 0);
    VG_ALLOC_FAIL_LOOP (n) {
        VG_AUTO(arena) a = {.first = 64};
        struct vg_json v;
        int r = vg_json_strategic_apply(&a, d, p, &root, &v, NULL);
        assert_int_equal(r, vg_test_alloc_failed() ? -ENOMEM : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_merge_and_nulls_remove),
        cmocka_unit_test(items_merge_by_key),
        cmocka_unit_test(scalars_merge_as_a_set),
        cmocka_unit_test(directives_delete_and_replace),
        cmocka_unit_test(only_retained_keys_stay),
        cmocka_unit_test(order_can_be_set),
        cmocka_unit_test(other_patches_are_refused),
        cmocka_unit_test(inputs_stay_as_they_are),
        cmocka_unit_test(work_is_limited),
        cmocka_unit_test(memory_may_fail_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
