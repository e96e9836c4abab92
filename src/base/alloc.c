/* alloc.c - malloc with a fault switch.
 * The switch costs one relaxed load per allocation when it is off; it exists in release builds too,
 * so that what is tested is what is shipped. */
#include "alloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum fault_scope { FAULT_OFF = 0, FAULT_THREAD = 1, FAULT_ALL = 2 };

static _Atomic int fault_scope = FAULT_OFF;
static _Atomic uint64_t all_count;
static _Atomic uint64_t all_target;
static _Thread_local uint64_t thread_count;
static _Thread_local uint64_t thread_target;

static int count_and_decide(int scope)
{
    if (scope == FAULT_ALL) {
        uint64_t n = atomic_fetch_add_explicit(&all_count, 1, memory_order_relaxed) + 1;
        return n == atomic_load_explicit(&all_target, memory_order_relaxed);
    }
    return ++thread_count == thread_target;
}

static inline int must_fail(void)
{
    int scope = atomic_load_explicit(&fault_scope, memory_order_relaxed);
    return VG_UNLIKELY(scope != FAULT_OFF) && count_and_decide(scope);
}

uint64_t vg_alloc_fail_at(uint64_t n, int all_threads)
{
    int scope = atomic_load(&fault_scope);
    uint64_t made = scope == FAULT_ALL ? atomic_load(&all_count) : thread_count;
    thread_count = 0;
    thread_target = n;
    atomic_store(&all_count, 0);
    atomic_store(&all_target, n);
    if (n == 0)
        atomic_store(&fault_scope, FAULT_OFF);
    else
        atomic_store(&fault_scope, all_threads ? FAULT_ALL : FAULT_THREAD);
    return made;
}

void *vg_malloc(size_t size)
{
    return must_fail() ? NULL : malloc(size ? size : 1);
}

void *vg_calloc(size_t count, size_t size)
{
    return must_fail() ? NULL : calloc(count ? count : 1, size ? size : 1);
}

void *vg_realloc(void *p, size_t size)
{
    return must_fail() ? NULL : realloc(p, size ? size : 1);
}

void *vg_reallocarray(void *p, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total))
        return NULL;
    return vg_realloc(p, total);
}

char *vg_strndup(const char *s, size_t n)
{
    char *copy = n < SIZE_MAX ? vg_malloc(n + 1) : NULL;
    if (!copy)
        return NULL;
    if (n)
        memcpy(copy, s, n);
    copy[n] = '\0';
    return copy;
}

char *vg_strdup(const char *s)
{
    return vg_strndup(s, strlen(s));
}

void vg_free(void *p)
{
    free(p);
}

/* ---- pages ahead ---- */

#define PAGE_BYTES                                                                                 \
    ((uintptr_t)4096) /* or a multiple of it: then the call fails and nothing is lost */
#define AHEAD ((uintptr_t)512 << 10)
#define AHEAD_MIN ((uintptr_t)64 << 10)

void vg_alloc_touch_ahead(const void *p)
{
#ifdef MADV_POPULATE_WRITE
    static _Atomic uintptr_t touched; /* the heap below is made, but for what was given back */
    uintptr_t at = (uintptr_t)p, until = atomic_load_explicit(&touched, memory_order_relaxed);
    if (at + AHEAD_MIN < until)
        return;
    uintptr_t end = (uintptr_t)sbrk(0) & ~(PAGE_BYTES - 1);
    uintptr_t from = VG_MAX(until, (at + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1));
    uintptr_t to = VG_MIN(end, from + AHEAD);
    if (at < end && from < to &&
        atomic_compare_exchange_strong_explicit(&touched, &until, to, memory_order_relaxed,
                                                memory_order_relaxed))
        (void)madvise((void *)from, to - from, MADV_POPULATE_WRITE);
#else
    (void)p;
#endif
}
