/* defaults.h - functions of types that set what was not given and depends on other fields. The
 * notation names them: `type PodSpec defaults(pod_spec)` is vg_default_pod_spec. Thread: one owner.
 */
#ifndef VG_RULES_DEFAULTS_H
#define VG_RULES_DEFAULTS_H

#include "server/schema/default.h"

/* core (defaults_core.c, defaults_pod.c) */
vg_schema_default_fn vg_default_container, vg_default_limit_range_item, vg_default_node_spec,
    vg_default_node_status, vg_default_persistent_volume, vg_default_persistent_volume_claim,
    vg_default_pod, vg_default_pod_spec, vg_default_pod_status, vg_default_replication_controller,
    vg_default_service, vg_default_volume;

/* apps, batch, autoscaling (defaults_apps.c) */
vg_schema_default_fn vg_default_autoscaler_spec, vg_default_autoscaler_v1,
    vg_default_daemon_set_strategy, vg_default_deployment_strategy, vg_default_job,
    vg_default_stateful_set_spec, vg_default_stateful_set_strategy;
/* other groups (defaults_more.c) */
vg_schema_default_fn vg_default_csi_driver_spec, vg_default_custom_resource_definition,
    vg_default_device_request, vg_default_device_taint, vg_default_rbac_subject;

/* networking.k8s.io (defaults_networking.c) */
vg_schema_default_fn vg_default_network_policy_spec;

/* The map v has under that name gets the members of `from` that it lacks. 0, -ENOMEM. */
VG_CHECK int vg_default_map(struct vg_arena *a, struct vg_json *v, const char *name,
                            const struct vg_json *from);
/* The member becomes the present time. 0, -ENOMEM. */
VG_CHECK int vg_default_now(struct vg_arena *a, struct vg_json *v, const char *name);
/* "Always" for an image whose tag is latest, said or not; else "IfNotPresent". */
const char *vg_default_pull_policy(struct vg_slice image);

#endif
