/* crd.h - what the files of custom resource definitions share. Thread: any. */
#ifndef VG_RULES_CRD_H
#define VG_RULES_CRD_H

#include "check.h"

/* A version's schema, at the place where the original blames it: {"openAPIV3Schema": ...}. */
void vg_check_crd_schema(struct vg_check *c, const struct vg_at *at, bool has_status);
/* Is it structural? What is wrong is told in the order of fields. */
bool vg_check_crd_structural(struct vg_check *c, const struct vg_at *schema);
/* Default values below a schema. */
void vg_check_crd_defaults(struct vg_check *c, const struct vg_at *s);
/* What versions have beside a schema; that of selectable fields is given. */
void vg_check_crd_subresources(struct vg_check *c, const struct vg_at *at);
void vg_check_crd_column(struct vg_check *c, const struct vg_at *at);
void vg_check_crd_selectable(struct vg_check *c, const struct vg_at *list,
                             const struct vg_json *schema);
void vg_check_crd_deprecation(struct vg_check *c, const struct vg_at *version);
/* The schema of the field that a path like .spec.color names. NULL with *ret NULL when its schema
 * is not known; a reason in the original's words when there is none. Each property that it is held
 * against is one of *steps (NULL: any number); without enough of them nothing is known. */
const char *vg_crd_field(const struct vg_json *schema, struct vg_slice path, uint64_t *steps,
                         const struct vg_json **ret);

/* x-kubernetes-validations: a first look at what they say (cel.h). */
void vg_check_crd_expressions(struct vg_check *c, const struct vg_at *rules);

#endif
