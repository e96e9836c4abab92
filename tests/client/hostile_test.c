/* hostile_test.c - every path of the client against every way of a hostile server (hostile.c). For
 * each: nothing crashes or leaks, every request ends once, a callback is called while the informer
 * makes no progress, the number of requests is bounded, and once the server is healed the store
 * equals the truth. On a fake clock, with the default times. That a write is not repeated is shown
 * by h2_refusals_test. */
#include "hostile.h"

#include <signal.h>

#include "client/informer/informer_int.h"
#include "client/leader/leader_int.h"
#include "vigil/recorder.h"

#define STEP_MS 200
/* How long the server is hostile, and how often it may be asked in that time by an informer, a
 * leader (every 2 s, up to 3 requests), a recorder and three requests. */
#define HOSTILE_MS 90000
#define ASKED_MAX_TIMES 300
/* Silence on an open watch is found out after timeoutSeconds, 10 min at most, and a wait of 1 min.
 */
#define HEAL_MS 800000

struct run {
    struct hostile server;
    struct vg_fake_clock clock;
    struct vigil_client *c;
    struct vigil_informer *i;
    struct vigil_leader *l;
    struct vigil_recorder *rec;
    unsigned n_errors, n_lost, n_back, n_done[3];
    unsigned n_added, n_deleted;
    char last[VIGIL_MESSAGE_MAX];
};

static void on_error(void *arg, const struct vigil_error *err)
{
    struct run *r = arg;
    assert_true(err->code < 0 && err->message[0]);
    r->n_errors++;
    snprintf(r->last, sizeof(r->last), "%s", err->message);
}
static void on_lost(void *arg, const struct vigil_error *err)
{
    struct run *r = arg;
    assert_true(err->code < 0 && err->message[0]);
    assert_int_equal(r->n_lost, r->n_back);
    r->n_lost++;
}
static void on_back(void *arg)
{
    struct run *r = arg;
    r->n_back++;
    assert_int_equal(r->n_lost, r->n_back);
}
static void on_add(void *arg, const struct vigil_object *o, bool is_initial)
{
    (void)o;
    (void)is_initial;
    ((struct run *)arg)->n_added++;
}
static void on_delete(void *arg, const struct vigil_object *o, bool is_tombstone)
{
    (void)o;
    (void)is_tombstone;
    ((struct run *)arg)->n_deleted++;
}
static void on_done(void *arg, const struct vigil_error *err, struct vigil_text body)
{
    (void)body;
    (void)err;
    ++*(unsigned *)arg;
}

/* All ways are tried before the test fails. */
static unsigned n_complaints;
#define complain(...)                                                                              \
    do {                                                                                           \
        print_error(__VA_ARGS__);                                                                  \
        print_error("\n");                                                                         \
        n_complaints++;                                                                            \
    } while (0)

static void make_client(struct run *r)
{
    char url[64];
    struct vigil_config *config = NULL;
    struct vigil_config_opts co = VIGIL_INIT(struct vigil_config_opts);
    struct vigil_client_opts o = VIGIL_INIT(struct vigil_client_opts);
    snprintf(url, sizeof(url), "http://127.0.0.1:%d", r->server.port);
    co.server = url;
    co.token = "token";
    o.mode = VIGIL_OWN_LOOP;
    o.qps = -1; /* the bound is not the rate limit's */
    o.timeout_ms = 20000;
    vg_fake_clock_init(&r->clock);
    assert_int_equal(vigil_config_new(&co, &config, NULL), 0);
    assert_int_equal(vg_client_new(config, &o, &r->clock.clock, &r->c, NULL), 0);
    vigil_config_free(config);
}

static void make_informer(struct run *r, bool streams, enum vigil_queue queue)
{
    struct vigil_informer_opts o = VIGIL_INIT(struct vigil_informer_opts);
    struct vigil_handler h = VIGIL_INIT(struct vigil_handler);
    o.resource = &vigil_pods;
    o.no_watch_list = !streams;
    o.queue = queue;
    o.on_error = on_error;
    o.on_lost = on_lost;
    o.on_back = on_back;
    o.arg = h.arg = r;
    h.on_add = on_add;
    h.on_delete = on_delete;
    assert_int_equal(vigil_informer_new(r->c, &o, &r->i, NULL), 0);
    assert_int_equal(vigil_informer_add_handler(r->i, &h, NULL, NULL), 0);
    assert_int_equal(vigil_informer_start(r->i), 0);
}

static void make_others(struct run *r)
{
    static const char *const METHODS[] = {"GET", "POST", "DELETE"};
    struct vigil_leader_opts lo = VIGIL_INIT(struct vigil_leader_opts);
    lo.ns = "d";
    lo.name = "one";
    lo.identity = "me";
    assert_int_equal(vigil_leader_new(r->c, &lo, &r->l, NULL), 0);
    assert_int_equal(vigil_recorder_new(r->c, "hostile", &r->rec, NULL), 0);
    for (int i = 0; i < 3; i++) {
        struct vigil_request_opts o = VIGIL_INIT(struct vigil_request_opts);
        o.method = METHODS[i];
        o.path = i == 1 ? "/api/v1/namespaces/d/configmaps" : "/api/v1/namespaces/d/configmaps/x";
        o.body = vigil_text(i == 1 ? "{}" : "");
        o.done = on_done;
        o.arg = &r->n_done[i];
        assert_int_equal(vigil_request(r->c, &o, NULL, NULL), 0);
    }
}

static void turn(struct run *r)
{
    struct pollfd p = {.fd = vigil_client_fd(r->c), .events = POLLIN};
    vigil_client_step(r->c);
    for (int i = 0; i < 20 && poll(&p, 1, 1) > 0; i++)
        vigil_client_step(r->c);
    vg_fake_clock_advance(&r->clock, STEP_MS * VG_NS_PER_MS);
}

static unsigned asked(struct run *r)
{
    pthread_mutex_lock(&r->server.mu);
    unsigned n = r->server.n_asked;
    pthread_mutex_unlock(&r->server.mu);
    return n;
}

static bool store_is(struct run *r, unsigned version)
{
    struct vigil_store *s = vigil_informer_store(r->i);
    size_t n = 0;
    for (unsigned i = 0; i < HOSTILE_PODS; i++) {
        char key[16], want[16];
        snprintf(key, sizeof(key), "d/p%u", i);
        snprintf(want, sizeof(want), "%u", hostile_truth(version, i));
        const struct vigil_object *o = vigil_store_get(s, vigil_text(key));
        bool is_there = hostile_truth(version, i) != 0;
        bool ok = is_there == (o != NULL) &&
                  (!o || vigil_text_is(vigil_object_resource_version(o), want));
        vigil_object_unref(o);
        if (!ok)
            return false;
        n += is_there;
    }
    return vigil_store_count(s) == n;
}

static void end(struct run *r)
{
    vigil_leader_free(r->l);
    vigil_recorder_free(r->rec);
    vigil_informer_free(r->i);
    vigil_client_free(r->c);
    hostile_stop(&r->server);
    vg_fake_clock_done(&r->clock);
}

static void run_way(const struct hostile_way *way, bool streams, enum vigil_queue queue)
{
    struct run *r = calloc(1, sizeof(*r));
    assert_non_null(r);
    hostile_start(&r->server, way);
    make_client(r);
    make_informer(r, streams, queue);
    make_others(r);
    for (unsigned ms = 0; ms < HOSTILE_MS; ms += STEP_MS)
        turn(r);
    const char *how = streams ? "watch-list" : "list";
    if (asked(r) > ASKED_MAX_TIMES)
        complain("%s (%s): asked %u times in %d s", way->name, how, asked(r), HOSTILE_MS / 1000);
    if (r->n_errors + r->n_lost == 0 && !store_is(r, 100) && !way->is_harmless)
        complain("%s (%s): stuck without a word", way->name, how);
    for (int i = 0; i < 3; i++)
        if (r->n_done[i] != 1)
            complain("%s: request %d was told of %u times", way->name, i, r->n_done[i]);
    hostile_heal(&r->server);
    for (unsigned ms = 0; ms < HEAL_MS && !store_is(r, 200); ms += STEP_MS)
        turn(r);
    if (!store_is(r, 200))
        complain("%s (%s): the store is not the truth; last error: %s", way->name, how, r->last);
    assert_true(vigil_informer_has_synced(r->i));
    /* Not equal: a deletion of what nobody knows is told, too, as client-go does. */
    assert_true(r->n_added >= vigil_store_count(vigil_informer_store(r->i)));
    end(r);
    free(r);
}

static void every_way_is_survived(void **state)
{
    (void)state;
    size_t turn_of = (size_t)vg_test_seed();
    const char *only = getenv("VG_WAY");
    for (size_t i = 0; i < hostile_n_ways; i++) {
        if (only && strcmp(only, hostile_ways[i].name) != 0)
            continue;
        if (vg_test_is_long() || only) {
            for (int k = 0; k < 4; k++)
                run_way(&hostile_ways[i], k & 1, (enum vigil_queue)(k >> 1));
        } else {
            run_way(&hostile_ways[i], (turn_of + i) & 1,
                    (enum vigil_queue)((turn_of + i) >> 1 & 1));
        }
    }
    assert_int_equal(n_complaints, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_way_is_survived)};
    assert_true(hostile_n_ways >= 33);
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
