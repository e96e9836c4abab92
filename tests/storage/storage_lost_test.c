/* storage_lost_test.c - transactions of several operations whose answers are lost on the way to
 * etcd and back. Beside them a rival writes, often the same bytes. storage_lost_test <engine> The
 * transaction is what a create under a quota is: the object (unique bytes, expected absent), and
 * counters that others raise in the same way. Success may only be said if it happened, and conflict
 * only if it did not and never will. */
#include "test_support.h"

#include <stdio.h>

#include "etcd_member.h"
#include "lossy_proxy.h"
#include "storage_driver.h"
#include "storage_driver_int.h"

#define OPS 3 /* the object and two counters */

static const char *engine;

struct world {
    struct vg_drv direct; /* the rival's */
    struct vg_drv far;    /* behind the proxy */
    struct vg_proxy proxy;
    struct vg_op ops[OPS + 1];
    struct vg_txn txn;
    vg_rev counters[OPS]; /* by operation; [0] is not used */
};

static const char *const keys[OPS] = {"object", "counter-1", "counter-2"};

static void open_far(struct world *w)
{
    struct vg_status status = {0};
    struct vg_drv *d = &w->far;
    *d = (struct vg_drv){.engine = engine};
    d->opts = (struct vg_storage_opts){.size = sizeof d->opts, .clock = vg_clock_system()};
    d->servers[0] = w->proxy.url;
    d->etcd_opts = (struct vg_etcd_opts){
        .servers = d->servers, .n_servers = 1, .root = "", .prefix = "/test/"};
    d->opts.etcd = &d->etcd_opts;
    if (vg_loop_new(vg_clock_system(), &d->loop) < 0 ||
        vg_storage_open_etcd(&d->opts, &d->store, &status) < 0)
        vg_drv_die(status.message, status.err);
}

static int set_up(void **state)
{
    struct world *w = vg_new(struct world);
    if (!w)
        return -1;
    vg_drv_open(&w->direct, engine, NULL);
    vg_proxy_start(&w->proxy, w->direct.etcd->client_port);
    open_far(w);
    vg_rev rev = vg_drv_put(&w->far, "warm", "up"); /* its connection stands */
    assert_true(rev > 0);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    vg_txn_done(&w->txn);
    vg_drv_close(&w->far);
    vg_proxy_stop(&w->proxy);
    vg_drv_close(&w->direct);
    vg_free(w);
    return 0;
}

/* The create under two quotas that stand at 5. */
static void prepare(struct world *w)
{
    w->ops[0] = vg_drv_put_op(keys[0], "uid-ours", 0);
    w->ops[0].is_unique = true;
    for (int i = 1; i < OPS; i++) {
        w->counters[i] = vg_drv_put(&w->direct, keys[i], "5");
        w->ops[i] = vg_drv_put_op(keys[i], "6", w->counters[i]);
    }
    w->txn = (struct vg_txn){.ops = w->ops, .n_ops = OPS};
}

static bool holds(struct world *w, const char *key, const char *value)
{
    struct vg_rec *rec = vg_drv_get(&w->direct, key, 0);
    bool is = rec && vg_slice_eq(vg_rec_value(rec), vg_slice_str(value));
    vg_rec_unref(rec);
    return is;
}

/* It is carried out, and nobody is told. */
static void lose_answer(struct world *w)
{
    vg_proxy_set(&w->proxy, VG_PROXY_LOSE_ANSWERS);
    assert_int_equal(vg_drv_submit_txn(&w->far, &w->txn), 0);
    while (!holds(w, keys[0], "uid-ours"))
        vg_loop_turn(w->far.loop, false);
}

/* It never arrives. */
static void lose_request(struct world *w)
{
    vg_proxy_set(&w->proxy, VG_PROXY_LOSE_REQUESTS);
    assert_int_equal(vg_drv_submit_txn(&w->far, &w->txn), 0);
    vg_proxy_wait_lost(&w->proxy);
}

/* The connection breaks, and what became of the transaction is found by reading. */
static int answer_of(struct world *w)
{
    vg_proxy_set(&w->proxy, VG_PROXY_BREAK);
    return vg_drv_wait(&w->far, &w->txn.req);
}

static void a_lost_answer_is_found(void **state)
{
    struct world *w = *state;
    prepare(w);
    lose_answer(w);
    assert_int_equal(answer_of(w), 0);
    struct vg_rec *rec = vg_drv_get(&w->direct, keys[0], 0);
    assert_int_equal(rec->rev, w->txn.req.rev);
    vg_rec_unref(rec);
}

/* One broken connection once answered twenty creates with success, of which one had happened. */
static void a_rivals_equal_bytes_prove_nothing(void **state)
{
    struct world *w = *state;
    for (int at = 1; at < OPS; at++) {
        prepare(w);
        lose_request(w);
        vg_drv_put(&w->direct, "rival", "uid-other");
        vg_drv_put(&w->direct, keys[at], "6");
        assert_int_equal(answer_of(w), VIGIL_E_UNKNOWN_OUTCOME);
        assert_false(holds(w, keys[0], "uid-ours"));
        vg_txn_done(&w->txn);
    }
}

/* The same with a rival that has made the object itself. */
static void a_rivals_object_and_equal_counters_prove_nothing(void **state)
{
    struct world *w = *state;
    prepare(w);
    lose_request(w);
    vg_drv_put(&w->direct, keys[0], "uid-other");
    for (int i = 1; i < OPS; i++)
        vg_drv_put(&w->direct, keys[i], "6");
    assert_int_equal(answer_of(w), VIGIL_E_UNKNOWN_OUTCOME);
    assert_true(holds(w, keys[0], "uid-other"));
}

/* Other bytes in the place of ours: it did not happen and cannot happen any more. */
static void a_rivals_other_bytes_are_a_conflict_at_that_operation(void **state)
{
    struct world *w = *state;
    for (int at = 1; at < OPS; at++) {
        prepare(w);
        lose_request(w);
        vg_drv_put(&w->direct, keys[at], "7");
        assert_int_equal(answer_of(w), VIGIL_E_CONFLICT);
        assert_int_equal(w->txn.failed_op, at);
        assert_false(holds(w, keys[0], "uid-ours"));
        vg_txn_done(&w->txn);
    }
}

/* It happened, and what it made is gone again: a conflict would be tried again and bring it back.
 */
static void what_was_made_and_deleted_is_unknown(void **state)
{
    struct world *w = *state;
    prepare(w);
    lose_answer(w);
    vg_drv_delete(&w->direct, keys[0]);
    assert_int_equal(answer_of(w), VIGIL_E_UNKNOWN_OUTCOME);
}

/* A key that is only checked may move after the transaction happened. */
static void a_checked_key_that_moved_proves_nothing(void **state)
{
    struct world *w = *state;
    prepare(w);
    vg_rev checked = vg_drv_put(&w->direct, "namespace", "1");
    w->ops[OPS] = vg_drv_op_check(vg_slice_str("namespace"), checked);
    w->txn.n_ops = OPS + 1;
    lose_answer(w);
    vg_drv_delete(&w->direct, keys[0]);
    vg_drv_put(&w->direct, "namespace", "2");
    assert_int_equal(answer_of(w), VIGIL_E_UNKNOWN_OUTCOME);
}

/* The object was replaced since, and the counters too: that it was made of our bytes is proof. */
static void what_was_made_and_changed_is_found(void **state)
{
    struct world *w = *state;
    prepare(w);
    lose_answer(w);
    struct vg_rec *made = vg_drv_get(&w->direct, keys[0], 0);
    vg_drv_put(&w->direct, keys[0], "uid-ours changed");
    for (int i = 1; i < OPS; i++)
        vg_drv_put(&w->direct, keys[i], "9");
    assert_int_equal(answer_of(w), 0);
    assert_int_equal(w->txn.req.rev, made->rev);
    vg_rec_unref(made);
}

/* A delete: the key lives at another revision, so it was not deleted and will not be. */
static void a_lost_delete_of_what_has_changed_is_a_conflict(void **state)
{
    struct world *w = *state;
    vg_rev rev = vg_drv_put(&w->direct, keys[0], "1");
    w->ops[0] = vg_drv_delete_op(keys[0], rev);
    w->txn = (struct vg_txn){.ops = w->ops, .n_ops = 1};
    lose_request(w);
    vg_drv_put(&w->direct, keys[0], "2");
    assert_int_equal(answer_of(w), VIGIL_E_CONFLICT);
    assert_int_equal(w->txn.failed_op, 0);
    assert_true(holds(w, keys[0], "2"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    engine = vg_drv_args(argc, argv);
    const struct CMUnitTest tests[] = {
        CASE(a_lost_answer_is_found),
        CASE(a_rivals_equal_bytes_prove_nothing),
        CASE(a_rivals_object_and_equal_counters_prove_nothing),
        CASE(a_rivals_other_bytes_are_a_conflict_at_that_operation),
        CASE(what_was_made_and_deleted_is_unknown),
        CASE(a_checked_key_that_moved_proves_nothing),
        CASE(what_was_made_and_changed_is_found),
        CASE(a_lost_delete_of_what_has_changed_is_a_conflict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
