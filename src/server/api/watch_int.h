/* watch_int.h - a watch, between the files that start it and that carry it. */
#ifndef VG_API_WATCH_INT_H
#define VG_API_WATCH_INT_H

#include "options.h"
#include "respond_int.h"
#include "table.h"

/* For the sink of a call that is a watch, and for the call. */
extern const struct vg_sink_ops vg_watch_sink_ops;
extern const struct vg_api_op vg_watch_op;

/* The initial phase is over. */
void vg_watch_settle(struct vg_api_call *call);
/* {"type":"ERROR","object":STATUS}, the last event, as the form of the watch has it. */
void vg_watch_write_error(struct vg_api_call *call, const struct vg_api_status *status);
/* 410, as it is said of a kind. */
void vg_watch_say_expired(struct vg_arena *a, const struct vg_kind *kind, vg_rev after,
                          vg_rev oldest, struct vg_api_status *ret);

#endif
