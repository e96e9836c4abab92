/* ws_server_test.c - WebSockets over real sockets: a wslay client against our server. */
#include "net_testing.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <wslay/wslay.h>

struct client {
    int fd;
    bool is_open, is_eof; /* 101 was seen; the server closed */
    struct vg_buf in;     /* before wslay has read it */
    struct vg_buf got;    /* messages, each followed by '|' */
    wslay_event_context_ptr ws;
    unsigned n_messages, n_pongs, close_code;
};

static struct net_test t;
static struct client c;

static ssize_t client_send(wslay_event_context_ptr ctx, const uint8_t *p, size_t n, int flags,
                           void *arg)
{
    (void)flags;
    (void)arg;
    ssize_t w = send(c.fd, p, n, MSG_NOSIGNAL);
    if (w < 0)
        wslay_event_set_error(ctx,
                              errno == EAGAIN ? WSLAY_ERR_WOULDBLOCK : WSLAY_ERR_CALLBACK_FAILURE);
    return w;
}

static ssize_t client_recv(wslay_event_context_ptr ctx, uint8_t *p, size_t n, int flags, void *arg)
{
    (void)flags;
    (void)arg;
    size_t take = VG_MIN(n, c.in.n);
    if (take == 0) {
        wslay_event_set_error(ctx, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    memcpy(p, c.in.p, take);
    vg_buf_consume(&c.in, take);
    return (ssize_t)take;
}

static int client_mask(wslay_event_context_ptr ctx, uint8_t *p, size_t n, void *arg)
{
    (void)ctx;
    (void)arg;
    memset(p, 0x5a, n);
    return 0;
}

static void client_message(wslay_event_context_ptr ctx, const struct wslay_event_on_msg_recv_arg *m,
                           void *arg)
{
    (void)ctx;
    (void)arg;
    if (m->opcode == WSLAY_PONG)
        c.n_pongs++;
    else if (m->opcode == WSLAY_CONNECTION_CLOSE)
        c.close_code = m->status_code;
    else {
        c.n_messages++;
        assert_int_equal(vg_buf_append(&c.got, m->msg, m->msg_length), 0);
        assert_int_equal(vg_buf_append_byte(&c.got, '|'), 0);
    }
}

static void read_some(void)
{
    char buf[65536];
    ssize_t n = 0;
    while (!c.is_eof && (n = recv(c.fd, buf, sizeof(buf), 0)) > 0)
        assert_int_equal(vg_buf_append(&c.in, buf, (size_t)n), 0);
    c.is_eof |= n == 0 || (n < 0 && errno != EAGAIN);
    char *end = c.is_open || c.in.n == 0 ? NULL : memmem(c.in.p, c.in.n, "\r\n\r\n", 4);
    if (end) {
        c.is_open = vg_slice_has_prefix(vg_buf_slice(&c.in), VG_SLICE_LIT("HTTP/1.1 101 "));
        vg_buf_consume(&c.in, (size_t)(end + 4 - c.in.p));
    }
    if (c.is_open)
        wslay_event_recv(c.ws);
}

static void turns(int n)
{
    for (int i = 0; i < n; i++) {
        wslay_event_send(c.ws);
        net_turns(&t, 1);
        read_some();
    }
}

static int setup(void **state)
{
    static const char request[] =
        "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    struct wslay_event_callbacks cb = {.recv_callback = client_recv,
                                       .send_callback = client_send,
                                       .genmask_callback = client_mask,
                                       .on_msg_recv_callback = client_message};
    int fd[2];
    (void)state;
    net_test_open(&t, NULL);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd), 0);
    assert_int_equal(vg_http_server_adopt(t.server, fd[0], NULL), 0);
    c = (struct client){.fd = fd[1]};
    assert_int_equal(wslay_event_context_client_init(&c.ws, &cb, NULL), 0);
    assert_int_equal(send(c.fd, request, sizeof(request) - 1, 0), sizeof(request) - 1);
    turns(3);
    assert_true(c.is_open);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    net_test_close(&t);
    wslay_event_context_free(c.ws);
    vg_buf_done(&c.in);
    vg_buf_done(&c.got);
    close(c.fd);
    return 0;
}

static void say(uint8_t opcode, const void *p, size_t n)
{
    struct wslay_event_msg m = {opcode, p, n};
    assert_int_equal(wslay_event_queue_msg(c.ws, &m), 0);
}

static void events_are_messages(void **state)
{
    (void)state;
    assert_int_equal(net_write(t.last, "{\"one\":1}\n"), VG_HTTP_OPEN);
    assert_int_equal(net_write(t.last, "{\"two\":2}\n"), VG_HTTP_OPEN);
    turns(2);
    vg_assert_slice_equal(vg_buf_slice(&c.got), VG_SLICE_LIT("{\"one\":1}\n|{\"two\":2}\n|"));
    say(WSLAY_PING, "are you there", 13);
    turns(2);
    assert_int_equal(c.n_pongs, 1);
    assert_int_equal(t.n_closed, 0);
}

static void what_clients_send_is_dropped_while_events_go_on(void **state)
{
    (void)state;
    static char large[3 << 20];
    say(WSLAY_BINARY_FRAME, large, sizeof(large));
    for (int i = 0; i < 100; i++) {
        assert_int_equal(net_write(t.last, "event"), VG_HTTP_OPEN);
        turns(1);
    }
    turns(200);
    assert_int_equal(c.n_messages, 100);
    assert_int_equal(t.n_closed, 0);
}

static void an_end_is_a_close_with_1000(void **state)
{
    (void)state;
    assert_int_equal(net_write(t.last, "last"), VG_HTTP_OPEN);
    vg_http_end(t.last);
    turns(5);
    vg_assert_slice_equal(vg_buf_slice(&c.got), VG_SLICE_LIT("last|"));
    assert_int_equal(c.close_code, 1000);
    assert_true(c.is_eof);
    assert_int_equal(t.last_err, 0);
}

static void a_client_that_closes_gets_its_close_back(void **state)
{
    (void)state;
    assert_int_equal(wslay_event_queue_close(c.ws, 1001, (const uint8_t *)"bye", 3), 0);
    turns(5);
    assert_int_equal(c.close_code, 1001);
    assert_true(c.is_eof);
    assert_int_equal(t.n_closed, 1);
    assert_int_equal(t.last_err, VIGIL_E_CANCELED);
}

static void a_broken_client_is_closed_with_1002(void **state)
{
    (void)state;
    assert_int_equal(send(c.fd, "\x81\x02hi", 4, 0), 4); /* not masked */
    turns(5);
    assert_int_equal(c.close_code, 1002);
    assert_true(c.is_eof);
    assert_int_equal(t.n_closed, 1);
    struct vg_http_stats stats;
    vg_http_stats(t.shared, &stats);
    assert_int_equal(stats.malformed, 1);
}

/* And reads nothing: its pings are dropped once enough answers wait, and then its time is up. */
static void a_client_that_only_pings_is_cut_off(void **state)
{
    (void)state;
    static const char ping[131] = "\x89\xfd";
    for (int i = 0; i < 20000; i++) {
        assert_int_equal(send(c.fd, ping, sizeof(ping), MSG_NOSIGNAL), sizeof(ping));
        net_turns(&t, 1);
    }
    assert_int_equal(t.n_closed, 0);
    assert_in_range(vg_http_unsent(t.last), 60000, 70000);
    net_pass(&t, 61000);
    assert_int_equal(t.n_closed, 1);
    assert_int_equal(t.last_err, VIGIL_E_TIMEOUT);
}

static void a_slow_client_is_full_and_drains(void **state)
{
    (void)state;
    static char text[100001];
    memset(text, 'x', sizeof(text) - 1);
    unsigned n = 0;
    while (net_write(t.last, text) == VG_HTTP_OPEN) {
        net_turns(&t, 1);
        assert_true(++n < 1000);
    }
    assert_null(strstr(t.log, "drained"));
    turns(20);
    assert_non_null(strstr(t.log, "drained"));
    assert_int_equal(c.n_messages, n + 1);
    assert_int_equal(c.got.n, (n + 1) * (sizeof(text)));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(events_are_messages),
        T(what_clients_send_is_dropped_while_events_go_on),
        T(an_end_is_a_close_with_1000),
        T(a_client_that_closes_gets_its_close_back),
        T(a_broken_client_is_closed_with_1002),
        T(a_client_that_only_pings_is_cut_off),
        T(a_slow_client_is_full_and_drains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
