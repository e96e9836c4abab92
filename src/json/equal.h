/* equal.h - deep equality of JSON values, as JSON Patch's "test" requires (RFC 6902, 4.6).
 * Objects are equal whatever the order of their members, arrays item by item, strings by their
 * unescaped bytes, numbers by value: 1, 1.0, 10e-1 and 0.1e1 are equal, -0 and 0 too, and digits
 * beyond what a double holds count. Thread: reads only. */
#ifndef VG_JSON_EQUAL_H
#define VG_JSON_EQUAL_H

#include "json.h"

/* 1: equal; 0: not; -ENOMEM; VIGIL_E_JSON_DEPTH. NULL equals NULL only. Costs n log n for objects
 * of n members in different orders, else linear in the smaller tree. */
VG_CHECK int vg_json_equal(const struct vg_json *a, const struct vg_json *b);

/* Two texts of RFC 8259 numbers, of any length. */
bool vg_json_number_equal(struct vg_slice a, struct vg_slice b);

#endif
