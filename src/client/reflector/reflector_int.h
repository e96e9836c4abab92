/* reflector_int.h - the reflector's insides: its state and what its files share.
 *
 * A round (client-go's ListAndWatch) brings the sink to a state of the server, by a list or by a
 * watch that begins with the state (watch-list), and follows from there by watches. It ends where
 * following is not possible any more; the next round begins after a wait.
 *
 *   LISTING    all pages came            -> WATCHING   vg_round_listed()
 *   LISTING    failed                    -> WAITING    vg_round_failed()   then a new round
 *   STREAMING  the end of the state      -> WATCHING   vg_round_streamed() the same stream goes on
 *   STREAMING  refused, not understood   -> LISTING    for this round
 *   STREAMING  no end of the state       -> LISTING    from now on always
 *   WATCHING   the stream ended          -> WATCHING   from the last version, at once
 *   WATCHING   ... several at once       -> WAITING    then watch again
 *   WATCHING   429, no connection        -> WAITING    then watch again
 *   WATCHING   410, 500, garbage, ...    -> WAITING    then a new round
 *
 * Failures are counted until a watch lasts. A healthy cluster also answers 410 and 429: on_error is
 * called for these only after VG_QUIET_FAILURES in a row, and for all others at once. A server that
 * cannot be reached is reported to on_lost instead.
 *
 * Invariants: R1 `version` is what the sink has: it is set after replace, put, remove or bookmark.
 * R2 at most one exchange is under way. R3 the sink is not called after stop. */
#ifndef VG_CLIENT_REFLECTOR_REFLECTOR_INT_H
#define VG_CLIENT_REFLECTOR_REFLECTOR_INT_H

#include "base/rng.h"
#include "client/transport/list_reader.h"
#include "client/transport/transport.h"
#include "initial.h"
#include "reflector.h"

/* A frame is an object and a few bytes. */
#define VG_FRAME_MAX (VG_OBJECT_BYTES_MAX + 4096)

/* Failures in a row that a busy or restarted server may cause. */
#define VG_QUIET_FAILURES 4u
/* A server that asks for a longer wait is told of at once. */
#define VG_QUIET_WAIT_S 10u
/* A watch that was open for so long shows that all is well again. */
#define VG_LASTING_NS (30 * VG_NS_PER_S)
/* A server that asks for longer waits is asked sooner, to see whether it is still there. */
#define VG_RETRY_AFTER_MAX_S 60u
/* How long a server may take to begin an answer. */
#define VG_HEAD_MS 60000u

/* A buffer for cut frames that is larger than this is not kept. */
#define VG_FRAME_KEEP ((size_t)64 << 10)

enum vg_reflector_state {
    VG_REFLECTOR_IDLE,
    VG_REFLECTOR_LISTING,
    VG_REFLECTOR_STREAMING, /* watch-list, before its end mark */
    VG_REFLECTOR_WATCHING,
    VG_REFLECTOR_WAITING
};

/* What happens when a wait is over. */
enum vg_reflector_next { VG_NEXT_ROUND, VG_NEXT_WATCH, VG_NEXT_STREAM };

struct vg_backoff {
    uint64_t step_ns;  /* the next wait without its jitter */
    uint64_t reset_ns; /* when it last began anew */
    bool has_begun;
};

struct vigil_reflector {
    struct vigil_client *c;
    struct vg_loop *loop;
    const struct vg_log *log;
    struct vigil_informer_opts opts; /* its texts are in `texts` */
    char *texts;
    struct vigil_sink sink;
    struct vg_reflector_tuning tuning;
    struct vg_rng rng;
    enum vg_reflector_state state;
    bool has_started, is_stopped;
    unsigned in_sink;      /* calls of the sink or the user under way */
    bool must_free;        /* freed from within one */
    bool is_lost;          /* the user was told so, and not yet that it is back */
    bool is_full;          /* the sink said so; the exchange is paused */
    struct vg_exchange *x; /* R2 */
    uint64_t n_watches;    /* begun */

    /* revisions */
    char version[VG_OBJECT_VERSION_MAX + 1]; /* of the sink; "": none (R1) */
    char expired[VG_OBJECT_VERSION_MAX + 1]; /* where a watch expired last */
    bool has_synced;                         /* a list or a state has gone to the sink */
    bool is_unavailable;                     /* the last version is: ask for the newest */
    bool pages_always; /* a server without a cache: lists at "0" came in pages */

    /* the list under way */
    struct vg_list_reader reader;
    bool has_reader;
    const struct vigil_object **items;
    size_t n_items, cap_items;
    char list_asked[VG_OBJECT_VERSION_MAX + 1];   /* what page 1 asked for */
    char list_version[VG_OBJECT_VERSION_MAX + 1]; /* what page 1 answered */
    unsigned list_limit;
    unsigned page;             /* from 1 */
    unsigned empty_pages;      /* in a row */
    size_t page_items;         /* items before the page under way */
    bool is_whole;             /* after an expired page: everything at once */
    bool is_second_try;        /* after 410: at "" */
    struct vg_buf api_version; /* what items lack, for the reader */
    struct vg_buf next;        /* the continue token, ended by 0 */

    /* the watch under way */
    struct vg_buf frame;       /* bytes of a frame that is not complete */
    struct vg_initial initial; /* the state that streams in */
    uint64_t opened_ns;
    struct vg_timer growth; /* while a state streams in: does it? */
    uint64_t grown_ns;      /* when its last new object came */
    bool is_open;           /* the watch was answered */
    bool no_stream;         /* the server does not know how */
    size_t events;
    bool is_frozen;                 /* the watch began nowhere: versions of ADDED say nothing yet */
    bool has_bookmark;              /* the server sends them: silence means something */
    struct vigil_error frame_error; /* an ERROR event, or a frame that cannot be read */
    bool is_frame_too_large;
    bool has_frame_error;

    /* waiting */
    struct vg_timer wait, resync;
    enum vg_reflector_next next_step;
    uint64_t wait_ns; /* 0: does not wait */
    struct vg_backoff backoff;
    unsigned fruitless;     /* failures since a watch lasted */
    unsigned short_watches; /* in a row that brought events and ended at once */
    unsigned cut_streams;   /* in a row that ended before the end of the state */
    uint64_t first_500_ns, last_500_ns;
    bool has_500;
};

/* reflector.c */
void vg_reflector_round(struct vigil_reflector *r);
void vg_reflector_wait(struct vigil_reflector *r, enum vg_reflector_next next);
/* When on_error is told. */
enum vg_reflector_tone {
    VG_TELL_NOW,
    VG_TELL_IF_REPEATED, /* what happens in a cluster that works */
    VG_TELL_NEVER        /* on_lost was told */
};
/* Something failed: count it, tell of it, and wait. The reflector may be gone afterwards. */
void vg_reflector_failed(struct vigil_reflector *r, const struct vigil_error *err,
                         enum vg_reflector_tone tone, enum vg_reflector_next next);
/* The on_retry of exchanges. */
void vg_reflector_retried(void *reflector, const struct vg_exchange_end *end);
/* Tell on_error. False: the reflector is gone. */
VG_CHECK bool vg_reflector_complain(struct vigil_reflector *r, const struct vigil_error *err);
/* An exchange has ended: tell on_lost when the server was not reached, on_back when it was again.
 * False: the reflector is gone. */
VG_CHECK bool vg_reflector_ended(struct vigil_reflector *r, const struct vg_exchange_end *end);
/* The on_open of exchanges: tell on_back. */
void vg_reflector_opened(void *reflector);
void vg_reflector_set_version(struct vigil_reflector *r, struct vg_slice version);
/* Around each call of the sink or the user; leave answers false when the reflector is gone. */
void vg_reflector_enter(struct vigil_reflector *r);
bool vg_reflector_leave(struct vigil_reflector *r);
uint64_t vg_reflector_now(const struct vigil_reflector *r);
/* Give the sink a new state. 0: done; negative: refused; VIGIL_E_CLOSED: the reflector is gone. */
VG_CHECK int vg_reflector_replace(struct vigil_reflector *r,
                                  const struct vigil_object *const *objects, size_t n,
                                  struct vg_slice version);
void vg_reflector_start_resync(struct vigil_reflector *r);
/* A wait that was not possible: memory. Waits for the next round. */
void vg_reflector_no_memory(struct vigil_reflector *r);
bool vg_is_expired(const struct vigil_error *err);

/* backoff.c */
uint64_t vg_backoff_next(struct vg_backoff *b, const struct vg_reflector_tuning *t,
                         struct vg_rng *rng, uint64_t now_ns);

/* lister.c */
void vg_lister_begin(struct vigil_reflector *r);
void vg_lister_drop(struct vigil_reflector *r); /* forget what came of a list */

/* watcher.c */
void vg_watcher_begin(struct vigil_reflector *r);  /* a plain watch */
void vg_streamer_begin(struct vigil_reflector *r); /* a watch that begins with the state */
void vg_watcher_drop(struct vigil_reflector *r);
/* frames.c: cut bytes into frames and handle them. 0; 1: pause; VIGIL_E_CLOSED: the reflector is
 * gone or the watch is over. */
VG_CHECK int vg_watcher_bytes(struct vigil_reflector *r, struct vg_slice bytes);

#endif
