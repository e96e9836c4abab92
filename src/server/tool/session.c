/* session.c - see session.h: opening, closing and single requests. Walks are in walk.c. */
#include "session.h"

#include <dirent.h>
#include <errno.h>
#include <unistd.h>

/* ---- open and close ---- */

/* Is there anything in the directory that the store should judge? A store; or something that is not
 * ours, which opening refuses and names. Files of a store that was never finished do not count. */
static bool has_content(const char *dir)
{
    static const char *const empty[] = {".", "..", "lost+found", "lock", "data.mdb.new"};
    DIR *d = opendir(dir);
    if (!d)
        return errno != ENOENT;
    bool found = false;
    for (struct dirent *e; !found && (e = readdir(d));) {
        found = true;
        for (size_t i = 0; i < VG_ARRAY_LEN(empty); i++)
            found = found && strcmp(e->d_name, empty[i]) != 0;
    }
    closedir(d);
    return found;
}

static int open_store(struct vg_session *s, const struct vg_session_opts *opts,
                      struct vg_status *reterr_status)
{
    if (!opts->etcd && !opts->may_create && !has_content(opts->dir))
        return vg_fail(reterr_status, VIGIL_E_NOT_FOUND,
                       "there is no store in %s: name another with --dir, or make one with "
                       "vigil-store --dir %s put KEY VALUE",
                       opts->dir, opts->dir);
    struct vg_storage_opts o = {
        .size = sizeof o,
        .dir = opts->dir,
        .log = &s->log,
        .unsafe_no_fsync = opts->unsafe_no_fsync,
        .first_above = opts->first_above,
        .etcd = opts->etcd,
    };
    uint64_t start = vg_clock_mono_ns(vg_clock_system());
    int r = opts->etcd ? vg_storage_open_etcd(&o, &s->store, reterr_status)
                       : vg_storage_open_lmdb(&o, &s->store, reterr_status);
    s->open_ns = vg_clock_mono_ns(vg_clock_system()) - start;
    return r;
}

/* A transaction that changes nothing lets the commit thread delete what is due, a batch at a time.
 * Failing is no harm: reads work, and a write will say what is wrong. */
static void settle_deadlines(struct vg_session *s)
{
    struct vg_storage_stats before, after = {0};
    int r;
    do {
        before = after;
        struct vg_change check = {.type = VG_OP_CHECK, .key = VG_SLICE_LIT("-")};
        check.expect = VG_EXPECT_ANY;
        r = vg_session_change(s, &check, NULL);
        vg_storage_stats(s->store, &after);
    } while (r == 0 && after.expired != before.expired);
}

int vg_session_open(struct vg_session *s, const struct vg_session_opts *opts,
                    struct vg_status *reterr_status)
{
    *s = (struct vg_session){0};
    vg_log_sink_init(&s->sink, STDERR_FILENO, VG_LOG_TEXT, vg_clock_system());
    vg_log_init(&s->log, "storage", vg_log_sink_write, &s->sink, VG_LOG_WARN);
    int r = vg_loop_new(vg_clock_system(), &s->loop);
    if (r < 0)
        return vg_fail(reterr_status, r, "cannot make an event loop: %s", vg_err_text(r));
    r = open_store(s, opts, reterr_status);
    if (r < 0) {
        vg_session_close(s);
        return r;
    }
    if (!opts->etcd)
        settle_deadlines(s);
    return 0;
}

void vg_session_close(struct vg_session *s)
{
    if (!s->loop)
        return;
    vg_storage_close(vg_steal(s->store));
    while (vg_loop_turn(s->loop, false)) /* what was still to be answered */
        ;
    vg_loop_free(vg_steal(s->loop));
    vg_log_done(&s->log);
}

/* ---- requests ---- */

static void on_done(struct vg_store_req *req)
{
    req->done = NULL; /* the mark of an answer */
}

static void prepare(struct vg_session *s, struct vg_store_req *req)
{
    *req = (struct vg_store_req){.loop = s->loop, .done = on_done};
}

/* Wait for the answer to what was submitted with result r. */
static int finish(struct vg_session *s, struct vg_store_req *req, int r,
                  struct vg_status *reterr_status)
{
    while (r == 0 && req->done)
        vg_loop_turn(s->loop, true);
    if (r == 0)
        r = req->err;
    if (r >= 0)
        return 0;
    bool has_words = req->status.err == r && req->status.message[0];
    return vg_fail(reterr_status, r, "%s", has_words ? req->status.message : vg_err_text(r));
}

int vg_session_txn(struct vg_session *s, struct vg_txn *txn, struct vg_status *reterr_status)
{
    prepare(s, &txn->req);
    return finish(s, &txn->req, vg_storage_txn(s->store, txn), reterr_status);
}

int vg_session_range(struct vg_session *s, struct vg_range *range, struct vg_status *reterr_status)
{
    prepare(s, &range->req);
    return finish(s, &range->req, vg_storage_range(s->store, range), reterr_status);
}

int vg_session_compact(struct vg_session *s, struct vg_compact *compact,
                       struct vg_status *reterr_status)
{
    prepare(s, &compact->req);
    return finish(s, &compact->req, vg_storage_compact(s->store, compact), reterr_status);
}

int vg_session_backup(struct vg_session *s, struct vg_backup *backup,
                      struct vg_status *reterr_status)
{
    prepare(s, &backup->req);
    return finish(s, &backup->req, vg_storage_backup(s->store, backup), reterr_status);
}

/* ---- single keys ---- */

int vg_session_check_key(struct vg_slice key, struct vg_status *reterr_status)
{
    if (key.n > 0 && key.n <= VG_STORAGE_KEY_MAX)
        return 0;
    return vg_fail(reterr_status, VIGIL_E_KEY_INVALID,
                   "the key has %zu bytes; a store takes keys of 1 to %d", key.n,
                   VG_STORAGE_KEY_MAX);
}

int vg_session_change(struct vg_session *s, struct vg_change *change,
                      struct vg_status *reterr_status)
{
    struct vg_op op = {.type = change->type, .expect = change->expect, .ttl_ms = change->ttl_ms};
    struct vg_txn txn = {.ops = &op, .n_ops = 1};
    enum vg_rec_op rec_op = change->type == VG_OP_PUT ? VG_REC_PUT : VG_REC_DELETE;
    int r = vg_session_check_key(change->key, reterr_status);
    if (r < 0)
        return r;
    r = vg_rec_new(rec_op, change->key, vg_slice(NULL, 0), change->value, &op.rec);
    if (r < 0)
        return vg_fail(reterr_status, r, "%s", vg_err_text(r));
    r = vg_session_txn(s, &txn, reterr_status);
    change->rev = txn.req.rev;
    change->prev_rev = op.prev ? op.prev->rev : 0;
    vg_txn_done(&txn);
    return r;
}

int vg_session_get(struct vg_session *s, struct vg_slice key, vg_rev at, struct vg_rec **ret_rec,
                   struct vg_status *reterr_status)
{
    struct vg_range range = {.keys = {.kind = VG_KEYS_ONE, .start = key}, .at = at};
    int r = vg_session_check_key(key, reterr_status);
    if (r == 0)
        r = vg_session_range(s, &range, reterr_status);
    if (r < 0)
        return r;
    if (range.n_recs > 0)
        *ret_rec = vg_rec_ref(range.recs[0]);
    else
        r = vg_fail(
            reterr_status, VIGIL_E_NOT_FOUND,
            "there is no key '%.*s' at revision %llu; vigil-store list shows those there are",
            VG_SLICE_ARG(key), (unsigned long long)range.req.rev);
    vg_range_done(&range);
    return r;
}
