/* reflector_test.c - the reflector against a scripted server: the scenarios of the client contract,
 * by their numbers. */
#include "world_testing.h"

static void scenario_01_list_then_watch(void **state)
{
    (void)state;
    WORLD(w, LISTED,
          STREAM(EVENT("MODIFIED", POD("foo", "2")) EVENT("ADDED", POD("bar", "3")), STEP_HOLD));
    w.opts.no_watch_list = true;
    world_start(&w);
    WORLD_UNTIL(&w, world_has(&w, "foo@2 bar@3"));
    assert_asked(&w, "list 0/500", "watch 1");
    char value[32];
    assert_string_equal(script_param(w.server, 1, "allowWatchBookmarks", value, 32), "true");
    world_done(&w);
}

static void scenario_02_watch_list(void **state)
{
    (void)state;
    WORLD(w, STREAM(EVENT("ADDED", POD("foo", "1")) END_MARK("1", "true")
                        EVENT("MODIFIED", POD("foo", "2")) EVENT("ADDED", POD("bar", "3")),
                    STEP_HOLD));
    world_start(&w);
    WORLD_UNTIL(&w, world_has(&w, "foo@2 bar@3"));
    assert_asked(&w, "stream ");
    char value[32];
    assert_string_equal(script_param(w.server, 0, "resourceVersionMatch", value, 32),
                        "NotOlderThan");
    assert_string_equal(script_param(w.server, 0, "allowWatchBookmarks", value, 32), "true");
    vg_assert_slice_equal(vg_buf_slice(&w.calls), VG_SLICE_LIT("replace 1@1;put foo@2;put bar@3;"));
    world_done(&w);
}

static void scenario_03_other_kinds_are_skipped(void **state)
{
    (void)state;
    WORLD(w, LISTED,
          STREAM(EVENT("ADDED", "{\"kind\":\"Service\",\"apiVersion\":\"v1\",\"metadata\":{"
                                "\"name\":\"s\",\"resourceVersion\":\"90\"}}")
                     EVENT("ADDED", "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\","
                                    "\"rows\":[]}") EVENT("MODIFIED", POD("bar", "55"))
                         EVENT("ADDED", POD("baz", "32")),
                 STEP_HOLD));
    w.opts.no_watch_list = true;
    world_start(&w);
    WORLD_UNTIL(&w, world_has(&w, "foo@1 bar@55 baz@32"));
    vg_assert_slice_equal(vg_reflector_version(w.reflector), VG_SLICE_LIT("32"));
    world_done(&w);
}

static void scenario_04_very_short_watch(void **state)
{
    (void)state;
    WORLD(w, LISTED, STREAM("", STEP_WHOLE), LISTED_10, STREAM("", STEP_RESET));
    w.opts.no_watch_list = true;
    world_start(&w);
    assert_asked(&w, "list 0/500", "watch 1", "list 1/0", "watch 10", "list 10/0");
    assert_int_equal(w.errors, 2);
    assert_int_equal(w.waits, 2);
    assert_non_null(strstr(w.last_error.message, "ended at once"));
    world_done(&w);
}

static void scenario_05_stop_before_and_during_the_stream(void **state)
{
    (void)state;
    WORLD(w, LISTED, STREAM(EVENT("ADDED", POD("bar", "2")), STEP_HOLD));
    w.opts.no_watch_list = true;
    world_start(&w);
    WORLD_UNTIL(&w, w.puts == 1);
    vigil_reflector_free(vg_steal(w.reflector));
    WORLD_UNTIL(&w, script_held(w.server) == 0); /* the stream was given up */
    assert_int_equal(w.errors, 0);
    world_done(&w);

    WORLD(v, LISTED);
    v.opts.no_watch_list = true;
    world_start(&v);
    vigil_reflector_free(vg_steal(v.reflector));
    world_rest(&v);
    assert_int_equal(v.calls.n, 0);
    world_done(&v);
}

static void scenario_06_watch_refused_by_429(void **state)
{
    (void)state;
    WORLD(w, LISTED, REFUSAL(429, "TooManyRequests"), REFUSAL(429, "TooManyRequests"),
          REFUSAL(429, "TooManyRequests"), REFUSAL(429, "TooManyRequests"));
    w.opts.no_watch_list = true;
    world_start(&w);
    assert_asked(&w, "list 0/500", "watch 1", "watch 1", "watch 1", "watch 1", "watch 1");
    assert_int_equal(w.errors, 0);
    world_done(&w);
}

static void scenario_07_429_on_open_then_in_the_stream(void **state)
{
    (void)state;
    WORLD(w, LISTED, REFUSAL(429, "TooManyRequests"),
          STREAM(EVENT("ERROR", STATUS(429, "TooManyRequests", "slow down")), STEP_WHOLE));
    w.opts.no_watch_list = true;
    world_start(&w);
    assert_asked(&w, "list 0/500", "watch 1", "watch 1", "watch 1");
    assert_int_equal(w.waits, 2);
    world_done(&w);
}

static void scenario_08_refused_connections_back_off(void **state)
{
    (void)state;
    WORLD(w, STREAM(END_MARK("1", "true"), STEP_HOLD));
    w.tuning.backoff_ns = 10 * VG_NS_PER_MS;
    w.tuning.backoff_cap_ns = 100 * VG_NS_PER_MS;
    w.tuning.no_jitter = true;
    world_make(&w); /* nobody listens yet */
    WORLD_UNTIL(&w, w.waits == 5);
    assert_int_equal(w.waited_ns, 250 * VG_NS_PER_MS);
    assert_int_equal(w.lost, 1); /* once, not five times */
    assert_int_equal(w.backs, 0);
    script_listen(w.server);
    WORLD_UNTIL(&w, w.replaces == 1);
    assert_int_equal(w.backs, 1);
    assert_asked(&w, "stream ");
    assert_int_equal(w.errors, 0);
    world_done(&w);
}

/* ERROR 500 in each watch, a second apart; how many of them were answered by watching again? */
static uint64_t retries_of_500(uint64_t limit_s, unsigned gap_before)
{
    struct step steps[SCRIPT_MAX] = {LISTED};
    for (unsigned i = 1; i < SCRIPT_MAX; i++)
        steps[i] =
            (struct step)STREAM(EVENT("ERROR", STATUS(500, "InternalError", "oops")), STEP_WHOLE);
    struct world w;
    world_init(&w, steps, SCRIPT_MAX);
    w.opts.no_watch_list = true;
    w.tuning.retry_500_ns = limit_s * VG_NS_PER_S;
    w.tuning.list_stall_ms = 300000; /* the gap comes before an answer */
    world_start(&w);
    uint64_t seen = 0;
    while (w.waits == 0) {
        world_step(&w);
        uint64_t n = w.reflector->n_watches;
        if (n == seen)
            continue;
        seen = n; /* it has begun and is not answered yet */
        vg_fake_clock_advance(&w.clock, n == gap_before ? 61 * VG_NS_PER_S : VG_NS_PER_S);
    }
    world_done(&w);
    return seen - 1;
}

static void scenario_09_internal_errors_within_a_window(void **state)
{
    (void)state;
    assert_int_equal(retries_of_500(0, 0), 0);
    assert_int_equal(retries_of_500(30, 0), 31);
    assert_int_equal(retries_of_500(30, 10), 40);
}

#define FOUR(a) ITEM(a "1", "1") "," ITEM(a "2", "1") "," ITEM(a "3", "1") "," ITEM(a "4", "1")
#define TWO(a) ITEM(a "1", "1") "," ITEM(a "2", "1")

static void scenario_10_pages(void **state)
{
    (void)state;
    WORLD(w, ANSWER(PAGE("10", "c1", FOUR("a"))), ANSWER(PAGE("11", "c2", FOUR("b"))),
          ANSWER(LIST("12", TWO("c"))), ENDS_ROUND, ANSWER(PAGE("10", "c1", FOUR("a"))),
          ANSWER(PAGE("11", "c2", FOUR("b"))), ANSWER(LIST("12", TWO("c"))));
    w.opts.no_watch_list = true;
    w.opts.page_size = 4;
    world_start(&w);
    assert_asked(&w, "list 0/4", "list +c1/4", "list +c2/4", "watch 10", "list 10/4", "list +c1/4",
                 "list +c2/4", "watch 10");
    assert_int_equal(w.n, 10);
    world_done(&w);
}

static void scenario_11_and_13_second_round_at_the_last_version(void **state)
{
    (void)state;
    WORLD(w, LISTED_10, ENDS_ROUND);
    w.opts.no_watch_list = true;
    world_start(&w);
    assert_asked(&w, "list 0/500", "watch 10", "list 10/0");
    assert_int_equal(w.errors, 0); /* an expired watch is no error to tell of */
    world_done(&w);
}

static void scenario_12_a_server_without_cache_is_always_asked_for_pages(void **state)
{
    (void)state;
    WORLD(w, ANSWER(PAGE("10", "c1", FOUR("a"))), ANSWER(LIST("10", TWO("b"))), ENDS_ROUND);
    w.opts.no_watch_list = true;
    world_start(&w);
    assert_asked(&w, "list 0/500", "list +c1/500", "watch 10", "list 10/500");
    world_done(&w);
}

static void scenario_14_expired_list_version(void **state)
{
    (void)state;
    WORLD(w, LISTED_10, ENDS_ROUND, REFUSAL(410, "Expired"), ANSWER(LIST("11", ITEM("bar", "11"))),
          ENDS_ROUND);
    w.opts.no_watch_list = true;
    world_start(&w);
    assert_asked(&w, "list 0/500", "watch 10", "list 10/0", "list /0", "watch 11", "list 11/0");
    assert_true(world_has(&w, "bar@11"));
    world_done(&w);
}

static void scenario_15_second_page_expired(void **state)
{
    (void)state;
    WORLD(w, LISTED_10, ENDS_ROUND, ANSWER(PAGE("10", "c1", FOUR("a"))), REFUSAL(410, "Expired"),
          ANSWER(LIST("13", TWO("z"))));
    w.opts.no_watch_list = true;
    w.opts.page_size = 4;
    world_start(&w);
    assert_asked(&w, "list 0/4", "watch 10", "list 10/4", "list +c1/4", "list 10/0", "watch 13");
    assert_true(world_has(&w, "z1@1 z2@1"));
    world_done(&w);
}

static void scenario_16_version_too_large(void **state)
{
    (void)state;
#define SAYS(more) "{\"kind\":\"Status\",\"reason\":\"Timeout\",\"code\":504," more "}"
    static const char *const SAYINGS[] = {
        SAYS("\"message\":\"later\",\"details\":{\"causes\":[{\"reason\":"
             "\"ResourceVersionTooLarge\"}]}"),
        SAYS("\"message\":\"later\",\"details\":{\"causes\":[{\"message\":\"Too large resource "
             "version\"}]}"),
        SAYS("\"message\":\"Timeout: Too large resource version: 10, current: 5\"")};
    for (size_t i = 0; i < VG_ARRAY_LEN(SAYINGS); i++) {
        WORLD(w, LISTED_10, ENDS_ROUND, {.status = 504, .body = SAYINGS[i]},
              ANSWER(LIST("11", ITEM("bar", "11"))));
        w.opts.no_watch_list = true;
        world_start(&w);
        assert_asked(&w, "list 0/500", "watch 10", "list 10/0", "list /0", "watch 11");
        world_done(&w);
    }
}

static void scenario_17_watch_timeouts(void **state)
{
    (void)state;
    static const unsigned MIN[][2] = {{0, 300}, {1, 300}, {1800, 1800}};
    for (size_t i = 0; i < VG_ARRAY_LEN(MIN); i++) {
        WORLD(w, LISTED);
        w.opts.no_watch_list = true;
        w.tuning.min_watch_s = MIN[i][0];
        world_start(&w);
        assert_asked(&w, "list 0/500", "watch 1");
        char value[32];
        long got = strtol(script_param(w.server, 1, "timeoutSeconds", value, 32), NULL, 10);
        assert_in_range(got, MIN[i][1], 2 * MIN[i][1]);
        world_done(&w);
    }
}

static void scenario_18_each_event_moves_the_version(void **state)
{
    (void)state;
    WORLD(w, LISTED,
          STREAM(EVENT("ADDED", POD("bar", "10")) EVENT("MODIFIED", POD("bar", "20")) MARK("30")
                     EVENT("DELETED", POD("bar", "40")),
                 STEP_WHOLE));
    w.opts.no_watch_list = true;
    world_start(&w);
    assert_asked(&w, "list 0/500", "watch 1", "watch 40"); /* a clean end: again, from there */
    vg_assert_slice_equal(
        vg_buf_slice(&w.calls),
        VG_SLICE_LIT("replace 1@1;put bar@10;put bar@20;bookmark @30;remove bar@40;"));
    assert_int_equal(w.waits, 0);
    world_done(&w);
}

static void scenario_19_a_failed_resync_begins_a_round(void **state)
{
    (void)state;
    WORLD(w, LISTED, STREAM("", STEP_HOLD), LISTED_10);
    w.opts.no_watch_list = true;
    w.opts.resync_ms = 1000;
    w.resync_fails_at = 2;
    world_start(&w);
    WORLD_UNTIL(&w, script_asked(w.server) == 2);
    vg_fake_clock_advance(&w.clock, VG_NS_PER_S);
    WORLD_UNTIL(&w, w.resyncs == 1);
    vg_fake_clock_advance(&w.clock, VG_NS_PER_S);
    assert_asked(&w, "list 0/500", "watch 1", "list 1/0", "watch 10");
    assert_int_equal(w.resyncs, 2);
    assert_int_equal(w.errors, 0);
    world_done(&w);
}

static void scenario_20_a_relist_removes_what_is_gone(void **state)
{
    (void)state;
    WORLD(w, ANSWER(LIST("1", ITEM("a", "1"))),
          STREAM(EVENT("ADDED", POD("foo", "2"))
                     EVENT("ERROR", STATUS(500, "StorageReadError", "cannot be read")),
                 STEP_WHOLE),
          ANSWER(LIST("3", ITEM("a", "1"))));
    w.opts.no_watch_list = true;
    world_start(&w);
    assert_asked(&w, "list 0/500", "watch 1", "list 2/0", "watch 3");
    assert_true(world_has(&w, "a@1"));
    assert_int_equal(w.errors, 0);
    world_done(&w);
}

static void scenario_21_a_state_without_end_is_not_stored(void **state)
{
    (void)state;
    WORLD(w, STREAM(EVENT("ADDED", POD("foo", "1")) EVENT("ADDED", POD("bar", "2")), STEP_HOLD));
    world_start(&w);
    WORLD_UNTIL(&w, w.reflector->initial.n == 2);
    vigil_reflector_free(vg_steal(w.reflector));
    world_rest(&w);
    assert_int_equal(w.calls.n, 0);
    world_done(&w);
}

static void scenario_22_an_end_mark_must_say_true(void **state)
{
    (void)state;
    WORLD(w, STREAM(EVENT("ADDED", POD("foo", "1")) END_MARK("1", "false") MARK("2"), STEP_HOLD));
    world_start(&w);
    WORLD_UNTIL(&w, w.reflector->events == 3);
    assert_int_equal(w.calls.n, 0);
    assert_int_equal(w.n, 0);
    world_done(&w);
}

static void scenario_23_watch_list_refused(void **state)
{
    (void)state;
    static const int CODES[] = {422, 400, 403, 500};
    for (size_t i = 0; i < VG_ARRAY_LEN(CODES); i++) {
        WORLD(w, {.status = CODES[i], .body = "{}"}, LISTED, STREAM("", STEP_HOLD));
        world_start(&w);
        assert_asked(&w, "stream ", "list 0/500", "watch 1");
        assert_true(world_has(&w, "foo@1"));
        world_done(&w);
    }
}

static void scenario_24_changes_while_the_state_streams_in(void **state)
{
    (void)state;
    WORLD(w, STREAM(EVENT("ADDED", POD("p1", "1")) EVENT("ADDED", POD("p2", "2"))
                        EVENT("MODIFIED", POD("p1", "3")) EVENT("ADDED", POD("p3", "4"))
                            EVENT("DELETED", POD("p3", "5")) END_MARK("5", "true"),
                    STEP_HOLD));
    world_start(&w);
    WORLD_UNTIL(&w, w.replaces == 1);
    assert_true(world_has(&w, "p1@3 p2@2"));
    world_done(&w);
}

static void scenario_25_watch_list_meets_429(void **state)
{
    (void)state;
    WORLD(w, REFUSAL(429, "TooManyRequests"), REFUSAL(429, "TooManyRequests"),
          STREAM(END_MARK("1", "true"), STEP_HOLD));
    world_start(&w);
    WORLD_UNTIL(&w, w.replaces == 1);
    assert_asked(&w, "stream ", "stream ", "stream ");
    assert_int_equal(w.waits, 2);
    world_done(&w);
}

static void scenario_26_dropped_streams(void **state)
{
    (void)state;
    WORLD(w, STREAM(EVENT("ADDED", POD("foo", "1")), STEP_RESET),
          STREAM(EVENT("ADDED", POD("bar", "3")) END_MARK("3", "true"), STEP_BREAK));
    world_start(&w);
    assert_asked(&w, "stream ", "stream ", "watch 3");
    assert_true(world_has(&w, "bar@3"));
    assert_int_equal(w.waits, 0);
    world_done(&w);
}

static void scenario_27_expired_on_open(void **state)
{
    (void)state;
    WORLD(w, LISTED_10, STREAM(EVENT("ADDED", POD("bar", "11")), STEP_WHOLE),
          REFUSAL(410, "Expired"));
    w.opts.no_watch_list = true;
    world_start(&w);
    WORLD_UNTIL(&w, w.errors == 1);
    assert_true(world_has(&w, "foo@10 bar@11"));
    assert_int_equal(w.last_error.code, VIGIL_E_COMPACTED);
    assert_asked(&w, "list 0/500", "watch 10", "watch 11", "list 11/0");
    world_done(&w);
}

static void scenario_28_transforms(void **state)
{
    (void)state;
    WORLD(w, STREAM(EVENT("ADDED", POD("a", "1")) EVENT("ADDED", POD("b", "2"))
                        END_MARK("2", "true") EVENT("ADDED", POD("c", "3")),
                    STEP_HOLD));
    w.opts.transform = world_transform;
    world_start(&w);
    WORLD_UNTIL(&w, world_has(&w, "a@1 b@2 c@3"));
    assert_int_equal(w.transforms, 5);
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scenario_01_list_then_watch),
        cmocka_unit_test(scenario_02_watch_list),
        cmocka_unit_test(scenario_03_other_kinds_are_skipped),
        cmocka_unit_test(scenario_04_very_short_watch),
        cmocka_unit_test(scenario_05_stop_before_and_during_the_stream),
        cmocka_unit_test(scenario_06_watch_refused_by_429),
        cmocka_unit_test(scenario_07_429_on_open_then_in_the_stream),
        cmocka_unit_test(scenario_08_refused_connections_back_off),
        cmocka_unit_test(scenario_09_internal_errors_within_a_window),
        cmocka_unit_test(scenario_10_pages),
        cmocka_unit_test(scenario_11_and_13_second_round_at_the_last_version),
        cmocka_unit_test(scenario_12_a_server_without_cache_is_always_asked_for_pages),
        cmocka_unit_test(scenario_14_expired_list_version),
        cmocka_unit_test(scenario_15_second_page_expired),
        cmocka_unit_test(scenario_16_version_too_large),
        cmocka_unit_test(scenario_17_watch_timeouts),
        cmocka_unit_test(scenario_18_each_event_moves_the_version),
        cmocka_unit_test(scenario_19_a_failed_resync_begins_a_round),
        cmocka_unit_test(scenario_20_a_relist_removes_what_is_gone),
        cmocka_unit_test(scenario_21_a_state_without_end_is_not_stored),
        cmocka_unit_test(scenario_22_an_end_mark_must_say_true),
        cmocka_unit_test(scenario_23_watch_list_refused),
        cmocka_unit_test(scenario_24_changes_while_the_state_streams_in),
        cmocka_unit_test(scenario_25_watch_list_meets_429),
        cmocka_unit_test(scenario_26_dropped_streams),
        cmocka_unit_test(scenario_27_expired_on_open),
        cmocka_unit_test(scenario_28_transforms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
