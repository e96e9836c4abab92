/* base.h - what lies under the tables of a local engine: a write-ahead log and a durable base.
 * The lmdb engine brings one; the mem engine has none. Changes are durable when log_append
 * returned; apply later moves them into the base, in whole generations, and only then may the log's
 * space be used again. Errors: 0, VIGIL_E_STORE_FULL and -ENOMEM (nothing happened),
 * VIGIL_E_UNKNOWN_OUTCOME (only log_append: it may or may not be on the disk),
 * VIGIL_E_STORE_DAMAGED, -errno. */
#ifndef VG_STORAGE_BASE_H
#define VG_STORAGE_BASE_H

#include "server/storage/storage.h"

struct vg_base;      /* an engine's durable part; the implementation knows what is in it */
struct vg_base_view; /* a reader's consistent look at the base */

/* What is known of a key's newest change without its record. */
struct vg_version {
    vg_rev rev; /* 0: the key is absent */
    uint32_t sub;
    vg_rev create_rev;
    uint64_t version;
};
static inline struct vg_version vg_version_of(const struct vg_rec *rec)
{
    return (struct vg_version){rec->rev, rec->sub, rec->create_rev, rec->version};
}

/* Deadlines are ordered by time, then by the change that set them. */
struct vg_deadline {
    int64_t ms;
    vg_rev rev;
    uint32_t sub;
};
static inline struct vg_deadline vg_deadline_of(const struct vg_rec *rec)
{
    return (struct vg_deadline){.ms = rec->expires_ms, .rev = rec->rev, .sub = rec->sub};
}

/* What one apply writes in one durable transaction: a frozen generation. */
struct vg_base_apply {
    struct vg_rec *const *recs; /* in order */
    size_t n;
    vg_rev applied; /* where the generation ends */
};

/* What one compaction does in one durable transaction. */
struct vg_base_compact {
    vg_rev compact_rev; /* forget what was superseded at or before it */
    int64_t now_ms;     /* deadlines before it that no longer count are dropped */
    size_t max;         /* changes to look at, about; 0 = a default */
    bool more;          /* result: call again, there is more to do */
};

/* Room on the disk. */
struct vg_room {
    uint64_t available; /* bytes that the file system gives us; what the reserve holds is not */
    uint64_t reserve;   /* bytes that the reserve shall hold; 0: there is none */
};

struct vg_base_ops {
    /* The write-ahead log. Thread: one at a time; the commit thread, or the syncer for it.
     * log_used: any. */
    int (*log_append)(struct vg_base *b, const struct vg_event *events, size_t n);
    /* After UNKNOWN_OUTCOME: make the lost group void and the log writable. 0: done. */
    int (*log_repair)(struct vg_base *b);
    /* Begin the next generation; what was appended so far ends with revision `last`. Only when the
     * generation before has been applied. On failure the log takes nothing until log_repair. */
    int (*log_switch)(struct vg_base *b, vg_rev last);
    uint64_t (*log_used)(struct vg_base *b); /* bytes in this generation */

    /* Looking. A view belongs to one thread; between begin and end it does not change. */
    int (*view_open)(struct vg_base *b, struct vg_base_view **ret_view);
    void (*view_close)(struct vg_base_view *v); /* NULL allowed */
    int (*view_begin)(struct vg_base_view *v);
    void (*view_end)(struct vg_base_view *v);
    /* After VIGIL_E_STORE_DAMAGED from one of the calls below: what was found, for a person. Valid
     * until the view's next call. A record that does not read back is none of this: it comes with
     * is_unreadable, as long as its key is known. */
    const char *(*damage)(struct vg_base_view *v);
    /* Newest change of a key at or before `at`, deletes included. 1 found, 0 not, negative. */
    int (*get)(struct vg_base_view *v, struct vg_slice key, vg_rev at, struct vg_rec **ret_rec);
    /* The same without reading the record. 1, 0, negative. */
    int (*peek)(struct vg_base_view *v, struct vg_slice key, struct vg_version *ret_version);
    /* As vg_table_collect; keys_only records have neither header nor value, and those that are
     * known (NULL: none) are not read. */
    int (*collect)(struct vg_base_view *v, const struct vg_keys *keys, struct vg_slice after,
                   vg_rev at, bool keys_only, const struct vg_known *known,
                   struct vg_rec **ret_recs, size_t max, size_t *ret_n);
    /* Changes with revision in [from, to], in order, at most max. */
    int (*log_read)(struct vg_base_view *v, vg_rev from, vg_rev to, struct vg_rec **ret_recs,
                    size_t max, size_t *ret_n);
    /* Deadlines after one, earliest first: the changes that set them, as records of which key, rev,
     * sub and expires_ms count. */
    int (*deadlines)(struct vg_base_view *v, const struct vg_deadline *after,
                     struct vg_rec **ret_recs, size_t max, size_t *ret_n);

    /* Writing. Thread: the flusher. */
    int (*apply)(struct vg_base *b, const struct vg_base_apply *apply);
    /* Records that do not read back are passed over. */
    int (*compact)(struct vg_base *b, struct vg_base_compact *compact);
    int (*reopen)(struct vg_base *b); /* after a failed apply or compact */
    /* Thread: any one at a time. */
    int (*backup)(struct vg_base *b, struct vg_backup *backup);
    uint64_t (*disk_bytes)(struct vg_base *b);
    /* Room on the disk. Thread: the commit thread, and before there is one. */
    int (*room)(struct vg_base *b, struct vg_room *ret);
    /* Hold so many bytes, no less than before. 0: they are held; negative: none are. */
    int (*take_reserve)(struct vg_base *b, uint64_t bytes);
    void (*release_reserve)(struct vg_base *b);
    void (*count_free)(struct vg_base *b); /* fills free_bytes; thread: as apply */
    /* Have the files been removed, or is another directory in their place? Thread: any. */
    bool (*is_removed)(struct vg_base *b);
    void (*close)(struct vg_base *b, vg_rev last); /* frees; NULL allowed */
};

struct vg_base {
    const struct vg_base_ops *ops;
    /* Counters of the log, written by the commit thread, read by anyone. */
    _Atomic uint64_t syncs, log_bytes;
    _Atomic uint64_t scrub_passes, scrub_bytes, scrub_damages; /* any thread */
    _Atomic uint64_t damaged;      /* records that did not read back, each once; any thread */
    _Atomic uint64_t reserve_held; /* bytes */
    _Atomic uint64_t free_bytes;   /* of the base, for what is written next; as counted last */
};

#endif
