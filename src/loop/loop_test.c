/* loop_test.c - mail, the order of a turn, and the end of a loop. Threads: loop_threads_test.c;
 * timers: timer_test.c. */
#include "loop_testing.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

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
        cmocka_unit_test(a_failed_allocation_fails_new_and_leaks_nothing),
        cmocka_unit_test(without_descriptors_new_fails),
        cmocka_unit_test(a_clock_without_room_for_a_hook_fails_new),
        cmocka_unit_test(handles_closed_just_before_the_free_run_their_callbacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
