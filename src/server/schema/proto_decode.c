/* proto_decode.c - messages as trees of JSON; see proto.h.
 * A message is read twice: once to see which fields it has and where, then by the table, in the
 * order of JSON. So nothing is put into the tree that does not stay there, and fields may come in
 * any order. What was seen lies on one stack for all nested messages. */
#include <stdlib.h>

#include "base/alloc.h"
#include "proto_decode_int.h"

/* ---- what is there ---- */

/* The fields of one message; runs[i] means something when bit i is set. */
struct found {
    uint64_t mask;
    struct vg_proto_run runs[VG_PROTO_FIELDS_MAX];
};

static int grow(struct vg_proto_decode *d)
{
    size_t cap = d->seen_cap ? d->seen_cap * 2 : 256;
    struct vg_proto_seen *v = vg_reallocarray(d->seen, cap, sizeof *v);
    if (!v)
        return -ENOMEM;
    d->seen = v;
    d->seen_cap = cap;
    return 0;
}

static inline int push(struct vg_proto_decode *d, struct found *found, unsigned field,
                       const struct vg_proto_seen *x)
{
    if (VG_UNLIKELY(d->seen_n == d->seen_cap) && grow(d) < 0)
        return -ENOMEM;
    uint32_t i = (uint32_t)d->seen_n++;
    struct vg_proto_run *run = &found->runs[field];
    d->seen[i] = *x;
    if (found->mask >> field & 1) {
        d->seen[run->last].next = i;
        run->last = i;
        run->n++;
    } else {
        found->mask |= UINT64_C(1) << field;
        *run = (struct vg_proto_run){i, i, 1};
    }
    return 0;
}

/* A zero that omitempty leaves out, and that overrides nothing: most of what is always written. */
static inline bool is_nothing(const struct vg_schema_field *f, const struct vg_proto_seen *x)
{
    return x->v == 0 && f->value <= VG_SCHEMA_BYTES && f->shape == VG_SCHEMA_ONE &&
           (f->flags & (VG_SCHEMA_POINTER | VG_SCHEMA_OMIT_EMPTY)) == VG_SCHEMA_OMIT_EMPTY;
}

/* The entry of that number; most messages have their fields in this order, so *cursor knows. */
static const struct vg_schema_entry *find_entry(const struct vg_schema_part *part, unsigned number,
                                                unsigned *cursor)
{
    unsigned i = *cursor;
    if (i >= part->n || part->entries[i].number > number)
        i = 0;
    while (i < part->n && part->entries[i].number < number)
        i++;
    *cursor = i;
    return i < part->n && part->entries[i].number == number ? &part->entries[i] : NULL;
}

static int scan(struct vg_proto_decode *d, const struct vg_schema_type *t,
                const struct vg_schema_part *part, struct vg_slice message, struct found *found)
{
    const char *p = message.p, *end = message.p + message.n;
    unsigned number, cursor = 0;
    struct vg_proto_seen x;
    int r;
    while ((r = vg_proto_take(&p, end, &number, &x, d->status)) > 0) {
        const struct vg_schema_entry *e = find_entry(part, number, &cursor);
        if (!e)
            continue;
        const struct vg_schema_field *f = &t->fields[e->index];
        if (VG_UNLIKELY(e->is_part ? x.wire != VG_PROTO_BYTES : !vg_proto_wire_fits(f, x.wire)))
            return vg_fail(d->status, VIGIL_E_INVALID, "proto: wrong wireType = %d for field %s.%s",
                           x.wire, part->go, e->is_part ? t->parts[e->index].go : f->name);
        if (e->is_part)
            r = scan(d, t, &t->parts[e->index], vg_proto_bytes(&x), found);
        else if (!is_nothing(f, &x) || found->mask >> e->index & 1)
            r = push(d, found, e->index, &x);
        if (r < 0)
            return r;
    }
    return r;
}

/* ---- one value ---- */

static bool is_message(enum vg_schema_value value)
{
    return value == VG_SCHEMA_TYPE || value == VG_SCHEMA_INT_OR_STRING ||
           value == VG_SCHEMA_QUANTITY || value == VG_SCHEMA_RAW || value == VG_SCHEMA_JSON ||
           value == VG_SCHEMA_FIELDS || value >= VG_SCHEMA_OR_ARRAY;
}

/* Messages that come in pieces are one after another the same as merged. */
static int join(struct vg_proto_decode *d, const struct vg_proto_run *run,
                struct vg_proto_seen *ret)
{
    size_t n = 0;
    for (uint32_t i = run->first; i != VG_PROTO_NONE; i = d->seen[i].next)
        n += (size_t)d->seen[i].v;
    char *p = vg_arena_alloc(d->arena, n, 1);
    if (!p)
        return -ENOMEM;
    *ret = (struct vg_proto_seen){.p = p, .v = n, .wire = VG_PROTO_BYTES};
    for (uint32_t i = run->first; i != VG_PROTO_NONE; i = d->seen[i].next) {
        memcpy(p, d->seen[i].p, (size_t)d->seen[i].v);
        p += d->seen[i].v;
    }
    return 0;
}

/* Does omitempty or omitzero leave such a value out? Structs are never empty to Go. A pointer to
 * what prints as null is as good as none: readers of JSON could not tell them apart. */
static bool is_left_out(const struct vg_schema_field *f, const struct vg_proto_seen *x,
                        const struct vg_json *v)
{
    if (vg_schema_is(f, VG_SCHEMA_POINTER))
        return vg_schema_is(f, VG_SCHEMA_OMIT_EMPTY) && v->type == VG_JSON_NULL;
    switch ((enum vg_schema_value)f->value) {
    case VG_SCHEMA_STRING:
    case VG_SCHEMA_BYTES:
        return vg_schema_is(f, VG_SCHEMA_OMIT_EMPTY) && v->n == 0;
    case VG_SCHEMA_BOOL:
    case VG_SCHEMA_INT64:
        return vg_schema_is(f, VG_SCHEMA_OMIT_EMPTY) && x->v == 0;
    case VG_SCHEMA_INT32:
        return vg_schema_is(f, VG_SCHEMA_OMIT_EMPTY) && (uint32_t)x->v == 0;
    case VG_SCHEMA_DOUBLE:
        return vg_schema_is(f, VG_SCHEMA_OMIT_EMPTY) && x->v << 1 == 0; /* also -0 */
    case VG_SCHEMA_TIME:
    case VG_SCHEMA_MICRO_TIME:
        return vg_schema_is(f, VG_SCHEMA_OMIT_ZERO) && v->type == VG_JSON_NULL;
    default:
        return false;
    }
}

static bool is_nil_when_absent(const struct vg_schema_field *f)
{
    return f->shape != VG_SCHEMA_ONE || f->value == VG_SCHEMA_BYTES ||
           vg_schema_is(f, VG_SCHEMA_POINTER);
}

/* 1 and the value, 0: it is not printed. */
static int get_one(struct vg_proto_decode *d, const struct vg_schema_field *f,
                   const struct vg_proto_run *run, struct vg_json *ret)
{
    struct vg_proto_seen x = {.p = ""};
    int r = 0;
    if (run->n > 1 && is_message(f->value))
        r = join(d, run, &x);
    else if (run->n)
        x = d->seen[run->last];
    if (r == 0)
        r = vg_proto_get_value(d, f, &x, ret);
    return r < 0 ? r : !is_left_out(f, &x, ret);
}

/* ---- lists ---- */

static int get_packed(struct vg_proto_decode *d, const struct vg_schema_field *f,
                      struct vg_slice bytes, struct vg_json *list)
{
    const char *p = bytes.p, *end = bytes.p + bytes.n;
    while (p < end) {
        struct vg_proto_seen x = {0};
        struct vg_json v;
        if (f->value == VG_SCHEMA_DOUBLE) {
            if (end - p < 8)
                return vg_fail(d->status, VIGIL_E_INVALID, "unexpected EOF");
            for (unsigned i = 0; i < 8; i++)
                x.v |= (uint64_t)(unsigned char)*p++ << 8 * i;
        } else if (!vg_proto_take_varint(&p, end, &x.v)) {
            return vg_fail(d->status, VIGIL_E_INVALID, "proto: bad varint");
        }
        int r = vg_proto_get_value(d, f, &x, &v);
        if (r == 0)
            r = vg_json_array_push(d->arena, list, v);
        if (r < 0)
            return r;
    }
    return 0;
}

static bool is_number(enum vg_schema_value value)
{
    return value == VG_SCHEMA_BOOL || value == VG_SCHEMA_INT32 || value == VG_SCHEMA_INT64 ||
           value == VG_SCHEMA_DOUBLE;
}

static int get_numbers(struct vg_proto_decode *d, const struct vg_schema_field *f,
                       const struct vg_proto_run *run, struct vg_json *ret)
{
    struct vg_json list = vg_json_array();
    int r = 0;
    for (uint32_t i = run->first; r == 0 && i != VG_PROTO_NONE; i = d->seen[i].next) {
        const struct vg_proto_seen *x = &d->seen[i];
        struct vg_json v;
        if (x->wire == VG_PROTO_BYTES) {
            r = get_packed(d, f, vg_proto_bytes(x), &list);
            continue;
        }
        r = vg_proto_get_value(d, f, x, &v);
        if (r == 0)
            r = vg_json_array_push(d->arena, &list, v);
    }
    if (r == 0)
        *ret = list.n ? list : vg_json_null();
    return r;
}

static int get_list(struct vg_proto_decode *d, const struct vg_schema_field *f,
                    const struct vg_proto_run *run, struct vg_json *ret)
{
    struct vg_json *items = vg_arena_array(d->arena, struct vg_json, run->n);
    if (!items)
        return -ENOMEM;
    uint32_t n = 0;
    int r = 0;
    for (uint32_t i = run->first; r == 0 && i != VG_PROTO_NONE; i = d->seen[i].next) {
        struct vg_proto_seen x = d->seen[i]; /* the stack may move */
        r = vg_proto_get_value(d, f, &x, &items[n++]);
    }
    *ret = (struct vg_json){.type = VG_JSON_ARRAY, .n = n, .items = items};
    return r;
}

/* ---- maps ---- */

static int get_entry(struct vg_proto_decode *d, const struct vg_schema_field *f,
                     struct vg_slice entry, struct vg_json_member *ret)
{
    const char *p = entry.p, *end = entry.p + entry.n;
    struct vg_slice key = VG_SLICE_LIT("");
    struct vg_proto_seen x, value = {.p = ""};
    struct vg_schema_field one = *f;
    one.shape = VG_SCHEMA_ONE;
    unsigned number;
    int r;
    while ((r = vg_proto_take(&p, end, &number, &x, d->status)) > 0) {
        if (number > 2)
            continue;
        if (number == 1 ? x.wire != VG_PROTO_BYTES : !vg_proto_wire_fits(&one, x.wire))
            return vg_fail(d->status, VIGIL_E_INVALID, "proto: wrong wireType = %d for field %s",
                           x.wire, f->name);
        if (number == 1)
            key = vg_proto_bytes(&x);
        else
            value = x;
    }
    if (r < 0)
        return r;
    struct vg_json text;
    r = vg_proto_get_string(d, key, &text);
    if (r < 0)
        return r;
    *ret = (struct vg_json_member){.key = text.text, .key_n = text.n};
    return vg_proto_get_value(d, &one, &value, &ret->value);
}

static int cmp_members(const void *a, const void *b)
{
    const struct vg_json_member *x = a, *y = b;
    int c = vg_slice_cmp(vg_json_key(x), vg_json_key(y));
    return c ? c : (x->key_begin > y->key_begin) - (x->key_begin < y->key_begin);
}

/* By key; of equal ones the last stays. key_begin counts them meanwhile. */
static uint32_t sort_members(struct vg_json_member *v, uint32_t n)
{
    bool is_sorted = true;
    for (uint32_t i = 0; i < n; i++) {
        v[i].key_begin = i;
        is_sorted &= i == 0 || vg_slice_cmp(vg_json_key(&v[i - 1]), vg_json_key(&v[i])) < 0;
    }
    if (!is_sorted)
        qsort(v, n, sizeof *v, cmp_members);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (i + 1 < n && vg_slice_eq(vg_json_key(&v[i]), vg_json_key(&v[i + 1])))
            continue;
        v[kept] = v[i];
        v[kept++].key_begin = 0;
    }
    return kept;
}

static int get_map(struct vg_proto_decode *d, const struct vg_schema_field *f,
                   const struct vg_proto_run *run, struct vg_json *ret)
{
    struct vg_json_member *members = vg_arena_array(d->arena, struct vg_json_member, run->n);
    if (!members)
        return -ENOMEM;
    uint32_t n = 0;
    for (uint32_t i = run->first; i != VG_PROTO_NONE; i = d->seen[i].next) {
        int r = get_entry(d, f, vg_proto_bytes(&d->seen[i]), &members[n++]);
        if (r < 0)
            return r;
    }
    *ret =
        (struct vg_json){.type = VG_JSON_OBJECT, .n = sort_members(members, n), .members = members};
    return 0;
}

/* ---- objects ---- */

/* 1 and the value, 0: it is not printed. */
static int get_field(struct vg_proto_decode *d, const struct vg_schema_field *f,
                     const struct vg_proto_run *run, struct vg_json *ret)
{
    if (f->number == 0)
        return 0;
    if (run->n == 0 && is_nil_when_absent(f)) {
        *ret = vg_json_null();
        return !vg_schema_is(f, VG_SCHEMA_OMIT_EMPTY);
    }
    if (f->shape == VG_SCHEMA_ONE)
        return get_one(d, f, run, ret);
    int r = f->shape == VG_SCHEMA_MAP ? get_map(d, f, run, ret)
            : is_number(f->value)     ? get_numbers(d, f, run, ret)
                                      : get_list(d, f, run, ret);
    if (r < 0)
        return r;
    return !(ret->type == VG_JSON_NULL && vg_schema_is(f, VG_SCHEMA_OMIT_EMPTY));
}

/* Fields of the table that are there, or that are printed all the same, in the order of JSON. */
static int build(struct vg_proto_decode *d, const struct vg_schema_type *t, struct found *found,
                 struct vg_json *ret)
{
    uint64_t mask = found->mask | t->shown;
    size_t room = (size_t)__builtin_popcountll(mask);
    struct vg_json_member *members = vg_arena_array(d->arena, struct vg_json_member, room);
    if (!members)
        return -ENOMEM;
    uint32_t n = 0;
    for (; mask; mask &= mask - 1) {
        unsigned i = (unsigned)__builtin_ctzll(mask);
        const struct vg_schema_field *f = &t->fields[i];
        if (!(found->mask >> i & 1))
            found->runs[i].n = 0;
        int r = get_field(d, f, &found->runs[i], &members[n].value);
        if (r < 0)
            return r;
        members[n].key = f->name;
        members[n].key_n = f->name_n;
        members[n].key_begin = 0;
        n += (unsigned)r;
    }
    *ret = (struct vg_json){.type = VG_JSON_OBJECT, .n = n, .members = members};
    return 0;
}

int vg_proto_get_object(struct vg_proto_decode *d, const struct vg_schema_type *t,
                        struct vg_slice message, struct vg_json *ret)
{
    struct found found;
    if (t->n > VG_PROTO_FIELDS_MAX)
        return VIGIL_E_INTERNAL;
    if (d->depth == VG_PROTO_DECODE_DEPTH_MAX)
        return vg_fail(d->status, VIGIL_E_JSON_DEPTH, "messages are nested too deeply");
    d->depth++;
    size_t was = d->seen_n;
    found.mask = 0;
    int r = scan(d, t, &t->parts[0], message, &found);
    if (r == 0)
        r = build(d, t, &found, ret);
    d->seen_n = was;
    d->depth--;
    return r;
}

/* kind and apiVersion before the rest. */
static int add_type_meta(struct vg_proto_decode *d, const struct vg_proto_envelope *from,
                         struct vg_json *object)
{
    struct vg_json_member *v = vg_arena_array(d->arena, struct vg_json_member, object->n + 2);
    if (!v)
        return -ENOMEM;
    const struct vg_slice names[] = {VG_SLICE_LIT("kind"), VG_SLICE_LIT("apiVersion")};
    const struct vg_slice values[] = {from->kind, from->api_version};
    uint32_t n = 0;
    for (unsigned i = 0; i < 2; i++) {
        if (values[i].n == 0)
            continue;
        v[n] = (struct vg_json_member){.key = names[i].p, .key_n = (uint32_t)names[i].n};
        int r = vg_proto_get_string(d, values[i], &v[n++].value);
        if (r < 0)
            return r;
    }
    if (object->n)
        memcpy(v + n, object->members, object->n * sizeof *v);
    object->n += n;
    object->members = v;
    return 0;
}

int vg_proto_decode(struct vg_arena *arena, const struct vg_schema_type *type,
                    const struct vg_proto_envelope *from, struct vg_json *ret,
                    struct vg_status *reterr_status)
{
    struct vg_status status; /* messages are put together from inner ones */
    struct vg_proto_decode d = {.all = from->raw, .arena = arena, .status = &status};
    if (from->raw.n > VG_PROTO_MESSAGE_MAX)
        return vg_fail(reterr_status, VIGIL_E_TOO_LARGE, "the message is too large");
    status.message[0] = '\0';
    struct vg_json root;
    int r = vg_proto_get_object(&d, type, from->raw.n ? from->raw : VG_SLICE_LIT(""), &root);
    if (r == 0)
        r = add_type_meta(&d, from, &root);
    vg_free(d.seen);
    vg_json_scratch_done(&d.scratch);
    if (r < 0)
        return vg_fail(reterr_status, r, "%s", status.message[0] ? status.message : vg_err_text(r));
    *ret = root;
    return 0;
}
