/* image.c - references to images: [domain[:port]/]path[:tag][@digest], as far as defaults need
 * them. What is no reference has no tag, so that nothing is pulled for it twice. */
#include <ctype.h>

#include "defaults.h"

#define TAG_MAX 128u
#define NAME_MAX_BYTES 255u

static bool is_lower_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Letters and digits, in runs that one dot, one or two underscores, or dashes join. */
static bool is_component(struct vg_slice s)
{
    size_t i = 0;
    while (true) {
        size_t start = i;
        while (i < s.n && is_lower_digit(s.p[i]))
            i++;
        if (i == start)
            return false;
        if (i == s.n)
            return true;
        char c = s.p[i++];
        if (c == '-')
            while (i < s.n && s.p[i] == '-')
                i++;
        else if (c == '_' && i < s.n && s.p[i] == '_')
            i++;
        else if (c != '.' && c != '_')
            return false;
    }
}

static bool is_path(struct vg_slice s)
{
    while (true) {
        const char *slash = s.n ? memchr(s.p, '/', s.n) : NULL;
        size_t n = slash ? (size_t)(slash - s.p) : s.n;
        if (!is_component(vg_slice(s.p, n)))
            return false;
        if (!slash)
            return true;
        s = vg_slice(slash + 1, s.n - n - 1);
    }
}

static bool is_tag(struct vg_slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!isalnum((unsigned char)s.p[i]) && s.p[i] != '_' &&
            (i == 0 || (s.p[i] != '.' && s.p[i] != '-')))
            return false;
    return s.n > 0 && s.n <= TAG_MAX;
}

/* Labels of letters, digits and inner dashes; a port behind a colon. Or an address in brackets. */
static bool is_machine(struct vg_slice s)
{
    bool is_start = true;
    if (s.n && s.p[0] == '[')
        return true;
    for (size_t i = 0; i < s.n; i++) {
        bool is_end = i + 1 == s.n || s.p[i + 1] == '.' || s.p[i + 1] == ':';
        if (s.p[i] == ':') {
            for (i++; i < s.n; i++)
                if (!isdigit((unsigned char)s.p[i]))
                    return false;
            return s.p[s.n - 1] != ':';
        }
        if (s.p[i] == '.'
                ? is_start || is_end
                : !isalnum((unsigned char)s.p[i]) && (s.p[i] != '-' || is_start || is_end))
            return false;
        is_start = s.p[i] == '.';
    }
    return s.n > 0;
}

/* The first component names a machine if it cannot name anything else. What is no name of one
 * leaves nothing. */
static struct vg_slice without_domain(struct vg_slice s)
{
    const char *slash = s.n ? memchr(s.p, '/', s.n) : NULL;
    if (!slash)
        return s;
    struct vg_slice first = vg_slice(s.p, (size_t)(slash - s.p));
    bool is_domain = vg_slice_eq(first, VG_SLICE_LIT("localhost"));
    for (size_t i = 0; i < first.n; i++)
        is_domain |= first.p[i] == '.' || first.p[i] == ':' || isupper((unsigned char)first.p[i]);
    if (is_domain && !is_machine(first))
        return VG_SLICE_LIT("");
    return is_domain ? vg_slice(slash + 1, s.n - first.n - 1) : s;
}

const char *vg_default_pull_policy(struct vg_slice image)
{
    const char *at = image.n ? memchr(image.p, '@', image.n) : NULL;
    struct vg_slice rest = without_domain(vg_slice(image.p, at ? (size_t)(at - image.p) : image.n));
    const char *colon = rest.n ? memrchr(rest.p, ':', rest.n) : NULL;
    const char *slash = rest.n ? memrchr(rest.p, '/', rest.n) : NULL;
    bool has_tag = colon && colon > slash;
    size_t path_n = has_tag ? (size_t)(colon - rest.p) : rest.n;
    struct vg_slice tag =
        has_tag ? vg_slice(colon + 1, rest.n - path_n - 1) : VG_SLICE_LIT("latest");
    bool is_reference =
        is_path(vg_slice(rest.p, path_n)) && is_tag(tag) && path_n <= NAME_MAX_BYTES;
    if (!is_reference || (at && !has_tag))
        return "IfNotPresent";
    return vg_slice_eq(tag, VG_SLICE_LIT("latest")) ? "Always" : "IfNotPresent";
}
