/* link_connect.c - how a link comes to its connection: a name, addresses one after the other, TLS;
 * see pool_int.h. What goes wrong is said in words that help. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "pool_int.h"

struct vg_grpc_resolve {
    uv_getaddrinfo_t req;
    struct vg_grpc_link *link; /* NULL: nobody waits for it any more */
};

static void try_next(struct vg_grpc_link *l);
static void limit_address(struct vg_grpc_link *l);

static void note(struct vg_grpc_link *l, const char *what, const char *why)
{
    snprintf(l->trouble, sizeof l->trouble, "%s: %s", what, why);
}

void vg_grpc_link_give_up(struct vg_grpc_link *l)
{
    if (l->resolve) {
        l->resolve->link = NULL;
        uv_cancel((uv_req_t *)&l->resolve->req); /* if it has not begun; it is told in any case */
    }
    uv_freeaddrinfo(l->addresses);
}

/* ---- TLS ---- */

static void on_handshake_failed(struct vg_grpc_link *l)
{
    const char *why = vg_tls_session_trouble(l->tls);
    char text[256];
    bool is_plain = why && strcmp(why, "wrong version number") == 0;
    if (vg_tls_session_has_refused(l->tls))
        snprintf(text, sizeof text, "its certificate is not accepted for %s: %s",
                 l->channel->tls_host, why);
    else
        snprintf(text, sizeof text, "the TLS handshake failed: %s%s",
                 why ? why : "it closed the connection",
                 is_plain || !why ? " (if it does not speak TLS, use http:// for it)" : "");
    vg_grpc_link_down(l, text);
}

void vg_grpc_link_shake(struct vg_grpc_link *l)
{
    bool wants_write = false;
    int r = vg_tls_session_handshake(l->tls, &wants_write);
    l->is_blocked = wants_write;
    if (r < 0)
        on_handshake_failed(l);
    else if (r == 1 && !vg_tls_session_is_h2(l->tls))
        vg_grpc_link_down(l, "it does not offer HTTP/2 (ALPN h2): not a gRPC endpoint");
    else if (r == 1)
        vg_grpc_link_greet(l);
}

static void start_shaking(struct vg_grpc_link *l)
{
    const struct vg_grpc_channel *ch = l->channel;
    const struct vg_grpc_tls *t = &ch->pool->opts.tls;
    struct vg_tls_client_opts opts = {t->ca_file, t->cert_file, t->key_file, ch->tls_host};
    struct vg_status status;
    if (vg_tls_connect(&opts, l->fd, &l->tls, &status) < 0) {
        vg_grpc_link_down(l, status.message);
        return;
    }
    l->state = VG_GRPC_LINK_SHAKING;
    vg_grpc_link_shake(l);
}

/* ---- addresses ---- */

/* Bytes that nobody acknowledges end it as soon as an unanswered ping would: behind a network that
 * was cut, TCP itself would go on for a quarter of an hour. */
static void on_connected(struct vg_grpc_link *l)
{
    const struct vg_grpc_pool_opts *o = &l->channel->pool->opts;
    l->next = NULL; /* from here on all of the time is its own */
    limit_address(l);
    unsigned ms = (unsigned)VG_MIN(o->keepalive_ms + o->keepalive_timeout_ms, (uint64_t)INT32_MAX);
    setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    setsockopt(l->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
    if (l->channel->is_tls)
        start_shaking(l);
    else
        vg_grpc_link_greet(l);
}

void vg_grpc_link_connected(struct vg_grpc_link *l)
{
    int err = 0;
    socklen_t n = sizeof err;
    if (getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &err, &n) < 0)
        err = errno;
    if (err == 0) {
        on_connected(l);
        return;
    }
    note(l, "cannot connect", strerror(err));
    try_next(l);
}

/* libuv keeps a descriptor's handle until the next turn: each address has one of its own, so a new
 * socket takes the old one's number. */
static int open_socket(struct vg_grpc_link *l, int family)
{
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (l->fd >= 0) {
        int r = dup3(fd, l->fd, O_CLOEXEC);
        close(fd);
        return r < 0 ? -errno : 0;
    }
    int r = uv_poll_init(vg_loop_uv(l->channel->pool->loop), &l->poll, fd);
    if (r < 0) {
        close(fd);
        return r;
    }
    l->has_poll = true;
    l->fd = fd;
    return 0;
}

static int try_address(struct vg_grpc_link *l, const struct sockaddr *a, socklen_t n)
{
    if (l->has_poll) {
        uv_poll_stop(&l->poll);
        l->poll_events = 0;
    }
    int r = open_socket(l, a->sa_family);
    if (r < 0)
        return r;
    if (connect(l->fd, a, n) < 0 && errno != EINPROGRESS)
        return -errno;
    l->state = VG_GRPC_LINK_CONNECTING;
    vg_grpc_link_poll(l);
    return 0;
}

/* Half of what is left, while there is another: one that swallows everything must not take it all.
 */
static void limit_address(struct vg_grpc_link *l)
{
    uint64_t now = vg_grpc_pool_now(l->channel->pool);
    uint64_t left = l->due_ns > now ? l->due_ns - now : 0;
    vg_grpc_link_alarm(l, l->next ? left / 2 : left);
}

bool vg_grpc_link_try_next(struct vg_grpc_link *l)
{
    if (l->state > VG_GRPC_LINK_CONNECTING || !l->next)
        return false;
    if (l->state == VG_GRPC_LINK_CONNECTING)
        note(l, "cannot connect", strerror(ETIMEDOUT));
    try_next(l);
    return true;
}

static void try_next(struct vg_grpc_link *l)
{
    while (l->next) {
        const struct addrinfo *a = l->next;
        l->next = a->ai_next;
        limit_address(l);
        int r = try_address(l, a->ai_addr, a->ai_addrlen);
        if (r == 0)
            return;
        note(l, "cannot connect", strerror(-r));
    }
    vg_grpc_link_down(l, l->trouble[0] ? l->trouble : "it has no address");
}

/* ---- names ---- */

static void on_resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *found)
{
    struct vg_grpc_resolve *r = VG_CONTAINER_OF(req, struct vg_grpc_resolve, req);
    struct vg_grpc_link *l = r->link;
    vg_free(r);
    if (!l) {
        uv_freeaddrinfo(found);
        return;
    }
    l->resolve = NULL;
    if (status < 0) {
        char why[256];
        snprintf(why, sizeof why, "cannot resolve %s: %s", l->channel->host, uv_strerror(status));
        vg_grpc_link_down(l, why);
        return;
    }
    l->addresses = found;
    l->next = found;
    try_next(l);
}

/* An address in digits needs nobody to ask. */
static bool is_numeric(struct vg_grpc_link *l)
{
    static const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                          .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    if (getaddrinfo(l->channel->host, l->channel->port, &hints, &l->addresses) != 0) {
        l->addresses = NULL;
        return false;
    }
    l->next = l->addresses;
    vg_grpc_link_alarm(l, 0); /* tried from there, never from within */
    return true;
}

static int resolve(struct vg_grpc_link *l)
{
    static const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    const struct vg_grpc_channel *ch = l->channel;
    if (is_numeric(l))
        return 0;
    struct vg_grpc_resolve *r = vg_new(struct vg_grpc_resolve);
    if (!r)
        return -ENOMEM;
    r->link = l;
    int e = uv_getaddrinfo(vg_loop_uv(ch->pool->loop), &r->req, on_resolved, ch->host, ch->port,
                           &hints);
    if (e < 0) {
        vg_free(r);
        return e;
    }
    l->resolve = r;
    return 0;
}

static int connect_unix(struct vg_grpc_link *l)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%s", l->channel->host);
    int r = try_address(l, (const struct sockaddr *)&a, sizeof a);
    if (r < 0)
        note(l, "cannot connect", strerror(-r));
    return r;
}

int vg_grpc_link_begin(struct vg_grpc_link *l)
{
    if (l->channel->port)
        return resolve(l);
    int r = connect_unix(l);
    if (r < 0 && r != -ENOMEM)
        vg_grpc_link_alarm(l, 0); /* told from there, never from within */
    return r == -ENOMEM ? r : 0;
}
