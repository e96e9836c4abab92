/* cidr.c - ranges of addresses; see ip.h. */
#include <stdio.h>

#include "ip.h"

/* How many bits; leading zeros are taken, and noticed. */
static bool read_bits(struct vg_slice s, unsigned max, unsigned *ret, bool *is_strict)
{
    unsigned v = 0;
    if (s.n == 0)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        v = v * 10 + (unsigned)(s.p[i] - '0');
        if (v > max)
            return false;
    }
    *ret = v;
    *is_strict = s.n == 1 || s.p[0] != '0';
    return true;
}

bool vg_cidr_parse(struct vg_slice text, struct vg_cidr *ret)
{
    const char *slash = text.n ? memchr(text.p, '/', text.n) : NULL;
    bool is_plain;
    if (!slash)
        return false;
    size_t n = (size_t)(slash - text.p);
    if (!vg_ip_parse(vg_slice(text.p, n), &ret->ip) ||
        !read_bits(vg_slice(slash + 1, text.n - n - 1), ret->ip.is_v4 ? 32 : 128, &ret->bits,
                   &is_plain))
        return false;
    ret->is_strict = ret->ip.is_strict && is_plain;
    return true;
}

struct vg_ip vg_cidr_first(const struct vg_cidr *n)
{
    struct vg_ip ip = n->ip;
    unsigned bits = n->bits + (ip.is_v4 ? 96 : 0);
    for (unsigned i = 0; i < 16; i++) {
        unsigned keep = bits >= (i + 1) * 8 ? 8 : bits > i * 8 ? bits - i * 8 : 0;
        ip.b[i] = (uint8_t)(ip.b[i] & (0xff00u >> keep));
    }
    return ip;
}

bool vg_cidr_contains(const struct vg_cidr *n, const struct vg_ip *ip)
{
    struct vg_cidr other = {.ip = *ip, .bits = n->bits};
    if (vg_ip_means_v4(ip) != vg_ip_means_v4(&n->ip))
        return false;
    other.ip.is_v4 = n->ip.is_v4;
    struct vg_ip a = vg_cidr_first(n), b = vg_cidr_first(&other);
    return memcmp(a.b, b.b, sizeof a.b) == 0;
}

/* The range as Go prints it: its first address, or `ip`, and a length. */
#define TEXT_MAX (VG_IP_TEXT_MAX + 8u)
static struct vg_slice text_of(const struct vg_ip *ip, unsigned bits, char room[TEXT_MAX])
{
    char address[VG_IP_TEXT_MAX];
    struct vg_slice text = vg_ip_text(ip, address);
    int n = snprintf(room, TEXT_MAX, "%.*s/%u", VG_SLICE_ARG(text), bits);
    return vg_slice(room, (size_t)n);
}

static struct vg_slice canonical(const struct vg_cidr *n, char room[TEXT_MAX])
{
    struct vg_ip first = vg_cidr_first(n);
    bool is_short = !n->ip.is_v4 && vg_ip_is_mapped(&first) && n->bits >= 96;
    return text_of(&first, is_short ? n->bits - 96 : n->bits, room);
}

static bool has_host_bits(const struct vg_cidr *n)
{
    struct vg_ip first = vg_cidr_first(n);
    return memcmp(first.b, n->ip.b, sizeof first.b) != 0;
}

static const char *wrong_with(struct vg_slice text)
{
    struct vg_cidr n;
    if (!vg_cidr_parse(text, &n))
        return "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
    if (!n.is_strict)
        return "must not have leading 0s in IP or prefix length";
    if (vg_ip_is_mapped(&n.ip))
        return "must not have an IPv4-mapped IPv6 address";
    return has_host_bits(&n) ? "must not have bits set beyond the prefix length" : NULL;
}

bool vg_check_cidr_or_old(struct vg_check *c, const struct vg_at *at, const struct vg_json *before)
{
    const char *why = wrong_with(vg_at_text(at));
    if (!why || (!vg_field_errors_is_full(c->errors) && vg_text_is_among(vg_at_text(at), before)))
        return true;
    vg_bad_text(c, at, "%s", why);
    return false;
}

bool vg_check_cidr(struct vg_check *c, const struct vg_at *at)
{
    return vg_check_cidr_or_old(c, at, NULL);
}

bool vg_check_cidr_canonical(struct vg_check *c, const struct vg_at *at)
{
    struct vg_cidr n;
    char room[TEXT_MAX];
    if (!vg_check_cidr(c, at) || !vg_cidr_parse(vg_at_text(at), &n))
        return false;
    struct vg_slice text = canonical(&n, room);
    if (vg_slice_eq(text, vg_at_text(at)))
        return true;
    vg_bad_text(c, at, "must be in canonical form (\"%.*s\")", VG_SLICE_ARG(text));
    return false;
}

void vg_caution_cidr(struct vg_check *c, const struct vg_at *at)
{
    struct vg_cidr n;
    char room[TEXT_MAX], single[TEXT_MAX];
    struct vg_slice given = vg_at_text(at);
    if (!vg_cidr_parse(given, &n))
        return;
    struct vg_slice text = canonical(&n, room);
    bool is_ambiguous = has_host_bits(&n), is_odd = !n.is_strict || vg_ip_is_mapped(&n.ip);
    if (is_ambiguous) {
        struct vg_slice one = text_of(&n.ip, n.ip.is_v4 ? 32 : 128, single);
        vg_caution_at(c, at,
                      "CIDR value \"%.*s\" is ambiguous in this context (should be \"%.*s\" or "
                      "\"%.*s\"?)",
                      VG_SLICE_ARG(given), VG_SLICE_ARG(text), VG_SLICE_ARG(one));
    }
    if (is_odd)
        vg_caution_at(c, at, "non-standard CIDR value \"%.*s\" is invalid: use \"%.*s\"",
                      VG_SLICE_ARG(given), VG_SLICE_ARG(text));
    if (!is_ambiguous && !is_odd && !n.ip.is_v4 && !vg_slice_eq(text, given))
        vg_caution_at(c, at,
                      "IPv6 CIDR value \"%.*s\" should be in RFC 5952 canonical format "
                      "(\"%.*s\")",
                      VG_SLICE_ARG(given), VG_SLICE_ARG(text));
}
