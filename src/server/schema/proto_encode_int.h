/* proto_encode_int.h - what the files of the encoder share. */
#ifndef VG_SCHEMA_PROTO_ENCODE_INT_H
#define VG_SCHEMA_PROTO_ENCODE_INT_H

#include "proto_int.h"
#include "json/bytes.h"

/* The text being read and the bytes being written. */
struct vg_proto_encode {
    const char *p, *end; /* what is left of the text */
    struct vg_proto_sink out;
    struct vg_buf *order;                      /* for types whose fields have to change places */
    const struct vg_schema_field *in_revision; /* the field that gets `revision` when absent */
    struct vg_slice revision;
    unsigned depth;
    bool is_shuffled; /* keys are not in the order of the tables: nothing is written straight */
};

/* e->p is at a value: '\0' at the end of the text. */
static inline char vg_proto_peek(const struct vg_proto_encode *e)
{
    return VG_LIKELY(e->p < e->end) ? *e->p : '\0';
}
/* Past a value of whatever type. */
VG_CHECK int vg_proto_skip_value(struct vg_proto_encode *e);
/* 1 and past it when the value is null, else 0. */
static inline int vg_proto_take_null(struct vg_proto_encode *e)
{
    if (VG_LIKELY(vg_proto_peek(e) != 'n') || e->end - e->p < 4 || memcmp(e->p, "null", 4) != 0)
        return 0;
    e->p += 4;
    return 1;
}
/* In a list or object after a value: 1 and past the comma, 0 and past the bracket. */
VG_CHECK static inline int vg_proto_next(struct vg_proto_encode *e, char close)
{
    char c = vg_proto_peek(e);
    if (VG_UNLIKELY(c != ',' && c != close))
        return VIGIL_E_JSON_SYNTAX;
    e->p++;
    return c == ',';
}
/* At a list or object: 1 and past the bracket, 0 and past it when it is empty. */
VG_CHECK static inline int vg_proto_enter(struct vg_proto_encode *e, char open, char close)
{
    if (VG_UNLIKELY(vg_proto_peek(e) != open))
        return VIGIL_E_JSON_TYPE;
    e->p++;
    if (VG_LIKELY(vg_proto_peek(e) != close))
        return 1;
    e->p++;
    return 0;
}

/* How many of the next fields are compared with a key before its hash is asked. */
#define VG_PROTO_LOOK_AHEAD 16u

/* The object itself is 1; metadata deeper down, of templates, gets no revision. */
#define VG_PROTO_METADATA_DEPTH 2u

/* ---- keys ---- */

static inline uint64_t vg_proto_load8(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Which of eight bytes belong to a name of n bytes and the quote after it. */
static inline uint64_t vg_proto_head_mask(size_t n)
{
    if (n >= 7)
        return ~UINT64_C(0);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return ~UINT64_C(0) >> (56 - 8 * n);
#else
    return ~UINT64_C(0) << (56 - 8 * n);
#endif
}

/* Which of eight bytes is the first to be c; 8: none. */
static inline size_t vg_proto_find_in8(uint64_t bytes, unsigned char c)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t x = bytes ^ ones * c;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t zeros = (x - ones) & ~x & ones << 7; /* its lowest bit is right */
    return zeros ? (size_t)__builtin_ctzll(zeros) / 8 : 8;
#else
    for (size_t i = 0; i < 8; i++)
        if ((x >> (56 - 8 * i) & 0xff) == 0)
            return i;
    return 8;
#endif
}

/* The heads agree: does the rest? p is at the opening quote. */
static inline bool vg_proto_is_key(const char *p, const char *end, const struct vg_schema_field *f)
{
    size_t n = f->name_n;
    if (n < 8)
        return true;
    if ((size_t)(end - p) < n + 2 || p[n + 1] != '"')
        return false;
    for (size_t i = 8; i + 8 < n; i += 8)
        if (vg_proto_load8(p + 1 + i) != vg_proto_load8(f->name + i))
            return false;
    return vg_proto_load8(p + 1 + n - 8) == vg_proto_load8(f->name + n - 8);
}

/* The first quote or backslash from p; NULL: there is none. */
static inline const char *vg_proto_find_quote(const char *p, const char *end)
{
#if defined(__SSE2__)
    for (; VG_LIKELY(end - p >= 16); p += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')),
                                   _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
        unsigned mask = (unsigned)_mm_movemask_epi8(hit);
        if (VG_LIKELY(mask))
            return p + __builtin_ctz(mask);
    }
#endif
    while (p < end && *p != '"' && *p != '\\')
        p++;
    return p < end ? p : NULL;
}

/* The hard way: by hash. A key with an escape in it is none of ours. */
VG_CHECK static inline int vg_proto_find_key(struct vg_proto_encode *e,
                                             const struct vg_schema_type *t, size_t *ret_n)
{
    if (vg_proto_peek(e) != '"')
        return VIGIL_E_JSON_SYNTAX;
    const char *p = e->p;
    const char *q = vg_proto_find_quote(p + 1, e->end);
    if (VG_UNLIKELY(!q || *q == '\\')) {
        if (vg_proto_skip_value(e) < 0)
            return VIGIL_E_JSON_SYNTAX;
        q = e->p - 1;
    }
    *ret_n = (size_t)(q - p) - 1;
    const struct vg_schema_field *f = vg_schema_field(t, vg_slice(p + 1, *ret_n));
    return f ? (int)(f - t->fields) : t->n;
}

/* Past a key and its colon. The field's index, t->n: not in the table, negative: no key. */
VG_CHECK static inline int vg_proto_take_key(struct vg_proto_encode *e,
                                             const struct vg_schema_type *t, unsigned from)
{
    const char *p = e->p;
    unsigned i = from, stop = from;
    if (VG_LIKELY(e->end - p > 9 && *p == '"')) {
        uint64_t head = vg_proto_load8(p + 1);
        head &= vg_proto_head_mask(vg_proto_find_in8(head, '"'));
        stop = VG_MIN(from + VG_PROTO_LOOK_AHEAD, (unsigned)t->n);
        while (i < stop && (head != vg_proto_load8(t->fields[i].head) ||
                            !vg_proto_is_key(p, e->end, &t->fields[i])))
            i++;
    }
    size_t n = 0;
    if (VG_LIKELY(i < stop)) {
        n = t->fields[i].name_n;
    } else {
        int found = vg_proto_find_key(e, t, &n);
        if (found < 0)
            return found;
        i = (unsigned)found;
    }
    e->p = p + n + 2;
    if (VG_UNLIKELY(vg_proto_peek(e) != ':'))
        return VIGIL_E_JSON_SYNTAX;
    e->p++;
    return (int)i;
}

/* ---- values ---- */

VG_CHECK static inline int vg_proto_read_int(struct vg_proto_encode *e, int64_t *ret)
{
    const char *p = e->p;
    bool negative = p < e->end && *p == '-';
    p += negative;
    const char *first = p;
    uint64_t v = 0;
    uint64_t limit = (uint64_t)INT64_MAX + negative;
    for (; p < e->end && *p >= '0' && *p <= '9'; p++) {
        unsigned d = (unsigned)(*p - '0');
        if (v > (limit - d) / 10)
            return -ERANGE;
        v = v * 10 + d;
    }
    if (p == first || (p < e->end && (*p == '.' || *p == 'e' || *p == 'E')))
        return VIGIL_E_JSON_TYPE;
    e->p = p;
    *ret = (int64_t)(negative ? 0 - v : v);
    return 0;
}

/* A string of JSON as length and bytes. */
VG_CHECK int vg_proto_put_string(struct vg_proto_encode *e);
/* A value that is not null, with that tag. */
VG_CHECK int vg_proto_put_value(struct vg_proto_encode *e, const struct vg_schema_field *f,
                                unsigned number);
/* An object of JSON as length and message. */
VG_CHECK int vg_proto_put_object(struct vg_proto_encode *e, const struct vg_schema_type *t);

/* What stands for a field that JSON does not have, the revision too; nothing for most. */
VG_CHECK int vg_proto_put_absent(const struct vg_proto_encode *e, struct vg_proto_sink *s,
                                 const struct vg_schema_field *f);
/* The field of the object's own metadata where the revision goes; NULL: there is none. */
const struct vg_schema_field *vg_proto_find_revision(const struct vg_schema_type *t);

#endif
