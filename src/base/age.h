/* age.h - points in time, and how long ago they are in few characters. Thread: any. */
#ifndef VG_BASE_AGE_H
#define VG_BASE_AGE_H

#include <stdbool.h>
#include <stdint.h>

#include "slice.h"

#define VG_AGE_SIZE 48
/* As kubectl writes ages: two units at most, the finer one only while it matters. Negative ages are
 * clocks that differ: 0s for a second, beyond that <invalid>. */
void vg_age_text(int64_t seconds, char ret_text[VG_AGE_SIZE]);

/* RFC 3339, fractions allowed and dropped: seconds since 1970. false: it is none. */
bool vg_age_parse(struct vg_slice text, int64_t *ret_s);

#endif
