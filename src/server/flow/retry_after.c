/* retry_after.c - how long a refused client shall stay away. kube-apiserver's rule, in the manner
 * of TCP: the more requests were refused in the last seconds, the longer, doubling from 1 s up to
 * 32 s; when it gets quiet, a second less each time. It is looked at once in a second. */
#include "flow_int.h"

#define RETRY_MAX 32u

static uint32_t slot(int64_t second)
{
    return (uint32_t)((uint64_t)second % VG_ARRAY_LEN(((struct vg_flow_drops *)0)->counts));
}

/* Forget what was counted in the seconds in between. */
static void go_to(struct vg_flow_drops *d, int64_t second)
{
    int64_t first = VG_MAX(d->second + 1, second - (int64_t)VG_ARRAY_LEN(d->counts) + 1);
    for (int64_t s = first; s <= second; s++)
        d->counts[slot(s)] = 0;
    d->second = second;
}

uint32_t vg_flow_drops_count(struct vg_flow_drops *d, int64_t second)
{
    d->retry = VG_MAX(d->retry, 1u);
    if (second > d->second) {
        uint64_t lately = 0;
        go_to(d, second);
        for (uint32_t i = 1; i <= d->retry; i++)
            lately += d->counts[slot(second - i)];
        if (second - d->raised >= d->retry && lately >= 3 * (uint64_t)d->retry) {
            d->retry = VG_MIN(2 * d->retry, RETRY_MAX);
            d->raised = second;
        } else if (lately < d->retry && d->retry > 1) {
            d->retry--;
        }
    }
    d->counts[slot(d->second)]++;
    return d->retry;
}
