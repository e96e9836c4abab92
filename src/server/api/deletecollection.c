/* deletecollection.c - DELETE of a collection: what a list with these options shows is deleted, one
 * by one and not as a whole, some at a time so that they share a sync; the answer is that list.
 * What is gone already when its turn comes is fine. After another refusal no more are begun, and it
 * is the answer. When the client leaves, what has begun is finished and no more is. */
#include <errno.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "continue.h"
#include "delete.h"
#include "options.h"
#include "respond_int.h"
#include "status_int.h"

/* Deletions under way at once: enough to share the syncs of storage, few enough that one call does
 * not fill its queue. */
#define AT_ONCE 32u

struct collection {
    struct vg_api_call *call;
    const struct vg_kind *kind;
    struct vg_list_options list;
    struct vg_delete_opts opts;
    struct vg_cache_wait wait;
    struct vg_range range;
    struct vg_obj_key_range keys;
    struct vg_obj_key from; /* a page begins here; empty: at the first */
    struct vg_rec **recs;   /* those of the list, with references */
    size_t n, room;
    vg_rev rev;
    bool is_asking; /* the list is not there yet */
    size_t next;    /* whose turn it is */
    size_t under_way;
    bool is_running; /* run is on the stack */
    bool has_failed;
    struct vg_api_status status;
    struct vg_deletion slots[AT_ONCE];
    bool is_used[AT_ONCE];
};

static void run(struct collection *w);

static void clean(struct collection *w)
{
    for (size_t i = 0; i < w->n; i++)
        vg_rec_unref(w->recs[i]);
    vg_free(w->recs);
    w->recs = NULL;
    w->n = 0;
    vg_list_options_done(&w->list);
}

static void refuse(struct collection *w)
{
    if (w->call->is_closed)
        vg_call_finish(w->call);
    else
        vg_respond_status(w->call, &w->status);
    clean(w);
}

static void fail(struct collection *w, int err, const char *message)
{
    vg_status_from_err(&w->call->arena, &w->status, err, message);
    refuse(w);
}

/* ---- the answer ---- */

static int put_item(const struct collection *w, struct vg_buf *out, const struct vg_rec *rec)
{
    const struct vg_media *m = &w->call->media;
    struct vg_obj_header h;
    struct vg_obj_splice s;
    vg_obj_header_read(vg_rec_header(rec), vg_rec_value(rec), &h);
    if (m->transform == VG_AS_PARTIAL)
        vg_partial_splice(&s, &h, rec->rev, m->is_v1beta1);
    else
        vg_obj_splice_item(&s, &h, rec->rev);
    return vg_obj_splice_append(out, &s);
}

static int put_list(const struct collection *w, struct vg_buf *out)
{
    const struct vg_media *m = &w->call->media;
    bool is_partial = m->transform == VG_AS_PARTIAL;
    const char *meta = m->is_v1beta1 ? "meta.k8s.io/v1beta1" : "meta.k8s.io/v1";
    int err = vg_buf_printf(out,
                            "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{"
                            "\"resourceVersion\":\"%" PRIu64 "\"},\"items\":[",
                            is_partial ? "PartialObjectMetadataList" : w->kind->list_kind,
                            is_partial ? meta : vg_kind_api_version(w->kind), w->rev);
    for (size_t i = 0; i < w->n && err == 0; i++) {
        if (i)
            err = vg_buf_append_byte(out, ',');
        if (err == 0)
            err = put_item(w, out, w->recs[i]);
    }
    return err < 0 ? err : vg_buf_append(out, "]}", 2);
}

static void answer(struct collection *w)
{
    struct vg_buf json = {0};
    if (w->call->is_closed || w->has_failed) {
        refuse(w);
        return;
    }
    int err = put_list(w, &json);
    if (err < 0) {
        vg_buf_done(&json);
        fail(w, err, vg_err_text(err));
        return;
    }
    vg_respond_json(w->call, 200, &json);
    clean(w);
}

/* ---- deleting ---- */

static void on_deleted(struct vg_deletion *d)
{
    struct vg_change *c = &d->change;
    struct collection *w = c->call->state;
    bool is_refused = c->verdict == VG_CHANGE_FAIL && !c->call->is_closed && c->status.code != 404;
    if (is_refused && !w->has_failed) {
        w->has_failed = true;
        w->status = c->status;
    }
    vg_change_release(c);
    w->is_used[d - w->slots] = false;
    w->under_way--;
    if (!w->is_running)
        run(w);
}

static void begin_one(struct collection *w, size_t slot)
{
    struct vg_deletion *d = &w->slots[slot];
    const struct vg_rec *rec = w->recs[w->next++];
    struct vg_obj_header h;
    vg_obj_header_read(vg_rec_header(rec), vg_rec_value(rec), &h);
    *d = (struct vg_deletion){.opts = w->opts, .done = on_deleted};
    w->is_used[slot] = true;
    w->under_way++;
    vg_deletion_start(d, w->call, w->kind, vg_obj_namespace(&h), vg_obj_name(&h));
}

/* Begin as many as may be. A deletion may be over within its beginning; its slot is then used again
 * by this loop and not by a deeper one. */
static void run(struct collection *w)
{
    bool again = true;
    w->is_running = true;
    while (again) {
        again = false;
        for (size_t slot = 0; slot < AT_ONCE; slot++) {
            bool goes_on = w->next < w->n && !w->has_failed && !w->call->is_closed;
            if (!goes_on || w->is_used[slot])
                continue;
            begin_one(w, slot);
            again = again || !w->is_used[slot];
        }
    }
    w->is_running = false;
    bool is_over = w->next >= w->n || w->has_failed || w->call->is_closed;
    if (is_over && w->under_way == 0 && w->recs)
        answer(w);
}

/* ---- the list ---- */

static int keep(struct collection *w, const struct vg_rec *rec)
{
    if (w->n == w->room) {
        size_t room = w->room ? w->room * 2 : 64;
        struct vg_rec **recs = vg_reallocarray(w->recs, room, sizeof *recs);
        if (!recs)
            return -ENOMEM;
        w->recs = recs;
        w->room = room;
    }
    w->recs[w->n++] = vg_rec_ref(rec);
    return 0;
}

static bool is_full(const struct collection *w)
{
    return w->list.limit > 0 && w->n >= (size_t)w->list.limit;
}

static int keep_from(struct collection *w, const struct vg_rec *rec)
{
    bool is_before = vg_slice_cmp(vg_rec_key(rec), vg_obj_key_slice(&w->from)) < 0;
    return is_before ? 0 : keep(w, rec);
}

static void start(struct collection *w, int err)
{
    if (err == 0 && !w->recs) /* nothing to delete is an answer too */
        err = (w->recs = vg_malloc(sizeof *w->recs)) ? 0 : -ENOMEM;
    if (err < 0)
        fail(w, err, vg_err_text(err));
    else
        run(w);
}

static void list_cache(struct collection *w)
{
    struct vg_cacher *cacher = w->call->loop->api->cacher;
    struct vg_cache_snapshot snap;
    struct vg_cache_walk walk;
    struct vg_obj_key key_buf;
    const struct vg_rec *rec;
    size_t index = vg_kind_index(w->kind);
    int err = vg_cache_newest(cacher, index, &snap);
    if (err < 0) {
        fail(w, err, vg_err_text(err));
        return;
    }
    vg_cache_walk_init(&walk, cacher, index, &snap, w->list.predicate, VG_SLICE_LIT(""), &key_buf);
    while (err == 0 && !is_full(w) && (rec = vg_cache_walk_next(&walk)))
        err = keep_from(w, rec);
    w->rev = snap.rev;
    vg_cache_snapshot_done(&snap);
    start(w, err);
}

static void on_range(struct vg_store_req *req)
{
    struct collection *w = VG_CONTAINER_OF(req, struct collection, range.req);
    int err = req->err;
    w->is_asking = false;
    w->rev = req->rev;
    for (size_t i = 0; err == 0 && !w->call->is_closed && i < w->range.n_recs && !is_full(w); i++) {
        const struct vg_rec *rec = w->range.recs[i];
        struct vg_obj_header h;
        vg_obj_header_read(vg_rec_header(rec), vg_rec_value(rec), &h);
        if (vg_obj_predicate_matches(w->list.predicate, &h))
            err = keep_from(w, rec);
    }
    vg_range_done(&w->range);
    start(w, err);
}

static void list_storage(struct collection *w)
{
    struct vg_slice prefix = vg_slice_str(w->kind->prefix);
    int err = vg_obj_key_range(prefix, w->call->target->ns, &w->keys);
    w->range = (struct vg_range){
        .req = {.loop = w->call->loop->loop, .done = on_range},
        .keys = {.kind = VG_KEYS_SPAN,
                 .start = vg_obj_key_slice(&w->keys.start),
                 .end = vg_obj_key_slice(&w->keys.end)},
    };
    w->is_asking = true;
    if (err == 0)
        err = vg_storage_range(w->call->loop->api->storage, &w->range);
    if (err < 0) {
        w->is_asking = false;
        fail(w, err, vg_err_text(err));
    }
}

static void on_fresh(struct vg_cache_wait *wait, int err)
{
    struct collection *w = VG_CONTAINER_OF(wait, struct collection, wait);
    w->is_asking = false;
    if (w->call->is_closed)
        refuse(w);
    else if (err < 0)
        list_storage(w);
    else
        list_cache(w);
}

/* ---- the verb ---- */

static void on_closed(struct vg_api_call *call, int err)
{
    struct collection *w = call->state;
    (void)err;
    if (!w->is_asking && w->under_way == 0)
        refuse(w);
}
static const struct vg_api_op op = {.closed = on_closed};

static int read_page(struct collection *w)
{
    struct vg_continue token;
    struct vg_slice why, root;
    struct vg_arena *a = &w->call->arena;
    if (w->list.continue_token.n == 0)
        return 0;
    if (vg_obj_key_range(vg_slice_str(w->kind->prefix), w->call->target->ns, &w->keys) < 0)
        return 0;
    root = vg_obj_key_slice(&w->keys.start);
    int err = vg_continue_decode(a, w->list.continue_token, root, &token, &why);
    if (err == 0)
        w->from = token.start;
    else if (err == VIGIL_E_INVALID)
        vg_status_bad_request(a, &w->status, "invalid continue token: %.*s", VG_SLICE_ARG(why));
    else
        vg_status_no_memory(&w->status);
    return err;
}

void vg_api_deletecollection(struct vg_api_call *call)
{
    struct vg_api_status status;
    struct collection *w = vg_arena_new(&call->arena, struct collection);
    if (!w) {
        vg_status_no_memory(&status);
        vg_respond_status(call, &status);
        return;
    }
    memset(w, 0, sizeof *w);
    w->call = call;
    w->kind = call->target->kind;
    int err = vg_list_options_parse(call->target, &call->arena, &w->list, &w->status);
    if (err == 0)
        err = vg_delete_opts_read(call, &w->opts, &w->status);
    if (err == 0)
        err = read_page(w);
    if (err < 0) {
        refuse(w);
        return;
    }
    call->state = w;
    call->op = &op;
    struct vg_api *api = call->loop->api;
    if (vg_kind_is(w->kind, VG_KIND_UNCACHED) || !vg_cacher_is_ready(api->cacher)) {
        list_storage(w);
        return;
    }
    w->is_asking = true;
    vg_cache_wait_fresh(call->loop->port, vg_cache_consistent_rev(api->cacher), &w->wait, on_fresh);
}
