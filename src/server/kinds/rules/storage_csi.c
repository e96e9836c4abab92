/* storage_csi.c - rules of CSI drivers, and of what nodes say about theirs.
 * Left out: the feature that keeps pods from nodes without the driver
 * (preventPodSchedulingIfMissing), which is off in the original and dropped here too. */
#include "go_struct.h"
#include "names.h"
#include "rules.h"
#include "storage.h"

#define NODE_ID_MAX 256u

/* ---- CSIDriver ---- */

/* Off by a feature gate. */
static int prepare_driver(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old)
{
    (void)a, (void)old;
    struct vg_json *spec = vg_json_get_str(obj, "spec");
    if (spec)
        (void)vg_json_object_remove(spec, VG_SLICE_LIT("preventPodSchedulingIfMissing"));
    return 0;
}

/* Audiences differ; one may be empty. */
static void check_tokens(struct vg_check *c, const struct vg_at *at)
{
    VG_AUTO(names) seen = {0};
    VG_CHECK_EACH (c, request, at) {
        struct vg_at audience = vg_at(&request, "audience");
        struct vg_at seconds = vg_at(&request, "expirationSeconds");
        if (!vg_names_add(c, &seen, vg_at_text(&audience), NULL)) {
            vg_duplicate_value(c, &audience, vg_json_quoted(c, vg_at_text(&audience)));
            continue;
        }
        if (seconds.v && vg_at_int(&seconds) < 600)
            vg_bad(c, &seconds, "may not specify a duration less than 10 minutes");
        if (vg_at_int(&seconds) > INT64_C(1) << 32)
            vg_bad(c, &seconds, "may not specify a duration larger than 2^32 seconds");
    }
}

static void check_driver(struct vg_check *c, const struct vg_at *obj)
{
    static const char *const policies[] = {"File", "None", "ReadWriteOnceWithFSType", NULL};
    static const char *const modes[] = {"Persistent", "Ephemeral", NULL};
    struct vg_at spec = vg_at(obj, "spec"), policy = vg_at(&spec, "fsGroupPolicy");
    struct vg_at tokens = vg_at(&spec, "tokenRequests");
    struct vg_at list = vg_at(&spec, "volumeLifecycleModes");
    struct vg_at period = vg_at(&spec, "nodeAllocatableUpdatePeriodSeconds");
    struct vg_at secrets = vg_at(&spec, "serviceAccountTokenInSecrets");
    if (policy.v)
        (void)vg_check_one_of(c, &policy, policies);
    check_tokens(c, &tokens);
    VG_CHECK_EACH (c, mode, &list) {
        struct vg_at blamed = vg_at_of(&spec, "volumeLifecycleModes", mode.v);
        (void)vg_check_one_of(c, &blamed, modes);
    }
    if (period.v && vg_at_int(&period) < 10)
        vg_bad(c, &period, "must be greater than or equal to 10 seconds");
    if (secrets.v && vg_at_n(&tokens) == 0)
        vg_bad(c, &secrets,
               "serviceAccountTokenInSecrets is set but no tokenRequests are specified");
}

static void check_driver_update(struct vg_check *c, const struct vg_at *obj,
                                const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), modes = vg_at(&spec, "volumeLifecycleModes");
    /* The original's name for it in messages. */
    struct vg_at attach =
        vg_at_of(&spec, "attachedRequired", vg_json_get_str(spec.v, "attachRequired"));
    check_driver(c, obj);
    (void)vg_check_immutable(c, &attach, vg_json_at_path(old, "spec.attachRequired"));
    (void)vg_check_immutable(c, &modes, vg_json_at_path(old, "spec.volumeLifecycleModes"));
}

static void warn_driver(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), tokens = vg_at(&spec, "tokenRequests");
    struct vg_check quiet = {.errors = &(struct vg_field_errors){.arena = c->arena},
                             .arena = c->arena};
    if (vg_at_n(&tokens) == 0 || vg_json_get_str(spec.v, "serviceAccountTokenInSecrets"))
        return;
    if (old && vg_check_immutable(&quiet, &tokens, vg_json_at_path(old, "spec.tokenRequests")))
        return;
    vg_caution(c, "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, "
                  "set to true to prevent possible logging of tokens in volume attributes");
}

const struct vg_rules vg_rules_csi_driver = {
    .group = "storage.k8s.io",
    .kind = "CSIDriver",
    .prepare = prepare_driver,
    .check = check_driver,
    .check_update = check_driver_update,
    .warn = warn_driver,
};

/* ---- CSINode ---- */

/* Keys are blamed on the driver as a whole. */
static void check_topology_keys(struct vg_check *c, const struct vg_at *driver)
{
    VG_AUTO(names) seen = {0};
    struct vg_at keys = vg_at(driver, "topologyKeys");
    VG_CHECK_EACH (c, key, &keys) {
        struct vg_at blamed = *driver;
        blamed.v = key.v;
        if (vg_at_text(&key).n == 0)
            vg_required(c, &blamed, NULL);
        if (!vg_names_add(c, &seen, vg_at_text(&key), NULL))
            vg_duplicate(c, &blamed);
        (void)vg_check_qualified(c, &blamed);
    }
}

static void check_node(struct vg_check *c, const struct vg_at *obj)
{
    VG_AUTO(names) seen = {0};
    struct vg_at spec = vg_at(obj, "spec"), drivers = vg_at(&spec, "drivers");
    VG_CHECK_EACH (c, driver, &drivers) {
        struct vg_at name = vg_at(&driver, "name"), id = vg_at(&driver, "nodeID");
        struct vg_at allocatable = vg_at(&driver, "allocatable");
        struct vg_at count = vg_at(&allocatable, "count");
        vg_check_csi_driver_name(c, &name);
        (void)vg_check_given(c, &id);
        if (vg_at_text(&id).n > NODE_ID_MAX)
            vg_bad(c, &id, "must be %u characters or less", NODE_ID_MAX);
        if (count.v)
            (void)vg_check_not_negative(c, &count);
        if (!vg_names_add(c, &seen, vg_at_text(&name), NULL))
            vg_duplicate_value(c, &name, vg_json_quoted(c, vg_at_text(&name)));
        check_topology_keys(c, &driver);
    }
}

/* A driver without what may change of it. */
static struct vg_json fixed_part(struct vg_check *c, const struct vg_json *driver)
{
    struct vg_json ret = vg_json_object();
    VG_JSON_FOREACH_MEMBER (m, driver)
        if (!vg_slice_eq(vg_json_key(m), VG_SLICE_LIT("allocatable")) &&
            vg_json_object_add(c->arena, &ret, vg_json_key(m), m->value) < 0)
            c->errors->failed = true;
    return ret;
}

static void check_node_update(struct vg_check *c, const struct vg_at *obj,
                              const struct vg_json *old)
{
    VG_AUTO(names) now = {0};
    struct vg_at spec = vg_at(obj, "spec"), drivers = vg_at(&spec, "drivers");
    const struct vg_json *were = vg_json_at_path(old, "spec.drivers"), *other = NULL;
    check_node(c, obj);
    VG_CHECK_EACH (c, driver, &drivers)
        (void)vg_names_add(c, &now, vg_json_text(vg_json_get_str(driver.v, "name")), driver.v);
    if (were)
        VG_JSON_FOREACH_ITEM (was, were) {
            if (!vg_names_find(&now, vg_json_text(vg_json_get_str(was, "name")), &other))
                continue;
            struct vg_json a = fixed_part(c, other), b = fixed_part(c, was);
            struct vg_at at = vg_at_of(&spec, "drivers", &a);
            (void)vg_check_immutable_go(c, &at, &b, "storage.k8s.io", "CSINodeDriver");
        }
}

const struct vg_rules vg_rules_csi_node = {
    .group = "storage.k8s.io",
    .kind = "CSINode",
    .check = check_node,
    .check_update = check_node_update,
};
