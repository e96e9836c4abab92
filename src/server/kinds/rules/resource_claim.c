/* resource_claim.c - rules of resource claims, their templates, and device classes.
 * Left out: whether selectors compile (there is no CEL here); whether the writer may ask for
 * administrative access; of a claim's status the devices. */
#include "cel.h"
#include "go_struct.h"
#include "pod.h"
#include "resource.h"
#include "resources.h"
#include "rules.h"
#include "storage.h"

#define GROUP "resource.k8s.io"
#define REQUESTS_MAX 32u
#define CONSTRAINTS_MAX 32u
#define CONFIG_MAX 32u
#define SELECTORS_MAX 32u
#define FIRST_AVAILABLE_MAX 8u
#define EXPRESSION_MAX 10240u
#define RESERVED_MAX 256u

/* ---- requests ---- */

static void check_selector(struct vg_check *c, const struct vg_at *at, const void *arg)
{
    static const char *const variables[] = {"device", NULL};
    static const struct vg_cel_use use = {variables, "bool",
                                          "must evaluate to bool or the unknown type, not "};
    struct vg_at cel = vg_at(at, "cel"), expression = vg_at(&cel, "expression");
    (void)arg;
    if (!cel.v)
        vg_required(c, &cel, NULL);
    else if (vg_at_text(&expression).n > EXPRESSION_MAX)
        vg_too_long(c, &expression, EXPRESSION_MAX);
    else
        vg_check_cel(c, &expression, &use, NULL);
}

static void check_toleration(struct vg_check *c, const struct vg_at *at)
{
    static const char *const operators[] = {"Equal", "Exists", NULL};
    struct vg_at key = vg_at(at, "key"), operator= vg_at(at, "operator");
    struct vg_at value = vg_at(at, "value"), effect = vg_at(at, "effect");
    if (vg_at_text(&key).n)
        (void)vg_check_qualified(c, &key);
    if (vg_at_is(&operator, "Exists")) {
        if (vg_at_text(&value).n)
            vg_bad(c, &value, "must be empty for operator `Exists`");
    } else if (vg_check_given(c, &operator) && vg_check_one_of(c, &operator, operators)) {
        (void)vg_check_label_value(c, &value);
    }
    if (vg_at_text(&effect).n)
        (void)vg_check_one_of(c, &effect, vg_taint_effects);
}

/* What an exact request and one of several to choose from have alike. */
static void check_any_request(struct vg_check *c, const struct vg_at *at)
{
    static const char *const modes[] = {"All", "ExactCount", NULL};
    struct vg_at class = vg_at(at, "deviceClassName"), selectors = vg_at(at, "selectors");
    struct vg_at mode = vg_at(at, "allocationMode"), count = vg_at(at, "count");
    struct vg_at tolerations = vg_at(at, "tolerations");
    if (vg_check_given(c, &class))
        (void)vg_check_dns_subdomain(c, &class);
    (void)vg_check_items(c, &selectors, SELECTORS_MAX, check_selector, NULL);
    if (vg_at_is(&mode, "All")) {
        if (vg_at_int(&count) != 0)
            vg_bad_int(c, &count, "must not be specified when allocationMode is 'All'");
    } else if (vg_check_one_of(c, &mode, modes)) {
        (void)vg_check_positive(c, &count);
    }
    VG_CHECK_EACH (c, toleration, &tolerations)
        check_toleration(c, &toleration);
}

static void check_sub_request(struct vg_check *c, const struct vg_at *at, const void *arg)
{
    struct vg_at name = vg_at(at, "name");
    (void)arg;
    (void)vg_check_dns_label(c, &name);
    check_any_request(c, at);
}

static void check_request(struct vg_check *c, const struct vg_at *at, const void *arg)
{
    struct vg_at name = vg_at(at, "name"), exactly = vg_at(at, "exactly");
    struct vg_at first = vg_at(at, "firstAvailable");
    (void)arg;
    (void)vg_check_dns_label(c, &name);
    if (!exactly.v && vg_at_n(&first) == 0)
        vg_required(c, at, "exactly one of `exactly` or `firstAvailable` is required");
    else if (exactly.v && vg_at_n(&first))
        vg_bad_value(c, at, VG_SLICE_LIT("null"),
                     "exactly one of `exactly` or `firstAvailable` is required, but multiple "
                     "fields are set");
    else if (exactly.v)
        check_any_request(c, &exactly);
    else if (vg_check_items(c, &first, FIRST_AVAILABLE_MAX, check_sub_request, NULL))
        vg_check_unique(c, &first, "name");
}

/* ---- references to requests ---- */

static const struct vg_json *find_named(const struct vg_json *list, struct vg_slice name)
{
    if (list)
        VG_JSON_FOREACH_ITEM (it, list)
            if (vg_slice_eq(vg_json_text(vg_json_get_str(it, "name")), name))
                return it;
    return NULL;
}

/* arg: the list of requests, which is short. */
static void check_reference(struct vg_check *c, const struct vg_at *at, const void *arg)
{
    static const char want[] = "must be the name of a request in the claim or the name of a "
                               "request and a subrequest separated by '/'";
    struct vg_slice text = vg_at_text(at);
    const char *slash = text.n ? memchr(text.p, '/', text.n) : NULL;
    struct vg_slice parts[2] = {text, {"", 0}};
    if (slash) {
        parts[0].n = (size_t)(slash - text.p);
        parts[1] = vg_slice(slash + 1, text.n - parts[0].n - 1);
    }
    if (parts[1].n && memchr(parts[1].p, '/', parts[1].n)) {
        vg_bad_text(c, at, "%s", want);
        return;
    }
    for (size_t i = 0; i < (slash ? 2u : 1u); i++) {
        struct vg_json part = vg_json_string_ref(parts[i]);
        struct vg_at blamed = *at;
        blamed.v = &part;
        (void)vg_check_dns_label(c, &blamed);
    }
    const struct vg_json *request = find_named(arg, parts[0]);
    if (!request || (slash && !find_named(vg_json_get_str(request, "firstAvailable"), parts[1])))
        vg_bad_text(c, at, "%s", want);
}

static void check_references(struct vg_check *c, const struct vg_at *holder,
                             const struct vg_json *requests)
{
    struct vg_at list = vg_at(holder, "requests");
    if (vg_check_items(c, &list, REQUESTS_MAX, check_reference, requests))
        vg_check_unique(c, &list, NULL);
}

static void check_attribute(struct vg_check *c, const struct vg_at *at)
{
    struct vg_slice name = vg_at_text(at);
    vg_check_device_name(c, at, name);
    if (name.n == 0 || !memchr(name.p, '/', name.n))
        vg_bad_text(c, at,
                    "a fully qualified name must be a domain and a name separated by a slash");
}

static void check_constraint(struct vg_check *c, const struct vg_at *at, const void *arg)
{
    struct vg_at match = vg_at(at, "matchAttribute"), distinct = vg_at(at, "distinctAttribute");
    check_references(c, at, arg);
    if (match.v)
        check_attribute(c, &match);
    else if (distinct.v)
        check_attribute(c, &distinct);
    else
        vg_required(c, at,
                    "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but "
                    "multiple fields are set");
}

static void check_claim_config(struct vg_check *c, const struct vg_at *at, const void *arg)
{
    check_references(c, at, arg);
    vg_check_device_config(c, at);
}

static void check_claim_spec(struct vg_check *c, const struct vg_at *spec)
{
    struct vg_at devices = vg_at(spec, "devices"), requests = vg_at(&devices, "requests");
    struct vg_at constraints = vg_at(&devices, "constraints"), config = vg_at(&devices, "config");
    if (vg_check_items(c, &requests, REQUESTS_MAX, check_request, NULL))
        vg_check_unique(c, &requests, "name");
    (void)vg_check_items(c, &constraints, CONSTRAINTS_MAX, check_constraint, requests.v);
    (void)vg_check_items(c, &config, CONFIG_MAX, check_claim_config, requests.v);
}

/* ---- ResourceClaim ---- */

static void check_claim(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at spec = vg_at(obj, "spec");
    check_claim_spec(c, &spec);
}

static void check_claim_update(struct vg_check *c, const struct vg_at *obj,
                               const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec");
    (void)vg_check_immutable_go(c, &spec, vg_json_get_str(old, "spec"), GROUP, "ResourceClaimSpec");
}

static void check_consumer(struct vg_check *c, const struct vg_at *at, const void *arg)
{
    struct vg_at resource = vg_at(at, "resource"), name = vg_at(at, "name");
    struct vg_at uid = vg_at(at, "uid");
    (void)arg;
    (void)vg_check_given(c, &resource);
    (void)vg_check_given(c, &name);
    (void)vg_check_given(c, &uid);
}

static void check_result(struct vg_check *c, const struct vg_at *at, const void *arg)
{
    struct vg_at request = vg_at(at, "request"), driver = vg_at(at, "driver");
    struct vg_at pool = vg_at(at, "pool"), device = vg_at(at, "device");
    check_reference(c, &request, arg);
    vg_check_csi_driver_name(c, &driver);
    vg_check_pool_name(c, &pool);
    (void)vg_check_dns_label(c, &device);
    vg_check_binding_conditions(c, at);
}

static void check_allocated_config(struct vg_check *c, const struct vg_at *at, const void *arg)
{
    static const char *const sources[] = {"FromClaim", "FromClass", NULL};
    struct vg_at source = vg_at(at, "source");
    if (vg_check_given(c, &source))
        (void)vg_check_one_of(c, &source, sources);
    check_claim_config(c, at, arg);
}

static void check_allocation(struct vg_check *c, const struct vg_at *at,
                             const struct vg_json *requests)
{
    struct vg_at devices = vg_at(at, "devices"), results = vg_at(&devices, "results");
    struct vg_at config = vg_at(&devices, "config"), selector = vg_at(at, "nodeSelector");
    (void)vg_check_items(c, &results, REQUESTS_MAX, check_result, requests);
    (void)vg_check_items(c, &config, 2 * CONFIG_MAX, check_allocated_config, requests);
    if (selector.v)
        vg_check_node_selector(c, &selector);
}

static void check_claim_status(struct vg_check *c, const struct vg_at *obj,
                               const struct vg_json *old)
{
    struct vg_at status = vg_at(obj, "status"), reserved = vg_at(&status, "reservedFor");
    struct vg_at allocation = vg_at(&status, "allocation");
    const struct vg_json *was = vg_json_at_path(old, "status.allocation");
    if (vg_check_items(c, &reserved, RESERVED_MAX, check_consumer, NULL))
        vg_check_unique(c, &reserved, "uid");
    if (vg_at_n(&reserved) && !allocation.v)
        vg_forbidden(c, &reserved, "may not be specified when `allocated` is not set");
    if (allocation.v && was)
        (void)vg_check_immutable_go(c, &allocation, was, GROUP, "AllocationResult");
    else if (allocation.v)
        check_allocation(c, &allocation, vg_json_at_path(obj->v, "spec.devices.requests"));
}

const struct vg_rules vg_rules_resource_claim = {
    .group = GROUP,
    .kind = "ResourceClaim",
    .check = check_claim,
    .check_update = check_claim_update,
    .check_status = check_claim_status,
};

/* ---- ResourceClaimTemplate ---- */

static void check_template(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at spec = vg_at(obj, "spec"), meta = vg_at(&spec, "metadata");
    struct vg_at notes = vg_at(&meta, "annotations"), labels = vg_at(&meta, "labels");
    struct vg_at inner = vg_at(&spec, "spec");
    vg_check_annotations(c, &notes);
    vg_check_labels(c, &labels);
    check_claim_spec(c, &inner);
}

static void check_template_update(struct vg_check *c, const struct vg_at *obj,
                                  const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec");
    check_template(c, obj);
    (void)vg_check_immutable_go(c, &spec, vg_json_get_str(old, "spec"), GROUP,
                                "ResourceClaimTemplateSpec");
}

const struct vg_rules vg_rules_resource_claim_template = {
    .group = GROUP,
    .kind = "ResourceClaimTemplate",
    .check = check_template,
    .check_update = check_template_update,
};

/* ---- DeviceClass ---- */

static void check_class_config(struct vg_check *c, const struct vg_at *at, const void *arg)
{
    (void)arg;
    vg_check_device_config(c, at);
}

static void check_class(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at spec = vg_at(obj, "spec"), selectors = vg_at(&spec, "selectors");
    struct vg_at config = vg_at(&spec, "config"), name = vg_at(&spec, "extendedResourceName");
    (void)vg_check_items(c, &selectors, SELECTORS_MAX, check_selector, NULL);
    (void)vg_check_items(c, &config, CONFIG_MAX, check_class_config, NULL);
    if (name.v && !vg_resource_is_extended(vg_at_text(&name)))
        vg_bad(c, &name, "must be a valid extended resource name");
}

static void check_class_update(struct vg_check *c, const struct vg_at *obj,
                               const struct vg_json *old)
{
    (void)old;
    check_class(c, obj);
}

const struct vg_rules vg_rules_device_class = {
    .group = GROUP,
    .kind = "DeviceClass",
    .check = check_class,
    .check_update = check_class_update,
};
