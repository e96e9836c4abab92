/* classes.c - the rules of Lease, PriorityClass and RuntimeClass. */
#include "go_struct.h"
#include "names.h"
#include "pod_int.h"
#include "rules.h"
#include "server/kinds/types.h"
#include "workload.h"

/* ---- leases ---- */

/* Coordinated election is off in a stock cluster: its fields are kept only where they were. */
static int prepare_lease(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old)
{
    static const char *const fields[] = {"strategy", "preferredHolder", NULL};
    struct vg_json *spec = vg_json_get_str(obj, "spec");
    const struct vg_json *was = vg_json_get_str(old, "spec");
    (void)a;
    for (const char *const *name = fields; *name && vg_json_is(spec, VG_JSON_OBJECT); name++)
        if (!vg_json_get_str(was, *name))
            (void)vg_json_object_remove(spec, vg_slice_str(*name));
    return 0;
}

static void check_lease_update(struct vg_check *c, const struct vg_at *obj,
                               const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), duration = vg_at(&spec, "leaseDurationSeconds");
    struct vg_at transitions = vg_at(&spec, "leaseTransitions");
    (void)old;
    if (vg_at_is_set(&duration) && vg_at_int(&duration) <= 0)
        vg_bad_int(c, &duration, "must be greater than 0");
    (void)vg_check_not_negative(c, &transitions);
}

static void check_lease(struct vg_check *c, const struct vg_at *obj)
{
    check_lease_update(c, obj, NULL);
}

const struct vg_rules vg_rules_lease = {
    .group = "coordination.k8s.io",
    .kind = "Lease",
    .prepare = prepare_lease,
    .ignores_meta = true,
    .check = check_lease,
    .check_update = check_lease_update,
};

/* ---- priority classes ---- */

#define USER_PRIORITY_MAX 1000000000

static const struct {
    const char *name;
    int64_t value;
} system_classes[] = {{"system-node-critical", 2000001000},
                      {"system-cluster-critical", 2000000000}};

#define RESERVED                                                                                   \
    "priority class names with 'system-' prefix are reserved for system use only. error: "

static void check_system_class(struct vg_check *c, const struct vg_at *name,
                               const struct vg_at *value, const struct vg_at *global)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(system_classes); i++) {
        if (!vg_at_is(name, system_classes[i].name))
            continue;
        if (vg_at_int(value) != system_classes[i].value)
            vg_forbidden(c, name, RESERVED "value of %s PriorityClass must be %lld",
                         system_classes[i].name, (long long)system_classes[i].value);
        else if (vg_at_is_true(global))
            vg_forbidden(c, name, RESERVED "globalDefault of %s PriorityClass must be false",
                         system_classes[i].name);
        return;
    }
    vg_forbidden(c, name, RESERVED "%.*s is not a known system priority class",
                 VG_SLICE_ARG(vg_at_text(name)));
}

static void check_priority_class(struct vg_check *c, const struct vg_at *obj)
{
    static const char *const policies[] = {"PreemptLowerPriority", "Never", NULL};
    struct vg_at meta = vg_at(obj, "metadata"), name = vg_at(&meta, "name");
    struct vg_at value = vg_at(obj, "value"), global = vg_at(obj, "globalDefault");
    struct vg_at policy = vg_at(obj, "preemptionPolicy");
    if (vg_slice_has_prefix(vg_at_text(&name), VG_SLICE_LIT("system-")))
        check_system_class(c, &name, &value, &global);
    else if (vg_at_int(&value) > USER_PRIORITY_MAX)
        vg_forbidden(c, &value, "maximum allowed value of a user defined priority is %d",
                     USER_PRIORITY_MAX);
    if (vg_at_is_set(&policy) && vg_check_given(c, &policy))
        (void)vg_check_one_of(c, &policy, policies);
}

static void check_priority_class_update(struct vg_check *c, const struct vg_at *obj,
                                        const struct vg_json *old)
{
    struct vg_at value = vg_at(obj, "value"), policy = vg_at(obj, "preemptionPolicy");
    struct vg_at was = vg_at_root(vg_json_get_str(old, "value"));
    if (vg_at_int(&value) != vg_at_int(&was))
        vg_forbidden(c, &value, "may not be changed in an update.");
    (void)vg_check_immutable(c, &policy, vg_json_get_str(old, "preemptionPolicy"));
}

const struct vg_rules vg_rules_priority_class = {
    .group = "scheduling.k8s.io",
    .kind = "PriorityClass",
    .check = check_priority_class,
    .check_update = check_priority_class_update,
};

/* ---- runtime classes ---- */

/* No toleration twice: all but how long it lasts. */
static void check_tolerations(struct vg_check *c, const struct vg_at *list)
{
    VG_AUTO(names) seen = {0};
    vg_pod_check_tolerations(c, list);
    VG_CHECK_EACH (c, it, list) {
        struct vg_at key = vg_at(&it, "key"), operator= vg_at(&it, "operator");
        struct vg_at value = vg_at(&it, "value"), effect = vg_at(&it, "effect");
        struct vg_slice all;
        /* What is no label was refused, so none of these holds a line's end. */
        if (vg_arena_printf(c->arena, &all, "%.*s\n%.*s\n%.*s\n%.*s",
                            VG_SLICE_ARG(vg_at_text(&key)), VG_SLICE_ARG(vg_at_text(&operator)),
                            VG_SLICE_ARG(vg_at_text(&value)),
                            VG_SLICE_ARG(vg_at_text(&effect))) < 0)
            c->errors->failed = true;
        else if (!vg_names_add(c, &seen, all, NULL))
            vg_duplicate_value(c, &it,
                               vg_go_struct(c,
                                            vg_schema_find(VG_SLICE_LIT(""), VG_SLICE_LIT("v1"),
                                                           VG_SLICE_LIT("Toleration")),
                                            it.v));
    }
}

static void check_runtime_class(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at handler = vg_at(obj, "handler"), overhead = vg_at(obj, "overhead");
    struct vg_at fixed = vg_at_of(obj, "overhead", vg_json_get_str(overhead.v, "podFixed"));
    struct vg_at scheduling = vg_at(obj, "scheduling"), nodes = vg_at(&scheduling, "nodeSelector");
    struct vg_at tolerations = vg_at(&scheduling, "tolerations");
    struct vg_pod pod = {.c = c};
    if (vg_check_given(c, &handler))
        (void)vg_check_dns_label(c, &handler);
    vg_pod_check_overhead(&pod, &fixed);
    vg_check_labels(c, &nodes);
    check_tolerations(c, &tolerations);
}

static void check_runtime_class_update(struct vg_check *c, const struct vg_at *obj,
                                       const struct vg_json *old)
{
    struct vg_at handler = vg_at(obj, "handler");
    check_runtime_class(c, obj);
    (void)vg_check_immutable(c, &handler, vg_json_get_str(old, "handler"));
}

/* Labels of nodes that have other names by now. */
static void warn_runtime_class(struct vg_check *c, const struct vg_at *obj,
                               const struct vg_json *old)
{
    struct vg_at scheduling = vg_at(obj, "scheduling"), nodes = vg_at(&scheduling, "nodeSelector");
    (void)old;
    vg_warn_node_labels(c, &nodes);
}

const struct vg_rules vg_rules_runtime_class = {
    .group = "node.k8s.io",
    .kind = "RuntimeClass",
    .check = check_runtime_class,
    .check_update = check_runtime_class_update,
    .warn = warn_runtime_class,
};
