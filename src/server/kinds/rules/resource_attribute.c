/* resource_attribute.c - attributes of devices: one value, and versions as semver.org has them. */
#include "go_struct.h"
#include "resource.h"
#include "server/kinds/types.h"

#define VALUE_MAX 64u

/* 0, or no leading zero; with letters any. */
static bool is_number(struct vg_slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    return s.n > 0 && (s.n == 1 || s.p[0] != '0');
}

static bool is_word(struct vg_slice s, bool may_lead_with_zero)
{
    bool is_digits = true;
    for (size_t i = 0; i < s.n; i++) {
        char ch = s.p[i];
        bool is_digit = ch >= '0' && ch <= '9';
        is_digits = is_digits && is_digit;
        if (!is_digit && ch != '-' && !(ch >= 'a' && ch <= 'z') && !(ch >= 'A' && ch <= 'Z'))
            return false;
    }
    return s.n > 0 && (may_lead_with_zero || !is_digits || is_number(s));
}

static bool are_words(struct vg_slice s, bool may_lead_with_zero)
{
    for (size_t from = 0, i = 0; i <= s.n; i++) {
        if (i < s.n && s.p[i] != '.')
            continue;
        if (!is_word(vg_slice(s.p + from, i - from), may_lead_with_zero))
            return false;
        from = i + 1;
    }
    return true;
}

/* semver.org 2.0.0 */
static bool is_version(struct vg_slice s)
{
    const char *plus = s.n ? memchr(s.p, '+', s.n) : NULL;
    if (plus) {
        size_t n = (size_t)(plus - s.p);
        if (!are_words(vg_slice(plus + 1, s.n - n - 1), true))
            return false;
        s.n = n;
    }
    const char *dash = s.n ? memchr(s.p, '-', s.n) : NULL;
    if (dash) {
        size_t n = (size_t)(dash - s.p);
        if (!are_words(vg_slice(dash + 1, s.n - n - 1), false))
            return false;
        s.n = n;
    }
    size_t parts = 0;
    for (size_t from = 0, i = 0; i <= s.n; i++) {
        if (i < s.n && s.p[i] != '.')
            continue;
        if (!is_number(vg_slice(s.p + from, i - from)))
            return false;
        parts++;
        from = i + 1;
    }
    return parts == 3;
}

void vg_check_device_attribute(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at text = vg_at(at, "string"), version = vg_at(at, "version");
    if (vg_at_text(&text).n > VALUE_MAX)
        vg_too_long(c, &text, VALUE_MAX);
    if (version.v && !is_version(vg_at_text(&version)))
        vg_bad(c, &version, "must be a string compatible with semver.org spec 2.0.0");
    if (vg_at_text(&version).n > VALUE_MAX)
        vg_too_long(c, &version, VALUE_MAX);
    if (vg_at_n(at) == 0)
        vg_bad_value(c, at, VG_SLICE_LIT("\"\""), "exactly one value must be specified");
    else if (vg_at_n(at) > 1)
        vg_bad_go(c, at,
                  vg_schema_find(VG_SLICE_LIT("resource.k8s.io"), VG_SLICE_LIT("v1"),
                                 VG_SLICE_LIT("DeviceAttribute")),
                  "exactly one value must be specified");
}
