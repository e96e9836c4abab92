/* rbac.c - rules of roles and their bindings.
 * Left out: whether the writer may grant what a role or binding grants (escalation), which is
 * authorization and not a rule of the object. */
#include "go_struct.h"
#include "rules.h"
#include "server/kinds/types.h"

#define GROUP "rbac.authorization.k8s.io"

/* ---- roles ---- */

static void check_rule(struct vg_check *c, const struct vg_at *at, bool is_namespaced)
{
    struct vg_at verbs = vg_at(at, "verbs"), urls = vg_at(at, "nonResourceURLs");
    struct vg_at groups = vg_at(at, "apiGroups"), resources = vg_at(at, "resources");
    struct vg_at names = vg_at(at, "resourceNames");
    if (vg_at_n(&verbs) == 0)
        vg_required(c, &verbs, "verbs must contain at least one value");
    if (vg_at_n(&urls)) {
        if (is_namespaced)
            vg_bad(c, &urls, "namespaced rules cannot apply to non-resource URLs");
        if (vg_at_n(&groups) || vg_at_n(&resources) || vg_at_n(&names))
            vg_bad(c, &urls, "rules cannot apply to both regular resources and non-resource URLs");
        return;
    }
    if (vg_at_n(&groups) == 0)
        vg_required(c, &groups, "resource rules must supply at least one api group");
    if (vg_at_n(&resources) == 0)
        vg_required(c, &resources, "resource rules must supply at least one resource");
}

static void check_rules(struct vg_check *c, const struct vg_at *obj, bool is_namespaced)
{
    struct vg_at rules = vg_at(obj, "rules");
    VG_CHECK_EACH (c, rule, &rules)
        check_rule(c, &rule, is_namespaced);
}

static void check_role(struct vg_check *c, const struct vg_at *obj)
{
    check_rules(c, obj, true);
}

static void check_role_update(struct vg_check *c, const struct vg_at *obj,
                              const struct vg_json *old)
{
    (void)old;
    check_role(c, obj);
}

const struct vg_rules vg_rules_role = {
    .group = GROUP,
    .kind = "Role",
    .check = check_role,
    .check_update = check_role_update,
};

static void check_cluster_role(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at aggregation = vg_at(obj, "aggregationRule");
    struct vg_at selectors = vg_at(&aggregation, "clusterRoleSelectors");
    check_rules(c, obj, false);
    if (!aggregation.v)
        return;
    if (vg_at_n(&selectors) == 0)
        vg_required(c, &selectors,
                    "at least one clusterRoleSelector required if aggregationRule is non-nil");
    VG_CHECK_EACH (c, selector, &selectors) {
        size_t before = c->errors->n;
        vg_check_label_selector(c, &selector);
        if (c->errors->n > before)
            vg_bad_value(c, &selector, VG_SLICE_LIT("null"), "invalid label selector.");
    }
}

static void check_cluster_role_update(struct vg_check *c, const struct vg_at *obj,
                                      const struct vg_json *old)
{
    (void)old;
    check_cluster_role(c, obj);
}

const struct vg_rules vg_rules_cluster_role = {
    .group = GROUP,
    .kind = "ClusterRole",
    .check = check_cluster_role,
    .check_update = check_cluster_role_update,
};

/* ---- bindings ---- */

static const char *const own_group[] = {GROUP, NULL};

static void check_subject(struct vg_check *c, const struct vg_at *at, bool is_namespaced)
{
    static const char *const kinds[] = {"ServiceAccount", "User", "Group", NULL};
    static const char *const core[] = {"", NULL};
    struct vg_at name = vg_at(at, "name"), kind = vg_at(at, "kind"), group = vg_at(at, "apiGroup");
    struct vg_at ns = vg_at(at, "namespace");
    bool has_name = vg_check_given(c, &name);
    if (vg_at_is(&kind, "ServiceAccount")) {
        if (has_name)
            (void)vg_check_dns_subdomain(c, &name);
        (void)vg_check_one_of(c, &group, core);
        if (!is_namespaced)
            (void)vg_check_given(c, &ns);
    } else if (vg_check_one_of(c, &kind, kinds)) {
        (void)vg_check_one_of(c, &group, own_group);
    }
}

static void check_any_binding(struct vg_check *c, const struct vg_at *obj, bool is_namespaced)
{
    static const char *const any[] = {"Role", "ClusterRole", NULL};
    struct vg_at ref = vg_at(obj, "roleRef"), subjects = vg_at(obj, "subjects");
    struct vg_at group = vg_at(&ref, "apiGroup"), kind = vg_at(&ref, "kind");
    struct vg_at name = vg_at(&ref, "name");
    struct vg_name_reasons why = {0};
    (void)vg_check_one_of(c, &group, own_group);
    (void)vg_check_one_of(c, &kind, is_namespaced ? any : any + 1);
    if (vg_check_given(c, &name) && !vg_validate_path_segment(vg_at_text(&name), &why))
        (void)vg_check_reasons(c, &name, &why);
    VG_CHECK_EACH (c, subject, &subjects)
        check_subject(c, &subject, is_namespaced);
}

static void check_same_role(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    static const struct vg_json none = {.type = VG_JSON_OBJECT};
    struct vg_at ref = vg_at(obj, "roleRef");
    const struct vg_json *was = vg_json_get_str(old, "roleRef");
    if (!vg_check_same(c, ref.v ? ref.v : &none, was ? was : &none))
        vg_bad_go(c, &ref,
                  vg_schema_find(VG_SLICE_LIT(GROUP), VG_SLICE_LIT("v1"), VG_SLICE_LIT("RoleRef")),
                  "cannot change roleRef");
}

static void check_binding(struct vg_check *c, const struct vg_at *obj)
{
    check_any_binding(c, obj, true);
}

static void check_binding_update(struct vg_check *c, const struct vg_at *obj,
                                 const struct vg_json *old)
{
    check_any_binding(c, obj, true);
    check_same_role(c, obj, old);
}

const struct vg_rules vg_rules_role_binding = {
    .group = GROUP,
    .kind = "RoleBinding",
    .check = check_binding,
    .check_update = check_binding_update,
};

static void check_cluster_binding(struct vg_check *c, const struct vg_at *obj)
{
    check_any_binding(c, obj, false);
}

static void check_cluster_binding_update(struct vg_check *c, const struct vg_at *obj,
                                         const struct vg_json *old)
{
    check_any_binding(c, obj, false);
    check_same_role(c, obj, old);
}

const struct vg_rules vg_rules_cluster_role_binding = {
    .group = GROUP,
    .kind = "ClusterRoleBinding",
    .check = check_cluster_binding,
    .check_update = check_cluster_binding_update,
};
