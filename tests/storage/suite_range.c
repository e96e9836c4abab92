/* suite_range.c - reads: which keys, how many, and at which revision. */
#include "storage_suite.h"

static void put_abcde(struct vg_drv *d)
{
    static const char *const keys[] = {"c", "a", "e", "b", "d"};
    for (size_t i = 0; i < VG_ARRAY_LEN(keys); i++)
        vg_drv_put(d, keys[i], "v");
}

static struct vg_keys from(const char *start)
{
    return (struct vg_keys){.kind = VG_KEYS_FROM, .start = vg_slice_str(start)};
}

static void a_range_holds_one_key_a_span_or_all_from_a_start(void **state)
{
    struct vg_drv *d = *state;
    put_abcde(d);
    assert_range(d, vg_drv_one("b"), 0, "b=v@5");
    assert_range(d, vg_drv_one("bb"), 0, "");
    assert_range(d, vg_drv_span("b", "d"), 0, "b=v@5 c=v@2");
    assert_range(d, vg_drv_span("aa", "cc"), 0, "b=v@5 c=v@2");
    assert_range(d, vg_drv_span("", "b"), 0, "a=v@3");
    assert_range(d, from("d"), 0, "d=v@6 e=v@4");
    assert_range(d, from("f"), 0, "");
    assert_state(d, 0, "a=v@3 b=v@5 c=v@2 d=v@6 e=v@4");
}

static void a_span_that_ends_where_it_starts_is_empty(void **state)
{
    struct vg_drv *d = *state;
    put_abcde(d);
    assert_range(d, vg_drv_span("b", "b"), 0, "");
    assert_range(d, vg_drv_span("d", "b"), 0, "");
}

/* No key is so long; a range may still begin or end there. */
static void a_range_may_be_bounded_by_what_no_key_can_be(void **state)
{
    struct vg_drv *d = *state;
    char bound[700];
    put_abcde(d);
    memset(bound, 'b', sizeof bound);
    struct vg_slice end = vg_slice(bound, sizeof bound);
    assert_range(d, ((struct vg_keys){VG_KEYS_ONE, end, {0}}), 0, "");
    assert_range(d, ((struct vg_keys){VG_KEYS_FROM, end, {0}}), 0, "c=v@2 d=v@6 e=v@4");
    assert_range(d, ((struct vg_keys){VG_KEYS_SPAN, vg_slice_str("b"), end}), 0, "b=v@5");
    assert_range(d, ((struct vg_keys){VG_KEYS_SPAN, end, vg_slice_str("d")}), 0, "c=v@2");
    if (vg_drv_engine_has(d->engine, VG_DRV_DURABLE)) {
        vg_drv_reopen(d);
        assert_range(d, ((struct vg_keys){VG_KEYS_ONE, end, {0}}), 0, "");
        assert_range(d, ((struct vg_keys){VG_KEYS_SPAN, end, vg_slice_str("e")}), 0, "c=v@2 d=v@6");
    }
}

static void keys_contain_what_a_range_returns(void **state)
{
    (void)state;
    struct vg_keys one = vg_drv_one("b"), span = vg_drv_span("b", "d"), rest = from("b");
    assert_true(vg_keys_contain(&one, vg_slice_str("b")));
    assert_false(vg_keys_contain(&one, vg_slice_str("ba")));
    assert_true(vg_keys_contain(&span, vg_slice_str("b")));
    assert_true(vg_keys_contain(&span, vg_slice_str("cz")));
    assert_false(vg_keys_contain(&span, vg_slice_str("d")));
    assert_false(vg_keys_contain(&span, vg_slice_str("a")));
    assert_true(vg_keys_contain(&rest, vg_slice_str("zzz")));
    assert_false(vg_keys_contain(&rest, vg_slice_str("az")));
}

static void a_limit_cuts_the_range_and_says_so(void **state)
{
    struct vg_drv *d = *state;
    put_abcde(d);
    for (size_t limit = 1; limit <= 7; limit++) {
        struct vg_range range = {.keys = vg_drv_all(), .limit = limit, .flags = VG_RANGE_COUNT};
        assert_err(vg_drv_range(d, &range), 0);
        assert_int_equal(range.n_recs, VG_MIN(limit, (size_t)5));
        assert_int_equal(range.more, limit < 5);
        assert_int_equal(range.count, 5);
        vg_range_done(&range);
    }
}

static void a_count_alone_returns_no_records(void **state)
{
    struct vg_drv *d = *state;
    put_abcde(d);
    vg_drv_delete(d, "c");
    struct vg_range range = {.keys = vg_drv_span("b", "e"), .flags = VG_RANGE_COUNT_ONLY};
    assert_err(vg_drv_range(d, &range), 0);
    assert_int_equal(range.n_recs, 0);
    assert_int_equal(range.count, 2);
    assert_int_equal(range.req.rev, 7);
    vg_range_done(&range);
    range = (struct vg_range){.keys = vg_drv_span("b", "e"), .at = 6, .flags = VG_RANGE_COUNT_ONLY};
    assert_err(vg_drv_range(d, &range), 0);
    assert_int_equal(range.count, 3);
    assert_int_equal(range.req.rev, 6);
    vg_range_done(&range);
}

static void keys_only_leaves_out_header_and_value(void **state)
{
    struct vg_drv *d = *state;
    struct vg_op op =
        vg_drv_op_put(vg_slice_str("a"), vg_slice_str("head"), vg_slice_str("value"), 0);
    assert_err(vg_drv_run(d, &op, 1, NULL), 0);
    vg_drv_put(d, "a", "longer value");
    struct vg_range range = {.keys = vg_drv_all(), .flags = VG_RANGE_KEYS_ONLY};
    assert_err(vg_drv_range(d, &range), 0);
    assert_int_equal(range.n_recs, 1);
    const struct vg_rec *r = range.recs[0];
    vg_assert_slice_equal(vg_rec_key(r), VG_SLICE_LIT("a"));
    assert_int_equal(r->header_len, 0);
    assert_int_equal(r->value_len, 0);
    assert_int_equal(r->rev, 3);
    assert_int_equal(r->create_rev, 2);
    assert_int_equal(r->version, 2);
    vg_range_done(&range);
}

static void a_read_at_a_revision_sees_the_changes_up_to_it(void **state)
{
    struct vg_drv *d = *state;
    vg_drv_put(d, "a", "1");
    vg_drv_put(d, "b", "2");
    vg_drv_put(d, "a", "3");
    vg_drv_delete(d, "a");
    vg_drv_put(d, "a", "4");
    vg_drv_delete(d, "b");
    assert_state(d, 1, "");
    assert_state(d, 2, "a=1@2");
    assert_state(d, 3, "a=1@2 b=2@3");
    assert_state(d, 4, "a=3@4 b=2@3");
    assert_state(d, 5, "b=2@3");
    assert_state(d, 6, "a=4@6 b=2@3");
    assert_state(d, 7, "a=4@6");
    assert_state(d, 0, "a=4@6");
}

static void a_record_read_at_a_revision_is_the_one_of_that_time(void **state)
{
    struct vg_drv *d = *state;
    vg_drv_put(d, "a", "1");
    vg_drv_put(d, "a", "2");
    vg_drv_delete(d, "a");
    vg_drv_put(d, "a", "3");
    struct vg_rec *r = vg_drv_get(d, "a", 3);
    assert_int_equal(r->rev, 3);
    assert_int_equal(r->create_rev, 2);
    assert_int_equal(r->version, 2);
    vg_assert_slice_equal(vg_rec_value(r), VG_SLICE_LIT("2"));
    vg_rec_unref(r);
    assert_null(vg_drv_get(d, "a", 4));
    r = vg_drv_get(d, "a", 5);
    assert_int_equal(r->create_rev, 5);
    vg_rec_unref(r);
}

static void a_range_says_which_revision_it_read(void **state)
{
    struct vg_drv *d = *state;
    put_abcde(d);
    struct vg_range now = {.keys = vg_drv_one("a")}, then = {.keys = vg_drv_one("a"), .at = 4};
    assert_err(vg_drv_range(d, &now), 0);
    assert_err(vg_drv_range(d, &then), 0);
    assert_int_equal(now.req.rev, 6);
    assert_int_equal(then.req.rev, 4);
    vg_range_done(&now);
    vg_range_done(&then);
}

static void a_revision_that_is_not_there_yet_is_the_future(void **state)
{
    struct vg_drv *d = *state;
    put_abcde(d);
    struct vg_range range = {.keys = vg_drv_all(), .at = 7};
    assert_fails(&range.req, vg_drv_range(d, &range), VIGIL_E_FUTURE);
    assert_int_equal(range.n_recs, 0);
    vg_range_done(&range);
    vg_drv_put(d, "f", "v");
    assert_range(d, from("f"), 7, "f=v@7");
}

/* One page after the other from the key after the last one, at the revision of the first page. */
static size_t page_through(struct vg_drv *d, vg_rev at, size_t limit)
{
    char start[VG_STORAGE_KEY_MAX + 1] = "";
    size_t start_len = 0, seen = 0;
    for (bool more = true; more;) {
        struct vg_range page = {.keys = {VG_KEYS_FROM, {start, start_len}, {0}},
                                .at = at,
                                .limit = limit,
                                .flags = VG_RANGE_COUNT};
        assert_err(vg_drv_range(d, &page), 0);
        for (size_t i = 0; i < page.n_recs; i++, seen++)
            vg_assert_slice_equal(vg_rec_key(page.recs[i]),
                                  vg_slice_str(vg_suite_key((unsigned)seen)));
        assert_int_equal(page.count, 300 - (seen - page.n_recs));
        more = page.more;
        struct vg_slice last = vg_rec_key(page.recs[page.n_recs - 1]);
        memcpy(start, last.p, last.n);
        start[last.n] = '\0';
        start_len = last.n + 1;
        vg_range_done(&page);
        vg_drv_put(d, vg_suite_key(1000 + (unsigned)seen), "later");
        vg_drv_delete(d, vg_suite_key((unsigned)seen + 1));
    }
    return seen;
}

static void pages_at_one_revision_are_whole_while_others_write(void **state)
{
    struct vg_drv *d = *state;
    vg_suite_put_many(d, 300);
    vg_rev at = vg_storage_revision(d->store);
    assert_int_equal(page_through(d, at, 7), 300);
    assert_int_equal(page_through(d, at, 100), 300);
    assert_int_equal(page_through(d, at, 300), 300);
}

static void a_limit_skips_deleted_keys(void **state)
{
    struct vg_drv *d = *state;
    vg_suite_put_many(d, 100);
    for (unsigned i = 0; i < 100; i++)
        if (i % 10 != 9)
            vg_drv_delete(d, vg_suite_key(i));
    struct vg_range range = {.keys = vg_drv_all(), .limit = 4, .flags = VG_RANGE_COUNT};
    assert_err(vg_drv_range(d, &range), 0);
    assert_recs(&range, "key0009=v@11 key0019=v@21 key0029=v@31 key0039=v@41");
    assert_true(range.more);
    assert_int_equal(range.count, 10);
    vg_range_done(&range);
    range = (struct vg_range){.keys = vg_drv_all(), .limit = 10};
    assert_err(vg_drv_range(d, &range), 0);
    assert_false(range.more);
    vg_range_done(&range);
}

static void many_ranges_may_be_under_way(void **state)
{
    struct vg_drv *d = *state;
    enum { N = 100 };
    struct vg_range ranges[N] = {0};
    vg_suite_put_many(d, N);
    for (unsigned i = 0; i < N; i++) {
        ranges[i] = (struct vg_range){.keys = vg_drv_all(), .at = i + 2};
        assert_err(vg_drv_submit_range(d, &ranges[i]), 0);
    }
    for (unsigned i = 0; i < N; i++) {
        assert_err(vg_drv_wait(d, &ranges[i].req), 0);
        assert_int_equal(ranges[i].n_recs, i + 1);
        vg_range_done(&ranges[i]);
    }
}

/* More than an engine reads at once, whatever it calls that. */
static void a_range_of_thousands_is_whole(void **state)
{
    struct vg_drv *d = *state;
    enum { N = 2100, LIMIT = 2048, TOGETHER = 100 };
    for (unsigned at = 0; at < N; at += TOGETHER) {
        struct vg_op ops[TOGETHER];
        for (unsigned i = 0; i < TOGETHER; i++)
            ops[i] = vg_drv_put_op(vg_suite_key(at + i), "v", VG_EXPECT_ANY);
        assert_err(vg_drv_run(d, ops, TOGETHER, NULL), 0);
    }
    struct vg_range range = {.keys = vg_drv_all()};
    assert_err(vg_drv_range(d, &range), 0);
    assert_int_equal(range.n_recs, N);
    vg_range_done(&range);
    range = (struct vg_range){.keys = vg_drv_all(), .limit = LIMIT};
    assert_err(vg_drv_range(d, &range), 0);
    assert_int_equal(range.n_recs, LIMIT);
    assert_true(range.more);
    vg_range_done(&range);
}

/* Records that a reader holds do not change, whatever happens to the key. */
static void a_record_outlives_its_key_and_its_store(void **state)
{
    struct vg_drv *d = *state;
    vg_drv_put(d, "a", "kept");
    struct vg_rec *r = vg_drv_get(d, "a", 0);
    vg_drv_delete(d, "a");
    assert_err(vg_drv_compact(d, 3, NULL), 0);
    vg_drv_close_store(d);
    vg_assert_slice_equal(vg_rec_value(r), VG_SLICE_LIT("kept"));
    assert_int_equal(r->rev, 2);
    vg_rec_unref(r);
}

static const struct CMUnitTest tests[] = {
    VG_SUITE_TEST(a_range_holds_one_key_a_span_or_all_from_a_start),
    VG_SUITE_TEST(a_span_that_ends_where_it_starts_is_empty),
    VG_SUITE_TEST(a_range_may_be_bounded_by_what_no_key_can_be),
    VG_SUITE_TEST(keys_contain_what_a_range_returns),
    VG_SUITE_TEST(a_limit_cuts_the_range_and_says_so),
    VG_SUITE_TEST(a_count_alone_returns_no_records),
    VG_SUITE_TEST(keys_only_leaves_out_header_and_value),
    VG_SUITE_TEST(a_read_at_a_revision_sees_the_changes_up_to_it),
    VG_SUITE_TEST(a_record_read_at_a_revision_is_the_one_of_that_time),
    VG_SUITE_TEST(a_range_says_which_revision_it_read),
    VG_SUITE_TEST(a_revision_that_is_not_there_yet_is_the_future),
    VG_SUITE_TEST(pages_at_one_revision_are_whole_while_others_write),
    VG_SUITE_TEST(a_limit_skips_deleted_keys),
    VG_SUITE_TEST(many_ranges_may_be_under_way),
    VG_SUITE_TEST(a_range_of_thousands_is_whole),
    VG_SUITE_TEST(a_record_outlives_its_key_and_its_store),
};
VG_SUITE_TOPIC(vg_suite_range, tests);
