/* demo_load.c - see demo_load.h. Each of the writes in flight has a slot; its answer starts the
 * next write from the same slot. */
#include "demo_load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"

#define INDEX_DIGITS 7

struct slot {
    struct vg_txn txn;
    struct vg_op op;
    struct running *run;
    size_t index;
    uint64_t start_ns;
};

struct running {
    struct vg_load *load;
    size_t next; /* to be written */
    size_t in_flight;
    uint64_t start_ns;
    int err;
    struct vg_status *status;
    struct slot slots[VG_LOAD_IN_FLIGHT];
};

/* ---- what is written ---- */

struct vg_slice vg_load_key(const char *prefix, size_t index, char text[VG_LOAD_TEXT_MAX])
{
    int n = snprintf(text, VG_LOAD_TEXT_MAX, "%s%0*zu", prefix, INDEX_DIGITS, index);
    return vg_slice(text, (size_t)VG_MIN(n, VG_LOAD_TEXT_MAX - 1));
}

struct vg_slice vg_load_value(size_t index, char text[VG_LOAD_TEXT_MAX])
{
    int n =
        snprintf(text, VG_LOAD_TEXT_MAX,
                 "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"web-%0*zu\","
                 "\"namespace\":\"demo\",\"labels\":{\"app\":\"web\",\"shard\":\"%zu\"}},"
                 "\"spec\":{\"nodeName\":\"node-%zu\",\"containers\":[{\"name\":\"main\","
                 "\"image\":\"registry.example/web:1.%zu\",\"ports\":[{\"containerPort\":8080}],"
                 "\"resources\":{\"requests\":{\"cpu\":\"100m\",\"memory\":\"64Mi\"}}}]},"
                 "\"status\":{\"phase\":\"Running\",\"podIP\":\"10.%zu.%zu.%zu\"}}",
                 INDEX_DIGITS, index, index % 16, index % 100, index % 10, index >> 16 & 255,
                 index >> 8 & 255, index & 255);
    return vg_slice(text, (size_t)VG_MIN(n, VG_LOAD_TEXT_MAX - 1));
}

bool vg_load_index(const char *prefix, struct vg_slice key, size_t *ret_index)
{
    char digits[INDEX_DIGITS + 1];
    size_t n = strlen(prefix);
    if (key.n != n + INDEX_DIGITS || !vg_slice_has_prefix(key, vg_slice_str(prefix)))
        return false;
    memcpy(digits, key.p + n, INDEX_DIGITS);
    digits[INDEX_DIGITS] = '\0';
    *ret_index = strtoul(digits, NULL, 10);
    return true;
}

bool vg_load_is_right(const struct vg_rec *rec, size_t index)
{
    char text[VG_LOAD_TEXT_MAX];
    return vg_slice_eq(vg_rec_value(rec), vg_load_value(index, text));
}

/* ---- writing ---- */

static void on_done(struct vg_store_req *req);

static uint64_t now_ns(void)
{
    return vg_clock_mono_ns(vg_clock_system());
}

static int submit(struct slot *slot)
{
    struct vg_session *s = slot->run->load->s;
    slot->txn = (struct vg_txn){.ops = &slot->op, .n_ops = 1};
    slot->txn.req.loop = s->loop;
    slot->txn.req.done = on_done;
    return vg_storage_txn(s->store, &slot->txn);
}

static void fail(struct running *run, int err, const char *message)
{
    if (run->err == 0)
        run->err = vg_fail(run->status, err, "a write failed: %s", message);
}

/* Put the next write into a free slot, if there is one to do. */
static void write_next(struct slot *slot)
{
    struct running *run = slot->run;
    char key[VG_LOAD_TEXT_MAX], value[VG_LOAD_TEXT_MAX];
    slot->start_ns = now_ns();
    bool is_late = run->next >= VG_LOAD_MIN && slot->start_ns - run->start_ns > run->load->max_ns;
    if (run->err < 0 || run->next == run->load->total || is_late)
        return;
    slot->index = run->next++;
    slot->op = (struct vg_op){.type = VG_OP_PUT, .expect = VG_EXPECT_ANY};
    int r = vg_rec_new(VG_REC_PUT, vg_load_key(run->load->prefix, slot->index, key),
                       vg_slice(NULL, 0), vg_load_value(slot->index, value), &slot->op.rec);
    if (r == 0)
        r = submit(slot);
    if (r == 0)
        run->in_flight++;
    else {
        slot->op.rec = vg_rec_unref(slot->op.rec);
        fail(run, r, vg_err_text(r));
    }
}

static void on_done(struct vg_store_req *req)
{
    struct slot *slot = VG_CONTAINER_OF(req, struct slot, txn.req);
    struct running *run = slot->run;
    struct vg_load *load = run->load;
    if (req->err == VIGIL_E_BUSY && submit(slot) == 0) /* too fast for the disk: once more */
        return;
    run->in_flight--;
    if (req->err == 0) {
        load->n_acked++;
        load->on_ack(load->arg, slot->index, req->rev, now_ns() - slot->start_ns);
    } else {
        fail(run, req->err, req->status.message);
    }
    vg_txn_done(&slot->txn);
    write_next(slot);
}

int vg_load_run(struct vg_load *load, struct vg_status *reterr_status)
{
    struct running *run = vg_new(struct running);
    if (!run)
        return vg_fail(reterr_status, -ENOMEM, "%s", vg_err_text(-ENOMEM));
    run->load = load;
    run->status = reterr_status;
    run->start_ns = now_ns();
    for (size_t i = 0; i < VG_LOAD_IN_FLIGHT; i++) {
        run->slots[i].run = run;
        write_next(&run->slots[i]);
    }
    while (run->in_flight > 0)
        vg_loop_turn(load->s->loop, true);
    load->took_ns = now_ns() - run->start_ns;
    int r = run->err;
    vg_free(run);
    return r;
}
