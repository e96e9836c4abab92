/* client.c - the driver's client: as little HTTP/1.1 as the tests need, on blocking sockets. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "driver.h"

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    abort();
}

static int connect_to(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0, "connect");
    return fd;
}

static void send_all(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);
        must(sent > 0, "send");
        p += sent;
        n -= (size_t)sent;
    }
}

static struct vg_slice body_of(const char *text)
{
    return text ? vg_slice_str(text) : vg_slice(NULL, 0);
}

static void send_request(struct vg_adrv *d, int fd, const char *method, const char *target,
                         const char *headers, struct vg_slice body)
{
    VG_AUTO(buf) text = {0};
    int r = vg_buf_printf(&text, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%s", method, target,
                          d->port, headers ? headers : "");
    if (r == 0 && body.p)
        r = vg_buf_printf(&text, "Content-Length: %zu\r\n", body.n);
    if (r == 0)
        r = vg_buf_append(&text, "\r\n", 2);
    if (r == 0 && body.n)
        r = vg_buf_append_slice(&text, body);
    must(r == 0, "request");
    send_all(fd, text.p, text.n);
}

void vg_adrv_shoot(struct vg_adrv *d, const char *method, const char *target, const char *headers,
                   const char *body)
{
    struct linger at_once = {.l_onoff = 1};
    int fd = connect_to(d->port);
    send_request(d, fd, method, target, headers, body_of(body));
    must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0, "linger");
    close(fd);
}

/* ---- a stream ---- */

/* More bytes into s->in; false at the end. */
static bool receive(struct vg_stream *s)
{
    char bytes[65536];
    ssize_t n = recv(s->fd, bytes, sizeof bytes, 0);
    must(n <= 0 || vg_buf_append(&s->in, bytes, (size_t)n) == 0, "recv");
    return n > 0;
}

static const char *field_of(const struct vg_buf *head, const char *name)
{
    static _Thread_local char value[1024];
    size_t n = strlen(name);
    for (const char *line = head->p; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncasecmp(line, name, n) != 0 || line[n] != ':')
            continue;
        const char *at = line + n + 1 + strspn(line + n + 1, " ");
        snprintf(value, sizeof value, "%.*s", (int)strcspn(at, "\r\n"), at);
        return value;
    }
    return NULL;
}

/* False: the connection ended before. */
static bool read_head(struct vg_stream *s, bool is_head_method)
{
    const char *end;
    while (!(end = memmem(s->in.p ? s->in.p : "", s->in.n, "\r\n\r\n", 4)))
        if (!receive(s))
            return false;
    size_t n = (size_t)(end - s->in.p) + 4;
    must(vg_buf_append(&s->head, s->in.p, n) == 0 && vg_buf_append_byte(&s->head, '\0') == 0,
         "head");
    vg_buf_consume(&s->in, n);
    must(sscanf(s->head.p, "HTTP/1.1 %d", &s->status) == 1, "status line");
    const char *encoding = field_of(&s->head, "Transfer-Encoding");
    s->is_chunked = encoding && strcasecmp(encoding, "chunked") == 0;
    const char *length = field_of(&s->head, "Content-Length");
    s->left = length && !s->is_chunked ? strtoull(length, NULL, 10) : 0;
    s->is_over = is_head_method || (!s->is_chunked && s->left == 0);
    return true;
}

static void take(struct vg_stream *s)
{
    size_t n = (size_t)VG_MIN(s->left, (uint64_t)s->in.n);
    must(vg_buf_append(&s->body, s->in.p, n) == 0, "body");
    vg_buf_consume(&s->in, n);
    s->left -= n;
}

/* The size line of the next chunk; false: not there yet. */
static bool next_chunk(struct vg_stream *s)
{
    /* What ends the chunk before it. */
    if (s->in.n >= 2 && memcmp(s->in.p, "\r\n", 2) == 0)
        vg_buf_consume(&s->in, 2);
    const char *end = s->in.n ? memmem(s->in.p, s->in.n, "\r\n", 2) : NULL;
    if (!end)
        return false;
    s->left = strtoull(s->in.p, NULL, 16);
    vg_buf_consume(&s->in, (size_t)(end - s->in.p) + 2);
    s->is_over = s->left == 0;
    return true;
}

/* More of the body into s->body; false at its end. */
static bool read_body(struct vg_stream *s)
{
    while (!s->is_over) {
        if (s->left && s->in.n) {
            take(s);
            s->is_over = !s->is_chunked && s->left == 0;
            return true;
        }
        if (!s->left && s->is_chunked && next_chunk(s))
            continue;
        if (!receive(s)) {
            s->is_over = true;
            s->is_cut = true;
        }
    }
    return false;
}

void vg_stream_open(struct vg_adrv *d, const char *target, const char *headers,
                    struct vg_stream *ret)
{
    must(vg_stream_try(d, target, headers, ret), "head");
}

bool vg_stream_try(struct vg_adrv *d, const char *target, const char *headers,
                   struct vg_stream *ret)
{
    *ret = (struct vg_stream){.fd = connect_to(d->port)};
    send_request(d, ret->fd, "GET", target, headers, body_of(NULL));
    if (read_head(ret, false))
        return true;
    vg_stream_close(ret);
    return false;
}

const char *vg_stream_line(struct vg_stream *s)
{
    const char *end;
    while (!(end = s->body.n ? memchr(s->body.p, '\n', s->body.n) : NULL))
        if (!read_body(s))
            return NULL;
    size_t n = (size_t)(end - s->body.p);
    vg_buf_clear(&s->line);
    must(vg_buf_append(&s->line, s->body.p, n) == 0 && vg_buf_append_byte(&s->line, '\0') == 0,
         "line");
    vg_buf_consume(&s->body, n + 1);
    return s->line.p;
}

bool vg_stream_receive(struct vg_stream *s)
{
    return receive(s);
}

bool vg_stream_frame(struct vg_stream *s, struct vg_slice *ret)
{
    size_t n = 0;
    for (;;) {
        const unsigned char *p = (const unsigned char *)s->body.p;
        if (s->body.n >= 4)
            n = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
        if (s->body.n >= 4 && s->body.n - 4 >= n)
            break;
        if (!read_body(s))
            return false;
    }
    vg_buf_clear(&s->line);
    must(vg_buf_append(&s->line, s->body.p + 4, n) == 0, "frame");
    vg_buf_consume(&s->body, n + 4);
    *ret = vg_buf_slice(&s->line);
    return true;
}

void vg_stream_close(struct vg_stream *s)
{
    close(s->fd);
    vg_buf_done(&s->head);
    vg_buf_done(&s->in);
    vg_buf_done(&s->body);
    vg_buf_done(&s->line);
}

/* ---- whole answers ---- */

void vg_adrv_request(struct vg_adrv *d, const char *method, const char *target, const char *headers,
                     const char *body, struct vg_reply *ret)
{
    must(vg_adrv_try(d, method, target, headers, body, ret), "head");
}

bool vg_adrv_try(struct vg_adrv *d, const char *method, const char *target, const char *headers,
                 const char *body, struct vg_reply *ret)
{
    return vg_adrv_try_bytes(d, method, target, headers, body_of(body), ret);
}

bool vg_adrv_try_bytes(struct vg_adrv *d, const char *method, const char *target,
                       const char *headers, struct vg_slice body, struct vg_reply *ret)
{
    struct vg_stream s = {.fd = connect_to(d->port)};
    send_request(d, s.fd, method, target, headers, body);
    if (!read_head(&s, strcmp(method, "HEAD") == 0)) {
        vg_stream_close(&s);
        return false;
    }
    while (read_body(&s))
        ;
    vg_reply_done(ret);
    ret->status = s.status;
    ret->is_cut = s.is_cut;
    ret->head = s.head;
    ret->body = s.body;
    s.head = s.body = (struct vg_buf){0};
    must(vg_buf_append_byte(&ret->body, '\0') == 0, "body");
    ret->body.n--;
    vg_stream_close(&s);
    return true;
}

void vg_reply_done(struct vg_reply *r)
{
    vg_buf_done(&r->head);
    vg_buf_done(&r->body);
}

const char *vg_reply_field(const struct vg_reply *r, const char *name)
{
    return field_of(&r->head, name);
}

void vg_adrv_send(struct vg_adrv *d, const char *method, const char *target, const char *type,
                  const char *body, struct vg_reply *ret)
{
    char line[128];
    snprintf(line, sizeof line, "Content-Type: application/%s\r\n", type);
    vg_adrv_request(d, method, target, line, body, ret);
}

void vg_reply_expect(const struct vg_reply *r, int status, const char *text)
{
    if (r->status != status || !strstr(r->body.p, text))
        fail_msg("%d %s, want %d %s", r->status, r->body.p, status, text);
}

const char *vg_adrv_path(const char *fmt, ...)
{
    static char text[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return text;
}
