/* resources.c - see resources.h. */
#include "resources.h"

static bool contains(struct vg_slice s, const char *text)
{
    return s.n && memmem(s.p, s.n, text, strlen(text)) != NULL;
}

bool vg_resource_is_native(struct vg_slice name)
{
    return !contains(name, "/") || contains(name, "kubernetes.io/");
}

bool vg_resource_is_extended(struct vg_slice name)
{
    static const struct vg_slice requests = {"requests.", 9};
    char text[sizeof "requests." + VG_LABEL_KEY_MAX];
    if (vg_resource_is_native(name) || vg_slice_has_prefix(name, requests) ||
        name.n > VG_LABEL_KEY_MAX)
        return false;
    memcpy(text, requests.p, requests.n);
    memcpy(text + requests.n, name.p, name.n);
    return vg_validate_label_key(vg_slice(text, requests.n + name.n), NULL);
}

/* What quotas count by a bare name. */
static const char *const counted[] = {"pods",
                                      "resourcequotas",
                                      "services",
                                      "replicationcontrollers",
                                      "secrets",
                                      "configmaps",
                                      "persistentvolumeclaims",
                                      "services.nodeports",
                                      "services.loadbalancers",
                                      NULL};

bool vg_resource_is_whole(struct vg_slice name)
{
    return vg_text_is_one_of(name, counted) || vg_resource_is_extended(name);
}

bool vg_resource_is_of_pods(struct vg_slice name)
{
    static const char *const names[] = {"cpu",
                                        "memory",
                                        "ephemeral-storage",
                                        "requests.cpu",
                                        "requests.memory",
                                        "requests.ephemeral-storage",
                                        "limits.cpu",
                                        "limits.memory",
                                        "limits.ephemeral-storage",
                                        "pods",
                                        NULL};
    return vg_text_is_one_of(name, names) || vg_resource_is_huge(name);
}

bool vg_resource_is_standard(struct vg_slice name)
{
    static const char *const of_volumes[] = {"storage", "requests.storage", NULL};
    return vg_resource_is_of_pods(name) || vg_text_is_one_of(name, counted) ||
           vg_text_is_one_of(name, of_volumes) ||
           vg_slice_has_prefix(name, VG_SLICE_LIT("requests.hugepages-"));
}

bool vg_resource_may_overcommit(struct vg_slice name)
{
    return vg_resource_is_native(name) && !vg_resource_is_huge(name);
}

bool vg_check_resource_name(struct vg_check *c, const struct vg_at *at, struct vg_slice name)
{
    struct vg_name_reasons why = {0};
    if (!vg_validate_label_key(name, &why)) {
        for (uint32_t i = 0; i < why.n; i++)
            vg_bad_value(c, at, vg_json_quoted(c, name), "%s", why.v[i]);
        return false;
    }
    if (contains(name, "/") || vg_resource_is_standard(name))
        return true;
    vg_bad_value(c, at, vg_json_quoted(c, name),
                 "must be a standard resource type or fully qualified");
    return false;
}

bool vg_at_quantity(const struct vg_at *at, struct vg_quantity *ret)
{
    *ret = vg_quantity_of(0, 0, VG_QUANTITY_DECIMAL);
    return vg_at_text(at).n && vg_quantity_parse(vg_at_text(at), ret, NULL) == 0;
}

void vg_check_resource_amount(struct vg_check *c, const struct vg_at *at, struct vg_slice name)
{
    struct vg_quantity q;
    int64_t whole;
    bool is_exact = true;
    if (!vg_at_quantity(at, &q))
        return;
    if (vg_quantity_sign(&q) < 0)
        vg_bad_text(c, at, "must be greater than or equal to 0");
    if (vg_resource_is_whole(name) && vg_quantity_scaled(&q, 0, &whole, &is_exact) == 0 &&
        !is_exact)
        vg_bad_text(c, at, "must be an integer");
}

void vg_check_container_resource_name(struct vg_check *c, const struct vg_at *at,
                                      struct vg_slice name)
{
    bool has_slash = name.n && memchr(name.p, '/', name.n);
    bool is_standard =
        vg_slice_eq(name, VG_SLICE_LIT("cpu")) || vg_slice_eq(name, VG_SLICE_LIT("memory")) ||
        vg_slice_eq(name, VG_SLICE_LIT("ephemeral-storage")) || vg_resource_is_huge(name);
    (void)vg_check_resource_name(c, at, name);
    if (!has_slash && !is_standard)
        vg_bad_value(c, at, vg_json_quoted(c, name), "must be a standard resource for containers");
    else if (has_slash && !vg_resource_is_native(name) && !vg_resource_is_extended(name))
        vg_bad_value(c, at, vg_json_quoted(c, name),
                     "doesn't follow extended resource name standard");
}
