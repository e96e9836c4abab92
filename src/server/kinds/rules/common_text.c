/* common_text.c - texts with a syntax, and numbers with a range, that many kinds have; see check.h.
 */
#include <inttypes.h>

#include "check.h"

bool vg_check_given(struct vg_check *c, const struct vg_at *at)
{
    if (vg_at_text(at).n || vg_at_n(at))
        return true;
    vg_required(c, at, NULL);
    return false;
}

bool vg_check_positive(struct vg_check *c, const struct vg_at *at)
{
    if (vg_at_int(at) > 0)
        return true;
    vg_bad_int(c, at, "must be greater than zero");
    return false;
}

bool vg_check_range(struct vg_check *c, const struct vg_at *at, int64_t low, int64_t high)
{
    int64_t i = vg_at_int(at);
    if (i >= low && i <= high)
        return true;
    vg_bad_int(c, at, "must be between %" PRId64 " and %" PRId64 ", inclusive", low, high);
    return false;
}

/* ---- labels ---- */

bool vg_check_label_value(struct vg_check *c, const struct vg_at *at)
{
    struct vg_name_reasons why = {0};
    return vg_validate_label_value(vg_at_text(at), &why) || vg_check_reasons(c, at, &why);
}

void vg_check_selector_operator(struct vg_check *c, const struct vg_at *at, bool has_order)
{
    struct vg_at operator= vg_at(at, "operator"), values = vg_at(at, "values");
    if (vg_at_is(&operator, "In") || vg_at_is(&operator, "NotIn")) {
        if (vg_at_n(&values) == 0)
            vg_required(c, &values, "must be specified when `operator` is 'In' or 'NotIn'");
    } else if (vg_at_is(&operator, "Exists") || vg_at_is(&operator, "DoesNotExist")) {
        if (vg_at_n(&values))
            vg_forbidden(c, &values,
                         "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    } else if (has_order && (vg_at_is(&operator, "Gt") || vg_at_is(&operator, "Lt"))) {
        if (vg_at_n(&values) != 1)
            vg_required(c, &values,
                        "must be specified single value when `operator` is 'Lt' or 'Gt'");
    } else {
        vg_bad_text(c, &operator, "not a valid selector operator");
    }
}

static void check_expression(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at key = vg_at(at, "key"), values = vg_at(at, "values");
    vg_check_selector_operator(c, at, false);
    (void)vg_check_qualified(c, &key);
    VG_CHECK_EACH (c, value, &values)
        (void)vg_check_label_value(c, &value);
}

void vg_check_label_selector(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at labels = vg_at(at, "matchLabels");
    struct vg_at expressions = vg_at(at, "matchExpressions");
    vg_check_labels(c, &labels);
    VG_CHECK_EACH (c, e, &expressions)
        check_expression(c, &e);
}

/* ---- ports ---- */

bool vg_check_port_name(struct vg_check *c, const struct vg_at *at)
{
    struct vg_slice s = vg_at_text(at);
    bool has_letter = false, has_other = s.n == 0, has_double = false;
    size_t before = c->errors->n;
    for (size_t i = 0; i < s.n; i++) {
        char ch = s.p[i];
        bool is_letter = ch >= 'a' && ch <= 'z';
        has_letter = has_letter || is_letter;
        has_other = has_other || !(is_letter || (ch >= '0' && ch <= '9') || ch == '-');
        has_double = has_double || (ch == '-' && i && s.p[i - 1] == '-');
    }
    if (s.n > 15)
        vg_bad_text(c, at, "must be no more than 15 characters");
    if (has_other)
        vg_bad_text(c, at,
                    "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    if (!has_letter)
        vg_bad_text(c, at, "must contain at least one letter (a-z)");
    if (has_double)
        vg_bad_text(c, at, "must not contain consecutive hyphens");
    if (s.n && (s.p[0] == '-' || s.p[s.n - 1] == '-'))
        vg_bad_text(c, at, "must not begin or end with a hyphen");
    return c->errors->n == before;
}

bool vg_check_port_or_name(struct vg_check *c, const struct vg_at *at)
{
    return vg_json_is(at->v, VG_JSON_STRING) ? vg_check_port_name(c, at) : vg_check_port(c, at);
}

/* ---- keys and paths ---- */

bool vg_check_config_key(struct vg_check *c, const struct vg_at *at)
{
    struct vg_slice s = vg_at_text(at);
    bool is_plain = s.n > 0;
    size_t before = c->errors->n;
    for (size_t i = 0; i < s.n; i++) {
        char ch = s.p[i];
        is_plain = is_plain && ((ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
                                (ch >= '0' && ch <= '9') || ch == '-' || ch == '_' || ch == '.');
    }
    if (s.n > VG_DNS_SUBDOMAIN_MAX)
        vg_bad_text(c, at, "must be no more than %u characters", VG_DNS_SUBDOMAIN_MAX);
    if (!is_plain)
        vg_bad_text(c, at,
                    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
                    "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation "
                    "is '[-._a-zA-Z0-9]+')");
    if (vg_slice_eq(s, VG_SLICE_LIT(".")))
        vg_bad_text(c, at, "must not be '.'");
    else if (vg_slice_eq(s, VG_SLICE_LIT("..")))
        vg_bad_text(c, at, "must not be '..'");
    else if (vg_slice_has_prefix(s, VG_SLICE_LIT("..")))
        vg_bad_text(c, at, "must not start with '..'");
    return c->errors->n == before;
}

bool vg_path_has_backstep(struct vg_slice s)
{
    for (size_t from = 0, i = 0; i <= s.n; i++) {
        if (i < s.n && s.p[i] != '/')
            continue;
        if (i - from == 2 && s.p[from] == '.' && s.p[from + 1] == '.')
            return true;
        from = i + 1;
    }
    return false;
}

bool vg_check_no_backsteps(struct vg_check *c, const struct vg_at *at)
{
    if (!vg_path_has_backstep(vg_at_text(at)))
        return true;
    vg_bad_text(c, at, "must not contain '..'");
    return false;
}

bool vg_check_descending_path(struct vg_check *c, const struct vg_at *at)
{
    struct vg_slice s = vg_at_text(at);
    bool is_absolute = s.n && s.p[0] == '/';
    if (is_absolute)
        vg_bad_text(c, at, "must be a relative path");
    return vg_check_no_backsteps(c, at) && !is_absolute;
}

/* What may stand in a path of HTTP. */
static bool is_http_path(struct vg_slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        char ch = s.p[i];
        bool is_plain =
            (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9');
        if (!is_plain && (ch == '\0' || !strchr("/-._~%!$&'()*+,;=:", ch)))
            return false;
    }
    return true;
}

void vg_check_domain_path(struct vg_check *c, const struct vg_at *at)
{
    struct vg_slice s = vg_at_text(at);
    const char *slash = s.n ? memchr(s.p, '/', s.n) : NULL;
    size_t n = slash ? (size_t)(slash - s.p) : 0;
    struct vg_name_reasons why = {0};
    if (n == 0 || n + 1 == s.n) {
        vg_bad_text(c, at, "must be a domain-prefixed path (such as \"acme.io/foo\")");
        return;
    }
    struct vg_slice host = vg_slice(s.p, n), path = vg_slice(slash + 1, s.n - n - 1);
    (void)vg_validate_dns1123_subdomain(host, VG_NAME_CHARACTERS, &why);
    for (uint32_t i = 0; i < why.n; i++)
        vg_bad_value(c, at, vg_json_quoted(c, host), "%s", why.v[i]);
    if (!is_http_path(path))
        vg_bad_value(c, at, vg_json_quoted(c, path),
                     "Invalid path (regex used for validation is "
                     "'[A-Za-z0-9/\\-._~%%!$&'()*+,;=:]+')");
}
