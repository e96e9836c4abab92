/* defaults_more.c - defaults of storage, rbac, resource and apiextensions that depend on other
 * fields; see defaults.h. */
#include <errno.h>

#include "base/clock.h"
#include "defaults.h"
#include "server/schema/gotime.h"

static bool is_text(const struct vg_json *v, const char *name, const char *text)
{
    return vg_slice_eq(vg_json_text(vg_json_get_str(v, name)), vg_slice_str(text));
}

/* A list that is empty counts as not given. */
int vg_default_csi_driver_spec(struct vg_arena *a, struct vg_json *v)
{
    const struct vg_json *modes = vg_json_get_str(v, "volumeLifecycleModes");
    struct vg_json list = vg_json_array();
    if (modes && modes->n)
        return 0;
    int err = vg_json_array_push(a, &list, vg_json_string_ref(VG_SLICE_LIT("Persistent")));
    return err < 0 ? err : vg_json_object_set(a, v, VG_SLICE_LIT("volumeLifecycleModes"), list);
}

int vg_default_rbac_subject(struct vg_arena *a, struct vg_json *v)
{
    if (!is_text(v, "kind", "User") && !is_text(v, "kind", "Group"))
        return 0;
    return vg_default_text(a, v, "apiGroup", "rbac.authorization.k8s.io");
}

int vg_default_device_request(struct vg_arena *a, struct vg_json *v)
{
    int err = vg_default_text(a, v, "allocationMode", "ExactCount");
    if (err < 0 || !is_text(v, "allocationMode", "ExactCount") || vg_default_has(v, "count"))
        return err;
    (void)vg_json_object_remove(v, VG_SLICE_LIT("count"));
    return vg_default_int(a, v, "count", 1);
}

int vg_default_now(struct vg_arena *a, struct vg_json *v, const char *name)
{
    char text[VG_TIME_TEXT_MAX];
    struct vg_json now;
    size_t n = vg_time_format(vg_clock_wall_ms(vg_clock_system()), text);
    int err = vg_json_make_string(a, vg_slice(text, n), &now);
    return err < 0 ? err : vg_json_object_set(a, v, vg_slice_str(name), now);
}

int vg_default_device_taint(struct vg_arena *a, struct vg_json *v)
{
    return vg_default_has(v, "timeAdded") ? 0 : vg_default_now(a, v, "timeAdded");
}

/* ---- custom resource definitions ---- */

/* The kind in lower case, or with a tail. */
static int name_from(struct vg_arena *a, struct vg_json *names, const char *member,
                     struct vg_slice kind, const char *tail)
{
    size_t n = kind.n + strlen(tail);
    if (vg_default_has(names, member) || kind.n == 0)
        return 0;
    char *text = vg_arena_alloc(a, n + 1, 1);
    if (!text)
        return -ENOMEM;
    memcpy(text, kind.p, kind.n);
    memcpy(text + kind.n, tail, n - kind.n);
    for (size_t i = 0; !*tail && i < n; i++)
        text[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 32 : text[i]);
    return vg_json_object_set(a, names, vg_slice_str(member),
                              vg_json_string_ref(vg_slice(text, n)));
}

/* What is stored begins with the version that is stored. */
static int default_stored(struct vg_arena *a, struct vg_json *v)
{
    const struct vg_json *versions = vg_json_get_str(vg_json_get_str(v, "spec"), "versions");
    struct vg_json *status = NULL, list = vg_json_array();
    const struct vg_json *stored = vg_json_get_str(vg_json_get_str(v, "status"), "storedVersions");
    if ((stored && stored->n) || !versions)
        return 0;
    VG_JSON_FOREACH_ITEM (it, versions) {
        const struct vg_json *name = vg_json_get_str(it, "name");
        if (!vg_json_is_true(vg_json_get_str(it, "storage")))
            continue;
        int err = vg_json_array_push(a, &list, name ? *name : vg_json_string_ref(vg_slice("", 0)));
        if (err == 0)
            err = vg_default_object(a, v, "status", &status);
        return err < 0 ? err : vg_json_object_set(a, status, VG_SLICE_LIT("storedVersions"), list);
    }
    return 0;
}

int vg_default_custom_resource_definition(struct vg_arena *a, struct vg_json *v)
{
    struct vg_json *spec = NULL, *names = NULL;
    int err = vg_default_object(a, v, "spec", &spec);
    if (err == 0)
        err = vg_default_object(a, spec, "names", &names);
    if (err < 0)
        return err;
    struct vg_slice kind = vg_json_text(vg_json_get_str(names, "kind"));
    err = name_from(a, names, "singular", kind, "");
    if (err == 0)
        err = name_from(a, names, "listKind", kind, "List");
    return err < 0 ? err : default_stored(a, v);
}
