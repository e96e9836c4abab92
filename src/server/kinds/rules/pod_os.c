/* pod_os.c - what depends on the system a pod runs on: options of Windows, and settings that one of
 * the two systems does not know. */
#include "pod_int.h"

#define CREDENTIAL_SPEC_MAX ((size_t)64 << 10)
#define DOMAIN_MAX 256u
#define USER_MAX 104u

/* ---- user names ---- */

static bool has_any(struct vg_slice s, const char *bytes)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] && strchr(bytes, s.p[i]))
            return true;
    return false;
}

static bool is_alphanumeric(char ch)
{
    char low = (char)(ch | 32);
    return (low >= 'a' && low <= 'z') || (ch >= '0' && ch <= '9');
}

static bool is_net_bios(struct vg_slice s)
{
    return s.n >= 1 && s.n <= 15 && s.p[0] != '.' && !has_any(s, "\\/:*?\"<>|");
}

static bool is_dns(struct vg_slice s)
{
    size_t from = 0;
    for (size_t i = 0; i <= s.n; i++) {
        if (i < s.n && s.p[i] != '.') {
            if (!is_alphanumeric(s.p[i]) && s.p[i] != '-')
                return false;
            continue;
        }
        if (i == from || i - from > 63 || s.p[from] == '-' || s.p[i - 1] == '-')
            return false;
        from = i + 1;
    }
    return true;
}

static bool is_dots_and_spaces(struct vg_slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] != '.' && s.p[i] != ' ')
            return false;
    return s.n > 0;
}

static void check_user(struct vg_check *c, const struct vg_at *at, struct vg_slice user)
{
    if (user.n == 0)
        vg_bad_text(c, at, "runAsUserName's User cannot be empty");
    else if (user.n > USER_MAX)
        vg_bad_text(c, at, "runAsUserName's User length must not be longer than %u characters",
                    USER_MAX);
    if (is_dots_and_spaces(user))
        vg_bad_text(c, at, "runAsUserName's User cannot contain only periods or spaces");
    if (has_any(user, "\"/\\:;|=,+*?<>@[]"))
        vg_bad_text(c, at,
                    "runAsUserName's User cannot contain the following characters: "
                    "\"/\\:;|=,+*?<>@[]");
}

static void check_user_name(struct vg_check *c, const struct vg_at *at)
{
    struct vg_slice s = vg_at_text(at), user = s;
    size_t slashes = 0;
    bool has_control = false;
    for (size_t i = 0; i < s.n; i++) {
        slashes += s.p[i] == '\\';
        has_control = has_control || (unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f;
    }
    if (s.n == 0) {
        vg_bad_text(c, at, "runAsUserName cannot be an empty string");
    } else if (has_control) {
        vg_bad_text(c, at, "runAsUserName cannot contain control characters");
    } else if (slashes > 1) {
        vg_bad_text(c, at, "runAsUserName cannot contain more than one backslash");
    } else {
        if (slashes) {
            const char *slash = memchr(s.p, '\\', s.n);
            struct vg_slice domain = vg_slice(s.p, (size_t)(slash - s.p));
            user = vg_slice(slash + 1, s.n - domain.n - 1);
            if (domain.n >= DOMAIN_MAX)
                vg_bad_text(c, at, "runAsUserName's Domain length must be under %u characters",
                            DOMAIN_MAX);
            if (!is_net_bios(domain) && !is_dns(domain))
                vg_bad_text(c, at,
                            "runAsUserName's Domain doesn't match the NetBios nor the DNS format");
        }
        check_user(c, at, user);
    }
}

void vg_pod_check_windows_options(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at name = vg_at(at, "gmsaCredentialSpecName"), spec = vg_at(at, "gmsaCredentialSpec");
    struct vg_at user = vg_at(at, "runAsUserName");
    if (vg_at_is_set(&name))
        (void)vg_check_dns_subdomain(c, &name);
    if (vg_at_is_set(&spec) && vg_at_text(&spec).n == 0)
        vg_bad_text(c, &spec, "gmsaCredentialSpec cannot be an empty string");
    else if (vg_at_text(&spec).n > CREDENTIAL_SPEC_MAX)
        vg_bad_text(c, &spec, "gmsaCredentialSpec size must be under 64 KiB");
    if (vg_at_is_set(&user))
        check_user_name(c, &user);
}

/* ---- containers that are processes of the node ---- */

struct host_process {
    struct vg_at of_pod;
    uint32_t all, of_host;
};

static void count_host_process(struct vg_pod *p, const struct vg_at *container, void *ctx)
{
    struct host_process *h = ctx;
    struct vg_at security = vg_at(container, "securityContext");
    struct vg_at windows = vg_at(&security, "windowsOptions"), own = vg_at(&windows, "hostProcess");
    bool is_of_pod = vg_at_is_true(&h->of_pod);
    h->all++;
    if (vg_at_is_set(&h->of_pod) && vg_at_is_set(&own) && is_of_pod != vg_at_is_true(&own))
        vg_bad(p->c, &own, "pod hostProcess value must be identical if both are specified, was %s",
               is_of_pod ? "true" : "false");
    h->of_host += vg_at_is_set(&own) ? vg_at_is_true(&own) : is_of_pod;
}

void vg_pod_check_host_process(struct vg_pod *p)
{
    struct vg_at security = vg_at(p->spec, "securityContext");
    struct vg_at windows = vg_at(&security, "windowsOptions");
    struct host_process h = {.of_pod = vg_at(&windows, "hostProcess")};
    struct vg_at network = vg_at(p->spec, "hostNetwork");
    vg_pod_each_container(p, count_host_process, &h);
    if (h.of_host == 0)
        return;
    if (h.of_host != h.all)
        vg_bad_value(p->c, p->spec, VG_SLICE_LIT("\"\""),
                     "If pod contains any hostProcess containers then all containers must be "
                     "HostProcess containers");
    if (!vg_at_is_true(&network))
        vg_bad_value(p->c, &network, VG_SLICE_LIT("false"),
                     "hostNetwork must be true if pod contains any hostProcess containers");
}

/* ---- settings of the other system ---- */

static void forbid_windows_options(struct vg_pod *p, const struct vg_at *holder, void *ctx)
{
    struct vg_at security = vg_at(holder, "securityContext");
    struct vg_at windows = vg_at(&security, "windowsOptions");
    (void)ctx;
    if (vg_at_is_set(&windows))
        vg_forbidden(p->c, &windows, "windows options cannot be set for a linux pod");
}

static void forbid(struct vg_pod *p, const struct vg_at *up, const char *name)
{
    struct vg_at at = vg_at(up, name);
    bool is_empty = vg_json_is(at.v, VG_JSON_ARRAY) && at.v->n == 0;
    bool is_off = vg_json_is(at.v, VG_JSON_BOOL) && !vg_at_is_true(&at) &&
                  (strcmp(name, "hostPID") == 0 || strcmp(name, "hostIPC") == 0);
    if (vg_at_is_set(&at) && !is_empty && !is_off)
        vg_forbidden(p->c, &at, "cannot be set for a windows pod");
}

static void forbid_linux_container(struct vg_pod *p, const struct vg_at *container, void *ctx)
{
    static const char *const names[] = {"appArmorProfile",
                                        "seLinuxOptions",
                                        "seccompProfile",
                                        "capabilities",
                                        "readOnlyRootFilesystem",
                                        "privileged",
                                        "allowPrivilegeEscalation",
                                        "procMount",
                                        "runAsUser",
                                        "runAsGroup"};
    struct vg_at security = vg_at(container, "securityContext");
    (void)ctx;
    for (size_t i = 0; i < VG_ARRAY_LEN(names); i++)
        forbid(p, &security, names[i]);
}

static void forbid_linux(struct vg_pod *p)
{
    static const struct {
        const char *name;
        bool is_of_spec;
    } names[] = {{"appArmorProfile", false},
                 {"seLinuxOptions", false},
                 {"hostUsers", true},
                 {"hostPID", true},
                 {"hostIPC", true},
                 {"seccompProfile", false},
                 {"fsGroup", false},
                 {"fsGroupChangePolicy", false},
                 {"sysctls", false},
                 {"shareProcessNamespace", true},
                 {"runAsUser", false},
                 {"runAsGroup", false},
                 {"supplementalGroups", false},
                 {"supplementalGroupsPolicy", false},
                 {"seLinuxChangePolicy", false}};
    struct vg_at security = vg_at(p->spec, "securityContext");
    for (size_t i = 0; i < VG_ARRAY_LEN(names); i++)
        forbid(p, names[i].is_of_spec ? p->spec : &security, names[i].name);
    vg_pod_each_container(p, forbid_linux_container, NULL);
}

void vg_pod_check_os(struct vg_pod *p)
{
    static const char *const systems[] = {"linux", "windows", NULL};
    struct vg_at os = vg_at(p->spec, "os"), name = vg_at(&os, "name");
    if (!p->has_os || !vg_check_given(p->c, &name))
        return;
    os.v = name.v;
    if (!vg_check_one_of(p->c, &os, systems))
        return;
    if (vg_pod_is_windows(p)) {
        forbid_linux(p);
        return;
    }
    forbid_windows_options(p, p->spec, NULL);
    vg_pod_each_container(p, forbid_windows_options, NULL);
}
