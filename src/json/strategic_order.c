/* strategic_order.c - the order of merged lists.
 * Items that the patch names stand in the patch's order (or that of $setElementOrder), items that
 * only the document has in the document's; where both meet, the document's order decides. */
#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "strategic_int.h"

/* Blocks of 20: Go's stable sort. */
#define INSERTION_MAX 20u

/* An item and where it stands in the order that sorts it and in the document; -1: nowhere. */
struct placed {
    struct vg_json item;
    int64_t by, live;
    uint32_t was; /* keeps the sort stable */
};

static int compare_placed(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->by != y->by)
        return x->by < y->by ? -1 : 1;
    return x->was < y->was ? -1 : x->was > y->was;
}

/* An item that the order does not know sorts before whatever it is compared with, on either side:
 * kube-apiserver's lists of up to INSERTION_MAX items come out of this very sort. */
static void sort_placed(struct placed *v, uint32_t n)
{
    if (n > INSERTION_MAX) {
        qsort(v, n, sizeof *v, compare_placed);
        return;
    }
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t j = i; j > 0; j--) {
            bool known = v[j].by >= 0 && v[j - 1].by >= 0;
            if (known && v[j].by >= v[j - 1].by)
                break;
            struct placed swap = v[j];
            v[j] = v[j - 1];
            v[j - 1] = swap;
        }
}

static int check_keys(struct vg_strategic *s, const struct vg_json *list, const char *key)
{
    for (uint32_t i = 0; key && i < list->n; i++) {
        if (!vg_json_is(&list->items[i], VG_JSON_OBJECT))
            return vg_strategic_fail_type(s, "map[string]interface {}", &list->items[i]);
        if (!vg_strategic_id(&list->items[i], key))
            return vg_strategic_fail_key(s, &list->items[i], key);
    }
    return 0;
}

/* Sort the items into those of the patch (from the front of `all`) and those of the document alone
 * (from its end). */
static int place(struct vg_strategic *s, const struct vg_json *list, const struct vg_json *by,
                 const struct vg_json *live, const char *key, struct placed *all,
                 uint32_t *ret_patched)
{
    uint32_t front = 0, back = list->n;
    for (uint32_t i = 0; i < list->n; i++) {
        struct placed p = {.item = list->items[i], .was = i};
        const struct vg_json *id = vg_strategic_id(&p.item, key);
        int r = vg_strategic_find(s, by, id, key, &p.by);
        if (r == 0)
            r = vg_strategic_find(s, live, id, key, &p.live);
        if (r < 0)
            return r;
        if (p.by >= 0) {
            all[front++] = p;
        } else {
            p.by = p.live;
            all[--back] = p;
        }
    }
    *ret_patched = front;
    return 0;
}

/* Items placed from the end came in reverse. */
static void reverse(struct placed *v, uint32_t n)
{
    for (uint32_t i = 0; i < n / 2; i++) {
        struct placed swap = v[i];
        v[i] = v[n - 1 - i];
        v[n - 1 - i] = swap;
    }
}

/* Weave: an item of the document comes first when the document says so. */
static void weave(struct vg_json *list, const struct placed *patched, uint32_t n_patched,
                  const struct placed *server, uint32_t n_server)
{
    uint32_t i = 0, j = 0, n = 0;
    while (i < n_server || j < n_patched) {
        bool both = i < n_server && j < n_patched;
        bool server_first =
            both && server[i].live >= 0 && patched[j].live >= 0 && server[i].live < patched[j].live;
        if (j == n_patched || server_first)
            list->items[n++] = server[i++].item;
        else
            list->items[n++] = patched[j++].item;
    }
}

int vg_strategic_order(struct vg_strategic *s, struct vg_json *list, const struct vg_json *by,
                       const struct vg_json *live, const char *key)
{
    uint32_t patched = 0;
    int r = check_keys(s, list, key);
    if (r == 0)
        r = check_keys(s, by, key);
    if (r == 0)
        r = check_keys(s, live, key);
    if (r < 0 || list->n == 0)
        return r;
    struct placed *all = vg_reallocarray(NULL, list->n, sizeof *all);
    if (!all)
        return -ENOMEM;
    r = place(s, list, by, live, key, all, &patched);
    if (r == 0) {
        sort_placed(all, patched);
        reverse(all + patched, list->n - patched);
        sort_placed(all + patched, list->n - patched);
        weave(list, all, patched, all + patched, list->n - patched);
    }
    vg_free(all);
    return r;
}

/* ---- $setElementOrder ---- */

static int bad_format(struct vg_strategic *s)
{
    return vg_fail(s->status, VIGIL_E_PATCH_INVALID,
                   "invalid patch format of setElementOrder list");
}

static int fail_mismatch(struct vg_strategic *s, const struct vg_json *patch,
                         const struct vg_json *order)
{
    VG_AUTO(buf) p = {0};
    VG_AUTO(buf) o = {0};
    int r = vg_strategic_show(&p, patch);
    if (r == 0)
        r = vg_strategic_show(&o, order);
    if (r < 0)
        return r;
    return vg_fail(s->status, VIGIL_E_INTERNAL,
                   "The order in patch list:\n%.*s\n doesn't match $setElementOrder list:\n%.*s\n",
                   VG_SLICE_ARG(vg_buf_slice(&p)), VG_SLICE_ARG(vg_buf_slice(&o)));
}

/* The next item of the patch that is not to be deleted: those need no place in the order. */
static uint32_t next_kept(const struct vg_json *patch, uint32_t i)
{
    while (i < patch->n && vg_strategic_is_text(vg_strategic_directive(&patch->items[i]), "delete"))
        i++;
    return i;
}

/* 1: the item belongs to this place of the order. */
static int is_at(struct vg_strategic *s, const struct vg_json *item, struct vg_json *place,
                 const char *key)
{
    const struct vg_json *id = vg_strategic_id(item, key);
    struct vg_json one = {.type = VG_JSON_ARRAY, .n = 1, .items = place};
    int64_t at;
    if (!id)
        return vg_strategic_fail_key(s, item, key);
    int r = vg_strategic_find(s, &one, id, key, &at);
    return r < 0 ? r : at == 0;
}

/* Items of the patch stand in the same order in the $setElementOrder list. */
static int check_order(struct vg_strategic *s, const struct vg_json *patch,
                       const struct vg_json *order, const char *key)
{
    int r = check_keys(s, order, key);
    if (r < 0 || patch->n == 0 || order->n == 0)
        return r;
    uint32_t i = next_kept(patch, 0), k = 0;
    while (i < patch->n && k < order->n) {
        bool is_directive = vg_strategic_directive(&patch->items[i]);
        r = is_directive ? 1 : is_at(s, &patch->items[i], &order->items[k], key);
        if (r < 0)
            return r;
        if (!is_directive)
            k++;
        if (r == 1)
            i = next_kept(patch, i + 1);
    }
    return i < patch->n ? fail_mismatch(s, patch, order) : 0;
}

static int order_field(struct vg_strategic *s, struct vg_json *original, struct vg_json *patch,
                       struct vg_slice name, const struct vg_json *order,
                       const struct vg_merge_field *field)
{
    struct vg_json empty = vg_json_array(), live, *old = vg_json_get(original, name),
                   *new = vg_json_get(patch, name);
    enum vg_json_type type;
    if (old && !vg_json_is(old, VG_JSON_ARRAY))
        return vg_strategic_fail_type(s, "[]interface {}", old);
    if (new && !vg_json_is(new, VG_JSON_ARRAY))
        return vg_strategic_fail_type(s, "[]interface {}", new);
    int r = check_order(s, new ? new : &empty, order, field->merge_key);
    if (r < 0 || (!old && !new))
        return r;
    r = vg_strategic_item_type(s, old ? old : &empty, new ? new : &empty, &type);
    if (r < 0)
        return r;
    if (type == VG_JSON_NULL)
        return vg_fail(s->status, VIGIL_E_INTERNAL, "no elements in any of the given slices");
    if (type == VG_JSON_OBJECT && !field->merge_key)
        return vg_fail(s->status, VIGIL_E_INTERNAL,
                       "cannot merge lists without merge key for struct");
    live = old ? *old : empty;
    struct vg_json merged = live;
    if (old && new)
        r = vg_strategic_list(s, &merged, new, field, false);
    else if (new &&vg_strategic_clean(new, false))
        merged = *new;
    if (r == 0)
        r = vg_strategic_order(s, &merged, order, &live, field->merge_key);
    if (r == 0)
        r = vg_json_object_set(s->arena, original, name, merged);
    vg_json_object_remove(patch, name);
    return r;
}

static int set_order(struct vg_strategic *s, struct vg_json *original, struct vg_json *patch,
                     struct vg_slice key, const struct vg_json *order,
                     const struct vg_merge_schema *schema)
{
    struct vg_slice prefix = VG_SLICE_LIT(VG_STRATEGIC_ORDER);
    if (!vg_json_is(order, VG_JSON_ARRAY))
        return vg_strategic_fail_type(s, "[]interface {}", order);
    if (key.n == prefix.n || key.p[prefix.n] != '/')
        return bad_format(s);
    struct vg_slice name = vg_slice(key.p + prefix.n + 1, key.n - prefix.n - 1);
    struct vg_merge_field field = vg_strategic_field(schema, name);
    int r = vg_strategic_step(s, 1u + original->n + patch->n);
    return r < 0 ? r : order_field(s, original, patch, name, order, &field);
}

int vg_strategic_set_orders(struct vg_strategic *s, struct vg_json *original, struct vg_json *patch,
                            const struct vg_merge_schema *schema)
{
    for (uint32_t i = 0; i < patch->n;) {
        struct vg_slice key = vg_json_key(&patch->members[i]);
        if (!vg_strategic_is_prefix(key, VG_STRATEGIC_ORDER)) {
            i++;
            continue;
        }
        struct vg_json order = patch->members[i].value;
        vg_json_object_remove(patch, key);
        int r = set_order(s, original, patch, key, &order, schema);
        if (r < 0)
            return r;
        i = 0; /* the list may have stood before */
    }
    return 0;
}
