/* claim.c - see claim.h. */
#include "claim.h"

#include "resources.h"
#include "json/equal.h"

static const char *const access_modes[] = {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce",
                                           "ReadWriteOncePod", NULL};
static const char *const volume_modes[] = {"Block", "Filesystem", NULL};

void vg_check_access_modes(struct vg_check *c, const struct vg_at *modes)
{
    bool has_pod = false, has_other = false;
    VG_CHECK_EACH (c, mode, modes) {
        struct vg_at blamed = *modes;
        blamed.v = mode.v;
        bool is_known = vg_check_one_of(c, &blamed, access_modes);
        has_pod = has_pod || vg_at_is(&mode, "ReadWriteOncePod");
        has_other = has_other || (is_known && !vg_at_is(&mode, "ReadWriteOncePod"));
    }
    if (has_pod && has_other)
        vg_forbidden(c, modes, "may not use ReadWriteOncePod with other access modes");
}

static void check_storage(struct vg_check *c, const struct vg_at *spec)
{
    struct vg_at resources = vg_at(spec, "resources");
    const struct vg_json *requests = vg_json_get_str(resources.v, "requests");
    struct vg_at storage = {.up = &resources,
                            .v = vg_json_get_str(requests, "storage"),
                            .key = VG_SLICE_LIT("storage"),
                            .step = VG_AT_KEY};
    struct vg_quantity q;
    if (!vg_at_is_set(&storage))
        vg_required(c, &storage, NULL);
    else if (vg_at_quantity(&storage, &q) && vg_quantity_sign(&q) <= 0)
        vg_bad_text(c, &storage, "must be greater than zero");
    else
        vg_check_resource_amount(c, &storage, storage.key);
}

static void check_source(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at name = vg_at(at, "name"), kind = vg_at(at, "kind"), ns = vg_at(at, "namespace");
    struct vg_at group = vg_at(at, "apiGroup");
    if (!vg_at_is_set(at))
        return;
    (void)vg_check_given(c, &name);
    (void)vg_check_given(c, &kind);
    if (vg_at_text(&group).n == 0 && !vg_at_is(&kind, "PersistentVolumeClaim"))
        vg_bad_value(c, at, vg_json_quoted(c, vg_at_text(&kind)),
                     "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
    if (vg_at_text(&group).n)
        (void)vg_check_dns_subdomain(c, &group);
    if (vg_at_text(&ns).n)
        (void)vg_check_dns_label(c, &ns);
}

static bool is_same(const struct vg_json *a, const struct vg_json *b, const char *name)
{
    const struct vg_json *x = vg_json_get_str(a, name), *y = vg_json_get_str(b, name);
    return !x == !y && vg_slice_eq(vg_json_text(x), vg_json_text(y));
}

/* Two names of one source must agree. */
static void check_sources(struct vg_check *c, const struct vg_at *spec)
{
    struct vg_at source = vg_at(spec, "dataSource"), ref = vg_at(spec, "dataSourceRef");
    struct vg_at ns = vg_at(&ref, "namespace");
    check_source(c, &source);
    check_source(c, &ref);
    if (!vg_at_is_set(&source) || !vg_at_is_set(&ref))
        return;
    if (vg_at_text(&ns).n)
        vg_bad_value(c, spec, VG_SLICE_LIT("{}"),
                     "may not be specified when dataSourceRef.namespace is specified");
    else if (!is_same(source.v, ref.v, "apiGroup") || !is_same(source.v, ref.v, "kind") ||
             !is_same(source.v, ref.v, "name"))
        vg_bad_value(c, spec, VG_SLICE_LIT("{}"), "must match dataSourceRef");
}

void vg_check_claim_spec(struct vg_check *c, const struct vg_at *spec)
{
    struct vg_at modes = vg_at(spec, "accessModes"), selector = vg_at(spec, "selector");
    struct vg_at class = vg_at(spec, "storageClassName"), mode = vg_at(spec, "volumeMode");
    struct vg_at attributes = vg_at(spec, "volumeAttributesClassName");
    if (vg_at_n(&modes) == 0)
        vg_required(c, &modes, "at least 1 access mode is required");
    vg_check_label_selector(c, &selector);
    vg_check_access_modes(c, &modes);
    check_storage(c, spec);
    if (vg_at_text(&class).n)
        (void)vg_check_dns_subdomain(c, &class);
    if (vg_at_is_set(&mode))
        (void)vg_check_one_of(c, &mode, volume_modes);
    check_sources(c, spec);
    if (vg_at_text(&attributes).n)
        (void)vg_check_dns_subdomain(c, &attributes);
}

void vg_check_claim_template(struct vg_check *c, const struct vg_at *at)
{
    static const char *const others[] = {"name",
                                         "generateName",
                                         "namespace",
                                         "selfLink",
                                         "uid",
                                         "resourceVersion",
                                         "generation",
                                         "creationTimestamp",
                                         "deletionTimestamp",
                                         "deletionGracePeriodSeconds",
                                         "ownerReferences",
                                         "finalizers",
                                         "managedFields"};
    struct vg_at meta = vg_at(at, "metadata"), spec = vg_at(at, "spec");
    struct vg_at annotations = vg_at(&meta, "annotations"), labels = vg_at(&meta, "labels");
    vg_check_annotations(c, &annotations);
    vg_check_labels(c, &labels);
    for (size_t i = 0; i < VG_ARRAY_LEN(others); i++) {
        struct vg_at other = vg_at(&meta, others[i]);
        if (vg_at_is_set(&other))
            vg_forbidden(c, &other, "cannot be set");
    }
    vg_check_claim_spec(c, &spec);
}
