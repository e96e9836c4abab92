/* measure.h - what every part of this bench and bench/cacher share: time, processor time, bytes
 * that went to disk, latencies, medians, and ending loudly. Thread: any, but for bench_scratch and
 * bench_progress, which are the main thread's. */
#ifndef BENCH_STORAGE_MEASURE_H
#define BENCH_STORAGE_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hist.h"

/* Print and exit 1; the scratch directory is removed on the way out. A bench has no caller that
 * could do better. */
_Noreturn void bench_die(const char *fmt, ...) VG_PRINTF(1, 2);
/* A number from 1 to max, or die. */
size_t bench_number_arg(const char *text, size_t max);
/* As many descriptors as this process may have. */
void bench_raise_files(void);
/* calloc or die. */
void *bench_alloc(size_t count, size_t size);

/* Set by SIGINT and SIGTERM: whoever measures stops early. */
bool bench_interrupted(void);
void bench_catch_signals(void);
/* Exits 130 when interrupted. */
void bench_check_interrupt(void);

/* One line that replaces the last, on a terminal only. */
void bench_progress(const char *fmt, ...) VG_PRINTF(1, 2);

uint64_t bench_now_ns(void);

struct bench_usage {
    uint64_t wall_ns;
    uint64_t cpu_ns;    /* of the process */
    uint64_t thread_ns; /* of the calling thread */
};
void bench_usage_now(struct bench_usage *ret_usage);
/* Bytes that this process has passed to write calls so far; 0 when the kernel does not say. Not
 * write_bytes, which counts a whole folio of up to 2 MiB for a page written inside it. */
uint64_t bench_written(void);

static inline double bench_hist_us(const struct vg_hist *h, double quantile)
{
    return vg_hist_ns(h, quantile) / 1e3;
}

/* Of the values of several rounds. */
struct bench_spread {
    double min, median, max;
};
struct bench_spread bench_spread(const double *values, size_t n);

/* ---- files ---- */

/* A new directory below `parent` that goes away when the process ends, however it ends short of a
 * kill. Warns on stderr when syncing costs nothing there. */
const char *bench_scratch(const char *parent);
/* Where to measure when nobody says: build, or where we are. */
const char *bench_default_dir(void);
/* "<dir>/<name>", to be freed. */
char *bench_path(const char *dir, const char *name);
void bench_remove_tree(const char *path);
uint64_t bench_tree_bytes(const char *path);
/* Make the kernel forget what it has cached of these files. */
void bench_tree_forget(const char *path);
/* The opposite: read them all once. */
void bench_tree_warm(const char *path);
/* Let what was written or removed settle, so that one part does not pay for another. */
void bench_settle(const char *dir);

#endif
