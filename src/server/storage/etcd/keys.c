/* keys.c - where keys lie in etcd: a root of ours becomes a prefix of theirs, the rest stays. */
#include <errno.h>

#include "base/alloc.h"
#include "engine.h"

/* The first key behind all that begin with the prefix; empty when there is none. */
static void bump(char *end, size_t *n)
{
    while (*n && (unsigned char)end[*n - 1] == 0xff)
        --*n;
    if (*n)
        end[*n - 1]++;
}

int vg_etcd_space_init(struct vg_etcd_space *s, const char *root, const char *prefix)
{
    static const char barrier[] = "vigil.barrier";
    size_t n = strlen(prefix);
    *s = (struct vg_etcd_space){0};
    if (n == 0 || n > VG_ETCD_PREFIX_MAX - sizeof barrier)
        return VIGIL_E_INVALID;
    s->root = vg_strdup(root);
    s->prefix = vg_strdup(prefix);
    s->end = vg_strdup(prefix);
    s->barrier_text = vg_malloc(n + sizeof barrier);
    if (!s->root || !s->prefix || !s->end || !s->barrier_text)
        return -ENOMEM;
    size_t end_n = n;
    bump(s->end, &end_n);
    memcpy(s->barrier_text, prefix, n);
    s->barrier_text[n - 1]--;
    memcpy(s->barrier_text + n, barrier, sizeof barrier);
    s->root_s = vg_slice_str(s->root);
    s->prefix_s = vg_slice(s->prefix, n);
    s->end_s = vg_slice(s->end, end_n);
    s->barrier = vg_slice_str(s->barrier_text);
    return end_n ? 0 : VIGIL_E_INVALID;
}

void vg_etcd_space_done(struct vg_etcd_space *s)
{
    vg_free(s->root);
    vg_free(s->prefix);
    vg_free(s->end);
    vg_free(s->barrier_text);
    *s = (struct vg_etcd_space){0};
}

static void set(struct vg_etcd_key *k, struct vg_slice a, struct vg_slice b)
{
    b.n = VG_MIN(b.n, sizeof k->bytes - a.n);
    memcpy(k->bytes, a.p, a.n);
    if (b.n)
        memcpy(k->bytes + a.n, b.p, b.n);
    k->n = a.n + b.n;
}

static struct vg_slice after(struct vg_slice s, size_t n)
{
    return vg_slice(s.p + n, s.n - n);
}

int vg_etcd_key_make(const struct vg_etcd_space *s, struct vg_slice key, struct vg_etcd_key *ret)
{
    if (!vg_slice_has_prefix(key, s->root_s) || key.n - s->root_s.n > VG_STORAGE_KEY_MAX)
        return VIGIL_E_KEY_INVALID;
    set(ret, s->prefix_s, after(key, s->root_s.n));
    return 0;
}

/* A bound may be longer than any key: what is cut off then makes no difference. */
static void bound(const struct vg_etcd_space *s, struct vg_slice k, struct vg_etcd_key *ret)
{
    if (vg_slice_has_prefix(k, s->root_s))
        set(ret, s->prefix_s, after(k, s->root_s.n));
    else if (vg_slice_cmp(k, s->root_s) < 0)
        set(ret, s->prefix_s, vg_slice(NULL, 0));
    else
        set(ret, s->end_s, vg_slice(NULL, 0));
}

bool vg_etcd_key_span(const struct vg_etcd_space *s, const struct vg_keys *keys,
                      struct vg_etcd_key *ret_start, struct vg_etcd_key *ret_end)
{
    ret_end->n = 0;
    if (keys->kind == VG_KEYS_ONE)
        return vg_etcd_key_make(s, keys->start, ret_start) == 0;
    bound(s, keys->start, ret_start);
    if (keys->kind == VG_KEYS_SPAN)
        bound(s, keys->end, ret_end);
    else
        set(ret_end, s->end_s, vg_slice(NULL, 0));
    return vg_slice_cmp(vg_etcd_key_slice(ret_start), vg_etcd_key_slice(ret_end)) < 0;
}

int vg_etcd_key_read(const struct vg_etcd_space *s, struct vg_slice stored, struct vg_etcd_key *ret)
{
    if (!vg_slice_has_prefix(stored, s->prefix_s) || stored.n == s->prefix_s.n ||
        s->root_s.n + stored.n - s->prefix_s.n > VG_STORAGE_KEY_MAX)
        return VIGIL_E_KEY_INVALID;
    set(ret, s->root_s, after(stored, s->prefix_s.n));
    return 0;
}
