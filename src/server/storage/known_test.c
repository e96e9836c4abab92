/* known_test.c - what is known of the log: by revision, one of each, references counted. */
#include "test_support.h"

#include "known.h"

static struct vg_rec *make(const char *key, vg_rev rev)
{
    struct vg_rec *rec;
    struct vg_slice none = vg_slice(NULL, 0);
    assert_int_equal(vg_rec_new(VG_REC_PUT, vg_slice(key, strlen(key)), none, none, &rec), 0);
    rec->rev = rev;
    return rec;
}

static void one_of_each_revision_is_known(void **state)
{
    (void)state;
    struct vg_known *k = vg_known_new(10, 13);
    assert_non_null(k);
    struct vg_rec *a = make("a", 11), *b = make("b", 11), *c = make("c", 13);
    struct vg_rec *below = make("d", 10), *above = make("e", 14);
    assert_true(vg_known_add(k, a));
    assert_false(vg_known_add(k, b));
    assert_true(vg_known_add(k, c));
    assert_false(vg_known_add(k, below));
    assert_false(vg_known_add(k, above));
    assert_ptr_equal(vg_known_at(k, 11), a);
    assert_null(vg_known_at(k, 12));
    assert_ptr_equal(vg_known_at(k, 13), c);
    assert_null(vg_known_at(k, 0));
    assert_null(vg_known_at(k, 14));
    assert_null(vg_known_at(NULL, 11));
    assert_int_equal(atomic_load(&a->refs), 2);
    assert_int_equal(atomic_load(&b->refs), 1);
    vg_known_free(k);
    assert_int_equal(atomic_load(&a->refs), 1);
    struct vg_rec *all[] = {a, b, c, below, above};
    for (size_t i = 0; i < VG_ARRAY_LEN(all); i++)
        vg_rec_unref(all[i]);
}

static void what_is_taken_is_known_no_longer(void **state)
{
    (void)state;
    struct vg_known *k = vg_known_new(0, 5);
    assert_non_null(k);
    struct vg_rec *a = make("a", 3);
    assert_true(vg_known_add(k, a));
    assert_null(vg_known_take(k, 3, vg_slice("b", 1)));
    assert_null(vg_known_take(k, 0, vg_slice("a", 1)));
    assert_ptr_equal(vg_known_take(k, 3, vg_slice("a", 1)), a);
    assert_null(vg_known_take(k, 3, vg_slice("a", 1)));
    assert_int_equal(atomic_load(&a->refs), 2);
    vg_known_free(k);
    vg_rec_unref(a);
    vg_rec_unref(a);
}

static void nothing_can_be_known_of_no_revision(void **state)
{
    (void)state;
    struct vg_known *k = vg_known_new(7, 7);
    assert_non_null(k);
    assert_null(vg_known_at(k, 7));
    vg_known_free(k);
    vg_known_free(NULL);
    assert_null(vg_known_new(0, UINT64_MAX)); /* more than there can be */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_of_each_revision_is_known),
        cmocka_unit_test(what_is_taken_is_known_no_longer),
        cmocka_unit_test(nothing_can_be_known_of_no_revision),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
