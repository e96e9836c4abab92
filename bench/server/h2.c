/* h2.c - see h2.h. */
#include "h2.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "measure.h"

#define WINDOW ((int32_t)0x7fffffff)

struct h2 {
    struct client client;
    nghttp2_session *session;
    unsigned answered, closed;
    uint64_t bytes;
};

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t namelen, const uint8_t *value, size_t valuelen, uint8_t flags,
                     void *arg)
{
    struct h2 *h = arg;
    (void)session, (void)frame, (void)flags;
    if (namelen == 7 && memcmp(name, ":status", 7) == 0) {
        if (valuelen != 3 || memcmp(value, "200", 3) != 0)
            bench_die("an HTTP/2 request was answered %.*s", (int)valuelen, (const char *)value);
        h->answered++;
    }
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *p,
                   size_t n, void *arg)
{
    (void)session, (void)flags, (void)stream, (void)p;
    ((struct h2 *)arg)->bytes += n;
    return 0;
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t error, void *arg)
{
    (void)session, (void)stream, (void)error;
    ((struct h2 *)arg)->closed++;
    return 0;
}

static void pump_out(struct h2 *h)
{
    for (;;) {
        const uint8_t *p;
        ssize_t n = nghttp2_session_mem_send(h->session, &p);
        if (n < 0)
            bench_die("nghttp2: %s", nghttp2_strerror((int)n));
        if (n == 0)
            return;
        ssize_t r = h->client.ssl ? SSL_write(h->client.ssl, p, (int)n)
                                  : send(h->client.fd, p, (size_t)n, MSG_NOSIGNAL);
        if (r != n)
            bench_die("the server closed an HTTP/2 connection");
    }
}

static void pump_in(struct h2 *h)
{
    static __thread uint8_t bytes[256 * 1024];
    ssize_t n = h->client.ssl ? SSL_read(h->client.ssl, bytes, sizeof bytes)
                              : recv(h->client.fd, bytes, sizeof bytes, 0);
    if (n <= 0)
        bench_die("the server closed an HTTP/2 connection");
    ssize_t r = nghttp2_session_mem_recv(h->session, bytes, (size_t)n);
    if (r < 0)
        bench_die("nghttp2: %s", nghttp2_strerror((int)r));
}

static SSL_CTX *h2_context(void)
{
    static SSL_CTX *ctx;
    if (!ctx) {
        ctx = SSL_CTX_new(TLS_client_method());
        if (!ctx || SSL_CTX_set_alpn_protos(ctx, (const unsigned char *)"\x02h2", 3) != 0)
            bench_die("OpenSSL has no context");
    }
    return ctx;
}

static void open_session(struct h2 *h, const struct server *s, bool is_tls)
{
    *h = (struct h2){.client.fd = connect_port(is_tls ? s->secure : s->plain)};
    if (is_tls) {
        h->client.ssl = SSL_new(h2_context());
        if (!h->client.ssl || SSL_set_fd(h->client.ssl, h->client.fd) != 1 ||
            SSL_connect(h->client.ssl) != 1)
            bench_die("the TLS handshake failed");
    }
    nghttp2_session_callbacks *cb;
    nghttp2_session_callbacks_new(&cb);
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_close);
    nghttp2_session_client_new(&h->session, cb, h);
    nghttp2_session_callbacks_del(cb);
    nghttp2_settings_entry window = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, (uint32_t)WINDOW};
    nghttp2_submit_settings(h->session, 0, &window, 1);
    nghttp2_session_set_local_window_size(h->session, 0, 0, WINDOW);
}

static nghttp2_nv pair(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                        strlen(value), NGHTTP2_NV_FLAG_NONE};
}

static void submit_get(struct h2 *h, const char *path)
{
    nghttp2_nv fields[] = {pair(":method", "GET"),
                           pair(":scheme", h->client.ssl ? "https" : "http"),
                           pair(":authority", "localhost"),
                           pair(":path", path),
                           pair("accept", "application/json"),
                           pair("authorization", "Bearer " BENCH_TOKEN)};
    if (nghttp2_submit_request(h->session, NULL, fields, VG_ARRAY_LEN(fields), NULL, NULL) < 0)
        bench_die("nghttp2 takes no request");
}

static void close_session(struct h2 *h)
{
    nghttp2_session_del(h->session);
    if (h->client.ssl) {
        SSL_set_quiet_shutdown(h->client.ssl, 1);
        SSL_free(h->client.ssl);
    }
}

int h2_watches(const struct server *s, bool is_tls, const char *path, unsigned first, unsigned n)
{
    struct h2 h;
    open_session(&h, s, is_tls);
    for (unsigned i = 0; i < n; i++) {
        char text[256];
        const char *at = strstr(path, "%u");
        if (at)
            snprintf(text, sizeof text, "%.*s%u%s", (int)(at - path), path, first + i, at + 2);
        else
            snprintf(text, sizeof text, "%s", path);
        submit_get(&h, text);
        /* A few at a time: the server limits streams until its settings have come. */
        pump_out(&h);
        while (h.answered < i + 1)
            pump_in(&h);
    }
    pump_out(&h);
    close_session(&h);
    return h.client.fd;
}

static void await_closed(struct h2 *h, unsigned n)
{
    pump_out(h);
    while (h->closed < n) {
        pump_in(h);
        pump_out(h);
    }
}

uint64_t h2_get(const struct server *s, bool is_tls, const char *path, uint64_t *ret_cpu)
{
    struct h2 h;
    open_session(&h, s, is_tls);
    submit_get(&h, "/version");
    await_closed(&h, 1);
    h.bytes = 0;
    *ret_cpu = server_cpu_ns(s);
    submit_get(&h, path);
    await_closed(&h, 2);
    close_session(&h);
    close(h.client.fd);
    return h.bytes;
}
