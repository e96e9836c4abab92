/* cache_sizes.c - --watch-cache, --default-watch-cache-size and --watch-cache-sizes. Sizes adjust
 * themselves, as in kube-apiserver: of a size it counts only whether it is 0. */
#include "daemon_int.h"
#include "server/kinds/kinds.h"

static const struct vg_kind *find_kind(struct vg_slice qualified)
{
    size_t n;
    const struct vg_kind *kinds = vg_kinds(&n);
    for (size_t i = 0; i < n; i++) {
        if (vg_slice_eq(qualified, vg_slice_str(vg_kind_qualified(&kinds[i]))))
            return &kinds[i];
    }
    return NULL;
}

/* One of the list: resource[.group]#size. */
static int read_one(struct vg_slice item, bool *uncached, struct vg_status *reterr_status)
{
    const char *hash = memchr(item.p, '#', item.n);
    size_t name_n = hash ? (size_t)(hash - item.p) : item.n;
    size_t digits = hash ? strspn(hash + 1, "0123456789") : 0;
    if (digits == 0 || digits > 9 || digits != item.n - name_n - 1)
        return vg_fail(reterr_status, VIGIL_E_INVALID,
                       "--watch-cache-sizes: '%.*s' is not resource[.group]#size, as in pods#1000",
                       VG_SLICE_ARG(item));
    const struct vg_kind *kind = find_kind(vg_slice(item.p, name_n));
    if (!kind)
        return vg_fail(reterr_status, VIGIL_E_INVALID,
                       "--watch-cache-sizes: there is no resource '%.*s'; names are as in pods or "
                       "deployments.apps",
                       (int)name_n, item.p);
    uncached[vg_kind_index(kind)] =
        strspn(hash + 1, "0") == digits || vg_kind_is(kind, VG_KIND_UNCACHED);
    return 0;
}

int vg_cache_sizes_read(const struct vg_config *c, bool *uncached, struct vg_status *reterr_status)
{
    size_t n;
    (void)vg_kinds(&n);
    for (size_t i = 0; i < n; i++)
        uncached[i] = !c->watch_cache || c->watch_cache_size == 0;
    if (!c->watch_cache)
        return 0;
    for (const char *p = c->watch_cache_sizes; p && *p;) {
        size_t item = strcspn(p, ",");
        int r = read_one(vg_slice(p, item), uncached, reterr_status);
        if (r < 0)
            return r;
        p += item + (p[item] == ',');
    }
    return 0;
}
