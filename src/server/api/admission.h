/* admission.h - what a cluster sets in objects and refuses beyond the rules of their kinds:
 * plugins, as kube-apiserver calls them, each with its name and switch.
 *
 *   body --> managers --> vg_admission_set --> prepare, check --> vg_admission_check -->
 * transaction
 *
 * What they go by (priority classes, limit ranges, quotas, default classes) is looked up in the
 * watch cache. Invariants:
 *   A1 a create goes by every such object that this server acknowledged before it: vg_admit_start
 *      waits for the cache.
 *   A2 where there are none, nothing is looked at but numbers of the cache.
 * Thread: the call's loop. */
#ifndef VG_API_ADMISSION_H
#define VG_API_ADMISSION_H

#include <stdatomic.h>

#include "write.h"

enum vg_plugin {
    VG_PLUGIN_LIMIT_RANGER,
    VG_PLUGIN_SERVICE_ACCOUNT,
    VG_PLUGIN_TAINT_NODES,
    VG_PLUGIN_PRIORITY,
    VG_PLUGIN_STORAGE_CLASS,
    VG_PLUGIN_RUNTIME_CLASS,
    VG_PLUGIN_INGRESS_CLASS,
    VG_PLUGIN_QUOTA,
    VG_PLUGINS
};
/* By two lists of names as kube-apiserver takes them; NULL: none. VIGIL_E_INVALID with a sentence.
 */
VG_CHECK int vg_admission_parse(const char *enable, const char *disable, unsigned *ret_set,
                                struct vg_status *reterr_status);

struct vg_admission {
    unsigned set; /* a bit for each of enum vg_plugin */
    const struct vg_kind *pods, *claims, *nodes, *ingresses;
    const struct vg_kind *priority_classes, *limit_ranges, *quotas, *storage_classes,
        *ingress_classes, *runtime_classes, *accounts;
    _Atomic uint64_t rev; /* of our last write of one of the latter */
};
void vg_admission_init(struct vg_admission *ad, unsigned set);
static inline bool vg_admission_has(const struct vg_admission *ad, enum vg_plugin p)
{
    return ad->set & (1u << p);
}
/* Something was written: is it what they go by? */
void vg_admission_note(struct vg_admission *ad, const struct vg_kind *kind, vg_rev rev);

/* Set what plugins set. root: its members are its own; m: what metadata will be; old: NULL at a
 * create. 0; -ENOMEM; VIGIL_E_FORBIDDEN with c->status. */
VG_CHECK int vg_admission_set(struct vg_change *c, struct vg_json *root,
                              const struct vg_body *given, const struct vg_body *old,
                              struct vg_meta *m);
/* Is the object, finished and checked, let in? What it counts towards quotas becomes part of the
 * change. PUT, or FAIL with the status. */
enum vg_verdict vg_admission_check(struct vg_change *c, const struct vg_json *root,
                                   const struct vg_json *old);

/* ---- for the plugins ---- */

/* 403 in the words of the plugin; name: as it is known by now. VIGIL_E_FORBIDDEN. */
int vg_admission_refuse(struct vg_change *c, struct vg_slice name, const char *fmt, ...)
    VG_PRINTF(3, 4);
/* Objects of a kind in a namespace, or of one without namespaces, by name. */
struct vg_admission_walk {
    struct vg_cache_snapshot snap;
    struct vg_cursor cursor;
    struct vg_obj_key prefix;
};
/* False: there are none, and the walk need not be ended. */
bool vg_admission_walk(struct vg_admission_walk *w, struct vg_cacher *cacher,
                       const struct vg_kind *kind, struct vg_slice ns);
const struct vg_rec *vg_admission_next(struct vg_admission_walk *w); /* NULL: the end */
void vg_admission_walk_end(struct vg_admission_walk *w);
/* A stored object as a tree in the change's scratch, which borrows from the record. 0, -ENOMEM,
 * VIGIL_E_STORE_DAMAGED. */
VG_CHECK int vg_admission_read(struct vg_change *c, const struct vg_rec *rec, struct vg_json **ret);
/* A clone keeps the places of its text, which is not ours: no more. -ENOMEM. */
VG_CHECK int vg_admission_forget_source(struct vg_json *v);
/* The object of that name, with a reference; NULL: there is none. */
struct vg_rec *vg_admission_get(struct vg_change *c, const struct vg_kind *kind, struct vg_slice ns,
                                struct vg_slice name);

VG_CHECK int vg_priority_set(struct vg_change *c, struct vg_json *root, const struct vg_json *old,
                             struct vg_slice name);
VG_CHECK int vg_priority_check(struct vg_change *c, const struct vg_json *root,
                               const struct vg_json *old);
VG_CHECK int vg_limits_set(struct vg_change *c, struct vg_json *root, struct vg_meta *m);
VG_CHECK int vg_limits_check(struct vg_change *c, const struct vg_json *root);
VG_CHECK int vg_account_set(struct vg_change *c, struct vg_json *root, const struct vg_meta *m,
                            struct vg_slice name);
/* The default class of a kind, by its annotation; in scratch; empty: there is none. */
VG_CHECK int vg_storage_class_set(struct vg_change *c, struct vg_json *root,
                                  const struct vg_meta *m);
VG_CHECK int vg_ingress_class_set(struct vg_change *c, struct vg_json *root,
                                  const struct vg_meta *m);
VG_CHECK int vg_runtime_class_set(struct vg_change *c, struct vg_json *root, struct vg_slice name);
VG_CHECK int vg_runtime_class_check(struct vg_change *c, const struct vg_json *root);
VG_CHECK int vg_taint_set(struct vg_change *c, struct vg_json *root);
/* What the object uses goes onto the quotas of its namespace, as operations of the change. 0;
 * VIGIL_E_FORBIDDEN: there is not so much left. */
VG_CHECK int vg_quota_charge(struct vg_change *c, const struct vg_json *root,
                             const struct vg_json *old);
/* An operation on a quota did not find what it expected: the next try goes by what is there. False:
 * that was often enough. */
bool vg_quota_moved(struct vg_change *c, const struct vg_op *op);
void vg_quota_forget(struct vg_change *c);

#endif
