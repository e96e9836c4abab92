/* s_store.c - the scenarios without watchers: fill, list, page. */
#include <errno.h>
#include <stdio.h>

#include "bench.h"
#include "client/transport/transport.h"
#include "events.h"

/* ---- fill ---- */

struct fill {
    struct vg_bench *b;
    struct vg_bench_meter meter;
};

static void on_begin(void *arg)
{
    struct fill *f = arg;
    vg_bench_meter_begin(f->b, &f->meter);
}

int vg_bench_fill(struct vg_bench *b, const struct vg_bench_case *k, struct vg_bench_result *r)
{
    static struct vg_bench_writers_result result;
    struct vg_bench_usage before, after;
    struct fill f = {.b = b};
    vg_bench_param_number(r, "clients", VG_MIN(b->o->clients, k->objects));
    int err = vg_bench_clear(b, VG_BENCH_STOCK);
    if (err < 0)
        return err;
    bool has_memory = vg_bench_memory(b, &before);
    err = vg_bench_create(b, VG_BENCH_STOCK, k->objects, b->o->nodes, k, on_begin, &f, &result);
    if (err < 0)
        return err;
    vg_bench_meter_end(b, &f.meter, r);
    vg_bench_metric(r, "creates_per_s", (double)result.answers / ((double)result.took_ns / 1e9));
    vg_bench_quantiles(r, "", &result.latency);
    vg_bench_metric(r, "throttled", (double)result.throttled);
    if (f.meter.has_server)
        vg_bench_metric(r, "server_cpu_us_per_create",
                        (double)f.meter.server.cpu_ns / 1e3 / (double)result.answers);
    vg_bench_settle(b);
    if (has_memory && vg_bench_memory(b, &after)) {
        vg_bench_metric(r, "server_rss_bytes", (double)after.rss_bytes);
        vg_bench_metric(r, "server_anon_bytes", (double)after.anonymous_bytes);
        vg_bench_metric(r, "server_anon_bytes_before", (double)before.anonymous_bytes);
        vg_bench_metric(r, "server_anon_bytes_per_object",
                        ((double)after.anonymous_bytes - (double)before.anonymous_bytes) /
                            (double)k->objects);
    }
    return 0;
}

/* ---- lists ---- */

/* A list may take less than a millisecond: it is repeated for so long at least, after some that do
 * not count. */
#define LEAST_NS (500 * VG_NS_PER_MS)
#define LEAST_QUICK_NS (50 * VG_NS_PER_MS)
#define WARM_UP_PARTS 10u

/* What the first bytes of a list say; the rest is counted. */
#define HEAD_MAX 4096u

struct lister {
    struct vg_bench_reply reply;
    struct vg_buf head;
    uint64_t bytes, marks;
    char tail[3]; /* of what came before: a mark may be cut */
    size_t tail_n;
    bool counts_marks, is_done;
    int err;
};

static void count_marks(struct lister *l, struct vg_slice s)
{
    char seam[6];
    size_t n = VG_MIN(s.n, (size_t)3);
    memcpy(seam, l->tail, l->tail_n);
    memcpy(seam + l->tail_n, s.p, n);
    l->marks += memmem(seam, l->tail_n + n, "vgb~", 4) != NULL;
    for (const char *at = s.p, *end = s.p + s.n; (at = memmem(at, (size_t)(end - at), "vgb~", 4));
         at += 4)
        l->marks++;
    if (s.n >= 3) {
        memcpy(l->tail, s.p + s.n - 3, 3);
        l->tail_n = 3;
        return;
    }
    memcpy(seam, l->tail, l->tail_n);
    memcpy(seam + l->tail_n, s.p, s.n);
    size_t all = l->tail_n + s.n, keep = VG_MIN(all, (size_t)3);
    memcpy(l->tail, seam + all - keep, keep);
    l->tail_n = keep;
}

static void on_data(struct vg_bench_reply *r, struct vg_slice bytes)
{
    struct lister *l = VG_CONTAINER_OF(r, struct lister, reply);
    l->bytes += bytes.n;
    if (l->head.n < HEAD_MAX && l->err == 0)
        l->err = vg_buf_append(&l->head, bytes.p, VG_MIN(bytes.n, HEAD_MAX - l->head.n));
    if (l->counts_marks)
        count_marks(l, bytes);
}

static void on_end(struct vg_bench_reply *r, int err)
{
    struct lister *l = VG_CONTAINER_OF(r, struct lister, reply);
    l->is_done = true;
    l->err = l->err ? l->err : err;
}

static const struct vg_bench_reply_ops ops = {NULL, on_data, on_end};

struct listing {
    struct vg_bench *b;
    const struct vg_bench_case *k;
    struct vg_bench_engine engine;
    struct vg_bench_conn *conn;
    struct lister l;
};

static int list_once(struct listing *x, const struct vg_buf *path)
{
    struct vg_bench *b = x->b;
    vg_buf_clear(&x->l.head);
    x->l = (struct lister){.reply.ops = &ops, .head = x->l.head, .counts_marks = x->l.counts_marks};
    const char *accept = x->k->media == VG_BENCH_PROTOBUF ? "application/vnd.kubernetes.protobuf"
                                                          : "application/json";
    int r = vg_bench_conn_ask(
        x->conn, &x->l.reply,
        &(struct vg_bench_ask){
            .method = "GET", .path = path->p, .accept = accept, .is_gzip = x->k->is_gzip});
    for (uint64_t begin = vg_bench_now(); r == 0 && !x->l.is_done;) {
        r = vg_bench_engine_turn(&x->engine, 100);
        if (r == 0 && vg_bench_is_interrupted())
            r = VIGIL_E_CANCELED;
        if (r == 0 && vg_bench_now() - begin > 120 * VG_NS_PER_S)
            r = VIGIL_E_TIMEOUT;
    }
    r = r == 0 ? x->l.err : r;
    if (r < 0)
        return vg_fail(&b->status, r, "a list failed: %s",
                       vg_bench_conn_is_dead(x->conn) ? vg_bench_conn_trouble(x->conn)
                                                      : vg_err_text(r));
    if (x->l.reply.status != 200)
        return vg_fail(&b->status, VIGIL_E_UNSUPPORTED, "a list is answered %d: %.*s",
                       x->l.reply.status, (int)VG_MIN(x->l.head.n, (size_t)150), x->l.head.p);
    return 0;
}

static int listing_open(struct listing *x, struct vg_bench *b, const struct vg_bench_case *k)
{
    *x = (struct listing){.b = b, .k = k};
    int r = vg_bench_engine_init(&x->engine);
    if (r == 0)
        r = vg_bench_conn_new(&x->engine, &b->target, k->http == VG_BENCH_H2, 0, &x->conn);
    return r < 0 ? vg_fail(&b->status, r, "%s", vg_err_text(r)) : 0;
}

static void listing_close(struct listing *x)
{
    vg_bench_conn_free(x->conn);
    vg_bench_engine_done(&x->engine);
    vg_buf_done(&x->l.head);
}

/* Whether the i-th is still to be made. */
static bool wants_more(const struct vg_bench *b, uint32_t i, uint64_t since_ns, bool is_warm_up)
{
    uint64_t least = b->o->quick ? LEAST_QUICK_NS : LEAST_NS;
    uint64_t spent = vg_bench_now() - since_ns;
    return is_warm_up ? spent < least / WARM_UP_PARTS : i < b->o->lists || spent < least;
}

static void put_list_metrics(struct vg_bench_result *r, const struct vg_bench_meter *m,
                             uint32_t lists, double bytes)
{
    vg_bench_metric(r, "lists", lists);
    vg_bench_metric(r, "wall_ms_per_list", (double)m->wall_ns / 1e6 / lists);
    vg_bench_metric(r, "bytes_per_list", bytes / lists);
    if (m->has_server)
        vg_bench_metric(r, "server_cpu_ms_per_list", (double)m->server.cpu_ns / 1e6 / lists);
}

/* began_ns: of the first, which was looked at. */
static int list_often(struct listing *x, const struct vg_buf *path, uint64_t began_ns,
                      struct vg_bench_result *r)
{
    struct vg_bench *b = x->b;
    struct vg_bench_meter m;
    double bytes = 0;
    uint32_t n = 0;
    int err = 0;
    while (err == 0 && wants_more(b, 0, began_ns, true))
        err = list_once(x, path);
    vg_bench_meter_begin(b, &m);
    for (uint64_t since = vg_bench_now(); err == 0 && wants_more(b, n, since, false); n++) {
        vg_bench_say(b, "list %u", n + 1);
        err = list_once(x, path);
        bytes += (double)x->l.bytes;
    }
    vg_bench_meter_end(b, &m, r);
    if (err == 0)
        put_list_metrics(r, &m, n, bytes);
    return err;
}

static int list_path(const struct vg_bench *b, const struct vg_bench_case *k, struct vg_buf *out)
{
    int r = vg_bench_path(b, VG_BENCH_STOCK, out);
    if (r == 0 && k->selector == VG_BENCH_NODE)
        r = vg_buf_printf(out, "?fieldSelector=spec.nodeName%%3D%s-node-0", b->ns[VG_BENCH_STOCK]);
    if (r == 0 && k->selector == VG_BENCH_LABEL)
        r = vg_buf_printf(out, "?labelSelector=group%%3Dg-0");
    return r < 0 ? r : vg_buf_append_byte(out, 0);
}

static uint64_t listed_objects(const struct vg_bench *b, const struct vg_bench_case *k)
{
    return k->selector == VG_BENCH_ALL ? k->objects : (k->objects + b->o->nodes - 1) / b->o->nodes;
}

/* The first is looked at and not measured: all must be there. */
static int check_list(struct listing *x, const struct vg_buf *path)
{
    uint64_t wanted = listed_objects(x->b, x->k);
    x->l.counts_marks = !x->k->is_gzip;
    int r = list_once(x, path);
    if (r == 0 && x->l.counts_marks && x->l.marks != wanted)
        r = vg_fail(&x->b->status, VIGIL_E_INTERNAL, "a list has %u of %u objects",
                    (unsigned)x->l.marks, (unsigned)wanted);
    x->l.counts_marks = false;
    return r;
}

int vg_bench_list(struct vg_bench *b, const struct vg_bench_case *k, struct vg_bench_result *r)
{
    struct listing x;
    VG_AUTO(buf) path = {0};
    vg_bench_param_number(r, "lists", b->o->lists);
    int err = vg_bench_stock(b, VG_BENCH_STOCK, k->objects, b->o->nodes, true);
    if (err == 0)
        err = listing_open(&x, b, k);
    if (err != 0)
        return err;
    if (list_path(b, k, &path) < 0)
        err = vg_fail(&b->status, -ENOMEM, "out of memory");
    uint64_t began = vg_bench_now();
    if (err == 0)
        err = check_list(&x, &path);
    if (err == 0)
        err = list_often(&x, &path, began, r);
    if (err == 0)
        vg_bench_metric(r, "items", (double)listed_objects(b, k));
    listing_close(&x);
    return err;
}

/* ---- pages ---- */

static int page_path(struct vg_bench *b, struct vg_slice next, struct vg_buf *out)
{
    vg_buf_clear(out);
    int r = vg_bench_path(b, VG_BENCH_STOCK, out);
    if (r == 0)
        r = vg_buf_printf(out, "?limit=%u", b->o->page);
    if (r == 0 && next.n)
        r = vg_buf_append_slice(out, VG_SLICE_LIT("&continue="));
    if (r == 0 && next.n)
        r = vg_path_escape(out, next);
    if (r == 0)
        r = vg_buf_append_byte(out, 0);
    return r < 0 ? vg_fail(&b->status, r, "out of memory") : 0;
}

/* All pages, one after the other. */
static int walk_pages(struct listing *x, struct vg_buf *path, uint64_t *ret_pages, double *bytes)
{
    uint64_t marks = 0, limit = x->k->objects / x->b->o->page + 2;
    *ret_pages = 0;
    struct vg_slice next = {NULL, 0};
    do {
        int r = page_path(x->b, next, path);
        if (r == 0)
            r = list_once(x, path);
        if (r < 0)
            return r;
        ++*ret_pages;
        marks += x->l.marks;
        *bytes += (double)x->l.bytes;
        next = vg_bench_list_continue(vg_buf_slice(&x->l.head), x->k->media == VG_BENCH_PROTOBUF);
    } while (next.n && *ret_pages < limit);
    if (next.n || (x->l.counts_marks && marks != x->k->objects))
        return vg_fail(&x->b->status, VIGIL_E_INTERNAL, "%u pages have %u of %u objects",
                       (unsigned)*ret_pages, (unsigned)marks, x->k->objects);
    return 0;
}

int vg_bench_page(struct vg_bench *b, const struct vg_bench_case *k, struct vg_bench_result *r)
{
    struct listing x;
    struct vg_bench_meter m;
    VG_AUTO(buf) path = {0};
    double bytes = 0;
    uint64_t pages = 0;
    uint32_t n = 0;
    vg_bench_param_number(r, "page", b->o->page);
    int err = vg_bench_stock(b, VG_BENCH_STOCK, k->objects, b->o->nodes, true);
    if (err == 0)
        err = listing_open(&x, b, k);
    if (err != 0)
        return err;
    x.l.counts_marks = true;
    err = walk_pages(&x, &path, &pages, &bytes);
    x.l.counts_marks = false;
    bytes = 0;
    vg_bench_meter_begin(b, &m);
    for (uint64_t since = vg_bench_now(); err == 0 && wants_more(b, n, since, false); n++) {
        vg_bench_say(b, "walk %u", n + 1);
        err = walk_pages(&x, &path, &pages, &bytes);
    }
    vg_bench_meter_end(b, &m, r);
    if (err == 0) {
        put_list_metrics(r, &m, n, bytes);
        vg_bench_metric(r, "pages", (double)pages);
    }
    listing_close(&x);
    return err;
}
