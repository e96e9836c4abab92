/* reflector_trouble_test.c - what else may happen to a list or a watch: garbage, silence, a full
 * sink, an end from within. */
#include "world_testing.h"

static void garbage_begins_a_round(void **state)
{
    (void)state;
    static const char *const GARBAGE[] = {"<html>oops</html>\n",
                                          "{\"type\":\"ADDED\"}\n",
                                          "{\"type\":\"WEIRD\",\"object\":{}}\n",
                                          EVENT("ADDED", "{\"kind\":\"Pod\",\"metadata\":{}}"),
                                          EVENT("BOOKMARK", "{}"),
                                          EVENT("ADDED", POD("a", "2") "}"),
                                          EVENT("ADDED", POD("a", "2") ",7"),
                                          "{\"type\":\"ERROR\",\"object\":7}\n"};
    for (size_t i = 0; i < VG_ARRAY_LEN(GARBAGE); i++) {
        WORLD(w, LISTED, STREAM(GARBAGE[i], STEP_HOLD), LISTED_10);
        w.opts.no_watch_list = true;
        world_start(&w);
        assert_asked(&w, "list 0/500", "watch 1", "list 1/0", "watch 10");
        assert_int_equal(w.waits, 1);
        world_done(&w);
    }
}

static void frames_may_be_written_in_any_way(void **state)
{
    (void)state;
    WORLD(w, LISTED,
          STREAM("{\"object\":" POD(
                     "a", "2") ",\"type\":\"ADDED\"}\n"
                               "{\"type\":\"ADDED\",\"object\":" POD(
                                   "b",
                                   "3") ",\"extra\":{\"type\":1}}\n"
                                        " { \"type\" : \"ADDED\" , \"object\" : " POD(
                                            "c",
                                            "4") " } \r\n"
                                                 "{\"type\":\"MODIFIED\",\"object\":" POD(
                                                     "foo",
                                                     "5") " } \n"
                                                          "{\"type\":\"MODIFIED\",\"object\":" POD(
                                                              "foo", "6") "}\n",
                 STEP_HOLD));
    w.opts.no_watch_list = true;
    world_start(&w);
    WORLD_UNTIL(&w, world_has(&w, "foo@6 a@2 b@3 c@4"));
    assert_int_equal(w.waits, 0);
    world_done(&w);
}

static void lists_that_are_none_are_told_and_tried_again(void **state)
{
    (void)state;
    static const char *const GARBAGE[] = {"hello",
                                          "{\"kind\":\"PodList\",\"items\":[7]}",
                                          "{\"kind\":\"Pod\"}",
                                          "{\"items\":[{\"a\":1}]}",
                                          "",
                                          "{\"kind\":\"PodList\",\"items\":[{"};
    for (size_t i = 0; i < VG_ARRAY_LEN(GARBAGE); i++) {
        WORLD(w, {.body = GARBAGE[i]}, LISTED);
        w.opts.no_watch_list = true;
        world_start(&w);
        assert_asked(&w, "list 0/500", "list 0/500", "watch 1");
        assert_int_equal(w.errors, 1);
        world_done(&w);
    }
}

static void forbidden_lists_are_told(void **state)
{
    (void)state;
    WORLD(w, REFUSAL(403, "Forbidden"), LISTED);
    w.opts.no_watch_list = true;
    world_start(&w);
    assert_asked(&w, "list 0/500", "list 0/500", "watch 1");
    assert_int_equal(w.last_error.code, VIGIL_E_FORBIDDEN);
    assert_string_equal(w.last_error.reason, "Forbidden");
    world_done(&w);
}

static void a_silent_list_is_given_up(void **state)
{
    (void)state;
    WORLD(w, {.body = "{\"kind\":\"PodList\",", .end = STEP_HOLD}, LISTED);
    w.opts.no_watch_list = true;
    world_start(&w);
    WORLD_UNTIL(&w, script_asked(w.server) == 1 && script_held(w.server) == 1);
    world_rest(&w);
    vg_fake_clock_advance(&w.clock, 61 * VG_NS_PER_S);
    assert_asked(&w, "list 0/500", "list 0/500", "watch 1");
    assert_int_equal(w.last_error.code, VIGIL_E_TIMEOUT);
    world_done(&w);
}

static void who_refuses_is_not_lost(void **state)
{
    (void)state;
    WORLD(w, {.body = "{\"kind\":\"PodList\",", .end = STEP_HOLD}, REFUSAL(403, "Forbidden"));
    w.opts.no_watch_list = true;
    world_start(&w);
    WORLD_UNTIL(&w, script_asked(w.server) == 1 && script_held(w.server) == 1);
    world_rest(&w);
    vg_fake_clock_advance(&w.clock, 61 * VG_NS_PER_S);
    WORLD_UNTIL(&w, w.lost == 1);
    WORLD_UNTIL(&w, w.backs == 1);
    WORLD_UNTIL(&w, w.last_error.code == VIGIL_E_FORBIDDEN);
    world_done(&w);
}

static void a_watch_that_falls_silent_after_bookmarks_is_opened_again(void **state)
{
    (void)state;
    WORLD(w, STREAM(END_MARK("1", "true"), STEP_HOLD), STREAM("", STEP_HOLD));
    world_start(&w);
    WORLD_UNTIL(&w, w.replaces == 1);
    vg_fake_clock_advance(&w.clock, 179 * VG_NS_PER_S);
    world_rest(&w);
    assert_int_equal(script_asked(w.server), 1);
    vg_fake_clock_advance(&w.clock, 2 * VG_NS_PER_S);
    assert_asked(&w, "stream ", "watch 1");
    assert_int_equal(w.waits, 0);
    WORLD_UNTIL(&w, w.backs == 1); /* an answer without an event is enough */
    assert_int_equal(w.lost, 1);
    world_done(&w);
}

static void a_watch_that_the_server_does_not_end_is_ended(void **state)
{
    (void)state;
    WORLD(w, LISTED, STREAM(EVENT("ADDED", POD("bar", "2")), STEP_HOLD));
    w.opts.no_watch_list = true;
    world_start(&w);
    WORLD_UNTIL(&w, w.puts == 1);
    vg_fake_clock_advance(&w.clock, 631 * VG_NS_PER_S);
    assert_asked(&w, "list 0/500", "watch 1", "watch 2");
    world_done(&w);
}

static void a_full_sink_stops_the_stream_until_it_has_room(void **state)
{
    (void)state;
    struct vg_buf body = {0};
    for (int i = 0; i < 200; i++) { /* more than one read */
        char event[2048];
        snprintf(event, sizeof(event),
                 "{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\","
                 "\"resourceVersion\":\"%d\"},\"x\":\"%01500d\"}}\n",
                 i + 2, i);
        assert_int_equal(vg_buf_append(&body, event, strlen(event)), 0);
    }
    assert_int_equal(vg_buf_append_byte(&body, 0), 0);
    WORLD(w, LISTED, {.body = body.p, .is_chunked = true, .end = STEP_HOLD});
    w.opts.no_watch_list = true;
    w.is_full = true;
    world_start(&w);
    WORLD_UNTIL(&w, w.puts > 0);
    world_rest(&w);
    assert_in_range(w.puts, 1, 100); /* one read of libcurl, not all of them */
    w.is_full = false;
    vg_reflector_resume(w.reflector);
    WORLD_UNTIL(&w, w.puts == 200);
    world_done(&w);
    vg_buf_done(&body);
}

static void a_reflector_may_be_freed_from_its_sink(void **state)
{
    (void)state;
    WORLD(w, LISTED,
          STREAM(EVENT("ADDED", POD("a", "2")) EVENT("ADDED", POD("b", "3")), STEP_HOLD));
    w.opts.no_watch_list = true;
    w.frees_itself = true;
    world_start(&w);
    WORLD_UNTIL(&w, w.puts == 1);
    world_rest(&w);
    assert_int_equal(w.puts, 1);
    world_done(&w);
}

static void lost_opens_are_tried_again_without_a_list(void **state)
{
    (void)state;
    WORLD(w, LISTED, {.end = STEP_NOTHING}, {.end = STEP_NOTHING},
          STREAM(EVENT("ADDED", POD("bar", "2")), STEP_HOLD));
    w.opts.no_watch_list = true;
    w.drift_ns = 10 * VG_NS_PER_MS;
    world_start(&w);
    WORLD_UNTIL(&w, w.puts == 1);
    assert_asked(&w, "list 0/500", "watch 1", "watch 1", "watch 1");
    assert_int_equal(w.errors, 0);
    world_done(&w);
}

static void backoff_grows_and_begins_anew_after_two_minutes(void **state)
{
    (void)state;
    struct vg_backoff b = {0};
    struct vg_reflector_tuning t = {.no_jitter = true};
    struct vg_rng rng;
    vg_rng_seed(&rng, vg_test_seed());
    static const uint64_t WANT[] = {800, 1600, 3200, 6400, 12800, 25600, 30000, 30000};
    uint64_t now = VG_NS_PER_S;
    for (size_t i = 0; i < VG_ARRAY_LEN(WANT); i++)
        assert_int_equal(vg_backoff_next(&b, &t, &rng, now), WANT[i] * VG_NS_PER_MS);
    now += 121 * VG_NS_PER_S;
    assert_int_equal(vg_backoff_next(&b, &t, &rng, now), 800 * VG_NS_PER_MS);
    t.no_jitter = false;
    for (int i = 0; i < 100; i++)
        assert_in_range(vg_backoff_next(&b, &t, &rng, now), 800 * VG_NS_PER_MS,
                        60000 * VG_NS_PER_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(garbage_begins_a_round),
        cmocka_unit_test(frames_may_be_written_in_any_way),
        cmocka_unit_test(lists_that_are_none_are_told_and_tried_again),
        cmocka_unit_test(forbidden_lists_are_told),
        cmocka_unit_test(a_silent_list_is_given_up),
        cmocka_unit_test(who_refuses_is_not_lost),
        cmocka_unit_test(a_watch_that_falls_silent_after_bookmarks_is_opened_again),
        cmocka_unit_test(a_watch_that_the_server_does_not_end_is_ended),
        cmocka_unit_test(a_full_sink_stops_the_stream_until_it_has_room),
        cmocka_unit_test(a_reflector_may_be_freed_from_its_sink),
        cmocka_unit_test(lost_opens_are_tried_again_without_a_list),
        cmocka_unit_test(backoff_grows_and_begins_anew_after_two_minutes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
