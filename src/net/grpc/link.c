/* link.c - one connection to an endpoint: its life, bytes and silence; see pool_int.h. How it is
 * made is in link_connect.c. */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "net/server_int.h"
#include "net/transport.h"
#include "pool_int.h"

/* 16 reads of 64 KiB: a turn of the loop is shared with others. */
#define READS_PER_TURN 16
/* 1 MiB likewise. */
#define FLUSH_BUDGET ((size_t)1 << 20)

static void on_poll(uv_poll_t *handle, int status, int events);
static void on_timer(struct vg_timer *t);

static uint64_t now_of(const struct vg_grpc_link *l)
{
    return vg_grpc_pool_now(l->channel->pool);
}

void vg_grpc_link_alarm(struct vg_grpc_link *l, uint64_t delay_ns)
{
    vg_timer_start(l->channel->pool->loop, &l->timer, delay_ns, on_timer);
}

/* ---- the end ---- */

static void on_poll_closed(uv_handle_t *handle)
{
    vg_free(VG_CONTAINER_OF(handle, struct vg_grpc_link, poll));
}

static void close_socket(struct vg_grpc_link *l)
{
    vg_tls_session_free(vg_steal(l->tls));
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}

void vg_grpc_link_kill(struct vg_grpc_link *l, const char *why)
{
    l->state = VG_GRPC_LINK_DEAD;
    vg_timer_stop(l->channel->pool->loop, &l->timer);
    vg_list_remove(&l->dirty);
    vg_list_remove(&l->link);
    vg_grpc_link_give_up(l);
    if (l->has_session) {
        l->channel->pool->counts.bytes_in += l->session.bytes_in;
        l->channel->pool->counts.bytes_out += l->session.n_sent;
        vg_grpc_session_lost(&l->session, why);
        vg_grpc_session_done(&l->session);
    }
    if (l->has_poll)
        uv_close((uv_handle_t *)&l->poll, on_poll_closed);
    close_socket(l);
    if (!l->has_poll)
        vg_free(l);
}

/* Whatever it was doing, it cannot go on. */
void vg_grpc_link_down(struct vg_grpc_link *l, const char *why)
{
    char text[256];
    if (l->state == VG_GRPC_LINK_DEAD)
        return;
    l->state = VG_GRPC_LINK_DEAD;
    snprintf(text, sizeof text, "%.*s", (int)sizeof text - 1, why);
    vg_grpc_channel_down(l->channel, l, text);
    vg_grpc_link_kill(l, text);
}

/* ---- the session's ops ---- */

static struct vg_grpc_link *link_of(struct vg_grpc_session *s)
{
    return VG_CONTAINER_OF(s, struct vg_grpc_link, session);
}

static void on_wake(struct vg_grpc_session *s)
{
    struct vg_grpc_link *l = link_of(s);
    if (l->state != VG_GRPC_LINK_DEAD && vg_list_is_empty(&l->dirty))
        vg_list_push_back(&l->channel->pool->dirty, &l->dirty);
}

static void on_ready(struct vg_grpc_session *s)
{
    struct vg_grpc_link *l = link_of(s);
    if (l->state != VG_GRPC_LINK_GREETING)
        return;
    l->state = VG_GRPC_LINK_READY;
    l->up_ns = now_of(l);
    vg_grpc_link_alarm(l, l->channel->pool->opts.keepalive_ms * VG_NS_PER_MS);
    vg_grpc_channel_up(l->channel, l);
}

static void on_going(struct vg_grpc_session *s, const char *why)
{
    struct vg_grpc_link *l = link_of(s);
    if (l->state != VG_GRPC_LINK_READY && l->state != VG_GRPC_LINK_GREETING)
        return;
    l->state = VG_GRPC_LINK_GOING;
    vg_grpc_channel_going(l->channel, l, why);
}

static void on_ponged(struct vg_grpc_session *s)
{
    link_of(s)->ping_ns = 0;
}

static void on_ended(struct vg_grpc_session *s, struct vg_grpc_call *c)
{
    vg_grpc_call_ended(link_of(s)->channel, c);
}

static const struct vg_grpc_session_ops session_ops = {
    .wake = on_wake,
    .ready = on_ready,
    .going = on_going,
    .ponged = on_ponged,
    .ended = on_ended,
};

static int begin_session(struct vg_grpc_link *l)
{
    const struct vg_grpc_channel *ch = l->channel;
    struct vg_grpc_pool *pool = ch->pool;
    struct vg_grpc_session_opts opts = {
        .ops = &session_ops,
        .name = ch->url,
        .authority = ch->authority,
        .is_tls = ch->is_tls,
        .message_max = pool->opts.message_max,
        .window = (uint32_t)pool->opts.window,
        .pool = &pool->outq,
    };
    int r = vg_grpc_session_init(&l->session, &opts);
    if (r < 0)
        return r;
    l->has_session = true;
    l->state = VG_GRPC_LINK_GREETING;
    l->heard_ns = now_of(l);
    on_wake(&l->session);
    return 0;
}

void vg_grpc_link_greet(struct vg_grpc_link *l)
{
    if (begin_session(l) < 0)
        vg_grpc_link_down(l, "out of memory");
}

/* ---- silence ---- */

static void doubt(struct vg_grpc_link *l, uint64_t now)
{
    l->ping_ns = l->pinged_ns = now;
    vg_grpc_link_alarm(l, l->channel->pool->opts.keepalive_timeout_ms * VG_NS_PER_MS);
    if (vg_grpc_session_ping(&l->session) < 0)
        l->session.is_out_of_memory = true; /* seen by the flush that follows */
}

static void watch_silence(struct vg_grpc_link *l)
{
    const struct vg_grpc_pool_opts *o = &l->channel->pool->opts;
    uint64_t now = now_of(l), due = l->heard_ns + o->keepalive_ms * VG_NS_PER_MS;
    char why[128];
    if (l->ping_ns && l->heard_ns < l->ping_ns) {
        snprintf(why, sizeof why, "it is silent: no answer to a ping for %llu ms",
                 (unsigned long long)o->keepalive_timeout_ms);
        vg_grpc_link_down(l, why);
        return;
    }
    l->ping_ns = 0;
    if (l->session.n_streams == 0)
        vg_grpc_link_alarm(l, o->keepalive_ms * VG_NS_PER_MS);
    else if (due > now)
        vg_grpc_link_alarm(l, due - now);
    else
        doubt(l, now);
}

static const char *doing(const struct vg_grpc_link *l)
{
    switch (l->state) {
    case VG_GRPC_LINK_RESOLVING:
        return "resolving its name";
    case VG_GRPC_LINK_CONNECTING:
        return "connecting";
    case VG_GRPC_LINK_SHAKING:
        return "the TLS handshake";
    default:
        return "waiting for its first words of HTTP/2";
    }
}

static void on_timer(struct vg_timer *t)
{
    struct vg_grpc_link *l = VG_CONTAINER_OF(t, struct vg_grpc_link, timer);
    char why[128];
    if (l->state >= VG_GRPC_LINK_READY) {
        watch_silence(l);
        return;
    }
    if (vg_grpc_link_try_next(l))
        return;
    if (l->trouble[0] && l->state == VG_GRPC_LINK_RESOLVING) {
        vg_grpc_link_down(l, l->trouble);
        return;
    }
    snprintf(why, sizeof why, "timed out after %llu ms, %s",
             (unsigned long long)l->channel->pool->opts.connect_ms, doing(l));
    vg_grpc_link_down(l, why);
}

void vg_grpc_link_used(struct vg_grpc_link *l)
{
    if (l->session.n_streams != 1 || l->ping_ns)
        return;
    l->heard_ns = now_of(l); /* it had no reason to speak until now */
    vg_grpc_link_alarm(l, l->channel->pool->opts.keepalive_ms * VG_NS_PER_MS);
}

/* Not more often than servers allow: etcd cuts a connection with pings less than 5 s apart, and
 * the calls on it with that. */
void vg_grpc_link_doubt(struct vg_grpc_link *l)
{
    uint64_t now = now_of(l), apart = l->channel->pool->opts.keepalive_ms * VG_NS_PER_MS;
    bool is_soon = l->pinged_ns && now - l->pinged_ns < apart;
    if (l->state == VG_GRPC_LINK_READY && !l->ping_ns && !is_soon)
        doubt(l, now);
}

/* ---- bytes ---- */

void vg_grpc_link_poll(struct vg_grpc_link *l)
{
    if (l->state == VG_GRPC_LINK_DEAD || l->fd < 0)
        return;
    bool wants_write = l->is_blocked || l->is_reading_blocked;
    int events = UV_READABLE | (wants_write ? UV_WRITABLE : 0);
    if (l->state == VG_GRPC_LINK_CONNECTING)
        events = UV_WRITABLE;
    if (events != l->poll_events && uv_poll_start(&l->poll, events, on_poll) == 0)
        l->poll_events = events;
}

static void broke(struct vg_grpc_link *l, ssize_t err)
{
    const char *why = l->tls ? vg_tls_session_trouble(l->tls) : NULL;
    char text[256];
    snprintf(text, sizeof text, "the connection broke: %s",
             why ? why : strerror(err < 0 ? (int)-err : EPIPE));
    vg_grpc_link_down(l, text);
}

/* Who is there instead of an HTTP/2 server? Said in words that help. */
static const char *foreign(const struct vg_grpc_link *l, const char *p, size_t n)
{
    if (l->session.bytes_in > 0 || n < 5)
        return NULL;
    if (memcmp(p, "HTTP/", 5) == 0)
        return "it answers in HTTP/1.1: not a gRPC endpoint";
    if (p[0] == 0x15 && p[1] == 3)
        return "it speaks TLS: use https:// for it";
    return NULL;
}

static void read_some(struct vg_grpc_link *l)
{
    char *in = l->channel->pool->in;
    struct vg_status status;
    for (int i = 0; i < READS_PER_TURN && l->state != VG_GRPC_LINK_DEAD; i++) {
        ssize_t n = vg_transport_read(l->fd, l->tls, in, VG_NET_READ_MAX);
        l->is_reading_blocked = n == -EINPROGRESS;
        if (n == -EAGAIN || n == -EINPROGRESS)
            return;
        if (n <= 0) {
            if (n < 0)
                broke(l, n);
            else
                vg_grpc_link_down(l, l->session.bytes_in
                                         ? "it closed the connection"
                                         : "it closed the connection without a word");
            return;
        }
        const char *who = foreign(l, in, (size_t)n);
        l->heard_ns = now_of(l);
        if (who || vg_grpc_session_receive(&l->session, in, (size_t)n, &status) < 0) {
            vg_grpc_link_down(l, who ? who : status.message);
            return;
        }
        if (!l->tls && (size_t)n < VG_NET_READ_MAX)
            return;
    }
}

/* What may have reached the server although the queue still has it: with TLS a record can have left
 * in part, and its bytes are given back only when all of it has. */
static size_t held_by_tls(const struct vg_grpc_link *l, bool is_blocked)
{
    return l->tls && is_blocked ? l->session.out.n : 0;
}

static void send_all(struct vg_grpc_link *l)
{
    struct vg_grpc_session *s = &l->session;
    struct vg_status status;
    size_t budget = FLUSH_BUDGET;
    while (!l->is_blocked) {
        if (vg_grpc_session_fill(s, &status) < 0) {
            vg_grpc_link_down(l, status.message);
            return;
        }
        if (s->out.n == 0)
            return;
        bool is_blocked = false;
        ssize_t n =
            vg_transport_send(l->fd, l->tls, &s->out, l->channel->pool->staging, &is_blocked);
        if (n < 0) {
            vg_grpc_session_sent(s, 0, l->tls ? s->out.n : 0);
            broke(l, n);
            return;
        }
        vg_grpc_session_sent(s, (size_t)n, held_by_tls(l, is_blocked));
        budget -= VG_MIN(budget, (size_t)n);
        l->is_blocked = is_blocked || budget == 0;
    }
}

void vg_grpc_link_flush(struct vg_grpc_link *l)
{
    if (l->state < VG_GRPC_LINK_GREETING || l->state == VG_GRPC_LINK_DEAD)
        return;
    if (!l->is_blocked)
        send_all(l);
    vg_grpc_link_poll(l);
}

/* libuv says no more than that something is wrong, and stops polling: reading tells what. */
static void on_trouble(struct vg_grpc_link *l)
{
    int err = 0;
    socklen_t n = sizeof err;
    l->poll_events = 0;
    read_some(l);
    if (l->state == VG_GRPC_LINK_DEAD)
        return;
    if (getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &err, &n) == 0 && err)
        broke(l, -err);
}

static void on_poll(uv_poll_t *handle, int status, int events)
{
    struct vg_grpc_link *l = VG_CONTAINER_OF(handle, struct vg_grpc_link, poll);
    if (l->state == VG_GRPC_LINK_DEAD)
        return;
    if (l->state == VG_GRPC_LINK_CONNECTING) {
        vg_grpc_link_connected(l);
    } else if (l->state == VG_GRPC_LINK_SHAKING) {
        l->poll_events = status < 0 ? 0 : l->poll_events;
        vg_grpc_link_shake(l);
    } else if (status < 0) {
        on_trouble(l);
    } else {
        if (events & UV_WRITABLE) {
            l->is_blocked = false;
            on_wake(&l->session);
        }
        if (events & UV_READABLE || l->is_reading_blocked)
            read_some(l);
    }
    vg_grpc_link_poll(l);
}

/* ---- the beginning ---- */

int vg_grpc_link_new(struct vg_grpc_channel *ch, struct vg_grpc_link **ret_link)
{
    struct vg_grpc_link *l = vg_new(struct vg_grpc_link);
    if (!l)
        return -ENOMEM;
    l->channel = ch;
    l->fd = -1;
    vg_list_init(&l->dirty);
    vg_list_push_back(&ch->links, &l->link);
    uint64_t limit = ch->pool->opts.connect_ms * VG_NS_PER_MS;
    l->due_ns = now_of(l) + limit;
    vg_grpc_link_alarm(l, limit);
    int r = vg_grpc_link_begin(l);
    if (r < 0) {
        vg_grpc_link_kill(l, "out of memory");
        return r;
    }
    *ret_link = l;
    return 0;
}
