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

static enum vg_authz_decision decide_public(const struct vg_authz *self,
                                            const struct vg_authz_attributes *a,
                                            const char **ret_reason)
{
    static const char *const paths[] = {"/healthz", "/livez", "/readyz", "/version", "/version/"};
    (void)self;
    (void)ret_reason;
    if (a->is_resource || (!equals(a->verb, "get") && !equals(a->verb, "head")))
        return VG_AUTHZ_NO_OPINION;
    for (size_t i = 0; i < VG_ARRAY_LEN(paths); i++) {
        if (equals(a->path, paths[i]))
            return VG_AUTHZ_ALLOW;
    }
    return VG_AUTHZ_NO_OPINION;
}
const struct vg_authz vg_authz_public = {"public", decide_public};

static enum vg_authz_decision decide_masters(const struct vg_authz *self,
                                             const struct vg_authz_attributes *a,
                                             const char **ret_reason)
{
    (void)self;
    (void)ret_reason;
    return vg_user_has_group(a->user, VG_GROUP_MASTERS) ? VG_AUTHZ_ALLOW : VG_AUTHZ_NO_OPINION;
}
const struct vg_authz vg_authz_masters = {"masters", decide_masters};

static enum vg_authz_decision decide_always(const struct vg_authz *self,
                                            const struct vg_authz_attributes *a,
                                            const char **ret_reason)
{
    (void)self;
    (void)ret_reason;
    return vg_user_has_group(a->user, VG_GROUP_AUTHENTICATED) ? VG_AUTHZ_ALLOW
                                                              : VG_AUTHZ_NO_OPINION;
}
const struct vg_authz vg_authz_always_allow = {"always-allow", decide_always};

bool vg_authz_is_allowed(const struct vg_authz *const *chain, const struct vg_authz_attributes *a,
                         const char **ret_reason)
{
    *ret_reason = NULL;
    for (; *chain; chain++) {
        const char *reason = NULL;
        enum vg_authz_decision d = (*chain)->decide(*chain, a, &reason);
        if (reason)
            *ret_reason = reason;
        if (d != VG_AUTHZ_NO_OPINION)
            return d == VG_AUTHZ_ALLOW;
    }
    return false;
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
