/* node.c - the rules of nodes and namespaces. Left out: taints and pods to avoid in annotations,
 * which came before the fields, and where the kubelet takes its configuration from. */
#include "base/buf.h"
#include "go_struct.h"
#include "ip.h"
#include "names.h"
#include "resources.h"
#include "rules.h"

#define CIDR_MESSAGE "node updates may not change podCIDR except from \"\" to valid"

/* ---- taints ---- */

static void check_effect(struct vg_check *c, const struct vg_at *at)
{
    static const char *const effects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute", NULL};
    if (vg_check_given(c, at))
        (void)vg_check_one_of(c, at, effects);
}

static void check_value(struct vg_check *c, const struct vg_at *at)
{
    struct vg_name_reasons why = {0};
    VG_AUTO(buf) all = {0};
    if (vg_validate_label_value(vg_at_text(at), &why))
        return;
    for (uint32_t i = 0; i < why.n; i++)
        c->errors->failed |= vg_buf_printf(&all, "%s%s", i ? ";" : "", why.v[i]) < 0;
    vg_bad_text(c, at, "%.*s", VG_SLICE_ARG(vg_buf_slice(&all)));
}

static bool is_new_taint(struct vg_check *c, struct vg_names *seen, const struct vg_at *taint)
{
    struct vg_at key = vg_at(taint, "key"), effect = vg_at(taint, "effect");
    struct vg_slice both;
    if (vg_arena_printf(c->arena, &both, "%.*s:%.*s", VG_SLICE_ARG(vg_at_text(&effect)),
                        VG_SLICE_ARG(vg_at_text(&key))) < 0) {
        c->errors->failed = true;
        return true;
    }
    return vg_names_add(c, seen, both, taint->v);
}

/* They are blamed on metadata, as there. */
static void check_taints(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at meta = vg_at(obj, "metadata");
    struct vg_at taints = vg_at_of(&meta, "taints", vg_json_at_path(obj->v, "spec.taints"));
    VG_AUTO(names) seen = {.n = 0};
    VG_CHECK_EACH (c, taint, &taints) {
        struct vg_at key = vg_at(&taint, "key"), value = vg_at(&taint, "value");
        struct vg_at effect = vg_at(&taint, "effect");
        (void)vg_check_qualified(c, &key);
        check_value(c, &value);
        check_effect(c, &effect);
        if (!is_new_taint(c, &seen, &taint))
            vg_duplicate_because(c, &taint, vg_go_struct_of(c, "", "Taint", taint.v),
                                 "taints must be unique by key and effect pair");
    }
}

/* ---- amounts, addresses, ranges ---- */

static void check_amounts(struct vg_check *c, const struct vg_at *obj, const char *name)
{
    struct vg_at status = vg_at(obj, "status"), map = vg_at(&status, name);
    for (uint32_t i = 0; i < vg_at_n(&map); i++) {
        const struct vg_json_member *m = &map.v->members[i];
        char key[VG_LABEL_KEY_MAX + 1];
        size_t n = m->key_n < sizeof key ? m->key_n : sizeof key - 1;
        memcpy(key, m->key, n);
        key[n] = '\0';
        struct vg_at at = vg_at_of(&map, key, &m->value); /* status.capacity.cpu */
        vg_check_resource_amount(c, &at, vg_json_key(m));
    }
}

/* The first range that cannot be read. */
static bool find_bad_range(const struct vg_at *ranges, struct vg_at *ret)
{
    struct vg_cidr n;
    VG_AT_FOREACH (at, ranges)
        if (!vg_cidr_parse(vg_at_text(&at), &n)) {
            *ret = at;
            return true;
        }
    return false;
}

static bool is_dual(const struct vg_at *ranges)
{
    bool has[2] = {false, false};
    VG_AT_FOREACH (at, ranges) {
        struct vg_cidr n;
        if (!vg_cidr_parse(vg_at_text(&at), &n))
            return false;
        has[vg_ip_means_v4(&n.ip)] = true;
    }
    return has[0] && has[1];
}

static void check_ranges(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at spec = vg_at(obj, "spec"), ranges = vg_at(&spec, "podCIDRs"), bad;
    VG_CHECK_EACH (c, range, &ranges)
        (void)vg_check_cidr(c, &range);
    if (vg_at_n(&ranges) < 2)
        return;
    if (find_bad_range(&ranges, &bad))
        vg_internal(
            c, &ranges,
            "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[%u]: "
            "<nil> (invalid CIDR address: %.*s)",
            bad.index, VG_SLICE_ARG(vg_at_text(&bad)));
    if (!is_dual(&ranges) || vg_at_n(&ranges) > 2)
        vg_bad(c, &ranges, "may specify no more than one CIDR for each IP family");
}

static void check_node(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at meta = vg_at(obj, "metadata");
    const struct vg_json *swap = vg_json_at_path(obj->v, "status.nodeInfo.swap");
    struct vg_at place = vg_at_of(&meta, "nodeSwapStatus", swap), size = vg_at(&place, "capacity");
    check_taints(c, obj);
    check_amounts(c, obj, "capacity");
    check_amounts(c, obj, "allocatable");
    if (vg_at_is_set(&size))
        (void)vg_check_positive(c, &size);
    check_ranges(c, obj);
}

static void check_addresses(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at status = vg_at(obj, "status"), list = vg_at(&status, "addresses");
    VG_AUTO(names) seen = {.n = 0};
    VG_CHECK_EACH (c, at, &list) {
        struct vg_at type = vg_at(&at, "type"), address = vg_at(&at, "address");
        struct vg_slice both;
        if (vg_arena_printf(c->arena, &both, "%.*s %.*s", VG_SLICE_ARG(vg_at_text(&type)),
                            VG_SLICE_ARG(vg_at_text(&address))) < 0)
            c->errors->failed = true;
        else if (!vg_names_add(c, &seen, both, at.v))
            vg_duplicate_value(c, &at, vg_go_struct_of(c, "", "NodeAddress", at.v));
    }
}

static void check_kept_ranges(struct vg_check *c, const struct vg_at *spec,
                              const struct vg_json *old)
{
    struct vg_at ranges = vg_at(spec, "podCIDRs");
    const struct vg_json *before = vg_json_at_path(old, "spec.podCIDRs");
    if (!before || before->n == 0)
        return;
    if (before->n != vg_at_n(&ranges))
        vg_forbidden(c, &ranges, CIDR_MESSAGE);
    for (uint32_t i = 0; before->n == vg_at_n(&ranges) && i < before->n; i++)
        if (!vg_slice_eq(vg_json_text(&before->items[i]), vg_json_text(&ranges.v->items[i])))
            vg_forbidden(c, &ranges, CIDR_MESSAGE);
}

/* What an update of anything in a node must keep. */
static void check_kept(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), provider = vg_at(&spec, "providerID");
    struct vg_at external = vg_at(&spec, "externalID");
    struct vg_slice id = vg_json_text(vg_json_at_path(old, "spec.providerID"));
    check_amounts(c, obj, "capacity");
    check_amounts(c, obj, "allocatable");
    check_addresses(c, obj);
    check_kept_ranges(c, &spec, old);
    if (id.n && !vg_slice_eq(id, vg_at_text(&provider)))
        vg_forbidden(c, &provider,
                     "node updates may not change providerID except from \"\" to valid");
    check_taints(c, obj);
    if (!vg_slice_eq(vg_at_text(&external), vg_json_text(vg_json_at_path(old, "spec.externalID"))))
        vg_forbidden(c, &external, "may not be updated");
}

static void check_node_update(struct vg_check *c, const struct vg_at *obj,
                              const struct vg_json *old)
{
    check_node(c, obj);
    check_kept(c, obj, old);
}

static void warn_node(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), source = vg_at(&spec, "configSource");
    struct vg_at external = vg_at(&spec, "externalID"), ranges = vg_at(&spec, "podCIDRs");
    (void)old;
    if (vg_at_is_set(&source))
        vg_caution_at(c, &source, "the feature is removed");
    if (vg_at_text(&external).n)
        vg_caution_at(c, &external, "this field is deprecated, and is unused by Kubernetes");
    VG_CHECK_EACH (c, range, &ranges)
        vg_caution_cidr(c, &range);
}

/* Configuration by the cluster is no more, but for nodes that have it. */
static int prepare_node(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old)
{
    struct vg_json *spec = vg_json_get_str(obj, "spec");
    (void)a;
    if (spec && !vg_json_at_path(old, "spec.configSource"))
        (void)vg_json_object_remove(spec, VG_SLICE_LIT("configSource"));
    return 0;
}

const struct vg_rules vg_rules_node = {.group = "",
                                       .kind = "Node",
                                       .prepare = prepare_node,
                                       .ignores_meta = true,
                                       .check = check_node,
                                       .check_update = check_node_update,
                                       .check_status = check_kept,
                                       .warn = warn_node};

/* ---- namespaces ---- */

static void check_namespace(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at spec = vg_at(obj, "spec"), list = vg_at(&spec, "finalizers");
    VG_CHECK_EACH (c, finalizer, &list) {
        struct vg_at at = list;
        struct vg_slice name = vg_at_text(&finalizer);
        at.v = finalizer.v;
        (void)vg_check_qualified(c, &at);
        if (!(name.n && memchr(name.p, '/', name.n)) && !vg_at_is(&at, "kubernetes") &&
            !vg_at_is(&at, "orphan") && !vg_at_is(&at, "foregroundDeletion"))
            vg_bad_text(c, &at,
                        "name is neither a standard finalizer name nor is it fully qualified");
    }
}

static void check_namespace_status(struct vg_check *c, const struct vg_at *obj,
                                   const struct vg_json *old)
{
    const struct vg_json *status = vg_json_get_str(obj->v, "status");
    struct vg_at place = vg_at_of(obj, "status", status);
    struct vg_at phase = vg_at_of(&place, "Phase", vg_json_get_str(status, "phase"));
    bool is_going = vg_json_at_path(old, "metadata.deletionTimestamp") != NULL;
    if (!is_going && !vg_at_is(&phase, "Active"))
        vg_bad_text(c, &phase, "may only be 'Active' if `deletionTimestamp` is empty");
    if (is_going && !vg_at_is(&phase, "Terminating"))
        vg_bad_text(c, &phase, "may only be 'Terminating' if `deletionTimestamp` is not empty");
}

const struct vg_rules vg_rules_namespace = {.group = "",
                                            .kind = "Namespace",
                                            .check = check_namespace,
                                            .check_status = check_namespace_status};
