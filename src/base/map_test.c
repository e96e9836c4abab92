/* map_test.c - the hash map against a model, and with failing memory. */
#include "test_support.h"

#include <errno.h>
#include <stdio.h>

#include "map.h"
#include "rng.h"

static void an_empty_map_has_nothing(void **state)
{
    (void)state;
    VG_AUTO(map) m = {0};
    assert_int_equal(vg_map_count(&m), 0);
    assert_null(vg_map_get(&m, VG_SLICE_LIT("a")));
    assert_null(vg_map_remove(&m, VG_SLICE_LIT("a")));
    VG_MAP_FOREACH (e, &m)
        fail();
    vg_map_check(&m);
}

static void what_is_put_is_got_replaced_and_removed(void **state)
{
    (void)state;
    VG_AUTO(map) m;
    int one, two;
    void *old = NULL;
    vg_map_init(&m, VG_MAP_COPIES_KEYS);
    assert_int_equal(vg_map_put(&m, VG_SLICE_LIT("k"), &one, &old), 0);
    assert_null(old);
    assert_ptr_equal(vg_map_get(&m, VG_SLICE_LIT("k")), &one);
    assert_int_equal(vg_map_put(&m, VG_SLICE_LIT("k"), &two, &old), 1);
    assert_ptr_equal(old, &one);
    assert_int_equal(vg_map_put(&m, VG_SLICE_LIT("k"), &one, NULL), 1);
    assert_int_equal(vg_map_count(&m), 1);
    assert_ptr_equal(vg_map_remove(&m, VG_SLICE_LIT("k")), &one);
    assert_null(vg_map_get(&m, VG_SLICE_LIT("k")));
    assert_int_equal(vg_map_count(&m), 0);
}

static void keys_are_bytes_and_may_be_empty(void **state)
{
    (void)state;
    VG_AUTO(map) m;
    int a, b, c;
    vg_map_init(&m, VG_MAP_COPIES_KEYS);
    assert_int_equal(vg_map_put(&m, vg_slice(NULL, 0), &a, NULL), 0);
    assert_int_equal(vg_map_put(&m, VG_SLICE_LIT("x"), &b, NULL), 0);
    assert_int_equal(vg_map_put(&m, VG_SLICE_LIT("x\0y"), &c, NULL), 0);
    assert_ptr_equal(vg_map_get(&m, VG_SLICE_LIT("")), &a);
    assert_ptr_equal(vg_map_get(&m, VG_SLICE_LIT("x")), &b);
    assert_ptr_equal(vg_map_get(&m, VG_SLICE_LIT("x\0y")), &c);
    assert_null(vg_map_get(&m, VG_SLICE_LIT("x\0")));
}

static void a_null_value_is_told_from_no_value(void **state)
{
    (void)state;
    VG_AUTO(map) m = {0};
    assert_int_equal(vg_map_put(&m, VG_SLICE_LIT("k"), NULL, NULL), 0);
    assert_null(vg_map_get(&m, VG_SLICE_LIT("k")));
    assert_non_null(vg_map_find(&m, VG_SLICE_LIT("k")));
    assert_null(vg_map_find(&m, VG_SLICE_LIT("l")));
}

static void a_copying_map_does_not_need_the_callers_key(void **state)
{
    (void)state;
    VG_AUTO(map) m;
    char key[] = "first";
    int v;
    vg_map_init(&m, VG_MAP_COPIES_KEYS);
    assert_int_equal(vg_map_put(&m, vg_slice_str(key), &v, NULL), 0);
    key[0] = 'F';
    assert_ptr_equal(vg_map_get(&m, VG_SLICE_LIT("first")), &v);
}

static void a_borrowing_map_borrows_the_newest_key(void **state)
{
    (void)state;
    VG_AUTO(map) m = {0};
    char old_key[] = "k", new_key[] = "k";
    int v;
    assert_int_equal(vg_map_put(&m, vg_slice_str(old_key), &v, NULL), 0);
    assert_int_equal(vg_map_put(&m, vg_slice_str(new_key), &v, NULL), 1);
    old_key[0] = '-'; /* as if it were freed */
    const struct vg_map_entry *e = vg_map_find(&m, VG_SLICE_LIT("k"));
    assert_non_null(e);
    assert_ptr_equal(e->key.p, new_key);
}

static struct vg_slice numbered_key(char *out, size_t size, int i)
{
    int n = snprintf(out, size, "key-%d", i);
    return vg_slice(out, (size_t)n);
}

static void the_table_grows_and_shrinks_with_its_entries(void **state)
{
    (void)state;
    VG_AUTO(map) m;
    char key[32];
    vg_map_init(&m, VG_MAP_COPIES_KEYS);
    for (int i = 0; i < 10000; i++) {
        struct vg_slice k = numbered_key(key, sizeof key, i);
        assert_int_equal(vg_map_put(&m, k, &m, NULL), 0);
    }
    vg_map_check(&m);
    assert_in_range(m.cap, 10000, 32768);
    for (int i = 0; i < 10000; i++) {
        struct vg_slice k = numbered_key(key, sizeof key, i);
        assert_ptr_equal(vg_map_remove(&m, k), &m);
    }
    assert_int_equal(m.count, 0);
    assert_int_equal(m.cap, 8);
}

/* The reference: an array indexed by the number in the key. */
#define MODEL_KEYS 200

static struct vg_slice model_key(char *out, size_t size, uint64_t i)
{
    int n = snprintf(out, size, "%0*d", (int)(i % 40), (int)i);
    return vg_slice(out, (size_t)n);
}

static void check_against_model(const struct vg_map *m, void *const *model)
{
    size_t count = 0, visited = 0;
    for (size_t i = 0; i < MODEL_KEYS; i++) {
        char key[64];
        assert_ptr_equal(vg_map_get(m, model_key(key, sizeof key, i)), model[i]);
        count += model[i] != NULL;
    }
    VG_MAP_FOREACH (e, m) {
        visited++;
        assert_non_null(e->value);
    }
    assert_int_equal(vg_map_count(m), count);
    assert_int_equal(visited, count);
    vg_map_check(m);
}

static void model_step(struct vg_rng *r, struct vg_map *m, void **model, bool is_growing)
{
    char key[64];
    uint64_t i = vg_rng_below(r, MODEL_KEYS);
    struct vg_slice k = model_key(key, sizeof key, i);
    if (vg_rng_below(r, 10) < (is_growing ? 7u : 3u)) {
        void *value = &model[vg_rng_below(r, MODEL_KEYS)], *old = NULL;
        assert_int_equal(vg_map_put(m, k, value, &old), model[i] != NULL);
        assert_ptr_equal(old, model[i]);
        model[i] = value;
    } else {
        assert_ptr_equal(vg_map_remove(m, k), model[i]);
        model[i] = NULL;
    }
}

static void random_traffic_agrees_with_a_naive_model(void **state)
{
    (void)state;
    struct vg_rng r;
    VG_AUTO(map) m;
    void *model[MODEL_KEYS] = {0};
    vg_rng_seed(&r, vg_test_seed());
    vg_map_init(&m, VG_MAP_COPIES_KEYS);
    for (int step = 0; step < 20000; step++) {
        model_step(&r, &m, model, step / 1000 % 2 == 0);
        if (step % 50 == 0)
            check_against_model(&m, model);
    }
    check_against_model(&m, model);
    vg_map_clear(&m);
    assert_int_equal(vg_map_count(&m), 0);
}

static void a_put_without_memory_changes_nothing(void **state)
{
    (void)state;
    VG_ALLOC_FAIL_LOOP (n) {
        VG_AUTO(map) m;
        char key[64];
        int r = 0, i = 0;
        vg_map_init(&m, VG_MAP_COPIES_KEYS);
        for (; i < 50 && r == 0; i++)
            r = vg_map_put(&m, model_key(key, sizeof key, (uint64_t)i), &m, NULL);
        if (vg_test_alloc_failed()) {
            assert_int_equal(r, -ENOMEM);
            assert_int_equal(vg_map_count(&m), i - 1);
        }
        vg_map_check(&m);
    }
}

static void a_remove_works_without_memory(void **state)
{
    (void)state;
    VG_AUTO(map) m = {0};
    static char keys[500][16];
    for (int i = 0; i < 500; i++) {
        struct vg_slice k = numbered_key(keys[i], sizeof keys[i], i);
        assert_int_equal(vg_map_put(&m, k, keys[i], NULL), 0);
    }
    for (size_t i = 0; i < 500; i++) {
        vg_alloc_fail_at(1, 0);
        assert_ptr_equal(vg_map_remove(&m, vg_slice_str(keys[i])), keys[i]);
        vg_alloc_fail_at(0, 0);
        vg_map_check(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_map_has_nothing),
        cmocka_unit_test(what_is_put_is_got_replaced_and_removed),
        cmocka_unit_test(keys_are_bytes_and_may_be_empty),
        cmocka_unit_test(a_null_value_is_told_from_no_value),
        cmocka_unit_test(a_copying_map_does_not_need_the_callers_key),
        cmocka_unit_test(a_borrowing_map_borrows_the_newest_key),
        cmocka_unit_test(the_table_grows_and_shrinks_with_its_entries),
        cmocka_unit_test(random_traffic_agrees_with_a_naive_model),
        cmocka_unit_test(a_put_without_memory_changes_nothing),
        cmocka_unit_test(a_remove_works_without_memory),
    };
    return cmocka_run_group_tests_name("map", tests, NULL, NULL);
}
