/* main.c - bench_net: an event of 4 KB to 1,000 connections, ours beside the floor, plain and TLS;
 * and what an idle watch holds in memory. Both sides take turns in one process, against one reading
 * process; counted is the processor time of the sending thread. */
#include <malloc.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "measure.h"
#include "net.h"

#define ROUNDS 15
#define EVENTS 20 /* of a round */
#define BAR 1.3

char bench_cert[256], bench_key[256];

void make_certificate(const char *dir, char *cert_file, char *key_file, size_t size)
{
    X509 *cert = X509_new();
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509_gmtime_adj(X509_getm_notBefore(cert), 0);
    X509_gmtime_adj(X509_getm_notAfter(cert), 86400);
    X509_set_pubkey(cert, key);
    if (!X509_sign(cert, key, EVP_sha256()))
        bench_die("cannot sign");
    snprintf(cert_file, size, "%s/cert.pem", dir);
    snprintf(key_file, size, "%s/key.pem", dir);
    FILE *c = fopen(cert_file, "w"), *k = fopen(key_file, "w");
    if (!c || !k || !PEM_write_X509(c, cert) ||
        !PEM_write_PrivateKey(k, key, NULL, NULL, 0, NULL, NULL))
        bench_die("cannot write the certificate");
    fclose(c);
    fclose(k);
    X509_free(cert);
    EVP_PKEY_free(key);
}

struct side {
    struct ours *ours;
    struct floor *floor;
};

/* Wait until the clients have read everything, so that no socket fills. */
static void wait_read(struct wire *wire)
{
    uint64_t last = 0, now;
    bench_check_interrupt();
    do {
        last = atomic_load(&wire->read);
        usleep(3000);
        now = atomic_load(&wire->read);
    } while (now != last);
}

static double thread_us(void)
{
    struct bench_usage u;
    bench_usage_now(&u);
    return (double)u.thread_ns / 1e3;
}

/* One round: EVENTS events in flushes of `batch`; microseconds for one event to one connection. */
static double run_ours(struct side *s, struct wire *wire, size_t n, size_t batch)
{
    double spent = 0;
    for (size_t i = 0; i < EVENTS; i += batch) {
        double from = thread_us();
        ours_send(s->ours, batch);
        spent += thread_us() - from;
        wait_read(wire);
    }
    return spent / (double)(EVENTS * n);
}

static double run_floor(struct side *s, struct wire *wire, size_t n, size_t batch)
{
    static char text[EVENTS * (OBJECT_BYTES + 64)];
    size_t one = (size_t)snprintf(text, sizeof text, "%x\r\n%s", OBJECT_BYTES + 29, EVENT_HEAD) +
                 OBJECT_BYTES + sizeof EVENT_TAIL - 1 + 2;
    double spent = 0;
    for (size_t i = 0; i < EVENTS; i += batch) {
        double from = thread_us();
        floor_send(s->floor, text, one * batch);
        spent += thread_us() - from;
        wait_read(wire);
    }
    return spent / (double)(EVENTS * n);
}

static bool compare(const char *name, struct side *s, struct wire *wire, size_t n, size_t batch)
{
    double ours[ROUNDS], floors[ROUNDS], ratios[ROUNDS];
    for (int i = -1; i < ROUNDS; i++) { /* the first warms up */
        bench_progress("%s, %zu at a time: round %d of %d", name, batch, i + 1, ROUNDS);
        double f = run_floor(s, wire, n, batch), o = run_ours(s, wire, n, batch);
        if (i < 0)
            continue;
        ours[i] = o;
        floors[i] = f;
        ratios[i] = o / f;
    }
    struct bench_spread r = bench_spread(ratios, ROUNDS);
    printf("%-6s %3zu event%s a flush   %6.2f us   floor %6.2f us   ratio %.2f (%.2f to %.2f)\n",
           name, batch, batch == 1 ? " " : "s", bench_spread(ours, ROUNDS).median,
           bench_spread(floors, ROUNDS).median, r.median, r.min, r.max);
    return r.median <= BAR;
}

static size_t heap(void)
{
    return mallinfo2().uordblks + mallinfo2().hblkhd;
}

int main(int argc, char **argv)
{
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
    bench_catch_signals();
    signal(SIGPIPE, SIG_IGN);
    struct rlimit files = {n * 8 + 100, n * 8 + 100};
    setrlimit(RLIMIT_NOFILE, &files);
    make_certificate(bench_scratch("/tmp"), bench_cert, bench_key, sizeof bench_cert);
    struct wire *wire;
    /* cppcheck-suppress invalidFunctionArg */
    wire = mmap(NULL, sizeof *wire, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct side plain = {ours_new(false, n), floor_new(false, n)};
    struct side tls = {ours_new(true, n), floor_new(true, n)};
    struct door doors[] = {{ours_port(plain.ours), false, true},
                           {floor_port(plain.floor), false, false},
                           {ours_port(tls.ours), true, true},
                           {floor_port(tls.floor), true, false}};
    pid_t pid = clients_start(doors, 4, n, wire);
    size_t before = heap();
    ours_accept(plain.ours);
    size_t plain_bytes = heap() - before;
    floor_accept(plain.floor);
    before = heap();
    ours_accept(tls.ours);
    size_t tls_bytes = heap() - before;
    floor_accept(tls.floor);
    wait_read(wire);
    printf("%zu connections, events of %d bytes, processor time per event and connection\n", n,
           OBJECT_BYTES + 40);
    bool is_ok = compare("plain", &plain, wire, n, 1);
    is_ok &= compare("plain", &plain, wire, n, 4);
    is_ok &= compare("TLS", &tls, wire, n, 1);
    is_ok &= compare("TLS", &tls, wire, n, 4);
    printf("memory of an idle watch: plain %zu bytes, TLS %zu bytes\n", plain_bytes / n,
           tls_bytes / n);
    kill(pid, SIGKILL);
    return is_ok ? 0 : 1;
}
