/* list_find.c - the state that a list shows: a snapshot of the cache, or storage.
 *
 *   any          the newest snapshot
 *   at least N   the newest, when the cache has come that far; a wait of 3 s, then 504 - or, for
 * the most recent, storage exactly N    the snapshot of that revision; when the hot tail has lost
 * it, storage not ready    waits for the cache, if it has not been away for long; then 429; but
 * storage for a page without selectors uncached     storage */
#include <errno.h>

#include "base/alloc.h"
#include "list_int.h"
#include "status_int.h"

static struct vg_cacher *cacher(const struct vg_lister *l)
{
    return l->call->loop->api->cacher;
}

/* ---- refusals ---- */

static void refuse_not_ready(struct vg_lister *l)
{
    struct vg_api_status status;
    vg_status_too_many(&l->call->ask->arena, &status, vg_cacher_retry_after_s(cacher(l)),
                       "storage is (re)initializing");
    vg_list_refuse(l, &status);
}

static void refuse_too_large(struct vg_lister *l, vg_rev current, bool with_retry)
{
    struct vg_api_status status;
    vg_status_too_large_rev(&l->call->ask->arena, &status, l->rev, current, with_retry);
    vg_list_refuse(l, &status);
}

static void refuse_expired(struct vg_lister *l)
{
    struct vg_api_status status;
    struct vg_arena *a = &l->call->ask->arena;
    if (!l->has_continue) {
        vg_status_expired(a, &status, "The resourceVersion for the provided list is too old.");
        vg_list_refuse(l, &status);
        return;
    }
    vg_status_expired(
        a, &status,
        "The provided continue parameter is too old to display a consistent list result. You can "
        "start a new list without the continue parameter, or use the continue token in this "
        "response to retrieve the remainder of the results. Continuing with the provided token "
        "results in an inconsistent list - objects that were created, modified, or deleted between "
        "the time the first chunk was returned and now may show up in the list.");
    if (vg_continue_encode(a, -1, vg_obj_key_slice(&l->root), vg_obj_key_slice(&l->start),
                           &status.continue_token) < 0)
        vg_status_no_memory(&status);
    vg_list_refuse(l, &status);
}

static void refuse(struct vg_lister *l, const struct vg_api_status *status)
{
    if (l->is_head_sent) { /* too late to say anything */
        vg_http_abort(l->call->x);
        vg_list_finish(l);
        return;
    }
    vg_list_refuse(l, status);
}

static void refuse_err(struct vg_lister *l, int err, const char *message)
{
    struct vg_api_status status;
    vg_status_from_err(&l->call->ask->arena, &status, err, message);
    refuse(l, &status);
}

void vg_list_fail(struct vg_lister *l, int err)
{
    if (err == -ENOMEM)
        refuse_err(l, err, NULL);
    else
        refuse_err(l, VIGIL_E_INTERNAL, "an object cannot be encoded");
}

/* ---- storage ---- */

/* Storage's records are checked here once, as the feed does for what it caches. *ret_bad: the one
 * that cannot be read, with VIGIL_E_STORE_DAMAGED. */
static int keep_matching(struct vg_lister *l, struct vg_list_hold *h, const struct vg_rec **ret_bad)
{
    struct vg_range *range = &l->range;
    struct vg_rec **grown = vg_reallocarray(h->recs, h->n + range->n_recs + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    h->recs = grown;
    l->n_visited += range->n_recs;
    for (size_t i = 0; i < range->n_recs; i++) {
        struct vg_rec *rec = range->recs[i];
        struct vg_obj_header head;
        if (vg_obj_header_open(vg_rec_header(rec), vg_rec_value(rec), &head) < 0) {
            *ret_bad = rec;
            return VIGIL_E_STORE_DAMAGED;
        }
        if (!vg_obj_predicate_matches(l->opts.predicate, &head))
            continue;
        if (l->limit && h->n == l->limit) { /* the page is full, and this one is beyond it */
            l->more_in_storage = true;
            return 0;
        }
        h->recs[h->n++] = vg_rec_ref(rec);
    }
    return 0;
}

static void take_storage(struct vg_lister *l)
{
    struct vg_range *range = &l->range;
    bool is_first = l->list_rev == 0;
    bool is_growing = l->limit && l->hold;
    struct vg_list_hold *h = is_growing ? l->hold : vg_list_hold_new();
    if (is_first)
        l->list_rev = l->want == VG_LIST_EXACTLY ? l->rev : range->req.rev;
    l->more_in_storage = range->more;
    const struct vg_rec *bad = NULL;
    int r = h ? keep_matching(l, h, &bad) : -ENOMEM;
    struct vg_api_status status;
    if (bad)
        vg_status_unreadable(&l->call->ask->arena, &status, vg_rec_key(bad));
    if (r == 0 && range->n_recs &&
        vg_obj_key_next(vg_rec_key(range->recs[range->n_recs - 1]), &l->range_start) < 0)
        r = VIGIL_E_INTERNAL;
    if (is_first && l->limit && range->more)
        l->remaining = range->count; /* less what the page takes, once it is known */
    vg_range_done(range);
    if (!is_growing) {
        vg_list_hold_unref(l->hold);
        l->hold = h;
        l->at = 0;
    }
    if (bad)
        refuse(l, &status);
    else if (r < 0)
        refuse_err(l, r, NULL);
    else if (l->limit && h->n < l->limit && l->more_in_storage)
        vg_list_read_more(l);
    else if (is_first || l->limit)
        vg_list_size(l);
    else if (!l->is_full)
        l->go_on(l);
}

static void on_range(struct vg_store_req *req)
{
    struct vg_lister *l = VG_CONTAINER_OF(req, struct vg_lister, range.req);
    const struct vg_api *api = l->call->loop->api;
    l->is_reading = false;
    vg_api_count_storage(api->counters, l->kind_index, VG_STORAGE_LIST,
                         vg_clock_mono_ns(api->clock) - l->waiting_since, req->err < 0);
    if (l->call->is_closed || l->call->is_answered != l->is_head_sent) {
        vg_range_done(&l->range);
        vg_list_finish(l); /* nobody waits for it any more */
    } else if (req->err == VIGIL_E_COMPACTED && !l->is_head_sent) {
        vg_range_done(&l->range);
        refuse_expired(l);
    } else if (req->err == VIGIL_E_FUTURE && !l->is_head_sent) {
        vg_range_done(&l->range);
        refuse_too_large(l, req->rev, false);
    } else if (req->err < 0) {
        vg_range_done(&l->range);
        refuse_err(l, req->err, req->status.message);
    } else if (l->want == VG_LIST_AT_LEAST && !l->is_consistent && req->rev < l->rev &&
               l->list_rev == 0) {
        vg_range_done(&l->range);
        refuse_too_large(l, req->rev, false);
    } else {
        take_storage(l);
    }
}

void vg_list_read_more(struct vg_lister *l)
{
    size_t page = VG_LIST_STORAGE_PAGE;
    bool is_first = l->list_rev == 0;
    if (l->limit && !l->opts.has_selector)
        page = (size_t)VG_MIN(l->limit - (l->hold ? l->hold->n : 0), (uint64_t)page);
    l->range = (struct vg_range){
        .req = {.loop = l->call->loop->loop, .done = on_range},
        .keys = {VG_KEYS_SPAN, vg_obj_key_slice(&l->range_start), vg_obj_key_slice(&l->range_end)},
        .at = is_first ? (l->want == VG_LIST_EXACTLY ? l->rev : 0) : l->list_rev,
        .limit = page,
        .flags = VG_RANGE_UNREADABLE,
    };
    if (is_first && l->limit && !l->opts.has_selector)
        l->range.flags |= VG_RANGE_COUNT;
    if (vg_slice_cmp(l->range.keys.start, l->range.keys.end) >= 0)
        l->range.keys.end = l->range.keys.start; /* a token from beyond: nothing */
    l->is_reading = true;
    l->waiting_since = vg_clock_mono_ns(l->call->loop->api->clock);
    int r = vg_storage_range(l->call->loop->api->storage, &l->range);
    if (r < 0) {
        l->is_reading = false;
        refuse_err(l, r, NULL);
    }
}

/* A page begins at its token's key, or where something can match. */
static struct vg_obj_key *first_key(struct vg_lister *l)
{
    bool is_later = vg_slice_cmp(vg_obj_key_slice(&l->start), vg_obj_key_slice(&l->walk)) > 0;
    return l->start.n && is_later ? &l->start : &l->walk;
}

void vg_list_read_again(struct vg_lister *l)
{
    l->range_start = *first_key(l);
    vg_list_read_more(l);
}

static void find_in_storage(struct vg_lister *l)
{
    l->is_from_storage = true;
    l->limit = VG_MIN(l->limit, (uint64_t)VG_LIST_STORAGE_LIMIT_MAX);
    l->range_start = *first_key(l);
    if (l->is_one && vg_obj_key_next(vg_obj_key_slice(&l->walk), &l->range_end) < 0)
        l->is_one = false;
    vg_list_read_more(l);
}

/* ---- the cache ---- */

/* Continue tokens name the first key of the next page, whether it is there or not. */
static void set_cursor(struct vg_lister *l)
{
    struct vg_cache_snapshot *s = &l->hold->snapshot;
    struct vg_tree_key key = {.minor = vg_obj_key_slice(first_key(l))};
    l->by_trigger = s->trigger && vg_obj_predicate_trigger(l->opts.predicate, &l->trigger);
    if (l->by_trigger)
        key.major = l->trigger;
    vg_root_seek(&l->first, l->by_trigger ? s->trigger : s->root, key);
    l->cursor = l->first;
    l->list_rev = l->want == VG_LIST_EXACTLY ? l->rev : s->rev;
}

static void take_snapshot(struct vg_lister *l, const struct vg_cache_snapshot *take)
{
    struct vg_api_status status;
    bool is_spoiled = vg_api_is_unreadable(l->call, l->kind_index, l->opts.predicate, &status);
    l->hold = is_spoiled ? NULL : vg_list_hold_new();
    if (!l->hold) {
        struct vg_cache_snapshot s = *take;
        vg_cache_snapshot_done(&s);
        if (!is_spoiled)
            vg_status_no_memory(&status);
        refuse(l, &status);
        return;
    }
    l->hold->snapshot = *take;
    set_cursor(l);
    vg_list_size(l);
}

static void on_fresh(struct vg_cache_wait *wait, int err)
{
    struct vg_lister *l = VG_CONTAINER_OF(wait, struct vg_lister, wait);
    l->is_waiting = false;
    vg_api_count_wait(l->call->loop->api->counters, l->kind_index,
                      vg_clock_mono_ns(l->call->loop->api->clock) - l->waiting_since);
    if (l->call->is_answered)
        vg_list_finish(l); /* its time is over */
    else if (err == 0) {
        l->is_fresh = true;
        vg_list_find(l);
    } else if (l->is_consistent)
        find_in_storage(l);
    else
        refuse_too_large(l, vg_cacher_revision(cacher(l)), true);
}

static void wait_for(struct vg_lister *l, vg_rev rev)
{
    l->is_waiting = true;
    l->waiting_since = vg_clock_mono_ns(l->call->loop->api->clock);
    vg_cache_wait_fresh(l->call->loop->port, rev, &l->wait, on_fresh);
}

static void wait_for_newest(struct vg_lister *l)
{
    l->is_waiting = true;
    l->waiting_since = vg_clock_mono_ns(l->call->loop->api->clock);
    vg_cache_wait_consistent(l->call->loop->port, &l->wait, on_fresh);
}

static void on_ready(struct vg_cache_wait *wait, int err)
{
    struct vg_lister *l = VG_CONTAINER_OF(wait, struct vg_lister, wait);
    l->is_waiting = false;
    if (l->call->is_answered)
        vg_list_finish(l); /* its time is over */
    else if (err < 0)
        refuse_not_ready(l);
    else
        vg_list_find(l);
}

/* Once: what is lost again meanwhile is not there soon. */
static void find_not_ready(struct vg_lister *l)
{
    bool is_again = l->was_held;
    l->was_held = true;
    if (l->limit && !l->opts.has_selector)
        find_in_storage(l);
    else if (is_again || vg_cache_wait_ready(l->call->loop->port, &l->wait, on_ready) < 0)
        refuse_not_ready(l);
    else
        l->is_waiting = true;
}

static void find_newest(struct vg_lister *l)
{
    struct vg_cache_snapshot s;
    vg_rev rev = l->rev;
    bool must_ask = l->is_consistent && !vg_cache_knows_newest(cacher(l), &rev) && !l->is_fresh;
    int r = vg_cache_newest(cacher(l), l->kind_index, &s);
    if (r == VIGIL_E_UNSUPPORTED) {
        find_in_storage(l);
    } else if (r == VIGIL_E_BUSY) {
        find_not_ready(l);
    } else if (r < 0) {
        refuse_err(l, r, NULL);
    } else if (must_ask) {
        vg_cache_snapshot_done(&s);
        wait_for_newest(l);
    } else if (l->want == VG_LIST_AT_LEAST && s.rev < rev && !l->is_fresh) {
        vg_cache_snapshot_done(&s);
        wait_for(l, rev);
    } else {
        take_snapshot(l, &s);
    }
}

static void find_exact(struct vg_lister *l)
{
    struct vg_cache_snapshot s;
    int r = vg_cache_exact(cacher(l), l->kind_index, l->rev, &s);
    if (r == 0)
        take_snapshot(l, &s);
    else if (r == VIGIL_E_FUTURE)
        wait_for(l, l->rev);
    else if (r == VIGIL_E_BUSY)
        find_not_ready(l);
    else if (r == VIGIL_E_NOT_FOUND || r == VIGIL_E_UNSUPPORTED)
        find_in_storage(l);
    else
        refuse_err(l, r, NULL);
}

void vg_list_find(struct vg_lister *l)
{
    if (l->want == VG_LIST_EXACTLY)
        find_exact(l);
    else
        find_newest(l);
}

/* ---- walking ---- */

static const struct vg_rec *next_of_snapshot(struct vg_lister *l, uint32_t *visits)
{
    struct vg_slice walk = vg_obj_key_slice(&l->walk);
    for (; *visits; --*visits) {
        const struct vg_rec *rec = vg_cursor_next(&l->cursor);
        struct vg_obj_header h;
        if (!rec || !vg_slice_has_prefix(vg_rec_key(rec), walk) ||
            (l->is_one && rec->key_len != walk.n))
            return NULL;
        vg_obj_header_read(vg_rec_header(rec), vg_rec_value(rec), &h);
        if (l->by_trigger && !vg_slice_eq(vg_obj_trigger(&h), l->trigger))
            return NULL;
        l->n_visited++;
        if (vg_obj_predicate_matches(l->opts.predicate, &h)) {
            --*visits;
            return rec;
        }
    }
    return NULL;
}

const struct vg_rec *vg_list_next(struct vg_lister *l, uint32_t *visits)
{
    if (!l->is_from_storage)
        return next_of_snapshot(l, visits);
    if (*visits == 0 || l->at == l->hold->n)
        return NULL;
    --*visits;
    return l->hold->recs[l->at++];
}
