/* set.h - sets of fields, as managedFields has them.
 *
 *   {"f:spec":{"f:replicas":{},"f:ports":{".":{},"k:{\"port\":80}":{".":{},"f:port":{}}}}}
 *
 * A set is its FieldsV1 object: a tree of JSON whose keys are path elements. No other form exists,
 * so what is stored is worked on as it was parsed, and what a change leaves alone is written as it
 * stands. An entry is a member of the set when it is empty or has the member "."; it holds children
 * when it has any other. Invariants of a set, kept by every function here (vg_fields_read makes
 * them hold for what a client sent): F1 entries of one object are sorted by vg_fields_order(), each
 * is there once, "." comes first. F2 elements are in the one form that is printed, so equal
 * elements are equal bytes. F3 no entry has neither membership nor children: {".":{}} is {}; an
 * object is never null. Thread: one owner. */
#ifndef VG_FIELDS_SET_H
#define VG_FIELDS_SET_H

#include "base/buf.h"
#include "json/json.h"

enum vg_fields_op {
    VG_FIELDS_UNION,
    VG_FIELDS_INTERSECTION,
    VG_FIELDS_DIFFERENCE,      /* what x has and y has not; children of what y has stay */
    VG_FIELDS_DIFFERENCE_DEEP, /* children of what y has go too */
};

/* x op y; either may be closed (below). What is shared with x or y is not copied; a part that is
 * x's as a whole keeps its offsets. 0, -ENOMEM. */
VG_CHECK int vg_fields_combine(struct vg_arena *a, enum vg_fields_op op, const struct vg_json *x,
                               const struct vg_json *y, struct vg_json *ret);
/* A set that was left as text when its object was parsed (json/json.h): it holds something, and is
 * opened only by an operation that changes it. */
static inline bool vg_fields_is_closed(const struct vg_json *set)
{
    return set->type == VG_JSON_NUMBER;
}
/* Is x, which is closed, surely what x op y is? False says nothing. (set_closed.c) */
bool vg_fields_stays_closed(enum vg_fields_op op, const struct vg_json *x, const struct vg_json *y);
/* Parsed, with offsets as before; one that is open stays as it is. 0, -ENOMEM,
 * VIGIL_E_STORE_DAMAGED. (set_closed.c) */
VG_CHECK int vg_fields_open(struct vg_arena *a, const struct vg_json *set, struct vg_json *ret);
static inline bool vg_fields_is_empty(const struct vg_json *set)
{
    return set->n == 0;
}
/* Is an entry's value that of a member? */
bool vg_fields_is_member(const struct vg_json *value);
/* The entries below, without ".". */
struct vg_fields_span {
    struct vg_json_member *v;
    uint32_t n;
};
struct vg_fields_span vg_fields_children(const struct vg_json *value);
/* The entry's value; NULL: there is none. */
const struct vg_json *vg_fields_find(const struct vg_json *value, struct vg_slice element);
/* An entry's value of its parts. children: sorted, at most one more may be written before them when
 * has_room. 0, -ENOMEM. */
VG_CHECK int vg_fields_entry(struct vg_arena *a, bool is_member, struct vg_fields_span children,
                             bool has_room, struct vg_json *ret);
/* Elements in the order in which they stand: fields by name, keys by name and value, values,
 * indexes. */
int vg_fields_order(struct vg_slice a, struct vg_slice b);

/* Append a set as it is stored. source: the text that nodes with offsets are of; empty: none. 0,
 * -ENOMEM, VIGIL_E_TOO_LARGE. */
VG_CHECK int vg_fields_print(struct vg_buf *out, const struct vg_json *set, struct vg_slice source);
/* An entry's element, between what comes before and a colon. Likewise. */
VG_CHECK int vg_fields_print_key(struct vg_buf *out, char before, struct vg_slice key);
/* A value that is text already, for those who write it and for nobody else: writers copy numbers.
 */
static inline struct vg_json vg_fields_text(struct vg_slice text)
{
    return (struct vg_json){.type = VG_JSON_NUMBER, .n = (uint32_t)text.n, .text = text.p};
}
/* Where a node stands in its source; empty: it is of none. */
static inline struct vg_slice vg_fields_source(const struct vg_json *v, struct vg_slice source)
{
    if (v->begin >= v->end || v->end > source.n)
        return vg_slice(NULL, 0);
    return vg_slice(source.p + v->begin, v->end - v->begin);
}

/* What a client sent as fieldsV1, made to keep F1 to F3. given NULL: an empty set. 0;
 * VIGIL_E_INVALID with a sentence: an element that is none; -ENOMEM. */
VG_CHECK int vg_fields_read(struct vg_arena *a, const struct vg_json *given, struct vg_json *ret,
                            struct vg_status *reterr_status);

#endif
