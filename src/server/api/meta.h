/* meta.h - metadata of objects: read with types, stamped, checked, written in one order.
 * A body's metadata is read once into a struct of slices and tree nodes, so that stamping and
 * checking need no second look; what is written back is the metadata that kube-apiserver would
 * print: known fields in its order, empty ones left out, labels and annotations sorted.
 * Messages are kube-apiserver's. Everything lives in the arena that was given, or in the tree that
 * was read. Thread: one owner. */
#ifndef VG_API_META_H
#define VG_API_META_H

#include "server/schema/gotime.h"
#include "status.h"
#include "json/json.h"

struct vg_meta {
    struct vg_slice name, generate_name, ns, uid;
    struct vg_slice rev; /* resourceVersion as given; empty: none */
    int64_t generation;
    /* RFC 3339 in seconds and UTC, as printed; empty: none. */
    struct vg_slice created, deleted;
    int64_t grace_s; /* deletionGracePeriodSeconds */
    bool has_grace;
    /* NULL: none. Labels and annotations are objects of strings, finalizers an array of strings,
     * owners an array of objects, each member by its known name. */
    struct vg_json *labels, *annotations, *owners, *finalizers;
    /* Entries of managedFields, in the arena; NULL: none were given. Empty asks to forget them. */
    struct vg_json *managed;
};

/* Unknown fields that are told of one body, as many as the original keeps. */
#define VG_UNKNOWN_TOLD_MAX 100u

/* Read `metadata` (NULL or null: empty). `kind` names the type in messages: "ConfigMap". What is
 * not known is dropped; its path goes to `unknown` when that is not NULL: an array, in order.
 * 0; VIGIL_E_INVALID with Go's sentence about the field; -ENOMEM. */
VG_CHECK int vg_meta_read(struct vg_arena *a, const struct vg_json *metadata, const char *kind,
                          struct vg_meta *ret, struct vg_json *unknown,
                          struct vg_status *reterr_status);
/* As a tree, without resourceVersion. 0, -ENOMEM. */
VG_CHECK int vg_meta_write(struct vg_arena *a, const struct vg_meta *m, struct vg_json *ret);

/* ---- checks ---- */

/* As ValidateObjectMeta does, with the kind's rule for names; `by_path`: with the one that holds
 * for every kind, that a name fits into a URL. */
/* obj: the whole object, for kinds whose names follow from it; NULL: not told. */
void vg_meta_check(struct vg_field_errors *e, const struct vg_meta *m, const struct vg_kind *kind,
                   const struct vg_json *obj, bool by_path);
/* What the kinds' own checks add: finalizers are standard ones or qualified. */
void vg_meta_check_finalizers(struct vg_field_errors *e, const struct vg_meta *m,
                              const struct vg_kind *kind);
/* The finalizers of a namespace's spec. NULL: none. */
void vg_meta_check_spec_finalizers(struct vg_field_errors *e, const struct vg_json *finalizers);
/* As ValidateObjectMetaUpdate does. */
void vg_meta_check_update(struct vg_field_errors *e, const struct vg_meta *m,
                          const struct vg_meta *old);

/* ---- small ones ---- */

bool vg_meta_has_finalizer(const struct vg_meta *m, const char *name);
/* Owners that are given twice are dropped; the uids that were, joined by ", ", else empty. */
VG_CHECK int vg_meta_dedup_owners(struct vg_arena *a, struct vg_meta *m, struct vg_slice *ret_uids);
/* Text in the arena between quotes as Go's %q has it; a constant when memory is short. */
struct vg_slice vg_api_quote(struct vg_arena *a, struct vg_slice s);
/* A tree as compact JSON text in the arena; likewise. */
struct vg_slice vg_api_json(struct vg_arena *a, const struct vg_json *v);

#endif
