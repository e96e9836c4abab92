/* vigil/informer.h - a local copy of a collection that follows the server, and callbacks about it.
 *
 *   server --list, watch--> reflector --> queue --> store, indexes --> buffers --> handlers
 *
 * Promises, which are those of client-go's SharedInformer:
 *   - The store converges to the server's state: relists, restarts, expired revisions and broken
 *     connections are the informer's business. Resync never contacts the server.
 *   - Calls for one handler come one after the other, for each object in order. When a callback
 *     runs, the store already shows its event, perhaps later ones. Handlers are independent.
 *   - An object that was deleted and created anew between two looks may show as one update: compare
 *     uids where it matters. A delete that was missed is told with `is_tombstone`: the object is
 *     the last state known.
 *
 * Thread: any, for everything here, unless said otherwise. */
#ifndef VIGIL_INFORMER_H
#define VIGIL_INFORMER_H

#include "client.h"
#include "store.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vigil_informer;

enum vigil_queue {
    VIGIL_QUEUE_ORDERED, /* events in the order of the server: the store equals some state of it */
    VIGIL_QUEUE_BY_KEY   /* DeltaFIFO: the deltas of one object together, fewer turns under churn */
};

/* In place of a period: never, whatever the default is. */
#define VIGIL_NO_RESYNC UINT64_MAX

struct vigil_informer_opts {
    size_t size;
    const struct vigil_resource *resource;
    const char *ns;                              /* NULL or "": all */
    const char *label_selector, *field_selector; /* NULL: none */
    /* How often handlers are told of all objects again, from the store; 0: never, also for handlers
     * that ask for it. */
    uint64_t resync_ms;
    unsigned page_size;                /* 0: as the server's cache likes it */
    const struct vigil_index *indexes; /* beside VIGIL_BY_NAMESPACE; copied */
    size_t n_indexes;
    enum vigil_queue queue;
    bool no_watch_list; /* list by pages even where the server can stream its state */
    /* Change an object before it is stored, to keep less of it: return a reference of the same
     * object or of another one with the same key; NULL keeps the event out, and a list with it,
     * which is then tried again. Must give the same for its own result. Runs on the client's loop.
     */
    const struct vigil_object *(*transform)(void *arg, const struct vigil_object *o);
    /* A list or watch failed, or memory for an event; the informer goes on by itself, and lists
     * again where it must. What happens in a cluster that works (429, an expired version, a watch
     * that ends early) is told from the fifth time in a row on. Runs on the client's loop. */
    void (*on_error)(void *arg, const struct vigil_error *err);
    void *arg;
    /* The server is not reached any more (refused, reset, no route, no such name, silent); it
     * answers again. Once for each loss, however often it is
     * tried meanwhile. Run on the client's loop. */
    void (*on_lost)(void *arg, const struct vigil_error *err);
    void (*on_back)(void *arg);
};
/* Made from a client, which outlives it. opts and its texts are copied. */
VIGIL_API VIGIL_CHECKED int vigil_informer_new(struct vigil_client *c,
                                               const struct vigil_informer_opts *opts,
                                               struct vigil_informer **ret,
                                               struct vigil_error *err);
/* Starts once; a second call does nothing. */
VIGIL_API VIGIL_CHECKED int vigil_informer_start(struct vigil_informer *i);
/* Ends the watch; what handlers were not told yet is dropped. Waits for callbacks that run, unless
 * called from within one. */
VIGIL_API void vigil_informer_stop(struct vigil_informer *i);
/* Stops first; not from within a callback of the informer. */
VIGIL_API void vigil_informer_free(struct vigil_informer *i);

/* The store, for reading; lives as long as the informer. */
VIGIL_API struct vigil_store *vigil_informer_store(struct vigil_informer *i);
/* Has the first list been put into the store? */
VIGIL_API bool vigil_informer_has_synced(const struct vigil_informer *i);
/* Wait for it. 0; VIGIL_E_TIMEOUT; VIGIL_E_CLOSED: stopped; VIGIL_E_INVALID: from a callback on the
 * client's loop, where it would wait for itself. timeout_ms 0: for ever. With VIGIL_OWN_LOOP it
 * steps the loop. */
VIGIL_API VIGIL_CHECKED int vigil_informer_wait_sync(struct vigil_informer *i, uint64_t timeout_ms);
/* Wait until the store shows a write of yours: the resourceVersion that its answer had. Results as
 * above. A write that the selectors leave out is waited for until the next bookmark, which may take
 * minutes. */
VIGIL_API VIGIL_CHECKED int vigil_informer_wait_for(struct vigil_informer *i,
                                                    struct vigil_text resource_version,
                                                    uint64_t timeout_ms);

/* ---- handlers ---- */

enum vigil_overflow {
    /* The default: the informer waits for this handler, and so do the others; in the end the server
     * is read no further. */
    VIGIL_OVERFLOW_WAIT,
    /* All that happens to an object whose last event waits is told as one: beyond buffer_max there
     * is at most one event for each object. Deleted and made anew: one update. Added and deleted:
     * nothing. */
    VIGIL_OVERFLOW_MERGE
};
/* All callbacks may be NULL. They run on the client's loop, or on a thread of the handler's own
 * when own_thread is set. Objects are borrowed for the call. */
struct vigil_handler {
    size_t size;
    void (*on_add)(void *arg, const struct vigil_object *o, bool is_initial);
    void (*on_update)(void *arg, const struct vigil_object *before, const struct vigil_object *o);
    void (*on_delete)(void *arg, const struct vigil_object *o, bool is_tombstone);
    /* All objects of the first list have been told. */
    void (*on_synced)(void *arg);
    /* Which objects this handler wants to hear of; NULL: all. One that begins to match is told as
     * added, one that ceases as deleted. */
    bool (*filter)(void *arg, const struct vigil_object *o);
    void *arg;
    /* 0: the informer's; VIGIL_NO_RESYNC: none. At least 1 s, and after the start not less than the
     * shortest period asked for before. */
    uint64_t resync_ms;
    bool own_thread;
    size_t buffer_max; /* events that may wait, and those of one list beyond; 0 = 100,000 */
    enum vigil_overflow overflow;
};
struct vigil_registration;
/* Before or after the start; a late one is told of every object in the store first. The struct is
 * copied. *ret (ret may be NULL) lives as long as the informer. VIGIL_E_CLOSED: the informer was
 * stopped. */
VIGIL_API VIGIL_CHECKED int vigil_informer_add_handler(struct vigil_informer *i,
                                                       const struct vigil_handler *h,
                                                       struct vigil_registration **ret,
                                                       struct vigil_error *err);
/* What it was not told yet is dropped. Waits for its callback if one runs, unless called from
 * within it, from another callback on the client's loop, which never waits, or from the callback of
 * a handler that its callback waits for in turn: two handlers may remove each other. The
 * registration lives as long as the informer: removing it again does nothing, nor does removing
 * NULL or that of another informer. */
VIGIL_API void vigil_informer_remove_handler(struct vigil_informer *i,
                                             struct vigil_registration *r);
/* Informer synced, and this handler has been told of all that was there. */
VIGIL_API bool vigil_registration_has_synced(const struct vigil_registration *r);

/* ---- the parts, for programs that put them together differently ---- */

/* Whatever a reflector writes to. Called on the client's loop, one call at a time. A negative
 * answer refuses: an event is then lost; after replace, after resync, and after VIGIL_E_MEMORY
 * everything is listed again. */
struct vigil_sink {
    int (*put)(void *arg, const struct vigil_object *o);
    int (*remove)(void *arg, const struct vigil_object *o);
    int (*replace)(void *arg, const struct vigil_object *const *objects, size_t n,
                   struct vigil_text resource_version);
    void (*bookmark)(void *arg, struct vigil_text resource_version); /* NULL allowed */
    int (*resync)(void *arg); /* every resync_ms; NULL: never */
    void *arg;
};
struct vigil_reflector;
/* List and watch into a sink, for ever. Uses of opts: resource, ns, selectors, resync_ms,
 * page_size, no_watch_list, on_error, on_lost, on_back, arg; transform for a state that streams in,
 * which the sink applies to all that it gets. */
VIGIL_API VIGIL_CHECKED int vigil_reflector_new(struct vigil_client *c,
                                                const struct vigil_informer_opts *opts,
                                                const struct vigil_sink *sink,
                                                struct vigil_reflector **ret,
                                                struct vigil_error *err);
VIGIL_API VIGIL_CHECKED int vigil_reflector_start(struct vigil_reflector *r);
VIGIL_API void
vigil_reflector_free(struct vigil_reflector *r); /* stops; no call of the sink after */

/* A sink that keeps everything and hands over the whole set after each change: the kubelet's pod
 * source. push gets borrowed objects in the order of keys. */
struct vigil_undelta;
VIGIL_API VIGIL_CHECKED int
vigil_undelta_new(void (*push)(void *arg, const struct vigil_object *const *objects, size_t n),
                  void *arg, struct vigil_undelta **ret);
VIGIL_API void vigil_undelta_free(struct vigil_undelta *u);
VIGIL_API struct vigil_sink vigil_undelta_sink(struct vigil_undelta *u);
VIGIL_API struct vigil_store *vigil_undelta_store(struct vigil_undelta *u);

#ifdef __cplusplus
}
#endif

#endif
