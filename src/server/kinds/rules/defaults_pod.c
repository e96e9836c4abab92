/* defaults_pod.c - defaults of pods that depend on other fields; see defaults.h. What a template
 * does not get, because it would change what controllers compare, is set on pods alone. */
#include <errno.h>

#include "defaults.h"
#include "pod_int.h"

/* Each of these resources becomes what the containers have of it together, if they have any. */
static int default_sums(struct vg_arena *a, const struct vg_json *spec, const char *list,
                        struct vg_pod_sum *sums, size_t n, struct vg_json *map)
{
    char room[VG_QUANTITY_TEXT_MAX];
    int err = 0;
    if (n)
        vg_pod_sums(spec, list, sums, n);
    for (size_t i = 0; i < n && err == 0; i++) {
        struct vg_json text;
        if (!sums[i].is_there)
            continue;
        err = vg_json_make_string(a, vg_quantity_text(&sums[i].amount, room), &text);
        if (err == 0)
            err = vg_json_object_add(a, map, sums[i].name, text);
    }
    return err;
}

int vg_default_container(struct vg_arena *a, struct vg_json *v)
{
    return vg_default_text(a, v, "imagePullPolicy",
                           vg_default_pull_policy(vg_json_text(vg_json_get_str(v, "image"))));
}

/* A volume of no kind is an empty folder. */
int vg_default_volume(struct vg_arena *a, struct vg_json *v)
{
    struct vg_json *image = vg_json_get_str(v, "image");
    uint32_t own = vg_json_get_str(v, "name") ? 1 : 0;
    if (v->n == own)
        return vg_default_object(a, v, "emptyDir", NULL);
    if (!image)
        return 0;
    return vg_default_text(
        a, image, "pullPolicy",
        vg_default_pull_policy(vg_json_text(vg_json_get_str(image, "reference"))));
}

/* What is limited and not asked for is asked for up to the limit. */
static int default_requests(struct vg_arena *a, struct vg_json *containers)
{
    int err = 0;
    if (containers)
        VG_JSON_FOREACH_ITEM (c, containers) {
            struct vg_json *resources = vg_json_get_str(c, "resources");
            if (err == 0 && resources)
                err =
                    vg_default_map(a, resources, "requests", vg_json_get_str(resources, "limits"));
        }
    return err;
}

/* On the network of the node a port is that of the node. */
static int default_host_ports(struct vg_arena *a, struct vg_json *containers)
{
    int err = 0;
    if (containers)
        VG_JSON_FOREACH_ITEM (c, containers) {
            struct vg_json *ports = vg_json_get_str(c, "ports");
            if (ports)
                VG_JSON_FOREACH_ITEM (p, ports) {
                    const struct vg_json *port = vg_json_get_str(p, "containerPort");
                    if (err == 0 && port && !vg_default_has(p, "hostPort"))
                        err = vg_json_object_set(a, p, VG_SLICE_LIT("hostPort"), *port);
                }
        }
    return err;
}

/* The name has an older name, and both are shown. */
int vg_default_pod_spec(struct vg_arena *a, struct vg_json *v)
{
    struct vg_json *name = vg_json_get_str(v, "serviceAccountName");
    struct vg_json *older = vg_json_get_str(v, "serviceAccount");
    if (vg_json_text(name).n)
        return vg_json_object_set(a, v, VG_SLICE_LIT("serviceAccount"), *name);
    if (vg_json_text(older).n)
        return vg_json_object_set(a, v, VG_SLICE_LIT("serviceAccountName"), *older);
    return 0;
}

/* The first address has a field of its own, which counts when they differ. */
int vg_default_pod_status(struct vg_arena *a, struct vg_json *v)
{
    struct vg_json *one = vg_json_get_str(v, "podIP"), *list = vg_json_get_str(v, "podIPs");
    const struct vg_json *first = vg_json_get_str(vg_json_at(list, 0), "ip");
    struct vg_json item = vg_json_object(), own = vg_json_array();
    if (vg_json_text(one).n == 0)
        return first ? vg_json_object_set(a, v, VG_SLICE_LIT("podIP"), *first) : 0;
    if (first && vg_slice_eq(vg_json_text(first), vg_json_text(one)))
        return 0;
    int err = vg_json_object_add(a, &item, VG_SLICE_LIT("ip"), *one);
    if (err == 0)
        err = vg_json_array_push(a, &own, item);
    return err < 0 ? err : vg_json_object_set(a, v, VG_SLICE_LIT("podIPs"), own);
}

/* ---- of the pod as a whole ---- */

/* Sizes of huge pages that containers are limited in, and the pod says nothing of. */
static size_t gather_huge(const struct vg_json *containers, const struct vg_json *requests,
                          const struct vg_json *limits, struct vg_pod_sum *sums, size_t n)
{
    for (uint32_t i = 0; vg_json_is(containers, VG_JSON_ARRAY) && i < containers->n; i++) {
        const struct vg_json *own = vg_json_at_path(&containers->items[i], "resources.limits");
        for (uint32_t k = 0; own && k < own->n && n < VG_POD_SUMS_MAX; k++) {
            struct vg_slice name = vg_json_key(&own->members[k]);
            bool is_known = !vg_resource_is_huge(name) || vg_json_get(requests, name) ||
                            vg_json_get(limits, name);
            for (size_t s = 0; s < n && !is_known; s++)
                is_known = vg_slice_eq(sums[s].name, name);
            if (!is_known)
                sums[n++].name = name;
        }
    }
    return n;
}

/* Huge pages are limited by the pod as they are by its containers together, unless it asks for some
 * itself. */
static int default_huge_limits(struct vg_arena *a, const struct vg_json *spec,
                               const struct vg_json *requests, struct vg_json *limits)
{
    struct vg_pod_sum sums[VG_POD_SUMS_MAX];
    size_t n = gather_huge(vg_json_get_str(spec, "containers"), requests, limits, sums, 0);
    n = gather_huge(vg_json_get_str(spec, "initContainers"), requests, limits, sums, n);
    return default_sums(a, spec, "limits", sums, n, limits);
}

/* A pod with limits asks for what its containers ask for together, else for as much as it may have.
 */
static int default_pod_requests(struct vg_arena *a, const struct vg_json *spec,
                                const struct vg_json *limits, struct vg_json *requests)
{
    static const struct vg_slice compute[] = {{"cpu", 3}, {"memory", 6}};
    struct vg_pod_sum sums[VG_ARRAY_LEN(compute)];
    size_t n = 0;
    for (size_t i = 0; i < VG_ARRAY_LEN(compute); i++)
        if (!vg_json_get(requests, compute[i]))
            sums[n++].name = compute[i];
    int err = default_sums(a, spec, "requests", sums, n, requests);
    VG_JSON_FOREACH_MEMBER (m, limits) {
        struct vg_slice key = vg_json_key(m);
        bool is_supported = vg_slice_eq(key, compute[0]) || vg_slice_eq(key, compute[1]) ||
                            vg_resource_is_huge(key);
        if (err == 0 && is_supported && !vg_json_get(requests, key))
            err = vg_json_object_add(a, requests, key, m->value);
    }
    return err;
}

static int default_resources(struct vg_arena *a, struct vg_json *spec)
{
    struct vg_json *resources = vg_json_get_str(spec, "resources");
    struct vg_json *given = vg_json_get_str(resources, "limits");
    struct vg_json *asked = vg_json_get_str(resources, "requests");
    struct vg_json limits = given ? *given : vg_json_object();
    struct vg_json requests = asked ? *asked : vg_json_object();
    if (!resources || (limits.n == 0 && requests.n == 0) || limits.n + requests.n > VG_POD_SUMS_MAX)
        return 0;
    int err = default_huge_limits(a, spec, &requests, &limits);
    if (err == 0 && limits.n)
        err = vg_json_object_set(a, resources, VG_SLICE_LIT("limits"), limits);
    if (err == 0 && limits.n)
        err = default_pod_requests(a, spec, &limits, &requests);
    if (err == 0 && requests.n)
        err = vg_json_object_set(a, resources, VG_SLICE_LIT("requests"), requests);
    return err;
}

/* Less than no time is one second: what a pod is read as, and a template is not. */
static int mend_grace(struct vg_arena *a, struct vg_json *spec)
{
    struct vg_at grace = {.v = vg_json_get_str(spec, "terminationGracePeriodSeconds")};
    struct vg_json one;
    if (vg_at_int(&grace) >= 0)
        return 0;
    int err = vg_json_make_int(a, 1, &one);
    return err < 0
               ? err
               : vg_json_object_set(a, spec, VG_SLICE_LIT("terminationGracePeriodSeconds"), one);
}

int vg_default_pod(struct vg_arena *a, struct vg_json *v)
{
    struct vg_json *spec;
    int err = vg_default_object(a, v, "spec", &spec);
    if (err < 0)
        return err;
    struct vg_json *containers = vg_json_get_str(spec, "containers");
    struct vg_json *init = vg_json_get_str(spec, "initContainers");
    err = default_requests(a, containers);
    if (err == 0)
        err = default_requests(a, init);
    if (err == 0)
        err = mend_grace(a, spec);
    if (err == 0)
        err = default_resources(a, spec);
    if (err == 0)
        err = vg_default_bool(a, spec, "enableServiceLinks", true);
    if (err == 0 && vg_default_has(spec, "hostNetwork"))
        err = default_host_ports(a, containers);
    if (err == 0 && vg_default_has(spec, "hostNetwork"))
        err = default_host_ports(a, init);
    return err;
}
