/* consume_test.c - from the queue into the store and to the callbacks; scenarios 42 to 44. */
#include "fifo_world.h"

#include <errno.h>

/* Callbacks as text: +added, !added by the first list, ~updated, -deleted, xtombstone. Each checks
 * that the store shows its event. */
struct seen {
    struct vg_test_log log;
    struct vigil_store *store;
};

static void say(struct seen *s, const char *what, const struct vigil_object *o, bool is_there)
{
    const struct vigil_object *stored = vigil_store_get(s->store, vigil_object_key(o));
    assert_int_equal(stored != NULL, is_there);
    if (is_there)
        assert_ptr_equal(stored, o);
    vigil_object_unref(stored);
    vg_test_say(&s->log, "%s%s%.*s%.*s", s->log.n ? " " : "", what,
                VIGIL_TEXT_ARG(vigil_object_key(o)),
                VIGIL_TEXT_ARG(vigil_object_resource_version(o)));
}
static void on_add(void *arg, const struct vigil_object *o, bool is_initial)
{
    say(arg, is_initial ? "!" : "+", o, true);
}
static void on_update(void *arg, const struct vigil_object *before, const struct vigil_object *o)
{
    struct seen *s = arg;
    assert_true(
        vg_slice_eq(vg_slice_of(vigil_object_key(before)), vg_slice_of(vigil_object_key(o))));
    say(s, "~", o, true);
    vg_test_say(&s->log, "(%.*s)", VIGIL_TEXT_ARG(vigil_object_resource_version(before)));
}
static void on_delete(void *arg, const struct vigil_object *o, bool is_tombstone)
{
    say(arg, is_tombstone ? "x" : "-", o, false);
}

/* A store, its consumer and a queue before it. */
struct chain {
    struct vigil_store *store;
    struct vg_fifo *f;
    struct vg_consumer consumer;
    struct seen seen;
};

static void chain_init(struct chain *c, enum vg_fifo_mode mode, const struct vigil_index *index)
{
    memset(c, 0, sizeof(*c));
    assert_int_equal(vigil_store_new(index, index != NULL, &c->store, NULL), 0);
    struct vg_fifo_opts opts = {.mode = mode, .known = mode == VG_FIFO_ATOMIC ? NULL : c->store};
    assert_int_equal(vg_fifo_new(&opts, &c->f), 0);
    c->seen.store = c->store;
    struct vg_consumer_calls calls = {on_add, on_update, on_delete, &c->seen};
    vg_consumer_init(&c->consumer, c->store, &calls);
}
static void chain_done(struct chain *c)
{
    vg_fifo_free(c->f);
    vg_consumer_done(&c->consumer);
    vigil_store_free(c->store);
}
static void chain_run(struct chain *c, const char *want)
{
    int r;
    c->seen.log = (struct vg_test_log){.n = 0};
    while ((r = vg_fifo_pop(c->f, false, vg_consume, &c->consumer)) > 0)
        continue;
    assert_int_equal(r, 0);
    assert_string_equal(c->seen.log.text, want);
}
static void assert_version(struct chain *c, const char *want)
{
    char version[32];
    vigil_store_resource_version(c->store, version, sizeof(version));
    assert_string_equal(version, want);
}

static void s42_a_list_against_a_store(void **state)
{
    (void)state;
    for (int mode = VG_FIFO_ATOMIC; mode <= VG_FIFO_ORDERED; mode++) {
        struct chain c;
        chain_init(&c, (enum vg_fifo_mode)mode, NULL);
        vg_test_list(c.f, "pa1 pb1 pc1", "1");
        chain_run(&c, "!pa1 !pb1 !pc1");
        vg_test_list(c.f, "pb2 pa2 pd2", "2");
        chain_run(&c, "xpc1 ~pb2(1) ~pa2(1) +pd2");
        assert_int_equal(vigil_store_count(c.store), 3);
        assert_version(&c, "2");
        chain_done(&c);
    }
}

static void s42_a_list_by_key(void **state)
{
    (void)state;
    struct chain c;
    chain_init(&c, VG_FIFO_BY_KEY, NULL);
    vg_test_list(c.f, "pa1 pb1 pc1", "1");
    chain_run(&c, "!pa1 !pb1 !pc1");
    vg_test_list(c.f, "pb2 pa2 pd2", "2");
    chain_run(&c, "~pb2(1) ~pa2(1) +pd2 xpc1");
    chain_done(&c);
}

static void s43_a_relist_is_not_initial(void **state)
{
    (void)state;
    for (int mode = VG_FIFO_ATOMIC; mode <= VG_FIFO_BY_KEY; mode++) {
        struct chain c;
        chain_init(&c, (enum vg_fifo_mode)mode, NULL);
        vg_test_list(c.f, "pa1", "1");
        chain_run(&c, "!pa1");
        vg_test_list(c.f, "pa2 pb3", "3");
        chain_run(&c, "~pa2(1) +pb3");
        chain_done(&c);
    }
}

static void fail_on_two(void *arg, const struct vigil_object *o,
                        void (*emit)(void *emit_arg, struct vigil_text value), void *emit_arg)
{
    (void)arg;
    if (vigil_text_is(vigil_object_name(o), "two"))
        vg_alloc_fail_at(1, 0);
    emit(emit_arg, vigil_object_name(o));
}

static void s44_of_a_batch_one_fails(void **state)
{
    (void)state;
    struct chain c;
    struct vigil_index index = {"name", fail_on_two, NULL};
    chain_init(&c, VG_FIFO_ATOMIC, &index);
    vg_test_added(c.f, "one1");
    vg_test_added(c.f, "two2");
    vg_test_added(c.f, "three3");
    assert_int_equal(vg_fifo_pop(c.f, false, vg_consume, &c.consumer), -ENOMEM);
    vg_alloc_fail_at(0, 0);
    assert_string_equal(c.seen.log.text, "+one1 +three3");
    assert_int_equal(vigil_store_count(c.store), 2);
    chain_done(&c);
}

static void the_store_decides_what_is_told(void **state)
{
    (void)state;
    struct chain c;
    chain_init(&c, VG_FIFO_ATOMIC, NULL);
    vg_test_updated(c.f, "a1"); /* of something that is not there */
    vg_test_added(c.f, "a2");   /* of something that is */
    vg_test_deleted(c.f, "a3");
    vg_test_deleted(c.f, "b4"); /* of something never added */
    chain_run(&c, "+a1 ~a2(1) -a3 -b4");
    assert_version(&c, "4");
    chain_done(&c);
}

static void a_sync_tells_of_all_that_is_stored_when_it_is_popped(void **state)
{
    (void)state;
    struct chain c;
    chain_init(&c, VG_FIFO_ATOMIC, NULL);
    assert_int_equal(vg_fifo_resync(c.f), 0);
    chain_run(&c, "");
    assert_int_equal(vg_fifo_resync(c.f), 0);
    vg_test_list(c.f, "a1 b2", "2");
    assert_int_equal(vg_fifo_resync(c.f), 0);
    assert_int_equal(vg_fifo_bookmark(c.f, VG_SLICE_LIT("77")), 0);
    chain_run(&c, "!a1 !b2 ~a1(1) ~b2(2)");
    assert_version(&c, "77");
    chain_done(&c);
}

static void lists_of_any_kind_tell_what_left(void **state)
{
    (void)state;
    static const char *const steps[][2] = {{"a1 c1 e1", "!a1 !c1 !e1"},
                                           {"b2 d2", "xa1 xc1 xe1 +b2 +d2"},
                                           {"b2 d2", "~b2(2) ~d2(2)"},
                                           {"", "xb2 xd2"},
                                           {"", ""},
                                           {"z3", "+z3"},
                                           {"a4 z4", "+a4 ~z4(3)"}};
    struct chain c;
    chain_init(&c, VG_FIFO_ATOMIC, NULL);
    for (size_t i = 0; i < VG_ARRAY_LEN(steps); i++) {
        vg_test_list(c.f, steps[i][0], "1");
        chain_run(&c, steps[i][1]);
    }
    chain_done(&c);
}

static void without_memory_a_batch_is_applied_or_fails(void **state)
{
    (void)state;
    VG_ALLOC_FAIL_LOOP (n) {
        struct vigil_store *store = NULL;
        struct vg_fifo *f = NULL;
        struct vg_consumer consumer;
        const struct vigil_object *o =
            vigil_object_parse(vigil_text("{\"metadata\":{\"name\":\"a\"}}"), NULL);
        int r = vigil_store_new(NULL, 0, &store, NULL);
        if (r == 0 && o)
            r = vg_fifo_new(&(struct vg_fifo_opts){0}, &f);
        vg_consumer_init(&consumer, store, &(struct vg_consumer_calls){0});
        bool put = f && vg_fifo_replace(f, &o, 1, VG_SLICE_LIT("1")) == 0 &&
                   vg_fifo_put(f, VG_DELTA_UPDATED, o) == 0;
        while (put && (r = vg_fifo_pop(f, false, vg_consume, &consumer)) > 0)
            continue;
        bool failed = vg_test_alloc_failed();
        if (put)
            assert_true(r == 0 ? vigil_store_count(store) == 1 : failed);
        vg_fifo_free(f);
        vg_consumer_done(&consumer);
        vigil_store_free(store);
        vigil_object_unref(o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s42_a_list_against_a_store),
        cmocka_unit_test(s42_a_list_by_key),
        cmocka_unit_test(s43_a_relist_is_not_initial),
        cmocka_unit_test(s44_of_a_batch_one_fails),
        cmocka_unit_test(the_store_decides_what_is_told),
        cmocka_unit_test(a_sync_tells_of_all_that_is_stored_when_it_is_popped),
        cmocka_unit_test(lists_of_any_kind_tell_what_left),
        cmocka_unit_test(without_memory_a_batch_is_applied_or_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
