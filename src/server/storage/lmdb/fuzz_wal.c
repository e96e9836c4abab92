/* fuzz_wal.c - any bytes as the two files of a write-ahead log.
 * Input: one byte of options, then the bytes of wal-0 and wal-1, half each; checksums are put right
 * where the options say so, or else nothing would ever get past them. Invariants: opening never
 * crashes; a log that opens can be appended to, and opening it again gives the same records in the
 * same order and then the new one. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "files.h"
#include "wal_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SALT UINT64_C(0x5a17)
#define FIX_CHECKSUMS 1u
#define SECOND_GENERATION 2u
#define INPUT_MAX ((size_t)256 * 1024)

static char dir_path[64];
static int dir_fd = -1;

static void remove_dir(void)
{
    unlinkat(dir_fd, "wal-0", 0);
    unlinkat(dir_fd, "wal-1", 0);
    rmdir(dir_path);
}

static void make_dir(void)
{
    if (dir_fd >= 0)
        return;
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(dir_path, sizeof dir_path, "%s/vigil-fuzz-wal-XXXXXX", base);
    if (!mkdtemp(dir_path))
        abort();
    dir_fd = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0)
        abort();
    atexit(remove_dir);
}

static void fix_head(char *page, uint64_t gen)
{
    struct wal_head h;
    memcpy(&h, page, sizeof h);
    memcpy(h.magic, WAL_MAGIC, sizeof h.magic);
    h.version = htole32(WAL_VERSION);
    h.salt = htole64(SALT);
    h.gen = htole64(gen);
    h.crc = vg_wal_head_crc(&h);
    memcpy(page, &h, sizeof h);
}

static void fix_frames(char *p, size_t n)
{
    struct wal_frame f;
    for (size_t at = VG_WAL_PAGE; at + sizeof f <= n; at += VG_WAL_PAGE) {
        memcpy(&f, p + at, sizeof f);
        size_t room = n - at - sizeof f;
        if (le32toh(f.magic) != WAL_FRAME_MAGIC || le32toh(f.payload_len) > room)
            continue;
        f.crc = htole32(vg_wal_frame_crc(SALT, &f, p + at + sizeof f));
        memcpy(p + at, &f, sizeof f);
    }
}

static void write_wal(unsigned which, const uint8_t *data, size_t n, unsigned options)
{
    size_t room = VG_MAX(n, VG_WAL_PAGE);
    char *copy = calloc(1, room);
    if (!copy)
        abort();
    memcpy(copy, data, n);
    uint64_t gen = which ? 1 : 2;
    if ((options & FIX_CHECKSUMS) && (which || (options & SECOND_GENERATION)))
        fix_head(copy, gen);
    if (options & FIX_CHECKSUMS)
        fix_frames(copy, room);
    int fd;
    if (vg_wal_open_file(dir_fd, which, O_CREAT | O_TRUNC, &fd) < 0 ||
        vg_write_at(fd, copy, room, 0) < 0)
        abort();
    close(fd);
    free(copy);
}

struct seen {
    size_t n;
    uint64_t sum; /* of revisions, in order */
};

static int on_rec(void *arg, uint64_t gen, struct vg_rec *take_rec)
{
    struct seen *seen = arg;
    seen->n++;
    seen->sum = seen->sum * 31 + take_rec->rev + gen;
    vg_rec_unref(take_rec);
    return 0;
}

static _Atomic uint64_t syncs, bytes;

static int open_wal(struct vg_wal *w, struct seen *seen)
{
    *w = (struct vg_wal){.fd = {-1, -1}, .syncs = &syncs, .bytes = &bytes};
    *seen = (struct seen){0};
    struct vg_wal_replay replay = {.on_rec = on_rec, .arg = seen};
    struct vg_status status;
    return vg_wal_open(w, dir_fd, SALT, 0, 0, true, &replay, &status);
}

static void append_one(struct vg_wal *w)
{
    struct vg_rec *rec;
    if (vg_rec_new(VG_REC_PUT, VG_SLICE_LIT("key"), VG_SLICE_LIT(""), VG_SLICE_LIT("value"), &rec) <
        0)
        abort();
    rec->rev = w->last + 1;
    struct vg_event event = {.rec = rec};
    if (vg_wal_append(w, &event, 1) < 0)
        abort();
    vg_rec_unref(rec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vg_wal w;
    struct seen first, again;
    if (size < 1 || size > INPUT_MAX)
        return 0;
    make_dir();
    size_t half = (size - 1) / 2;
    write_wal(0, data + 1, half, data[0]);
    write_wal(1, data + 1 + half, size - 1 - half, data[0]);
    if (open_wal(&w, &first) < 0)
        return 0;
    bool can_append = w.last < VG_REV_MAX;
    vg_rev last = w.last;
    if (can_append)
        append_one(&w);
    vg_wal_close(&w);
    if (!can_append)
        return 0;
    if (open_wal(&w, &again) < 0 || again.n != first.n + 1 || w.last != last + 1)
        abort();
    vg_wal_close(&w);
    return 0;
}
