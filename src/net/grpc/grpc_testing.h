/* grpc_testing.h - for tests: an nghttp2 server that answers as it is told, in memory, and calls
 * that remember what they heard. */
#ifndef VG_NET_GRPC_GRPC_TESTING_H
#define VG_NET_GRPC_GRPC_TESTING_H

#include "test_support.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <string.h>

#include "grpc.h"

/* ---- the server ---- */

struct grpc_test_request {
    int32_t id;
    struct vg_buf fields; /* "name: value\n" each */
    struct vg_buf body;   /* frames and all */
    bool has_end, is_closed;
    uint32_t reset; /* by the client; UINT32_MAX: not */
    struct vg_buf out;
    bool is_out_last; /* the stream ends with what is in `out`, by trailers or not */
    bool has_trailers;
    char trailers[256]; /* "name: value\n" each */
};

struct grpc_test_peer {
    nghttp2_session *h2;
    struct grpc_test_request *requests[256];
    size_t n;
    unsigned n_pings, n_goaways;
    bool no_consume; /* windows stay as they are */
};

static inline struct grpc_test_request *grpc_test_find(const struct grpc_test_peer *p, int32_t id)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->requests[i]->id == id)
            return p->requests[i];
    return NULL;
}

static inline int grpc_test_on_begin(nghttp2_session *h2, const nghttp2_frame *f, void *arg)
{
    struct grpc_test_peer *p = arg;
    (void)h2;
    if (f->hd.type != NGHTTP2_HEADERS || f->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    assert_true(p->n < VG_ARRAY_LEN(p->requests));
    struct grpc_test_request *r = p->requests[p->n++] = vg_new(struct grpc_test_request);
    r->id = f->hd.stream_id;
    r->reset = UINT32_MAX;
    return 0;
}
static inline int grpc_test_on_header(nghttp2_session *h2, const nghttp2_frame *f, const uint8_t *n,
                                      size_t nn, const uint8_t *v, size_t nv, uint8_t flags,
                                      void *arg)
{
    struct grpc_test_request *r = grpc_test_find(arg, f->hd.stream_id);
    (void)h2;
    (void)flags;
    return vg_buf_printf(&r->fields, "%.*s: %.*s\n", (int)nn, (const char *)n, (int)nv,
                         (const char *)v);
}
static inline int grpc_test_on_data(nghttp2_session *h2, uint8_t flags, int32_t id,
                                    const uint8_t *p, size_t n, void *arg)
{
    struct grpc_test_request *r = grpc_test_find(arg, id);
    (void)h2;
    (void)flags;
    return vg_buf_append(&r->body, p, n);
}
static inline int grpc_test_on_frame(nghttp2_session *h2, const nghttp2_frame *f, void *arg)
{
    struct grpc_test_peer *p = arg;
    struct grpc_test_request *r = grpc_test_find(p, f->hd.stream_id);
    (void)h2;
    if (r && f->hd.flags & NGHTTP2_FLAG_END_STREAM &&
        (f->hd.type == NGHTTP2_DATA || f->hd.type == NGHTTP2_HEADERS))
        r->has_end = true;
    if (r && f->hd.type == NGHTTP2_RST_STREAM)
        r->reset = f->rst_stream.error_code;
    p->n_pings += f->hd.type == NGHTTP2_PING && !(f->hd.flags & NGHTTP2_FLAG_ACK);
    p->n_goaways += f->hd.type == NGHTTP2_GOAWAY;
    return 0;
}
static inline int grpc_test_on_close(nghttp2_session *h2, int32_t id, uint32_t error, void *arg)
{
    struct grpc_test_request *r = grpc_test_find(arg, id);
    (void)h2;
    (void)error;
    if (r)
        r->is_closed = true;
    return 0;
}

static inline void grpc_test_peer_open(struct grpc_test_peer *p, bool no_consume)
{
    nghttp2_session_callbacks *cb;
    nghttp2_option *o;
    *p = (struct grpc_test_peer){.no_consume = no_consume};
    assert_int_equal(nghttp2_session_callbacks_new(&cb), 0);
    nghttp2_session_callbacks_set_on_begin_headers_callback(cb, grpc_test_on_begin);
    nghttp2_session_callbacks_set_on_header_callback(cb, grpc_test_on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, grpc_test_on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, grpc_test_on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, grpc_test_on_close);
    assert_int_equal(nghttp2_option_new(&o), 0);
    nghttp2_option_set_no_auto_window_update(o, no_consume);
    assert_int_equal(nghttp2_session_server_new2(&p->h2, cb, p, o), 0);
    nghttp2_option_del(o);
    nghttp2_session_callbacks_del(cb);
    assert_int_equal(nghttp2_submit_settings(p->h2, 0, NULL, 0), 0);
}

static inline void grpc_test_peer_close(struct grpc_test_peer *p)
{
    nghttp2_session_del(p->h2);
    for (size_t i = 0; i < p->n; i++) {
        vg_buf_done(&p->requests[i]->fields);
        vg_buf_done(&p->requests[i]->body);
        vg_buf_done(&p->requests[i]->out);
        vg_free(p->requests[i]);
    }
    *p = (struct grpc_test_peer){0};
}

/* "name: value\n" each, as nghttp2 wants them; they point into the text. */
static inline size_t grpc_test_fields(const char *text, nghttp2_nv *nv, size_t max)
{
    size_t n = 0;
    while (*text && n < max) {
        const char *colon = strchr(text + 1, ':'), *end = strchr(text, '\n');
        nv[n++] = (nghttp2_nv){(uint8_t *)(uintptr_t)text, (uint8_t *)(uintptr_t)(colon + 2),
                               (size_t)(colon - text), (size_t)(end - colon - 2), 0};
        text = end + 1;
    }
    return n;
}

static inline ssize_t grpc_test_read(nghttp2_session *h2, int32_t id, uint8_t *buf, size_t max,
                                     uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    struct grpc_test_request *r = source->ptr;
    size_t n = VG_MIN(r->out.n, max);
    (void)id;
    (void)arg;
    if (n == 0 && !r->is_out_last)
        return NGHTTP2_ERR_DEFERRED;
    memcpy(buf, r->out.p ? r->out.p : "", n);
    vg_buf_consume(&r->out, n);
    if (r->out.n > 0 || !r->is_out_last)
        return (ssize_t)n;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (r->has_trailers) {
        nghttp2_nv nv[8];
        size_t n_nv = grpc_test_fields(r->trailers, nv, 8);
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        assert_int_equal(nghttp2_submit_trailer(h2, r->id, nv, n_nv), 0);
    }
    return (ssize_t)n;
}

#define GRPC_TEST_HEAD ":status: 200\ncontent-type: application/grpc\n"

/* The head of an answer; its body stays open. */
static inline void grpc_test_head(struct grpc_test_peer *p, struct grpc_test_request *r,
                                  const char *head)
{
    nghttp2_nv nv[16];
    nghttp2_data_provider body = {.source.ptr = r, .read_callback = grpc_test_read};
    assert_int_equal(
        nghttp2_submit_response(p->h2, r->id, nv, grpc_test_fields(head, nv, 16), &body), 0);
}
static inline void grpc_test_bytes(struct grpc_test_peer *p, struct grpc_test_request *r,
                                   const void *bytes, size_t n)
{
    assert_int_equal(vg_buf_append(&r->out, bytes, n), 0);
    nghttp2_session_resume_data(p->h2, r->id);
}
static inline void grpc_test_message(struct grpc_test_peer *p, struct grpc_test_request *r,
                                     const char *text)
{
    size_t n = strlen(text);
    uint8_t prefix[5] = {0, (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
    grpc_test_bytes(p, r, prefix, 5);
    grpc_test_bytes(p, r, text, n);
}
/* trailers NULL: the body simply ends. */
static inline void grpc_test_end(struct grpc_test_peer *p, struct grpc_test_request *r,
                                 const char *trailers)
{
    r->is_out_last = true;
    r->has_trailers = trailers != NULL;
    snprintf(r->trailers, sizeof r->trailers, "%s", trailers ? trailers : "");
    nghttp2_session_resume_data(p->h2, r->id);
}
/* All of a good answer of one message. */
static inline void grpc_test_reply(struct grpc_test_peer *p, struct grpc_test_request *r,
                                   const char *text)
{
    grpc_test_head(p, r, GRPC_TEST_HEAD);
    grpc_test_message(p, r, text);
    grpc_test_end(p, r, "grpc-status: 0\n");
}
/* A head that is all there is. */
static inline void grpc_test_only(struct grpc_test_peer *p, struct grpc_test_request *r,
                                  const char *head)
{
    nghttp2_nv nv[16];
    assert_int_equal(
        nghttp2_submit_response(p->h2, r->id, nv, grpc_test_fields(head, nv, 16), NULL), 0);
}

/* ---- calls ---- */

struct grpc_test_call {
    struct vg_grpc_call call;
    bool has_ended;
    struct vg_buf heard; /* "<message>" each */
    size_t n_heard;
    size_t pause_at;  /* pause when so many were heard; 0: never */
    size_t cancel_at; /* likewise */
};

static inline void grpc_test_on_end(struct vg_grpc_call *c)
{
    struct grpc_test_call *t = VG_CONTAINER_OF(c, struct grpc_test_call, call);
    assert_false(t->has_ended);
    t->has_ended = true;
}
static inline void grpc_test_on_message(struct vg_grpc_call *c, struct vg_slice m)
{
    struct grpc_test_call *t = VG_CONTAINER_OF(c, struct grpc_test_call, call);
    assert_int_equal(vg_buf_printf(&t->heard, "<%.*s>", VG_SLICE_ARG(m)), 0);
    t->n_heard++;
    if (t->pause_at == t->n_heard)
        vg_grpc_pause(c);
    if (t->cancel_at == t->n_heard)
        vg_grpc_cancel(c);
}
static inline void grpc_test_call_init(struct grpc_test_call *t, unsigned flags, const char *text)
{
    uint8_t *bytes;
    *t = (struct grpc_test_call){0};
    t->call.path = "/test.Test/Do";
    t->call.flags = flags;
    t->call.on_end = grpc_test_on_end;
    t->call.on_message = grpc_test_on_message;
    if (!text)
        return;
    t->call.msg = vg_grpc_msg_new(strlen(text), &bytes);
    assert_non_null(t->call.msg);
    memcpy(bytes, text, strlen(text));
}
static inline void grpc_test_call_done(struct grpc_test_call *t)
{
    vg_buf_done(&t->heard);
    vg_buf_done(&t->call.answer);
}

static inline void grpc_test_assert_ended(const struct grpc_test_call *t, enum vg_grpc_code code,
                                          enum vg_grpc_fate fate, const char *words)
{
    assert_true(t->has_ended);
    assert_string_equal(vg_grpc_code_name(t->call.status.code), vg_grpc_code_name(code));
    if (!strstr(t->call.status.message, words))
        fail_msg("\"%s\" does not say \"%s\"", t->call.status.message, words);
    assert_int_equal(t->call.status.fate, fate);
    assert_null(t->call.pool);
    assert_null(t->call.msg);
}

#endif
