/* loop.c - see loop.h.
 * libuv only polls: the event descriptor and its timer end the poll and do nothing else, so that
 * mail and timers run at one place of the turn, once. Waking is ours rather than uv_async's, whose
 * receiver spins while the sender is not done, which on few cores means: while it does not run; and
 * a loop that is awake needs no system call to be told. Invariants:
 *   P1 whenever libuv may sleep, the alarm stands at the earliest armed timer (on a fake clock: at
 *      once when that timer is due, else the clock's hook ends the sleep).
 *   P2 the alarm never rings early: libuv counts whole milliseconds of the same clock, so the alarm
 *      is the first whole millisecond that is not before the timer.
 *   P3 who wakes sets `woken` and then looks at `sleeping`; who sleeps sets `sleeping` and then
 * looks at `woken`: one of them sees the other, so no wake is slept through.
 *   P4 a sender counts itself in `posting` before its mail can be seen and leaves as the last thing
 *      it does to the loop: who was answered may free the loop, which waits for the count.
 *   P5 nobody is left to be woken soon when libuv may sleep: what runs before the poll may have
 *      asked for it, and `lie_down`, which was started first, is the last of libuv's that does. */
#include "loop.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#include <sanitizer/linux_syscall_hooks.h>
#define TELLS_TSAN
#endif
#endif

#include "base/alloc.h"
#include "timer_int.h"

struct vg_loop {
    int wake_fd;           /* mail came, the fake clock moved, or stop */
    uv_poll_t wake;        /* of wake_fd */
    uv_prepare_t lie_down; /* P5 */
    uv_timer_t alarm;      /* the earliest of our timers (P1) */
    struct vg_mailbox box;
    const struct vg_clock *clock;
    struct vg_timer *timers; /* heap */
    uint64_t timer_order;
    uv_thread_t thread;
    _Atomic(const void *) runner; /* whose loop it is now; identity of a thread-local */
    _Atomic bool stopping;
    _Atomic bool woken, sleeping; /* P3 */
    _Atomic bool polling;         /* libuv runs */
    _Atomic unsigned posting;     /* P4 */
    bool started;
    _Atomic bool turning;  /* a turn is under way; turns do not nest */
    bool ran;              /* mail or a timer ran in this turn */
    unsigned n_soon;       /* how often that was said */
    struct vg_waker *soon; /* to be woken at the end of this step; NULL: nobody */
    uv_loop_t uv;          /* last, for it is long: what threads share lies together */
};

/* 16: a quarter of what a loop has in a turn with 256 writers; the committing thread then works
 * while the loop still reads. */
#define SOON_MAX 16u

static _Thread_local char thread_mark; /* its address names the thread */

/* As the loop's own thread: the turn is not over before mail has run, unless libuv is about to
 * sleep. As another: a byte in the descriptor, for a sleeper only. */
static void wake_loop(void *arg)
{
    struct vg_loop *loop = arg;
    if (atomic_exchange(&loop->woken, true))
        return;
    if (vg_loop_is_current(loop) && loop->turning) {
        if (atomic_load_explicit(&loop->polling, memory_order_relaxed))
            uv_stop(&loop->uv);
    } else if (atomic_load(&loop->sleeping)) {
        uint64_t one = 1;
        ssize_t n = write(loop->wake_fd, &one, sizeof one); /* full means that it is awake */
        (void)n;
    }
}

static void wake_those(struct vg_loop *loop)
{
    struct vg_waker *w = loop->soon;
    loop->soon = NULL;
    loop->n_soon = 0;
    if (w)
        vg_waker_wake(w);
}

void vg_loop_wake_soon(struct vg_loop *loop, struct vg_waker *waker)
{
    if (!vg_loop_is_current(loop) || !loop->turning) {
        vg_waker_wake(waker);
        return;
    }
    if (loop->soon != waker)
        wake_those(loop);
    loop->soon = waker;
    if (++loop->n_soon == SOON_MAX)
        wake_those(loop);
}

static void on_lie_down(uv_prepare_t *handle)
{
    wake_those(VG_CONTAINER_OF(handle, struct vg_loop, lie_down));
}

static void set_runner(struct vg_loop *loop, const void *mark)
{
    atomic_store(&loop->runner, mark);
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

static void on_wake(uv_poll_t *handle, int status, int events)
{
    struct vg_loop *loop = VG_CONTAINER_OF(handle, struct vg_loop, wake);
    uint64_t n;
    ssize_t r = read(loop->wake_fd, &n, sizeof n); /* the poll is over: that is all */
    (void)r;
    (void)status;
    (void)events;
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
    loop->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    r = loop->wake_fd < 0 ? -errno : uv_poll_init(&loop->uv, &loop->wake, loop->wake_fd);
    if (r < 0) {
        if (loop->wake_fd >= 0)
            close(loop->wake_fd);
        uv_loop_close(&loop->uv);
        return r;
    }
    (void)uv_poll_start(&loop->wake, UV_READABLE, on_wake); /* cannot fail, nor can the next */
    (void)uv_prepare_init(&loop->uv, &loop->lie_down);
    (void)uv_prepare_start(&loop->lie_down, on_lie_down);
    return uv_timer_init(&loop->uv, &loop->alarm);
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

/* TSan keeps a book of descriptors, and libuv closes its own by bare system calls, which TSan does
 * not see: to it, whoever is given one of the numbers next races with who had it. */
static void tell_of_closing(const uv_loop_t *uv)
{
#ifdef TELLS_TSAN
    const int fds[] = {uv->backend_fd,       uv->async_io_watcher.fd, uv->async_wfd,
                       uv->signal_pipefd[0], uv->signal_pipefd[1],    uv->inotify_fd};
    for (size_t i = 0; i < VG_ARRAY_LEN(fds); i++)
        if (fds[i] >= 0)
            __sanitizer_syscall_pre_close(fds[i]);
#else
    (void)uv;
#endif
}

void vg_loop_free(struct vg_loop *loop)
{
    if (!loop)
        return;
    assert(!loop->started && !loop->turning);
    while (atomic_load(&loop->posting) > 0)
        sched_yield();
    vg_clock_off_advance(loop->clock, wake_loop, loop);
    uv_close((uv_handle_t *)&loop->wake, NULL);
    uv_close((uv_handle_t *)&loop->lie_down, NULL);
    uv_close((uv_handle_t *)&loop->alarm, NULL);
    uv_walk(&loop->uv, expect_closing, NULL);
    uv_run(&loop->uv, UV_RUN_DEFAULT); /* lets handles close, ours and those closed just before */
    tell_of_closing(&loop->uv);
    if (VG_NEVER(uv_loop_close(&loop->uv) != 0))
        return; /* leaked, because open handles point into it */
    close(loop->wake_fd);
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

static void poll_once(struct vg_loop *loop, bool wait)
{
    if (wait) {
        atomic_store(&loop->sleeping, true);
        wait = !atomic_load(&loop->woken);
    }
    atomic_store_explicit(&loop->polling, true, memory_order_relaxed);
    uv_run(&loop->uv, wait ? UV_RUN_ONCE : UV_RUN_NOWAIT);
    atomic_store_explicit(&loop->polling, false, memory_order_relaxed);
    atomic_store(&loop->sleeping, false);
    atomic_exchange(&loop->woken, false); /* before the mail is taken */
}

bool vg_loop_turn(struct vg_loop *loop, bool wait)
{
    assert(!loop->turning);
    loop->turning = true;
    loop->ran = false;
    set_runner(loop, &thread_mark);
    uv_update_time(&loop->uv);
    set_alarm(loop);
    poll_once(loop, wait);
    wake_those(loop);
    run_mail(loop);
    wake_those(loop);
    run_timers(loop);
    wake_those(loop);
    loop->turning = false;
    return loop->ran;
}

int vg_loop_timeout_ms(struct vg_loop *loop)
{
    /* As before a sleep of our own: whoever posts from here on writes to the descriptor. */
    atomic_store(&loop->sleeping, true);
    if (atomic_load(&loop->woken))
        return 0;
    uv_update_time(&loop->uv);
    set_alarm(loop);
    return uv_backend_timeout(&loop->uv);
}

void vg_loop_turn_until(struct vg_loop *loop, const bool *flag)
{
    while (!*flag)
        vg_loop_turn(loop, true);
}

void vg_loop_post(struct vg_loop *loop, struct vg_mail *mail)
{
    atomic_fetch_add(&loop->posting, 1);
    int r = vg_mailbox_post(&loop->box, mail);
    atomic_fetch_sub(&loop->posting, 1);
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
    return atomic_load(&loop->runner) == &thread_mark;
}

const struct vg_clock *vg_loop_clock(const struct vg_loop *loop)
{
    return loop->clock;
}

uv_loop_t *vg_loop_uv(struct vg_loop *loop)
{
    return &loop->uv;
}
