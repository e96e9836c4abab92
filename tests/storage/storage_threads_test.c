/* storage_threads_test.c - storage under many threads at once, for TSan and for the promises that
 * only contention can break: no lost update (compare-and-swap counters), no holes, reads that are
 * whole while others write and compact, watchers on several threads that saw one and the same
 * history.
 *     storage_threads_test <engine>
 * Each thread plays a role with a driver of its own: a loop turned by hand on a shared store. */
#include "test_support.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "storage_driver.h"

static const char *engine;

enum { WRITERS = 3, WATCHERS = 2, COUNTERS = 4 };
enum { KEYS = COUNTERS + 1 }; /* and the total */
/* Keys that never change: they make a read last long enough to be overtaken. */
enum { FILLERS_TXN = VG_STORAGE_TXN_OPS_MAX, FILLERS = 8 * FILLERS_TXN };

struct arena;
typedef void role_fn(struct arena *a, unsigned index);

struct arena {
    struct vg_drv host;
    role_fn *const *roles;
    unsigned increments; /* by each writer */
    vg_rev start;        /* revision before the first increment */
    _Atomic unsigned writers_left;
    _Atomic unsigned conflicts, reads, compacted_reads, relists;
    /* Of the watchers; their drivers stay open until all are compared. */
    struct vg_drv drivers[WATCHERS];
    struct vg_drv_watch *watches[WATCHERS];
};

/* cmocka's asserts are for its own thread. */
static void must(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "storage threads: %s\n", what);
    abort();
}

static const char *key_of(unsigned i)
{
    static const char *const keys[KEYS] = {"counter0", "counter1", "counter2", "counter3", "total"};
    return keys[i];
}

static unsigned long value_of(const struct vg_rec *r)
{
    char text[32] = "0";
    if (r)
        snprintf(text, sizeof text, "%.*s", VG_SLICE_ARG(vg_rec_value(r)));
    return strtoul(text, NULL, 10);
}

/* ---- writers ---- */

static struct vg_op increment(struct vg_drv *d, const char *key)
{
    struct vg_rec *now = vg_drv_get(d, key, 0);
    char text[32];
    snprintf(text, sizeof text, "%lu", value_of(now) + 1);
    struct vg_op op = vg_drv_put_op(key, text, now ? now->rev : 0);
    vg_rec_unref(now);
    return op;
}

/* Read, add one, write if nobody was faster. The total moves in the same transaction, so that a
 * read of everything at one revision must add up. */
static void play_writer(struct arena *a, unsigned index)
{
    struct vg_drv d;
    struct vg_rng rng;
    vg_drv_attach(&d, &a->host);
    vg_rng_seed(&rng, vg_test_seed() + index);
    for (unsigned done = 0; done < a->increments;) {
        struct vg_op ops[] = {increment(&d, key_of((unsigned)vg_rng_below(&rng, COUNTERS))),
                              increment(&d, "total")};
        int err = vg_drv_run(&d, ops, 2, NULL);
        must(err == 0 || err == VIGIL_E_CONFLICT, "an increment failed oddly");
        done += err == 0;
        atomic_fetch_add(&a->conflicts, err != 0);
    }
    vg_drv_close(&d);
    atomic_fetch_sub(&a->writers_left, 1);
}

/* ---- readers ---- */

static void check_sum(const struct vg_range *range)
{
    unsigned long sum = 0, total = 0;
    must(range->n_recs >= FILLERS && range->n_recs <= FILLERS + KEYS, "a read is not whole");
    must(range->count == range->n_recs, "a read counts wrong");
    for (size_t i = 0; i < range->n_recs; i++) {
        struct vg_slice key = vg_rec_key(range->recs[i]);
        must(range->recs[i]->rev <= range->req.rev, "a read shows the future");
        must(i == 0 || vg_slice_cmp(vg_rec_key(range->recs[i - 1]), key) < 0,
             "a read is not in order");
        if (vg_slice_eq(key, vg_slice_str("total")))
            total = value_of(range->recs[i]);
        else if (vg_slice_has_prefix(key, vg_slice_str("counter")))
            sum += value_of(range->recs[i]);
    }
    must(sum == total, "a read at one revision does not add up");
}

/* Now, or at a revision that compaction may just be taking away. */
static void play_reader(struct arena *a, unsigned index)
{
    struct vg_drv d;
    struct vg_rng rng;
    vg_drv_attach(&d, &a->host);
    vg_rng_seed(&rng, vg_test_seed() + index);
    while (atomic_load(&a->writers_left)) {
        struct vg_range range = {.keys = vg_drv_all(), .flags = VG_RANGE_COUNT};
        vg_rev low = VG_MAX(vg_storage_compacted(d.store), a->start);
        if (vg_rng_below(&rng, 2))
            range.at = low + vg_rng_below(&rng, vg_storage_revision(d.store) - low + 1);
        int err = vg_drv_range(&d, &range);
        must(err == 0 || (range.at && err == VIGIL_E_COMPACTED), "a read failed oddly");
        if (err == 0)
            check_sum(&range);
        else
            must(range.req.compact_rev > range.at, "a read failed that was not compacted");
        atomic_fetch_add(err == 0 ? &a->reads : &a->compacted_reads, 1);
        vg_range_done(&range);
    }
    vg_drv_close(&d);
}

/* As close behind the writers as it gets. */
static void play_compactor(struct arena *a, unsigned index)
{
    struct vg_drv d;
    (void)index;
    vg_drv_attach(&d, &a->host);
    while (atomic_load(&a->writers_left)) {
        int err = vg_drv_compact(&d, vg_storage_revision(d.store), NULL);
        must(err == 0 || err == VIGIL_E_COMPACTED, "compaction failed oddly");
    }
    vg_drv_close(&d);
}

/* ---- watchers ---- */

/* One watch from beginning to end, paused and resumed now and then. */
static void play_watcher(struct arena *a, unsigned index)
{
    struct vg_drv *d = &a->drivers[index % WATCHERS];
    struct vg_rng rng;
    vg_drv_attach(d, &a->host);
    vg_rng_seed(&rng, vg_test_seed() + index);
    struct vg_watch_opts opts = {
        .keys = vg_drv_all(), .from = a->start + 1, .batch_max = index % 2 ? 7 : 0};
    struct vg_drv_watch *w = vg_drv_watch_open(d, &opts);
    while (atomic_load(&a->writers_left)) {
        vg_loop_turn(d->loop, false);
        if (vg_rng_below(&rng, 50) == 0)
            vg_watch_pause(w->watch);
        if (vg_rng_below(&rng, 10) == 0)
            vg_watch_resume(w->watch);
    }
    vg_watch_resume(w->watch);
    vg_drv_watch_sync(w);
    a->watches[index % WATCHERS] = w;
}

/* A new watch from where the last one was, again and again; the pieces must fit. */
static void play_hopper(struct arena *a, unsigned index)
{
    struct vg_drv d;
    vg_rev next = a->start + 1;
    (void)index;
    vg_drv_attach(&d, &a->host);
    for (bool is_last = false; !is_last;) {
        is_last = atomic_load(&a->writers_left) == 0;
        struct vg_drv_watch *w = vg_drv_watch_all(&d, next);
        vg_drv_watch_sync(w);
        for (size_t i = 0; i < w->n_events; i++) {
            must(w->events[i].rec->rev == next + i / 2, "a watch that resumed missed something");
            must(w->events[i].rec->sub == i % 2, "a watch that resumed split a revision");
        }
        next += w->n_events / 2;
        vg_drv_watch_done(w);
    }
    must(next == vg_storage_revision(d.store) + 1, "the last watch did not reach the end");
    vg_drv_close(&d);
}

/* What a client does: list, watch from there, list again when the history is gone. */
struct informer {
    unsigned long values[KEYS];
    vg_rev rev;
};

static unsigned long *slot_of(struct informer *inf, const struct vg_rec *r)
{
    for (unsigned i = 0; i < KEYS; i++)
        if (vg_slice_eq(vg_rec_key(r), vg_slice_str(key_of(i))))
            return &inf->values[i];
    must(false, "a key that nobody wrote");
    return NULL;
}

static void relist(struct vg_drv *d, struct informer *inf)
{
    struct vg_range range = {.keys = vg_drv_all(), .flags = VG_RANGE_COUNT};
    must(vg_drv_range(d, &range) == 0, "a list failed");
    check_sum(&range);
    memset(inf, 0, sizeof *inf);
    for (size_t i = 0; i < range.n_recs; i++)
        if (value_of(range.recs[i]))
            *slot_of(inf, range.recs[i]) = value_of(range.recs[i]);
    inf->rev = range.req.rev;
    vg_range_done(&range);
}

static void apply_events(struct informer *inf, const struct vg_drv_watch *w)
{
    for (size_t i = 0; i < w->n_events; i++) {
        unsigned long *slot = slot_of(inf, w->events[i].rec);
        must(value_of(w->events[i].prev) == *slot, "an event does not follow what was known");
        *slot = value_of(w->events[i].rec);
    }
}

static void play_informer(struct arena *a, unsigned index)
{
    struct vg_drv d;
    struct informer inf, truth;
    (void)index;
    vg_drv_attach(&d, &a->host);
    relist(&d, &inf);
    for (bool is_last = false; !is_last;) {
        is_last = atomic_load(&a->writers_left) == 0;
        struct vg_drv_watch *w = vg_drv_watch_all(&d, inf.rev + 1);
        vg_drv_watch_sync(w);
        apply_events(&inf, w);
        inf.rev = w->rev;
        if (w->is_ended) {
            must(w->err == VIGIL_E_COMPACTED && w->compact_rev > 0, "a watch ended oddly");
            relist(&d, &inf);
            atomic_fetch_add(&a->relists, 1);
        }
        vg_drv_watch_done(w);
    }
    relist(&d, &truth);
    must(memcmp(inf.values, truth.values, sizeof truth.values) == 0, "an informer is wrong");
    vg_drv_close(&d);
}

/* ---- the tests ---- */

static void run_role(unsigned index, void *arg)
{
    struct arena *a = arg;
    a->roles[index](a, index);
}

static void check_counters(struct arena *a)
{
    unsigned long sum = 0;
    for (unsigned i = 0; i < COUNTERS; i++) {
        struct vg_rec *r = vg_drv_get(&a->host, key_of(i), 0);
        sum += value_of(r);
        assert_int_equal(r ? r->version : 0, value_of(r));
        vg_rec_unref(r);
    }
    assert_int_equal(sum, WRITERS * a->increments);
    assert_int_equal(vg_storage_revision(a->host.store), a->start + WRITERS * a->increments);
}

/* Two changes in every revision, each revision once, and the same for every watcher. */
static void check_watch(struct arena *a, const struct vg_drv_watch *w,
                        const struct vg_drv_watch *first)
{
    assert_false(w->is_ended);
    assert_int_equal(w->n_events, 2 * WRITERS * a->increments);
    for (size_t i = 0; i < w->n_events; i++) {
        const struct vg_rec *r = w->events[i].rec;
        assert_int_equal(r->rev, a->start + 1 + i / 2);
        assert_int_equal(r->sub, i % 2);
        assert_int_equal(value_of(r), r->version);
        assert_int_equal(value_of(w->events[i].prev), r->version - 1);
        vg_assert_slice_equal(vg_rec_key(r), vg_rec_key(first->events[i].rec));
    }
}

static void put_fillers(struct arena *a)
{
    struct vg_op ops[FILLERS_TXN];
    for (unsigned n = 0; n < FILLERS; n += FILLERS_TXN) {
        for (unsigned i = 0; i < FILLERS_TXN; i++) {
            char key[32];
            snprintf(key, sizeof key, "filler%06u", n + i);
            ops[i] = vg_drv_put_op(key, "", 0);
        }
        assert_int_equal(vg_drv_run(&a->host, ops, FILLERS_TXN, &a->start), 0);
    }
}

static void run_arena(role_fn *const *roles, unsigned n_roles)
{
    struct arena *a = vg_new(struct arena);
    assert_non_null(a);
    a->roles = roles;
    a->increments = vg_test_is_long() ? 5000 : 200;
    a->writers_left = WRITERS;
    vg_drv_open(&a->host, engine, &(struct vg_storage_opts){.clock = vg_clock_system()});
    put_fillers(a);
    vg_test_threads(n_roles, run_role, a);
    check_counters(a);
    const struct vg_drv_watch *first = a->watches[0];
    for (unsigned i = 0; first && i < WATCHERS; i++)
        check_watch(a, a->watches[i], first);
    print_message("conflicts=%u reads=%u compacted_reads=%u relists=%u\n", a->conflicts, a->reads,
                  a->compacted_reads, a->relists);
    for (unsigned i = 0; i < WATCHERS; i++)
        vg_drv_close(&a->drivers[i]);
    vg_drv_close(&a->host);
    vg_free(a);
}

static void no_increment_is_lost_and_all_watchers_see_one_history(void **state)
{
    (void)state;
    static role_fn *const roles[] = {play_writer,  play_writer,  play_writer, play_reader,
                                     play_watcher, play_watcher, play_hopper};
    run_arena(roles, VG_ARRAY_LEN(roles));
}

static void reads_are_whole_or_fail_while_history_is_compacted(void **state)
{
    (void)state;
    static role_fn *const roles[] = {play_writer, play_writer,    play_writer,  play_reader,
                                     play_reader, play_compactor, play_informer};
    run_arena(roles, VG_ARRAY_LEN(roles));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_increment_is_lost_and_all_watchers_see_one_history),
        cmocka_unit_test(reads_are_whole_or_fail_while_history_is_compacted),
    };
    engine = vg_drv_args(argc, argv);
    return cmocka_run_group_tests_name("storage_threads", tests, NULL, NULL);
}
