/* informer_served_test.c - whole informers, from the socket to the callback, against a scripted
 * server on a fake clock: what the watch-error handler hears (scenario 48), what a broken watch hid
 * (43, 47), and every allocation of the way failing once. */
#include "test_support.h"

#include "client/reflector/world_testing.h"

#include "informer_testing.h"

struct served {
    struct script_server *server;
    struct vg_fake_clock clock;
    struct vigil_client *c;
    struct vigil_informer *i;
    struct vigil_informer_opts opts;
    unsigned errors;
    struct vigil_error last;
};

static void on_error(void *arg, const struct vigil_error *err)
{
    struct served *s = arg;
    s->errors++;
    s->last = *err;
}

static void served_init(struct served *s, const struct step *steps, unsigned n)
{
    struct vigil_config_opts co = VIGIL_INIT(struct vigil_config_opts);
    struct vigil_client_opts cl = VIGIL_INIT(struct vigil_client_opts);
    struct vigil_config *config;
    char url[64];
    *s = (struct served){.server = script_new(steps, n)};
    s->opts = (struct vigil_informer_opts){.size = sizeof(s->opts),
                                           .resource = &vigil_pods,
                                           .no_watch_list = true,
                                           .on_error = on_error,
                                           .arg = s};
    vg_fake_clock_init(&s->clock);
    snprintf(url, sizeof(url), "http://127.0.0.1:%d", s->server->port);
    co.server = url;
    cl.mode = VIGIL_OWN_LOOP;
    cl.qps = -1;
    assert_int_equal(vigil_config_new(&co, &config, NULL), 0);
    assert_int_equal(vg_client_new(config, &cl, &s->clock.clock, &s->c, NULL), 0);
    vigil_config_free(config);
}

static void served_done(struct served *s)
{
    vigil_informer_free(s->i);
    vigil_client_free(s->c);
    script_stop(s->server);
    vg_fake_clock_done(&s->clock);
}

/* One turn; waits of the informer pass at once. */
static void served_step(struct served *s)
{
    vigil_client_step(s->c);
    uint64_t wait = s->i && s->i->reflector ? vg_reflector_wait_ns(s->i->reflector) : 0;
    if (s->i && s->i->restart.armed)
        wait = VG_NS_PER_S;
    if (wait)
        vg_fake_clock_advance(&s->clock, wait);
    struct pollfd p = {.fd = vigil_client_fd(s->c), .events = POLLIN};
    poll(&p, 1, wait ? 0 : 1);
}

#define SERVED_UNTIL(s, condition)                                                                 \
    for (unsigned left_ = 60000; !(condition); served_step(s)) {                                   \
        if (left_-- == 0)                                                                          \
            fail_msg("waited in vain for: %s", #condition);                                        \
    }

static bool is_at(struct served *s, const char *version)
{
    char got[64];
    size_t n = vigil_store_resource_version(vigil_informer_store(s->i), got, sizeof(got));
    return vg_slice_eq(vg_slice(got, n), vg_slice_str(version));
}

static void served_start(struct served *s, struct notebook *b)
{
    struct vigil_handler h = notebook_handler(b);
    script_listen(s->server);
    assert_int_equal(vigil_informer_new(s->c, &s->opts, &s->i, NULL), 0);
    assert_int_equal(vigil_informer_add_handler(s->i, &h, NULL, NULL), 0);
    assert_int_equal(vigil_informer_start(s->i), 0);
}

static void s48_a_refused_list_is_told(void **state)
{
    (void)state;
    for (int streams = 0; streams < 2; streams++) {
        static const struct step REFUSED = {.status = 403,
                                            .body = STATUS(403, "Forbidden", "Access Denied")};
        const struct step steps[] = {REFUSED, REFUSED, LISTED};
        struct served s;
        struct notebook b;
        served_init(&s, steps + !streams, 3 - (unsigned)!streams);
        s.opts.no_watch_list = !streams;
        served_start(&s, &b);
        SERVED_UNTIL(&s, s.errors == 1);
        assert_int_equal(s.last.code, VIGIL_E_FORBIDDEN);
        assert_int_equal(s.last.http, 403);
        assert_non_null(strstr(s.last.message, "Access Denied"));
        assert_false(vigil_informer_has_synced(s.i));
        if (!streams)
            SERVED_UNTIL(&s, vigil_informer_has_synced(s.i)); /* it goes on by itself */
        served_done(&s);
        notebook_done(&b);
    }
}

/* The watch breaks, its version has expired by then, and a list tells what was hidden. */
static void s43_and_s47_a_broken_watch_hides_changes(void **state)
{
    (void)state;
    struct served s;
    struct notebook b[2];
    const struct step steps[] = {
        ANSWER(LIST("2", ITEM("p1", "1") "," ITEM("p2", "2"))), STREAM(EXPIRED_EVENT, STEP_RESET),
        ANSWER(LIST("5", ITEM("p1", "1") "," ITEM("p2", "4") "," ITEM("p3", "5")))};
    served_init(&s, steps, VG_ARRAY_LEN(steps));
    s.opts.resync_ms = 3600 * 1000;
    served_start(&s, &b[0]);
    struct vigil_registration *r;
    struct vigil_handler h = notebook_handler(&b[1]);
    h.resync_ms = VIGIL_NO_RESYNC;
    assert_int_equal(vigil_informer_add_handler(s.i, &h, &r, NULL), 0);
    SERVED_UNTIL(&s, vigil_informer_has_synced(s.i));
    r->handler->is_syncing = false; /* as after the first look for resyncs */
    SERVED_UNTIL(&s, is_at(&s, "5"));
    served_step(&s);
    notebook_expect(&b[0], "+p1@1! +p2@2! synced ~p1@1>1 ~p2@2>4 +p3@5");
    notebook_expect(&b[1], "+p1@1! +p2@2! synced ~p2@2>4 +p3@5");
    assert_int_equal(s.errors, 0); /* an expired watch is no trouble */
    served_done(&s);
    for (int i = 0; i < 2; i++)
        notebook_done(&b[i]);
}

/* ---- memory ---- */

static void fail_on_two(void *arg, const struct vigil_object *o,
                        void (*emit)(void *emit_arg, struct vigil_text value), void *emit_arg)
{
    (void)arg;
    if (vigil_text_is(vigil_object_name(o), "two"))
        vg_alloc_fail_at(1, 0);
    emit(emit_arg, vigil_object_name(o));
    vg_alloc_fail_at(0, 0);
}

static void note_error(void *arg, const struct vigil_error *err)
{
    *(int *)arg = err->code;
}

static void s44_of_a_batch_one_fails(void **state)
{
    (void)state;
    struct rig g;
    struct notebook b;
    int code = 0;
    struct vigil_index index = {"name", fail_on_two, NULL};
    struct vigil_informer_opts opts = VIGIL_INIT(struct vigil_informer_opts);
    opts.indexes = &index;
    opts.n_indexes = 1;
    opts.on_error = note_error;
    opts.arg = &code;
    rig_up(&g, VIGIL_OWN_LOOP, true, &opts);
    struct vigil_handler h = notebook_handler(&b);
    b.store = vigil_informer_store(g.i);
    rig_handle(&g, &h);
    assert_int_equal(rig_list(&g, "", "1"), 0);
    rig_settle(&g);
    assert_int_equal(rig_event(&g, "one@2"), 0);
    assert_int_equal(rig_event(&g, "two@3"), 0);
    assert_int_equal(rig_event(&g, "three@4"), 0);
    rig_settle(&g);
    notebook_expect(&b, "synced +one@2 +three@4");
    assert_int_equal(code, VIGIL_E_MEMORY);
    assert_true(g.i->restart.armed); /* and a list will bring what was lost */
    rig_down(&g);
    notebook_done(&b);
}

/* A server with a past: {a@1, b@1}, then a@2, +c@3, -b@4. Who watches from 1 is told of it; whoever
 * lists after somebody has watched gets the outcome. */
struct past {
    bool was_watched;
};

#define NEWS                                                                                       \
    EVENT("MODIFIED", POD("a", "2"))                                                               \
    EVENT("ADDED", POD("c", "3")) EVENT("DELETED", POD("b", "4")) MARK("5")

static bool answer_past(void *arg, const char *asked, struct step *ret)
{
    struct past *p = arg;
    static const struct step OLD = ANSWER(LIST("1", ITEM("a", "1") "," ITEM("b", "1")));
    static const struct step NEW = ANSWER(LIST("5", ITEM("a", "2") "," ITEM("c", "3")));
    static const struct step EVENTS = STREAM(NEWS, STEP_HOLD);
    static const struct step NOTHING = STREAM("\n", STEP_HOLD);
    static const struct step OLD_STATE = STREAM(
        EVENT("ADDED", POD("a", "1")) EVENT("ADDED", POD("b", "1")) END_MARK("1", "true") NEWS,
        STEP_HOLD);
    static const struct step NEW_STATE =
        STREAM(EVENT("ADDED", POD("a", "2")) EVENT("ADDED", POD("c", "3")) END_MARK("5", "true"),
               STEP_HOLD);
    bool is_old = !p->was_watched;
    if (!strstr(asked, "watch=true")) {
        *ret = is_old ? OLD : NEW;
        return true;
    }
    p->was_watched = true;
    if (strstr(asked, "sendInitialEvents"))
        *ret = is_old ? OLD_STATE : NEW_STATE;
    else
        *ret = strstr(asked, "resourceVersion=1&") ? EVENTS : NOTHING;
    return true;
}

/* What the handler was told, without memory of its own: versions of a, b, c; 0 is none. */
struct told {
    char version[3];
    bool is_wrong;
};

static char *place(struct told *t, const struct vigil_object *o)
{
    return &t->version[vigil_object_name(o).p[0] - 'a'];
}
static void told_add(void *arg, const struct vigil_object *o, bool is_initial)
{
    (void)is_initial;
    struct told *t = arg;
    t->is_wrong = t->is_wrong || *place(t, o);
    *place(t, o) = vigil_object_resource_version(o).p[0];
}
static void told_update(void *arg, const struct vigil_object *before, const struct vigil_object *o)
{
    struct told *t = arg;
    t->is_wrong = t->is_wrong || *place(t, o) != vigil_object_resource_version(before).p[0];
    *place(t, o) = vigil_object_resource_version(o).p[0];
}
static void told_delete(void *arg, const struct vigil_object *o, bool is_tombstone)
{
    (void)is_tombstone;
    struct told *t = arg;
    *place(t, o) =
        0; /* it may never have been told: when the list was lost and the watch went on */
}

static int follow(struct served *s, struct told *t)
{
    struct vigil_handler h = {.size = sizeof(h),
                              .on_add = told_add,
                              .on_update = told_update,
                              .on_delete = told_delete,
                              .arg = t};
    int r = vigil_informer_new(s->c, &s->opts, &s->i, NULL);
    if (r == 0)
        r = vigil_informer_add_handler(s->i, &h, NULL, NULL);
    if (r == 0)
        r = vigil_informer_start(s->i);
    return r;
}

static void check_memory(enum vigil_queue queue, bool streams)
{
    unsigned rounds = 0, survived = 0;
    VG_ALLOC_FAIL_LOOP (n) {
        struct served s;
        struct past past = {0};
        struct told t = {0};
        vg_alloc_fail_at(0, 0); /* the client's own making is another test's */
        served_init(&s, NULL, 0);
        s.server->answer = answer_past;
        s.server->answer_arg = &past;
        s.opts.no_watch_list = !streams;
        s.opts.queue = queue;
        script_listen(s.server);
        vg_alloc_fail_at(n, 0);
        int r = follow(&s, &t);
        if (r == 0) {
            SERVED_UNTIL(&s, t.version[0] == '2' && !t.version[1] && t.version[2] == '3');
            assert_int_equal(vigil_store_count(vigil_informer_store(s.i)), 2);
            survived++;
        }
        bool has_failed = vg_test_alloc_failed();
        assert_false(t.is_wrong);
        if (r < 0)
            assert_true(has_failed && r == VIGIL_E_MEMORY);
        rounds++;
        served_done(&s);
    }
    assert_true(rounds > 30);
    assert_true(survived > rounds / 2);
}

static void every_allocation_of_the_way_may_fail(void **state)
{
    (void)state;
    check_memory(VIGIL_QUEUE_ORDERED, false);
    check_memory(VIGIL_QUEUE_ORDERED, true);
}

static void so_it_may_by_key(void **state)
{
    (void)state;
    check_memory(VIGIL_QUEUE_BY_KEY, false);
    check_memory(VIGIL_QUEUE_BY_KEY, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s48_a_refused_list_is_told),
        cmocka_unit_test(s43_and_s47_a_broken_watch_hides_changes),
        cmocka_unit_test(s44_of_a_batch_one_fails),
        cmocka_unit_test(every_allocation_of_the_way_may_fail),
        cmocka_unit_test(so_it_may_by_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
