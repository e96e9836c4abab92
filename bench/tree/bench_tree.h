/* bench_tree.h - what the parts of bench_tree share. One thread; what fails ends the process. */
#ifndef BENCH_TREE_H
#define BENCH_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/storage/record.h"

/* ---- workload.c: records with the keys of a large cluster ---- */

struct work {
    const struct vg_rec **load; /* in key order: what is there at first */
    size_t n_load;
    const struct vg_rec **changes; /* filled anew by work_replace and work_insert */
    size_t n_changes;
    uint64_t *names; /* a random number for each key there may ever be; load has the even ones */
    uint64_t rng;
    vg_rev rev;
};

void work_init(struct work *w, size_t n_load, size_t n_changes);
void work_done(struct work *w);
/* New versions of random loaded records. */
void work_replace(struct work *w);
/* Records whose keys are not loaded, at random places. */
void work_insert(struct work *w);
void work_shuffle(struct work *w);
void work_drop_changes(struct work *w);

/* ---- the contenders ---- */

enum job { JOB_REPLACE, JOB_INSERT, JOB_REMOVE, JOB_GET, JOB_WALK, JOB_COUNT, JOBS };

struct contender {
    const char *name;
    void *(*open)(const struct work *w);
    void (*close)(void *state);
    /* The change records of w, `batch` of them between two snapshots. Operations done. */
    size_t (*run[JOBS])(void *state, const struct work *w, size_t batch);
};

extern const struct contender with_tree, with_tsearch;

/* Of the tree alone. */
struct tree_bytes {
    double per_record; /* nodes of the working tree and spares, over the records */
    double fill;       /* records and children over the places for them */
};
struct tree_bytes with_tree_bytes(void *state);

/* ---- measure.c ---- */

struct sample {
    double ns;           /* processor time per operation */
    double instructions; /* per operation, in user space; 0: the kernel does not count them */
};

struct sample measure(const struct contender *c, void *state, enum job job, const struct work *w,
                      size_t batch);
_Noreturn void die(const char *what);
void *must_alloc(size_t count, size_t size);

#endif
