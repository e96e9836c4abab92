/* service_addresses.c - clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy of services: each for
 * itself, with one another, and what may become of them. */
#include "ip.h"
#include "service.h"

static const char *const families[] = {"IPv4", "IPv6", NULL};

/* The place of one item, with the whole list as what is blamed. */
static struct vg_at blame_list(const struct vg_at *list, size_t i)
{
    struct vg_at at = vg_at_item(list, i);
    at.v = list->v;
    return at;
}

static bool is_same(const struct vg_json *a, const struct vg_json *b)
{
    return vg_slice_eq(vg_json_text(a), vg_json_text(b));
}

static size_t count(const struct vg_json *list)
{
    return vg_json_is(list, VG_JSON_ARRAY) ? list->n : 0;
}

/* ---- one service ---- */

static void check_first(struct vg_check *c, const struct vg_at *spec)
{
    struct vg_at ip = vg_at(spec, "clusterIP"), ips = vg_at(spec, "clusterIPs");
    if (vg_at_text(&ip).n == 0 && vg_at_n(&ips))
        vg_bad(c, &ips, "must be empty when `clusterIP` is not specified");
    else if (vg_at_text(&ip).n && vg_at_n(&ips) == 0)
        vg_required(c, &ips, NULL);
    else if (vg_at_text(&ip).n && !is_same(ips.v->items, ip.v))
        vg_bad(c, &ips, "first value must match `clusterIP`");
}

static void check_families(struct vg_check *c, const struct vg_at *spec)
{
    static const char *const policies[] = {"PreferDualStack", "RequireDualStack", "SingleStack",
                                           NULL};
    struct vg_at list = vg_at(spec, "ipFamilies"), policy = vg_at(spec, "ipFamilyPolicy");
    unsigned seen = 0;
    VG_CHECK_EACH (c, family, &list) {
        unsigned bit = vg_at_is(&family, "IPv4") ? 1 : vg_at_is(&family, "IPv6") ? 2 : 4;
        (void)vg_check_one_of(c, &family, families);
        if (seen & bit && bit != 4)
            vg_duplicate(c, &family);
        seen |= bit;
    }
    if (vg_at_is_set(&policy))
        (void)vg_check_one_of(c, &policy, policies);
}

/* Each of them; false: one is so wrong that the rest would mislead. */
static bool check_ips(struct vg_check *c, const struct vg_at *ips, const struct vg_json *before)
{
    bool is_ok = true;
    VG_CHECK_EACH (c, ip, ips) {
        if (ip.index == 0 && vg_at_is(&ip, "None")) {
            if (vg_at_n(ips) > 1) {
                vg_bad(c, ips, "'None' must be the first and only value");
                is_ok = false;
            }
            continue;
        }
        is_ok = vg_check_ip_or_old(c, &ip, before) && is_ok;
    }
    if (vg_at_n(ips) > 2)
        vg_bad(c, ips, "may only hold up to 2 values");
    return is_ok;
}

static bool is_v6(const struct vg_json *ip)
{
    struct vg_ip parsed;
    return vg_ip_parse(vg_json_text(ip), &parsed) && !vg_ip_means_v4(&parsed);
}

/* More than one: both families. */
static void check_stacks(struct vg_check *c, const struct vg_at *ips)
{
    bool has[2] = {false, false};
    VG_CHECK_EACH (c, ip, ips)
        has[is_v6(ip.v)] = true;
    if (vg_at_n(ips) > 1 && (!has[0] || !has[1]))
        vg_bad(c, ips, "may specify no more than one IP for each IP family");
}

void vg_service_check_addresses(struct vg_check *c, const struct vg_at *spec,
                                const struct vg_json *before)
{
    struct vg_at ips = vg_at(spec, "clusterIPs"), list = vg_at(spec, "ipFamilies");
    if (vg_service_is(spec->v, "ExternalName"))
        return;
    check_first(c, spec);
    check_families(c, spec);
    if (!check_ips(c, &ips, before))
        return;
    check_stacks(c, &ips);
    for (uint32_t i = 0;
         !vg_service_is_headless(spec->v) && i < vg_at_n(&ips) && i < vg_at_n(&list); i++) {
        struct vg_at ip = vg_at_item(&ips, i), family = vg_at_item(&list, i);
        if ((vg_at_is(&family, "IPv4") && is_v6(ip.v)) ||
            (vg_at_is(&family, "IPv6") && !is_v6(ip.v)))
            vg_bad_text(c, &ip, "expected an %.*s value as indicated by `ipFamilies[%u]`",
                        VG_SLICE_ARG(vg_at_text(&family)), i);
    }
}

/* ---- updates ---- */

static void check_release(struct vg_check *c, const struct vg_at *spec, size_t n, const char *what)
{
    struct vg_at policy = vg_at(spec, "ipFamilyPolicy");
    if (n == 1 && !vg_at_is(&policy, "SingleStack"))
        vg_bad(c, &policy, "must be set to 'SingleStack' when releasing the secondary %s", what);
}

static void check_ips_update(struct vg_check *c, const struct vg_at *spec,
                             const struct vg_json *old)
{
    struct vg_at ips = vg_at(spec, "clusterIPs"), first = blame_list(&ips, 0);
    const struct vg_json *before = vg_json_get_str(old, "clusterIPs");
    size_t n = vg_at_n(&ips), n_before = count(before);
    for (uint32_t i = 0; n == n_before && i < n; i++)
        if (!is_same(&before->items[i], &ips.v->items[i])) {
            struct vg_at at = blame_list(&ips, i);
            vg_bad(c, &at, "may not change once set");
        }
    if (n == n_before)
        return;
    if (n == 0)
        vg_bad(c, &first, "primary clusterIP can not be unset");
    else if (n_before && !is_same(ips.v->items, before->items))
        vg_bad(c, &first, "may not change once set");
    if (n < n_before)
        check_release(c, spec, n, "clusterIP");
}

static void check_families_update(struct vg_check *c, const struct vg_at *spec,
                                  const struct vg_json *old)
{
    struct vg_at list = vg_at(spec, "ipFamilies"), first = blame_list(&list, 0);
    const struct vg_json *before = vg_json_get_str(old, "ipFamilies");
    const struct vg_json *ips = vg_json_get_str(spec->v, "clusterIPs");
    size_t n = vg_at_n(&list), n_before = count(before);
    for (uint32_t i = 0; n == n_before && i < n; i++)
        if (!is_same(&before->items[i], &list.v->items[i]))
            vg_bad(c, &first, "may not change once set");
    if (n == n_before)
        return;
    if (n < n_before && count(ips) == 0)
        vg_bad(c, &first, "primary ipFamily can not be unset");
    first.v = ips; /* as there */
    if (n && n_before && !is_same(list.v->items, before->items))
        vg_bad(c, &first, "may not change once set");
    if (n < n_before)
        check_release(c, spec, n, "ipFamily");
}

void vg_service_check_address_update(struct vg_check *c, const struct vg_at *spec,
                                     const struct vg_json *old)
{
    bool is_headless = vg_service_is_headless(spec->v), was_headless = vg_service_is_headless(old);
    if (vg_service_is(spec->v, "ExternalName") || vg_service_is(old, "ExternalName"))
        return;
    if (!is_headless || !was_headless)
        check_ips_update(c, spec, old);
    if (!is_headless && !was_headless)
        check_families_update(c, spec, old);
}
