/* index.c - see index.h. */
#include "index.h"

#include <errno.h>
#include <stdlib.h>

static int by_element(const void *a, const void *b)
{
    const struct vg_index_item *x = *(struct vg_index_item *const *)a,
                               *y = *(struct vg_index_item *const *)b;
    int c = vg_slice_cmp(x->element, y->element);
    return c ? c : (x->at > y->at) - (x->at < y->at);
}

int vg_index_make(struct vg_arena *a, struct vg_fields_ref list, const struct vg_json *v,
                  struct vg_index *ret, uint32_t *ret_at, struct vg_status *reterr_status)
{
    uint32_t n = vg_json_is(v, VG_JSON_ARRAY) ? v->n : 0;
    *ret = (struct vg_index){.v = vg_arena_array(a, struct vg_index_item, (size_t)n + 1),
                             .sorted = vg_arena_array(a, struct vg_index_item *, (size_t)n + 1),
                             .n = n};
    if (!ret->v || !ret->sorted)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        struct vg_index_item *it = &ret->v[i];
        *it = (struct vg_index_item){.v = &v->items[i], .at = i};
        ret->sorted[i] = it;
        int err = vg_fields_item_element(a, list, it->v, &it->element, reterr_status);
        if (err < 0) {
            if (ret_at)
                *ret_at = i;
            return err;
        }
    }
    if (n > 1)
        qsort(ret->sorted, n, sizeof *ret->sorted, by_element);
    for (uint32_t i = 1; i < n; i++)
        if (vg_slice_eq(ret->sorted[i - 1]->element, ret->sorted[i]->element))
            ret->sorted[i - 1]->is_repeated = ret->sorted[i]->is_repeated = true;
    return 0;
}

struct vg_index_item *vg_index_find(const struct vg_index *x, struct vg_slice element)
{
    uint32_t low = 0, high = x->n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (vg_slice_cmp(x->sorted[mid]->element, element) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    bool is_found = low < x->n && vg_slice_eq(x->sorted[low]->element, element);
    return is_found ? x->sorted[low] : NULL;
}
