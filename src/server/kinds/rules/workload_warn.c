/* workload_warn.c - what kinds that own pods are taken with, and warned of; see workload.h. */
#include "base/buf.h"
#include "pod.h"
#include "workload.h"
#include "json/equal.h"

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

bool vg_is_new(const struct vg_at *obj, const struct vg_json *old, const char *name)
{
    return !old || vg_json_equal(vg_json_get_str(obj->v, name), vg_json_get_str(old, name)) != 1;
}

void vg_warn_template(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), template = vg_at(&spec, "template");
    if (vg_is_new(obj, old, "spec"))
        vg_warn_pod_template(c, &template);
}

void vg_warn_owner(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    vg_warn_name(c, obj, old);
    vg_warn_template(c, obj, old);
}

const char *vg_node_label_gone(struct vg_slice key)
{
    static const char *const gone[][2] = {
        {"beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"},
        {"beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"},
        {"failure-domain.beta.kubernetes.io/region",
         "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead"},
        {"failure-domain.beta.kubernetes.io/zone",
         "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"},
        {"beta.kubernetes.io/instance-type",
         "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"},
        {"app.kubernetes.io/created-by", "deprecated since v1.9"},
        {"scheduler.alpha.kubernetes.io/preferAvoidPods",
         "deprecated since v1.22; use Taints and Tolerations instead"},
        {"node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(gone); i++)
        if (vg_slice_eq(key, vg_slice_str(gone[i][0])))
            return gone[i][1];
    return NULL;
}

void vg_warn_node_labels(struct vg_check *c, const struct vg_at *map)
{
    if (map->v)
        VG_JSON_FOREACH_MEMBER (m, map->v)
            if (vg_node_label_gone(vg_json_key(m)))
                vg_caution_at(c, map, "%s", vg_node_label_gone(vg_json_key(m)));
}
