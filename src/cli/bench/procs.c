/* procs.c - see procs.h. */
#include "procs.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t thread_ns(const char *dir, const char *tid)
{
    char path[400], line[128];
    snprintf(path, sizeof path, "%s/%s/schedstat", dir, tid);
    FILE *f = fopen(path, "re");
    uint64_t ns = f && fgets(line, sizeof line, f) ? strtoull(line, NULL, 10) : 0;
    if (f)
        fclose(f);
    return ns;
}

bool vg_bench_proc_add_cpu(pid_t pid, struct vg_bench_usage *usage)
{
    char dir[64];
    snprintf(dir, sizeof dir, "/proc/%d/task", (int)pid);
    DIR *d = opendir(dir);
    if (!d)
        return false;
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.')
            usage->cpu_ns += thread_ns(dir, e->d_name);
    closedir(d);
    return true;
}

static uint64_t kib_of(const char *line, const char *label)
{
    return strncmp(line, label, strlen(label)) == 0 ? strtoull(line + strlen(label), NULL, 10) : 0;
}

bool vg_bench_proc_add_memory(pid_t pid, struct vg_bench_usage *usage)
{
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool has_any = false;
    while (fgets(line, sizeof line, f)) {
        usage->rss_bytes += kib_of(line, "Rss:") * 1024;
        usage->anonymous_bytes += kib_of(line, "Anonymous:") * 1024;
        has_any = true;
    }
    fclose(f);
    return has_any;
}

void vg_bench_proc_comm(pid_t pid, char *ret, size_t size)
{
    char path[64], line[64] = "?";
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    FILE *f = fopen(path, "re");
    if (f && !fgets(line, sizeof line, f))
        memcpy(line, "?", 2);
    if (f)
        fclose(f);
    snprintf(ret, size, "%.*s", (int)strcspn(line, "\n"), line);
}

/* ---- who listens ---- */

/* The inode of a socket that listens on the port; 0: none. */
static uint64_t listening_inode(const char *table, uint16_t port)
{
    char line[512];
    uint64_t inode = 0;
    FILE *f = fopen(table, "re");
    while (f && fgets(line, sizeof line, f)) {
        unsigned local = 0, state = 0;
        uint64_t found = 0;
        if (sscanf(line, "%*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*u %*d %" SCNu64,
                   &local, &state, &found) == 3 &&
            local == port && state == 0x0a)
            inode = found;
    }
    if (f)
        fclose(f);
    return inode;
}

static bool has_socket(const char *pid, uint64_t inode)
{
    char dir[300], wanted[64];
    snprintf(dir, sizeof dir, "/proc/%s/fd", pid);
    snprintf(wanted, sizeof wanted, "socket:[%" PRIu64 "]", inode);
    DIR *d = opendir(dir);
    bool has = false;
    for (struct dirent *e; d && !has && (e = readdir(d));) {
        char link[64];
        ssize_t n = readlinkat(dirfd(d), e->d_name, link, sizeof link - 1);
        has = n > 0 && (size_t)n == strlen(wanted) && memcmp(link, wanted, (size_t)n) == 0;
    }
    if (d)
        closedir(d);
    return has;
}

pid_t vg_bench_proc_listener(uint16_t port)
{
    uint64_t inode = listening_inode("/proc/net/tcp", port);
    if (!inode)
        inode = listening_inode("/proc/net/tcp6", port);
    DIR *d = inode ? opendir("/proc") : NULL;
    pid_t pid = 0;
    for (struct dirent *e; d && !pid && (e = readdir(d));)
        if (isdigit((unsigned char)e->d_name[0]) && has_socket(e->d_name, inode))
            pid = (pid_t)strtol(e->d_name, NULL, 10);
    if (d)
        closedir(d);
    return pid;
}
