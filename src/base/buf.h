/* buf.h - a growable byte buffer with a hard cap.
 * Appends either succeed whole or change nothing; an append that would pass the cap fails with
 * VIGIL_E_TOO_LARGE, so that no peer can make a buffer grow without bound. Thread: one owner. */
#ifndef VG_BASE_BUF_H
#define VG_BASE_BUF_H

#include <stdarg.h>

#include "slice.h"

struct vg_buf {
    char *p;
    size_t n;   /* bytes used */
    size_t cap; /* bytes that fit */
    size_t max; /* never grows beyond; 0 = VG_BUF_MAX_DEFAULT */
};

/* 1 GiB: far above any legal message; a buffer that reaches it is a bug of ours. */
#define VG_BUF_MAX_DEFAULT ((size_t)1 << 30)

static inline void vg_buf_init(struct vg_buf *b, size_t max)
{
    *b = (struct vg_buf){.max = max};
}
void vg_buf_done(struct vg_buf *b); /* frees; the buffer is empty and usable again */
static inline void vg_buf_cleanup(struct vg_buf *b)
{
    vg_buf_done(b);
}

/* Room for `extra` more bytes. 0, -ENOMEM, VIGIL_E_TOO_LARGE. */
VG_CHECK int vg_buf_reserve(struct vg_buf *b, size_t extra);
VG_CHECK int vg_buf_append(struct vg_buf *b, const void *p, size_t n);
VG_CHECK int vg_buf_append_byte(struct vg_buf *b, char c);
VG_CHECK int vg_buf_printf(struct vg_buf *b, const char *fmt, ...) VG_PRINTF(2, 3);
VG_CHECK int vg_buf_vprintf(struct vg_buf *b, const char *fmt, va_list ap) VG_PRINTF(2, 0);

VG_CHECK static inline int vg_buf_append_slice(struct vg_buf *b, struct vg_slice s)
{
    return vg_buf_append(b, s.p, s.n);
}
static inline struct vg_slice vg_buf_slice(const struct vg_buf *b)
{
    return (struct vg_slice){b->p, b->n};
}
static inline void vg_buf_clear(struct vg_buf *b)
{
    b->n = 0;
}
/* Drop n bytes from the front. */
void vg_buf_consume(struct vg_buf *b, size_t n);

#endif
