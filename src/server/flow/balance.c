/* balance.c - how many seats each level has. Its nominal seats are its share of the server's; of
 * these it lends some while it does not need them, and it may borrow what others lend. All of it is
 * kube-apiserver's arithmetic, with one difference: kube-apiserver integrates the demand over every
 * change, we take samples, ten in a second, and know the highest value exactly. */
#include <math.h>

#include "flow_int.h"

/* A half-life of 5 minutes, at a period of 10 s. */
#define SMOOTHING 0.977
#define SAMPLE_NS (100 * VG_NS_PER_MS)
/* While nothing is asked, there is nothing to sample. */
#define QUIET_NS VG_NS_PER_S
#define MIN_TARGET 0.001

static struct vg_flow_level *level_of(struct vg_list *n)
{
    return VG_CONTAINER_OF(n, struct vg_flow_level, link);
}

/* ---- dividing ---- */

static double sum_at(const struct vg_flow_share *v, size_t n, double proportion)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += fmin(fmax(v[i].target * proportion, v[i].low), v[i].high);
    return sum;
}

double vg_flow_divide(struct vg_flow_share *v, size_t n, double sum)
{
    double low = 0, high = 1;
    for (size_t i = 0; i < n; i++) {
        v[i].target = fmax(v[i].target, MIN_TARGET);
        high = fmax(high, v[i].high / v[i].target);
    }
    /* The sum rises with the proportion: halve the interval until doubles can tell no more. */
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        if (sum_at(v, n, middle) < sum)
            low = middle;
        else
            high = middle;
    }
    for (size_t i = 0; i < n; i++)
        v[i].got = fmin(fmax(v[i].target * high, v[i].low), v[i].high);
    return high;
}

/* ---- nominal seats ---- */

static uint32_t percent_of(uint32_t n, int64_t percent)
{
    return (uint32_t)fmin(round((double)n * (double)percent / 100), 1e9);
}

static void assign(struct vg_flow *f, struct vg_flow_level *v, double shares)
{
    const struct vg_flow_level_spec *s = &v->spec;
    double part = shares > 0 ? (double)f->opts.seats * s->shares / shares : 0;
    uint32_t nominal = (uint32_t)ceil(part);
    uint32_t lendable = percent_of(nominal, s->lendable_percent);
    uint32_t borrowing =
        s->borrowing_percent < 0 ? f->opts.seats : percent_of(nominal, s->borrowing_percent);
    bool is_new = atomic_load(&v->max) == 0;
    atomic_store(&v->nominal, nominal);
    atomic_store(&v->min, nominal - lendable);
    atomic_store(&v->max, nominal + borrowing);
    f->nominal_sum += nominal;
    if (is_new)
        vg_flow_level_set_limit(v, nominal - lendable / 2);
}

void vg_flow_assign_nominal(struct vg_flow *f)
{
    double shares = 0;
    f->nominal_sum = 0;
    VG_LIST_FOREACH (n, &f->levels)
        shares += level_of(n)->spec.shares;
    VG_LIST_FOREACH (n, &f->levels)
        assign(f, level_of(n), shares);
    vg_flow_rebalance(f, vg_clock_mono_ns(f->opts.clock));
}

/* ---- borrowing ---- */

static void note_period(struct vg_flow_level *v)
{
    struct vg_flow_demand *d = &v->demand;
    uint32_t now = vg_flow_level_used(v) + atomic_load(&v->waiting_seats);
    d->high = VG_MAX(atomic_exchange(&v->high, now), now);
    if (d->weight > 0) {
        d->average = d->sum / d->weight;
        d->deviation = sqrt(fmax(d->sum_squares / d->weight - d->average * d->average, 0));
        double envelope = d->average + d->deviation;
        d->smoothed = fmax(envelope, SMOOTHING * d->smoothed + (1 - SMOOTHING) * envelope);
    }
    d->sum = d->sum_squares = d->weight = 0;
}

/* Seats that a level is not asked to lend: what it needed lately of its own. */
static uint32_t needed(const struct vg_flow_level *v)
{
    uint32_t nominal = atomic_load(&v->nominal), min = atomic_load(&v->min);
    uint32_t wanted = v->is_exempt ? v->demand.high : VG_MIN(nominal, v->demand.high);
    return VG_MAX(min, wanted);
}

struct sums {
    double remaining, min, needed; /* the last two of levels that are not exempt */
};

static struct sums add_up(struct vg_flow *f)
{
    struct sums s = {.remaining = f->nominal_sum};
    VG_LIST_FOREACH (n, &f->levels) {
        struct vg_flow_level *v = level_of(n);
        note_period(v);
        if (v->is_exempt) {
            s.remaining -= needed(v);
        } else {
            s.min += atomic_load(&v->min);
            s.needed += needed(v);
        }
    }
    return s;
}

/* Enough for what all needed: divide the rest by demand, a bounded number of levels at a time. */
static void divide_by_demand(struct vg_flow *f)
{
    struct vg_flow_share shares[VG_FLOW_OBJECTS_MAX];
    size_t k = 0;
    VG_LIST_FOREACH (n, &f->levels) {
        struct vg_flow_level *v = level_of(n);
        if (v->is_exempt || k == VG_ARRAY_LEN(shares))
            continue;
        double low = needed(v);
        v->demand.target = fmax(low, v->demand.smoothed);
        shares[k++] = (struct vg_flow_share){v->demand.target, low, atomic_load(&v->max), 0};
    }
    f->fair_fraction = vg_flow_divide(shares, k, f->nominal_sum);
    k = 0;
    VG_LIST_FOREACH (n, &f->levels) {
        if (!level_of(n)->is_exempt && k < VG_ARRAY_LEN(shares))
            vg_flow_level_set_limit(level_of(n), (uint32_t)round(shares[k++].got));
    }
}

void vg_flow_rebalance(struct vg_flow *f, uint64_t now_ns)
{
    struct sums s = add_up(f);
    double part = s.remaining <= s.min      ? 0
                  : s.remaining <= s.needed ? (s.remaining - s.min) / (s.needed - s.min)
                                            : 1;
    f->rebalanced_ns = now_ns;
    f->fair_fraction = 0;
    if (s.remaining > s.needed) {
        divide_by_demand(f);
        return;
    }
    VG_LIST_FOREACH (n, &f->levels) {
        struct vg_flow_level *v = level_of(n);
        uint32_t min = atomic_load(&v->min);
        if (!v->is_exempt)
            vg_flow_level_set_limit(v, min + (uint32_t)round((needed(v) - min) * part));
    }
}

/* ---- sampling ---- */

static bool sample(struct vg_flow_level *v, uint64_t now)
{
    struct vg_flow_demand *d = &v->demand;
    double demand = vg_flow_level_used(v) + atomic_load(&v->waiting_seats);
    double weight = d->sampled_ns ? (double)(now - d->sampled_ns) / 1e9 : 0;
    d->sampled_ns = now;
    d->sum += demand * weight;
    d->sum_squares += demand * demand * weight;
    d->weight += weight;
    return demand > 0;
}

uint64_t vg_flow_tick(struct vg_flow *f)
{
    bool is_busy = false;
    uint64_t now = vg_clock_mono_ns(f->opts.clock);
    vg_mutex_lock(&f->mu);
    VG_LIST_FOREACH (n, &f->levels)
        is_busy |= sample(level_of(n), now);
    if (now - f->rebalanced_ns >= VG_FLOW_REBALANCE_NS && vg_flow_drop_unwanted(f))
        vg_flow_assign_nominal(f);
    else if (now - f->rebalanced_ns >= VG_FLOW_REBALANCE_NS)
        vg_flow_rebalance(f, now);
    vg_mutex_unlock(&f->mu);
    return is_busy ? SAMPLE_NS : QUIET_NS;
}
