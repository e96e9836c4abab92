/* openapi_write.h - OpenAPI documents about the kinds that are served, as JSON.
 * Two dialects, 2.0 and 3.0, of one description: definitions (openapi_schema.c) and paths
 * (openapi_paths.c) are put by the same functions, which ask the dialect where it matters.
 * Thread: one owner of a struct vg_openapi_writer. */
#ifndef VG_API_OPENAPI_WRITE_H
#define VG_API_OPENAPI_WRITE_H

#include "server/kinds/kinds.h"
#include "json/write.h"

/* The longest is a path with its group: some 200 characters. */
#define VG_OPENAPI_NAME_MAX 512u

/* Of vg_schema_types(); openapi_test sees that they are fewer. */
#define VG_OPENAPI_TYPES_MAX 1024u

struct vg_openapi_writer {
    struct vg_json_writer json;
    bool is_v3;
    bool types[VG_OPENAPI_TYPES_MAX]; /* those that the document leads to */
    uint32_t values;                  /* and the values among enum vg_schema_value, as bits */
};

/* /openapi/v2: all kinds. 0, -ENOMEM. `version` is info.version: "v1.36.4". */
VG_CHECK int vg_openapi_write_v2(struct vg_buf *out, const char *version);
/* /openapi/v3/...: the kinds of one group and version. */
VG_CHECK int vg_openapi_write_v3(struct vg_buf *out, const char *version,
                                 const struct vg_group *group, const char *group_version);

/* ---- for the files of the writer ---- */

void vg_openapi_put_text(struct vg_openapi_writer *w, const char *key, const char *text);
void vg_openapi_begin_object(struct vg_openapi_writer *w, const char *key);
void vg_openapi_end_object(struct vg_openapi_writer *w);
void vg_openapi_begin_list(struct vg_openapi_writer *w, const char *key);
void vg_openapi_end_list(struct vg_openapi_writer *w);
/* The member "$ref", to a definition by its full name. */
void vg_openapi_put_ref(struct vg_openapi_writer *w, const char *definition);
/* {"group":...,"kind":...,"version":...} as the next value. */
void vg_openapi_put_gvk(struct vg_openapi_writer *w, const struct vg_kind *kind, const char *name);
/* io.k8s.api.core.v1.Pod */
void vg_openapi_definition(char ret[VG_OPENAPI_NAME_MAX], const char *group, const char *version,
                           const char *name);
#define VG_OPENAPI_META "io.k8s.apimachinery.pkg.apis.meta.v1."

/* Members of the current object: a definition by its name, a path by its pattern. */
void vg_openapi_put_definitions(struct vg_openapi_writer *w, const struct vg_kind *kinds, size_t n);
void vg_openapi_put_paths(struct vg_openapi_writer *w, const struct vg_kind *kind);
/* Names of what a subresource's bodies are; all else is the parent's. */
struct vg_kind vg_openapi_sub_kind(const struct vg_kind *kind, const struct vg_kind_sub *sub);

#endif
