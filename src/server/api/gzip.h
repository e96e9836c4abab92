/* gzip.h - a body compressed piece by piece, on a worker thread, so that a large list delays nobody
 * on its loop. ISA-L's igzip at level 1: 2.7 GB/s on pods, ten times zlib's level 1, and smaller.
 *
 *   put slices (long ones by reference) --> run --> worker compresses --> done(out) on the loop
 *
 * One member, one stream: any gzip reader takes it. Thread: the loop's, but for the work itself. */
#ifndef VG_API_GZIP_H
#define VG_API_GZIP_H

#include "base/buf.h"
#include "base/err.h"

struct vg_gzip;
struct vg_loop;

/* 256 KiB: some 100 us of a worker's time, and enough that going there and back does not matter. */
#define VG_GZIP_PIECE ((size_t)256 * 1024)
/* kube-apiserver compresses answers above this. */
#define VG_GZIP_MIN ((size_t)128 * 1024)

/* done(arg, err, out): out is valid until the next run or free. err 0, -ENOMEM, VIGIL_E_INTERNAL.
 */
typedef void vg_gzip_done_fn(void *arg, int err, struct vg_slice out);

/* Some 400 KiB of state until it is freed. -ENOMEM. */
VG_CHECK int vg_gzip_new(struct vg_loop *loop, vg_gzip_done_fn *done, void *arg,
                         struct vg_gzip **ret_gzip);
/* Also while a run is under way: done is not called any more. What was put by reference must stay
 * valid until *released (may be NULL) is called, now or when the worker has come back. NULL
 * allowed. */
void vg_gzip_free(struct vg_gzip *g, void (*released)(void *arg), void *arg);

/* Add to the piece that the next run compresses. Slices up to 256 bytes are copied, longer ones
 * must stay valid until done. Not while a run is under way. -ENOMEM. */
VG_CHECK int vg_gzip_put(struct vg_gzip *g, const struct vg_slice *v, size_t n);
size_t vg_gzip_pending(const struct vg_gzip *g); /* bytes put */
/* Compress what was put. is_last ends the stream. done comes later, never from within. Too many
 * runs under way is no error: they wait for a worker. */
void vg_gzip_run(struct vg_gzip *g, bool is_last);

/* All at once, here: for bodies that are made once and kept. 0, -ENOMEM. */
VG_CHECK int vg_gzip_whole(struct vg_buf *out, struct vg_slice body);

#endif
