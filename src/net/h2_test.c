/* h2_test.c - HTTP/2 over real sockets with a real client session: requests, bodies, watches, flow
 * control, ends and drain. What hostile clients do is in h2_limits_test.c. */
#include "h2_world.h"

static struct vg_world w;
static struct vg_h2c c;

static int setup(void **state)
{
    (void)state;
    vg_world_open(&w, NULL);
    vg_world_connect(&w, &c, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    vg_world_close(&w);
    vg_h2c_close(&c);
    return 0;
}

static bool has_field(const struct vg_h2c_stream *s, const char *line)
{
    return s->fields.p && memmem(s->fields.p, s->fields.n, line, strlen(line)) != NULL;
}

static int write_text(struct vg_seen *s, const char *text)
{
    struct vg_slice v = vg_slice_str(text);
    return vg_http_write(s->x, &v, 1, NULL);
}

/* ---- requests ---- */

static void requests_are_answered_side_by_side(void **state)
{
    (void)state;
    struct vg_h2c_stream *s[100];
    for (size_t i = 0; i < 100; i++)
        s[i] = vg_h2c_get(&c, "/hello");
    VG_WORLD_UNTIL(&w, &c, c.n_closed == 100);
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(s[i]->status, 200);
        assert_int_equal(s[i]->error, 0);
        vg_assert_slice_equal(vg_buf_slice(&s[i]->body), VG_SLICE_LIT("hello"));
        assert_true(has_field(s[i], "content-length: 5\n"));
        assert_true(has_field(s[i], "content-type: text/plain\n"));
        assert_true(has_field(s[i], "date: Mon, 01 Jan 2024 00:00:00 GMT\n"));
        assert_false(has_field(s[i], "connection:"));
        assert_int_equal(w.seen[i].closed_err, 0);
        assert_int_equal(w.seen[i].n_progress, 5);
    }
    assert_int_equal(vg_world_stats(&w).requests, 100);
    assert_int_equal(vg_world_stats(&w).open_h2, 1);
}

static void a_request_is_seen_as_it_was_sent(void **state)
{
    (void)state;
    static const char *const extra[] = {"x-one", "1", "x-two", "", NULL};
    vg_h2c_request(&c, "PATCH", "/silent?a=b%20c", NULL, 0, extra);
    VG_WORLD_UNTIL(&w, &c, w.n_seen == 1);
    const struct vg_http_request *r = vg_http_request(w.seen[0].x);
    assert_int_equal(r->method, VG_HTTP_PATCH);
    assert_int_equal(r->carrier, VG_HTTP_2);
    vg_assert_slice_equal(r->target, VG_SLICE_LIT("/silent?a=b%20c"));
    vg_assert_slice_equal(r->authority, VG_SLICE_LIT("localhost"));
    assert_int_equal(r->n_fields, 2);
    vg_assert_slice_equal(vg_http_field(w.seen[0].x, "x-one"), VG_SLICE_LIT("1"));
    vg_assert_slice_equal(vg_http_field(w.seen[0].x, "x-two"), VG_SLICE_LIT(""));
    assert_false(r->wants_websocket);
}

static void bodies_are_collected(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 65535, 65536, 1 << 20};
    for (size_t i = 0; i < VG_ARRAY_LEN(sizes); i++) {
        struct vg_h2c_stream *s =
            vg_h2c_request(&c, "POST", "/echo", vg_world_block, sizes[i], NULL);
        VG_WORLD_UNTIL(&w, &c, s->is_closed);
        assert_int_equal(s->status, 200);
        vg_assert_slice_equal(vg_buf_slice(&s->body), vg_slice(vg_world_block, sizes[i]));
    }
}

static void many_large_bodies_take_turns(void **state)
{
    (void)state;
    struct vg_h2c_stream *s[50];
    for (size_t i = 0; i < 50; i++)
        s[i] = vg_h2c_request(&c, "POST", "/hello", vg_world_block, sizeof(vg_world_block), NULL);
    VG_WORLD_UNTIL(&w, &c, c.n_closed == 50);
    for (size_t i = 0; i < 50; i++) {
        assert_int_equal(s[i]->status, 200);
        assert_int_equal(w.seen[i].n_body, sizeof(vg_world_block));
    }
}

static void an_early_answer_makes_the_rest_of_the_body_pointless(void **state)
{
    (void)state;
    struct vg_h2c_stream *s =
        vg_h2c_request(&c, "POST", "/early", vg_world_block, sizeof(vg_world_block), NULL);
    VG_WORLD_UNTIL(&w, &c, s->is_closed);
    assert_int_equal(s->status, 401);
    assert_true(s->has_end);
    assert_int_equal(s->error, NGHTTP2_NO_ERROR);
    vg_assert_slice_equal(vg_buf_slice(&s->body), VG_SLICE_LIT("who are you"));
    VG_WORLD_UNTIL(&w, &c, w.seen[0].n_closed == 1);
    assert_int_equal(w.seen[0].closed_err, 0);
    assert_int_equal(w.seen[0].n_body, 0);
}

/* A client that still sends when the answer comes may take a reset for a failure: a body that fits
 * into the window is read to its end, and only who does not end it is reset. */
static void a_small_body_is_read_before_an_early_answer_ends(void **state)
{
    (void)state;
    static const char *const announced[] = {"content-length", "20000", NULL};
    struct vg_h2c_stream *s =
        vg_h2c_request(&c, "POST", "/early", vg_world_block, 10000, announced);
    struct vg_h2c_stream *slow =
        vg_h2c_request(&c, "POST", "/early", vg_world_block, 10, announced);
    s->is_endless = slow->is_endless = true;
    VG_WORLD_UNTIL(&w, &c, s->has_end && slow->has_end);
    vg_world_turns(&w, &c, 10);
    assert_int_equal(s->status, 401);
    assert_false(s->is_closed);
    assert_int_equal(w.seen[0].n_closed, 0);
    char rest[10009];
    VG_AUTO(buf) b = {0};
    memset(rest, 'x', sizeof rest);
    vg_h2c_frame(&b, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, (uint32_t)s->id, rest, 10000);
    vg_h2c_raw(&c, b.p, b.n);
    VG_WORLD_UNTIL(&w, &c, w.seen[0].n_closed == 1);
    assert_int_equal(w.seen[0].closed_err, 0);
    assert_int_equal(w.seen[1].n_closed, 0);
    vg_world_advance(&w, &c, 2001);
    VG_WORLD_UNTIL(&w, &c, slow->is_closed);
    assert_int_equal(slow->error, NGHTTP2_NO_ERROR);
    VG_WORLD_UNTIL(&w, &c, w.seen[1].n_closed == 1);
    assert_int_equal(w.seen[1].closed_err, 0);
}

static void head_has_no_body(void **state)
{
    (void)state;
    struct vg_h2c_stream *s = vg_h2c_request(&c, "HEAD", "/hello", NULL, 0, NULL);
    VG_WORLD_UNTIL(&w, &c, s->is_closed);
    assert_int_equal(s->status, 200);
    assert_int_equal(s->error, 0);
    assert_true(has_field(s, "content-length: 5\n"));
    assert_int_equal(s->body.n, 0);
}

static void expect_is_answered_with_100(void **state)
{
    (void)state;
    static const char *const extra[] = {"expect", "100-continue", NULL};
    struct vg_h2c_stream *s = vg_h2c_request(&c, "POST", "/echo", "x", 1, extra);
    VG_WORLD_UNTIL(&w, &c, s->is_closed);
    assert_true(has_field(s, ":status: 100\n"));
    assert_int_equal(s->status, 200);
}

static void trailers_are_ignored(void **state)
{
    (void)state;
    nghttp2_nv trailer = {(uint8_t *)(uintptr_t) "x-sum", (uint8_t *)(uintptr_t) "1", 5, 1, 0};
    /* A body without END_STREAM, then the trailers with it. */
    struct vg_h2c_stream *s = vg_h2c_request(&c, "POST", "/echo", "body", 4, NULL);
    s->has_trailers = true;
    vg_world_turns(&w, &c, 3);
    assert_int_equal(nghttp2_submit_trailer(c.session, s->id, &trailer, 1), 0);
    VG_WORLD_UNTIL(&w, &c, s->is_closed);
    assert_int_equal(s->status, 200);
    vg_assert_slice_equal(vg_buf_slice(&s->body), VG_SLICE_LIT("body"));
}

static void connect_and_other_protocols_are_refused(void **state)
{
    (void)state;
    nghttp2_nv connect[] = {
        {(uint8_t *)(uintptr_t) ":method", (uint8_t *)(uintptr_t) "CONNECT", 7, 7, 0},
        {(uint8_t *)(uintptr_t) ":authority", (uint8_t *)(uintptr_t) "x:1", 10, 3, 0}};
    int32_t id = nghttp2_submit_request(c.session, NULL, connect, 2, NULL, NULL);
    assert_true(id > 0);
    VG_WORLD_UNTIL(&w, &c, w.n_refused == 1);
    assert_int_equal(w.n_seen, 0);
    static const char *const extra[] = {":protocol", "websocket", NULL};
    struct vg_h2c_stream *s = vg_h2c_request(&c, "CONNECT", "/", NULL, 0, extra);
    VG_WORLD_UNTIL(&w, &c, s->is_closed);
    assert_int_equal(s->error, NGHTTP2_PROTOCOL_ERROR);
    assert_int_equal(w.n_seen, 0);
    s = vg_h2c_get(&c, "/hello"); /* the connection goes on */
    VG_WORLD_UNTIL(&w, &c, s->is_closed);
    assert_int_equal(s->status, 200);
}

/* ---- watches ---- */

static void open_watches(size_t n)
{
    size_t had = w.n_seen;
    for (size_t i = 0; i < n; i++) {
        struct vg_h2c_stream *s = vg_h2c_get(&c, "/watch");
        assert_non_null(s);
    }
    VG_WORLD_UNTIL(&w, &c, w.n_seen == had + n && c.streams[c.n_streams - 1]->status == 200);
}

static void a_thousand_watches_share_a_connection(void **state)
{
    (void)state;
    open_watches(1000);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 1000; i++) {
            struct vg_slice v = vg_slice(vg_world_block + i, 4096);
            assert_int_equal(vg_http_write(w.seen[i].x, &v, 1, &vg_world_pin), VG_HTTP_OPEN);
        }
        size_t want = 4096u * (unsigned)(round + 1);
        VG_WORLD_UNTIL(&w, &c, c.streams[999]->body.n == want && c.streams[0]->body.n == want);
    }
    for (size_t i = 0; i < 1000; i++) {
        VG_WORLD_UNTIL(&w, &c, c.streams[i]->body.n == 3u * 4096u);
        for (size_t k = 0; k < 3; k++)
            vg_assert_slice_equal(vg_slice(c.streams[i]->body.p + k * 4096, 4096),
                                  vg_slice(vg_world_block + i, 4096));
        vg_http_end(w.seen[i].x);
    }
    VG_WORLD_UNTIL(&w, &c, c.n_closed == 1000);
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(w.seen[i].closed_err, 0);
}

static void events_that_are_ready_together_share_a_frame(void **state)
{
    (void)state;
    open_watches(1);
    for (int i = 0; i < 10; i++)
        assert_int_equal(write_text(&w.seen[0], "{\"type\":\"MODIFIED\"}\n"), VG_HTTP_OPEN);
    VG_WORLD_UNTIL(&w, &c, c.streams[0]->body.n == 200);
    assert_int_equal(c.streams[0]->n_data, 1);
}

static void a_client_that_resets_ends_its_stream_alone(void **state)
{
    (void)state;
    open_watches(2);
    vg_h2c_reset(&c, c.streams[0], NGHTTP2_CANCEL);
    VG_WORLD_UNTIL(&w, &c, w.seen[0].n_closed == 1);
    assert_int_equal(w.seen[0].closed_err, VIGIL_E_CANCELED);
    assert_int_equal(write_text(&w.seen[1], "x"), VG_HTTP_OPEN);
    VG_WORLD_UNTIL(&w, &c, c.streams[1]->body.n == 1);
}

static void an_abort_resets_the_stream(void **state)
{
    (void)state;
    open_watches(2);
    assert_int_equal(write_text(&w.seen[0], "x"), VG_HTTP_OPEN);
    vg_http_abort(w.seen[0].x);
    assert_int_equal(w.seen[0].n_closed, 0); /* never from within */
    assert_int_equal(write_text(&w.seen[0], "y"), VIGIL_E_CANCELED);
    VG_WORLD_UNTIL(&w, &c, c.streams[0]->is_closed);
    assert_int_equal(c.streams[0]->error, NGHTTP2_INTERNAL_ERROR);
    assert_int_equal(w.seen[0].closed_err, VIGIL_E_CANCELED);
    assert_int_equal(w.seen[1].n_closed, 0);
}

static void a_client_that_goes_away_ends_all(void **state)
{
    (void)state;
    open_watches(10);
    shutdown(c.fd, SHUT_RDWR);
    VG_WORLD_UNTIL(&w, &c, w.seen[9].n_closed == 1);
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(w.seen[i].closed_err, VIGIL_E_CANCELED);
    assert_int_equal(vg_world_stats(&w).open_h2, 0);
}

/* ---- flow control ---- */

static void reconnect(const struct vg_h2c_opts *opts)
{
    vg_h2c_close(&c);
    vg_world_turns_alone(&w);
    vg_world_connect(&w, &c, opts);
}

static void a_stream_whose_window_is_shut_stalls_alone(void **state)
{
    (void)state;
    reconnect(&(struct vg_h2c_opts){.stream_window = 65535, .is_manual = true});
    open_watches(3);
    struct vg_slice v = vg_slice(vg_world_block, 50000);
    assert_int_equal(vg_http_write(w.seen[0].x, &v, 1, &vg_world_pin), VG_HTTP_OPEN);
    vg_world_turns(&w, &c, 3);
    assert_int_equal(vg_http_write(w.seen[0].x, &v, 1, &vg_world_pin), VG_HTTP_OPEN);
    assert_int_equal(vg_http_write(w.seen[0].x, &v, 1, &vg_world_pin), VG_HTTP_FULL);
    vg_world_turns(&w, &c, 10);
    assert_int_equal(c.streams[0]->body.n, 65535);
    assert_int_equal(vg_http_unsent(w.seen[0].x), 150000 - 65535);
    assert_int_equal(w.seen[0].n_drained, 0);
    for (size_t i = 1; i < 3; i++)
        for (int k = 1; k <= 20; k++) {
            assert_int_equal(vg_http_write(w.seen[i].x, &v, 1, &vg_world_pin), VG_HTTP_OPEN);
            VG_WORLD_UNTIL(&w, &c, c.streams[i]->body.n == 50000u * (unsigned)k);
            vg_h2c_consume(&c, c.streams[i], 50000);
            vg_h2c_consume(&c, NULL, 50000);
        }
    assert_int_equal(c.streams[0]->body.n, 65535);
    vg_h2c_consume(&c, c.streams[0], 65535);
    VG_WORLD_UNTIL(&w, &c, w.seen[0].n_drained == 1);
    VG_WORLD_UNTIL(&w, &c, c.streams[0]->body.n == 2 * 65535);
    vg_h2c_consume(&c, c.streams[0], 65535);
    VG_WORLD_UNTIL(&w, &c, c.streams[0]->body.n == 150000);
}

static void the_window_of_the_connection_is_respected(void **state)
{
    (void)state;
    reconnect(
        &(struct vg_h2c_opts){.stream_window = 1 << 20, .conn_window = 65535, .is_manual = true});
    open_watches(2);
    struct vg_slice v = vg_slice(vg_world_block, 50000);
    assert_int_equal(vg_http_write(w.seen[0].x, &v, 1, &vg_world_pin), VG_HTTP_OPEN);
    assert_int_equal(vg_http_write(w.seen[1].x, &v, 1, &vg_world_pin), VG_HTTP_OPEN);
    vg_world_turns(&w, &c, 10);
    assert_int_equal(c.streams[0]->body.n + c.streams[1]->body.n, 65535);
    vg_h2c_consume(&c, NULL, 65535);
    VG_WORLD_UNTIL(&w, &c, c.streams[0]->body.n + c.streams[1]->body.n == 100000);
}

/* A list of 8 MB and a watch on one connection: the event does not wait for the list. */
static void a_list_does_not_hold_watches_back(void **state)
{
    (void)state;
    open_watches(1);
    struct vg_h2c_stream *list = vg_h2c_get(&c, "/big/8000000");
    VG_WORLD_UNTIL(&w, &c, list->body.n > 100000);
    assert_int_equal(write_text(&w.seen[0], "event"), VG_HTTP_OPEN);
    VG_WORLD_UNTIL(&w, &c, c.streams[0]->body.n == 5);
    assert_in_range(list->body.n, 100000, 4000000);
    VG_WORLD_UNTIL(&w, &c, list->is_closed);
    assert_int_equal(list->body.n, 8000000);
    assert_true(w.seen[1].n_drained > 0);
    VG_WORLD_UNTIL(&w, &c, w.seen[1].n_closed == 1);
    assert_int_equal(w.seen[1].n_progress, 8000000);
    assert_int_equal(w.seen[1].closed_err, 0);
}

/* One has 900 KB ready at once, the other a word: it does not wait for all of it. */
static void streams_take_turns(void **state)
{
    (void)state;
    open_watches(2);
    struct vg_slice v = vg_slice(vg_world_block, 900000);
    assert_int_equal(vg_http_write(w.seen[0].x, &v, 1, &vg_world_pin), VG_HTTP_FULL);
    assert_int_equal(write_text(&w.seen[1], "event"), VG_HTTP_OPEN);
    VG_WORLD_UNTIL(&w, &c, c.streams[1]->body.n == 5);
    assert_in_range(c.streams[0]->body.n, 1, 400000);
    VG_WORLD_UNTIL(&w, &c, c.streams[0]->body.n == 900000);
}

/* ---- drain ---- */

static void on_drained(void *arg)
{
    *(bool *)arg = true;
}

static void drain_lets_streams_end(void **state)
{
    (void)state;
    open_watches(2);
    vg_http_server_drain(w.server, on_drained, &w.is_drained);
    struct vg_h2c_stream *late = vg_h2c_get(&c, "/hello"); /* crosses the notice */
    VG_WORLD_UNTIL(&w, &c, c.n_goaways == 2);
    assert_int_equal(c.goaway_error, NGHTTP2_NO_ERROR);
    assert_int_equal(c.goaway_last, late->id);
    assert_int_equal(late->status, 200);
    assert_false(w.is_drained);
    assert_int_equal(write_text(&w.seen[0], "last words"), VG_HTTP_OPEN);
    vg_http_end(w.seen[0].x);
    vg_http_end(w.seen[1].x);
    VG_WORLD_UNTIL(&w, &c, c.is_eof && w.is_drained);
    assert_int_equal(c.streams[0]->body.n, 10);
    assert_true(c.streams[0]->has_end && c.streams[1]->has_end);
    assert_int_equal(w.seen[0].closed_err, 0);
}

/* Nothing happens at the moment, but a request may have crossed the notice. */
static void drain_waits_for_what_is_under_way(void **state)
{
    (void)state;
    vg_world_turns(&w, &c, 3);
    struct vg_h2c_stream *s = vg_h2c_get(&c, "/hello");
    vg_http_server_drain(w.server, on_drained, &w.is_drained);
    for (int i = 0; i < 5; i++)
        vg_loop_turn(w.loop, false);
    assert_false(w.is_drained);
    VG_WORLD_UNTIL(&w, &c, w.is_drained);
    VG_WORLD_UNTIL(&w, &c, c.is_eof);
    assert_int_equal(s->status, 200);
    assert_int_equal(c.n_goaways, 2);
}

static void drain_does_not_wait_for_clients_that_answer_nothing(void **state)
{
    (void)state;
    open_watches(1);
    vg_http_server_drain(w.server, on_drained, &w.is_drained);
    vg_loop_turn(w.loop, false);
    vg_fake_clock_advance(&w.clock, 1100 * VG_NS_PER_MS); /* no answer to the ping for so long */
    vg_loop_turn(w.loop, false);
    vg_loop_turn(w.loop, false);
    vg_world_turns(&w, &c, 3);
    assert_int_equal(c.n_goaways, 2);
    vg_http_end(w.seen[0].x);
    VG_WORLD_UNTIL(&w, &c, c.is_eof && w.is_drained);
}

static void an_idle_connection_drains_at_once(void **state)
{
    (void)state;
    vg_world_turns(&w, &c, 3);
    vg_http_server_drain(w.server, on_drained, &w.is_drained);
    VG_WORLD_UNTIL(&w, &c, c.is_eof && w.is_drained);
    assert_true(c.has_goaway);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    for (size_t i = 0; i < sizeof(vg_world_block); i++)
        vg_world_block[i] = (char)('a' + i % 23);
    const struct CMUnitTest tests[] = {
        T(requests_are_answered_side_by_side),
        T(a_request_is_seen_as_it_was_sent),
        T(bodies_are_collected),
        T(many_large_bodies_take_turns),
        T(an_early_answer_makes_the_rest_of_the_body_pointless),
        T(a_small_body_is_read_before_an_early_answer_ends),
        T(head_has_no_body),
        T(expect_is_answered_with_100),
        T(trailers_are_ignored),
        T(connect_and_other_protocols_are_refused),
        T(a_thousand_watches_share_a_connection),
        T(events_that_are_ready_together_share_a_frame),
        T(a_client_that_resets_ends_its_stream_alone),
        T(an_abort_resets_the_stream),
        T(a_client_that_goes_away_ends_all),
        T(a_stream_whose_window_is_shut_stalls_alone),
        T(the_window_of_the_connection_is_respected),
        T(a_list_does_not_hold_watches_back),
        T(streams_take_turns),
        T(drain_lets_streams_end),
        T(drain_waits_for_what_is_under_way),
        T(drain_does_not_wait_for_clients_that_answer_nothing),
        T(an_idle_connection_drains_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
