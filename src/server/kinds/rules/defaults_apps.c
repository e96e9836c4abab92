/* defaults_apps.c - defaults of apps, batch and autoscaling that depend on other fields; see
 * defaults.h. */
#include <errno.h>

#include "check.h"
#include "defaults.h"

static bool is_text(const struct vg_json *v, const char *name, const char *text)
{
    return vg_slice_eq(vg_json_text(vg_json_get_str(v, name)), vg_slice_str(text));
}

static bool is_given(const struct vg_json *v, const char *name)
{
    const struct vg_json *m = vg_json_get_str(v, name);
    return m && m->type != VG_JSON_NULL;
}

/* A member that is absent becomes this constant. */
static int default_json(struct vg_arena *a, struct vg_json *v, const char *name, const char *json)
{
    struct vg_json *value;
    if (is_given(v, name))
        return 0;
    int err = vg_json_parse(a, vg_slice_str(json), NULL, &value, NULL);
    return err < 0 ? -ENOMEM : vg_json_object_set(a, v, vg_slice_str(name), *value);
}

/* ---- how pods are replaced ---- */

/* The type, and when it is the default one its two limits. */
static int default_limits(struct vg_arena *a, struct vg_json *v, const char *unavailable,
                          const char *surge)
{
    struct vg_json *rolling;
    int err = vg_default_text(a, v, "type", "RollingUpdate");
    if (err < 0 || !is_text(v, "type", "RollingUpdate"))
        return err;
    err = vg_default_object(a, v, "rollingUpdate", &rolling);
    if (err == 0)
        err = default_json(a, rolling, "maxUnavailable", unavailable);
    return err < 0 ? err : default_json(a, rolling, "maxSurge", surge);
}

int vg_default_deployment_strategy(struct vg_arena *a, struct vg_json *v)
{
    return default_limits(a, v, "\"25%\"", "\"25%\"");
}

int vg_default_daemon_set_strategy(struct vg_arena *a, struct vg_json *v)
{
    return default_limits(a, v, "1", "0");
}

/* Claims say what they are, whatever they said. */
int vg_default_stateful_set_spec(struct vg_arena *a, struct vg_json *v)
{
    struct vg_json *claims = vg_json_get_str(v, "volumeClaimTemplates");
    int err = 0;
    for (uint32_t i = 0; claims && i < claims->n && err == 0; i++) {
        struct vg_json *claim = &claims->items[i];
        err = vg_json_object_set(a, claim, VG_SLICE_LIT("kind"),
                                 vg_json_string_ref(VG_SLICE_LIT("PersistentVolumeClaim")));
        if (err == 0)
            err = vg_json_object_set(a, claim, VG_SLICE_LIT("apiVersion"),
                                     vg_json_string_ref(VG_SLICE_LIT("v1")));
    }
    return err;
}

int vg_default_stateful_set_strategy(struct vg_arena *a, struct vg_json *v)
{
    int err = 0;
    if (!vg_default_has(v, "type"))
        err = vg_default_object(a, v, "rollingUpdate", NULL);
    if (err == 0)
        err = vg_default_text(a, v, "type", "RollingUpdate");
    struct vg_json *rolling = vg_json_get_str(v, "rollingUpdate");
    if (err < 0 || !is_text(v, "type", "RollingUpdate") || !vg_json_is(rolling, VG_JSON_OBJECT))
        return err;
    return vg_default_int(a, rolling, "partition", 0);
}

/* ---- jobs ---- */

static int default_counts(struct vg_arena *a, struct vg_json *spec)
{
    int err = is_given(spec, "parallelism") ? 0 : vg_default_int(a, spec, "completions", 1);
    if (err == 0)
        err = vg_default_int(a, spec, "parallelism", 1);
    if (err == 0)
        err = vg_default_int(a, spec, "backoffLimit",
                             is_given(spec, "backoffLimitPerIndex") ? INT32_MAX : 6);
    return err;
}

int vg_default_job(struct vg_arena *a, struct vg_json *v)
{
    struct vg_json *spec;
    int err = vg_default_object(a, v, "spec", &spec);
    if (err == 0)
        err = default_counts(a, spec);
    if (err == 0 && !is_given(spec, "completionMode"))
        err = vg_default_text(a, spec, "completionMode", "NonIndexed");
    if (err == 0)
        err = vg_default_bool(a, spec, "suspend", false);
    if (err == 0 && !is_given(spec, "podReplacementPolicy"))
        err =
            vg_default_text(a, spec, "podReplacementPolicy",
                            is_given(spec, "podFailurePolicy") ? "Failed" : "TerminatingOrFailed");
    return err < 0 ? err : vg_default_bool(a, spec, "manualSelector", false);
}

/* ---- autoscalers ---- */

/* The metrics of v1 are the CPU's alone; the others are in an annotation. */
int vg_default_autoscaler_v1(struct vg_arena *a, struct vg_json *v)
{
    static const struct vg_slice others = {"autoscaling.alpha.kubernetes.io/metrics", 39};
    struct vg_json *spec;
    if (vg_json_get(vg_json_at_path(v, "metadata.annotations"), others))
        return 0;
    int err = vg_default_object(a, v, "spec", &spec);
    return err < 0 ? err : vg_default_int(a, spec, "targetCPUUtilizationPercentage", 80);
}

#define POLICY(type, value) "{\"type\":\"" type "\",\"value\":" value ",\"periodSeconds\":15}"

static int default_scaling(struct vg_arena *a, struct vg_json *behavior, const char *name,
                           const char *policies)
{
    struct vg_json *rules;
    int err = vg_default_object(a, behavior, name, &rules);
    if (err == 0 && !is_given(rules, "selectPolicy"))
        err = vg_default_text(a, rules, "selectPolicy", "Max");
    return err < 0 ? err : default_json(a, rules, "policies", policies);
}

int vg_default_autoscaler_spec(struct vg_arena *a, struct vg_json *v)
{
    const struct vg_json *metrics = vg_json_get_str(v, "metrics");
    if (metrics && metrics->n == 0)
        (void)vg_json_object_remove(v, VG_SLICE_LIT("metrics"));
    int err = default_json(a, v, "metrics",
                           "[{\"type\":\"Resource\",\"resource\":{\"name\":\"cpu\",\"target\":"
                           "{\"type\":\"Utilization\",\"averageUtilization\":80}}}]");
    struct vg_json *behavior = vg_json_get_str(v, "behavior");
    if (err < 0 || !vg_json_is(behavior, VG_JSON_OBJECT))
        return err;
    err = default_scaling(a, behavior, "scaleUp",
                          "[" POLICY("Pods", "4") "," POLICY("Percent", "100") "]");
    if (err == 0)
        err = vg_default_int(a, vg_json_get_str(behavior, "scaleUp"), "stabilizationWindowSeconds",
                             0);
    return err < 0 ? err
                   : default_scaling(a, behavior, "scaleDown", "[" POLICY("Percent", "100") "]");
}
