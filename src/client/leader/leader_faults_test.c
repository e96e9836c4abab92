/* leader_faults_test.c - the promise of vigil/leader.h under black holes and stalls: of two
 * candidates never both lead. Both run on one fake clock, with the default times (lease 15 s,
 * renewal 10 s, retry 2 s), against a server whose faults the test chooses. */
#include "lease_server_testing.h"

#include "base/rng.h"
#include "leader_int.h"

struct candidate {
    struct vigil_client *c;
    struct vigil_leader *l;
    unsigned n_started, n_stopped;
    uint64_t started_ns, stopped_ns;
    bool works; /* between on_started and on_stopped */
};

struct election {
    struct lease_server *server;
    struct vg_fake_clock clock;
    struct candidate v[2]; /* a, b */
    bool is_doubled;       /* both worked, or both said that they lead */
};

static struct election e;

static uint64_t now_ns(void)
{
    return vg_clock_mono_ns(&e.clock.clock);
}

static void on_started(void *arg)
{
    struct candidate *a = arg;
    a->n_started++;
    a->works = true;
    a->started_ns = now_ns();
}

static void on_stopped(void *arg)
{
    struct candidate *a = arg;
    a->n_stopped++;
    a->works = false;
    a->stopped_ns = now_ns();
}

static void stand(int who, bool release)
{
    static const char *const NAMES[] = {"a", "b"};
    struct candidate *a = &e.v[who];
    char url[64];
    *a = (struct candidate){0};
    snprintf(url, sizeof(url), "http://127.0.0.1:%d", e.server->port);
    struct vigil_config_opts co = VIGIL_INIT(struct vigil_config_opts);
    struct vigil_client_opts o = VIGIL_INIT(struct vigil_client_opts);
    struct vigil_leader_opts lo = VIGIL_INIT(struct vigil_leader_opts);
    struct vigil_config *config = NULL;
    co.server = url;
    assert_int_equal(vigil_config_new(&co, &config, NULL), 0);
    o.mode = VIGIL_OWN_LOOP;
    o.qps = -1;
    o.user_agent = NAMES[who];
    assert_int_equal(vg_client_new(config, &o, &e.clock.clock, &a->c, NULL), 0);
    vigil_config_free(config);
    lo.ns = "d";
    lo.name = "one";
    lo.identity = NAMES[who];
    lo.release = release;
    lo.on_started = on_started;
    lo.on_stopped = on_stopped;
    lo.arg = a;
    assert_int_equal(vigil_leader_new(a->c, &lo, &a->l, NULL), 0);
}

static void *move_clock(void *is_done)
{
    while (!atomic_load((_Atomic bool *)is_done)) {
        vg_fake_clock_advance(&e.clock, 25 * VG_NS_PER_MS);
        poll(NULL, 0, 1);
    }
    return NULL;
}

/* The call waits for the release, so somebody else moves the clock meanwhile. */
static void leave(int who)
{
    _Atomic bool is_done = false;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, move_clock, &is_done), 0);
    vigil_leader_free(vg_steal(e.v[who].l));
    atomic_store(&is_done, true);
    pthread_join(thread, NULL);
    vigil_client_free(vg_steal(e.v[who].c));
}

static void begin(bool release)
{
    e = (struct election){.server = lease_server_start()};
    vg_fake_clock_init(&e.clock);
    stand(0, release);
}

static void finish(void)
{
    for (int i = 0; i < 2; i++)
        if (e.v[i].c)
            leave(i);
    lease_server_stop(e.server);
    vg_fake_clock_done(&e.clock);
}

static void look(void)
{
    bool both_work = e.v[0].works && e.v[1].works;
    bool both_lead = e.v[0].l && e.v[1].l && vigil_leader_is_leading(e.v[0].l) &&
                     vigil_leader_is_leading(e.v[1].l);
    e.is_doubled = e.is_doubled || both_work || both_lead;
}

/* A step of both, with a little real time for the server, and `ms` of theirs. */
static void turn(uint64_t ms)
{
    for (int i = 0; i < 2; i++) {
        if (!e.v[i].c)
            continue;
        struct pollfd p = {.fd = vigil_client_fd(e.v[i].c), .events = POLLIN};
        vigil_client_step(e.v[i].c);
        bool waits = e.v[i].l && e.v[i].l->x && lease_held(e.server, i) == 0;
        poll(&p, 1, waits ? 1 : 0);
        vigil_client_step(e.v[i].c);
        look();
    }
    vg_fake_clock_advance(&e.clock, ms * VG_NS_PER_MS);
}

static void turn_for(uint64_t ms)
{
    for (uint64_t i = 0; i < ms; i += 25)
        turn(25);
}

#define TURN_UNTIL(condition)                                                                      \
    do {                                                                                           \
        for (unsigned left = 10000; !(condition); left--) {                                        \
            if (left == 0)                                                                         \
                fail_msg("waited in vain for: %s", #condition);                                    \
            turn(25);                                                                              \
        }                                                                                          \
    } while (0)

static void a_leader_that_is_cut_off_stops_before_another_starts(void **state)
{
    (void)state;
    for (int release = 0; release < 2; release++) {
        begin(release);
        TURN_UNTIL(e.v[0].n_started == 1);
        stand(1, release);
        turn_for(6000);
        lease_fault(e.server, 0, FAULT_HOLE);
        TURN_UNTIL(e.v[1].n_started == 1);
        assert_int_equal(e.v[0].n_stopped, 1);
        assert_false(e.is_doubled);
        assert_true(e.v[1].started_ns - e.v[0].stopped_ns > 2 * VG_NS_PER_S);
        turn_for(30000);
        assert_int_equal(e.v[0].n_stopped, 1);
        assert_true(lease_holder_is(e.server, "b")); /* what a gives up is not b's */
        finish();
    }
}

/* Each renewal is done at once, but its answer takes 9.5 s; then nothing gets through any more. */
static void an_answer_that_is_late_does_not_lengthen_the_lease(void **state)
{
    (void)state;
    begin(true);
    TURN_UNTIL(e.v[0].n_started == 1);
    stand(1, true);
    turn_for(3000);
    lease_fault(e.server, 0, FAULT_STALL_ANSWER);
    TURN_UNTIL(lease_held(e.server, 0) == 1);
    turn_for(4700);
    lease_fault(e.server, 0, FAULT_HOLE);
    lease_let_go(e.server, 0);
    TURN_UNTIL(e.v[1].n_started == 1);
    assert_false(e.is_doubled);
    assert_int_equal(e.v[0].n_stopped, 1);
    finish();
}

/* The answer to the write that takes the lease comes when its time is over. */
static void a_lease_that_was_taken_long_ago_is_not_led_by(void **state)
{
    (void)state;
    begin(false);
    TURN_UNTIL(e.v[0].n_started == 1);
    stand(1, false);
    turn_for(3000);
    lease_fault(e.server, 0, FAULT_HOLE);
    lease_fault(e.server, 1, FAULT_NONE);
    TURN_UNTIL(e.v[0].n_stopped == 1);
    lease_fault(e.server, 1, FAULT_STALL_ANSWER);
    TURN_UNTIL(lease_holder_is(e.server, "b") || (lease_let_go(e.server, 1), false));
    vg_fake_clock_advance(&e.clock, 12 * VG_NS_PER_S); /* b was stopped meanwhile */
    lease_let_go(e.server, 1);
    lease_fault(e.server, 1, FAULT_HOLE);
    turn_for(3000);
    assert_int_equal(e.v[1].n_started, 0);
    assert_false(vigil_leader_is_leading(e.v[1].l));
    finish();
}

static void who_reads_another_holder_stops_at_once(void **state)
{
    static const char *const HOLDERS[] = {"x", ""};
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(HOLDERS); i++) {
        begin(true);
        TURN_UNTIL(e.v[0].n_started == 1);
        lease_edit(e.server, HOLDERS[i]);
        turn_for(2500); /* the next renewal */
        assert_false(vigil_leader_is_leading(e.v[0].l));
        assert_int_equal(e.v[0].n_stopped, 1);
        turn_for(5000);
        assert_true(lease_holder_is(e.server, HOLDERS[i]));
        finish();
        assert_int_equal(e.v[0].n_stopped, 1);
    }
}

static void a_lease_that_was_deleted_is_made_again(void **state)
{
    (void)state;
    begin(true);
    TURN_UNTIL(e.v[0].n_started == 1);
    lease_edit(e.server, NULL);
    turn_for(3000);
    assert_true(vigil_leader_is_leading(e.v[0].l));
    assert_true(lease_holder_is(e.server, "a"));
    finish();
}

/* A renewal that the server has done, and whose answer is still under way, does not keep the lease
 * from being given up. */
static void a_renewal_under_way_does_not_spoil_the_release(void **state)
{
    (void)state;
    begin(true);
    TURN_UNTIL(e.v[0].n_started == 1);
    lease_fault(e.server, 0, FAULT_STALL_ANSWER);
    TURN_UNTIL(lease_held(e.server, 0) == 1);
    lease_fault(e.server, 0, FAULT_NONE);
    leave(0); /* the answer is still held back */
    assert_true(lease_holder_is(e.server, ""));
    assert_int_equal(e.v[0].n_stopped, 1);
    finish();
}

static void a_loop_that_is_blocked_does_not_lead(void **state)
{
    (void)state;
    begin(false);
    TURN_UNTIL(e.v[0].n_started == 1);
    assert_true(vigil_leader_is_leading(e.v[0].l));
    vg_fake_clock_advance(&e.clock, 10 * VG_NS_PER_S); /* nobody turns it */
    assert_false(vigil_leader_is_leading(e.v[0].l));
    finish();
}

/* Random faults for both, for minutes: never two leaders, and one in the end. */
static void of_two_under_random_faults_never_both_lead(void **state)
{
    (void)state;
    struct vg_rng rng;
    vg_rng_seed(&rng, vg_test_seed());
    begin(true);
    stand(1, true);
    unsigned rounds = vg_test_is_long() ? 2000 : 40;
    for (unsigned i = 0; i < rounds; i++) {
        int who = (int)vg_rng_below(&rng, 2);
        lease_fault(e.server, who, (enum lease_fault)vg_rng_below(&rng, 4));
        for (uint64_t ms = vg_rng_below(&rng, 6000); ms > 100; ms -= 100)
            turn(100);
        if (vg_rng_below(&rng, 2))
            lease_let_go(e.server, who);
        if (vg_rng_below(&rng, 8) == 0) { /* stops, and stands again */
            leave(who);
            stand(who, vg_rng_below(&rng, 2));
        }
        for (int w = 0; w < 2; w++) {
            if (e.v[w].n_stopped) { /* it has ended: a new one in its place */
                leave(w);
                stand(w, vg_rng_below(&rng, 2));
            }
        }
        if (e.is_doubled)
            fail_msg("two leaders in round %u", i);
    }
    for (int w = 0; w < 2; w++) {
        lease_fault(e.server, w, FAULT_NONE);
        lease_let_go(e.server, w);
    }
    TURN_UNTIL(e.v[0].works || e.v[1].works);
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leader_that_is_cut_off_stops_before_another_starts),
        cmocka_unit_test(an_answer_that_is_late_does_not_lengthen_the_lease),
        cmocka_unit_test(a_lease_that_was_taken_long_ago_is_not_led_by),
        cmocka_unit_test(who_reads_another_holder_stops_at_once),
        cmocka_unit_test(a_lease_that_was_deleted_is_made_again),
        cmocka_unit_test(a_renewal_under_way_does_not_spoil_the_release),
        cmocka_unit_test(a_loop_that_is_blocked_does_not_lead),
        cmocka_unit_test(of_two_under_random_faults_never_both_lead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
