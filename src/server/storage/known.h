/* known.h - what somebody has read of the log already, by revision: a range that is told of it
 * hands out these records instead of reading them a second time. So who reads the log and then the
 * state that it led to reads each record once, in the order in which it lies on the disk, and holds
 * it once. Thread: one owner; const while a range borrows it. */
#ifndef VG_STORAGE_KNOWN_H
#define VG_STORAGE_KNOWN_H

#include "record.h"

struct vg_known {
    vg_rev after, upto;          /* of the revisions in (after, upto] */
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
/* Know it: it takes a reference. False: of its revision something else is known, or
 * it lies outside. */
static inline bool vg_known_add(struct vg_known *k, const struct vg_rec *rec)
{
    if (!vg_known_spans(k, rec->rev) || vg_known_at(k, rec->rev))
        return false;
    k->recs[rec->rev - k->after - 1] = vg_rec_ref(rec);
    return true;
}
/* What is known of a key at a revision is known no longer: the reference, or NULL. */
static inline struct vg_rec *vg_known_take(struct vg_known *k, vg_rev rev, struct vg_slice key)
{
    const struct vg_rec *rec = vg_known_at(k, rev);
    if (!rec || !vg_slice_eq(vg_rec_key(rec), key))
        return NULL;
    k->recs[rev - k->after - 1] = NULL;
    return (struct vg_rec *)rec;
}

#endif
