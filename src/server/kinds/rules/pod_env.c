/* pod_env.c - env and envFrom of containers, and the references to fields and resources that
 * volumes of the downward API have too. */
#include "pod_int.h"

/* Printable ASCII without '='. */
static void check_env_name(struct vg_check *c, const struct vg_at *at)
{
    struct vg_slice s = vg_at_text(at);
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < 0x20 || s.p[i] > 0x7e || s.p[i] == '=') {
            vg_bad_text(c, at,
                        "a valid environment variable name must consist only of printable ASCII "
                        "characters other than '='");
            return;
        }
}

/* ---- fields of the pod ---- */

/* What a reference may name at all; which of them, depends on where it stands. */
static const char *const labels_of_pods[] = {
    "metadata.annotations", "metadata.labels", "metadata.name",      "metadata.namespace",
    "metadata.uid",         "spec.nodeName",   "spec.restartPolicy", "spec.serviceAccountName",
    "spec.schedulerName",   "status.phase",    "status.hostIP",      "status.hostIPs",
    "status.podIP",         "status.podIPs",   "spec.host",          NULL};

/* metadata.labels['key']: its path and key. */
static bool split_subscript(struct vg_slice s, struct vg_slice *path, struct vg_slice *key)
{
    size_t at = 0;
    if (s.n < 4 || s.p[s.n - 1] != ']' || s.p[s.n - 2] != '\'')
        return false;
    while (at + 1 < s.n && !(s.p[at] == '[' && s.p[at + 1] == '\''))
        at++;
    if (at == 0 || at + 4 > s.n)
        return false;
    *path = vg_slice(s.p, at);
    *key = vg_slice(s.p + at + 2, s.n - at - 4);
    return true;
}

static void check_subscript(struct vg_check *c, const struct vg_at *at, const struct vg_at *field,
                            struct vg_slice path, struct vg_slice key)
{
    struct vg_name_reasons why = {0};
    bool is_annotation = vg_slice_eq(path, VG_SLICE_LIT("metadata.annotations"));
    if (!is_annotation && !vg_slice_eq(path, VG_SLICE_LIT("metadata.labels"))) {
        vg_bad_text(c, field,
                    "error converting fieldPath: field label does not support subscript: %.*s",
                    VG_SLICE_ARG(vg_at_text(field)));
        return;
    }
    char *low = is_annotation && key.n ? vg_arena_copy(c->arena, key.p, key.n) : NULL;
    for (size_t i = 0; low && i < key.n; i++)
        low[i] = (char)(low[i] >= 'A' && low[i] <= 'Z' ? low[i] + 32 : low[i]);
    if (low)
        key.p = low;
    if (!vg_validate_label_key(key, &why))
        for (uint32_t i = 0; i < why.n; i++)
            vg_bad_value(c, at, vg_json_quoted(c, key), "%s", why.v[i]);
}

void vg_pod_check_field_ref(struct vg_check *c, const struct vg_at *at,
                            const char *const *supported)
{
    struct vg_at version = vg_at(at, "apiVersion"), field = vg_at(at, "fieldPath");
    struct vg_slice path, key;
    if (!vg_check_given(c, &version) || !vg_check_given(c, &field))
        return;
    if (!vg_at_is(&version, "v1")) {
        vg_bad_text(c, &field, "error converting fieldPath: unsupported pod version: %.*s",
                    VG_SLICE_ARG(vg_at_text(&version)));
        return;
    }
    if (split_subscript(vg_at_text(&field), &path, &key)) {
        check_subscript(c, at, &field, path, key);
        return;
    }
    if (!vg_text_is_one_of(vg_at_text(&field), labels_of_pods)) {
        vg_bad_text(c, &field, "error converting fieldPath: field label not supported: %.*s",
                    VG_SLICE_ARG(vg_at_text(&field)));
        return;
    }
    struct vg_json node = vg_json_string_ref(VG_SLICE_LIT("spec.nodeName"));
    if (vg_at_is(&field, "spec.host")) /* as old clients name it */
        field.v = &node;
    (void)vg_check_one_of(c, &field, supported);
}

/* ---- resources of a container ---- */

static void check_divisor(struct vg_check *c, const struct vg_at *at, struct vg_slice resource)
{
    static const char cpu[] = "1m and 1", bytes[] = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, "
                                                    "1Ti, 1Pi, 1Ei";
    static const char *const of_cpu[] = {"1m", "1", NULL};
    static const char *const of_bytes[] = {"1",   "1k",  "1M",  "1G",  "1T",  "1P",  "1E",
                                           "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei", NULL};
    static const struct {
        const char *resource, *texts, *name;
        const char *const *values;
    } rules[] = {{"cpu", cpu, "cpu", of_cpu},
                 {"memory", bytes, "memory", of_bytes},
                 {"ephemeral-storage", bytes, "local ephemeral storage", of_bytes},
                 {"hugepages-", bytes, "hugepages", of_bytes}};
    struct vg_at divisor = vg_at(at, "divisor");
    struct vg_quantity q;
    const char *dot = resource.n ? memchr(resource.p, '.', resource.n) : NULL;
    if (!dot || !vg_at_quantity(&divisor, &q) || vg_quantity_sign(&q) == 0)
        return;
    struct vg_slice name = vg_slice(dot + 1, resource.n - (size_t)(dot + 1 - resource.p));
    for (size_t i = 0; i < VG_ARRAY_LEN(rules); i++) {
        struct vg_slice rule = vg_slice_str(rules[i].resource);
        bool is_it =
            vg_resource_is_huge(rule) ? vg_resource_is_huge(name) : vg_slice_eq(name, rule);
        if (is_it && !vg_text_is_one_of(vg_at_text(&divisor), rules[i].values))
            vg_bad_value(c, &divisor, vg_json_quoted(c, resource),
                         "only divisor's values %s are supported with the %s resource",
                         rules[i].texts, rules[i].name);
    }
}

void vg_pod_check_resource_ref(struct vg_check *c, const struct vg_at *at, bool is_volume)
{
    static const char *const supported[] = {"limits.cpu",
                                            "limits.ephemeral-storage",
                                            "limits.memory",
                                            "requests.cpu",
                                            "requests.ephemeral-storage",
                                            "requests.memory",
                                            NULL};
    struct vg_at container = vg_at(at, "containerName"), resource = vg_at(at, "resource");
    struct vg_slice text = vg_at_text(&resource);
    bool is_huge = vg_slice_has_prefix(text, VG_SLICE_LIT("requests.hugepages-")) ||
                   vg_slice_has_prefix(text, VG_SLICE_LIT("limits.hugepages-"));
    if (is_volume && vg_at_text(&container).n == 0)
        vg_required(c, &container, NULL);
    else if (text.n == 0)
        vg_required(c, &resource, NULL);
    else if (!is_huge)
        (void)vg_check_one_of(c, &resource, supported);
    check_divisor(c, at, text);
}

/* ---- env ---- */

static void check_key_ref(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at name = vg_at(at, "name"), key = vg_at(at, "key");
    (void)vg_check_dns_subdomain(c, &name);
    if (vg_check_given(c, &key))
        (void)vg_check_config_key(c, &key);
}

static void check_file_ref(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at key = vg_at(at, "key"), volume = vg_at(at, "volumeName"), path = vg_at(at, "path");
    if (vg_check_given(c, &key))
        check_env_name(c, &key);
    if (vg_check_given(c, &volume))
        (void)vg_check_dns_label(c, &volume);
    if (vg_check_given(c, &path))
        (void)vg_check_no_backsteps(c, &path);
}

static void check_value_from(struct vg_check *c, const struct vg_at *env)
{
    static const char *const fields[] = {"metadata.name",
                                         "metadata.namespace",
                                         "metadata.uid",
                                         "spec.nodeName",
                                         "spec.serviceAccountName",
                                         "status.hostIP",
                                         "status.hostIPs",
                                         "status.podIP",
                                         "status.podIPs",
                                         NULL};
    struct vg_at from = vg_at(env, "valueFrom"), value = vg_at(env, "value");
    if (!vg_at_is_set(&from))
        return;
    struct vg_at field = vg_at(&from, "fieldRef"), resource = vg_at(&from, "resourceFieldRef");
    struct vg_at config = vg_at(&from, "configMapKeyRef"), secret = vg_at(&from, "secretKeyRef");
    struct vg_at file = vg_at(&from, "fileKeyRef");
    int n = vg_at_is_set(&field) + vg_at_is_set(&resource) + vg_at_is_set(&config) +
            vg_at_is_set(&secret) + vg_at_is_set(&file);
    if (vg_at_is_set(&field))
        vg_pod_check_field_ref(c, &field, fields);
    if (vg_at_is_set(&resource))
        vg_pod_check_resource_ref(c, &resource, false);
    if (vg_at_is_set(&config))
        check_key_ref(c, &config);
    if (vg_at_is_set(&secret))
        check_key_ref(c, &secret);
    if (vg_at_is_set(&file))
        check_file_ref(c, &file);
    struct vg_slice empty = VG_SLICE_LIT("\"\"");
    if (n == 0)
        vg_bad_value(c, &from, empty,
                     "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
                     "`secretKeyRef` or `fileKeyRef`");
    else if (vg_at_text(&value).n)
        vg_bad_value(c, &from, empty, "may not be specified when `value` is not empty");
    else if (n > 1)
        vg_bad_value(c, &from, empty, "may not have more than one field specified at a time");
}

static void check_source(struct vg_check *c, const struct vg_at *list, const struct vg_at *at)
{
    struct vg_at prefix = vg_at(at, "prefix");
    struct vg_at sources[] = {vg_at(at, "configMapRef"), vg_at(at, "secretRef")};
    int n = 0;
    check_env_name(c, &prefix);
    for (size_t i = 0; i < VG_ARRAY_LEN(sources); i++) {
        if (!vg_at_is_set(&sources[i]))
            continue;
        struct vg_at name = vg_at(&sources[i], "name");
        n++;
        if (vg_check_given(c, &name))
            (void)vg_check_dns_subdomain(c, &name);
    }
    if (n == 0)
        vg_bad_value(c, list, VG_SLICE_LIT("\"\""),
                     "must specify one of: `configMapRef` or `secretRef`");
    else if (n > 1)
        vg_bad_value(c, list, VG_SLICE_LIT("\"\""),
                     "may not have more than one field specified at a time");
}

void vg_pod_check_env(struct vg_pod *p, const struct vg_at *container)
{
    struct vg_at env = vg_at(container, "env"), from = vg_at(container, "envFrom");
    VG_CHECK_EACH (p->c, e, &env) {
        struct vg_at name = vg_at(&e, "name");
        if (vg_check_given(p->c, &name))
            check_env_name(p->c, &name);
        check_value_from(p->c, &e);
    }
    VG_CHECK_EACH (p->c, s, &from)
        check_source(p->c, &from, &s);
}
