/* list.h - intrusive doubly linked list. The head is a node; an unlinked node points to itself.
 * Thread: whoever owns the list. */
#ifndef VG_BASE_LIST_H
#define VG_BASE_LIST_H

#include <stdbool.h>

#include "macros.h"

struct vg_list {
    struct vg_list *prev, *next;
};

static inline void vg_list_init(struct vg_list *l)
{
    l->prev = l->next = l;
}
static inline bool vg_list_is_empty(const struct vg_list *l)
{
    return l->next == l;
}
static inline void vg_list_insert_before(struct vg_list *at, struct vg_list *n)
{
    n->prev = at->prev;
    n->next = at;
    at->prev->next = n;
    at->prev = n;
}
static inline void vg_list_push_back(struct vg_list *head, struct vg_list *n)
{
    vg_list_insert_before(head, n);
}
static inline void vg_list_push_front(struct vg_list *head, struct vg_list *n)
{
    vg_list_insert_before(head->next, n);
}
/* Harmless on an unlinked node. */
static inline void vg_list_remove(struct vg_list *n)
{
    n->prev->next = n->next;
    n->next->prev = n->prev;
    vg_list_init(n);
}
/* NULL when empty. */
static inline struct vg_list *vg_list_pop_front(struct vg_list *head)
{
    struct vg_list *n = head->next;
    if (n == head)
        return NULL;
    vg_list_remove(n);
    return n;
}

#define VG_LIST_FOREACH(n, head) for (struct vg_list *n = (head)->next; n != (head); n = n->next)
/* The body may remove n. */
#define VG_LIST_FOREACH_SAFE(n, head)                                                              \
    for (struct vg_list *n = (head)->next, *n##_next = n->next; n != (head);                       \
         n = n##_next, n##_next = n->next)

#endif
