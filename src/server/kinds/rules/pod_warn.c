/* pod_warn.c - what a pod or a template is taken with, and warned of. Annotations of
 * AppArmor and seccomp are not looked for. */
#include "base/buf.h"
#include "ip.h"
#include "pod_int.h"
#include "workload.h"

/* ---- volumes ---- */

static void warn_volumes(struct vg_pod *p)
{
    static const struct {
        const char *name, *shown, *text;
    } gone[] = {{"photonPersistentDisk", "photonPersistentDisk",
                 "deprecated in v1.11, non-functional in v1.16+"},
                {"gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"},
                {"scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
                {"flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"},
                {"storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"},
                {"quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"},
                {"glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
                {"cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"},
                {"rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"}};
    struct vg_at volumes = vg_at(p->spec, "volumes");
    VG_CHECK_EACH (p->c, volume, &volumes)
        for (size_t i = 0; i < VG_ARRAY_LEN(gone); i++) {
            struct vg_at at =
                vg_at_of(&volume, gone[i].shown, vg_json_get_str(volume.v, gone[i].name));
            if (vg_at_is_set(&at))
                vg_caution_at(p->c, &at, "%s", gone[i].text);
        }
}

/* ---- lists whose items repeat ---- */

static void warn_repeated(struct vg_pod *p, const char *list, const char *name)
{
    struct vg_at items = vg_at(p->spec, list);
    VG_AUTO(names) seen = {0};
    VG_CHECK_EACH (p->c, item, &items) {
        struct vg_at at = vg_at(&item, name);
        if (!vg_names_add(p->c, &seen, vg_at_text(&at), NULL))
            vg_caution_at(p->c, &at, "duplicate %s %.*s", name,
                          VG_SLICE_ARG(vg_json_quoted(p->c, vg_at_text(&at))));
    }
}

static void warn_nameless_secrets(struct vg_pod *p)
{
    struct vg_at items = vg_at(p->spec, "imagePullSecrets");
    VG_CHECK_EACH (p->c, item, &items) {
        struct vg_at name = vg_at(&item, "name");
        if (vg_at_text(&name).n == 0)
            vg_caution_at(p->c, &name, "invalid empty name \"\"");
    }
}

/* ---- containers ---- */

static void warn_fraction(struct vg_check *c, const struct vg_at *amounts, const char *resource)
{
    struct vg_at at = {.up = amounts,
                       .v = vg_json_get_str(amounts->v, resource),
                       .key = vg_slice_str(resource),
                       .step = VG_AT_KEY};
    struct vg_slice s = vg_at_text(&at);
    struct vg_quantity q;
    int64_t whole;
    bool is_exact = true;
    /* Most amounts of bytes show at once that they are whole. */
    if (s.n == 0 ||
        (!strchr("mun", s.p[s.n - 1]) && !memchr(s.p, '.', s.n) && !memchr(s.p, '-', s.n)))
        return;
    if (vg_at_quantity(&at, &q) && vg_quantity_scaled(&q, 0, &whole, &is_exact) == 0 && !is_exact)
        vg_caution_at(c, &at, "fractional byte value %.*s is invalid, must be an integer",
                      VG_SLICE_ARG(vg_json_quoted(c, vg_at_text(&at))));
}

/* X="$(X)y" goes on with what X was; anything else hides it. */
static bool hides(struct vg_check *c, const struct vg_json *env, struct vg_slice name)
{
    struct vg_slice value = vg_json_text(vg_json_get_str(env, "value")), ref;
    if (vg_json_get_str(env, "valueFrom"))
        return true;
    if (vg_arena_printf(c->arena, &ref, "$(%.*s)", VG_SLICE_ARG(name)) < 0)
        return false;
    return vg_slice_eq(value, ref) || value.n == 0 || !memmem(value.p, value.n, ref.p, ref.n);
}

static void warn_env(struct vg_check *c, const struct vg_at *container)
{
    struct vg_at list = vg_at(container, "env");
    VG_AUTO(names) seen = {0};
    VG_CHECK_EACH (c, env, &list) {
        struct vg_slice name = vg_json_text(vg_json_get_str(env.v, "name"));
        if (!vg_names_add(c, &seen, name, NULL) && hides(c, env.v, name))
            vg_caution_at(c, &env,
                          "hides previous definition of %.*s, which may be dropped when using "
                          "apply",
                          VG_SLICE_ARG(vg_json_quoted(c, name)));
    }
}

static void warn_container(struct vg_pod *p, const struct vg_at *container, void *ctx)
{
    struct vg_at resources = vg_at(container, "resources");
    struct vg_at limits = vg_at(&resources, "limits"), requests = vg_at(&resources, "requests");
    (void)ctx;
    warn_fraction(p->c, &limits, "memory");
    warn_fraction(p->c, &requests, "memory");
    warn_fraction(p->c, &limits, "ephemeral-storage");
    warn_fraction(p->c, &requests, "ephemeral-storage");
    warn_env(p->c, container);
}

/* ---- ports ---- */

/* A port and its place: list, container and index; the text is made when it is needed. */
struct port {
    const struct vg_json *v;
    const char *list;
    uint32_t container, index;
    int64_t number, host;
    struct vg_slice protocol, host_ip;
};
struct ports {
    struct port *v;
    size_t n, max;
    struct vg_names names;
};

static int append_place(struct vg_buf *b, const struct vg_at *spec, const struct port *p)
{
    struct vg_at list = vg_at(spec, p->list), container = vg_at_item(&list, p->container);
    struct vg_at ports = vg_at(&container, "ports"), at = vg_at_item(&ports, p->index);
    return vg_at_append(b, &at);
}

static void warn_against(struct vg_pod *p, const struct vg_at *at, const struct port *port,
                         const struct port *other)
{
    const char *what = NULL;
    VG_AUTO(buf) place = {0};
    if (vg_slice_eq(port->host_ip, other->host_ip) && port->host == other->host)
        what = "duplicate";
    else if (port->host == 0 || other->host == 0)
        what = "overlapping";
    else if (port->host == other->host && !port->host_ip.n != !other->host_ip.n)
        what = "dangerously ambiguous";
    if (!what)
        return;
    if (append_place(&place, p->spec, other) < 0)
        p->c->errors->failed = true;
    else
        vg_caution_at(p->c, at, "%s port definition with %.*s", what,
                      VG_SLICE_ARG(vg_buf_slice(&place)));
}

static void count_ports(struct vg_pod *p, const struct vg_at *container, void *ctx)
{
    struct vg_at list = vg_at(container, "ports");
    (void)p;
    *(size_t *)ctx += vg_at_n(&list);
}

static void warn_ports(struct vg_pod *p, const struct vg_at *container, void *ctx)
{
    struct ports *all = ctx;
    struct vg_at list = vg_at(container, "ports");
    VG_CHECK_EACH (p->c, at, &list) {
        if (all->n == all->max)
            return; /* the warnings of so many are cut anyway */
        struct vg_at number = vg_at(&at, "containerPort"), host = vg_at(&at, "hostPort");
        struct vg_at ip = vg_at(&at, "hostIP"), protocol = vg_at(&at, "protocol");
        struct port port = {.v = at.v,
                            .list = container->up->name,
                            .container = container->index,
                            .index = at.index,
                            .number = vg_at_int(&number),
                            .host = vg_at_int(&host),
                            .protocol = vg_at_text(&protocol),
                            .host_ip = vg_at_text(&ip)};
        for (size_t i = 0; i < all->n; i++)
            if (all->v[i].number == port.number && vg_slice_eq(all->v[i].protocol, port.protocol))
                warn_against(p, &at, &port, &all->v[i]);
        all->v[all->n++] = port;
    }
}

static void warn_port_name(struct vg_pod *p, const struct vg_at *at, struct vg_slice name,
                           const struct ports *all, const struct vg_json *first)
{
    VG_AUTO(buf) place = {0};
    size_t i = 0;
    while (i < all->n && all->v[i].v != first)
        i++;
    if (i == all->n)
        return;
    if (append_place(&place, p->spec, &all->v[i]) < 0)
        p->c->errors->failed = true;
    else
        vg_caution_at(p->c, at,
                      "duplicate port name %.*s with %.*s, services and probes that select ports "
                      "by name will use %.*s",
                      VG_SLICE_ARG(vg_json_quoted(p->c, name)), VG_SLICE_ARG(vg_buf_slice(&place)),
                      VG_SLICE_ARG(vg_buf_slice(&place)));
}

static void warn_port_names(struct vg_pod *p, const struct vg_at *container, void *ctx)
{
    struct ports *all = ctx;
    struct vg_at list = vg_at(container, "ports");
    VG_CHECK_EACH (p->c, at, &list) {
        struct vg_slice name = vg_json_text(vg_json_get_str(at.v, "name"));
        const struct vg_json *first = NULL;
        if (name.n == 0)
            continue;
        if (vg_names_find(&all->names, name, &first))
            warn_port_name(p, &at, name, all, first);
        else
            (void)vg_names_add(p->c, &all->names, name, at.v);
    }
}

/* As many ports are held against each other; no pod has as many. */
#define PORTS_COMPARED_MAX 256u

static void warn_all_ports(struct vg_pod *p)
{
    struct ports all = {0};
    size_t n = 0;
    vg_pod_each_container(p, count_ports, &n);
    if (n < 2)
        return;
    all.max = VG_MIN(n, (size_t)PORTS_COMPARED_MAX);
    all.v = vg_arena_array(p->c->arena, struct port, all.max);
    if (!all.v)
        return;
    vg_pod_each_container(p, warn_ports, &all);
    vg_pod_each_container(p, warn_port_names, &all);
    vg_names_done(&all.names);
}

/* ---- selectors that select nothing ---- */

static void warn_no_selector(struct vg_check *c, const struct vg_at *term)
{
    struct vg_at selector = vg_at(term, "labelSelector");
    if (!vg_at_is_set(&selector))
        vg_caution_at(c, &selector, "a null labelSelector results in matching no pod");
}

static void warn_terms(struct vg_check *c, const struct vg_at *affinity)
{
    struct vg_at required = vg_at(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
    struct vg_at preferred = vg_at(affinity, "preferredDuringSchedulingIgnoredDuringExecution");
    VG_CHECK_EACH (c, term, &required)
        warn_no_selector(c, &term);
    VG_CHECK_EACH (c, it, &preferred) {
        struct vg_at term = vg_at(&it, "podAffinityTerm");
        warn_no_selector(c, &term);
    }
}

/* ---- labels of nodes ---- */

static void warn_label(struct vg_check *c, const struct vg_at *key)
{
    const char *text = vg_node_label_gone(vg_at_text(key));
    if (text)
        vg_caution_at(c, key, "%.*s is %s", VG_SLICE_ARG(vg_at_text(key)), text);
}

static void warn_node_term(struct vg_check *c, const struct vg_at *term, bool is_preferred)
{
    struct vg_at expressions = vg_at(term, "matchExpressions");
    VG_CHECK_EACH (c, e, &expressions) {
        struct vg_at key = vg_at(&e, "key"), values = vg_at(&e, "values");
        warn_label(c, &key);
        if (!is_preferred)
            continue;
        VG_CHECK_EACH (c, value, &values) {
            struct vg_name_reasons why = {0};
            (void)vg_validate_label_value(vg_at_text(&value), &why);
            for (uint32_t i = 0; i < why.n; i++)
                vg_caution_at(c, &value, "%.*s is invalid, %s", VG_SLICE_ARG(vg_at_text(&value)),
                              why.v[i]);
        }
    }
}

static void warn_nodes(struct vg_pod *p)
{
    struct vg_at selector = vg_at(p->spec, "nodeSelector"), affinity = vg_at(p->spec, "affinity");
    struct vg_at nodes = vg_at(&affinity, "nodeAffinity");
    struct vg_at required = vg_at(&nodes, "requiredDuringSchedulingIgnoredDuringExecution");
    struct vg_at terms = vg_at(&required, "nodeSelectorTerms");
    struct vg_at preferred = vg_at(&nodes, "preferredDuringSchedulingIgnoredDuringExecution");
    if (selector.v)
        VG_JSON_FOREACH_MEMBER (m, selector.v) {
            struct vg_at at = vg_at_key(&selector, m);
            if (vg_node_label_gone(at.key))
                vg_caution_at(p->c, &at, "%s", vg_node_label_gone(at.key));
        }
    VG_CHECK_EACH (p->c, term, &terms)
        warn_node_term(p->c, &term, false);
    VG_CHECK_EACH (p->c, it, &preferred) {
        struct vg_at term = vg_at(&it, "preference");
        warn_node_term(p->c, &term, true);
    }
}

static void warn_spread(struct vg_pod *p)
{
    struct vg_at list = vg_at(p->spec, "topologySpreadConstraints");
    VG_CHECK_EACH (p->c, it, &list) {
        struct vg_at key = vg_at(&it, "topologyKey");
        warn_label(p->c, &key);
        warn_no_selector(p->c, &it);
    }
}

/* ---- addresses ---- */

static void warn_ips(struct vg_pod *p)
{
    struct vg_at dns = vg_at(p->spec, "dnsConfig"), servers = vg_at(&dns, "nameservers");
    struct vg_at aliases = vg_at(p->spec, "hostAliases");
    VG_CHECK_EACH (p->c, server, &servers)
        vg_caution_ip(p->c, &server);
    VG_CHECK_EACH (p->c, alias, &aliases) {
        struct vg_at ip = vg_at(&alias, "ip");
        vg_caution_ip(p->c, &ip);
    }
}

/* ---- all of it ---- */

static void warn_annotations(struct vg_check *c, const struct vg_at *meta)
{
    static const struct {
        const char *key, *field, *since;
    } gone[] = {{"scheduler.alpha.kubernetes.io/critical-pod", "priorityClassName", "v1.16"},
                {"security.alpha.kubernetes.io/sysctls", "sysctls", "v1.11"},
                {"security.alpha.kubernetes.io/unsafe-sysctls", "sysctls", "v1.11"}};
    struct vg_at annotations = vg_at(meta, "annotations");
    for (size_t i = 0; i < VG_ARRAY_LEN(gone); i++) {
        struct vg_at at = {.up = &annotations,
                           .v = vg_json_get_str(annotations.v, gone[i].key),
                           .key = vg_slice_str(gone[i].key),
                           .step = VG_AT_KEY};
        if (vg_at_is_set(&at))
            vg_caution_at(c, &at, "non-functional in %s+; use the \"%s\" field instead",
                          gone[i].since, gone[i].field);
    }
}

void vg_warn_pod_template(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at meta = vg_at(at, "metadata"), spec = vg_at(at, "spec");
    struct vg_pod p = {.c = c, .spec = &spec};
    struct vg_at overhead = vg_at(&spec, "overhead"), affinity = vg_at(&spec, "affinity");
    struct vg_at pods = vg_at(&affinity, "podAffinity"), anti = vg_at(&affinity, "podAntiAffinity");
    struct vg_at grace = vg_at(&spec, "terminationGracePeriodSeconds");
    warn_nodes(&p);
    warn_spread(&p);
    warn_annotations(c, &meta);
    warn_volumes(&p);
    vg_pod_warn_paths(&p);
    warn_repeated(&p, "hostAliases", "ip");
    warn_repeated(&p, "imagePullSecrets", "name");
    warn_nameless_secrets(&p);
    warn_fraction(c, &overhead, "memory");
    warn_fraction(c, &overhead, "ephemeral-storage");
    vg_pod_each_container(&p, warn_container, NULL);
    warn_all_ports(&p);
    if (vg_at_int(&grace) < 0)
        vg_caution_at(c, &grace,
                      "must be >= 0; negative values are invalid and will be treated as 1");
    warn_terms(c, &pods);
    warn_terms(c, &anti);
    warn_ips(&p);
}

static void warn_name(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at meta = vg_at(obj, "metadata"), name = vg_at(&meta, "name");
    struct vg_name_reasons why = {0};
    VG_AUTO(buf) b = {0};
    if (vg_at_text(&name).n == 0 ||
        vg_validate_dns1123_label(vg_at_text(&name), VG_NAME_CHARACTERS, &why))
        return;
    for (uint32_t i = 0; i < why.n; i++)
        c->errors->failed |= vg_buf_printf(&b, "%s%s", i ? " " : "", why.v[i]) < 0;
    vg_caution_at(c, &name,
                  "this is used in the Pod's hostname, which can result in surprising behavior; a "
                  "DNS label is recommended: [%.*s]",
                  VG_SLICE_ARG(vg_buf_slice(&b)));
}

void vg_pod_warn(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    if (old) /* updates of pods are many, and made by programs */
        return;
    warn_name(c, obj);
    vg_warn_pod_template(c, obj);
}
