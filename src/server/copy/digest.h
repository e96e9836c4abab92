/* digest.h - one number for many records: SHA-256 over their keys and values in order. Two stores
 * with the same digest hold the same objects; revisions are no part of it.
 * Thread: one owner of each digest. */
#ifndef VG_COPY_DIGEST_H
#define VG_COPY_DIGEST_H

#include "server/storage/record.h"

#define VG_DIGEST_SIZE 32
#define VG_DIGEST_TEXT (2 * VG_DIGEST_SIZE + 1)

struct vg_digest;
VG_CHECK int vg_digest_new(struct vg_digest **ret_digest);
void vg_digest_free(struct vg_digest *d);
VG_CHECK int vg_digest_add(struct vg_digest *d, const struct vg_rec *rec);
/* Of everything so far; more may follow. */
VG_CHECK int vg_digest_get(const struct vg_digest *d, unsigned char ret_sum[VG_DIGEST_SIZE]);
void vg_digest_text(const unsigned char sum[VG_DIGEST_SIZE], char ret_text[VG_DIGEST_TEXT]);

#endif
