/* proto_fuzz.h - what the fuzzers of the protobuf codec share: the first byte of an input picks a
 * type, the rest is its bytes or its text. */
#ifndef VG_KINDS_PROTO_FUZZ_H
#define VG_KINDS_PROTO_FUZZ_H

#include "server/schema/proto.h"
#include "types.h"
#include "json/write.h"

/* Together they have every kind of value and shape that there is. */
static inline const struct vg_schema_type *vg_proto_fuzz_type(uint8_t pick)
{
    static const char *const names[][3] = {
        {"", "v1", "Pod"},
        {"apiextensions.k8s.io", "v1", "CustomResourceDefinition"},
        {"", "v1", "Secret"},
        {"events.k8s.io", "v1", "Event"},
        {"apps", "v1", "StatefulSet"},
        {"autoscaling", "v2", "HorizontalPodAutoscaler"},
        {"networking.k8s.io", "v1", "NetworkPolicy"},
        {"authorization.k8s.io", "v1", "SubjectAccessReview"},
        {"resource.k8s.io", "v1", "ResourceClaim"},
        {"apps", "v1", "ControllerRevision"},
        {"", "v1", "PersistentVolume"},
        {"meta.k8s.io", "v1", "Status"},
        {"meta.k8s.io", "v1", "APIResourceList"},
        {"admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"},
    };
    const char *const *n = names[pick % VG_ARRAY_LEN(names)];
    return vg_schema_find(vg_slice_str(n[0]), vg_slice_str(n[1]), vg_slice_str(n[2]));
}

/* Message to text; false: it is none, or too large a one. */
static inline bool vg_proto_fuzz_print(const struct vg_schema_type *t, struct vg_slice message,
                                       struct vg_buf *out)
{
    VG_AUTO(arena) arena;
    struct vg_proto_envelope x = {.raw = message};
    struct vg_json v;
    vg_arena_init(&arena, 0, (size_t)64 << 20);
    return vg_proto_decode(&arena, t, &x, &v, NULL) == 0 && vg_json_write(out, &v, 0) == 0;
}

/* What is decoded and encoded again must decode to the same. */
static inline void vg_proto_fuzz_check(const struct vg_schema_type *t, struct vg_slice message)
{
    VG_AUTO(buf) text = {0};
    VG_AUTO(buf) bytes = {0};
    VG_AUTO(buf) again = {0};
    VG_AUTO(buf) bytes_again = {0};
    VG_AUTO(proto_encoder) e = {0};
    struct vg_slice none = {"", 0};
    if (!vg_proto_fuzz_print(t, message, &text))
        return;
    uint64_t size;
    if (vg_proto_encode(&e, t, vg_buf_slice(&text), none, &bytes) < 0 ||
        vg_proto_size(&e, t, vg_buf_slice(&text), none, &size) < 0 || size != bytes.n)
        __builtin_trap();
    if (!vg_proto_fuzz_print(t, vg_buf_slice(&bytes), &again) ||
        !vg_slice_eq(vg_buf_slice(&text), vg_buf_slice(&again)))
        __builtin_trap();
    if (vg_proto_encode(&e, t, vg_buf_slice(&again), none, &bytes_again) < 0 ||
        !vg_slice_eq(vg_buf_slice(&bytes), vg_buf_slice(&bytes_again)))
        __builtin_trap();
}

#endif
