/* arena.h - memory that is freed all at once.
 * Chunks double from the first size up to 1 MiB; a request larger than a chunk gets its own.
 * Nothing is freed singly. vg_arena_reset keeps the newest chunk, so that a loop which parses
 * message after message stops allocating. Thread: one owner. */
#ifndef VG_BASE_ARENA_H
#define VG_BASE_ARENA_H

#include <stdarg.h>

#include "slice.h"

struct vg_arena_chunk;

struct vg_arena {
    char *cur; /* next free byte of the newest chunk */
    char *end; /* past the newest chunk */
    struct vg_arena_chunk *chunks;
    size_t used;  /* bytes held in chunks, for the cap */
    size_t max;   /* never holds more; 0 = no cap */
    size_t first; /* size of the first chunk; 0 = 4 KiB */
};

static inline void vg_arena_init(struct vg_arena *a, size_t first, size_t max)
{
    *a = (struct vg_arena){.first = first, .max = max};
}
void vg_arena_done(struct vg_arena *a);
void vg_arena_reset(struct vg_arena *a);
static inline void vg_arena_cleanup(struct vg_arena *a)
{
    vg_arena_done(a);
}

/* The slow way: takes a new chunk. NULL: out of memory or over the cap. */
VG_CHECK void *vg_arena_alloc_slow(struct vg_arena *a, size_t size, size_t align);

/* Uninitialised memory; align is a power of two of at most 16. NULL: out of memory or over the cap.
 */
VG_CHECK static inline void *vg_arena_alloc(struct vg_arena *a, size_t size, size_t align)
{
    uintptr_t at = VG_ALIGN_UP((uintptr_t)a->cur, (uintptr_t)align);
    if (VG_LIKELY(a->cur && at <= (uintptr_t)a->end && size <= (uintptr_t)a->end - at)) {
        char *p = a->cur + (at - (uintptr_t)a->cur);
        a->cur = p + size;
        return p;
    }
    return vg_arena_alloc_slow(a, size, align);
}

#define vg_arena_new(a, type) ((type *)vg_arena_alloc((a), sizeof(type), _Alignof(type)))
#define vg_arena_array(a, type, n)                                                                 \
    ((size_t)(n) > SIZE_MAX / sizeof(type)                                                         \
         ? NULL                                                                                    \
         : (type *)vg_arena_alloc((a), sizeof(type) * (n), _Alignof(type)))

/* Copies; NULL as above. */
VG_CHECK char *vg_arena_copy(struct vg_arena *a, const void *p, size_t n);

/* A text in the arena. 0, -ENOMEM, VIGIL_E_TOO_LARGE. */
VG_CHECK int vg_arena_printf(struct vg_arena *a, struct vg_slice *ret, const char *fmt, ...)
    VG_PRINTF(3, 4);
VG_CHECK int vg_arena_printf_v(struct vg_arena *a, struct vg_slice *ret, const char *fmt,
                               va_list ap) VG_PRINTF(3, 0);
/* A copy; the empty text needs no memory. 0, -ENOMEM. */
VG_CHECK int vg_arena_keep(struct vg_arena *a, struct vg_slice s, struct vg_slice *ret);

#endif
