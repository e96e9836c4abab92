/* h1.c - the HTTP/1.1 codec: its states and times; see h1_int.h. */
#include <errno.h>

#include "base/alloc.h"
#include "h1_int.h"

static const char h2_preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
#define PREFACE_LEN (sizeof h2_preface - 1)
#define NOT_H2 UINT8_MAX

static struct vg_h1 *h1_of(struct vg_codec *c)
{
    return VG_CONTAINER_OF(c, struct vg_h1, codec);
}

static const struct vg_http_limits *limits_of(const struct vg_h1 *h)
{
    return h->codec.conn->server->limits;
}

/* ---- refusing ---- */

static void refuse(struct vg_h1 *h, int status, const char *why)
{
    struct vg_net_counts *counts = &h->codec.conn->server->counts;
    vg_net_count(status == 408 ? &counts->timeouts : &counts->malformed, 1);
    h->is_ending = true;
    h->is_keep_alive = false;
    vg_pace_stop(&h->x.pace);
    if (!h->x.has_responded) /* else the answer that is on its way stays the answer */
        vg_exchange_refuse(&h->x, status, why);
}

/* ---- receiving ---- */

static void wait_for_request(struct vg_h1 *h, uint64_t ms)
{
    h->state = VG_H1_IDLE;
    h->read_due_ns = vg_conn_now(h->codec.conn) + ms * VG_NS_PER_MS;
    vg_conn_alarm(h->codec.conn, h->read_due_ns);
}

static void become_h2(struct vg_h1 *h, struct vg_slice rest)
{
    struct vg_conn *conn = h->codec.conn;
    struct vg_codec *h2 = NULL;
    int r = vg_h2_new(conn, &h2);
    if (r == 0) {
        h2->ops->receive(h2, h2_preface, PREFACE_LEN);
        r = vg_conn_switch(conn, h2, rest);
    }
    if (r < 0)
        vg_conn_close(conn, r);
}

static void use(struct vg_h1 *h, const char *p, size_t n);

/* The first bytes of a connection: HTTP/2 with prior knowledge begins with its preface. True: n
 * bytes were dealt with. */
static bool sniff(struct vg_h1 *h, const char *p, size_t n)
{
    size_t used = 0;
    while (used < n && h->preface < PREFACE_LEN && p[used] == h2_preface[h->preface]) {
        used++;
        h->preface++;
    }
    if (h->preface == PREFACE_LEN) {
        become_h2(h, vg_slice(p + used, n - used));
        return true;
    }
    if (used == n)
        return true;
    size_t held = h->preface - used; /* of earlier pieces */
    h->preface = NOT_H2;
    use(h, h2_preface, held);
    return false;
}

/* Parse until the request is whole, refused, or the bytes are used up; how many were used. */
static size_t parse(struct vg_h1 *h, const char *p, size_t n)
{
    size_t used = 0;
    while (used < n && h->state != VG_H1_WHOLE && !h->is_ending) {
        if (h->state == VG_H1_IDLE) {
            int r = vg_h1_begin(h);
            if (r < 0) {
                vg_conn_close(h->codec.conn, r);
                return n;
            }
        }
        used += vg_h1_parse(h, p + used, n - used);
        if (h->refuse_status && !h->codec.conn->is_closing)
            refuse(h, h->refuse_status, h->refuse_why);
    }
    if (h->state == VG_H1_WHOLE && h->x.state == VG_X_BODY)
        vg_exchange_request(&h->x);
    vg_conn_dirty(h->codec.conn);
    return used;
}

/* What comes after a whole request waits. */
static void keep(struct vg_h1 *h, const char *p, size_t n)
{
    h->ahead.max = limits_of(h)->read_ahead + VG_NET_READ_MAX;
    int r = vg_share_hold(h->codec.conn, n);
    if (r == 0) {
        r = vg_buf_append(&h->ahead, p, n);
        if (r < 0)
            vg_share_give(h->codec.conn, n);
    }
    if (r < 0)
        vg_conn_close(h->codec.conn, r);
    else if (h->ahead.n >= limits_of(h)->read_ahead)
        vg_conn_pause_reading(h->codec.conn, true);
}

static void use(struct vg_h1 *h, const char *p, size_t n)
{
    size_t used = h->state == VG_H1_WHOLE ? 0 : parse(h, p, n);
    if (used < n && !h->is_ending)
        keep(h, p + used, n - used);
}

static void receive(struct vg_codec *c, const char *p, size_t n)
{
    struct vg_h1 *h = h1_of(c);
    if (h->is_ending)
        return;
    if (h->ws && h->state == VG_H1_WHOLE && h->ahead.n == 0)
        vg_h1_receive_ws(h, p, n);
    else if (h->preface == NOT_H2 || !sniff(h, p, n))
        use(h, p, n);
}

static void drop_ahead(struct vg_h1 *h)
{
    vg_share_give(h->codec.conn, h->ahead.n);
    vg_buf_done(&h->ahead);
    h->ahead_at = 0;
    vg_conn_pause_reading(h->codec.conn, false);
}

/* Nothing more comes: a request that is not whole will never be, a watch has lost its watcher. */
static void received_end(struct vg_codec *c)
{
    struct vg_h1 *h = h1_of(c);
    struct vg_conn *conn = h->codec.conn;
    if (h->state == VG_H1_IDLE)
        vg_conn_finish(conn);
    else if (h->state != VG_H1_WHOLE && !h->is_ending)
        vg_conn_close(conn, VIGIL_E_CANCELED);
    else
        vg_conn_dirty(conn); /* fill() looks at watches */
}

/* ---- the end of an exchange ---- */

static void next_request(struct vg_h1 *h)
{
    struct vg_conn *conn = h->codec.conn;
    wait_for_request(h, limits_of(h)->idle_ms);
    if (h->ahead.n) {
        h->ahead_at += parse(h, h->ahead.p + h->ahead_at, h->ahead.n - h->ahead_at);
        if (h->ahead_at == h->ahead.n || h->is_ending)
            drop_ahead(h);
    }
    if (conn->is_peer_done && h->state == VG_H1_IDLE)
        vg_conn_finish(conn);
    else if (conn->is_peer_done && h->state != VG_H1_WHOLE && !h->is_ending)
        vg_conn_close(conn, VIGIL_E_CANCELED);
}

static bool is_exchange_over(const struct vg_h1 *h)
{
    const struct vg_http_exchange *x = &h->x;
    if (h->state == VG_H1_IDLE || !x->has_ended || x->unsent)
        return false;
    return h->state == VG_H1_WHOLE || h->is_ending || !h->is_keep_alive;
}

static void end_exchange(struct vg_h1 *h)
{
    struct vg_conn *conn = h->codec.conn;
    bool goes_on = h->is_keep_alive && !h->is_draining && !h->is_ending;
    vg_exchange_closed(&h->x, 0);
    if (goes_on)
        next_request(h);
    else {
        h->is_ending = true;
        vg_conn_finish(conn);
    }
}

static void end_ws(struct vg_h1 *h)
{
    vg_exchange_closed(&h->x, VIGIL_E_CANCELED);
    h->is_ending = true;
    vg_conn_finish(h->codec.conn);
}

static void fill(struct vg_codec *c)
{
    struct vg_h1 *h = h1_of(c);
    struct vg_http_exchange *x = &h->x;
    bool is_watch = x->is_watch && !x->has_ended && h->state == VG_H1_WHOLE;
    bool is_gone = c->conn->is_peer_done || c->conn->is_hung_up;
    if (x->is_aborted || (is_watch && is_gone)) {
        vg_conn_close(c->conn, VIGIL_E_CANCELED);
        return;
    }
    if (h->ws && h->ahead.n) {
        vg_h1_receive_ws(h, h->ahead.p + h->ahead_at, h->ahead.n - h->ahead_at);
        drop_ahead(h);
    }
    if (x->has_ended)
        vg_http_release_request(x);
    if (h->is_ws_over && x->state != VG_X_CLOSED)
        end_ws(h);
    else if (is_exchange_over(h) && x->state != VG_X_CLOSED)
        end_exchange(h);
}

/* ---- time ---- */

static uint64_t answer_due(const struct vg_h1 *h)
{
    return vg_pace_due(&h->x.pace, limits_of(h)->stall_ms,
                       h->x.is_watch ? 0 : limits_of(h)->min_rate);
}

static void sent(struct vg_codec *c, size_t n, bool is_blocked)
{
    struct vg_h1 *h = h1_of(c);
    struct vg_http_exchange *x = &h->x;
    bool is_answering = h->state == VG_H1_WHOLE || h->is_ending;
    if (is_answering && (is_blocked || x->pace.since_ns)) {
        uint64_t now = vg_conn_now(c->conn);
        vg_pace_moved(&x->pace, n, now);
        if (x->pace.since_ns == 0 || n > 0)
            h->held = vg_conn_held(c->conn);
        vg_pace_wait(&x->pace, now);
        if (c->conn->out.n == 0)
            vg_pace_stop(&x->pace);
        vg_conn_alarm(c->conn, answer_due(h));
    }
    if (x->state != VG_X_CLOSED && x->state != VG_X_NONE)
        vg_exchange_sent(x, VG_MIN(n, x->unsent));
    fill(c);
}

uint64_t vg_h1_body_due(const struct vg_h1 *h)
{
    const struct vg_http_limits *limits = limits_of(h);
    return VG_MIN(vg_pace_due(&h->x.pace, limits->body_ms, limits->min_rate),
                  vg_pace_end(&h->x.pace, limits->request_ms));
}

static void too_late(struct vg_h1 *h)
{
    struct vg_conn *conn = h->codec.conn;
    if (h->state == VG_H1_IDLE)
        vg_conn_finish(conn);
    else if (!h->is_ending && h->state != VG_H1_WHOLE && !h->x.has_responded)
        refuse(h, 408, "The request did not arrive in time");
    else {
        vg_net_count(&conn->server->counts.timeouts, 1);
        vg_conn_close(conn, VIGIL_E_TIMEOUT);
    }
}

static uint64_t due(const struct vg_h1 *h)
{
    if (h->state == VG_H1_WHOLE || h->is_ending)
        return answer_due(h);
    if (h->state == VG_H1_BODY)
        return vg_h1_body_due(h);
    return h->read_due_ns;
}

static void tick(struct vg_codec *c, uint64_t now_ns)
{
    struct vg_h1 *h = h1_of(c);
    if (due(h) <= now_ns && (h->state == VG_H1_WHOLE || h->is_ending))
        vg_pace_look(&h->x.pace, c->conn, &h->held, now_ns);
    if (due(h) <= now_ns)
        too_late(h);
    vg_conn_alarm(c->conn, due(h));
}

/* ---- the rest ---- */

static bool is_idle(const struct vg_codec *c)
{
    return h1_of((struct vg_codec *)(uintptr_t)c)->state == VG_H1_IDLE;
}

static void drain(struct vg_codec *c)
{
    struct vg_h1 *h = h1_of(c);
    h->is_draining = true;
    if (h->state == VG_H1_IDLE)
        vg_conn_finish(c->conn);
}

static void closed(struct vg_codec *c, int err)
{
    vg_exchange_closed(&h1_of(c)->x, err);
}

static void free_h1(struct vg_codec *c)
{
    struct vg_h1 *h = h1_of(c);
    vg_ws_free(h->ws);
    vg_share_give(c->conn, h->ahead.n);
    vg_buf_done(&h->ahead);
    vg_free(h);
}

static const struct vg_codec_ops ops = {
    .exchange = &vg_h1_exchange_ops,
    .receive = receive,
    .received_end = received_end,
    .fill = fill,
    .sent = sent,
    .tick = tick,
    .drain = drain,
    .is_idle = is_idle,
    .closed = closed,
    .free = free_h1,
};

int vg_h1_new(struct vg_conn *conn, struct vg_codec **ret_codec)
{
    struct vg_h1 *h = vg_new(struct vg_h1);
    if (!h)
        return -ENOMEM;
    h->codec = (struct vg_codec){.ops = &ops, .conn = conn};
    h->x = (struct vg_http_exchange){.conn = conn};
    h->preface = conn->tls ? NOT_H2 : 0;
    wait_for_request(h, VG_MIN(limits_of(h)->idle_ms, limits_of(h)->head_ms));
    *ret_codec = &h->codec;
    return 0;
}
