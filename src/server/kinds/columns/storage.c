/* storage.c - volumes, claims and their classes. */
#include "cell.h"

/* Of a volume and of a claim. */
void vg_cell_volume_phase(struct vg_cell *c)
{
    if (vg_cell_is_set(c->v, "metadata.deletionTimestamp"))
        vg_cell_puts(c, "Terminating");
    else
        vg_cell_put(c, vg_cell_text(c->v, "status.phase"));
}

static void put_modes(struct vg_cell *c, const char *dotted)
{
    static const char *const modes[][2] = {{"ReadWriteOnce", "RWO"},
                                           {"ReadOnlyMany", "ROX"},
                                           {"ReadWriteMany", "RWX"},
                                           {"ReadWriteOncePod", "RWOP"}};
    size_t n;
    const struct vg_json *items = vg_cell_items(c->v, dotted, &n);
    for (size_t m = 0; m < VG_ARRAY_LEN(modes); m++)
        for (size_t i = 0; i < n; i++) {
            if (!vg_slice_eq(vg_json_text(&items[i]), vg_slice_str(modes[m][0])))
                continue;
            vg_cell_join(c, ",", vg_slice_str(modes[m][1]));
            break;
        }
}

void vg_cell_volume_modes(struct vg_cell *c)
{
    put_modes(c, "spec.accessModes");
}

/* The annotation is what there was before the field. */
void vg_cell_volume_class(struct vg_cell *c)
{
    static const char annotation[] = "volume.beta.kubernetes.io/storage-class";
    const struct vg_json *map = vg_cell_at(c->v, "metadata.annotations");
    vg_cell_put(c, vg_json_get_str(map, annotation) ? vg_cell_annotation(c->v, annotation)
                                                    : vg_cell_text(c->v, "spec.storageClassName"));
}

/* What a claim has is known once it has a volume. */
void vg_cell_claim_capacity(struct vg_cell *c)
{
    if (vg_cell_text(c->v, "spec.volumeName").n == 0)
        return;
    struct vg_slice size = vg_cell_text(c->v, "status.capacity.storage");
    vg_cell_put(c, size.n ? size : VG_SLICE_LIT("0"));
}

void vg_cell_claim_modes(struct vg_cell *c)
{
    if (vg_cell_text(c->v, "spec.volumeName").n)
        put_modes(c, "status.accessModes");
}

/* ---- classes ---- */

static void put_class_name(struct vg_cell *c, bool is_default)
{
    vg_cell_put(c, vg_cell_text(c->v, "metadata.name"));
    if (is_default)
        vg_cell_puts(c, " (default)");
}

static bool is_annotated(const struct vg_cell *c, const char *name)
{
    return vg_slice_eq(vg_cell_annotation(c->v, name), VG_SLICE_LIT("true"));
}

void vg_cell_storage_class_name(struct vg_cell *c)
{
    put_class_name(c, is_annotated(c, "storageclass.kubernetes.io/is-default-class") ||
                          is_annotated(c, "storageclass.beta.kubernetes.io/is-default-class"));
}

void vg_cell_ingress_class_name(struct vg_cell *c)
{
    put_class_name(c, is_annotated(c, "ingressclass.kubernetes.io/is-default-class"));
}
