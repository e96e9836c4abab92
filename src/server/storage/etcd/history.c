/* history.c - pieces of the log, for watches that are behind: more watches of etcd, from the past.
 *
 * etcd looks at such watches ten times a second, so a replay that took one for each piece would
 * crawl. A past is kept between pieces: it has a place in the history (`next`), what has come from
 * etcd and was not asked for yet, and a reader or none. A read that continues at its place gets it;
 * one that nobody continues is dropped after a while. How it comes is in legs.c.
 *
 * A past shows changes alone, so at its end it cannot tell by itself whether more is to come. It is
 * complete up to what the feed has told when it has brought the newest change that the feed knows.
 * When even that is not known (right after a start) it is asked how far it is, as in push.c. */
#include <errno.h>

#include "base/alloc.h"
#include "history_int.h"

#define IDLE_NS (5 * VG_NS_PER_S)
#define IDLE_MAX 16u
#define PUSH_FIRST_NS (150 * VG_NS_PER_MS)     /* etcd looks at such watches ten times a second */
#define BARRIER_FIRST_NS (1000 * VG_NS_PER_MS) /* and a barrier costs a revision */
#define PUSH_NS (100 * VG_NS_PER_MS)
#define RESTART_NS (200 * VG_NS_PER_MS)

static void serve(struct vg_past *p);

/* ---- life ---- */

static void free_past(struct vg_past *p)
{
    vg_timer_stop(p->e->loop, &p->timer);
    vg_legs_stop(p);
    if (!p->reader)
        p->e->n_pasts_idle--;
    vg_list_remove(&p->link);
    vg_free(p);
}

static void on_idle(struct vg_timer *t)
{
    free_past(VG_CONTAINER_OF(t, struct vg_past, timer));
}

static void answer(struct vg_past *p, int err)
{
    struct vg_log_read *read = vg_steal(p->reader);
    p->e->n_pasts_idle++;
    read->req.rev = atomic_load_explicit(&p->e->rev, memory_order_acquire);
    if (err < 0)
        vg_log_read_done(read);
    if (err == VIGIL_E_COMPACTED)
        vg_etcd_answer_compacted(p->e, &read->req);
    else
        vg_storage_answer(&read->req, err);
    if (err < 0 || p->e->n_pasts_idle > IDLE_MAX)
        free_past(p);
    else
        vg_timer_start(p->e->loop, &p->timer, IDLE_NS, on_idle);
}

/* ---- reading ---- */

static int add_event(struct vg_past *p, const Etcd__Event *ev, uint32_t sub)
{
    struct vg_log_read *read = p->reader;
    struct vg_etcd_key key;
    int r = ev->kv ? vg_etcd_key_read(&p->e->space, vg_etcd_bytes(ev->kv->key), &key)
                   : VIGIL_E_KEY_INVALID;
    if (r < 0 || !vg_keys_contain(&read->keys, vg_etcd_key_slice(&key)))
        return 0;
    if (read->n == p->cap) {
        size_t cap = p->cap ? p->cap * 2 : 64;
        struct vg_event *v = vg_reallocarray(read->events, cap, sizeof *v);
        if (!v)
            return -ENOMEM;
        read->events = v;
        p->cap = cap;
    }
    r = vg_etcd_event(p->e, ev, sub, !read->no_prev, &read->events[read->n]);
    read->n += r == 0;
    return r;
}

/* Take what has come. 1: the piece is full or ends at `to`; 0: nothing more has come. */
static int take(struct vg_past *p)
{
    struct vg_log_read *read = p->reader;
    const Etcd__Event *ev;
    while ((ev = vg_legs_peek(p))) {
        vg_rev rev = vg_event_rev(ev);
        if (rev > read->to) {
            read->upto = read->to;
            return 1;
        }
        if (rev > read->upto && read->n >= read->max)
            return 1;
        vg_legs_step(p);
        uint32_t sub = vg_etcd_place(&p->order, rev);
        if (rev < read->from)
            continue;
        read->upto = rev;
        int r = add_event(p, ev, sub);
        if (r < 0)
            return r;
    }
    return 0;
}

static void on_push(struct vg_timer *t)
{
    struct vg_past *p = VG_CONTAINER_OF(t, struct vg_past, timer);
    struct vg_etcd_engine *e = p->e;
    if (vg_legs_have_all(p)) { /* the feed may have moved on */
        serve(p);
        return;
    }
    if (e->feed.is_certain || !e->feed.is_created || e->feed.is_asking) {
        /* the change will come; or which way is right is not known yet */
    } else if (e->feed.orders_progress) {
        if (vg_legs_ask_progress(p))
            atomic_fetch_add_explicit(&e->n_progress, 1, memory_order_relaxed);
    } else {
        vg_etcd_push_barrier(e);
    }
    vg_timer_start(e->loop, t, PUSH_NS, on_push);
}

/* Give the reader what is there, or let it wait. May free the past. */
static void serve(struct vg_past *p)
{
    struct vg_log_read *read = p->reader;
    int r = take(p);
    if (r < 0) {
        answer(p, r);
        return;
    }
    if (r == 0) {
        if (vg_legs_have_all(p))
            p->complete = VG_MAX(p->complete, p->e->feed.told);
        read->upto = VG_MAX(read->upto, VG_MIN(p->complete, read->to));
    }
    vg_legs_taken(p);
    if (read->upto >= read->from) {
        p->next = read->upto + 1;
        answer(p, 0);
    } else if (!p->timer.armed) {
        vg_timer_start(p->e->loop, &p->timer,
                       p->e->feed.with_barrier ? BARRIER_FIRST_NS : PUSH_FIRST_NS, on_push);
    }
}

/* ---- what legs tell ---- */

void vg_past_came(struct vg_past *p)
{
    if (p->reader)
        serve(p);
}

void vg_past_failed(struct vg_past *p, int err)
{
    if (p->reader)
        answer(p, err);
    else
        free_past(p);
}

static void on_restart(struct vg_timer *t)
{
    struct vg_past *p = VG_CONTAINER_OF(t, struct vg_past, timer);
    int r = vg_legs_start(p, p->next);
    if (r < 0)
        vg_past_failed(p, r);
    else
        serve(p);
}

/* Who waits has got nothing of what it asked for yet (P2): again from there, with another member.
 */
void vg_past_broke(struct vg_past *p, const struct vg_grpc_status *status)
{
    struct vg_status why = {0};
    int err = vg_etcd_error(status, false, &why);
    bool is_hopeless = err == VIGIL_E_FORBIDDEN || err == VIGIL_E_UNSUPPORTED;
    if (p->reader)
        p->reader->req.status = why;
    if (!p->reader || is_hopeless) {
        vg_past_failed(p, err);
        return;
    }
    vg_legs_stop(p);
    vg_timer_start(p->e->loop, &p->timer, RESTART_NS, on_restart);
}

static struct vg_past *find(struct vg_etcd_engine *e, vg_rev from)
{
    VG_LIST_FOREACH (n, &e->pasts) {
        struct vg_past *p = VG_CONTAINER_OF(n, struct vg_past, link);
        if (!p->reader && p->next == from)
            return p;
    }
    return NULL;
}

static struct vg_past *new_past(struct vg_etcd_engine *e, vg_rev from)
{
    struct vg_past *p = vg_new(struct vg_past);
    if (!p)
        return NULL;
    p->e = e;
    p->next = from;
    vg_list_init(&p->legs);
    vg_list_push_back(&e->pasts, &p->link);
    e->n_pasts_idle++;
    if (vg_legs_start(p, from) == 0)
        return p;
    free_past(p);
    return NULL;
}

/* ---- the way in ---- */

/* True: it could be answered without etcd. */
static bool is_easy(struct vg_etcd_engine *e, struct vg_log_read *read)
{
    vg_rev compacted = atomic_load_explicit(&e->compacted, memory_order_acquire);
    read->to = VG_MIN(read->to, e->feed.told);
    read->upto = read->from - 1;
    read->req.rev = atomic_load_explicit(&e->rev, memory_order_acquire);
    if (e->is_draining)
        vg_storage_answer(&read->req, VIGIL_E_CLOSED);
    else if (read->from <= compacted)
        vg_etcd_answer_compacted(e, &read->req);
    else if (read->from > read->to)
        vg_storage_answer(&read->req, 0);
    else if (read->from > e->feed.newest_event) {
        read->upto = read->to; /* nothing has happened since */
        vg_storage_answer(&read->req, 0);
    } else
        return false;
    return true;
}

static void run(struct vg_mail *mail)
{
    struct vg_log_read *read =
        VG_CONTAINER_OF(VG_CONTAINER_OF(mail, struct vg_store_req, mail), struct vg_log_read, req);
    struct vg_etcd_engine *e = read->req.engine;
    if (is_easy(e, read))
        return;
    struct vg_past *p = find(e, read->from);
    if (!p)
        p = new_past(e, read->from);
    if (!p) {
        vg_storage_answer(&read->req, -ENOMEM);
        return;
    }
    vg_timer_stop(e->loop, &p->timer);
    e->n_pasts_idle--;
    p->reader = read;
    p->cap = 0;
    serve(p);
}

/* Thread: the watch's. */
int vg_etcd_history_read(struct vg_watch_host *h, struct vg_log_read *read)
{
    struct vg_etcd_engine *e = VG_CONTAINER_OF(h, struct vg_etcd_engine, host);
    read->req.engine = e;
    read->req.mail.run = run;
    return vg_etcd_post(e, &read->req.mail);
}

void vg_etcd_history_stop(struct vg_etcd_engine *e)
{
    VG_LIST_FOREACH_SAFE (n, &e->pasts) {
        struct vg_past *p = VG_CONTAINER_OF(n, struct vg_past, link);
        if (p->reader)
            answer(p, VIGIL_E_CLOSED);
        else
            free_past(p);
    }
}
