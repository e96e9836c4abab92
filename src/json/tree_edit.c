/* tree_edit.c - see tree_edit.h. All walks are iterative and end at VG_JSON_DEPTH_MAX. */
#include "tree_edit.h"

#include <errno.h>

#include "base/alloc.h"

/* Most documents are less deep than this. */
#define STACK_FIRST_CAP 16u

static uint64_t string_bytes(struct vg_slice s)
{
    uint64_t bytes = 2;
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == '"' || c == '\\' || c == '\b' || c == '\f' || c == '\n' || c == '\r' || c == '\t')
            bytes += 2;
        else
            bytes += c < 0x20 ? 6 : 1; /* \u00xx */
    }
    return bytes;
}

static uint64_t own_bytes(const struct vg_json *v)
{
    switch ((enum vg_json_type)v->type) {
    case VG_JSON_NULL:
        return 4;
    case VG_JSON_BOOL:
        return v->flags & VG_JSON_TRUE ? 4 : 5;
    case VG_JSON_NUMBER:
        return v->n;
    case VG_JSON_STRING:
        return v->flags & VG_JSON_PLAIN ? (uint64_t)v->n + 2 : string_bytes(vg_json_text(v));
    case VG_JSON_ARRAY:
    case VG_JSON_OBJECT:
        return (v->n ? (uint64_t)v->n - 1 : 0) + 2; /* brackets and commas */
    }
    return 0;
}

int vg_json_measure(const struct vg_json *v, struct vg_json_measure *ret)
{
    struct vg_json_measure m = {0};
    VG_AUTO(json_walk) w;
    int r;
    vg_json_walk_init(&w, v);
    while ((r = vg_json_walk_next(&w)) > 0) {
        if (w.leaving)
            continue;
        bool is_container = w.node->type == VG_JSON_ARRAY || w.node->type == VG_JSON_OBJECT;
        m.nodes++;
        m.depth = VG_MAX(m.depth, w.depth + is_container);
        m.bytes += own_bytes(w.node);
        m.bytes += w.member ? string_bytes(vg_json_key(w.member)) + 1 : 0; /* and the colon */
    }
    if (r == 0)
        *ret = m;
    return r;
}

static void forget_offsets(struct vg_json *v)
{
    v->begin = v->end = 0;
    VG_JSON_FOREACH_MEMBER (m, v) {
        m->key_begin = 0;
    }
}

int vg_json_copy(struct vg_arena *a, const struct vg_json *v, struct vg_json *ret)
{
    struct vg_json copy;
    int r = vg_json_clone(a, v, &copy);
    if (r < 0)
        return r;
    VG_AUTO(json_walk) w;
    vg_json_walk_init(&w, &copy);
    while ((r = vg_json_walk_next(&w)) > 0) {
        if (!w.leaving)
            forget_offsets(w.node);
    }
    if (r == 0)
        *ret = copy;
    return r;
}

int vg_json_object_add_key(struct vg_arena *a, struct vg_json *obj, struct vg_slice key,
                           struct vg_json v)
{
    char *copy = vg_arena_copy(a, key.p, key.n);
    if (!copy)
        return -ENOMEM;
    return vg_json_object_add(a, obj, vg_slice(copy, key.n), v);
}

int vg_json_object_add_copy(struct vg_arena *a, struct vg_json *obj, struct vg_slice key,
                            const struct vg_json *v)
{
    struct vg_json copy;
    int r = vg_json_copy(a, v, &copy);
    return r < 0 ? r : vg_json_object_add_key(a, obj, key, copy);
}

int vg_json_stack_room(void **frames, uint32_t *cap, uint32_t n, size_t size)
{
    if (n < *cap)
        return 0;
    if (n >= VG_JSON_DEPTH_MAX)
        return VIGIL_E_JSON_DEPTH;
    uint32_t want = VG_MIN(VG_MAX(*cap * 2, STACK_FIRST_CAP), VG_JSON_DEPTH_MAX);
    void *p = vg_reallocarray(*frames, want, size);
    if (!p)
        return -ENOMEM;
    *frames = p;
    *cap = want;
    return 0;
}
