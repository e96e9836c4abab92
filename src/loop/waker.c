/* waker.c - an eventfd, because its count remembers a wake that nobody was waiting for. */
#include "waker.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

int vg_waker_init(struct vg_waker *w, const struct vg_clock *clock)
{
    w->clock = clock;
    w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return w->fd < 0 ? -errno : 0;
}

void vg_waker_done(struct vg_waker *w)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
}

void vg_waker_wake(struct vg_waker *w)
{
    uint64_t one = 1;
    /* EAGAIN means the count is at its top: the sleeper is woken anyway. */
    ssize_t n = write(w->fd, &one, sizeof one);
    (void)n;
}

void vg_waker_wake_cb(void *w)
{
    vg_waker_wake(w);
}

/* 0: due. */
static uint64_t time_left(const struct vg_waker *w, uint64_t deadline_ns)
{
    uint64_t now = vg_clock_mono_ns(w->clock);
    return deadline_ns > now ? deadline_ns - now : 0;
}

/* As ppoll: positive when woken, 0 when the time is over, negative when a signal came. */
static int sleep_once(const struct vg_waker *w, uint64_t deadline_ns)
{
    struct pollfd pfd = {.fd = w->fd, .events = POLLIN};
    uint64_t left = time_left(w, deadline_ns);
    struct timespec timeout = {.tv_sec = (time_t)(left / VG_NS_PER_S),
                               .tv_nsec = (long)(left % VG_NS_PER_S)};
    bool forever = deadline_ns == VG_WAIT_FOREVER || (left && vg_clock_is_fake(w->clock));
    return ppoll(&pfd, 1, forever ? NULL : &timeout, NULL);
}

void vg_waker_wait(struct vg_waker *w, uint64_t deadline_ns)
{
    int n;
    do
        n = sleep_once(w, deadline_ns);
    while (n < 0 && errno == EINTR);
    uint64_t count;
    if (n > 0 && VG_NEVER(read(w->fd, &count, sizeof count) < 0))
        return; /* a second thread waits here; only the owner may */
}
