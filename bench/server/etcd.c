/* etcd.c - what a server adds to etcd: the same creates into one etcd by vigild's engine alone (in
 * this process, one transaction each, nothing around it), by vigild on it and by kube-apiserver on
 * it. They take turns, so that what the machine does meanwhile hits all. The bar is the processor
 * time of the server itself; that of etcd is shown beside it. */
#include <inttypes.h>
#include <stdio.h>

#include "creates.h"
#include "rows.h"
#include "server/storage/storage.h"

#define CLIENTS 32u
#define VALUE_BYTES 1000u

struct figures {
    double rate[ROUNDS_MAX], own[ROUNDS_MAX], store[ROUNDS_MAX];
};

/* ---- the engine alone ---- */

struct bare {
    struct vg_loop *loop;
    struct vg_storage *storage;
    uint64_t ends_ns, answers, next;
    unsigned under_way;
};

struct bare_write {
    struct vg_txn txn;
    struct vg_op op;
    struct bare *bare;
};

static void send_one(struct bare_write *w)
{
    static char value[VALUE_BYTES];
    char key[96];
    struct bare *b = w->bare;
    int n = snprintf(key, sizeof key, "/registry/bare/%" PRIu64, b->next++);
    if (!value[0])
        memset(value, 'v', sizeof value);
    w->op = (struct vg_op){.type = VG_OP_PUT};
    if (vg_rec_new(VG_REC_PUT, vg_slice(key, (size_t)n), vg_slice(NULL, 0),
                   vg_slice(value, sizeof value), &w->op.rec) < 0 ||
        vg_storage_txn(b->storage, &w->txn) < 0)
        bench_die("the engine takes no write");
    b->under_way++;
}

static void on_written(struct vg_store_req *req)
{
    struct bare_write *w = VG_CONTAINER_OF(req, struct bare_write, txn.req);
    if (req->err < 0)
        bench_die("the engine cannot write: %s", req->status.message);
    vg_txn_done(&w->txn);
    w->bare->answers++;
    w->bare->under_way--;
    if (bench_now_ns() < w->bare->ends_ns)
        send_one(w);
}

static double bare_rate(struct bare *b, uint64_t ms)
{
    static struct bare_write writes[CLIENTS];
    uint64_t before = b->answers, begin = bench_now_ns();
    b->ends_ns = begin + ms * 1000000u;
    for (unsigned i = 0; i < CLIENTS; i++) {
        writes[i] = (struct bare_write){.bare = b};
        writes[i].txn = (struct vg_txn){
            .req = {.loop = b->loop, .done = on_written}, .ops = &writes[i].op, .n_ops = 1};
        writes[i].txn.no_prev = true;
        send_one(&writes[i]);
    }
    while (b->under_way > 0)
        vg_loop_turn(b->loop, true);
    return (double)(b->answers - before) / ((double)(bench_now_ns() - begin) / 1e9);
}

static void bare_open(struct bare *b, const struct server *etcd)
{
    const char *const servers[] = {etcd->etcd};
    struct vg_etcd_opts e = {
        .servers = servers, .n_servers = 1, .root = "/registry/", .prefix = "/registry/"};
    struct vg_storage_opts o = {.size = sizeof o, .etcd = &e};
    struct vg_status status = {0};
    *b = (struct bare){0};
    if (vg_loop_new(vg_clock_system(), &b->loop) < 0 ||
        vg_storage_open_etcd(&o, &b->storage, &status) < 0)
        bench_die("cannot open etcd: %s", status.message);
}

static void bare_close(struct bare *b)
{
    vg_storage_close(b->storage);
    while (vg_loop_turn(b->loop, false))
        ;
    vg_loop_free(b->loop);
}

/* ---- rows ---- */

static uint64_t slice_ms(const struct bench *b)
{
    return b->quick ? 1000 : 3000;
}

/* One turn; s NULL: the engine alone. */
static void turn(const struct bench *b, const struct server *etcd, const struct server *s,
                 struct bare *bare, struct figures *ret, size_t i)
{
    uint64_t store = server_store_cpu_ns(etcd), own = s ? server_own_cpu_ns(s) : 0, n = 0;
    if (s) {
        struct creates r;
        creates_run(&s->targets[true], CLIENTS, slice_ms(b), &r);
        n = r.answers;
        ret->rate[i] = (double)n / r.secs;
        ret->own[i] = (double)(server_own_cpu_ns(s) - own) / 1e3 / (double)VG_MAX(n, 1u);
    } else if (bare) {
        uint64_t before = bare->answers;
        ret->rate[i] = bare_rate(bare, slice_ms(b));
        n = bare->answers - before;
    }
    ret->store[i] = (double)(server_store_cpu_ns(etcd) - store) / 1e3 / (double)VG_MAX(n, 1u);
}

static void show(const struct bench *b, const struct figures *f, const char *who, bool has_own)
{
    report_row(b->report, "/s", f->rate, b->rounds, "creates, %u clients: %s", CLIENTS, who);
    if (has_own)
        report_row(b->report, "us", f->own, b->rounds, "  its own processor time for one");
    report_row(b->report, "us", f->store, b->rounds, "  etcd's for one");
}

void rows_etcd(const struct bench *b)
{
    static struct figures bare_figures, ours, theirs;
    struct server etcd, vigild, kube;
    struct bare bare;
    if (!b->kube || !server_start_etcd(&etcd, b->kube, b->dir)) {
        printf("etcd: not measured; --kube DIR names a folder with etcd and kube-apiserver\n");
        return;
    }
    bare_open(&bare, &etcd);
    server_start_on(&vigild, b->binary, &etcd, b->dir);
    pods_fill(&vigild, 1, 1);
    server_start_kube_on(&kube, b->kube, &etcd, b->dir);
    double ratio[ROUNDS_MAX];
    for (size_t i = 0; i < b->rounds; i++) {
        bench_progress("etcd: round %zu", i + 1);
        turn(b, &etcd, NULL, &bare, &bare_figures, i);
        turn(b, &etcd, &vigild, NULL, &ours, i);
        turn(b, &etcd, &kube, NULL, &theirs, i);
        ratio[i] = ours.own[i] / theirs.own[i];
    }
    show(b, &bare_figures, "the engine alone", false);
    show(b, &ours, "vigild, TLS", true);
    show(b, &theirs, "kube-apiserver, TLS", true);
    report_bar(b->report, report_median(ratio, b->rounds), 1.0 / 8,
               "x kube-apiserver: own processor time for a create");
    bare_close(&bare);
    server_stop(&kube);
    server_stop(&vigild);
    server_stop(&etcd);
    bench_remove_tree(kube.dir);
    bench_remove_tree(vigild.dir);
    bench_remove_tree(etcd.dir);
}
