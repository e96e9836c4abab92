/* digest.c - is what the cache holds what storage holds? As kube-apiserver asks every few minutes.
 * A check takes the newest state of a kind and reads the keys of storage at the same revision, page
 * by page. Both sides come in key order, so the pairs of key and revision are compared one by one
 * as they come: nothing is collected, and a page is all that holds the feed loop. Compaction in
 * between makes a check void, not failed. Thread: the feed's. */
#include <errno.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cacher_int.h"

#define PAGE 1000
/* Every 5 minutes, and up to half as much more. */
#define PERIOD_NS (300 * VG_NS_PER_S)

struct digest {
    struct vg_cacher *c; /* reference */
    struct vg_watch_cache *wc;
    struct vg_cache_snapshot snapshot;
    struct vg_cursor cursor;
    struct vg_range range;
    struct vg_obj_key_range keys;
    void (*done)(void *arg, int err);
    void *arg;
};

static void finish(struct digest *g, int err)
{
    struct vg_cacher *c = g->c;
    if (err == 0 || err == VIGIL_E_CONFLICT) {
        vg_count(&c->digest_checks, 1);
        vg_count(&g->wc->digests, 1);
    }
    if (err == VIGIL_E_CONFLICT) {
        vg_count(&c->digest_failures, 1);
        vg_count(&g->wc->digest_failures, 1);
        vg_error(c->opts.log, "digest_differs", "kind=%s rev=%llu", g->wc->kind->name,
                 (unsigned long long)g->snapshot.rev);
    }
    g->done(g->arg, err);
    vg_range_done(&g->range);
    vg_cache_snapshot_done(&g->snapshot);
    vg_free(g);
    vg_cacher_unref(c);
}

static int compare_page(struct digest *g)
{
    for (size_t i = 0; i < g->range.n_recs; i++) {
        const struct vg_rec *stored = g->range.recs[i];
        if (vg_cache_key_is_unreadable(g->c, g->wc->index, vg_rec_key(stored)))
            continue;
        const struct vg_rec *cached = vg_cursor_next(&g->cursor);
        if (!cached || cached->rev != stored->rev ||
            !vg_slice_eq(vg_rec_key(cached), vg_rec_key(stored)))
            return VIGIL_E_CONFLICT;
    }
    if (g->range.more)
        return vg_obj_key_next(vg_rec_key(g->range.recs[g->range.n_recs - 1]), &g->keys.start);
    return vg_cursor_next(&g->cursor) ? VIGIL_E_CONFLICT : 0;
}

static int next_page(struct digest *g);

static void on_page(struct vg_store_req *req)
{
    struct digest *g =
        VG_CONTAINER_OF(VG_CONTAINER_OF(req, struct vg_range, req), struct digest, range);
    bool more = g->range.more;
    int err = req->err;
    if (g->c->is_closing)
        err = VIGIL_E_CLOSED;
    if (err == 0)
        err = compare_page(g);
    vg_range_done(&g->range);
    if (err == 0 && more) {
        err = next_page(g);
        if (err == 0)
            return;
    }
    finish(g, err);
}

static int next_page(struct digest *g)
{
    g->range = (struct vg_range){
        .req = {.loop = g->c->feed, .done = on_page},
        .keys = {.kind = VG_KEYS_SPAN,
                 .start = vg_obj_key_slice(&g->keys.start),
                 .end = vg_obj_key_slice(&g->keys.end)},
        .at = g->snapshot.rev,
        .limit = PAGE,
        .flags = VG_RANGE_KEYS_ONLY,
    };
    return vg_storage_range(g->c->opts.storage, &g->range);
}

int vg_cacher_check_digest(struct vg_cacher *c, size_t kind, void (*done)(void *arg, int err),
                           void *arg)
{
    struct digest *g = vg_new(struct digest);
    if (!g)
        return -ENOMEM;
    *g = (struct digest){.c = c, .wc = &c->kinds[kind], .done = done, .arg = arg};
    int err = vg_cache_newest(c, kind, &g->snapshot);
    if (err == 0)
        err = vg_obj_key_range(g->wc->prefix, vg_slice(NULL, 0), &g->keys);
    if (err == 0) {
        vg_root_first(&g->cursor, g->snapshot.root);
        err = next_page(g);
    }
    if (err < 0) {
        vg_cache_snapshot_done(&g->snapshot);
        vg_free(g);
        return err;
    }
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return 0;
}

/* ---- every few minutes ---- */

static void check_next(struct vg_cacher *c);

static void on_checked(void *arg, int err)
{
    (void)err; /* counted and logged */
    check_next(arg);
}

static void on_due(struct vg_timer *t)
{
    struct vg_cacher *c = VG_CONTAINER_OF(t, struct vg_cacher, digest);
    c->digest_kind = 0;
    check_next(c);
}

/* One kind after the other; those without a cache, and all while it is not ready, are passed over.
 */
static void check_next(struct vg_cacher *c)
{
    if (c->is_closing)
        return;
    while (c->digest_kind < c->n_kinds)
        if (vg_cacher_check_digest(c, c->digest_kind++, on_checked, c) == 0)
            return;
    vg_digest_start(c);
}

void vg_digest_start(struct vg_cacher *c)
{
    vg_timer_start(c->feed, &c->digest, PERIOD_NS + vg_rng_below(&c->rng, PERIOD_NS / 2), on_due);
}
