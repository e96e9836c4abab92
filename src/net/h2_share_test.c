/* h2_share_test.c - what HTTP/2 clients hold that have not authenticated. */
#include "h2_world.h"

#include "server_int.h"

static struct vg_world w;
static struct vg_h2c c;

static void open_unauthenticated(const struct vg_h2c_opts *opts)
{
    vg_world_open(&w, NULL);
    w.are_unauthenticated = true;
    vg_world_connect(&w, &c, opts);
    vg_world_turns(&w, &c, 3);
}

static int teardown(void **state)
{
    (void)state;
    vg_world_close(&w);
    vg_h2c_close(&c);
    return 0;
}

static unsigned count_refused(unsigned n)
{
    unsigned refused = 0;
    for (unsigned i = 0; i < n; i++)
        refused += c.streams[i]->is_closed && c.streams[i]->error == NGHTTP2_REFUSED_STREAM;
    return refused;
}

/* Requests that are not answered: a connection has room for few, the rest shall try again. */
static void an_unauthenticated_connection_has_few_streams(void **state)
{
    (void)state;
    open_unauthenticated(NULL);
    for (int i = 0; i < 100; i++)
        vg_h2c_get(&c, "/silent");
    VG_WORLD_UNTIL(&w, &c, count_refused(100) > 70);
    vg_world_turns(&w, &c, 20);
    assert_in_range(w.n_seen, 16, 24);
    assert_int_equal(count_refused(100), 100 - w.n_seen);
    assert_false(c.has_goaway);
}

/* Whoever goes on regardless is ended. */
static void many_refused_streams_are_a_flood(void **state)
{
    (void)state;
    open_unauthenticated(NULL);
    for (int i = 0; i < 400; i++)
        vg_h2c_get(&c, "/silent");
    VG_WORLD_UNTIL(&w, &c, c.has_goaway);
    assert_int_equal(c.goaway_error, NGHTTP2_ENHANCE_YOUR_CALM);
    VG_WORLD_UNTIL(&w, &c, c.is_eof);
}

/* A hundred requests in one write whose answers are taken hold little at any one time. */
static void a_burst_that_is_answered_is_not_refused(void **state)
{
    (void)state;
    open_unauthenticated(NULL);
    struct vg_h2c_stream *last = NULL;
    for (int i = 0; i < 100; i++)
        last = vg_h2c_get(&c, "/hello");
    VG_WORLD_UNTIL(&w, &c, last->is_closed);
    for (int i = 0; i < 100; i++)
        assert_int_equal(c.streams[i]->status, 200);
    vg_world_turns(&w, &c, 5);
    assert_int_equal(atomic_load(&w.shared->share.held), 0);
}

/* From the first request on that authenticates, there is room for as many as any client has. */
static void an_authenticated_client_has_all_its_streams(void **state)
{
    (void)state;
    open_unauthenticated(NULL);
    for (int i = 0; i < 10; i++)
        vg_h2c_get(&c, "/silent");
    vg_world_turns(&w, &c, 5);
    w.are_unauthenticated = false;
    for (int i = 0; i < 500; i++)
        vg_h2c_get(&c, "/watch");
    struct vg_h2c_stream *last = vg_h2c_get(&c, "/hello");
    VG_WORLD_UNTIL(&w, &c, last->is_closed);
    assert_int_equal(last->status, 200);
    assert_int_equal(count_refused(511), 0);
    assert_int_equal(atomic_load(&w.shared->share.unauthenticated), 0);
}

#define OWN(test) cmocka_unit_test_teardown(test, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OWN(an_unauthenticated_connection_has_few_streams),
        OWN(many_refused_streams_are_a_flood),
        OWN(a_burst_that_is_answered_is_not_refused),
        OWN(an_authenticated_client_has_all_its_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
