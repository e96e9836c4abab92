/* load.c - see load.h. */
#include "load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "measure.h"

#define IN_BYTES 16384u

struct user {
    struct client c;
    struct vg_buf out;
    size_t sent;
    char in[IN_BYTES];
    size_t n;
};

struct load {
    const struct load_plan *plan;
    struct load_result *result;
    int epoll;
    struct user *users;
    uint64_t asked;
};

static ssize_t push(struct user *u, const char *p, size_t n)
{
    if (u->c.ssl) {
        int r = SSL_write(u->c.ssl, p, (int)n);
        return r > 0 ? r : 0;
    }
    ssize_t r = send(u->c.fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    return r < 0 && errno == EAGAIN ? 0 : r;
}

static ssize_t pull(struct user *u, char *p, size_t n)
{
    if (u->c.ssl) {
        int r = SSL_read(u->c.ssl, p, (int)n);
        if (r > 0)
            return r;
        return SSL_get_error(u->c.ssl, r) == SSL_ERROR_WANT_READ ? 0 : -1;
    }
    ssize_t r = recv(u->c.fd, p, n, MSG_DONTWAIT);
    return r < 0 && errno == EAGAIN ? 0 : r == 0 ? -1 : r;
}

/* Requests are small: a socket that does not take one at once is tried again when it answers to
 * epoll, which here is only ever asked for input; so wait for it. */
static void ask(struct load *l, struct user *u)
{
    vg_buf_clear(&u->out);
    l->plan->make(&u->out, l->asked++);
    for (size_t at = 0; at < u->out.n;) {
        ssize_t r = push(u, u->out.p + at, u->out.n - at);
        if (r < 0)
            bench_die("the server closed a connection");
        at += (size_t)r;
    }
    u->n = 0;
}

/* Has all of an answer come? */
static bool is_whole(struct user *u)
{
    const char *end = memmem(u->in, u->n, "\r\n\r\n", 4);
    if (!end)
        return false;
    const char *length = memmem(u->in, (size_t)(end - u->in), "ontent-", 7);
    while (length && strncasecmp(length, "ontent-length:", 14) != 0)
        length = memmem(length + 7, (size_t)(end - length - 7), "ontent-", 7);
    if (!length)
        bench_die("an answer without a length");
    return (size_t)(u->in + u->n - end) - 4 >= strtoull(length + 14, NULL, 10);
}

static void on_ready(struct load *l, struct user *u, bool goes_on)
{
    for (;;) {
        ssize_t r = pull(u, u->in + u->n, sizeof u->in - 1 - u->n);
        if (r < 0 || u->n + (size_t)r >= sizeof u->in - 1)
            bench_die("the server closed a connection or said too much");
        if (r == 0)
            return;
        u->n += (size_t)r;
        u->in[u->n] = 0;
        if (!is_whole(u))
            continue;
        if (memcmp(u->in + 9, "20", 2) == 0)
            l->result->answers++;
        else
            l->result->refused++;
        if (!goes_on)
            return;
        ask(l, u);
    }
}

static void open_users(struct load *l)
{
    struct server at = {.secure = l->plan->port, .plain = l->plan->port};
    for (unsigned i = 0; i < l->plan->clients; i++) {
        struct user *u = &l->users[i];
        client_open(&u->c, &at, l->plan->is_tls);
        vg_buf_init(&u->out, 0);
        if (fcntl(u->c.fd, F_SETFL, O_NONBLOCK) < 0)
            bench_die("a socket cannot be set up");
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = u};
        if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, u->c.fd, &e) < 0)
            bench_die("a socket cannot be watched");
    }
}

void load_run(const struct load_plan *plan, struct load_result *ret)
{
    *ret = (struct load_result){0};
    struct load l = {.plan = plan, .result = ret, .epoll = epoll_create1(EPOLL_CLOEXEC)};
    l.users = bench_alloc(plan->clients, sizeof *l.users);
    open_users(&l);
    uint64_t begin = bench_now_ns(), now = begin;
    for (unsigned i = 0; i < plan->clients; i++)
        ask(&l, &l.users[i]);
    struct epoll_event events[256];
    while (ret->answers + ret->refused < l.asked) {
        int n = epoll_wait(l.epoll, events, 256, 10000);
        if (n == 0)
            bench_die("the server does not answer any more");
        now = bench_now_ns();
        for (int i = 0; i < n; i++)
            on_ready(&l, events[i].data.ptr, now - begin < plan->ms * 1000000);
    }
    ret->secs = (double)(now - begin) / 1e9;
    for (unsigned i = 0; i < plan->clients; i++) {
        client_done(&l.users[i].c);
        vg_buf_done(&l.users[i].out);
    }
    close(l.epoll);
    free(l.users);
}
