/* form_test.c - a form is made once, shared by all, and never beyond the budget. */
#include "test_support.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "form.h"

/* Makes bodies and remembers how often. */
struct maker {
    _Atomic unsigned calls;
    size_t n; /* length of the bodies */
    int err;  /* fail with this */
    struct vg_forms *ask_again;
    struct vg_form_budget *budget;
};

static int make(void *arg, uint32_t id, struct vg_buf *out)
{
    struct maker *m = arg;
    atomic_fetch_add(&m->calls, 1);
    if (m->ask_again) { /* what another thread would be told now */
        const struct vg_form_body *body = NULL;
        assert_int_equal(vg_forms_get(m->ask_again, m->budget, id, make, m, &body), 0);
        assert_null(body);
    }
    for (size_t i = 0; i < m->n && m->err == 0; i++) {
        int err = vg_buf_append_byte(out, (char)('a' + id % 26));
        if (err < 0)
            return err;
    }
    return m->err;
}

static void a_form_is_made_by_the_first_and_shared_by_the_rest(void **state)
{
    (void)state;
    struct vg_form_budget budget;
    struct vg_forms f = {NULL};
    struct maker m = {.n = 10};
    vg_form_budget_init(&budget, 1 << 20);
    const struct vg_form_body *bodies[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(vg_forms_get(&f, &budget, 7, make, &m, &bodies[i]), 1);
    assert_ptr_equal(bodies[0], bodies[1]);
    assert_ptr_equal(bodies[0], bodies[2]);
    vg_assert_slice_equal(vg_form_body_slice(bodies[0]), VG_SLICE_LIT("hhhhhhhhhh"));
    assert_int_equal(m.calls, 1);
    assert_int_equal(budget.bodies_made, 1);
    assert_int_equal(budget.bodies_shared, 2);
    assert_int_equal(budget.used, sizeof *bodies[0] + 10);
    for (int i = 0; i < 3; i++)
        vg_form_body_unref(bodies[i]);
    assert_int_equal(budget.used, sizeof *bodies[0] + 10);
    vg_forms_done(&f);
    assert_int_equal(budget.used, 0);
}

static void forms_are_told_apart(void **state)
{
    (void)state;
    struct vg_form_budget budget;
    struct vg_forms f = {NULL};
    struct maker m = {.n = 1};
    vg_form_budget_init(&budget, 1 << 20);
    for (int round = 0; round < 2; round++)
        for (uint32_t id = 0; id < VG_FORM_IDS; id++) {
            const struct vg_form_body *body;
            assert_int_equal(vg_forms_get(&f, &budget, id, make, &m, &body), 1);
            assert_int_equal(body->bytes[0], 'a' + id % 26);
            vg_form_body_unref(body);
        }
    assert_int_equal(budget.bodies_made, VG_FORM_IDS);
    assert_int_equal(budget.bodies_shared, VG_FORM_IDS);
    const struct vg_form_body *body;
    assert_int_equal(vg_forms_get(&f, &budget, VG_FORM_IDS, make, &m, &body), VIGIL_E_INVALID);
    vg_forms_done(&f);
}

static void a_body_outlives_its_event(void **state)
{
    (void)state;
    struct vg_form_budget budget;
    struct vg_forms f = {NULL};
    struct maker m = {.n = 3};
    const struct vg_form_body *body;
    vg_form_budget_init(&budget, 1 << 20);
    assert_int_equal(vg_forms_get(&f, &budget, 0, make, &m, &body), 1);
    vg_forms_done(&f);
    vg_assert_slice_equal(vg_form_body_slice(body), VG_SLICE_LIT("aaa"));
    assert_true(budget.used > 0);
    assert_ptr_equal(vg_form_body_ref(body), body);
    vg_form_body_unref(body);
    assert_null(vg_form_body_unref(body));
    assert_int_equal(budget.used, 0);
    assert_null(vg_form_body_unref(NULL));
    vg_forms_done(&f); /* done twice, and done when empty */
}

static void beyond_the_budget_a_body_is_the_askers_alone(void **state)
{
    (void)state;
    struct vg_form_budget budget;
    struct vg_forms f = {NULL};
    struct maker m = {.n = 100};
    const struct vg_form_body *a, *b, *c, *d;
    vg_form_budget_init(&budget, sizeof *a + 100);
    assert_int_equal(vg_forms_get(&f, &budget, 0, make, &m, &a), 1);
    assert_int_equal(budget.used, budget.cap);
    assert_int_equal(vg_forms_get(&f, &budget, 1, make, &m, &b), 1);
    assert_int_equal(vg_forms_get(&f, &budget, 1, make, &m, &c), 1);
    assert_ptr_not_equal(b, c);
    assert_int_equal(budget.used, budget.cap);
    assert_int_equal(budget.bodies_made, 3);
    assert_int_equal(budget.bodies_shared, 0);
    vg_form_body_unref(a);
    vg_form_body_unref(b);
    vg_form_body_unref(c);
    vg_forms_done(&f); /* gives the bytes back */
    assert_int_equal(vg_forms_get(&f, &budget, 1, make, &m, &d), 1);
    assert_int_equal(budget.used, budget.cap);
    vg_form_body_unref(d);
    vg_forms_done(&f);
}

static void who_asks_while_it_is_made_is_told_to_come_again(void **state)
{
    (void)state;
    struct vg_form_budget budget;
    struct vg_forms f = {NULL};
    struct maker m = {.n = 1, .ask_again = &f, .budget = &budget};
    const struct vg_form_body *body;
    vg_form_budget_init(&budget, 1 << 20);
    assert_int_equal(vg_forms_get(&f, &budget, 0, make, &m, &body), 1);
    assert_int_equal(m.calls, 1);
    vg_form_body_unref(body);
    vg_forms_done(&f);
}

static void after_a_failure_the_next_asker_tries_anew(void **state)
{
    (void)state;
    struct vg_form_budget budget;
    struct vg_forms f = {NULL};
    struct maker m = {.n = 1, .err = VIGIL_E_UNSUPPORTED};
    const struct vg_form_body *body = NULL;
    vg_form_budget_init(&budget, 1 << 20);
    assert_int_equal(vg_forms_get(&f, &budget, 0, make, &m, &body), VIGIL_E_UNSUPPORTED);
    assert_null(body);
    m.err = 0;
    assert_int_equal(vg_forms_get(&f, &budget, 0, make, &m, &body), 1);
    assert_int_equal(budget.bodies_made, 1);
    vg_form_body_unref(body);
    m.n = VG_FORM_BODY_MAX + 1;
    assert_int_equal(vg_forms_get(&f, &budget, 1, make, &m, &body), VIGIL_E_TOO_LARGE);
    vg_forms_done(&f);
    assert_int_equal(budget.used, 0);
}

static void lack_of_memory_is_reported_and_nothing_leaks(void **state)
{
    (void)state;
    VG_ALLOC_FAIL_LOOP (n) {
        struct vg_form_budget budget;
        struct vg_forms f = {NULL};
        struct maker m = {.n = 100};
        const struct vg_form_body *body = NULL;
        vg_form_budget_init(&budget, 1 << 20);
        int r = vg_forms_get(&f, &budget, 0, make, &m, &body);
        assert_int_equal(r, vg_test_alloc_failed() ? -ENOMEM : 1);
        vg_form_body_unref(body);
        vg_forms_done(&f);
        assert_int_equal(budget.used, 0);
    }
}

/* ---- several loops at once ---- */

#define EVENTS 200u
#define FORMS 3u
#define THREADS 4u

struct race {
    struct vg_forms events[EVENTS];
    struct vg_form_budget budget;
    struct maker maker;
    _Atomic uint64_t got;
};

static const struct vg_form_body *get_until_there(struct race *r, struct vg_forms *f, uint32_t id)
{
    const struct vg_form_body *body = NULL;
    while (vg_forms_get(f, &r->budget, id, make, &r->maker, &body) == 0)
        sched_yield();
    if (!body || body->n != r->maker.n || body->bytes[0] != (char)('a' + id % 26))
        abort();
    return body;
}

/* Each holds every body until it has all. */
static void ask_for_all(unsigned index, void *arg)
{
    struct race *r = arg;
    static _Thread_local const struct vg_form_body *held[EVENTS * FORMS];
    (void)index;
    for (uint32_t i = 0; i < EVENTS * FORMS; i++)
        held[i] = get_until_there(r, &r->events[i / FORMS], i % FORMS);
    atomic_fetch_add(&r->got, EVENTS * FORMS);
    for (uint32_t i = 0; i < EVENTS * FORMS; i++)
        vg_form_body_unref(held[i]);
}

static struct race *race_new(size_t cap)
{
    struct race *r = vg_new(struct race);
    assert_non_null(r);
    r->maker.n = 64;
    vg_form_budget_init(&r->budget, cap);
    return r;
}

static void race_free(struct race *r)
{
    for (uint32_t i = 0; i < EVENTS; i++)
        vg_forms_done(&r->events[i]);
    assert_int_equal(r->budget.used, 0);
    vg_free(r);
}

static void threads_that_ask_at_once_share_exactly_one_body(void **state)
{
    (void)state;
    struct race *r = race_new(1 << 20);
    vg_test_threads(THREADS, ask_for_all, r);
    assert_int_equal(r->maker.calls, EVENTS * FORMS);
    assert_int_equal(r->budget.bodies_made, EVENTS * FORMS);
    assert_int_equal(r->budget.bodies_made + r->budget.bodies_shared, r->got);
    race_free(r);
}

static void threads_beyond_the_budget_make_their_own(void **state)
{
    (void)state;
    size_t one = sizeof(struct vg_form_body) + 64;
    struct race *r = race_new(one * EVENTS);
    vg_test_threads(THREADS, ask_for_all, r);
    assert_int_equal(r->budget.used, one * EVENTS);
    assert_true(r->budget.bodies_made > EVENTS * FORMS);
    assert_int_equal(r->budget.bodies_made + r->budget.bodies_shared, r->got);
    race_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_form_is_made_by_the_first_and_shared_by_the_rest),
        cmocka_unit_test(forms_are_told_apart),
        cmocka_unit_test(a_body_outlives_its_event),
        cmocka_unit_test(beyond_the_budget_a_body_is_the_askers_alone),
        cmocka_unit_test(who_asks_while_it_is_made_is_told_to_come_again),
        cmocka_unit_test(after_a_failure_the_next_asker_tries_anew),
        cmocka_unit_test(lack_of_memory_is_reported_and_nothing_leaks),
        cmocka_unit_test(threads_that_ask_at_once_share_exactly_one_body),
        cmocka_unit_test(threads_beyond_the_budget_make_their_own),
    };
    return cmocka_run_group_tests_name("form", tests, NULL, NULL);
}
