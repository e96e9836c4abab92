/* heap.h - keys that wait, the earliest first: a binary heap of pointers that know their place, so
 * that a key can be moved forward. Thread: the owner's lock. */
#ifndef VG_CLIENT_WORKQUEUE_HEAP_H
#define VG_CLIENT_WORKQUEUE_HEAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

/* Embedded in what waits. */
struct vg_heap_item {
    uint64_t due_ns;
    size_t at; /* place plus 1; 0: not in the heap */
};

/* Zeroed is empty. */
struct vg_heap {
    struct vg_heap_item **v;
    size_t n, cap;
};

void vg_heap_done(struct vg_heap *h);
/* 0 or -ENOMEM. The item is not in the heap. */
VG_CHECK int vg_heap_push(struct vg_heap *h, struct vg_heap_item *item);
/* It is in the heap; due_ns has fallen. */
void vg_heap_raise(struct vg_heap *h, struct vg_heap_item *item);
/* The earliest, or NULL. */
static inline struct vg_heap_item *vg_heap_first(const struct vg_heap *h)
{
    return h->n ? h->v[0] : NULL;
}
void vg_heap_pop(struct vg_heap *h);

#endif
