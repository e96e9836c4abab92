/* lock.h - mutexes that know their owner and their place in the order, and conditions on them.
 * Ranks come from locks.def: a thread takes locks in that order only. With VG_DEBUG_CHECKS every
 * lock, unlock and assertion is checked and a violation aborts, naming both locks; without it a
 * mutex costs a pthread mutex and one relaxed store. clang's -Wthread-safety reads the annotations.
 * Thread: any. Owner: embedded in what it guards; destroyed only when no thread can hold it. */
#ifndef VG_BASE_LOCK_H
#define VG_BASE_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "macros.h"

#if defined(__clang__)
#define VG_TS_ATTR(x) __attribute__((x))
#else
#define VG_TS_ATTR(x)
#endif

#define VG_CAPABILITY(name) VG_TS_ATTR(capability(name))
#define VG_ACQUIRE(...) VG_TS_ATTR(acquire_capability(__VA_ARGS__))
#define VG_TRY_ACQUIRE(...) VG_TS_ATTR(try_acquire_capability(__VA_ARGS__))
#define VG_RELEASE(...) VG_TS_ATTR(release_capability(__VA_ARGS__))
#define VG_REQUIRES(...) VG_TS_ATTR(requires_capability(__VA_ARGS__))
#define VG_EXCLUDES(...) VG_TS_ATTR(locks_excluded(__VA_ARGS__))
#define VG_ASSERT_HELD(...) VG_TS_ATTR(assert_capability(__VA_ARGS__))
#define VG_NO_THREAD_SAFETY VG_TS_ATTR(no_thread_safety_analysis)
/* clang 14 rejects a guarded_by that names a sibling member in C: the annotation is for readers,
 * vg_mutex_assert_held() is the check. */
#define VG_GUARDED_BY(mutex)

enum vg_lock_rank {
#define VG_LOCK(name, guards) VG_RANK_##name,
#include "locks.def"
#undef VG_LOCK
    VG_RANK_COUNT
};

struct vg_clock;

struct VG_CAPABILITY("mutex") vg_mutex {
    pthread_mutex_t mu;
    _Atomic(uintptr_t) owner; /* identity of the holding thread; 0 = free */
    enum vg_lock_rank rank;   /* const after init */
};

struct vg_cond {
    pthread_cond_t cond; /* measures CLOCK_MONOTONIC */
};

const char *vg_lock_rank_name(enum vg_lock_rank rank);   /* "STORE_STATE" */
const char *vg_lock_rank_guards(enum vg_lock_rank rank); /* what locks.def says it guards */

void vg_mutex_init(struct vg_mutex *m, enum vg_lock_rank rank);
void vg_mutex_done(struct vg_mutex *m); /* not held, by anyone */
void vg_mutex_lock(struct vg_mutex *m) VG_ACQUIRE(*m);
/* True when it was free and is now held. Obeys the order too: a try is no excuse. */
VG_CHECK bool vg_mutex_try_lock(struct vg_mutex *m) VG_TRY_ACQUIRE(true, *m);
void vg_mutex_unlock(struct vg_mutex *m) VG_RELEASE(*m);
/* Does the calling thread hold it? In every build. */
bool vg_mutex_is_held(const struct vg_mutex *m);
/* Aborts with VG_DEBUG_CHECKS when the calling thread does not hold m. */
void vg_mutex_assert_held(const struct vg_mutex *m) VG_ASSERT_HELD(*m);

void vg_cond_init(struct vg_cond *c);
void vg_cond_done(struct vg_cond *c);
/* Wakes may be spurious: test the condition in a loop. */
void vg_cond_wait(struct vg_cond *c, struct vg_mutex *m) VG_REQUIRES(*m);
/* Waits until CLOCK_MONOTONIC passes deadline_ns at the latest (a deadline of the system clock,
 * vg_clock_mono_ns). True when woken, false when the deadline has passed. */
bool vg_cond_wait_until_ns(struct vg_cond *c, struct vg_mutex *m, uint64_t deadline_ns)
    VG_REQUIRES(*m);
/* As above on the given clock. A fake clock never wakes a thread by itself: register a
 * vg_clock_on_advance hook that takes m and broadcasts c. */
bool vg_cond_wait_on_clock(struct vg_cond *c, struct vg_mutex *m, const struct vg_clock *clock,
                           uint64_t deadline_ns) VG_REQUIRES(*m);
void vg_cond_signal(struct vg_cond *c);
void vg_cond_broadcast(struct vg_cond *c);

#endif
