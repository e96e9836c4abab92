/* storage_driver.h - storage as plain calls, for tests.
 * A driver is a store, a loop that is turned by hand and a clock that stands still until it is
 * moved. Every helper submits a request, turns the loop until the answer is there and returns it.
 * Helpers that return no error end the process loudly when they cannot do their work; so does a
 * wait that lasts a minute, naming what it waited for. Nothing sleeps.
 *
 * Keys and values are C strings for brevity; where bytes matter, build a vg_txn from vg_drv_op_*.
 * Thread: one per driver. Several drivers may share a store (vg_drv_attach), each on its own
 * thread.
 */
#ifndef VG_TESTS_STORAGE_DRIVER_H
#define VG_TESTS_STORAGE_DRIVER_H

#include "server/storage/storage.h"

/* ---- engines ---- */

/* What not every engine has; a test that needs it skips when vg_drv_engine_has says no. */
enum vg_drv_feature {
    VG_DRV_DURABLE = 1,    /* what was written is there after vg_drv_reopen */
    VG_DRV_FAKE_CLOCK = 2, /* its time is the driver's clock: TTL and automatic compaction */
    VG_DRV_ORDERED = 4,    /* transactions of one loop happen in the order of submitting */
    VG_DRV_LOCAL = 8, /* it keeps the data itself: it knows what each put replaced, and all that
                       * opening does is its own */
};
/* False too when there is no such engine. */
bool vg_drv_engine_has(const char *engine, enum vg_drv_feature feature);
/* The engine that a test's first argument names; a second one is a pattern of the tests to run.
 * What is wrong with them ends the process, and so does an engine that is not here: the test is
 * skipped. */
const char *vg_drv_args(int argc, char **argv);
/* Names of all engines that the driver can open, NULL at the end. */
const char *const *vg_drv_engines(void);

/* ---- a store and its loop ---- */

struct vg_drv {
    const char *engine;
    struct vg_storage *store;
    struct vg_loop *loop;
    struct vg_fake_clock *clock;  /* NULL: opts named another clock */
    struct vg_storage_opts opts;  /* what it was opened with, and will be reopened with */
    const char *tmpdir;           /* made by the driver, removed by vg_drv_close; may be NULL */
    struct vg_drv_watch *watches; /* that it still owns */
    bool is_guest;                /* attached: the store is another driver's */
    struct vg_test_etcd *etcd;    /* of its own; NULL: another engine */
    const char *servers[1];
    struct vg_etcd_opts etcd_opts;
};

/* A fresh store in a directory of its own, on a fake clock. `opts` may be NULL; its size need not
 * be set; a clock or a dir that it names is used instead of the driver's (and is not removed). */
void vg_drv_open(struct vg_drv *d, const char *engine, const struct vg_storage_opts *opts);
/* The same, but a refusal is an answer. On failure the driver needs no close. */
VG_CHECK int vg_drv_try_open(struct vg_drv *d, const char *engine,
                             const struct vg_storage_opts *opts, struct vg_status *reterr_status);
/* Another loop on the store of `host`, for another thread; call it on that thread. */
void vg_drv_attach(struct vg_drv *d, const struct vg_drv *host);
/* Close and open again in the same directory; the clock and the loop stay. */
void vg_drv_reopen(struct vg_drv *d);
/* Open a copy of the files as they are now, which is what a process that was killed leaves behind,
 * and drop the original; or kill the process that has them and start it again. Nothing may be under
 * way, a checkpoint neither: the files are copied one after the other. For engines with
 * VG_DRV_DURABLE. */
void vg_drv_reopen_killed(struct vg_drv *d);
/* Close the store and run what it still answers; the loop stays, for looking at the answers. */
void vg_drv_close_store(struct vg_drv *d);
/* Everything, watches too; harmless after vg_drv_close_store. */
void vg_drv_close(struct vg_drv *d);

/* Move the fake clock (wall and monotonic) forward; nothing, where the engine has the real one. */
void vg_drv_advance_ms(struct vg_drv *d, uint64_t ms);
int64_t vg_drv_wall_ms(const struct vg_drv *d);

/* One turn of the loop that waits for something to do; `what` is for the watchdog. */
void vg_drv_turn(struct vg_drv *d, const char *what);

/* ---- requests ---- */

/* Submit without waiting: what the engine says at once. req.done is the driver's and is NULL again
 * when the answer has come. */
VG_CHECK int vg_drv_submit_txn(struct vg_drv *d, struct vg_txn *txn);
VG_CHECK int vg_drv_submit_range(struct vg_drv *d, struct vg_range *range);
VG_CHECK int vg_drv_submit_compact(struct vg_drv *d, struct vg_compact *compact);
static inline bool vg_drv_is_answered(const struct vg_store_req *req)
{
    return req->done == NULL;
}
/* Turn until a submitted request is answered; returns its err. */
int vg_drv_wait(struct vg_drv *d, struct vg_store_req *req);

/* Submit and wait. What the engine said, at once or later. */
int vg_drv_txn(struct vg_drv *d, struct vg_txn *txn);
int vg_drv_range(struct vg_drv *d, struct vg_range *range);

/* Operations for a txn; the record is new and the txn's. */
struct vg_op vg_drv_op_put(struct vg_slice key, struct vg_slice header, struct vg_slice value,
                           vg_rev expect);
struct vg_op vg_drv_op_delete(struct vg_slice key, vg_rev expect);
struct vg_op vg_drv_op_check(struct vg_slice key, vg_rev expect);
/* The same from strings, without a header. */
struct vg_op vg_drv_put_op(const char *key, const char *value, vg_rev expect);
struct vg_op vg_drv_delete_op(const char *key, vg_rev expect);
struct vg_op vg_drv_check_op(const char *key, vg_rev expect);
/* Run the operations as one transaction and drop them; what the engine said. ret_rev may be NULL.
 */
int vg_drv_run(struct vg_drv *d, struct vg_op *ops, uint32_t n_ops, vg_rev *ret_rev);

/* Must succeed; the revision. */
vg_rev vg_drv_put(struct vg_drv *d, const char *key, const char *value);
vg_rev vg_drv_put_ttl(struct vg_drv *d, const char *key, const char *value, uint64_t ttl_ms);
vg_rev vg_drv_delete(struct vg_drv *d, const char *key);
/* May conflict. ret_rev may be NULL. */
int vg_drv_put_if(struct vg_drv *d, const char *key, const char *value, vg_rev expect,
                  vg_rev *ret_rev);

/* The record of a key at a revision (0 = now), with a reference; NULL when absent. */
struct vg_rec *vg_drv_get(struct vg_drv *d, const char *key, vg_rev at);
/* Ranges for vg_range.keys and vg_watch_opts.keys; the strings are borrowed. */
struct vg_keys vg_drv_one(const char *key);
struct vg_keys vg_drv_span(const char *start, const char *end);
struct vg_keys vg_drv_all(void);

/* What the engine said; ret_compact_rev (may be NULL) gets req.compact_rev. */
int vg_drv_compact(struct vg_drv *d, vg_rev at, vg_rev *ret_compact_rev);

/* ---- watches ---- */

struct vg_drv_batch {
    size_t first, n; /* in events[] */
    vg_rev rev;
};

/* Collects all that a watch delivers, with references, and checks of every batch what S4 promises
 * whatever was written: order, no split revision, batch_max, rev never falls. */
struct vg_drv_watch {
    struct vg_drv *d;
    struct vg_drv_watch *next; /* of the driver's watches */
    struct vg_watch *watch;    /* NULL once it is over */
    struct vg_event *events;
    size_t n_events, cap_events;
    struct vg_drv_batch *batches;
    size_t n_batches, cap_batches;
    size_t batch_max;
    vg_rev rev;   /* of the newest batch */
    bool no_prev; /* the watch declined it */
    bool is_ended;
    int err; /* of on_end */
    vg_rev compact_rev;
    /* Called after a batch was collected; may cancel or pause. Set by the test, may be NULL. */
    void (*after_batch)(struct vg_drv_watch *w, void *arg);
    void *arg;
};

/* Start. opts->loop, on_batch, on_end and arg are the driver's. The result belongs to the driver,
 * which frees it by vg_drv_close if vg_drv_watch_done has not. */
struct vg_drv_watch *vg_drv_watch_open(struct vg_drv *d, const struct vg_watch_opts *opts);
/* Of everything, from a revision on. */
struct vg_drv_watch *vg_drv_watch_all(struct vg_drv *d, vg_rev from);
/* Turn until that many events have come, or the watch has ended. */
void vg_drv_watch_events(struct vg_drv_watch *w, size_t n);
/* Ask for progress and turn until everything up to the store's revision now has been delivered, or
 * the watch has ended. Not while it is paused. */
void vg_drv_watch_sync(struct vg_drv_watch *w);
/* Turn until it ends; returns why. */
int vg_drv_watch_end(struct vg_drv_watch *w);
void vg_drv_watch_cancel(struct vg_drv_watch *w);
/* Cancel if need be and free it with what was collected. */
void vg_drv_watch_done(struct vg_drv_watch *w);

#endif
