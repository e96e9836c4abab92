/* conn_h2.c - HTTP/2 of a connection, through nghttp2. Windows are as wide as they can be: what the
 * server may send is limited by the sockets, as over HTTP/1.1. */
#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "conn_int.h"

#define WINDOW ((int32_t)0x7fffffff)

static struct vg_bench_reply *reply_of(nghttp2_session *s, int32_t stream)
{
    return nghttp2_session_get_stream_user_data(s, stream);
}

static int on_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name, size_t name_n,
                     const uint8_t *value, size_t value_n, uint8_t flags, void *arg)
{
    (void)flags;
    (void)arg;
    struct vg_bench_reply *r = reply_of(s, f->hd.stream_id);
    if (r && value_n == 3 && name_n == 7 && memcmp(name, ":status", 7) == 0)
        r->status = (value[0] - '0') * 100 + (value[1] - '0') * 10 + (value[2] - '0');
    return 0;
}

static int on_frame(nghttp2_session *s, const nghttp2_frame *f, void *arg)
{
    (void)arg;
    struct vg_bench_reply *r = f->hd.type == NGHTTP2_HEADERS ? reply_of(s, f->hd.stream_id) : NULL;
    if (r && f->headers.cat != NGHTTP2_HCAT_HEADERS && r->status >= 200 && r->ops->on_head)
        r->ops->on_head(r);
    return 0;
}

static int on_data(nghttp2_session *s, uint8_t flags, int32_t stream, const uint8_t *p, size_t n,
                   void *arg)
{
    (void)flags;
    (void)arg;
    struct vg_bench_reply *r = reply_of(s, stream);
    if (r && r->ops->on_data)
        r->ops->on_data(r, vg_slice(p, n));
    return 0;
}

static int on_close(nghttp2_session *s, int32_t stream, uint32_t code, void *arg)
{
    (void)arg;
    struct vg_bench_reply *r = reply_of(s, stream);
    if (r)
        vg_bench_reply_end(r, code ? VIGIL_E_NETWORK : 0);
    return 0;
}

int vg_bench_h2_init(struct vg_bench_conn *c)
{
    nghttp2_session_callbacks *cb = NULL;
    if (nghttp2_session_callbacks_new(&cb) != 0)
        return -ENOMEM;
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_close);
    int r = nghttp2_session_client_new(&c->session, cb, c);
    nghttp2_session_callbacks_del(cb);
    if (r != 0)
        return -ENOMEM;
    nghttp2_settings_entry entries[] = {
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, (uint32_t)WINDOW},
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
    };
    if (nghttp2_submit_settings(c->session, 0, entries, VG_ARRAY_LEN(entries)) != 0 ||
        nghttp2_session_set_local_window_size(c->session, 0, 0, WINDOW) != 0)
        return -ENOMEM;
    return 0;
}

void vg_bench_h2_done(struct vg_bench_conn *c)
{
    nghttp2_session_del(c->session);
    c->session = NULL;
}

int vg_bench_h2_read(struct vg_bench_conn *c, struct vg_slice bytes)
{
    ssize_t r = nghttp2_session_mem_recv(c->session, (const uint8_t *)bytes.p, bytes.n);
    if (r >= 0)
        return 0;
    snprintf(c->trouble, sizeof c->trouble, "HTTP/2: %s", nghttp2_strerror((int)r));
    return VIGIL_E_NETWORK;
}

int vg_bench_h2_pump(struct vg_bench_conn *c)
{
    for (;;) {
        const uint8_t *p = NULL;
        ssize_t n = nghttp2_session_mem_send(c->session, &p);
        if (n < 0)
            return VIGIL_E_NETWORK;
        if (n == 0)
            break;
        int r = vg_buf_append(&c->out, p, (size_t)n);
        if (r < 0)
            return r;
    }
    bool is_over =
        !nghttp2_session_want_read(c->session) && !nghttp2_session_want_write(c->session);
    return is_over ? -ECONNRESET : 0;
}

static ssize_t read_body(nghttp2_session *s, int32_t stream, uint8_t *to, size_t room,
                         uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    (void)s;
    (void)stream;
    (void)arg;
    struct vg_bench_reply *r = source->ptr;
    size_t n = VG_MIN(room, r->body.n);
    memcpy(to, r->body.p, n);
    r->body = vg_slice(r->body.p + n, r->body.n - n);
    if (!r->body.n)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static nghttp2_nv pair(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                        strlen(value), NGHTTP2_NV_FLAG_NONE};
}

static int submit(struct vg_bench_conn *c, struct vg_bench_reply *r, const struct vg_bench_ask *ask,
                  const char *path)
{
    const struct vg_bench_target *t = c->target;
    char length[24];
    size_t n = 0;
    nghttp2_nv fields[10];
    fields[n++] = pair(":method", ask->method);
    fields[n++] = pair(":scheme", t->is_tls ? "https" : "http");
    fields[n++] = pair(":authority", t->authority);
    fields[n++] = pair(":path", path);
    if (t->agent)
        fields[n++] = pair("user-agent", t->agent);
    fields[n++] = pair("accept", ask->accept ? ask->accept : "application/json");
    if (t->authorization.n)
        fields[n++] = pair("authorization", t->authorization.p);
    if (ask->is_gzip)
        fields[n++] = pair("accept-encoding", "gzip");
    if (ask->body.n) {
        snprintf(length, sizeof length, "%zu", ask->body.n);
        fields[n++] = pair("content-type", ask->type ? ask->type : "application/json");
        fields[n++] = pair("content-length", length);
    }
    nghttp2_data_provider body = {.source.ptr = r, .read_callback = read_body};
    r->stream = nghttp2_submit_request(c->session, NULL, fields, n, ask->body.n ? &body : NULL, r);
    return r->stream < 0 ? VIGIL_E_NETWORK : 0;
}

int vg_bench_h2_ask(struct vg_bench_conn *c, struct vg_bench_reply *r,
                    const struct vg_bench_ask *ask)
{
    VG_AUTO(buf) path = {0};
    int err = vg_buf_printf(&path, "%s%s", c->target->prefix, ask->path);
    if (err < 0 || vg_buf_append_byte(&path, 0) < 0)
        return -ENOMEM;
    if (ask->body.n) {
        r->body_copy = vg_strndup(ask->body.p, ask->body.n);
        if (!r->body_copy)
            return -ENOMEM;
        r->body = vg_slice(r->body_copy, ask->body.n);
    }
    err = submit(c, r, ask, path.p);
    if (err < 0)
        vg_free(vg_steal(r->body_copy));
    return err;
}
