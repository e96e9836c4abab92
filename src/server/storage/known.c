/* known.c - see known.h. */
#include "known.h"

#include "base/alloc.h"

struct vg_known *vg_known_new(vg_rev after, vg_rev upto)
{
    size_t n = upto > after ? (size_t)(upto - after) : 0;
    struct vg_known *k = NULL;
    size_t bytes;
    if (__builtin_mul_overflow(n, sizeof k->recs[0], &bytes) ||
        __builtin_add_overflow(bytes, sizeof *k, &bytes))
        return NULL;
    k = vg_calloc(1, bytes);
    if (!k)
        return NULL;
    k->after = after;
    k->upto = after + n;
    return k;
}

/* Records lie all over the memory: those that are let go of soon are asked for. */
#define FETCH_AHEAD 16

void vg_known_free(struct vg_known *k)
{
    size_t n = k ? (size_t)(k->upto - k->after) : 0;
    for (size_t i = 0; i < n; i++) {
        if (i + FETCH_AHEAD < n)
            __builtin_prefetch(k->recs[i + FETCH_AHEAD], 1);
        vg_rec_unref(k->recs[i]);
    }
    vg_free(k);
}
