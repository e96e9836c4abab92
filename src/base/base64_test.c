/* base64_test.c - texts both ways, and what is no base64. */
#include "test_support.h"

#include <errno.h>

#include "base64.h"
#include "rng.h"

static const char *const pairs[][2] = {{"", ""},
                                       {"f", "Zg=="},
                                       {"fo", "Zm8="},
                                       {"foo", "Zm9v"},
                                       {"foob", "Zm9vYg=="},
                                       {"fooba", "Zm9vYmE="},
                                       {"foobar", "Zm9vYmFy"},
                                       {"\xff\xef\xbe", "/+++"}};

static void texts_are_those_of_the_rfc(void **state)
{
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(pairs); i++) {
        VG_AUTO(buf) out = {0};
        assert_int_equal(vg_base64_append(&out, vg_slice_str(pairs[i][0])), 0);
        vg_assert_slice_equal(vg_buf_slice(&out), vg_slice_str(pairs[i][1]));
        char back[16];
        size_t n;
        assert_true(vg_base64_decode(vg_slice_str(pairs[i][1]), back, &n));
        vg_assert_slice_equal(vg_slice(back, n), vg_slice_str(pairs[i][0]));
    }
}

static void what_is_no_base64_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"Z",        "Zg",         "Zg=",   "Zg=a",
                                      "====",     "Z===",       "Zm9v=", "Zm 9v",
                                      "Zg==Zg==", "Zm9v\nZm9v", "Zm9-",  "\xff\xff\xff\xff"};
    for (size_t i = 0; i < VG_ARRAY_LEN(bad); i++) {
        char out[16];
        size_t n;
        assert_false(vg_base64_decode(vg_slice_str(bad[i]), out, &n));
    }
}

static void line_breaks_may_be_anywhere(void **state)
{
    (void)state;
    static const char text[] = "\nZ\r\nm9v\nY\nmE=\r\n";
    char out[sizeof text];
    size_t n;
    assert_true(vg_base64_decode_lines(vg_slice_str(text), out, &n));
    vg_assert_slice_equal(vg_slice(out, n), VG_SLICE_LIT("fooba"));
    assert_false(vg_base64_decode_lines(VG_SLICE_LIT("Zm9 v"), out, &n));
    assert_true(vg_base64_decode_lines(VG_SLICE_LIT("\n"), out, &n));
    assert_int_equal(n, 0);
}

static void any_bytes_come_back(void **state)
{
    (void)state;
    struct vg_rng rng;
    vg_rng_seed(&rng, vg_test_seed());
    for (size_t len = 0; len < 100; len++) {
        char bytes[100], back[100];
        size_t n;
        VG_AUTO(buf) text = {0};
        vg_rng_bytes(&rng, bytes, sizeof bytes);
        assert_int_equal(vg_base64_append(&text, vg_slice(bytes, len)), 0);
        assert_true(vg_base64_decode(vg_buf_slice(&text), back, &n));
        vg_assert_slice_equal(vg_slice(back, n), vg_slice(bytes, len));
        char url[140], room[140];
        size_t n_url = vg_base64_url_encode(vg_slice(bytes, len), url);
        assert_null(memchr(url, '=', n_url));
        assert_null(memchr(url, '/', n_url));
        assert_true(vg_base64_url_decode(vg_slice(url, n_url), room, &n));
        vg_assert_slice_equal(vg_slice(room, n), vg_slice(bytes, len));
    }
}

static void what_is_no_base64url_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"a", "ab+d", "ab/d", "YQ==", "Y=", "ab\ncd", "abcde"};
    char room[16];
    size_t n;
    for (size_t i = 0; i < VG_ARRAY_LEN(texts); i++)
        assert_false(vg_base64_url_decode(vg_slice_str(texts[i]), room, &n));
    assert_true(vg_base64_url_decode(VG_SLICE_LIT("-_-_"), room, &n));
    assert_int_equal(n, 3);
}

static void running_out_of_memory_is_told(void **state)
{
    (void)state;
    VG_ALLOC_FAIL_LOOP (n) {
        VG_AUTO(buf) out = {0};
        int r = vg_base64_append(&out, VG_SLICE_LIT("some bytes"));
        assert_int_equal(r, vg_test_alloc_failed() ? -ENOMEM : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_those_of_the_rfc),
        cmocka_unit_test(what_is_no_base64_is_refused),
        cmocka_unit_test(line_breaks_may_be_anywhere),
        cmocka_unit_test(any_bytes_come_back),
        cmocka_unit_test(what_is_no_base64url_is_refused),
        cmocka_unit_test(running_out_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
