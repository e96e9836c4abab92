/* autoscaler_metrics.c - metrics of autoscaling/v2 as v1 has them in its annotations, and back. */
#include "autoscaler_metrics.h"

#include <errno.h>
#include <string.h>

#include "rules/check.h"

/* Where v2 and v1 have a value of a metric; in a status "current" stands for "target". */
static const struct field {
    const char *member, *v2, *v1;
} fields[] = {
    {"resource", "name", "name"},
    {"resource", "target.averageUtilization", "targetAverageUtilization"},
    {"resource", "target.averageValue", "targetAverageValue"},
    {"containerResource", "name", "name"},
    {"containerResource", "target.averageUtilization", "targetAverageUtilization"},
    {"containerResource", "target.averageValue", "targetAverageValue"},
    {"containerResource", "container", "container"},
    {"pods", "metric.name", "metricName"},
    {"pods", "target.averageValue", "targetAverageValue"},
    {"pods", "metric.selector", "selector"},
    {"object", "describedObject", "target"},
    {"object", "metric.name", "metricName"},
    {"object", "target.value", "targetValue"},
    {"object", "metric.selector", "selector"},
    {"object", "target.averageValue", "averageValue"},
    {"external", "metric.name", "metricName"},
    {"external", "metric.selector", "metricSelector"},
    {"external", "target.value", "targetValue"},
    {"external", "target.averageValue", "targetAverageValue"},
};
static const struct field status_fields[] = {
    {"resource", "name", "name"},
    {"resource", "current.averageUtilization", "currentAverageUtilization"},
    {"resource", "current.averageValue", "currentAverageValue"},
    {"containerResource", "name", "name"},
    {"containerResource", "current.averageUtilization", "currentAverageUtilization"},
    {"containerResource", "current.averageValue", "currentAverageValue"},
    {"containerResource", "container", "container"},
    {"pods", "metric.name", "metricName"},
    {"pods", "current.averageValue", "currentAverageValue"},
    {"pods", "metric.selector", "selector"},
    {"object", "describedObject", "target"},
    {"object", "metric.name", "metricName"},
    {"object", "current.value", "currentValue"},
    {"object", "metric.selector", "selector"},
    {"object", "current.averageValue", "averageValue"},
    {"external", "metric.name", "metricName"},
    {"external", "metric.selector", "metricSelector"},
    {"external", "current.value", "currentValue"},
    {"external", "current.averageValue", "currentAverageValue"},
};

static struct vg_json text(const char *s)
{
    return vg_json_string_ref(vg_slice_str(s));
}

/* The object below v, made when it is not there; NULL: no memory. */
static struct vg_json *below(struct vg_arena *a, struct vg_json *v, struct vg_slice key)
{
    struct vg_json *found = vg_json_get(v, key);
    if (found)
        return found;
    return vg_json_object_set(a, v, key, vg_json_object()) < 0 ? NULL : vg_json_get(v, key);
}

/* At a path of one or two names. */
static int set_at(struct vg_arena *a, struct vg_json *v, const char *path, struct vg_json value)
{
    const char *dot = strchr(path, '.');
    struct vg_json *in = dot ? below(a, v, vg_slice(path, (size_t)(dot - path))) : v;
    return in ? vg_autoscaler_set(a, in, dot ? dot + 1 : path, value) : -ENOMEM;
}

/* One metric, either way. */
static int convert_metric(struct vg_arena *a, const struct field *table, size_t n, bool is_v2,
                          const struct vg_json *from, struct vg_json *ret)
{
    const struct vg_json *type = vg_json_get_str(from, "type");
    *ret = vg_json_object();
    int err = type ? vg_autoscaler_set(a, ret, "type", *type) : 0;
    for (size_t i = 0; i < n && err == 0; i++) {
        const struct vg_json *source = vg_json_get_str(from, table[i].member);
        const struct vg_json *value = vg_json_at_path(source, is_v2 ? table[i].v2 : table[i].v1);
        struct vg_json *into = source ? below(a, ret, vg_slice_str(table[i].member)) : NULL;
        if (source && !into)
            err = -ENOMEM;
        else if (value)
            err = set_at(a, into, is_v2 ? table[i].v1 : table[i].v2, *value);
    }
    return err;
}

int vg_autoscaler_metrics(struct vg_arena *a, bool is_status, bool is_v2,
                          const struct vg_json *list, struct vg_json *ret)
{
    const struct field *table = is_status ? status_fields : fields;
    size_t n = is_status ? VG_ARRAY_LEN(status_fields) : VG_ARRAY_LEN(fields);
    int err = 0;
    *ret = vg_json_array();
    VG_JSON_FOREACH_ITEM (it, vg_autoscaler_some(list)) {
        struct vg_json made = vg_json_null();
        if (err == 0)
            err = convert_metric(a, table, n, is_v2, it, &made);
        if (err == 0)
            err = vg_json_array_push(a, ret, made);
    }
    return err;
}

int vg_autoscaler_set_target_type(struct vg_arena *a, struct vg_json *metric)
{
    static const char *const members[] = {"resource", "containerResource", "pods", "object",
                                          "external"};
    int err = 0;
    for (size_t i = 0; i < VG_ARRAY_LEN(members) && err == 0; i++) {
        struct vg_json *source = vg_json_get_str(metric, members[i]);
        if (!source)
            continue;
        struct vg_json *target = below(a, source, VG_SLICE_LIT("target"));
        if (!target)
            return -ENOMEM;
        bool has_average = vg_json_get_str(target, "averageValue");
        if (strcmp(members[i], "object") == 0 && has_average)
            (void)vg_json_object_remove(target, VG_SLICE_LIT("value"));
        const char *type = vg_json_get_str(target, "averageUtilization") ? "Utilization"
                           : vg_json_get_str(target, "value")            ? "Value"
                                                                         : "AverageValue";
        err = vg_autoscaler_set(a, target, "type", text(type));
    }
    return err;
}

bool vg_autoscaler_is_cpu(const struct vg_json *metric)
{
    return vg_slice_eq(vg_json_text(vg_json_get_str(metric, "type")), VG_SLICE_LIT("Resource")) &&
           vg_slice_eq(vg_json_text(vg_json_at_path(metric, "resource.name")), VG_SLICE_LIT("cpu"));
}

int vg_autoscaler_put_cpu(struct vg_arena *a, struct vg_json *list, const char *where,
                          const struct vg_json *n, const char *type)
{
    struct vg_json value = vg_json_object(), source = vg_json_object(), metric = vg_json_object();
    int err = type ? vg_autoscaler_set(a, &value, "type", text(type)) : 0;
    if (err == 0)
        err = vg_autoscaler_set(a, &value, "averageUtilization", *n);
    if (err == 0)
        err = vg_autoscaler_set(a, &source, "name", text("cpu"));
    if (err == 0)
        err = vg_autoscaler_set(a, &source, where, value);
    if (err == 0)
        err = vg_autoscaler_set(a, &metric, "type", text("Resource"));
    if (err == 0)
        err = vg_autoscaler_set(a, &metric, "resource", source);
    return err != 0 ? err : vg_json_array_push(a, list, metric);
}
