/* get.c - GET of one object.
 *
 *   resourceVersion unset   the newest: the cache if it has come as far as storage, else storage
 *                   0       the cache, however old
 *                   N       the cache once it has come to N; 504 after 3 s
 *   cache not ready, or a kind without one: storage */
#include <errno.h>

#include "options.h"
#include "respond_int.h"
#include "status_int.h"
#include "write.h"

struct getter {
    struct vg_api_call *call;
    const struct vg_kind *kind;
    struct vg_obj_key key;
    vg_rev at_least;
    bool is_consistent;
    bool is_waiting, is_reading;
    struct vg_cache_wait wait;
    struct vg_range range;
    uint64_t asked_ns;
};

static struct vg_cacher *cacher(const struct getter *g)
{
    return g->call->loop->api->cacher;
}

/* ---- answers ---- */

static void refuse_err(struct getter *g, int err, const char *message)
{
    struct vg_api_status status;
    vg_status_from_err(&g->call->ask->arena, &status, err, message);
    vg_respond_status(g->call, &status);
}

static void refuse_unreadable(struct getter *g)
{
    struct vg_api_status status;
    vg_status_unreadable(&g->call->ask->arena, &status, vg_obj_key_slice(&g->key));
    vg_respond_status(g->call, &status);
}

static void answer(struct getter *g, const struct vg_rec *rec)
{
    struct vg_api_call *call = g->call;
    struct vg_api_status status;
    if (!rec) {
        vg_status_not_found(&call->ask->arena, &status, g->kind, call->ask->target->name);
        vg_respond_status(call, &status);
        return;
    }
    if (call->ask->target->sub && call->ask->target->sub->type == VG_SUB_SCALE)
        vg_scale_respond(call, 200, rec, rec->rev);
    else
        vg_respond_object(call, 200, rec, rec->rev);
}

static void refuse_too_large(struct getter *g, vg_rev current, bool with_retry)
{
    struct vg_api_status status;
    vg_status_too_large_rev(&g->call->ask->arena, &status, g->at_least, current, with_retry);
    vg_respond_status(g->call, &status);
}

/* ---- storage ---- */

static void on_range(struct vg_store_req *req)
{
    struct getter *g = VG_CONTAINER_OF(req, struct getter, range.req);
    struct vg_obj_header h;
    g->is_reading = false;
    const struct vg_api *api = g->call->loop->api;
    vg_api_count_storage(api->counters, vg_kind_index(g->kind), VG_STORAGE_GET,
                         vg_clock_mono_ns(api->clock) - g->asked_ns, req->err < 0);
    struct vg_rec *rec = req->err == 0 && g->range.n_recs ? g->range.recs[0] : NULL;
    if (g->call->is_closed || g->call->is_answered)
        vg_call_finish(g->call);
    else if (req->err < 0)
        refuse_err(g, req->err, req->status.message);
    else if (req->rev < g->at_least)
        refuse_too_large(g, req->rev, false);
    else if (rec && vg_obj_header_open(vg_rec_header(rec), vg_rec_value(rec), &h) < 0)
        refuse_unreadable(g);
    else
        answer(g, rec);
    vg_range_done(&g->range);
}

static void read_storage(struct getter *g)
{
    g->range = (struct vg_range){
        .req = {.loop = g->call->loop->loop, .done = on_range},
        .keys = {.kind = VG_KEYS_ONE, .start = vg_obj_key_slice(&g->key)},
        .flags = VG_RANGE_UNREADABLE,
    };
    g->is_reading = true;
    g->asked_ns = vg_clock_mono_ns(g->call->loop->api->clock);
    int r = vg_storage_range(g->call->loop->api->storage, &g->range);
    if (r < 0) {
        g->is_reading = false;
        refuse_err(g, r, NULL);
    }
}

/* ---- the cache ---- */

static void read_cache(struct getter *g);

static void on_fresh(struct vg_cache_wait *wait, int err)
{
    struct getter *g = VG_CONTAINER_OF(wait, struct getter, wait);
    g->is_waiting = false;
    if (g->call->is_answered)
        vg_call_finish(g->call);
    else if (err == 0)
        read_cache(g);
    else
        refuse_too_large(g, vg_cacher_revision(cacher(g)), true);
}

static void read_cache(struct getter *g)
{
    struct vg_cache_snapshot s;
    vg_rev wanted = g->at_least;
    if (g->is_consistent && !vg_cache_knows_newest(cacher(g), &wanted)) {
        read_storage(g);
        return;
    }
    size_t index = vg_kind_index(g->kind);
    if (vg_cache_key_is_unreadable(cacher(g), index, vg_obj_key_slice(&g->key)) ||
        vg_cache_newest(cacher(g), index, &s) < 0) {
        read_storage(g);
        return;
    }
    if (s.rev >= wanted) {
        struct vg_tree_key key = {.minor = vg_obj_key_slice(&g->key)};
        answer(g, vg_root_get(s.root, key));
    } else if (g->is_consistent) {
        read_storage(g);
    } else {
        g->is_waiting = true;
        vg_cache_wait_fresh(g->call->loop->port, wanted, &g->wait, on_fresh);
    }
    vg_cache_snapshot_done(&s);
}

/* ---- the request ---- */

static void on_closed(struct vg_api_call *call, int err)
{
    struct getter *g = call->state;
    (void)err;
    if (g->is_reading)
        return;
    if (g->is_waiting)
        vg_cache_wait_cancel(&g->wait);
    vg_call_finish(call);
}

static const struct vg_api_op get_op = {.closed = on_closed};

static int read_options(struct getter *g, struct vg_api_status *ret_status)
{
    struct vg_arena *a = &g->call->ask->arena;
    struct vg_slice rev = vg_query_get(g->call->ask->target, "resourceVersion"), why;
    if (vg_query_bool(g->call->ask->target, "export")) {
        vg_status_bad_request(
            a, ret_status, "the export parameter, deprecated since v1.14, is no longer supported");
        return VIGIL_E_INVALID;
    }
    g->is_consistent = vg_rev_is_unset(rev);
    if (g->is_consistent)
        return 0;
    int r = vg_rev_parse(a, rev, &g->at_least, &why);
    if (r == VIGIL_E_INVALID && vg_kind_is(g->kind, VG_KIND_UNCACHED))
        vg_status_bad_request(a, ret_status, "invalid resource version: %.*s", VG_SLICE_ARG(why));
    else if (r == VIGIL_E_INVALID)
        vg_status_unknown(a, ret_status, "%.*s", VG_SLICE_ARG(why));
    else if (r < 0)
        vg_status_no_memory(ret_status);
    return r;
}

void vg_api_get(struct vg_api_call *call)
{
    const struct vg_target *t = call->ask->target;
    struct vg_api_status status;
    if (vg_kind_is(t->kind, VG_KIND_NOT_STORED)) {
        vg_api_get_component(call);
        return;
    }
    struct getter *g = vg_call_new(call, struct getter);
    if (!g)
        return;
    g->call = call;
    g->kind = t->kind;
    if (read_options(g, &status) < 0) {
        vg_respond_status(call, &status);
        return;
    }
    call->state = g;
    call->op = &get_op;
    if (vg_obj_key_make(vg_slice_str(t->kind->prefix), t->ns, t->name, &g->key) < 0)
        answer(g, NULL); /* no object can have such a name */
    else
        read_cache(g);
}
