/* kinds.h - the table of kinds: what is served, under which names, by which rules (design D9).
 * A kind is a row; no code elsewhere knows the word "pod". The table is constant. A row's index is
 * the number of its kind in the cacher. Rows are written in the notation of schema/, which
 * tools/schema turns into this table; adding a kind is docs/kinds.md's.
 * Invariants, checked by tools/schema and kinds_test.c:
 *   K1 rows are sorted by group, version and resource, bytewise; no two are equal.
 *   K2 prefixes of stored kinds are unique, none is a prefix of another, each ends with '/'.
 *   K3 labels and fields agree: a label's index is that of the field it names.
 * Thread: any. */
#ifndef VG_KINDS_KINDS_H
#define VG_KINDS_KINDS_H

#include "columns.h"
#include "object/field_selector.h"
#include "object/seal.h"

struct vg_conversion;
struct vg_merge_schema;
struct vg_schema_type;

/* Verbs, as bits; discovery lists them sorted by name. */
enum vg_verb {
    VG_VERB_CREATE = 1,
    VG_VERB_DELETE = 2,
    VG_VERB_DELETECOLLECTION = 4,
    VG_VERB_GET = 8,
    VG_VERB_LIST = 16,
    VG_VERB_PATCH = 32,
    VG_VERB_UPDATE = 64,
    VG_VERB_WATCH = 128,
};
#define VG_VERBS_ALL 255u
const char *vg_verb_name(enum vg_verb verb); /* "deletecollection" */

enum vg_kind_flag {
    VG_KIND_NAMESPACED = 1,
    VG_KIND_UNCACHED = 2,               /* always served from storage: events */
    VG_KIND_CREATE_ON_UPDATE = 4,       /* PUT of an absent name creates it */
    VG_KIND_UPDATE_NEEDS_REV = 8,       /* PUT without resourceVersion is 422 */
    VG_KIND_DELETE_ANSWERS_OBJECT = 16, /* else a Status */
    VG_KIND_GRACEFUL = 32,              /* a delete has a grace period: pods */
    VG_KIND_HAS_STATUS = 64,            /* main writes keep status, /status keeps the rest */
    VG_KIND_HAS_GENERATION = 128,       /* 1 at create, +1 with each change of spec */
    VG_KIND_ORPHANS_BY_DEFAULT = 256,   /* delete without a policy adds finalizer "orphan": jobs */
    VG_KIND_GENERATION_BY_ANNOTATIONS = 512, /* deployments: annotations count as spec */
    VG_KIND_GENERATION_BY_LABELS = 32768,    /* endpoint slices */
    VG_KIND_FINALIZED_BY_SPEC = 1024,        /* namespaces: spec.finalizers and /finalize */
    VG_KIND_NOT_STORED = 2048,        /* called, not stored: bindings at the top level, reviews */
    VG_KIND_NAME_IN_BYTES = 4096,     /* a name that is too long is told in bytes, not characters */
    VG_KIND_HAS_STRING_DATA = 16384,  /* secrets: stringData is written into data, in base64 */
    VG_KIND_UPDATE_CHECKS_ALL = 8192, /* an update is checked like a create too: causes repeat */
};

/* How metadata.name is checked. */
enum vg_kind_name_rule {
    VG_NAME_SUBDOMAIN, /* most */
    VG_NAME_LABEL,     /* RFC 1123: namespaces, services, stateful sets */
    VG_NAME_LABEL_1035,
    VG_NAME_PATH_SEGMENT, /* RBAC, events */
    VG_NAME_ANY,          /* the kind's own rules say all: addresses */
};

enum vg_sub_type {
    VG_SUB_NONE, /* the object itself */
    VG_SUB_STATUS,
    VG_SUB_SCALE,
    VG_SUB_BINDING,
    VG_SUB_FINALIZE,
    VG_SUB_EVICTION,
    VG_SUB_PART,    /* another part of the object, which its rules know (rules.h) */
    VG_SUB_TOKEN,   /* of a service account */
    VG_SUB_CONNECT, /* goes on to a node: log, exec, proxy */
};

struct vg_kind_sub {
    const char *name; /* "status" */
    enum vg_sub_type type;
    const char *kind;            /* of its body: "Pod", "Scale", "Binding" */
    const char *group, *version; /* of that kind when they are not the parent's; else NULL */
    unsigned verbs;
};

/* Where a scale subresource finds its numbers: paths without the leading dot, by '.'. */
struct vg_kind_scale {
    const char *spec_replicas, *status_replicas, *selector;
    bool selector_is_map; /* ReplicationController: a plain map; else a LabelSelector */
};

struct vg_kind {
    /* Another version of a kind that is stored as that one (convert.h); NULL: it is stored as it
     * is. Prefix, fields and flags are those of the stored one. */
    const struct vg_kind *stored;
    const struct vg_conversion *conversion;
    const char *group, *version; /* group "" is core */
    const char *api_version;     /* "v1", "apps/v1" */
    const char *resource, *singular, *kind, *list_kind;
    const char *qualified;               /* "pods", "deployments.apps" */
    const struct vg_schema_type *type;   /* of its objects */
    const struct vg_merge_schema *merge; /* which of their lists strategic merge joins */
    const char *const *short_names;      /* each list ends with NULL; NULL: none */
    const char *const *categories;
    unsigned verbs;
    unsigned flags; /* enum vg_kind_flag */
    enum vg_kind_name_rule name_rule;
    unsigned name_max; /* shorter than the rule's own limit (cron jobs: 52); 0: that limit */
    const struct vg_kind_sub *subs;
    size_t n_subs;
    const struct vg_kind_scale *scale; /* NULL: none */
    const char *about;                 /* what it is, in a sentence */
    const struct vg_obj_fields *fields;
    const struct vg_field_labels *labels; /* how field selectors name them, and refuse */
    const char *prefix;                   /* of its keys: "/registry/pods/" */
    const char *bookmark_tail;            /* after metadata: ",\"spec\":{\"containers\":null}..." */
    const char *storage_hash;             /* storageVersionHash of discovery */
    uint64_t ttl_s;                       /* events: 3600; 0 = for ever */
    /* With VG_KIND_HAS_STATUS: what status becomes at create, as JSON ("{}", {"phase":"Pending"});
     * NULL: as the client gave it (nodes). */
    const char *new_status;
    const char *deprecation; /* text of a Warning header for every request; NULL: none */
    /* With VG_KIND_ORPHANS_BY_DEFAULT: Warning when a delete says no policy; NULL: none. */
    const char *orphan_warning;
    const char *finalizer;   /* that every new object gets, behind its own; NULL: none */
    const char *const *spec; /* members whose change makes a generation, ends with NULL; or NULL */
    struct vg_columns columns; /* what a table shows (columns.h); of the stored kind */
};

const struct vg_kind *vg_kinds(size_t *ret_n);
/* The rows of one group and version, which lie together; NULL: there are none. */
const struct vg_kind *vg_kinds_of(struct vg_slice group, struct vg_slice version, size_t *ret_n);
/* NULL: not served. */
const struct vg_kind *vg_kind_find(struct vg_slice group, struct vg_slice version,
                                   struct vg_slice resource);
const struct vg_kind *vg_kind_find_kind(struct vg_slice group, struct vg_slice version,
                                        struct vg_slice kind);
/* What it is stored as. */
static inline const struct vg_kind *vg_kind_stored(const struct vg_kind *kind)
{
    return kind->stored ? kind->stored : kind;
}
/* Of what it is stored as. */
size_t vg_kind_index(const struct vg_kind *kind);
const struct vg_kind_sub *vg_kind_sub(const struct vg_kind *kind, struct vg_slice name);
static inline bool vg_kind_is(const struct vg_kind *kind, enum vg_kind_flag flag)
{
    return kind->flags & (unsigned)flag;
}
/* "v1", "apps/v1": static. */
const char *vg_kind_api_version(const struct vg_kind *kind);
/* "pods", "deployments.apps", as messages name a resource: static. */
const char *vg_kind_qualified(const struct vg_kind *kind);

/* The groups that are served, in the order of discovery; the core group is not among them. */
struct vg_group {
    const char *name;
    const char *const *versions; /* best first, ends with NULL */
};
const struct vg_group *vg_groups(size_t *ret_n);
const struct vg_group *vg_group_find(struct vg_slice name); /* also "" = core; NULL: none */

#endif
