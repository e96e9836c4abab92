/* defaults_pod.c - defaults of pods that depend on other fields; see defaults.h. What a template
 * does not get, because it would change what controllers compare, is set on pods alone. */
#include <errno.h>

#include "check.h"
#include "defaults.h"

int vg_default_container(struct vg_arena *a, struct vg_json *v)
{
    return vg_default_text(a, v, "imagePullPolicy",
                           vg_default_pull_policy(vg_json_text(vg_json_get_str(v, "image"))));
}

/* A volume of no kind is an empty folder. */
int vg_default_volume(struct vg_arena *a, struct vg_json *v)
{
    struct vg_json *image = vg_json_get_str(v, "image");
    uint32_t own = vg_json_get_str(v, "name") ? 1 : 0;
    if (v->n == own)
        return vg_default_object(a, v, "emptyDir", NULL);
    if (!image)
        return 0;
    return vg_default_text(
        a, image, "pullPolicy",
        vg_default_pull_policy(vg_json_text(vg_json_get_str(image, "reference"))));
}

/* What is limited and not asked for is asked for up to the limit. */
static int default_requests(struct vg_arena *a, struct vg_json *containers)
{
    int err = 0;
    if (containers)
        VG_JSON_FOREACH_ITEM (c, containers) {
            struct vg_json *resources = vg_json_get_str(c, "resources");
            if (err == 0 && resources)
                err =
                    vg_default_map(a, resources, "requests", vg_json_get_str(resources, "limits"));
        }
    return err;
}

/* On the network of the node a port is that of the node. */
static int default_host_ports(struct vg_arena *a, struct vg_json *containers)
{
    int err = 0;
    if (containers)
        VG_JSON_FOREACH_ITEM (c, containers) {
            struct vg_json *ports = vg_json_get_str(c, "ports");
            if (ports)
                VG_JSON_FOREACH_ITEM (p, ports) {
                    const struct vg_json *port = vg_json_get_str(p, "containerPort");
                    if (err == 0 && port && !vg_default_has(p, "hostPort"))
                        err = vg_json_object_set(a, p, VG_SLICE_LIT("hostPort"), *port);
                }
        }
    return err;
}

int vg_default_pod(struct vg_arena *a, struct vg_json *v)
{
    struct vg_json *spec;
    int err = vg_default_object(a, v, "spec", &spec);
    if (err < 0)
        return err;
    struct vg_json *containers = vg_json_get_str(spec, "containers");
    struct vg_json *init = vg_json_get_str(spec, "initContainers");
    err = default_requests(a, containers);
    if (err == 0)
        err = default_requests(a, init);
    if (err == 0)
        err = vg_default_bool(a, spec, "enableServiceLinks", true);
    if (err == 0 && vg_default_has(spec, "hostNetwork"))
        err = default_host_ports(a, containers);
    if (err == 0 && vg_default_has(spec, "hostNetwork"))
        err = default_host_ports(a, init);
    return err;
}
