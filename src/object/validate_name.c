/* validate_name.c - see validate_name.h.
 * The rules are regular expressions upstream; each is one pass over the bytes here. All of them are
 * of one shape: an alphanumeric byte at both ends, and a few more kinds of bytes allowed between.
 */
#include "validate_name.h"

/* ---- texts ---- */

#define TOO_LONG(n, unit) "must be no more than " #n " " unit
#define EMPTY "must be non-empty"

#define LABEL_KEY_RE "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
#define LABEL_KEY_RULE                                                                             \
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "    \
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "         \
    "validation is '" LABEL_KEY_RE "')"
#define LABEL_VALUE_RULE                                                                           \
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "    \
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "             \
    "'my_value',  or '12345', regex used for validation is '(" LABEL_KEY_RE ")?')"

#define DNS1123_RE "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
#define DNS1123_LABEL_RULE                                                                         \
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "   \
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex "     \
    "used for validation is '" DNS1123_RE "')"
#define DNS1123_SUBDOMAIN_RULE                                                                     \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "   \
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "  \
    "for validation is '" DNS1123_RE "(\\." DNS1123_RE ")*')"
#define DNS1035_LABEL_RULE                                                                         \
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "   \
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "           \
    "'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"

static void add(struct vg_name_reasons *why, const char *reason)
{
    if (!VG_NEVER(why->n >= VG_NAME_REASONS_MAX))
        why->v[why->n++] = reason;
}

/* The end of every validator. */
static bool give(const struct vg_name_reasons *why, struct vg_name_reasons *ret_why)
{
    if (why->n > 0 && ret_why)
        *ret_why = *why;
    return why->n == 0;
}

int vg_name_reasons_append(struct vg_buf *b, const struct vg_name_reasons *why)
{
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < why->n; i++)
        r = vg_buf_printf(b, "%s%s", i > 0 ? "; " : "", why->v[i]);
    return r;
}

/* ---- bytes ---- */

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_lower_alnum(char c)
{
    return is_lower(c) || (c >= '0' && c <= '9');
}

static bool is_alnum(char c)
{
    return is_lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

/* LABEL_KEY_RE */
static bool is_label_text(struct vg_slice s)
{
    if (s.n == 0 || !is_alnum(s.p[0]) || !is_alnum(s.p[s.n - 1]))
        return false;
    for (size_t i = 1; i < s.n; i++) {
        char c = s.p[i];
        if (!is_alnum(c) && c != '-' && c != '_' && c != '.')
            return false;
    }
    return true;
}

/* DNS1123_RE */
static bool is_dns_label(struct vg_slice s)
{
    if (s.n == 0 || !is_lower_alnum(s.p[0]) || !is_lower_alnum(s.p[s.n - 1]))
        return false;
    for (size_t i = 1; i < s.n; i++) {
        if (!is_lower_alnum(s.p[i]) && s.p[i] != '-')
            return false;
    }
    return true;
}

static bool is_dns_subdomain(struct vg_slice s)
{
    const char *dot;
    while (s.n > 0 && (dot = memchr(s.p, '.', s.n))) {
        size_t n = (size_t)(dot - s.p);
        if (!is_dns_label(vg_slice(s.p, n)))
            return false;
        s = vg_slice(dot + 1, s.n - n - 1);
    }
    return is_dns_label(s);
}

/* ---- validators ---- */

bool vg_validate_label_value(struct vg_slice s, struct vg_name_reasons *ret_why)
{
    struct vg_name_reasons why = {.n = 0};
    if (s.n > VG_LABEL_VALUE_MAX)
        add(&why, TOO_LONG(63, "bytes"));
    if (s.n > 0 && !is_label_text(s))
        add(&why, LABEL_VALUE_RULE);
    return give(&why, ret_why);
}

static void check_prefix(struct vg_slice s, struct vg_name_reasons *why)
{
    if (s.n == 0) {
        add(why, "prefix part " EMPTY);
        return;
    }
    if (s.n > VG_DNS_SUBDOMAIN_MAX)
        add(why, "prefix part " TOO_LONG(253, "bytes"));
    if (!is_dns_subdomain(s))
        add(why, "prefix part " DNS1123_SUBDOMAIN_RULE);
}

bool vg_validate_label_key(struct vg_slice s, struct vg_name_reasons *ret_why)
{
    struct vg_name_reasons why = {.n = 0};
    const char *slash = s.n ? memchr(s.p, '/', s.n) : NULL;
    if (slash) {
        size_t prefix_n = (size_t)(slash - s.p);
        struct vg_slice name = vg_slice(slash + 1, s.n - prefix_n - 1);
        if (name.n > 0 && memchr(name.p, '/', name.n)) {
            add(&why, "a valid label key " LABEL_KEY_RULE
                      " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')");
            return give(&why, ret_why);
        }
        check_prefix(vg_slice(s.p, prefix_n), &why);
        s = name;
    }
    if (s.n == 0)
        add(&why, "name part " EMPTY);
    else if (s.n > VG_LABEL_NAME_MAX)
        add(&why, "name part " TOO_LONG(63, "bytes"));
    if (!is_label_text(s))
        add(&why, "name part " LABEL_KEY_RULE);
    return give(&why, ret_why);
}

bool vg_validate_dns1123_label(struct vg_slice s, enum vg_name_unit unit,
                               struct vg_name_reasons *ret_why)
{
    struct vg_name_reasons why = {.n = 0};
    if (s.n > VG_DNS_LABEL_MAX)
        add(&why, unit == VG_NAME_BYTES ? TOO_LONG(63, "bytes") : TOO_LONG(63, "characters"));
    if (!is_dns_label(s))
        add(&why, is_dns_subdomain(s) ? "must not contain dots" : DNS1123_LABEL_RULE);
    return give(&why, ret_why);
}

bool vg_validate_dns1123_subdomain(struct vg_slice s, enum vg_name_unit unit,
                                   struct vg_name_reasons *ret_why)
{
    struct vg_name_reasons why = {.n = 0};
    if (s.n > VG_DNS_SUBDOMAIN_MAX)
        add(&why, unit == VG_NAME_BYTES ? TOO_LONG(253, "bytes") : TOO_LONG(253, "characters"));
    if (!is_dns_subdomain(s))
        add(&why, DNS1123_SUBDOMAIN_RULE);
    return give(&why, ret_why);
}

bool vg_validate_dns1035_label(struct vg_slice s, struct vg_name_reasons *ret_why)
{
    struct vg_name_reasons why = {.n = 0};
    if (s.n > VG_DNS_LABEL_MAX)
        add(&why, TOO_LONG(63, "characters"));
    if (!is_dns_label(s) || !is_lower(s.p[0]))
        add(&why, DNS1035_LABEL_RULE);
    return give(&why, ret_why);
}

bool vg_validate_path_segment(struct vg_slice s, struct vg_name_reasons *ret_why)
{
    struct vg_name_reasons why = {.n = 0};
    if (vg_slice_eq(s, VG_SLICE_LIT(".")))
        add(&why, "may not be '.'");
    else if (vg_slice_eq(s, VG_SLICE_LIT("..")))
        add(&why, "may not be '..'");
    if (s.n > 0 && memchr(s.p, '/', s.n))
        add(&why, "may not contain '/'");
    if (s.n > 0 && memchr(s.p, '%', s.n))
        add(&why, "may not contain '%'");
    return give(&why, ret_why);
}
