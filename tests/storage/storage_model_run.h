/* storage_model_run.h - a run: an engine, a model, and the watches that live across operations.
 * The steps are in storage_model_test.c; comparing the two is in storage_model_check.c. */
#ifndef VG_TESTS_STORAGE_MODEL_RUN_H
#define VG_TESTS_STORAGE_MODEL_RUN_H

#include "test_support.h"

#include "base/rng.h"
#include "storage_driver.h"
#include "storage_model.h"

enum { RUN_WATCHES = 8, RUN_KEYS = 21 };

/* Every key there is. */
extern const struct vg_slice run_keys[RUN_KEYS];

/* A watch and how far it has been compared. */
struct run_watch {
    struct vg_drv_watch *w; /* NULL: none */
    struct vg_keys keys;
    vg_rev from;
    bool is_paused;
    size_t n_checked;   /* events that were compared */
    size_t next_change; /* of the model: where to look for the next one */
};

struct run {
    struct vg_drv d;
    struct model m;
    struct vg_rng rng;
    uint64_t seed, step;
    uint64_t next_value;
    uint64_t n_starved; /* requests that failed for lack of memory */
    bool is_local;      /* the engine says of every record what only some can say */
    bool is_ordered;    /* transactions happen in the order of submitting */
    bool is_timed;      /* the engine lives by the driver's clock */
    bool is_killed;     /* the store is never closed before it is opened again */
    bool is_starved;    /* now and then an allocation fails */
    struct run_watch watches[RUN_WATCHES];
};

static inline uint64_t below(struct run *r, uint64_t n)
{
    return vg_rng_below(&r->rng, n);
}

/* Print where the run is and what differs, and fail. */
#define mismatch(r, ...)                                                                           \
    do {                                                                                           \
        print_error("seed=%llu step=%llu: ", (unsigned long long)(r)->seed,                        \
                    (unsigned long long)(r)->step);                                                \
        print_error(__VA_ARGS__);                                                                  \
        print_error("\n");                                                                         \
        fail();                                                                                    \
    } while (0)

/* A number that both should agree on. */
void check_number(struct run *r, const char *what, uint64_t got, uint64_t want);
void check_err(struct run *r, const char *what, int got, int want);
/* A record and the change that the model has for it (MODEL_NONE: there should be no record). */
void check_rec(struct run *r, const char *what, const struct vg_rec *got, size_t change,
               bool keys_only);
/* A range that was answered with 0: exactly what the model has. */
void check_range(struct run *r, const struct vg_range *range);
/* All keys at one revision. */
void check_state(struct run *r, vg_rev at);

/* Start to compare a watch that has just been opened. */
void watch_begin(struct run *r, struct run_watch *rw, struct vg_drv_watch *w, struct vg_keys keys,
                 vg_rev from);
/* What has come so far must be what the model has, in order and without a gap; if the watch has
 * ended, it had reason to. */
void check_watch(struct run *r, struct run_watch *rw);
/* Nothing may be missing up to the present. */
void check_watch_complete(struct run *r, struct run_watch *rw);

/* Steps: transactions of all shapes, compared when they are answered. */
void step_txn(struct run *r);
void step_pipeline(struct run *r);

/* Between the two, one allocation on whatever thread may fail, if the run is of that kind. */
void starve(struct run *r);
void feed(struct run *r);
/* Did a request fail for that? Then nothing must have happened (S5). */
bool has_starved(struct run *r, int err);

#endif
