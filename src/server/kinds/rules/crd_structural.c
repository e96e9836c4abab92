/* crd_structural.c - what makes the schema of a custom resource structural: every field has a type
 * that is said in one place, outside of allOf and its like. */
#include <stdlib.h>

#include "crd.h"

enum level { AT_ROOT, AT_ITEM, AT_FIELD };

static bool has(const struct vg_at *schema, const char *member)
{
    struct vg_at at = vg_at(schema, member);
    return vg_at_is_set(&at);
}

static bool is_true(const struct vg_at *schema, const char *member)
{
    return vg_json_is_true(vg_json_get_str(schema->v, member));
}

static void check_nested(struct vg_check *c, const struct vg_at *at);

static void check_nested_list(struct vg_check *c, const struct vg_at *schema, const char *member)
{
    struct vg_at list = vg_at(schema, member);
    VG_CHECK_EACH (c, it, &list)
        check_nested(c, &it);
}

/* anyOf: integer or string, which goes with x-kubernetes-int-or-string. */
static bool is_int_or_string(const struct vg_json *any)
{
    static const char *const types[] = {"integer", "string"};
    if (!any || any->n != 2)
        return false;
    for (size_t i = 0; i < 2; i++) {
        const struct vg_json *it = vg_json_at(any, i);
        if (!it || it->n != 1 ||
            !vg_slice_eq(vg_json_text(vg_json_get_str(it, "type")), vg_slice_str(types[i])))
            return false;
    }
    return true;
}

static void check_values(struct vg_check *c, const struct vg_at *schema)
{
    struct vg_at any = vg_at(schema, "anyOf"), all = vg_at(schema, "allOf");
    struct vg_at not = vg_at(schema, "not");
    if (!is_int_or_string(any.v))
        check_nested_list(c, schema, "anyOf");
    VG_CHECK_EACH (c, it, &all)
        if (it.index || !is_int_or_string(vg_json_get_str(it.v, "anyOf")))
            check_nested(c, &it);
    check_nested_list(c, schema, "oneOf");
    if (not .v)
        check_nested(c, &not );
}

/* What may only be said outside of allOf and its like. */
static void check_nested(struct vg_check *c, const struct vg_at *at)
{
    static const struct {
        const char *member, *must;
    } forbidden[] = {
        {"type", "must be empty"},
        {"additionalProperties", "must be undefined"},
        {"default", "must be undefined"},
        {"title", "must be empty"},
        {"description", "must be empty"},
        {"nullable", "must be false"},
        {"x-kubernetes-preserve-unknown-fields", "must be false"},
        {"x-kubernetes-embedded-resource", "must be false"},
        {"x-kubernetes-int-or-string", "must be false"},
        {"x-kubernetes-list-map-keys", "must be empty"},
        {"x-kubernetes-list-type", "must be undefined"},
        {"x-kubernetes-map-type", "must be undefined"},
        {"x-kubernetes-validations", "must be empty"},
    };
    struct vg_at items = vg_at(at, "items"), properties = vg_at(at, "properties");
    check_values(c, at);
    if (vg_json_is(items.v, VG_JSON_OBJECT))
        check_nested(c, &items);
    if (properties.v)
        VG_JSON_FOREACH_MEMBER (m, properties.v) {
            struct vg_at p = vg_at_key(&properties, m);
            check_nested(c, &p);
            if (vg_slice_eq(vg_json_key(m), VG_SLICE_LIT("metadata")))
                vg_forbidden(c, &p, "must not be specified in a nested context");
        }
    for (size_t i = 0; i < VG_ARRAY_LEN(forbidden); i++) {
        struct vg_at f = vg_at(at, forbidden[i].member);
        if (vg_at_is_set(&f))
            vg_forbidden(c, &f, "%s to be structural", forbidden[i].must);
    }
}

static void check_type(struct vg_check *c, const struct vg_at *s, enum level level)
{
    static const char *const where[] = {"at the root", "for specified array items",
                                        "for specified object fields"};
    static const char embedded[] = "must be object if x-kubernetes-embedded-resource is true";
    struct vg_at type = vg_at(s, "type");
    bool has_type = vg_at_text(&type).n > 0, is_object = vg_at_is(&type, "object");
    if (is_true(s, "x-kubernetes-embedded-resource") && !is_object) {
        if (has_type)
            vg_bad(c, &type, "%s", embedded);
        else
            vg_required(c, &type, "%s", embedded);
    } else if (!has_type && !is_true(s, "x-kubernetes-int-or-string") &&
               !is_true(s, "x-kubernetes-preserve-unknown-fields")) {
        vg_required(c, &type, "must not be empty %s", where[level]);
    }
    if (level == AT_ROOT && has_type && !is_object)
        vg_bad(c, &type, "must be object at the root");
}

/* kind, apiVersion and metadata, where they mean what they say. */
static void check_meta_fields(struct vg_check *c, const struct vg_at *s, enum level level)
{
    static const char *const names[][2] = {
        {"kind", "string"}, {"apiVersion", "string"}, {"metadata", "object"}};
    struct vg_at properties = vg_at(s, "properties");
    bool is_checked = level == AT_ROOT || is_true(s, "x-kubernetes-embedded-resource");
    for (size_t i = 0; i < VG_ARRAY_LEN(names); i++) {
        struct vg_json_member *m =
            properties.v ? vg_json_member(properties.v, vg_slice_str(names[i][0])) : NULL;
        if (!m)
            continue;
        struct vg_at p = vg_at_key(&properties, m), type = vg_at(&p, "type");
        if (is_checked && !vg_at_is(&type, names[i][1]))
            vg_bad_text(c, &type, "must be %s", names[i][1]);
        if (i != 2 || level != AT_ROOT)
            continue;
        struct vg_at inner = vg_at(&p, "properties");
        size_t known = (vg_json_get_str(inner.v, "name") != NULL) +
                       (size_t)(vg_json_get_str(inner.v, "generateName") != NULL);
        size_t extra = p.v->n - (type.v != NULL) - (inner.v != NULL) - has(&p, "default");
        if (extra || vg_at_n(&inner) != known)
            vg_forbidden(c, &p,
                         "must not specify anything other than name and generateName, but "
                         "metadata is implicitly specified");
    }
}

static void check_structural(struct vg_check *c, const struct vg_at *s, enum level level)
{
    struct vg_at items = vg_at(s, "items"), properties = vg_at(s, "properties");
    struct vg_at more = vg_at(s, "additionalProperties"), type = vg_at(s, "type");
    if (vg_at_is(&type, "array") && !vg_at_is_set(&items))
        vg_required(c, &items, "must be specified");
    if (vg_json_is(items.v, VG_JSON_OBJECT))
        check_structural(c, &items, AT_ITEM);
    if (properties.v)
        VG_JSON_FOREACH_MEMBER (m, properties.v) {
            struct vg_at p = vg_at_key(&properties, m);
            check_structural(c, &p, AT_FIELD);
        }
    if (more.v && level == AT_ROOT)
        vg_forbidden(c, &more, "must not be used at the root");
    if (vg_json_is(more.v, VG_JSON_OBJECT))
        check_structural(c, &more, AT_FIELD);
    static const char *const both[] = {"x-kubernetes-preserve-unknown-fields",
                                       "x-kubernetes-embedded-resource"};
    for (size_t i = 0; i < 2; i++) {
        struct vg_at at = vg_at(s, both[i]);
        if (is_true(s, "x-kubernetes-int-or-string") && vg_at_is_true(&at))
            vg_bad(c, &at, "must be false if x-kubernetes-int-or-string is true");
    }
    check_values(c, s);
    check_type(c, s, level);
    bool is_embedded = is_true(s, "x-kubernetes-embedded-resource");
    if (is_embedded && more.v)
        vg_forbidden(c, &more, "must not be used if x-kubernetes-embedded-resource is set");
    check_meta_fields(c, s, level);
    if (is_embedded && !is_true(s, both[0]) && vg_at_n(&properties) == 0)
        vg_required(c, &properties,
                    "must not be empty if x-kubernetes-embedded-resource is true without "
                    "x-kubernetes-preserve-unknown-fields");
}

static int by_text(const void *a, const void *b)
{
    const struct vg_cause *x = a, *y = b;
    int r = vg_slice_cmp(x->field, y->field);
    return r ? r : vg_slice_cmp(x->message, y->message);
}

bool vg_check_crd_structural(struct vg_check *c, const struct vg_at *schema)
{
    size_t before = c->errors->n;
    check_structural(c, schema, AT_ROOT);
    if (c->errors->n == before)
        return true;
    qsort(c->errors->v + before, c->errors->n - before, sizeof *c->errors->v, by_text);
    return false;
}
