/* h2_mem.c - see h2_mem.h. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "h2_mem.h"

static void *insist(bool *is_out_of_memory, void *got, void *old, size_t n)
{
    if (VG_LIKELY(got))
        return got;
    *is_out_of_memory = true;
    got = realloc(old, n ? n : 1);
    if (!got)
        abort();
    return got;
}
static void *mem_malloc(size_t n, void *arg)
{
    return insist(arg, vg_malloc(n), NULL, n);
}
static void *mem_calloc(size_t count, size_t n, void *arg)
{
    void *p = vg_calloc(count, n);
    return p ? p : memset(insist(arg, NULL, NULL, count * n), 0, count * n);
}
static void *mem_realloc(void *p, size_t n, void *arg)
{
    return insist(arg, vg_realloc(p, n), p, n);
}
static void mem_free(void *p, void *arg)
{
    (void)arg;
    vg_free(p);
}

nghttp2_mem vg_h2_mem(bool *is_out_of_memory)
{
    return (nghttp2_mem){is_out_of_memory, mem_malloc, mem_free, mem_calloc, mem_realloc};
}
