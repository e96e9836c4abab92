/* fresh.c - see fresh.h.
 * Where nothing was, all that is there is owned: no set must be built to say so. Of each container
 * the entries are put in order, and then written one after the other; one below which nothing turns
 * out to be owned is taken back. */
#include "fresh.h"

#include <errno.h>
#include <stdlib.h>

#include "compare_int.h"
#include "element.h"
#include "json/equal.h"

struct walk {
    struct vg_arena *arena;
    const struct vg_fields_path *without;
    struct vg_buf *out;
    struct vg_status *status;
};

/* An entry to come. */
struct entry {
    struct vg_slice element;
    const struct vg_json *v;
    const struct vg_schema_field *field;
    const struct vg_json *fresh; /* it, or NULL */
    struct vg_json zero;         /* what was there, if it is_zero */
    bool is_zero;
    bool is_repeated; /* items that are there twice are owned as a whole */
};

struct entries {
    struct entry *v;
    uint32_t n;
    bool are_items; /* of their field's list or map */
    const char *top;
};

static int put_value(struct walk *w, struct vg_fields_ref ref, const struct vg_json *was,
                     const struct vg_json *v);

/* ---- gathering ---- */

static int reserve(struct walk *w, struct entries *e, uint32_t n)
{
    e->v = vg_arena_array(w->arena, struct entry, n ? n : 1);
    return e->v ? 0 : -ENOMEM;
}

/* Members that the table does not have, or has before, are passed over: none is stored so. */
static int gather_fields(struct walk *w, const struct vg_schema_type *type, bool is_fresh,
                         const struct vg_json *v, struct entries *ret)
{
    bool is_foreign = false;
    uint32_t from = 0;
    int err = reserve(w, ret, v->n);
    if (err < 0)
        return err;
    VG_JSON_FOREACH_MEMBER (m, v) {
        const struct vg_schema_field *f = vg_fields_field_of(type, m, from, &is_foreign);
        uint32_t i = f ? (uint32_t)(f - type->fields) : 0;
        if (!f || i < from)
            continue;
        from = i + 1;
        if (ret->top && vg_fields_is_nobodys(w->without, ret->top, f->name))
            continue;
        struct entry *e = &ret->v[ret->n++];
        *e = (struct entry){
            .element = vg_slice(f->name - 2, (size_t)f->name_n + 2), .v = &m->value, .field = f};
        const struct vg_json *was = is_fresh ? vg_fields_of_fresh(type, i, &e->zero) : NULL;
        e->is_zero = was == &e->zero;
        e->fresh = e->is_zero ? NULL : was;
    }
    return 0;
}

static int gather_map(struct walk *w, const struct vg_schema_field *field, const struct vg_json *v,
                      struct entries *ret)
{
    int err = reserve(w, ret, v->n);
    ret->are_items = true;
    if (err < 0)
        return err;
    VG_JSON_FOREACH_MEMBER (m, v) {
        struct entry *e = &ret->v[ret->n];
        *e = (struct entry){.v = &m->value, .field = field};
        err = vg_element_field(w->arena, vg_json_key(m), &e->element);
        if (err < 0)
            return err;
        ret->n++;
    }
    return 0;
}

static int gather_items(struct walk *w, struct vg_fields_ref list, const struct vg_json *v,
                        struct entries *ret)
{
    int err = reserve(w, ret, v->n);
    ret->are_items = true;
    if (err < 0)
        return err;
    VG_JSON_FOREACH_ITEM (it, v) {
        struct entry *e = &ret->v[ret->n];
        *e = (struct entry){.v = it, .field = list.field};
        err = vg_fields_item_element(w->arena, list, it, &e->element, w->status);
        if (err < 0)
            return err;
        ret->n++;
    }
    return 0;
}

/* ---- order ---- */

/* Of so many the place of each is found by looking at those before it. */
#define INSERTED_MAX 24u

static int by_order(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return vg_fields_order(x->element, y->element);
}

static void sort(struct entries *e)
{
    for (uint32_t i = 1; i < e->n; i++) {
        if (by_order(&e->v[i - 1], &e->v[i]) <= 0)
            continue;
        if (e->n > INSERTED_MAX) {
            qsort(e->v, e->n, sizeof *e->v, by_order);
            break;
        }
        struct entry one = e->v[i];
        uint32_t at = i;
        for (; at > 0 && by_order(&e->v[at - 1], &one) > 0; at--)
            e->v[at] = e->v[at - 1];
        e->v[at] = one;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < e->n; i++) {
        if (kept && vg_slice_eq(e->v[kept - 1].element, e->v[i].element))
            e->v[kept - 1].is_repeated = true;
        else
            e->v[kept++] = e->v[i];
    }
    e->n = kept;
}

/* ---- writing ---- */

static int put_entries(struct walk *w, struct entries *e, bool is_member);

static int put_none(struct walk *w)
{
    int err = vg_buf_append(w->out, "{}", 2);
    return err < 0 ? err : 1;
}

static int put_leaf(struct walk *w, const struct vg_json *was, const struct vg_json *v)
{
    int same = was ? vg_json_equal(was, v) : 0;
    return same == 0 ? put_none(w) : VG_MIN(same, 0);
}

/* A struct of the object itself is owned by its members alone. */
static int put_entry(struct walk *w, const struct entries *e, const struct entry *one)
{
    const struct vg_schema_field *f = one->field;
    const struct vg_json *was = one->is_zero ? &one->zero : one->fresh;
    if (one->is_repeated)
        return put_none(w);
    bool is_struct = f && f->shape == VG_SCHEMA_ONE && f->value == VG_SCHEMA_TYPE;
    if (e->top && !*e->top && is_struct && was && !f->type->is_atomic) {
        struct entries below = {.top = f->name};
        int err = gather_fields(w, f->type, was == &vg_fields_fresh, one->v, &below);
        return err < 0 ? err : put_entries(w, &below, false);
    }
    return put_value(w, (struct vg_fields_ref){.field = f, .is_item = f && e->are_items}, was,
                     one->v);
}

/* 1: something was written; 0: there is nothing to say. */
static int put_entries(struct walk *w, struct entries *e, bool is_member)
{
    size_t start = w->out->n, n = 0;
    sort(e);
    int r = is_member && e->n ? vg_buf_append(w->out, "{\".\":{}", 7) : 0;
    for (uint32_t i = 0; i < e->n && r >= 0; i++) {
        size_t before = w->out->n;
        r = vg_fields_print_key(w->out, n || is_member ? ',' : '{', e->v[i].element);
        if (r == 0)
            r = put_entry(w, e, &e->v[i]);
        if (r == 0)
            w->out->n = before;
        n += r > 0;
    }
    if (r < 0)
        return r;
    if (n == 0) {
        w->out->n = start;
        return is_member ? put_none(w) : 0;
    }
    r = vg_buf_append_byte(w->out, '}');
    return r < 0 ? r : 1;
}

static int put_inside(struct walk *w, struct vg_fields_ref ref, const struct vg_shape *shape,
                      const struct vg_json *was, const struct vg_json *v)
{
    struct entries e = {0};
    int err;
    if (shape->kind == VG_SHAPE_STRUCT)
        err = gather_fields(w, shape->type, was == &vg_fields_fresh, v, &e);
    else if (shape->kind == VG_SHAPE_LIST)
        err = gather_items(w, ref, v, &e);
    else
        err = gather_map(w, shape->kind == VG_SHAPE_FREE ? NULL : ref.field, v, &e);
    return err < 0 ? err : put_entries(w, &e, !was);
}

static int put_value(struct walk *w, struct vg_fields_ref ref, const struct vg_json *was,
                     const struct vg_json *v)
{
    struct vg_shape shape = vg_fields_shape(ref);
    bool is_leaf = shape.is_atomic || shape.kind == VG_SHAPE_SCALAR ||
                   (vg_fields_is_fresh_none(shape.type, was) && vg_fields_is_none(v));
    if (shape.kind == VG_SHAPE_FREE && !shape.is_atomic)
        is_leaf = !vg_json_is(v, VG_JSON_OBJECT) || v->n == 0;
    return is_leaf ? put_leaf(w, was, v) : put_inside(w, ref, &shape, was, v);
}

int vg_fields_print_fresh(struct vg_arena *a, const struct vg_schema_type *type,
                          const struct vg_json *now, const struct vg_fields_path *without,
                          struct vg_buf *out, struct vg_status *reterr_status)
{
    struct walk w = {.arena = a, .without = without, .out = out, .status = reterr_status};
    struct entries e = {.top = ""};
    int r = gather_fields(&w, type, true, now, &e);
    if (r == 0)
        r = put_entries(&w, &e, false);
    if (r == 0)
        r = put_none(&w);
    return VG_MIN(r, 0);
}
