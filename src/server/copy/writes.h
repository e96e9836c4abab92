/* writes.h - many changes of a store at once: they are collected, sent together and waited for.
 * Thread: main, which turns the loop that answers come to. */
#ifndef VG_COPY_WRITES_H
#define VG_COPY_WRITES_H

#include "copy.h"

struct vg_write {
    struct vg_txn txn;
    struct vg_op op;
    bool is_answered;
};

struct vg_writes {
    struct vg_session *s;
    struct vg_write writes[VG_COPY_PAGE];
    size_t n;
};

/* Collects a change, and sends all when there are VG_COPY_PAGE. expect: the revision that the key
 * has at the target now, 0: none. The record's key, header and value are copied. */
VG_CHECK int vg_writes_put(struct vg_writes *w, const struct vg_rec *rec, vg_rev expect,
                           uint64_t ttl_ms, struct vg_status *reterr_status);
VG_CHECK int vg_writes_delete(struct vg_writes *w, struct vg_slice key, vg_rev expect,
                              struct vg_status *reterr_status);
/* Sends what was collected. The first error; what others became is not told: the copy is run again.
 */
VG_CHECK int vg_writes_send(struct vg_writes *w, struct vg_status *reterr_status);
void vg_writes_done(struct vg_writes *w);

#endif
