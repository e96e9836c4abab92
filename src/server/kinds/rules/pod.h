/* pod.h - the rules of pods, and of everything that has a template of them. What is checked where
 * is said at the top of each pod*.c. Thread: one owner. */
#ifndef VG_RULES_POD_H
#define VG_RULES_POD_H

#include "check.h"

/* A template, the value of spec.template: labels, annotations, and the spec of its pods. */
void vg_check_pod_template(struct vg_check *c, const struct vg_at *at);
/* The spec of a pod. meta: the pod's metadata; NULL: of a template. */
void vg_check_pod_spec(struct vg_check *c, const struct vg_at *spec, const struct vg_json *meta);
/* nodeSelectorTerms, as affinities and persistent volumes have them. */
void vg_check_node_selector(struct vg_check *c, const struct vg_at *at);
/* A source of a volume that persistent volumes have too, by the name of its member. */
void vg_check_volume_source(struct vg_check *c, const struct vg_at *source);

/* field is immutable: a template that must equal old's, shown as the original shows it. */
bool vg_check_immutable_template(struct vg_check *c, const struct vg_at *at,
                                 const struct vg_json *old);
/* The same of the spec of pods. */
bool vg_check_immutable_pods(struct vg_check *c, const struct vg_at *at, const struct vg_json *old);
/* What a template, or a pod, is taken with and warned of. */
void vg_warn_pod_template(struct vg_check *c, const struct vg_at *at);

/* Drop what the original drops from specs of pods, because it is not ready for general use; NULL
 * allowed. Controllers do so with the template of an object before they check it. */
void vg_pod_drop_disabled(struct vg_json *spec);
/* A pod stays for five minutes on a node that does not answer, unless it says otherwise. 0,
 * -ENOMEM. */
VG_CHECK int vg_pod_tolerate(struct vg_arena *a, struct vg_json *spec);

#endif
