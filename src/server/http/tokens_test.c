/* Tests of tokens.c. */
#include "test_support.h"

#include <errno.h>
#include <stdio.h>

#include "tokens.h"

static struct vg_tokens *parse(const char *text)
{
    struct vg_tokens *t = NULL;
    struct vg_status status = {0};
    int r = vg_tokens_parse("tokens", vg_slice_str(text), &t, &status);
    if (r < 0)
        print_message("%s\n", status.message);
    assert_int_equal(r, 0);
    return t;
}

static void refused(const char *text, const char *why)
{
    struct vg_tokens *t = NULL;
    struct vg_status status = {0};
    assert_int_equal(vg_tokens_parse("tokens", vg_slice_str(text), &t, &status), VIGIL_E_INVALID);
    assert_null(t);
    if (!strstr(status.message, why))
        fail_msg("'%s' does not say '%s'", status.message, why);
}

static void a_token_finds_its_user(void **state)
{
    (void)state;
    struct vg_tokens *t = parse("secret1,alice,u1\n"
                                "secret2,bob,u2,\"admins,system:masters\"\r\n"
                                "# a comment,x,y\n\n"
                                "\"se\"\"cret,3\",carol,,one");
    assert_int_equal(vg_tokens_count(t), 3);
    const struct vg_token *a = vg_tokens_find(t, VG_SLICE_LIT("secret1"));
    assert_non_null(a);
    vg_assert_slice_equal(a->name, VG_SLICE_LIT("alice"));
    vg_assert_slice_equal(a->uid, VG_SLICE_LIT("u1"));
    assert_int_equal(a->n_groups, 0);
    const struct vg_token *b = vg_tokens_find(t, VG_SLICE_LIT("secret2"));
    assert_int_equal(b->n_groups, 2);
    vg_assert_slice_equal(b->groups[0], VG_SLICE_LIT("admins"));
    vg_assert_slice_equal(b->groups[1], VG_SLICE_LIT("system:masters"));
    const struct vg_token *c = vg_tokens_find(t, VG_SLICE_LIT("se\"cret,3"));
    assert_non_null(c);
    vg_assert_slice_equal(c->name, VG_SLICE_LIT("carol"));
    vg_assert_slice_equal(c->groups[0], VG_SLICE_LIT("one"));
    assert_null(vg_tokens_find(t, VG_SLICE_LIT("secret")));
    assert_null(vg_tokens_find(t, VG_SLICE_LIT("secret11")));
    assert_null(vg_tokens_find(t, VG_SLICE_LIT("")));
    assert_null(vg_tokens_find(NULL, VG_SLICE_LIT("secret1")));
    vg_tokens_unref(t);
}

static void malformed_files_are_refused_by_line(void **state)
{
    (void)state;
    refused("a,b,c\nt,user\n", "tokens:2: a row needs at least 3 columns");
    refused(",user,uid", "the token is empty");
    refused("t,,uid", "the user name is empty");
    refused("\"t,user,uid", "malformed quotes");
    refused("\"t\"x,user,uid", "malformed quotes");
    refused("t,a,1\nt,b,2", "one token stands in two rows");
}

static void many_tokens_are_found(void **state)
{
    (void)state;
    VG_AUTO(buf) text = {0};
    for (int i = 0; i < 1000; i++)
        assert_int_equal(vg_buf_printf(&text, "token-%d,user-%d,%d\n", i, i, i), 0);
    struct vg_tokens *t;
    assert_int_equal(vg_tokens_parse("many", vg_buf_slice(&text), &t, NULL), 0);
    for (int i = 0; i < 1000; i++) {
        char token[32], user[32];
        int n = snprintf(token, sizeof token, "token-%d", i);
        snprintf(user, sizeof user, "user-%d", i);
        const struct vg_token *row = vg_tokens_find(t, vg_slice(token, (size_t)n));
        assert_non_null(row);
        vg_assert_slice_equal(row->name, vg_slice_str(user));
    }
    vg_tokens_unref(t);
}

static void a_missing_file_is_named(void **state)
{
    (void)state;
    struct vg_tokens *t;
    struct vg_status status = {0};
    assert_int_equal(vg_tokens_load("/no/such/file", &t, &status), -ENOENT);
    assert_non_null(strstr(status.message, "/no/such/file"));
}

static void memory_may_run_out(void **state)
{
    (void)state;
    VG_ALLOC_FAIL_LOOP (n) {
        struct vg_tokens *t = NULL;
        int r = vg_tokens_parse("x", VG_SLICE_LIT("t,user,uid,\"a,b\"\n\"q\",u,i\n"), &t, NULL);
        if (vg_test_alloc_failed())
            assert_int_equal(r, -ENOMEM);
        else
            assert_int_equal(r, 0);
        vg_tokens_unref(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_finds_its_user),
        cmocka_unit_test(malformed_files_are_refused_by_line),
        cmocka_unit_test(many_tokens_are_found),
        cmocka_unit_test(a_missing_file_is_named),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
