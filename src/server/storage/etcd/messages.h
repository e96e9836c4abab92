/* messages.h - etcd's methods and messages on the wire (etcd.proto, by protobuf-c).
 * What is received is unpacked into an arena: nothing is freed singly, and the arena's cap bounds
 * what a peer can make us hold. Thread: any; an arena has one owner. */
#ifndef VG_STORAGE_ETCD_MESSAGES_H
#define VG_STORAGE_ETCD_MESSAGES_H

#include "base/arena.h"
#include "etcd.pb-c.h"
#include "net/grpc/grpc.h"

struct vg_etcd_method {
    const char *path;
    const ProtobufCMessageDescriptor *request, *response;
    unsigned flags; /* of struct vg_grpc_call */
};
extern const struct vg_etcd_method vg_etcd_range, vg_etcd_put, vg_etcd_delete_range, vg_etcd_txn,
    vg_etcd_compact, vg_etcd_watch, vg_etcd_lease_grant, vg_etcd_lease_revoke,
    vg_etcd_lease_keep_alive, vg_etcd_lease_time_to_live, vg_etcd_lease_leases, vg_etcd_member_list,
    vg_etcd_status, vg_etcd_snapshot, vg_etcd_defragment, vg_etcd_authenticate;

/* The message, ready to be sent. NULL: out of memory. */
VG_CHECK struct vg_grpc_msg *vg_etcd_pack(const ProtobufCMessage *m);
/* All of it lives in the arena (nothing points into `bytes`). 0; -ENOMEM: out of memory, or over
 * the arena's cap; VIGIL_E_INVALID: malformed. */
VG_CHECK int vg_etcd_unpack(const ProtobufCMessageDescriptor *type, struct vg_slice bytes,
                            struct vg_arena *arena, void *ret_message);

static inline struct vg_slice vg_etcd_bytes(ProtobufCBinaryData d)
{
    return vg_slice(d.data, d.len);
}
static inline ProtobufCBinaryData vg_etcd_data(struct vg_slice s)
{
    return (ProtobufCBinaryData){.len = s.n, .data = (uint8_t *)(uintptr_t)s.p};
}

#endif
