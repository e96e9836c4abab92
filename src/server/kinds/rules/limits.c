/* limits.c - the rules of limit ranges: the types, names and amounts of limits, and how the amounts
 * must stand to each other. */
#include "names.h"
#include "resources.h"
#include "rules.h"

static bool has_slash(struct vg_slice s)
{
    return s.n && memchr(s.p, '/', s.n);
}

static void check_type(struct vg_check *c, const struct vg_at *at)
{
    if (vg_check_qualified(c, at) && !has_slash(vg_at_text(at)) && !vg_at_is(at, "Pod") &&
        !vg_at_is(at, "Container") && !vg_at_is(at, "PersistentVolumeClaim"))
        vg_bad_text(c, at, "must be a standard limit type or fully qualified");
}

static bool is_for_containers(const struct vg_at *type)
{
    return vg_at_is(type, "Pod") || vg_at_is(type, "Container");
}

static bool is_container_resource(struct vg_slice name)
{
    return vg_slice_eq(name, VG_SLICE_LIT("cpu")) || vg_slice_eq(name, VG_SLICE_LIT("memory")) ||
           vg_slice_eq(name, VG_SLICE_LIT("ephemeral-storage")) || vg_resource_is_huge(name);
}

/* The names of one map of a limit. */
static void check_names(struct vg_check *c, const struct vg_at *map, const struct vg_at *type)
{
    for (uint32_t i = 0; i < vg_at_n(map); i++) {
        const struct vg_json_member *m = &map->v->members[i];
        struct vg_at at = vg_at_key(map, m);
        struct vg_slice name = vg_json_key(m);
        (void)vg_check_resource_name(c, &at, name);
        if (!is_for_containers(type))
            continue;
        if (!has_slash(name) && !is_container_resource(name))
            vg_bad_value(c, &at, vg_json_quoted(c, name),
                         "must be a standard resource for containers");
        else if (has_slash(name) && !vg_resource_is_native(name) && !vg_resource_is_extended(name))
            vg_bad_value(c, &at, vg_json_quoted(c, name),
                         "doesn't follow extended resource name standard");
    }
}

/* ---- how amounts stand to each other ---- */

/* One of the amounts of a resource in a limit. */
struct amount {
    struct vg_at at;
    struct vg_quantity q;
    bool is_there;
};

/* The five maps of a limit. */
enum { MAX, MIN, DEFAULT, REQUEST, RATIO, MAPS };
static const char *const map_names[MAPS] = {"max", "min", "default", "defaultRequest",
                                            "maxLimitRequestRatio"};
struct maps {
    struct vg_at at[MAPS];
    struct vg_json_lookup lookup[MAPS];
};

static struct amount amount_of(struct vg_check *c, struct maps *maps, size_t i,
                               struct vg_slice name)
{
    struct amount a = {.at = {.up = &maps->at[i],
                              .v = vg_check_find(c, &maps->lookup[i], name, UINT32_MAX),
                              .key = name,
                              .step = VG_AT_KEY}};
    a.is_there = vg_at_quantity(&a.at, &a.q);
    return a;
}

/* low must not be above high; `at` is blamed, with the value of `shown`. */
static void check_order(struct vg_check *c, const struct amount *low, const char *low_name,
                        const struct amount *high, const char *high_name, const struct amount *at,
                        const struct amount *shown)
{
    if (!low->is_there || !high->is_there || vg_quantity_cmp(&low->q, &high->q) <= 0)
        return;
    vg_bad_value(c, &at->at, vg_json_quoted(c, vg_at_text(&shown->at)),
                 "%s value %.*s is greater than %s value %.*s", low_name,
                 VG_SLICE_ARG(vg_at_text(&low->at)), high_name,
                 VG_SLICE_ARG(vg_at_text(&high->at)));
}

/* In thousandths, or in whole ones when one of them is too large for that. */
static double ratio_of(const struct vg_quantity *a, const struct vg_quantity *b, int32_t scale)
{
    int64_t x = INT64_MAX, y = INT64_MAX;
    if (vg_quantity_scaled(a, scale, &x, NULL) < 0 || vg_quantity_scaled(b, scale, &y, NULL) < 0)
        return 0;
    return (double)x / (double)y;
}

static void check_ratio(struct vg_check *c, const struct amount *ratio, const struct amount *min,
                        const struct amount *max)
{
    struct vg_quantity one = vg_quantity_of(1, 0, VG_QUANTITY_DECIMAL);
    int64_t milli = 0;
    if (!ratio->is_there)
        return;
    struct vg_slice text = vg_at_text(&ratio->at);
    if (vg_quantity_cmp(&ratio->q, &one) < 0)
        vg_bad_text(c, &ratio->at, "ratio %.*s is less than 1", VG_SLICE_ARG(text));
    if (!min->is_there || !max->is_there)
        return;
    bool is_fine = vg_quantity_scaled(&ratio->q, -3, &milli, NULL) == 0 &&
                   vg_quantity_scaled(&min->q, -3, &(int64_t){0}, NULL) == 0 &&
                   vg_quantity_scaled(&max->q, -3, &(int64_t){0}, NULL) == 0;
    double most = ratio_of(&max->q, &min->q, is_fine ? -3 : 0);
    double asked = is_fine ? (double)milli / 1000 : ratio_of(&ratio->q, &one, 0);
    if (asked > most)
        vg_bad_text(c, &ratio->at, "ratio %.*s is greater than max/min = %f", VG_SLICE_ARG(text),
                    most);
}

static void check_resource(struct vg_check *c, struct maps *maps, struct vg_slice name)
{
    struct amount min = amount_of(c, maps, MIN, name), max = amount_of(c, maps, MAX, name);
    struct amount def = amount_of(c, maps, DEFAULT, name);
    struct amount request = amount_of(c, maps, REQUEST, name);
    struct amount ratio = amount_of(c, maps, RATIO, name);
    check_order(c, &min, "min", &max, "max", &min, &min);
    check_order(c, &min, "min", &request, "default request", &request, &request);
    check_order(c, &request, "default request", &max, "max", &request, &request);
    check_order(c, &request, "default request", &def, "default limit", &request, &request);
    check_order(c, &min, "min", &def, "default", &def, &min);
    check_order(c, &def, "default", &max, "max", &def, &max);
    check_ratio(c, &ratio, &min, &max);
    if (!vg_resource_may_overcommit(name) && def.is_there && request.is_there &&
        vg_quantity_cmp(&def.q, &request.q) != 0)
        vg_bad_text(c, &request.at,
                    "default value %.*s must equal to defaultRequest value %.*s in %.*s",
                    VG_SLICE_ARG(vg_at_text(&def.at)), VG_SLICE_ARG(vg_at_text(&request.at)),
                    VG_SLICE_ARG(name));
}

/* ---- limits ---- */

static void check_claim_limit(struct vg_check *c, const struct vg_at *limit)
{
    struct vg_at min = vg_at(limit, "min"), max = vg_at(limit, "max"),
                 limits = vg_at(limit, "limits");
    if (!vg_json_get_str(min.v, "storage") && !vg_json_get_str(max.v, "storage"))
        vg_required(
            c, &limits,
            "either minimum or maximum storage value is required, but neither was provided");
}

/* Each resource that any of the maps has, once. */
static void check_resources(struct vg_check *c, const struct vg_at *limit, bool is_of_pods)
{
    struct maps maps;
    VG_AUTO(names) seen = {.n = 0};
    for (size_t i = 0; i < MAPS; i++) {
        bool is_default = i == DEFAULT || i == REQUEST;
        maps.at[i] = vg_at(limit, map_names[i]);
        /* Forbidden there, and not looked at. */
        vg_json_lookup_init(&maps.lookup[i], is_of_pods && is_default ? NULL : maps.at[i].v);
    }
    for (size_t i = 0; i < MAPS; i++)
        for (uint32_t k = 0; k < vg_at_n(&maps.at[i]); k++) {
            struct vg_slice name = vg_json_key(&maps.at[i].v->members[k]);
            if (vg_names_add(c, &seen, name, NULL))
                check_resource(c, &maps, name);
        }
    for (size_t i = 0; i < MAPS; i++)
        vg_json_lookup_done(&maps.lookup[i]);
}

static void check_limit(struct vg_check *c, const struct vg_at *limit)
{
    struct vg_at type = vg_at(limit, "type");
    bool is_of_pods = vg_at_is(&type, "Pod");
    for (size_t i = 0; i < MAPS; i++) {
        struct vg_at map = vg_at(limit, map_names[i]);
        bool is_default = i == DEFAULT || i == REQUEST;
        if (i == RATIO && vg_at_is(&type, "PersistentVolumeClaim"))
            check_claim_limit(c, limit);
        if (!is_default || !is_of_pods)
            check_names(c, &map, &type);
        else if (vg_at_n(&map))
            vg_forbidden(c, &map, "may not be specified when `type` is 'Pod'");
    }
    check_resources(c, limit, is_of_pods);
}

static void check(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at spec = vg_at(obj, "spec"), limits = vg_at(&spec, "limits");
    VG_AUTO(names) types = {.n = 0};
    VG_CHECK_EACH (c, limit, &limits) {
        struct vg_at type = vg_at(&limit, "type");
        check_type(c, &type);
        if (!vg_names_add(c, &types, vg_at_text(&type), limit.v))
            vg_duplicate(c, &type);
        check_limit(c, &limit);
    }
}

static void check_update(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    (void)old;
    check(c, obj);
}

const struct vg_rules vg_rules_limit_range = {
    .group = "", .kind = "LimitRange", .check = check, .check_update = check_update};
