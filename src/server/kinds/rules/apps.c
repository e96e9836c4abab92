/* apps.c - the rules of Deployment, ReplicaSet, DaemonSet and ControllerRevision.
 * Not here: the annotation that asks a deployment to roll back. */
#include "go_struct.h"
#include "pod.h"
#include "rules.h"
#include "workload.h"
#include "json/equal.h"

#define ABOVE_REPLICAS "cannot be greater than status.replicas"
#define ABOVE_READY "cannot be greater than readyReplicas"

/* ---- what deployments and replica sets have in common ---- */

static void check_replicated_template(struct vg_check *c, const struct vg_at *spec)
{
    struct vg_at selector = vg_at(spec, "selector"), template = vg_at(spec, "template");
    vg_check_owner_selector(c, &selector, "deployment");
    if (!vg_selector_is_valid(selector.v)) {
        vg_bad(c, &selector, "invalid label selector");
        return;
    }
    vg_check_selects_template(c, selector.v, &template);
    vg_check_pod_template(c, &template);
    vg_check_runs_always(c, &template, "ReplicaSet");
}

static void check_selector_stays(struct vg_check *c, const struct vg_at *obj,
                                 const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), selector = vg_at(&spec, "selector");
    (void)vg_check_immutable(c, &selector, vg_json_at_path(old, "spec.selector"));
}

/* ---- deployments ---- */

static void check_rolling(struct vg_check *c, const struct vg_at *rolling)
{
    struct vg_at unavailable = vg_at(rolling, "maxUnavailable");
    struct vg_at surge = vg_at(rolling, "maxSurge");
    vg_check_int_or_percent(c, &unavailable);
    vg_check_int_or_percent(c, &surge);
    if (vg_int_or_percent(unavailable.v) == 0 && vg_int_or_percent(surge.v) == 0)
        vg_bad(c, &unavailable, "may not be 0 when `maxSurge` is 0");
    vg_check_percent_max(c, &unavailable);
}

static void check_strategy(struct vg_check *c, const struct vg_at *strategy)
{
    static const char *const types[] = {"Recreate", "RollingUpdate", NULL};
    struct vg_at type = vg_at(strategy, "type"), rolling = vg_at(strategy, "rollingUpdate");
    if (vg_at_is(&type, "RollingUpdate"))
        check_rolling(c, &rolling);
    else if (!vg_at_is(&type, "Recreate"))
        vg_unsupported_value(c, strategy,
                             vg_go_struct_of(c, "apps", "DeploymentStrategy", strategy->v), types);
    else if (vg_at_is_set(&rolling))
        vg_forbidden(c, &rolling, "may not be specified when strategy `type` is 'Recreate'");
}

static void check_deployment(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at spec = vg_at(obj, "spec"), replicas = vg_at(&spec, "replicas");
    struct vg_at strategy = vg_at(&spec, "strategy"), wait = vg_at(&spec, "minReadySeconds");
    struct vg_at history = vg_at(&spec, "revisionHistoryLimit");
    struct vg_at deadline = vg_at(&spec, "progressDeadlineSeconds");
    (void)vg_check_not_negative(c, &replicas);
    check_replicated_template(c, &spec);
    check_strategy(c, &strategy);
    (void)vg_check_not_negative(c, &wait);
    (void)vg_check_not_negative(c, &history);
    (void)vg_check_not_negative(c, &deadline);
    if (vg_at_is_set(&deadline) && vg_at_int(&deadline) <= vg_at_int(&wait))
        vg_bad_int(c, &deadline, "must be greater than minReadySeconds");
}

static void check_deployment_update(struct vg_check *c, const struct vg_at *obj,
                                    const struct vg_json *old)
{
    check_deployment(c, obj);
    check_selector_stays(c, obj, old);
}

static void check_deployment_status(struct vg_check *c, const struct vg_at *obj,
                                    const struct vg_json *old)
{
    static const char *const counts[] = {
        "observedGeneration",  "replicas",          "updatedReplicas",
        "readyReplicas",       "availableReplicas", "unavailableReplicas",
        "terminatingReplicas", "collisionCount",    NULL};
    static const char *const parts[] = {"updatedReplicas", "readyReplicas", "availableReplicas",
                                        NULL};
    struct vg_at status = vg_at(obj, "status");
    vg_check_not_negatives(c, &status, counts);
    vg_check_not_above(c, &status, parts, "replicas", ABOVE_REPLICAS);
    vg_check_not_above(c, &status, parts + 2, "readyReplicas", ABOVE_READY);
    vg_check_collisions(c, &status, old);
}

const struct vg_rules vg_rules_deployment = {
    .group = "apps",
    .kind = "Deployment",
    .prepare = vg_prepare_template,
    .ignores_meta = true,
    .check = check_deployment,
    .check_update = check_deployment_update,
    .check_status = check_deployment_status,
    .warn = vg_warn_owner,
};

/* ---- replica sets ---- */

static void check_replica_set(struct vg_check *c, const struct vg_at *obj)
{
    static const char *const counts[] = {"replicas", "minReadySeconds", NULL};
    struct vg_at spec = vg_at(obj, "spec");
    vg_check_not_negatives(c, &spec, counts);
    check_replicated_template(c, &spec);
}

static void check_replica_set_update(struct vg_check *c, const struct vg_at *obj,
                                     const struct vg_json *old)
{
    check_replica_set(c, obj);
    check_selector_stays(c, obj, old);
}

void vg_check_replicas_status(struct vg_check *c, const struct vg_at *obj,
                              const struct vg_json *old)
{
    static const char *const counts[] = {"replicas",
                                         "fullyLabeledReplicas",
                                         "readyReplicas",
                                         "availableReplicas",
                                         "observedGeneration",
                                         "terminatingReplicas",
                                         NULL};
    static const char *const parts[] = {"fullyLabeledReplicas", "readyReplicas",
                                        "availableReplicas", NULL};
    struct vg_at status = vg_at(obj, "status");
    (void)old;
    vg_check_not_negatives(c, &status, counts);
    vg_check_not_above(c, &status, parts, "replicas", ABOVE_REPLICAS);
    vg_check_not_above(c, &status, parts + 2, "readyReplicas", ABOVE_READY);
}

const struct vg_rules vg_rules_replica_set = {
    .group = "apps",
    .kind = "ReplicaSet",
    .prepare = vg_prepare_template,
    .ignores_meta = true,
    .check = check_replica_set,
    .check_update = check_replica_set_update,
    .check_status = vg_check_replicas_status,
    .warn = vg_warn_owner,
};

/* ---- daemon sets ---- */

/* How often the template changed; kube-apiserver keeps it in an annotation. */
#define TEMPLATE_GENERATION VG_SLICE_LIT("deprecated.daemonset.template.generation")

static int64_t template_generation(const struct vg_json *obj)
{
    const struct vg_json *notes = vg_json_at_path(obj, "metadata.annotations");
    int64_t n = vg_int_or_percent(vg_json_get(notes, TEMPLATE_GENERATION));
    return n < 1 ? 1 : n;
}

static int set_template_generation(struct vg_arena *a, struct vg_json *obj, int64_t n)
{
    struct vg_json *meta = vg_json_get_str(obj, "metadata");
    const struct vg_json *given = vg_json_get_str(meta, "annotations");
    struct vg_json notes = vg_json_object(), text = vg_json_null();
    struct vg_slice digits = {0};
    int err = vg_arena_printf(a, &digits, "%lld", (long long)n);
    if (err == 0)
        err = vg_json_make_string(a, digits, &text);
    /* Those that are given are still the body's, which must stay as it is. */
    if (err == 0 && vg_json_is(given, VG_JSON_OBJECT))
        err = vg_json_clone(a, given, &notes);
    if (err == 0)
        err = vg_json_object_set(a, &notes, TEMPLATE_GENERATION, text);
    return err < 0 ? err : vg_json_object_set(a, meta, VG_SLICE_LIT("annotations"), notes);
}

static int prepare_daemon_set(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old)
{
    int64_t n = template_generation(old ? old : obj);
    (void)vg_prepare_template(a, obj, old);
    int same = old ? vg_json_equal(vg_json_at_path(obj, "spec.template"),
                                   vg_json_at_path(old, "spec.template"))
                   : 1;
    if (same < 0)
        return same;
    if (same == 0)
        n = (int64_t)((uint64_t)n + 1); /* wraps around, as in Go */
    return set_template_generation(a, obj, n);
}

static int prepare_daemon_set_status(struct vg_arena *a, struct vg_json *obj,
                                     const struct vg_json *old)
{
    return set_template_generation(a, obj, template_generation(old));
}

/* Its own generation is a field of older versions, which this one shows as an annotation. */
static int show_daemon_set(struct vg_arena *a, struct vg_json *metadata)
{
    const struct vg_json *given = vg_json_get_str(metadata, "annotations");
    struct vg_json out = vg_json_object();
    const struct vg_json *was = given ? vg_json_get(given, TEMPLATE_GENERATION) : NULL;
    bool is_number = was && was->n;
    for (uint32_t i = 0; is_number && i < was->n; i++)
        is_number = was->text[i] >= '0' && was->text[i] <= '9';
    int err = 0;
    for (uint32_t i = 0; given && i < given->n && err == 0; i++)
        if (!vg_slice_eq(vg_json_key(&given->members[i]), TEMPLATE_GENERATION))
            err = vg_json_object_add(a, &out, vg_json_key(&given->members[i]),
                                     given->members[i].value);
    if (err == 0)
        err = vg_json_object_add(a, &out, TEMPLATE_GENERATION,
                                 is_number ? *was : vg_json_string_ref(VG_SLICE_LIT("0")));
    return err < 0 ? err : vg_json_object_set(a, metadata, VG_SLICE_LIT("annotations"), out);
}

static void check_daemon_rolling(struct vg_check *c, const struct vg_at *rolling)
{
    struct vg_at unavailable = vg_at(rolling, "maxUnavailable");
    struct vg_at surge = vg_at(rolling, "maxSurge");
    vg_check_int_or_percent(c, &unavailable);
    vg_check_int_or_percent(c, &surge);
    vg_check_percent_max(c, &unavailable);
    vg_check_percent_max(c, &surge);
    bool has_unavailable = vg_int_or_percent(unavailable.v) != 0;
    bool has_surge = vg_int_or_percent(surge.v) != 0;
    if (has_unavailable && has_surge)
        vg_bad(c, &surge, "may not be set when maxUnavailable is non-zero");
    else if (!has_unavailable && !has_surge)
        vg_required(c, &unavailable, "cannot be 0 when maxSurge is 0");
}

static void check_daemon_strategy(struct vg_check *c, const struct vg_at *strategy)
{
    static const char *const types[] = {"RollingUpdate", "OnDelete", NULL};
    struct vg_at type = vg_at(strategy, "type"), rolling = vg_at(strategy, "rollingUpdate");
    if (vg_at_is(&type, "RollingUpdate"))
        check_daemon_rolling(c, &rolling);
    else if (!vg_at_is(&type, "OnDelete"))
        vg_unsupported_value(
            c, strategy, vg_go_struct_of(c, "apps", "DaemonSetUpdateStrategy", strategy->v), types);
}

static void check_daemon_set(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at spec = vg_at(obj, "spec"), selector = vg_at(&spec, "selector");
    struct vg_at template = vg_at(&spec, "template"), wait = vg_at(&spec, "minReadySeconds");
    struct vg_at strategy = vg_at(&spec, "updateStrategy");
    struct vg_at history = vg_at(&spec, "revisionHistoryLimit");
    vg_check_label_selector(c, &selector);
    if (vg_selector_is_valid(selector.v))
        vg_check_selects_template(c, selector.v, &template);
    if (vg_at_is_set(&selector) && vg_selector_is_empty(selector.v))
        vg_bad(c, &selector, "empty selector is invalid for daemonset");
    vg_check_pod_template(c, &template);
    vg_check_runs_always(c, &template, "DaemonSet");
    (void)vg_check_not_negative(c, &wait);
    check_daemon_strategy(c, &strategy);
    (void)vg_check_not_negative(c, &history);
}

static void check_daemon_set_update(struct vg_check *c, const struct vg_at *obj,
                                    const struct vg_json *old)
{
    check_selector_stays(c, obj, old);
    check_daemon_set(c, obj);
}

/* The template alone counts. */
static void warn_daemon_set(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), template = vg_at(&spec, "template");
    if (vg_is_new(&spec, vg_json_get_str(old, "spec"), "template"))
        vg_warn_pod_template(c, &template);
}

static void check_daemon_set_status(struct vg_check *c, const struct vg_at *obj,
                                    const struct vg_json *old)
{
    static const char *const counts[] = {"currentNumberScheduled", "numberMisscheduled",
                                         "desiredNumberScheduled", "numberReady",
                                         "observedGeneration",     "updatedNumberScheduled",
                                         "numberAvailable",        "numberUnavailable",
                                         "collisionCount",         NULL};
    struct vg_at status = vg_at(obj, "status");
    vg_check_not_negatives(c, &status, counts);
    vg_check_collisions(c, &status, old);
}

const struct vg_rules vg_rules_daemon_set = {
    .group = "apps",
    .kind = "DaemonSet",
    .prepare = prepare_daemon_set,
    .prepare_status = prepare_daemon_set_status,
    .show = show_daemon_set,
    .check = check_daemon_set,
    .check_update = check_daemon_set_update,
    .check_status = check_daemon_set_status,
    .warn = warn_daemon_set,
};

/* ---- controller revisions ---- */

static void check_revision(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at revision = vg_at(obj, "revision"), data = vg_at(obj, "data");
    (void)vg_check_not_negative(c, &revision);
    if (!vg_at_is_set(&data))
        vg_required(c, &data, "data is mandatory");
    else if (data.v->type != VG_JSON_OBJECT)
        vg_required(c, &data, "data must be a valid JSON object");
}

static void check_revision_update(struct vg_check *c, const struct vg_at *obj,
                                  const struct vg_json *old)
{
    struct vg_at revision = vg_at(obj, "revision"), data = vg_at(obj, "data");
    (void)vg_check_not_negative(c, &revision);
    (void)vg_check_immutable(c, &data, vg_json_get_str(old, "data"));
}

const struct vg_rules vg_rules_controller_revision = {
    .group = "apps",
    .kind = "ControllerRevision",
    .check = check_revision,
    .check_update = check_revision_update,
};
