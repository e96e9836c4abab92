/* events.h - a watch's stream cut into its events, and no further: JSON events end with a line
 * break, protobuf ones begin with their length. What the bench writes carries a mark, a text that
 * looks the same in both: its number and when it was sent. Everything else is looked at only when
 * somebody asks. Thread: one owner of each stream. */
#ifndef VG_CLI_BENCH_EVENTS_H
#define VG_CLI_BENCH_EVENTS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

/* One event: far above what an API server takes as an object. */
#define VG_BENCH_EVENT_MAX ((size_t)16 << 20)

/* "vgb~" number "~" nanoseconds "~": an annotation's value. */
#define VG_BENCH_MARK_KEY "vigil-bench"
#define VG_BENCH_MARK_SIZE 36u
void vg_bench_mark(char text[VG_BENCH_MARK_SIZE], uint64_t number, uint64_t sent_ns);

struct vg_bench_event {
    struct vg_slice bytes; /* without the line break or the length */
    bool has_mark;
    uint64_t number, sent_ns; /* with a mark */
};

struct vg_bench_events {
    bool is_protobuf;
    struct vg_buf rest; /* of an event that has not come whole */
};
static inline void vg_bench_events_done(struct vg_bench_events *e)
{
    vg_buf_done(&e->rest);
}
/* What came; fn is called for each event that is whole by it. 0, -ENOMEM, VIGIL_E_TOO_LARGE. */
VG_CHECK int vg_bench_events_feed(struct vg_bench_events *e, struct vg_slice bytes,
                                  void (*fn)(void *arg, const struct vg_bench_event *event),
                                  void *arg);

/* "ADDED", "ERROR", ...; empty: it is not an event. */
struct vg_slice vg_bench_event_type(const struct vg_bench_event *e, bool is_protobuf);
/* metadata.resourceVersion of the event's object; empty: there is none. */
struct vg_slice vg_bench_event_version(const struct vg_bench_event *e, bool is_protobuf);
/* Of a list of which at least the first bytes are here: its own resourceVersion and where to go on.
 * Empty: not there, or not in these bytes. */
struct vg_slice vg_bench_list_version(struct vg_slice head, bool is_protobuf);
struct vg_slice vg_bench_list_continue(struct vg_slice head, bool is_protobuf);

#endif
