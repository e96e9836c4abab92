/* record_test.c - a record survives its encoded form, and no damage to that form goes unnoticed. */
#include "test_support.h"

#include <errno.h>

#include "base/crc32c.h"
#include "record.h"

/* A record in which every field has a value of its own. */
static struct vg_rec *sample(enum vg_rec_op op)
{
    struct vg_rec *r = NULL;
    assert_int_equal(vg_rec_new(op, vg_slice("k\0ey\xff", 5), VG_SLICE_LIT("head"),
                                VG_SLICE_LIT("some value"), &r),
                     0);
    r->sub = 0x01020304;
    r->prev_sub = 0x11121314;
    r->rev = 0x2122232425262728;
    r->create_rev = 0x3132333435363738;
    r->prev_rev = 0x4142434445464748;
    r->version = 0x5152535455565758;
    r->time_ms = -0x6162636465666768;
    r->expires_ms = 0x7172737475767778;
    return r;
}

/* Bytes of their exact size on the heap, so that ASan sees a read too far. */
static char *encoded(const struct vg_rec *r)
{
    char *bytes = vg_malloc(vg_rec_encoded_size(r));
    assert_non_null(bytes);
    vg_rec_encode(r, bytes);
    return bytes;
}

static void assert_same(const struct vg_rec *a, const struct vg_rec *b)
{
    assert_int_equal(a->op, b->op);
    assert_int_equal(a->sub, b->sub);
    assert_int_equal(a->prev_sub, b->prev_sub);
    assert_int_equal(a->rev, b->rev);
    assert_int_equal(a->create_rev, b->create_rev);
    assert_int_equal(a->prev_rev, b->prev_rev);
    assert_int_equal(a->version, b->version);
    assert_int_equal(a->time_ms, b->time_ms);
    assert_int_equal(a->expires_ms, b->expires_ms);
    vg_assert_slice_equal(vg_rec_key(a), vg_rec_key(b));
    vg_assert_slice_equal(vg_rec_header(a), vg_rec_header(b));
    vg_assert_slice_equal(vg_rec_value(a), vg_rec_value(b));
}

static int try_decode(const char *bytes, size_t n)
{
    size_t used = 0;
    struct vg_rec *r = NULL;
    int err = vg_rec_decode(vg_slice(bytes, n), &used, &r);
    if (err < 0)
        assert_null(r);
    vg_rec_unref(r);
    return err;
}

/* Give changed bytes a checksum that fits, to get past it. */
static void reseal(char *bytes, size_t n)
{
    uint32_t crc = vg_crc32c(0, bytes + 4, n - 4);
    for (int i = 0; i < 4; i++)
        bytes[i] = (char)(crc >> (8 * i));
}

static void a_new_record_holds_copies_of_key_header_and_value(void **state)
{
    (void)state;
    char key[] = "key", value[] = "value";
    struct vg_rec *r;
    assert_int_equal(
        vg_rec_new(VG_REC_PUT, vg_slice_str(key), vg_slice(NULL, 0), vg_slice_str(value), &r), 0);
    key[0] = value[0] = 'x';
    vg_assert_slice_equal(vg_rec_key(r), VG_SLICE_LIT("key"));
    assert_int_equal(vg_rec_header(r).n, 0);
    vg_assert_slice_equal(vg_rec_value(r), VG_SLICE_LIT("value"));
    assert_false(vg_rec_is_delete(r));
    assert_int_equal(vg_rec_size(r), sizeof *r + 8);
    assert_null(vg_rec_unref(r));
}

static void lengths_that_cannot_be_represented_are_refused(void **state)
{
    (void)state;
    struct vg_slice none = vg_slice(NULL, 0), huge = vg_slice("", (size_t)UINT32_MAX + 1);
    struct vg_slice long_key = vg_slice("", (size_t)UINT16_MAX + 1);
    struct vg_rec *r = NULL;
    assert_int_equal(vg_rec_new(VG_REC_PUT, none, none, none, &r), VIGIL_E_KEY_INVALID);
    assert_int_equal(vg_rec_new(VG_REC_PUT, long_key, none, none, &r), VIGIL_E_KEY_INVALID);
    struct vg_slice key = VG_SLICE_LIT("k");
    assert_int_equal(vg_rec_new(VG_REC_PUT, key, huge, none, &r), VIGIL_E_VALUE_TOO_LARGE);
    assert_int_equal(vg_rec_new(VG_REC_PUT, key, none, huge, &r), VIGIL_E_VALUE_TOO_LARGE);
    assert_null(r);
}

static void references_keep_a_record_until_the_last_one_goes(void **state)
{
    (void)state;
    struct vg_rec *r = sample(VG_REC_PUT);
    assert_ptr_equal(vg_rec_ref(r), r);
    assert_null(vg_rec_unref(r));
    vg_assert_slice_equal(vg_rec_value(r), VG_SLICE_LIT("some value"));
    assert_null(vg_rec_unref(r)); /* ASan's leak check does the rest */
    assert_null(vg_rec_unref(NULL));
}

static void what_was_encoded_decodes_to_the_same(void **state)
{
    (void)state;
    for (int op = VG_REC_PUT; op <= VG_REC_DELETE; op++) {
        struct vg_rec *r = sample((enum vg_rec_op)op), *back = NULL;
        char *bytes = encoded(r);
        size_t used = 0;
        assert_int_equal(vg_rec_decode(vg_slice(bytes, vg_rec_encoded_size(r)), &used, &back), 0);
        assert_int_equal(used, vg_rec_encoded_size(r));
        assert_same(r, back);
        assert_int_equal(atomic_load(&back->refs), 1);
        vg_rec_unref(r);
        vg_rec_unref(back);
        vg_free(bytes);
    }
}

static void a_record_without_header_and_value_decodes(void **state)
{
    (void)state;
    struct vg_slice none = vg_slice(NULL, 0);
    struct vg_rec *r, *back = NULL;
    assert_int_equal(vg_rec_new(VG_REC_DELETE, VG_SLICE_LIT("k"), none, none, &r), 0);
    char *bytes = encoded(r);
    size_t used;
    assert_int_equal(vg_rec_decode(vg_slice(bytes, vg_rec_encoded_size(r)), &used, &back), 0);
    assert_same(r, back);
    vg_rec_unref(r);
    vg_rec_unref(back);
    vg_free(bytes);
}

static void bytes_after_a_record_are_left_alone(void **state)
{
    (void)state;
    struct vg_rec *r = sample(VG_REC_PUT), *back = NULL;
    size_t size = vg_rec_encoded_size(r), used = 0;
    char *bytes = vg_malloc(size + 7);
    assert_non_null(bytes);
    vg_rec_encode(r, bytes);
    memset(bytes + size, 0xee, 7);
    assert_int_equal(vg_rec_decode(vg_slice(bytes, size + 7), &used, &back), 0);
    assert_int_equal(used, size);
    assert_same(r, back);
    vg_rec_unref(r);
    vg_rec_unref(back);
    vg_free(bytes);
}

static void every_single_bit_flip_is_detected(void **state)
{
    (void)state;
    struct vg_rec *r = sample(VG_REC_PUT);
    size_t size = vg_rec_encoded_size(r);
    char *bytes = encoded(r);
    for (size_t bit = 0; bit < size * 8; bit++) {
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
        if (try_decode(bytes, size) != VIGIL_E_STORE_DAMAGED)
            fail_msg("bit %zu flipped and nobody noticed", bit);
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
    }
    assert_int_equal(try_decode(bytes, size), 0);
    vg_rec_unref(r);
    vg_free(bytes);
}

static void every_truncation_is_detected(void **state)
{
    (void)state;
    struct vg_rec *r = sample(VG_REC_PUT);
    char *bytes = encoded(r);
    for (size_t n = 0; n < vg_rec_encoded_size(r); n++) {
        char *cut = vg_malloc(n);
        assert_non_null(cut);
        memcpy(cut, bytes, n);
        if (try_decode(cut, n) != VIGIL_E_STORE_DAMAGED)
            fail_msg("cut off after %zu bytes and nobody noticed", n);
        vg_free(cut);
    }
    vg_rec_unref(r);
    vg_free(bytes);
}

/* Offsets are those of the encoded head in record.c. */
static void a_field_that_cannot_be_is_damage_even_with_a_right_checksum(void **state)
{
    (void)state;
    static const struct {
        size_t offset;
        char value;
    } cases[] = {
        {7, 0x7f}, {11, 0x7f}, /* header and value longer than all there is */
        {14, 0},   {14, 3},    /* op */
        {15, 1},               /* zero */
        {72, 1},   {79, 1},    /* reserved */
    };
    struct vg_rec *r = sample(VG_REC_PUT);
    size_t size = vg_rec_encoded_size(r);
    for (size_t i = 0; i < VG_ARRAY_LEN(cases); i++) {
        char *bytes = encoded(r);
        bytes[cases[i].offset] = cases[i].value;
        reseal(bytes, size);
        if (try_decode(bytes, size) != VIGIL_E_STORE_DAMAGED)
            fail_msg("byte %zu was %d and nobody noticed", cases[i].offset, cases[i].value);
        vg_free(bytes);
    }
    vg_rec_unref(r);
}

static void an_empty_key_is_damage_even_with_a_right_checksum(void **state)
{
    (void)state;
    char bytes[VG_REC_ENCODED_HEAD] = {[14] = VG_REC_PUT};
    reseal(bytes, sizeof bytes);
    assert_int_equal(try_decode(bytes, sizeof bytes), VIGIL_E_STORE_DAMAGED);
}

static void lack_of_memory_is_reported_and_nothing_leaks(void **state)
{
    (void)state;
    struct vg_rec *r = sample(VG_REC_PUT);
    char *bytes = encoded(r);
    VG_ALLOC_FAIL_LOOP (n) {
        struct vg_rec *made = NULL, *back = NULL;
        size_t used;
        int err =
            vg_rec_new(VG_REC_PUT, VG_SLICE_LIT("k"), vg_slice(NULL, 0), VG_SLICE_LIT("v"), &made);
        if (err == 0)
            err = vg_rec_decode(vg_slice(bytes, vg_rec_encoded_size(r)), &used, &back);
        assert_int_equal(err, vg_test_alloc_failed() ? -ENOMEM : 0);
        vg_rec_unref(made);
        vg_rec_unref(back);
    }
    vg_rec_unref(r);
    vg_free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_record_holds_copies_of_key_header_and_value),
        cmocka_unit_test(lengths_that_cannot_be_represented_are_refused),
        cmocka_unit_test(references_keep_a_record_until_the_last_one_goes),
        cmocka_unit_test(what_was_encoded_decodes_to_the_same),
        cmocka_unit_test(a_record_without_header_and_value_decodes),
        cmocka_unit_test(bytes_after_a_record_are_left_alone),
        cmocka_unit_test(every_single_bit_flip_is_detected),
        cmocka_unit_test(every_truncation_is_detected),
        cmocka_unit_test(a_field_that_cannot_be_is_damage_even_with_a_right_checksum),
        cmocka_unit_test(an_empty_key_is_damage_even_with_a_right_checksum),
        cmocka_unit_test(lack_of_memory_is_reported_and_nothing_leaks),
    };
    return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
