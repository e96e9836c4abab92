/* quota.c - the rules of resource quotas: names, amounts and scopes. */
#include "resources.h"
#include "rules.h"

static bool is_listed(struct vg_slice s, const char *const *list)
{
    for (; *list; list++)
        if (vg_slice_eq(s, vg_slice_str(*list)))
            return true;
    return false;
}

/* ---- quotas ---- */

/* Known to the system as such, but not to quotas. */
static bool is_quota_name(struct vg_slice name)
{
    return vg_resource_is_standard(name) && !vg_slice_eq(name, VG_SLICE_LIT("storage"));
}

static void check_amounts(struct vg_check *c, const struct vg_at *map)
{
    for (uint32_t i = 0; i < vg_at_n(map); i++) {
        const struct vg_json_member *m = &map->v->members[i];
        struct vg_at at = vg_at_key(map, m);
        struct vg_slice name = vg_json_key(m);
        (void)vg_check_resource_name(c, &at, name);
        if (!(name.n && memchr(name.p, '/', name.n)) && !is_quota_name(name))
            vg_bad_value(c, &at, vg_json_quoted(c, name), "must be a standard resource for quota");
        vg_check_resource_amount(c, &at, name);
    }
}

enum scope_bit {
    BEST_EFFORT = 1,
    NOT_BEST_EFFORT = 2,
    TERMINATING = 4,
    NOT_TERMINATING = 8,
};

static const char *const pods[] = {"pods", NULL};
static const char *const compute[] = {
    "pods",          "cpu",          "memory",          "limits.cpu",
    "limits.memory", "requests.cpu", "requests.memory", NULL};
static const char *const claims[] = {"persistentvolumeclaims", "requests.storage", NULL};

static const struct scope {
    const char *name;
    const char *const *resources; /* that it may be used with */
    unsigned bit;
    bool needs_exists; /* as the operator of a selector */
} scopes[] = {
    {"Terminating", compute, TERMINATING, true}, {"NotTerminating", compute, NOT_TERMINATING, true},
    {"BestEffort", pods, BEST_EFFORT, true},     {"NotBestEffort", compute, NOT_BEST_EFFORT, true},
    {"PriorityClass", compute, 0, false},        {"CrossNamespacePodAffinity", compute, 0, true},
    {"VolumeAttributesClass", claims, 0, false},
};

static const struct scope *find_scope(struct vg_slice name)
{
    for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++)
        if (vg_slice_eq(name, vg_slice_str(scopes[i].name)))
            return &scopes[i];
    return NULL;
}

/* One error for each limited resource that the scope is not for. */
static void check_scoped(struct vg_check *c, const struct vg_at *at, const struct vg_json *hard,
                         const struct scope *s)
{
    for (uint32_t i = 0; s && vg_json_is(hard, VG_JSON_OBJECT) && i < hard->n; i++) {
        struct vg_slice name = vg_json_key(&hard->members[i]);
        if (is_quota_name(name) && !is_listed(name, s->resources))
            vg_bad(c, at, "unsupported scope applied to resource");
    }
}

static void check_conflicts(struct vg_check *c, const struct vg_at *at, unsigned seen)
{
    const unsigned efforts = BEST_EFFORT | NOT_BEST_EFFORT, ends = TERMINATING | NOT_TERMINATING;
    if ((seen & efforts) == efforts)
        vg_bad(c, at, "conflicting scopes");
    if ((seen & ends) == ends)
        vg_bad(c, at, "conflicting scopes");
}

static void check_scopes(struct vg_check *c, const struct vg_at *spec)
{
    struct vg_at list = vg_at(spec, "scopes");
    unsigned seen = 0;
    VG_AT_FOREACH (at, &list) {
        const struct scope *s = find_scope(vg_at_text(&at));
        if (!s)
            vg_bad(c, &list, "unsupported scope");
        check_scoped(c, &list, vg_json_get_str(spec->v, "hard"), s);
        seen |= s ? s->bit : 0;
    }
    check_conflicts(c, &list, seen);
}

static void check_requirement(struct vg_check *c, const struct vg_at *spec,
                              const struct vg_at *list, const struct vg_json *requirement)
{
    /* The list is blamed, not the item. */
    struct vg_at all = *list;
    all.v = requirement;
    struct vg_at name = vg_at(&all, "scopeName"), operator= vg_at(&all, "operator");
    struct vg_at values = vg_at(&all, "values"), selector = *list;
    const struct scope *s = find_scope(vg_at_text(&name));
    selector.v = list->up->v;
    if (!s)
        vg_bad_text(c, &name, "unsupported scope");
    check_scoped(c, &selector, vg_json_get_str(spec->v, "hard"), s);
    if (s && s->needs_exists && !vg_at_is(&operator, "Exists"))
        vg_bad_text(c, &operator,
                    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
                    "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
                    "ResourceQuotaScopeNotBestEffort or "
                    "ResourceQuotaScopeCrossNamespacePodAffinity");
    if (vg_at_is(&operator, "In") || vg_at_is(&operator, "NotIn")) {
        if (vg_at_n(&values) == 0)
            vg_required(c, &values,
                        "must be at least one value when `operator` is 'In' or 'NotIn' for scope "
                        "selector");
    } else if (vg_at_is(&operator, "Exists") || vg_at_is(&operator, "DoesNotExist")) {
        if (vg_at_n(&values))
            vg_bad(c, &values,
                   "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope "
                   "selector");
    } else {
        vg_bad_text(c, &operator, "not a valid selector operator");
    }
}

static void check_selector(struct vg_check *c, const struct vg_at *spec)
{
    struct vg_at selector = vg_at(spec, "scopeSelector");
    struct vg_at list = vg_at(&selector, "matchExpressions"), blamed = list;
    unsigned seen = 0;
    VG_AT_FOREACH (at, &list) {
        const struct scope *s = find_scope(vg_json_text(vg_json_get_str(at.v, "scopeName")));
        check_requirement(c, spec, &list, at.v);
        seen |= s ? s->bit : 0;
    }
    blamed.v = vg_json_get_str(spec->v, "scopes");
    check_conflicts(c, &blamed, seen);
}

static void check_quota_spec(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at spec = vg_at(obj, "spec"), hard = vg_at(&spec, "hard");
    check_amounts(c, &hard);
    check_scopes(c, &spec);
    check_selector(c, &spec);
}

static void check_quota_status(struct vg_check *c, const struct vg_at *obj,
                               const struct vg_json *old)
{
    struct vg_at status = vg_at(obj, "status"), hard = vg_at(&status, "hard");
    struct vg_at used = vg_at(&status, "used");
    (void)old;
    check_amounts(c, &hard);
    check_amounts(c, &used);
}

/* Scopes stay the same set. */
static bool has_all(const struct vg_json *a, const struct vg_json *b)
{
    for (uint32_t i = 0; vg_json_is(b, VG_JSON_ARRAY) && i < b->n; i++) {
        bool is_there = false;
        for (uint32_t k = 0; vg_json_is(a, VG_JSON_ARRAY) && k < a->n && !is_there; k++)
            is_there = vg_slice_eq(vg_json_text(&a->items[k]), vg_json_text(&b->items[i]));
        if (!is_there)
            return false;
    }
    return true;
}

static void check_quota_update(struct vg_check *c, const struct vg_at *obj,
                               const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), list = vg_at(&spec, "scopes");
    const struct vg_json *before = vg_json_at_path(old, "spec.scopes");
    size_t n = c->errors->n;
    check_quota_spec(c, obj);
    /* A list with anything but the known scopes was refused; known ones are few. */
    if (c->errors->n > n && vg_at_n(&list) > sizeof scopes / sizeof *scopes)
        return;
    if (!has_all(list.v, before) || !has_all(before, list.v))
        vg_bad(c, &list, "field is immutable");
}

static void warn_quota(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    /* What is asked for, by its names, and what it is compared with. */
    static const char *const pairs[][3] = {
        {"requests.cpu", "cpu", "limits.cpu"},
        {"requests.memory", "memory", "limits.memory"},
        {"requests.ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage"},
    };
    struct vg_at spec = vg_at(obj, "spec"), hard = vg_at(&spec, "hard");
    for (size_t i = 0; !old && i < 3; i++) {
        const char *name = vg_json_get_str(hard.v, pairs[i][0]) ? pairs[i][0] : pairs[i][1];
        struct vg_at request = vg_at(&hard, name), limit = vg_at(&hard, pairs[i][2]);
        struct vg_quantity asked, most;
        if (!vg_at_quantity(&request, &asked) || !vg_at_quantity(&limit, &most) ||
            vg_quantity_cmp(&asked, &most) <= 0)
            continue;
        vg_caution(c, "ResourceQuota %s (%.*s) should be less than %s (%.*s)", name,
                   VG_SLICE_ARG(vg_at_text(&request)), pairs[i][2],
                   VG_SLICE_ARG(vg_at_text(&limit)));
    }
}

const struct vg_rules vg_rules_resource_quota = {.group = "",
                                                 .kind = "ResourceQuota",
                                                 .check = check_quota_spec,
                                                 .check_update = check_quota_update,
                                                 .check_status = check_quota_status,
                                                 .warn = warn_quota};
