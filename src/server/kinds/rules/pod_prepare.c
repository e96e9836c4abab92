/* pod_prepare.c - what the server sets in a pod before it is checked: its status at first, the
 * tolerations of nodes that fail, selectors that follow the pod's own labels; and what it drops.
 * Profiles of AppArmor that are given by annotation alone are not copied into fields. */
#include <errno.h>

#include "base/map.h"
#include "defaults.h"
#include "object/validate_name.h"
#include "pod_int.h"
#include "json/lookup.h"

/* ---- what is dropped ---- */

static void drop_stop_signals(struct vg_json *containers)
{
    if (containers)
        VG_JSON_FOREACH_ITEM (container, containers) {
            struct vg_json *lifecycle = vg_json_get_str(container, "lifecycle");
            if (!lifecycle || !vg_json_object_remove(lifecycle, VG_SLICE_LIT("stopSignal")))
                continue;
            if (lifecycle->n == 0)
                (void)vg_json_object_remove(container, VG_SLICE_LIT("lifecycle"));
        }
}

static void drop_projections(struct vg_json *volumes)
{
    if (volumes)
        VG_JSON_FOREACH_ITEM (volume, volumes) {
            struct vg_json *projected = vg_json_get_str(volume, "projected");
            struct vg_json *sources = vg_json_get_str(projected, "sources");
            if (sources)
                VG_JSON_FOREACH_ITEM (source, sources) {
                    (void)vg_json_object_remove(source, VG_SLICE_LIT("clusterTrustBundle"));
                    (void)vg_json_object_remove(source, VG_SLICE_LIT("podCertificate"));
                }
        }
}

void vg_pod_drop_disabled(struct vg_json *spec)
{
    if (!spec)
        return;
    drop_stop_signals(vg_json_get_str(spec, "containers"));
    drop_stop_signals(vg_json_get_str(spec, "initContainers"));
    drop_stop_signals(vg_json_get_str(spec, "ephemeralContainers"));
    drop_projections(vg_json_get_str(spec, "volumes"));
    (void)vg_json_object_remove(spec, VG_SLICE_LIT("schedulingGroup"));
}

/* ---- tolerations ---- */

static bool is_tolerated(const struct vg_json *list, struct vg_slice taint)
{
    if (list)
        VG_JSON_FOREACH_ITEM (it, list) {
            struct vg_slice key = vg_json_text(vg_json_get_str(it, "key"));
            struct vg_slice effect = vg_json_text(vg_json_get_str(it, "effect"));
            if ((key.n == 0 || vg_slice_eq(key, taint)) &&
                (effect.n == 0 || vg_slice_eq(effect, VG_SLICE_LIT("NoExecute"))))
                return true;
        }
    return false;
}

static int add_toleration(struct vg_arena *a, struct vg_json *list, struct vg_slice taint)
{
    struct vg_json t = vg_json_object();
    int err = vg_json_object_add(a, &t, VG_SLICE_LIT("key"), vg_json_string_ref(taint));
    if (err == 0)
        err = vg_default_text(a, &t, "operator", "Exists");
    if (err == 0)
        err = vg_default_text(a, &t, "effect", "NoExecute");
    if (err == 0)
        err = vg_default_int(a, &t, "tolerationSeconds", 300);
    return err < 0 ? err : vg_json_array_push(a, list, t);
}

int vg_pod_tolerate(struct vg_arena *a, struct vg_json *spec)
{
    static const struct vg_slice taints[] = {{"node.kubernetes.io/not-ready", 28},
                                             {"node.kubernetes.io/unreachable", 30}};
    struct vg_json *list = vg_json_get_str(spec, "tolerations");
    bool is_needed[2] = {!is_tolerated(list, taints[0]), !is_tolerated(list, taints[1])};
    struct vg_json all = vg_json_is(list, VG_JSON_ARRAY) ? *list : vg_json_array();
    int err = 0;
    if (!is_needed[0] && !is_needed[1])
        return 0;
    for (size_t i = 0; i < 2 && err == 0; i++)
        if (is_needed[i])
            err = add_toleration(a, &all, taints[i]);
    return err < 0 ? err : vg_json_object_set(a, spec, VG_SLICE_LIT("tolerations"), all);
}

/* ---- labels of its own ---- */

static int add_expression(struct vg_arena *a, struct vg_json *selector, struct vg_slice key,
                          const char *operator, const struct vg_json * value)
{
    struct vg_json e = vg_json_object(), values = vg_json_array();
    struct vg_json *list = vg_json_get_str(selector, "matchExpressions");
    struct vg_json all = vg_json_is(list, VG_JSON_ARRAY) ? *list : vg_json_array();
    int err = vg_json_array_push(a, &values, *value);
    if (err == 0)
        err = vg_json_object_add(a, &e, VG_SLICE_LIT("key"), vg_json_string_ref(key));
    if (err == 0)
        err = vg_default_text(a, &e, "operator", operator);
    if (err == 0)
        err = vg_json_object_add(a, &e, VG_SLICE_LIT("values"), values);
    if (err == 0)
        err = vg_json_array_push(a, &all, e);
    return err < 0 ? err : vg_json_object_set(a, selector, VG_SLICE_LIT("matchExpressions"), all);
}

/* Pods with the same value of these labels, or with another. */
static int follow(struct vg_arena *a, struct vg_json *term, struct vg_json_lookup *labels)
{
    static const struct {
        const char *keys, *operator;
    } ways[] = {{"matchLabelKeys", "In"}, {"mismatchLabelKeys", "NotIn"}};
    struct vg_json *selector = vg_json_get_str(term, "labelSelector");
    int err = 0;
    if (!selector)
        return 0;
    for (size_t i = 0; i < VG_ARRAY_LEN(ways); i++) {
        struct vg_json *keys = vg_json_get_str(term, ways[i].keys);
        if (keys)
            VG_JSON_FOREACH_ITEM (key, keys) {
                const struct vg_json_member *m = NULL;
                int r = err == 0 ? vg_json_lookup_find(labels, vg_json_text(key), 0, &m) : err;
                if (r > 0)
                    r = add_expression(a, selector, vg_json_text(key),
                                       ways[i].operator, & m->value);
                err = r;
            }
    }
    return err;
}

static int follow_terms(struct vg_arena *a, struct vg_json *affinity, struct vg_json_lookup *labels)
{
    struct vg_json *preferred =
        vg_json_get_str(affinity, "preferredDuringSchedulingIgnoredDuringExecution");
    struct vg_json *required =
        vg_json_get_str(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
    int err = 0;
    if (preferred)
        VG_JSON_FOREACH_ITEM (it, preferred) {
            struct vg_json *term = vg_json_get_str(it, "podAffinityTerm");
            if (term && err == 0)
                err = follow(a, term, labels);
        }
    if (required)
        VG_JSON_FOREACH_ITEM (term, required)
            if (err == 0)
                err = follow(a, term, labels);
    return err;
}

static int follow_labels(struct vg_arena *a, struct vg_json *obj, struct vg_json *spec)
{
    struct vg_json *affinity = vg_json_get_str(spec, "affinity");
    struct vg_json *spread = vg_json_get_str(spec, "topologySpreadConstraints");
    struct vg_json_lookup labels;
    vg_json_lookup_init(&labels, vg_json_get_str(vg_json_get_str(obj, "metadata"), "labels"));
    int err = follow_terms(a, vg_json_get_str(affinity, "podAffinity"), &labels);
    if (err == 0)
        err = follow_terms(a, vg_json_get_str(affinity, "podAntiAffinity"), &labels);
    if (spread)
        VG_JSON_FOREACH_ITEM (it, spread)
            if (err == 0)
                err = follow(a, it, &labels);
    vg_json_lookup_done(&labels);
    return err;
}

/* ---- status ---- */

static const struct vg_slice compute[] = {{"cpu", 3}, {"memory", 6}};

struct qos {
    bool has_requests[2], has_limits[2];
    struct vg_quantity requests[2], limits[2];
    bool is_guaranteed;
};

static bool count(const struct vg_json *resources, const char *list, size_t i,
                  struct vg_quantity *sum)
{
    struct vg_quantity q;
    const struct vg_json *v = vg_json_get(vg_json_get_str(resources, list), compute[i]);
    if (!vg_json_quantity(v, &q) || vg_quantity_sign(&q) <= 0)
        return false;
    if (vg_quantity_add(sum, &q) < 0)
        *sum = q; /* beyond any amount there is */
    return true;
}

static void count_resources(struct qos *s, const struct vg_json *resources, bool needs_limits)
{
    bool has_both = true;
    for (size_t i = 0; i < 2; i++) {
        bool has_limit = count(resources, "limits", i, &s->limits[i]);
        s->has_requests[i] = count(resources, "requests", i, &s->requests[i]) || s->has_requests[i];
        s->has_limits[i] = s->has_limits[i] || has_limit;
        has_both = has_both && has_limit;
    }
    if (needs_limits && !has_both)
        s->is_guaranteed = false;
}

static void count_containers(struct qos *s, const struct vg_json *list)
{
    if (list)
        VG_JSON_FOREACH_ITEM (container, list)
            count_resources(s, vg_json_get_str(container, "resources"), true);
}

/* Guaranteed: every container has limits of both, and asks for as much. BestEffort: none asks. */
const char *vg_pod_qos(const struct vg_json *spec)
{
    struct qos s = {.is_guaranteed = true};
    const struct vg_json *of_pod = vg_json_get_str(spec, "resources");
    if (of_pod) {
        const struct vg_json *limits = vg_json_get_str(of_pod, "limits");
        count_resources(&s, of_pod, limits && limits->n);
    } else {
        count_containers(&s, vg_json_get_str(spec, "containers"));
        count_containers(&s, vg_json_get_str(spec, "initContainers"));
    }
    bool has_requests = s.has_requests[0] || s.has_requests[1];
    bool has_limits = s.has_limits[0] || s.has_limits[1];
    if (!has_requests && !has_limits)
        return "BestEffort";
    for (size_t i = 0; i < 2; i++)
        if (s.has_requests[i] != s.has_limits[i] ||
            (s.has_requests[i] && vg_quantity_cmp(&s.requests[i], &s.limits[i]) != 0))
            s.is_guaranteed = false;
    return s.is_guaranteed ? "Guaranteed" : "Burstable";
}

static int add_gated(struct vg_arena *a, struct vg_json *status)
{
    struct vg_json condition = vg_json_object(), list = vg_json_array();
    int err = vg_default_text(a, &condition, "type", "PodScheduled");
    if (err == 0)
        err = vg_default_text(a, &condition, "status", "False");
    if (err == 0)
        err = vg_default_now(a, &condition, "lastTransitionTime");
    if (err == 0)
        err = vg_default_text(a, &condition, "reason", "SchedulingGated");
    if (err == 0)
        err = vg_default_text(a, &condition, "message",
                              "Scheduling is blocked due to non-empty scheduling gates");
    if (err == 0)
        err = vg_json_array_push(a, &list, condition);
    return err < 0 ? err : vg_json_object_set(a, status, VG_SLICE_LIT("conditions"), list);
}

static int begin_status(struct vg_arena *a, struct vg_json *obj, const struct vg_json *spec)
{
    struct vg_json status = vg_json_object();
    const struct vg_json *gates = vg_json_get_str(spec, "schedulingGates");
    int err = vg_default_text(a, &status, "phase", "Pending");
    if (err == 0)
        err = vg_default_text(a, &status, "qosClass", vg_pod_qos(spec));
    if (err == 0 && gates && gates->n)
        err = add_gated(a, &status);
    return err < 0 ? err : vg_json_object_set(a, obj, VG_SLICE_LIT("status"), status);
}

int vg_pod_prepare(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old)
{
    struct vg_json *spec = vg_json_get_str(obj, "spec");
    if (!spec)
        return 0;
    int err = vg_pod_tolerate(a, spec);
    vg_pod_drop_disabled(spec);
    if (err < 0 || old)
        return err;
    err = follow_labels(a, obj, spec);
    return err < 0 ? err : begin_status(a, obj, spec);
}

/* ---- writes of the status ---- */

/* What a writer does not know of stays. */
static int keep_number(struct vg_arena *a, struct vg_json *now, const struct vg_json *before)
{
    const struct vg_json *v = vg_json_get_str(before, "observedGeneration");
    if (!v || vg_default_has(now, "observedGeneration"))
        return 0;
    return vg_json_object_set(a, now, VG_SLICE_LIT("observedGeneration"), *v);
}

static struct vg_slice type_of(const struct vg_json *condition)
{
    return vg_json_text(vg_json_get_str(condition, "type"));
}

/* A list of conditions by their types: the few that pods have are looked through. */
#define FEW_CONDITIONS 16u

/* The first of a type counts. */
static int gather_conditions(const struct vg_json *list, struct vg_map *map)
{
    int err = 0;
    vg_map_init(map, VG_MAP_BORROWS_KEYS);
    for (uint32_t i = list->n > FEW_CONDITIONS ? list->n : 0; i-- > 0 && err >= 0;)
        err = vg_map_put(map, type_of(&list->items[i]), &list->items[i], NULL);
    return err < 0 ? err : 0;
}

static const struct vg_json *condition_of(const struct vg_json *list, const struct vg_map *map,
                                          struct vg_slice type)
{
    if (list->n > FEW_CONDITIONS)
        return vg_map_get(map, type);
    VG_JSON_FOREACH_ITEM (it, list)
        if (vg_slice_eq(type_of(it), type))
            return it;
    return NULL;
}

static int keep_numbers(struct vg_arena *a, struct vg_json *conditions,
                        const struct vg_json *before)
{
    VG_AUTO(map) were;
    int err = gather_conditions(before, &were);
    VG_JSON_FOREACH_ITEM (it, conditions)
        if (err == 0)
            err = keep_number(a, it, condition_of(before, &were, type_of(it)));
    return err;
}

int vg_pod_prepare_status(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old)
{
    struct vg_json *status = vg_json_get_str(obj, "status");
    const struct vg_json *before = vg_json_get_str(old, "status");
    const struct vg_json *class = vg_json_get_str(before, "qosClass");
    int err = 0;
    if (!status && class) {
        err = vg_default_object(a, obj, "status", &status);
        if (err < 0)
            return err;
    }
    if (!status)
        return 0;
    if (class && !vg_default_has(status, "qosClass"))
        err = vg_json_object_set(a, status, VG_SLICE_LIT("qosClass"), *class);
    if (err == 0)
        err = keep_number(a, status, before);
    struct vg_json *conditions = vg_json_get_str(status, "conditions");
    const struct vg_json *were = vg_json_get_str(before, "conditions");
    return err == 0 && conditions && were ? keep_numbers(a, conditions, were) : err;
}
