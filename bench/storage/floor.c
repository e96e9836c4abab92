/* floor.c - the grouped floor: the least that a durable group commit costs on this disk. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "contest.h"

#define OVERWRITE_BYTES ((off_t)32 << 20)
#define FILL_BYTES ((size_t)1 << 20)
/* Groups are cut from so much text, each elsewhere: a disk below may pack or share what repeats. */
#define GROUPS_BYTES ((size_t)8 << 20)

struct floor_row {
    enum floor_way way;
    int fd;
    off_t at, size;
};

static void put(struct floor_row *row, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t r = pwrite(row->fd, p, n, row->at);
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            bench_die("the floor's file cannot be written: %s", strerror(errno));
        p += r;
        n -= (size_t)r;
        row->at += r;
    }
}

static void fill(struct floor_row *row)
{
    char *zeros = bench_alloc(1, FILL_BYTES);
    while (row->at < OVERWRITE_BYTES)
        put(row, zeros, FILL_BYTES);
    free(zeros);
    if (fsync(row->fd) < 0)
        bench_die("the floor's file cannot be synced: %s", strerror(errno));
    row->size = row->at;
    row->at = 0;
}

struct floor_row *floor_row_new(const char *dir, enum floor_way way)
{
    struct floor_row *row = bench_alloc(1, sizeof *row);
    char *path = bench_path(dir, way == FLOOR_APPEND ? "floor-append" : "floor-overwrite");
    row->way = way;
    row->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (row->fd < 0)
        bench_die("cannot create %s: %s", path, strerror(errno));
    free(path);
    if (way == FLOOR_OVERWRITE)
        fill(row);
    return row;
}

static void put_group(struct floor_row *row, const char *p, size_t n)
{
    if (row->way == FLOOR_OVERWRITE && row->at + (off_t)n > row->size)
        row->at = 0;
    put(row, p, n);
    if (fdatasync(row->fd) < 0)
        bench_die("the floor's file cannot be synced: %s", strerror(errno));
}

void floor_row_slice(struct floor_row *row, const struct bench_plan *plan,
                     struct bench_slice *ret_slice)
{
    size_t n = (size_t)(plan->group_bytes + 0.5);
    char *bytes = workload_text(GROUPS_BYTES + n);
    struct bench_usage begin, end;
    uint64_t written = bench_written();
    bench_usage_now(&begin);
    uint64_t last = begin.wall_ns, now = last;
    while (now - begin.wall_ns < plan->ns && !bench_interrupted()) {
        put_group(row, bytes + (size_t)(ret_slice->commits * 4093) % GROUPS_BYTES, n);
        now = bench_now_ns();
        vg_hist_add(&ret_slice->latency, now - last);
        last = now;
        ret_slice->commits++;
    }
    bench_usage_now(&end);
    free(bytes);
    ret_slice->syncs = ret_slice->commits;
    ret_slice->secs = (double)(end.wall_ns - begin.wall_ns) / 1e9;
    ret_slice->cpu_s = ret_slice->engine_s = (double)(end.cpu_ns - begin.cpu_ns) / 1e9;
    ret_slice->writes = (uint64_t)((double)ret_slice->commits * plan->group + 0.5);
    ret_slice->user_bytes = (double)ret_slice->commits * (double)n;
    ret_slice->written = bench_written() - written;
}

void floor_row_free(struct floor_row *row)
{
    if (!row)
        return;
    close(row->fd);
    free(row);
}
