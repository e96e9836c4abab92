/* shape.c - from tables to shapes; see shape.h. */
#include "shape.h"

#include <errno.h>
#include <stdio.h>

#include "element.h"
#include "server/schema/decode.h"

static struct vg_shape shape_of_value(const struct vg_schema_field *f)
{
    switch ((enum vg_schema_value)f->value) {
    case VG_SCHEMA_TYPE:
        return (struct vg_shape){
            .kind = VG_SHAPE_STRUCT, .type = f->type, .is_atomic = f->type->is_atomic};
    case VG_SCHEMA_RAW:
        return (struct vg_shape){.kind = VG_SHAPE_RAW, .is_atomic = true};
    case VG_SCHEMA_STRINGS: /* a list, as one */
        return (struct vg_shape){.kind = VG_SHAPE_RAW, .is_atomic = true};
    case VG_SCHEMA_JSON:
    case VG_SCHEMA_FIELDS:
    case VG_SCHEMA_OR_ARRAY:
    case VG_SCHEMA_OR_BOOL:
    case VG_SCHEMA_OR_STRINGS:
        return (struct vg_shape){.kind = VG_SHAPE_FREE};
    default:
        return (struct vg_shape){.kind = VG_SHAPE_SCALAR};
    }
}

struct vg_shape vg_fields_shape(struct vg_fields_ref ref)
{
    const struct vg_schema_field *f = ref.field;
    if (ref.type)
        return (struct vg_shape){
            .kind = VG_SHAPE_STRUCT, .type = ref.type, .is_atomic = ref.type->is_atomic};
    if (!f)
        return (struct vg_shape){.kind = VG_SHAPE_FREE};
    bool is_atomic = vg_schema_is(f, VG_SCHEMA_ATOMIC);
    if (f->shape == VG_SCHEMA_LIST && !ref.is_item) {
        const char *const *keys = f->more->list_keys;
        is_atomic = is_atomic || (!keys && !vg_schema_is(f, VG_SCHEMA_LIST_SET));
        return (struct vg_shape){.kind = VG_SHAPE_LIST, .is_atomic = is_atomic, .keys = keys};
    }
    if (f->shape == VG_SCHEMA_MAP && !ref.is_item)
        return (struct vg_shape){.kind = VG_SHAPE_MAP, .is_atomic = is_atomic};
    struct vg_shape s = shape_of_value(f);
    if (f->shape == VG_SCHEMA_ONE)
        s.is_atomic = (s.is_atomic && !vg_schema_is(f, VG_SCHEMA_GRANULAR)) || is_atomic;
    return s;
}

/* A default as the table has it: a scalar in JSON. */
static struct vg_json scalar_of(const char *text)
{
    size_t n = strlen(text);
    if (text[0] == '"')
        return vg_json_string_ref(vg_slice(text + 1, n - 2));
    if (text[0] == 't' || text[0] == 'f')
        return vg_json_bool(text[0] == 't');
    return (struct vg_json){
        .type = VG_JSON_NUMBER, .flags = VG_JSON_INTEGER, .n = (uint32_t)n, .text = text};
}

/* What a key is that an item does not have: its default, or the zero that is always printed. */
static bool default_of(const struct vg_schema_field *f, struct vg_json *ret)
{
    if (f->more->def) {
        *ret = scalar_of(f->more->def);
        return true;
    }
    return vg_schema_zero(f, ret) && ret->type != VG_JSON_NULL;
}

static int refuse_keys(const char *const *keys, struct vg_status *status)
{
    char list[256] = "";
    size_t n = 0;
    for (; *keys && n < sizeof list; keys++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s\"%s\"", n ? " " : "", *keys);
    return vg_fail(status, VIGIL_E_INVALID,
                   "associative list with keys has an element that omits all key fields [%s] (and "
                   "doesn't have default values for any key fields)",
                   list);
}

static int key_element(struct vg_arena *a, const struct vg_schema_field *f,
                       const struct vg_json *item, struct vg_slice *ret, struct vg_status *status)
{
    struct vg_element_key keys[VG_ELEMENT_KEYS_MAX];
    struct vg_json defaults[VG_ELEMENT_KEYS_MAX];
    size_t n = 0;
    if (item->type != VG_JSON_OBJECT)
        return vg_fail(status, VIGIL_E_INVALID, "associative list with keys may not have %s",
                       item->type == VG_JSON_NULL ? "a null element" : "non-map elements");
    for (const char *const *key = f->more->list_keys; *key && n < VG_ELEMENT_KEYS_MAX; key++) {
        struct vg_slice name = vg_slice_str(*key);
        const struct vg_json *v = vg_json_get(item, name);
        const struct vg_schema_field *of = v ? NULL : vg_schema_field(f->type, name);
        if (of && default_of(of, &defaults[n]))
            v = &defaults[n];
        if (!v)
            continue;
        size_t at = n++;
        for (; at > 0 && vg_slice_cmp(name, keys[at - 1].name) < 0; at--)
            keys[at] = keys[at - 1];
        keys[at] = (struct vg_element_key){name, v};
    }
    return n ? vg_element_keys(a, keys, n, ret) : refuse_keys(f->more->list_keys, status);
}

int vg_fields_item_element(struct vg_arena *a, struct vg_fields_ref list,
                           const struct vg_json *item, struct vg_slice *ret,
                           struct vg_status *reterr_status)
{
    static const char *const odd[] = {
        [VG_JSON_NULL] = "associative list without keys has an element that's an explicit null",
        [VG_JSON_ARRAY] = "not supported: associative list with lists as elements",
        [VG_JSON_OBJECT] = "associative list without keys has an element that's a map type",
    };
    if (list.field->more->list_keys)
        return key_element(a, list.field, item, ret, reterr_status);
    if (item->type == VG_JSON_NULL || item->type >= VG_JSON_ARRAY)
        return vg_fail(reterr_status, VIGIL_E_INVALID, "%s", odd[item->type]);
    return vg_element_value(a, item, ret);
}
