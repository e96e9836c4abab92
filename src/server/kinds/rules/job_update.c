/* job_update.c - what may change in a job; see job.h. */
#include "go_struct.h"
#include "job.h"
#include "pod.h"

bool vg_job_has_condition(const struct vg_json *job, const char *type, const char *status)
{
    const struct vg_json *list = vg_json_at_path(job, "status.conditions");
    if (list)
        VG_JSON_FOREACH_ITEM (it, list) {
            struct vg_at at = vg_at_root(it), t = vg_at(&at, "type"), s = vg_at(&at, "status");
            if (vg_at_is(&t, type) && vg_at_is(&s, status))
                return true;
        }
    return false;
}

static bool is_true(const struct vg_json *job, const char *type)
{
    return vg_job_has_condition(job, type, "True");
}

static int64_t int_at(const struct vg_json *v, const char *path)
{
    struct vg_at at = vg_at_root(vg_json_at_path(v, path));
    return vg_at_int(&at);
}

static bool is_set_at(const struct vg_json *v, const char *path)
{
    struct vg_at at = vg_at_root(vg_json_at_path(v, path));
    return vg_at_is_set(&at);
}

/* ---- the template ---- */

/* Nothing of a suspended job runs: its pods may get other places and amounts. */
static bool may_change(const struct vg_json *old)
{
    return vg_json_is_true(vg_json_at_path(old, "spec.suspend")) &&
           (!is_set_at(old, "status.startTime") || is_true(old, "Suspended")) &&
           int_at(old, "status.active") == 0;
}

static int take_resources(struct vg_arena *a, struct vg_json *to, const struct vg_json *from,
                          const char *list)
{
    struct vg_json *old = vg_json_get_str(to, list);
    const struct vg_json *now = vg_json_get_str(from, list);
    int err = 0;
    if (!old || !now || old->n != now->n)
        return 0;
    for (uint32_t i = 0; i < now->n && err == 0; i++) {
        struct vg_slice name = vg_json_text(vg_json_get_str(&now->items[i], "name"));
        if (vg_slice_eq(name, vg_json_text(vg_json_get_str(&old->items[i], "name"))))
            err = vg_json_take_member(a, &old->items[i], &now->items[i], "resources");
    }
    return err;
}

static int take_node_affinity(struct vg_arena *a, struct vg_json *to, const struct vg_json *from)
{
    const struct vg_json *now = vg_json_get_str(from, "affinity");
    struct vg_json *old = vg_json_get_str(to, "affinity"), empty = vg_json_object();
    int err = 0;
    if (!now && !old)
        return 0;
    if (!old)
        err = vg_json_object_set(a, to, VG_SLICE_LIT("affinity"), empty);
    old = vg_json_get_str(to, "affinity");
    if (err == 0)
        err = vg_json_take_member(a, old, now, "nodeAffinity");
    if (err == 0 && !now && old->n == 0)
        (void)vg_json_object_remove(to, VG_SLICE_LIT("affinity"));
    return err;
}

/* The old spec of the pods, with what may change as it is now. */
static int allowed(struct vg_arena *a, const struct vg_json *old, const struct vg_json *now,
                   struct vg_json *ret)
{
    static const char *const places[] = {"nodeSelector", "tolerations", "schedulingGates", NULL};
    int err = vg_json_clone(a, old, ret);
    if (err == 0)
        err = take_node_affinity(a, ret, now);
    for (const char *const *name = places; *name && err == 0; name++)
        err = vg_json_take_member(a, ret, now, *name);
    if (err == 0)
        err = take_resources(a, ret, now, "containers");
    return err < 0 ? err : take_resources(a, ret, now, "initContainers");
}

static void check_template(struct vg_check *c, const struct vg_at *spec, const struct vg_json *old)
{
    struct vg_at template = vg_at(spec, "template"), pods = vg_at(&template, "spec");
    const struct vg_json *was = vg_json_at_path(old, "spec.template");
    struct vg_json changed;
    if (vg_check_same(c, template.v, was))
        return;
    if (!may_change(old))
        (void)vg_check_immutable_template(c, &template, was);
    else if (allowed(c->arena, vg_json_get_str(was, "spec"), pods.v, &changed) < 0)
        c->errors->failed = true;
    else
        (void)vg_check_immutable_pods(c, &pods, &changed);
}

/* ---- the spec ---- */

static void check_completions(struct vg_check *c, const struct vg_at *spec,
                              const struct vg_json *old)
{
    struct vg_at mode = vg_at(spec, "completionMode"), completions = vg_at(spec, "completions");
    struct vg_at parallelism = vg_at(spec, "parallelism");
    const struct vg_json *was = vg_json_at_path(old, "spec.completions");
    if (!vg_at_is(&mode, "Indexed"))
        (void)vg_check_immutable(c, &completions, was);
    else if (vg_at_is_set(&completions) && !vg_check_same(c, completions.v, was) &&
             vg_at_int(&completions) != vg_at_int(&parallelism))
        vg_bad_int(c, &completions, "can only be modified in tandem with spec.parallelism");
}

static void check_policy_stays(struct vg_check *c, const struct vg_at *policy,
                               const struct vg_json *old, const char *type)
{
    if (!vg_check_same(c, policy->v, old))
        vg_bad_value(c, policy, vg_go_struct_of(c, "batch", type, policy->v), "field is immutable");
}

void vg_check_job_update(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), selector = vg_at(&spec, "selector");
    struct vg_at mode = vg_at(&spec, "completionMode"), managed_by = vg_at(&spec, "managedBy");
    struct vg_at failure = vg_at(&spec, "podFailurePolicy");
    struct vg_at success = vg_at(&spec, "successPolicy");
    struct vg_at per_index = vg_at(&spec, "backoffLimitPerIndex");
    const struct vg_json *was = vg_json_get_str(old, "spec");
    check_completions(c, &spec, old);
    (void)vg_check_immutable(c, &selector, vg_json_get_str(was, "selector"));
    check_template(c, &spec, old);
    (void)vg_check_immutable(c, &mode, vg_json_get_str(was, "completionMode"));
    check_policy_stays(c, &failure, vg_json_get_str(was, "podFailurePolicy"), "PodFailurePolicy");
    (void)vg_check_immutable(c, &per_index, vg_json_get_str(was, "backoffLimitPerIndex"));
    (void)vg_check_immutable(c, &managed_by, vg_json_get_str(was, "managedBy"));
    check_policy_stays(c, &success, vg_json_get_str(was, "successPolicy"), "SuccessPolicy");
}
