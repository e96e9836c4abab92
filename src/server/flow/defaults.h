/* defaults.h - the objects of API priority and fairness that every cluster has. Constants. */
#ifndef VG_SERVER_FLOW_DEFAULTS_H
#define VG_SERVER_FLOW_DEFAULTS_H

#include "base/slice.h"

struct vg_flow_default {
    const char *name; /* NULL: the end of the table */
    /* kube-apiserver puts a changed spec of a mandatory object right, whatever its annotation says.
     * Classification works as if a mandatory object existed while it does not. */
    bool is_mandatory;
    const char *spec; /* JSON with every default filled in */
};
extern const struct vg_flow_default vg_flow_default_levels[], vg_flow_default_schemas[];

/* NULL: no object of that name is among the defaults. */
const struct vg_flow_default *vg_flow_default_find(const struct vg_flow_default *table,
                                                   struct vg_slice name);

/* "true": kube-apiserver keeps the spec up to date; "false": the user's spec stays. */
#define VG_FLOW_AUTOUPDATE "apf.kubernetes.io/autoupdate-spec"

#endif
