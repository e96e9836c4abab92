/* deletecollection.c - DELETE of a collection: what a list with these options shows is deleted, one
 * by one and not as a whole, some at a time so that they share a sync; the answer is that list.
 * What is gone already when its turn comes is fine. After another refusal no more are begun, and it
 * is the answer. When the client leaves, what has begun is finished and no more is.
 * Finding, deleting and answering each take a bounded part of a turn of the loop. */
#include <errno.h>

#include "base/alloc.h"
#include "delete.h"
#include "list_int.h"
#include "status_int.h"

/* Deletions under way at once: enough to share the syncs of storage, few enough that one call does
 * not fill its queue. */
#define AT_ONCE 32u
/* Deletions that are begun in one turn. A dry run is over within its beginning: some 10 us each. */
#define TURN_BEGINS 64u

struct collection {
    struct vg_api_call *call;
    const struct vg_kind *kind;
    struct vg_list_options list;
    struct vg_delete_opts opts;
    struct vg_cache_wait wait;
    struct vg_range range;
    struct vg_obj_key_range keys;
    struct vg_obj_key from;    /* a page begins here; empty: at the first */
    struct vg_list_hold *hold; /* those of the list, and the snapshot while it is walked */
    struct vg_cache_walk walk;
    struct vg_obj_key walk_key;
    vg_rev rev;
    bool is_asking; /* the cache or storage will call */
    struct vg_mail mail;
    void (*go_on)(struct collection *w); /* what the mail is for */
    bool is_posted;
    size_t next; /* whose turn it is */
    size_t under_way;
    bool is_running; /* run is on the stack */
    bool has_failed;
    struct vg_api_status status;
    struct vg_deletion slots[AT_ONCE];
    bool is_used[AT_ONCE];
};

static void run(struct collection *w);

static void run_posted(struct vg_mail *mail);

/* Call go_on on the next turn. */
static void post(struct collection *w, void (*go_on)(struct collection *w))
{
    w->go_on = go_on;
    w->is_posted = true;
    w->mail.run = run_posted;
    vg_loop_post(w->call->loop->loop, &w->mail);
}

static void clean(struct collection *w)
{
    vg_list_hold_unref(w->hold);
    w->hold = NULL;
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
    vg_status_from_err(&w->call->ask->arena, &w->status, err, message);
    refuse(w);
}

static void answer(struct collection *w)
{
    if (w->call->is_closed || w->has_failed)
        refuse(w);
    else
        vg_list_answer(w->call, vg_steal(w->hold), w->rev, &w->list);
}

static void run_posted(struct vg_mail *mail)
{
    struct collection *w = VG_CONTAINER_OF(mail, struct collection, mail);
    w->is_posted = false;
    if (!w->call->is_closed)
        w->go_on(w);
    else if (w->under_way == 0)
        refuse(w);
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
    if (!w->is_running && !w->is_posted)
        run(w);
}

static void begin_one(struct collection *w, size_t slot)
{
    struct vg_deletion *d = &w->slots[slot];
    const struct vg_rec *rec = w->hold->recs[w->next++];
    struct vg_obj_header h;
    vg_obj_header_read(vg_rec_header(rec), vg_rec_value(rec), &h);
    *d = (struct vg_deletion){.opts = w->opts, .done = on_deleted};
    w->is_used[slot] = true;
    w->under_way++;
    vg_deletion_start(d, w->call, w->kind, vg_obj_namespace(&h), vg_obj_name(&h));
}

static bool goes_on(const struct collection *w)
{
    return w->next < w->hold->n && !w->has_failed && !w->call->is_closed;
}

/* Begin as many as may be. A deletion may be over within its beginning; its slot is then used again
 * by this loop and not by a deeper one. */
static void run(struct collection *w)
{
    bool again = true;
    size_t begun = 0;
    w->is_running = true;
    while (again && begun < TURN_BEGINS) {
        again = false;
        for (size_t slot = 0; slot < AT_ONCE && begun < TURN_BEGINS; slot++) {
            if (w->is_used[slot] || !goes_on(w))
                continue;
            begin_one(w, slot);
            begun++;
            again = again || !w->is_used[slot];
        }
    }
    w->is_running = false;
    if (again && goes_on(w))
        post(w, run);
    else if (!goes_on(w) && w->under_way == 0)
        answer(w);
}

/* ---- the list ---- */

static int keep(struct collection *w, const struct vg_rec *rec)
{
    struct vg_list_hold *h = w->hold;
    if (vg_slice_cmp(vg_rec_key(rec), vg_obj_key_slice(&w->from)) < 0)
        return 0;
    if (h->n == h->room) {
        size_t room = h->room ? h->room * 2 : 64;
        struct vg_rec **recs = vg_reallocarray(h->recs, room, sizeof *recs);
        if (!recs)
            return -ENOMEM;
        h->recs = recs;
        h->room = room;
    }
    h->recs[h->n++] = vg_rec_ref(rec);
    return 0;
}

static bool is_full(const struct collection *w)
{
    return w->list.limit > 0 && w->hold->n >= (size_t)w->list.limit;
}

static void walk_cache(struct collection *w)
{
    uint32_t visits = VG_LIST_TURN_VISITS;
    const struct vg_rec *rec = NULL;
    int err = 0;
    while (err == 0 && !is_full(w) && (rec = vg_cache_walk_some(&w->walk, &visits)))
        err = keep(w, rec);
    if (err < 0) {
        fail(w, err, vg_err_text(err));
    } else if (!is_full(w) && visits == 0) {
        post(w, walk_cache);
    } else {
        vg_cache_snapshot_done(&w->hold->snapshot);
        run(w);
    }
}

static void list_cache(struct collection *w)
{
    struct vg_cacher *cacher = w->call->loop->api->cacher;
    struct vg_cache_snapshot *s = &w->hold->snapshot;
    size_t index = vg_kind_index(w->kind);
    if (vg_api_is_unreadable(w->call, index, w->list.predicate, &w->status)) {
        refuse(w);
        return;
    }
    int err = vg_cache_newest(cacher, index, s);
    if (err < 0) {
        fail(w, err, vg_err_text(err));
        return;
    }
    w->rev = s->rev;
    vg_cache_walk_init(&w->walk, cacher, index, s, w->list.predicate, VG_SLICE_LIT(""),
                       &w->walk_key);
    walk_cache(w);
}

static void list_storage(struct collection *w);

static int keep_matching(struct collection *w)
{
    int err = 0;
    for (size_t i = 0; err == 0 && i < w->range.n_recs && !is_full(w); i++) {
        const struct vg_rec *rec = w->range.recs[i];
        struct vg_obj_header h;
        if (vg_obj_header_open(vg_rec_header(rec), vg_rec_value(rec), &h) < 0) {
            vg_status_unreadable(&w->call->ask->arena, &w->status, vg_rec_key(rec));
            err = VIGIL_E_STORE_DAMAGED;
        } else if (vg_obj_predicate_matches(w->list.predicate, &h))
            err = keep(w, rec);
    }
    if (err == 0 && w->range.n_recs)
        err = vg_obj_key_next(vg_rec_key(w->range.recs[w->range.n_recs - 1]), &w->keys.start);
    return err;
}

static void on_range(struct vg_store_req *req)
{
    struct collection *w = VG_CONTAINER_OF(req, struct collection, range.req);
    bool has_more = w->range.more;
    int err = req->err;
    w->is_asking = false;
    if (w->rev == 0)
        w->rev = req->rev;
    if (err == 0 && !w->call->is_closed)
        err = keep_matching(w);
    vg_range_done(&w->range);
    if (err < 0 && w->status.code == 0)
        fail(w, err, vg_err_text(err));
    else if (err < 0 || w->call->is_closed)
        refuse(w);
    else if (has_more && !is_full(w))
        list_storage(w);
    else
        run(w);
}

/* The next page. The first one says which revision the others are of. */
static void list_storage(struct collection *w)
{
    w->range = (struct vg_range){
        .req = {.loop = w->call->loop->loop, .done = on_range},
        .keys = {.kind = VG_KEYS_SPAN,
                 .start = vg_obj_key_slice(&w->keys.start),
                 .end = vg_obj_key_slice(&w->keys.end)},
        .at = w->rev,
        .limit = VG_LIST_STORAGE_PAGE,
        .flags = VG_RANGE_UNREADABLE,
    };
    w->is_asking = true;
    int err = vg_storage_range(w->call->loop->api->storage, &w->range);
    if (err < 0) {
        w->is_asking = false;
        fail(w, err, vg_err_text(err));
    }
}

static void begin_storage(struct collection *w)
{
    int err = vg_obj_key_range(vg_slice_str(w->kind->prefix), w->call->ask->target->ns, &w->keys);
    if (err < 0)
        fail(w, err, vg_err_text(err));
    else
        list_storage(w);
}

static void on_fresh(struct vg_cache_wait *wait, int err)
{
    struct collection *w = VG_CONTAINER_OF(wait, struct collection, wait);
    w->is_asking = false;
    if (w->call->is_closed)
        refuse(w);
    else if (err < 0)
        begin_storage(w);
    else
        list_cache(w);
}

/* ---- the verb ---- */

static void on_closed(struct vg_api_call *call, int err)
{
    struct collection *w = call->state;
    (void)err;
    if (!w->is_asking && !w->is_posted && w->under_way == 0)
        refuse(w);
}
static const struct vg_api_op op = {.closed = on_closed};

static int read_page(struct collection *w)
{
    struct vg_continue token;
    struct vg_slice why, root;
    struct vg_arena *a = &w->call->ask->arena;
    if (w->list.continue_token.n == 0)
        return 0;
    if (vg_obj_key_range(vg_slice_str(w->kind->prefix), w->call->ask->target->ns, &w->keys) < 0)
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
    struct collection *w = vg_call_new(call, struct collection);
    if (!w)
        return;
    w->call = call;
    w->kind = call->ask->target->kind;
    int err = vg_list_options_parse(call->ask->target, &call->ask->arena, &w->list, &w->status);
    if (err == 0)
        err = vg_delete_opts_read(call, &w->opts, &w->status);
    if (err == 0)
        err = read_page(w);
    if (err == 0 && !(w->hold = vg_list_hold_new())) {
        vg_status_no_memory(&w->status);
        err = -ENOMEM;
    }
    if (err < 0) {
        refuse(w);
        return;
    }
    call->state = w;
    call->op = &op;
    struct vg_api *api = call->loop->api;
    if (vg_kind_is(w->kind, VG_KIND_UNCACHED) || !vg_cacher_is_ready(api->cacher)) {
        begin_storage(w);
        return;
    }
    w->is_asking = true;
    vg_cache_wait_consistent(call->loop->port, &w->wait, on_fresh);
}
