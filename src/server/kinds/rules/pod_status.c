/* pod_status.c - writes of the status of a pod. Container statuses are not held against each
 * other's users and allocated resources. */
#include "go_struct.h"
#include "ip.h"
#include "pod_int.h"
#include "workload.h"

static void check_conditions(struct vg_check *c, const struct vg_at *status)
{
    struct vg_at list = vg_at(status, "conditions");
    VG_CHECK_EACH (c, it, &list) {
        struct vg_at type = vg_at_of(&it, "Type", vg_json_get_str(it.v, "type"));
        struct vg_at generation = vg_at(&it, "observedGeneration");
        if (vg_at_int(&generation) < 0)
            vg_bad_int(c, &generation, "must be a non-negative integer");
        if (!vg_at_is(&type, "PodScheduled") && !vg_at_is(&type, "Ready") &&
            !vg_at_is(&type, "Initialized"))
            (void)vg_check_qualified(c, &type);
    }
}

static void check_nomination(struct vg_check *c, const struct vg_at *status,
                             const struct vg_json *old)
{
    struct vg_at node = vg_at(status, "nominatedNodeName");
    struct vg_slice before = vg_json_text(vg_json_at_path(old, "status.nominatedNodeName"));
    if (vg_at_text(&node).n == 0 || vg_slice_eq(vg_at_text(&node), before))
        return;
    (void)vg_check_dns_subdomain(c, &node);
    if (vg_json_text(vg_json_at_path(old, "spec.nodeName")).n)
        vg_forbidden(c, &node, "may not be set on pods that are already bound to a node");
}

/* ---- containers that ended ---- */

/* The items of a list by their names. */
static void gather(struct vg_check *c, const struct vg_json *list, struct vg_names *names)
{
    for (uint32_t i = 0; vg_json_is(list, VG_JSON_ARRAY) && i < list->n; i++) {
        const struct vg_json *it = &list->items[i];
        (void)vg_names_add(c, names, vg_json_text(vg_json_get_str(it, "name")), it);
    }
}

static bool has_code(const struct vg_json *codes, int64_t code)
{
    const struct vg_json *values = vg_json_get_str(codes, "values");
    int64_t v;
    bool is_in = false;
    if (values)
        VG_JSON_FOREACH_ITEM (it, values)
            is_in = is_in || (vg_json_to_int64(it, &v) == 0 && v == code);
    bool is_not =
        vg_slice_eq(vg_json_text(vg_json_get_str(codes, "operator")), VG_SLICE_LIT("NotIn"));
    return is_in != is_not;
}

static bool may_restart(const struct vg_json *container, const struct vg_json *spec, int64_t code)
{
    const struct vg_json *rules = vg_json_get_str(container, "restartPolicyRules");
    const struct vg_json *own = vg_json_get_str(container, "restartPolicy");
    struct vg_slice policy = vg_json_text(own ? own : vg_json_get_str(spec, "restartPolicy"));
    if (!container)
        return false;
    if (rules)
        VG_JSON_FOREACH_ITEM (rule, rules)
            if (has_code(vg_json_get_str(rule, "exitCodes"), code))
                return true;
    return vg_slice_eq(policy, VG_SLICE_LIT("Always")) ||
           (vg_slice_eq(policy, VG_SLICE_LIT("OnFailure")) && code != 0);
}

/* One rule that restarts all lets every container run again. */
static bool all_may_restart(const struct vg_json *list)
{
    if (list)
        VG_JSON_FOREACH_ITEM (container, list) {
            const struct vg_json *rules = vg_json_get_str(container, "restartPolicyRules");
            if (rules)
                VG_JSON_FOREACH_ITEM (rule, rules)
                    if (vg_slice_eq(vg_json_text(vg_json_get_str(rule, "action")),
                                    VG_SLICE_LIT("RestartAllContainers")))
                        return true;
        }
    return false;
}

static void check_ended(struct vg_check *c, const struct vg_at *status, const struct vg_json *old,
                        const char *name, const char *containers)
{
    struct vg_at now = vg_at(status, name);
    const struct vg_json *spec = vg_json_get_str(old, "spec");
    struct vg_at before = vg_at_of(status, name, vg_json_at_path(old, "status"));
    VG_AUTO(names) next = {0};
    VG_AUTO(names) known = {0};
    before.v = vg_json_get_str(before.v, name);
    gather(c, now.v, &next);
    gather(c, containers ? vg_json_get_str(spec, containers) : NULL, &known);
    VG_CHECK_EACH (c, it, &before) {
        struct vg_slice text = vg_json_text(vg_json_get_str(it.v, "name"));
        const struct vg_json *ended = vg_json_at_path(it.v, "state.terminated"), *then = NULL;
        const struct vg_json *container = NULL;
        struct vg_at state = vg_at(&it, "state"), code = {.v = vg_json_get_str(ended, "exitCode")};
        if (!ended || !vg_names_find(&next, text, &then) ||
            vg_json_at_path(then, "state.terminated"))
            continue;
        (void)vg_names_find(&known, text, &container);
        if (!may_restart(container, spec, vg_at_int(&code)))
            vg_forbidden(c, &state, "may not be transitioned to non-terminated state");
    }
}

/* ---- addresses ---- */

static void check_ips(struct vg_check *c, const struct vg_at *status, const struct vg_json *old,
                      const char *name)
{
    struct vg_at list = vg_at(status, name);
    const struct vg_json *kept = vg_json_get_str(vg_json_get_str(old, "status"), name);
    VG_AUTO(names) before = {0};
    size_t of_v4 = 0, of_v6 = 0;
    if (kept)
        VG_JSON_FOREACH_ITEM (it, kept)
            (void)vg_names_add(c, &before, vg_json_text(vg_json_get_str(it, "ip")), NULL);
    VG_CHECK_EACH (c, it, &list) {
        struct vg_at blamed = it;
        struct vg_ip ip;
        blamed.v = vg_json_get_str(it.v, "ip");
        if (!vg_names_has(&before, vg_at_text(&blamed)))
            (void)vg_check_ip(c, &blamed);
        if (vg_ip_parse(vg_at_text(&blamed), &ip)) {
            of_v4 += ip.is_v4;
            of_v6 += !ip.is_v4;
        }
    }
    if (vg_at_n(&list) > 1 && (of_v4 != 1 || of_v6 != 1))
        vg_bad_value(c, &list, vg_go_struct_of(c, "", "PodIP", list.v),
                     "may specify no more than one IP for each IP family");
}

static void check_host_ip(struct vg_check *c, const struct vg_at *status)
{
    struct vg_at ip = vg_at(status, "hostIP"), list = vg_at(status, "hostIPs");
    struct vg_at first = vg_at_item(&list, 0), own = vg_at(&first, "ip");
    if (first.v && !vg_slice_eq(vg_at_text(&ip), vg_at_text(&own)))
        vg_bad_text(c, &own, "must be equal to `hostIP`");
}

/* ---- all of it ---- */

static void check_claims(struct vg_check *c, const struct vg_at *status, const struct vg_json *spec)
{
    struct vg_at list = vg_at(status, "resourceClaimStatuses");
    const struct vg_json *claims = vg_json_get_str(spec, "resourceClaims");
    VG_AUTO(names) known = {0};
    VG_AUTO(names) seen = {0};
    if (claims)
        VG_JSON_FOREACH_ITEM (it, claims)
            (void)vg_names_add(c, &known, vg_json_text(vg_json_get_str(it, "name")), NULL);
    VG_CHECK_EACH (c, it, &list) {
        struct vg_at name = vg_at(&it, "name"), claim = vg_at(&it, "resourceClaimName");
        if (!vg_names_has(&known, vg_at_text(&name)))
            vg_bad_text(c, &name, "must match the name of an entry in `spec.resourceClaims`");
        if (!vg_names_add(c, &seen, vg_at_text(&name), NULL))
            vg_duplicate(c, &name);
        if (vg_at_is_set(&claim))
            (void)vg_check_dns_subdomain(c, &claim);
    }
}

void vg_pod_check_status(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at status = vg_at(obj, "status"), class = vg_at(&status, "qosClass");
    struct vg_at generation = vg_at(&status, "observedGeneration");
    const struct vg_json *spec = vg_json_get_str(old, "spec");
    vg_pod_check_kept_annotations(c, obj, old);
    check_conditions(c, &status);
    check_nomination(c, &status, old);
    if (vg_at_int(&generation) < 0)
        vg_bad_int(c, &generation, "must be a non-negative integer");
    (void)vg_check_immutable(c, &class, vg_json_at_path(old, "status.qosClass"));
    if (!all_may_restart(vg_json_get_str(spec, "containers")) &&
        !all_may_restart(vg_json_get_str(spec, "initContainers"))) {
        check_ended(c, &status, old, "containerStatuses", "containers");
        check_ended(c, &status, old, "initContainerStatuses", "initContainers");
    }
    check_ended(c, &status, old, "ephemeralContainerStatuses", NULL);
    check_claims(c, &status, spec);
    check_ips(c, &status, old, "podIPs");
    check_host_ip(c, &status);
    check_ips(c, &status, old, "hostIPs");
}
