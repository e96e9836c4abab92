/* flow_int.h - what the files of this room share: levels, tables, series. */
#ifndef VG_SERVER_FLOW_FLOW_INT_H
#define VG_SERVER_FLOW_FLOW_INT_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/metrics.h"
#include "flow.h"

/* ---- levels: level.c ---- */

/* What a PriorityLevelConfiguration says. */
struct vg_flow_level_spec {
    struct vg_slice name, uid;
    bool is_exempt;
    uint32_t shares;
    uint32_t lendable_percent;
    int64_t borrowing_percent;     /* negative: no limit */
    uint32_t queues, hand, length; /* queues 0: refuse at once */
};

struct vg_flow_queue {
    struct vg_list link;    /* in level->busy while something waits in it */
    struct vg_list waiting; /* struct vg_flow_wait, oldest first */
    uint32_t index;
    uint32_t n;         /* that wait */
    uint32_t executing; /* dispatched from it and not over */
    uint32_t seats;     /* that those hold, with those that linger */
    uint32_t waiting_seats, waiting_initial;
    double next_r;   /* virtual time at which the oldest one starts */
    double work_sum; /* of those that wait */
};

/* How many seconds to stay away, by how many requests were refused lately. */
struct vg_flow_drops {
    int64_t second; /* of the newest count */
    int64_t raised; /* the second at which retry was doubled last */
    uint32_t retry; /* 0 is 1 */
    uint32_t counts[64];
};

/* The 63 low bits are the seats in use; this one says that requests wait. */
#define VG_FLOW_CROWDED (UINT64_C(1) << 63)

/* Demand for seats in the current period, and what the last ones made of it. Guarded by flow->mu.
 */
struct vg_flow_demand {
    double sum, sum_squares, weight; /* of the samples */
    uint64_t sampled_ns;
    double average, deviation, smoothed, target;
    uint32_t high;
};

/* Invariants, checked by vg_flow_level_check() in debug builds whenever the lock is let go:
 *   L1 CROWDED is set if and only if n_waiting > 0. It changes under the lock alone. While it is
 *      set, nobody takes a seat without the lock; so requests that wait are not overtaken.
 *   L2 a queue is in `busy` if and only if n > 0; n_waiting is the sum of n.
 *   L3 the seats in `state` are at least the sum of the queues' seats.
 *   L4 n_active counts the queues with n + executing > 0; tracked is the sum of their seats and
 *      waiting_seats.
 *   L5 a request in a queue is dispatched or cancelled exactly once: is_queued says so.
 * Nobody is forgotten: who gives seats back after CROWDED was set sees it in the same word, and
 * looks for somebody to wake; who gave them back before is seen by whoever sets it. */
struct vg_flow_level {
    _Atomic uint64_t state;
    _Atomic uint32_t limit;         /* current seats */
    _Atomic uint32_t high;          /* most seats in use and asked for in this period */
    _Atomic uint32_t waiting_seats; /* mirror of the sum, for who has not the lock */
    bool is_exempt;                 /* const */
    struct vg_slice name;           /* const; bytes behind the struct */
    const struct vg_clock *clock;
    size_t refs; /* guarded by flow->mu: tables, and flow's list */

    struct vg_mutex mu;                              /* rank FLOW_LEVEL */
    struct vg_flow_queue **queues VG_GUARDED_BY(mu); /* never fewer than before */
    uint32_t n_queues VG_GUARDED_BY(mu);             /* that exist */
    uint32_t n_dealt VG_GUARDED_BY(mu);              /* that get requests; 0: refuse at once */
    uint32_t hand, length VG_GUARDED_BY(mu);
    struct vg_list busy VG_GUARDED_BY(mu);
    uint32_t n_waiting, n_active, tracked VG_GUARDED_BY(mu);
    uint64_t enqueued VG_GUARDED_BY(mu);
    double r VG_GUARDED_BY(mu); /* virtual time: seat-seconds that each active queue has had */
    uint64_t r_ns VG_GUARDED_BY(mu);
    struct vg_flow_drops drops VG_GUARDED_BY(mu);
    uint64_t rejected, timed_out, cancelled VG_GUARDED_BY(mu);

    /* Guarded by flow->mu. */
    struct vg_list link;            /* in flow->levels */
    struct vg_flow_level_spec spec; /* without name and uid */
    bool is_wanted;                 /* by the configuration; false: it goes when it is idle */
    _Atomic uint32_t nominal, min, max;
    struct vg_flow_demand demand;
};

/* NULL: out of memory. refs is 1. */
struct vg_flow_level *vg_flow_level_new(struct vg_slice name, bool is_exempt,
                                        const struct vg_clock *clock);
void vg_flow_level_free(struct vg_flow_level *v); /* idle */
/* 0, -ENOMEM: as before. */
VG_CHECK int vg_flow_level_set_queues(struct vg_flow_level *v, uint32_t queues, uint32_t hand,
                                      uint32_t length);
void vg_flow_level_set_limit(struct vg_flow_level *v, uint32_t limit);
bool vg_flow_level_is_idle(struct vg_flow_level *v);
void vg_flow_level_check(struct vg_flow_level *v) VG_REQUIRES(v->mu);
static inline uint32_t vg_flow_level_used(const struct vg_flow_level *v)
{
    return (uint32_t)(atomic_load_explicit(&v->state, memory_order_relaxed) & ~VG_FLOW_CROWDED);
}
/* The request is over. Seats that linger stay taken. */
void vg_flow_level_give(struct vg_flow_ticket *t);
/* Give seats back at the end of lingering. */
void vg_flow_level_free_seats(struct vg_flow_level *v, struct vg_flow_queue *q, uint32_t seats);

/* deal.c: pick `hand` different ones of `deck` cards, by a hash. hand <= deck, hand at most
 * VG_FLOW_HAND_MAX. */
void vg_flow_deal(uint64_t hash, uint32_t deck, uint32_t hand, uint32_t cards[VG_FLOW_HAND_MAX]);

/* retry_after.c: count a refusal at this second; how long the client shall stay away. */
uint32_t vg_flow_drops_count(struct vg_flow_drops *d, int64_t second);

/* ---- seats for each level: shares.c ---- */

struct vg_flow_share {
    double target, low, high;
    double got; /* result */
};
/* Divide `sum`: each gets the same proportion of its target, but not less than low and not more
 * than high. Returns the proportion. */
double vg_flow_divide(struct vg_flow_share *v, size_t n, double sum);

/* ---- tables: table.c ---- */

struct vg_flow_names {
    const struct vg_slice *v;
    size_t n;
    bool is_all; /* it is "*" */
};

enum vg_flow_subject_kind { VG_FLOW_USER, VG_FLOW_GROUP, VG_FLOW_ACCOUNT };
struct vg_flow_subject {
    enum vg_flow_subject_kind kind;
    struct vg_slice ns, name;
};

struct vg_flow_resource_rule {
    struct vg_flow_names verbs, groups, resources, namespaces;
    bool has_cluster_scope;
};

struct vg_flow_path_rule {
    struct vg_flow_names verbs, paths;
};

struct vg_flow_rule {
    const struct vg_flow_subject *subjects;
    const struct vg_flow_resource_rule *resources;
    const struct vg_flow_path_rule *paths;
    size_t n_subjects, n_resources, n_paths;
};

enum vg_flow_distinguisher { VG_FLOW_BY_NONE, VG_FLOW_BY_USER, VG_FLOW_BY_NAMESPACE };

struct vg_flow_series;

struct vg_flow_schema {
    struct vg_flow_level *level;
    struct vg_flow_series *series;
    struct vg_http_block headers;
    const struct vg_flow_rule *rules;
    size_t n_rules;
    enum vg_flow_distinguisher distinguisher;
    int64_t precedence;
    uint32_t seats_max; /* for estimates; 0: no limit */
    struct vg_slice name, uid, level_name;
};

struct vg_flow_table {
    _Atomic size_t refs;
    uint64_t generation; /* from 1 on */
    struct vg_flow *flow;
    struct vg_arena arena;
    struct vg_flow_schema *schemas; /* in the order in which they are tried */
    size_t n_schemas;
    uint64_t by_namespace; /* bit i: the i-th schema has rules for single namespaces */
    const struct vg_flow_schema *catch_all;
    struct vg_flow_level **levels; /* references */
    size_t n_levels;
};

const struct vg_flow_schema *vg_flow_table_match(const struct vg_flow_table *t,
                                                 const struct vg_flow_attributes *a,
                                                 struct vg_flow_subject_cache *cache);

/* read.c: objects as JSON. 0; VIGIL_E_INVALID: it makes no sense; -ENOMEM. Texts are in the arena.
 */
VG_CHECK int vg_flow_read_level(struct vg_arena *a, struct vg_slice json,
                                struct vg_flow_level_spec *ret);
/* Its level and series are NULL. */
VG_CHECK int vg_flow_read_schema(struct vg_arena *a, struct vg_slice json,
                                 struct vg_flow_schema *ret);
/* The same of a default. */
VG_CHECK int vg_flow_default_level(struct vg_arena *a, const char *name,
                                   struct vg_flow_level_spec *ret);
VG_CHECK int vg_flow_default_schema(struct vg_arena *a, const char *name,
                                    struct vg_flow_schema *ret);

struct vg_flow_view {
    size_t refs;                 /* of the loop: its tickets, and one while it is the newest */
    uint64_t generation;         /* of the table */
    struct vg_flow_table *table; /* reference */
};

/* ---- the process's part: flow.c ---- */

struct vg_flow {
    struct vg_flow_opts opts;
    struct vg_hash_key hash_key;
    _Atomic uint64_t generation;                   /* of `table` */
    struct vg_mutex mu;                            /* rank FLOW, before FLOW_LEVEL */
    struct vg_flow_table *table VG_GUARDED_BY(mu); /* the newest; reference */
    struct vg_list levels VG_GUARDED_BY(mu);       /* references */
    uint64_t rebalanced_ns VG_GUARDED_BY(mu);
    double fair_fraction VG_GUARDED_BY(mu);
    uint32_t nominal_sum VG_GUARDED_BY(mu);
    struct vg_flow_metrics *metrics; /* NULL: not counted */
};
/* Of a flow: the schema's name and the distinguisher. The key is secret, so nobody can choose names
 * that share the queues of somebody else. */
uint64_t vg_flow_hash(const struct vg_flow *f, struct vg_slice schema,
                      struct vg_slice distinguisher);
struct vg_flow_table *vg_flow_table_newest(struct vg_flow *f); /* reference */
void vg_flow_table_unref(struct vg_flow_table *t);

struct vg_flow_loop {
    struct vg_flow *flow;
    struct vg_loop *loop;
    struct vg_flow_view *view; /* the newest that this loop has seen */
    struct vg_list lingering;  /* struct lingerer, in view.c */
};
void vg_flow_view_unref(struct vg_flow_view *v);

/* balance.c: nominal seats, and who borrows how many. Both hold the flow's lock. */
void vg_flow_assign_nominal(struct vg_flow *f) VG_REQUIRES(f->mu);
void vg_flow_rebalance(struct vg_flow *f, uint64_t now_ns) VG_REQUIRES(f->mu);
/* flow.c: let go of idle levels that the configuration does not name. True: there were some. */
bool vg_flow_drop_unwanted(struct vg_flow *f) VG_REQUIRES(f->mu);

/* ---- metrics.c ---- */

enum vg_flow_rejection {
    VG_FLOW_REJECT_QUEUE_FULL,
    VG_FLOW_REJECT_CONCURRENCY_LIMIT,
    VG_FLOW_REJECT_TIME_OUT,
    VG_FLOW_REJECT_CANCELLED,
    VG_FLOW_REJECTIONS
};

/* What is counted for a schema and its level. Lives as long as the flow; at most SERIES_MAX. */
struct vg_flow_series {
    struct vg_flow_series *next; /* const once it is in the list */
    struct vg_slice level, schema;
    /* Dispatched at once, with one seat: all that most requests count. */
    _Atomic uint64_t at_once;
    _Atomic uint64_t others;     /* dispatched otherwise */
    _Atomic uint64_t finished;   /* of both */
    _Atomic int64_t extra_seats; /* beyond one each, of those that execute */
    _Atomic int64_t waiting, waiting_seats;
    _Atomic uint64_t rejected[VG_FLOW_REJECTIONS];
    _Atomic uint64_t no_room;
    /* Those of `executed` that took up to VG_FLOW_QUICK_NS, and how long in all. */
    _Atomic uint64_t quick[2], quick_ns[2];
    /* Of at_once and of quick, into the histograms; guarded by the scrape. */
    uint64_t folded, folded_quick[2], folded_quick_ns[2];
    struct vg_histogram *waited[2], *executed[2], *queue_length, *seats, *watches;
};

/* 5 ms: the first bound of the histogram but 0. Most requests are quicker. */
#define VG_FLOW_QUICK_NS (5 * VG_NS_PER_MS)

struct vg_flow_metrics;
VG_CHECK int vg_flow_metrics_new(struct vg_flow *f, struct vg_flow_metrics **ret);
void vg_flow_metrics_stop(struct vg_flow_metrics *m); /* no scrape looks at levels any more */
void vg_flow_metrics_free(struct vg_flow_metrics *m);
/* NULL: out of memory. */
struct vg_flow_series *vg_flow_series_get(struct vg_flow_metrics *m, struct vg_slice level,
                                          struct vg_slice schema);

/* All series, linked by next. */
const struct vg_flow_series *vg_flow_series_first(const struct vg_flow_metrics *m);
/* It executes now, with its seats, after a wait. */
void vg_flow_count_dispatch(const struct vg_flow_ticket *t, uint64_t waited_ns);
void vg_flow_count_finish(const struct vg_flow_ticket *t);
void vg_flow_count_waiting(const struct vg_flow_ticket *t, int delta);
void vg_flow_count_queue_length(const struct vg_flow_ticket *t, uint32_t n);
void vg_flow_observe_wait(const struct vg_flow_ticket *t, uint64_t ns, bool is_executed);

#endif
