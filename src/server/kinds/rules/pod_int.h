/* pod_int.h - what the files of the pod's rules share. Thread: one owner. */
#ifndef VG_RULES_POD_INT_H
#define VG_RULES_POD_INT_H

#include "claim.h"
#include "names.h"
#include "pod.h"
#include "resources.h"

/* A spec that is being checked. */
struct vg_pod {
    struct vg_check *c;
    const struct vg_at *spec;
    const struct vg_json *meta; /* of the pod; NULL: of a template */
    struct vg_names volumes;    /* those that are all right */
    struct vg_names claims;     /* names of spec.resourceClaims */
    struct vg_slice os;         /* spec.os.name */
    bool has_os, is_host_users; /* hostUsers is on when it is not given */
};

static inline bool vg_pod_is_windows(const struct vg_pod *p)
{
    return p->has_os && vg_slice_eq(p->os, VG_SLICE_LIT("windows"));
}

/* Every container of a spec in the order of the original: init, regular, ephemeral. */
typedef void vg_pod_container_fn(struct vg_pod *p, const struct vg_at *container, void *ctx);
void vg_pod_each_container(struct vg_pod *p, vg_pod_container_fn *fn, void *ctx);

/* pod_volumes.c */
void vg_pod_check_volumes(struct vg_pod *p);
/* pod_projected.c */
void vg_pod_check_secret_items(struct vg_check *c, const struct vg_at *items);
void vg_pod_check_mode(struct vg_check *c, const struct vg_at *at);
void vg_pod_check_downward(struct vg_pod *p, const struct vg_at *at);
void vg_pod_check_projected(struct vg_pod *p, const struct vg_at *at);
/* pod_env.c */
void vg_pod_check_env(struct vg_pod *p, const struct vg_at *container);
void vg_pod_check_field_ref(struct vg_check *c, const struct vg_at *at,
                            const char *const *supported);
void vg_pod_check_resource_ref(struct vg_check *c, const struct vg_at *at, bool is_volume);
/* pod_containers.c */
void vg_pod_check_containers(struct vg_pod *p);
/* No blanks around the images of a list; a template may have them. */
void vg_pod_check_blanks(struct vg_check *c, const struct vg_at *list);
/* pod_mounts.c */
void vg_pod_check_mounts(struct vg_pod *p, const struct vg_at *container);
/* pod_probes.c */
void vg_pod_check_probes(struct vg_pod *p, const struct vg_at *container);
/* pod_resources.c */
void vg_pod_check_container_resources(struct vg_pod *p, const struct vg_at *at);
void vg_pod_check_resources(struct vg_pod *p);
/* How much of a resource the containers have together, while they start and while they run. More
 * than these are neither held against the sum of the containers nor made of it: there are cpu,
 * memory and a few sizes of huge pages. */
#define VG_POD_SUMS_MAX 64u
struct vg_pod_sum {
    struct vg_slice name;            /* given */
    struct vg_quantity amount;       /* of what runs, and at the end of all */
    struct vg_quantity beside, most; /* of init containers: that stay, and at any time */
    bool is_there;                   /* a container has some */
};
/* By requests or limits, for n names in one walk. */
void vg_pod_sums(const struct vg_json *spec, const char *list, struct vg_pod_sum *v, size_t n);
/* A map of quantities as limits are checked. */
void vg_pod_check_overhead(struct vg_pod *p, const struct vg_at *at);
/* pod_security.c */
void vg_pod_check_security(struct vg_pod *p);
void vg_pod_check_container_security(struct vg_pod *p, const struct vg_at *at);
/* pod_os.c */
void vg_pod_check_windows_options(struct vg_check *c, const struct vg_at *at);
void vg_pod_check_host_process(struct vg_pod *p);
void vg_pod_check_os(struct vg_pod *p);
/* pod_scheduling.c */
void vg_pod_check_affinity(struct vg_pod *p);
void vg_pod_check_spread(struct vg_pod *p);
void vg_pod_check_tolerations(struct vg_check *c, const struct vg_at *at);
/* pod_annotations.c */
void vg_pod_check_annotations(struct vg_pod *p, const struct vg_at *annotations);
void vg_pod_check_annotated_profiles(struct vg_pod *p, const struct vg_json *annotations);
/* pod.c: metadata and spec, at a create as at an update. */
void vg_pod_check_all(struct vg_check *c, const struct vg_at *obj);
/* Of these what concerns annotations. */
void vg_pod_check_notes(struct vg_check *c, const struct vg_at *obj);
/* pod_parts.c: writes of subresources. */
int vg_pod_prepare_ephemeral(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old);
void vg_pod_check_ephemeral(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old);
int vg_pod_prepare_resize(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old);
void vg_pod_check_resize(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old);
/* pod_prepare.c */
const char *vg_pod_qos(const struct vg_json *spec); /* its class of service: static */
int vg_pod_prepare(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old);
int vg_pod_prepare_status(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old);
/* pod_update.c */
void vg_pod_check_kept_annotations(struct vg_check *c, const struct vg_at *obj,
                                   const struct vg_json *old);
void vg_pod_check_update(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old);
/* pod_diff.c: what may not change and did, as a unified diff of what the original has. */
struct vg_slice vg_pod_diff(struct vg_check *c, const struct vg_json *now,
                            const struct vg_json *old, bool is_gated);
/* pod_status.c */
void vg_pod_check_status(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old);
/* pod_warn.c */
void vg_pod_warn(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old);
/* pod_warn_paths.c */
void vg_pod_warn_paths(struct vg_pod *p);

#endif
