/* network.c - the rules of network policies, of addresses and ranges of services as objects, and
 * what references to other objects share. */
#include "go_struct.h"
#include "ip.h"
#include "reference.h"
#include "rules.h"

/* ---- references ---- */

void vg_check_segment(struct vg_check *c, const struct vg_at *at)
{
    struct vg_name_reasons why = {0};
    if (vg_check_given(c, at) && !vg_validate_path_segment(vg_at_text(at), &why))
        (void)vg_check_reasons(c, at, &why);
}

void vg_check_typed_reference(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at group = vg_at(at, "apiGroup"), kind = vg_at(at, "kind"), name = vg_at(at, "name");
    if (vg_at_is_set(&group))
        (void)vg_check_dns_subdomain(c, &group);
    vg_check_segment(c, &kind);
    vg_check_segment(c, &name);
}

/* ---- network policies ---- */

static void check_policy_port(struct vg_check *c, const struct vg_at *at)
{
    static const char *const protocols[] = {"TCP", "UDP", "SCTP", NULL};
    struct vg_at protocol = vg_at(at, "protocol"), port = vg_at(at, "port");
    struct vg_at end = vg_at(at, "endPort");
    if (vg_at_is_set(&protocol))
        (void)vg_check_one_of(c, &protocol, protocols);
    if (vg_json_is(port.v, VG_JSON_STRING)) {
        if (vg_at_is_set(&end))
            vg_bad_int(c, &end, "may not be specified when `port` is non-numeric");
        (void)vg_check_port_name(c, &port);
    } else if (vg_at_is_set(&port)) {
        (void)vg_check_port(c, &port);
        if (vg_at_is_set(&end) && vg_at_int(&end) < vg_at_int(&port))
            vg_bad_value(c, &end, vg_at_text(&port), "must be greater than or equal to `port`");
        if (vg_at_is_set(&end))
            (void)vg_check_port(c, &end);
    } else if (vg_at_is_set(&end)) {
        vg_bad_int(c, &end, "may not be specified when `port` is not specified");
    }
}

/* Does a rule have that range, whole or as exception? */
static bool has_range(const struct vg_json *rules, const char *peers, struct vg_slice text)
{
    for (uint32_t i = 0; vg_json_is(rules, VG_JSON_ARRAY) && i < rules->n; i++) {
        const struct vg_json *list = vg_json_get_str(&rules->items[i], peers);
        for (uint32_t k = 0; vg_json_is(list, VG_JSON_ARRAY) && k < list->n; k++) {
            const struct vg_json *block = vg_json_get_str(&list->items[k], "ipBlock");
            if (vg_slice_eq(vg_json_text(vg_json_get_str(block, "cidr")), text) ||
                vg_text_is_among(text, vg_json_get_str(block, "except")))
                return true;
        }
    }
    return false;
}

/* A range that the old policy has somewhere is taken as it is. */
static void check_range(struct vg_check *c, const struct vg_at *at, const struct vg_json *old_spec)
{
    size_t before = c->errors->n;
    if (!vg_check_cidr(c, at) && old_spec && !vg_field_errors_is_full(c->errors) &&
        (has_range(vg_json_get_str(old_spec, "ingress"), "from", vg_at_text(at)) ||
         has_range(vg_json_get_str(old_spec, "egress"), "to", vg_at_text(at))))
        vg_field_errors_cut(c->errors, before);
}

static void check_block(struct vg_check *c, const struct vg_at *block,
                        const struct vg_json *old_spec)
{
    struct vg_at range = vg_at(block, "cidr"), except = vg_at(block, "except");
    struct vg_cidr whole, part;
    if (!vg_check_given(c, &range))
        return;
    check_range(c, &range, old_spec);
    if (!vg_cidr_parse(vg_at_text(&range), &whole))
        return;
    VG_CHECK_EACH (c, at, &except) {
        check_range(c, &at, old_spec);
        if (!vg_cidr_parse(vg_at_text(&at), &part))
            continue;
        struct vg_ip first = vg_cidr_first(&part);
        if (!vg_cidr_contains(&whole, &first) || whole.bits >= part.bits)
            vg_bad_text(c, &at, "must be a strict subset of `cidr`");
    }
}

static void check_peer(struct vg_check *c, const struct vg_at *peer, const struct vg_json *old_spec)
{
    struct vg_at pods = vg_at(peer, "podSelector"), spaces = vg_at(peer, "namespaceSelector");
    struct vg_at block = vg_at(peer, "ipBlock");
    vg_check_label_selector(c, &pods);
    vg_check_label_selector(c, &spaces);
    if (vg_at_is_set(&block))
        check_block(c, &block, old_spec);
    bool has_selector = vg_at_is_set(&pods) || vg_at_is_set(&spaces);
    if (!has_selector && !vg_at_is_set(&block))
        vg_required(c, peer, "must specify a peer");
    else if (has_selector && vg_at_is_set(&block))
        vg_forbidden(c, peer, "may not specify both ipBlock and another peer");
}

static void check_rules(struct vg_check *c, const struct vg_at *rules, const char *peers_name,
                        const struct vg_json *old_spec)
{
    VG_CHECK_EACH (c, rule, rules) {
        struct vg_at ports = vg_at(&rule, "ports"), peers = vg_at(&rule, peers_name);
        VG_CHECK_EACH (c, port, &ports)
            check_policy_port(c, &port);
        VG_CHECK_EACH (c, peer, &peers)
            check_peer(c, &peer, old_spec);
    }
}

static void check_policy_with(struct vg_check *c, const struct vg_at *obj,
                              const struct vg_json *old_spec)
{
    static const char *const supported[] = {"Ingress", "Egress", NULL};
    struct vg_at spec = vg_at(obj, "spec"), pods = vg_at(&spec, "podSelector");
    struct vg_at ingress = vg_at(&spec, "ingress"), egress = vg_at(&spec, "egress");
    struct vg_at types = vg_at(&spec, "policyTypes");
    vg_check_label_selector(c, &pods);
    check_rules(c, &ingress, "from", old_spec);
    check_rules(c, &egress, "to", old_spec);
    if (vg_at_n(&types) > 2) {
        vg_bad(c, &types, "may not specify more than two policyTypes");
        return;
    }
    VG_CHECK_EACH (c, type, &types)
        (void)vg_check_one_of(c, &type, supported);
}

static void check_policy(struct vg_check *c, const struct vg_at *obj)
{
    check_policy_with(c, obj, NULL);
}

static void check_policy_update(struct vg_check *c, const struct vg_at *obj,
                                const struct vg_json *old)
{
    check_policy_with(c, obj, vg_json_get_str(old, "spec"));
}

static void warn_rules(struct vg_check *c, const struct vg_at *rules, const char *peers_name)
{
    VG_CHECK_EACH (c, rule, rules) {
        struct vg_at peers = vg_at(&rule, peers_name);
        VG_CHECK_EACH (c, peer, &peers) {
            struct vg_at block = vg_at(&peer, "ipBlock"), range = vg_at(&block, "cidr");
            struct vg_at except = vg_at(&block, "except");
            vg_caution_cidr(c, &range);
            VG_CHECK_EACH (c, at, &except)
                vg_caution_cidr(c, &at);
        }
    }
}

static void warn_policy(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), ingress = vg_at(&spec, "ingress");
    struct vg_at egress = vg_at(&spec, "egress");
    (void)old;
    warn_rules(c, &ingress, "from");
    warn_rules(c, &egress, "to");
}

const struct vg_rules vg_rules_network_policy = {.group = "networking.k8s.io",
                                                 .kind = "NetworkPolicy",
                                                 .check = check_policy,
                                                 .check_update = check_policy_update,
                                                 .warn = warn_policy};

/* ---- addresses of services as objects ---- */

static void check_parent(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at spec = vg_at(obj, "spec"), parent = vg_at(&spec, "parentRef");
    struct vg_at group = vg_at(&parent, "group"), resource = vg_at(&parent, "resource");
    struct vg_at name = vg_at(&parent, "name"), ns = vg_at(&parent, "namespace");
    if (!vg_at_is_set(&parent)) {
        vg_required(c, &parent, NULL);
        return;
    }
    if (vg_at_text(&group).n)
        (void)vg_check_dns_subdomain(c, &group);
    vg_check_segment(c, &resource);
    vg_check_segment(c, &name);
    if (vg_at_text(&ns).n)
        vg_check_segment(c, &ns);
}

static void check_address(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at meta = vg_at(obj, "metadata"), name = vg_at(&meta, "name");
    (void)vg_check_ip_canonical(c, &name);
    check_parent(c, obj);
}

static void check_address_update(struct vg_check *c, const struct vg_at *obj,
                                 const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), parent = vg_at(&spec, "parentRef");
    check_parent(c, obj);
    const struct vg_json *before = vg_json_at_path(old, "spec.parentRef");
    if (vg_at_is_set(&parent))
        (void)vg_check_immutable_go(c, &parent, before, "networking.k8s.io", "ParentReference");
    else
        (void)vg_check_immutable(c, &parent, before);
}

const struct vg_rules vg_rules_ip_address = {.group = "networking.k8s.io",
                                             .kind = "IPAddress",
                                             .prepare = vg_prepare_meta,
                                             .check = check_address,
                                             .check_update = check_address_update};

/* ---- ranges of services as objects ---- */

static void check_service_ranges(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at spec = vg_at(obj, "spec"), list = vg_at(&spec, "cidrs"), whole = list;
    struct vg_cidr a, b;
    if (vg_at_n(&list) == 0) {
        vg_required(c, &list, "at least one CIDR required");
        return;
    }
    if (vg_at_n(&list) > 2) {
        vg_bad_value(c, &whole, vg_go_struct_of(c, "networking.k8s.io", "ServiceCIDRSpec", spec.v),
                     "may only hold up to 2 values");
        return;
    }
    VG_CHECK_EACH (c, at, &list)
        (void)vg_check_cidr_canonical(c, &at);
    if (vg_at_n(&list) == 2 && vg_cidr_parse(vg_json_text(&list.v->items[0]), &a) &&
        vg_cidr_parse(vg_json_text(&list.v->items[1]), &b) &&
        vg_ip_means_v4(&a.ip) == vg_ip_means_v4(&b.ip))
        vg_bad(c, &list,
               "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and "
               "2001:db8::/64");
}

static void check_service_ranges_update(struct vg_check *c, const struct vg_at *obj,
                                        const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), list = vg_at(&spec, "cidrs");
    const struct vg_json *before = vg_json_at_path(old, "spec.cidrs");
    size_t n = vg_at_n(&list), n_before = vg_json_is(before, VG_JSON_ARRAY) ? before->n : 0;
    if (n != n_before && !(n_before == 1 && n == 2)) {
        vg_bad(c, &list, "field is immutable");
        return;
    }
    for (uint32_t i = 0; i < n_before; i++) {
        struct vg_at at = vg_at_item(&list, i);
        if (!vg_slice_eq(vg_json_text(&before->items[i]), vg_at_text(&at)))
            vg_bad_text(c, &at, "field is immutable");
    }
    if (n != n_before)
        check_service_ranges(c, obj);
}

const struct vg_rules vg_rules_service_cidr = {.group = "networking.k8s.io",
                                               .kind = "ServiceCIDR",
                                               .check = check_service_ranges,
                                               .check_update = check_service_ranges_update};
