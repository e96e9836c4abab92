/* rows.h - the words that the rows in *.def are written with. A row is a designated initialiser of
 * struct vg_kind; lists are literals in place, which have static storage at file scope. */
#ifndef VG_KINDS_ROWS_H
#define VG_KINDS_ROWS_H

#include "kinds.h"

/* The names of a kind, of the core group and of another. */
#define NAMES(v, plural, one, Kind)                                                                \
    .group = "", .version = v, .api_version = v, .resource = plural, .singular = one,              \
    .kind = Kind, .list_kind = Kind "List", .qualified = plural
#define GROUP_NAMES(g, v, plural, one, Kind)                                                       \
    .group = g, .version = v, .api_version = g "/" v, .resource = plural, .singular = one,         \
    .kind = Kind, .list_kind = Kind "List", .qualified = plural "." g

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})
#define SUBS(...)                                                                                  \
    .subs = (const struct vg_kind_sub[]){__VA_ARGS__},                                             \
    .n_subs = sizeof((const struct vg_kind_sub[]){__VA_ARGS__}) / sizeof(struct vg_kind_sub)

#define MEMBERS(...)                                                                               \
    .members = (const struct vg_kind_member[]){__VA_ARGS__},                                       \
    .n_members =                                                                                   \
        sizeof((const struct vg_kind_member[]){__VA_ARGS__}) / sizeof(struct vg_kind_member)
/* clang-format off */
#define OBJECT(n, a) {.name = n, .type = VG_MEMBER_OBJECT, .about = a}
#define OBJECTS(n, a) {.name = n, .type = VG_MEMBER_OBJECTS, .about = a}
#define STRING(n, a) {.name = n, .type = VG_MEMBER_STRING, .about = a}
#define INTEGER(n, a) {.name = n, .type = VG_MEMBER_INTEGER, .about = a}
#define BOOLEAN(n, a) {.name = n, .type = VG_MEMBER_BOOLEAN, .about = a}
#define STRING_MAP(n, a) {.name = n, .type = VG_MEMBER_STRING_MAP, .about = a}
#define TIME(n, a) {.name = n, .type = VG_MEMBER_TIME, .about = a}
/* clang-format on */
#define SPEC OBJECT("spec", "What is wanted.")
#define SPEC_AND_STATUS                                                                            \
    MEMBERS(SPEC, OBJECT("status", "What was found; written by whoever observes it."))

#define GET_PATCH_UPDATE (VG_VERB_GET | VG_VERB_PATCH | VG_VERB_UPDATE)
#define CREATE_GET (VG_VERB_CREATE | VG_VERB_GET)
#define PROXY_VERBS (VG_VERB_CREATE | VG_VERB_DELETE | VG_VERB_GET | VG_VERB_PATCH | VG_VERB_UPDATE)

/* Subresources; those below, many kinds have. */
/* clang-format off */
#define SUB(n, t, Kind, v) {.name = n, .type = t, .kind = Kind, .verbs = v}
#define SUB_OF(n, t, g, ver, Kind, v)                                                              \
    {.name = n, .type = t, .kind = Kind, .group = g, .version = ver, .verbs = v}
/* clang-format on */
#define STATUS(Kind) SUB("status", VG_SUB_STATUS, Kind, GET_PATCH_UPDATE)
#define SCALE SUB_OF("scale", VG_SUB_SCALE, "autoscaling", "v1", "Scale", GET_PATCH_UPDATE)

/* How replicas are found; the second is ReplicationController's. */
extern const struct vg_kind_scale vg_scale_by_selector, vg_scale_by_map;

/* What may be selected: fields.c. FIELDS(pod) for a kind with fields of its own; NO_FIELDS for one
 * with metadata.name and metadata.namespace alone. */
#define FIELDS(name) .fields = &vg_fields_##name, .labels = &vg_labels_##name
#define NO_FIELDS FIELDS(none)
#define DECLARE_FIELDS(name)                                                                       \
    extern const struct vg_obj_fields vg_fields_##name;                                            \
    extern const struct vg_field_labels vg_labels_##name
DECLARE_FIELDS(none);
DECLARE_FIELDS(pod);
DECLARE_FIELDS(node);
DECLARE_FIELDS(namespace);
DECLARE_FIELDS(secret);
DECLARE_FIELDS(service);
DECLARE_FIELDS(replicationcontroller);
DECLARE_FIELDS(event);
DECLARE_FIELDS(job);

/* The empty pod template, as bookmarks show it. */
#define EMPTY_TEMPLATE "{\"metadata\":{},\"spec\":{\"containers\":null}}"

#endif
