/* engine_world.h - how a test of the API over sockets begins and ends: a server on the engine that
 * the test's first argument names, and its last answer. Thread: the test's. */
#ifndef VG_TESTS_API_ENGINE_WORLD_H
#define VG_TESTS_API_ENGINE_WORLD_H

#include "driver.h"

static const char *engine = "mem";
static struct vg_adrv d;
static struct vg_reply reply;

/* On the engine, and without syncs: no test here is about them. */
static inline void open_driver(struct vg_adrv_opts opts)
{
    opts.engine = engine;
    opts.storage.unsafe_no_fsync = true;
    vg_adrv_open(&d, &opts);
}

static inline int open_server(void **state)
{
    (void)state;
    open_driver((struct vg_adrv_opts){0});
    return 0;
}

/* A request waits no longer than 200 ms for the cache: for tests of a wait that is in vain, and for
 * them alone, as on a busy machine a cache may well be behind for so long. */
static inline int open_hasty_server(void **state)
{
    (void)state;
    open_driver((struct vg_adrv_opts){.cacher.fresh_ms = 200});
    return 0;
}

static inline int close_server(void **state)
{
    (void)state;
    vg_reply_done(&reply);
    vg_adrv_close(&d);
    return 0;
}

#define ON_SERVER(test) cmocka_unit_test_setup_teardown(test, open_server, close_server)
#define ON_HASTY_SERVER(test) cmocka_unit_test_setup_teardown(test, open_hasty_server, close_server)

/* What main returns; 77: the engine is not there, and the test is skipped. */
#define RUN_ON_ENGINE(argc, argv, tests)                                                           \
    (engine = (argc) > 1 ? (argv)[1] : engine,                                                     \
     vg_adrv_has(engine) ? cmocka_run_group_tests(tests, NULL, NULL) : 77)

#endif
