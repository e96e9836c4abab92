/* h2_limits_test.c - HTTP/2 clients that are slow, greedy, broken or hostile: each costs itself. */
#include "h2_world.h"

static struct vg_world w;
static struct vg_h2c c;

static void open_with(const struct vg_http_limits *limits)
{
    vg_world_open(&w, limits);
    vg_world_connect(&w, &c, NULL);
    vg_world_turns(&w, &c, 3);
}

static int setup(void **state)
{
    (void)state;
    open_with(NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    vg_world_close(&w);
    vg_h2c_close(&c);
    return 0;
}

/* ---- raw frames ---- */

static void send_frame(uint8_t type, uint8_t flags, uint32_t id, const void *p, size_t n)
{
    VG_AUTO(buf) b = {0};
    vg_h2c_frame(&b, type, flags, id, p, n);
    vg_h2c_raw(&c, b.p, b.n);
}

/* GET http://x/ : indexed fields of the static table and a literal authority. */
static const char get_block[] = "\x82\x86\x84\x01\x01x";
#define N_GET_BLOCK (sizeof(get_block) - 1)
#define END_STREAM NGHTTP2_FLAG_END_STREAM
#define END_HEADERS NGHTTP2_FLAG_END_HEADERS

static void assert_goes_on(void)
{
    struct vg_h2c_stream *s = vg_h2c_get(&c, "/hello");
    VG_WORLD_UNTIL(&w, &c, s->is_closed);
    assert_int_equal(s->status, 200);
}

static void assert_calmed_down(void)
{
    VG_WORLD_UNTIL(&w, &c, c.is_eof);
    assert_true(c.has_goaway);
    assert_int_equal(c.goaway_error, NGHTTP2_ENHANCE_YOUR_CALM);
    assert_int_equal(vg_world_stats(&w).floods, 1);
}

/* ---- floods ---- */

static void rapid_resets_end_the_connection(void **state)
{
    (void)state;
    VG_AUTO(buf) b = {0};
    for (uint32_t i = 0; i < 1000; i++) {
        vg_h2c_frame(&b, NGHTTP2_HEADERS, END_STREAM | END_HEADERS, 1 + 2 * i, get_block,
                     N_GET_BLOCK);
        vg_h2c_frame(&b, NGHTTP2_RST_STREAM, 0, 1 + 2 * i, "\0\0\0\x08", 4);
    }
    vg_h2c_raw(&c, b.p, b.n);
    assert_calmed_down();
    assert_in_range(w.n_seen, 190, 210);
}

static void resets_at_a_decent_rate_are_fine(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 1000; i++) {
        send_frame(NGHTTP2_HEADERS, END_STREAM | END_HEADERS, 1 + 2 * i, get_block, N_GET_BLOCK);
        send_frame(NGHTTP2_RST_STREAM, 0, 1 + 2 * i, "\0\0\0\x08", 4);
        vg_world_advance(&w, &c, 10);
    }
    assert_false(c.has_goaway);
    assert_int_equal(w.n_seen, 1000);
}

/* An informer factory that stops cancels all of its watches at once. */
static void ending_many_running_watches_is_no_flood(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++)
        vg_h2c_get(&c, "/watch");
    VG_WORLD_UNTIL(&w, &c, c.streams[999]->status == 200);
    for (int i = 0; i < 1000; i++)
        vg_h2c_reset(&c, c.streams[i], NGHTTP2_CANCEL);
    VG_WORLD_UNTIL(&w, &c, c.n_closed == 1000);
    vg_world_turns(&w, &c, 3);
    assert_int_equal(w.seen[999].n_closed, 1);
    assert_false(c.has_goaway);
}

static void repeat_frame(uint8_t type, uint8_t flags, uint32_t id, const void *p, size_t n)
{
    VG_AUTO(buf) b = {0};
    for (int i = 0; i < 1000; i++)
        vg_h2c_frame(&b, type, flags, id, p, n);
    vg_h2c_raw(&c, b.p, b.n);
}

static void pings_end_the_connection(void **state)
{
    (void)state;
    repeat_frame(NGHTTP2_PING, 0, 0, "12345678", 8);
    assert_calmed_down();
}

static void settings_end_the_connection(void **state)
{
    (void)state;
    assert_goes_on(); /* authenticated: every frame is parsed before one is answered */
    repeat_frame(NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    assert_calmed_down();
}

static void priorities_end_the_connection(void **state)
{
    (void)state;
    repeat_frame(NGHTTP2_PRIORITY, 0, 1, "\0\0\0\0\x10", 5);
    assert_calmed_down();
}

static void empty_data_ends_the_connection(void **state)
{
    (void)state;
    send_frame(NGHTTP2_HEADERS, END_HEADERS, 1, get_block, N_GET_BLOCK);
    repeat_frame(NGHTTP2_DATA, 0, 1, NULL, 0);
    assert_calmed_down();
}

/* Frames that make the server reset: the same attack from the other side. */
static void provoked_resets_end_the_connection(void **state)
{
    (void)state;
    VG_AUTO(buf) b = {0};
    for (uint32_t i = 0; i < 1000; i++) {
        vg_h2c_frame(&b, NGHTTP2_HEADERS, END_HEADERS, 1 + 2 * i, get_block, N_GET_BLOCK);
        vg_h2c_frame(&b, NGHTTP2_WINDOW_UPDATE, 0, 1 + 2 * i, "\x7f\xff\xff\xff", 4);
    }
    vg_h2c_raw(&c, b.p, b.n);
    assert_calmed_down();
}

static void endless_heads_end_the_connection(void **state)
{
    (void)state;
    send_frame(NGHTTP2_HEADERS, 0, 1, get_block, N_GET_BLOCK);
    repeat_frame(NGHTTP2_CONTINUATION, 0, 1, NULL, 0);
    VG_WORLD_UNTIL(&w, &c, c.is_eof);
    assert_int_equal(w.n_seen, 0);
}

/* The allowance is generous here, so that what counts is that nobody reads the answers. */
static void acks_that_nobody_reads_are_bounded(void **state)
{
    (void)state;
    open_with(&(struct vg_http_limits){.resets_per_second = 1000000});
    setsockopt(c.fd, SOL_SOCKET, SO_RCVBUF, &(int){4096}, sizeof(int));
    for (int i = 0; i < 1000 && !c.is_eof; i++) {
        repeat_frame(NGHTTP2_PING, 0, 0, "12345678", 8);
        vg_loop_turn(w.loop, false);
    }
    assert_true(c.is_eof);
    assert_int_equal(vg_world_stats(&w).floods, 1);
}

static void streams_over_the_limit_are_refused(void **state)
{
    (void)state;
    open_with(&(struct vg_http_limits){.streams = 10});
    for (uint32_t i = 0; i < 12; i++)
        vg_h2c_get(&c, "/watch");
    VG_WORLD_UNTIL(&w, &c, w.n_seen == 10);
    vg_world_turns(&w, &c, 3);
    assert_int_equal(w.n_seen, 10); /* a decent client waits */
    vg_http_end(w.seen[0].x);
    VG_WORLD_UNTIL(&w, &c, w.n_seen == 11);
    assert_int_equal(w.seen[0].n_closed, 1);
    /* One that knows the limit and does not is no HTTP/2 client. */
    send_frame(NGHTTP2_HEADERS, END_STREAM | END_HEADERS, 999, get_block, N_GET_BLOCK);
    VG_WORLD_UNTIL(&w, &c, c.is_eof);
    assert_int_equal(w.n_seen, 11);
    assert_int_equal(c.goaway_error, NGHTTP2_PROTOCOL_ERROR);
}

/* ---- sizes ---- */

static void heads_over_a_limit_get_431(void **state)
{
    (void)state;
    open_with(&(struct vg_http_limits){.head_bytes = 4096, .head_fields = 20});
    char big[5000];
    memset(big, 'x', sizeof(big));
    big[sizeof(big) - 1] = 0;
    const char *large[] = {"x-big", big, "x-more", "1", NULL};
    struct vg_h2c_stream *s = vg_h2c_request(&c, "GET", "/hello", NULL, 0, large);
    VG_WORLD_UNTIL(&w, &c, s->is_closed);
    assert_int_equal(s->status, 431);
    const char *many[43] = {0};
    for (size_t i = 0; i < 42; i += 2) {
        many[i] = "x-f";
        many[i + 1] = "1";
    }
    s = vg_h2c_request(&c, "GET", "/hello", NULL, 0, many);
    VG_WORLD_UNTIL(&w, &c, s->is_closed);
    assert_int_equal(s->status, 431);
    assert_int_equal(w.n_seen, 0);
    assert_goes_on();
}

static void bodies_over_the_limit_get_413(void **state)
{
    (void)state;
    static char large[200001];
    open_with(&(struct vg_http_limits){.body_bytes = 200000});
    struct vg_h2c_stream *s = vg_h2c_request(&c, "POST", "/echo", large, 200000, NULL);
    VG_WORLD_UNTIL(&w, &c, s->is_closed);
    assert_int_equal(s->status, 200);
    s = vg_h2c_request(&c, "POST", "/echo", large, 200001, NULL);
    VG_WORLD_UNTIL(&w, &c, s->is_closed);
    assert_int_equal(s->status, 413);
    static const char *const announced[] = {"content-length", "200001", NULL};
    s = vg_h2c_request(&c, "POST", "/echo", large, 200001, announced);
    VG_WORLD_UNTIL(&w, &c, s->is_closed);
    assert_int_equal(s->status, 413);
    assert_int_equal(w.seen[2].n_body, 0);
    assert_goes_on();
}

/* One stream's body, or one head, is more than all requests together may hold. */
static void requests_that_hold_too_much_get_429(void **state)
{
    (void)state;
    static char large[70001], head[9000];
    open_with(&(struct vg_http_limits){.request_bytes = 28000});
    struct vg_h2c_stream *s = vg_h2c_request(&c, "POST", "/echo", large, 30000, NULL);
    VG_WORLD_UNTIL(&w, &c, s->is_closed);
    assert_int_equal(s->status, 200);
    s = vg_h2c_request(&c, "POST", "/echo", large, 60000, NULL);
    VG_WORLD_UNTIL(&w, &c, s->is_closed);
    assert_int_equal(s->status, 429);
    memset(head, 'x', sizeof head - 1);
    const char *fields[] = {"x-a", head, "x-b", head, "x-c", head, "x-d", head, "x-e", head, NULL};
    s = vg_h2c_request(&c, "GET", "/hello", NULL, 0, fields);
    VG_WORLD_UNTIL(&w, &c, s->is_closed);
    assert_int_equal(s->status, 429);
    assert_goes_on();
}

/* Bodies that fit into their small window do not wait for those that do not. */
static void short_bodies_pass_by_large_ones(void **state)
{
    (void)state;
    static const char *const announced[] = {"content-length", "1048576", NULL};
    static const char *const fits[] = {"content-length", "60000", NULL};
    for (int i = 0; i < 20; i++)
        vg_h2c_request(&c, "POST", "/echo", "", 0, announced)->is_endless = true;
    struct vg_h2c_stream *s = vg_h2c_request(&c, "POST", "/echo", vg_world_block, 60000, fits);
    VG_WORLD_UNTIL(&w, &c, s->is_closed);
    assert_int_equal(s->status, 200);
    assert_int_equal(nghttp2_session_get_stream_remote_window_size(c.session, c.streams[7]->id),
                     3145729);
    assert_int_equal(nghttp2_session_get_stream_remote_window_size(c.session, c.streams[8]->id),
                     65535);
    vg_world_advance(&w, &c, 30001); /* the first ones had their chance */
    VG_WORLD_UNTIL(&w, &c,
                   nghttp2_session_get_stream_remote_window_size(c.session, c.streams[15]->id) ==
                       3145729);
    assert_int_equal(c.streams[0]->status, 408);
}

/* Bodies that never end: few of them may be large. */
static void unfinished_bodies_hold_little(void **state)
{
    (void)state;
    size_t wide = 0;
    for (uint32_t i = 0; i < 100; i++) {
        struct vg_h2c_stream *s =
            vg_h2c_request(&c, "POST", "/echo", vg_world_block, sizeof(vg_world_block), NULL);
        s->is_endless = true;
    }
    vg_world_turns(&w, &c, 1000);
    assert_int_equal(w.n_seen, 100);
    for (size_t i = 0; i < 100; i++) {
        int32_t left = nghttp2_session_get_stream_remote_window_size(c.session, c.streams[i]->id);
        size_t sent = sizeof(vg_world_block) - c.streams[i]->send_n;
        assert_true(sent <= 65535 || left > 0);
        wide += sent > 65535;
    }
    assert_int_equal(wide, 8);
    assert_false(c.has_goaway);
    /* One of them goes away, and the next one has its turn. */
    vg_h2c_reset(&c, c.streams[0], NGHTTP2_CANCEL);
    VG_WORLD_UNTIL(&w, &c, w.seen[0].n_closed == 1);
    VG_WORLD_UNTIL(&w, &c, sizeof(vg_world_block) - c.streams[8]->send_n > 65535);
}

static void another_protocol_is_cut_off(void **state)
{
    (void)state;
    struct vg_h2c other;
    vg_world_connect(&w, &other, NULL);
    vg_h2c_raw(&other, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnonsense at length, not frames", 54);
    for (int i = 0; i < 10; i++)
        vg_world_turns(&w, &other, 1);
    assert_true(other.is_eof);
    vg_h2c_close(&other);
    assert_goes_on();
}

/* ---- time ---- */

static void a_preface_that_does_not_come_is_not_waited_for(void **state)
{
    (void)state;
    struct vg_h2c other;
    vg_world_connect(&w, &other, NULL);
    vg_h2c_raw(&other, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    vg_world_turns_alone(&w);
    vg_fake_clock_advance(&w.clock, 31999 * VG_NS_PER_MS);
    vg_world_turns_alone(&w);
    assert_int_equal(vg_http_server_connections(w.server), 2);
    vg_fake_clock_advance(&w.clock, 2 * VG_NS_PER_MS);
    vg_world_turns_alone(&w);
    assert_int_equal(vg_http_server_connections(w.server), 1);
    vg_h2c_close(&other);
    assert_goes_on();
}

static void a_head_that_does_not_end_is_not_waited_for(void **state)
{
    (void)state;
    send_frame(NGHTTP2_HEADERS, 0, 1, get_block, N_GET_BLOCK);
    vg_world_turns(&w, &c, 2);
    vg_world_advance(&w, &c, 32001);
    assert_true(c.is_eof);
    assert_int_equal(vg_world_stats(&w).timeouts, 1);
}

static void a_body_that_stops_gets_408(void **state)
{
    (void)state;
    struct vg_h2c_stream *s = vg_h2c_request(&c, "POST", "/echo", "half", 4, NULL);
    s->is_endless = true;
    vg_world_turns(&w, &c, 3);
    vg_world_advance(&w, &c, 29000);
    assert_int_equal(s->status, 0);
    vg_world_advance(&w, &c, 1001);
    VG_WORLD_UNTIL(&w, &c, s->is_closed);
    assert_int_equal(s->status, 408);
    assert_int_equal(vg_world_stats(&w).timeouts, 1);
    assert_goes_on();
}

static void a_body_in_single_bytes_gets_408_when_its_time_is_over(void **state)
{
    (void)state;
    struct vg_h2c_stream *s = vg_h2c_request(&c, "POST", "/echo", "b", 1, NULL);
    s->is_endless = true;
    for (int i = 0; i < 3; i++) {
        vg_world_turns(&w, &c, 3);
        assert_int_equal(s->status, 0);
        vg_world_advance(&w, &c, i < 2 ? 20000 : 20001);
        s->send = "b";
        s->send_n = 1;
        assert_int_equal(i < 2 ? nghttp2_session_resume_data(c.session, s->id) : 0, 0);
    }
    VG_WORLD_UNTIL(&w, &c, s->is_closed);
    assert_int_equal(s->status, 408);
    assert_int_equal(vg_world_stats(&w).timeouts, 1);
    assert_goes_on();
}

static void an_answer_that_nobody_takes_is_reset(void **state)
{
    (void)state;
    struct vg_h2c other;
    vg_world_connect(&w, &other, &(struct vg_h2c_opts){.stream_window = 1000, .is_manual = true});
    struct vg_h2c_stream *stuck = vg_h2c_get(&other, "/watch"),
                         *quiet = vg_h2c_get(&other, "/watch");
    VG_WORLD_UNTIL(&w, &other, quiet->status == 200);
    struct vg_slice v = vg_slice(vg_world_block, 2000);
    assert_int_equal(vg_http_write(w.seen[0].x, &v, 1, &vg_world_pin), VG_HTTP_OPEN);
    VG_WORLD_UNTIL(&w, &other, stuck->body.n == 1000);
    vg_world_advance(&w, &other, 59000);
    assert_false(stuck->is_closed);
    vg_world_advance(&w, &other, 2000);
    VG_WORLD_UNTIL(&w, &other, stuck->is_closed);
    assert_int_equal(stuck->error, NGHTTP2_CANCEL);
    assert_int_equal(w.seen[0].closed_err, VIGIL_E_TIMEOUT);
    assert_int_equal(w.seen[1].n_closed, 0);
    vg_h2c_close(&other);
}

/* 100 bytes/s of a list: below the minimum rate; a watch may be as slow. */
static void a_list_that_trickles_is_reset(void **state)
{
    (void)state;
    struct vg_h2c other;
    vg_world_connect(&w, &other, &(struct vg_h2c_opts){.stream_window = 100, .is_manual = true});
    struct vg_h2c_stream *list = vg_h2c_get(&other, "/big/100000"),
                         *watch = vg_h2c_get(&other, "/watch");
    VG_WORLD_UNTIL(&w, &other, watch->status == 200);
    struct vg_slice v = vg_slice(vg_world_block, 10000);
    assert_int_equal(vg_http_write(w.seen[1].x, &v, 1, &vg_world_pin), VG_HTTP_OPEN);
    for (int i = 0; i < 9; i++) {
        vg_world_advance(&w, &other, 1000);
        vg_h2c_consume(&other, watch, 100);
        vg_h2c_consume(&other, list, 100);
    }
    assert_false(list->is_closed);
    vg_world_advance(&w, &other, 2000);
    VG_WORLD_UNTIL(&w, &other, list->is_closed);
    assert_int_equal(w.seen[0].closed_err, VIGIL_E_TIMEOUT);
    assert_false(watch->is_closed);
    vg_h2c_close(&other);
}

static void a_client_that_does_not_read_is_cut_off(void **state)
{
    (void)state;
    struct vg_h2c_stream *s = vg_h2c_get(&c, "/watch");
    VG_WORLD_UNTIL(&w, &c, s->status == 200);
    struct vg_slice v = vg_slice(vg_world_block, 500000);
    for (int i = 0; i < 2; i++) {
        assert_true(vg_http_write(w.seen[0].x, &v, 1, &vg_world_pin) >= 0);
        vg_world_turns_alone(&w);
    }
    vg_fake_clock_advance(&w.clock, 61000 * VG_NS_PER_MS);
    vg_world_turns_alone(&w);
    assert_int_equal(w.seen[0].closed_err, VIGIL_E_TIMEOUT);
    assert_int_equal(vg_http_server_connections(w.server), 0);
}

static void an_idle_connection_is_closed(void **state)
{
    (void)state;
    assert_goes_on();
    vg_world_advance(&w, &c, 179000);
    assert_false(c.has_goaway);
    vg_world_advance(&w, &c, 1001);
    VG_WORLD_UNTIL(&w, &c, c.is_eof);
    assert_int_equal(c.goaway_error, NGHTTP2_NO_ERROR);
    assert_int_equal(c.n_goaways, 1);
}

static void a_quiet_watch_is_not_idle(void **state)
{
    (void)state;
    struct vg_h2c_stream *s = vg_h2c_get(&c, "/watch");
    VG_WORLD_UNTIL(&w, &c, s->status == 200);
    for (int i = 0; i < 20; i++)
        vg_world_advance(&w, &c, 100000);
    struct vg_slice v = VG_SLICE_LIT("event");
    assert_int_equal(vg_http_write(w.seen[0].x, &v, 1, NULL), VG_HTTP_OPEN);
    VG_WORLD_UNTIL(&w, &c, s->body.n == 5);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define OWN(f) cmocka_unit_test_teardown(f, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(rapid_resets_end_the_connection),
        T(resets_at_a_decent_rate_are_fine),
        T(ending_many_running_watches_is_no_flood),
        T(pings_end_the_connection),
        T(settings_end_the_connection),
        T(priorities_end_the_connection),
        T(empty_data_ends_the_connection),
        T(provoked_resets_end_the_connection),
        T(endless_heads_end_the_connection),
        OWN(acks_that_nobody_reads_are_bounded),
        OWN(streams_over_the_limit_are_refused),
        OWN(heads_over_a_limit_get_431),
        OWN(bodies_over_the_limit_get_413),
        OWN(requests_that_hold_too_much_get_429),
        T(unfinished_bodies_hold_little),
        T(short_bodies_pass_by_large_ones),
        T(another_protocol_is_cut_off),
        T(a_preface_that_does_not_come_is_not_waited_for),
        T(a_head_that_does_not_end_is_not_waited_for),
        T(a_body_that_stops_gets_408),
        T(a_body_in_single_bytes_gets_408_when_its_time_is_over),
        T(an_answer_that_nobody_takes_is_reset),
        T(a_list_that_trickles_is_reset),
        T(a_client_that_does_not_read_is_cut_off),
        T(an_idle_connection_is_closed),
        T(a_quiet_watch_is_not_idle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
