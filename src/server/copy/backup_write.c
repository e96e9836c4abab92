/* backup_write.c - writing a backup; see backup_file.h. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backup_file.h"
#include "base/alloc.h"
#include "base/crc32c.h"

static int fail_write(const struct vg_backup_writer *w, int err, struct vg_status *reterr_status)
{
    return vg_fail(reterr_status, err, "cannot write the backup %s: %s", w->path, vg_err_text(err));
}

static int put_bytes(struct vg_backup_writer *w, const void *p, size_t n)
{
    errno = 0;
    if (fwrite(p, 1, n, w->file) != n)
        return errno ? -errno : -EIO;
    w->bytes += n;
    return 0;
}

static int put_head(struct vg_backup_writer *w, const struct vg_backup_head *head)
{
    unsigned char bytes[VG_BACKUP_HEAD] = VG_BACKUP_MAGIC;
    uint32_t format = htole32(VG_BACKUP_FORMAT);
    uint64_t rev = htole64(head->rev), made = htole64((uint64_t)head->made_ms);
    uint64_t keys = htole64(head->keys);
    memcpy(bytes + 8, &format, sizeof format);
    memcpy(bytes + 16, &rev, sizeof rev);
    memcpy(bytes + 24, &made, sizeof made);
    memcpy(bytes + 32, &keys, sizeof keys);
    uint32_t crc = htole32(vg_crc32c(0, bytes, VG_BACKUP_HEAD - sizeof crc));
    memcpy(bytes + VG_BACKUP_HEAD - sizeof crc, &crc, sizeof crc);
    return put_bytes(w, bytes, sizeof bytes);
}

static int open_beside(struct vg_backup_writer *w, const char *path)
{
    size_t size = strlen(path) + sizeof ".partial";
    w->path = vg_strdup(path);
    w->beside = vg_malloc(size);
    if (!w->path || !w->beside)
        return -ENOMEM;
    snprintf(w->beside, size, "%s.partial", path);
    if (access(path, F_OK) == 0)
        return VIGIL_E_EXISTS;
    int fd = open(w->beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int r = fchmod(fd, 0600) < 0 ? -errno : 0;
    w->file = r == 0 ? fdopen(fd, "wb") : NULL;
    if (!w->file) {
        r = r < 0 ? r : -errno;
        close(fd);
    }
    return r;
}

int vg_backup_writer_open(struct vg_backup_writer *w, const char *path,
                          const struct vg_backup_head *head, struct vg_status *reterr_status)
{
    *w = (struct vg_backup_writer){0};
    int r = open_beside(w, path);
    if (r == 0)
        r = vg_digest_new(&w->digest);
    if (r == 0)
        r = put_head(w, head);
    if (r == VIGIL_E_EXISTS)
        vg_fail(reterr_status, r, "%s exists already: choose another name, or move it away", path);
    else if (r < 0)
        vg_fail(reterr_status, r, "cannot write the backup %s: %s", path, vg_err_text(r));
    if (r < 0)
        vg_backup_writer_close(w);
    return r;
}

int vg_backup_writer_add(struct vg_backup_writer *w, const struct vg_rec *rec,
                         struct vg_status *reterr_status)
{
    size_t n = vg_rec_encoded_size(rec);
    uint32_t length = htole32((uint32_t)n);
    vg_buf_clear(&w->record);
    int r = n > VG_BACKUP_RECORD_MAX ? VIGIL_E_VALUE_TOO_LARGE : vg_buf_reserve(&w->record, n);
    if (r == 0) {
        vg_rec_encode(rec, w->record.p);
        r = vg_digest_add(w->digest, rec);
    }
    if (r == 0)
        r = put_bytes(w, &length, sizeof length);
    if (r == 0)
        r = put_bytes(w, w->record.p, n);
    w->keys++;
    return r < 0 ? fail_write(w, r, reterr_status) : 0;
}

static int put_end(struct vg_backup_writer *w)
{
    unsigned char bytes[VG_BACKUP_END] = {0}; /* begins with the length 0 */
    uint64_t keys = htole64(w->keys);
    memcpy(bytes + 4, &keys, sizeof keys);
    int r = vg_digest_get(w->digest, bytes + 12);
    uint32_t crc = htole32(vg_crc32c(0, bytes, VG_BACKUP_END - sizeof crc));
    memcpy(bytes + VG_BACKUP_END - sizeof crc, &crc, sizeof crc);
    return r < 0 ? r : put_bytes(w, bytes, sizeof bytes);
}

/* A name is durable when its directory is. */
static int sync_dir_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *dir = slash == path ? vg_strdup("/") : vg_strdup(slash ? path : ".");
    if (!dir)
        return -ENOMEM;
    if (slash && slash != path)
        dir[slash - path] = '\0';
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    vg_free(dir);
    if (fd < 0)
        return -errno;
    int r = fsync(fd) < 0 && errno != EINVAL ? -errno : 0;
    close(fd);
    return r;
}

int vg_backup_writer_end(struct vg_backup_writer *w, struct vg_status *reterr_status)
{
    int r = put_end(w);
    if (r == 0 && (fflush(w->file) != 0 || fsync(fileno(w->file)) < 0))
        r = -errno;
    return r < 0 ? fail_write(w, r, reterr_status) : 0;
}

int vg_backup_writer_publish(struct vg_backup_writer *w, struct vg_status *reterr_status)
{
    int r = link(w->beside, w->path) < 0 ? -errno : sync_dir_of(w->path);
    if (r == -EEXIST)
        return vg_fail(reterr_status, VIGIL_E_EXISTS,
                       "%s has come into being meanwhile: it was not replaced", w->path);
    return r < 0 ? fail_write(w, r, reterr_status) : 0;
}

void vg_backup_writer_close(struct vg_backup_writer *w)
{
    if (w->file) {
        (void)fclose(w->file); /* what counts was synced before */
        unlink(w->beside);
    }
    vg_digest_free(w->digest);
    vg_buf_done(&w->record);
    vg_free(w->path);
    vg_free(w->beside);
    *w = (struct vg_backup_writer){0};
}
