/* Scenarios 42 to 51 of the client's contract, fed by hand on a loop that the test turns. */
#include "informer_testing.h"

#define SECOND VG_NS_PER_S

/* ---- what is told ---- */

static void check_list_again(enum vigil_queue queue, const char *want)
{
    struct rig g;
    struct notebook b;
    struct vigil_informer_opts opts = VIGIL_INIT(struct vigil_informer_opts);
    opts.queue = queue;
    rig_up(&g, VIGIL_OWN_LOOP, true, &opts);
    struct vigil_handler h = notebook_handler(&b);
    rig_handle(&g, &h);
    assert_int_equal(vigil_informer_start(g.i), 0);
    assert_int_equal(rig_list(&g, "p1@1 p2@1 p3@1", "3"), 0);
    assert_false(vigil_informer_has_synced(g.i));
    rig_settle(&g);
    assert_true(vigil_informer_has_synced(g.i));
    notebook_expect(&b, "+p1@1! +p2@1! +p3@1! synced");
    b.store = vigil_informer_store(g.i);
    assert_int_equal(rig_list(&g, "p1@4 p2@5 p4@6", "6"), 0);
    rig_settle(&g);
    notebook_expect(&b, want);
    assert_int_equal(vigil_store_count(b.store), 3);
    rig_down(&g);
    notebook_done(&b);
}

static void a_new_list_is_told_by_its_differences(void **state)
{
    (void)state;
    check_list_again(VIGIL_QUEUE_ORDERED, "-p3@1t ~p1@1>4 ~p2@1>5 +p4@6");
}

static void so_it_is_by_key(void **state)
{
    (void)state;
    check_list_again(VIGIL_QUEUE_BY_KEY, "~p1@1>4 ~p2@1>5 +p4@6 -p3@1t");
}

static void events_are_told_as_the_store_saw_them(void **state)
{
    (void)state;
    struct rig g;
    struct notebook b;
    rig_up(&g, VIGIL_OWN_LOOP, true, NULL);
    struct vigil_handler h = notebook_handler(&b);
    rig_handle(&g, &h);
    assert_int_equal(vigil_informer_start(g.i), 0);
    assert_int_equal(rig_list(&g, "", "1"), 0);
    assert_int_equal(rig_event(&g, "a@2"), 0);
    assert_int_equal(rig_event(&g, "a@3"), 0);
    assert_int_equal(rig_event(&g, "-a@4"), 0);
    assert_int_equal(rig_event(&g, "a@5"), 0);
    assert_int_equal(rig_event(&g, "-ghost@6"), 0);
    rig_settle(&g);
    notebook_expect(&b, "synced +a@2 ~a@2>3 -a@4 +a@5 -ghost@6");
    rig_down(&g);
    notebook_done(&b);
}

/* ---- resync ---- */

static void each_handler_is_resynced_at_its_own_pace(void **state)
{
    (void)state;
    struct rig g;
    struct notebook b[3];
    const uint64_t periods[] = {VIGIL_NO_RESYNC, 2000, 3000};
    struct vigil_informer_opts opts = VIGIL_INIT(struct vigil_informer_opts);
    opts.resync_ms = 1000;
    rig_up(&g, VIGIL_OWN_LOOP, true, &opts);
    for (int i = 0; i < 3; i++) {
        struct vigil_handler h = notebook_handler(&b[i]);
        h.resync_ms = periods[i];
        rig_handle(&g, &h);
    }
    assert_int_equal(vigil_informer_start(g.i), 0);
    assert_int_equal(rig_list(&g, "p1@1 p2@1", "1"), 0);
    rig_settle(&g);
    for (int i = 0; i < 3; i++)
        notebook_expect(&b[i], "+p1@1! +p2@1! synced");
    static const char *const told[][3] = {{"", "", ""},
                                          {"", "~p1@1>1 ~p2@1>1", ""},
                                          {"", "", "~p1@1>1 ~p2@1>1"},
                                          {"", "~p1@1>1 ~p2@1>1", ""}};
    for (int s = 0; s < 4; s++) {
        vg_fake_clock_advance(&g.clock, SECOND);
        rig_settle(&g);
        for (int i = 0; i < 3; i++)
            notebook_expect(&b[i], told[s][i]);
    }
    rig_down(&g);
    for (int i = 0; i < 3; i++)
        notebook_done(&b[i]);
}

static void the_shortest_period_before_the_start_counts(void **state)
{
    (void)state;
    struct rig g;
    struct vigil_informer_opts opts = VIGIL_INIT(struct vigil_informer_opts);
    const uint64_t hours12 = UINT64_C(12) * 3600 * 1000;
    opts.resync_ms = hours12;
    rig_up(&g, VIGIL_OWN_LOOP, true, &opts);
    const uint64_t asked[] = {VIGIL_NO_RESYNC, 60000, 55000, 5000, 1};
    const uint64_t checks[] = {hours12, 60000, 55000, 5000, 1000};
    struct vigil_registration *r[6];
    for (size_t i = 0; i < 5; i++) {
        struct vigil_handler h = {.size = sizeof(h), .resync_ms = asked[i]};
        r[i] = rig_handle(&g, &h);
        assert_int_equal(g.i->check_ms, checks[i]);
    }
    assert_int_equal(r[0]->handler->period_ms, 0);
    assert_int_equal(r[1]->handler->period_ms, 60000);
    assert_int_equal(vigil_informer_start(g.i), 0);
    g.i->check_ms = 5000; /* as if the last had not been there */
    struct vigil_handler late = {.size = sizeof(late), .resync_ms = 2000};
    r[5] = rig_handle(&g, &late);
    assert_int_equal(r[5]->handler->period_ms, 5000);
    rig_down(&g);
}

static void a_list_reminds_only_those_who_are_syncing(void **state)
{
    (void)state;
    struct rig g;
    struct notebook b[2];
    struct vigil_informer_opts opts = VIGIL_INIT(struct vigil_informer_opts);
    opts.resync_ms = 2000;
    rig_up(&g, VIGIL_OWN_LOOP, true, &opts);
    for (int i = 0; i < 2; i++) {
        struct vigil_handler h = notebook_handler(&b[i]);
        h.resync_ms = i ? 2000 : VIGIL_NO_RESYNC;
        rig_handle(&g, &h);
    }
    assert_int_equal(vigil_informer_start(g.i), 0);
    assert_int_equal(rig_list(&g, "p1@1 p2@1", "1"), 0);
    rig_settle(&g);
    vg_fake_clock_advance(&g.clock, 2 * SECOND);
    rig_settle(&g);
    notebook_expect(&b[0], "+p1@1! +p2@1! synced");
    notebook_expect(&b[1], "+p1@1! +p2@1! synced ~p1@1>1 ~p2@1>1");
    assert_int_equal(rig_list(&g, "p1@1 p2@2 p3@3", "3"), 0);
    rig_settle(&g);
    notebook_expect(&b[0], "~p2@1>2 +p3@3");
    notebook_expect(&b[1], "~p1@1>1 ~p2@1>2 +p3@3");
    rig_down(&g);
    for (int i = 0; i < 2; i++)
        notebook_done(&b[i]);
}

/* ---- transform, filter ---- */

static const struct vigil_object *shout(void *arg, const struct vigil_object *o)
{
    struct vigil_text name = vigil_object_name(o);
    char loud[64], version[32];
    (void)arg;
    if (vigil_text_is(name, "secret"))
        return NULL;
    for (size_t i = 0; i <= name.n; i++)
        loud[i] = i < name.n ? (char)(name.p[i] & ~0x20) : 0;
    struct vigil_text v = vigil_object_resource_version(o);
    snprintf(version, sizeof(version), "%.*s", VIGIL_TEXT_ARG(v));
    return vg_test_object("ns", loud, version);
}

static void what_is_transformed_is_all_that_is_seen(void **state)
{
    (void)state;
    struct rig g;
    struct notebook b;
    struct vigil_informer_opts opts = VIGIL_INIT(struct vigil_informer_opts);
    opts.transform = shout;
    rig_up(&g, VIGIL_OWN_LOOP, true, &opts);
    struct vigil_handler h = notebook_handler(&b);
    b.store = vigil_informer_store(g.i);
    rig_handle(&g, &h);
    assert_int_equal(rig_list(&g, "ab@1", "1"), 0);
    assert_int_equal(rig_event(&g, "cd@2"), 0);
    assert_true(rig_event(&g, "secret@3") < 0);
    rig_settle(&g);
    notebook_expect(&b, "+AB@1! synced +CD@2");
    rig_down(&g);
    notebook_done(&b);
}

static bool is_even(void *arg, const struct vigil_object *o)
{
    struct vigil_text v = vigil_object_resource_version(o);
    (void)arg;
    return (v.p[v.n - 1] - '0') % 2 == 0;
}

static void a_filter_turns_updates_into_what_its_reader_sees(void **state)
{
    (void)state;
    struct rig g;
    struct notebook b;
    rig_up(&g, VIGIL_OWN_LOOP, true, NULL);
    struct vigil_handler h = notebook_handler(&b);
    h.filter = is_even;
    rig_handle(&g, &h);
    assert_int_equal(rig_list(&g, "a@2 b@1", "2"), 0);
    static const char *const events[] = {"a@4", "a@5", "a@7", "a@8", "-a@9", "b@10", "-b@12"};
    for (size_t i = 0; i < VG_ARRAY_LEN(events); i++) {
        assert_int_equal(rig_event(&g, events[i]), 0);
        rig_settle(&g);
    }
    notebook_expect(&b, "+a@2! synced ~a@2>4 -a@4 +a@8 +b@10 -b@12");
    rig_down(&g);
    notebook_done(&b);
}

/* ---- adding and removing ---- */

static void a_late_handler_is_told_of_all_there_is(void **state)
{
    (void)state;
    struct rig g;
    struct notebook b[2];
    rig_up(&g, VIGIL_OWN_LOOP, true, NULL);
    struct vigil_handler h = notebook_handler(&b[0]), late = notebook_handler(&b[1]);
    rig_handle(&g, &h);
    assert_int_equal(rig_list(&g, "a@1 b@1", "1"), 0);
    rig_settle(&g);
    notebook_expect(&b[0], "+a@1! +b@1! synced");
    struct vigil_registration *r = rig_handle(&g, &late);
    assert_int_equal(rig_event(&g, "b@2"), 0);
    assert_false(vigil_registration_has_synced(r));
    rig_settle(&g);
    assert_true(vigil_registration_has_synced(r));
    notebook_expect(&b[0], "~b@1>2");
    notebook_expect(&b[1], "+a@1! +b@1! synced ~b@1>2");
    rig_down(&g);
    for (int i = 0; i < 2; i++)
        notebook_done(&b[i]);
}

static void what_was_removed_hears_no_more(void **state)
{
    (void)state;
    struct rig g, other;
    struct notebook b[2];
    rig_up(&g, VIGIL_OWN_LOOP, true, NULL);
    rig_up(&other, VIGIL_OWN_LOOP, true, NULL);
    struct vigil_handler h = notebook_handler(&b[0]), h2 = notebook_handler(&b[1]);
    struct vigil_registration *r1 = rig_handle(&g, &h), *r2 = rig_handle(&g, &h2);
    assert_ptr_not_equal(r1, r2);
    assert_int_equal(rig_list(&g, "a@1", "1"), 0);
    rig_settle(&g);
    assert_int_equal(rig_event(&g, "a@2"), 0);
    vigil_informer_remove_handler(g.i, r1);
    vigil_informer_remove_handler(g.i, r1); /* again */
    assert_true(vigil_registration_has_synced(r1));
    vigil_informer_remove_handler(g.i, NULL);
    vigil_informer_remove_handler(other.i, r2); /* foreign */
    rig_settle(&g);
    notebook_expect(&b[0], "+a@1! synced");
    notebook_expect(&b[1], "+a@1! synced ~a@1>2");
    vigil_informer_stop(g.i);
    vigil_informer_stop(g.i);
    assert_int_equal(vigil_informer_add_handler(g.i, &h, NULL, NULL), VIGIL_E_CLOSED);
    assert_int_equal(vigil_informer_start(g.i), VIGIL_E_CLOSED);
    assert_int_equal(vigil_informer_wait_for(g.i, vigil_text("9"), 0), VIGIL_E_CLOSED);
    vigil_informer_remove_handler(g.i, r2);
    vigil_informer_remove_handler(g.i, r2);
    rig_down(&g);
    rig_down(&other);
    for (int i = 0; i < 2; i++)
        notebook_done(&b[i]);
}

struct leaver {
    struct rig *g;
    struct vigil_registration *self, *victim;
    int calls;
};

static void leave(void *arg, const struct vigil_object *o, bool is_initial)
{
    struct leaver *l = arg;
    (void)o;
    (void)is_initial;
    l->calls++;
    vigil_informer_remove_handler(l->g->i, vg_steal(l->victim));
    vigil_informer_remove_handler(l->g->i, l->self);
    vigil_informer_remove_handler(l->g->i, l->self);
}

static void a_callback_may_remove_itself_and_others(void **state)
{
    (void)state;
    struct rig g;
    struct notebook b;
    struct leaver l = {.g = &g};
    rig_up(&g, VIGIL_OWN_LOOP, true, NULL);
    struct vigil_handler h = {.size = sizeof(h), .on_add = leave, .arg = &l};
    struct vigil_handler h2 = notebook_handler(&b);
    l.self = rig_handle(&g, &h);
    l.victim = rig_handle(&g, &h2);
    assert_int_equal(rig_list(&g, "a@1 b@1", "1"), 0);
    rig_settle(&g);
    assert_int_equal(l.calls, 1);
    notebook_expect(&b, "");
    rig_down(&g);
    notebook_done(&b);
}

/* ---- overflow on the loop ---- */

static void events_of_one_object_that_wait_are_merged(void **state)
{
    (void)state;
    struct rig g;
    struct notebook b;
    rig_up(&g, VIGIL_OWN_LOOP, true, NULL);
    struct vigil_handler h = notebook_handler(&b);
    h.buffer_max = 1;
    h.overflow = VIGIL_OVERFLOW_MERGE;
    struct vigil_registration *r = rig_handle(&g, &h);
    static const char *const events[] = {"a@1", "a@2", "b@3", "-b@4", "c@5",  "c@6",
                                         "c@7", "d@8", "d@9", "d@10", "-d@11"};
    for (size_t i = 0; i < VG_ARRAY_LEN(events); i++) {
        assert_int_equal(rig_event(&g, events[i]), 0);
        struct vg_timer *t = &g.i->work; /* consumes without telling: the thread would be slow */
        r->handler->has_thread = true;
        vg_timer_stop(g.i->loop, t);
        vg_informer_on_work(t);
    }
    r->handler->has_thread = false;
    vg_informer_work_soon(g.i);
    rig_settle(&g);
    notebook_expect(&b, "+a@2 synced +c@7");
    rig_down(&g);
    notebook_done(&b);
}

/* ---- waiting ---- */

static void waiting_turns_the_loop(void **state)
{
    (void)state;
    struct rig g;
    rig_up(&g, VIGIL_OWN_LOOP, false, NULL);
    assert_int_equal(vigil_informer_wait_sync(g.i, 1), VIGIL_E_TIMEOUT);
    assert_int_equal(rig_list(&g, "a@1", "1"), 0);
    assert_int_equal(vigil_informer_wait_sync(g.i, 0), 0);
    assert_int_equal(vigil_informer_wait_for(g.i, vigil_text("10"), 1), VIGIL_E_TIMEOUT);
    assert_int_equal(rig_event(&g, "a@9"), 0);
    assert_int_equal(vigil_informer_wait_for(g.i, vigil_text("9"), 0), 0);
    g.sink.bookmark(g.sink.arg, vigil_text("10"));
    assert_int_equal(vigil_informer_wait_for(g.i, vigil_text("10"), 0), 0);
    assert_int_equal(vigil_informer_wait_for(g.i, vigil_text("9"), 0), 0);
    rig_down(&g);
}

static void by_key_the_queue_must_be_empty(void **state)
{
    (void)state;
    struct rig g;
    struct vigil_informer_opts opts = VIGIL_INIT(struct vigil_informer_opts);
    opts.queue = VIGIL_QUEUE_BY_KEY;
    rig_up(&g, VIGIL_OWN_LOOP, false, &opts);
    assert_int_equal(rig_event(&g, "a@8"), 0);
    assert_int_equal(rig_event(&g, "a@9"), 0);
    assert_int_equal(rig_event(&g, "b@10"), 0);
    assert_int_equal(vigil_informer_wait_for(g.i, vigil_text("10"), 0), 0);
    assert_int_equal(vigil_store_count(vigil_informer_store(g.i)), 2);
    rig_down(&g);
}

/* ---- memory ---- */

static void count_add(void *arg, const struct vigil_object *o, bool is_initial)
{
    (void)o;
    (void)is_initial;
    ++*(size_t *)arg;
}

/* Feeds a list and an event, perhaps in vain. */
static void feed_some(struct rig *g, const struct vigil_object *const *v, size_t n)
{
    if (g->sink.replace(g->sink.arg, v, n - 1, vigil_text("5")) < 0)
        return;
    rig_settle(g);
    if (g->sink.put(g->sink.arg, v[n - 1]) == 0)
        rig_settle(g);
}

/* Whatever fails: handlers were told of what the store shows, or the informer lists again. */
static bool try_without_memory(struct rig *g, uint64_t n, const struct vigil_object *const *v)
{
    struct vigil_informer_opts opts = VIGIL_INIT(struct vigil_informer_opts);
    size_t told[2] = {0, 0};
    struct vigil_handler h = {.size = sizeof(h), .on_add = count_add};
    struct vigil_registration *r;
    vg_alloc_fail_at(n, 0);
    int e = vg_informer_new(g->c, &opts, true, &g->i, NULL);
    for (int k = 0; e == 0 && k < 2; k++) {
        h.arg = &told[k];
        h.overflow = k ? VIGIL_OVERFLOW_MERGE : VIGIL_OVERFLOW_WAIT;
        h.buffer_max = 1;
        e = vigil_informer_add_handler(g->i, &h, &r, NULL);
    }
    if (e == 0) {
        g->sink = vg_informer_sink(g->i);
        feed_some(g, v, 3);
        assert_int_equal(told[0], vigil_store_count(vigil_informer_store(g->i)));
        assert_int_equal(told[0], told[1]);
    } else {
        assert_int_equal(e, VIGIL_E_MEMORY);
    }
    bool was_last = vg_alloc_fail_at(0, 0) < n;
    assert_true(!was_last || told[0] == 3);
    vigil_informer_free(vg_steal(g->i));
    return was_last;
}

static void without_memory_nothing_is_half_told(void **state)
{
    (void)state;
    struct rig g;
    const struct vigil_object *v[] = {vg_test_object("ns", "a", "1"),
                                      vg_test_object("ns", "b", "2"),
                                      vg_test_object("ns", "c", "6")};
    rig_up(&g, VIGIL_OWN_LOOP, true, NULL);
    vigil_informer_free(vg_steal(g.i));
    uint64_t n = 1;
    while (!try_without_memory(&g, n, v))
        n++;
    assert_true(n > 5);
    rig_down(&g);
    for (size_t i = 0; i < VG_ARRAY_LEN(v); i++)
        vigil_object_unref(v[i]);
}

static void an_object_that_is_twice_in_a_list_is_told_once(void **state)
{
    (void)state;
    static const enum vigil_queue QUEUES[] = {VIGIL_QUEUE_ORDERED, VIGIL_QUEUE_BY_KEY};
    for (size_t i = 0; i < VG_ARRAY_LEN(QUEUES); i++) {
        struct rig g;
        struct notebook b;
        struct vigil_informer_opts o = VIGIL_INIT(struct vigil_informer_opts);
        o.queue = QUEUES[i];
        rig_up(&g, VIGIL_OWN_LOOP, true, &o);
        struct vigil_handler h = notebook_handler(&b);
        rig_handle(&g, &h);
        assert_true(rig_list(&g, "a@1 b@1 a@2 a@3 c@1 b@1", "5") >= 0);
        rig_settle(&g);
        notebook_expect(&b, "+a@3! +b@1! +c@1! synced");
        assert_true(rig_list(&g, "c@1 b@2 a@3 b@4", "6") >= 0);
        rig_settle(&g);
        notebook_expect(&b, "~c@1>1 ~b@1>4 ~a@3>3");
        assert_true(rig_list(&g, "a@3 a@3", "7") >= 0);
        rig_settle(&g);
        if (QUEUES[i] == VIGIL_QUEUE_ORDERED) /* deletions come first, in the order of keys */
            notebook_expect(&b, "-b@4t -c@1t ~a@3>3");
        assert_int_equal(vigil_store_count(vigil_informer_store(g.i)), 1);
        rig_down(&g);
        notebook_done(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_that_is_twice_in_a_list_is_told_once),
        cmocka_unit_test(a_new_list_is_told_by_its_differences),
        cmocka_unit_test(so_it_is_by_key),
        cmocka_unit_test(events_are_told_as_the_store_saw_them),
        cmocka_unit_test(each_handler_is_resynced_at_its_own_pace),
        cmocka_unit_test(the_shortest_period_before_the_start_counts),
        cmocka_unit_test(a_list_reminds_only_those_who_are_syncing),
        cmocka_unit_test(what_is_transformed_is_all_that_is_seen),
        cmocka_unit_test(a_filter_turns_updates_into_what_its_reader_sees),
        cmocka_unit_test(a_late_handler_is_told_of_all_there_is),
        cmocka_unit_test(what_was_removed_hears_no_more),
        cmocka_unit_test(a_callback_may_remove_itself_and_others),
        cmocka_unit_test(events_of_one_object_that_wait_are_merged),
        cmocka_unit_test(waiting_turns_the_loop),
        cmocka_unit_test(by_key_the_queue_must_be_empty),
        cmocka_unit_test(without_memory_nothing_is_half_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
