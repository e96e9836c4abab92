/* memory_limit.c - see memory_limit.h. */
#include "memory_limit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/buf.h"

/* 4 KiB: a path of a control group; a longer one is not looked at. */
#define PATH_BYTES 4096
#define NO_LIMIT VG_MEMORY_NO_LIMIT

static uint64_t limit_of(int resource)
{
    struct rlimit l;
    if (getrlimit((__rlimit_resource_t)resource, &l) < 0 || l.rlim_cur == RLIM_INFINITY)
        return NO_LIMIT;
    return l.rlim_cur;
}

/* The number in a file; NO_LIMIT: there is none, or it says "max". */
static uint64_t read_number(const char *path)
{
    char text[32] = "";
    FILE *f = fopen(path, "re");
    if (!f)
        return NO_LIMIT;
    bool is_number = fgets(text, sizeof text, f) && text[0] >= '0' && text[0] <= '9';
    fclose(f);
    uint64_t n = is_number ? strtoull(text, NULL, 10) : NO_LIMIT;
    return VG_MIN(n, NO_LIMIT);
}

/* The lowest limit of a group and those above it. */
static uint64_t lowest_above(const char *root, const char *group, const char *file)
{
    char path[PATH_BYTES], at[PATH_BYTES];
    uint64_t lowest = NO_LIMIT;
    if ((size_t)snprintf(at, sizeof at, "%s", group) >= sizeof at)
        return NO_LIMIT;
    for (;;) {
        char *slash = strrchr(at, '/');
        if (slash && !slash[1])
            *slash = 0;
        bool fits = (size_t)snprintf(path, sizeof path, "%s%s/%s", root, at, file) < sizeof path;
        uint64_t limit = fits ? read_number(path) : NO_LIMIT;
        lowest = VG_MIN(lowest, limit);
        slash = strrchr(at, '/');
        if (!slash)
            return lowest;
        *slash = 0;
    }
}

/* A line of /proc/self/cgroup: "0::/path", or of version 1 "4:memory:/path". */
static uint64_t limit_of_line(char *line, const char *root)
{
    line[strcspn(line, "\n")] = 0;
    char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
    if (!path)
        return NO_LIMIT;
    *path++ = 0;
    if (names[1] == 0)
        return lowest_above(root, path, "memory.max");
    char memory[PATH_BYTES];
    if (strcmp(names + 1, "memory") != 0 ||
        (size_t)snprintf(memory, sizeof memory, "%s/memory", root) >= sizeof memory)
        return NO_LIMIT;
    return lowest_above(memory, path, "memory.limit_in_bytes");
}

uint64_t vg_memory_limit_of_group(const char *groups, const char *root)
{
    char line[PATH_BYTES];
    uint64_t lowest = NO_LIMIT;
    FILE *f = fopen(groups, "re");
    if (!f)
        return NO_LIMIT;
    while (fgets(line, sizeof line, f)) {
        uint64_t limit = limit_of_line(line, root);
        lowest = VG_MIN(lowest, limit);
    }
    fclose(f);
    return lowest;
}

bool vg_memory_limit_describe(char *text, size_t size)
{
    const struct {
        const char *what, *by;
        uint64_t bytes;
    } limits[] = {
        {"address space", "RLIMIT_AS, ulimit -v", limit_of(RLIMIT_AS)},
        {"data", "RLIMIT_DATA, ulimit -d", limit_of(RLIMIT_DATA)},
        {"memory", "its control group, memory.max",
         vg_memory_limit_of_group("/proc/self/cgroup", "/sys/fs/cgroup")},
    };
    size_t n = 0;
    for (size_t i = 0; i < VG_ARRAY_LEN(limits) && n < size; i++)
        if (limits[i].bytes != NO_LIMIT)
            n += (size_t)snprintf(text + n, size - n, "%s%s to %" PRIu64 " MiB (%s)", n ? ", " : "",
                                  limits[i].what, limits[i].bytes >> 20, limits[i].by);
    return n > 0;
}
