/* feed.c - the server-side reflector: lists from storage, then follows one storage watch for all
 * kinds. It runs on the feed loop, which alone changes trees and history.
 *
 * FILLING    watches from the oldest revision that the window allows; what comes up to the revision
 *            of the start fills the hot tail
 *   | on_batch() reaches ready_rev
 * LISTING    pages through everything at the revision that it came to; what came is not read again
 *   | on_page(), last page: trees are loaded, the cache is ready, and watchers from before a
 *   | restart continue
 * FOLLOWING  applies each batch of storage and publishes it
 *   | on_end(), the place is kept:      WAITING, then watches again from there; nobody notices
 *   | on_end(), compacted, damaged, or no memory: lose(): watchers end, WAITING, then FILLING
 * WAITING    for a second
 * CLOSED
 *
 * What a batch does to trees and history is in apply.c. */
#include <errno.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cacher_int.h"

/* Small enough that little is left to do when the last one comes. */
#define PAGE 2048
#define RETRY_NS (1 * VG_NS_PER_S)
#define UPKEEP_NS (1 * VG_NS_PER_S)
/* Tree nodes and records freed in one turn of the feed. */
#define RECLAIM_STEPS 4096

static void begin(struct vg_cacher *c);
static void start_listing(struct vg_cacher *c);
static void lose(struct vg_cacher *c, int err);

static void set_ready(struct vg_cacher *c, bool is_ready)
{
    if (atomic_exchange(&c->is_ready, is_ready) == is_ready)
        return;
    if (!is_ready)
        atomic_store(&c->down_since_ns, vg_cacher_now_ns(c));
    vg_debug(c->opts.log, "cache_ready", "ready=%d", is_ready);
}

/* The trees are loaded, or it is given up. */
static void forget_known(struct vg_cacher *c)
{
    vg_known_free(c->known);
    c->known = NULL;
}

static void on_batch(struct vg_watch *w, const struct vg_watch_batch *in, void *arg)
{
    struct vg_cacher *c = arg;
    struct vg_cache_batch *b = NULL;
    int r = vg_apply_batch(c, in, &b);
    if (r < 0) {
        vg_watch_cancel(w);
        c->watch = NULL;
        lose(c, r);
        return;
    }
    vg_count(&c->progress, in->n == 0);
    vg_publish_batch(c, b, in->rev);
    if (c->state == FEED_FILLING && in->rev >= c->ready_rev) {
        vg_watch_cancel(w);
        c->watch = NULL;
        start_listing(c);
    }
}

/* ---- losing the place ---- */

static void on_retry(struct vg_timer *t)
{
    begin(VG_CONTAINER_OF(t, struct vg_cacher, retry));
}

static void wait_and_retry(struct vg_cacher *c)
{
    if (c->is_closing)
        return;
    c->state = FEED_WAITING;
    vg_timer_start(c->feed, &c->retry, RETRY_NS, on_retry);
}

/* Continuity is lost: what happened meanwhile cannot be told. Watchers end and list anew. */
static void lose(struct vg_cacher *c, int err)
{
    set_ready(c, false);
    forget_known(c);
    vg_count(&c->relists, 1);
    vg_warn(c->opts.log, "continuity_lost", "err=%s", vg_err_name(err));
    struct vg_cache_batch *b = vg_cache_batch_new(0);
    if (b) {
        b->is_reset = true;
        vg_publish_batch(c, b, vg_cacher_revision(c));
    } else {
        c->owes_reset = true;
    }
    wait_and_retry(c);
}

static void on_end(struct vg_watch *w, int err, vg_rev compact_rev, void *arg)
{
    struct vg_cacher *c = arg;
    (void)w;
    (void)compact_rev;
    c->watch = NULL;
    if (c->is_closing) {
        vg_feed_stop(c);
        return;
    }
    /* A change that does not read back, and nobody knows of which key: the state can be listed, but
     * not what led to it. */
    c->skips_history |= err == VIGIL_E_STORE_DAMAGED;
    if (err == VIGIL_E_COMPACTED || err == VIGIL_E_STORE_DAMAGED)
        lose(c, err);
    else
        wait_and_retry(c); /* the place is known: storage may answer again */
}

/* ---- following ---- */

static void follow(struct vg_cacher *c, vg_rev after)
{
    bool is_filling = c->state == FEED_FILLING;
    struct vg_watch_opts o = {
        .loop = c->feed,
        .keys = {.kind = VG_KEYS_FROM},
        .from = after + 1,
        .progress = true,
        .no_prev = !is_filling, /* the trees have it */
        .prev_below = is_filling ? c->oldest_rev + 1 : 0,
        .unreadable = true,
        .on_batch = on_batch,
        .on_end = on_end,
        .arg = c,
    };
    int r = vg_storage_watch(c->opts.storage, &o, &c->watch);
    if (r < 0) {
        wait_and_retry(c);
        return;
    }
    if (is_filling)
        vg_watch_progress(c->watch); /* also when nothing happened since */
    else
        vg_count(&c->resumes, 1);
}

/* ---- listing ---- */

static void drop_listed(struct vg_cacher *c)
{
    assert(c->listed || c->n_listed == 0);
    for (size_t i = 0; i < c->n_listed; i++) {
        if (i + VG_FETCH_AHEAD < c->n_listed)
            __builtin_prefetch(c->listed[i + VG_FETCH_AHEAD], 1);
        vg_rec_unref(c->listed[i]);
    }
    c->n_listed = 0;
    for (size_t i = 0; i < c->n_kinds; i++)
        c->kinds[i].n_listed = c->kinds[i].listed_bytes = 0;
}

static int keep_listed(struct vg_watch_cache *wc, struct vg_rec *take_rec)
{
    struct vg_cacher *c = wc->c;
    if (c->n_listed == c->listed_cap) {
        size_t cap = c->listed_cap ? c->listed_cap * 2 : 1024;
        struct vg_rec **v = vg_reallocarray(c->listed, cap, sizeof *v);
        if (!v) {
            vg_rec_unref(take_rec);
            return -ENOMEM;
        }
        c->listed = v;
        c->listed_cap = cap;
    }
    c->listed[c->n_listed++] = take_rec;
    wc->n_listed++;
    wc->listed_bytes += take_rec->value_len;
    return 0;
}

/* Replace the trees of a kind by what was listed. */
static int load_kind(struct vg_watch_cache *wc, struct vg_rec **recs, size_t n)
{
    struct vg_index_load index = {.index = wc->by_trigger, .recs = recs, .n = n};
    if (wc->by_trigger)
        vg_index_load_begin(&index);
    int r = vg_tree_replace(wc->tree, (const struct vg_rec *const *)recs, n);
    if (r == 0)
        atomic_store_explicit(&wc->object_bytes, wc->listed_bytes, memory_order_relaxed);
    int err = wc->by_trigger ? vg_index_load_finish(&index) : 0;
    return r < 0 ? r : err;
}

/* What was listed is in key order: each kind is one run. */
static int finish_list(struct vg_cacher *c)
{
    size_t at = 0;
    for (size_t k = 0; k < c->n_kinds; k++) {
        struct vg_watch_cache *wc = c->by_prefix[k];
        if (wc->kind->is_uncached)
            continue;
        struct vg_rec **run = c->listed ? c->listed + at : NULL;
        int r = load_kind(wc, run, wc->n_listed);
        if (r == 0)
            r = vg_publish_kind(wc, c->list_rev);
        if (r < 0)
            return r;
        at += wc->n_listed;
    }
    drop_listed(c);
    vg_free(c->listed);
    c->listed = NULL;
    c->listed_cap = 0;
    return 0;
}

/* Is it known? Not every engine hands out what is: then it is exchanged. */
static bool is_known(const struct vg_cacher *c, struct vg_rec **rec)
{
    const struct vg_rec *known = vg_known_at(c->known, (*rec)->rev);
    if (known == *rec)
        return true;
    known = known ? vg_known_find(c->known, (*rec)->rev, vg_rec_key(*rec)) : NULL;
    if (known) {
        vg_rec_unref(*rec);
        *rec = vg_rec_ref(known);
    }
    return known != NULL;
}

static int take_page(struct vg_cacher *c, struct vg_range *page)
{
    struct vg_watch_cache *wc = NULL;
    bool was_known = false;
    int r = 0;
    for (size_t i = 0; i < page->n_recs; i++) {
        if (i + VG_FETCH_AHEAD < page->n_recs && was_known)
            vg_rec_fetch(page->recs[i + VG_FETCH_AHEAD]);
        else if (i + VG_FETCH_AHEAD < page->n_recs)
            vg_rec_fetch_open(page->recs[i + VG_FETCH_AHEAD]);
        struct vg_rec *rec = vg_steal(page->recs[i]);
        struct vg_obj_header h;
        was_known = is_known(c, &rec);
        wc = vg_cacher_kind_like(c, vg_rec_key(rec), wc);
        bool is_ours = r == 0 && wc && !wc->kind->is_uncached;
        if (is_ours && (was_known || vg_rec_open(rec, &h))) {
            r = keep_listed(wc, rec);
            continue;
        }
        if (is_ours)
            r = vg_unreadable_note(wc, vg_rec_key(rec));
        vg_rec_unref(rec);
    }
    return r;
}

static void start_following(struct vg_cacher *c)
{
    struct vg_cache_batch *b = vg_cache_batch_new(0);
    int r = b ? finish_list(c) : -ENOMEM;
    if (r < 0) {
        if (b)
            vg_cache_batch_free(&b->tail);
        drop_listed(c);
        lose(c, r);
        return;
    }
    c->state = FEED_FOLLOWING;
    c->skips_history = false;
    c->told_err = 0;
    set_ready(c, true);
    vg_publish_batch(c, b, c->list_rev); /* wakes who waits for it: vg_cache_wait_ready */
    forget_known(c);
    follow(c, c->list_rev);
}

/* Without a list nothing is served: what is in the way is told, once. */
static void stop_listing(struct vg_cacher *c, int err, const char *why)
{
    if (c->told_err != err)
        vg_error(c->opts.log, "list_failed", "err=%s why=\"%s\" retry_s=1", vg_err_name(err), why);
    c->told_err = err;
    drop_listed(c);
    forget_known(c);
    wait_and_retry(c);
}

static void on_page(struct vg_store_req *req);

static int ask_page(struct vg_cacher *c)
{
    c->list = (struct vg_range){
        .req = {.loop = c->feed, .done = on_page},
        .keys = {.kind = VG_KEYS_FROM, .start = vg_obj_key_slice(&c->after)},
        .at = c->list_rev,
        .limit = PAGE,
        .flags = VG_RANGE_UNREADABLE,
        .known = c->known,
    };
    int r = vg_storage_range(c->opts.storage, &c->list);
    c->is_listing = r == 0;
    return r;
}

/* Storage reads the page that follows while this one is taken. */
static int ask_page_after(struct vg_cacher *c, const struct vg_range *page)
{
    if (!page->more || !page->n_recs)
        return 0;
    int r = vg_obj_key_next(vg_rec_key(page->recs[page->n_recs - 1]), &c->after);
    return r < 0 ? r : ask_page(c);
}

static void on_page(struct vg_store_req *req)
{
    struct vg_range page = *VG_CONTAINER_OF(req, struct vg_range, req);
    struct vg_cacher *c =
        VG_CONTAINER_OF(VG_CONTAINER_OF(req, struct vg_range, req), struct vg_cacher, list);
    c->is_listing = false;
    int r = c->list_err ? c->list_err : page.req.err;
    c->list_err = 0;
    if (r == 0 && !c->is_closing)
        r = ask_page_after(c, &page);
    if (r == 0 && !c->is_closing)
        r = take_page(c, &page);
    vg_range_done(&page);
    if (c->is_closing)
        vg_feed_stop(c);
    else if (c->is_listing)
        c->list_err = r;
    else if (r < 0)
        stop_listing(c, r, page.req.err == r ? page.req.status.message : vg_err_text(r));
    else
        start_following(c);
}

static void start_listing(struct vg_cacher *c)
{
    c->state = FEED_LISTING;
    c->list_rev = vg_cacher_revision(c);
    c->after.n = 0;
    int r = ask_page(c);
    if (r < 0)
        stop_listing(c, r, vg_err_text(r));
}

/* ---- filling ---- */

/* The oldest revision that can be read and that the window may want: from there on, everything that
 * happened is read back into the hot tail. */
static vg_rev oldest_wanted(struct vg_cacher *c, vg_rev now)
{
    vg_rev compacted = vg_storage_compacted(c->opts.storage);
    if (c->skips_history)
        return now;
    vg_rev wanted = now > c->opts.refill_max ? now - c->opts.refill_max : VG_REV_EMPTY;
    return VG_MAX(VG_MAX(wanted, compacted), VG_REV_EMPTY);
}

static int restart_kind(struct vg_watch_cache *wc)
{
    vg_unreadable_clear(wc);
    vg_mutex_lock(&wc->mu);
    int r = vg_history_restart(&wc->history, wc->c->oldest_rev);
    wc->published = wc->history.next;
    wc->life++;
    vg_mutex_unlock(&wc->mu);
    return r;
}

static int restart_all(struct vg_cacher *c)
{
    int r = 0;
    c->ready_rev = vg_storage_revision(c->opts.storage);
    c->oldest_rev = oldest_wanted(c, c->ready_rev);
    for (size_t i = 0; r == 0 && i < c->n_kinds; i++)
        r = restart_kind(&c->kinds[i]);
    c->known = r == 0 ? vg_known_new(c->oldest_rev, c->ready_rev) : NULL;
    return c->known ? 0 : -ENOMEM;
}

static void start_filling(struct vg_cacher *c)
{
    struct vg_cache_batch *b = vg_cache_batch_new(0);
    int r = b ? restart_all(c) : -ENOMEM;
    if (r < 0) {
        vg_free(b);
        wait_and_retry(c);
        return;
    }
    b->is_reset = c->owes_reset;
    c->owes_reset = false;
    vg_publish_batch(c, b, c->oldest_rev);
    c->state = FEED_FILLING;
    follow(c, c->oldest_rev);
}

static void begin(struct vg_cacher *c)
{
    if (!c->known && !vg_cacher_is_ready(c)) {
        start_filling(c);
        return;
    }
    c->state = c->known ? FEED_FILLING : FEED_FOLLOWING;
    follow(c, vg_cacher_revision(c)); /* the place is known */
}

/* ---- upkeep ---- */

/* True: something is left. */
static bool reclaim_kind(struct vg_watch_cache *wc)
{
    (void)atomic_exchange(&wc->has_dead, false);
    bool more = vg_tree_reclaim(wc->tree, RECLAIM_STEPS);
    if (wc->by_trigger)
        more |= vg_tree_reclaim(wc->by_trigger, RECLAIM_STEPS);
    if (more)
        atomic_store(&wc->has_dead, true);
    return more;
}

static void on_reclaim(struct vg_mail *mail)
{
    struct vg_cacher *c = VG_CONTAINER_OF(mail, struct vg_cacher, reclaim_mail);
    atomic_store(&c->reclaim_posted, false);
    bool more = false;
    for (size_t i = 0; i < c->n_kinds; i++)
        if (atomic_load(&c->kinds[i].has_dead))
            more |= reclaim_kind(&c->kinds[i]);
    if (more && !c->is_closing && !atomic_exchange(&c->reclaim_posted, true))
        vg_loop_post(c->feed, &c->reclaim_mail); /* keeps the mail's reference */
    else
        vg_cacher_unref(c);
}

/* The window moves on also when nothing happens. */
static void on_upkeep(struct vg_timer *t)
{
    struct vg_cacher *c = VG_CONTAINER_OF(t, struct vg_cacher, upkeep);
    int64_t now_ms = (int64_t)(vg_cacher_now_ns(c) / VG_NS_PER_MS);
    for (size_t i = 0; i < c->n_kinds; i++) {
        vg_mutex_lock(&c->kinds[i].mu);
        vg_history_evict(&c->kinds[i].history, now_ms);
        vg_mutex_unlock(&c->kinds[i].mu);
    }
    vg_timer_start(c->feed, &c->upkeep, UPKEEP_NS, on_upkeep);
}

static void on_start(struct vg_mail *mail)
{
    struct vg_cacher *c = VG_CONTAINER_OF(mail, struct vg_cacher, start_mail);
    if (!c->is_closing) {
        vg_timer_start(c->feed, &c->upkeep, UPKEEP_NS, on_upkeep);
        vg_digest_start(c);
        begin(c);
    }
    vg_cacher_unref(c);
}

void vg_feed_start(struct vg_cacher *c)
{
    c->reclaim_mail.run = on_reclaim;
    c->start_mail.run = on_start;
    atomic_store(&c->down_since_ns, vg_cacher_now_ns(c));
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed); /* the mail's */
    vg_loop_post(c->feed, &c->start_mail);
}

/* Called again by whatever is still under way when it comes back. */
void vg_feed_stop(struct vg_cacher *c)
{
    c->is_closing = true;
    vg_timer_stop(c->feed, &c->retry);
    vg_timer_stop(c->feed, &c->upkeep);
    vg_timer_stop(c->feed, &c->digest);
    if (c->watch)
        vg_watch_cancel(c->watch);
    c->watch = NULL;
    if (c->is_listing || c->state == FEED_CLOSED)
        return;
    c->state = FEED_CLOSED;
    drop_listed(c);
    forget_known(c);
    set_ready(c, false);
    vg_cacher_unref(c);
}
