/* hash_test.c - it is SipHash-1-3, and its key matters. */
#include "test_support.h"

#include "hash.h"

/* SipHash-1-3 with a zero key, as CPython 3.11 computes it with PYTHONHASHSEED=0. */
static void the_hash_is_siphash_1_3(void **state)
{
    (void)state;
    const struct vg_hash_key zero = {{0, 0}};
    assert_int_equal(vg_hash(&zero, VG_SLICE_LIT("a")), UINT64_C(0x407448d2b89b1813));
    assert_int_equal(vg_hash(&zero, VG_SLICE_LIT("abcdefg")), UINT64_C(0x6db12aae9070f506));
    assert_int_equal(vg_hash(&zero, VG_SLICE_LIT("abcdefgh")), UINT64_C(0x3f7b849c0b8e35ea));
    assert_int_equal(vg_hash(&zero, VG_SLICE_LIT("the quick brown fox jumps over")),
                     UINT64_C(0xad7dbf39b6f5e689));
}

/* The first vector of the reference implementation: key 00 01 .. 0f, no input. */
static void the_hash_uses_its_key(void **state)
{
    (void)state;
    const struct vg_hash_key key = {{UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)}};
    assert_int_equal(vg_hash(&key, vg_slice(NULL, 0)), UINT64_C(0xabac0158050fc4dc));
}

static void hash_keys_differ_from_call_to_call(void **state)
{
    (void)state;
    struct vg_hash_key a, b;
    assert_int_equal(vg_hash_key_make(&a), 0);
    assert_int_equal(vg_hash_key_make(&b), 0);
    assert_memory_not_equal(&a, &b, sizeof a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hash_is_siphash_1_3),
        cmocka_unit_test(the_hash_uses_its_key),
        cmocka_unit_test(hash_keys_differ_from_call_to_call),
    };
    return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
