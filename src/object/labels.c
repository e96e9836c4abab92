/* labels.c - finding a label; see labels.h. Nothing here allocates. */
#include "labels.h"

uint32_t vg_labels_lower_bound(const struct vg_labels *l, struct vg_slice key, uint32_t from)
{
    uint32_t low = from, high = l->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (vg_slice_cmp(vg_labels_key(l, middle), key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Up to this many labels, looking at all lengths costs less than comparing a few keys: few keys are
 * of the same length, and the lengths lie side by side. */
#define LINEAR_MAX 32u

static uint32_t index_linear(const struct vg_labels *l, struct vg_slice key, uint32_t from)
{
    uint32_t i = from;
    while (i < l->n && !(l->v[i].key_n == key.n && vg_slice_eq(vg_labels_key(l, i), key)))
        i++;
    return i;
}

uint32_t vg_labels_index(const struct vg_labels *l, struct vg_slice key, uint32_t from)
{
    if (l->n <= LINEAR_MAX)
        return index_linear(l, key, from);
    uint32_t i = vg_labels_lower_bound(l, key, from);
    return i < l->n && vg_slice_eq(vg_labels_key(l, i), key) ? i : l->n;
}

bool vg_labels_find(const struct vg_labels *l, struct vg_slice key, struct vg_slice *ret_value)
{
    uint32_t i = vg_labels_index(l, key, 0);
    if (i < l->n && ret_value)
        *ret_value = vg_labels_value(l, i);
    return i < l->n;
}

static bool is_inside(uint32_t at, uint16_t n, size_t base_n)
{
    return at <= base_n && n <= base_n - at;
}

bool vg_labels_is_sound(const struct vg_labels *l, size_t base_n)
{
    for (uint32_t i = 0; i < l->n; i++) {
        const struct vg_label_ref *r = &l->v[i];
        if (!is_inside(r->key, r->key_n, base_n) || !is_inside(r->value, r->value_n, base_n))
            return false;
        if (i > 0 && vg_slice_cmp(vg_labels_key(l, i - 1), vg_labels_key(l, i)) >= 0)
            return false;
    }
    return true;
}
