/* number.h - numbers as text, shared within the folder. */
#ifndef VG_JSON_NUMBER_H
#define VG_JSON_NUMBER_H

#include "base/slice.h"

/* -1.7976931348623157e+308 is 24 bytes; 1e-6 to 1e21 without exponent stay below 32. */
#define VG_JSON_NUMBER_TEXT_MAX 40

/* These return how many bytes of out were used. */
size_t vg_json_format_uint(uint64_t u, char out[VG_JSON_NUMBER_TEXT_MAX]);
size_t vg_json_format_int(int64_t i, char out[VG_JSON_NUMBER_TEXT_MAX]);
/* As Go's encoding/json: shortest, exponent below 1e-6 and from 1e21. 0 when d is not finite. */
size_t vg_json_format_double(double d, char out[VG_JSON_NUMBER_TEXT_MAX]);

#endif
