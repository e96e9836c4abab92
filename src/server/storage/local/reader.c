/* reader.c - the reader thread: ranges and pieces of the log, off the loops, since a base may have
 * to wait for a disk. A read fixes its revision first, then takes the layers: everything up to that
 * revision is in them. Compaction is checked last: what it removed meanwhile makes the read fail
 * rather than be wrong (S3). */
#include <errno.h>

#include "base/alloc.h"
#include "engine.h"
#include "merge.h"

/* Log entries that one request looks at, so that a watch of few keys does not hold up the others.
 */
#define LOG_SCAN_MAX 8192
/* At least as much as one revision can hold. */
#define LOG_CHUNK 512
_Static_assert(LOG_CHUNK > VG_STORAGE_TXN_OPS_MAX, "a chunk must hold a whole revision");

struct reader {
    struct vg_engine *e;
    struct vg_base_view *view;
    struct vg_layers layers;
};

static int begin(struct reader *rd)
{
    rd->layers = vg_engine_layers(rd->e);
    int r = rd->e->base ? rd->e->base->ops->view_begin(rd->view) : 0;
    if (r < 0)
        vg_layers_done(&rd->layers);
    return r;
}

static void end(struct reader *rd)
{
    if (rd->e->base)
        rd->e->base->ops->view_end(rd->view);
    vg_layers_done(&rd->layers);
}

/* ---- ranges ---- */

static int add_result(struct vg_range *range, struct vg_rec *take_rec, size_t *cap)
{
    struct vg_rec *rec = take_rec;
    if ((range->flags & VG_RANGE_KEYS_ONLY) && (rec->header_len || rec->value_len)) {
        int r = vg_rec_copy_key(take_rec, &rec);
        vg_rec_unref(take_rec);
        if (r < 0)
            return r;
    }
    if (range->n_recs == *cap) {
        size_t want = *cap ? *cap * 2 : 16;
        struct vg_rec **v = vg_reallocarray(range->recs, want, sizeof *v);
        if (!v) {
            vg_rec_unref(rec);
            return -ENOMEM;
        }
        range->recs = v;
        *cap = want;
    }
    range->recs[range->n_recs++] = rec;
    return 0;
}

/* It comes with the others if the caller wants that, and fails the range if not. */
static int check_readable(struct vg_range *range, const struct vg_rec *rec)
{
    if (VG_LIKELY(!rec->is_unreadable) || (range->flags & VG_RANGE_UNREADABLE))
        return 0;
    return vg_fail(&range->req.status, VIGIL_E_STORE_DAMAGED,
                   "the stored data is damaged: the record of key %.*s at revision %llu does not "
                   "read back; restore from a backup",
                   VG_SLICE_ARG(vg_rec_key(rec)), (unsigned long long)rec->rev);
}

/* The next change of the range. 1, 0 when there is none, negative. */
static int next_readable(struct reader *rd, struct vg_merge *m, struct vg_range *range,
                         struct vg_rec **ret_rec)
{
    int r = vg_merge_next(m, rd->e, ret_rec);
    int err = r > 0 ? check_readable(range, *ret_rec) : 0;
    if (err < 0)
        *ret_rec = vg_rec_unref(*ret_rec);
    return err < 0 ? err : r;
}

static int walk_range(struct reader *rd, struct vg_merge *m, struct vg_range *range)
{
    bool is_count_only = (range->flags & VG_RANGE_COUNT_ONLY) == VG_RANGE_COUNT_ONLY;
    size_t limit = is_count_only ? 0 : range->limit ? range->limit : VG_STORAGE_RANGE_MAX;
    size_t cap = 0;
    struct vg_rec *rec;
    int r;
    while ((r = next_readable(rd, m, range, &rec)) > 0) {
        range->count++;
        if (range->n_recs < limit) {
            r = add_result(range, rec, &cap);
            if (r < 0)
                return r;
            continue;
        }
        vg_rec_unref(rec);
        range->more = !is_count_only;
        if (range->more && !range->limit)
            return VIGIL_E_TOO_LARGE;
        if (!(range->flags & VG_RANGE_COUNT))
            return 0;
        m->keys_only = true;
    }
    return r;
}

/* One key: no need to merge. */
static int read_one(struct reader *rd, struct vg_range *range)
{
    struct vg_rec *rec;
    size_t cap = 0;
    int r = vg_layers_get(rd->e, &rd->layers, rd->view, range->keys.start, range->req.rev, &rec);
    if (r <= 0)
        return r;
    if (vg_rec_is_delete(rec)) {
        vg_rec_unref(rec);
        return 0;
    }
    range->count = 1;
    bool is_count_only = (range->flags & VG_RANGE_COUNT_ONLY) == VG_RANGE_COUNT_ONLY;
    r = is_count_only ? 0 : check_readable(range, rec);
    if (is_count_only || r < 0) {
        vg_rec_unref(rec);
        return r;
    }
    return add_result(range, rec, &cap);
}

static int read_range(struct reader *rd, struct vg_range *range)
{
    if (range->keys.kind == VG_KEYS_ONE)
        return read_one(rd, range);
    struct vg_merge *m = vg_malloc(sizeof *m);
    if (!m)
        return -ENOMEM;
    bool keys_only = range->flags & (VG_RANGE_KEYS_ONLY | (VG_RANGE_COUNT_ONLY & ~VG_RANGE_COUNT));
    vg_merge_init(m, rd->e, &rd->layers, rd->view, &range->keys, range->req.rev, keys_only);
    m->known = range->known;
    int r = walk_range(rd, m, range);
    vg_merge_done(m);
    vg_free(m);
    return r;
}

static int fail_compacted(struct vg_store_req *req, vg_rev asked, vg_rev compacted)
{
    req->compact_rev = compacted;
    return vg_fail(&req->status, VIGIL_E_COMPACTED,
                   "revision %llu has been compacted; the oldest that can be read is %llu",
                   (unsigned long long)asked, (unsigned long long)compacted);
}

/* Fix the revision and read. Results of a failed read are still there: the caller drops them. */
static int read_once(struct reader *rd, struct vg_range *range)
{
    vg_rev now = atomic_load_explicit(&rd->e->rev, memory_order_acquire);
    range->req.rev = range->at ? range->at : now;
    if (range->at > now) {
        range->req.rev = now;
        return vg_fail(&range->req.status, VIGIL_E_FUTURE,
                       "revision %llu is not there yet; the newest is %llu",
                       (unsigned long long)range->at, (unsigned long long)now);
    }
    int r = begin(rd);
    if (r < 0)
        return r;
    r = read_range(rd, range);
    if (r == VIGIL_E_STORE_DAMAGED && range->req.status.err != r)
        vg_fail(&range->req.status, r, "%s", rd->e->base->ops->damage(rd->view));
    end(rd);
    return r;
}

/* A read of "now" that compaction overtook begins anew, from nothing. */
static int run_range(struct reader *rd, struct vg_range *range)
{
    for (;;) {
        int r = read_once(rd, range);
        vg_rev compacted = atomic_load_explicit(&rd->e->compacted, memory_order_acquire);
        if (range->req.rev >= compacted || r == VIGIL_E_FUTURE)
            return r;
        if (range->at)
            return fail_compacted(&range->req, range->at, compacted);
        vg_range_done(range);
        range->count = 0;
        range->more = false;
    }
}

/* ---- pieces of the log ---- */

/* Changes in [from, to] in order, whole revisions only. Layers overlap where a checkpoint has just
 * moved one down; the oldest layer that has `from` continues furthest without a gap. */
static int read_chunk(struct reader *rd, vg_rev from, vg_rev to, struct vg_rec **recs,
                      size_t *ret_n)
{
    size_t n = 0;
    if (rd->e->base) {
        int r = rd->e->base->ops->log_read(rd->view, from, to, recs, LOG_CHUNK, &n);
        if (r < 0)
            return r;
    }
    if (n == 0 && rd->layers.frozen)
        n = vg_table_log(rd->layers.frozen, from, to, recs, LOG_CHUNK);
    if (n == 0)
        n = vg_table_log(rd->layers.active, from, to, recs, LOG_CHUNK);
    if (n == LOG_CHUNK) { /* the last revision may go on: leave it for the next chunk */
        vg_rev cut = recs[n - 1]->rev;
        while (n && recs[n - 1]->rev == cut)
            vg_rec_unref(recs[--n]);
    }
    *ret_n = n;
    return 0;
}

static int add_event(struct reader *rd, struct vg_log_read *read, struct vg_rec *take_rec,
                     size_t *cap)
{
    if (read->n == *cap) {
        size_t want = *cap ? *cap * 2 : 64;
        struct vg_event *v = vg_reallocarray(read->events, want, sizeof *v);
        if (!v) {
            vg_rec_unref(take_rec);
            return -ENOMEM;
        }
        read->events = v;
        *cap = want;
    }
    struct vg_event *ev = &read->events[read->n++];
    *ev = (struct vg_event){.rec = take_rec};
    if (VG_UNLIKELY(take_rec->is_unreadable) && !read->unreadable)
        return VIGIL_E_STORE_DAMAGED;
    bool is_new = read->prev_below && take_rec->prev_rev >= read->prev_below;
    if (!take_rec->prev_rev || read->no_prev || is_new)
        return 0;
    struct vg_rec *prev;
    int r =
        vg_layers_get(rd->e, &rd->layers, rd->view, vg_rec_key(take_rec), take_rec->rev - 1, &prev);
    if (r > 0)
        ev->prev = prev;
    if (r > 0 && prev->is_unreadable && !read->unreadable)
        return VIGIL_E_STORE_DAMAGED;
    return r < 0 ? r : 0;
}

static int filter_chunk(struct reader *rd, struct vg_log_read *read, struct vg_rec **recs, size_t n,
                        size_t *cap)
{
    int r = 0;
    for (size_t i = 0; i < n; i++) {
        if (r == 0 && vg_keys_contain(&read->keys, vg_rec_key(recs[i])))
            r = add_event(rd, read, recs[i], cap);
        else
            vg_rec_unref(recs[i]);
    }
    return r;
}

static int walk_log(struct reader *rd, struct vg_log_read *read)
{
    struct vg_rec *recs[LOG_CHUNK];
    size_t cap = 0;
    vg_rev at = read->from;
    for (size_t scanned = 0; scanned < LOG_SCAN_MAX && read->n < read->max;) {
        size_t n;
        int r = read_chunk(rd, at, read->to, recs, &n);
        if (r < 0)
            return r;
        if (n == 0) {
            read->upto = read->to;
            return 0;
        }
        scanned += n;
        read->upto = recs[n - 1]->rev;
        at = read->upto + 1;
        r = filter_chunk(rd, read, recs, n, &cap);
        if (r < 0)
            return r;
        if (at > read->to)
            return 0;
    }
    return 0;
}

static int run_log_read(struct reader *rd, struct vg_log_read *read)
{
    vg_rev now = atomic_load_explicit(&rd->e->rev, memory_order_acquire);
    read->req.rev = now;
    read->to = VG_MIN(read->to, now);
    read->upto = read->from - 1;
    int r = begin(rd);
    if (r < 0)
        return r;
    if (read->from <= read->to)
        r = walk_log(rd, read);
    end(rd);
    vg_rev compacted = atomic_load_explicit(&rd->e->compacted, memory_order_acquire);
    if (read->from <= compacted)
        r = fail_compacted(&read->req, read->from, compacted);
    return r;
}

/* ---- the thread ---- */

static int serve(struct reader *rd, struct vg_store_req *req)
{
    int r;
    if (atomic_load(&rd->e->closing))
        return VIGIL_E_CLOSED;
    if (req->type == REQ_RANGE) {
        struct vg_range *range = VG_CONTAINER_OF(req, struct vg_range, req);
        r = run_range(rd, range);
        if (r < 0)
            vg_range_done(range);
        return r;
    }
    struct vg_log_read *read = VG_CONTAINER_OF(req, struct vg_log_read, req);
    r = run_log_read(rd, read);
    if (r < 0)
        vg_log_read_done(read);
    return r;
}

static void serve_all(struct reader *rd, struct vg_mail *list)
{
    while (list) {
        struct vg_store_req *req = VG_CONTAINER_OF(list, struct vg_store_req, mail);
        list = list->next;
        vg_storage_answer(req, serve(rd, req));
    }
}

void *vg_reader_main(void *engine)
{
    struct vg_engine *e = engine;
    struct reader rd = {.e = e, .view = e->reader_view};
    while (!atomic_load(&e->closing)) {
        serve_all(&rd, vg_mailbox_take_all(&e->reader.box));
        if (vg_mailbox_count(&e->reader.box) == 0 && !atomic_load(&e->closing))
            vg_waker_wait(&e->reader.waker, VG_WAIT_FOREVER);
    }
    serve_all(&rd, vg_mailbox_close(&e->reader.box));
    return NULL;
}
