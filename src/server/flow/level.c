/* level.c - one priority level: its seats, its queues, and who is next. See flow_int.h for the
 * invariants.
 *
 * Fair queuing for requests that hold several seats for an unknown time, as kube-apiserver does it.
 * Virtual time r is how many seat-seconds each active queue has been given. A queue knows at which
 * r its oldest request would start; dispatching a request moves that on by the work that we expect
 * of it (SERVICE_S for each seat), and its end corrects the expectation. The queue whose oldest
 * request would finish first is next. A request that finds a free seat while nobody waits is not
 * charged to a queue: that is what makes it cheap, and what it misses is one service time. */
#include <errno.h>
#include <math.h>

#include "base/alloc.h"
#include "flow_int.h"

/* 3 ms: as long as kube-apiserver expects a request to take. */
#define SERVICE_S 0.003

/* ---- birth and death ---- */

struct vg_flow_level *vg_flow_level_new(struct vg_slice name, bool is_exempt,
                                        const struct vg_clock *clock)
{
    struct vg_flow_level *v = vg_calloc(1, sizeof *v + name.n);
    if (!v)
        return NULL;
    memcpy(v + 1, name.p, name.n);
    v->name = vg_slice(v + 1, name.n);
    v->is_exempt = is_exempt;
    v->clock = clock;
    v->refs = 1;
    v->r_ns = vg_clock_mono_ns(clock);
    vg_mutex_init(&v->mu, VG_RANK_FLOW_LEVEL);
    vg_list_init(&v->busy);
    vg_list_init(&v->link);
    return v;
}

void vg_flow_level_free(struct vg_flow_level *v)
{
    if (!v)
        return;
    assert(v->n_waiting == 0);
    for (uint32_t i = 0; i < v->n_queues; i++)
        vg_free(v->queues[i]);
    vg_free(v->queues);
    vg_mutex_done(&v->mu);
    vg_free(v);
}

bool vg_flow_level_is_idle(struct vg_flow_level *v)
{
    vg_mutex_lock(&v->mu);
    bool is_idle = v->n_waiting == 0 && vg_flow_level_used(v) == 0;
    vg_mutex_unlock(&v->mu);
    return is_idle;
}

/* ---- checks ---- */

void vg_flow_level_check(struct vg_flow_level *v)
{
    uint32_t waiting = 0, active = 0, tracked = 0, seats = 0;
    uint64_t state = atomic_load(&v->state);
    vg_mutex_assert_held(&v->mu);
    for (uint32_t i = 0; i < v->n_queues; i++) {
        const struct vg_flow_queue *q = v->queues[i];
        waiting += q->n;
        active += q->n + q->executing > 0;
        tracked += q->seats + q->waiting_seats;
        seats += q->seats;
        assert((q->n > 0) == !vg_list_is_empty(&q->link)); /* L2 */
        assert((q->n > 0) == !vg_list_is_empty(&q->waiting));
    }
    assert(waiting == v->n_waiting);                                /* L2 */
    assert((v->n_waiting > 0) == ((state & VG_FLOW_CROWDED) != 0)); /* L1 */
    assert((state & ~VG_FLOW_CROWDED) >= seats);                    /* L3 */
    assert(active == v->n_active && tracked == v->tracked);         /* L4 */
    (void)waiting, (void)active, (void)tracked, (void)seats, (void)state;
}

static void unlock(struct vg_flow_level *v) VG_RELEASE(v->mu)
{
#ifdef VG_DEBUG_CHECKS
    vg_flow_level_check(v);
#endif
    vg_mutex_unlock(&v->mu);
}

/* ---- virtual time ---- */

static void advance(struct vg_flow_level *v)
{
    uint64_t now = vg_clock_mono_ns(v->clock);
    double seats = VG_MIN(v->tracked, atomic_load_explicit(&v->limit, memory_order_relaxed));
    if (v->n_active)
        v->r += seats / v->n_active * (double)(now - v->r_ns) / 1e9;
    v->r_ns = now;
}

static void lock(struct vg_flow_level *v) VG_ACQUIRE(v->mu)
{
    vg_mutex_lock(&v->mu);
    advance(v);
}

static struct vg_flow_wait *oldest(const struct vg_flow_queue *q)
{
    return q->n ? VG_CONTAINER_OF(q->waiting.next, struct vg_flow_wait, link) : NULL;
}

/* A queue that did not use what it could have had does not save it up: nothing starts, in virtual
 * time, before it came. */
static void bound(struct vg_flow_queue *q)
{
    const struct vg_flow_wait *w = oldest(q);
    if (w && q->next_r < w->arrival_r)
        q->next_r = w->arrival_r;
}

/* ---- seats ---- */

/* Most seats that were in use or asked for. */
static void note_demand(struct vg_flow_level *v, uint32_t demand)
{
    uint32_t high = atomic_load_explicit(&v->high, memory_order_relaxed);
    while (VG_UNLIKELY(demand > high) &&
           !atomic_compare_exchange_weak_explicit(&v->high, &high, demand, memory_order_relaxed,
                                                  memory_order_relaxed))
        continue;
}

/* A request that needs more seats than there are runs alone. */
static bool fits(uint64_t used, uint32_t seats, uint32_t limit)
{
    return used + seats <= limit || (seats > limit && used == 0);
}

/* Without the lock: only while nobody waits. */
static bool take_free(struct vg_flow_level *v, uint32_t seats)
{
    uint64_t s = atomic_load_explicit(&v->state, memory_order_relaxed);
    uint32_t limit = atomic_load_explicit(&v->limit, memory_order_relaxed);
    /* A level without seats lets nobody out of its queues; without queues, one at a time. */
    while (!(s & VG_FLOW_CROWDED) && limit > 0 && fits(s, seats, limit)) {
        if (atomic_compare_exchange_weak_explicit(&v->state, &s, s + seats, memory_order_acq_rel,
                                                  memory_order_relaxed)) {
            note_demand(v, (uint32_t)s + seats);
            return true;
        }
    }
    return false;
}

enum vg_flow_answer vg_flow_take(struct vg_flow_ticket *t, const struct vg_flow_work *work)
{
    struct vg_flow_level *v = t->schema->level;
    uint32_t seats = VG_MAX(work->initial, work->final);
    assert(t->state == VG_FLOW_CLASSIFIED && work->initial >= 1);
    if (v->is_exempt) {
        uint64_t before = atomic_fetch_add_explicit(&v->state, seats, memory_order_relaxed);
        note_demand(v, (uint32_t)before + seats);
    } else if (VG_UNLIKELY(!take_free(v, seats))) {
        return VG_FLOW_MUST_WAIT;
    }
    t->initial = (uint16_t)work->initial;
    t->seats = (uint16_t)seats;
    t->linger_us = v->is_exempt ? 0 : work->linger_us;
    t->state = VG_FLOW_EXECUTING;
    if (VG_LIKELY(seats == 1)) {
        atomic_fetch_add_explicit(&t->schema->series->at_once, 1, memory_order_relaxed);
        return VG_FLOW_GO;
    }
    vg_flow_count_dispatch(t, 0);
    return VG_FLOW_GO;
}

/* ---- queues ---- */

static struct vg_flow_queue *pick_queue(struct vg_flow_level *v, uint64_t hash)
{
    uint32_t hand[VG_FLOW_HAND_MAX];
    struct vg_flow_queue *best = NULL;
    uint32_t first = (uint32_t)(v->enqueued++ % v->hand);
    vg_flow_deal(hash, v->n_dealt, v->hand, hand);
    for (uint32_t i = 0; i < v->hand; i++) {
        struct vg_flow_queue *q = v->queues[hand[(first + i) % v->hand]];
        if (!best || q->work_sum < best->work_sum)
            best = q;
    }
    return best;
}

static void add_waiting_seats(struct vg_flow_level *v, int64_t seats)
{
    atomic_fetch_add_explicit(&v->waiting_seats, (uint32_t)seats, memory_order_relaxed);
}

static void enqueue(struct vg_flow_level *v, struct vg_flow_queue *q, struct vg_flow_wait *w)
{
    uint32_t seats = w->ticket->seats;
    if (q->n + q->executing == 0) {
        q->next_r = v->r;
        v->n_active++;
    }
    if (q->n++ == 0)
        vg_list_push_back(&v->busy, &q->link);
    vg_list_push_back(&q->waiting, &w->link);
    w->queue = q;
    w->arrival_r = v->r;
    w->arrived_ns = v->r_ns;
    w->is_queued = true;
    q->work_sum += w->work;
    q->waiting_seats += seats;
    q->waiting_initial += w->ticket->initial;
    v->tracked += seats;
    v->n_waiting++;
    bound(q);
    add_waiting_seats(v, seats);
    vg_flow_count_waiting(w->ticket, 1);
    uint64_t s = atomic_fetch_or_explicit(&v->state, VG_FLOW_CROWDED, memory_order_acq_rel);
    note_demand(v, (uint32_t)(s & ~VG_FLOW_CROWDED) +
                       atomic_load_explicit(&v->waiting_seats, memory_order_relaxed));
}

/* It waits no more: it is dispatched, or it leaves. */
static void dequeue(struct vg_flow_level *v, struct vg_flow_wait *w)
{
    struct vg_flow_queue *q = w->queue;
    uint32_t seats = w->ticket->seats;
    vg_list_remove(&w->link);
    w->is_queued = false;
    q->work_sum = --q->n ? q->work_sum - w->work : 0;
    if (q->n == 0)
        vg_list_remove(&q->link);
    q->waiting_seats -= seats;
    q->waiting_initial -= w->ticket->initial;
    v->tracked -= seats;
    v->n_waiting--;
    add_waiting_seats(v, -(int64_t)seats);
    vg_flow_count_waiting(w->ticket, -1);
}

static void settle_queue(struct vg_flow_level *v, struct vg_flow_queue *q)
{
    bound(q);
    if (v->n_waiting == 0)
        atomic_fetch_and_explicit(&v->state, ~VG_FLOW_CROWDED, memory_order_acq_rel);
}

/* ---- dispatching ---- */

/* Whose oldest request would finish first; of equals the one that was not chosen for longest. */
static struct vg_flow_queue *find_next(struct vg_flow_level *v)
{
    struct vg_flow_queue *best = NULL;
    double first = 0;
    VG_LIST_FOREACH (n, &v->busy) {
        struct vg_flow_queue *q = VG_CONTAINER_OF(n, struct vg_flow_queue, link);
        double finish = q->next_r + oldest(q)->work;
        if (!best || finish < first) {
            best = q;
            first = finish;
        }
    }
    return best;
}

static bool dispatch_one(struct vg_flow_level *v, struct vg_list *woken)
{
    uint32_t limit = atomic_load_explicit(&v->limit, memory_order_relaxed);
    uint32_t used = vg_flow_level_used(v);
    if (v->n_waiting == 0 || used >= limit)
        return false;
    struct vg_flow_queue *q = find_next(v);
    struct vg_flow_wait *w = oldest(q);
    uint32_t seats = w->ticket->seats;
    if (!fits(used, seats, limit)) {
        atomic_fetch_add_explicit(&w->ticket->schema->series->no_room, 1, memory_order_relaxed);
        return false;
    }
    dequeue(v, w);
    if (q->n) { /* to the back of those that are equal */
        vg_list_remove(&q->link);
        vg_list_push_back(&v->busy, &q->link);
    }
    /* Others only give while requests wait (L1), so what fits now still does. */
    atomic_fetch_add_explicit(&v->state, seats, memory_order_acq_rel);
    q->executing++;
    q->seats += seats;
    v->tracked += seats;
    q->next_r += w->work;
    w->ticket->queue = q;
    w->ticket->started_ns = v->r_ns;
    vg_list_push_back(woken, &w->link);
    settle_queue(v, q);
    return true;
}

static void dispatch(struct vg_flow_level *v, struct vg_list *woken)
{
    while (dispatch_one(v, woken))
        continue;
}

static void run_mail(struct vg_mail *mail)
{
    struct vg_flow_wait *w = VG_CONTAINER_OF(mail, struct vg_flow_wait, mail);
    struct vg_flow_ticket *t = w->ticket;
    t->state = VG_FLOW_EXECUTING;
    vg_flow_count_dispatch(t, t->started_ns - w->arrived_ns);
    w->go(w);
}

/* Without the lock: a loop may run the mail at once, and come here again. */
static void wake(struct vg_list *woken)
{
    struct vg_list *n;
    while ((n = vg_list_pop_front(woken))) {
        struct vg_flow_wait *w = VG_CONTAINER_OF(n, struct vg_flow_wait, link);
        w->mail.run = run_mail;
        vg_loop_post(w->loop, &w->mail);
    }
}

/* ---- taking with the lock ---- */

static enum vg_flow_answer reject(struct vg_flow_level *v, struct vg_flow_ticket *t,
                                  enum vg_flow_rejection why)
{
    v->rejected++;
    t->state = VG_FLOW_CLASSIFIED;
    atomic_fetch_add_explicit(&t->schema->series->rejected[why], 1, memory_order_relaxed);
    return VG_FLOW_REJECT;
}

/* A level without queues. Others may take and give meanwhile, but for the time in which requests
 * wait in queues that it had before. */
static enum vg_flow_answer take_or_reject(struct vg_flow_level *v, struct vg_flow_ticket *t)
{
    uint64_t s = atomic_load_explicit(&v->state, memory_order_relaxed);
    do {
        if (!fits(s & ~VG_FLOW_CROWDED, t->seats,
                  atomic_load_explicit(&v->limit, memory_order_relaxed)))
            return reject(v, t, VG_FLOW_REJECT_CONCURRENCY_LIMIT);
    } while (!atomic_compare_exchange_weak_explicit(&v->state, &s, s + t->seats,
                                                    memory_order_acq_rel, memory_order_relaxed));
    return VG_FLOW_GO;
}

static enum vg_flow_answer queue_or_reject(struct vg_flow_level *v, struct vg_flow_wait *w,
                                           uint64_t hash, struct vg_list *woken)
{
    struct vg_flow_ticket *t = w->ticket;
    struct vg_flow_queue *q = pick_queue(v, hash);
    uint32_t limit = atomic_load_explicit(&v->limit, memory_order_relaxed);
    if (q->n >= v->length && vg_flow_level_used(v) >= limit)
        return reject(v, t, VG_FLOW_REJECT_QUEUE_FULL);
    t->state = VG_FLOW_WAITING;
    enqueue(v, q, w);
    vg_flow_count_queue_length(t, q->n);
    dispatch(v, woken);
    if (w->is_queued)
        return VG_FLOW_MUST_WAIT;
    vg_list_remove(&w->link); /* it was its own turn: no mail */
    return VG_FLOW_GO;
}

static struct vg_slice distinguisher_of(const struct vg_flow_schema *s,
                                        const struct vg_flow_attributes *a)
{
    return s->distinguisher == VG_FLOW_BY_USER        ? a->user
           : s->distinguisher == VG_FLOW_BY_NAMESPACE ? a->ns
                                                      : VG_SLICE_LIT("");
}

enum vg_flow_answer vg_flow_enqueue(struct vg_flow_ticket *t, const struct vg_flow_work *work,
                                    struct vg_flow_wait *w)
{
    struct vg_flow_level *v = t->schema->level;
    struct vg_list woken;
    enum vg_flow_answer answer;
    assert(t->state == VG_FLOW_CLASSIFIED && !v->is_exempt);
    vg_list_init(&woken);
    vg_list_init(&w->link);
    t->initial = (uint16_t)work->initial;
    t->seats = (uint16_t)VG_MAX(work->initial, work->final);
    t->linger_us = work->linger_us;
    w->ticket = t;
    w->distinguisher = distinguisher_of(t->schema, &w->attributes);
    w->work = work->initial * SERVICE_S + work->final * (double)work->linger_us / 1e6;
    w->arrived_ms = vg_clock_wall_ms(v->clock);
    uint64_t hash = vg_flow_hash(t->view->table->flow, t->schema->name, w->distinguisher);
    lock(v);
    answer = v->n_dealt ? queue_or_reject(v, w, hash, &woken) : take_or_reject(v, t);
    unlock(v);
    wake(&woken);
    if (answer == VG_FLOW_GO) {
        t->state = VG_FLOW_EXECUTING;
        vg_flow_count_dispatch(t, 0);
    }
    return answer;
}

bool vg_flow_cancel(struct vg_flow_wait *w)
{
    struct vg_flow_ticket *t = w->ticket;
    struct vg_flow_level *v = t->schema->level;
    struct vg_flow_queue *q = w->queue;
    struct vg_list woken;
    vg_list_init(&woken);
    lock(v);
    bool was_queued = w->is_queued;
    uint64_t waited_ns = was_queued ? v->r_ns - w->arrived_ns : 0;
    if (was_queued) {
        dequeue(v, w);
        if (q->n + q->executing == 0)
            v->n_active--;
        (void)reject(v, t, VG_FLOW_REJECT_TIME_OUT);
        v->cancelled++;
        settle_queue(v, q);
        dispatch(v, &woken); /* it may have been too wide for what was free, and others are not */
    }
    unlock(v);
    wake(&woken);
    if (was_queued)
        vg_flow_observe_wait(t, waited_ns, false);
    return was_queued;
}

uint32_t vg_flow_retry_after(struct vg_flow_ticket *t)
{
    struct vg_flow_level *v = t->schema->level;
    vg_mutex_lock(&v->mu);
    uint32_t s =
        vg_flow_drops_count(&v->drops, (int64_t)(vg_clock_mono_ns(v->clock) / VG_NS_PER_S));
    vg_mutex_unlock(&v->mu);
    return s;
}

/* ---- giving ---- */

/* The request is over: the queue pays for the time that it really took. */
static void finish_queued(struct vg_flow_level *v, const struct vg_flow_ticket *t)
{
    struct vg_flow_queue *q = t->queue;
    double took = (double)(v->r_ns - t->started_ns) / 1e9;
    q->executing--;
    q->next_r += t->initial * (took - SERVICE_S);
    bound(q);
    if (q->n + q->executing == 0)
        v->n_active--;
}

static void free_seats_locked(struct vg_flow_level *v, struct vg_flow_queue *q, uint32_t seats)
{
    atomic_fetch_sub_explicit(&v->state, seats, memory_order_acq_rel);
    if (q) {
        q->seats -= seats;
        v->tracked -= seats;
    }
}

void vg_flow_level_free_seats(struct vg_flow_level *v, struct vg_flow_queue *q, uint32_t seats)
{
    struct vg_list woken;
    vg_list_init(&woken);
    lock(v);
    free_seats_locked(v, q, seats);
    dispatch(v, &woken);
    unlock(v);
    wake(&woken);
}

void vg_flow_level_give(struct vg_flow_ticket *t)
{
    struct vg_flow_level *v = t->schema->level;
    struct vg_list woken;
    bool is_lingering = t->linger_us > 0;
    if (VG_LIKELY(!t->queue)) {
        if (is_lingering)
            return;
        uint64_t s = atomic_fetch_sub_explicit(&v->state, t->seats, memory_order_acq_rel);
        if (VG_LIKELY(!(s & VG_FLOW_CROWDED)))
            return;
    }
    vg_list_init(&woken);
    lock(v);
    if (t->queue)
        finish_queued(v, t);
    if (t->queue && !is_lingering)
        free_seats_locked(v, t->queue, t->seats);
    dispatch(v, &woken);
    unlock(v);
    wake(&woken);
}

/* ---- configuration ---- */

static struct vg_flow_queue *queue_new(uint32_t index)
{
    struct vg_flow_queue *q = vg_new(struct vg_flow_queue);
    if (!q)
        return NULL;
    q->index = index;
    vg_list_init(&q->link);
    vg_list_init(&q->waiting);
    return q;
}

static int grow(struct vg_flow_level *v, uint32_t n)
{
    if (n <= v->n_queues)
        return 0;
    struct vg_flow_queue **queues = vg_reallocarray(v->queues, n, sizeof(struct vg_flow_queue *));
    if (!queues)
        return -ENOMEM;
    v->queues = queues;
    while (v->n_queues < n) {
        struct vg_flow_queue *q = queue_new(v->n_queues);
        if (!q)
            return -ENOMEM;
        v->queues[v->n_queues++] = q;
    }
    return 0;
}

int vg_flow_level_set_queues(struct vg_flow_level *v, uint32_t queues, uint32_t hand,
                             uint32_t length)
{
    queues = VG_MIN(queues, VG_FLOW_QUEUES_MAX);
    lock(v);
    int r = grow(v, queues);
    if (r == 0) {
        v->n_dealt = queues;
        v->hand = VG_MAX(VG_MIN(VG_MIN(hand, VG_FLOW_HAND_MAX), queues), 1u);
        v->length = VG_MIN(length, VG_FLOW_QUEUE_LENGTH_MAX);
    }
    unlock(v);
    return r;
}

void vg_flow_level_set_limit(struct vg_flow_level *v, uint32_t limit)
{
    struct vg_list woken;
    vg_list_init(&woken);
    lock(v);
    atomic_store_explicit(&v->limit, limit, memory_order_relaxed);
    dispatch(v, &woken);
    unlock(v);
    wake(&woken);
}
