/* client.h - a small HTTP/1.1 client: blocking, one request at a time, plain or TLS. It is as cheap
 * as the rows need it to be: what it costs is not counted, but it shares the cores. Dies when the
 * server answers what it does not understand. Thread: one owner of each client. */
#ifndef BENCH_SERVER_CLIENT_H
#define BENCH_SERVER_CLIENT_H

#include <openssl/ssl.h>

#include "base/buf.h"
#include "server.h"

struct client {
    int fd;
    SSL *ssl;     /* NULL: plain */
    bool by_cert; /* known by its certificate: it sends no token */
    struct vg_buf in;
};

void client_open(struct client *c, const struct server *s, bool is_tls);
void client_done(struct client *c);

struct ask {
    const char *method, *path;
    const char *fields; /* further header lines, each with its end; NULL: none */
    struct vg_slice body;
};
/* Send a request. */
void client_send(struct client *c, const struct ask *ask);
/* Read the head of the answer: its status. What followed is left in c->in. */
int client_head(struct client *c, struct vg_buf *ret_head);
/* Ask, read all of the answer and forget its body, of which *ret_bytes (NULL allowed) are counted:
 * its status. */
int client_ask(struct client *c, const struct ask *ask, uint64_t *ret_bytes);
/* The same, the body kept in c->in: status. For small answers with a length. */
int client_ask_body(struct client *c, const struct ask *ask);
/* 200 or 201, or die. */
void client_must(struct client *c, const struct ask *ask);

/* A raw connection whose watch has been accepted; the head has been read. TLS handshake done. */
void client_watch(struct client *c, const struct server *s, bool is_tls, const char *path,
                  const char *fields);
#define ACCEPT_PROTOBUF "Accept: application/vnd.kubernetes.protobuf\r\n"

/* Connect a loopback socket. */
int connect_port(uint16_t port);

#endif
