/* contest.h - one slice of writing, and who can do it.
 * A row of the table is a number of writers and a size; its contestants take turns, slice after
 * slice, so that whatever else the machine does falls on all of them. Each keeps its files for the
 * row and is opened and closed around its slice: nobody works in the background of another. */
#ifndef BENCH_STORAGE_CONTEST_H
#define BENCH_STORAGE_CONTEST_H

#include "measure.h"
#include "workload.h"

#define BENCH_QUARTERS_MAX 256

struct bench_plan {
    uint32_t writers;
    uint64_t ns;         /* how long */
    uint64_t max_writes; /* or how many; 0 = no limit */
    /* For the floor: what a group of the engine held on average. */
    double group;
    double group_bytes;
};

struct bench_slice {
    uint64_t writes;
    double secs;
    double user_bytes;  /* keys, headers and values that were acknowledged */
    double cpu_s;       /* of the process */
    double engine_s;    /* without the thread that drives the engine */
    double close_s;     /* closing afterwards */
    uint64_t written;   /* bytes passed to write calls, closing included */
    uint64_t commits;   /* groups */
    uint64_t syncs;     /* of the log */
    uint64_t wal_bytes; /* written to the log */
    uint64_t checkpoints;
    uint64_t refused;      /* as busy, and sent again */
    uint64_t total_writes; /* the ones after the time was up included: what commits counts */
    struct vg_hist latency;
    uint32_t quarters[BENCH_QUARTERS_MAX]; /* writes in each quarter of a second */
};

static inline double bench_rate(const struct bench_slice *s)
{
    return s->secs > 0 ? (double)s->writes / s->secs : 0;
}

/* ---- vigil ---- */

struct vigil_row;
struct vigil_row *vigil_row_new(const char *engine, const char *dir, uint32_t writers,
                                size_t value_len);
/* Make the first keys; not timed. */
void vigil_row_fill(struct vigil_row *row);
void vigil_row_slice(struct vigil_row *row, const struct bench_plan *plan,
                     struct bench_slice *ret_slice);
const struct workload *vigil_row_load(const struct vigil_row *row);
void vigil_row_free(struct vigil_row *row);

/* ---- SQLite, used as kine uses it ---- */

/* OWN: a connection and a thread for each writer, as a pool would have. QUEUE: one connection that
 * works the writers' requests off in turn, so that nobody waits for a lock. */
enum sqlite_way { SQLITE_WAY_OWN, SQLITE_WAY_QUEUE };
bool sqlite_is_there(void);
struct sqlite_row;
struct sqlite_row *sqlite_row_new(const char *dir, uint32_t writers, size_t value_len);
void sqlite_row_fill(struct sqlite_row *row);
void sqlite_row_slice(struct sqlite_row *row, const struct bench_plan *plan, enum sqlite_way way,
                      struct bench_slice *ret_slice);
void sqlite_row_free(struct sqlite_row *row);

/* ---- the grouped floor: write and fdatasync, nothing else ---- */

/* APPEND grows the file, so that each sync also commits its new length. OVERWRITE goes round in
 * space that was written before. */
enum floor_way { FLOOR_APPEND, FLOOR_OVERWRITE };
struct floor_row;
struct floor_row *floor_row_new(const char *dir, enum floor_way way);
void floor_row_slice(struct floor_row *row, const struct bench_plan *plan,
                     struct bench_slice *ret_slice);
void floor_row_free(struct floor_row *row);

#endif
