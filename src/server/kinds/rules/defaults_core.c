/* defaults_core.c - defaults of the core group that depend on other fields; see defaults.h. */
#include <errno.h>

#include "check.h"
#include "defaults.h"

int vg_default_map(struct vg_arena *a, struct vg_json *v, const char *name,
                   const struct vg_json *from)
{
    struct vg_json *to = NULL;
    if (!vg_json_is(from, VG_JSON_OBJECT) || from->n == 0)
        return 0;
    int err = vg_default_object(a, v, name, &to);
    if (err < 0)
        return err;
    /* What is added has other keys than all that come: those that were there are asked. */
    struct vg_json given = *to;
    VG_AUTO(json_lookup) were;
    vg_json_lookup_init(&were, &given);
    for (uint32_t i = 0; i < from->n && err >= 0; i++) {
        const struct vg_json_member *m = &from->members[i], *was;
        err = vg_json_lookup_find(&were, vg_json_key(m), i, &was);
        if (err == 0)
            err = vg_json_object_add(a, to, vg_json_key(m), m->value);
    }
    return err < 0 ? err : 0;
}

static bool is_text(const struct vg_json *v, const char *name, const char *text)
{
    return vg_slice_eq(vg_json_text(vg_json_get_str(v, name)), vg_slice_str(text));
}

/* ---- services ---- */

static int default_affinity(struct vg_arena *a, struct vg_json *spec)
{
    struct vg_json config = vg_json_object(), client = vg_json_object();
    int err = vg_default_text(a, spec, "sessionAffinity", "None");
    if (err == 0 && is_text(spec, "sessionAffinity", "None"))
        (void)vg_json_object_remove(spec, VG_SLICE_LIT("sessionAffinityConfig"));
    if (err < 0 || !is_text(spec, "sessionAffinity", "ClientIP") ||
        vg_json_at_path(spec, "sessionAffinityConfig.clientIP.timeoutSeconds"))
        return err;
    err = vg_default_int(a, &client, "timeoutSeconds", 10800);
    if (err == 0)
        err = vg_json_object_set(a, &config, VG_SLICE_LIT("clientIP"), client);
    return err < 0 ? err
                   : vg_json_object_set(a, spec, VG_SLICE_LIT("sessionAffinityConfig"), config);
}

static int default_service_port(struct vg_arena *a, struct vg_json *port)
{
    const struct vg_json *number = vg_json_get_str(port, "port");
    if (vg_default_has(port, "targetPort") || !number)
        return 0;
    return vg_json_object_set(a, port, VG_SLICE_LIT("targetPort"), *number);
}

static int default_traffic(struct vg_arena *a, struct vg_json *spec)
{
    bool is_balanced = is_text(spec, "type", "LoadBalancer");
    bool is_node = is_text(spec, "type", "NodePort"),
         is_cluster = is_text(spec, "type", "ClusterIP");
    const struct vg_json *external = vg_json_get_str(spec, "externalIPs");
    bool is_external = is_balanced || is_node || (is_cluster && external && external->n > 0);
    int err = 0;
    if (is_external)
        err = vg_default_text(a, spec, "externalTrafficPolicy", "Cluster");
    if (err == 0 && (is_balanced || is_node || is_cluster) &&
        !vg_json_get_str(spec, "internalTrafficPolicy"))
        err = vg_default_text(a, spec, "internalTrafficPolicy", "Cluster");
    if (err == 0 && is_balanced)
        err = vg_default_bool(a, spec, "allocateLoadBalancerNodePorts", true);
    return err;
}

static int default_ingress_modes(struct vg_arena *a, struct vg_json *v)
{
    struct vg_json *list =
        vg_json_get_str(vg_json_get_str(vg_json_get_str(v, "status"), "loadBalancer"), "ingress");
    int err = 0;
    if (list)
        VG_JSON_FOREACH_ITEM (it, list)
            if (err == 0 && vg_default_has(it, "ip"))
                err = vg_default_text(a, it, "ipMode", "VIP");
    return err;
}

int vg_default_service(struct vg_arena *a, struct vg_json *v)
{
    struct vg_json *spec;
    int err = vg_default_object(a, v, "spec", &spec);
    if (err == 0)
        err = default_affinity(a, spec);
    if (err == 0)
        err = vg_default_text(a, spec, "type", "ClusterIP");
    struct vg_json *ports = err == 0 ? vg_json_get_str(spec, "ports") : NULL;
    if (ports)
        VG_JSON_FOREACH_ITEM (port, ports)
            if (err == 0)
                err = default_service_port(a, port);
    if (err == 0)
        err = default_traffic(a, spec);
    if (err == 0 && is_text(spec, "type", "LoadBalancer"))
        err = default_ingress_modes(a, v);
    return err;
}

/* ---- others ---- */

/* Selector and labels are those of the template. */
int vg_default_replication_controller(struct vg_arena *a, struct vg_json *v)
{
    struct vg_json *spec = vg_json_get_str(v, "spec"), *meta;
    const struct vg_json *labels = vg_json_at_path(spec, "template.metadata.labels");
    if (!vg_json_is(labels, VG_JSON_OBJECT))
        return 0;
    const struct vg_json *selector = vg_json_get_str(spec, "selector");
    int err = 0;
    if (!selector || selector->n == 0)
        err = vg_json_object_set(a, spec, VG_SLICE_LIT("selector"), *labels);
    if (err == 0)
        err = vg_default_object(a, v, "metadata", &meta);
    const struct vg_json *own = err == 0 ? vg_json_get_str(meta, "labels") : NULL;
    if (err == 0 && (!own || own->n == 0))
        err = vg_json_object_set(a, meta, VG_SLICE_LIT("labels"), *labels);
    return err;
}

int vg_default_node_status(struct vg_arena *a, struct vg_json *v)
{
    const struct vg_json *capacity = vg_json_get_str(v, "capacity");
    if (!capacity || vg_json_get_str(v, "allocatable"))
        return 0;
    return vg_json_object_set(a, v, VG_SLICE_LIT("allocatable"), *capacity);
}

/* Of containers: what is not limited by default is by its maximum; what is not asked for is what is
 * the limit, or the minimum. */
int vg_default_limit_range_item(struct vg_arena *a, struct vg_json *v)
{
    if (!is_text(v, "type", "Container"))
        return 0;
    int err = vg_default_map(a, v, "default", vg_json_get_str(v, "max"));
    if (err == 0)
        err = vg_default_map(a, v, "defaultRequest", vg_json_get_str(v, "default"));
    return err < 0 ? err : vg_default_map(a, v, "defaultRequest", vg_json_get_str(v, "min"));
}

static int default_phase(struct vg_arena *a, struct vg_json *v)
{
    struct vg_json *status;
    int err = vg_default_object(a, v, "status", &status);
    return err < 0 ? err : vg_default_text(a, status, "phase", "Pending");
}

int vg_default_persistent_volume(struct vg_arena *a, struct vg_json *v)
{
    struct vg_json *spec;
    int err = default_phase(a, v);
    if (err == 0)
        err = vg_default_object(a, v, "spec", &spec);
    if (err == 0)
        err = vg_default_text(a, spec, "persistentVolumeReclaimPolicy", "Retain");
    if (err == 0 && !vg_json_get_str(spec, "volumeMode"))
        err = vg_default_text(a, spec, "volumeMode", "Filesystem");
    return err;
}

int vg_default_persistent_volume_claim(struct vg_arena *a, struct vg_json *v)
{
    return default_phase(a, v);
}

/* podCIDR is the first of podCIDRs, and makes them when they say something else. */
int vg_default_node_spec(struct vg_arena *a, struct vg_json *v)
{
    const struct vg_json *one = vg_json_get_str(v, "podCIDR"),
                         *all = vg_json_get_str(v, "podCIDRs");
    const struct vg_json *first = vg_json_at(all, 0);
    if (vg_json_text(one).n == 0)
        return first ? vg_json_object_set(a, v, VG_SLICE_LIT("podCIDR"), *first) : 0;
    if (first && vg_slice_eq(vg_json_text(one), vg_json_text(first)))
        return 0;
    struct vg_json list = vg_json_array();
    int err = vg_json_array_push(a, &list, *one);
    return err < 0 ? err : vg_json_object_set(a, v, VG_SLICE_LIT("podCIDRs"), list);
}
