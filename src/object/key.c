/* key.c - see key.h. */
#include "key.h"

static bool is_part(struct vg_slice s)
{
    if (s.n == 0 || vg_slice_eq(s, VG_SLICE_LIT(".")) || vg_slice_eq(s, VG_SLICE_LIT("..")))
        return false;
    return !memchr(s.p, '/', s.n) && !memchr(s.p, 0, s.n);
}

static bool is_prefix(struct vg_slice prefix)
{
    return prefix.n > 0 && prefix.p[prefix.n - 1] == '/';
}

/* Callers know that it fits. */
static void add(struct vg_obj_key *k, struct vg_slice s)
{
    if (s.n)
        memcpy(k->bytes + k->n, s.p, s.n);
    k->n += (uint32_t)s.n;
}

/* Slices are shorter than half of memory, so no sum of three wraps. */
static bool fits(struct vg_slice a, struct vg_slice b, struct vg_slice c)
{
    return a.n <= VG_OBJ_KEY_MAX && b.n <= VG_OBJ_KEY_MAX && c.n <= VG_OBJ_KEY_MAX &&
           a.n + b.n + c.n + (b.n > 0) <= VG_OBJ_KEY_MAX;
}

/* prefix + [ns + '/'] + rest. */
static void join(struct vg_slice prefix, struct vg_slice ns, struct vg_slice rest,
                 struct vg_obj_key *ret)
{
    ret->n = 0;
    add(ret, prefix);
    add(ret, ns);
    if (ns.n)
        add(ret, VG_SLICE_LIT("/"));
    add(ret, rest);
}

int vg_obj_key_make(struct vg_slice prefix, struct vg_slice ns, struct vg_slice name,
                    struct vg_obj_key *ret)
{
    if (!fits(prefix, ns, name) || !is_prefix(prefix) || !is_part(name) || (ns.n && !is_part(ns)))
        return VIGIL_E_KEY_INVALID;
    join(prefix, ns, name, ret);
    return 0;
}

int vg_obj_key_split(struct vg_slice prefix, bool namespaced, struct vg_slice key,
                     struct vg_slice *ret_ns, struct vg_slice *ret_name)
{
    if (!is_prefix(prefix) || key.n > VG_OBJ_KEY_MAX || !vg_slice_has_prefix(key, prefix))
        return VIGIL_E_KEY_INVALID;
    struct vg_slice ns = vg_slice(key.p + prefix.n, 0);
    struct vg_slice name = vg_slice(key.p + prefix.n, key.n - prefix.n);
    const char *slash = namespaced && name.n ? memchr(name.p, '/', name.n) : NULL;
    if (slash) {
        ns.n = (size_t)(slash - ns.p);
        name = vg_slice(slash + 1, name.n - ns.n - 1);
    }
    if (!is_part(name) || (namespaced && !is_part(ns)))
        return VIGIL_E_KEY_INVALID;
    *ret_ns = ns;
    *ret_name = name;
    return 0;
}

int vg_obj_key_prefix_end(struct vg_slice prefix, struct vg_obj_key *ret)
{
    if (prefix.n > VG_OBJ_KEY_MAX)
        return VIGIL_E_KEY_INVALID;
    while (prefix.n && (unsigned char)prefix.p[prefix.n - 1] == 0xff)
        prefix.n--;
    if (prefix.n == 0)
        return VIGIL_E_KEY_INVALID;
    ret->n = 0;
    add(ret, prefix);
    ret->bytes[ret->n - 1] = (char)((unsigned char)ret->bytes[ret->n - 1] + 1);
    return 0;
}

int vg_obj_key_range(struct vg_slice prefix, struct vg_slice ns, struct vg_obj_key_range *ret)
{
    struct vg_slice nothing = vg_slice("", 0);
    if (!fits(prefix, ns, nothing) || !is_prefix(prefix) || (ns.n && !is_part(ns)))
        return VIGIL_E_KEY_INVALID;
    join(prefix, ns, nothing, &ret->start);
    return vg_obj_key_prefix_end(vg_obj_key_slice(&ret->start), &ret->end);
}

int vg_obj_key_next(struct vg_slice last, struct vg_obj_key *ret)
{
    if (last.n > VG_OBJ_KEY_MAX)
        return VIGIL_E_KEY_INVALID;
    ret->n = 0;
    add(ret, last);
    add(ret, vg_slice("", 1));
    return 0;
}

struct vg_slice vg_obj_key_to_continue(struct vg_slice prefix, struct vg_slice start)
{
    if (!vg_slice_has_prefix(start, prefix))
        return vg_slice("", 0);
    return vg_slice(start.p + prefix.n, start.n - prefix.n);
}

/* Every step but the last is a part; the last may end with the 0 byte of vg_obj_key_next. */
static bool are_steps(struct vg_slice rest)
{
    if (rest.n && rest.p[rest.n - 1] == 0)
        rest.n--;
    for (;;) {
        const char *slash = rest.n ? memchr(rest.p, '/', rest.n) : NULL;
        struct vg_slice step = vg_slice(rest.p, slash ? (size_t)(slash - rest.p) : rest.n);
        if (!is_part(step))
            return false;
        if (!slash)
            return true;
        rest = vg_slice(slash + 1, rest.n - step.n - 1);
    }
}

int vg_obj_key_from_continue(struct vg_slice prefix, struct vg_slice rest, struct vg_obj_key *ret)
{
    if (!is_prefix(prefix) || prefix.n > VG_OBJ_KEY_MAX || rest.n > VG_OBJ_KEY_MAX + 1 - prefix.n)
        return VIGIL_E_INVALID;
    if (!are_steps(rest))
        return VIGIL_E_INVALID;
    join(prefix, vg_slice("", 0), rest, ret);
    return 0;
}
