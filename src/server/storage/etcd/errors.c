/* errors.c - what etcd's statuses mean for a store; see vg_etcd_error in client.h.
 * etcd tells its errors apart by their texts. A write is said to have failed only when it surely
 * has: a time-out, a member that stops or a change of leader may come after etcd has agreed on it.
 */
#include "client.h"

struct meaning {
    const char *text; /* the message contains it */
    int err;
};

static const struct meaning meanings[] = {
    {"required revision has been compacted", VIGIL_E_COMPACTED},
    {"required revision is a future revision", VIGIL_E_FUTURE},
    {"request is too large", VIGIL_E_TOO_LARGE},
    {"trying to send message larger than max", VIGIL_E_TOO_LARGE},
    {"received message larger than max", VIGIL_E_TOO_LARGE},
    {"too many operations in txn request", VIGIL_E_TOO_LARGE},
    {"database space exceeded", VIGIL_E_STORE_FULL},
    {"corrupt cluster", VIGIL_E_READ_ONLY},
    {"too many requests", VIGIL_E_BUSY},
    {"requested lease not found", VIGIL_E_NOT_FOUND},
    {"lease already exists", VIGIL_E_EXISTS},
    {"permission denied", VIGIL_E_FORBIDDEN},
    {"invalid auth token", VIGIL_E_UNAUTHORIZED},
    {"user name is empty", VIGIL_E_UNAUTHORIZED},
    {"revision of auth store is old", VIGIL_E_UNAUTHORIZED},
    {"authentication failed", VIGIL_E_UNAUTHORIZED},
    {"no leader", VIGIL_E_NETWORK},
    {"rpc not supported for learner", VIGIL_E_NETWORK},
};

/* By the code alone. */
static int by_code(enum vg_grpc_code code)
{
    switch (code) {
    case VG_GRPC_DEADLINE_EXCEEDED:
        return VIGIL_E_TIMEOUT;
    case VG_GRPC_UNAVAILABLE:
        return VIGIL_E_NETWORK;
    case VG_GRPC_UNAUTHENTICATED:
        return VIGIL_E_UNAUTHORIZED;
    case VG_GRPC_PERMISSION_DENIED:
        return VIGIL_E_FORBIDDEN;
    case VG_GRPC_RESOURCE_EXHAUSTED:
        return VIGIL_E_BUSY;
    case VG_GRPC_UNIMPLEMENTED:
        return VIGIL_E_UNSUPPORTED;
    case VG_GRPC_CANCELLED:
        return VIGIL_E_CLOSED;
    default:
        return VIGIL_E_INTERNAL;
    }
}

/* Statuses after which a request may yet be carried out, or has been. */
static bool leaves_open(enum vg_grpc_code code)
{
    return code == VG_GRPC_UNAVAILABLE || code == VG_GRPC_DEADLINE_EXCEEDED ||
           code == VG_GRPC_CANCELLED || code == VG_GRPC_UNKNOWN || code == VG_GRPC_INTERNAL;
}

static int by_text(const char *message)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(meanings); i++)
        if (strstr(message, meanings[i].text))
            return meanings[i].err;
    return 0;
}

int vg_etcd_error(const struct vg_grpc_status *status, bool is_write,
                  struct vg_status *reterr_status)
{
    if (status->code == VG_GRPC_OK)
        return 0;
    bool is_sent = status->fate != VG_GRPC_NOT_SENT;
    /* Texts are etcd's only when it answered. */
    int err = status->fate == VG_GRPC_MAYBE ? 0 : by_text(status->message);
    if (err == 0 && is_write && is_sent &&
        (status->fate == VG_GRPC_MAYBE || leaves_open(status->code)))
        err = status->code == VG_GRPC_UNIMPLEMENTED ? VIGIL_E_UNSUPPORTED : VIGIL_E_UNKNOWN_OUTCOME;
    if (err == 0)
        err = strstr(status->message, "server stopped") ? VIGIL_E_CLOSED : by_code(status->code);
    return vg_fail(reterr_status, err, "etcd: %s (%s)", status->message,
                   vg_grpc_code_name(status->code));
}
