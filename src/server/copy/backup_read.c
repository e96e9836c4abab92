/* backup_read.c - reading a backup; see backup_file.h. Nothing that the file says is believed
 * before its checksum agrees. */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>

#include "backup_file.h"
#include "base/crc32c.h"

static int fail_damaged(const struct vg_backup_reader *r, const char *what,
                        struct vg_status *reterr_status)
{
    return vg_fail(reterr_status, VIGIL_E_STORE_DAMAGED,
                   "the backup %s is damaged after %" PRIu64 " keys: %s; take another one", r->path,
                   r->keys, what);
}

/* 1: all of it; 0: the file ended before. */
static int get_bytes(struct vg_backup_reader *r, void *p, size_t n)
{
    errno = 0;
    if (fread(p, 1, n, r->file) == n)
        return 1;
    return ferror(r->file) ? (errno ? -errno : -EIO) : 0;
}

static int get_or_fail(struct vg_backup_reader *r, void *p, size_t n,
                       struct vg_status *reterr_status)
{
    int got = get_bytes(r, p, n);
    if (got < 0)
        return vg_fail(reterr_status, got, "cannot read the backup %s: %s", r->path,
                       vg_err_text(got));
    return got ? 0 : fail_damaged(r, "it ends too early", reterr_status);
}

static bool crc_agrees(const unsigned char *bytes, size_t n)
{
    uint32_t crc;
    memcpy(&crc, bytes + n - sizeof crc, sizeof crc);
    return le32toh(crc) == vg_crc32c(0, bytes, n - sizeof crc);
}

static uint64_t u64_at(const unsigned char *bytes)
{
    uint64_t n;
    memcpy(&n, bytes, sizeof n);
    return le64toh(n);
}

static int read_head(struct vg_backup_reader *r, struct vg_status *reterr_status)
{
    unsigned char bytes[VG_BACKUP_HEAD];
    uint32_t format;
    int got = get_bytes(r, bytes, sizeof bytes);
    if (got < 0)
        return vg_fail(reterr_status, got, "cannot read the backup %s: %s", r->path,
                       vg_err_text(got));
    if (!got || memcmp(bytes, VG_BACKUP_MAGIC, 8) != 0)
        return vg_fail(reterr_status, VIGIL_E_STORE_FOREIGN, "%s is not a backup of vigil's",
                       r->path);
    memcpy(&format, bytes + 8, sizeof format);
    if (le32toh(format) != VG_BACKUP_FORMAT)
        return vg_fail(reterr_status, VIGIL_E_STORE_VERSION,
                       "the backup %s has format %" PRIu32 ", this program reads %u: use a newer "
                       "one",
                       r->path, le32toh(format), VG_BACKUP_FORMAT);
    if (!crc_agrees(bytes, sizeof bytes))
        return fail_damaged(r, "the checksum of its head is wrong", reterr_status);
    r->head.rev = u64_at(bytes + 16);
    r->head.made_ms = (int64_t)u64_at(bytes + 24);
    r->head.keys = u64_at(bytes + 32);
    if (r->head.rev > VG_REV_MAX)
        return fail_damaged(r, "its revision cannot be", reterr_status);
    return 0;
}

int vg_backup_reader_begin(struct vg_backup_reader *r, FILE *take_file, const char *name,
                           struct vg_status *reterr_status)
{
    *r = (struct vg_backup_reader){.file = take_file, .path = name};
    int err = vg_digest_new(&r->digest);
    if (err < 0)
        vg_fail(reterr_status, err, "%s", vg_err_text(err));
    if (err == 0)
        err = read_head(r, reterr_status);
    if (err < 0)
        vg_backup_reader_close(r);
    return err;
}

int vg_backup_reader_open(struct vg_backup_reader *r, const char *path,
                          struct vg_status *reterr_status)
{
    FILE *file = fopen(path, "rbe");
    *r = (struct vg_backup_reader){0};
    if (!file)
        return vg_fail(reterr_status, -errno, "cannot read the backup %s: %s", path,
                       strerror(errno));
    return vg_backup_reader_begin(r, file, path, reterr_status);
}

bool vg_backup_is_embedded(const char *path)
{
    /* LMDB's first page: its number, padding and flags, then the magic. */
    static const unsigned char magic[4] = {0xde, 0xc0, 0xef, 0xbe};
    unsigned char head[20] = {0};
    FILE *file = fopen(path, "rbe");
    if (!file)
        return false;
    bool is_whole = fread(head, 1, sizeof head, file) == sizeof head;
    (void)fclose(file);
    return is_whole && memcmp(head + 16, magic, sizeof magic) == 0;
}

/* The bytes after the length 0. */
static int read_end(struct vg_backup_reader *r, struct vg_status *reterr_status)
{
    unsigned char bytes[VG_BACKUP_END] = {0}, sum[VG_DIGEST_SIZE], more;
    int err = get_or_fail(r, bytes + 4, sizeof bytes - 4, reterr_status);
    if (err == 0)
        err = vg_digest_get(r->digest, sum);
    if (err < 0)
        return err;
    if (!crc_agrees(bytes, sizeof bytes))
        return fail_damaged(r, "the checksum of its end is wrong", reterr_status);
    if (u64_at(bytes + 4) != r->keys || r->head.keys != r->keys)
        return fail_damaged(r, "it should have another number of keys", reterr_status);
    if (memcmp(bytes + 12, sum, sizeof sum) != 0)
        return fail_damaged(r, "keys and values do not have the digest that it names",
                            reterr_status);
    if (get_bytes(r, &more, 1) != 0)
        return fail_damaged(r, "something follows its end", reterr_status);
    r->is_over = true;
    return 0;
}

static int decode(struct vg_backup_reader *r, uint32_t length, struct vg_rec **ret_rec,
                  struct vg_status *reterr_status)
{
    size_t used;
    int err = vg_rec_decode(vg_slice(r->record.p, length), &used, ret_rec);
    if (err == -ENOMEM)
        return vg_fail(reterr_status, err, "%s", vg_err_text(err));
    if (err == 0 && used == length && !vg_rec_is_delete(*ret_rec))
        return 0;
    if (err == 0)
        vg_rec_unref(*ret_rec);
    return fail_damaged(r, "a record does not read back", reterr_status);
}

int vg_backup_reader_next(struct vg_backup_reader *r, struct vg_rec **ret_rec,
                          struct vg_status *reterr_status)
{
    uint32_t length;
    struct vg_rec *rec = NULL;
    if (r->is_over)
        return 0;
    int err = get_or_fail(r, &length, sizeof length, reterr_status);
    length = err == 0 ? le32toh(length) : 0;
    if (err < 0 || length == 0)
        return err < 0 ? err : read_end(r, reterr_status);
    if (length > VG_BACKUP_RECORD_MAX)
        return fail_damaged(r, "a record is too long", reterr_status);
    vg_buf_clear(&r->record);
    err = vg_buf_reserve(&r->record, length);
    if (err < 0)
        return vg_fail(reterr_status, err, "%s", vg_err_text(err));
    err = get_or_fail(r, r->record.p, length, reterr_status);
    if (err == 0)
        err = decode(r, length, &rec, reterr_status);
    if (err < 0 || VG_NEVER(!rec))
        return err < 0 ? err : VIGIL_E_INTERNAL;
    if (r->last && vg_slice_cmp(vg_rec_key(r->last), vg_rec_key(rec)) >= 0)
        err = fail_damaged(r, "keys are not in order", reterr_status);
    else
        err = vg_digest_add(r->digest, rec);
    vg_rec_unref(r->last);
    r->last = rec;
    r->keys++;
    if (err < 0)
        return err;
    *ret_rec = vg_rec_ref(rec);
    return 1;
}

void vg_backup_reader_close(struct vg_backup_reader *r)
{
    if (r->file)
        (void)fclose(r->file);
    vg_digest_free(r->digest);
    vg_buf_done(&r->record);
    vg_rec_unref(r->last);
    *r = (struct vg_backup_reader){0};
}
