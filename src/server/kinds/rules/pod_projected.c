/* pod_projected.c - volumes that hold files made of secrets, config maps, fields of the pod and
 * tokens: each by itself, and several in one folder. Trust bundles and certificates of pods are
 * dropped before (pod_prepare.c). */
#include "pod_int.h"

#define TOKEN_SECONDS_MIN 600
#define TOKEN_SECONDS_MAX ((int64_t)1 << 32)

void vg_pod_check_mode(struct vg_check *c, const struct vg_at *at)
{
    if (vg_at_is_set(at) && (vg_at_int(at) < 0 || vg_at_int(at) > 0777))
        vg_bad_int(c, at, "must be a number between 0 and 0777 (octal), both inclusive");
}

/* Below the folder, and not a name that begins with two dots: those are the kubelet's. */
static void check_file_path(struct vg_check *c, const struct vg_at *at)
{
    struct vg_slice s = vg_at_text(at);
    (void)vg_check_descending_path(c, at);
    if (vg_slice_has_prefix(s, VG_SLICE_LIT("..")) && !vg_slice_has_prefix(s, VG_SLICE_LIT("../")))
        vg_bad_text(c, at, "must not start with '..'");
}

static void check_item(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at key = vg_at(at, "key"), path = vg_at(at, "path"), mode = vg_at(at, "mode");
    (void)vg_check_given(c, &key);
    (void)vg_check_given(c, &path);
    check_file_path(c, &path);
    vg_pod_check_mode(c, &mode);
}

void vg_pod_check_secret_items(struct vg_check *c, const struct vg_at *items)
{
    VG_CHECK_EACH (c, item, items)
        check_item(c, &item);
}

/* A file of the downward API; it is blamed on the volume, as there. */
static void check_downward_file(struct vg_check *c, const struct vg_at *volume,
                                const struct vg_json *file)
{
    static const char *const fields[] = {"metadata.annotations", "metadata.labels", "metadata.name",
                                         "metadata.namespace",   "metadata.uid",    NULL};
    struct vg_at at = *volume;
    at.v = file;
    struct vg_at path = vg_at(&at, "path"), field = vg_at(&at, "fieldRef");
    struct vg_at resource = vg_at(&at, "resourceFieldRef"), mode = vg_at(&at, "mode");
    (void)vg_check_given(c, &path);
    check_file_path(c, &path);
    if (vg_at_is_set(&field)) {
        vg_pod_check_field_ref(c, &field, fields);
        if (vg_at_is_set(&resource))
            vg_bad_value(c, &at, VG_SLICE_LIT("\"resource\""),
                         "fieldRef and resourceFieldRef can not be specified simultaneously");
    } else if (vg_at_is_set(&resource)) {
        vg_pod_check_resource_ref(c, &resource, true);
    } else {
        vg_required(c, &at, "one of fieldRef and resourceFieldRef is required");
    }
    vg_pod_check_mode(c, &mode);
}

void vg_pod_check_downward(struct vg_pod *p, const struct vg_at *at)
{
    struct vg_at mode = vg_at(at, "defaultMode"), items = vg_at(at, "items");
    vg_pod_check_mode(p->c, &mode);
    VG_CHECK_EACH (p->c, file, &items)
        check_downward_file(p->c, at, file.v);
}

/* ---- several in one folder ---- */

struct projection {
    struct vg_check *c;
    const struct vg_at *at; /* the volume's source */
    struct vg_names paths;
};

static void take_path(struct projection *j, struct vg_slice path, struct vg_slice blamed)
{
    if (!vg_names_add(j->c, &j->paths, path, NULL))
        vg_bad_value(j->c, j->at, vg_json_quoted(j->c, blamed), "conflicting duplicate paths");
}

static void project_items(struct projection *j, const struct vg_at *at)
{
    struct vg_at name = vg_at(at, "name"), items = vg_at(at, "items");
    if (!vg_at_is_set(at))
        return;
    (void)vg_check_given(j->c, &name);
    VG_AT_FOREACH (item, &items) {
        struct vg_slice path = vg_json_text(vg_json_get_str(item.v, "path"));
        check_item(j->c, &item);
        if (path.n)
            take_path(j, path, vg_at_text(&name));
    }
}

static void project_downward(struct projection *j, const struct vg_at *at)
{
    struct vg_at items = vg_at(at, "items");
    VG_AT_FOREACH (file, &items) {
        struct vg_slice path = vg_json_text(vg_json_get_str(file.v, "path"));
        check_downward_file(j->c, at, file.v);
        if (path.n)
            take_path(j, path, path);
    }
}

static void project_token(struct projection *j, const struct vg_at *at)
{
    struct vg_at seconds = vg_at(at, "expirationSeconds");
    struct vg_at path = vg_at_of(j->at, "path", vg_json_get_str(at->v, "path"));
    if (!vg_at_is_set(at))
        return;
    if (vg_at_int(&seconds) < TOKEN_SECONDS_MIN)
        vg_bad_int(j->c, &seconds, "may not specify a duration less than 10 minutes");
    if (vg_at_int(&seconds) > TOKEN_SECONDS_MAX)
        vg_bad_int(j->c, &seconds, "may not specify a duration larger than 2^32 seconds");
    if (vg_check_given(j->c, &path))
        check_file_path(j->c, &path);
}

void vg_pod_check_projected(struct vg_pod *p, const struct vg_at *at)
{
    struct projection j = {.c = p->c, .at = at};
    struct vg_at mode = vg_at(at, "defaultMode"), sources = vg_at(at, "sources");
    vg_pod_check_mode(p->c, &mode);
    VG_CHECK_EACH (p->c, source, &sources) {
        struct vg_at secret = vg_at(&source, "secret"), config = vg_at(&source, "configMap");
        struct vg_at downward = vg_at(&source, "downwardAPI");
        struct vg_at token = vg_at(&source, "serviceAccountToken");
        project_items(&j, &secret);
        project_items(&j, &config);
        project_downward(&j, &downward);
        project_token(&j, &token);
        int n = vg_at_is_set(&secret) + vg_at_is_set(&config) + vg_at_is_set(&downward) +
                vg_at_is_set(&token);
        if (n > 1)
            vg_forbidden(p->c, &source, "may not specify more than 1 volume type per source");
    }
    vg_names_done(&j.paths);
}
