/* patch_show.c - see patch_show.h.
 * Where the patch went is a tree of objects: a merge patch is one; of a JSON Patch it is made of
 * the paths, each without its last step. */
#include "patch_show.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_key(const void *a, const void *b)
{
    return vg_slice_cmp(vg_json_key((const struct vg_json_member *)a),
                        vg_json_key((const struct vg_json_member *)b));
}

static int show(struct vg_arena *a, const struct vg_json *v, const struct vg_json *went,
                struct vg_json *ret)
{
    *ret = *v;
    if (!vg_json_is(went, VG_JSON_OBJECT) || v->n == 0 || v->type < VG_JSON_ARRAY)
        return 0;
    int err = 0;
    if (v->type == VG_JSON_ARRAY) {
        *ret = vg_json_array();
        for (uint32_t i = 0; i < v->n && err == 0; i++) {
            char index[16];
            struct vg_json item;
            int n = snprintf(index, sizeof index, "%u", i);
            err = show(a, &v->items[i], vg_json_get(went, vg_slice(index, (size_t)n)), &item);
            if (err == 0)
                err = vg_json_array_push(a, ret, item);
        }
        return err;
    }
    struct vg_json_member *members = vg_arena_array(a, struct vg_json_member, v->n);
    if (!members)
        return -ENOMEM;
    memcpy(members, v->members, v->n * sizeof *members);
    qsort(members, v->n, sizeof *members, by_key);
    for (uint32_t i = 0; i < v->n && err == 0; i++) {
        struct vg_json value = members[i].value;
        err = show(a, &value, vg_json_get(went, vg_json_key(&members[i])), &members[i].value);
    }
    *ret = (struct vg_json){.type = VG_JSON_OBJECT, .n = v->n, .members = members};
    return err;
}

/* Add the containers on a path. Escapes are of no account: such a step is not found. */
static int add_path(struct vg_arena *a, struct vg_json *went, struct vg_slice path)
{
    while (path.n && path.p[0] == '/') {
        path = vg_slice(path.p + 1, path.n - 1);
        const char *end = memchr(path.p, '/', path.n);
        if (!end)
            return 0;
        struct vg_slice step = vg_slice(path.p, (size_t)(end - path.p));
        if (!vg_json_get(went, step)) {
            int err = vg_json_object_add(a, went, step, vg_json_object());
            if (err < 0)
                return err;
        }
        went = vg_json_get(went, step);
        path = vg_slice(end, path.n - step.n);
    }
    return 0;
}

int vg_patch_show(struct vg_arena *a, const struct vg_json *result, const struct vg_json *patch,
                  struct vg_json *ret)
{
    struct vg_json went = vg_json_object();
    int err = 0;
    if (patch->type == VG_JSON_OBJECT)
        return show(a, result, patch, ret);
    VG_JSON_FOREACH_ITEM (op, patch) {
        if (err == 0)
            err = add_path(a, &went, vg_json_text(vg_json_get_str(op, "path")));
        if (err == 0)
            err = add_path(a, &went, vg_json_text(vg_json_get_str(op, "from")));
    }
    return err < 0 ? err : show(a, result, &went, ret);
}
