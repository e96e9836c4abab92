/* summary.h - the results as text for people. */
#ifndef VG_CLI_BENCH_SUMMARY_H
#define VG_CLI_BENCH_SUMMARY_H

#include "result.h"

/* 0, -ENOMEM. */
VG_CHECK int vg_bench_summary(const struct vg_bench_run *run, struct vg_buf *out);

#endif
