/* known.h - what somebody has read of the log already, by revision: a range that is told of it
 * hands out these records instead of reading them a second time. So who reads the log and then the
 * state that it led to reads each record once, in the order in which it lies on the disk, and holds
 * it once. Thread: one owner; const while a range borrows it. */
#ifndef VG_STORAGE_KNOWN_H
#define VG_STORAGE_KNOWN_H

#include "record.h"

/* A second change of its revision, or a later one. */
struct vg_known_more {
    vg_rev rev;
    const struct vg_rec *rec; /* reference; NULL: taken */
};

struct vg_known {
    vg_rev after, upto;         /* of the revisions in (after, upto] */
    struct vg_known_more *more; /* by revision */
    size_t n_more, more_cap;
    const struct vg_rec *recs[]; /* by revision, from after + 1 on; references; NULL: not known */
};

/* Nothing is known. NULL: no memory. */
struct vg_known *vg_known_new(vg_rev after, vg_rev upto);
void vg_known_free(struct vg_known *k); /* NULL allowed */

static inline bool vg_known_spans(const struct vg_known *k, vg_rev rev)
{
    return k && rev > k->after && rev <= k->upto;
}
/* Borrowed, and perhaps another change of the revision; NULL: none is known. k may be NULL. */
static inline const struct vg_rec *vg_known_at(const struct vg_known *k, vg_rev rev)
{
    return vg_known_spans(k, rev) ? k->recs[rev - k->after - 1] : NULL;
}
/* The change of this key at this revision, borrowed, or NULL. k may be NULL. */
const struct vg_rec *vg_known_find(const struct vg_known *k, vg_rev rev, struct vg_slice key);
/* Know it: it takes a reference. Revisions do not fall from call to call. False: it lies outside,
 * or there is no memory. */
bool vg_known_add(struct vg_known *k, const struct vg_rec *rec);
/* What is known of a key at a revision is known no longer: the reference, or NULL. */
struct vg_rec *vg_known_take(struct vg_known *k, vg_rev rev, struct vg_slice key);

#endif
