/* macros.h - the few language helpers that every file shares. */
#ifndef VG_BASE_MACROS_H
#define VG_BASE_MACROS_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* The result must be looked at. */
#define VG_CHECK __attribute__((warn_unused_result))
#define VG_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define VG_LIKELY(x) __builtin_expect(!!(x), 1)
#define VG_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* A branch that we believe cannot be taken: aborts in debug builds, is still handled in others. */
#define VG_NEVER(x) (VG_UNLIKELY(x) ? (assert(0 && #x), 1) : 0)

#define VG_CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define VG_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define VG_MIN(a, b) ((a) < (b) ? (a) : (b))
#define VG_MAX(a, b) ((a) > (b) ? (a) : (b))
#define VG_ALIGN_UP(n, a) (((n) + (a)-1) & ~((a)-1))

/* VG_AUTO(buf) b = {0}; runs vg_buf_cleanup(&b) when b leaves its scope. A type takes part by
 * defining vg_<type>_cleanup; hand a pointer over with vg_steal(). */
#define VG_AUTO(type) __attribute__((cleanup(vg_##type##_cleanup))) struct vg_##type
#define VG_AUTO_PTR(type) __attribute__((cleanup(vg_##type##_freep))) struct vg_##type *

static inline void *vg_steal_(void *slot)
{
    void **p = slot;
    void *v = *p;
    *p = NULL;
    return v;
}
#define vg_steal(lvalue) ((__typeof__(lvalue))vg_steal_(&(lvalue)))

#endif
