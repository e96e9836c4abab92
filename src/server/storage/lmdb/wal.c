/* wal.c - appending to the write-ahead log. See wal.h; recovery is in wal_replay.c. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/crc32c.h"
#include "files.h"
#include "wal_int.h"

/* Zeros are written ahead in steps of 1 MiB: one sync in many then pays for file metadata. */
#define AHEAD_STEP ((uint64_t)1 << 20)

static const char zeros[64 * 1024];

int vg_wal_open_file(int dirfd, unsigned which, int flags, int *ret_fd)
{
    char name[16];
    snprintf(name, sizeof name, "wal-%u", which & 1);
    int fd = openat(dirfd, name, O_RDWR | O_CLOEXEC | flags, 0600);
    if (fd < 0)
        return -errno;
    if ((flags & O_CREAT) && fchmod(fd, 0600) < 0) {
        int err = -errno;
        close(fd);
        return err;
    }
    *ret_fd = fd;
    return 0;
}

uint32_t vg_wal_head_crc(const struct wal_head *h)
{
    struct wal_head copy = *h;
    copy.crc = 0;
    return vg_crc32c(0, &copy, sizeof copy);
}

uint32_t vg_wal_frame_crc(uint64_t salt, const struct wal_frame *f, const char *payload)
{
    struct wal_frame copy = *f;
    copy.crc = 0;
    uint32_t crc = vg_crc32c(0, &salt, sizeof salt);
    crc = vg_crc32c(crc, &copy, sizeof copy);
    return vg_crc32c(crc, payload, le32toh(f->payload_len));
}

static int write_head(int fd, uint64_t salt, uint64_t gen, vg_rev prev_last, vg_rev base,
                      bool no_sync)
{
    char page[VG_WAL_PAGE] = {0};
    struct wal_head h = {
        .magic = WAL_MAGIC,
        .version = htole32(WAL_VERSION),
        .gen = htole64(gen),
        .salt = htole64(salt),
        .prev_last = htole64(prev_last),
        .base = htole64(base),
        .flags = htole32(no_sync ? WAL_FLAG_NO_SYNC : 0),
    };
    h.crc = vg_wal_head_crc(&h);
    memcpy(page, &h, sizeof h);
    int r = vg_write_at(fd, page, sizeof page, 0);
    if (r == 0 && !no_sync && fdatasync(fd) < 0)
        r = -errno;
    return r;
}

/* Also the second file gets its header page now: beginning a generation then never needs room. */
int vg_wal_create(int dirfd, uint64_t salt, vg_rev applied, vg_rev base)
{
    for (unsigned which = 0; which < 2; which++) {
        int fd = -1;
        int r = vg_wal_open_file(dirfd, which, O_CREAT | O_TRUNC, &fd);
        if (r < 0)
            return r;
        r = vg_write_at(fd, zeros, VG_WAL_PAGE, 0);
        if (r == 0 && which == 1)
            r = write_head(fd, salt, 1, applied, base, false);
        if (r == 0 && fsync(fd) < 0)
            r = -errno;
        close(fd);
        if (r < 0)
            return r;
    }
    return vg_sync_dir(dirfd);
}

void vg_wal_close(struct vg_wal *w)
{
    for (int i = 0; i < 2; i++) {
        if (w->fd[i] >= 0)
            close(w->fd[i]);
        w->fd[i] = -1;
    }
    vg_buf_done(&w->frame);
}

/* ---- appending ---- */

static int build_frame(struct vg_wal *w, const struct vg_event *events, size_t n)
{
    size_t payload = 0;
    for (size_t i = 0; i < n; i++)
        payload += vg_rec_encoded_size(events[i].rec);
    size_t total = VG_ALIGN_UP(sizeof(struct wal_frame) + payload, VG_WAL_PAGE);
    vg_buf_clear(&w->frame);
    int r = vg_buf_reserve(&w->frame, total);
    if (r < 0)
        return r;
    char *at = w->frame.p + sizeof(struct wal_frame);
    for (size_t i = 0; i < n; i++) {
        vg_rec_encode(events[i].rec, at);
        at += vg_rec_encoded_size(events[i].rec);
    }
    memset(at, 0, (size_t)(w->frame.p + total - at));
    struct wal_frame f = {
        .magic = htole32(WAL_FRAME_MAGIC),
        .gen = htole64(w->gen),
        .first = htole64(events[0].rec->rev),
        .last = htole64(events[n - 1].rec->rev),
        .n = htole32((uint32_t)n),
        .payload_len = htole32((uint32_t)payload),
    };
    f.crc = htole32(vg_wal_frame_crc(w->salt, &f, w->frame.p + sizeof f));
    memcpy(w->frame.p, &f, sizeof f);
    w->frame.n = total;
    return 0;
}

/* Zeros behind the frame that is about to be synced. Failing costs speed alone. */
static void write_ahead(struct vg_wal *w, int fd, uint64_t end)
{
    uint64_t *ahead = &w->ahead[w->gen & 1];
    if (end <= *ahead)
        return;
    uint64_t upto = VG_ALIGN_UP(end, AHEAD_STEP);
    for (uint64_t at = end; at < upto; at += sizeof zeros) {
        if (vg_write_at(fd, zeros, (size_t)VG_MIN(upto - at, sizeof zeros), (off_t)at) < 0) {
            upto = at;
            break;
        }
    }
    *ahead = VG_MAX(upto, end);
}

static bool is_full(int err)
{
    return err == -ENOSPC || err == -EDQUOT || err == -EFBIG;
}

/* A frame that did not fit may be whole but for its padding: before the answer is that nothing
 * happened, that must be true on the disk. What is zeroed was written just now, so it has room. */
static int fail_full(struct vg_wal *w, int fd, size_t written)
{
    if (written == 0)
        return VIGIL_E_STORE_FULL;
    int r = vg_write_at(fd, zeros, VG_MIN(written, sizeof(struct wal_frame)), (off_t)w->offset);
    if (r < 0 || (!w->no_sync && fdatasync(fd) < 0))
        return VIGIL_E_UNKNOWN_OUTCOME;
    return VIGIL_E_STORE_FULL;
}

int vg_wal_append(struct vg_wal *w, const struct vg_event *events, size_t n)
{
    int r = build_frame(w, events, n);
    if (r < 0)
        return r; /* nothing was written */
    int fd = w->fd[w->gen & 1];
    size_t written;
    r = vg_write_some_at(fd, w->frame.p, w->frame.n, (off_t)w->offset, &written);
    if (r < 0)
        return is_full(r) ? fail_full(w, fd, written) : VIGIL_E_UNKNOWN_OUTCOME;
    write_ahead(w, fd, w->offset + w->frame.n);
    if (!w->no_sync && fdatasync(fd) < 0)
        return VIGIL_E_UNKNOWN_OUTCOME;
    w->offset += w->frame.n;
    w->last = events[n - 1].rec->rev;
    atomic_fetch_add_explicit(w->syncs, w->no_sync ? 0 : 1, memory_order_relaxed);
    atomic_fetch_add_explicit(w->bytes, w->frame.n, memory_order_relaxed);
    if (w->frame.cap > VG_WAL_FRAME_KEEP)
        vg_buf_done(&w->frame);
    return 0;
}

/* ---- generations and repair ---- */

int vg_wal_switch(struct vg_wal *w, vg_rev last, vg_rev base)
{
    uint64_t gen = w->gen + 1;
    int r = write_head(w->fd[gen & 1], w->salt, gen, last, base, w->no_sync);
    if (r < 0) {
        w->is_header_void = true;
        return r;
    }
    w->gen = gen;
    w->offset = VG_WAL_PAGE;
    w->last = base;
    return 0;
}

/* After a failed sync the kernel may have dropped what it could not write and call the file clean:
 * only what is written anew, through a new descriptor, can be trusted. Void is a page of zeros: on
 * the lost frame, or on the header that must not come to life. */
int vg_wal_repair(struct vg_wal *w)
{
    unsigned which = (unsigned)((w->is_header_void ? w->gen + 1 : w->gen) & 1);
    int fd = -1;
    int r = vg_wal_open_file(w->dirfd, which, 0, &fd);
    if (r < 0)
        return r;
    off_t at = w->is_header_void ? 0 : (off_t)w->offset;
    r = vg_write_at(fd, zeros, VG_WAL_PAGE, at);
    if (r == 0 && !w->no_sync && fdatasync(fd) < 0)
        r = -errno;
    if (r < 0) {
        close(fd);
        return r;
    }
    close(w->fd[which]);
    w->fd[which] = fd;
    w->is_header_void = false;
    return 0;
}
