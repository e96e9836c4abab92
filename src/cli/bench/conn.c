/* conn.c - see conn.h: sockets, TLS, and who is told what. The protocols are in conn_h1.c and
 * conn_h2.c. */
#include "conn_int.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/alloc.h"
#include "late.h"

#define ROOM_BYTES ((size_t)256 * 1024)
#define TURN_EVENTS 256

/* ---- engines ---- */

int vg_bench_engine_init(struct vg_bench_engine *e)
{
    *e = (struct vg_bench_engine){.epoll = epoll_create1(EPOLL_CLOEXEC)};
    vg_list_init(&e->work);
    e->room = vg_malloc(ROOM_BYTES);
    int enough = vg_bench_engine_make_room(e, TURN_EVENTS);
    if (e->epoll >= 0 && e->room && enough == 0)
        return 0;
    int r = e->epoll < 0 ? -errno : -ENOMEM;
    vg_bench_engine_done(e);
    return r;
}

void vg_bench_engine_done(struct vg_bench_engine *e)
{
    if (e->room || e->epoll > 0)
        close(e->epoll);
    vg_free(e->room);
    vg_free(e->events);
    *e = (struct vg_bench_engine){0};
}

int vg_bench_engine_make_room(struct vg_bench_engine *e, size_t conns)
{
    if (conns > e->events_max) {
        struct epoll_event *events = vg_reallocarray(e->events, conns, sizeof *events);
        if (!events)
            return -ENOMEM;
        e->events = events;
        e->events_max = conns;
    }
    return 0;
}

/* ---- ending ---- */

void vg_bench_reply_end(struct vg_bench_reply *r, int err)
{
    vg_list_remove(&r->link);
    r->conn = NULL;
    vg_free(vg_steal(r->body_copy));
    r->ops->on_end(r, err);
}

static void say_trouble(struct vg_bench_conn *c, int err)
{
    unsigned long e = ERR_peek_last_error();
    long verify = c->ssl && !c->is_ready ? SSL_get_verify_result(c->ssl) : X509_V_OK;
    if (verify != X509_V_OK)
        snprintf(c->trouble, sizeof c->trouble, "the server's certificate: %s",
                 X509_verify_cert_error_string(verify));
    else if (e)
        ERR_error_string_n(e, c->trouble, sizeof c->trouble);
    else
        snprintf(c->trouble, sizeof c->trouble, "%s", vg_err_text(err));
}

static void die(struct vg_bench_conn *c, int err)
{
    if (c->is_dead)
        return;
    if (!c->trouble[0])
        say_trouble(c, err);
    c->is_dead = true;
    vg_list_remove(&c->work);
    close(c->fd); /* leaves epoll by that */
    c->fd = -1;
    for (struct vg_list *l; (l = c->replies.next) != &c->replies;)
        vg_bench_reply_end(VG_CONTAINER_OF(l, struct vg_bench_reply, link), err);
}

bool vg_bench_conn_is_dead(const struct vg_bench_conn *c)
{
    return c->is_dead;
}

bool vg_bench_conn_is_ready(const struct vg_bench_conn *c)
{
    return c->is_ready && !c->is_dead;
}

const char *vg_bench_conn_trouble(const struct vg_bench_conn *c)
{
    return c->trouble;
}

void vg_bench_conn_free(struct vg_bench_conn *c)
{
    if (!c)
        return;
    c->engine->conns--;
    vg_list_remove(&c->work);
    for (struct vg_list *l; (l = vg_list_pop_front(&c->replies));) {
        struct vg_bench_reply *r = VG_CONTAINER_OF(l, struct vg_bench_reply, link);
        vg_free(vg_steal(r->body_copy));
        r->conn = NULL;
    }
    if (c->is_h2)
        vg_bench_h2_done(c);
    if (c->ssl)
        SSL_set_quiet_shutdown(c->ssl, 1);
    SSL_free(c->ssl);
    if (c->fd >= 0)
        close(c->fd);
    vg_buf_done(&c->out);
    vg_free(c);
}

int vg_bench_conn_release(struct vg_bench_conn *take_conn)
{
    int fd = take_conn->fd;
    if (fd >= 0)
        (void)epoll_ctl(take_conn->engine->epoll, EPOLL_CTL_DEL, fd, NULL);
    take_conn->fd = -1;
    vg_bench_conn_free(take_conn);
    return fd;
}

/* ---- beginning ---- */

static int set_up_tls(struct vg_bench_conn *c)
{
    const struct vg_bench_target *t = c->target;
    unsigned char address[sizeof(struct in6_addr)];
    c->ssl = SSL_new(t->tls[c->is_h2]);
    if (!c->ssl || vg_bench_io_attach(c) < 0)
        return -ENOMEM;
    SSL_set_connect_state(c->ssl);
    bool is_address = inet_pton(AF_INET, t->tls_name, address) == 1 ||
                      inet_pton(AF_INET6, t->tls_name, address) == 1;
    bool is_ok = is_address
                     ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(c->ssl), t->tls_name) == 1
                     : SSL_set1_host(c->ssl, t->tls_name) == 1 &&
                           SSL_set_tlsext_host_name(c->ssl, t->tls_name) == 1;
    return is_ok ? 0 : -ENOMEM;
}

/* By edges: what was read is not looked at again until there is more. */
static int tell_epoll(struct vg_bench_conn *c, int how, unsigned wanted)
{
    unsigned end = wanted & EPOLLIN ? (unsigned)EPOLLRDHUP : 0u;
    struct epoll_event e = {.events = wanted | end | (unsigned)EPOLLET, .data.ptr = c};
    c->events = wanted;
    return epoll_ctl(c->engine->epoll, how, c->fd, &e) < 0 ? -errno : 0;
}

static int open_socket(struct vg_bench_conn *c, int receive_bytes)
{
    const struct vg_bench_target *t = c->target;
    int one = 1;
    c->fd = socket(t->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->fd < 0)
        return -errno;
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (receive_bytes)
        (void)setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    (void)vg_bench_late_init(c->fd);
    const struct sockaddr *a = (const struct sockaddr *)&t->address;
    if (connect(c->fd, a, t->address_n) < 0 && errno != EINPROGRESS)
        return -errno;
    return tell_epoll(c, EPOLL_CTL_ADD, EPOLLIN | EPOLLOUT);
}

int vg_bench_conn_new(struct vg_bench_engine *e, const struct vg_bench_target *t, bool is_h2,
                      int receive_bytes, struct vg_bench_conn **ret)
{
    struct vg_bench_conn *c = vg_new(struct vg_bench_conn);
    if (!c)
        return -ENOMEM;
    *c = (struct vg_bench_conn){.engine = e, .target = t, .fd = -1, .is_h2 = is_h2};
    e->conns++;
    vg_list_init(&c->work);
    vg_list_init(&c->replies);
    int r = open_socket(c, receive_bytes);
    if (r == 0 && t->is_tls)
        r = set_up_tls(c);
    if (r == 0 && is_h2)
        r = vg_bench_h2_init(c);
    else
        vg_bench_h1_init(c);
    if (r < 0) {
        vg_bench_conn_free(c);
        return r;
    }
    *ret = c;
    return 0;
}

/* ---- in and out ---- */

/* Bytes; 0: not now; else -errno. */
static ssize_t tls_result(struct vg_bench_conn *c, int r)
{
    if (r > 0)
        return r;
    int why = SSL_get_error(c->ssl, r);
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
        return 0;
    if (why == SSL_ERROR_SYSCALL && errno)
        return -errno;
    return why == SSL_ERROR_SSL ? VIGIL_E_NETWORK : -ECONNRESET;
}

static ssize_t pull(struct vg_bench_conn *c)
{
    errno = 0;
    if (c->ssl)
        return tls_result(c, SSL_read(c->ssl, c->engine->room, (int)ROOM_BYTES));
    ssize_t r = vg_bench_io_read(c, c->engine->room, ROOM_BYTES);
    if (r < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    return r == 0 ? -ECONNRESET : r;
}

static ssize_t push(struct vg_bench_conn *c)
{
    errno = 0;
    if (c->ssl)
        return tls_result(c, SSL_write(c->ssl, c->out.p, (int)VG_MIN(c->out.n, (size_t)1 << 20)));
    ssize_t r = send(c->fd, c->out.p, c->out.n, MSG_NOSIGNAL);
    return r >= 0 ? r : errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

static void ask_epoll(struct vg_bench_conn *c)
{
    unsigned wanted =
        (c->is_stalled ? 0u : EPOLLIN) | (c->out.n || !c->is_connected ? (unsigned)EPOLLOUT : 0u);
    if (wanted == c->events || c->is_dead)
        return;
    int r = tell_epoll(c, EPOLL_CTL_MOD, wanted);
    if (r < 0)
        die(c, r);
}

static void flush(struct vg_bench_conn *c)
{
    int r = c->is_h2 ? vg_bench_h2_pump(c) : 0;
    ssize_t n = 1;
    while (r == 0 && c->is_ready && c->out.n && n > 0) {
        n = push(c);
        if (n > 0)
            vg_buf_consume(&c->out, (size_t)n);
        r = n < 0 ? (int)n : 0;
    }
    if (!c->out.n)
        vg_buf_done(&c->out); /* many connections never send again */
    if (r < 0)
        die(c, r);
    else if (c->is_ready)
        ask_epoll(c);
}

static void shake_hands(struct vg_bench_conn *c)
{
    ERR_clear_error();
    int r = SSL_do_handshake(c->ssl);
    if (r == 1) {
        const unsigned char *alpn = NULL;
        unsigned n = 0;
        SSL_get0_alpn_selected(c->ssl, &alpn, &n);
        c->is_ready = true;
        if (c->is_h2 && n != 2)
            snprintf(c->trouble, sizeof c->trouble, "the server does not speak HTTP/2");
        if (c->trouble[0])
            die(c, VIGIL_E_UNSUPPORTED);
        return;
    }
    int why = SSL_get_error(c->ssl, r);
    unsigned wanted = why == SSL_ERROR_WANT_WRITE ? EPOLLOUT : EPOLLIN;
    if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
        die(c, why == SSL_ERROR_SYSCALL && errno ? -errno : VIGIL_E_NETWORK);
    else if (c->events != wanted && tell_epoll(c, EPOLL_CTL_MOD, wanted) < 0)
        die(c, -errno);
}

static void get_ready(struct vg_bench_conn *c)
{
    int err = 0;
    socklen_t n = sizeof err;
    if (!c->is_connected && getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &n) == 0 && err)
        die(c, -err);
    if (c->is_dead)
        return;
    c->is_connected = true;
    if (c->ssl)
        shake_hands(c);
    else
        c->is_ready = true;
}

static void take(struct vg_bench_conn *c)
{
    while (!c->is_dead && !c->is_stalled) {
        ERR_clear_error();
        ssize_t n = pull(c);
        if (n == 0)
            return;
        if (n < 0) {
            if (!c->is_h2)
                vg_bench_h1_eof(c);
            die(c, (int)n);
            return;
        }
        struct vg_slice bytes = {c->engine->room, (size_t)n};
        int r = c->is_h2 ? vg_bench_h2_read(c, bytes) : vg_bench_h1_read(c, bytes);
        if (r < 0)
            die(c, r);
        if (c->is_drained && !(c->ssl && SSL_has_pending(c->ssl)))
            return;
    }
}

#define ENDS ((unsigned)(EPOLLHUP | EPOLLERR | EPOLLRDHUP))

static void on_event(struct vg_bench_conn *c, unsigned events)
{
    c->is_drained = false;
    c->may_be_over = c->may_be_over || (events & ENDS);
    if (!c->is_ready)
        get_ready(c);
    if (c->is_stalled && (events & (EPOLLHUP | EPOLLERR)))
        die(c, -ECONNRESET); /* epoll would tell it again and again */
    if (!c->is_dead && c->is_ready && (events & (EPOLLIN | ENDS)))
        take(c);
    if (!c->is_dead && c->is_ready)
        flush(c);
}

static void flush_all(struct vg_bench_engine *e)
{
    for (struct vg_list *l; (l = vg_list_pop_front(&e->work));)
        flush(VG_CONTAINER_OF(l, struct vg_bench_conn, work));
}

int vg_bench_engine_turn(struct vg_bench_engine *e, int max_ms)
{
    flush_all(e);
    int max = (int)e->events_max, n = epoll_wait(e->epoll, e->events, max, max_ms);
    if (n < 0)
        return errno == EINTR ? 0 : -errno;
    if (n > 0 && e->lull_ns)
        n = vg_bench_late_wait(e->epoll, e->events, n, max, (int)VG_MIN(e->conns, e->events_max),
                               e->lull_ns);
    e->wall_ahead_ns = vg_bench_late_wall_ahead();
    for (int i = 0; i < n; i++) {
        struct vg_bench_conn *c = e->events[i].data.ptr;
        if (!c->is_dead)
            on_event(c, e->events[i].events);
    }
    flush_all(e);
    return 0;
}

/* ---- asking ---- */

int vg_bench_conn_ask(struct vg_bench_conn *c, struct vg_bench_reply *r,
                      const struct vg_bench_ask *ask)
{
    if (c->is_dead)
        return -ENOTCONN;
    if (VG_NEVER(!c->is_h2 && !vg_list_is_empty(&c->replies)))
        return VIGIL_E_INVALID;
    *r = (struct vg_bench_reply){.ops = r->ops, .conn = c};
    int err = c->is_h2 ? vg_bench_h2_ask(c, r, ask) : vg_bench_h1_ask(c, ask);
    if (err < 0) {
        r->conn = NULL;
        return err;
    }
    vg_list_push_back(&c->replies, &r->link);
    if (vg_list_is_empty(&c->work))
        vg_list_push_back(&c->engine->work, &c->work);
    return 0;
}

void vg_bench_conn_stall(struct vg_bench_conn *c, bool is_stalled)
{
    c->is_stalled = is_stalled;
    if (!c->is_dead && c->is_ready)
        ask_epoll(c);
}
