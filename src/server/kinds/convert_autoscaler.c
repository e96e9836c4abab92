/* convert_autoscaler.c - autoscaling/v1 from v2, which is stored, and back.
 * v1 has fields for one metric, the utilization of CPU. All else of v2 (other metrics, their
 * statuses, conditions, behavior) stands in four annotations, as JSON of types that the notation
 * has beside v1's own. On the way back the annotations are read and go away; one that cannot be
 * read is as good as none. */
#include "convert.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "autoscaler_metrics.h"
#include "base/buf.h"
#include "rules/check.h"
#include "server/schema/decode.h"
#include "types.h"
#include "json/write.h"

/* ---- behavior ---- */

/* Its annotation has the names of Go's fields. */
static const char *const go_names[][2] = {
    {"scaleUp", "ScaleUp"},
    {"scaleDown", "ScaleDown"},
    {"stabilizationWindowSeconds", "StabilizationWindowSeconds"},
    {"selectPolicy", "SelectPolicy"},
    {"policies", "Policies"},
    {"tolerance", "Tolerance"},
    {"type", "Type"},
    {"value", "Value"},
    {"periodSeconds", "PeriodSeconds"},
};

/* Which of them it is, in whatever case, as Go reads them; NULL: none. */
static const char *const *find_name(struct vg_slice key)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(go_names); i++)
        if (key.n == strlen(go_names[i][0]) && strncasecmp(key.p, go_names[i][0], key.n) == 0)
            return go_names[i];
    return NULL;
}

/* Of all that lies below; as deep as the parser lets a text be. */
static int rename_keys(struct vg_arena *a, const struct vg_json *from, size_t to,
                       struct vg_json *ret)
{
    int err = 0;
    if (from->type == VG_JSON_ARRAY) {
        *ret = vg_json_array();
        VG_JSON_FOREACH_ITEM (it, from) {
            struct vg_json made;
            if (err == 0)
                err = rename_keys(a, it, to, &made);
            if (err == 0)
                err = vg_json_array_push(a, ret, made);
        }
        return err;
    }
    *ret = from->type == VG_JSON_OBJECT ? vg_json_object() : *from;
    VG_JSON_FOREACH_MEMBER (m, from) {
        struct vg_json made = vg_json_null();
        const char *const *name = find_name(vg_json_key(m));
        if (err < 0 || !name || m->value.type == VG_JSON_NULL)
            continue;
        err = rename_keys(a, &m->value, to, &made);
        if (err == 0)
            err = vg_json_object_set(a, ret, vg_slice_str(name[to]), made);
    }
    return err;
}

/* ---- annotations ---- */

#define PREFIX "autoscaling.alpha.kubernetes.io/"
/* Members of the type Annotations, and where they stand. */
enum { METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR };
static const char *const annotations[][2] = {
    [METRICS] = {"metrics", PREFIX "metrics"},
    [CURRENT_METRICS] = {"currentMetrics", PREFIX "current-metrics"},
    [CONDITIONS] = {"conditions", PREFIX "conditions"},
    [BEHAVIOR] = {"behavior", PREFIX "behavior"},
};

static const struct vg_schema_type *annotations_type(void)
{
    return vg_schema_find(VG_SLICE_LIT("autoscaling"), VG_SLICE_LIT("v1"),
                          VG_SLICE_LIT("Annotations"));
}

static bool is_round_trip(struct vg_slice key)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(annotations); i++)
        if (vg_slice_eq(key, vg_slice_str(annotations[i][1])))
            return true;
    return false;
}

static int by_key(const void *x, const void *y)
{
    return vg_slice_cmp(vg_json_key(x), vg_json_key(y));
}

/* metadata with those of its annotations that are not ours, and with `more`, if not NULL. */
static int with_annotations(struct vg_arena *a, const struct vg_json *metadata,
                            const struct vg_json *more, struct vg_json *ret)
{
    struct vg_json all = vg_json_object();
    int err = 0;
    *ret = vg_json_object();
    VG_JSON_FOREACH_MEMBER (m, vg_autoscaler_some(vg_json_get_str(metadata, "annotations"))) {
        if (err == 0 && !is_round_trip(vg_json_key(m)))
            err = vg_json_object_add(a, &all, vg_json_key(m), m->value);
    }
    VG_JSON_FOREACH_MEMBER (m, vg_autoscaler_some(more)) {
        if (err == 0)
            err = vg_json_object_add(a, &all, vg_json_key(m), m->value);
    }
    if (all.n > 1)
        qsort(all.members, all.n, sizeof *all.members, by_key);
    VG_JSON_FOREACH_MEMBER (m, vg_autoscaler_some(metadata)) {
        if (err == 0 && !vg_slice_eq(vg_json_key(m), VG_SLICE_LIT("annotations")))
            err = vg_json_object_add(a, ret, vg_json_key(m), m->value);
    }
    return err != 0 || all.n == 0 ? err : vg_autoscaler_set(a, ret, "annotations", all);
}

/* Each member of `from`, which is of the type Annotations, as a text. */
static int print_annotations(struct vg_arena *a, const struct vg_json *from, struct vg_json *ret)
{
    struct vg_json arranged;
    int err = vg_schema_arrange(a, annotations_type(), from, &arranged);
    *ret = vg_json_object();
    for (size_t i = 0; i < VG_ARRAY_LEN(annotations) && err == 0; i++) {
        const struct vg_json *v = vg_json_get_str(&arranged, annotations[i][0]);
        VG_AUTO(buf) out = {0};
        struct vg_slice kept;
        if (!v)
            continue;
        err = vg_json_write(&out, v, VG_JSON_ESCAPE_HTML);
        if (err == 0)
            err = vg_arena_keep(a, vg_buf_slice(&out), &kept);
        if (err == 0)
            err = vg_autoscaler_set(a, ret, annotations[i][1], vg_json_string_ref(kept));
    }
    return err;
}

/* An annotation as what it stands for; *ret NULL: there is none that can be read. */
static int read_annotation(struct vg_arena *a, const struct vg_json *metadata, size_t i,
                           const struct vg_json **ret)
{
    const struct vg_json *value =
        vg_json_get(vg_json_get_str(metadata, "annotations"), vg_slice_str(annotations[i][1]));
    struct vg_json *tree;
    *ret = NULL;
    if (!value)
        return 0;
    int err = vg_json_parse(a, vg_json_text(value), NULL, &tree, NULL);
    struct vg_json *holder = vg_arena_new(a, struct vg_json);
    if (!holder || err == -ENOMEM)
        return -ENOMEM;
    if (err < 0)
        return 0;
    *holder = vg_json_object();
    struct vg_json unknown = vg_json_array(), own = *tree;
    struct vg_status why;
    err = i == BEHAVIOR ? rename_keys(a, tree, 1, &own) : 0;
    if (err == 0)
        err = vg_autoscaler_set(a, holder, annotations[i][0], own);
    if (err == 0)
        err = vg_schema_decode(a, annotations_type(), holder, &unknown, &why);
    if (err == 0)
        *ret = vg_json_get_str(holder, annotations[i][0]);
    return err == -ENOMEM ? err : 0;
}

/* ---- v2 to v1 ---- */

/* What v1 has no field for. */
static int collect(struct vg_arena *a, const struct vg_json *from, struct vg_json *ret)
{
    const struct vg_json *spec = vg_json_get_str(from, "spec");
    const struct vg_json *status = vg_json_get_str(from, "status");
    const struct vg_json *behavior = vg_json_get_str(spec, "behavior");
    const struct vg_json *conditions = vg_json_get_str(status, "conditions");
    struct vg_json others = vg_json_array(), made;
    int err = 0;
    *ret = vg_json_object();
    VG_JSON_FOREACH_ITEM (it, vg_autoscaler_some(vg_json_get_str(spec, "metrics"))) {
        bool has_field =
            vg_autoscaler_is_cpu(it) && vg_json_at_path(it, "resource.target.averageUtilization");
        if (err == 0 && !has_field)
            err = vg_json_array_push(a, &others, *it);
    }
    if (err == 0)
        err = vg_autoscaler_metrics(a, false, true, &others, &made);
    if (err == 0)
        err = vg_autoscaler_set(a, ret, "metrics", made);
    if (err == 0)
        err =
            vg_autoscaler_metrics(a, true, true, vg_json_get_str(status, "currentMetrics"), &made);
    if (err == 0)
        err = vg_autoscaler_set(a, ret, "currentMetrics", made);
    if (err == 0 && conditions)
        err = vg_autoscaler_set(a, ret, "conditions", *conditions);
    if (err == 0 && behavior)
        err = rename_keys(a, behavior, 1, &made);
    return err != 0 || !behavior ? err : vg_autoscaler_set(a, ret, "behavior", made);
}

/* Of the first metric of CPU in a spec that has one, of the last one in a status. */
static const struct vg_json *utilization(const struct vg_json *list, bool is_status)
{
    const struct vg_json *found = NULL;
    VG_JSON_FOREACH_ITEM (it, vg_autoscaler_some(list)) {
        const struct vg_json *n =
            vg_json_at_path(it, is_status ? "resource.current.averageUtilization"
                                          : "resource.target.averageUtilization");
        if (!vg_autoscaler_is_cpu(it) || !n)
            continue;
        if (!is_status)
            return n;
        found = n;
    }
    return found;
}

/* v[name] without some members and with one more, if it is there. */
static int copy_part(struct vg_arena *a, const struct vg_json *v, const char *const *without,
                     const char *name, const struct vg_json *value, struct vg_json *ret)
{
    int err = 0;
    *ret = vg_json_object();
    VG_JSON_FOREACH_MEMBER (m, vg_autoscaler_some(v)) {
        bool is_left_out = false;
        for (const char *const *w = without; *w; w++)
            is_left_out |= vg_slice_eq(vg_json_key(m), vg_slice_str(*w));
        if (err == 0 && !is_left_out)
            err = vg_json_object_add(a, ret, vg_json_key(m), m->value);
    }
    return err != 0 || !value ? err : vg_autoscaler_set(a, ret, name, *value);
}

static int from_stored(struct vg_arena *a, const struct vg_json *from, struct vg_json *ret)
{
    static const char *const no_spec[] = {"metrics", "behavior", NULL};
    static const char *const no_status[] = {"currentMetrics", "conditions", NULL};
    const struct vg_json *spec = vg_json_get_str(from, "spec");
    const struct vg_json *status = vg_json_get_str(from, "status");
    struct vg_json collected, printed, part;
    *ret = vg_json_object();
    int err = collect(a, from, &collected);
    if (err == 0)
        err = print_annotations(a, &collected, &printed);
    if (err == 0)
        err = with_annotations(a, vg_json_get_str(from, "metadata"), &printed, &part);
    if (err == 0)
        err = vg_autoscaler_set(a, ret, "metadata", part);
    if (err == 0)
        err = copy_part(a, spec, no_spec, "targetCPUUtilizationPercentage",
                        utilization(vg_json_get_str(spec, "metrics"), false), &part);
    if (err == 0)
        err = vg_autoscaler_set(a, ret, "spec", part);
    if (err == 0)
        err = copy_part(a, status, no_status, "currentCPUUtilizationPercentage",
                        utilization(vg_json_get_str(status, "currentMetrics"), true), &part);
    return err != 0 ? err : vg_autoscaler_set(a, ret, "status", part);
}

/* ---- v1 to v2 ---- */

static int metrics_to_stored(struct vg_arena *a, const struct vg_json *metadata,
                             const struct vg_json *percentage, struct vg_json *spec)
{
    const struct vg_json *given = NULL;
    struct vg_json metrics = vg_json_array();
    int err = read_annotation(a, metadata, METRICS, &given);
    if (err == 0 && given)
        err = vg_autoscaler_metrics(a, false, false, given, &metrics);
    VG_JSON_FOREACH_ITEM (it, &metrics) {
        if (err == 0)
            err = vg_autoscaler_set_target_type(a, it);
    }
    if (err == 0 && percentage)
        err = vg_autoscaler_put_cpu(a, &metrics, "target", percentage, "Utilization");
    return err != 0 || metrics.n == 0 ? err : vg_autoscaler_set(a, spec, "metrics", metrics);
}

static int spec_to_stored(struct vg_arena *a, const struct vg_json *from, struct vg_json *ret)
{
    static const char *const without[] = {"targetCPUUtilizationPercentage", NULL};
    const struct vg_json *metadata = vg_json_get_str(from, "metadata");
    const struct vg_json *spec = vg_json_get_str(from, "spec"), *behavior = NULL;
    struct vg_json made;
    int err = copy_part(a, spec, without, NULL, NULL, ret);
    if (err == 0)
        err = metrics_to_stored(a, metadata, vg_json_get_str(spec, without[0]), ret);
    if (err == 0)
        err = read_annotation(a, metadata, BEHAVIOR, &behavior);
    if (err != 0 || !behavior)
        return err;
    err = rename_keys(a, behavior, 0, &made);
    return err != 0 || made.n == 0 ? err : vg_autoscaler_set(a, ret, "behavior", made);
}

static int status_to_stored(struct vg_arena *a, const struct vg_json *from, struct vg_json *ret)
{
    static const char *const without[] = {"currentCPUUtilizationPercentage", NULL};
    const struct vg_json *metadata = vg_json_get_str(from, "metadata");
    const struct vg_json *status = vg_json_get_str(from, "status");
    const struct vg_json *given = NULL, *conditions = NULL;
    const struct vg_json *percentage = vg_json_get_str(status, without[0]);
    struct vg_json metrics = vg_json_array();
    int err = copy_part(a, status, without, NULL, NULL, ret);
    if (err == 0)
        err = read_annotation(a, metadata, CURRENT_METRICS, &given);
    if (err == 0 && given)
        err = vg_autoscaler_metrics(a, true, false, given, &metrics);
    else if (err == 0 && percentage)
        err = vg_autoscaler_put_cpu(a, &metrics, "current", percentage, NULL);
    if (err == 0 && metrics.n)
        err = vg_autoscaler_set(a, ret, "currentMetrics", metrics);
    if (err == 0)
        err = read_annotation(a, metadata, CONDITIONS, &conditions);
    return err != 0 || !conditions ? err : vg_autoscaler_set(a, ret, "conditions", *conditions);
}

static int to_stored(struct vg_arena *a, const struct vg_json *from, struct vg_json *ret)
{
    struct vg_json part;
    *ret = vg_json_object();
    int err = with_annotations(a, vg_json_get_str(from, "metadata"), NULL, &part);
    if (err == 0)
        err = vg_autoscaler_set(a, ret, "metadata", part);
    if (err == 0)
        err = spec_to_stored(a, from, &part);
    if (err == 0)
        err = vg_autoscaler_set(a, ret, "spec", part);
    if (err == 0)
        err = status_to_stored(a, from, &part);
    return err != 0 ? err : vg_autoscaler_set(a, ret, "status", part);
}

const struct vg_conversion vg_conversion_autoscaler = {to_stored, from_stored};
