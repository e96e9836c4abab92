/* decode.h - many encoded records made into records at once, by the calling thread and by a helper
 * that sleeps until there are enough of them to share. Most of a start with a full store is this:
 * checksums, copies, and the pages of memory that they go to. */
#ifndef VG_STORAGE_DECODE_H
#define VG_STORAGE_DECODE_H

#include "base/lock.h"
#include "server/storage/record.h"

struct vg_decode_item {
    struct vg_slice
        in; /* one encoded record, and nothing behind it; p == NULL: none, leave `rec` */
    struct vg_rec *rec; /* result, a reference */
    int err;            /* or why there is none */
};

struct vg_decoder {
    struct vg_mutex mu; /* rank STORE_BASE: the next five */
    struct vg_cond work, done;
    size_t n, next; /* offered; those below `next` are taken */
    size_t n_busy;  /* threads that work on what they took */
    bool is_ending;
    struct vg_decode_item *items; /* of the batch under way; set while n is 0 */
    /* The caller's. */
    bool has_helper, is_alone; /* it runs; there shall be none */
    pthread_t helper;
};

void vg_decoder_init(struct vg_decoder *d);
/* No call is under way. */
void vg_decoder_done(struct vg_decoder *d);
/* A batch: begin, offer as the items are found, finish. None of it fails but finish. Thread: one at
 * a time. Items stay where they are until finish. */
void vg_decode_begin(struct vg_decoder *d, struct vg_decode_item *items);
/* The first n are there: the helper may begin. Worth a call for every VG_DECODE_OFFER of them. */
#define VG_DECODE_OFFER 64
void vg_decode_offer(struct vg_decoder *d, size_t n);
/* There are n in all; decode what is left. 0, or the error of the first one that failed, whose
 * index is *ret_failed; the others are done all the same. */
VG_CHECK int vg_decode_finish(struct vg_decoder *d, size_t n, size_t *ret_failed);

#endif
