/* fuzz.h - what fuzz targets share: their entry, and a claim that must hold whatever the input is.
 */
#ifndef VG_TEST_FUZZ_H
#define VG_TEST_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define VG_MUST(x)                                                                                 \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #x);                 \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
