/* suite_limits.c - bad input gets a named error and changes nothing; good input of the largest and
 * strangest kind goes through unharmed. */
#include "storage_suite.h"

/* The operation alone must fail so, at once, and leave no trace. */
static void assert_refused(struct vg_drv *d, struct vg_op *ops, uint32_t n_ops, int want)
{
    vg_rev before = vg_storage_revision(d->store);
    struct vg_txn txn = {.ops = ops, .n_ops = n_ops};
    int err = vg_drv_txn(d, &txn);
    assert_fails(&txn.req, err, want);
    vg_txn_done(&txn);
    assert_int_equal(vg_storage_revision(d->store), before);
}

static void a_transaction_without_operations_is_invalid(void **state)
{
    assert_refused(*state, NULL, 0, VIGIL_E_INVALID);
}

static void a_transaction_takes_128_operations_and_not_one_more(void **state)
{
    struct vg_drv *d = *state;
    struct vg_op ops[VG_STORAGE_TXN_OPS_MAX + 1];
    for (unsigned i = 0; i < VG_ARRAY_LEN(ops); i++)
        ops[i] = vg_drv_put_op(vg_suite_key(i), "v", 0);
    assert_refused(d, ops, VG_STORAGE_TXN_OPS_MAX + 1, VIGIL_E_INVALID);
    assert_state(d, 0, "");
    for (unsigned i = 0; i < VG_STORAGE_TXN_OPS_MAX; i++)
        ops[i] = vg_drv_put_op(vg_suite_key(i), "v", 0);
    vg_rev rev = 0;
    assert_err(vg_drv_run(d, ops, VG_STORAGE_TXN_OPS_MAX, &rev), 0);
    assert_int_equal(rev, 2);
    struct vg_range range = {.keys = vg_drv_all()};
    assert_err(vg_drv_range(d, &range), 0);
    assert_int_equal(range.n_recs, VG_STORAGE_TXN_OPS_MAX);
    vg_range_done(&range);
}

static void a_key_may_be_named_once_in_a_transaction(void **state)
{
    struct vg_drv *d = *state;
    vg_drv_put(d, "a", "1");
    struct vg_op puts[] = {vg_drv_put_op("b", "1", 0), vg_drv_put_op("c", "1", 0),
                           vg_drv_put_op("b", "2", VG_EXPECT_ANY)};
    assert_refused(d, puts, 3, VIGIL_E_INVALID);
    struct vg_op mixed[] = {vg_drv_delete_op("a", 2), vg_drv_put_op("a", "2", 0)};
    assert_refused(d, mixed, 2, VIGIL_E_INVALID);
    struct vg_op checked[] = {vg_drv_check_op("a", 2), vg_drv_put_op("a", "2", 2)};
    assert_refused(d, checked, 2, VIGIL_E_INVALID);
    assert_state(d, 0, "a=1@2");
}

static void an_operation_of_no_known_type_or_without_a_record_is_invalid(void **state)
{
    struct vg_drv *d = *state;
    struct vg_op op = vg_drv_put_op("a", "1", 0);
    op.type = (enum vg_op_type)0;
    assert_refused(d, &op, 1, VIGIL_E_INVALID);
    op = vg_drv_put_op("a", "1", 0);
    op.type = (enum vg_op_type)4;
    assert_refused(d, &op, 1, VIGIL_E_INVALID);
    op = (struct vg_op){.type = VG_OP_PUT};
    assert_refused(d, &op, 1, VIGIL_E_INVALID);
}

static struct vg_op put_of(size_t key_len, size_t header_len, size_t value_len)
{
    size_t most = VG_MAX(key_len, VG_MAX(header_len, value_len));
    char *bytes = vg_malloc(most);
    assert_non_null(bytes);
    memset(bytes, 'k', most);
    struct vg_op op = vg_drv_op_put(vg_slice(bytes, key_len), vg_slice(bytes, header_len),
                                    vg_slice(bytes, value_len), VG_EXPECT_ANY);
    vg_free(bytes);
    return op;
}

static void a_key_has_up_to_480_bytes(void **state)
{
    struct vg_drv *d = *state;
    struct vg_op op = put_of(VG_STORAGE_KEY_MAX, 0, 1);
    assert_err(vg_drv_run(d, &op, 1, NULL), 0);
    op = put_of(VG_STORAGE_KEY_MAX + 1, 0, 1);
    assert_refused(d, &op, 1, VIGIL_E_KEY_INVALID);
    struct vg_range range = {.keys = vg_drv_all()};
    assert_err(vg_drv_range(d, &range), 0);
    assert_int_equal(range.n_recs, 1);
    assert_int_equal(vg_rec_key(range.recs[0]).n, VG_STORAGE_KEY_MAX);
    vg_range_done(&range);
}

/* The record's maker refuses an empty key, so one is made by force. */
static void an_empty_key_is_refused_in_every_operation(void **state)
{
    struct vg_drv *d = *state;
    struct vg_op ops[] = {vg_drv_put_op("a", "1", 0), vg_drv_delete_op("a", 0),
                          vg_drv_check_op("a", 0)};
    for (size_t i = 0; i < VG_ARRAY_LEN(ops); i++) {
        ops[i].rec->key_len = 0;
        assert_refused(d, &ops[i], 1, VIGIL_E_KEY_INVALID);
    }
}

static void a_value_reaches_its_limit_together_with_its_header(void **state)
{
    struct vg_drv *d = *state;
    struct vg_op op = put_of(3, 0, VG_STORAGE_VALUE_MAX);
    assert_err(vg_drv_run(d, &op, 1, NULL), 0);
    op = put_of(3, 1000, VG_STORAGE_VALUE_MAX - 1000);
    assert_err(vg_drv_run(d, &op, 1, NULL), 0);
    op = put_of(3, 0, VG_STORAGE_VALUE_MAX + 1);
    assert_refused(d, &op, 1, VIGIL_E_VALUE_TOO_LARGE);
    op = put_of(3, 1001, VG_STORAGE_VALUE_MAX - 1000);
    assert_refused(d, &op, 1, VIGIL_E_VALUE_TOO_LARGE);
    struct vg_rec *r = vg_drv_get(d, "kkk", 0);
    assert_int_equal(r->rev, 3);
    assert_int_equal(r->header_len, 1000);
    assert_int_equal(r->value_len, VG_STORAGE_VALUE_MAX - 1000);
    vg_rec_unref(r);
}

static void the_values_of_a_transaction_have_a_limit_together(void **state)
{
    struct vg_drv *d = *state;
    struct vg_op ops[] = {put_of(1, 0, VG_STORAGE_VALUE_MAX), put_of(2, 0, VG_STORAGE_VALUE_MAX),
                          put_of(3, 0, 1)};
    assert_refused(d, ops, 3, VIGIL_E_VALUE_TOO_LARGE);
    struct vg_op fit[] = {put_of(1, 0, VG_STORAGE_VALUE_MAX), put_of(2, 0, VG_STORAGE_VALUE_MAX)};
    assert_err(vg_drv_run(d, fit, 2, NULL), 0);
}

static void header_and_value_come_back_as_they_were(void **state)
{
    struct vg_drv *d = *state;
    struct vg_op op = vg_drv_op_put(vg_slice_str("a"), vg_slice("\0h\xff", 3),
                                    vg_slice("v\0\xfe\n", 4), VG_EXPECT_ANY);
    assert_err(vg_drv_run(d, &op, 1, NULL), 0);
    struct vg_rec *r = vg_drv_get(d, "a", 0);
    vg_assert_slice_equal(vg_rec_header(r), vg_slice("\0h\xff", 3));
    vg_assert_slice_equal(vg_rec_value(r), vg_slice("v\0\xfe\n", 4));
    vg_rec_unref(r);
}

static void an_empty_value_is_a_value(void **state)
{
    struct vg_drv *d = *state;
    vg_drv_put(d, "a", "");
    assert_state(d, 0, "a=@2");
    assert_err(vg_drv_put_if(d, "a", "1", 0, NULL), VIGIL_E_CONFLICT);
}

/* In byte order. What an index appends to a key must not confuse one key with another. */
static const struct vg_slice odd_keys[] = {
    {"\0", 1},       {"\0\0", 2},    {"\0\0\0\0\0\0\0\0\0\0\0\0", 12},
    {"\0\xff", 2},   {"a", 1},       {"a\0", 2},
    {"a\0\0", 3},    {"a\0b", 3},    {"a\1", 2},
    {"a\xff", 2},    {"a\xff\0", 3}, {"b", 1},
    {"\x80", 1},     {"\xff", 1},    {"\xff\0", 2},
    {"\xff\xff", 2},
};

static void put_odd_keys_backwards(struct vg_drv *d)
{
    for (size_t i = VG_ARRAY_LEN(odd_keys); i-- > 0;) {
        struct vg_op op = vg_drv_op_put(odd_keys[i], vg_slice(NULL, 0), odd_keys[i], 0);
        assert_err(vg_drv_run(d, &op, 1, NULL), 0);
    }
}

static void keys_of_any_bytes_are_kept_apart_and_in_order(void **state)
{
    struct vg_drv *d = *state;
    put_odd_keys_backwards(d);
    if (vg_drv_engine_has(d->engine, VG_DRV_DURABLE))
        vg_drv_reopen(d);
    struct vg_range range = {.keys = vg_drv_all()};
    assert_err(vg_drv_range(d, &range), 0);
    assert_int_equal(range.n_recs, VG_ARRAY_LEN(odd_keys));
    for (size_t i = 0; i < range.n_recs; i++) {
        vg_assert_slice_equal(vg_rec_key(range.recs[i]), odd_keys[i]);
        vg_assert_slice_equal(vg_rec_value(range.recs[i]), odd_keys[i]);
        assert_int_equal(range.recs[i]->version, 1);
    }
    vg_range_done(&range);
}

static void spans_of_any_bytes_hold_what_lies_between(void **state)
{
    struct vg_drv *d = *state;
    put_odd_keys_backwards(d);
    if (vg_drv_engine_has(d->engine, VG_DRV_DURABLE))
        vg_drv_reopen(d);
    for (size_t i = 0; i < VG_ARRAY_LEN(odd_keys); i++) {
        for (size_t j = 0; j < VG_ARRAY_LEN(odd_keys); j++) {
            struct vg_range range = {.keys = {VG_KEYS_SPAN, odd_keys[i], odd_keys[j]}};
            assert_err(vg_drv_range(d, &range), 0);
            assert_int_equal(range.n_recs, j > i ? j - i : 0);
            if (range.n_recs)
                vg_assert_slice_equal(vg_rec_key(range.recs[0]), odd_keys[i]);
            vg_range_done(&range);
        }
    }
}

static void one_key_of_any_bytes_is_found_alone_and_deleted_alone(void **state)
{
    struct vg_drv *d = *state;
    put_odd_keys_backwards(d);
    for (size_t i = 0; i < VG_ARRAY_LEN(odd_keys); i++) {
        struct vg_range range = {.keys = {.kind = VG_KEYS_ONE, .start = odd_keys[i]}};
        assert_err(vg_drv_range(d, &range), 0);
        assert_int_equal(range.n_recs, 1);
        vg_assert_slice_equal(vg_rec_value(range.recs[0]), odd_keys[i]);
        vg_range_done(&range);
        struct vg_op op = vg_drv_op_delete(odd_keys[i], VG_EXPECT_ANY);
        assert_err(vg_drv_run(d, &op, 1, NULL), 0);
        struct vg_range rest = {.keys = vg_drv_all(), .flags = VG_RANGE_COUNT_ONLY};
        assert_err(vg_drv_range(d, &rest), 0);
        assert_int_equal(rest.count, VG_ARRAY_LEN(odd_keys) - i - 1);
        vg_range_done(&rest);
    }
}

static void a_range_that_makes_no_sense_is_invalid(void **state)
{
    struct vg_drv *d = *state;
    struct vg_range range = {.keys = {.kind = VG_KEYS_ONE}};
    assert_fails(&range.req, vg_drv_range(d, &range), VIGIL_E_INVALID);
    range = (struct vg_range){.keys = {.kind = (enum vg_keys_kind)3}};
    assert_fails(&range.req, vg_drv_range(d, &range), VIGIL_E_INVALID);
}

static const struct CMUnitTest tests[] = {
    VG_SUITE_TEST(a_transaction_without_operations_is_invalid),
    VG_SUITE_TEST(a_transaction_takes_128_operations_and_not_one_more),
    VG_SUITE_TEST(a_key_may_be_named_once_in_a_transaction),
    VG_SUITE_TEST(an_operation_of_no_known_type_or_without_a_record_is_invalid),
    VG_SUITE_TEST(a_key_has_up_to_480_bytes),
    VG_SUITE_TEST(an_empty_key_is_refused_in_every_operation),
    VG_SUITE_TEST(a_value_reaches_its_limit_together_with_its_header),
    VG_SUITE_TEST(the_values_of_a_transaction_have_a_limit_together),
    VG_SUITE_TEST(header_and_value_come_back_as_they_were),
    VG_SUITE_TEST(an_empty_value_is_a_value),
    VG_SUITE_TEST(keys_of_any_bytes_are_kept_apart_and_in_order),
    VG_SUITE_TEST(spans_of_any_bytes_hold_what_lies_between),
    VG_SUITE_TEST(one_key_of_any_bytes_is_found_alone_and_deleted_alone),
    VG_SUITE_TEST(a_range_that_makes_no_sense_is_invalid),
};
VG_SUITE_TOPIC(vg_suite_limits, tests);
