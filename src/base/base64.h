/* base64.h - RFC 4648, with padding. Thread: any. */
#ifndef VG_BASE_BASE64_H
#define VG_BASE_BASE64_H

#include "buf.h"

static inline size_t vg_base64_size(size_t n)
{
    return (n + 2) / 3 * 4;
}
/* out has room for vg_base64_size(s.n) bytes, and gets as many. */
void vg_base64_encode(struct vg_slice s, char *out);
/* 0, -ENOMEM, VIGIL_E_TOO_LARGE. */
VG_CHECK int vg_base64_append(struct vg_buf *out, struct vg_slice s);
/* out has room for text.n / 4 * 3 bytes. False: not base64, or badly padded; no white space. */
VG_CHECK bool vg_base64_decode(struct vg_slice text, char *out, size_t *ret_n);
/* The same, with line breaks anywhere, as Go takes it; out has room for text.n bytes. */
VG_CHECK bool vg_base64_decode_lines(struct vg_slice text, char *out, size_t *ret_n);

/* base64url without padding, as tokens have it. out has room for vg_base64_size(s.n) bytes;
 * returned is how many it got. */
size_t vg_base64_url_encode(struct vg_slice s, char *out);
/* out has room for vg_base64_url_room(text.n) bytes: it is worked in. False: not base64url. */
static inline size_t vg_base64_url_room(size_t n)
{
    return n + 4;
}
VG_CHECK bool vg_base64_url_decode(struct vg_slice text, char *out, size_t *ret_n);

#endif
