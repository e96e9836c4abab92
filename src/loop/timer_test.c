/* timer_test.c - timers: driven by a fake clock, against a model, and once by the real clock. */
#include "test_support.h"

#include <unistd.h>

#include "base/rng.h"
#include "loop.h"

struct probe {
    struct vg_timer timer;
    struct rig *rig;
    struct probe *other;
    unsigned fired;
};

/* A loop on a fake clock and four timers that log their firing by index. */
struct rig {
    struct vg_fake_clock clock;
    struct vg_loop *loop;
    struct probe p[4];
    size_t log[32];
    size_t logged;
};

static int begin(void **state)
{
    static struct rig rig;
    rig = (struct rig){0};
    vg_fake_clock_init(&rig.clock);
    for (size_t i = 0; i < VG_ARRAY_LEN(rig.p); i++)
        rig.p[i].rig = &rig;
    *state = &rig;
    return vg_loop_new(&rig.clock.clock, &rig.loop);
}

static int end(void **state)
{
    struct rig *rig = *state;
    vg_loop_free(rig->loop);
    vg_fake_clock_done(&rig->clock);
    return 0;
}

static struct probe *probe_of(struct vg_timer *t)
{
    return VG_CONTAINER_OF(t, struct probe, timer);
}

static void log_fire(struct vg_timer *t)
{
    struct probe *p = probe_of(t);
    p->fired++;
    p->rig->log[p->rig->logged++] = (size_t)(p - p->rig->p);
}

static void start(struct rig *rig, size_t i, uint64_t delay)
{
    vg_timer_start(rig->loop, &rig->p[i].timer, delay, log_fire);
}

static void assert_log(struct rig *rig, const char *want)
{
    char got[sizeof rig->log / sizeof rig->log[0] + 1] = {0};
    for (size_t i = 0; i < rig->logged; i++)
        got[i] = (char)('0' + rig->log[i]);
    assert_string_equal(got, want);
    rig->logged = 0;
}

static void advance(struct rig *rig, uint64_t ns)
{
    vg_fake_clock_advance(&rig->clock, ns);
    while (vg_loop_turn(rig->loop, false)) {
    }
}

static void timers_fire_in_the_order_of_their_deadlines(void **state)
{
    struct rig *rig = *state;
    start(rig, 0, 30);
    start(rig, 1, 10);
    start(rig, 2, 20);
    advance(rig, 100);
    assert_log(rig, "120");
}

static void timers_of_one_instant_fire_in_the_order_of_their_start(void **state)
{
    struct rig *rig = *state;
    start(rig, 3, 10);
    start(rig, 0, 10);
    start(rig, 2, 10);
    start(rig, 1, 10);
    start(rig, 0, 10); /* a restart goes to the end */
    advance(rig, 10);
    assert_log(rig, "3210");
}

static void a_timer_does_not_fire_before_its_time_nor_twice(void **state)
{
    struct rig *rig = *state;
    start(rig, 0, 10);
    assert_true(rig->p[0].timer.armed);
    advance(rig, 9);
    assert_log(rig, "");
    advance(rig, 1);
    assert_log(rig, "0");
    assert_false(rig->p[0].timer.armed);
    advance(rig, 1000);
    assert_log(rig, "");
}

static void a_restart_moves_the_deadline_both_ways(void **state)
{
    struct rig *rig = *state;
    start(rig, 0, 10);
    start(rig, 1, 50);
    start(rig, 0, 60);
    advance(rig, 50);
    assert_log(rig, "1");
    start(rig, 0, 1);
    advance(rig, 1);
    assert_log(rig, "0");
    advance(rig, 100);
    assert_log(rig, "");
}

static void a_stopped_timer_does_not_fire_and_stopping_twice_is_harmless(void **state)
{
    struct rig *rig = *state;
    vg_timer_stop(rig->loop, &rig->p[1].timer); /* never started */
    for (size_t i = 0; i < 4; i++)
        start(rig, i, 10 + i);
    vg_timer_stop(rig->loop, &rig->p[0].timer);
    vg_timer_stop(rig->loop, &rig->p[2].timer);
    vg_timer_stop(rig->loop, &rig->p[2].timer);
    advance(rig, 100);
    assert_log(rig, "13");
}

static void fire_and_stop_other(struct vg_timer *t)
{
    struct probe *p = probe_of(t);
    vg_timer_stop(p->rig->loop, t); /* itself: not armed any more */
    vg_timer_stop(p->rig->loop, &p->other->timer);
    log_fire(t);
}

static void a_timer_that_is_due_can_be_stopped_by_one_that_fires_before(void **state)
{
    struct rig *rig = *state;
    rig->p[0].other = &rig->p[2];
    vg_timer_start(rig->loop, &rig->p[0].timer, 10, fire_and_stop_other);
    start(rig, 1, 10);
    start(rig, 2, 10);
    advance(rig, 10);
    assert_log(rig, "01");
}

static void fire_and_start_again(struct vg_timer *t)
{
    struct probe *p = probe_of(t);
    log_fire(t);
    if (p->fired < 3)
        vg_timer_start(p->rig->loop, t, 0, fire_and_start_again);
}

static void a_timer_started_while_firing_waits_for_the_next_turn(void **state)
{
    struct rig *rig = *state;
    vg_timer_start(rig->loop, &rig->p[0].timer, 5, fire_and_start_again);
    start(rig, 1, 5);
    vg_fake_clock_advance(&rig->clock, 5);
    assert_true(vg_loop_turn(rig->loop, true));
    assert_log(rig, "01");
    assert_true(vg_loop_turn(rig->loop, true)); /* due: does not sleep though the clock stands */
    assert_log(rig, "0");
    assert_true(vg_loop_turn(rig->loop, false));
    assert_log(rig, "0");
    assert_false(vg_loop_turn(rig->loop, false));
}

static void fire_and_free(struct vg_timer *t)
{
    log_fire(&probe_of(t)->rig->p[0].timer);
    vg_free(probe_of(t));
}

static void a_timer_may_be_freed_when_it_fires(void **state)
{
    struct rig *rig = *state;
    struct probe *p = vg_new(struct probe);
    assert_non_null(p);
    p->rig = rig;
    vg_timer_start(rig->loop, &p->timer, 1, fire_and_free);
    start(rig, 1, 2);
    advance(rig, 2);
    assert_log(rig, "01");
}

static void a_deadline_past_the_end_of_time_never_comes(void **state)
{
    struct rig *rig = *state;
    start(rig, 0, UINT64_MAX);
    start(rig, 1, UINT64_MAX - 1);
    start(rig, 2, 1);
    advance(rig, UINT64_C(100) * 365 * 86400 * VG_NS_PER_S); /* a century */
    assert_log(rig, "2");
    assert_int_equal(rig->p[0].timer.due_ns, UINT64_MAX);
    vg_timer_stop(rig->loop, &rig->p[0].timer);
    vg_timer_stop(rig->loop, &rig->p[1].timer);
}

/* The model: an unsorted array; the next to fire is the smallest (due, order). */
#define MODEL_TIMERS 150u

struct model_timer {
    struct vg_timer timer;
    struct model *model;
    uint64_t due, order; /* what the model thinks */
    bool armed;
};

struct model {
    struct vg_loop *loop;
    const struct vg_clock *clock;
    struct vg_rng rng;
    struct model_timer t[MODEL_TIMERS];
    uint64_t order;
    uint64_t limit; /* timers started later belong to the next turn */
    unsigned fired, wrong;
};

static struct model_timer *model_next(struct model *m)
{
    struct model_timer *best = NULL;
    for (size_t i = 0; i < MODEL_TIMERS; i++) {
        struct model_timer *t = &m->t[i];
        if (!t->armed || t->due > vg_clock_mono_ns(m->clock) || t->order > m->limit)
            continue;
        if (!best || t->due < best->due || (t->due == best->due && t->order < best->order))
            best = t;
    }
    return best;
}

static void model_fire(struct vg_timer *timer);

static void model_start(struct model *m, struct model_timer *t)
{
    uint64_t delay = vg_rng_below(&m->rng, 4) ? vg_rng_below(&m->rng, 40) : 0;
    t->due = vg_clock_mono_ns(m->clock) + delay;
    t->order = ++m->order;
    t->armed = true;
    vg_timer_start(m->loop, &t->timer, delay, model_fire);
}

static void model_stop(struct model *m, struct model_timer *t)
{
    t->armed = false;
    vg_timer_stop(m->loop, &t->timer);
}

static void model_change(struct model *m)
{
    struct model_timer *t = &m->t[vg_rng_below(&m->rng, MODEL_TIMERS)];
    if (vg_rng_below(&m->rng, 4))
        model_start(m, t);
    else
        model_stop(m, t);
}

static void model_fire(struct vg_timer *timer)
{
    struct model_timer *t = VG_CONTAINER_OF(timer, struct model_timer, timer);
    struct model *m = t->model;
    m->wrong += t != model_next(m);
    m->fired++;
    t->armed = false;
    if (vg_rng_below(&m->rng, 3) == 0)
        model_change(m);
}

static void model_round(struct model *m, struct vg_fake_clock *clock)
{
    for (uint64_t n = vg_rng_below(&m->rng, 12); n > 0; n--)
        model_change(m);
    if (vg_rng_below(&m->rng, 2))
        vg_fake_clock_advance(clock, vg_rng_below(&m->rng, 25));
    m->limit = m->order;
    vg_loop_turn(m->loop, false);
    m->wrong += model_next(m) != NULL; /* something that was due did not fire */
    for (size_t i = 0; i < MODEL_TIMERS; i++)
        m->wrong += m->t[i].armed != m->t[i].timer.armed;
}

static void random_timers_fire_as_the_model_says(void **state)
{
    struct rig *rig = *state;
    static struct model m;
    m = (struct model){.loop = rig->loop, .clock = &rig->clock.clock};
    vg_rng_seed(&m.rng, vg_test_seed());
    for (size_t i = 0; i < MODEL_TIMERS; i++)
        m.t[i].model = &m;
    for (unsigned i = 0; i < (vg_test_is_long() ? 200000u : 5000u); i++) {
        model_round(&m, &rig->clock);
        assert_int_equal(m.wrong, 0);
    }
    assert_true(m.fired > 1000);
    for (size_t i = 0; i < MODEL_TIMERS; i++)
        model_stop(&m, &m.t[i]);
}

/* The real clock. */
struct shot {
    struct vg_timer timer;
    struct vg_loop *loop;
    uint64_t due;
    bool fired, early;
};

static void on_shot(struct vg_timer *t)
{
    struct shot *s = VG_CONTAINER_OF(t, struct shot, timer);
    s->fired = true;
    s->early = vg_clock_mono_ns(vg_loop_clock(s->loop)) < s->due;
}

static void shoot(struct vg_loop *loop, struct shot *s, uint64_t delay)
{
    s->loop = loop;
    s->fired = s->early = false;
    s->due = vg_clock_mono_ns(vg_loop_clock(loop)) + delay;
    vg_timer_start(loop, &s->timer, delay, on_shot);
}

static int begin_real(void **state)
{
    struct vg_loop *loop = NULL;
    int r = vg_loop_new(vg_clock_system(), &loop);
    *state = loop;
    return r;
}

static int end_real(void **state)
{
    vg_loop_free(*state);
    return 0;
}

/* Two at once: an alarm that rang for the first and was not set for the second would hang here. */
static void on_the_real_clock_every_timer_fires_and_none_early(void **state)
{
    struct vg_loop *loop = *state;
    struct shot a = {0}, b = {0};
    struct vg_rng rng;
    vg_rng_seed(&rng, vg_test_seed());
    for (int i = 0; i < 200; i++) {
        shoot(loop, &a, vg_rng_below(&rng, 2 * VG_NS_PER_MS));
        shoot(loop, &b, vg_rng_below(&rng, 2 * VG_NS_PER_MS));
        vg_loop_turn_until(loop, &a.fired);
        vg_loop_turn_until(loop, &b.fired);
        assert_false(a.early || b.early);
    }
}

/* An alarm that rings early finds nothing due and turns the loop until the millisecond is full. */
static void a_loop_that_waits_for_a_timer_sleeps(void **state)
{
    struct shot s = {0};
    unsigned turns = 0;
    for (int i = 0; i < 50; i++) {
        shoot(*state, &s, VG_NS_PER_MS * 3 / 2);
        for (; !s.fired; turns++)
            vg_loop_turn(*state, true);
    }
    assert_in_range(turns, 50, 50 * 4);
}

static void an_earlier_timer_or_a_stop_moves_the_alarm(void **state)
{
    struct vg_loop *loop = *state;
    struct shot never = {0}, soon = {0};
    shoot(loop, &never, UINT64_MAX);
    assert_false(vg_loop_turn(loop, false));
    shoot(loop, &soon, VG_NS_PER_MS);
    vg_loop_turn_until(loop, &soon.fired);
    vg_timer_stop(loop, &never.timer);
    assert_false(vg_loop_turn(loop, false));
    assert_false(never.fired);
}

struct hook {
    uv_prepare_t prepare;
    uv_poll_t poll;
    struct vg_loop *loop;
    struct shot shot;
    bool used;
};

static void start_in_prepare(uv_prepare_t *handle)
{
    struct hook *h = VG_CONTAINER_OF(handle, struct hook, prepare);
    if (!h->used)
        shoot(h->loop, &h->shot, VG_NS_PER_MS);
    h->used = true;
}

static void a_timer_started_just_before_libuv_sleeps_still_fires(void **state)
{
    struct hook h = {.loop = *state};
    uv_prepare_init(vg_loop_uv(h.loop), &h.prepare);
    uv_prepare_start(&h.prepare, start_in_prepare);
    vg_loop_turn_until(h.loop, &h.shot.fired);
    uv_close((uv_handle_t *)&h.prepare, NULL);
    vg_loop_turn(h.loop, false);
}

static void start_in_poll(uv_poll_t *handle, int status, int events)
{
    struct hook *h = VG_CONTAINER_OF(handle, struct hook, poll);
    (void)status, (void)events;
    uv_poll_stop(handle);
    shoot(h->loop, &h->shot, VG_NS_PER_MS);
}

static void a_timer_started_by_a_descriptor_fires(void **state)
{
    struct hook h = {.loop = *state};
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    uv_poll_init(vg_loop_uv(h.loop), &h.poll, fds[1]);
    uv_poll_start(&h.poll, UV_WRITABLE, start_in_poll);
    vg_loop_turn_until(h.loop, &h.shot.fired);
    uv_close((uv_handle_t *)&h.poll, NULL);
    vg_loop_turn(h.loop, false);
    close(fds[0]);
    close(fds[1]);
}

#define FAKE(test) cmocka_unit_test_setup_teardown(test, begin, end)
#define REAL(test) cmocka_unit_test_setup_teardown(test, begin_real, end_real)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FAKE(timers_fire_in_the_order_of_their_deadlines),
        FAKE(timers_of_one_instant_fire_in_the_order_of_their_start),
        FAKE(a_timer_does_not_fire_before_its_time_nor_twice),
        FAKE(a_restart_moves_the_deadline_both_ways),
        FAKE(a_stopped_timer_does_not_fire_and_stopping_twice_is_harmless),
        FAKE(a_timer_that_is_due_can_be_stopped_by_one_that_fires_before),
        FAKE(a_timer_started_while_firing_waits_for_the_next_turn),
        FAKE(a_timer_may_be_freed_when_it_fires),
        FAKE(a_deadline_past_the_end_of_time_never_comes),
        FAKE(random_timers_fire_as_the_model_says),
        REAL(on_the_real_clock_every_timer_fires_and_none_early),
        REAL(a_loop_that_waits_for_a_timer_sleeps),
        REAL(an_earlier_timer_or_a_stop_moves_the_alarm),
        REAL(a_timer_started_just_before_libuv_sleeps_still_fires),
        REAL(a_timer_started_by_a_descriptor_fires),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
