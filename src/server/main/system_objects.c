/* system_objects.c - see system_objects.h. All are put together and share one sync; those that are
 * there already are left as they are. */
#include "system_objects.h"

#include <errno.h>
#include <stdio.h>

#include "base/rng.h"
#include "base/uuid.h"
#include "object/key.h"
#include "object/seal.h"
#include "server/kinds/kinds.h"
#include "server/schema/gotime.h"

static const char *const names[] = {"default", "kube-node-lease", "kube-public", "kube-system"};
#define N_NAMES VG_ARRAY_LEN(names)

struct creation {
    struct vg_txn txn; /* first */
    struct vg_op op;
    struct creations *all;
};

struct creations {
    struct creation v[N_NAMES];
    size_t pending;
    bool is_over;
};

static int write_namespace(struct vg_buf *out, const char *name, int64_t now_ms)
{
    unsigned char u[16];
    char uid[VG_UUID_TEXT], when[VG_TIME_TEXT_MAX];
    int r = vg_random_bytes(u, sizeof u);
    if (r < 0)
        return r;
    vg_uuid_mark(u);
    vg_uuid_write(u, uid);
    int n = (int)vg_time_format(now_ms, when);
    return vg_buf_printf(
        out,
        "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\",\"uid\":\"%.*"
        "s\","
        "\"creationTimestamp\":\"%.*s\",\"labels\":{\"kubernetes.io/metadata.name\":\"%s\"}},"
        "\"spec\":{\"finalizers\":[\"kubernetes\"]},\"status\":{\"phase\":\"Active\"}}",
        name, (int)sizeof uid, uid, n, when, name);
}

static int make_record(const char *name, int64_t now_ms, struct vg_rec **ret_rec,
                       struct vg_status *reterr_status)
{
    const struct vg_kind *kind =
        vg_kind_find(VG_SLICE_LIT(""), VG_SLICE_LIT("v1"), VG_SLICE_LIT("namespaces"));
    VG_AUTO(buf) json = {0};
    VG_AUTO(arena) arena = {0};
    VG_AUTO(obj_sealed) sealed;
    struct vg_obj_key key;
    vg_obj_sealed_init(&sealed);
    if (VG_NEVER(!kind))
        return VIGIL_E_INTERNAL;
    int r = write_namespace(&json, name, now_ms);
    if (r == 0)
        r = vg_obj_seal_text(kind->fields, vg_buf_slice(&json), &arena, &sealed, reterr_status);
    if (r == 0)
        r = vg_obj_key_make(vg_slice_str(kind->prefix), VG_SLICE_LIT(""), vg_slice_str(name), &key);
    if (r == 0)
        r = vg_rec_new(VG_REC_PUT, vg_obj_key_slice(&key), vg_buf_slice(&sealed.header),
                       vg_buf_slice(&sealed.value), ret_rec);
    return r;
}

static void on_done(struct vg_store_req *req)
{
    struct creation *c = VG_CONTAINER_OF(req, struct creation, txn.req);
    if (--c->all->pending == 0)
        c->all->is_over = true;
}

static int submit(struct vg_storage *storage, struct vg_loop *loop, struct creation *c,
                  const char *name, int64_t now_ms, struct vg_status *reterr_status)
{
    c->op = (struct vg_op){.type = VG_OP_PUT, .expect = 0};
    c->txn = (struct vg_txn){
        .req = {.loop = loop, .done = on_done}, .ops = &c->op, .n_ops = 1, .no_prev = true};
    int r = make_record(name, now_ms, &c->op.rec, reterr_status);
    if (r == 0)
        r = vg_storage_txn(storage, &c->txn);
    if (r == 0)
        c->all->pending++;
    else
        vg_txn_done(&c->txn);
    return r;
}

int vg_system_objects_ensure(struct vg_storage *storage, struct vg_loop *loop,
                             const struct vg_clock *clock, struct vg_status *reterr_status)
{
    struct creations all = {0};
    size_t sent = 0;
    int r = 0;
    for (; sent < N_NAMES && r == 0; sent += r == 0) {
        all.v[sent].all = &all;
        r = submit(storage, loop, &all.v[sent], names[sent], vg_clock_wall_ms(clock),
                   reterr_status);
    }
    if (all.pending)
        vg_loop_turn_until(loop, &all.is_over);
    for (size_t i = 0; i < sent; i++) {
        struct vg_store_req *req = &all.v[i].txn.req;
        if (r == 0 && req->err < 0 && req->err != VIGIL_E_CONFLICT)
            r = vg_fail(reterr_status, req->err, "cannot make the namespace %s: %s", names[i],
                        req->status.message[0] ? req->status.message : vg_err_text(req->err));
        vg_txn_done(&all.v[i].txn);
    }
    return r;
}
