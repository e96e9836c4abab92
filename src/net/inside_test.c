/* inside_test.c - requests from within: they see the same handler, and their ends are exact. */
#include "inside.h"
#include "net_testing.h"

struct asked {
    struct vg_inside_call call; /* first */
    int n_done;
};

static struct net_test net;
static struct vg_inside *inside;

static void on_done(struct vg_inside_call *call)
{
    ((struct asked *)call)->n_done++;
}

static int open_test(void **state)
{
    (void)state;
    memset(&net, 0, sizeof net);
    net_test_open(&net, NULL);
    assert_int_equal(vg_inside_new(net.server, "somebody", &inside), 0);
    return 0;
}

static int close_test(void **state)
{
    (void)state;
    vg_inside_free(vg_steal(inside));
    net_test_close(&net);
    return 0;
}

static void ask(struct asked *a, const char *method, const char *target, const char *body)
{
    *a = (struct asked){.call = {.method = method,
                                 .target = vg_slice_str(target),
                                 .content_type = body ? "text/plain" : NULL,
                                 .body = vg_slice_str(body ? body : ""),
                                 .done = on_done}};
    assert_int_equal(vg_inside_send(inside, &a->call), 0);
    assert_int_equal(a->n_done, 0); /* never from within */
}

static void turn_until(struct asked *a)
{
    for (int i = 0; i < 1000 && !a->n_done; i++)
        vg_loop_turn(net.loop, false);
    assert_int_equal(a->n_done, 1);
}

static void assert_answer(struct asked *a, int err, int status, const char *body)
{
    turn_until(a);
    assert_int_equal(a->call.err, err);
    assert_int_equal(a->call.status, status);
    assert_int_equal(a->call.answer.n, strlen(body));
    assert_memory_equal(a->call.answer.p ? a->call.answer.p : "", body, strlen(body));
    vg_inside_call_done(&a->call);
}

static void test_answers_come(void **state)
{
    (void)state;
    struct asked a, b;
    ask(&a, "POST", "/echo", "hello");
    ask(&b, "GET", "/stream", NULL);
    assert_answer(&a, 0, 200, "hello");
    assert_answer(&b, 0, 200, "one,two,three");
}

static void test_an_answer_before_the_body(void **state)
{
    (void)state;
    struct asked a;
    ask(&a, "POST", "/now", "dropped");
    assert_answer(&a, 0, 401, "now");
}

static void test_a_long_answer_drains(void **state)
{
    (void)state;
    struct asked a;
    ask(&a, "GET", "/big?1000000", NULL);
    turn_until(&a);
    assert_int_equal(a.call.answer.n, 1000000);
    assert_int_equal(net.pins, 0);
    vg_inside_call_done(&a.call);
}

static void test_an_answer_later(void **state)
{
    (void)state;
    struct asked a;
    ask(&a, "GET", "/hold", NULL);
    vg_loop_turn(net.loop, false);
    assert_int_equal(a.n_done, 0);
    assert_string_equal(vg_http_peer(net.last)->inside, "somebody");
    net_answer(net.last, 404, VG_SLICE_LIT("no"));
    assert_answer(&a, 0, 404, "no");
}

static void test_an_aborted_one_is_told(void **state)
{
    (void)state;
    struct asked a;
    ask(&a, "GET", "/hold", NULL);
    vg_http_abort(net.last);
    assert_answer(&a, VIGIL_E_CANCELED, 0, "");
}

static void test_the_end_of_all(void **state)
{
    (void)state;
    struct asked a;
    ask(&a, "GET", "/hold", NULL);
    vg_inside_free(vg_steal(inside));
    assert_answer(&a, VIGIL_E_CANCELED, 0, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_answers_come, open_test, close_test),
        cmocka_unit_test_setup_teardown(test_an_answer_before_the_body, open_test, close_test),
        cmocka_unit_test_setup_teardown(test_a_long_answer_drains, open_test, close_test),
        cmocka_unit_test_setup_teardown(test_an_answer_later, open_test, close_test),
        cmocka_unit_test_setup_teardown(test_an_aborted_one_is_told, open_test, close_test),
        cmocka_unit_test_setup_teardown(test_the_end_of_all, open_test, close_test),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
