/* nodes.c - what nodes are, and where. */
#include "cell.h"

#define ROLE_PREFIX "node-role.kubernetes.io/"

/* The last of several conditions of a type counts. */
void vg_cell_node_status(struct vg_cell *c)
{
    size_t n;
    const struct vg_json *ready = NULL;
    const struct vg_json *items = vg_cell_items(c->v, "status.conditions", &n);
    for (size_t i = 0; i < n; i++)
        if (vg_cell_is(&items[i], "type", "Ready"))
            ready = &items[i];
    vg_cell_puts(c, !ready                                ? "Unknown"
                    : vg_cell_is(ready, "status", "True") ? "Ready"
                                                          : "NotReady");
    if (vg_json_is_true(vg_cell_at(c->v, "spec.unschedulable")))
        vg_cell_puts(c, ",SchedulingDisabled");
}

void vg_cell_node_roles(struct vg_cell *c)
{
    static const struct vg_slice prefix = VG_SLICE_LIT(ROLE_PREFIX);
    const struct vg_json *labels = vg_cell_at(c->v, "metadata.labels");
    struct vg_texts t = {0};
    for (size_t i = 0; vg_json_is(labels, VG_JSON_OBJECT) && i < labels->n; i++) {
        struct vg_slice key = vg_json_key(&labels->members[i]);
        struct vg_slice value = vg_json_text(&labels->members[i].value);
        if (vg_slice_has_prefix(key, prefix) && key.n > prefix.n)
            vg_texts_add(c, &t, vg_slice(key.p + prefix.n, key.n - prefix.n));
        else if (vg_slice_eq(key, VG_SLICE_LIT("kubernetes.io/role")) && value.n)
            vg_texts_add(c, &t, value);
    }
    vg_texts_unique(&t);
    for (size_t i = 0; i < t.n; i++)
        vg_cell_join(c, ",", t.v[i]);
    if (t.n == 0)
        vg_cell_puts(c, "<none>");
}

static void put_address(struct vg_cell *c, const char *type)
{
    size_t n;
    const struct vg_json *items = vg_cell_items(c->v, "status.addresses", &n);
    for (size_t i = 0; i < n; i++) {
        if (!vg_cell_is(&items[i], "type", type))
            continue;
        vg_cell_put(c, vg_cell_text(&items[i], "address"));
        return;
    }
    vg_cell_puts(c, "<none>");
}

void vg_cell_node_internal_ip(struct vg_cell *c)
{
    put_address(c, "InternalIP");
}

void vg_cell_node_external_ip(struct vg_cell *c)
{
    put_address(c, "ExternalIP");
}

void vg_cell_node_kernel(struct vg_cell *c)
{
    struct vg_slice version = vg_cell_text(c->v, "status.nodeInfo.kernelVersion");
    struct vg_slice arch = vg_cell_text(c->v, "status.nodeInfo.architecture");
    vg_cell_put(c, version.n ? version : VG_SLICE_LIT("<unknown>"));
    if (arch.n)
        vg_cell_printf(c, " (%.*s)", VG_SLICE_ARG(arch));
}
