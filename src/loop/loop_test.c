/* loop_test.c - mail, the order of a turn, threads, and the end of a loop. Timers: timer_test.c.
 * One long file: all cases share its letters. */
#include "test_support.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "loop.h"

/* What ran, in order. */
struct trace {
    char text[64];
    size_t n;
};

static void note(struct trace *t, char c)
{
    t->text[t->n++] = c;
}

static void assert_trace(struct trace *t, const char *want)
{
    t->text[t->n] = '\0';
    assert_string_equal(t->text, want);
    t->n = 0;
}

struct letter {
    struct vg_mail mail;
    struct vg_loop *loop;
    struct trace *trace;
    struct letter *forward; /* posted when this one runs */
    char name;
    bool done;
};

static struct letter *letter_of(struct vg_mail *m)
{
    return VG_CONTAINER_OF(m, struct letter, mail);
}

static void run_letter(struct vg_mail *m)
{
    struct letter *l = letter_of(m);
    if (l->trace)
        note(l->trace, l->name);
    l->done = true;
    struct letter *forward = vg_steal(l->forward);
    if (forward)
        vg_loop_post(l->loop, &forward->mail);
}

static struct letter letter(struct vg_loop *loop, struct trace *trace, char name)
{
    return (struct letter){.mail = {.run = run_letter}, .loop = loop, .trace = trace, .name = name};
}

static int begin(void **state)
{
    struct vg_loop *loop = NULL;
    int r = vg_loop_new(vg_clock_system(), &loop);
    *state = loop;
    return r;
}

static int end(void **state)
{
    vg_loop_free(*state);
    return 0;
}

static void mail_runs_in_the_order_of_posting(void **state)
{
    struct trace t = {0};
    struct letter a = letter(*state, &t, 'a'), b = letter(*state, &t, 'b');
    assert_false(vg_loop_turn(*state, false));
    vg_loop_post(*state, &b.mail);
    vg_loop_post(*state, &a.mail);
    assert_true(vg_loop_turn(*state, true));
    assert_trace(&t, "ba");
    assert_false(vg_loop_turn(*state, false));
}

static void mail_posted_by_mail_runs_in_the_next_turn(void **state)
{
    struct trace t = {0};
    struct letter a = letter(*state, &t, 'a'), b = letter(*state, &t, 'b');
    struct letter c = letter(*state, &t, 'c');
    a.forward = &c;
    c.forward = &a; /* a runs twice: mail may be posted again once it has run */
    vg_loop_post(*state, &a.mail);
    vg_loop_post(*state, &b.mail);
    assert_true(vg_loop_turn(*state, true));
    assert_trace(&t, "ab");
    assert_true(vg_loop_turn(*state, true));
    assert_trace(&t, "c");
    assert_true(vg_loop_turn(*state, true));
    assert_trace(&t, "a");
}

static void post_again(struct vg_mail *m)
{
    struct letter *l = letter_of(m);
    note(l->trace, l->name);
    if (l->trace->n < 3)
        vg_loop_post(l->loop, m);
    l->done = l->trace->n == 3;
}

static void free_mail(struct vg_mail *m)
{
    vg_free(m);
}

static void mail_may_post_itself_again_or_free_itself(void **state)
{
    struct trace t = {0};
    struct letter a = letter(*state, &t, 'a');
    struct vg_mail *m = vg_new(struct vg_mail);
    assert_non_null(m);
    a.mail.run = post_again;
    m->run = free_mail;
    vg_loop_post(*state, m);
    vg_loop_post(*state, &a.mail);
    vg_loop_turn_until(*state, &a.done);
    assert_trace(&t, "aaa");
}

struct station {
    uv_poll_t poll;
    struct vg_timer timer;
    struct letter letter;
    struct trace *trace;
};

static void on_writable(uv_poll_t *handle, int status, int events)
{
    struct station *s = VG_CONTAINER_OF(handle, struct station, poll);
    (void)status, (void)events;
    note(s->trace, 'd');
    uv_poll_stop(handle);
}

static void on_timer(struct vg_timer *t)
{
    note(VG_CONTAINER_OF(t, struct station, timer)->trace, 't');
}

static void a_turn_runs_descriptors_then_mail_then_timers(void **state)
{
    struct trace t = {0};
    struct station s = {.trace = &t, .letter = letter(*state, &t, 'm')};
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    uv_poll_init(vg_loop_uv(*state), &s.poll, fds[1]);
    vg_timer_start(*state, &s.timer, 0, on_timer);
    vg_loop_post(*state, &s.letter.mail);
    uv_poll_start(&s.poll, UV_WRITABLE, on_writable);
    assert_true(vg_loop_turn(*state, true));
    assert_trace(&t, "dmt");
    uv_close((uv_handle_t *)&s.poll, NULL);
    vg_loop_turn(*state, false);
    close(fds[0]);
    close(fds[1]);
}

struct hook {
    uv_prepare_t prepare;
    struct letter letter;
};

static void on_prepare(uv_prepare_t *handle)
{
    struct hook *h = VG_CONTAINER_OF(handle, struct hook, prepare);
    vg_loop_post(h->letter.loop, &h->letter.mail);
    uv_prepare_stop(handle);
}

/* Nothing else would end the sleep: a test that hangs here has found it. */
static void a_loop_does_not_sleep_on_mail_that_it_posts_before_the_poll(void **state)
{
    struct hook h = {.letter = letter(*state, NULL, 'm')};
    uv_prepare_init(vg_loop_uv(*state), &h.prepare);
    uv_prepare_start(&h.prepare, on_prepare);
    vg_loop_turn_until(*state, &h.letter.done);
    uv_close((uv_handle_t *)&h.prepare, NULL);
    vg_loop_turn(*state, false);
}

static void run_for_ever(struct vg_mail *m)
{
    vg_loop_post(letter_of(m)->loop, m);
}

static void mail_that_posts_itself_does_not_starve_descriptors(void **state)
{
    struct trace t = {0};
    struct station s = {.trace = &t, .letter = letter(*state, NULL, 'm')};
    int fds[2];
    s.letter.mail.run = run_for_ever;
    vg_loop_post(*state, &s.letter.mail);
    vg_loop_turn(*state, true);
    assert_int_equal(pipe(fds), 0);
    uv_poll_init(vg_loop_uv(*state), &s.poll, fds[1]);
    uv_poll_start(&s.poll, UV_WRITABLE, on_writable);
    vg_loop_turn(*state, true);
    assert_trace(&t, "d");
    s.letter.mail.run = run_letter;
    vg_loop_turn(*state, true);
    uv_close((uv_handle_t *)&s.poll, NULL);
    vg_loop_turn(*state, false);
    close(fds[0]);
    close(fds[1]);
}

static bool is_readable(struct vg_loop *loop)
{
    struct pollfd p = {.fd = uv_backend_fd(vg_loop_uv(loop)), .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static void post_it(unsigned index, void *arg)
{
    struct letter *l = arg;
    (void)index;
    vg_loop_post(l->loop, &l->mail);
}

/* Who polls the loop's descriptor himself is woken by it, or told not to sleep. */
static void a_loop_that_is_polled_from_outside_does_not_miss_its_mail(void **state)
{
    struct letter a = letter(*state, NULL, 'a'), b = letter(*state, NULL, 'b');
    vg_loop_turn(*state, false);
    assert_int_equal(vg_loop_timeout_ms(*state), -1);
    assert_false(is_readable(*state));
    vg_test_threads(1, post_it, &a); /* from another thread, asleep or about to be */
    assert_true(is_readable(*state));
    vg_loop_turn(*state, false);
    assert_true(a.done);

    assert_int_equal(vg_loop_timeout_ms(*state), -1);
    vg_loop_post(*state, &b.mail); /* from our own, between two turns */
    assert_true(is_readable(*state) || vg_loop_timeout_ms(*state) == 0);
    vg_loop_turn(*state, false);
    assert_true(b.done);

    a = letter(*state, NULL, 'a');
    b = letter(*state, NULL, 'b');
    a.forward = &b; /* mail that posts mail: the next turn is due at once */
    vg_loop_post(*state, &a.mail);
    vg_loop_turn(*state, false);
    assert_false(b.done);
    assert_int_equal(vg_loop_timeout_ms(*state), 0);
    vg_loop_turn(*state, false);
    assert_true(b.done);
}

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

/* threads */

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

/* what can fail */

static void a_failed_allocation_fails_new_and_leaks_nothing(void **state)
{
    (void)state;
    VG_ALLOC_FAIL_LOOP (n) {
        struct vg_loop *loop = NULL;
        int r = vg_loop_new(vg_clock_system(), &loop);
        assert_int_equal(r, vg_test_alloc_failed() ? -ENOMEM : 0);
        assert_true((loop != NULL) == (r == 0));
        vg_loop_free(loop);
    }
}

static int new_with_descriptors(int count, struct vg_loop **ret_loop)
{
    struct rlimit was, few;
    int first_free = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(first_free);
    getrlimit(RLIMIT_NOFILE, &was);
    few = (struct rlimit){.rlim_cur = (rlim_t)(first_free + count), .rlim_max = was.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    int r = vg_loop_new(vg_clock_system(), ret_loop);
    setrlimit(RLIMIT_NOFILE, &was);
    return r;
}

/* How many stay open is not looked at: libuv 1.44 forgets its epoll descriptor when its own
 * initialisation fails later. */
static void without_descriptors_new_fails(void **state)
{
    (void)state;
    int r = -EMFILE;
    for (int n = 0; r != 0; n++) {
        struct vg_loop *loop = NULL;
        assert_in_range(n, 0, 50);
        r = new_with_descriptors(n, &loop);
        assert_true(r == -EMFILE || (r == 0 && n > 0));
        assert_true((loop != NULL) == (r == 0));
        vg_loop_free(loop);
    }
}

static void a_clock_without_room_for_a_hook_fails_new(void **state)
{
    (void)state;
    struct vg_fake_clock clock;
    struct vg_loop *loops[VG_CLOCK_HOOKS_MAX], *more = NULL;
    vg_fake_clock_init(&clock);
    for (size_t i = 0; i < VG_ARRAY_LEN(loops); i++)
        assert_int_equal(vg_loop_new(&clock.clock, &loops[i]), 0);
    assert_int_equal(vg_loop_new(&clock.clock, &more), -ENOSPC);
    assert_null(more);
    for (size_t i = 0; i < VG_ARRAY_LEN(loops); i++)
        vg_loop_free(loops[i]);
    assert_int_equal(clock.hook_count, 0);
    vg_fake_clock_done(&clock);
}

static void free_handle(uv_handle_t *handle)
{
    free(handle);
}

static void handles_closed_just_before_the_free_run_their_callbacks(void **state)
{
    (void)state;
    struct vg_loop *loop = NULL;
    uv_prepare_t *handle = calloc(1, sizeof *handle);
    assert_int_equal(vg_loop_new(vg_clock_system(), &loop), 0);
    uv_prepare_init(vg_loop_uv(loop), handle);
    uv_close((uv_handle_t *)handle, free_handle);
    vg_loop_free(loop);
    vg_loop_free(NULL);
}

static void free_with_open_handle(void *arg)
{
    static uv_idle_t idle;
    uv_idle_init(vg_loop_uv(arg), &idle);
    vg_loop_free(arg);
}

static void turn_within(struct vg_mail *m)
{
    vg_loop_turn(letter_of(m)->loop, false);
}

static void nest_turns(void *arg)
{
    struct letter l = letter(arg, NULL, 'a');
    l.mail.run = turn_within;
    vg_loop_post(arg, &l.mail);
    vg_loop_turn(arg, true);
}

static void misuse_of_a_loop_aborts(void **state)
{
    vg_test_dies(free_with_open_handle, *state, "uv_is_closing");
    vg_test_dies(nest_turns, *state, "turning");
}

#define ON_LOOP(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_LOOP(mail_runs_in_the_order_of_posting),
        ON_LOOP(mail_posted_by_mail_runs_in_the_next_turn),
        ON_LOOP(mail_may_post_itself_again_or_free_itself),
        ON_LOOP(a_turn_runs_descriptors_then_mail_then_timers),
        ON_LOOP(a_loop_does_not_sleep_on_mail_that_it_posts_before_the_poll),
        ON_LOOP(mail_that_posts_itself_does_not_starve_descriptors),
        ON_LOOP(a_loop_that_is_polled_from_outside_does_not_miss_its_mail),
        ON_LOOP(misuse_of_a_loop_aborts),
        ON_LOOP(mail_from_another_thread_ends_the_sleep),
        ON_LOOP(a_started_loop_runs_mail_on_its_own_thread),
        ON_LOOP(mail_posted_before_the_stop_runs_and_a_loop_starts_again),
        ON_LOOP(loops_that_post_to_each_other_lose_nothing),
        ON_LOOP(moving_the_fake_clock_wakes_a_loop_that_sleeps),
        cmocka_unit_test(a_loop_may_be_freed_once_its_mail_has_run),
        cmocka_unit_test(loops_come_and_go_while_the_fake_clock_moves),
        cmocka_unit_test(a_failed_allocation_fails_new_and_leaks_nothing),
        cmocka_unit_test(without_descriptors_new_fails),
        cmocka_unit_test(a_clock_without_room_for_a_hook_fails_new),
        cmocka_unit_test(handles_closed_just_before_the_free_run_their_callbacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
