/* match.c - which FlowSchema a request belongs to: the first, in order of precedence, of which a
 * rule has the user as a subject and the request as a resource or a path. */
#include "flow_int.h"

/* ---- subjects ---- */

/* system:serviceaccount:NAMESPACE:NAME */
static bool is_account(struct vg_slice user, struct vg_slice ns, struct vg_slice name)
{
    static const struct vg_slice prefix = {"system:serviceaccount:", 22};
    if (!vg_slice_has_prefix(user, prefix))
        return false;
    user = vg_slice(user.p + prefix.n, user.n - prefix.n);
    if (user.n <= ns.n || !vg_slice_has_prefix(user, ns) || user.p[ns.n] != ':')
        return false;
    return vg_slice_eq(name, VG_SLICE_LIT("*")) ||
           vg_slice_eq(name, vg_slice(user.p + ns.n + 1, user.n - ns.n - 1));
}

static bool is_in_group(const struct vg_flow_attributes *a, struct vg_slice group)
{
    for (size_t i = 0; i < a->n_groups; i++)
        if (vg_slice_eq(a->groups[i], group))
            return true;
    return false;
}

static bool is_subject(const struct vg_flow_subject *s, const struct vg_flow_attributes *a)
{
    bool is_all = vg_slice_eq(s->name, VG_SLICE_LIT("*"));
    switch (s->kind) {
    case VG_FLOW_USER:
        return is_all || vg_slice_eq(s->name, a->user);
    case VG_FLOW_GROUP:
        return is_all || is_in_group(a, s->name);
    case VG_FLOW_ACCOUNT:
        return is_account(a->user, s->ns, s->name);
    }
    return false;
}

static bool has_subject(const struct vg_flow_rule *rule, const struct vg_flow_attributes *a)
{
    for (size_t i = 0; i < rule->n_subjects; i++)
        if (is_subject(&rule->subjects[i], a))
            return true;
    return false;
}

/* ---- requests ---- */

static bool has_name(const struct vg_flow_names *names, struct vg_slice name)
{
    if (names->is_all)
        return true;
    for (size_t i = 0; i < names->n; i++)
        if (vg_slice_eq(names->v[i], name))
            return true;
    return false;
}

/* "pods", "pods/status" */
static bool has_resource(const struct vg_flow_names *names, const struct vg_flow_attributes *a)
{
    struct vg_slice r = a->resource, s = a->subresource;
    if (names->is_all || s.n == 0)
        return has_name(names, r);
    for (size_t i = 0; i < names->n; i++) {
        struct vg_slice v = names->v[i];
        if (v.n == r.n + 1 + s.n && vg_slice_has_prefix(v, r) && v.p[r.n] == '/' &&
            memcmp(v.p + r.n + 1, s.p, s.n) == 0)
            return true;
    }
    return false;
}

static bool is_of_resource(const struct vg_flow_resource_rule *rule,
                           const struct vg_flow_attributes *a)
{
    return has_name(&rule->verbs, a->verb) && has_resource(&rule->resources, a) &&
           has_name(&rule->groups, a->group) &&
           (a->ns.n ? has_name(&rule->namespaces, a->ns) : rule->has_cluster_scope);
}

/* A path itself, or what lies below it: "/healthz/ping" lies below "/healthz", with or without a
 * slash or a slash and a star at its end. */
static bool has_path(const struct vg_flow_names *names, struct vg_slice path)
{
    if (names->is_all)
        return true;
    for (size_t i = 0; i < names->n; i++) {
        struct vg_slice v = names->v[i];
        if (vg_slice_eq(v, VG_SLICE_LIT("*")) || vg_slice_eq(v, path))
            return true;
        if (v.n && v.p[v.n - 1] == '*')
            v.n--;
        if (v.n && v.p[v.n - 1] == '/')
            v.n--;
        if (path.n > v.n && vg_slice_has_prefix(path, v) && path.p[v.n] == '/')
            return true;
    }
    return false;
}

static bool is_of_rule(const struct vg_flow_rule *rule, const struct vg_flow_attributes *a)
{
    if (a->is_resource) {
        for (size_t i = 0; i < rule->n_resources; i++)
            if (is_of_resource(&rule->resources[i], a))
                return true;
        return false;
    }
    for (size_t i = 0; i < rule->n_paths; i++)
        if (has_name(&rule->paths[i].verbs, a->verb) && has_path(&rule->paths[i].paths, a->path))
            return true;
    return false;
}

/* ---- schemas ---- */

static bool has_user(const struct vg_flow_schema *s, const struct vg_flow_attributes *a)
{
    for (size_t i = 0; i < s->n_rules; i++)
        if (has_subject(&s->rules[i], a))
            return true;
    return false;
}

/* The user is a subject of one of the rules. */
static bool is_of_schema(const struct vg_flow_schema *s, const struct vg_flow_attributes *a)
{
    if (s->n_rules == 1)
        return is_of_rule(&s->rules[0], a);
    for (size_t i = 0; i < s->n_rules; i++)
        if (has_subject(&s->rules[i], a) && is_of_rule(&s->rules[i], a))
            return true;
    return false;
}

static void fill_cache(const struct vg_flow_table *t, const struct vg_flow_attributes *a,
                       struct vg_flow_subject_cache *cache)
{
    *cache = (struct vg_flow_subject_cache){.generation = t->generation};
    for (size_t i = 0; i < VG_MIN(t->n_schemas, (size_t)64); i++)
        if (has_user(&t->schemas[i], a))
            cache->mask |= UINT64_C(1) << i;
    cache->is_by_namespace = (cache->mask & t->by_namespace) || t->n_schemas > 64;
}

const struct vg_flow_schema *vg_flow_table_match(const struct vg_flow_table *t,
                                                 const struct vg_flow_attributes *a,
                                                 struct vg_flow_subject_cache *cache)
{
    if (VG_UNLIKELY(cache->generation != t->generation))
        fill_cache(t, a, cache);
    for (uint64_t m = cache->mask; m; m &= m - 1) {
        const struct vg_flow_schema *s = &t->schemas[__builtin_ctzll(m)];
        if (is_of_schema(s, a))
            return s;
    }
    for (size_t i = 64; i < t->n_schemas; i++)
        if (has_user(&t->schemas[i], a) && is_of_schema(&t->schemas[i], a))
            return &t->schemas[i];
    return t->catch_all;
}
