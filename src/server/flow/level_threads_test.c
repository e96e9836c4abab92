/* Many loops at one level: each on a thread of its own, with requests that take, wait, leave and
 * give, while the configuration and the seats change. For ThreadSanitizer, and for lost wakes:
 * every request ends. */
#include "test_support.h"

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "base/rng.h"
#include "flow_int.h"

#define LOOPS 4u
#define IN_FLIGHT 24u

struct worker;

struct request {
    struct vg_flow_ticket t;
    struct vg_flow_wait w;
    struct vg_timer timer;
    struct worker *worker;
    bool is_waiting;
};

struct worker {
    struct vg_loop *loop;
    struct vg_flow_loop *l;
    struct vg_rng rng;
    struct vg_mail start;
    struct request v[IN_FLIGHT];
    unsigned left, under_way;
    struct vg_flow_subject_cache cache;
    _Atomic bool is_over;
};

static void next(struct request *q);

static void finish(struct request *q)
{
    struct worker *k = q->worker;
    vg_flow_ticket_done(k->l, &q->t);
    k->under_way--;
    next(q);
}

static void on_end(struct vg_timer *t)
{
    finish(VG_CONTAINER_OF(t, struct request, timer));
}

static void run(struct request *q)
{
    vg_timer_start(q->worker->loop, &q->timer, vg_rng_below(&q->worker->rng, 50) * VG_NS_PER_US,
                   on_end);
}

static void went(struct vg_flow_wait *w)
{
    struct request *q = VG_CONTAINER_OF(w, struct request, w);
    q->is_waiting = false;
    vg_timer_stop(q->worker->loop, &q->timer);
    run(q);
}

static void on_tired(struct vg_timer *t)
{
    struct request *q = VG_CONTAINER_OF(t, struct request, timer);
    if (q->is_waiting && vg_flow_cancel(&q->w)) {
        q->is_waiting = false;
        finish(q);
    }
}

static void begin(struct request *q)
{
    static const char names[] = "abcdefgh";
    struct worker *k = q->worker;
    struct vg_flow_attributes a = {.user = vg_slice(names + vg_rng_below(&k->rng, 8), 1),
                                   .verb = VG_SLICE_LIT("get"),
                                   .path = VG_SLICE_LIT("/x")};
    struct vg_flow_likeness like = {0};
    struct vg_flow_work work = {.initial = 1 + (uint32_t)vg_rng_below(&k->rng, 2)};
    if (vg_rng_below(&k->rng, 8) == 0)
        work = (struct vg_flow_work){.initial = 1, .final = 2, .linger_us = 30};
    k->left--;
    k->under_way++;
    q->t = (struct vg_flow_ticket){0};
    vg_flow_classify(k->l, &a, &like, &k->cache, &q->t);
    enum vg_flow_answer r = vg_flow_take(&q->t, &work);
    if (r == VG_FLOW_MUST_WAIT) {
        q->w = (struct vg_flow_wait){.loop = k->loop, .go = went, .attributes = a};
        q->is_waiting = true;
        r = vg_flow_enqueue(&q->t, &work, &q->w);
        q->is_waiting = r == VG_FLOW_MUST_WAIT;
    }
    if (r == VG_FLOW_GO)
        run(q);
    else if (r == VG_FLOW_REJECT)
        vg_timer_start(k->loop, &q->timer, 20 * VG_NS_PER_US, on_end);
    else if (vg_rng_below(&k->rng, 4) == 0)
        vg_timer_start(k->loop, &q->timer, vg_rng_below(&k->rng, 300) * VG_NS_PER_US, on_tired);
}

static void next(struct request *q)
{
    struct worker *k = q->worker;
    if (k->left)
        begin(q);
    else if (k->under_way == 0)
        atomic_store(&k->is_over, true);
}

static void on_start(struct vg_mail *mail)
{
    struct worker *k = VG_CONTAINER_OF(mail, struct worker, start);
    for (unsigned i = 0; i < IN_FLIGHT; i++)
        begin(&k->v[i]);
}

static void configure(struct vg_flow *f, unsigned shares, unsigned queues)
{
    static const char schema[] =
        "{\"metadata\":{\"name\":\"s\"},\"spec\":{\"priorityLevelConfiguration\":{\"name\":\"v\"},"
        "\"matchingPrecedence\":5,\"distinguisherMethod\":{\"type\":\"ByUser\"},\"rules\":[{"
        "\"subjects\":[{\"kind\":\"User\",\"user\":{\"name\":\"*\"}}],\"nonResourceRules\":[{"
        "\"verbs\":[\"*\"],\"nonResourceURLs\":[\"*\"]}]}]}}";
    char level[512];
    snprintf(level, sizeof level,
             "{\"metadata\":{\"name\":\"v\"},\"spec\":{\"type\":\"Limited\",\"limited\":{"
             "\"nominalConcurrencyShares\":%u,\"limitResponse\":{\"type\":\"Queue\",\"queuing\":{"
             "\"queues\":%u,\"handSize\":2,\"queueLengthLimit\":20}}}}}",
             shares, queues);
    struct vg_slice s = vg_slice_str(schema), v = vg_slice_str(level);
    assert_int_equal(vg_flow_configure(f, &s, 1, &v, 1), 0);
}

static bool are_over(struct worker *k)
{
    for (unsigned i = 0; i < LOOPS; i++)
        if (!atomic_load(&k[i].is_over))
            return false;
    return true;
}

static void every_request_of_many_loops_ends(void **state)
{
    struct worker *k = vg_calloc(LOOPS, sizeof *k);
    struct vg_flow_opts o = {.seats = 20, .metrics = vg_metrics_new()};
    struct vg_flow *f;
    (void)state;
    assert_non_null(k);
    assert_int_equal(vg_flow_new(&o, &f), 0);
    configure(f, 20, 8);
    for (unsigned i = 0; i < LOOPS; i++) {
        assert_int_equal(vg_loop_new(vg_clock_system(), &k[i].loop), 0);
        assert_int_equal(vg_flow_loop_open(f, k[i].loop, &k[i].l), 0);
        vg_rng_seed(&k[i].rng, vg_test_seed() + i);
        k[i].left = vg_test_is_long() ? 50000 : 3000;
        k[i].start.run = on_start;
        for (unsigned j = 0; j < IN_FLIGHT; j++)
            k[i].v[j].worker = &k[i];
        assert_int_equal(vg_loop_start(k[i].loop, "worker"), 0);
        vg_loop_post(k[i].loop, &k[i].start);
    }
    for (unsigned round = 0; !are_over(k); round++) {
        struct vg_buf out = {0};
        configure(f, 1 + round % 30, 2 + round % 9);
        (void)vg_flow_tick(f);
        assert_int_equal(vg_flow_dump_requests(f, true, &out), 0);
        assert_int_equal(vg_metrics_write(o.metrics, &out), 0);
        vg_buf_done(&out);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    for (unsigned i = 0; i < LOOPS; i++) {
        vg_loop_stop(k[i].loop);
        vg_flow_loop_close(k[i].l);
        vg_loop_free(k[i].loop);
    }
    VG_LIST_FOREACH (n, &f->levels)
        assert_true(vg_flow_level_is_idle(VG_CONTAINER_OF(n, struct vg_flow_level, link)));
    vg_flow_free(f);
    vg_metrics_free(o.metrics);
    vg_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_request_of_many_loops_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
