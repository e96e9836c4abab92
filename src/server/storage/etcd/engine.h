/* engine.h - the etcd engine: a thread with a loop that talks to a cluster for everybody.
 *
 *   loops --txn, range, fresh, compact--> [mail] --> vg-etcd: calls, any number at once
 *                                                       | answers, on the callers' loops
 *   etcd --one watch over the prefix--> feed.c: whole revisions --> tail --> watches on their loops
 *   watches that are behind --log reads--> history.c: a watch from the past, for as long as it
 * takes
 *
 * Invariants:
 *   E1 the tail holds every change under the prefix in order, whole revisions only; `told` is the
 *      revision up to which it is complete, and never falls.
 *   E2 `rev` is the newest revision that any answer named, `told` <= `rev`.
 *   E3 a transaction is sent once. What became of it when the answer is lost is found out by
 * reading (outcome.c), or said to be unknown. E4 everything but what is marked atomic is touched by
 * the engine's thread alone. docs/internals/etcd.md has the reasons. */
#ifndef VG_STORAGE_ETCD_ENGINE_H
#define VG_STORAGE_ETCD_ENGINE_H

#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "client.h"
#include "loop/waker.h"
#include "server/storage/watch_host.h"

/* 256: a prefix of etcd's keys that a person would type. */
#define VG_ETCD_PREFIX_MAX 256
#define VG_ETCD_KEY_MAX (VG_ETCD_PREFIX_MAX + VG_STORAGE_KEY_MAX)

/* Where keys lie: keys.c. */
struct vg_etcd_space {
    char *root, *prefix, *end; /* end: the first key behind the prefix */
    struct vg_slice root_s, prefix_s, end_s;
    struct vg_slice barrier; /* just before the prefix: "/registry.vigil.barrier" */
    char *barrier_text;
};

struct vg_etcd_key {
    size_t n;
    char bytes[VG_ETCD_KEY_MAX + 1];
};

/* One kind of call, for all that wait for it: who comes while it is under way waits for the next.
 */
struct vg_etcd_shared_call {
    struct vg_grpc_call call;
    bool is_up;
    struct vg_mail *flying, *waiting; /* requests */
};

/* The one watch over everything. */
struct vg_etcd_feed {
    struct vg_grpc_call call;
    bool is_up;      /* the call is under way */
    bool is_created; /* etcd has said so: it will bring what follows `told` */
    struct vg_timer retry;
    uint32_t failures;     /* in a row */
    struct vg_arena arena; /* of the events that wait for the end of their fragment */
    Etcd__Event **parts;
    size_t n_parts, cap_parts;
    vg_rev told;                /* E1 */
    vg_rev newest_event;        /* no change of the prefix is newer; <= told */
    bool is_certain;            /* there is a change at newest_event */
    bool with_barrier;          /* the watch begins with the barrier: old members need one */
    bool orders_progress;       /* this member's answers to progress requests can be trusted */
    struct vg_grpc_call status; /* asks for its version */
    bool is_asking;
    struct vg_grpc_call look; /* for the revision, after a gap */
    bool is_looking;
};

/* Bringing the tail to a revision that no change of ours made: push.c. */
struct vg_etcd_push {
    struct vg_mail mail; /* somebody hurries */
    _Atomic bool is_posted;
    vg_rev wanted;  /* > told: somebody waits */
    uint64_t since; /* the first job that began after it was wanted */
    vg_rev own;     /* newest change of the prefix made here: its event comes by itself */
    struct vg_timer timer;
    struct vg_grpc_call barrier;
    bool barrier_is_up;
};

/* The history below: compact.c. */
struct vg_etcd_compactor {
    struct vg_timer timer;
    struct vg_grpc_call call;
    bool is_up;
    int64_t version; /* of the key by which servers agree */
    vg_rev next;     /* to be compacted at the next turn */
    vg_rev target;   /* is being compacted */
    struct vg_grpc_call search;
    bool is_searching;
    vg_rev low, high; /* compacted lies in [low, high] */
    vg_rev mid;
    /* Requests whose answer names it: those that the search is for, and those that came since, when
     * more may have been compacted than it will find. */
    struct vg_mail *flying, *waiting;
};

struct vg_etcd_health {
    struct vg_timer timer;
    struct vg_grpc_call call;
    bool is_up;
    struct vg_mutex mu; /* rank STORE_TABLE: status */
    struct vg_status status;
    uint64_t since_ns; /* when it began to fail */
};

/* own.c */
struct vg_etcd_owns {
    struct vg_map by_key; /* struct vg_etcd_own */
    struct vg_list answered;
    size_t n_answered;
};

struct vg_etcd_engine {
    struct vg_storage storage;
    struct vg_watch_host host;
    struct vg_storage_opts opts;
    struct vg_etcd_opts eo;
    struct vg_etcd_space space;
    _Atomic uint32_t refs; /* the handle, and each watch */
    struct vg_loop *loop;
    bool is_running; /* the loop has its thread */
    struct vg_etcd_client *client;

    _Atomic vg_rev rev, compacted; /* E2 */
    _Atomic bool closing;
    _Atomic uint32_t prev_watches;
    _Atomic size_t n_txns_waiting;
    struct vg_tail tail;
    struct vg_mutex mu; /* rank STORE_STATE: between `closing` and the last mail to the loop */

    uint64_t n_jobs;      /* begun so far */
    struct vg_list calls; /* requests under way: struct vg_etcd_job */
    struct vg_list pasts; /* history.c */
    size_t n_pasts_idle, n_legs;
    struct vg_etcd_shared_call fresh;
    struct vg_etcd_feed feed;
    struct vg_etcd_push push;
    struct vg_etcd_owns own;
    struct vg_etcd_compactor compactor;
    struct vg_etcd_health health;
    struct vg_mail close_mail;
    struct vg_timer close_timer;
    bool is_draining;
    struct vg_waker over; /* woken when nothing is under way any more */
    _Atomic bool is_over;

    _Atomic uint64_t n_txns, n_conflicts, n_puts, n_deletes, n_progress, n_barriers, n_restarts,
        n_past_watches, n_unknown, n_resolved, db_bytes;
};

/* A request under way, with its call. Its owner embeds it. */
struct vg_etcd_job {
    struct vg_list link; /* e->calls */
    struct vg_mail mail;
    struct vg_etcd_engine *e; /* reference */
    struct vg_grpc_call call;
    uint64_t number; /* they are under way in this order */
    bool is_write;
    /* The engine closes: answer with VIGIL_E_CLOSED and free it. False: not now, it must be waited
     * for. now: it must end anyhow. */
    bool (*abandon)(struct vg_etcd_job *job, bool now);
};
void vg_etcd_job_init(struct vg_etcd_engine *e, struct vg_etcd_job *job);
/* Bring it to the engine's thread, where mail.run is called. VIGIL_E_CLOSED. Thread: any. */
VG_CHECK int vg_etcd_job_post(struct vg_etcd_job *job);
/* It is under way, and is not. Thread: the engine's. */
void vg_etcd_job_begin(struct vg_etcd_job *job);
void vg_etcd_job_end(struct vg_etcd_job *job);
void vg_etcd_job_done(struct vg_etcd_job *job); /* its reference; the call's answer. Thread: any */

static inline struct vg_etcd_engine *vg_etcd_engine_of(struct vg_storage *s)
{
    return VG_CONTAINER_OF(s, struct vg_etcd_engine, storage);
}
static inline uint64_t vg_etcd_request_ms(const struct vg_etcd_engine *e)
{
    return e->eo.request_ms;
}
/* An answer named this revision (E2). Thread: any. */
void vg_etcd_saw_rev(struct vg_etcd_engine *e, int64_t rev);
void vg_etcd_saw_compacted(struct vg_etcd_engine *e, vg_rev rev);

/* engine.c */
/* Mail to the engine's thread, in order. VIGIL_E_CLOSED. Thread: any. */
VG_CHECK int vg_etcd_post(struct vg_etcd_engine *e, struct vg_mail *mail);
struct vg_etcd_engine *vg_etcd_engine_ref(struct vg_etcd_engine *e);
void vg_etcd_engine_unref(struct vg_etcd_engine *e);
/* Unary, with the engine's timeout; timeout_ms 0 = the engine's. */
VG_CHECK int vg_etcd_start(struct vg_etcd_engine *e, const struct vg_etcd_method *method,
                           const ProtobufCMessage *request, struct vg_grpc_call *call);

/* keys.c */
VG_CHECK int vg_etcd_space_init(struct vg_etcd_space *s, const char *root, const char *prefix);
void vg_etcd_space_done(struct vg_etcd_space *s);
/* VIGIL_E_KEY_INVALID: it does not begin with the root. */
VG_CHECK int vg_etcd_key_make(const struct vg_etcd_space *s, struct vg_slice key,
                              struct vg_etcd_key *ret);
/* The keys of etcd between start and end; false: there can be none. */
bool vg_etcd_key_span(const struct vg_etcd_space *s, const struct vg_keys *keys,
                      struct vg_etcd_key *ret_start, struct vg_etcd_key *ret_end);
/* Ours, of etcd's; the root and the rest appended. */
VG_CHECK int vg_etcd_key_read(const struct vg_etcd_space *s, struct vg_slice stored,
                              struct vg_etcd_key *ret);
static inline struct vg_slice vg_etcd_key_slice(const struct vg_etcd_key *k)
{
    return vg_slice(k->bytes, k->n);
}

/* records.c */
VG_CHECK int vg_etcd_record(struct vg_etcd_engine *e, const Etcd__KeyValue *kv, bool keys_only,
                            struct vg_rec **ret_rec);
/* Of an event: its record; and what was there before, if want_prev. VIGIL_E_KEY_INVALID: none of
 * ours, and so for vg_etcd_record; VIGIL_E_COMPACTED: what was there before is gone. */
VG_CHECK int vg_etcd_event(struct vg_etcd_engine *e, const Etcd__Event *ev, uint32_t sub,
                           bool want_prev, struct vg_event *ret_event);
/* The same of the feed, where writes of ours are among them. */
VG_CHECK int vg_etcd_feed_event(struct vg_etcd_engine *e, const Etcd__Event *ev, uint32_t sub,
                                bool want_prev, struct vg_event *ret_event);
/* The place of a change among those of its revision. */
struct vg_etcd_order {
    vg_rev rev;
    uint32_t sub;
};
static inline uint32_t vg_etcd_place(struct vg_etcd_order *o, vg_rev rev)
{
    o->sub = o->rev == rev ? o->sub + 1 : 0;
    o->rev = rev;
    return o->sub;
}
VG_CHECK int vg_etcd_stored_bytes(struct vg_etcd_engine *e, const struct vg_rec *rec,
                                  struct vg_buf *out);

/* txn.c, range.c, compact.c, push.c: the way in. Thread: the request's loop. */
int vg_etcd_submit_txn(struct vg_storage *s, struct vg_txn *txn);
int vg_etcd_submit_range(struct vg_storage *s, struct vg_range *range);
int vg_etcd_submit_compact(struct vg_storage *s, struct vg_compact *compact);
int vg_etcd_submit_fresh(struct vg_storage *s, struct vg_store_req *req);

/* outcome.c: the answer to a transaction was lost. done(arg, err, rev) with 0, VIGIL_E_CONFLICT
 * (failed_op and its prev are set) or VIGIL_E_UNKNOWN_OUTCOME; the status has a sentence. */
struct vg_etcd_doubt;
VG_CHECK int vg_etcd_doubt_start(struct vg_etcd_engine *e, struct vg_txn *txn, const char *why,
                                 void (*done)(void *arg, int err), void *arg,
                                 struct vg_etcd_doubt **ret_doubt);
void vg_etcd_doubt_free(struct vg_etcd_doubt *d);

/* own.c */
struct vg_etcd_own;
/* The record is being put, as these bytes. NULL: out of memory, which does no harm. */
struct vg_etcd_own *vg_etcd_own_add(struct vg_etcd_engine *e, const struct vg_rec *rec,
                                    struct vg_buf *take_bytes);
/* It was, at rev; 0: it was not. NULL allowed. */
void vg_etcd_own_answered(struct vg_etcd_engine *e, struct vg_etcd_own *own, vg_rev rev);
/* The record that these bytes under this key were made from; borrowed. NULL: not known. */
const struct vg_rec *vg_etcd_own_find(struct vg_etcd_engine *e, struct vg_slice key,
                                      struct vg_slice bytes);
void vg_etcd_own_trim(struct vg_etcd_engine *e); /* what the feed has told */
void vg_etcd_own_stop(struct vg_etcd_engine *e);

/* feed.c */
void vg_etcd_feed_start(struct vg_etcd_engine *e);
void vg_etcd_feed_stop(struct vg_etcd_engine *e);
/* Everything up to rev has been looked at, with nothing to tell. */
void vg_etcd_feed_advance(struct vg_etcd_engine *e, vg_rev rev);
/* A watch of all that is ours, from this revision on; the caller has set who is told. */
VG_CHECK int vg_etcd_start_watch(struct vg_etcd_engine *e, vg_rev from, struct vg_grpc_call *call);
VG_CHECK int vg_etcd_ask_progress(struct vg_grpc_call *stream);

/* push.c */
void vg_etcd_push_init(struct vg_etcd_engine *e);
void vg_etcd_push_want(struct vg_etcd_engine *e, vg_rev rev);
void vg_etcd_push_hurry(struct vg_watch_host *h);
void vg_etcd_push_barrier(struct vg_etcd_engine *e);
void vg_etcd_push_stop(struct vg_etcd_engine *e);

/* history.c: pieces of the log for watches that are behind. */
int vg_etcd_history_read(struct vg_watch_host *h, struct vg_log_read *read);
void vg_etcd_history_stop(struct vg_etcd_engine *e);

/* compact.c */
void vg_etcd_compactor_start(struct vg_etcd_engine *e);
void vg_etcd_compactor_stop(struct vg_etcd_engine *e);
/* Answer this request with VIGIL_E_COMPACTED once it is known below what. */
void vg_etcd_answer_compacted(struct vg_etcd_engine *e, struct vg_store_req *req);
/* Find out below what history is gone; is_searching until it is known. */
void vg_etcd_find_compacted(struct vg_etcd_engine *e);

/* health.c */
void vg_etcd_health_start(struct vg_etcd_engine *e);
void vg_etcd_health_stop(struct vg_etcd_engine *e);
int vg_etcd_health_ask(struct vg_storage *s, struct vg_status *reterr_status);
/* Do members of this version answer progress requests in order with changes? */
bool vg_etcd_orders_progress(const char *version);
bool vg_etcd_is_too_old(const char *version);

/* open.c: wait for a cluster that answers. Thread: the opener's, who turns the loop by hand. */
VG_CHECK int vg_etcd_first_contact(struct vg_etcd_engine *e, struct vg_status *reterr_status);

#endif
