/* ctree_test.c - the tree of objects against a model, with snapshots held and dropped. */
#include "test_support.h"

#include "base/rng.h"
#include "client/object/client_object_testing.h"
#include "tree.h"

#define KEYS 600u

/* The model: the object of each key, or NULL; keys are k000..k599, so their order is that of the
 * array. */
struct model {
    const struct vigil_object *at[KEYS];
    size_t count;
};

static const struct vigil_object *objects[KEYS][3];

static struct vg_ctree_key key_of(unsigned i)
{
    return (struct vg_ctree_key){.key = vg_object_key(objects[i][0])};
}

static int make_objects(void **state)
{
    (void)state;
    for (unsigned i = 0; i < KEYS; i++)
        for (unsigned v = 0; v < 3; v++) {
            char name[16];
            snprintf(name, sizeof(name), "k%03u", i);
            objects[i][v] = vg_test_object(NULL, name, "1");
        }
    return 0;
}

static int drop_objects(void **state)
{
    (void)state;
    for (unsigned i = 0; i < KEYS; i++)
        for (unsigned v = 0; v < 3; v++) {
            assert_int_equal(atomic_load(&((struct vigil_object *)(uintptr_t)objects[i][v])->refs),
                             1); /* trees have given everything back */
            vigil_object_unref(objects[i][v]);
        }
    return 0;
}

static void check(const struct vg_ctree *t, const struct model *m)
{
    struct vg_ctree_cursor c;
    size_t rank = 0;
    vg_ctree_check(t);
    assert_int_equal(t->count, m->count);
    vg_ctree_seek(&c, t, NULL);
    for (unsigned i = 0; i < KEYS; i++) {
        struct vg_ctree_key key = key_of(i);
        const struct vg_ctree_entry *e = vg_ctree_find(t, &key);
        assert_ptr_equal(e ? e->o : NULL, m->at[i]);
        if (!m->at[i])
            continue;
        assert_ptr_equal(vg_ctree_next(&c), e);
        assert_ptr_equal(vg_ctree_at(t, rank++), e);
    }
    assert_null(vg_ctree_next(&c));
    assert_null(vg_ctree_at(t, rank));
}

static void change(struct vg_ctree *t, struct model *m, struct vg_ctree_pool *pool, unsigned i,
                   const struct vigil_object *o)
{
    assert_int_equal(vg_ctree_reserve(pool, t->levels, 1), 0);
    struct vg_ctree_key key = key_of(i);
    struct vg_ctree_entry e = {.o = vigil_object_ref(o)};
    struct vg_ctree_entry old = o ? vg_ctree_put(t, pool, e) : vg_ctree_remove(t, pool, &key);
    assert_ptr_equal(old.o, m->at[i]);
    vg_ctree_entry_unref(&old);
    m->count = m->count + (o != NULL) - (m->at[i] != NULL);
    m->at[i] = o;
}

static void it_equals_a_model_and_snapshots_stay(void **state)
{
    (void)state;
    struct vg_rng rng;
    vg_rng_seed(&rng, vg_test_seed());
    struct vg_ctree t = {0}, snaps[4] = {{0}};
    struct model now = {{0}, 0}, then[4] = {{{0}, 0}};
    struct vg_ctree_pool pool = {0};
    for (unsigned step = 0; step < 20000; step++) {
        /* Phases of growing and of shrinking, so that all levels come and go. */
        bool grows = (step / 2500) % 2 == 0;
        unsigned i = (unsigned)vg_rng_below(&rng, KEYS);
        bool puts = vg_rng_below(&rng, 10) < (grows ? 8 : 2);
        change(&t, &now, &pool, i, puts ? objects[i][vg_rng_below(&rng, 3)] : NULL);
        if (vg_rng_below(&rng, 50) == 0) {
            unsigned s = (unsigned)vg_rng_below(&rng, 4);
            check(&snaps[s], &then[s]);
            vg_ctree_done(&snaps[s]);
            snaps[s] = vg_ctree_ref(&t);
            then[s] = now;
            check(&t, &now);
        }
    }
    check(&t, &now);
    for (unsigned s = 0; s < 4; s++)
        vg_ctree_done(&snaps[s]);
    vg_ctree_done(&t);
    vg_ctree_pool_trim(&pool, 0);
}

static void a_change_needs_no_more_than_was_reserved(void **state)
{
    (void)state;
    struct vg_ctree t = {0};
    struct model m = {{0}, 0};
    struct vg_ctree_pool pool = {0};
    for (unsigned i = 0; i < KEYS; i++) {
        struct vg_ctree snap = vg_ctree_ref(&t); /* every node is shared: the worst case */
        vg_ctree_pool_trim(&pool, 0);
        change(&t, &m, &pool, i, objects[i][0]);
        vg_ctree_done(&snap);
    }
    check(&t, &m);
    for (unsigned i = 0; i < KEYS; i++) {
        struct vg_ctree snap = vg_ctree_ref(&t);
        vg_ctree_pool_trim(&pool, 0);
        change(&t, &m, &pool, (i * 7) % KEYS, NULL);
        vg_ctree_done(&snap);
    }
    assert_int_equal(t.count, 0);
    check(&t, &m);
    vg_ctree_pool_trim(&pool, 0);
}

static void a_built_tree_equals_one_that_grew(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 2, 31, 32, 33, 63, 64, 65, 511, 512, 513, KEYS};
    for (size_t k = 0; k < VG_ARRAY_LEN(sizes); k++) {
        struct vg_ctree_entry entries[KEYS];
        struct model m = {{0}, sizes[k]};
        for (size_t i = 0; i < sizes[k]; i++) {
            entries[i] = (struct vg_ctree_entry){.o = objects[i][0]};
            m.at[i] = objects[i][0];
        }
        VG_ALLOC_FAIL_LOOP (n) {
            struct vg_ctree t = {0};
            int r = vg_ctree_build(entries, sizes[k], &t);
            if (vg_test_alloc_failed())
                assert_true(r < 0);
            else
                check(&t, &m);
            vg_ctree_done(&t);
        }
    }
}

static void entries_of_an_index_are_ordered_by_value_first(void **state)
{
    (void)state;
    struct vg_ctree t = {0};
    struct vg_ctree_pool pool = {0};
    struct vg_ctree_value *a = vg_ctree_value_new(VG_SLICE_LIT("a"));
    struct vg_ctree_value *b = vg_ctree_value_new(VG_SLICE_LIT("b"));
    assert_non_null(a);
    assert_non_null(b);
    for (unsigned i = 0; i < KEYS; i++) {
        struct vg_ctree_value *v = i % 3 ? b : a;
        assert_int_equal(vg_ctree_reserve(&pool, t.levels, 1), 0);
        vg_ctree_put(
            &t, &pool,
            (struct vg_ctree_entry){vigil_object_ref(objects[i][0]), vg_ctree_value_ref(v)});
    }
    vg_ctree_check(&t);
    struct vg_ctree_cursor c;
    struct vg_ctree_key key = {.value = VG_SLICE_LIT("b")};
    vg_ctree_seek(&c, &t, &key);
    assert_ptr_equal(vg_ctree_next(&c)->o, objects[1][0]);
    key = (struct vg_ctree_key){.value = VG_SLICE_LIT("a"), .is_past = true};
    vg_ctree_seek(&c, &t, &key);
    assert_ptr_equal(vg_ctree_next(&c)->o, objects[1][0]);
    key.value = VG_SLICE_LIT("b");
    vg_ctree_seek(&c, &t, &key);
    assert_null(vg_ctree_next(&c));
    key = (struct vg_ctree_key){.value = VG_SLICE_LIT("aa")};
    vg_ctree_seek(&c, &t, &key);
    assert_ptr_equal(vg_ctree_next(&c)->o, objects[1][0]);
    vg_ctree_done(&t);
    vg_ctree_value_unref(a);
    vg_ctree_value_unref(b);
    vg_ctree_pool_trim(&pool, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_equals_a_model_and_snapshots_stay),
        cmocka_unit_test(a_change_needs_no_more_than_was_reserved),
        cmocka_unit_test(a_built_tree_equals_one_that_grew),
        cmocka_unit_test(entries_of_an_index_are_ordered_by_value_first),
    };
    return cmocka_run_group_tests(tests, make_objects, drop_objects);
}
