/* s_relist.c - the server is restarted under informers. A change made as soon as the server answers
 * again is what they must come to know of; who lists to get there is counted. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "events.h"
#include "informers.h"
#include "objects.h"

#define OPEN_LIMIT_NS (60 * VG_NS_PER_S)
#define BREAK_LIMIT_NS (60 * VG_NS_PER_S)
#define HAND_LIMIT_NS (600 * VG_NS_PER_S)
#define CATCH_UP_LIMIT_NS (300 * VG_NS_PER_S)
#define TRY_NS (20 * VG_NS_PER_MS)
#define TURN_MS 5

/* One who writes: tries until it is answered. */
struct marker {
    struct vg_bench_reply reply;
    struct vg_bench_conn *conn;
    struct vg_buf answer;
    bool is_under_way, is_done, was_told /* the informers */;
    uint64_t due_ns, done_ns;
};

struct relist {
    struct vg_bench *b;
    const struct vg_bench_case *k;
    struct vg_bench_informers *informers;
    struct vg_bench_informers_count count;
    struct marker marker;
    struct vg_buf collection; /* with a 0 byte */
    pid_t child;
    uint64_t number;
    uint64_t cpu_before[VG_BENCH_PROCESSES_MAX];
    struct vg_bench_process before[VG_BENCH_PROCESSES_MAX];
    size_t n_before;
};

/* ---- the marker ---- */

static void on_data(struct vg_bench_reply *r, struct vg_slice bytes)
{
    struct marker *m = VG_CONTAINER_OF(r, struct marker, reply);
    if (vg_buf_append_slice(&m->answer, bytes) < 0)
        vg_buf_clear(&m->answer);
}

static void on_end(struct vg_bench_reply *r, int err)
{
    struct marker *m = VG_CONTAINER_OF(r, struct marker, reply);
    m->is_under_way = false;
    m->is_done = err == 0 && r->status == 200;
    m->done_ns = vg_bench_now();
    m->due_ns = m->done_ns + TRY_NS;
}

static const struct vg_bench_reply_ops ops = {NULL, on_data, on_end};

static int try_mark(struct relist *x)
{
    struct marker *m = &x->marker;
    VG_AUTO(buf) path = {0};
    VG_AUTO(buf) body = {0};
    if (m->is_done || m->is_under_way || vg_bench_now() < m->due_ns)
        return 0;
    if (m->conn && vg_bench_conn_is_dead(m->conn)) {
        vg_bench_conn_free(m->conn);
        m->conn = NULL;
    }
    int r = vg_bench_object_path(x->b, VG_BENCH_STOCK, 0, &path);
    if (r == 0)
        r = vg_buf_append_byte(&path, 0);
    if (r == 0)
        r = vg_bench_mark_patch(&body, x->number, vg_bench_now());
    if (r < 0)
        return r;
    vg_buf_clear(&m->answer);
    m->reply.ops = &ops;
    m->due_ns = vg_bench_now() + TRY_NS;
    if (!m->conn && vg_bench_conn_new(&x->b->engine, &x->b->target, false, 0, &m->conn) < 0)
        return 0;
    m->is_under_way = vg_bench_conn_ask(m->conn, &m->reply,
                                        &(struct vg_bench_ask){
                                            .method = "PATCH",
                                            .path = path.p,
                                            .type = "application/merge-patch+json",
                                            .body = vg_buf_slice(&body),
                                        }) == 0;
    return 0;
}

/* ---- turning until something is so ---- */

static int turn(struct relist *x, const char *doing)
{
    int r = vg_bench_engine_turn(&x->b->engine, TURN_MS);
    if (r == 0)
        r = vg_bench_informers_tend(x->informers);
    vg_bench_informers_count(x->informers, &x->count);
    vg_bench_say(x->b, "%s: %u watch, %u have caught up, %u relists", doing, x->count.watching,
                 x->count.caught_up, (unsigned)x->count.relists);
    if (r < 0)
        return vg_fail(&x->b->status, r, "%s", vg_err_text(r));
    return vg_bench_is_interrupted() ? vg_fail(&x->b->status, VIGIL_E_CANCELED, "interrupted") : 0;
}

static int late(struct relist *x, const char *what)
{
    return vg_fail(&x->b->status, VIGIL_E_TIMEOUT, "%s: %u of %u watch, %u have caught up", what,
                   x->count.watching, x->k->watchers, x->count.caught_up);
}

/* The change was acknowledged, with this resourceVersion. */
static void tell_informers(struct relist *x)
{
    struct vg_slice v = vg_bench_list_version(vg_buf_slice(&x->marker.answer), false);
    char text[24];
    snprintf(text, sizeof text, "%.*s", VG_SLICE_ARG(v));
    x->marker.was_told = true;
    vg_bench_informers_expect(x->informers, x->number, strtoull(text, NULL, 10));
    vg_bench_informers_count(x->informers, &x->count);
}

/* A change that all must come to know of. */
static int mark_and_await(struct relist *x, uint64_t limit_ns, const char *doing)
{
    struct marker *m = &x->marker;
    uint64_t begin = vg_bench_now();
    int r = 0;
    x->number++;
    m->is_done = m->was_told = false;
    vg_bench_informers_expect(x->informers, x->number, 0);
    vg_bench_informers_count(x->informers, &x->count);
    while (r == 0 && (!m->is_done || x->count.caught_up < x->k->watchers)) {
        r = try_mark(x);
        if (r == 0)
            r = turn(x, doing);
        if (m->is_done && !m->was_told)
            tell_informers(x);
        if (r == 0 && vg_bench_now() - begin > limit_ns)
            r = late(x, "not all caught up");
    }
    return r;
}

/* ---- the restart ---- */

static int begin_restart(struct relist *x)
{
    const char *command = x->b->o->restart;
    if (!command) {
        vg_bench_say_nothing(x->b);
        fprintf(stderr, "vigil bench: restart the server at %s now\n", x->b->target.authority);
        return 0;
    }
    x->child = fork();
    if (x->child == 0) {
        /* What it leaves running is not ended by our Ctrl-C. */
        (void)setsid();
        (void)signal(SIGPIPE, SIG_DFL);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    return x->child > 0 ? 0 : vg_fail(&x->b->status, -errno, "no process for the command");
}

/* 0: it runs or went well; 1: it has ended. */
static int look_at_child(struct relist *x)
{
    int status = 0;
    if (x->child <= 0 || waitpid(x->child, &status, WNOHANG) != x->child)
        return 0;
    x->child = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 1;
    return vg_fail(&x->b->status, VIGIL_E_INTERNAL, "the command failed: %s", x->b->o->restart);
}

static int await_break(struct relist *x)
{
    uint64_t begin = vg_bench_now();
    int r = begin_restart(x);
    while (r >= 0 && x->count.broken < x->k->watchers) {
        r = turn(x, "restarting");
        if (r == 0)
            r = look_at_child(x);
        if (r >= 0 && vg_bench_now() - begin > (x->b->o->restart ? BREAK_LIMIT_NS : HAND_LIMIT_NS))
            r = late(x, "the server was not restarted");
    }
    return VG_MIN(r, 0);
}

/* What the server's processes have used since the restart began; those that are new, all of it. */
static void note_cpu(struct relist *x)
{
    const struct vg_bench_run *run = &x->b->run;
    x->n_before = run->server.n_processes;
    for (size_t i = 0; i < x->n_before; i++) {
        struct vg_bench_usage u = {0};
        x->before[i] = run->server.processes[i];
        (void)vg_bench_proc_add_cpu(x->before[i].pid, &u);
        x->cpu_before[i] = u.cpu_ns;
    }
}

static void put_cpu(struct relist *x, struct vg_bench_result *r)
{
    struct vg_bench_usage u = {0};
    vg_bench_find_server(x->b);
    const struct vg_bench_run *run = &x->b->run;
    for (size_t i = 0; i < run->server.n_processes; i++) {
        (void)vg_bench_proc_add_cpu(run->server.processes[i].pid, &u);
        for (size_t k = 0; k < x->n_before; k++)
            if (x->before[k].pid == run->server.processes[i].pid)
                u.cpu_ns -= VG_MIN(u.cpu_ns, x->cpu_before[k]);
    }
    if (run->server.n_processes)
        vg_bench_metric(r, "server_cpu_s", (double)u.cpu_ns / 1e9);
}

static void end_child(struct relist *x)
{
    /* A command that starts the server and stays with it is left alone, as the server is. */
    if (x->child > 0)
        (void)waitpid(x->child, NULL, WNOHANG);
}

/* ---- the scenario ---- */

static int open_informers(struct relist *x)
{
    struct vg_bench *b = x->b;
    VG_AUTO(buf) version = {0};
    int r = vg_bench_stock(b, VG_BENCH_STOCK, x->k->objects, b->o->nodes, true);
    if (r == 0)
        r = vg_bench_version(b, VG_BENCH_STOCK, &version);
    if (r < 0)
        return r;
    if (vg_bench_path(b, VG_BENCH_STOCK, &x->collection) < 0 ||
        vg_buf_append_byte(&x->collection, 0) < 0)
        return vg_fail(&b->status, -ENOMEM, "out of memory");
    r = vg_bench_informers_new(
        &(struct vg_bench_informers_opts){
            .engine = &b->engine,
            .target = &b->target,
            .n = x->k->watchers,
            .streams = b->o->streams,
            .is_h2 = x->k->http == VG_BENCH_H2,
            .is_protobuf = x->k->media == VG_BENCH_PROTOBUF,
            .collection = x->collection.p,
            .version = version.p,
        },
        &x->informers);
    return r < 0 ? vg_fail(&b->status, r, "out of memory") : 0;
}

static int restart(struct relist *x, struct vg_bench_result *r)
{
    struct vg_bench_meter m;
    int err = mark_and_await(x, OPEN_LIMIT_NS, "opening");
    uint64_t relists = x->count.relists, tries = x->count.tries;
    note_cpu(x);
    vg_bench_meter_begin(x->b, &m);
    if (err == 0)
        err = await_break(x);
    uint64_t broke = x->count.broke_ns;
    if (err == 0)
        err = mark_and_await(x, CATCH_UP_LIMIT_NS, "catching up");
    if (err < 0)
        return err;
    vg_bench_meter_end(x->b, &m, r);
    vg_bench_metric(r, "relists", (double)(x->count.relists - relists));
    vg_bench_metric(r, "s_until_answered", (double)(x->marker.done_ns - broke) / 1e9);
    vg_bench_metric(r, "s_until_all_caught_up",
                    (double)(VG_MAX(x->count.caught_up_ns, x->marker.done_ns) - broke) / 1e9);
    vg_bench_metric(r, "tries", (double)(x->count.tries - tries));
    vg_bench_metric(r, "list_bytes", (double)x->count.list_bytes);
    put_cpu(x, r);
    return 0;
}

int vg_bench_relist(struct vg_bench *b, const struct vg_bench_case *k, struct vg_bench_result *r)
{
    struct relist x = {.b = b, .k = k};
    if (!b->o->restart && isatty(STDIN_FILENO) != 1)
        return vg_fail(&b->status, VIGIL_E_INVALID,
                       "relist needs --restart-command, or a terminal to ask for a restart on");
    int err = open_informers(&x);
    if (err == 0)
        err = restart(&x, r);
    end_child(&x);
    vg_bench_informers_free(x.informers);
    vg_bench_conn_free(x.marker.conn);
    vg_buf_done(&x.marker.answer);
    vg_buf_done(&x.collection);
    return err;
}
