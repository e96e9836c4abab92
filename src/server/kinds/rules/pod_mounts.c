/* pod_mounts.c - volumeMounts and volumeDevices of a container: the volumes they name, and paths
 * that must not meet. */
#include "pod_int.h"

static const char *const propagations[] = {"Bidirectional", "HostToContainer", "None", NULL};
static const char *const recursions[] = {"Disabled", "Enabled", "IfPossible", NULL};

/* What is wrong with subPath and the like is blamed on the list, as in the original. */
static void check_sub_paths(struct vg_check *c, const struct vg_at *list, const struct vg_at *at)
{
    const struct vg_json *v = vg_json_get_str(at->v, "subPath");
    const struct vg_json *expr = vg_json_get_str(at->v, "subPathExpr");
    struct vg_at sub = vg_at_of(list, "subPath", v), sub_expr = vg_at(at, "subPathExpr");
    if (vg_json_text(v).n)
        (void)vg_check_descending_path(c, &sub);
    if (vg_json_text(expr).n == 0)
        return;
    if (vg_json_text(v).n)
        vg_bad_text(c, &sub_expr, "subPathExpr and subPath are mutually exclusive");
    sub_expr = vg_at_of(list, "subPathExpr", expr);
    (void)vg_check_descending_path(c, &sub_expr);
}

static void check_recursion(struct vg_check *c, const struct vg_at *list, const struct vg_at *at,
                            const struct vg_json *propagation)
{
    struct vg_at recursive =
        vg_at_of(list, "recursiveReadOnly", vg_json_get_str(at->v, "recursiveReadOnly"));
    struct vg_at read_only = vg_at(at, "readOnly");
    if (!vg_at_is_set(&recursive) || vg_at_is(&recursive, "Disabled"))
        return;
    if (!vg_check_one_of(c, &recursive, recursions))
        return;
    if (!vg_at_is_true(&read_only))
        vg_forbidden(c, &recursive, "may only be specified when readOnly is true");
    if (propagation && !vg_slice_eq(vg_json_text(propagation), VG_SLICE_LIT("None")))
        vg_forbidden(c, &recursive,
                     "may only be specified when mountPropagation is None or not specified");
}

static void check_ways(struct vg_check *c, const struct vg_at *list, const struct vg_at *at,
                       const struct vg_at *container)
{
    const struct vg_json *propagation = vg_json_get_str(at->v, "mountPropagation");
    struct vg_at way = vg_at_of(list, "mountPropagation", propagation);
    if (propagation) {
        bool is_privileged =
            vg_json_is_true(vg_json_at_path(container->v, "securityContext.privileged"));
        (void)vg_check_one_of(c, &way, propagations);
        if (vg_at_is(&way, "Bidirectional") && !is_privileged)
            vg_forbidden(
                c, &way,
                "Bidirectional mount propagation is available only to privileged containers");
    }
    check_recursion(c, list, at, propagation);
}

/* Names and paths of a list. */
static void gather(struct vg_check *c, const struct vg_at *list, const char *path,
                   struct vg_names *names, struct vg_names *paths)
{
    VG_CHECK_EACH (c, it, list) {
        (void)vg_names_add(c, names, vg_json_text(vg_json_get_str(it.v, "name")), NULL);
        (void)vg_names_add(c, paths, vg_json_text(vg_json_get_str(it.v, path)), NULL);
    }
}

static void check_volume_mounts(struct vg_pod *p, const struct vg_at *container,
                                const struct vg_at *devices)
{
    struct vg_check *c = p->c;
    struct vg_at mounts = vg_at(container, "volumeMounts");
    if (vg_at_n(&mounts) == 0)
        return;
    VG_AUTO(names) device_names = {0};
    VG_AUTO(names) device_paths = {0};
    VG_AUTO(names) points = {0};
    gather(c, devices, "devicePath", &device_names, &device_paths);
    VG_CHECK_EACH (p->c, m, &mounts) {
        struct vg_at name = vg_at(&m, "name"), path = vg_at(&m, "mountPath");
        (void)vg_check_given(c, &name);
        if (!vg_names_has(&p->volumes, vg_at_text(&name)))
            vg_not_found(c, &name);
        (void)vg_check_given(c, &path);
        if (!vg_names_add(c, &points, vg_at_text(&path), NULL))
            vg_bad_text(c, &path, "must be unique");
        if (vg_names_has(&device_names, vg_at_text(&name)))
            vg_bad_text(c, &name, "must not already exist in volumeDevices");
        if (vg_names_has(&device_paths, vg_at_text(&path)))
            vg_bad_text(c, &path, "must not already exist as a path in volumeDevices");
        check_sub_paths(c, &mounts, &m);
        check_ways(c, &mounts, &m, container);
    }
}

static void check_device(struct vg_pod *p, const struct vg_at *at, struct vg_names *names,
                         struct vg_names *paths)
{
    struct vg_check *c = p->c;
    struct vg_at name = vg_at(at, "name"), path = vg_at(at, "devicePath");
    const struct vg_json *volume = NULL;
    bool is_there = vg_names_find(&p->volumes, vg_at_text(&name), &volume);
    (void)vg_check_given(c, &name);
    if (vg_at_text(&name).n && vg_names_has(names, vg_at_text(&name)))
        vg_bad_text(c, &name, "must be unique");
    if (is_there && !vg_json_get_str(volume, "persistentVolumeClaim") &&
        !vg_json_get_str(volume, "ephemeral"))
        vg_bad_text(c, &name,
                    "can only use volume source type of PersistentVolumeClaim or Ephemeral for "
                    "block mode");
    if (!is_there)
        vg_not_found(c, &name);
    (void)vg_check_given(c, &path);
    if (vg_names_has(paths, vg_at_text(&path)))
        vg_bad_text(c, &path, "must be unique");
    if (vg_path_has_backstep(vg_at_text(&path)))
        vg_bad_text(c, &path, "can not contain backsteps ('..')");
    else
        (void)vg_names_add(c, paths, vg_at_text(&path), NULL);
}

static void check_volume_devices(struct vg_pod *p, const struct vg_at *container,
                                 const struct vg_at *devices)
{
    VG_AUTO(names) mount_names = {0};
    VG_AUTO(names) mount_paths = {0};
    VG_AUTO(names) names = {0};
    VG_AUTO(names) paths = {0};
    struct vg_at mounts = vg_at(container, "volumeMounts");
    gather(p->c, &mounts, "mountPath", &mount_names, &mount_paths);
    VG_CHECK_EACH (p->c, d, devices) {
        struct vg_at name = vg_at(&d, "name"), path = vg_at(&d, "devicePath");
        check_device(p, &d, &names, &paths);
        if (vg_names_has(&mount_names, vg_at_text(&name)))
            vg_bad_text(p->c, &name, "must not already exist in volumeMounts");
        if (vg_names_has(&mount_paths, vg_at_text(&path)))
            vg_bad_text(p->c, &path, "must not already exist as a path in volumeMounts");
        if (vg_at_text(&name).n)
            (void)vg_names_add(p->c, &names, vg_at_text(&name), NULL);
    }
}

void vg_pod_check_mounts(struct vg_pod *p, const struct vg_at *container)
{
    struct vg_at devices = vg_at(container, "volumeDevices");
    check_volume_mounts(p, container, &devices);
    if (vg_at_n(&devices))
        check_volume_devices(p, container, &devices);
}
