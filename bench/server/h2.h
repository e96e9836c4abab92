/* h2.h - HTTP/2 from the client's side: lists, and many watches on one connection. The windows are
 * opened as far as they go, so that a connection of watches can be read and forgotten afterwards.
 */
#ifndef BENCH_SERVER_H2_H
#define BENCH_SERVER_H2_H

#include "client.h"

/* Open one connection with n watches, all answered 200, and return its socket. `path` may hold one
 * %u, which becomes first + i. */
int h2_watches(const struct server *s, bool is_tls, const char *path, unsigned first, unsigned n);
/* GET on a connection of its own, body forgotten: bytes of the body. *ret_cpu: the server's
 * processor time before the request, with the connection open. */
uint64_t h2_get(const struct server *s, bool is_tls, const char *path, uint64_t *ret_cpu);

#endif
