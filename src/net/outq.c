/* outq.c - see outq.h.
 *   Q1 q->n is the sum of the records' n; no record of a queue is empty, no piece without a record.
 *   Q2 a copied record's bytes lie behind it in its piece; a reference holds one pin.
 *   Q3 records of a piece lie between head and tail; only the last one of a queue grows. */
#include "outq.h"

#include <errno.h>

#include "base/alloc.h"

struct vg_outq_piece {
    struct vg_outq_piece *next;
    struct vg_outq_pool *pool;
    uint32_t head, tail; /* of the records, in data */
    uint32_t last;       /* where the last record begins */
    uint32_t cap;
    char data[];
};

struct record {
    const char *p; /* what is left of it */
    uint32_t n;
    uint32_t room; /* bytes behind the record that are its own; 0: a reference, its pin is there */
};

#define ALIGN(n) VG_ALIGN_UP((n), 8u)
#define REF_SIZE ((uint32_t)(sizeof(struct record) + sizeof(struct vg_http_pin)))
/* 512 with its head: the head of an answer, or four events by reference and what frames them. */
#define POOLED_CAP ((uint32_t)(512 - sizeof(struct vg_outq_piece)))
/* 4 KiB: from here on a piece is as large as what it is made for. */
#define LARGE_MIN 4096u
/* 1 GiB: longer slices become several records. */
#define RECORD_MAX (1u << 30)

/* ---- pieces ---- */

static struct vg_outq_piece *take_piece(struct vg_outq_pool *pool, size_t size)
{
    struct vg_outq_piece *piece = size <= POOLED_CAP ? pool->free : NULL;
    uint32_t cap = size <= POOLED_CAP ? POOLED_CAP : (uint32_t)VG_MAX(size, LARGE_MIN);
    if (piece) {
        pool->free = piece->next;
        pool->n_free--;
    } else {
        piece = vg_malloc(sizeof *piece + cap);
        if (!piece)
            return NULL;
        piece->cap = cap;
    }
    piece->next = NULL;
    piece->pool = pool;
    piece->head = piece->tail = piece->last = 0;
    return piece;
}

static void give_piece(struct vg_outq_piece *piece)
{
    struct vg_outq_pool *pool = piece->pool;
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

static struct vg_outq_piece *tail_of(const struct vg_outq *q)
{
    return q->head ? q->tail : NULL;
}

/* Room for `size` bytes behind the last record, in a new piece if need be. */
static struct vg_outq_piece *need(struct vg_outq *q, size_t size)
{
    struct vg_outq_piece *t = tail_of(q);
    if (t && t->cap - t->tail >= size)
        return t;
    struct vg_outq_piece *piece = take_piece(t ? t->pool : q->pool, size);
    if (!piece)
        return NULL;
    if (t)
        t->next = piece;
    else
        q->head = piece;
    q->tail = piece;
    return piece;
}

/* ---- records ---- */

static struct record *record_at(struct vg_outq_piece *piece, uint32_t at)
{
    return (struct record *)(void *)(piece->data + at);
}

static struct vg_http_pin *pin_of(struct record *r)
{
    return (struct vg_http_pin *)(void *)(r + 1);
}

static uint32_t size_of(const struct record *r)
{
    return r->room ? (uint32_t)sizeof *r + r->room : REF_SIZE;
}

static struct record *add_record(struct vg_outq_piece *piece, uint32_t size)
{
    struct record *r = record_at(piece, piece->tail);
    piece->last = piece->tail;
    piece->tail += size;
    return r;
}

/* The pin is the queue's from here on. */
static int add_ref(struct vg_outq *q, const char *p, uint32_t n, const struct vg_http_pin *pin)
{
    struct vg_outq_piece *piece = need(q, REF_SIZE);
    if (!piece)
        return -ENOMEM;
    struct record *r = add_record(piece, REF_SIZE);
    *r = (struct record){.p = p, .n = n};
    *pin_of(r) = *pin;
    q->n += n;
    return 0;
}

/* Drop the first record without a word to its pin. */
static void drop_first(struct vg_outq *q)
{
    struct vg_outq_piece *piece = q->head;
    struct record *r = record_at(piece, piece->head);
    q->n -= r->n;
    piece->head += size_of(r);
    if (piece->head < piece->tail)
        return;
    q->head = piece->next;
    if (!q->head)
        q->pool = piece->pool;
    give_piece(piece);
}

static void release_first(struct vg_outq *q)
{
    struct record *r = record_at(q->head, q->head->head);
    struct vg_http_pin pin = {0};
    if (!r->room)
        pin = *pin_of(r);
    drop_first(q);
    if (pin.unref)
        pin.unref(pin.block);
}

void vg_outq_done(struct vg_outq *q)
{
    while (q->head)
        release_first(q);
}

/* ---- adding ---- */

/* Into the last record, if it is a copy: its room first, then what is free behind it. */
static size_t extend_last(struct vg_outq *q, const char *p, size_t n)
{
    struct vg_outq_piece *t = tail_of(q);
    struct record *r = t ? record_at(t, t->last) : NULL;
    if (!r || !r->room)
        return 0;
    uint32_t used = (uint32_t)(r->p + r->n - (const char *)(r + 1));
    uint32_t most = t->cap - t->last - (uint32_t)sizeof *r;
    uint32_t part = (uint32_t)VG_MIN(n, (size_t)(most - used));
    memcpy((char *)(r + 1) + used, p, part);
    r->n += part;
    q->n += part;
    if (used + part > r->room) {
        r->room = VG_MIN(ALIGN(used + part), most);
        t->tail = t->last + size_of(r);
    }
    return part;
}

int vg_outq_copy(struct vg_outq *q, const void *bytes, size_t n)
{
    const char *p = bytes;
    if (n == 0)
        return 0;
    size_t part = extend_last(q, p, n);
    for (p += part, n -= part; n; p += part, n -= part) {
        part = VG_MIN(n, (size_t)RECORD_MAX);
        uint32_t room = ALIGN((uint32_t)part);
        struct vg_outq_piece *piece = need(q, sizeof(struct record) + room);
        if (!piece)
            return -ENOMEM;
        struct record *r = add_record(piece, (uint32_t)sizeof *r + room);
        *r = (struct record){.p = (char *)(r + 1), .n = (uint32_t)part, .room = room};
        memcpy(r + 1, p, part);
        q->n += part;
    }
    return 0;
}

static int put_ref(struct vg_outq *q, struct vg_slice s, const struct vg_http_pin *pin)
{
    int r = 0;
    while (r == 0 && s.n) {
        uint32_t part = (uint32_t)VG_MIN(s.n, (size_t)RECORD_MAX);
        r = add_ref(q, s.p, part, pin);
        if (r == 0)
            pin->ref(pin->block);
        s.p += part;
        s.n -= part;
    }
    return r;
}

int vg_outq_put(struct vg_outq *q, const struct vg_slice *v, size_t n,
                const struct vg_http_pin *pin)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++)
        r = pin && v[i].n > VG_OUTQ_COPY_MAX ? put_ref(q, v[i], pin)
                                             : vg_outq_copy(q, v[i].p, v[i].n);
    return r;
}

/* The first record, or `part` bytes of it; a reference that goes whole takes its pin along. */
static int move_first(struct vg_outq *from, uint32_t part, struct vg_outq *to)
{
    struct record *r = record_at(from->head, from->head->head);
    bool is_whole = part == r->n;
    if (r->room) {
        int err = vg_outq_copy(to, r->p, part);
        if (err == 0)
            vg_outq_consume(from, part);
        return err;
    }
    struct vg_http_pin *pin = pin_of(r);
    int err = add_ref(to, r->p, part, pin);
    if (err < 0)
        return err;
    if (is_whole) {
        drop_first(from);
        return 0;
    }
    pin->ref(pin->block);
    vg_outq_consume(from, part);
    return 0;
}

int vg_outq_move(struct vg_outq *from, size_t n, struct vg_outq *to)
{
    int r = 0;
    while (r == 0 && n && from->head) {
        uint32_t has = record_at(from->head, from->head->head)->n;
        uint32_t part = (uint32_t)VG_MIN(n, (size_t)has);
        r = move_first(from, part, to);
        n -= part;
    }
    return r;
}

/* ---- leaving ---- */

/* A walk over the records. */
struct place {
    struct vg_outq_piece *piece;
    uint32_t at;
};
static struct record *first_record(const struct vg_outq *q, struct place *at)
{
    *at = (struct place){q->head, q->head ? q->head->head : 0};
    return q->head ? record_at(q->head, at->at) : NULL;
}
static struct record *next_record(struct place *at)
{
    at->at += size_of(record_at(at->piece, at->at));
    if (at->at >= at->piece->tail) {
        at->piece = at->piece->next;
        at->at = at->piece ? at->piece->head : 0;
    }
    return at->piece ? record_at(at->piece, at->at) : NULL;
}

size_t vg_outq_vectors(const struct vg_outq *q, struct iovec *iov, size_t max)
{
    struct place at;
    size_t i = 0;
    for (struct record *r = first_record(q, &at); r && i < max; r = next_record(&at))
        iov[i++] = (struct iovec){.iov_base = (void *)(uintptr_t)r->p, .iov_len = r->n};
    return i;
}

size_t vg_outq_peek(const struct vg_outq *q, void *p, size_t n)
{
    struct place at;
    size_t done = 0;
    for (struct record *r = first_record(q, &at); r && done < n; r = next_record(&at)) {
        size_t part = VG_MIN(n - done, (size_t)r->n);
        memcpy((char *)p + done, r->p, part);
        done += part;
    }
    return done;
}

void vg_outq_consume(struct vg_outq *q, size_t n)
{
    assert(n <= q->n);
    while (n) {
        struct record *r = record_at(q->head, q->head->head);
        if (n < r->n) {
            r->p += n;
            r->n -= (uint32_t)n;
            q->n -= n;
            return;
        }
        n -= r->n;
        release_first(q);
    }
}
