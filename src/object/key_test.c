/* key_test.c - keys are built, split, ranged over and continued from as kube-apiserver does. */
#include "test_support.h"

#include "base/rng.h"
#include "key.h"

static const struct vg_slice pods = {"/registry/pods/", 15};
static const struct vg_slice nodes = {"/registry/nodes/", 16};
static const struct vg_slice none = {"", 0};

#define S(lit) VG_SLICE_LIT(lit)
#define assert_key(k, lit) vg_assert_slice_equal(vg_obj_key_slice(k), S(lit))

static void keys_are_prefix_namespace_and_name(void **state)
{
    (void)state;
    struct vg_obj_key k;
    assert_int_equal(vg_obj_key_make(pods, S("default"), S("web-0"), &k), 0);
    assert_key(&k, "/registry/pods/default/web-0");
    assert_int_equal(vg_obj_key_make(nodes, none, S("n1"), &k), 0);
    assert_key(&k, "/registry/nodes/n1");
    assert_int_equal(vg_obj_key_make(nodes, none, S("a:b%2f..c"), &k), 0);
    assert_key(&k, "/registry/nodes/a:b%2f..c");
}

static void parts_that_break_the_shape_are_refused(void **state)
{
    (void)state;
    static const struct vg_slice bad[] = {{"", 0},  {".", 1},   {"..", 2}, {"a/b", 3},
                                          {"/", 1}, {"a\0", 2}, {"\0", 1}, {"../x", 4}};
    struct vg_obj_key k;
    struct vg_obj_key_range r;
    for (size_t i = 0; i < VG_ARRAY_LEN(bad); i++) {
        assert_int_equal(vg_obj_key_make(nodes, none, bad[i], &k), VIGIL_E_KEY_INVALID);
        assert_int_equal(vg_obj_key_make(pods, S("ns"), bad[i], &k), VIGIL_E_KEY_INVALID);
        if (bad[i].n == 0)
            continue;
        assert_int_equal(vg_obj_key_make(pods, bad[i], S("n"), &k), VIGIL_E_KEY_INVALID);
        assert_int_equal(vg_obj_key_range(pods, bad[i], &r), VIGIL_E_KEY_INVALID);
    }
    assert_int_equal(vg_obj_key_make(S("/registry/pods"), none, S("n"), &k), VIGIL_E_KEY_INVALID);
    assert_int_equal(vg_obj_key_make(none, none, S("n"), &k), VIGIL_E_KEY_INVALID);
    assert_int_equal(vg_obj_key_range(none, none, &r), VIGIL_E_KEY_INVALID);
}

static void keys_end_at_the_limit_of_storage(void **state)
{
    (void)state;
    char name[VG_OBJ_KEY_MAX + 1];
    struct vg_obj_key k, next;
    memset(name, 'x', sizeof name);
    size_t room = VG_OBJ_KEY_MAX - pods.n - 3;
    assert_int_equal(vg_obj_key_make(pods, S("ns"), vg_slice(name, room), &k), 0);
    assert_int_equal(k.n, VG_OBJ_KEY_MAX);
    assert_int_equal(vg_obj_key_next(vg_obj_key_slice(&k), &next), 0);
    assert_int_equal(next.n, VG_OBJ_KEY_MAX + 1);
    assert_int_equal(vg_obj_key_next(vg_obj_key_slice(&next), &k), VIGIL_E_KEY_INVALID);
    assert_int_equal(vg_obj_key_make(pods, S("ns"), vg_slice(name, room + 1), &k),
                     VIGIL_E_KEY_INVALID);
    assert_int_equal(vg_obj_key_make(pods, none, vg_slice(name, SIZE_MAX / 2), &k),
                     VIGIL_E_KEY_INVALID);
    assert_int_equal(vg_obj_key_make(vg_slice(name, sizeof name), none, S("n"), &k),
                     VIGIL_E_KEY_INVALID);
}

static void keys_split_into_what_they_were_made_of(void **state)
{
    (void)state;
    struct vg_slice ns, name;
    assert_int_equal(vg_obj_key_split(pods, true, S("/registry/pods/default/web-0"), &ns, &name),
                     0);
    vg_assert_slice_equal(ns, S("default"));
    vg_assert_slice_equal(name, S("web-0"));
    assert_int_equal(vg_obj_key_split(nodes, false, S("/registry/nodes/n1"), &ns, &name), 0);
    assert_int_equal(ns.n, 0);
    vg_assert_slice_equal(name, S("n1"));
}

static void keys_of_another_shape_do_not_split(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        bool namespaced;
    } cases[] = {
        {"", true},
        {"/registry/pods", true},
        {"/registry/pods/", true},
        {"/registry/pods/", false},
        {"/registry/pods/a", true},
        {"/registry/pods/a/", true},
        {"/registry/pods//b", true},
        {"/registry/pods/a/b/c", true},
        {"/registry/pods/a/b", false},
        {"/registry/podz/a/b", true},
        {"/registry/pods/../b", true},
    };
    struct vg_slice ns, name;
    for (size_t i = 0; i < VG_ARRAY_LEN(cases); i++)
        assert_int_equal(
            vg_obj_key_split(pods, cases[i].namespaced, vg_slice_str(cases[i].key), &ns, &name),
            VIGIL_E_KEY_INVALID);
}

static void ranges_span_a_kind_or_a_namespace(void **state)
{
    (void)state;
    struct vg_obj_key_range r;
    assert_int_equal(vg_obj_key_range(pods, none, &r), 0);
    assert_key(&r.start, "/registry/pods/");
    assert_key(&r.end, "/registry/pods0");
    assert_int_equal(vg_obj_key_range(pods, S("ns"), &r), 0);
    assert_key(&r.start, "/registry/pods/ns/");
    assert_key(&r.end, "/registry/pods/ns0");
}

static void the_end_of_a_prefix_drops_bytes_that_cannot_rise(void **state)
{
    (void)state;
    struct vg_obj_key k;
    assert_int_equal(vg_obj_key_prefix_end(S("a"), &k), 0);
    assert_key(&k, "b");
    assert_int_equal(vg_obj_key_prefix_end(S("a\xff\xff"), &k), 0);
    assert_key(&k, "b");
    assert_int_equal(vg_obj_key_prefix_end(S("\x7f"), &k), 0);
    assert_key(&k, "\x80");
    assert_int_equal(vg_obj_key_prefix_end(S("\xff\xff"), &k), VIGIL_E_KEY_INVALID);
    assert_int_equal(vg_obj_key_prefix_end(none, &k), VIGIL_E_KEY_INVALID);
}

static void pages_continue_after_the_last_key(void **state)
{
    (void)state;
    struct vg_obj_key next, back;
    assert_int_equal(vg_obj_key_next(S("/registry/pods/ns/a"), &next), 0);
    assert_key(&next, "/registry/pods/ns/a\0");
    struct vg_slice rest = vg_obj_key_to_continue(pods, vg_obj_key_slice(&next));
    vg_assert_slice_equal(rest, S("ns/a\0"));
    assert_int_equal(vg_obj_key_from_continue(pods, rest, &back), 0);
    vg_assert_slice_equal(vg_obj_key_slice(&back), vg_obj_key_slice(&next));
    assert_int_equal(vg_obj_key_from_continue(pods, S("ns/a"), &back), 0);
    assert_key(&back, "/registry/pods/ns/a");
    assert_int_equal(vg_obj_key_to_continue(pods, S("/registry/nodes/a")).n, 0);
}

static void tokens_do_not_lead_out_of_the_prefix(void **state)
{
    (void)state;
    static const struct vg_slice bad[] = {
        {"", 0},   {"..", 2}, {"../x", 4},  {"a/../../b", 9}, {"/a", 2},     {"a//b", 4},
        {"a/", 2}, {"\0", 1}, {"a\0/b", 4}, {"a/b\0\0", 5},   {"a/..\0", 5}, {".", 1}};
    struct vg_obj_key k;
    for (size_t i = 0; i < VG_ARRAY_LEN(bad); i++)
        if (vg_obj_key_from_continue(pods, bad[i], &k) != VIGIL_E_INVALID)
            fail_msg("case %zu was taken", i);
    char big[VG_OBJ_KEY_MAX + 2];
    memset(big, 'x', sizeof big);
    assert_int_equal(vg_obj_key_from_continue(pods, vg_slice(big, VG_OBJ_KEY_MAX + 1 - pods.n), &k),
                     0);
    assert_int_equal(vg_obj_key_from_continue(pods, vg_slice(big, VG_OBJ_KEY_MAX + 2 - pods.n), &k),
                     VIGIL_E_INVALID);
}

/* Short random parts over few bytes, so that they meet. */
static struct vg_slice random_part(struct vg_rng *rng, char out[4])
{
    static const char alphabet[] = "ab-.0";
    size_t n = 1 + vg_rng_below(rng, 3);
    out[0] = 0;
    for (size_t i = 0; i < n; i++)
        out[i] = alphabet[vg_rng_below(rng, sizeof alphabet - 1)];
    if (n < 3 && out[0] == '.') /* neither "." nor ".." */
        out[0] = 'a';
    return vg_slice(out, n);
}

static bool is_inside(const struct vg_obj_key_range *r, const struct vg_obj_key *k)
{
    return vg_slice_cmp(vg_obj_key_slice(&r->start), vg_obj_key_slice(k)) <= 0 &&
           vg_slice_cmp(vg_obj_key_slice(k), vg_obj_key_slice(&r->end)) < 0;
}

static void a_range_holds_exactly_the_keys_of_its_namespace(void **state)
{
    (void)state;
    struct vg_rng rng;
    vg_rng_seed(&rng, vg_test_seed());
    for (int i = 0; i < 20000; i++) {
        char a[4], b[4], c[4];
        struct vg_slice ns = random_part(&rng, a), other = random_part(&rng, b);
        struct vg_slice name = random_part(&rng, c), back_ns, back_name;
        struct vg_obj_key k, next;
        struct vg_obj_key_range r, all;
        assert_int_equal(vg_obj_key_make(pods, ns, name, &k), 0);
        assert_int_equal(vg_obj_key_range(pods, other, &r), 0);
        assert_int_equal(vg_obj_key_range(pods, none, &all), 0);
        assert_int_equal(is_inside(&r, &k), vg_slice_eq(ns, other));
        assert_true(is_inside(&all, &k));
        assert_int_equal(vg_obj_key_split(pods, true, vg_obj_key_slice(&k), &back_ns, &back_name),
                         0);
        assert_true(vg_slice_eq(back_ns, ns) && vg_slice_eq(back_name, name));
        assert_int_equal(vg_obj_key_next(vg_obj_key_slice(&k), &next), 0);
        assert_true(vg_slice_cmp(vg_obj_key_slice(&k), vg_obj_key_slice(&next)) < 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_prefix_namespace_and_name),
        cmocka_unit_test(parts_that_break_the_shape_are_refused),
        cmocka_unit_test(keys_end_at_the_limit_of_storage),
        cmocka_unit_test(keys_split_into_what_they_were_made_of),
        cmocka_unit_test(keys_of_another_shape_do_not_split),
        cmocka_unit_test(ranges_span_a_kind_or_a_namespace),
        cmocka_unit_test(the_end_of_a_prefix_drops_bytes_that_cannot_rise),
        cmocka_unit_test(pages_continue_after_the_last_key),
        cmocka_unit_test(tokens_do_not_lead_out_of_the_prefix),
        cmocka_unit_test(a_range_holds_exactly_the_keys_of_its_namespace),
    };
    return cmocka_run_group_tests_name("key", tests, NULL, NULL);
}
