/* compare.c - two objects, side by side; see compare.h.
 * One walk over both trees in the order of the tables. A place is looked into only when its two
 * values are not the same nodes, so what a write shares with what is stored costs nothing; sets are
 * built on the way back, from below, and only where something differs. */
#include "compare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compare_int.h"
#include "element.h"
#include "kids.h"
#include "server/schema/decode.h"
#include "json/equal.h"
#include "json/lookup.h"

enum { CHANGED, REMOVED, N_SETS };

/* What was found at one place. */
struct spot {
    bool is_member[N_SETS];
    struct vg_kids kids[N_SETS];
};

struct walk {
    struct vg_arena *arena;
    const struct vg_fields_path *without;
    struct vg_status *status;
};

const struct vg_json vg_fields_fresh = {.type = VG_JSON_OBJECT};

static int compare(struct walk *w, struct vg_fields_ref ref, const struct vg_json *l,
                   const struct vg_json *r, struct spot *spot);

/* ---- building ---- */

/* What was found below becomes an entry of the parent. */
static int add_spot(struct walk *w, struct spot *parent, struct vg_slice element,
                    struct spot *below)
{
    int err = 0;
    for (int s = 0; s < N_SETS && err == 0; s++) {
        struct vg_kids *k = &below->kids[s];
        struct vg_json value;
        if (k->n == 0 && !below->is_member[s])
            continue;
        err = vg_kids_entry(w->arena, below->is_member[s], k, &value);
        if (err == 0)
            err = vg_kids_add(w->arena, &parent->kids[s], element, value);
    }
    return err;
}

static int compare_at(struct walk *w, struct spot *parent, struct vg_slice element,
                      struct vg_fields_ref ref, const struct vg_json *l, const struct vg_json *r)
{
    struct spot below = {0};
    int err = compare(w, ref, l, r, &below);
    return err < 0 ? err : add_spot(w, parent, element, &below);
}

/* ---- leaves ---- */

static int compare_leaf(const struct vg_json *l, const struct vg_json *r, struct spot *spot)
{
    if (!l || !r) {
        spot->is_member[l ? REMOVED : CHANGED] = true;
        return 0;
    }
    int same = vg_json_equal(l, r);
    if (same == 0)
        spot->is_member[CHANGED] = true;
    return same < 0 ? same : 0;
}

/* ---- structs ---- */

/* Fields of one side, by rising index. */
struct fields {
    const struct vg_schema_type *type;
    const struct vg_json *v; /* NULL: none; fresh: those that are printed of nothing */
    uint32_t at;             /* next member of v, or next field of fresh */
    uint32_t index;          /* of the field at hand; type->n: no more */
    bool is_foreign;         /* its keys are not the table's own */
    const struct vg_json *value;
    struct vg_json zero;
};

const struct vg_schema_field *vg_fields_field_of(const struct vg_schema_type *t,
                                                 const struct vg_json_member *m, uint32_t from,
                                                 bool *is_foreign)
{
    for (uint32_t i = from; i < t->n && !*is_foreign; i++)
        if (t->fields[i].name == m->key)
            return &t->fields[i];
    *is_foreign = true;
    return vg_schema_field(t, vg_json_key(m));
}

const struct vg_json *vg_fields_of_fresh(const struct vg_schema_type *t, uint32_t index,
                                         struct vg_json *zero)
{
    const struct vg_schema_field *f = &t->fields[index];
    if (!(t->shown >> index & 1))
        return NULL;
    if (f->shape == VG_SCHEMA_ONE && f->value == VG_SCHEMA_TYPE &&
        !vg_schema_is(f, VG_SCHEMA_POINTER))
        return &vg_fields_fresh;
    return vg_schema_zero(f, zero) ? zero : NULL;
}

static void next_fresh(struct fields *f)
{
    const struct vg_schema_type *t = f->type;
    while (f->at < t->n && !(t->shown >> f->at & 1))
        f->at++;
    f->index = f->at++;
    if (f->index >= t->n) {
        f->index = t->n;
        return;
    }
    f->value = vg_fields_of_fresh(t, f->index, &f->zero);
    if (!f->value)
        next_fresh(f);
}

/* Members that the table does not have, or has before, are passed over: none is stored so. */
static void next_field(struct fields *f, bool is_first)
{
    uint32_t last = f->index;
    if (f->v == &vg_fields_fresh) {
        next_fresh(f);
        return;
    }
    f->index = f->type->n;
    while (f->v && f->at < f->v->n) {
        const struct vg_json_member *m = &f->v->members[f->at++];
        const struct vg_schema_field *field =
            vg_fields_field_of(f->type, m, is_first ? 0 : last + 1, &f->is_foreign);
        uint32_t i = field ? (uint32_t)(field - f->type->fields) : 0;
        if (!field || (!is_first && i <= last))
            continue;
        f->index = i;
        f->value = &m->value;
        return;
    }
}

static int compare_fields(struct walk *w, const struct vg_schema_type *type,
                          const struct vg_json *l, const struct vg_json *r, const char *top,
                          struct spot *spot);

static bool is_among(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

bool vg_fields_is_nobodys(const struct vg_fields_path *without, const char *top, const char *name)
{
    static const char *const meta[] = {
        "name",        "namespace",  "creationTimestamp", "selfLink",        "uid",
        "clusterName", "generation", "managedFields",     "resourceVersion", NULL};
    static const char *const tops[] = {"apiVersion", "kind", NULL};
    if (is_among(name, *top ? meta : tops) && (!*top || strcmp(top, "metadata") == 0))
        return true;
    for (const struct vg_fields_path *p = without; p && p->top; p++)
        if (*top ? p->below && strcmp(p->top, top) == 0 && strcmp(p->below, name) == 0
                 : !p->below && strcmp(p->top, name) == 0)
            return true;
    return false;
}

static bool is_same(const struct vg_json *l, const struct vg_json *r)
{
    return l == r || (l && r && l->type == r->type && l->type >= VG_JSON_ARRAY && l->n == r->n &&
                      l->items == r->items && l != &vg_fields_fresh && r != &vg_fields_fresh);
}

/* One field. top NULL: deep inside; "": of the object itself; else of that member of it. */
static int compare_field(struct walk *w, const struct vg_schema_field *f, const struct vg_json *l,
                         const struct vg_json *r, const char *top, struct spot *spot)
{
    struct vg_slice element = vg_slice(f->name - 2, (size_t)f->name_n + 2);
    if (is_same(l, r) || (top && vg_fields_is_nobodys(w->without, top, f->name)))
        return 0;
    bool is_struct = f->shape == VG_SCHEMA_ONE && f->value == VG_SCHEMA_TYPE;
    bool is_top = top && !*top && is_struct && l && r && !f->type->is_atomic;
    if (!is_top)
        return compare_at(w, spot, element, vg_fields_of(f), l, r);
    struct spot below = {0};
    int err = compare_fields(w, f->type, l, r, f->name, &below);
    return err < 0 ? err : add_spot(w, spot, element, &below);
}

static int compare_fields(struct walk *w, const struct vg_schema_type *type,
                          const struct vg_json *l, const struct vg_json *r, const char *top,
                          struct spot *spot)
{
    struct fields x = {.type = type, .v = l}, y = {.type = type, .v = r};
    int err = 0;
    next_field(&x, true);
    next_field(&y, true);
    while (err == 0 && (x.index < type->n || y.index < type->n)) {
        uint32_t i = VG_MIN(x.index, y.index);
        bool in_x = x.index == i, in_y = y.index == i;
        err = compare_field(w, &type->fields[i], in_x ? x.value : NULL, in_y ? y.value : NULL, top,
                            spot);
        if (in_x)
            next_field(&x, false);
        if (in_y)
            next_field(&y, false);
    }
    return err;
}

/* ---- maps ---- */

static int compare_member(struct walk *w, struct vg_fields_ref ref, struct vg_slice key,
                          const struct vg_json *l, const struct vg_json *r, struct spot *spot)
{
    struct spot below = {0};
    struct vg_slice element;
    int err = is_same(l, r) ? 0 : compare(w, ref, l, r, &below);
    bool is_found = below.is_member[CHANGED] || below.is_member[REMOVED] || below.kids[CHANGED].n ||
                    below.kids[REMOVED].n;
    if (err < 0 || !is_found)
        return err;
    err = vg_element_field(w->arena, key, &element);
    return err < 0 ? err : add_spot(w, spot, element, &below);
}

/* Members in any order. */
static int compare_any_map(struct walk *w, struct vg_fields_ref item, const struct vg_json *l,
                           const struct vg_json *r, struct spot *spot)
{
    struct vg_json_lookup in_l, in_r;
    vg_json_lookup_init(&in_l, l);
    vg_json_lookup_init(&in_r, r);
    int err = 0;
    for (uint32_t i = 0; i < l->n && err >= 0; i++) {
        const struct vg_json_member *m = &l->members[i], *other = NULL;
        err = vg_json_lookup_find(&in_r, vg_json_key(m), i, &other);
        if (err >= 0)
            err = compare_member(w, item, vg_json_key(m), &m->value, err > 0 ? &other->value : NULL,
                                 spot);
    }
    for (uint32_t i = 0; i < r->n && err >= 0; i++) {
        const struct vg_json_member *m = &r->members[i], *other = NULL;
        err = vg_json_lookup_find(&in_l, vg_json_key(m), i, &other);
        if (err == 0)
            err = compare_member(w, item, vg_json_key(m), NULL, &m->value, spot);
    }
    vg_json_lookup_done(&in_l);
    vg_json_lookup_done(&in_r);
    return err < 0 ? err : 0;
}

/* ---- lists ---- */

struct item {
    struct vg_slice element;
    const struct vg_json *v;
    uint32_t at;
};

static int by_element(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int c = vg_slice_cmp(x->element, y->element);
    return c ? c : (x->at > y->at) - (x->at < y->at);
}

static int index_list(struct walk *w, struct vg_fields_ref list, const struct vg_json *v,
                      struct item **ret)
{
    struct item *items = vg_arena_array(w->arena, struct item, v->n ? v->n : 1);
    if (!items)
        return -ENOMEM;
    for (uint32_t i = 0; i < v->n; i++) {
        items[i] = (struct item){.v = &v->items[i], .at = i};
        int err =
            vg_fields_item_element(w->arena, list, &v->items[i], &items[i].element, w->status);
        if (err < 0)
            return err;
    }
    for (uint32_t i = 1; i < v->n; i++)
        if (by_element(&items[i - 1], &items[i]) > 0) {
            qsort(items, v->n, sizeof *items, by_element);
            break;
        }
    *ret = items;
    return 0;
}

/* How many have the element of the first. */
static uint32_t run_of(const struct item *v, uint32_t n)
{
    uint32_t k = n > 0;
    while (k < n && vg_slice_eq(v[k].element, v[0].element))
        k++;
    return k;
}

/* Items that are there twice are owned as a whole. */
static int compare_runs(struct walk *w, struct vg_fields_ref list, const struct item *l,
                        uint32_t nl, const struct item *r, uint32_t nr, struct spot *spot)
{
    struct vg_slice element = nl ? l->element : r->element;
    struct vg_fields_ref item = vg_fields_item(list);
    struct spot below = {0};
    int err = 0;
    if (nl <= 1 && nr <= 1)
        return compare_at(w, spot, element, item, nl ? l->v : NULL, nr ? r->v : NULL);
    if (nl >= 2 && nr >= 2) {
        int same = nl == nr;
        for (uint32_t i = 0; i < nl && same > 0; i++)
            same = vg_json_equal(l[i].v, r[i].v);
        if (same < 0)
            return same;
        below.is_member[CHANGED] = same == 0;
    } else if (nl >= 2) {
        if (nr)
            err = compare(w, item, NULL, r->v, &below);
        below.is_member[REMOVED] = true;
    } else {
        if (nl)
            err = compare(w, item, l->v, NULL, &below);
        below.is_member[CHANGED] = true;
    }
    return err < 0 ? err : add_spot(w, spot, element, &below);
}

static int compare_lists(struct walk *w, struct vg_fields_ref list, const struct vg_json *l,
                         const struct vg_json *r, struct spot *spot)
{
    struct item *x, *y;
    int err = vg_json_equal(l, r);
    if (err != 0)
        return err < 0 ? err : 0;
    err = index_list(w, list, l, &x);
    if (err == 0)
        err = index_list(w, list, r, &y);
    for (uint32_t i = 0, j = 0; err == 0 && (i < l->n || j < r->n);) {
        int c = i == l->n ? 1 : j == r->n ? -1 : vg_slice_cmp(x[i].element, y[j].element);
        uint32_t nl = c <= 0 ? run_of(x + i, l->n - i) : 0;
        uint32_t nr = c >= 0 ? run_of(y + j, r->n - j) : 0;
        err = compare_runs(w, list, x + i, nl, y + j, nr, spot);
        i += nl;
        j += nr;
    }
    return err;
}

/* ---- values ---- */

/* A container's members; what is no container of that type counts as an empty one. */
static const struct vg_json *as(const struct vg_json *v, enum vg_json_type type)
{
    static const struct vg_json array = {.type = VG_JSON_ARRAY}, object = {.type = VG_JSON_OBJECT};
    if (vg_json_is(v, type))
        return v;
    return type == VG_JSON_ARRAY ? &array : &object;
}

/* Into a container whose two sides are not both empty; then: is it as such new, or gone? */
static int compare_inside(struct walk *w, struct vg_fields_ref ref, const struct vg_shape *shape,
                          const struct vg_json *l, const struct vg_json *r, struct spot *spot)
{
    struct vg_fields_ref item = vg_fields_item(ref), no_ref = {0};
    int err;
    if (shape->kind == VG_SHAPE_STRUCT)
        err = compare_fields(w, shape->type, as(l, VG_JSON_OBJECT), as(r, VG_JSON_OBJECT), NULL,
                             spot);
    else if (shape->kind == VG_SHAPE_LIST)
        err = compare_lists(w, ref, as(l, VG_JSON_ARRAY), as(r, VG_JSON_ARRAY), spot);
    else
        err = compare_any_map(w, shape->kind == VG_SHAPE_FREE ? no_ref : item,
                              as(l, VG_JSON_OBJECT), as(r, VG_JSON_OBJECT), spot);
    if (!l || !r)
        spot->is_member[l ? REMOVED : CHANGED] = true;
    return err;
}

/* A value without a type: maps by their members, all else as one. */
static int compare_free(struct walk *w, const struct vg_shape *shape, const struct vg_json *l,
                        const struct vg_json *r, struct spot *spot)
{
    bool l_map = vg_json_is(l, VG_JSON_OBJECT) && l->n,
         r_map = vg_json_is(r, VG_JSON_OBJECT) && r->n;
    bool is_other = (l_map && r && r->type != VG_JSON_OBJECT && r->type != VG_JSON_NULL) ||
                    (r_map && l && l->type != VG_JSON_OBJECT && l->type != VG_JSON_NULL);
    if (!l_map && !r_map)
        return compare_leaf(l, r, spot);
    int err = compare_inside(w, (struct vg_fields_ref){0}, shape, l, r, spot);
    if (is_other)
        spot->is_member[CHANGED] = true;
    return err;
}

static int compare(struct walk *w, struct vg_fields_ref ref, const struct vg_json *l,
                   const struct vg_json *r, struct spot *spot)
{
    struct vg_shape shape = vg_fields_shape(ref);
    if (is_same(l, r))
        return 0;
    if (shape.kind == VG_SHAPE_FREE && !shape.is_atomic)
        return compare_free(w, &shape, l, r, spot);
    bool is_leaf = shape.is_atomic || shape.kind == VG_SHAPE_SCALAR ||
                   (vg_fields_is_fresh_none(shape.type, l) && vg_fields_is_none(r));
    return is_leaf ? compare_leaf(l, r, spot) : compare_inside(w, ref, &shape, l, r, spot);
}

int vg_fields_compare(struct vg_arena *a, const struct vg_schema_type *type,
                      const struct vg_json *old, const struct vg_json *now,
                      const struct vg_fields_path *without, struct vg_fields_delta *ret,
                      struct vg_status *reterr_status)
{
    struct walk w = {.arena = a, .without = without, .status = reterr_status};
    struct spot spot = {0};
    int err = compare_fields(&w, type, old ? old : &vg_fields_fresh, now, "", &spot);
    if (err == 0)
        err = vg_kids_entry(a, false, &spot.kids[CHANGED], &ret->changed);
    return err < 0 ? err : vg_kids_entry(a, false, &spot.kids[REMOVED], &ret->removed);
}
