/* stateful_set.c - the rules of StatefulSet.
 * Its claims are volumes of its pods: the template is checked as if it had them, and without the
 * host name that the controller sets. */
#include "claim.h"
#include "go_struct.h"
#include "names.h"
#include "pod.h"
#include "rules.h"
#include "workload.h"

/* ---- strategies and policies ---- */

/* maxUnavailable is not served: its feature is off in a stock cluster. */
static int prepare(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old)
{
    struct vg_json *spec = vg_json_get_str(obj, "spec");
    struct vg_json *rolling =
        vg_json_get_str(vg_json_get_str(spec, "updateStrategy"), "rollingUpdate");
    (void)vg_prepare_template(a, obj, old);
    if (vg_json_is(rolling, VG_JSON_OBJECT))
        (void)vg_json_object_remove(rolling, VG_SLICE_LIT("maxUnavailable"));
    return 0;
}

static void check_strategy(struct vg_check *c, const struct vg_at *strategy)
{
    struct vg_at type = vg_at(strategy, "type"), rolling = vg_at(strategy, "rollingUpdate");
    struct vg_at partition = vg_at(&rolling, "partition");
    if (vg_at_is(&type, "RollingUpdate"))
        (void)vg_check_not_negative(c, &partition);
    else if (!vg_at_is(&type, "OnDelete"))
        vg_bad_value(c, strategy,
                     vg_go_struct_of(c, "apps", "StatefulSetUpdateStrategy", strategy->v),
                     "must be 'RollingUpdate' or 'OnDelete'");
    else if (vg_at_is_set(&rolling))
        vg_bad_value(c, &rolling,
                     vg_go_struct_of(c, "apps", "RollingUpdateStatefulSetStrategy", rolling.v),
                     "only allowed for updateStrategy 'RollingUpdate'");
}

static void check_policies(struct vg_check *c, const struct vg_at *spec)
{
    static const char *const kept[] = {"Retain", "Delete", NULL};
    struct vg_at management = vg_at(spec, "podManagementPolicy");
    struct vg_at strategy = vg_at(spec, "updateStrategy");
    struct vg_at claims = vg_at(spec, "persistentVolumeClaimRetentionPolicy");
    struct vg_at deleted = vg_at(&claims, "whenDeleted"), scaled = vg_at(&claims, "whenScaled");
    if (!vg_at_is(&management, "OrderedReady") && !vg_at_is(&management, "Parallel"))
        vg_bad_text(c, &management, "must be 'OrderedReady' or 'Parallel'");
    check_strategy(c, &strategy);
    if (!vg_at_is_set(&claims))
        return;
    (void)vg_check_one_of(c, &deleted, kept);
    (void)vg_check_one_of(c, &scaled, kept);
}

/* ---- the template ---- */

static int add_claim(struct vg_arena *a, struct vg_json *volumes, struct vg_slice name)
{
    struct vg_json volume = vg_json_object(), claim = vg_json_object();
    int err = vg_json_object_add(a, &claim, VG_SLICE_LIT("claimName"), vg_json_string_ref(name));
    if (err == 0)
        err = vg_json_object_add(a, &volume, VG_SLICE_LIT("name"), vg_json_string_ref(name));
    if (err == 0)
        err = vg_json_object_add(a, &volume, VG_SLICE_LIT("persistentVolumeClaim"), claim);
    return err < 0 ? err : vg_json_array_push(a, volumes, volume);
}

/* A volume for each claim, then those of the template that no claim hides. */
static int add_volumes(struct vg_check *c, const struct vg_json *claims, struct vg_json *pod)
{
    VG_AUTO(names) own = {0};
    struct vg_json volumes = vg_json_array();
    const struct vg_json *given = vg_json_get_str(pod, "volumes");
    int err = 0;
    for (uint32_t i = 0; i < claims->n && err == 0; i++) {
        struct vg_slice name = vg_json_text(vg_json_at_path(&claims->items[i], "metadata.name"));
        if (vg_names_add(c, &own, name, NULL))
            err = add_claim(c->arena, &volumes, name);
    }
    for (uint32_t i = 0; given && i < given->n && err == 0; i++)
        if (!vg_names_has(&own, vg_json_text(vg_json_get_str(&given->items[i], "name"))))
            err = vg_json_array_push(c->arena, &volumes, given->items[i]);
    return err < 0 ? err : vg_json_object_set(c->arena, pod, VG_SLICE_LIT("volumes"), volumes);
}

/* The template as its pods will have it; *ret shares what stays. */
static int pods_template(struct vg_check *c, const struct vg_json *spec, struct vg_json *ret)
{
    struct vg_arena *a = c->arena;
    const struct vg_json *claims = vg_json_get_str(spec, "volumeClaimTemplates");
    const struct vg_json *template = vg_json_get_str(spec, "template");
    struct vg_json pod = vg_json_object();
    int err = 0;
    *ret = vg_json_object();
    VG_JSON_FOREACH_MEMBER (m, vg_json_get_str(template, "spec"))
        if (err == 0 && !vg_slice_eq(vg_json_key(m), VG_SLICE_LIT("hostname")) &&
            !vg_slice_eq(vg_json_key(m), VG_SLICE_LIT("subdomain")))
            err = vg_json_object_add(a, &pod, vg_json_key(m), m->value);
    if (err == 0 && vg_json_is(claims, VG_JSON_ARRAY) && claims->n)
        err = add_volumes(c, claims, &pod);
    VG_JSON_FOREACH_MEMBER (m, template)
        if (err == 0)
            err = vg_json_object_add(a, ret, vg_json_key(m),
                                     vg_slice_eq(vg_json_key(m), VG_SLICE_LIT("spec")) ? pod
                                                                                       : m->value);
    return err;
}

static void check_pods_template(struct vg_check *c, const struct vg_at *spec)
{
    struct vg_at claims = vg_at(spec, "volumeClaimTemplates"), template = vg_at(spec, "template");
    struct vg_at pod = vg_at(&template, "spec");
    struct vg_at host = vg_at(&pod, "hostname"), domain = vg_at(&pod, "subdomain");
    struct vg_json changed;
    if (pod.v && (vg_at_n(&claims) || vg_at_text(&host).n || vg_at_text(&domain).n)) {
        if (pods_template(c, spec->v, &changed) < 0) {
            c->errors->failed = true;
            return;
        }
        template.v = &changed;
    }
    vg_check_pod_template(c, &template);
}

static void check_template(struct vg_check *c, const struct vg_at *spec, bool with_pods)
{
    struct vg_at selector = vg_at(spec, "selector"), template = vg_at(spec, "template");
    struct vg_at meta = vg_at(&template, "metadata");
    struct vg_at labels = vg_at_of(&template, "labels", vg_json_get_str(meta.v, "labels"));
    struct vg_at notes = vg_at_of(&template, "annotations", vg_json_get_str(meta.v, "annotations"));
    vg_check_owner_selector(c, &selector, "statefulset");
    if (!vg_selector_is_valid(selector.v)) {
        vg_bad(c, &selector, NULL);
    } else {
        vg_check_selects_template(c, selector.v, &template);
        if (with_pods)
            check_pods_template(c, spec);
        vg_check_labels(c, &labels);
        vg_check_annotations(c, &notes);
    }
    vg_check_runs_always(c, &template, "StatefulSet");
}

/* ---- all of it ---- */

static void check_spec(struct vg_check *c, const struct vg_at *spec, bool is_new, bool with_pods)
{
    static const char *const counts[] = {"replicas", "minReadySeconds", NULL};
    struct vg_at ordinals = vg_at(spec, "ordinals"), service = vg_at(spec, "serviceName");
    struct vg_at start = vg_at(&ordinals, "start"), claims = vg_at(spec, "volumeClaimTemplates");
    check_policies(c, spec);
    if (is_new)
        VG_CHECK_EACH (c, claim, &claims) {
            struct vg_at wanted = vg_at(&claim, "spec");
            vg_check_claim_spec(c, &wanted);
        }
    vg_check_not_negatives(c, spec, counts);
    (void)vg_check_not_negative(c, &start);
    if (is_new && vg_at_text(&service).n)
        (void)vg_check_dns_label(c, &service);
    check_template(c, spec, with_pods);
}

static void check(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at spec = vg_at(obj, "spec");
    check_spec(c, &spec, true, true);
}

/* All but what may be changed. */
static bool is_fixed_same(struct vg_check *c, const struct vg_json *spec, const struct vg_json *old)
{
    static const char *const fixed[] = {"selector", "volumeClaimTemplates", "serviceName",
                                        "podManagementPolicy", NULL};
    for (const char *const *name = fixed; *name; name++)
        if (!vg_check_same(c, vg_json_get_str(spec, *name), vg_json_get_str(old, *name)))
            return false;
    return true;
}

/* What is stored may be of a server that took more: its pods are not looked at again then. */
static bool is_old_wrong(struct vg_check *c, const struct vg_json *old)
{
    struct vg_field_errors ignored = {.arena = c->arena};
    struct vg_check silent = {.errors = &ignored, .arena = c->arena};
    struct vg_at root = vg_at_root(old), spec = vg_at(&root, "spec");
    check_spec(&silent, &spec, false, true);
    c->errors->failed |= ignored.failed;
    return ignored.n > 0;
}

static void check_update(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec");
    size_t before = c->errors->n;
    check_spec(c, &spec, false, true);
    if (c->errors->n > before && is_old_wrong(c, old)) {
        vg_field_errors_cut(c->errors, before);
        check_spec(c, &spec, false, false);
    }
    if (!is_fixed_same(c, spec.v, vg_json_get_str(old, "spec")))
        vg_forbidden(c, &spec,
                     "updates to statefulset spec for fields other than 'replicas', 'ordinals', "
                     "'template', 'updateStrategy', 'revisionHistoryLimit', "
                     "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden");
}

static void check_status(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    static const char *const counts[] = {
        "replicas",          "readyReplicas",      "currentReplicas", "updatedReplicas",
        "availableReplicas", "observedGeneration", "collisionCount",  NULL};
    static const char *const parts[] = {"readyReplicas", "currentReplicas", "updatedReplicas",
                                        "availableReplicas", NULL};
    struct vg_at status = vg_at(obj, "status");
    vg_check_not_negatives(c, &status, counts);
    vg_check_not_above(c, &status, parts, "replicas", "cannot be greater than status.replicas");
    vg_check_not_above(c, &status, parts + 3, "readyReplicas",
                       "cannot be greater than status.readyReplicas");
    vg_check_collisions(c, &status, old);
}

static void warn(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), history = vg_at(&spec, "revisionHistoryLimit");
    vg_warn_template(c, obj, old);
    if (vg_at_int(&history) < 0)
        vg_caution_at(c, &history,
                      "a negative value retains all historical revisions; a value >= 0 is "
                      "recommended");
}

const struct vg_rules vg_rules_stateful_set = {
    .group = "apps",
    .kind = "StatefulSet",
    .prepare = prepare,
    .ignores_meta = true,
    .check = check,
    .check_update = check_update,
    .check_status = check_status,
    .warn = warn,
};
