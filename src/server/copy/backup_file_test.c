/* backup_file_test.c - what was written comes back; what was cut off or changed is refused. */
#include "test_support.h"

#include <sys/stat.h>

#include "backup_file.h"

#define RECORDS 20

static struct vg_rec *make_rec(size_t i)
{
    char key[64], value[256];
    struct vg_rec *rec;
    int k = snprintf(key, sizeof key, "/registry/things/%03zu", i);
    int v = snprintf(value, sizeof value, "{\"number\":%zu}", i * i);
    assert_int_equal(vg_rec_new(VG_REC_PUT, vg_slice(key, (size_t)k), VG_SLICE_LIT("header"),
                                vg_slice(value, (size_t)v), &rec),
                     0);
    rec->rev = i + 10;
    rec->create_rev = i + 2;
    rec->version = i;
    rec->expires_ms = i % 3 ? 0 : 1700000000000;
    return rec;
}

static void write_backup(const char *path)
{
    struct vg_backup_writer w;
    struct vg_backup_head head = {.rev = 77, .made_ms = 5, .keys = RECORDS};
    struct vg_status status = {0};
    assert_int_equal(vg_backup_writer_open(&w, path, &head, &status), 0);
    for (size_t i = 0; i < RECORDS; i++) {
        struct vg_rec *rec = make_rec(i);
        assert_int_equal(vg_backup_writer_add(&w, rec, &status), 0);
        vg_rec_unref(rec);
    }
    assert_int_equal(vg_backup_writer_end(&w, &status), 0);
    assert_int_equal(vg_backup_writer_publish(&w, &status), 0);
    vg_backup_writer_close(&w);
}

static char *read_file(const char *path, size_t *ret_n)
{
    FILE *f = fopen(path, "rbe");
    assert_non_null(f);
    char *bytes = vg_malloc(1 << 16);
    assert_non_null(bytes);
    *ret_n = fread(bytes, 1, 1 << 16, f);
    (void)fclose(f);
    return bytes;
}

/* How far do these bytes read? */
static int read_all(char *bytes, size_t n)
{
    struct vg_backup_reader r;
    struct vg_status status = {0};
    struct vg_rec *rec;
    FILE *f = fmemopen(bytes, n, "rb");
    assert_non_null(f);
    int got = vg_backup_reader_begin(&r, f, "a backup", &status);
    while (got == 0 && (got = vg_backup_reader_next(&r, &rec, &status)) > 0) {
        vg_rec_unref(rec);
        got = 0;
        if (r.is_over)
            break;
    }
    vg_backup_reader_close(&r);
    if (got < 0)
        assert_true(status.message[0]);
    return got;
}

static void what_was_written_comes_back(void **state)
{
    char path[512];
    struct vg_backup_reader r;
    struct vg_status status = {0};
    struct stat st;
    struct vg_rec *rec;
    (void)state;
    snprintf(path, sizeof path, "%s/backup", vg_test_tmpdir());
    write_backup(path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(vg_backup_reader_open(&r, path, &status), 0);
    assert_int_equal(r.head.rev, 77);
    assert_int_equal(r.head.keys, RECORDS);
    for (size_t i = 0; i < RECORDS; i++) {
        struct vg_rec *want = make_rec(i);
        assert_int_equal(vg_backup_reader_next(&r, &rec, &status), 1);
        assert_true(vg_slice_eq(vg_rec_key(rec), vg_rec_key(want)));
        assert_true(vg_slice_eq(vg_rec_header(rec), vg_rec_header(want)));
        assert_true(vg_slice_eq(vg_rec_value(rec), vg_rec_value(want)));
        assert_int_equal(rec->expires_ms, want->expires_ms);
        vg_rec_unref(rec);
        vg_rec_unref(want);
    }
    assert_int_equal(vg_backup_reader_next(&r, &rec, &status), 0);
    vg_backup_reader_close(&r);
}

static void a_name_that_exists_is_not_replaced(void **state)
{
    char path[512];
    struct vg_backup_writer w;
    struct vg_backup_head head = {.rev = 1};
    struct vg_status status = {0};
    (void)state;
    snprintf(path, sizeof path, "%s/there", vg_test_tmpdir());
    write_backup(path);
    assert_int_equal(vg_backup_writer_open(&w, path, &head, &status), VIGIL_E_EXISTS);
}

static void one_that_is_cut_off_is_refused(void **state)
{
    char path[512];
    size_t n;
    (void)state;
    snprintf(path, sizeof path, "%s/cut", vg_test_tmpdir());
    write_backup(path);
    char *bytes = read_file(path, &n);
    assert_int_equal(read_all(bytes, n), 0);
    for (size_t cut = 1; cut < n; cut++)
        assert_true(read_all(bytes, cut) < 0);
    vg_free(bytes);
}

static void a_changed_byte_is_noticed(void **state)
{
    char path[512];
    size_t n;
    (void)state;
    snprintf(path, sizeof path, "%s/changed", vg_test_tmpdir());
    write_backup(path);
    char *bytes = read_file(path, &n);
    for (size_t i = 0; i < n; i++) {
        bytes[i] = (char)(bytes[i] ^ 0x10);
        assert_true(read_all(bytes, n) < 0);
        bytes[i] = (char)(bytes[i] ^ 0x10);
    }
    vg_free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_comes_back),
        cmocka_unit_test(a_name_that_exists_is_not_replaced),
        cmocka_unit_test(one_that_is_cut_off_is_refused),
        cmocka_unit_test(a_changed_byte_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
