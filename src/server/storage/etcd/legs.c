/* legs.c - the watches of etcd that bring a past what it is to read; see history_int.h. What a leg
 * has brought lies in parts, one for each message, until it is read. */
#include <errno.h>

#include "base/alloc.h"
#include "history_int.h"

/* What etcd brings a watch at once (its watchBatchMaxRevs), and what a leg is to bring: less, so
 * that the first answer reaches into the next one's part. */
#define ROUND_REVS 1000u
#define LEG_REVS 990u
/* A start reads 10,000 revisions back. */
#define LEGS_MAX 12u
/* What has come and was not read: of the leg that is read, and of one that waits. */
#define PARTS_BYTES_MAX ((size_t)8 << 20)
#define LEG_BYTES_MAX ((size_t)2 << 20)

/* One message of etcd. */
struct part {
    struct vg_list link;
    struct vg_arena arena;
    Etcd__WatchResponse *res;
    size_t at, bytes;
    bool is_whole; /* no fragment follows */
};

struct leg {
    struct vg_list link; /* p->legs */
    struct vg_past *p;
    struct vg_grpc_call call;
    bool is_paused, is_created;
    struct vg_list parts;
    size_t bytes;
    size_t n_whole; /* parts that end a message */
    vg_rev from;
    vg_rev newest; /* newest change that has come, whole */
};

static struct leg *leg_at(struct vg_list *n)
{
    return VG_CONTAINER_OF(n, struct leg, link);
}

static struct leg *first_leg(const struct vg_past *p)
{
    return vg_list_is_empty(&p->legs) ? NULL : leg_at(p->legs.next);
}

static struct leg *after_leg(const struct leg *leg)
{
    return leg->link.next == &leg->p->legs ? NULL : leg_at(leg->link.next);
}

static bool is_waiting(const struct leg *leg)
{
    return leg->p->legs.next != &leg->link;
}

/* ---- their ends ---- */

static void drop_part(struct leg *leg, struct part *part)
{
    vg_list_remove(&part->link);
    leg->bytes -= part->bytes;
    leg->n_whole -= part->is_whole;
    vg_arena_done(&part->arena);
    vg_free(part);
}

static void drop_leg(struct leg *leg)
{
    vg_grpc_cancel(&leg->call);
    while (!vg_list_is_empty(&leg->parts))
        drop_part(leg, VG_CONTAINER_OF(leg->parts.next, struct part, link));
    vg_list_remove(&leg->link);
    leg->p->e->n_legs--;
    vg_free(leg);
}

void vg_legs_stop(struct vg_past *p)
{
    while (!vg_list_is_empty(&p->legs))
        drop_leg(first_leg(p));
}

/* ---- what comes ---- */

/* It has brought its part. */
static bool has_arrived(const struct leg *leg)
{
    const struct leg *next = after_leg(leg);
    return next && leg->newest >= next->from;
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

/* One that waits can rest inside a message; the one that is read must have it to its end. */
static bool has_enough(const struct leg *leg)
{
    return is_waiting(leg) ? leg->bytes > LEG_BYTES_MAX
                           : leg->bytes > PARTS_BYTES_MAX && leg->n_whole;
}

static void keep_part(struct leg *leg, struct part *take_part)
{
    const Etcd__WatchResponse *res = take_part->res;
    vg_list_push_back(&leg->parts, &take_part->link);
    leg->bytes += take_part->bytes;
    leg->n_whole += take_part->is_whole;
    if (take_part->is_whole && res->events[res->n_events - 1]->kv)
        leg->newest = vg_event_rev(res->events[res->n_events - 1]);
    if (has_arrived(leg)) {
        vg_grpc_cancel(&leg->call);
    } else if (has_enough(leg) && !leg->is_paused) {
        leg->is_paused = true;
        vg_grpc_pause(&leg->call);
    }
}

/* What says something else than changes. 0, or why the past is over. */
static int heed(struct leg *leg, const Etcd__WatchResponse *res)
{
    struct vg_past *p = leg->p;
    if (res->canceled && res->compact_revision > 0) {
        vg_etcd_saw_compacted(p->e, (vg_rev)res->compact_revision);
        return VIGIL_E_COMPACTED;
    }
    if (res->canceled)
        return VIGIL_E_NETWORK;
    leg->is_created |= res->created;
    if (!res->created && res->header && p->e->feed.orders_progress && !is_waiting(leg))
        p->complete = VG_MAX(p->complete, (vg_rev)res->header->revision);
    return 0;
}

static void on_message(struct vg_grpc_call *call, struct vg_slice message)
{
    struct leg *leg = VG_CONTAINER_OF(call, struct leg, call);
    struct vg_past *p = leg->p;
    int r;
    struct part *part = unpack(message, &r);
    if (part && part->res->n_events) {
        keep_part(leg, part);
    } else if (part) {
        r = heed(leg, part->res);
        vg_arena_done(&part->arena);
        vg_free(part);
    }
    if (r < 0)
        vg_past_failed(p, r);
    else if (!is_waiting(leg))
        vg_past_came(p);
}

static void on_end(struct vg_grpc_call *call)
{
    struct leg *leg = VG_CONTAINER_OF(call, struct leg, call);
    struct vg_grpc_status status = call->status;
    vg_past_broke(leg->p, &status);
}

/* ---- their beginnings ---- */

/* As in feed.c, from one revision earlier: etcd then tells when `from` is gone. */
static int add_leg(struct vg_past *p, vg_rev from)
{
    struct vg_etcd_engine *e = p->e;
    struct leg *leg = vg_new(struct leg);
    if (!leg)
        return -ENOMEM;
    leg->p = p;
    leg->from = from;
    leg->newest = from - 1;
    vg_list_init(&leg->parts);
    vg_list_push_back(&p->legs, &leg->link);
    e->n_legs++;
    leg->call = (struct vg_grpc_call){.on_message = on_message, .on_end = on_end};
    int r = vg_etcd_start_watch(e, from - 1, &leg->call);
    if (r < 0)
        drop_leg(leg);
    else
        atomic_fetch_add_explicit(&e->n_past_watches, 1, memory_order_relaxed);
    return r;
}

/* More of them, while the last one would need a second round. Without memory the last one goes the
 * whole way. */
static void grow(struct vg_past *p)
{
    int r = 0;
    while (r == 0 && p->e->n_legs < LEGS_MAX) {
        const struct leg *last = leg_at(p->legs.prev);
        vg_rev at = last->newest + 1;
        if (p->e->feed.told < at + ROUND_REVS)
            return;
        r = add_leg(p, at + LEG_REVS);
    }
}

int vg_legs_start(struct vg_past *p, vg_rev from)
{
    int r = add_leg(p, from);
    if (r == 0)
        grow(p);
    return r;
}

/* ---- reading ---- */

static const Etcd__Event *peek_leg(struct leg *leg)
{
    while (leg->n_whole) {
        struct part *part = VG_CONTAINER_OF(leg->parts.next, struct part, link);
        while (part->at < part->res->n_events &&
               vg_event_rev(part->res->events[part->at]) < leg->from)
            part->at++;
        if (part->at < part->res->n_events)
            return part->res->events[part->at];
        drop_part(leg, part);
    }
    return NULL;
}

const Etcd__Event *vg_legs_peek(struct vg_past *p)
{
    struct leg *leg, *next;
    while ((leg = first_leg(p))) {
        const Etcd__Event *ev = peek_leg(leg);
        next = after_leg(leg);
        if (!next || !has_arrived(leg) || (ev && vg_event_rev(ev) < next->from))
            return ev;
        p->complete = VG_MAX(p->complete, next->from - 1);
        drop_leg(leg);
        vg_legs_taken(p);
        grow(p);
    }
    return NULL;
}

void vg_legs_step(struct vg_past *p)
{
    struct leg *leg = first_leg(p);
    VG_CONTAINER_OF(leg->parts.next, struct part, link)->at++;
}

void vg_legs_taken(struct vg_past *p)
{
    struct leg *leg = first_leg(p);
    if (!leg || !leg->is_paused || (leg->n_whole && leg->bytes >= PARTS_BYTES_MAX / 2))
        return;
    leg->is_paused = false;
    vg_grpc_resume(&leg->call);
}

bool vg_legs_have_all(const struct vg_past *p)
{
    const struct leg *leg = first_leg(p);
    return leg && leg->newest >= p->e->feed.newest_event;
}

bool vg_legs_ask_progress(struct vg_past *p)
{
    struct leg *leg = first_leg(p);
    return leg && leg->is_created && vg_etcd_ask_progress(&leg->call) == 0;
}
