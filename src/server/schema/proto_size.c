/* proto_size.c - how long a message will be, without making it; see proto.h.
 * Strings, objects and JSON inside of objects, which are most of a text, are only measured. Other
 * values are written to a spare buffer to see how long they are: they are short, and their rules
 * then stand in one place. The order of fields makes no difference. */
#include "proto_encode_int.h"

static uint64_t tag_size(unsigned number)
{
    return vg_proto_varint_size((uint64_t)number << 3);
}

static uint64_t with_length(uint64_t n)
{
    return vg_proto_varint_size(n) + n;
}

static int size_object(struct vg_proto_encode *e, const struct vg_schema_type *t, uint64_t *ret);

/* ---- values ---- */

static inline void empty_spare(struct vg_proto_encode *e)
{
    e->out.o = e->out.buf->p;
}

static int size_string(struct vg_proto_encode *e, uint64_t *ret)
{
    if (VG_UNLIKELY(vg_proto_peek(e) != '"'))
        return VIGIL_E_JSON_TYPE;
    const char *p = e->p + 1;
    const char *q = vg_proto_find_quote(p, e->end);
    if (VG_LIKELY(q && *q == '"')) {
        *ret = with_length((uint64_t)(q - p));
        e->p = q + 1;
        return 0;
    }
    empty_spare(e);
    int r = vg_proto_put_string(e);
    *ret = vg_proto_sink_at(&e->out);
    return r;
}

static int size_raw(struct vg_proto_encode *e, uint64_t *ret)
{
    const char *p = e->p;
    int r = vg_proto_skip_value(e);
    *ret = with_length(1 + with_length((uint64_t)(e->p - p)));
    return r;
}

/* With its tag. */
static int size_value(struct vg_proto_encode *e, const struct vg_schema_field *f, unsigned number,
                      uint64_t *ret)
{
    int r;
    switch ((enum vg_schema_value)f->value) {
    case VG_SCHEMA_STRING:
        r = size_string(e, ret);
        break;
    case VG_SCHEMA_TYPE:
        r = size_object(e, f->type, ret);
        *ret = with_length(*ret);
        break;
    case VG_SCHEMA_RAW:
    case VG_SCHEMA_JSON:
    case VG_SCHEMA_FIELDS:
        r = size_raw(e, ret);
        break;
    default:
        empty_spare(e);
        r = vg_proto_put_value(e, f, number);
        *ret = vg_proto_sink_at(&e->out);
        return r;
    }
    *ret += tag_size(number);
    return r;
}

static int size_zero_value(struct vg_proto_encode *e, const struct vg_schema_field *f,
                           unsigned number, uint64_t *ret)
{
    empty_spare(e);
    int r = vg_proto_put_zero(&e->out, f, number);
    *ret = vg_proto_sink_at(&e->out);
    return r;
}

static inline int size_absent(struct vg_proto_encode *e, const struct vg_schema_field *f,
                              uint64_t *ret)
{
    if (VG_LIKELY(f->value <= VG_SCHEMA_INT64 && f != e->in_revision)) {
        *ret = tag_size(f->number) + 1;
        return 0;
    }
    empty_spare(e);
    int r = vg_proto_put_absent(e, &e->out, f);
    *ret = vg_proto_sink_at(&e->out);
    return r;
}

/* ---- fields ---- */

static int size_list(struct vg_proto_encode *e, const struct vg_schema_field *f, uint64_t *ret)
{
    int r = vg_proto_enter(e, '[', ']');
    while (r > 0) {
        uint64_t n = 0;
        r = vg_proto_take_null(e) ? size_zero_value(e, f, f->number, &n)
                                  : size_value(e, f, f->number, &n);
        *ret += n;
        if (VG_LIKELY(r == 0))
            r = vg_proto_next(e, ']');
    }
    return r;
}

static int size_entry(struct vg_proto_encode *e, const struct vg_schema_field *f, uint64_t *ret)
{
    uint64_t key = 0, value = 0;
    int r = size_string(e, &key);
    if (r < 0)
        return r;
    if (vg_proto_peek(e) != ':')
        return VIGIL_E_JSON_SYNTAX;
    e->p++;
    if (!vg_proto_take_null(e))
        r = size_value(e, f, 2, &value);
    else if (f->value != VG_SCHEMA_BYTES)
        r = size_zero_value(e, f, 2, &value);
    *ret += tag_size(f->number) + with_length(1 + key + value);
    return r;
}

static int size_map(struct vg_proto_encode *e, const struct vg_schema_field *f, uint64_t *ret)
{
    int r = vg_proto_enter(e, '{', '}');
    while (r > 0) {
        r = size_entry(e, f, ret);
        if (r == 0)
            r = vg_proto_next(e, '}');
    }
    return r;
}

static int size_field(struct vg_proto_encode *e, const struct vg_schema_type *t, unsigned i,
                      uint64_t *ret)
{
    const struct vg_schema_field *f = &t->fields[i];
    if (VG_UNLIKELY(f->number == 0))
        return vg_proto_skip_value(e);
    if (VG_UNLIKELY(vg_proto_take_null(e)))
        return t->always >> i & 1 ? size_zero_value(e, f, f->number, ret) : 0;
    if (f->shape == VG_SCHEMA_ONE)
        return size_value(e, f, f->number, ret);
    return f->shape == VG_SCHEMA_LIST ? size_list(e, f, ret) : size_map(e, f, ret);
}

/* ---- objects ---- */

/* Parts count as fields of those that hold them; inner ones have higher indexes. */
static uint64_t add_parts(const struct vg_schema_type *t, uint64_t *sums)
{
    for (unsigned k = t->n_parts; k-- > 0;)
        for (unsigned i = 0; i < t->parts[k].n; i++) {
            const struct vg_schema_entry *x = &t->parts[k].entries[i];
            if (x->is_part)
                sums[k] += tag_size(x->number) + with_length(sums[x->index]);
        }
    return sums[0];
}

/* By part; *seen says which fields there are. */
static int size_members(struct vg_proto_encode *e, const struct vg_schema_type *t, uint64_t *sums,
                        uint64_t *sizes, uint64_t *seen)
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
            uint64_t n = 0;
            r = size_field(e, t, (unsigned)i, &n);
            if (VG_UNLIKELY(*seen >> i & 1))
                sums[t->fields[i].part] -= sizes[i]; /* of two the last counts */
            sizes[i] = n;
            sums[t->fields[i].part] += n;
            *seen |= UINT64_C(1) << i;
            next = (unsigned)i + 1;
        }
        if (VG_LIKELY(r == 0))
            r = vg_proto_next(e, '}');
    }
    return r;
}

static int size_object(struct vg_proto_encode *e, const struct vg_schema_type *t, uint64_t *ret)
{
    uint64_t sums[VG_PROTO_PARTS_MAX] = {0}, sizes[VG_PROTO_FIELDS_MAX], seen = 0;
    if (e->depth == VG_PROTO_DEPTH_MAX)
        return VIGIL_E_JSON_DEPTH;
    if (t->n > VG_PROTO_FIELDS_MAX || t->n_parts > VG_PROTO_PARTS_MAX)
        return VIGIL_E_INTERNAL;
    e->depth++;
    int r = size_members(e, t, sums, sizes, &seen);
    for (uint64_t absent = t->always & ~seen; r == 0 && absent; absent &= absent - 1) {
        const struct vg_schema_field *f = &t->fields[__builtin_ctzll(absent)];
        uint64_t n = 0;
        r = size_absent(e, f, &n);
        sums[f->part] += n;
    }
    e->depth--;
    *ret = add_parts(t, sums);
    return r;
}

int vg_proto_size(struct vg_proto_encoder *encoder, const struct vg_schema_type *type,
                  struct vg_slice json, struct vg_slice revision, uint64_t *ret)
{
    struct vg_proto_encode e = {.p = json.p,
                                .end = json.p + json.n,
                                .order = &encoder->order,
                                .revision = revision,
                                .is_shuffled = true}; /* what is written is begun once */
    if (revision.n)
        e.in_revision = vg_proto_find_revision(type);
    vg_buf_clear(&encoder->spare);
    int r = vg_proto_sink_open(&e.out, &encoder->spare, 256);
    if (r < 0)
        return r;
    uint64_t n = 0;
    r = size_object(&e, type, &n);
    vg_buf_clear(&encoder->spare);
    if (r == 0 && e.p != e.end)
        r = VIGIL_E_JSON_SYNTAX;
    if (r == 0)
        *ret = n;
    return r;
}
