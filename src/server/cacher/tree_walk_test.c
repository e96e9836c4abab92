/* tree_walk_test.c - places, walks and counts in a snapshot: across leaves, at both ends, by
 * prefix.
 */
#include "test_support.h"

#include "tree_int.h"
#include "tree_testing.h"

static struct vg_root *publish(struct vg_tree *tree, size_t n)
{
    struct vg_root *root = vg_tree_publish(tree, n + 2);
    assert_non_null(root);
    return root;
}

static struct vg_tree_key pod_key(char *text, size_t size, size_t i)
{
    return vg_test_minor(vg_test_pod_key(text, size, i));
}

/* The cursor is before the k-th of n even pods. */
static void assert_rest(struct vg_cursor c, size_t k, size_t n)
{
    char text[64];
    for (; k < n; k++) {
        const struct vg_rec *rec = vg_cursor_next(&c);
        assert_non_null(rec);
        vg_assert_slice_equal(vg_rec_key(rec), vg_test_pod_key(text, sizeof text, 2 * k));
    }
    assert_null(vg_cursor_next(&c));
    assert_null(vg_cursor_next(&c));
}

static void walk_from_everywhere(size_t n)
{
    struct vg_tree *tree = vg_test_even_tree(n);
    struct vg_root *root = publish(tree, n);
    struct vg_cursor c;
    char text[64];
    vg_root_first(&c, root);
    assert_rest(c, 0, n);
    for (size_t i = 0; i < 2 * n + 2; i++) {
        struct vg_tree_key key = pod_key(text, sizeof text, i);
        vg_root_seek(&c, root, key);
        assert_rest(c, (i + 1) / 2, n);
        vg_root_seek_edge(&c, root, key, VG_TREE_AFTER);
        assert_rest(c, VG_MIN(i / 2 + 1, n), n);
        assert_int_equal(vg_root_rank(root, key, VG_TREE_AT), VG_MIN((i + 1) / 2, n));
    }
    vg_root_unref(root);
    vg_test_tree_end(tree);
}

static void a_walk_may_start_at_after_or_between_any_keys(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 31, 32, 33, 64, 65, 200, 600};
    for (size_t i = 0; i < VG_ARRAY_LEN(sizes); i++)
        walk_from_everywhere(sizes[i]);
}

static void pages_of_any_size_give_everything_once(void **state)
{
    (void)state;
    enum { N = 500 };
    struct vg_tree *tree = vg_test_even_tree(N);
    struct vg_root *root = publish(tree, N);
    for (size_t page = 1; page <= 70; page++) {
        struct vg_cursor c;
        size_t seen = 0;
        vg_root_first(&c, root);
        for (;;) {
            const struct vg_rec *rec = NULL, *last = NULL;
            for (size_t i = 0; i < page && (rec = vg_cursor_next(&c)); i++, last = rec)
                assert_int_equal(rec->rev, seen++ + 2);
            if (!last)
                break;
            struct vg_tree_key key = vg_test_minor(vg_rec_key(last));
            assert_int_equal(N - vg_root_rank(root, key, VG_TREE_AFTER), N - seen);
            vg_root_seek_edge(&c, root, key, VG_TREE_AFTER);
        }
        assert_int_equal(seen, N);
    }
    vg_root_unref(root);
    vg_test_tree_end(tree);
}

static void a_copy_of_a_cursor_goes_its_own_way(void **state)
{
    (void)state;
    struct vg_tree *tree = vg_test_even_tree(100);
    struct vg_root *root = publish(tree, 100);
    struct vg_cursor a, b;
    vg_root_first(&a, root);
    for (int i = 0; i < 40; i++)
        assert_non_null(vg_cursor_next(&a));
    b = a;
    assert_rest(a, 40, 100);
    assert_rest(b, 40, 100);
    vg_root_unref(root);
    vg_test_tree_end(tree);
}

/* ---- prefixes and majors ---- */

static void put(struct vg_tree *tree, const char *major, const char *minor)
{
    static vg_rev rev;
    struct vg_rec *rec = vg_test_rec(vg_slice_str(major), vg_slice_str(minor), ++rev);
    assert_int_equal(vg_tree_put(tree, rec, NULL), 0);
    vg_rec_unref(rec);
}

static struct vg_tree_key key(const char *major, const char *minor)
{
    return (struct vg_tree_key){.major = vg_slice_str(major), .minor = vg_slice_str(minor)};
}

static void prefixes_are_counted_and_passed_over(void **state)
{
    (void)state;
    static const char *const spaces[] = {"a-b", "a", "ab", "b", "b\xff", "b\xff\xff", "c"};
    struct vg_tree *tree = vg_test_tree(NULL);
    char text[64];
    for (size_t s = 0; s < VG_ARRAY_LEN(spaces); s++) {
        for (size_t i = 0; i < 40 + s; i++) {
            snprintf(text, sizeof text, "/pods/%s/%zu", spaces[s], i);
            put(tree, "", text);
        }
    }
    struct vg_root *root = vg_tree_publish(tree, 9);
    for (size_t s = 0; s < VG_ARRAY_LEN(spaces); s++) {
        struct vg_cursor c;
        snprintf(text, sizeof text, "/pods/%s/", spaces[s]);
        assert_int_equal(vg_root_count_prefix(root, key("", text)), 40 + s);
        vg_root_seek_edge(&c, root, key("", text), VG_TREE_PAST);
        const struct vg_rec *rec = vg_cursor_next(&c);
        bool is_last = s + 1 == VG_ARRAY_LEN(spaces);
        assert_int_equal(rec == NULL, is_last);
        snprintf(text, sizeof text, "/pods/%s/0", is_last ? "" : spaces[s + 1]);
        if (!is_last)
            vg_assert_slice_equal(vg_rec_key(rec), vg_slice_str(text));
    }
    assert_int_equal(vg_root_count_prefix(root, key("", "/pods/b")), 43 + 44 + 45);
    assert_int_equal(vg_root_count_prefix(root, key("", "/pods/b\xff")), 44 + 45);
    assert_int_equal(vg_root_count_prefix(root, key("", "")), vg_root_count(root));
    assert_int_equal(vg_root_count_prefix(root, key("", "/pods/0")), 0);
    vg_root_unref(root);
    vg_test_tree_end(tree);
}

static void an_index_gives_the_records_of_one_value(void **state)
{
    (void)state;
    struct vg_tree *tree = vg_test_tree(vg_test_key_by_header);
    char major[32], minor[32];
    for (size_t i = 0; i < 3000; i++) {
        snprintf(major, sizeof major, "node-%zu", i % 100);
        snprintf(minor, sizeof minor, "pod-%zu", i);
        put(tree, i % 10 ? major : "", minor); /* some have no node yet */
    }
    struct vg_root *root = vg_tree_publish(tree, 9);
    assert_int_equal(vg_root_count_prefix(root, key("", "")), 300);
    assert_int_equal(vg_root_count_prefix(root, key("node-1", "")), 30); /* not those of node-11 */
    assert_int_equal(vg_root_count_prefix(root, key("node-10", "")), 0);
    assert_int_equal(vg_root_count_prefix(root, key("node-9", "pod-1")), 11);
    struct vg_cursor c;
    size_t n = 0;
    vg_root_seek(&c, root, key("node-1", ""));
    for (const struct vg_rec *rec; (rec = vg_cursor_next(&c)); n++)
        if (!vg_slice_eq(vg_rec_header(rec), VG_SLICE_LIT("node-1")))
            break;
    assert_int_equal(n, 30);
    vg_root_unref(root);
    vg_test_tree_end(tree);
}

/* A major that is a prefix of another comes first as a whole, whatever the minors are. */
static void majors_order_before_minors(void **state)
{
    (void)state;
    struct vg_tree *tree = vg_test_tree(vg_test_key_by_header);
    struct vg_cursor c;
    put(tree, "ab", "a");
    put(tree, "a", "z");
    put(tree, "a", "bb");
    put(tree, "", "zz");
    struct vg_root *root = vg_tree_publish(tree, 9);
    static const char *const want[] = {"zz", "bb", "z", "a"};
    vg_root_first(&c, root);
    for (size_t i = 0; i < VG_ARRAY_LEN(want); i++)
        vg_assert_slice_equal(vg_rec_key(vg_cursor_next(&c)), vg_slice_str(want[i]));
    assert_non_null(vg_root_get(root, key("a", "bb")));
    assert_null(vg_root_get(root, key("ab", "b")));
    vg_root_unref(root);
    vg_test_tree_end(tree);
}

/* Keys with long common prefixes tie in their heads, all of them. */
static void keys_that_differ_late_are_told_apart(void **state)
{
    (void)state;
    struct vg_tree *tree = vg_test_tree(NULL);
    char text[128];
    put(tree, "", "x");
    for (int i = 0; i < 300; i++) {
        snprintf(text, sizeof text, "x%0100d", i);
        put(tree, "", text);
    }
    vg_tree_check(tree);
    for (int i = 0; i < 300; i++) {
        snprintf(text, sizeof text, "x%0100d", i);
        assert_non_null(vg_tree_get(tree, key("", text)));
        text[50] = '1';
        assert_null(vg_tree_get(tree, key("", text)));
    }
    vg_test_tree_end(tree);
}

/* More bytes in common than a node has room to say. */
static void very_long_majors_are_told_apart(void **state)
{
    (void)state;
    enum { LONG = 70000 };
    static char major[LONG + 1];
    struct vg_tree *tree = vg_test_tree(vg_test_key_by_header);
    memset(major, 'x', LONG);
    for (size_t i = 0; i < 300; i++) {
        major[LONG - 2] = (char)('a' + i % 20);
        major[LONG - 1] = (char)('a' + i / 20);
        put(tree, major, "minor");
    }
    vg_tree_check(tree);
    for (size_t i = 0; i < 300; i++) {
        major[LONG - 2] = (char)('a' + i % 20);
        major[LONG - 1] = (char)('a' + i / 20);
        assert_non_null(vg_tree_get(tree, key(major, "minor")));
        assert_null(vg_tree_get(tree, key(major, "mino")));
    }
    vg_test_tree_end(tree);
}

static void a_zero_byte_ends_a_major(void **state)
{
    (void)state;
    struct vg_tree *tree = vg_test_tree(vg_test_key_by_header);
    struct vg_rec *rec = vg_test_rec(VG_SLICE_LIT("a\0z"), VG_SLICE_LIT("1"), 2);
    assert_int_equal(vg_tree_put(tree, rec, NULL), 0);
    put(tree, "a", "2");
    put(tree, "a", "0");
    struct vg_root *root = vg_tree_publish(tree, 9);
    assert_int_equal(vg_root_count_prefix(root, key("a", "")), 3);
    assert_ptr_equal(vg_root_get(root, key("a", "1")), rec);
    struct vg_tree_key other = {.major = VG_SLICE_LIT("a\0b"), .minor = VG_SLICE_LIT("1")};
    assert_ptr_equal(vg_root_get(root, other), rec);
    vg_rec_unref(rec);
    vg_root_unref(root);
    vg_test_tree_end(tree);
}

static void ranges_are_half_open(void **state)
{
    (void)state;
    struct vg_tree *tree = vg_test_even_tree(300);
    struct vg_root *root = publish(tree, 300);
    char a[64], b[64];
    for (size_t i = 0; i < 600; i += 13) {
        for (size_t j = 0; j < 600; j += 7) {
            struct vg_tree_key from = pod_key(a, sizeof a, i), to = pod_key(b, sizeof b, j);
            size_t start = (i + 1) / 2, end = (j + 1) / 2;
            assert_int_equal(vg_root_count_range(root, &from, &to), end > start ? end - start : 0);
        }
    }
    assert_int_equal(vg_root_count_range(root, NULL, NULL), 300);
    vg_root_unref(root);
    vg_test_tree_end(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_walk_may_start_at_after_or_between_any_keys),
        cmocka_unit_test(pages_of_any_size_give_everything_once),
        cmocka_unit_test(a_copy_of_a_cursor_goes_its_own_way),
        cmocka_unit_test(prefixes_are_counted_and_passed_over),
        cmocka_unit_test(an_index_gives_the_records_of_one_value),
        cmocka_unit_test(majors_order_before_minors),
        cmocka_unit_test(keys_that_differ_late_are_told_apart),
        cmocka_unit_test(very_long_majors_are_told_apart),
        cmocka_unit_test(a_zero_byte_ends_a_major),
        cmocka_unit_test(ranges_are_half_open),
    };
    return cmocka_run_group_tests_name("tree_walk", tests, NULL, NULL);
}
