/* fuzz_proto_encode.c - any text as an object; what comes out is a message. */
#include "proto_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const struct vg_schema_type *t = vg_proto_fuzz_type(data[0]);
    VG_AUTO(proto_encoder) e = {0};
    VG_AUTO(buf) bytes = {0};
    if (vg_proto_encode(&e, t, vg_slice(data + 1, size - 1), VG_SLICE_LIT("42"), &bytes) < 0) {
        if (bytes.n)
            __builtin_trap();
        return 0;
    }
    uint64_t size_told;
    if (vg_proto_size(&e, t, vg_slice(data + 1, size - 1), VG_SLICE_LIT("42"), &size_told) < 0 ||
        size_told != bytes.n)
        __builtin_trap();
    vg_proto_fuzz_check(t, vg_buf_slice(&bytes));
    return 0;
}
