/* rig.c - see rig.h. */
#include "rig.h"

#include <stdlib.h>

/* Under way at once: enough that the commit thread makes groups, as under load. */
#define WRITERS 256u
#define HISTORY_BYTES ((size_t)8 << 30)
#define HISTORY_MS ((uint64_t)24 * 3600 * 1000)

uint64_t rig_cpu_ns(void)
{
    struct bench_usage u;
    bench_usage_now(&u);
    return u.thread_ns;
}

static void must(int r, const char *what)
{
    if (r < 0)
        bench_die("%s: %s", what, vg_err_text(r));
}

/* ---- life ---- */

void rig_open_store(struct rig *r, const char *dir)
{
    struct vg_storage_opts o = {.size = sizeof o, .dir = dir, .unsafe_no_fsync = true};
    *r = (struct rig){0};
    pods_init(&r->pods);
    must(vg_loop_new(vg_clock_system(), &r->io), "loop");
    must(vg_loop_new(vg_clock_system(), &r->feed), "loop");
    must(vg_loop_new(vg_clock_system(), &r->loop), "loop");
    must(dir ? vg_storage_open_lmdb(&o, &r->storage, NULL)
             : vg_storage_open_mem(&o, &r->storage, NULL),
         "opening the store");
}

void rig_open_cache(struct rig *r)
{
    struct vg_cacher_opts o = {
        .storage = r->storage,
        .kinds = &pods_kind,
        .n_kinds = 1,
        .bytes_max = HISTORY_BYTES,
        .window_ms = HISTORY_MS,
        .seed = 1,
    };
    must(vg_cacher_open(&o, r->feed, &r->cacher), "opening the cache");
    while (!vg_cacher_is_ready(r->cacher))
        vg_loop_turn(r->feed, true);
    must(vg_cache_port_open(r->cacher, r->loop, &r->port), "opening a port");
    rig_settle(r);
}

void rig_close_cache(struct rig *r)
{
    bool is_done = false;
    vg_cache_port_drain(r->port);
    rig_settle(r);
    vg_cache_port_close(r->port);
    rig_settle(r);
    vg_cacher_close(r->cacher, &is_done);
    vg_loop_turn_until(r->feed, &is_done);
    r->port = NULL;
    r->cacher = NULL;
}

void rig_close(struct rig *r)
{
    if (r->cacher)
        rig_close_cache(r);
    vg_storage_close(r->storage);
    while (vg_loop_turn(r->io, false) || vg_loop_turn(r->feed, false) ||
           vg_loop_turn(r->loop, false))
        ;
    vg_loop_free(r->loop);
    vg_loop_free(r->feed);
    vg_loop_free(r->io);
    pods_done(&r->pods);
}

/* ---- writing ---- */

struct writing {
    struct rig *rig;
    rig_choose_fn *choose;
    void *arg;
    uint64_t n, sent, answered;
    bool is_done;
};

struct writer {
    struct vg_txn txn;
    struct vg_op op;
    struct writing *all;
};

static void write_next(struct writer *w)
{
    struct writing *a = w->all;
    if (a->sent == a->n)
        return;
    struct pod_id pod = a->choose(a->sent++, a->arg);
    w->op = (struct vg_op){.type = VG_OP_PUT, .expect = VG_EXPECT_ANY};
    w->op.rec = pods_make(&a->rig->pods, pod);
    w->txn.ops = &w->op;
    w->txn.n_ops = 1;
    must(vg_storage_txn(a->rig->storage, &w->txn), "a write");
}

static void on_written(struct vg_store_req *req)
{
    struct writer *w = VG_CONTAINER_OF(req, struct writer, txn.req);
    must(req->err, "a write");
    vg_txn_done(&w->txn);
    w->all->is_done = ++w->all->answered == w->all->n;
    write_next(w);
}

void rig_write(struct rig *r, uint64_t n, rig_choose_fn *choose, void *arg)
{
    struct writing all = {.rig = r, .choose = choose, .arg = arg, .n = n, .is_done = n == 0};
    struct writer *writers = bench_alloc(WRITERS, sizeof *writers);
    for (uint32_t i = 0; i < WRITERS; i++) {
        writers[i].all = &all;
        writers[i].txn.req.loop = r->io;
        writers[i].txn.req.done = on_written;
        write_next(&writers[i]);
    }
    vg_loop_turn_until(r->io, &all.is_done);
    free(writers);
    bench_check_interrupt();
}

struct compacting {
    struct vg_compact compact;
    bool is_done;
};

static void on_compacted(struct vg_store_req *req)
{
    VG_CONTAINER_OF(req, struct compacting, compact.req)->is_done = true;
}

void rig_compact(struct rig *r)
{
    struct compacting c = {.compact = {.at = vg_storage_revision(r->storage)}};
    c.compact.req.loop = r->io;
    c.compact.req.done = on_compacted;
    must(vg_storage_compact(r->storage, &c.compact), "a compaction");
    vg_loop_turn_until(r->io, &c.is_done);
    must(c.compact.req.err, "a compaction");
}

/* ---- turning ---- */

uint64_t rig_feed(struct rig *r)
{
    vg_rev want = vg_storage_revision(r->storage);
    uint64_t begin = rig_cpu_ns();
    while (vg_cacher_revision(r->cacher) < want)
        vg_loop_turn(r->feed, true);
    return rig_cpu_ns() - begin;
}

static void on_pulled(struct vg_cache_wait *wait, int err)
{
    if (err < 0)
        bench_die("the port did not come to a revision: %s", vg_err_text(err));
    wait->port = NULL;
}

/* A port that nobody on it is concerned by is not woken: so ask. */
uint64_t rig_pull(struct rig *r)
{
    uint64_t begin = rig_cpu_ns();
    struct vg_cache_wait wait;
    vg_cache_wait_fresh(r->port, vg_cacher_revision(r->cacher), &wait, on_pulled);
    while (wait.port)
        vg_loop_turn(r->loop, true);
    return rig_cpu_ns() - begin;
}

uint64_t rig_settle(struct rig *r)
{
    uint64_t begin = rig_cpu_ns();
    while (vg_loop_turn(r->loop, false))
        ;
    return rig_cpu_ns() - begin;
}
