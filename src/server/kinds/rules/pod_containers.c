/* pod_containers.c - the three lists of containers of a pod: what all of them share, and what only
 * some may have. */
#include <stdio.h>

#include "pod_int.h"

void vg_pod_each_container(struct vg_pod *p, vg_pod_container_fn *fn, void *ctx)
{
    static const char *const lists[] = {"initContainers", "containers", "ephemeralContainers"};
    for (size_t i = 0; i < VG_ARRAY_LEN(lists); i++) {
        struct vg_at list = vg_at(p->spec, lists[i]);
        VG_CHECK_EACH (p->c, container, &list)
            fn(p, &container, ctx);
    }
}

/* ---- ports ---- */

static void check_port(struct vg_check *c, const struct vg_at *at, struct vg_names *names)
{
    static const char *const protocols[] = {"SCTP", "TCP", "UDP", NULL};
    struct vg_at name = vg_at(at, "name"), port = vg_at(at, "containerPort");
    struct vg_at host = vg_at(at, "hostPort"), protocol = vg_at(at, "protocol");
    struct vg_slice text = vg_at_text(&name);
    if (text.n && vg_check_port_name(c, &name) && !vg_names_add(c, names, text, NULL))
        vg_duplicate(c, &name);
    if (vg_at_int(&port) == 0)
        vg_required(c, &port, NULL);
    else
        (void)vg_check_port(c, &port);
    if (vg_at_int(&host) != 0)
        (void)vg_check_port(c, &host);
    if (vg_check_given(c, &protocol))
        (void)vg_check_one_of(c, &protocol, protocols);
}

static void check_ports(struct vg_pod *p, const struct vg_at *container)
{
    struct vg_at ports = vg_at(container, "ports");
    if (vg_at_n(&ports) == 0)
        return;
    VG_AUTO(names) names = {0};
    VG_CHECK_EACH (p->c, port, &ports)
        check_port(p->c, &port, &names);
}

/* A port of the node can be had once: protocol, address and number together. */
static void check_host_port(struct vg_check *c, const struct vg_at *port, struct vg_names *taken)
{
    struct vg_at host = vg_at(port, "hostPort"), protocol = vg_at(port, "protocol");
    struct vg_at ip = vg_at(port, "hostIP");
    struct vg_slice key;
    if (vg_at_int(&host) == 0)
        return;
    if (vg_arena_printf(c->arena, &key, "%.*s/%.*s/%.*s", VG_SLICE_ARG(vg_at_text(&protocol)),
                        VG_SLICE_ARG(vg_at_text(&ip)), VG_SLICE_ARG(vg_at_text(&host))) < 0)
        c->errors->failed = true;
    else if (!vg_names_add(c, taken, key, NULL))
        vg_duplicate_value(c, &host, vg_json_quoted(c, key));
}

static void check_host_ports(struct vg_check *c, const struct vg_at *container,
                             struct vg_names *taken)
{
    struct vg_at ports = vg_at(container, "ports");
    VG_CHECK_EACH (c, port, &ports)
        check_host_port(c, &port, taken);
}

/* ---- what all containers share ---- */

static void check_resize_policy(struct vg_pod *p, const struct vg_at *container)
{
    static const char *const resources[] = {"cpu", "memory", NULL};
    static const char *const policies[] = {"NotRequired", "RestartContainer", NULL};
    struct vg_at list = vg_at(container, "resizePolicy"), restart = vg_at(p->spec, "restartPolicy");
    if (vg_at_n(&list) == 0)
        return;
    VG_AUTO(names) seen = {0};
    VG_CHECK_EACH (p->c, it, &list) {
        struct vg_at name =
            vg_at_of(it.up->up, "resizePolicy", vg_json_get_str(it.v, "resourceName"));
        struct vg_at policy =
            vg_at_of(it.up->up, "resizePolicy", vg_json_get_str(it.v, "restartPolicy"));
        struct vg_slice text = vg_at_text(&name);
        if (!vg_names_add(p->c, &seen, text, NULL))
            vg_duplicate_value(p->c, &it, vg_json_quoted(p->c, text));
        if (vg_check_given(p->c, &name))
            (void)vg_check_one_of(p->c, &name, resources);
        if (vg_check_given(p->c, &policy))
            (void)vg_check_one_of(p->c, &policy, policies);
        if (vg_at_is(&restart, "Never") && !vg_at_is(&policy, "NotRequired"))
            vg_bad_text(p->c, &policy, "must be 'NotRequired' when pod `restartPolicy` is 'Never'");
    }
}

static void check_common(struct vg_pod *p, const struct vg_at *at)
{
    static const char *const message_policies[] = {"File", "FallbackToLogsOnError", NULL};
    static const char *const pull_policies[] = {"Always", "IfNotPresent", "Never", NULL};
    struct vg_at name = vg_at(at, "name"), image = vg_at(at, "image");
    struct vg_at message = vg_at(at, "terminationMessagePolicy");
    struct vg_at pull = vg_at(at, "imagePullPolicy");
    struct vg_at resources = vg_at(at, "resources"), security = vg_at(at, "securityContext");
    if (vg_check_given(p->c, &name))
        (void)vg_check_dns_label(p->c, &name);
    (void)vg_check_given(p->c, &image);
    if (vg_check_given(p->c, &message))
        (void)vg_check_one_of(p->c, &message, message_policies);
    check_ports(p, at);
    vg_pod_check_env(p, at);
    vg_pod_check_mounts(p, at);
    if (vg_check_given(p->c, &pull))
        (void)vg_check_one_of(p->c, &pull, pull_policies);
    vg_pod_check_container_resources(p, &resources);
    check_resize_policy(p, at);
    vg_pod_check_container_security(p, &security);
}

/* ---- restarts ---- */

static void check_restart_rule(struct vg_check *c, const struct vg_at *at)
{
    static const char *const actions[] = {"Restart", "RestartAllContainers", NULL};
    static const char *const operators[] = {"In", "NotIn", NULL};
    struct vg_at action = vg_at(at, "action"), codes = vg_at(at, "exitCodes");
    struct vg_at operator= vg_at(&codes, "operator"), values = vg_at(&codes, "values");
    (void)vg_check_one_of(c, &action, actions);
    if (!vg_at_is_set(&codes)) {
        vg_required(c, &codes, "must be specified");
        return;
    }
    (void)vg_check_one_of(c, &operator, operators);
    if (vg_at_n(&values) > 255)
        vg_too_many(c, &values, vg_at_n(&values), 255);
}

static void check_restart(struct vg_pod *p, const struct vg_at *container)
{
    static const char *const policies[] = {"Always", "Never", "OnFailure", NULL};
    struct vg_at policy = vg_at(container, "restartPolicy");
    struct vg_at rules = vg_at(container, "restartPolicyRules");
    if (vg_at_is_set(&policy))
        (void)vg_check_one_of(p->c, &policy, policies);
    else if (vg_at_n(&rules))
        vg_required(p->c, &policy, "must specify restartPolicy when restart rules are used");
    if (vg_at_n(&rules) > 20)
        vg_too_many(p->c, &rules, vg_at_n(&rules), 20);
    VG_CHECK_EACH (p->c, rule, &rules)
        check_restart_rule(p->c, &rule);
}

/* ---- the lists ---- */

static void check_regular(struct vg_pod *p, const struct vg_at *list, struct vg_names *names)
{
    VG_AUTO(names) taken = {0};
    (void)vg_check_given(p->c, list);
    VG_CHECK_EACH (p->c, container, list) {
        struct vg_at name = vg_at(&container, "name");
        check_common(p, &container);
        if (!vg_names_add(p->c, names, vg_at_text(&name), NULL))
            vg_duplicate(p->c, &name);
        vg_pod_check_probes(p, &container);
        check_restart(p, &container);
    }
    VG_CHECK_EACH (p->c, container, list)
        check_host_ports(p->c, &container, &taken);
}

static void check_init_restart(struct vg_pod *p, const struct vg_at *container)
{
    struct vg_at policy = vg_at(container, "restartPolicy");
    struct vg_at rules = vg_at(container, "restartPolicyRules");
    if (vg_at_is_set(&policy))
        check_restart(p, container);
    else if (vg_at_n(&rules))
        vg_required(p->c, &policy, "must specify restartPolicy when restart rules are used");
}

/* Probes and hooks are for those init containers alone that run beside the others. */
static void check_init_probes(struct vg_pod *p, const struct vg_at *container)
{
    static const char *const without[] = {"lifecycle", "livenessProbe", "readinessProbe",
                                          "startupProbe"};
    for (size_t i = 0; i < VG_ARRAY_LEN(without); i++) {
        struct vg_at it = vg_at(container, without[i]);
        if (vg_at_is_set(&it))
            vg_forbidden(p->c, &it,
                         "may not be set for init containers without restartPolicy=Always");
    }
}

/* Those before it have ended, or it is told later. */
static void check_init_ports(struct vg_check *c, const struct vg_at *container)
{
    struct vg_at ports = vg_at(container, "ports");
    if (vg_at_n(&ports) == 0)
        return;
    VG_AUTO(names) taken = {0};
    check_host_ports(c, container, &taken);
}

static void check_init(struct vg_pod *p, const struct vg_at *list, struct vg_names *names)
{
    VG_CHECK_EACH (p->c, container, list) {
        struct vg_at name = vg_at(&container, "name");
        struct vg_at policy = vg_at(&container, "restartPolicy");
        struct vg_at resize = vg_at(&container, "resizePolicy");
        check_common(p, &container);
        check_init_restart(p, &container);
        if (vg_names_has(names, vg_at_text(&name)))
            vg_duplicate(p->c, &name);
        else if (vg_at_text(&name).n)
            (void)vg_names_add(p->c, names, vg_at_text(&name), NULL);
        check_init_ports(p->c, &container);
        if (vg_at_is(&policy, "Always")) {
            vg_pod_check_probes(p, &container);
            continue;
        }
        check_init_probes(p, &container);
        VG_CHECK_EACH (p->c, it, &resize) {
            struct vg_at restart = vg_at(&it, "restartPolicy");
            if (vg_at_is(&restart, "RestartContainer"))
                vg_bad_text(p->c, &restart,
                            "must not be set to 'RestartContainer' for non-sidecar initContainers");
        }
    }
}

/* An image of a pod; a template may have blanks there. */
static void check_image_blanks(struct vg_check *c, const struct vg_at *container)
{
    struct vg_at image = vg_at(container, "image");
    struct vg_slice s = vg_at_text(&image);
    if (s.n && (strchr(" \t\n\v\f\r", s.p[0]) || strchr(" \t\n\v\f\r", s.p[s.n - 1])))
        vg_bad_text(c, &image, "must not have leading or trailing whitespace");
}

/* They come late and go unnoticed, so they get nothing that others rely on. */
static void check_ephemeral_limits(struct vg_check *c, const struct vg_at *container)
{
    static const char *const without[] = {"ports",          "resources",          "resizePolicy",
                                          "restartPolicy",  "restartPolicyRules", "livenessProbe",
                                          "readinessProbe", "startupProbe",       "lifecycle"};
    struct vg_at mounts = vg_at(container, "volumeMounts");
    for (size_t i = 0; i < VG_ARRAY_LEN(without); i++) {
        struct vg_at it = vg_at(container, without[i]);
        bool is_empty = vg_json_is(it.v, VG_JSON_OBJECT) && strcmp(without[i], "resources") == 0 &&
                        it.v->n == 0;
        if (vg_at_is_set(&it) && !is_empty)
            vg_forbidden(c, &it, "cannot be set for an Ephemeral Container");
    }
    VG_CHECK_EACH (c, m, &mounts) {
        struct vg_at sub = vg_at(&m, "subPath"), expr = vg_at(&m, "subPathExpr");
        if (vg_at_text(&sub).n)
            vg_forbidden(c, &sub, "cannot be set for an Ephemeral Container");
        if (vg_at_text(&expr).n)
            vg_forbidden(c, &expr, "cannot be set for an Ephemeral Container");
    }
}

static void check_ephemeral(struct vg_pod *p, const struct vg_at *list, struct vg_names *names)
{
    VG_AUTO(names) all = {0};
    VG_CHECK_EACH (p->c, container, list) {
        struct vg_at name = vg_at(&container, "name");
        struct vg_at target = vg_at(&container, "targetContainerName");
        check_common(p, &container);
        check_image_blanks(p->c, &container);
        if (vg_names_has(names, vg_at_text(&name)) ||
            !vg_names_add(p->c, &all, vg_at_text(&name), NULL))
            vg_duplicate(p->c, &name);
        if (vg_at_text(&target).n && !vg_names_has(names, vg_at_text(&target)))
            vg_not_found(p->c, &target);
        check_ephemeral_limits(p->c, &container);
    }
}

void vg_pod_check_containers(struct vg_pod *p)
{
    VG_AUTO(names) names = {0};
    struct vg_at regular = vg_at(p->spec, "containers"), init = vg_at(p->spec, "initContainers");
    struct vg_at ephemeral = vg_at(p->spec, "ephemeralContainers");
    check_regular(p, &regular, &names);
    check_init(p, &init, &names);
    check_ephemeral(p, &ephemeral, &names);
}

void vg_pod_check_blanks(struct vg_check *c, const struct vg_at *list)
{
    VG_CHECK_EACH (c, container, list)
        check_image_blanks(c, &container);
}
