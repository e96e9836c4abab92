/* messages.c - see messages.h. */
#include "messages.h"

#include <errno.h>

#define UNARY(name, service, method, req, res, flags)                                              \
    const struct vg_etcd_method vg_etcd_##name = {"/etcdserverpb." service "/" method,             \
                                                  &etcd__##req##__descriptor,                      \
                                                  &etcd__##res##__descriptor, flags}

UNARY(range, "KV", "Range", range_request, range_response, VG_GRPC_REPEATABLE);
UNARY(put, "KV", "Put", put_request, put_response, 0);
UNARY(delete_range, "KV", "DeleteRange", delete_range_request, delete_range_response, 0);
UNARY(txn, "KV", "Txn", txn_request, txn_response, 0);
UNARY(compact, "KV", "Compact", compaction_request, compaction_response, 0);
UNARY(watch, "Watch", "Watch", watch_request, watch_response, VG_GRPC_STREAM);
UNARY(lease_grant, "Lease", "LeaseGrant", lease_grant_request, lease_grant_response, 0);
UNARY(lease_revoke, "Lease", "LeaseRevoke", lease_revoke_request, lease_revoke_response, 0);
UNARY(lease_keep_alive, "Lease", "LeaseKeepAlive", lease_keep_alive_request,
      lease_keep_alive_response, VG_GRPC_STREAM);
UNARY(lease_time_to_live, "Lease", "LeaseTimeToLive", lease_time_to_live_request,
      lease_time_to_live_response, VG_GRPC_REPEATABLE);
UNARY(lease_leases, "Lease", "LeaseLeases", lease_leases_request, lease_leases_response,
      VG_GRPC_REPEATABLE);
UNARY(member_list, "Cluster", "MemberList", member_list_request, member_list_response,
      VG_GRPC_REPEATABLE);
UNARY(status, "Maintenance", "Status", status_request, status_response, VG_GRPC_REPEATABLE);
UNARY(snapshot, "Maintenance", "Snapshot", snapshot_request, snapshot_response, VG_GRPC_STREAM);
UNARY(defragment, "Maintenance", "Defragment", defragment_request, defragment_response, 0);
UNARY(authenticate, "Auth", "Authenticate", authenticate_request, authenticate_response,
      VG_GRPC_REPEATABLE | VG_GRPC_NO_TOKEN);

struct vg_grpc_msg *vg_etcd_pack(const ProtobufCMessage *m)
{
    uint8_t *bytes;
    struct vg_grpc_msg *msg = vg_grpc_msg_new(protobuf_c_message_get_packed_size(m), &bytes);
    if (msg)
        protobuf_c_message_pack(m, bytes);
    return msg;
}

/* The arena, and whether it had what was asked for: protobuf-c does not tell its failures apart. */
struct supply {
    struct vg_arena *arena;
    bool is_short;
};

static void *supply_alloc(void *arg, size_t n)
{
    struct supply *s = arg;
    void *p = vg_arena_alloc(s->arena, n, 16);
    s->is_short |= !p;
    return p;
}
static void supply_free(void *arg, void *p)
{
    (void)arg;
    (void)p;
}

int vg_etcd_unpack(const ProtobufCMessageDescriptor *type, struct vg_slice bytes,
                   struct vg_arena *arena, void *ret_message)
{
    struct supply supply = {.arena = arena};
    ProtobufCAllocator allocator = {supply_alloc, supply_free, &supply};
    ProtobufCMessage *m =
        protobuf_c_message_unpack(type, &allocator, bytes.n, (const uint8_t *)bytes.p);
    if (!m)
        return supply.is_short ? -ENOMEM : VIGIL_E_INVALID;
    memcpy(ret_message, &m, sizeof m);
    return 0;
}
