/* floor.c - see floor.h. */
#include "floor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "crowd.h"

#define RECORD_BYTES ((size_t)16 * 1024)
#define FLOOR_THREADS 2 /* as vigild has loops on the two cores that the bars are for */

struct sender {
    int fd;
    SSL *ssl; /* NULL: plain */
};

static SSL_CTX *server_context(void)
{
    static SSL_CTX *ctx;
    if (ctx)
        return ctx;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    ctx = SSL_CTX_new(TLS_server_method());
    if (!key || !cert || !ctx)
        bench_die("OpenSSL: out of memory");
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), 0);
    X509_gmtime_adj(X509_getm_notAfter(cert), 86400);
    X509_set_pubkey(cert, key);
    X509_sign(cert, key, EVP_sha256());
    if (SSL_CTX_use_certificate(ctx, cert) != 1 || SSL_CTX_use_PrivateKey(ctx, key) != 1)
        bench_die("OpenSSL does not take its own certificate");
    SSL_CTX_set_num_tickets(ctx, 0);
    X509_free(cert);
    EVP_PKEY_free(key);
    return ctx;
}

static void *shake_hands(void *arg)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl = ctx ? SSL_new(ctx) : NULL;
    if (!ssl || SSL_set_fd(ssl, *(int *)arg) != 1 || SSL_connect(ssl) != 1)
        bench_die("the floor's handshake failed");
    SSL_set_quiet_shutdown(ssl, 1);
    SSL_free(ssl); /* its socket stays open: the crowd reads it without decrypting */
    SSL_CTX_free(ctx);
    return NULL;
}

static void make_pair(int listener, struct sender *ret_sender, int *ret_reader, bool is_tls)
{
    struct sockaddr_in a;
    socklen_t n = sizeof a;
    int one = 1, client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client < 0 || getsockname(listener, (struct sockaddr *)&a, &n) < 0 ||
        connect(client, (struct sockaddr *)&a, n) < 0)
        bench_die("the floor cannot connect: %s", strerror(errno));
    ret_sender->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (ret_sender->fd < 0)
        bench_die("the floor cannot accept: %s", strerror(errno));
    setsockopt(ret_sender->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    ret_sender->ssl = NULL;
    *ret_reader = client;
    if (!is_tls)
        return;
    pthread_t thread;
    if (pthread_create(&thread, NULL, shake_hands, &client) != 0)
        bench_die("no thread");
    ret_sender->ssl = SSL_new(server_context());
    if (!ret_sender->ssl || SSL_set_fd(ret_sender->ssl, ret_sender->fd) != 1 ||
        SSL_accept(ret_sender->ssl) != 1)
        bench_die("the floor's handshake failed");
    pthread_join(thread, NULL);
}

static struct sender *make_senders(struct crowd *crowd, size_t n, bool is_tls)
{
    struct sender *senders = bench_alloc(n, sizeof *senders);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&a, sizeof a) < 0 ||
        listen(listener, 128) < 0)
        bench_die("the floor cannot listen: %s", strerror(errno));
    for (size_t i = 0; i < n; i++) {
        int reader;
        make_pair(listener, &senders[i], &reader, is_tls);
        crowd_add(crowd, reader);
    }
    close(listener);
    return senders;
}

static void send_bytes(struct sender *s, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t r = s->ssl ? SSL_write(s->ssl, p, (int)VG_MIN(n, RECORD_BYTES))
                           : send(s->fd, p, n, MSG_NOSIGNAL);
        if (r <= 0)
            bench_die("the floor cannot send");
        p += r;
        n -= (size_t)r;
    }
}

static void free_senders(struct sender *senders, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        SSL_free(senders[i].ssl);
        close(senders[i].fd);
    }
    free(senders);
}

double floor_fanout_ns(const struct floor_plan *plan)
{
    struct crowd *crowd = crowd_new(plan->sockets);
    struct sender *senders = make_senders(crowd, plan->sockets, plan->is_tls);
    if (plan->reads_later)
        crowd_read_late(crowd, LULL_MS);
    size_t n = plan->bytes * plan->batch;
    char *bytes = bench_alloc(1, n);
    memset(bytes, 'x', n);
    struct bench_usage begin, end;
    uint64_t spent = 0;
    for (size_t k = 0; k < plan->writes; k++) {
        uint64_t before = crowd_bytes(crowd);
        bench_usage_now(&begin);
        for (size_t i = 0; i < plan->sockets; i++)
            send_bytes(&senders[i], bytes, n);
        bench_usage_now(&end);
        spent += end.thread_ns - begin.thread_ns;
        crowd_await(crowd, before + n * plan->sockets);
    }
    free(bytes);
    free_senders(senders, plan->sockets);
    crowd_free(crowd);
    return (double)spent / (double)(plan->writes * plan->batch * plan->sockets);
}

/* ---- how soon ---- */

struct share {
    const struct floor_plan *plan;
    struct sender *senders; /* all; ours are every FLOOR_THREADS-th from `first` */
    const char *bytes;
    size_t first;
    pthread_barrier_t *begin;
};

static void *send_share(void *arg)
{
    const struct share *s = arg;
    for (size_t k = 0; k < s->plan->writes; k++) {
        pthread_barrier_wait(s->begin);
        for (size_t i = s->first; i < s->plan->sockets; i += FLOOR_THREADS)
            send_bytes(&s->senders[i], s->bytes, s->plan->bytes);
    }
    return NULL;
}

static void time_shares(const struct floor_plan *plan, struct crowd *crowd, struct share *share,
                        struct vg_hist *h)
{
    struct share shares[FLOOR_THREADS];
    pthread_t threads[FLOOR_THREADS];
    for (size_t t = 0; t < FLOOR_THREADS; t++) {
        shares[t] = *share;
        shares[t].first = t;
        if (pthread_create(&threads[t], NULL, send_share, &shares[t]) != 0)
            bench_die("no thread");
    }
    for (size_t k = 0; k < plan->writes; k++) {
        crowd_mark(crowd);
        uint64_t begin = bench_now_ns();
        pthread_barrier_wait(share->begin);
        nanosleep(&(struct timespec){.tv_nsec = 100 * 1000 * 1000}, NULL);
        crowd_first_arrivals(crowd, begin, h);
    }
    for (size_t t = 0; t < FLOOR_THREADS; t++)
        pthread_join(threads[t], NULL);
}

void floor_latency_ms(const struct floor_plan *plan, double *ret_p50, double *ret_p99)
{
    struct crowd *crowd = crowd_new(plan->sockets);
    struct vg_hist *h = bench_alloc(1, sizeof *h);
    char *bytes = bench_alloc(1, plan->bytes);
    pthread_barrier_t begin;
    if (pthread_barrier_init(&begin, NULL, FLOOR_THREADS + 1) != 0)
        bench_die("no barrier");
    struct share share = {plan, make_senders(crowd, plan->sockets, plan->is_tls), bytes, 0, &begin};
    crowd_read_late(crowd, LULL_MS);
    time_shares(plan, crowd, &share, h);
    *ret_p50 = bench_hist_us(h, 0.5) / 1e3;
    *ret_p99 = bench_hist_us(h, 0.99) / 1e3;
    pthread_barrier_destroy(&begin);
    free_senders(share.senders, plan->sockets);
    free(bytes);
    free(h);
    crowd_free(crowd);
}

double floor_bulk_ns(size_t bytes, bool is_tls)
{
    struct crowd *crowd = crowd_new(1);
    struct sender *sender = make_senders(crowd, 1, is_tls);
    size_t piece = (size_t)1 << 20;
    char *p = bench_alloc(1, piece);
    memset(p, 'x', piece);
    struct bench_usage begin, end;
    bench_usage_now(&begin);
    for (size_t left = bytes; left > 0; left -= VG_MIN(left, piece))
        send_bytes(sender, p, VG_MIN(left, piece));
    bench_usage_now(&end);
    free(p);
    free_senders(sender, 1);
    crowd_free(crowd);
    return (double)(end.thread_ns - begin.thread_ns);
}
