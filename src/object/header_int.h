/* header_int.h - where things stand in a header, shared by who writes it and who reads it. */
#ifndef VG_OBJECT_HEADER_INT_H
#define VG_OBJECT_HEADER_INT_H

#include "header.h"

/* Offsets of the picture in header.h. */
enum {
    VG_HEADER_AT_VERSION = 0,
    VG_HEADER_AT_FLAGS = 1,
    VG_HEADER_AT_FIELDS_N = 2,
    VG_HEADER_AT_TRIGGER = 3,
    VG_HEADER_AT_VALUE_N = 4,
    VG_HEADER_AT_ITEM = 8,
    VG_HEADER_AT_REV = 12,
    VG_HEADER_AT_LABELS_N = 16,
    VG_HEADER_AT_NAME = 20,
    VG_HEADER_AT_NAMESPACE = 28,
    VG_HEADER_AT_UID = 36,
    VG_HEADER_AT_FIELDS = 44, /* and the length of what every header has */
};
#define VG_HEADER_REF_SIZE 8u
#define VG_HEADER_FLAGS (VG_OBJ_LABELS_IN_TAIL | VG_OBJ_IS_DELETING)

/* Labels are read in place, so the bytes must be as memory has them. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "headers are little endian");
_Static_assert(sizeof(struct vg_label_ref) == 12, "label refs have no padding");

#endif
