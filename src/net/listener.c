/* listener.c - listening sockets and accepting from them.
 * Every loop polls the same socket; whoever is awake accepts and hands the connection to the loop
 * that has the fewest. A burst of connections is accepted by whoever wakes first, and without that
 * they would all be its own (375 of 400 were). Out of descriptors, a loop stops accepting for a
 * moment: those who want to connect wait in the kernel's queue meanwhile.
 *   L1 a server in shared->servers can be handed connections; under shared->mu they are put on its
 *      list and its one mail is posted, so that it outlives both (see vg_http_server_free). */
#include "listener_int.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "server_int.h"

#define ACCEPTS_PER_TURN 8
#define BACKLOG 4096
#define PAUSE_MS 100u

struct vg_listener {
    int fd;
    uint16_t port;
    bool is_own; /* opened here: nobody else has it */
};

/* One loop's poll on a listener. */
struct listening {
    uv_poll_t poll;
    struct vg_http_server *server;
    struct vg_listener *listener;
    struct vg_tls *tls;
    struct vg_timer pause;
    struct vg_list link; /* server->listening */
};

union address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_storage room;
};

/* ---- opening ---- */

static int parse_address(const char *host, uint16_t port, union address *ret, socklen_t *ret_n)
{
    memset(ret, 0, sizeof *ret);
    if (inet_pton(AF_INET, host, &ret->in.sin_addr) == 1) {
        ret->in.sin_family = AF_INET;
        ret->in.sin_port = htons(port);
        *ret_n = sizeof ret->in;
        return 0;
    }
    if (inet_pton(AF_INET6, host, &ret->in6.sin6_addr) == 1) {
        ret->in6.sin6_family = AF_INET6;
        ret->in6.sin6_port = htons(port);
        *ret_n = sizeof ret->in6;
        return 0;
    }
    return VIGIL_E_INVALID;
}

static int read_port(int fd, uint16_t *ret_port)
{
    union address a = {0};
    socklen_t n = sizeof a;
    if (getsockname(fd, &a.any, &n) < 0)
        return -errno;
    *ret_port = a.any.sa_family == AF_INET    ? ntohs(a.in.sin_port)
                : a.any.sa_family == AF_INET6 ? ntohs(a.in6.sin6_port)
                                              : 0;
    return 0;
}

int vg_listener_adopt(int fd, struct vg_listener **ret_listener, struct vg_status *reterr_status)
{
    int is_listening = 0;
    socklen_t n = sizeof is_listening;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &n) < 0)
        return vg_fail(reterr_status, -errno, "descriptor %d: %s", fd, strerror(errno));
    if (!is_listening)
        return vg_fail(reterr_status, VIGIL_E_INVALID, "descriptor %d does not listen", fd);
    struct vg_listener *l = vg_new(struct vg_listener);
    if (!l)
        return vg_fail(reterr_status, -ENOMEM, "out of memory");
    l->fd = fd;
    int r = read_port(fd, &l->port);
    if (r < 0) {
        vg_free(l);
        return vg_fail(reterr_status, r, "descriptor %d: %s", fd, vg_err_text(r));
    }
    *ret_listener = l;
    return 0;
}

/* A descriptor that is bound, or negative with a sentence. */
static int open_bound(const char *host, uint16_t port, struct vg_status *reterr_status)
{
    union address a;
    socklen_t n = 0;
    if (parse_address(host, port, &a, &n) < 0)
        return vg_fail(reterr_status, VIGIL_E_INVALID, "\"%s\" is not a numeric address", host);
    int fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return vg_fail(reterr_status, -errno, "cannot open a socket: %s", strerror(errno));
    int one = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (a.any.sa_family == AF_INET6) /* "::" is for IPv4 too */
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){0}, sizeof(int));
    if (bind(fd, &a.any, n) == 0)
        return fd;
    int r = vg_fail(reterr_status, -errno, "cannot listen on %s port %u: %s", host, port,
                    strerror(errno));
    close(fd);
    return r;
}

int vg_listener_probe(const char *host, struct vg_status *reterr_status)
{
    int fd = open_bound(host, 0, reterr_status);
    if (fd < 0)
        return fd;
    close(fd);
    return 0;
}

int vg_listener_open(const char *host, uint16_t port, struct vg_listener **ret_listener,
                     struct vg_status *reterr_status)
{
    int fd = open_bound(host, port, reterr_status);
    if (fd < 0)
        return fd;
    int r = listen(fd, BACKLOG) < 0 ? -errno : 0;
    if (r < 0)
        vg_fail(reterr_status, r, "cannot listen on %s port %u: %s", host, port, strerror(-r));
    else
        r = vg_listener_adopt(fd, ret_listener, reterr_status);
    if (r < 0)
        close(fd);
    else
        (*ret_listener)->is_own = true;
    return r;
}

uint16_t vg_listener_port(const struct vg_listener *l)
{
    return l->port;
}

void vg_listener_free(struct vg_listener *l)
{
    if (!l)
        return;
    close(l->fd);
    vg_free(l);
}

/* ---- accepting ---- */

static void on_ready(uv_poll_t *handle, int status, int events);

static void on_pause_over(struct vg_timer *t)
{
    struct listening *l = VG_CONTAINER_OF(t, struct listening, pause);
    uv_poll_start(&l->poll, UV_READABLE, on_ready);
}

static void pause_accepting(struct listening *l, int err)
{
    vg_warn(l->server->log, "accept_paused", "error=%s", vg_err_name(err));
    uv_poll_stop(&l->poll);
    vg_timer_start(l->server->loop, &l->pause, PAUSE_MS * VG_NS_PER_MS, on_pause_over);
}

void vg_listening_refuse(struct vg_http_server *s, int take_fd)
{
    vg_net_count(&s->counts.refused, 1);
    close(take_fd);
}

/* What one address may have of the handshakes: who holds all of its own keeps nobody else out. */
static uint32_t handshake_share(const struct vg_http_limits *limits)
{
    if (limits->handshakes_per_address)
        return limits->handshakes_per_address;
    return VG_MAX(limits->handshakes / 4, 1u);
}

static bool has_room_for_handshake(struct vg_http_server *s, const struct vg_net_address *address)
{
    uint32_t own = address ? atomic_load_explicit(&address->handshakes, memory_order_relaxed) : 0;
    if (address && own >= handshake_share(s->limits))
        return vg_conn_cut_handshake(s, address); /* which makes room for this one */
    if (atomic_load_explicit(&s->shared->handshakes, memory_order_relaxed) < s->limits->handshakes)
        return true;
    return vg_conn_cut_handshake_of_more(s, address) || vg_conn_cut_handshake(s, NULL);
}

/* ---- to the loop with the fewest ---- */

struct arrival {
    struct vg_list link; /* in server->arriving */
    int fd;
    struct vg_tls *tls;
    struct vg_net_address *address;
};

static uint32_t load_of(const struct vg_http_server *s)
{
    return atomic_load_explicit(&s->n_load, memory_order_relaxed);
}

/* A handshake is under way from its acceptance on, or a burst that another loop has yet to open
 * would be let in whole. */
static void count_arrival(struct vg_http_shared *shared, const struct arrival *a, uint32_t by)
{
    if (!a->tls)
        return;
    atomic_fetch_add_explicit(&shared->handshakes, by, memory_order_relaxed);
    if (a->address)
        atomic_fetch_add_explicit(&a->address->handshakes, by, memory_order_relaxed);
}

static void take_arrivals(struct vg_mail *mail)
{
    struct vg_http_server *s = VG_CONTAINER_OF(mail, struct vg_http_server, call);
    if (s->is_closing) {
        vg_net_handle_closed(s);
        return;
    }
    struct vg_list all, *n;
    vg_list_init(&all);
    vg_mutex_lock(&s->shared->mu);
    s->is_called = false;
    while ((n = vg_list_pop_front(&s->arriving)))
        vg_list_push_back(&all, n);
    vg_mutex_unlock(&s->shared->mu);
    while ((n = vg_list_pop_front(&all))) {
        struct arrival *a = VG_CONTAINER_OF(n, struct arrival, link);
        count_arrival(s->shared, a, UINT32_MAX); /* -1: the connection counts itself */
        int r = vg_conn_open(s, a->fd, a->tls, a->address);
        if (r < 0)
            vg_warn(s->log, "accept_failed", "error=%s", vg_err_name(r));
        vg_free(a);
    }
}

void vg_listening_drop_arrivals(struct vg_http_server *s)
{
    struct vg_list *n;
    while ((n = vg_list_pop_front(&s->arriving))) { /* it is in no list: nobody adds to it */
        struct arrival *a = VG_CONTAINER_OF(n, struct arrival, link);
        count_arrival(s->shared, a, UINT32_MAX);
        close(a->fd);
        vg_net_leave(s, a->address);
        vg_free(a);
    }
}

static struct vg_http_server *least_loaded(struct vg_http_server *s)
{
    vg_mutex_assert_held(&s->shared->mu);
    struct vg_http_server *least = s;
    VG_LIST_FOREACH (n, &s->shared->servers) {
        struct vg_http_server *other = VG_CONTAINER_OF(n, struct vg_http_server, link);
        if (load_of(other) < load_of(least) &&
            atomic_load_explicit(&other->is_listening, memory_order_relaxed))
            least = other;
    }
    return least;
}

/* Counts it for the loop that shall have it. True: that is another, which has it now. */
static bool hand_over(struct listening *l, int fd, struct vg_net_address *address)
{
    struct arrival *a = vg_new(struct arrival);
    if (a)
        *a = (struct arrival){.fd = fd, .tls = l->tls, .address = address};
    vg_mutex_lock(&l->server->shared->mu);
    bool may_be_other = a && !l->server->is_draining;
    struct vg_http_server *to = may_be_other ? least_loaded(l->server) : l->server;
    atomic_fetch_add_explicit(&to->n_load, 1, memory_order_relaxed);
    bool is_other = to != l->server;
    if (is_other) {
        count_arrival(to->shared, a, 1);
        vg_list_push_back(&to->arriving, &a->link);
        if (!to->is_called) {
            to->is_called = true;
            to->call.run = take_arrivals;
            vg_loop_post(to->loop, &to->call);
        }
    }
    vg_mutex_unlock(&l->server->shared->mu);
    if (!is_other)
        vg_free(a);
    return is_other;
}

/* At a limit the oldest unauthenticated connection is cut: one of the same address if it is that
 * address that has too many. */
static int admit(struct vg_http_server *s, const struct sockaddr *from,
                 struct vg_net_address **ret_address)
{
    int r = vg_net_admit(s->shared, from, ret_address);
    if (r == VIGIL_E_BUSY && vg_conn_cut_unauthenticated(s, *ret_address)) {
        *ret_address = NULL;
        r = vg_net_admit(s->shared, from, ret_address);
    }
    return r;
}

static void welcome(struct listening *l, int fd, const struct sockaddr *from)
{
    struct vg_http_server *s = l->server;
    struct vg_net_address *address = NULL;
    vg_net_count(&s->counts.accepted, 1);
    if (admit(s, from, &address) < 0) {
        vg_listening_refuse(s, fd);
        return;
    }
    if (l->tls && !has_room_for_handshake(s, address)) {
        vg_net_dismiss(s->shared, address);
        vg_listening_refuse(s, fd);
        return;
    }
    if (hand_over(l, fd, address))
        return;
    int r = vg_conn_open(s, fd, l->tls, address);
    if (r < 0)
        vg_warn(s->log, "accept_failed", "error=%s", vg_err_name(r));
}

/* False: that is all for now. */
static bool accept_one(struct listening *l)
{
    union address from;
    socklen_t n = sizeof from;
    int fd = accept4(l->listener->fd, &from.any, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
        welcome(l, fd, &from.any);
        return true;
    }
    if (errno == ECONNABORTED || errno == EINTR) /* that one has gone again */
        return true;
    int err = errno;
    if (err == EMFILE && vg_conn_cut_unauthenticated(l->server, NULL))
        return true;
    if (err == EMFILE || err == ENFILE || err == ENOBUFS || err == ENOMEM)
        pause_accepting(l, -err);
    return false;
}

static void on_ready(uv_poll_t *handle, int status, int events)
{
    (void)status, (void)events;
    struct listening *l = VG_CONTAINER_OF(handle, struct listening, poll);
    for (int i = 0; i < ACCEPTS_PER_TURN && accept_one(l); i++)
        ;
}

int vg_http_server_listen(struct vg_http_server *s, struct vg_listener *l, struct vg_tls *tls)
{
    struct listening *on = vg_new(struct listening);
    if (!on)
        return -ENOMEM;
    int r = uv_poll_init(vg_loop_uv(s->loop), &on->poll, l->fd);
    if (r < 0) {
        vg_free(on);
        return r;
    }
    s->n_handles++;
    on->server = s;
    on->listener = l;
    on->tls = tls;
    vg_list_push_back(&s->listening, &on->link);
    atomic_store_explicit(&s->is_listening, true, memory_order_relaxed);
    uv_poll_start(&on->poll, UV_READABLE, on_ready);
    return 0;
}

static void on_listening_closed(uv_handle_t *handle)
{
    uv_poll_t *poll = (uv_poll_t *)handle;
    struct listening *l = VG_CONTAINER_OF(poll, struct listening, poll);
    struct vg_http_server *s = l->server;
    vg_free(l);
    vg_net_handle_closed(s);
}

void vg_listening_close_all(struct vg_http_server *s)
{
    struct vg_list *n;
    atomic_store_explicit(&s->is_listening, false, memory_order_relaxed);
    while ((n = vg_list_pop_front(&s->listening))) {
        struct listening *l = VG_CONTAINER_OF(n, struct listening, link);
        vg_timer_stop(s->loop, &l->pause);
        uv_close((uv_handle_t *)&l->poll, on_listening_closed);
    }
}

/* From now on it accepts nothing. True: nor does any other. */
static bool stop_listening(struct vg_http_server *s)
{
    bool is_last = true;
    vg_mutex_lock(&s->shared->mu);
    atomic_store_explicit(&s->is_listening, false, memory_order_relaxed);
    VG_LIST_FOREACH (n, &s->shared->servers) {
        struct vg_http_server *other = VG_CONTAINER_OF(n, struct vg_http_server, link);
        if (atomic_load_explicit(&other->is_listening, memory_order_relaxed))
            is_last = false;
    }
    vg_mutex_unlock(&s->shared->mu);
    return is_last;
}

/* Who waits in the kernel's queue when the socket is closed is reset, and who comes after that is
 * refused: so the last loop takes in all who wait. A socket that was passed to us stays open
 * elsewhere, and they wait there for whoever is started next. */
void vg_listening_drain(struct vg_http_server *s)
{
    bool is_last = stop_listening(s);
    VG_LIST_FOREACH (n, &s->listening) {
        struct listening *l = VG_CONTAINER_OF(n, struct listening, link);
        if (!is_last || !l->listener->is_own)
            continue;
        for (int i = 0; i < BACKLOG && accept_one(l); i++)
            ;
        shutdown(l->listener->fd, SHUT_RDWR);
    }
    vg_listening_close_all(s);
}
