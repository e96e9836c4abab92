/* fifo.h - the queue between a reflector and the one consumer that keeps a store.
 *
 * Three ways to queue:
 *   ATOMIC   events in the order of the server; a relist is one entry (REPLACED_ALL), and so is a
 *            resync (SYNC_ALL); what a relist deletes the consumer finds out. The default.
 *   ORDERED  the same order, but a relist becomes an entry per object, deletions first.
 *   BY_KEY   the deltas of one object are handed out together (DeltaFIFO).
 * The latter two are told which objects the consumer knows: `known`.
 *
 * Entries are popped in batches: at most batch_max entries with distinct keys, all of the first
 * list or none, special entries alone; BY_KEY all of one key. A batch is processed without the
 * lock. While one is processed and two batches wait, the queue is full: producers wait, or are
 * told.
 *
 * Invariants: F1 an entry holds references of its objects. F2 one batch is processed at a time. F3
 * `initial` counts the entries (BY_KEY: keys) of the first list that were not processed; it falls
 * only after processing.
 *
 * Thread: any, but one producer and one consumer are meant. process() must not call the queue,
 * except for what is said to be allowed. */
#ifndef VG_CLIENT_FIFO_FIFO_H
#define VG_CLIENT_FIFO_FIFO_H

#include "client/store/store_int.h"

enum vg_fifo_mode { VG_FIFO_ATOMIC, VG_FIFO_ORDERED, VG_FIFO_BY_KEY };

enum vg_delta_type {
    VG_DELTA_ADDED,
    VG_DELTA_UPDATED,
    VG_DELTA_DELETED,
    VG_DELTA_REPLACED, /* one object of a relist */
    VG_DELTA_SYNC,     /* told again from the store */
    /* Of ATOMIC alone, each a batch of its own: */
    VG_DELTA_REPLACED_ALL,
    VG_DELTA_SYNC_ALL,
    VG_DELTA_BOOKMARK,
};

/* A whole relist, or a bookmark with no objects. */
struct vg_delta_all {
    size_t version_n;
    char version[VG_OBJECT_VERSION_MAX];
    size_t n;
    const struct vigil_object *objects[];
};

struct vg_delta {
    uint8_t type;      /* enum vg_delta_type */
    bool is_tombstone; /* DELETED: nobody saw it; the object is the last state known */
    union {
        const struct vigil_object *o;
        struct vg_delta_all *all; /* REPLACED_ALL, BOOKMARK; NULL in SYNC_ALL */
    };
};

struct vg_batch {
    const struct vg_delta *v;
    size_t n;
    bool is_initial; /* of the first list */
};

struct vg_fifo_opts {
    enum vg_fifo_mode mode;
    struct vigil_store *known; /* ORDERED, BY_KEY: what the consumer has. ATOMIC: NULL */
    size_t batch_max;          /* 0 = VG_FIFO_BATCH_MAX */
    /* Of vigil_informer_opts: a reference of the same object or another, NULL rejects. Called on
     * the producer's thread, once for each object but tombstones and SYNC. */
    const struct vigil_object *(*transform)(void *arg, const struct vigil_object *o);
    void *transform_arg;
    /* Let producers wait while the queue is full. Without it they ask vg_fifo_is_full. */
    bool waits_when_full;
    /* A producer was told that the queue is full, and it is not any more. On the consumer's thread.
     */
    void (*on_room)(void *arg);
    void *on_room_arg;
};

/* client-go's: enough to spread the cost of a lock, few enough to hand over soon. */
#define VG_FIFO_BATCH_MAX 1000u

struct vg_fifo;

/* 0; -ENOMEM; VIGIL_E_INVALID: `known` with ATOMIC, or none without. */
VG_CHECK int vg_fifo_new(const struct vg_fifo_opts *opts, struct vg_fifo **ret);
void vg_fifo_free(struct vg_fifo *f); /* nobody waits in it. NULL allowed */

/* ---- the producer ---- */

/* ADDED, UPDATED or DELETED. The object is borrowed. 0; -ENOMEM; VIGIL_E_INVALID: the transform
 * rejected it. Then the event was not queued. */
VG_CHECK int vg_fifo_put(struct vg_fifo *f, enum vg_delta_type type, const struct vigil_object *o);
/* A list: these and no others. 0; VIGIL_E_INVALID: the transform rejected one of them and nothing
 * was queued; VIGIL_E_TOO_LARGE: the version is; -ENOMEM: BY_KEY, a part may be queued: list again.
 */
VG_CHECK int vg_fifo_replace(struct vg_fifo *f, const struct vigil_object *const *objects, size_t n,
                             struct vg_slice version);
/* Tell of all known objects again. 0 or -ENOMEM. */
VG_CHECK int vg_fifo_resync(struct vg_fifo *f);
/* ATOMIC queues it, the others let it pass. 0; VIGIL_E_TOO_LARGE; -ENOMEM. */
VG_CHECK int vg_fifo_bookmark(struct vg_fifo *f, struct vg_slice version);
/* Two batches wait while one is processed? Then on_room will be called. */
bool vg_fifo_is_full(struct vg_fifo *f);

/* ---- the consumer ---- */

/* Its result is that of the pop. */
typedef int vg_fifo_process_fn(void *arg, const struct vg_batch *batch);
/* Process the next batch: 1. 0: there is none, and `waits` is false. VIGIL_E_CLOSED: closed and
 * empty. What process() returns, if negative; the batch is gone all the same. */
VG_CHECK int vg_fifo_pop(struct vg_fifo *f, bool waits, vg_fifo_process_fn *process, void *arg);

/* ---- any ---- */

/* Something came before any list, or all of the first list has been processed. May be called from
 * process(), and so may the next two. */
bool vg_fifo_has_synced(struct vg_fifo *f);
size_t vg_fifo_backlog(struct vg_fifo *f); /* entries that wait; BY_KEY: keys */
/* Whoever waits in a pop returns; what is queued can still be popped. */
void vg_fifo_close(struct vg_fifo *f);

#endif
