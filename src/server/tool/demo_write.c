/* demo_write.c - writing and watching at once, then looking back: the demo's write, watch, history
 * and conflict. */
#include <inttypes.h>
#include <stdlib.h>

#include "demo.h"

#define WRITE_MAX_NS (3 * VG_NS_PER_S)
#define WATCH_MAX_NS (20 * VG_NS_PER_S)

/* ---- the watch ---- */

struct seeing {
    struct vg_demo *d;
    size_t n;
    vg_rev last;
    const char *wrong; /* NULL: nothing so far */
    struct vg_watch *watch;
    struct vg_timer patience;
    bool is_late;
};

static const char *see(struct seeing *w, const struct vg_event *ev)
{
    size_t index;
    if (!vg_load_index(VG_DEMO_PREFIX, vg_rec_key(ev->rec), &index) || index >= VG_DEMO_OBJECTS)
        return "a key that nobody wrote";
    if (ev->rec->rev <= w->last)
        return "a change out of order";
    if (w->d->seen[index])
        return "a change twice";
    if (!vg_load_is_right(ev->rec, index))
        return "a value that nobody wrote";
    w->d->seen[index] = w->last = ev->rec->rev;
    w->n++;
    return NULL;
}

static void on_batch(struct vg_watch *watch, const struct vg_watch_batch *batch, void *arg)
{
    struct seeing *w = arg;
    (void)watch;
    for (size_t i = 0; i < batch->n && !w->wrong; i++)
        w->wrong = see(w, &batch->events[i]);
}

static void on_end(struct vg_watch *watch, int err, vg_rev compact_rev, void *arg)
{
    struct seeing *w = arg;
    (void)watch;
    (void)err;
    (void)compact_rev;
    w->watch = NULL;
    if (!w->wrong)
        w->wrong = "its own end";
}

static void on_late(struct vg_timer *t)
{
    struct seeing *w = VG_CONTAINER_OF(t, struct seeing, patience);
    w->is_late = true;
}

static int start_watch(struct seeing *w, struct vg_status *reterr_status)
{
    struct vg_slice prefix = VG_SLICE_LIT(VG_DEMO_PREFIX);
    char end[VG_PREFIX_END_MAX];
    struct vg_watch_opts opts = {
        .loop = w->d->s.loop,
        .from = vg_storage_revision(w->d->s.store) + 1,
        .on_batch = on_batch,
        .on_end = on_end,
        .arg = w,
    };
    int r = vg_prefix_keys(prefix, end, &opts.keys, reterr_status);
    if (r < 0)
        return r;
    r = vg_storage_watch(w->d->s.store, &opts, &w->watch);
    return r < 0 ? vg_fail(reterr_status, r, "cannot watch: %s", vg_err_text(r)) : 0;
}

static int finish_watch(struct seeing *w, struct vg_status *reterr_status)
{
    const struct vg_demo *d = w->d;
    vg_timer_start(d->s.loop, &w->patience, WATCH_MAX_NS, on_late);
    while (w->n < d->n && !w->wrong && !w->is_late)
        vg_loop_turn(d->s.loop, true);
    for (size_t i = 0; i < d->n && !w->wrong && !w->is_late; i++) {
        if (d->seen[i] != d->acked[i])
            w->wrong = "a revision other than the one that was acknowledged";
    }
    if (w->wrong)
        return vg_fail(reterr_status, VIGIL_E_INTERNAL, "the watch saw %s", w->wrong);
    if (w->is_late)
        return vg_fail(reterr_status, VIGIL_E_TIMEOUT, "the watch saw %zu of %zu changes", w->n,
                       d->n);
    return 0;
}

static void drop_watch(struct seeing *w)
{
    vg_timer_stop(w->d->s.loop, &w->patience);
    if (w->watch)
        vg_watch_cancel(vg_steal(w->watch));
}

/* ---- writing ---- */

static void on_ack(void *arg, size_t index, vg_rev rev, uint64_t latency_ns)
{
    struct vg_demo *d = arg;
    d->acked[index] = rev;
    d->waited[index] = latency_ns;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void say_written(struct vg_demo *d, const struct vg_load *load)
{
    char count[VG_DEMO_NUMBER_SIZE], rate[VG_DEMO_NUMBER_SIZE], syncs[VG_DEMO_NUMBER_SIZE];
    struct vg_storage_stats stats;
    vg_storage_stats(d->s.store, &stats);
    size_t nearly_all = d->n - 1 - d->n / 100;
    qsort(d->waited, d->n, sizeof *d->waited, by_size);
    vg_demo_say(d, "write", "%s objects, %d in flight, %s: %s a second",
                vg_demo_number(d->n, count), VG_LOAD_IN_FLIGHT,
                d->o->is_unsafe_no_fsync ? "NOT synced" : "each on the disk before its answer",
                vg_demo_number((uint64_t)((double)d->n * 1e9 / (double)load->took_ns), rate));
    vg_demo_say(d, "", "%s syncs for all of them, %.0f writes in a group; 99 of 100 within %.1f ms",
                vg_demo_number(stats.syncs, syncs),
                (double)stats.puts / (double)VG_MAX(stats.commits, (uint64_t)1),
                (double)d->waited[nearly_all] / 1e6);
}

static int write_all(struct vg_demo *d, struct vg_status *reterr_status)
{
    struct vg_load load = {
        .s = &d->s,
        .prefix = VG_DEMO_PREFIX,
        .total = VG_DEMO_OBJECTS,
        .max_ns = WRITE_MAX_NS,
        .on_ack = on_ack,
        .arg = d,
    };
    int r = vg_load_run(&load, reterr_status);
    if (r < 0)
        return r;
    d->n = load.n_acked;
    say_written(d, &load);
    return 0;
}

int vg_demo_write(struct vg_demo *d, struct vg_status *reterr_status)
{
    struct seeing w = {.d = d};
    char count[VG_DEMO_NUMBER_SIZE];
    int r = start_watch(&w, reterr_status);
    if (r == 0)
        r = write_all(d, reterr_status);
    if (r == 0)
        r = finish_watch(&w, reterr_status);
    drop_watch(&w);
    if (r == 0)
        vg_demo_say(d, "watch", "saw all %s changes meanwhile, each once and in order",
                    vg_demo_number(d->n, count));
    return r;
}

/* ---- history ---- */

struct counting {
    const struct vg_demo *d;
    vg_rev at;
    uint64_t n;
};

static int count_one(void *arg, const struct vg_rec *rec, struct vg_status *reterr_status)
{
    struct counting *c = arg;
    size_t index;
    if (!vg_load_index(VG_DEMO_PREFIX, vg_rec_key(rec), &index) || index >= c->d->n ||
        c->d->acked[index] != rec->rev || rec->rev > c->at)
        return vg_fail(reterr_status, VIGIL_E_INTERNAL, "the list has what was not there then");
    c->n++;
    return 0;
}

static int count_at(struct vg_demo *d, vg_rev at, uint64_t *ret_n, struct vg_status *reterr_status)
{
    struct counting c = {.d = d, .at = at};
    struct vg_each each = {
        .prefix = VG_SLICE_LIT(VG_DEMO_PREFIX), .at = at, .fn = count_one, .arg = &c};
    int r = vg_session_each(&d->s, &each, reterr_status);
    *ret_n = c.n;
    return r;
}

static uint64_t acked_upto(const struct vg_demo *d, vg_rev rev)
{
    uint64_t n = 0;
    for (size_t i = 0; i < d->n; i++)
        n += d->acked[i] <= rev;
    return n;
}

/* One object is deleted; a list of an earlier revision still has it, and nothing that came later.
 */
int vg_demo_history(struct vg_demo *d, struct vg_status *reterr_status)
{
    char text[VG_LOAD_TEXT_MAX], now_text[VG_DEMO_NUMBER_SIZE];
    struct vg_change gone = {
        .type = VG_OP_DELETE,
        .key = vg_load_key(VG_DEMO_PREFIX, 0, text),
        .expect = d->acked[0],
    };
    vg_rev then = d->acked[0] + 99;
    uint64_t n_then = 0, n_now = 0;
    int r = vg_session_change(&d->s, &gone, reterr_status);
    if (r == 0)
        r = count_at(d, then, &n_then, reterr_status);
    if (r == 0)
        r = count_at(d, gone.rev, &n_now, reterr_status);
    if (r < 0)
        return r;
    if (n_then != acked_upto(d, then) || n_now != d->n - 1)
        return vg_fail(reterr_status, VIGIL_E_INTERNAL, "a list at an old revision is wrong");
    vg_demo_say(d, "history",
                "one deleted, %s left; the list at revision %" PRIu64 " still has its %" PRIu64,
                vg_demo_number(n_now, now_text), then, n_then);
    return 0;
}

/* ---- conflict ---- */

int vg_demo_conflict(struct vg_demo *d, struct vg_status *reterr_status)
{
    char text[VG_LOAD_TEXT_MAX];
    struct vg_slice key = vg_load_key(VG_DEMO_PREFIX, 1, text);
    struct vg_change late = {
        .type = VG_OP_PUT,
        .key = key,
        .value = VG_SLICE_LIT("too late"),
        .expect = d->acked[1] - 1,
    };
    struct vg_rec *rec;
    int r = vg_session_change(&d->s, &late, reterr_status);
    if (r != VIGIL_E_CONFLICT)
        return r < 0 ? r : vg_fail(reterr_status, VIGIL_E_INTERNAL, "a late write was not refused");
    r = vg_session_get(&d->s, key, 0, &rec, reterr_status);
    if (r < 0)
        return r;
    bool is_same = rec->rev == d->acked[1] && vg_load_is_right(rec, 1);
    vg_rec_unref(rec);
    if (!is_same)
        return vg_fail(reterr_status, VIGIL_E_INTERNAL, "a refused write changed its key");
    vg_demo_say(d, "conflict",
                "a write that expects revision %" PRIu64 " of a key at %" PRIu64
                " is refused, nothing changes",
                late.expect, late.prev_rev);
    return 0;
}
