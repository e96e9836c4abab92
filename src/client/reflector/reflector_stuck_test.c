/* reflector_stuck_test.c - servers that never let a reflector get anywhere: each is told of, and
 * each is asked only so often. The clock is fake; waits are skipped and added up. */
#include "world_testing.h"

/* What the server does for ever. */
struct always {
    struct step list, watch, stream;
    bool lists, watches, streams; /* false: held open without an answer */
};

static bool answer(void *arg, const char *asked, struct step *ret)
{
    const struct always *a = arg;
    bool is_stream = strstr(asked, "sendInitialEvents=true"),
         is_watch = strstr(asked, "watch=true");
    *ret = is_stream ? a->stream : is_watch ? a->watch : a->list;
    return is_stream ? a->streams : is_watch ? a->watches : a->lists;
}

#define ALWAYS(w, ...)                                                                             \
    struct always w##_always = {__VA_ARGS__};                                                      \
    WORLD(w, LISTED);                                                                              \
    w.server->n_steps = 0;                                                                         \
    w.server->answer = answer;                                                                     \
    w.server->answer_arg = &w##_always

/* Within this much time of waiting ... */
#define LONG_NS (120 * VG_NS_PER_S)
/* ... a server is asked at most so often: the steps of the backoff, a few requests for each. */
#define ASKED_AT_MOST 60

static void assert_told_and_bounded(struct world *w)
{
    world_start(w);
    WORLD_UNTIL(w, w->waited_ns > LONG_NS || script_asked(w->server) > ASKED_AT_MOST);
    if (script_asked(w->server) > ASKED_AT_MOST)
        fail_msg("asked %u times in %llu ms", script_asked(w->server),
                 (unsigned long long)(w->waited_ns / VG_NS_PER_MS));
    assert_true(w->errors > 0);
    assert_true(strlen(w->last_error.message) > 3);
    world_done(w);
}

#define BUSY(headers_)                                                                             \
    {                                                                                              \
        .status = 429, .headers = (headers_), .body = STATUS(429, "TooMany", "no")                 \
    }

static void a_server_that_is_always_busy_is_told_of(void **state)
{
    static const char *const HEADERS[] = {NULL, "Retry-After: 0\r\n", "Retry-After: 1\r\n",
                                          "Retry-After: 3600\r\n"};
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(HEADERS); i++) {
        for (int where = 0; where < 3; where++) {
            const struct step busy = BUSY(HEADERS[i]);
            ALWAYS(w, .list = LISTED, .lists = true);
            w_always.watches = w_always.streams = true;
            w_always.watch = w_always.stream = busy;
            if (where == 2)
                w_always.list = busy;
            w.opts.no_watch_list = where > 0;
            w.drift_ns = 50 * VG_NS_PER_MS; /* exchanges wait by themselves, too */
            world_start(&w);
            WORLD_UNTIL(&w, w.errors > 0 || script_asked(w.server) > 200);
            assert_int_equal(w.last_error.code, VIGIL_E_BUSY);
            assert_true(script_asked(w.server) <= 20);
            world_done(&w);
        }
    }
}

static void errors_on_every_watch_are_told_of(void **state)
{
    static const char *const BODIES[] = {EXPIRED_EVENT,
                                         EVENT("ERROR", STATUS(500, "InternalError", "oops")),
                                         EVENT("ERROR", STATUS(429, "TooManyRequests", "busy")),
                                         "<html>oops</html>\n",
                                         "{\"type\":\"ADDED\"}\n",
                                         EVENT("ERROR", "7"),
                                         ""};
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(BODIES); i++) {
        for (int streams = 0; streams < 2; streams++) {
            ALWAYS(w, .list = LISTED, .lists = true, .watches = true, .streams = true);
            w_always.watch = w_always.stream = (struct step)STREAM(BODIES[i], STEP_WHOLE);
            w.opts.no_watch_list = !streams;
            assert_told_and_bounded(&w);
        }
    }
}

static void watches_that_bring_one_event_and_end_are_not_hurried_after(void **state)
{
    (void)state;
    static const enum step_end ENDS[] = {STEP_WHOLE, STEP_RESET, STEP_BREAK};
    for (size_t i = 0; i < VG_ARRAY_LEN(ENDS); i++) {
        ALWAYS(w, .list = LISTED, .lists = true, .watches = true);
        w_always.watch = (struct step)STREAM(EVENT("MODIFIED", POD("foo", "2")), ENDS[i]);
        w.opts.no_watch_list = true;
        assert_told_and_bounded(&w);
    }
}

static void states_that_never_end_are_not_hurried_after(void **state)
{
    (void)state;
    ALWAYS(w, .list = LISTED, .lists = true, .watches = true, .streams = true);
    w_always.stream = (struct step)STREAM(EVENT("ADDED", POD("foo", "2")), STEP_WHOLE);
    w_always.watch = w_always.stream;
    assert_told_and_bounded(&w);
}

/* It sends what there is and then changes, as if it had never heard of sendInitialEvents. */
static void a_server_that_ignores_send_initial_events_is_listed(void **state)
{
    (void)state;
    ALWAYS(w, .list = LISTED_10, .lists = true, .streams = true);
    w_always.stream = (struct step)STREAM(EVENT("ADDED", POD("foo", "10")) MARK("11"), STEP_HOLD);
    w.drift_ns = 50 * VG_NS_PER_MS;
    world_start(&w);
    WORLD_UNTIL(&w, w.replaces == 1);
    assert_true(world_has(&w, "foo@10"));
    assert_int_equal(w.errors, 1);
    assert_int_equal(w.last_error.code, VIGIL_E_UNSUPPORTED);
    assert_asked(&w, "stream ", "list 0/500", "watch 10");
    world_done(&w);
}

/* A large state takes its time. */
static void a_state_that_grows_slowly_is_waited_for(void **state)
{
    (void)state;
    WORLD(w, STREAM(EVENT("ADDED", POD("foo", "1")), STEP_HOLD));
    world_start(&w);
    WORLD_UNTIL(&w, w.reflector->initial.n == 1);
    for (int i = 0; i < 10; i++) { /* as if another object had come each time */
        vg_fake_clock_advance(&w.clock, 15 * VG_NS_PER_S);
        w.reflector->grown_ns = vg_reflector_now(w.reflector);
        world_rest(&w);
    }
    assert_int_equal(script_asked(w.server), 1);
    assert_int_equal(w.errors, 0);
    world_done(&w);
}

static void a_server_that_takes_a_watch_and_says_nothing_is_lost(void **state)
{
    (void)state;
    for (int streams = 0; streams < 2; streams++) {
        ALWAYS(w, .list = LISTED, .lists = !streams); /* watches are held */
        w.opts.no_watch_list = !streams;
        w.drift_ns = 100 * VG_NS_PER_MS;
        world_start(&w);
        WORLD_UNTIL(&w, w.lost == 1);
        WORLD_UNTIL(&w, w.errors > 0);
        assert_true(script_asked(w.server) < 5);
        world_done(&w);
    }
}

static void pages_that_never_end_are_given_up(void **state)
{
    (void)state;
    ALWAYS(w, .list = ANSWER(PAGE("1", "again", ITEM("foo", "1"))), .lists = true);
    w.opts.no_watch_list = true;
    assert_told_and_bounded(&w);
}

static void a_name_that_is_not_known_and_a_host_without_a_route_are_losses(void **state)
{
    static const char *const URLS[] = {"http://no-such-name.invalid:1", "http://255.255.255.255:1",
                                       "http://127.0.0.1:1"};
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(URLS); i++) {
        ALWAYS(w, .lists = false);
        script_listen(w.server);
        world_make_at(&w, URLS[i]);
        WORLD_UNTIL(&w, w.lost == 1);
        assert_int_equal(w.backs, 0);
        WORLD_UNTIL(&w, w.waits == 3);
        assert_int_equal(w.lost, 1); /* once, and nothing else is wrong */
        world_done(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_is_always_busy_is_told_of),
        cmocka_unit_test(errors_on_every_watch_are_told_of),
        cmocka_unit_test(watches_that_bring_one_event_and_end_are_not_hurried_after),
        cmocka_unit_test(states_that_never_end_are_not_hurried_after),
        cmocka_unit_test(a_server_that_ignores_send_initial_events_is_listed),
        cmocka_unit_test(a_state_that_grows_slowly_is_waited_for),
        cmocka_unit_test(a_server_that_takes_a_watch_and_says_nothing_is_lost),
        cmocka_unit_test(pages_that_never_end_are_given_up),
        cmocka_unit_test(a_name_that_is_not_known_and_a_host_without_a_route_are_losses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
