/* h2.c - one HTTP/2 connection: an nghttp2 server session between receive() and fill().
 * Each call into nghttp2 is followed by settle(), which tells handlers what came of it; invariants
 * are in h2_int.h. Ends are told when the last byte of an answer has left the connection, which is
 * known by its position in the output. */
#include <stdlib.h>

#include "h2_int.h"
#include "h2_mem.h"

/* Not known before nghttp2 has handed out the frame that ends the stream. */
#define POSITION_UNKNOWN INT64_MAX

static struct vg_h2 *of(struct vg_codec *c)
{
    return VG_CONTAINER_OF(c, struct vg_h2, codec);
}

/* ---- the end of streams ---- */

void vg_h2_stream_gone(struct vg_h2_stream *s, int err)
{
    struct vg_h2 *h = vg_h2_of(s);
    if (s->is_gone)
        return;
    vg_h2_body_done(s);
    s->is_gone = true;
    s->at = err < 0 ? err : POSITION_UNKNOWN;
    vg_outq_done(&s->out);
    vg_h2_stream_to(s, &h->quiet);
    vg_list_remove(&s->turn);
    if (err < 0)
        vg_list_push_front(&h->ended, &s->turn);
    else
        vg_list_push_back(&h->ended, &s->turn);
    vg_h2_speak(h);
}

void vg_h2_stream_reset(struct vg_h2_stream *s, uint32_t code, int err)
{
    struct vg_h2 *h = vg_h2_of(s);
    if (s->is_gone)
        return;
    int r = nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, s->id, code);
    if (r == 0)
        r = nghttp2_session_set_stream_user_data(h->session, s->id, NULL);
    if (r < 0)
        vg_conn_close(h->codec.conn, -ENOMEM);
    vg_h2_stream_gone(s, err);
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *arg)
{
    struct vg_h2_stream *s = nghttp2_session_get_stream_user_data(session, id);
    (void)code;
    (void)arg;
    if (!s)
        return 0;
    bool is_whole = s->x.has_ended && s->out.n == 0 && s->has_sent_head;
    vg_h2_stream_gone(s, is_whole ? 0 : VIGIL_E_CANCELED);
    return 0;
}

static void stream_free(struct vg_h2_stream *s, int err)
{
    struct vg_h2 *h = vg_h2_of(s);
    if (err == 0 && s->x.unsent > 0) /* all of it has moved, and left */
        vg_exchange_sent(&s->x, s->x.unsent);
    vg_exchange_closed(&s->x, err);
    vg_list_remove(&s->turn);
    vg_list_remove(&s->link);
    vg_outq_done(&s->out);
    if (s->is_charged)
        vg_share_give(h->codec.conn, VG_SHARE_STREAM);
    vg_free(s);
    if (--h->n_streams == 0) {
        h->idle_since_ns = vg_conn_now(h->codec.conn);
        vg_conn_alarm(h->codec.conn, h->idle_since_ns + vg_h2_limits(h)->idle_ms * VG_NS_PER_MS);
    }
}

/* After nghttp2 ran: close what has ended and left. */
static void settle(struct vg_h2 *h)
{
    if (h->is_out_of_memory)
        vg_conn_close(h->codec.conn, -ENOMEM);
    int64_t end = (int64_t)(h->n_sent + h->codec.conn->out.n);
    for (struct vg_list *n = h->ended.prev; n != &h->ended; n = n->prev) {
        struct vg_h2_stream *s = VG_CONTAINER_OF(n, struct vg_h2_stream, turn);
        if (s->at != POSITION_UNKNOWN)
            break;
        s->at = end;
    }
    while (!vg_list_is_empty(&h->ended)) {
        struct vg_h2_stream *s = VG_CONTAINER_OF(h->ended.next, struct vg_h2_stream, turn);
        if (s->at > (int64_t)h->n_sent)
            break;
        stream_free(s, (int)VG_MIN(s->at, 0));
    }
}

/* ---- bytes ---- */

static void failed(struct vg_h2 *h, ssize_t error)
{
    struct vg_http_server *server = h->codec.conn->server;
    if (error == NGHTTP2_ERR_FLOODED)
        vg_net_count(&server->counts.floods, 1);
    else if (error == NGHTTP2_ERR_BAD_CLIENT_MAGIC)
        vg_net_count(&server->counts.malformed, 1);
    vg_debug(server->log, "h2_failed", "peer=%s error=%s", h->codec.conn->peer.address,
             nghttp2_strerror((int)error));
    vg_conn_close(h->codec.conn, error == NGHTTP2_ERR_NOMEM ? -ENOMEM : VIGIL_E_CANCELED);
}

static void receive(struct vg_codec *c, const char *p, size_t n)
{
    struct vg_h2 *h = of(c);
    ssize_t r = nghttp2_session_mem_recv(h->session, (const uint8_t *)p, n);
    if (r < 0)
        failed(h, r);
    settle(h);
    vg_h2_speak(h);
}

static void received_end(struct vg_codec *c)
{
    vg_conn_close(c->conn, VIGIL_E_CANCELED);
}

/* Frames into the connection's queue while it has room; DATA goes there by itself. Asking nghttp2
 * costs more than all else here, so it is left alone while it has nothing to say. */
static void pump(struct vg_h2 *h)
{
    const uint8_t *p;
    while (vg_conn_has_room(h->codec.conn)) {
        ssize_t n = nghttp2_session_mem_send(h->session, &p);
        if (n == 0) {
            h->is_quiet = vg_conn_has_room(h->codec.conn);
            return;
        }
        if (n > 0 && vg_outq_copy(&h->codec.conn->out, p, (size_t)n) < 0)
            n = NGHTTP2_ERR_NOMEM;
        if (n < 0) {
            failed(h, n);
            return;
        }
    }
}

static void give_up(struct vg_h2 *h, struct vg_list *list)
{
    VG_LIST_FOREACH_SAFE (n, list) {
        struct vg_h2_stream *s = VG_CONTAINER_OF(n, struct vg_h2_stream, link);
        if (s->is_gone)
            continue;
        nghttp2_session_set_stream_user_data(h->session, s->id, NULL);
        vg_h2_stream_gone(s, VIGIL_E_CANCELED);
    }
}

/* The last GOAWAY has been said and no stream is left, or none counts any more. */
static void bow_out(struct vg_h2 *h)
{
    if (h->codec.conn->is_finishing)
        return;
    /* in_line first: those who are given up there let nobody else move on. */
    give_up(h, &h->in_line);
    give_up(h, &h->receiving);
    give_up(h, &h->waiting);
    give_up(h, &h->draining);
    give_up(h, &h->quiet);
    settle(h);
    vg_conn_finish(h->codec.conn);
}

static void fill(struct vg_codec *c)
{
    struct vg_h2 *h = of(c);
    if (h->is_quiet) {
        settle(h); /* what handlers gave up needs no frame of ours */
        return;
    }
    do {
        pump(h);
        vg_h2_tell_progress(h);
        settle(h);
    } while (!h->is_quiet && vg_conn_has_room(c->conn) && !c->conn->is_closing);
    if (!nghttp2_session_want_read(h->session) && !nghttp2_session_want_write(h->session))
        bow_out(h);
}

static void sent(struct vg_codec *c, size_t n, bool is_blocked)
{
    struct vg_h2 *h = of(c);
    h->n_sent += n;
    if (c->conn->out.n == 0) {
        vg_pace_stop(&h->pace);
    } else if (is_blocked) {
        uint64_t now = vg_conn_now(c->conn);
        if (h->pace.since_ns == 0 || n > 0)
            h->held = vg_conn_held(c->conn);
        vg_pace_wait(&h->pace, now);
        vg_pace_moved(&h->pace, n, now);
        vg_conn_alarm(c->conn, vg_pace_due(&h->pace, vg_h2_limits(h)->stall_ms, 0));
    }
    settle(h);
}

/* ---- time and drain ---- */

void vg_h2_terminate(struct vg_h2 *h, uint32_t code)
{
    if (h->is_terminated)
        return;
    h->is_terminated = true;
    if (nghttp2_session_terminate_session(h->session, code) < 0)
        vg_conn_close(h->codec.conn, -ENOMEM);
    vg_h2_speak(h);
}

/* From now on no new stream is taken, and the session ends with the last one. */
void vg_h2_last_goaway(struct vg_h2 *h)
{
    int32_t last = nghttp2_session_get_last_proc_stream_id(h->session);
    if (h->notice_ns == 0)
        return;
    h->notice_ns = 0;
    if (nghttp2_submit_goaway(h->session, 0, last, NGHTTP2_NO_ERROR, NULL, 0) < 0)
        vg_conn_close(h->codec.conn, -ENOMEM);
    vg_h2_speak(h);
}

/* The notice first: requests that are under way were sent in good faith. When the client answers
 * the ping that follows, or after a while, the last GOAWAY says which ones were taken. */
static void drain(struct vg_codec *c)
{
    struct vg_h2 *h = of(c);
    if (h->is_draining)
        return;
    h->is_draining = true;
    h->notice_ns = vg_conn_now(c->conn);
    if (nghttp2_submit_shutdown_notice(h->session) < 0 ||
        nghttp2_submit_ping(h->session, 0, NULL) < 0)
        vg_conn_close(c->conn, -ENOMEM);
    vg_conn_alarm(c->conn, h->notice_ns + VG_H2_NOTICE_NS);
    vg_h2_speak(h);
}

/* Did this time come? If not, ask for it. since 0: it does not run. */
static bool is_due(struct vg_h2 *h, uint64_t since_ns, uint64_t length_ns, uint64_t now_ns)
{
    if (since_ns == 0)
        return false;
    if (since_ns + length_ns <= now_ns)
        return true;
    vg_conn_alarm(h->codec.conn, since_ns + length_ns);
    return false;
}

static void tick(struct vg_codec *c, uint64_t now_ns)
{
    struct vg_h2 *h = of(c);
    vg_pace_look(&h->pace, c->conn, &h->held, now_ns);
    uint64_t due = vg_pace_due(&h->pace, vg_h2_limits(h)->stall_ms, 0);
    if (due <= now_ns) {
        vg_net_count(&c->conn->server->counts.timeouts, 1);
        vg_conn_close(c->conn, VIGIL_E_TIMEOUT);
        return;
    }
    vg_conn_alarm(c->conn, due);
    if (is_due(h, h->flood_ns, VG_H2_FLOOD_NS, now_ns)) {
        vg_conn_close(c->conn, VIGIL_E_CANCELED);
        return;
    }
    vg_h2_recv_tick(h, now_ns);
    vg_h2_answer_tick(h, now_ns);
    if (is_due(h, h->notice_ns, VG_H2_NOTICE_NS, now_ns))
        vg_h2_last_goaway(h);
    if (is_due(h, h->idle_since_ns, vg_h2_limits(h)->idle_ms * VG_NS_PER_MS, now_ns))
        vg_h2_terminate(h, NGHTTP2_NO_ERROR);
    settle(h);
}

static bool is_idle(const struct vg_codec *c)
{
    return VG_CONTAINER_OF(c, const struct vg_h2, codec)->n_streams == 0;
}

/* ---- birth and death ---- */

static void closed(struct vg_codec *c, int err)
{
    struct vg_h2 *h = of(c);
    struct vg_list *lists[] = {&h->quiet, &h->receiving, &h->in_line, &h->waiting, &h->draining};
    for (size_t i = 0; i < VG_ARRAY_LEN(lists); i++)
        while (!vg_list_is_empty(lists[i])) {
            struct vg_h2_stream *s = VG_CONTAINER_OF(lists[i]->next, struct vg_h2_stream, link);
            bool has_failed = s->is_gone && s->at < 0;
            s->is_gone = true;
            stream_free(s, has_failed ? (int)s->at : err < 0 ? err : VIGIL_E_CANCELED);
        }
}

static void h2_free(struct vg_codec *c)
{
    struct vg_h2 *h = of(c);
    nghttp2_session_del(h->session);
    vg_net_count(&c->conn->server->counts.open_h2, UINT64_MAX);
    vg_free(h);
}

static const struct vg_codec_ops ops = {
    .exchange = &vg_h2_exchange_ops,
    .receive = receive,
    .received_end = received_end,
    .fill = fill,
    .sent = sent,
    .tick = tick,
    .drain = drain,
    .is_idle = is_idle,
    .closed = closed,
    .free = h2_free,
};

static int session_new(struct vg_h2 *h, const nghttp2_session_callbacks *cb)
{
    nghttp2_mem mem = vg_h2_mem(&h->is_out_of_memory);
    uint64_t rate = vg_h2_limits(h)->resets_per_second;
    nghttp2_option *o;
    if (nghttp2_option_new(&o) < 0)
        return -ENOMEM;
    nghttp2_option_set_no_auto_window_update(o, 1);
    nghttp2_option_set_no_closed_streams(o, 1);
    nghttp2_option_set_max_outbound_ack(o, VG_H2_ACKS_MAX);
    nghttp2_option_set_max_continuations(o, VG_H2_CONTINUATIONS_MAX);
    /* A second line: it counts resets of answered streams too, which h2_recv.c lets pass. */
    nghttp2_option_set_stream_reset_rate_limit(o, 10 * rate + vg_h2_limits(h)->streams, 10 * rate);
    int r = nghttp2_session_server_new3(&h->session, cb, h, o, &mem);
    nghttp2_option_del(o);
    return r < 0 ? -ENOMEM : 0;
}

static int submit_settings(struct vg_h2 *h)
{
    const struct vg_http_limits *limits = vg_h2_limits(h);
    nghttp2_settings_entry set[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits->streams},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)VG_MIN(limits->head_bytes, UINT32_MAX)},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
    };
    int r = nghttp2_submit_settings(h->session, 0, set, VG_ARRAY_LEN(set));
    if (r == 0)
        r = nghttp2_session_set_local_window_size(h->session, 0, 0, VG_H2_CONN_WINDOW);
    return r < 0 ? -ENOMEM : 0;
}

static int open_session(struct vg_h2 *h)
{
    nghttp2_session_callbacks *cb;
    if (nghttp2_session_callbacks_new(&cb) < 0)
        return -ENOMEM;
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
    vg_h2_recv_callbacks(cb);
    vg_h2_answer_callbacks(cb);
    int r = session_new(h, cb);
    nghttp2_session_callbacks_del(cb);
    if (r == 0)
        r = submit_settings(h);
    return h->is_out_of_memory ? -ENOMEM : r;
}

int vg_h2_new(struct vg_conn *conn, struct vg_codec **ret_codec)
{
    struct vg_h2 *h = vg_new(struct vg_h2);
    if (!h)
        return -ENOMEM;
    h->codec = (struct vg_codec){&ops, conn};
    struct vg_list *lists[] = {&h->quiet,   &h->touched, &h->ended,   &h->receiving,
                               &h->in_line, &h->waiting, &h->draining};
    for (size_t i = 0; i < VG_ARRAY_LEN(lists); i++)
        vg_list_init(lists[i]);
    h->head_since_ns = h->idle_since_ns = h->calm_ns = vg_conn_now(conn);
    h->calm = vg_h2_limits(h)->resets_per_second * VG_NS_PER_S;
    vg_net_count(&conn->server->counts.open_h2, 1);
    int r = open_session(h);
    if (r < 0) {
        h2_free(&h->codec);
        return r;
    }
    vg_conn_alarm(conn, h->head_since_ns + vg_h2_limits(h)->head_ms * VG_NS_PER_MS);
    vg_conn_dirty(conn);
    *ret_codec = &h->codec;
    return 0;
}
