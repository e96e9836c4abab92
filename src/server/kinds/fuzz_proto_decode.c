/* fuzz_proto_decode.c - any bytes as a message; what is one survives encoding and decoding. */
#include "proto_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct vg_slice bytes = vg_slice(data + 1, size - 1);
    struct vg_proto_envelope x;
    if (vg_proto_open(bytes, &x, NULL) == 0)
        bytes = x.raw;
    vg_proto_fuzz_check(vg_proto_fuzz_type(data[0]), bytes.n ? bytes : VG_SLICE_LIT(""));
    return 0;
}
