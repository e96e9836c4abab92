/* defaults_pod.c - defaults of pods that depend on other fields; see defaults.h. What a template
 * does not get, because it would change what controllers compare, is set on pods alone. */
#include <errno.h>

#include "defaults.h"
#include "pod_int.h"

/* More amounts than these are given to no pod by itself: see pod_resources.c. */
#define POD_AMOUNTS_MAX 64u

/* A resource that the map lacks is what the containers have of it together. */
static int default_sum(struct vg_arena *a, const struct vg_json *spec, const char *list,
                       struct vg_slice name, struct vg_json *map)
{
    struct vg_quantity sum;
    char room[VG_QUANTITY_TEXT_MAX];
    struct vg_json text;
    if (vg_json_get(map, name) || !vg_pod_sum(spec, list, name, &sum))
        return 0;
    int err = vg_json_make_string(a, vg_quantity_text(&sum, room), &text);
    return err < 0 ? err : vg_json_object_add(a, map, name, text);
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

/* Huge pages are limited by the pod as they are by its containers together, unless it asks for some
 * itself. */
static int default_huge_limits(struct vg_arena *a, const struct vg_json *spec,
                               const struct vg_json *requests, struct vg_json *limits,
                               const struct vg_json *containers)
{
    int err = 0;
    if (containers)
        VG_JSON_FOREACH_ITEM (c, containers) {
            const struct vg_json *own = vg_json_at_path(c, "resources.limits");
            if (own)
                VG_JSON_FOREACH_MEMBER (m, own) {
                    if (vg_resource_is_huge(vg_json_key(m)) &&
                        !vg_json_get(requests, vg_json_key(m)) && err == 0)
                        err = default_sum(a, spec, "limits", vg_json_key(m), limits);
                }
        }
    return err;
}

/* A pod with limits asks for what its containers ask for together, else for as much as it may have.
 */
static int default_pod_requests(struct vg_arena *a, const struct vg_json *spec,
                                const struct vg_json *limits, struct vg_json *requests)
{
    int err = default_sum(a, spec, "requests", VG_SLICE_LIT("cpu"), requests);
    if (err == 0)
        err = default_sum(a, spec, "requests", VG_SLICE_LIT("memory"), requests);
    VG_JSON_FOREACH_MEMBER (m, limits) {
        struct vg_slice key = vg_json_key(m);
        bool is_supported = vg_slice_eq(key, VG_SLICE_LIT("cpu")) ||
                            vg_slice_eq(key, VG_SLICE_LIT("memory")) || vg_resource_is_huge(key);
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
    if (!resources || (limits.n == 0 && requests.n == 0) || limits.n + requests.n > POD_AMOUNTS_MAX)
        return 0;
    int err = default_huge_limits(a, spec, &requests, &limits, vg_json_get_str(spec, "containers"));
    if (err == 0)
        err = default_huge_limits(a, spec, &requests, &limits,
                                  vg_json_get_str(spec, "initContainers"));
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
