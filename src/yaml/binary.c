/* binary.c - !!binary scalars, and values shown in messages. */
#include <errno.h>

#include "base/base64.h"
#include "base/utf8.h"
#include "decode_int.h"
#include "json/write.h"

/* Bytes as text; each byte that is none becomes U+FFFD. out holds 3 * n bytes. */
static size_t make_utf8(struct vg_slice bytes, char *out)
{
    size_t n = 0;
    while (bytes.n) {
        uint32_t code;
        size_t len = vg_utf8_next(bytes, &code);
        const char *from = len ? bytes.p : "\xEF\xBF\xBD";
        size_t put = len ? len : 3, skip = len ? len : 1;
        memcpy(out + n, from, put);
        n += put;
        bytes = vg_slice(bytes.p + skip, bytes.n - skip);
    }
    return n;
}

int vg_yaml_decode_binary(struct vg_arena *arena, struct vg_slice text, struct vg_json *ret,
                          struct vg_status *reterr_status)
{
    char *raw = vg_arena_alloc(arena, text.n + 1, 1);
    if (!raw)
        return -ENOMEM;
    size_t n;
    if (!vg_base64_decode_lines(text, raw, &n))
        return vg_fail(reterr_status, VIGIL_E_JSON_SYNTAX,
                       "yaml: !!binary value contains invalid base64 data");
    struct vg_slice bytes = vg_slice(raw, n);
    if (!vg_utf8_is_valid(bytes)) {
        char *fixed = vg_arena_alloc(arena, 3 * bytes.n, 1);
        if (!fixed)
            return -ENOMEM;
        bytes = vg_slice(fixed, make_utf8(bytes, fixed));
    }
    *ret = vg_json_string_ref(bytes);
    return 0;
}

/* ---- showing ---- */

static int show_scalar(struct vg_buf *out, const struct vg_json *v)
{
    switch ((enum vg_json_type)v->type) {
    case VG_JSON_NULL:
        return vg_buf_printf(out, "interface {}(nil)");
    case VG_JSON_BOOL:
        return vg_buf_printf(out, "%s", vg_json_is_true(v) ? "true" : "false");
    case VG_JSON_STRING:
        return vg_json_write_string(out, vg_json_text(v), 0);
    default:
        return vg_buf_append_slice(out, vg_json_text(v));
    }
}

/* What stands before a value: the comma, and the key in an object. */
static int show_place(struct vg_buf *out, const struct vg_json_walk *w)
{
    int r = w->index ? vg_buf_printf(out, ", ") : 0;
    if (r < 0 || !w->member)
        return r;
    r = vg_json_write_string(out, vg_json_key(w->member), 0);
    return r < 0 ? r : vg_buf_append_byte(out, ':');
}

static int show_node(struct vg_buf *out, const struct vg_json_walk *w)
{
    if (w->leaving)
        return vg_buf_append_byte(out, '}');
    int r = show_place(out, w);
    if (r < 0)
        return r;
    if (vg_json_is(w->node, VG_JSON_OBJECT))
        return vg_buf_printf(out, "map[interface {}]interface {}{");
    if (vg_json_is(w->node, VG_JSON_ARRAY))
        return vg_buf_printf(out, "[]interface {}{");
    return show_scalar(out, w->node);
}

int vg_yaml_show(struct vg_buf *out, const struct vg_json *v)
{
    VG_AUTO(json_walk) w;
    vg_json_walk_init(&w, v);
    int r;
    while ((r = vg_json_walk_next(&w)) > 0) {
        r = show_node(out, &w);
        if (r < 0)
            return r;
    }
    return r;
}
