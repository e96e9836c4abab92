/* txn_int.h - a transaction under way, for txn.c and for txn_pack.c, which makes it into etcd's. */
#ifndef VG_STORAGE_ETCD_TXN_INT_H
#define VG_STORAGE_ETCD_TXN_INT_H

#include "engine.h"

struct vg_etcd_txn_job {
    struct vg_etcd_job job;
    struct vg_txn *txn;
    struct vg_grpc_msg *msg;
    struct vg_etcd_doubt *doubt;
    struct vg_arena arena; /* leases; the answer */
    int64_t *leases;       /* of the operations with a time to live */
    int64_t *ttls;
    size_t n_leases, n_granted;
    struct vg_buf bytes; /* of a lone put, as it is stored */
    struct vg_etcd_own *own;
    bool is_sent;
};

static inline bool vg_etcd_has_expectation(const struct vg_op *op)
{
    return op->expect != VG_EXPECT_ANY;
}

/* Fill in msg, leases, ttls and bytes. VIGIL_E_KEY_INVALID, -ENOMEM, what the form says. Thread:
 * the caller's. */
VG_CHECK int vg_etcd_txn_pack(struct vg_etcd_engine *e, struct vg_etcd_txn_job *t);

#endif
