/* recorder_int.h - events on their way to the server.
 *
 *   vigil_record (any thread) --queue--> vg_correlate --> create, count or drop --> one exchange
 *
 * The queue has a lock; everything else belongs to the client's loop. One event is sent at a time,
 * in order. What is known of earlier events is bounded and may be forgotten: then an event is
 * written anew instead of being counted. */
#ifndef VG_CLIENT_RECORDER_RECORDER_INT_H
#define VG_CLIENT_RECORDER_RECORDER_INT_H

#include <stdatomic.h>

#include "base/list.h"
#include "base/map.h"
#include "client/object/object_int.h"
#include "client/transport/transport.h"
#include "vigil/recorder.h"

/* client-go's figures. */
#define VG_RECORDER_QUEUE_MAX 1000u
#define VG_RECORDER_SIMILAR_MAX 10u
#define VG_RECORDER_SIMILAR_NS (600 * VG_NS_PER_S)
#define VG_RECORDER_BURST 25.0
#define VG_RECORDER_REFILL_NS (300 * VG_NS_PER_S)
#define VG_RECORDER_TRIES 12u
#define VG_RECORDER_RETRY_NS (10 * VG_NS_PER_S)
/* Of each of the three tables; beyond it is emptied. */
#define VG_RECORDER_KNOWN_MAX 4096u
/* The server takes no longer ones. */
#define VG_RECORDER_MESSAGE_MAX 1024u

struct vg_record {
    struct vg_list link;
    const struct vigil_object *about; /* a reference */
    int64_t wall_ms;
    struct vg_slice type, reason, message; /* in `texts` */
    char texts[];
};

/* An event that was written. */
struct vg_known_event {
    uint64_t count;
    size_t name_n;
    char name[];
};

struct vg_correlator {
    struct vg_map objects; /* of each object: struct bucket */
    struct vg_map groups;  /* of each object, type and reason: struct group */
    struct vg_map events;  /* of each group and message: struct vg_known_event */
};

struct vigil_recorder {
    struct vigil_client *c;
    struct vg_loop *loop;
    char *component;
    struct vg_mail mail;
    struct vg_mutex mu; /* rank CLIENT_WORK */
    struct vg_list queue VG_GUARDED_BY(mu);
    size_t n_queued VG_GUARDED_BY(mu);
    bool is_mail_posted VG_GUARDED_BY(mu);
    bool is_freed; /* as soon as the mail has come */
    /* the loop's */
    struct vg_correlator known;
    struct vg_record *now;        /* that is being sent */
    struct vg_buf key;            /* of its event */
    bool is_combined;             /* stands for similar ones */
    struct vg_known_event *event; /* to count up; NULL: to create */
    struct vg_exchange *x;
    struct vg_timer retry;
    unsigned tries;
    char name[320]; /* of the event being created */
};

void vg_correlator_done(struct vg_correlator *k);
/* What to do with r->now: 1: send it, with key, event and is_combined set; 0: too many, drop it;
 * -ENOMEM. */
VG_CHECK int vg_correlate(struct vigil_recorder *r);
/* It was written under r->name, or counted. */
void vg_correlated(struct vigil_recorder *r);
void vg_correlator_forget_event(struct vigil_recorder *r);

/* event.c: the JSON of an event, or of the patch that counts it up. 0 or -ENOMEM. */
VG_CHECK int vg_event_write(struct vigil_recorder *r, struct vg_buf *out);
VG_CHECK int vg_event_write_count(struct vigil_recorder *r, struct vg_buf *out);

#endif
