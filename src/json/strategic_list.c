/* strategic_list.c - strategic merge of lists: items found by their key, or scalars as a set. */
#include <errno.h>

#include "strategic_int.h"

/* Both lists one after the other, in new memory with room for all. */
static int concat(struct vg_strategic *s, const struct vg_json *a, const struct vg_json *b,
                  struct vg_json *ret)
{
    size_t n = (size_t)a->n + (b ? b->n : 0);
    struct vg_json list = vg_json_array();
    if (n > UINT32_MAX)
        return VIGIL_E_TOO_LARGE;
    *ret = list;
    if (n == 0)
        return 0;
    list.items = vg_arena_array(s->arena, struct vg_json, n);
    if (!list.items)
        return -ENOMEM;
    for (uint32_t i = 0; i < a->n; i++)
        list.items[list.n++] = a->items[i];
    for (uint32_t i = 0; b && i < b->n; i++)
        list.items[list.n++] = b->items[i];
    *ret = list;
    return 0;
}

int vg_strategic_list_copy(struct vg_strategic *s, const struct vg_json *list, struct vg_json *ret)
{
    return concat(s, list, NULL, ret);
}

/* ---- scalars ---- */

/* Items of list that `other` has, too, go. */
static int remove_listed(struct vg_strategic *s, struct vg_json *list, const struct vg_json *other)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        int64_t at;
        int r = vg_strategic_find(s, other, &list->items[i], NULL, &at);
        if (r < 0)
            return r;
        if (at < 0)
            list->items[n++] = list->items[i];
    }
    list->n = n;
    return 0;
}

/* Later items that equal an earlier one go. */
static int deduplicate(struct vg_strategic *s, struct vg_json *list)
{
    struct vg_json seen = *list;
    seen.n = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        int64_t at;
        int r = vg_strategic_find(s, &seen, &list->items[i], NULL, &at);
        if (r < 0)
            return r;
        if (at < 0)
            seen.items[seen.n++] = list->items[i];
    }
    *list = seen;
    return 0;
}

static int merge_scalars(struct vg_strategic *s, struct vg_json *original,
                         const struct vg_json *patch)
{
    struct vg_json merged;
    int r = concat(s, original, patch, &merged);
    if (r == 0)
        r = deduplicate(s, &merged);
    if (r == 0)
        r = vg_strategic_order(s, &merged, patch, original, NULL);
    if (r == 0)
        *original = merged;
    return r;
}

/* ---- objects ---- */

static int delete_matching(struct vg_strategic *s, struct vg_json *original,
                           const struct vg_json *item, const char *key)
{
    const struct vg_json *id = vg_strategic_id(item, key);
    if (!id)
        return vg_strategic_fail_key(s, item, key);
    for (;;) {
        int64_t at;
        int r = vg_strategic_find(s, original, id, key, &at);
        if (r < 0 || at < 0)
            return r;
        vg_json_array_remove(original, (size_t)at);
    }
}

/* Obey items with $patch and take them out of the patch. */
static int obey_items(struct vg_strategic *s, struct vg_json *original, struct vg_json *patch,
                      const char *key)
{
    bool replace = false;
    uint32_t n = 0;
    int r = 0;
    for (uint32_t i = 0; i < patch->n && r == 0; i++) {
        const struct vg_json *item = &patch->items[i];
        const struct vg_json *directive = vg_strategic_directive(item);
        if (!directive)
            patch->items[n++] = *item;
        else if (vg_strategic_is_text(directive, "delete"))
            r = delete_matching(s, original, item, key);
        else if (vg_strategic_is_text(directive, "replace"))
            replace = true;
        else if (vg_strategic_is_text(directive, "merge"))
            r = vg_fail(s->status, VIGIL_E_INTERNAL,
                        "merging lists cannot yet be specified in the patch");
        else
            r = vg_strategic_fail_directive(s, item);
    }
    patch->n = n;
    if (r == 0 && replace) {
        *original = *patch;
        patch->n = 0;
    }
    return r;
}

/* Items that are there are merged, others appended; merged has room for all. */
static int merge_items(struct vg_strategic *s, struct vg_json *merged, struct vg_json *patch,
                       const struct vg_merge_field *field)
{
    for (uint32_t i = 0; i < patch->n; i++) {
        struct vg_json *item = &patch->items[i];
        const struct vg_json *id = vg_strategic_id(item, field->merge_key);
        int64_t at;
        if (!id)
            return vg_strategic_fail_key(s, item, field->merge_key);
        int r = vg_strategic_find(s, merged, id, field->merge_key, &at);
        if (r == 0 && at >= 0)
            r = vg_strategic_map(s, &merged->items[at], item, field->schema);
        if (r < 0)
            return r;
        if (at < 0) {
            merged->items[merged->n++] = *item;
        }
    }
    return 0;
}

static int merge_objects(struct vg_strategic *s, struct vg_json *original, struct vg_json *patch,
                         const struct vg_merge_field *field)
{
    struct vg_json merged, order;
    if (!field->merge_key)
        return vg_fail(s->status, VIGIL_E_INTERNAL,
                       "cannot merge lists without merge key for struct");
    int r = obey_items(s, original, patch, field->merge_key);
    if (r == 0)
        r = concat(s, original, patch, &merged);
    if (r == 0)
        r = vg_strategic_list_copy(s, patch, &order);
    if (r < 0)
        return r;
    merged.n = original->n;
    r = merge_items(s, &merged, patch, field);
    if (r == 0)
        r = vg_strategic_order(s, &merged, &order, original, field->merge_key);
    if (r == 0)
        *original = merged;
    return r;
}

int vg_strategic_list(struct vg_strategic *s, struct vg_json *original, struct vg_json *patch,
                      const struct vg_merge_field *field, bool is_delete_list)
{
    enum vg_json_type type;
    if (!(field->strategy & VG_MERGE_LIST) && !is_delete_list) {
        *original = *patch;
        return 0;
    }
    if (original->n == 0 && patch->n == 0)
        return 0;
    int r = vg_strategic_item_type(s, original, patch, &type);
    if (r < 0)
        return r;
    if (type == VG_JSON_OBJECT)
        return merge_objects(s, original, patch, field);
    return is_delete_list ? remove_listed(s, original, patch) : merge_scalars(s, original, patch);
}
