/* pod.h - the rules of pods, and of everything that has a template of them. What is checked where
 * is said at the top of each pod*.c. Thread: one owner. */
#ifndef VG_RULES_POD_H
#define VG_RULES_POD_H

#include "check.h"

/* A template, the value of spec.template: labels, annotations, and the spec of its pods. */
void vg_check_pod_template(struct vg_check *c, const struct vg_at *at);
/* The spec of a pod. meta: the pod's metadata; NULL: of a template. */
void vg_check_pod_spec(struct vg_check *c, const struct vg_at *spec, const struct vg_json *meta);

#endif
