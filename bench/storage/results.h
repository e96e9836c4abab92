/* results.h - what a run found out, how it is gathered and how it is shown. Thread: main. */
#ifndef BENCH_STORAGE_RESULTS_H
#define BENCH_STORAGE_RESULTS_H

#include <stdio.h>

#include "contest.h"
#include "vigil.h"

#define BENCH_ROUNDS_MAX 16
#define BENCH_ROWS_MAX 8

/* The bars that `make bench` is held to. */
#define BAR_SQLITE 5.0 /* times SQLite's writes a second, at 64 writers */
#define BAR_FLOOR 0.5  /* of the appending floor's, at 64 and at 512 writers */
#define BAR_OPEN_S 1.0 /* to open with a million objects */

enum bench_side_name { SIDE_VIGIL, SIDE_SQLITE, SIDE_APPEND, SIDE_OVERWRITE, SIDE_COUNT };

struct bench_side {
    bool measured;
    double rates[BENCH_ROUNDS_MAX];
    struct bench_slice sum; /* of all rounds */
};

struct bench_row {
    uint32_t writers;
    size_t value_len;
    size_t rounds;
    enum sqlite_way sqlite_way; /* the faster of the two */
    struct bench_side sides[SIDE_COUNT];
};

struct bench_settings {
    const char *engine, *dir, *json;
    bool quick, check;
    size_t rounds, opens;
    uint64_t slice_ns, floor_ns, sustained_ns, read_ns, objects;
};

struct bench_results {
    struct bench_settings settings;
    struct bench_row rows[BENCH_ROWS_MAX];
    size_t n_rows;
    struct bench_slice sustained; /* 64 writers, without a pause */
    uint64_t sustained_files;     /* bytes on disk after it */
    uint64_t sustained_keys;
    struct vigil_opens opens;
    struct vigil_reads reads;
    bool has_opens;
};

/* Fills the row: its contestants take turns. */
void bench_row_run(const struct bench_settings *settings, const char *dir, struct bench_row *row);
void bench_sustained_run(struct bench_results *results, const char *dir);

/* vigil's rate over the other's, round by round. */
struct bench_spread bench_ratio(const struct bench_row *row, enum bench_side_name other);
struct bench_spread bench_side_rate(const struct bench_row *row, enum bench_side_name side);
/* Writes in a group, on average. */
double bench_group(const struct bench_slice *s);

struct bench_bar {
    char what[80];
    double value, bar;
    bool at_most; /* the value must be below the bar rather than above */
    bool measured;
};
#define BENCH_BARS 4
void bench_bars(const struct bench_results *results, struct bench_bar ret_bars[BENCH_BARS]);
bool bench_bar_is_met(const struct bench_bar *bar);

void bench_print(const struct bench_results *results, FILE *out);
void bench_write_json(const struct bench_results *results, FILE *out);

#endif
