/* merge_kinds.c - merge keys of the kinds: core, apps, batch.
 * A row here for each kind that asks for more than its metadata does. */
#include "merge.h"
#include "merge_int.h"

#define METADATA OBJECT("metadata", &vg_merge_object_meta)
#define STATUS_CONDITIONS OBJECT("status", &vg_merge_conditions)

static const struct vg_merge_schema any = SCHEMA(METADATA);

/* ---- core ---- */

static const struct vg_merge_schema namespace = SCHEMA(METADATA, STATUS_CONDITIONS);
static const struct vg_merge_schema claim = SCHEMA(METADATA, STATUS_CONDITIONS);
static const struct vg_merge_schema replication_controller =
    SCHEMA(METADATA, OBJECT("spec", &vg_merge_with_template), STATUS_CONDITIONS);

static const struct vg_merge_schema node_spec = SCHEMA(SET("podCIDRs"));
static const struct vg_merge_schema node_status =
    SCHEMA(LIST("addresses", "type", NULL), LIST("conditions", "type", NULL));
static const struct vg_merge_schema node =
    SCHEMA(METADATA, OBJECT("spec", &node_spec), OBJECT("status", &node_status));

static const struct vg_merge_schema pod =
    SCHEMA(METADATA, OBJECT("spec", &vg_merge_pod_spec), OBJECT("status", &vg_merge_pod_status));
static const struct vg_merge_schema pod_template =
    SCHEMA(METADATA, OBJECT("template", &vg_merge_pod_template));

static const struct vg_merge_schema service_spec = SCHEMA(LIST("ports", "port", NULL));
static const struct vg_merge_schema service =
    SCHEMA(METADATA, OBJECT("spec", &service_spec), STATUS_CONDITIONS);
static const struct vg_merge_schema service_account =
    SCHEMA(METADATA, LIST("secrets", "name", NULL));

/* ---- apps ---- */

static const struct vg_merge_schema deployment_spec =
    SCHEMA(RETAIN("strategy"), OBJECT("template", &vg_merge_pod_template));
static const struct vg_merge_schema deployment =
    SCHEMA(METADATA, OBJECT("spec", &deployment_spec), STATUS_CONDITIONS);
/* daemon sets, replica sets, stateful sets: whose claim templates are replaced, not merged */
static const struct vg_merge_schema set =
    SCHEMA(METADATA, OBJECT("spec", &vg_merge_with_template), STATUS_CONDITIONS);

/* ---- batch ---- */

static const struct vg_merge_schema job =
    SCHEMA(METADATA, OBJECT("spec", &vg_merge_with_template), STATUS_CONDITIONS);
static const struct vg_merge_schema job_template =
    SCHEMA(METADATA, OBJECT("spec", &vg_merge_with_template));
static const struct vg_merge_schema cron_job_spec = SCHEMA(OBJECT("jobTemplate", &job_template));
static const struct vg_merge_schema cron_job = SCHEMA(METADATA, OBJECT("spec", &cron_job_spec));

static const struct {
    const char *qualified; /* as vg_kind_qualified() */
    const struct vg_merge_schema *schema;
} tables[] = {
    {"cronjobs.batch", &cron_job},
    {"daemonsets.apps", &set},
    {"deployments.apps", &deployment},
    {"jobs.batch", &job},
    {"namespaces", &namespace},
    {"nodes", &node},
    {"persistentvolumeclaims", &claim},
    {"pods", &pod},
    {"podtemplates", &pod_template},
    {"replicasets.apps", &set},
    {"replicationcontrollers", &replication_controller},
    {"serviceaccounts", &service_account},
    {"services", &service},
    {"statefulsets.apps", &set},
};

const struct vg_merge_schema *vg_kind_merge_schema(const struct vg_kind *kind)
{
    struct vg_slice name = vg_slice_str(vg_kind_qualified(kind));
    for (size_t i = 0; i < VG_ARRAY_LEN(tables); i++)
        if (vg_slice_eq(name, vg_slice_str(tables[i].qualified)))
            return tables[i].schema;
    return &any;
}
