/* workqueue.c - keys that need work; see vigil/workqueue.h.
 * A key has one item for as long as anything is known of it: that it needs work (dirty), is being
 * worked on (processing), waits for its time (in the heap), has failed before. Invariants:
 *   W1 an item is in `order` exactly when it is dirty and not processing.
 *   W2 an item of which nothing is known is freed.
 * There is no thread: whoever waits for a key also waits for the time of the earliest that waits.
 */
#include "workqueue.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/list.h"
#include "base/map.h"
#include "client/object/error.h"
#include "heap.h"
#include "limiter.h"

struct item {
    struct vg_list link; /* in order */
    struct vg_heap_item wait;
    unsigned failures;
    bool is_dirty, is_processing;
    bool is_requeued; /* was dirty when its work was done, in a drain that waits for it */
    size_t key_n;
    char key[];
};

struct vigil_workqueue {
    const struct vg_clock *clock;
    struct vg_mutex mu;                    /* rank CLIENT_WORK */
    struct vg_cond ready;                  /* a key, an earlier time, the end */
    struct vg_cond drained;                /* work has ended */
    struct vg_map items VG_GUARDED_BY(mu); /* struct item by its key */
    struct vg_list order VG_GUARDED_BY(mu);
    struct vg_heap heap VG_GUARDED_BY(mu);
    struct vg_limiter limiter VG_GUARDED_BY(mu);
    size_t n_order, n_processing, n_requeued VG_GUARDED_BY(mu);
    bool is_shut_down, drains VG_GUARDED_BY(mu);
};

/* ---- making ---- */

static void on_advance(void *arg)
{
    struct vigil_workqueue *q = arg;
    vg_mutex_lock(&q->mu);
    vg_cond_broadcast(&q->ready);
    vg_mutex_unlock(&q->mu);
}

int vg_workqueue_new(const struct vigil_workqueue_opts *opts, const struct vg_clock *clock,
                     struct vigil_workqueue **ret)
{
    struct vigil_workqueue_opts mine = {0};
    if (opts && opts->size == 0)
        return VIGIL_E_INVALID;
    if (opts)
        memcpy(&mine, opts, VG_MIN(opts->size, sizeof(mine))); /* of an older program: shorter */
    struct vigil_workqueue *q = vg_new(struct vigil_workqueue);
    if (!q)
        return -ENOMEM;
    q->clock = clock;
    vg_mutex_init(&q->mu, VG_RANK_CLIENT_WORK);
    vg_cond_init(&q->ready);
    vg_cond_init(&q->drained);
    vg_list_init(&q->order);
    int r = vg_limiter_init(&q->limiter, &mine, vg_clock_mono_ns(clock));
    if (r == 0)
        r = vg_clock_on_advance(clock, on_advance, q);
    if (r < 0)
        vigil_workqueue_free(q);
    else
        *ret = q;
    return r;
}

int vigil_workqueue_new(const struct vigil_workqueue_opts *opts, struct vigil_workqueue **ret,
                        struct vigil_error *err)
{
    int r = vg_workqueue_new(opts, vg_clock_system(), ret);
    return r < 0 ? vg_error_set(err, r, "no work queue: %s", vg_err_text(r)) : 0;
}

void vigil_workqueue_free(struct vigil_workqueue *q)
{
    if (!q)
        return;
    vg_clock_off_advance(q->clock, on_advance, q);
    VG_MAP_FOREACH (e, &q->items)
        vg_free(e->value);
    vg_map_done(&q->items);
    vg_heap_done(&q->heap);
    vg_cond_done(&q->ready);
    vg_cond_done(&q->drained);
    vg_mutex_done(&q->mu);
    vg_free(q);
}

/* ---- items ---- */

static struct vg_slice key_of(const struct item *i)
{
    return vg_slice(i->key, i->key_n);
}

static struct item *find(const struct vigil_workqueue *q, struct vigil_text key)
{
    return vg_map_get(&q->items, vg_slice_of(key));
}

/* NULL: no memory. */
static struct item *find_or_make(struct vigil_workqueue *q, struct vigil_text key)
{
    struct item *i = find(q, key);
    if (i)
        return i;
    i = vg_calloc(1, sizeof(*i) + key.n);
    if (!i)
        return NULL;
    i->key_n = key.n;
    if (key.n)
        memcpy(i->key, key.p, key.n);
    vg_list_init(&i->link);
    if (vg_map_put(&q->items, key_of(i), i, NULL) < 0) {
        vg_free(i);
        return NULL;
    }
    return i;
}

/* W2 */
static void drop_if_unknown(struct vigil_workqueue *q, struct item *i)
{
    if (i->is_dirty || i->is_processing || i->wait.at || i->failures)
        return;
    vg_map_remove(&q->items, key_of(i));
    vg_free(i);
}

static void enqueue(struct vigil_workqueue *q, struct item *i)
{
    vg_list_push_back(&q->order, &i->link);
    q->n_order++;
    vg_cond_signal(&q->ready);
}

static void add(struct vigil_workqueue *q, struct item *i)
{
    if (i->is_dirty)
        return;
    i->is_dirty = true;
    if (!i->is_processing)
        enqueue(q, i);
}

/* What is due joins the queue. */
static void add_due(struct vigil_workqueue *q)
{
    uint64_t now = vg_clock_mono_ns(q->clock);
    struct vg_heap_item *first;
    while ((first = vg_heap_first(&q->heap)) && first->due_ns <= now) {
        vg_heap_pop(&q->heap);
        add(q, VG_CONTAINER_OF(first, struct item, wait));
    }
}

/* ---- adding ---- */

static int wait_until(struct vigil_workqueue *q, struct item *i, uint64_t due_ns)
{
    if (i->wait.at && i->wait.due_ns <= due_ns)
        return 0; /* it can only come earlier */
    i->wait.due_ns = due_ns;
    if (i->wait.at) {
        vg_heap_raise(&q->heap, &i->wait);
    } else if (vg_heap_push(&q->heap, &i->wait) < 0) {
        drop_if_unknown(q, i);
        return VIGIL_E_MEMORY;
    }
    if (i->wait.at == 1) /* whoever waits has to look at the time anew */
        vg_cond_broadcast(&q->ready);
    return 0;
}

static int add_after_ns(struct vigil_workqueue *q, struct item *i, uint64_t delay_ns)
{
    if (delay_ns == 0) {
        add(q, i);
        return 0;
    }
    uint64_t now = vg_clock_mono_ns(q->clock);
    return wait_until(q, i, delay_ns > UINT64_MAX - now ? UINT64_MAX : now + delay_ns);
}

static int add_locked(struct vigil_workqueue *q, struct vigil_text key, uint64_t delay_ns)
{
    if (q->is_shut_down)
        return 0;
    struct item *i = find_or_make(q, key);
    return i ? add_after_ns(q, i, delay_ns) : VIGIL_E_MEMORY;
}

int vigil_workqueue_add(struct vigil_workqueue *q, struct vigil_text key)
{
    return vigil_workqueue_add_after(q, key, 0);
}

int vigil_workqueue_add_after(struct vigil_workqueue *q, struct vigil_text key, uint64_t delay_ms)
{
    if (key.n > VG_WORKQUEUE_KEY_MAX)
        return VIGIL_E_INVALID;
    uint64_t ns = delay_ms > UINT64_MAX / VG_NS_PER_MS ? UINT64_MAX : delay_ms * VG_NS_PER_MS;
    vg_mutex_lock(&q->mu);
    int r = add_locked(q, key, ns);
    vg_mutex_unlock(&q->mu);
    return r;
}

static int add_limited_locked(struct vigil_workqueue *q, struct vigil_text key)
{
    if (q->is_shut_down)
        return 0;
    struct item *i = find_or_make(q, key);
    if (!i)
        return VIGIL_E_MEMORY;
    uint64_t by_failures = vg_limiter_by_failures(&q->limiter, i->failures);
    uint64_t by_bucket = vg_limiter_by_bucket(&q->limiter, vg_clock_mono_ns(q->clock));
    if (i->failures < UINT32_MAX)
        i->failures++;
    return add_after_ns(q, i, VG_MAX(by_failures, by_bucket));
}

int vigil_workqueue_add_limited(struct vigil_workqueue *q, struct vigil_text key)
{
    if (key.n > VG_WORKQUEUE_KEY_MAX)
        return VIGIL_E_INVALID;
    vg_mutex_lock(&q->mu);
    int r = add_limited_locked(q, key);
    vg_mutex_unlock(&q->mu);
    return r;
}

void vigil_workqueue_forget(struct vigil_workqueue *q, struct vigil_text key)
{
    vg_mutex_lock(&q->mu);
    struct item *i = find(q, key);
    if (i) {
        i->failures = 0;
        drop_if_unknown(q, i);
    }
    vg_mutex_unlock(&q->mu);
}

unsigned vigil_workqueue_failures(struct vigil_workqueue *q, struct vigil_text key)
{
    vg_mutex_lock(&q->mu);
    const struct item *i = find(q, key);
    unsigned n = i ? i->failures : 0;
    vg_mutex_unlock(&q->mu);
    return n;
}

/* ---- working ---- */

/* The first key goes to its worker. */
static long take(struct vigil_workqueue *q, char *buf, size_t size)
{
    struct item *i = VG_CONTAINER_OF(q->order.next, struct item, link);
    if (i->key_n >= size) {
        vg_cond_signal(&q->ready); /* somebody else may have more room */
        return VIGIL_E_TOO_LARGE;
    }
    vg_list_remove(&i->link);
    q->n_order--;
    i->is_dirty = false;
    i->is_processing = true;
    q->n_processing++;
    q->n_requeued -= i->is_requeued;
    i->is_requeued = false;
    memcpy(buf, i->key, i->key_n);
    buf[i->key_n] = '\0';
    return (long)i->key_n;
}

/* 1: a key is there. Else the result of get. */
static long wait_ready(struct vigil_workqueue *q, uint64_t deadline_ns) VG_REQUIRES(q->mu)
{
    for (;;) {
        add_due(q);
        if (q->n_order)
            return 1;
        if (q->is_shut_down)
            return VIGIL_E_CLOSED;
        if (vg_clock_mono_ns(q->clock) >= deadline_ns)
            return VIGIL_E_TIMEOUT;
        const struct vg_heap_item *first = vg_heap_first(&q->heap);
        uint64_t until = first ? VG_MIN(first->due_ns, deadline_ns) : deadline_ns;
        if (until == UINT64_MAX)
            vg_cond_wait(&q->ready, &q->mu);
        else
            (void)vg_cond_wait_on_clock(&q->ready, &q->mu, q->clock, until);
    }
}

long vigil_workqueue_get(struct vigil_workqueue *q, char *buf, size_t size, uint64_t timeout_ms)
{
    uint64_t now = vg_clock_mono_ns(q->clock), deadline = UINT64_MAX;
    if (timeout_ms && timeout_ms < (UINT64_MAX - now) / VG_NS_PER_MS)
        deadline = now + timeout_ms * VG_NS_PER_MS;
    vg_mutex_lock(&q->mu);
    long r = wait_ready(q, deadline);
    if (r == 1)
        r = take(q, buf, size);
    vg_mutex_unlock(&q->mu);
    return r;
}

void vigil_workqueue_done(struct vigil_workqueue *q, struct vigil_text key)
{
    vg_mutex_lock(&q->mu);
    struct item *i = find(q, key);
    if (i && i->is_processing) {
        i->is_processing = false;
        q->n_processing--;
        if (i->is_dirty) {
            i->is_requeued = q->drains;
            q->n_requeued += i->is_requeued;
            enqueue(q, i);
        }
        drop_if_unknown(q, i);
        if (q->n_processing == 0)
            vg_cond_broadcast(&q->drained);
    }
    vg_mutex_unlock(&q->mu);
}

size_t vigil_workqueue_length(struct vigil_workqueue *q)
{
    vg_mutex_lock(&q->mu);
    add_due(q);
    size_t n = q->n_order;
    vg_mutex_unlock(&q->mu);
    return n;
}

/* ---- the end ---- */

static void drop_waiting(struct vigil_workqueue *q)
{
    struct vg_heap_item *first;
    while ((first = vg_heap_first(&q->heap))) {
        vg_heap_pop(&q->heap);
        drop_if_unknown(q, VG_CONTAINER_OF(first, struct item, wait));
    }
}

void vigil_workqueue_shut_down(struct vigil_workqueue *q, bool drain)
{
    vg_mutex_lock(&q->mu);
    add_due(q);
    q->is_shut_down = true;
    q->drains = drain;
    drop_waiting(q);
    vg_cond_broadcast(&q->ready);
    vg_cond_broadcast(&q->drained);
    while (q->drains && (q->n_processing || q->n_requeued))
        vg_cond_wait(&q->drained, &q->mu);
    vg_mutex_unlock(&q->mu);
}
