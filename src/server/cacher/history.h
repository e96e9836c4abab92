/* history.h - the hot tail of one kind's history: recent changes with what they replaced.
 * Changes are numbered by a sequence per kind and live in segments, held by a view: an immutable
 * list of segments. A segment ends when it is full or holds its share of the bytes, so that
 * dropping whole ones keeps to the cap also when objects are large. A reader holds a view and reads
 * any change below the number that it was given with it; the one writer appends behind that number,
 * and evicts whole segments by publishing a view without them. What falls out is still in storage
 * until compaction, slower.
 *
 * Each change links to the one before it with the same namespace and with the same trigger value,
 * the old value and the new one, so that replaying for one node or one namespace costs what it
 * delivers.
 *
 * Invariants, checked by vg_history_check():
 *   H1 (revision, sub) strictly increases with the sequence.
 *   H2 a link points to a lower sequence with the same value, and none with it lies between.
 *   H3 a change below the number that a reader was given does not change any more, but for its
 *      forms and its root, which are made once.
 *   H4 the oldest sequence never falls; `oldest_rev` is the revision after which the tail is whole:
 *      a reader that has seen it, or more, needs nothing that was evicted.
 *   H5 `rev` and `keeps_trigger` say of a change what its records say.
 *   H6 segments follow each other without a gap; each but the newest is full or holds its share. */
#ifndef VG_CACHER_HISTORY_H
#define VG_CACHER_HISTORY_H

#include <stdatomic.h>

#include "base/map.h"
#include "object/form.h"
#include "server/storage/storage.h"
#include "tree.h"

/* 256 changes: an allocation of 20 KiB, and eviction in steps that readers do not notice. */
#define VG_SEGMENT_CHANGES 256
/* A segment with an eighth of bytes_max ends, so eviction drops an eighth of the tail at a time;
 * but not below 64 KiB, three times the segment itself. */
#define VG_SEGMENT_SHARE 8
#define VG_SEGMENT_BYTES_MIN ((size_t)64 << 10)
/* 16 changes stay whatever they weigh: a watcher that is one batch behind finds them here. With the
 * largest objects (3 MiB) they are 48 MiB. */
#define VG_HISTORY_FLOOR 16

/* A link is the sequence it points to plus one; 0 = none. */
typedef uint64_t vg_link;

struct vg_change {
    const struct vg_rec *rec;  /* the change; a delete has no value of its own */
    const struct vg_rec *prev; /* what it replaced or deleted; NULL for a create */
    vg_rev rev;                /* of rec: a search or a look ahead touches no record */
    /* State of the kind after the batch that this change ends; NULL inside a batch. Set once,
     * perhaps while others read the change: the newest of a start gets it when the list is there.
     */
    _Atomic(struct vg_root *) root;
    int64_t at_ms; /* monotonic time of arrival */
    vg_link same_namespace;
    vg_link same_trigger;     /* with the trigger value of rec */
    vg_link same_trigger_old; /* with that of prev, where it differs */
    bool keeps_trigger;       /* rec has the trigger value of prev, or one of them is absent */
    struct vg_forms forms;    /* encodings made so far */
};

struct vg_segment {
    _Atomic uint32_t refs; /* views, and batches that point into it */
    uint32_t n;            /* the writer's */
    uint64_t first;        /* sequence of changes[0] */
    size_t bytes;          /* of the records that it alone may hold */
    struct vg_change changes[VG_SEGMENT_CHANGES];
};

/* A segment in a view; `first` is the segment's, here so that a search reads the view alone. */
struct vg_view_part {
    uint64_t first;
    struct vg_segment *segment; /* reference */
};

struct vg_history_view {
    _Atomic uint32_t refs;
    uint64_t oldest; /* first sequence in it */
    vg_rev oldest_rev;
    size_t n;
    struct vg_view_part parts[];
};

struct vg_history_limits {
    size_t events_min; /* not fewer, however old, within bytes_max; 100 as in kube-apiserver */
    size_t events_max; /* never more; 102400 */
    /* Of records held for history's sake. Above it, VG_HISTORY_FLOOR stands for events_min. */
    size_t bytes_max;
    int64_t window_ms; /* what is younger stays, within the maxima; 75 s */
};

/* A segment with as many bytes ends. */
static inline size_t vg_segment_share(const struct vg_history_limits *l)
{
    size_t share = l->bytes_max / VG_SEGMENT_SHARE;
    return share > VG_SEGMENT_BYTES_MIN ? share : VG_SEGMENT_BYTES_MIN;
}

/* How a change names its trigger value; NULL: the kind has no trigger. */
typedef struct vg_slice vg_trigger_fn(const struct vg_rec *rec, void *arg);
typedef struct vg_slice vg_namespace_fn(const struct vg_rec *rec, void *arg);

struct vg_history {
    struct vg_history_limits limits;
    vg_trigger_fn *trigger;
    vg_namespace_fn *ns;
    void *arg;
    struct vg_history_view *view; /* reference */
    uint64_t next;                /* sequence of the next change */
    size_t bytes;
    struct vg_map by_trigger, by_namespace; /* value -> vg_link of the newest change with it */
    uint64_t grown, shrunk;                 /* segments */
};

/* Everything up to `rev` happened before the history begins. -ENOMEM. */
VG_CHECK int vg_history_init(struct vg_history *h, const struct vg_history_limits *limits,
                             vg_rev rev);
void vg_history_done(struct vg_history *h);

/* ---- the writer ---- */

/* Append one change; takes references of its own. *ret_change stays valid as long as *ret_segment
 * is referenced (the history's own reference lasts until eviction). -ENOMEM: nothing was added. */
VG_CHECK int vg_history_append(struct vg_history *h, const struct vg_rec *rec,
                               const struct vg_rec *prev, int64_t now_ms,
                               struct vg_change **ret_change, struct vg_segment **ret_segment);
/* Give the newest change its root, if there is a change and it has none. Consumes take_root. */
void vg_history_set_root(struct vg_history *h, struct vg_root *take_root);
/* Let go of segments that the limits no longer keep. */
void vg_history_evict(struct vg_history *h, int64_t now_ms);
/* Forget everything: the state was repaired by a new list at `rev`. Sequences go on. -ENOMEM. */
VG_CHECK int vg_history_restart(struct vg_history *h, vg_rev rev);

/* ---- readers, with the view and the number that they were given ---- */

struct vg_history_view *vg_history_view_ref(struct vg_history_view *v);
void vg_history_view_unref(struct vg_history_view *v); /* NULL allowed */
void vg_segment_ref(struct vg_segment *s);
void vg_segment_unref(struct vg_segment *s);

/* The change with this sequence: view->oldest <= seq < the number that was given. */
struct vg_change *vg_history_at(const struct vg_history_view *v, uint64_t seq);
/* The first sequence whose revision is above `rev`; `end` when there is none. */
uint64_t vg_history_after(const struct vg_history_view *v, uint64_t end, vg_rev rev);
/* The state at exactly `rev`, with a reference; NULL: the tail does not have it, since it is older
 * or lies inside a batch. */
struct vg_root *vg_history_root_at(const struct vg_history_view *v, uint64_t end, vg_rev rev);

/* Newest change with this value. Thread: the writer, or under the lock that keeps it out. */
vg_link vg_history_newest_trigger(struct vg_history *h, struct vg_slice value);
vg_link vg_history_newest_namespace(struct vg_history *h, struct vg_slice ns);

void vg_history_check(struct vg_history *h); /* aborts when an invariant is broken */

#endif
