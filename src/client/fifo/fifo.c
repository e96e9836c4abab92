/* fifo.c - what both kinds of queue share: making, transforms, popping, synced; see fifo.h. */
#include "fifo.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "fifo_int.h"

/* ---- runs of entries ---- */

void vg_delta_done(struct vg_delta *d)
{
    if (d->type != VG_DELTA_REPLACED_ALL && d->type != VG_DELTA_BOOKMARK) {
        if (d->type != VG_DELTA_SYNC_ALL)
            vigil_object_unref(d->o);
        return;
    }
    for (size_t i = 0; i < d->all->n; i++)
        vigil_object_unref(d->all->objects[i]);
    vg_free(d->all);
}

int vg_delta_run_reserve(struct vg_delta_run *run, size_t n)
{
    if (n <= run->cap)
        return 0;
    struct vg_delta *v = vg_reallocarray(run->v, n, sizeof(*v));
    if (!v)
        return -ENOMEM;
    run->v = v;
    run->cap = n;
    return 0;
}

void vg_delta_run_clear(struct vg_delta_run *run)
{
    for (size_t i = 0; i < run->n; i++)
        vg_delta_done(&run->v[i]);
    run->n = 0;
}

void vg_delta_run_done(struct vg_delta_run *run)
{
    vg_delta_run_clear(run);
    vg_free(run->v);
    *run = (struct vg_delta_run){0};
}

/* ---- making ---- */

int vg_fifo_new(const struct vg_fifo_opts *opts, struct vg_fifo **ret)
{
    if ((opts->mode == VG_FIFO_ATOMIC) != !opts->known)
        return VIGIL_E_INVALID;
    struct vg_fifo *f = vg_new(struct vg_fifo);
    if (!f)
        return -ENOMEM;
    if (vg_delta_run_reserve(&f->batch, 1) < 0) { /* so that a pop never fails */
        vg_free(f);
        return -ENOMEM;
    }
    f->opts = *opts;
    if (f->opts.batch_max == 0)
        f->opts.batch_max = VG_FIFO_BATCH_MAX;
    vg_mutex_init(&f->mu, VG_RANK_CLIENT_FIFO);
    vg_cond_init(&f->ready);
    vg_cond_init(&f->room);
    vg_list_init(&f->order);
    *ret = f;
    return 0;
}

void vg_fifo_free(struct vg_fifo *f)
{
    if (!f)
        return;
    vg_ordered_done(f);
    vg_keyed_done(f);
    vg_delta_run_done(&f->batch);
    vg_cond_done(&f->ready);
    vg_cond_done(&f->room);
    vg_mutex_done(&f->mu);
    vg_free(f);
}

/* ---- the producer ---- */

static size_t backlog(const struct vg_fifo *f)
{
    return f->opts.mode == VG_FIFO_BY_KEY ? vg_map_count(&f->by_key) : f->n;
}

static bool is_full(const struct vg_fifo *f)
{
    return f->is_processing && backlog(f) >= 2 * f->opts.batch_max;
}

static void lock_with_room(struct vg_fifo *f) VG_ACQUIRE(f->mu)
{
    vg_mutex_lock(&f->mu);
    while (f->opts.waits_when_full && is_full(f) && !f->is_closed)
        vg_cond_wait(&f->room, &f->mu);
}

/* For what looks at the known objects: a batch that is on its way into the store is neither known
 * nor queued. */
static void lock_with_known(struct vg_fifo *f) VG_ACQUIRE(f->mu)
{
    lock_with_room(f);
    while (f->opts.known && f->is_processing)
        vg_cond_wait(&f->room, &f->mu);
}

static void unlock_ready(struct vg_fifo *f) VG_RELEASE(f->mu)
{
    vg_cond_broadcast(&f->ready);
    vg_mutex_unlock(&f->mu);
}

/* A reference of what shall be queued; NULL: rejected. */
static const struct vigil_object *transform(struct vg_fifo *f, const struct vigil_object *o)
{
    return f->opts.transform ? f->opts.transform(f->opts.transform_arg, o) : vigil_object_ref(o);
}

int vg_fifo_put(struct vg_fifo *f, enum vg_delta_type type, const struct vigil_object *o)
{
    const struct vigil_object *mine = transform(f, o);
    if (!mine)
        return VIGIL_E_INVALID;
    if (type == VG_DELTA_DELETED)
        lock_with_known(f);
    else
        lock_with_room(f);
    int r = f->opts.mode == VG_FIFO_BY_KEY ? vg_keyed_put(f, type, mine)
                                           : vg_ordered_put(f, type, mine);
    if (r == 0)
        f->is_populated = true;
    unlock_ready(f);
    vigil_object_unref(mine);
    return r;
}

static void all_free(struct vg_delta_all *all)
{
    struct vg_delta d = {.type = VG_DELTA_REPLACED_ALL, .all = all};
    if (all)
        vg_delta_done(&d);
}

static int all_new(size_t max, struct vg_slice version, struct vg_delta_all **ret)
{
    if (version.n > VG_OBJECT_VERSION_MAX)
        return VIGIL_E_TOO_LARGE;
    struct vg_delta_all *all = vg_malloc(sizeof(*all) + max * sizeof(all->objects[0]));
    if (!all)
        return -ENOMEM;
    all->n = 0;
    all->version_n = version.n;
    if (version.n)
        memcpy(all->version, version.p, version.n);
    *ret = all;
    return 0;
}

/* The list as it shall be queued: transformed, with references. */
/* As servers send lists: then no key can be there twice. */
static bool is_in_key_order(const struct vg_delta_all *all)
{
    for (size_t i = 1; i < all->n; i++)
        if (vg_slice_cmp(vg_object_key(all->objects[i - 1]), vg_object_key(all->objects[i])) >= 0)
            return false;
    return true;
}

/* An object that appears twice in a list is delivered once, with its last state, at the place of
 * its first appearance. 0, or a negative code; then the list is unchanged. */
static int drop_duplicates(struct vg_delta_all *all)
{
    VG_AUTO(map) places = {0};
    size_t n = 0;
    if (is_in_key_order(all))
        return 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct vigil_object *o = all->objects[i];
        size_t at = (uintptr_t)vg_map_get(&places, vg_object_key(o));
        void *place = (void *)(uintptr_t)(at ? at : n + 1);
        int r = vg_map_put(&places, vg_object_key(o), place, NULL);
        if (r < 0) {
            memmove(&all->objects[n], &all->objects[i], (all->n - i) * sizeof(o));
            all->n -= i - n;
            return r;
        }
        if (at) /* the map borrows the key of the new one now */
            vigil_object_unref(all->objects[at - 1]);
        all->objects[at ? at - 1 : n++] = o;
    }
    all->n = n;
    return 0;
}

static int make_all(struct vg_fifo *f, const struct vigil_object *const *objects, size_t n,
                    struct vg_slice version, struct vg_delta_all **ret)
{
    struct vg_delta_all *all;
    int r = all_new(n, version, &all);
    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++) {
        const struct vigil_object *o = transform(f, objects[i]);
        if (!o) {
            all_free(all);
            return VIGIL_E_INVALID;
        }
        all->objects[all->n++] = o;
    }
    r = drop_duplicates(all);
    if (r < 0)
        all_free(all);
    else
        *ret = all;
    return r;
}

static int replace_locked(struct vg_fifo *f, struct vg_delta_all **all)
{
    switch (f->opts.mode) {
    case VG_FIFO_ATOMIC:
        return vg_ordered_put_all(f, VG_DELTA_REPLACED_ALL, vg_steal(*all));
    case VG_FIFO_ORDERED:
        return vg_ordered_replace(f, (*all)->objects, (*all)->n);
    default:
        return vg_keyed_replace(f, (*all)->objects, (*all)->n);
    }
}

int vg_fifo_replace(struct vg_fifo *f, const struct vigil_object *const *objects, size_t n,
                    struct vg_slice version)
{
    struct vg_delta_all *all;
    int r = make_all(f, objects, n, version, &all);
    if (r < 0)
        return r;
    lock_with_known(f);
    r = replace_locked(f, &all);
    if (r == 0 && !f->is_populated) {
        f->is_populated = true;
        f->initial = backlog(f);
    }
    unlock_ready(f);
    all_free(all);
    return r;
}

int vg_fifo_resync(struct vg_fifo *f)
{
    int r;
    lock_with_known(f);
    if (f->opts.mode == VG_FIFO_ATOMIC)
        r = vg_ordered_put_all(f, VG_DELTA_SYNC_ALL, NULL);
    else
        r = f->opts.mode == VG_FIFO_ORDERED ? vg_ordered_resync(f) : vg_keyed_resync(f);
    unlock_ready(f);
    return r;
}

int vg_fifo_bookmark(struct vg_fifo *f, struct vg_slice version)
{
    struct vg_delta_all *all;
    if (f->opts.mode != VG_FIFO_ATOMIC)
        return 0;
    int r = all_new(0, version, &all);
    if (r < 0)
        return r;
    lock_with_room(f);
    r = vg_ordered_put_all(f, VG_DELTA_BOOKMARK, all);
    unlock_ready(f);
    return r;
}

bool vg_fifo_is_full(struct vg_fifo *f)
{
    vg_mutex_lock(&f->mu);
    bool full = is_full(f);
    f->was_told_full = f->was_told_full || full;
    vg_mutex_unlock(&f->mu);
    return full;
}

/* ---- the consumer ---- */

static bool has_synced(const struct vg_fifo *f)
{
    return f->is_populated && f->initial == 0;
}

/* 1: there is a batch to take; 0, VIGIL_E_CLOSED as vg_fifo_pop. */
static int wait_ready(struct vg_fifo *f, bool waits) VG_REQUIRES(f->mu)
{
    while (f->is_processing || backlog(f) == 0) {
        if (!f->is_processing && f->is_closed)
            return VIGIL_E_CLOSED;
        if (!waits)
            return 0;
        vg_cond_wait(&f->ready, &f->mu);
    }
    return 1;
}

/* What the batch was of the first list: entries, or one key. */
static size_t initial_part(const struct vg_fifo *f)
{
    return f->opts.mode == VG_FIFO_BY_KEY ? 1 : f->batch.n;
}

/* Is a producer to be told that there is room again? */
static bool end_processing(struct vg_fifo *f, size_t part) VG_REQUIRES(f->mu)
{
    bool tells = f->was_told_full;
    f->initial -= VG_MIN(f->initial, part);
    f->is_processing = f->was_told_full = false;
    vg_cond_broadcast(&f->ready);
    vg_cond_broadcast(&f->room);
    return tells;
}

int vg_fifo_pop(struct vg_fifo *f, bool waits, vg_fifo_process_fn *process, void *arg)
{
    vg_mutex_lock(&f->mu);
    int r = wait_ready(f, waits);
    if (r <= 0) {
        vg_mutex_unlock(&f->mu);
        return r;
    }
    f->is_processing = true;
    if (f->opts.mode == VG_FIFO_BY_KEY)
        vg_keyed_take(f);
    else
        vg_ordered_take(f);
    struct vg_batch batch = {f->batch.v, f->batch.n, !has_synced(f)};
    vg_mutex_unlock(&f->mu);

    r = process(arg, &batch);
    size_t part = initial_part(f);
    vg_delta_run_clear(&f->batch);
    vg_mutex_lock(&f->mu);
    bool tells = end_processing(f, part);
    vg_mutex_unlock(&f->mu);
    if (tells && f->opts.on_room)
        f->opts.on_room(f->opts.on_room_arg);
    return r < 0 ? r : 1;
}

/* ---- any ---- */

bool vg_fifo_has_synced(struct vg_fifo *f)
{
    vg_mutex_lock(&f->mu);
    bool synced = has_synced(f);
    vg_mutex_unlock(&f->mu);
    return synced;
}

size_t vg_fifo_backlog(struct vg_fifo *f)
{
    vg_mutex_lock(&f->mu);
    size_t n = backlog(f);
    vg_mutex_unlock(&f->mu);
    return n;
}

void vg_fifo_close(struct vg_fifo *f)
{
    vg_mutex_lock(&f->mu);
    f->is_closed = true;
    vg_cond_broadcast(&f->ready);
    vg_cond_broadcast(&f->room);
    vg_mutex_unlock(&f->mu);
}
