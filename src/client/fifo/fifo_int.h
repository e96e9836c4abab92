/* fifo_int.h - the queue's struct, shared by its two kinds: fifo.c (in order) and by_key.c. */
#ifndef VG_CLIENT_FIFO_FIFO_INT_H
#define VG_CLIENT_FIFO_FIFO_INT_H

#include "base/list.h"
#include "base/map.h"
#include "fifo.h"

/* A run of entries: the batch, or the deltas of one key. */
struct vg_delta_run {
    struct vg_delta *v;
    size_t n, cap;
};
/* Room for so many in all. 0 or -ENOMEM. */
VG_CHECK int vg_delta_run_reserve(struct vg_delta_run *run, size_t n);
void vg_delta_run_clear(struct vg_delta_run *run); /* gives back what the entries hold */
void vg_delta_run_done(struct vg_delta_run *run);
void vg_delta_done(struct vg_delta *d);

struct vg_fifo {
    struct vg_fifo_opts opts; /* const after init */
    struct vg_mutex mu;       /* rank CLIENT_FIFO */
    struct vg_cond ready;     /* an entry, the end of processing, the end */
    struct vg_cond room;      /* not full any more */
    /* ATOMIC, ORDERED: a ring. */
    struct vg_delta *ring VG_GUARDED_BY(mu);
    size_t cap, head, n VG_GUARDED_BY(mu);
    struct vg_map batch_keys; /* of the batch being put together */
    /* BY_KEY: struct vg_keyed by key, and in the order of their first delta. */
    struct vg_map by_key VG_GUARDED_BY(mu);
    struct vg_list order VG_GUARDED_BY(mu);
    struct vg_delta_run batch; /* the consumer's */
    size_t initial VG_GUARDED_BY(mu);
    bool is_populated, is_closed, is_processing, was_told_full VG_GUARDED_BY(mu);
};

/* by_key.c; all with the lock held. */
VG_CHECK int vg_keyed_put(struct vg_fifo *f, enum vg_delta_type type, const struct vigil_object *o);
VG_CHECK int vg_keyed_replace(struct vg_fifo *f, const struct vigil_object *const *objects,
                              size_t n);
VG_CHECK int vg_keyed_resync(struct vg_fifo *f);
/* The deltas of the first key become the batch; there is one. */
void vg_keyed_take(struct vg_fifo *f);
void vg_keyed_done(struct vg_fifo *f);

/* in_order.c; the same. */
VG_CHECK int vg_ordered_put(struct vg_fifo *f, enum vg_delta_type type,
                            const struct vigil_object *o);
VG_CHECK int vg_ordered_put_all(struct vg_fifo *f, enum vg_delta_type type,
                                struct vg_delta_all *take_all);
VG_CHECK int vg_ordered_replace(struct vg_fifo *f, const struct vigil_object *const *objects,
                                size_t n);
VG_CHECK int vg_ordered_resync(struct vg_fifo *f);
void vg_ordered_take(struct vg_fifo *f);
void vg_ordered_done(struct vg_fifo *f);

#endif
