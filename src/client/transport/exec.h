/* exec.h - a program that gives credentials (client.authentication.k8s.io), run on a thread of its
 * own so that the loop never waits for it. The thread alone starts, reads, ends and reaps the
 * program: no signal handler is needed and none of the process is touched. */
#ifndef VG_CLIENT_TRANSPORT_EXEC_H
#define VG_CLIENT_TRANSPORT_EXEC_H

#include "config_int.h"
#include "loop/loop.h"

/* A program that asks nobody is a few requests to some other server. */
#define VG_EXEC_LIMIT_MS 60000u
/* One that may ask the user, who has to find a password or to log in with a browser. */
#define VG_EXEC_LIMIT_INTERACTIVE_MS 600000u
/* Tokens and certificates; a program that writes more is broken. */
#define VG_EXEC_OUTPUT_MAX ((size_t)1 << 20)

struct vg_exec_result {
    struct vigil_error err; /* code 0: fine */
    struct vg_arena arena;  /* of the texts below */
    const char *token;      /* NULL: none */
    struct vg_slice cert, key;
    int64_t expires_ms; /* wall time; 0: never */
};

struct vg_exec_run;
/* done comes on the loop, once, unless it is canceled; it takes the result and ends it with
 * vg_exec_result_done. Thread: the loop's. 0, -ENOMEM, -errno. */
VG_CHECK int vg_exec_start(const struct vigil_config *config, struct vg_loop *loop,
                           void (*done)(void *arg, struct vg_exec_result *take_result), void *arg,
                           struct vg_exec_run **ret);
/* The program has taken too long: it is killed, and done comes soon with VIGIL_E_TIMEOUT and these
 * words. Thread: the loop's. */
void vg_exec_give_up(struct vg_exec_run *run);
/* How long it may take: a person is waited for longer. */
uint64_t vg_exec_limit_ms(const struct vigil_config *config);
/* Kills the program and waits for the thread; the run is gone. NULL allowed. */
void vg_exec_cancel(struct vg_exec_run *run);
void vg_exec_result_done(struct vg_exec_result *r);

/* What the program printed. For tests and the fuzzer too. */
void vg_exec_read(const struct vigil_config *config, struct vg_slice output,
                  struct vg_exec_result *ret);
/* 0 and milliseconds since 1970, or VIGIL_E_INVALID: not RFC 3339. */
VG_CHECK int vg_exec_time(struct vg_slice text, int64_t *ret_ms);

#endif
