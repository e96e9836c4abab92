/* loop.c - see loop.h.
 * libuv only polls: its async handle and its timer end the poll and do nothing else, so that mail
 * and timers run at one place of the turn, once. Invariants:
 *   P1 whenever libuv may sleep, the alarm stands at the earliest armed timer (on a fake clock: at
 *      once when that timer is due, else the clock's hook ends the sleep).
 *   P2 the alarm never rings early: libuv counts whole milliseconds of the same clock, so the alarm
 *      is the first whole millisecond that is not before the timer.
 *   P3 mail that the loop posts to itself costs no system call: a poll that is about to begin does
 * not sleep, and a turn that begins with mail does not either. */
#include "loop.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "base/alloc.h"
#include "timer_int.h"

struct vg_loop {
    uv_loop_t uv;
    uv_async_t wake;  /* mail came, the fake clock moved, or stop */
    uv_timer_t alarm; /* the earliest of our timers (P1) */
    struct vg_mailbox box;
    const struct vg_clock *clock;
    struct vg_timer *timers; /* heap */
    uint64_t timer_order;
    uv_thread_t thread;
    _Atomic(const void *) runner; /* whose loop it is now; identity of a thread-local */
    _Atomic bool stopping;
    bool started;
    bool turning; /* a turn is under way; turns do not nest */
    bool polling; /* libuv runs */
    bool ran;     /* mail or a timer ran in this turn */
};

static _Thread_local char thread_mark; /* its address names the thread */

/* uv_async_send skips its work when it reads, unordered, that a wake is pending. Without the fence
 * that read may overtake the store of what the loop is woken for (M2): the loop clears the wake,
 * does not see the mail, and sleeps on it. */
static void wake_loop(void *arg)
{
    struct vg_loop *loop = arg;
    if (vg_loop_is_current(loop) && loop->turning) { /* P3 */
        if (loop->polling)
            uv_stop(&loop->uv);
        return;
    }
    atomic_thread_fence(memory_order_seq_cst);
    uv_async_send(&loop->wake);
}

static void set_runner(struct vg_loop *loop, const void *mark)
{
    atomic_store_explicit(&loop->runner, mark, memory_order_relaxed);
}

static void run_mail(struct vg_loop *loop)
{
    struct vg_mail *m = vg_mailbox_take_all(&loop->box);
    while (m) {
        struct vg_mail *next = m->next; /* run may free m */
        loop->ran = true;
        m->run(m);
        m = next;
    }
}

static void run_timers(struct vg_loop *loop)
{
    uint64_t now = vg_clock_mono_ns(loop->clock);
    uint64_t newest = loop->timer_order; /* timers started meanwhile wait for the next turn */
    while (loop->timers && loop->timers->due_ns <= now && loop->timers->order <= newest) {
        struct vg_timer *t = loop->timers;
        vg_timer_heap_remove(&loop->timers, t);
        t->armed = false;
        loop->ran = true;
        t->fire(t);
    }
}

static void on_wake(uv_async_t *handle)
{
    (void)handle; /* the poll is over: that is all */
}

/* libuv runs timers before it polls, too, and would then sleep with no alarm set: the stop keeps
 * this poll from sleeping and is forgotten at its end. */
static void on_alarm(uv_timer_t *handle)
{
    uv_stop(handle->loop);
}

/* Keep libuv's one timer at our earliest (P1, P2). The delay given to libuv counts from uv_now, so
 * how old that is does not matter. */
static void set_alarm(struct vg_loop *loop)
{
    bool fake = vg_clock_is_fake(loop->clock);
    if (!loop->timers || (fake && loop->timers->due_ns > vg_clock_mono_ns(loop->clock))) {
        uv_timer_stop(&loop->alarm);
        return;
    }
    uint64_t due = loop->timers->due_ns;
    uint64_t due_ms = due / VG_NS_PER_MS + (due % VG_NS_PER_MS != 0);
    uint64_t now_ms = uv_now(&loop->uv);
    uv_timer_start(&loop->alarm, on_alarm, fake || due_ms < now_ms ? 0 : due_ms - now_ms, 0);
}

static int open_handles(struct vg_loop *loop)
{
    int r = uv_loop_init(&loop->uv);
    if (r < 0)
        return r;
    r = uv_async_init(&loop->uv, &loop->wake, on_wake);
    if (r < 0) {
        uv_loop_close(&loop->uv);
        return r;
    }
    return uv_timer_init(&loop->uv, &loop->alarm); /* cannot fail */
}

int vg_loop_new(const struct vg_clock *clock, struct vg_loop **ret_loop)
{
    struct vg_loop *loop = vg_new(struct vg_loop);
    if (!loop)
        return -ENOMEM;
    loop->clock = clock;
    set_runner(loop, &thread_mark);
    vg_mailbox_init(&loop->box, 0, wake_loop, loop);
    int r = open_handles(loop);
    if (r < 0) {
        vg_free(loop);
        return r;
    }
    r = vg_clock_on_advance(clock, wake_loop, loop); /* last: it may wake at once */
    if (r < 0)
        vg_loop_free(loop);
    else
        *ret_loop = loop;
    return r;
}

/* A handle that is still open when its loop goes is a bug of ours; without its reference it cannot
 * keep vg_loop_free waiting for ever. */
static void expect_closing(uv_handle_t *handle, void *arg)
{
    (void)arg;
    if (VG_NEVER(!uv_is_closing(handle)))
        uv_unref(handle);
}

void vg_loop_free(struct vg_loop *loop)
{
    if (!loop)
        return;
    assert(!loop->started && !loop->turning);
    vg_clock_off_advance(loop->clock, wake_loop, loop);
    uv_close((uv_handle_t *)&loop->wake, NULL);
    uv_close((uv_handle_t *)&loop->alarm, NULL);
    uv_walk(&loop->uv, expect_closing, NULL);
    uv_run(&loop->uv, UV_RUN_DEFAULT); /* lets handles close, ours and those closed just before */
    if (VG_NEVER(uv_loop_close(&loop->uv) != 0))
        return; /* leaked, because open handles point into it */
    vg_free(loop);
}

static void loop_thread(void *arg)
{
    struct vg_loop *loop = arg;
    while (!atomic_load(&loop->stopping))
        vg_loop_turn(loop, true);
    vg_loop_turn(loop, false); /* what was posted before the stop still runs */
}

int vg_loop_start(struct vg_loop *loop, const char *name)
{
    assert(!loop->started && !loop->turning);
    atomic_store(&loop->stopping, false);
    set_runner(loop, NULL);
    int r = uv_thread_create(&loop->thread, loop_thread, loop);
    if (r < 0) {
        set_runner(loop, &thread_mark);
        return r;
    }
    loop->started = true;
    char shown[16]; /* what the kernel keeps; a longer name would be refused whole */
    snprintf(shown, sizeof shown, "%.15s", name);
    pthread_setname_np(loop->thread, shown);
    return 0;
}

void vg_loop_stop(struct vg_loop *loop)
{
    if (!loop->started)
        return;
    assert(!vg_loop_is_current(loop)); /* it would wait for itself */
    atomic_store(&loop->stopping, true);
    wake_loop(loop);
    uv_thread_join(&loop->thread);
    loop->started = false;
    set_runner(loop, &thread_mark);
}

bool vg_loop_turn(struct vg_loop *loop, bool wait)
{
    assert(!loop->turning);
    loop->turning = true;
    loop->ran = false;
    set_runner(loop, &thread_mark);
    uv_update_time(&loop->uv);
    set_alarm(loop);
    bool has_mail = vg_mailbox_count(&loop->box) > 0; /* P3 */
    loop->polling = true;
    uv_run(&loop->uv, wait && !has_mail ? UV_RUN_ONCE : UV_RUN_NOWAIT);
    loop->polling = false;
    run_mail(loop);
    run_timers(loop);
    loop->turning = false;
    return loop->ran;
}

void vg_loop_turn_until(struct vg_loop *loop, const bool *flag)
{
    while (!*flag)
        vg_loop_turn(loop, true);
}

void vg_loop_post(struct vg_loop *loop, struct vg_mail *mail)
{
    int r = vg_mailbox_post(&loop->box, mail);
    assert(r == 0); /* unbounded */
    (void)r;
}

void vg_timer_start(struct vg_loop *loop, struct vg_timer *t, uint64_t delay_ns,
                    void (*fire)(struct vg_timer *t))
{
    vg_timer_stop(loop, t);
    uint64_t now = vg_clock_mono_ns(loop->clock);
    t->due_ns = delay_ns > UINT64_MAX - now ? UINT64_MAX : now + delay_ns;
    t->order = ++loop->timer_order;
    t->fire = fire;
    t->armed = true;
    vg_timer_heap_insert(&loop->timers, t);
    if (loop->timers == t)
        set_alarm(loop); /* P1: a callback that libuv runs just before it sleeps may start timers */
}

void vg_timer_stop(struct vg_loop *loop, struct vg_timer *t)
{
    if (!t->armed)
        return;
    vg_timer_heap_remove(&loop->timers, t);
    t->armed = false;
}

bool vg_loop_is_current(const struct vg_loop *loop)
{
    return atomic_load_explicit(&loop->runner, memory_order_relaxed) == &thread_mark;
}

const struct vg_clock *vg_loop_clock(const struct vg_loop *loop)
{
    return loop->clock;
}

uv_loop_t *vg_loop_uv(struct vg_loop *loop)
{
    return &loop->uv;
}
