/* crd_schema.c - rules of the schemas of custom resources: those of its fields, after those that
 * make it structural (crd_structural.c). Left out: whether rules in CEL compile and what they cost;
 * whether defaults that are objects or lists fit their schema; whether patterns are regular
 * expressions; that what is forbidden inside of allOf, anyOf, oneOf and not is said outside too;
 * which fields the root may have beside a status. */
#include "admission.h"
#include "crd.h"
#include "names.h"

/* Properties that the paths of rules are held against in all: some 30 ms. Real definitions have
 * hundreds of rules and of properties; beyond, paths are taken as they are. */
#define PATH_STEPS_MAX UINT64_C(10000000)

static void check_unsupported(struct vg_check *c, const struct vg_at *s, const char *no_default,
                              bool is_in_meta)
{
    static const char *const types[] = {"array",  "boolean", "integer", "number",
                                        "object", "string",  NULL};
    static const char *const members[] = {"id",          "additionalItems", "patternProperties",
                                          "definitions", "dependencies",    "$ref"};
    struct vg_at type = vg_at(s, "type"), def = vg_at(s, "default"), items = vg_at(s, "items");
    struct vg_at embedded = vg_at(s, "x-kubernetes-embedded-resource");
    if (vg_at_text(&type).n)
        (void)vg_check_one_of(c, &type, types);
    if (def.v && no_default)
        vg_forbidden(c, &def, "must not be set %s", no_default);
    for (size_t i = 0; i < VG_ARRAY_LEN(members); i++) {
        struct vg_at at = vg_at(s, members[i]);
        if (vg_at_is_set(&at))
            vg_forbidden(c, &at, "%s is not supported", members[i]);
    }
    if (vg_at_is(&type, "null"))
        vg_forbidden(c, &type, "type cannot be set to null, use nullable as an alternative");
    if (vg_json_is(items.v, VG_JSON_ARRAY) && items.v->n)
        vg_forbidden(c, &items, "items must be a schema object and not an array");
    if (is_in_meta && vg_at_is_true(&embedded))
        vg_forbidden(c, &embedded, "must not be used inside of resource meta");
}

/* A type that goes with an extension. */
static bool check_type_of(struct vg_check *c, const struct vg_at *s, const char *type,
                          const char *extension)
{
    struct vg_at at = vg_at(s, "type");
    if (vg_at_is(&at, type))
        return true;
    if (vg_at_text(&at).n)
        vg_bad(c, &at, "must be %s if %s is specified", type, extension);
    else
        vg_required(c, &at, "must be %s if %s is specified", type, extension);
    return false;
}

/* Items of sets are atomic. */
static void check_set(struct vg_check *c, const struct vg_at *s)
{
    struct vg_at items = vg_at(s, "items"), type = vg_at(&items, "type");
    struct vg_at list = vg_at(&items, "x-kubernetes-list-type");
    struct vg_at map = vg_at(&items, "x-kubernetes-map-type");
    static const char must[] = "must be atomic as item of a list with x-kubernetes-list-type=set";
    if (vg_at_is(&type, "array") && list.v && !vg_at_is(&list, "atomic"))
        vg_bad(c, &list, "%s", must);
    if (vg_at_is(&type, "object") && !vg_at_is(&map, "atomic"))
        vg_bad_value(c, &map, vg_json_shown(c, list.v), "%s", must);
}

static void check_map_key(struct vg_check *c, const struct vg_at *keys, const struct vg_at *items,
                          struct vg_json_lookup *lookup, struct vg_slice key, struct vg_names *seen)
{
    struct vg_at properties = vg_at(items, "properties"), item_type = vg_at(items, "type");
    const struct vg_json_member *m = NULL;
    int r = vg_json_lookup_find(lookup, key, UINT32_MAX, &m);
    c->errors->failed |= r < 0;
    if (r > 0) {
        struct vg_at p = vg_at_key(&properties, m), type = vg_at(&p, "type");
        if (vg_at_is(&type, "array") || vg_at_is(&type, "object"))
            vg_bad_value(c, &type, vg_json_shown(c, item_type.v),
                         "must be a scalar type if parent array's x-kubernetes-list-type is map");
    } else {
        vg_bad(c, keys, "entries must all be names of item properties");
    }
    if (!vg_names_add(c, seen, key, NULL))
        vg_bad(c, keys, "must not contain duplicate entries");
}

static void check_map(struct vg_check *c, const struct vg_at *s)
{
    VG_AUTO(names) seen = {0};
    struct vg_at items = vg_at(s, "items"), type = vg_at(&items, "type");
    struct vg_at keys = vg_at(s, "x-kubernetes-list-map-keys");
    if (vg_at_n(&keys) == 0)
        vg_required(c, &keys, "must not be empty if x-kubernetes-list-type is map");
    if (!vg_at_is_set(&items)) {
        vg_required(c, &items, "must have a schema if x-kubernetes-list-type is map");
        return;
    }
    if (!vg_at_is(&type, "object")) {
        vg_bad_text(c, &type, "must be object if parent array's x-kubernetes-list-type is map");
        return;
    }
    VG_AUTO(json_lookup) lookup;
    vg_json_lookup_init(&lookup, vg_json_get_str(items.v, "properties"));
    VG_CHECK_EACH (c, key, &keys)
        check_map_key(c, &keys, &items, &lookup, vg_at_text(&key), &seen);
}

/* Keys are always there, and items never null. */
static void check_keys_given(struct vg_check *c, const struct vg_at *s, bool is_map,
                             const char *list_type)
{
    struct vg_at items = vg_at(s, "items"), nullable = vg_at(&items, "nullable");
    struct vg_at keys = vg_at(s, "x-kubernetes-list-map-keys");
    struct vg_at properties = vg_at(&items, "properties"), required = vg_at(&items, "required");
    if (vg_at_is_true(&nullable))
        vg_forbidden(c, &nullable, "cannot be nullable when x-kubernetes-list-type is %s",
                     list_type);
    if (!is_map)
        return;
    VG_AUTO(names) needed = {0};
    VG_AUTO(json_lookup) lookup;
    vg_json_lookup_init(&lookup, properties.v);
    VG_CHECK_EACH (c, name, &required)
        (void)vg_names_add(c, &needed, vg_at_text(&name), NULL);
    VG_CHECK_EACH (c, key, &keys) {
        const struct vg_json_member *m = NULL;
        int r = vg_json_lookup_find(&lookup, vg_at_text(&key), UINT32_MAX, &m);
        c->errors->failed |= r < 0;
        if (r <= 0)
            continue;
        struct vg_at p = vg_at_key(&properties, m), def = vg_at(&p, "default");
        struct vg_at null = vg_at(&p, "nullable");
        if (!def.v && !vg_names_has(&needed, vg_at_text(&key)))
            vg_required(c, &def,
                        "this property is in x-kubernetes-list-map-keys, so it must have a "
                        "default or be a required property");
        if (vg_at_is_true(&null))
            vg_forbidden(c, &null,
                         "this property is in x-kubernetes-list-map-keys, so it cannot "
                         "be nullable");
    }
}

static void check_list_type(struct vg_check *c, const struct vg_at *s)
{
    static const char *const known[] = {"atomic", "set", "map", NULL};
    static const char must[] = "must be map if x-kubernetes-list-map-keys is non-empty";
    struct vg_at list = vg_at(s, "x-kubernetes-list-type"), items = vg_at(s, "items");
    struct vg_at keys = vg_at(s, "x-kubernetes-list-map-keys");
    bool is_map = vg_at_is(&list, "map"), is_set = vg_at_is(&list, "set");
    bool has_items = vg_json_is(items.v, VG_JSON_OBJECT);
    if (list.v && check_type_of(c, s, "array", "x-kubernetes-list-type") && is_set && has_items)
        check_set(c, s);
    if (list.v)
        (void)vg_check_one_of(c, &list, known);
    if (vg_at_n(&keys) && !list.v)
        vg_required(c, &list, "%s", must);
    else if (vg_at_n(&keys) && !is_map)
        vg_bad(c, &list, "%s", must);
    if (is_map)
        check_map(c, s);
    if ((is_map || is_set) && has_items)
        check_keys_given(c, s, is_map, is_map ? "map" : "set");
}

static bool has_break(struct vg_slice s)
{
    return s.n && (memchr(s.p, '\n', s.n) || memchr(s.p, '\r', s.n));
}

static void check_rule(struct vg_check *c, const struct vg_at *schema, const struct vg_at *at,
                       uint64_t *steps)
{
    static const char *const reasons[] = {"FieldValueDuplicate", "FieldValueForbidden",
                                          "FieldValueInvalid", "FieldValueRequired", NULL};
    struct vg_at rule = vg_at(at, "rule"), message = vg_at(at, "message");
    struct vg_at words = vg_at(at, "messageExpression"), reason = vg_at(at, "reason");
    struct vg_at path = vg_at(at, "fieldPath");
    struct vg_slice text = vg_trimmed(vg_at_text(&message)), p = vg_at_text(&path);
    const struct vg_json *ignored;
    if (vg_trimmed(vg_at_text(&rule)).n == 0)
        vg_required(c, &rule, "rule is not specified");
    else if (vg_at_text(&message).n && text.n == 0)
        vg_bad(c, &message, "must be non-empty if specified");
    else if (has_break(text))
        vg_bad(c, &message, "must not contain line breaks");
    else if (has_break(vg_trimmed(vg_at_text(&rule))) && text.n == 0)
        vg_required(c, &message, "message must be specified if rule contains line breaks");
    if (vg_at_text(&words).n && vg_trimmed(vg_at_text(&words)).n == 0)
        vg_required(c, &words, "messageExpression must be non-empty if specified");
    if (reason.v)
        (void)vg_check_one_of(c, &reason, reasons);
    if (p.n && vg_trimmed(p).n == 0)
        vg_bad(c, &path, "must be non-empty if specified");
    if (has_break(p))
        vg_bad(c, &path, "must not contain line breaks");
    if (p.n && !memchr(p.p, '[', p.n) && vg_crd_field(schema->v, p, steps, &ignored))
        vg_bad(c, &path, "must be a valid path");
}

struct inside {
    const char *no_default; /* why there may be none; NULL: there may */
    bool is_in_meta, is_root;
    uint64_t *steps; /* left for the paths of rules */
};

static void check_schema(struct vg_check *c, const struct vg_at *s, struct inside in);

static void check_properties(struct vg_check *c, const struct vg_at *s, struct inside in)
{
    static const char *const meta[][2] = {{"metadata", "in top-level metadata"},
                                          {"kind", "in top-level kind"},
                                          {"apiVersion", "in top-level apiVersion"}};
    struct vg_at properties = vg_at(s, "properties");
    bool is_resource =
        in.is_root || vg_json_is_true(vg_json_get_str(s->v, "x-kubernetes-embedded-resource"));
    if (!properties.v)
        return;
    VG_JSON_FOREACH_MEMBER (m, properties.v) {
        struct vg_at p = vg_at_key(&properties, m);
        struct inside sub = {in.no_default, in.is_in_meta, false, in.steps};
        for (size_t i = 0; i < VG_ARRAY_LEN(meta) && is_resource; i++)
            if (vg_slice_eq(vg_json_key(m), vg_slice_str(meta[i][0]))) {
                sub.is_in_meta = true;
                sub.no_default = in.is_root ? meta[i][1] : sub.no_default;
            }
        check_schema(c, &p, sub);
    }
}

static void check_schema(struct vg_check *c, const struct vg_at *s, struct inside in)
{
    static const char *const map_types[] = {"atomic", "granular", NULL};
    static const char *const lists[] = {"allOf", "oneOf", "anyOf"};
    struct vg_at unique = vg_at(s, "uniqueItems"), properties = vg_at(s, "properties");
    struct vg_at more = vg_at(s, "additionalProperties");
    struct vg_at items = vg_at(s, "items"), not = vg_at(s, "not"),
                 map = vg_at(s, "x-kubernetes-map-type");
    struct vg_at preserve = vg_at(s, "x-kubernetes-preserve-unknown-fields");
    struct vg_at rules = vg_at(s, "x-kubernetes-validations");
    struct inside sub = {in.no_default, in.is_in_meta, false, in.steps}, other = sub;
    check_unsupported(c, s, in.no_default, in.is_in_meta);
    if (vg_at_is_true(&unique))
        vg_forbidden(c, &unique,
                     "uniqueItems cannot be set to true since the runtime complexity "
                     "becomes quadratic");
    if (more.v && vg_at_is_set(&properties) && !vg_at_is_true(&more))
        vg_forbidden(c, &more, "additionalProperties and properties are mutual exclusive");
    if (in.is_in_meta)
        other.no_default = "inside additionalProperties applying to object metadata";
    if (vg_json_is(more.v, VG_JSON_OBJECT))
        check_schema(c, &more, other);
    check_properties(c, s, in);
    if (not .v)
        check_schema(c, &not, sub);
    for (size_t i = 0; i < VG_ARRAY_LEN(lists); i++) {
        struct vg_at list = vg_at(s, lists[i]);
        VG_CHECK_EACH (c, it, &list)
            check_schema(c, &it, sub);
    }
    if (vg_json_is(items.v, VG_JSON_OBJECT))
        check_schema(c, &items, sub);
    if (vg_json_is(preserve.v, VG_JSON_BOOL) && !vg_at_is_true(&preserve))
        vg_bad(c, &preserve, "must be true or undefined");
    if (map.v) {
        (void)check_type_of(c, s, "object", "x-kubernetes-map-type");
        (void)vg_check_one_of(c, &map, map_types);
    }
    check_list_type(c, s);
    VG_CHECK_EACH (c, rule, &rules)
        check_rule(c, s, &rule, in.steps);
    vg_check_crd_expressions(c, &rules);
}

void vg_check_crd_schema(struct vg_check *c, const struct vg_at *at, bool has_status)
{
    struct vg_at schema = vg_at(at, "openAPIV3Schema"), type = vg_at(&schema, "type");
    struct vg_at nullable = vg_at(&schema, "nullable");
    if (!schema.v)
        return;
    if (has_status && vg_at_text(&type).n && !vg_at_is(&type, "object"))
        vg_bad(c, &type,
               "only \"object\" is allowed as the type at the root of the schema if the status "
               "subresource is enabled");
    if (vg_at_is_true(&nullable))
        vg_forbidden(c, &nullable, "nullable cannot be true at the root");
    if (vg_check_crd_structural(c, &schema))
        vg_check_crd_defaults(c, &schema);
    uint64_t steps = PATH_STEPS_MAX;
    check_schema(c, &schema, (struct inside){.is_root = true, .steps = &steps});
}

/* ---- paths ---- */

const char *vg_crd_field(const struct vg_json *schema, struct vg_slice path, uint64_t *steps,
                         const struct vg_json **ret)
{
    *ret = NULL;
    if (path.n == 0 || (path.p[0] != '.' && path.p[0] != '['))
        return "expected [ or . but got: ";
    if (path.p[0] == '[' || path.n == 1)
        return "does not refer to a valid field";
    for (size_t from = 1, i = 1; i <= path.n; i++) {
        if (i < path.n && path.p[i] != '.')
            continue;
        const struct vg_json *properties = vg_json_get_str(schema, "properties");
        uint64_t n = properties ? properties->n : 0;
        if (steps && *steps < n)
            return NULL;
        if (steps)
            *steps -= n;
        schema = vg_json_get(properties, vg_slice(path.p + from, i - from));
        if (!schema)
            return "does not refer to a valid field";
        from = i + 1;
    }
    *ret = schema;
    return NULL;
}
