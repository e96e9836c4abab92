/* network.c - services, ingresses, endpoints, addresses. */
#include "cell.h"

/* At most three are shown, and how many more there are. */
#define SHOWN_MAX 3u

static void join_list(struct vg_cell *c, const char *dotted)
{
    size_t n;
    const struct vg_json *items = vg_cell_items(c->v, dotted, &n);
    for (size_t i = 0; i < n; i++)
        vg_cell_join(c, ",", vg_json_text(&items[i]));
}

/* ---- services and ingresses ---- */

/* What a load balancer was given: addresses, or names. */
static void join_balancers(struct vg_cell *c)
{
    size_t n;
    const struct vg_json *items = vg_cell_items(c->v, "status.loadBalancer.ingress", &n);
    struct vg_texts t = {0};
    for (size_t i = 0; i < n; i++) {
        struct vg_slice ip = vg_cell_text(&items[i], "ip");
        struct vg_slice name = vg_cell_text(&items[i], "hostname");
        if (ip.n || name.n)
            vg_texts_add(c, &t, ip.n ? ip : name);
    }
    vg_texts_unique(&t);
    for (size_t i = 0; i < t.n; i++)
        vg_cell_join(c, ",", t.v[i]);
}

void vg_cell_service_addresses(struct vg_cell *c)
{
    if (vg_cell_is(c->v, "spec.type", "ExternalName")) {
        vg_cell_put(c, vg_cell_text(c->v, "spec.externalName"));
        return;
    }
    bool is_balanced = vg_cell_is(c->v, "spec.type", "LoadBalancer");
    bool is_known = is_balanced || vg_cell_is(c->v, "spec.type", "ClusterIP") ||
                    vg_cell_is(c->v, "spec.type", "NodePort");
    if (is_balanced)
        join_balancers(c);
    if (is_known)
        join_list(c, "spec.externalIPs");
    if (c->text->n == 0)
        vg_cell_puts(c, !is_known ? "<unknown>" : is_balanced ? "<pending>" : "<none>");
}

void vg_cell_service_ports(struct vg_cell *c)
{
    size_t n;
    const struct vg_json *ports = vg_cell_items(c->v, "spec.ports", &n);
    for (size_t i = 0; i < n; i++) {
        int64_t node_port = vg_cell_int(&ports[i], "nodePort");
        struct vg_slice protocol = vg_cell_text(&ports[i], "protocol");
        vg_cell_printf(c, "%s%lld", i ? "," : "", (long long)vg_cell_int(&ports[i], "port"));
        if (node_port > 0)
            vg_cell_printf(c, ":%lld", (long long)node_port);
        vg_cell_printf(c, "/%.*s", VG_SLICE_ARG(protocol));
    }
    if (n == 0)
        vg_cell_puts(c, "<none>");
}

/* Counted are rules, shown are those that name a host. */
void vg_cell_ingress_hosts(struct vg_cell *c)
{
    size_t n, shown = 0;
    bool has_more = false;
    const struct vg_json *rules = vg_cell_items(c->v, "spec.rules", &n);
    for (size_t i = 0; i < n && !has_more; i++) {
        struct vg_slice host = vg_cell_text(&rules[i], "host");
        has_more = shown == SHOWN_MAX;
        if (has_more || host.n == 0)
            continue;
        vg_cell_join(c, ",", host);
        shown++;
    }
    if (shown == 0)
        vg_cell_puts(c, "*");
    else if (has_more)
        vg_cell_printf(c, " + %zu more...", n - SHOWN_MAX);
}

void vg_cell_ingress_addresses(struct vg_cell *c)
{
    join_balancers(c);
}

void vg_cell_ingress_ports(struct vg_cell *c)
{
    size_t n;
    (void)vg_cell_items(c->v, "spec.tls", &n);
    vg_cell_puts(c, n ? "80, 443" : "80");
}

void vg_cell_class_parameters(struct vg_cell *c)
{
    const struct vg_json *p = vg_cell_at(c->v, "spec.parameters");
    if (!p) {
        vg_cell_puts(c, "<none>");
        return;
    }
    vg_cell_put(c, vg_cell_text(p, "kind"));
    if (vg_cell_is_set(p, "apiGroup")) {
        vg_cell_puts(c, ".");
        vg_cell_put(c, vg_cell_text(p, "apiGroup"));
    }
    vg_cell_puts(c, "/");
    vg_cell_put(c, vg_cell_text(p, "name"));
}

/* resource.group/namespace/name that an address was given to. */
void vg_cell_parent(struct vg_cell *c)
{
    const struct vg_json *p = vg_cell_at(c->v, "spec.parentRef");
    if (!p) {
        vg_cell_puts(c, "<none>");
        return;
    }
    struct vg_slice group = vg_cell_text(p, "group"), ns = vg_cell_text(p, "namespace");
    vg_cell_put_lower(c, vg_cell_text(p, "resource"));
    if (group.n) {
        vg_cell_puts(c, ".");
        vg_cell_put_lower(c, group);
    }
    if (ns.n)
        vg_cell_printf(c, "/%.*s", VG_SLICE_ARG(ns));
    vg_cell_puts(c, "/");
    vg_cell_put(c, vg_cell_text(p, "name"));
}

/* ---- endpoints ---- */

static void put_endpoint(struct vg_cell *c, struct vg_slice ip, const struct vg_json *port)
{
    bool is_v6 = ip.n && (memchr(ip.p, ':', ip.n) || memchr(ip.p, '%', ip.n));
    if (c->text->n)
        vg_cell_puts(c, ",");
    if (!port)
        vg_cell_put(c, ip);
    else
        vg_cell_printf(c, is_v6 ? "[%.*s]:%lld" : "%.*s:%lld", VG_SLICE_ARG(ip),
                       (long long)vg_cell_int(port, "port"));
}

/* Every address with every port; without ports the addresses alone. */
static void add_subset(struct vg_cell *c, const struct vg_json *subset, size_t *shown,
                       size_t *total)
{
    size_t n_addresses, n_ports;
    const struct vg_json *addresses = vg_cell_items(subset, "addresses", &n_addresses);
    const struct vg_json *ports = vg_cell_items(subset, "ports", &n_ports);
    *total += n_addresses * VG_MAX(n_ports, (size_t)1);
    for (size_t p = 0; p < VG_MAX(n_ports, (size_t)1); p++)
        for (size_t i = 0; i < n_addresses && *shown < SHOWN_MAX; i++, ++*shown)
            put_endpoint(c, vg_cell_text(&addresses[i], "ip"), n_ports ? &ports[p] : NULL);
}

void vg_cell_endpoints(struct vg_cell *c)
{
    size_t n, shown = 0, total = 0;
    const struct vg_json *subsets = vg_cell_items(c->v, "subsets", &n);
    for (size_t i = 0; i < n; i++)
        add_subset(c, &subsets[i], &shown, &total);
    if (n == 0)
        vg_cell_puts(c, "<none>");
    else if (total > shown)
        vg_cell_printf(c, " + %zu more...", total - SHOWN_MAX);
}

/* What was shown of how many. */
static void end_list(struct vg_cell *c, size_t total)
{
    if (total > SHOWN_MAX)
        vg_cell_printf(c, " + %zu more...", total - SHOWN_MAX);
    else if (c->text->n == 0)
        vg_cell_puts(c, "<unset>");
}

void vg_cell_slice_ports(struct vg_cell *c)
{
    size_t n;
    const struct vg_json *ports = vg_cell_items(c->v, "ports", &n);
    for (size_t i = 0; i < VG_MIN(n, SHOWN_MAX); i++) {
        if (i)
            vg_cell_puts(c, ",");
        if (vg_cell_is_set(&ports[i], "port"))
            vg_cell_printf(c, "%lld", (long long)vg_cell_int(&ports[i], "port"));
        else if (vg_cell_is_set(&ports[i], "name"))
            vg_cell_put(c, vg_cell_text(&ports[i], "name"));
        else
            vg_cell_puts(c, "*");
    }
    end_list(c, n);
}

void vg_cell_slice_addresses(struct vg_cell *c)
{
    size_t n, total = 0;
    const struct vg_json *endpoints = vg_cell_items(c->v, "endpoints", &n);
    for (size_t i = 0; i < n; i++) {
        size_t n_addresses;
        const struct vg_json *addresses = vg_cell_items(&endpoints[i], "addresses", &n_addresses);
        for (size_t k = 0; k < n_addresses; k++, total++)
            if (total < SHOWN_MAX)
                vg_cell_join(c, ",", vg_json_text(&addresses[k]));
    }
    end_list(c, total);
}
