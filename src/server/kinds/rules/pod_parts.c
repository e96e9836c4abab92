/* pod_parts.c - the parts of a pod that have a subresource of their own: containers that are added
 * to look at a running pod, and the amounts of cpu and memory that it has. Each takes its part from
 * what was sent and all else from what is stored. */
#include "go_struct.h"
#include "pod_int.h"

static const char *const lists[] = {"containers", "initContainers"};

static bool differs(struct vg_check *c, const struct vg_json *a, const struct vg_json *b)
{
    return !vg_check_same(c, a, b);
}

static size_t count_of(const struct vg_json *spec, const char *list)
{
    struct vg_at at = {.v = vg_json_get_str(spec, list)};
    return vg_at_n(&at);
}

static struct vg_slice name_of(const struct vg_json *container)
{
    return vg_json_text(vg_json_get_str(container, "name"));
}

static bool is_mirror(const struct vg_json *old)
{
    const struct vg_json *notes = vg_json_at_path(old, "metadata.annotations");
    return notes && vg_json_get_str(notes, "kubernetes.io/config.mirror");
}

/* What the original blames on no field in particular: its path is []. */
static struct vg_at at_nothing(const struct vg_at *obj)
{
    return (struct vg_at){.up = obj, .key = VG_SLICE_LIT(""), .step = VG_AT_KEY};
}

/* ---- ephemeral containers ---- */

int vg_pod_prepare_ephemeral(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old)
{
    struct vg_json spec = vg_json_object();
    const struct vg_json *was = vg_json_get_str(old, "spec");
    int err = was ? vg_json_clone(a, was, &spec) : 0;
    if (err == 0)
        err = vg_json_take_member(a, &spec, vg_json_get_str(obj, "spec"), "ephemeralContainers");
    if (err == 0)
        err = vg_json_take_member(a, obj, old, "status");
    vg_pod_drop_disabled(&spec);
    return err < 0 ? err : vg_json_object_set(a, obj, VG_SLICE_LIT("spec"), spec);
}

void vg_pod_check_ephemeral(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), now = vg_at(&spec, "ephemeralContainers");
    const struct vg_json *before = vg_json_at_path(old, "spec.ephemeralContainers");
    VG_AUTO(names) names = {0};
    if (is_mirror(old)) {
        struct vg_at nowhere = at_nothing(obj);
        vg_forbidden(c, &nowhere, "static pods do not support ephemeral containers");
        return;
    }
    vg_pod_check_all(c, obj);
    vg_pod_check_kept_annotations(c, obj, old);
    if (!before)
        return;
    VG_CHECK_EACH (c, it, &now)
        (void)vg_names_add(c, &names, name_of(it.v), it.v);
    VG_JSON_FOREACH_ITEM (it, before) {
        struct vg_slice name = vg_json_quoted(c, name_of(it));
        const struct vg_json *is = NULL;
        if (!vg_names_find(&names, name_of(it), &is))
            vg_forbidden(c, &now, "existing ephemeral containers %.*s may not be removed\n",
                         VG_SLICE_ARG(name));
        else if (differs(c, is, it))
            vg_forbidden(c, &now, "existing ephemeral containers %.*s may not be changed\n%.*s",
                         VG_SLICE_ARG(name),
                         VG_SLICE_ARG(vg_go_diff(c, "", "EphemeralContainer", it, is)));
    }
}

/* ---- resize: what is taken ---- */

/* The old containers with the new amounts; as sent when they are not the same ones, which is
 * refused later. Both lists are equally long. */
static int resize_list(struct vg_arena *a, struct vg_json *spec, const struct vg_json *given,
                       const char *name)
{
    const struct vg_json *now = vg_json_get_str(given, name);
    struct vg_json *list = vg_json_get_str(spec, name);
    int err = 0;
    for (size_t i = 0; vg_json_at(now, i); i++)
        if (!vg_slice_eq(name_of(vg_json_at(now, i)), name_of(vg_json_at(list, i))))
            return vg_json_object_set(a, spec, vg_slice_str(name), *now);
    for (size_t i = 0; vg_json_at(now, i) && err == 0; i++) {
        err = vg_json_take_member(a, vg_json_at(list, i), vg_json_at(now, i), "resources");
        if (err == 0)
            err = vg_json_take_member(a, vg_json_at(list, i), vg_json_at(now, i), "resizePolicy");
    }
    return err;
}

int vg_pod_prepare_resize(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old)
{
    struct vg_json spec;
    const struct vg_json *given = vg_json_get_str(obj, "spec");
    const struct vg_json *was = vg_json_get_str(old, "spec");
    int err = 0;
    for (size_t i = 0; i < VG_ARRAY_LEN(lists); i++)
        if (count_of(given, lists[i]) != count_of(was, lists[i]))
            return 0; /* it will be refused */
    if (!given || !was)
        return 0;
    err = vg_json_clone(a, was, &spec);
    if (err == 0)
        err = vg_json_take_member(a, &spec, given, "resources");
    for (size_t i = 0; i < VG_ARRAY_LEN(lists) && err == 0; i++)
        err = resize_list(a, &spec, given, lists[i]);
    if (err == 0)
        err = vg_json_take_member(a, obj, old, "status");
    return err < 0 ? err : vg_json_object_set(a, obj, VG_SLICE_LIT("spec"), spec);
}

/* ---- resize: what is refused ---- */

/* A container, or what has resources like one, without what may change. */
static int strip(struct vg_arena *a, const struct vg_json *v, bool drops_claims,
                 struct vg_json *ret)
{
    static const char *const amounts[] = {"limits", "requests"};
    *ret = vg_json_object();
    int err = v ? vg_json_clone(a, v, ret) : 0;
    struct vg_json *resources = err == 0 ? vg_json_get_str(ret, "resources") : NULL;
    if (!resources)
        return err;
    for (size_t i = 0; i < VG_ARRAY_LEN(amounts); i++) {
        struct vg_json *map = vg_json_get_str(resources, amounts[i]);
        if (!map)
            continue;
        (void)vg_json_object_remove(map, VG_SLICE_LIT("cpu"));
        (void)vg_json_object_remove(map, VG_SLICE_LIT("memory"));
        if (map->n == 0)
            (void)vg_json_object_remove(resources, vg_slice_str(amounts[i]));
    }
    if (drops_claims)
        (void)vg_json_object_remove(resources, VG_SLICE_LIT("claims"));
    if (resources->n == 0)
        (void)vg_json_object_remove(ret, VG_SLICE_LIT("resources"));
    return 0;
}

/* Did something change beside cpu and memory? Claims of a container are never resized. */
static bool rest_differs(struct vg_check *c, const struct vg_json *now, const struct vg_json *old,
                         bool is_container)
{
    struct vg_json a, b;
    if (strip(c->arena, now, is_container, &a) < 0 || strip(c->arena, old, false, &b) < 0) {
        c->errors->failed = true;
        return false;
    }
    return differs(c, &a, &b);
}

static bool is_fewer(struct vg_check *c, const struct vg_json *now, const struct vg_json *old)
{
    VG_AUTO(json_lookup) is;
    vg_json_lookup_init(&is, now);
    for (const struct vg_json_member *m = old ? old->members : NULL; m && m < old->members + old->n;
         m++)
        if (!vg_check_find(c, &is, vg_json_key(m), (uint32_t)(m - old->members)))
            return true;
    return false;
}

/* What was asked for may change and not go away. at: the resources; of: whose, as messages say. */
static void check_kept(struct vg_check *c, const struct vg_at *at, const struct vg_json *old,
                       const char *of)
{
    struct vg_at requests = vg_at(at, "requests"), limits = vg_at(at, "limits");
    if (is_fewer(c, requests.v, vg_json_get_str(old, "requests")))
        vg_forbidden(c, &requests, "%sresource requests cannot be removed", of);
    if (is_fewer(c, limits.v, vg_json_get_str(old, "limits")))
        vg_forbidden(c, &limits, "%sresource limits cannot be removed", of);
}

static bool has_amounts(const struct vg_json *spec)
{
    const struct vg_json *of_pod = vg_json_get_str(spec, "resources");
    return count_of(of_pod, "requests") + count_of(of_pod, "limits") > 0;
}

/* The amounts that the containers of a pod share. */
static void check_of_pod(struct vg_check *c, const struct vg_at *spec, const struct vg_json *old)
{
    struct vg_at now = vg_at(spec, "resources");
    const struct vg_json *before = vg_json_get_str(old, "resources");
    if (!has_amounts(spec->v) && !has_amounts(old))
        return;
    if (before && !now.v) {
        vg_forbidden(c, &now, "pod-level resources cannot be removed");
        return;
    }
    if (before)
        check_kept(c, &now, before, "pod-level ");
    struct vg_json_member a = {.key = "resources", .key_n = 9}, b = a;
    a.value = *now.v;
    b.value = before ? *before : vg_json_object();
    struct vg_json x = {.type = VG_JSON_OBJECT, .n = 1, .members = &a};
    struct vg_json y = {.type = VG_JSON_OBJECT, .n = 1, .members = &b};
    if (rest_differs(c, &x, &y, false))
        vg_forbidden(c, spec, "only cpu and memory resources are mutable at pod-level");
}

/* The same containers in the same order? */
static bool check_order(struct vg_check *c, const struct vg_at *spec, const struct vg_json *old,
                        const char *list)
{
    struct vg_at now = vg_at(spec, list);
    const struct vg_json *before = vg_json_get_str(old, list);
    size_t errors = c->errors->n;
    if (vg_at_n(&now) != count_of(old, list)) {
        vg_forbidden(c, &now, "%s may not be added or removed on resize", list);
        return false;
    }
    VG_CHECK_EACH (c, it, &now) {
        struct vg_at name = vg_at(&it, "name");
        if (!vg_slice_eq(vg_at_text(&name), name_of(vg_json_at(before, it.index))))
            vg_forbidden(c, &name, "%s may not be renamed or reordered on resize", list);
    }
    return c->errors->n == errors;
}

static void check_init(struct vg_check *c, const struct vg_at *at, const struct vg_json *old)
{
    struct vg_at policy = vg_at(at, "restartPolicy"), policies = vg_at(at, "resizePolicy");
    if (rest_differs(c, at->v, old, true))
        vg_forbidden(c, at,
                     "only cpu and memory resources for init or sidecar containers are "
                     "mutable");
    if (vg_at_is(&policy, "Always") || !differs(c, at->v, old))
        return;
    VG_CHECK_EACH (c, it, &policies) {
        struct vg_at restart = vg_at(&it, "restartPolicy");
        if (vg_at_is(&restart, "RestartContainer"))
            vg_forbidden(c, at,
                         "non-sidecar init containers with a resize policy of "
                         "RestartContainer cannot be resized");
    }
}

static void check_amounts(struct vg_check *c, const struct vg_at *spec, const struct vg_json *old)
{
    struct vg_at regular = vg_at(spec, "containers"), init = vg_at(spec, "initContainers");
    const struct vg_json *were = vg_json_get_str(old, "containers");
    const struct vg_json *inits = vg_json_get_str(old, "initContainers");
    VG_CHECK_EACH (c, it, &init) {
        struct vg_at resources = vg_at(&it, "resources");
        check_kept(c, &resources, vg_json_get_str(vg_json_at(inits, it.index), "resources"), "");
    }
    VG_CHECK_EACH (c, it, &regular) {
        struct vg_at resources = vg_at(&it, "resources");
        check_kept(c, &resources, vg_json_get_str(vg_json_at(were, it.index), "resources"), "");
    }
    VG_CHECK_EACH (c, it, &regular)
        if (rest_differs(c, it.v, vg_json_at(were, it.index), true))
            vg_forbidden(c, spec, "only cpu and memory resources are mutable");
    VG_CHECK_EACH (c, it, &init)
        check_init(c, &it, vg_json_at(inits, it.index));
}

/* A node that can resize says what its running containers have. */
static bool may_resize(const struct vg_json *old)
{
    const struct vg_json *statuses = vg_json_at_path(old, "status.containerStatuses");
    if (statuses)
        VG_JSON_FOREACH_ITEM (it, statuses)
            if (vg_json_at_path(it, "state.running"))
                return vg_json_get_str(it, "resources") != NULL;
    return true;
}

void vg_pod_check_resize(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), nowhere = at_nothing(obj);
    const struct vg_json *before = vg_json_get_str(old, "spec");
    struct vg_slice was = vg_json_text(vg_json_at_path(old, "status.qosClass"));
    struct vg_slice shown = vg_json_text(vg_json_at_path(obj->v, "status.qosClass"));
    const struct vg_json *os = vg_json_at_path(before, "os.name");
    if (is_mirror(old)) {
        vg_forbidden(c, &nowhere, "static pods cannot be resized");
        return;
    }
    if (vg_slice_eq(vg_json_text(os), VG_SLICE_LIT("windows"))) {
        vg_forbidden(c, &nowhere, "windows pods cannot be resized");
        return;
    }
    vg_pod_check_all(c, obj);
    was = was.n ? was : vg_slice_str(vg_pod_qos(before));
    if (!vg_slice_eq(was, vg_slice_str(vg_pod_qos(spec.v))))
        vg_bad_value(c, &spec, vg_json_quoted(c, shown),
                     "Pod QOS Class may not change as a result of resizing");
    if (!may_resize(old))
        vg_forbidden(c, &spec, "Pod running on node without support for resize");
    check_of_pod(c, &spec, before);
    if (count_of(vg_json_get_str(old, "status"), "nodeAllocatableResourceClaimStatuses"))
        vg_forbidden(c, &spec, "pods with node allocatable resource claims cannot be resized");
    bool is_ordered = check_order(c, &spec, before, lists[0]);
    is_ordered = check_order(c, &spec, before, lists[1]) && is_ordered;
    if (is_ordered)
        check_amounts(c, &spec, before);
}
