/* crowd.c - see crowd.h. */
#include "crowd.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "clock.h"
#include "events.h"

/* Connections that are being made at once: a server's queue of those it has not accepted is short.
 */
#define OPENING_MAX 64u
#define OPEN_LIMIT_NS (60 * VG_NS_PER_S)
#define TURN_MS 50
#define NAP_NS (200 * VG_NS_PER_US)
#define ERROR_TEXT_MAX 300u
/* Longer than a busy server pauses between two watchers: for each of them, at least and at most. */
#define LULL_EACH_NS (2 * VG_NS_PER_US)
#define LULL_MIN_NS (VG_NS_PER_MS / 2)
#define LULL_MAX_NS (2 * VG_NS_PER_MS)

struct watcher {
    struct vg_bench_reply reply;
    struct vg_bench_events events;
    struct vg_bench_crowd *crowd;
    uint32_t id;
    bool has_ended;
    struct vg_bench_bits seen; /* by number / modulus */
    uint64_t duplicates, foreign;
    _Atomic uint64_t last_ns;
};

struct vg_bench_crowd {
    struct vg_bench_crowd_opts o;
    struct vg_bench_engine engine;
    struct watcher *watchers;
    struct vg_bench_conn **conns;
    uint32_t n_conns;
    uint32_t opened, refused;
    char why[ERROR_TEXT_MAX]; /* what the first refusal said */
    bool is_running, has_failed /* memory */;
    pthread_t thread;
    struct vg_hist latency;
    _Atomic bool must_end, waits_for_lull;
    _Atomic uint64_t marks, bytes, measure_from;
    _Atomic uint32_t ended;
};

/* ---- what comes ---- */

static void on_event(void *arg, const struct vg_bench_event *e)
{
    struct watcher *w = arg;
    struct vg_bench_crowd *c = w->crowd;
    atomic_store_explicit(&c->bytes,
                          atomic_load_explicit(&c->bytes, memory_order_relaxed) + e->bytes.n,
                          memory_order_relaxed);
    if (!e->has_mark || (c->o.only_added && !vg_slice_eq(vg_bench_event_type(e, c->o.is_protobuf),
                                                         VG_SLICE_LIT("ADDED"))))
        return;
    if (e->number % c->o.modulus != w->id % c->o.modulus) {
        w->foreign++;
        return;
    }
    uint64_t at = c->engine.arrived_ns;
    int r = vg_bench_bits_add(&w->seen, e->number / c->o.modulus);
    if (r < 0)
        c->has_failed = true;
    if (r == 0) {
        w->duplicates++;
        return;
    }
    if (e->number >= atomic_load_explicit(&c->measure_from, memory_order_relaxed))
        vg_hist_add(&c->latency, at > e->sent_ns ? at - e->sent_ns : 0);
    atomic_store_explicit(&w->last_ns, at, memory_order_relaxed);
    atomic_store_explicit(&c->marks, atomic_load_explicit(&c->marks, memory_order_relaxed) + 1,
                          memory_order_release);
}

static struct watcher *watcher_of(struct vg_bench_reply *r)
{
    return VG_CONTAINER_OF(r, struct watcher, reply);
}

static void on_head(struct vg_bench_reply *r)
{
    struct vg_bench_crowd *c = watcher_of(r)->crowd;
    if (r->status == 200)
        c->opened++;
}

static void on_data(struct vg_bench_reply *r, struct vg_slice bytes)
{
    struct watcher *w = watcher_of(r);
    struct vg_bench_crowd *c = w->crowd;
    if (r->status == 200) {
        if (vg_bench_events_feed(&w->events, bytes, on_event, w) < 0)
            c->has_failed = true;
    } else if (!c->why[0]) {
        snprintf(c->why, sizeof c->why, "answered %d: %.*s", r->status,
                 (int)VG_MIN(bytes.n, (size_t)200), bytes.p);
    }
}

static void on_end(struct vg_bench_reply *r, int err)
{
    struct watcher *w = watcher_of(r);
    struct vg_bench_crowd *c = w->crowd;
    if (r->status == 200) {
        w->has_ended = true;
        atomic_fetch_add(&c->ended, 1);
        return;
    }
    c->refused++;
    if (!c->why[0] && r->status)
        snprintf(c->why, sizeof c->why, "answered %d", r->status);
    else if (!c->why[0])
        snprintf(c->why, sizeof c->why, "%s", vg_err_text(err));
}

static const struct vg_bench_reply_ops ops = {on_head, on_data, on_end};

/* ---- opening ---- */

static uint32_t healthy(const struct vg_bench_crowd *c)
{
    return c->o.n - c->o.stalled;
}

static int watch(struct vg_bench_crowd *c, struct vg_bench_conn *conn, uint32_t id)
{
    struct watcher *w = &c->watchers[id];
    VG_AUTO(buf) path = {0};
    w->reply.ops = &ops;
    w->events.is_protobuf = c->o.is_protobuf;
    w->crowd = c;
    w->id = id;
    int r = c->o.path(c->o.arg, id, &path);
    if (r == 0)
        r = vg_buf_append_byte(&path, 0);
    const char *accept =
        c->o.is_protobuf ? "application/vnd.kubernetes.protobuf;stream=watch" : "application/json";
    if (r == 0)
        r = vg_bench_conn_ask(
            conn, &w->reply,
            &(struct vg_bench_ask){.method = "GET", .path = path.p, .accept = accept});
    return r;
}

/* The next connection with its watches: those who will stall share none with the others. */
static int open_next(struct vg_bench_crowd *c, uint32_t *id)
{
    struct vg_bench_conn *conn = NULL;
    bool is_slow = *id >= healthy(c);
    uint32_t each = c->o.is_h2 ? VG_MAX(c->o.streams, 1u) : 1, end = is_slow ? c->o.n : healthy(c);
    int r = vg_bench_conn_new(&c->engine, c->o.target, c->o.is_h2, is_slow ? 16384 : 0, &conn);
    if (r < 0)
        return r;
    c->conns[c->n_conns++] = conn;
    for (uint32_t i = 0; r == 0 && i < each && *id < end; i++)
        r = watch(c, conn, (*id)++);
    return r;
}

static const char *trouble(const struct vg_bench_crowd *c)
{
    for (uint32_t i = 0; i < c->n_conns; i++)
        if (vg_bench_conn_is_dead(c->conns[i]))
            return vg_bench_conn_trouble(c->conns[i]);
    return c->why;
}

static int open_all(struct vg_bench_crowd *c, struct vg_status *status)
{
    uint32_t asked = 0, last = 0;
    uint64_t since = vg_bench_now();
    while (c->opened < c->o.n) {
        int r = 0;
        while (r == 0 && asked < c->o.n && asked - c->opened < OPENING_MAX)
            r = open_next(c, &asked);
        if (r == 0)
            r = vg_bench_engine_turn(&c->engine, TURN_MS);
        if (r < 0)
            return vg_fail(status, r, "watch %u cannot be opened: %s", asked, vg_err_text(r));
        if (c->refused)
            return vg_fail(status, VIGIL_E_NETWORK, "a watch was refused after %u: %s", c->opened,
                           c->why[0] ? c->why : trouble(c));
        if (vg_bench_is_interrupted())
            return vg_fail(status, VIGIL_E_CANCELED, "interrupted");
        if (c->opened != last && c->o.progress)
            c->o.progress(c->o.arg, c->opened);
        if (c->opened != last)
            since = vg_bench_now();
        last = c->opened;
        if (vg_bench_now() - since > OPEN_LIMIT_NS)
            return vg_fail(status, VIGIL_E_TIMEOUT, "only %u of %u watches were opened", c->opened,
                           c->o.n);
    }
    for (uint32_t i = healthy(c); i < c->o.n; i++)
        vg_bench_conn_stall(c->watchers[i].reply.conn, true);
    return 0;
}

int vg_bench_crowd_open(const struct vg_bench_crowd_opts *opts, struct vg_bench_crowd **ret,
                        struct vg_status *reterr_status)
{
    struct vg_bench_crowd *c = vg_new(struct vg_bench_crowd);
    if (!c)
        return vg_fail(reterr_status, -ENOMEM, "out of memory");
    c->o = *opts;
    c->o.modulus = VG_MAX(opts->modulus, 1u);
    atomic_store(&c->measure_from, UINT64_MAX);
    c->watchers = vg_calloc(opts->n, sizeof *c->watchers);
    c->conns = vg_calloc(opts->n, sizeof(struct vg_bench_conn *));
    int r = c->watchers && c->conns ? vg_bench_engine_init(&c->engine) : -ENOMEM;
    if (r == 0)
        r = vg_bench_engine_make_room(&c->engine, opts->n);
    r = r < 0 ? vg_fail(reterr_status, r, "%s", vg_err_text(r)) : open_all(c, reterr_status);
    if (r < 0) {
        vg_bench_crowd_free(c);
        return r;
    }
    *ret = c;
    return 0;
}

/* ---- its thread ---- */

static void *read_all(void *arg)
{
    struct vg_bench_crowd *c = arg;
    uint64_t lull = VG_MIN(VG_MAX(c->o.n * LULL_EACH_NS, LULL_MIN_NS), LULL_MAX_NS);
    while (!atomic_load(&c->must_end)) {
        c->engine.lull_ns = atomic_load(&c->waits_for_lull) ? lull : 0;
        if (vg_bench_engine_turn(&c->engine, TURN_MS) < 0)
            break;
    }
    return NULL;
}

int vg_bench_crowd_start(struct vg_bench_crowd *c)
{
    atomic_store(&c->must_end, false);
    int r = pthread_create(&c->thread, NULL, read_all, c);
    c->is_running = r == 0;
    return -r;
}

void vg_bench_crowd_stop(struct vg_bench_crowd *c)
{
    if (!c->is_running)
        return;
    atomic_store(&c->must_end, true);
    pthread_join(c->thread, NULL);
    c->is_running = false;
}

void vg_bench_crowd_free(struct vg_bench_crowd *c)
{
    if (!c)
        return;
    vg_bench_crowd_stop(c);
    for (uint32_t i = 0; i < c->n_conns; i++)
        vg_bench_conn_free(c->conns[i]);
    for (uint32_t i = 0; c->watchers && i < c->o.n; i++) {
        vg_bench_events_done(&c->watchers[i].events);
        vg_bench_bits_done(&c->watchers[i].seen);
    }
    vg_bench_engine_done(&c->engine);
    vg_free(c->conns);
    vg_free(c->watchers);
    vg_free(c);
}

/* ---- asking ---- */

uint64_t vg_bench_crowd_marks(const struct vg_bench_crowd *c)
{
    return atomic_load_explicit(&c->marks, memory_order_acquire);
}

uint64_t vg_bench_crowd_bytes(const struct vg_bench_crowd *c)
{
    return atomic_load(&c->bytes);
}

uint32_t vg_bench_crowd_ended(const struct vg_bench_crowd *c)
{
    return atomic_load(&c->ended);
}

bool vg_bench_crowd_await(const struct vg_bench_crowd *c, uint64_t marks, uint64_t limit_ns)
{
    uint64_t last = 0, since = vg_bench_now();
    for (;;) {
        uint64_t now = vg_bench_crowd_marks(c);
        if (now >= marks)
            return true;
        if (now != last)
            since = vg_bench_now();
        last = now;
        if (vg_bench_is_interrupted() || vg_bench_now() - since > limit_ns)
            return false;
        vg_bench_nap(NAP_NS);
    }
}

void vg_bench_crowd_wait_for_lull(struct vg_bench_crowd *c, bool does)
{
    atomic_store(&c->waits_for_lull, does);
}

void vg_bench_crowd_measure_from(struct vg_bench_crowd *c, uint64_t number)
{
    atomic_store(&c->measure_from, number);
}

void vg_bench_crowd_arrivals(const struct vg_bench_crowd *c, uint64_t since_ns,
                             struct vg_hist *into)
{
    for (uint32_t i = 0; i < healthy(c); i++) {
        uint64_t at = atomic_load_explicit(&c->watchers[i].last_ns, memory_order_relaxed);
        vg_hist_add(into, at > since_ns ? at - since_ns : 0);
    }
}

const struct vg_hist *vg_bench_crowd_latency(const struct vg_bench_crowd *c)
{
    return &c->latency;
}

/* ---- judging ---- */

/* Those who stalled read again, until nothing comes any more. */
static void wake_stalled(struct vg_bench_crowd *c)
{
    uint64_t last = 0, since = vg_bench_now();
    for (uint32_t i = healthy(c); i < c->o.n; i++)
        if (c->watchers[i].reply.conn)
            vg_bench_conn_stall(c->watchers[i].reply.conn, false);
    while (vg_bench_now() - since < VG_NS_PER_S) {
        if (vg_bench_engine_turn(&c->engine, TURN_MS) < 0)
            return;
        if (vg_bench_crowd_bytes(c) != last)
            since = vg_bench_now();
        last = vg_bench_crowd_bytes(c);
    }
}

static uint64_t missing(const struct watcher *w, const struct vg_bench_bits *written,
                        uint64_t numbers)
{
    uint64_t lost = 0, modulus = w->crowd->o.modulus;
    for (uint64_t k = w->id % modulus; k < numbers; k += modulus)
        lost += vg_bench_bits_has(written, k) && !vg_bench_bits_has(&w->seen, k / modulus);
    return lost;
}

void vg_bench_crowd_judge(struct vg_bench_crowd *c, const struct vg_bench_bits *written,
                          uint64_t numbers, struct vg_bench_verdict *ret)
{
    *ret = (struct vg_bench_verdict){0};
    vg_bench_crowd_stop(c);
    if (c->o.stalled)
        wake_stalled(c);
    for (uint32_t i = 0; i < c->o.n; i++) {
        const struct watcher *w = &c->watchers[i];
        if (i >= healthy(c)) {
            ret->stalled_ended += w->has_ended;
            continue;
        }
        ret->duplicates += w->duplicates;
        ret->foreign += w->foreign;
        ret->ended += w->has_ended;
        if (!w->has_ended)
            ret->lost += missing(w, written, numbers);
    }
}
