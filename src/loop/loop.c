/* loop.c - see loop.h. */
#include "loop.h"

#include <errno.h>
#include <pthread.h>

#include "base/alloc.h"
#include "timer_int.h"

struct vg_loop {
    uv_loop_t uv;
    uv_async_t wake;  /* mail came, or the fake clock moved */
    uv_timer_t alarm; /* the earliest of our timers, on a real clock */
    struct vg_mailbox box;
    const struct vg_clock *clock;
    struct vg_timer *timers; /* heap */
    uint64_t timer_order;
    uv_thread_t thread;
    _Atomic(const void *) runner; /* whoever turns the loop now; identity of a thread-local */
    _Atomic bool stopping;
    bool started;
    bool ran; /* something ran in this turn */
};

static _Thread_local char thread_mark; /* its address names the thread */

static void wake_loop(void *arg)
{
    struct vg_loop *loop = arg;
    uv_async_send(&loop->wake);
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
    struct vg_loop *loop = VG_CONTAINER_OF(handle, struct vg_loop, wake);
    run_mail(loop);
    run_timers(loop);
}

static void on_alarm(uv_timer_t *handle)
{
    run_timers(VG_CONTAINER_OF(handle, struct vg_loop, alarm));
}

/* Keep libuv's one timer at our earliest. It counts in milliseconds: round up, never early. */
static void set_alarm(struct vg_loop *loop)
{
    if (!loop->timers || vg_clock_is_fake(loop->clock)) {
        uv_timer_stop(&loop->alarm);
        return;
    }
    uint64_t now = vg_clock_mono_ns(loop->clock);
    uint64_t due = loop->timers->due_ns;
    uint64_t ms = due > now ? (due - now + 999999u) / 1000000u : 0;
    uv_update_time(&loop->uv);
    uv_timer_start(&loop->alarm, on_alarm, ms, 0);
}

int vg_loop_new(const struct vg_clock *clock, struct vg_loop **ret_loop)
{
    struct vg_loop *loop = vg_new(struct vg_loop);
    if (!loop)
        return -ENOMEM;
    loop->clock = clock;
    int r = uv_loop_init(&loop->uv);
    if (r < 0) {
        vg_free(loop);
        return r;
    }
    r = uv_async_init(&loop->uv, &loop->wake, on_wake);
    if (r < 0) {
        uv_loop_close(&loop->uv);
        vg_free(loop);
        return r;
    }
    uv_timer_init(&loop->uv, &loop->alarm);
    vg_mailbox_init(&loop->box, 0, wake_loop, loop);
    if (vg_clock_is_fake(clock))
        r = vg_clock_on_advance(clock, wake_loop, loop);
    if (r < 0) {
        vg_loop_free(loop);
        return r;
    }
    *ret_loop = loop;
    return 0;
}

void vg_loop_free(struct vg_loop *loop)
{
    if (!loop)
        return;
    assert(!loop->started);
    if (vg_clock_is_fake(loop->clock))
        vg_clock_off_advance(loop->clock, wake_loop, loop);
    uv_close((uv_handle_t *)&loop->wake, NULL);
    uv_close((uv_handle_t *)&loop->alarm, NULL);
    uv_run(&loop->uv, UV_RUN_DEFAULT); /* lets the two handles close */
    int r = uv_loop_close(&loop->uv);
    assert(r == 0 && "handles were left open on the loop");
    (void)r;
    vg_free(loop);
}

static void loop_thread(void *arg)
{
    struct vg_loop *loop = arg;
    while (!atomic_load(&loop->stopping))
        vg_loop_turn(loop, true);
}

int vg_loop_start(struct vg_loop *loop, const char *name)
{
    atomic_store(&loop->stopping, false);
    int r = uv_thread_create(&loop->thread, loop_thread, loop);
    if (r < 0)
        return r;
    loop->started = true;
    pthread_setname_np(loop->thread, name);
    return 0;
}

void vg_loop_stop(struct vg_loop *loop)
{
    if (!loop->started)
        return;
    atomic_store(&loop->stopping, true);
    uv_async_send(&loop->wake);
    uv_thread_join(&loop->thread);
    loop->started = false;
}

bool vg_loop_turn(struct vg_loop *loop, bool wait)
{
    atomic_store_explicit(&loop->runner, &thread_mark, memory_order_relaxed);
    loop->ran = false;
    run_mail(loop);
    run_timers(loop);
    set_alarm(loop);
    uv_run(&loop->uv, wait && !loop->ran ? UV_RUN_ONCE : UV_RUN_NOWAIT);
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
