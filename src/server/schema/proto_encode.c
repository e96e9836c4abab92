/* proto_encode.c - objects of JSON as messages, in one pass over the text; see proto.h.
 * A type whose numbers rise in the order of its keys is written as it is read. Of others the
 * pieces are written as they come, and at the end of the object put into their places. Lengths
 * are kept one byte free and make room when they need more. */
#include <limits.h>

#include "proto_encode_int.h"

/* ---- fields ---- */

static int put_list(struct vg_proto_encode *e, const struct vg_schema_field *f)
{
    int r = vg_proto_enter(e, '[', ']');
    while (r > 0) {
        r = VG_UNLIKELY(vg_proto_take_null(e)) ? vg_proto_put_zero(&e->out, f, f->number)
                                               : vg_proto_put_value(e, f, f->number);
        if (VG_LIKELY(r == 0))
            r = vg_proto_next(e, ']');
    }
    return r;
}

/* {1 key, 2 value}; bytes that are null have no value. */
static int put_entry(struct vg_proto_encode *e, const struct vg_schema_field *f)
{
    int r = vg_proto_sink_room(&e->out, VG_PROTO_TAG_MAX + 2);
    if (r < 0)
        return r;
    e->out.o = vg_proto_write_tag(e->out.o, f->number, VG_PROTO_BYTES);
    size_t at = vg_proto_begin(&e->out);
    *e->out.o++ = 0x0a;
    r = vg_proto_put_string(e);
    if (r < 0)
        return r == VIGIL_E_JSON_TYPE ? VIGIL_E_JSON_SYNTAX : r;
    if (vg_proto_peek(e) != ':')
        return VIGIL_E_JSON_SYNTAX;
    e->p++;
    if (!vg_proto_take_null(e))
        r = vg_proto_put_value(e, f, 2);
    else if (f->value != VG_SCHEMA_BYTES)
        r = vg_proto_put_zero(&e->out, f, 2);
    return r < 0 ? r : vg_proto_end(&e->out, at);
}

static int put_map(struct vg_proto_encode *e, const struct vg_schema_field *f)
{
    int r = vg_proto_enter(e, '{', '}');
    while (r > 0) {
        r = put_entry(e, f);
        if (r == 0)
            r = vg_proto_next(e, '}');
    }
    return r;
}

/* e->p is at the value of field i. */
static int put_field(struct vg_proto_encode *e, const struct vg_schema_type *t, unsigned i)
{
    const struct vg_schema_field *f = &t->fields[i];
    if (VG_UNLIKELY(f->number == 0))
        return vg_proto_skip_value(e);
    if (VG_UNLIKELY(vg_proto_take_null(e)))
        return t->always >> i & 1 ? vg_proto_put_zero(&e->out, f, f->number) : 0;
    if (f->shape == VG_SCHEMA_ONE)
        return vg_proto_put_value(e, f, f->number);
    return f->shape == VG_SCHEMA_LIST ? put_list(e, f) : put_map(e, f);
}

int vg_proto_put_absent(const struct vg_proto_encode *e, struct vg_proto_sink *s,
                        const struct vg_schema_field *f)
{
    if (VG_LIKELY(f != e->in_revision || e->depth != VG_PROTO_METADATA_DEPTH))
        return vg_proto_put_zero(s, f, f->number);
    int r = vg_proto_sink_room(s, VG_PROTO_TAG_MAX + VG_PROTO_VARINT_MAX + e->revision.n);
    if (r < 0)
        return r;
    s->o = vg_proto_write_tag(s->o, f->number, VG_PROTO_BYTES);
    s->o = vg_proto_write_varint(s->o, e->revision.n);
    memcpy(s->o, e->revision.p, e->revision.n);
    s->o += e->revision.n;
    return 0;
}

/* ---- types whose fields stay where they are ---- */

/* Those among the fields from `from` to before `to` that are always there. */
static inline int put_absent_until(struct vg_proto_encode *e, const struct vg_schema_type *t,
                                   unsigned from, unsigned to)
{
    uint64_t below = to < 64 ? (UINT64_C(1) << to) - 1 : ~UINT64_C(0);
    uint64_t mask = from < 64 ? t->always & below & ~UINT64_C(0) << from : 0;
    int r = 0;
    for (; r == 0 && mask; mask &= mask - 1)
        r = vg_proto_put_absent(e, &e->out, &t->fields[__builtin_ctzll(mask)]);
    return r;
}

/* A key stands before one that it should follow. All is begun anew then, and no object is tried in
 * this way again: to begin only the innermost one anew, and then the next, and so on, would take
 * twice as long with every level. */
#define SHUFFLED INT_MIN

/* 0, SHUFFLED, errors. */
static int put_straight(struct vg_proto_encode *e, const struct vg_schema_type *t)
{
    unsigned next = 0;
    int r = vg_proto_enter(e, '{', '}');
    while (r > 0) {
        int i = vg_proto_take_key(e, t, next);
        if (VG_UNLIKELY(i < 0))
            return i;
        if (VG_UNLIKELY(i == t->n)) {
            r = vg_proto_skip_value(e);
        } else {
            if (VG_UNLIKELY((unsigned)i < next))
                return SHUFFLED;
            r = put_absent_until(e, t, next, (unsigned)i);
            if (r == 0)
                r = put_field(e, t, (unsigned)i);
            next = (unsigned)i + 1;
        }
        if (VG_LIKELY(r == 0))
            r = vg_proto_next(e, '}');
    }
    return r < 0 ? r : put_absent_until(e, t, next, t->n);
}

/* ---- types whose fields change places ---- */

struct piece {
    size_t at, n; /* in the output */
};

/* What was written of an object; v[i] means something when bit i is set. */
struct pieces {
    uint64_t mask;
    struct piece v[VG_PROTO_FIELDS_MAX];
};

static int put_run(const struct vg_proto_encode *e, struct vg_proto_sink *s, struct piece *run)
{
    int r = vg_proto_sink_room(s, run->n);
    if (r < 0)
        return r;
    memcpy(s->o, e->out.buf->p + run->at, run->n);
    s->o += run->n;
    run->n = 0;
    return 0;
}

static int put_part(const struct vg_proto_encode *e, struct vg_proto_sink *s,
                    const struct vg_schema_type *t, const struct vg_schema_part *part,
                    const struct pieces *pieces);

/* What is not among the pieces but has to be there. */
static int put_missing(const struct vg_proto_encode *e, struct vg_proto_sink *s,
                       const struct vg_schema_type *t, const struct vg_schema_entry *x,
                       const struct pieces *pieces)
{
    if (!x->is_part)
        return vg_proto_put_absent(e, s, &t->fields[x->index]);
    int r = vg_proto_sink_room(s, VG_PROTO_TAG_MAX + 1);
    if (r < 0)
        return r;
    s->o = vg_proto_write_tag(s->o, x->number, VG_PROTO_BYTES);
    size_t at = vg_proto_begin(s);
    r = put_part(e, s, t, &t->parts[x->index], pieces);
    return r < 0 ? r : vg_proto_end(s, at);
}

/* Pieces that follow each other in both orders are copied together. */
static int put_part(const struct vg_proto_encode *e, struct vg_proto_sink *s,
                    const struct vg_schema_type *t, const struct vg_schema_part *part,
                    const struct pieces *pieces)
{
    struct piece run = {0};
    int r = 0;
    for (unsigned i = 0; r == 0 && i < part->n; i++) {
        const struct vg_schema_entry *x = &part->entries[i];
        uint64_t bit = x->is_part ? 0 : UINT64_C(1) << x->index;
        if (pieces->mask & bit) {
            const struct piece *piece = &pieces->v[x->index];
            if (run.n && run.at + run.n != piece->at)
                r = put_run(e, s, &run);
            run.at = run.n ? run.at : piece->at;
            run.n += piece->n;
        } else if (x->is_part || t->always & bit) {
            r = put_run(e, s, &run);
            if (r == 0)
                r = put_missing(e, s, t, x, pieces);
        }
    }
    return r < 0 ? r : put_run(e, s, &run);
}

/* All members in the order of the text. */
static int put_members(struct vg_proto_encode *e, const struct vg_schema_type *t,
                       struct pieces *pieces)
{
    unsigned next = 0;
    pieces->mask = 0;
    int r = vg_proto_enter(e, '{', '}');
    while (r > 0) {
        int i = vg_proto_take_key(e, t, next);
        if (VG_UNLIKELY(i < 0))
            return i;
        if (VG_UNLIKELY(i == t->n)) {
            r = vg_proto_skip_value(e);
        } else {
            size_t at = vg_proto_sink_at(&e->out);
            r = put_field(e, t, (unsigned)i);
            pieces->v[i] = (struct piece){at, vg_proto_sink_at(&e->out) - at};
            pieces->mask |= UINT64_C(1) << i;
            next = (unsigned)i + 1;
        }
        if (VG_LIKELY(r == 0))
            r = vg_proto_next(e, '}');
    }
    return r;
}

/* The message into e->order; e->out is as before. */
static int put_pieces(struct vg_proto_encode *e, const struct vg_schema_type *t)
{
    struct pieces pieces;
    struct vg_proto_sink s;
    size_t start = vg_proto_sink_at(&e->out);
    int r = put_members(e, t, &pieces);
    if (r < 0)
        return r;
    vg_buf_clear(e->order);
    r = vg_proto_sink_open(&s, e->order, vg_proto_sink_at(&e->out) - start);
    if (r < 0)
        return r;
    r = put_part(e, &s, t, &t->parts[0], &pieces);
    e->order->n = vg_proto_sink_at(&s);
    e->out.o = e->out.buf->p + start;
    return r;
}

static int take_order(struct vg_proto_encode *e, bool with_length)
{
    size_t n = e->order->n;
    if (n > VG_PROTO_MESSAGE_MAX)
        return VIGIL_E_TOO_LARGE;
    int r = vg_proto_sink_room(&e->out, n + VG_PROTO_VARINT_MAX);
    if (r < 0)
        return r;
    if (with_length)
        e->out.o = vg_proto_write_varint(e->out.o, n);
    if (n)
        memcpy(e->out.o, e->order->p, n);
    e->out.o += n;
    return 0;
}

/* ---- objects ---- */

static int put_disordered(struct vg_proto_encode *e, const struct vg_schema_type *t,
                          bool with_length)
{
    int r = put_pieces(e, t);
    return r < 0 ? r : take_order(e, with_length);
}

int vg_proto_put_object(struct vg_proto_encode *e, const struct vg_schema_type *t)
{
    if (e->depth == VG_PROTO_DEPTH_MAX)
        return VIGIL_E_JSON_DEPTH;
    if (t->n > VG_PROTO_FIELDS_MAX)
        return VIGIL_E_INTERNAL;
    e->depth++;
    int r;
    if (t->is_straight && !e->is_shuffled) {
        size_t at = vg_proto_begin(&e->out);
        r = put_straight(e, t);
        if (r == 0)
            r = vg_proto_end(&e->out, at);
    } else {
        r = put_disordered(e, t, true);
    }
    e->depth--;
    return r;
}

/* The metadata of the object itself, where the revision goes. */
const struct vg_schema_field *vg_proto_find_revision(const struct vg_schema_type *t)
{
    const struct vg_schema_field *m = vg_schema_field(t, VG_SLICE_LIT("metadata"));
    if (!m || m->value != VG_SCHEMA_TYPE)
        return NULL;
    return vg_schema_field(m->type, VG_SLICE_LIT("resourceVersion"));
}

static int put_root(struct vg_proto_encode *e, const struct vg_schema_type *t)
{
    const char *from = e->p;
    size_t at = vg_proto_sink_at(&e->out);
    e->depth = 1;
    int r = t->is_straight ? put_straight(e, t) : put_disordered(e, t, false);
    if (r == SHUFFLED) {
        e->p = from;
        e->out.o = e->out.buf->p + at;
        e->depth = 1;
        e->is_shuffled = true;
        r = put_disordered(e, t, false);
    }
    if (r == 0 && e->p != e->end)
        r = VIGIL_E_JSON_SYNTAX;
    return r;
}

int vg_proto_encode(struct vg_proto_encoder *encoder, const struct vg_schema_type *type,
                    struct vg_slice json, struct vg_slice revision, struct vg_buf *out)
{
    struct vg_proto_encode e = {
        .p = json.p, .end = json.p + json.n, .order = &encoder->order, .revision = revision};
    if (type->n > VG_PROTO_FIELDS_MAX)
        return VIGIL_E_INTERNAL;
    if (revision.n)
        e.in_revision = vg_proto_find_revision(type);
    size_t was = out->n;
    /* Protobuf is shorter than JSON but for what is always there. */
    int r = vg_proto_sink_open(&e.out, out, json.n / 4 * 3 + 64);
    if (r < 0)
        return r;
    r = put_root(&e, type);
    out->n = r < 0 ? was : vg_proto_sink_at(&e.out);
    return r;
}
