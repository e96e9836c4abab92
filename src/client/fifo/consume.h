/* consume.h - the consumer of a queue: brings each batch into the store, then tells of it.
 * What is told follows from what the store had, not from what the event was called: an object that
 * is there is updated, one that is not is added. When a callback runs, the store shows its event.
 * Thread: one at a time; callbacks run on the caller's. */
#ifndef VG_CLIENT_FIFO_CONSUME_H
#define VG_CLIENT_FIFO_CONSUME_H

#include "fifo.h"

/* Objects are borrowed for the call. All may be NULL. */
struct vg_consumer_calls {
    void (*on_add)(void *arg, const struct vigil_object *o, bool is_initial);
    void (*on_update)(void *arg, const struct vigil_object *before, const struct vigil_object *o);
    void (*on_delete)(void *arg, const struct vigil_object *o, bool is_tombstone);
    void *arg;
};

struct vg_consumer {
    struct vigil_store *store;
    struct vg_consumer_calls calls;
    struct vg_store_op *ops; /* kept between batches */
    size_t cap;
};

/* The store outlives it. */
void vg_consumer_init(struct vg_consumer *c, struct vigil_store *store,
                      const struct vg_consumer_calls *calls);
void vg_consumer_done(struct vg_consumer *c);

/* A vg_fifo_process_fn; arg is the consumer. Negative: the store misses some of the batch, and
 * nothing was told of that part; only a new list heals it. */
VG_CHECK int vg_consume(void *consumer, const struct vg_batch *batch);

#endif
