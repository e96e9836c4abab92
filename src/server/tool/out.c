/* out.c - see out.h. */
#include "out.h"

#include <errno.h>
#include <inttypes.h>

#include "base/base64.h"
#include "base/utf8.h"
#include "safe_text.h"

void vg_out_init(struct vg_out *o, const struct vg_options *options)
{
    *o = (struct vg_out){.is_json = options->is_json, .is_pretty = options->is_pretty};
}

void vg_out_done(struct vg_out *o)
{
    vg_buf_done(&o->text);
}

static void keep(struct vg_out *o, int err)
{
    if (err < 0 && o->err == 0)
        o->err = err;
}

/* ---- writing ---- */

/* JSON has no bytes of its own that are unsafe: those that are come from strings, where an escape
 * means the same. */
static void make_json_safe(struct vg_out *o)
{
    struct vg_buf safe = {0};
    int r = vg_safe_append(&safe, vg_buf_slice(&o->text), VG_SAFE_JSON);
    keep(o, r);
    vg_buf_done(&o->text);
    o->text = safe;
}

int vg_out_flush(struct vg_out *o, struct vg_status *reterr_status)
{
    if (o->is_json)
        make_json_safe(o);
    if (o->err == 0 && o->text.n) {
        size_t n = fwrite(o->text.p, 1, o->text.n, stdout);
        if (n < o->text.n || fflush(stdout) != 0)
            o->err = errno ? -errno : -EIO;
    }
    vg_buf_clear(&o->text);
    if (o->err < 0)
        return vg_fail(reterr_status, o->err, "cannot write the answer: %s", vg_err_text(o->err));
    return 0;
}

void vg_out_begin(struct vg_out *o)
{
    if (!o->is_json)
        return;
    vg_json_writer_init(&o->json, &o->text, o->is_pretty ? VG_JSON_INDENT : 0);
    vg_json_put_begin_object(&o->json);
}

int vg_out_end(struct vg_out *o, struct vg_status *reterr_status)
{
    if (o->is_json) {
        vg_json_put_end_object(&o->json);
        keep(o, vg_json_writer_end(&o->json));
        keep(o, vg_buf_append_byte(&o->text, '\n'));
    }
    return vg_out_flush(o, reterr_status);
}

/* ---- facts ---- */

static void put_name(struct vg_out *o, const char *name)
{
    vg_json_put_key(&o->json, vg_slice_str(name));
}

static void put_label(struct vg_out *o, const char *label)
{
    vg_out_printf(o, "%-20s", label);
}

void vg_out_uint(struct vg_out *o, const char *name, const char *label, uint64_t n)
{
    if (o->is_json) {
        put_name(o, name);
        vg_json_put_uint(&o->json, n);
        return;
    }
    put_label(o, label);
    vg_out_printf(o, "%" PRIu64 "\n", n);
}

void vg_out_string(struct vg_out *o, const char *name, const char *label, struct vg_slice s)
{
    if (o->is_json) {
        vg_out_json_bytes(o, name, s);
        return;
    }
    put_label(o, label);
    vg_out_escaped(o, s);
    vg_out_printf(o, "\n");
}

void vg_out_seconds(struct vg_out *o, const char *name, const char *label, uint64_t ns)
{
    if (o->is_json) {
        put_name(o, name);
        vg_json_put_double(&o->json, (double)ns / 1e9);
        return;
    }
    put_label(o, label);
    vg_out_printf(o, "%.1f ms\n", (double)ns / 1e6);
}

const char *vg_size_text(uint64_t bytes, char text[VG_SIZE_TEXT_SIZE])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double n = (double)bytes;
    size_t i = 0;
    for (; n >= 1024 && i + 1 < VG_ARRAY_LEN(units); i++)
        n /= 1024;
    snprintf(text, VG_SIZE_TEXT_SIZE, "%.*f %s", i ? 1 : 0, n, units[i]);
    return text;
}

void vg_out_bytes(struct vg_out *o, const char *name, const char *label, uint64_t bytes)
{
    char text[VG_SIZE_TEXT_SIZE];
    if (o->is_json) {
        vg_out_uint(o, name, label, bytes);
        return;
    }
    put_label(o, label);
    vg_out_printf(o, "%s\n", vg_size_text(bytes, text));
}

/* ---- JSON ---- */

void vg_out_json_bytes(struct vg_out *o, const char *name, struct vg_slice s)
{
    if (vg_utf8_is_valid(s)) {
        vg_json_put_member(&o->json, name, s);
        return;
    }
    VG_AUTO(buf) base64 = {0};
    char long_name[64];
    snprintf(long_name, sizeof long_name, "%sBase64", name);
    keep(o, vg_base64_append(&base64, s));
    vg_json_put_member(&o->json, long_name, vg_buf_slice(&base64));
}

static void put_time(struct vg_out *o, const char *name, int64_t wall_ms)
{
    char text[VG_TIME_TEXT_SIZE];
    vg_time_text(wall_ms, text);
    vg_json_put_member(&o->json, name, vg_slice_str(text));
}

static int parse_json(struct vg_arena *arena, struct vg_slice text, struct vg_json **ret_root)
{
    return vg_json_parse(arena, text, NULL, ret_root, NULL);
}

static void put_json_value(struct vg_out *o, struct vg_slice value)
{
    struct vg_arena arena = {0};
    struct vg_json *root;
    if (o->is_pretty && parse_json(&arena, value, &root) == 0) {
        put_name(o, "value");
        vg_json_put_value(&o->json, root);
    } else {
        vg_out_json_bytes(o, "value", value);
    }
    vg_arena_done(&arena);
}

void vg_out_json_record(struct vg_out *o, const struct vg_rec *rec, bool has_value)
{
    vg_out_json_bytes(o, "key", vg_rec_key(rec));
    vg_out_uint(o, "revision", "", rec->rev);
    if (!vg_rec_is_delete(rec)) {
        vg_out_uint(o, "createRevision", "", rec->create_rev);
        vg_out_uint(o, "version", "", rec->version);
    }
    if (!has_value)
        return;
    put_time(o, "modified", rec->time_ms);
    if (rec->expires_ms)
        put_time(o, "expires", rec->expires_ms);
    if (!vg_rec_is_delete(rec))
        put_json_value(o, vg_rec_value(rec));
}

/* ---- text ---- */

void vg_out_printf(struct vg_out *o, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    keep(o, vg_buf_vprintf(&o->text, fmt, ap));
    va_end(ap);
}

void vg_out_escaped(struct vg_out *o, struct vg_slice s)
{
    keep(o, vg_safe_append(&o->text, s, VG_SAFE_LINE));
}

/* The value laid out, if that was asked for and it is JSON; else as it is. */
static int lay_out(const struct vg_out *o, struct vg_slice value, struct vg_buf *to)
{
    struct vg_arena arena = {0};
    struct vg_json *root;
    int r = VIGIL_E_JSON_SYNTAX;
    if (o->is_pretty)
        r = parse_json(&arena, value, &root);
    if (r == 0)
        r = vg_json_write(to, root, VG_JSON_INDENT);
    else
        r = vg_buf_append_slice(to, value);
    vg_arena_done(&arena);
    return r;
}

void vg_out_value(struct vg_out *o, struct vg_slice value, bool is_exact)
{
    VG_AUTO(buf) shown = {0};
    keep(o, lay_out(o, value, &shown));
    if (is_exact) {
        keep(o, vg_buf_append_slice(&o->text, vg_buf_slice(&shown)));
        if (o->is_pretty)
            vg_out_printf(o, "\n");
        return;
    }
    keep(o, vg_safe_append(&o->text, vg_buf_slice(&shown), VG_SAFE_DISPLAY));
    vg_out_printf(o, "\n");
}
