/* storage_driver_watch.c - see storage_driver.h: watches, and the watchdog over every wait. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "storage_driver.h"
#include "storage_driver_int.h"

/* ---- the watchdog ---- */

/* 200 s: a loaded machine under TSan answers within one, mostly; ctest would cut it off at 600
 * without saying where. */
#define PATIENCE_S 200u

static _Atomic(const char *) waiting_for;

static void say(const char *text)
{
    size_t n = strlen(text);
    if (write(STDERR_FILENO, text, n) != (ssize_t)n)
        _exit(4); /* nobody hears us */
}

static void on_alarm(int sig)
{
    (void)sig;
    const char *what = atomic_load(&waiting_for);
    say("storage driver: nothing happened for minutes, waiting for: ");
    say(what ? what : "nothing");
    say("\n");
    _exit(3);
}

void vg_drv_watchdog(const char *what)
{
    if (!what) {
        alarm(0);
        return;
    }
    signal(SIGALRM, on_alarm);
    atomic_store(&waiting_for, what);
    alarm(PATIENCE_S);
}

/* ---- what S4 promises of every batch ---- */

static void check(bool holds, const char *promise)
{
    if (!holds)
        vg_drv_die(promise, VIGIL_E_INTERNAL);
}

static bool is_after(const struct vg_rec *a, const struct vg_rec *b)
{
    return a->rev > b->rev || (a->rev == b->rev && a->sub > b->sub);
}

static void check_event(const struct vg_event *e, bool no_prev)
{
    check(e->rec->rev > VG_REV_EMPTY && e->rec->rev <= VG_REV_MAX, "an event has a revision");
    check(no_prev || !vg_rec_is_delete(e->rec) || e->prev, "a delete has a previous value");
    if (!e->prev)
        return;
    check(vg_slice_eq(vg_rec_key(e->prev), vg_rec_key(e->rec)), "the previous value is of the key");
    check(e->prev->rev == e->rec->prev_rev, "the previous value is of prev_rev");
    check(!vg_rec_is_delete(e->prev), "the previous value is a put");
}

/* A batch above batch_max is so because of its last revision alone. */
static void check_size(const struct vg_drv_watch *w, const struct vg_watch_batch *b)
{
    size_t whole = b->n;
    while (whole > 0 && b->events[whole - 1].rec->rev == b->events[b->n - 1].rec->rev)
        whole--;
    check(b->n <= w->batch_max || whole < w->batch_max, "batch_max is kept");
}

static void check_batch(const struct vg_drv_watch *w, const struct vg_watch_batch *b)
{
    check(b->rev >= w->rev, "the revision of batches never falls");
    for (size_t i = 0; i < b->n; i++) {
        check_event(&b->events[i], w->no_prev);
        check(i == 0 || is_after(b->events[i].rec, b->events[i - 1].rec), "events are in order");
    }
    if (b->n == 0)
        return;
    check(b->events[0].rec->rev > w->rev, "a revision is not split over batches");
    check(b->events[b->n - 1].rec->rev <= b->rev, "a batch's revision covers its events");
    check_size(w, b);
}

/* ---- collecting ---- */

/* Room for one more item of an array. The driver's own memory is libc's: tests make vigil's fail.
 */
static void *grown(void *items, size_t n, size_t *cap, size_t item_size)
{
    if (n < *cap)
        return items;
    size_t wanted = *cap ? *cap * 2 : 16;
    void *p = reallocarray(items, wanted, item_size);
    if (!p)
        vg_drv_die("collecting events", -ENOMEM);
    *cap = wanted;
    return p;
}

static void keep_event(struct vg_drv_watch *w, const struct vg_event *e)
{
    w->events = grown(w->events, w->n_events, &w->cap_events, sizeof *w->events);
    w->events[w->n_events++] = (struct vg_event){
        .rec = vg_rec_ref(e->rec),
        .prev = e->prev ? vg_rec_ref(e->prev) : NULL,
    };
}

static void on_batch(struct vg_watch *watch, const struct vg_watch_batch *batch, void *arg)
{
    struct vg_drv_watch *w = arg;
    check(watch == w->watch, "no batch after the end of a watch");
    check_batch(w, batch);
    w->batches = grown(w->batches, w->n_batches, &w->cap_batches, sizeof *w->batches);
    w->batches[w->n_batches++] = (struct vg_drv_batch){w->n_events, batch->n, batch->rev};
    for (size_t i = 0; i < batch->n; i++)
        keep_event(w, &batch->events[i]);
    w->rev = batch->rev;
    if (w->after_batch)
        w->after_batch(w, w->arg);
}

static void on_end(struct vg_watch *watch, int err, vg_rev compact_rev, void *arg)
{
    struct vg_drv_watch *w = arg;
    check(watch == w->watch, "a watch ends once, and not after it was cancelled");
    w->watch = NULL;
    w->is_ended = true;
    w->err = err;
    w->compact_rev = compact_rev;
}

/* ---- the watch ---- */

struct vg_drv_watch *vg_drv_watch_open(struct vg_drv *d, const struct vg_watch_opts *opts)
{
    struct vg_watch_opts o = *opts;
    struct vg_drv_watch *w = calloc(1, sizeof *w);
    if (!w)
        vg_drv_die("watch", -ENOMEM);
    *w = (struct vg_drv_watch){
        .d = d, .batch_max = opts->batch_max ? opts->batch_max : 1000, .no_prev = opts->no_prev};
    o.loop = d->loop;
    o.on_batch = on_batch;
    o.on_end = on_end;
    o.arg = w;
    int err = vg_storage_watch(d->store, &o, &w->watch);
    if (err < 0)
        vg_drv_die("watch", err);
    w->next = d->watches;
    d->watches = w;
    return w;
}

struct vg_drv_watch *vg_drv_watch_all(struct vg_drv *d, vg_rev from)
{
    return vg_drv_watch_open(d, &(struct vg_watch_opts){.keys = vg_drv_all(), .from = from});
}

void vg_drv_watch_events(struct vg_drv_watch *w, size_t n)
{
    while (w->watch && w->n_events < n)
        vg_drv_turn(w->d, "events of a watch");
}

void vg_drv_watch_sync(struct vg_drv_watch *w)
{
    vg_rev now = vg_storage_revision(w->d->store);
    size_t batches = w->n_batches;
    if (w->watch)
        vg_watch_progress(w->watch);
    while (w->watch && (w->rev < now || w->n_batches == batches))
        vg_drv_turn(w->d, "progress of a watch");
}

int vg_drv_watch_end(struct vg_drv_watch *w)
{
    while (!w->is_ended)
        vg_drv_turn(w->d, "the end of a watch");
    return w->err;
}

void vg_drv_watch_cancel(struct vg_drv_watch *w)
{
    if (w->watch)
        vg_watch_cancel(vg_steal(w->watch));
}

void vg_drv_watch_done(struct vg_drv_watch *w)
{
    vg_drv_watch_cancel(w);
    for (size_t i = 0; i < w->n_events; i++) {
        vg_rec_unref(w->events[i].rec);
        vg_rec_unref(w->events[i].prev);
    }
    for (struct vg_drv_watch **at = &w->d->watches; *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            break;
        }
    free(w->events);
    free(w->batches);
    free(w);
}
