/* exchange.c - the life of an exchange, and http.h's functions on it; see exchange.h.
 *   X1 on_closed comes exactly once, and only after on_head.
 *   X2 what the handler calls changes flags and queues; it never calls the handler (C2). */
#include "exchange.h"

#include <errno.h>

#include "conn_int.h"
#include "request.h"
#include "ws.h"

static const struct vg_http_handler *handler_of(const struct vg_http_exchange *x)
{
    return x->conn->server->handler;
}

static const struct vg_exchange_ops *ops_of(const struct vg_http_exchange *x)
{
    return x->conn->codec->ops->exchange;
}

/* Can still be answered. */
static bool is_open(const struct vg_http_exchange *x)
{
    return x->state > VG_X_NONE && x->state < VG_X_CLOSED && !x->is_aborted && !x->conn->is_closing;
}

/* ---- its life ---- */

bool vg_exchange_head(struct vg_http_exchange *x)
{
    vg_exchange_seal(x);
    if (x->req->pub.carrier == VG_HTTP_1_1)
        x->req->pub.wants_websocket = vg_ws_is_upgrade(&x->req->pub);
    x->state = VG_X_BODY;
    x->conn->server->n_exchanges++;
    vg_net_count(&x->conn->server->counts.requests, 1);
    handler_of(x)->on_head(x, handler_of(x)->arg);
    return !x->has_responded && !x->is_aborted;
}

size_t vg_exchange_body_size(const struct vg_http_exchange *x)
{
    return x->req ? x->req->body.n : 0;
}

void vg_exchange_request(struct vg_http_exchange *x)
{
    if (x->state != VG_X_BODY)
        return;
    x->state = VG_X_SERVED;
    if (x->has_responded || x->is_aborted)
        return;
    if (x->req)
        x->req->pub.body = vg_buf_slice(&x->req->body);
    handler_of(x)->on_request(x, handler_of(x)->arg);
}

static void default_refusal(const char *why, struct vg_buf *body, const char **ret_type)
{
    *ret_type = "text/plain; charset=utf-8";
    if (vg_buf_printf(body, "%s\n", why) < 0)
        vg_buf_clear(body); /* an empty body says enough */
}

void vg_exchange_refuse(struct vg_http_exchange *x, int status, const char *why)
{
    if (x->has_responded || x->is_aborted) {
        vg_http_abort(x);
        return;
    }
    const struct vg_http_handler *h = handler_of(x);
    VG_AUTO(buf) body = {0};
    const char *type = NULL;
    if (h->refuse)
        h->refuse(x->state >= VG_X_BODY ? x : NULL, status, why, &body, &type, h->arg);
    if (!type)
        default_refusal(why, &body, &type);
    x->did_refuse = true;
    struct vg_http_field f[] = {{VG_SLICE_LIT("Content-Type"), vg_slice_str(type)},
                                {VG_SLICE_LIT("Retry-After"), VG_SLICE_LIT("1")}};
    struct vg_http_head head = {
        .status = status, .fields = f, .n_fields = status == 429 ? 2 : 1, .length = body.n};
    struct vg_slice text = vg_buf_slice(&body);
    if (vg_http_respond(x, &head) < 0 || vg_http_write(x, &text, 1, NULL) < 0)
        return; /* aborted */
    vg_http_end(x);
}

void vg_exchange_sent(struct vg_http_exchange *x, size_t n)
{
    assert(n <= x->unsent);
    x->unsent -= (uint32_t)n;
    bool is_handlers = x->state == VG_X_BODY || x->state == VG_X_SERVED;
    if (n && is_handlers)
        handler_of(x)->on_progress(x, n, handler_of(x)->arg);
    if (!x->is_full || x->unsent > x->conn->server->limits->unsent_bytes / 2)
        return;
    x->is_full = false;
    if (is_handlers && is_open(x) && !x->has_ended)
        handler_of(x)->on_drained(x, handler_of(x)->arg);
}

void vg_exchange_closed(struct vg_http_exchange *x, int err)
{
    bool is_handlers = x->state == VG_X_BODY || x->state == VG_X_SERVED;
    if (x->state == VG_X_CLOSED)
        return;
    x->state = VG_X_CLOSED;
    if (is_handlers) {
        x->conn->server->n_exchanges--;
        handler_of(x)->on_closed(x, err, handler_of(x)->arg);
    }
    vg_http_release_request(x);
}

/* ---- http.h: asking ---- */

const struct vg_http_request *vg_http_request(const struct vg_http_exchange *x)
{
    static const struct vg_http_request released = {.target = {"", 0}};
    return x->req ? &x->req->pub : &released;
}

const struct vg_http_peer *vg_http_peer(const struct vg_http_exchange *x)
{
    return &x->conn->peer;
}

struct vg_slice vg_http_field(const struct vg_http_exchange *x, const char *name)
{
    const struct vg_http_request *r = vg_http_request(x);
    struct vg_slice want = vg_slice_str(name);
    for (size_t i = 0; i < r->n_fields; i++)
        if (vg_slice_eq(r->fields[i].name, want))
            return r->fields[i].value;
    return (struct vg_slice){NULL, 0};
}

struct vg_loop *vg_http_loop(const struct vg_http_exchange *x)
{
    return x->conn->server->loop;
}

void vg_http_set_user(struct vg_http_exchange *x, void *user)
{
    x->user = user;
}

void *vg_http_user(const struct vg_http_exchange *x)
{
    return x->user;
}

void vg_http_release_request(struct vg_http_exchange *x)
{
    if (!x->req)
        return;
    vg_share_give(x->conn, x->req->held);
    vg_net_request_give(x->conn->server, vg_steal(x->req));
}

void vg_http_authenticated(struct vg_http_exchange *x)
{
    vg_share_authenticated(x->conn);
}

size_t vg_http_unsent(const struct vg_http_exchange *x)
{
    return x->unsent;
}

/* ---- http.h: answering ---- */

static bool status_has_no_body(int status)
{
    return status < 200 || status == 204 || status == 304;
}

int vg_http_respond(struct vg_http_exchange *x, const struct vg_http_head *head)
{
    if (!is_open(x) || VG_NEVER(x->has_responded))
        return VIGIL_E_CANCELED;
    x->has_responded = true;
    x->has_no_body = x->is_head_request || status_has_no_body(head->status);
    x->is_watch = head->is_watch;
    x->left = head->length;
    int r = ops_of(x)->respond(x, head);
    if (r < 0)
        vg_http_abort(x);
    else
        vg_conn_dirty(x->conn);
    return r;
}

static int is_full(struct vg_http_exchange *x)
{
    if (x->unsent <= x->conn->server->limits->unsent_bytes)
        return VG_HTTP_OPEN;
    x->is_full = true;
    return VG_HTTP_FULL;
}

int vg_http_write(struct vg_http_exchange *x, const struct vg_slice *v, size_t n,
                  const struct vg_http_pin *pin)
{
    if (!is_open(x) || VG_NEVER(!x->has_responded || x->has_ended))
        return VIGIL_E_CANCELED;
    size_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += v[i].n;
    if (x->has_no_body || total == 0)
        return is_full(x);
    if (VG_NEVER(total > x->left || total + x->unsent > VG_EXCHANGE_UNSENT_MAX)) {
        vg_http_abort(x);
        return VIGIL_E_CANCELED;
    }
    if (x->left != VG_HTTP_STREAMED)
        x->left -= total;
    int r = ops_of(x)->write(x, v, n, pin);
    if (r < 0) {
        vg_http_abort(x);
        return r;
    }
    vg_conn_dirty(x->conn);
    return is_full(x);
}

void vg_http_end(struct vg_http_exchange *x)
{
    if (!is_open(x) || x->has_ended)
        return;
    bool is_short = x->left != VG_HTTP_STREAMED && x->left > 0 && !x->has_no_body;
    if (VG_NEVER(!x->has_responded) || is_short) {
        vg_http_abort(x); /* the other side must see that something is missing */
        return;
    }
    x->has_ended = true;
    ops_of(x)->end(x);
    vg_conn_dirty(x->conn);
}

void vg_http_abort(struct vg_http_exchange *x)
{
    if (!is_open(x))
        return;
    x->is_aborted = true;
    ops_of(x)->abort(x);
    vg_conn_dirty(x->conn);
}

int vg_http_accept_websocket(struct vg_http_exchange *x, const char *protocol, bool is_binary)
{
    if (!is_open(x) || VG_NEVER(x->has_responded || !x->req || !x->req->pub.wants_websocket))
        return VIGIL_E_CANCELED;
    x->has_responded = x->is_websocket = x->is_watch = true;
    x->left = VG_HTTP_STREAMED;
    int r = ops_of(x)->accept_websocket(x, protocol, is_binary);
    if (r < 0)
        vg_http_abort(x);
    else
        vg_conn_dirty(x->conn);
    return r;
}

/* ---- pace ---- */

void vg_pace_wait(struct vg_pace *p, uint64_t now_ns)
{
    if (p->since_ns == 0)
        *p = (struct vg_pace){.since_ns = now_ns, .moved_ns = now_ns};
}

void vg_pace_moved(struct vg_pace *p, size_t n, uint64_t now_ns)
{
    if (p->since_ns == 0 || n == 0)
        return;
    p->moved_ns = now_ns;
    p->bytes += n;
}

void vg_pace_look(struct vg_pace *p, const struct vg_conn *conn, uint32_t *held, uint64_t now_ns)
{
    uint32_t now_held = vg_conn_held(conn);
    if (now_held >= *held)
        return;
    vg_pace_moved(p, *held - now_held, now_ns);
    *held = now_held;
}

uint64_t vg_pace_due(const struct vg_pace *p, uint64_t stall_ms, uint64_t min_rate)
{
    if (p->since_ns == 0)
        return VG_NET_NEVER;
    uint64_t due = p->moved_ns + stall_ms * VG_NS_PER_MS;
    if (min_rate == 0)
        return due;
    uint64_t covered_ms = p->bytes / min_rate * 1000 + p->bytes % min_rate * 1000 / min_rate;
    uint64_t slow = p->since_ns + VG_MAX(covered_ms, VG_PACE_GRACE_MS) * VG_NS_PER_MS;
    return VG_MIN(due, slow);
}

uint64_t vg_pace_end(const struct vg_pace *p, uint64_t most_ms)
{
    return p->since_ns ? p->since_ns + most_ms * VG_NS_PER_MS : VG_NET_NEVER;
}
