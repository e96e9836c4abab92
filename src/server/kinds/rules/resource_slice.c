/* resource_slice.c - rules of resource slices.
 * Left out: features that are off in the original (attributes that are lists, resources of nodes);
 * what they would set is dropped. */
#include <stdio.h>

#include "base/buf.h"
#include "go_struct.h"
#include "pod.h"
#include "resource.h"
#include "resources.h"
#include "rules.h"
#include "server/kinds/types.h"
#include "storage.h"

#define GROUP "resource.k8s.io"
#define DEVICES_MAX 128u
#define DEVICES_WITH_MORE_MAX 64u /* with taints or counters */
#define ATTRIBUTES_MAX 32u        /* and capacities */
#define TAINTS_MAX 16u
#define COUNTER_SETS_MAX 8u
#define COUNTERS_MAX 32u
#define CONSUMPTIONS_MAX 2u
#define VALID_VALUES_MAX 10u

/* ---- what is off ---- */

static int prepare(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old)
{
    static const char *const lists[] = {"ints", "bools", "strings", "versions"};
    struct vg_json *devices = vg_json_get_str(vg_json_get_str(obj, "spec"), "devices");
    (void)a, (void)old;
    if (!devices)
        return 0;
    VG_JSON_FOREACH_ITEM (device, devices) {
        struct vg_json *attributes = vg_json_get_str(device, "attributes");
        (void)vg_json_object_remove(device, VG_SLICE_LIT("nodeAllocatableResourceMappings"));
        if (attributes)
            VG_JSON_FOREACH_MEMBER (m, attributes)
                for (size_t i = 0; i < VG_ARRAY_LEN(lists); i++)
                    (void)vg_json_object_remove(&m->value, vg_slice_str(lists[i]));
    }
    return 0;
}

/* ---- capacities ---- */

static void check_valid_values(struct vg_check *c, const struct vg_at *list,
                               const struct vg_quantity *capacity, const struct vg_at *def)
{
    struct vg_quantity last = {0}, q, wanted;
    struct vg_at whole = vg_at(list->up->up, "value");
    bool has_default = false;
    (void)vg_at_quantity(def, &wanted);
    VG_CHECK_EACH (c, value, list) {
        if (vg_at_quantity(&value, &q) && value.index && vg_quantity_cmp(&last, &q) > 0)
            vg_bad(c, &value, "values must be sorted in ascending order");
        last = q;
    }
    if (vg_at_n(list) > VALID_VALUES_MAX) {
        vg_too_many(c, list, vg_at_n(list), VALID_VALUES_MAX);
    } else {
        VG_CHECK_EACH (c, value, list) {
            (void)vg_at_quantity(&value, &q);
            if (vg_quantity_cmp(&q, capacity) > 0)
                vg_bad(c, &value, "option is larger than capacity value: %.*s",
                       VG_SLICE_ARG(vg_at_text(&whole)));
            has_default = has_default || vg_quantity_cmp(&q, &wanted) == 0;
        }
        vg_check_unique(c, list, NULL);
    }
    if (!has_default)
        vg_bad_value(c, list, vg_json_quoted(c, vg_at_text(def)),
                     "default value is not valid according to the requestPolicy");
}

static void check_step(struct vg_check *c, const struct vg_at *range, const struct vg_at *value)
{
    struct vg_at step = vg_at(range, "step"), min = vg_at(range, "min");
    struct vg_quantity q;
    int64_t by = 0, from = 0, n = 0;
    bool is_read = vg_at_quantity(&step, &q) && vg_quantity_scaled(&q, 0, &by, NULL) == 0 &&
                   vg_at_quantity(&min, &q) && vg_quantity_scaled(&q, 0, &from, NULL) == 0 &&
                   vg_at_quantity(value, &q) && vg_quantity_scaled(&q, 0, &n, NULL) == 0;
    if (is_read && by != 0 && (n - from) % by != 0)
        vg_bad_value(c, &step, vg_json_quoted(c, vg_at_text(value)),
                     "value is not a multiple of a given step (%.*s) from (%.*s)",
                     VG_SLICE_ARG(vg_at_text(&step)), VG_SLICE_ARG(vg_at_text(&min)));
}

/* a is larger than b: said of `at`, with a shown and b told. */
static void check_not_above(struct vg_check *c, const struct vg_at *at, const struct vg_at *a,
                            const struct vg_at *b, const struct vg_at *shown,
                            const struct vg_at *told, const char *what)
{
    struct vg_quantity x, y;
    if (vg_at_quantity(a, &x) && vg_at_quantity(b, &y) && vg_quantity_cmp(&x, &y) > 0)
        vg_bad_value(c, at, vg_json_quoted(c, vg_at_text(shown)), "%s: %.*s", what,
                     VG_SLICE_ARG(vg_at_text(told)));
}

static void check_one_step(struct vg_check *c, const struct vg_at *range, const struct vg_at *whole,
                           const struct vg_quantity *capacity)
{
    struct vg_at min = vg_at(range, "min"), step = vg_at(range, "step");
    struct vg_quantity sum, by;
    char room[VG_QUANTITY_TEXT_MAX];
    if (!vg_at_quantity(&min, &sum) || !vg_at_quantity(&step, &by) ||
        vg_quantity_add(&sum, &by) < 0 || vg_quantity_cmp(&sum, capacity) <= 0)
        return;
    sum.written.n = 0;
    vg_bad(c, &step, "one step %.*s is larger than capacity value: %.*s",
           VG_SLICE_ARG(vg_quantity_text(&sum, room)), VG_SLICE_ARG(vg_at_text(whole)));
}

static void check_range(struct vg_check *c, const struct vg_at *range, const struct vg_at *whole,
                        const struct vg_quantity *capacity, const struct vg_at *def)
{
    struct vg_at min = vg_at(range, "min"), max = vg_at(range, "max"), step = vg_at(range, "step");
    if (!vg_at_is_set(&min)) {
        vg_required(c, &min, "required when validRange is defined");
        return;
    }
    check_not_above(c, &min, &min, whole, &min, whole, "min is larger than capacity value");
    check_not_above(c, &min, &min, def, def, &min, "default is less than min");
    check_not_above(c, &max, &min, &max, &min, &max, "min is larger than max");
    check_not_above(c, &max, &max, whole, &max, whole, "max is larger than capacity value");
    check_not_above(c, &max, def, &max, def, &max, "default is more than max");
    if (!step.v)
        return;
    check_one_step(c, range, whole, capacity);
    check_step(c, range, def);
    if (max.v)
        check_step(c, range, &max);
}

static void check_policy(struct vg_check *c, const struct vg_at *capacity)
{
    struct vg_at whole = vg_at(capacity, "value"), policy = vg_at(capacity, "requestPolicy");
    struct vg_at values = vg_at(&policy, "validValues"), range = vg_at(&policy, "validRange");
    struct vg_at def = vg_at(&policy, "default");
    struct vg_quantity q;
    (void)vg_at_quantity(&whole, &q);
    if (vg_at_n(&values) && range.v)
        vg_forbidden(c, &policy,
                     "exactly one policy can be specified, cannot specify \"validValues\" and "
                     "\"validRange\" at the same time");
    else if ((vg_at_n(&values) || range.v) && !vg_at_is_set(&def))
        vg_required(c, &def, "required when %s is defined", range.v ? "validRange" : "validValues");
    else if (vg_at_n(&values))
        check_valid_values(c, &values, &q, &def);
    else if (range.v)
        check_range(c, &range, &whole, &q, &def);
}

/* ---- counters ---- */

static void check_counters(struct vg_check *c, const struct vg_at *holder, const char *name)
{
    struct vg_at set = vg_at(holder, name), counters = vg_at(holder, "counters");
    if (vg_check_given(c, &set))
        (void)vg_check_dns_label(c, &set);
    if (!vg_check_given(c, &counters))
        return;
    if (vg_at_n(&counters) > COUNTERS_MAX) {
        vg_too_many(c, &counters, vg_at_n(&counters), COUNTERS_MAX);
        return;
    }
    VG_JSON_FOREACH_MEMBER (m, counters.v) {
        struct vg_json key = vg_json_string_ref(vg_json_key(m));
        struct vg_at blamed = vg_at_of(holder, "counters", &key);
        (void)vg_check_dns_label(c, &blamed);
    }
}

static void check_counter_set(struct vg_check *c, const struct vg_at *at, const void *arg)
{
    (void)arg;
    check_counters(c, at, "name");
}

static void check_consumption(struct vg_check *c, const struct vg_at *at, const void *arg)
{
    (void)arg;
    check_counters(c, at, "counterSet");
}

/* ---- where it is ---- */

static const char *const places[] = {"nodeName", "nodeSelector", "allNodes",
                                     "perDeviceNodeSelection"};

static void blame_terms(struct vg_check *c, const struct vg_at *terms)
{
    const struct vg_schema_type *type =
        vg_schema_find(VG_SLICE_LIT(""), VG_SLICE_LIT("v1"), VG_SLICE_LIT("NodeSelectorTerm"));
    VG_AUTO(buf) b = {0};
    int r = vg_buf_append_byte(&b, '[');
    VG_CHECK_EACH (c, term, terms)
        if (r == 0)
            r = vg_buf_printf(&b, "%s%.*s", term.index ? "," : "",
                              VG_SLICE_ARG(vg_go_struct(c, type, term.v)));
    c->errors->failed |= r < 0 || vg_buf_append_byte(&b, ']') < 0;
    vg_bad_value(c, terms, vg_at_is_set(terms) ? vg_buf_slice(&b) : VG_SLICE_LIT("null"),
                 "must have exactly one node selector term");
}

/* The names between braces, as a text. */
static struct vg_slice braced(struct vg_check *c, struct vg_slice said)
{
    VG_AUTO(buf) b = {0};
    if (vg_buf_printf(&b, "{%.*s}", VG_SLICE_ARG(said)) < 0)
        c->errors->failed = true;
    return vg_json_quoted(c, vg_buf_slice(&b));
}

/* Those of the first n places that are said; how many. */
static size_t check_places(struct vg_check *c, const struct vg_at *at, size_t n, const char *empty,
                           struct vg_buf *said)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        struct vg_at place = vg_at(at, places[i]);
        if (!place.v)
            continue;
        if (i == 0 && vg_at_text(&place).n == 0) {
            vg_bad(c, &place, "%s", empty);
            continue;
        }
        if (i >= 2 && !vg_at_is_true(&place)) {
            vg_bad(c, &place, "must be either unset or set to true");
            continue;
        }
        if (i == 0)
            (void)vg_check_dns_subdomain(c, &place);
        if (i == 1)
            vg_check_node_selector(c, &place);
        struct vg_at terms = vg_at(&place, "nodeSelectorTerms");
        if (i == 1 && n == VG_ARRAY_LEN(places) && vg_at_n(&terms) != 1)
            blame_terms(c, &terms);
        if (vg_buf_printf(said, "%s`%s`", count ? ", " : "", places[i]) < 0)
            c->errors->failed = true;
        count++;
    }
    return count;
}

static void check_place_of_slice(struct vg_check *c, const struct vg_at *spec)
{
    static const char one[] = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, "
                              "`perDeviceNodeSelection` is required";
    VG_AUTO(buf) said = {0};
    size_t n = check_places(c, spec, VG_ARRAY_LEN(places),
                            "must be either unset or set to a non-empty string", &said);
    if (n == 0)
        vg_required(c, spec, "%s", one);
    else if (n > 1)
        vg_bad_value(c, spec, braced(c, vg_buf_slice(&said)), "%s, but multiple fields are set",
                     one);
}

static void check_place_of_device(struct vg_check *c, const struct vg_at *device,
                                  bool is_per_device)
{
    static const char one[] =
        "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required "
        "when `perDeviceNodeSelection` is set to true in the ResourceSlice "
        "spec";
    VG_AUTO(buf) said = {0};
    if (!is_per_device) {
        for (size_t i = 0; i < 3; i++)
            if (vg_json_get_str(device->v, places[i])) {
                vg_bad_value(c, device, VG_SLICE_LIT("null"),
                             "`nodeName`, `nodeSelector` and `allNodes` can only be set if "
                             "`perDeviceNodeSelection` is set to true in the ResourceSlice spec");
                return;
            }
        return;
    }
    size_t n = check_places(c, device, 3, "must not be empty", &said);
    if (n == 0)
        vg_required(c, device, "%s", one);
    else if (n > 1)
        vg_bad_value(c, device, braced(c, vg_buf_slice(&said)), "%s", one);
}

/* ---- devices ---- */

static void check_taint(struct vg_check *c, const struct vg_at *at, const void *arg)
{
    struct vg_at key = vg_at(at, "key"), value = vg_at(at, "value"), effect = vg_at(at, "effect");
    (void)arg;
    (void)vg_check_qualified(c, &key);
    if (vg_at_text(&value).n)
        (void)vg_check_label_value(c, &value);
    if (vg_check_given(c, &effect))
        (void)vg_check_one_of(c, &effect, vg_taint_effects);
}

static void check_named_values(struct vg_check *c, const struct vg_at *device)
{
    struct vg_at attributes = vg_at(device, "attributes"), capacity = vg_at(device, "capacity");
    struct vg_at multiple = vg_at(device, "allowMultipleAllocations");
    if (attributes.v)
        VG_JSON_FOREACH_MEMBER (m, attributes.v) {
            struct vg_at at = vg_at_key(&attributes, m);
            vg_check_device_name(c, &attributes, vg_json_key(m));
            vg_check_device_attribute(c, &at);
        }
    if (capacity.v)
        VG_JSON_FOREACH_MEMBER (m, capacity.v) {
            struct vg_at at = vg_at_key(&capacity, m), policy = vg_at(&at, "requestPolicy");
            vg_check_device_name(c, &capacity, vg_json_key(m));
            if (policy.v && !vg_at_is_true(&multiple))
                vg_forbidden(c, &policy, "allowMultipleAllocations must be true");
            else if (policy.v)
                check_policy(c, &at);
        }
}

/* arg: not NULL when each device says where it is. */
static void check_device(struct vg_check *c, const struct vg_at *at, const void *arg)
{
    struct vg_at name = vg_at(at, "name"), taints = vg_at(at, "taints");
    struct vg_at attributes = vg_at(at, "attributes"), capacity = vg_at(at, "capacity");
    struct vg_at counters = vg_at(at, "consumesCounters");
    size_t n = vg_at_n(&attributes) + vg_at_n(&capacity);
    char text[24];
    (void)vg_check_dns_label(c, &name);
    if (n > ATTRIBUTES_MAX)
        vg_bad_value(c, at, vg_slice(text, (size_t)snprintf(text, sizeof text, "%zu", n)),
                     "the total number of attributes and capacities must not exceed %u",
                     ATTRIBUTES_MAX);
    check_named_values(c, at);
    (void)vg_check_items(c, &taints, TAINTS_MAX, check_taint, NULL);
    if (vg_check_items(c, &counters, CONSUMPTIONS_MAX, check_consumption, NULL))
        vg_check_unique(c, &counters, "counterSet");
    check_place_of_device(c, at, arg != NULL);
    vg_check_binding_conditions(c, at);
}

static bool has_more(const struct vg_at *devices)
{
    VG_AT_FOREACH (device, devices) {
        struct vg_at taints = vg_at(&device, "taints");
        struct vg_at counters = vg_at(&device, "consumesCounters");
        if (vg_at_n(&taints) || vg_at_n(&counters))
            return true;
    }
    return false;
}

/* ---- ResourceSlice ---- */

static void check_pool(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at name = vg_at(at, "name"), count = vg_at(at, "resourceSliceCount");
    struct vg_at generation = vg_at(at, "generation");
    vg_check_pool_name(c, &name);
    (void)vg_check_positive(c, &count);
    if (vg_at_int(&generation) < 0)
        vg_bad_int(c, &generation, "must be greater than or equal to zero");
}

static void check_fixed(struct vg_check *c, const struct vg_at *spec, const struct vg_json *old)
{
    struct vg_at pool = vg_at(spec, "pool"), name = vg_at(&pool, "name");
    struct vg_at driver = vg_at(spec, "driver"), node = vg_at(spec, "nodeName");
    (void)vg_check_immutable(c, &name, vg_json_at_path(old, "spec.pool.name"));
    (void)vg_check_immutable(c, &driver, vg_json_at_path(old, "spec.driver"));
    (void)vg_check_immutable(c, &node, vg_json_at_path(old, "spec.nodeName"));
}

static void check_slice(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), driver = vg_at(&spec, "driver");
    struct vg_at pool = vg_at(&spec, "pool"), devices = vg_at(&spec, "devices");
    struct vg_at counters = vg_at(&spec, "sharedCounters");
    struct vg_at per_device = vg_at(&spec, "perDeviceNodeSelection");
    vg_check_csi_driver_name(c, &driver);
    check_pool(c, &pool);
    if (old)
        check_fixed(c, &spec, old);
    check_place_of_slice(c, &spec);
    if (counters.v && devices.v)
        vg_bad_value(c, &spec, VG_SLICE_LIT("\"\""),
                     "only one of `sharedCounters` or `devices` is allowed");
    if (vg_check_items(c, &devices, has_more(&devices) ? DEVICES_WITH_MORE_MAX : DEVICES_MAX,
                       check_device, vg_at_is_true(&per_device) ? obj : NULL))
        vg_check_unique(c, &devices, "name");
    if (vg_check_items(c, &counters, COUNTER_SETS_MAX, check_counter_set, NULL))
        vg_check_unique(c, &counters, "name");
}

static void check(struct vg_check *c, const struct vg_at *obj)
{
    check_slice(c, obj, NULL);
}

static void warn(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_slice driver = vg_json_text(vg_json_at_path(obj->v, "spec.driver"));
    (void)old;
    for (size_t i = 0; i < driver.n; i++)
        if (driver.p[i] >= 'A' && driver.p[i] <= 'Z') {
            vg_caution(c,
                       "spec.driver: driver names should be lowercase; \"%.*s\" contains "
                       "uppercase characters",
                       VG_SLICE_ARG(driver));
            return;
        }
}

const struct vg_rules vg_rules_resource_slice = {
    .group = GROUP,
    .kind = "ResourceSlice",
    .prepare = prepare,
    .check = check,
    .check_update = check_slice,
    .warn = warn,
};
