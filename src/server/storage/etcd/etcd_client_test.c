/* etcd_client_test.c - the client against real members of each version of etcd. */
#include "etcd_client_testing.h"

#include <errno.h>
#include <signal.h>

static const char *const versions[] = {"34", "35", "36"};

static struct vg_slice text(const char *s)
{
    return vg_slice_str(s);
}

static Etcd__PutResponse *put(struct etcd_test_world *w, const char *key, const char *value)
{
    Etcd__PutRequest m = ETCD__PUT_REQUEST__INIT;
    m.key = vg_etcd_data(text(key));
    m.value = vg_etcd_data(text(value));
    return etcd_test_must(w, &vg_etcd_put, &m.base);
}

static Etcd__RangeResponse *get(struct etcd_test_world *w, const char *key, const char *end)
{
    Etcd__RangeRequest m = ETCD__RANGE_REQUEST__INIT;
    m.key = vg_etcd_data(text(key));
    m.range_end = vg_etcd_data(text(end));
    return etcd_test_must(w, &vg_etcd_range, &m.base);
}

/* ---- keys ---- */

static void keys_are_put_and_read(struct etcd_test_world *w)
{
    int64_t rev = put(w, "/a/1", "one")->header->revision;
    put(w, "/a/2", "two");
    Etcd__RangeResponse *r = get(w, "/a/", "/a0");
    assert_int_equal(r->n_kvs, 2);
    assert_int_equal(r->header->revision, rev + 1);
    vg_assert_slice_equal(vg_etcd_bytes(r->kvs[1]->key), text("/a/2"));
    vg_assert_slice_equal(vg_etcd_bytes(r->kvs[1]->value), text("two"));
    assert_int_equal(r->kvs[0]->mod_revision, rev);
    assert_int_equal(r->kvs[0]->version, 1);
}

static void a_transaction_compares(struct etcd_test_world *w)
{
    Etcd__Compare compare = ETCD__COMPARE__INIT, *compares[] = {&compare};
    Etcd__PutRequest put_op = ETCD__PUT_REQUEST__INIT;
    Etcd__RangeRequest range_op = ETCD__RANGE_REQUEST__INIT;
    Etcd__RequestOp then = ETCD__REQUEST_OP__INIT, otherwise = ETCD__REQUEST_OP__INIT;
    Etcd__RequestOp *thens[] = {&then}, *otherwises[] = {&otherwise};
    Etcd__TxnRequest m = ETCD__TXN_REQUEST__INIT;
    compare.target = ETCD__COMPARE__COMPARE_TARGET__MOD;
    compare.target_union_case = ETCD__COMPARE__TARGET_UNION_MOD_REVISION;
    compare.mod_revision = 0;
    compare.key = put_op.key = range_op.key = vg_etcd_data(text("/txn"));
    put_op.value = vg_etcd_data(text("first"));
    then.request_case = ETCD__REQUEST_OP__REQUEST_REQUEST_PUT;
    then.request_put = &put_op;
    otherwise.request_case = ETCD__REQUEST_OP__REQUEST_REQUEST_RANGE;
    otherwise.request_range = &range_op;
    m.n_compare = m.n_success = m.n_failure = 1;
    m.compare = compares;
    m.success = thens;
    m.failure = otherwises;
    Etcd__TxnResponse *r = etcd_test_must(w, &vg_etcd_txn, &m.base);
    assert_true(r->succeeded);
    r = etcd_test_must(w, &vg_etcd_txn, &m.base);
    assert_false(r->succeeded);
    assert_int_equal(r->n_responses, 1);
    assert_int_equal(r->responses[0]->response_case, ETCD__RESPONSE_OP__RESPONSE_RESPONSE_RANGE);
    vg_assert_slice_equal(vg_etcd_bytes(r->responses[0]->response_range->kvs[0]->value),
                          text("first"));
}

static void long_values_pass_both_ways(struct etcd_test_world *w)
{
    size_t n = 1400 * 1024; /* etcd takes 1.5 MiB */
    char *value = vg_malloc(n + 1), key[32];
    memset(value, 'x', n);
    value[n] = 0;
    for (int i = 0; i < 8; i++) {
        snprintf(key, sizeof key, "/long/%d", i);
        put(w, key, value);
    }
    Etcd__RangeResponse *r = get(w, "/long/", "/long0"); /* 11 MB: more than a window */
    assert_int_equal(r->n_kvs, 8);
    for (size_t i = 0; i < r->n_kvs; i++)
        vg_assert_slice_equal(vg_etcd_bytes(r->kvs[i]->value), vg_slice(value, n));
    vg_free(value);
}

static void compaction_is_told(struct etcd_test_world *w)
{
    struct etcd_test_call t = {0};
    struct vg_status status;
    put(w, "/c", "1");
    int64_t rev = put(w, "/c", "2")->header->revision;
    Etcd__CompactionRequest compact = ETCD__COMPACTION_REQUEST__INIT;
    compact.revision = rev;
    etcd_test_must(w, &vg_etcd_compact, &compact.base);
    Etcd__RangeRequest m = ETCD__RANGE_REQUEST__INIT;
    m.key = vg_etcd_data(text("/c"));
    m.revision = rev - 1;
    assert_null(etcd_test_do(w, &vg_etcd_range, &m.base, &t));
    assert_int_equal(t.call.status.code, VG_GRPC_OUT_OF_RANGE);
    assert_int_equal(t.call.status.fate, VG_GRPC_ANSWERED);
    assert_int_equal(vg_etcd_error(&t.call.status, false, &status), VIGIL_E_COMPACTED);
    m.revision = rev + 1000;
    assert_null(etcd_test_do(w, &vg_etcd_range, &m.base, &t));
    assert_int_equal(vg_etcd_error(&t.call.status, false, &status), VIGIL_E_FUTURE);
    etcd_test_call_done(&t);
}

static void a_request_may_be_too_large(struct etcd_test_world *w)
{
    struct etcd_test_call t = {0};
    struct vg_status status;
    size_t n = (size_t)3 << 20;
    char *value = vg_malloc(n);
    memset(value, 'x', n);
    Etcd__PutRequest m = ETCD__PUT_REQUEST__INIT;
    m.key = vg_etcd_data(text("/huge"));
    m.value = vg_etcd_data(vg_slice(value, n));
    assert_null(etcd_test_do(w, &vg_etcd_put, &m.base, &t));
    assert_int_equal(vg_etcd_error(&t.call.status, true, &status), VIGIL_E_TOO_LARGE);
    etcd_test_call_done(&t);
    vg_free(value);
}

/* ---- watches ---- */

static void watch(struct etcd_test_world *w, struct etcd_test_call *t, const char *key,
                  const char *end, int64_t from)
{
    Etcd__WatchCreateRequest create = ETCD__WATCH_CREATE_REQUEST__INIT;
    Etcd__WatchRequest m = ETCD__WATCH_REQUEST__INIT;
    create.key = vg_etcd_data(text(key));
    create.range_end = vg_etcd_data(text(end));
    create.start_revision = from;
    create.prev_kv = create.fragment = true;
    m.request_union_case = ETCD__WATCH_REQUEST__REQUEST_UNION_CREATE_REQUEST;
    m.create_request = &create;
    t->call.fields = vg_etcd_require_leader;
    t->call.n_fields = 1;
    assert_int_equal(etcd_test_start(w, &vg_etcd_watch, &m.base, t), 0);
    Etcd__WatchResponse *r = etcd_test_next(w, t, 0, &vg_etcd_watch);
    assert_true(r->created);
}

static void a_watch_tells_changes(struct etcd_test_world *w)
{
    struct etcd_test_call t = {0};
    int64_t rev = put(w, "/w/1", "a")->header->revision;
    watch(w, &t, "/w/", "/w0", rev);
    Etcd__WatchResponse *r = etcd_test_next(w, &t, 1, &vg_etcd_watch);
    assert_int_equal(r->n_events, 1);
    assert_null(r->events[0]->prev_kv);
    put(w, "/w/1", "b");
    r = etcd_test_next(w, &t, 2, &vg_etcd_watch);
    vg_assert_slice_equal(vg_etcd_bytes(r->events[0]->kv->value), text("b"));
    vg_assert_slice_equal(vg_etcd_bytes(r->events[0]->prev_kv->value), text("a"));
    Etcd__DeleteRangeRequest del = ETCD__DELETE_RANGE_REQUEST__INIT;
    del.key = vg_etcd_data(text("/w/1"));
    Etcd__DeleteRangeResponse *d = etcd_test_must(w, &vg_etcd_delete_range, &del.base);
    assert_int_equal(d->deleted, 1);
    r = etcd_test_next(w, &t, 3, &vg_etcd_watch);
    assert_int_equal(r->events[0]->type, ETCD__EVENT__EVENT_TYPE__DELETE);
    assert_int_equal(r->events[0]->kv->mod_revision, rev + 2);
    etcd_test_call_done(&t);
}

static void a_watch_reports_progress(struct etcd_test_world *w)
{
    struct etcd_test_call t = {0};
    watch(w, &t, "/p/", "/p0", 0);
    int64_t rev = put(w, "/elsewhere", "x")->header->revision;
    Etcd__WatchRequest m = ETCD__WATCH_REQUEST__INIT;
    Etcd__WatchProgressRequest progress = ETCD__WATCH_PROGRESS_REQUEST__INIT;
    m.request_union_case = ETCD__WATCH_REQUEST__REQUEST_UNION_PROGRESS_REQUEST;
    m.progress_request = &progress;
    struct vg_grpc_msg *msg = vg_etcd_pack(&m.base);
    assert_non_null(msg);
    assert_int_equal(vg_grpc_send(&t.call, msg), 0);
    Etcd__WatchResponse *r = etcd_test_next(w, &t, 1, &vg_etcd_watch);
    assert_int_equal(r->n_events, 0);
    assert_true(r->header->revision >= rev - 1); /* old ones look before they leap */
    etcd_test_call_done(&t);
}

static void long_events_come_in_fragments(struct etcd_test_world *w)
{
    struct etcd_test_call t = {0};
    size_t n = 900 * 1024, n_events = 0;
    char *value = vg_malloc(n + 1), key[32];
    memset(value, 'y', n);
    value[n] = 0;
    int64_t rev = 0;
    for (int i = 0; i < 6; i++) {
        snprintf(key, sizeof key, "/f/%d", i);
        int64_t at = put(w, key, value)->header->revision;
        rev = rev ? rev : at;
    }
    watch(w, &t, "/f/", "/f0", rev);
    bool has_fragment = false;
    size_t i = 1;
    while (n_events < 6) {
        Etcd__WatchResponse *r = etcd_test_next(w, &t, i++, &vg_etcd_watch);
        has_fragment |= r->fragment;
        n_events += r->n_events;
    }
    assert_int_equal(n_events, 6);
    assert_true(has_fragment);
    etcd_test_call_done(&t);
    vg_free(value);
}

/* ---- leases, members ---- */

static void leases_live_and_end(struct etcd_test_world *w)
{
    Etcd__LeaseGrantRequest grant = ETCD__LEASE_GRANT_REQUEST__INIT;
    grant.ttl = 60;
    Etcd__LeaseGrantResponse *lease = etcd_test_must(w, &vg_etcd_lease_grant, &grant.base);
    assert_int_equal(lease->ttl, 60);
    Etcd__PutRequest m = ETCD__PUT_REQUEST__INIT;
    m.key = vg_etcd_data(text("/leased"));
    m.lease = lease->id;
    etcd_test_must(w, &vg_etcd_put, &m.base);

    struct etcd_test_call t = {0};
    Etcd__LeaseKeepAliveRequest alive = ETCD__LEASE_KEEP_ALIVE_REQUEST__INIT;
    alive.id = lease->id;
    assert_int_equal(etcd_test_start(w, &vg_etcd_lease_keep_alive, &alive.base, &t), 0);
    Etcd__LeaseKeepAliveResponse *kept = etcd_test_next(w, &t, 0, &vg_etcd_lease_keep_alive);
    assert_int_equal(kept->ttl, 60);
    vg_grpc_half_close(&t.call);
    vg_loop_turn_until(w->loop, &t.has_ended);
    assert_int_equal(t.call.status.code, VG_GRPC_OK);
    etcd_test_call_done(&t);

    Etcd__LeaseTimeToLiveRequest left = ETCD__LEASE_TIME_TO_LIVE_REQUEST__INIT;
    left.id = lease->id;
    left.keys = true;
    Etcd__LeaseTimeToLiveResponse *l = etcd_test_must(w, &vg_etcd_lease_time_to_live, &left.base);
    assert_int_equal(l->n_keys, 1);
    Etcd__LeaseRevokeRequest revoke = ETCD__LEASE_REVOKE_REQUEST__INIT;
    revoke.id = lease->id;
    etcd_test_must(w, &vg_etcd_lease_revoke, &revoke.base);
    assert_int_equal(get(w, "/leased", "")->n_kvs, 0);

    struct vg_status status;
    assert_null(etcd_test_do(w, &vg_etcd_lease_revoke, &revoke.base, &t));
    assert_int_equal(vg_etcd_error(&t.call.status, true, &status), VIGIL_E_NOT_FOUND);
    etcd_test_call_done(&t);
}

static void members_tell_about_themselves(struct etcd_test_world *w)
{
    Etcd__StatusRequest ask = ETCD__STATUS_REQUEST__INIT;
    Etcd__StatusResponse *s = etcd_test_must(w, &vg_etcd_status, &ask.base);
    assert_true(s->version[0] == '3');
    assert_true(s->leader != 0);
    Etcd__MemberListRequest list = ETCD__MEMBER_LIST_REQUEST__INIT;
    Etcd__MemberListResponse *m = etcd_test_must(w, &vg_etcd_member_list, &list.base);
    assert_int_equal(m->n_members, 1);
    assert_string_equal(m->members[0]->name, "m");
}

static void a_snapshot_streams(struct etcd_test_world *w)
{
    struct etcd_test_call t = {0};
    Etcd__SnapshotRequest m = ETCD__SNAPSHOT_REQUEST__INIT;
    assert_int_equal(etcd_test_start(w, &vg_etcd_snapshot, &m.base, &t), 0);
    vg_grpc_half_close(&t.call);
    Etcd__SnapshotResponse *r = etcd_test_next(w, &t, 0, &vg_etcd_snapshot);
    assert_true(r->blob.len > 0);
    etcd_test_call_done(&t); /* in the middle of it */
    put(w, "/after", "snapshot");
}

static void each_version(void (*test)(struct etcd_test_world *w))
{
    for (size_t i = 0; i < VG_ARRAY_LEN(versions); i++) {
        struct etcd_test_world w = {.etcd.binary = vg_test_etcd_binary(versions[i])};
        if (!w.etcd.binary)
            continue;
        vg_test_etcd_start(&w.etcd);
        etcd_test_open(&w, NULL);
        test(&w);
        etcd_test_close(&w);
        vg_test_etcd_remove(&w.etcd);
    }
}

static void all_methods(struct etcd_test_world *w)
{
    keys_are_put_and_read(w);
    a_transaction_compares(w);
    compaction_is_told(w);
    a_request_may_be_too_large(w);
    a_watch_tells_changes(w);
    a_watch_reports_progress(w);
    long_events_come_in_fragments(w);
    leases_live_and_end(w);
    members_tell_about_themselves(w);
    long_values_pass_both_ways(w);
    a_snapshot_streams(w);
    assert_true(w->is_ready);
}

static void every_method_works_on_every_version(void **state)
{
    (void)state;
    each_version(all_methods);
}

static bool has_any(void)
{
    size_t n = 0;
    for (size_t i = 0; i < VG_ARRAY_LEN(versions); i++)
        n += vg_test_etcd_binary(versions[i]) != NULL;
    return n > 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_method_works_on_every_version),
    };
    return has_any() ? cmocka_run_group_tests(tests, NULL, NULL) : 77; /* skipped, for ctest */
}
