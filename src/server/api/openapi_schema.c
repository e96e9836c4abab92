/* openapi_schema.c - definitions: the kinds, their lists, and what all kinds have in common. */
#include <stdio.h>

#include "openapi_write.h"
#include "server/schema/schema.h"

enum member_type {
    VG_MEMBER_OBJECT,  /* of any content */
    VG_MEMBER_OBJECTS, /* a list of those */
    VG_MEMBER_STRING,
    VG_MEMBER_INTEGER,
    VG_MEMBER_BOOLEAN,
    VG_MEMBER_STRINGS,    /* a list */
    VG_MEMBER_STRING_MAP, /* also of bytes in base64 */
    VG_MEMBER_TIME,
};
struct member {
    const char *name;
    enum member_type type;
    const char *about;
};

/* A property whose type is a definition, or which kubectl merges by a key, says so beside what a
 * member says. */
struct property {
    struct member member;
    const char *ref;       /* of the value, or of the items when type is OBJECTS; NULL: none */
    const char *merge_key; /* of a list's items; "" merges plain values */
};

struct definition {
    const char *name, *about;
    const struct property *v;
    size_t n;
};

/* ---- types ---- */

static void put_type(struct vg_openapi_writer *w, const char *type)
{
    vg_openapi_put_text(w, "type", type);
}

static void put_items(struct vg_openapi_writer *w, const char *key, const char *type)
{
    vg_openapi_begin_object(w, key);
    put_type(w, type);
    vg_openapi_end_object(w);
}

static void put_member_type(struct vg_openapi_writer *w, enum member_type type)
{
    static const char *const names[] = {
        [VG_MEMBER_OBJECT] = "object",     [VG_MEMBER_OBJECTS] = "array",
        [VG_MEMBER_STRING] = "string",     [VG_MEMBER_INTEGER] = "integer",
        [VG_MEMBER_BOOLEAN] = "boolean",   [VG_MEMBER_STRINGS] = "array",
        [VG_MEMBER_STRING_MAP] = "object", [VG_MEMBER_TIME] = "string",
    };
    put_type(w, names[type]);
    if (type == VG_MEMBER_INTEGER)
        vg_openapi_put_text(w, "format", "int64");
    else if (type == VG_MEMBER_TIME)
        vg_openapi_put_text(w, "format", "date-time");
    else if (type == VG_MEMBER_OBJECTS)
        put_items(w, "items", "object");
    else if (type == VG_MEMBER_STRINGS)
        put_items(w, "items", "string");
    else if (type == VG_MEMBER_STRING_MAP)
        put_items(w, "additionalProperties", "string");
}

static void put_member(struct vg_openapi_writer *w, const struct member *m)
{
    vg_openapi_begin_object(w, m->name);
    vg_openapi_put_text(w, "description", m->about);
    put_member_type(w, m->type);
    vg_openapi_end_object(w);
}

/* 3.0 ignores what stands beside a $ref, so it wraps it. */
static void put_ref_property(struct vg_openapi_writer *w, const char *name, const char *about,
                             const char *ref)
{
    vg_openapi_begin_object(w, name);
    vg_openapi_put_text(w, "description", about);
    if (w->is_v3) {
        vg_openapi_begin_list(w, "allOf");
        vg_json_put_begin_object(&w->json);
    }
    vg_openapi_put_ref(w, ref);
    if (w->is_v3) {
        vg_openapi_end_object(w);
        vg_openapi_end_list(w);
    }
    vg_openapi_end_object(w);
}

static void put_list_property(struct vg_openapi_writer *w, const char *name, const char *about,
                              const char *ref, const char *merge_key)
{
    vg_openapi_begin_object(w, name);
    vg_openapi_put_text(w, "description", about);
    put_type(w, "array");
    vg_openapi_begin_object(w, "items");
    if (ref)
        vg_openapi_put_ref(w, ref);
    else
        put_type(w, "string");
    vg_openapi_end_object(w);
    if (merge_key) {
        if (*merge_key)
            vg_openapi_put_text(w, "x-kubernetes-patch-merge-key", merge_key);
        vg_openapi_put_text(w, "x-kubernetes-patch-strategy", "merge");
    }
    vg_openapi_end_object(w);
}

static void put_property(struct vg_openapi_writer *w, const struct property *p)
{
    bool is_list =
        p->member.type == VG_MEMBER_STRINGS || (p->ref && p->member.type == VG_MEMBER_OBJECTS);
    if (is_list)
        put_list_property(w, p->member.name, p->member.about, p->ref, p->merge_key);
    else if (p->ref)
        put_ref_property(w, p->member.name, p->member.about, p->ref);
    else
        put_member(w, &p->member);
}

/* ---- what all kinds have ---- */

#define META VG_OPENAPI_META

/* clang-format off */
#define P(name_, type_, about_) {.member = {name_, VG_MEMBER_##type_, about_}}
#define P_REF(name_, type_, ref_, about_) \
    {.member = {name_, VG_MEMBER_##type_, about_}, .ref = META ref_}
#define P_MERGED(name_, type_, ref_, key_, about_) \
    {.member = {name_, VG_MEMBER_##type_, about_}, .ref = ref_, .merge_key = key_}
#define TYPE_META \
    P("apiVersion", STRING, "Group and version of the kind."), P("kind", STRING, "The kind.")
/* clang-format on */

static const struct property object_meta[] = {
    P("annotations", STRING_MAP, "Notes for tools; not for selecting."),
    P_REF("creationTimestamp", STRING, "Time", "When it was created; set by the server."),
    P("deletionGracePeriodSeconds", INTEGER, "How long a graceful deletion may take."),
    P_REF("deletionTimestamp", STRING, "Time", "When it will be gone; set by a deletion."),
    P_MERGED("finalizers", STRINGS, NULL, "", "Who must let go before it is removed."),
    P("generateName", STRING, "The server makes a name that begins with this."),
    P("generation", INTEGER, "Counts changes of what is wanted; set by the server."),
    P("labels", STRING_MAP, "Keys and values to select by."),
    P_REF("managedFields", OBJECTS, "ManagedFieldsEntry", "Who set which fields."),
    P("name", STRING, "Unique among the kind's objects in the namespace."),
    P("namespace", STRING, "The namespace it lives in; empty for a kind of the cluster."),
    P_MERGED("ownerReferences", OBJECTS, META "OwnerReference", "uid", "Objects it depends on."),
    P("resourceVersion", STRING, "Its version, to be compared for equality only."),
    P("selfLink", STRING, "Not set any more."),
    P("uid", STRING, "Unique over all time; set by the server."),
};
static const struct property list_meta[] = {
    P("continue", STRING, "Token for the next page; empty: this is the last."),
    P("remainingItemCount", INTEGER, "How many items follow, when that is known."),
    P("resourceVersion", STRING, "The version of the list; a watch may start from it."),
    P("selfLink", STRING, "Not set any more."),
};
static const struct property owner_reference[] = {
    P("apiVersion", STRING, "Group and version of the owner."),
    P("blockOwnerDeletion", BOOLEAN, "A foreground deletion of the owner waits for this object."),
    P("controller", BOOLEAN, "The owner is the one that manages this object."),
    P("kind", STRING, "Kind of the owner."),
    P("name", STRING, "Name of the owner."),
    P("uid", STRING, "Uid of the owner."),
};
static const struct property managed_fields[] = {
    P("apiVersion", STRING, "Version of the kind that the fields are of."),
    P("fieldsType", STRING, "FieldsV1."),
    P("fieldsV1", OBJECT, "The fields, as a tree."),
    P("manager", STRING, "Who set them."),
    P("operation", STRING, "Apply or Update."),
    P("subresource", STRING, "By which subresource; empty: by none."),
    P_REF("time", STRING, "Time", "When."),
};
static const struct property delete_options[] = {
    TYPE_META,
    P("dryRun", STRINGS, "All: nothing is deleted."),
    P("gracePeriodSeconds", INTEGER, "How long the deletion may take; 0: at once."),
    P("orphanDependents", BOOLEAN, "As propagationPolicy, for older clients."),
    P("preconditions", OBJECT, "uid and resourceVersion that the object must have."),
    P("propagationPolicy", STRING, "Orphan, Background or Foreground."),
};
static const struct property status[] = {
    TYPE_META,
    P("code", INTEGER, "The HTTP status."),
    P("details", OBJECT, "Name, kind, causes and when to try again."),
    P("message", STRING, "What went wrong, for people."),
    P_REF("metadata", OBJECT, "ListMeta", "Metadata."),
    P("reason", STRING, "Why, in one word, for machines."),
    P("status", STRING, "Success or Failure."),
};

/* clang-format off */
#define DEFINITION(name_, about_, v_) \
    {.name = META name_, .about = about_, .v = v_, .n = VG_ARRAY_LEN(v_)}
/* clang-format on */
static const struct definition meta_definitions[] = {
    DEFINITION("DeleteOptions", "How to delete.", delete_options),
    DEFINITION("ListMeta", "Metadata of a list.", list_meta),
    DEFINITION("ManagedFieldsEntry", "Fields that one manager has set.", managed_fields),
    DEFINITION("ObjectMeta", "Metadata that every object has.", object_meta),
    DEFINITION("OwnerReference", "An object that another depends on.", owner_reference),
    {.name = META "Patch", .about = "A patch, of one of the types that the operation consumes."},
    DEFINITION("Status", "The outcome of a call that gives no object.", status),
};

static void put_definition(struct vg_openapi_writer *w, const struct definition *d)
{
    vg_openapi_begin_object(w, d->name);
    vg_openapi_put_text(w, "description", d->about);
    put_type(w, "object");
    if (d->n) {
        vg_openapi_begin_object(w, "properties");
        for (size_t i = 0; i < d->n; i++)
            put_property(w, &d->v[i]);
        vg_openapi_end_object(w);
    }
    vg_openapi_end_object(w);
}

void vg_openapi_put_meta_definitions(struct vg_openapi_writer *w)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(meta_definitions); i++)
        put_definition(w, &meta_definitions[i]);
    vg_openapi_begin_object(w, META "Time");
    vg_openapi_put_text(w, "description", "A time in RFC 3339.");
    put_type(w, "string");
    vg_openapi_put_text(w, "format", "date-time");
    vg_openapi_end_object(w);
}

/* ---- kinds ---- */

static enum member_type member_type(const struct vg_schema_field *f)
{
    if (f->shape == VG_SCHEMA_LIST)
        return f->value == VG_SCHEMA_STRING ? VG_MEMBER_STRINGS : VG_MEMBER_OBJECTS;
    if (f->shape == VG_SCHEMA_MAP)
        return VG_MEMBER_STRING_MAP;
    switch (f->value) {
    case VG_SCHEMA_BOOL:
        return VG_MEMBER_BOOLEAN;
    case VG_SCHEMA_INT32:
    case VG_SCHEMA_INT64:
        return VG_MEMBER_INTEGER;
    case VG_SCHEMA_TIME:
    case VG_SCHEMA_MICRO_TIME:
        return VG_MEMBER_TIME;
    case VG_SCHEMA_STRING:
        return VG_MEMBER_STRING;
    default:
        return VG_MEMBER_OBJECT;
    }
}

static void put_field(struct vg_openapi_writer *w, const struct vg_schema_field *f)
{
    struct member m = {.name = f->name, .type = member_type(f), .about = f->name};
    bool is_common = strcmp(f->name, "kind") == 0 || strcmp(f->name, "apiVersion") == 0 ||
                     strcmp(f->name, "metadata") == 0;
    if (!is_common)
        put_member(w, &m);
}

static void begin_kind(struct vg_openapi_writer *w, const struct vg_kind *kind, const char *name,
                       const char *about)
{
    char definition[VG_OPENAPI_NAME_MAX];
    vg_openapi_definition(definition, kind, name);
    vg_openapi_begin_object(w, definition);
    vg_openapi_put_text(w, "description", about);
    put_type(w, "object");
    vg_openapi_begin_object(w, "properties");
    static const struct property type_meta[] = {TYPE_META};
    for (size_t i = 0; i < VG_ARRAY_LEN(type_meta); i++)
        put_property(w, &type_meta[i]);
}

static void end_kind(struct vg_openapi_writer *w, const struct vg_kind *kind, const char *name)
{
    vg_openapi_end_object(w);
    vg_openapi_begin_list(w, "x-kubernetes-group-version-kind");
    vg_openapi_put_gvk(w, kind, name);
    vg_openapi_end_list(w);
    vg_openapi_end_object(w);
}

static void put_list(struct vg_openapi_writer *w, const struct vg_kind *kind)
{
    char item[VG_OPENAPI_NAME_MAX];
    vg_openapi_definition(item, kind, kind->kind);
    begin_kind(w, kind, kind->list_kind, "A list of these objects.");
    put_list_property(w, "items", "The objects.", item, NULL);
    put_ref_property(w, "metadata", "Metadata of the list.", META "ListMeta");
    end_kind(w, kind, kind->list_kind);
}

void vg_openapi_put_definitions(struct vg_openapi_writer *w, const struct vg_kind *kind)
{
    begin_kind(w, kind, kind->kind, kind->about);
    put_ref_property(w, "metadata", "Metadata of the object.", META "ObjectMeta");
    for (size_t i = 0; i < kind->type->n; i++)
        put_field(w, &kind->type->fields[i]);
    end_kind(w, kind, kind->kind);
    if (kind->verbs & VG_VERB_LIST)
        put_list(w, kind);
}
