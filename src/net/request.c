/* request.c - see request.h, and exchange.h for what fills it. */
#include "request.h"

#include <errno.h>

#include "base/alloc.h"
#include "conn_int.h"

/* What is kept with a request for the next one; more goes back to the system. */
#define KEPT_REQUESTS 64u
#define KEPT_TEXT (8u * 1024u)
#define KEPT_BODY (64u * 1024u)
#define KEPT_FIELDS 32u

static void free_request(struct vg_net_request *r)
{
    vg_buf_done(&r->text);
    vg_buf_done(&r->body);
    vg_free(r->fields);
    vg_free(r);
}

struct vg_net_request *vg_net_request_take(struct vg_http_server *s)
{
    struct vg_net_request *r = s->free_requests;
    if (r) {
        s->free_requests = r->next;
        s->n_free_requests--;
        r->next = NULL;
        return r;
    }
    r = vg_new(struct vg_net_request);
    if (r) {
        vg_buf_init(&r->text, s->limits->head_bytes);
        vg_buf_init(&r->body, s->limits->body_bytes);
    }
    return r;
}

static void clear_buf(struct vg_buf *b, size_t kept)
{
    if (b->cap > kept)
        vg_buf_done(b);
    vg_buf_clear(b);
}

/* ---- what a request holds ---- */

/* 512 bytes: a request counts in such steps for its connection. */
#define HOLD_STEP 512u

/* n bytes more will be held. VIGIL_E_BUSY: over a limit of share.h. */
static int hold(struct vg_http_exchange *x, size_t n)
{
    struct vg_net_request *r = x->req;
    size_t now = r->text.n + r->body.n + r->n_fields * sizeof *r->fields;
    size_t need = VG_ALIGN_UP(now + n, (size_t)HOLD_STEP);
    if (VG_LIKELY(need <= r->held))
        return 0;
    int err = vg_share_hold(x->conn, need - r->held);
    if (err == 0)
        r->held = need;
    return err;
}

static int add_to(struct vg_http_exchange *x, struct vg_buf *b, const char *p, size_t n)
{
    int r = hold(x, n);
    return r < 0 ? r : vg_buf_append(b, p, n);
}

int vg_exchange_body(struct vg_http_exchange *x, const char *p, size_t n)
{
    if (x->has_responded || x->is_aborted || !x->req)
        return 0;
    return add_to(x, &x->req->body, p, n);
}

void vg_net_request_give(struct vg_http_server *s, struct vg_net_request *r)
{
    if (!r)
        return;
    if (s->is_closing || s->n_free_requests >= KEPT_REQUESTS || r->cap_fields > KEPT_FIELDS) {
        free_request(r);
        return;
    }
    clear_buf(&r->text, KEPT_TEXT);
    clear_buf(&r->body, KEPT_BODY);
    *r = (struct vg_net_request){.text = r->text,
                                 .body = r->body,
                                 .fields = r->fields,
                                 .cap_fields = r->cap_fields,
                                 .next = s->free_requests};
    s->free_requests = r;
    s->n_free_requests++;
}

void vg_net_requests_done(struct vg_http_server *s)
{
    while (s->free_requests) {
        struct vg_net_request *r = s->free_requests;
        s->free_requests = r->next;
        free_request(r);
    }
    s->n_free_requests = 0;
}

int vg_exchange_begin(struct vg_http_exchange *x, enum vg_http_carrier carrier)
{
    x->req = vg_net_request_take(x->conn->server);
    if (!x->req)
        return -ENOMEM;
    x->req->pub.carrier = carrier;
    x->state = VG_X_HEAD;
    return 0;
}

static int add_span(struct vg_http_exchange *x, struct vg_net_span *span, const char *p, size_t n)
{
    if (span->n == 0)
        span->at = x->req->text.n;
    assert(span->at + span->n == x->req->text.n); /* pieces of one thing follow each other */
    span->n += n;
    int r = add_to(x, &x->req->text, p, n);
    if (r < 0)
        span->n -= n;
    return r;
}

int vg_exchange_add_method(struct vg_http_exchange *x, const char *p, size_t n)
{
    return add_span(x, &x->req->method, p, n);
}

int vg_exchange_add_target(struct vg_http_exchange *x, const char *p, size_t n)
{
    return add_span(x, &x->req->target, p, n);
}

int vg_exchange_set_authority(struct vg_http_exchange *x, const char *p, size_t n)
{
    return add_span(x, &x->req->authority, p, n);
}

static int begin_field(struct vg_http_exchange *x)
{
    struct vg_net_request *r = x->req;
    if (r->n_fields >= x->conn->server->limits->head_fields)
        return VIGIL_E_TOO_LARGE;
    if (r->n_fields == r->cap_fields) {
        size_t cap = r->cap_fields ? r->cap_fields * 2 : 16;
        struct vg_http_field *fields = vg_reallocarray(r->fields, cap, sizeof *fields);
        if (!fields)
            return -ENOMEM;
        r->fields = fields;
        r->cap_fields = cap;
    }
    if (r->n_fields == 0)
        r->fields_at = r->text.n;
    r->name_at = r->text.n;
    r->in_field = true;
    r->in_value = false;
    return 0;
}

int vg_exchange_add_name(struct vg_http_exchange *x, const char *p, size_t n)
{
    struct vg_net_request *r = x->req;
    int err = r->in_field ? 0 : begin_field(x);
    size_t at = r->text.n;
    if (err == 0)
        err = add_to(x, &r->text, p, n);
    for (; err == 0 && at < r->text.n; at++)
        if (r->text.p[at] >= 'A' && r->text.p[at] <= 'Z')
            r->text.p[at] = (char)(r->text.p[at] + ('a' - 'A'));
    return err;
}

int vg_exchange_add_value(struct vg_http_exchange *x, const char *p, size_t n)
{
    struct vg_net_request *r = x->req;
    if (!r->in_value) {
        r->value_at = r->text.n;
        r->in_value = true;
    }
    if (r->text.n == r->value_at) /* white space in front */
        while (n && (*p == ' ' || *p == '\t')) {
            p++;
            n--;
        }
    return add_to(x, &r->text, p, n);
}

int vg_exchange_end_field(struct vg_http_exchange *x)
{
    struct vg_net_request *r = x->req;
    if (!r->in_field)
        return 0;
    if (!r->in_value)
        r->value_at = r->text.n;
    while (r->text.n > r->value_at &&
           (r->text.p[r->text.n - 1] == ' ' || r->text.p[r->text.n - 1] == '\t'))
        r->text.n--;
    struct vg_http_field *f = &r->fields[r->n_fields++];
    *f = (struct vg_http_field){.name.n = r->value_at - r->name_at,
                                .value.n = r->text.n - r->value_at};
    r->in_field = false;
    return 0;
}

static enum vg_http_method method_of(struct vg_slice text)
{
    static const struct {
        const char *name;
        enum vg_http_method method;
    } methods[] = {
        {"GET", VG_HTTP_GET},         {"HEAD", VG_HTTP_HEAD},   {"POST", VG_HTTP_POST},
        {"PUT", VG_HTTP_PUT},         {"PATCH", VG_HTTP_PATCH}, {"DELETE", VG_HTTP_DELETE},
        {"OPTIONS", VG_HTTP_OPTIONS},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(methods); i++)
        if (vg_slice_eq(text, vg_slice_str(methods[i].name)))
            return methods[i].method;
    return VG_HTTP_OTHER;
}

static struct vg_slice span_slice(const struct vg_net_request *r, struct vg_net_span s)
{
    return s.n ? vg_slice(r->text.p + s.at, s.n) : vg_slice("", 0);
}

/* "GET http://host/path" is as good as "GET /path" with that host. */
static void take_absolute(struct vg_http_request *r)
{
    struct vg_slice t = r->target;
    size_t scheme = vg_slice_has_prefix(t, VG_SLICE_LIT("http://"))    ? 7
                    : vg_slice_has_prefix(t, VG_SLICE_LIT("https://")) ? 8
                                                                       : 0;
    if (scheme == 0)
        return;
    const char *slash = memchr(t.p + scheme, '/', t.n - scheme);
    size_t end = slash ? (size_t)(slash - t.p) : t.n;
    r->authority = vg_slice(t.p + scheme, end - scheme);
    r->target = slash ? vg_slice(slash, t.n - end) : VG_SLICE_LIT("/");
}

/* The text moves no more: point into it. */
void vg_exchange_seal(struct vg_http_exchange *x)
{
    struct vg_net_request *r = x->req;
    const char *p = r->text.p + r->fields_at;
    struct vg_slice host = span_slice(r, r->authority);
    for (size_t i = 0; i < r->n_fields; i++) {
        r->fields[i].name.p = p;
        p += r->fields[i].name.n;
        r->fields[i].value.p = p;
        p += r->fields[i].value.n;
        if (host.n == 0 && vg_slice_eq(r->fields[i].name, VG_SLICE_LIT("host")))
            host = r->fields[i].value;
    }
    r->pub.method_text = span_slice(r, r->method);
    r->pub.method = method_of(r->pub.method_text);
    r->pub.target = span_slice(r, r->target);
    r->pub.authority = host;
    if (r->pub.carrier != VG_HTTP_2)
        take_absolute(&r->pub);
    r->pub.fields = r->fields;
    r->pub.n_fields = r->n_fields;
    x->is_head_request = r->pub.method == VG_HTTP_HEAD;
}
