/* kinds.c - the table, put together from the groups' rows, and how to find a row in it.
 * K1 (kinds.h) makes a lookup a binary search; the rows of a group and version lie together. */
#include "kinds.h"

#include "rows.h"

const struct vg_kind_scale vg_scale_by_selector = {
    .spec_replicas = "spec.replicas",
    .status_replicas = "status.replicas",
    .selector = "spec.selector",
};
const struct vg_kind_scale vg_scale_by_map = {
    .spec_replicas = "spec.replicas",
    .status_replicas = "status.replicas",
    .selector = "spec.selector",
    .selector_is_map = true,
};

#define EMPTY_NODE_STATUS                                                                          \
    "{\"daemonEndpoints\":{\"kubeletEndpoint\":{\"Port\":0}},\"nodeInfo\":{\"machineID\":\"\","    \
    "\"systemUUID\":\"\",\"bootID\":\"\",\"kernelVersion\":\"\",\"osImage\":\"\","                 \
    "\"containerRuntimeVersion\":\"\",\"kubeletVersion\":\"\",\"kubeProxyVersion\":\"\","          \
    "\"operatingSystem\":\"\",\"architecture\":\"\"}}"
#define EMPTY_DAEMONSET_STATUS                                                                     \
    "{\"currentNumberScheduled\":0,\"numberMisscheduled\":0,\"desiredNumberScheduled\":0,"         \
    "\"numberReady\":0}"

/* By group, then as each file has them (K1). */
static const struct vg_kind table[] = {
#include "core.def"

#include "apps.def"

#include "batch.def"

#include "coordination.def"
};

/* In the order of kube-apiserver's /apis. */
static const struct vg_group groups[] = {
    {.name = "apps", .versions = LIST("v1")},
    {.name = "batch", .versions = LIST("v1")},
    {.name = "coordination.k8s.io", .versions = LIST("v1")},
};
static const struct vg_group core_group = {.name = "", .versions = LIST("v1")};

const struct vg_kind *vg_kinds(size_t *ret_n)
{
    *ret_n = VG_ARRAY_LEN(table);
    return table;
}

static int compare(const struct vg_kind *kind, struct vg_slice group, struct vg_slice version,
                   struct vg_slice resource)
{
    int c = vg_slice_cmp(vg_slice_str(kind->group), group);
    if (c == 0)
        c = vg_slice_cmp(vg_slice_str(kind->version), version);
    return c ? c : vg_slice_cmp(vg_slice_str(kind->resource), resource);
}

/* The first row that is not before these names. */
static size_t lower_bound(struct vg_slice group, struct vg_slice version, struct vg_slice resource)
{
    size_t low = 0, high = VG_ARRAY_LEN(table);
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (compare(&table[mid], group, version, resource) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

const struct vg_kind *vg_kinds_of(struct vg_slice group, struct vg_slice version, size_t *ret_n)
{
    size_t first = lower_bound(group, version, vg_slice("", 0)), end = first;
    while (end < VG_ARRAY_LEN(table) && vg_slice_eq(vg_slice_str(table[end].group), group) &&
           vg_slice_eq(vg_slice_str(table[end].version), version))
        end++;
    *ret_n = end - first;
    return end > first ? &table[first] : NULL;
}

const struct vg_kind *vg_kind_find(struct vg_slice group, struct vg_slice version,
                                   struct vg_slice resource)
{
    size_t i = lower_bound(group, version, resource);
    bool is_found = i < VG_ARRAY_LEN(table) && compare(&table[i], group, version, resource) == 0;
    return is_found ? &table[i] : NULL;
}

const struct vg_kind *vg_kind_find_kind(struct vg_slice group, struct vg_slice version,
                                        struct vg_slice kind)
{
    size_t n;
    const struct vg_kind *rows = vg_kinds_of(group, version, &n);
    for (size_t i = 0; i < n; i++)
        if (vg_slice_eq(vg_slice_str(rows[i].kind), kind))
            return &rows[i];
    return NULL;
}

size_t vg_kind_index(const struct vg_kind *kind)
{
    return (size_t)(kind - table);
}

const struct vg_kind_sub *vg_kind_sub(const struct vg_kind *kind, struct vg_slice name)
{
    for (size_t i = 0; i < kind->n_subs; i++)
        if (vg_slice_eq(vg_slice_str(kind->subs[i].name), name))
            return &kind->subs[i];
    return NULL;
}

const char *vg_kind_api_version(const struct vg_kind *kind)
{
    return kind->api_version;
}

const char *vg_kind_qualified(const struct vg_kind *kind)
{
    return kind->qualified;
}

const char *vg_verb_name(enum vg_verb verb)
{
    switch (verb) {
    case VG_VERB_CREATE:
        return "create";
    case VG_VERB_DELETE:
        return "delete";
    case VG_VERB_DELETECOLLECTION:
        return "deletecollection";
    case VG_VERB_GET:
        return "get";
    case VG_VERB_LIST:
        return "list";
    case VG_VERB_PATCH:
        return "patch";
    case VG_VERB_UPDATE:
        return "update";
    case VG_VERB_WATCH:
        return "watch";
    }
    return "";
}

/* ---- groups ---- */

const struct vg_group *vg_groups(size_t *ret_n)
{
    *ret_n = VG_ARRAY_LEN(groups);
    return groups;
}

const struct vg_group *vg_group_find(struct vg_slice name)
{
    if (name.n == 0)
        return &core_group;
    for (size_t i = 0; i < VG_ARRAY_LEN(groups); i++)
        if (vg_slice_eq(vg_slice_str(groups[i].name), name))
            return &groups[i];
    return NULL;
}
