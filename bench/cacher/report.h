/* report.h - what a run found out: rows of numbers and bars, grouped by part. It lies in memory
 * that the processes of all parts share (part.h), so it holds no pointers but to constants. */
#ifndef BENCH_CACHER_REPORT_H
#define BENCH_CACHER_REPORT_H

#include <stdio.h>

#include "measure.h"

#define REPORT_ROWS 64
#define REPORT_BARS 48
#define ROUNDS_MAX 16

struct row {
    int part;
    char what[80];
    const char *unit;
    struct bench_spread v;
};

struct bar {
    int part;
    char what[80];
    double value, limit; /* met: at most the limit */
};

struct settings {
    const char *dir, *json, *only;
    bool quick, check;
    size_t rounds;
};

struct report {
    struct settings settings;
    int part; /* that is running: rows and bars are added to it */
    struct row rows[REPORT_ROWS];
    struct bar bars[REPORT_BARS];
    size_t n_rows, n_bars;
};

/* Add one row from the values of n rounds, or from one. */
void report_row(struct report *r, const char *unit, const double *values, size_t n, const char *fmt,
                ...) VG_PRINTF(5, 6);
void report_one(struct report *r, const char *unit, double value, const char *fmt, ...)
    VG_PRINTF(4, 5);
void report_bar(struct report *r, double value, double limit, const char *fmt, ...) VG_PRINTF(4, 5);
static inline double report_median(const double *values, size_t n)
{
    return bench_spread(values, n).median;
}

/* What stands above and below the rows of a part. */
struct part_text {
    const char *name, *title, *peer; /* peer: what kube-apiserver's own numbers imply; NULL */
};
void report_print(const struct report *r, int part, const struct part_text *text, FILE *out);
/* As JSON, to the file that --json names, if any. */
void report_save(const struct report *r, const struct part_text *parts);
bool report_is_met(const struct report *r);

#endif
