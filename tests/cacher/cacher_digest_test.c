/* cacher_digest_test.c - comparing the cache with storage, when asked and every few minutes. */
#include "test_support.h"

#include <stdio.h>

#include "cacher_driver.h"
#include "server/cacher/cacher_int.h"
#include "storage_driver_int.h"

static struct vg_cdrv d;
static int answer;
static bool is_answered;

static int close_driver(void **state)
{
    (void)state;
    vg_cdrv_close(&d);
    return 0;
}

static void on_checked(void *arg, int err)
{
    (void)arg;
    answer = err;
    is_answered = true;
}

static void open_with_pods(int n)
{
    vg_cdrv_open(&d, NULL);
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        vg_cdrv_put(&d, KIND_PODS, &(struct vg_pod){.ns = "a", .name = name});
    }
    vg_cdrv_delete(&d, KIND_PODS, "a", "p1");
    vg_cdrv_sync(&d);
}

static int check(size_t kind)
{
    is_answered = false;
    int err = vg_cacher_check_digest(d.c, kind, on_checked, NULL);
    if (err < 0)
        return err;
    assert_false(is_answered);
    vg_drv_watchdog("a digest");
    vg_loop_turn_until(d.feed, &is_answered);
    vg_drv_watchdog(NULL);
    return answer;
}

static void a_cache_that_equals_storage_passes(void **state)
{
    (void)state;
    open_with_pods(1500); /* more than a page */
    assert_int_equal(check(KIND_PODS), 0);
    assert_int_equal(check(KIND_NODES), 0);
    assert_int_equal(check(KIND_EVENTS), VIGIL_E_UNSUPPORTED);
    assert_int_equal(vg_cdrv_stats(&d).digest_checks, 2);
    assert_int_equal(vg_cdrv_stats(&d).digest_failures, 0);
}

static void a_key_that_the_cache_does_not_have_fails(void **state)
{
    (void)state;
    open_with_pods(3);
    vg_drv_put(&d.store, "/registry/pods/a/raw", "without a header it is in no tree");
    vg_cdrv_sync(&d);
    assert_int_equal(check(KIND_PODS), 0); /* which the cache knows */
    vg_unreadable_clear(&d.c->kinds[KIND_PODS]);
    assert_int_equal(check(KIND_PODS), VIGIL_E_CONFLICT);
    assert_int_equal(vg_cdrv_stats(&d).digest_failures, 1);
    vg_drv_delete(&d.store, "/registry/pods/a/raw");
    vg_cdrv_sync(&d);
    assert_int_equal(check(KIND_PODS), 0);
}

static void compaction_makes_a_check_void(void **state)
{
    (void)state;
    open_with_pods(3);
    vg_rev last = vg_storage_revision(d.store.store);
    vg_drv_put(&d.store, "/registry/other", "x"); /* the feed does not see it yet */
    assert_int_equal(vg_drv_compact(&d.store, last + 1, NULL), 0);
    assert_int_equal(check(KIND_PODS), VIGIL_E_COMPACTED);
    assert_int_equal(vg_cdrv_stats(&d).digest_checks, 0);
}

static void every_few_minutes_all_kinds_are_checked(void **state)
{
    (void)state;
    open_with_pods(10);
    vg_cdrv_advance_ms(&d, 299000);
    assert_int_equal(vg_cdrv_stats(&d).digest_checks, 0);
    vg_cdrv_advance_ms(&d, 152000);
    vg_drv_watchdog("the periodic digest");
    while (vg_cdrv_stats(&d).digest_checks < 2)
        vg_loop_turn(d.feed, true);
    vg_drv_watchdog(NULL);
    assert_int_equal(vg_cdrv_stats(&d).digest_failures, 0);
}

static void closing_during_a_check_is_answered(void **state)
{
    (void)state;
    open_with_pods(10);
    is_answered = false;
    assert_int_equal(vg_cacher_check_digest(d.c, KIND_PODS, on_checked, NULL), 0);
    vg_cdrv_close_cacher(&d);
    assert_true(is_answered);
    assert_int_equal(answer, VIGIL_E_CLOSED);
}

#define TEST(f) cmocka_unit_test_teardown(f, close_driver)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_cache_that_equals_storage_passes), TEST(a_key_that_the_cache_does_not_have_fails),
        TEST(compaction_makes_a_check_void),      TEST(every_few_minutes_all_kinds_are_checked),
        TEST(closing_during_a_check_is_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
