/* service_prepare.c - what is set and dropped in a service before it is checked: clusterIP and
 * clusterIPs follow each other, an update without them keeps them, and what belongs to a type goes
 * with it. */
#include "base/map.h"
#include "service.h"
#include "json/equal.h"

static const struct vg_json *get(const struct vg_json *spec, const char *name)
{
    return vg_json_get_str(spec, name);
}

static size_t count(const struct vg_json *list)
{
    return vg_json_is(list, VG_JSON_ARRAY) ? list->n : 0;
}

static bool is_same_text(const struct vg_json *a, const struct vg_json *b, const char *name)
{
    return vg_slice_eq(vg_json_text(get(a, name)), vg_json_text(get(b, name)));
}

static bool is_same_list(const struct vg_json *a, const struct vg_json *b, const char *name)
{
    const struct vg_json *x = get(a, name), *y = get(b, name);
    return count(x) == count(y) && (count(x) == 0 || vg_json_equal(x, y) == 1);
}

static void drop(struct vg_json *spec, const char *name)
{
    (void)vg_json_object_remove(spec, vg_slice_str(name));
}

static int set(struct vg_arena *a, struct vg_json *spec, const char *name, const struct vg_json *v)
{
    return v ? vg_json_object_set(a, spec, vg_slice_str(name), *v) : 0;
}

/* clusterIPs is made of clusterIP. */
static int follow(struct vg_arena *a, struct vg_json *spec)
{
    struct vg_json list = vg_json_array();
    int err = vg_json_array_push(a, &list, *get(spec, "clusterIP"));
    return err < 0 ? err : set(a, spec, "clusterIPs", &list);
}

static int keep_addresses(struct vg_arena *a, struct vg_json *spec, const struct vg_json *old)
{
    bool is_named = vg_service_is(spec, "ExternalName") || vg_service_is(old, "ExternalName");
    int err = 0;
    if (!is_named && vg_json_text(get(spec, "clusterIP")).n == 0)
        err = set(a, spec, "clusterIP", get(old, "clusterIP"));
    if (err == 0 && count(get(spec, "clusterIPs")) == 0 && count(get(old, "clusterIPs")) &&
        (!is_named || is_same_text(spec, old, "clusterIP")))
        err = set(a, spec, "clusterIPs", get(old, "clusterIPs"));
    if (err < 0 || is_same_text(spec, old, "clusterIP") || !is_same_list(spec, old, "clusterIPs"))
        return err;
    if (vg_json_text(get(spec, "clusterIP")).n)
        return follow(a, spec);
    drop(spec, "clusterIPs");
    return 0;
}

static bool has_node_ports(const struct vg_json *spec)
{
    return vg_service_is(spec, "NodePort") || vg_service_is(spec, "LoadBalancer");
}

static const struct vg_json *node_port(const struct vg_json *ports, uint32_t i)
{
    return vg_json_get_str(&ports->items[i], "nodePort");
}

/* The ports of nodes that a service names, by their number. 0, -ENOMEM. */
static int collect(struct vg_map *m, const struct vg_json *ports)
{
    int err = 0;
    vg_map_init(m, VG_MAP_BORROWS_KEYS);
    for (uint32_t i = 0; i < count(ports) && err >= 0; i++)
        if (node_port(ports, i))
            err = vg_map_put(m, vg_json_text(node_port(ports, i)), NULL, NULL);
    return err < 0 ? err : 0;
}

static bool has_port(const struct vg_map *m, const struct vg_json *number)
{
    return vg_map_find(m, vg_json_text(number)) != NULL;
}

static bool has_all(const struct vg_map *m, const struct vg_json *ports)
{
    for (uint32_t i = 0; i < count(ports); i++)
        if (node_port(ports, i) && !has_port(m, node_port(ports, i)))
            return false;
    return true;
}

/* Both have them: a port that names none keeps what the port of its name had, unless another has
 * taken it. */
static int keep_node_ports(struct vg_arena *a, struct vg_json *ports, const struct vg_json *old,
                           const struct vg_map *taken)
{
    VG_AUTO(map) by_name;
    int err = 0;
    vg_map_init(&by_name, VG_MAP_BORROWS_KEYS);
    for (uint32_t i = 0; i < count(old) && err >= 0; i++)
        if (node_port(old, i))
            err = vg_map_put(&by_name, vg_json_text(get(&old->items[i], "name")),
                             (void *)(uintptr_t)node_port(old, i), NULL);
    for (uint32_t i = 0; i < count(ports) && err >= 0; i++) {
        const struct vg_map_entry *e =
            node_port(ports, i)
                ? NULL
                : vg_map_find(&by_name, vg_json_text(get(&ports->items[i], "name")));
        if (e && !has_port(taken, e->value))
            err = set(a, &ports->items[i], "nodePort", e->value);
    }
    return err < 0 ? err : 0;
}

static int settle_node_ports(struct vg_arena *a, struct vg_json *spec, const struct vg_json *old)
{
    struct vg_json *ports = vg_json_get_str(spec, "ports");
    const struct vg_json *before = get(old, "ports");
    VG_AUTO(map) mine;
    VG_AUTO(map) theirs;
    vg_map_init(&theirs, VG_MAP_BORROWS_KEYS);
    int err = collect(&mine, ports);
    if (err == 0)
        err = collect(&theirs, before);
    if (err == 0 && has_node_ports(spec))
        return keep_node_ports(a, ports, before, &mine);
    if (err == 0 && has_all(&mine, before) && has_all(&theirs, ports))
        for (uint32_t i = 0; i < count(ports); i++)
            drop(&ports->items[i], "nodePort");
    return err;
}

/* What the old type had and the new one cannot have, unless the client asked for something else. */
static void drop_dependent(struct vg_json *spec, const struct vg_json *old)
{
    if (vg_service_is(spec, "ExternalName") && !vg_service_is(old, "ExternalName")) {
        if (is_same_text(spec, old, "clusterIP") && is_same_list(spec, old, "clusterIPs")) {
            drop(spec, "clusterIP");
            drop(spec, "clusterIPs");
        }
        if (is_same_list(spec, old, "ipFamilies"))
            drop(spec, "ipFamilies");
        if (is_same_text(spec, old, "ipFamilyPolicy"))
            drop(spec, "ipFamilyPolicy");
    }
    if (vg_service_has_health_check(old) && !vg_service_has_health_check(spec) &&
        is_same_text(spec, old, "healthCheckNodePort"))
        drop(spec, "healthCheckNodePort");
    if (vg_service_is(old, "LoadBalancer") && !vg_service_is(spec, "LoadBalancer")) {
        if (vg_json_is_true(get(spec, "allocateLoadBalancerNodePorts")) ==
            vg_json_is_true(get(old, "allocateLoadBalancerNodePorts")))
            drop(spec, "allocateLoadBalancerNodePorts");
        if (is_same_text(spec, old, "loadBalancerClass"))
            drop(spec, "loadBalancerClass");
    }
    if (vg_service_is_external(old) && !vg_service_is_external(spec) &&
        is_same_text(spec, old, "externalTrafficPolicy"))
        drop(spec, "externalTrafficPolicy");
}

int vg_service_prepare(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old)
{
    struct vg_json *spec = vg_json_get_str(obj, "spec"), *status = vg_json_get_str(obj, "status");
    if (!spec)
        return 0;
    if (!old) {
        bool is_one = vg_json_text(get(spec, "clusterIP")).n && count(get(spec, "clusterIPs")) == 0;
        return is_one ? follow(a, spec) : 0;
    }
    const struct vg_json *before = get(old, "spec");
    if (!vg_service_is(spec, "LoadBalancer") && status) {
        struct vg_json none = vg_json_object();
        int err = set(a, status, "loadBalancer", &none);
        if (err < 0)
            return err;
    }
    int err = keep_addresses(a, spec, before);
    if (err == 0 && has_node_ports(before))
        err = settle_node_ports(a, spec, before);
    if (err == 0 && vg_service_has_health_check(before) && vg_service_has_health_check(spec) &&
        !get(spec, "healthCheckNodePort"))
        err = set(a, spec, "healthCheckNodePort", get(before, "healthCheckNodePort"));
    if (err == 0)
        drop_dependent(spec, before);
    return err;
}
