/* names.c - see names.h. */
#include "names.h"

void vg_names_done(struct vg_names *s)
{
    vg_map_done(&s->many);
    s->n = 0;
}

bool vg_names_find(const struct vg_names *s, struct vg_slice text, const struct vg_json **ret)
{
    const struct vg_json *v = NULL;
    bool is_there = false;
    if (vg_map_count(&s->many)) {
        const struct vg_map_entry *e = vg_map_find(&s->many, text);
        is_there = e != NULL;
        v = e ? e->value : NULL;
    }
    for (uint32_t i = 0; i < s->n && !is_there && vg_map_count(&s->many) == 0; i++) {
        is_there = vg_slice_eq(s->few[i].text, text);
        v = s->few[i].v;
    }
    if (is_there && ret)
        *ret = v;
    return is_there;
}

static int put(struct vg_names *s, struct vg_slice text, const struct vg_json *v)
{
    return vg_map_put(&s->many, text, (void *)(uintptr_t)v, NULL);
}

bool vg_names_add(struct vg_check *c, struct vg_names *s, struct vg_slice text,
                  const struct vg_json *v)
{
    int err = 0;
    if (vg_names_find(s, text, NULL))
        return false;
    if (s->n < VG_NAMES_FEW) {
        s->few[s->n].text = text;
        s->few[s->n++].v = v;
        return true;
    }
    if (vg_map_count(&s->many) == 0) {
        vg_map_init(&s->many, VG_MAP_BORROWS_KEYS);
        for (uint32_t i = 0; i < s->n && err >= 0; i++)
            err = put(s, s->few[i].text, s->few[i].v);
    }
    if (err >= 0)
        err = put(s, text, v);
    c->errors->failed |= err < 0;
    return true;
}
