/* result.h - what one run of `vigil bench` found: the machine, the server, and a result for each
 * scenario as it was run, with the parameters that it was run with. Written as one JSON document
 * (format vigil-bench/1), which everything else is made from: the table, the page, the charts.
 *
 * A metric is a number whose name ends in its unit: _us, _ms, _s, _bytes, _per_s. What was not
 * measured is absent: without the server's processes at hand there is nothing that begins with
 * server_. A result that failed has a sentence in `error` and no metrics. Texts are copied, and cut
 * where they are too long. Thread: one owner. */
#ifndef VG_CLI_BENCH_RESULT_H
#define VG_CLI_BENCH_RESULT_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/hist.h"

#define VG_BENCH_FORMAT "vigil-bench/1"
#define VG_BENCH_NAME_MAX 48u
#define VG_BENCH_TEXT_MAX 160u
#define VG_BENCH_PARAMS_MAX 24u
#define VG_BENCH_METRICS_MAX 64u
#define VG_BENCH_PROCESSES_MAX 16u

enum vg_bench_param_type { VG_BENCH_TEXT, VG_BENCH_NUMBER, VG_BENCH_BOOL };

struct vg_bench_param {
    char name[VG_BENCH_NAME_MAX];
    enum vg_bench_param_type type;
    char text[VG_BENCH_NAME_MAX];
    double number; /* of a bool: 0 or 1 */
};

struct vg_bench_metric {
    char name[VG_BENCH_NAME_MAX];
    double value;
};

struct vg_bench_result {
    char scenario[VG_BENCH_NAME_MAX];
    struct vg_bench_param params[VG_BENCH_PARAMS_MAX];
    size_t n_params;
    struct vg_bench_metric metrics[VG_BENCH_METRICS_MAX];
    size_t n_metrics;
    double tool_cpu_share; /* processor time of the tool over wall time and all cores: 0 to 1 */
    bool tool_was_the_limit;
    char error[VG_BENCH_TEXT_MAX]; /* "": it went well */
};

struct vg_bench_process {
    pid_t pid;
    char comm[32];
};

struct vg_bench_run {
    char date[32]; /* 2026-11-16T08:00:00Z */
    struct {
        char cpu[VG_BENCH_TEXT_MAX], kernel[VG_BENCH_TEXT_MAX];
        unsigned cores;
        uint64_t memory_bytes;
    } machine;
    struct {
        char name[VG_BENCH_TEXT_MAX], version[VG_BENCH_TEXT_MAX];
        struct vg_bench_process processes[VG_BENCH_PROCESSES_MAX];
        size_t n_processes; /* 0: they are not here, or not known */
    } server;
    struct vg_bench_result *results;
    size_t n, cap;
};

/* Fills date and machine. */
void vg_bench_run_init(struct vg_bench_run *run);
void vg_bench_run_done(struct vg_bench_run *run);
/* A new result at the end, valid until the next one. NULL: out of memory. */
struct vg_bench_result *vg_bench_run_add(struct vg_bench_run *run, const char *scenario);

/* Parameters and metrics keep their order; one that does not fit is dropped (never: see the
 * limits). A value that is not finite is dropped too. */
void vg_bench_param_text(struct vg_bench_result *r, const char *name, const char *value);
void vg_bench_param_number(struct vg_bench_result *r, const char *name, double value);
void vg_bench_param_bool(struct vg_bench_result *r, const char *name, bool value);
void vg_bench_metric(struct vg_bench_result *r, const char *name, double value);
/* <prefix>p50_ms and <prefix>p99_ms of times. */
void vg_bench_quantiles(struct vg_bench_result *r, const char *prefix, const struct vg_hist *h);
/* The metric's value, or `otherwise`. */
double vg_bench_metric_of(const struct vg_bench_result *r, const char *name, double otherwise);
/* The metrics are forgotten. */
void vg_bench_fail(struct vg_bench_result *r, const char *fmt, ...) VG_PRINTF(2, 3);

/* Append the document, laid out, with a line break at its end. 0, -ENOMEM, VIGIL_E_*. */
VG_CHECK int vg_bench_run_write(const struct vg_bench_run *run, struct vg_buf *out);

#endif
