/* session.h - one open store and plain calls on it.
 * A session is a store and a loop that is turned by hand: each call submits a request, turns the
 * loop until the answer is there and returns it. Thread: the one that opened it. */
#ifndef VG_TOOL_SESSION_H
#define VG_TOOL_SESSION_H

#include "base/log_sink.h"
#include "server/storage/storage.h"

struct vg_session {
    struct vg_loop *loop;
    struct vg_storage *store;
    uint64_t open_ns;        /* what opening took */
    struct vg_log_sink sink; /* what the store has to say goes to stderr */
    struct vg_log log;
};

struct vg_session_opts {
    const char *dir;
    bool may_create; /* else a directory without a store is VIGIL_E_NOT_FOUND and left alone */
    bool unsafe_no_fsync;
    vg_rev first_above;              /* as in struct vg_storage_opts */
    const struct vg_etcd_opts *etcd; /* a cluster in place of a directory; NULL: none */
};

/* What was due to expire while nobody had the store open is gone when this returns. Errors: as
 * vg_storage_open_lmdb, or VIGIL_E_NOT_FOUND; then nothing needs to be closed. */
VG_CHECK int vg_session_open(struct vg_session *s, const struct vg_session_opts *opts,
                             struct vg_status *reterr_status);
/* Harmless when closed already, or zeroed and never opened. */
void vg_session_close(struct vg_session *s);
static inline void vg_session_cleanup(struct vg_session *s)
{
    vg_session_close(s);
}

/* Each fills the request's loop and done function. What the store said, with its sentence. */
VG_CHECK int vg_session_txn(struct vg_session *s, struct vg_txn *txn,
                            struct vg_status *reterr_status);
VG_CHECK int vg_session_range(struct vg_session *s, struct vg_range *range,
                              struct vg_status *reterr_status);
VG_CHECK int vg_session_compact(struct vg_session *s, struct vg_compact *compact,
                                struct vg_status *reterr_status);
VG_CHECK int vg_session_backup(struct vg_session *s, struct vg_backup *backup,
                               struct vg_status *reterr_status);

/* 0 or VIGIL_E_KEY_INVALID; the store would say so too, but only once it is open. */
VG_CHECK int vg_session_check_key(struct vg_slice key, struct vg_status *reterr_status);

/* One change of one key. */
struct vg_change {
    enum vg_op_type type;
    struct vg_slice key, value;
    vg_rev expect; /* VG_EXPECT_ANY */
    uint64_t ttl_ms;
    vg_rev rev; /* result */
    vg_rev
        prev_rev; /* result: what the key held before, 0: nothing; after CONFLICT: what it holds */
};
VG_CHECK int vg_session_change(struct vg_session *s, struct vg_change *change,
                               struct vg_status *reterr_status);
/* The record of a key, with a reference. VIGIL_E_NOT_FOUND. */
VG_CHECK int vg_session_get(struct vg_session *s, struct vg_slice key, vg_rev at,
                            struct vg_rec **ret_rec, struct vg_status *reterr_status);

/* Every record that a prefix covers, in key order, all as of one revision, a page at a time. */
struct vg_each {
    struct vg_slice prefix;
    vg_rev at;         /* 0: now; result: the revision that was read */
    uint64_t limit;    /* 0: none */
    bool is_keys_only; /* as VG_RANGE_KEYS_ONLY */
    bool has_more;     /* result: the limit cut it off */
    /* 0, or an error that ends the walk; rec is borrowed. */
    int (*fn)(void *arg, const struct vg_rec *rec, struct vg_status *reterr_status);
    void *arg;
};
VG_CHECK int vg_session_each(struct vg_session *s, struct vg_each *each,
                             struct vg_status *reterr_status);

/* All keys that begin with prefix; `end` holds what the result points to. */
#define VG_PREFIX_END_MAX (VG_STORAGE_KEY_MAX + 1)
VG_CHECK int vg_prefix_keys(struct vg_slice prefix, char end[VG_PREFIX_END_MAX],
                            struct vg_keys *ret_keys, struct vg_status *reterr_status);

#endif
