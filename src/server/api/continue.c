/* continue.c - continue tokens there and back. */
#include "continue.h"

#include <errno.h>

#include "status_int.h"
#include "json/json.h"
#include "json/write.h"

#define NOT_VALID "continue key is not valid"
/* A key of VG_OBJ_KEY_MAX bytes, each escaped, as base64: what is longer cannot be ours. */
#define TOKEN_MAX (8u * (VG_OBJ_KEY_MAX + 64u))

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* ---- base64url without padding ---- */

static size_t encode64(struct vg_slice in, char *out)
{
    size_t n = 0;
    for (size_t i = 0; i < in.n; i += 3) {
        size_t left = VG_MIN(in.n - i, (size_t)3);
        uint32_t bits = (uint32_t)(uint8_t)in.p[i] << 16;
        bits |= left > 1 ? (uint32_t)(uint8_t)in.p[i + 1] << 8 : 0;
        bits |= left > 2 ? (uint32_t)(uint8_t)in.p[i + 2] : 0;
        for (size_t k = 0; k <= left; k++)
            out[n++] = alphabet[bits >> (18 - 6 * k) & 63];
    }
    return n;
}

/* Line breaks are skipped and stray bits at the end ignored, as by Go. `out` has room for three
 * quarters of the text. 0, or VIGIL_E_INVALID with the offset that Go names. */
static int decode64(struct vg_slice in, char *out, size_t *ret_n, size_t *reterr_at)
{
    uint32_t bits = 0;
    size_t in_quantum = 0, n = 0;
    for (size_t i = 0; i < in.n; i++) {
        char c = in.p[i];
        const char *found = c ? strchr(alphabet, c) : NULL;
        if (c == '\n' || c == '\r')
            continue;
        if (!found) {
            *reterr_at = i;
            return VIGIL_E_INVALID;
        }
        bits = bits << 6 | (uint32_t)(found - alphabet);
        if (++in_quantum < 4)
            continue;
        out[n++] = (char)(bits >> 16);
        out[n++] = (char)(bits >> 8);
        out[n++] = (char)bits;
        in_quantum = 0;
    }
    if (in_quantum == 1) {
        *reterr_at = in.n - 1;
        return VIGIL_E_INVALID;
    }
    if (in_quantum >= 2)
        out[n++] = (char)(bits >> (in_quantum == 2 ? 4 : 10));
    if (in_quantum == 3)
        out[n++] = (char)(bits >> 2);
    *ret_n = n;
    return 0;
}

/* ---- tokens ---- */

int vg_continue_encode(struct vg_arena *a, int64_t rev, struct vg_slice root, struct vg_slice start,
                       struct vg_slice *ret_token)
{
    VG_AUTO(buf) json = {0};
    struct vg_json_writer w;
    vg_json_writer_init(&w, &json, VG_JSON_ESCAPE_HTML);
    vg_json_put_begin_object(&w);
    vg_json_put_member(&w, "v", VG_SLICE_LIT("meta.k8s.io/v1"));
    vg_json_put_key(&w, VG_SLICE_LIT("rv"));
    vg_json_put_int(&w, rev);
    vg_json_put_member(&w, "start", vg_obj_key_to_continue(root, start));
    vg_json_put_end_object(&w);
    if (vg_json_writer_end(&w) < 0)
        return -ENOMEM;
    char *token = vg_arena_alloc(a, (json.n + 2) / 3 * 4, 1);
    if (!token)
        return -ENOMEM;
    *ret_token = vg_slice(token, encode64(vg_buf_slice(&json), token));
    return 0;
}

static int refuse(struct vg_arena *a, struct vg_slice *reterr_why, const char *fmt, ...)
    VG_PRINTF(3, 4);
static int refuse(struct vg_arena *a, struct vg_slice *reterr_why, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int r = vg_arena_printf_v(a, reterr_why, fmt, ap);
    va_end(ap);
    return r < 0 ? -ENOMEM : VIGIL_E_INVALID;
}

static int read_fields(struct vg_arena *a, const struct vg_json *doc, struct vg_slice root,
                       struct vg_continue *ret, struct vg_slice *reterr_why)
{
    struct vg_slice version = vg_json_text(vg_json_get_str(doc, "v"));
    struct vg_slice start = vg_json_text(vg_json_get_str(doc, "start"));
    const struct vg_json *rv = vg_json_get_str(doc, "rv");
    int64_t rev = 0;
    if (rv && rv->type != VG_JSON_NULL && vg_json_to_int64(rv, &rev) < 0)
        return refuse(a, reterr_why, NOT_VALID ": the revision is not an integer");
    if (!vg_slice_eq(version, VG_SLICE_LIT("meta.k8s.io/v1")))
        return refuse(a, reterr_why,
                      NOT_VALID ": server does not recognize this encoded version %.*s",
                      VG_SLICE_ARG(version));
    if (rev == 0)
        return refuse(a, reterr_why,
                      NOT_VALID
                      ": incorrect encoded start resourceVersion (version meta.k8s.io/v1)");
    if (start.n == 0)
        return refuse(a, reterr_why,
                      NOT_VALID ": encoded start key empty (version meta.k8s.io/v1)");
    struct vg_slice rest = start;
    if (rest.p[0] == '/')
        rest = vg_slice(rest.p + 1, rest.n - 1);
    if (rev < -1 || vg_obj_key_from_continue(root, rest, &ret->start) < 0)
        return refuse(a, reterr_why, NOT_VALID ": %.*s", VG_SLICE_ARG(start));
    ret->rev = rev;
    return 0;
}

int vg_continue_decode(struct vg_arena *a, struct vg_slice token, struct vg_slice root,
                       struct vg_continue *ret, struct vg_slice *reterr_why)
{
    char text[TOKEN_MAX];
    size_t n, at;
    if (token.n > TOKEN_MAX)
        return refuse(a, reterr_why, NOT_VALID ": it is longer than any that was given out");
    if (decode64(token, text, &n, &at) < 0)
        return refuse(a, reterr_why, NOT_VALID ": illegal base64 data at input byte %zu", at);
    struct vg_json *doc;
    struct vg_status why;
    int r = vg_json_parse(a, vg_slice(text, n), NULL, &doc, &why);
    if (r == -ENOMEM)
        return r;
    if (r < 0)
        return refuse(a, reterr_why, NOT_VALID ": %s", why.message);
    if (!vg_json_is(doc, VG_JSON_OBJECT))
        return refuse(a, reterr_why, NOT_VALID ": it is no JSON object");
    return read_fields(a, doc, root, ret, reterr_why);
}
