/* fuzz_etcd_messages.c - answers of etcd that are not what they should be.
 * Checked: whatever unpacks can be read, packed and unpacked again to the same bytes; the arena's
 * cap holds. The first byte chooses the message. */
#include <stdlib.h>

#include "base/alloc.h"
#include "messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ARENA_MAX ((size_t)1 << 20)

static void must(bool ok)
{
    if (!ok)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct vg_etcd_method *const methods[] = {
        &vg_etcd_range,  &vg_etcd_put,         &vg_etcd_delete_range,       &vg_etcd_txn,
        &vg_etcd_watch,  &vg_etcd_lease_grant, &vg_etcd_lease_time_to_live, &vg_etcd_member_list,
        &vg_etcd_status, &vg_etcd_snapshot,    &vg_etcd_authenticate,       &vg_etcd_lease_leases};
    struct vg_arena arena, again;
    ProtobufCMessage *m, *copy;
    if (size == 0)
        return 0;
    const struct vg_etcd_method *method = methods[data[0] % VG_ARRAY_LEN(methods)];
    vg_arena_init(&arena, 0, ARENA_MAX);
    vg_arena_init(&again, 0, 4 * ARENA_MAX);
    int r = vg_etcd_unpack(method->response, vg_slice(data + 1, size - 1), &arena, &m);
    must(arena.used <= ARENA_MAX);
    if (r == 0) {
        struct vg_grpc_msg *packed = vg_etcd_pack(m);
        must(packed);
        r = vg_etcd_unpack(method->response, vg_grpc_msg_bytes(packed), &again, &copy);
        struct vg_grpc_msg *twice = r == 0 ? vg_etcd_pack(copy) : NULL;
        must(!twice || vg_slice_eq(vg_grpc_msg_bytes(packed), vg_grpc_msg_bytes(twice)));
        vg_grpc_msg_unref(packed);
        vg_grpc_msg_unref(twice);
    }
    vg_arena_done(&arena);
    vg_arena_done(&again);
    return 0;
}
