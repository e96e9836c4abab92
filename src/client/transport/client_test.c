/* client_test.c - requests against a scripted server: verbs, retries, limits, threads, ends. */
#include "place_testing.h"

#include <fcntl.h>

static void verbs_ask_for_the_right_things(void **state)
{
    (void)state;
    PLACE(p, {.body = OBJECT}, {.status = 201, .body = OBJECT}, {.body = OBJECT}, {.body = OBJECT},
          {.body = STATUS(200, "")}, {.status = 201, .body = STATUS(201, "")}, {.body = OBJECT});
    place_start(&p);
    const struct vigil_object *o = NULL;
    struct vigil_text json = vigil_text("{}");
    assert_int_equal(vigil_read(p.client, &vigil_pods, "d", "a", &o, NULL), 0);
    assert_true(vigil_text_is(vigil_object_key(o), "d/a"));
    vigil_object_unref(o);
    assert_int_equal(vigil_create(p.client, &vigil_deployments, "d", json, &o, NULL), 0);
    vigil_object_unref(o);
    assert_int_equal(vigil_update(p.client, &vigil_nodes, NULL, "n 1", "status", json, &o, NULL),
                     0);
    vigil_object_unref(o);
    struct vigil_patch_opts po = VIGIL_INIT(struct vigil_patch_opts);
    po.type = VIGIL_PATCH_APPLY;
    po.field_manager = "me";
    po.force = po.dry_run = true;
    assert_int_equal(vigil_patch(p.client, &vigil_pods, "d", "a", json, &po, NULL, NULL), 0);
    struct vigil_delete_opts dopts = VIGIL_INIT(struct vigil_delete_opts);
    dopts.uid = "u";
    assert_int_equal(vigil_delete(p.client, &vigil_pods, "d", "a", &dopts, NULL), 0);
    assert_int_equal(vigil_call(p.client, &vigil_pods, "d", "a", "binding", json, NULL, NULL), 0);
    assert_int_equal(vigil_delete(p.client, &vigil_pods, "d", "a", NULL, NULL), 0);
    static const char *const WANT[] = {
        "GET /api/v1/namespaces/d/pods/a",
        "POST /apis/apps/v1/namespaces/d/deployments",
        "PUT /api/v1/nodes/n%201/status",
        "PATCH /api/v1/namespaces/d/pods/a?fieldManager=me&force=true&dryRun=All",
        "DELETE /api/v1/namespaces/d/pods/a",
        "POST /api/v1/namespaces/d/pods/a/binding",
        "DELETE /api/v1/namespaces/d/pods/a"};
    for (unsigned i = 0; i < VG_ARRAY_LEN(WANT); i++)
        assert_string_equal(p.server->asked[i], WANT[i]);
    assert_true(has_header(&p, 3, "Content-Type: application/apply-patch+yaml"));
    assert_true(has_header(&p, 0, "User-Agent: client_test/"));
    assert_int_equal(p.server->n_accepted, 1); /* one connection served them all */
    place_done(&p);
}

static void programs_inherit_no_connection(void **state)
{
    (void)state;
    PLACE(p, {.body = OBJECT});
    place_start(&p);
    const struct vigil_object *o = NULL;
    assert_int_equal(vigil_read(p.client, &vigil_pods, "d", "a", &o, NULL), 0);
    vigil_object_unref(o);
    int n = 0;
    for (int fd = 0; fd < 1024; fd++) {
        struct sockaddr_in a = {0};
        if (getpeername(fd, (struct sockaddr *)&a, &(socklen_t){sizeof(a)}) < 0 ||
            a.sin_family != AF_INET)
            continue;
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        n++;
    }
    assert_true(n >= 1); /* the client's end, which it keeps */
    place_done(&p);
}

static void misuse_is_answered(void **state)
{
    (void)state;
    PLACE(p, {.body = "hello"});
    place_start(&p);
    struct vigil_error err = {0};
    const struct vigil_object *o = NULL;
    assert_int_equal(vigil_read(p.client, &vigil_pods, NULL, "a", &o, &err), VIGIL_E_INVALID);
    assert_non_null(strstr(err.message, "namespace"));
    assert_int_equal(vigil_read(p.client, &vigil_nodes, NULL, "", &o, &err), VIGIL_E_INVALID);
    struct vigil_patch_opts po = VIGIL_INIT(struct vigil_patch_opts);
    po.type = VIGIL_PATCH_APPLY;
    assert_int_equal(
        vigil_patch(p.client, &vigil_pods, "d", "a", vigil_text("{}"), &po, NULL, &err),
        VIGIL_E_INVALID);
    assert_int_equal(vigil_read(p.client, &vigil_nodes, NULL, "n", &o, &err), VIGIL_E_INVALID);
    assert_non_null(strstr(err.message, "no object"));
    place_done(&p);
}

static void refusals_become_errors(void **state)
{
    (void)state;
    static const struct {
        struct step step;
        int code;
        const char *reason, *words;
    } v[] = {
        {{.status = 404, .body = STATUS(404, "NotFound")}, VIGIL_E_NOT_FOUND, "NotFound", "why"},
        {{.status = 409, .body = STATUS(409, "Conflict")}, VIGIL_E_CONFLICT, "Conflict", "why"},
        {{.status = 409, .body = STATUS(409, "AlreadyExists")}, VIGIL_E_EXISTS, "", "why"},
        {{.status = 410, .body = "gone"}, VIGIL_E_COMPACTED, "", "410: gone"},
        {{.status = 401, .body = ""}, VIGIL_E_UNAUTHORIZED, "", "401"},
        {{.status = 403, .body = "{}"}, VIGIL_E_FORBIDDEN, "", "403"},
        {{.status = 429, .body = "{}"}, VIGIL_E_BUSY, "", "429"},
        {{.status = 422, .body = STATUS(422, "Invalid")}, VIGIL_E_INVALID, "Invalid", "why"},
        {{.status = 500, .body = "<html>\n<b>no"}, VIGIL_E_INTERNAL, "", "<html> <b>no"},
        {{.status = 503, .body = ""}, VIGIL_E_NETWORK, "", "503"},
        {{.status = 504, .body = ""}, VIGIL_E_TIMEOUT, "", "504"},
        {{.status = 302, .body = ""}, VIGIL_E_INVALID, "", "302"},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(v); i++) {
        PLACE(p, v[i].step);
        place_start(&p);
        struct vigil_error err = {0};
        const struct vigil_object *o = NULL;
        assert_int_equal(vigil_read(p.client, &vigil_nodes, NULL, "n", &o, &err), v[i].code);
        assert_int_equal(err.http, v[i].step.status);
        if (v[i].reason[0])
            assert_string_equal(err.reason, v[i].reason);
        assert_non_null(strstr(err.message, v[i].words));
        place_done(&p);
    }
}

static void nobody_there_is_said(void **state)
{
    (void)state;
    PLACE(p, {0});
    place_start(&p);
    struct place q = p; /* the same client, after its server has gone */
    script_stop(p.server);
    struct vigil_error err = {0};
    const struct vigil_object *o = NULL;
    assert_int_equal(vigil_read(q.client, &vigil_nodes, NULL, "n", &o, &err), VIGIL_E_NETWORK);
    assert_non_null(strstr(err.message, "does the server run"));
    vigil_client_free(q.client);
}

static void answers_with_retry_after_are_waited_for(void **state)
{
    (void)state;
    struct fake_place f;
    const struct step steps[] = {{.status = 429, .headers = "Retry-After: 2\r\n"},
                                 {.status = 503, .headers = "Retry-After: 1\r\n"},
                                 {.body = "ok"}};
    place_init(&f.p, steps, 3);
    fake_start(&f);
    struct answer a;
    ask(f.p.client, "POST", &a);
    assert_true(settle(&f, &a) >= 3 * VG_NS_PER_S);
    assert_int_equal(a.err.code, 0);
    assert_string_equal(a.body, "ok");
    assert_int_equal(script_asked(f.p.server), 3);
    fake_done(&f);
}

static void retries_end(void **state)
{
    (void)state;
    struct fake_place f;
    struct step steps[12];
    for (size_t i = 0; i < VG_ARRAY_LEN(steps); i++)
        steps[i] = (struct step){
            .status = 429, .headers = "Retry-After: 1\r\n", .body = STATUS(429, "TooManyRequests")};
    place_init(&f.p, steps, VG_ARRAY_LEN(steps));
    f.p.opts.timeout_ms = 3600 * 1000;
    fake_start(&f);
    struct answer a;
    ask(f.p.client, "GET", &a);
    settle(&f, &a);
    assert_int_equal(a.err.code, VIGIL_E_BUSY);
    assert_int_equal(a.err.retry_after_s, 1);
    assert_int_equal(script_asked(f.p.server), 11);
    fake_done(&f);
}

static void lost_gets_are_tried_again_and_posts_are_not(void **state)
{
    (void)state;
    struct fake_place f;
    const struct step steps[] = {{.end = STEP_NOTHING}, {.body = "ok"}, {.end = STEP_NOTHING}};
    place_init(&f.p, steps, 3);
    fake_start(&f);
    struct answer a;
    ask(f.p.client, "GET", &a);
    assert_true(settle(&f, &a) >= VG_NS_PER_S);
    assert_string_equal(a.body, "ok");
    ask(f.p.client, "POST", &a);
    settle(&f, &a);
    assert_int_equal(a.err.code, VIGIL_E_NETWORK);
    assert_int_equal(script_asked(f.p.server), 3);
    fake_done(&f);
}

static void a_break_in_the_body_is_an_error(void **state)
{
    (void)state;
    PLACE(p, {.body = "half", .end = STEP_BREAK}, {.body = "half", .end = STEP_RESET});
    place_start(&p);
    struct vigil_error err = {0};
    const struct vigil_object *o = NULL;
    for (int i = 0; i < 2; i++)
        assert_int_equal(vigil_read(p.client, &vigil_nodes, NULL, "n", &o, &err), VIGIL_E_NETWORK);
    place_done(&p);
}

static void requests_time_out(void **state)
{
    (void)state;
    struct fake_place f;
    place_init(&f.p, NULL, 0);
    fake_start(&f);
    struct answer a;
    ask(f.p.client, "GET", &a);
    while (script_asked(f.p.server) == 0)
        step(&f, 0);
    vg_fake_clock_advance(&f.clock, 59 * VG_NS_PER_S);
    step(&f, 0);
    assert_false(a.is_done);
    vg_fake_clock_advance(&f.clock, 2 * VG_NS_PER_S);
    settle(&f, &a);
    assert_int_equal(a.err.code, VIGIL_E_TIMEOUT);
    fake_done(&f);
}

static void requests_keep_to_the_rate(void **state)
{
    (void)state;
    struct vg_rate l;
    vg_rate_init(&l, 5, 10, 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(vg_rate_take(&l, 0), 0);
    assert_int_equal(vg_rate_take(&l, 0), VG_NS_PER_S / 5);
    assert_int_equal(vg_rate_take(&l, 0), 2 * VG_NS_PER_S / 5);
    assert_int_equal(vg_rate_take(&l, VG_NS_PER_S), 0); /* five more have come */
    vg_rate_init(&l, 0, 10, 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(vg_rate_take(&l, 0), 0);

    struct fake_place f;
    const struct step steps[] = {{.body = "1"}, {.body = "2"}};
    place_init(&f.p, steps, 2);
    f.p.opts.qps = 0.1;
    f.p.opts.burst = 1;
    f.p.opts.timeout_ms = 3600 * 1000;
    fake_start(&f);
    struct answer a;
    ask(f.p.client, "GET", &a);
    uint64_t first = settle(&f, &a); /* a slow server has used up some of the ten seconds */
    ask(f.p.client, "GET", &a);
    assert_true(first + settle(&f, &a) >= 10 * VG_NS_PER_S);
    fake_done(&f);
}

static void cancels_end_requests(void **state)
{
    (void)state;
    struct fake_place f;
    place_init(&f.p, NULL, 0);
    fake_start(&f);
    struct answer a = {0};
    struct vigil_request_opts o = VIGIL_INIT(struct vigil_request_opts);
    struct vigil_request *r = NULL;
    o.path = "/x";
    o.done = on_answer;
    o.arg = &a;
    for (unsigned when = 0; when < 2; when++) { /* before it begins; while it waits */
        a = (struct answer){0};
        assert_int_equal(vigil_request(f.p.client, &o, &r, NULL), 0);
        while (when && script_asked(f.p.server) == 0)
            step(&f, 0);
        vigil_request_cancel(r);
        settle(&f, &a);
        assert_int_equal(a.err.code, VIGIL_E_CANCELED);
    }
    /* And those that are left when the client goes. */
    ask(f.p.client, "GET", &a);
    step(&f, 0);
    fake_done(&f);
    assert_int_equal(a.err.code, VIGIL_E_CANCELED);
}

static bool hold_watches(void *arg, const char *asked, struct step *ret)
{
    (void)arg;
    *ret = (struct step){.body = OBJECT};
    return strcmp(asked, "GET /watch") != 0;
}

/* libcurl would keep the second back until it knew whether the first one's connection can be
 * shared, and over plain HTTP it never hears that it cannot. */
static void a_watch_without_an_answer_holds_nobody_up(void **state)
{
    (void)state;
    struct place p;
    const struct vigil_object *o = NULL;
    struct answer a = {0};
    struct vigil_request_opts watch = VIGIL_INIT(struct vigil_request_opts);
    place_init(&p, NULL, 0);
    p.server->answer = hold_watches;
    p.opts.timeout_ms = 60 * 1000;
    place_start(&p);
    watch.path = "/watch";
    watch.done = on_answer;
    watch.arg = &a;
    watch.timeout_ms = 3600 * 1000;
    assert_int_equal(vigil_request(p.client, &watch, NULL, NULL), 0);
    assert_int_equal(vigil_read(p.client, &vigil_pods, "d", "a", &o, NULL), 0);
    vigil_object_unref(o);
    place_done(&p);
    assert_int_equal(a.err.code, VIGIL_E_CANCELED);
}

static void calls_that_wait_turn_the_callers_loop(void **state)
{
    (void)state;
    PLACE(p, {.body = OBJECT, .is_cut = true});
    p.opts.mode = VIGIL_OWN_LOOP;
    place_start(&p);
    const struct vigil_object *o = NULL;
    assert_int_equal(vigil_read(p.client, &vigil_pods, "d", "a", &o, NULL), 0);
    vigil_object_unref(o);
    place_done(&p);
}

static void waits_by_mistake(void *arg, const struct vigil_error *err, struct vigil_text body)
{
    (void)err;
    (void)body;
    struct place *p = arg;
    const struct vigil_object *o = NULL;
    struct vigil_error why = {0};
    int r = vigil_read(p->client, &vigil_nodes, NULL, "n", &o, &why);
    pthread_mutex_lock(&p->server->mu);
    p->opts.burst = r == VIGIL_E_INVALID && strstr(why.message, "callback") ? 7 : 8;
    pthread_mutex_unlock(&p->server->mu);
}

static bool answer_anything(void *arg, const char *asked, struct step *ret)
{
    (void)arg;
    (void)asked;
    *ret = (struct step){.body = OBJECT};
    return true;
}

static void callbacks_may_not_wait(void **state)
{
    (void)state;
    struct place p;
    place_init(&p, NULL, 0);
    p.server->answer = answer_anything;
    place_start(&p);
    struct vigil_request_opts o = VIGIL_INIT(struct vigil_request_opts);
    o.path = "/x";
    o.done = waits_by_mistake;
    o.arg = &p;
    assert_int_equal(vigil_request(p.client, &o, NULL, NULL), 0);
    const struct vigil_object *obj = NULL;
    assert_int_equal(vigil_read(p.client, &vigil_nodes, NULL, "n", &obj, NULL), 0);
    vigil_object_unref(obj);
    unsigned seen = 0;
    while (seen < 7) {
        pthread_mutex_lock(&p.server->mu);
        seen = p.opts.burst;
        pthread_mutex_unlock(&p.server->mu);
    }
    assert_int_equal(seen, 7);
    place_done(&p);
}

/* ---- lists ---- */

struct names {
    char text[256];
    unsigned stop_after;
    unsigned n;
};

static bool each_name(void *arg, const struct vigil_object *o)
{
    struct names *names = arg;
    size_t at = strlen(names->text);
    snprintf(names->text + at, sizeof(names->text) - at, "%.*s(%.*s) ",
             VIGIL_TEXT_ARG(vigil_object_name(o)), VIGIL_TEXT_ARG(vigil_object_kind(o)));
    return ++names->n != names->stop_after;
}

#define PAGE(next, a, b)                                                                           \
    {                                                                                              \
        .body = "{\"kind\":\"NodeList\",\"apiVersion\":\"v1\",\"metadata\":{\"continue\":\"" next  \
                "\"},\"items\":[{\"metadata\":{\"name\":\"" a "\"}},{\"metadata\":{\"name\":\"" b  \
                "\"}}]}",                                                                          \
        .is_cut = true                                                                             \
    }

static void lists_are_told_page_by_page(void **state)
{
    (void)state;
    PLACE(p, PAGE("n1", "a", "b"), PAGE("", "c", "d"), PAGE("n1", "a", "b"), PAGE("n1", "a", "b"),
          PAGE("n2", "c", "d"));
    place_start(&p);
    struct vigil_list_opts o = VIGIL_INIT(struct vigil_list_opts);
    struct names all = {0}, some = {.stop_after = 1}, three = {0};
    o.page_size = 2;
    o.label_selector = "a=b,c";
    assert_int_equal(vigil_list(p.client, &vigil_nodes, NULL, &o, each_name, &all, NULL), 0);
    assert_string_equal(all.text, "a(Node) b(Node) c(Node) d(Node) ");
    assert_string_equal(p.server->asked[0], "GET /api/v1/nodes?labelSelector=a%3Db%2Cc&limit=2");
    assert_string_equal(p.server->asked[1],
                        "GET /api/v1/nodes?labelSelector=a%3Db%2Cc&limit=2&continue=n1");
    assert_int_equal(vigil_list(p.client, &vigil_nodes, NULL, &o, each_name, &some, NULL), 0);
    assert_string_equal(some.text, "a(Node) ");
    o.limit = 3;
    assert_int_equal(vigil_list(p.client, &vigil_nodes, NULL, &o, each_name, &three, NULL), 0);
    assert_string_equal(three.text, "a(Node) b(Node) c(Node) ");
    place_done(&p);
}

/* ---- threads ---- */

static void use_client(unsigned index, void *arg)
{
    struct place *p = arg;
    for (int i = 0; i < 5; i++) {
        const struct vigil_object *o = NULL;
        struct vigil_error err = {0};
        int r = vigil_read(p->client, &vigil_pods, "d", index % 2 ? "a" : "b", &o, &err);
        assert_int_equal(r, 0);
        vigil_object_unref(o);
    }
}

static void many_threads_share_a_client(void **state)
{
    (void)state;
    struct place p;
    struct step steps[40];
    for (size_t i = 0; i < VG_ARRAY_LEN(steps); i++)
        steps[i] = (struct step){.body = OBJECT, .is_cut = i % 3 == 0};
    place_init(&p, steps, VG_ARRAY_LEN(steps));
    place_start(&p);
    vg_test_threads(8, use_client, &p);
    place_done(&p);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct place p;
    struct step steps[SCRIPT_MAX];
    for (size_t i = 0; i < VG_ARRAY_LEN(steps); i++)
        steps[i] = (struct step){.body = OBJECT};
    place_init(&p, steps, VG_ARRAY_LEN(steps));
    p.opts.mode = VIGIL_OWN_LOOP; /* all of it on this thread */
    struct vigil_config *config = NULL;
    assert_int_equal(vigil_config_new(&p.config, &config, NULL), 0);
    VG_ALLOC_FAIL_LOOP (n) {
        struct vigil_client *c = NULL;
        const struct vigil_object *o = NULL;
        struct vigil_error err = {0};
        int r = vigil_client_new(config, &p.opts, &c, &err);
        if (r == 0)
            r = vigil_create(c, &vigil_pods, "d", vigil_text("{}"), &o, &err);
        if (vg_test_alloc_failed() && r < 0)
            assert_true(r == VIGIL_E_MEMORY || r == VIGIL_E_NETWORK); /* a socket not polled */
        else
            assert_int_equal(r, 0);
        vigil_object_unref(o);
        vigil_client_free(c);
    }
    vigil_config_free(config);
    script_stop(p.server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verbs_ask_for_the_right_things),
        cmocka_unit_test(programs_inherit_no_connection),
        cmocka_unit_test(misuse_is_answered),
        cmocka_unit_test(refusals_become_errors),
        cmocka_unit_test(nobody_there_is_said),
        cmocka_unit_test(answers_with_retry_after_are_waited_for),
        cmocka_unit_test(retries_end),
        cmocka_unit_test(lost_gets_are_tried_again_and_posts_are_not),
        cmocka_unit_test(a_break_in_the_body_is_an_error),
        cmocka_unit_test(requests_time_out),
        cmocka_unit_test(requests_keep_to_the_rate),
        cmocka_unit_test(cancels_end_requests),
        cmocka_unit_test(a_watch_without_an_answer_holds_nobody_up),
        cmocka_unit_test(calls_that_wait_turn_the_callers_loop),
        cmocka_unit_test(callbacks_may_not_wait),
        cmocka_unit_test(lists_are_told_page_by_page),
        cmocka_unit_test(many_threads_share_a_client),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
