/* alloc.h - all of vigil's own allocations.
 * Every call may return NULL and every caller checks it: tests make the n-th allocation fail in
 * turn with vg_alloc_fail_at(). Thread: any. */
#ifndef VG_BASE_ALLOC_H
#define VG_BASE_ALLOC_H

#include "macros.h"

VG_CHECK void *vg_malloc(size_t size) __attribute__((malloc, alloc_size(1)));
VG_CHECK void *vg_calloc(size_t count, size_t size) __attribute__((malloc, alloc_size(1, 2)));
/* On failure NULL, and p is untouched. */
VG_CHECK void *vg_realloc(void *p, size_t size) __attribute__((alloc_size(2)));
/* As realloc, but checks count * size for overflow. */
VG_CHECK void *vg_reallocarray(void *p, size_t count, size_t size);
/* A NUL-terminated copy of n bytes. */
VG_CHECK char *vg_strndup(const char *s, size_t n);
VG_CHECK char *vg_strdup(const char *s);
void vg_free(void *p); /* NULL allowed */

/* vg_new(T): one zeroed T. */
#define vg_new(type) ((type *)vg_calloc(1, sizeof(type)))

/* For whoever makes many blocks at once and has just got `p`: if the heap's end is near it, have
 * the kernel make the pages that follow, many in one call. A fault for each of them costs a third
 * more, and malloc would take it inside its lock. Changes nothing else; does nothing where it
 * cannot. */
void vg_alloc_touch_ahead(const void *p);

/* Tests only. The n-th allocation from now (1 = the next one) fails, once; 0 switches it off.
 * vg_alloc_fail_at returns how many allocations were made since the last call, so that a test can
 * count a run first and then fail each in turn. Counts the calling thread alone unless all_threads.
 */
uint64_t vg_alloc_fail_at(uint64_t n, int all_threads);

#endif
