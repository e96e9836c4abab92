/* inside.c - see inside.h: a codec whose other side is a caller.
 *   I1 an answer's bytes are copied when they are written: pins are never held.
 *   I2 calls end in fill(), where the connection looks at the end of the turn (C2 of conn_int.h).
 */
#include "inside.h"

#include <errno.h>
#include <stdio.h>

#include "base/alloc.h"
#include "conn_int.h"
#include "request.h"

struct vg_inside {
    struct vg_codec codec; /* first */
    const char *who;
    struct vg_list exchanges;
};

struct inside_exchange {
    struct vg_http_exchange x; /* first */
    struct vg_inside_call *call;
    struct vg_list link;
};

static struct inside_exchange *of(struct vg_http_exchange *x)
{
    return VG_CONTAINER_OF(x, struct inside_exchange, x);
}

/* ---- the answer ---- */

static int respond(struct vg_http_exchange *x, const struct vg_http_head *head)
{
    of(x)->call->status = head->status;
    return 0;
}

static int write_some(struct vg_http_exchange *x, const struct vg_slice *v, size_t n,
                      const struct vg_http_pin *pin)
{
    (void)pin;
    struct vg_inside_call *call = of(x)->call;
    for (size_t i = 0; i < n; i++) {
        int r = vg_buf_append_slice(&call->answer, v[i]);
        if (r < 0) {
            call->err = r;
            return r;
        }
        vg_exchange_queued(x, v[i].n);
    }
    return 0;
}

/* fill() sees it. */
static void noted(struct vg_http_exchange *x)
{
    (void)x;
}

static const struct vg_exchange_ops exchange_ops = {
    .respond = respond, .write = write_some, .end = noted, .abort = noted};

static void finish(struct inside_exchange *e, int err)
{
    struct vg_inside_call *call = e->call;
    vg_list_remove(&e->link);
    vg_exchange_closed(&e->x, err);
    vg_free(e);
    if (call->err == 0)
        call->err = err;
    call->done(call);
}

/* ---- the codec ---- */

static struct vg_inside *inside_of(struct vg_codec *c)
{
    return VG_CONTAINER_OF(c, struct vg_inside, codec);
}

/* Takes what was written, which may make room for more; ends what has ended. True: did something.
 * A call's done may send others and so change the list: one step at a time. */
static bool step(struct vg_inside *in)
{
    for (struct vg_list *n = in->exchanges.next; n != &in->exchanges; n = n->next) {
        struct inside_exchange *e = VG_CONTAINER_OF(n, struct inside_exchange, link);
        if (e->x.unsent && !e->x.is_aborted) {
            vg_exchange_sent(&e->x, e->x.unsent);
            return true;
        }
        if (vg_exchange_is_done(&e->x)) {
            finish(e, e->x.is_aborted ? VIGIL_E_CANCELED : 0);
            return true;
        }
    }
    return false;
}

static void fill(struct vg_codec *c)
{
    while (step(inside_of(c)))
        ;
}

static void on_closed(struct vg_codec *c, int err)
{
    struct vg_inside *in = inside_of(c);
    while (!vg_list_is_empty(&in->exchanges))
        finish(VG_CONTAINER_OF(in->exchanges.next, struct inside_exchange, link), err);
}

static bool is_idle(const struct vg_codec *c)
{
    return vg_list_is_empty(&VG_CONTAINER_OF(c, const struct vg_inside, codec)->exchanges);
}

static void free_codec(struct vg_codec *c)
{
    vg_free(inside_of(c));
}

/* No socket calls these. */
static void receive(struct vg_codec *c, const char *p, size_t n)
{
    (void)c, (void)p, (void)n;
}
static void sent(struct vg_codec *c, size_t n, bool is_blocked)
{
    (void)c, (void)n, (void)is_blocked;
}
static void tick(struct vg_codec *c, uint64_t now_ns)
{
    (void)c, (void)now_ns;
}
static void nothing(struct vg_codec *c)
{
    (void)c;
}

static const struct vg_codec_ops codec_ops = {
    .exchange = &exchange_ops,
    .receive = receive,
    .received_end = nothing,
    .fill = fill,
    .sent = sent,
    .tick = tick,
    .drain = nothing, /* its owner ends what it asks for */
    .is_idle = is_idle,
    .closed = on_closed,
    .free = free_codec,
};

int vg_inside_new(struct vg_http_server *server, const char *who, struct vg_inside **ret_inside)
{
    struct vg_inside *in = vg_new(struct vg_inside);
    struct vg_conn *conn = NULL;
    int r = in ? vg_conn_new_detached(server, &conn) : -ENOMEM;
    if (r < 0) {
        vg_free(in);
        return r;
    }
    in->codec = (struct vg_codec){.ops = &codec_ops, .conn = conn};
    in->who = who;
    vg_list_init(&in->exchanges);
    conn->codec = &in->codec;
    conn->peer.inside = who;
    vg_share_authenticated(conn);
    snprintf(conn->peer.address, sizeof conn->peer.address, "inside:%s", who);
    *ret_inside = in;
    return 0;
}

void vg_inside_free(struct vg_inside *inside)
{
    if (inside)
        vg_conn_free_detached(inside->codec.conn, VIGIL_E_CANCELED);
}

/* ---- asking ---- */

static int add_field(struct vg_http_exchange *x, const char *name, const char *value)
{
    int r = vg_exchange_add_name(x, name, strlen(name));
    if (r == 0)
        r = vg_exchange_add_value(x, value, strlen(value));
    return r == 0 ? vg_exchange_end_field(x) : r;
}

static int write_head(struct vg_inside *in, struct vg_http_exchange *x,
                      const struct vg_inside_call *call)
{
    int r = vg_exchange_begin(x, VG_HTTP_1_1);
    if (r == 0)
        r = vg_exchange_add_method(x, call->method, strlen(call->method));
    if (r == 0)
        r = vg_exchange_add_target(x, call->target.p, call->target.n);
    if (r == 0)
        r = vg_exchange_set_authority(x, "localhost", strlen("localhost"));
    if (r == 0)
        r = add_field(x, "accept", "application/json");
    if (r == 0)
        r = add_field(x, "user-agent", in->who);
    if (r == 0 && call->content_type)
        r = add_field(x, "content-type", call->content_type);
    return r;
}

int vg_inside_send(struct vg_inside *inside, struct vg_inside_call *call)
{
    struct inside_exchange *e = vg_new(struct inside_exchange);
    if (!e)
        return -ENOMEM;
    e->x.conn = inside->codec.conn;
    e->call = call;
    call->err = call->status = 0;
    vg_buf_init(&call->answer, VG_INSIDE_ANSWER_MAX);
    int r = write_head(inside, &e->x, call);
    if (r < 0) {
        vg_exchange_closed(&e->x, r); /* the handler has not seen it */
        vg_free(e);
        return r;
    }
    vg_list_push_back(&inside->exchanges, &e->link);
    e->x.req->pub.body_length = 0; /* it is there already, and the caller's */
    if (vg_exchange_head(&e->x) && vg_exchange_body(&e->x, call->body.p, call->body.n) < 0)
        vg_http_abort(&e->x);
    vg_exchange_request(&e->x);
    return 0;
}

void vg_inside_call_done(struct vg_inside_call *call)
{
    vg_buf_done(&call->answer);
}
