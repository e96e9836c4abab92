/* rules.c - which kinds have rules; see rules.h. A kind's rules are in the file of its group. */
#include "rules.h"

#define KINDS(X) X(config_map) X(secret) X(service_account) X(service)

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
