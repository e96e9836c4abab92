/* go_struct.c - see go_struct.h.
 * Fields come in the order of the versioned type, which is the internal one's but for those in
 * `moved`. */
#include "go_struct.h"

#include "base/buf.h"
#include "server/kinds/types.h"
#include "json/write.h"

/* Names that are more than their JSON name with a capital. */
static const char *const names[][2] = {
    {"apiGroup", "APIGroup"},
    {"apiGroups", "APIGroups"},
    {"apiVersion", "APIVersion"},
    {"awsElasticBlockStore", "AWSElasticBlockStore"},
    {"cel", "CEL"},
    {"cephfs", "CephFS"},
    {"chapAuthDiscovery", "DiscoveryCHAPAuth"},
    {"chapAuthSession", "SessionCHAPAuth"},
    {"cidrs", "CIDRs"},
    {"csi", "CSI"},
    {"diskURI", "DataDiskURI"},
    {"dnsConfig", "DNSConfig"},
    {"dnsPolicy", "DNSPolicy"},
    {"fc", "FC"},
    {"fsGroup", "FSGroup"},
    {"fsGroupChangePolicy", "FSGroupChangePolicy"},
    {"fsType", "FSType"},
    {"gcePersistentDisk", "GCEPersistentDisk"},
    {"gmsaCredentialSpec", "GMSACredentialSpec"},
    {"gmsaCredentialSpecName", "GMSACredentialSpecName"},
    {"grpc", "GRPC"},
    {"httpGet", "HTTPGet"},
    {"httpHeaders", "HTTPHeaders"},
    {"ip", "IP"},
    {"iqn", "IQN"},
    {"iscsi", "ISCSI"},
    {"iscsiInterface", "ISCSIInterface"},
    {"nfs", "NFS"},
    {"os", "OS"},
    {"pdName", "PDName"},
    {"rbd", "RBD"},
    {"seLinuxChangePolicy", "SELinuxChangePolicy"},
    {"seLinuxOptions", "SELinuxOptions"},
    {"sslEnabled", "SSLEnabled"},
    {"storageos", "StorageOS"},
    {"tcpSocket", "TCPSocket"},
    {"tty", "TTY"},
    {"uid", "UID"},
    {"url", "URL"},
    {"wwids", "WWIDs"},
};
/* Those of one type alone. */
static const char *const own_names[][3] = {
    {"DeviceAttribute", "bool", "BoolValue"},
    {"DeviceAttribute", "bools", "BoolValues"},
    {"DeviceAttribute", "int", "IntValue"},
    {"DeviceAttribute", "ints", "IntValues"},
    {"DeviceAttribute", "string", "StringValue"},
    {"DeviceAttribute", "strings", "StringValues"},
    {"DeviceAttribute", "version", "VersionValue"},
    {"DeviceAttribute", "versions", "VersionValues"},
    {"GlusterfsPersistentVolumeSource", "endpoints", "EndpointsName"},
    {"GlusterfsVolumeSource", "endpoints", "EndpointsName"},
    {"RBDPersistentVolumeSource", "image", "RBDImage"},
    {"RBDPersistentVolumeSource", "monitors", "CephMonitors"},
    {"RBDPersistentVolumeSource", "pool", "RBDPool"},
    {"RBDPersistentVolumeSource", "user", "RadosUser"},
    {"RBDVolumeSource", "image", "RBDImage"},
    {"RBDVolumeSource", "monitors", "CephMonitors"},
    {"RBDVolumeSource", "pool", "RBDPool"},
    {"RBDVolumeSource", "user", "RadosUser"},
};
/* Fields of a type that stand elsewhere: behind another. */
static const char *const moved[][3] = {
    {"PersistentVolumeSpec", "quobyte", "rbd"},
    {"PersistentVolumeSpec", "flexVolume", "iscsi"},
    {"PersistentVolumeSource", "quobyte", "rbd"},
    {"PersistentVolumeSource", "flexVolume", "iscsi"},
    {"PodSecurityContext", "sysctls", "fsGroupChangePolicy"},
    {"PodSpec", "overhead", "runtimeClassName"},
    {"PodSpec", "preemptionPolicy", "priority"},
    {"PodSpec", "setHostnameAsFQDN", "subdomain"},
    {"Volume", "quobyte", "rbd"},
};
/* Fields that the internal type does not have. */
static const char *const hidden[][2] = {
    {"PodSpec", "hostIPC"},   {"PodSpec", "hostNetwork"},    {"PodSpec", "hostPID"},
    {"PodSpec", "hostUsers"}, {"PodSpec", "serviceAccount"}, {"PodSpec", "shareProcessNamespace"},
};
/* Fields that it alone has, before the others, and what they are when they are absent. */
static const char *const extra[][4] = {
    {"PodSecurityContext", "hostNetwork", "HostNetwork", "false"},
    {"PodSecurityContext", "hostPID", "HostPID", "false"},
    {"PodSecurityContext", "hostIPC", "HostIPC", "false"},
    {"PodSecurityContext", "shareProcessNamespace", "ShareProcessNamespace", "null"},
    {"PodSecurityContext", "hostUsers", "HostUsers", "null"},
};

/* Numbers that are no pointers there. */
static const char *const zeros[][2] = {
    {"RollingUpdateDaemonSet", "maxSurge"},
    {"RollingUpdateDaemonSet", "maxUnavailable"},
    {"RollingUpdateDeployment", "maxSurge"},
    {"RollingUpdateDeployment", "maxUnavailable"},
    {"RollingUpdateStatefulSetStrategy", "partition"},
};

static int append_name(struct vg_buf *b, const struct vg_schema_type *t, const char *name)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(own_names); i++)
        if (strcmp(own_names[i][0], t->name) == 0 && strcmp(own_names[i][1], name) == 0)
            return vg_buf_printf(b, "\"%s\":", own_names[i][2]);
    for (size_t i = 0; i < VG_ARRAY_LEN(names); i++)
        if (strcmp(names[i][0], name) == 0)
            return vg_buf_printf(b, "\"%s\":", names[i][1]);
    char first = (char)(name[0] >= 'a' && name[0] <= 'z' ? name[0] - 32 : name[0]);
    return vg_buf_printf(b, "\"%c%s\":", first, name + 1);
}

static bool is_moved(const struct vg_schema_type *t, const char *name)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(moved); i++)
        if (strcmp(moved[i][0], t->name) == 0 && strcmp(moved[i][1], name) == 0)
            return true;
    return false;
}

/* Types of apimachinery have JSON names inside as well. */
static bool is_plain(const struct vg_schema_type *t)
{
    static const char *const plain[] = {"LabelSelector", "Condition", "ObjectMeta"};
    for (size_t i = 0; i < VG_ARRAY_LEN(plain); i++)
        if (strcmp(t->name, plain[i]) == 0)
            return true;
    return false;
}

static int append_type(struct vg_buf *b, const struct vg_schema_type *t, const struct vg_json *v);

static int append_absent(struct vg_buf *b, const struct vg_schema_type *t,
                         const struct vg_schema_field *f)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(zeros); i++)
        if (strcmp(zeros[i][0], t->name) == 0 && strcmp(zeros[i][1], f->name) == 0)
            return vg_buf_printf(b, "0");
    if (f->shape != VG_SCHEMA_ONE || vg_schema_is(f, VG_SCHEMA_POINTER))
        return vg_buf_printf(b, "null");
    switch ((enum vg_schema_value)f->value) {
    case VG_SCHEMA_STRING:
        return vg_buf_printf(b, "\"\"");
    case VG_SCHEMA_BOOL:
        return vg_buf_printf(b, "false");
    case VG_SCHEMA_INT32:
    case VG_SCHEMA_INT64:
    case VG_SCHEMA_DOUBLE:
    case VG_SCHEMA_INT_OR_STRING:
        return vg_buf_printf(b, "0");
    case VG_SCHEMA_QUANTITY:
        return vg_buf_printf(b, "\"0\"");
    case VG_SCHEMA_TYPE:
        return append_type(b, f->type, NULL);
    default:
        return vg_buf_printf(b, "null");
    }
}

/* Recursion is bounded by how deep types nest. */
static int append_value(struct vg_buf *b, const struct vg_schema_type *t,
                        const struct vg_schema_field *f, const struct vg_json *v)
{
    bool is_struct = f->value == VG_SCHEMA_TYPE;
    if (!v || v->type == VG_JSON_NULL)
        return append_absent(b, t, f);
    if (!is_struct)
        return vg_json_write(b, v, VG_JSON_ESCAPE_HTML);
    if (f->shape == VG_SCHEMA_ONE)
        return append_type(b, f->type, v);
    bool is_list = f->shape == VG_SCHEMA_LIST;
    int r = vg_buf_append_byte(b, is_list ? '[' : '{');
    for (uint32_t i = 0; i < v->n && r == 0; i++) {
        r = i ? vg_buf_append_byte(b, ',') : 0;
        if (r == 0 && !is_list) {
            struct vg_json key = vg_json_string_ref(vg_json_key(&v->members[i]));
            r = vg_json_write(b, &key, VG_JSON_ESCAPE_HTML);
            r = r < 0 ? r : vg_buf_append_byte(b, ':');
        }
        if (r == 0)
            r = append_type(b, f->type, is_list ? &v->items[i] : &v->members[i].value);
    }
    return r < 0 ? r : vg_buf_append_byte(b, is_list ? ']' : '}');
}

/* Metadata that stands inside of a struct: what of it is set, among the fields. */
static int append_meta(struct vg_buf *b, const struct vg_json *v)
{
    int r = 0;
    if (v)
        VG_JSON_FOREACH_MEMBER (m, v) {
            r = r < 0 ? r : vg_buf_printf(b, "\"%.*s\":", (int)m->key_n, m->key);
            r = r < 0 ? r : vg_json_write(b, &m->value, VG_JSON_ESCAPE_HTML);
            r = r < 0 ? r : vg_buf_append_byte(b, ',');
        }
    return r;
}

/* With a comma behind it. */
static int append_field(struct vg_buf *b, const struct vg_schema_type *t,
                        const struct vg_schema_field *f, const struct vg_json *v)
{
    const struct vg_json *inner = vg_json_get_str(v, f->name);
    if (strcmp(f->name, "metadata") == 0)
        return append_meta(b, inner);
    int r = append_name(b, t, f->name);
    r = r < 0 ? r : append_value(b, t, f, inner);
    return r < 0 ? r : vg_buf_append_byte(b, ',');
}

static bool is_hidden(const struct vg_schema_type *t, const char *name)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(hidden); i++)
        if (strcmp(hidden[i][0], t->name) == 0 && strcmp(hidden[i][1], name) == 0)
            return true;
    return false;
}

static int append_extra(struct vg_buf *b, const struct vg_schema_type *t, const struct vg_json *v)
{
    int r = 0;
    for (size_t i = 0; i < VG_ARRAY_LEN(extra) && r == 0; i++) {
        const struct vg_json *m = vg_json_get_str(v, extra[i][1]);
        if (strcmp(extra[i][0], t->name) != 0)
            continue;
        r = vg_buf_printf(b, "\"%s\":", extra[i][2]);
        if (r == 0)
            r = m ? vg_json_write(b, m, VG_JSON_ESCAPE_HTML) : vg_buf_printf(b, "%s", extra[i][3]);
        r = r < 0 ? r : vg_buf_append_byte(b, ',');
    }
    return r;
}

/* Those that stand behind that one. */
static int append_moved(struct vg_buf *b, const struct vg_schema_type *t, const char *behind,
                        const struct vg_json *v)
{
    int r = 0;
    for (size_t i = 0; i < VG_ARRAY_LEN(moved) && r == 0; i++) {
        if (strcmp(moved[i][0], t->name) != 0 || strcmp(moved[i][2], behind) != 0)
            continue;
        const struct vg_schema_field *f = vg_schema_field(t, vg_slice_str(moved[i][1]));
        if (f)
            r = append_field(b, t, f, v);
    }
    return r;
}

static int append_type(struct vg_buf *b, const struct vg_schema_type *t, const struct vg_json *v)
{
    if (is_plain(t))
        return v ? vg_json_write(b, v, VG_JSON_ESCAPE_HTML) : vg_buf_printf(b, "{}");
    int r = vg_buf_append_byte(b, '{');
    r = r < 0 ? r : append_extra(b, t, v);
    for (unsigned i = 0; i < t->n && r == 0; i++) {
        const struct vg_schema_field *f = &t->fields[i];
        if (is_moved(t, f->name) || is_hidden(t, f->name))
            continue;
        r = append_field(b, t, f, v);
        if (r == 0)
            r = append_moved(b, t, f->name, v);
    }
    if (r == 0 && b->p[b->n - 1] == ',')
        b->n--;
    return r < 0 ? r : vg_buf_append_byte(b, '}');
}

static int append_list(struct vg_buf *b, const struct vg_schema_type *t, const struct vg_json *v)
{
    int r = vg_buf_append_byte(b, '[');
    for (uint32_t i = 0; i < v->n && r == 0; i++) {
        r = i ? vg_buf_append_byte(b, ',') : 0;
        if (r == 0)
            r = append_type(b, t, &v->items[i]);
    }
    return r < 0 ? r : vg_buf_append_byte(b, ']');
}

struct vg_slice vg_go_struct(struct vg_check *c, const struct vg_schema_type *type,
                             const struct vg_json *v)
{
    VG_AUTO(buf) b = {.max = VG_FIELD_VALUE_MAX};
    struct vg_slice ret = VG_SLICE_LIT("null");
    if (vg_field_errors_is_full(c->errors))
        return ret;
    int err = vg_json_is(v, VG_JSON_ARRAY) ? append_list(&b, type, v) : append_type(&b, type, v);
    if (err == VIGIL_E_TOO_LARGE)
        return VG_FIELD_VALUE_LONG;
    if (err < 0 || vg_arena_keep(c->arena, vg_buf_slice(&b), &ret) < 0)
        c->errors->failed = true;
    return ret;
}

struct vg_slice vg_go_struct_of(struct vg_check *c, const char *group, const char *type,
                                const struct vg_json *v)
{
    const struct vg_schema_type *t =
        vg_schema_find(vg_slice_str(group), VG_SLICE_LIT("v1"), vg_slice_str(type));
    return t && v ? vg_go_struct(c, t, v) : VG_SLICE_LIT("null");
}

void vg_bad_go(struct vg_check *c, const struct vg_at *at, const struct vg_schema_type *type,
               const char *detail)
{
    vg_bad_value(c, at, vg_go_struct(c, type, at->v), "%s", detail);
}

bool vg_check_immutable_go(struct vg_check *c, const struct vg_at *at, const struct vg_json *old,
                           const char *group, const char *type)
{
    static const struct vg_json none = {.type = VG_JSON_OBJECT};
    if (vg_check_same(c, at->v ? at->v : &none, old ? old : &none))
        return true;
    vg_bad_go(c, at, vg_schema_find(vg_slice_str(group), VG_SLICE_LIT("v1"), vg_slice_str(type)),
              "field is immutable");
    return false;
}
