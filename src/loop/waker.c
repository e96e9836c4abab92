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

static struct timespec time_left(const struct vg_waker *w, uint64_t deadline_ns)
{
    uint64_t now = vg_clock_mono_ns(w->clock);
    uint64_t left = deadline_ns > now ? deadline_ns - now : 0;
    return (struct timespec){.tv_sec = (time_t)(left / 1000000000u),
                             .tv_nsec = (long)(left % 1000000000u)};
}

void vg_waker_wait(struct vg_waker *w, uint64_t deadline_ns)
{
    struct pollfd pfd = {.fd = w->fd, .events = POLLIN};
    bool timed = deadline_ns != VG_WAIT_FOREVER;
    struct timespec left = {0};
    if (timed)
        left = time_left(w, deadline_ns);
    bool due = timed && left.tv_sec == 0 && left.tv_nsec == 0;
    if (timed && !due && vg_clock_is_fake(w->clock))
        timed = false;
    if (ppoll(&pfd, 1, timed ? &left : NULL, NULL) > 0) {
        uint64_t count;
        ssize_t n = read(w->fd, &count, sizeof count);
        (void)n;
    }
}
