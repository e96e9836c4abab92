/* net.h - the parts of bench_net: one process that sends, one that reads and drops. */
#ifndef BENCH_NET_NET_H
#define BENCH_NET_NET_H

#include <openssl/ssl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* An event as a watch sends it: its frame, and an object of 4 KiB. */
#define OBJECT_BYTES 4096
#define EVENT_HEAD "{\"type\":\"MODIFIED\",\"object\":"
#define EVENT_TAIL "}\n"

/* What both processes see. */
struct wire {
    _Atomic uint64_t read; /* bytes that the clients have read since the handshakes */
};

/* clients.c: forks a process that opens n connections to each port in turn, with TLS and a request
 * for a watch where asked, then reads and drops until it is killed. */
struct door {
    uint16_t port;
    bool is_tls, asks;
};
pid_t clients_start(const struct door *doors, size_t n_doors, size_t n, struct wire *wire);

/* floor.c: accepted sockets, with TLS or without, and a bare loop that sends to them. */
struct floor;
struct floor *floor_new(bool is_tls, size_t n);
uint16_t floor_port(const struct floor *f);
void floor_accept(struct floor *f); /* all n; blocks */
/* p to every connection; bytes sent. */
uint64_t floor_send(struct floor *f, const char *p, size_t n);

/* ours.c: a server with n watches. */
struct ours;
struct ours *ours_new(bool is_tls, size_t n);
uint16_t ours_port(const struct ours *o);
void ours_accept(struct ours *o); /* until all n watch */
/* `events` events to every watch, and one flush; bytes sent. */
uint64_t ours_send(struct ours *o, size_t events);
uint64_t ours_bytes_out(const struct ours *o);
/* Turn the loop until nothing waits. */
void ours_settle(struct ours *o);

/* A certificate for 127.0.0.1, in files below dir. */
void make_certificate(const char *dir, char *cert_file, char *key_file, size_t size);
extern char bench_cert[256], bench_key[256];

#endif
