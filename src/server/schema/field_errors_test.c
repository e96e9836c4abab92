/* field_errors_test.c - a body can make a million errors, or few that show all of it: neither may
 * take more memory than a Status is allowed to. */
#include "field_errors.h"

#include "base/alloc.h"
#include "test_support.h"

static void takes_no_more_than_a_person_reads(void **state)
{
    (void)state;
    struct vg_arena a;
    vg_arena_init(&a, 0, 0);
    struct vg_field_errors e = {.arena = &a};
    for (size_t i = 0; i < 1000; i++)
        vg_field_required(&e, "spec", "item %zu", i);
    assert_true(vg_field_errors_is_full(&e));
    assert_false(e.failed);
    assert_int_equal(e.n, 256);
    size_t used = a.used;
    vg_field_duplicate(&e, "spec", VG_SLICE_LIT("\"a\""));
    assert_int_equal(e.n, 256);
    assert_int_equal(a.used, used);
    vg_arena_done(&a);
}

static void few_that_show_much_fill_it_too(void **state)
{
    (void)state;
    struct vg_arena a;
    vg_arena_init(&a, 0, 0);
    struct vg_field_errors e = {.arena = &a};
    size_t n = (size_t)3 << 20;
    char *text = vg_calloc(1, n);
    assert_non_null(text);
    memset(text, 'x', n);
    for (size_t i = 0; i < 100; i++)
        vg_field_invalid(&e, "spec", VG_SLICE_LIT("1"), "%.*s", (int)n, text);
    assert_true(vg_field_errors_is_full(&e));
    assert_false(e.failed);
    assert_int_equal(e.n, 2);
    assert_true(a.used < 8 * n);
    vg_free(text);
    vg_arena_done(&a);
}

static void a_long_value_is_not_shown(void **state)
{
    (void)state;
    struct vg_arena a;
    vg_arena_init(&a, 0, 0);
    struct vg_field_errors e = {.arena = &a};
    size_t n = VG_FIELD_VALUE_MAX + 1;
    char *text = vg_calloc(1, n);
    assert_non_null(text);
    memset(text, '7', n);
    vg_field_invalid(&e, "spec", vg_slice(text, n - 1), "must be less");
    vg_field_invalid(&e, "spec", vg_slice(text, n), "must be less");
    assert_int_equal(e.n, 2);
    assert_true(e.v[0].message.n > n);
    vg_assert_slice_equal(e.v[1].message, VG_SLICE_LIT("Invalid value: \"...\": must be less"));
    vg_free(text);
    vg_arena_done(&a);
}

/* What is forgiven leaves as much room as there was: or what comes after it would pass unseen. */
static void what_is_cut_makes_room(void **state)
{
    (void)state;
    struct vg_arena a;
    vg_arena_init(&a, 0, 0);
    struct vg_field_errors e = {.arena = &a};
    size_t n = (size_t)3 << 20;
    char *text = vg_calloc(1, n);
    assert_non_null(text);
    memset(text, 'x', n);
    vg_field_required(&e, "metadata.name", "%s", "");
    for (size_t i = 0; i < 3; i++)
        vg_field_invalid(&e, "spec", VG_SLICE_LIT("1"), "%.*s", (int)n, text);
    assert_true(vg_field_errors_is_full(&e));
    vg_field_errors_cut(&e, 1);
    assert_false(vg_field_errors_is_full(&e));
    vg_field_required(&e, "spec.name", "%s", "");
    assert_int_equal(e.n, 2);
    vg_free(text);
    vg_arena_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_no_more_than_a_person_reads),
        cmocka_unit_test(few_that_show_much_fill_it_too),
        cmocka_unit_test(a_long_value_is_not_shown),
        cmocka_unit_test(what_is_cut_makes_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
