/* cacher_driver.h - a store, a cacher and its ports as plain calls, for tests.
 * The store is tests/storage's driver. The feed and the ports run on loops of their own, which are
 * turned by hand: nothing happens between two calls. vg_cdrv_start_threads gives each loop a thread
 * instead. Time is the store's fake clock; in a threaded driver, the system's. What cannot be done
 * ends the process. Thread: one. */
#ifndef VG_TESTS_CACHER_DRIVER_H
#define VG_TESTS_CACHER_DRIVER_H

#include "server/cacher/cacher.h"
#include "storage_driver.h"

#define VG_CDRV_PORTS_MAX 8

enum { KIND_PODS, KIND_NODES, KIND_EVENTS, KINDS };

struct vg_cdrv {
    struct vg_drv store;
    struct vg_loop *feed;
    struct vg_cacher *c;
    struct vg_cacher_opts opts;
    struct vg_cache_kind kinds[KINDS]; /* events are uncached */
    struct vg_loop *loops[VG_CDRV_PORTS_MAX];
    struct vg_cache_port *ports[VG_CDRV_PORTS_MAX];
    size_t n_ports;
    bool is_threaded;
};

struct vg_cdrv_opts {
    const char *engine; /* NULL: mem */
    size_t n_ports;     /* 0: one */
    bool pods_uncached;
    bool is_threaded;             /* on the system's clock; loops are started by the test */
    struct vg_cacher_opts cacher; /* storage, clock, kinds are the driver's */
    struct vg_storage_opts storage;
};

/* Opens everything; the cache is ready when it returns. opts may be NULL. */
void vg_cdrv_open(struct vg_cdrv *d, const struct vg_cdrv_opts *opts);
/* The same, but stops before the feed has taken its first turn. */
void vg_cdrv_open_cold(struct vg_cdrv *d, const struct vg_cdrv_opts *opts);
void vg_cdrv_open_ports(struct vg_cdrv *d);
void vg_cdrv_wait_ready(struct vg_cdrv *d);
/* Ends watchers and closes ports and cacher; the store stays, and vg_cdrv_open_again goes on. */
void vg_cdrv_close_cacher(struct vg_cdrv *d);
void vg_cdrv_open_again(struct vg_cdrv *d);
void vg_cdrv_close(struct vg_cdrv *d);

/* Give the feed and every port a thread, and take them back; nothing in a driver without threads.
 */
void vg_cdrv_start_threads(struct vg_cdrv *d);
void vg_cdrv_stop_threads(struct vg_cdrv *d);

/* One turn of the feed, and of a port, that waits for nothing. */
bool vg_cdrv_turn_feed(struct vg_cdrv *d);
void vg_cdrv_turn_ports(struct vg_cdrv *d);
/* Turn feed and ports until all of them have seen what the store has now, and nothing is left to do
 * at once. What a watcher reads from storage may still be under way. */
void vg_cdrv_sync(struct vg_cdrv *d);
void vg_cdrv_sync_feed(struct vg_cdrv *d);
/* The clock goes forward in steps of a second or less, and everybody gets turns. */
void vg_cdrv_advance_ms(struct vg_cdrv *d, uint64_t ms);

/* Run fn on the loop of a port, and wait for it: by a mail in a threaded driver, else at once. */
void vg_cdrv_call(struct vg_cdrv *d, size_t port, void (*fn)(void *arg), void *arg);

/* ---- objects ---- */

struct vg_pod {
    const char *ns, *name;
    const char *node;   /* NULL: not scheduled */
    const char *labels; /* inside the braces: "\"app\":\"web\""; NULL: none */
    int n;              /* makes contents differ */
    int pad;            /* bytes more */
};
struct vg_op vg_cdrv_put_op(size_t kind, const struct vg_pod *pod);
struct vg_op vg_cdrv_delete_op(size_t kind, const char *ns, const char *name);
/* Through the driver; the revision. */
vg_rev vg_cdrv_put(struct vg_cdrv *d, size_t kind, const struct vg_pod *pod);
vg_rev vg_cdrv_delete(struct vg_cdrv *d, size_t kind, const char *ns, const char *name);
/* The frame that a watch should send of this content: "ADDED" ..., at this revision. Malloc'ed. */
char *vg_cdrv_frame(const char *type, size_t kind, const struct vg_pod *pod, vg_rev rev);

/* Parts may be NULL. One reference. */
struct vg_obj_predicate *vg_cdrv_predicate(size_t kind, const char *ns, const char *name,
                                           const char *labels, const char *fields);

/* ---- a sink that remembers ---- */

struct vg_csink {
    struct vg_sink sink;
    struct vg_cache_watcher *w; /* NULL once it is over */
    struct vg_frame **kept;     /* taken, and not looked at yet */
    size_t n_kept, kept_cap;
    char **frames; /* as text */
    size_t n, frames_cap;
    size_t full_after; /* says full when so many are kept; 0: never, frames are read at once */
    bool stops;        /* stops the watcher inside the next write */
    bool fails;        /* says that the other side is gone */
    bool is_ended;
    enum vg_watch_end why;
    vg_rev oldest;
    void (*on_write)(struct vg_csink *s, void *arg); /* before anything else; may be NULL */
    void *arg;
};
void vg_csink_init(struct vg_csink *s);
/* Look at what is kept, which lets go of it. Before a cacher goes: bodies of forms go with it. */
void vg_csink_look(struct vg_csink *s);
/* Look at what is kept and say drained. */
void vg_csink_drain(struct vg_csink *s);
void vg_csink_clear(struct vg_csink *s); /* forget the frames */
void vg_csink_done(struct vg_csink *s);  /* the watcher is over, or is stopped */
/* Asserts the frames so far: "ADDED ns/name@rev" each, and BOOKMARK@rev; NULL at the end. */
void vg_csink_expect(struct vg_csink *s, const char *first, ...) __attribute__((sentinel));

/* Opens a watch on the port; the predicate's reference is consumed. What vg_cache_watch said. */
int vg_cdrv_try_watch(struct vg_cdrv *d, size_t port, struct vg_csink *s,
                      struct vg_obj_predicate *take_p, struct vg_cache_watch_opts opts);
void vg_cdrv_watch(struct vg_cdrv *d, struct vg_csink *s, struct vg_obj_predicate *take_p,
                   struct vg_cache_watch_opts opts);
/* Turn ports until the sink holds n frames or has ended. */
void vg_cdrv_wait_frames(struct vg_cdrv *d, struct vg_csink *s, size_t n);
void vg_cdrv_wait_end(struct vg_cdrv *d, struct vg_csink *s);
struct vg_cacher_stats vg_cdrv_stats(struct vg_cdrv *d);

#endif
