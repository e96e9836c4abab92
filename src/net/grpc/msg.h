/* msg.h - a message as it lies in memory: prefix and bytes in one block. */
#ifndef VG_NET_GRPC_MSG_H
#define VG_NET_GRPC_MSG_H

#include "grpc.h"
#include "net/http.h"

/* Every message is preceded by a flag (0: not compressed) and its length, big-endian. */
#define VG_GRPC_PREFIX 5

/* The prefix and the bytes; borrowed. */
struct vg_slice vg_grpc_msg_frame(const struct vg_grpc_msg *m);
/* Keeps the message while its frame waits to be sent. */
struct vg_http_pin vg_grpc_msg_pin(const struct vg_grpc_msg *m);

#endif
