/* pod.c - the rules of pods and pod templates; see pod.h. */
#include "pod.h"

void vg_check_pod_spec(struct vg_check *c, const struct vg_at *spec, const struct vg_json *meta)
{
    (void)meta;
    struct vg_at containers = vg_at(spec, "containers");
    if (vg_at_n(&containers) == 0)
        vg_required(c, &containers, NULL);
}

void vg_check_pod_template(struct vg_check *c, const struct vg_at *at)
{
    const struct vg_json *meta = vg_json_get_str(at->v, "metadata");
    struct vg_at labels = vg_at_of(at, "labels", vg_json_get_str(meta, "labels"));
    struct vg_at annotations = vg_at_of(at, "annotations", vg_json_get_str(meta, "annotations"));
    struct vg_at spec = vg_at(at, "spec");
    vg_check_labels(c, &labels);
    vg_check_annotations(c, &annotations);
    vg_check_pod_spec(c, &spec, NULL);
}
