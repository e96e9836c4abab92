/* tree_reclaim_test.c - what is kept for whom, and giving it back in slices. */
#include "test_support.h"

#include "tree_int.h"
#include "tree_testing.h"

static struct vg_tree_stats stats_of(const struct vg_tree *tree)
{
    struct vg_tree_stats stats;
    vg_tree_stats(tree, &stats);
    return stats;
}

static void reclaiming_goes_in_bounded_slices_to_the_end(void **state)
{
    (void)state;
    struct vg_tree *tree = vg_test_even_tree(5000);
    struct vg_root *old = vg_tree_publish(tree, 5001);
    for (size_t i = 0; i < 5000; i++)
        assert_int_equal(vg_test_put_pod(tree, 2 * i, 6000 + i), 0);
    struct vg_tree_stats before = stats_of(tree);
    assert_int_equal(before.recs_retired, 5000);
    assert_in_range(before.nodes_retired, 5000 / 32, 5000 / 10);
    assert_in_range(before.rec_bytes_retired, 5000 * sizeof(struct vg_rec), 5000 * 200);
    assert_false(vg_tree_reclaim(tree, SIZE_MAX)); /* it is alive */
    assert_int_equal(stats_of(tree).recs_retired, 5000);
    vg_root_unref(old);
    size_t slices = 1;
    for (; vg_tree_reclaim(tree, 10); slices++) {
        struct vg_tree_stats s = stats_of(tree);
        assert_true(before.recs_retired - s.recs_retired + before.nodes_retired - s.nodes_retired <=
                    10);
        before = s;
        if (slices % 100 == 0)
            vg_tree_check(tree);
    }
    assert_in_range(slices, 5000 / 10, 6000 / 10);
    assert_int_equal(stats_of(tree).recs_retired, 0);
    assert_int_equal(stats_of(tree).nodes_retired, 0);
    assert_int_equal(stats_of(tree).roots, 0);
    vg_test_tree_end(tree);
}

/* One old root and much churn after it: what neither it nor the newest sees is not kept. */
static void an_old_root_pins_only_what_it_sees(void **state)
{
    (void)state;
    struct vg_tree *tree = vg_test_even_tree(1000);
    struct vg_root *old = vg_tree_publish(tree, 1001);
    struct vg_root *newest = NULL;
    vg_rev rev = 2000;
    for (int round = 0; round < 50; round++) {
        for (size_t i = 0; i < 1000; i += 3)
            assert_int_equal(vg_test_put_pod(tree, 2 * i, ++rev), 0);
        vg_root_unref(newest);
        newest = vg_tree_publish(tree, rev);
        while (vg_tree_reclaim(tree, 7))
            continue;
        assert_int_equal(stats_of(tree).recs_retired, 334);
        assert_in_range(stats_of(tree).nodes_retired, 1, 1000 / 10 + 10);
    }
    assert_true(vg_test_has_even_pods(old, 1000));
    vg_root_unref(old);
    vg_root_unref(newest);
    vg_test_tree_end(tree);
}

/* Newest first is the worst order for lists that are handed down; runs make it the best. */
static void many_roots_that_die_together_cost_what_they_hold(void **state)
{
    (void)state;
    static struct vg_root *roots[2000];
    struct vg_tree *tree = vg_test_even_tree(1000);
    for (size_t i = 0; i < VG_ARRAY_LEN(roots); i++) {
        assert_int_equal(vg_test_put_pod(tree, 2 * (i % 1000), 5000 + i), 0);
        roots[i] = vg_tree_publish(tree, 5000 + i);
    }
    struct vg_tree_stats s = stats_of(tree);
    for (size_t i = VG_ARRAY_LEN(roots); i-- > 0;)
        roots[i] = vg_root_unref(roots[i]);
    size_t steps = 0;
    while (vg_tree_reclaim(tree, 1))
        steps++;
    assert_in_range(steps, 1, s.nodes_retired + s.recs_retired + s.roots);
    assert_int_equal(stats_of(tree).nodes_retired, 0);
    vg_test_tree_end(tree);
}

static void changes_and_deaths_may_come_between_two_slices(void **state)
{
    (void)state;
    struct vg_tree *tree = vg_test_even_tree(2000);
    struct vg_root *a = vg_tree_publish(tree, 2001);
    for (size_t i = 0; i < 2000; i++)
        assert_int_equal(vg_test_put_pod(tree, 2 * i, 3000 + i), 0);
    struct vg_root *b = vg_tree_publish(tree, 5000);
    for (size_t i = 0; i < 2000; i += 2)
        assert_int_equal(vg_test_remove_pod(tree, 2 * i), 1);
    vg_root_unref(b);
    assert_true(vg_tree_reclaim(tree, 100)); /* b is half-way, handing down to a */
    for (size_t i = 1; i < 2000; i += 2)
        assert_int_equal(vg_test_remove_pod(tree, 2 * i), 1);
    vg_tree_check(tree);
    assert_true(vg_test_has_even_pods(a, 2000));
    vg_root_unref(a);
    while (vg_tree_reclaim(tree, 33))
        vg_tree_check(tree);
    assert_int_equal(stats_of(tree).recs_retired, 0);
    assert_int_equal(stats_of(tree).nodes_retired, 0);
    vg_test_tree_end(tree);
}

static void count_wake(void *arg)
{
    ++*(unsigned *)arg;
}

static void the_last_unref_of_a_root_wakes_the_writer(void **state)
{
    (void)state;
    unsigned wakes = 0;
    struct vg_tree *tree = NULL;
    struct vg_tree_opts opts = {.wake = count_wake, .wake_arg = &wakes};
    assert_int_equal(vg_tree_new(&opts, &tree), 0);
    struct vg_root *a = vg_tree_publish(tree, 2), *b = vg_tree_publish(tree, 3);
    assert_ptr_equal(vg_root_ref(a), a);
    assert_null(vg_root_unref(a));
    assert_int_equal(wakes, 0);
    assert_null(vg_root_unref(a));
    assert_null(vg_root_unref(b));
    assert_int_equal(wakes, 1); /* the second found the writer woken */
    assert_int_equal(stats_of(tree).roots, 2);
    assert_false(vg_tree_reclaim(tree, 10));
    assert_int_equal(stats_of(tree).roots, 0);
    vg_test_tree_end(tree);
}

static void a_tree_is_dissolved_in_slices(void **state)
{
    (void)state;
    struct vg_tree *tree = vg_test_even_tree(5000);
    struct vg_root *root = vg_tree_publish(tree, 5001);
    vg_root_unref(root);
    size_t slices = 1;
    while (vg_tree_dissolve(tree, 100))
        slices++;
    assert_in_range(slices, 5000 / 150, 5500 / 100 + 1);
    struct vg_tree_stats s = stats_of(tree);
    assert_int_equal(s.count, 0);
    assert_int_equal(s.nodes, 0);
    assert_int_equal(vg_test_put_pod(tree, 1, 9000), 0); /* it may begin anew */
    vg_test_tree_end(tree);
}

static void bytes_are_those_of_nodes_roots_and_notes(void **state)
{
    (void)state;
    struct vg_tree *tree = vg_test_even_tree(3000);
    struct vg_tree_stats s = stats_of(tree);
    assert_in_range(s.bytes, (s.nodes + s.nodes_spare) * sizeof(struct vg_leaf),
                    (s.nodes + s.nodes_spare) * sizeof(struct vg_inner) + 1000);
    while (vg_tree_dissolve(tree, 100))
        continue;
    vg_tree_trim_spares(tree, 0);
    assert_int_equal(stats_of(tree).bytes, sizeof(struct vg_root) + sizeof(struct vg_tree_note));
    vg_test_tree_end(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reclaiming_goes_in_bounded_slices_to_the_end),
        cmocka_unit_test(an_old_root_pins_only_what_it_sees),
        cmocka_unit_test(many_roots_that_die_together_cost_what_they_hold),
        cmocka_unit_test(changes_and_deaths_may_come_between_two_slices),
        cmocka_unit_test(the_last_unref_of_a_root_wakes_the_writer),
        cmocka_unit_test(a_tree_is_dissolved_in_slices),
        cmocka_unit_test(bytes_are_those_of_nodes_roots_and_notes),
    };
    return cmocka_run_group_tests_name("tree_reclaim", tests, NULL, NULL);
}
