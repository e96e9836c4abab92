/* predicate.h - which objects a list or a watch is about: namespace, name, labels, fields.
 * A predicate is compiled once from a request and evaluated on headers alone: no parsing, no
 * allocation. What the field selector pins by = is known in advance, so that an index can find the
 * watchers and lists that care without asking all. Immutable once made. Thread: any number of
 * readers; the count of references is atomic. */
#ifndef VG_OBJECT_PREDICATE_H
#define VG_OBJECT_PREDICATE_H

#include "field_selector.h"
#include "header.h"
#include "label_selector.h"
#include "seal.h"
#include "splice.h"

struct vg_obj_predicate;

/* How a resolved field selector names what every kind has; its other indexes are those of the
 * kind's struct vg_obj_fields. */
#define VG_OBJ_FIELD_NAME (UINT32_MAX - 1)
#define VG_OBJ_FIELD_NAMESPACE (UINT32_MAX - 2)

struct vg_obj_predicate_opts {
    const struct vg_obj_fields *fields; /* the kind's */
    struct vg_slice ns, name;           /* from the URL, borrowed; empty means any */
    /* Consumed, also by a failing call; NULL means any. Terms of the field selector that are not
     * resolved yet are looked up among `fields`, metadata.name and metadata.namespace; who wants
     * aliases and kube-apiserver's words for a kind resolves before. */
    const struct vg_label_selector *take_labels;
    const struct vg_field_selector *take_fields;
};

/* One reference in *ret. VIGIL_E_INVALID: the kind has no such field; -ENOMEM. */
VG_CHECK int vg_obj_predicate_new(const struct vg_obj_predicate_opts *opts,
                                  struct vg_obj_predicate **ret, struct vg_status *reterr_status);
struct vg_obj_predicate *vg_obj_predicate_ref(const struct vg_obj_predicate *p);
/* Takes NULL; returns NULL. */
struct vg_obj_predicate *vg_obj_predicate_unref(const struct vg_obj_predicate *p);

/* Does the object match? The header is of an object of the predicate's kind. */
bool vg_obj_predicate_matches(const struct vg_obj_predicate *p, const struct vg_obj_header *h);
/* Does every object match? */
bool vg_obj_predicate_is_all(const struct vg_obj_predicate *p);
/* Does every object match that has the pinned trigger value? False also when none is pinned. */
bool vg_obj_predicate_is_trigger(const struct vg_obj_predicate *p);

/* What a watcher with this predicate is told of a change from `before` to `after`; NULL: absent. */
enum vg_obj_change vg_obj_predicate_change(const struct vg_obj_predicate *p,
                                           const struct vg_obj_header *before,
                                           const struct vg_obj_header *after);

/* Borrowed; everything when there is none. */
const struct vg_label_selector *vg_obj_predicate_labels(const struct vg_obj_predicate *p);
const struct vg_field_selector *vg_obj_predicate_fields(const struct vg_obj_predicate *p);
/* Bytes held, for accounting. */
size_t vg_obj_predicate_size(const struct vg_obj_predicate *p);

/* What every matching object must have; false: not pinned. Valid as long as the predicate. Of two
 * pins of one thing the URL's counts, then the first in the selector; if they differ, nothing
 * matches. A pin may be the empty text: pods that are not scheduled. */
bool vg_obj_predicate_namespace(const struct vg_obj_predicate *p, struct vg_slice *ret_ns);
bool vg_obj_predicate_name(const struct vg_obj_predicate *p, struct vg_slice *ret_name);
bool vg_obj_predicate_trigger(const struct vg_obj_predicate *p, struct vg_slice *ret_value);

#endif
