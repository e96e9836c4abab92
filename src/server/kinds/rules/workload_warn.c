/* workload_warn.c - what kinds that own pods are taken with, and warned of; see workload.h. */
#include "base/buf.h"
#include "workload.h"

void vg_warn_name(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at meta = vg_at(obj, "metadata"), name = vg_at(&meta, "name");
    struct vg_name_reasons why = {0};
    if (old || vg_validate_dns1123_label(vg_at_text(&name), VG_NAME_CHARACTERS, &why))
        return;
    VG_AUTO(buf) text = {0};
    int r = 0;
    for (uint32_t i = 0; i < why.n && r == 0; i++)
        r = vg_buf_printf(&text, "%s%s", i ? " " : "", why.v[i]);
    if (r < 0)
        c->errors->failed = true;
    else
        vg_caution_at(c, &name,
                      "this is used in Pod names and hostnames, which can result in surprising "
                      "behavior; a DNS label is recommended: [%.*s]",
                      VG_SLICE_ARG(vg_buf_slice(&text)));
}
