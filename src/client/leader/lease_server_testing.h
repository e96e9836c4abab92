/* lease_server_testing.h - a server that keeps one Lease, with the faults of a bad network: for
 * each client, requests or answers can be held back, or swallowed. A client is known by the last
 * letter of its User-Agent. Plain sockets, a thread per connection. */
#ifndef VG_CLIENT_LEADER_LEASE_SERVER_TESTING_H
#define VG_CLIENT_LEADER_LEASE_SERVER_TESTING_H

#include "client/transport/script_server_testing.h"

enum lease_fault {
    FAULT_NONE,
    FAULT_HOLE,          /* requests are read and nothing else happens */
    FAULT_STALL_REQUEST, /* done and answered when let go */
    FAULT_STALL_ANSWER   /* done at once, answered when let go */
};

#define LEASE_CONNS_MAX 512

struct lease_server {
    int fd, port;
    pthread_t thread;
    pthread_mutex_t mu; /* guards what follows */
    pthread_cond_t changed;
    enum lease_fault faults[2]; /* of clients a and b */
    unsigned let_go[2];         /* what was held before this counted up goes on */
    unsigned n_held[2];
    bool exists;
    char spec[1024];
    char holder[128];
    unsigned version;
    unsigned n_requests[2], n_writes;
    int conns[LEASE_CONNS_MAX];
    pthread_t threads[LEASE_CONNS_MAX];
    unsigned n_conns;
    bool is_stopping;
};

struct lease_conn {
    struct lease_server *s;
    int fd;
};

/* The text of a JSON member that is a string, "" if there is none. */
static inline void lease_member(const char *json, const char *name, char *out, size_t size)
{
    char key[64];
    snprintf(key, sizeof(key), "\"%s\":\"", name);
    const char *p = strstr(json, key);
    p = p ? p + strlen(key) : "\"";
    snprintf(out, size, "%.*s", (int)strcspn(p, "\""), p);
}

static inline void lease_store(struct lease_server *s, const char *body)
{
    const char *spec = strstr(body, "\"spec\":");
    assert_non_null(spec);
    size_t n = strlen(spec + 7);
    snprintf(s->spec, sizeof(s->spec), "%.*s", (int)n - 1, spec + 7); /* without the last brace */
    lease_member(s->spec, "holderIdentity", s->holder, sizeof(s->holder));
    s->exists = true;
    s->version++;
    s->n_writes++;
}

/* Does what is asked; the status. */
static inline int lease_do(struct lease_server *s, const char *head, const char *body)
{
    char version[32], now[32];
    bool is_post = strncmp(head, "POST", 4) == 0, is_get = strncmp(head, "GET", 3) == 0;
    snprintf(now, sizeof(now), "%u", s->version);
    lease_member(body, "resourceVersion", version, sizeof(version));
    if (is_post && s->exists)
        return 409;
    if (!is_post && !s->exists)
        return 404;
    if (!is_post && !is_get && strcmp(version, now) != 0)
        return 409;
    if (!is_get)
        lease_store(s, body);
    return is_post ? 201 : 200;
}

static inline bool lease_answer(const struct lease_server *s, int fd, int status, unsigned version,
                                const char *spec)
{
    char body[2048], out[4096];
    (void)s;
    if (status < 300)
        snprintf(body, sizeof(body),
                 "{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\",\"metadata\":{"
                 "\"name\":\"one\",\"namespace\":\"d\",\"resourceVersion\":\"%u\"},\"spec\":%s}",
                 version, spec);
    else
        snprintf(body, sizeof(body), "{\"kind\":\"Status\",\"code\":%d,\"message\":\"no\"}",
                 status);
    snprintf(out, sizeof(out), "HTTP/1.1 %d Some\r\nContent-Length: %zu\r\n\r\n%s", status,
             strlen(body), body);
    return script_write(fd, out, strlen(out));
}

/* Until let_go counts up or the server stops. */
static inline void lease_hold(struct lease_server *s, int who)
{
    unsigned at = s->let_go[who];
    s->n_held[who]++;
    pthread_cond_broadcast(&s->changed);
    while (s->let_go[who] == at && !s->is_stopping)
        pthread_cond_wait(&s->changed, &s->mu);
    s->n_held[who]--;
}

/* One request; false: the connection ends. */
static inline bool lease_serve(struct lease_server *s, int fd, const char *head, const char *body)
{
    const char *agent = strcasestr(head, "\r\nUser-Agent: ");
    int who =
        agent && strcspn(agent + 14, "\r") && agent[14 + strcspn(agent + 14, "\r") - 1] == 'b';
    char spec[1024];
    pthread_mutex_lock(&s->mu);
    enum lease_fault fault = s->faults[who];
    s->n_requests[who]++;
    if (fault == FAULT_HOLE || fault == FAULT_STALL_REQUEST)
        lease_hold(s, who);
    int status = fault == FAULT_HOLE ? 0 : lease_do(s, head, body);
    unsigned version = s->version;
    memcpy(spec, s->spec, sizeof(spec));
    if (fault == FAULT_STALL_ANSWER)
        lease_hold(s, who);
    bool goes_on = status && !s->is_stopping;
    pthread_mutex_unlock(&s->mu);
    return goes_on && lease_answer(s, fd, status, version, spec);
}

static inline void *lease_conn_thread(void *arg)
{
    struct lease_conn c = *(struct lease_conn *)arg;
    free(arg);
    char *head = calloc(1, 65536);
    size_t n = 0;
    for (;;) { /* head, then as much body as it says; both in one text */
        char *end = strstr(head, "\r\n\r\n");
        const char *length = end ? strcasestr(head, "\r\nContent-Length:") : NULL;
        size_t want = end ? (size_t)(end - head) + 4 : SIZE_MAX;
        if (length && length < end)
            want += (size_t)strtol(length + 17, NULL, 10);
        if (n >= want) {
            char *body = strndup(end + 4, want - (size_t)(end + 4 - head));
            bool goes_on = lease_serve(c.s, c.fd, head, body);
            free(body);
            memmove(head, head + want, n - want + 1);
            n -= want;
            if (!goes_on)
                break;
            continue;
        }
        ssize_t r = recv(c.fd, head + n, 65535 - n, 0);
        if (r <= 0)
            break;
        n += (size_t)r;
        head[n] = 0;
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

static inline void *lease_accept_thread(void *arg)
{
    struct lease_server *s = arg;
    for (int fd; (fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0;) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        struct lease_conn *c = malloc(sizeof(*c));
        *c = (struct lease_conn){s, fd};
        pthread_mutex_lock(&s->mu);
        assert_true(s->n_conns < LEASE_CONNS_MAX);
        s->conns[s->n_conns] = fd;
        pthread_create(&s->threads[s->n_conns++], NULL, lease_conn_thread, c);
        pthread_mutex_unlock(&s->mu);
    }
    return NULL;
}

static inline struct lease_server *lease_server_start(void)
{
    struct lease_server *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    pthread_mutex_init(&s->mu, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&a, &len), 0);
    s->port = ntohs(a.sin_port);
    assert_int_equal(listen(s->fd, 64), 0);
    pthread_create(&s->thread, NULL, lease_accept_thread, s);
    return s;
}

/* The clients are gone. */
static inline void lease_server_stop(struct lease_server *s)
{
    pthread_mutex_lock(&s->mu);
    s->is_stopping = true;
    pthread_cond_broadcast(&s->changed);
    for (unsigned i = 0; i < s->n_conns; i++)
        if (s->conns[i] >= 0)
            shutdown(s->conns[i], SHUT_RDWR);
    pthread_mutex_unlock(&s->mu);
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    for (unsigned i = 0; i < s->n_conns; i++)
        pthread_join(s->threads[i], NULL);
    close(s->fd);
    pthread_mutex_destroy(&s->mu);
    pthread_cond_destroy(&s->changed);
    free(s);
}

static inline void lease_fault(struct lease_server *s, int who, enum lease_fault fault)
{
    pthread_mutex_lock(&s->mu);
    s->faults[who] = fault;
    pthread_mutex_unlock(&s->mu);
}

static inline void lease_let_go(struct lease_server *s, int who)
{
    pthread_mutex_lock(&s->mu);
    s->let_go[who]++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mu);
}

static inline unsigned lease_held(struct lease_server *s, int who)
{
    pthread_mutex_lock(&s->mu);
    unsigned n = s->n_held[who];
    pthread_mutex_unlock(&s->mu);
    return n;
}

/* Somebody writes the lease by hand; "": nobody holds it, NULL: it is deleted. */
static inline void lease_edit(struct lease_server *s, const char *holder)
{
    pthread_mutex_lock(&s->mu);
    snprintf(s->holder, sizeof(s->holder), "%s", holder ? holder : "");
    snprintf(s->spec, sizeof(s->spec),
             "{\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":15,\"renewTime\":\"by hand\"}",
             s->holder);
    s->exists = holder != NULL;
    s->version++;
    pthread_mutex_unlock(&s->mu);
}

static inline bool lease_holder_is(struct lease_server *s, const char *holder)
{
    pthread_mutex_lock(&s->mu);
    bool is = s->exists && strcmp(s->holder, holder) == 0;
    pthread_mutex_unlock(&s->mu);
    return is;
}

#endif
