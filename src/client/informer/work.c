/* work.c - the informer's turns on the loop: a batch from the queue into the store and the rings of
 * the handlers, then what handlers on the loop are told. See informer_int.h for the invariants. */
#include <errno.h>

#include "informer_int.h"

/* Entries in the queue from which on the reflector is asked to pause. */
#define BACKLOG_MAX (2u * VG_FIFO_BATCH_MAX)

static struct vg_handler *handler_of(struct vg_list *n)
{
    return VG_CONTAINER_OF(n, struct vg_handler, link);
}

void vg_informer_work_soon(struct vigil_informer *i)
{
    if (!i->work.armed && !i->is_stopped)
        vg_timer_start(i->loop, &i->work, 0, vg_informer_on_work);
}

void vg_informer_wake(struct vigil_informer *i)
{
    if (!atomic_exchange(&i->is_wake_posted, true))
        vg_loop_post(i->loop, &i->wake);
}

/* ---- the sink ---- */

static int queued(struct vigil_informer *i, int r)
{
    if (r < 0)
        return r;
    vg_informer_work_soon(i);
    i->is_full = vg_fifo_backlog(i->fifo) >= BACKLOG_MAX;
    return i->is_full ? VG_SINK_FULL : 0;
}

static void note_seen(struct vigil_informer *i, struct vg_slice version)
{
    uint64_t v = 0;
    for (size_t n = 0; i->is_by_key && n < version.n; n++)
        v = v * 10 + (uint64_t)(unsigned char)(version.p[n] - '0');
    i->seen = v;
}

static int on_put(void *arg, const struct vigil_object *o)
{
    struct vigil_informer *i = arg;
    note_seen(i, vg_object_version(o));
    return queued(i, vg_fifo_put(i->fifo, VG_DELTA_UPDATED, o));
}

static int on_remove(void *arg, const struct vigil_object *o)
{
    struct vigil_informer *i = arg;
    note_seen(i, vg_object_version(o));
    return queued(i, vg_fifo_put(i->fifo, VG_DELTA_DELETED, o));
}

static int on_replace(void *arg, const struct vigil_object *const *objects, size_t n,
                      struct vigil_text version)
{
    struct vigil_informer *i = arg;
    note_seen(i, vg_slice_of(version));
    return queued(i, vg_fifo_replace(i->fifo, objects, n, vg_slice_of(version)));
}

static void on_bookmark(void *arg, struct vigil_text version)
{
    struct vigil_informer *i = arg;
    note_seen(i, vg_slice_of(version));
    if (vg_fifo_bookmark(i->fifo, vg_slice_of(version)) == 0) /* else the next one tells */
        vg_informer_work_soon(i);
}

struct vigil_sink vg_informer_sink(struct vigil_informer *i)
{
    return (struct vigil_sink){.put = on_put,
                               .remove = on_remove,
                               .replace = on_replace,
                               .bookmark = on_bookmark,
                               .arg = i};
}

/* ---- to the handlers ---- */

static void tell_all(struct vigil_informer *i, const struct vg_note *note, bool changed_nothing)
{
    VG_LIST_FOREACH (n, &i->handlers) {
        struct vg_handler *r = handler_of(n);
        if (r->is_syncing || !changed_nothing)
            vg_handler_push(r, note);
    }
}

static void on_add(void *arg, const struct vigil_object *o, bool is_initial)
{
    tell_all(arg, &(struct vg_note){.kind = VG_NOTE_ADD, .flag = is_initial, .o = o}, false);
}

static void on_update(void *arg, const struct vigil_object *before, const struct vigil_object *o)
{
    bool same = vg_slice_eq(vg_object_version(before), vg_object_version(o));
    tell_all(arg, &(struct vg_note){.kind = VG_NOTE_UPDATE, .before = before, .o = o}, same);
}

static void on_delete(void *arg, const struct vigil_object *o, bool is_tombstone)
{
    tell_all(arg, &(struct vg_note){.kind = VG_NOTE_DELETE, .flag = is_tombstone, .o = o}, false);
}

struct vg_consumer_calls vg_informer_calls(struct vigil_informer *i)
{
    return (struct vg_consumer_calls){on_add, on_update, on_delete, i};
}

/* The most that a batch can make handlers hear; 0 for the last: the end of the first list. */
static size_t notes_max(const struct vigil_informer *i, const struct vg_batch *b)
{
    size_t n = b->n;
    if (b->v[0].type == VG_DELTA_REPLACED_ALL)
        n = b->v[0].all->n + vigil_store_count(i->store);
    else if (b->v[0].type == VG_DELTA_SYNC_ALL)
        n = vigil_store_count(i->store);
    return n + 1;
}

static int reserve_all(struct vigil_informer *i, size_t n)
{
    int r = 0;
    VG_LIST_FOREACH (at, &i->handlers)
        r = r < 0 ? r : vg_handler_reserve(handler_of(at), n);
    return r;
}

static void settle_all(struct vigil_informer *i)
{
    VG_LIST_FOREACH (n, &i->handlers)
        vg_handler_settle(handler_of(n));
}

static int process(void *arg, const struct vg_batch *batch)
{
    struct vigil_informer *i = arg;
    int r = reserve_all(i, notes_max(i, batch));
    return r < 0 ? r : vg_consume(&i->consumer, batch);
}

/* After a batch: is the first list complete, does somebody wait for the store? */
static void look_after(struct vigil_informer *i)
{
    bool is_new = !atomic_load(&i->has_synced) && vg_fifo_has_synced(i->fifo);
    if (is_new)
        tell_all(i, &(struct vg_note){.kind = VG_NOTE_SYNCED}, false);
    if (i->is_by_key && vg_fifo_backlog(i->fifo) == 0)
        atomic_store(&i->reached, i->seen);
    vg_mutex_lock(&i->mu);
    if (is_new)
        atomic_store(&i->has_synced, true);
    if (is_new || i->n_waiting > 0)
        vg_cond_broadcast(&i->changed);
    vg_mutex_unlock(&i->mu);
}

static bool must_wait(struct vigil_informer *i)
{
    bool waits = false;
    VG_LIST_FOREACH (n, &i->handlers)
        waits = vg_handler_blocks(handler_of(n)) || waits;
    return waits;
}

/* One batch; false: there is none, or a handler must be waited for. */
static bool consume_one(struct vigil_informer *i)
{
    if (must_wait(i))
        return false;
    int r = vg_fifo_pop(i->fifo, false, process, i);
    if (r == 0 || r == VIGIL_E_CLOSED)
        return false;
    if (r > 0)
        look_after(i);
    settle_all(i);
    if (r < 0)
        vg_source_lost(i, r);
    return true;
}

/* As many batches as one turn may take; true: there is more to do now. Batches of few events are
 * common: an object that changes again ends one. */
static bool consume(struct vigil_informer *i)
{
    size_t before = vg_fifo_backlog(i->fifo), left = before;
    bool goes_on = true;
    while (goes_on && left > 0 && before - left < VG_FIFO_BATCH_MAX) {
        goes_on = consume_one(i);
        left = vg_fifo_backlog(i->fifo);
    }
    if (i->is_full && left < BACKLOG_MAX) {
        i->is_full = false;
        vg_source_resume(i);
    }
    return goes_on && left > 0;
}

/* ---- a turn ---- */

void vg_informer_unlink(struct vigil_informer *i, struct vg_handler *r)
{
    vg_list_remove(&r->link);
    if (r->is_claimed)
        return;
    if (r->has_thread)
        vg_list_push_back(&i->leaving, &r->link);
    else
        vg_handler_free(r);
}

/* Callbacks may remove any handler, their own too: those are swept up afterwards. */
static bool tell_on_loop(struct vigil_informer *i)
{
    bool more = false;
    i->is_telling = true;
    VG_LIST_FOREACH (n, &i->handlers)
        more = vg_handler_tell(handler_of(n)) || more;
    i->is_telling = false;
    VG_LIST_FOREACH_SAFE (n, &i->handlers) {
        if (atomic_load(&handler_of(n)->is_ending) && !i->is_stopped)
            vg_informer_unlink(i, handler_of(n));
    }
    return more;
}

void vg_informer_on_work(struct vg_timer *t)
{
    struct vigil_informer *i = VG_CONTAINER_OF(t, struct vigil_informer, work);
    bool more = consume(i);
    if (tell_on_loop(i) || more)
        vg_informer_work_soon(i);
}

/* ---- late handlers ---- */

int vg_informer_replay(struct vigil_informer *i, struct vg_handler *r)
{
    struct vg_ctree t = vg_store_state(i->store);
    struct vg_ctree_cursor at;
    const struct vg_ctree_entry *e;
    int result = vg_handler_reserve(r, t.count + 1);
    vg_ctree_seek(&at, &t, NULL);
    while (result == 0 && (e = vg_ctree_next(&at)))
        vg_handler_push(r, &(struct vg_note){.kind = VG_NOTE_ADD, .flag = true, .o = e->o});
    if (result == 0 && atomic_load(&i->has_synced))
        vg_handler_push(r, &(struct vg_note){.kind = VG_NOTE_SYNCED});
    vg_handler_settle(r);
    vg_ctree_done(&t);
    return result;
}
