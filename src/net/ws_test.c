/* ws_test.c - the WebSocket part by itself: bytes in, bytes out, read by a real wslay client. */
#include "test_support.h"

#include <errno.h>
#include <wslay/wslay.h>

#include "ws.h"

static struct vg_outq_pool pool;
static struct vg_outq out;
static struct vg_ws *ws;

#define F(n, v)                                                                                    \
    {                                                                                              \
        VG_SLICE_LIT(n), VG_SLICE_LIT(v)                                                           \
    }
static const struct vg_http_field good[] = {
    F("host", "x"),
    F("connection", "keep-alive, Upgrade"),
    F("upgrade", "WebSocket"),
    F("sec-websocket-version", "13"),
    F("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
};

static struct vg_http_request request(const struct vg_http_field *fields, size_t n)
{
    return (struct vg_http_request){
        .method = VG_HTTP_GET, .carrier = VG_HTTP_1_1, .fields = fields, .n_fields = n};
}

static struct vg_buf all_out(void)
{
    struct vg_buf b = {0};
    size_t n = vg_outq_size(&out);
    assert_int_equal(vg_buf_reserve(&b, n + 1), 0);
    b.n = vg_outq_peek(&out, b.p, n);
    assert_int_equal(b.n, n);
    vg_outq_consume(&out, n);
    return b;
}

static int setup(void **state)
{
    (void)state;
    struct vg_http_request r = request(good, VG_ARRAY_LEN(good));
    vg_outq_init(&out, &pool);
    assert_int_equal(vg_ws_accept(&r, NULL, false, &out, &ws), 0);
    struct vg_buf head = all_out();
    vg_buf_done(&head);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    vg_ws_free(ws);
    vg_outq_done(&out);
    vg_outq_pool_done(&pool);
    return 0;
}

/* A frame as clients send them, masked. */
static void put_frame(struct vg_buf *b, unsigned first, const void *p, size_t n)
{
    static const uint8_t mask[4] = {0x11, 0x22, 0x33, 0x44};
    uint8_t head[14] = {(uint8_t)first};
    size_t at = 2, wide = n < 126 ? 0 : n < 65536 ? 2 : 8;
    head[1] = (uint8_t)(0x80u | (wide == 0 ? n : wide == 2 ? 126u : 127u));
    for (size_t i = 0; i < wide; i++)
        head[at++] = (uint8_t)((uint64_t)n >> (8 * (wide - 1 - i)));
    memcpy(head + at, mask, 4);
    assert_int_equal(vg_buf_append(b, head, at + 4), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(vg_buf_append_byte(b, (char)(((const uint8_t *)p)[i] ^ mask[i % 4])), 0);
}

static int feed_frame(unsigned first, const void *p, size_t n)
{
    VG_AUTO(buf) b = {0};
    put_frame(&b, first, p, n);
    return vg_ws_receive(ws, b.p, b.n);
}

static void assert_out(const void *want, size_t n)
{
    VG_AUTO(buf) b = all_out();
    vg_assert_slice_equal(vg_buf_slice(&b), vg_slice(want, n));
}

static void the_accept_of_the_standard_is_computed(void **state)
{
    (void)state;
    struct vg_http_request r = request(good, VG_ARRAY_LEN(good));
    struct vg_ws *other;
    assert_int_equal(vg_ws_accept(&r, "binary.k8s.io", true, &out, &other), 0);
    static const char want[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                               "Connection: Upgrade\r\n"
                               "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
                               "Sec-WebSocket-Protocol: binary.k8s.io\r\n\r\n";
    assert_out(want, sizeof(want) - 1);
    vg_ws_free(other);
}

static void an_upgrade_needs_all_of_its_fields(void **state)
{
    (void)state;
    struct vg_http_request r = request(good, VG_ARRAY_LEN(good));
    assert_true(vg_ws_is_upgrade(&r));
    r.carrier = VG_HTTP_1_0;
    assert_false(vg_ws_is_upgrade(&r));
    r.carrier = VG_HTTP_1_1;
    r.method = VG_HTTP_POST;
    assert_false(vg_ws_is_upgrade(&r));
    static const struct vg_http_field bad[] = {
        F("connection", "keep-alive, Upgraded"),
        F("upgrade", "h2c"),
        F("sec-websocket-version", "12"),
        F("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=!"),
    };
    for (size_t i = 1; i < VG_ARRAY_LEN(good); i++) {
        struct vg_http_field f[VG_ARRAY_LEN(good)];
        memcpy(f, good, sizeof(good));
        f[i] = bad[i - 1];
        r = request(f, VG_ARRAY_LEN(f));
        assert_false(vg_ws_is_upgrade(&r));
    }
}

/* ---- messages, read by wslay ---- */

struct reader {
    struct vg_buf in, got;
    unsigned n_messages, opcode, close_code;
};

static ssize_t reader_recv(wslay_event_context_ptr ctx, uint8_t *buf, size_t n, int flags,
                           void *arg)
{
    struct reader *r = arg;
    size_t take = VG_MIN(n, r->in.n);
    (void)flags;
    if (take == 0) {
        wslay_event_set_error(ctx, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    memcpy(buf, r->in.p, take);
    vg_buf_consume(&r->in, take);
    return (ssize_t)take;
}

static void reader_message(wslay_event_context_ptr ctx, const struct wslay_event_on_msg_recv_arg *m,
                           void *arg)
{
    struct reader *r = arg;
    (void)ctx;
    if (m->opcode == WSLAY_CONNECTION_CLOSE) {
        r->close_code = m->status_code;
        return;
    }
    r->n_messages++;
    r->opcode = m->opcode;
    vg_buf_clear(&r->got);
    assert_int_equal(vg_buf_append(&r->got, m->msg, m->msg_length), 0);
}

static void read_out(struct reader *r)
{
    struct wslay_event_callbacks cb = {.recv_callback = reader_recv,
                                       .on_msg_recv_callback = reader_message};
    wslay_event_context_ptr ctx;
    r->in = all_out();
    assert_int_equal(wslay_event_context_client_init(&ctx, &cb, r), 0);
    wslay_event_config_set_max_recv_msg_length(ctx, 1u << 30);
    assert_int_equal(wslay_event_recv(ctx), 0);
    wslay_event_context_free(ctx);
    vg_buf_done(&r->in);
}

static void each_write_is_one_message(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 125, 126, 127, 65535, 65536, 1000000};
    for (size_t i = 0; i < VG_ARRAY_LEN(sizes); i++) {
        struct reader r = {0};
        VG_AUTO(buf) text = {0};
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(vg_buf_append_byte(&text, (char)('a' + k % 26)), 0);
        struct vg_slice v[2] = {vg_slice(text.p, sizes[i] / 2),
                                vg_slice(text.p + sizes[i] / 2, sizes[i] - sizes[i] / 2)};
        assert_int_equal(vg_ws_write(ws, v, 2, NULL), 0);
        read_out(&r);
        assert_int_equal(r.n_messages, 1);
        assert_int_equal(r.opcode, WSLAY_TEXT_FRAME);
        vg_assert_slice_equal(vg_buf_slice(&r.got), vg_buf_slice(&text));
        vg_buf_done(&r.got);
    }
}

static void an_end_closes_with_1000_and_says_nothing_after(void **state)
{
    (void)state;
    struct reader r = {0};
    struct vg_slice v = VG_SLICE_LIT("late");
    assert_int_equal(vg_ws_end(ws), 0);
    assert_int_equal(vg_ws_write(ws, &v, 1, NULL), 0);
    read_out(&r);
    assert_int_equal(r.close_code, 1000);
    assert_int_equal(r.n_messages, 0);
    assert_int_equal(feed_frame(0x88, "\x03\xe8", 2), 1);
    assert_int_equal(vg_outq_size(&out), 0);
}

/* ---- what clients send ---- */

static void pings_are_answered_however_they_arrive(void **state)
{
    (void)state;
    VG_AUTO(buf) b = {0};
    put_frame(&b, 0x89, "hello", 5);
    put_frame(&b, 0x82, "ignored", 7);
    put_frame(&b, 0x89, "", 0);
    static const char want[] = "\x8a\x05hello\x8a\x00";
    for (size_t piece = 1; piece <= b.n; piece++) {
        for (size_t at = 0; at < b.n; at += piece)
            assert_int_equal(vg_ws_receive(ws, b.p + at, VG_MIN(piece, b.n - at)), 0);
        assert_out(want, sizeof(want) - 1);
    }
}

static void pings_of_a_client_that_does_not_read_are_not_hoarded(void **state)
{
    (void)state;
    VG_AUTO(buf) b = {0};
    char text[125] = {0};
    put_frame(&b, 0x89, text, sizeof(text));
    for (int i = 0; i < 10000; i++)
        assert_int_equal(vg_ws_receive(ws, b.p, b.n), 0);
    assert_in_range(vg_outq_size(&out), 60000, 70000);
}

/* 64 MiB in a frame that says it has 2^40: nothing may be kept. */
static void data_of_any_size_is_skipped(void **state)
{
    (void)state;
    static char zeros[65536];
    static const char head[] = "\x82\xff\x00\x00\x01\x00\x00\x00\x00\x00mask";
    assert_int_equal(vg_ws_receive(ws, head, sizeof(head) - 1), 0);
    vg_alloc_fail_at(0, 0);
    for (int i = 0; i < 1024; i++)
        assert_int_equal(vg_ws_receive(ws, zeros, sizeof(zeros)), 0);
    assert_int_equal(vg_alloc_fail_at(0, 0), 0);
    assert_int_equal(vg_outq_size(&out), 0);
}

static void fragments_are_followed(void **state)
{
    (void)state;
    assert_int_equal(feed_frame(0x01, "a", 1), 0);
    assert_int_equal(feed_frame(0x89, "p", 1), 0); /* control frames may come between */
    assert_int_equal(feed_frame(0x00, "b", 1), 0);
    assert_int_equal(feed_frame(0x80, "", 0), 0);
    assert_int_equal(feed_frame(0x81, "c", 1), 0);
    assert_out("\x8a\x01p", 3);
}

static void broken_frames_close_with_1002(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
    } bad[] = {
        {"\x81\x01x", 3},                       /* not masked */
        {"\xc1\x81mask\x00", 7},                /* a reserved bit */
        {"\x83\x80mask", 6},                    /* an unknown opcode */
        {"\x80\x80mask", 6},                    /* a continuation of nothing */
        {"\x01\x80mask\x01\x80mask", 12},       /* a message within a message */
        {"\x09\x80mask", 6},                    /* a ping in fragments */
        {"\x89\xfe\x00\x7emask", 8},            /* a ping of 126 bytes */
        {"\x82\xfe\x00\x01maskx", 9},           /* a length that is longer than it need be */
        {"\x82\xff\x80\0\0\0\0\0\0\0mask", 14}, /* 2^63 */
        {"\x88\x81mask\x00", 7},                /* half a code */
        {"\x88\x82\0\0\0\0\x03\xed", 8},        /* 1005 must not be sent */
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(bad); i++) {
        if (i > 0)
            setup(NULL);
        assert_int_equal(vg_ws_receive(ws, bad[i].bytes, bad[i].n), VIGIL_E_INVALID);
        assert_out("\x88\x02\x03\xea", 4);
        assert_int_equal(vg_ws_receive(ws, "x", 1), 1);
        if (i + 1 < VG_ARRAY_LEN(bad))
            teardown(NULL);
    }
}

static void a_close_is_echoed(void **state)
{
    (void)state;
    assert_int_equal(feed_frame(0x88,
                                "\x03\xe9"
                                "bye",
                                5),
                     1);
    assert_out("\x88\x02\x03\xe9", 4);
    teardown(NULL);
    setup(NULL);
    assert_int_equal(feed_frame(0x88, "", 0), 1);
    assert_out("\x88\x00", 2);
    teardown(NULL);
    setup(NULL);
    assert_int_equal(feed_frame(0x88, "\x03\xe8\xff\xff", 4), VIGIL_E_INVALID);
    assert_out("\x88\x02\x03\xef", 4);
}

static void a_lack_of_memory_is_reported(void **state)
{
    (void)state;
    VG_ALLOC_FAIL_LOOP (n) {
        struct vg_http_request r = request(good, VG_ARRAY_LEN(good));
        struct vg_outq_pool p = {0};
        struct vg_outq q;
        struct vg_ws *w = NULL;
        vg_outq_init(&q, &p);
        struct vg_slice text = VG_SLICE_LIT("text");
        int e = vg_ws_accept(&r, "x", false, &q, &w);
        if (e == 0)
            e = vg_ws_write(w, &text, 1, NULL);
        if (e == 0)
            e = vg_ws_receive(w, "\x89\x80mask", 6);
        if (e == 0)
            e = vg_ws_end(w);
        assert_int_equal(e, vg_test_alloc_failed() ? -ENOMEM : 0);
        vg_ws_free(w);
        vg_outq_done(&q);
        vg_outq_pool_done(&p);
    }
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_accept_of_the_standard_is_computed),
        T(an_upgrade_needs_all_of_its_fields),
        T(each_write_is_one_message),
        T(an_end_closes_with_1000_and_says_nothing_after),
        T(pings_are_answered_however_they_arrive),
        T(pings_of_a_client_that_does_not_read_are_not_hoarded),
        T(data_of_any_size_is_skipped),
        T(fragments_are_followed),
        T(broken_frames_close_with_1002),
        T(a_close_is_echoed),
        T(a_lack_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
