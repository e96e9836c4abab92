/* service_claims.c - the addresses and ports of nodes that a service takes and gives back.
 *
 *   families: policy, then ipFamilies by what is asked for and what the cluster has
 *   create:   an address for each family, a port for each that needs one
 *   update:   what the change of type, family or ports needs more, and needs no more
 *   delete:   everything goes back
 * In the order and with the words of the original. Ports are in service_ports.c. */
#include "ip.h"
#include "service_claiming.h"

/* Ports of one service that are opened on nodes: all of them are written in one transaction. */
#define NODE_PORTS_MAX 100u

static const struct vg_json *get(const struct vg_json *spec, const char *name)
{
    return vg_json_get_str(spec, name);
}

static struct vg_slice text_at(const struct vg_json *list, size_t i)
{
    return i < vg_claiming_n(list) ? vg_json_text(&list->items[i]) : VG_SLICE_LIT("");
}

static void set_text(struct vg_claiming *k, const char *name, struct vg_slice text)
{
    struct vg_json v;
    if (k->err == 0)
        k->err = vg_json_make_string(k->cl->arena, text, &v);
    if (k->err == 0)
        k->err = vg_json_object_set(k->cl->arena, k->spec, vg_slice_str(name), v);
}

/* A list of our own, so that the old object's, which may be shared, stays as it is. */
static struct vg_json *own_list(struct vg_claiming *k, const char *name)
{
    const struct vg_json *was = get(k->spec, name);
    struct vg_json list = vg_json_array();
    for (size_t i = 0; i < vg_claiming_n(was) && k->err == 0; i++)
        k->err = vg_json_array_push(k->cl->arena, &list, was->items[i]);
    if (k->err == 0)
        k->err = vg_json_object_set(k->cl->arena, k->spec, vg_slice_str(name), list);
    return k->err == 0 ? vg_json_get_str(k->spec, name) : NULL;
}

static void push_text(struct vg_claiming *k, const char *name, struct vg_slice text)
{
    struct vg_json v = vg_json_null(), *list = own_list(k, name);
    if (list)
        k->err = vg_json_make_string(k->cl->arena, text, &v);
    if (k->err == 0)
        k->err = vg_json_array_push(k->cl->arena, list, v);
}

static void keep_first(struct vg_claiming *k, const char *name)
{
    struct vg_json *list = own_list(k, name);
    while (list && list->n > 1 && vg_json_array_remove(list, list->n - 1u))
        ;
}

static bool is_same_list(const struct vg_claiming *k, const char *name)
{
    const struct vg_json *a = get(k->spec, name), *b = get(k->old, name);
    if (vg_claiming_n(a) != vg_claiming_n(b))
        return false;
    for (size_t i = 0; i < vg_claiming_n(a); i++) {
        if (!vg_slice_eq(text_at(a, i), text_at(b, i)))
            return false;
    }
    return true;
}

/* ---- families ---- */

static bool has_policy(const struct vg_json *spec, const char *policy)
{
    return vg_slice_eq(vg_json_text(get(spec, "ipFamilyPolicy")), vg_slice_str(policy));
}

static bool is_ip_type(const struct vg_json *spec)
{
    return vg_service_is(spec, "ClusterIP") || vg_service_is(spec, "NodePort") ||
           vg_service_is(spec, "LoadBalancer");
}

static bool is_none(const struct vg_json *spec)
{
    return vg_slice_eq(vg_json_text(get(spec, "clusterIP")), VG_SLICE_LIT("None"));
}

static bool has_selector(const struct vg_json *spec)
{
    const struct vg_json *s = get(spec, "selector");
    return vg_json_is(s, VG_JSON_OBJECT) && s->n > 0;
}

/* One that prefers two stacks and is left as it is stays so, whatever became of the cluster. */
static bool is_settled(const struct vg_claiming *k)
{
    return k->old && is_ip_type(k->spec) &&
           vg_slice_eq(vg_json_text(get(k->spec, "type")), vg_json_text(get(k->old, "type"))) &&
           has_policy(k->spec, "PreferDualStack") &&
           (!get(k->old, "ipFamilyPolicy") || has_policy(k->old, "PreferDualStack")) &&
           is_same_list(k, "clusterIPs") && is_same_list(k, "ipFamilies");
}

static void infer_policy(struct vg_claiming *k)
{
    if (get(k->spec, "ipFamilyPolicy"))
        return;
    struct vg_slice before = vg_json_text(get(k->old, "ipFamilyPolicy"));
    bool is_loose = is_none(k->spec) && !has_selector(k->spec);
    set_text(k, "ipFamilyPolicy",
             before.n   ? before
             : is_loose ? VG_SLICE_LIT("RequireDualStack")
                        : VG_SLICE_LIT("SingleStack"));
}

/* Fewer than before, and those that are left are the first of them. */
static bool is_reduced(const struct vg_claiming *k, const char *name)
{
    const struct vg_json *a = get(k->spec, name), *b = get(k->old, name);
    if (vg_claiming_n(a) == 0 || vg_claiming_n(a) >= vg_claiming_n(b))
        return false;
    return vg_slice_eq(text_at(a, 0), text_at(b, 0));
}

static void settle_update(struct vg_claiming *k)
{
    struct vg_at policy = vg_at(&k->at, "ipFamilyPolicy");
    if (has_policy(k->spec, "SingleStack")) {
        if (is_same_list(k, "clusterIPs"))
            keep_first(k, "clusterIPs");
        if (is_same_list(k, "ipFamilies"))
            keep_first(k, "ipFamilies");
        return;
    }
    if (is_reduced(k, "clusterIPs"))
        vg_bad_text(k->c, &policy, "must be 'SingleStack' to release the secondary cluster IP");
    if (is_reduced(k, "ipFamilies"))
        vg_bad_text(k->c, &policy, "must be 'SingleStack' to release the secondary IP family");
}

static void check_single(struct vg_claiming *k)
{
    struct vg_at policy = vg_at(&k->at, "ipFamilyPolicy");
    if (!has_policy(k->spec, "SingleStack"))
        return;
    if (vg_claiming_n(get(k->spec, "clusterIPs")) == 2)
        vg_bad_text(k->c, &policy,
                    "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are "
                    "specified");
    if (vg_claiming_n(get(k->spec, "ipFamilies")) == 2)
        vg_bad_text(k->c, &policy,
                    "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are "
                    "specified");
}

static bool has_family(const struct vg_claiming *k, bool is_v6)
{
    return is_v6 ? k->cl->has_v6 : k->cl->has_v4;
}

static struct vg_slice family_name(bool is_v6)
{
    return is_v6 ? VG_SLICE_LIT("IPv6") : VG_SLICE_LIT("IPv4");
}

/* Addresses that were asked for tell their family. */
static void infer_families(struct vg_claiming *k)
{
    const struct vg_json *ips = get(k->spec, "clusterIPs");
    for (size_t i = 0; i < vg_claiming_n(ips) && k->err == 0; i++) {
        struct vg_ip ip;
        if (vg_slice_eq(text_at(ips, i), VG_SLICE_LIT("None")) ||
            !vg_ip_parse(text_at(ips, i), &ip))
            return;
        bool is_v6 = !vg_ip_means_v4(&ip);
        struct vg_at list = vg_at(&k->at, "clusterIPs"), at = vg_at_item(&list, i);
        if (i < vg_claiming_n(get(k->spec, "ipFamilies")))
            continue;
        at.v = list.v; /* the whole list is blamed */
        if (has_family(k, is_v6))
            push_text(k, "ipFamilies", family_name(is_v6));
        else
            vg_bad(k->c, &at, "%.*s is not configured on this cluster",
                   VG_SLICE_ARG(family_name(is_v6)));
    }
}

static void add_other_family(struct vg_claiming *k)
{
    const struct vg_json *list = get(k->spec, "ipFamilies");
    if (vg_claiming_n(list) == 1 && !has_policy(k->spec, "SingleStack"))
        push_text(k, "ipFamilies",
                  family_name(vg_slice_eq(text_at(list, 0), VG_SLICE_LIT("IPv4"))));
}

static void add_first_family(struct vg_claiming *k)
{
    if (vg_claiming_n(get(k->spec, "ipFamilies")) == 0)
        push_text(k, "ipFamilies", family_name(k->cl->prefers_v6));
}

static void check_configured(struct vg_claiming *k)
{
    struct vg_at policy = vg_at(&k->at, "ipFamilyPolicy"), list = vg_at(&k->at, "ipFamilies");
    if (has_policy(k->spec, "RequireDualStack") && !(k->cl->has_v4 && k->cl->has_v6))
        vg_bad_text(k->c, &policy, "this cluster is not configured for dual-stack services");
    VG_CHECK_EACH (k->c, family, &list) {
        if (!has_family(k, vg_at_is(&family, "IPv6")))
            vg_bad_text(k->c, &family, "not configured on this cluster");
    }
}

static void settle_families(struct vg_claiming *k)
{
    if (vg_service_is(k->spec, "ExternalName") || is_settled(k))
        return;
    infer_policy(k);
    vg_service_check_addresses(k->c, &k->at, get(k->old, "clusterIPs"));
    if (vg_claiming_is_over(k))
        return;
    if (k->old)
        settle_update(k);
    check_single(k);
    infer_families(k);
    if (vg_claiming_is_over(k))
        return;
    if (is_none(k->spec) && !has_selector(k->spec)) {
        add_first_family(k);
        add_other_family(k);
        return;
    }
    check_configured(k);
    if (vg_claiming_is_over(k))
        return;
    add_first_family(k);
    if (k->cl->has_v4 && k->cl->has_v6)
        add_other_family(k);
}

/* ---- addresses ---- */

static void refuse_ip(struct vg_claiming *k, struct vg_slice wanted, bool is_v6, int err)
{
    struct vg_at at = vg_at(&k->at, "clusterIPs");
    if (err == VIGIL_E_EXISTS)
        vg_bad(k->c, &at, "failed to allocate IP %.*s: provided IP is already allocated",
               VG_SLICE_ARG(wanted));
    else if (err == VIGIL_E_NOT_FOUND)
        vg_bad(k->c, &at,
               "failed to allocate IP %.*s: the provided network does not match the current range",
               VG_SLICE_ARG(wanted));
    else if (err == VIGIL_E_STORE_FULL || err == VIGIL_E_TOO_LARGE)
        k->err = vg_arena_printf(k->cl->arena, &k->cl->failure,
                                 "failed to allocate a serviceIP for Service: range %.*s is full",
                                 VG_SLICE_ARG(k->cl->ranges[is_v6]));
    else
        k->err = err;
}

/* The i-th address, of the i-th family; what is asked for is in the list already. */
static void take_ip(struct vg_claiming *k, size_t i)
{
    bool is_v6 = vg_slice_eq(text_at(get(k->spec, "ipFamilies"), i), VG_SLICE_LIT("IPv6"));
    struct vg_slice wanted = text_at(get(k->spec, "clusterIPs"), i), got;
    int err = k->cl->ops->take_ip(k->cl, is_v6, wanted, &got);
    if (err < 0)
        refuse_ip(k, wanted, is_v6, err);
    if (err < 0 || wanted.n)
        return;
    push_text(k, "clusterIPs", got);
    if (i == 0)
        set_text(k, "clusterIP", got);
}

static void take_ips(struct vg_claiming *k, size_t from)
{
    if (vg_service_is(k->spec, "ExternalName") || is_none(k->spec))
        return;
    for (size_t i = from; i < vg_claiming_n(get(k->spec, "ipFamilies")) && !vg_claiming_is_over(k);
         i++) {
        if (!k->cl->failure.n)
            take_ip(k, i);
    }
}

static void give_ips(struct vg_claiming *k, size_t from)
{
    const struct vg_json *ips = get(k->old, "clusterIPs");
    if (vg_service_is(k->old, "ExternalName") || is_none(k->old))
        return;
    for (size_t i = from; i < vg_claiming_n(ips) && k->err == 0; i++) {
        if (text_at(ips, i).n)
            k->err = k->cl->ops->give_ip(k->cl, text_at(ips, i));
    }
}

static void change_ips(struct vg_claiming *k)
{
    bool was_name = vg_service_is(k->old, "ExternalName");
    bool is_name = vg_service_is(k->spec, "ExternalName");
    size_t before = vg_claiming_n(get(k->old, "ipFamilies")),
           now = vg_claiming_n(get(k->spec, "ipFamilies"));
    if (is_settled(k))
        return;
    if (was_name && !is_name)
        take_ips(k, 0);
    else if (is_none(k->old))
        return;
    else if (!was_name && is_name)
        give_ips(k, 0);
    else if (before == 1 && now == 2)
        take_ips(k, 1);
    else if (before == 2 && now == 1)
        give_ips(k, 1);
    else if (vg_claiming_n(get(k->old, "clusterIPs")) == 0) /* stored before there were any */
        take_ips(k, 0);
}

/* ---- the whole ---- */

static void claim_all(struct vg_claiming *k)
{
    settle_families(k);
    if (vg_claiming_is_over(k))
        return;
    if (vg_service_has_node_ports(k->spec) &&
        vg_claiming_n(get(k->spec, "ports")) > NODE_PORTS_MAX) {
        struct vg_at ports = vg_at(&k->at, "ports");
        vg_too_many(k->c, &ports, vg_claiming_n(get(k->spec, "ports")), NODE_PORTS_MAX);
        return;
    }
    if (k->old)
        change_ips(k);
    else
        take_ips(k, 0);
    if (vg_claiming_is_over(k) || k->cl->failure.n)
        return;
    if (k->old && vg_service_has_node_ports(k->old))
        vg_service_give_ports(k);
    if (vg_service_has_node_ports(k->spec))
        vg_service_take_ports(k);
    if (!vg_claiming_is_over(k) && !k->cl->failure.n)
        vg_service_settle_health_port(k);
}

int vg_service_claim(struct vg_claims *cl, struct vg_check *c, struct vg_json *obj,
                     const struct vg_json *old)
{
    struct vg_claiming k = {.cl = cl, .c = c, .old = get(old, "spec")};
    struct vg_at root;
    if (!obj) {
        give_ips(&k, 0);
        if (k.err == 0)
            vg_service_give_ports(&k);
        if (k.err == 0)
            vg_service_settle_health_port(&k);
        return k.err;
    }
    k.spec = vg_json_get_str(obj, "spec");
    if (!vg_json_is(k.spec, VG_JSON_OBJECT))
        return 0;
    root = vg_at_root(obj);
    k.at = vg_at(&root, "spec");
    claim_all(&k);
    return k.err;
}
