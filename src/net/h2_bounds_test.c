/* h2_bounds_test.c - what an HTTP/2 connection holds, and when: on a connection without a socket,
 * so that each byte can be given and taken by hand. */
#include "h2_world.h"

#include <malloc.h>
#include <unistd.h>

#include "conn_int.h"

static struct vg_world w;

#define END_STREAM NGHTTP2_FLAG_END_STREAM
#define END_HEADERS NGHTTP2_FLAG_END_HEADERS
/* GET http://x/ and GET http://x/watch: fields of the static table and literals. */
static const char get_block[] = "\x82\x86\x84\x01\x01x";
static const char watch_block[] = "\x82\x86\x04\x06/watch\x01\x01x";

static int setup(void **state)
{
    (void)state;
    vg_world_open(&w, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    vg_world_close(&w);
    return 0;
}

/* What a client says first: three requests, one with a body. */
static struct vg_buf record_client(void)
{
    struct vg_buf said = {0};
    struct vg_h2c client;
    char buf[65536];
    ssize_t n;
    int fd[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd), 0);
    vg_h2c_open(&client, fd[1], NULL);
    vg_h2c_get(&client, "/watch");
    vg_h2c_get(&client, "/big/30000");
    vg_h2c_request(&client, "POST", "/echo", vg_world_block, 40000, NULL);
    vg_h2c_step(&client);
    while ((n = recv(fd[0], buf, sizeof(buf), 0)) > 0)
        assert_int_equal(vg_buf_append(&said, buf, (size_t)n), 0);
    vg_h2c_close(&client);
    close(fd[0]);
    return said;
}

static void drive(struct vg_conn *conn, const struct vg_buf *said)
{
    struct vg_slice v = vg_slice(vg_world_block, 5000);
    for (size_t at = 0; at < said->n && !conn->is_closing; at += 10000) {
        vg_conn_feed(conn, said->p + at, VG_MIN(said->n - at, (size_t)10000));
        vg_conn_turn(conn);
    }
    if (w.n_seen > 0 && w.seen[0].x && strcmp(w.seen[0].path, "/watch") == 0) {
        int r = vg_http_write(w.seen[0].x, &v, 1, &vg_world_pin);
        assert_true(r >= 0 || r == -ENOMEM || r == VIGIL_E_CANCELED);
    }
    while (!conn->is_closing && conn->out.n > 0) {
        vg_conn_took(conn, VG_MIN(conn->out.n, (size_t)3000));
        vg_conn_turn(conn);
    }
}

static void a_lack_of_memory_ends_streams_or_the_connection(void **state)
{
    (void)state;
    VG_AUTO(buf) said = record_client();
    VG_ALLOC_FAIL_LOOP (n) {
        struct vg_conn *conn = NULL;
        w.n_seen = 0;
        int r = vg_conn_new_detached(w.server, &conn);
        if (r == 0)
            r = vg_h2_new(conn, &conn->codec);
        if (r == 0)
            drive(conn, &said);
        bool did_fail = vg_test_alloc_failed();
        assert_true(r == 0 || (r == -ENOMEM && did_fail));
        if (!did_fail) {
            assert_int_equal(w.n_seen, 3);
            assert_int_equal(w.seen[2].closed_err, 0);
        }
        if (conn)
            vg_conn_free_detached(conn, VIGIL_E_CANCELED);
        for (size_t i = 0; i < w.n_seen; i++)
            assert_int_equal(w.seen[i].n_closed, 1);
        assert_int_equal(vg_world_pins, 0);
    }
}

static struct vg_conn *detached(void)
{
    struct vg_conn *conn;
    assert_int_equal(vg_conn_new_detached(w.server, &conn), 0);
    assert_int_equal(vg_h2_new(conn, &conn->codec), 0);
    vg_conn_feed(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);
    return conn;
}

/* "All of the answer left" means that the socket took it. */
static void an_answer_is_not_over_before_it_has_left(void **state)
{
    (void)state;
    VG_AUTO(buf) b = {0};
    vg_h2c_frame(&b, NGHTTP2_HEADERS, END_STREAM | END_HEADERS, 1, get_block,
                 sizeof(get_block) - 1);
    for (int round = 0; round < 2; round++) {
        struct vg_conn *conn = detached();
        struct vg_seen *seen = &w.seen[w.n_seen];
        vg_conn_feed(conn, b.p, b.n);
        vg_conn_turn(conn);
        assert_true(conn->out.n > 20);
        vg_conn_took(conn, conn->out.n - 1);
        vg_conn_turn(conn);
        assert_int_equal(seen->n_closed, 0);
        if (round == 0) {
            vg_conn_took(conn, 1);
            assert_int_equal(seen->n_closed, 1);
        }
        vg_conn_free_detached(conn, VIGIL_E_CANCELED);
        assert_int_equal(seen->closed_err, round == 0 ? 0 : VIGIL_E_CANCELED);
    }
}

/* What is ready beyond the connection's share stays with its stream. */
static void the_output_of_a_connection_is_bounded(void **state)
{
    (void)state;
    VG_AUTO(buf) b = {0};
    struct vg_slice v = vg_slice(vg_world_block, 60000);
    struct vg_conn *conn = detached();
    vg_h2c_frame(&b, NGHTTP2_SETTINGS, 0, 0, "\0\4\x7f\xff\xff\xff", 6);
    vg_h2c_frame(&b, NGHTTP2_WINDOW_UPDATE, 0, 0, "\x7f\xff\0\0", 4);
    for (uint32_t i = 0; i < 50; i++)
        vg_h2c_frame(&b, NGHTTP2_HEADERS, END_STREAM | END_HEADERS, 1 + 2 * i, watch_block,
                     sizeof(watch_block) - 1);
    vg_conn_feed(conn, b.p, b.n);
    for (size_t i = 0; i < 50; i++)
        assert_int_equal(vg_http_write(w.seen[i].x, &v, 1, &vg_world_pin), VG_HTTP_OPEN);
    size_t total = 0;
    for (vg_conn_turn(conn); conn->out.n > 0; vg_conn_turn(conn)) {
        assert_true(conn->out.n < VG_CONN_OUT_MAX + 16384 + 9);
        total += conn->out.n;
        vg_conn_took(conn, conn->out.n);
    }
    assert_in_range(total, 50 * 60000, 50 * 60200);
    for (size_t i = 0; i < 50; i++)
        assert_int_equal(w.seen[i].n_progress, 60000);
    vg_conn_free_detached(conn, VIGIL_E_CANCELED);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif

/* All that a watch costs here while nothing happens: nghttp2's stream, ours, and what the queues
 * keep. */
static void a_quiet_watch_takes_few_bytes(void **state)
{
    (void)state;
#ifdef IS_SANITIZED
    skip(); /* another allocator */
#endif
    enum { N = 900 };
    struct vg_conn *conn = detached();
    size_t before = 0;
    for (uint32_t i = 0; i < 10 + N; i++) {
        if (i == 10)
            before = mallinfo2().uordblks;
        VG_AUTO(buf) b = {0};
        vg_h2c_frame(&b, NGHTTP2_HEADERS, END_STREAM | END_HEADERS, 1 + 2 * i, watch_block,
                     sizeof(watch_block) - 1);
        vg_conn_feed(conn, b.p, b.n);
        vg_conn_turn(conn);
        vg_conn_took(conn, conn->out.n);
    }
    assert_int_equal(w.n_seen, 10 + N);
    size_t each = (mallinfo2().uordblks - before) / N;
    print_message("%zu bytes\n", each);
    assert_in_range(each, 300, 450);
    vg_conn_free_detached(conn, VIGIL_E_CANCELED);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_lack_of_memory_ends_streams_or_the_connection),
        T(an_answer_is_not_over_before_it_has_left),
        T(the_output_of_a_connection_is_bounded),
        T(a_quiet_watch_takes_few_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
