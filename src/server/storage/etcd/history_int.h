/* history_int.h - a past: a place in the history, and the watches of etcd that bring what follows
 * it.
 *
 * etcd brings a watch from the past a thousand revisions every tenth of a second, however many
 * watches there are. So a long way is gone in legs, each a watch of its own that begins where the
 * one before it shall end: all of them get their thousand at the same time. A leg is ended as soon
 * as it has brought a change of the next one's part, and what it brought beyond is left out.
 *
 *   p->next                    legs.next->from                        told
 *      |--- first leg: read ------|--- waits to be read ---| ... |------|
 *
 * Invariants:
 *   P1 legs are in order, the first is read from, the last has no end.
 *   P2 outside of serve() a reader has been given nothing: p->next is where it begins.
 *   P3 all pasts together have at most LEGS_MAX legs, or one each; one that waits is paused beyond
 *      LEG_BYTES_MAX. */
#ifndef VG_STORAGE_ETCD_HISTORY_INT_H
#define VG_STORAGE_ETCD_HISTORY_INT_H

#include "engine.h"

struct vg_past {
    struct vg_list link; /* e->pasts */
    struct vg_etcd_engine *e;
    struct vg_list legs; /* P1 */
    vg_rev next;         /* first revision that was not read */
    vg_rev complete;     /* nothing up to here is still to come */
    struct vg_etcd_order order;
    struct vg_log_read *reader; /* NULL: idle */
    size_t cap;                 /* of the reader's events */
    struct vg_timer timer;      /* idle: its end; else: asks how far it is, or begins again */
};

/* legs.c */
/* Watches from `from` on. It has no legs yet. */
VG_CHECK int vg_legs_start(struct vg_past *p, vg_rev from);
void vg_legs_stop(struct vg_past *p);
/* The next event that has come whole, and stepping over it; NULL: none. Raises p->complete. */
const Etcd__Event *vg_legs_peek(struct vg_past *p);
void vg_legs_step(struct vg_past *p);
/* Have they brought all that the feed knows of? */
bool vg_legs_have_all(const struct vg_past *p);
/* What was taken made room. */
void vg_legs_taken(struct vg_past *p);
/* Ask how far it is. False: it cannot be asked yet. */
bool vg_legs_ask_progress(struct vg_past *p);
static inline vg_rev vg_event_rev(const Etcd__Event *ev)
{
    return ev->kv ? (vg_rev)ev->kv->mod_revision : 0;
}

/* history.c: what legs tell. Each may free the past. */
void vg_past_came(struct vg_past *p);                                       /* something */
void vg_past_failed(struct vg_past *p, int err);                            /* no hope */
void vg_past_broke(struct vg_past *p, const struct vg_grpc_status *status); /* a stream has ended */

#endif
