/* tree.c - reading and changing trees.
 * Containers made by hand grow by doubling in the arena; room_log2 remembers their room. A parsed
 * container is exactly full (room_log2 == 0), so its first change moves its children once. */
#include <errno.h>
#include <stdio.h>

#include "bytes.h"
#include "json.h"

const char *vg_json_type_name(enum vg_json_type type)
{
    static const char *const names[] = {
        [VG_JSON_NULL] = "null",     [VG_JSON_BOOL] = "boolean", [VG_JSON_NUMBER] = "number",
        [VG_JSON_STRING] = "string", [VG_JSON_ARRAY] = "array",  [VG_JSON_OBJECT] = "object",
    };
    return (size_t)type < VG_ARRAY_LEN(names) ? names[type] : "unknown";
}

struct vg_json_member *vg_json_member(const struct vg_json *obj, struct vg_slice key)
{
    if (!vg_json_is(obj, VG_JSON_OBJECT))
        return NULL;
    for (uint32_t i = 0; i < obj->n; i++) {
        struct vg_json_member *m = &obj->members[i];
        if (m->key_n != key.n)
            continue;
        if (vg_json_same_bytes(m->key, key.p, key.n))
            return m;
    }
    return NULL;
}

struct vg_json *vg_json_get(const struct vg_json *obj, struct vg_slice key)
{
    struct vg_json_member *m = vg_json_member(obj, key);
    return m ? &m->value : NULL;
}

struct vg_json *vg_json_at(const struct vg_json *arr, size_t i)
{
    return vg_json_is(arr, VG_JSON_ARRAY) && i < arr->n ? &arr->items[i] : NULL;
}

/* ---- making ---- */

int vg_json_make_string(struct vg_arena *a, struct vg_slice s, struct vg_json *ret)
{
    if (s.n > UINT32_MAX)
        return VIGIL_E_TOO_LARGE;
    char *copy = vg_arena_copy(a, s.p, s.n);
    if (!copy)
        return -ENOMEM;
    *ret = vg_json_string_ref(vg_slice(copy, s.n));
    return 0;
}

/* ---- growing ---- */

static size_t room_of(const struct vg_json *v)
{
    return v->room_log2 ? (size_t)1 << v->room_log2 : v->n;
}

/* Room for one more child of `size` bytes. */
static int make_room(struct vg_arena *a, struct vg_json *v, size_t size)
{
    if (v->n < room_of(v))
        return 0;
    uint8_t log2 = 2;
    while (((size_t)1 << log2) <= v->n)
        log2++;
    if (log2 >= 32)
        return -ENOMEM; /* counts are 32 bits wide */
    void *p = vg_arena_alloc(a, size << log2, _Alignof(struct vg_json_member));
    if (!p)
        return -ENOMEM;
    if (v->n)
        memcpy(p, v->items, v->n * size);
    v->items = p;
    v->room_log2 = log2;
    return 0;
}

int vg_json_array_insert(struct vg_arena *a, struct vg_json *arr, size_t i, struct vg_json v)
{
    if (!vg_json_is(arr, VG_JSON_ARRAY))
        return VIGIL_E_JSON_TYPE;
    if (i > arr->n)
        return VIGIL_E_INVALID;
    int r = make_room(a, arr, sizeof v);
    if (r < 0)
        return r;
    memmove(&arr->items[i + 1], &arr->items[i], (arr->n - i) * sizeof v);
    arr->items[i] = v;
    arr->n++;
    return 0;
}

int vg_json_array_push(struct vg_arena *a, struct vg_json *arr, struct vg_json v)
{
    return vg_json_array_insert(a, arr, arr->n, v);
}

/* A removal leaves room that room_log2 == 0 cannot tell of; that room is lost until the next
 * growth, which is harmless. */
bool vg_json_array_remove(struct vg_json *arr, size_t i)
{
    if (!vg_json_is(arr, VG_JSON_ARRAY) || i >= arr->n)
        return false;
    memmove(&arr->items[i], &arr->items[i + 1], (arr->n - i - 1) * sizeof *arr->items);
    arr->n--;
    return true;
}

int vg_json_object_add(struct vg_arena *a, struct vg_json *obj, struct vg_slice key,
                       struct vg_json v)
{
    if (!vg_json_is(obj, VG_JSON_OBJECT))
        return VIGIL_E_JSON_TYPE;
    if (key.n > UINT32_MAX)
        return VIGIL_E_TOO_LARGE;
    int r = make_room(a, obj, sizeof(struct vg_json_member));
    if (r < 0)
        return r;
    obj->members[obj->n++] =
        (struct vg_json_member){.key = key.n ? key.p : "", .key_n = (uint32_t)key.n, .value = v};
    return 0;
}

int vg_json_object_set(struct vg_arena *a, struct vg_json *obj, struct vg_slice key,
                       struct vg_json v)
{
    struct vg_json_member *m = vg_json_member(obj, key);
    if (!m)
        return vg_json_object_add(a, obj, key, v);
    m->value = v;
    return 0;
}

bool vg_json_object_remove(struct vg_json *obj, struct vg_slice key)
{
    struct vg_json_member *m = vg_json_member(obj, key);
    if (!m)
        return false;
    size_t after = (size_t)(obj->members + obj->n - m) - 1;
    memmove(m, m + 1, after * sizeof *m);
    obj->n--;
    return true;
}

/* ---- copying ---- */

static int own_text(struct vg_arena *a, const char **text, size_t n)
{
    char *copy = vg_arena_copy(a, *text, n);
    if (!copy)
        return -ENOMEM;
    *text = copy;
    return 0;
}

static int own_members(struct vg_arena *a, struct vg_json *v)
{
    size_t n = v->n;
    struct vg_json_member *copy = vg_arena_array(a, struct vg_json_member, n);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, v->members, n * sizeof *copy);
    v->members = copy;
    for (size_t i = 0; i < n; i++) {
        int r = own_text(a, &copy[i].key, copy[i].key_n);
        if (r < 0)
            return r;
    }
    return 0;
}

static int own_items(struct vg_arena *a, struct vg_json *v)
{
    size_t n = v->n;
    struct vg_json *copy = vg_arena_array(a, struct vg_json, n);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, v->items, n * sizeof *copy);
    v->items = copy;
    return 0;
}

/* v is a shallow copy: give it texts and children of its own. */
static int own(struct vg_arena *a, struct vg_json *v)
{
    if (v->type == VG_JSON_STRING || v->type == VG_JSON_NUMBER)
        return own_text(a, &v->text, v->n);
    if (v->type != VG_JSON_OBJECT && v->type != VG_JSON_ARRAY)
        return 0;
    v->room_log2 = 0;
    if (v->n == 0) {
        v->items = NULL;
        return 0;
    }
    return v->type == VG_JSON_OBJECT ? own_members(a, v) : own_items(a, v);
}

/* Walks the copy while making it: on entering a node its children are still the original's, and are
 * replaced before the walk goes on to them. */
int vg_json_clone(struct vg_arena *a, const struct vg_json *v, struct vg_json *ret)
{
    struct vg_json copy = *v;
    VG_AUTO(json_walk) w;
    vg_json_walk_init(&w, &copy);
    int r;
    while ((r = vg_json_walk_next(&w)) > 0) {
        r = w.leaving ? 0 : own(a, w.node);
        if (r < 0)
            return r;
    }
    if (r == 0)
        *ret = copy;
    return r;
}
