/* limiter.c - see limiter.h. */
#include "limiter.h"

#include <math.h>

#include "base/clock.h"

/* client-go's defaults. */
#define BASE_DELAY_MS 5u
#define MAX_DELAY_MS (1000u * 1000u)
#define QPS 10.0
#define BURST 100u
/* A delay beyond any life: 2^62 ns are 146 years. */
#define DELAY_MAX_NS (UINT64_C(1) << 62)

static uint64_t ms_to_ns(uint64_t ms)
{
    return ms > DELAY_MAX_NS / VG_NS_PER_MS ? DELAY_MAX_NS : ms * VG_NS_PER_MS;
}

int vg_limiter_init(struct vg_limiter *l, const struct vigil_workqueue_opts *opts, uint64_t now_ns)
{
    if (isnan(opts->qps))
        return VIGIL_E_INVALID;
    *l = (struct vg_limiter){
        .base_ns = ms_to_ns(opts->base_delay_ms ? opts->base_delay_ms : BASE_DELAY_MS),
        .max_ns = ms_to_ns(opts->max_delay_ms ? opts->max_delay_ms : MAX_DELAY_MS),
        .fast_tries = opts->fast_tries,
        .fast_ns = ms_to_ns(opts->fast_delay_ms),
        .slow_ns = ms_to_ns(opts->slow_delay_ms),
        .qps = opts->qps == 0 ? QPS : opts->qps,
        .burst = opts->burst ? opts->burst : BURST,
        .filled_ns = now_ns};
    l->tokens = l->burst;
    return 0;
}

uint64_t vg_limiter_by_failures(const struct vg_limiter *l, unsigned failures)
{
    if (l->fast_tries)
        return failures < l->fast_tries ? l->fast_ns : l->slow_ns;
    uint64_t delay = l->base_ns;
    for (unsigned i = 0; i < failures && delay < l->max_ns; i++)
        delay *= 2; /* at most twice DELAY_MAX_NS */
    return VG_MIN(delay, l->max_ns);
}

uint64_t vg_limiter_by_bucket(struct vg_limiter *l, uint64_t now_ns)
{
    if (l->qps < 0)
        return 0;
    double seconds = (double)(now_ns - l->filled_ns) / (double)VG_NS_PER_S;
    l->filled_ns = now_ns;
    l->tokens = fmin(l->burst, l->tokens + seconds * l->qps) - 1;
    if (l->tokens >= 0)
        return 0;
    double wait_ns = -l->tokens / l->qps * (double)VG_NS_PER_S;
    return wait_ns >= (double)DELAY_MAX_NS ? DELAY_MAX_NS : (uint64_t)wait_ns;
}
