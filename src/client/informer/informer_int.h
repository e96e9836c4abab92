/* informer_int.h - the informer and its handlers, as the files of this room see them.
 *
 *   reflector --sink--> fifo --work()--> store; a ring of notes per handler --> callbacks
 *
 * Everything of an informer belongs to the client's loop; calls from other threads travel there
 * (vg_client_run). Exceptions, each said below: the ring of a handler (its lock: a handler may have
 * a thread), and what those who wait look at (the informer's lock). The loop never waits for a
 * handler: a ring that is full stops the consumer, a queue that is full the reflector.
 * Invariants:
 *   I1 a note is pushed only after the store shows its event.
 *   I2 a batch is told to all handlers or, without memory, to none: then the informer lists again.
 *   I3 a handler's thread ends before it is freed, its registration goes with the informer. */
#ifndef VG_CLIENT_INFORMER_INFORMER_INT_H
#define VG_CLIENT_INFORMER_INFORMER_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "client/fifo/consume.h"
#include "client/reflector/reflector.h"
#include "client/transport/transport.h"
#include "notes.h"
#include "vigil/informer.h"

#define VG_HANDLER_BUFFER_MAX 100000u
/* Shorter periods than this count as this. */
#define VG_RESYNC_MIN_MS 1000u
/* Events of one handler that one turn of the loop tells of: others wait for their turn. */
#define VG_TELL_TURN_MAX 1024u

/* What the program holds of a handler. It outlives it: until the informer goes it may be asked, and
 * removed again in vain. */
struct vigil_registration {
    struct vg_list link; /* in `registrations` */
    struct vigil_informer *i;
    struct vg_handler *handler; /* NULL: was removed; the loop's */
    _Atomic bool has_synced;
};

struct vg_handler {
    struct vg_list link; /* in `handlers` or `leaving` */
    struct vigil_informer *i;
    struct vigil_registration *registration;
    struct vigil_handler h; /* const after init */
    struct vg_mutex mu;     /* rank CLIENT_HANDLER */
    struct vg_cond ready;   /* a note, or the end */
    struct vg_notes notes VG_GUARDED_BY(mu);
    bool is_blocking VG_GUARDED_BY(mu); /* the informer waits until there is room */
    _Atomic bool is_ending;             /* nothing more is told */
    pthread_t thread;                   /* own_thread */
    bool has_thread;                    /* const after init */
    bool has_ended;                     /* its thread has; under the informer's lock */
    /* resync.c, the loop's */
    uint64_t asked_ms, period_ms; /* 0: never */
    uint64_t next_ns;
    bool is_claimed;              /* a call that removes it waits and frees it */
    struct vg_handler *waits_for; /* whose end its callback waits for; see vg_handler_may_wait */
    bool is_syncing;              /* the resync round under way concerns it */
};

struct vigil_informer {
    struct vigil_client *c;
    struct vg_loop *loop;
    struct vg_fifo *fifo;
    struct vigil_store *store;
    struct vg_consumer consumer;
    struct vigil_informer_opts opts; /* its texts are in `texts` */
    char *texts;
    bool is_unfed;                            /* a test feeds the sink */
    const struct vg_reflector_tuning *tuning; /* NULL; tests are in a hurry */
    struct vigil_reflector *reflector;        /* NULL before the start, and while memory is short */
    bool is_full;                             /* the reflector was asked to pause */
    struct vg_list handlers, leaving, registrations;
    struct vg_timer work, resync, restart;
    uint64_t default_ms, check_ms; /* resync; 0: never */
    uint64_t seen;                 /* BY_KEY: the newest version that was put */
    bool is_by_key;                /* const after init */
    bool is_started, is_telling;
    bool is_freed; /* as soon as `wake` has come */
    struct vg_mail wake;
    _Atomic bool is_wake_posted;
    _Atomic bool has_synced;
    _Atomic uint64_t reached; /* BY_KEY: the store shows all up to here */
    struct vg_mutex mu;       /* rank CLIENT_INFORMER */
    struct vg_cond changed;   /* anything of the following, or the store with n_waiting */
    size_t n_waiting VG_GUARDED_BY(mu);
    size_t n_threads VG_GUARDED_BY(mu);
    bool is_stopped VG_GUARDED_BY(mu); /* the loop, which alone sets it, reads it without */
};

/* ---- informer.c ---- */

/* is_unfed: no reflector; whoever made it feeds vg_informer_sink. */
VG_CHECK int vg_informer_new(struct vigil_client *c, const struct vigil_informer_opts *opts,
                             bool is_unfed, struct vigil_informer **ret, struct vigil_error *err);

/* ---- source.c: the reflector. Thread: the loop's ---- */

/* The texts of opts are copied to i. 0 or -ENOMEM. Thread: any. */
VG_CHECK int vg_source_init(struct vigil_informer *i, const struct vigil_informer_opts *opts);
VG_CHECK int vg_source_start(struct vigil_informer *i);
/* List again, soon. */
void vg_source_restart(struct vigil_informer *i);
/* Something of what it gave was lost: say so, and list again. */
void vg_source_lost(struct vigil_informer *i, int code);
void vg_source_resume(struct vigil_informer *i);
void vg_source_stop(struct vigil_informer *i);

/* ---- work.c: from the sink to the handlers' rings. Thread: the loop's ---- */

struct vg_consumer_calls vg_informer_calls(struct vigil_informer *i);
struct vigil_sink vg_informer_sink(struct vigil_informer *i);
void vg_informer_work_soon(struct vigil_informer *i);
void vg_informer_on_work(struct vg_timer *t);
/* Take a handler that has been ended out; frees it, or has it freed when its thread has ended. */
void vg_informer_unlink(struct vigil_informer *i, struct vg_handler *r);
/* Let the loop look again: there is room, a thread has ended. Thread: any. */
void vg_informer_wake(struct vigil_informer *i);
/* Tell a new handler of all there is. 0 or -ENOMEM. */
VG_CHECK int vg_informer_replay(struct vigil_informer *i, struct vg_handler *r);

/* ---- handler.c ---- */

VG_CHECK int vg_handler_new(struct vigil_informer *i, const struct vigil_handler *h,
                            struct vigil_registration *registration, struct vg_handler **ret);
/* Room for so many notes. 0 or -ENOMEM. Thread: the loop's, and so for those that follow. */
VG_CHECK int vg_handler_reserve(struct vg_handler *r, size_t n);
void vg_handler_settle(struct vg_handler *r);
void vg_handler_push(struct vg_handler *r, const struct vg_note *note);
/* Must the informer wait for it? Then vg_informer_wake will be called. */
bool vg_handler_blocks(struct vg_handler *r);
/* Tell of what waits, as much as one turn may; true: there is more. */
bool vg_handler_tell(struct vg_handler *r);
/* Tell nothing more; a thread ends soon. Thread: the loop's, once it has been added: what was
 * reserved for a batch goes away with its ring. */
void vg_handler_end(struct vg_handler *r);
/* Its thread has ended, or ends without waiting. Thread: any but its own. */
void vg_handler_free(struct vg_handler *r);
/* Is the calling thread that of one of the informer's handlers? Which one; NULL: no. */
struct vg_handler *vg_handler_current(const struct vigil_informer *i);

/* May the calling thread wait for the end of r's thread? Not when r's callback waits for the
 * handler that the caller's callback belongs to, directly or through others: they would wait for
 * ever. True: call vg_handler_waited before r is freed. */
VG_CHECK bool vg_handler_may_wait(struct vg_handler *r);
void vg_handler_waited(void);

/* ---- wait.c ---- */

/* May this thread wait for others? On the loop only between two turns. */
bool vg_wait_is_possible(struct vigil_informer *i);
/* For the end of a handler's thread; NULL: of all. */
void vg_wait_ended(struct vigil_informer *i, const struct vg_handler *r);

/* ---- resync.c. Thread: the loop's ---- */

/* A period as asked for, within bounds; 0: never. */
uint64_t vg_resync_period(uint64_t ms);
/* A handler's period, and how often to look; before it is linked. */
void vg_resync_join(struct vigil_informer *i, struct vg_handler *r);
void vg_resync_start(struct vigil_informer *i);
void vg_resync_on_timer(struct vg_timer *t);

#endif
