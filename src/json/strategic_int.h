/* strategic_int.h - what the files of the strategic merge share. */
#ifndef VG_JSON_STRATEGIC_INT_H
#define VG_JSON_STRATEGIC_INT_H

#include "strategic.h"

struct vg_strategic {
    struct vg_arena *arena;
    struct vg_status *status;
    uint64_t steps;
};

/* What a field of a schema says; zeros for one that is not listed. */
struct vg_merge_field vg_strategic_field(const struct vg_merge_schema *schema, struct vg_slice key);

/* Count work. 0 or VIGIL_E_TOO_LARGE. */
VG_CHECK int vg_strategic_step(struct vg_strategic *s, uint64_t n);

/* ---- maps (strategic.c): original and patch are both copies that may be changed ---- */

VG_CHECK int vg_strategic_map(struct vg_strategic *s, struct vg_json *original,
                              struct vg_json *patch, const struct vg_merge_schema *schema);

/* ---- lists (strategic_list.c) ---- */

/* Merge or replace a list as its field says; *original becomes the result. */
VG_CHECK int vg_strategic_list(struct vg_strategic *s, struct vg_json *original,
                               struct vg_json *patch, const struct vg_merge_field *field,
                               bool is_delete_list);

/* The same items in a list of its own, because merging moves those of the original about. */
VG_CHECK int vg_strategic_list_copy(struct vg_strategic *s, const struct vg_json *list,
                                    struct vg_json *ret);

/* ---- order (strategic_order.c) ---- */

/* Process and remove every $setElementOrder/<field> of the patch, with the list it orders. */
VG_CHECK int vg_strategic_set_orders(struct vg_strategic *s, struct vg_json *original,
                                     struct vg_json *patch, const struct vg_merge_schema *schema);
/* *list, whose items are partly in `by` (the wanted order) and partly only in `live`: the former
 * follow `by`, the latter `live`; both are woven together by their order in `live`. */
VG_CHECK int vg_strategic_order(struct vg_strategic *s, struct vg_json *list,
                                const struct vg_json *by, const struct vg_json *live,
                                const char *merge_key);

/* ---- pieces (strategic_value.c) ---- */

/* A patch's value that is new to the document: objects with $patch in it are gone, and members that
 * are null if asked for; false: it was such an object itself. Other directives stay, as all do in
 * what replaces something. */
bool vg_strategic_clean(struct vg_json *v, bool drop_nulls);
/* The directive of an object, or NULL. */
const struct vg_json *vg_strategic_directive(const struct vg_json *v);
/* The value that items are compared by: of merge_key, or the item. NULL: it has no such key. */
const struct vg_json *vg_strategic_id(const struct vg_json *item, const char *merge_key);
/* Are all items of both lists of one type? *ret_type is it; VG_JSON_NULL when there are no items.
 */
VG_CHECK int vg_strategic_item_type(struct vg_strategic *s, const struct vg_json *a,
                                    const struct vg_json *b, enum vg_json_type *ret_type);
/* The index of the first item of list with that id, or -1; -ENOMEM, VIGIL_E_TOO_LARGE below. */
VG_CHECK int vg_strategic_find(struct vg_strategic *s, const struct vg_json *list,
                               const struct vg_json *id, const char *merge_key, int64_t *ret);
bool vg_strategic_is_prefix(struct vg_slice key, const char *prefix);
bool vg_strategic_is_text(const struct vg_json *v, const char *text);

/* Refusals in kube-apiserver's words. */
int vg_strategic_fail_key(struct vg_strategic *s, const struct vg_json *item, const char *key);
int vg_strategic_fail_type(struct vg_strategic *s, const char *expected, const struct vg_json *got);
int vg_strategic_fail_directive(struct vg_strategic *s, const struct vg_json *map);
/* As vg_json_strategic_show, but goes no further once more is there than a message can hold. */
VG_CHECK int vg_strategic_show(struct vg_buf *out, const struct vg_json *v);

#define VG_STRATEGIC_PATCH "$patch"
#define VG_STRATEGIC_RETAIN "$retainKeys"
#define VG_STRATEGIC_ORDER "$setElementOrder"
#define VG_STRATEGIC_DELETE "$deleteFromPrimitiveList"

#endif
