/* lmdb_int.h - the base in an LMDB environment.
 *
 *   log    (revision, sub)           -> encoded record            every change that is still needed
 *   keys   key                       -> (~revision, sub, ...)     versions of a key, newest first
 *   ttl    (deadline, revision, sub) -> key                       deadlines that may still count
 *   meta   "vigil"                   -> struct store_meta         what has been applied and
 * compacted
 *          "sums"                    -> struct vg_sums_record     checksums of all of the above
 *
 * `keys` keeps its versions as sorted duplicates with the revision inverted, so that the newest
 * one, and the newest one at or before any revision, are each one seek away.
 *
 * Invariants:
 *   E1 everything up to meta.applied_rev, and nothing above, is in the environment.
 *   E2 the log holds every change above meta.compact_done, and below it the newest put of each key.
 *   E3 keys and log agree: an entry in keys has its record in log.
 *   E4 the file is never shorter than the pages that LMDB counts: shorter means damage. */
#ifndef VG_STORAGE_LMDB_INT_H
#define VG_STORAGE_LMDB_INT_H

#include <lmdb.h>
#include <pthread.h>

#include "base/list.h"
#include "decode.h"
#include "lmdb_sums.h"
#include "server/storage/local/base.h"
#include "wal.h"

#define STORE_MAGIC "vigil-st"
#define STORE_FORMAT 1u

/* Native integers: LMDB's own pages are too, so a file does not move between byte orders. */
struct store_meta {
    char magic[8];
    uint32_t format;
    uint32_t zero;
    uint64_t salt;
    uint64_t applied_rev;
    uint64_t applied_gen;
    uint64_t compact_rev;  /* reads below fail */
    uint64_t compact_done; /* and the space is free up to here */
    int64_t created_ms;
};

/* A record that did not read back. */
#define VG_DAMAGED_KEPT 64 /* remembered; those beyond are logged again when they are met again */
struct vg_log_at {
    vg_rev rev;
    uint32_t sub;
};
struct vg_damaged {
    struct vg_log_at at;
    size_t key_len;
    char key[VG_STORAGE_KEY_MAX];
};

struct vg_lmdb {
    struct vg_base base;
    const struct vg_log *logger; /* NULL: silent */
    int dirfd, lockfd;
    char *path;             /* of the data file */
    uint64_t reserve_bytes; /* 0: no reserve */
    size_t map_size;
    bool no_sync;
    /* Views hold it for reading between begin and end; reopening takes it for writing. */
    pthread_rwlock_t env_lock;
    MDB_env *env;                /* NULL: reopening failed */
    _Atomic unsigned env_wanted; /* so many wait for env_lock for writing */
    struct vg_scrub *scrub;      /* lmdb_scrub.h; NULL: it does not run */
    struct vg_list views;        /* all of them; changed under env_lock */
    MDB_dbi log, keys, ttl, meta;
    struct store_meta state; /* as applied last; the flusher's */
    struct vg_sums sums;     /* likewise */
    bool has_sums;           /* else they are not known, and not written */
    size_t kept_bytes;       /* of pages that LMDB keeps in memory, about; the flusher's */
    size_t largest[2];       /* bytes of the largest record of the last two checkpoints; likewise */
    uint64_t ceiling;        /* no_sync: revisions up to here are reserved on the disk */
    struct vg_wal wal;
    _Atomic uint64_t log_used;  /* bytes in this generation */
    struct vg_mutex damaged_mu; /* rank STORE_BASE: the next two */
    size_t n_damaged;           /* so far; the newest of them are in the ring */
    struct vg_damaged damaged[VG_DAMAGED_KEPT];
};

/* An LMDB result as one of ours. */
int vg_lmdb_err(int rc);

/* A version of a key in `keys`; big endian, so that bytes sort as numbers. */
#define KEY_VERSION_SIZE 32
struct key_version {
    vg_rev rev;
    uint32_t sub;
    bool is_delete;
    vg_rev create_rev;
    uint64_t version;
};
void vg_key_version_encode(const struct key_version *v, char out[KEY_VERSION_SIZE]);
VG_CHECK int vg_key_version_decode(const MDB_val *in, struct key_version *ret);

#define LOG_KEY_SIZE 12
void vg_log_key_encode(vg_rev rev, uint32_t sub, char out[LOG_KEY_SIZE]);
struct vg_log_at vg_log_key_decode(const char *in); /* LOG_KEY_SIZE bytes */
#define TTL_KEY_SIZE 20
void vg_ttl_key_encode(int64_t expires_ms, vg_rev rev, uint32_t sub, char out[TTL_KEY_SIZE]);
void vg_ttl_key_decode(const char *in, int64_t *ret_expires_ms, vg_rev *ret_rev, uint32_t *ret_sub);

/* guard.c: LMDB's assertions end the process with a sentence and an exit status. */
void vg_lmdb_on_assert(MDB_env *env, const char *text);

/* lmdb_env.c: the environment itself. */
VG_CHECK int vg_lmdb_env_open(struct vg_lmdb *l);
/* Ends the transactions of all views first. */
void vg_lmdb_env_close(struct vg_lmdb *l);
/* Make a new environment file at `path`, with this meta, synced. */
VG_CHECK int vg_lmdb_env_create(const char *path, const struct store_meta *meta);
VG_CHECK int vg_lmdb_put_meta(MDB_txn *txn, MDB_dbi meta, const struct store_meta *state);
VG_CHECK int vg_lmdb_put_sums(MDB_txn *txn, MDB_dbi meta, const struct vg_sums *sums,
                              const struct store_meta *state);
/* Both: what every transaction ends with. */
VG_CHECK int vg_lmdb_put_state(MDB_txn *txn, struct vg_lmdb *l, const struct store_meta *state,
                               const struct vg_sums *sums);

/* A reader's look at the base: a read transaction with its cursors, made once, renewed for each
 * use.
 */
struct vg_base_view {
    struct vg_lmdb *l;
    struct vg_list link;
    MDB_txn *txn; /* NULL: to be made */
    MDB_cursor *keys, *log, *ttl;
    struct vg_decoder decoder;
    char damage[VG_STATUS_MESSAGE_MAX]; /* what was found, for a person */
};

/* lmdb_view.c */
void vg_lmdb_drop_views(struct vg_lmdb *l); /* they begin anew; env_lock is held for writing */
int vg_lmdb_view_open(struct vg_base *b, struct vg_base_view **ret_view);
void vg_lmdb_view_close(struct vg_base_view *v);
int vg_lmdb_view_begin(struct vg_base_view *v);
void vg_lmdb_view_end(struct vg_base_view *v);
const char *vg_lmdb_damage(struct vg_base_view *v);
int vg_lmdb_get(struct vg_base_view *v, struct vg_slice key, vg_rev at, struct vg_rec **ret_rec);
int vg_lmdb_peek(struct vg_base_view *v, struct vg_slice key, struct vg_version *ret_version);
/* The newest version at or before `at` of the key under the cursor. 1 found, 0 not. */
VG_CHECK int vg_lmdb_version_at(struct vg_base_view *v, MDB_val *key, vg_rev at,
                                struct key_version *ret);
/* A record that says no more than what `keys` knows. */
VG_CHECK int vg_lmdb_make_key_rec(const MDB_val *key, const struct key_version *kv,
                                  struct vg_rec **ret_rec);
/* Where the record of a version lies in the log; nothing of it is looked at. It must be there (E3):
 * p == NULL when it is not. */
VG_CHECK int vg_lmdb_find_rec(struct vg_base_view *v, const struct key_version *kv,
                              struct vg_slice *ret_encoded);
/* And the record itself, perhaps an unreadable one. */
VG_CHECK int vg_lmdb_read_rec(struct vg_base_view *v, struct vg_slice of,
                              const struct key_version *kv, struct vg_rec **ret_rec);
/* The record must be the one that was looked for, whole: index entries have no checksum. */
bool vg_lmdb_is_record(const struct vg_rec *rec, struct vg_slice key, const struct key_version *kv);
/* VIGIL_E_STORE_DAMAGED, and what to tell a person of an index entry. */
int vg_lmdb_fail_entry(struct vg_base_view *v, struct vg_slice key);
/* lmdb_scan.c */
int vg_lmdb_collect(struct vg_base_view *v, const struct vg_keys *keys, struct vg_slice after,
                    vg_rev at, bool keys_only, const struct vg_known *known,
                    struct vg_rec **ret_recs, size_t max, size_t *ret_n);
int vg_lmdb_log_read(struct vg_base_view *v, vg_rev from, vg_rev to, struct vg_rec **ret_recs,
                     size_t max, size_t *ret_n);
int vg_lmdb_deadlines(struct vg_base_view *v, const struct vg_deadline *after,
                      struct vg_rec **ret_recs, size_t max, size_t *ret_n);
/* lmdb_damage.c. Thread: any. */
/* Log it and count it, once. */
void vg_lmdb_note_damage(struct vg_lmdb *l, struct vg_slice key, struct vg_log_at at);
/* A change whose record does not read back, as the index knows it. prev.rev 0: it replaced nothing.
 */
struct vg_lost_change {
    size_t key_len;
    char key[VG_STORAGE_KEY_MAX];
    struct key_version kv, prev;
};
/* 1; 0: no key has it; negative. `encoded`: the damaged bytes. Moves the cursor. */
VG_CHECK int vg_lmdb_find_lost(struct vg_lmdb *l, MDB_cursor *keys, struct vg_log_at at,
                               struct vg_slice encoded, struct vg_lost_change *ret);
/* The record that stands for one that does not read back: of a version, of a place in the log. */
VG_CHECK int vg_lmdb_make_unreadable(struct vg_lmdb *l, struct vg_slice key,
                                     const struct key_version *kv, struct vg_rec **ret_rec);
VG_CHECK int vg_lmdb_make_lost(struct vg_base_view *v, struct vg_log_at at, struct vg_slice encoded,
                               struct vg_rec **ret_rec);
/* lmdb_apply.c */
int vg_lmdb_apply(struct vg_base *b, const struct vg_base_apply *apply);
/* E4, before a write transaction that may take so many pages and bytes, and after it. An LMDB
 * result. */
VG_CHECK int vg_lmdb_lengthen_file(struct vg_lmdb *l, uint64_t more_pages, uint64_t more_bytes);
void vg_lmdb_trim_file(struct vg_lmdb *l);
/* Consumes the transaction. */
VG_CHECK int vg_lmdb_commit(struct vg_lmdb *l, MDB_txn *take_txn);
/* lmdb_compact.c */
int vg_lmdb_compact(struct vg_base *b, struct vg_base_compact *compact);
/* lmdb_room.c */
int vg_lmdb_room(struct vg_base *b, struct vg_room *ret);
int vg_lmdb_take_reserve(struct vg_base *b, uint64_t bytes);
void vg_lmdb_release_reserve(struct vg_base *b);
void vg_lmdb_allocate_logs(struct vg_lmdb *l); /* blocks for the log, if there is to be a reserve */
void vg_lmdb_count_free(struct vg_base *b);
bool vg_lmdb_is_removed(struct vg_base *b);
bool vg_wal_is_removed(const struct vg_wal *w); /* the file that is written now */
/* lmdb_backup.c */
int vg_lmdb_backup(struct vg_base *base, struct vg_backup *b);

#endif
