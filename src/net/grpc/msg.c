/* msg.c - see msg.h. */
#include "msg.h"

#include "base/alloc.h"

struct vg_grpc_msg {
    size_t n; /* of the frame */
    unsigned refs;
    uint8_t frame[];
};

struct vg_grpc_msg *vg_grpc_msg_new(size_t n, uint8_t **ret_bytes)
{
    if (n > UINT32_MAX)
        return NULL;
    struct vg_grpc_msg *m = vg_malloc(sizeof *m + VG_GRPC_PREFIX + n);
    if (!m)
        return NULL;
    m->n = VG_GRPC_PREFIX + n;
    m->refs = 1;
    m->frame[0] = 0;
    for (int i = 0; i < 4; i++)
        m->frame[1 + i] = (uint8_t)(n >> (24 - 8 * i));
    *ret_bytes = m->frame + VG_GRPC_PREFIX;
    return m;
}

struct vg_grpc_msg *vg_grpc_msg_ref(struct vg_grpc_msg *m)
{
    m->refs++;
    return m;
}

struct vg_grpc_msg *vg_grpc_msg_unref(struct vg_grpc_msg *m)
{
    if (m && --m->refs == 0)
        vg_free(m);
    return NULL;
}

struct vg_slice vg_grpc_msg_bytes(const struct vg_grpc_msg *m)
{
    return vg_slice(m->frame + VG_GRPC_PREFIX, m->n - VG_GRPC_PREFIX);
}

struct vg_slice vg_grpc_msg_frame(const struct vg_grpc_msg *m)
{
    return vg_slice(m->frame, m->n);
}

static struct vg_grpc_msg *of(const void *block)
{
    return (struct vg_grpc_msg *)(uintptr_t)block;
}
static void pin_ref(const void *block)
{
    vg_grpc_msg_ref(of(block));
}
static void pin_unref(const void *block)
{
    vg_grpc_msg_unref(of(block));
}

struct vg_http_pin vg_grpc_msg_pin(const struct vg_grpc_msg *m)
{
    return (struct vg_http_pin){m, pin_ref, pin_unref};
}
