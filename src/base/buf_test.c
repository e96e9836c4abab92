/* buf_test.c - appending, consuming, the cap, and failing memory of a buffer. */
#include "test_support.h"

#include <errno.h>
#include <string.h>

#include "buf.h"
#include "err.h"

static void appended_bytes_are_there_in_order(void **state)
{
    (void)state;
    VG_AUTO(buf) b = {0};
    assert_int_equal(vg_buf_append(&b, "abc", 3), 0);
    assert_int_equal(vg_buf_append_byte(&b, '-'), 0);
    assert_int_equal(vg_buf_append_slice(&b, VG_SLICE_LIT("def")), 0);
    assert_int_equal(vg_buf_append(&b, NULL, 0), 0);
    assert_int_equal(vg_buf_printf(&b, "%d%s", 42, "!"), 0);
    assert_int_equal(vg_buf_printf(&b, "%s", ""), 0);
    vg_assert_slice_equal(vg_buf_slice(&b), VG_SLICE_LIT("abc-def42!"));
}

static void an_empty_printf_on_an_empty_buffer_is_fine(void **state)
{
    (void)state;
    VG_AUTO(buf) b = {0};
    assert_int_equal(vg_buf_printf(&b, "%s", ""), 0);
    assert_int_equal(b.n, 0);
}

static void growth_keeps_what_is_there(void **state)
{
    (void)state;
    VG_AUTO(buf) b = {0};
    for (int i = 0; i < 100000; i++)
        assert_int_equal(vg_buf_append_byte(&b, (char)('a' + i % 26)), 0);
    assert_int_equal(b.n, 100000);
    for (size_t i = 0; i < b.n; i++)
        assert_int_equal(b.p[i], 'a' + i % 26);
}

static void a_full_buffer_takes_nothing_more_and_keeps_its_bytes(void **state)
{
    (void)state;
    VG_AUTO(buf) b;
    vg_buf_init(&b, 10);
    assert_int_equal(vg_buf_append(&b, "0123456", 7), 0);
    assert_int_equal(vg_buf_append(&b, "789A", 4), VIGIL_E_TOO_LARGE);
    assert_int_equal(vg_buf_printf(&b, "%d", 7890), VIGIL_E_TOO_LARGE);
    vg_assert_slice_equal(vg_buf_slice(&b), VG_SLICE_LIT("0123456"));
    assert_int_equal(vg_buf_printf(&b, "%d", 789), 0);
    vg_assert_slice_equal(vg_buf_slice(&b), VG_SLICE_LIT("0123456789"));
    assert_int_equal(vg_buf_append_byte(&b, 'x'), VIGIL_E_TOO_LARGE);
    assert_in_range(b.cap, 0, 10);
}

static void a_size_that_overflows_is_too_large(void **state)
{
    (void)state;
    VG_AUTO(buf) b;
    vg_buf_init(&b, SIZE_MAX);
    assert_int_equal(vg_buf_append_byte(&b, 'x'), 0);
    assert_int_equal(vg_buf_reserve(&b, SIZE_MAX), VIGIL_E_TOO_LARGE);
    assert_int_equal(vg_buf_reserve(&b, SIZE_MAX - 1), VIGIL_E_TOO_LARGE);
    vg_buf_done(&b);
    assert_int_equal(vg_buf_reserve(&b, SIZE_MAX), VIGIL_E_TOO_LARGE);
    vg_buf_init(&b, 0);
    assert_int_equal(vg_buf_reserve(&b, VG_BUF_MAX_DEFAULT + 1), VIGIL_E_TOO_LARGE);
}

static void reserved_room_is_room_for_that_many_bytes(void **state)
{
    (void)state;
    VG_AUTO(buf) b = {0};
    assert_int_equal(vg_buf_reserve(&b, 1000), 0);
    assert_true(b.cap - b.n >= 1000);
    vg_alloc_fail_at(1, 0);
    char text[1000];
    memset(text, 'r', sizeof text);
    assert_int_equal(vg_buf_append(&b, text, sizeof text), 0);
    vg_alloc_fail_at(0, 0);
}

static void consume_drops_from_the_front(void **state)
{
    (void)state;
    VG_AUTO(buf) b = {0};
    vg_buf_consume(&b, 0);
    assert_int_equal(vg_buf_append(&b, "abcdef", 6), 0);
    vg_buf_consume(&b, 2);
    vg_assert_slice_equal(vg_buf_slice(&b), VG_SLICE_LIT("cdef"));
    vg_buf_consume(&b, 4);
    assert_int_equal(b.n, 0);
}

static void done_leaves_a_usable_buffer_with_its_cap(void **state)
{
    (void)state;
    VG_AUTO(buf) b;
    vg_buf_init(&b, 8);
    assert_int_equal(vg_buf_append(&b, "abc", 3), 0);
    vg_buf_clear(&b);
    assert_int_equal(b.n, 0);
    vg_buf_done(&b);
    vg_buf_done(&b);
    assert_int_equal(vg_buf_append(&b, "12345678", 8), 0);
    assert_int_equal(vg_buf_append_byte(&b, '9'), VIGIL_E_TOO_LARGE);
}

static void an_append_that_finds_no_memory_changes_nothing(void **state)
{
    (void)state;
    char text[200];
    memset(text, 't', sizeof text);
    VG_ALLOC_FAIL_LOOP (n) {
        VG_AUTO(buf) b = {0};
        size_t before = 0;
        int r = vg_buf_append(&b, "start", 5);
        for (int i = 0; i < 10 && r == 0; i++) {
            before = b.n;
            r = vg_buf_append(&b, text, sizeof text);
        }
        if (vg_test_alloc_failed()) {
            assert_int_equal(r, -ENOMEM);
            assert_int_equal(b.n, before);
        } else {
            assert_int_equal(b.n, 5 + 10 * sizeof text);
        }
    }
}

static void slices_compare_as_unsigned_bytes_and_prefixes_first(void **state)
{
    (void)state;
    struct vg_slice none = {NULL, 0};
    assert_true(vg_slice_cmp(VG_SLICE_LIT("a"), VG_SLICE_LIT("b")) < 0);
    assert_true(vg_slice_cmp(VG_SLICE_LIT("\x7f"), VG_SLICE_LIT("\x80")) < 0);
    assert_true(vg_slice_cmp(VG_SLICE_LIT("ab"), VG_SLICE_LIT("a")) > 0);
    assert_int_equal(vg_slice_cmp(none, VG_SLICE_LIT("")), 0);
    assert_true(vg_slice_cmp(none, VG_SLICE_LIT("x")) < 0);
    assert_true(vg_slice_eq(none, VG_SLICE_LIT("")));
    assert_true(vg_slice_eq(VG_SLICE_LIT("x\0y"), vg_slice("x\0y", 3)));
    assert_false(vg_slice_eq(VG_SLICE_LIT("x\0y"), VG_SLICE_LIT("x\0z")));
    assert_true(vg_slice_has_prefix(vg_slice_str("abc"), VG_SLICE_LIT("ab")));
    assert_true(vg_slice_has_prefix(none, none));
    assert_false(vg_slice_has_prefix(VG_SLICE_LIT("ab"), VG_SLICE_LIT("abc")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appended_bytes_are_there_in_order),
        cmocka_unit_test(an_empty_printf_on_an_empty_buffer_is_fine),
        cmocka_unit_test(growth_keeps_what_is_there),
        cmocka_unit_test(a_full_buffer_takes_nothing_more_and_keeps_its_bytes),
        cmocka_unit_test(a_size_that_overflows_is_too_large),
        cmocka_unit_test(reserved_room_is_room_for_that_many_bytes),
        cmocka_unit_test(consume_drops_from_the_front),
        cmocka_unit_test(done_leaves_a_usable_buffer_with_its_cap),
        cmocka_unit_test(an_append_that_finds_no_memory_changes_nothing),
        cmocka_unit_test(slices_compare_as_unsigned_bytes_and_prefixes_first),
    };
    return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
