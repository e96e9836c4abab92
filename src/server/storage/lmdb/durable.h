/* durable.h - the file "durable": up to which revision the log is known to be on the disk.
 * A log cannot tell by itself whether its last groups were cut off: a group that was torn by a
 * power cut, and that nobody was told of, looks the same as one that was acknowledged and damaged
 * later. So the newest acknowledged revision is kept in a file of its own, the mark. It is written
 * after the group is on the disk and is not synced: this costs one small write to the page cache
 * for a group and no wait. So the mark may be behind the log, after a power cut by as long as the
 * kernel keeps a dirty page (about 30 s); it is never ahead. D1 the mark names no revision that was
 * not on the disk before. A log that ends below it is damaged. There are two slots on pages of
 * their own, written in turn: one may be damaged. Thread: whoever appends to the log. */
#ifndef VG_STORAGE_DURABLE_H
#define VG_STORAGE_DURABLE_H

#include "server/storage/storage.h"

struct vg_durable {
    int fd; /* -1: no mark is kept */
    uint64_t salt;
    uint64_t seq; /* of the slot that was written last */
    vg_rev last;
    bool is_one_slot_bad;
};

/* Make the file for a new store, durably. */
VG_CHECK int vg_durable_create(int dirfd, uint64_t salt, vg_rev last);
/* -ENOENT: there is none. VIGIL_E_STORE_DAMAGED: neither slot reads back, or it is of another
 * store. Nothing is written. */
VG_CHECK int vg_durable_open(struct vg_durable *d, int dirfd, uint64_t salt);
/* The salt and the mark of whatever store it belongs to, for a repair. */
VG_CHECK int vg_durable_peek(int dirfd, uint64_t *ret_salt, vg_rev *ret_last);
/* `last` is on the disk. A write that fails leaves an older mark, which is no less true. */
void vg_durable_note(struct vg_durable *d, vg_rev last);
/* The same in both slots, and synced: after recovery. */
VG_CHECK int vg_durable_settle(struct vg_durable *d, vg_rev last);
void vg_durable_close(struct vg_durable *d);

#endif
