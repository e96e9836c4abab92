/* fault_load.h - many transactions of the model under way at once, from several loops.
 * Each writer is a thread with a loop of its own and keeps `slots` transactions in flight; one of
 * them also compacts and moves the clock, if told to. The calling thread may watch meanwhile.
 * The run ends when `txns` were sent and all are answered. */
#ifndef VG_TESTS_FAULT_LOAD_H
#define VG_TESTS_FAULT_LOAD_H

#include <stdatomic.h>

#include "fault_model.h"

struct fl_report {
    uint64_t id;
    enum fm_fate fate;
    int err;
    vg_rev rev;
};

struct fl_load {
    struct fm *m;
    struct vg_drv *host; /* of the calling thread */
    unsigned writers, slots;
    uint64_t txns;
    uint64_t seed;
    bool watched;                /* record the log, into the truth of the model */
    unsigned compact_every;      /* answers between two compactions; 0: never */
    vg_rev compact_max;          /* not beyond; 0: up to what the watcher has seen */
    struct vg_fake_clock *clock; /* moved now and then; NULL: none to move */
    /* After each answer, on the writer's thread; may be NULL. */
    void (*on_answer)(const struct fl_report *report, void *arg);
    void *arg;
    _Atomic uint64_t to_send; /* the run's own from here on */
    _Atomic unsigned writers_left;
    struct vg_mail end_mail;
    bool is_over; /* the host's loop heard the last writer */
};

/* Run it; with `watched`, the truth is extended by what was written. */
void fl_run(struct fl_load *load);

#endif
