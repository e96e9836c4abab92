/* expiring_test.c - objects that expire, on a fake clock; scenario 56. */
#include "test_support.h"

#include "client/object/client_object_testing.h"
#include "expiring.h"

static bool count_one(void *arg, const struct vigil_object *o)
{
    (void)o;
    ++*(size_t *)arg;
    return true;
}

static size_t listed(struct vigil_expiring *x)
{
    size_t n = 0;
    assert_int_equal(vigil_expiring_list(x, count_one, &n), 0);
    return n;
}

static bool has(struct vigil_expiring *x, const char *key)
{
    const struct vigil_object *o = vigil_expiring_get(x, vigil_text(key));
    vigil_object_unref(o);
    return o;
}

static void s56_get_and_list_purge_and_a_put_restarts_the_clock(void **state)
{
    (void)state;
    struct vg_fake_clock clock;
    struct vigil_expiring *x;
    vg_fake_clock_init(&clock);
    assert_int_equal(vg_expiring_new(100, &clock.clock, &x), 0);
    const struct vigil_object *a = vg_test_object("ns", "a", "1");
    const struct vigil_object *b = vg_test_object("ns", "b", "1");
    assert_int_equal(vigil_expiring_put(x, a), 0);
    assert_int_equal(vigil_expiring_put(x, b), 0);
    vg_fake_clock_advance(&clock, 100 * VG_NS_PER_MS);
    assert_true(has(x, "ns/a")); /* not older than the time: as old */
    assert_int_equal(vigil_expiring_put(x, b), 0);
    vg_fake_clock_advance(&clock, 1);
    assert_int_equal(vigil_expiring_count(x), 2); /* counting purges nothing */
    assert_false(has(x, "ns/a"));
    assert_int_equal(vigil_expiring_count(x), 1);
    assert_int_equal(listed(x), 1);
    vg_fake_clock_advance(&clock, 100 * VG_NS_PER_MS);
    assert_int_equal(vigil_expiring_count(x), 1);
    assert_int_equal(listed(x), 0);
    assert_int_equal(vigil_expiring_count(x), 0);
    assert_int_equal(vigil_expiring_put(x, a), 0);
    assert_true(has(x, "ns/a"));
    assert_int_equal(vigil_expiring_replace(x, &b, 1), 0);
    assert_false(has(x, "ns/a"));
    assert_true(has(x, "ns/b"));
    vigil_expiring_delete(x, vigil_text("ns/b"));
    vigil_expiring_delete(x, vigil_text("ns/b"));
    assert_false(has(x, "ns/b"));
    assert_int_equal(vigil_expiring_put(x, a), 0);
    vigil_expiring_free(x);
    vigil_object_unref(a);
    vigil_object_unref(b);
    vg_fake_clock_done(&clock);
}

static void without_a_time_nothing_expires(void **state)
{
    (void)state;
    struct vg_fake_clock clock;
    struct vigil_expiring *x;
    vg_fake_clock_init(&clock);
    assert_int_equal(vg_expiring_new(0, &clock.clock, &x), 0);
    const struct vigil_object *a = vg_test_object("ns", "a", "1");
    assert_int_equal(vigil_expiring_put(x, a), 0);
    vg_fake_clock_advance(&clock, UINT64_C(1) << 62);
    assert_true(has(x, "ns/a"));
    vigil_expiring_free(x);
    vigil_object_unref(a);
    vg_fake_clock_done(&clock);
}

static void without_memory_nothing_changes(void **state)
{
    (void)state;
    const struct vigil_object *a = vg_test_object("ns", "a", "1");
    VG_ALLOC_FAIL_LOOP (n) {
        struct vigil_expiring *x = NULL;
        size_t count = 0;
        int r = vigil_expiring_new(5000, &x, NULL);
        int p = r == 0 ? vigil_expiring_put(x, a) : r;
        int c = p == 0 ? vigil_expiring_replace(x, &a, 1) : p;
        int l = c == 0 ? vigil_expiring_list(x, count_one, &count) : c;
        if (vg_test_alloc_failed())
            assert_int_equal(l, VIGIL_E_MEMORY);
        if (x)
            assert_int_equal(vigil_expiring_count(x), p == 0);
        vigil_expiring_free(x);
    }
    vigil_object_unref(a);
}

static void use(unsigned index, void *arg)
{
    struct vigil_expiring *x = arg;
    const struct vigil_object *a = vg_test_object("ns", index % 2 ? "a" : "b", "1");
    for (unsigned i = 0; i < 2000; i++) {
        assert_int_equal(vigil_expiring_put(x, a), 0);
        (void)has(x, "ns/a");
        (void)listed(x);
        vigil_expiring_delete(x, vigil_text("ns/b"));
    }
    vigil_object_unref(a);
}

static void threads_share_it(void **state)
{
    (void)state;
    struct vigil_expiring *x;
    assert_int_equal(vigil_expiring_new(1, &x, NULL), 0);
    vg_test_threads(4, use, x);
    vigil_expiring_free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s56_get_and_list_purge_and_a_put_restarts_the_clock),
        cmocka_unit_test(without_a_time_nothing_expires),
        cmocka_unit_test(without_memory_nothing_changes),
        cmocka_unit_test(threads_share_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
