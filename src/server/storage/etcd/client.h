/* client.h - calls to an etcd cluster: a gRPC pool that logs in, with etcd's methods and errors.
 * With a user name, tokens are got and renewed by themselves; a cluster without authentication is
 * used without. Thread: the loop's. */
#ifndef VG_STORAGE_ETCD_CLIENT_H
#define VG_STORAGE_ETCD_CLIENT_H

#include "messages.h"

struct vg_etcd_client;

struct vg_etcd_client_opts {
    /* As for a pool; is_refused and renew are the client's; on_state's and arg are the caller's. */
    struct vg_grpc_pool_opts pool;
    const char *username, *password; /* copied; NULL: none */
};
VG_CHECK int vg_etcd_client_new(const struct vg_etcd_client_opts *opts,
                                struct vg_etcd_client **ret_client,
                                struct vg_status *reterr_status);
void vg_etcd_client_free(struct vg_etcd_client *c); /* as vg_grpc_pool_free */
/* For all that vg_grpc_pool_* says, and to start calls by hand. */
struct vg_grpc_pool *vg_etcd_client_pool(struct vg_etcd_client *c);
/* The last login failed: its sentence; NULL: it did not, or none was needed. */
const char *vg_etcd_client_login_trouble(const struct vg_etcd_client *c);

/* Fill in path and message of a zeroed call (timeout_ms, on_end, on_message, endpoint, fields are
 * the caller's; flags are added to), and start it. As vg_grpc_start. request NULL: a stream without
 * a first message. */
VG_CHECK int vg_etcd_call(struct vg_etcd_client *c, const struct vg_etcd_method *method,
                          const ProtobufCMessage *request, struct vg_grpc_call *call);
/* The answer of a unary call that ended OK, unpacked into the arena. As vg_etcd_unpack. */
VG_CHECK int vg_etcd_answer(const struct vg_grpc_call *call, const struct vg_etcd_method *method,
                            struct vg_arena *arena, void *ret_message);

/* The metadata that makes a member without a leader refuse or end a stream: hasleader=true. */
extern const struct vg_grpc_field vg_etcd_require_leader[1];

/* What a status means in vigil's words; *reterr_status gets a sentence with etcd's own. OK is 0.
 *   COMPACTED, FUTURE   the revision
 *   TOO_LARGE           the request, by etcd's limit
 *   STORE_FULL          the space quota (alarm NOSPACE)
 *   READ_ONLY           the cluster is damaged (alarm CORRUPT)
 *   BUSY                too many requests
 *   NOT_FOUND           the lease
 *   EXISTS              the lease
 *   UNAUTHORIZED, FORBIDDEN  the user, the token, the certificate, the role
 *   UNKNOWN_OUTCOME     is_write, and it may have been carried out
 *   TIMEOUT             not carried out, or a read
 *   NETWORK             likewise: no member could be reached, or none has a leader
 *   CLOSED              the member stops
 *   UNSUPPORTED         the method is not known there: not etcd v3, or too old
 *   INTERNAL            anything else */
int vg_etcd_error(const struct vg_grpc_status *status, bool is_write,
                  struct vg_status *reterr_status);

#endif
