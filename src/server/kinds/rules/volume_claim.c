/* volume_claim.c - the rules of claims of volumes as objects; their spec is in claim.c. Almost
 * nothing of it changes after creation: a bound claim may grow and change its class of attributes.
 */
#include "claim.h"
#include "go_struct.h"
#include "resources.h"
#include "rules.h"
#include "json/equal.h"

#define CLASS_ANNOTATION "volume.beta.kubernetes.io/storage-class"

static struct vg_slice text_of(const struct vg_json *v, const char *name)
{
    return vg_json_text(vg_json_get_str(v, name));
}

/* ---- what is set ---- */

static bool is_claim_or_snapshot(const struct vg_json *source)
{
    struct vg_slice kind = text_of(source, "kind"), group = text_of(source, "apiGroup");
    return (vg_slice_eq(kind, VG_SLICE_LIT("PersistentVolumeClaim")) && group.n == 0) ||
           (vg_slice_eq(kind, VG_SLICE_LIT("VolumeSnapshot")) &&
            vg_slice_eq(group, VG_SLICE_LIT("snapshot.storage.k8s.io")));
}

/* A source that only dataSourceRef may have is dropped. Each of both names makes the other. */
static int prepare(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old)
{
    struct vg_json *spec = vg_json_get_str(obj, "spec");
    const struct vg_json *before = vg_json_get_str(old, "spec");
    if (!spec)
        return 0;
    if (text_of(vg_json_get_str(spec, "dataSourceRef"), "namespace").n &&
        !vg_json_get_str(before, "dataSourceRef"))
        (void)vg_json_object_remove(spec, VG_SLICE_LIT("dataSourceRef"));
    if (!vg_json_get_str(before, "dataSource") && !vg_json_get_str(spec, "dataSourceRef") &&
        !is_claim_or_snapshot(vg_json_get_str(spec, "dataSource")))
        (void)vg_json_object_remove(spec, VG_SLICE_LIT("dataSource"));
    const struct vg_json *source = vg_json_get_str(spec, "dataSource");
    const struct vg_json *ref = vg_json_get_str(spec, "dataSourceRef");
    if (source && !ref)
        return vg_json_object_set(a, spec, VG_SLICE_LIT("dataSourceRef"), *source);
    if (ref && !source && text_of(ref, "namespace").n == 0)
        return vg_json_object_set(a, spec, VG_SLICE_LIT("dataSource"), *ref);
    return 0;
}

/* ---- checks ---- */

static void check(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at spec = vg_at(obj, "spec");
    vg_check_claim_spec(c, &spec);
}

static const struct vg_json *annotation(const struct vg_json *obj)
{
    return vg_json_get_str(vg_json_at_path(obj, "metadata.annotations"), CLASS_ANNOTATION);
}

/* The class may move from the annotation to the field, or be set where there was none. */
static void check_class(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old,
                        struct vg_json *now)
{
    const struct vg_json *was = annotation(old), *is = annotation(obj->v);
    const struct vg_json *before = vg_json_at_path(old, "spec.storageClassName");
    const struct vg_json *class = vg_json_at_path(obj->v, "spec.storageClassName");
    bool is_new = class && !before;
    bool is_same = was && class && vg_slice_eq(vg_json_text(was), vg_json_text(class));
    bool is_kept = !is || (was && vg_slice_eq(vg_json_text(was), vg_json_text(is)));
    struct vg_at meta = vg_at(obj, "metadata"), annotations = vg_at(&meta, "annotations");
    struct vg_at at = vg_at_of(&annotations, CLASS_ANNOTATION, is);
    bool is_moved = is_new && is_same && is_kept;
    if (!is_moved && !vg_slice_eq(vg_json_text(was), vg_json_text(is)))
        vg_bad_text(c, &at, "field is immutable");
    if (is_moved || (is_new && (!was || is_same)))
        (void)vg_json_object_remove(now, VG_SLICE_LIT("storageClassName"));
}

/* What a bound claim may change is taken back in a copy of its new spec. 0, -ENOMEM. */
static int forget_growth(struct vg_arena *a, struct vg_json *now, const struct vg_json *old)
{
    struct vg_json *requests = vg_json_get_str(vg_json_get_str(now, "resources"), "requests");
    int err = vg_json_take_member(a, now, old, "volumeAttributesClassName");
    if (err == 0 && requests)
        err =
            vg_json_take_member(a, requests, vg_json_at_path(old, "resources.requests"), "storage");
    return err;
}

static void check_same_spec(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec");
    static const struct vg_json none = {.type = VG_JSON_OBJECT};
    const struct vg_json *before = vg_json_get_str(old, "spec");
    struct vg_json was, is;
    int err = vg_json_clone(c->arena, before ? before : &none, &was);
    if (err == 0)
        err = vg_json_clone(c->arena, spec.v ? spec.v : &none, &is);
    if (err == 0 && text_of(before, "volumeName").n == 0)
        err = vg_json_take_member(c->arena, &was, &is, "volumeName");
    if (err == 0)
        check_class(c, obj, old, &is);
    if (err == 0 &&
        vg_slice_eq(text_of(vg_json_get_str(obj->v, "status"), "phase"), VG_SLICE_LIT("Bound")))
        err = forget_growth(c->arena, &is, before);
    int same = err < 0 ? err : vg_json_equal(&was, &is);
    c->errors->failed |= same < 0;
    if (same == 0)
        vg_forbidden(c, &spec,
                     "spec is immutable after creation except resources.requests and "
                     "volumeAttributesClassName for bound claims\n%.*s",
                     VG_SLICE_ARG(vg_go_diff(c, "", "PersistentVolumeClaimSpec", &was, &is)));
}

static struct vg_quantity storage_of(const struct vg_json *v, const char *path)
{
    struct vg_quantity q;
    (void)vg_json_quantity(vg_json_at_path(v, path), &q);
    return q;
}

/* A claim may ask for less again, but not for less than it has. */
static void check_size(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_quantity was = storage_of(old, "spec.resources.requests.storage");
    struct vg_quantity is = storage_of(obj->v, "spec.resources.requests.storage");
    struct vg_quantity has = storage_of(old, "status.capacity.storage");
    struct vg_at spec = vg_at(obj, "spec"), resources = vg_at(&spec, "resources");
    struct vg_at requests = vg_at(&resources, "requests"), at = vg_at(&requests, "storage");
    if (vg_quantity_cmp(&is, &was) < 0 && vg_quantity_cmp(&is, &has) <= 0)
        vg_forbidden(c, &at, "field can not be less than status.capacity");
}

static void check_attributes_class(struct vg_check *c, const struct vg_at *obj,
                                   const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), class = vg_at(&spec, "volumeAttributesClassName");
    const struct vg_json *was = vg_json_at_path(old, "spec.volumeAttributesClassName");
    if (!vg_json_at_path(old, "status.currentVolumeAttributesClassName") || vg_at_text(&class).n ||
        (!was && !vg_at_is_set(&class)))
        return;
    vg_forbidden(
        c, &class,
        "update to %s is forbidden when status.currentVolumeAttributesClassName is not nil",
        vg_at_is_set(&class) ? "empty string" : "nil");
}

static void check_update(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    const struct vg_json *mode = vg_json_at_path(obj->v, "spec.volumeMode");
    struct vg_at at = vg_at_of(obj, "volumeMode", mode);
    check(c, obj);
    check_same_spec(c, obj, old);
    check_size(c, obj, old);
    (void)vg_check_immutable(c, &at, vg_json_at_path(old, "spec.volumeMode"));
    check_attributes_class(c, obj, old);
}

/* ---- status ---- */

static bool check_native(struct vg_check *c, const struct vg_at *map, struct vg_slice name)
{
    static const char *const supported[] = {"storage", NULL};
    struct vg_name_reasons why = {0};
    if (!vg_validate_label_key(name, &why)) {
        for (uint32_t i = 0; i < why.n; i++)
            vg_bad_value(c, map, vg_json_quoted(c, name), "%s", why.v[i]);
        return false;
    }
    if (!vg_resource_is_native(name) || vg_slice_eq(name, VG_SLICE_LIT("storage")))
        return true;
    vg_unsupported_value(c, map, vg_json_quoted(c, name), supported);
    return false;
}

static void check_statuses(struct vg_check *c, const struct vg_at *map)
{
    static const char *const states[] = {"ControllerResizeInProgress", "ControllerResizeInfeasible",
                                         "NodeResizeInProgress",       "NodeResizeInfeasible",
                                         "NodeResizePending",          NULL};
    for (uint32_t i = 0; i < vg_at_n(map); i++) {
        const struct vg_json_member *m = &map->v->members[i];
        (void)check_native(c, map, vg_json_key(m));
        if (!vg_text_is_one_of(vg_json_text(&m->value), states))
            vg_unsupported_value(c, map, vg_json_quoted(c, vg_json_key(m)), states);
    }
}

static bool check_amount(struct vg_check *c, const struct vg_at *at)
{
    struct vg_quantity q;
    int64_t whole;
    if (!vg_at_quantity(at, &q) || vg_quantity_scaled(&q, 0, &whole, NULL) < 0 || whole >= 0)
        return true;
    vg_bad_value(c, at, vg_json_number(c, whole), "must be a valid resource quantity");
    return false;
}

static void check_status(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at status = vg_at(obj, "status"), capacity = vg_at(&status, "capacity");
    struct vg_at states = vg_at(&status, "allocatedResourceStatuses");
    struct vg_at allocated = vg_at(&status, "allocatedResources");
    (void)old;
    for (uint32_t i = 0; i < vg_at_n(&capacity); i++) {
        struct vg_at at = vg_at_key(&capacity, &capacity.v->members[i]);
        (void)check_amount(c, &at);
    }
    check_statuses(c, &states);
    for (uint32_t i = 0; i < vg_at_n(&allocated); i++) {
        const struct vg_json_member *m = &allocated.v->members[i];
        struct vg_at at = vg_at_key(&allocated, m);
        if (check_native(c, &allocated, vg_json_key(m)) && check_amount(c, &at))
            vg_check_resource_amount(c, &at, VG_SLICE_LIT("storage"));
    }
}

/* ---- warnings ---- */

static void warn_fraction(struct vg_check *c, const struct vg_at *resources, const char *list)
{
    struct vg_at map = vg_at(resources, list);
    const struct vg_json_member *m = vg_json_member(map.v, VG_SLICE_LIT("storage"));
    struct vg_quantity q;
    int64_t milli;
    if (!m || !vg_json_quantity(&m->value, &q) || vg_quantity_scaled(&q, -3, &milli, NULL) < 0 ||
        milli % 1000 == 0)
        return;
    struct vg_at at = vg_at_key(&map, m);
    vg_caution_at(c, &at, "fractional byte value \"%.*s\" is invalid, must be an integer",
                  VG_SLICE_ARG(vg_at_text(&at)));
}

static void warn(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), resources = vg_at(&spec, "resources");
    (void)old;
    if (annotation(obj->v))
        vg_caution(c, "metadata.annotations[" CLASS_ANNOTATION
                      "]: deprecated since v1.8; use \"storageClassName\" attribute instead");
    warn_fraction(c, &resources, "requests");
    warn_fraction(c, &resources, "limits");
}

const struct vg_rules vg_rules_persistent_volume_claim = {.group = "",
                                                          .kind = "PersistentVolumeClaim",
                                                          .prepare = prepare,
                                                          .check = check,
                                                          .check_update = check_update,
                                                          .check_status = check_status,
                                                          .warn = warn};
