/* damage_kit.c - see damage_kit.h. */
#include "damage_kit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "test_support.h"

struct vg_storage_opts dk_opts(const char *dir)
{
    return (struct vg_storage_opts){.dir = dir, .map_size = (size_t)1 << 26, .checkpoint_ms = 1000};
}

const char *dk_path(const char *dir, const char *name)
{
    static char paths[4][600];
    static int next;
    char *path = paths[next++ & 3];
    snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    return path;
}

const char *dk_key(int i)
{
    static char key[16];
    snprintf(key, sizeof key, "key/%03d", i);
    return key;
}

const char *dk_value(int i)
{
    static char value[256];
    int n = snprintf(value, sizeof value, "the value of key %03d begins here ", i);
    memset(value + n, 'a' + i % 26, sizeof value - 1 - (size_t)n);
    return value;
}

/* ---- files ---- */

static void *must(void *p)
{
    if (!p) {
        fprintf(stderr, "damage kit: out of memory\n");
        exit(2);
    }
    return p;
}

char *dk_read(const char *path, size_t *ret_size)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    char *p = must(malloc((size_t)st.st_size + 1));
    assert_int_equal(pread(fd, p, (size_t)st.st_size, 0), st.st_size);
    close(fd);
    *ret_size = (size_t)st.st_size;
    return p;
}

void dk_write(const char *path, const void *p, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, p, n, 0), n);
    close(fd);
}

void dk_truncate(const char *path, size_t size)
{
    assert_int_equal(truncate(path, (off_t)size), 0);
}

void dk_flip(const char *path, size_t byte, unsigned bit)
{
    char c;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &c, 1, (off_t)byte), 1);
    c = (char)(c ^ (1 << bit));
    assert_int_equal(pwrite(fd, &c, 1, (off_t)byte), 1);
    close(fd);
}

size_t dk_size(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return (size_t)st.st_size;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *describe(const char *dir, const char *name)
{
    char *line = must(malloc(400));
    struct stat st;
    size_t n = 0;
    if (lstat(dk_path(dir, name), &st) < 0 || !S_ISREG(st.st_mode)) {
        snprintf(line, 400, "%s\n", name);
        return line;
    }
    char *p = dk_read(dk_path(dir, name), &n);
    snprintf(line, 400, "%s %zu %o %08x\n", name, n, st.st_mode & 0777, vg_crc32c(0, p, n));
    free(p);
    return line;
}

char *dk_fingerprint(const char *dir)
{
    char *lines[64], *all = must(calloc(64, 400));
    size_t n = 0, used = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d)) && n < 64;)
        if (strcmp(e->d_name, "lock") != 0 && e->d_name[0] != '.')
            lines[n++] = describe(dir, e->d_name);
    if (d)
        closedir(d);
    qsort(lines, n, sizeof lines[0], by_name);
    for (size_t i = 0; i < n; i++) {
        used += (size_t)snprintf(all + used, 400, "%s", lines[i]);
        free(lines[i]);
    }
    return all;
}

/* ---- stores ---- */

void dk_make_closed(const char *dir)
{
    struct vg_drv d;
    struct vg_storage_opts opts = dk_opts(dir);
    vg_drv_open(&d, "lmdb", &opts);
    for (int i = 0; i < DK_KEYS; i++)
        vg_drv_put(&d, dk_key(i), dk_value(i));
    vg_drv_close(&d);
    unlink(dk_path(dir, "data.mdb-lock"));
}

void dk_copy_files(const char *from, const char *to)
{
    static const char *const names[] = {"data.mdb", "wal-0", "wal-1", "durable"};
    assert_int_equal(mkdir(to, 0700), 0);
    for (size_t i = 0; i < VG_ARRAY_LEN(names); i++) {
        size_t n;
        char *p = dk_read(dk_path(from, names[i]), &n);
        dk_write(dk_path(to, names[i]), p, n);
        free(p);
    }
}

void dk_make_killed(const char *dir)
{
    struct vg_drv d;
    char live[600];
    snprintf(live, sizeof live, "%s.live", dir);
    struct vg_storage_opts opts = dk_opts(live);
    vg_drv_open(&d, "lmdb", &opts);
    for (int i = 0; i < DK_KEYS; i++) {
        if (i == DK_KEYS / 2)
            vg_drv_reopen(&d); /* what was written so far goes to data.mdb */
        vg_drv_put(&d, dk_key(i), dk_value(i));
    }
    dk_copy_files(live, dir);
    vg_drv_close(&d);
    vg_test_remove_tree(live);
}

/* ---- expectations ---- */

void dk_expect_refused(const char *dir, int err, const char *text)
{
    struct vg_drv d;
    struct vg_status status = {0};
    struct vg_storage_opts opts = dk_opts(dir);
    char *before = dk_fingerprint(dir);
    int got = vg_drv_try_open(&d, "lmdb", &opts, &status);
    if (got >= 0 || (err && got != err))
        fail_msg("expected %s, got %s: %s", vg_err_name(err), vg_err_name(got), status.message);
    if (!strstr(status.message, text))
        fail_msg("'%s' is not in: %s", text, status.message);
    char *after = dk_fingerprint(dir);
    if (strcmp(before, after) != 0)
        fail_msg("files changed.\nbefore:\n%safter:\n%s", before, after);
    free(before);
    free(after);
}

static void expect_key(struct vg_drv *d, int i, bool is_there)
{
    struct vg_rec *rec = vg_drv_get(d, dk_key(i), 0);
    assert_int_equal(rec != NULL, is_there);
    if (rec)
        vg_assert_slice_equal(vg_rec_value(rec), vg_slice_str(dk_value(i)));
    vg_rec_unref(rec);
}

void dk_expect_good(const char *dir, int keys)
{
    struct vg_drv d;
    struct vg_status status = {0};
    struct vg_storage_opts opts = dk_opts(dir);
    if (vg_drv_try_open(&d, "lmdb", &opts, &status) < 0)
        fail_msg("%s", status.message);
    assert_int_equal(vg_storage_revision(d.store), VG_REV_EMPTY + (vg_rev)keys);
    for (int i = 0; i < DK_KEYS; i++)
        expect_key(&d, i, i < keys);
    vg_drv_close(&d);
}

const char *dk_dir(void **state)
{
    static char dir[600];
    snprintf(dir, sizeof dir, "%s/store", (const char *)*state);
    return dir;
}

int dk_run_self(const char *what, const char *dir, char *said, size_t size)
{
    char self[512], command[1400];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(n > 0);
    self[n] = '\0';
    snprintf(command, sizeof command, "'%s' %s '%s' 2>/dev/null", self, what, dir);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    said[fread(said, 1, size - 1, f)] = '\0';
    int status = pclose(f);
    return WIFEXITED(status) && WEXITSTATUS(status) < 128 ? WEXITSTATUS(status) : -1;
}
