/* predicate.h - which objects a list or a watch is about: namespace, name, labels, fields.
 * A predicate is compiled once from a request and evaluated on headers alone: no parsing, no
 * allocation. What the field selector pins by = is known in advance, so that an index can find the
 * watchers and lists that care without asking all. Immutable once made. Thread: any number of
 * readers; the count of references is atomic. */
#ifndef VG_OBJECT_PREDICATE_H
#define VG_OBJECT_PREDICATE_H

#include "header.h"
#include "seal.h"
#include "splice.h"

struct vg_obj_predicate;

/* All slices are borrowed for the call; empty means no restriction. */
struct vg_obj_predicate_opts {
    const struct vg_obj_fields *fields; /* the kind's; must outlive the predicate */
    struct vg_slice ns, name;           /* from the URL */
    struct vg_slice label_selector;     /* as in the query */
    struct vg_slice field_selector;
};

/* One reference in *ret. -ENOMEM, VIGIL_E_INVALID or the selectors' errors with kube-apiserver's
 * sentence. */
VG_CHECK int vg_obj_predicate_new(const struct vg_obj_predicate_opts *opts,
                                  struct vg_obj_predicate **ret, struct vg_status *reterr_status);
struct vg_obj_predicate *vg_obj_predicate_ref(const struct vg_obj_predicate *p);
/* Takes NULL; returns NULL. */
struct vg_obj_predicate *vg_obj_predicate_unref(const struct vg_obj_predicate *p);

/* Does the object match? The header is of an object of the predicate's kind. */
bool vg_obj_predicate_matches(const struct vg_obj_predicate *p, const struct vg_obj_header *h);
/* Does every object match? */
bool vg_obj_predicate_is_all(const struct vg_obj_predicate *p);

/* What a watcher with this predicate is told of a change from `before` to `after`; NULL: absent. */
enum vg_obj_change vg_obj_predicate_change(const struct vg_obj_predicate *p,
                                           const struct vg_obj_header *before,
                                           const struct vg_obj_header *after);

/* What every matching object must have; false: not pinned. Valid as long as the predicate. Two
 * different pins of one thing leave the first; the predicate then matches nothing. */
bool vg_obj_predicate_namespace(const struct vg_obj_predicate *p, struct vg_slice *ret_ns);
bool vg_obj_predicate_name(const struct vg_obj_predicate *p, struct vg_slice *ret_name);
bool vg_obj_predicate_trigger(const struct vg_obj_predicate *p, struct vg_slice *ret_value);

#endif
