/* decode_test.c - what two threads decode together is what one would have decoded, in its order. */
#include "test_support.h"

#include <errno.h>
#include <stdio.h>

#include "decode.h"

#define MANY 700

struct load {
    struct vg_decoder decoder;
    struct vg_decode_item items[MANY];
    char *bytes[MANY];
};

static char *encode_one(size_t i, size_t *ret_n)
{
    char key[32];
    struct vg_rec *rec = NULL;
    int n = snprintf(key, sizeof key, "/key/%zu", i);
    assert_int_equal(vg_rec_new(VG_REC_PUT, vg_slice(key, (size_t)n), VG_SLICE_LIT("head"),
                                VG_SLICE_LIT("a value that is some bytes long"), &rec),
                     0);
    rec->rev = i + 2;
    *ret_n = vg_rec_encoded_size(rec);
    char *bytes = vg_malloc(*ret_n);
    assert_non_null(bytes);
    vg_rec_encode(rec, bytes);
    vg_rec_unref(rec);
    return bytes;
}

static void fill(struct load *l, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t len;
        l->bytes[i] = encode_one(i, &len);
        l->items[i] = (struct vg_decode_item){.in = vg_slice(l->bytes[i], len)};
    }
}

static void drop(struct load *l, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        l->items[i].rec = vg_rec_unref(l->items[i].rec);
        vg_free(l->bytes[i]);
    }
}

static int decode_all(struct load *l, size_t n, size_t *ret_failed)
{
    vg_decode_begin(&l->decoder, l->items);
    for (size_t i = VG_DECODE_OFFER; i <= n; i += VG_DECODE_OFFER)
        vg_decode_offer(&l->decoder, i);
    return vg_decode_finish(&l->decoder, n, ret_failed);
}

static int setup(void **state)
{
    struct load *l = vg_new(struct load);
    if (!l)
        return -1;
    vg_decoder_init(&l->decoder);
    *state = l;
    return 0;
}

static int teardown(void **state)
{
    struct load *l = *state;
    vg_decoder_done(&l->decoder);
    vg_free(l);
    return 0;
}

static void few_and_many_are_decoded_in_order(void **state)
{
    struct load *l = *state;
    static const size_t sizes[] = {0, 1, 63, 64, 65, MANY, 3, MANY, MANY};
    for (size_t s = 0; s < VG_ARRAY_LEN(sizes); s++) {
        size_t failed = 0;
        fill(l, sizes[s]);
        assert_int_equal(decode_all(l, sizes[s], &failed), 0);
        for (size_t i = 0; i < sizes[s]; i++)
            assert_int_equal(l->items[i].rec->rev, i + 2);
        drop(l, sizes[s]);
    }
}

static void the_first_damaged_one_is_told_and_the_rest_is_there(void **state)
{
    struct load *l = *state;
    static const size_t bad[] = {17, 300, 699};
    size_t failed = 0;
    fill(l, MANY);
    for (size_t i = 0; i < VG_ARRAY_LEN(bad); i++)
        l->bytes[bad[i]][90] ^= 1;
    assert_int_equal(decode_all(l, MANY, &failed), VIGIL_E_STORE_DAMAGED);
    assert_int_equal(failed, 17);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(!l->items[i].rec, i == 17 || i == 300 || i == 699);
    drop(l, MANY);
}

static void bytes_behind_a_record_are_damage(void **state)
{
    struct load *l = *state;
    size_t failed = 0, len;
    char *one = encode_one(1, &len), *longer = vg_malloc(len + 1);
    assert_non_null(longer);
    memcpy(longer, one, len);
    longer[len] = 0;
    l->items[0] = (struct vg_decode_item){.in = vg_slice(longer, len + 1)};
    assert_int_equal(decode_all(l, 1, &failed), VIGIL_E_STORE_DAMAGED);
    assert_null(l->items[0].rec);
    vg_free(one);
    vg_free(longer);
}

static void what_is_there_already_is_left(void **state)
{
    struct load *l = *state;
    size_t failed = 0;
    fill(l, MANY);
    struct vg_rec *mine = NULL;
    assert_int_equal(
        vg_rec_new(VG_REC_DELETE, VG_SLICE_LIT("k"), vg_slice(NULL, 0), vg_slice(NULL, 0), &mine),
        0);
    l->items[5] = (struct vg_decode_item){.rec = mine};
    assert_int_equal(decode_all(l, MANY, &failed), 0);
    assert_ptr_equal(l->items[5].rec, mine);
    drop(l, MANY);
}

static void no_memory_is_told(void **state)
{
    struct load *l = *state;
    fill(l, MANY);
    size_t failed = 0, left = 0;
    vg_alloc_fail_at(100, 1);
    int r = decode_all(l, MANY, &failed);
    vg_alloc_fail_at(0, 0);
    assert_int_equal(r, -ENOMEM);
    for (size_t i = 0; i < MANY; i++)
        left += !l->items[i].rec;
    assert_int_equal(left, 1);
    assert_null(l->items[failed].rec);
    drop(l, MANY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(few_and_many_are_decoded_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(the_first_damaged_one_is_told_and_the_rest_is_there, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(bytes_behind_a_record_are_damage, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_there_already_is_left, setup, teardown),
        cmocka_unit_test_setup_teardown(no_memory_is_told, setup, teardown),
    };
    return cmocka_run_group_tests_name("decode", tests, NULL, NULL);
}
