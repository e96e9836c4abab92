/* history.c - pieces of the log, for watches that are behind: a second watch of etcd, from the
 * past.
 *
 * etcd replays a thousand revisions every tenth of a second, so a replay that took a watch of etcd
 * for each piece would crawl. A past is kept between pieces: it has a place in the history
 * (`next`), what has come from etcd and was not asked for yet, and a reader or none. A read that
 * continues at its place gets it; one that nobody continues is dropped after a while.
 *
 * A past shows changes alone, so at its end it cannot tell by itself whether more is to come. It is
 * complete up to what the feed has told when it has brought the newest change that the feed knows.
 * When even that is not known (right after a start) it is asked how far it is, as in push.c.
 * What has come but was not read is bounded: beyond PARTS_BYTES_MAX the stream is paused. */
#include <errno.h>

#include "base/alloc.h"
#include "engine.h"

#define PARTS_BYTES_MAX ((size_t)8 << 20)
#define IDLE_NS (5 * VG_NS_PER_S)
#define IDLE_MAX 16u
#define PUSH_FIRST_NS (150 * VG_NS_PER_MS)     /* etcd looks at such watches ten times a second */
#define BARRIER_FIRST_NS (1000 * VG_NS_PER_MS) /* and a barrier costs a revision */
#define PUSH_NS (100 * VG_NS_PER_MS)
#define RESTART_NS (200 * VG_NS_PER_MS)

/* One message of etcd. */
struct part {
    struct vg_list link;
    struct vg_arena arena;
    Etcd__WatchResponse *res;
    size_t at, bytes;
    bool is_whole; /* no fragment follows */
};

struct past {
    struct vg_list link; /* e->pasts */
    struct vg_etcd_engine *e;
    struct vg_grpc_call call;
    bool is_up, is_paused, is_created;
    struct vg_list parts;
    size_t bytes;
    size_t n_whole;  /* parts that end a message */
    vg_rev next;     /* first revision that was not read */
    vg_rev newest;   /* newest change that has come, whole */
    vg_rev complete; /* nothing up to here is still to come */
    struct vg_etcd_order order;
    struct vg_log_read *reader; /* NULL: idle */
    size_t cap;                 /* of the reader's events */
    struct vg_timer timer;      /* idle: its end; else: asks how far it is */
};

static void serve(struct past *p);

/* ---- life ---- */

static void drop_part(struct past *p, struct part *part)
{
    vg_list_remove(&part->link);
    p->bytes -= part->bytes;
    p->n_whole -= part->is_whole;
    vg_arena_done(&part->arena);
    vg_free(part);
}

static void free_past(struct past *p)
{
    vg_timer_stop(p->e->loop, &p->timer);
    vg_grpc_cancel(&p->call);
    while (!vg_list_is_empty(&p->parts))
        drop_part(p, VG_CONTAINER_OF(p->parts.next, struct part, link));
    if (!p->reader)
        p->e->n_pasts_idle--;
    vg_list_remove(&p->link);
    vg_free(p);
}

static void on_idle(struct vg_timer *t)
{
    free_past(VG_CONTAINER_OF(t, struct past, timer));
}

static void answer(struct past *p, int err)
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

static int add_event(struct past *p, const Etcd__Event *ev, uint32_t sub)
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

/* The next event of those that are whole; NULL: none has come. */
static const Etcd__Event *peek(struct past *p, struct part **ret_part)
{
    while (p->n_whole) {
        struct part *part = VG_CONTAINER_OF(p->parts.next, struct part, link);
        if (part->at < part->res->n_events) {
            *ret_part = part;
            return part->res->events[part->at];
        }
        drop_part(p, part);
    }
    return NULL;
}

/* Take what has come. 1: the piece is full or ends at `to`; 0: nothing more has come. */
static int take(struct past *p)
{
    struct vg_log_read *read = p->reader;
    struct part *part;
    const Etcd__Event *ev;
    while ((ev = peek(p, &part))) {
        vg_rev rev = ev->kv ? (vg_rev)ev->kv->mod_revision : 0;
        if (rev > read->to) {
            read->upto = read->to;
            return 1;
        }
        if (rev > read->upto && read->n >= read->max)
            return 1;
        part->at++;
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

/* Has it brought all that the feed knows of? */
static bool has_ended(const struct past *p)
{
    return p->newest >= p->e->feed.newest_event;
}

static void on_push(struct vg_timer *t)
{
    struct past *p = VG_CONTAINER_OF(t, struct past, timer);
    struct vg_etcd_engine *e = p->e;
    if (has_ended(p)) { /* the feed may have moved on */
        serve(p);
        return;
    }
    if (e->feed.is_certain || !e->feed.is_created || e->feed.is_asking) {
        /* the change will come; or which way is right is not known yet */
    } else if (e->feed.orders_progress) {
        if (p->is_created && vg_etcd_ask_progress(&p->call) == 0)
            atomic_fetch_add_explicit(&e->n_progress, 1, memory_order_relaxed);
    } else {
        vg_etcd_push_barrier(e);
    }
    vg_timer_start(e->loop, t, PUSH_NS, on_push);
}

/* Give the reader what is there, or let it wait. May free the past. */
static void serve(struct past *p)
{
    struct vg_log_read *read = p->reader;
    int r = take(p);
    if (r < 0) {
        answer(p, r);
        return;
    }
    if (r == 0) {
        if (has_ended(p))
            p->complete = VG_MAX(p->complete, p->e->feed.told);
        read->upto = VG_MAX(read->upto, VG_MIN(p->complete, read->to));
    }
    if (p->is_paused && p->bytes < PARTS_BYTES_MAX / 2) {
        p->is_paused = false;
        vg_grpc_resume(&p->call);
    }
    if (read->upto >= read->from) {
        p->next = read->upto + 1;
        answer(p, 0);
    } else if (!p->timer.armed) {
        vg_timer_start(p->e->loop, &p->timer,
                       p->e->feed.with_barrier ? BARRIER_FIRST_NS : PUSH_FIRST_NS, on_push);
    }
}

/* ---- the stream ---- */

static void fail(struct past *p, int err)
{
    p->is_up = false;
    if (p->reader)
        answer(p, err);
    else
        free_past(p);
}

static int start(struct past *p, vg_rev from);

static void on_restart(struct vg_timer *t)
{
    struct past *p = VG_CONTAINER_OF(t, struct past, timer);
    int r = start(p, p->next);
    if (r < 0)
        fail(p, r);
    else
        serve(p);
}

/* Who waits has got nothing of what it asked for yet: again from there, with another member. */
static void on_end(struct vg_grpc_call *call)
{
    struct past *p = VG_CONTAINER_OF(call, struct past, call);
    struct vg_status status = {0};
    int err = vg_etcd_error(&call->status, false, &status);
    bool is_hopeless = err == VIGIL_E_FORBIDDEN || err == VIGIL_E_UNSUPPORTED;
    if (p->reader)
        p->reader->req.status = status;
    if (!p->reader || is_hopeless) {
        fail(p, err);
        return;
    }
    while (!vg_list_is_empty(&p->parts))
        drop_part(p, VG_CONTAINER_OF(p->parts.next, struct part, link));
    p->is_up = p->is_created = p->is_paused = false;
    vg_timer_start(p->e->loop, &p->timer, RESTART_NS, on_restart);
}

static struct part *unpack(struct vg_slice message, int *ret_err)
{
    struct part *part = vg_new(struct part);
    int r =
        part ? vg_etcd_unpack(&etcd__watch_response__descriptor, message, &part->arena, &part->res)
             : -ENOMEM;
    *ret_err = r;
    if (r == 0) {
        part->bytes = message.n;
        part->is_whole = !part->res->fragment;
        return part;
    }
    if (part)
        vg_arena_done(&part->arena);
    vg_free(part);
    return NULL;
}

static void keep_part(struct past *p, struct part *take_part)
{
    const Etcd__WatchResponse *res = take_part->res;
    vg_list_push_back(&p->parts, &take_part->link);
    p->bytes += take_part->bytes;
    p->n_whole += take_part->is_whole;
    if (take_part->is_whole && res->events[res->n_events - 1]->kv)
        p->newest = (vg_rev)res->events[res->n_events - 1]->kv->mod_revision;
    if (p->bytes > PARTS_BYTES_MAX && p->n_whole && !p->is_paused) {
        p->is_paused = true;
        vg_grpc_pause(&p->call);
    }
}

/* What says something else than changes. 0, or why the past is over. */
static int heed(struct past *p, const Etcd__WatchResponse *res)
{
    if (res->canceled && res->compact_revision > 0) {
        vg_etcd_saw_compacted(p->e, (vg_rev)res->compact_revision);
        return VIGIL_E_COMPACTED;
    }
    if (res->canceled)
        return VIGIL_E_NETWORK;
    p->is_created |= res->created;
    if (!res->created && res->header && p->e->feed.orders_progress)
        p->complete = VG_MAX(p->complete, (vg_rev)res->header->revision);
    return 0;
}

static void on_message(struct vg_grpc_call *call, struct vg_slice message)
{
    struct past *p = VG_CONTAINER_OF(call, struct past, call);
    int r;
    struct part *part = unpack(message, &r);
    if (part && part->res->n_events) {
        keep_part(p, part);
    } else if (part) {
        r = heed(p, part->res);
        vg_arena_done(&part->arena);
        vg_free(part);
    }
    if (r < 0)
        fail(p, r);
    else if (p->reader)
        serve(p);
}

/* As in feed.c, from one revision earlier: etcd then tells when `from` is gone. */
static int start(struct past *p, vg_rev from)
{
    struct vg_etcd_engine *e = p->e;
    struct vg_grpc_msg *msg = NULL;
    int r = vg_etcd_watch_request(e, from - 1, &msg);
    if (r < 0)
        return r;
    p->newest = from - 1;
    p->call = (struct vg_grpc_call){
        .path = vg_etcd_watch.path,
        .msg = msg,
        .fields = vg_etcd_require_leader,
        .n_fields = VG_ARRAY_LEN(vg_etcd_require_leader),
        .flags = vg_etcd_watch.flags | VG_GRPC_WAIT,
        .on_message = on_message,
        .on_end = on_end,
    };
    r = vg_grpc_start(vg_etcd_client_pool(e->client), &p->call);
    p->is_up = r == 0;
    return r;
}

static struct past *find(struct vg_etcd_engine *e, vg_rev from)
{
    VG_LIST_FOREACH (n, &e->pasts) {
        struct past *p = VG_CONTAINER_OF(n, struct past, link);
        if (!p->reader && p->is_up && p->next == from)
            return p;
    }
    return NULL;
}

static struct past *new_past(struct vg_etcd_engine *e, vg_rev from)
{
    struct past *p = vg_new(struct past);
    if (!p)
        return NULL;
    p->e = e;
    p->next = from;
    vg_list_init(&p->parts);
    vg_list_push_back(&e->pasts, &p->link);
    e->n_pasts_idle++;
    if (start(p, from) == 0)
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
    struct past *p = find(e, read->from);
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
        struct past *p = VG_CONTAINER_OF(n, struct past, link);
        if (p->reader)
            answer(p, VIGIL_E_CLOSED);
        else
            free_past(p);
    }
}
