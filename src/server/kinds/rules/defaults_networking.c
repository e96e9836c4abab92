/* defaults_networking.c - defaults of networking.k8s.io that depend on other fields; see
 * defaults.h. */
#include "defaults.h"

/* A policy is about what comes in, and about what goes out when it says anything of that. */
int vg_default_network_policy_spec(struct vg_arena *a, struct vg_json *v)
{
    const struct vg_json *given = vg_json_get_str(v, "policyTypes");
    const struct vg_json *egress = vg_json_get_str(v, "egress");
    struct vg_json types = vg_json_array();
    if (given && given->n)
        return 0;
    int err = vg_json_array_push(a, &types, vg_json_string_ref(VG_SLICE_LIT("Ingress")));
    if (err == 0 && egress && egress->n)
        err = vg_json_array_push(a, &types, vg_json_string_ref(VG_SLICE_LIT("Egress")));
    return err < 0 ? err : vg_json_object_set(a, v, VG_SLICE_LIT("policyTypes"), types);
}
