/* watch.c - a watch: a position in the history, on its caller's loop.
 *
 * CATCHING_UP  asks the engine for pieces of the log until it is close to the end
 *   | start_live(): stands on the newest batch of the tail; the log up to it is read first
 * LIVE         pulls batches from the tail when it is woken, without any lock
 *   | vg_watch_pause, or the callback pauses in the middle of a batch: lets go of the tail
 * PAUSED       does nothing, pins nothing; resume goes to CATCHING_UP
 *   | compacted below the position, engine closed, out of memory
 * ENDED        on_end has been called; freed when no mail and no read is under way
 *
 * Invariants:
 *   W1 `next` is the first revision that has not been delivered; everything below has been looked
 * at. W2 a batch ends with the end of a revision (S4): `next` never points into one. W3 at most one
 * read is under way, and none while LIVE. W4 the watch listens to the tail as long as it lives:
 * every publish, and closing, wakes it. */
#include <errno.h>

#include "base/alloc.h"
#include "watch_host.h"

#define BATCH_MAX_DEFAULT 1000
/* Closer than this to the end, a watch takes hold of the tail while it reads the rest of the log.
 */
#define TAIL_HOLD_MAX 4096

enum watch_state { CATCHING_UP, LIVE, PAUSED, ENDED };

struct watch {
    struct vg_watch watch;
    struct vg_watch_host *h; /* reference */
    struct vg_watch_opts opts;
    char *keys; /* copies of start and end */
    enum watch_state state;
    vg_rev next;                  /* W1 */
    vg_rev seen;                  /* newest revision known to have been looked at */
    vg_rev progress_wanted;       /* 0: none */
    struct vg_tail_cursor cursor; /* at == NULL: does not hold the tail */
    vg_rev cursor_rev;            /* newest revision of the batch it stands on */
    struct vg_tail_listener listener;
    struct vg_mail wake_mail;
    _Atomic bool woken; /* wake_mail is on its way */
    struct vg_log_read read;
    bool is_reading;
    bool in_callback;
};

static void pump(struct watch *w);

static struct watch *watch_of(struct vg_watch *watch)
{
    return VG_CONTAINER_OF(watch, struct watch, watch);
}

/* ---- what is pulled ---- */

void vg_commit_batch_free(struct vg_tail_batch *batch)
{
    struct vg_commit_batch *b = VG_CONTAINER_OF(batch, struct vg_commit_batch, tail);
    for (size_t i = 0; i < b->n; i++) {
        vg_rec_unref(b->events[i].rec);
        vg_rec_unref(b->events[i].prev);
    }
    vg_free(b);
}

void vg_log_read_done(struct vg_log_read *read)
{
    for (size_t i = 0; i < read->n; i++) {
        vg_rec_unref(read->events[i].rec);
        vg_rec_unref(read->events[i].prev);
    }
    vg_free(read->events);
    read->events = NULL;
    read->n = 0;
}

/* ---- waking and ending ---- */

/* Thread: any. */
static void on_publish(void *arg)
{
    struct watch *w = arg;
    if (!atomic_exchange_explicit(&w->woken, true, memory_order_acq_rel))
        vg_loop_post(w->opts.loop, &w->wake_mail);
}

/* Not from within a callback: the batch it is looking at may be the tail's. */
static void let_go_of_tail(struct watch *w)
{
    if (w->cursor.at && !w->in_callback)
        vg_tail_close(&w->cursor);
}

static void free_if_idle(struct watch *w)
{
    if (w->state != ENDED || w->is_reading || w->in_callback || atomic_load(&w->woken))
        return;
    let_go_of_tail(w);
    vg_log_read_done(&w->read);
    w->h->unref(w->h);
    vg_free(w->keys);
    vg_free(w);
}

static void retire(struct watch *w)
{
    w->state = ENDED;
    if (!w->opts.no_prev)
        atomic_fetch_sub_explicit(w->h->prev_watches, 1, memory_order_relaxed);
    let_go_of_tail(w);
    vg_tail_unlisten(w->h->tail, &w->listener);
}

static void end_watch(struct watch *w, int err, vg_rev compact_rev)
{
    retire(w);
    w->in_callback = true; /* a cancel from within must not free it */
    w->opts.on_end(&w->watch, err, compact_rev, w->opts.arg);
    w->in_callback = false;
}

/* ---- delivering ---- */

/* Hand over events [0, n), which end at the end of revision `upto`. */
static void deliver(struct watch *w, const struct vg_event *events, size_t n, vg_rev upto)
{
    w->next = VG_MAX(w->next, upto + 1);
    w->seen = VG_MAX(w->seen, upto);
    if (w->progress_wanted && w->seen >= w->progress_wanted)
        w->progress_wanted = 0;
    struct vg_watch_batch batch = {.events = events, .n = n, .rev = w->seen};
    w->in_callback = true;
    w->opts.on_batch(&w->watch, &batch, w->opts.arg);
    w->in_callback = false;
}

/* The end of the revision that holds events[at - 1]. */
static size_t end_of_revision(const struct vg_event *events, size_t n, size_t at)
{
    assert(at > 0);
    while (at < n && events[at].rec->rev == events[at - 1].rec->rev)
        at++;
    return at;
}

/* Deliver all events in batches; together they complete everything up to `upto`. Stops early when
 * the callback pauses or cancels: `next` then says where. */
static void deliver_all(struct watch *w, const struct vg_event *events, size_t n, vg_rev upto,
                        enum watch_state while_in)
{
    size_t at = 0;
    while (at < n && w->state == while_in) {
        size_t end = at + VG_MIN(n - at, w->opts.batch_max);
        end = end_of_revision(events, n, end);
        vg_rev complete = end == n ? upto : events[end - 1].rec->rev;
        deliver(w, events + at, end - at, complete);
        at = end;
    }
    if (at == n && w->state == while_in) {
        w->next = VG_MAX(w->next, upto + 1);
        w->seen = VG_MAX(w->seen, upto);
    }
}

/* Progress that was asked for, or that the options ask for after foreign changes. */
static void deliver_progress(struct watch *w, vg_rev seen_before)
{
    bool is_wanted = w->progress_wanted && w->seen >= w->progress_wanted;
    bool has_moved = w->opts.progress && w->seen > seen_before;
    if ((w->state == LIVE || w->state == CATCHING_UP) && (is_wanted || has_moved))
        deliver(w, NULL, 0, w->seen);
}

/* ---- catching up ---- */

static void on_read(struct vg_store_req *req);

/* Ask the engine for what begins at `from`. */
static int send_read(struct watch *w, vg_rev from, vg_rev to)
{
    w->read = (struct vg_log_read){
        .req = {.loop = w->opts.loop, .done = on_read},
        .from = from,
        .to = to,
        .max = w->opts.batch_max,
        .keys = w->opts.keys,
        .no_prev = w->opts.no_prev,
        .prev_below = w->opts.prev_below,
        .unreadable = w->opts.unreadable,
    };
    int r = w->h->read(w->h, &w->read);
    w->is_reading = r == 0;
    return r;
}

/* While one piece is delivered the engine makes the next, if the end is far: a start that reads the
 * whole history takes the longer of the two and not their sum. Failing is no harm. */
static void read_ahead(struct watch *w, const struct vg_log_read *got)
{
    if (got->upto < got->to && got->to - got->upto > TAIL_HOLD_MAX && !w->cursor.at)
        (void)!send_read(w, got->upto + 1, got->to);
}

static void take_read(struct watch *w)
{
    struct vg_log_read got = w->read;
    vg_rev seen_before = w->seen;
    w->read = (struct vg_log_read){0};
    read_ahead(w, &got);
    deliver_all(w, got.events, got.n, got.upto, CATCHING_UP);
    if (got.n == 0)
        deliver_progress(w, seen_before);
    vg_log_read_done(&got);
}

static void on_read(struct vg_store_req *req)
{
    struct watch *w =
        VG_CONTAINER_OF(VG_CONTAINER_OF(req, struct vg_log_read, req), struct watch, read);
    /* A pause in the middle of the piece before leaves a gap: then it is asked for again. */
    bool is_next = w->read.from == w->next;
    w->is_reading = false;
    if (w->state == CATCHING_UP && is_next && req->err < 0)
        end_watch(w, req->err, req->compact_rev);
    else if (w->state == CATCHING_UP && is_next)
        take_read(w);
    if (!w->is_reading)
        vg_log_read_done(&w->read);
    if (w->state == CATCHING_UP)
        pump(w);
    else if (w->state == PAUSED)
        let_go_of_tail(w);
    free_if_idle(w);
}

static void start_read(struct watch *w, vg_rev to)
{
    int r = send_read(w, w->next, to);
    if (r == VIGIL_E_BUSY)
        on_publish(w); /* the engine is flooded: try again on the next turn */
    else if (r < 0)
        end_watch(w, r, 0);
}

/* Take hold of the tail if its end is near; then read the log up to where it begins. */
static void catch_up(struct watch *w)
{
    if (!w->cursor.at) {
        const struct vg_tail_batch *b = vg_tail_open(w->h->tail, &w->cursor);
        w->cursor_rev = VG_CONTAINER_OF(b, const struct vg_commit_batch, tail)->last;
    }
    vg_rev to = w->cursor_rev;
    if (w->next > to) {
        w->seen = VG_MAX(w->seen, to);
        w->state = LIVE;
        return;
    }
    if (to - w->next > TAIL_HOLD_MAX)
        let_go_of_tail(w);
    start_read(w, to);
}

/* ---- live ---- */

static size_t match_batch(struct watch *w, const struct vg_commit_batch *b, struct vg_event *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++) {
        if (b->events[i].rec->rev >= w->next &&
            vg_keys_contain(&w->opts.keys, vg_rec_key(b->events[i].rec)))
            ret[n++] = b->events[i];
    }
    for (size_t i = 0; i < n && w->opts.no_prev; i++)
        ret[i].prev = NULL; /* others wanted it */
    return n;
}

/* One batch of the tail. What it lacks, memory or previous values, is no reason to end: the log has
 * it too. */
static void pull_batch(struct watch *w, const struct vg_commit_batch *b)
{
    struct vg_event few[64];
    struct vg_event *events = few;
    if (b->n > VG_ARRAY_LEN(few))
        events = vg_reallocarray(NULL, b->n, sizeof *events);
    if (!events || b->is_gap || (b->lacks_prev && !w->opts.no_prev)) {
        if (events != few)
            vg_free(events);
        w->state = CATCHING_UP;
        let_go_of_tail(w);
        return;
    }
    size_t n = match_batch(w, b, events);
    deliver_all(w, events, n, b->last, LIVE);
    if (w->state != LIVE)
        let_go_of_tail(w);
    if (events != few)
        vg_free(events);
}

static void pull_live(struct watch *w)
{
    vg_rev seen_before = w->seen;
    const struct vg_tail_batch *next;
    while (w->state == LIVE && (next = vg_tail_next(&w->cursor))) {
        const struct vg_commit_batch *b = VG_CONTAINER_OF(next, const struct vg_commit_batch, tail);
        w->cursor_rev = b->last;
        pull_batch(w, b);
    }
    if (w->state == LIVE)
        deliver_progress(w, seen_before);
}

/* ---- the turn ---- */

static void pump(struct watch *w)
{
    if (w->in_callback || w->is_reading || w->state == ENDED)
        return;
    if (atomic_load(w->h->closing)) {
        end_watch(w, VIGIL_E_CLOSED, 0);
        return;
    }
    for (;;) {
        if (w->state == CATCHING_UP)
            catch_up(w);
        if (w->state == LIVE)
            pull_live(w);
        if (w->state != CATCHING_UP || w->is_reading || atomic_load(&w->woken))
            return;
    }
}

static void on_wake(struct vg_mail *mail)
{
    struct watch *w = VG_CONTAINER_OF(mail, struct watch, wake_mail);
    /* An exchange: see be_wakeable in the cacher's port. */
    atomic_exchange_explicit(&w->woken, false, memory_order_acq_rel);
    pump(w);
    free_if_idle(w);
}

/* ---- the way in ---- */

static void watch_cancel(struct vg_watch *watch)
{
    struct watch *w = watch_of(watch);
    if (w->state != ENDED)
        retire(w);
    free_if_idle(w);
}

static void watch_pause(struct vg_watch *watch)
{
    struct watch *w = watch_of(watch);
    if (w->state == ENDED)
        return;
    w->state = PAUSED;
    let_go_of_tail(w);
}

static void watch_resume(struct vg_watch *watch)
{
    struct watch *w = watch_of(watch);
    if (w->state != PAUSED)
        return;
    w->state = CATCHING_UP;
    on_publish(w);
}

static void watch_progress(struct vg_watch *watch)
{
    struct watch *w = watch_of(watch);
    w->progress_wanted = atomic_load_explicit(w->h->rev, memory_order_acquire);
    if (w->h->hurry)
        w->h->hurry(w->h);
    on_publish(w);
}

static const struct vg_watch_ops watch_ops = {
    .cancel = watch_cancel,
    .pause = watch_pause,
    .resume = watch_resume,
    .progress = watch_progress,
};

static int copy_keys(struct watch *w)
{
    struct vg_keys *k = &w->opts.keys;
    size_t end_len = k->kind == VG_KEYS_SPAN ? k->end.n : 0;
    w->keys = vg_malloc(k->start.n + end_len + 1);
    if (!w->keys)
        return -ENOMEM;
    if (k->start.n)
        memcpy(w->keys, k->start.p, k->start.n);
    if (end_len)
        memcpy(w->keys + k->start.n, k->end.p, end_len);
    k->start.p = w->keys;
    k->end = vg_slice(w->keys + k->start.n, end_len);
    return 0;
}

int vg_watch_open(struct vg_watch_host *h, const struct vg_watch_opts *opts,
                  struct vg_watch **ret_watch)
{
    if (atomic_load(h->closing))
        return VIGIL_E_CLOSED;
    struct watch *w = vg_new(struct watch);
    if (!w)
        return -ENOMEM;
    w->watch.ops = &watch_ops;
    w->opts = *opts;
    if (!w->opts.batch_max)
        w->opts.batch_max = BATCH_MAX_DEFAULT;
    int r = copy_keys(w);
    if (r < 0) {
        vg_free(w);
        return r;
    }
    vg_rev now = atomic_load_explicit(h->rev, memory_order_acquire);
    h->ref(h);
    w->h = h;
    w->state = CATCHING_UP;
    w->next = opts->from ? opts->from : now + 1;
    w->seen = VG_MIN(now, w->next - 1);
    w->wake_mail.run = on_wake;
    if (!opts->no_prev)
        atomic_fetch_add_explicit(h->prev_watches, 1, memory_order_relaxed);
    w->listener = (struct vg_tail_listener){.wake = on_publish, .arg = w};
    vg_tail_listen(h->tail, &w->listener);
    on_publish(w); /* the first turn comes from the loop, never from within this call */
    *ret_watch = &w->watch;
    return 0;
}

void vg_watch_wake_all(struct vg_watch_host *h)
{
    vg_mutex_lock(&h->tail->mu);
    VG_LIST_FOREACH (n, &h->tail->listeners) {
        struct vg_tail_listener *l = VG_CONTAINER_OF(n, struct vg_tail_listener, link);
        l->wake(l->arg);
    }
    vg_mutex_unlock(&h->tail->mu);
}
