/* wake_soon_test.c - a loop that wakes other threads: once for a step of its turn, and before it
 * sleeps. */
#include "loop_testing.h"

#include <unistd.h>

struct waking {
    struct vg_mail mail;
    struct vg_loop *loop;
    struct vg_waker waker, other;
    unsigned times;
    bool is_woken, is_other_woken; /* when the mail had said it */
};

static bool is_woken(struct vg_waker *w)
{
    return atomic_load(&w->state) != 0;
}

static void wake_soon(struct vg_mail *m)
{
    struct waking *w = VG_CONTAINER_OF(m, struct waking, mail);
    for (unsigned i = 0; i < w->times; i++)
        vg_loop_wake_soon(w->loop, &w->waker);
    w->is_woken = is_woken(&w->waker);
    vg_loop_wake_soon(w->loop, &w->other);
    w->is_other_woken = is_woken(&w->other);
}

struct sleeper {
    uv_prepare_t prepare;
    uv_poll_t poll;
    struct vg_loop *loop;
    struct vg_waker waker;
    bool is_woken, is_over; /* as the poll found it */
};

static void wake_before_the_poll(uv_prepare_t *handle)
{
    struct sleeper *s = VG_CONTAINER_OF(handle, struct sleeper, prepare);
    vg_loop_wake_soon(s->loop, &s->waker);
    uv_prepare_stop(handle);
}

static void look_in_the_poll(uv_poll_t *handle, int status, int events)
{
    struct sleeper *s = VG_CONTAINER_OF(handle, struct sleeper, poll);
    (void)status, (void)events;
    s->is_woken = is_woken(&s->waker);
    s->is_over = true;
    uv_poll_stop(handle);
}

static void a_loop_does_not_sleep_before_it_has_woken_others(void **state)
{
    struct sleeper s = {.loop = *state};
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    vg_waker_init(&s.waker, vg_clock_system());
    uv_prepare_init(vg_loop_uv(*state), &s.prepare);
    uv_prepare_start(&s.prepare, wake_before_the_poll);
    uv_poll_init(vg_loop_uv(*state), &s.poll, fds[1]);
    uv_poll_start(&s.poll, UV_WRITABLE, look_in_the_poll);
    vg_loop_turn_until(*state, &s.is_over);
    assert_true(s.is_woken);
    uv_close((uv_handle_t *)&s.prepare, NULL);
    uv_close((uv_handle_t *)&s.poll, NULL);
    vg_loop_turn(*state, false);
    close(fds[0]);
    close(fds[1]);
}

static struct waking turn_with_wakes(struct vg_loop *loop, unsigned times)
{
    struct waking w = {.mail = {.run = wake_soon}, .loop = loop, .times = times};
    vg_waker_init(&w.waker, vg_clock_system());
    vg_waker_init(&w.other, vg_clock_system());
    vg_loop_post(loop, &w.mail);
    vg_loop_turn(loop, false);
    return w;
}

static void wakes_of_a_turn_are_said_once_at_the_end_of_a_step(void **state)
{
    struct vg_loop *loop = *state;
    struct waking w = turn_with_wakes(loop, 3);
    assert_false(w.is_woken);
    assert_false(w.is_other_woken);
    assert_true(is_woken(&w.waker));
    assert_true(is_woken(&w.other));
    w = turn_with_wakes(loop, 100); /* so many do not wait for the end */
    assert_true(w.is_woken);
    vg_waker_init(&w.waker, vg_clock_system());
    vg_loop_wake_soon(loop, &w.waker); /* nor does who is not in a turn */
    assert_true(is_woken(&w.waker));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_LOOP(a_loop_does_not_sleep_before_it_has_woken_others),
        ON_LOOP(wakes_of_a_turn_are_said_once_at_the_end_of_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
