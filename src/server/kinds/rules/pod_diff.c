/* pod_diff.c - what an update of a pod changed that it must not: the old spec beside the new one,
 * as the original holds them. What may change is set back before they are compared. And templates,
 * as it shows them. */
#include "go_struct.h"
#include "pod_int.h"
#include "json/equal.h"

static int set_images_back(struct vg_arena *a, struct vg_json *now, const struct vg_json *old,
                           const char *list)
{
    struct vg_json *containers = vg_json_get_str(now, list);
    const struct vg_json *before = vg_json_get_str(old, list);
    int err = 0;
    for (size_t i = 0; err == 0 && vg_json_at(containers, i) && vg_json_at(before, i); i++)
        err = vg_json_take_member(a, vg_json_at(containers, i), vg_json_at(before, i), "image");
    return err;
}

/* Pods that wait at a gate may get another node affinity, and nothing else beside it. */
static int set_affinity_back(struct vg_arena *a, struct vg_json *now, const struct vg_json *old)
{
    struct vg_json *affinity = vg_json_get_str(now, "affinity");
    const struct vg_json *before = vg_json_get_str(old, "affinity");
    const struct vg_json *nodes = vg_json_get_str(before, "nodeAffinity");
    if (!affinity && !nodes)
        return 0;
    if (!before && !vg_json_get_str(affinity, "podAffinity") &&
        !vg_json_get_str(affinity, "podAntiAffinity")) {
        (void)vg_json_object_remove(now, VG_SLICE_LIT("affinity"));
        return 0;
    }
    struct vg_json own = affinity ? *affinity : vg_json_object();
    int err = vg_json_take_member(a, &own, before, "nodeAffinity");
    return err < 0 ? err : vg_json_object_set(a, now, VG_SLICE_LIT("affinity"), own);
}

static int set_all_back(struct vg_arena *a, struct vg_json *now, const struct vg_json *old,
                        bool is_gated)
{
    struct vg_at grace = {.v = vg_json_get_str(now, "terminationGracePeriodSeconds")};
    struct vg_at before = {.v = vg_json_get_str(old, "terminationGracePeriodSeconds")};
    int err = set_images_back(a, now, old, "containers");
    if (err == 0)
        err = set_images_back(a, now, old, "initContainers");
    if (err == 0)
        err = vg_json_take_member(a, now, old, "activeDeadlineSeconds");
    if (err == 0)
        err = vg_json_take_member(a, now, old, "schedulingGates");
    if (err == 0)
        err = vg_json_take_member(a, now, old, "tolerations");
    if (err == 0 && vg_at_int(&before) < 0 && vg_at_int(&grace) == 1)
        err = vg_json_take_member(a, now, old, "terminationGracePeriodSeconds");
    if (err == 0 && is_gated)
        err = vg_json_take_member(a, now, old, "nodeSelector");
    return err < 0 || !is_gated ? err : set_affinity_back(a, now, old);
}

/* The original keeps settings of the node's namespaces with the security context. */
static int lend(struct vg_arena *a, struct vg_json *spec)
{
    static const char *const lent[] = {"hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace",
                                       "hostUsers"};
    struct vg_json *security = vg_json_get_str(spec, "securityContext");
    int err = 0;
    for (size_t i = 0; security && i < VG_ARRAY_LEN(lent) && err == 0; i++)
        err = vg_json_take_member(a, security, spec, lent[i]);
    return err;
}

struct vg_slice vg_pod_diff(struct vg_check *c, const struct vg_json *now,
                            const struct vg_json *old, bool is_gated)
{
    struct vg_json a, b;
    int err = vg_json_clone(c->arena, old, &a);
    if (err == 0)
        err = vg_json_clone(c->arena, now, &b);
    if (err == 0)
        err = set_all_back(c->arena, &b, old, is_gated);
    if (err == 0)
        err = lend(c->arena, &a);
    if (err == 0)
        err = lend(c->arena, &b);
    if (err < 0) {
        c->errors->failed = true;
        return VG_SLICE_LIT("");
    }
    return vg_go_diff(c, "", "PodSpec", &a, &b);
}

/* A template or the spec of pods. */
static bool check_stays(struct vg_check *c, const struct vg_at *at, const struct vg_json *old,
                        const char *type, bool is_spec)
{
    struct vg_json shown;
    int same = at->v && old ? vg_json_equal(at->v, old) : at->v == old;
    if (same > 0)
        return true;
    int err = same < 0 ? same : 0;
    if (err == 0 && at->v)
        err = vg_json_clone(c->arena, at->v, &shown);
    if (err == 0 && at->v)
        err = lend(c->arena, is_spec ? &shown : vg_json_get_str(&shown, "spec"));
    if (err < 0)
        c->errors->failed = true;
    else
        vg_bad_value(c, at, vg_go_struct_of(c, "", type, at->v ? &shown : NULL),
                     "field is immutable");
    return false;
}

bool vg_check_immutable_template(struct vg_check *c, const struct vg_at *at,
                                 const struct vg_json *old)
{
    return check_stays(c, at, old, "PodTemplateSpec", false);
}

bool vg_check_immutable_pods(struct vg_check *c, const struct vg_at *at, const struct vg_json *old)
{
    return check_stays(c, at, old, "PodSpec", true);
}
