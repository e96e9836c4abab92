/* strategic.c - strategic merge of objects.
 * Both inputs are copied first; from then on the copies are changed in place, as the original
 * algorithm does, and pieces of the patch move into the document. Recursion is as deep as both
 * nest, which is checked before. */
#include "strategic.h"

#include "strategic_int.h"
#include "tree_edit.h"

/* Put v, a piece of the patch, under key, or remove key when v is a directive. */
static int take(struct vg_strategic *s, struct vg_json *original, struct vg_slice key,
                struct vg_json v)
{
    if (vg_strategic_clean(&v, true))
        return vg_json_object_set(s->arena, original, key, v);
    vg_json_object_remove(original, key);
    return 0;
}

/* ---- $patch on an object ---- */

/* 1: the directive was obeyed, *original is the result. */
static int obey_directive(struct vg_strategic *s, struct vg_json *original, struct vg_json *patch)
{
    const struct vg_json *directive = vg_strategic_directive(patch);
    if (!directive)
        return 0;
    if (vg_strategic_is_text(directive, "replace")) {
        vg_json_object_remove(patch, VG_SLICE_LIT(VG_STRATEGIC_PATCH));
        *original = *patch;
        return 1;
    }
    if (vg_strategic_is_text(directive, "delete")) {
        *original = vg_json_object();
        return 1;
    }
    return vg_strategic_fail_directive(s, patch);
}

/* ---- $retainKeys ---- */

static int is_retained(struct vg_strategic *s, const struct vg_json *keys, struct vg_slice key)
{
    struct vg_json name = vg_json_string_ref(key);
    int64_t at;
    int r = vg_strategic_find(s, keys, &name, NULL, &at);
    return r < 0 ? r : at >= 0;
}

/* Everything that the patch sets must be retained. */
static int check_retained(struct vg_strategic *s, const struct vg_json *keys,
                          const struct vg_json *patch)
{
    VG_JSON_FOREACH_MEMBER (m, patch) {
        struct vg_slice key = vg_json_key(m);
        if (m->value.type == VG_JSON_NULL || vg_strategic_is_prefix(key, VG_STRATEGIC_DELETE) ||
            vg_strategic_is_prefix(key, VG_STRATEGIC_ORDER))
            continue;
        int r = is_retained(s, keys, key);
        if (r < 0)
            return r;
        if (r == 0)
            return vg_fail(s->status, VIGIL_E_PATCH_INVALID, "invalid patch format of retainKeys");
    }
    return 0;
}

static int retain_keys(struct vg_strategic *s, struct vg_json *original, struct vg_json *patch)
{
    const struct vg_json *found = vg_json_get_str(patch, VG_STRATEGIC_RETAIN);
    if (!found)
        return 0;
    struct vg_json keys = *found;
    vg_json_object_remove(patch, VG_SLICE_LIT(VG_STRATEGIC_RETAIN));
    if (!vg_json_is(&keys, VG_JSON_ARRAY))
        return vg_fail(s->status, VIGIL_E_PATCH_INVALID, "invalid patch format of retainKeys");
    int r = check_retained(s, &keys, patch);
    uint32_t n = 0;
    for (uint32_t i = 0; i < original->n && r >= 0; i++) {
        r = is_retained(s, &keys, vg_json_key(&original->members[i]));
        if (r == 1)
            original->members[n++] = original->members[i];
    }
    if (r >= 0)
        original->n = n;
    return VG_MIN(r, 0);
}

/* ---- one member ---- */

/* "$deleteFromPrimitiveList/x" is about x. */
static int split_delete_list(struct vg_strategic *s, struct vg_slice *key, bool *ret_is_delete)
{
    struct vg_slice prefix = VG_SLICE_LIT(VG_STRATEGIC_DELETE);
    *ret_is_delete = vg_slice_has_prefix(*key, prefix);
    if (!*ret_is_delete)
        return 0;
    if (key->n == prefix.n || key->p[prefix.n] != '/')
        return vg_fail(s->status, VIGIL_E_PATCH_INVALID, "invalid patch format of primitive list");
    if (key->n > prefix.n + 1)
        *key = vg_slice(key->p + prefix.n + 1, key->n - prefix.n - 1);
    return 0;
}

static int merge_same_type(struct vg_strategic *s, struct vg_json *original, struct vg_json *patch,
                           const struct vg_merge_field *field, bool is_delete)
{
    if (vg_json_is(patch, VG_JSON_ARRAY))
        return vg_strategic_list(s, original, patch, field, is_delete);
    if (!(field->strategy & VG_MERGE_REPLACE))
        return vg_strategic_map(s, original, patch, field->schema);
    *original = *patch;
    return 0;
}

static bool is_container(const struct vg_json *v)
{
    return v->type == VG_JSON_OBJECT || v->type == VG_JSON_ARRAY;
}

static int merge_member(struct vg_strategic *s, struct vg_json *original, struct vg_json_member *m,
                        const struct vg_merge_schema *schema)
{
    struct vg_slice key = vg_json_key(m);
    bool is_delete;
    int r = split_delete_list(s, &key, &is_delete);
    if (r == 0)
        r = vg_strategic_step(s, 1 + original->n);
    if (r < 0)
        return r;
    if (m->value.type == VG_JSON_NULL) {
        vg_json_object_remove(original, key);
        return 0;
    }
    struct vg_json *old = vg_json_get(original, key);
    if (old && old->type == m->value.type && is_container(old)) {
        struct vg_merge_field field = vg_strategic_field(schema, key);
        return merge_same_type(s, old, &m->value, &field, is_delete);
    }
    return is_delete ? 0 : take(s, original, key, m->value);
}

int vg_strategic_map(struct vg_strategic *s, struct vg_json *original, struct vg_json *patch,
                     const struct vg_merge_schema *schema)
{
    int r = obey_directive(s, original, patch);
    if (r != 0)
        return VG_MIN(r, 0);
    r = retain_keys(s, original, patch);
    if (r == 0)
        r = vg_strategic_set_orders(s, original, patch, schema);
    for (uint32_t i = 0; i < patch->n && r == 0; i++)
        r = merge_member(s, original, &patch->members[i], schema);
    return r;
}

/* ---- the door ---- */

static int check_depth(struct vg_strategic *s, const struct vg_json *v)
{
    struct vg_json_measure m;
    int r = vg_json_measure(v, &m);
    if (r < 0 || m.depth <= VG_JSON_DEPTH_DEFAULT)
        return r;
    return vg_fail(s->status, VIGIL_E_JSON_DEPTH, "nested deeper than %u levels",
                   VG_JSON_DEPTH_DEFAULT);
}

int vg_json_strategic_apply(struct vg_arena *arena, const struct vg_json *doc,
                            const struct vg_json *patch, const struct vg_merge_schema *schema,
                            struct vg_json *ret_doc, struct vg_status *reterr_status)
{
    struct vg_strategic s = {.arena = arena, .status = reterr_status};
    struct vg_json original, change;
    bool is_object = vg_json_is(patch, VG_JSON_OBJECT);
    if (!is_object && !vg_json_is(patch, VG_JSON_NULL))
        return vg_fail(reterr_status, VIGIL_E_PATCH_INVALID,
                       "json: cannot unmarshal %s into Go value of type map[string]interface {}",
                       vg_json_type_name((enum vg_json_type)patch->type));
    int r = check_depth(&s, doc);
    if (r == 0)
        r = check_depth(&s, patch);
    if (r == 0)
        r = vg_json_copy(arena, doc, &original);
    if (r == 0)
        r = vg_json_copy(arena, patch, &change);
    if (r == 0 && is_object)
        r = vg_strategic_map(&s, &original, &change, schema);
    if (r == 0)
        *ret_doc = original;
    return r;
}
