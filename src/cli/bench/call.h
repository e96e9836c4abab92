/* call.h - one request that is waited for. Thread: that of the connection's engine. */
#ifndef VG_CLI_BENCH_CALL_H
#define VG_CLI_BENCH_CALL_H

#include "conn.h"

struct vg_bench_answer {
    struct vg_buf *body; /* the caller's: what comes is appended; NULL: dropped */
    int status;          /* 0: no head has come */
    uint64_t bytes;      /* of the body */
};
/* 0: the whole answer came. -errno or VIGIL_E_NETWORK: it broke, VIGIL_E_TIMEOUT: it did not come
 * in a minute and a half, VIGIL_E_CANCELED: the user wants to stop; then the connection is of no
 * more use but to be freed. */
VG_CHECK int vg_bench_call_on(struct vg_bench_conn *c, const struct vg_bench_ask *ask,
                              struct vg_bench_answer *ret);

#endif
