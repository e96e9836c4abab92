/* meta.c - metadata from and to trees; see meta.h.
 * Reading checks types as Go's decoder does and says what it says. Maps are put in order in the
 * tree that was read, which is the caller's own; so writing copies nothing. */
#include "meta.h"

#include <errno.h>
#include <stdlib.h>

#include "server/schema/gojson.h"
#include "status_int.h"

struct reader {
    struct vg_arena *arena;
    struct vg_meta *meta;
    struct vg_json *unknown;
    struct vg_status *status;
};

/* ---- reading ---- */

static int refuse(struct reader *r, const struct vg_json *v, const char *field, const char *type)
{
    return vg_fail(r->status, VIGIL_E_INVALID,
                   "json: cannot unmarshal %s into Go struct field %s of type %s",
                   vg_gojson_type(v), field, type);
}

static int read_text(struct reader *r, const struct vg_json *v, const char *field, const char *type,
                     struct vg_slice *ret)
{
    if (v->type == VG_JSON_NULL)
        return 0;
    if (v->type != VG_JSON_STRING)
        return refuse(r, v, field, type);
    *ret = vg_json_text(v);
    return 0;
}

static int read_int(struct reader *r, const struct vg_json *v, const char *field, int64_t *ret)
{
    if (v->type == VG_JSON_NULL)
        return 0;
    if (v->type != VG_JSON_NUMBER)
        return refuse(r, v, field, "int64");
    if (vg_json_to_int64(v, ret) == 0)
        return 0;
    return vg_fail(r->status, VIGIL_E_INVALID,
                   "json: cannot unmarshal number %.*s into Go struct field %s of type int64",
                   VG_SLICE_ARG(vg_json_text(v)), field);
}

static int read_time(struct reader *r, const struct vg_json *v, struct vg_slice *ret)
{
    if (v->type == VG_JSON_NULL)
        return 0;
    if (v->type != VG_JSON_STRING)
        return vg_fail(r->status, VIGIL_E_INVALID,
                       "json: cannot unmarshal %s into Go value of type string", vg_gojson_type(v));
    int64_t s;
    int err = vg_time_parse(vg_json_text(v), &s, r->status);
    if (err < 0)
        return err;
    char text[VG_TIME_TEXT_MAX];
    size_t n = vg_time_format(s * 1000, text);
    if (vg_slice_eq(vg_json_text(v), vg_slice(text, n))) {
        *ret = vg_json_text(v);
        return 0;
    }
    char *copy = vg_arena_copy(r->arena, text, n);
    *ret = vg_slice(copy, n);
    return copy ? 0 : -ENOMEM;
}

static int by_key(const void *a, const void *b)
{
    const struct vg_json_member *x = a, *y = b;
    return vg_slice_cmp(vg_json_key(x), vg_json_key(y));
}

static int read_map(struct reader *r, struct vg_json *v, const char *field, struct vg_json **ret)
{
    if (v->type == VG_JSON_NULL)
        return 0;
    if (v->type != VG_JSON_OBJECT)
        return refuse(r, v, field, "map[string]string");
    bool is_sorted = true;
    const struct vg_json_member *before = NULL;
    VG_JSON_FOREACH_MEMBER (m, v) {
        if (m->value.type == VG_JSON_NULL)
            m->value = vg_json_string_ref(VG_SLICE_LIT(""));
        if (m->value.type != VG_JSON_STRING)
            return refuse(r, &m->value, field, "string");
        is_sorted = is_sorted && (!before || by_key(before, m) < 0);
        before = m;
    }
    if (!is_sorted)
        qsort(v->members, v->n, sizeof *v->members, by_key);
    *ret = v->n ? v : NULL;
    return 0;
}

static int note_unknown(struct reader *r, const char *prefix, struct vg_slice key)
{
    if (!r->unknown || r->unknown->n >= VG_UNKNOWN_TOLD_MAX)
        return 0;
    struct vg_slice path;
    int err = vg_arena_printf(r->arena, &path, "%s%.*s", prefix, VG_SLICE_ARG(key));
    return err < 0 ? err : vg_json_array_push(r->arena, r->unknown, vg_json_string_ref(path));
}

enum { OWNER_VERSION, OWNER_KIND, OWNER_NAME, OWNER_UID, OWNER_CONTROLLER, OWNER_BLOCKS, OWNER_N };
static const struct {
    const char *name, *field, *type;
} owner_fields[OWNER_N] = {
#define OWNER(name, type)                                                                          \
    {                                                                                              \
        name, "OwnerReference.metadata.ownerReferences." name, type                                \
    }
    OWNER("apiVersion", "string"), OWNER("kind", "string"),     OWNER("name", "string"),
    OWNER("uid", "types.UID"),     OWNER("controller", "bool"), OWNER("blockOwnerDeletion", "bool"),
};

static int owner_field(struct vg_slice key)
{
    for (int i = 0; i < OWNER_N; i++)
        if (vg_slice_eq(key, vg_slice_str(owner_fields[i].name)))
            return i;
    return -1;
}

/* One owner, rewritten in order with the fields that must be there. */
static int read_owner(struct reader *r, struct vg_json *v)
{
    struct vg_json found[OWNER_N] = {0};
    if (v->type != VG_JSON_NULL && v->type != VG_JSON_OBJECT)
        return refuse(r, v, "ObjectMeta.metadata.ownerReferences", "v1.OwnerReference");
    VG_JSON_FOREACH_MEMBER (m, v) {
        int i = owner_field(vg_json_key(m));
        if (i < 0) {
            if (note_unknown(r, "metadata.ownerReferences[].", vg_json_key(m)) < 0)
                return -ENOMEM;
            continue;
        }
        enum vg_json_type want = i < OWNER_CONTROLLER ? VG_JSON_STRING : VG_JSON_BOOL;
        if (m->value.type != VG_JSON_NULL && m->value.type != (uint8_t)want)
            return refuse(r, &m->value, owner_fields[i].field, owner_fields[i].type);
        found[i] = m->value;
    }
    size_t n = OWNER_CONTROLLER;
    for (int i = OWNER_CONTROLLER; i < OWNER_N; i++)
        n += found[i].type != VG_JSON_NULL;
    struct vg_json_member *out = vg_arena_array(r->arena, struct vg_json_member, n);
    if (!out)
        return -ENOMEM;
    *v = (struct vg_json){.type = VG_JSON_OBJECT, .n = (uint32_t)n, .members = out};
    for (int i = 0; i < OWNER_N; i++) {
        if (i < OWNER_CONTROLLER && found[i].type == VG_JSON_NULL)
            found[i] = vg_json_string_ref(VG_SLICE_LIT(""));
        if (found[i].type != VG_JSON_NULL)
            *out++ = (struct vg_json_member){.key = owner_fields[i].name,
                                             .key_n = (uint32_t)strlen(owner_fields[i].name),
                                             .value = found[i]};
    }
    return 0;
}

static int read_owners(struct reader *r, struct vg_json *v)
{
    if (v->type == VG_JSON_NULL)
        return 0;
    if (v->type != VG_JSON_ARRAY)
        return refuse(r, v, "ObjectMeta.metadata.ownerReferences", "[]v1.OwnerReference");
    VG_JSON_FOREACH_ITEM (it, v) {
        int err = read_owner(r, it);
        if (err < 0)
            return err;
    }
    r->meta->owners = v->n ? v : NULL;
    return 0;
}

static int read_finalizers(struct reader *r, struct vg_json *v)
{
    static const char field[] = "ObjectMeta.metadata.finalizers";
    if (v->type == VG_JSON_NULL)
        return 0;
    if (v->type != VG_JSON_ARRAY)
        return refuse(r, v, field, "[]string");
    VG_JSON_FOREACH_ITEM (it, v) {
        if (it->type == VG_JSON_NULL)
            *it = vg_json_string_ref(VG_SLICE_LIT(""));
        if (it->type != VG_JSON_STRING)
            return refuse(r, it, field, "string");
    }
    r->meta->finalizers = v->n ? v : NULL;
    return 0;
}

static int read_grace(struct reader *r, const struct vg_json *v)
{
    r->meta->has_grace = v->type != VG_JSON_NULL;
    return read_int(r, v, "ObjectMeta.metadata.deletionGracePeriodSeconds", &r->meta->grace_s);
}

static int read_managed(struct reader *r, const struct vg_json *v)
{
    if (v->type == VG_JSON_NULL)
        return 0;
    if (v->type != VG_JSON_ARRAY)
        return refuse(r, v, "ObjectMeta.metadata.managedFields", "[]v1.ManagedFieldsEntry");
    r->meta->managed = vg_arena_new(r->arena, struct vg_json);
    if (!r->meta->managed)
        return -ENOMEM;
    *r->meta->managed = *v;
    return 0;
}

/* ObjectMeta's fields in the order in which they are printed. */
enum field {
    F_NAME,
    F_GENERATE_NAME,
    F_NAMESPACE,
    F_SELF_LINK,
    F_UID,
    F_REV,
    F_GENERATION,
    F_CREATED,
    F_DELETED,
    F_GRACE,
    F_LABELS,
    F_ANNOTATIONS,
    F_OWNERS,
    F_FINALIZERS,
    F_MANAGED,
    F_N
};
static const struct vg_slice field_names[F_N] = {
    [F_NAME] = {"name", 4},
    [F_GENERATE_NAME] = {"generateName", 12},
    [F_NAMESPACE] = {"namespace", 9},
    [F_SELF_LINK] = {"selfLink", 8},
    [F_UID] = {"uid", 3},
    [F_REV] = {"resourceVersion", 15},
    [F_GENERATION] = {"generation", 10},
    [F_CREATED] = {"creationTimestamp", 17},
    [F_DELETED] = {"deletionTimestamp", 17},
    [F_GRACE] = {"deletionGracePeriodSeconds", 26},
    [F_LABELS] = {"labels", 6},
    [F_ANNOTATIONS] = {"annotations", 11},
    [F_OWNERS] = {"ownerReferences", 15},
    [F_FINALIZERS] = {"finalizers", 10},
    [F_MANAGED] = {"managedFields", 13},
};

static enum field field_of(struct vg_slice key)
{
    int i = 0;
    while (i < F_N && !vg_slice_eq(key, field_names[i]))
        i++;
    return (enum field)i;
}

static int read_field(struct reader *r, struct vg_json_member *m)
{
    struct vg_meta *meta = r->meta;
    struct vg_json *v = &m->value;
    struct vg_slice ignored;
    switch (field_of(vg_json_key(m))) {
    case F_NAME:
        return read_text(r, v, "ObjectMeta.metadata.name", "string", &meta->name);
    case F_GENERATE_NAME:
        return read_text(r, v, "ObjectMeta.metadata.generateName", "string", &meta->generate_name);
    case F_NAMESPACE:
        return read_text(r, v, "ObjectMeta.metadata.namespace", "string", &meta->ns);
    case F_SELF_LINK:
        return read_text(r, v, "ObjectMeta.metadata.selfLink", "string", &ignored);
    case F_UID:
        return read_text(r, v, "ObjectMeta.metadata.uid", "types.UID", &meta->uid);
    case F_REV:
        return read_text(r, v, "ObjectMeta.metadata.resourceVersion", "string", &meta->rev);
    case F_GENERATION:
        return read_int(r, v, "ObjectMeta.metadata.generation", &meta->generation);
    case F_CREATED:
        return read_time(r, v, &meta->created);
    case F_DELETED:
        return read_time(r, v, &meta->deleted);
    case F_GRACE:
        return read_grace(r, v);
    case F_LABELS:
        return read_map(r, v, "ObjectMeta.metadata.labels", &meta->labels);
    case F_ANNOTATIONS:
        return read_map(r, v, "ObjectMeta.metadata.annotations", &meta->annotations);
    case F_OWNERS:
        return read_owners(r, v);
    case F_FINALIZERS:
        return read_finalizers(r, v);
    case F_MANAGED:
        return read_managed(r, v);
    case F_N:
        break;
    }
    return note_unknown(r, "metadata.", vg_json_key(m));
}

int vg_meta_read(struct vg_arena *a, const struct vg_json *metadata, const char *kind,
                 struct vg_meta *ret, struct vg_json *unknown, struct vg_status *reterr_status)
{
    *ret = (struct vg_meta){0};
    struct reader r = {.arena = a, .meta = ret, .unknown = unknown, .status = reterr_status};
    if (!metadata || metadata->type == VG_JSON_NULL)
        return 0;
    if (metadata->type != VG_JSON_OBJECT)
        return vg_fail(reterr_status, VIGIL_E_INVALID,
                       "json: cannot unmarshal %s into Go struct field %s.metadata of type "
                       "v1.ObjectMeta",
                       vg_gojson_type(metadata), kind);
    VG_JSON_FOREACH_MEMBER (m, metadata) {
        int err = read_field(&r, m);
        if (err < 0)
            return err;
    }
    return 0;
}

/* ---- writing ---- */

static int add_text(struct vg_arena *a, struct vg_json *out, enum field f, struct vg_slice s)
{
    return s.n ? vg_json_object_add(a, out, field_names[f], vg_json_string_ref(s)) : 0;
}

static int add_node(struct vg_arena *a, struct vg_json *out, enum field f, const struct vg_json *v)
{
    return v && v->n ? vg_json_object_add(a, out, field_names[f], *v) : 0;
}

static int add_int(struct vg_arena *a, struct vg_json *out, enum field f, int64_t i)
{
    struct vg_json v;
    int err = vg_json_make_int(a, i, &v);
    return err < 0 ? err : vg_json_object_add(a, out, field_names[f], v);
}

int vg_meta_write(struct vg_arena *a, const struct vg_meta *m, struct vg_json *ret)
{
    struct vg_json out = vg_json_object();
    int err = add_text(a, &out, F_NAME, m->name);
    if (err == 0)
        err = add_text(a, &out, F_GENERATE_NAME, m->generate_name);
    if (err == 0)
        err = add_text(a, &out, F_NAMESPACE, m->ns);
    if (err == 0)
        err = add_text(a, &out, F_UID, m->uid);
    if (err == 0 && m->generation)
        err = add_int(a, &out, F_GENERATION, m->generation);
    if (err == 0)
        err = add_text(a, &out, F_CREATED, m->created);
    if (err == 0)
        err = add_text(a, &out, F_DELETED, m->deleted);
    if (err == 0 && m->has_grace)
        err = add_int(a, &out, F_GRACE, m->grace_s);
    if (err == 0)
        err = add_node(a, &out, F_LABELS, m->labels);
    if (err == 0)
        err = add_node(a, &out, F_ANNOTATIONS, m->annotations);
    if (err == 0)
        err = add_node(a, &out, F_OWNERS, m->owners);
    if (err == 0)
        err = add_node(a, &out, F_FINALIZERS, m->finalizers);
    if (err == 0)
        err = add_node(a, &out, F_MANAGED, m->managed);
    if (err == 0)
        *ret = out;
    return err;
}
