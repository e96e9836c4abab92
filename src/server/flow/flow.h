/* flow.h - API priority and fairness: which requests may run now, which wait, which are refused.
 * The objects, the arithmetic and the words are kube-apiserver's.
 *
 *   classify   the first FlowSchema that matches gives the request its priority level and its flow
 *   take       seats of the level: at once, or after a wait in a queue, or not at all (429)
 *   give       the seats are free again, perhaps after a while: then whoever waits is woken by mail
 *
 * A FlowSchema and a PriorityLevelConfiguration are the API objects; here they are a schema and a
 * level. The schemas are an immutable table; each loop has a view of the newest. Looking up a
 * schema takes no lock and does not allocate, and neither does taking a seat that is free: that is
 * one compare-and-swap of the level. A level has a lock for the time in which requests wait.
 *
 * Owner: a view holds its table, a table holds its levels; a ticket holds its view. So a level
 * outlives every request that has its seats. Thread: struct vg_flow any; struct vg_flow_loop and
 * tickets belong to their loop. */
#ifndef VG_SERVER_FLOW_FLOW_H
#define VG_SERVER_FLOW_FLOW_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "loop/loop.h"
#include "net/http.h"

struct vg_log;
struct vg_metrics;
struct vg_flow;
struct vg_flow_level;
struct vg_flow_loop;
struct vg_flow_queue;
struct vg_flow_schema;
struct vg_flow_series;
struct vg_flow_view;

/* 1024: kube-apiserver's default levels have 128 queues at most. A level that wants more gets so
 * many; a queue costs about 150 bytes, and each waiting request makes us look at those in use. */
#define VG_FLOW_QUEUES_MAX 1024u
/* As kube-apiserver's validation allows: a hand of 64 bits of hash. */
#define VG_FLOW_HAND_MAX 15u
/* 10000: with the default 128 queues, more than a process can have connections for. */
#define VG_FLOW_QUEUE_LENGTH_MAX 10000u
/* 2048 objects of a kind: more are ignored, and an error is logged. */
#define VG_FLOW_OBJECTS_MAX 2048u

struct vg_flow_opts {
    const struct vg_clock *clock; /* NULL = the system's */
    const struct vg_log *log;     /* NULL = silent */
    struct vg_metrics *metrics;   /* NULL: not counted */
    uint32_t seats;               /* of all levels together; at least 1 */
};
/* Begins with the mandatory objects alone. 0, -ENOMEM. */
VG_CHECK int vg_flow_new(const struct vg_flow_opts *opts, struct vg_flow **ret_flow);
void vg_flow_free(struct vg_flow *f); /* every loop is closed */

VG_CHECK int vg_flow_loop_open(struct vg_flow *f, struct vg_loop *loop,
                               struct vg_flow_loop **ret_loop);
void vg_flow_loop_close(struct vg_flow_loop *l); /* it has no ticket any more */

/* ---- configuration ---- */

/* From the next request on, work by these objects, given as their JSON. An object that makes no
 * sense is left out, as kube-apiserver does; so are schemas without a level. Requests that wait
 * stay where they are. 0, -ENOMEM: requests are classified as before; try again. */
VG_CHECK int vg_flow_configure(struct vg_flow *f, const struct vg_slice *schemas, size_t n_schemas,
                               const struct vg_slice *levels, size_t n_levels);
/* Looks at how many seats each level wants, and every VG_FLOW_REBALANCE_NS lets levels borrow from
 * each other. Call it again after the nanoseconds that it returns. Thread: one. */
uint64_t vg_flow_tick(struct vg_flow *f);
#define VG_FLOW_REBALANCE_NS (10 * VG_NS_PER_S)

/* ---- classification ---- */

struct vg_flow_attributes {
    struct vg_slice user;
    const struct vg_slice *groups;
    size_t n_groups;
    struct vg_slice verb;
    bool is_resource;
    struct vg_slice group, version, resource, subresource, ns, name; /* of a resource */
    struct vg_slice path;
};

/* What a request asks of a resource, but for names: requests of a user that are alike in this are
 * of one schema, unless a schema names namespaces. */
struct vg_flow_likeness {
    const void *kind, *sub; /* which is which, not what they are; kind NULL: not a resource */
    uint32_t verb;
    bool has_namespace;
};

/* 4: a client gets, lists, watches and writes one kind at a time. */
#define VG_FLOW_MEMOS 4u

/* What is known of a user, kept with the user; zeroed at first. */
struct vg_flow_subject_cache {
    uint64_t generation;  /* of the table; 0: none */
    uint64_t mask;        /* bit i: a subject of the i-th schema; those from 64 on are not here */
    bool is_by_namespace; /* one of these has rules for single namespaces: remember nothing */
    struct vg_flow_memo {
        struct vg_flow_likeness like;
        const struct vg_flow_schema *schema; /* of the table of that generation; NULL: none */
    } memos[VG_FLOW_MEMOS];
};

enum vg_flow_state {
    VG_FLOW_NONE,       /* not classified */
    VG_FLOW_CLASSIFIED, /* has a schema, and no seat */
    VG_FLOW_WAITING,    /* in a queue */
    VG_FLOW_EXECUTING,  /* has seats */
};

/* A request's place; zeroed at first. */
struct vg_flow_ticket {
    struct vg_flow_view *view;
    const struct vg_flow_schema *schema;
    struct vg_flow_queue *queue; /* that it was dispatched from; NULL: it did not wait */
    uint64_t started_ns;         /* it was dispatched from the queue */
    uint32_t linger_us;          /* the seats stay taken so long after the end */
    uint16_t initial, seats;     /* while it runs; at most, which is what it holds */
    uint8_t state;               /* enum vg_flow_state */
};

/* Find the schema of a request that is like another of the user's. The ticket was zeroed. False:
 * there was none lately; ask vg_flow_classify. */
bool vg_flow_classify_again(struct vg_flow_loop *l, const struct vg_flow_likeness *like,
                            const struct vg_flow_subject_cache *cache, struct vg_flow_ticket *t);
/* Find the schema, and remember it. Never fails: what nothing matches is catch-all's. */
void vg_flow_classify(struct vg_flow_loop *l, const struct vg_flow_attributes *a,
                      const struct vg_flow_likeness *like, struct vg_flow_subject_cache *cache,
                      struct vg_flow_ticket *t);
/* The headers of the answer; lives as long as the ticket. NULL: not classified. */
const struct vg_http_block *vg_flow_headers(const struct vg_flow_ticket *t);
bool vg_flow_is_exempt(const struct vg_flow_ticket *t);
/* The most seats that one request of the level may be estimated at, of at most `limit`. */
uint32_t vg_flow_seats_max(const struct vg_flow_ticket *t, uint32_t limit);
/* For messages and the log. */
struct vg_slice vg_flow_schema_name(const struct vg_flow_ticket *t);
struct vg_slice vg_flow_level_name(const struct vg_flow_ticket *t);

/* ---- seats ---- */

/* What a request costs: seats while it runs, then seats for a while. */
struct vg_flow_work {
    uint32_t initial, final;
    uint32_t linger_us;
};

/* A request that waits. The caller keeps it until it runs or is cancelled. */
struct vg_flow_wait {
    struct vg_list link; /* in its queue, then among those to be woken */
    struct vg_mail mail;
    struct vg_loop *loop;
    struct vg_flow_ticket *ticket;
    struct vg_flow_queue *queue;
    double arrival_r,
        work; /* virtual time when it came; seat-seconds that it is expected to take */
    uint64_t arrived_ns;
    int64_t arrived_ms; /* wall clock, to be shown */
    struct vg_slice distinguisher;
    struct vg_flow_attributes attributes; /* what they point to lives as long */
    bool is_queued;                       /* guarded by the level's lock */
    /* It has its seats. On its loop, never from within vg_flow_take. */
    void (*go)(struct vg_flow_wait *w);
};

enum vg_flow_answer { VG_FLOW_GO, VG_FLOW_MUST_WAIT, VG_FLOW_REJECT };
/* Seats if they are free and nobody waits for them: VG_FLOW_GO. VG_FLOW_MUST_WAIT: not so; go on
 * with vg_flow_enqueue. */
enum vg_flow_answer vg_flow_take(struct vg_flow_ticket *t, const struct vg_flow_work *work);
/* VG_FLOW_GO; VG_FLOW_MUST_WAIT: w->go comes, unless vg_flow_cancel says otherwise;
 * VG_FLOW_REJECT: answer 429. `w` is zeroed but for loop, go, attributes. */
enum vg_flow_answer vg_flow_enqueue(struct vg_flow_ticket *t, const struct vg_flow_work *work,
                                    struct vg_flow_wait *w);
/* The client left, or the wait took too long. True: it has left the queue, and go will not come.
 * False: it has its seats, and go is on its way. */
bool vg_flow_cancel(struct vg_flow_wait *w);
/* Seconds for Retry-After after a refusal, which is counted. */
uint32_t vg_flow_retry_after(struct vg_flow_ticket *t);

/* The request is over as far as the server's work goes. With linger_us the seats are kept for that
 * long by a timer of the loop. Harmless without seats. */
void vg_flow_give(struct vg_flow_loop *l, struct vg_flow_ticket *t);
/* The ticket is not used any more: gives, and lets go of the view. */
void vg_flow_ticket_done(struct vg_flow_loop *l, struct vg_flow_ticket *t);

/* For metrics. The series of a ticket outlives it; NULL: not classified. */
struct vg_flow_series *vg_flow_series_of(const struct vg_flow_ticket *t);
void vg_flow_observe_execution(struct vg_flow_series *s, uint64_t ns, bool is_watch);
void vg_flow_observe_watch_count(const struct vg_flow_ticket *t, uint32_t watchers);

/* ---- looking at it ---- */

/* The texts of /debug/api_priority_and_fairness. 0, -ENOMEM. Thread: any. */
VG_CHECK int vg_flow_dump_levels(struct vg_flow *f, struct vg_buf *out);
VG_CHECK int vg_flow_dump_queues(struct vg_flow *f, struct vg_buf *out);
VG_CHECK int vg_flow_dump_requests(struct vg_flow *f, bool with_details, struct vg_buf *out);

#endif
