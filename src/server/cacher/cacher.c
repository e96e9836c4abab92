/* cacher.c - opening, closing, and what readers take from the cache. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "cacher_int.h"

/* Object and storage do not see each other, and draw the line at the same lengths. */
static_assert(VG_OBJ_KEY_MAX == VG_STORAGE_KEY_MAX, "a key of an object is a key of storage");
static_assert(VG_OBJ_VALUE_MAX == VG_STORAGE_VALUE_MAX, "header and value together, in both");

/* ---- keys of trees, values of links ---- */

static struct vg_slice trigger_of(const struct vg_rec *rec, void *arg)
{
    struct vg_obj_header h;
    (void)arg;
    vg_rec_read(rec, &h);
    return vg_obj_trigger(&h);
}

static struct vg_slice namespace_of(const struct vg_rec *rec, void *arg)
{
    struct vg_obj_header h;
    (void)arg;
    vg_rec_read(rec, &h);
    return vg_obj_namespace(&h);
}

static struct vg_tree_key trigger_key(const struct vg_rec *rec, void *arg)
{
    return (struct vg_tree_key){.major = trigger_of(rec, arg), .minor = vg_rec_key(rec)};
}

/* ---- kinds ---- */

/* Thread: any. Which kind it was is said before the mail, or before the one that is on its way:
 * that takes the word back before it looks. */
static void wake_reclaim(void *arg)
{
    struct vg_watch_cache *wc = arg;
    struct vg_cacher *c = wc->c;
    atomic_store(&wc->has_dead, true);
    if (c->is_dead || atomic_exchange(&c->reclaim_posted, true))
        return;
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed); /* the mail's */
    vg_loop_post(c->feed, &c->reclaim_mail);
}

static bool has_trigger(const struct vg_cache_kind *k)
{
    return k->fields && k->fields->trigger < k->fields->n;
}

static int init_bookmark(struct vg_watch_cache *wc)
{
    static const char open[] = "{\"type\":\"BOOKMARK\",\"object\":", close[] = "}\n";
    VG_AUTO(buf) text;
    vg_buf_init(&text, 0);
    int r = vg_buf_printf(&text, "%s%s%s%s", open, wc->kind->bookmark_head, wc->kind->bookmark_tail,
                          close);
    if (r < 0)
        return r;
    wc->bookmark = vg_malloc(sizeof *wc->bookmark + text.n);
    if (!wc->bookmark)
        return -ENOMEM;
    *wc->bookmark = (struct vg_form_body){.n = (uint32_t)text.n};
    atomic_init(&wc->bookmark->refs, 1);
    memcpy(wc->bookmark->bytes, text.p, text.n);
    wc->bookmark_head = sizeof open - 1 + strlen(wc->kind->bookmark_head);
    return 0;
}

static int init_kind(struct vg_watch_cache *wc, struct vg_cacher *c, size_t index)
{
    const struct vg_cacher_opts *o = &c->opts;
    wc->c = c;
    wc->index = index;
    wc->kind = &o->kinds[index];
    wc->prefix = vg_slice_str(wc->kind->prefix);
    vg_mutex_init(&wc->mu, VG_RANK_CACHE);
    vg_list_init(&wc->touched);
    vg_map_init(&wc->unreadable, VG_MAP_COPIES_KEYS);
    struct vg_history_limits limits = {
        .events_min = o->events_min,
        .events_max = o->events_max,
        .bytes_max = o->bytes_max,
        .window_ms = (int64_t)o->window_ms,
    };
    struct vg_tree_opts t = {.wake = wake_reclaim, .wake_arg = wc};
    int r = vg_history_init(&wc->history, &limits, 0);
    if (r == 0)
        r = init_bookmark(wc);
    if (r == 0)
        r = vg_tree_new(&t, &wc->tree);
    if (r == 0 && has_trigger(wc->kind)) {
        t.key_of = trigger_key;
        r = vg_tree_new(&t, &wc->by_trigger);
    }
    wc->history.ns = wc->kind->is_namespaced ? namespace_of : NULL;
    wc->history.trigger = has_trigger(wc->kind) ? trigger_of : NULL;
    return r;
}

static void done_kind(struct vg_watch_cache *wc)
{
    if (!wc->c)
        return;
    vg_root_unref(wc->root);
    vg_root_unref(wc->trigger_root);
    vg_form_body_unref(wc->bookmark);
    vg_history_done(&wc->history);
    vg_tree_free(wc->tree);
    vg_tree_free(wc->by_trigger);
    vg_map_done(&wc->unreadable);
    vg_mutex_done(&wc->mu);
}

static int compare_prefix(const void *a, const void *b)
{
    const struct vg_watch_cache *const *x = a, *const *y = b;
    return vg_slice_cmp((*x)->prefix, (*y)->prefix);
}

struct vg_watch_cache *vg_cacher_kind_of(struct vg_cacher *c, struct vg_slice key)
{
    size_t lo = 0, hi = c->n_kinds; /* the last prefix that is not above the key */
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (vg_slice_cmp(c->by_prefix[mid]->prefix, key) <= 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (!lo || !vg_slice_has_prefix(key, c->by_prefix[lo - 1]->prefix))
        return NULL;
    return c->by_prefix[lo - 1];
}

/* ---- life ---- */

static void fill(size_t *option, size_t with)
{
    if (!*option)
        *option = with;
}

static void fill_ms(uint64_t *option, uint64_t with)
{
    if (!*option)
        *option = with;
}

static void fill_opts(struct vg_cacher_opts *o)
{
    if (!o->clock)
        o->clock = vg_clock_system();
    fill(&o->form_bytes_max, (size_t)64 << 20);
    fill(&o->events_min, 100);
    fill(&o->events_max, 102400);
    fill(&o->bytes_max, (size_t)256 << 20);
    fill(&o->refill_max, 102400);
    fill(&o->pinned_max, (size_t)256 << 20);
    fill_ms(&o->window_ms, 75000);
    fill_ms(&o->budget_per_s_ns, 50 * VG_NS_PER_MS);
    fill_ms(&o->budget_max_ns, 100 * VG_NS_PER_MS);
    fill_ms(&o->stall_ms, 60000);
    fill_ms(&o->bookmark_ms, 60000);
    fill_ms(&o->fresh_ms, 3000);
    fill_ms(&o->ready_ms, 5000);
}

static void free_cacher(struct vg_cacher *c)
{
    c->is_dead = true; /* what dies now is freed by vg_tree_free, not by mail */
    if (c->tail.newest)
        vg_tail_done(&c->tail);
    for (size_t i = 0; c->kinds && i < c->n_kinds; i++)
        done_kind(&c->kinds[i]);
    vg_free(c->kinds);
    vg_free(c->by_prefix);
    vg_free(c->listed);
    vg_free(c);
}

void vg_cacher_unref(struct vg_cacher *c)
{
    if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_release) != 1)
        return;
    (void)atomic_load_explicit(&c->refs, memory_order_acquire); /* as a fence; TSan sees it */
    bool *flag = c->done_flag;
    free_cacher(c);
    if (flag)
        *flag = true;
}

static int init_kinds(struct vg_cacher *c)
{
    c->n_kinds = c->opts.n_kinds;
    c->kinds = vg_calloc(c->n_kinds, sizeof *c->kinds);
    c->by_prefix = vg_calloc(c->n_kinds, sizeof *c->by_prefix);
    if (!c->kinds || !c->by_prefix)
        return -ENOMEM;
    for (size_t i = 0; i < c->n_kinds; i++) {
        int r = init_kind(&c->kinds[i], c, i);
        if (r < 0)
            return r;
        c->by_prefix[i] = &c->kinds[i];
    }
    qsort(c->by_prefix, c->n_kinds, sizeof(struct vg_watch_cache *), compare_prefix);
    return 0;
}

int vg_cacher_open(const struct vg_cacher_opts *opts, struct vg_loop *feed,
                   struct vg_cacher **ret_cacher)
{
    struct vg_cacher *c = vg_new(struct vg_cacher);
    struct vg_cache_batch *first = vg_new(struct vg_cache_batch);
    if (!c || !first) {
        vg_free(c);
        vg_free(first);
        return -ENOMEM;
    }
    c->opts = *opts;
    fill_opts(&c->opts);
    c->feed = feed;
    atomic_init(&c->refs, 1);
    uint64_t seed = c->opts.seed;
    if (!seed && vg_random_bytes(&seed, sizeof seed) < 0)
        seed = vg_cacher_now_ns(c);
    vg_rng_seed(&c->rng, seed);
    vg_form_budget_init(&c->forms, c->opts.form_bytes_max);
    first->tail.free = vg_cache_batch_free;
    vg_tail_init(&c->tail, &first->tail);
    int r = init_kinds(c);
    if (r < 0) {
        free_cacher(c);
        return r;
    }
    vg_feed_start(c);
    *ret_cacher = c;
    return 0;
}

void vg_cacher_close(struct vg_cacher *c, bool *ret_done_flag)
{
    c->done_flag = ret_done_flag;
    vg_feed_stop(c);
}

bool vg_cacher_is_ready(struct vg_cacher *c)
{
    return atomic_load_explicit(&c->is_ready, memory_order_acquire);
}

/* e^(0.06 s) of the seconds it has been down, between 1 and 30, as kube-apiserver asks for. */
uint32_t vg_cacher_retry_after_s(struct vg_cacher *c)
{
    uint64_t since = atomic_load(&c->down_since_ns);
    uint64_t now = vg_cacher_now_ns(c);
    double down_s = now > since ? (double)(now - since) / (double)VG_NS_PER_S : 0;
    double wait = down_s > 60 ? 30 : exp(0.06 * down_s);
    return (uint32_t)VG_MIN(VG_MAX(wait, 1.0), 30.0);
}

vg_rev vg_cacher_revision(struct vg_cacher *c)
{
    return atomic_load_explicit(&c->rev, memory_order_acquire);
}

bool vg_cache_knows_newest(struct vg_cacher *c, vg_rev *ret_rev)
{
    *ret_rev = vg_storage_revision(c->opts.storage);
    return !vg_storage_is_shared(c->opts.storage);
}

/* ---- snapshots ---- */

struct vg_tail_hold vg_watch_cache_hold(struct vg_watch_cache *wc)
{
    struct vg_tail_hold h;
    vg_mutex_lock(&wc->mu);
    h.view = vg_history_view_ref(wc->history.view);
    h.end = wc->published;
    vg_mutex_unlock(&wc->mu);
    return h;
}

int vg_cache_newest(struct vg_cacher *c, size_t kind, struct vg_cache_snapshot *ret)
{
    struct vg_watch_cache *wc = &c->kinds[kind];
    if (wc->kind->is_uncached)
        return VIGIL_E_UNSUPPORTED;
    if (!vg_cacher_is_ready(c))
        return VIGIL_E_BUSY;
    /* The revision first: what is taken after it is at least as new. */
    vg_rev rev = vg_cacher_revision(c);
    vg_mutex_lock(&wc->mu);
    ret->root = vg_root_ref(wc->root);
    ret->trigger = wc->trigger_root ? vg_root_ref(wc->trigger_root) : NULL;
    vg_mutex_unlock(&wc->mu);
    ret->rev = VG_MAX(rev, vg_root_rev(ret->root));
    return 0;
}

struct vg_cache_glance vg_cache_glance(struct vg_cacher *c, size_t kind)
{
    const struct vg_watch_cache *wc = &c->kinds[kind];
    if (wc->kind->is_uncached || !vg_cacher_is_ready(c))
        return (struct vg_cache_glance){0};
    vg_rev rev = atomic_load_explicit(&wc->changed, memory_order_acquire);
    return (struct vg_cache_glance){
        .objects = atomic_load_explicit(&wc->objects, memory_order_relaxed), .rev = rev};
}

int vg_cache_exact(struct vg_cacher *c, size_t kind, vg_rev rev, struct vg_cache_snapshot *ret)
{
    struct vg_cache_snapshot s;
    /* The tail may have it still, but no watch could follow it: storage says what is to be said. */
    if (rev < vg_storage_compacted(c->opts.storage))
        return VIGIL_E_NOT_FOUND;
    int r = vg_cache_newest(c, kind, &s);
    if (r < 0)
        return r;
    if (rev > s.rev) {
        vg_cache_snapshot_done(&s);
        return VIGIL_E_FUTURE;
    }
    if (rev < vg_root_rev(s.root)) {
        vg_cache_snapshot_done(&s);
        struct vg_tail_hold h = vg_watch_cache_hold(&c->kinds[kind]);
        s = (struct vg_cache_snapshot){.root = vg_history_root_at(h.view, h.end, rev)};
        vg_history_view_unref(h.view);
        if (!s.root)
            return VIGIL_E_NOT_FOUND;
    }
    s.rev = rev;
    *ret = s;
    return 0;
}

void vg_cache_snapshot_done(struct vg_cache_snapshot *s)
{
    s->root = vg_root_unref(s->root);
    s->trigger = vg_root_unref(s->trigger);
}

/* ---- walking ---- */

struct vg_slice vg_walk_prefix(struct vg_watch_cache *wc, const struct vg_obj_predicate *p,
                               struct vg_obj_key *buf)
{
    struct vg_slice ns;
    size_t n = wc->prefix.n;
    if (!p || !wc->kind->is_namespaced || !vg_obj_predicate_namespace(p, &ns) ||
        n + ns.n + 1 > sizeof buf->bytes)
        return wc->prefix;
    memcpy(buf->bytes, wc->prefix.p, n);
    memcpy(buf->bytes + n, ns.p, ns.n);
    buf->bytes[n + ns.n] = '/';
    buf->n = (uint32_t)(n + ns.n + 1);
    return vg_obj_key_slice(buf);
}

void vg_cache_walk_init(struct vg_cache_walk *w, struct vg_cacher *c, size_t kind,
                        const struct vg_cache_snapshot *s, const struct vg_obj_predicate *p,
                        struct vg_slice after, struct vg_obj_key *key_buf)
{
    *w = (struct vg_cache_walk){.snapshot = s, .predicate = p};
    w->prefix = vg_walk_prefix(&c->kinds[kind], p, key_buf);
    w->by_trigger = s->trigger && p && vg_obj_predicate_trigger(p, &w->trigger);
    struct vg_tree_key key = {.minor = after.n ? after : w->prefix};
    if (w->by_trigger)
        key.major = w->trigger;
    vg_root_seek_edge(&w->cursor, w->by_trigger ? s->trigger : s->root, key,
                      after.n ? VG_TREE_AFTER : VG_TREE_AT);
}

const struct vg_rec *vg_cache_walk_some(struct vg_cache_walk *w, uint32_t *visits)
{
    const struct vg_rec *rec;
    while (*visits && (rec = vg_cursor_next(&w->cursor))) {
        struct vg_obj_header h;
        if (!vg_slice_has_prefix(vg_rec_key(rec), w->prefix))
            return NULL;
        --*visits;
        if (!w->predicate)
            return rec;
        vg_rec_read(rec, &h);
        if (w->by_trigger && !vg_slice_eq(vg_obj_trigger(&h), w->trigger))
            return NULL;
        if (vg_obj_predicate_matches(w->predicate, &h))
            return rec;
    }
    return NULL;
}

const struct vg_rec *vg_cache_walk_next(struct vg_cache_walk *w)
{
    uint32_t visits = UINT32_MAX; /* more than a cache can hold */
    return vg_cache_walk_some(w, &visits);
}

/* ---- numbers ---- */

static uint64_t count(_Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void vg_cacher_stats(struct vg_cacher *c, struct vg_cacher_stats *ret_stats)
{
    *ret_stats = (struct vg_cacher_stats){
        .events_received = count(&c->events_received),
        .events_dispatched = count(&c->events_dispatched),
        .events_replayed = count(&c->events_replayed),
        .init_events = count(&c->init_events),
        .events_from_storage = count(&c->events_from_storage),
        .bookmarks = count(&c->bookmarks),
        .relists = count(&c->relists),
        .resumes = count(&c->resumes),
        .progress = count(&c->progress),
        .bodies_made = count(&c->forms.bodies_made),
        .bodies_shared = count(&c->forms.bodies_shared),
        .pinned_bytes = (uint64_t)VG_MAX(atomic_load(&c->pinned), 0),
        .digest_checks = count(&c->digest_checks),
        .digest_failures = count(&c->digest_failures),
        .rev = vg_cacher_revision(c),
    };
    for (int i = 0; i < VG_END_REASONS; i++)
        ret_stats->ended[i] = count(&c->ended[i]);
}

void vg_cacher_kind_numbers(struct vg_cacher *c, size_t kind, struct vg_cache_kind_numbers *ret)
{
    struct vg_watch_cache *wc = &c->kinds[kind];
    *ret = (struct vg_cache_kind_numbers){0};
    vg_mutex_lock(&wc->mu);
    if (wc->root)
        ret->objects = vg_root_count(wc->root);
    if (wc->history.view)
        ret->events = (size_t)(wc->published - wc->history.view->oldest);
    ret->received = wc->published;
    ret->grown = wc->history.grown;
    ret->shrunk = wc->history.shrunk;
    vg_mutex_unlock(&wc->mu);
    ret->object_bytes = count(&wc->object_bytes);
    ret->digests = count(&wc->digests);
    ret->digest_failures = count(&wc->digest_failures);
}

void vg_cacher_kind_stats(struct vg_cacher *c, size_t kind, struct vg_cache_kind_stats *ret_stats)
{
    struct vg_watch_cache *wc = &c->kinds[kind];
    vg_mutex_lock(&wc->mu);
    *ret_stats = (struct vg_cache_kind_stats){
        .objects = vg_tree_count(wc->tree),
        .events = (size_t)(wc->history.next - wc->history.view->oldest),
        .event_bytes = wc->history.bytes,
        .grown = wc->history.grown,
        .shrunk = wc->history.shrunk,
        .oldest_rev = wc->history.view->oldest_rev,
    };
    vg_mutex_unlock(&wc->mu);
    vg_tree_stats(wc->tree, &ret_stats->tree);
}
