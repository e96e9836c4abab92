/* procs.h - processor time and memory of processes on this machine, from /proc. Thread: any. */
#ifndef VG_CLI_BENCH_PROCS_H
#define VG_CLI_BENCH_PROCS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/macros.h"

struct vg_bench_usage {
    uint64_t cpu_ns; /* of all threads that are there, from the scheduler */
    uint64_t rss_bytes, anonymous_bytes;
};
/* Added to *usage. False: it is gone, or not ours to look at. */
bool vg_bench_proc_add_cpu(pid_t pid, struct vg_bench_usage *usage);
bool vg_bench_proc_add_memory(pid_t pid, struct vg_bench_usage *usage);
void vg_bench_proc_comm(pid_t pid, char *ret, size_t size); /* "?" when it is gone */
/* The process that listens on this TCP port here; 0: none that we can see. */
pid_t vg_bench_proc_listener(uint16_t port);

#endif
