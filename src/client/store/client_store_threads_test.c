/* client_store_threads_test.c - writers and readers of one store at a time. Every reader checks
 * that what it sees is one state: pods come in pairs that a transaction writes together. */
#include "test_support.h"

#include <stdatomic.h>

#include "base/rng.h"
#include "client/object/client_object_testing.h"
#include "store_int.h"

#define PAIRS 50u

struct world {
    struct vigil_store *store;
    _Atomic unsigned writers;
};

static void by_version(void *arg, const struct vigil_object *o,
                       void (*emit)(void *emit_arg, struct vigil_text value), void *emit_arg)
{
    (void)arg;
    emit(emit_arg, vigil_object_resource_version(o));
}

static const struct vigil_object *member(const char *ns, unsigned pair, unsigned version)
{
    char name[16], text[16];
    snprintf(name, sizeof(name), "p%u", pair);
    snprintf(text, sizeof(text), "%u", version);
    return vg_test_object(ns, name, text);
}

static void write_pairs(struct world *w, struct vg_rng *rng, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        unsigned pair = (unsigned)vg_rng_below(rng, PAIRS),
                 version = (unsigned)vg_rng_below(rng, 9);
        enum vg_store_verb verb = vg_rng_below(rng, 4) ? VG_STORE_PUT : VG_STORE_DELETE;
        struct vg_store_op ops[2] = {{.verb = verb, .o = member("left", pair, version)},
                                     {.verb = verb, .o = member("right", pair, version)}};
        assert_int_equal(vg_store_transaction(w->store, ops, 2), 0);
        for (unsigned k = 0; k < 2; k++) {
            vigil_object_unref(ops[k].ret_old);
            vigil_object_unref(ops[k].o);
        }
    }
}

static void replace_pairs(struct world *w, unsigned version)
{
    const struct vigil_object *v[2 * PAIRS];
    for (unsigned i = 0; i < PAIRS; i++) {
        v[2 * i] = member("left", i, version);
        v[2 * i + 1] = member("right", i, version);
    }
    assert_int_equal(vigil_store_replace(w->store, v, 2 * PAIRS, vigil_text("1")), 0);
    for (unsigned i = 0; i < 2 * PAIRS; i++)
        vigil_object_unref(v[i]);
}

/* The left half and the right half of the order must agree. */
static void check_snapshot(struct world *w)
{
    const struct vigil_snapshot *s = vigil_store_snapshot(w->store);
    assert_non_null(s);
    size_t n = vigil_snapshot_count(s);
    assert_int_equal(n % 2, 0);
    struct vigil_iter left = {0}, right = {n / 2};
    for (size_t i = 0; i < n / 2; i++) {
        const struct vigil_object *a = vigil_snapshot_next(s, &left);
        const struct vigil_object *b = vigil_snapshot_next(s, &right);
        struct vigil_text name = vigil_object_name(a), version = vigil_object_resource_version(a);
        assert_true(vg_slice_eq(vg_slice_of(name), vg_slice_of(vigil_object_name(b))));
        assert_true(
            vg_slice_eq(vg_slice_of(version), vg_slice_of(vigil_object_resource_version(b))));
    }
    vigil_snapshot_unref(s);
}

static bool count_sides(void *arg, const struct vigil_object *o)
{
    int *balance = arg;
    *balance += vigil_text_is(vigil_object_namespace(o), "left") ? 1 : -1;
    return true;
}

static void check_index(struct world *w, unsigned version)
{
    char text[16];
    int balance = 0;
    snprintf(text, sizeof(text), "%u", version);
    assert_int_equal(
        vigil_store_by_index(w->store, "byVersion", vigil_text(text), count_sides, &balance), 0);
    assert_int_equal(balance, 0);
}

static void run(unsigned index, void *arg)
{
    struct world *w = arg;
    struct vg_rng rng;
    vg_rng_seed(&rng, vg_test_seed() + index);
    if (index < 2) {
        for (unsigned i = 0; i < 40; i++) {
            write_pairs(w, &rng, 50);
            replace_pairs(w, (unsigned)vg_rng_below(&rng, 9));
        }
        atomic_fetch_sub(&w->writers, 1);
        return;
    }
    while (atomic_load(&w->writers)) {
        check_snapshot(w);
        check_index(w, (unsigned)vg_rng_below(&rng, 9));
        const struct vigil_object *o = vigil_store_get(w->store, vigil_text("left/p1"));
        vigil_object_unref(o);
    }
}

static void readers_see_one_state_while_writers_change_it(void **state)
{
    (void)state;
    struct world w = {.writers = 2};
    struct vigil_index index = {"byVersion", by_version, NULL};
    assert_int_equal(vigil_store_new(&index, 1, &w.store, NULL), 0);
    (void)vg_test_seed();
    vg_test_threads(5, run, &w);
    vg_ctree_check(&w.store->by_key);
    vg_ctree_check(&w.store->indexes[0].tree);
    vigil_store_free(w.store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_see_one_state_while_writers_change_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
