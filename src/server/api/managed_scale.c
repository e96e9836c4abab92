/* managed_scale.c - who owns replicas after a write of scale.
 *
 *   managers of the object --those who own replicas--> managers of the Scale
 *                                                        | the write, as any other
 *   managers of the object <--who owns them now----------+
 *
 * A Scale has the version autoscaling/v1, which is part of who updates it; so whoever owned
 * replicas by an update of the object owns them by an entry of its own afterwards, which has no
 * time. This is what kube-apiserver does. */
#include <errno.h>

#include "managed.h"
#include "stamp.h"

struct scaling {
    struct vg_fields_delta delta;
};

static int make_set(struct vg_arena *a, struct vg_json *ret)
{
    struct vg_json spec = vg_json_object();
    *ret = vg_json_object();
    int err = vg_json_object_add(a, &spec, VG_SLICE_LIT("f:replicas"), vg_json_object());
    return err < 0 ? err : vg_json_object_add(a, ret, VG_SLICE_LIT("f:spec"), spec);
}

static bool has_replicas(const struct vg_json *set)
{
    const struct vg_json *spec = vg_fields_find(set, VG_SLICE_LIT("f:spec"));
    const struct vg_json *found = spec ? vg_fields_find(spec, VG_SLICE_LIT("f:replicas")) : NULL;
    return found && vg_fields_is_member(found);
}

static int64_t replicas_of(const struct vg_json *root)
{
    int64_t n;
    const struct vg_json *v = vg_json_get_str(vg_json_get_str(root, "spec"), "replicas");
    return vg_json_to_int64(v, &n) < 0 ? 0 : n;
}

static int delta_of(void *arg, struct vg_slice api_version, const struct vg_fields_delta **ret)
{
    struct scaling *s = arg;
    (void)api_version;
    *ret = &s->delta;
    return 1;
}

int vg_managers_to_scale(struct vg_arena *a, const struct vg_managers *was, struct vg_managers *ret)
{
    struct vg_json replicas;
    int err = make_set(a, &replicas);
    *ret = (struct vg_managers){0};
    for (uint32_t i = 0; i < was->n && err == 0; i++) {
        struct vg_manager one = was->v[i];
        if (!has_replicas(&one.fields))
            continue;
        one.api_version = VG_SCALE_VERSION;
        one.fields = replicas;
        one.stored = NULL;
        err = vg_managers_add(a, ret, &one);
    }
    return err;
}

int vg_managers_from_scale(struct vg_arena *a, const struct vg_managers *was,
                           struct vg_managers *scale, struct vg_slice api_version,
                           struct vg_managers *ret)
{
    struct vg_json replicas;
    int err = make_set(a, &replicas);
    *ret = (struct vg_managers){0};
    for (uint32_t i = 0; i < was->n && err == 0; i++) {
        struct vg_manager one = was->v[i];
        struct vg_manager *kept = vg_managers_find(scale, &one);
        struct vg_json left;
        if (kept && has_replicas(&one.fields)) {
            vg_managers_remove(scale, (uint32_t)(kept - scale->v));
        } else if (has_replicas(&one.fields)) {
            err = vg_fields_combine(a, VG_FIELDS_DIFFERENCE, &one.fields, &replicas, &left);
            if (err < 0)
                return err;
            vg_manager_set(&one, &left);
        }
        if (!vg_fields_is_empty(&one.fields))
            err = vg_managers_add(a, ret, &one);
    }
    for (uint32_t i = 0; i < scale->n && err == 0; i++) {
        struct vg_manager one = scale->v[i];
        if (!has_replicas(&one.fields))
            continue;
        one.api_version = api_version;
        one.time = VG_SLICE_LIT("");
        one.stored = NULL;
        one.fields = replicas;
        err = vg_managers_add(a, ret, &one);
    }
    return err;
}

int vg_change_manage_scale(struct vg_change *c, const struct vg_json *now,
                           const struct vg_json *old, const struct vg_managers *was,
                           const struct vg_manager *who, struct vg_json **ret)
{
    struct vg_arena *a = &c->scratch;
    struct scaling s = {.delta = {.changed = vg_json_object(), .removed = vg_json_object()}};
    struct vg_manager writer = *who;
    struct vg_managers scale, all;
    int64_t n = replicas_of(now);
    int err = 0;
    if (n != replicas_of(old)) /* none is not printed in a Scale */
        err = make_set(a, n ? &s.delta.changed : &s.delta.removed);
    writer.api_version = VG_SCALE_VERSION;
    if (err == 0)
        err = vg_managers_to_scale(a, was, &scale);
    /* A Scale that nobody owns a part of has no managers until an apply, as any object. */
    if (err == 0 && scale.n)
        err = vg_managers_update(a, &scale, &writer, delta_of, &s);
    if (err == 0)
        err = vg_managers_from_scale(a, was, &scale, vg_slice_str(vg_kind_api_version(c->kind)),
                                     &all);
    return err < 0 ? err : vg_managers_write(a, &all, vg_change_source(c), ret);
}
