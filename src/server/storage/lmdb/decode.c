/* decode.c - see decode.h. The helper takes what is offered by the piece; when all is found the
 * caller does the same until none is left, and waits for what the helper still has in hand, never
 * for it to wake up. Few items are never offered: the caller does them, and nobody is woken. */
#include "decode.h"

#include <sched.h>

#include "base/alloc.h"

/* Items taken at a time: about 50 us of work. */
#define PIECE 16

static void decode_one(struct vg_decode_item *item)
{
    size_t used = 0;
    item->rec = NULL;
    item->err = vg_rec_decode(item->in, &used, &item->rec);
    if (item->err == 0 && used != item->in.n) {
        item->rec = vg_rec_unref(item->rec);
        item->err = VIGIL_E_STORE_DAMAGED;
    }
}

static void decode_some(struct vg_decode_item *items, size_t n, bool is_of_many)
{
    for (size_t i = 0; i < n; i++) {
        if (!items[i].in.p)
            continue;
        decode_one(&items[i]);
        if (items[i].rec && is_of_many)
            vg_alloc_touch_ahead(items[i].rec);
    }
}

/* Take a piece and do it. False: nothing is left to take. The lock is held, but for the work. */
static bool do_piece(struct vg_decoder *d, bool is_of_many) VG_REQUIRES(d->mu)
{
    if (d->next == d->n)
        return false;
    struct vg_decode_item *items = d->items + d->next;
    size_t n = VG_MIN(d->n - d->next, (size_t)PIECE);
    d->next += n;
    d->n_busy++;
    vg_mutex_unlock(&d->mu);
    decode_some(items, n, is_of_many);
    vg_mutex_lock(&d->mu);
    if (--d->n_busy == 0 && d->next == d->n)
        vg_cond_signal(&d->done);
    return true;
}

static void *helper_main(void *arg)
{
    struct vg_decoder *d = arg;
    vg_mutex_lock(&d->mu);
    while (!d->is_ending) {
        if (!do_piece(d, true))
            vg_cond_wait(&d->work, &d->mu);
    }
    vg_mutex_unlock(&d->mu);
    return NULL;
}

void vg_decoder_init(struct vg_decoder *d)
{
    *d = (struct vg_decoder){0};
    vg_mutex_init(&d->mu, VG_RANK_STORE_BASE);
    vg_cond_init(&d->work);
    vg_cond_init(&d->done);
}

void vg_decoder_done(struct vg_decoder *d)
{
    vg_mutex_lock(&d->mu);
    d->is_ending = true;
    vg_cond_signal(&d->work);
    vg_mutex_unlock(&d->mu);
    if (d->has_helper)
        pthread_join(d->helper, NULL);
    vg_cond_done(&d->work);
    vg_cond_done(&d->done);
    vg_mutex_done(&d->mu);
}

/* A helper needs a processor of its own. Without it the caller does all. */
static bool is_one_processor(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) < 2;
}

static void start_helper(struct vg_decoder *d)
{
    if (d->has_helper || d->is_alone)
        return;
    d->has_helper = !is_one_processor() && pthread_create(&d->helper, NULL, helper_main, d) == 0;
    d->is_alone = !d->has_helper;
    if (d->has_helper)
        pthread_setname_np(d->helper, "vg-decode");
}

void vg_decode_begin(struct vg_decoder *d, struct vg_decode_item *items)
{
    vg_mutex_lock(&d->mu);
    d->items = items;
    vg_mutex_unlock(&d->mu);
}

void vg_decode_offer(struct vg_decoder *d, size_t n)
{
    start_helper(d);
    if (!d->has_helper)
        return;
    vg_mutex_lock(&d->mu);
    d->n = n;
    vg_cond_signal(&d->work);
    vg_mutex_unlock(&d->mu);
}

int vg_decode_finish(struct vg_decoder *d, size_t n, size_t *ret_failed)
{
    vg_mutex_lock(&d->mu);
    struct vg_decode_item *items = d->items;
    bool is_of_many = n >= VG_DECODE_OFFER;
    d->n = n;
    while (do_piece(d, is_of_many))
        ;
    while (d->n_busy)
        vg_cond_wait(&d->done, &d->mu);
    d->items = NULL;
    d->n = d->next = 0;
    vg_mutex_unlock(&d->mu);
    for (size_t i = 0; i < n; i++) {
        if (items[i].in.p && items[i].err < 0) {
            *ret_failed = i;
            return items[i].err;
        }
    }
    return 0;
}
