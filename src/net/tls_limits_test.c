/* tls_limits_test.c - how long a handshake may take, and how many may be under way at once. */
#include "tls_server_testing.h"

#include <poll.h>

static void slow_handshakes_are_cut(void **state)
{
    struct tls_test *t = *state;
    dial(t, NULL, H1);
    assert_int_equal(send(t->fd, "\x16\x03\x01", 3, 0), 3);
    net_pass(&t->net, 9999);
    assert_int_equal(vg_http_server_connections(t->net.server), 1);
    net_pass(&t->net, 1);
    assert_int_equal(vg_http_server_connections(t->net.server), 0);
    struct vg_http_stats stats;
    vg_http_stats(t->net.shared, &stats);
    assert_int_equal(stats.timeouts, 1);
    assert_int_equal(stats.handshakes_failed, 1);
}

/* The end of a connection comes by way of the kernel, which may be busy. */
static void expect_ends(struct tls_test *t, const int *fds, int n, int want)
{
    int ends = 0;
    for (int turn = 0; turn < 10 || (ends < want && turn < 60000); turn++) {
        net_turns(&t->net, 1);
        ends = 0;
        for (int i = 0; i < n; i++)
            ends += recv(fds[i], &(char){0}, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
        if (ends < want)
            poll(NULL, 0, 1);
    }
    assert_int_equal(ends, want);
}

static struct vg_listener *listen_within(struct tls_test *t, struct vg_http_limits limits)
{
    struct vg_listener *l = NULL;
    open_tls(t, &limits);
    assert_int_equal(vg_listener_open("127.0.0.1", 0, &l, NULL), 0);
    assert_int_equal(vg_http_server_listen(t->net.server, l, t->tls), 0);
    return l;
}

/* A server that takes two handshakes at a time. */
static struct vg_listener *listen_for_two(struct tls_test *t)
{
    return listen_within(t, (struct vg_http_limits){.handshakes = 2, .handshakes_per_address = 2});
}

static void end_listening(struct tls_test *t, struct vg_listener *l)
{
    vg_http_server_free(t->net.server);
    assert_int_equal(vg_http_server_new(t->net.shared, t->net.loop, &t->net.server), 0);
    vg_listener_free(l);
    teardown(&(void *){t});
}

static int connect_from(uint32_t address, const struct vg_listener *l)
{
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(vg_listener_port(l)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static int connect_to(const struct vg_listener *l)
{
    return connect_from(INADDR_LOOPBACK, l);
}

static void shake_on(struct tls_test *t, int fd)
{
    t->fd = fd;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    t->ssl = tls_test_client(fd, &t->ca, NULL, H1);
    assert_int_equal(shake(t), 1);
}

static void handshakes_have_a_cap(void **state)
{
    (void)state;
    static struct tls_test t;
    struct vg_listener *l = listen_for_two(&t);
    int fds[4];
    for (int i = 0; i < 4; i++)
        fds[i] = connect_to(l);
    expect_ends(&t, fds, 4, 2);
    shake_on(&t, fds[0]); /* one is through: there is room for another */
    net_turns(&t.net, 2); /* the server has heard of it, too */
    close(fds[3]);
    fds[3] = connect_to(l);
    expect_ends(&t, fds + 3, 1, 0);
    for (int i = 1; i < 4; i++)
        close(fds[i]);
    end_listening(&t, l);
}

/* Who has its share keeps out itself alone, and after a second its own oldest gives way. */
static void an_address_has_a_share_of_the_handshakes(void **state)
{
    (void)state;
    static struct tls_test t;
    struct vg_http_limits limits = {.handshakes = 8, .handshakes_per_address = 2};
    struct vg_listener *l = listen_within(&t, limits);
    int fds[5], other = connect_from(INADDR_LOOPBACK + 1, l);
    for (int i = 0; i < 4; i++)
        fds[i] = connect_to(l);
    expect_ends(&t, fds, 4, 2);
    expect_ends(&t, &other, 1, 0);
    net_pass(&t.net, 1000);
    fds[4] = connect_to(l);
    expect_ends(&t, fds, 2, 1);
    expect_ends(&t, &other, 1, 0); /* the oldest of all is another's */
    shake_on(&t, other);
    for (int i = 0; i < 5; i++)
        close(fds[i]);
    end_listening(&t, l);
}

/* Addresses that hold all handshakes together do not keep out one that has none, not even for the
 * second that theirs have; for one that has about as many as they have nobody gives way. */
static void many_handshakes_give_way_to_few(void **state)
{
    (void)state;
    static struct tls_test t;
    struct vg_http_limits limits = {.handshakes = 12, .handshakes_per_address = 6};
    struct vg_listener *l = listen_within(&t, limits);
    int fds[12];
    for (int i = 0; i < 12; i++)
        fds[i] = connect_from(INADDR_LOOPBACK + 1 + (in_addr_t)i / 6, l);
    expect_ends(&t, fds, 12, 0);
    int few[4];
    for (int i = 0; i < 3; i++)
        few[i] = connect_to(l);
    expect_ends(&t, few, 3, 1); /* two are let in */
    expect_ends(&t, fds, 1, 1);
    expect_ends(&t, fds + 6, 1, 1); /* for the oldest of each */
    few[3] = connect_from(INADDR_LOOPBACK + 1, l);
    expect_ends(&t, few + 3, 1, 1);
    shake_on(&t, few[0]);
    for (int i = 0; i < 12; i++)
        close(fds[i]);
    for (int i = 1; i < 4; i++)
        close(few[i]);
    end_listening(&t, l);
}

/* Two that say nothing do not keep a third out for the ten seconds that they have. */
static void slow_handshakes_give_way(void **state)
{
    (void)state;
    static struct tls_test t;
    struct vg_listener *l = listen_for_two(&t);
    int fds[4] = {connect_to(l), connect_to(l)};
    net_turns(&t.net, 10);
    net_pass(&t.net, 999);
    fds[2] = connect_to(l);
    expect_ends(&t, fds, 3, 1); /* the new one */
    net_pass(&t.net, 1);
    fds[3] = connect_to(l);
    expect_ends(&t, fds, 2, 1); /* an old one */
    assert_int_equal(vg_http_server_connections(t.net.server), 2);
    shake_on(&t, fds[3]);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    end_listening(&t, l);
}

static void garbage_instead_of_a_handshake_is_cut(void **state)
{
    struct tls_test *t = *state;
    dial(t, NULL, H1);
    assert_true(send(t->fd, "GET / HTTP/1.1\r\n\r\n", 18, 0) == 18);
    net_turns(&t->net, 5);
    assert_int_equal(vg_http_server_connections(t->net.server), 0);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(slow_handshakes_are_cut),
        cmocka_unit_test(handshakes_have_a_cap),
        cmocka_unit_test(an_address_has_a_share_of_the_handshakes),
        cmocka_unit_test(many_handshakes_give_way_to_few),
        cmocka_unit_test(slow_handshakes_give_way),
        T(garbage_instead_of_a_handshake_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
