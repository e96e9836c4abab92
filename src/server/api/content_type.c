/* content_type.c - in what form a body was sent. */
#include "status_int.h"
#include "write.h"

#define UNKNOWN_FORMAT                                                                             \
    "the body of the request was in an unknown format - accepted media types include: "            \
    "application/json, application/yaml, application/vnd.kubernetes.protobuf"

static bool is_token(struct vg_slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= ' ' || s.p[i] >= 0x7f || strchr("()<>@,;:\\\"/[]?=", s.p[i]))
            return false;
    return s.n > 0;
}

struct vg_slice vg_trim(struct vg_slice s)
{
    while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = vg_slice(s.p + 1, s.n - 1);
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

struct vg_slice vg_cut(struct vg_slice *rest, char c)
{
    const char *at = rest->n ? memchr(rest->p, c, rest->n) : NULL;
    size_t n = at ? (size_t)(at - rest->p) : rest->n, used = at ? n + 1 : n;
    struct vg_slice head = vg_slice(rest->p, n);
    *rest = vg_slice(rest->p + used, rest->n - used);
    return head;
}

/* name=token or name="text"; a trailing semicolon is harmless. */
static bool is_parameter(struct vg_slice s)
{
    struct vg_slice value = s, name = vg_trim(vg_cut(&value, '='));
    value = vg_trim(value);
    bool is_quoted = value.n >= 2 && value.p[0] == '"' && value.p[value.n - 1] == '"';
    return is_token(name) && (is_quoted || is_token(value));
}

bool vg_media_type_parse(struct vg_slice text, char buf[VG_MEDIA_TYPE_MAX], struct vg_slice *ret)
{
    struct vg_slice rest = text, type = vg_trim(vg_cut(&rest, ';')), sub = type;
    struct vg_slice main = vg_cut(&sub, '/');
    if (!is_token(main) || !is_token(sub) || type.n >= VG_MEDIA_TYPE_MAX)
        return false;
    while (rest.n) {
        struct vg_slice p = vg_trim(vg_cut(&rest, ';'));
        if (p.n == 0 ? rest.n > 0 : !is_parameter(p))
            return false;
    }
    for (size_t i = 0; i < type.n; i++)
        buf[i] = (char)(type.p[i] >= 'A' && type.p[i] <= 'Z' ? type.p[i] + 32 : type.p[i]);
    *ret = vg_slice(buf, type.n);
    return true;
}

static int find_format(const struct vg_http_exchange *x, enum vg_body_format *ret)
{
    char buf[VG_MEDIA_TYPE_MAX];
    struct vg_slice text = vg_http_field(x, "content-type"), type;
    *ret = VG_BODY_JSON;
    if (text.n == 0)
        return 0;
    if (!vg_media_type_parse(text, buf, &type))
        return VIGIL_E_UNSUPPORTED;
    if (vg_slice_eq(type, VG_SLICE_LIT("application/json")))
        return 0;
    *ret = VG_BODY_YAML;
    if (vg_slice_eq(type, VG_SLICE_LIT("application/yaml")))
        return 0;
    *ret = VG_BODY_PROTOBUF;
    bool is_known = vg_slice_eq(type, VG_SLICE_LIT("application/vnd.kubernetes.protobuf"));
    return is_known ? 0 : VIGIL_E_UNSUPPORTED;
}

int vg_body_format(struct vg_api_call *call, enum vg_body_format *ret,
                   struct vg_api_status *ret_status)
{
    if (find_format(call->x, ret) == 0)
        return 0;
    vg_status_unsupported_media(&call->ask->arena, ret_status, UNKNOWN_FORMAT);
    return VIGIL_E_INVALID;
}
