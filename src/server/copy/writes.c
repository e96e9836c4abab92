/* writes.c - see writes.h. */
#include "writes.h"

static void on_done(struct vg_store_req *req)
{
    VG_CONTAINER_OF(req, struct vg_write, txn.req)->is_answered = true;
}

static int add(struct vg_writes *w, struct vg_op op, struct vg_status *reterr_status)
{
    struct vg_write *write = &w->writes[w->n++];
    *write = (struct vg_write){.op = op};
    write->txn = (struct vg_txn){
        .req = {.loop = w->s->loop, .done = on_done},
        .n_ops = 1,
        .no_prev = true,
    };
    write->txn.ops = &write->op;
    return w->n < VG_COPY_PAGE ? 0 : vg_writes_send(w, reterr_status);
}

int vg_writes_put(struct vg_writes *w, const struct vg_rec *rec, vg_rev expect, uint64_t ttl_ms,
                  struct vg_status *reterr_status)
{
    struct vg_op op = {.type = VG_OP_PUT, .expect = expect, .ttl_ms = ttl_ms};
    int r = vg_rec_new(VG_REC_PUT, vg_rec_key(rec), vg_rec_header(rec), vg_rec_value(rec), &op.rec);
    if (r < 0)
        return vg_fail(reterr_status, r, "%s", vg_err_text(r));
    return add(w, op, reterr_status);
}

int vg_writes_delete(struct vg_writes *w, struct vg_slice key, vg_rev expect,
                     struct vg_status *reterr_status)
{
    struct vg_op op = {.type = VG_OP_DELETE, .expect = expect};
    int r = vg_rec_new(VG_REC_DELETE, key, vg_slice(NULL, 0), vg_slice(NULL, 0), &op.rec);
    if (r < 0)
        return vg_fail(reterr_status, r, "%s", vg_err_text(r));
    return add(w, op, reterr_status);
}

/* 0: it is under way. */
static int submit(struct vg_writes *w, struct vg_write *write)
{
    int r;
    while ((r = vg_storage_txn(w->s->store, &write->txn)) == VIGIL_E_BUSY)
        vg_loop_turn(w->s->loop, true); /* those under way make room */
    if (r < 0) {
        write->txn.req.err = r;
        write->is_answered = true;
    }
    return r;
}

static int tell(const struct vg_write *write, struct vg_status *reterr_status)
{
    int err = write->txn.req.err;
    const struct vg_status *status = &write->txn.req.status;
    const char *why = status->err == err && status->message[0] ? status->message : vg_err_text(err);
    struct vg_slice key = vg_rec_key(write->op.rec);
    if (err == VIGIL_E_CONFLICT)
        return vg_fail(reterr_status, err,
                       "somebody else writes to the target ('%.*s'): stop them and run it again",
                       VG_SLICE_ARG(key));
    return vg_fail(reterr_status, err, "'%.*s' cannot be written: %s; run it again to go on",
                   VG_SLICE_ARG(key), why);
}

int vg_writes_send(struct vg_writes *w, struct vg_status *reterr_status)
{
    size_t sent = 0;
    int r = 0;
    while (sent < w->n && r == 0)
        r = submit(w, &w->writes[sent++]);
    for (size_t i = 0; i < sent; i++) {
        while (!w->writes[i].is_answered)
            vg_loop_turn(w->s->loop, true);
    }
    r = 0;
    for (size_t i = 0; i < sent && r == 0; i++) {
        if (w->writes[i].txn.req.err < 0)
            r = tell(&w->writes[i], reterr_status);
    }
    vg_writes_done(w);
    return r;
}

void vg_writes_done(struct vg_writes *w)
{
    for (size_t i = 0; i < w->n; i++)
        vg_txn_done(&w->writes[i].txn);
    w->n = 0;
}
