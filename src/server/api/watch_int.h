/* watch_int.h - a watch, between the files that start it and that carry it. */
#ifndef VG_API_WATCH_INT_H
#define VG_API_WATCH_INT_H

#include "options.h"
#include "respond_int.h"
#include "table.h"

/* What a watch has beside its call and its watcher, which know the bytes, the user and the
 * selectors. */
struct vg_watch_call {
    struct vg_sink sink;
    struct vg_api_call *call;   /* in the loop's watches */
    struct vg_cache_watcher *w; /* NULL: over */
    const struct vg_kind *kind;
    uint64_t events;
    vg_rev after;    /* where it started, for the message of a 410 */
    uint32_t pinned; /* told to the cacher, while full */
    uint8_t form;
    uint8_t scope; /* enum vg_watch_scope */
    bool is_full : 1;
    bool is_settled : 1;
    bool is_without_length : 1; /* protobuf in messages of a WebSocket */
    bool is_list : 1;           /* begins with a state whose end is marked */
    bool is_table : 1;          /* each event is a Table of one row */
    bool is_v1beta1 : 1;        /* such a Table */
    bool is_headed : 1;         /* the first one has left: definitions are told once */
    uint8_t include;            /* enum vg_table_include */
};

/* For struct vg_watch_call.sink, and for its call. */
extern const struct vg_sink_ops vg_watch_sink_ops;
extern const struct vg_api_op vg_watch_op;

/* The initial phase is over. */
void vg_watch_settle(struct vg_watch_call *w);
/* {"type":"ERROR","object":STATUS}, the last event, as the form of the watch has it. */
void vg_watch_write_error(struct vg_api_call *call, uint32_t form, bool is_without_length,
                          const struct vg_api_status *status);
/* 410, as it is said of a kind. */
void vg_watch_say_expired(struct vg_arena *a, const struct vg_kind *kind, vg_rev after,
                          vg_rev oldest, struct vg_api_status *ret);

#endif
