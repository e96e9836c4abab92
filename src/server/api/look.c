/* look.c - see look.h. */
#include "look.h"

#include <errno.h>

#include "status_int.h"

static void on_range(struct vg_store_req *req)
{
    struct vg_look *l = VG_CONTAINER_OF(req, struct vg_look, range.req);
    l->is_in_flight = false;
    l->err = req->err;
    if (l->err == 0 && l->range.n_recs && !l->range.recs[0]->header_len)
        l->err = VIGIL_E_STORE_DAMAGED;
    if (l->err == 0 && l->range.n_recs)
        l->rec = vg_rec_ref(l->range.recs[0]);
    vg_range_done(&l->range);
    l->done(l);
}

static void read_storage(struct vg_look *l)
{
    l->range = (struct vg_range){
        .req = {.loop = l->call->loop->loop, .done = on_range},
        .keys = {.kind = VG_KEYS_ONE, .start = vg_obj_key_slice(&l->key)},
        .limit = 1,
    };
    l->is_in_flight = true;
    l->err = vg_storage_range(l->call->loop->api->storage, &l->range);
    if (l->err == 0)
        return;
    l->is_in_flight = false;
    l->done(l);
}

/* True: known from the cache. */
static bool look_in_cache(struct vg_look *l)
{
    struct vg_cacher *cacher = l->call->loop->api->cacher;
    struct vg_cache_snapshot snap;
    vg_rev newest;
    size_t index = vg_kind_index(l->kind);
    if (vg_cache_key_is_unreadable(cacher, index, vg_obj_key_slice(&l->key)) ||
        !vg_cache_knows_newest(cacher, &newest) || vg_cache_newest(cacher, index, &snap) < 0)
        return false;
    bool is_new = snap.rev >= newest;
    const struct vg_rec *rec =
        vg_root_get(snap.root, (struct vg_tree_key){.minor = vg_obj_key_slice(&l->key)});
    if (is_new && rec)
        l->rec = vg_rec_ref(rec);
    vg_cache_snapshot_done(&snap);
    return is_new;
}

void vg_look_start(struct vg_look *l)
{
    vg_look_release(l);
    l->err = 0;
    bool is_key = vg_obj_key_make(vg_slice_str(l->kind->prefix), l->ns, l->name, &l->key) == 0;
    if (!is_key || look_in_cache(l)) /* nothing can have such a name */
        l->done(l);
    else
        read_storage(l);
}

void vg_look_release(struct vg_look *l)
{
    l->rec = vg_rec_unref(l->rec);
}

int vg_look_tree(const struct vg_look *l, struct vg_json **ret, struct vg_api_status *ret_status)
{
    struct vg_arena *a = &l->call->ask->arena;
    struct vg_json_opts opts = {.scratch = &l->call->loop->scratch, .max_depth = VG_JSON_DEPTH_MAX};
    struct vg_obj_header h;
    int err = l->err;
    if (err == 0 && !l->rec) {
        vg_status_not_found(a, ret_status, l->kind, l->name);
        return VIGIL_E_NOT_FOUND;
    }
    if (err == 0)
        err = vg_obj_header_open(vg_rec_header(l->rec), vg_rec_value(l->rec), &h);
    struct vg_slice text;
    if (err == 0) /* a tree points into its text, and may outlive the record */
        err = vg_arena_keep(a, vg_rec_value(l->rec), &text);
    if (err == 0)
        err = vg_json_parse(a, text, &opts, ret, NULL);
    if (err < 0)
        vg_status_from_err(a, ret_status, err == -ENOMEM || l->err ? err : VIGIL_E_STORE_DAMAGED,
                           NULL);
    return err;
}

static void on_closed(struct vg_api_call *call, int err)
{
    struct vg_look *l = call->state;
    (void)err;
    if (l->is_in_flight)
        return;
    vg_look_release(l);
    vg_call_finish(call);
}

const struct vg_api_op vg_look_op = {.closed = on_closed};
