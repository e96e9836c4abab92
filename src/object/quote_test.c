/* quote_test.c - values are quoted as Go quotes them. */
#include "test_support.h"

#include <errno.h>

#include "base/utf8.h"
#include "quote.h"

struct row {
    struct vg_slice in;
    const char *out;
};
#define ROW(in, out)                                                                               \
    {                                                                                              \
        VG_SLICE_LIT(in), out                                                                      \
    }

static void values_are_quoted_as_go_does(void **state)
{
    (void)state;
    static const struct row rows[] = {
        ROW("", "\"\""),
        ROW("plain-Text_1.2 ~", "\"plain-Text_1.2 ~\""),
        ROW("say \"hi\"", "\"say \\\"hi\\\"\""),
        ROW("back\\slash", "\"back\\\\slash\""),
        ROW("\a\b\f\n\r\t\v", "\"\\a\\b\\f\\n\\r\\t\\v\""),
        ROW("\0\x01\x1f\x7f", "\"\\x00\\x01\\x1f\\x7f\""),
        ROW("\xff\xc3", "\"\\xff\\xc3\""),
        ROW("\xed\xa0\x80", "\"\\xed\\xa0\\x80\""), /* a surrogate is three bad bytes */
        ROW("\xc3\xa9\xed\x95\xa8", "\"\xc3\xa9\xed\x95\xa8\""),
        ROW("\xef\xbf\xbd", "\"\xef\xbf\xbd\""),
        ROW("\xc2\xa0", "\"\\u00a0\""), /* no-break space */
        ROW("\xc2\xad", "\"\\u00ad\""), /* soft hyphen */
        ROW("\xe2\x80\xa8", "\"\\u2028\""),
        ROW("\xee\x80\x80", "\"\\ue000\""), /* private use */
        ROW("\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\""),
        ROW("\xf0\x9f\x9b\x9c", "\"\xf0\x9f\x9b\x9c\""), /* new in Unicode 15 */
        ROW("\xf4\x8f\xbf\xbf", "\"\\U0010ffff\""),
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        VG_AUTO(buf) b = {0};
        assert_int_equal(vg_quote_append(&b, rows[i].in), 0);
        vg_assert_slice_equal(vg_buf_slice(&b), vg_slice_str(rows[i].out));
        assert_true(vg_utf8_is_valid(vg_buf_slice(&b)));
        assert_true(b.n <= 4 * rows[i].in.n + 2);
    }
}

static void running_out_of_memory_is_told(void **state)
{
    (void)state;
    VG_ALLOC_FAIL_LOOP (n) {
        VG_AUTO(buf) b = {0};
        int r = vg_quote_append(&b, VG_SLICE_LIT("a\nb\xff"));
        if (vg_test_alloc_failed())
            assert_int_equal(r, -ENOMEM);
        else
            assert_int_equal(r, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_quoted_as_go_does),
        cmocka_unit_test(running_out_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
