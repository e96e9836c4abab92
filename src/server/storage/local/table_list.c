/* table_list.c - see table_list.h. */
#include "table_list.h"

#include <errno.h>

#include "base/alloc.h"

/* ---- nodes ---- */

static uint8_t random_levels(struct vg_table_list *list)
{
    list->random ^= list->random << 13;
    list->random ^= list->random >> 7;
    list->random ^= list->random << 17;
    uint8_t levels = 1;
    for (uint64_t bits = list->random; levels < VG_TABLE_LEVELS_MAX && (bits & 3) == 0; bits >>= 2)
        levels++;
    return levels;
}

static struct vg_table_node *node_new(struct vg_table_list *list, struct vg_slice key)
{
    uint8_t levels = random_levels(list);
    struct vg_table_node *node =
        vg_calloc(1, sizeof *node + levels * sizeof(node->next[0]) + key.n);
    if (!node)
        return NULL;
    node->levels = levels;
    node->key_len = (uint32_t)key.n;
    node->versions = &node->single;
    node->cap = 1;
    memcpy(&node->next[levels], key.p, key.n);
    return node;
}

static void node_free(struct vg_table_node *node)
{
    for (uint32_t i = 0; i < node->n; i++)
        vg_rec_unref(node->versions[i]);
    if (node->versions != &node->single)
        vg_free(node->versions);
    vg_free(node);
}

int vg_table_node_reserve(struct vg_table_node *node, uint32_t extra)
{
    if (node->n + extra <= node->cap)
        return 0;
    uint32_t cap = VG_MAX(node->n + extra, node->cap * 2);
    bool is_single = node->versions == &node->single;
    struct vg_rec **v =
        vg_reallocarray(is_single ? NULL : node->versions, cap, sizeof *node->versions);
    if (!v)
        return -ENOMEM;
    if (is_single)
        v[0] = node->single;
    node->versions = v;
    node->cap = cap;
    return 0;
}

struct vg_rec *vg_table_node_at(const struct vg_table_node *node, vg_rev at)
{
    uint32_t lo = 0, hi = node->n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (node->versions[mid]->rev <= at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo ? node->versions[lo - 1] : NULL;
}

/* ---- the list ---- */

void vg_table_list_init(struct vg_table_list *list)
{
    *list = (struct vg_table_list){.levels = 1, .random = 0x9E3779B97F4A7C15u ^ (uintptr_t)list};
}

void vg_table_list_done(struct vg_table_list *list)
{
    for (struct vg_table_node *node = list->head[0]; node;) {
        struct vg_table_node *next = node->next[0];
        node_free(node);
        node = next;
    }
}

/* The first node whose key is not below `key`; before[l] is the link to it on each level. */
static struct vg_table_node *find(struct vg_table_list *list, struct vg_slice key,
                                  struct vg_table_node **before[VG_TABLE_LEVELS_MAX])
{
    struct vg_table_node **links = list->head;
    struct vg_table_node *known_above = NULL; /* not below key, as seen one level up */
    for (int l = list->levels - 1; l >= 0; l--) {
        struct vg_table_node *next = links[l];
        while (next && next != known_above && vg_slice_cmp(vg_table_node_key(next), key) < 0) {
            links = next->next;
            next = links[l];
        }
        known_above = next;
        if (before)
            before[l] = &links[l];
    }
    return known_above;
}

static bool is_of(const struct vg_table_node *node, struct vg_slice key)
{
    return node && vg_slice_eq(vg_table_node_key(node), key);
}

struct vg_table_node *vg_table_list_find(struct vg_table_list *list, struct vg_slice key)
{
    return find(list, key, NULL);
}

struct vg_table_node *vg_table_list_find_exact(struct vg_table_list *list, struct vg_slice key)
{
    struct vg_table_node *node = find(list, key, NULL);
    return is_of(node, key) ? node : NULL;
}

struct vg_table_node *vg_table_list_point(struct vg_table_list *list, struct vg_slice key)
{
    struct vg_table_node *node = find(list, key, list->finger);
    list->finger_node = node;
    list->finger_key = key;
    return is_of(node, key) ? node : NULL;
}

/* The same bytes in the same place: the caller's record lives from comparing to staging. */
static bool is_at_finger(const struct vg_table_list *list, struct vg_slice key)
{
    return list->finger_key.p == key.p && list->finger_key.n == key.n;
}

struct vg_table_node *vg_table_list_find_or_add(struct vg_table_list *list, struct vg_slice key)
{
    struct vg_table_node **before[VG_TABLE_LEVELS_MAX];
    struct vg_table_node *node;
    if (is_at_finger(list, key)) {
        node = list->finger_node;
        memcpy(before, list->finger, sizeof before);
    } else {
        node = find(list, key, before);
    }
    list->finger_key.p = NULL;
    if (is_of(node, key))
        return node;
    node = node_new(list, key);
    if (!node)
        return NULL;
    for (; list->levels < node->levels; list->levels++)
        before[list->levels] = &list->head[list->levels];
    for (int l = 0; l < node->levels; l++) {
        node->next[l] = *before[l];
        *before[l] = node;
    }
    return node;
}

void vg_table_list_remove(struct vg_table_list *list, struct vg_table_node *node)
{
    struct vg_table_node **before[VG_TABLE_LEVELS_MAX];
    assert(node->levels <= list->levels);
    list->finger_key.p = NULL;
    find(list, vg_table_node_key(node), before);
    for (int l = 0; l < node->levels; l++)
        *before[l] = node->next[l];
    node_free(node);
}
