/* parse_left.c - containers that the parser leaves as text. */
#include "parse_int.h"
#include "skip.h"

/* From the inside out: the topmost member of each open object is the one on the way. */
bool vg_json_is_left(const struct vg_json_parser *ps)
{
    uint32_t left = ps->left->n, top = ps->members_n;
    for (uint32_t d = ps->depth; d > 0; d--) {
        const struct vg_json_frame *f = &ps->frames[d];
        if (f->is_object &&
            (left == 0 || !vg_slice_eq(vg_json_key(&ps->members[top - 1]), ps->left->keys[--left])))
            return false;
        top = f->members_base;
    }
    return left == 0;
}

const char *vg_json_leave(struct vg_json_parser *ps, const char *p, struct vg_json *slot)
{
    const char *q = vg_json_skip_container(p, ps->end);
    if (!q)
        return vg_json_parse_fail(ps, VIGIL_E_JSON_SYNTAX, p, "expected the end of a container");
    *slot = (struct vg_json){.type = VG_JSON_NUMBER,
                             .n = (uint32_t)(q - p),
                             .text = p,
                             .begin = (uint32_t)(p - ps->base),
                             .end = (uint32_t)(q - ps->base)};
    return q;
}
