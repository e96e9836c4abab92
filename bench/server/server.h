/* server.h - a vigild of the bench's own: started, looked at through /proc, ended.
 * Processor time is that of its threads, in nanoseconds, from the scheduler. Thread: main. */
#ifndef BENCH_SERVER_SERVER_H
#define BENCH_SERVER_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "target.h"

#define BENCH_TOKEN "bench-token-of-an-administrator"

struct server {
    pid_t pid;
    pid_t store;                       /* of a rival: its etcd; else 0 */
    char dir[512];                     /* its data directory; outlives a restart */
    char etcd[64];                     /* the etcd that it keeps everything in; "": none */
    uint16_t secure, plain;            /* ports */
    double ready_ms;                   /* from exec to its line */
    struct vg_bench_target targets[2]; /* for clients: plain, TLS */
};

/* Start in a new data directory below `parent`, or again in the same one. Dies when it does not
 * come up. */
void server_start(struct server *s, const char *binary, const char *parent);
void server_start_again(struct server *s, const char *binary);
void server_stop(struct server *s); /* SIGTERM, and waits */
void server_kill(struct server *s); /* SIGKILL, and waits */

/* A rival: etcd and kube-apiserver as they lie in `binaries`, over TLS alone. False: they are not
 * there. */
bool server_start_kube(struct server *s, const char *binaries, const char *parent);

/* An etcd alone; s->store and s->etcd are set. False: it is not there. */
bool server_start_etcd(struct server *s, const char *binaries, const char *parent);
/* vigild or kube-apiserver on the etcd of another, which is not its own: ending it leaves the etcd.
 */
void server_start_on(struct server *s, const char *binary, const struct server *etcd,
                     const char *parent);
void server_start_kube_on(struct server *s, const char *binaries, const struct server *etcd,
                          const char *parent);

/* Clients over TLS show the administrator's certificate from now on, and no token. */
void server_show_cert(struct server *s);

/* For those who start one: its directory with the tokens in it, and a port that is free now. */
void server_make_dir(struct server *s, const char *parent);
void server_write_tokens(const struct server *s);
uint16_t server_free_port(void);
/* And what clients need to know of its ports, once these are known. */
void server_open_targets(struct server *s);
/* As an administrator, at a port here. */
void target_open(struct vg_bench_target *t, uint16_t port, bool is_tls);

/* Of all its processes; of the server alone, and of its etcd alone. */
uint64_t server_cpu_ns(const struct server *s);
uint64_t server_own_cpu_ns(const struct server *s);
uint64_t server_store_cpu_ns(const struct server *s);
uint64_t server_anonymous_bytes(const struct server *s);

#endif
