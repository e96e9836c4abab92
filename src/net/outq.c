/* outq.c - see outq.h.
 *   Q1 q->n is the sum of the pieces' n; no piece of a queue is empty.
 *   Q2 a copied piece's bytes lie in its own data; a reference holds one pin. */
#include "outq.h"

#include <errno.h>

#include "base/alloc.h"

struct vg_outq_piece {
    struct vg_outq_piece *next;
    const char *p; /* what is left of it */
    size_t n;
    size_t cap; /* of data; 0: a reference */
    struct vg_http_pin pin;
    char data[];
};

/* 512 with its head: the head of an answer fits, and what frames an event, too. */
#define POOLED_CAP (512u - sizeof(struct vg_outq_piece))
/* 4 KiB: from here on a piece is as large as what it is made for. */
#define LARGE_MIN 4096u

static struct vg_outq_piece *take_piece(struct vg_outq_pool *pool, size_t cap)
{
    struct vg_outq_piece *piece = cap <= POOLED_CAP ? pool->free : NULL;
    if (piece) {
        pool->free = piece->next;
        pool->n_free--;
        return piece;
    }
    cap = cap <= POOLED_CAP ? POOLED_CAP : VG_MAX(cap, LARGE_MIN);
    piece = vg_malloc(sizeof *piece + cap);
    if (piece)
        piece->cap = cap;
    return piece;
}

static void give_piece(struct vg_outq_pool *pool, struct vg_outq_piece *piece)
{
    if (piece->cap == 0) {
        piece->pin.unref(piece->pin.block);
        piece->cap = POOLED_CAP; /* references come from the pool */
    }
    if (piece->cap != POOLED_CAP || pool->n_free >= VG_OUTQ_POOL_MAX) {
        vg_free(piece);
        return;
    }
    piece->next = pool->free;
    pool->free = piece;
    pool->n_free++;
}

void vg_outq_pool_done(struct vg_outq_pool *pool)
{
    while (pool->free) {
        struct vg_outq_piece *piece = pool->free;
        pool->free = piece->next;
        vg_free(piece);
    }
    pool->n_free = 0;
}

static void link_piece(struct vg_outq *q, struct vg_outq_piece *piece)
{
    piece->next = NULL;
    if (q->tail)
        q->tail->next = piece;
    else
        q->head = piece;
    q->tail = piece;
    q->n += piece->n;
}

static struct vg_outq_piece *unlink_head(struct vg_outq *q)
{
    struct vg_outq_piece *piece = q->head;
    q->head = piece->next;
    if (!q->head)
        q->tail = NULL;
    q->n -= piece->n;
    return piece;
}

void vg_outq_done(struct vg_outq *q)
{
    while (q->head)
        give_piece(q->pool, unlink_head(q));
}

static size_t room_at_tail(const struct vg_outq *q)
{
    const struct vg_outq_piece *t = q->tail;
    return t && t->cap ? (size_t)(t->data + t->cap - (t->p + t->n)) : 0;
}

int vg_outq_copy(struct vg_outq *q, const void *p, size_t n)
{
    size_t room = VG_MIN(room_at_tail(q), n);
    if (room) {
        memcpy(q->tail->data + (q->tail->p - q->tail->data) + q->tail->n, p, room);
        q->tail->n += room;
        q->n += room;
    }
    if (room == n)
        return 0;
    struct vg_outq_piece *piece = take_piece(q->pool, n - room);
    if (!piece)
        return -ENOMEM;
    memcpy(piece->data, (const char *)p + room, n - room);
    piece->p = piece->data;
    piece->n = n - room;
    link_piece(q, piece);
    return 0;
}

static int add_ref(struct vg_outq *q, struct vg_slice s, const struct vg_http_pin *pin)
{
    struct vg_outq_piece *piece = take_piece(q->pool, 0);
    if (!piece)
        return -ENOMEM;
    pin->ref(pin->block);
    piece->cap = 0;
    piece->p = s.p;
    piece->n = s.n;
    piece->pin = *pin;
    link_piece(q, piece);
    return 0;
}

int vg_outq_put(struct vg_outq *q, const struct vg_slice *v, size_t n,
                const struct vg_http_pin *pin)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++)
        r = pin && v[i].n > VG_OUTQ_COPY_MAX ? add_ref(q, v[i], pin)
                                             : vg_outq_copy(q, v[i].p, v[i].n);
    return r;
}

/* Short copies join the tail rather than cost a vector of their own. */
static int move_whole(struct vg_outq *from, struct vg_outq *to)
{
    struct vg_outq_piece *piece = unlink_head(from);
    if (piece->cap == 0 || piece->n > VG_OUTQ_COPY_MAX || piece->n > room_at_tail(to)) {
        link_piece(to, piece);
        return 0;
    }
    int r = vg_outq_copy(to, piece->p, piece->n);
    give_piece(from->pool, piece);
    return r;
}

int vg_outq_move(struct vg_outq *from, size_t n, struct vg_outq *to)
{
    int r = 0;
    while (r == 0 && n && from->head) {
        struct vg_outq_piece *piece = from->head;
        size_t part = VG_MIN(n, piece->n);
        n -= part;
        if (part == piece->n) {
            r = move_whole(from, to);
            continue;
        }
        r = piece->cap ? vg_outq_copy(to, piece->p, part)
                       : add_ref(to, vg_slice(piece->p, part), &piece->pin);
        if (r == 0)
            vg_outq_consume(from, part);
    }
    return r;
}

size_t vg_outq_vectors(const struct vg_outq *q, struct iovec *iov, size_t max)
{
    size_t i = 0;
    for (const struct vg_outq_piece *piece = q->head; piece && i < max; piece = piece->next)
        iov[i++] = (struct iovec){.iov_base = (void *)(uintptr_t)piece->p, .iov_len = piece->n};
    return i;
}

size_t vg_outq_peek(const struct vg_outq *q, void *p, size_t n)
{
    size_t done = 0;
    for (const struct vg_outq_piece *piece = q->head; piece && done < n; piece = piece->next) {
        size_t part = VG_MIN(n - done, piece->n);
        memcpy((char *)p + done, piece->p, part);
        done += part;
    }
    return done;
}

void vg_outq_consume(struct vg_outq *q, size_t n)
{
    assert(n <= q->n);
    while (n) {
        struct vg_outq_piece *piece = q->head;
        if (n < piece->n) {
            piece->p += n;
            piece->n -= n;
            q->n -= n;
            return;
        }
        n -= piece->n;
        give_piece(q->pool, unlink_head(q));
    }
}
