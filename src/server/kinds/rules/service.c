/* service.c - the rules of services: ports, affinity, external addresses, traffic policies, and the
 * status that a load balancer sets. Addresses of the cluster are in service_addresses.c, what is
 * set before all checks in service_prepare.c. Left out: nothing is allocated, so addresses and
 * ports of nodes are not checked against ranges, and a missing healthCheckNodePort is taken. */
#include "service.h"

#include <stdio.h>

#include "ip.h"
#include "names.h"

static const char *const protocols[] = {"SCTP", "TCP", "UDP", NULL};

bool vg_service_is_headless(const struct vg_json *spec)
{
    const struct vg_json *ips = vg_json_get_str(spec, "clusterIPs");
    return vg_json_is(ips, VG_JSON_ARRAY) && ips->n == 1 &&
           vg_slice_eq(vg_json_text(ips->items), VG_SLICE_LIT("None"));
}

bool vg_service_is_external(const struct vg_json *spec)
{
    const struct vg_json *external = vg_json_get_str(spec, "externalIPs");
    return vg_service_is(spec, "LoadBalancer") || vg_service_is(spec, "NodePort") ||
           (vg_service_is(spec, "ClusterIP") && external && external->n > 0);
}

bool vg_service_has_health_check(const struct vg_json *spec)
{
    return vg_service_is(spec, "LoadBalancer") &&
           vg_slice_eq(vg_json_text(vg_json_get_str(spec, "externalTrafficPolicy")),
                       VG_SLICE_LIT("Local"));
}

/* ---- types and ports ---- */

static void check_external_name(struct vg_check *c, const struct vg_at *spec)
{
    static const char *const unset[] = {"clusterIPs", "ipFamilies", "ipFamilyPolicy", NULL};
    struct vg_at name = vg_at(spec, "externalName");
    for (const char *const *u = unset; *u; u++) {
        struct vg_at at = vg_at(spec, *u);
        if (vg_at_is_set(&at) && (!vg_json_is(at.v, VG_JSON_ARRAY) || at.v->n))
            vg_forbidden(c, &at, "may not be set for ExternalName services");
    }
    struct vg_slice text = vg_at_text(&name);
    if (text.n && text.p[text.n - 1] == '.')
        text.n--;
    struct vg_json short_name = vg_json_string_ref(text);
    name.v = &short_name;
    if (text.n)
        (void)vg_check_dns_subdomain(c, &name);
    else
        vg_required(c, &name, NULL);
}

static void check_type(struct vg_check *c, const struct vg_at *spec)
{
    struct vg_at type = vg_at(spec, "type"), ips = vg_at(spec, "clusterIPs");
    struct vg_at first = vg_at_item(&ips, 0), ports = vg_at(spec, "ports");
    bool is_headless = vg_service_is_headless(spec->v);
    if (vg_at_n(&ports) == 0 && !is_headless && !vg_at_is(&type, "ExternalName"))
        vg_required(c, &ports, NULL);
    if (is_headless && (vg_at_is(&type, "LoadBalancer") || vg_at_is(&type, "NodePort")))
        vg_bad_text(c, &first, "may not be set to 'None' for %.*s services",
                    VG_SLICE_ARG(vg_at_text(&type)));
    if (vg_at_is(&type, "ExternalName"))
        check_external_name(c, spec);
}

static void check_port(struct vg_check *c, const struct vg_at *at, bool needs_name,
                       struct vg_names *names)
{
    struct vg_at name = vg_at(at, "name"), number = vg_at(at, "port");
    struct vg_at protocol = vg_at(at, "protocol"), target = vg_at(at, "targetPort");
    struct vg_at application = vg_at(at, "appProtocol");
    if (needs_name && vg_at_text(&name).n == 0) {
        vg_required(c, &name, NULL);
    } else if (vg_at_text(&name).n) {
        (void)vg_check_dns_label(c, &name);
        if (!vg_names_add(c, names, vg_at_text(&name), at->v))
            vg_duplicate(c, &name);
    }
    (void)vg_check_port(c, &number);
    if (vg_check_given(c, &protocol))
        (void)vg_check_one_of(c, &protocol, protocols);
    (void)vg_check_port_or_name(c, &target);
    if (vg_at_is_set(&application))
        (void)vg_check_qualified(c, &application);
}

/* The same pair of protocol and number twice. The pairs are texts of the check's arena. */
static bool is_new_pair(struct vg_check *c, struct vg_names *seen, const struct vg_at *port,
                        const char *number)
{
    struct vg_at protocol = vg_at(port, "protocol"), n = vg_at(port, number);
    char text[64];
    int len = snprintf(text, sizeof text, "%.*s/%lld", VG_SLICE_ARG(vg_at_text(&protocol)),
                       (long long)vg_at_int(&n));
    struct vg_slice kept;
    if (len >= (int)sizeof text)
        return true; /* no protocol is that long: it was blamed already */
    if (vg_arena_keep(c->arena, vg_slice(text, (size_t)len), &kept) < 0) {
        c->errors->failed = true;
        return true;
    }
    return vg_names_add(c, seen, kept, port->v);
}

static void check_port_pairs(struct vg_check *c, const struct vg_at *ports)
{
    VG_AUTO(names) nodes = {.n = 0};
    VG_AUTO(names) numbers = {.n = 0};
    if (vg_at_n(ports) < 2)
        return;
    VG_CHECK_EACH (c, port, ports) {
        struct vg_at node = vg_at(&port, "nodePort");
        if (vg_at_int(&node) && !is_new_pair(c, &nodes, &port, "nodePort"))
            vg_duplicate(c, &node);
    }
    VG_CHECK_EACH (c, port, ports) {
        struct vg_at protocol = vg_at(&port, "protocol"), number = vg_at(&port, "port");
        char json[160];
        if (is_new_pair(c, &numbers, &port, "port"))
            continue;
        int n = snprintf(json, sizeof json,
                         "{\"Name\":\"\",\"Protocol\":\"%.*s\",\"AppProtocol\":null,\"Port\":%lld,"
                         "\"TargetPort\":0,\"NodePort\":0}",
                         VG_SLICE_ARG(vg_at_text(&protocol)), (long long)vg_at_int(&number));
        vg_duplicate_value(c, &port, vg_slice(json, (size_t)n));
    }
}

static void check_ports(struct vg_check *c, const struct vg_at *spec)
{
    struct vg_at ports = vg_at(spec, "ports");
    VG_AUTO(names) names = {.n = 0};
    VG_CHECK_EACH (c, port, &ports)
        check_port(c, &port, vg_at_n(&ports) > 1, &names);
}

/* ---- affinity, external addresses, sources ---- */

static void check_affinity(struct vg_check *c, const struct vg_at *spec)
{
    static const char *const supported[] = {"ClientIP", "None", NULL};
    struct vg_at affinity = vg_at(spec, "sessionAffinity");
    struct vg_at config = vg_at(spec, "sessionAffinityConfig"), client = vg_at(&config, "clientIP");
    struct vg_at timeout = vg_at(&client, "timeoutSeconds");
    if (vg_check_given(c, &affinity))
        (void)vg_check_one_of(c, &affinity, supported);
    if (vg_at_is(&affinity, "None") && vg_at_is_set(&config))
        vg_forbidden(c, &config, "must not be set when session affinity is None");
    if (!vg_at_is(&affinity, "ClientIP"))
        return;
    const struct vg_at *missing = !vg_at_is_set(&config)    ? &config
                                  : !vg_at_is_set(&client)  ? &client
                                  : !vg_at_is_set(&timeout) ? &timeout
                                                            : NULL;
    if (missing)
        vg_required(c, missing, "when session affinity type is ClientIP");
    else if (vg_at_int(&timeout) <= 0 || vg_at_int(&timeout) > 86400)
        vg_bad_int(c, &timeout, "must be greater than 0 and less than 86400");
}

static struct vg_slice trim(struct vg_slice s)
{
    while (s.n && strchr(" \t\n\r\v\f", s.p[0]))
        s = vg_slice(s.p + 1, s.n - 1);
    while (s.n && strchr(" \t\n\r\v\f", s.p[s.n - 1]))
        s.n--;
    return s;
}

static void check_source(struct vg_check *c, const struct vg_at *at, struct vg_slice text,
                         const struct vg_json *before)
{
    struct vg_json v = vg_json_string_ref(trim(text));
    struct vg_at trimmed = *at;
    trimmed.v = &v;
    (void)vg_check_cidr_or_old(c, &trimmed, before);
}

/* The ranges in the annotation that came before the field. */
static void check_source_annotation(struct vg_check *c, const struct vg_at *obj,
                                    const struct vg_json *old)
{
    const struct vg_slice key =
        VG_SLICE_LIT("service.beta.kubernetes.io/load-balancer-source-ranges");
    struct vg_at meta = vg_at(obj, "metadata"), annotations = vg_at(&meta, "annotations");
    const struct vg_json_member *m = vg_json_member(annotations.v, key);
    if (!m)
        return;
    struct vg_at at = vg_at_key(&annotations, m);
    if (!vg_service_is(vg_json_get_str(obj->v, "spec"), "LoadBalancer"))
        vg_forbidden(c, &at, "may only be used when `type` is 'LoadBalancer'");
    const struct vg_json *before = vg_json_get(vg_json_at_path(old, "metadata.annotations"), key);
    struct vg_slice text = vg_at_text(&at);
    if ((before && vg_slice_eq(vg_json_text(before), text)) || trim(text).n == 0)
        return;
    for (size_t from = 0, i = 0; i <= text.n; i++)
        if (i == text.n || text.p[i] == ',') {
            check_source(c, &at, vg_slice(text.p + from, i - from), NULL);
            from = i + 1;
        }
}

static void check_sources(struct vg_check *c, const struct vg_at *obj, const struct vg_at *spec,
                          const struct vg_json *old)
{
    const struct vg_json *list = vg_json_get_str(spec->v, "loadBalancerSourceRanges");
    struct vg_at ranges = vg_at_of(spec, "LoadBalancerSourceRanges", list);
    if (vg_at_n(&ranges) == 0) {
        check_source_annotation(c, obj, old);
        return;
    }
    if (!vg_service_is(spec->v, "LoadBalancer"))
        vg_forbidden(c, &ranges, "may only be used when `type` is 'LoadBalancer'");
    VG_CHECK_EACH (c, range, &ranges)
        check_source(c, &range, vg_at_text(&range),
                     vg_json_at_path(old, "spec.loadBalancerSourceRanges"));
}

static void check_externals(struct vg_check *c, const struct vg_at *spec, const struct vg_json *old)
{
    static const char *const types[] = {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort",
                                        NULL};
    struct vg_at list = vg_at(spec, "externalIPs"), type = vg_at(spec, "type");
    struct vg_at ports = vg_at(spec, "ports");
    VG_CHECK_EACH (c, ip, &list) {
        if (vg_check_ip_or_old(c, &ip, vg_json_at_path(old, "spec.externalIPs")))
            (void)vg_check_endpoint_ip(c, &ip);
    }
    if (vg_check_given(c, &type))
        (void)vg_check_one_of(c, &type, types);
    if (!vg_at_is(&type, "ClusterIP"))
        return;
    VG_CHECK_EACH (c, port, &ports) {
        struct vg_at node = vg_at(&port, "nodePort");
        if (vg_at_int(&node))
            vg_forbidden(c, &node, "may not be used when `type` is 'ClusterIP'");
    }
}

/* ---- load balancers and traffic ---- */

static void check_balancer_class(struct vg_check *c, const struct vg_at *spec)
{
    struct vg_at class = vg_at(spec, "loadBalancerClass");
    if (!vg_at_is_set(&class))
        return;
    if (vg_service_is(spec->v, "LoadBalancer"))
        (void)vg_check_qualified(c, &class);
    else
        vg_forbidden(c, &class, "may only be used when `type` is 'LoadBalancer'");
}

static void check_balancer(struct vg_check *c, const struct vg_at *spec)
{
    struct vg_at allocate = vg_at(spec, "allocateLoadBalancerNodePorts");
    if (vg_at_is_set(&allocate) && !vg_service_is(spec->v, "LoadBalancer"))
        vg_forbidden(c, &allocate, "may only be used when `type` is 'LoadBalancer'");
    check_balancer_class(c, spec);
}

static void check_traffic(struct vg_check *c, const struct vg_at *spec)
{
    static const char *const policies[] = {"Cluster", "Local", NULL};
    static const char *const distributions[] = {"PreferClose", "PreferSameZone", "PreferSameNode",
                                                NULL};
    struct vg_at external = vg_at(spec, "externalTrafficPolicy");
    struct vg_at internal = vg_at(spec, "internalTrafficPolicy");
    struct vg_at health = vg_at(spec, "healthCheckNodePort");
    struct vg_at distribution = vg_at(spec, "trafficDistribution");
    if (!vg_service_is_external(spec->v)) {
        if (vg_at_text(&external).n)
            vg_bad_text(c, &external, "may only be set for externally-accessible services");
    } else if (vg_check_given(c, &external)) {
        (void)vg_check_one_of(c, &external, policies);
    }
    if (vg_at_int(&health) && vg_service_has_health_check(spec->v))
        (void)vg_check_port(c, &health);
    else if (vg_at_int(&health))
        vg_bad_int(c, &health,
                   "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is "
                   "'Local'");
    if (vg_at_is_set(&internal))
        (void)vg_check_one_of(c, &internal, policies);
    if (vg_at_is_set(&distribution))
        (void)vg_check_one_of(c, &distribution, distributions);
}

/* ---- the whole ---- */

static void check_topology(struct vg_check *c, const struct vg_at *obj)
{
    const struct vg_slice old_key = VG_SLICE_LIT("service.kubernetes.io/topology-aware-hints");
    const struct vg_slice key = VG_SLICE_LIT("service.kubernetes.io/topology-mode");
    struct vg_at meta = vg_at(obj, "metadata"), annotations = vg_at(&meta, "annotations");
    const struct vg_json *hints = vg_json_get(annotations.v, old_key);
    const struct vg_json_member *mode = vg_json_member(annotations.v, key);
    if (!hints || !mode || vg_slice_eq(vg_json_text(hints), vg_json_text(&mode->value)))
        return;
    struct vg_at at = vg_at_key(&annotations, mode);
    vg_bad_text(c, &at, "must match annotations[%.*s] when both are specified",
                VG_SLICE_ARG(old_key));
}

static void check_with(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), ports = vg_at(&spec, "ports");
    struct vg_at selector = vg_at(&spec, "selector");
    check_topology(c, obj);
    check_type(c, &spec);
    check_ports(c, &spec);
    vg_check_labels(c, &selector);
    check_affinity(c, &spec);
    vg_service_check_addresses(c, &spec, vg_json_at_path(old, "spec.clusterIPs"));
    check_externals(c, &spec, old);
    check_port_pairs(c, &ports);
    check_sources(c, obj, &spec, old);
    check_balancer(c, &spec);
    check_traffic(c, &spec);
}

static void check(struct vg_check *c, const struct vg_at *obj)
{
    check_with(c, obj, NULL);
}

static void check_update(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), class = vg_at(&spec, "loadBalancerClass");
    struct vg_at health = vg_at(&spec, "healthCheckNodePort");
    const struct vg_json *before = vg_json_get_str(old, "spec");
    vg_service_check_address_update(c, &spec, before);
    if (vg_service_is(before, "LoadBalancer") && vg_service_is(spec.v, "LoadBalancer") &&
        !vg_slice_eq(vg_at_text(&class),
                     vg_json_text(vg_json_get_str(before, "loadBalancerClass"))))
        vg_bad(c, &class, "may not change once set");
    check_balancer_class(c, &spec);
    struct vg_at old_spec = vg_at_root(before),
                 old_health = vg_at(&old_spec, "healthCheckNodePort");
    if (vg_service_has_health_check(before) && vg_service_has_health_check(spec.v) &&
        vg_at_int(&health) != vg_at_int(&old_health))
        vg_forbidden(c, &health, "field is immutable");
    check_with(c, obj, old);
}

/* ---- status ---- */

static bool has_address(const struct vg_json *list, struct vg_slice ip)
{
    for (uint32_t i = 0; vg_json_is(list, VG_JSON_ARRAY) && i < list->n; i++)
        if (vg_slice_eq(vg_json_text(vg_json_get_str(&list->items[i], "ip")), ip))
            return true;
    return false;
}

/* An address that is wrong may stay. */
void vg_check_balancer_item(struct vg_check *c, const struct vg_at *item,
                            const struct vg_json *before, bool has_mode)
{
    static const char *const modes[] = {"Proxy", "VIP", NULL};
    struct vg_at ip = vg_at(item, "ip"), host = vg_at(item, "hostname"),
                 mode = vg_at(item, "ipMode");
    struct vg_ip parsed;
    size_t found = c->errors->n;
    if (vg_at_text(&ip).n && !vg_check_ip(c, &ip) && !vg_field_errors_is_full(c->errors) &&
        has_address(before, vg_at_text(&ip)))
        vg_field_errors_cut(c->errors, found);
    if (has_mode && !vg_at_is_set(&mode) && vg_at_text(&ip).n)
        vg_required(c, &mode, "must be specified when `ip` is set");
    else if (vg_at_is_set(&mode) && vg_at_text(&ip).n == 0)
        vg_forbidden(c, &mode, "may not be specified when `ip` is not set");
    else if (vg_at_is_set(&mode))
        (void)vg_check_one_of(c, &mode, modes);
    if (vg_at_text(&host).n == 0)
        return;
    (void)vg_check_dns_subdomain(c, &host);
    if (vg_ip_parse(vg_at_text(&host), &parsed))
        vg_bad_text(c, &host, "must be a DNS name, not an IP address");
}

static void check_status(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at status = vg_at(obj, "status"), balancer = vg_at(&status, "loadBalancer");
    struct vg_at list = vg_at(&balancer, "ingress");
    if (!vg_service_is(vg_json_get_str(obj->v, "spec"), "LoadBalancer") && vg_at_n(&list)) {
        vg_forbidden(c, &list, "may only be used when `spec.type` is 'LoadBalancer'");
        return;
    }
    const struct vg_json *before = vg_json_at_path(old, "status.loadBalancer.ingress");
    VG_CHECK_EACH (c, item, &list)
        vg_check_balancer_item(c, &item, before, true);
}

void vg_warn_balancer_status(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at status = vg_at(obj, "status"), balancer = vg_at(&status, "loadBalancer");
    struct vg_at list = vg_at(&balancer, "ingress");
    (void)old;
    VG_CHECK_EACH (c, item, &list) {
        struct vg_at ip = item;
        ip.v = vg_json_get_str(item.v, "ip");
        vg_caution_ip(c, &ip);
    }
}

/* ---- warnings ---- */

static void warn_headless(struct vg_check *c, const struct vg_at *spec)
{
    struct vg_at affinity = vg_at(spec, "sessionAffinity"), ip = vg_at(spec, "loadBalancerIP");
    struct vg_at externals = vg_at(spec, "externalIPs");
    if (vg_at_text(&ip).n)
        vg_caution(c, "spec.loadBalancerIP is ignored for headless services");
    if (vg_at_n(&externals))
        vg_caution(c, "spec.externalIPs is ignored for headless services");
    if (!vg_at_is(&affinity, "None"))
        vg_caution(c, "spec.SessionAffinity is ignored for headless services");
}

static void warn(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), ip = vg_at(&spec, "clusterIP");
    struct vg_at ips = vg_at(&spec, "clusterIPs"), externals = vg_at(&spec, "externalIPs");
    struct vg_at balancer = vg_at(&spec, "loadBalancerIP"), name = vg_at(&spec, "externalName");
    struct vg_at ranges = vg_at(&spec, "loadBalancerSourceRanges");
    struct vg_at distribution = vg_at(&spec, "trafficDistribution");
    bool is_headless = vg_service_is(spec.v, "ClusterIP") && vg_at_is(&ip, "None");
    bool is_name = vg_service_is(spec.v, "ExternalName");
    (void)old;
    if (vg_json_get_str(vg_json_at_path(obj->v, "metadata.annotations"),
                        "service.kubernetes.io/topology-aware-hints"))
        vg_caution(c, "annotation service.kubernetes.io/topology-aware-hints is deprecated, please "
                      "use service.kubernetes.io/topology-mode instead");
    if (vg_at_text(&ip).n && !vg_at_is(&ip, "None"))
        VG_CHECK_EACH (c, item, &ips)
            vg_caution_ip(c, &item);
    if (is_headless)
        warn_headless(c, &spec);
    VG_CHECK_EACH (c, item, &externals)
        vg_caution_ip(c, &item);
    if (vg_at_n(&externals) && !is_headless && !is_name)
        vg_caution(c, "spec.externalIPs is deprecated and may no longer be implemented in some "
                      "clusters");
    vg_caution_ip(c, &balancer);
    VG_CHECK_EACH (c, item, &ranges)
        vg_caution_cidr(c, &item);
    if (is_name && vg_at_n(&externals))
        vg_caution(c, "spec.externalIPs is ignored when spec.type is \"ExternalName\"");
    if (!is_name && vg_at_text(&name).n)
        vg_caution(c, "spec.externalName is ignored when spec.type is not \"ExternalName\"");
    if (vg_at_is(&distribution, "PreferClose"))
        vg_caution_at(c, &distribution, "\"PreferClose\" is deprecated; use \"PreferSameZone\"");
}

const struct vg_rules vg_rules_service = {.group = "",
                                          .kind = "Service",
                                          .prepare = vg_service_prepare,
                                          .claim = vg_service_claim,
                                          .check = check,
                                          .check_update = check_update,
                                          .check_status = check_status,
                                          .warn = warn,
                                          .warn_status = vg_warn_balancer_status};
