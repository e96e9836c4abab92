/* fifo_threads_test.c - a producer and a consumer at once: the end (scenario 39), the pressure of a
 * full queue, and a long random run after which the store must equal what was produced, with
 * callbacks that explain every difference on the way. */
#include "fifo_world.h"

#include <sched.h>
#include <stdatomic.h>

#include "base/rng.h"

/* ---- the end ---- */

struct waiting {
    struct vg_fifo *f;
    _Atomic unsigned started;
};

static void wait_for_the_end(unsigned index, void *arg)
{
    struct waiting *w = arg;
    struct vg_test_log l = {.n = 0};
    if (index == 10) {
        while (atomic_load(&w->started) < 10)
            sched_yield();
        vg_fifo_close(w->f);
        return;
    }
    atomic_fetch_add(&w->started, 1);
    assert_int_equal(vg_fifo_pop(w->f, true, vg_test_note, &l), VIGIL_E_CLOSED);
}

static void s39_the_end_releases_all_who_wait(void **state)
{
    (void)state;
    for (int mode = VG_FIFO_ATOMIC; mode <= VG_FIFO_BY_KEY; mode++) {
        struct vg_test_queue q = vg_test_queue((enum vg_fifo_mode)mode, 0, "");
        struct waiting w = {.f = q.f};
        vg_test_threads(11, wait_for_the_end, &w);
        vg_test_queue_done(&q);
    }
}

/* ---- a full queue ---- */

struct pressed {
    struct vg_fifo *f;
    _Atomic bool is_processing, may_go_on;
    _Atomic unsigned put, told;
};

static int process_slowly(void *arg, const struct vg_batch *b)
{
    struct pressed *p = arg;
    (void)b;
    atomic_store(&p->is_processing, true);
    while (!atomic_load(&p->may_go_on))
        sched_yield();
    return 0;
}

static void tell_room(void *arg)
{
    struct pressed *p = arg;
    atomic_fetch_add(&p->told, 1);
}

/* 0 consumes, 1 produces, 2 sees that the producer stops at four and then lets the consumer go on.
 */
static void press(unsigned index, void *arg)
{
    struct pressed *p = arg;
    if (index == 0) {
        int r;
        while ((r = vg_fifo_pop(p->f, true, process_slowly, p)) > 0)
            continue;
        assert_int_equal(r, VIGIL_E_CLOSED);
    } else if (index == 1) {
        for (unsigned i = 0; i < 20; i++) {
            if (i == 1) /* the first is taken before others come */
                while (!atomic_load(&p->is_processing))
                    sched_yield();
            vg_test_added(p->f, "a1");
            atomic_fetch_add(&p->put, 1);
        }
        vg_fifo_close(p->f);
    } else {
        while (atomic_load(&p->put) < 5)
            sched_yield();
        for (unsigned i = 0; i < 1000; i++)
            sched_yield();
        assert_int_equal(atomic_load(&p->put), 5); /* one is processed, two batches of two wait */
        assert_int_equal(vg_fifo_backlog(p->f), 4);
        assert_true(vg_fifo_is_full(p->f));
        atomic_store(&p->may_go_on, true);
    }
}

static void a_producer_waits_while_two_batches_wait(void **state)
{
    (void)state;
    struct pressed p = {0};
    struct vg_fifo_opts opts = {
        .batch_max = 2, .waits_when_full = true, .on_room = tell_room, .on_room_arg = &p};
    assert_int_equal(vg_fifo_new(&opts, &p.f), 0);
    vg_test_threads(3, press, &p);
    assert_int_equal(atomic_load(&p.put), 20);
    assert_int_equal(atomic_load(&p.told), 1);
    assert_false(vg_fifo_is_full(p.f));
    vg_fifo_free(p.f);
}

/* ---- a list while a batch is on its way into the store ---- */

struct on_its_way {
    struct vg_fifo *f;
    struct vg_consumer consumer;
    _Atomic bool is_processing, lists;
};

static int consume_late(void *arg, const struct vg_batch *b)
{
    struct on_its_way *w = arg;
    atomic_store(&w->is_processing, true);
    while (!atomic_load(&w->lists))
        sched_yield();
    for (unsigned i = 0; i < 1000; i++) /* time for a list that does not wait */
        sched_yield();
    return vg_consume(&w->consumer, b);
}

static void consume_or_list(unsigned index, void *arg)
{
    struct on_its_way *w = arg;
    if (index == 0) {
        assert_int_equal(vg_fifo_pop(w->f, true, consume_late, w), 1);
        return;
    }
    while (!atomic_load(&w->is_processing))
        sched_yield();
    atomic_store(&w->lists, true);
    vg_test_list(w->f, "", "5");
}

static void a_list_buries_what_is_on_its_way_into_the_store(void **state)
{
    (void)state;
    for (int m = VG_FIFO_ATOMIC; m <= VG_FIFO_BY_KEY; m++) {
        struct on_its_way w = {0};
        struct vg_test_queue q = vg_test_queue((enum vg_fifo_mode)m, 0, "");
        w.f = q.f;
        vg_consumer_init(&w.consumer, q.known, &(struct vg_consumer_calls){0});
        vg_test_added(w.f, "a1");
        vg_test_threads(2, consume_or_list, &w);
        while (vg_fifo_pop(w.f, false, vg_consume, &w.consumer) > 0)
            continue;
        assert_int_equal(vigil_store_count(q.known), 0);
        vg_consumer_done(&w.consumer);
        vg_test_queue_done(&q);
    }
}

/* ---- a long run ---- */

#define NAMES 40u
#define STEPS 6000u

/* The consumer's side keeps its own copy from callbacks alone. */
struct run {
    struct vg_fifo *f;
    struct vigil_store *store;
    struct vg_consumer consumer;
    unsigned produced[NAMES]; /* version of each name; 0: none. The producer's */
    unsigned told[NAMES];     /* the same, from callbacks. The consumer's */
    unsigned bad;
};

static const struct vigil_object *numbered(unsigned i, unsigned version)
{
    char name[16], text[16];
    snprintf(name, sizeof(name), "n%02u", i);
    snprintf(text, sizeof(text), "%u", version);
    return vg_test_object("ns", name, text);
}
static unsigned number_in(struct vigil_text t, size_t skip)
{
    unsigned n = 0;
    for (size_t i = skip; i < t.n; i++)
        n = n * 10 + (unsigned)(t.p[i] - '0');
    return n;
}
static unsigned name_of(const struct vigil_object *o)
{
    return number_in(vigil_object_name(o), 1);
}
static unsigned version_of(const struct vigil_object *o)
{
    return number_in(vigil_object_resource_version(o), 0);
}

static void run_add(void *arg, const struct vigil_object *o, bool is_initial)
{
    struct run *r = arg;
    (void)is_initial;
    r->bad += r->told[name_of(o)] != 0;
    r->told[name_of(o)] = version_of(o);
}
static void run_update(void *arg, const struct vigil_object *before, const struct vigil_object *o)
{
    struct run *r = arg;
    r->bad += r->told[name_of(o)] != version_of(before) || version_of(o) < version_of(before);
    r->told[name_of(o)] = version_of(o);
}
static void run_delete(void *arg, const struct vigil_object *o, bool is_tombstone)
{
    struct run *r = arg;
    r->bad += is_tombstone && r->told[name_of(o)] == 0;
    r->told[name_of(o)] = 0;
}

static void produce_list(struct run *r, struct vg_rng *rng, unsigned version)
{
    const struct vigil_object *v[NAMES];
    size_t n = 0;
    char text[16];
    for (unsigned i = 0; i < NAMES; i++) {
        /* What the server did while nobody watched. */
        if (vg_rng_below(rng, 4) == 0)
            r->produced[i] = vg_rng_below(rng, 2) ? version : 0;
        if (r->produced[i])
            v[n++] = numbered(i, r->produced[i]);
    }
    snprintf(text, sizeof(text), "%u", version);
    assert_int_equal(vg_fifo_replace(r->f, v, n, vg_slice_str(text)), 0);
    while (n)
        vigil_object_unref(v[--n]);
}

static void produce_one(struct run *r, struct vg_rng *rng, unsigned version)
{
    unsigned i = (unsigned)vg_rng_below(rng, NAMES);
    bool deletes = r->produced[i] && vg_rng_below(rng, 3) == 0;
    enum vg_delta_type type = r->produced[i] ? VG_DELTA_UPDATED : VG_DELTA_ADDED;
    const struct vigil_object *o = numbered(i, version);
    assert_int_equal(vg_fifo_put(r->f, deletes ? VG_DELTA_DELETED : type, o), 0);
    vigil_object_unref(o);
    r->produced[i] = deletes ? 0 : version;
}

static void produce_or_consume(unsigned index, void *arg)
{
    struct run *r = arg;
    if (index == 0) {
        int p;
        while ((p = vg_fifo_pop(r->f, true, vg_consume, &r->consumer)) > 0)
            continue;
        assert_int_equal(p, VIGIL_E_CLOSED);
        return;
    }
    struct vg_rng rng;
    vg_rng_seed(&rng, vg_test_seed());
    produce_list(r, &rng, 1);
    for (unsigned version = 2; version < STEPS; version++) {
        uint64_t dice = vg_rng_below(&rng, 200);
        if (dice == 0)
            produce_list(r, &rng, version);
        else if (dice == 1)
            assert_int_equal(vg_fifo_resync(r->f), 0);
        else
            produce_one(r, &rng, version);
    }
    vg_fifo_close(r->f);
}

static void the_store_and_the_callbacks_equal_what_was_produced(void **state)
{
    (void)state;
    (void)vg_test_seed();
    for (int m = VG_FIFO_ATOMIC; m <= VG_FIFO_BY_KEY; m++) {
        enum vg_fifo_mode mode = (enum vg_fifo_mode)m;
        static struct run r;
        memset(&r, 0, sizeof(r));
        assert_int_equal(vigil_store_new(NULL, 0, &r.store, NULL), 0);
        struct vg_fifo_opts opts = {.mode = mode,
                                    .known = mode == VG_FIFO_ATOMIC ? NULL : r.store,
                                    .batch_max = 16,
                                    .waits_when_full = true};
        assert_int_equal(vg_fifo_new(&opts, &r.f), 0);
        struct vg_consumer_calls calls = {run_add, run_update, run_delete, &r};
        vg_consumer_init(&r.consumer, r.store, &calls);
        vg_test_threads(2, produce_or_consume, &r);
        size_t count = 0;
        for (unsigned i = 0; i < NAMES; i++) {
            assert_int_equal(r.told[i], r.produced[i]);
            count += r.produced[i] != 0;
        }
        assert_int_equal(vigil_store_count(r.store), count);
        assert_int_equal(r.bad, 0);
        vg_fifo_free(r.f);
        vg_consumer_done(&r.consumer);
        vigil_store_free(r.store);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s39_the_end_releases_all_who_wait),
        cmocka_unit_test(a_producer_waits_while_two_batches_wait),
        cmocka_unit_test(a_list_buries_what_is_on_its_way_into_the_store),
        cmocka_unit_test(the_store_and_the_callbacks_equal_what_was_produced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
