/* client_close_test.c - the end of a client: every request gets its `done` exactly once, and what a
 * `done` asks for while the client closes fails at once. */
#include "place_testing.h"

#include <stdatomic.h>

#define REPEATS_MAX 1000

/* A program that asks again whenever it fails, as a careless one does. */
struct stubborn {
    struct vigil_client *c;
    const char *method;
    _Atomic int n_begun, n_done, n_refused;
    int last_code; /* of the call that was refused */
    struct vigil_request *other;
};

static void ask_stubbornly(struct stubborn *s);

static void on_stubborn(void *arg, const struct vigil_error *err, struct vigil_text body)
{
    struct stubborn *s = arg;
    (void)body;
    atomic_fetch_add(&s->n_done, 1);
    if (s->other)
        vigil_request_cancel(vg_steal(s->other));
    if (err->code < 0 && atomic_load(&s->n_begun) < REPEATS_MAX)
        ask_stubbornly(s);
}

static void ask_stubbornly(struct stubborn *s)
{
    struct vigil_request_opts o = VIGIL_INIT(struct vigil_request_opts);
    struct vigil_error err = {0};
    o.method = s->method;
    o.path = "/x";
    o.body = vigil_text(strcmp(s->method, "POST") == 0 ? "{}" : "");
    o.done = on_stubborn;
    o.arg = s;
    int r = vigil_request(s->c, &o, NULL, &err);
    if (r == 0) {
        atomic_fetch_add(&s->n_begun, 1);
        return;
    }
    s->last_code = r;
    assert_int_equal(err.code, r);
    assert_true(strlen(err.message) > 5);
    atomic_fetch_add(&s->n_refused, 1);
}

static void put_token(const char *dir, char *path, size_t size)
{
    snprintf(path, size, "%s/token", dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs("secret", f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void wait_held(struct place *p, unsigned n)
{
    while (script_held(p->server) < n) {
        vigil_client_step(p->client);
        poll(NULL, 0, 1);
    }
}

static void close_under_requests(const char *dir, enum vigil_loop_mode mode, const char *method)
{
    char path[512];
    put_token(dir, path, sizeof(path));
    struct place p;
    place_init(&p, NULL, 0); /* holds every request open */
    p.config.token_file = path;
    p.opts.mode = mode;
    place_start(&p);
    struct stubborn s[4] = {{.c = p.client}};
    for (int i = 0; i < 4; i++) {
        s[i] = (struct stubborn){.c = p.client, .method = method};
        ask_stubbornly(&s[i]);
    }
    wait_held(&p, 4);
    for (int i = 0; i < 4; i++)
        ask_stubbornly(&s[i]); /* and some that have not begun */
    place_done(&p);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(s[i].n_begun, s[i].n_done);
        assert_true(s[i].n_begun < REPEATS_MAX);
        assert_int_equal(s[i].n_refused, 2);
        assert_int_equal(s[i].last_code, VIGIL_E_CLOSED);
    }
}

static void a_done_that_asks_again_is_refused_when_the_client_closes(void **state)
{
    close_under_requests(*state, VIGIL_OWN_THREAD, "GET");
    close_under_requests(*state, VIGIL_OWN_THREAD, "POST");
    close_under_requests(*state, VIGIL_OWN_LOOP, "GET");
    close_under_requests(*state, VIGIL_OWN_LOOP, "POST");
}

/* A `done` may also cancel another request; its own end is told once all the same. */
static void a_done_that_cancels_others_is_fine_when_the_client_closes(void **state)
{
    (void)state;
    for (int mode = VIGIL_OWN_THREAD; mode <= VIGIL_OWN_LOOP; mode++) {
        struct place p;
        place_init(&p, NULL, 0);
        p.opts.mode = (enum vigil_loop_mode)mode;
        place_start(&p);
        struct stubborn a = {.c = p.client, .method = "GET"}, b = a;
        struct vigil_request_opts o = VIGIL_INIT(struct vigil_request_opts);
        o.path = "/y";
        o.done = on_stubborn;
        o.arg = &b;
        atomic_store(&a.n_begun, 1);
        atomic_store(&b.n_begun, 1);
        struct vigil_request *handle = NULL;
        struct vigil_request_opts first = o;
        first.arg = &a;
        assert_int_equal(vigil_request(p.client, &first, NULL, NULL), 0);
        assert_int_equal(vigil_request(p.client, &o, &handle, NULL), 0);
        a.other = handle;
        wait_held(&p, 2);
        place_done(&p);
        assert_int_equal(a.n_done, 1);
        assert_int_equal(b.n_done, 1);
    }
}

/* A call that waits, made from a `done` of a client that closes, comes back at once. */
static void on_done_waits(void *arg, const struct vigil_error *err, struct vigil_text body)
{
    struct stubborn *s = arg;
    (void)err;
    (void)body;
    const struct vigil_object *o = NULL;
    s->last_code = vigil_read(s->c, &vigil_pods, "d", "a", &o, NULL);
    atomic_fetch_add(&s->n_done, 1);
}

static void a_done_that_waits_for_a_request_is_refused(void **state)
{
    (void)state;
    struct place p;
    place_init(&p, NULL, 0);
    p.opts.mode = VIGIL_OWN_LOOP;
    place_start(&p);
    struct stubborn s = {.c = p.client};
    struct vigil_request_opts o = VIGIL_INIT(struct vigil_request_opts);
    o.path = "/x";
    o.done = on_done_waits;
    o.arg = &s;
    assert_int_equal(vigil_request(p.client, &o, NULL, NULL), 0);
    for (int i = 0; i < 20; i++)
        vigil_client_step(p.client);
    place_done(&p);
    assert_int_equal(s.n_done, 1);
    assert_true(s.last_code == VIGIL_E_CLOSED || s.last_code == VIGIL_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_done_that_asks_again_is_refused_when_the_client_closes,
                                        vg_test_tmpdir_setup, vg_test_tmpdir_teardown),
        cmocka_unit_test(a_done_that_cancels_others_is_fine_when_the_client_closes),
        cmocka_unit_test(a_done_that_waits_for_a_request_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
