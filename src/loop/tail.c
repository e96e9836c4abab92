/* tail.c - see tail.h. */
#include "tail.h"

static void batch_ref(struct vg_tail_batch *b)
{
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
}

/* Freeing a batch drops its link to the next one, which may free that in turn: a loop, because a
 * reader that was far behind may let go of thousands at once. What other holders did with the batch
 * is ordered before the free by an acquire load of the count, which TSan understands; a fence it
 * does not see. */
static void batch_unref(struct vg_tail_batch *b)
{
    while (b && atomic_fetch_sub_explicit(&b->refs, 1, memory_order_release) == 1) {
        (void)atomic_load_explicit(&b->refs, memory_order_acquire);
        struct vg_tail_batch *next = atomic_load_explicit(&b->next, memory_order_relaxed);
        b->free(b);
        b = next;
    }
}

void vg_tail_init(struct vg_tail *t, struct vg_tail_batch *take_first)
{
    vg_mutex_init(&t->mu, VG_RANK_TAIL);
    vg_list_init(&t->listeners);
    atomic_init(&take_first->next, NULL);
    atomic_init(&take_first->refs, 1);
    t->newest = take_first;
}

void vg_tail_done(struct vg_tail *t)
{
    assert(vg_list_is_empty(&t->listeners));
    batch_unref(t->newest);
    t->newest = NULL;
    vg_mutex_done(&t->mu);
}

void vg_tail_publish(struct vg_tail *t, struct vg_tail_batch *take_batch)
{
    struct vg_tail_batch *b = take_batch;
    atomic_init(&b->next, NULL);
    atomic_init(&b->refs, 2); /* its predecessor's link, and being the newest (T2) */
    vg_mutex_lock(&t->mu);
    struct vg_tail_batch *before = t->newest;
    atomic_store_explicit(&before->next, b, memory_order_release);
    t->newest = b;
    VG_LIST_FOREACH (n, &t->listeners) {
        struct vg_tail_listener *l = VG_CONTAINER_OF(n, struct vg_tail_listener, link);
        l->wake(l->arg);
    }
    vg_mutex_unlock(&t->mu);
    batch_unref(before);
}

const struct vg_tail_batch *vg_tail_open(struct vg_tail *t, struct vg_tail_cursor *ret_cursor)
{
    vg_mutex_lock(&t->mu);
    batch_ref(t->newest);
    ret_cursor->at = t->newest;
    vg_mutex_unlock(&t->mu);
    return ret_cursor->at;
}

const struct vg_tail_batch *vg_tail_next(struct vg_tail_cursor *c)
{
    struct vg_tail_batch *next = atomic_load_explicit(&c->at->next, memory_order_acquire);
    if (!next)
        return NULL;
    batch_ref(next); /* safe: the batch we stand on holds it (T2) */
    struct vg_tail_batch *before = c->at;
    c->at = next;
    batch_unref(before);
    return next;
}

void vg_tail_close(struct vg_tail_cursor *c)
{
    batch_unref(c->at);
    c->at = NULL;
}

void vg_tail_listen(struct vg_tail *t, struct vg_tail_listener *l)
{
    vg_mutex_lock(&t->mu);
    vg_list_push_back(&t->listeners, &l->link);
    vg_mutex_unlock(&t->mu);
}

void vg_tail_unlisten(struct vg_tail *t, struct vg_tail_listener *l)
{
    vg_mutex_lock(&t->mu);
    vg_list_remove(&l->link);
    vg_mutex_unlock(&t->mu);
}
