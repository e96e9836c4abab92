/* clock.c - see clock.h. */
#include "clock.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t signals, forgotten;

static void on_signal(int number)
{
    (void)number;
    if (++signals > 1)
        _exit(130);
}

void vg_bench_catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < VG_ARRAY_LEN(numbers); i++)
        (void)sigaction(numbers[i], &action, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
}

bool vg_bench_is_interrupted(void)
{
    return signals != forgotten;
}

void vg_bench_forget_interrupt(void)
{
    forgotten = signals;
}

void vg_bench_nap(uint64_t ns)
{
    (void)nanosleep(&(struct timespec){.tv_sec = (time_t)(ns / VG_NS_PER_S),
                                       .tv_nsec = (long)(ns % VG_NS_PER_S)},
                    NULL);
}
