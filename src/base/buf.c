/* buf.c - see buf.h. Growth doubles, so that appending is linear in what is appended. One byte more
 * than cap is allocated: the NUL that printf writes has a place even in a full buffer. */
#include "buf.h"

#include <errno.h>
#include <stdio.h>

#include "alloc.h"
#include "err.h"

#define FIRST_BYTES ((size_t)64)

void vg_buf_done(struct vg_buf *b)
{
    vg_free(b->p);
    b->p = NULL;
    b->n = b->cap = 0;
}

int vg_buf_reserve(struct vg_buf *b, size_t extra)
{
    size_t max = VG_MIN(b->max ? b->max : VG_BUF_MAX_DEFAULT, SIZE_MAX / 4);
    if (extra <= b->cap - b->n)
        return 0;
    if (b->n > max || extra > max - b->n)
        return VIGIL_E_TOO_LARGE;
    size_t bytes = VG_MAX(b->n + extra + 1, VG_MAX((b->cap + 1) * 2, FIRST_BYTES));
    bytes = VG_MIN(bytes, max + 1);
    char *p = vg_realloc(b->p, bytes);
    if (!p)
        return -ENOMEM;
    b->p = p;
    b->cap = bytes - 1;
    return 0;
}

int vg_buf_append(struct vg_buf *b, const void *p, size_t n)
{
    int r = vg_buf_reserve(b, n);
    if (r < 0)
        return r;
    if (n)
        memcpy(b->p + b->n, p, n);
    b->n += n;
    return 0;
}

int vg_buf_append_byte(struct vg_buf *b, char c)
{
    return vg_buf_append(b, &c, 1);
}

int vg_buf_vprintf(struct vg_buf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n <= 0)
        return n < 0 ? VIGIL_E_INVALID : 0;
    int r = vg_buf_reserve(b, (size_t)n);
    if (r < 0)
        return r;
    vsnprintf(b->p + b->n, (size_t)n + 1, fmt, ap);
    b->n += (size_t)n;
    return 0;
}

int vg_buf_printf(struct vg_buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int r = vg_buf_vprintf(b, fmt, ap);
    va_end(ap);
    return r;
}

void vg_buf_consume(struct vg_buf *b, size_t n)
{
    assert(n <= b->n);
    b->n -= n;
    if (b->n)
        memmove(b->p, b->p + n, b->n);
}
