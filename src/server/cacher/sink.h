/* sink.h - where a watch delivers: the next station, without its sockets.
 * A watcher hands over frames. The slices of a frame point into a block that stays as it is while
 * somebody holds its pin, into constants, and into the frame itself; a sink that cannot send at
 * once keeps a copy of the frame (vg_frame_copy) and a pin, never the bytes. It may say that it is
 * full: then the frame was taken, but it is the last until the sink says drained. So a connection
 * is never owed more than its limit and one frame. Thread: the loop of the watch. */
#ifndef VG_CACHER_SINK_H
#define VG_CACHER_SINK_H

#include "object/splice.h"

/* One event on its way. */
struct vg_frame {
    struct vg_obj_splice splice;
    const void *block; /* what the slices point into; NULL: constants and the frame alone */
    void (*ref)(const void *block);
    void (*unref)(const void *block);
    /* Of events in the stored form, for sinks within the process: what happened, and the record
     * that is shown, which is block. VG_OBJ_NONE: a bookmark, or another form. */
    enum vg_obj_change change;
};

/* Copy a frame to keep it, with a reference of the block: `frame_done` gives it back. */
void vg_frame_copy(struct vg_frame *to, const struct vg_frame *from);
void vg_frame_done(struct vg_frame *f);
static inline size_t vg_frame_size(const struct vg_frame *f)
{
    return vg_obj_splice_size(&f->splice);
}

enum vg_sink_answer { VG_SINK_OPEN = 0, VG_SINK_FULL = 1 };

/* Why a watch ended; each is counted. */
enum vg_watch_end {
    VG_END_TIME = 0,   /* its time is over */
    VG_END_EXPIRED,    /* what it needs next has been compacted: 410 */
    VG_END_DRAIN,      /* the server shuts down */
    VG_END_STALLED,    /* no byte accepted for the stall limit while bytes wait */
    VG_END_PINNED,     /* slow readers pin too much, and it was the oldest */
    VG_END_CONTINUITY, /* the cache lost its place in the history */
    VG_END_GONE,       /* the sink said that the other side is gone */
    VG_END_INTERNAL,   /* out of memory, a store that does not answer */
    VG_END_UNREADABLE, /* something that may concern it cannot be read */
    VG_END_REASONS
};
const char *vg_watch_end_name(enum vg_watch_end why);

struct vg_sink;
struct vg_sink_ops {
    /* VG_SINK_OPEN or VG_SINK_FULL: the frame was taken. Negative: the other side is gone. */
    int (*write)(struct vg_sink *sink, const struct vg_frame *frame);
    /* The last call, at the end of a frame. oldest: with VG_END_EXPIRED, the oldest revision that a
     * watch may start from. */
    void (*end)(struct vg_sink *sink, enum vg_watch_end why, uint64_t oldest);
    /* May be NULL. The watcher has caught up: after its initial events, and whenever it was behind.
     * It must not be stopped from within. Kinds without a cache never say so. */
    void (*live)(struct vg_sink *sink);
};
struct vg_sink {
    const struct vg_sink_ops *ops;
};

#endif
