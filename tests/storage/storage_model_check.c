/* storage_model_check.c - see storage_model_run.h: the engine's answers against the model's. */
#include "storage_model_run.h"

#include <errno.h>

void check_number(struct run *r, const char *what, uint64_t got, uint64_t want)
{
    if (got != want)
        mismatch(r, "%s is %llu, should be %llu", what, (unsigned long long)got,
                 (unsigned long long)want);
}

void check_err(struct run *r, const char *what, int got, int want)
{
    if (got != want)
        mismatch(r, "%s answered %s, should be %s", what, vg_err_name(got), vg_err_name(want));
}

static void check_bytes(struct run *r, const char *what, struct vg_slice got, struct vg_slice want)
{
    if (!vg_slice_eq(got, want))
        mismatch(r, "%s has %zu bytes '%.*s', should have %zu '%.*s'", what, got.n,
                 VG_SLICE_ARG(got), want.n, VG_SLICE_ARG(want));
}

void check_rec(struct run *r, const char *what, const struct vg_rec *got, size_t change,
               bool keys_only)
{
    if (!got != (change == MODEL_NONE))
        mismatch(r, "%s: a record is %s", what, got ? "there, should not be" : "missing");
    if (!got)
        return;
    const struct model_change *c = &r->m.changes[change];
    check_bytes(r, what, vg_rec_key(got), r->m.keys[c->key]);
    check_number(r, "the revision of a record", got->rev, c->rev);
    if (r->is_local)
        check_number(r, "the sub of a record", got->sub, c->sub);
    check_number(r, "whether a record deletes", vg_rec_is_delete(got), c->is_delete);
    check_number(r, "create_rev", got->create_rev, c->create_rev);
    check_number(r, "version", got->version, c->version);
    struct vg_slice none = vg_slice(NULL, 0);
    check_bytes(r, "a header", vg_rec_header(got), keys_only ? none : c->header);
    check_bytes(r, "a value", vg_rec_value(got), keys_only ? none : c->value);
    if (!keys_only && r->is_local)
        check_number(r, "prev_rev", got->prev_rev, c->prev_rev);
    if (!keys_only && r->is_timed) {
        check_number(r, "time_ms", (uint64_t)got->time_ms, (uint64_t)c->time_ms);
        check_number(r, "expires_ms", (uint64_t)got->expires_ms, (uint64_t)c->expires_ms);
    }
}

/* ---- ranges ---- */

void check_range(struct run *r, const struct vg_range *range)
{
    bool is_count_only = (range->flags & VG_RANGE_COUNT_ONLY) == VG_RANGE_COUNT_ONLY;
    vg_rev at = range->at ? range->at : r->m.rev;
    size_t n = 0, count = 0;
    for (unsigned key = 0; key < r->m.n_keys; key++) {
        size_t change = model_find(&r->m, key, at);
        if (change == MODEL_NONE || !model_keys_contain(&range->keys, r->m.keys[key]))
            continue;
        count++;
        if (is_count_only || (range->limit && n == range->limit))
            continue;
        if (n == range->n_recs)
            mismatch(r, "a range at %llu lacks key %u", (unsigned long long)at, key);
        check_rec(r, "a range", range->recs[n++], change, range->flags & VG_RANGE_KEYS_ONLY);
    }
    check_number(r, "the length of a range", range->n_recs, n);
    if (!is_count_only)
        check_number(r, "more", range->more, n < count);
    if (range->flags & VG_RANGE_COUNT)
        check_number(r, "count", range->count, count);
    check_number(r, "the revision of a range", range->req.rev, at);
}

void check_state(struct run *r, vg_rev at)
{
    struct vg_range range = {.keys = vg_drv_all(), .at = at, .flags = VG_RANGE_COUNT};
    check_err(r, "a range of everything", vg_drv_range(&r->d, &range), 0);
    check_range(r, &range);
    vg_range_done(&range);
}

/* ---- watches ---- */

void watch_begin(struct run *r, struct run_watch *rw, struct vg_drv_watch *w, struct vg_keys keys,
                 vg_rev from)
{
    *rw = (struct run_watch){.w = w, .keys = keys, .from = from ? from : r->m.rev + 1};
}

/* The next change that the watch should deliver; MODEL_NONE when there is none yet. */
static size_t next_expected(const struct run *r, struct run_watch *rw)
{
    for (; rw->next_change < r->m.n; rw->next_change++) {
        const struct model_change *c = &r->m.changes[rw->next_change];
        if (c->rev >= rw->from && model_keys_contain(&rw->keys, r->m.keys[c->key]))
            return rw->next_change;
    }
    return MODEL_NONE;
}

/* Only a watch that compaction has passed may end by itself. */
static void check_end(struct run *r, const struct run_watch *rw)
{
    const struct vg_drv_watch *w = rw->w;
    vg_rev needed = VG_MAX(rw->from, w->rev + 1);
    if (w->err == VIGIL_E_CLOSED || (r->is_starved && w->err == -ENOMEM))
        return; /* the step that closes the store looks for it; hunger strikes anywhere */
    check_err(r, "a watch", w->err, VIGIL_E_COMPACTED);
    if (w->compact_rev > r->m.compacted || needed > w->compact_rev)
        mismatch(r, "a watch that needs %llu ended: compacted at %llu, the model at %llu",
                 (unsigned long long)needed, (unsigned long long)w->compact_rev,
                 (unsigned long long)r->m.compacted);
}

void check_watch(struct run *r, struct run_watch *rw)
{
    const struct vg_drv_watch *w = rw->w;
    for (; rw->n_checked < w->n_events; rw->n_checked++) {
        const struct vg_event *e = &w->events[rw->n_checked];
        size_t change = next_expected(r, rw);
        if (change == MODEL_NONE)
            mismatch(r, "a watch from %llu got one event too many, of revision %llu",
                     (unsigned long long)rw->from, (unsigned long long)e->rec->rev);
        check_rec(r, "an event", e->rec, change, false);
        check_number(r, "the sub of an event", e->rec->sub, r->m.changes[change].sub);
        check_number(r, "prev_rev of an event", e->rec->prev_rev, r->m.changes[change].prev_rev);
        check_rec(r, "a previous value", e->prev, r->m.changes[change].prev, false);
        rw->next_change = change + 1;
    }
    if (w->is_ended)
        check_end(r, rw);
}

void check_watch_complete(struct run *r, struct run_watch *rw)
{
    check_watch(r, rw);
    size_t missing = rw->w->is_ended ? MODEL_NONE : next_expected(r, rw);
    if (missing != MODEL_NONE)
        mismatch(r, "a watch from %llu lacks revision %llu", (unsigned long long)rw->from,
                 (unsigned long long)r->m.changes[missing].rev);
}
