/* cacher_int.h - what the files of the cacher share. See cacher.h for the whole. */
#ifndef VG_CACHER_CACHER_INT_H
#define VG_CACHER_CACHER_INT_H

#include <pthread.h>

#include "base/list.h"
#include "base/map.h"
#include "base/rng.h"
#include "cacher.h"
#include "history.h"
#include "loop/tail.h"

/* ---- one kind: the watch cache ---- */

/* How a change comes to each watcher once. The feed numbers the changes of a kind as it appends
 * them to the history; then it links the batch that holds them to the tail, and each loop's port
 * pulls the tail by a cursor. Below pk->dispatched a watcher is told by replay from the history, at
 * and above it by dispatch from the tail. In every state of the feed, FILLING too:
 *   P1 wc->published never falls, and is above a change before its batch is linked.
 *   P2 pk->dispatched is above every change in the batches up to the port's cursor.
 *   P3 a port dispatches the changes of one life of a history without a gap. A life ends when
 *      continuity is lost; what was appended last may then never have reached the tail.
 *   P4 a watcher goes live when it has looked at everything below pk->dispatched, not before.
 * A port that opens stands on the newest batch first and reads `published` then. So P1 gives it P2,
 * at whatever moment of a start it opens. P1 is asserted by vg_publish_batch(), P2 by
 * take_hold(), P3 by dispatch(), P4 by vg_watcher_go_live(). */

struct vg_watch_cache {
    struct vg_cacher *c;
    const struct vg_cache_kind *kind;
    struct vg_slice prefix;
    struct vg_form_body *bookmark; /* its text without the revision; a reference */
    size_t bookmark_head;          /* bytes before the revision */
    size_t index;
    struct vg_tree *tree;        /* the feed's */
    struct vg_tree *by_trigger;  /* the feed's; NULL: no trigger */
    size_t n_listed;             /* of the list under way: records and bytes of their values */
    uint64_t listed_bytes;       /* the feed's, both */
    bool is_touched;             /* by the batch under construction */
    struct vg_list touched;      /* link while it is */
    bool is_broken;              /* the batch under construction has something unreadable */
    _Atomic size_t n_unreadable; /* of `unreadable`: a look without the lock */
    _Atomic vg_rev broken_rev;   /* the newest batch that had something unreadable */
    _Atomic uint64_t digests, digest_failures;
    _Atomic uint64_t object_bytes;     /* of the values in the tree; the feed writes it */
    _Atomic uint64_t objects, changed; /* of the root: count and revision; the feed writes them */
    _Atomic bool has_dead;             /* roots that nobody holds wait for the feed */
    struct vg_mutex mu;                /* rank CACHE: all below; the feed alone changes them */
    struct vg_history history;
    uint64_t published; /* changes below this sequence may be read: P1 */
    uint32_t life;      /* how often the history has begun anew */
    struct vg_root *root, *trigger_root;
    struct vg_map unreadable; /* keys; see unreadable.c */
};

/* ---- what the feed publishes ---- */

struct vg_cache_event {
    struct vg_watch_cache *wc;
    struct vg_change *change;
    struct vg_segment *segment; /* reference, keeps change */
    uint64_t seq;
    uint32_t life; /* of the history */
    bool ends_rev; /* no change of the batch after it has its revision */
};

struct vg_cache_batch {
    struct vg_tail_batch tail;
    vg_rev rev;          /* the cache shows this revision once the batch is applied */
    bool is_reset;       /* continuity was lost: every watcher of a cached kind ends */
    bool has_unreadable; /* of some kinds: who watches them ends (broken_rev) */
    size_t n;
    struct vg_cache_event events[];
};

enum feed_state { FEED_LISTING, FEED_FILLING, FEED_FOLLOWING, FEED_WAITING, FEED_CLOSED };

struct vg_cacher {
    struct vg_cacher_opts opts;
    struct vg_loop *feed;
    _Atomic uint32_t refs;        /* the handle, ports */
    struct vg_watch_cache *kinds; /* in the order of opts.kinds */
    struct vg_watch_cache **by_prefix;
    size_t n_kinds;
    struct vg_tail tail;
    struct vg_form_budget forms;
    _Atomic vg_rev rev;
    _Atomic bool is_ready;
    _Atomic uint64_t down_since_ns;
    _Atomic int64_t pinned;

    /* The feed's. */
    enum feed_state state;
    struct vg_watch *watch;  /* of storage */
    struct vg_range list;    /* one page */
    bool is_listing;         /* `list` is under way */
    int list_err;            /* of taking the page before it */
    int told_err;            /* of a list that failed, as it was logged last */
    bool skips_history;      /* the log does not read back: the next start begins with the list */
    struct vg_obj_key after; /* where the next page starts */
    vg_rev oldest_rev;       /* FILLING begins here */
    vg_rev ready_rev;        /* and ends here */
    struct vg_known *known;  /* FILLING, LISTING: what came, but for what was replaced since */
    vg_rev list_rev;         /* revision that is being listed: where FILLING came to */
    struct vg_rec **listed;  /* of the kind under way */
    size_t n_listed, listed_cap;
    struct vg_timer retry;
    struct vg_timer upkeep;
    struct vg_timer digest;
    size_t digest_kind; /* that the periodic check comes to next */
    struct vg_rng rng;
    struct vg_mail start_mail;
    struct vg_mail reclaim_mail;
    _Atomic bool reclaim_posted;
    bool owes_reset; /* there was no memory to tell the ports that continuity was lost */
    bool is_closing;
    bool is_dead;
    bool *done_flag;
    const struct vg_cache_batch *publishing; /* what ports are being woken for */

    _Atomic uint64_t events_received, events_dispatched, events_replayed, init_events,
        events_from_storage, bookmarks, relists, resumes, progress, digest_checks, digest_failures;
    _Atomic uint64_t ended[VG_END_REASONS];
};

static inline void vg_count(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

struct vg_watch_cache *vg_cacher_kind_of(struct vg_cacher *c, struct vg_slice key);
/* The same; it may well be `like`, the kind of the key before (NULL allowed). No prefix begins with
 * another. */
static inline struct vg_watch_cache *vg_cacher_kind_like(struct vg_cacher *c, struct vg_slice key,
                                                         struct vg_watch_cache *like)
{
    return like && vg_slice_has_prefix(key, like->prefix) ? like : vg_cacher_kind_of(c, key);
}
void vg_cacher_unref(struct vg_cacher *c);
static inline uint64_t vg_cacher_now_ns(const struct vg_cacher *c)
{
    return vg_clock_mono_ns(c->opts.clock);
}

/* A reader's hold on the hot tail of a kind. */
struct vg_tail_hold {
    struct vg_history_view *view; /* reference */
    uint64_t end;                 /* sequences below may be read */
};
struct vg_tail_hold vg_watch_cache_hold(struct vg_watch_cache *wc);

/* An object of storage, opened. False: it carries no header that can be read. */
static inline bool vg_rec_open(const struct vg_rec *rec, struct vg_obj_header *ret)
{
    return vg_obj_header_open(vg_rec_header(rec), vg_rec_value(rec), ret) == 0;
}
static inline void vg_rec_read(const struct vg_rec *rec, struct vg_obj_header *ret)
{
    vg_obj_header_read(vg_rec_header(rec), vg_rec_value(rec), ret);
}

/* Records lie all over the memory: who goes through many asks for those that come so much later. */
#define VG_FETCH_AHEAD 16
/* Ask for what telling will read of a record, so that the misses of many overlap. */
static inline void vg_rec_fetch(const struct vg_rec *rec)
{
    for (size_t at = 0; at < 192; at += 64)
        __builtin_prefetch((const char *)rec + at);
}
/* The same for what opening it reads: key, header, and the labels in the value, mostly. */
static inline void vg_rec_fetch_open(const struct vg_rec *rec)
{
    for (size_t at = 0; at < 1024; at += 64)
        __builtin_prefetch((const char *)rec + at);
}

/* ---- feed.c ---- */
void vg_feed_start(struct vg_cacher *c);
void vg_feed_stop(struct vg_cacher *c);

/* ---- by_trigger.c ---- */
/* Replaces what an index by trigger holds by these records, which come in order of key. Between
 * begin and finish, which may not fail to follow, records, array and index are left alone: a thread
 * may be at them. finish: 0, -ENOMEM, or an error of the kernel's random source. */
#define VG_INDEX_LOAD_SHARED 4096u /* worth a thread */
struct vg_index_load {
    struct vg_tree *index;
    struct vg_rec *const *recs;
    size_t n;
    /* Ours. */
    pthread_t thread;
    bool has_thread;
    int err;
};
void vg_index_load_begin(struct vg_index_load *l);
VG_CHECK int vg_index_load_finish(struct vg_index_load *l);

/* ---- apply.c, on the feed loop ---- */
struct vg_cache_batch *vg_cache_batch_new(size_t room); /* NULL: no memory */
void vg_cache_batch_free(struct vg_tail_batch *batch);
/* Apply what storage brought, and show the new states. Negative: nothing of it is shown, and the
 * trees hold a part of it: list anew. */
VG_CHECK int vg_apply_batch(struct vg_cacher *c, const struct vg_watch_batch *in,
                            struct vg_cache_batch **ret_batch);
/* Give the new state of a kind to its readers. -ENOMEM: they keep the old one. */
VG_CHECK int vg_publish_kind(struct vg_watch_cache *wc, vg_rev rev);
/* Then the revision, then the batch, which is consumed: ports are woken. */
void vg_publish_batch(struct vg_cacher *c, struct vg_cache_batch *take_b, vg_rev rev);

/* ---- unreadable.c, on the feed loop ---- */
VG_CHECK int vg_unreadable_note(struct vg_watch_cache *wc, struct vg_slice key); /* -ENOMEM */
void vg_unreadable_forget(struct vg_watch_cache *wc, struct vg_slice key);
void vg_unreadable_clear(struct vg_watch_cache *wc);

/* What the keys of all that can match begin with; `buf` may hold it. */
struct vg_slice vg_walk_prefix(struct vg_watch_cache *wc, const struct vg_obj_predicate *p,
                               struct vg_obj_key *buf);

/* ---- digest.c ---- */
void vg_digest_start(struct vg_cacher *c); /* the periodic check; its timer is c->digest */

/* ---- frames ---- */

/* One change as a watcher sees it, and the frames made of it so far: built once for all watchers of
 * a loop that are told the same. */
struct vg_told {
    const struct vg_rec *rec;  /* NULL: the object is gone */
    const struct vg_rec *prev; /* NULL: there was none */
    vg_rev rev;
    struct vg_change *change;         /* holds the forms; NULL: none are kept */
    struct vg_obj_header now, before; /* before: ask vg_told_before, it is read when needed */
    bool has_before;
    bool is_matching;          /* both contents are known to match */
    bool keeps_trigger;        /* both match whoever is told and asks for the trigger alone */
    struct vg_frame frames[4]; /* by enum vg_obj_change, of the stored JSON */
    bool has_frame[4];
};
void vg_told_init(struct vg_told *t, const struct vg_rec *rec, const struct vg_rec *prev,
                  struct vg_change *change);
/* A put of which is known that the watcher's predicate matches it, and what it replaced. */
void vg_told_init_matching(struct vg_told *t, struct vg_change *change);
/* An object of a state, as ADDED at its own revision. */
void vg_told_init_state(struct vg_told *t, const struct vg_rec *rec);
/* What was there before, which lies in memory that nobody has touched for long; NULL: nothing. */
const struct vg_obj_header *vg_told_before(struct vg_told *t);
enum vg_obj_change vg_told_change(struct vg_told *t, const struct vg_obj_predicate *p);
/* The frame for a watcher of this form; valid as long as *t, with `own` for what is not shared.
 * 1: *ret_frame. 0: another thread is encoding it, come again. Negative: no memory, no such form.
 */
VG_CHECK int vg_told_frame(struct vg_cacher *c, struct vg_told *t, enum vg_obj_change change,
                           uint32_t form, struct vg_frame *own, const struct vg_frame **ret_frame);
void vg_frame_bookmark(struct vg_frame *f, const struct vg_watch_cache *wc, vg_rev rev,
                       bool is_end);

/* ---- ports and watchers ---- */

/* The interest index. Live watchers of one value are a ring of links without a head, known by its
 * last; the map borrows its key from the last one's predicate. So an idle watcher pays for a slot
 * of the map and for nothing else. NULL: there are none. */
struct vg_port_kind {
    struct vg_watch_cache *wc;
    struct vg_cache_port *port;
    uint64_t dispatched; /* changes below this sequence are for replay: P2, P4 */
    uint32_t life;       /* of the history that `dispatched` counts in */
    struct vg_list *all; /* of those that pin nothing */
    struct vg_map by_name, by_trigger, by_namespace; /* value -> the ring */
};

/* A ring that is being told. Whoever leaves meanwhile moves it on (vg_watcher_leave_live). */
struct vg_walking {
    struct vg_list *next; /* NULL: that was the last */
    struct vg_list *last;
};

#define WHEEL_SLOTS 64

struct vg_cache_port {
    struct vg_cacher *c;
    struct vg_loop *loop;
    struct vg_tail_cursor cursor;
    struct vg_tail_listener listener;
    struct vg_mail wake_mail;
    _Atomic bool woken;
    bool is_closing;
    bool yields;                /* a form is being made elsewhere: look again in the next turn */
    struct vg_walking *walking; /* the ring that is being told, or NULL */
    vg_rev seen;
    struct vg_mutex mu; /* rank LOOP: the index and `awaits` (interest.c) */
    struct vg_port_kind *kinds;
    struct vg_list waits;
    bool awaits;     /* somebody waits for a revision */
    unsigned spared; /* batches since it was woken; the feed's */
    struct vg_port_fresh *fresh;
    struct vg_list ended;  /* to be freed when nobody is walking */
    struct vg_list behind; /* watchers that have something to catch up with, in turn */
    struct vg_list full;   /* watchers whose sink is full, the longest first */
    /* Every watcher that has not ended is in one of these: a slot for each second, and the last for
     * those who wait for no time. */
    struct vg_list wheel[WHEEL_SLOTS + 1];
    uint64_t wheel_second; /* the last second that was turned */
    struct vg_timer tick;
    struct vg_timer nap; /* armed: not wakeable until it is over */
    uint64_t nap_ns;
    struct vg_rng rng;
    int64_t budget_ns;     /* below zero: the last step used more than there was */
    uint64_t budget_at_ns; /* when it was last filled */
    size_t n_watchers;
};

/* The list of the wheel of those who wait for no time. */
#define WHEEL_UNDATED WHEEL_SLOTS

enum watcher_state { WATCHER_BEHIND, WATCHER_LIVE, WATCHER_ENDED };
struct replay;

/* There is one for each idle watch: what it needs only while it is behind is in its replay. */
struct vg_cache_watcher {
    /* What an event reads, side by side: of many watchers, the one that cares is not in a cache. */
    struct vg_list link; /* LIVE: in a ring of the index; BEHIND: in port->behind if it can go on,
                          * in port->full if its sink is */
    uint64_t next;       /* changes below this sequence are not for it: seen, or too old */
    vg_rev after;        /* changes up to this revision are not for it */
    const struct vg_obj_predicate *predicate; /* reference */
    struct vg_sink *sink;
    struct vg_port_kind *pk;
    uint8_t form;
    uint8_t state;
    bool is_full : 1;
    bool in_write : 1;
    bool with_bookmarks : 1;
    uint32_t pinned; /* bytes that its sink holds */
    /* The rest. */
    struct vg_list due;    /* in the wheel; ENDED: in port->ended */
    struct replay *replay; /* BEHIND */
    uint64_t deadline_ns;  /* 0 = none */
    uint64_t bookmark_ns;  /* when the next one is due */
};

/* What became of telling a watcher about a change. */
enum told {
    TOLD_OK,    /* it knows, or it is none of its business */
    TOLD_FULL,  /* it knows, and can take no more now */
    TOLD_AGAIN, /* it does not know: another thread is encoding the form */
    TOLD_ENDED  /* it is over */
};

/* port.c */
void vg_port_schedule(struct vg_cache_watcher *w); /* into the wheel, at its next due time */
void vg_port_wake(struct vg_cache_port *p);
void vg_port_hurry(struct vg_cache_port *p); /* the same, without a nap */
/* fresh.c */
VG_CHECK int vg_port_fresh_new(struct vg_cache_port *p);
void vg_port_fresh_free(struct vg_cache_port *p); /* nobody waits */
void vg_port_serve_waits(struct vg_cache_port *p);

/* interest.c */
/* Must the port be woken for the batch? Thread: the feed, which has linked it. */
bool vg_port_is_concerned(struct vg_cache_port *p, const struct vg_cache_batch *b);
/* Something is in `waits`: every batch wakes, and the tail is looked at. */
void vg_port_await(struct vg_cache_port *p);
void vg_port_awaited(struct vg_cache_port *p); /* perhaps nothing is any more */
/* watcher.c */
VG_CHECK int vg_watcher_go_live(struct vg_cache_watcher *w);
void vg_watcher_leave_live(struct vg_cache_watcher *w);
/* LIVE, and the change with this sequence was (or was not) handed over. */
void vg_watcher_fall_behind(struct vg_cache_watcher *w, const struct vg_cache_event *at,
                            bool is_told);
/* BEHIND, and able to go on: it gets its turn. */
void vg_watcher_queue(struct vg_cache_watcher *w);
/* Hand over one change if it concerns the watcher. */
enum told vg_watcher_tell(struct vg_cache_watcher *w, struct vg_told *t);
enum told vg_watcher_bookmark(struct vg_cache_watcher *w, vg_rev rev, bool is_end);
void vg_watcher_free_if_ended(struct vg_cache_watcher *w);
void vg_watcher_end(struct vg_cache_watcher *w, enum vg_watch_end why, vg_rev oldest);
/* Something may be due: bookmark, deadline, stall. */
void vg_watcher_due(struct vg_cache_watcher *w, uint64_t now_ns);
uint64_t vg_watcher_next_due(const struct vg_cache_watcher *w);
/* replay.c */
VG_CHECK int vg_replay_start(struct vg_cache_watcher *w, const struct vg_cache_watch_opts *opts);
void vg_replay_free(struct vg_cache_watcher *w);
/* From where it fell behind: all up to (rev, sub) has been looked at. */
VG_CHECK int vg_replay_resume(struct vg_cache_watcher *w, vg_rev rev, uint32_t sub);
/* BEHIND: up to here it has looked. Else where it began. */
vg_rev vg_replay_revision(const struct vg_cache_watcher *w);
/* Its sink took something, or became full; when that was last. BEHIND. */
void vg_replay_progress(struct vg_cache_watcher *w);
uint64_t vg_replay_progress_ns(const struct vg_cache_watcher *w);
/* One slice of catching up. False: nothing more can be done for this watcher now. */
bool vg_replay_step(struct vg_cache_watcher *w);

#endif
