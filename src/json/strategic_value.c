/* strategic_value.c - the pieces of a strategic merge: comparing items, cleaning values, refusing.
 * Showing and cleaning recurse; the depth of what they see was checked. */
#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "equal.h"
#include "strategic_int.h"

struct vg_merge_field vg_strategic_field(const struct vg_merge_schema *schema, struct vg_slice key)
{
    const struct vg_merge_field *f = schema ? schema->fields : NULL;
    for (; f && f->name; f++)
        if (vg_slice_eq(vg_slice_str(f->name), key))
            return *f;
    return (struct vg_merge_field){0};
}

int vg_strategic_step(struct vg_strategic *s, uint64_t n)
{
    s->steps += n;
    if (s->steps <= VG_STRATEGIC_STEPS_MAX)
        return 0;
    return vg_fail(s->status, VIGIL_E_TOO_LARGE, "the patch takes too many steps to apply");
}

bool vg_strategic_is_prefix(struct vg_slice key, const char *prefix)
{
    return vg_slice_has_prefix(key, vg_slice_str(prefix));
}

bool vg_strategic_is_text(const struct vg_json *v, const char *text)
{
    return vg_json_is(v, VG_JSON_STRING) && vg_slice_eq(vg_json_text(v), vg_slice_str(text));
}

const struct vg_json *vg_strategic_directive(const struct vg_json *v)
{
    return vg_json_get_str(v, VG_STRATEGIC_PATCH);
}

const struct vg_json *vg_strategic_id(const struct vg_json *item, const char *merge_key)
{
    return merge_key ? vg_json_get_str(item, merge_key) : item;
}

int vg_strategic_find(struct vg_strategic *s, const struct vg_json *list, const struct vg_json *id,
                      const char *merge_key, int64_t *ret)
{
    *ret = -1;
    for (uint32_t i = 0; i < list->n; i++) {
        const struct vg_json *other = vg_strategic_id(&list->items[i], merge_key);
        int r = vg_strategic_step(s, 1);
        if (r == 0 && other && id && other->type == id->type)
            r = vg_json_equal(other, id);
        if (r < 0)
            return r;
        if (r == 1) {
            *ret = i;
            return 0;
        }
    }
    return 0;
}

static int fail_item_types(struct vg_strategic *s, const struct vg_json *a, const struct vg_json *b)
{
    VG_AUTO(buf) one = {0};
    VG_AUTO(buf) two = {0};
    int r = vg_strategic_show(&one, a);
    if (r == 0)
        r = vg_strategic_show(&two, b);
    return r < 0 ? r
                 : vg_fail(s->status, VIGIL_E_INTERNAL,
                           "list element types are not identical: [%.*s %.*s]",
                           VG_SLICE_ARG(vg_buf_slice(&one)), VG_SLICE_ARG(vg_buf_slice(&two)));
}

int vg_strategic_item_type(struct vg_strategic *s, const struct vg_json *a, const struct vg_json *b,
                           enum vg_json_type *ret_type)
{
    const struct vg_json *lists[] = {a, b}, *first = NULL;
    *ret_type = VG_JSON_NULL;
    for (size_t k = 0; k < VG_ARRAY_LEN(lists); k++)
        for (uint32_t i = 0; i < lists[k]->n; i++) {
            const struct vg_json *v = &lists[k]->items[i];
            if (vg_json_is(v, VG_JSON_ARRAY))
                return vg_fail(s->status, VIGIL_E_PATCH_FAILED, "lists of lists are not supported");
            first = first ? first : v;
            if (v->type == VG_JSON_NULL || v->type != first->type)
                return fail_item_types(s, a, b);
            *ret_type = (enum vg_json_type)v->type;
        }
    return 0;
}

/* ---- cleaning ---- */

static void clean_members(struct vg_json *v, bool drop_nulls)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->n; i++) {
        struct vg_json_member *m = &v->members[i];
        if ((drop_nulls && m->value.type == VG_JSON_NULL) ||
            !vg_strategic_clean(&m->value, drop_nulls))
            continue;
        v->members[n++] = *m;
    }
    v->n = n;
}

static void clean_items(struct vg_json *v, bool drop_nulls)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->n; i++)
        if (vg_strategic_clean(&v->items[i], drop_nulls))
            v->items[n++] = v->items[i];
    v->n = n;
}

bool vg_strategic_clean(struct vg_json *v, bool drop_nulls)
{
    if (vg_json_is(v, VG_JSON_OBJECT)) {
        if (vg_strategic_directive(v))
            return false;
        clean_members(v, drop_nulls);
    } else if (vg_json_is(v, VG_JSON_ARRAY)) {
        clean_items(v, drop_nulls);
    }
    return true;
}

/* ---- showing and refusing ---- */

static int show_scalar(struct vg_buf *out, const struct vg_json *v)
{
    if (v->type == VG_JSON_NULL)
        return vg_buf_printf(out, "<nil>");
    if (v->type == VG_JSON_BOOL)
        return vg_buf_printf(out, "%s", vg_json_is_true(v) ? "true" : "false");
    return vg_buf_append_slice(out, vg_json_text(v));
}

static int compare_keys(const void *a, const void *b)
{
    const struct vg_json_member *const *x = a, *const *y = b;
    return vg_slice_cmp(vg_json_key(*x), vg_json_key(*y));
}

static int show(struct vg_buf *out, const struct vg_json *v, size_t enough);

/* Go shows maps sorted. */
static int show_object(struct vg_buf *out, const struct vg_json *v, size_t enough)
{
    const struct vg_json_member **sorted = vg_reallocarray(NULL, v->n + 1u, sizeof(void *));
    if (!sorted)
        return -ENOMEM;
    for (uint32_t i = 0; i < v->n; i++)
        sorted[i] = &v->members[i];
    qsort(sorted, v->n, sizeof(void *), compare_keys);
    int r = vg_buf_printf(out, "map[");
    for (uint32_t i = 0; i < v->n && r == 0 && out->n < enough; i++) {
        r = vg_buf_printf(out, "%s%.*s:", i ? " " : "", VG_SLICE_ARG(vg_json_key(sorted[i])));
        if (r == 0)
            r = show(out, &sorted[i]->value, enough);
    }
    vg_free(sorted);
    return r < 0 ? r : vg_buf_append_byte(out, ']');
}

static int show_array(struct vg_buf *out, const struct vg_json *v, size_t enough)
{
    int r = vg_buf_append_byte(out, '[');
    for (uint32_t i = 0; i < v->n && r == 0 && out->n < enough; i++) {
        if (i)
            r = vg_buf_append_byte(out, ' ');
        if (r == 0)
            r = show(out, &v->items[i], enough);
    }
    return r < 0 ? r : vg_buf_append_byte(out, ']');
}

static int show(struct vg_buf *out, const struct vg_json *v, size_t enough)
{
    if (vg_json_is(v, VG_JSON_OBJECT))
        return show_object(out, v, enough);
    return vg_json_is(v, VG_JSON_ARRAY) ? show_array(out, v, enough) : show_scalar(out, v);
}

int vg_strategic_show(struct vg_buf *out, const struct vg_json *v)
{
    return show(out, v, VG_STATUS_MESSAGE_MAX);
}

int vg_json_strategic_show(struct vg_buf *out, const struct vg_json *v)
{
    return show(out, v, SIZE_MAX);
}

static const char *go_type(const struct vg_json *v)
{
    switch ((enum vg_json_type)v->type) {
    case VG_JSON_BOOL:
        return "bool";
    case VG_JSON_NUMBER:
        return v->flags & VG_JSON_INTEGER ? "int64" : "float64";
    case VG_JSON_STRING:
        return "string";
    case VG_JSON_ARRAY:
        return "[]interface {}";
    case VG_JSON_OBJECT:
        return "map[string]interface {}";
    default:
        return "%!s(<nil>)";
    }
}

int vg_strategic_fail_type(struct vg_strategic *s, const char *expected, const struct vg_json *got)
{
    return vg_fail(s->status, VIGIL_E_INTERNAL, "expected a %s, but received a %s", expected,
                   go_type(got));
}

int vg_strategic_fail_key(struct vg_strategic *s, const struct vg_json *item, const char *key)
{
    VG_AUTO(buf) shown = {0};
    int r = vg_strategic_show(&shown, item);
    if (r < 0)
        return r;
    return vg_fail(s->status, VIGIL_E_INTERNAL, "map: %.*s does not contain declared merge key: %s",
                   VG_SLICE_ARG(vg_buf_slice(&shown)), key);
}

/* Go's %s of what is no text. */
static int show_as_text(struct vg_buf *out, const struct vg_json *v)
{
    if (!v || v->type == VG_JSON_NULL)
        return vg_buf_printf(out, "%%!s(<nil>)");
    bool is_scalar = v->type == VG_JSON_NUMBER || v->type == VG_JSON_BOOL;
    if (!is_scalar)
        return vg_strategic_show(out, v);
    int r = vg_buf_printf(out, "%%!s(%s=", go_type(v));
    if (r == 0)
        r = vg_strategic_show(out, v);
    return r < 0 ? r : vg_buf_append_byte(out, ')');
}

int vg_strategic_fail_directive(struct vg_strategic *s, const struct vg_json *map)
{
    VG_AUTO(buf) directive = {0};
    VG_AUTO(buf) shown = {0};
    int r = show_as_text(&directive, vg_strategic_directive(map));
    if (r == 0)
        r = vg_strategic_show(&shown, map);
    if (r < 0)
        return r;
    return vg_fail(s->status, VIGIL_E_INTERNAL, "unknown patch type: %.*s in map: %.*s",
                   VG_SLICE_ARG(vg_buf_slice(&directive)), VG_SLICE_ARG(vg_buf_slice(&shown)));
}
