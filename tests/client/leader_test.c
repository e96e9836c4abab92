/* Candidates for a Lease, against a real vigild: one leads, another takes over when it gives up or
 * dies, and a leader that cannot renew stops before that. */
#include "world.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vigil/leader.h"

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

static void stand(struct candidate *a, const struct server *s, const char *identity, bool release)
{
    memset(a, 0, sizeof(*a));
    a->c = server_client(s, s->port, VIGIL_OWN_THREAD);
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
    stand(&a, s, "anna", true);
    await(&a.n_started, 1);
    assert_true(vigil_leader_is_leading(a.l));
    stand(&b, s, "ben \"quoted\"", true);
    await(&b.n_leaders, 1);
    assert_string_equal(b.leader, "anna");
    assert_false(vigil_leader_is_leading(b.l));
    assert_int_equal(transitions(&b, "anna"), 0);
    usleep(1500000); /* longer than the lease: it is renewed */
    assert_int_equal(atomic_load(&b.n_started), 0);
    step_down(&a);
    assert_int_equal(atomic_load(&a.n_stopped), 1);
    await(&b.n_started, 1);
    usleep(1500000);
    assert_int_equal(atomic_load(&b.n_stopped), 0);
    assert_int_equal(transitions(&b, NULL), 1);
    vigil_leader_free(b.l);
    b.l = NULL;
    assert_int_equal(atomic_load(&b.n_stopped), 1);
    assert_int_equal(transitions(&b, ""), 1); /* released */
    step_down(&b);
}

static void a_leader_that_cannot_renew_stops(void **state)
{
    struct candidate a, b;
    struct server *s = *state;
    stand(&a, s, "anna", false);
    await(&a.n_started, 1);
    server_kill(s);
    await(&a.n_stopped, 1);
    assert_false(vigil_leader_is_leading(a.l));
    server_start(s);
    stand(&b, s, "ben", false);
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
