/* quantity_int.h - what reading and printing of quantities share. */
#ifndef VG_SCHEMA_QUANTITY_INT_H
#define VG_SCHEMA_QUANTITY_INT_H

#include "quantity.h"

struct vg_quantity_suffix {
    const char *text; /* NULL: the end */
    int32_t exponent; /* of ten, or of two */
    enum vg_quantity_format format;
};
extern const struct vg_quantity_suffix vg_quantity_suffixes[];

vg_quantity_mantissa vg_quantity_pow10(unsigned n); /* n <= 38 */

#endif
