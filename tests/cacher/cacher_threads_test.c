/* cacher_threads_test.c - what readers on other threads may rely on while the feed works.
 * One pod is all that is ever written, so a state that shows revision R must hold the pod of
 * revision R: whoever sees a revision sees what belongs to it. */
#include "test_support.h"

#include <stdatomic.h>

#include "cacher_driver.h"

#define WRITES 3000

static struct vg_cdrv d;
static _Atomic bool is_over;

static vg_rev newest_pod(const struct vg_cache_snapshot *s)
{
    struct vg_cursor cursor;
    vg_root_first(&cursor, s->root);
    const struct vg_rec *rec = vg_cursor_next(&cursor);
    return rec ? rec->rev : VG_REV_EMPTY;
}

static void read_states(void)
{
    vg_rev last = 0;
    while (!atomic_load(&is_over)) {
        struct vg_cache_snapshot s;
        assert_int_equal(vg_cache_newest(d.c, KIND_PODS, &s), 0);
        assert_int_equal(newest_pod(&s), s.rev);
        assert_true(s.rev >= last);
        last = s.rev;
        vg_cache_snapshot_done(&s);
    }
}

static void write_pods(void)
{
    for (int i = 0; i < WRITES; i++)
        vg_cdrv_put(&d, KIND_PODS, &(struct vg_pod){.ns = "a", .name = "p", .n = i});
    atomic_store(&is_over, true);
}

static void work(unsigned index, void *arg)
{
    (void)arg;
    if (index == 0)
        write_pods();
    else
        read_states();
}

static void a_state_holds_what_its_revision_promises(void **state)
{
    (void)state;
    vg_cdrv_open(&d, &(struct vg_cdrv_opts){.is_threaded = true});
    assert_int_equal(vg_loop_start(d.feed, "feed"), 0);
    vg_test_threads(3, work, NULL);
    vg_loop_stop(d.feed);
    vg_cdrv_sync(&d);
    assert_int_equal(vg_cacher_revision(d.c), 1 + WRITES);
    vg_cdrv_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_state_holds_what_its_revision_promises)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
