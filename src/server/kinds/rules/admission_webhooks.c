/* admission_webhooks.c - rules of webhook configurations, and of what they share with admission
 * policies: rules and match conditions.
 * Left out: whether the expressions of match conditions compile (there is no CEL here). */
#include "admission.h"
#include "base/buf.h"
#include "cel.h"
#include "names.h"
#include "rules.h"

#define GROUP "admissionregistration.k8s.io"
#define MATCH_CONDITIONS_MAX 64u

struct vg_slice vg_trimmed(struct vg_slice text)
{
    static const char space[] = " \t\n\v\f\r";
    while (text.n && memchr(space, text.p[0], sizeof space - 1))
        text = vg_slice(text.p + 1, text.n - 1);
    while (text.n && memchr(space, text.p[text.n - 1], sizeof space - 1))
        text.n--;
    return text;
}

/* ---- rules ---- */

static bool has_wildcard(const struct vg_at *list)
{
    VG_AT_FOREACH (it, list)
        if (vg_at_is(&it, "*"))
            return true;
    return false;
}

/* Not empty, and "*" alone when it is there. */
static void check_list(struct vg_check *c, const struct vg_at *at, const char *others)
{
    (void)vg_check_given(c, at);
    if (vg_at_n(at) > 1 && has_wildcard(at))
        vg_bad(c, at, "if '*' is present, must not specify other %s", others);
}

/* One of "pods/log", against the wildcards before it. */
static void check_subresource(struct vg_check *c, const struct vg_at *at, struct vg_names *all_of,
                              struct vg_names *of_all)
{
    struct vg_slice text = vg_at_text(at);
    const char *slash = memchr(text.p, '/', text.n);
    struct vg_slice res = vg_slice(text.p, (size_t)(slash - text.p));
    struct vg_slice sub = vg_slice(slash + 1, text.n - res.n - 1);
    if (vg_names_has(all_of, res))
        vg_bad(c, at, "if '%.*s/*' is present, must not specify %.*s", VG_SLICE_ARG(res),
               VG_SLICE_ARG(text));
    if (vg_names_has(of_all, sub))
        vg_bad(c, at, "if '*/%.*s' is present, must not specify %.*s", VG_SLICE_ARG(sub),
               VG_SLICE_ARG(text));
    if (vg_slice_eq(sub, VG_SLICE_LIT("*")))
        (void)vg_names_add(c, all_of, res, NULL);
    if (vg_slice_eq(res, VG_SLICE_LIT("*")))
        (void)vg_names_add(c, of_all, sub, NULL);
}

static void check_resources(struct vg_check *c, const struct vg_at *at)
{
    VG_AUTO(names) all_of = {0};
    VG_AUTO(names) of_all = {0};
    bool has_double = false, has_single = false, has_plain = false;
    (void)vg_check_given(c, at);
    VG_CHECK_EACH (c, it, at) {
        struct vg_slice text = vg_at_text(&it);
        has_double = has_double || vg_at_is(&it, "*/*");
        has_single = has_single || vg_at_is(&it, "*");
        if (text.n == 0)
            vg_required(c, &it, NULL);
        else if (memchr(text.p, '/', text.n))
            check_subresource(c, &it, &all_of, &of_all);
        else
            has_plain = !vg_at_is(&it, "*"); /* the last one counts, as in the original */
    }
    if (vg_at_n(at) > 1 && has_double)
        vg_bad(c, at, "if '*/*' is present, must not specify other resources");
    if (has_single && has_plain)
        vg_bad(c, at, "if '*' is present, must not specify other resources without subresources");
}

void vg_check_admission_rule(struct vg_check *c, const struct vg_at *at)
{
    static const char *const known[] = {"*", "CONNECT", "CREATE", "DELETE", "UPDATE", NULL};
    static const char *const scopes[] = {"*", "Cluster", "Namespaced", NULL};
    struct vg_at operations = vg_at(at, "operations"), groups = vg_at(at, "apiGroups");
    struct vg_at versions = vg_at(at, "apiVersions"), resources = vg_at(at, "resources");
    struct vg_at scope = vg_at(at, "scope");
    check_list(c, &operations, "operations");
    VG_CHECK_EACH (c, operation, &operations)
        (void)vg_check_one_of(c, &operation, known);
    check_list(c, &groups, "API groups");
    check_list(c, &versions, "API versions");
    VG_CHECK_EACH (c, version, &versions)
        (void)vg_check_given(c, &version);
    check_resources(c, &resources);
    if (scope.v)
        (void)vg_check_one_of(c, &scope, scopes);
}

/* ---- match conditions ---- */

void vg_check_match_conditions(struct vg_check *c, const struct vg_at *at)
{
    VG_AUTO(names) seen = {0};
    if (vg_at_n(at) > MATCH_CONDITIONS_MAX)
        vg_too_many(c, at, vg_at_n(at), MATCH_CONDITIONS_MAX);
    VG_CHECK_EACH (c, condition, at) {
        struct vg_at expression = vg_at(&condition, "expression");
        struct vg_at name = vg_at(&condition, "name");
        if (vg_trimmed(vg_at_text(&expression)).n == 0)
            vg_required(c, &expression, NULL);
        else
            vg_check_cel(c, &expression, &vg_cel_admission_bool, NULL);
        if (!vg_check_given(c, &name))
            continue;
        (void)vg_check_qualified(c, &name);
        if (!vg_names_add(c, &seen, vg_at_text(&name), NULL))
            vg_duplicate(c, &name);
    }
}

/* ---- webhooks ---- */

/* A name of three parts and more. */
static void check_hook_name(struct vg_check *c, const struct vg_at *at)
{
    struct vg_name_reasons why = {0};
    struct vg_slice name = vg_at_text(at);
    size_t dots = 0;
    if (!vg_check_given(c, at))
        return;
    for (size_t i = 0; i < name.n; i++)
        dots += name.p[i] == '.';
    if (!vg_validate_dns1123_subdomain(name, VG_NAME_CHARACTERS, &why))
        vg_bad_reasons(c, at, name, "", &why);
    else if (dots < 2)
        vg_bad(c, at, "should be a domain with at least three segments separated by dots");
}

static void check_choice(struct vg_check *c, const struct vg_at *hook, const char *member,
                         const char *const *known)
{
    struct vg_at at = vg_at(hook, member);
    if (vg_at_is_set(&at))
        (void)vg_check_one_of(c, &at, known);
}

static void check_hook(struct vg_check *c, const struct vg_at *hook)
{
    static const char *const failures[] = {"Fail", "Ignore", NULL};
    static const char *const matches[] = {"Equivalent", "Exact", NULL};
    static const char *const effects[] = {"None", "NoneOnDryRun", NULL};
    static const char *const again[] = {"IfNeeded", "Never", NULL};
    struct vg_at name = vg_at(hook, "name"), rules = vg_at(hook, "rules");
    struct vg_at side = vg_at(hook, "sideEffects"), timeout = vg_at(hook, "timeoutSeconds");
    struct vg_at ns = vg_at(hook, "namespaceSelector"), object = vg_at(hook, "objectSelector");
    struct vg_at client = vg_at(hook, "clientConfig"), match = vg_at(hook, "matchConditions");
    struct vg_at versions = vg_at(hook, "admissionReviewVersions");
    check_hook_name(c, &name);
    VG_CHECK_EACH (c, rule, &rules)
        vg_check_admission_rule(c, &rule);
    check_choice(c, hook, "failurePolicy", failures);
    check_choice(c, hook, "matchPolicy", matches);
    if (!vg_at_is_set(&side))
        vg_required(c, &side, "must specify one of None, NoneOnDryRun");
    check_choice(c, hook, "sideEffects", effects);
    if (timeout.v && (vg_at_int(&timeout) > 30 || vg_at_int(&timeout) < 1))
        vg_bad_int(c, &timeout, "the timeout value must be between 1 and 30 seconds");
    vg_check_label_selector(c, &ns);
    vg_check_label_selector(c, &object);
    check_choice(c, hook, "reinvocationPolicy", again); /* of mutating ones alone */
    vg_check_webhook_client(c, &client);
    vg_check_match_conditions(c, &match);
    if (vg_at_n(&versions) == 0)
        vg_required(c, &versions, "must specify one of v1, v1beta1");
    else
        vg_check_review_versions(c, &versions);
}

static void check_hooks(struct vg_check *c, const struct vg_at *obj)
{
    VG_AUTO(names) seen = {0};
    struct vg_at hooks = vg_at(obj, "webhooks");
    VG_CHECK_EACH (c, hook, &hooks) {
        struct vg_at name = vg_at(&hook, "name");
        check_hook(c, &hook);
        if (vg_at_text(&name).n && !vg_names_add(c, &seen, vg_at_text(&name), NULL))
            vg_duplicate(c, &name);
    }
}

static void check_hooks_update(struct vg_check *c, const struct vg_at *obj,
                               const struct vg_json *old)
{
    (void)old;
    check_hooks(c, obj);
}

const struct vg_rules vg_rules_mutating_webhook_configuration = {
    .group = GROUP,
    .kind = "MutatingWebhookConfiguration",
    .check = check_hooks,
    .check_update = check_hooks_update,
};

const struct vg_rules vg_rules_validating_webhook_configuration = {
    .group = GROUP,
    .kind = "ValidatingWebhookConfiguration",
    .check = check_hooks,
    .check_update = check_hooks_update,
};
