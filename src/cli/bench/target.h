/* target.h - the API server that is measured: where it is, how to prove who we are, and whom to
 * believe. From a kubeconfig or by hand; credentials are asked for once, at the start. Constant
 * after opening, so that threads may share it. */
#ifndef VG_CLI_BENCH_TARGET_H
#define VG_CLI_BENCH_TARGET_H

#include <stdbool.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/err.h"

struct ssl_ctx_st;
struct vg_cli_place;

#define VG_BENCH_HOST_MAX 256u
struct vg_bench_target {
    char host[VG_BENCH_HOST_MAX];           /* as in the URL, without brackets */
    char authority[VG_BENCH_HOST_MAX + 16]; /* host:port, for the Host field */
    char tls_name[VG_BENCH_HOST_MAX];       /* that the certificate must be for */
    char prefix[VG_BENCH_HOST_MAX];         /* a path before every path; "" mostly */
    uint16_t port;
    bool is_tls, is_loopback;
    bool shows_certificate; /* of the client */
    struct sockaddr_storage address;
    socklen_t address_n;
    struct vg_buf authorization; /* the field's value with a 0 byte, or empty */
    const char *agent;           /* the User-Agent field; the caller may set NULL: none */
    struct ssl_ctx_st *tls[2];   /* for HTTP/1.1 and HTTP/2; NULL: plain */
};

/* 0, or a sentence in reterr_status. */
VG_CHECK int vg_bench_target_open(struct vg_bench_target *t, const struct vg_cli_place *place,
                                  struct vg_status *reterr_status);
void vg_bench_target_close(struct vg_bench_target *t);

#endif
