/* pointer_test.c - JSON pointers: RFC 6901's examples, escapes, and words for a miss. */
#include "test_support.h"

#include <errno.h>

#include "pointer.h"

struct fixture {
    struct vg_arena arena;
    struct vg_json *doc;
    struct vg_status status;
};

static struct fixture *fixture_of(void **state)
{
    return *state;
}

/* The document of RFC 6901, section 5. */
static const char rfc_doc[] = "{\"foo\": [\"bar\", \"baz\"], \"\": 0, \"a/b\": 1, \"c%d\": 2, "
                              "\"e^f\": 3, \"g|h\": 4, \"i\\\\j\": 5, \"k\\\"l\": 6, \" \": 7, "
                              "\"m~n\": 8}";

static int setup(void **state)
{
    struct fixture *f = vg_new(struct fixture);
    assert_non_null(f);
    assert_int_equal(vg_json_parse(&f->arena, VG_SLICE_LIT(rfc_doc), NULL, &f->doc, NULL), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    vg_arena_done(&f->arena);
    vg_free(f);
    return 0;
}

static int get_in(struct fixture *f, const struct vg_json *doc, const char *text, unsigned flags,
                  struct vg_json **ret)
{
    struct vg_json_pointer p;
    int r = vg_json_pointer_parse(&f->arena, vg_slice_str(text), &p, &f->status);
    return r < 0 ? r : vg_json_pointer_get(&p, doc, flags, ret, &f->status);
}

static struct vg_json *parse(struct fixture *f, const char *text)
{
    struct vg_json *v = NULL;
    assert_int_equal(vg_json_parse(&f->arena, vg_slice_str(text), NULL, &v, NULL), 0);
    return v;
}

static void the_examples_of_rfc_6901_evaluate(void **state)
{
    static const struct {
        const char *pointer, *number;
    } rows[] = {
        {"/", "0"},     {"/a~1b", "1"}, {"/c%d", "2"}, {"/e^f", "3"},  {"/g|h", "4"},
        {"/i\\j", "5"}, {"/k\"l", "6"}, {"/ ", "7"},   {"/m~0n", "8"},
    };
    struct fixture *f = fixture_of(state);
    struct vg_json *v;
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        assert_int_equal(get_in(f, f->doc, rows[i].pointer, 0, &v), 0);
        vg_assert_slice_equal(vg_json_text(v), vg_slice_str(rows[i].number));
    }
    assert_int_equal(get_in(f, f->doc, "", 0, &v), 0);
    assert_ptr_equal(v, f->doc);
    assert_int_equal(get_in(f, f->doc, "/foo", 0, &v), 0);
    assert_int_equal(v->type, VG_JSON_ARRAY);
    assert_int_equal(get_in(f, f->doc, "/foo/0", 0, &v), 0);
    vg_assert_slice_equal(vg_json_text(v), VG_SLICE_LIT("bar"));
}

static void tilde_01_is_tilde_1_and_not_a_slash(void **state)
{
    struct fixture *f = fixture_of(state);
    struct vg_json *v, *doc = parse(f, "{\"~1\": 1, \"/\": 2}");
    assert_int_equal(get_in(f, doc, "/~01", 0, &v), 0);
    vg_assert_slice_equal(vg_json_text(v), VG_SLICE_LIT("1"));
    assert_int_equal(get_in(f, doc, "/~1", 0, &v), 0);
    vg_assert_slice_equal(vg_json_text(v), VG_SLICE_LIT("2"));
}

static void malformed_pointers_are_refused_by_token(void **state)
{
    static const struct {
        const char *pointer, *message;
    } rows[] = {
        {"foo", "JSON pointer \"foo\": must be empty or start with '/'"},
        {"foo/bar", "JSON pointer \"foo/bar\": must be empty or start with '/'"},
        {"/a/b~", "JSON pointer \"/a/b~\": token 2 has a '~' that is not followed by 0 or 1"},
        {"/~2", "JSON pointer \"/~2\": token 1 has a '~' that is not followed by 0 or 1"},
        {"/~0~", "JSON pointer \"/~0~\": token 1 has a '~' that is not followed by 0 or 1"},
        {"/x/~/1", "JSON pointer \"/x/~/1\": token 2 has a '~' that is not followed by 0 or 1"},
    };
    struct fixture *f = fixture_of(state);
    struct vg_json_pointer p = {NULL, 77};
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        struct vg_slice text = vg_slice_str(rows[i].pointer);
        assert_int_equal(vg_json_pointer_parse(&f->arena, text, &p, &f->status),
                         VIGIL_E_JSON_POINTER);
        assert_string_equal(f->status.message, rows[i].message);
        assert_int_equal(p.n, 77);
    }
}

static void a_pointer_with_too_many_tokens_is_refused(void **state)
{
    struct fixture *f = fixture_of(state);
    struct vg_json_pointer p;
    size_t n = VG_JSON_POINTER_TOKENS_MAX + 1;
    char *text = vg_malloc(n);
    assert_non_null(text);
    memset(text, '/', n);
    assert_int_equal(vg_json_pointer_parse(&f->arena, vg_slice(text, n), &p, &f->status),
                     VIGIL_E_JSON_POINTER);
    assert_int_equal(vg_json_pointer_parse(&f->arena, vg_slice(text, n - 1), &p, NULL), 0);
    assert_int_equal(p.n, VG_JSON_POINTER_TOKENS_MAX);
    vg_free(text);
}

static void a_miss_says_which_token_failed_and_why(void **state)
{
    static const struct {
        const char *pointer;
        int err;
        const char *message;
    } rows[] = {
        {"/nope/x", VIGIL_E_NOT_FOUND, "token 1: the document has no member \"nope\""},
        {"/foo/2", VIGIL_E_NOT_FOUND, "token 2: \"/foo\" is an array of 2 items and has no item 2"},
        {"/foo/-", VIGIL_E_NOT_FOUND, "token 2: \"/foo\" is an array of 2 items and has no item -"},
        {"/foo/99999999999999999999", VIGIL_E_NOT_FOUND,
         "token 2: \"/foo\" is an array of 2 items and has no item 99999999999999999999"},
        {"/foo/00", VIGIL_E_JSON_POINTER, "token 2: \"/foo\" is an array and \"00\" is no index"},
        {"/foo/", VIGIL_E_JSON_POINTER, "token 2: \"/foo\" is an array and \"\" is no index"},
        {"/foo/+1", VIGIL_E_JSON_POINTER, "token 2: \"/foo\" is an array and \"+1\" is no index"},
        {"/foo/1e0", VIGIL_E_JSON_POINTER, "token 2: \"/foo\" is an array and \"1e0\" is no index"},
        {"/a~1b/q", VIGIL_E_JSON_TYPE, "token 2: \"/a~1b\" is a number and has no member \"q\""},
    };
    struct fixture *f = fixture_of(state);
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        struct vg_json *v = NULL;
        assert_int_equal(get_in(f, f->doc, rows[i].pointer, 0, &v), rows[i].err);
        const char *end = strstr(f->status.message, "token");
        assert_non_null(end);
        assert_string_equal(end, rows[i].message);
        assert_null(v);
    }
}

static void negative_indexes_count_from_the_end_only_when_allowed(void **state)
{
    struct fixture *f = fixture_of(state);
    struct vg_json *v;
    assert_int_equal(get_in(f, f->doc, "/foo/-1", VG_JSON_POINTER_NEGATIVE, &v), 0);
    vg_assert_slice_equal(vg_json_text(v), VG_SLICE_LIT("baz"));
    assert_int_equal(get_in(f, f->doc, "/foo/-2", VG_JSON_POINTER_NEGATIVE, &v), 0);
    vg_assert_slice_equal(vg_json_text(v), VG_SLICE_LIT("bar"));
    assert_int_equal(get_in(f, f->doc, "/foo/-3", VG_JSON_POINTER_NEGATIVE, &v), VIGIL_E_NOT_FOUND);
    assert_int_equal(get_in(f, f->doc, "/foo/-0", VG_JSON_POINTER_NEGATIVE, &v),
                     VIGIL_E_JSON_POINTER);
    assert_int_equal(get_in(f, f->doc, "/foo/-1", 0, &v), VIGIL_E_JSON_POINTER);
}

static void what_is_appended_parses_back(void **state)
{
    static const char *const tokens[] = {"", "~", "/", "~1", "a~0/b", "-", "\303\244"};
    struct fixture *f = fixture_of(state);
    VG_AUTO(buf) b = {0};
    struct vg_json_pointer p;
    for (size_t i = 0; i < VG_ARRAY_LEN(tokens); i++)
        assert_int_equal(vg_json_pointer_append(&b, vg_slice_str(tokens[i])), 0);
    vg_assert_slice_equal(vg_buf_slice(&b), VG_SLICE_LIT("//~0/~1/~01/a~00~1b/-/\303\244"));
    assert_int_equal(vg_json_pointer_parse(&f->arena, vg_buf_slice(&b), &p, NULL), 0);
    assert_int_equal(p.n, VG_ARRAY_LEN(tokens));
    for (uint32_t i = 0; i < p.n; i++)
        vg_assert_slice_equal(p.tokens[i], vg_slice_str(tokens[i]));
}

static void an_append_over_the_cap_changes_nothing(void **state)
{
    (void)state;
    VG_AUTO(buf) b;
    vg_buf_init(&b, 8);
    assert_int_equal(vg_json_pointer_append(&b, VG_SLICE_LIT("abc")), 0);
    assert_int_equal(vg_json_pointer_append(&b, VG_SLICE_LIT("defgh")), VIGIL_E_TOO_LARGE);
    vg_assert_slice_equal(vg_buf_slice(&b), VG_SLICE_LIT("/abc"));
}

static void prefixes_are_compared_by_token(void **state)
{
    struct fixture *f = fixture_of(state);
    struct vg_json_pointer a, ab, abc, also_ab;
    assert_int_equal(vg_json_pointer_parse(&f->arena, VG_SLICE_LIT("/a"), &a, NULL), 0);
    assert_int_equal(vg_json_pointer_parse(&f->arena, VG_SLICE_LIT("/a/b"), &ab, NULL), 0);
    assert_int_equal(vg_json_pointer_parse(&f->arena, VG_SLICE_LIT("/ab/c"), &abc, NULL), 0);
    assert_int_equal(vg_json_pointer_parse(&f->arena, VG_SLICE_LIT("/a/b"), &also_ab, NULL), 0);
    assert_true(vg_json_pointer_is_above(&a, &ab));
    assert_false(vg_json_pointer_is_above(&ab, &a));
    assert_false(vg_json_pointer_is_above(&a, &abc));
    assert_false(vg_json_pointer_is_above(&ab, &also_ab));
    assert_true(vg_json_pointer_is_same(&ab, &also_ab));
    assert_false(vg_json_pointer_is_same(&ab, &a));
}

static void a_shown_path_is_bounded_and_whole_in_its_characters(void **state)
{
    static const char euro[3] = {'\342', '\202', '\254'};
    (void)state;
    char key[400];
    for (size_t shift = 0; shift < 3; shift++) {
        memset(key, 'x', shift);
        for (size_t i = shift; i + 3 <= sizeof key; i += 3)
            memcpy(key + i, euro, sizeof euro);
        struct vg_json_path_text t = {0};
        vg_json_path_text_add(&t, vg_slice(key, sizeof key));
        assert_int_equal(strlen(t.s), t.n);
        assert_in_range(t.n, VG_JSON_PATH_TEXT_MAX - 6, VG_JSON_PATH_TEXT_MAX);
        assert_int_equal((t.n - 1 - shift - 3) % 3, 0);
        assert_string_equal(t.s + t.n - 3, "...");
    }
}

static void control_characters_are_not_shown(void **state)
{
    (void)state;
    struct vg_json_path_text t = {0};
    vg_json_path_text_add(&t, vg_slice("a\0b\nc\177", 6));
    assert_string_equal(t.s, "/a?b?c?");
}

static void parsing_survives_failing_allocations(void **state)
{
    (void)state;
    VG_ALLOC_FAIL_LOOP (n) {
        VG_AUTO(arena) a;
        struct vg_json_pointer p = {NULL, 77};
        vg_arena_init(&a, 32, 0); /* a chunk per allocation */
        int r = vg_json_pointer_parse(&a, VG_SLICE_LIT("/a~0bcdefghijklmnop/~1/c"), &p, NULL);
        if (vg_test_alloc_failed()) {
            assert_int_equal(r, -ENOMEM);
            assert_int_equal(p.n, 77);
        } else {
            assert_int_equal(r, 0);
            assert_int_equal(p.n, 3);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_of_rfc_6901_evaluate),
        cmocka_unit_test(tilde_01_is_tilde_1_and_not_a_slash),
        cmocka_unit_test(malformed_pointers_are_refused_by_token),
        cmocka_unit_test(a_pointer_with_too_many_tokens_is_refused),
        cmocka_unit_test(a_miss_says_which_token_failed_and_why),
        cmocka_unit_test(negative_indexes_count_from_the_end_only_when_allowed),
        cmocka_unit_test(what_is_appended_parses_back),
        cmocka_unit_test(an_append_over_the_cap_changes_nothing),
        cmocka_unit_test(prefixes_are_compared_by_token),
        cmocka_unit_test(a_shown_path_is_bounded_and_whole_in_its_characters),
        cmocka_unit_test(control_characters_are_not_shown),
        cmocka_unit_test(parsing_survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
