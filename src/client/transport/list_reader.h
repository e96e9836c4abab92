/* list_reader.h - a list as it arrives: items are cut out of the bytes and handed over one by one,
 * so that a list of any length needs memory for one item and not for the list.
 * Thread: one owner. */
#ifndef VG_CLIENT_TRANSPORT_LIST_READER_H
#define VG_CLIENT_TRANSPORT_LIST_READER_H

#include "base/buf.h"
#include "client/object/object_int.h"

/* What is not items: kind, apiVersion, metadata. */
#define VG_LIST_HEAD_MAX ((size_t)1 << 20)
/* One item, with room for the white space around it. */
#define VG_LIST_ITEM_MAX (VG_OBJECT_BYTES_MAX + 4096)

struct vg_list_reader {
    struct vg_buf rest; /* bytes of the item or the head that is not complete yet */
    struct vg_buf head; /* the list without its items: {"kind":...,"items":[],"metadata":...} */
    unsigned state;
    unsigned depth; /* brackets open around the next byte */
    bool in_string, in_escape;
    bool has_items;             /* "items" was met */
    size_t key_at;              /* of the last string in head that began at depth 1 */
    struct vg_object_type type; /* texts in `type_text`, filled when the first item is cut */
    struct vg_buf type_text;
    bool has_type;
    /* What items get that say nothing themselves and whose list says nothing before them. */
    struct vg_slice fallback_api_version, fallback_kind;
    /* Takes the reference. 0, positive, or negative to end. */
    int (*on_item)(void *arg, const struct vigil_object *take_o);
    void *arg;
};

void vg_list_reader_init(struct vg_list_reader *r, struct vg_slice api_version,
                         struct vg_slice kind,
                         int (*on_item)(void *arg, const struct vigil_object *take_o), void *arg);
void vg_list_reader_done(struct vg_list_reader *r);

/* 0 or the largest answer of on_item; VIGIL_E_JSON_SYNTAX, VIGIL_E_JSON_TYPE, VIGIL_E_INVALID: no
 * list; VIGIL_E_TOO_LARGE; -ENOMEM; what on_item gave. */
VG_CHECK int vg_list_reader_feed(struct vg_list_reader *r, struct vg_slice bytes);
/* The end has come: 0 and what metadata says ("" when it does not), valid until done. */
VG_CHECK int vg_list_reader_end(struct vg_list_reader *r, struct vg_slice *ret_version,
                                struct vg_slice *ret_continue);

#endif
