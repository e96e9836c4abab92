/* map.h - a hash map from byte strings to pointers.
 * Keys are copied into the map or borrowed from the caller, as said at init; values are the
 * caller's and are never freed here. The hash is keyed (hash.h), so peers may choose the keys. The
 * table grows by doubling and shrinks by halving. Zeroed memory is an empty map that borrows its
 * keys. Thread: one owner, or any number of readers while nobody writes. */
#ifndef VG_BASE_MAP_H
#define VG_BASE_MAP_H

#include "hash.h"
#include "slice.h"

enum vg_map_keys { VG_MAP_BORROWS_KEYS, VG_MAP_COPIES_KEYS };

struct vg_map_entry {
    uint64_t hash; /* 0: an empty slot */
    struct vg_slice key;
    void *value;
};

struct vg_map {
    struct vg_map_entry *slots;
    size_t cap; /* a power of two, or 0 */
    size_t count;
    struct vg_hash_key hash_key;
    enum vg_map_keys keys;
};

void vg_map_init(struct vg_map *m, enum vg_map_keys keys);
void vg_map_done(struct vg_map *m); /* the map is empty and usable again */
static inline void vg_map_cleanup(struct vg_map *m)
{
    vg_map_done(m);
}

static inline size_t vg_map_count(const struct vg_map *m)
{
    return m->count;
}

/* NULL: not there (or a NULL was put; vg_map_find tells them apart). */
void *vg_map_get(const struct vg_map *m, struct vg_slice key);
/* NULL: not there. Valid until the next put or remove. */
const struct vg_map_entry *vg_map_find(const struct vg_map *m, struct vg_slice key);

/* 0: added. 1: replaced, and *ret_old (NULL allowed) is the former value; a borrowing map now
 * borrows the new key. -ENOMEM or an error of the kernel's random source: nothing changed. */
VG_CHECK int vg_map_put(struct vg_map *m, struct vg_slice key, void *value, void **ret_old);
/* The value that was there, NULL when none was. Never fails. */
void *vg_map_remove(struct vg_map *m, struct vg_slice key);
void vg_map_clear(struct vg_map *m);

/* Visits every entry, in no order: VG_MAP_FOREACH (e, map) use(e->key, e->value). The body neither
 * puts nor removes. */
#define VG_MAP_FOREACH(e, map)                                                                     \
    for (const struct vg_map_entry *e = vg_map_next((map), NULL); e; e = vg_map_next((map), e))
const struct vg_map_entry *vg_map_next(const struct vg_map *m, const struct vg_map_entry *after);

/* Tests: asserts M1 to M3 of map.c. */
void vg_map_check(const struct vg_map *m);

#endif
