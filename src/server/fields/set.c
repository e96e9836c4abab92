/* set.c - operations on sets of fields; see set.h.
 * Both sides are sorted, so an operation is one walk over both. Depth is that of the objects that
 * were stored, which the JSON parser bounds. */
#include "set.h"

#include <errno.h>
#include <string.h>

#include "json/write.h"

static bool is_self(const struct vg_json_member *m)
{
    return m->key_n == 1 && m->key[0] == '.';
}

bool vg_fields_is_member(const struct vg_json *value)
{
    return value->n == 0 || is_self(value->members);
}

struct vg_fields_span vg_fields_children(const struct vg_json *value)
{
    if (value->n && is_self(value->members))
        return (struct vg_fields_span){value->members + 1, value->n - 1};
    return (struct vg_fields_span){value->members, value->n};
}

const struct vg_json *vg_fields_find(const struct vg_json *value, struct vg_slice element)
{
    struct vg_fields_span s = vg_fields_children(value);
    for (uint32_t i = 0; i < s.n; i++)
        if (vg_slice_eq(vg_json_key(&s.v[i]), element))
            return &s.v[i].value;
    return NULL;
}

int vg_fields_entry(struct vg_arena *a, bool is_member, struct vg_fields_span children,
                    bool has_room, struct vg_json *ret)
{
    *ret = vg_json_object();
    if (children.n == 0)
        return 0;
    ret->n = children.n;
    ret->members = children.v;
    if (!is_member)
        return 0;
    struct vg_json_member *v = children.v - 1;
    if (!has_room) {
        v = vg_arena_array(a, struct vg_json_member, (size_t)children.n + 1);
        if (!v)
            return -ENOMEM;
        memcpy(v + 1, children.v, children.n * sizeof *v);
    }
    v[0] = (struct vg_json_member){.key = ".", .key_n = 1, .value = vg_json_object()};
    ret->n = children.n + 1;
    ret->members = v;
    return 0;
}

/* Children that were put together, and where they come from. */
struct mix {
    struct vg_fields_span span;
    bool is_x;     /* they are those of x */
    bool has_room; /* one more can be written before the first */
};

static int mix(struct vg_arena *a, enum vg_fields_op op, struct vg_fields_span x,
               struct vg_fields_span y, struct mix *ret);

static bool stays_member(enum vg_fields_op op, bool x, bool y)
{
    switch (op) {
    case VG_FIELDS_UNION:
        return x || y;
    case VG_FIELDS_INTERSECTION:
        return x && y;
    case VG_FIELDS_DIFFERENCE:
    case VG_FIELDS_DIFFERENCE_DEEP:
        break;
    }
    return x && !y;
}

/* An element that both have. 1: *ret is what becomes of it; 2: that is x's; 0: nothing; -ENOMEM. */
static int pair(struct vg_arena *a, enum vg_fields_op op, const struct vg_json_member *x,
                const struct vg_json_member *y, struct vg_json_member *ret)
{
    bool in_x = vg_fields_is_member(&x->value), in_y = vg_fields_is_member(&y->value);
    bool is_member = stays_member(op, in_x, in_y);
    struct mix m;
    if (op == VG_FIELDS_DIFFERENCE_DEEP && in_y)
        return 0;
    int err = mix(a, op, vg_fields_children(&x->value), vg_fields_children(&y->value), &m);
    if (err < 0)
        return err;
    if (m.is_x && is_member == in_x) {
        *ret = *x;
        return 2;
    }
    if (m.span.n == 0 && !is_member)
        return 0;
    *ret = (struct vg_json_member){.key = x->key, .key_n = x->key_n};
    err = vg_fields_entry(a, is_member, m.span, m.has_room, &ret->value);
    return err < 0 ? err : 1;
}

static int mix(struct vg_arena *a, enum vg_fields_op op, struct vg_fields_span x,
               struct vg_fields_span y, struct mix *ret)
{
    bool keeps_x = op != VG_FIELDS_INTERSECTION, keeps_y = op == VG_FIELDS_UNION;
    if (y.n == 0 && keeps_x) {
        *ret = (struct mix){.span = x, .is_x = true};
        return 0;
    }
    if (x.n == 0) {
        *ret = (struct mix){.span = keeps_y ? y : x, .is_x = !keeps_y};
        return 0;
    }
    struct vg_json_member *out =
        vg_arena_array(a, struct vg_json_member, (size_t)x.n + (keeps_y ? y.n : 0) + 1);
    if (!out)
        return -ENOMEM;
    out++;
    uint32_t i = 0, j = 0, n = 0;
    bool is_x = true;
    while (i < x.n || j < y.n) {
        int c = i == x.n   ? 1
                : j == y.n ? -1
                           : vg_fields_order(vg_json_key(&x.v[i]), vg_json_key(&y.v[j]));
        if (c != 0) {
            const struct vg_json_member *one = c < 0 ? &x.v[i++] : &y.v[j++];
            bool keeps = c < 0 ? keeps_x : keeps_y;
            is_x = is_x && keeps == (c < 0);
            if (keeps)
                out[n++] = *one;
            continue;
        }
        int r = pair(a, op, &x.v[i++], &y.v[j++], &out[n]);
        if (r < 0)
            return r;
        is_x = is_x && r == 2;
        n += r > 0;
    }
    *ret = (struct mix){
        .span = is_x ? x : (struct vg_fields_span){out, n}, .is_x = is_x, .has_room = !is_x};
    return 0;
}

int vg_fields_combine(struct vg_arena *a, enum vg_fields_op op, const struct vg_json *x,
                      const struct vg_json *y, struct vg_json *ret)
{
    struct vg_json left, right;
    struct mix m;
    if (vg_fields_is_closed(x) && vg_fields_stays_closed(op, x, y)) {
        *ret = *x;
        return 0;
    }
    int err = vg_fields_open(a, x, &left);
    if (err == 0)
        err = vg_fields_open(a, y, &right);
    if (err == 0)
        err = mix(a, op, vg_fields_children(&left), vg_fields_children(&right), &m);
    if (err != 0)
        return err;
    if (m.is_x)
        *ret = left;
    else
        err = vg_fields_entry(a, false, m.span, false, ret);
    return err;
}

/* ---- printing ---- */

/* Elements are ASCII with a quote here and there, all but those of odd maps. What may stand in a
 * text as it is: 1; after a backslash: 2. */
#define PLAIN(from, to) [from... to] = 1
static const char manners[256] = {
    PLAIN(0x20, 0x21), PLAIN(0x23, 0x25), PLAIN(0x27, 0x3b), PLAIN(0x3d, 0x3d),
    PLAIN(0x3f, 0x5b), PLAIN(0x5d, 0x7e), ['"'] = 2,         ['\\'] = 2,
};

int vg_fields_print_key(struct vg_buf *out, char before, struct vg_slice key)
{
    int err = vg_buf_reserve(out, 2 * key.n + 4);
    if (err < 0)
        return err;
    char *p = out->p + out->n;
    *p++ = before;
    *p++ = '"';
    for (const char *at = key.p, *end = key.p + key.n; at < end; at++) {
        char manner = manners[(unsigned char)*at];
        if (VG_UNLIKELY(manner != 1)) {
            if (manner == 0) {
                out->p[out->n++] = before;
                err = vg_json_write_string(out, key, VG_JSON_ESCAPE_HTML);
                return err < 0 ? err : vg_buf_append_byte(out, ':');
            }
            *p++ = '\\';
        }
        *p++ = *at;
    }
    *p++ = '"';
    *p++ = ':';
    out->n = (size_t)(p - out->p);
    return 0;
}

int vg_fields_print(struct vg_buf *out, const struct vg_json *set, struct vg_slice source)
{
    struct vg_slice text =
        vg_fields_is_closed(set) ? vg_json_text(set) : vg_fields_source(set, source);
    if (text.n)
        return vg_buf_append_slice(out, text);
    if (set->n == 0)
        return vg_buf_append(out, "{}", 2);
    int err = 0;
    for (uint32_t i = 0; i < set->n && err == 0; i++) {
        const struct vg_json_member *m = &set->members[i];
        err = vg_fields_print_key(out, i ? ',' : '{', vg_json_key(m));
        if (err == 0)
            err = vg_fields_print(out, &m->value, source);
    }
    return err < 0 ? err : vg_buf_append_byte(out, '}');
}
