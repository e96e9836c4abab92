/* codec.h - what gRPC says over HTTP/2, without I/O: frames of messages, status, timeouts.
 * Everything a server sends is taken for malformed until it has been looked at. */
#ifndef VG_NET_GRPC_CODEC_H
#define VG_NET_GRPC_CODEC_H

#include "grpc.h"

/* ---- frames ---- */

/* 64 KiB: room for a long message is made ahead of its bytes only up to here; beyond it grows with
 * what arrives, so that a length alone costs nothing. */
#define VG_GRPC_ROOM_AHEAD ((size_t)64 << 10)

/* Bytes in any pieces become messages. Zeroed but for max is empty. */
struct vg_grpc_frames {
    size_t max; /* a longer message is refused */
    size_t length;
    unsigned n_prefix; /* bytes of the prefix that are there */
    uint8_t prefix[5];
    struct vg_buf part; /* of a message that came in pieces; its last one until the next step */
    bool is_out;        /* part has been handed out */
};
void vg_grpc_frames_done(struct vg_grpc_frames *f);
/* Take bytes from the front of *in. 1: *ret_message is whole, valid until the next step or, where
 * it lies in `in`, as long as that is; call again. 0: all was taken, the message goes on. Negative,
 * and over: VIGIL_E_TOO_LARGE; VIGIL_E_UNSUPPORTED (compressed); VIGIL_E_INVALID; -ENOMEM. */
VG_CHECK int vg_grpc_frames_step(struct vg_grpc_frames *f, struct vg_slice *in,
                                 struct vg_slice *ret_message);
/* A message has begun and is not whole. */
static inline bool vg_grpc_frames_is_inside(const struct vg_grpc_frames *f)
{
    return f->n_prefix > 0;
}
/* The message that the last step handed out, to keep: moved if it can be, else copied. */
VG_CHECK int vg_grpc_frames_keep(struct vg_grpc_frames *f, struct vg_slice message,
                                 struct vg_buf *ret);

/* ---- heads ---- */

/* "application/grpc", also with a suffix or parameters. */
bool vg_grpc_is_content_type(struct vg_slice value);
/* A number of at most nine digits; codes that gRPC does not know are UNKNOWN, and so is nonsense.
 */
enum vg_grpc_code vg_grpc_read_status(struct vg_slice value);
/* %-decoded, cut to size, always ended; bad escapes stay as they are, what is no text becomes '?'.
 */
void vg_grpc_read_message(struct vg_slice value, char *out, size_t size);
enum vg_grpc_code vg_grpc_code_of_http(int status);
enum vg_grpc_code vg_grpc_code_of_reset(uint32_t error);
/* The value of grpc-timeout: at most eight digits and a unit. */
#define VG_GRPC_TIMEOUT_SIZE 16
struct vg_slice vg_grpc_write_timeout(uint64_t ns, char out[VG_GRPC_TIMEOUT_SIZE]);

#endif
