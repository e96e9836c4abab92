/* pod_security.c - security contexts of pods and containers: users and groups, profiles, sysctls,
 * and settings that share the node's namespaces. */
#include "go_struct.h"
#include "pod_int.h"
#include "workload.h"

#define ID_MAX INT32_MAX
#define SYSCTL_MAX 253u
#define PROFILE_PATH_MAX 4095u

static void check_id(struct vg_check *c, const struct vg_at *up, const char *name)
{
    struct vg_at id = vg_at(up, name);
    if (vg_at_is_set(&id))
        (void)vg_check_range(c, &id, 0, ID_MAX);
}

static void check_choice(struct vg_check *c, const struct vg_at *up, const char *name,
                         const char *const *supported)
{
    struct vg_at at = vg_at(up, name);
    if (vg_at_is_set(&at))
        (void)vg_check_one_of(c, &at, supported);
}

/* ---- profiles ---- */

static const char *const profile_types[] = {"Localhost", "RuntimeDefault", "Unconfined", NULL};

static void check_seccomp(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at type = vg_at(at, "type"), local = vg_at(at, "localhostProfile");
    if (!vg_at_is_set(at))
        return;
    if (vg_at_text(&type).n == 0)
        vg_required(c, &type, "type is required when seccompProfile is set");
    else
        (void)vg_check_one_of(c, &type, profile_types);
    if (!vg_at_is(&type, "Localhost")) {
        if (vg_at_is_set(&local))
            vg_bad_value(c, &local, vg_go_struct_of(c, "", "SeccompProfile", at->v),
                         "can only be set when seccomp type is Localhost");
    } else if (!vg_at_is_set(&local)) {
        vg_required(c, &local, "must be set when seccomp type is Localhost");
    } else {
        (void)vg_check_descending_path(c, &local);
    }
}

static bool is_blank(char ch)
{
    return ch == ' ' || (ch >= '\t' && ch <= '\r');
}

static void check_local_armor(struct vg_check *c, const struct vg_at *local)
{
    static const char needed[] = "must be set when AppArmor type is Localhost";
    struct vg_slice s = vg_at_text(local);
    if (!vg_at_is_set(local)) {
        vg_required(c, local, needed);
        return;
    }
    if (s.n && (is_blank(s.p[0]) || is_blank(s.p[s.n - 1])))
        vg_bad_text(c, local, "must not be padded with whitespace");
    else if (s.n == 0)
        vg_required(c, local, needed);
    if (s.n > PROFILE_PATH_MAX)
        vg_too_long(c, local, PROFILE_PATH_MAX);
}

static void check_app_armor(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at type = vg_at(at, "type"), local = vg_at(at, "localhostProfile");
    if (!vg_at_is_set(at))
        return;
    if (vg_at_text(&type).n == 0)
        vg_required(c, &type, "type is required when appArmorProfile is set");
    else if (vg_at_is(&type, "Localhost"))
        check_local_armor(c, &local);
    else if (vg_check_one_of(c, &type, profile_types) && vg_at_is_set(&local))
        vg_bad_text(c, &local, "can only be set when AppArmor type is Localhost");
}

/* ---- of a container ---- */

/* Without escalation there is nothing that would give the same. */
static void check_escalation(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at escalation = vg_at(at, "allowPrivilegeEscalation");
    struct vg_at privileged = vg_at(at, "privileged"), capabilities = vg_at(at, "capabilities");
    struct vg_at added = vg_at(&capabilities, "add");
    if (!vg_at_is_set(&escalation) || vg_at_is_true(&escalation))
        return;
    if (vg_at_is_true(&privileged))
        vg_bad_value(c, at, vg_go_struct_of(c, "", "SecurityContext", at->v),
                     "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
    VG_CHECK_EACH (c, it, &added)
        if (vg_at_is(&it, "CAP_SYS_ADMIN"))
            vg_bad_value(c, at, vg_go_struct_of(c, "", "SecurityContext", at->v),
                         "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` "
                         "CAP_SYS_ADMIN");
}

void vg_pod_check_container_security(struct vg_pod *p, const struct vg_at *at)
{
    static const char *const proc_mounts[] = {"Default", "Unmasked", NULL};
    struct vg_at proc = vg_at(at, "procMount"), seccomp = vg_at(at, "seccompProfile");
    struct vg_at windows = vg_at(at, "windowsOptions"), armor = vg_at(at, "appArmorProfile");
    if (!vg_at_is_set(at))
        return;
    check_id(p->c, at, "runAsUser");
    check_id(p->c, at, "runAsGroup");
    if (vg_at_is_set(&proc)) {
        (void)vg_check_one_of(p->c, &proc, proc_mounts);
        if (p->is_host_users && vg_at_is(&proc, "Unmasked"))
            vg_bad_text(p->c, &proc, "`hostUsers` must be false to use `Unmasked`");
    }
    check_seccomp(p->c, &seccomp);
    check_escalation(p->c, at);
    vg_pod_check_windows_options(p->c, &windows);
    check_app_armor(p->c, &armor);
}

/* ---- of a pod ---- */

/* Segments of lower case letters and digits, with - and _ inside, joined by dots or slashes. */
static bool is_sysctl(struct vg_slice s)
{
    bool is_start = true, is_end = false;
    for (size_t i = 0; i < s.n; i++) {
        char ch = s.p[i];
        bool is_letter = (ch >= 'a' && ch <= 'z') || (ch >= '0' && ch <= '9');
        if (ch == '.' || ch == '/') {
            if (!is_end)
                return false;
            is_start = true;
            is_end = false;
            continue;
        }
        if (!is_letter && (is_start || (ch != '-' && ch != '_')))
            return false;
        is_start = false;
        is_end = is_letter;
    }
    return is_end && s.n <= SYSCTL_MAX;
}

/* Which namespace of the kernel a sysctl belongs to. */
static bool has_root(struct vg_slice name, const char *const *roots)
{
    for (; *roots; roots++) {
        size_t n = strlen(*roots);
        bool is_tree = (*roots)[n - 1] == '.';
        if (name.n < n || (!is_tree && name.n != n))
            continue;
        bool is_same = true; /* a slash separates as well as a dot */
        for (size_t i = 0; i < n && is_same; i++)
            is_same = (name.p[i] == '/' ? '.' : name.p[i]) == (*roots)[i];
        if (is_same)
            return true;
    }
    return false;
}

static void check_host_sysctl(struct vg_pod *p, const struct vg_at *name)
{
    static const char *const net[] = {"net.", NULL};
    static const char *const ipc[] = {"kernel.sem",
                                      "kernel.shm",
                                      "kernel.msg",
                                      "kernel.shmall",
                                      "kernel.shmmax",
                                      "kernel.shmmni",
                                      "kernel.shm_rmid_forced",
                                      "kernel.msgmax",
                                      "kernel.msgmnb",
                                      "kernel.msgmni",
                                      "fs.mqueue.",
                                      NULL};
    struct vg_at network = vg_at(p->spec, "hostNetwork"), host_ipc = vg_at(p->spec, "hostIPC");
    if (vg_at_is_true(&network) && has_root(vg_at_text(name), net))
        vg_bad_text(p->c, name, "may not be specified when 'hostNetwork' is true");
    else if (vg_at_is_true(&host_ipc) && has_root(vg_at_text(name), ipc))
        vg_bad_text(p->c, name, "may not be specified when 'hostIPC' is true");
}

static void check_sysctls(struct vg_pod *p, const struct vg_at *at)
{
    struct vg_at list = vg_at(at, "sysctls");
    VG_AUTO(names) seen = {0};
    VG_CHECK_EACH (p->c, it, &list) {
        struct vg_at name = vg_at(&it, "name");
        if (vg_at_text(&name).n == 0)
            vg_required(p->c, &name, NULL);
        else if (!is_sysctl(vg_at_text(&name)))
            vg_bad_text(p->c, &name,
                        "must have at most %u characters and match regex "
                        "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$",
                        SYSCTL_MAX);
        else if (vg_names_has(&seen, vg_at_text(&name)))
            vg_duplicate(p->c, &name);
        check_host_sysctl(p, &name);
        (void)vg_names_add(p->c, &seen, vg_at_text(&name), NULL);
    }
}

void vg_pod_check_security(struct vg_pod *p)
{
    static const char *const change_policies[] = {"Always", "OnRootMismatch", NULL};
    static const char *const group_policies[] = {"Merge", "Strict", NULL};
    static const char *const label_policies[] = {"Recursive", NULL};
    struct vg_at at = vg_at(p->spec, "securityContext"), groups = vg_at(&at, "supplementalGroups");
    struct vg_at seccomp = vg_at(&at, "seccompProfile"), armor = vg_at(&at, "appArmorProfile");
    struct vg_at windows = vg_at(&at, "windowsOptions"), pid = vg_at(p->spec, "hostPID");
    const struct vg_json *share = vg_json_get_str(p->spec->v, "shareProcessNamespace");
    struct vg_at shared = vg_at_of(&at, "shareProcessNamespace", share);
    check_id(p->c, &at, "fsGroup");
    check_id(p->c, &at, "runAsUser");
    check_id(p->c, &at, "runAsGroup");
    VG_CHECK_EACH (p->c, group, &groups)
        (void)vg_check_range(p->c, &group, 0, ID_MAX);
    if (vg_at_is_true(&pid) && vg_at_is_true(&shared))
        vg_bad(p->c, &shared, "ShareProcessNamespace and HostPID cannot both be enabled");
    check_sysctls(p, &at);
    check_choice(p->c, &at, "fsGroupChangePolicy", change_policies);
    check_seccomp(p->c, &seccomp);
    vg_pod_check_windows_options(p->c, &windows);
    check_app_armor(p->c, &armor);
    check_choice(p->c, &at, "supplementalGroupsPolicy", group_policies);
    check_choice(p->c, &at, "seLinuxChangePolicy", label_policies);
}
