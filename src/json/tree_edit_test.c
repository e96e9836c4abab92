/* tree_edit_test.c - trees are counted, measured and copied. */
#include "test_support.h"

#include <errno.h>

#include "base/buf.h"
#include "doc_testing.h"
#include "equal.h"
#include "tree_edit.h"
#include "write.h"

static struct vg_json_measure measure(const struct vg_json *v)
{
    struct vg_json_measure m;
    assert_int_equal(vg_json_measure(v, &m), 0);
    return m;
}

static void nodes_and_depth_are_counted(void **state)
{
    static const struct {
        const char *text;
        uint32_t nodes, depth;
    } rows[] = {
        {"1", 1, 0},  {"'x'", 1, 0},         {"[]", 1, 1},
        {"{}", 1, 1}, {"[1,[2,3],4]", 6, 2}, {"{'a':{'b':{'c':[]}},'d':1}", 5, 4},
    };
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        VG_AUTO(arena) a = {0};
        struct vg_json_measure m = measure(vg_doc(&a, rows[i].text));
        assert_int_equal(m.nodes, rows[i].nodes);
        assert_int_equal(m.depth, rows[i].depth);
    }
}

static void the_bytes_measured_are_those_of_the_shortest_text(void **state)
{
    static const char *const rows[] = {
        "null",
        "true",
        "false",
        "-1.50e+3",
        "''",
        "[]",
        "{}",
        "[1,2]",
        "{'a':1,'b':[]}",
        "'\\u0000\\u001f\\b\\f\\n\\r\\t\\\\\\u0022/\\u007f\303\244'",
        "{'\\n\\u0001':'\\\\','':[null,{'\\u0022':true}]}",
    };
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        VG_AUTO(arena) a = {0};
        VG_AUTO(buf) b = {0};
        struct vg_json *v = vg_doc(&a, rows[i]);
        assert_int_equal(vg_json_write(&b, v, 0), 0);
        assert_int_equal(measure(v).bytes, b.n);
    }
}

static void a_copy_is_equal_and_from_no_source(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    struct vg_json *v = vg_doc(&a, "{'a':[1,{'b':'c'}],'d':null}"), copy;
    assert_int_equal(vg_json_copy(&a, v, &copy), 0);
    assert_int_equal(vg_json_equal(v, &copy), 1);
    VG_AUTO(json_walk) w;
    vg_json_walk_init(&w, &copy);
    while (vg_json_walk_next(&w) > 0) {
        assert_int_equal(w.node->begin | w.node->end, 0);
        assert_int_equal(w.member ? w.member->key_begin : 0, 0);
    }
}

static void the_stack_ends_at_the_depth_limit(void **state)
{
    (void)state;
    void *frames = NULL;
    uint32_t cap = 0, n = 0;
    int r;
    while ((r = vg_json_stack_room(&frames, &cap, n, sizeof(char))) == 0)
        n++;
    assert_int_equal(r, VIGIL_E_JSON_DEPTH);
    assert_int_equal(n, VG_JSON_DEPTH_MAX);
    vg_free(frames);
}

static void failing_allocations_are_told(void **state)
{
    (void)state;
    VG_AUTO(arena) mine = {0};
    struct vg_json *v = vg_doc(&mine, "{'a':[1,{'b':'c'}],'d':null}");
    VG_ALLOC_FAIL_LOOP (n) {
        VG_AUTO(arena) a;
        struct vg_json obj = vg_json_object();
        struct vg_json_measure m;
        vg_arena_init(&a, 32, 0);
        int r = vg_json_measure(v, &m);
        if (r == 0)
            r = vg_json_object_add_copy(&a, &obj, VG_SLICE_LIT("key"), v);
        assert_int_equal(r, vg_test_alloc_failed() ? -ENOMEM : 0);
        assert_int_equal(obj.n, r == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_and_depth_are_counted),
        cmocka_unit_test(the_bytes_measured_are_those_of_the_shortest_text),
        cmocka_unit_test(a_copy_is_equal_and_from_no_source),
        cmocka_unit_test(the_stack_ends_at_the_depth_limit),
        cmocka_unit_test(failing_allocations_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
