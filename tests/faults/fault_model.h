/* fault_model.h - what a store may hold after a fault, and the check that it holds just that.
 * Every transaction of the tests has a number, and number and seed say all of it: keys, values,
 * time to live, what it expects. So any process can tell for a piece of the log which transaction
 * made it, whether it is whole, and whether it is one that was acknowledged.
 * The truth is the log as far as it is certain: of a store that ran on after a cut, what a watch
 * saw there. Promises checked of a store that was cut off:
 *   F1 what was acknowledged or seen by a watch before the cut is in its log, at its revision.
 *   F2 every revision from the compacted one on is there, and is a whole transaction that was sent
 *      (the one that the truth names, where it names one) or keys whose time was over.
 *   F3 records name their predecessors rightly, and a range at any revision is the log replayed.
 *   F4 a watch from any revision of the window gets exactly the log from there.
 * Thread: vg_fm_send, _answer, _cut: any; the rest: one, while nothing is under way. */
#ifndef VG_TESTS_FAULT_MODEL_H
#define VG_TESTS_FAULT_MODEL_H

#include <pthread.h>

#include "base/rng.h"
#include "storage_driver.h"

#define FM_KEYS 48u /* few, so that they are replaced, deleted and made anew all the time */
#define FM_OPS_MAX 6u
#define FM_VALUE_MAX 20000u

struct fm_op {
    enum vg_op_type type;
    unsigned key;
    size_t value_len;
    uint64_t ttl_ms;
    vg_rev expect; /* 0 or VG_EXPECT_ANY */
};
struct fm_spec {
    uint32_t n;
    struct fm_op ops[FM_OPS_MAX];
};

enum fm_fate {
    FM_UNSENT = 0,
    FM_SENT,    /* no answer yet: may be in the log */
    FM_DONE,    /* acknowledged with a revision of its own */
    FM_FOUND,   /* no acknowledgement, but it is in the truth */
    FM_SAME,    /* acknowledged, and it changed nothing */
    FM_REFUSED, /* answered with an error after which it must not be in the log */
    FM_UNKNOWN, /* VIGIL_E_UNKNOWN_OUTCOME: may be in the log */
};

struct fm_txn {
    enum fm_fate fate;
    vg_rev rev;
    uint64_t order; /* of its acknowledgement among all */
};

struct fm {
    uint64_t seed;
    pthread_mutex_t mu;        /* what follows, while transactions are under way */
    struct fm_txn *txns;       /* by number, from 1 */
    uint64_t first, last, cap; /* numbers of this run: first sent, last sent, array */
    uint64_t order;
    vg_rev seen; /* newest revision that a watch has seen */
    vg_rev compact_asked, compact_done;
    /* The truth: records in order; index[r] of them are not after revision r. */
    struct vg_rec **log;
    size_t n_log;
    size_t *index;
    vg_rev rev; /* the truth ends here; VG_REV_EMPTY in a new store */
};

/* What is certain at a moment. */
struct fm_cut {
    uint64_t order;
    vg_rev seen;
    vg_rev compact_done, compact_asked;
};

void fm_init(struct fm *m, uint64_t seed, uint64_t max_txns);
void fm_done(struct fm *m);
/* The store went back to `rev` (its newest one) and goes on from there with new transactions. */
void fm_rewind(struct fm *m, vg_rev rev, vg_rev compacted);

void fm_spec(const struct fm *m, uint64_t id, struct fm_spec *ret_spec);
/* Fill txn->ops (room for FM_OPS_MAX) with new records. False: out of memory, nothing is held. */
VG_CHECK bool fm_build(const struct fm *m, uint64_t id, struct vg_txn *txn);
struct vg_slice fm_key(unsigned key, char room[16]);

/* The next number, sent; 0: there is none left. */
uint64_t fm_send(struct fm *m);
enum fm_fate fm_fate_of(const struct vg_txn *txn); /* of an answered one */
void fm_answer(struct fm *m, uint64_t id, enum fm_fate fate, vg_rev rev);
void fm_saw(struct fm *m, vg_rev rev);
void fm_compacting(struct fm *m, vg_rev rev, bool is_done);
struct fm_cut fm_cut_now(struct fm *m);
/* The newest revision that must be in a store cut off then. */
vg_rev fm_cut_must_have(const struct fm *m, const struct fm_cut *cut);

/* Take these events, which follow the truth, into it: each revision must be what F2 and F3 say. */
void fm_extend(struct fm *m, const struct vg_event *events, size_t n);
/* Every transaction that was acknowledged is in the truth. */
void fm_check_acknowledged(const struct fm *m);

/* What fm_check may find beyond the truth. */
enum fm_beyond {
    FM_NOTHING,   /* the store ran on: its log is the truth's beginning */
    FM_IN_FLIGHT, /* the store is all there is: more is allowed, and becomes truth */
    FM_OTHER,     /* as NOTHING, but instead of what was not certain at the cut there may be
                   * transactions whose outcome is unknown */
};
/* Does the store hold the state of some moment not before the cut, whatever its revisions are now?
 * What is left to ask of a store that ran without syncs. */
void fm_check_state(const struct fm *m, const struct fm_cut *cut, struct vg_drv *d);
/* Check F1 to F4 of the store behind `d`. */
void fm_check(struct fm *m, const struct fm_cut *cut, enum fm_beyond beyond, struct vg_drv *d,
              struct vg_rng *rng);

#endif
