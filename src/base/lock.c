/* lock.c - see lock.h.
 * Each thread keeps the list of locks it holds; a lock is compared with all of them, because locks
 * may be released in any order. Invariants, checked with VG_DEBUG_CHECKS:
 *   L1 a lock taken has a higher rank than every lock the thread holds.
 *   L2 a lock released, waited on or asserted is held by the calling thread.
 * A breach cannot be handled by any caller, so it aborts: the message goes to stderr directly,
 * since the log takes locks itself. */
#include "lock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"

/* 32: the longest legal chain is one lock per rank. */
#define HELD_MAX 32
_Static_assert(VG_RANK_COUNT <= HELD_MAX, "a thread may hold one lock of each rank");

#define NS_PER_S UINT64_C(1000000000)

static _Thread_local char self_mark;

static uintptr_t self_id(void)
{
    return (uintptr_t)&self_mark;
}

const char *vg_lock_rank_name(enum vg_lock_rank rank)
{
    static const char *const names[] = {
#define VG_LOCK(name, guards) #name,
#include "locks.def"
#undef VG_LOCK
    };
    return (size_t)rank < VG_ARRAY_LEN(names) ? names[rank] : "unknown";
}

const char *vg_lock_rank_guards(enum vg_lock_rank rank)
{
    static const char *const guards_of[] = {
#define VG_LOCK(name, guards) guards,
#include "locks.def"
#undef VG_LOCK
    };
    return (size_t)rank < VG_ARRAY_LEN(guards_of) ? guards_of[rank] : "";
}

/* pthread calls on well-formed objects fail only by our own bugs. */
static void must(int error, const char *call)
{
    if (VG_LIKELY(error == 0))
        return;
    fprintf(stderr, "vigil: %s: %s\n", call, strerrordesc_np(error));
    abort();
}

#ifdef VG_DEBUG_CHECKS
static _Thread_local const struct vg_mutex *held[HELD_MAX];
static _Thread_local size_t held_count;

static void check_order(const struct vg_mutex *m)
{
    for (size_t i = 0; i < held_count; i++) {
        if (held[i]->rank < m->rank)
            continue;
        fprintf(stderr, "vigil: lock order: taking %s while holding %s%s\n",
                vg_lock_rank_name(m->rank), vg_lock_rank_name(held[i]->rank),
                held[i] == m ? " (the same lock)" : "");
        abort();
    }
}

static void check_held(const struct vg_mutex *m, const char *doing)
{
    if (VG_LIKELY(vg_mutex_is_held(m)))
        return;
    fprintf(stderr, "vigil: lock owner: %s %s, which this thread does not hold\n", doing,
            vg_lock_rank_name(m->rank));
    abort();
}

static void push_held(const struct vg_mutex *m)
{
    held[held_count++] = m; /* L1 and the static assertion bound it */
}

static void pop_held(const struct vg_mutex *m)
{
    size_t i = held_count;
    while (i > 0 && held[i - 1] != m)
        i--;
    if (VG_NEVER(i == 0))
        return;
    memmove(&held[i - 1], &held[i], (held_count - i) * sizeof held[0]);
    held_count--;
}
#else
static void check_order(const struct vg_mutex *m)
{
    (void)m;
}
static void check_held(const struct vg_mutex *m, const char *doing)
{
    (void)m, (void)doing;
}
static void push_held(const struct vg_mutex *m)
{
    (void)m;
}
static void pop_held(const struct vg_mutex *m)
{
    (void)m;
}
#endif

static void set_owner(struct vg_mutex *m, uintptr_t owner)
{
    atomic_store_explicit(&m->owner, owner, memory_order_relaxed);
}

void vg_mutex_init(struct vg_mutex *m, enum vg_lock_rank rank)
{
    must(pthread_mutex_init(&m->mu, NULL), "pthread_mutex_init");
    atomic_init(&m->owner, 0);
    m->rank = rank;
}

void vg_mutex_done(struct vg_mutex *m)
{
    must(pthread_mutex_destroy(&m->mu), "pthread_mutex_destroy");
}

VG_NO_THREAD_SAFETY void vg_mutex_lock(struct vg_mutex *m)
{
    check_order(m);
    must(pthread_mutex_lock(&m->mu), "pthread_mutex_lock");
    set_owner(m, self_id());
    push_held(m);
}

VG_NO_THREAD_SAFETY bool vg_mutex_try_lock(struct vg_mutex *m)
{
    check_order(m);
    int error = pthread_mutex_trylock(&m->mu);
    if (error == EBUSY)
        return false;
    must(error, "pthread_mutex_trylock");
    set_owner(m, self_id());
    push_held(m);
    return true;
}

VG_NO_THREAD_SAFETY void vg_mutex_unlock(struct vg_mutex *m)
{
    check_held(m, "unlocking");
    pop_held(m);
    set_owner(m, 0);
    must(pthread_mutex_unlock(&m->mu), "pthread_mutex_unlock");
}

bool vg_mutex_is_held(const struct vg_mutex *m)
{
    return atomic_load_explicit(&m->owner, memory_order_relaxed) == self_id();
}

VG_NO_THREAD_SAFETY void vg_mutex_assert_held(const struct vg_mutex *m)
{
    check_held(m, "asserting");
}

void vg_cond_init(struct vg_cond *c)
{
    pthread_condattr_t attr;
    must(pthread_condattr_init(&attr), "pthread_condattr_init");
    must(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC), "pthread_condattr_setclock");
    must(pthread_cond_init(&c->cond, &attr), "pthread_cond_init");
    must(pthread_condattr_destroy(&attr), "pthread_condattr_destroy");
}

void vg_cond_done(struct vg_cond *c)
{
    must(pthread_cond_destroy(&c->cond), "pthread_cond_destroy");
}

/* A waiting thread runs no code, so the lock stays in its list of held ones; only the owner goes.
 */
void vg_cond_wait(struct vg_cond *c, struct vg_mutex *m)
{
    check_held(m, "waiting on");
    set_owner(m, 0);
    must(pthread_cond_wait(&c->cond, &m->mu), "pthread_cond_wait");
    set_owner(m, self_id());
}

bool vg_cond_wait_until_ns(struct vg_cond *c, struct vg_mutex *m, uint64_t deadline_ns)
{
    struct timespec at = {.tv_sec = (time_t)(deadline_ns / NS_PER_S),
                          .tv_nsec = (long)(deadline_ns % NS_PER_S)};
    check_held(m, "waiting on");
    set_owner(m, 0);
    int error = pthread_cond_timedwait(&c->cond, &m->mu, &at);
    set_owner(m, self_id());
    if (error == ETIMEDOUT)
        return false;
    must(error, "pthread_cond_timedwait");
    return true;
}

bool vg_cond_wait_on_clock(struct vg_cond *c, struct vg_mutex *m, const struct vg_clock *clock,
                           uint64_t deadline_ns)
{
    if (!vg_clock_is_fake(clock))
        return vg_cond_wait_until_ns(c, m, deadline_ns);
    if (vg_clock_mono_ns(clock) >= deadline_ns)
        return false;
    vg_cond_wait(c, m);
    return vg_clock_mono_ns(clock) < deadline_ns;
}

void vg_cond_signal(struct vg_cond *c)
{
    must(pthread_cond_signal(&c->cond), "pthread_cond_signal");
}

void vg_cond_broadcast(struct vg_cond *c)
{
    must(pthread_cond_broadcast(&c->cond), "pthread_cond_broadcast");
}
