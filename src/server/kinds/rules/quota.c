/* quota.c - the rules of resource quotas: names, amounts and scopes. */
#include "names.h"
#include "resources.h"
#include "rules.h"

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

/* How many limited resources each scope is not for; a scope can be there many times. */
struct misfits {
    uint32_t n[VG_ARRAY_LEN(scopes)];
};

static struct misfits misfits_of(const struct vg_json *hard)
{
    struct misfits m = {{0}};
    for (uint32_t i = 0; vg_json_is(hard, VG_JSON_OBJECT) && i < hard->n; i++) {
        struct vg_slice name = vg_json_key(&hard->members[i]);
        for (size_t k = 0; k < VG_ARRAY_LEN(scopes) && is_quota_name(name); k++)
            m.n[k] += !vg_text_is_one_of(name, scopes[k].resources);
    }
    return m;
}

/* One error for each of them. */
static void check_scoped(struct vg_check *c, const struct vg_at *at, const struct misfits *m,
                         const struct scope *s)
{
    for (uint32_t i = 0; s && i < m->n[s - scopes] && !vg_field_errors_is_full(c->errors); i++)
        vg_bad(c, at, "unsupported scope applied to resource");
}

static void check_conflicts(struct vg_check *c, const struct vg_at *at, unsigned seen)
{
    const unsigned efforts = BEST_EFFORT | NOT_BEST_EFFORT, ends = TERMINATING | NOT_TERMINATING;
    if ((seen & efforts) == efforts)
        vg_bad(c, at, "conflicting scopes");
    if ((seen & ends) == ends)
        vg_bad(c, at, "conflicting scopes");
}

static void check_scopes(struct vg_check *c, const struct vg_at *spec, const struct misfits *m)
{
    struct vg_at list = vg_at(spec, "scopes");
    unsigned seen = 0;
    VG_CHECK_EACH (c, at, &list) {
        const struct scope *s = find_scope(vg_at_text(&at));
        if (!s)
            vg_bad(c, &list, "unsupported scope");
        check_scoped(c, &list, m, s);
        seen |= s ? s->bit : 0;
    }
    check_conflicts(c, &list, seen);
}

static void check_requirement(struct vg_check *c, const struct misfits *m, const struct vg_at *list,
                              const struct vg_json *requirement)
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
    check_scoped(c, &selector, m, s);
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

static void check_selector(struct vg_check *c, const struct vg_at *spec, const struct misfits *m)
{
    struct vg_at selector = vg_at(spec, "scopeSelector");
    struct vg_at list = vg_at(&selector, "matchExpressions"), blamed = list;
    unsigned seen = 0;
    VG_CHECK_EACH (c, at, &list) {
        const struct scope *s = find_scope(vg_json_text(vg_json_get_str(at.v, "scopeName")));
        check_requirement(c, m, &list, at.v);
        seen |= s ? s->bit : 0;
    }
    blamed.v = vg_json_get_str(spec->v, "scopes");
    check_conflicts(c, &blamed, seen);
}

static void check_quota_spec(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at spec = vg_at(obj, "spec"), hard = vg_at(&spec, "hard");
    struct misfits m = misfits_of(hard.v);
    check_amounts(c, &hard);
    check_scopes(c, &spec, &m);
    check_selector(c, &spec, &m);
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
static bool has_all(struct vg_check *c, const struct vg_json *a, const struct vg_json *b)
{
    VG_AUTO(names) have = {0};
    for (uint32_t i = 0; vg_json_is(a, VG_JSON_ARRAY) && i < a->n; i++)
        (void)vg_names_add(c, &have, vg_json_text(&a->items[i]), NULL);
    for (uint32_t i = 0; vg_json_is(b, VG_JSON_ARRAY) && i < b->n; i++)
        if (!vg_names_has(&have, vg_json_text(&b->items[i])))
            return false;
    return true;
}

static void check_quota_update(struct vg_check *c, const struct vg_at *obj,
                               const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), list = vg_at(&spec, "scopes");
    const struct vg_json *before = vg_json_at_path(old, "spec.scopes");
    check_quota_spec(c, obj);
    if (!has_all(c, list.v, before) || !has_all(c, before, list.v))
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
