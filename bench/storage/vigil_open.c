/* vigil_open.c - how long opening takes with many objects: files cached, files not cached, and
 * after a process that wrote was killed with a full log. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vigil.h"

/* Just below what starts a checkpoint (16 MiB): the most that an open has to replay. */
#define FULL_LOG_BYTES ((uint64_t)15 << 20)
#define BUILD_LIMIT_NS (300 * VG_NS_PER_S)

static void build(const char *engine, const char *dir, struct vigil_opens *o)
{
    struct workload *load = workload_new(VIGIL_OPEN_WRITERS, VIGIL_OPEN_VALUE, true);
    struct bench_plan plan = {.ns = BUILD_LIMIT_NS, .max_writes = o->objects};
    struct bench_slice *slice = bench_alloc(1, sizeof *slice);
    struct vigil_store store = {0};
    vigil_store_open(&store, engine, dir, true);
    vigil_write(&store, load, &plan, slice);
    if (slice->writes != o->objects && !bench_interrupted())
        bench_die("building took more than %d s", (int)(BUILD_LIMIT_NS / VG_NS_PER_S));
    o->build_s = slice->secs;
    uint64_t begin = bench_now_ns();
    vigil_store_close(&store);
    o->build_close_s = (double)(bench_now_ns() - begin) / 1e9;
    o->file_bytes = bench_tree_bytes(dir);
    free(slice);
    workload_free(load);
}

struct first_get {
    struct vg_range range;
    bool done;
};

static void on_first_get(struct vg_store_req *req)
{
    VG_CONTAINER_OF(req, struct first_get, range.req)->done = true;
}

static void get_one(struct vigil_store *store)
{
    char key[WL_KEY_LEN + 1];
    wl_key(key, VIGIL_OPEN_WRITERS / 2, 0);
    struct first_get get = {.range = {.limit = 1}};
    get.range.keys = (struct vg_keys){VG_KEYS_ONE, vg_slice(key, WL_KEY_LEN), {0}};
    get.range.req.loop = store->loop;
    get.range.req.done = on_first_get;
    int r = vg_storage_range(store->s, &get.range);
    if (r == 0)
        vg_loop_turn_until(store->loop, &get.done);
    if (r < 0 || get.range.req.err < 0 || get.range.n_recs != 1)
        bench_die("the first get after opening failed");
    vg_range_done(&get.range);
}

static double timed_open(const char *engine, const char *dir)
{
    struct vigil_store store = {0};
    uint64_t begin = bench_now_ns();
    vigil_store_open(&store, engine, dir, false);
    get_one(&store);
    double secs = (double)(bench_now_ns() - begin) / 1e9;
    vigil_store_close(&store);
    return secs;
}

/* In a child: write until the log is full, report how full, and die as if killed. The writers are
 * named differently in each round, so that they create keys that are not there. */
_Noreturn static void fill_log_and_die(const char *engine, const char *dir, uint32_t round, int out)
{
    struct workload *load = workload_new(64, VIGIL_OPEN_VALUE, true);
    for (uint32_t i = 0; i < load->n_writers; i++)
        load->writers[i].id = VIGIL_OPEN_WRITERS + round * 64 + i;
    struct bench_plan plan = {.ns = 2 * VG_NS_PER_S, .max_writes = 500};
    struct bench_slice *slice = bench_alloc(1, sizeof *slice);
    struct vigil_store store = {0};
    struct vg_storage_stats stats = {0};
    vigil_store_open(&store, engine, dir, true);
    for (int i = 0; i < 200 && stats.overlay_bytes < FULL_LOG_BYTES; i++) {
        vigil_write(&store, load, &plan, slice);
        vg_storage_stats(store.s, &stats);
    }
    if (write(out, &stats.overlay_bytes, sizeof stats.overlay_bytes) < 0)
        _exit(1);
    raise(SIGKILL);
    _exit(1);
}

/* Bytes in the log of the process that was killed. Called while this process has one thread. */
static uint64_t kill_a_writer(const char *engine, const char *dir, uint32_t round)
{
    int ends[2], status = 0;
    uint64_t overlay = 0;
    if (pipe(ends) < 0)
        bench_die("pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child < 0)
        bench_die("fork: %s", strerror(errno));
    if (child == 0)
        fill_log_and_die(engine, dir, round, ends[1]);
    close(ends[1]);
    ssize_t n = read(ends[0], &overlay, sizeof overlay);
    close(ends[0]);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (n != (ssize_t)sizeof overlay || !WIFSIGNALED(status))
        bench_die("the writer that was to be killed ended by itself");
    return overlay;
}

void vigil_open(const char *engine, const char *dir, uint64_t objects, size_t opens,
                struct vigil_opens *ret_opens)
{
    struct vigil_opens *o = ret_opens;
    o->objects = objects;
    bench_progress("building a store of %llu objects", (unsigned long long)objects);
    build(engine, dir, o);
    bench_settle(dir);
    for (o->n = 0; o->n < VG_MIN(opens, (size_t)VIGIL_OPENS); o->n++) {
        bench_check_interrupt();
        bench_progress("opening it, %zu of %zu", o->n + 1, opens);
        o->warm_s[o->n] = timed_open(engine, dir);
        bench_tree_forget(dir);
        o->cold_s[o->n] = timed_open(engine, dir);
    }
}

void vigil_open_killed(const char *engine, const char *dir, struct vigil_opens *o)
{
    for (size_t i = 0; i < o->n; i++) {
        bench_check_interrupt();
        bench_progress("opening after a kill, %zu of %zu", i + 1, o->n);
        o->kill_overlay = kill_a_writer(engine, dir, (uint32_t)i);
        o->kill_s[i] = timed_open(engine, dir);
    }
}
