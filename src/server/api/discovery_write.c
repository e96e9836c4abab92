/* discovery_write.c - see discovery_write.h. */
#include "discovery_write.h"

#include <stdio.h>

#include "json/write.h"

/* A group of 253 and a version of 63 characters fit. */
#define GROUP_VERSION_MAX 512u

static void put_text(struct vg_json_writer *w, const char *key, const char *text)
{
    vg_json_put_member(w, key, vg_slice_str(text));
}

static void put_bool(struct vg_json_writer *w, const char *key, bool value)
{
    vg_json_put_key(w, vg_slice_str(key));
    vg_json_put_bool(w, value);
}

static void begin_list(struct vg_json_writer *w, const char *key)
{
    vg_json_put_key(w, vg_slice_str(key));
    vg_json_put_begin_array(w);
}

static void begin_member(struct vg_json_writer *w, const char *key)
{
    vg_json_put_key(w, vg_slice_str(key));
    vg_json_put_begin_object(w);
}

/* Left out when there are none. */
static void put_texts(struct vg_json_writer *w, const char *key, const char *const *texts)
{
    if (!texts)
        return;
    begin_list(w, key);
    for (; *texts; texts++)
        vg_json_put_string(w, vg_slice_str(*texts));
    vg_json_put_end_array(w);
}

static void put_verbs(struct vg_json_writer *w, unsigned verbs)
{
    begin_list(w, "verbs");
    for (unsigned bit = 1; bit <= VG_VERB_WATCH; bit <<= 1)
        if (verbs & bit)
            vg_json_put_string(w, vg_slice_str(vg_verb_name((enum vg_verb)bit)));
    vg_json_put_end_array(w);
}

/* "v1", "apps/v1". */
static void put_group_version(struct vg_json_writer *w, const struct vg_group *group,
                              const char *version)
{
    char text[GROUP_VERSION_MAX];
    snprintf(text, sizeof text, "%s%s%s", group->name, *group->name ? "/" : "", version);
    put_text(w, "groupVersion", text);
}

/* ---- groups ---- */

static void put_version(struct vg_json_writer *w, const struct vg_group *group, const char *version)
{
    put_group_version(w, group, version);
    put_text(w, "version", version);
    vg_json_put_end_object(w);
}

static void put_group(struct vg_json_writer *w, const struct vg_group *group)
{
    put_text(w, "name", group->name);
    begin_list(w, "versions");
    const char *const *v = group->versions; /* one at least */
    do {
        vg_json_put_begin_object(w);
        put_version(w, group, *v);
    } while (*++v);
    vg_json_put_end_array(w);
    begin_member(w, "preferredVersion");
    put_version(w, group, group->versions[0]);
}

int vg_discovery_write_versions(struct vg_buf *out, struct vg_slice address)
{
    struct vg_json_writer w;
    vg_json_writer_init(&w, out, 0);
    vg_json_put_begin_object(&w);
    put_text(&w, "kind", "APIVersions");
    put_texts(&w, "versions", vg_group_find(VG_SLICE_LIT(""))->versions);
    begin_list(&w, "serverAddressByClientCIDRs");
    vg_json_put_begin_object(&w);
    put_text(&w, "clientCIDR", "0.0.0.0/0");
    vg_json_put_member(&w, "serverAddress", address);
    vg_json_put_end_object(&w);
    vg_json_put_end_array(&w);
    vg_json_put_end_object(&w);
    return vg_json_writer_end(&w);
}

int vg_discovery_write_groups(struct vg_buf *out)
{
    struct vg_json_writer w;
    vg_json_writer_init(&w, out, 0);
    vg_json_put_begin_object(&w);
    put_text(&w, "kind", "APIGroupList");
    put_text(&w, "apiVersion", "v1");
    begin_list(&w, "groups");
    size_t n;
    const struct vg_group *groups = vg_groups(&n);
    for (size_t i = 0; i < n; i++) {
        vg_json_put_begin_object(&w);
        put_group(&w, &groups[i]);
        vg_json_put_end_object(&w);
    }
    vg_json_put_end_array(&w);
    vg_json_put_end_object(&w);
    return vg_json_writer_end(&w);
}

int vg_discovery_write_group(struct vg_buf *out, const struct vg_group *group)
{
    struct vg_json_writer w;
    vg_json_writer_init(&w, out, 0);
    vg_json_put_begin_object(&w);
    put_text(&w, "kind", "APIGroup");
    put_text(&w, "apiVersion", "v1");
    put_group(&w, group);
    vg_json_put_end_object(&w);
    return vg_json_writer_end(&w);
}

/* ---- resources ---- */

static void put_resource(struct vg_json_writer *w, const struct vg_kind *kind)
{
    vg_json_put_begin_object(w);
    put_text(w, "name", kind->resource);
    put_text(w, "singularName", kind->singular);
    put_bool(w, "namespaced", vg_kind_is(kind, VG_KIND_NAMESPACED));
    put_text(w, "kind", kind->kind);
    put_verbs(w, kind->verbs);
    put_texts(w, "shortNames", kind->short_names);
    put_texts(w, "categories", kind->categories);
    if (kind->storage_hash)
        put_text(w, "storageVersionHash", kind->storage_hash);
    vg_json_put_end_object(w);
}

static void put_subresource(struct vg_json_writer *w, const struct vg_kind *kind,
                            const struct vg_kind_sub *sub)
{
    char name[GROUP_VERSION_MAX];
    snprintf(name, sizeof name, "%s/%s", kind->resource, sub->name);
    vg_json_put_begin_object(w);
    put_text(w, "name", name);
    put_text(w, "singularName", "");
    put_bool(w, "namespaced", vg_kind_is(kind, VG_KIND_NAMESPACED));
    if (sub->group) {
        put_text(w, "group", sub->group);
        put_text(w, "version", sub->version);
    }
    put_text(w, "kind", sub->kind);
    put_verbs(w, sub->verbs);
    vg_json_put_end_object(w);
}

int vg_discovery_write_resources(struct vg_buf *out, const struct vg_group *group,
                                 const char *version)
{
    struct vg_json_writer w;
    vg_json_writer_init(&w, out, 0);
    vg_json_put_begin_object(&w);
    put_text(&w, "kind", "APIResourceList");
    if (*group->name) /* the core group's document has none, since its first days */
        put_text(&w, "apiVersion", "v1");
    put_group_version(&w, group, version);
    begin_list(&w, "resources");
    size_t n;
    const struct vg_kind *rows = vg_kinds_of(vg_slice_str(group->name), vg_slice_str(version), &n);
    for (size_t i = 0; i < n; i++) {
        put_resource(&w, &rows[i]);
        for (size_t k = 0; k < rows[i].n_subs; k++)
            put_subresource(&w, &rows[i], &rows[i].subs[k]);
    }
    vg_json_put_end_array(&w);
    vg_json_put_end_object(&w);
    return vg_json_writer_end(&w);
}

/* ---- aggregated ---- */

/* A kind of the same group and version is named without them. */
static void put_response_kind(struct vg_json_writer *w, const char *group, const char *version,
                              const char *kind)
{
    begin_member(w, "responseKind");
    put_text(w, "group", group ? group : "");
    put_text(w, "version", version ? version : "");
    put_text(w, "kind", kind);
    vg_json_put_end_object(w);
}

static void put_aggregated_subs(struct vg_json_writer *w, const struct vg_kind *kind)
{
    if (kind->n_subs == 0)
        return;
    begin_list(w, "subresources");
    for (size_t i = 0; i < kind->n_subs; i++) {
        const struct vg_kind_sub *sub = &kind->subs[i];
        vg_json_put_begin_object(w);
        put_text(w, "subresource", sub->name);
        put_response_kind(w, sub->group, sub->version, sub->kind);
        put_verbs(w, sub->verbs);
        vg_json_put_end_object(w);
    }
    vg_json_put_end_array(w);
}

static void put_aggregated_kind(struct vg_json_writer *w, const struct vg_kind *kind)
{
    vg_json_put_begin_object(w);
    put_text(w, "resource", kind->resource);
    put_response_kind(w, NULL, NULL, kind->kind);
    put_text(w, "scope", vg_kind_is(kind, VG_KIND_NAMESPACED) ? "Namespaced" : "Cluster");
    put_text(w, "singularResource", kind->singular);
    put_verbs(w, kind->verbs);
    put_texts(w, "shortNames", kind->short_names);
    put_texts(w, "categories", kind->categories);
    put_aggregated_subs(w, kind);
    vg_json_put_end_object(w);
}

static void put_aggregated_version(struct vg_json_writer *w, const struct vg_group *group,
                                   const char *version)
{
    vg_json_put_begin_object(w);
    put_text(w, "version", version);
    begin_list(w, "resources");
    size_t n;
    const struct vg_kind *rows = vg_kinds_of(vg_slice_str(group->name), vg_slice_str(version), &n);
    for (size_t i = 0; i < n; i++)
        put_aggregated_kind(w, &rows[i]);
    vg_json_put_end_array(w);
    put_text(w, "freshness", "Current");
    vg_json_put_end_object(w);
}

static void put_aggregated_group(struct vg_json_writer *w, const struct vg_group *group)
{
    vg_json_put_begin_object(w);
    begin_member(w, "metadata");
    if (*group->name)
        put_text(w, "name", group->name);
    vg_json_put_end_object(w);
    begin_list(w, "versions");
    for (const char *const *v = group->versions; *v; v++)
        put_aggregated_version(w, group, *v);
    vg_json_put_end_array(w);
    vg_json_put_end_object(w);
}

int vg_discovery_write_aggregated(struct vg_buf *out, bool is_core)
{
    struct vg_json_writer w;
    vg_json_writer_init(&w, out, 0);
    vg_json_put_begin_object(&w);
    put_text(&w, "kind", "APIGroupDiscoveryList");
    put_text(&w, "apiVersion", "apidiscovery.k8s.io/v2");
    begin_member(&w, "metadata");
    vg_json_put_end_object(&w);
    begin_list(&w, "items");
    size_t n = 1;
    const struct vg_group *groups = is_core ? vg_group_find(VG_SLICE_LIT("")) : vg_groups(&n);
    for (size_t i = 0; i < n; i++)
        put_aggregated_group(&w, &groups[i]);
    vg_json_put_end_array(&w);
    vg_json_put_end_object(&w);
    return vg_json_writer_end(&w);
}
