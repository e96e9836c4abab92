/* wal.c - appending to the write-ahead log. See wal.h; recovery is in wal_replay.c. */
#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/crc32c.h"
#include "files.h"
#include "wal_int.h"

/* Zeros are written ahead in steps of 1 MiB: one sync in many then pays for file metadata. */
#define AHEAD_STEP ((uint64_t)1 << 20)

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
                      enum vg_wal_manner manner)
{
    _Alignas(VG_WAL_PAGE) char page[VG_WAL_PAGE] = {0};
    struct wal_head h = {
        .magic = WAL_MAGIC,
        .version = htole32(WAL_VERSION),
        .gen = htole64(gen),
        .salt = htole64(salt),
        .prev_last = htole64(prev_last),
        .base = htole64(base),
        .flags = htole32(manner == VG_WAL_NO_SYNC ? WAL_FLAG_NO_SYNC : WAL_FLAG_MARKED),
    };
    h.crc = vg_wal_head_crc(&h);
    memcpy(page, &h, sizeof h);
    size_t done;
    return vg_wal_put(fd, manner, page, sizeof page, 0, &done);
}

/* Also the second file gets its header page now: beginning a generation then never needs room. */
int vg_wal_create(int dirfd, uint64_t salt, vg_rev applied, vg_rev base)
{
    int err = vg_durable_create(dirfd, salt, base);
    if (err < 0)
        return err;
    for (unsigned which = 0; which < 2; which++) {
        int fd = -1;
        int r = vg_wal_open_file(dirfd, which, O_CREAT | O_TRUNC, &fd);
        if (r < 0)
            return r;
        r = vg_write_at(fd, vg_wal_zeros, VG_WAL_PAGE, 0);
        if (r == 0 && which == 1)
            r = write_head(fd, salt, 1, applied, base, VG_WAL_FDATASYNC);
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
    vg_durable_close(&w->durable);
    vg_buf_done(&w->frame);
}

/* ---- appending ---- */

/* Where the frame is in its buffer: past the page cache goes only what begins on a page. */
static char *frame_of(struct vg_wal *w)
{
    return w->frame.p + (VG_ALIGN_UP((uintptr_t)w->frame.p, VG_WAL_PAGE) - (uintptr_t)w->frame.p);
}

static int build_frame(struct vg_wal *w, const struct vg_event *events, size_t n)
{
    size_t payload = 0;
    for (size_t i = 0; i < n; i++)
        payload += vg_rec_encoded_size(events[i].rec);
    size_t total = VG_ALIGN_UP(sizeof(struct wal_frame) + payload, VG_WAL_PAGE);
    vg_buf_clear(&w->frame);
    int r = vg_buf_reserve(&w->frame, total + VG_WAL_PAGE);
    if (r < 0)
        return r;
    char *frame = frame_of(w), *at = frame + sizeof(struct wal_frame);
    for (size_t i = 0; i < n; i++) {
        vg_rec_encode(events[i].rec, at);
        at += vg_rec_encoded_size(events[i].rec);
    }
    memset(at, 0, (size_t)(frame + total - at));
    struct wal_frame f = {
        .magic = htole32(WAL_FRAME_MAGIC),
        .gen = htole64(w->gen),
        .first = htole64(events[0].rec->rev),
        .last = htole64(events[n - 1].rec->rev),
        .n = htole32((uint32_t)n),
        .payload_len = htole32((uint32_t)payload),
    };
    f.crc = htole32(vg_wal_frame_crc(w->salt, &f, frame + sizeof f));
    memcpy(frame, &f, sizeof f);
    w->frame_n = total;
    return 0;
}

/* Zeros behind the frame that is about to be synced, in one call. Failing costs speed alone. */
static void write_ahead(struct vg_wal *w, int fd, uint64_t end)
{
    struct iovec iov[AHEAD_STEP / WAL_ZEROS];
    uint64_t left = VG_ALIGN_UP(end, AHEAD_STEP) - end;
    int n = 0;
    for (uint64_t part; left > 0; left -= part) {
        part = VG_MIN(left, WAL_ZEROS);
        iov[n++] = (struct iovec){(void *)vg_wal_zeros, (size_t)part};
    }
    ssize_t r = n ? pwritev(fd, iov, n, (off_t)end) : 0;
    w->ahead[w->gen & 1] = end + (r > 0 ? (uint64_t)r - (uint64_t)r % VG_WAL_PAGE : 0);
}

static bool is_full(int err)
{
    return err == -ENOSPC || err == -EDQUOT || err == -EFBIG;
}

/* A frame that did not fit may be whole but for its padding: before the answer is that nothing
 * happened, that must be true on the disk. What is zeroed was written just now, so it has room. */
static int fail_full(struct vg_wal *w, int fd, size_t written)
{
    size_t n = VG_MIN(written, vg_wal_is_direct(fd) ? VG_WAL_PAGE : sizeof(struct wal_frame));
    if (n == 0)
        return VIGIL_E_STORE_FULL;
    size_t done;
    int r = vg_wal_put(fd, w->manner, vg_wal_zeros, n, (off_t)w->offset, &done);
    return r < 0 ? VIGIL_E_UNKNOWN_OUTCOME : VIGIL_E_STORE_FULL;
}

/* Over pages that were written ahead, one call does all. One that failed may have written anything:
 * that there was no room is then said only once it is void. */
static int put_over(struct vg_wal *w, int fd)
{
    size_t written;
    int r = vg_wal_put(fd, VG_WAL_DSYNC, frame_of(w), w->frame_n, (off_t)w->offset, &written);
    if (r == 0)
        return 0;
    return is_full(r) ? fail_full(w, fd, w->frame_n) : VIGIL_E_UNKNOWN_OUTCOME;
}

/* Behind them the file grows: the frame, zeros for those to come, and a sync for both. */
static int put_growing(struct vg_wal *w, int fd)
{
    size_t written;
    int r = vg_write_some_at(fd, frame_of(w), w->frame_n, (off_t)w->offset, &written);
    if (r < 0)
        return is_full(r) ? fail_full(w, fd, written) : VIGIL_E_UNKNOWN_OUTCOME;
    uint64_t end = w->offset + w->frame_n;
    if (end > w->ahead[w->gen & 1])
        write_ahead(w, fd, end);
    return w->manner != VG_WAL_NO_SYNC && fdatasync(fd) < 0 ? VIGIL_E_UNKNOWN_OUTCOME : 0;
}

int vg_wal_append(struct vg_wal *w, const struct vg_event *events, size_t n)
{
    int r = build_frame(w, events, n);
    if (r < 0)
        return r; /* nothing was written */
    int fd = w->fd[w->gen & 1];
    bool is_over = w->offset + w->frame_n <= w->ahead[w->gen & 1];
    r = is_over && w->manner == VG_WAL_DSYNC ? put_over(w, fd) : put_growing(w, fd);
    if (r < 0)
        return r;
    w->offset += w->frame_n;
    w->last = events[n - 1].rec->rev;
    vg_durable_note(&w->durable, w->last);
    atomic_fetch_add_explicit(w->syncs, w->manner == VG_WAL_NO_SYNC ? 0 : 1, memory_order_relaxed);
    atomic_fetch_add_explicit(w->bytes, w->frame_n, memory_order_relaxed);
    if (w->frame.cap > VG_WAL_FRAME_KEEP)
        vg_buf_done(&w->frame);
    return 0;
}

/* ---- generations and repair ---- */

int vg_wal_switch(struct vg_wal *w, vg_rev last, vg_rev base)
{
    uint64_t gen = w->gen + 1;
    int r = write_head(w->fd[gen & 1], w->salt, gen, last, base, w->manner);
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
    int r = vg_wal_open_file(w->dirfd, which, vg_wal_is_direct(w->fd[which]) ? O_DIRECT : 0, &fd);
    if (r < 0)
        return r;
    off_t at = w->is_header_void ? 0 : (off_t)w->offset;
    size_t done;
    r = vg_wal_put(fd, w->manner, vg_wal_zeros, VG_WAL_PAGE, at, &done);
    if (r < 0) {
        close(fd);
        return r;
    }
    close(w->fd[which]);
    w->fd[which] = fd;
    w->is_header_void = false;
    return 0;
}
