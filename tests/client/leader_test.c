/* Candidates for a Lease, against a real vigild: one leads, another takes over when it gives up or
 * dies, and a leader that cannot renew stops before that. */
#include "world.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/leader/leader_int.h"

struct candidate {
    struct vigil_client *c;
    struct vigil_leader *l;
    _Atomic int n_started, n_stopped, n_leaders;
    char leader[64]; /* read after n_leaders grew */
};

static void on_started(void *arg)
{
    struct candidate *a = arg;
    atomic_fetch_add(&a->n_started, 1);
}
static void on_stopped(void *arg)
{
    struct candidate *a = arg;
    atomic_fetch_add(&a->n_stopped, 1);
}
static void on_new_leader(void *arg, const char *identity)
{
    struct candidate *a = arg;
    snprintf(a->leader, sizeof(a->leader), "%s", identity);
    atomic_fetch_add(&a->n_leaders, 1);
}

static void stand(struct candidate *a, struct vigil_client *take_c, const char *identity,
                  bool release)
{
    memset(a, 0, sizeof(*a));
    a->c = take_c;
    struct vigil_leader_opts o = {.size = sizeof(o),
                                  .ns = "default",
                                  .name = "the-one",
                                  .identity = identity,
                                  .lease_ms = 1000,
                                  .renew_ms = 700,
                                  .retry_ms = 100,
                                  .release = release,
                                  .on_started = on_started,
                                  .on_stopped = on_stopped,
                                  .on_new_leader = on_new_leader,
                                  .arg = a};
    assert_int_equal(vigil_leader_new(a->c, &o, &a->l, NULL), 0);
}

static void step_down(struct candidate *a)
{
    vigil_leader_free(a->l);
    vigil_client_free(a->c);
}

static void await(_Atomic int *n, int value)
{
    while (atomic_load(n) < value)
        usleep(1000);
}

/* ---- two candidates on one clock that the test moves ---- */

static struct vg_fake_clock now;

/* Time goes on as soon as nobody waits for the server. */
static void turn(struct candidate *a, struct candidate *b)
{
    struct candidate *v[] = {a, b};
    bool is_busy = false;
    for (int i = 0; i < 2; i++) {
        if (!v[i])
            continue;
        struct pollfd p = {.fd = vigil_client_fd(v[i]->c), .events = POLLIN};
        vigil_client_step(v[i]->c);
        is_busy = is_busy || v[i]->l->x;
        poll(&p, 1, is_busy);
    }
    if (!is_busy)
        vg_fake_clock_advance(&now, 50 * VG_NS_PER_MS);
}

static void turn_for(struct candidate *a, struct candidate *b, uint64_t ms)
{
    uint64_t end = vg_clock_mono_ns(&now.clock) + ms * VG_NS_PER_MS;
    while (vg_clock_mono_ns(&now.clock) < end)
        turn(a, b);
}

/* Reads the lease: transitions. */
static int64_t transitions(const struct candidate *a, const char *holder)
{
    const struct vigil_object *o;
    assert_int_equal(vigil_read(a->c, &vigil_leases, "default", "the-one", &o, NULL), 0);
    if (holder)
        assert_true(vigil_text_is(vigil_get_string(o, "spec.holderIdentity"), holder));
    int64_t n = vigil_get_int(o, "spec.leaseTransitions", -1);
    vigil_object_unref(o);
    return n;
}

static void one_leads_and_another_follows_when_it_gives_up(void **state)
{
    struct candidate a, b;
    const struct server *s = *state;
    vg_fake_clock_init(&now);
    stand(&a, server_client_on(s, &now.clock), "anna", true);
    while (!a.n_started)
        turn(&a, NULL);
    assert_true(vigil_leader_is_leading(a.l));
    stand(&b, server_client_on(s, &now.clock), "ben \"quoted\"", true);
    while (!b.n_leaders)
        turn(&a, &b);
    assert_string_equal(b.leader, "anna");
    assert_false(vigil_leader_is_leading(b.l));
    assert_int_equal(transitions(&b, "anna"), 0);
    turn_for(&a, &b, 60000); /* many times the lease: it is renewed */
    assert_int_equal(b.n_started, 0);
    assert_int_equal(a.n_stopped, 0);
    step_down(&a);
    assert_int_equal(a.n_stopped, 1);
    while (!b.n_started)
        turn(NULL, &b);
    turn_for(NULL, &b, 5000);
    assert_int_equal(b.n_stopped, 0);
    assert_int_equal(transitions(&b, NULL), 1);
    vigil_leader_free(vg_steal(b.l));
    assert_int_equal(b.n_stopped, 1);
    assert_int_equal(transitions(&b, ""), 1); /* released */
    step_down(&b);
    vg_fake_clock_done(&now);
}

static void a_leader_that_cannot_renew_stops(void **state)
{
    struct candidate a, b;
    struct server *s = *state;
    stand(&a, server_client(s, s->port, VIGIL_OWN_THREAD), "anna", false);
    await(&a.n_started, 1);
    server_kill(s);
    await(&a.n_stopped, 1);
    assert_false(vigil_leader_is_leading(a.l));
    server_start(s);
    stand(&b, server_client(s, s->port, VIGIL_OWN_THREAD), "ben", false);
    await(&b.n_started, 1); /* the lease has run out by then, or does so now */
    step_down(&a);
    assert_int_equal(atomic_load(&a.n_stopped), 1);
    step_down(&b);
}

static void times_that_make_no_sense_are_refused(void **state)
{
    struct vigil_leader *l = NULL;
    struct vigil_error err;
    struct vigil_client *c = server_client(*state, 1, VIGIL_OWN_LOOP);
    struct vigil_leader_opts good = {.size = sizeof(good), .ns = "default", .name = "x"};
    struct vigil_leader_opts o[4] = {good, good, good, good};
    o[0].lease_ms = 10000;
    o[1].renew_ms = 2400;
    o[2].identity = "";
    o[3].ns = NULL;
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(vigil_leader_new(c, &o[i], &l, &err), VIGIL_E_INVALID);
        assert_true(strlen(err.message) > 10);
    }
    vigil_leader_free(l);
    vigil_client_free(c);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_leads_and_another_follows_when_it_gives_up),
        cmocka_unit_test(a_leader_that_cannot_renew_stops),
        cmocka_unit_test(times_that_make_no_sense_are_refused),
    };
    if (argc != 2)
        return 2;
    server_binary = argv[1];
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, server_set_up, server_tear_down);
}
