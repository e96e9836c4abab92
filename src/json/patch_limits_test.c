/* patch_limits_test.c - what bounds a JSON Patch, and what it leaves behind when it fails. */
#include "test_support.h"

#include <errno.h>
#include <stdio.h>

#include "base/buf.h"
#include "doc_testing.h"
#include "equal.h"
#include "patch.h"
#include "tree_edit.h"

static int apply(struct vg_arena *a, const char *doc, const char *patch,
                 const struct vg_json_patch_opts *opts, struct vg_json *ret, struct vg_status *st)
{
    return vg_json_patch_apply(a, vg_doc(a, doc), vg_doc(a, patch), opts, ret, st);
}

/* "[op,op,...]" n times; NUL-terminated. */
static const char *repeat(struct vg_buf *b, const char *op, uint32_t n)
{
    assert_int_equal(vg_buf_append_byte(b, '['), 0);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(vg_buf_printf(b, "%s%s", i ? "," : "", op), 0);
    assert_int_equal(vg_buf_append(b, "]", 2), 0);
    return b->p;
}

static void more_operations_than_allowed_are_too_large(void **state)
{
    static const struct vg_json_patch_opts two = {.max_ops = 2};
    (void)state;
    VG_AUTO(arena) a = {0};
    VG_AUTO(buf) most = {0};
    VG_AUTO(buf) more = {0};
    struct vg_json v;
    struct vg_status st;
    const char *op = "{'op':'test','path':'','value':1}";
    repeat(&most, op, VG_JSON_PATCH_OPS_DEFAULT);
    repeat(&more, op, VG_JSON_PATCH_OPS_DEFAULT + 1);
    assert_int_equal(apply(&a, "1", most.p, NULL, &v, &st), 0);
    assert_int_equal(apply(&a, "1", more.p, NULL, &v, &st), VIGIL_E_TOO_LARGE);
    assert_string_equal(st.message,
                        "a JSON patch may have at most 10000 operations, this has 10001");
    assert_int_equal(apply(&a, "1", more.p, &two, &v, &st), VIGIL_E_TOO_LARGE);
}

/* Each operation doubles the document: a hundred of them would not fit into the world. */
static void a_copy_bomb_is_stopped(void **state)
{
    static const struct vg_json_patch_opts wide = {.max_depth = VG_JSON_DEPTH_MAX};
    (void)state;
    VG_AUTO(arena) a = {0};
    VG_AUTO(buf) bomb = {0};
    VG_AUTO(buf) flat = {0};
    struct vg_json v;
    struct vg_status st;
    repeat(&bomb, "{'op':'copy','from':'','path':'/-'}", 100);
    assert_int_equal(apply(&a, "[1,2,3]", bomb.p, &wide, &v, &st), VIGIL_E_TOO_LARGE);
    assert_non_null(strstr(st.message, "copy operations of the patch add too much"));
    assert_in_range(a.used, 0, 200u << 20);
    repeat(&flat, "{'op':'copy','from':'/0','path':'/-'}", 100);
    assert_int_equal(apply(&a, "['0123456789']", flat.p, NULL, &v, &st), 0);
    const struct vg_json_patch_opts tight = {.max_copy_bytes = 1200},
                                    less = {.max_copy_bytes = 1199};
    assert_int_equal(apply(&a, "['0123456789']", flat.p, &tight, &v, &st), 0);
    assert_int_equal(apply(&a, "['0123456789']", flat.p, &less, &v, &st), VIGIL_E_TOO_LARGE);
}

static void a_result_deeper_than_allowed_is_refused(void **state)
{
    static const struct vg_json_patch_opts three = {.max_depth = 3};
    static const struct {
        const char *doc, *patch;
        int r;
    } rows[] = {
        {"{'a':{}}", "[{'op':'add','path':'/a/b','value':[]}]", 0},
        {"{'a':{}}", "[{'op':'add','path':'/a/b','value':[[]]}]", VIGIL_E_JSON_DEPTH},
        {"{'a':[1]}", "[{'op':'replace','path':'/a/0','value':{}}]", 0},
        {"{'a':[1]}", "[{'op':'replace','path':'/a/0','value':{'a':{}}}]", VIGIL_E_JSON_DEPTH},
        {"{'a':{},'b':{}}", "[{'op':'move','from':'/a','path':'/b/c'}]", 0},
        {"{'a':{'x':[]},'b':{}}", "[{'op':'move','from':'/a','path':'/b/c'}]", VIGIL_E_JSON_DEPTH},
        {"{'a':{'x':[]},'b':{}}", "[{'op':'copy','from':'/a','path':'/c'}]", 0},
        {"{'a':{'x':[]},'b':{}}", "[{'op':'copy','from':'','path':'/c'}]", VIGIL_E_JSON_DEPTH},
    };
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        VG_AUTO(arena) a = {0};
        struct vg_json v;
        int r = apply(&a, rows[i].doc, rows[i].patch, &three, &v, NULL);
        if (r != rows[i].r)
            fail_msg("%s on %s: %s", rows[i].patch, rows[i].doc, vg_err_name(r));
    }
}

static void nesting_one_level_per_operation_ends_at_the_limit(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    VG_AUTO(buf) b = {0};
    struct vg_json v;
    struct vg_json_measure m;
    repeat(&b, "{'op':'copy','from':'','path':'/0'},{'op':'remove','path':'/-1'}",
           VG_JSON_DEPTH_DEFAULT - 1);
    assert_int_equal(apply(&a, "[1]", b.p, NULL, &v, NULL), 0);
    assert_int_equal(vg_json_measure(&v, &m), 0);
    assert_int_equal(m.depth, VG_JSON_DEPTH_DEFAULT);
    vg_buf_clear(&b);
    repeat(&b, "{'op':'copy','from':'','path':'/0'},{'op':'remove','path':'/-1'}",
           VG_JSON_DEPTH_DEFAULT);
    assert_int_equal(apply(&a, "[1]", b.p, NULL, &v, NULL), VIGIL_E_JSON_DEPTH);
}

/* Ten thousand insertions in front of a long array: cheap to write, expensive to do. */
static void work_is_bounded(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    VG_AUTO(buf) doc = {0};
    VG_AUTO(buf) patch = {0};
    struct vg_json v;
    struct vg_status st;
    repeat(&doc, "1", 300000);
    repeat(&patch, "{'op':'add','path':'/0','value':1}", 10000);
    assert_int_equal(apply(&a, doc.p, patch.p, NULL, &v, &st), VIGIL_E_TOO_LARGE);
    assert_non_null(strstr(st.message, "too many steps"));
    const struct vg_json_patch_opts few = {.max_steps = 10};
    assert_int_equal(apply(&a, "[1]", patch.p, &few, &v, NULL), VIGIL_E_TOO_LARGE);
}

/* A wide object costs its width in every operation that looks into it. */
static void each_kind_of_work_counts(void **state)
{
    static const char doc[] = "{'a':1,'b':2,'c':3,'d':4,'e':[1,2,3,4,5,6]}";
    static const struct {
        const char *patch;
        uint64_t steps; /* what it takes */
    } rows[] = {
        {"[{'op':'test','path':'/a','value':1}]", 5},
        {"[{'op':'add','path':'/a','value':1}]", 6},
        {"[{'op':'add','path':'/e/0','value':1}]", 12},
        {"[{'op':'add','path':'/e/6','value':1}]", 6},
        {"[{'op':'add','path':'','value':[1,2,3]}]", 4},
        {"[{'op':'remove','path':'/a'}]", 10},
        {"[{'op':'copy','from':'/e','path':'/f'}]", 17},
        {"[{'op':'move','from':'/a','path':'/e/-'}]", 15},
    };
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        VG_AUTO(arena) a = {0};
        struct vg_json v;
        for (uint64_t max = 1; max < rows[i].steps; max++) {
            const struct vg_json_patch_opts few = {.max_steps = max};
            assert_int_equal(apply(&a, doc, rows[i].patch, &few, &v, NULL), VIGIL_E_TOO_LARGE);
        }
        const struct vg_json_patch_opts enough = {.max_steps = rows[i].steps};
        if (apply(&a, doc, rows[i].patch, &enough, &v, NULL) != 0)
            fail_msg("%s takes more than %u steps", rows[i].patch, (unsigned)rows[i].steps);
    }
}

static void the_result_owes_nothing_to_its_sources(void **state)
{
    (void)state;
    VG_AUTO(arena) result = {0};
    struct vg_arena sources = {0};
    struct vg_json v;
    struct vg_json *doc = vg_doc(&sources, "{'keep':['text',1.50],'b':{'c':true}}");
    struct vg_json *patch = vg_doc(&sources, "[{'op':'add','path':'/new key','value':{'k':'v'}},"
                                             "{'op':'copy','from':'/keep','path':'/b/d'}]");
    assert_int_equal(vg_json_patch_apply(&result, doc, patch, NULL, &v, NULL), 0);
    vg_arena_done(&sources); /* ASan sees every use of it from here on */
    struct vg_json *want = vg_doc(&result, "{'keep':['text',1.5],'b':{'c':true,'d':['text',1.5]},"
                                           "'new key':{'k':'v'}}");
    assert_int_equal(vg_json_equal(&v, want), 1);
    VG_AUTO(json_walk) w;
    vg_json_walk_init(&w, &v);
    while (vg_json_walk_next(&w) > 0) {
        assert_int_equal(w.node->begin | w.node->end, 0);
        assert_int_equal(w.member ? w.member->key_begin : 0, 0);
    }
}

static void a_failing_allocation_leaves_the_document_alone(void **state)
{
    static const char doc_text[] = "{'a':[1,2,{'b':'c'}],'d':{'e':null,'f':'g'}}";
    static const char patch_text[] =
        "[{'op':'add','path':'/h','value':[[1],[2]]},{'op':'copy','from':'/a','path':'/d/x~1y'},"
        "{'op':'move','from':'/d/f','path':'/a/-'},{'op':'remove','path':'/a/0'},"
        "{'op':'replace','path':'/d/e','value':{'q':'r'}},"
        "{'op':'test','path':'/d/e','value':{'q':'r'}}]";
    (void)state;
    VG_AUTO(arena) mine = {0};
    struct vg_json *doc = vg_doc(&mine, doc_text), *before = vg_doc(&mine, doc_text);
    struct vg_json *patch = vg_doc(&mine, patch_text);
    VG_ALLOC_FAIL_LOOP (n) {
        VG_AUTO(arena) a;
        struct vg_json v = vg_json_bool(true);
        struct vg_status st = {0};
        vg_arena_init(&a, 64, 0); /* small chunks: many allocations */
        int r = vg_json_patch_apply(&a, doc, patch, NULL, &v, &st);
        if (vg_test_alloc_failed()) {
            assert_int_equal(r, -ENOMEM);
            assert_int_equal(st.err, -ENOMEM);
            assert_true(vg_json_is_true(&v));
        } else {
            assert_int_equal(r, 0);
        }
        assert_int_equal(vg_json_equal(doc, before), 1);
    }
}

static void an_arena_that_is_full_is_out_of_memory(void **state)
{
    (void)state;
    VG_AUTO(arena) mine = {0};
    VG_AUTO(arena) a;
    struct vg_json v;
    vg_arena_init(&a, 64, 128);
    assert_int_equal(vg_json_patch_apply(&a, vg_doc(&mine, "[1,2,3,4,5,6,7,8]"),
                                         vg_doc(&mine, "[]"), NULL, &v, NULL),
                     -ENOMEM);
}

/* ---- random patches ---- */

/* A pointer of up to three tokens, most of which lead somewhere. */
static struct vg_json random_pointer(struct vg_random_doc *d)
{
    static const char *const tokens[] = {"/a", "/b", "/c", "/d", "/", "/x~1y", "/0", "/1", "/-"};
    VG_AUTO(buf) b = {0};
    struct vg_json v;
    for (uint64_t n = vg_rng_below(d->rng, 4); n > 0; n--) {
        const char *t = tokens[vg_rng_below(d->rng, VG_ARRAY_LEN(tokens))];
        assert_int_equal(vg_buf_append(&b, t, strlen(t)), 0);
    }
    assert_int_equal(vg_json_make_string(d->arena, vg_slice(b.n ? b.p : "", b.n), &v), 0);
    return v;
}

static struct vg_json random_op(struct vg_random_doc *d)
{
    static const char *const kinds[] = {"add", "remove", "replace", "move", "copy", "test"};
    struct vg_json op = vg_json_object();
    const char *kind = kinds[vg_rng_below(d->rng, VG_ARRAY_LEN(kinds))];
    struct vg_json v = vg_random_value(d, 2), name = vg_json_string_ref(vg_slice_str(kind));
    struct vg_arena *a = d->arena;
    assert_int_equal(vg_json_object_add(a, &op, VG_SLICE_LIT("op"), name), 0);
    assert_int_equal(vg_json_object_add(a, &op, VG_SLICE_LIT("path"), random_pointer(d)), 0);
    assert_int_equal(vg_json_object_add(a, &op, VG_SLICE_LIT("from"), random_pointer(d)), 0);
    assert_int_equal(vg_json_object_add(a, &op, VG_SLICE_LIT("value"), v), 0);
    return op;
}

/* One patch at once gives what its operations give one by one, or fails where they do. */
static void random_patches_are_atomic(void **state)
{
    struct vg_rng rng;
    uint32_t applied = 0, failed = 0;
    (void)state;
    vg_rng_seed(&rng, vg_test_seed());
    for (int round = 0; round < (vg_test_is_long() ? 500000 : 10000); round++) {
        VG_AUTO(arena) a = {0};
        struct vg_random_doc d = {&a, &rng, true, 4};
        struct vg_json doc = vg_random_object(&d, 3), before, whole, step, patch = vg_json_array();
        assert_int_equal(vg_json_clone(&a, &doc, &before), 0);
        int r = 0;
        step = doc;
        for (uint64_t n = vg_rng_below(&rng, 4) + 1; n > 0; n--) {
            struct vg_json op = random_op(&d), one = vg_json_array();
            assert_int_equal(vg_json_array_push(&a, &patch, op), 0);
            assert_int_equal(vg_json_array_push(&a, &one, op), 0);
            r = r == 0 ? vg_json_patch_apply(&a, &step, &one, NULL, &step, NULL) : r;
        }
        int all = vg_json_patch_apply(&a, &doc, &patch, NULL, &whole, NULL);
        assert_true(all == r || all == VIGIL_E_PATCH_INVALID);
        assert_int_equal(vg_json_equal(&doc, &before), 1);
        if (all == 0)
            assert_int_equal(vg_json_equal(&whole, &step), 1);
        applied += all == 0;
        failed += all != 0;
    }
    assert_in_range(applied, 500, UINT32_MAX);
    assert_in_range(failed, 500, UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_operations_than_allowed_are_too_large),
        cmocka_unit_test(a_copy_bomb_is_stopped),
        cmocka_unit_test(a_result_deeper_than_allowed_is_refused),
        cmocka_unit_test(nesting_one_level_per_operation_ends_at_the_limit),
        cmocka_unit_test(work_is_bounded),
        cmocka_unit_test(each_kind_of_work_counts),
        cmocka_unit_test(the_result_owes_nothing_to_its_sources),
        cmocka_unit_test(a_failing_allocation_leaves_the_document_alone),
        cmocka_unit_test(an_arena_that_is_full_is_out_of_memory),
        cmocka_unit_test(random_patches_are_atomic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
