/* rules.c - which kinds have rules; see rules.h. A kind's rules are in the file of its group. */
#include "rules.h"

/* By group. */
#define CORE(X)                                                                                    \
    X(config_map)                                                                                  \
    X(pod_template) X(replication_controller) X(secret) X(service) X(service_account)
#define APPS(X) X(controller_revision) X(daemon_set) X(deployment) X(replica_set) X(stateful_set)
#define KINDS(X) CORE(X) APPS(X)

#define DECLARE(name) extern const struct vg_rules vg_rules_##name;
KINDS(DECLARE)

#define POINT(name) &vg_rules_##name,
static const struct vg_rules *const all[] = {KINDS(POINT) NULL};

const struct vg_rules *vg_rules_of(const struct vg_kind *kind)
{
    for (const struct vg_rules *const *r = all; *r; r++)
        if (strcmp((*r)->kind, kind->kind) == 0 && strcmp((*r)->group, kind->group) == 0)
            return *r;
    return NULL;
}
