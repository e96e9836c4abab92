/* fifo_test.c - the queues; the numbers are those of the scenarios of the client's contract.
 * (Scenario 40 also speaks of an item without a key: here every object has one.) */
#include "fifo_world.h"

#include <errno.h>

static void s29_events_of_one_object(void **state)
{
    (void)state;
    for (int mode = VG_FIFO_ATOMIC; mode <= VG_FIFO_BY_KEY; mode++) {
        struct vg_test_queue q = vg_test_queue((enum vg_fifo_mode)mode, 0, "");
        vg_test_added(q.f, "foo10");
        vg_test_updated(q.f, "foo12");
        vg_test_deleted(q.f, "foo15");
        vg_test_pop_all(q.f, mode == VG_FIFO_BY_KEY ? "{A:foo10 U:foo12 D:foo15}"
                                                    : "{A:foo10} {U:foo12} {D:foo15}");
        vg_test_queue_done(&q);
    }
}

static void s30_deletion_of_an_unknown_object(void **state)
{
    (void)state;
    for (int mode = VG_FIFO_ATOMIC; mode <= VG_FIFO_BY_KEY; mode++) {
        struct vg_test_queue q = vg_test_queue((enum vg_fifo_mode)mode, 0, "");
        vg_test_deleted(q.f, "baz10");
        vg_test_pop_all(q.f, mode == VG_FIFO_BY_KEY ? "" : "{D:baz10}");
        vg_test_queue_done(&q);
    }
}

static void s31_a_list_buries_what_it_lacks(void **state)
{
    (void)state;
    struct vg_test_queue q = vg_test_queue(VG_FIFO_ORDERED, 1, "foo5 bar6 baz7");
    vg_test_deleted(q.f, "baz10");
    vg_test_list(q.f, "foo5", "0");
    vg_test_pop_all(q.f, "{D:baz10} {T:bar6} {R:foo5}");
    vg_test_queue_done(&q);
    q = vg_test_queue(VG_FIFO_BY_KEY, 0, "foo5 bar6 baz7");
    vg_test_deleted(q.f, "baz10");
    vg_test_list(q.f, "foo5", "0");
    vg_test_pop_all(q.f, "{D:baz10} {R:foo5} {T:bar6}");
    vg_test_queue_done(&q);
}

static void s32_a_tombstone_carries_the_newest_queued_state(void **state)
{
    (void)state;
    struct vg_test_queue q = vg_test_queue(VG_FIFO_ORDERED, 0, "bar6");
    vg_test_deleted(q.f, "bar6");
    vg_test_added(q.f, "bar100");
    vg_test_list(q.f, "foo5", "0");
    vg_test_pop_all(q.f, "{D:bar6} {A:bar100} {T:bar100 R:foo5}");
    vg_test_queue_done(&q);
    q = vg_test_queue(VG_FIFO_BY_KEY, 0, "bar6");
    vg_test_deleted(q.f, "bar6");
    vg_test_added(q.f, "bar100");
    vg_test_list(q.f, "foo5", "0");
    vg_test_pop_all(q.f, "{D:bar6 A:bar100 T:bar100} {R:foo5}");
    vg_test_queue_done(&q);
}

static void s33_two_empty_lists_make_one_tombstone(void **state)
{
    (void)state;
    struct vg_test_queue q = vg_test_queue(VG_FIFO_ORDERED, 0, "");
    vg_test_added(q.f, "foo10");
    vg_test_list(q.f, "", "0");
    vg_test_list(q.f, "", "0");
    vg_test_pop_all(q.f, "{A:foo10} {T:foo10}");
    vg_test_queue_done(&q);
    q = vg_test_queue(VG_FIFO_BY_KEY, 0, "");
    vg_test_added(q.f, "foo10");
    vg_test_list(q.f, "", "0");
    vg_test_list(q.f, "", "0");
    vg_test_pop_all(q.f, "{A:foo10 T:foo10}");
    vg_test_queue_done(&q);
}

static void s34_deletion_and_creation_stay_visible(void **state)
{
    (void)state;
    struct vg_test_queue q = vg_test_queue(VG_FIFO_ORDERED, 0, "foo1");
    vg_test_deleted(q.f, "foo1");
    vg_test_list(q.f, "foo2", "0");
    vg_test_pop_all(q.f, "{D:foo1} {R:foo2}");
    vg_test_queue_done(&q);
    q = vg_test_queue(VG_FIFO_BY_KEY, 0, "foo1");
    vg_test_deleted(q.f, "foo1");
    vg_test_list(q.f, "foo2", "0");
    vg_test_pop_all(q.f, "{D:foo1 R:foo2}");
    vg_test_queue_done(&q);
}

static void s35_a_resync_leaves_out_what_is_queued(void **state)
{
    (void)state;
    for (int mode = VG_FIFO_ORDERED; mode <= VG_FIFO_BY_KEY; mode++) {
        struct vg_test_queue q = vg_test_queue((enum vg_fifo_mode)mode, 1, "foo1 bar2");
        vg_test_updated(q.f, "foo3");
        assert_int_equal(vg_fifo_resync(q.f), 0);
        vg_test_pop_all(q.f, "{U:foo3} {S:bar2}");
        vg_test_queue_done(&q);
    }
}

static void s36_synced(void **state)
{
    (void)state;
    for (int m = VG_FIFO_ATOMIC; m <= VG_FIFO_BY_KEY; m++) {
        enum vg_fifo_mode mode = (enum vg_fifo_mode)m;
        struct vg_test_queue q = vg_test_queue(mode, 1, "");
        assert_false(vg_fifo_has_synced(q.f));
        vg_test_added(q.f, "a1");
        assert_true(vg_fifo_has_synced(q.f));
        vg_test_queue_done(&q);

        q = vg_test_queue(mode, 1, "");
        vg_test_list(q.f, "a1 b2", "0");
        assert_false(vg_fifo_has_synced(q.f));
        struct vg_test_log l = {.n = 0};
        assert_int_equal(vg_fifo_pop(q.f, false, vg_test_note, &l), 1);
        assert_int_equal(vg_fifo_has_synced(q.f), mode == VG_FIFO_ATOMIC);
        assert_int_equal(vg_fifo_pop(q.f, false, vg_test_note, &l), mode != VG_FIFO_ATOMIC);
        assert_true(vg_fifo_has_synced(q.f));
        vg_test_queue_done(&q);

        q = vg_test_queue(mode, 1, "");
        vg_test_list(q.f, "", "7");
        assert_int_equal(vg_fifo_has_synced(q.f), mode != VG_FIFO_ATOMIC);
        if (mode == VG_FIFO_ATOMIC)
            vg_test_pop(q.f, "!{L@7}");
        assert_true(vg_fifo_has_synced(q.f));
        vg_test_queue_done(&q);
    }
}

static int see_not_synced(void *arg, const struct vg_batch *b)
{
    assert_true(b->is_initial);
    assert_false(vg_fifo_has_synced(arg));
    return 0;
}

static void s36_synced_only_when_processed(void **state)
{
    (void)state;
    for (int mode = VG_FIFO_ATOMIC; mode <= VG_FIFO_BY_KEY; mode++) {
        struct vg_test_queue q = vg_test_queue((enum vg_fifo_mode)mode, 0, "");
        vg_test_list(q.f, "a1", "0");
        assert_int_equal(vg_fifo_pop(q.f, false, see_not_synced, q.f), 1);
        assert_true(vg_fifo_has_synced(q.f));
        vg_test_queue_done(&q);
    }
}

static void s37_deletions_of_the_first_list_count(void **state)
{
    (void)state;
    struct vg_test_queue q = vg_test_queue(VG_FIFO_ORDERED, 1, "bar6 baz7 foo5");
    vg_test_list(q.f, "foo5", "0");
    vg_test_pop(q.f, "!{T:bar6}");
    vg_test_pop(q.f, "!{T:baz7}");
    assert_false(vg_fifo_has_synced(q.f));
    vg_test_pop(q.f, "!{R:foo5}");
    assert_true(vg_fifo_has_synced(q.f));
    vg_test_queue_done(&q);
    q = vg_test_queue(VG_FIFO_BY_KEY, 1, "bar6 baz7 foo5");
    vg_test_list(q.f, "foo5", "0");
    vg_test_pop(q.f, "!{R:foo5}");
    vg_test_pop(q.f, "!{T:bar6}");
    assert_false(vg_fifo_has_synced(q.f));
    vg_test_pop(q.f, "!{T:baz7}");
    assert_true(vg_fifo_has_synced(q.f));
    vg_test_queue_done(&q);
}

static void s38_order_of_several_objects(void **state)
{
    (void)state;
    static const char *const events[] = {"foo10", "bar1", "foo11", "foo13", "zab30"};
    for (int mode = VG_FIFO_ATOMIC; mode <= VG_FIFO_BY_KEY; mode++) {
        struct vg_test_queue q = vg_test_queue((enum vg_fifo_mode)mode, 1, "");
        bool by_key = mode == VG_FIFO_BY_KEY;
        for (size_t i = 0; i < VG_ARRAY_LEN(events); i++)
            vg_test_added(q.f, events[i]);
        vg_test_pop(q.f, by_key ? "{A:foo10 A:foo11 A:foo13}" : "{A:foo10}");
        vg_test_added(q.f, "foo14");
        vg_test_pop_all(q.f, by_key ? "{A:bar1} {A:zab30} {A:foo14}"
                                    : "{A:bar1} {A:foo11} {A:foo13} {A:zab30} {A:foo14}");
        vg_test_queue_done(&q);
    }
}

static void s40_batches(void **state)
{
    (void)state;
    struct vg_test_queue q = vg_test_queue(VG_FIFO_ORDERED, 2, "");
    vg_test_list(q.f, "a1 b2 c3", "0");
    vg_test_updated(q.f, "d4");
    vg_test_pop_all(q.f, "!{R:a1 R:b2} !{R:c3} {U:d4}");
    vg_test_updated(q.f, "a5");
    vg_test_updated(q.f, "a6");
    vg_test_updated(q.f, "b7");
    vg_test_pop_all(q.f, "{U:a5} {U:a6 U:b7}");
    vg_test_queue_done(&q);

    q = vg_test_queue(VG_FIFO_ATOMIC, 0, "");
    for (unsigned i = 0; i < VG_FIFO_BATCH_MAX + 5; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%c%c%c7", 'a' + (char)(i / 676), 'a' + (char)(i / 26 % 26),
                 'a' + (char)(i % 26));
        vg_test_added(q.f, name);
    }
    size_t before = vg_fifo_backlog(q.f);
    struct vg_consumer c;
    vg_consumer_init(&c, q.known, &(struct vg_consumer_calls){0});
    assert_int_equal(vg_fifo_pop(q.f, false, vg_consume, &c), 1);
    assert_int_equal(before - vg_fifo_backlog(q.f), VG_FIFO_BATCH_MAX);
    assert_int_equal(vg_fifo_pop(q.f, false, vg_consume, &c), 1);
    assert_int_equal(vg_fifo_backlog(q.f), 0);
    assert_int_equal(vigil_store_count(q.known), before);
    vg_consumer_done(&c);
    vg_test_queue_done(&q);
}

static void s41_lists_syncs_and_bookmarks_are_single_entries(void **state)
{
    (void)state;
    struct vg_test_queue q = vg_test_queue(VG_FIFO_ATOMIC, 0, "");
    vg_test_added(q.f, "foo1");
    vg_test_list(q.f, "foo5", "10");
    vg_test_list(q.f, "foo5 bar6", "20");
    vg_test_list(q.f, "", "56");
    vg_test_pop_all(q.f, "{A:foo1} {L@10 foo5} {L@20 foo5 bar6} {L@56}");
    vg_test_queue_done(&q);

    q = vg_test_queue(VG_FIFO_ATOMIC, 0, "");
    assert_int_equal(vg_fifo_bookmark(q.f, VG_SLICE_LIT("123")), 0);
    vg_test_list(q.f, "foo5", "200");
    vg_test_updated(q.f, "foo6");
    vg_test_updated(q.f, "bar7");
    assert_int_equal(vg_fifo_resync(q.f), 0);
    vg_test_pop_all(q.f, "!{B@123} !{L@200 foo5} {U:foo6 U:bar7} {Y}");
    vg_test_queue_done(&q);
}

static void bookmarks_pass_the_other_queues_by(void **state)
{
    (void)state;
    struct vg_test_queue q = vg_test_queue(VG_FIFO_ORDERED, 0, "");
    assert_int_equal(vg_fifo_bookmark(q.f, VG_SLICE_LIT("1")), 0);
    assert_int_equal(vg_fifo_backlog(q.f), 0);
    vg_test_queue_done(&q);
}

static void known_objects_belong_to_the_other_queues(void **state)
{
    (void)state;
    struct vg_fifo *f;
    struct vg_test_queue q = vg_test_queue(VG_FIFO_ATOMIC, 0, "");
    struct vg_fifo_opts opts = {.mode = VG_FIFO_ATOMIC, .known = q.known};
    assert_int_equal(vg_fifo_new(&opts, &f), VIGIL_E_INVALID);
    opts = (struct vg_fifo_opts){.mode = VG_FIFO_ORDERED};
    assert_int_equal(vg_fifo_new(&opts, &f), VIGIL_E_INVALID);
    opts.mode = VG_FIFO_BY_KEY;
    assert_int_equal(vg_fifo_new(&opts, &f), VIGIL_E_INVALID);
    vg_test_queue_done(&q);
}

static void of_two_deletions_the_one_that_was_seen_stays(void **state)
{
    (void)state;
    struct vg_test_queue q = vg_test_queue(VG_FIFO_BY_KEY, 0, "foo1");
    vg_test_deleted(q.f, "foo2");
    vg_test_deleted(q.f, "foo3");
    vg_test_pop_all(q.f, "{D:foo2}");
    vg_test_list(q.f, "", "0"); /* a tombstone */
    vg_test_deleted(q.f, "foo4");
    vg_test_pop_all(q.f, "{D:foo4}");
    vg_test_queue_done(&q);
}

/* ---- transforms ---- */

struct transformed {
    unsigned calls;
    const char *rejects;
};

static const struct vigil_object *upper(void *arg, const struct vigil_object *o)
{
    struct transformed *t = arg;
    t->calls++;
    if (t->rejects && vigil_text_is(vigil_object_name(o), t->rejects))
        return NULL;
    return vigil_object_merge(o, vigil_text("{\"metadata\":{\"resourceVersion\":\"9\"}}"), NULL);
}

static void a_transform_sees_each_object_once(void **state)
{
    (void)state;
    for (int m = VG_FIFO_ATOMIC; m <= VG_FIFO_BY_KEY; m++) {
        enum vg_fifo_mode mode = (enum vg_fifo_mode)m;
        struct transformed t = {0};
        struct vg_test_queue q = vg_test_queue(mode, 1, "old1");
        vg_fifo_free(q.f);
        struct vg_fifo_opts opts = {.mode = mode,
                                    .known = mode == VG_FIFO_ATOMIC ? NULL : q.known,
                                    .batch_max = 1,
                                    .transform = upper,
                                    .transform_arg = &t};
        assert_int_equal(vg_fifo_new(&opts, &q.f), 0);
        assert_int_equal(vg_fifo_resync(q.f), 0);
        assert_int_equal(t.calls, 0);
        vg_test_pop_all(q.f, mode == VG_FIFO_ATOMIC ? "!{Y}" : "!{S:old1}");
        vg_test_list(q.f, "a1", "5");
        assert_int_equal(t.calls, 1); /* not for the tombstone of old */
        static const char *const lists[] = {"!{L@5 a9}", "!{T:old1} !{R:a9}", "!{R:a9} !{T:old1}"};
        vg_test_pop_all(q.f, lists[mode]);
        vg_test_updated(q.f, "a2");
        vg_test_deleted(q.f, "old2");
        assert_int_equal(t.calls, 3);
        vg_test_pop_all(q.f, "{U:a9} {D:old9}");
        vg_test_queue_done(&q);
    }
}

static void what_a_transform_rejects_is_not_queued(void **state)
{
    (void)state;
    struct transformed t = {.rejects = "bad"};
    struct vg_fifo *f;
    struct vg_fifo_opts opts = {.transform = upper, .transform_arg = &t};
    assert_int_equal(vg_fifo_new(&opts, &f), 0);
    assert_int_equal(vg_test_try_list(f, "a1 bad2 c3", "5"), VIGIL_E_INVALID);
    assert_int_equal(vg_fifo_backlog(f), 0);
    assert_false(vg_fifo_has_synced(f));
    const struct vigil_object *o = vg_test_named("bad3");
    assert_int_equal(vg_fifo_put(f, VG_DELTA_ADDED, o), VIGIL_E_INVALID);
    vigil_object_unref(o);
    assert_int_equal(vg_fifo_backlog(f), 0);
    vg_fifo_free(f);
}

/* ---- the end, and memory ---- */

static void what_is_queued_can_be_popped_after_the_end(void **state)
{
    (void)state;
    struct vg_test_queue q = vg_test_queue(VG_FIFO_ATOMIC, 0, "");
    struct vg_test_log l = {.n = 0};
    vg_test_added(q.f, "a1");
    vg_fifo_close(q.f);
    vg_test_pop(q.f, "{A:a1}");
    assert_int_equal(vg_fifo_pop(q.f, true, vg_test_note, &l), VIGIL_E_CLOSED);
    assert_int_equal(vg_fifo_pop(q.f, false, vg_test_note, &l), VIGIL_E_CLOSED);
    vg_test_queue_done(&q);
}

static void a_queue_that_is_freed_gives_back_what_it_holds(void **state)
{
    (void)state;
    for (int mode = VG_FIFO_ATOMIC; mode <= VG_FIFO_BY_KEY; mode++) {
        struct vg_test_queue q = vg_test_queue((enum vg_fifo_mode)mode, 0, "known1");
        vg_test_list(q.f, "a1 b2", "5");
        vg_test_updated(q.f, "a3");
        assert_int_equal(vg_fifo_bookmark(q.f, VG_SLICE_LIT("6")), 0);
        assert_int_equal(vg_fifo_resync(q.f), 0);
        vg_test_queue_done(&q); /* leaks are ASan's to find */
    }
    vg_fifo_free(NULL);
}

static void a_version_that_is_too_long_is_refused(void **state)
{
    (void)state;
    struct vg_test_queue q = vg_test_queue(VG_FIFO_ATOMIC, 0, "");
    char version[VG_OBJECT_VERSION_MAX + 1] = {0};
    assert_int_equal(vg_fifo_bookmark(q.f, vg_slice(version, sizeof(version))), VIGIL_E_TOO_LARGE);
    assert_int_equal(vg_fifo_replace(q.f, NULL, 0, vg_slice(version, sizeof(version))),
                     VIGIL_E_TOO_LARGE);
    vg_test_queue_done(&q);
}

static int count_all(void *arg, const struct vg_batch *b)
{
    *(size_t *)arg += b->n;
    return 0;
}

static void without_memory_an_event_is_queued_or_refused(void **state)
{
    (void)state;
    const struct vigil_object *o[] = {vg_test_named("a1"), vg_test_named("b2"),
                                      vg_test_named("a3")};
    struct vigil_store *known;
    assert_int_equal(vigil_store_new(NULL, 0, &known, NULL), 0);
    for (int mode = VG_FIFO_ATOMIC; mode <= VG_FIFO_BY_KEY; mode++) {
        VG_ALLOC_FAIL_LOOP (n) {
            struct vg_fifo *f = NULL;
            struct vg_fifo_opts opts = {.mode = (enum vg_fifo_mode)mode,
                                        .known = mode == VG_FIFO_ATOMIC ? NULL : known};
            size_t queued = 0, popped = 0;
            int r = vg_fifo_new(&opts, &f);
            bool ok = r == 0;
            for (size_t i = 0; f && i < 3; i++) {
                r = vg_fifo_put(f, VG_DELTA_ADDED, o[i]);
                queued += r == 0;
                ok = ok && r == 0;
            }
            if (f)
                ok = vg_fifo_bookmark(f, VG_SLICE_LIT("1")) == 0 && ok;
            while (f && vg_fifo_pop(f, false, count_all, &popped) > 0)
                continue;
            if (f)
                ok = vg_fifo_replace(f, o, 2, VG_SLICE_LIT("5")) == 0 && ok;
            if (f)
                ok = vg_fifo_resync(f) == 0 && ok;
            (void)vg_test_alloc_failed();
            assert_true(popped >= queued);
            (void)ok; /* pops shrink their batches without memory: nothing is refused then */
            vg_fifo_free(f);
        }
    }
    vigil_store_free(known);
    for (size_t i = 0; i < 3; i++)
        vigil_object_unref(o[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s29_events_of_one_object),
        cmocka_unit_test(s30_deletion_of_an_unknown_object),
        cmocka_unit_test(s31_a_list_buries_what_it_lacks),
        cmocka_unit_test(s32_a_tombstone_carries_the_newest_queued_state),
        cmocka_unit_test(s33_two_empty_lists_make_one_tombstone),
        cmocka_unit_test(s34_deletion_and_creation_stay_visible),
        cmocka_unit_test(s35_a_resync_leaves_out_what_is_queued),
        cmocka_unit_test(s36_synced),
        cmocka_unit_test(s36_synced_only_when_processed),
        cmocka_unit_test(s37_deletions_of_the_first_list_count),
        cmocka_unit_test(s38_order_of_several_objects),
        cmocka_unit_test(s40_batches),
        cmocka_unit_test(s41_lists_syncs_and_bookmarks_are_single_entries),
        cmocka_unit_test(bookmarks_pass_the_other_queues_by),
        cmocka_unit_test(known_objects_belong_to_the_other_queues),
        cmocka_unit_test(of_two_deletions_the_one_that_was_seen_stays),
        cmocka_unit_test(a_transform_sees_each_object_once),
        cmocka_unit_test(what_a_transform_rejects_is_not_queued),
        cmocka_unit_test(what_is_queued_can_be_popped_after_the_end),
        cmocka_unit_test(a_queue_that_is_freed_gives_back_what_it_holds),
        cmocka_unit_test(a_version_that_is_too_long_is_refused),
        cmocka_unit_test(without_memory_an_event_is_queued_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
