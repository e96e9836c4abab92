/* service_ports.c - the ports of nodes that a service takes and gives back; see service_claims.c.
 */
#include <stdio.h>

#include "service_claiming.h"

static uint32_t int_of(const struct vg_json *v)
{
    int64_t n = 0;
    return v && vg_json_to_int64(v, &n) == 0 && n > 0 && n <= 65535 ? (uint32_t)n : 0;
}

static uint32_t node_port(const struct vg_json *spec, size_t i)
{
    return int_of(vg_json_get_str(&vg_json_get_str(spec, "ports")->items[i], "nodePort"));
}

bool vg_service_has_node_ports(const struct vg_json *spec)
{
    return vg_service_is(spec, "NodePort") || vg_service_is(spec, "LoadBalancer");
}

static bool wants_node_ports(const struct vg_json *spec)
{
    const struct vg_json *allocate = vg_json_get_str(spec, "allocateLoadBalancerNodePorts");
    return vg_service_is(spec, "NodePort") ||
           (vg_service_is(spec, "LoadBalancer") && (!allocate || vg_json_is_true(allocate)));
}

/* Is the number among those of the first n ports? */
static bool has_number(const struct vg_json *spec, size_t n, uint32_t number)
{
    for (size_t i = 0; i < n; i++) {
        if (node_port(spec, i) == number)
            return true;
    }
    return false;
}

static void refuse_port(struct vg_claiming *k, size_t i, uint32_t wanted, int err)
{
    struct vg_at ports = vg_at(&k->at, "ports"), port = vg_at_item(&ports, i),
                 at = vg_at(&port, "nodePort");
    char text[16];
    struct vg_slice value = vg_slice(text, (size_t)snprintf(text, sizeof text, "%u", wanted));
    if (err == VIGIL_E_EXISTS)
        vg_bad_value(k->c, &at, value, "provided port is already allocated");
    else if (err == VIGIL_E_NOT_FOUND)
        vg_bad_value(k->c, &at, value,
                     "provided port is not in the valid range. The range of valid ports is %.*s",
                     VG_SLICE_ARG(k->cl->ports));
    else if (err == VIGIL_E_STORE_FULL || err == VIGIL_E_TOO_LARGE)
        k->cl->failure = VG_SLICE_LIT("failed to allocate a nodePort: range is full");
    else
        k->err = err;
}

/* The ports are our own, as prepare left them: they may be set. */
static void set_node_port(struct vg_claiming *k, size_t i, uint32_t number)
{
    struct vg_json v;
    struct vg_json *port = &vg_json_get_str(k->spec, "ports")->items[i];
    if (k->err == 0)
        k->err = vg_json_make_uint(k->cl->arena, number, &v);
    if (k->err == 0)
        k->err = vg_json_object_set(k->cl->arena, port, VG_SLICE_LIT("nodePort"), v);
}

/* What another port of the same number was given, or asks for. */
static uint32_t port_of_twin(const struct vg_json *spec, size_t i)
{
    const struct vg_json *ports = vg_json_get_str(spec, "ports");
    uint32_t number = int_of(vg_json_get_str(&ports->items[i], "port"));
    for (size_t j = 0; j < ports->n; j++) {
        if (int_of(vg_json_get_str(&ports->items[j], "port")) == number && node_port(spec, j))
            return node_port(spec, j);
    }
    return 0;
}

/* A port that asks for a number takes it, once for all ports that share it. One that asks for none
 * is given that of its twin (of a new service alone, as there), or any. */
static void take_port(struct vg_claiming *k, size_t i)
{
    uint32_t wanted = node_port(k->spec, i), got;
    bool was_ours = k->old && wanted &&
                    has_number(k->old, vg_claiming_n(vg_json_get_str(k->old, "ports")), wanted);
    if (wanted && (was_ours || has_number(k->spec, i, wanted)))
        return;
    uint32_t twin = !wanted && !k->old ? port_of_twin(k->spec, i) : 0;
    if (twin) {
        bool is_taken = has_number(k->spec, i, twin);
        set_node_port(k, i, twin);
        wanted = twin;
        if (is_taken)
            return;
    }
    int err = k->cl->ops->take_port(k->cl, wanted, &got);
    if (err < 0)
        refuse_port(k, i, wanted, err);
    else if (!wanted)
        set_node_port(k, i, got);
}

void vg_service_take_ports(struct vg_claiming *k)
{
    const struct vg_json *ports = vg_json_get_str(k->spec, "ports");
    for (size_t i = 0; i < vg_claiming_n(ports) && !vg_claiming_is_over(k) && !k->cl->failure.n;
         i++) {
        if (node_port(k->spec, i) || wants_node_ports(k->spec))
            take_port(k, i);
    }
}

void vg_service_give_ports(struct vg_claiming *k)
{
    const struct vg_json *ports = vg_json_get_str(k->old, "ports");
    for (size_t i = 0; i < vg_claiming_n(ports) && k->err == 0; i++) {
        uint32_t number = node_port(k->old, i);
        bool is_kept =
            k->spec && vg_service_has_node_ports(k->spec) &&
            has_number(k->spec, vg_claiming_n(vg_json_get_str(k->spec, "ports")), number);
        if (number && !is_kept && !has_number(k->old, i, number))
            k->err = k->cl->ops->give_port(k->cl, number);
    }
}

void vg_service_settle_health_port(struct vg_claiming *k)
{
    bool needed = k->old && vg_service_has_health_check(k->old);
    bool needs = k->spec && vg_service_has_health_check(k->spec);
    uint32_t before = int_of(vg_json_get_str(k->old, "healthCheckNodePort")), got;
    if (needed && !needs && before)
        k->err = k->cl->ops->give_port(k->cl, before);
    if (!needs || needed)
        return;
    uint32_t wanted = int_of(vg_json_get_str(k->spec, "healthCheckNodePort"));
    int err = k->cl->ops->take_port(k->cl, wanted, &got);
    struct vg_json v;
    if (err == VIGIL_E_EXISTS || err == VIGIL_E_NOT_FOUND)
        k->err = vg_arena_printf(
            k->cl->arena, &k->cl->failure,
            "failed to allocate requested HealthCheck NodePort %u: provided "
            "port is %s",
            wanted, err == VIGIL_E_EXISTS ? "already allocated" : "not in the valid range");
    else if (err == VIGIL_E_STORE_FULL || err == VIGIL_E_TOO_LARGE)
        k->cl->failure = VG_SLICE_LIT("failed to allocate a HealthCheck NodePort: range is full");
    else if (err < 0)
        k->err = err;
    else if (!wanted && (k->err = vg_json_make_uint(k->cl->arena, got, &v)) == 0)
        k->err = vg_json_object_set(k->cl->arena, k->spec, VG_SLICE_LIT("healthCheckNodePort"), v);
}
