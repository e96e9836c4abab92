/* arena.c - see arena.h. */
#include "arena.h"

#include <errno.h>

#include "alloc.h"
#include "buf.h"

#define CHUNK_FIRST ((size_t)4096)
/* 1 MiB: large enough that the chunk overhead vanishes, small enough not to waste on small trees.
 */
#define CHUNK_MAX ((size_t)1 << 20)

struct vg_arena_chunk {
    struct vg_arena_chunk *next;
    size_t size; /* of the whole allocation */
    _Alignas(16) char bytes[];
};

static void free_chunks(struct vg_arena_chunk *c)
{
    while (c) {
        struct vg_arena_chunk *next = c->next;
        vg_free(c);
        c = next;
    }
}

void vg_arena_done(struct vg_arena *a)
{
    free_chunks(a->chunks);
    a->chunks = NULL;
    a->cur = a->end = NULL;
    a->used = 0;
}

void vg_arena_reset(struct vg_arena *a)
{
    struct vg_arena_chunk *keep = a->chunks;
    if (!keep)
        return;
    free_chunks(keep->next);
    keep->next = NULL;
    a->used = keep->size;
    a->cur = keep->bytes;
    a->end = (char *)keep + keep->size;
}

static size_t next_chunk_size(const struct vg_arena *a, size_t need)
{
    size_t size = a->first ? a->first : CHUNK_FIRST;
    if (a->chunks)
        size = VG_MIN(VG_MAX(a->chunks->size * 2, size), CHUNK_MAX);
    return VG_MAX(size, need);
}

void *vg_arena_alloc_slow(struct vg_arena *a, size_t size, size_t align)
{
    (void)align; /* chunks start 16-aligned, the largest alignment an arena serves */
    if (size > SIZE_MAX - sizeof(struct vg_arena_chunk))
        return NULL;
    size_t need = size + sizeof(struct vg_arena_chunk);
    size_t total = next_chunk_size(a, need);
    if (a->max && (a->used >= a->max || total > a->max - a->used))
        total = need; /* the last chunk may be exactly what is asked for */
    if (a->max && (a->used >= a->max || total > a->max - a->used))
        return NULL;
    struct vg_arena_chunk *c = vg_malloc(total);
    if (!c)
        return NULL;
    c->next = a->chunks;
    c->size = total;
    a->chunks = c;
    a->used += total;
    a->cur = c->bytes + size;
    a->end = (char *)c + total;
    return c->bytes;
}

char *vg_arena_copy(struct vg_arena *a, const void *p, size_t n)
{
    char *copy = vg_arena_alloc(a, n ? n : 1, 1);
    if (copy && n)
        memcpy(copy, p, n);
    return copy;
}

int vg_arena_printf_v(struct vg_arena *a, struct vg_slice *ret, const char *fmt, va_list ap)
{
    VG_AUTO(buf) b = {0};
    int r = vg_buf_vprintf(&b, fmt, ap);
    return r < 0 ? r : vg_arena_keep(a, vg_buf_slice(&b), ret);
}

int vg_arena_printf(struct vg_arena *a, struct vg_slice *ret, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int r = vg_arena_printf_v(a, ret, fmt, ap);
    va_end(ap);
    return r;
}

int vg_arena_keep(struct vg_arena *a, struct vg_slice s, struct vg_slice *ret)
{
    if (s.n == 0) {
        *ret = VG_SLICE_LIT("");
        return 0;
    }
    char *p = vg_arena_copy(a, s.p, s.n);
    if (!p)
        return -ENOMEM;
    *ret = vg_slice(p, s.n);
    return 0;
}
