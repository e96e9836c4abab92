/* known.c - see known.h. Nearly every revision has one change; the others of those that have more
 * are found by halving. */
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
    for (size_t i = 0; k && i < k->n_more; i++)
        vg_rec_unref(k->more[i].rec);
    if (k)
        vg_free(k->more);
    vg_free(k);
}

static bool is_of(const struct vg_rec *rec, struct vg_slice key)
{
    return rec && vg_slice_eq(vg_rec_key(rec), key);
}

/* Where the change of this key is held, or NULL. */
static const struct vg_rec **place_of(struct vg_known *k, vg_rev rev, struct vg_slice key)
{
    if (!vg_known_spans(k, rev))
        return NULL;
    const struct vg_rec **first = &k->recs[rev - k->after - 1];
    if (is_of(*first, key))
        return first;
    size_t low = 0, high = k->n_more;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (k->more[mid].rev < rev)
            low = mid + 1;
        else
            high = mid;
    }
    for (; low < k->n_more && k->more[low].rev == rev; low++)
        if (is_of(k->more[low].rec, key))
            return &k->more[low].rec;
    return NULL;
}

const struct vg_rec *vg_known_find(const struct vg_known *k, vg_rev rev, struct vg_slice key)
{
    const struct vg_rec **at = place_of((struct vg_known *)k, rev, key);
    return at ? *at : NULL;
}

static bool add_more(struct vg_known *k, const struct vg_rec *rec)
{
    assert(k->n_more == 0 || k->more[k->n_more - 1].rev <= rec->rev);
    if (k->n_more == k->more_cap) {
        size_t cap = k->more_cap ? k->more_cap * 2 : 64;
        struct vg_known_more *v = vg_reallocarray(k->more, cap, sizeof *v);
        if (!v)
            return false;
        k->more = v;
        k->more_cap = cap;
    }
    k->more[k->n_more++] = (struct vg_known_more){rec->rev, vg_rec_ref(rec)};
    return true;
}

bool vg_known_add(struct vg_known *k, const struct vg_rec *rec)
{
    if (!vg_known_spans(k, rec->rev))
        return false;
    if (vg_known_at(k, rec->rev))
        return add_more(k, rec);
    k->recs[rec->rev - k->after - 1] = vg_rec_ref(rec);
    return true;
}

struct vg_rec *vg_known_take(struct vg_known *k, vg_rev rev, struct vg_slice key)
{
    const struct vg_rec **at = place_of(k, rev, key);
    const struct vg_rec *rec = at ? *at : NULL;
    if (at)
        *at = NULL;
    return (struct vg_rec *)rec;
}
