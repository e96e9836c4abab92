/* openapi_write.c - the frame of a document; see openapi_write.h. */
#include "openapi_write.h"

#include <stdio.h>

void vg_openapi_put_text(struct vg_openapi_writer *w, const char *key, const char *text)
{
    vg_json_put_member(&w->json, key, vg_slice_str(text));
}

void vg_openapi_begin_object(struct vg_openapi_writer *w, const char *key)
{
    vg_json_put_key(&w->json, vg_slice_str(key));
    vg_json_put_begin_object(&w->json);
}

void vg_openapi_end_object(struct vg_openapi_writer *w)
{
    vg_json_put_end_object(&w->json);
}

void vg_openapi_begin_list(struct vg_openapi_writer *w, const char *key)
{
    vg_json_put_key(&w->json, vg_slice_str(key));
    vg_json_put_begin_array(&w->json);
}

void vg_openapi_end_list(struct vg_openapi_writer *w)
{
    vg_json_put_end_array(&w->json);
}

void vg_openapi_put_ref(struct vg_openapi_writer *w, const char *definition)
{
    char text[VG_OPENAPI_NAME_MAX];
    snprintf(text, sizeof text, "#/%s/%s", w->is_v3 ? "components/schemas" : "definitions",
             definition);
    vg_openapi_put_text(w, "$ref", text);
}

void vg_openapi_put_gvk(struct vg_openapi_writer *w, const struct vg_kind *kind, const char *name)
{
    vg_json_put_begin_object(&w->json);
    vg_openapi_put_text(w, "group", kind->group);
    vg_openapi_put_text(w, "kind", name);
    vg_openapi_put_text(w, "version", kind->version);
    vg_json_put_end_object(&w->json);
}

/* Where Kubernetes keeps a group's types, when that is not k8s.io/api. */
static const struct {
    const char *group, *package;
} packages[] = {
    {"", "io.k8s.api.core"},
    {"apiextensions.k8s.io", "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions"},
    {"apiregistration.k8s.io", "io.k8s.kube-aggregator.pkg.apis.apiregistration"},
    {"meta.k8s.io", "io.k8s.apimachinery.pkg.apis.meta"},
};

void vg_openapi_definition(char ret[VG_OPENAPI_NAME_MAX], const char *group, const char *version,
                           const char *name)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(packages); i++)
        if (strcmp(group, packages[i].group) == 0) {
            snprintf(ret, VG_OPENAPI_NAME_MAX, "%s.%s.%s", packages[i].package, version, name);
            return;
        }
    snprintf(ret, VG_OPENAPI_NAME_MAX, "io.k8s.api.%.*s.%s.%s", (int)strcspn(group, "."), group,
             version, name);
}

struct vg_kind vg_openapi_sub_kind(const struct vg_kind *kind, const struct vg_kind_sub *sub)
{
    struct vg_kind of = *kind;
    of.kind = sub->kind;
    if (sub->version) {
        of.group = sub->group ? sub->group : "";
        of.version = sub->version;
    }
    return of;
}

/* ---- documents ---- */

static void put_info(struct vg_openapi_writer *w, const char *version)
{
    vg_openapi_begin_object(w, "info");
    vg_openapi_put_text(w, "title", "Kubernetes");
    vg_openapi_put_text(w, "version", version);
    vg_openapi_end_object(w);
}

static void put_all_paths(struct vg_openapi_writer *w, const struct vg_kind *kinds, size_t n)
{
    vg_openapi_begin_object(w, "paths");
    for (size_t i = 0; i < n; i++)
        vg_openapi_put_paths(w, &kinds[i]);
    vg_openapi_end_object(w);
}

static void put_all_definitions(struct vg_openapi_writer *w, const char *key,
                                const struct vg_kind *kinds, size_t n)
{
    vg_openapi_begin_object(w, key);
    vg_openapi_put_definitions(w, kinds, n);
    vg_openapi_end_object(w);
}

int vg_openapi_write_v2(struct vg_buf *out, const char *version)
{
    struct vg_openapi_writer w = {.is_v3 = false};
    size_t n;
    const struct vg_kind *kinds = vg_kinds(&n);
    vg_json_writer_init(&w.json, out, 0);
    vg_json_put_begin_object(&w.json);
    vg_openapi_put_text(&w, "swagger", "2.0");
    put_info(&w, version);
    put_all_paths(&w, kinds, n);
    put_all_definitions(&w, "definitions", kinds, n);
    vg_openapi_end_object(&w);
    return vg_json_writer_end(&w.json);
}

int vg_openapi_write_v3(struct vg_buf *out, const char *version, const struct vg_group *group,
                        const char *group_version)
{
    struct vg_openapi_writer w = {.is_v3 = true};
    size_t n;
    const struct vg_kind *kinds =
        vg_kinds_of(vg_slice_str(group->name), vg_slice_str(group_version), &n);
    vg_json_writer_init(&w.json, out, 0);
    vg_json_put_begin_object(&w.json);
    vg_openapi_put_text(&w, "openapi", "3.0.0");
    put_info(&w, version);
    put_all_paths(&w, kinds, n);
    vg_openapi_begin_object(&w, "components");
    put_all_definitions(&w, "schemas", kinds, n);
    vg_openapi_end_object(&w);
    vg_openapi_end_object(&w);
    return vg_json_writer_end(&w.json);
}
