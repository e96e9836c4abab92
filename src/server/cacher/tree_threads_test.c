/* tree_threads_test.c - readers walk snapshots while the writer goes on; run under TSan.
 * The writer keeps the sum of the revisions in the tree and publishes it with the root: a reader
 * that sees anything but the state of one batch, or memory that was given back, finds another sum.
 */
#include "test_support.h"

#include <sched.h>

#include "base/lock.h"
#include "base/rng.h"
#include "tree_int.h"
#include "tree_testing.h"

#define READERS 3u
#define PODS 2000u

struct board {
    struct vg_mutex mu;
    struct vg_root *root VG_GUARDED_BY(mu); /* the newest; holds a reference */
    uint64_t sum VG_GUARDED_BY(mu);
    size_t batches;
    _Atomic unsigned wakes;
    atomic_bool is_over;
    struct vg_tree *tree;
};

static struct vg_root *newest(struct board *b, uint64_t *ret_sum)
{
    vg_mutex_lock(&b->mu);
    struct vg_root *root = vg_root_ref(b->root);
    *ret_sum = b->sum;
    vg_mutex_unlock(&b->mu);
    return root;
}

static void show(struct board *b, struct vg_root *take_root, uint64_t sum)
{
    vg_mutex_lock(&b->mu);
    struct vg_root *old = b->root;
    b->root = take_root;
    b->sum = sum;
    vg_mutex_unlock(&b->mu);
    vg_root_unref(old);
}

static uint64_t sum_of(const struct vg_root *root, bool is_slow)
{
    struct vg_cursor c;
    uint64_t sum = 0, n = 0;
    vg_root_first(&c, root);
    for (const struct vg_rec *rec; (rec = vg_cursor_next(&c)); n++) {
        sum += rec->rev;
        if (is_slow && n % 64 == 0)
            sched_yield();
    }
    return n == vg_root_count(root) ? sum : 0;
}

static void read_some(struct board *b, struct vg_rng *rng, unsigned index)
{
    uint64_t sum;
    char text[64];
    struct vg_root *root = newest(b, &sum);
    struct vg_root *again = vg_root_ref(root);
    if (sum_of(root, index == 1) != sum)
        abort();
    struct vg_slice k = vg_test_pod_key(text, sizeof text, (size_t)vg_rng_below(rng, PODS));
    const struct vg_rec *rec = vg_root_get(root, vg_test_minor(k));
    size_t before = vg_root_rank(root, vg_test_minor(k), VG_TREE_AT);
    size_t after = vg_root_rank(root, vg_test_minor(k), VG_TREE_AFTER);
    if (after - before != (rec ? 1 : 0))
        abort();
    struct vg_rec *kept = rec ? vg_rec_ref(rec) : NULL;
    vg_root_unref(root);
    vg_root_unref(again);
    if (kept && !vg_slice_eq(vg_rec_key(kept), k)) /* a record outlives its root */
        abort();
    vg_rec_unref(kept);
}

static void change_one(struct board *b, struct vg_rng *rng, uint64_t *sum, vg_rev rev)
{
    char text[64];
    size_t i = (size_t)vg_rng_below(rng, PODS);
    struct vg_rec *old = NULL;
    if (vg_rng_below(rng, 3)) {
        struct vg_rec *rec = vg_test_pod(i, rev);
        vg_tree_must(vg_tree_put(b->tree, rec, &old));
        *sum += rev;
        vg_rec_unref(rec);
    } else {
        struct vg_tree_key k = vg_test_minor(vg_test_pod_key(text, sizeof text, i));
        vg_tree_must(vg_tree_remove(b->tree, k, &old));
    }
    *sum -= old ? old->rev : 0;
    vg_rec_unref(old);
}

static void write_all(struct board *b, struct vg_rng *rng)
{
    uint64_t sum = 0;
    vg_rev rev = 2;
    for (size_t i = 0; i < b->batches; i++) {
        for (uint64_t k = vg_rng_below(rng, 20); k > 0; k--)
            change_one(b, rng, &sum, rev++);
        struct vg_root *root = vg_tree_publish(b->tree, rev);
        if (!root)
            abort();
        show(b, root, sum);
        vg_tree_reclaim(b->tree, 60);
        if (i % 16 == 0)
            sched_yield();
    }
    atomic_store(&b->is_over, true);
}

static void write_or_read(unsigned index, void *arg)
{
    struct board *b = arg;
    struct vg_rng rng;
    vg_rng_seed(&rng, vg_test_seed() + index);
    if (index == 0) {
        write_all(b, &rng);
        return;
    }
    while (!atomic_load(&b->is_over))
        read_some(b, &rng, index);
}

static void count_wake(void *arg)
{
    atomic_fetch_add((_Atomic unsigned *)arg, 1);
}

static void readers_see_whole_batches_while_the_writer_goes_on(void **state)
{
    (void)state;
    struct board b = {.batches = vg_test_is_long() ? 40000 : 3000};
    struct vg_tree_opts opts = {.wake = count_wake, .wake_arg = &b.wakes};
    vg_mutex_init(&b.mu, VG_RANK_STORE_TABLE);
    assert_int_equal(vg_tree_new(&opts, &b.tree), 0);
    b.root = vg_tree_publish(b.tree, 1);
    assert_non_null(b.root);
    vg_test_seed();
    vg_test_threads(READERS + 1, write_or_read, &b);
    show(&b, NULL, 0);
    while (vg_tree_reclaim(b.tree, 1000))
        continue;
    struct vg_tree_stats stats;
    vg_tree_stats(b.tree, &stats);
    assert_int_equal(stats.roots, 0);
    assert_int_equal(stats.nodes_retired, 0);
    assert_int_equal(stats.recs_retired, 0);
    assert_true(b.wakes > 0);
    vg_test_tree_end(b.tree);
    vg_mutex_done(&b.mu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_see_whole_batches_while_the_writer_goes_on),
    };
    return cmocka_run_group_tests_name("tree_threads", tests, NULL, NULL);
}
