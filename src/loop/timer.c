/* timer.c - a pairing heap of timers, ordered by (due, order of start).
 * Invariant: a node is not before its parent. child is the first child, sibling the next one to the
 * right; prev is the left sibling, or the parent of a first child, and NULL for the root. */
#include "timer_int.h"

static bool is_before(const struct vg_timer *a, const struct vg_timer *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->order < b->order;
}

/* Join two roots; either may be NULL. */
static struct vg_timer *meld(struct vg_timer *a, struct vg_timer *b)
{
    if (!a || !b)
        return a ? a : b;
    if (is_before(b, a)) {
        struct vg_timer *t = a;
        a = b;
        b = t;
    }
    b->sibling = a->child;
    if (a->child)
        a->child->prev = b;
    b->prev = a;
    a->child = b;
    return a;
}

/* Meld a chain of siblings in pairs, left to right, then all of them from the right. */
static struct vg_timer *meld_siblings(struct vg_timer *first)
{
    struct vg_timer *pairs = NULL; /* a stack linked by sibling */
    while (first) {
        struct vg_timer *a = first;
        struct vg_timer *b = a->sibling;
        first = b ? b->sibling : NULL;
        a->sibling = a->prev = NULL;
        if (b)
            b->sibling = b->prev = NULL;
        struct vg_timer *m = meld(a, b);
        m->sibling = pairs;
        pairs = m;
    }
    struct vg_timer *root = NULL;
    while (pairs) {
        struct vg_timer *next = pairs->sibling;
        pairs->sibling = NULL;
        root = meld(root, pairs);
        pairs = next;
    }
    return root;
}

void vg_timer_heap_insert(struct vg_timer **root, struct vg_timer *t)
{
    t->child = t->sibling = t->prev = NULL;
    *root = meld(*root, t);
}

void vg_timer_heap_remove(struct vg_timer **root, struct vg_timer *t)
{
    struct vg_timer *below = meld_siblings(t->child);
    if (t == *root) {
        *root = below;
    } else {
        if (t->prev->child == t)
            t->prev->child = t->sibling;
        else
            t->prev->sibling = t->sibling;
        if (t->sibling)
            t->sibling->prev = t->prev;
        *root = meld(*root, below);
    }
    t->child = t->sibling = t->prev = NULL;
}
