/* continue_test.c - continue tokens, byte for byte as kube-apiserver makes them. */
#include "continue.h"

#include "base/rng.h"
#include "test_support.h"

static struct vg_arena arena;
static const struct vg_slice root = VG_SLICE_LIT("/registry/configmaps/veci-ns/");

static void refused(const char *token, const char *wanted)
{
    struct vg_continue c;
    struct vg_slice why;
    assert_int_equal(vg_continue_decode(&arena, vg_slice_str(token), root, &c, &why),
                     VIGIL_E_INVALID);
    assert_int_equal(why.n, strlen(wanted));
    assert_memory_equal(why.p, wanted, why.n);
}

static void tokens_have_the_known_form(void **state)
{
    (void)state;
    struct vg_slice token;
    assert_int_equal(vg_continue_encode(&arena, -1, root,
                                        VG_SLICE_LIT("/registry/configmaps/veci-ns/a"), &token),
                     0);
    assert_true(vg_slice_eq(
        token, VG_SLICE_LIT("eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiYSJ9")));
    struct vg_continue c;
    struct vg_slice why;
    assert_int_equal(vg_continue_decode(&arena, token, root, &c, &why), 0);
    assert_true(c.rev == -1);
    assert_true(
        vg_slice_eq(vg_obj_key_slice(&c.start), VG_SLICE_LIT("/registry/configmaps/veci-ns/a")));
}

static void what_was_encoded_is_decoded(void **state)
{
    (void)state;
    struct vg_rng rng;
    vg_rng_seed(&rng, vg_test_seed());
    for (int i = 0; i < 2000; i++) {
        struct vg_obj_key key, start;
        char name[64];
        size_t n = 1 + vg_rng_below(&rng, sizeof name);
        for (size_t k = 0; k < n; k++)
            name[k] = (char)('a' + vg_rng_below(&rng, 26));
        int64_t rev = (int64_t)(1 + vg_rng_below(&rng, INT64_MAX));
        assert_int_equal(vg_obj_key_make(root, vg_slice("", 0), vg_slice(name, n), &key), 0);
        assert_int_equal(vg_obj_key_next(vg_obj_key_slice(&key), &start), 0);
        struct vg_slice token, why;
        struct vg_continue c;
        assert_int_equal(vg_continue_encode(&arena, rev, root, vg_obj_key_slice(&start), &token),
                         0);
        assert_int_equal(vg_continue_decode(&arena, token, root, &c, &why), 0);
        assert_true(c.rev == rev);
        assert_true(vg_slice_eq(vg_obj_key_slice(&c.start), vg_obj_key_slice(&start)));
        vg_arena_reset(&arena);
    }
}

static void broken_tokens_are_refused(void **state)
{
    (void)state;
    refused("bogus", "continue key is not valid: illegal base64 data at input byte 4");
    refused("!!!", "continue key is not valid: illegal base64 data at input byte 0");
    refused("eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MCwic3RhcnQiOiJhXHUwMDAwIn0",
            "continue key is not valid: incorrect encoded start resourceVersion (version "
            "meta.k8s.io/v1)");
    refused("eyJ2IjoiYm9ndXMiLCJydiI6MSwic3RhcnQiOiJhIn0",
            "continue key is not valid: server does not recognize this encoded version bogus");
    refused("eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NSwic3RhcnQiOiIuLi8uLi94In0",
            "continue key is not valid: ../../x");
    refused("e30", "continue key is not valid: server does not recognize this encoded version ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_have_the_known_form),
        cmocka_unit_test(what_was_encoded_is_decoded),
        cmocka_unit_test(broken_tokens_are_refused),
    };
    vg_arena_init(&arena, 0, 0);
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    vg_arena_done(&arena);
    return r;
}
