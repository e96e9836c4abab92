/* usage.c - see usage.h. Pods, services and claims of volumes count by what they say; of all other
 * kinds each object counts as one. */
#include "usage.h"

#include <errno.h>

#include "server/schema/gotime.h"

#define HUGE "hugepages-"
#define BY_CLASS ".storageclass.storage.k8s.io/"
#define BY_DEVICE "deviceclass.resource.kubernetes.io/"

enum family { PODS, SERVICES, CLAIMS, OTHERS };

static enum family family_of(const struct vg_kind *kind)
{
    if (*kind->group)
        return OTHERS;
    return strcmp(kind->resource, "pods") == 0                     ? PODS
           : strcmp(kind->resource, "services") == 0               ? SERVICES
           : strcmp(kind->resource, "persistentvolumeclaims") == 0 ? CLAIMS
                                                                   : OTHERS;
}

bool vg_usage_counts(const struct vg_kind *kind)
{
    return vg_kind_is(kind, VG_KIND_NAMESPACED) && !vg_kind_is(kind, VG_KIND_NOT_STORED) &&
           strcmp(kind->resource, "events") != 0;
}

/* "count/deployments.apps", or for some the bare name that is older. */
bool vg_usage_is_plain(const struct vg_kind *kind, struct vg_slice resource)
{
    static const char *const bare[] = {"configmaps", "resourcequotas", "replicationcontrollers",
                                       "secrets",    "services",       "persistentvolumeclaims",
                                       NULL};
    struct vg_slice count = VG_SLICE_LIT("count/");
    struct vg_slice name = vg_slice_str(vg_kind_qualified(vg_kind_stored(kind)));
    if (vg_slice_has_prefix(resource, count))
        return vg_slice_eq(vg_slice(resource.p + count.n, resource.n - count.n), name);
    return vg_slice_eq(resource, name) && vg_text_is_one_of(name, bare);
}

static bool is_of_pods(struct vg_slice name)
{
    if (vg_resource_is_of_pods(name))
        return true;
    if (!vg_slice_has_prefix(name, VG_SLICE_LIT("requests.")))
        return false;
    return !vg_resource_is_native(name) ||
           vg_slice_has_prefix(name, VG_SLICE_LIT("requests." HUGE)) ||
           vg_slice_has_prefix(name, VG_SLICE_LIT("requests." BY_DEVICE));
}

static bool is_of_claims(struct vg_slice name)
{
    return vg_slice_eq(name, VG_SLICE_LIT("requests.storage")) ||
           vg_text_has_suffix(name, VG_SLICE_LIT(BY_CLASS "requests.storage")) ||
           vg_text_has_suffix(name, VG_SLICE_LIT(BY_CLASS "persistentvolumeclaims"));
}

bool vg_usage_is_of(const struct vg_kind *kind, struct vg_slice resource)
{
    static const char *const services[] = {"services.nodeports", "services.loadbalancers", NULL};
    if (vg_usage_is_plain(kind, resource))
        return true;
    switch (family_of(kind)) {
    case PODS:
        return is_of_pods(resource);
    case SERVICES:
        return vg_text_is_one_of(resource, services);
    case CLAIMS:
        return is_of_claims(resource);
    case OTHERS:
        break;
    }
    return false;
}

/* ---- what is used ---- */

static int add_number(struct vg_arena *a, struct vg_amounts *list, const char *name, int64_t n)
{
    struct vg_quantity q = vg_quantity_of(n, 0, VG_QUANTITY_DECIMAL);
    return vg_amounts_set(a, list, vg_slice_str(name), &q);
}

static int add_as(struct vg_arena *a, struct vg_amounts *list, const char *before,
                  const struct vg_amount *x)
{
    struct vg_slice name;
    int err = vg_arena_printf(a, &name, "%s%.*s", before, VG_SLICE_ARG(x->name));
    return err < 0 ? err : vg_amounts_set(a, list, name, &x->q);
}

/* What pods or containers ask for, by quotas' names. */
static int add_compute(struct vg_arena *a, struct vg_amounts *list,
                       const struct vg_amounts *requests, const struct vg_amounts *limits)
{
    static const char *const compute[] = {"cpu", "memory", "ephemeral-storage", NULL};
    int err = 0;
    for (uint32_t i = 0; i < requests->n && err == 0; i++) {
        const struct vg_amount *x = &requests->v[i];
        bool is_own = vg_text_is_one_of(x->name, compute) || vg_resource_is_huge(x->name);
        if (!is_own && !vg_resource_is_extended(x->name) &&
            !vg_slice_has_prefix(x->name, VG_SLICE_LIT(BY_DEVICE)))
            continue;
        err = add_as(a, list, "requests.", x);
        if (err == 0 && is_own)
            err = vg_amounts_set(a, list, x->name, &x->q);
    }
    for (uint32_t i = 0; i < limits->n && err == 0; i++)
        if (vg_text_is_one_of(limits->v[i].name, compute))
            err = add_as(a, list, "limits.", &limits->v[i]);
    return err;
}

/* Has it come to its end, or should have? */
static bool is_over(const struct vg_json *pod, int64_t now_s)
{
    const struct vg_json *meta = vg_json_get_str(pod, "metadata");
    struct vg_slice phase = vg_json_text(vg_json_get_str(vg_json_get_str(pod, "status"), "phase"));
    int64_t end, grace;
    if (vg_slice_eq(phase, VG_SLICE_LIT("Failed")) || vg_slice_eq(phase, VG_SLICE_LIT("Succeeded")))
        return true;
    return vg_time_parse(vg_json_text(vg_json_get_str(meta, "deletionTimestamp")), &end, NULL) ==
               0 &&
           vg_json_to_int64(vg_json_get_str(meta, "deletionGracePeriodSeconds"), &grace) == 0 &&
           now_s > end + grace;
}

static int of_pod(struct vg_arena *a, const struct vg_json *pod, int64_t now_s,
                  struct vg_amounts *ret)
{
    struct vg_amounts requests = {0}, limits = {0};
    int err = add_number(a, ret, "count/pods", 1);
    if (err < 0 || is_over(pod, now_s))
        return err;
    err = add_number(a, ret, "pods", 1);
    if (err == 0)
        err = vg_amounts_of_pod(a, pod, VG_REQUESTS, true, &requests);
    if (err == 0)
        err = vg_amounts_of_pod(a, pod, VG_LIMITS, true, &limits);
    return err < 0 ? err : add_compute(a, ret, &requests, &limits);
}

static int64_t count_node_ports(const struct vg_json *ports, bool are_all)
{
    int64_t n = 0, port;
    if (ports)
        VG_JSON_FOREACH_ITEM (it, ports)
            n += are_all ||
                 (vg_json_to_int64(vg_json_get_str(it, "nodePort"), &port) == 0 && port != 0);
    return n;
}

static int of_service(struct vg_arena *a, const struct vg_json *service, struct vg_amounts *ret)
{
    const struct vg_json *spec = vg_json_get_str(service, "spec");
    struct vg_slice type = vg_json_text(vg_json_get_str(spec, "type"));
    const struct vg_json *allocate = vg_json_get_str(spec, "allocateLoadBalancerNodePorts");
    bool is_balanced = vg_slice_eq(type, VG_SLICE_LIT("LoadBalancer"));
    bool has_ports = is_balanced || vg_slice_eq(type, VG_SLICE_LIT("NodePort"));
    bool are_all = !is_balanced || !vg_json_is(allocate, VG_JSON_BOOL) || vg_json_is_true(allocate);
    int64_t ports = has_ports ? count_node_ports(vg_json_get_str(spec, "ports"), are_all) : 0;
    int err = add_number(a, ret, "count/services", 1);
    if (err == 0)
        err = add_number(a, ret, "services", 1);
    if (err == 0)
        err = add_number(a, ret, "services.nodeports", ports);
    return err < 0 ? err : add_number(a, ret, "services.loadbalancers", is_balanced);
}

/* In whole bytes. */
static void round_up(struct vg_quantity *q)
{
    bool is_exact = true;
    int64_t n;
    if (vg_quantity_scaled(q, 0, &n, &is_exact) == 0 && !is_exact)
        *q = vg_quantity_of(n, 0, q->format);
}

/* What was asked for, or was given if that is more. */
static bool storage_of(const struct vg_json *claim, struct vg_quantity *ret)
{
    const struct vg_json *spec = vg_json_get_str(claim, "spec");
    const struct vg_json *asked = vg_json_get_str(vg_json_get_str(spec, "resources"), "requests");
    const struct vg_json *given =
        vg_json_get_str(vg_json_get_str(claim, "status"), "allocatedResources");
    struct vg_quantity q;
    if (!vg_json_quantity(vg_json_get_str(asked, "storage"), ret))
        return false;
    if (vg_json_quantity(vg_json_get_str(given, "storage"), &q) && vg_quantity_cmp(&q, ret) > 0)
        *ret = q;
    round_up(ret);
    return true;
}

static struct vg_slice class_of(const struct vg_json *claim)
{
    const struct vg_json *notes =
        vg_json_get_str(vg_json_get_str(claim, "metadata"), "annotations");
    const struct vg_json *by_note =
        vg_json_get_str(notes, "volume.beta.kubernetes.io/storage-class");
    return vg_json_text(
        by_note ? by_note : vg_json_get_str(vg_json_get_str(claim, "spec"), "storageClassName"));
}

static int of_claim(struct vg_arena *a, const struct vg_json *claim, struct vg_amounts *ret)
{
    struct vg_quantity one = vg_quantity_of(1, 0, VG_QUANTITY_DECIMAL), storage;
    struct vg_slice class = class_of(claim), name;
    bool has_storage = storage_of(claim, &storage);
    int err = add_number(a, ret, "count/persistentvolumeclaims", 1);
    if (err == 0)
        err = add_number(a, ret, "persistentvolumeclaims", 1);
    if (err == 0 && has_storage)
        err = vg_amounts_set(a, ret, VG_SLICE_LIT("requests.storage"), &storage);
    if (err < 0 || class.n == 0)
        return err;
    err = vg_arena_printf(a, &name, "%.*s" BY_CLASS "persistentvolumeclaims", VG_SLICE_ARG(class));
    if (err == 0)
        err = vg_amounts_set(a, ret, name, &one);
    if (err == 0 && has_storage)
        err = vg_arena_printf(a, &name, "%.*s" BY_CLASS "requests.storage", VG_SLICE_ARG(class));
    return err == 0 && has_storage ? vg_amounts_set(a, ret, name, &storage) : err;
}

/* Its count, and the bare name where it has one. */
static int of_other(struct vg_arena *a, const struct vg_kind *kind, struct vg_amounts *ret)
{
    struct vg_slice bare = vg_slice_str(vg_kind_qualified(vg_kind_stored(kind))), name;
    int err = vg_arena_printf(a, &name, "count/%.*s", VG_SLICE_ARG(bare));
    struct vg_quantity one = vg_quantity_of(1, 0, VG_QUANTITY_DECIMAL);
    if (err == 0)
        err = vg_amounts_set(a, ret, name, &one);
    return err == 0 && vg_usage_is_plain(kind, bare) ? vg_amounts_set(a, ret, bare, &one) : err;
}

int vg_usage_of(struct vg_arena *a, const struct vg_kind *kind, const struct vg_json *obj,
                int64_t now_s, struct vg_amounts *ret)
{
    *ret = (struct vg_amounts){0};
    switch (family_of(kind)) {
    case PODS:
        return of_pod(a, obj, now_s, ret);
    case SERVICES:
        return of_service(a, obj, ret);
    case CLAIMS:
        return of_claim(a, obj, ret);
    case OTHERS:
        break;
    }
    return of_other(a, kind, ret);
}

static bool has_deadline(const struct vg_json *pod)
{
    int64_t s;
    return vg_json_to_int64(vg_json_get_str(vg_json_get_str(pod, "spec"), "activeDeadlineSeconds"),
                            &s) == 0 &&
           s >= 0;
}

bool vg_usage_may_change(const struct vg_kind *kind, const struct vg_json *old,
                         const struct vg_json *obj)
{
    switch (family_of(kind)) {
    case PODS:
        return has_deadline(old) != has_deadline(obj);
    case SERVICES:
    case CLAIMS:
        return true;
    case OTHERS:
        break;
    }
    return false;
}

/* ---- scopes ---- */

static bool has_value(const struct vg_json *values, struct vg_slice s)
{
    if (values)
        VG_JSON_FOREACH_ITEM (it, values)
            if (vg_slice_eq(vg_json_text(it), s))
                return true;
    return false;
}

/* name: empty: there is none. */
static bool selects(struct vg_slice operator, const struct vg_json * values, struct vg_slice name)
{
    if (vg_slice_eq(operator, VG_SLICE_LIT("Exists")))
        return name.n;
    if (vg_slice_eq(operator, VG_SLICE_LIT("DoesNotExist")))
        return !name.n;
    if (vg_slice_eq(operator, VG_SLICE_LIT("In")))
        return name.n && has_value(values, name);
    return !name.n || !has_value(values, name);
}

static bool is_elsewhere(const struct vg_json *term)
{
    const struct vg_json *names = vg_json_get_str(term, "namespaces");
    return (names && names->n) || vg_json_get_str(term, "namespaceSelector");
}

static bool has_elsewhere(const struct vg_json *affinity)
{
    const struct vg_json *must =
        vg_json_get_str(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
    const struct vg_json *may =
        vg_json_get_str(affinity, "preferredDuringSchedulingIgnoredDuringExecution");
    bool is = false;
    if (must)
        VG_JSON_FOREACH_ITEM (it, must)
            is = is || is_elsewhere(it);
    if (may)
        VG_JSON_FOREACH_ITEM (it, may)
            is = is || is_elsewhere(vg_json_get_str(it, "podAffinityTerm"));
    return is;
}

static bool is_pod_in(struct vg_slice scope, struct vg_slice operator,
                      const struct vg_json * values, const struct vg_json *pod)
{
    const struct vg_json *spec = vg_json_get_str(pod, "spec");
    struct vg_slice qos = vg_json_text(vg_json_get_str(vg_json_get_str(pod, "status"), "qosClass"));
    bool is_best_effort = vg_slice_eq(qos, VG_SLICE_LIT("BestEffort"));
    if (vg_slice_eq(scope, VG_SLICE_LIT("Terminating")))
        return has_deadline(pod);
    if (vg_slice_eq(scope, VG_SLICE_LIT("NotTerminating")))
        return !has_deadline(pod);
    if (vg_slice_eq(scope, VG_SLICE_LIT("BestEffort")))
        return is_best_effort;
    if (vg_slice_eq(scope, VG_SLICE_LIT("NotBestEffort")))
        return !is_best_effort;
    if (vg_slice_eq(scope, VG_SLICE_LIT("PriorityClass")))
        return selects(operator, values, vg_json_text(vg_json_get_str(spec, "priorityClassName")));
    const struct vg_json *affinity = vg_json_get_str(spec, "affinity");
    return vg_slice_eq(scope, VG_SLICE_LIT("CrossNamespacePodAffinity")) &&
           (has_elsewhere(vg_json_get_str(affinity, "podAffinity")) ||
            has_elsewhere(vg_json_get_str(affinity, "podAntiAffinity")));
}

/* Any of the classes that the claim has, had or shall have. */
static bool is_claim_in(struct vg_slice scope, struct vg_slice operator,
                        const struct vg_json * values, const struct vg_json *claim)
{
    const struct vg_json *spec = vg_json_get_str(claim, "spec");
    const struct vg_json *status = vg_json_get_str(claim, "status");
    struct vg_slice names[] = {
        vg_json_text(vg_json_get_str(spec, "volumeAttributesClassName")),
        vg_json_text(vg_json_get_str(status, "currentVolumeAttributesClassName")),
        vg_json_text(vg_json_get_str(vg_json_get_str(status, "modifyVolumeStatus"),
                                     "targetVolumeAttributesClassName"))};
    bool has_none = true;
    if (!vg_slice_eq(scope, VG_SLICE_LIT("VolumeAttributesClass")))
        return false;
    for (size_t i = 0; i < VG_ARRAY_LEN(names); i++) {
        if (names[i].n && selects(operator, values, names[i]))
            return true;
        has_none = has_none && !names[i].n;
    }
    return has_none && selects(operator, values, VG_SLICE_LIT(""));
}

static bool is_in(enum family family, struct vg_slice scope, struct vg_slice operator,
                  const struct vg_json * values, const struct vg_json *obj)
{
    return family == PODS     ? is_pod_in(scope, operator, values, obj)
           : family == CLAIMS ? is_claim_in(scope, operator, values, obj)
                              : false;
}

bool vg_usage_in_scope(const struct vg_kind *kind, const struct vg_json *quota,
                       const struct vg_json *obj)
{
    const struct vg_json *spec = vg_json_get_str(quota, "spec");
    const struct vg_json *scopes = vg_json_get_str(spec, "scopes");
    const struct vg_json *list =
        vg_json_get_str(vg_json_get_str(spec, "scopeSelector"), "matchExpressions");
    enum family family = family_of(kind);
    if (scopes)
        VG_JSON_FOREACH_ITEM (it, scopes)
            if (!is_in(family, vg_json_text(it), VG_SLICE_LIT("Exists"), NULL, obj))
                return false;
    if (list)
        VG_JSON_FOREACH_ITEM (it, list)
            if (!is_in(family, vg_json_text(vg_json_get_str(it, "scopeName")),
                       vg_json_text(vg_json_get_str(it, "operator")), vg_json_get_str(it, "values"),
                       obj))
                return false;
    return true;
}

/* ---- what must be said ---- */

/* Does the container say how much of it? resource: as quotas name it. */
static bool says(const struct vg_json *container, struct vg_slice resource)
{
    const struct vg_json *of = vg_json_get_str(container, "resources");
    const char *map = "requests";
    struct vg_slice name = resource;
    if (vg_slice_has_prefix(name, VG_SLICE_LIT("limits.")))
        map = "limits";
    const char *dot = memchr(name.p, '.', name.n);
    if (dot)
        name = vg_slice(dot + 1, (size_t)(name.p + name.n - dot - 1));
    return vg_json_get(vg_json_get_str(of, map), name);
}

/* Names of those that do not, sorted and each once. */
static int who_lacks(struct vg_arena *a, const struct vg_json *spec, struct vg_slice resource,
                     struct vg_amounts *ret)
{
    static const char *const lists[] = {"containers", "initContainers"};
    struct vg_quantity none = vg_quantity_of(0, 0, VG_QUANTITY_DECIMAL);
    int err = 0;
    *ret = (struct vg_amounts){0};
    for (size_t i = 0; i < VG_ARRAY_LEN(lists); i++) {
        const struct vg_json *list = vg_json_get_str(spec, lists[i]);
        if (list)
            VG_JSON_FOREACH_ITEM (it, list)
                if (err == 0 && !says(it, resource))
                    err = vg_amounts_set(a, ret, vg_json_text(vg_json_get_str(it, "name")), &none);
    }
    return err;
}

int vg_usage_missing(struct vg_arena *a, const struct vg_json *pod, const struct vg_json *hard,
                     struct vg_slice *ret)
{
    static const char *const needed[] = {"cpu",    "limits.cpu",   "limits.memory",
                                         "memory", "requests.cpu", "requests.memory"};
    struct vg_slice text = VG_SLICE_LIT("");
    struct vg_amounts who;
    int err = 0;
    for (size_t i = 0; i < VG_ARRAY_LEN(needed) && err == 0 && !vg_amounts_pod_says(pod); i++) {
        if (!vg_json_get_str(hard, needed[i]))
            continue;
        err = who_lacks(a, vg_json_get_str(pod, "spec"), vg_slice_str(needed[i]), &who);
        if (err == 0 && who.n)
            err = vg_arena_printf(a, &text, "%.*s%s%s for: ", VG_SLICE_ARG(text),
                                  text.n ? "; " : "must specify ", needed[i]);
        for (uint32_t k = 0; k < who.n && err == 0; k++)
            err = vg_arena_printf(a, &text, "%.*s%s%.*s", VG_SLICE_ARG(text), k ? "," : "",
                                  VG_SLICE_ARG(who.v[k].name));
    }
    *ret = text;
    return err;
}
