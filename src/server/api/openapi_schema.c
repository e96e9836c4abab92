/* openapi_schema.c - definitions: the types of the kinds, with what clients ask of them: required
 * fields, formats, enumerations, how lists and maps are merged. By the tables of types alone. Only
 * what the kinds of a document lead to is in it. 3.0 also tells defaults. */
#include <stdio.h>

#include "openapi_write.h"
#include "server/kinds/types.h"

#define META VG_OPENAPI_META
#define EXTENSIONS "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."

/* Values that are definitions of their own; `oneof` is what 3.0 says instead of a type. */
static const struct value {
    const char *definition, *type, *format, *about;
    const char *oneof[2];
} values[] = {
    [VG_SCHEMA_QUANTITY] = {"io.k8s.apimachinery.pkg.api.resource.Quantity",
                            "string",
                            NULL,
                            "An amount with a suffix: 100m, 2Gi.",
                            {"string", "number"}},
    [VG_SCHEMA_INT_OR_STRING] = {"io.k8s.apimachinery.pkg.util.intstr.IntOrString",
                                 "string",
                                 "int-or-string",
                                 "A number, or a text that names or scales one.",
                                 {"integer", "string"}},
    [VG_SCHEMA_TIME] = {META "Time", "string", "date-time", "A time in RFC 3339.", {NULL, NULL}},
    [VG_SCHEMA_MICRO_TIME] = {META "MicroTime",
                              "string",
                              "date-time",
                              "A time in RFC 3339 with six digits after the seconds.",
                              {NULL, NULL}},
    [VG_SCHEMA_RAW] = {"io.k8s.apimachinery.pkg.runtime.RawExtension",
                       "object",
                       NULL,
                       "An object of any kind.",
                       {NULL, NULL}},
    [VG_SCHEMA_FIELDS] =
        {META "FieldsV1", "object", NULL, "A set of fields, as a tree.", {NULL, NULL}},
    [VG_SCHEMA_JSON] = {EXTENSIONS "JSON", NULL, NULL, "Any value.", {NULL, NULL}},
    [VG_SCHEMA_OR_ARRAY] = {EXTENSIONS "JSONSchemaPropsOrArray",
                            NULL,
                            NULL,
                            "A schema, or a list of them.",
                            {NULL, NULL}},
    [VG_SCHEMA_OR_BOOL] = {EXTENSIONS "JSONSchemaPropsOrBool",
                           NULL,
                           NULL,
                           "A schema, or true or false.",
                           {NULL, NULL}},
    [VG_SCHEMA_OR_STRINGS] = {EXTENSIONS "JSONSchemaPropsOrStringArray",
                              NULL,
                              NULL,
                              "A schema, or a list of names.",
                              {NULL, NULL}},
    [VG_SCHEMA_TYPE] = {NULL, NULL, NULL, NULL, {NULL, NULL}},
};

/* ---- which types ---- */

static void mark(struct vg_openapi_writer *w, const struct vg_schema_type *type)
{
    size_t n, i = (size_t)(type - vg_schema_types(&n));
    if (n > VG_OPENAPI_TYPES_MAX || w->types[i])
        return;
    w->types[i] = true;
    for (size_t k = 0; k < type->n; k++) {
        const struct vg_schema_field *f = &type->fields[k];
        w->values |= 1u << f->value;
        if (f->type)
            mark(w, f->type);
    }
}

/* What the operations of kinds with these verbs need. */
static void mark_meta(struct vg_openapi_writer *w, unsigned verbs)
{
    static const struct {
        const char *name;
        unsigned verb;
    } needs[] = {
        {"DeleteOptions", VG_VERB_DELETE}, {"ListMeta", VG_VERB_LIST}, {"Status", VG_VERB_DELETE}};
    for (size_t i = 0; i < VG_ARRAY_LEN(needs); i++)
        if (verbs & needs[i].verb)
            mark(w, vg_schema_find(VG_SLICE_LIT("meta.k8s.io"), VG_SLICE_LIT("v1"),
                                   vg_slice_str(needs[i].name)));
}

/* What bodies of subresources are: Scale, Eviction. */
static void mark_subs(struct vg_openapi_writer *w, const struct vg_kind *kind)
{
    for (size_t i = 0; i < kind->n_subs; i++) {
        struct vg_kind of = vg_openapi_sub_kind(kind, &kind->subs[i]);
        const struct vg_schema_type *type =
            vg_schema_find(vg_slice_str(of.group), vg_slice_str(of.version), vg_slice_str(of.kind));
        if (type && kind->subs[i].type != VG_SUB_CONNECT)
            mark(w, type);
    }
}

/* A body of its own that is no kind of the tables, as these are. */
static bool is_object(const struct vg_schema_type *type, const struct vg_schema_scope *home)
{
    return vg_schema_field(type, VG_SLICE_LIT("kind")) &&
           vg_schema_field(type, VG_SLICE_LIT("metadata")) &&
           strcmp(home->group, "meta.k8s.io") != 0;
}

/* ---- one value ---- */

static void put_ref_to(struct vg_openapi_writer *w, const struct vg_schema_field *f)
{
    char name[VG_OPENAPI_NAME_MAX];
    if (f->value != VG_SCHEMA_TYPE) {
        vg_openapi_put_ref(w, values[f->value].definition);
        return;
    }
    const struct vg_schema_scope *home = vg_schema_scope(f->type);
    vg_openapi_definition(name, home->group, home->version, f->type->name);
    vg_openapi_put_ref(w, name);
}

/* 3.0 ignores what stands beside a $ref, so it wraps it. */
static void put_wrapped_ref(struct vg_openapi_writer *w, const struct vg_schema_field *f)
{
    if (!w->is_v3) {
        put_ref_to(w, f);
        return;
    }
    vg_openapi_begin_list(w, "allOf");
    vg_json_put_begin_object(&w->json);
    put_ref_to(w, f);
    vg_openapi_end_object(w);
    vg_openapi_end_list(w);
}

static void put_default(struct vg_openapi_writer *w, const char *json)
{
    if (!w->is_v3)
        return;
    vg_json_put_key(&w->json, VG_SLICE_LIT("default"));
    vg_json_put_raw(&w->json, vg_slice_str(json));
}

static void put_values(struct vg_openapi_writer *w, const char *key, const char *const *v)
{
    vg_openapi_begin_list(w, key);
    for (; *v; v++)
        vg_json_put_string(&w->json, vg_slice_str(*v));
    vg_openapi_end_list(w);
}

static void put_scalar(struct vg_openapi_writer *w, const struct vg_schema_field *f)
{
    static const char *const types[][2] = {
        [VG_SCHEMA_STRING] = {"string", NULL},     [VG_SCHEMA_BOOL] = {"boolean", NULL},
        [VG_SCHEMA_INT32] = {"integer", "int32"},  [VG_SCHEMA_INT64] = {"integer", "int64"},
        [VG_SCHEMA_DOUBLE] = {"number", "double"}, [VG_SCHEMA_BYTES] = {"string", "byte"},
    };
    vg_openapi_put_text(w, "type", types[f->value][0]);
    if (types[f->value][1])
        vg_openapi_put_text(w, "format", types[f->value][1]);
    if (f->more->values)
        put_values(w, "enum", f->more->values);
}

/* What a scalar is that nobody sets; NULL: it has no such. */
static const char *zero(const struct vg_schema_field *f)
{
    switch (f->value) {
    case VG_SCHEMA_STRING:
        return "\"\"";
    case VG_SCHEMA_BOOL:
        return "false";
    case VG_SCHEMA_INT32:
    case VG_SCHEMA_INT64:
    case VG_SCHEMA_DOUBLE:
        return "0";
    case VG_SCHEMA_TYPE:
        return "{}";
    default:
        return NULL;
    }
}

static bool is_ref(const struct vg_schema_field *f)
{
    return f->value == VG_SCHEMA_TYPE ||
           (f->value < VG_ARRAY_LEN(values) && values[f->value].definition);
}

/* A field that is one value. */
static void put_one(struct vg_openapi_writer *w, const struct vg_schema_field *f)
{
    bool is_set = !vg_schema_is(f, VG_SCHEMA_POINTER) &&
                  (f->value == VG_SCHEMA_TYPE || !vg_schema_is(f, VG_SCHEMA_OMIT_EMPTY));
    const char *def = f->more->def ? f->more->def : is_set ? zero(f) : NULL;
    if (def)
        put_default(w, def);
    if (is_ref(f))
        put_wrapped_ref(w, f);
    else
        put_scalar(w, f);
}

/* What a list or map holds: members of the current object. */
static void put_item(struct vg_openapi_writer *w, const struct vg_schema_field *f)
{
    if (f->value == VG_SCHEMA_STRINGS) {
        vg_openapi_put_text(w, "type", "array");
        vg_openapi_begin_object(w, "items");
        put_default(w, "\"\"");
        vg_openapi_put_text(w, "type", "string");
        vg_openapi_end_object(w);
        return;
    }
    if (zero(f))
        put_default(w, zero(f));
    if (f->value == VG_SCHEMA_TYPE)
        put_wrapped_ref(w, f);
    else if (is_ref(f))
        put_ref_to(w, f);
    else
        put_scalar(w, f);
}

/* ---- fields ---- */

static void put_list_extensions(struct vg_openapi_writer *w, const struct vg_schema_field *f)
{
    if (f->more->list_keys) {
        put_values(w, "x-kubernetes-list-map-keys", f->more->list_keys);
        vg_openapi_put_text(w, "x-kubernetes-list-type", "map");
    } else if (vg_schema_is(f, VG_SCHEMA_LIST_SET)) {
        vg_openapi_put_text(w, "x-kubernetes-list-type", "set");
    } else if (vg_schema_is(f, VG_SCHEMA_ATOMIC)) {
        vg_openapi_put_text(w, "x-kubernetes-list-type", "atomic");
    }
}

static void put_extensions(struct vg_openapi_writer *w, const struct vg_schema_field *f)
{
    if (f->shape == VG_SCHEMA_LIST || f->value == VG_SCHEMA_BYTES)
        put_list_extensions(w, f);
    else if (vg_schema_is(f, VG_SCHEMA_ATOMIC))
        vg_openapi_put_text(w, "x-kubernetes-map-type", "atomic");
    if (vg_schema_is(f, VG_SCHEMA_GRANULAR))
        vg_openapi_put_text(w, "x-kubernetes-map-type", "granular");
    if (f->more->merge_key)
        vg_openapi_put_text(w, "x-kubernetes-patch-merge-key", f->more->merge_key);
    bool is_merged = vg_schema_is(f, VG_SCHEMA_MERGE);
    if (vg_schema_is(f, VG_SCHEMA_RETAIN_KEYS))
        vg_openapi_put_text(w, "x-kubernetes-patch-strategy",
                            is_merged ? "merge,retainKeys" : "retainKeys");
    else if (is_merged)
        vg_openapi_put_text(w, "x-kubernetes-patch-strategy", "merge");
    else if (vg_schema_is(f, VG_SCHEMA_REPLACE))
        vg_openapi_put_text(w, "x-kubernetes-patch-strategy", "replace");
}

static void put_about(struct vg_openapi_writer *w, const struct vg_schema_type *type,
                      const struct vg_schema_field *f)
{
    const char *about = vg_schema_about(type, f);
    char text[256];
    if (!about)
        return;
    snprintf(text, sizeof text, "%s%s", about,
             vg_schema_is(f, VG_SCHEMA_IMMUTABLE) ? " It cannot be changed." : "");
    vg_openapi_put_text(w, "description", text);
}

static void put_field(struct vg_openapi_writer *w, const struct vg_schema_type *type,
                      const struct vg_schema_field *f)
{
    vg_openapi_begin_object(w, f->name);
    put_about(w, type, f);
    if (f->shape == VG_SCHEMA_ONE) {
        put_one(w, f);
    } else {
        bool is_list = f->shape == VG_SCHEMA_LIST;
        vg_openapi_put_text(w, "type", is_list ? "array" : "object");
        vg_openapi_begin_object(w, is_list ? "items" : "additionalProperties");
        put_item(w, f);
        vg_openapi_end_object(w);
    }
    put_extensions(w, f);
    vg_openapi_end_object(w);
}

static void put_required(struct vg_openapi_writer *w, const struct vg_schema_type *type)
{
    bool has_some = false;
    for (size_t i = 0; i < type->n; i++) {
        if (!vg_schema_is(&type->fields[i], VG_SCHEMA_REQUIRED))
            continue;
        if (!has_some)
            vg_openapi_begin_list(w, "required");
        has_some = true;
        vg_json_put_string(&w->json, vg_slice_str(type->fields[i].name));
    }
    if (has_some)
        vg_openapi_end_list(w);
}

/* ---- definitions ---- */

static void put_gvk_list(struct vg_openapi_writer *w, const struct vg_kind *kind, const char *name)
{
    vg_openapi_begin_list(w, "x-kubernetes-group-version-kind");
    vg_openapi_put_gvk(w, kind, name);
    vg_openapi_end_list(w);
}

static void put_definition(struct vg_openapi_writer *w, const struct vg_schema_type *type)
{
    char name[VG_OPENAPI_NAME_MAX];
    const struct vg_schema_scope *home = vg_schema_scope(type);
    const struct vg_kind *kind = vg_kind_find_kind(
        vg_slice_str(home->group), vg_slice_str(home->version), vg_slice_str(type->name));
    const char *about = kind ? kind->about : vg_schema_about(type, NULL);
    vg_openapi_definition(name, home->group, home->version, type->name);
    vg_openapi_begin_object(w, name);
    if (about)
        vg_openapi_put_text(w, "description", about);
    vg_openapi_put_text(w, "type", "object");
    put_required(w, type);
    if (type->n) {
        vg_openapi_begin_object(w, "properties");
        for (size_t i = 0; i < type->n; i++)
            put_field(w, type, &type->fields[i]);
        vg_openapi_end_object(w);
    }
    if (type->is_atomic)
        vg_openapi_put_text(w, "x-kubernetes-map-type", "atomic");
    if (kind)
        put_gvk_list(w, kind, kind->kind);
    else if (is_object(type, home))
        put_gvk_list(w, &(struct vg_kind){.group = home->group, .version = home->version},
                     type->name);
    vg_openapi_end_object(w);
}

static void put_value_definition(struct vg_openapi_writer *w, const struct value *v)
{
    vg_openapi_begin_object(w, v->definition);
    vg_openapi_put_text(w, "description", v->about);
    if (w->is_v3 && v->oneof[0]) {
        vg_openapi_begin_list(w, "oneOf");
        for (size_t i = 0; i < VG_ARRAY_LEN(v->oneof); i++) {
            vg_json_put_begin_object(&w->json);
            vg_openapi_put_text(w, "type", v->oneof[i]);
            vg_openapi_end_object(w);
        }
        vg_openapi_end_list(w);
    } else if (v->type) {
        vg_openapi_put_text(w, "type", v->type);
    }
    if (v->format)
        vg_openapi_put_text(w, "format", v->format);
    vg_openapi_end_object(w);
}

static void put_text_property(struct vg_openapi_writer *w, const char *name, const char *about)
{
    vg_openapi_begin_object(w, name);
    vg_openapi_put_text(w, "description", about);
    vg_openapi_put_text(w, "type", "string");
    vg_openapi_end_object(w);
}

/* The list of a kind, which is no type of the tables. */
static void put_list(struct vg_openapi_writer *w, const struct vg_kind *kind)
{
    static const char *const required[] = {"items", NULL};
    const struct vg_schema_type *meta =
        vg_schema_find(VG_SLICE_LIT("meta.k8s.io"), VG_SLICE_LIT("v1"), VG_SLICE_LIT("ListMeta"));
    const struct vg_schema_field items = {.type = kind->type, .value = VG_SCHEMA_TYPE};
    const struct vg_schema_field metadata = {.type = meta, .value = VG_SCHEMA_TYPE};
    char name[VG_OPENAPI_NAME_MAX];
    vg_openapi_definition(name, kind->group, kind->version, kind->list_kind);
    vg_openapi_begin_object(w, name);
    vg_openapi_put_text(w, "description", "A list of these objects.");
    vg_openapi_put_text(w, "type", "object");
    put_values(w, "required", required);
    vg_openapi_begin_object(w, "properties");
    put_text_property(w, "apiVersion", "Group and version of the kind.");
    put_text_property(w, "kind", "The kind.");
    vg_openapi_begin_object(w, "items");
    vg_openapi_put_text(w, "description", "The objects.");
    vg_openapi_put_text(w, "type", "array");
    vg_openapi_begin_object(w, "items");
    put_item(w, &items);
    vg_openapi_end_object(w);
    vg_openapi_end_object(w);
    vg_openapi_begin_object(w, "metadata");
    vg_openapi_put_text(w, "description", "Metadata of the list.");
    put_item(w, &metadata);
    vg_openapi_end_object(w);
    vg_openapi_end_object(w);
    put_gvk_list(w, kind, kind->list_kind);
    vg_openapi_end_object(w);
}

void vg_openapi_put_definitions(struct vg_openapi_writer *w, const struct vg_kind *kinds, size_t n)
{
    size_t n_types;
    const struct vg_schema_type *types = vg_schema_types(&n_types);
    unsigned verbs = 0;
    for (size_t i = 0; i < n; i++) {
        verbs |= kinds[i].verbs;
        mark(w, kinds[i].type);
        mark_subs(w, &kinds[i]);
        if (kinds[i].verbs & VG_VERB_LIST)
            put_list(w, &kinds[i]);
    }
    mark_meta(w, verbs);
    for (size_t i = 0; i < n_types && i < VG_OPENAPI_TYPES_MAX; i++)
        if (w->types[i])
            put_definition(w, &types[i]);
    for (size_t i = 0; i < VG_ARRAY_LEN(values); i++)
        if (values[i].definition && w->values & 1u << i)
            put_value_definition(w, &values[i]);
    if (!(verbs & VG_VERB_PATCH))
        return;
    vg_openapi_begin_object(w, META "Patch");
    vg_openapi_put_text(w, "description",
                        "A patch, of one of the types that the operation consumes.");
    vg_openapi_put_text(w, "type", "object");
    vg_openapi_end_object(w);
}
