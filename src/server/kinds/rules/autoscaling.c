/* autoscaling.c - the rules of HorizontalPodAutoscaler, in the form of v2. Of v1 the one field that
 * v2 does not have is a metric there, and blamed as such. Scaling to zero is off in a stock
 * cluster. */
#include "resources.h"
#include "rules.h"
#include "workload.h"

#define PERIOD_MAX 1800
#define WINDOW_MAX 3600

/* Who may be without an API group, and whose apiVersion is not looked at. */
struct reference_rules {
    bool may_be_core;
    bool is_free;
};

/* ---- references ---- */

static void check_segment(struct vg_check *c, const struct vg_at *at)
{
    struct vg_name_reasons why = {0};
    if (vg_check_given(c, at) && !vg_validate_path_segment(vg_at_text(at), &why))
        (void)vg_check_reasons(c, at, &why);
}

static size_t count_slashes(struct vg_slice s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += s.p[i] == '/';
    return n;
}

/* group/version, as Go reads it: "/" is none, without a slash it is a version of the core. */
static bool is_version(struct vg_slice version, struct reference_rules rules)
{
    size_t slashes = count_slashes(version);
    bool is_nothing = version.n == 0 || vg_slice_eq(version, VG_SLICE_LIT("/"));
    bool has_group = !is_nothing && slashes == 1 && version.p[0] != '/';
    return slashes <= 1 && (rules.may_be_core || has_group);
}

static void check_reference(struct vg_check *c, const struct vg_at *at,
                            struct reference_rules rules)
{
    struct vg_at kind = vg_at(at, "kind"), name = vg_at(at, "name");
    struct vg_at version = vg_at(at, "apiVersion");
    check_segment(c, &kind);
    check_segment(c, &name);
    if (rules.is_free || is_version(vg_at_text(&version), rules))
        return;
    if (count_slashes(vg_at_text(&version)) > 1)
        vg_bad_text(c, &version, "unexpected GroupVersion string: %.*s",
                    VG_SLICE_ARG(vg_at_text(&version)));
    else
        vg_bad_text(c, &version, "apiVersion must specify API group");
}

/* ---- metrics ---- */

static void check_positive_amount(struct vg_check *c, const struct vg_at *at)
{
    struct vg_quantity q;
    if (vg_at_quantity(at, &q) && vg_quantity_sign(&q) <= 0)
        vg_bad(c, at, "must be positive");
}

static void check_target(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at type = vg_at(at, "type"), utilization = vg_at(at, "averageUtilization");
    struct vg_at value = vg_at(at, "value"), average = vg_at(at, "averageValue");
    if (vg_at_text(&type).n == 0)
        vg_required(c, &type, "must specify a metric target type");
    if (!vg_at_is(&type, "Utilization") && !vg_at_is(&type, "Value") &&
        !vg_at_is(&type, "AverageValue"))
        vg_bad_text(c, &type, "must be either Utilization, Value, or AverageValue");
    check_positive_amount(c, &value);
    check_positive_amount(c, &average);
    if (vg_at_is_set(&utilization) && vg_at_int(&utilization) < 1)
        vg_bad_int(c, &utilization, "must be greater than 0");
}

static void check_metric_and_target(struct vg_check *c, const struct vg_at *source)
{
    struct vg_at metric = vg_at(source, "metric"), name = vg_at(&metric, "name");
    struct vg_at target = vg_at(source, "target");
    struct vg_name_reasons why = {0};
    if (vg_at_text(&name).n == 0)
        vg_required(c, &name, "must specify a metric name");
    else if (!vg_validate_path_segment(vg_at_text(&name), &why))
        (void)vg_check_reasons(c, &name, &why);
    check_target(c, &target);
}

/* One of the two must be given, by `text`; `not_both`: and the other then not. */
static void check_either(struct vg_check *c, const struct vg_at *source, const char *names[2],
                         const char *text, const char *not_both)
{
    struct vg_at target = vg_at(source, "target"), a = vg_at(&target, names[0]);
    struct vg_at b = vg_at(&target, names[1]);
    if (!vg_at_is_set(&a) && !vg_at_is_set(&b))
        vg_required(c, &a, "%s", text);
    if (not_both && vg_at_is_set(&a) && vg_at_is_set(&b))
        vg_forbidden(c, &b, "%s", not_both);
}

static void check_object(struct vg_check *c, const struct vg_at *source,
                         struct reference_rules rules)
{
    const char *names[] = {"averageValue", "value"};
    struct vg_at described = vg_at(source, "describedObject");
    check_reference(c, &described, rules);
    check_metric_and_target(c, source);
    check_either(c, source, names, "must set either a target value or averageValue", NULL);
}

static void check_external(struct vg_check *c, const struct vg_at *source)
{
    const char *names[] = {"averageValue", "value"};
    check_metric_and_target(c, source);
    check_either(c, source, names, "must set either a target value for metric or a per-pod target",
                 "may not set both a target value for metric and a per-pod target");
}

static void check_pods(struct vg_check *c, const struct vg_at *source)
{
    struct vg_at target = vg_at(source, "target"), average = vg_at(&target, "averageValue");
    check_metric_and_target(c, source);
    if (!vg_at_is_set(&average))
        vg_required(c, &average, "must specify a positive target averageValue");
}

static void check_resource(struct vg_check *c, const struct vg_at *source, bool is_of_container)
{
    const char *names[] = {"averageUtilization", "averageValue"};
    struct vg_at name = vg_at(source, "name"), container = vg_at(source, "container");
    struct vg_at target = vg_at(source, "target");
    if (vg_at_text(&name).n == 0)
        vg_required(c, &name, "must specify a resource name");
    else if (is_of_container)
        vg_check_container_resource_name(c, &name, vg_at_text(&name));
    if (is_of_container && vg_at_text(&container).n == 0)
        vg_required(c, &container, "must specify a container");
    else if (is_of_container)
        (void)vg_check_dns_label(c, &container);
    check_target(c, &target);
    check_either(c, source, names, "must set either a target raw value or a target utilization",
                 "may not set both a target raw value and a target utilization");
}

/* The sources in the order in which they are looked at, and the types that want them. */
enum source { OBJECT, EXTERNAL, PODS, RESOURCE, CONTAINER_RESOURCE, SOURCES };
static const char *const sources[SOURCES] = {"object", "external", "pods", "resource",
                                             "containerResource"};
static const char *const source_types[SOURCES] = {"Object", "External", "Pods", "Resource",
                                                  "ContainerResource"};

static void check_source(struct vg_check *c, const struct vg_at *source, enum source which,
                         struct reference_rules rules)
{
    switch (which) {
    case OBJECT:
        check_object(c, source, rules);
        break;
    case EXTERNAL:
        check_external(c, source);
        break;
    case PODS:
        check_pods(c, source);
        break;
    default:
        check_resource(c, source, which == CONTAINER_RESOURCE);
    }
}

/* Only the first is looked into. */
static unsigned check_sources(struct vg_check *c, const struct vg_at *metric,
                              struct reference_rules rules)
{
    unsigned n = 0;
    for (unsigned i = 0; i < SOURCES; i++) {
        struct vg_at source = vg_at(metric, sources[i]);
        if (vg_at_is_set(&source) && n++ == 0)
            check_source(c, &source, (enum source)i, rules);
    }
    return n;
}

static void check_metric(struct vg_check *c, const struct vg_at *metric,
                         struct reference_rules rules)
{
    static const char *const types[] = {"ContainerResource", "External", "Object", "Pods",
                                        "Resource",          NULL};
    struct vg_at type = vg_at(metric, "type");
    if (vg_at_text(&type).n == 0)
        vg_required(c, &type, "must specify a metric source type");
    (void)vg_check_one_of(c, &type, types);
    unsigned n = check_sources(c, metric, rules), wanted = 0;
    while (wanted < SOURCES && !vg_at_is(&type, source_types[wanted]))
        wanted++;
    if (wanted == SOURCES) {
        vg_unsupported(c, &type, types);
    } else {
        struct vg_at source = vg_at(metric, sources[wanted]);
        if (!vg_at_is_set(&source))
            vg_required(c, &source, "must populate information for the given metric source");
    }
    for (unsigned i = 0; i < SOURCES && n != 1; i++) {
        struct vg_at source = vg_at(metric, sources[i]);
        if (i != wanted && vg_at_is_set(&source))
            vg_forbidden(c, &source, "must populate the given metric source only");
    }
}

static void check_metrics(struct vg_check *c, const struct vg_at *spec,
                          struct reference_rules rules)
{
    struct vg_at metrics = vg_at(spec, "metrics"), min = vg_at(spec, "minReplicas");
    bool has_outer = false;
    VG_CHECK_EACH (c, metric, &metrics) {
        struct vg_at type = vg_at(&metric, "type");
        check_metric(c, &metric, rules);
        has_outer = has_outer || vg_at_is(&type, "Object") || vg_at_is(&type, "External");
    }
    if (vg_at_is_set(&min) && vg_at_int(&min) == 0 && !has_outer)
        vg_forbidden(c, &metrics,
                     "must specify at least one Object or External metric to support scaling to "
                     "zero replicas");
}

/* What v1 calls targetCPUUtilizationPercentage. */
static void check_cpu(struct vg_check *c, const struct vg_at *spec)
{
    struct vg_at percent = vg_at(spec, "targetCPUUtilizationPercentage");
    struct vg_at metrics = vg_at_of(spec, "metrics", NULL), metric = vg_at_item(&metrics, 0);
    struct vg_at resource = vg_at(&metric, "resource"), target = vg_at(&resource, "target");
    struct vg_at utilization = vg_at_of(&target, "averageUtilization", percent.v);
    if (vg_at_is_set(&percent) && vg_at_int(&percent) < 1)
        vg_bad_int(c, &utilization, "must be greater than 0");
}

/* ---- behavior ---- */

static void check_policy(struct vg_check *c, const struct vg_at *policy)
{
    static const char *const types[] = {"Percent", "Pods", NULL};
    struct vg_at type = vg_at(policy, "type"), value = vg_at(policy, "value");
    struct vg_at period = vg_at(policy, "periodSeconds");
    (void)vg_check_one_of(c, &type, types);
    (void)vg_check_positive(c, &value);
    (void)vg_check_positive(c, &period);
    if (vg_at_int(&period) > PERIOD_MAX)
        vg_bad_int(c, &period, "must be less than or equal to %d", PERIOD_MAX);
}

static void check_scaling(struct vg_check *c, const struct vg_at *rules)
{
    static const char *const selects[] = {"Disabled", "Max", "Min", NULL};
    struct vg_at window = vg_at(rules, "stabilizationWindowSeconds");
    struct vg_at select = vg_at(rules, "selectPolicy"), policies = vg_at(rules, "policies");
    struct vg_at tolerance = vg_at(rules, "tolerance");
    struct vg_quantity q;
    if (!vg_at_is_set(rules))
        return;
    if (vg_at_int(&window) < 0)
        vg_bad_int(c, &window, "must be greater than or equal to zero");
    if (vg_at_int(&window) > WINDOW_MAX)
        vg_bad_int(c, &window, "must be less than or equal to %d", WINDOW_MAX);
    if (vg_at_is_set(&select))
        (void)vg_check_one_of(c, &select, selects);
    if (vg_at_n(&policies) == 0)
        vg_required(c, &policies, "must specify at least one Policy");
    VG_CHECK_EACH (c, policy, &policies)
        check_policy(c, &policy);
    if (vg_at_quantity(&tolerance, &q) && vg_quantity_sign(&q) < 0)
        vg_bad(c, &tolerance, "must be greater than or equal to 0");
}

/* ---- the spec ---- */

static void check_replicas(struct vg_check *c, const struct vg_at *spec, int64_t lowest)
{
    struct vg_at min = vg_at(spec, "minReplicas"), max = vg_at(spec, "maxReplicas");
    if (vg_at_is_set(&min) && vg_at_int(&min) < lowest)
        vg_bad_int(c, &min, "must be greater than or equal to %lld", (long long)lowest);
    if (vg_at_int(&max) == 0)
        vg_required(c, &max, "must be set and greater than 0");
    else if (vg_at_int(&max) < 0)
        vg_bad_int(c, &max, "must be greater than or equal to 1");
    if (vg_at_is_set(&min) && vg_at_int(&max) < vg_at_int(&min))
        vg_bad_int(c, &max, "must be greater than or equal to `minReplicas`");
}

static bool is_member_same(const struct vg_json *a, const struct vg_json *b, const char *name)
{
    return vg_slice_eq(vg_json_text(vg_json_get_str(a, name)),
                       vg_json_text(vg_json_get_str(b, name)));
}

/* What was stored with a version that is none may be kept. */
static struct reference_rules target_rules(const struct vg_at *target, const struct vg_json *old)
{
    struct vg_at kind = vg_at(target, "kind");
    const struct vg_json *was = vg_json_at_path(old, "spec.scaleTargetRef");
    struct reference_rules rules = {0};
    rules.is_free = old && is_member_same(target->v, was, "kind") &&
                    is_member_same(target->v, was, "apiVersion");
    rules.may_be_core = !rules.is_free && vg_at_is(&kind, "ReplicationController");
    return rules;
}

static struct reference_rules metric_rules(const struct vg_json *old)
{
    struct reference_rules rules = {.may_be_core = true};
    const struct vg_json *metrics = vg_json_at_path(old, "spec.metrics");
    if (metrics)
        VG_JSON_FOREACH_ITEM (it, metrics) {
            const struct vg_json *version =
                vg_json_at_path(it, "object.describedObject.apiVersion");
            struct vg_at root = vg_at_root(it), type = vg_at(&root, "type");
            if (vg_at_is(&type, "Object") && version && !is_version(vg_json_text(version), rules))
                rules.is_free = true;
        }
    return rules;
}

static void check_update(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), target = vg_at(&spec, "scaleTargetRef");
    struct vg_at behavior = vg_at(&spec, "behavior"), up = vg_at(&behavior, "scaleUp");
    struct vg_at down = vg_at(&behavior, "scaleDown");
    struct vg_at old_min = vg_at_root(vg_json_at_path(old, "spec.minReplicas"));
    bool was_zero = vg_at_is_set(&old_min) && vg_at_int(&old_min) == 0;
    check_replicas(c, &spec, was_zero ? 0 : 1);
    check_reference(c, &target, target_rules(&target, old));
    check_metrics(c, &spec, metric_rules(old));
    check_cpu(c, &spec);
    check_scaling(c, &up);
    check_scaling(c, &down);
}

static void check(struct vg_check *c, const struct vg_at *obj)
{
    check_update(c, obj, NULL);
}

static void check_status(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    static const char *const counts[] = {"currentReplicas", "desiredReplicas", NULL};
    struct vg_at status = vg_at(obj, "status");
    (void)old;
    vg_check_not_negatives(c, &status, counts);
}

const struct vg_rules vg_rules_horizontal_pod_autoscaler = {
    .group = "autoscaling",
    .kind = "HorizontalPodAutoscaler",
    .check = check,
    .check_update = check_update,
    .check_status = check_status,
};
