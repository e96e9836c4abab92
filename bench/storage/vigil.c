/* vigil.c - writing to the engine in a closed loop: each writer sends its next request when the
 * last is answered, all from one thread. */
#include "vigil.h"

#include <stdlib.h>

struct run;

struct writer {
    struct vg_txn txn;
    struct vg_op op;
    struct wl_op next;
    struct wl_writer *wl;
    struct run *run;
    uint64_t sent_ns;
};

struct run {
    struct vg_storage *s;
    const struct bench_plan *plan;
    struct bench_slice *slice;
    uint64_t begin_ns, deadline_ns;
    uint64_t now_ns; /* of the last answer: one clock call serves the answer and the next request */
    uint64_t sent, user_bytes;
    uint32_t under_way;
    bool over; /* nothing is sent any more */
    bool idle;
};

void vigil_store_open(struct vigil_store *store, const char *engine, const char *dir,
                      bool unsafe_no_fsync)
{
    struct vg_storage_opts opts = {.size = sizeof opts, .dir = dir};
    opts.unsafe_no_fsync = unsafe_no_fsync;
    struct vg_status status = {0};
    if (vg_loop_new(vg_clock_system(), &store->loop) < 0)
        bench_die("cannot make a loop");
    int r = strcmp(engine, "mem") == 0 ? vg_storage_open_mem(&opts, &store->s, &status)
                                       : vg_storage_open_lmdb(&opts, &store->s, &status);
    if (r < 0)
        bench_die("cannot open the %s engine in %s: %s (%s)", engine, dir, status.message,
                  vg_err_text(r));
}

void vigil_store_close(struct vigil_store *store)
{
    vg_storage_close(store->s);
    while (vg_loop_turn(store->loop, false))
        ;
    vg_loop_free(store->loop);
    *store = (struct vigil_store){0};
}

static void on_watchdog(struct vg_timer *timer)
{
    struct vigil_watchdog *dog = VG_CONTAINER_OF(timer, struct vigil_watchdog, timer);
    if (bench_now_ns() > dog->limit_ns)
        bench_die("the engine has stopped answering");
    vg_timer_start(dog->loop, timer, 200 * VG_NS_PER_MS, on_watchdog);
}

/* 30 s beyond the time it should take: a slow disk is no reason to give up. */
void vigil_watchdog_start(struct vigil_watchdog *dog, struct vg_loop *loop, uint64_t ns)
{
    *dog = (struct vigil_watchdog){.loop = loop};
    dog->limit_ns = bench_now_ns() + ns + 30 * VG_NS_PER_S;
    vg_timer_start(loop, &dog->timer, 200 * VG_NS_PER_MS, on_watchdog);
}

void vigil_watchdog_stop(struct vigil_watchdog *dog)
{
    vg_timer_stop(dog->loop, &dog->timer);
}

static bool wants_more(struct run *run)
{
    const struct bench_plan *plan = run->plan;
    if (run->now_ns >= run->deadline_ns || bench_interrupted())
        run->over = true;
    if (plan->max_writes && run->sent >= plan->max_writes)
        run->over = true;
    return !run->over;
}

static void on_done(struct vg_store_req *req);

/* Sends w->next. */
static void writer_send(struct writer *w)
{
    struct run *run = w->run;
    struct vg_rec *rec = NULL;
    int r = vg_rec_new(VG_REC_PUT, vg_slice(w->next.key, WL_KEY_LEN), w->next.header, w->next.value,
                       &rec);
    if (r < 0)
        bench_die("cannot make a record: %s", vg_err_text(r));
    w->op = (struct vg_op){.type = VG_OP_PUT, .rec = rec, .expect = w->next.expect};
    w->txn.ops = &w->op;
    w->txn.n_ops = 1;
    w->txn.no_prev = true; /* as an API server writes: it knows what it replaces */
    r = vg_storage_txn(run->s, &w->txn);
    if (r < 0)
        bench_die("the engine refused a write: %s", vg_err_text(r));
    run->under_way++;
}

static void writer_next(struct writer *w)
{
    wl_next(w->wl, &w->next);
    w->sent_ns = w->run->now_ns;
    w->run->sent++;
    writer_send(w);
}

static void count_answer(struct run *run, const struct writer *w)
{
    struct bench_slice *slice = run->slice;
    slice->total_writes++;
    if (run->now_ns > run->deadline_ns)
        return;
    uint64_t quarter = (run->now_ns - run->begin_ns) / (250 * VG_NS_PER_MS);
    slice->writes++;
    slice->quarters[VG_MIN(quarter, (uint64_t)BENCH_QUARTERS_MAX - 1)]++;
    vg_hist_add(&slice->latency, run->now_ns - w->sent_ns);
}

static void on_done(struct vg_store_req *req)
{
    struct writer *w = VG_CONTAINER_OF(req, struct writer, txn.req);
    struct run *run = w->run;
    int err = req->err;
    if (err < 0 && err != VIGIL_E_BUSY)
        bench_die("a write failed: %s (%s)", req->status.message, vg_err_text(err));
    run->now_ns = bench_now_ns();
    run->under_way--;
    vg_txn_done(&w->txn);
    if (err == VIGIL_E_BUSY) { /* as a client would: the same again, and the clock goes on */
        run->slice->refused++;
        writer_send(w);
        return;
    }
    count_answer(run, w);
    wl_done(w->wl, &w->next, req->rev);
    if (wants_more(run))
        writer_next(w);
    run->idle = run->under_way == 0;
}

static void writers_start(struct run *run, struct writer *writers, struct workload *load,
                          struct vg_loop *loop)
{
    for (uint32_t i = 0; i < load->n_writers; i++) {
        writers[i].wl = &load->writers[i];
        writers[i].run = run;
        writers[i].txn.req.loop = loop;
        writers[i].txn.req.done = on_done;
        if (wants_more(run))
            writer_next(&writers[i]);
    }
    run->idle = run->under_way == 0; /* when interrupted before the first */
}

static void fill_slice(const struct vg_storage_stats *from, const struct vg_storage_stats *to,
                       struct bench_slice *slice)
{
    slice->commits = to->commits - from->commits;
    slice->syncs = to->syncs - from->syncs;
    slice->wal_bytes = to->wal_bytes - from->wal_bytes;
    slice->checkpoints = to->checkpoints - from->checkpoints;
}

void vigil_write(struct vigil_store *store, struct workload *load, const struct bench_plan *plan,
                 struct bench_slice *ret_slice)
{
    struct writer *writers = bench_alloc(load->n_writers, sizeof *writers);
    struct run run = {.s = store->s, .plan = plan, .slice = ret_slice};
    struct vg_storage_stats before, after;
    struct bench_usage begin, end;
    struct vigil_watchdog dog;
    vg_storage_stats(store->s, &before);
    vigil_watchdog_start(&dog, store->loop, plan->ns);
    bench_usage_now(&begin);
    run.begin_ns = run.now_ns = begin.wall_ns;
    run.deadline_ns = begin.wall_ns + plan->ns;
    writers_start(&run, writers, load, store->loop);
    vg_loop_turn_until(store->loop, &run.idle);
    bench_usage_now(&end);
    vigil_watchdog_stop(&dog);
    vg_storage_stats(store->s, &after);
    fill_slice(&before, &after, ret_slice);
    uint64_t counted_ns = VG_MIN(end.wall_ns, run.deadline_ns) - begin.wall_ns;
    ret_slice->secs = (double)counted_ns / 1e9;
    ret_slice->user_bytes = (double)(ret_slice->total_writes * workload_bytes(load));
    ret_slice->cpu_s = (double)(end.cpu_ns - begin.cpu_ns) / 1e9;
    ret_slice->engine_s = ret_slice->cpu_s - (double)(end.thread_ns - begin.thread_ns) / 1e9;
    free(writers);
}

/* ---- as a contestant ---- */

struct vigil_row {
    const char *engine;
    char *dir;
    struct workload *load;
};

static bool is_mem(const struct vigil_row *row)
{
    return strcmp(row->engine, "mem") == 0;
}

struct vigil_row *vigil_row_new(const char *engine, const char *dir, uint32_t writers,
                                size_t value_len)
{
    struct vigil_row *row = bench_alloc(1, sizeof *row);
    row->engine = engine;
    row->dir = bench_path(dir, "vigil");
    row->load = workload_new(writers, value_len, false);
    return row;
}

static void fill(struct vigil_store *store, struct workload *load)
{
    struct bench_plan plan = {.ns = 60 * VG_NS_PER_S, .max_writes = workload_fill(load)};
    struct bench_slice *slice = bench_alloc(1, sizeof *slice);
    vigil_write(store, load, &plan, slice);
    free(slice);
}

void vigil_row_fill(struct vigil_row *row)
{
    struct vigil_store store = {0};
    if (is_mem(row))
        return;
    vigil_store_open(&store, row->engine, row->dir, true);
    fill(&store, row->load);
    vigil_store_close(&store);
}

/* The mem engine forgets at each close: its load begins anew. */
static void fill_mem(struct vigil_row *row, struct vigil_store *store)
{
    struct workload *old = row->load;
    row->load = workload_new(old->n_writers, old->value_len, false);
    workload_free(old);
    fill(store, row->load);
}

void vigil_row_slice(struct vigil_row *row, const struct bench_plan *plan,
                     struct bench_slice *ret_slice)
{
    struct vigil_store store = {0};
    vigil_store_open(&store, row->engine, row->dir, false);
    if (is_mem(row))
        fill_mem(row, &store);
    uint64_t written = bench_written();
    vigil_write(&store, row->load, plan, ret_slice);
    uint64_t begin = bench_now_ns();
    vigil_store_close(&store);
    ret_slice->close_s = (double)(bench_now_ns() - begin) / 1e9;
    ret_slice->written = bench_written() - written;
}

const struct workload *vigil_row_load(const struct vigil_row *row)
{
    return row->load;
}

void vigil_row_free(struct vigil_row *row)
{
    if (!row)
        return;
    workload_free(row->load);
    free(row->dir);
    free(row);
}
