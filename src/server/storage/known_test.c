/* known_test.c - what is known of the log: by revision and key, references counted. */
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

static void changes_are_known_by_revision_and_key(void **state)
{
    (void)state;
    struct vg_known *k = vg_known_new(10, 13);
    assert_non_null(k);
    struct vg_rec *a = make("a", 11), *b = make("b", 11), *c = make("c", 13);
    struct vg_rec *below = make("d", 10), *above = make("e", 14);
    assert_true(vg_known_add(k, a));
    assert_true(vg_known_add(k, b));
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
    assert_ptr_equal(vg_known_find(k, 11, vg_slice("a", 1)), a);
    assert_ptr_equal(vg_known_find(k, 11, vg_slice("b", 1)), b);
    assert_null(vg_known_find(k, 13, vg_slice("b", 1)));
    assert_null(vg_known_find(NULL, 11, vg_slice("b", 1)));
    assert_int_equal(atomic_load(&b->refs), 2);
    vg_known_free(k);
    assert_int_equal(atomic_load(&a->refs), 1);
    assert_int_equal(atomic_load(&b->refs), 1);
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

/* Every third revision has three changes. */
static void of_many_changes_each_is_found_until_it_is_taken(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "c"};
    struct vg_known *k = vg_known_new(0, 600);
    assert_non_null(k);
    for (vg_rev rev = 1; rev <= 600; rev++)
        for (size_t i = 0; i < (rev % 3 ? 1u : 3u); i++) {
            struct vg_rec *rec = make(names[i], rev);
            assert_true(vg_known_add(k, rec));
            vg_rec_unref(rec);
        }
    for (vg_rev rev = 600; rev > 0; rev--)
        for (size_t i = 0; i < VG_ARRAY_LEN(names); i++) {
            struct vg_slice key = vg_slice(names[i], 1);
            const struct vg_rec *rec = vg_known_find(k, rev, key);
            assert_int_equal(rec != NULL, i == 0 || rev % 3 == 0);
            struct vg_rec *taken = rev % 2 ? NULL : vg_known_take(k, rev, key);
            assert_ptr_equal(taken, rev % 2 ? NULL : rec);
            assert_int_equal(vg_known_find(k, rev, key) != NULL, rev % 2 && rec);
            vg_rec_unref(taken);
        }
    vg_known_free(k);
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
        cmocka_unit_test(changes_are_known_by_revision_and_key),
        cmocka_unit_test(what_is_taken_is_known_no_longer),
        cmocka_unit_test(of_many_changes_each_is_found_until_it_is_taken),
        cmocka_unit_test(nothing_can_be_known_of_no_revision),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
