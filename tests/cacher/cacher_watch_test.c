/* cacher_watch_test.c - where a watch starts, and what it is told. */
#include "test_support.h"

#include "cacher_driver.h"

static const struct vg_pod a1 = {.ns = "a", .name = "p1", .node = "n1", .labels = "\"app\":\"x\""};

static void a_watch_from_now_gets_what_follows(void **state)
{
    (void)state;
    struct vg_cdrv d;
    struct vg_csink s;
    vg_cdrv_open(&d, NULL);
    vg_csink_init(&s);
    vg_cdrv_put(&d, KIND_PODS, &a1);
    vg_cdrv_sync(&d);
    vg_cdrv_watch(&d, &s, vg_cdrv_predicate(KIND_PODS, NULL, NULL, NULL, NULL),
                  (struct vg_cache_watch_opts){.start = VG_WATCH_NOW});
    vg_cdrv_put(&d, KIND_PODS, &a1);
    vg_cdrv_delete(&d, KIND_PODS, "a", "p1");
    vg_cdrv_sync(&d);
    vg_csink_expect(&s, "MODIFIED a/p1@3", "DELETED a/p1@4", NULL);
    vg_csink_done(&s);
    vg_cdrv_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_watch_from_now_gets_what_follows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
