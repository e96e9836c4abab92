/* memory_limit.h - which limits on memory this process runs under. A start that fails for want of
 * memory fails with ENOMEM from whatever asked for it first; the limit is what the reader must
 * know. */
#ifndef VG_SERVER_MAIN_MEMORY_LIMIT_H
#define VG_SERVER_MAIN_MEMORY_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "address space to 1000 MiB (RLIMIT_AS, ulimit -v)" and the like, for "limited: ...". False:
 * there is no limit. */
bool vg_memory_limit_describe(char *text, size_t size);

/* 2^60: control groups of version 1 say such a number when there is no limit. */
#define VG_MEMORY_NO_LIMIT (UINT64_C(1) << 60)
/* The limit of the control group that the file `groups` names (/proc/self/cgroup), or of one above
 * it, under `root`. */
uint64_t vg_memory_limit_of_group(const char *groups, const char *root);

#endif
