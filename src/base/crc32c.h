/* crc32c.h - the Castagnoli checksum (RFC 3720), for what is written to disk.
 * Thread: any. */
#ifndef VG_BASE_CRC32C_H
#define VG_BASE_CRC32C_H

#include <stdbool.h>

#include "macros.h"

/* Checksum of n bytes that follow bytes whose checksum is seed; seed 0 starts. So
 * vg_crc32c(vg_crc32c(0, a), b) is the checksum of a and b joined. NULL is allowed with n == 0. */
VG_CHECK uint32_t vg_crc32c(uint32_t seed, const void *p, size_t n);

/* The two ways it is computed, for tests and for measuring; same results. The hardware one may be
 * called only when vg_crc32c_has_hardware(). */
VG_CHECK uint32_t vg_crc32c_portable(uint32_t seed, const void *p, size_t n);
VG_CHECK uint32_t vg_crc32c_hardware(uint32_t seed, const void *p, size_t n);
bool vg_crc32c_has_hardware(void);

#endif
