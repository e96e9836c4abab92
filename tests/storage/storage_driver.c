/* storage_driver.c - see storage_driver.h: engines, requests. Watches are in
 * storage_driver_watch.c. */
#include "storage_driver.h"

#include <stdio.h>
#include <stdlib.h>

#include "etcd_member.h"
#include "storage_driver_int.h"
#include "test_support.h"

/* ---- engines ---- */

typedef int open_fn(const struct vg_storage_opts *opts, struct vg_storage **ret_storage,
                    struct vg_status *reterr_status);

static const struct engine {
    const char *name;
    open_fn *open;
    unsigned features;
    const char *etcd; /* its line of versions */
} engines[] = {
    {"mem", vg_storage_open_mem, VG_DRV_FAKE_CLOCK | VG_DRV_ORDERED | VG_DRV_LOCAL, NULL},
    {"lmdb", vg_storage_open_lmdb,
     VG_DRV_FAKE_CLOCK | VG_DRV_DURABLE | VG_DRV_ORDERED | VG_DRV_LOCAL, NULL},
    {"etcd34", vg_storage_open_etcd, VG_DRV_DURABLE, "34"},
    {"etcd35", vg_storage_open_etcd, VG_DRV_DURABLE, "35"},
    {"etcd36", vg_storage_open_etcd, VG_DRV_DURABLE, "36"},
};

static const struct engine *find_engine(const char *name)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(engines); i++)
        if (strcmp(engines[i].name, name) == 0)
            return &engines[i];
    return NULL;
}

bool vg_drv_engine_has(const char *engine, enum vg_drv_feature feature)
{
    const struct engine *e = find_engine(engine);
    return e && (e->features & feature);
}

/* Why the engine cannot be tested here; NULL: it can. */
static const char *lacks(const char *engine)
{
    const struct engine *e = find_engine(engine);
    if (!e)
        return "there is no such engine";
    return e->etcd && !vg_test_etcd_binary(e->etcd) ? "its etcd is not there" : NULL;
}

const char *vg_drv_args(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s <engine> [pattern of test names]\n", argv[0]);
        exit(2);
    }
    if (lacks(argv[1])) {
        printf("SKIPPED: %s: %s\n", argv[1], lacks(argv[1]));
        exit(77);
    }
    if (argc > 2)
        cmocka_set_test_filter(argv[2]);
    return argv[1];
}

const char *const *vg_drv_engines(void)
{
    static const char *names[VG_ARRAY_LEN(engines) + 1];
    for (size_t i = 0; i < VG_ARRAY_LEN(engines); i++)
        names[i] = engines[i].name;
    return names;
}

/* ---- the end of patience ---- */

void vg_drv_die(const char *what, int err)
{
    fprintf(stderr, "storage driver: %s: %s (%s)\n", what, vg_err_text(err), vg_err_name(err));
    abort();
}

void vg_drv_turn(struct vg_drv *d, const char *what)
{
    vg_drv_watchdog(what);
    vg_loop_turn(d->loop, true);
    vg_drv_watchdog(NULL);
}

/* ---- etcd ---- */

static void give_etcd_up(struct vg_drv *d)
{
    if (!d->is_guest)
        vg_test_etcd_give(d->etcd);
    d->etcd = NULL;
}

/* ---- open and close ---- */

static void make_clock(struct vg_drv *d)
{
    d->clock = calloc(1, sizeof *d->clock);
    if (!d->clock)
        vg_drv_die("clock", -ENOMEM);
    vg_fake_clock_init(d->clock);
    d->opts.clock = &d->clock->clock;
}

/* The empty turn makes this thread the loop's, which a request may assert. */
static int make_loop(struct vg_drv *d)
{
    int err = vg_loop_new(d->opts.clock, &d->loop);
    if (err == 0)
        vg_loop_turn(d->loop, false);
    return err;
}

static void free_loop_and_clock(struct vg_drv *d)
{
    vg_loop_free(vg_steal(d->loop));
    if (d->clock && !d->is_guest) {
        vg_fake_clock_done(d->clock);
        free(d->clock);
    }
    d->clock = NULL;
    if (d->tmpdir)
        vg_test_tmpdir_remove(d->tmpdir);
    d->tmpdir = NULL;
}

static void fill_opts(struct vg_drv *d, const struct engine *e)
{
    d->opts.size = sizeof d->opts;
    if (!(e->features & VG_DRV_FAKE_CLOCK))
        d->opts.clock = vg_clock_system();
    if (!d->opts.clock)
        make_clock(d);
    if (e->etcd)
        d->etcd = vg_test_etcd_take(e->etcd);
    else if (!d->opts.dir && (e->features & VG_DRV_DURABLE))
        d->opts.dir = d->tmpdir = vg_test_tmpdir();
}

/* The options point into the driver, which may have been copied. */
static int open_engine(struct vg_drv *d, struct vg_status *reterr_status)
{
    if (d->etcd) {
        d->servers[0] = d->etcd->url;
        d->etcd_opts = (struct vg_etcd_opts){
            .servers = d->servers, .n_servers = 1, .root = "", .prefix = "/test/"};
        d->opts.etcd = &d->etcd_opts;
    }
    return find_engine(d->engine)->open(&d->opts, &d->store, reterr_status);
}

int vg_drv_try_open(struct vg_drv *d, const char *engine, const struct vg_storage_opts *opts,
                    struct vg_status *reterr_status)
{
    const struct engine *e = find_engine(engine);
    if (!e)
        return vg_fail(reterr_status, VIGIL_E_UNSUPPORTED, "no engine '%s'", engine);
    *d = (struct vg_drv){.engine = engine};
    if (opts)
        d->opts = *opts;
    fill_opts(d, e);
    int err = make_loop(d);
    if (err == 0)
        err = open_engine(d, reterr_status);
    if (err < 0) {
        free_loop_and_clock(d);
        give_etcd_up(d);
    }
    return err;
}

void vg_drv_open(struct vg_drv *d, const char *engine, const struct vg_storage_opts *opts)
{
    struct vg_status status = {0};
    int err = vg_drv_try_open(d, engine, opts, &status);
    if (err < 0)
        vg_drv_die(status.message[0] ? status.message : "open", err);
}

void vg_drv_attach(struct vg_drv *d, const struct vg_drv *host)
{
    *d = *host;
    d->is_guest = true;
    d->tmpdir = NULL;
    d->watches = NULL;
    int err = make_loop(d);
    if (err < 0)
        vg_drv_die("loop", err);
}

/* A guest's watches must go before the host closes the store under them. */
static void cancel_watches(struct vg_drv *d)
{
    for (struct vg_drv_watch *w = d->watches; w; w = w->next)
        vg_drv_watch_cancel(w);
}

void vg_drv_close_store(struct vg_drv *d)
{
    if (d->is_guest)
        cancel_watches(d);
    else
        vg_storage_close(d->store);
    d->store = NULL;
    while (vg_loop_turn(d->loop, false))
        ;
}

static void open_again(struct vg_drv *d)
{
    struct vg_status status = {0};
    int err = open_engine(d, &status);
    if (err < 0)
        vg_drv_die(status.message[0] ? status.message : "reopen", err);
}

void vg_drv_reopen(struct vg_drv *d)
{
    vg_drv_close_store(d);
    open_again(d);
}

void vg_drv_reopen_killed(struct vg_drv *d)
{
    if (d->etcd) {
        vg_test_etcd_kill(d->etcd);
        vg_test_etcd_start(d->etcd);
        vg_drv_reopen(d);
        return;
    }
    const char *copy = vg_test_tmpdir();
    vg_drv_copy_files(d->opts.dir, copy);
    vg_drv_close_store(d);
    if (d->tmpdir)
        vg_test_tmpdir_remove(d->tmpdir);
    d->opts.dir = d->tmpdir = copy;
    open_again(d);
}

void vg_drv_close(struct vg_drv *d)
{
    if (!d->loop)
        return;
    if (d->store)
        vg_drv_close_store(d);
    while (d->watches)
        vg_drv_watch_done(d->watches);
    free_loop_and_clock(d);
    give_etcd_up(d);
}

void vg_drv_advance_ms(struct vg_drv *d, uint64_t ms)
{
    if (d->clock)
        vg_fake_clock_advance(d->clock, ms * VG_NS_PER_MS);
}

int64_t vg_drv_wall_ms(const struct vg_drv *d)
{
    return vg_clock_wall_ms(d->opts.clock);
}

/* ---- requests ---- */

static void on_done(struct vg_store_req *req)
{
    req->done = NULL; /* the mark of an answer; a second call would crash here */
}

static void prepare(struct vg_drv *d, struct vg_store_req *req)
{
    *req = (struct vg_store_req){.loop = d->loop, .done = on_done};
}

/* What was refused at once is answered too. */
static int submitted(struct vg_store_req *req, int err)
{
    if (err < 0) {
        req->done = NULL;
        req->err = err;
    }
    return err;
}

int vg_drv_submit_txn(struct vg_drv *d, struct vg_txn *txn)
{
    prepare(d, &txn->req);
    return submitted(&txn->req, vg_storage_txn(d->store, txn));
}

int vg_drv_submit_range(struct vg_drv *d, struct vg_range *range)
{
    prepare(d, &range->req);
    return submitted(&range->req, vg_storage_range(d->store, range));
}

int vg_drv_submit_compact(struct vg_drv *d, struct vg_compact *compact)
{
    prepare(d, &compact->req);
    return submitted(&compact->req, vg_storage_compact(d->store, compact));
}

int vg_drv_wait(struct vg_drv *d, struct vg_store_req *req)
{
    while (!vg_drv_is_answered(req))
        vg_drv_turn(d, "the answer to a request");
    return req->err;
}

int vg_drv_txn(struct vg_drv *d, struct vg_txn *txn)
{
    int err = vg_drv_submit_txn(d, txn);
    return err < 0 ? err : vg_drv_wait(d, &txn->req);
}

int vg_drv_range(struct vg_drv *d, struct vg_range *range)
{
    int err = vg_drv_submit_range(d, range);
    return err < 0 ? err : vg_drv_wait(d, &range->req);
}

static struct vg_op make_op(enum vg_op_type type, struct vg_slice key, struct vg_slice header,
                            struct vg_slice value, vg_rev expect)
{
    struct vg_op op = {.type = type, .expect = expect};
    enum vg_rec_op rec_op = type == VG_OP_DELETE ? VG_REC_DELETE : VG_REC_PUT;
    int err = vg_rec_new(rec_op, key, header, value, &op.rec);
    if (err < 0)
        vg_drv_die("record", err);
    return op;
}

struct vg_op vg_drv_op_put(struct vg_slice key, struct vg_slice header, struct vg_slice value,
                           vg_rev expect)
{
    return make_op(VG_OP_PUT, key, header, value, expect);
}

struct vg_op vg_drv_op_delete(struct vg_slice key, vg_rev expect)
{
    return make_op(VG_OP_DELETE, key, vg_slice(NULL, 0), vg_slice(NULL, 0), expect);
}

struct vg_op vg_drv_op_check(struct vg_slice key, vg_rev expect)
{
    return make_op(VG_OP_CHECK, key, vg_slice(NULL, 0), vg_slice(NULL, 0), expect);
}

struct vg_op vg_drv_put_op(const char *key, const char *value, vg_rev expect)
{
    return vg_drv_op_put(vg_slice_str(key), vg_slice(NULL, 0), vg_slice_str(value), expect);
}

struct vg_op vg_drv_delete_op(const char *key, vg_rev expect)
{
    return vg_drv_op_delete(vg_slice_str(key), expect);
}

struct vg_op vg_drv_check_op(const char *key, vg_rev expect)
{
    return vg_drv_op_check(vg_slice_str(key), expect);
}

int vg_drv_run(struct vg_drv *d, struct vg_op *ops, uint32_t n_ops, vg_rev *ret_rev)
{
    struct vg_txn txn = {.ops = ops, .n_ops = n_ops};
    int err = vg_drv_txn(d, &txn);
    if (err == 0 && ret_rev)
        *ret_rev = txn.req.rev;
    vg_txn_done(&txn);
    return err;
}

static vg_rev must_run(struct vg_drv *d, struct vg_op op, const char *what)
{
    vg_rev rev = 0;
    int err = vg_drv_run(d, &op, 1, &rev);
    if (err < 0)
        vg_drv_die(what, err);
    return rev;
}

vg_rev vg_drv_put(struct vg_drv *d, const char *key, const char *value)
{
    return vg_drv_put_ttl(d, key, value, 0);
}

vg_rev vg_drv_put_ttl(struct vg_drv *d, const char *key, const char *value, uint64_t ttl_ms)
{
    struct vg_op op = vg_drv_put_op(key, value, VG_EXPECT_ANY);
    op.ttl_ms = ttl_ms;
    return must_run(d, op, "put");
}

vg_rev vg_drv_delete(struct vg_drv *d, const char *key)
{
    return must_run(d, vg_drv_delete_op(key, VG_EXPECT_ANY), "delete");
}

int vg_drv_put_if(struct vg_drv *d, const char *key, const char *value, vg_rev expect,
                  vg_rev *ret_rev)
{
    struct vg_op op = vg_drv_put_op(key, value, expect);
    return vg_drv_run(d, &op, 1, ret_rev);
}

struct vg_rec *vg_drv_get(struct vg_drv *d, const char *key, vg_rev at)
{
    struct vg_range range = {.keys = vg_drv_one(key), .at = at};
    int err = vg_drv_range(d, &range);
    if (err < 0)
        vg_drv_die("get", err);
    struct vg_rec *rec = range.n_recs ? vg_rec_ref(range.recs[0]) : NULL;
    vg_range_done(&range);
    return rec;
}

struct vg_keys vg_drv_one(const char *key)
{
    return (struct vg_keys){.kind = VG_KEYS_ONE, .start = vg_slice_str(key)};
}

struct vg_keys vg_drv_span(const char *start, const char *end)
{
    return (struct vg_keys){VG_KEYS_SPAN, vg_slice_str(start), vg_slice_str(end)};
}

struct vg_keys vg_drv_all(void)
{
    return (struct vg_keys){.kind = VG_KEYS_FROM, .start = vg_slice_str("")};
}

int vg_drv_compact(struct vg_drv *d, vg_rev at, vg_rev *ret_compact_rev)
{
    struct vg_compact compact = {.at = at};
    int err = vg_drv_submit_compact(d, &compact);
    if (err == 0)
        err = vg_drv_wait(d, &compact.req);
    if (ret_compact_rev)
        *ret_compact_rev = compact.req.compact_rev;
    return err;
}
