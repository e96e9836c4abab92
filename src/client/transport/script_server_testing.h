/* script_server_testing.h - an HTTP/1.1 server that does what a script says, one step per request,
 * and remembers what it was asked. Plain sockets and a thread per connection; what it sends is cut
 * at random points when the script says so. Requests beyond the script's end are held open without
 * an answer. */
#ifndef VG_CLIENT_TRANSPORT_SCRIPT_SERVER_TESTING_H
#define VG_CLIENT_TRANSPORT_SCRIPT_SERVER_TESTING_H

#include "test_support.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"

enum step_end {
    STEP_WHOLE,  /* the answer is complete; the connection is kept */
    STEP_HOLD,   /* a stream that stays open */
    STEP_RESET,  /* the connection is reset after what was sent */
    STEP_BREAK,  /* the connection is closed in the middle of the body */
    STEP_NOTHING /* closed without a word */
};

struct step {
    int status;          /* 0 = 200 */
    const char *headers; /* "Retry-After: 1\r\n"; NULL: none */
    const char *body;
    enum step_end end;
    bool is_chunked; /* streams */
    bool is_cut;     /* in pieces of random size */
};

#define SCRIPT_MAX 64
#define ASKED_MAX 256

struct script_server {
    int fd, port;
    pthread_t thread;
    pthread_mutex_t mu; /* guards what follows */
    pthread_cond_t changed;
    struct step steps[SCRIPT_MAX];
    unsigned n_steps, at;
    /* In place of steps: an answer by what is asked ("GET /path?query"); false: held open. */
    bool (*answer)(void *arg, const char *asked, struct step *ret);
    void *answer_arg;
    char *asked[ASKED_MAX]; /* "GET /path?query" */
    char *heads[ASKED_MAX]; /* the whole head */
    unsigned n_asked;
    int conns[ASKED_MAX];
    pthread_t threads[ASKED_MAX];
    unsigned n_conns, n_accepted;
    unsigned n_held; /* streams that are open now */
    bool is_stopping;
    struct vg_rng rng;
};

struct script_conn {
    struct script_server *s;
    int fd;
};

static inline bool script_write(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t w = send(fd, p, n, MSG_NOSIGNAL);
        if (w <= 0)
            return false;
        p += w;
        n -= (size_t)w;
    }
    return true;
}

/* Pieces of 1 to 40 bytes, with pauses now and then so that they arrive apart. */
static inline bool script_write_cut(struct script_server *s, int fd, const char *p, size_t n)
{
    while (n) {
        pthread_mutex_lock(&s->mu);
        size_t piece = 1 + vg_rng_below(&s->rng, 40);
        bool has_pause = vg_rng_below(&s->rng, 4) == 0;
        pthread_mutex_unlock(&s->mu);
        piece = piece < n ? piece : n;
        if (!script_write(fd, p, piece))
            return false;
        if (has_pause)
            nanosleep(&(struct timespec){.tv_nsec = 300000}, NULL);
        p += piece;
        n -= piece;
    }
    return true;
}

static inline bool script_send(struct script_server *s, int fd, const struct step *step)
{
    struct vg_buf out = {0};
    size_t n = step->body ? strlen(step->body) : 0;
    int status = step->status ? step->status : 200;
    int r = vg_buf_printf(&out, "HTTP/1.1 %d Some\r\nContent-Type: application/json\r\n%s", status,
                          step->headers ? step->headers : "");
    if (step->is_chunked)
        r |= vg_buf_printf(&out, "Transfer-Encoding: chunked\r\n\r\n");
    else
        r |= vg_buf_printf(&out, "Content-Length: %zu\r\n\r\n",
                           n + (step->end == STEP_WHOLE ? 0 : 10));
    /* Chunks of a few sizes; their ends have nothing to do with those of frames. */
    for (size_t i = 0; i < n && r == 0;) {
        pthread_mutex_lock(&s->mu);
        size_t piece = step->is_chunked ? 1 + vg_rng_below(&s->rng, 200) : n;
        pthread_mutex_unlock(&s->mu);
        piece = piece < n - i ? piece : n - i;
        if (step->is_chunked)
            r |= vg_buf_printf(&out, "%zx\r\n", piece);
        r |= vg_buf_append(&out, step->body + i, piece);
        if (step->is_chunked)
            r |= vg_buf_printf(&out, "\r\n");
        i += piece;
    }
    if (step->is_chunked && step->end == STEP_WHOLE)
        r |= vg_buf_printf(&out, "0\r\n\r\n");
    assert_int_equal(r, 0);
    bool ok = step->is_cut ? script_write_cut(s, fd, out.p, out.n) : script_write(fd, out.p, out.n);
    vg_buf_done(&out);
    return ok;
}

/* A request with its body; false: the client is gone. */
static inline bool script_read(int fd, char *head, size_t size)
{
    size_t n = 0;
    char *end = NULL;
    while (!end) {
        ssize_t r = n < size - 1 ? recv(fd, head + n, 1, 0) : 0;
        if (r <= 0)
            return false;
        n += (size_t)r;
        head[n] = 0;
        end = n >= 4 ? strstr(head + n - 4, "\r\n\r\n") : NULL;
    }
    const char *length = strcasestr(head, "\r\nContent-Length:");
    long body = length ? strtol(length + 17, NULL, 10) : 0;
    for (char c; body > 0; body--)
        if (recv(fd, &c, 1, 0) <= 0)
            return false;
    return true;
}

static inline void script_wait_gone(struct script_server *s, int fd)
{
    char c;
    pthread_mutex_lock(&s->mu);
    s->n_held++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mu);
    while (recv(fd, &c, 1, 0) > 0)
        ;
    pthread_mutex_lock(&s->mu);
    s->n_held--;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mu);
}

/* Remember the request; the step that answers it, or false. */
static inline bool script_next(struct script_server *s, const char *head, struct step *ret)
{
    pthread_mutex_lock(&s->mu);
    assert_true(s->n_asked < ASKED_MAX);
    const char *space = strchr(head, ' ');
    const char *end = strchr(space + 1, ' ');
    s->asked[s->n_asked] = strndup(head, (size_t)(end - head));
    s->heads[s->n_asked++] = strdup(head);
    bool has = s->at < s->n_steps;
    if (has)
        *ret = s->steps[s->at++];
    else if (s->answer)
        has = s->answer(s->answer_arg, s->asked[s->n_asked - 1], ret);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mu);
    return has;
}

static inline void *script_conn_thread(void *arg)
{
    struct script_conn c = *(struct script_conn *)arg;
    free(arg);
    char *head = malloc(65536);
    while (head && script_read(c.fd, head, 65536)) {
        struct step step = {0};
        if (!script_next(c.s, head, &step)) {
            script_wait_gone(c.s, c.fd);
            break;
        }
        if (step.end == STEP_NOTHING || !script_send(c.s, c.fd, &step))
            break;
        if (step.end == STEP_HOLD)
            script_wait_gone(c.s, c.fd);
        if (step.end == STEP_RESET)
            setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
        if (step.end != STEP_WHOLE)
            break;
    }
    free(head);
    pthread_mutex_lock(&c.s->mu);
    for (unsigned i = 0; i < c.s->n_conns; i++)
        if (c.s->conns[i] == c.fd)
            c.s->conns[i] = -1;
    close(c.fd);
    pthread_mutex_unlock(&c.s->mu);
    return NULL;
}

static inline void *script_accept_thread(void *arg)
{
    struct script_server *s = arg;
    for (;;) {
        int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            return NULL;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        struct script_conn *c = malloc(sizeof(*c));
        *c = (struct script_conn){s, fd};
        pthread_mutex_lock(&s->mu);
        bool ok = !s->is_stopping && s->n_conns < ASKED_MAX;
        if (ok) {
            s->conns[s->n_conns] = fd;
            pthread_create(&s->threads[s->n_conns++], NULL, script_conn_thread, c);
        }
        s->n_accepted++;
        pthread_mutex_unlock(&s->mu);
        if (!ok) {
            close(fd);
            free(c);
        }
    }
}

/* Bound, but refusing connections until script_listen. */
static inline struct script_server *script_new(const struct step *steps, unsigned n)
{
    struct script_server *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    assert_true(n <= SCRIPT_MAX);
    pthread_mutex_init(&s->mu, NULL);
    pthread_cond_init(&s->changed, NULL);
    vg_rng_seed(&s->rng, vg_test_seed());
    if (n)
        memcpy(s->steps, steps, n * sizeof(*steps));
    s->n_steps = n;
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&a, &len), 0);
    s->port = ntohs(a.sin_port);
    return s;
}

static inline void script_listen(struct script_server *s)
{
    assert_int_equal(listen(s->fd, 64), 0);
    pthread_create(&s->thread, NULL, script_accept_thread, s);
}

static inline struct script_server *script_start(const struct step *steps, unsigned n)
{
    struct script_server *s = script_new(steps, n);
    script_listen(s);
    return s;
}

/* The client is gone or will be; connections are cut. */
static inline void script_stop(struct script_server *s)
{
    pthread_mutex_lock(&s->mu);
    s->is_stopping = true;
    for (unsigned i = 0; i < s->n_conns; i++)
        if (s->conns[i] >= 0)
            shutdown(s->conns[i], SHUT_RDWR);
    pthread_mutex_unlock(&s->mu);
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    for (unsigned i = 0; i < s->n_conns; i++)
        pthread_join(s->threads[i], NULL);
    close(s->fd);
    for (unsigned i = 0; i < s->n_asked; i++) {
        free(s->asked[i]);
        free(s->heads[i]);
    }
    free(s);
}

static inline unsigned script_asked(struct script_server *s)
{
    pthread_mutex_lock(&s->mu);
    unsigned n = s->n_asked;
    pthread_mutex_unlock(&s->mu);
    return n;
}

static inline unsigned script_held(struct script_server *s)
{
    pthread_mutex_lock(&s->mu);
    unsigned n = s->n_held;
    pthread_mutex_unlock(&s->mu);
    return n;
}

/* The value of a query's parameter in the i-th request, "" when it has none. */
static inline const char *script_param(struct script_server *s, unsigned i, const char *name,
                                       char *out, size_t size)
{
    pthread_mutex_lock(&s->mu);
    assert_true(i < s->n_asked);
    size_t n = strlen(name);
    out[0] = 0;
    for (const char *p = strchr(s->asked[i], '?'); p; p = strchr(p, '&')) {
        p++;
        if (strncmp(p, name, n) == 0 && p[n] == '=')
            snprintf(out, size, "%.*s", (int)strcspn(p + n + 1, "&"), p + n + 1);
    }
    pthread_mutex_unlock(&s->mu);
    return out;
}

/* The i-th request in short: "list 0/500", "list next/4", "watch 1", "stream 3". */
static inline const char *script_short(struct script_server *s, unsigned i, char *out, size_t size)
{
    char watch[16], rv[64], limit[16], next[64], initial[16];
    script_param(s, i, "watch", watch, sizeof(watch));
    script_param(s, i, "resourceVersion", rv, sizeof(rv));
    script_param(s, i, "limit", limit, sizeof(limit));
    script_param(s, i, "continue", next, sizeof(next));
    script_param(s, i, "sendInitialEvents", initial, sizeof(initial));
    if (watch[0])
        snprintf(out, size, "%s %s", initial[0] ? "stream" : "watch", rv);
    else
        snprintf(out, size, "list %s%s/%s", next[0] ? "+" : "", next[0] ? next : rv,
                 limit[0] ? limit : "0");
    return out;
}

#endif
