/* crc32c_test.c - known sums, and that the fast way and the slow one agree. */
#include "test_support.h"

#include <string.h>

#include "crc32c.h"
#include "rng.h"

typedef uint32_t crc_fn(uint32_t seed, const void *p, size_t n);

/* RFC 3720, appendix B.4; the last is the check value of the CRC catalogues. */
static void check_vectors(crc_fn *crc)
{
    unsigned char bytes[32];
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(crc(0, bytes, 32), 0x8A9136AA);
    memset(bytes, 0xFF, sizeof bytes);
    assert_int_equal(crc(0, bytes, 32), 0x62A8AB43);
    for (size_t i = 0; i < 32; i++)
        bytes[i] = (unsigned char)i;
    assert_int_equal(crc(0, bytes, 32), 0x46DD794E);
    for (size_t i = 0; i < 32; i++)
        bytes[i] = (unsigned char)(31 - i);
    assert_int_equal(crc(0, bytes, 32), 0x113FDB5C);
    assert_int_equal(crc(0, "123456789", 9), 0xE3069283);
}

static void check_scsi_command(crc_fn *crc)
{
    const unsigned char read_command[48] = {0x01, 0xC0, 0, 0,    0, 0,    0,    0, 0, 0,    0, 0, 0,
                                            0,    0,    0, 0x14, 0, 0,    0,    0, 0, 0x04, 0, 0, 0,
                                            0,    0x14, 0, 0,    0, 0x18, 0x28, 0, 0, 0,    0, 0, 0,
                                            0,    0x02, 0, 0,    0, 0,    0,    0, 0};
    assert_int_equal(crc(0, read_command, sizeof read_command), 0xD9963A56);
}

static void both_ways_give_the_vectors_of_rfc_3720(void **state)
{
    (void)state;
    check_vectors(vg_crc32c);
    check_vectors(vg_crc32c_portable);
    check_scsi_command(vg_crc32c);
    check_scsi_command(vg_crc32c_portable);
    if (!vg_crc32c_has_hardware())
        return;
    check_vectors(vg_crc32c_hardware);
    check_scsi_command(vg_crc32c_hardware);
}

static void nothing_added_changes_nothing(void **state)
{
    (void)state;
    assert_int_equal(vg_crc32c(0, NULL, 0), 0);
    assert_int_equal(vg_crc32c(0x12345678, "", 0), 0x12345678);
    assert_int_equal(vg_crc32c_portable(0x12345678, NULL, 0), 0x12345678);
}

static void parts_chain_to_the_whole_on_both_ways_at_any_alignment(void **state)
{
    (void)state;
    struct vg_rng r;
    vg_rng_seed(&r, vg_test_seed());
    static unsigned char bytes[70000];
    vg_rng_bytes(&r, bytes, sizeof bytes);
    for (int round = 0; round < 500; round++) {
        size_t at = vg_rng_below(&r, 64);
        size_t n = vg_rng_below(&r, round % 10 ? 600 : sizeof bytes - 64);
        size_t cut = vg_rng_below(&r, n + 1);
        uint32_t whole = vg_crc32c_portable(0, bytes + at, n);
        uint32_t head = vg_crc32c(0, bytes + at, cut);
        assert_int_equal(vg_crc32c(head, bytes + at + cut, n - cut), whole);
        assert_int_equal(vg_crc32c_portable(head, bytes + at + cut, n - cut), whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ways_give_the_vectors_of_rfc_3720),
        cmocka_unit_test(nothing_added_changes_nothing),
        cmocka_unit_test(parts_chain_to_the_whole_on_both_ways_at_any_alignment),
    };
    return cmocka_run_group_tests_name("crc32c", tests, NULL, NULL);
}
