/* vigil.h - driving the engine from one loop that this thread turns by hand. */
#ifndef BENCH_STORAGE_VIGIL_H
#define BENCH_STORAGE_VIGIL_H

#include "contest.h"
#include "server/storage/storage.h"

struct vigil_store {
    struct vg_loop *loop;
    struct vg_storage *s;
};

/* Both die when they cannot. `engine` is "lmdb" or "mem". */
void vigil_store_open(struct vigil_store *store, const char *engine, const char *dir,
                      bool unsafe_no_fsync);
void vigil_store_close(struct vigil_store *store);

/* One request under way per writer of the load, until plan->ns or plan->max_writes; then until the
 * last answer. Fills everything but close_s and written. */
void vigil_write(struct vigil_store *store, struct workload *load, const struct bench_plan *plan,
                 struct bench_slice *ret_slice);

/* An engine that stops answering must not hang the bench: arm it before the loop turns and stop it
 * afterwards. Dies when the limit passes. */
struct vigil_watchdog {
    struct vg_timer timer;
    struct vg_loop *loop;
    uint64_t limit_ns;
};
void vigil_watchdog_start(struct vigil_watchdog *dog, struct vg_loop *loop, uint64_t ns);
void vigil_watchdog_stop(struct vigil_watchdog *dog);

/* ---- reading and opening ---- */

struct vigil_reads {
    double gets_1, gets_64; /* a second, with so many under way */
    double get_1_p50_us, get_64_p99_us;
    double page_objects, page_mb; /* a second, pages of 500 */
    double span_objects, span_mb; /* a second, 10,000 at a time */
    double count_ms;              /* to count every key of the store */
    uint64_t keys;
};
/* `keys` are those of a create-only load of VIGIL_OPEN_WRITERS writers. */
void vigil_read(struct vigil_store *store, uint64_t keys, uint64_t slice_ns,
                struct vigil_reads *ret_reads);

#define VIGIL_OPEN_WRITERS 1000u
#define VIGIL_OPEN_VALUE 300u
#define VIGIL_OPENS 5

struct vigil_opens {
    uint64_t objects;
    uint64_t file_bytes;
    double build_s, build_close_s;
    size_t n;
    double warm_s[VIGIL_OPENS]; /* open until the first get is answered */
    double cold_s[VIGIL_OPENS]; /* the same, files not in the page cache */
    double kill_s[VIGIL_OPENS]; /* the same, after a SIGKILL with a full log */
    uint64_t kill_overlay;      /* bytes that the log held then */
};
void vigil_open(const char *engine, const char *dir, uint64_t objects, size_t opens,
                struct vigil_opens *ret_opens);
/* Adds keys to the store that vigil_open built, so it comes last. */
void vigil_open_killed(const char *engine, const char *dir, struct vigil_opens *o);

#endif
