/* names.c - see names.h. */
#include "names.h"

void vg_names_done(struct vg_names *s)
{
    vg_map_done(&s->many);
    s->n = 0;
}

/* Of the ends of a text, where names of a list differ. */
static uint8_t tag_of(struct vg_slice text)
{
    if (text.n < 2)
        return text.n ? (uint8_t)text.p[0] : 0;
    return (uint8_t)(text.n + 3u * (uint8_t)text.p[text.n - 1] + 37u * (uint8_t)text.p[text.n - 2] +
                     101u * (uint8_t)text.p[0]);
}

/* Where it is among the few, or NAMES_FEW. */
static uint32_t find_few(const struct vg_names *s, struct vg_slice text)
{
    uint8_t tag = tag_of(text);
    const uint8_t *end = s->tags + s->n;
    for (const uint8_t *t = s->tags; t < end; t++) {
        t = memchr(t, tag, (size_t)(end - t));
        if (!t)
            break;
        if (vg_slice_eq(s->few[t - s->tags].text, text))
            return (uint32_t)(t - s->tags);
    }
    return VG_NAMES_FEW;
}

bool vg_names_find(const struct vg_names *s, struct vg_slice text, const struct vg_json **ret)
{
    uint32_t i = find_few(s, text);
    const struct vg_map_entry *e =
        i == VG_NAMES_FEW && vg_map_count(&s->many) ? vg_map_find(&s->many, text) : NULL;
    if (ret && i < VG_NAMES_FEW)
        *ret = s->few[i].v;
    else if (ret && e)
        *ret = e->value;
    return i < VG_NAMES_FEW || e;
}

bool vg_names_add(struct vg_check *c, struct vg_names *s, struct vg_slice text,
                  const struct vg_json *v)
{
    if (vg_names_find(s, text, NULL))
        return false;
    if (s->n < VG_NAMES_FEW) {
        s->tags[s->n] = tag_of(text);
        s->few[s->n].text = text;
        s->few[s->n++].v = v;
        return true;
    }
    /* Zeroed memory is an empty map that borrows its keys. */
    c->errors->failed |= vg_map_put(&s->many, text, (void *)(uintptr_t)v, NULL) < 0;
    return true;
}
