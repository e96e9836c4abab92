/* client.c - see client.h. */
#include "client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "measure.h"

#define READ_BYTES ((size_t)256 * 1024)

int connect_port(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) < 0)
        bench_die("cannot connect to port %u: %s", port, strerror(errno));
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static SSL_CTX *tls_context(void)
{
    static SSL_CTX *ctx;
    if (!ctx) {
        ctx = SSL_CTX_new(TLS_client_method());
        if (!ctx)
            bench_die("OpenSSL has no context");
        SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL); /* the bench started this server itself */
        SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    }
    return ctx;
}

/* The one that vigild made for its administrator. */
static void show_cert(struct client *c, const struct server *s)
{
    char *cert = bench_path(s->dir, "data/pki/admin.crt");
    char *key = bench_path(s->dir, "data/pki/admin.key");
    if (SSL_use_certificate_file(c->ssl, cert, SSL_FILETYPE_PEM) != 1 ||
        SSL_use_PrivateKey_file(c->ssl, key, SSL_FILETYPE_PEM) != 1)
        bench_die("the certificate %s cannot be shown", cert);
    c->by_cert = true;
    free(cert);
    free(key);
}

void client_open(struct client *c, const struct server *s, bool is_tls)
{
    *c = (struct client){.fd = connect_port(is_tls ? s->secure : s->plain)};
    vg_buf_init(&c->in, 0);
    if (!is_tls)
        return;
    c->ssl = SSL_new(tls_context());
    if (c->ssl && s->by_cert)
        show_cert(c, s);
    if (!c->ssl || SSL_set_fd(c->ssl, c->fd) != 1 || SSL_connect(c->ssl) != 1)
        bench_die("the TLS handshake failed");
}

void client_done(struct client *c)
{
    SSL_free(c->ssl);
    if (c->fd >= 0)
        close(c->fd);
    vg_buf_done(&c->in);
    *c = (struct client){.fd = -1};
}

static void send_all(struct client *c, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t r = c->ssl ? SSL_write(c->ssl, p, (int)VG_MIN(n, (size_t)1 << 20))
                           : send(c->fd, p, n, MSG_NOSIGNAL);
        if (r <= 0 && errno == EINTR)
            continue;
        if (r <= 0)
            bench_die("the server closed the connection");
        p += r;
        n -= (size_t)r;
    }
}

void client_send(struct client *c, const struct ask *ask)
{
    struct vg_buf b;
    vg_buf_init(&b, 0);
    const char *fields = ask->fields ? ask->fields : "";
    int r = vg_buf_printf(&b, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s%s%s", ask->method, ask->path,
                          c->by_cert ? "" : "Authorization: Bearer " BENCH_TOKEN "\r\n",
                          strstr(fields, "Accept: ") ? "" : "Accept: application/json\r\n", fields);
    if (r == 0 && ask->body.n > 0)
        r = vg_buf_printf(&b, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                          ask->body.n);
    if (r == 0)
        r = vg_buf_append_slice(&b, VG_SLICE_LIT("\r\n"));
    if (r == 0)
        r = vg_buf_append_slice(&b, ask->body);
    if (r < 0)
        bench_die("out of memory");
    send_all(c, b.p, b.n);
    vg_buf_done(&b);
}

static void read_more(struct client *c)
{
    if (vg_buf_reserve(&c->in, READ_BYTES) < 0)
        bench_die("out of memory");
    ssize_t r;
    do {
        r = c->ssl ? SSL_read(c->ssl, c->in.p + c->in.n, (int)READ_BYTES)
                   : recv(c->fd, c->in.p + c->in.n, READ_BYTES, 0);
    } while (r < 0 && !c->ssl && errno == EINTR);
    if (r <= 0)
        bench_die("the server closed the connection in the middle of an answer");
    c->in.n += (size_t)r;
}

/* Offset just past `what`, reading as much as it takes, from `from` on. */
static size_t read_until(struct client *c, const char *what, size_t from)
{
    for (;;) {
        const char *at =
            c->in.n > from ? memmem(c->in.p + from, c->in.n - from, what, strlen(what)) : NULL;
        if (at)
            return (size_t)(at - c->in.p) + strlen(what);
        read_more(c);
    }
}

int client_head(struct client *c, struct vg_buf *ret_head)
{
    size_t n = read_until(c, "\r\n\r\n", 0);
    vg_buf_clear(ret_head);
    if (vg_buf_append(ret_head, c->in.p, n) < 0 || vg_buf_append_byte(ret_head, 0) < 0)
        bench_die("out of memory");
    vg_buf_consume(&c->in, n);
    int status = 0;
    if (sscanf(ret_head->p, "HTTP/1.1 %d", &status) != 1)
        bench_die("not an HTTP answer: %.60s", ret_head->p);
    return status;
}

static void skip(struct client *c, uint64_t n)
{
    while (n > 0) {
        if (c->in.n == 0)
            read_more(c);
        size_t k = VG_MIN((uint64_t)c->in.n, n);
        vg_buf_consume(&c->in, k);
        n -= k;
    }
}

static uint64_t skip_chunks(struct client *c)
{
    uint64_t sum = 0;
    for (;;) {
        size_t line = read_until(c, "\r\n", 0);
        uint64_t n = strtoull(c->in.p, NULL, 16);
        vg_buf_consume(&c->in, line);
        skip(c, n + 2);
        sum += n;
        if (n == 0)
            return sum;
    }
}

static const char *field(const struct vg_buf *head, const char *name)
{
    const char *at = strcasestr(head->p, name);
    return at ? at + strlen(name) : NULL;
}

int client_ask(struct client *c, const struct ask *ask, uint64_t *ret_bytes)
{
    struct vg_buf head;
    vg_buf_init(&head, 0);
    vg_buf_clear(&c->in);
    client_send(c, ask);
    int status = client_head(c, &head);
    const char *length = field(&head, "\r\nContent-Length:");
    uint64_t n = length ? strtoull(length, NULL, 10) : 0;
    if (length)
        skip(c, n);
    else if (field(&head, "\r\nTransfer-Encoding: chunked"))
        n = skip_chunks(c);
    if (ret_bytes)
        *ret_bytes = n;
    vg_buf_done(&head);
    return status;
}

int client_ask_body(struct client *c, const struct ask *ask)
{
    struct vg_buf head;
    vg_buf_init(&head, 0);
    vg_buf_clear(&c->in);
    client_send(c, ask);
    int status = client_head(c, &head);
    const char *length = field(&head, "\r\nContent-Length:");
    if (!length)
        bench_die("an answer without a length");
    uint64_t n = strtoull(length, NULL, 10);
    while (c->in.n < n)
        read_more(c);
    vg_buf_done(&head);
    return status;
}

void client_must(struct client *c, const struct ask *ask)
{
    int status = client_ask(c, ask, NULL);
    if (status != 200 && status != 201)
        bench_die("%s %s was answered %d", ask->method, ask->path, status);
}

void client_watch(struct client *c, const struct server *s, bool is_tls, const char *path,
                  const char *fields)
{
    struct vg_buf head;
    vg_buf_init(&head, 0);
    client_open(c, s, is_tls);
    client_send(c, &(struct ask){.method = "GET", .path = path, .fields = fields});
    int status = client_head(c, &head);
    if (status != 200)
        bench_die("the watch %s was answered %d", path, status);
    vg_buf_done(&head);
}
