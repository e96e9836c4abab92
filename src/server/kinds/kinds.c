/* kinds.c - how to find a row in the table of kinds.
 * K1 (kinds.h) makes a lookup a binary search; the rows of a group and version lie together. */
#include "kinds.h"

#include "merge.h"
#include "rows.h"
#include "types.h"

const struct vg_kind *vg_kinds(size_t *ret_n)
{
    *ret_n = vg_kind_rows_n;
    return vg_kind_rows;
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
    size_t low = 0, high = vg_kind_rows_n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (compare(&vg_kind_rows[mid], group, version, resource) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

const struct vg_kind *vg_kinds_of(struct vg_slice group, struct vg_slice version, size_t *ret_n)
{
    size_t first = lower_bound(group, version, vg_slice("", 0)), end = first;
    while (end < vg_kind_rows_n && vg_slice_eq(vg_slice_str(vg_kind_rows[end].group), group) &&
           vg_slice_eq(vg_slice_str(vg_kind_rows[end].version), version))
        end++;
    *ret_n = end - first;
    return end > first ? &vg_kind_rows[first] : NULL;
}

static bool is_row(const struct vg_kind *kind, struct vg_slice group, struct vg_slice version,
                   struct vg_slice resource)
{
    return vg_slice_eq(vg_slice_str(kind->resource), resource) &&
           vg_slice_eq(vg_slice_str(kind->group), group) &&
           vg_slice_eq(vg_slice_str(kind->version), version);
}

/* Most requests of a thread are for a few kinds: each remembers what it found last, by a hash of
 * the name. */
const struct vg_kind *vg_kind_find(struct vg_slice group, struct vg_slice version,
                                   struct vg_slice resource)
{
    static _Thread_local const struct vg_kind *recent[16];
    if (resource.n == 0)
        return NULL;
    unsigned slot = ((unsigned)resource.n + (unsigned char)resource.p[0]) % VG_ARRAY_LEN(recent);
    if (recent[slot] && is_row(recent[slot], group, version, resource))
        return recent[slot];
    size_t i = lower_bound(group, version, resource);
    if (i == vg_kind_rows_n || !is_row(&vg_kind_rows[i], group, version, resource))
        return NULL;
    recent[slot] = &vg_kind_rows[i];
    return recent[slot];
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
    return (size_t)(vg_kind_stored(kind) - vg_kind_rows);
}

const struct vg_schema_type *vg_kind_type(const struct vg_kind *kind)
{
    return kind->type;
}

const struct vg_merge_schema *vg_kind_merge_schema(const struct vg_kind *kind)
{
    return kind->merge;
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
    *ret_n = vg_group_rows_n - 1;
    return vg_group_rows;
}

const struct vg_group *vg_group_find(struct vg_slice name)
{
    for (size_t i = 0; i < vg_group_rows_n; i++)
        if (vg_slice_eq(vg_slice_str(vg_group_rows[i].name), name))
            return &vg_group_rows[i];
    return NULL;
}
