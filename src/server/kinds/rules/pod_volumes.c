/* pod_volumes.c - volumes of a pod: one source each. What a kind of source needs is in a table,
 * what else it must keep to in a function of its own. */
#include "pod_int.h"
#include "storage.h"

#define ISCSI_NAME_MAX 64u
#define NEEDS_MAX 3u

typedef void source_fn(struct vg_pod *p, const struct vg_at *at);

/* A secret that is named must have a name. */
static void check_secret_ref(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at ref = vg_at(at, "secretRef"), name = vg_at(&ref, "name");
    if (vg_at_is_set(&ref))
        (void)vg_check_given(c, &name);
}

/* ---- of the node and the cluster ---- */

static void check_empty_dir(struct vg_pod *p, const struct vg_at *at)
{
    struct vg_at limit = vg_at(at, "sizeLimit");
    struct vg_quantity q;
    if (vg_at_quantity(&limit, &q) && vg_quantity_sign(&q) < 0)
        vg_forbidden(p->c, &limit, "SizeLimit field must be a valid resource quantity");
}

static void check_host_path(struct vg_pod *p, const struct vg_at *at)
{
    static const char *const types[] = {
        "",     "BlockDevice",  "CharDevice", "Directory", "DirectoryOrCreate",
        "File", "FileOrCreate", "Socket",     NULL};
    struct vg_at path = vg_at(at, "path"), type = vg_at(at, "type");
    if (!vg_check_given(p->c, &path))
        return;
    (void)vg_check_no_backsteps(p->c, &path);
    if (vg_at_is_set(&type))
        (void)vg_check_one_of(p->c, &type, types);
}

static void check_git(struct vg_pod *p, const struct vg_at *at)
{
    struct vg_at folder = vg_at(at, "directory");
    (void)vg_check_descending_path(p->c, &folder);
}

/* Of a secret or a config map. */
static void check_items(struct vg_pod *p, const struct vg_at *at)
{
    struct vg_at mode = vg_at(at, "defaultMode"), items = vg_at(at, "items");
    vg_pod_check_mode(p->c, &mode);
    vg_pod_check_secret_items(p->c, &items);
}

static void check_ephemeral(struct vg_pod *p, const struct vg_at *at)
{
    struct vg_at template = vg_at(at, "volumeClaimTemplate");
    if (vg_at_is_set(&template))
        vg_check_claim_template(p->c, &template);
    else
        vg_required(p->c, &template, NULL);
}

static void check_csi(struct vg_pod *p, const struct vg_at *at)
{
    struct vg_at driver = vg_at(at, "driver"), ref = vg_at(at, "nodePublishSecretRef");
    struct vg_at name = vg_at(&ref, "name");
    struct vg_at blamed = vg_at_of(at, "name", name.v);
    vg_check_csi_driver_name(p->c, &driver);
    if (!vg_at_is_set(&ref))
        return;
    if (vg_at_text(&name).n == 0)
        vg_required(p->c, &name, NULL);
    else
        (void)vg_check_dns_subdomain(p->c, &blamed);
}

static void check_image(struct vg_pod *p, const struct vg_at *at)
{
    static const char *const policies[] = {"Always", "IfNotPresent", "Never", NULL};
    struct vg_at policy = vg_at(at, "pullPolicy"), reference = vg_at(at, "reference");
    if (p->meta)
        (void)vg_check_given(p->c, &reference);
    if (vg_check_given(p->c, &policy))
        (void)vg_check_one_of(p->c, &policy, policies);
}

/* ---- disks of others ---- */

static void check_partition(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at partition = vg_at(at, "partition");
    if (vg_at_int(&partition) < 0 || vg_at_int(&partition) > 255)
        vg_bad_int(c, &partition, "must be between 1 and 255, inclusive");
}

static void check_gce(struct vg_pod *p, const struct vg_at *at)
{
    struct vg_at blamed = vg_at_of(at->up, "persistentDisk", at->v); /* as the original names it */
    struct vg_at name = vg_at(&blamed, "pdName");
    (void)vg_check_given(p->c, &name);
    check_partition(p->c, &blamed);
}

static void check_aws(struct vg_pod *p, const struct vg_at *at)
{
    check_partition(p->c, at);
}

static void check_nfs(struct vg_pod *p, const struct vg_at *at)
{
    struct vg_at path = vg_at(at, "path");
    struct vg_slice s = vg_at_text(&path);
    if (s.n == 0 || s.p[0] != '/')
        vg_bad_text(p->c, &path, "must be an absolute path");
}

static bool is_alnum(char ch)
{
    char low = (char)(ch | 32);
    return (low >= 'a' && low <= 'z') || (ch >= '0' && ch <= '9');
}

/* iqn.2001-04.com.example:storage */
static bool is_iqn(struct vg_slice s)
{
    static const char date[] = "iqn.dddd-dd.";
    size_t i = 0;
    for (; i < sizeof date - 1; i++)
        if (i >= s.n || (date[i] == 'd' ? s.p[i] < '0' || s.p[i] > '9' : s.p[i] != date[i]))
            return false;
    size_t from = i;
    while (i < s.n && (is_alnum(s.p[i]) || s.p[i] == '-' || s.p[i] == '.'))
        i++;
    if (i == from || i + 1 >= s.n || s.p[i] != ':')
        return false;
    for (i++; i < s.n; i++)
        if (s.p[i] == 0 || strchr(",;*&$|\t\n\f\r ", s.p[i]))
            return false;
    return true;
}

/* eui.0123456789abcdef, naa. with twice as many. */
static bool is_numbered(struct vg_slice s, size_t digits)
{
    for (size_t i = 4; i < s.n; i++)
        if (!is_alnum(s.p[i]))
            return false;
    return s.n == 4 + digits;
}

static void check_initiator(struct vg_check *c, const struct vg_at *at)
{
    struct vg_slice s = vg_at_text(at);
    bool is_good = vg_slice_has_prefix(s, VG_SLICE_LIT("iqn"))   ? is_iqn(s)
                   : vg_slice_has_prefix(s, VG_SLICE_LIT("eui")) ? is_numbered(s, 16)
                   : vg_slice_has_prefix(s, VG_SLICE_LIT("naa")) ? is_numbered(s, 32)
                                                                 : false;
    if (s.n < 3 ||
        (memcmp(s.p, "iqn", 3) != 0 && memcmp(s.p, "eui", 3) != 0 && memcmp(s.p, "naa", 3) != 0))
        vg_bad_text(c, at, "must be valid format starting with iqn, eui, or naa");
    else if (!is_good)
        vg_bad_text(c, at, "must be valid format");
}

static void check_iscsi(struct vg_pod *p, const struct vg_at *at)
{
    struct vg_at iqn = vg_at(at, "iqn"), lun = vg_at(at, "lun"), secret = vg_at(at, "secretRef");
    struct vg_at find = vg_at(at, "chapAuthDiscovery"), login = vg_at(at, "chapAuthSession");
    const struct vg_json *initiator = vg_json_get_str(at->v, "initiatorName");
    struct vg_at blamed = vg_at_of(at, "initiatorname", initiator);
    if (vg_check_given(p->c, &iqn))
        check_initiator(p->c, &iqn);
    (void)vg_check_range(p->c, &lun, 0, 255);
    if ((vg_at_is_true(&find) || vg_at_is_true(&login)) && !vg_at_is_set(&secret))
        vg_required(p->c, &secret, NULL);
    if (initiator)
        check_initiator(p->c, &blamed);
}

/* Together they name the interface on the node. */
static void check_iscsi_name(struct vg_pod *p, const struct vg_at *volume)
{
    struct vg_at iscsi = vg_at(volume, "iscsi"), portal = vg_at(&iscsi, "targetPortal");
    struct vg_at name = vg_at(volume, "name"), initiator = vg_at(&iscsi, "initiatorName");
    if (vg_at_is_set(&initiator) &&
        vg_at_text(&name).n + 1 + vg_at_text(&portal).n > ISCSI_NAME_MAX)
        vg_bad_text(p->c, &name,
                    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 "
                    "characters if iscsi.initiatorName is specified.");
}

static void check_flocker(struct vg_pod *p, const struct vg_at *at)
{
    struct vg_at name = vg_at(at, "datasetName"), uuid = vg_at(at, "datasetUUID");
    struct vg_slice s = vg_at_text(&name);
    if (s.n == 0 && vg_at_text(&uuid).n == 0)
        vg_required(p->c, at, "one of datasetName and datasetUUID is required");
    if (s.n && vg_at_text(&uuid).n)
        vg_bad_value(p->c, at, VG_SLICE_LIT("\"resource\""),
                     "datasetName and datasetUUID can not be specified simultaneously");
    if (s.n && memchr(s.p, '/', s.n))
        vg_bad_text(p->c, &name, "must not contain '/'");
}

static void check_cinder(struct vg_pod *p, const struct vg_at *at)
{
    check_secret_ref(p->c, at);
}

/* One colon, or brackets around what has more. */
static bool is_host_port(struct vg_slice s)
{
    const char *last = s.n ? memrchr(s.p, ':', s.n) : NULL;
    if (!last)
        return false;
    size_t n = (size_t)(last - s.p);
    if (s.p[0] == '[')
        return n >= 2 && s.p[n - 1] == ']' && memchr(s.p, ']', n) == s.p + n - 1 &&
               !memchr(s.p + 1, '[', s.n - 1);
    return !memchr(s.p, ':', n) && !memchr(s.p, '[', s.n) && !memchr(s.p, ']', s.n);
}

static void check_quobyte(struct vg_pod *p, const struct vg_at *at)
{
    static const char pairs[] = "must be a host:port pair or multiple pairs separated by commas";
    struct vg_at registry = vg_at(at, "registry"), tenant = vg_at(at, "tenant");
    struct vg_at volume = vg_at(at, "volume");
    struct vg_slice s = vg_at_text(&registry);
    if (s.n == 0)
        vg_required(p->c, &registry, pairs);
    else if (vg_at_text(&tenant).n >= 65)
        vg_required(p->c, &tenant, "must be a UUID and may not exceed a length of 64 characters");
    else
        for (size_t from = 0, i = 0; i <= s.n; i++) {
            if (i < s.n && s.p[i] != ',')
                continue;
            if (!is_host_port(vg_slice(s.p + from, i - from)))
                vg_bad_text(p->c, &registry, pairs);
            from = i + 1;
        }
    (void)vg_check_given(p->c, &volume);
}

static void check_fc(struct vg_pod *p, const struct vg_at *at)
{
    struct vg_at names = vg_at(at, "targetWWNs"), ids = vg_at(at, "wwids"), lun = vg_at(at, "lun");
    if (vg_at_n(&names) == 0 && vg_at_n(&ids) == 0)
        vg_required(p->c, &names, "must specify either targetWWNs or wwids, but not both");
    if (vg_at_n(&names) && vg_at_n(&ids))
        vg_bad(p->c, &names, "targetWWNs and wwids can not be specified simultaneously");
    if (vg_at_n(&names) == 0)
        return;
    if (!vg_at_is_set(&lun))
        vg_required(p->c, &lun, "lun is required if targetWWNs is specified");
    else
        (void)vg_check_range(p->c, &lun, 0, 255);
}

static bool ends_with(struct vg_slice s, const char *suffix)
{
    size_t n = strlen(suffix);
    return s.n >= n && strncasecmp(s.p + s.n - n, suffix, n) == 0;
}

static void check_flex(struct vg_pod *p, const struct vg_at *at)
{
    struct vg_at options = vg_at(at, "options");
    if (!options.v)
        return;
    VG_JSON_FOREACH_MEMBER (m, options.v) {
        struct vg_at option = vg_at_key(&options, m);
        struct vg_slice ns = option.key;
        const char *slash = ns.n ? memchr(ns.p, '/', ns.n) : NULL;
        if (slash)
            ns.n = (size_t)(slash - ns.p);
        bool is_own = ends_with(ns, ".kubernetes.io") || ends_with(ns, ".k8s.io") ||
                      (ns.n == 13 && ends_with(ns, "kubernetes.io")) ||
                      (ns.n == 6 && ends_with(ns, "k8s.io"));
        if (is_own)
            vg_bad_value(p->c, &option, vg_json_quoted(p->c, option.key),
                         "kubernetes.io and k8s.io namespaces are reserved");
    }
}

static void check_azure_disk(struct vg_pod *p, const struct vg_at *at)
{
    static const char *const modes[] = {"None", "ReadOnly", "ReadWrite", NULL};
    static const char *const kinds[] = {"Dedicated", "Managed", "Shared", NULL};
    static const char *const managed[] = {"/subscriptions/{sub-id}/resourcegroups/{group-name}/"
                                          "providers/microsoft.compute/disks/{disk-id}",
                                          NULL};
    static const char *const blob[] = {
        "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd", NULL};
    struct vg_at mode = vg_at(at, "cachingMode"), kind = vg_at(at, "kind");
    struct vg_at uri = vg_at(at, "diskURI");
    if (vg_at_is_set(&mode))
        (void)vg_check_one_of(p->c, &mode, modes);
    if (!vg_at_is_set(&kind))
        return;
    (void)vg_check_one_of(p->c, &kind, kinds);
    bool is_managed = vg_at_is(&kind, "Managed");
    struct vg_slice start = is_managed ? VG_SLICE_LIT("/subscriptions/") : VG_SLICE_LIT("https://");
    if (!vg_slice_has_prefix(vg_at_text(&uri), start))
        vg_unsupported(p->c, &uri, is_managed ? managed : blob);
}

static void check_storage_os(struct vg_pod *p, const struct vg_at *at)
{
    struct vg_at name = vg_at(at, "volumeName"), ns = vg_at(at, "volumeNamespace");
    if (vg_check_given(p->c, &name))
        (void)vg_check_dns_label(p->c, &name);
    if (vg_at_text(&ns).n)
        (void)vg_check_dns_label(p->c, &ns);
    check_secret_ref(p->c, at);
}

/* ---- all of them ---- */

/* In the order of the original: the first that is there is checked, others are refused. */
static const struct source {
    const char *name;
    const char *needs[NEEDS_MAX + 1u]; /* members that must be given */
    source_fn *check;                  /* what else there is to say; NULL: nothing */
} sources[] = {
    {"emptyDir", {NULL}, check_empty_dir},
    {"hostPath", {NULL}, check_host_path},
    {"gitRepo", {"repository"}, check_git},
    {"gcePersistentDisk", {NULL}, check_gce},
    {"awsElasticBlockStore", {"volumeID"}, check_aws},
    {"secret", {"secretName"}, check_items},
    {"nfs", {"server", "path"}, check_nfs},
    {"iscsi", {"targetPortal"}, check_iscsi},
    {"glusterfs", {"endpoints", "path"}, NULL},
    {"flocker", {NULL}, check_flocker},
    {"persistentVolumeClaim", {"claimName"}, NULL},
    {"rbd", {"monitors", "image"}, NULL},
    {"cinder", {"volumeID"}, check_cinder},
    {"cephfs", {"monitors"}, NULL},
    {"quobyte", {NULL}, check_quobyte},
    {"downwardAPI", {NULL}, vg_pod_check_downward},
    {"fc", {NULL}, check_fc},
    {"flexVolume", {"driver"}, check_flex},
    {"configMap", {"name"}, check_items},
    {"azureFile", {"secretName", "shareName"}, NULL},
    {"vsphereVolume", {"volumePath"}, NULL},
    {"photonPersistentDisk", {"pdID"}, NULL},
    {"portworxVolume", {"volumeID"}, NULL},
    {"azureDisk", {"diskName", "diskURI"}, check_azure_disk},
    {"storageos", {NULL}, check_storage_os},
    {"projected", {NULL}, vg_pod_check_projected},
    {"scaleIO", {"gateway", "system", "volumeName"}, NULL},
    {"csi", {NULL}, check_csi},
    {"ephemeral", {NULL}, check_ephemeral},
    {"image", {NULL}, check_image},
};

static void check_one(struct vg_pod *p, const struct source *source, const struct vg_at *at)
{
    for (const char *const *name = source->needs; *name; name++) {
        struct vg_at it = vg_at(at, *name);
        (void)vg_check_given(p->c, &it);
    }
    if (source->check)
        source->check(p, at);
}

/* The claim that is made for an ephemeral volume: <pod>-<volume>. */
static bool claim_name(struct vg_pod *p, const struct vg_at *volume, struct vg_slice *ret)
{
    struct vg_slice pod = vg_json_text(vg_json_get_str(p->meta, "name"));
    struct vg_slice name = vg_json_text(vg_json_get_str(volume->v, "name"));
    if (pod.n == 0 || !vg_json_get_str(volume->v, "ephemeral"))
        return false;
    int err = vg_arena_printf(p->c->arena, ret, "%.*s-%.*s", VG_SLICE_ARG(pod), VG_SLICE_ARG(name));
    p->c->errors->failed |= err < 0;
    return err == 0;
}

static void check_claim_name(struct vg_pod *p, const struct vg_at *volume)
{
    struct vg_at name = vg_at(volume, "name");
    struct vg_name_reasons why = {0};
    struct vg_slice claim;
    if (vg_at_text(&name).n == 0 || !claim_name(p, volume, &claim) ||
        vg_validate_dns1123_subdomain(claim, VG_NAME_CHARACTERS, &why))
        return;
    for (uint32_t i = 0; i < why.n; i++)
        vg_bad_text(p->c, &name, "PVC name %.*s: %s", VG_SLICE_ARG(vg_json_quoted(p->c, claim)),
                    why.v[i]);
}

static void check_source(struct vg_pod *p, const struct vg_at *volume)
{
    bool has_one = false;
    for (size_t i = 0; i < VG_ARRAY_LEN(sources); i++) {
        struct vg_at source = vg_at(volume, sources[i].name);
        if (!vg_at_is_set(&source))
            continue;
        if (has_one) {
            vg_forbidden(p->c, &source, "may not specify more than 1 volume type");
        } else {
            has_one = true;
            check_one(p, &sources[i], &source);
            if (sources[i].check == check_ephemeral)
                check_claim_name(p, volume);
        }
        if (sources[i].check == check_iscsi)
            check_iscsi_name(p, volume);
    }
    if (!has_one)
        vg_required(p->c, volume, "must specify a volume type");
}

void vg_check_volume_source(struct vg_check *c, const struct vg_at *source)
{
    struct vg_pod none = {.c = c};
    for (size_t i = 0; i < VG_ARRAY_LEN(sources); i++)
        if (strcmp(sources[i].name, source->name) == 0)
            check_one(&none, &sources[i], source);
}

void vg_pod_check_volumes(struct vg_pod *p)
{
    struct vg_at volumes = vg_at(p->spec, "volumes");
    VG_AUTO(names) made = {0};
    struct vg_slice claim;
    VG_CHECK_EACH (p->c, volume, &volumes)
        if (claim_name(p, &volume, &claim))
            (void)vg_names_add(p->c, &made, claim, NULL);
    VG_CHECK_EACH (p->c, volume, &volumes) {
        struct vg_at name = vg_at(&volume, "name");
        struct vg_at source = vg_at(&volume, "persistentVolumeClaim");
        struct vg_at wanted = vg_at(&source, "claimName");
        size_t before = p->c->errors->n;
        check_source(p, &volume);
        if (vg_check_given(p->c, &name))
            (void)vg_check_dns_label(p->c, &name);
        if (vg_names_has(&p->volumes, vg_at_text(&name)))
            vg_duplicate(p->c, &name);
        if (p->c->errors->n == before)
            (void)vg_names_add(p->c, &p->volumes, vg_at_text(&name), volume.v);
        if (vg_at_is_set(&source) && vg_names_has(&made, vg_at_text(&wanted)))
            vg_bad_text(p->c, &wanted,
                        "must not reference a PVC that gets created for an ephemeral volume");
    }
}
