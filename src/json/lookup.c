/* lookup.c - see lookup.h. Sorting instead of hashing: no peer can choose keys that collide. */
#include "lookup.h"

#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "bytes.h"

/* Objects up to 16 members are scanned always: a scan is as cheap as a binary search there. */
#define SCAN_MEMBERS_MAX 16u
/* 8 scans of a larger object cost about what sorting it does. */
#define SCANS_MAX 8u

void vg_json_lookup_done(struct vg_json_lookup *l)
{
    vg_free(l->sorted);
    l->sorted = NULL;
}

static int compare_keys(const void *a, const void *b)
{
    const struct vg_json_member *const *x = a, *const *y = b;
    return vg_slice_cmp(vg_json_key(*x), vg_json_key(*y));
}

static int sort_members(struct vg_json_lookup *l)
{
    l->sorted = vg_reallocarray(NULL, l->obj->n, sizeof *l->sorted);
    if (!l->sorted)
        return -ENOMEM;
    for (uint32_t i = 0; i < l->obj->n; i++)
        l->sorted[i] = &l->obj->members[i];
    qsort(l->sorted, l->obj->n, sizeof *l->sorted, compare_keys);
    return 0;
}

static const struct vg_json_member *search(const struct vg_json_lookup *l, struct vg_slice key)
{
    uint32_t low = 0, high = l->obj->n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        int c = vg_slice_cmp(vg_json_key(l->sorted[mid]), key);
        if (c == 0)
            return l->sorted[mid];
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

int vg_json_lookup_find(struct vg_json_lookup *l, struct vg_slice key, uint32_t hint,
                        const struct vg_json_member **ret)
{
    const struct vg_json_member *m = NULL;
    if (!l->obj)
        return 0;
    if (hint < l->obj->n && l->obj->members[hint].key_n == key.n &&
        vg_json_same_bytes(l->obj->members[hint].key, key.p, key.n)) {
        *ret = &l->obj->members[hint];
        return 1;
    }
    if (l->obj->n > SCAN_MEMBERS_MAX && !l->sorted && l->scans++ >= SCANS_MAX) {
        int r = sort_members(l);
        if (r < 0)
            return r;
    }
    m = l->sorted ? search(l, key) : vg_json_member(l->obj, key);
    if (m)
        *ret = m;
    return m != NULL;
}
