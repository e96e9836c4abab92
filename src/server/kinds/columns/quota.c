/* quota.c - resource quotas: what is used of what may be, requests and limits apart. */
#include "cell.h"

static bool is_limit(struct vg_slice name)
{
    return vg_slice_has_prefix(name, VG_SLICE_LIT("limits."));
}

static struct vg_slice amount(const struct vg_json *map, struct vg_slice name)
{
    struct vg_slice s = vg_json_text(vg_json_get(map, name));
    return s.n ? s : VG_SLICE_LIT("0");
}

static void put(struct vg_cell *c, bool limits)
{
    const struct vg_json *hard = vg_cell_at(c->v, "status.hard");
    const struct vg_json *used = vg_cell_at(c->v, "status.used");
    struct vg_texts names = {0};
    for (size_t i = 0; vg_json_is(hard, VG_JSON_OBJECT) && i < hard->n; i++)
        if (is_limit(vg_json_key(&hard->members[i])) == limits)
            vg_texts_add(c, &names, vg_json_key(&hard->members[i]));
    vg_texts_sort(&names);
    for (size_t i = 0; i < VG_MIN(names.n, VG_CELL_LOOK_MAX); i++) {
        struct vg_slice now = amount(used, names.v[i]), most = amount(hard, names.v[i]);
        vg_cell_printf(c, "%s%.*s: %.*s/%.*s", i ? ", " : "", VG_SLICE_ARG(names.v[i]),
                       VG_SLICE_ARG(now), VG_SLICE_ARG(most));
    }
}

void vg_cell_quota_requests(struct vg_cell *c)
{
    put(c, false);
}

void vg_cell_quota_limits(struct vg_cell *c)
{
    put(c, true);
}
