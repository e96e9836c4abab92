/* Informers on a client with a thread, handlers with threads of their own: overflow that waits,
 * removal that waits, many threads that add and remove (scenario 52). */
#include "informer_testing.h"

#include <poll.h>
#include <sched.h>
#include <semaphore.h>

/* ---- feeding from the test's thread ---- */

struct feeding {
    struct rig *g;
    unsigned from, to; /* events "x<n % 50>@<n>" */
    int result;        /* the largest that the sink answered */
};

static void feed_on_loop(void *arg)
{
    struct feeding *f = arg;
    for (; f->from < f->to; f->from++) {
        char text[48];
        snprintf(text, sizeof(text), "x%u@%u", f->from % 50, f->from);
        int r = rig_event(f->g, text);
        assert_true(r >= 0);
        f->result = VG_MAX(f->result, r);
    }
}

static int feed(struct rig *g, unsigned from, unsigned to)
{
    struct feeding f = {g, from, to, 0};
    vg_client_run(g->c, feed_on_loop, &f);
    return f.result;
}

/* ---- a handler that can be held up ---- */

struct slow {
    sem_t entered, go;
    _Atomic bool is_held;
    _Atomic unsigned told, last;
    _Atomic bool is_inside;
};

static void slow_down(struct slow *s, const struct vigil_object *o)
{
    struct vigil_text v = vigil_object_resource_version(o);
    unsigned version = 0;
    for (size_t i = 0; i < v.n; i++)
        version = version * 10 + (unsigned)(v.p[i] - '0');
    atomic_store(&s->is_inside, true);
    assert_true(version > atomic_load(&s->last));
    if (atomic_load(&s->is_held)) {
        sem_post(&s->entered);
        sem_wait(&s->go);
    }
    atomic_fetch_add(&s->told, 1);
    atomic_store(&s->last, version); /* last: who waits for it looks at the count then */
    atomic_store(&s->is_inside, false);
}

static void slow_add(void *arg, const struct vigil_object *o, bool is_initial)
{
    (void)is_initial;
    slow_down(arg, o);
}

static void slow_update(void *arg, const struct vigil_object *b, const struct vigil_object *o)
{
    (void)b;
    slow_down(arg, o);
}

static struct vigil_handler slow_handler(struct slow *s, bool is_held)
{
    memset(s, 0, sizeof(*s));
    sem_init(&s->entered, 0, 0);
    sem_init(&s->go, 0, 0);
    atomic_store(&s->is_held, is_held);
    return (struct vigil_handler){.size = sizeof(struct vigil_handler),
                                  .on_add = slow_add,
                                  .on_update = slow_update,
                                  .own_thread = true,
                                  .arg = s};
}

static void release(struct slow *s)
{
    atomic_store(&s->is_held, false);
    sem_post(&s->go);
}

/* Until it has been told of this version. */
static void await_version(const struct slow *s, unsigned version)
{
    while (atomic_load(&s->last) < version)
        sched_yield();
}

/* ---- tests ---- */

static void the_informer_waits_for_a_full_buffer(void **state)
{
    (void)state;
    struct rig g;
    struct slow s, quick;
    rig_up(&g, VIGIL_OWN_THREAD, false, NULL);
    struct vigil_handler h = slow_handler(&s, true), q = slow_handler(&quick, false);
    h.buffer_max = 10;
    rig_handle(&g, &h);
    rig_handle(&g, &q);
    assert_int_equal(feed(&g, 1, 200), 0);
    sem_wait(&s.entered);
    assert_int_equal(feed(&g, 200, 6000), VG_SINK_FULL);
    assert_true(vg_fifo_backlog(g.i->fifo) > 2000); /* what waits is in the queue, not in buffers */
    release(&s);
    await_version(&s, 5999);
    await_version(&quick, 5999);
    assert_int_equal(vigil_informer_wait_for(g.i, vigil_text("5999"), 0), 0);
    assert_int_equal(atomic_load(&s.told), 5999);
    assert_int_equal(atomic_load(&quick.told), 5999);
    rig_down(&g);
}

static void end_on_loop(void *arg)
{
    vg_handler_end(arg);
}

/* Removes the handler on the loop, which also delivers batches: a handler must not go away between
 * the two halves of a delivery. */
static struct vigil_registration *remove_held(struct rig *g, struct slow *s,
                                              struct vigil_registration *r)
{
    vg_client_run(g->c, end_on_loop, r->handler); /* it hears of nothing more when it is let go */
    release(s);
    return r;
}

static void merging_buffers_hold_one_event_for_each_object(void **state)
{
    (void)state;
    struct rig g;
    struct slow s;
    rig_up(&g, VIGIL_OWN_THREAD, false, NULL);
    struct vigil_handler h = slow_handler(&s, true);
    h.buffer_max = 10;
    h.overflow = VIGIL_OVERFLOW_MERGE;
    struct vigil_registration *r = rig_handle(&g, &h);
    assert_int_equal(feed(&g, 1, 2), 0);
    sem_wait(&s.entered);
    for (unsigned i = 2; i < 5002; i += 100)
        feed(&g, i, i + 100);
    assert_int_equal(vigil_informer_wait_for(g.i, vigil_text("5001"), 0), 0);
    vg_mutex_lock(&r->handler->mu);
    assert_true(r->handler->notes.n <= 10 + 50 + 1); /* and the mark of the first list */
    vg_mutex_unlock(&r->handler->mu);
    vigil_informer_remove_handler(g.i, remove_held(&g, &s, r));
    rig_down(&g);
}

/* Until somebody waits for the informer; who turns its loop himself stops it first. */
static void await_waiting(struct vigil_informer *i)
{
    for (bool waits = false; !waits;) {
        sched_yield();
        vg_mutex_lock(&i->mu);
        waits = i->n_waiting > 0 || i->is_stopped;
        vg_mutex_unlock(&i->mu);
    }
}

struct hold {
    struct slow *s;
    const struct vg_handler *handler;
};

/* Not before it is told to end: it would hear of the rest. */
static void *let_go_soon(void *arg)
{
    struct hold *hold = arg;
    while (!atomic_load(&hold->handler->is_ending))
        sched_yield();
    await_waiting(hold->handler->i);
    release(hold->s);
    return NULL;
}

static void removal_waits_for_a_callback(void **state)
{
    (void)state;
    struct rig g;
    struct slow s;
    pthread_t helper;
    rig_up(&g, VIGIL_OWN_THREAD, false, NULL);
    struct vigil_handler h = slow_handler(&s, true);
    struct vigil_registration *r = rig_handle(&g, &h);
    assert_int_equal(feed(&g, 1, 100), 0);
    sem_wait(&s.entered);
    struct hold hold = {&s, r->handler};
    assert_int_equal(pthread_create(&helper, NULL, let_go_soon, &hold), 0);
    vigil_informer_remove_handler(g.i, r);
    vigil_informer_remove_handler(g.i, r); /* in vain */
    assert_false(atomic_load(&s.is_inside));
    assert_int_equal(atomic_load(&s.told), 1); /* what waited was dropped */
    pthread_join(helper, NULL);
    rig_down(&g);
}

static void stopping_waits_for_a_callback(void **state)
{
    (void)state;
    struct rig g;
    struct slow s;
    pthread_t helper;
    rig_up(&g, VIGIL_OWN_LOOP, false, NULL);
    struct vigil_handler h = slow_handler(&s, true);
    struct hold hold = {&s, rig_handle(&g, &h)->handler};
    assert_int_equal(feed(&g, 1, 100), 0);
    rig_settle(&g);
    sem_wait(&s.entered);
    assert_int_equal(pthread_create(&helper, NULL, let_go_soon, &hold), 0);
    vigil_informer_stop(g.i); /* turns the loop meanwhile */
    assert_false(atomic_load(&s.is_inside));
    pthread_join(helper, NULL);
    rig_down(&g);
}

struct self {
    struct rig *g;
    struct vigil_registration *_Atomic r;
    _Atomic int calls;
};

static void remove_self(void *arg, const struct vigil_object *o, bool is_initial)
{
    struct self *s = arg;
    struct vigil_registration *r;
    (void)o;
    (void)is_initial;
    while (!(r = atomic_load(&s->r)))
        sched_yield();
    vigil_informer_remove_handler(s->g->i, r);
    atomic_fetch_add(&s->calls, 1);
}

static void a_thread_may_remove_its_own_handler(void **state)
{
    (void)state;
    struct rig g;
    struct self s = {.g = &g};
    rig_up(&g, VIGIL_OWN_THREAD, false, NULL);
    struct vigil_handler h = {
        .size = sizeof(h), .on_add = remove_self, .own_thread = true, .arg = &s};
    atomic_store(&s.r, rig_handle(&g, &h));
    assert_int_equal(feed(&g, 1, 10), 0);
    while (atomic_load(&s.calls) == 0)
        sched_yield();
    rig_down(&g);
    assert_int_equal(atomic_load(&s.calls), 1);
}

static void remove_same(unsigned index, void *arg)
{
    struct self *s = arg;
    (void)index;
    vigil_informer_remove_handler(s->g->i, atomic_load(&s->r));
}

static void several_threads_may_remove_one_handler(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        struct rig g;
        struct slow slow;
        struct self s = {.g = &g};
        rig_up(&g, VIGIL_OWN_THREAD, false, NULL);
        struct vigil_handler h = slow_handler(&slow, false);
        h.own_thread = round % 2 == 0;
        atomic_store(&s.r, rig_handle(&g, &h));
        assert_int_equal(feed(&g, 1, 10), 0);
        vg_test_threads(4, remove_same, &s);
        assert_null(atomic_load(&s.r)->handler);
        rig_down(&g);
    }
}

/* ---- many threads ---- */

#define ADDERS 100u
struct crowd {
    struct rig *g;
    _Atomic bool is_over;
    _Atomic unsigned told;
};

static void crowd_add(void *arg, const struct vigil_object *o, bool is_initial)
{
    struct crowd *c = arg;
    assert_true(vigil_object_name(o).n > 0);
    (void)is_initial;
    atomic_fetch_add(&c->told, 1);
}

static void come_and_go(unsigned index, void *arg)
{
    struct crowd *c = arg;
    if (index == 0) {
        for (unsigned n = 1; n <= 4000; n += 20)
            feed(c->g, n, n + 20);
        atomic_store(&c->is_over, true);
        return;
    }
    for (unsigned n = 0; n < 3 || !atomic_load(&c->is_over); n++) {
        struct vigil_handler h = {
            .size = sizeof(h), .on_add = crowd_add, .own_thread = (n + index) % 2 == 0, .arg = c};
        struct vigil_registration *r = rig_handle(c->g, &h);
        (void)vigil_registration_has_synced(r);
        (void)vigil_store_count(vigil_informer_store(c->g->i));
        vigil_informer_remove_handler(c->g->i, r);
    }
}

static void handlers_come_and_go_while_events_flow(void **state)
{
    (void)state;
    struct rig g;
    struct crowd c = {.g = &g};
    struct slow s;
    rig_up(&g, VIGIL_OWN_THREAD, false, NULL);
    struct vigil_handler h = slow_handler(&s, false);
    rig_handle(&g, &h);
    vg_test_threads(ADDERS + 1, come_and_go, &c);
    await_version(&s, 4000);
    assert_int_equal(atomic_load(&s.told), 4000);
    assert_true(vg_list_is_empty(&g.i->leaving));
    rig_down(&g);
}

static void *list_soon(void *arg)
{
    struct rig *g = arg;
    await_waiting(g->i);
    feed(g, 1, 2);
    return NULL;
}

static void threads_wait_for_the_first_list(void **state)
{
    (void)state;
    struct rig g;
    pthread_t helper;
    rig_up(&g, VIGIL_OWN_THREAD, false, NULL);
    assert_int_equal(vigil_informer_wait_sync(g.i, 1), VIGIL_E_TIMEOUT);
    assert_int_equal(pthread_create(&helper, NULL, list_soon, &g), 0);
    assert_int_equal(vigil_informer_wait_sync(g.i, 0), 0);
    pthread_join(helper, NULL);
    assert_int_equal(vigil_informer_wait_for(g.i, vigil_text("2"), 1), VIGIL_E_TIMEOUT);
    assert_int_equal(vigil_informer_wait_for(g.i, vigil_text("1"), 0), 0);
    rig_down(&g);
}

/* ---- handlers that remove each other ---- */

struct rivals {
    struct rig g;
    struct vigil_registration *registrations[2];
    _Atomic int n_inside, n_done;
    bool stops; /* the informer instead */
};
struct rival {
    struct rivals *all;
    int me;
};

static void on_rival(void *arg, const struct vigil_object *o, bool is_initial)
{
    struct rival *r = arg;
    (void)o;
    (void)is_initial;
    atomic_fetch_add(&r->all->n_inside, 1);
    while (atomic_load(&r->all->n_inside) < 2) /* both callbacks run */
        sched_yield();
    if (r->all->stops)
        vigil_informer_stop(r->all->g.i);
    else
        vigil_informer_remove_handler(r->all->g.i, r->all->registrations[1 - r->me]);
    atomic_fetch_add(&r->all->n_done, 1);
}

static void handlers_may_remove_each_other(void **state)
{
    (void)state;
    for (int stops = 0; stops < 2; stops++) {
        for (int round = 0; round < 20; round++) {
            struct rivals all = {.stops = stops};
            struct rival v[2] = {{&all, 0}, {&all, 1}};
            rig_up(&all.g, VIGIL_OWN_THREAD, false, NULL);
            for (int i = 0; i < 2; i++) {
                struct vigil_handler h = {
                    .size = sizeof(h), .on_add = on_rival, .arg = &v[i], .own_thread = true};
                all.registrations[i] = rig_handle(&all.g, &h);
            }
            feed(&all.g, 1, 2);
            for (int left = 20000; atomic_load(&all.n_done) < 2; left--) {
                if (left == 0)
                    fail_msg("two handlers wait for each other");
                poll(NULL, 0, 1);
            }
            rig_down(&all.g);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_informer_waits_for_a_full_buffer),
        cmocka_unit_test(merging_buffers_hold_one_event_for_each_object),
        cmocka_unit_test(removal_waits_for_a_callback),
        cmocka_unit_test(stopping_waits_for_a_callback),
        cmocka_unit_test(a_thread_may_remove_its_own_handler),
        cmocka_unit_test(several_threads_may_remove_one_handler),
        cmocka_unit_test(handlers_may_remove_each_other),
        cmocka_unit_test(handlers_come_and_go_while_events_flow),
        cmocka_unit_test(threads_wait_for_the_first_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
