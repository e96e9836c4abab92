/* informers.c - see informers.h.
 *
 * WAITING   its time has come        -> WATCHING  from the last version, or LISTING without one
 * WATCHING  broken, ended, 429, 5xx  -> WAITING   version kept
 * WATCHING  410, ERROR               -> WAITING   version forgotten
 * LISTING   the list has come        -> WAITING   at once, with its version
 * LISTING   broken, refused          -> WAITING */
#include "informers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "clock.h"
#include "events.h"

#define VERSION_SIZE 24u
#define WAIT_MIN_NS (50 * VG_NS_PER_MS)
#define WAIT_MAX_NS VG_NS_PER_S
#define LIST_HEAD_MAX 4096u

enum state { WAITING, WATCHING, LISTING };

struct informer {
    struct vg_bench_reply reply;
    struct vg_bench_events events;
    struct vg_bench_informers *all;
    uint32_t id;
    enum state state;
    char version[VERSION_SIZE]; /* "": must list */
    struct vg_buf head;         /* of a list that comes */
    uint64_t due_ns, wait_ns;
    bool has_broken, is_caught_up, is_expired, was_told /* this watch has given events */;
};

struct vg_bench_informers {
    struct vg_bench_informers_opts o;
    struct informer *v;
    struct vg_bench_conn **conns;
    uint32_t n_conns;
    uint64_t number, version; /* to catch up with */
    struct vg_bench_informers_count count;
    int err;
};

static void set_version(struct informer *i, struct vg_slice v)
{
    if (v.n && v.n < sizeof i->version)
        snprintf(i->version, sizeof i->version, "%.*s", VG_SLICE_ARG(v));
}

static void catch_up(struct informer *i)
{
    if (i->is_caught_up)
        return;
    i->is_caught_up = true;
    i->all->count.caught_up++;
    i->all->count.caught_up_ns = vg_bench_now();
}

static void check_version(struct informer *i)
{
    if (i->all->version && i->version[0] && strtoull(i->version, NULL, 10) >= i->all->version)
        catch_up(i);
}

static void wait_again(struct informer *i, bool is_at_once)
{
    i->wait_ns = is_at_once ? 0 : VG_MIN(VG_MAX(i->wait_ns * 2, WAIT_MIN_NS), WAIT_MAX_NS);
    i->due_ns = vg_bench_now() + i->wait_ns;
    i->state = WAITING;
}

/* ---- what comes ---- */

static void on_event(void *arg, const struct vg_bench_event *e)
{
    struct informer *i = arg;
    bool is_protobuf = i->all->o.is_protobuf;
    if (vg_slice_eq(vg_bench_event_type(e, is_protobuf), VG_SLICE_LIT("ERROR"))) {
        i->is_expired = true;
        return;
    }
    set_version(i, vg_bench_event_version(e, is_protobuf));
    i->was_told = true;
    if (e->has_mark && e->number == i->all->number)
        catch_up(i);
    check_version(i);
}

static struct informer *informer_of(struct vg_bench_reply *r)
{
    return VG_CONTAINER_OF(r, struct informer, reply);
}

static void on_head(struct vg_bench_reply *r)
{
    struct informer *i = informer_of(r);
    if (i->state == WATCHING && r->status == 200)
        i->all->count.watching++;
    if (i->state == WATCHING && r->status == 410)
        i->is_expired = true;
}

static void on_data(struct vg_bench_reply *r, struct vg_slice bytes)
{
    struct informer *i = informer_of(r);
    int err = 0;
    if (r->status != 200)
        return;
    if (i->state == WATCHING)
        err = vg_bench_events_feed(&i->events, bytes, on_event, i);
    else if (i->head.n < LIST_HEAD_MAX)
        err = vg_buf_append(&i->head, bytes.p, VG_MIN(bytes.n, LIST_HEAD_MAX - i->head.n));
    if (i->state == LISTING)
        i->all->count.list_bytes += bytes.n;
    if (err < 0)
        i->all->err = err;
}

static void watch_ended(struct informer *i, bool was_open)
{
    struct vg_bench_informers *x = i->all;
    vg_bench_events_done(&i->events);
    if (was_open) {
        x->count.watching--;
        x->count.broken += !i->has_broken;
        i->has_broken = true;
        if (!x->count.broke_ns)
            x->count.broke_ns = vg_bench_now();
    }
    if (i->is_expired)
        i->version[0] = 0;
    wait_again(i, i->is_expired || (was_open && i->was_told));
    i->is_expired = i->was_told = false;
}

static void on_end(struct vg_bench_reply *r, int err)
{
    struct informer *i = informer_of(r);
    if (i->state == WATCHING) {
        watch_ended(i, r->status == 200);
        return;
    }
    bool is_good = err == 0 && r->status == 200;
    if (is_good) {
        i->all->count.relists++;
        set_version(i, vg_bench_list_version(vg_buf_slice(&i->head), i->all->o.is_protobuf));
        check_version(i);
    }
    vg_buf_done(&i->head);
    wait_again(i, is_good && i->version[0]);
}

static const struct vg_bench_reply_ops ops = {on_head, on_data, on_end};

/* ---- what they ask ---- */

static int conn_of(struct vg_bench_informers *x, uint32_t id, struct vg_bench_conn **ret)
{
    uint32_t slot = x->o.is_h2 ? id / x->o.streams : id;
    if (x->conns[slot] && vg_bench_conn_is_dead(x->conns[slot])) {
        vg_bench_conn_free(x->conns[slot]);
        x->conns[slot] = NULL;
    }
    int r = 0;
    if (!x->conns[slot])
        r = vg_bench_conn_new(x->o.engine, x->o.target, x->o.is_h2, 0, &x->conns[slot]);
    *ret = x->conns[slot];
    return r;
}

static int try_again(struct informer *i)
{
    struct vg_bench_informers *x = i->all;
    struct vg_bench_conn *conn = NULL;
    VG_AUTO(buf) path = {0};
    int r = vg_buf_append_slice(&path, vg_slice_str(x->o.collection));
    if (r == 0 && i->version[0])
        r = vg_buf_printf(
            &path, "?watch=1&allowWatchBookmarks=true&timeoutSeconds=7200&resourceVersion=%s",
            i->version);
    if (r == 0)
        r = vg_buf_append_byte(&path, 0);
    if (r < 0)
        return r;
    x->count.tries++;
    i->state = i->version[0] ? WATCHING : LISTING;
    i->events.is_protobuf = x->o.is_protobuf;
    const char *accept = !x->o.is_protobuf ? "application/json"
                         : i->version[0]   ? "application/vnd.kubernetes.protobuf;stream=watch"
                                           : "application/vnd.kubernetes.protobuf";
    r = conn_of(x, i->id, &conn);
    if (r == 0)
        r = vg_bench_conn_ask(
            conn, &i->reply,
            &(struct vg_bench_ask){.method = "GET", .path = path.p, .accept = accept});
    if (r < 0)
        wait_again(i, false); /* no memory, or nobody there: both may pass */
    return 0;
}

int vg_bench_informers_tend(struct vg_bench_informers *x)
{
    uint64_t now = vg_bench_now();
    for (uint32_t k = 0; x->err == 0 && k < x->o.n; k++)
        if (x->v[k].state == WAITING && now >= x->v[k].due_ns)
            x->err = try_again(&x->v[k]);
    return x->err;
}

/* ---- their life ---- */

int vg_bench_informers_new(const struct vg_bench_informers_opts *opts,
                           struct vg_bench_informers **ret)
{
    struct vg_bench_informers *x = vg_new(struct vg_bench_informers);
    if (!x)
        return -ENOMEM;
    x->o = *opts;
    x->o.streams = VG_MAX(opts->streams, 1u);
    x->number = UINT64_MAX;
    x->n_conns = x->o.is_h2 ? (opts->n + x->o.streams - 1) / x->o.streams : opts->n;
    x->v = vg_calloc(opts->n, sizeof *x->v);
    x->conns = vg_calloc(x->n_conns, sizeof(struct vg_bench_conn *));
    if (!x->v || !x->conns) {
        vg_bench_informers_free(x);
        return -ENOMEM;
    }
    for (uint32_t k = 0; k < opts->n; k++) {
        x->v[k] = (struct informer){.reply.ops = &ops, .all = x, .id = k};
        set_version(&x->v[k], vg_slice_str(opts->version));
    }
    *ret = x;
    return 0;
}

void vg_bench_informers_free(struct vg_bench_informers *x)
{
    if (!x)
        return;
    for (uint32_t k = 0; x->conns && k < x->n_conns; k++)
        vg_bench_conn_free(x->conns[k]);
    for (uint32_t k = 0; x->v && k < x->o.n; k++) {
        vg_bench_events_done(&x->v[k].events);
        vg_buf_done(&x->v[k].head);
    }
    vg_free(x->conns);
    vg_free(x->v);
    vg_free(x);
}

void vg_bench_informers_expect(struct vg_bench_informers *x, uint64_t number, uint64_t version)
{
    if (number != x->number) {
        x->count.caught_up = 0;
        x->count.caught_up_ns = 0;
        for (uint32_t k = 0; k < x->o.n; k++)
            x->v[k].is_caught_up = false;
    }
    x->number = number;
    x->version = version;
    for (uint32_t k = 0; version && k < x->o.n; k++)
        check_version(&x->v[k]);
}

void vg_bench_informers_count(const struct vg_bench_informers *x,
                              struct vg_bench_informers_count *ret)
{
    *ret = x->count;
}
