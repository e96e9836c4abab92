/* seal.h - making a stored object: JSON in, canonical value and header out.
 * Two steps with a seam between them. canonical.h writes the value in the one order of keys that
 * the kind is stored in, and says where the revision and the list item begin; this file reads the
 * finished value once and writes the header that points into it. So the header can be made again
 * from a stored value alone, when the header's version or a kind's selectable fields change.
 * Thread: one owner of each struct vg_obj_sealed; struct vg_obj_fields is shared and constant. */
#ifndef VG_OBJECT_SEAL_H
#define VG_OBJECT_SEAL_H

#include "base/buf.h"
#include "canonical.h"
#include "header.h"
#include "json/json.h"

/* Steps of the path to a selectable field. The longest of a built-in has 2, a CRD's may be deeper.
 */
#define VG_OBJ_PATH_MAX 8u

/* One selectable field. Its value is the text of the string, number or boolean at the path. */
struct vg_obj_field_def {
    const char *label;                 /* as in a field selector: "spec.nodeName" */
    const char *path[VG_OBJ_PATH_MAX]; /* keys, unescaped; ends with NULL or when full; an empty
                                        * path names nothing */
    const char *missing;               /* what an absent or null value reads as; NULL = "" */
    const char *instead; /* label of the field that is read where this one is absent or empty; that
                          * one has no `instead` of its own; NULL: none */
};

/* What a kind lets be selected, beside metadata.name and metadata.namespace. */
struct vg_obj_fields {
    const struct vg_obj_field_def *v;
    uint32_t n;       /* at most VG_OBJ_FIELDS_MAX */
    uint32_t trigger; /* index, or VG_OBJ_NO_TRIGGER */
};

/* The index of the field with this label; VG_OBJ_NO_TRIGGER: there is none. */
uint32_t vg_obj_fields_find(const struct vg_obj_fields *fields, struct vg_slice label);

/* Where sealing puts its result; kept from object to object, it stops allocating. */
struct vg_obj_sealed {
    struct vg_buf value, header;
};
static inline void vg_obj_sealed_init(struct vg_obj_sealed *s)
{
    vg_buf_init(&s->value, VG_OBJ_VALUE_MAX);
    vg_buf_init(&s->header, VG_OBJ_VALUE_MAX);
}
void vg_obj_sealed_done(struct vg_obj_sealed *s);
static inline void vg_obj_sealed_cleanup(struct vg_obj_sealed *s)
{
    vg_obj_sealed_done(s);
}

/* Seal one object; what `s` held before is overwritten. A metadata.resourceVersion is dropped.
 * 0; VIGIL_E_INVALID with a sentence: no object, no metadata, no name, a name, namespace, uid,
 * kind or apiVersion that is no string, labels that are not strings by key; VIGIL_E_TOO_LARGE: the
 * value passes VG_OBJ_VALUE_MAX or a label VG_LABEL_BYTES_MAX; VIGIL_E_JSON_DEPTH; -ENOMEM. After a
 * failure both buffers are empty. */
VG_CHECK int vg_obj_seal(const struct vg_obj_fields *fields, const struct vg_json *object,
                         struct vg_obj_sealed *s, struct vg_status *reterr_status);
/* The same with the text that the tree was parsed from, of which parts may then be copied as they
 * stand: see canonical.h for what must hold. */
VG_CHECK int vg_obj_seal_from(const struct vg_obj_fields *fields, const struct vg_json *object,
                              struct vg_slice source, struct vg_obj_sealed *s,
                              struct vg_status *reterr_status);
/* The same from text; also the errors of vg_json_parse. The tree is made in `arena`, which the
 * caller may reset afterwards. */
VG_CHECK int vg_obj_seal_text(const struct vg_obj_fields *fields, struct vg_slice text,
                              struct vg_arena *arena, struct vg_obj_sealed *s,
                              struct vg_status *reterr_status);

/* The second step alone: append to `out` the header of a canonical value. Errors as above. */
VG_CHECK int vg_obj_make_header(const struct vg_obj_fields *fields, struct vg_slice value,
                                struct vg_obj_layout layout, struct vg_buf *out,
                                struct vg_status *reterr_status);

#endif
