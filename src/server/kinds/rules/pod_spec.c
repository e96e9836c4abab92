/* pod_spec.c - the spec of a pod, in the order of the original: what is short is checked here, the
 * rest in the file of its name. */
#include "go_struct.h"
#include "ip.h"
#include "pod_int.h"
#include "workload.h"

#define NAMESERVERS_MAX 3u
#define SEARCHES_MAX 32u
#define SEARCH_BYTES_MAX 2048u
#define HOSTNAME_OVERRIDE_MAX 64u

static void check_name(struct vg_pod *p, const char *name)
{
    struct vg_at at = vg_at(p->spec, name);
    if (vg_at_text(&at).n)
        (void)vg_check_dns_subdomain(p->c, &at);
}

static void check_label(struct vg_pod *p, const char *name)
{
    struct vg_at at = vg_at(p->spec, name);
    if (vg_at_text(&at).n)
        (void)vg_check_dns_label(p->c, &at);
}

/* ---- claims of resources ---- */

static void gather_claims(struct vg_pod *p, const struct vg_at *claims)
{
    VG_CHECK_EACH (p->c, claim, claims) {
        struct vg_slice name = vg_json_text(vg_json_get_str(claim.v, "name"));
        if (name.n)
            (void)vg_names_add(p->c, &p->claims, name, NULL);
    }
}

static void check_claim(struct vg_pod *p, const struct vg_at *at, struct vg_names *seen)
{
    struct vg_at name = vg_at(at, "name"), own = vg_at(at, "resourceClaimName");
    struct vg_at template = vg_at(at, "resourceClaimTemplateName");
    if (vg_check_given(p->c, &name)) {
        if (!vg_names_add(p->c, seen, vg_at_text(&name), NULL))
            vg_duplicate(p->c, &name);
        else
            (void)vg_check_dns_label(p->c, &name);
    }
    if (vg_at_is_set(&own) && vg_at_is_set(&template))
        vg_bad_value(p->c, at, vg_go_struct_of(p->c, "", "PodResourceClaim", at->v),
                     "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be "
                     "specified");
    if (!vg_at_is_set(&own) && !vg_at_is_set(&template))
        vg_bad_value(p->c, at, vg_go_struct_of(p->c, "", "PodResourceClaim", at->v),
                     "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`");
    if (vg_at_is_set(&own))
        (void)vg_check_dns_subdomain(p->c, &own);
    if (vg_at_is_set(&template))
        (void)vg_check_dns_subdomain(p->c, &template);
}

static void check_claims(struct vg_pod *p)
{
    struct vg_at claims = vg_at(p->spec, "resourceClaims");
    VG_AUTO(names) seen = {0};
    bool is_mirror = vg_json_get_str(vg_json_get_str(p->meta, "annotations"),
                                     "kubernetes.io/config.mirror") != NULL;
    gather_claims(p, &claims);
    VG_CHECK_EACH (p->c, claim, &claims) {
        struct vg_at nowhere = vg_at_of(&(struct vg_at){.step = VG_AT_ROOT}, "", NULL);
        if (is_mirror)
            vg_forbidden(p->c, &nowhere, "static pods do not support resource claims");
        else
            check_claim(p, &claim, &seen);
    }
}

/* ---- network ---- */

static void check_host_network(struct vg_pod *p)
{
    struct vg_at network = vg_at(p->spec, "hostNetwork"), list = vg_at(p->spec, "containers");
    if (!vg_at_is_true(&network))
        return;
    VG_CHECK_EACH (p->c, container, &list) {
        struct vg_at ports = vg_at(&container, "ports");
        VG_CHECK_EACH (p->c, port, &ports) {
            struct vg_at host = vg_at(&port, "hostPort"), own = vg_at(&port, "containerPort");
            if ((p->meta || vg_at_int(&host)) && vg_at_int(&host) != vg_at_int(&own))
                vg_bad_int(p->c, &host, "must match `containerPort` when `hostNetwork` is true");
        }
    }
}

/* [_]label.[_]label, where labels may have underscores inside. */
static bool is_search(struct vg_slice s)
{
    bool is_start = true, is_end = false;
    for (size_t i = 0; i < s.n; i++) {
        char ch = s.p[i];
        bool is_letter = (ch >= 'a' && ch <= 'z') || (ch >= '0' && ch <= '9');
        if (ch == '.') {
            if (!is_end)
                return false;
            is_start = true;
            is_end = false;
            continue;
        }
        bool is_lead = is_start && ch == '_' && i + 1 < s.n && s.p[i + 1] != '_';
        if (!is_letter && !is_lead && (is_start || (ch != '-' && ch != '_')))
            return false;
        /* After a leading underscore comes a letter. */
        is_start = is_lead;
        is_end = is_letter;
    }
    return is_end;
}

static void check_search(struct vg_check *c, const struct vg_at *at)
{
    struct vg_slice s = vg_at_text(at);
    if (vg_slice_eq(s, VG_SLICE_LIT(".")))
        return;
    if (s.n && s.p[s.n - 1] == '.')
        s.n--;
    if (s.n > VG_DNS_SUBDOMAIN_MAX)
        vg_bad_value(c, at, vg_json_quoted(c, s), "must be no more than %u characters",
                     VG_DNS_SUBDOMAIN_MAX);
    if (!is_search(s))
        vg_bad_value(c, at, vg_json_quoted(c, s),
                     "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
                     "characters, '_', '-' or '.', and must start and end with an alphanumeric "
                     "character (e.g. 'example.com', regex used for validation is "
                     "'_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')");
}

static void check_searches(struct vg_check *c, const struct vg_at *searches)
{
    size_t bytes = 0;
    VG_CHECK_EACH (c, search, searches)
        bytes += vg_at_text(&search).n + (search.index > 0);
    if (vg_at_n(searches) > SEARCHES_MAX)
        vg_bad(c, searches, "must not have more than %u search paths", SEARCHES_MAX);
    if (bytes > SEARCH_BYTES_MAX)
        vg_bad(c, searches,
               "must not have more than %u characters (including spaces) in the search list",
               SEARCH_BYTES_MAX);
    VG_CHECK_EACH (c, search, searches)
        check_search(c, &search);
}

static void check_dns(struct vg_pod *p)
{
    struct vg_at policy = vg_at(p->spec, "dnsPolicy"), config = vg_at(p->spec, "dnsConfig");
    struct vg_at servers = vg_at(&config, "nameservers"), searches = vg_at(&config, "searches");
    struct vg_at options = vg_at(&config, "options");
    if (vg_at_is(&policy, "None") && !vg_at_is_set(&config)) {
        vg_required(p->c, &config, "must provide `dnsConfig` when `dnsPolicy` is None");
        return;
    }
    if (vg_at_is(&policy, "None") && vg_at_n(&servers) == 0) {
        vg_required(p->c, &servers,
                    "must provide at least one DNS nameserver when `dnsPolicy` is None");
        return;
    }
    if (vg_at_n(&servers) > NAMESERVERS_MAX)
        vg_bad(p->c, &servers, "must not have more than %u nameservers", NAMESERVERS_MAX);
    VG_CHECK_EACH (p->c, server, &servers)
        (void)vg_check_ip(p->c, &server);
    check_searches(p->c, &searches);
    VG_CHECK_EACH (p->c, option, &options)
        if (vg_json_text(vg_json_get_str(option.v, "name")).n == 0)
            vg_required(p->c, &option, "must not be empty");
}

static void check_host_aliases(struct vg_pod *p)
{
    struct vg_at list = vg_at(p->spec, "hostAliases");
    VG_CHECK_EACH (p->c, alias, &list) {
        struct vg_at ip = vg_at(&alias, "ip"), names = vg_at(&alias, "hostnames");
        (void)vg_check_ip(p->c, &ip);
        VG_CHECK_EACH (p->c, name, &names)
            (void)vg_check_dns_subdomain(p->c, &name);
    }
}

static void check_hostname(struct vg_pod *p)
{
    struct vg_at name = vg_at(p->spec, "hostnameOverride");
    struct vg_at full = vg_at(p->spec, "setHostnameAsFQDN"), net = vg_at(p->spec, "hostNetwork");
    if (!vg_at_is_set(&name))
        return;
    if (vg_at_is_true(&full))
        vg_forbidden(p->c, &name, "may not be specified when setHostnameAsFQDN is true");
    if (vg_at_is_true(&net))
        vg_forbidden(p->c, &name, "may not be specified when hostNetwork is true");
    if (vg_at_text(&name).n > HOSTNAME_OVERRIDE_MAX)
        vg_too_long(p->c, &name, HOSTNAME_OVERRIDE_MAX);
    (void)vg_check_dns_subdomain(p->c, &name);
}

/* ---- gates ---- */

static void check_gates(struct vg_pod *p)
{
    struct vg_at ready = vg_at(p->spec, "readinessGates"), list = vg_at(p->spec, "schedulingGates");
    VG_AUTO(names) seen = {0};
    VG_CHECK_EACH (p->c, gate, &ready) {
        struct vg_at type = vg_at(&gate, "conditionType");
        (void)vg_check_qualified(p->c, &type);
    }
    VG_CHECK_EACH (p->c, gate, &list) {
        struct vg_json *name = vg_json_get_str(gate.v, "name");
        struct vg_at blamed = gate;
        blamed.v = name;
        (void)vg_check_qualified(p->c, &blamed);
        if (!vg_names_add(p->c, &seen, vg_json_text(name), NULL))
            vg_duplicate(p->c, &blamed);
    }
}

/* ---- users of the node ---- */

static void forbid_devices(struct vg_pod *p, const struct vg_at *container, void *ctx)
{
    struct vg_at devices = vg_at(container, "volumeDevices");
    (void)ctx;
    if (vg_at_n(&devices))
        vg_forbidden(p->c, &devices, "when `hostUsers` is false");
}

static void check_host_users(struct vg_pod *p)
{
    static const struct {
        const char *name, *shown;
    } with[] = {{"hostNetwork", "hostNetwork"}, {"hostPID", "HostPID"}, {"hostIPC", "HostIPC"}};
    if (p->is_host_users)
        return;
    for (size_t i = 0; i < VG_ARRAY_LEN(with); i++) {
        struct vg_at at =
            vg_at_of(p->spec, with[i].shown, vg_json_get_str(p->spec->v, with[i].name));
        if (vg_at_is_true(&at))
            vg_forbidden(p->c, &at, "when `hostUsers` is false");
    }
    vg_pod_each_container(p, forbid_devices, NULL);
}

/* A file of variables is written by a container, so it lies in a folder that all share. */
static void check_file_volumes(struct vg_pod *p, const struct vg_at *container, void *ctx)
{
    struct vg_at list = vg_at(container, "env");
    const struct vg_names *volumes = ctx;
    VG_CHECK_EACH (p->c, env, &list) {
        struct vg_at from = vg_at(&env, "valueFrom"), ref = vg_at(&from, "fileKeyRef");
        struct vg_at name = vg_at(&ref, "volumeName");
        const struct vg_json *volume = NULL;
        if (!vg_at_is_set(&ref))
            continue;
        if (!vg_names_find(volumes, vg_at_text(&name), &volume))
            vg_not_found(p->c, &name);
        else if (!vg_json_get_str(volume, "emptyDir"))
            vg_bad_text(p->c, &name, "referenced volume must be of type emptyDir");
    }
}

static void check_files(struct vg_pod *p)
{
    struct vg_at list = vg_at(p->spec, "volumes");
    VG_AUTO(names) volumes = {0};
    VG_CHECK_EACH (p->c, volume, &list)
        (void)vg_names_add(p->c, &volumes, vg_json_text(vg_json_get_str(volume.v, "name")),
                           volume.v);
    vg_pod_each_container(p, check_file_volumes, &volumes);
}

/* ---- all of it ---- */

static void check_policies(struct vg_pod *p)
{
    static const char *const restarts[] = {"Always", "OnFailure", "Never", NULL};
    static const char *const dns[] = {"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None",
                                      NULL};
    struct vg_at restart = vg_at(p->spec, "restartPolicy"), policy = vg_at(p->spec, "dnsPolicy");
    struct vg_at selector = vg_at(p->spec, "nodeSelector");
    if (vg_check_given(p->c, &restart))
        (void)vg_check_one_of(p->c, &restart, restarts);
    if (vg_check_given(p->c, &policy))
        (void)vg_check_one_of(p->c, &policy, dns);
    vg_check_labels(p->c, &selector);
}

static void check_rest(struct vg_pod *p)
{
    static const char *const preemptions[] = {"PreemptLowerPriority", "Never", NULL};
    struct vg_at deadline = vg_at(p->spec, "activeDeadlineSeconds");
    struct vg_at tolerations = vg_at(p->spec, "tolerations");
    struct vg_at class = vg_at(p->spec, "runtimeClassName");
    struct vg_at preemption = vg_at(p->spec, "preemptionPolicy");
    struct vg_at overhead = vg_at(p->spec, "overhead");
    check_name(p, "serviceAccountName");
    check_name(p, "nodeName");
    if (vg_at_is_set(&deadline))
        (void)vg_check_range(p->c, &deadline, 1, INT32_MAX);
    check_label(p, "hostname");
    check_label(p, "subdomain");
    vg_pod_check_tolerations(p->c, &tolerations);
    check_host_aliases(p);
    check_name(p, "priorityClassName");
    if (vg_at_is_set(&class))
        (void)vg_check_dns_subdomain(p->c, &class);
    if (vg_at_is_set(&preemption) && vg_check_given(p->c, &preemption))
        (void)vg_check_one_of(p->c, &preemption, preemptions);
    vg_pod_check_overhead(p, &overhead);
    vg_pod_check_os(p);
    check_files(p);
}

void vg_check_pod_spec(struct vg_check *c, const struct vg_at *spec, const struct vg_json *meta)
{
    struct vg_at users = vg_at(spec, "hostUsers"), os = vg_at(spec, "os");
    struct vg_at grace = vg_at(spec, "terminationGracePeriodSeconds");
    struct vg_pod p = {.c = c,
                       .spec = spec,
                       .meta = meta,
                       .os = vg_json_text(vg_json_get_str(os.v, "name")),
                       .has_os = vg_at_is_set(&os),
                       .is_host_users = !vg_at_is_set(&users) || vg_at_is_true(&users)};
    if (!vg_at_is_set(&grace))
        vg_required(c, &grace, NULL);
    vg_pod_check_volumes(&p);
    check_claims(&p);
    vg_pod_check_containers(&p);
    vg_pod_check_resources(&p);
    check_host_network(&p);
    check_policies(&p);
    vg_pod_check_security(&p);
    vg_pod_check_affinity(&p);
    check_dns(&p);
    check_gates(&p);
    vg_pod_check_spread(&p);
    vg_pod_check_host_process(&p);
    check_host_users(&p);
    check_hostname(&p);
    check_rest(&p);
    vg_names_done(&p.volumes);
    vg_names_done(&p.claims);
}
