/* crd_defaults.c - whether the default values in a schema fit it: scalars alone; what a default
 * object or list holds is not looked into. */
#include "crd.h"

static const char *type_name(const struct vg_json *v)
{
    switch ((enum vg_json_type)v->type) {
    case VG_JSON_BOOL:
        return "boolean";
    case VG_JSON_NUMBER:
        return v->flags & VG_JSON_INTEGER ? "integer" : "number";
    case VG_JSON_STRING:
        return "string";
    case VG_JSON_ARRAY:
        return "array";
    case VG_JSON_OBJECT:
        return "object";
    case VG_JSON_NULL:
        break;
    }
    return "null";
}

static bool is_of_type(const struct vg_at *s, const struct vg_at *def)
{
    struct vg_at type = vg_at(s, "type");
    const char *got = type_name(def->v);
    return vg_at_text(&type).n == 0 || vg_at_is(&type, got) ||
           (vg_at_is(&type, "number") && strcmp(got, "integer") == 0) ||
           (vg_json_is_true(vg_json_get_str(s->v, "nullable")) && strcmp(got, "null") == 0);
}

static void check_default_enum(struct vg_check *c, const struct vg_at *def,
                               const struct vg_at *values)
{
    const char **texts = vg_arena_array(c->arena, const char *, vg_at_n(values) + 1);
    c->errors->failed |= !texts;
    if (!texts)
        return;
    VG_CHECK_EACH (c, value, values) {
        if (vg_check_same(c, value.v, def->v))
            return;
        struct vg_slice text = vg_at_text(&value);
        char *copy = vg_arena_alloc(c->arena, text.n + 1, 1);
        texts[value.index] = copy;
        c->errors->failed |= !copy;
        if (!copy)
            return;
        memcpy(copy, text.p, text.n);
        copy[text.n] = '\0';
    }
    texts[vg_at_n(values)] = NULL;
    vg_unsupported_value(c, def, vg_json_shown(c, def->v), texts);
}

/* Is it a bound that the format has? */
static bool check_bound(struct vg_check *c, const struct vg_at *s, const struct vg_at *def,
                        const struct vg_at *bound, const char *what)
{
    struct vg_at format = vg_at(s, "format");
    int64_t i = 0;
    bool is_int = vg_json_to_int64(bound->v, &i) == 0;
    if (!vg_at_is(&format, "int32") || (is_int && i >= INT32_MIN && i <= INT32_MAX))
        return true;
    vg_bad_value(c, def, VG_SLICE_LIT("\"\""),
                 "%s boundary value must be of type integer with format int32 in ", what);
    return false;
}

static void check_default_number(struct vg_check *c, const struct vg_at *s, const struct vg_at *def)
{
    struct vg_at max = vg_at(s, "maximum"), min = vg_at(s, "minimum");
    double value = 0, bound = 0;
    if (vg_json_to_double(def->v, &value) < 0)
        return;
    if (max.v && vg_json_to_double(max.v, &bound) == 0 && check_bound(c, s, def, &max, "Maximum") &&
        value > bound)
        vg_bad(c, def, " in body should be less than or equal to %.*s",
               VG_SLICE_ARG(vg_at_text(&max)));
    if (min.v && vg_json_to_double(min.v, &bound) == 0 && check_bound(c, s, def, &min, "Minimum") &&
        value < bound)
        vg_bad(c, def, " in body should be greater than or equal to %.*s",
               VG_SLICE_ARG(vg_at_text(&min)));
}

static size_t characters(struct vg_slice s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.p[i] & 0xc0) != 0x80;
    return n;
}

/* Scalars alone: what a default object holds is not looked into. */
static void check_default(struct vg_check *c, const struct vg_at *s)
{
    struct vg_at def = vg_at(s, "default"), values = vg_at(s, "enum"), type = vg_at(s, "type");
    struct vg_at max = vg_at(s, "maxLength"), min = vg_at(s, "minLength");
    if (!vg_at_is_set(&def))
        return;
    if (!is_of_type(s, &def)) {
        const char *got = type_name(def.v);
        vg_bad_type(c, &def, vg_json_quoted(c, vg_slice_str(got)),
                    " in body must be of type %.*s: \"%s\"", VG_SLICE_ARG(vg_at_text(&type)), got);
        return;
    }
    if (def.v->type == VG_JSON_NUMBER)
        check_default_number(c, s, &def);
    if (def.v->type == VG_JSON_STRING && max.v &&
        (int64_t)characters(vg_at_text(&def)) > vg_at_int(&max))
        vg_too_long(c, &def, (size_t)vg_at_int(&max));
    if (def.v->type == VG_JSON_STRING && min.v &&
        (int64_t)characters(vg_at_text(&def)) < vg_at_int(&min))
        vg_bad(c, &def, " in body should be at least %.*s chars long",
               VG_SLICE_ARG(vg_at_text(&min)));
    if (vg_at_n(&values))
        check_default_enum(c, &def, &values);
}

void vg_check_crd_defaults(struct vg_check *c, const struct vg_at *s)
{
    struct vg_at items = vg_at(s, "items"), properties = vg_at(s, "properties");
    struct vg_at more = vg_at(s, "additionalProperties");
    check_default(c, s);
    if (vg_json_is(items.v, VG_JSON_OBJECT))
        vg_check_crd_defaults(c, &items);
    if (properties.v)
        VG_JSON_FOREACH_MEMBER (m, properties.v) {
            struct vg_at p = vg_at_key(&properties, m);
            vg_check_crd_defaults(c, &p);
        }
    if (vg_json_is(more.v, VG_JSON_OBJECT))
        vg_check_crd_defaults(c, &more);
}
