/* proxy.c - see proxy.h. A connection is two threads that copy, one each way; whoever ends last
 * closes both ends, with a reset. No server that is started meanwhile may inherit an end: it would
 * hold it open. */
#include "proxy.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAIRS_MAX 256

struct pair {
    struct proxy *p;
    int fd[2]; /* towards the client, towards the server; -1: free */
    int threads;
};

struct proxy {
    int listener;
    uint16_t port;
    struct sockaddr_storage to;
    socklen_t to_n;
    _Atomic bool is_closed, is_over;
    pthread_t acceptor;
    pthread_mutex_t mu;
    pthread_cond_t idle;
    struct pair pairs[PAIRS_MAX];
    int n_threads;
};

struct half {
    struct pair *pair;
    int from;
};

static void must(bool ok, const char *what)
{
    if (!ok) {
        perror(what);
        abort();
    }
}

static void reset(int fd)
{
    struct linger l = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
    close(fd);
}

static bool write_all(int fd, const char *p, ssize_t n)
{
    while (n > 0) {
        ssize_t w = send(fd, p, (size_t)n, MSG_NOSIGNAL);
        if (w <= 0)
            return false;
        p += w;
        n -= w;
    }
    return true;
}

static void leave(struct pair *a)
{
    struct proxy *p = a->p;
    pthread_mutex_lock(&p->mu);
    for (int i = 0; i < 2; i++)
        shutdown(a->fd[i], SHUT_RD); /* so that the other half wakes */
    if (--a->threads == 0) {
        for (int i = 0; i < 2; i++) {
            reset(a->fd[i]);
            a->fd[i] = -1;
        }
    }
    p->n_threads--;
    pthread_cond_broadcast(&p->idle);
    pthread_mutex_unlock(&p->mu);
}

static void *copy(void *arg)
{
    struct half h = *(struct half *)arg;
    char buf[16384];
    ssize_t n;
    free(arg);
    int from = h.pair->fd[h.from], to = h.pair->fd[1 - h.from];
    while ((n = recv(from, buf, sizeof(buf), 0)) > 0 && write_all(to, buf, n))
        continue;
    leave(h.pair);
    return NULL;
}

static void begin(struct proxy *p, int client, int server)
{
    pthread_mutex_lock(&p->mu);
    struct pair *a = NULL;
    for (int i = 0; !a && i < PAIRS_MAX; i++)
        a = p->pairs[i].threads == 0 ? &p->pairs[i] : NULL;
    must(a != NULL, "too many connections");
    *a = (struct pair){.p = p, .fd = {client, server}, .threads = 2};
    p->n_threads += 2;
    pthread_mutex_unlock(&p->mu);
    for (int i = 0; i < 2; i++) {
        struct half *h = malloc(sizeof(*h));
        pthread_t t;
        must(h != NULL, "memory");
        *h = (struct half){a, i};
        must(pthread_create(&t, NULL, copy, h) == 0, "thread");
        pthread_detach(t);
    }
}

static struct sockaddr_in address(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void *accept_all(void *arg)
{
    struct proxy *p = arg;
    int client;
    while ((client = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        int server = socket(p->to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        must(server >= 0, "socket");
        if (p->is_closed || p->is_over ||
            connect(server, (struct sockaddr *)&p->to, p->to_n) != 0) {
            reset(client);
            close(server);
        } else {
            begin(p, client, server);
        }
    }
    return NULL;
}

static void find_target(struct proxy *p, const char *host, uint16_t port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    char service[8];
    snprintf(service, sizeof(service), "%u", port);
    must(getaddrinfo(host, service, &hints, &found) == 0, host);
    memcpy(&p->to, found->ai_addr, found->ai_addrlen);
    p->to_n = found->ai_addrlen;
    freeaddrinfo(found);
}

struct proxy *proxy_new(const char *to_host, uint16_t to_port)
{
    struct proxy *p = calloc(1, sizeof(*p));
    struct sockaddr_in a = address(0);
    socklen_t n = sizeof(a);
    must(p != NULL, "memory");
    find_target(p, to_host, to_port);
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(p->listener >= 0 && bind(p->listener, (struct sockaddr *)&a, n) == 0 &&
             listen(p->listener, 64) == 0 &&
             getsockname(p->listener, (struct sockaddr *)&a, &n) == 0,
         "listen");
    p->port = ntohs(a.sin_port);
    pthread_mutex_init(&p->mu, NULL);
    pthread_cond_init(&p->idle, NULL);
    must(pthread_create(&p->acceptor, NULL, accept_all, p) == 0, "thread");
    return p;
}

uint16_t proxy_port(const struct proxy *p)
{
    return p->port;
}

void proxy_cut(struct proxy *p)
{
    pthread_mutex_lock(&p->mu);
    for (int i = 0; i < PAIRS_MAX; i++) {
        for (int k = 0; p->pairs[i].threads > 0 && k < 2; k++)
            shutdown(p->pairs[i].fd[k], SHUT_RD);
    }
    pthread_mutex_unlock(&p->mu);
}

void proxy_close(struct proxy *p)
{
    p->is_closed = true;
    proxy_cut(p);
}

void proxy_open(struct proxy *p)
{
    p->is_closed = false;
}

void proxy_free(struct proxy *p)
{
    p->is_over = true;
    shutdown(p->listener, SHUT_RDWR);
    pthread_join(p->acceptor, NULL);
    proxy_cut(p);
    pthread_mutex_lock(&p->mu);
    while (p->n_threads > 0)
        pthread_cond_wait(&p->idle, &p->mu);
    pthread_mutex_unlock(&p->mu);
    close(p->listener);
    pthread_cond_destroy(&p->idle);
    pthread_mutex_destroy(&p->mu);
    free(p);
}
