/* conn.c - a connection: when to read and write, and how it ends; see conn_int.h.
 * Handshakes are in conn_handshake.c, reading is in conn_read.c, the queue of unauthenticated
 * connections in conn_queue.c.
 *
 *   HANDSHAKING --> OPEN --> FINISHING (sends what waits) --> LINGERING --> gone
 *        |            |           |                              |
 *        +------------+-----------+------- CLOSING --------------+
 *
 *   N1 only vg_conn_settle() and vg_conn_close_all() tear a connection down; whoever called into
 *      a codec calls it last and does not touch the connection afterwards.
 *   N2 while is_blocked the socket is not written to; the poll for writing ends it.
 *   N3 a connection sends at most FLUSH_BUDGET and FLUSH_SENDS times in one turn, so that no reader
 *      holds the others up. */
#include "conn_int.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tls_int.h"
#include "transport.h"

#define FLUSH_BUDGET (256u * 1024u)
/* 64 sends of a turn: as many pipelined requests are answered before the others have their turn. */
#define FLUSH_SENDS 64
/* 2 s: how long a client may take to see the end and close, so that what it still sends does not
 * reset the connection before it has read our last words. */
#define LINGER_MS 2000u

/* 1 s: while the server drains, what a handshake has left, and a first request after it. */
#define DRAIN_MS 1000u

uint64_t vg_conn_now(const struct vg_conn *conn)
{
    return vg_clock_mono_ns(vg_loop_clock(conn->server->loop));
}

/* ---- what codecs call ---- */

void vg_conn_dirty(struct vg_conn *conn)
{
    if (vg_list_is_empty(&conn->dirty))
        vg_list_push_back(&conn->server->dirty, &conn->dirty);
}

void vg_conn_close(struct vg_conn *conn, int err)
{
    if (conn->is_closing)
        return;
    conn->is_closing = true;
    conn->close_err = err;
    vg_conn_dirty(conn);
}

void vg_conn_finish(struct vg_conn *conn)
{
    if (conn->is_finishing)
        return;
    conn->is_finishing = true;
    conn->finish_due_ns = vg_conn_now(conn) + conn->server->limits->stall_ms * VG_NS_PER_MS;
    vg_conn_alarm(conn, conn->finish_due_ns);
    vg_conn_pause_reading(conn, false); /* what comes is dropped */
    vg_conn_dirty(conn);
}

int vg_conn_switch(struct vg_conn *conn, struct vg_codec *take_codec, struct vg_slice rest)
{
    assert(!conn->next_codec);
    conn->next_codec = take_codec;
    conn->next_rest = rest;
    return 0;
}

/* ---- polling ---- */

static void on_poll(uv_poll_t *handle, int status, int events);

void vg_conn_update_interest(struct vg_conn *conn)
{
    if (conn->fd < 0)
        return;
    int want = conn->is_blocked || conn->is_reading_blocked ? UV_WRITABLE : 0;
    if (!conn->is_peer_done && !conn->is_reading_blocked)
        want |= !conn->is_reading_paused ? UV_READABLE : conn->is_hung_up ? 0 : UV_DISCONNECT;
    if (want == conn->poll_events)
        return;
    conn->poll_events = want;
    if (want)
        uv_poll_start(&conn->poll, want, on_poll);
    else
        uv_poll_stop(&conn->poll);
}

void vg_conn_pause_reading(struct vg_conn *conn, bool is_paused)
{
    conn->is_reading_paused = is_paused;
    if (!is_paused && conn->tls && vg_tls_session_has_pending(conn->tls))
        vg_conn_queue(conn); /* the socket will not tell of bytes that TLS has taken from it */
    vg_conn_update_interest(conn);
}

static void on_timer(struct vg_timer *t)
{
    struct vg_conn *conn = VG_CONTAINER_OF(t, struct vg_conn, timer);
    uint64_t now = vg_conn_now(conn);
    if (conn->is_handshaking || (conn->is_finishing && now >= conn->finish_due_ns)) {
        if (!conn->is_lingering)
            vg_net_count(&conn->server->counts.timeouts, 1);
        vg_conn_close(conn, conn->is_lingering ? 0 : VIGIL_E_TIMEOUT);
    } else if (conn->is_finishing) {
        vg_conn_alarm(conn, conn->finish_due_ns);
    }
    if (conn->codec && !conn->is_closing && !conn->is_lingering) {
        conn->codec->ops->tick(conn->codec, now);
        if (conn->server->is_draining)
            conn->codec->ops->drain(conn->codec);
    }
    vg_conn_settle(conn);
}

void vg_conn_alarm(struct vg_conn *conn, uint64_t due_ns)
{
    if (due_ns == VG_NET_NEVER || (conn->timer.armed && conn->timer.due_ns <= due_ns))
        return;
    uint64_t now = vg_conn_now(conn);
    vg_timer_start(conn->server->loop, &conn->timer, due_ns > now ? due_ns - now : 0, on_timer);
}

/* ---- sending ---- */

void vg_conn_say_bye(struct vg_conn *conn)
{
    if (conn->is_peer_done) {
        vg_conn_close(conn, 0);
        return;
    }
    if (conn->tls)
        vg_tls_session_bye(conn->tls);
    shutdown(conn->fd, SHUT_WR);
    conn->is_lingering = true;
    conn->finish_due_ns = vg_conn_now(conn) + LINGER_MS * VG_NS_PER_MS;
    vg_conn_alarm(conn, conn->finish_due_ns);
}

/* Send until nothing waits, the socket is full or the budget is spent. */
void vg_conn_send_all(struct vg_conn *conn)
{
    size_t budget = FLUSH_BUDGET;
    int sends = 0;
    if (conn->is_lingering)
        return;
    while (!conn->is_closing && !conn->is_blocked) {
        conn->codec->ops->fill(conn->codec);
        if (conn->out.n == 0 || conn->is_closing)
            break;
        bool is_blocked = false;
        ssize_t n =
            vg_transport_send(conn->fd, conn->tls, &conn->out, conn->server->staging, &is_blocked);
        if (n < 0) {
            vg_conn_close(conn, VIGIL_E_CANCELED);
            break;
        }
        vg_net_count(&conn->server->counts.bytes_out, (uint64_t)n);
        budget -= VG_MIN(budget, (size_t)n);
        conn->is_blocked = is_blocked;
        conn->codec->ops->sent(conn->codec, (size_t)n, is_blocked);
        if (budget == 0 || ++sends == FLUSH_SENDS)
            conn->is_blocked = true; /* what is left waits for the next turn */
    }
}

/* What was put into a queue that is not sent waits for the other side, though no send has failed:
 * when a budget was spent, the socket may be as good as full, and never be writable again. */
static void begin_to_wait(struct vg_conn *conn)
{
    if (conn->fd >= 0 && conn->is_blocked && conn->out.n && conn->codec && !conn->is_closing &&
        !conn->is_lingering)
        conn->codec->ops->sent(conn->codec, 0, true);
}

uint32_t vg_conn_held(const struct vg_conn *conn)
{
    int n = 0;
    if (conn->fd < 0 || ioctl(conn->fd, SIOCOUTQ, &n) < 0 || n < 0)
        return 0;
    return (uint32_t)n;
}

static void flush(struct vg_conn *conn)
{
    if (conn->fd < 0 || conn->is_blocked) {
        if (conn->codec && !conn->is_closing)
            conn->codec->ops->fill(conn->codec);
    } else if (conn->codec && !conn->is_lingering) {
        vg_conn_send_all(conn);
        if (conn->is_finishing && !conn->is_closing && conn->out.n == 0)
            vg_conn_say_bye(conn);
    }
    begin_to_wait(conn);
    vg_conn_update_interest(conn);
    vg_list_remove(&conn->dirty);
    vg_conn_settle(conn);
}

void vg_conn_flush_dirty(struct vg_http_server *s)
{
    struct vg_list *n;
    while ((n = vg_list_pop_front(&s->dirty)))
        flush(VG_CONTAINER_OF(n, struct vg_conn, dirty));
}

/* ---- the handshake ---- */

/* While the server drains, who has come before the end may bring a request, if it does so soon.
 * HTTP/2 sees to that itself. */
int vg_conn_begin(struct vg_conn *conn)
{
    bool is_h2 = conn->tls && vg_tls_session_is_h2(conn->tls);
    int r = is_h2 ? vg_h2_new(conn, &conn->codec) : vg_h1_new(conn, &conn->codec);
    if (r < 0 || !conn->server->is_draining)
        return r;
    if (is_h2)
        conn->codec->ops->drain(conn->codec);
    else
        vg_conn_alarm(conn, vg_conn_now(conn) + DRAIN_MS * VG_NS_PER_MS);
    return 0;
}

static void on_hang_up(struct vg_conn *conn)
{
    int err = 0;
    socklen_t n = sizeof err;
    conn->is_hung_up = true; /* its end is read when reading goes on, if it does */
    vg_conn_dirty(conn);
    if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &err, &n) == 0 && err)
        vg_conn_close(conn, VIGIL_E_CANCELED);
}

static void on_events(struct vg_conn *conn, int events)
{
    if (events & UV_WRITABLE) {
        conn->is_blocked = false;
        vg_conn_dirty(conn);
    }
    if (events & UV_READABLE || conn->is_reading_blocked) {
        if (conn->share.is_authenticated || conn->is_lingering)
            vg_conn_read_some(conn);
        else
            vg_conn_queue(conn);
    } else if (events & UV_DISCONNECT) {
        on_hang_up(conn);
    }
}

static void on_poll(uv_poll_t *handle, int status, int events)
{
    struct vg_conn *conn = VG_CONTAINER_OF(handle, struct vg_conn, poll);
    if (status < 0)
        vg_conn_close(conn, VIGIL_E_CANCELED);
    else if (conn->is_handshaking)
        vg_conn_queue(conn);
    else
        on_events(conn, events);
    vg_conn_update_interest(conn);
    vg_conn_settle(conn);
}

void vg_conn_go_on(struct vg_conn *conn)
{
    if (conn->is_handshaking)
        vg_handshake_step(conn);
    else
        vg_conn_read_some(conn);
    if (!conn->is_closing && conn->tls && !conn->is_reading_paused &&
        vg_tls_session_has_pending(conn->tls))
        vg_conn_queue(conn);
    vg_conn_update_interest(conn);
    vg_conn_settle(conn);
}

/* ---- beginning and end ---- */

static struct vg_conn *new_conn(struct vg_http_server *s)
{
    struct vg_conn *conn = vg_new(struct vg_conn);
    if (!conn)
        return NULL;
    conn->fd = -1;
    conn->server = s;
    vg_outq_init(&conn->out, &s->pool);
    vg_list_init(&conn->dirty);
    vg_list_init(&conn->shaking);
    vg_list_init(&conn->queued);
    vg_list_push_back(&s->unauthenticated, &conn->unauth_link);
    conn->born_ns = vg_conn_now(conn);
    vg_list_push_back(&s->conns, &conn->link);
    s->n_conns++;
    return conn;
}

/* All but the memory, which libuv may still hold. */
static void take_down(struct vg_conn *conn, int err)
{
    struct vg_http_server *s = conn->server;
    conn->is_closing = true;
    if (conn->is_handshaking)
        vg_handshake_end(conn, false);
    if (conn->codec) {
        conn->codec->ops->closed(conn->codec, err);
        conn->codec->ops->free(conn->codec);
    }
    vg_timer_stop(s->loop, &conn->timer);
    vg_outq_done(&conn->out);
    vg_list_remove(&conn->dirty);
    vg_list_remove(&conn->queued);
    vg_list_remove(&conn->unauth_link);
    vg_list_remove(&conn->link);
    s->n_conns--;
    assert(conn->share.held == 0 && conn->share.charged == 0);
    if (conn->tls)
        vg_net_count(&s->counts.open_tls, UINT64_MAX); /* -1 */
    vg_tls_session_free(conn->tls);
}

static void on_poll_closed(uv_handle_t *handle)
{
    struct vg_conn *conn = VG_CONTAINER_OF(handle, struct vg_conn, poll);
    struct vg_http_server *s = conn->server;
    vg_free(conn);
    vg_net_handle_closed(s);
}

static void tear_down(struct vg_conn *conn, int err)
{
    take_down(conn, err);
    vg_net_leave(conn->server, conn->address);
    uv_close((uv_handle_t *)&conn->poll, on_poll_closed);
    close(conn->fd);
    conn->fd = -1;
}

void vg_conn_settle(struct vg_conn *conn)
{
    if (conn->is_closing && conn->fd >= 0)
        tear_down(conn, conn->close_err);
}

static int start(struct vg_conn *conn, struct vg_tls *tls)
{
    struct vg_http_server *s = conn->server;
    if (!tls)
        return vg_conn_begin(conn);
    int r = vg_tls_session_new(tls, conn->fd, &conn->tls);
    if (r < 0)
        return r;
    vg_net_count(&s->counts.open_tls, 1);
    conn->peer.is_tls = true;
    vg_handshake_begin(conn);
    vg_conn_alarm(conn, vg_conn_now(conn) + s->limits->handshake_ms * VG_NS_PER_MS);
    return 0;
}

int vg_conn_open(struct vg_http_server *s, int take_fd, struct vg_tls *tls,
                 struct vg_net_address *address)
{
    struct vg_conn *conn = new_conn(s);
    int r = conn ? uv_poll_init(vg_loop_uv(s->loop), &conn->poll, take_fd) : -ENOMEM;
    if (r < 0) {
        if (conn)
            take_down(conn, r);
        vg_free(conn);
        vg_net_leave(s, address);
        close(take_fd);
        return r;
    }
    s->n_handles++;
    conn->fd = take_fd;
    conn->address = address;
    setsockopt(take_fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    vg_transport_name_peer(take_fd, conn->peer.address, sizeof conn->peer.address);
    r = start(conn, tls);
    if (r < 0)
        tear_down(conn, r);
    else
        vg_conn_update_interest(conn);
    return r;
}

/* What has come already was sent in good faith. */
void vg_conn_drain(struct vg_conn *conn)
{
    if (conn->is_handshaking)
        vg_conn_alarm(conn, vg_conn_now(conn) + DRAIN_MS * VG_NS_PER_MS);
    if (conn->codec && conn->fd >= 0 && !conn->is_closing && !conn->is_finishing)
        vg_conn_read_some(conn);
    if (conn->codec && !conn->is_closing && !conn->is_finishing)
        conn->codec->ops->drain(conn->codec);
    vg_conn_update_interest(conn);
    vg_conn_settle(conn);
}

void vg_conn_close_all(struct vg_http_server *s, int err)
{
    struct vg_list *n;
    while ((n = s->conns.next) != &s->conns)
        tear_down(VG_CONTAINER_OF(n, struct vg_conn, link), err);
}

/* ---- for tests and fuzzers ---- */

int vg_conn_new_detached(struct vg_http_server *s, struct vg_conn **ret_conn)
{
    struct vg_conn *conn = new_conn(s);
    if (!conn)
        return -ENOMEM;
    *ret_conn = conn;
    return 0;
}

void vg_conn_feed(struct vg_conn *conn, const char *p, size_t n)
{
    if (n)
        vg_conn_deliver(conn, p, n);
    else
        vg_conn_deliver_end(conn);
}

void vg_conn_turn(struct vg_conn *conn)
{
    flush(conn);
}

void vg_conn_took(struct vg_conn *conn, size_t n)
{
    vg_outq_consume(&conn->out, n);
    if (!conn->is_closing)
        conn->codec->ops->sent(conn->codec, n, conn->out.n > 0);
}

void vg_conn_free_detached(struct vg_conn *conn, int err)
{
    take_down(conn, conn->is_closing ? conn->close_err : err);
    vg_free(conn);
}
