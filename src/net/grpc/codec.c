/* codec.c - see codec.h. */
#include "codec.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>

#include "msg.h"

/* ---- frames ---- */

void vg_grpc_frames_done(struct vg_grpc_frames *f)
{
    vg_buf_done(&f->part);
}

static void take(struct vg_slice *in, size_t n)
{
    in->p += n;
    in->n -= n;
}

/* 1: the prefix is whole. */
static int step_prefix(struct vg_grpc_frames *f, struct vg_slice *in)
{
    while (f->n_prefix < VG_GRPC_PREFIX && in->n) {
        f->prefix[f->n_prefix++] = (uint8_t)*in->p;
        take(in, 1);
    }
    if (f->n_prefix < VG_GRPC_PREFIX)
        return 0;
    if (f->prefix[0] != 0)
        return f->prefix[0] == 1 ? VIGIL_E_UNSUPPORTED : VIGIL_E_INVALID;
    f->length = 0;
    for (int i = 1; i < VG_GRPC_PREFIX; i++)
        f->length = f->length << 8 | f->prefix[i];
    return f->length > f->max ? VIGIL_E_TOO_LARGE : 1;
}

static int add_part(struct vg_grpc_frames *f, struct vg_slice *in)
{
    size_t n = VG_MIN(f->length - f->part.n, in->n);
    int r = 0;
    if (f->part.n == 0)
        r = vg_buf_reserve(&f->part, VG_MIN(f->length, VG_GRPC_ROOM_AHEAD));
    if (r == 0)
        r = vg_buf_append(&f->part, in->p, n);
    take(in, n);
    return r;
}

int vg_grpc_frames_step(struct vg_grpc_frames *f, struct vg_slice *in, struct vg_slice *ret_message)
{
    if (f->is_out) {
        f->is_out = false;
        vg_buf_clear(&f->part);
    }
    int r = f->n_prefix < VG_GRPC_PREFIX ? step_prefix(f, in) : 1;
    if (r <= 0)
        return r;
    if (f->part.n == 0 && in->n >= f->length) {
        *ret_message = vg_slice(in->p, f->length);
        take(in, f->length);
    } else {
        r = add_part(f, in);
        if (r < 0 || f->part.n < f->length)
            return r;
        f->is_out = true;
        *ret_message = vg_buf_slice(&f->part);
    }
    f->n_prefix = 0;
    return 1;
}

int vg_grpc_frames_keep(struct vg_grpc_frames *f, struct vg_slice message, struct vg_buf *ret)
{
    vg_buf_done(ret);
    if (f->is_out) {
        *ret = f->part;
        f->part = (struct vg_buf){0};
        f->is_out = false;
        return 0;
    }
    return vg_buf_append_slice(ret, message);
}

/* ---- heads ---- */

bool vg_grpc_is_content_type(struct vg_slice value)
{
    struct vg_slice type = VG_SLICE_LIT("application/grpc");
    if (!vg_slice_has_prefix(value, type))
        return false;
    return value.n == type.n || memchr("+;", value.p[type.n], 2) != NULL;
}

enum vg_grpc_code vg_grpc_read_status(struct vg_slice value)
{
    unsigned n = 0;
    if (value.n == 0 || value.n > 9)
        return VG_GRPC_UNKNOWN;
    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] < '0' || value.p[i] > '9')
            return VG_GRPC_UNKNOWN;
        n = n * 10 + (unsigned)(value.p[i] - '0');
    }
    return n <= VG_GRPC_UNAUTHENTICATED ? (enum vg_grpc_code)n : VG_GRPC_UNKNOWN;
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void vg_grpc_read_message(struct vg_slice value, char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < value.n && n + 1 < size; i++) {
        char c = value.p[i];
        if (c == '%' && value.n - i > 2 && hex(value.p[i + 1]) >= 0 && hex(value.p[i + 2]) >= 0) {
            c = (char)(hex(value.p[i + 1]) * 16 + hex(value.p[i + 2]));
            i += 2;
        }
        out[n++] = (unsigned char)c < 0x20 || c == 0x7f ? '?' : c;
    }
    out[n] = 0;
}

enum vg_grpc_code vg_grpc_code_of_http(int status)
{
    switch (status) {
    case 400:
        return VG_GRPC_INTERNAL;
    case 401:
        return VG_GRPC_UNAUTHENTICATED;
    case 403:
        return VG_GRPC_PERMISSION_DENIED;
    case 404:
        return VG_GRPC_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return VG_GRPC_UNAVAILABLE;
    default:
        return VG_GRPC_UNKNOWN;
    }
}

enum vg_grpc_code vg_grpc_code_of_reset(uint32_t error)
{
    switch (error) {
    case NGHTTP2_REFUSED_STREAM:
        return VG_GRPC_UNAVAILABLE;
    case NGHTTP2_CANCEL:
        return VG_GRPC_CANCELLED;
    case NGHTTP2_ENHANCE_YOUR_CALM:
        return VG_GRPC_RESOURCE_EXHAUSTED;
    case NGHTTP2_INADEQUATE_SECURITY:
        return VG_GRPC_PERMISSION_DENIED;
    default:
        return VG_GRPC_INTERNAL;
    }
}

struct vg_slice vg_grpc_write_timeout(uint64_t ns, char out[VG_GRPC_TIMEOUT_SIZE])
{
    static const struct {
        char unit;
        uint64_t next; /* how many make one of the next unit */
    } units[] = {{'n', 1000}, {'u', 1000}, {'m', 1000}, {'S', 60}, {'M', 60}, {'H', 0}};
    size_t i = 0;
    for (; ns > 99999999 && units[i].next; i++)
        ns /= units[i].next;
    int n = snprintf(out, VG_GRPC_TIMEOUT_SIZE, "%llu%c",
                     (unsigned long long)VG_MIN(ns, UINT64_C(99999999)), units[i].unit);
    return vg_slice(out, (size_t)n);
}

const char *vg_grpc_code_name(enum vg_grpc_code code)
{
    static const char *const names[] = {"OK",
                                        "CANCELLED",
                                        "UNKNOWN",
                                        "INVALID_ARGUMENT",
                                        "DEADLINE_EXCEEDED",
                                        "NOT_FOUND",
                                        "ALREADY_EXISTS",
                                        "PERMISSION_DENIED",
                                        "RESOURCE_EXHAUSTED",
                                        "FAILED_PRECONDITION",
                                        "ABORTED",
                                        "OUT_OF_RANGE",
                                        "UNIMPLEMENTED",
                                        "INTERNAL",
                                        "UNAVAILABLE",
                                        "DATA_LOSS",
                                        "UNAUTHENTICATED"};
    return (size_t)code < VG_ARRAY_LEN(names) ? names[code] : "UNKNOWN";
}
