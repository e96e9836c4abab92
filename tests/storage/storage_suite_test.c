/* storage_suite_test.c - the promises of storage.h, checked on any engine.
 *     storage_suite_test <engine> [pattern of test names]
 * Topics are in suite_*.c; here are main() and what they share. */
#include "storage_suite.h"

#include <inttypes.h>
#include <stdio.h>

static const char *engine;

int vg_suite_setup(void **state)
{
    struct vg_drv *d = vg_new(struct vg_drv);
    if (!d)
        return -1;
    vg_drv_open(d, engine, NULL);
    *state = d;
    return 0;
}

int vg_suite_teardown(void **state)
{
    vg_drv_close(*state);
    vg_free(*state);
    return 0;
}

void vg_suite_fresh(struct vg_drv *d, const struct vg_storage_opts *opts)
{
    vg_drv_close(d);
    vg_drv_open(d, engine, opts);
}

void vg_suite_need(const struct vg_drv *d, enum vg_drv_feature feature)
{
    if (!vg_drv_engine_has(d->engine, feature))
        skip();
}

/* ---- answers as text ---- */

static void must_append(struct vg_buf *b, const char *fmt, ...) VG_PRINTF(2, 3);
static void must_append(struct vg_buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int err = vg_buf_vprintf(b, fmt, ap);
    va_end(ap);
    assert_int_equal(err, 0);
}

static void write_event(struct vg_buf *b, const struct vg_event *e)
{
    must_append(b, "%s%" PRIu64, b->n ? " " : "", e->rec->rev);
    if (e->rec->sub)
        must_append(b, ".%" PRIu32, e->rec->sub);
    must_append(b, ":%.*s", VG_SLICE_ARG(vg_rec_key(e->rec)));
    if (vg_rec_is_delete(e->rec))
        must_append(b, "-");
    else
        must_append(b, "=%.*s", VG_SLICE_ARG(vg_rec_value(e->rec)));
    if (e->prev)
        must_append(b, "(%.*s)", VG_SLICE_ARG(vg_rec_value(e->prev)));
}

static void compare(const struct vg_buf *got, const char *want, const char *file, int line)
{
    if (vg_slice_eq(vg_buf_slice(got), vg_slice_str(want)))
        return;
    print_error("got  %.*s\nwant %s\n", VG_SLICE_ARG(vg_buf_slice(got)), want);
    _fail(file, line);
}

void vg_suite_assert_events(const struct vg_drv_watch *w, const char *text, const char *file,
                            int line)
{
    VG_AUTO(buf) b = {0};
    for (size_t i = 0; i < w->n_events; i++)
        write_event(&b, &w->events[i]);
    compare(&b, text, file, line);
}

void vg_suite_assert_recs(const struct vg_range *range, const char *text, const char *file,
                          int line)
{
    VG_AUTO(buf) b = {0};
    for (size_t i = 0; i < range->n_recs; i++) {
        const struct vg_rec *r = range->recs[i];
        must_append(&b, "%s%.*s=%.*s@%" PRIu64, i ? " " : "", VG_SLICE_ARG(vg_rec_key(r)),
                    VG_SLICE_ARG(vg_rec_value(r)), r->rev);
    }
    compare(&b, text, file, line);
}

void vg_suite_assert_range(struct vg_drv *d, struct vg_keys keys, vg_rev at, const char *text,
                           const char *file, int line)
{
    struct vg_range range = {.keys = keys, .at = at};
    vg_suite_assert_err(vg_drv_range(d, &range), 0, file, line);
    vg_suite_assert_recs(&range, text, file, line);
    vg_range_done(&range);
}

void vg_suite_assert_err(int got, int want, const char *file, int line)
{
    if (got == want)
        return;
    print_error("got  %s\nwant %s\n", vg_err_name(got), vg_err_name(want));
    _fail(file, line);
}

const char *vg_suite_key(unsigned i)
{
    static char keys[8][16];
    static unsigned next;
    char *key = keys[next++ % 8];
    snprintf(key, sizeof keys[0], "key%04u", i);
    return key;
}

/* Submitted together, so that an engine that syncs does so a few times only; one by one where the
 * order would not be kept. */
void vg_suite_put_many(struct vg_drv *d, unsigned n)
{
    struct vg_op *ops = vg_calloc(n, sizeof *ops);
    struct vg_txn *txns = vg_calloc(n, sizeof *txns);
    assert_non_null(ops);
    assert_non_null(txns);
    for (unsigned i = 0; i < n; i++) {
        ops[i] = vg_drv_put_op(vg_suite_key(i), "v", VG_EXPECT_ANY);
        txns[i] = (struct vg_txn){.ops = &ops[i], .n_ops = 1};
        assert_err(vg_drv_submit_txn(d, &txns[i]), 0);
        if (!vg_drv_engine_has(d->engine, VG_DRV_ORDERED))
            assert_err(vg_drv_wait(d, &txns[i].req), 0);
    }
    for (unsigned i = 0; i < n; i++) {
        assert_err(vg_drv_wait(d, &txns[i].req), 0);
        vg_txn_done(&txns[i]);
    }
    vg_free(ops);
    vg_free(txns);
}

int main(int argc, char **argv)
{
    static const struct vg_suite_topic *const topics[] = {
        &vg_suite_txn,   &vg_suite_limits, &vg_suite_range, &vg_suite_compact,
        &vg_suite_watch, &vg_suite_flow,   &vg_suite_ttl,   &vg_suite_life,
    };
    engine = vg_drv_args(argc, argv);
    int failed = 0;
    for (size_t i = 0; i < VG_ARRAY_LEN(topics); i++)
        failed +=
            _cmocka_run_group_tests(topics[i]->name, topics[i]->tests, topics[i]->n, NULL, NULL);
    return failed;
}
