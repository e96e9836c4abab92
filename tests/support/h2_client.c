/* h2_client.c - see h2_client.h. A helper that cannot do its work ends the run loudly. */
#include "h2_client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"

#define MUST(x) ((x) ? (void)0 : fail_at(__LINE__, #x))

static _Noreturn void fail_at(int line, const char *what)
{
    fprintf(stderr, "h2_client.c:%d: %s\n", line, what);
    abort();
}

static struct vg_h2c_stream *stream_of(nghttp2_session *s, int32_t id)
{
    return nghttp2_session_get_stream_user_data(s, id);
}

static int on_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name, size_t n_name,
                     const uint8_t *value, size_t n_value, uint8_t flags, void *arg)
{
    struct vg_h2c_stream *st = stream_of(s, f->hd.stream_id);
    (void)flags;
    (void)arg;
    if (!st)
        return 0;
    if (n_name == 7 && memcmp(name, ":status", 7) == 0)
        st->status = (int)strtol((const char *)value, NULL, 10);
    MUST(vg_buf_printf(&st->fields, "%.*s: %.*s\n", (int)n_name, (const char *)name, (int)n_value,
                       (const char *)value) == 0);
    return 0;
}

static int on_data(nghttp2_session *s, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
                   void *arg)
{
    struct vg_h2c_stream *st = stream_of(s, id);
    (void)flags;
    (void)arg;
    MUST(!st || vg_buf_append(&st->body, p, n) == 0);
    return 0;
}

static int on_frame(nghttp2_session *s, const nghttp2_frame *f, void *arg)
{
    struct vg_h2c *c = arg;
    struct vg_h2c_stream *st = f->hd.stream_id ? stream_of(s, f->hd.stream_id) : NULL;
    if (st && f->hd.type == NGHTTP2_DATA)
        st->n_data++;
    if (st && (f->hd.type == NGHTTP2_DATA || f->hd.type == NGHTTP2_HEADERS) &&
        f->hd.flags & NGHTTP2_FLAG_END_STREAM)
        st->has_end = true;
    if (f->hd.type == NGHTTP2_PING && f->hd.flags & NGHTTP2_FLAG_ACK)
        c->n_ping_acks++;
    if (f->hd.type == NGHTTP2_SETTINGS && f->hd.flags & NGHTTP2_FLAG_ACK)
        c->n_settings_acks++;
    if (f->hd.type == NGHTTP2_GOAWAY) {
        c->has_goaway = true;
        c->n_goaways++;
        c->goaway_error = f->goaway.error_code;
        c->goaway_last = f->goaway.last_stream_id;
    }
    return 0;
}

static int on_close(nghttp2_session *s, int32_t id, uint32_t error, void *arg)
{
    struct vg_h2c *c = arg;
    struct vg_h2c_stream *st = stream_of(s, id);
    if (st) {
        st->is_closed = true;
        st->error = error;
        c->n_closed++;
    }
    return 0;
}

static ssize_t read_body(nghttp2_session *s, int32_t id, uint8_t *buf, size_t n, uint32_t *flags,
                         nghttp2_data_source *src, void *arg)
{
    struct vg_h2c_stream *st = src->ptr;
    size_t take = VG_MIN(n, st->send_n);
    (void)s;
    (void)id;
    (void)arg;
    memcpy(buf, st->send, take);
    st->send += take;
    st->send_n -= take;
    if (take == 0 && st->is_endless)
        return NGHTTP2_ERR_DEFERRED;
    if (st->send_n == 0 && !st->is_endless)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (st->has_trailers)
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    return (ssize_t)take;
}

void vg_h2c_open(struct vg_h2c *c, int take_fd, const struct vg_h2c_opts *opts)
{
    static const struct vg_h2c_opts none;
    nghttp2_session_callbacks *cb;
    nghttp2_option *o;
    if (!opts)
        opts = &none;
    *c = (struct vg_h2c){.fd = take_fd};
    MUST(fcntl(take_fd, F_SETFL, fcntl(take_fd, F_GETFL) | O_NONBLOCK) == 0);
    MUST(nghttp2_session_callbacks_new(&cb) == 0);
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_close);
    MUST(nghttp2_option_new(&o) == 0);
    nghttp2_option_set_no_auto_window_update(o, opts->is_manual);
    MUST(nghttp2_session_client_new2(&c->session, cb, c, o) == 0);
    nghttp2_option_del(o);
    nghttp2_session_callbacks_del(cb);
    nghttp2_settings_entry set[] = {
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,
         opts->stream_window ? opts->stream_window : 1u << 20},
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
    };
    MUST(nghttp2_submit_settings(c->session, 0, set, VG_ARRAY_LEN(set)) == 0);
    int32_t window = opts->conn_window ? (int32_t)opts->conn_window : 16 << 20;
    MUST(nghttp2_session_set_local_window_size(c->session, 0, 0, window) == 0);
}

void vg_h2c_close(struct vg_h2c *c)
{
    nghttp2_session_del(c->session);
    for (size_t i = 0; i < c->n_streams; i++) {
        vg_buf_done(&c->streams[i]->fields);
        vg_buf_done(&c->streams[i]->body);
        vg_free(c->streams[i]);
    }
    vg_buf_done(&c->out);
    close(c->fd);
    c->session = NULL;
    c->n_streams = 0;
}

static nghttp2_nv pair(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                        strlen(value), 0};
}

struct vg_h2c_stream *vg_h2c_request(struct vg_h2c *c, const char *method, const char *path,
                                     const char *body, size_t n_body, const char *const *extra)
{
    nghttp2_nv nv[512];
    size_t n = 0;
    struct vg_h2c_stream *st = vg_new(struct vg_h2c_stream);
    MUST(st && c->n_streams < VG_ARRAY_LEN(c->streams));
    st->send = body;
    st->send_n = n_body;
    nv[n++] = pair(":method", method);
    nv[n++] = pair(":scheme", "http");
    nv[n++] = pair(":path", path);
    nv[n++] = pair(":authority", "localhost");
    for (; extra && extra[0]; extra += 2) {
        MUST(n < VG_ARRAY_LEN(nv));
        nv[n++] = pair(extra[0], extra[1]);
    }
    nghttp2_data_provider prd = {.source.ptr = st, .read_callback = read_body};
    st->id = nghttp2_submit_request(c->session, NULL, nv, n, body ? &prd : NULL, st);
    MUST(st->id > 0);
    c->streams[c->n_streams++] = st;
    return st;
}

struct vg_h2c_stream *vg_h2c_get(struct vg_h2c *c, const char *path)
{
    return vg_h2c_request(c, "GET", path, NULL, 0, NULL);
}

void vg_h2c_reset(struct vg_h2c *c, const struct vg_h2c_stream *s, uint32_t error)
{
    MUST(nghttp2_submit_rst_stream(c->session, 0, s->id, error) == 0);
}

void vg_h2c_consume(struct vg_h2c *c, const struct vg_h2c_stream *s, size_t n)
{
    if (s)
        MUST(nghttp2_session_consume_stream(c->session, s->id, n) == 0);
    else
        MUST(nghttp2_session_consume_connection(c->session, n) == 0);
}

void vg_h2c_frame(struct vg_buf *b, uint8_t type, uint8_t flags, uint32_t id, const void *p,
                  size_t n)
{
    uint8_t head[9] = {
        (uint8_t)(n >> 16),  (uint8_t)(n >> 8),   (uint8_t)n,         type,       flags,
        (uint8_t)(id >> 24), (uint8_t)(id >> 16), (uint8_t)(id >> 8), (uint8_t)id};
    MUST(vg_buf_append(b, head, 9) == 0);
    MUST(n == 0 || vg_buf_append(b, p, n) == 0);
}

void vg_h2c_raw(struct vg_h2c *c, const void *p, size_t n)
{
    const char *at = p;
    while (n > 0 && !c->is_eof) {
        ssize_t w = send(c->fd, at, n, MSG_NOSIGNAL);
        if (w < 0 && errno == EAGAIN)
            return; /* the other side has stopped reading; so much for the flood */
        if (w < 0) {
            c->is_eof = true;
            return;
        }
        at += w;
        n -= (size_t)w;
    }
}

static void send_all(struct vg_h2c *c)
{
    const uint8_t *p;
    ssize_t n = 1;
    while (!c->is_broken && !c->is_eof && n > 0) {
        while (c->out.n < 65536 && (n = nghttp2_session_mem_send(c->session, &p)) > 0)
            MUST(vg_buf_append(&c->out, p, (size_t)n) == 0);
        ssize_t w = c->out.n ? send(c->fd, c->out.p, c->out.n, MSG_NOSIGNAL) : 0;
        if (w < 0 && errno == EAGAIN)
            return;
        if (w < 0)
            c->is_eof = true;
        else
            vg_buf_consume(&c->out, (size_t)w);
    }
}

size_t vg_h2c_step(struct vg_h2c *c)
{
    char buf[65536];
    size_t total = 0;
    ssize_t n = 0;
    send_all(c);
    while (!c->is_eof && (n = recv(c->fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0) {
        total += (size_t)n;
        if (!c->is_broken && nghttp2_session_mem_recv(c->session, (uint8_t *)buf, (size_t)n) != n)
            c->is_broken = true;
    }
    if (n == 0 || (n < 0 && errno != EAGAIN))
        c->is_eof = true;
    c->bytes_in += total;
    send_all(c);
    return total;
}
