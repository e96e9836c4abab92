/* bits.h - a set of numbers from 0 on that grows; adding tells whether it was new. Never shrinks.
 * Thread: one owner. */
#ifndef VG_CLI_BENCH_BITS_H
#define VG_CLI_BENCH_BITS_H

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"

/* 64 million numbers, 8 MiB of bits: far above what one scenario writes. */
#define VG_BENCH_BITS_MAX ((uint64_t)1 << 26)

struct vg_bench_bits {
    uint64_t *words;
    size_t n;
};

static inline bool vg_bench_bits_has(const struct vg_bench_bits *b, uint64_t i)
{
    return i / 64 < b->n && (b->words[i / 64] >> (i % 64) & 1);
}

/* 1: it was new; 0: it was there; -ENOMEM; -ERANGE. */
VG_CHECK static inline int vg_bench_bits_add(struct vg_bench_bits *b, uint64_t i)
{
    if (i >= VG_BENCH_BITS_MAX)
        return -ERANGE;
    if (i / 64 >= b->n) {
        size_t n = VG_MAX(b->n * 2, (size_t)(i / 64 + 1));
        uint64_t *words = vg_reallocarray(b->words, n, sizeof *words);
        if (!words)
            return -ENOMEM;
        memset(words + b->n, 0, (n - b->n) * sizeof *words);
        b->words = words;
        b->n = n;
    }
    if (vg_bench_bits_has(b, i))
        return 0;
    b->words[i / 64] |= UINT64_C(1) << (i % 64);
    return 1;
}

static inline void vg_bench_bits_done(struct vg_bench_bits *b)
{
    vg_free(b->words);
    *b = (struct vg_bench_bits){0};
}

#endif
