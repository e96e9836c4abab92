/* conn_h1.c - HTTP/1.1 of a connection: requests as text, answers through llhttp. */
#include <errno.h>

#include "conn_int.h"

static struct vg_bench_conn *conn_of(llhttp_t *parser)
{
    return VG_CONTAINER_OF(parser, struct vg_bench_conn, parser);
}

static struct vg_bench_reply *reply_of(llhttp_t *parser)
{
    struct vg_bench_conn *c = conn_of(parser);
    struct vg_list *l = c->replies.next;
    return l == &c->replies ? NULL : VG_CONTAINER_OF(l, struct vg_bench_reply, link);
}

static int on_headers_complete(llhttp_t *parser)
{
    struct vg_bench_reply *r = reply_of(parser);
    if (!r)
        return -1; /* an answer to no question */
    if (parser->status_code < 200)
        return 0;
    r->status = parser->status_code;
    if (r->ops->on_head)
        r->ops->on_head(r);
    return 0;
}

static int on_body(llhttp_t *parser, const char *p, size_t n)
{
    struct vg_bench_reply *r = reply_of(parser);
    if (r && r->ops->on_data)
        r->ops->on_data(r, vg_slice(p, n));
    return 0;
}

static int on_message_complete(llhttp_t *parser)
{
    struct vg_bench_reply *r = reply_of(parser);
    if (r && r->status)
        vg_bench_reply_end(r, 0);
    return 0;
}

static const llhttp_settings_t settings = {
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

void vg_bench_h1_init(struct vg_bench_conn *c)
{
    llhttp_init(&c->parser, HTTP_RESPONSE, &settings);
}

int vg_bench_h1_read(struct vg_bench_conn *c, struct vg_slice bytes)
{
    return llhttp_execute(&c->parser, bytes.p, bytes.n) == HPE_OK ? 0 : VIGIL_E_NETWORK;
}

void vg_bench_h1_eof(struct vg_bench_conn *c)
{
    (void)llhttp_finish(&c->parser); /* an answer in the middle is told by the connection's end */
}

int vg_bench_h1_ask(struct vg_bench_conn *c, const struct vg_bench_ask *ask)
{
    const struct vg_bench_target *t = c->target;
    bool has_auth = t->authorization.n > 0;
    size_t before = c->out.n;
    int r = vg_buf_printf(&c->out, "%s %s%s HTTP/1.1\r\nHost: %s\r\n%s%s%sAccept: %s\r\n%s%s%s%s",
                          ask->method, t->prefix, ask->path, t->authority,
                          t->agent ? "User-Agent: " : "", t->agent ? t->agent : "",
                          t->agent ? "\r\n" : "", ask->accept ? ask->accept : "application/json",
                          has_auth ? "Authorization: " : "", has_auth ? t->authorization.p : "",
                          has_auth ? "\r\n" : "", ask->is_gzip ? "Accept-Encoding: gzip\r\n" : "");
    if (r == 0 && ask->body.n)
        r = vg_buf_printf(&c->out, "Content-Type: %s\r\nContent-Length: %zu\r\n",
                          ask->type ? ask->type : "application/json", ask->body.n);
    if (r == 0)
        r = vg_buf_append_slice(&c->out, VG_SLICE_LIT("\r\n"));
    if (r == 0 && ask->body.n)
        r = vg_buf_append_slice(&c->out, ask->body);
    if (r < 0)
        c->out.n = before;
    return r;
}
