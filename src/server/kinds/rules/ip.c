/* ip.c - see ip.h. */
#include "ip.h"

#include <arpa/inet.h>

/* Digits of a base at the start of a text; more than limit is too much. Bytes read, 0: none. */
static size_t number(struct vg_slice s, unsigned base, unsigned limit, unsigned *ret)
{
    unsigned v = 0;
    size_t i = 0;
    for (; i < s.n; i++) {
        char ch = s.p[i];
        unsigned digit = ch >= '0' && ch <= '9'   ? (unsigned)(ch - '0')
                         : ch >= 'a' && ch <= 'f' ? (unsigned)(ch - 'a' + 10)
                         : ch >= 'A' && ch <= 'F' ? (unsigned)(ch - 'A' + 10)
                                                  : 99;
        if (digit >= base)
            break;
        v = v * base + digit;
        if (v > limit)
            return 0;
    }
    *ret = v;
    return i;
}

static bool parse_v4(struct vg_slice s, uint8_t b[4], bool *is_strict)
{
    for (unsigned i = 0; i < 4; i++) {
        unsigned v;
        if (i && (s.n == 0 || *s.p != '.'))
            return false;
        if (i)
            s = vg_slice(s.p + 1, s.n - 1);
        size_t n = number(s, 10, 255, &v);
        if (n == 0)
            return false;
        *is_strict = *is_strict && (n == 1 || *s.p != '0');
        b[i] = (uint8_t)v;
        s = vg_slice(s.p + n, s.n - n);
    }
    return s.n == 0;
}

static bool starts_with_gap(struct vg_slice s)
{
    return s.n >= 2 && s.p[0] == ':' && s.p[1] == ':';
}

/* Room for the groups that "::" leaves out. */
static bool widen(uint8_t b[16], unsigned n, int gap)
{
    if (gap < 0)
        return n == 16;
    if (n == 16)
        return false;
    memmove(b + 16 - (n - (unsigned)gap), b + gap, n - (unsigned)gap);
    memset(b + gap, 0, 16 - n);
    return true;
}

static bool parse_v6(struct vg_slice s, struct vg_ip *ip)
{
    int gap = -1;
    unsigned n = 0;
    if (starts_with_gap(s)) {
        gap = 0;
        s = vg_slice(s.p + 2, s.n - 2);
    }
    while (n < 16 && s.n) {
        unsigned v;
        size_t used = number(s, 16, 0xffff, &v);
        if (used == 0)
            return false;
        if (used < s.n && s.p[used] == '.') {
            if ((gap < 0 && n != 12) || n > 12 || !parse_v4(s, ip->b + n, &ip->is_strict))
                return false;
            n += 4;
            s.n = 0;
            break;
        }
        ip->is_strict = ip->is_strict && used <= 4;
        ip->b[n++] = (uint8_t)(v >> 8);
        ip->b[n++] = (uint8_t)v;
        s = vg_slice(s.p + used, s.n - used);
        if (s.n == 0)
            break;
        if (*s.p != ':' || s.n == 1)
            return false;
        bool is_gap = starts_with_gap(s);
        if (is_gap && gap >= 0)
            return false;
        if (is_gap)
            gap = (int)n;
        s = vg_slice(s.p + 1 + is_gap, s.n - 1 - is_gap);
    }
    return s.n == 0 && widen(ip->b, n, gap);
}

bool vg_ip_parse(struct vg_slice text, struct vg_ip *ret)
{
    *ret = (struct vg_ip){.is_strict = true};
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == ':')
            return parse_v6(text, ret);
        if (text.p[i] != '.')
            continue;
        ret->b[10] = ret->b[11] = 0xff;
        ret->is_v4 = true;
        return parse_v4(text, ret->b + 12, &ret->is_strict);
    }
    return false;
}

bool vg_ip_is_mapped(const struct vg_ip *ip)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    return !ip->is_v4 && memcmp(ip->b, mapped, sizeof mapped) == 0;
}

/* NULL: nothing. */
static const char *wrong_with(struct vg_slice text)
{
    struct vg_ip ip;
    if (!vg_ip_parse(text, &ip))
        return "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
    if (!ip.is_strict)
        return "must not have leading 0s";
    return vg_ip_is_mapped(&ip) ? "must not be an IPv4-mapped IPv6 address" : NULL;
}

bool vg_text_is_among(struct vg_slice text, const struct vg_json *list)
{
    if (!list || !vg_json_is(list, VG_JSON_ARRAY))
        return false;
    VG_JSON_FOREACH_ITEM (it, list)
        if (vg_slice_eq(vg_json_text(it), text))
            return true;
    return false;
}

bool vg_check_ip_or_old(struct vg_check *c, const struct vg_at *at, const struct vg_json *before)
{
    const char *why = wrong_with(vg_at_text(at));
    if (!why || (!vg_field_errors_is_full(c->errors) && vg_text_is_among(vg_at_text(at), before)))
        return true;
    vg_bad_text(c, at, "%s", why);
    return false;
}

bool vg_check_ip(struct vg_check *c, const struct vg_at *at)
{
    return vg_check_ip_or_old(c, at, NULL);
}

bool vg_check_ip_canonical(struct vg_check *c, const struct vg_at *at)
{
    struct vg_ip ip;
    char room[VG_IP_TEXT_MAX];
    if (!vg_check_ip(c, at))
        return false;
    (void)vg_ip_parse(vg_at_text(at), &ip);
    struct vg_slice text = vg_ip_text(&ip, room);
    if (vg_slice_eq(text, vg_at_text(at)))
        return true;
    vg_bad_text(c, at, "must be in canonical form (\"%.*s\")", VG_SLICE_ARG(text));
    return false;
}

bool vg_check_endpoint_ip(struct vg_check *c, const struct vg_at *at)
{
    static const uint8_t zero[16];
    struct vg_ip ip;
    size_t before = c->errors->n;
    if (!vg_ip_parse(vg_at_text(at), &ip)) {
        vg_bad_text(c, at, "must be a valid IP address");
        return false;
    }
    bool is_v4 = vg_ip_means_v4(&ip);
    const uint8_t *b = is_v4 ? ip.b + 12 : ip.b;
    if (memcmp(b, zero, is_v4 ? 4 : 16) == 0)
        vg_bad_text(c, at, "may not be unspecified (%.*s)", VG_SLICE_ARG(vg_at_text(at)));
    if (is_v4 ? b[0] == 127 : memcmp(b, zero, 15) == 0 && b[15] == 1)
        vg_bad_text(c, at, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
    if (is_v4 ? b[0] == 169 && b[1] == 254 : b[0] == 0xfe && (b[1] & 0xc0) == 0x80)
        vg_bad_text(c, at, "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    if (is_v4 ? b[0] == 224 && b[1] == 0 && b[2] == 0 : b[0] == 0xff && (b[1] & 0x0f) == 0x02)
        vg_bad_text(c, at,
                    "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
    return c->errors->n == before;
}

void vg_caution_ip(struct vg_check *c, const struct vg_at *at)
{
    struct vg_ip ip;
    char room[VG_IP_TEXT_MAX];
    struct vg_slice given = vg_at_text(at);
    if (!vg_ip_parse(given, &ip))
        return;
    struct vg_slice text = vg_ip_text(&ip, room);
    if (!ip.is_strict || vg_ip_is_mapped(&ip))
        vg_caution_at(c, at, "non-standard IP address \"%.*s\" is invalid: use \"%.*s\"",
                      VG_SLICE_ARG(given), VG_SLICE_ARG(text));
    else if (!ip.is_v4 && !vg_slice_eq(text, given))
        vg_caution_at(c, at,
                      "IPv6 address \"%.*s\" should be in RFC 5952 canonical format (\"%.*s\")",
                      VG_SLICE_ARG(given), VG_SLICE_ARG(text));
}

struct vg_slice vg_ip_text(const struct vg_ip *ip, char room[VG_IP_TEXT_MAX])
{
    bool is_v4 = ip->is_v4 || vg_ip_is_mapped(ip); /* Go prints both with dots */
    const char *p =
        inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? ip->b + 12 : ip->b, room, VG_IP_TEXT_MAX);
    return p ? vg_slice_str(p) : VG_SLICE_LIT("");
}
