/* slice.h - a borrowed run of bytes. Never owns, never NUL-terminated by promise. */
#ifndef VG_BASE_SLICE_H
#define VG_BASE_SLICE_H

#include <stdbool.h>
#include <string.h>

#include "macros.h"

struct vg_slice {
    const char *p;
    size_t n;
};

#define VG_SLICE_LIT(lit) ((struct vg_slice){(lit), sizeof(lit) - 1})
/* For printf: "%.*s", VG_SLICE_ARG(s). Lengths over INT_MAX are cut. */
#define VG_SLICE_ARG(s) (int)((s).n > 0x7fffffff ? 0x7fffffff : (s).n), (s).p

static inline struct vg_slice vg_slice(const void *p, size_t n)
{
    return (struct vg_slice){p, n};
}

static inline struct vg_slice vg_slice_str(const char *s)
{
    return (struct vg_slice){s, strlen(s)};
}

/* Bytewise, as unsigned chars; a prefix sorts first. */
static inline int vg_slice_cmp(struct vg_slice a, struct vg_slice b)
{
    size_t n = VG_MIN(a.n, b.n);
    int c = n ? memcmp(a.p, b.p, n) : 0;
    return c ? c : (a.n > b.n) - (a.n < b.n);
}

static inline bool vg_slice_eq(struct vg_slice a, struct vg_slice b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool vg_slice_has_prefix(struct vg_slice s, struct vg_slice prefix)
{
    return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

#endif
