/* path.c - URLs of resources, and the kinds that most programs need. */
#include <string.h>

#include "transport.h"

#define CORE(name, plural_, kind_, namespaced_)                                                    \
    const struct vigil_resource vigil_##name = {"", "v1", plural_, kind_, namespaced_}
#define IN_GROUP(name, group_, plural_, kind_)                                                     \
    const struct vigil_resource vigil_##name = {group_, "v1", plural_, kind_, true}

CORE(pods, "pods", "Pod", true);
CORE(nodes, "nodes", "Node", false);
CORE(services, "services", "Service", true);
CORE(configmaps, "configmaps", "ConfigMap", true);
CORE(secrets, "secrets", "Secret", true);
CORE(namespaces, "namespaces", "Namespace", false);
CORE(events, "events", "Event", true);
CORE(endpoints, "endpoints", "Endpoints", true);
CORE(serviceaccounts, "serviceaccounts", "ServiceAccount", true);
CORE(persistentvolumes, "persistentvolumes", "PersistentVolume", false);
CORE(persistentvolumeclaims, "persistentvolumeclaims", "PersistentVolumeClaim", true);
IN_GROUP(deployments, "apps", "deployments", "Deployment");
IN_GROUP(replicasets, "apps", "replicasets", "ReplicaSet");
IN_GROUP(statefulsets, "apps", "statefulsets", "StatefulSet");
IN_GROUP(daemonsets, "apps", "daemonsets", "DaemonSet");
IN_GROUP(jobs, "batch", "jobs", "Job");
IN_GROUP(cronjobs, "batch", "cronjobs", "CronJob");
IN_GROUP(leases, "coordination.k8s.io", "leases", "Lease");
IN_GROUP(endpointslices, "discovery.k8s.io", "endpointslices", "EndpointSlice");

int vg_path_escape(struct vg_buf *out, struct vg_slice s)
{
    static const char PLAIN[] = "-._~";
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || (c && strchr(PLAIN, c));
        int r = is_plain ? vg_buf_append_byte(out, c) : vg_buf_printf(out, "%%%02X", (uint8_t)c);
        if (r < 0)
            return r;
    }
    return 0;
}

static int add_part(struct vg_buf *out, const char *part)
{
    if (!part || !*part)
        return 0;
    int r = vg_buf_append_byte(out, '/');
    return r < 0 ? r : vg_path_escape(out, vg_slice_str(part));
}

int vg_path_resource(struct vg_buf *out, const struct vigil_resource *res, const char *ns,
                     const char *name, const char *sub)
{
    bool is_core = !res->group || !*res->group;
    bool has_ns = res->namespaced && ns && *ns;
    const char *parts[] = {is_core ? "api" : "apis",
                           is_core ? "" : res->group,
                           res->version,
                           has_ns ? "namespaces" : "",
                           has_ns ? ns : "",
                           res->plural,
                           name,
                           sub};
    int r = 0;
    for (size_t i = 0; r == 0 && i < VG_ARRAY_LEN(parts); i++)
        r = add_part(out, parts[i]);
    return r;
}

int vg_path_query(struct vg_buf *out, const char *name, const char *value)
{
    if (!value || !*value)
        return 0;
    bool is_first = !out->n || !memchr(out->p, '?', out->n);
    int r = vg_buf_printf(out, "%c%s=", is_first ? '?' : '&', name);
    return r < 0 ? r : vg_path_escape(out, vg_slice_str(value));
}
