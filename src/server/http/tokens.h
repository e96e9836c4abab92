/* tokens.h - bearer tokens from a file, as kube-apiserver's --token-auth-file has them:
 *     token,user name,user uid[,"group1,group2"]
 * A table is read whole, never changes, and is shared by reference; a reload makes another. It
 * keeps digests, not tokens: a search compares digests alone, so its time says nothing about how
 * much of a guessed token was right. Thread: any. */
#ifndef VG_SERVER_HTTP_TOKENS_H
#define VG_SERVER_HTTP_TOKENS_H

#include "base/err.h"
#include "base/slice.h"

/* 16 MiB and 100,000 rows: far above any file that people keep. */
#define VG_TOKENS_BYTES_MAX ((size_t)16 << 20)
#define VG_TOKENS_MAX 100000u

struct vg_tokens;
struct vg_token {
    unsigned char digest[32]; /* SHA-256 */
    struct vg_slice name, uid;
    const struct vg_slice *groups;
    size_t n_groups;
};

/* 0; -errno or VIGIL_E_INVALID with a sentence that names the file and the line. */
VG_CHECK int vg_tokens_load(const char *path, struct vg_tokens **ret_tokens,
                            struct vg_status *reterr_status);
/* The same from text; `name` is for messages. */
VG_CHECK int vg_tokens_parse(const char *name, struct vg_slice text, struct vg_tokens **ret_tokens,
                             struct vg_status *reterr_status);
struct vg_tokens *vg_tokens_ref(struct vg_tokens *t);
struct vg_tokens *vg_tokens_unref(struct vg_tokens *t); /* NULL allowed; returns NULL */
size_t vg_tokens_count(const struct vg_tokens *t);
/* NULL: nobody's. The row lives as long as the table. A NULL table has no rows. */
const struct vg_token *vg_tokens_find(const struct vg_tokens *t, struct vg_slice token);

#endif
