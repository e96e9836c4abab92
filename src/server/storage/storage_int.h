/* storage_int.h - what an engine implements to stand behind storage.h. */
#ifndef VG_STORAGE_STORAGE_INT_H
#define VG_STORAGE_STORAGE_INT_H

#include "storage.h"

struct vg_storage_ops {
    int (*txn)(struct vg_storage *s, struct vg_txn *txn);
    int (*range)(struct vg_storage *s, struct vg_range *range);
    int (*watch)(struct vg_storage *s, const struct vg_watch_opts *opts, struct vg_watch **ret);
    int (*compact)(struct vg_storage *s, struct vg_compact *compact);
    int (*backup)(struct vg_storage *s, struct vg_backup *backup);
    vg_rev (*revision)(struct vg_storage *s);
    vg_rev (*compacted)(struct vg_storage *s);
    /* NULL: only this process writes; its revision is the newest there is. */
    int (*fresh)(struct vg_storage *s, struct vg_store_req *req);
    int (*health)(struct vg_storage *s, struct vg_status *reterr_status); /* NULL: always well */
    bool (*is_full)(struct vg_storage *s);                                /* NULL: never */
    void (*stats)(struct vg_storage *s, struct vg_storage_stats *ret_stats);
    void (*close)(struct vg_storage *s);
};

/* First member of every engine. */
struct vg_storage {
    const struct vg_storage_ops *ops;
};

struct vg_watch_ops {
    void (*cancel)(struct vg_watch *w);
    void (*pause)(struct vg_watch *w);
    void (*resume)(struct vg_watch *w);
    void (*progress)(struct vg_watch *w);
};

/* First member of every engine's watch. */
struct vg_watch {
    const struct vg_watch_ops *ops;
};

/* Answer a request on its loop. Thread: any. */
void vg_storage_answer(struct vg_store_req *req, int err);

/* The option with its default applied. */
struct vg_storage_opts vg_storage_opts_filled(const struct vg_storage_opts *opts);

#endif
