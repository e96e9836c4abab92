/* engine.h - the local engine: tables in memory, perhaps over a base, and three threads.
 *
 *   loops --txn--> [mailbox] --> commit thread: compare, stage; log_append (durable, by the syncer
 *                                thread when the group is large, while the next is staged),
 *                                publish table and revision (visible), answers (acknowledged), tail
 *   loops --range, log reads--> [mailbox] --> reader thread: merges tables and base
 *   commit thread --freeze--> flusher thread: writes the frozen table into the base, compacts
 *
 * Layers, newest first: active table, frozen table (while a checkpoint runs), base. A reader takes
 * references to the tables before it begins a view of the base: what moves down between the two is
 * then seen twice, which merging takes care of, and never not at all.
 *
 * | structure        | written by                    | read by                 | freed | | active
 * table     | commit thread                 | all, under its mutex    | last reference     | |
 * frozen table     | nobody                        | all                     | last reference     |
 * | revision         | commit thread, release        | all, acquire            | with the engine |
 * | compacted        | commit thread, release        | all, acquire            | with the engine |
 * | tail batches     | commit thread                 | watches, on their loops | last cursor passes
 * | | watch            | its loop                      | its loop                | on its loop |
 */
#ifndef VG_STORAGE_ENGINE_H
#define VG_STORAGE_ENGINE_H

#include <pthread.h>

#include "base.h"
#include "base/list.h"
#include "loop/waker.h"
#include "server/storage/watch_host.h"
#include "table.h"

enum req_type { REQ_TXN = 1, REQ_COMPACT, REQ_RANGE, REQ_LOG_READ, REQ_BACKUP };

/* The group that is on its way to the disk: flight.c. */
struct vg_flight {
    struct vg_commit_batch *group; /* NULL: none */
    struct vg_mail *txns;          /* to be answered when it has landed */
    vg_rev last;
    int result; /* of log_append; the syncer's until the flight is down */
    _Atomic int state;
};

/* A thread that serves a mailbox. */
struct vg_server_thread {
    struct vg_mailbox box;
    struct vg_waker waker;
    pthread_t thread;
    bool started;
};

struct vg_engine {
    struct vg_storage storage;
    struct vg_watch_host host;
    struct vg_storage_opts opts;
    _Atomic uint32_t refs; /* the handle, and each watch */
    struct vg_base *base;  /* NULL: mem */

    _Atomic vg_rev rev;       /* newest visible */
    _Atomic vg_rev compacted; /* reads below fail */
    _Atomic bool closing;
    _Atomic uint32_t prev_watches; /* watches that want prev */

    struct vg_mutex
        mu; /* rank STORE_STATE: which tables are which, and what waits for the flusher */
    struct vg_table *active;     /* the pointer changes under mu */
    struct vg_table *frozen;     /* NULL: no checkpoint under way */
    vg_rev frozen_last;          /* newest revision in it */
    struct vg_mail *compactions; /* requests that wait for the flusher */
    struct vg_mail *backups;     /* likewise; what they must hold is in the base or frozen */
    bool backup_running;         /* the flusher's: backup_thread is there */
    bool backup_ended;           /* ... and can be joined */
    pthread_t backup_thread;

    struct vg_tail tail;
    struct vg_server_thread commit, reader, flusher, syncer;
    _Atomic bool syncer_ends; /* after the commit thread */

    struct vg_base_view *reader_view; /* the reader thread's */

    /* The commit thread's. */
    struct vg_base_view *commit_view;
    struct vg_mail *wanted_backups; /* wait until what is in the active table can be frozen */
    struct vg_commit_batch *group;  /* under construction; NULL between groups */
    size_t group_cap;
    struct vg_flight flight;
    struct vg_table *group_frozen; /* reference held for the length of a group */
    uint64_t active_since_ns;      /* when the first change went into the active table */
    uint64_t next_upkeep_ns;       /* auto-compaction */
    uint64_t next_repair_ns;
    uint64_t next_expire_ns;           /* no sooner, after expiring failed */
    uint64_t next_freeze_ns;           /* after a failed switch */
    _Atomic bool log_broken;           /* the log takes nothing before log_repair succeeded */
    struct vg_deadline deadlines_done; /* of the base, up to here */
    int64_t base_deadline_ms;          /* the next one after it; INT64_MAX: none */

    /* room.c; the commit thread's but for the atomic ones */
    struct vg_mail *again; /* deletions that found no room, once more now that there is some */
    uint64_t next_room_ns, full_until_ns;
    uint64_t room_used;           /* of the log, when the room was looked at last */
    uint64_t available;           /* then */
    uint64_t reserve, look_bytes; /* const after the start */
    uint64_t log_max;             /* bytes of log that the base has room for, as seen then */
    _Atomic bool is_full;         /* only what frees space is taken */
    _Atomic bool is_short;        /* free pages of the base are worth counting */
    _Atomic bool is_removed;      /* the files were taken away: nothing written is kept */

    _Atomic bool deadlines_changed; /* by the flusher: look at those of the base again */
    _Atomic int flusher_err;        /* of its last checkpoint; 0: it works */
    _Atomic int compact_err;        /* of its last compaction, likewise */
    _Atomic uint64_t n_txns, n_conflicts, n_puts, n_deletes, n_expired, n_commits, n_checkpoints,
        n_checkpoint_failures, n_compaction_failures;
};

/* Start an engine whose state is `take_active` (and `take_frozen`, ending at frozen_last) over
 * take_base. Consumes all three always. */
struct vg_engine_start {
    struct vg_table *take_active, *take_frozen;
    struct vg_base *take_base;
    vg_rev rev, compacted, frozen_last;
};
VG_CHECK int vg_engine_open(const struct vg_storage_opts *opts, const struct vg_engine_start *start,
                            struct vg_storage **ret_storage);

struct vg_engine *vg_engine_ref(struct vg_engine *e);
void vg_engine_unref(struct vg_engine *e);

void vg_engine_answer_all(struct vg_mail *list, int err); /* a list of requests */

/* The tables of this moment, with references. */
struct vg_layers {
    struct vg_table *active, *frozen;
};
struct vg_layers vg_engine_layers(struct vg_engine *e);
void vg_layers_done(struct vg_layers *l);

/* The newest change of a key at or before `at` in all layers, deletes included, with a reference.
 * The view has begun, or is NULL without a base. 1 found, 0 not, negative. */
VG_CHECK int vg_layers_get(struct vg_engine *e, const struct vg_layers *l, struct vg_base_view *v,
                           struct vg_slice key, vg_rev at, struct vg_rec **ret_rec);

/* The threads. */
void *vg_commit_main(void *engine);
void *vg_reader_main(void *engine);
void *vg_flusher_main(void *engine);
void *vg_syncer_main(void *engine);

/* flight.c */
void vg_flight_launch(struct vg_engine *e, struct vg_mail *txns, size_t n_txns, vg_rev last);
bool vg_flight_is_up(struct vg_engine *e);
/* Show and answer, or undo, a flight that is down; with wait, one that is still up. The result of
 * its append; 0 when there is none. */
int vg_flight_land(struct vg_engine *e, bool wait);
void vg_commit_set_broken(struct vg_engine *e, bool is_broken, int err);
/* With err, all of a group failed (C3). Deletions that found no room are kept for once more. */
void vg_commit_answer(struct vg_engine *e, struct vg_mail *list, int err);
/* The files are gone: the log is broken until they are back. */
void vg_commit_set_removed(struct vg_engine *e);
/* room.c */
void vg_room_start(struct vg_engine *e);
void vg_room_look(struct vg_engine *e, uint64_t now_ns);
void vg_room_enter_full(struct vg_engine *e);
void vg_room_help_flusher(struct vg_engine *e); /* if it found no room */
bool vg_room_is_full(struct vg_engine *e);      /* thread: any */
uint64_t vg_room_checkpoint_bytes(struct vg_engine *e);
size_t vg_room_slice(struct vg_engine *e);
/* The newest revision that has been given out, though it may still be on its way to the disk. */
static inline vg_rev vg_engine_staged_rev(struct vg_engine *e)
{
    return e->flight.group ? e->flight.last : atomic_load_explicit(&e->rev, memory_order_relaxed);
}
/* txn.c */
int vg_commit_run_txn(struct vg_engine *e, struct vg_txn *txn, vg_rev *rev);
void vg_commit_drop_prevs(struct vg_txn *txn);
void vg_commit_drop_group(
    struct vg_engine *e); /* undoes what the group under construction staged */
/* upkeep.c: what the commit thread does besides committing. */
int vg_upkeep_stage_expired(struct vg_engine *e, vg_rev *rev);
void vg_upkeep_notice(struct vg_engine *e); /* what the flusher did; before a view begins */
bool vg_upkeep_is_expiry_due(struct vg_engine *e);
/* Deletes that were staged did not happen: look at all deadlines again, a little later. */
void vg_upkeep_expire_again(struct vg_engine *e);
int64_t vg_upkeep_next_deadline(struct vg_engine *e);
void vg_upkeep_compact(struct vg_engine *e, vg_rev target);
void vg_upkeep_auto_compact(struct vg_engine *e);
/* Make the active table the frozen one and begin anew. Thread: the commit thread, or whoever closes
 * the engine once that has ended; only when nothing is frozen. */
int vg_commit_freeze(struct vg_engine *e);
/* What a key holds now, staged changes of this group included. */
struct vg_current {
    struct vg_version version; /* rev 0: absent */
    struct vg_rec *rec;        /* reference; NULL: absent, or it was not asked for */
};
/* Stage one change at *rev; stamps it. -ENOMEM. Thread: the commit thread. */
int vg_commit_stage(struct vg_engine *e, struct vg_rec *take_rec, const struct vg_current *was,
                    vg_rev rev, uint32_t sub);
/* want_rec: bring the record too. */
int vg_commit_current(struct vg_engine *e, struct vg_slice key, bool want_rec,
                      struct vg_current *ret);
/* Do watches want what a change replaced? */
static inline bool vg_engine_wants_prev(struct vg_engine *e)
{
    return atomic_load_explicit(&e->prev_watches, memory_order_relaxed) > 0;
}

#endif
