/* respond.c - answers that are whole: heads, Status, texts; objects are in respond_object.c. An
 * exchange is answered once: what comes later, because the request timed out or the client left, is
 * dropped, and the verb is merely over. */
#include "respond.h"

#include <errno.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "gzip.h"
#include "respond_int.h"
#include "status_int.h"
#include "yaml/yaml.h"
#include "json/write.h"

/* ---- heads ---- */

/* Audit-Id, Cache-Control, Content-Type, Content-Encoding, Vary, ETag, Vary, Retry-After; what the
 * call adds; and warnings. */
#define EXTRA_MAX 8u
#define WARNINGS_MAX 16u
#define FIELDS_MAX (8u + EXTRA_MAX + WARNINGS_MAX)

struct fields {
    struct vg_http_field v[FIELDS_MAX];
    size_t n;
};

static void add(struct fields *f, const char *name, const char *value)
{
    f->v[f->n++] = (struct vg_http_field){vg_slice_str(name), vg_slice_str(value)};
}

/* ---- warnings ---- */

/* As the original: while all of them are short enough they leave whole, else each is cut, and those
 * that do not fit then are dropped. Characters, without quoting. */
#define WARNINGS_ALL_MAX 4096u
#define WARNING_CUT 256u

/* Where the first n_max characters end. */
static size_t cut_after(struct vg_slice text, size_t n_max, size_t *ret_n)
{
    uint32_t code;
    size_t at = 0;
    for (*ret_n = 0; at < text.n && *ret_n < n_max; ++*ret_n)
        at += VG_MAX(vg_utf8_next(vg_slice(text.p + at, text.n - at), &code), 1);
    return at;
}

/* As Go quotes a header's text: only the quote and the backslash need it. NULL: no memory. */
static const char *quote_warning(struct vg_arena *a, struct vg_slice text)
{
    VG_AUTO(buf) out = {0};
    int r = vg_buf_append(&out, "299 - \"", 7);
    for (size_t i = 0; r == 0 && i < text.n; i++) {
        char c = text.p[i];
        if (c == '"' || c == '\\')
            r = vg_buf_append_byte(&out, '\\');
        if (r == 0)
            r = vg_buf_append_byte(&out, (unsigned char)c < ' ' ? ' ' : c);
    }
    if (r == 0)
        r = vg_buf_append(&out, "\"", 2);
    return r == 0 ? vg_arena_copy(a, out.p, out.n) : NULL;
}

static void add_warnings(struct vg_api_call *call, struct fields *f)
{
    size_t total = 0, n;
    for (size_t i = 0; i < call->ask->n_warnings; i++) {
        (void)cut_after(vg_slice_str(call->ask->warnings[i]), WARNINGS_ALL_MAX + 1, &n);
        total += n;
    }
    size_t each = total > WARNINGS_ALL_MAX ? WARNING_CUT : WARNINGS_ALL_MAX;
    size_t room = WARNINGS_ALL_MAX;
    for (size_t i = 0; i < call->ask->n_warnings; i++) {
        struct vg_slice text = vg_slice_str(call->ask->warnings[i]);
        text.n = cut_after(text, each, &n);
        const char *quoted = n <= room ? quote_warning(&call->ask->arena, text) : NULL;
        if (!quoted)
            return;
        room -= n;
        add(f, "Warning", quoted);
    }
}

int vg_respond_head_opts(struct vg_api_call *call, const struct vg_head_opts *opts)
{
    if (call->is_closed || call->is_answered)
        return VIGIL_E_CANCELED;
    struct fields f = {.n = 0};
    char retry[16], id[VG_AUDIT_ID_SIZE];
    add(&f, "Audit-Id", vg_api_audit_id(call, id));
    add(&f, "Cache-Control", opts->cache_control ? opts->cache_control : "no-cache, private");
    if (opts->content_type)
        add(&f, "Content-Type", opts->content_type);
    if (opts->is_gzip) {
        add(&f, "Content-Encoding", "gzip");
        add(&f, "Vary", "Accept-Encoding");
    }
    if (opts->etag) {
        add(&f, "ETag", opts->etag);
        add(&f, "Vary", "Accept");
    }
    if (opts->retry_after_s) {
        snprintf(retry, sizeof retry, "%u", opts->retry_after_s);
        add(&f, "Retry-After", retry);
    }
    for (size_t i = 0; i < VG_MIN(call->ask->n_extra_fields, EXTRA_MAX); i++)
        f.v[f.n++] = call->ask->extra_fields[i];
    add_warnings(call, &f);
    struct vg_http_head head = {.status = opts->code,
                                .fields = f.v,
                                .n_fields = f.n,
                                .block = call->ask->block,
                                .length = opts->length,
                                .is_watch = opts->is_watch};
    call->is_answered = true;
    call->status_code = (uint16_t)opts->code;
    int r = vg_http_respond(call->x, &head);
    if (r == -ENOMEM)
        vg_http_abort(call->x);
    return r;
}

void vg_call_warn(struct vg_api_call *call, const char *fmt, ...)
{
    if (!call->ask->warnings)
        call->ask->warnings = vg_arena_array(&call->ask->arena, const char *, WARNINGS_MAX);
    if (!call->ask->warnings || call->ask->n_warnings == WARNINGS_MAX)
        return;
    VG_AUTO(buf) text = {0};
    va_list ap;
    va_start(ap, fmt);
    int r = vg_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    if (r == 0)
        r = vg_buf_append_byte(&text, '\0');
    /* A write that is tried again warns again; it is said once. */
    for (size_t i = 0; r == 0 && i < call->ask->n_warnings; i++)
        if (strcmp(call->ask->warnings[i], (const char *)text.p) == 0)
            return;
    const char *kept = r == 0 ? vg_arena_copy(&call->ask->arena, text.p, text.n) : NULL;
    if (kept)
        call->ask->warnings[call->ask->n_warnings++] = kept;
}

/* ---- bodies ---- */

void vg_respond_slices(struct vg_api_call *call, struct vg_head_opts *opts,
                       const struct vg_slice *v, size_t n, const struct vg_http_pin *pin)
{
    opts->length = 0;
    for (size_t i = 0; i < n; i++)
        opts->length += v[i].n;
    int r = vg_respond_head_opts(call, opts);
    if (r == 0 && n)
        r = vg_http_write(call->x, v, n, pin);
    if (r >= 0) {
        call->bytes_out += opts->length;
        vg_http_end(call->x);
    }
    if (!opts->is_early)
        vg_call_finish(call);
}

/* A buffer that slices may point into; a loop's own, so counting needs no atomics. */
struct block {
    uint32_t refs;
    struct vg_buf buf;
};

static void block_ref(const void *b)
{
    ((struct block *)(uintptr_t)b)->refs++;
}

static void block_unref(const void *b)
{
    struct block *block = (struct block *)(uintptr_t)b;
    if (--block->refs)
        return;
    vg_buf_done(&block->buf);
    vg_free(block);
}

/* ---- large bodies, compressed ---- */

/* In the call's arena. */
struct packing {
    struct vg_api_call *call;
    struct vg_head_opts opts;
    struct vg_buf body;
    struct vg_gzip *gzip;
};

static void unpack(void *arg)
{
    struct packing *p = arg;
    vg_buf_done(&p->body);
    vg_call_finish(p->call);
}

static void on_packed(void *arg, int err, struct vg_slice out)
{
    struct packing *p = arg;
    struct vg_gzip *gzip = vg_steal(p->gzip);
    p->opts.is_early = true; /* finished by unpack */
    if (err == 0)
        vg_respond_slices(p->call, &p->opts, &out, 1, NULL);
    else if (!p->call->is_closed)
        vg_http_abort(p->call->x);
    vg_gzip_free(gzip, unpack, p);
}

static void on_packing_closed(struct vg_api_call *call, int err)
{
    struct packing *p = call->state;
    (void)err;
    vg_gzip_free(vg_steal(p->gzip), unpack, p);
}

/* True: the body was taken and will be sent. */
static bool pack(struct vg_api_call *call, const struct vg_head_opts *opts, struct vg_buf *take)
{
    static const struct vg_api_op op = {.closed = on_packing_closed};
    struct packing *p = vg_arena_new(&call->ask->arena, struct packing);
    struct vg_slice body = vg_buf_slice(take);
    if (!p || call->is_closed || call->is_answered)
        return false;
    *p = (struct packing){.call = call, .opts = *opts, .body = *take};
    if (vg_gzip_new(call->loop->loop, on_packed, p, &p->gzip) < 0)
        return false;
    if (vg_gzip_put(p->gzip, &body, 1) < 0) {
        vg_gzip_free(p->gzip, NULL, NULL);
        return false;
    }
    *take = (struct vg_buf){0};
    p->opts.is_gzip = true;
    call->state = p;
    call->op = &op;
    vg_gzip_run(p->gzip, true);
    return true;
}

static void send_buf(struct vg_api_call *call, struct vg_head_opts *opts, struct vg_buf *take)
{
    bool is_large = take->n > VG_GZIP_MIN && call->ask->media.wants_gzip && !opts->is_early;
    if (is_large && pack(call, opts, take))
        return;
    struct block *b = vg_new(struct block);
    struct vg_slice body = vg_buf_slice(take);
    if (!b) { /* copied, then */
        vg_respond_slices(call, opts, &body, 1, NULL);
        vg_buf_done(take);
        return;
    }
    b->refs = 1;
    b->buf = *take;
    *take = (struct vg_buf){0};
    struct vg_http_pin pin = {b, block_ref, block_unref};
    vg_respond_slices(call, opts, &body, 1, &pin);
    block_unref(b);
}

static void give_up(struct vg_api_call *call)
{
    vg_call_finish(call); /* aborts what was not answered */
}

void vg_respond_unencodable(struct vg_api_call *call, int err)
{
    struct vg_api_status status;
    vg_status_from_err(&call->ask->arena, &status, err == -ENOMEM ? err : VIGIL_E_INTERNAL,
                       "the object cannot be encoded");
    vg_respond_status(call, &status);
}

static int relook(const struct vg_media *m, struct vg_slice json, struct vg_buf *out)
{
    if (m->type == VG_MEDIA_PROTOBUF)
        return vg_protobuf_of_json(json, out);
    VG_AUTO(arena) arena;
    vg_arena_init(&arena, 0, 0);
    struct vg_json *root;
    int r = vg_json_parse(&arena, json, NULL, &root, NULL);
    if (r < 0)
        return r;
    return m->type == VG_MEDIA_YAML
               ? vg_yaml_write(out, root)
               : vg_json_write(out, root, VG_JSON_INDENT | VG_JSON_ESCAPE_HTML);
}

/* Negative, and nothing was said: it cannot look like that. */
VG_CHECK static int respond_json(struct vg_api_call *call, struct vg_head_opts *opts,
                                 struct vg_buf *take_json)
{
    const struct vg_media *m = &call->ask->media;
    int r;
    opts->content_type = vg_media_content_type(m);
    if (m->type != VG_MEDIA_JSON || m->is_pretty) {
        struct vg_buf other = {0};
        r = relook(m, vg_buf_slice(take_json), &other);
        vg_buf_done(take_json);
        *take_json = other;
    } else {
        r = vg_buf_append_byte(take_json, '\n');
    }
    if (r < 0)
        vg_buf_done(take_json);
    else
        send_buf(call, opts, take_json);
    return r;
}

void vg_respond_json(struct vg_api_call *call, int code, struct vg_buf *take_json)
{
    struct vg_head_opts opts = {.code = code};
    int r = respond_json(call, &opts, take_json);
    if (r < 0)
        vg_respond_unencodable(call, r);
}

static void respond_status(struct vg_api_call *call, const struct vg_api_status *status,
                           bool is_early)
{
    struct vg_buf json = {0};
    struct vg_head_opts opts = {
        .code = status->code, .retry_after_s = status->retry_after_s, .is_early = is_early};
    if (vg_api_status_write(&json, status) < 0) {
        vg_buf_done(&json);
        give_up(call);
        return;
    }
    if (respond_json(call, &opts, &json) < 0)
        give_up(call);
}

void vg_respond_status(struct vg_api_call *call, const struct vg_api_status *status)
{
    respond_status(call, status, false);
}

void vg_call_answer_early(struct vg_api_call *call, const struct vg_api_status *status)
{
    respond_status(call, status, true);
}

void vg_respond_bytes(struct vg_api_call *call, int code, const char *content_type,
                      struct vg_buf *take_body)
{
    struct vg_head_opts opts = {.code = code, .content_type = content_type};
    send_buf(call, &opts, take_body);
}
