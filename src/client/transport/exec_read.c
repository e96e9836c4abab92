/* exec_read.c - what a program that gives credentials has printed: an ExecCredential. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "exec.h"

/* n digits at p, or -1. */
static int digits(struct vg_slice s, size_t at, size_t n)
{
    int v = 0;
    if (at + n > s.n)
        return -1;
    for (size_t i = at; i < at + n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return -1;
        v = v * 10 + (s.p[i] - '0');
    }
    return v;
}

/* "Z" or "+hh:mm" from `at` to the end: minutes east of Greenwich. */
static int zone(struct vg_slice s, size_t at, int *ret)
{
    if (at + 1 == s.n && (s.p[at] == 'Z' || s.p[at] == 'z')) {
        *ret = 0;
        return 0;
    }
    if (at + 6 != s.n || (s.p[at] != '+' && s.p[at] != '-') || s.p[at + 3] != ':')
        return VIGIL_E_INVALID;
    int h = digits(s, at + 1, 2), m = digits(s, at + 4, 2);
    if (h < 0 || m < 0)
        return VIGIL_E_INVALID;
    *ret = (s.p[at] == '-' ? -1 : 1) * (h * 60 + m);
    return 0;
}

int vg_exec_time(struct vg_slice s, int64_t *ret_ms)
{
    struct tm tm = {.tm_year = digits(s, 0, 4) - 1900,
                    .tm_mon = digits(s, 5, 2) - 1,
                    .tm_mday = digits(s, 8, 2),
                    .tm_hour = digits(s, 11, 2),
                    .tm_min = digits(s, 14, 2),
                    .tm_sec = digits(s, 17, 2)};
    if (s.n < 20 || tm.tm_year < -1900 || tm.tm_mon < 0 || tm.tm_mon > 11 || tm.tm_mday < 1 ||
        tm.tm_hour < 0 || tm.tm_min < 0 || tm.tm_sec < 0)
        return VIGIL_E_INVALID;
    size_t at = 19;
    if (s.p[at] == '.')
        while (++at < s.n && s.p[at] >= '0' && s.p[at] <= '9')
            ;
    int east = 0;
    if (at >= s.n || zone(s, at, &east) < 0)
        return VIGIL_E_INVALID;
    *ret_ms = ((int64_t)timegm(&tm) - east * 60) * 1000;
    return 0;
}

static int wrong(struct vg_exec_result *ret, const struct vigil_config *c, const char *what)
{
    return vg_error_set(&ret->err, VIGIL_E_UNAUTHORIZED,
                        "%s, which should give credentials, printed %s", c->exec.command, what);
}

static int copy(struct vg_exec_result *ret, const struct vg_json *v, struct vg_slice *to)
{
    struct vg_slice s = vg_json_text(v);
    const char *p = NULL;
    if (!s.n)
        return 0;
    int r = vg_config_copy(&ret->arena, s, &p);
    if (r == 0)
        *to = vg_slice(p, s.n);
    return r;
}

static int read_credential(const struct vigil_config *c, const struct vg_json *root,
                           struct vg_exec_result *ret)
{
    const struct vg_json *status = vg_json_get_str(root, "status");
    if (!vg_slice_eq(vg_json_text(vg_json_get_str(root, "kind")), VG_SLICE_LIT("ExecCredential")))
        return wrong(ret, c, "something else than an ExecCredential");
    if (!vg_slice_eq(vg_json_text(vg_json_get_str(root, "apiVersion")),
                     vg_slice_str(c->exec.api_version)))
        return wrong(ret, c,
                     "an ExecCredential of another apiVersion than the kubeconfig asks for");
    if (!vg_json_is(status, VG_JSON_OBJECT))
        return wrong(ret, c, "an ExecCredential without status");
    struct vg_slice token = {NULL, 0};
    if (copy(ret, vg_json_get_str(status, "token"), &token) < 0 ||
        copy(ret, vg_json_get_str(status, "clientCertificateData"), &ret->cert) < 0 ||
        copy(ret, vg_json_get_str(status, "clientKeyData"), &ret->key) < 0)
        return vg_error_set(&ret->err, VIGIL_E_MEMORY, "out of memory");
    if (!vg_is_header_text(token.p))
        return wrong(ret, c, "a token with a line break or another control character");
    ret->token = token.p;
    if (!token.p && !ret->cert.p)
        return wrong(ret, c, "an ExecCredential with neither token nor certificate");
    if (!ret->cert.p != !ret->key.p)
        return wrong(ret, c, "a certificate without key, or a key without certificate");
    const struct vg_json *expires = vg_json_get_str(status, "expirationTimestamp");
    if (vg_json_is(expires, VG_JSON_STRING) &&
        vg_exec_time(vg_json_text(expires), &ret->expires_ms) < 0)
        return wrong(ret, c, "an expirationTimestamp that is no RFC 3339 time");
    return 0;
}

void vg_exec_read(const struct vigil_config *c, struct vg_slice output, struct vg_exec_result *ret)
{
    VG_AUTO(arena) arena = {0};
    struct vg_json *root = NULL;
    int r = vg_json_parse(&arena, output, NULL, &root, NULL);
    if (r == -ENOMEM)
        vg_error_set(&ret->err, r, "out of memory");
    else if (r < 0)
        wrong(ret, c, "something that is not JSON");
    else
        (void)read_credential(c, root, ret); /* the error, if any, lies in ret */
}
