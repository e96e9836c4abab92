/* client.h - the connections of `vigil bench` (conn.h) for rows that ask one thing after the other,
 * and watches whose sockets a crowd reads. What it costs is not counted, but it shares the cores.
 * Dies when the server answers what it does not understand. Thread: one owner of each client. */
#ifndef BENCH_SERVER_CLIENT_H
#define BENCH_SERVER_CLIENT_H

#include "conn.h"
#include "server.h"

/* The same work, carried differently. */
enum carrier { H1_PLAIN, H1_TLS, H2_PLAIN, H2_TLS, CARRIERS };
extern const char *const carrier_names[CARRIERS];
static inline bool carrier_is_tls(enum carrier c)
{
    return c == H1_TLS || c == H2_TLS;
}
static inline bool carrier_is_h2(enum carrier c)
{
    return c == H2_PLAIN || c == H2_TLS;
}

struct client {
    struct vg_bench_engine engine;
    struct vg_bench_conn *conn;
    struct vg_buf in; /* the last body that was kept */
};

/* The server outlives it. */
void client_open(struct client *c, const struct server *s, enum carrier carrier);
void client_done(struct client *c);

/* Ask, read all of the answer and forget its body, of which *ret_bytes (NULL allowed) are counted:
 * its status. */
int client_ask(struct client *c, const struct vg_bench_ask *ask, uint64_t *ret_bytes);
/* The same, the body kept in c->in with a 0 byte: status. */
int client_ask_body(struct client *c, const struct vg_bench_ask *ask);
/* 200 or 201, or die. */
void client_must(struct client *c, const struct vg_bench_ask *ask);

struct watches {
    const char *path;   /* may hold one %u, which becomes first + i */
    const char *accept; /* NULL: JSON */
    unsigned first, n;
};
/* One connection with n watches, all answered 200: its socket, which the caller closes. */
int client_watches(const struct server *s, enum carrier carrier, const struct watches *w);
/* The first bytes of a watch, as text; "": it ended without. */
void client_watch_begin(const struct server *s, enum carrier carrier, const char *path, char *ret,
                        size_t size);
#define ACCEPT_PROTOBUF "application/vnd.kubernetes.protobuf"

#endif
