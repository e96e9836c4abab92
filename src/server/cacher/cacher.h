/* cacher.h - the watch cache: current state and recent history of every kind, for any number of
 * watchers, with nothing encoded twice.
 *
 *   storage --one watch--> feed loop (the reflector): trees, history, one batch per storage batch
 *                             | published tail
 *            port of loop 1 <-+-> port of loop 2 ...   each pulls, and finds by its interest index
 *              | frames                                the watchers that care
 *              v
 *            sinks
 *
 * Threads: the feed loop alone changes the cache. A port belongs to its loop, with everything that
 * is opened on it. Names follow kube-apiserver where the thing is the same: Cacher, watch cache
 * (one per kind), cache watcher. docs/internals/cacher.md has the states and the table of who frees
 * what. */
#ifndef VG_CACHER_CACHER_H
#define VG_CACHER_CACHER_H

#include "base/list.h"
#include "loop/loop.h"
#include "object/key.h"
#include "object/predicate.h"
#include "server/storage/storage.h"
#include "sink.h"
#include "tree.h"

struct vg_log;
struct vg_cacher;
struct vg_cache_port;
struct vg_cache_watcher;

/* A kind as the cache sees it. */
struct vg_cache_kind {
    const char *name;   /* "pods", "deployments.apps": for logs and metrics */
    const char *prefix; /* of its keys, with the closing slash */
    const struct vg_obj_fields *fields;
    bool is_namespaced;
    bool is_uncached; /* always served from storage: events, and kinds with a cache size of 0 */
    /* A bookmark is bookmark_head, the revision, what closes metadata, bookmark_tail:
     *   {"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"   42   "}   ,"spec":...} */
    const char *bookmark_head, *bookmark_tail;
};

/* Encodes one content of a change in another form (form.h). rec: the content; rev: the revision to
 * show. Thread: any. */
typedef int vg_cache_form_fn(void *arg, uint32_t form, const struct vg_rec *rec, vg_rev rev,
                             struct vg_buf *out);
/* The same content where it is kept with the record for as long as that lives; empty: it is not.
 * again: it is part of a state, which others will ask for too: worth keeping. Thread: any. */
typedef struct vg_slice vg_cache_kept_fn(void *arg, uint32_t form, const struct vg_rec *rec,
                                         bool again);
/* A frame around a body of a form, for forms that are not JSON. 0; negative: it cannot be. */
typedef int vg_cache_frame_fn(void *arg, uint32_t form, enum vg_obj_change change,
                              struct vg_slice body, struct vg_obj_splice *ret);

struct vg_cacher_opts {
    struct vg_storage *storage;
    const struct vg_clock *clock;      /* NULL = the system's */
    const struct vg_log *log;          /* NULL = silent */
    const struct vg_cache_kind *kinds; /* borrowed for the cacher's life */
    size_t n_kinds;
    vg_cache_form_fn *make_form;
    vg_cache_kept_fn *kept_form;   /* NULL: nothing is kept */
    vg_cache_frame_fn *frame_form; /* NULL: all forms are JSON */
    void *form_arg;
    size_t form_bytes_max; /* of kept forms; 0 = 64 MiB */
    /* The hot tail, per kind; 0 = the default. */
    size_t events_min, events_max; /* 100, 102400 */
    size_t bytes_max;              /* 256 MiB; wins over events_min, see history.h */
    uint64_t window_ms;            /* 75 s */
    size_t refill_max;             /* revisions that a start reads back: 102400 */
    /* Watchers; 0 = the default. */
    uint64_t budget_per_s_ns, budget_max_ns; /* catch-up beside live work: 50 ms, 100 ms */
    uint64_t stall_ms;                       /* 60 s */
    uint64_t bookmark_ms;                    /* 60 s, with jitter */
    size_t pinned_max;                       /* bytes that slow sinks may pin: 256 MiB */
    uint64_t fresh_ms;                       /* wait until fresh: 3 s */
    uint64_t ready_ms;                       /* wait until ready, since it was not: 5 s */
    uint64_t seed;                           /* of jitter; 0 = random */
};

/* Starts the feed on `feed`, which the cacher owns outright until it is closed: a loop on a thread
 * of its own, or turned by hand in tests. -ENOMEM, errors of storage. */
VG_CHECK int vg_cacher_open(const struct vg_cacher_opts *opts, struct vg_loop *feed,
                            struct vg_cacher **ret_cacher);
/* Thread: the feed's, or any when the feed is not running. Every port is closed, no snapshot is
 * held, and sinks hold no frames of other forms than 0, whose budget goes with it. Blocks for
 * nothing: what storage still owes arrives on the feed loop, which must be turned until
 * *ret_done_flag (may be NULL) is set; then it is freed. */
void vg_cacher_close(struct vg_cacher *c, bool *ret_done_flag);

/* Is the cache ready? While not: how long to wait, as Retry-After. Thread: any. */
bool vg_cacher_is_ready(struct vg_cacher *c);
uint32_t vg_cacher_retry_after_s(struct vg_cacher *c);
vg_rev vg_cacher_revision(struct vg_cacher *c); /* newest that is in the cache */

/* ---- ports ---- */

VG_CHECK int vg_cache_port_open(struct vg_cacher *c, struct vg_loop *loop,
                                struct vg_cache_port **ret_port);
/* All its watchers and waits have ended (vg_cache_port_drain). Thread: its loop. */
void vg_cache_port_close(struct vg_cache_port *p);
/* End every watcher, bookmarks first where they are wanted. Thread: its loop. */
void vg_cache_port_drain(struct vg_cache_port *p);
/* Once woken, do not be woken again for so long: for who follows everything and is in no hurry.
 * Thread: its loop. */
void vg_cache_port_nap(struct vg_cache_port *p, uint64_t ms);
vg_rev vg_cache_port_revision(const struct vg_cache_port *p); /* pulled so far */
size_t vg_cache_port_watchers(const struct vg_cache_port *p);

/* ---- reading ---- */

/* A consistent state of one kind. */
struct vg_cache_snapshot {
    struct vg_root *root;    /* by key; reference */
    struct vg_root *trigger; /* by trigger value, or NULL; reference */
    vg_rev rev;              /* that it shows: its own, or a later one without a change */
};
/* The newest. VIGIL_E_BUSY: the cache is not ready; VIGIL_E_UNSUPPORTED: a kind without a cache,
 * ask storage. Thread: any. */
VG_CHECK int vg_cache_newest(struct vg_cacher *c, size_t kind, struct vg_cache_snapshot *ret);
/* At exactly `rev`. VIGIL_E_NOT_FOUND: the hot tail does not have it, ask storage; VIGIL_E_FUTURE;
 * VIGIL_E_BUSY. */
VG_CHECK int vg_cache_exact(struct vg_cacher *c, size_t kind, vg_rev rev,
                            struct vg_cache_snapshot *ret);
void vg_cache_snapshot_done(struct vg_cache_snapshot *s);
/* How many objects a kind has, and the revision since which it is as it is: without a lock, for who
 * must know before every write. Nothing while the cache is not ready. Thread: any. */
struct vg_cache_glance {
    size_t objects;
    vg_rev rev;
};
struct vg_cache_glance vg_cache_glance(struct vg_cacher *c, size_t kind);

/* A walk over the matching objects of a snapshot in key order; no lock, no allocation. */
struct vg_cache_walk {
    const struct vg_cache_snapshot *snapshot;
    const struct vg_obj_predicate *predicate;
    struct vg_cursor cursor;
    struct vg_slice prefix;  /* keys that do not begin with it end the walk */
    struct vg_slice trigger; /* walks the index: another value ends the walk */
    bool by_trigger;
};
/* `after`: strictly after this key; empty: from the start. All borrowed for the walk's life. The
 * caller keeps `key_buf`, which holds the prefix of a namespace. */
void vg_cache_walk_init(struct vg_cache_walk *w, struct vg_cacher *c, size_t kind,
                        const struct vg_cache_snapshot *s, const struct vg_obj_predicate *p,
                        struct vg_slice after, struct vg_obj_key *key_buf);
const struct vg_rec *vg_cache_walk_next(struct vg_cache_walk *w); /* NULL: the end */
/* The same, looking at no more than *visits, which is counted down; NULL with 0 left: there may be
 * more. */
const struct vg_rec *vg_cache_walk_some(struct vg_cache_walk *w, uint32_t *visits);

/* Does something lie in storage, among what can match, that cannot be read? Then no state that is
 * shown would be true. Its key, the first if there are several. Never of a kind without a cache:
 * there storage tells. Thread: any. */
bool vg_cache_unreadable(struct vg_cacher *c, size_t kind, const struct vg_obj_predicate *p,
                         struct vg_obj_key *ret_key);
/* Is this very key one of them? */
bool vg_cache_key_is_unreadable(struct vg_cacher *c, size_t kind, struct vg_slice key);

/* Wait until the port has pulled `rev`. done(arg, 0), or VIGIL_E_FUTURE after fresh_ms: then the
 * caller answers "too large resource version". Never from within. Thread: the port's loop. */
struct vg_cache_wait {
    struct vg_list link;
    struct vg_timer timer;
    struct vg_mail mail;
    struct vg_cache_port *port;
    vg_rev rev;
    bool is_for_ready;
    int result;
    void (*done)(struct vg_cache_wait *wait, int err);
};
void vg_cache_wait_fresh(struct vg_cache_port *p, vg_rev rev, struct vg_cache_wait *wait,
                         void (*done)(struct vg_cache_wait *wait, int err));
void vg_cache_wait_cancel(struct vg_cache_wait *wait); /* done has not run, and will not */
/* The same until what is current now has been pulled, wherever it was written; wait->rev tells it
 * to done. Also an error of storage. */
void vg_cache_wait_consistent(struct vg_cache_port *p, struct vg_cache_wait *wait,
                              void (*done)(struct vg_cache_wait *wait, int err));
/* Wait until the cache is ready: done(arg, 0), or VIGIL_E_BUSY when ready_ms have passed since it
 * was not. VIGIL_E_BUSY at once, and no call of done: they have. A cache that is being filled is
 * ready soon, and who is sent away comes again later than that. */
VG_CHECK int vg_cache_wait_ready(struct vg_cache_port *p, struct vg_cache_wait *wait,
                                 void (*done)(struct vg_cache_wait *wait, int err));
/* How new a state must be to be current, if that is known without asking: not in a store that
 * others write to. False: wait for it. */
bool vg_cache_knows_newest(struct vg_cacher *c, vg_rev *ret_rev);

/* ---- watching ---- */

enum vg_watch_start {
    VG_WATCH_NOW,   /* what follows now */
    VG_WATCH_AFTER, /* what follows revision `rev`, which may lie in the future */
    VG_WATCH_STATE  /* an ADDED for each object of a state, then what follows it */
};

struct vg_cache_watch_opts {
    size_t kind;
    const struct vg_obj_predicate *predicate; /* a reference is taken */
    enum vg_watch_start start;
    vg_rev rev;
    bool with_bookmarks;
    bool with_end_bookmark; /* after the state: k8s.io/initial-events-end */
    uint64_t timeout_ms;    /* 0 = none */
    uint8_t form;           /* 0: the stored JSON; else as vg_cache_form_fn knows it */
    struct vg_sink *sink;   /* outlives the watcher */
};
/* 0; VIGIL_E_BUSY: the cache is not ready; VIGIL_E_COMPACTED with *ret_oldest: the revision is too
 * old; -ENOMEM. The first frame comes later, never from within. Thread: the port's loop. */
VG_CHECK int vg_cache_watch(struct vg_cache_port *p, const struct vg_cache_watch_opts *opts,
                            struct vg_cache_watcher **ret_watcher, vg_rev *ret_oldest);
/* The sink has room again. */
void vg_cache_watcher_drained(struct vg_cache_watcher *w);
/* Some bytes went out: the stall clock starts anew. */
void vg_cache_watcher_progress(struct vg_cache_watcher *w);
/* The sink keeps so many bytes more (or fewer) of pinned blocks. */
void vg_cache_watcher_pins(struct vg_cache_watcher *w, int64_t delta);
uint32_t vg_cache_watcher_pinned(const struct vg_cache_watcher *w);
/* What it is about; borrowed. */
const struct vg_obj_predicate *vg_cache_watcher_predicate(const struct vg_cache_watcher *w);
/* Everything up to here has been looked at for it. */
vg_rev vg_cache_watcher_revision(const struct vg_cache_watcher *w);
/* The request is over; the sink is not called any more. Allowed inside write. */
void vg_cache_watcher_stop(struct vg_cache_watcher *w);

/* ---- numbers ---- */

struct vg_cacher_stats {
    uint64_t events_received, events_dispatched, events_replayed, init_events, events_from_storage;
    uint64_t bookmarks, relists, resumes;
    uint64_t progress; /* batches of storage that told no more than how far it is */
    uint64_t bodies_made, bodies_shared;
    uint64_t ended[VG_END_REASONS];
    uint64_t pinned_bytes;
    uint64_t digest_checks, digest_failures;
    vg_rev rev;
};
void vg_cacher_stats(struct vg_cacher *c, struct vg_cacher_stats *ret_stats); /* Thread: any */

struct vg_cache_kind_stats {
    size_t objects, events, event_bytes;
    uint64_t grown, shrunk; /* segments of the hot tail */
    vg_rev oldest_rev;      /* a watch may start here without storage */
    struct vg_tree_stats tree;
};
/* Thread: the feed's. */
void vg_cacher_kind_stats(struct vg_cacher *c, size_t kind, struct vg_cache_kind_stats *ret_stats);

/* The same as far as it is told without asking the feed. Thread: any. */
struct vg_cache_kind_numbers {
    size_t objects, events;
    uint64_t object_bytes; /* of the objects as stored, without keys and headers */
    uint64_t received;     /* changes since the start, with those that the start read back */
    uint64_t grown, shrunk;
    uint64_t digests, digest_failures; /* comparisons with storage */
};
void vg_cacher_kind_numbers(struct vg_cacher *c, size_t kind, struct vg_cache_kind_numbers *ret);

/* Compare the cache with storage at one revision, as kube-apiserver does; also done for every kind
 * each 5 to 7.5 minutes. done(arg, 0): equal; VIGIL_E_CONFLICT: not; what storage says,
 * VIGIL_E_CLOSED: not known. At once: VIGIL_E_BUSY, VIGIL_E_UNSUPPORTED (no cache), -ENOMEM.
 * Thread: the feed's. */
VG_CHECK int vg_cacher_check_digest(struct vg_cacher *c, size_t kind,
                                    void (*done)(void *arg, int err), void *arg);

#endif
