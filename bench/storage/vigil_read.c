/* vigil_read.c - gets, pages and whole spans from a store that holds a create-only load. */
#include <stdlib.h>

#include "vigil.h"

/* Every key begins so; the byte after the slash ends the span. */
static const char first_key[] = "/registry/pods/";
static const char end_key[] = "/registry/pods0";

struct reading;

struct reader {
    struct vg_range range;
    char key[WL_KEY_LEN + 2];
    struct reading *run;
    uint64_t sent_ns;
};

/* How the next request of a reader looks. */
typedef void next_fn(struct reader *r);

struct reading {
    struct vg_storage *s;
    next_fn *next;
    struct vg_rng rng;
    uint64_t keys, deadline_ns;
    size_t limit;
    uint64_t answers, objects, bytes;
    uint32_t under_way;
    bool idle;
    struct vg_hist latency;
};

static void pick_key(struct reader *r)
{
    uint64_t n = vg_rng_below(&r->run->rng, r->run->keys);
    wl_key(r->key, (uint32_t)(n % VIGIL_OPEN_WRITERS), (uint32_t)(n / VIGIL_OPEN_WRITERS));
    r->range.keys.start = vg_slice(r->key, WL_KEY_LEN);
}

static void next_get(struct reader *r)
{
    pick_key(r);
    r->range.keys.kind = VG_KEYS_ONE;
}

static void next_span(struct reader *r)
{
    pick_key(r);
    r->range.keys.kind = VG_KEYS_SPAN;
    r->range.keys.end = VG_SLICE_LIT(end_key);
}

/* The page after the one that has just come, from the beginning again after the last. */
static void next_page(struct reader *r)
{
    r->range.keys.kind = VG_KEYS_SPAN;
    r->range.keys.end = VG_SLICE_LIT(end_key);
    r->range.keys.start = VG_SLICE_LIT(first_key);
    if (!r->range.more || r->range.n_recs == 0)
        return;
    struct vg_slice last = vg_rec_key(r->range.recs[r->range.n_recs - 1]);
    size_t n = VG_MIN(last.n, (size_t)WL_KEY_LEN);
    memcpy(r->key, last.p, n);
    r->key[n] = '\0';
    r->range.keys.start = vg_slice(r->key, n + 1);
}

static void on_read(struct vg_store_req *req);

static void reader_send(struct reader *r)
{
    struct reading *run = r->run;
    run->next(r);
    vg_range_done(&r->range);
    struct vg_range range = {.keys = r->range.keys, .limit = run->limit};
    range.req.loop = r->range.req.loop;
    range.req.done = on_read;
    r->range = range;
    r->sent_ns = bench_now_ns();
    int e = vg_storage_range(run->s, &r->range);
    if (e < 0)
        bench_die("the engine refused a read: %s", vg_err_text(e));
    run->under_way++;
}

static void count_read(struct reading *run, const struct reader *r, uint64_t now)
{
    if (run->next == next_get && r->range.n_recs != 1)
        bench_die("a key is missing: %.*s", WL_KEY_LEN, r->key);
    run->answers++;
    run->objects += r->range.n_recs;
    for (size_t i = 0; i < r->range.n_recs; i++)
        run->bytes += vg_rec_header(r->range.recs[i]).n + vg_rec_value(r->range.recs[i]).n;
    vg_hist_add(&run->latency, now - r->sent_ns);
}

static void on_read(struct vg_store_req *req)
{
    struct reader *r = VG_CONTAINER_OF(req, struct reader, range.req);
    struct reading *run = r->run;
    if (req->err < 0)
        bench_die("a read failed: %s (%s)", req->status.message, vg_err_text(req->err));
    uint64_t now = bench_now_ns();
    run->under_way--;
    count_read(run, r, now);
    if (now < run->deadline_ns && !bench_interrupted())
        reader_send(r);
    run->idle = run->under_way == 0;
}

/* Reads until the time is up; returns how long it took. */
static double read_slice(struct vigil_store *store, struct reading *run, uint32_t readers,
                         uint64_t ns)
{
    struct reader *all = bench_alloc(readers, sizeof *all);
    struct vigil_watchdog dog;
    vigil_watchdog_start(&dog, store->loop, ns);
    uint64_t begin = bench_now_ns();
    run->s = store->s;
    run->deadline_ns = begin + ns;
    vg_rng_seed(&run->rng, 7);
    for (uint32_t i = 0; i < readers; i++) {
        all[i].run = run;
        all[i].range.req.loop = store->loop;
        reader_send(&all[i]);
    }
    vg_loop_turn_until(store->loop, &run->idle);
    double secs = (double)(bench_now_ns() - begin) / 1e9;
    vigil_watchdog_stop(&dog);
    for (uint32_t i = 0; i < readers; i++)
        vg_range_done(&all[i].range);
    free(all);
    return secs;
}

static double get_rate(struct vigil_store *store, uint64_t keys, uint32_t readers, uint64_t ns,
                       double quantile, double *ret_us)
{
    struct reading run = {.next = next_get, .keys = keys, .limit = 1};
    double secs = read_slice(store, &run, readers, ns);
    *ret_us = bench_hist_us(&run.latency, quantile);
    return (double)run.answers / secs;
}

static double range_rate(struct vigil_store *store, uint64_t keys, next_fn *next, size_t limit,
                         uint64_t ns, double *ret_mb)
{
    struct reading run = {.next = next, .keys = keys, .limit = limit};
    double secs = read_slice(store, &run, 1, ns);
    *ret_mb = (double)run.bytes / 1e6 / secs;
    return (double)run.objects / secs;
}

struct count_req {
    struct vg_range range;
    bool done;
};

static void on_count(struct vg_store_req *req)
{
    VG_CONTAINER_OF(req, struct count_req, range.req)->done = true;
}

static double count_all(struct vigil_store *store, uint64_t *ret_keys)
{
    struct count_req c = {.range = {.flags = VG_RANGE_COUNT_ONLY}};
    c.range.keys = (struct vg_keys){VG_KEYS_FROM, VG_SLICE_LIT(first_key), {0}};
    c.range.req.loop = store->loop;
    c.range.req.done = on_count;
    struct vigil_watchdog dog;
    vigil_watchdog_start(&dog, store->loop, 0);
    uint64_t begin = bench_now_ns();
    int r = vg_storage_range(store->s, &c.range);
    if (r == 0)
        vg_loop_turn_until(store->loop, &c.done);
    vigil_watchdog_stop(&dog);
    if (r < 0 || c.range.req.err < 0)
        bench_die("counting failed: %s", vg_err_text(r < 0 ? r : c.range.req.err));
    *ret_keys = c.range.count;
    vg_range_done(&c.range);
    return (double)(bench_now_ns() - begin) / 1e6;
}

void vigil_read(struct vigil_store *store, uint64_t keys, uint64_t slice_ns,
                struct vigil_reads *ret_reads)
{
    struct vigil_reads *r = ret_reads;
    bench_progress("gets");
    r->gets_1 = get_rate(store, keys, 1, slice_ns, 0.5, &r->get_1_p50_us);
    r->gets_64 = get_rate(store, keys, 64, slice_ns, 0.99, &r->get_64_p99_us);
    bench_progress("ranges");
    r->page_objects = range_rate(store, keys, next_page, 500, slice_ns, &r->page_mb);
    r->span_objects = range_rate(store, keys, next_span, 10000, slice_ns, &r->span_mb);
    r->count_ms = count_all(store, &r->keys);
    if (r->keys != keys)
        bench_die("the store counts %llu keys instead of %llu", (unsigned long long)r->keys,
                  (unsigned long long)keys);
}
