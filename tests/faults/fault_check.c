/* fault_check.c - see fault_model.h: does a store hold what it must, and nothing else? */
#include <stdlib.h>

#include "base/alloc.h"
#include "fault_model_int.h"
#include "test_support.h"

#define LLU(x) ((unsigned long long)(x))

/* What is being looked at. */
struct look {
    struct vg_drv *d;
    vg_rev rev, compacted;
    struct vg_drv_watch *watch; /* everything from just after `compacted` on */
    size_t n_events;            /* of these up to rev; keys may expire while we look */
};

static vg_rev first_after(vg_rev compacted)
{
    return VG_MAX(compacted, VG_REV_EMPTY) + 1;
}

static size_t events_up_to(const struct vg_drv_watch *w, vg_rev rev)
{
    size_t n = 0;
    while (n < w->n_events && w->events[n].rec->rev <= rev)
        n++;
    return n;
}

static struct vg_drv_watch *watch_log(struct vg_drv *d, vg_rev from)
{
    struct vg_drv_watch *w = vg_drv_watch_all(d, from);
    vg_drv_watch_sync(w);
    if (w->is_ended)
        fail_msg("a watch from %llu ended: %s", LLU(from), vg_err_text(w->err));
    return w;
}

/* ---- F1, F2: the log ---- */

static void check_certain(const struct fm *m, const struct fm_cut *cut, const struct look *l)
{
    vg_rev must_have = fm_cut_must_have(m, cut);
    if (l->rev < must_have)
        fail_msg("revision %llu was acknowledged or seen and is not there: the log ends at %llu",
                 LLU(must_have), LLU(l->rev));
    if (l->compacted < cut->compact_done)
        fail_msg("compaction of %llu was acknowledged, but %llu is what is compacted",
                 LLU(cut->compact_done), LLU(l->compacted));
    if (l->compacted > VG_MAX(cut->compact_asked, VG_REV_EMPTY))
        fail_msg("compacted up to %llu, asked for was %llu", LLU(l->compacted),
                 LLU(cut->compact_asked));
}

/* How many of the first events are the truth's. */
static size_t count_agreeing(const struct fm *m, const struct look *l)
{
    size_t start = m->index[first_after(l->compacted) - 1], n = 0;
    while (n < l->n_events && start + n < m->n_log &&
           fm_rec_equal(l->watch->events[n].rec, m->log[start + n]))
        n++;
    while (n > 0 && n < l->n_events &&
           l->watch->events[n].rec->rev == l->watch->events[n - 1].rec->rev)
        n--; /* a revision agrees whole or not at all */
    return n;
}

static vg_rev end_of(const struct look *l, size_t n)
{
    return n ? l->watch->events[n - 1].rec->rev : first_after(l->compacted) - 1;
}

/* The truth as it would be had the store gone back to `rev`; only what is unknown may follow. */
static void fork_truth(const struct fm *m, vg_rev rev, struct fm *ret_fork)
{
    fm_init(ret_fork, m->seed, m->cap);
    memcpy(ret_fork->txns, m->txns, (m->cap + 1) * sizeof *m->txns);
    ret_fork->last = m->last;
    ret_fork->n_log = m->index[rev];
    ret_fork->log = fm_alloc(NULL, ret_fork->n_log, sizeof *m->log);
    for (size_t i = 0; i < ret_fork->n_log; i++)
        ret_fork->log[i] = vg_rec_ref(m->log[i]);
    ret_fork->index = fm_alloc(ret_fork->index, rev + 1, sizeof *m->index);
    memcpy(ret_fork->index, m->index, (rev + 1) * sizeof *m->index);
    ret_fork->rev = rev;
    for (uint64_t id = 1; id <= m->last; id++)
        if (m->txns[id].rev > rev)
            ret_fork->txns[id] = (struct fm_txn){.fate = FM_REFUSED};
    ret_fork->first = m->first;
}

static void check_no_more(const struct fm *m, const struct look *l, size_t agreeing)
{
    if (agreeing == l->n_events)
        return;
    const struct vg_rec *rec = l->watch->events[agreeing].rec;
    fail_msg("revision %llu, a %s, is another one than in the store that ran on (up to %llu)",
             LLU(rec->rev), vg_rec_is_delete(rec) ? "delete" : "put", LLU(m->rev));
}

/* ---- F3: ranges ---- */

static bool is_state(const struct fm_state *state, const struct vg_range *range)
{
    size_t n = 0;
    for (unsigned key = 0; key < FM_KEYS; key++) {
        if (!state->at[key])
            continue;
        if (n == range->n_recs || !fm_rec_equal(range->recs[n], state->at[key]))
            return false;
        n++;
    }
    return n == range->n_recs;
}

static void check_range(const struct fm *m, const struct look *l, vg_rev at)
{
    struct fm_state state;
    struct vg_range range = {.keys = vg_drv_all(), .at = at};
    fm_state_at(m, at, &state);
    int err = vg_drv_range(l->d, &range);
    if (err < 0)
        fail_msg("a range at %llu failed: %s", LLU(at), range.req.status.message);
    if (!is_state(&state, &range))
        fail_msg("a range at %llu disagrees with the log", LLU(at));
    vg_range_done(&range);
}

static void check_ranges(const struct fm *m, const struct look *l, struct vg_rng *rng)
{
    vg_rev low = first_after(l->compacted) - 1;
    check_range(m, l, l->rev);
    check_range(m, l, low);
    check_range(m, l, low + vg_rng_below(rng, l->rev - low + 1));
    if (l->compacted > VG_REV_EMPTY + 1) {
        struct vg_range range = {.keys = vg_drv_all(), .at = l->compacted - 1};
        assert_int_equal(vg_drv_range(l->d, &range), VIGIL_E_COMPACTED);
        vg_range_done(&range);
    }
}

void fm_check_state(const struct fm *m, const struct fm_cut *cut, struct vg_drv *d)
{
    struct vg_range range = {.keys = vg_drv_all()};
    struct fm_state state;
    bool found = false;
    assert_int_equal(vg_drv_range(d, &range), 0);
    vg_rev must_have = fm_cut_must_have(m, cut);
    for (vg_rev rev = must_have; rev <= m->rev && !found; rev++) {
        fm_state_at(m, rev, &state);
        found = is_state(&state, &range);
    }
    vg_range_done(&range);
    if (!found)
        fail_msg("revision %llu was acknowledged or seen, and what the store holds is older",
                 LLU(must_have));
}

/* ---- F4: watches ---- */

static void check_watch_from(const struct look *l, vg_rev from)
{
    struct vg_drv_watch *w = watch_log(l->d, from);
    size_t n = events_up_to(w, l->rev), skip = 0;
    while (skip < l->n_events && l->watch->events[skip].rec->rev < from)
        skip++;
    assert_int_equal(n, l->n_events - skip);
    for (size_t i = 0; i < n; i++)
        assert_true(fm_rec_equal(w->events[i].rec, l->watch->events[skip + i].rec));
    vg_drv_watch_done(w);
}

void fm_check(struct fm *m, const struct fm_cut *cut, enum fm_beyond beyond, struct vg_drv *d,
              struct vg_rng *rng)
{
    struct fm fork = {0}, *truth = m;
    struct look l = {.d = d, .rev = vg_storage_revision(d->store)};
    l.compacted = vg_storage_compacted(d->store);
    check_certain(m, cut, &l);
    l.watch = watch_log(d, first_after(l.compacted));
    l.n_events = events_up_to(l.watch, l.rev);
    size_t agreeing = count_agreeing(m, &l);
    if (beyond == FM_OTHER && agreeing < l.n_events) {
        assert_true(end_of(&l, agreeing) >= fm_cut_must_have(m, cut));
        fork_truth(m, end_of(&l, agreeing), &fork);
        truth = &fork;
    }
    if (beyond == FM_IN_FLIGHT)
        assert_int_equal(end_of(&l, agreeing), VG_MIN(m->rev, l.rev));
    if (beyond == FM_NOTHING)
        check_no_more(m, &l, agreeing);
    else
        fm_extend(truth, l.watch->events + agreeing, l.n_events - agreeing);
    assert_int_equal(end_of(&l, l.n_events), l.rev); /* no holes at the end either */
    check_ranges(truth, &l, rng);
    vg_rev low = first_after(l.compacted);
    check_watch_from(&l, low + vg_rng_below(rng, l.rev - low + 2));
    vg_drv_watch_done(l.watch);
    if (truth == &fork)
        fm_done(&fork);
}
