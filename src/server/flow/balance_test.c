/* Tests of balance.c, deal.c and retry_after.c: seats for levels, hands of queues, how long to stay
 * away. */
#include "test_support.h"

#include <math.h>
#include <stdio.h>

#include "base/rng.h"
#include "defaults.h"
#include "flow_int.h"

/* ---- hands ---- */

static void a_hand_has_different_cards_of_the_deck(void **state)
{
    struct vg_rng rng;
    (void)state;
    vg_rng_seed(&rng, vg_test_seed());
    for (int i = 0; i < 20000; i++) {
        uint32_t deck = 1 + (uint32_t)vg_rng_below(&rng, 200), cards[VG_FLOW_HAND_MAX];
        uint32_t hand = 1 + (uint32_t)vg_rng_below(&rng, VG_MIN(deck, VG_FLOW_HAND_MAX));
        vg_flow_deal(vg_rng_below(&rng, UINT64_MAX), deck, hand, cards);
        for (uint32_t k = 0; k < hand; k++) {
            assert_true(cards[k] < deck);
            for (uint32_t j = 0; j < k; j++)
                assert_int_not_equal(cards[k], cards[j]);
        }
    }
}

/* Every pair of 5 cards, in each order, comes once for the 20 values of a hash. */
static void every_hand_is_as_likely(void **state)
{
    unsigned seen[5][5] = {{0}};
    (void)state;
    for (uint64_t hash = 0; hash < 20; hash++) {
        uint32_t cards[VG_FLOW_HAND_MAX];
        vg_flow_deal(hash, 5, 2, cards);
        seen[cards[0]][cards[1]]++;
    }
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 5; k++)
            assert_int_equal(seen[i][k], i != k);
}

/* ---- dividing ---- */

static void divided_seats_keep_to_their_bounds(void **state)
{
    struct vg_rng rng;
    (void)state;
    vg_rng_seed(&rng, vg_test_seed());
    for (int round = 0; round < 2000; round++) {
        struct vg_flow_share v[8];
        size_t n = 1 + vg_rng_below(&rng, 8);
        double low = 0, high = 0, got = 0;
        for (size_t i = 0; i < n; i++) {
            v[i].low = (double)vg_rng_below(&rng, 50);
            v[i].target = v[i].low + (double)vg_rng_below(&rng, 50);
            v[i].high = v[i].low + (double)vg_rng_below(&rng, 300);
            low += v[i].low;
            high += v[i].high;
        }
        double sum = low + (high - low) * (double)vg_rng_below(&rng, 1001) / 1000;
        double part = vg_flow_divide(v, n, sum);
        for (size_t i = 0; i < n; i++) {
            assert_true(v[i].got >= v[i].low - 1e-6 && v[i].got <= v[i].high + 1e-6);
            bool is_fair = fabs(v[i].got - part * v[i].target) < 1e-3;
            assert_true(is_fair || v[i].got >= v[i].high - 1e-6 || v[i].got <= v[i].low + 1e-6);
            got += v[i].got;
        }
        assert_true(fabs(got - sum) < 1e-3);
    }
}

/* ---- levels ---- */

struct fixture {
    struct vg_fake_clock clock;
    struct vg_flow *flow;
};

static void fixture_open(struct fixture *x)
{
    struct vg_buf texts[16] = {0};
    struct vg_slice levels[16];
    size_t n = 0;
    vg_fake_clock_init(&x->clock);
    struct vg_flow_opts o = {.clock = &x->clock.clock, .seats = 600};
    assert_int_equal(vg_flow_new(&o, &x->flow), 0);
    for (const struct vg_flow_default *d = vg_flow_default_levels; d->name; d++, n++) {
        assert_int_equal(vg_buf_printf(&texts[n], "{\"metadata\":{\"name\":\"%s\"},\"spec\":%s}",
                                       d->name, d->spec),
                         0);
        levels[n] = vg_buf_slice(&texts[n]);
    }
    assert_int_equal(vg_flow_configure(x->flow, NULL, 0, levels, n), 0);
    for (size_t i = 0; i < n; i++)
        vg_buf_done(&texts[i]);
}

static void fixture_close(struct fixture *x)
{
    vg_flow_free(x->flow);
    vg_fake_clock_done(&x->clock);
}

static struct vg_flow_level *level(struct fixture *x, const char *name)
{
    VG_LIST_FOREACH (n, &x->flow->levels) {
        struct vg_flow_level *v = VG_CONTAINER_OF(n, struct vg_flow_level, link);
        if (vg_slice_eq(v->name, vg_slice_str(name)))
            return v;
    }
    fail();
    return NULL;
}

static void nominal_seats_are_kube_apiservers(void **state)
{
    static const struct {
        const char *name;
        unsigned nominal, min;
    } want[] = {{"exempt", 0, 0},           {"catch-all", 13, 13},
                {"global-default", 49, 24}, {"leader-election", 25, 25},
                {"node-high", 98, 73},      {"system", 74, 50},
                {"workload-high", 98, 49},  {"workload-low", 245, 24}};
    struct fixture x;
    (void)state;
    fixture_open(&x);
    for (size_t i = 0; i < VG_ARRAY_LEN(want); i++) {
        assert_int_equal(atomic_load(&level(&x, want[i].name)->nominal), want[i].nominal);
        /* Halves are rounded away from zero, as Go's math.Round does. */
        assert_int_equal(atomic_load(&level(&x, want[i].name)->min), want[i].min);
    }
    fixture_close(&x);
}

static void pass(struct fixture *x, unsigned seconds)
{
    for (unsigned i = 0; i < 10 * seconds; i++) {
        vg_fake_clock_advance(&x->clock, 100 * VG_NS_PER_MS);
        (void)vg_flow_tick(x->flow);
    }
}

static void a_busy_level_borrows_and_gives_back(void **state)
{
    struct fixture x;
    (void)state;
    fixture_open(&x);
    struct vg_flow_level *busy = level(&x, "global-default"), *idle = level(&x, "workload-low");
    uint32_t before = atomic_load(&busy->limit);
    atomic_store(&busy->waiting_seats, 400); /* so many want in */
    pass(&x, 20);
    uint32_t borrowed = atomic_load(&busy->limit);
    assert_true(borrowed > before && borrowed > 49);
    assert_true(atomic_load(&idle->limit) < 245);
    assert_true(atomic_load(&idle->limit) >= atomic_load(&idle->min));
    atomic_store(&busy->waiting_seats, 0);
    atomic_store(&idle->waiting_seats, 300); /* the lender wants them itself */
    pass(&x, 20);
    assert_true(atomic_load(&idle->limit) >= 245);
    atomic_store(&idle->waiting_seats, 0);
    fixture_close(&x);
}

/* ---- staying away ---- */

static void refusals_double_the_time_to_stay_away(void **state)
{
    struct vg_flow_drops d = {0};
    uint32_t most = 0;
    (void)state;
    assert_int_equal(vg_flow_drops_count(&d, 1000), 1);
    for (int64_t second = 1001; second < 1200; second++)
        for (int i = 0; i < 200; i++) {
            uint32_t s = vg_flow_drops_count(&d, second);
            assert_true(s >= most && s <= 32);
            most = s;
        }
    assert_int_equal(most, 32);
    for (int64_t second = 2000; second < 2000 + 100 * 100; second += 100)
        most = vg_flow_drops_count(&d, second);
    assert_int_equal(most, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hand_has_different_cards_of_the_deck),
        cmocka_unit_test(every_hand_is_as_likely),
        cmocka_unit_test(divided_seats_keep_to_their_bounds),
        cmocka_unit_test(nominal_seats_are_kube_apiservers),
        cmocka_unit_test(a_busy_level_borrows_and_gives_back),
        cmocka_unit_test(refusals_double_the_time_to_stay_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
