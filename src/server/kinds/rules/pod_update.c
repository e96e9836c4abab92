/* pod_update.c - updates of a pod: of its spec almost nothing may change. */
#include "go_struct.h"
#include "pod_int.h"
#include "workload.h"

static bool differs(struct vg_check *c, const struct vg_json *a, const struct vg_json *b)
{
    return !vg_check_same(c, a, b);
}

/* ---- annotations that stay ---- */

static bool is_kept(struct vg_slice key, bool *is_mirror)
{
    *is_mirror = vg_slice_eq(key, VG_SLICE_LIT("kubernetes.io/config.mirror"));
    return *is_mirror || vg_slice_has_prefix(
                             key, VG_SLICE_LIT("container.apparmor.security.beta.kubernetes.io/"));
}

void vg_pod_check_kept_annotations(struct vg_check *c, const struct vg_at *obj,
                                   const struct vg_json *old)
{
    struct vg_at meta = vg_at(obj, "metadata"), now = vg_at(&meta, "annotations");
    struct vg_at spec = vg_at(obj, "spec");
    struct vg_pod p = {.c = c, .spec = &spec};
    const struct vg_json *before = vg_json_at_path(old, "metadata.annotations");
    VG_AUTO(json_lookup) is;
    VG_AUTO(json_lookup) was;
    bool is_mirror;
    vg_json_lookup_init(&is, now.v);
    vg_json_lookup_init(&was, before);
    if (before)
        VG_JSON_FOREACH_MEMBER (m, before) {
            struct vg_at at = vg_at_key(&now, m);
            const struct vg_json *v =
                is_kept(at.key, &is_mirror) ? vg_check_find(c, &is, at.key, UINT32_MAX) : NULL;
            if (!is_kept(at.key, &is_mirror) ||
                (v && vg_slice_eq(vg_json_text(v), vg_json_text(&m->value))))
                continue;
            vg_forbidden(c, &at, "may not remove or update %s",
                         is_mirror ? "mirror pod annotation" : "AppArmor annotations");
        }
    if (now.v)
        VG_JSON_FOREACH_MEMBER (m, now.v) {
            struct vg_at at = vg_at_key(&now, m);
            if (is_kept(at.key, &is_mirror) && !vg_check_find(c, &was, at.key, UINT32_MAX))
                vg_forbidden(c, &at, "may not add %s",
                             is_mirror ? "mirror pod annotation" : "AppArmor annotations");
        }
    vg_pod_check_annotations(&p, &now); /* once more, as there */
}

/* ---- what may change, and how ---- */

/* false: nothing else need be looked at. */
static bool check_containers(struct vg_check *c, const struct vg_at *spec,
                             const struct vg_json *old_spec, const char *name)
{
    struct vg_at now = vg_at(spec, name),
                 before = vg_at_of(spec, name, vg_json_get_str(old_spec, name));
    if (vg_at_n(&now) == vg_at_n(&before)) {
        VG_CHECK_EACH (c, container, &now) {
            struct vg_at image = vg_at(&container, "image");
            (void)vg_check_given(c, &image);
        }
        vg_pod_check_blanks(c, &now);
        return true;
    }
    vg_forbidden(c, &now, "pod updates may not add or remove containers");
    return false;
}

/* It may be set, and come nearer. false: nothing else need be looked at. */
static bool check_deadline(struct vg_check *c, const struct vg_at *spec,
                           const struct vg_json *old_spec)
{
    struct vg_at now = vg_at(spec, "activeDeadlineSeconds");
    struct vg_at before = vg_at_of(spec, "", vg_json_get_str(old_spec, "activeDeadlineSeconds"));
    if (!vg_at_is_set(&now)) {
        if (vg_at_is_set(&before))
            vg_bad(c, &now, "must not update from a positive integer to nil value");
        return true;
    }
    if (!vg_check_range(c, &now, 0, INT32_MAX))
        return false;
    if (!vg_at_is_set(&before) || vg_at_int(&before) >= vg_at_int(&now))
        return true;
    vg_bad_int(c, &now, "must be less than or equal to previous value");
    return false;
}

/* What makes a toleration the same one, as one text. */
static struct vg_slice toleration_text(struct vg_check *c, const struct vg_json *v)
{
    static const char *const fields[] = {"key", "operator", "value", "effect"};
    VG_AUTO(buf) b = {0};
    struct vg_slice ret = {0};
    int err = 0;
    for (size_t i = 0; i < VG_ARRAY_LEN(fields) && err == 0; i++) {
        struct vg_slice text = vg_json_text(vg_json_get_str(v, fields[i]));
        err = vg_buf_printf(&b, "%zu:%.*s", text.n, VG_SLICE_ARG(text));
    }
    if (err < 0 || vg_arena_keep(c->arena, vg_buf_slice(&b), &ret) < 0)
        c->errors->failed = true;
    return ret;
}

/* Are all of `before` still there, in any order? A client may make both lists long. */
static bool has_tolerations(struct vg_check *c, const struct vg_at *now,
                            const struct vg_json *before)
{
    VG_AUTO(names) names = {0};
    VG_CHECK_EACH (c, it, now)
        (void)vg_names_add(c, &names, toleration_text(c, it.v), it.v);
    VG_JSON_FOREACH_ITEM (old, before)
        if (!vg_names_has(&names, toleration_text(c, old)))
            return false;
    return true;
}

static void check_tolerations(struct vg_check *c, const struct vg_at *spec,
                              const struct vg_json *old_spec)
{
    struct vg_at now = vg_at(spec, "tolerations");
    const struct vg_json *before = vg_json_get_str(old_spec, "tolerations");
    if (before && differs(c, now.v, before) && !has_tolerations(c, &now, before)) {
        vg_forbidden(c, &now,
                     "existing toleration can not be modified except its tolerationSeconds");
        return;
    }
    vg_pod_check_tolerations(c, &now);
}

static void check_gates(struct vg_check *c, const struct vg_at *spec,
                        const struct vg_json *old_spec)
{
    struct vg_at now = vg_at(spec, "schedulingGates");
    const struct vg_json *before = vg_json_get_str(old_spec, "schedulingGates");
    VG_AUTO(names) known = {0};
    if (before)
        VG_JSON_FOREACH_ITEM (gate, before)
            (void)vg_names_add(c, &known, vg_json_text(vg_json_get_str(gate, "name")), NULL);
    VG_CHECK_EACH (c, gate, &now) {
        struct vg_at name = vg_at(&gate, "name");
        if (!vg_names_has(&known, vg_at_text(&name)))
            vg_forbidden(c, &name, "only deletion is allowed, but found new scheduling gate '%.*s'",
                         VG_SLICE_ARG(vg_at_text(&name)));
    }
}

/* ---- pods that wait at a gate ---- */

static void check_selector(struct vg_check *c, const struct vg_at *spec,
                           const struct vg_json *old_spec)
{
    struct vg_at now = vg_at(spec, "nodeSelector");
    const struct vg_json *before = vg_json_get_str(old_spec, "nodeSelector");
    VG_AUTO(json_lookup) is;
    vg_json_lookup_init(&is, now.v);
    if (!before)
        return;
    VG_JSON_FOREACH_MEMBER (m, before) {
        const struct vg_json *v =
            vg_check_find(c, &is, vg_json_key(m), (uint32_t)(m - before->members));
        if (v && vg_slice_eq(vg_json_text(v), vg_json_text(&m->value)))
            continue;
        vg_bad(c, &now,
               "only additions to spec.nodeSelector are allowed (no mutations or deletions)");
        return;
    }
}

/* The old list is where the new one begins. */
static bool has_only_more(struct vg_check *c, const struct vg_json *now, const struct vg_json *old,
                          const char *name)
{
    struct vg_at a = {.v = vg_json_get_str(now, name)}, b = {.v = vg_json_get_str(old, name)};
    if (vg_at_n(&a) < vg_at_n(&b))
        return false;
    for (size_t i = 0; i < vg_at_n(&b); i++)
        if (differs(c, &a.v->items[i], &b.v->items[i]))
            return false;
    return true;
}

static bool is_open(const struct vg_json *term)
{
    struct vg_at a = {.v = vg_json_get_str(term, "matchExpressions")};
    struct vg_at b = {.v = vg_json_get_str(term, "matchFields")};
    return vg_at_n(&a) == 0 && vg_at_n(&b) == 0;
}

static void check_node_affinity(struct vg_check *c, const struct vg_at *spec,
                                const struct vg_json *old_spec)
{
    struct vg_at affinity = vg_at(spec, "affinity"), nodes = vg_at(&affinity, "nodeAffinity");
    struct vg_at required = vg_at(&nodes, "requiredDuringSchedulingIgnoredDuringExecution");
    struct vg_at now = vg_at(&required, "nodeSelectorTerms");
    struct vg_at before = {.v = vg_json_at_path(old_spec,
                                                "affinity.nodeAffinity."
                                                "requiredDuringSchedulingIgnoredDuringExecution."
                                                "nodeSelectorTerms")};
    if (vg_at_n(&before) == 0)
        return;
    if (vg_at_n(&before) != vg_at_n(&now)) {
        vg_bad_value(c, &now, vg_go_struct_of(c, "", "NodeSelectorTerm", now.v),
                     "no additions/deletions to non-empty NodeSelectorTerms list are allowed");
        return;
    }
    VG_CHECK_EACH (c, term, &now) {
        const struct vg_json *old = &before.v->items[term.index];
        if ((is_open(old) && !is_open(term.v)) ||
            !has_only_more(c, term.v, old, "matchExpressions") ||
            !has_only_more(c, term.v, old, "matchFields"))
            vg_bad_value(c, &term, vg_go_struct_of(c, "", "NodeSelectorTerm", term.v),
                         "only additions are allowed (no mutations or deletions)");
    }
}

/* ---- what may not change ---- */

static bool has_other_image(struct vg_check *c, const struct vg_json *now,
                            const struct vg_json *old)
{
    if (now->n != old->n && !vg_json_get_str(now, "image") == !vg_json_get_str(old, "image"))
        return true;
    VG_JSON_FOREACH_MEMBER (m, now)
        if (!vg_slice_eq(vg_json_key(m), VG_SLICE_LIT("image")) &&
            differs(c, &m->value, vg_json_get(old, vg_json_key(m))))
            return true;
    return false;
}

/* Containers but for their images; there are as many as before. */
static bool containers_differ(struct vg_check *c, const struct vg_json *now,
                              const struct vg_json *old)
{
    struct vg_at a = {.v = now}, b = {.v = old};
    for (size_t i = 0; i < vg_at_n(&b); i++)
        if (has_other_image(c, &a.v->items[i], &b.v->items[i]))
            return true;
    return false;
}

static bool affinity_differs(struct vg_check *c, const struct vg_json *now,
                             const struct vg_json *old)
{
    return differs(c, vg_json_get_str(now, "podAffinity"), vg_json_get_str(old, "podAffinity")) ||
           differs(c, vg_json_get_str(now, "podAntiAffinity"),
                   vg_json_get_str(old, "podAntiAffinity"));
}

static bool may_change(struct vg_check *c, struct vg_slice key, const struct vg_json *now,
                       const struct vg_json *old, bool is_gated)
{
    struct vg_at a = {.v = now}, b = {.v = old};
    if (vg_slice_eq(key, VG_SLICE_LIT("containers")) ||
        vg_slice_eq(key, VG_SLICE_LIT("initContainers")))
        return !containers_differ(c, now, old);
    if (vg_slice_eq(key, VG_SLICE_LIT("activeDeadlineSeconds")) ||
        vg_slice_eq(key, VG_SLICE_LIT("schedulingGates")) ||
        vg_slice_eq(key, VG_SLICE_LIT("tolerations")))
        return true;
    if (vg_slice_eq(key, VG_SLICE_LIT("terminationGracePeriodSeconds")))
        return vg_at_int(&b) < 0 && vg_at_int(&a) == 1;
    if (is_gated && vg_slice_eq(key, VG_SLICE_LIT("nodeSelector")))
        return true;
    return is_gated && vg_slice_eq(key, VG_SLICE_LIT("affinity")) && !affinity_differs(c, now, old);
}

static bool spec_differs(struct vg_check *c, const struct vg_json *now, const struct vg_json *old,
                         bool is_gated)
{
    VG_JSON_FOREACH_MEMBER (m, now) {
        const struct vg_json *before = vg_json_get(old, vg_json_key(m));
        if (differs(c, &m->value, before) &&
            !may_change(c, vg_json_key(m), &m->value, before, is_gated))
            return true;
    }
    VG_JSON_FOREACH_MEMBER (m, old)
        if (!vg_json_get(now, vg_json_key(m)) &&
            !may_change(c, vg_json_key(m), NULL, &m->value, is_gated))
            return true;
    return false;
}

void vg_pod_check_update(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec");
    const struct vg_json *before = vg_json_get_str(old, "spec");
    const struct vg_json *gates = vg_json_get_str(before, "schedulingGates");
    bool is_gated = gates && gates->n;
    if (spec.v && before && spec.v->n == before->n && spec.v->members == before->members) {
        vg_pod_check_notes(c, obj); /* the spec is the old one, which was checked */
        vg_pod_check_kept_annotations(c, obj, old);
        return;
    }
    vg_pod_check_all(c, obj);
    vg_pod_check_kept_annotations(c, obj, old);
    if (!spec.v || !before || !check_containers(c, &spec, before, "containers") ||
        !check_containers(c, &spec, before, "initContainers") || !check_deadline(c, &spec, before))
        return;
    check_tolerations(c, &spec, before);
    check_gates(c, &spec, before);
    if (is_gated && differs(c, spec.v, before)) {
        check_selector(c, &spec, before);
        check_node_affinity(c, &spec, before);
    }
    if (spec_differs(c, spec.v, before, is_gated))
        vg_forbidden(c, &spec,
                     "pod updates may not change fields other than `spec.containers[*].image`,"
                     "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
                     "`spec.tolerations` (only additions to existing tolerations),"
                     "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
                     "previously negative)\n%.*s",
                     VG_SLICE_ARG(vg_pod_diff(c, spec.v, before, is_gated)));
}
