/* clock.h - the time, and whether the user wants to stop. Thread: any. */
#ifndef VG_CLI_BENCH_CLOCK_H
#define VG_CLI_BENCH_CLOCK_H

#include <stdbool.h>

#include "base/clock.h"

static inline uint64_t vg_bench_now(void)
{
    return vg_clock_mono_ns(vg_clock_system());
}
/* SIGINT, SIGTERM and SIGHUP leave a mark, which whoever waits looks at; a second one ends the
 * process at once. */
void vg_bench_catch_signals(void);
bool vg_bench_is_interrupted(void);
/* Cleaning up is not interrupted by what came before. */
void vg_bench_forget_interrupt(void);
void vg_bench_nap(uint64_t ns);

#endif
