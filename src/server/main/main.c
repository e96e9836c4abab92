/* main.c - vigild: reads what it is told, starts the daemon, and waits for signals.
 * SIGTERM and SIGINT: readyz fails, then no new connections, watches and requests end in order, the
 * store is closed; a second one ends at once. SIGHUP: certificates and tokens are read again. */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "config.h"
#include "daemon.h"
#include "memory_limit.h"
#include "notify.h"
#include "server/storage/storage.h"

#define DAY_NS (UINT64_C(24) * 3600 * VG_NS_PER_S)
/* How long main sleeps when nothing calls for its attention sooner; so often it looks at the store.
 */
#define NAP_MS 60000u

static uint64_t now_ns(void)
{
    return vg_clock_mono_ns(vg_clock_system());
}

/* ---- signals ---- */

static sigset_t watched;

/* Blocked before there is a second thread, so that only main gets them. */
static void block_signals(void)
{
    sigemptyset(&watched);
    sigaddset(&watched, SIGTERM);
    sigaddset(&watched, SIGINT);
    sigaddset(&watched, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &watched, NULL);
    signal(SIGPIPE, SIG_IGN);
    vg_storage_guard_maps();
}

static siginfo_t last_signal;

/* The next signal, which is then in last_signal; 0: none within ms. */
static int next_signal(uint64_t ms)
{
    struct timespec wait = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    siginfo_t info;
    int n = sigtimedwait(&watched, &info, &wait);
    if (n <= 0)
        return 0;
    last_signal = info;
    return n;
}

static bool is_end(int signal_number)
{
    return signal_number == SIGTERM || signal_number == SIGINT;
}

/* ---- the life of the process ---- */

/* False: told to end before it was ready. */
static bool wait_ready(struct vg_daemon *d)
{
    while (!vg_daemon_is_ready(d)) {
        if (is_end(next_signal(1)))
            return false;
    }
    return true;
}

static void greet(struct vg_daemon *d)
{
    char state[1200];
    printf("%s\n", vg_daemon_greeting(d));
    fflush(stdout);
    snprintf(state, sizeof state, "READY=1\nSTATUS=%s", vg_daemon_greeting(d));
    vg_notify(state);
}

static void serve(struct vg_daemon *d)
{
    uint64_t watchdog_ms = vg_notify_watchdog_ms() / 2;
    uint64_t nap = watchdog_ms && watchdog_ms < NAP_MS ? watchdog_ms : NAP_MS;
    uint64_t renew_at = now_ns() + DAY_NS;
    for (;;) {
        int n = next_signal(nap);
        if (is_end(n))
            return;
        if (n == SIGHUP) {
            vg_notify("RELOADING=1");
            vg_daemon_reload(d);
            vg_notify("READY=1");
        }
        vg_daemon_look_at_store(d);
        if (watchdog_ms && vg_daemon_is_alive(d))
            vg_notify("WATCHDOG=1");
        if (now_ns() >= renew_at) {
            vg_daemon_renew(d);
            renew_at = now_ns() + DAY_NS;
        }
    }
}

/* Wait until `until_ns`, or until is_over says so. A second signal ends the process. */
static void wait_end(struct vg_daemon *d, uint64_t until_ns, bool (*is_over)(struct vg_daemon *d))
{
    while (now_ns() < until_ns && !(is_over && is_over(d))) {
        if (is_end(next_signal(2)))
            _exit(EXIT_FAILURE);
    }
}

static void end(struct vg_daemon *d, const struct vg_config *c)
{
    vg_notify("STOPPING=1");
    vg_daemon_announce_end(d, &last_signal);
    wait_end(d, now_ns() + c->shutdown_delay_ms * VG_NS_PER_MS, NULL);
    vg_daemon_drain(d);
    wait_end(d, now_ns() + c->shutdown_grace_ms * VG_NS_PER_MS, vg_daemon_is_drained);
    vg_daemon_stop(d);
}

/* ---- the process ---- */

/* 4 MiB at a time from the kernel, and 16 MiB kept when it falls free: a start with 100,000 objects
 * of 4 KB takes 400 MiB. What is not touched costs nothing. */
#define HEAP_STEP (4 << 20)
#define HEAP_KEEP (16 << 20)

/* As many descriptors as may be: each connection is one. And one heap of malloc: others grow by a
 * system call for each page, which took half of a large start, and keep what bursts left behind
 * once for each of them. Frequent small sizes are cached by each thread in any case. */
static void set_up_process(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_TOP_PAD, HEAP_STEP);
    mallopt(M_TRIM_THRESHOLD, HEAP_KEEP);
    umask(077);
}

/* Threads whose stacks have no room fail with EAGAIN. */
static void explain_memory(int err)
{
    char text[512];
    if ((err != -ENOMEM && err != -EAGAIN) || !vg_memory_limit_describe(text, sizeof text))
        return;
    fprintf(
        stderr,
        "vigild: there is not enough memory to start, and this process is limited: %s. The store "
        "reserves 256 GiB of address space, of which it uses what its data need\n",
        text);
}

static int complain(int err, const struct vg_status *status)
{
    fprintf(stderr, "vigild: %s\n", status->message[0] ? status->message : vg_err_text(err));
    explain_memory(err);
    if (err == VIGIL_E_INVALID && status->message[0])
        fprintf(stderr, "vigild: vigild --help shows all flags\n");
    return err == VIGIL_E_INVALID ? 2 : err == VIGIL_E_STORE_LOCKED ? 6 : EXIT_FAILURE;
}

static int run(const struct vg_config *c)
{
    struct vg_status status = {0};
    struct vg_daemon *d;
    block_signals();
    set_up_process();
    int r = vg_daemon_start(c, &d, &status);
    if (r < 0)
        return complain(r, &status);
    if (wait_ready(d)) {
        greet(d);
        serve(d);
    }
    end(d, c);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct vg_config c;
    struct vg_status status = {0};
    int r = vg_config_read(argc, argv, &c, &status);
    if (r < 0)
        return complain(r, &status);
    if (c.is_help)
        vg_config_help(stdout);
    else if (c.is_version)
        printf("vigild %s\n", VG_VERSION);
    else
        r = run(&c);
    vg_config_done(&c);
    return r;
}
