/* labels_test.c - finding in a sorted set of labels. */
#include "test_support.h"

#include <stdio.h>

#include "base/buf.h"
#include "labels.h"
#include "labels_testing.h"

static void find_gives_the_value_of_each_key(void **state)
{
    (void)state;
    struct vg_test_labels t;
    const struct vg_labels *l = vg_test_labels(&t, "b=2,a=1,ab=,c=3");
    struct vg_slice v;
    assert_true(vg_labels_find(l, VG_SLICE_LIT("a"), &v));
    vg_assert_slice_equal(v, VG_SLICE_LIT("1"));
    assert_true(vg_labels_find(l, VG_SLICE_LIT("ab"), &v));
    vg_assert_slice_equal(v, VG_SLICE_LIT(""));
    assert_true(vg_labels_find(l, VG_SLICE_LIT("c"), NULL));
    assert_false(vg_labels_find(l, VG_SLICE_LIT("d"), &v));
    assert_false(vg_labels_find(l, VG_SLICE_LIT(""), &v));
    assert_false(vg_labels_find(l, VG_SLICE_LIT("aa"), &v));
}

/* Few labels are searched one way, many another. */
static void many_labels_are_found_too(void **state)
{
    (void)state;
    static struct vg_test_labels t;
    VG_AUTO(buf) text = {0};
    for (unsigned i = 0; i < VG_TEST_LABELS_MAX; i++)
        assert_int_equal(vg_buf_printf(&text, "k%u=%u,", i, i), 0);
    assert_int_equal(vg_buf_append(&text, "", 1), 0);
    const struct vg_labels *l = vg_test_labels(&t, text.p);
    assert_true(vg_labels_is_sound(l, text.n));
    for (unsigned i = 0; i < VG_TEST_LABELS_MAX; i++) {
        struct vg_slice v = {0};
        char key[8], value[8];
        snprintf(key, sizeof key, "k%u", i);
        snprintf(value, sizeof value, "%u", i);
        assert_true(vg_labels_find(l, vg_slice_str(key), &v));
        vg_assert_slice_equal(v, vg_slice_str(value));
    }
    assert_int_equal(vg_labels_index(l, VG_SLICE_LIT("k"), 0), l->n);
    assert_int_equal(vg_labels_index(l, VG_SLICE_LIT("k9"), 0), l->n - 1);
    assert_int_equal(vg_labels_index(l, VG_SLICE_LIT("k1"), 2), l->n);
}

static void index_searches_from_where_it_is_told(void **state)
{
    (void)state;
    struct vg_test_labels t;
    const struct vg_labels *l = vg_test_labels(&t, "a=1,c=2,e=3");
    assert_int_equal(vg_labels_index(l, VG_SLICE_LIT("c"), 0), 1);
    assert_int_equal(vg_labels_index(l, VG_SLICE_LIT("c"), 1), 1);
    assert_int_equal(vg_labels_index(l, VG_SLICE_LIT("c"), 2), 3);
    assert_int_equal(vg_labels_index(l, VG_SLICE_LIT("b"), 0), 3);
}

static void the_empty_set_has_nothing(void **state)
{
    (void)state;
    struct vg_labels none = {.n = 0};
    assert_false(vg_labels_find(&none, VG_SLICE_LIT("a"), NULL));
    assert_int_equal(vg_labels_lower_bound(&none, VG_SLICE_LIT("a"), 0), 0);
    assert_true(vg_labels_is_sound(&none, 0));
}

static void lower_bound_searches_from_where_it_is_told(void **state)
{
    (void)state;
    struct vg_test_labels t;
    const struct vg_labels *l = vg_test_labels(&t, "a=1,c=2,e=3");
    assert_int_equal(vg_labels_lower_bound(l, VG_SLICE_LIT("a"), 0), 0);
    assert_int_equal(vg_labels_lower_bound(l, VG_SLICE_LIT("b"), 0), 1);
    assert_int_equal(vg_labels_lower_bound(l, VG_SLICE_LIT("b"), 2), 2);
    assert_int_equal(vg_labels_lower_bound(l, VG_SLICE_LIT("f"), 1), 3);
}

static void disorder_duplicates_and_strays_are_unsound(void **state)
{
    (void)state;
    struct vg_label_ref v[] = {{0, 1, 1, 1}, {2, 3, 1, 1}};
    struct vg_labels l = {.base = "a1b2", .v = v, .n = 2};
    assert_true(vg_labels_is_sound(&l, 4));
    assert_false(vg_labels_is_sound(&l, 3));
    l.base = "b1a2";
    assert_false(vg_labels_is_sound(&l, 4));
    l.base = "a1a2";
    assert_false(vg_labels_is_sound(&l, 4));
    v[1].key = UINT32_MAX;
    assert_false(vg_labels_is_sound(&l, 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(find_gives_the_value_of_each_key),
        cmocka_unit_test(many_labels_are_found_too),
        cmocka_unit_test(index_searches_from_where_it_is_told),
        cmocka_unit_test(the_empty_set_has_nothing),
        cmocka_unit_test(lower_bound_searches_from_where_it_is_told),
        cmocka_unit_test(disorder_duplicates_and_strays_are_unsound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
