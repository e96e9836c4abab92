/* watch_int.h - a watch, between the files that start it and that carry it. */
#ifndef VG_API_WATCH_INT_H
#define VG_API_WATCH_INT_H

#include "options.h"
#include "respond_int.h"

struct vg_watch_call {
    struct vg_sink sink;
    struct vg_api_call *call;
    struct vg_cache_watcher *w; /* NULL: over */
    struct vg_list link;        /* in the loop's watches */
    const struct vg_kind *kind;
    struct vg_watch_count *count; /* NULL: not counted */
    uint64_t events, bytes;
    size_t pinned; /* told to the cacher, while full */
    vg_rev after;  /* where it started, for the message of a 410 */
    uint8_t form;
    bool is_full, is_settled;
    bool is_list;  /* begins with a state whose end is marked */
    uint8_t scope; /* enum vg_watch_scope */
    uint16_t ns_n, label_n, field_n;
    char texts[]; /* namespace, label selector, field selector: for the debug endpoint */
};

/* For struct vg_watch_call.sink, and for its call. */
extern const struct vg_sink_ops vg_watch_sink_ops;
extern const struct vg_api_op vg_watch_op;

/* The initial phase is over. */
void vg_watch_settle(struct vg_watch_call *w);
/* {"type":"ERROR","object":STATUS}, the last event. */
void vg_watch_write_error(struct vg_api_call *call, const struct vg_api_status *status);
/* 410, as it is said of a kind. */
void vg_watch_say_expired(struct vg_arena *a, const struct vg_kind *kind, vg_rev after,
                          vg_rev oldest, struct vg_api_status *ret);

#endif
