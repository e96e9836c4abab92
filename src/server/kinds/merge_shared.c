/* merge_shared.c - merge keys of the types that many kinds have: metadata, conditions, pods. */
#include "merge_int.h"

const struct vg_merge_schema vg_merge_object_meta =
    SCHEMA(SET("finalizers"), LIST("ownerReferences", "uid", NULL));

const struct vg_merge_schema vg_merge_conditions = SCHEMA(LIST("conditions", "type", NULL));

/* ---- pods ---- */

static const struct vg_merge_schema container =
    SCHEMA(LIST("env", "name", NULL), LIST("ports", "containerPort", NULL),
           LIST("volumeDevices", "devicePath", NULL), LIST("volumeMounts", "mountPath", NULL));

/* A volume's claim template has metadata of its own. */
static const struct vg_merge_schema claim_template =
    SCHEMA(OBJECT("metadata", &vg_merge_object_meta));
static const struct vg_merge_schema ephemeral =
    SCHEMA(OBJECT("volumeClaimTemplate", &claim_template));
static const struct vg_merge_schema volume = SCHEMA(OBJECT("ephemeral", &ephemeral));

const struct vg_merge_schema vg_merge_pod_spec = SCHEMA(
    LIST("containers", "name", &container), LIST("ephemeralContainers", "name", &container),
    LIST("hostAliases", "ip", NULL), LIST("imagePullSecrets", "name", NULL),
    LIST("initContainers", "name", &container), LIST_RETAIN("resourceClaims", "name", NULL),
    LIST("schedulingGates", "name", NULL), LIST("topologySpreadConstraints", "topologyKey", NULL),
    LIST_RETAIN("volumes", "name", &volume));

const struct vg_merge_schema vg_merge_pod_status =
    SCHEMA(LIST("conditions", "type", NULL), LIST("hostIPs", "ip", NULL),
           LIST("podIPs", "ip", NULL), LIST_RETAIN("resourceClaimStatuses", "name", NULL));

const struct vg_merge_schema vg_merge_pod_template =
    SCHEMA(OBJECT("metadata", &vg_merge_object_meta), OBJECT("spec", &vg_merge_pod_spec));

const struct vg_merge_schema vg_merge_with_template =
    SCHEMA(OBJECT("template", &vg_merge_pod_template));
