/* endpoints.c - the rules of Endpoints and EndpointSlices: addresses, ports, hints. What was stored
 * by older rules may stay: a list that an update leaves as it is is not blamed. */
#include "ip.h"
#include "names.h"
#include "rules.h"
#include "json/equal.h"

#define ENDPOINTS_MAX 1000u
#define ADDRESSES_MAX 100u
#define PORTS_MAX 20000u
#define TOPOLOGY_MAX 16u
#define HINTS_MAX 8u

static const char *const protocols[] = {"SCTP", "TCP", "UDP", NULL};

/* Forget what was found since `before` when the value is as it was. */
static void forgive(struct vg_check *c, size_t before, const struct vg_json *now,
                    const struct vg_json *old)
{
    if (c->errors->n > before && now && old && vg_check_same(c, now, old))
        vg_field_errors_cut(c->errors, before);
}

/* Labels of controllers whose addresses are known to be in canonical form. */
static bool is_managed_by(const struct vg_at *obj, const char *const *names)
{
    const struct vg_json *labels = vg_json_at_path(obj->v, "metadata.labels");
    struct vg_slice by =
        vg_json_text(vg_json_get_str(labels, "endpointslice.kubernetes.io/managed-by"));
    return vg_text_is_one_of(by, names);
}

/* ---- Endpoints ---- */

static void check_address(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at ip = vg_at(at, "ip"), host = vg_at(at, "hostname"), node = vg_at(at, "nodeName");
    (void)vg_check_ip(c, &ip);
    if (vg_at_text(&host).n)
        (void)vg_check_dns_label(c, &host);
    if (vg_at_is_set(&node))
        (void)vg_check_dns_subdomain(c, &node);
    (void)vg_check_endpoint_ip(c, &ip);
}

static void check_port(struct vg_check *c, const struct vg_at *at, bool needs_name)
{
    struct vg_at name = vg_at(at, "name"), number = vg_at(at, "port");
    struct vg_at protocol = vg_at(at, "protocol"), application = vg_at(at, "appProtocol");
    if (needs_name && vg_at_text(&name).n == 0)
        vg_required(c, &name, NULL);
    else if (vg_at_text(&name).n)
        (void)vg_check_dns_label(c, &name);
    (void)vg_check_port(c, &number);
    if (vg_check_given(c, &protocol))
        (void)vg_check_one_of(c, &protocol, protocols);
    if (vg_at_is_set(&application))
        (void)vg_check_qualified(c, &application);
}

static void check_subset(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at ready = vg_at(at, "addresses"), other = vg_at(at, "notReadyAddresses");
    struct vg_at ports = vg_at(at, "ports");
    if (vg_at_n(&ready) == 0 && vg_at_n(&other) == 0)
        vg_required(c, at, "must specify `addresses` or `notReadyAddresses`");
    VG_CHECK_EACH (c, address, &ready)
        check_address(c, &address);
    VG_CHECK_EACH (c, address, &other)
        check_address(c, &address);
    VG_CHECK_EACH (c, port, &ports)
        check_port(c, &port, vg_at_n(&ports) > 1);
}

static void check_endpoints(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at subsets = vg_at(obj, "subsets");
    VG_CHECK_EACH (c, subset, &subsets)
        check_subset(c, &subset);
}

static void check_endpoints_update(struct vg_check *c, const struct vg_at *obj,
                                   const struct vg_json *old)
{
    size_t before = c->errors->n;
    check_endpoints(c, obj);
    forgive(c, before, vg_json_get_str(obj->v, "subsets"), vg_json_get_str(old, "subsets"));
}

static void warn_addresses(struct vg_check *c, const struct vg_at *list)
{
    VG_CHECK_EACH (c, address, list) {
        struct vg_at ip = vg_at(&address, "ip");
        vg_caution_ip(c, &ip);
    }
}

static void warn_endpoints(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    const struct vg_json *labels = vg_json_at_path(obj->v, "metadata.labels");
    struct vg_slice by =
        vg_json_text(vg_json_get_str(labels, "endpoints.kubernetes.io/managed-by"));
    struct vg_at subsets = vg_at(obj, "subsets");
    (void)old;
    if (vg_slice_eq(by, VG_SLICE_LIT("endpoint-controller")))
        return;
    VG_CHECK_EACH (c, subset, &subsets) {
        struct vg_at ready = vg_at(&subset, "addresses"),
                     other = vg_at(&subset, "notReadyAddresses");
        warn_addresses(c, &ready);
        warn_addresses(c, &other);
    }
}

const struct vg_rules vg_rules_endpoints = {.group = "",
                                            .kind = "Endpoints",
                                            .check = check_endpoints,
                                            .check_update = check_endpoints_update,
                                            .warn = warn_endpoints};

/* ---- slices ---- */

/* A name with dots, each part a label. */
static void check_domain(struct vg_check *c, const struct vg_at *at)
{
    struct vg_slice s = vg_at_text(at);
    struct vg_name_reasons why = {0};
    VG_AUTO(buf) all = {0};
    if (s.n == 0) {
        vg_required(c, at, NULL);
        return;
    }
    s.n -= s.p[s.n - 1] == '.';
    bool is_ok = vg_validate_dns1123_subdomain(s, VG_NAME_CHARACTERS, &why);
    if (is_ok && !memchr(s.p, '.', s.n)) {
        vg_bad_value(c, at, vg_json_quoted(c, s),
                     "should be a domain with at least two segments separated by dots");
        return;
    }
    struct vg_slice blamed = s;
    for (size_t from = 0, i = 0; is_ok && i <= s.n; i++)
        if (i == s.n || s.p[i] == '.') {
            blamed = vg_slice(s.p + from, i - from);
            is_ok = vg_validate_dns1123_label(blamed, VG_NAME_CHARACTERS, &why);
            from = i + 1;
        }
    if (is_ok)
        return;
    for (uint32_t i = 0; i < why.n; i++)
        c->errors->failed |= vg_buf_printf(&all, "%s%s", i ? "," : "", why.v[i]) < 0;
    vg_bad_value(c, at, vg_json_quoted(c, blamed), "%.*s", VG_SLICE_ARG(vg_buf_slice(&all)));
}

static void check_slice_address(struct vg_check *c, const struct vg_at *at,
                                const struct vg_at *type)
{
    bool is_v4 = vg_at_is(type, "IPv4");
    struct vg_ip ip;
    if (vg_at_is(type, "FQDN"))
        check_domain(c, at);
    if (!is_v4 && !vg_at_is(type, "IPv6"))
        return;
    if (!(is_v4 ? vg_check_ip(c, at) : vg_check_ip_canonical(c, at)))
        return;
    if (vg_ip_parse(vg_at_text(at), &ip) && vg_ip_means_v4(&ip) != is_v4) {
        struct vg_at list = *at->up;
        list.v = at->v;
        vg_bad_text(c, &list, "must be an %s address", is_v4 ? "IPv4" : "IPv6");
    }
    (void)vg_check_endpoint_ip(c, at);
}

static void check_hints(struct vg_check *c, const struct vg_at *hints, const char *list_name,
                        bool (*check)(struct vg_check *c, const struct vg_at *at))
{
    struct vg_at list = vg_at(hints, list_name);
    VG_AUTO(names) names = {.n = 0};
    if (vg_at_n(&list) > HINTS_MAX) {
        vg_too_many(c, &list, vg_at_n(&list), HINTS_MAX);
        return;
    }
    VG_CHECK_EACH (c, hint, &list) {
        struct vg_at name = vg_at(&hint, "name");
        if (!vg_names_add(c, &names, vg_at_text(&name), hint.v))
            vg_duplicate(c, &name);
        (void)check(c, &name);
    }
}

static void check_endpoint(struct vg_check *c, const struct vg_at *at, const struct vg_at *type)
{
    struct vg_at addresses = vg_at(at, "addresses"), node = vg_at(at, "nodeName");
    struct vg_at topology = vg_at(at, "deprecatedTopology"), host = vg_at(at, "hostname");
    struct vg_at hints = vg_at(at, "hints");
    if (vg_at_n(&addresses) == 0)
        vg_required(c, &addresses, "must contain at least 1 address");
    else if (vg_at_n(&addresses) > ADDRESSES_MAX)
        vg_too_many(c, &addresses, vg_at_n(&addresses), ADDRESSES_MAX);
    VG_CHECK_EACH (c, address, &addresses)
        check_slice_address(c, &address, type);
    if (vg_at_is_set(&node))
        (void)vg_check_dns_subdomain(c, &node);
    if (vg_at_n(&topology) > TOPOLOGY_MAX)
        vg_too_many(c, &topology, vg_at_n(&topology), TOPOLOGY_MAX);
    vg_check_labels(c, &topology);
    if (vg_at_is_set(&host))
        (void)vg_check_dns_label(c, &host);
    if (!vg_at_is_set(&hints))
        return;
    check_hints(c, &hints, "forZones", vg_check_label_value);
    check_hints(c, &hints, "forNodes", vg_check_dns_subdomain);
}

static void check_slice_ports(struct vg_check *c, const struct vg_at *ports)
{
    VG_AUTO(names) names = {.n = 0};
    if (vg_at_n(ports) > PORTS_MAX) {
        vg_too_many(c, ports, vg_at_n(ports), PORTS_MAX);
        return;
    }
    VG_CHECK_EACH (c, port, ports) {
        struct vg_at name = vg_at(&port, "name"), protocol = vg_at(&port, "protocol");
        struct vg_at application = vg_at(&port, "appProtocol");
        if (vg_at_text(&name).n)
            (void)vg_check_dns_label(c, &name);
        if (!vg_names_add(c, &names, vg_at_text(&name), port.v))
            vg_duplicate(c, &name);
        if (!vg_at_is_set(&protocol))
            vg_required(c, &protocol, NULL);
        else
            (void)vg_check_one_of(c, &protocol, protocols);
        if (vg_at_is_set(&application))
            (void)vg_check_qualified(c, &application);
    }
}

/* Topology was for v1beta1: v1 drops it, unless the endpoints are as they were. */
static int prepare_slice(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old)
{
    struct vg_json *list = vg_json_get_str(obj, "endpoints");
    const struct vg_json *before = vg_json_get_str(old, "endpoints");
    (void)a;
    if (!list || (before && vg_json_equal(list, before) == 1))
        return 0;
    VG_JSON_FOREACH_ITEM (endpoint, list)
        (void)vg_json_object_remove(endpoint, VG_SLICE_LIT("deprecatedTopology"));
    return 0;
}

static void check_slice_with(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    static const char *const types[] = {"FQDN", "IPv4", "IPv6", NULL};
    struct vg_at type = vg_at(obj, "addressType"), ports = vg_at(obj, "ports");
    struct vg_at list = vg_at(obj, "endpoints");
    if (vg_check_given(c, &type))
        (void)vg_check_one_of(c, &type, types);
    check_slice_ports(c, &ports);
    size_t before = c->errors->n;
    if (vg_at_n(&list) > ENDPOINTS_MAX)
        vg_too_many(c, &list, vg_at_n(&list), ENDPOINTS_MAX);
    else
        VG_CHECK_EACH (c, endpoint, &list)
            check_endpoint(c, &endpoint, &type);
    forgive(c, before, list.v, vg_json_get_str(old, "endpoints"));
}

static void check_slice(struct vg_check *c, const struct vg_at *obj)
{
    check_slice_with(c, obj, NULL);
}

static void check_slice_update(struct vg_check *c, const struct vg_at *obj,
                               const struct vg_json *old)
{
    struct vg_at type = vg_at(obj, "addressType");
    check_slice_with(c, obj, old);
    (void)vg_check_immutable(c, &type, vg_json_get_str(old, "addressType"));
}

static void warn_slice(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    static const char *const controllers[] = {"endpointslice-controller.k8s.io",
                                              "endpointslicemirroring-controller.k8s.io", NULL};
    struct vg_at type = vg_at(obj, "addressType"), list = vg_at(obj, "endpoints");
    if (!old && vg_at_is(&type, "FQDN"))
        vg_caution(c, "spec.addressType: FQDN endpoints are deprecated");
    if (is_managed_by(obj, controllers))
        return;
    VG_CHECK_EACH (c, endpoint, &list) {
        struct vg_at addresses = vg_at(&endpoint, "addresses");
        VG_CHECK_EACH (c, address, &addresses)
            vg_caution_ip(c, &address);
    }
}

const struct vg_rules vg_rules_endpoint_slice = {.group = "discovery.k8s.io",
                                                 .kind = "EndpointSlice",
                                                 .prepare = prepare_slice,
                                                 .check = check_slice,
                                                 .check_update = check_slice_update,
                                                 .warn = warn_slice};
