/* admit.c - may something be made in this namespace? It must be there and not be going away.
 * The cache answers, without storage, unless it may be behind in what counts: it does not know the
 * namespace, which can have been made a moment ago; or it has not yet seen our own last write of a
 * namespace, which may be the deletion of this one. So whoever was told that a namespace is going
 * away finds that nothing can be made in it. And it waits until the cache has seen what we last
 * wrote of that which the plugins of admission go by. */
#include <errno.h>

#include "admission.h"
#include "status_int.h"
#include "write.h"

struct waiting {
    struct vg_cache_wait wait;
    struct vg_admit *admit;
};

static void learn(struct vg_admit *a, const struct vg_rec *rec)
{
    struct vg_obj_header h;
    a->exists = rec != NULL;
    if (!rec)
        return;
    vg_obj_header_read(vg_rec_header(rec), vg_rec_value(rec), &h);
    a->is_terminating = vg_obj_is_deleting(&h);
}

static void on_range(struct vg_store_req *req)
{
    struct vg_admit *a = VG_CONTAINER_OF(req, struct vg_admit, range.req);
    a->is_in_flight = false;
    a->err = req->err;
    if (a->err == 0 && a->range.n_recs && !a->range.recs[0]->header_len)
        a->err = VIGIL_E_STORE_DAMAGED; /* it is there, but nobody knows in which state */
    if (a->err == 0)
        learn(a, a->range.n_recs ? a->range.recs[0] : NULL);
    vg_range_done(&a->range);
    a->done(a);
}

static void read_storage(struct vg_admit *a)
{
    a->range = (struct vg_range){
        .req = {.loop = a->call->loop->loop, .done = on_range},
        .keys = {.kind = VG_KEYS_ONE, .start = vg_obj_key_slice(&a->key)},
        .limit = 1,
    };
    a->is_in_flight = true;
    a->err = vg_storage_range(a->call->loop->api->storage, &a->range);
    if (a->err == 0)
        return;
    a->is_in_flight = false;
    a->done(a);
}

/* True: known from the cache. */
static bool look_in_cache(struct vg_admit *a, const struct vg_kind *namespaces)
{
    struct vg_api *api = a->call->loop->api;
    struct vg_cache_snapshot snap;
    vg_rev newest;
    bool knows = vg_cache_knows_newest(api->cacher, &newest);
    size_t index = vg_kind_index(namespaces);
    if (vg_cache_key_is_unreadable(api->cacher, index, vg_obj_key_slice(&a->key)) ||
        vg_cache_newest(api->cacher, index, &snap) < 0)
        return false;
    learn(a, vg_root_get(snap.root, (struct vg_tree_key){.minor = vg_obj_key_slice(&a->key)}));
    vg_rev own = atomic_load_explicit(&api->namespaces_rev, memory_order_acquire);
    bool is_known = a->exists ? snap.rev >= own : knows && snap.rev >= newest;
    vg_cache_snapshot_done(&snap);
    return is_known;
}

static void look_for_namespace(struct vg_admit *a)
{
    if (a->ns.n == 0) { /* of a kind without namespaces */
        a->exists = true;
        a->done(a);
        return;
    }
    const struct vg_kind *namespaces =
        vg_kind_find(VG_SLICE_LIT(""), VG_SLICE_LIT("v1"), VG_SLICE_LIT("namespaces"));
    bool is_key =
        vg_obj_key_make(vg_slice_str(namespaces->prefix), VG_SLICE_LIT(""), a->ns, &a->key) == 0;
    if (!is_key || look_in_cache(a, namespaces))
        a->done(a);
    else
        read_storage(a);
}

/* The cache has it, or takes too long: then the plugins go by what there is. */
static void on_fresh(struct vg_cache_wait *wait, int err)
{
    struct vg_admit *a = VG_CONTAINER_OF(wait, struct waiting, wait)->admit;
    (void)err;
    look_for_namespace(a);
}

void vg_admit_start(struct vg_admit *a)
{
    struct vg_api_loop *l = a->call->loop;
    vg_rev own = atomic_load_explicit(&l->api->admission->rev, memory_order_acquire);
    struct waiting *w = NULL;
    if (vg_cacher_revision(l->api->cacher) < own)
        w = vg_arena_new(&a->call->ask->arena, struct waiting);
    if (!w) {
        look_for_namespace(a);
        return;
    }
    memset(w, 0, sizeof *w);
    w->admit = a;
    vg_cache_wait_fresh(l->port, own, &w->wait, on_fresh);
}

int vg_admit_verdict(const struct vg_admit *a, const struct vg_kind *kind, struct vg_slice name,
                     struct vg_api_status *ret_status)
{
    struct vg_arena *arena = &a->call->ask->arena;
    if (a->err < 0) {
        vg_status_from_err(arena, ret_status, a->err, vg_err_text(a->err));
        return VIGIL_E_INVALID;
    }
    if (!a->exists) {
        vg_status_not_found(
            arena, ret_status,
            vg_kind_find(VG_SLICE_LIT(""), VG_SLICE_LIT("v1"), VG_SLICE_LIT("namespaces")), a->ns);
        return VIGIL_E_INVALID;
    }
    if (!a->is_terminating)
        return 0;
    struct vg_cause *cause = vg_arena_new(arena, struct vg_cause);
    vg_status_forbidden(arena, ret_status, kind, name,
                        "unable to create new content in namespace %.*s because it is being "
                        "terminated",
                        VG_SLICE_ARG(a->ns));
    if (!cause)
        return VIGIL_E_INVALID;
    *cause = (struct vg_cause){.reason = "NamespaceTerminating",
                               .field = VG_SLICE_LIT("metadata.namespace")};
    if (vg_arena_printf(arena, &cause->message, "namespace %.*s is being terminated",
                        VG_SLICE_ARG(a->ns)) == 0) {
        ret_status->causes = cause;
        ret_status->n_causes = 1;
    }
    return VIGIL_E_INVALID;
}
