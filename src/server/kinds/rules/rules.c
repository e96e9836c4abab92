/* rules.c - which kinds have rules; see rules.h. A kind's rules are in the file of its group. */
#include "rules.h"

#include <pthread.h>

#define KINDS(X)                                                                                   \
    X(api_service)                                                                                 \
    X(certificate_signing_request)                                                                 \
    X(cluster_role)                                                                                \
    X(cluster_role_binding)                                                                        \
    X(config_map)                                                                                  \
    X(controller_revision)                                                                         \
    X(cron_job)                                                                                    \
    X(csi_driver)                                                                                  \
    X(csi_node)                                                                                    \
    X(csi_storage_capacity)                                                                        \
    X(custom_resource_definition)                                                                  \
    X(daemon_set)                                                                                  \
    X(deployment)                                                                                  \
    X(device_class)                                                                                \
    X(endpoint_slice)                                                                              \
    X(endpoints)                                                                                   \
    X(event)                                                                                       \
    X(events_event)                                                                                \
    X(flow_schema)                                                                                 \
    X(horizontal_pod_autoscaler)                                                                   \
    X(ingress)                                                                                     \
    X(ingress_class)                                                                               \
    X(ip_address)                                                                                  \
    X(job)                                                                                         \
    X(lease)                                                                                       \
    X(limit_range)                                                                                 \
    X(local_subject_access_review)                                                                 \
    X(mutating_admission_policy)                                                                   \
    X(mutating_admission_policy_binding)                                                           \
    X(mutating_webhook_configuration)                                                              \
    X(namespace)                                                                                   \
    X(network_policy)                                                                              \
    X(node)                                                                                        \
    X(persistent_volume)                                                                           \
    X(persistent_volume_claim)                                                                     \
    X(pod)                                                                                         \
    X(pod_disruption_budget)                                                                       \
    X(pod_template)                                                                                \
    X(priority_class)                                                                              \
    X(priority_level_configuration)                                                                \
    X(replica_set)                                                                                 \
    X(replication_controller)                                                                      \
    X(resource_claim)                                                                              \
    X(resource_claim_template)                                                                     \
    X(resource_quota)                                                                              \
    X(resource_slice)                                                                              \
    X(role)                                                                                        \
    X(role_binding)                                                                                \
    X(runtime_class)                                                                               \
    X(secret)                                                                                      \
    X(self_subject_access_review)                                                                  \
    X(service)                                                                                     \
    X(service_account)                                                                             \
    X(service_cidr)                                                                                \
    X(stateful_set)                                                                                \
    X(storage_class)                                                                               \
    X(subject_access_review)                                                                       \
    X(validating_admission_policy)                                                                 \
    X(validating_admission_policy_binding)                                                         \
    X(validating_webhook_configuration)                                                            \
    X(volume_attachment)                                                                           \
    X(volume_attributes_class)

#define DECLARE(name) extern const struct vg_rules vg_rules_##name;
KINDS(DECLARE)

#define POINT(name) &vg_rules_##name,
static const struct vg_rules *const all[] = {KINDS(POINT) NULL};

const struct vg_rules *vg_rules_find(struct vg_slice group, struct vg_slice kind)
{
    for (const struct vg_rules *const *r = all; *r; r++)
        if (vg_slice_eq(vg_slice_str((*r)->kind), kind) &&
            vg_slice_eq(vg_slice_str((*r)->group), group))
            return *r;
    return NULL;
}

const struct vg_rules_part *vg_rules_part(const struct vg_rules *rules, const char *sub)
{
    for (const struct vg_rules_part *p = rules ? rules->parts : NULL; p && p->sub; p++)
        if (strcmp(p->sub, sub) == 0)
            return p;
    return NULL;
}

/* By row, since a write asks several times; a version's row has rules of its own, so this is not
 * vg_kind_index. More room than there are rows. */
static const struct vg_rules *of_row[256];

static void find_all(void)
{
    size_t n;
    const struct vg_kind *rows = vg_kinds(&n);
    for (size_t i = 0; i < n && i < VG_ARRAY_LEN(of_row); i++)
        of_row[i] = vg_rules_find(vg_slice_str(rows[i].group), vg_slice_str(rows[i].kind));
}

const struct vg_rules *vg_rules_of(const struct vg_kind *kind)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, find_all);
    size_t n;
    const struct vg_kind *rows = vg_kinds(&n);
    if (kind < rows || kind >= rows + VG_MIN(n, VG_ARRAY_LEN(of_row)))
        return NULL; /* not of the table: what a subresource takes */
    return of_row[kind - rows];
}
