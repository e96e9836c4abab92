/* tree_writer_test.c - put, remove, load and publish, one promise at a time. */
#include "test_support.h"

#include <errno.h>

#include "base/rng.h"
#include "tree_int.h"
#include "tree_testing.h"

static const struct vg_rec *get_pod(const struct vg_tree *tree, size_t i)
{
    char key[64];
    return vg_tree_get(tree, vg_test_minor(vg_test_pod_key(key, sizeof key, i)));
}

static struct vg_tree_stats stats_of(const struct vg_tree *tree)
{
    struct vg_tree_stats stats;
    vg_tree_stats(tree, &stats);
    return stats;
}

static void an_empty_tree_has_nothing(void **state)
{
    (void)state;
    struct vg_tree *tree = vg_test_tree(NULL);
    struct vg_cursor c;
    struct vg_rec *old = (void *)tree;
    assert_null(get_pod(tree, 1));
    assert_int_equal(vg_tree_remove(tree, vg_test_minor(VG_SLICE_LIT("x")), &old), 0);
    assert_null(old);
    struct vg_root *root = vg_tree_publish(tree, 7);
    assert_int_equal(vg_root_rev(root), 7);
    assert_int_equal(vg_root_count(root), 0);
    assert_null(vg_root_get(root, vg_test_minor(VG_SLICE_LIT("x"))));
    assert_int_equal(vg_root_count_range(root, NULL, NULL), 0);
    vg_root_first(&c, root);
    assert_null(vg_cursor_next(&c));
    vg_root_unref(root);
    vg_test_tree_end(tree);
    vg_tree_free(NULL);
}

static void a_put_replaces_and_gives_back_the_old_record(void **state)
{
    (void)state;
    struct vg_tree *tree = vg_test_tree(NULL);
    struct vg_rec *a = vg_test_pod(1, 2), *b = vg_test_pod(1, 3), *old = NULL;
    assert_int_equal(vg_tree_put(tree, a, &old), 0);
    assert_null(old);
    assert_int_equal(vg_tree_put(tree, b, &old), 0);
    assert_ptr_equal(old, a);
    assert_int_equal(a->refs, 2); /* ours and old; the tree has let go */
    assert_int_equal(vg_tree_count(tree), 1);
    assert_ptr_equal(get_pod(tree, 1), b);
    vg_rec_unref(old);
    assert_int_equal(vg_tree_remove(tree, vg_test_minor(vg_rec_key(b)), &old), 1);
    assert_ptr_equal(old, b);
    assert_int_equal(b->refs, 2);
    vg_rec_unref(old);
    vg_rec_unref(a);
    vg_rec_unref(b);
    vg_test_tree_end(tree);
}

static void a_record_may_replace_itself(void **state)
{
    (void)state;
    struct vg_tree *tree = vg_test_tree(NULL);
    struct vg_rec *a = vg_test_pod(1, 2), *old = NULL;
    assert_int_equal(vg_tree_put(tree, a, NULL), 0);
    struct vg_root *root = vg_tree_publish(tree, 2);
    assert_int_equal(vg_tree_put(tree, a, &old), 0);
    assert_ptr_equal(old, a);
    vg_rec_unref(old);
    vg_root_unref(root);
    assert_false(vg_tree_reclaim(tree, 100));
    assert_int_equal(a->refs, 2);
    vg_rec_unref(a);
    vg_test_tree_end(tree);
}

/* The key that a caller gives may lie in the record that goes away. */
static void a_removal_may_name_the_record_by_its_own_key(void **state)
{
    (void)state;
    struct vg_tree *tree = vg_test_tree(NULL);
    for (size_t i = 0; i < 200; i++)
        assert_int_equal(vg_test_put_pod(tree, i, i + 2), 0);
    for (size_t i = 0; i < 200; i++) {
        struct vg_slice key = vg_rec_key(get_pod(tree, i));
        assert_int_equal(vg_tree_remove(tree, vg_test_minor(key), NULL), 1);
    }
    assert_int_equal(vg_tree_count(tree), 0);
    vg_test_tree_end(tree);
}

/* ---- orders of insertion and removal ---- */

#define MANY 20000u

enum order { ASCENDING, DESCENDING, RANDOM };

static void fill_order(size_t *order, enum order kind)
{
    struct vg_rng rng;
    vg_rng_seed(&rng, vg_test_seed());
    for (size_t i = 0; i < MANY; i++)
        order[i] = kind == DESCENDING ? MANY - 1 - i : i;
    for (size_t i = MANY - 1; kind == RANDOM && i > 0; i--) {
        size_t j = (size_t)vg_rng_below(&rng, i + 1), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
}

static void fill_and_empty(enum order in, enum order out)
{
    static size_t order[MANY];
    struct vg_tree *tree = vg_test_tree(NULL);
    fill_order(order, in);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(vg_test_put_pod(tree, order[i], i + 2), 0);
        if (i % 3001 == 0)
            vg_tree_check(tree);
    }
    vg_tree_check(tree);
    fill_order(order, out);
    for (size_t i = 0; i < MANY; i++) {
        assert_non_null(get_pod(tree, order[i]));
        assert_int_equal(vg_test_remove_pod(tree, order[i]), 1);
        assert_null(get_pod(tree, order[i]));
        if (i % 3001 == 0 || i + 50 > MANY)
            vg_tree_check(tree);
    }
    assert_int_equal(vg_tree_count(tree), 0);
    assert_int_equal(stats_of(tree).nodes, 0);
    vg_test_tree_end(tree);
}

static void ascending_inserts_and_removals_keep_the_tree_whole(void **state)
{
    (void)state;
    fill_and_empty(ASCENDING, ASCENDING);
    fill_and_empty(ASCENDING, DESCENDING);
}

static void descending_inserts_and_removals_keep_the_tree_whole(void **state)
{
    (void)state;
    fill_and_empty(DESCENDING, DESCENDING);
    fill_and_empty(DESCENDING, ASCENDING);
}

static void random_inserts_and_removals_keep_the_tree_whole(void **state)
{
    (void)state;
    fill_and_empty(RANDOM, RANDOM);
}

/* ---- load ---- */

static void load_and_compare(size_t n)
{
    struct vg_tree *tree = vg_test_tree(NULL);
    const struct vg_rec **recs = calloc(n + 1, sizeof *recs);
    struct vg_cursor c;
    for (size_t i = 0; i < n; i++)
        recs[i] = vg_test_pod(i, i + 2);
    assert_int_equal(vg_tree_load(tree, recs, n), 0);
    vg_tree_check(tree);
    assert_in_range(stats_of(tree).nodes, n / VG_NODE_MAX, n / VG_NODE_MAX * 11 / 10 + 3);
    struct vg_root *root = vg_tree_publish(tree, n + 2);
    vg_root_first(&c, root);
    for (size_t i = 0; i < n; i++) {
        assert_ptr_equal(vg_cursor_next(&c), recs[i]);
        assert_int_equal(recs[i]->refs, 2);
        vg_rec_unref(recs[i]);
    }
    assert_null(vg_cursor_next(&c));
    for (size_t i = 0; i < n; i += 7) /* and it can be changed */
        assert_int_equal(vg_test_put_pod(tree, i, n + 2 + i), 0);
    assert_int_equal(vg_test_put_pod(tree, n + 1, 2 * n + 3), 0);
    vg_tree_check(tree);
    vg_root_check(root);
    free(recs);
    vg_root_unref(root);
    vg_test_tree_end(tree);
}

static void a_load_builds_full_nodes_of_any_number_of_records(void **state)
{
    (void)state;
    for (size_t n = 0; n < 150; n++)
        load_and_compare(n);
    for (size_t n = 31 * 32; n < 34 * 32; n++)
        load_and_compare(n);
    load_and_compare(32 * 32 * 32 + 1);
}

static void a_load_out_of_order_or_into_a_full_tree_is_refused(void **state)
{
    (void)state;
    struct vg_tree *tree = vg_test_tree(NULL);
    const struct vg_rec *recs[] = {vg_test_pod(1, 2), vg_test_pod(3, 3), vg_test_pod(2, 4)};
    const struct vg_rec *twice[] = {recs[0], recs[0]};
    assert_int_equal(vg_tree_load(tree, recs, 3), VIGIL_E_INVALID);
    assert_int_equal(vg_tree_load(tree, twice, 2), VIGIL_E_INVALID);
    assert_int_equal(vg_tree_count(tree), 0);
    assert_int_equal(vg_tree_load(tree, recs, 2), 0);
    assert_int_equal(vg_tree_load(tree, recs + 2, 1), VIGIL_E_INVALID);
    assert_int_equal(vg_tree_count(tree), 2);
    for (size_t i = 0; i < 3; i++)
        vg_rec_unref(recs[i]);
    vg_test_tree_end(tree);
}

/* ---- replacing ---- */

/* Pods below n, some of them: who is there and at which revision depends on the seed alone. */
static size_t pick_pods(struct vg_rng *rng, size_t n, vg_rev rev, struct vg_rec **ret)
{
    size_t count = 0, share = vg_rng_below(rng, 5);
    for (size_t i = 0; i < n; i++)
        if (vg_rng_below(rng, 4) < share)
            ret[count++] = vg_test_pod(i, vg_rng_below(rng, 2) ? i + 2 : rev);
    return count;
}

/* These and no others, by key and revision. */
static void assert_holds(const struct vg_root *root, struct vg_rec *const *recs, size_t n)
{
    struct vg_cursor c;
    vg_root_check(root);
    assert_int_equal(vg_root_count(root), n);
    vg_root_first(&c, root);
    for (size_t i = 0; i < n; i++) {
        const struct vg_rec *rec = vg_cursor_next(&c);
        assert_true(vg_slice_eq(vg_rec_key(rec), vg_rec_key(recs[i])));
        assert_int_equal(rec->rev, recs[i]->rev);
    }
}

static void drop_pods(struct vg_rec **recs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        vg_rec_unref(recs[i]);
}

static void a_replaced_tree_holds_these_records_and_no_others(void **state)
{
    (void)state;
    enum { PODS = 700 };
    struct vg_rng rng;
    struct vg_rec *was[PODS], *now[PODS];
    vg_rng_seed(&rng, vg_test_seed());
    struct vg_tree *tree = vg_test_tree(NULL);
    struct vg_root *before = vg_tree_publish(tree, 1);
    size_t n_was = 0;
    for (vg_rev round = 0; round < 60; round++) {
        size_t n_now = pick_pods(&rng, PODS, PODS + 2 + round, now);
        assert_int_equal(vg_tree_replace(tree, (const struct vg_rec *const *)now, n_now), 0);
        vg_tree_check(tree);
        struct vg_root *after = vg_tree_publish(tree, round + 2);
        assert_holds(before, was, n_was); /* a snapshot stays as it is */
        assert_holds(after, now, n_now);
        vg_root_unref(before);
        drop_pods(was, n_was);
        memcpy(was, now, sizeof was);
        n_was = n_now;
        before = after;
    }
    vg_root_unref(before);
    drop_pods(was, n_was);
    vg_test_tree_end(tree);
}

static void a_replacement_keeps_what_is_there(void **state)
{
    (void)state;
    enum { PODS = 5000 };
    static struct vg_rec *recs[PODS];
    struct vg_tree *tree = vg_test_even_tree(PODS);
    vg_root_unref(vg_tree_publish(tree, PODS));
    while (vg_tree_reclaim(tree, 1000))
        ;
    for (size_t i = 0; i < PODS; i++)
        recs[i] = vg_test_pod(2 * i, i + 2);
    recs[1]->rev = PODS + 9;
    const struct vg_rec *kept = get_pod(tree, 0);
    assert_int_equal(vg_tree_replace(tree, (const struct vg_rec *const *)recs, PODS), 0);
    assert_ptr_equal(get_pod(tree, 0), kept);
    assert_ptr_equal(get_pod(tree, 2), recs[1]);
    assert_true(stats_of(tree).nodes_retired <= VG_TREE_LEVELS_MAX); /* one path was copied */
    struct vg_rec *swapped[] = {recs[1], recs[0]};
    assert_int_equal(vg_tree_replace(tree, (const struct vg_rec *const *)swapped, 2),
                     VIGIL_E_INVALID);
    assert_int_equal(vg_tree_count(tree), PODS);
    drop_pods(recs, PODS);
    vg_test_tree_end(tree);
}

static void a_replacement_without_memory_may_be_called_again(void **state)
{
    (void)state;
    enum { PODS = 200 };
    struct vg_rec *recs[PODS];
    for (size_t i = 0; i < PODS; i++)
        recs[i] = vg_test_pod(3 * i, 1000 + i);
    VG_ALLOC_FAIL_LOOP (n) {
        vg_alloc_fail_at(0, 0);
        struct vg_tree *tree = vg_test_even_tree(PODS);
        vg_alloc_fail_at(n, 0);
        int r = vg_tree_replace(tree, (const struct vg_rec *const *)recs, PODS);
        if (vg_test_alloc_failed()) {
            assert_int_equal(r, -ENOMEM);
            vg_tree_check(tree);
            r = vg_tree_replace(tree, (const struct vg_rec *const *)recs, PODS);
        }
        assert_int_equal(r, 0);
        struct vg_root *root = vg_tree_publish(tree, 2000);
        assert_holds(root, recs, PODS);
        vg_root_unref(root);
        vg_test_tree_end(tree);
    }
    drop_pods(recs, PODS);
}

/* ---- memory runs out ---- */

enum change { INSERT, REPLACE, REMOVE };

/* One change of a published tree of n, with the k-th allocation failing. */
static void change_without_memory(size_t n, enum change kind)
{
    VG_ALLOC_FAIL_LOOP (k) {
        vg_alloc_fail_at(0, 0);
        struct vg_tree *tree = vg_test_even_tree(n);
        struct vg_root *root = vg_tree_publish(tree, n + 2);
        struct vg_rec *rec = vg_test_pod(n / 2 * 2 + (kind == INSERT), n + 10);
        vg_tree_trim_spares(tree, 0);
        vg_alloc_fail_at(k, 0);
        int r = kind == REMOVE ? vg_tree_remove(tree, vg_test_minor(vg_rec_key(rec)), NULL)
                               : vg_tree_put(tree, rec, NULL);
        bool failed = vg_test_alloc_failed();
        if (failed) {
            assert_int_equal(r, -ENOMEM);
            assert_int_equal(vg_tree_count(tree), n);
            struct vg_root *now = vg_tree_publish(tree, n + 2);
            assert_true(vg_test_has_even_pods(now, n));
            vg_root_unref(now);
        } else {
            assert_in_range(r, 0, 1);
        }
        vg_rec_unref(rec);
        vg_tree_check(tree);
        assert_true(vg_test_has_even_pods(root, n));
        vg_root_unref(root);
        vg_tree_free(tree);
    }
}

static void changes_without_memory_change_nothing(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 32, 33, 400, 1024};
    for (size_t i = 0; i < VG_ARRAY_LEN(sizes); i++)
        for (int kind = INSERT; kind <= REMOVE; kind++)
            change_without_memory(sizes[i], (enum change)kind);
}

static void a_load_without_memory_changes_nothing(void **state)
{
    (void)state;
    const struct vg_rec *recs[100];
    for (size_t i = 0; i < VG_ARRAY_LEN(recs); i++)
        recs[i] = vg_test_pod(i, i + 2);
    VG_ALLOC_FAIL_LOOP (k) {
        struct vg_tree *tree = NULL;
        int r = vg_tree_new(&(struct vg_tree_opts){0}, &tree);
        if (r == 0)
            r = vg_tree_load(tree, recs, VG_ARRAY_LEN(recs));
        if (vg_test_alloc_failed())
            assert_int_equal(r, -ENOMEM);
        else
            assert_int_equal(vg_tree_count(tree), VG_ARRAY_LEN(recs));
        if (tree)
            vg_tree_check(tree);
        vg_tree_free(tree);
    }
    for (size_t i = 0; i < VG_ARRAY_LEN(recs); i++) {
        assert_int_equal(recs[i]->refs, 1);
        vg_rec_unref(recs[i]);
    }
}

static void a_publish_after_a_change_needs_no_memory(void **state)
{
    (void)state;
    struct vg_tree *tree = vg_test_tree(NULL);
    assert_int_equal(vg_test_put_pod(tree, 1, 2), 0);
    vg_alloc_fail_at(1, 0);
    struct vg_root *a = vg_tree_publish(tree, 2);
    assert_non_null(a);
    assert_null(vg_tree_publish(tree, 3)); /* no change since: it has to ask for memory */
    vg_alloc_fail_at(0, 0);
    vg_root_unref(a);
    vg_test_tree_end(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_tree_has_nothing),
        cmocka_unit_test(a_put_replaces_and_gives_back_the_old_record),
        cmocka_unit_test(a_record_may_replace_itself),
        cmocka_unit_test(a_removal_may_name_the_record_by_its_own_key),
        cmocka_unit_test(ascending_inserts_and_removals_keep_the_tree_whole),
        cmocka_unit_test(descending_inserts_and_removals_keep_the_tree_whole),
        cmocka_unit_test(random_inserts_and_removals_keep_the_tree_whole),
        cmocka_unit_test(a_load_builds_full_nodes_of_any_number_of_records),
        cmocka_unit_test(a_load_out_of_order_or_into_a_full_tree_is_refused),
        cmocka_unit_test(a_replaced_tree_holds_these_records_and_no_others),
        cmocka_unit_test(a_replacement_keeps_what_is_there),
        cmocka_unit_test(a_replacement_without_memory_may_be_called_again),
        cmocka_unit_test(changes_without_memory_change_nothing),
        cmocka_unit_test(a_load_without_memory_changes_nothing),
        cmocka_unit_test(a_publish_after_a_change_needs_no_memory),
    };
    return cmocka_run_group_tests_name("tree_writer", tests, NULL, NULL);
}
