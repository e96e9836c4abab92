/* store_table_test.c - a table under random batches: whatever is staged, taken back, published and
 * compacted, its invariants hold, and readers see the newest published change of each key. The
 * model is an array of revisions. */
#include "test_support.h"

#include <stdio.h>

#include "base/rng.h"
#include "table.h"

#define KEYS 40u
#define CHANGES 3000u

struct model {
    struct vg_table *t;
    struct vg_rng rng;
    vg_rev rev;          /* newest that was published */
    vg_rev newest[KEYS]; /* of each key; 0: none */
    bool is_deleted[KEYS];
};

static int key_of(char text[16], unsigned k)
{
    return snprintf(text, 16, "/k/%u", k);
}

static struct vg_rec *change(unsigned k, bool is_delete, vg_rev rev, uint32_t sub)
{
    char text[16];
    struct vg_rec *rec = NULL;
    int n = key_of(text, k);
    struct vg_slice value = is_delete ? VG_SLICE_LIT("") : VG_SLICE_LIT("value");
    assert_int_equal(vg_rec_new(is_delete ? VG_REC_DELETE : VG_REC_PUT, vg_slice(text, (size_t)n),
                                vg_slice(NULL, 0), value, &rec),
                     0);
    rec->rev = rev;
    rec->sub = sub;
    return rec;
}

static void expect_read(struct model *m, unsigned k)
{
    char text[16];
    int n = key_of(text, k);
    struct vg_rec *rec = vg_table_get(m->t, vg_slice(text, (size_t)n), m->rev);
    if (rec)
        assert_int_equal(rec->rev, m->newest[k]);
    else
        assert_true(m->newest[k] == 0 || m->is_deleted[k]); /* a compacted delete is nothing */
    vg_rec_unref(rec);
}

/* A batch of distinct keys; some of it is taken back, the rest becomes visible. */
static void one_batch(struct model *m)
{
    bool is_staged[KEYS] = {0}, is_delete[KEYS] = {0};
    unsigned keys[8] = {0};
    size_t n = 0, want = 1 + vg_rng_below(&m->rng, VG_ARRAY_LEN(keys));
    while (n < want) {
        unsigned k = (unsigned)vg_rng_below(&m->rng, KEYS);
        if (is_staged[k])
            continue;
        is_staged[k] = true;
        is_delete[k] = vg_rng_below(&m->rng, 3) == 0;
        struct vg_rec *rec = change(k, is_delete[k], m->rev + 1 + n, 0);
        (void)vg_table_newest(m->t, vg_rec_key(rec)); /* as the writer does: the finger stays */
        assert_int_equal(vg_table_stage(m->t, rec), 0);
        keys[n++] = k;
    }
    size_t keep = vg_rng_below(&m->rng, 4) ? n : vg_rng_below(&m->rng, n);
    vg_table_unstage(m->t, keep);
    vg_table_publish(m->t, keep);
    for (size_t i = 0; i < keep; i++) {
        m->newest[keys[i]] = ++m->rev;
        m->is_deleted[keys[i]] = is_delete[keys[i]];
    }
}

static void invariants_hold_whatever_happens(void **state)
{
    (void)state;
    struct model m = {0};
    vg_rng_seed(&m.rng, vg_test_seed());
    assert_int_equal(vg_table_new(&m.t), 0);
    for (unsigned i = 0; i < CHANGES; i++) {
        one_batch(&m);
        vg_rev to = vg_rng_below(&m.rng, 8) == 0 ? vg_rng_below(&m.rng, m.rev + 1) : 0;
        while (vg_table_compact(m.t, to, 5))
            vg_table_check(m.t);
        vg_table_check(m.t);
        expect_read(&m, (unsigned)vg_rng_below(&m.rng, KEYS));
    }
    for (unsigned k = 0; k < KEYS; k++)
        expect_read(&m, k);
    vg_table_unref(m.t);
}

static void a_change_that_finds_no_memory_leaves_nothing(void **state)
{
    (void)state;
    VG_ALLOC_FAIL_LOOP (n) {
        struct vg_table *t = NULL;
        struct vg_rec *rec = NULL;
        if (vg_table_new(&t) == 0 && vg_rec_new(VG_REC_PUT, VG_SLICE_LIT("/k"), vg_slice(NULL, 0),
                                                VG_SLICE_LIT("value"), &rec) == 0) {
            rec->rev = 1;
            bool is_staged = vg_table_stage(t, rec) == 0;
            vg_table_check(t);
            vg_table_publish(t, is_staged);
            assert_int_equal(vg_table_log_count(t), is_staged);
        }
        vg_test_alloc_failed();
        vg_table_unref(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(invariants_hold_whatever_happens),
        cmocka_unit_test(a_change_that_finds_no_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
