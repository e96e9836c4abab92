/* admission_policies.c - rules of admission policies and their bindings.
 * Left out: whether expressions compile, and to what type (there is no CEL here); the status of
 * validating policies. */
#include "admission.h"
#include "base/buf.h"
#include "cel.h"
#include "names.h"
#include "rules.h"

#define GROUP "admissionregistration.k8s.io"
#define AUDIT_ANNOTATIONS_MAX 20u
#define AUDIT_EXPRESSION_MAX 5120u

/* ---- shared by policies and bindings ---- */

static void check_named_rules(struct vg_check *c, const struct vg_at *list)
{
    VG_CHECK_EACH (c, rule, list) {
        VG_AUTO(names) seen = {0};
        struct vg_at names = vg_at(&rule, "resourceNames");
        VG_CHECK_EACH (c, name, &names) {
            struct vg_name_reasons why = {0};
            if (!vg_validate_path_segment(vg_at_text(&name), &why))
                (void)vg_check_reasons(c, &name, &why);
            if (!vg_names_add(c, &seen, vg_at_text(&name), NULL))
                vg_duplicate(c, &name);
        }
        vg_check_admission_rule(c, &rule);
    }
}

static void check_match_resources(struct vg_check *c, const struct vg_at *at)
{
    static const char *const policies[] = {"Equivalent", "Exact", NULL};
    struct vg_at policy = vg_at(at, "matchPolicy"), ns = vg_at(at, "namespaceSelector");
    struct vg_at object = vg_at(at, "objectSelector"), rules = vg_at(at, "resourceRules");
    struct vg_at excluded = vg_at(at, "excludeResourceRules");
    if (!at->v)
        return;
    (void)vg_check_one_of(c, &policy, policies);
    vg_check_label_selector(c, &ns);
    vg_check_label_selector(c, &object);
    check_named_rules(c, &rules);
    check_named_rules(c, &excluded);
}

/* What is deleted cannot be changed; blamed on all rules together. */
static void check_mutating_operations(struct vg_check *c, const struct vg_at *match)
{
    static const char *const known[] = {"*", "CONNECT", "CREATE", "UPDATE", NULL};
    struct vg_at rules = vg_at(match, "resourceRules");
    VG_CHECK_EACH (c, rule, &rules) {
        struct vg_at operations = vg_at(&rule, "operations");
        VG_CHECK_EACH (c, operation, &operations) {
            struct vg_at blamed = vg_at_of(&rules, "operations", operation.v);
            (void)vg_check_one_of(c, &blamed, known);
        }
    }
}

/* ---- policies ---- */

static void check_api_version(struct vg_check *c, const struct vg_at *at)
{
    struct vg_slice text = vg_at_text(at), version = text;
    const char *slash = text.n ? memchr(text.p, '/', text.n) : NULL;
    struct vg_name_reasons why = {0};
    if (!vg_check_given(c, at))
        return;
    if (slash) {
        struct vg_slice group = vg_slice(text.p, (size_t)(slash - text.p));
        version = vg_slice(slash + 1, text.n - group.n - 1);
        if (memchr(version.p, '/', version.n)) {
            vg_bad(c, at, "unexpected GroupVersion string: %.*s", VG_SLICE_ARG(text));
            return;
        }
        if (group.n && !vg_validate_dns1123_subdomain(group, VG_NAME_CHARACTERS, &why))
            vg_bad_reasons(c, at, group, "", &why);
    }
    why.n = 0;
    if (version.n == 0)
        vg_bad(c, at, "version must be specified");
    else if (!vg_validate_dns1035_label(version, &why))
        vg_bad_reasons(c, at, version, "", &why);
}

static void check_param_kind(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at version = vg_at(at, "apiVersion"), kind = vg_at(at, "kind");
    struct vg_slice name = vg_at_text(&kind);
    struct vg_name_reasons why = {0};
    if (!at->v)
        return;
    check_api_version(c, &version);
    if (!vg_check_given(c, &kind))
        return;
    char *low = vg_arena_copy(c->arena, name.p, name.n);
    c->errors->failed |= !low;
    for (size_t i = 0; low && i < name.n; i++)
        low[i] = (char)(low[i] >= 'A' && low[i] <= 'Z' ? low[i] + 32 : low[i]);
    if (low && !vg_validate_dns1035_label(vg_slice(low, name.n), &why))
        vg_bad_reasons(c, &kind, name, "may have mixed case, but should otherwise match: ", &why);
}

/* What comes before the expressions. */
static void check_policy_head(struct vg_check *c, const struct vg_at *spec, bool is_mutating)
{
    static const char *const failures[] = {"Fail", "Ignore", NULL};
    struct vg_at failure = vg_at(spec, "failurePolicy"), param = vg_at(spec, "paramKind");
    struct vg_at match = vg_at(spec, "matchConstraints"), rules = vg_at(&match, "resourceRules");
    struct vg_at conditions = vg_at(spec, "matchConditions");
    (void)vg_check_one_of(c, &failure, failures);
    check_param_kind(c, &param);
    if (!match.v) {
        vg_required(c, &match, NULL);
    } else {
        check_match_resources(c, &match);
        (void)vg_check_given(c, &rules);
        if (is_mutating)
            check_mutating_operations(c, &match);
    }
    vg_check_match_conditions(c, &conditions);
}

static bool is_identifier(struct vg_slice s)
{
    static const char *const reserved[] = {
        "true", "false", "null",  "in",      "as",        "break",  "const",
        "else", "for",   "if",    "import",  "continue",  "let",    "loop",
        "var",  "void",  "while", "package", "namespace", "return", "function"};
    for (size_t i = 0; i < s.n; i++) {
        char ch = s.p[i];
        bool is_letter = ch == '_' || (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z');
        if (!is_letter && (i == 0 || ch < '0' || ch > '9'))
            return false;
    }
    for (size_t i = 0; i < VG_ARRAY_LEN(reserved); i++)
        if (vg_slice_eq(s, vg_slice_str(reserved[i])))
            return false;
    return s.n > 0;
}

static void check_variables(struct vg_check *c, const struct vg_at *spec)
{
    struct vg_at list = vg_at(spec, "variables");
    VG_CHECK_EACH (c, variable, &list) {
        struct vg_at name = vg_at(&variable, "name"), expression = vg_at(&variable, "expression");
        if (vg_trimmed(vg_at_text(&name)).n == 0)
            vg_required(c, &name, "name is not specified");
        else if (!is_identifier(vg_at_text(&name)))
            vg_bad(c, &name, "must be a valid CEL identifier");
        if (vg_trimmed(vg_at_text(&expression)).n == 0)
            vg_required(c, &expression, "expression is not specified");
        else
            vg_check_cel(c, &expression, &vg_cel_admission_any, NULL);
    }
}

static void check_validation(struct vg_check *c, const struct vg_at *at)
{
    static const char *const reasons[] = {"Forbidden", "Invalid", "RequestEntityTooLarge", NULL};
    struct vg_at expression = vg_at(at, "expression"), message = vg_at(at, "message");
    struct vg_at words = vg_at(at, "messageExpression"), reason = vg_at(at, "reason");
    struct vg_slice text = vg_trimmed(vg_at_text(&message));
    if (vg_trimmed(vg_at_text(&expression)).n == 0)
        vg_required(c, &expression, "expression is not specified");
    else
        vg_check_cel(c, &expression, &vg_cel_admission_bool, NULL);
    if (vg_at_text(&words).n && vg_trimmed(vg_at_text(&words)).n == 0)
        vg_bad(c, &words, "must be non-empty if specified");
    else if (vg_at_text(&words).n)
        vg_check_cel(c, &words, &vg_cel_admission_text, NULL);
    if (vg_at_text(&message).n && text.n == 0)
        vg_bad(c, &message, "must be non-empty if specified");
    else if (text.n && (memchr(text.p, '\n', text.n) || memchr(text.p, '\r', text.n)))
        vg_bad(c, &message, "must not contain line breaks");
    if (reason.v)
        (void)vg_check_one_of(c, &reason, reasons);
}

/* The key is named after the policy. */
static void check_annotation_key(struct vg_check *c, const struct vg_at *at, struct vg_slice policy)
{
    VG_AUTO(buf) full = {0};
    struct vg_name_reasons why = {0};
    if (policy.n == 0) {
        vg_bad_text(c, at, "requires metadata.name be non-empty");
        return;
    }
    if (vg_buf_printf(&full, "%.*s/%.*s", VG_SLICE_ARG(policy), VG_SLICE_ARG(vg_at_text(at))) < 0)
        c->errors->failed = true;
    if (vg_validate_label_key(vg_buf_slice(&full), &why))
        return;
    for (uint32_t i = 0; i < why.n; i++)
        vg_bad_value(c, at, vg_json_quoted(c, vg_buf_slice(&full)), "%s", why.v[i]);
}

static void check_annotations(struct vg_check *c, const struct vg_at *list, struct vg_slice policy)
{
    VG_AUTO(names) seen = {0};
    if (vg_at_n(list) > AUDIT_ANNOTATIONS_MAX)
        vg_bad(c, list, "must not have more than %u auditAnnotations", AUDIT_ANNOTATIONS_MAX);
    VG_CHECK_EACH (c, annotation, list) {
        struct vg_at key = vg_at(&annotation, "key"), value = vg_at(&annotation, "valueExpression");
        size_t n = vg_trimmed(vg_at_text(&value)).n;
        check_annotation_key(c, &key, policy);
        if (n == 0)
            vg_required(c, &value, "valueExpression is not specified");
        else if (n > AUDIT_EXPRESSION_MAX)
            vg_required(c, &value, "must not exceed %u bytes in length", AUDIT_EXPRESSION_MAX);
        else
            vg_check_cel(c, &value, &vg_cel_admission_any, NULL);
        if (!vg_names_add(c, &seen, vg_at_text(&key), NULL))
            vg_duplicate_value(c, &key, vg_json_quoted(c, vg_at_text(&key)));
    }
}

static void check_validating(struct vg_check *c, const struct vg_at *obj)
{
    static const char one[] = "validations or auditAnnotations must contain at least one item";
    struct vg_at spec = vg_at(obj, "spec"), validations = vg_at(&spec, "validations");
    struct vg_at annotations = vg_at(&spec, "auditAnnotations");
    check_policy_head(c, &spec, false);
    check_variables(c, &spec);
    if (vg_at_n(&validations) == 0 && vg_at_n(&annotations) == 0) {
        vg_required(c, &validations, "%s", one);
        vg_required(c, &annotations, "%s", one);
    }
    VG_CHECK_EACH (c, validation, &validations)
        check_validation(c, &validation);
    check_annotations(c, &annotations, vg_json_text(vg_json_at_path(obj->v, "metadata.name")));
}

static void check_validating_update(struct vg_check *c, const struct vg_at *obj,
                                    const struct vg_json *old)
{
    (void)old;
    check_validating(c, obj);
}

const struct vg_rules vg_rules_validating_admission_policy = {
    .group = GROUP,
    .kind = "ValidatingAdmissionPolicy",
    .check = check_validating,
    .check_update = check_validating_update,
};

static void check_mutation(struct vg_check *c, const struct vg_at *at)
{
    static const char *const types[] = {"ApplyConfiguration", "JSONPatch", NULL};
    static const char *const members[] = {"applyConfiguration", "jsonPatch"};
    struct vg_at type = vg_at(at, "patchType");
    if (!vg_check_given(c, &type) || !vg_check_one_of(c, &type, types))
        return;
    size_t i = vg_at_is(&type, "JSONPatch");
    struct vg_at own = vg_at(at, members[i]), other = vg_at(at, members[!i]);
    struct vg_at expression = vg_at(&own, "expression");
    if (!own.v)
        vg_required(c, &own, "must be specified when patchType is %s", types[i]);
    else if (vg_trimmed(vg_at_text(&expression)).n == 0)
        vg_required(c, &expression, NULL);
    else
        vg_check_cel(c, &expression, i ? &vg_cel_json_patch : &vg_cel_apply, NULL);
    if (other.v)
        vg_bad_value(c, &other,
                     i ? VG_SLICE_LIT("\"{applyConfiguration}\"") : VG_SLICE_LIT("\"{jsonPatch}\""),
                     "must not be specified when patchType is %s", types[i]);
}

static void check_mutating(struct vg_check *c, const struct vg_at *obj)
{
    static const char *const again[] = {"IfNeeded", "Never", NULL};
    struct vg_at spec = vg_at(obj, "spec"), mutations = vg_at(&spec, "mutations");
    struct vg_at policy = vg_at(&spec, "reinvocationPolicy");
    check_policy_head(c, &spec, true);
    check_variables(c, &spec);
    if (vg_at_n(&mutations) == 0)
        vg_required(c, &mutations, "mutations must contain at least one item");
    VG_CHECK_EACH (c, mutation, &mutations)
        check_mutation(c, &mutation);
    if (vg_check_given(c, &policy))
        (void)vg_check_one_of(c, &policy, again);
}

static void check_mutating_update(struct vg_check *c, const struct vg_at *obj,
                                  const struct vg_json *old)
{
    (void)old;
    check_mutating(c, obj);
}

const struct vg_rules vg_rules_mutating_admission_policy = {
    .group = GROUP,
    .kind = "MutatingAdmissionPolicy",
    .check = check_mutating,
    .check_update = check_mutating_update,
};

/* ---- bindings ---- */

static void check_param_ref(struct vg_check *c, const struct vg_at *at)
{
    static const char *const actions[] = {"Deny", "Allow", NULL};
    static const char both[] = "name and selector are mutually exclusive";
    struct vg_at name = vg_at(at, "name"), selector = vg_at(at, "selector");
    struct vg_at action = vg_at(at, "parameterNotFoundAction");
    struct vg_name_reasons why = {0};
    bool has_name = vg_at_text(&name).n > 0;
    if (!at->v)
        return;
    if (has_name && !vg_validate_path_segment(vg_at_text(&name), &why))
        (void)vg_check_reasons(c, &name, &why);
    if (has_name && selector.v)
        vg_forbidden(c, &name, "%s", both);
    vg_check_label_selector(c, &selector);
    if (has_name && selector.v)
        vg_forbidden(c, &selector, "%s", both);
    if (!has_name && !selector.v)
        vg_required(c, at, "one of name or selector must be specified");
    if (vg_check_given(c, &action))
        (void)vg_check_one_of(c, &action, actions);
}

static void check_actions(struct vg_check *c, const struct vg_at *at)
{
    static const char *const known[] = {"Audit", "Deny", "Warn", NULL};
    VG_AUTO(names) seen = {0};
    VG_CHECK_EACH (c, action, at) {
        (void)vg_check_one_of(c, &action, known);
        if (!vg_names_add(c, &seen, vg_at_text(&action), NULL))
            vg_duplicate(c, &action);
    }
    if (vg_names_has(&seen, VG_SLICE_LIT("Deny")) && vg_names_has(&seen, VG_SLICE_LIT("Warn")))
        vg_bad(c, at,
               "must not contain both Deny and Warn (repeating the same validation failure "
               "information in the API response and headers serves no purpose)");
    if (vg_at_n(at) == 0)
        vg_required(c, at, "at least one validation action is required");
}

static void check_any_binding(struct vg_check *c, const struct vg_at *spec)
{
    struct vg_at policy = vg_at(spec, "policyName"), param = vg_at(spec, "paramRef");
    struct vg_at match = vg_at(spec, "matchResources");
    if (vg_check_given(c, &policy))
        (void)vg_check_dns_subdomain(c, &policy);
    check_param_ref(c, &param);
    check_match_resources(c, &match);
}

static void check_validating_binding(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at spec = vg_at(obj, "spec"), actions = vg_at(&spec, "validationActions");
    check_any_binding(c, &spec);
    check_actions(c, &actions);
}

static void check_validating_binding_update(struct vg_check *c, const struct vg_at *obj,
                                            const struct vg_json *old)
{
    (void)old;
    check_validating_binding(c, obj);
}

const struct vg_rules vg_rules_validating_admission_policy_binding = {
    .group = GROUP,
    .kind = "ValidatingAdmissionPolicyBinding",
    .check = check_validating_binding,
    .check_update = check_validating_binding_update,
};

static void check_mutating_binding(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at spec = vg_at(obj, "spec"), match = vg_at(&spec, "matchResources");
    check_any_binding(c, &spec);
    check_mutating_operations(c, &match);
}

static void check_mutating_binding_update(struct vg_check *c, const struct vg_at *obj,
                                          const struct vg_json *old)
{
    (void)old;
    check_mutating_binding(c, obj);
}

const struct vg_rules vg_rules_mutating_admission_policy_binding = {
    .group = GROUP,
    .kind = "MutatingAdmissionPolicyBinding",
    .check = check_mutating_binding,
    .check_update = check_mutating_binding_update,
};
