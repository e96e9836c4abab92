/* backoff.c - how long to wait after a failure: base, doubled up to a cap, with as much jitter
 * again. It begins anew when two minutes have passed since it last did, failures or not: an outage
 * that lasts is tried soon every two minutes. */
#include "reflector_int.h"

#define BASE_NS (800 * VG_NS_PER_MS)
#define CAP_NS (30 * VG_NS_PER_S)
#define RESET_NS (120 * VG_NS_PER_S)

uint64_t vg_backoff_next(struct vg_backoff *b, const struct vg_reflector_tuning *t,
                         struct vg_rng *rng, uint64_t now_ns)
{
    uint64_t base = t->backoff_ns ? t->backoff_ns : BASE_NS;
    uint64_t cap = t->backoff_cap_ns ? t->backoff_cap_ns : CAP_NS;
    uint64_t reset = t->backoff_reset_ns ? t->backoff_reset_ns : RESET_NS;
    if (!b->has_begun || now_ns - b->reset_ns > reset)
        *b = (struct vg_backoff){.step_ns = base, .reset_ns = now_ns, .has_begun = true};
    uint64_t step = VG_MIN(b->step_ns, cap);
    b->step_ns = VG_MIN(step * 2, cap);
    return step + (t->no_jitter ? 0 : vg_rng_below(rng, step));
}
