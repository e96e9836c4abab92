/* authz.c - see authz.h: the authorizers that exist, and the words of a refusal. */
#include "authz.h"

#include <ctype.h>

static bool equals(struct vg_slice s, const char *text)
{
    return vg_slice_eq(s, vg_slice_str(text));
}

bool vg_user_has_group(const struct vg_api_user *user, const char *group)
{
    for (size_t i = 0; i < user->n_groups; i++) {
        if (equals(user->groups[i], group))
            return true;
    }
    return false;
}

/* ---- authorizers ---- */

static const char *const get_verbs[] = {"get", NULL};
static const char *const all[] = {"*", NULL};
static const char *const public_paths[] = {"/healthz", "/livez",    "/readyz",
                                           "/version", "/version/", NULL};

static enum vg_authz_decision decide_public(const struct vg_authz *self,
                                            const struct vg_authz_attributes *a,
                                            const char **ret_reason)
{
    (void)self;
    (void)ret_reason;
    if (a->is_resource || (!equals(a->verb, "get") && !equals(a->verb, "head")))
        return VG_AUTHZ_NO_OPINION;
    for (const char *const *path = public_paths; *path; path++) {
        if (equals(a->path, *path))
            return VG_AUTHZ_ALLOW;
    }
    return VG_AUTHZ_NO_OPINION;
}

static int each_public(const struct vg_authz *self, const struct vg_api_user *user,
                       struct vg_slice ns, vg_authz_each_fn *each, void *arg)
{
    static const struct vg_authz_rule rule = {.verbs = get_verbs, .urls = public_paths};
    (void)self;
    (void)user;
    (void)ns;
    return each(arg, &rule);
}
const struct vg_authz vg_authz_public = {"public", decide_public, each_public};

/* ---- what everybody who is known may ask ---- */

static const char *const create_verbs[] = {"create", NULL};
static const char *const authorization[] = {"authorization.k8s.io", NULL};
static const char *const authentication[] = {"authentication.k8s.io", NULL};
static const char *const may_i[] = {"selfsubjectaccessreviews", "selfsubjectrulesreviews", NULL};
static const char *const who_am_i[] = {"selfsubjectreviews", NULL};
static const char *const discovery_paths[] = {"/api",     "/api/*",   "/apis",     "/apis/*",
                                              "/healthz", "/livez",   "/openapi",  "/openapi/*",
                                              "/readyz",  "/version", "/version/", NULL};
static const struct vg_authz_rule basic_rules[] = {
    {.verbs = create_verbs, .groups = authorization, .resources = may_i},
    {.verbs = create_verbs, .groups = authentication, .resources = who_am_i},
    {.verbs = get_verbs, .urls = discovery_paths},
};

/* Of service accounts, as system:service-account-issuer-discovery of a stock cluster has it. */
static const char *const issuer_paths[] = {"/.well-known/openid-configuration",
                                           "/.well-known/openid-configuration/", "/openid/v1/jwks",
                                           "/openid/v1/jwks/", NULL};
static const struct vg_authz_rule issuer_rule = {.verbs = get_verbs, .urls = issuer_paths};

static bool has(const char *const *list, struct vg_slice text)
{
    for (; list && *list; list++) {
        size_t n = strlen(*list);
        bool is_prefix = n && (*list)[n - 1] == '*';
        if (is_prefix ? vg_slice_has_prefix(text, vg_slice(*list, n - 1)) : equals(text, *list))
            return true;
    }
    return false;
}

static bool covers(const struct vg_authz_rule *rule, const struct vg_authz_attributes *a)
{
    if (!has(rule->verbs, a->verb) || a->is_resource != !rule->urls)
        return false;
    if (!a->is_resource)
        return has(rule->urls, a->path);
    return a->subresource.n == 0 && has(rule->groups, a->group) &&
           has(rule->resources, a->resource);
}

static enum vg_authz_decision decide_basic(const struct vg_authz *self,
                                           const struct vg_authz_attributes *a,
                                           const char **ret_reason)
{
    (void)self;
    (void)ret_reason;
    for (size_t i = 0; i < VG_ARRAY_LEN(basic_rules); i++)
        if (covers(&basic_rules[i], a) && vg_user_has_group(a->user, VG_GROUP_AUTHENTICATED))
            return VG_AUTHZ_ALLOW;
    return covers(&issuer_rule, a) && vg_user_has_group(a->user, VG_GROUP_ACCOUNTS)
               ? VG_AUTHZ_ALLOW
               : VG_AUTHZ_NO_OPINION;
}

static int each_basic(const struct vg_authz *self, const struct vg_api_user *user,
                      struct vg_slice ns, vg_authz_each_fn *each, void *arg)
{
    (void)self;
    (void)ns;
    int r = 0;
    if (!vg_user_has_group(user, VG_GROUP_AUTHENTICATED))
        return 0;
    for (size_t i = 0; i < VG_ARRAY_LEN(basic_rules) && r == 0; i++)
        r = each(arg, &basic_rules[i]);
    return r == 0 && vg_user_has_group(user, VG_GROUP_ACCOUNTS) ? each(arg, &issuer_rule) : r;
}
const struct vg_authz vg_authz_basic = {"basic", decide_basic, each_basic};

/* ---- groups that may do everything ---- */

/* Everything, if the user has the group. */
static int each_of_group(const char *group, const struct vg_api_user *user, vg_authz_each_fn *each,
                         void *arg)
{
    static const struct vg_authz_rule resources = {.verbs = all, .groups = all, .resources = all};
    static const struct vg_authz_rule paths = {.verbs = all, .urls = all};
    if (!vg_user_has_group(user, group))
        return 0;
    int r = each(arg, &resources);
    return r < 0 ? r : each(arg, &paths);
}

static enum vg_authz_decision decide_masters(const struct vg_authz *self,
                                             const struct vg_authz_attributes *a,
                                             const char **ret_reason)
{
    (void)self;
    (void)ret_reason;
    return vg_user_has_group(a->user, VG_GROUP_MASTERS) ? VG_AUTHZ_ALLOW : VG_AUTHZ_NO_OPINION;
}

static int each_master(const struct vg_authz *self, const struct vg_api_user *user,
                       struct vg_slice ns, vg_authz_each_fn *each, void *arg)
{
    (void)self;
    (void)ns;
    return each_of_group(VG_GROUP_MASTERS, user, each, arg);
}
const struct vg_authz vg_authz_masters = {"masters", decide_masters, each_master};

static enum vg_authz_decision decide_always(const struct vg_authz *self,
                                            const struct vg_authz_attributes *a,
                                            const char **ret_reason)
{
    (void)self;
    (void)ret_reason;
    return vg_user_has_group(a->user, VG_GROUP_AUTHENTICATED) ? VG_AUTHZ_ALLOW
                                                              : VG_AUTHZ_NO_OPINION;
}

static int each_always(const struct vg_authz *self, const struct vg_api_user *user,
                       struct vg_slice ns, vg_authz_each_fn *each, void *arg)
{
    (void)self;
    (void)ns;
    return each_of_group(VG_GROUP_AUTHENTICATED, user, each, arg);
}
const struct vg_authz vg_authz_always_allow = {"always-allow", decide_always, each_always};

enum vg_authz_decision vg_authz_decide(const struct vg_authz *const *chain,
                                       const struct vg_authz_attributes *a, const char **ret_reason)
{
    *ret_reason = NULL;
    for (; *chain; chain++) {
        const char *reason = NULL;
        enum vg_authz_decision d = (*chain)->decide(*chain, a, &reason);
        if (reason)
            *ret_reason = reason;
        if (d != VG_AUTHZ_NO_OPINION)
            return d;
    }
    return VG_AUTHZ_NO_OPINION;
}

bool vg_authz_is_allowed(const struct vg_authz *const *chain, const struct vg_authz_attributes *a,
                         const char **ret_reason)
{
    return vg_authz_decide(chain, a, ret_reason) == VG_AUTHZ_ALLOW;
}

int vg_authz_each_rule(const struct vg_authz *const *chain, const struct vg_api_user *user,
                       struct vg_slice ns, vg_authz_each_fn *each, void *arg)
{
    int r = 0;
    for (; *chain && r == 0; chain++)
        r = (*chain)->each_rule(*chain, user, ns, each, arg);
    return r;
}

/* ---- attributes ---- */

static void attributes_of_kind(const struct vg_target *t, struct vg_authz_attributes *a)
{
    a->is_resource = true;
    a->group = vg_slice_str(t->kind->group);
    a->version = vg_slice_str(t->kind->version);
    a->resource = vg_slice_str(t->kind->resource);
    a->subresource = t->sub ? vg_slice_str(t->sub->name) : VG_SLICE_LIT("");
    a->ns = t->ns;
    a->name = t->name;
}

void vg_authz_attributes(const struct vg_api_user *user, const struct vg_target *target,
                         struct vg_slice method, char verb[16],
                         struct vg_authz_attributes *ret_attributes)
{
    size_t n = VG_MIN(method.n, 16);
    for (size_t i = 0; i < n; i++)
        verb[i] = (char)tolower((unsigned char)method.p[i]);
    struct vg_authz_attributes a = {.user = user, .verb = {verb, n}, .path = target->path};
    if (target->type == VG_TARGET_RESOURCE) {
        attributes_of_kind(target, &a);
        if (target->verb != VG_API_NONE)
            a.verb = vg_slice_str(vg_api_verb_name(target->verb));
    }
    *ret_attributes = a;
}

/* ---- words ---- */

/* As Go's %q prints it, with what HTML minds replaced: a name may be anything. */
static int append_quoted(struct vg_buf *out, struct vg_slice s)
{
    int r = vg_buf_append_byte(out, '"');
    for (size_t i = 0; i < s.n && r == 0; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == '"' || c == '\\')
            r = vg_buf_printf(out, "\\%c", c);
        else if (c == '&' || c == '<' || c == '>')
            r = vg_buf_printf(out, "&%s;", c == '&' ? "amp" : c == '<' ? "lt" : "gt");
        else if (c < ' ' || c == 0x7f)
            r = vg_buf_printf(out, "\\x%02x", c);
        else
            r = vg_buf_append_byte(out, (char)c);
    }
    return r < 0 ? r : vg_buf_append_byte(out, '"');
}

static int explain_resource(struct vg_buf *out, const struct vg_authz_attributes *a)
{
    int r = vg_buf_printf(out, " resource \"%.*s%s%.*s\" in API group ", VG_SLICE_ARG(a->resource),
                          a->subresource.n ? "/" : "", VG_SLICE_ARG(a->subresource));
    if (r == 0)
        r = append_quoted(out, a->group);
    if (r < 0)
        return r;
    if (a->ns.n == 0)
        return vg_buf_printf(out, " at the cluster scope");
    r = vg_buf_printf(out, " in the namespace ");
    return r < 0 ? r : append_quoted(out, a->ns);
}

int vg_authz_explain(struct vg_buf *out, const struct vg_authz_attributes *a, const char *reason)
{
    int r = vg_buf_printf(out, "User ");
    if (r == 0)
        r = append_quoted(out, a->user->name);
    if (r == 0)
        r = vg_buf_printf(out, " cannot %.*s", VG_SLICE_ARG(a->verb));
    if (r == 0 && a->is_resource) {
        r = explain_resource(out, a);
    } else if (r == 0) {
        r = vg_buf_printf(out, " path ");
        if (r == 0)
            r = append_quoted(out, a->path);
    }
    return r == 0 && reason ? vg_buf_printf(out, ": %s", reason) : r;
}
