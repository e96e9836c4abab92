/* fuzz_record.c - any bytes decode or are refused; what decodes encodes to the same bytes again.
 * A fuzzer does not guess checksums, so each input is tried as it is and once more with the
 * checksum of its first record made right. */
#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/crc32c.h"
#include "record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds)
{
    if (!holds)
        abort();
}

/* Little endian, n bytes. */
static uint64_t number_at(const char *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = n; i-- > 0;)
        v = v << 8 | (unsigned char)p[i];
    return v;
}

/* Offsets are those of the encoded head in record.c. */
static void fix_checksum(char *bytes, size_t size)
{
    if (size < VG_REC_ENCODED_HEAD)
        return;
    uint64_t body = number_at(bytes + 4, 4) + number_at(bytes + 8, 4) + number_at(bytes + 12, 2);
    if (body > size - VG_REC_ENCODED_HEAD)
        return;
    uint32_t crc = vg_crc32c(0, bytes + 4, VG_REC_ENCODED_HEAD + (size_t)body - 4);
    for (int i = 0; i < 4; i++)
        bytes[i] = (char)(crc >> (8 * i));
}

static void check_round_trip(const struct vg_rec *r, const char *bytes, size_t used)
{
    must(vg_rec_encoded_size(r) == used);
    char *again = vg_malloc(used);
    if (!again)
        return;
    vg_rec_encode(r, again);
    must(memcmp(again, bytes, used) == 0);
    vg_free(again);
}

/* Records one after the other, as in the log. */
static void decode_all(const char *bytes, size_t size)
{
    struct vg_rec *r;
    for (size_t at = 0, used; at < size; at += used) {
        if (vg_rec_decode(vg_slice(bytes + at, size - at), &used, &r) < 0)
            return;
        must(used >= VG_REC_ENCODED_HEAD && used <= size - at && vg_rec_key(r).n > 0);
        check_round_trip(r, bytes + at, used);
        vg_rec_unref(r);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = vg_malloc(size); /* exact size: ASan sees one byte too far */
    if (!copy)
        return 0;
    if (size)
        memcpy(copy, data, size);
    decode_all(copy, size);
    fix_checksum(copy, size);
    decode_all(copy, size);
    vg_free(copy);
    return 0;
}
