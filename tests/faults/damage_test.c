/* damage_test.c - a store that is damaged, foreign, or another's is refused: the message says what
 * was found, and nothing is touched. What can still be told apart from damage, a last group that
 * was torn and that nobody was told of, is dropped; damage that shows only when a record is read is
 * told then. --probe looks at a damaged store from a process of its own. */
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "damage_kit.h"
#include "server/storage/lmdb/lmdb_int.h"
#include "server/storage/lmdb/lmdb_pages.h"
#include "server/storage/lmdb/wal_int.h"
#include "test_support.h"

#define LMDB_PAGE 4096u
#define WAL_PAGE 4096u

/* ---- data.mdb as a whole ---- */

static void an_empty_data_file_is_refused(void **state)
{
    const char *dir = dk_dir(state);
    dk_make_closed(dir);
    dk_truncate(dk_path(dir, "data.mdb"), 0);
    dk_expect_refused(dir, VIGIL_E_STORE_DAMAGED, "data.mdb is empty");
}

static void a_data_file_cut_off_anywhere_is_refused(void **state)
{
    const char *dir = dk_dir(state);
    dk_make_closed(dir);
    size_t size = dk_size(dk_path(dir, "data.mdb"));
    for (size_t n = size - 1; n > 0; n = n > LMDB_PAGE ? n - LMDB_PAGE / 2 : n / 2) {
        dk_truncate(dk_path(dir, "data.mdb"), n);
        dk_expect_refused(dir,
                          n < 64           ? 0
                          : n <= LMDB_PAGE ? 0
                                           : VIGIL_E_STORE_DAMAGED,
                          "nothing was changed");
    }
}

static void garbage_is_refused(void **state)
{
    struct vg_rng rng;
    char bytes[65536];
    const char *dir = dk_dir(state);
    dk_make_closed(dir);
    vg_rng_seed(&rng, vg_test_seed());
    vg_rng_bytes(&rng, bytes, sizeof bytes);
    dk_write(dk_path(dir, "data.mdb"), bytes, sizeof bytes);
    dk_expect_refused(dir, VIGIL_E_STORE_FOREIGN, "not a vigil store");
}

static void a_database_of_sqlite_is_refused(void **state)
{
    char bytes[8192] = "SQLite format 3";
    const char *dir = dk_dir(state);
    dk_make_closed(dir);
    dk_write(dk_path(dir, "data.mdb"), bytes, sizeof bytes);
    dk_expect_refused(dir, VIGIL_E_STORE_FOREIGN, "not a vigil store");
}

static MDB_txn *begin_lmdb(const char *path, MDB_env **ret_env)
{
    MDB_txn *txn;
    assert_int_equal(mdb_env_create(ret_env), 0);
    assert_int_equal(mdb_env_set_maxdbs(*ret_env, 4), 0);
    assert_int_equal(mdb_env_open(*ret_env, path, MDB_NOSUBDIR | MDB_NOLOCK, 0600), 0);
    assert_int_equal(mdb_txn_begin(*ret_env, NULL, 0, &txn), 0);
    return txn;
}

static void an_lmdb_file_of_somebody_else_is_refused(void **state)
{
    MDB_env *env;
    MDB_dbi dbi;
    MDB_val key = {3, (void *)"who"}, val = {4, (void *)"else"};
    const char *dir = dk_dir(state);
    dk_make_closed(dir);
    unlink(dk_path(dir, "data.mdb"));
    MDB_txn *txn = begin_lmdb(dk_path(dir, "data.mdb"), &env);
    assert_int_equal(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
    assert_int_equal(mdb_put(txn, dbi, &key, &val, 0), 0);
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
    dk_expect_refused(dir, VIGIL_E_STORE_FOREIGN, "not a vigil store");
}

/* Change the store's own meta record. */
static void edit_meta(const char *dir, void (*edit)(struct store_meta *meta))
{
    MDB_env *env;
    MDB_dbi dbi;
    struct store_meta meta;
    MDB_val key = {5, (void *)"vigil"}, val;
    MDB_txn *txn = begin_lmdb(dk_path(dir, "data.mdb"), &env);
    assert_int_equal(mdb_dbi_open(txn, "meta", 0, &dbi), 0);
    assert_int_equal(mdb_get(txn, dbi, &key, &val), 0);
    assert_int_equal(val.mv_size, sizeof meta);
    memcpy(&meta, val.mv_data, sizeof meta);
    edit(&meta);
    val = (MDB_val){sizeof meta, &meta};
    assert_int_equal(mdb_put(txn, dbi, &key, &val, 0), 0);
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
}

static void make_newer(struct store_meta *meta)
{
    meta->format = STORE_FORMAT + 1;
}

static void make_foreign(struct store_meta *meta)
{
    memcpy(meta->magic, "whatever", sizeof meta->magic);
}

static void another_format_is_refused_by_its_number(void **state)
{
    const char *dir = dk_dir(state);
    dk_make_closed(dir);
    edit_meta(dir, make_newer);
    dk_expect_refused(dir, VIGIL_E_STORE_VERSION, "has format 2");
    edit_meta(dir, make_foreign);
    dk_expect_refused(dir, VIGIL_E_STORE_FOREIGN, "not a vigil store");
}

/* ---- pages of data.mdb ---- */

/* Magic, version, flags and page size of both meta pages. */
static void a_damaged_meta_page_is_refused(void **state)
{
    static const size_t offsets[] = {16, 17, 19, 20, 10, 24 + 16};
    const char *dir = dk_dir(state);
    dk_make_closed(dir);
    for (size_t page = 0; page < 2; page++) {
        for (size_t i = 0; i < VG_ARRAY_LEN(offsets); i++) {
            unsigned bit = i == 4 ? 3 : 1; /* of the flags, the one that says meta */
            size_t at = page * LMDB_PAGE + offsets[i];
            dk_flip(dk_path(dir, "data.mdb"), at, bit);
            dk_expect_refused(dir, 0, "nothing was changed");
            dk_flip(dk_path(dir, "data.mdb"), at, bit);
        }
    }
    dk_expect_good(dir, DK_KEYS);
}

/* So many pages that their bytes are 2^64. */
static void a_meta_page_that_counts_too_many_pages_is_refused(void **state)
{
    enum { PAGE = 65536 };
    static char bytes[2 * PAGE];
    const char *dir = dk_dir(state);
    size_t size;
    dk_make_closed(dir);
    char *old = dk_read(dk_path(dir, "data.mdb"), &size);
    for (size_t i = 0; i < 2; i++) {
        struct vg_lmdb_meta meta;
        memcpy(&meta, old + i * LMDB_PAGE, sizeof meta);
        meta.dbs[0].pad = PAGE;
        meta.last_pgno = (UINT64_C(1) << 48) - 1;
        memcpy(bytes + i * PAGE, &meta, sizeof meta);
    }
    free(old);
    dk_write(dk_path(dir, "data.mdb"), bytes, sizeof bytes);
    dk_expect_refused(dir, VIGIL_E_STORE_DAMAGED, "is cut off");
}

/* Flip a bit in every copy of a text; LMDB may keep older pages that hold it too. */
static int flip_text(const char *path, const char *text)
{
    size_t size;
    int n = 0;
    char *bytes = dk_read(path, &size), *end = bytes + size;
    for (char *at = bytes; (at = memmem(at, (size_t)(end - at), text, strlen(text))); at++, n++)
        dk_flip(path, (size_t)(at - bytes) + 4, 2);
    free(bytes);
    return n;
}

static void a_flipped_bit_in_a_value_is_told_with_its_key(void **state)
{
    struct vg_drv d;
    const char *dir = dk_dir(state);
    struct vg_storage_opts opts = dk_opts(dir);
    dk_make_closed(dir);
    assert_true(flip_text(dk_path(dir, "data.mdb"), "the value of key 017") > 0);
    vg_drv_open(&d, "lmdb", &opts);
    struct vg_range range = {.keys = vg_drv_one("key/017")};
    assert_int_equal(vg_drv_range(&d, &range), VIGIL_E_STORE_DAMAGED);
    if (!strstr(range.req.status.message, "key/017"))
        fail_msg("the key is not named: %s", range.req.status.message);
    vg_range_done(&range);
    struct vg_rec *other = vg_drv_get(&d, "key/018", 0);
    assert_non_null(other);
    vg_rec_unref(other);
    range = (struct vg_range){.keys = vg_drv_all()};
    assert_int_equal(vg_drv_range(&d, &range), VIGIL_E_STORE_DAMAGED);
    vg_range_done(&range);
    struct vg_drv_watch *w = vg_drv_watch_all(&d, 2);
    assert_int_equal(vg_drv_watch_end(w), VIGIL_E_STORE_DAMAGED);
    vg_drv_close(&d);
}

/* The same for who wants what is left: one record and one change say that they cannot be read. */
static void what_does_not_read_back_comes_without_its_value(void **state)
{
    struct vg_drv d;
    const char *dir = dk_dir(state);
    struct vg_storage_opts opts = dk_opts(dir);
    dk_make_closed(dir);
    assert_true(flip_text(dk_path(dir, "data.mdb"), "the value of key 017") > 0);
    vg_drv_open(&d, "lmdb", &opts);
    struct vg_range range = {.keys = vg_drv_all(), .flags = VG_RANGE_UNREADABLE};
    assert_int_equal(vg_drv_range(&d, &range), 0);
    assert_int_equal(range.n_recs, DK_KEYS);
    for (size_t i = 0; i < range.n_recs; i++) {
        const struct vg_rec *rec = range.recs[i];
        assert_int_equal(rec->is_unreadable, i == 17);
        assert_int_equal(rec->value_len > 0, i != 17);
        assert_true(vg_slice_eq(vg_rec_key(rec), vg_slice_str(dk_key((int)i))));
        assert_int_equal(rec->rev, i + 2);
    }
    vg_range_done(&range);
    struct vg_storage_stats stats;
    vg_storage_stats(d.store, &stats);
    assert_int_equal(stats.damaged_records, 1);
    vg_drv_close(&d);
}

/* ---- the log ---- */

static void a_missing_data_file_is_refused(void **state)
{
    const char *dir = dk_dir(state);
    dk_make_closed(dir);
    unlink(dk_path(dir, "data.mdb"));
    dk_expect_refused(dir, VIGIL_E_STORE_DAMAGED, "no data.mdb");
}

static void a_missing_log_is_refused(void **state)
{
    static const char *const names[] = {"wal-0", "wal-1"};
    const char *dir = dk_dir(state);
    dk_make_killed(dir);
    for (size_t i = 0; i < 2; i++) {
        char away[600];
        snprintf(away, sizeof away, "%s.away", dir);
        assert_int_equal(rename(dk_path(dir, names[i]), away), 0);
        dk_expect_refused(dir, VIGIL_E_STORE_DAMAGED, names[i]);
        assert_int_equal(rename(away, dk_path(dir, names[i])), 0);
    }
    dk_expect_good(dir, DK_KEYS);
}

/* The file whose groups are not in data.mdb yet: it holds the newest key. */
static const char *live_log(const char *dir)
{
    static const char *const names[] = {"wal-0", "wal-1"};
    for (size_t i = 0; i < 2; i++) {
        size_t size;
        char *bytes = dk_read(dk_path(dir, names[i]), &size);
        bool found = memmem(bytes, size, "the value of key 039", 20) != NULL;
        free(bytes);
        if (found)
            return names[i];
    }
    fail_msg("no log holds the newest key");
    return NULL;
}

static void a_log_with_a_damaged_header_is_refused(void **state)
{
    const char *dir = dk_dir(state);
    dk_make_killed(dir);
    const char *log = live_log(dir);
    for (size_t byte = 0; byte < 52; byte += 4) {
        dk_flip(dk_path(dir, log), byte, (unsigned)byte % 8);
        dk_expect_refused(dir, VIGIL_E_STORE_DAMAGED, log);
        dk_flip(dk_path(dir, log), byte, (unsigned)byte % 8);
    }
    dk_expect_good(dir, DK_KEYS);
}

/* The groups of the second half of the keys, one on each page after the header. */
static void a_damaged_group_before_good_ones_is_refused(void **state)
{
    static const size_t in_page[] = {0, 4, 9, 17, 25, 33, 37, 44, 100, 300};
    const char *dir = dk_dir(state);
    dk_make_killed(dir);
    const char *log = live_log(dir);
    for (size_t i = 0; i < VG_ARRAY_LEN(in_page); i++) {
        size_t at = (2 + i % 17) * WAL_PAGE + in_page[i];
        dk_flip(dk_path(dir, log), at, (unsigned)i % 8);
        dk_expect_refused(dir, VIGIL_E_STORE_DAMAGED, "is damaged at byte");
        dk_flip(dk_path(dir, log), at, (unsigned)i % 8);
    }
    dk_expect_good(dir, DK_KEYS);
}

/* Where the last group of a killed store begins, and the first byte behind it. */
#define LAST_GROUP ((size_t)(DK_KEYS / 2) * WAL_PAGE)
#define LOG_END (LAST_GROUP + WAL_PAGE)

/* The beginning of a group behind the last one, as a power cut leaves it. */
static void a_torn_group_that_nobody_was_told_of_is_dropped(void **state)
{
    const char *dir = dk_dir(state);
    dk_make_killed(dir);
    const char *log = dk_path(dir, live_log(dir));
    size_t size;
    char *bytes = dk_read(log, &size);
    memcpy(bytes + LOG_END, bytes + LAST_GROUP, 200);
    dk_write(log, bytes, size);
    free(bytes);
    dk_expect_good(dir, DK_KEYS);
}

static void a_damaged_last_group_that_was_acknowledged_is_refused(void **state)
{
    const char *dir = dk_dir(state);
    dk_make_killed(dir);
    const char *log = live_log(dir);
    for (size_t byte = 0; byte < 350; byte += 7) {
        dk_flip(dk_path(dir, log), LAST_GROUP + byte, (unsigned)byte % 8);
        dk_expect_refused(dir, VIGIL_E_STORE_DAMAGED, "revision 41 was acknowledged");
        dk_flip(dk_path(dir, log), LAST_GROUP + byte, (unsigned)byte % 8);
    }
    dk_expect_good(dir, DK_KEYS);
}

/* Within a group, between two, at the header, at nothing at all. */
static void a_log_cut_off_before_its_end_is_refused(void **state)
{
    static const size_t less[] = {WAL_PAGE - 100, WAL_PAGE,     WAL_PAGE + 1, 2 * WAL_PAGE,
                                  5000,           9 * WAL_PAGE, LAST_GROUP,   LOG_END};
    const char *dir = dk_dir(state);
    dk_make_killed(dir);
    const char *log = live_log(dir);
    size_t size;
    char *bytes = dk_read(dk_path(dir, log), &size);
    for (size_t i = 0; i < VG_ARRAY_LEN(less); i++) {
        dk_truncate(dk_path(dir, log), LOG_END - less[i]);
        dk_expect_refused(dir, VIGIL_E_STORE_DAMAGED, "vigil-store repair");
        dk_write(dk_path(dir, log), bytes, size);
    }
    free(bytes);
    dk_expect_good(dir, DK_KEYS);
}

static void a_log_cut_off_behind_its_last_group_is_good(void **state)
{
    const char *dir = dk_dir(state);
    dk_make_killed(dir);
    dk_truncate(dk_path(dir, live_log(dir)), LOG_END + 1000);
    dk_expect_good(dir, DK_KEYS);
}

static void a_log_whose_end_was_zeroed_is_refused(void **state)
{
    const char *dir = dk_dir(state);
    dk_make_killed(dir);
    const char *log = dk_path(dir, live_log(dir));
    size_t size;
    char *bytes = dk_read(log, &size);
    memset(bytes + LOG_END - 3 * WAL_PAGE, 0, 3 * WAL_PAGE);
    dk_write(log, bytes, size);
    free(bytes);
    dk_expect_refused(dir, VIGIL_E_STORE_DAMAGED, "ends at revision 38");
}

/* ---- the mark ---- */

static void a_store_without_its_mark_is_refused(void **state)
{
    const char *dir = dk_dir(state);
    dk_make_killed(dir);
    unlink(dk_path(dir, "durable"));
    dk_expect_refused(dir, VIGIL_E_STORE_DAMAGED, "durable is missing");
}

static void one_damaged_slot_of_the_mark_does_no_harm(void **state)
{
    const char *dir = dk_dir(state);
    dk_make_killed(dir);
    dk_flip(dk_path(dir, "durable"), 20, 3);
    dk_expect_good(dir, DK_KEYS); /* and writes both again */
    dk_flip(dk_path(dir, "durable"), 4096 + 20, 3);
    dk_expect_good(dir, DK_KEYS);
    dk_flip(dk_path(dir, "durable"), 20, 3);
    dk_flip(dk_path(dir, "durable"), 4096 + 20, 3);
    dk_expect_refused(dir, VIGIL_E_STORE_DAMAGED, "durable is damaged");
}

/* As an older vigil leaves it: the header has no flag for the mark. */
static void a_store_of_an_older_vigil_gets_a_mark(void **state)
{
    const char *dir = dk_dir(state);
    struct wal_head h;
    dk_make_killed(dir);
    const char *log = dk_path(dir, live_log(dir));
    size_t size;
    char *bytes = dk_read(log, &size);
    memcpy(&h, bytes, sizeof h);
    h.flags = 0;
    h.crc = vg_wal_head_crc(&h);
    memcpy(bytes, &h, sizeof h);
    dk_write(log, bytes, size);
    free(bytes);
    unlink(dk_path(dir, "durable"));
    dk_expect_good(dir, DK_KEYS);
    assert_int_equal(dk_size(dk_path(dir, "durable")), 8192);
}

static void a_log_of_another_store_is_refused(void **state)
{
    char other[600];
    size_t size;
    const char *dir = dk_dir(state);
    snprintf(other, sizeof other, "%s.other", dir);
    dk_make_killed(dir);
    dk_make_killed(other);
    const char *log = live_log(dir);
    char *bytes = dk_read(dk_path(other, log), &size);
    dk_write(dk_path(dir, log), bytes, size);
    free(bytes);
    dk_expect_refused(dir, VIGIL_E_STORE_DAMAGED, log);
}

/* ---- a flipped bit anywhere in data.mdb ---- */

#define PROBE_EXIT 40 /* not what a sanitizer ends with */
enum { PROBE_GOOD = 0, PROBE_TOLD = 1, PROBE_MISSING = 2, PROBE_WRONG = 3, PROBES = 4 };

static int probe_keys(const struct vg_range *range)
{
    for (size_t i = 0; i < range->n_recs; i++) {
        int key = -1;
        struct vg_slice k = vg_rec_key(range->recs[i]);
        char text[16] = {0};
        memcpy(text, k.p, VG_MIN(k.n, sizeof text - 1));
        if (sscanf(text, "key/%3d", &key) != 1 || key < 0 || key >= DK_KEYS ||
            !vg_slice_eq(vg_rec_value(range->recs[i]), vg_slice_str(dk_value(key))))
            return PROBE_WRONG;
    }
    return range->n_recs == DK_KEYS ? PROBE_GOOD : PROBE_MISSING;
}

/* In a process of its own: LMDB trusts its pages, and would end it if they were not checked. */
static int probe(const char *dir)
{
    struct vg_drv d;
    struct vg_storage_opts opts = dk_opts(dir);
    struct vg_range range = {.keys = vg_drv_all()};
    alarm(20);
    if (vg_drv_try_open(&d, "lmdb", &opts, NULL) < 0)
        _exit(PROBE_EXIT + PROBE_TOLD);
    int result = vg_drv_range(&d, &range) < 0 ? PROBE_TOLD : probe_keys(&range);
    struct vg_drv_watch *w = vg_drv_watch_all(&d, 2);
    vg_drv_watch_sync(w);
    if (w->is_ended)
        result = VG_MAX(result, PROBE_TOLD);
    else if (w->n_events != DK_KEYS)
        result = VG_MAX(result, PROBE_MISSING);
    _exit(PROBE_EXIT + result);
}

/* A flip has no effect, or is told: no process ends by it, no key is hidden, no value is another.
 */
static void a_flipped_bit_anywhere_is_told_or_has_no_effect(void **state)
{
    struct vg_rng rng;
    char said[64];
    int counts[PROBES] = {0}, crashes = 0, n = vg_test_is_long() ? 600 : 40;
    const char *dir = dk_dir(state), *data = "data.mdb";
    dk_make_closed(dir);
    size_t size = 0;
    vg_rng_seed(&rng, vg_test_seed());
    char *bytes = dk_read(dk_path(dir, data), &size);
    for (int i = 0; i < n; i++) {
        size_t at = (size_t)vg_rng_below(&rng, size);
        dk_write(dk_path(dir, data), bytes, size);
        dk_flip(dk_path(dir, data), at, (unsigned)vg_rng_below(&rng, 8));
        int result = dk_run_self("--probe", dir, said, sizeof said) - PROBE_EXIT;
        if (result < 0) {
            print_message("a flip at byte %zu (page %zu + %zu) ends the process\n", at,
                          at / LMDB_PAGE, at % LMDB_PAGE);
            crashes++;
        } else {
            counts[result]++;
            if (result > PROBE_TOLD)
                print_message("a flip at byte %zu (page %zu + %zu) hides or changes data\n", at,
                              at / LMDB_PAGE, at % LMDB_PAGE);
        }
    }
    free(bytes);
    print_message("%d flips: %d without effect, %d told, %d hid a key, %d ended the process\n", n,
                  counts[PROBE_GOOD], counts[PROBE_TOLD], counts[PROBE_MISSING], crashes);
    assert_int_equal(counts[PROBE_MISSING] + counts[PROBE_WRONG] + crashes, 0);
}

#define CASE(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, vg_test_tmpdir_setup, vg_test_tmpdir_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(an_empty_data_file_is_refused),
        CASE(a_data_file_cut_off_anywhere_is_refused),
        CASE(garbage_is_refused),
        CASE(a_database_of_sqlite_is_refused),
        CASE(an_lmdb_file_of_somebody_else_is_refused),
        CASE(another_format_is_refused_by_its_number),
        CASE(a_damaged_meta_page_is_refused),
        CASE(a_meta_page_that_counts_too_many_pages_is_refused),
        CASE(a_flipped_bit_in_a_value_is_told_with_its_key),
        CASE(what_does_not_read_back_comes_without_its_value),
        CASE(a_missing_data_file_is_refused),
        CASE(a_missing_log_is_refused),
        CASE(a_log_with_a_damaged_header_is_refused),
        CASE(a_damaged_group_before_good_ones_is_refused),
        CASE(a_torn_group_that_nobody_was_told_of_is_dropped),
        CASE(a_damaged_last_group_that_was_acknowledged_is_refused),
        CASE(a_log_cut_off_before_its_end_is_refused),
        CASE(a_log_cut_off_behind_its_last_group_is_good),
        CASE(a_log_whose_end_was_zeroed_is_refused),
        CASE(a_store_without_its_mark_is_refused),
        CASE(one_damaged_slot_of_the_mark_does_no_harm),
        CASE(a_store_of_an_older_vigil_gets_a_mark),
        CASE(a_log_of_another_store_is_refused),
        CASE(a_flipped_bit_anywhere_is_told_or_has_no_effect),
    };
    if (argc == 3 && strcmp(argv[1], "--probe") == 0)
        return probe(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
