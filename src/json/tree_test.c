/* tree_test.c - reading, building, cloning and walking trees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "json/json.h"
#include "json/write.h"

static struct vg_json *must_parse(struct vg_arena *a, struct vg_slice text)
{
    struct vg_json *root = NULL;
    assert_int_equal(vg_json_parse(a, text, NULL, &root, NULL), 0);
    return root;
}

static void assert_reads(const struct vg_json *v, const char *want)
{
    VG_AUTO(buf) out = {0};
    assert_int_equal(vg_json_write(&out, v, 0), 0);
    assert_int_equal(vg_buf_append_byte(&out, '\0'), 0);
    assert_string_equal(out.p, want);
}

/* ---- reading ---- */

static void lookups_of_what_is_not_there_give_null_and_chain(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    struct vg_json *o = must_parse(&a, VG_SLICE_LIT("{\"a\":{\"b\":[1,2]},\"s\":\"x\"}"));
    assert_non_null(vg_json_at(vg_json_get_str(vg_json_get_str(o, "a"), "b"), 1));
    assert_null(vg_json_at(vg_json_get_str(vg_json_get_str(o, "a"), "b"), 2));
    assert_null(vg_json_get_str(vg_json_get_str(o, "x"), "b"));
    assert_null(vg_json_get_str(vg_json_get_str(o, "s"), "b"));
    assert_null(vg_json_at(o, 0));
    assert_null(vg_json_get(NULL, VG_SLICE_LIT("a")));
    assert_null(vg_json_member(o, VG_SLICE_LIT("A")));
}

static void predicates_and_texts_answer_for_every_type(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    struct vg_json *v = must_parse(&a, VG_SLICE_LIT("[null,true,false,1,\"s\",[],{}]"));
    for (size_t i = 0; i < v->n; i++)
        assert_int_equal(vg_json_is_true(vg_json_at(v, i)), i == 1);
    assert_int_equal(vg_json_text(vg_json_at(v, 0)).n, 0);
    assert_int_equal(vg_json_text(vg_json_at(v, 3)).n, 1);
    assert_int_equal(vg_json_text(NULL).n, 0);
    assert_false(vg_json_is(NULL, VG_JSON_NULL));
    assert_string_equal(vg_json_type_name(VG_JSON_OBJECT), "object");
    assert_string_equal(vg_json_type_name(VG_JSON_NULL), "null");
    assert_string_equal(vg_json_type_name((enum vg_json_type)99), "unknown");
}

static void loops_over_members_and_items_do_nothing_on_other_types(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    struct vg_json *v = must_parse(&a, VG_SLICE_LIT("[{\"a\":1,\"b\":2},[3,4,5],6,{},[]]"));
    size_t members = 0, items = 0;
    VG_JSON_FOREACH_ITEM (it, v) {
        VG_JSON_FOREACH_MEMBER (m, it) {
            members += m->key_n;
        }
        VG_JSON_FOREACH_ITEM (inner, it) {
            items += inner->n;
        }
    }
    assert_int_equal(members, 2);
    assert_int_equal(items, 3);
}

/* ---- building ---- */

static void a_tree_built_by_hand_reads_as_told(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    struct vg_json o = vg_json_object(), arr = vg_json_array(), v;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(vg_json_make_int(&a, i - 5, &v), 0);
        assert_int_equal(vg_json_array_push(&a, &arr, v), 0);
    }
    assert_int_equal(vg_json_object_set(&a, &o, VG_SLICE_LIT("arr"), arr), 0);
    assert_int_equal(vg_json_object_set(&a, &o, VG_SLICE_LIT("t"), vg_json_bool(true)), 0);
    assert_int_equal(vg_json_object_set(&a, &o, VG_SLICE_LIT("n"), vg_json_null()), 0);
    assert_int_equal(vg_json_make_string(&a, VG_SLICE_LIT("x\"y"), &v), 0);
    assert_int_equal(vg_json_object_set(&a, &o, VG_SLICE_LIT("s"), v), 0);
    assert_int_equal(vg_json_object_set(&a, &o, VG_SLICE_LIT("t"), vg_json_bool(false)), 0);
    assert_int_equal(vg_json_make_uint(&a, UINT64_MAX, &v), 0);
    assert_int_equal(vg_json_object_add(&a, &o, VG_SLICE_LIT(""), v), 0);
    assert_reads(&o, "{\"arr\":[-5,-4,-3,-2,-1,0,1,2,3,4],\"t\":false,\"n\":null,\"s\":\"x\\\"y\","
                     "\"\":18446744073709551615}");
}

static void parsed_containers_can_grow_and_shrink(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    struct vg_json *o = must_parse(&a, VG_SLICE_LIT("{\"a\":[1,2,3],\"b\":0,\"c\":0}"));
    struct vg_json *arr = vg_json_get_str(o, "a");
    assert_int_equal(vg_json_array_insert(&a, arr, 0, vg_json_null()), 0);
    assert_int_equal(vg_json_array_insert(&a, arr, 4, vg_json_bool(true)), 0);
    assert_int_equal(vg_json_array_insert(&a, arr, 2, vg_json_bool(false)), 0);
    assert_int_equal(vg_json_array_insert(&a, arr, 7, vg_json_null()), VIGIL_E_INVALID);
    assert_true(vg_json_array_remove(arr, 1));
    assert_false(vg_json_array_remove(arr, 5));
    assert_true(vg_json_object_remove(o, VG_SLICE_LIT("b")));
    assert_false(vg_json_object_remove(o, VG_SLICE_LIT("b")));
    assert_int_equal(vg_json_object_set(&a, o, VG_SLICE_LIT("d"), vg_json_null()), 0);
    assert_reads(o, "{\"a\":[null,false,2,3,true],\"c\":0,\"d\":null}");
    assert_true(vg_json_object_remove(o, VG_SLICE_LIT("d")));
    assert_true(vg_json_object_remove(o, VG_SLICE_LIT("a")));
    assert_true(vg_json_object_remove(o, VG_SLICE_LIT("c")));
    assert_reads(o, "{}");
}

static void changing_a_value_of_another_type_is_refused(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    struct vg_json s = vg_json_string_ref(VG_SLICE_LIT("x")), o = vg_json_object();
    assert_int_equal(vg_json_array_push(&a, &s, vg_json_null()), VIGIL_E_JSON_TYPE);
    assert_int_equal(vg_json_array_push(&a, &o, vg_json_null()), VIGIL_E_JSON_TYPE);
    assert_int_equal(vg_json_object_set(&a, &s, VG_SLICE_LIT("a"), s), VIGIL_E_JSON_TYPE);
    assert_false(vg_json_array_remove(&o, 0));
    assert_false(vg_json_object_remove(&s, VG_SLICE_LIT("a")));
}

static void a_clone_is_free_of_source_and_arena(void **state)
{
    (void)state;
    VG_AUTO(arena) b = {0};
    const struct vg_slice text = VG_SLICE_LIT("{\"k\\n\":[\"s\",1.50,{\"x\":[]},{}],\"e\":\"\"}");
    char *source = malloc(text.n);
    assert_non_null(source);
    memcpy(source, text.p, text.n);
    struct vg_json copy;
    {
        VG_AUTO(arena) a = {0};
        struct vg_json *o = must_parse(&a, vg_slice(source, text.n));
        assert_int_equal(vg_json_clone(&b, o, &copy), 0);
    }
    free(source);
    assert_reads(&copy, "{\"k\\n\":[\"s\",1.50,{\"x\":[]},{}],\"e\":\"\"}");
    assert_int_equal(copy.end, text.n);
}

static void changing_a_clone_leaves_the_original(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    struct vg_json *o = must_parse(&a, VG_SLICE_LIT("{\"a\":[1]}"));
    struct vg_json copy;
    assert_int_equal(vg_json_clone(&a, o, &copy), 0);
    assert_int_equal(vg_json_array_push(&a, vg_json_get_str(&copy, "a"), vg_json_null()), 0);
    vg_json_get_str(&copy, "a")->items[0] = vg_json_bool(true);
    assert_reads(o, "{\"a\":[1]}");
    assert_reads(&copy, "{\"a\":[true,null]}");
}

/* ---- walking ---- */

static void a_walk_sees_each_container_twice_and_each_leaf_once(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    VG_AUTO(buf) seen = {0};
    VG_AUTO(json_walk) w;
    struct vg_json *v = must_parse(&a, VG_SLICE_LIT("{\"a\":[1,{}],\"b\":2}"));
    vg_json_walk_init(&w, v);
    int r;
    while ((r = vg_json_walk_next(&w)) > 0)
        assert_int_equal(vg_buf_printf(&seen, "%c%.*s%u@%u ", w.leaving ? '-' : '+',
                                       w.member ? (int)w.member->key_n : 0,
                                       w.member ? w.member->key : "", w.index, w.depth),
                         0);
    assert_int_equal(r, 0);
    assert_string_equal(seen.p, "+0@0 +a0@1 +0@2 +1@2 -1@2 -a0@1 +b1@1 -0@0 ");
}

static void a_walk_passes_over_what_it_is_told_to_skip(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    VG_AUTO(json_walk) w;
    vg_json_walk_init(&w, must_parse(&a, VG_SLICE_LIT("[[1,2,3],4]")));
    int steps = 0;
    while (vg_json_walk_next(&w) > 0) {
        w.skip = w.depth == 1 && !w.leaving && vg_json_is(w.node, VG_JSON_ARRAY);
        steps++;
    }
    assert_int_equal(steps, 5);
}

static void the_deepest_allowed_tree_can_be_walked_cloned_and_written(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    VG_AUTO(buf) text = {0};
    for (uint32_t i = 0; i < VG_JSON_DEPTH_MAX; i++)
        assert_int_equal(vg_buf_append_byte(&text, '['), 0);
    for (uint32_t i = 0; i < VG_JSON_DEPTH_MAX; i++)
        assert_int_equal(vg_buf_append_byte(&text, ']'), 0);
    struct vg_json *root = NULL, copy;
    struct vg_json_opts o = {.max_depth = VG_JSON_DEPTH_MAX};
    assert_int_equal(vg_json_parse(&a, vg_buf_slice(&text), &o, &root, NULL), 0);
    assert_int_equal(vg_json_clone(&a, root, &copy), 0);
    VG_AUTO(buf) out = {0};
    assert_int_equal(vg_json_write(&out, &copy, 0), 0);
    assert_true(vg_slice_eq(vg_buf_slice(&out), vg_buf_slice(&text)));
    struct vg_json deeper = vg_json_array();
    assert_int_equal(vg_json_array_push(&a, &deeper, copy), 0);
    assert_int_equal(vg_json_write(&out, &deeper, 0), VIGIL_E_JSON_DEPTH);
    assert_int_equal(vg_json_clone(&a, &deeper, &copy), VIGIL_E_JSON_DEPTH);
    assert_true(vg_slice_eq(vg_buf_slice(&out), vg_buf_slice(&text)));
}

/* ---- failed allocations ---- */

static int build_once(struct vg_slice text, size_t arena_max)
{
    VG_AUTO(arena) a = {0};
    VG_AUTO(buf) out = {0};
    struct vg_json *root = NULL, copy, v;
    vg_arena_init(&a, 64, arena_max);
    int r = vg_json_parse(&a, text, NULL, &root, NULL);
    if (r == 0)
        r = vg_json_clone(&a, root, &copy);
    if (r == 0)
        r = vg_json_make_string(&a, VG_SLICE_LIT("made"), &v);
    for (int i = 0; r == 0 && i < 100; i++) {
        r = vg_json_make_double(&a, i * 0.5, &v);
        if (r == 0)
            r = vg_json_array_push(&a, vg_json_get_str(&copy, "a"), v);
        if (r == 0)
            r = vg_json_object_add(&a, &copy, VG_SLICE_LIT("k"), v);
    }
    return r < 0 ? r : vg_json_write(&out, &copy, VG_JSON_INDENT | VG_JSON_ESCAPE_HTML);
}

static void every_failed_allocation_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    struct vg_slice text = VG_SLICE_LIT("{\"a\":[1,[2,[3,\"x\\ty\"]]],\"b<\":\"\\u2028\"}");
    vg_alloc_fail_at(UINT64_MAX, 0); /* counts, and never fails */
    assert_int_equal(build_once(text, 0), 0);
    uint64_t total = vg_alloc_fail_at(0, 0);
    assert_true(total > 10);
    for (uint64_t n = 1; n <= total; n++) {
        vg_alloc_fail_at(n, 0);
        assert_int_equal(build_once(text, 0), -ENOMEM);
    }
    vg_alloc_fail_at(0, 0);
}

static void every_cap_of_the_arena_is_an_error_until_it_suffices(void **state)
{
    (void)state;
    struct vg_slice text = VG_SLICE_LIT("{\"a\":[1,[2,[3,\"x\\ty\"]]],\"b<\":\"\\u2028\"}");
    size_t cap = 1;
    int r;
    while ((r = build_once(text, cap)) == -ENOMEM)
        cap += 8;
    assert_int_equal(r, 0);
    assert_true(cap > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lookups_of_what_is_not_there_give_null_and_chain),
        cmocka_unit_test(predicates_and_texts_answer_for_every_type),
        cmocka_unit_test(loops_over_members_and_items_do_nothing_on_other_types),
        cmocka_unit_test(a_tree_built_by_hand_reads_as_told),
        cmocka_unit_test(parsed_containers_can_grow_and_shrink),
        cmocka_unit_test(changing_a_value_of_another_type_is_refused),
        cmocka_unit_test(a_clone_is_free_of_source_and_arena),
        cmocka_unit_test(changing_a_clone_leaves_the_original),
        cmocka_unit_test(a_walk_sees_each_container_twice_and_each_leaf_once),
        cmocka_unit_test(a_walk_passes_over_what_it_is_told_to_skip),
        cmocka_unit_test(the_deepest_allowed_tree_can_be_walked_cloned_and_written),
        cmocka_unit_test(every_failed_allocation_is_an_error_and_leaks_nothing),
        cmocka_unit_test(every_cap_of_the_arena_is_an_error_until_it_suffices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
