/* merge.c - a new object out of an old one and a merge patch. */
#include "base/arena.h"
#include "base/buf.h"
#include "object_int.h"
#include "json/patch.h"
#include "json/write.h"

static int merge(struct vg_slice json, struct vg_slice patch, struct vg_buf *out,
                 struct vg_status *status)
{
    VG_AUTO(arena) a = {0};
    struct vg_json *doc, *change, merged;
    int r = vg_json_parse(&a, json, NULL, &doc, status);
    if (r == 0)
        r = vg_json_parse(&a, patch, NULL, &change, status);
    if (r == 0)
        r = vg_json_merge_apply(&a, doc, change, &merged, status);
    if (r == 0)
        r = vg_json_write(out, &merged, 0);
    return r;
}

const struct vigil_object *vigil_object_merge(const struct vigil_object *o,
                                              struct vigil_text merge_patch,
                                              struct vigil_error *err)
{
    VG_AUTO(buf) out = {.max = VG_OBJECT_BYTES_MAX};
    struct vg_status status = {.message = ""};
    int r = merge(vg_slice_of(vigil_object_json(o)), vg_slice_of(merge_patch), &out, &status);
    if (r < 0) {
        vg_error_set(err, r, "%s", status.message[0] ? status.message : vg_err_text(r));
        return NULL;
    }
    return vigil_object_parse((struct vigil_text){out.p, out.n}, err);
}
