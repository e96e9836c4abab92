/* compact_test.c - what is told to be compact is what we would write, and the usual is told so. */
#include "compact.h"

#include "base/rng.h"
#include "doc_testing.h"
#include "test_support.h"
#include "write.h"

static bool is_compact(const char *text)
{
    return vg_json_is_compact(vg_slice_str(text));
}

static void the_usual_is_compact(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}",
        "[]",
        "\"a b\"",
        "{\"a\":[1,-2.5e3,true,null,\"x y\"],\"b\":{\"c\":\"d\"}}",
        "\"line\\nbreak \\\"quoted\\\" \\\\ \\t\"",
        "{\"a key that is longer than a block\":\"a text \\\" of several\"}"};
    for (size_t i = 0; i < VG_ARRAY_LEN(texts); i++)
        assert_true(is_compact(texts[i]));
}

static void what_we_write_otherwise_is_not(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{ }",   "[1, 2]",  "{\"a\": 1}",  "{\"a\":1}\n",  "\"<\"",           "\"a>\"",
        "\"&\"", "\"\\/\"", "\"\\u0041\"", "\"\xc3\xa9\"", "\"\\\\\\u0041\"", "[\"\\\\\", 1]"};
    for (size_t i = 0; i < VG_ARRAY_LEN(texts); i++)
        assert_false(is_compact(texts[i]));
}

/* Random texts from pieces that matter, at all places of a block. */
static void never_wrong(void **state)
{
    (void)state;
    static const char *const pieces[] = {"a", " ",        "\\\"",    "\\\\", "\\n",
                                         "<", "\xc3\xa9", "\\u0041", "bc",   "\\/",
                                         "{", "]",        ":",       ",",    "0123456789"};
    struct vg_rng rng;
    size_t told = 0;
    vg_rng_seed(&rng, vg_test_seed());
    for (int round = 0; round < 20000; round++) {
        VG_AUTO(arena) arena;
        VG_AUTO(buf) text = {0};
        VG_AUTO(buf) out = {0};
        struct vg_json *root;
        vg_arena_init(&arena, 0, 0);
        bool is_loose = vg_rng_below(&rng, 4) == 0;
        assert_int_equal(vg_buf_printf(&text, "[\"x\"%s,\"", is_loose ? " " : ""), 0);
        for (uint64_t n = vg_rng_below(&rng, 40); n; n--) {
            const char *piece = pieces[vg_rng_below(&rng, round % 2 ? 5 : VG_ARRAY_LEN(pieces))];
            assert_int_equal(vg_buf_append(&text, piece, strlen(piece)), 0);
        }
        assert_int_equal(vg_buf_printf(&text, "\",1]"), 0);
        assert_int_equal(vg_json_parse(&arena, vg_buf_slice(&text), NULL, &root, NULL), 0);
        assert_int_equal(vg_json_write(&out, root, VG_JSON_ESCAPE_HTML), 0);
        if (!vg_json_is_compact(vg_buf_slice(&text)))
            continue;
        told++;
        vg_assert_slice_equal(vg_buf_slice(&text), vg_buf_slice(&out));
    }
    assert_true(told > 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_usual_is_compact),
        cmocka_unit_test(what_we_write_otherwise_is_not),
        cmocka_unit_test(never_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
