/* autoscaler_metrics.h - metrics of autoscalers in both versions; see convert_autoscaler.c.
 * Functions that make something answer 0 or -ENOMEM. Thread: inputs are read only; the arena has
 * one owner. */
#ifndef VG_KINDS_AUTOSCALER_METRICS_H
#define VG_KINDS_AUTOSCALER_METRICS_H

#include "json/json.h"

/* What is not there has no members and no items. */
static inline const struct vg_json *vg_autoscaler_some(const struct vg_json *v)
{
    static const struct vg_json none = {.type = VG_JSON_NULL};
    return v ? v : &none;
}

static inline int vg_autoscaler_set(struct vg_arena *a, struct vg_json *v, const char *key,
                                    struct vg_json value)
{
    return vg_json_object_set(a, v, vg_slice_str(key), value);
}

/* A list of metrics, or of their status, from v2 to v1 or the other way. */
VG_CHECK int vg_autoscaler_metrics(struct vg_arena *a, bool is_status, bool is_v2,
                                   const struct vg_json *list, struct vg_json *ret);
/* v1 does not say what a target is meant to be: it follows from what is set. */
VG_CHECK int vg_autoscaler_set_target_type(struct vg_arena *a, struct vg_json *metric);
/* A metric of v2: the CPU, as a resource? */
bool vg_autoscaler_is_cpu(const struct vg_json *metric);
/* {"type":"Resource","resource":{"name":"cpu", where: {"averageUtilization": n}}} in a list. */
VG_CHECK int vg_autoscaler_put_cpu(struct vg_arena *a, struct vg_json *list, const char *where,
                                   const struct vg_json *n, const char *type);

#endif
