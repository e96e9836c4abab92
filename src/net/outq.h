/* outq.h - bytes that wait to be sent, in order: on a connection or on a stream of one.
 * Short slices are copied; long ones are kept by reference under a pin. Both become records that
 * lie one behind the other in pieces of half a KiB, so that a few events that wait touch few cache
 * lines. Pieces come from a pool, one per loop: a queue that fills and drains event after event
 * stops allocating. An empty queue holds no memory but its struct.
 * After -ENOMEM a queue may hold a part of what was to be added: its connection or stream is cut.
 * Thread: the loop's. */
#ifndef VG_NET_OUTQ_H
#define VG_NET_OUTQ_H

#include <sys/uio.h>

#include "http.h"

/* 256: below it a copy costs less than a vector and two atomic counts. */
#define VG_OUTQ_COPY_MAX 256u
/* Pieces that are kept for reuse, 2 MiB: a few events for each of 1,000 connections. */
#define VG_OUTQ_POOL_MAX 4096u

struct vg_outq_piece;

struct vg_outq_pool {
    struct vg_outq_piece *free; /* zeroed memory is an empty pool */
    size_t n_free;
};
void vg_outq_pool_done(struct vg_outq_pool *pool); /* every queue of it is done */

/* Every idle watch has one. */
struct vg_outq {
    struct vg_outq_piece *head; /* NULL: empty */
    union {
        struct vg_outq_piece *tail;
        struct vg_outq_pool *pool; /* of an empty queue; else its pieces know it */
    };
    size_t n; /* bytes */
};

static inline void vg_outq_init(struct vg_outq *q, struct vg_outq_pool *pool)
{
    *q = (struct vg_outq){.pool = pool};
}
void vg_outq_done(struct vg_outq *q); /* drops all; usable again */
static inline size_t vg_outq_size(const struct vg_outq *q)
{
    return q->n;
}

/* All of these: 0 or -ENOMEM. */
VG_CHECK int vg_outq_copy(struct vg_outq *q, const void *p, size_t n);
/* Slices up to VG_OUTQ_COPY_MAX are copied, longer ones referenced; pin NULL: all are copied. */
VG_CHECK int vg_outq_put(struct vg_outq *q, const struct vg_slice *v, size_t n,
                         const struct vg_http_pin *pin);
/* Move the first n bytes (at most all) from one queue to the end of another of the same pool.
 * A reference that is cut in two is pinned twice. */
VG_CHECK int vg_outq_move(struct vg_outq *from, size_t n, struct vg_outq *to);

/* The first bytes as vectors, at most `max` of them; how many. The queue keeps the bytes. */
size_t vg_outq_vectors(const struct vg_outq *q, struct iovec *iov, size_t max);
/* Copy up to n of the first bytes to p; how many. The queue keeps them. */
size_t vg_outq_peek(const struct vg_outq *q, void *p, size_t n);
/* The first n bytes, which are there, have left. */
void vg_outq_consume(struct vg_outq *q, size_t n);

#endif
