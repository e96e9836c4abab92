/* table_test.c - how tables are laid out. */
#include "test_support.h"

#include <errno.h>
#include <locale.h>

#include "table.h"

static void assert_line(const struct vg_table *t, size_t row, unsigned limit, const char *want)
{
    VG_AUTO(buf) out = {0};
    assert_int_equal(vg_table_line(t, row, limit, &out), 0);
    vg_assert_slice_equal(vg_buf_slice(&out), vg_slice_str(want));
}

static void put_row(struct vg_table *t, const char *a, const char *b, const char *c)
{
    vg_table_put_str(t, a);
    vg_table_put_str(t, b);
    vg_table_put_str(t, c);
}

static void columns_are_as_wide_as_their_widest_cell(void **state)
{
    struct vg_table t;
    (void)state;
    vg_table_init(&t, 3);
    put_row(&t, "NAME", "STATUS", "AGE");
    put_row(&t, "a-long-name", "x", "5s");
    assert_int_equal(t.err, 0);
    assert_int_equal(vg_table_rows(&t), 2);
    assert_line(&t, 0, 0, "NAME          STATUS   AGE");
    assert_line(&t, 1, 0, "a-long-name   x        5s");
    vg_table_done(&t);
}

static void nothing_follows_the_last_text(void **state)
{
    struct vg_table t;
    (void)state;
    vg_table_init(&t, 3);
    put_row(&t, "wide", "wide", "wide");
    put_row(&t, "a", "", "");
    put_row(&t, "", "", "c");
    put_row(&t, "", "", "");
    assert_line(&t, 1, 0, "a");
    assert_line(&t, 2, 0, "              c");
    assert_line(&t, 3, 0, "");
    vg_table_done(&t);
}

static void lines_are_cut_by_characters(void **state)
{
    struct vg_table t;
    (void)state;
    vg_table_init(&t, 3);
    put_row(&t, "\xc3\xa4\xc3\xb6\xc3\xbc", "bcd", "e");
    assert_line(&t, 0, 0, "\xc3\xa4\xc3\xb6\xc3\xbc   bcd   e");
    assert_line(&t, 0, 2, "\xc3\xa4\xc3\xb6");
    assert_line(&t, 0, 4, "\xc3\xa4\xc3\xb6\xc3\xbc");
    assert_line(&t, 0, 6, "\xc3\xa4\xc3\xb6\xc3\xbc");
    assert_line(&t, 0, 7, "\xc3\xa4\xc3\xb6\xc3\xbc   b");
    vg_table_done(&t);
}

static void what_controls_a_terminal_is_not_let_through(void **state)
{
    struct vg_table t;
    (void)state;
    vg_table_init(&t, 3);
    put_row(&t, "a\x1b[2Jb\n",
            "\xc2\x9b"
            "1m\xe2\x80\xae",
            "\xff\xc3");
    assert_line(&t, 0, 0, "a?[2Jb?   ?1m?   ??");
    vg_table_done(&t);
}

/* Three ideographs, an e with a combining accent, and a wide emoji. */
static void wide_characters_take_two_places(void **state)
{
    struct vg_table t;
    (void)state;
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        skip();
    vg_table_init(&t, 3);
    put_row(&t, "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", "x", "y");
    put_row(&t, "e\xcc\x81", "\xf0\x9f\x90\xb3", "z");
    assert_line(&t, 0, 0, "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e   x    y");
    assert_line(&t, 1, 0, "e\xcc\x81        \xf0\x9f\x90\xb3   z");
    assert_line(&t, 0, 5, "\xe6\x97\xa5\xe6\x9c\xac"); /* half a character is none */
    assert_line(&t, 0, 6, "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e");
    vg_table_done(&t);
}

static void widths_stay_when_a_table_is_drawn_anew(void **state)
{
    struct vg_table t;
    (void)state;
    vg_table_init(&t, 3);
    put_row(&t, "wide", "b", "c");
    vg_table_clear(&t);
    assert_int_equal(vg_table_rows(&t), 0);
    put_row(&t, "a", "b", "c");
    assert_line(&t, 0, 0, "a      b   c");
    vg_table_done(&t);
}

static void memory_that_runs_out_is_told(void **state)
{
    (void)state;
    VG_ALLOC_FAIL_LOOP (n) {
        struct vg_table t;
        vg_table_init(&t, 3);
        for (int i = 0; i < 100; i++)
            put_row(&t, "one", "two", "three");
        bool failed = vg_test_alloc_failed();
        assert_int_equal(t.err, failed ? -ENOMEM : 0);
        assert_true(failed || vg_table_rows(&t) == 100);
        vg_table_done(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_as_wide_as_their_widest_cell),
        cmocka_unit_test(nothing_follows_the_last_text),
        cmocka_unit_test(lines_are_cut_by_characters),
        cmocka_unit_test(what_controls_a_terminal_is_not_let_through),
        cmocka_unit_test(wide_characters_take_two_places),
        cmocka_unit_test(widths_stay_when_a_table_is_drawn_anew),
        cmocka_unit_test(memory_that_runs_out_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
