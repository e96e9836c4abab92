/* storage.h - transactions in, ordered revisions out.
 * The semantics are etcd's, so that engines can be exchanged: one revision line; every change has a
 * (revision, sub) pair; the changes of one transaction share a revision. Engines: mem (for tests),
 * lmdb (embedded, durable), etcd (a cluster that several processes share). Nothing above this
 * header knows which one it talks to.
 *
 * Promises of every engine:
 *   S1 durable, then visible, then acknowledged: whoever sees a revision will find it after a
 * crash. S2 revisions have no holes and are never given twice. S3 a read at a revision sees exactly
 * the changes up to it, or fails with COMPACTED or FUTURE. S4 a watch gets every matching change
 * after its start exactly once and in order; a revision is never split over two batches; or it ends
 * and says why. S5 a request that fails changes nothing, but for UNKNOWN_OUTCOME, which says so.
 *
 * Everything is asynchronous. A request is a struct that the caller owns and keeps until its done
 * function has run, which happens on the caller's loop and exactly once, unless submitting failed.
 * Submitting never blocks: too many requests under way is VIGIL_E_BUSY. Thread: a request is
 * submitted from its loop; the loop must outlive the engine. */
#ifndef VG_STORAGE_STORAGE_H
#define VG_STORAGE_STORAGE_H

#include "base/clock.h"
#include "known.h"
#include "loop/loop.h"
#include "record.h"

/* Limits, the same for every engine. LMDB's keys end at 511 bytes; 480 leaves room for what an
 * index appends. 3 MiB is the largest request body; a header and growth by defaulting come on top.
 */
#define VG_STORAGE_KEY_MAX 480
#define VG_STORAGE_VALUE_MAX ((size_t)8 << 20) /* header and value together */
#define VG_STORAGE_TXN_OPS_MAX 128
#define VG_STORAGE_TXN_BYTES_MAX ((size_t)16 << 20) /* all values of a transaction */
/* 100 years: a deadline always fits its 64 bits. */
#define VG_TTL_MAX_MS ((uint64_t)100 * 365 * 24 * 3600 * 1000)
#define VG_STORAGE_RANGE_MAX 1000000 /* records that one range may return */

struct vg_storage;

/* What every request begins with. */
struct vg_store_req {
    struct vg_mail mail; /* the engine's */
    struct vg_loop *loop;
    void (*done)(struct vg_store_req *req);
    int err;                 /* result; 0 or negative */
    struct vg_status status; /* the sentence that goes with err */
    vg_rev rev;              /* of the store when it was answered; a txn: its own revision */
    vg_rev compact_rev;      /* with VIGIL_E_COMPACTED */
    uint8_t type;            /* the engine's */
    void *engine;            /* likewise */
};

/* ---- transactions ---- */

enum vg_op_type { VG_OP_PUT = 1, VG_OP_DELETE = 2, VG_OP_CHECK = 3 };
#define VG_EXPECT_ANY UINT64_MAX

struct vg_op {
    enum vg_op_type type;
    /* PUT: the new record. DELETE, CHECK: a record of which only the key counts. The transaction
     * owns this reference. */
    struct vg_rec *rec;
    vg_rev expect;   /* revision of the key now, 0 = absent, or VG_EXPECT_ANY */
    uint64_t ttl_ms; /* PUT: lives this long; 0 = for ever */
    /* PUT of an absent key: nobody else puts the same bytes under it, since they hold a fresh uid.
     * If the answer is lost, finding them proves that the transaction happened. */
    bool is_unique;
    /* Result: what the key held before; NULL when absent. After CONFLICT: of the failing op, what
     * the key holds. What does not read back comes with is_unreadable. Owned by the transaction. */
    struct vg_rec *prev;
};

/* All operations happen or none does. A key may be named once. Deleting an absent key is no change;
 * a transaction without a change makes no revision and answers with the current one. */
struct vg_txn {
    struct vg_store_req req;
    struct vg_op *ops;
    uint32_t n_ops;
    uint32_t failed_op; /* after VIGIL_E_CONFLICT */
    bool no_prev;       /* ops[].prev is not wanted: saves reading it; a conflict still brings it */
    bool frees_space;   /* part of a deletion: it is taken although the store is full */
    bool is_again;      /* the engine's */
};
/* Drops the references that ops hold; the array is the caller's. */
void vg_txn_done(struct vg_txn *txn);

/* 0 or, at once and with nothing sent: VIGIL_E_INVALID, _KEY_INVALID, _VALUE_TOO_LARGE, _BUSY,
 * _CLOSED. Later, in req.err: VIGIL_E_CONFLICT, _STORE_FULL, _READ_ONLY, _UNKNOWN_OUTCOME, _CLOSED,
 * -ENOMEM. */
VG_CHECK int vg_storage_txn(struct vg_storage *s, struct vg_txn *txn);

/* ---- reads ---- */

enum vg_keys_kind { VG_KEYS_ONE = 0, VG_KEYS_SPAN = 1, VG_KEYS_FROM = 2 };
/* One key; or start <= key < end; or every key from start on. */
struct vg_keys {
    enum vg_keys_kind kind;
    struct vg_slice start, end;
};
bool vg_keys_contain(const struct vg_keys *keys, struct vg_slice key);

/* Records come without header and value; of the rest key, rev, sub, create_rev and version count.
 */
#define VG_RANGE_KEYS_ONLY 1u
#define VG_RANGE_COUNT 2u /* fill count: all keys in the range, whatever the limit */
/* Fill expires_ms of every record that will expire. Engines that know it do so anyhow; etcd is
 * asked for each lease, which takes time. */
#define VG_RANGE_EXPIRES 8u
/* What does not read back comes as a record too, with is_unreadable: key, rev, sub, create_rev and
 * version count. Without this flag it fails the range, which then names the key. */
#define VG_RANGE_UNREADABLE 16u

struct vg_range {
    struct vg_store_req req; /* req.rev: the revision that was read */
    struct vg_keys keys;     /* borrowed until done */
    vg_rev at;               /* 0 = now */
    size_t limit; /* 0 = VG_STORAGE_RANGE_MAX; count alone: limit 0 with VG_RANGE_COUNT_ONLY */
    unsigned flags;
    const struct vg_known *known; /* borrowed until done, NULL allowed: these need not be read */
    /* Results, owned by the range: free with vg_range_done. */
    struct vg_rec **recs; /* in key order */
    size_t n_recs;
    uint64_t count;
    bool more; /* the limit cut it off */
};
#define VG_RANGE_COUNT_ONLY (VG_RANGE_COUNT | 4u)
void vg_range_done(struct vg_range *range);

/* At once: VIGIL_E_INVALID, _BUSY, _CLOSED. Later: VIGIL_E_COMPACTED (compact_rev), _FUTURE,
 * _TOO_LARGE (no limit given and more than VG_STORAGE_RANGE_MAX), _STORE_DAMAGED, -ENOMEM. */
VG_CHECK int vg_storage_range(struct vg_storage *s, struct vg_range *range);

/* ---- watches ---- */

struct vg_event {
    const struct vg_rec *rec;
    const struct vg_rec *prev; /* what it replaced or deleted; NULL for a create */
};

struct vg_watch_batch {
    const struct vg_event *events; /* borrowed for the call; take references of what you keep */
    size_t n;                      /* 0: progress alone */
    vg_rev rev;                    /* everything up to here has been delivered */
};

struct vg_watch;
struct vg_watch_opts {
    struct vg_loop *loop;
    struct vg_keys keys; /* copied */
    vg_rev from;       /* first revision to deliver; 0 = what follows now; may lie in the future */
    size_t batch_max;  /* events in a batch, but a revision is never split; 0 = 1000 */
    bool progress;     /* report progress when foreign keys move the revision */
    bool no_prev;      /* events come without prev: saves reading it where nobody wants it */
    vg_rev prev_below; /* or else: prev need not come where it is as new as this; 0 = it comes */
    /* Changes that do not read back come with is_unreadable, and so does prev: of such a change
     * key, rev, sub, prev_rev and prev_sub count. Without it they end the watch. */
    bool unreadable;
    void (*on_batch)(struct vg_watch *w, const struct vg_watch_batch *batch, void *arg);
    /* The watch is over, and gone after this call: VIGIL_E_COMPACTED (compact_rev says below what),
     * _CLOSED, _STORE_DAMAGED, -ENOMEM. Not called after vg_watch_cancel. */
    void (*on_end)(struct vg_watch *w, int err, vg_rev compact_rev, void *arg);
    void *arg;
};

/* 0, VIGIL_E_INVALID, _CLOSED, -ENOMEM. Callbacks come later, on opts->loop, never from within. */
VG_CHECK int vg_storage_watch(struct vg_storage *s, const struct vg_watch_opts *opts,
                              struct vg_watch **ret_watch);
/* Thread for all of these: the watch's loop. */
void vg_watch_cancel(struct vg_watch *w); /* no callback after it; allowed inside on_batch */
void vg_watch_pause(
    struct vg_watch *w); /* no batch until resume; falls back to the log meanwhile */
void vg_watch_resume(struct vg_watch *w);
/* Ask for a batch (perhaps empty) whose rev is at least the store's revision now. */
void vg_watch_progress(struct vg_watch *w);

/* ---- upkeep ---- */

/* Forget what was superseded at or before `rev`. Reads below it fail from the answer on, the space
 * comes back by and by. VIGIL_E_COMPACTED: already done; VIGIL_E_FUTURE. */
struct vg_compact {
    struct vg_store_req req;
    vg_rev at;
};
VG_CHECK int vg_storage_compact(struct vg_storage *s, struct vg_compact *compact);

/* A consistent copy of everything up to at least the revision of the call, written beside the path
 * and renamed when it is whole and synced. VIGIL_E_UNSUPPORTED (mem), VIGIL_E_EXISTS, -errno. */
struct vg_backup {
    struct vg_store_req req; /* req.rev: the revision that it holds */
    const char *path;        /* borrowed until done; must not exist */
    uint64_t bytes;          /* result: its size */
};
VG_CHECK int vg_storage_backup(struct vg_storage *s, struct vg_backup *backup);

/* Thread: any. */
vg_rev vg_storage_revision(struct vg_storage *s); /* newest visible revision that is known here */
vg_rev vg_storage_compacted(struct vg_storage *s);
/* Do others write to it too? Then vg_storage_revision may be behind what they have been told. */
bool vg_storage_is_shared(struct vg_storage *s);

/* How new must a state be to be current? req->rev is not below any revision that anybody anywhere
 * was told of before the call; watches are brought there without being asked. */
VG_CHECK int vg_storage_fresh(struct vg_storage *s, struct vg_store_req *req);

/* 0: it serves. Negative: it does not now, and the sentence says since when, what was tried and
 * what can be done. Thread: any. */
int vg_storage_health(struct vg_storage *s, struct vg_status *reterr_status);

/* Is there no room, so that only transactions with frees_space are taken? Thread: any. */
bool vg_storage_is_full(struct vg_storage *s);

struct vg_storage_stats {
    uint64_t txns, conflicts, puts, deletes, expired; /* since open */
    uint64_t commits;                                 /* groups made durable */
    uint64_t syncs;                                   /* of the write-ahead log */
    uint64_t wal_bytes;                               /* written to it */
    uint64_t checkpoints, checkpoint_failures, compaction_failures;
    uint64_t scrub_passes, scrub_bytes, scrub_damages; /* of the base, read again from the disk */
    uint64_t damaged_records; /* that did not read back, each once; the log has their keys */
    uint64_t disk_bytes;      /* size of the files */
    uint64_t pending;         /* requests not yet taken by the commit thread */
    uint64_t overlay_bytes;   /* in memory, not yet in the base */
    uint64_t progress_requests, barriers;         /* etcd: how watches were brought to a revision */
    uint64_t watch_restarts;                      /* etcd: of the one over everything */
    uint64_t past_watches;                        /* etcd: begun in the past, for replays */
    uint64_t unknown_outcomes, resolved_outcomes; /* etcd: answers that were lost */
    uint64_t reserve_bytes;                       /* held on the disk for when it is full */
    uint64_t full;                                /* 1: the disk is full, see vg_storage_is_full */
    bool read_only;                               /* writes are refused now; why is in the log */
};
void vg_storage_stats(struct vg_storage *s, struct vg_storage_stats *ret_stats);

/* Requests under way are answered (VIGIL_E_CLOSED where nothing was done yet), watches end with
 * VIGIL_E_CLOSED; then the threads end and everything is freed. Blocks meanwhile. Nobody submits
 * any more when it is called, and no turn of a loop that has submitted is under way. The answers
 * run on their loops afterwards, so turn them once more before you free what they use, the clock
 * included. NULL allowed. */
void vg_storage_close(struct vg_storage *s);

/* ---- engines ---- */

struct vg_log;
struct vg_storage_opts {
    size_t size;                  /* sizeof this struct */
    const struct vg_clock *clock; /* NULL = the system's */
    const struct vg_log *log;     /* NULL = silent; only changes of state are logged */
    size_t queue_max;             /* transactions that may wait; 0 = 4096 */
    uint64_t compact_age_ms;      /* auto-compaction keeps at least this long; 0 = off */
    uint64_t compact_count;       /* ... and at most this many revisions; 0 = no limit */
    /* lmdb: */
    const char *dir;
    size_t map_size;         /* address space reserved for the base; 0 = 256 GiB */
    size_t checkpoint_bytes; /* overlay that starts a checkpoint; 0 = 64 MiB */
    size_t flight_min;       /* transactions that make a group worth a thread; 0 = 16 */
    uint64_t checkpoint_ms;  /* ... or its age; 0 = 5000 */
    uint64_t scrub_ms;       /* read the base again from the disk so often; 0 = never */
    /* Kept on the disk for deletions and compaction when it is full, at most 1/16 of it; 0 = none
     */
    uint64_t reserve_bytes;
    bool unsafe_no_fsync; /* for tests: a power loss loses what was acknowledged */
    vg_rev
        first_above; /* a store that is made gives revisions above this one; others are compacted */
    const struct vg_etcd_opts *etcd;
};

/* How a record lies in a store that others read too. Thread: any, several at once. */
struct vg_stored_form {
    /* The bytes to store, appended. NULL: header and value as they are, with their lengths. */
    int (*to_bytes)(void *arg, const struct vg_rec *rec, struct vg_buf *out);
    /* Header and value of what is stored under a key, appended. What cannot be read is a record
     * too: without header, so that nobody shows it; the function says so in the log. -ENOMEM alone
     * is an error. */
    int (*from_bytes)(void *arg, struct vg_slice key, struct vg_slice bytes, struct vg_buf *header,
                      struct vg_buf *value);
    void *arg;
};

struct vg_etcd_opts {
    const char *const *servers; /* "https://etcd-1:2379", ... */
    size_t n_servers;
    const char *ca_file, *cert_file, *key_file; /* PEM; NULL: the system's, none, none */
    const char *username, *password;            /* NULL: none */
    /* A key that begins with `root` is stored under `prefix` and the rest; there are no others. */
    const char *root, *prefix;
    struct vg_stored_form form;
    uint64_t open_ms;    /* how long opening waits for a cluster that answers; 0 = 20 s */
    uint64_t request_ms; /* a request; 0 = 10 s */
    uint64_t health_ms;  /* between looks at its health, and how long one may take; 0 = 2 s */
    uint64_t compact_ms; /* what is older than this goes, led by whoever is first; 0 = never */
    /* A key that says that a copy into the cluster is not whole: opening fails with
     * VIGIL_E_STORE_DAMAGED while it is there. NULL: none is looked for. */
    const char *unfinished_key;
};

VG_CHECK int vg_storage_open_mem(const struct vg_storage_opts *opts,
                                 struct vg_storage **ret_storage, struct vg_status *reterr_status);
/* VIGIL_E_STORE_LOCKED, _STORE_DAMAGED, _STORE_FOREIGN, _STORE_VERSION, -errno: nothing was
 * touched. */
VG_CHECK int vg_storage_open_lmdb(const struct vg_storage_opts *opts,
                                  struct vg_storage **ret_storage, struct vg_status *reterr_status);

/* Waits until the cluster answers. VIGIL_E_INVALID: a malformed address, a file that cannot be
 * read; VIGIL_E_NETWORK, _UNAUTHORIZED, _UNSUPPORTED (not etcd, or too old): not within open_ms;
 * the sentence says which endpoint, what was tried and what to do. The system's clock is used,
 * whatever the options say. */
VG_CHECK int vg_storage_open_etcd(const struct vg_storage_opts *opts,
                                  struct vg_storage **ret_storage, struct vg_status *reterr_status);

/* For programs: when a mapped file of a store cannot be read while it is open (it was cut off, the
 * disk fails), end with a sentence and exit status 7 instead of SIGBUS. */
void vg_storage_guard_maps(void);

/* Make a store in `dir` (new or empty) from a backup, after checking every record. Revisions that
 * were given out after the backup was taken must not be given again: the restored store continues
 * `bump` revisions later, everything before that counts as compacted, and watchers list anew. */
#define VG_RESTORE_BUMP_DEFAULT ((vg_rev)1000000000)
VG_CHECK int vg_storage_restore_lmdb(const char *backup, const char *dir, vg_rev bump,
                                     struct vg_status *reterr_status);
/* Remove the files of a store that nobody has open, in whatever state it is, and its directory. 0
 * also when there is none. -ENOTEMPTY: other things lie in it; they stay. */
VG_CHECK int vg_storage_remove_lmdb(const char *dir);

#endif
