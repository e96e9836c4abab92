/* map.c - open addressing, the robin hood way.
 * An entry lies at or after its home slot, wrapping round; its distance is how far. On the way to
 * its place a newcomer takes the slot of an entry that is nearer home than itself, which moves on;
 * so entries on a run are ordered by home, a search may stop early, and a removal closes the gap by
 * moving the rest of the run one back. Invariants, checked by vg_map_check():
 *   M1 count entries are there, at most three quarters of cap.
 *   M2 an entry's distance is at most one more than the distance of the entry before it, and 0
 * after an empty slot. M3 every entry is found by its key. */
#include "map.h"

#include <errno.h>

#include "alloc.h"

#define CAP_MIN ((size_t)8)
#define HASH_USED (UINT64_C(1) << 63) /* set in every stored hash: 0 means empty */

void vg_map_init(struct vg_map *m, enum vg_map_keys keys)
{
    *m = (struct vg_map){.keys = keys};
}

static void free_key(const struct vg_map *m, const struct vg_map_entry *e)
{
    if (m->keys == VG_MAP_COPIES_KEYS)
        vg_free((void *)(uintptr_t)e->key.p);
}

void vg_map_clear(struct vg_map *m)
{
    VG_MAP_FOREACH (e, m)
        free_key(m, e);
    vg_free(m->slots);
    m->slots = NULL;
    m->cap = m->count = 0;
}

void vg_map_done(struct vg_map *m)
{
    if (m)
        vg_map_clear(m);
}

static size_t distance(const struct vg_map *m, size_t at)
{
    return (at - (size_t)m->slots[at].hash) & (m->cap - 1);
}

/* The slot of key, or cap. */
static size_t find_slot(const struct vg_map *m, struct vg_slice key, uint64_t hash)
{
    size_t mask = m->cap - 1, at = (size_t)hash & mask;
    for (size_t away = 0; away < m->cap; away++, at = (at + 1) & mask) {
        const struct vg_map_entry *e = &m->slots[at];
        if (!e->hash || distance(m, at) < away)
            break;
        if (e->hash == hash && vg_slice_eq(e->key, key))
            return at;
    }
    return m->cap;
}

static uint64_t hash_of(const struct vg_map *m, struct vg_slice key)
{
    return vg_hash(&m->hash_key, key) | HASH_USED;
}

const struct vg_map_entry *vg_map_find(const struct vg_map *m, struct vg_slice key)
{
    if (m->count == 0)
        return NULL;
    size_t at = find_slot(m, key, hash_of(m, key));
    return at < m->cap ? &m->slots[at] : NULL;
}

void *vg_map_get(const struct vg_map *m, struct vg_slice key)
{
    const struct vg_map_entry *e = vg_map_find(m, key);
    return e ? e->value : NULL;
}

/* For a key that is not there and a table with room. */
static void insert(struct vg_map *m, struct vg_map_entry e)
{
    size_t mask = m->cap - 1, at = (size_t)e.hash & mask;
    for (size_t away = 0; m->slots[at].hash; away++, at = (at + 1) & mask) {
        size_t theirs = distance(m, at);
        if (theirs >= away)
            continue;
        struct vg_map_entry moved = m->slots[at];
        m->slots[at] = e;
        e = moved;
        away = theirs;
    }
    m->slots[at] = e;
}

static int resize(struct vg_map *m, size_t cap)
{
    struct vg_map_entry *slots = vg_calloc(cap, sizeof *slots);
    if (!slots)
        return -ENOMEM;
    struct vg_map grown = {.slots = slots, .cap = cap};
    VG_MAP_FOREACH (e, m)
        insert(&grown, *e);
    vg_free(m->slots);
    m->slots = slots;
    m->cap = cap;
    return 0;
}

/* Room for one more. The hash key is drawn when the table is first made. */
static int make_room(struct vg_map *m)
{
    if (m->cap == 0) {
        int r = vg_hash_key_make(&m->hash_key);
        return r < 0 ? r : resize(m, CAP_MIN);
    }
    if (m->count < m->cap / 4 * 3)
        return 0;
    return m->cap > SIZE_MAX / 2 ? -ENOMEM : resize(m, m->cap * 2);
}

static int add(struct vg_map *m, struct vg_slice key, void *value)
{
    int r = make_room(m);
    if (r < 0)
        return r;
    if (m->keys == VG_MAP_COPIES_KEYS) {
        key.p = vg_strndup(key.p, key.n);
        if (!key.p)
            return -ENOMEM;
    }
    insert(m, (struct vg_map_entry){hash_of(m, key), key, value});
    m->count++;
    return 0;
}

int vg_map_put(struct vg_map *m, struct vg_slice key, void *value, void **ret_old)
{
    size_t at = m->count ? find_slot(m, key, hash_of(m, key)) : m->cap;
    if (at == m->cap)
        return add(m, key, value);
    struct vg_map_entry *e = &m->slots[at];
    if (ret_old)
        *ret_old = e->value;
    if (m->keys == VG_MAP_BORROWS_KEYS)
        e->key = key;
    e->value = value;
    return 1;
}

/* Moves the rest of the run one slot back over `at`. */
static void close_gap(struct vg_map *m, size_t at)
{
    size_t mask = m->cap - 1, next = (at + 1) & mask;
    while (m->slots[next].hash && distance(m, next) > 0) {
        m->slots[at] = m->slots[next];
        at = next;
        next = (next + 1) & mask;
    }
    m->slots[at] = (struct vg_map_entry){0};
}

void *vg_map_remove(struct vg_map *m, struct vg_slice key)
{
    size_t at = m->count ? find_slot(m, key, hash_of(m, key)) : m->cap;
    if (at == m->cap)
        return NULL;
    void *value = m->slots[at].value;
    free_key(m, &m->slots[at]);
    close_gap(m, at);
    m->count--;
    /* An eighth: a map that swings about one size does not resize each time. */
    if (m->cap > CAP_MIN && m->count < m->cap / 8) {
        int r = resize(m, m->cap / 2);
        (void)r; /* without memory the larger table serves as well */
    }
    return value;
}

const struct vg_map_entry *vg_map_next(const struct vg_map *m, const struct vg_map_entry *after)
{
    size_t at = after ? (size_t)(after - m->slots) + 1 : 0;
    while (at < m->cap && !m->slots[at].hash)
        at++;
    return at < m->cap ? &m->slots[at] : NULL;
}

void vg_map_check(const struct vg_map *m)
{
    size_t count = 0;
    for (size_t at = 0; at < m->cap; at++) {
        if (!m->slots[at].hash)
            continue;
        size_t before = (at - 1) & (m->cap - 1);
        size_t most = m->slots[before].hash ? distance(m, before) + 1 : 0;
        assert(distance(m, at) <= most);
        assert(vg_map_find(m, m->slots[at].key) == &m->slots[at]);
        (void)most;
        count++;
    }
    assert(count == m->count && count <= m->cap / 4 * 3);
    (void)count;
}
