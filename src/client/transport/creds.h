/* creds.h - the credentials of a client as they are now: token files and certificates are read
 * again from time to time, programs are run when what they gave has expired.
 * Thread: the client's loop. */
#ifndef VG_CLIENT_TRANSPORT_CREDS_H
#define VG_CLIENT_TRANSPORT_CREDS_H

#include "base/buf.h"
#include "base/list.h"
#include "base/log.h"
#include "exec.h"

/* As client-go: a mounted token is renewed long before it expires. */
#define VG_CREDS_TOKEN_NS (50 * VG_NS_PER_S)
#define VG_CREDS_FILES_NS (300 * VG_NS_PER_S)

/* Whoever waits for credentials. */
struct vg_creds_waiter {
    struct vg_list link;
    void (*ready)(struct vg_creds_waiter *w, const struct vigil_error *err); /* code 0: go on */
};

struct vg_creds {
    struct vigil_config *config;
    struct vg_loop *loop;
    const struct vg_log *log;
    char *file_token; /* NULL: not read */
    uint64_t token_at_ns, files_at_ns;
    bool has_files;
    struct vg_buf ca, cert, key; /* PEM; what connections use now */
    unsigned generation;         /* rises when certificates change: connections are made anew */
    struct vg_exec_run *run;
    struct vg_timer limit; /* of the run */
    struct vg_exec_result given;
    bool has_given;
    bool must_run, must_read; /* the server refused what we have */
    struct vg_list waiters;
};

VG_CHECK int vg_creds_init(struct vg_creds *c, struct vigil_config *config, struct vg_loop *loop,
                           const struct vg_log *log, struct vigil_error *err);
void vg_creds_done(struct vg_creds *c); /* waiters are not told */

/* 0: there are credentials. 1: w is told later. Negative: there are none, see err. */
VG_CHECK int vg_creds_prepare(struct vg_creds *c, struct vg_creds_waiter *w,
                              struct vigil_error *err);
void vg_creds_leave(struct vg_creds_waiter *w);
/* The server answered 401: what was read or given is not used for the next request. */
void vg_creds_refused(struct vg_creds *c);
/* Append "Authorization: ..." and a 0 byte, or nothing. */
VG_CHECK int vg_creds_header(struct vg_creds *c, struct vg_buf *out);

#endif
