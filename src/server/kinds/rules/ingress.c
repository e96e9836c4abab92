/* ingress.c - the rules of ingresses and their classes. */
#include "base/buf.h"
#include "ip.h"
#include "reference.h"
#include "service.h"

#define CLASS_ANNOTATION "kubernetes.io/ingress.class"
#define CONTROLLER_MAX 250u

/* ---- hosts ---- */

static bool has_star(struct vg_slice s)
{
    return s.n && memchr(s.p, '*', s.n);
}

static void check_wildcard(struct vg_check *c, const struct vg_at *at)
{
    struct vg_slice s = vg_at_text(at);
    bool is_ok =
        vg_slice_has_prefix(s, VG_SLICE_LIT("*.")) &&
        vg_validate_dns1123_subdomain(vg_slice(s.p + 2, s.n - 2), VG_NAME_CHARACTERS, NULL);
    if (s.n > VG_DNS_SUBDOMAIN_MAX)
        vg_bad_text(c, at, "must be no more than %u characters", VG_DNS_SUBDOMAIN_MAX);
    else if (!is_ok)
        vg_bad_text(c, at,
                    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS "
                    "subdomain, which must consist of lower case alphanumeric characters, '-' or "
                    "'.' and end with an alphanumeric character (e.g. '*.example.com', regex used "
                    "for validation is "
                    "'\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')");
}

static void check_host(struct vg_check *c, const struct vg_at *at)
{
    if (has_star(vg_at_text(at)))
        check_wildcard(c, at);
    else
        (void)vg_check_dns_subdomain(c, at);
}

/* ---- backends and paths ---- */

static void check_service(struct vg_check *c, const struct vg_at *backend)
{
    struct vg_at service = vg_at(backend, "service"), name = vg_at(&service, "name");
    struct vg_at port = vg_at(&service, "port"), port_name = vg_at(&port, "name");
    struct vg_at number = vg_at(&port, "number");
    if (vg_check_given(c, &name))
        (void)vg_check_dns_label(c, &name);
    if (vg_at_text(&port_name).n && vg_at_int(&number))
        vg_bad_value(c, backend, VG_SLICE_LIT("\"\""), "cannot set both port name & port number");
    else if (vg_at_text(&port_name).n)
        (void)vg_check_port_name(c, &port_name);
    else if (vg_at_int(&number))
        (void)vg_check_port(c, &number);
    else
        vg_required(c, backend, "port name or number is required");
}

static void check_backend(struct vg_check *c, const struct vg_at *backend)
{
    struct vg_at resource = vg_at(backend, "resource"), service = vg_at(backend, "service");
    if (vg_at_is_set(&resource) && vg_at_is_set(&service))
        vg_bad_value(c, backend, VG_SLICE_LIT("\"\""),
                     "cannot set both resource and service backends");
    else if (vg_at_is_set(&resource))
        vg_check_typed_reference(c, &resource);
    else if (vg_at_is_set(&service))
        check_service(c, backend);
    else
        vg_bad_value(c, backend, VG_SLICE_LIT("\"\""), "resource or service backend is required");
}

static void check_plain_path(struct vg_check *c, const struct vg_at *path)
{
    static const char *const inside[] = {"//", "/./", "/../", "%2f", "%2F", NULL};
    static const char *const ends[] = {"/..", "/.", NULL};
    struct vg_slice s = vg_at_text(path);
    if (s.n == 0 || s.p[0] != '/')
        vg_bad_text(c, path, "must be an absolute path");
    for (const char *const *part = inside; *part; part++)
        if (s.n && memmem(s.p, s.n, *part, strlen(*part)))
            vg_bad_text(c, path, "must not contain '%s'", *part);
    for (const char *const *end = ends; *end; end++)
        if (vg_text_has_suffix(s, vg_slice_str(*end)))
            vg_bad_text(c, path, "cannot end with '%s'", *end);
}

static void check_path(struct vg_check *c, const struct vg_at *at)
{
    static const char *const types[] = {"Exact", "ImplementationSpecific", "Prefix", NULL};
    struct vg_at type = vg_at(at, "pathType"), path = vg_at(at, "path");
    struct vg_at backend = vg_at(at, "backend");
    struct vg_slice s = vg_at_text(&path);
    if (!vg_at_is_set(&type)) {
        vg_required(c, &type, "pathType must be specified");
        return;
    }
    if (vg_at_is(&type, "Exact") || vg_at_is(&type, "Prefix"))
        check_plain_path(c, &path);
    else if (vg_check_one_of(c, &type, types) && s.n && s.p[0] != '/')
        vg_bad_text(c, &path, "must be an absolute path");
    check_backend(c, &backend);
}

/* ---- the whole ---- */

static void check_paths(struct vg_check *c, const struct vg_at *rule)
{
    struct vg_at http = vg_at(rule, "http"), paths = vg_at(&http, "paths");
    if (!vg_at_is_set(&http))
        return;
    if (vg_at_n(&paths) == 0)
        vg_required(c, &paths, NULL);
    VG_CHECK_EACH (c, path, &paths)
        check_path(c, &path);
}

/* is_lenient: paths of wildcard hosts may be wrong. */
static void check_rule(struct vg_check *c, const struct vg_at *rule, bool is_lenient)
{
    struct vg_at host = vg_at(rule, "host");
    struct vg_ip ip;
    if (vg_ip_parse(vg_at_text(&host), &ip))
        vg_bad_text(c, &host, "must be a DNS name, not an IP address");
    if (vg_at_text(&host).n)
        check_host(c, &host);
    if (!is_lenient || !has_star(vg_at_text(&host)))
        check_paths(c, rule);
}

/* Older servers did not look at the paths of wildcard hosts. */
static bool has_wrong_wildcard(struct vg_check *c, const struct vg_json *old)
{
    struct vg_field_errors found = {.arena = c->arena};
    struct vg_check silent = {.errors = &found, .arena = c->arena};
    struct vg_at rules = vg_at_root(vg_json_at_path(old, "spec.rules"));
    VG_CHECK_EACH (&silent, rule, &rules)
        if (has_star(vg_json_text(vg_json_get_str(rule.v, "host"))))
            check_paths(&silent, &rule);
    c->errors->failed |= found.failed;
    return found.n > 0;
}

static void check_tls(struct vg_check *c, const struct vg_at *spec)
{
    struct vg_at list = vg_at(spec, "tls");
    VG_CHECK_EACH (c, tls, &list) {
        struct vg_at hosts = vg_at(&tls, "hosts"), secret = vg_at(&tls, "secretName");
        VG_CHECK_EACH (c, host, &hosts)
            check_host(c, &host);
        if (vg_at_text(&secret).n)
            (void)vg_check_dns_subdomain(c, &secret);
    }
}

static void check_spec(struct vg_check *c, const struct vg_at *obj, bool is_lenient)
{
    struct vg_at spec = vg_at(obj, "spec"), rules = vg_at(&spec, "rules");
    struct vg_at backend = vg_at(&spec, "defaultBackend"), class = vg_at(&spec, "ingressClassName");
    struct vg_at blamed = vg_at_of(obj, "spec", rules.v);
    if (vg_at_n(&rules) == 0 && !vg_at_is_set(&backend))
        vg_bad(c, &blamed, "either `defaultBackend` or `rules` must be specified");
    if (vg_at_is_set(&backend))
        check_backend(c, &backend);
    VG_CHECK_EACH (c, rule, &rules)
        check_rule(c, &rule, is_lenient);
    check_tls(c, &spec);
    if (vg_at_is_set(&class))
        (void)vg_check_dns_subdomain(c, &class);
}

static void check_ingress(struct vg_check *c, const struct vg_at *obj)
{
    const struct vg_json *class = vg_json_at_path(obj->v, "spec.ingressClassName");
    const struct vg_json *set =
        vg_json_get_str(vg_json_at_path(obj->v, "metadata.annotations"), CLASS_ANNOTATION);
    struct vg_at annotations = vg_at_of(obj, "annotations", NULL);
    struct vg_at at = vg_at_of(&annotations, CLASS_ANNOTATION, set);
    check_spec(c, obj, false);
    if (set && class && !vg_slice_eq(vg_json_text(set), vg_json_text(class)))
        vg_bad_text(c, &at, "must match `ingressClassName` when both are specified");
}

static void check_ingress_update(struct vg_check *c, const struct vg_at *obj,
                                 const struct vg_json *old)
{
    size_t before = c->errors->n;
    check_spec(c, obj, false);
    if (c->errors->n == before || !has_wrong_wildcard(c, old))
        return;
    vg_field_errors_cut(c->errors, before);
    check_spec(c, obj, true);
}

static void check_ingress_status(struct vg_check *c, const struct vg_at *obj,
                                 const struct vg_json *old)
{
    struct vg_at status = vg_at(obj, "status"), balancer = vg_at(&status, "loadBalancer");
    struct vg_at list = vg_at(&balancer, "ingress");
    const struct vg_json *before = vg_json_at_path(old, "status.loadBalancer.ingress");
    VG_CHECK_EACH (c, item, &list)
        vg_check_balancer_item(c, &item, before, false);
}

static void warn_ingress(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    const struct vg_json *annotations = vg_json_at_path(obj->v, "metadata.annotations");
    if (!old && vg_json_get_str(annotations, CLASS_ANNOTATION) &&
        !vg_json_at_path(obj->v, "spec.ingressClassName"))
        vg_caution(c, "annotation \"" CLASS_ANNOTATION
                      "\" is deprecated, please use 'spec.ingressClassName' instead");
}

const struct vg_rules vg_rules_ingress = {.group = "networking.k8s.io",
                                          .kind = "Ingress",
                                          .check = check_ingress,
                                          .check_update = check_ingress_update,
                                          .check_status = check_ingress_status,
                                          .warn = warn_ingress,
                                          .warn_status = vg_warn_balancer_status};

/* ---- classes ---- */

static void check_controller(struct vg_check *c, const struct vg_at *at)
{
    if (vg_at_text(at).n > CONTROLLER_MAX)
        vg_too_long(c, at, CONTROLLER_MAX);
    if (vg_check_given(c, at))
        vg_check_domain_path(c, at);
}

static void check_parameters(struct vg_check *c, const struct vg_at *at)
{
    static const char *const scopes[] = {"Cluster", "Namespace", NULL};
    struct vg_at scope = vg_at(at, "scope"), ns = vg_at(at, "namespace");
    if (!vg_at_is_set(at))
        return;
    vg_check_typed_reference(c, at);
    if (!vg_at_is_set(&scope)) {
        vg_required(c, &scope, NULL);
        return;
    }
    if (!vg_check_one_of(c, &scope, scopes))
        return;
    if (vg_at_is(&scope, "Cluster") && vg_at_is_set(&ns))
        vg_forbidden(c, &ns, "`parameters.scope` is set to 'Cluster'");
    else if (vg_at_is(&scope, "Namespace") && !vg_at_is_set(&ns))
        vg_required(c, &ns, "`parameters.scope` is set to 'Namespace'");
    else if (vg_at_is(&scope, "Namespace"))
        (void)vg_check_dns_label(c, &ns);
}

static void check_class(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at spec = vg_at(obj, "spec"), controller = vg_at(&spec, "controller");
    struct vg_at parameters = vg_at(&spec, "parameters");
    check_controller(c, &controller);
    check_parameters(c, &parameters);
}

static void check_class_update(struct vg_check *c, const struct vg_at *obj,
                               const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), controller = vg_at(&spec, "controller");
    if (!vg_slice_eq(vg_at_text(&controller),
                     vg_json_text(vg_json_at_path(old, "spec.controller"))))
        vg_bad_text(c, &controller, "field is immutable");
    check_class(c, obj);
}

const struct vg_rules vg_rules_ingress_class = {.group = "networking.k8s.io",
                                                .kind = "IngressClass",
                                                .check = check_class,
                                                .check_update = check_class_update};
