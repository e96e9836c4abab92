/* volume.c - the rules of persistent volumes. Sources that pods have too are checked with those.
 * Left out: labels of nodes that were renamed. */
#include "claim.h"
#include "defaults.h"
#include "go_struct.h"
#include "ip.h"
#include "pod.h"
#include "resources.h"
#include "rules.h"
#include "storage.h"
#include "json/equal.h"

#define ISCSI_NAME_MAX 64u
#define MOUNT_OPTIONS "volume.beta.kubernetes.io/mount-options"

/* ---- sources ---- */

/* A reference to a secret in some namespace. */
static void check_secret(struct vg_check *c, const struct vg_at *source, const char *name)
{
    struct vg_at ref = vg_at(source, name), its_name = vg_at(&ref, "name"),
                 ns = vg_at(&ref, "namespace");
    if (!vg_at_is_set(&ref))
        return;
    if (vg_check_given(c, &its_name))
        (void)vg_check_dns_subdomain(c, &its_name);
    if (vg_check_given(c, &ns))
        (void)vg_check_dns_label(c, &ns);
}

static void check_csi(struct vg_check *c, const struct vg_at *at)
{
    static const char *const secrets[] = {"controllerPublishSecretRef", "controllerExpandSecretRef",
                                          "nodePublishSecretRef", "nodeExpandSecretRef"};
    struct vg_at driver = vg_at(at, "driver"), handle = vg_at(at, "volumeHandle");
    vg_check_csi_driver_name(c, &driver);
    (void)vg_check_given(c, &handle);
    for (size_t i = 0; i < VG_ARRAY_LEN(secrets); i++)
        check_secret(c, at, secrets[i]);
}

static void check_glusterfs(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at ns = vg_at(at, "endpointsNamespace");
    vg_check_volume_source(c, at);
    if (vg_at_is_set(&ns) && vg_at_text(&ns).n == 0)
        vg_bad_text(c, &ns, "if the endpointnamespace is set, it must be a valid namespace name");
    else if (vg_at_is_set(&ns))
        (void)vg_check_dns_label(c, &ns);
}

static void check_secret_namespace(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at ref = vg_at(at, "secretRef"), ns = vg_at(&ref, "namespace");
    vg_check_volume_source(c, at);
    if (vg_at_is_set(&ref))
        (void)vg_check_given(c, &ns);
}

static void check_azure_file(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at ns = vg_at(at, "secretNamespace");
    vg_check_volume_source(c, at);
    if (vg_at_is_set(&ns))
        (void)vg_check_given(c, &ns);
}

static void check_iscsi(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at ref = vg_at(at, "secretRef"), name = vg_at(&ref, "name");
    vg_check_volume_source(c, at);
    if (vg_at_is_set(&ref))
        (void)vg_check_given(c, &name);
}

static void check_local(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at path = vg_at(at, "path"), affinity = vg_at(at->up, "nodeAffinity");
    if (vg_check_given(c, &path))
        (void)vg_check_no_backsteps(c, &path);
    if (!vg_at_is_set(&affinity))
        vg_required(c, &affinity, "Local volume requires node affinity");
}

/* In the order of the original: the first that is there is checked, others are refused. */
static const struct {
    const char *name, *refused; /* how it is named when it is refused; NULL: the same */
    void (*check)(struct vg_check *c, const struct vg_at *at);
    bool is_never_refused;
} sources[] = {
    {.name = "hostPath", .check = vg_check_volume_source},
    {.name = "gcePersistentDisk", .check = vg_check_volume_source},
    {.name = "awsElasticBlockStore", .check = vg_check_volume_source},
    {.name = "glusterfs", .check = check_glusterfs},
    {.name = "flocker", .check = vg_check_volume_source},
    {.name = "nfs", .check = vg_check_volume_source},
    {.name = "rbd", .check = vg_check_volume_source},
    {.name = "quobyte", .check = vg_check_volume_source},
    {.name = "cephfs", .refused = "cephFS", .check = vg_check_volume_source},
    {.name = "iscsi", .check = check_iscsi},
    {.name = "cinder", .check = check_secret_namespace},
    {.name = "fc", .check = vg_check_volume_source},
    {.name = "flexVolume", .check = vg_check_volume_source, .is_never_refused = true},
    {.name = "azureFile", .check = check_azure_file},
    {.name = "vsphereVolume", .check = vg_check_volume_source},
    {.name = "photonPersistentDisk", .check = vg_check_volume_source},
    {.name = "portworxVolume", .check = vg_check_volume_source},
    {.name = "azureDisk", .check = vg_check_volume_source},
    {.name = "scaleIO", .check = vg_check_volume_source},
    {.name = "local", .check = check_local},
    {.name = "storageos", .check = check_secret_namespace},
    {.name = "csi", .check = check_csi},
};

static void check_source(struct vg_check *c, const struct vg_at *spec)
{
    bool has_one = false;
    for (size_t i = 0; i < VG_ARRAY_LEN(sources); i++) {
        struct vg_at at = vg_at(spec, sources[i].name);
        if (!vg_at_is_set(&at))
            continue;
        if (has_one && !sources[i].is_never_refused) {
            at.name = sources[i].refused ? sources[i].refused : at.name;
            vg_forbidden(c, &at, "may not specify more than 1 volume type");
            continue;
        }
        has_one = true;
        sources[i].check(c, &at);
    }
    if (!has_one)
        vg_required(c, spec, "must specify a volume type");
}

/* ---- the spec ---- */

static void check_capacity(struct vg_check *c, const struct vg_at *spec)
{
    static const char *const supported[] = {"storage", NULL};
    struct vg_at map = vg_at(spec, "capacity");
    size_t n = vg_at_n(&map);
    if (n == 0)
        vg_required(c, &map, NULL);
    if (!vg_json_get_str(map.v, "storage") || n > 1)
        vg_unsupported_value(c, &map, vg_at_shown(c, &map), supported);
    for (uint32_t i = 0; i < n; i++) {
        struct vg_at at = vg_at_key(&map, &map.v->members[i]);
        struct vg_quantity q;
        int64_t whole = 0;
        if (!vg_at_quantity(&at, &q) || vg_quantity_sign(&q) > 0)
            continue;
        if (vg_quantity_sign(&q) < 0 && vg_quantity_scaled(&q, 0, &whole, NULL) == 0)
            vg_bad_value(c, &at, vg_json_number(c, whole), "must be a valid resource quantity");
        vg_bad_text(c, &at, "must be greater than zero");
    }
}

static void check_attributes_class(struct vg_check *c, const struct vg_at *spec)
{
    struct vg_at class = vg_at(spec, "volumeAttributesClassName"), csi = vg_at(spec, "csi");
    if (!vg_at_is_set(&class))
        return;
    if (vg_at_text(&class).n == 0)
        vg_required(c, &class, "an empty string is disallowed");
    else
        (void)vg_check_dns_subdomain(c, &class);
    if (!vg_at_is_set(&csi))
        vg_required(c, &csi, "has to be specified when using volumeAttributesClassName");
}

/* "/", "//", "/.", "/x/..": all of them mean the root. */
static bool is_root(struct vg_slice s)
{
    int depth = 0;
    if (s.n == 0 || s.p[0] != '/')
        return false;
    for (size_t from = 1, i = 1; i <= s.n; i++) {
        if (i < s.n && s.p[i] != '/')
            continue;
        struct vg_slice part = vg_slice(s.p + from, i - from);
        if (vg_slice_eq(part, VG_SLICE_LIT("..")))
            depth -= depth > 0;
        else if (part.n && !vg_slice_eq(part, VG_SLICE_LIT(".")))
            depth++;
        from = i + 1;
    }
    return depth == 0;
}

static void check_spec(struct vg_check *c, const struct vg_at *spec)
{
    static const char *const policies[] = {"Delete", "Recycle", "Retain", NULL};
    static const char *const modes[] = {"Block", "Filesystem", NULL};
    struct vg_at access = vg_at(spec, "accessModes"), mode = vg_at(spec, "volumeMode");
    struct vg_at policy = vg_at(spec, "persistentVolumeReclaimPolicy");
    struct vg_at affinity = vg_at(spec, "nodeAffinity"), required = vg_at(&affinity, "required");
    struct vg_at class = vg_at(spec, "storageClassName");
    (void)vg_check_given(c, &access);
    vg_check_access_modes(c, &access);
    check_capacity(c, spec);
    if (vg_at_text(&policy).n)
        (void)vg_check_one_of(c, &policy, policies);
    if (vg_at_is_set(&required))
        vg_check_node_selector(c, &required);
    else if (vg_at_is_set(&affinity))
        vg_required(c, &required, "must specify required node constraints");
    check_source(c, spec);
    if (vg_at_is(&policy, "Recycle") &&
        is_root(vg_json_text(vg_json_at_path(spec->v, "hostPath.path"))))
        vg_forbidden(c, &policy, "may not be 'recycle' for a hostPath mount of '/'");
    if (vg_at_text(&class).n)
        (void)vg_check_dns_subdomain(c, &class);
    if (vg_at_is_set(&mode))
        (void)vg_check_one_of(c, &mode, modes);
    check_attributes_class(c, spec);
}

/* Options of mounts in an annotation, which some sources know. */
static void check_mount_options(struct vg_check *c, const struct vg_at *obj)
{
    static const char *const known[] = {"gcePersistentDisk",
                                        "awsElasticBlockStore",
                                        "glusterfs",
                                        "nfs",
                                        "rbd",
                                        "quobyte",
                                        "iscsi",
                                        "cinder",
                                        "cephfs",
                                        "azureFile",
                                        "vsphereVolume",
                                        "azureDisk",
                                        "photonPersistentDisk"};
    struct vg_at meta = vg_at(obj, "metadata"), annotations = vg_at(&meta, "annotations");
    struct vg_at at = vg_at(&annotations, MOUNT_OPTIONS);
    const struct vg_json *spec = vg_json_get_str(obj->v, "spec");
    if (!at.v)
        return;
    for (size_t i = 0; i < VG_ARRAY_LEN(known); i++)
        if (vg_json_get_str(spec, known[i]))
            return;
    vg_forbidden(c, &at, "may not specify mount options for this volume type");
}

static void check_own(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at spec = vg_at(obj, "spec"), iscsi = vg_at(&spec, "iscsi");
    struct vg_slice name = vg_json_text(vg_json_at_path(obj->v, "metadata.name"));
    struct vg_at portal =
        vg_at_of(&iscsi, "targetportal", vg_json_get_str(iscsi.v, "targetPortal"));
    check_spec(c, &spec);
    if (vg_json_get_str(iscsi.v, "initiatorName") &&
        name.n + 1 + vg_at_text(&portal).n > ISCSI_NAME_MAX)
        vg_bad_text(
            c, &portal,
            "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
            "if iscsi.initiatorName is specified.");
}

static void check(struct vg_check *c, const struct vg_at *obj)
{
    check_own(c, obj);
    check_mount_options(c, obj);
}

/* ---- updates ---- */

/* The sources of a spec, and nothing else. 0, -ENOMEM. */
static int only_sources(struct vg_arena *a, const struct vg_json *spec, struct vg_json *ret)
{
    int err = 0;
    *ret = vg_json_object();
    for (size_t i = 0; i < VG_ARRAY_LEN(sources) && err == 0; i++) {
        const struct vg_json *v = vg_json_get_str(spec, sources[i].name);
        if (v)
            err = vg_json_object_add(a, ret, vg_slice_str(sources[i].name), *v);
    }
    return err;
}

/* A secret for expansion may be added later: it is left out of the new one then. 0, -ENOMEM. */
static int without_new_secret(struct vg_arena *a, const struct vg_json *old, struct vg_json *now)
{
    const struct vg_slice name = VG_SLICE_LIT("controllerExpandSecretRef");
    const struct vg_json *was = vg_json_get_str(old, "csi"), *is = vg_json_get_str(now, "csi");
    struct vg_json csi;
    if (!was || !is || vg_json_get(was, name) || !vg_json_get(is, name))
        return 0;
    int err = vg_json_clone(a, is, &csi);
    if (err == 0)
        (void)vg_json_object_remove(&csi, name);
    return err < 0 ? err : vg_json_object_set(a, now, VG_SLICE_LIT("csi"), csi);
}

static void check_same_source(struct vg_check *c, const struct vg_at *spec,
                              const struct vg_json *old)
{
    struct vg_json was, is;
    int err = only_sources(c->arena, old, &was);
    if (err == 0)
        err = only_sources(c->arena, spec->v, &is);
    if (err == 0)
        err = without_new_secret(c->arena, &was, &is);
    int same = err < 0 ? err : vg_json_equal(&was, &is);
    c->errors->failed |= same < 0;
    if (same != 0)
        return;
    struct vg_at at = vg_at_of(spec, "persistentvolumesource", NULL);
    struct vg_slice diff = vg_go_diff(c, "", "PersistentVolumeSource", &was, &is);
    vg_forbidden(c, &at, "spec.persistentvolumesource is immutable after creation\n%.*s",
                 VG_SLICE_ARG(diff));
}

static void check_update(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), class = vg_at(&spec, "volumeAttributesClassName");
    const struct vg_json *before = vg_json_get_str(old, "spec");
    const struct vg_json *affinity = vg_json_get_str(before, "nodeAffinity");
    struct vg_at mode = vg_at_of(obj, "volumeMode", vg_json_get_str(spec.v, "volumeMode"));
    struct vg_at now = vg_at_of(obj, "nodeAffinity", vg_json_get_str(spec.v, "nodeAffinity"));
    check(c, obj);
    check_own(c, obj); /* twice, as there */
    check_same_source(c, &spec, before);
    (void)vg_check_immutable(c, &mode, vg_json_get_str(before, "volumeMode"));
    if (affinity && !vg_check_same(c, now.v, affinity))
        vg_bad_value(c, &now, vg_go_struct_of(c, "", "VolumeNodeAffinity", now.v),
                     "field is immutable, except for updating from beta label to GA");
    if (vg_json_get_str(before, "volumeAttributesClassName") && !vg_at_is_set(&class))
        vg_forbidden(c, &class, "update from non-nil value to nil is forbidden");
}

/* Its phase began when it was made. */
static int prepare(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old)
{
    const struct vg_json *created = vg_json_at_path(obj, "metadata.creationTimestamp");
    struct vg_json *status = vg_json_get_str(obj, "status");
    if (old || !created || !status)
        return 0;
    return vg_json_object_set(a, status, VG_SLICE_LIT("lastPhaseTransitionTime"), *created);
}

/* When it changed; the writer may say so itself. */
static int prepare_status(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old)
{
    const struct vg_slice name = VG_SLICE_LIT("lastPhaseTransitionTime");
    struct vg_json *status = vg_json_get_str(obj, "status");
    const struct vg_json *before = vg_json_get_str(old, "status");
    const struct vg_json *since = vg_json_get(before, name), *now = vg_json_get(status, name);
    if (!status)
        return 0;
    bool is_same_phase = vg_slice_eq(vg_json_text(vg_json_get_str(status, "phase")),
                                     vg_json_text(vg_json_get_str(before, "phase")));
    if (!is_same_phase && (!now || vg_slice_eq(vg_json_text(now), vg_json_text(since))))
        return vg_default_now(a, status, "lastPhaseTransitionTime");
    return is_same_phase && since && !now ? vg_json_object_set(a, status, name, *since) : 0;
}

/* ---- warnings ---- */

static void warn(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    static const char *const annotations[][2] = {
        {"volume.beta.kubernetes.io/storage-class",
         "deprecated since v1.8; use \"storageClassName\" attribute instead"},
        {MOUNT_OPTIONS, "deprecated since v1.31; use \"mountOptions\" attribute instead"},
    };
    /* The member, how it is shown, since when it is deprecated, and since when it does nothing. */
    static const char *const gone[][4] = {
        {"cephfs", "cephfs", "v1.28", "v1.31"},
        {"photonPersistentDisk", "photonPersistentDisk", "v1.11", "v1.16"},
        {"scaleIO", "scaleIO", "v1.16", "v1.22"},
        {"storageos", "storageOS", "v1.22", "v1.25"},
        {"glusterfs", "glusterfs", "v1.25", "v1.26"},
        {"rbd", "rbd", "v1.28", "v1.31"},
    };
    struct vg_at spec = vg_at(obj, "spec"), policy = vg_at(&spec, "persistentVolumeReclaimPolicy");
    const struct vg_json *set = vg_json_at_path(obj->v, "metadata.annotations");
    (void)old;
    for (size_t i = 0; i < VG_ARRAY_LEN(annotations); i++)
        if (vg_json_get_str(set, annotations[i][0]))
            vg_caution(c, "metadata.annotations[%s]: %s", annotations[i][0], annotations[i][1]);
    if (vg_at_is(&policy, "Recycle"))
        vg_caution_at(c, &policy,
                      "The Recycle reclaim policy is deprecated. Instead, the recommended approach "
                      "is to use dynamic provisioning.");
    for (size_t i = 0; i < VG_ARRAY_LEN(gone); i++)
        if (vg_json_get_str(spec.v, gone[i][0]))
            vg_caution(c, "spec.%s: deprecated in %s, non-functional in %s+", gone[i][1],
                       gone[i][2], gone[i][3]);
}

const struct vg_rules vg_rules_persistent_volume = {.group = "",
                                                    .kind = "PersistentVolume",
                                                    .prepare = prepare,
                                                    .prepare_status = prepare_status,
                                                    .check = check,
                                                    .check_update = check_update,
                                                    .warn = warn};
