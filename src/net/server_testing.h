/* server_testing.h - for tests of servers on real sockets: a server that is the state of a test,
 * and clients of it. */
#ifndef VG_NET_SERVER_TESTING_H
#define VG_NET_SERVER_TESTING_H

#include "net_testing.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

static inline int setup(void **state)
{
    static struct net_test t;
    net_test_open(&t, NULL);
    *state = &t;
    return 0;
}

static inline int teardown(void **state)
{
    net_test_close(*state);
    return 0;
}

static inline int connect_to(uint16_t port)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static inline int adopt(struct net_test *t)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    assert_int_equal(vg_http_server_adopt(t->server, fds[0], NULL), 0);
    return fds[1];
}

static inline void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Turn until the client has read `want` at the end of what came, or the end of the stream (want
 * NULL). What was read. */
static inline char *hear(struct net_test *t, int fd, const char *want)
{
    static char got[1 << 20];
    size_t n = 0;
    got[0] = 0;
    for (int i = 0; i < 100000; i++) {
        vg_loop_turn(t->loop, false);
        ssize_t r = recv(fd, got + n, sizeof got - 1 - n, MSG_DONTWAIT);
        if (r > 0) {
            n += (size_t)r;
            got[n] = 0;
        }
        bool is_end = r == 0 || (r < 0 && errno == ECONNRESET);
        if (want ? n >= strlen(want) && strcmp(got + n - strlen(want), want) == 0 : is_end)
            return got;
        assert_false(is_end);
        if (r < 0)
            poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 1);
    }
    fail_msg("waited for %s, got %s", want ? want : "the end", got);
    return NULL;
}

/* For draining: *arg, a bool, is true from then on. */
static inline void set_over(void *arg)
{
    *(bool *)arg = true;
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

#endif
