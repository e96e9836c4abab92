/* heap.c - see heap.h. Invariants: H1 no item is due before its parent. H2 v[i]->at == i + 1. */
#include "heap.h"

#include <errno.h>

#include "base/alloc.h"

void vg_heap_done(struct vg_heap *h)
{
    vg_free(h->v);
    *h = (struct vg_heap){0};
}

static void place(struct vg_heap *h, size_t i, struct vg_heap_item *item)
{
    h->v[i] = item;
    item->at = i + 1;
}

static void up(struct vg_heap *h, size_t i)
{
    struct vg_heap_item *item = h->v[i];
    for (; i > 0 && h->v[(i - 1) / 2]->due_ns > item->due_ns; i = (i - 1) / 2)
        place(h, i, h->v[(i - 1) / 2]);
    place(h, i, item);
}

static void down(struct vg_heap *h, size_t i)
{
    struct vg_heap_item *item = h->v[i];
    for (size_t child; (child = 2 * i + 1) < h->n; i = child) {
        if (child + 1 < h->n && h->v[child + 1]->due_ns < h->v[child]->due_ns)
            child++;
        if (h->v[child]->due_ns >= item->due_ns)
            break;
        place(h, i, h->v[child]);
    }
    place(h, i, item);
}

int vg_heap_push(struct vg_heap *h, struct vg_heap_item *item)
{
    if (h->n == h->cap) {
        size_t cap = h->cap ? h->cap * 2 : 16;
        struct vg_heap_item **v = vg_reallocarray(h->v, cap, sizeof(struct vg_heap_item *));
        if (!v)
            return -ENOMEM;
        h->v = v;
        h->cap = cap;
    }
    h->v[h->n++] = item;
    up(h, h->n - 1);
    return 0;
}

void vg_heap_raise(struct vg_heap *h, struct vg_heap_item *item)
{
    up(h, item->at - 1);
}

void vg_heap_pop(struct vg_heap *h)
{
    h->v[0]->at = 0;
    if (--h->n == 0)
        return;
    h->v[0] = h->v[h->n];
    down(h, 0);
}
