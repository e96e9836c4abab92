/* wal_replay.c - reading the write-ahead log back after a start. See wal.h.
 * The bytes come from a disk that may have been cut off in the middle of anything: nothing in them
 * is believed before its checksum is. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "files.h"
#include "wal_int.h"

/* So many bytes of a log are the beginning of more. */
#define TOUCH_AFTER ((size_t)1 << 20)

int vg_wal_map(struct wal_file *f, int dirfd, unsigned which)
{
    *f = (struct wal_file){.which = which, .fd = -1};
    int r = vg_wal_open_file(dirfd, which, 0, &f->fd);
    if (r < 0)
        return r;
    struct stat st;
    if (fstat(f->fd, &st) < 0)
        return -errno;
    if (st.st_size <= 0)
        return 0;
    void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, f->fd, 0);
    if (p == MAP_FAILED)
        return -errno;
    f->p = p;
    f->n = (size_t)st.st_size;
    return 0;
}

void vg_wal_unmap(struct wal_file *f)
{
    if (f->p)
        munmap((void *)f->p, f->n);
    f->p = NULL;
}

void vg_wal_read_head(struct wal_file *f, uint64_t salt)
{
    struct wal_head h;
    if (f->n < VG_WAL_PAGE)
        return;
    memcpy(&h, f->p, sizeof h);
    if (memcmp(h.magic, WAL_MAGIC, sizeof h.magic) != 0 || vg_wal_head_crc(&h) != h.crc ||
        le32toh(h.version) != WAL_VERSION || le64toh(h.salt) != salt)
        return;
    f->has_head = true;
    f->head = h;
    f->head.gen = le64toh(h.gen);
    f->head.prev_last = le64toh(h.prev_last);
    f->head.base = le64toh(h.base);
    f->head.flags = le32toh(h.flags);
}

bool vg_wal_frame_at(const struct wal_file *f, uint64_t salt, uint64_t gen, size_t at,
                     struct wal_frame *ret_frame)
{
    struct wal_frame h;
    if (at > f->n || f->n - at < sizeof h)
        return false;
    memcpy(&h, f->p + at, sizeof h);
    if (le32toh(h.magic) != WAL_FRAME_MAGIC || le64toh(h.gen) != gen)
        return false;
    if (le32toh(h.payload_len) > f->n - at - sizeof h)
        return false;
    if (vg_wal_frame_crc(salt, &h, f->p + at + sizeof h) != le32toh(h.crc))
        return false;
    *ret_frame = h;
    ret_frame->first = le64toh(h.first);
    ret_frame->last = le64toh(h.last);
    ret_frame->n = le32toh(h.n);
    ret_frame->payload_len = le32toh(h.payload_len);
    return true;
}

static int replay_records(const struct wal_file *f, uint64_t gen, const struct wal_frame *frame,
                          size_t at, const struct vg_wal_replay *replay)
{
    struct vg_slice in = vg_slice(f->p + at + sizeof *frame, frame->payload_len);
    for (uint32_t i = 0; i < frame->n; i++) {
        struct vg_rec *rec;
        size_t used;
        int r = vg_rec_decode(in, &used, &rec);
        if (r < 0)
            return r;
        if (at >= TOUCH_AFTER)
            vg_alloc_touch_ahead(rec);
        r = replay->on_rec(replay->arg, gen, rec);
        if (r < 0)
            return r;
        in = vg_slice(in.p + used, in.n - used);
    }
    return in.n == 0 ? 0 : VIGIL_E_STORE_DAMAGED;
}

/* A good frame behind the end means that something before it was damaged (L4). */
static bool has_frame_behind(const struct wal_file *f, uint64_t salt, uint64_t gen, size_t from)
{
    struct wal_frame frame;
    for (size_t at = from; at < f->n; at += VG_WAL_PAGE) {
        if (vg_wal_frame_at(f, salt, gen, at, &frame))
            return true;
    }
    return false;
}

static int fail_damaged(struct vg_status *status, const struct wal_file *f, size_t at,
                        const char *what)
{
    return vg_fail(
        status, VIGIL_E_STORE_DAMAGED,
        "wal-%u is damaged at byte %zu: %s; nothing was changed: restore from a backup, or "
        "let vigil-store repair save what can be read and say what is lost",
        f->which, at, what);
}

/* Replay one generation. `upto`: where the next generation says it ends; 0 = as far as it goes. */
static int replay_generation(struct vg_wal *w, struct wal_file *f, vg_rev upto,
                             const struct vg_wal_replay *replay, struct vg_status *reterr_status)
{
    uint64_t gen = f->head.gen;
    vg_rev last = f->head.base;
    size_t at = VG_WAL_PAGE;
    struct wal_frame frame;
    while ((!upto || last < upto) && vg_wal_frame_at(f, w->salt, gen, at, &frame)) {
        if (frame.first != last + 1)
            return fail_damaged(reterr_status, f, at, "revisions are missing");
        int r = replay_records(f, gen, &frame, at, replay);
        if (r == VIGIL_E_STORE_DAMAGED)
            return fail_damaged(reterr_status, f, at, "a record does not read back");
        if (r < 0)
            return vg_fail(reterr_status, r, "replaying wal-%u: %s", f->which, vg_err_text(r));
        last = frame.last;
        f->last_at = at;
        f->last_n = sizeof frame + frame.payload_len;
        at += VG_ALIGN_UP(f->last_n, VG_WAL_PAGE);
    }
    if (upto && last != upto)
        return fail_damaged(reterr_status, f, at, "it ends before the next generation begins");
    bool was_synced = !(f->head.flags & WAL_FLAG_NO_SYNC);
    if (!upto && was_synced && has_frame_behind(f, w->salt, gen, at + VG_WAL_PAGE))
        return fail_damaged(reterr_status, f, at,
                            "a group is broken, but there are good ones after it");
    w->gen = gen;
    w->last = last;
    w->offset = at;
    return 0;
}

/* Which generations are there? `first` must be; the one after it may be, in the other file. */
static int check_heads(const struct wal_file files[2], uint64_t salt, uint64_t first,
                       vg_rev applied_rev, struct vg_status *reterr_status)
{
    const struct wal_file *a = &files[first & 1], *b = &files[(first + 1) & 1];
    struct wal_frame frame;
    if (!a->has_head || a->head.gen != first)
        return fail_damaged(reterr_status, a, 0,
                            "the header of the generation to replay is missing");
    if (a->head.prev_last != applied_rev)
        return fail_damaged(reterr_status, a, 0, "it does not continue where data.mdb ends");
    if (b->has_head && b->head.gen > first + 1)
        return fail_damaged(reterr_status, b, 0, "a generation is missing");
    bool is_next = b->has_head && b->head.gen == first + 1;
    if (!is_next && vg_wal_frame_at(b, salt, first + 1, VG_WAL_PAGE, &frame))
        return fail_damaged(reterr_status, b, 0, "its header is gone, but its groups are there");
    return 0;
}

static int replay_all(struct vg_wal *w, struct wal_file files[2], uint64_t applied_gen,
                      vg_rev applied_rev, const struct vg_wal_replay *replay,
                      struct vg_status *reterr_status)
{
    uint64_t first = applied_gen + 1;
    for (unsigned i = 0; i < 2; i++)
        vg_wal_read_head(&files[i], w->salt);
    int r = check_heads(files, w->salt, first, applied_rev, reterr_status);
    if (r < 0)
        return r;
    struct wal_file *a = &files[first & 1], *b = &files[(first + 1) & 1];
    bool has_next = b->has_head && b->head.gen == first + 1;
    r = replay_generation(w, a, has_next ? b->head.prev_last : 0, replay, reterr_status);
    w->frozen_last = w->last;
    if (r == 0 && has_next)
        r = replay_generation(w, b, 0, replay, reterr_status);
    return r;
}

/* ---- the mark ---- */

static int fail_mark(struct vg_status *status, const char *what)
{
    return vg_fail(status, VIGIL_E_STORE_DAMAGED,
                   "the file " VG_FILE_DURABLE " %s, so nobody can tell whether the log is whole; "
                   "nothing was changed: put the file back, restore from a backup, or let "
                   "vigil-store repair go on with what can be read",
                   what);
}

/* L5. A store of an older vigil has no mark; it gets one when all else is well. */
static int check_mark(struct vg_wal *w, const struct wal_file files[2],
                      struct vg_status *reterr_status)
{
    const struct wal_file *f = &files[w->gen & 1];
    int r = vg_durable_open(&w->durable, w->dirfd, w->salt);
    if (r == -ENOENT)
        return f->head.flags & WAL_FLAG_MARKED ? fail_mark(reterr_status, "is missing") : 0;
    if (r == VIGIL_E_STORE_DAMAGED)
        return fail_mark(reterr_status, "is damaged");
    if (r < 0)
        return vg_fail(reterr_status, r, "cannot read " VG_FILE_DURABLE ": %s", vg_err_text(r));
    if ((f->head.flags & WAL_FLAG_NO_SYNC) || w->last >= w->durable.last)
        return 0;
    return vg_fail(reterr_status, VIGIL_E_STORE_DAMAGED,
                   "wal-%u ends at revision %" PRIu64 ", but revision %" PRIu64
                   " was acknowledged: what came between them is missing or damaged; nothing was "
                   "changed: put the file back, restore from a backup, or let vigil-store repair "
                   "save what can be read and say what is lost",
                   f->which, w->last, w->durable.last);
}

/* What was replayed is on the disk now. */
static int settle_mark(struct vg_wal *w)
{
    if (w->manner == VG_WAL_NO_SYNC) {
        vg_durable_close(&w->durable);
        return 0;
    }
    if (w->durable.fd >= 0)
        return vg_durable_settle(&w->durable, w->last);
    int r = vg_durable_create(w->dirfd, w->salt, w->last);
    return r < 0 ? r : vg_durable_open(&w->durable, w->dirfd, w->salt);
}

/* ---- opening ---- */

static int write_back(struct vg_wal *w, const struct wal_file *f, size_t at, size_t n)
{
    vg_buf_clear(&w->frame); /* not from the mapping: it is of the pages that are written */
    int r = vg_buf_append(&w->frame, f->p + at, n);
    return r < 0 ? r : vg_write_at(f->fd, w->frame.p, n, (off_t)at);
}

/* What was found is about to be shown, so it must be on the disk. A sync alone does not do it:
 * after one that failed the kernel calls pages clean that it could not write, and a process that
 * starts then finds in memory what the disk does not have. Only headers and the last group can be
 * in that state; they are written again, with the same bytes, which L1 can bear. */
static int settle(struct vg_wal *w, const struct wal_file *f)
{
    int r = f->has_head ? write_back(w, f, 0, VG_WAL_PAGE) : 0;
    if (r == 0 && f->last_n)
        r = write_back(w, f, f->last_at, f->last_n);
    if (r == 0 && fdatasync(f->fd) < 0)
        r = -errno;
    if (r < 0 || f->n < VG_WAL_PAGE)
        return r;
    _Alignas(VG_WAL_PAGE) char page[VG_WAL_PAGE];
    memcpy(page, f->p, sizeof page);
    return vg_wal_choose_manner(w, f->which, page);
}

static int map_both(struct wal_file files[2], int dirfd, struct vg_status *reterr_status)
{
    int r = 0;
    for (unsigned i = 0; i < 2 && r == 0; i++) {
        r = vg_wal_map(&files[i], dirfd, i);
        if (r == -ENOENT)
            r = vg_fail(reterr_status, VIGIL_E_STORE_DAMAGED,
                        "wal-%u is missing: acknowledged writes may be gone; put it back, restore "
                        "from a backup, or let vigil-store repair save what can be read",
                        i);
        else if (r < 0)
            vg_fail(reterr_status, r, "cannot read wal-%u: %s", i, vg_err_text(r));
    }
    return r;
}

static int drop_rec(void *arg, uint64_t gen, struct vg_rec *take_rec)
{
    (void)arg;
    (void)gen;
    vg_rec_unref(take_rec);
    return 0;
}

int vg_wal_check(int dirfd, uint64_t salt, uint64_t applied_gen, vg_rev applied_rev,
                 struct vg_status *reterr_status)
{
    struct wal_file files[2] = {{.fd = -1}, {.fd = -1}};
    struct vg_wal w = {.dirfd = dirfd, .salt = salt, .fd = {-1, -1}, .durable = {.fd = -1}};
    const struct vg_wal_replay replay = {.on_rec = drop_rec};
    int r = map_both(files, dirfd, reterr_status);
    if (r == 0)
        r = replay_all(&w, files, applied_gen, applied_rev, &replay, reterr_status);
    if (r == 0)
        r = check_mark(&w, files, reterr_status);
    for (unsigned i = 0; i < 2; i++) {
        vg_wal_unmap(&files[i]);
        w.fd[i] = files[i].fd;
    }
    vg_wal_close(&w);
    return r;
}

int vg_wal_open(struct vg_wal *w, int dirfd, uint64_t salt, uint64_t applied_gen,
                vg_rev applied_rev, bool no_sync, const struct vg_wal_replay *replay,
                struct vg_status *reterr_status)
{
    struct wal_file files[2] = {{.fd = -1}, {.fd = -1}};
    w->dirfd = dirfd;
    w->salt = salt;
    w->durable.fd = -1;
    w->manner = no_sync ? VG_WAL_NO_SYNC : VG_WAL_FDATASYNC;
    int r = map_both(files, dirfd, reterr_status);
    if (r == 0)
        r = replay_all(w, files, applied_gen, applied_rev, replay, reterr_status);
    if (r == 0)
        r = check_mark(w, files, reterr_status);
    for (unsigned i = 0; i < 2; i++) {
        w->fd[i] = files[i].fd;
        w->ahead[i] = files[i].n - files[i].n % VG_WAL_PAGE;
        if (r == 0 && (r = settle(w, &files[i])) < 0)
            vg_fail(reterr_status, r, "cannot write wal-%u: %s", i, vg_err_text(r));
        vg_wal_unmap(&files[i]);
    }
    if (r == 0 && (r = settle_mark(w)) < 0)
        vg_fail(reterr_status, r, "cannot write " VG_FILE_DURABLE ": %s", vg_err_text(r));
    if (r < 0)
        vg_wal_close(w);
    return r;
}
