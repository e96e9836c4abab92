/* loop_threads_test.c - mail between threads, loops on threads of their own, and a clock that moves
 * while they sleep. */
#include "loop_testing.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void post_from_thread(unsigned index, void *arg)
{
    struct letter *l = arg;
    if (index)
        vg_loop_post(l->loop, &l->mail);
    else
        vg_loop_turn_until(l->loop, &l->done);
}

static void mail_from_another_thread_ends_the_sleep(void **state)
{
    for (int i = 0; i < 500; i++) {
        struct letter l = letter(*state, NULL, 'a');
        vg_test_threads(2, post_from_thread, &l);
        assert_true(l.done);
    }
}

/* Who has its answer ends: the sender may not have come back from its post yet. */
static void answer_or_take_and_free(unsigned index, void *arg)
{
    struct letter *l = arg;
    if (index) {
        vg_loop_post(l->loop, &l->mail);
        return;
    }
    while (!l->done)
        vg_loop_turn(l->loop, false); /* awake: the sender needs no system call to be seen */
    vg_loop_free(l->loop);
}

static void a_loop_may_be_freed_once_its_mail_has_run(void **state)
{
    (void)state;
    for (int i = 0; i < 500; i++) {
        struct vg_loop *loop = NULL;
        assert_int_equal(vg_loop_new(vg_clock_system(), &loop), 0);
        struct letter l = letter(loop, NULL, 'a');
        vg_test_threads(2, answer_or_take_and_free, &l);
    }
}

struct question {
    struct vg_mail mail;
    struct vg_loop *asked;
    struct letter *answer; /* posted to the asker's loop */
    bool was_current;
};

static void answer(struct vg_mail *m)
{
    struct question *q = VG_CONTAINER_OF(m, struct question, mail);
    q->was_current = vg_loop_is_current(q->asked);
    vg_loop_post(q->answer->loop, &q->answer->mail);
}

static void a_started_loop_runs_mail_on_its_own_thread(void **state)
{
    struct vg_loop *worker = NULL;
    struct letter back = letter(*state, NULL, 'a');
    assert_int_equal(vg_loop_new(vg_clock_system(), &worker), 0);
    assert_true(vg_loop_is_current(worker));
    assert_int_equal(vg_loop_start(worker, "a name longer than the kernel keeps"), 0);
    assert_false(vg_loop_is_current(worker));
    struct question q = {.mail = {.run = answer}, .asked = worker, .answer = &back};
    vg_loop_post(worker, &q.mail);
    vg_loop_turn_until(*state, &back.done);
    vg_loop_stop(worker);
    vg_loop_stop(worker);
    assert_true(q.was_current);
    assert_true(vg_loop_is_current(worker));
    vg_loop_free(worker);
}

static void mail_posted_before_the_stop_runs_and_a_loop_starts_again(void **state)
{
    for (int i = 0; i < 200; i++) {
        struct letter a = letter(*state, NULL, 'a'), b = letter(*state, NULL, 'b');
        assert_int_equal(vg_loop_start(*state, "worker"), 0);
        vg_loop_post(*state, &a.mail);
        vg_loop_post(*state, &b.mail);
        vg_loop_stop(*state);
        assert_true(a.done && b.done);
    }
}

/* A ring of loops: each token goes round, one hop per mail, and comes home at the end. */
#define RING 4u
#define TOKENS 8u

struct ring {
    struct vg_loop *loop[RING];
    struct vg_loop *home;
    _Atomic unsigned left;
    bool done;
};

struct token {
    struct vg_mail mail;
    struct ring *ring;
    unsigned hops;
    unsigned at;
};

static void come_home(struct vg_mail *m)
{
    struct token *t = VG_CONTAINER_OF(m, struct token, mail);
    t->ring->done = atomic_fetch_sub(&t->ring->left, 1) == 1;
}

static void hop(struct vg_mail *m)
{
    struct token *t = VG_CONTAINER_OF(m, struct token, mail);
    if (t->hops-- == 0) {
        m->run = come_home;
        vg_loop_post(t->ring->home, m);
        return;
    }
    t->at = (t->at + 1 + t->hops % (RING - 1)) % RING;
    vg_loop_post(t->ring->loop[t->at], m);
}

static void loops_that_post_to_each_other_lose_nothing(void **state)
{
    struct ring ring = {.home = *state, .left = TOKENS};
    struct token tokens[TOKENS];
    for (unsigned i = 0; i < RING; i++) {
        assert_int_equal(vg_loop_new(vg_clock_system(), &ring.loop[i]), 0);
        assert_int_equal(vg_loop_start(ring.loop[i], "ring"), 0);
    }
    for (unsigned i = 0; i < TOKENS; i++) {
        tokens[i] = (struct token){{.run = hop}, &ring, vg_test_is_long() ? 100000 : 5000, 0};
        vg_loop_post(ring.loop[0], &tokens[i].mail);
    }
    vg_loop_turn_until(ring.home, &ring.done);
    for (unsigned i = 0; i < RING; i++)
        vg_loop_stop(ring.loop[i]);
    for (unsigned i = 0; i < RING; i++)
        vg_loop_free(ring.loop[i]);
    assert_int_equal(atomic_load(&ring.left), 0);
}

/* the fake clock */

struct bell {
    struct vg_mail mail; /* starts the timer on the loop's thread */
    struct vg_timer timer;
    struct vg_loop *loop;
    struct letter *armed, *rung; /* answers */
};

static void ring_bell(struct vg_timer *t)
{
    struct bell *b = VG_CONTAINER_OF(t, struct bell, timer);
    vg_loop_post(b->rung->loop, &b->rung->mail);
}

static void arm_bell(struct vg_mail *m)
{
    struct bell *b = VG_CONTAINER_OF(m, struct bell, mail);
    vg_timer_start(b->loop, &b->timer, 10 * VG_NS_PER_S, ring_bell);
    vg_loop_post(b->armed->loop, &b->armed->mail);
}

static void moving_the_fake_clock_wakes_a_loop_that_sleeps(void **state)
{
    struct vg_fake_clock clock;
    struct letter armed = letter(*state, NULL, 'a'), rung = letter(*state, NULL, 'r');
    struct bell b = {.mail = {.run = arm_bell}, .armed = &armed, .rung = &rung};
    vg_fake_clock_init(&clock);
    assert_int_equal(vg_loop_new(&clock.clock, &b.loop), 0);
    assert_int_equal(vg_loop_start(b.loop, "bell"), 0);
    vg_loop_post(b.loop, &b.mail);
    vg_loop_turn_until(*state, &armed.done);
    vg_fake_clock_advance(&clock, 10 * VG_NS_PER_S);
    vg_loop_turn_until(*state, &rung.done);
    vg_loop_stop(b.loop);
    vg_loop_free(b.loop);
    vg_fake_clock_done(&clock);
}

struct hurry {
    struct vg_fake_clock clock;
    _Atomic bool done;
    unsigned failed;
};

static void advance_or_make_loops(unsigned index, void *arg)
{
    struct hurry *h = arg;
    while (index && !atomic_load(&h->done))
        vg_fake_clock_advance(&h->clock, 1);
    for (int i = 0; !index && i < 500; i++) {
        struct vg_loop *loop = NULL;
        h->failed += vg_loop_new(&h->clock.clock, &loop) != 0;
        vg_loop_free(loop);
    }
    if (!index)
        atomic_store(&h->done, true);
}

static void loops_come_and_go_while_the_fake_clock_moves(void **state)
{
    (void)state;
    struct hurry h = {.failed = 0};
    vg_fake_clock_init(&h.clock);
    vg_test_threads(3, advance_or_make_loops, &h);
    assert_int_equal(h.failed, 0);
    vg_fake_clock_done(&h.clock);
}

struct heir {
    _Atomic bool is_freed;
};

/* Relaxed: TSan must not take the flag for what orders the two. */
static void free_loop_or_open_its_descriptors(unsigned index, void *arg)
{
    struct heir *h = arg;
    struct vg_loop *loop = NULL;
    int fds[8];
    if (index == 0) {
        assert_int_equal(vg_loop_new(vg_clock_system(), &loop), 0);
        vg_loop_free(loop);
        atomic_store_explicit(&h->is_freed, true, memory_order_relaxed);
        return;
    }
    while (!atomic_load_explicit(&h->is_freed, memory_order_relaxed))
        sched_yield();
    for (size_t i = 0; i < VG_ARRAY_LEN(fds); i++)
        fds[i] = eventfd(0, EFD_CLOEXEC);
    for (size_t i = 0; i < VG_ARRAY_LEN(fds); i++)
        close(fds[i]);
}

/* For TSan, which once took this for a race. */
static void a_loops_descriptors_may_be_anothers_after_it(void **state)
{
    (void)state;
    struct heir h = {false};
    vg_test_threads(2, free_loop_or_open_its_descriptors, &h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_LOOP(mail_from_another_thread_ends_the_sleep),
        ON_LOOP(a_started_loop_runs_mail_on_its_own_thread),
        ON_LOOP(mail_posted_before_the_stop_runs_and_a_loop_starts_again),
        ON_LOOP(loops_that_post_to_each_other_lose_nothing),
        ON_LOOP(moving_the_fake_clock_wakes_a_loop_that_sleeps),
        cmocka_unit_test(a_loop_may_be_freed_once_its_mail_has_run),
        cmocka_unit_test(a_loops_descriptors_may_be_anothers_after_it),
        cmocka_unit_test(loops_come_and_go_while_the_fake_clock_moves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
