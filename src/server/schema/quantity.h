/* quantity.h - amounts of resources: "100m", "1536Mi", "1e3".
 * Read, compared, added and printed as apimachinery's resource.Quantity does it, with its oddities:
 * a text that looks canonical is printed as it was written ("+1", "007"), a mere sign is 0, and an
 * amount beyond the largest suffix loses it ("1000E" prints as 1). Exact: nothing is ever a
 * floating point number. What goes beyond the original is refused: more than
 * VG_QUANTITY_DIGITS_MAX significant digits, or more than 20 digits after the point before a
 * binary suffix. Invariants: Q1 mantissa has no factor of ten and is below ten to the power of
 * VG_QUANTITY_DIGITS_MAX. Q2 zero is {mantissa 0, exponent 0, not negative}. Thread: any. */
#ifndef VG_SCHEMA_QUANTITY_H
#define VG_SCHEMA_QUANTITY_H

#include "base/err.h"
#include "base/slice.h"

/* 36: times hundred it still fits into 128 bits; 2^63 in billionths has 28. */
#define VG_QUANTITY_DIGITS_MAX 36
/* A sign, digits and two zeros, "e-2147483648". */
#define VG_QUANTITY_TEXT_MAX 56

__extension__ typedef unsigned __int128 vg_quantity_mantissa;

enum vg_quantity_format {
    VG_QUANTITY_DECIMAL,  /* 12M; also of a quantity that was never given */
    VG_QUANTITY_BINARY,   /* 12Mi */
    VG_QUANTITY_EXPONENT, /* 12e6 */
};

struct vg_quantity {
    vg_quantity_mantissa mantissa; /* the amount is mantissa times ten to the exponent */
    struct vg_slice written;       /* in the text that was parsed; n 0: print the canonical form */
    int32_t exponent;
    uint8_t format; /* enum vg_quantity_format */
    bool is_negative;
};

/* A part of the text may be borrowed: it must outlive *ret, or be printed before. 0, or
 * VIGIL_E_INVALID with one of the original's three sentences. */
VG_CHECK int vg_quantity_parse(struct vg_slice text, struct vg_quantity *ret,
                               struct vg_status *reterr_status);
/* Is it surely printed as it is written? Up to three digits and a suffix up to Ti, as most have. */
bool vg_quantity_is_plain(struct vg_slice text);
struct vg_quantity vg_quantity_of(int64_t value, int32_t exponent, enum vg_quantity_format format);

/* As JSON and protobuf have it; lies in `room` or in the text that was parsed. */
struct vg_slice vg_quantity_text(const struct vg_quantity *q, char room[VG_QUANTITY_TEXT_MAX]);

int vg_quantity_cmp(const struct vg_quantity *a, const struct vg_quantity *b); /* -1, 0, 1 */
static inline int vg_quantity_sign(const struct vg_quantity *q)
{
    return q->mantissa == 0 ? 0 : q->is_negative ? -1 : 1;
}

/* *q becomes q + other, q - other. A zero q takes the other's format. 0, or -ERANGE: more digits
 * than there is room for; *q is as it was. */
VG_CHECK int vg_quantity_add(struct vg_quantity *q, const struct vg_quantity *other);
VG_CHECK int vg_quantity_sub(struct vg_quantity *q, const struct vg_quantity *other);

/* How many units of ten to the scale (0: whole ones, -3: thousandths) it is, rounded away from zero
 * as the original rounds. 0 with *ret_exact (NULL allowed) false when it was rounded; -ERANGE. */
VG_CHECK int vg_quantity_scaled(const struct vg_quantity *q, int32_t scale, int64_t *ret,
                                bool *ret_exact);

#endif
