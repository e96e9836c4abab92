/* handler.c - one handler: its ring, its thread or its turns on the loop, its callbacks. */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "informer_int.h"

/* Notes taken from the ring at a time: enough to forget the cost of the lock. */
#define TAKE_MAX 64u

static _Thread_local struct vg_handler *current;

struct vg_handler *vg_handler_current(const struct vigil_informer *i)
{
    return current && current->i == i ? current : NULL;
}

/* Guards `waits_for` of all handlers, of all informers: a callback may remove a handler of another
 * informer. No other lock is taken while it is held. */
static pthread_mutex_t waits_mu = PTHREAD_MUTEX_INITIALIZER;

bool vg_handler_may_wait(struct vg_handler *r)
{
    bool may = true;
    if (!current)
        return true;
    pthread_mutex_lock(&waits_mu);
    for (const struct vg_handler *h = r; h && may; h = h->waits_for)
        may = h != current;
    if (may)
        current->waits_for = r;
    pthread_mutex_unlock(&waits_mu);
    return may;
}

void vg_handler_waited(void)
{
    if (!current)
        return;
    pthread_mutex_lock(&waits_mu);
    current->waits_for = NULL;
    pthread_mutex_unlock(&waits_mu);
}

/* ---- callbacks ---- */

static bool wants(const struct vigil_handler *h, const struct vigil_object *o)
{
    return !h->filter || h->filter(h->arg, o);
}

static void tell_add(const struct vigil_handler *h, const struct vigil_object *o, bool is_initial)
{
    if (h->on_add)
        h->on_add(h->arg, o, is_initial);
}

static void tell_delete(const struct vigil_handler *h, const struct vigil_object *o, bool is_tomb)
{
    if (h->on_delete)
        h->on_delete(h->arg, o, is_tomb);
}

static void tell_update(const struct vigil_handler *h, const struct vg_note *n)
{
    bool is_in = wants(h, n->o), was_in = h->filter ? wants(h, n->before) : true;
    if (is_in && was_in) {
        if (h->on_update)
            h->on_update(h->arg, n->before, n->o);
    } else if (is_in) {
        tell_add(h, n->o, false);
    } else if (was_in) {
        tell_delete(h, n->before, false);
    }
}

static void tell(struct vg_handler *r, const struct vg_note *n)
{
    const struct vigil_handler *h = &r->h;
    switch ((enum vg_note_kind)n->kind) {
    case VG_NOTE_NONE:
        break;
    case VG_NOTE_ADD:
        if (wants(h, n->o))
            tell_add(h, n->o, n->flag);
        break;
    case VG_NOTE_UPDATE:
        tell_update(h, n);
        break;
    case VG_NOTE_DELETE:
        if (wants(h, n->o))
            tell_delete(h, n->o, n->flag);
        break;
    case VG_NOTE_SYNCED:
        atomic_store(&r->registration->has_synced, true);
        if (h->on_synced)
            h->on_synced(h->arg);
        break;
    }
}

static void tell_all(struct vg_handler *r, struct vg_note *notes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!atomic_load(&r->is_ending))
            tell(r, &notes[i]);
        vg_note_done(&notes[i]);
    }
}

/* ---- the ring ---- */

static size_t take_locked(struct vg_handler *r, struct vg_note *ret) VG_REQUIRES(r->mu)
{
    size_t n = vg_notes_take(&r->notes, ret, TAKE_MAX);
    if (r->is_blocking && r->notes.n <= r->h.buffer_max / 2) {
        r->is_blocking = false;
        vg_informer_wake(r->i);
    }
    return n;
}

int vg_handler_reserve(struct vg_handler *r, size_t n)
{
    vg_mutex_lock(&r->mu);
    int e = vg_notes_reserve(&r->notes, n);
    vg_mutex_unlock(&r->mu);
    return e;
}

void vg_handler_settle(struct vg_handler *r)
{
    vg_mutex_lock(&r->mu);
    vg_notes_settle(&r->notes);
    vg_mutex_unlock(&r->mu);
}

void vg_handler_push(struct vg_handler *r, const struct vg_note *note)
{
    vg_mutex_lock(&r->mu);
    vg_notes_push(&r->notes, note);
    if (r->notes.n == 1)
        vg_cond_signal(&r->ready);
    vg_mutex_unlock(&r->mu);
}

bool vg_handler_blocks(struct vg_handler *r)
{
    if (r->h.overflow != VIGIL_OVERFLOW_WAIT)
        return false;
    vg_mutex_lock(&r->mu);
    r->is_blocking = r->notes.n >= r->h.buffer_max;
    bool blocks = r->is_blocking;
    vg_mutex_unlock(&r->mu);
    return blocks;
}

/* ---- on the loop ---- */

bool vg_handler_tell(struct vg_handler *r)
{
    struct vg_note notes[TAKE_MAX];
    size_t told = 0, left = 0;
    if (r->has_thread)
        return false;
    do {
        vg_mutex_lock(&r->mu);
        size_t n = take_locked(r, notes);
        left = r->notes.n;
        vg_mutex_unlock(&r->mu);
        tell_all(r, notes, n);
        told += n;
    } while (left > 0 && told < VG_TELL_TURN_MAX && !atomic_load(&r->is_ending));
    return left > 0;
}

/* ---- on a thread ---- */

static void say_ended(struct vg_handler *r)
{
    struct vigil_informer *i = r->i;
    vg_mutex_lock(&i->mu);
    r->has_ended = true;
    i->n_threads--;
    vg_informer_wake(i);
    vg_cond_broadcast(&i->changed);
    vg_mutex_unlock(&i->mu);
}

static void *run(void *arg)
{
    struct vg_handler *r = arg;
    struct vg_note notes[TAKE_MAX];
    current = r;
    for (;;) {
        vg_mutex_lock(&r->mu);
        while (r->notes.n == 0 && !atomic_load(&r->is_ending))
            vg_cond_wait(&r->ready, &r->mu);
        size_t n = take_locked(r, notes);
        vg_mutex_unlock(&r->mu);
        tell_all(r, notes, n);
        if (atomic_load(&r->is_ending))
            break;
    }
    say_ended(r);
    return NULL;
}

static int start_thread(struct vg_handler *r)
{
    struct vigil_informer *i = r->i;
    vg_mutex_lock(&i->mu);
    i->n_threads++;
    vg_mutex_unlock(&i->mu);
    int e = pthread_create(&r->thread, NULL, run, r);
    r->has_thread = e == 0;
    if (e) {
        vg_mutex_lock(&i->mu);
        i->n_threads--;
        vg_mutex_unlock(&i->mu);
    }
    return -e;
}

/* ---- life ---- */

int vg_handler_new(struct vigil_informer *i, const struct vigil_handler *h,
                   struct vigil_registration *registration, struct vg_handler **ret)
{
    if (h->size == 0)
        return VIGIL_E_INVALID;
    struct vg_handler *r = vg_new(struct vg_handler);
    if (!r)
        return -ENOMEM;
    memcpy(&r->h, h, VG_MIN(h->size, sizeof(r->h))); /* of an older program: shorter */
    if (r->h.buffer_max == 0)
        r->h.buffer_max = VG_HANDLER_BUFFER_MAX;
    r->i = i;
    r->registration = registration;
    registration->handler = r;
    vg_list_init(&r->link);
    vg_mutex_init(&r->mu, VG_RANK_CLIENT_HANDLER);
    vg_cond_init(&r->ready);
    vg_notes_init(&r->notes, r->h.overflow == VIGIL_OVERFLOW_MERGE ? r->h.buffer_max : 0);
    int e = r->h.own_thread ? start_thread(r) : 0;
    if (e < 0)
        vg_handler_free(r);
    else
        *ret = r;
    return e;
}

void vg_handler_end(struct vg_handler *r)
{
    vg_mutex_lock(&r->mu);
    atomic_store(&r->is_ending, true);
    vg_notes_done(&r->notes);
    r->is_blocking = false;
    vg_cond_signal(&r->ready);
    vg_mutex_unlock(&r->mu);
}

void vg_handler_free(struct vg_handler *r)
{
    if (!r)
        return;
    if (r->has_thread)
        pthread_join(r->thread, NULL);
    vg_notes_done(&r->notes);
    vg_cond_done(&r->ready);
    vg_mutex_done(&r->mu);
    vg_free(r);
}
