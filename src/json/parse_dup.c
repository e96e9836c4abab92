/* parse_dup.c - keys that an object has twice.
 * Runs once per object, when it closes, over members that lie side by side. It must cost next to
 * nothing when there is no duplicate, which is always:
 *   - up to SMALL members: each key sets one bit of 64, chosen from its length and two of its
 * bytes; only a key whose bit is already set is compared with those before it.
 *   - more: a hash set of indexes. The hash is seeded per process, so that nobody can prepare a
 * text whose keys all collide. Found duplicates are rare and may cost: the earlier member is marked
 * by a NULL key and squeezed out. */
#include <errno.h>
#include <stdio.h>
#include <sys/auxv.h>

#include "base/buf.h"
#include "parse_int.h"

/* 24: comparing with the collisions of a 64-bit filter is still cheaper than filling a table. */
#define SMALL 24u

/* 1000: ten times what is listed. Only a text made for it has more paths that are equal (a
 * duplicate within a duplicate) than that. */
#define LOOKS_MAX 1000u

static inline bool same_key(const struct vg_json_member *a, const struct vg_json_member *b)
{
    return a->key_n == b->key_n && a->key && memcmp(a->key, b->key, a->key_n) == 0;
}

/* ---- paths ---- */

/* ".key", or "key" as the first step; whole or not at all. */
static int append_key(struct vg_buf *out, struct vg_slice key, bool first)
{
    int r = vg_buf_reserve(out, key.n + 1);
    if (r == 0 && !first)
        r = vg_buf_append_byte(out, '.');
    return r < 0 ? r : vg_buf_append_slice(out, key);
}

/* The place of frames[i] within its parent: a key or "[3]". Nothing for the text's own value. */
static int append_step(const struct vg_json_parser *ps, uint32_t i, struct vg_buf *out)
{
    const struct vg_json_frame *parent = &ps->frames[i - 1];
    const struct vg_json_frame *f = &ps->frames[i];
    if (i == 1)
        return 0;
    if (!parent->is_object)
        return vg_buf_printf(out, "[%u]", f->items_base - parent->items_base - 1);
    return append_key(out, vg_json_key(&ps->members[f->members_base - 1]), i == 2);
}

static int append_steps(const struct vg_json_parser *ps, struct vg_slice key, struct vg_buf *out)
{
    int r = 0;
    for (uint32_t i = 1; i <= ps->depth && r == 0; i++)
        r = append_step(ps, i, out);
    return r < 0 ? r : append_key(out, key, ps->depth == 1);
}

/* out is empty. */
static int build_path(const struct vg_json_parser *ps, struct vg_slice key, struct vg_buf *out)
{
    out->max = VG_JSON_DUP_PATH_MAX;
    int r = append_steps(ps, key, out);
    if (r != VIGIL_E_TOO_LARGE)
        return r;
    out->max += 3;
    return vg_buf_append(out, "...", 3);
}

static bool is_listed(const struct vg_json_dups *d, struct vg_slice path)
{
    for (uint32_t i = 0; i < d->n; i++)
        if (vg_slice_eq(d->v[i].path, path))
            return true;
    return false;
}

static int list_dup(struct vg_json_parser *ps, struct vg_slice path, uint32_t offset)
{
    if (ps->dups.n >= VG_JSON_DUPS_MAX || is_listed(&ps->dups, path))
        return 0;
    if (!ps->dups.v)
        ps->dups.v = vg_arena_array(ps->arena, struct vg_json_dup, VG_JSON_DUPS_MAX);
    char *copy = vg_arena_copy(ps->arena, path.p, path.n);
    if (!ps->dups.v || !copy)
        return -ENOMEM;
    ps->dups.v[ps->dups.n++] = (struct vg_json_dup){{copy, path.n}, offset};
    return 0;
}

void vg_json_sort_dups(struct vg_json_dups *dups)
{
    for (uint32_t i = 1; i < dups->n; i++) {
        struct vg_json_dup d = dups->v[i];
        uint32_t at = i;
        for (; at > 0 && dups->v[at - 1].offset > d.offset; at--)
            dups->v[at] = dups->v[at - 1];
        dups->v[at] = d;
    }
}

static int fail_dup(struct vg_json_parser *ps, struct vg_slice path, uint32_t offset)
{
    char *copy = vg_arena_copy(ps->arena, path.p, path.n);
    if (!copy)
        return -ENOMEM;
    ps->err_path = (struct vg_slice){copy, path.n};
    vg_json_parse_fail(ps, VIGIL_E_JSON_DUPLICATE, ps->base + offset, "duplicate key");
    return ps->err;
}

static int tell(struct vg_json_parser *ps, const struct vg_json_member *m)
{
    VG_AUTO(buf) path = {0};
    int r = build_path(ps, vg_json_key(m), &path);
    if (r < 0)
        return r;
    return ps->on_dup == VG_JSON_DUP_FAIL ? fail_dup(ps, vg_buf_slice(&path), m->key_begin)
                                          : list_dup(ps, vg_buf_slice(&path), m->key_begin);
}

/* `second` repeats the key of `first`: tell it as asked, and mark the first as gone. The mark on
 * the second says that a third need not be told. */
static __attribute__((noinline, cold)) int
on_duplicate(struct vg_json_parser *ps, struct vg_json_member *first, struct vg_json_member *second)
{
    bool told = first->value.mark || ps->on_dup == VG_JSON_DUP_LAST_WINS;
    first->key = NULL;
    second->value.mark = 1;
    if (told || ps->dups.n >= VG_JSON_DUPS_MAX || ps->dups_looked_at >= LOOKS_MAX)
        return 0;
    ps->dups_looked_at++;
    return tell(ps, second);
}

/* ---- finding ---- */

/* One of 64 bits for a key. Keys of Kubernetes objects share prefixes (f:, k:{) more than middles.
 */
static inline uint64_t key_bit(const struct vg_json_member *m)
{
    if (m->key_n == 0)
        return 1;
    unsigned middle = (unsigned char)m->key[m->key_n / 2];
    unsigned last = (unsigned char)m->key[m->key_n - 1];
    return (uint64_t)1 << ((m->key_n * 7 + middle * 5 + last) & 63);
}

/* Returns how many were dropped, or negative. */
static int find_small(struct vg_json_parser *ps, struct vg_json_member *m, uint32_t n)
{
    uint64_t seen = key_bit(&m[0]);
    int dropped = 0;
    for (uint32_t i = 1; i < n; i++) {
        uint64_t bit = key_bit(&m[i]);
        bool known = seen & bit;
        seen |= bit;
        for (uint32_t j = 0; VG_UNLIKELY(known) && j < i; j++) {
            if (VG_LIKELY(!same_key(&m[j], &m[i])))
                continue;
            int r = on_duplicate(ps, &m[j], &m[i]);
            if (r < 0)
                return r;
            dropped++;
        }
    }
    return dropped;
}

/* 64 random bits that the kernel gives every process. */
static uint64_t process_seed(void)
{
    uint64_t seed = 0x9e3779b97f4a7c15u;
    const void *random = (const void *)(uintptr_t)getauxval(AT_RANDOM); /* NOLINT */
    if (random)
        memcpy(&seed, random, sizeof seed);
    return seed;
}

static inline uint64_t mix(uint64_t a, uint64_t b)
{
    unsigned __int128 m = (unsigned __int128)a * b;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static uint64_t hash_key(const char *p, size_t n, uint64_t seed)
{
    uint64_t h = mix(seed ^ 0xa0761d6478bd642fu, n ^ 0xe7037ed1a0b428dbu);
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        h = mix(h ^ word, seed ^ 0x8ebc6af09c88c6e3u);
    }
    uint64_t tail = 0;
    memcpy(&tail, p, n);
    return mix(h ^ tail, seed ^ 0x589965cc75374cc3u);
}

/* An empty table with room for n keys at half load; entries are index + 1. Returns its mask, or -1.
 */
static int64_t prepare_table(struct vg_json_scratch *s, uint32_t n)
{
    size_t size = 64;
    while (size < (size_t)n * 2)
        size *= 2;
    if (vg_json_grow(&s->table, &s->table_n, size, sizeof(uint32_t)) < 0)
        return -1;
    memset(s->table, 0, size * sizeof(uint32_t));
    return (int64_t)size - 1;
}

static int find_large(struct vg_json_parser *ps, struct vg_json_member *m, uint32_t n)
{
    uint64_t seed = process_seed();
    int64_t mask = prepare_table(ps->scratch, n);
    if (mask < 0)
        return -ENOMEM;
    uint32_t *table = ps->scratch->table;
    int dropped = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t at = hash_key(m[i].key, m[i].key_n, seed) & (uint64_t)mask;
        while (table[at] && !same_key(&m[table[at] - 1], &m[i]))
            at = (at + 1) & (uint64_t)mask;
        if (VG_UNLIKELY(table[at])) {
            int r = on_duplicate(ps, &m[table[at] - 1], &m[i]);
            if (r < 0)
                return r;
            dropped++;
        }
        table[at] = i + 1;
    }
    return dropped;
}

/* Close the gaps that marked members leave. */
static void squeeze(struct vg_json_parser *ps, struct vg_json_member *m, uint32_t n)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        m[i].value.mark = 0;
        if (m[i].key)
            m[kept++] = m[i];
    }
    ps->members_n -= n - kept;
}

int vg_json_drop_duplicates(struct vg_json_parser *ps)
{
    uint32_t base = ps->frames[ps->depth].members_base;
    struct vg_json_member *m = ps->members + base;
    uint32_t n = ps->members_n - base;
    int r = n <= SMALL ? find_small(ps, m, n) : find_large(ps, m, n);
    if (r > 0)
        squeeze(ps, m, n);
    if (r < 0)
        vg_json_parse_fail(ps, r, ps->base, "out of memory");
    return r < 0 ? r : 0;
}
