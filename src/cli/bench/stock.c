/* stock.c - the objects that lie there: made by many clients at once, counted, removed. */
#include <errno.h>
#include <stdio.h>

#include "bench.h"
#include "client/transport/transport.h"
#include "events.h"
#include "objects.h"

/* What a collection is removed within; a server deletes a thousand in a second or so. */
#define CLEAR_LIMIT_NS (600 * VG_NS_PER_S)

static const char *plural(const struct vg_bench *b)
{
    return b->o->kind == VG_BENCH_PODS ? "pods" : "configmaps";
}

int vg_bench_path(const struct vg_bench *b, enum vg_bench_room room, struct vg_buf *out)
{
    return vg_buf_printf(out, "/api/v1/namespaces/%s/%s", b->ns[room], plural(b));
}

int vg_bench_object_path(const struct vg_bench *b, enum vg_bench_room room, uint32_t id,
                         struct vg_buf *out)
{
    int r = vg_bench_path(b, room, out);
    return r < 0 ? r
                 : vg_buf_printf(out, "/%s-%06u", b->o->kind == VG_BENCH_PODS ? "web" : "cm", id);
}

/* ---- making ---- */

struct create {
    struct vg_bench *b;
    enum vg_bench_room room;
    uint32_t nodes, total;
    void (*begin)(void *arg);
    void *arg;
};

static int make(void *arg, uint64_t number, struct vg_bench_request *out)
{
    const struct create *c = arg;
    struct vg_bench_object o = {.ns = c->b->ns[c->room],
                                .id = (uint32_t)number,
                                .node = (uint32_t)number % c->nodes,
                                .bytes = c->b->o->bytes};
    out->method = "POST";
    int r = vg_bench_path(c->b, c->room, &out->path);
    if (r == 0)
        r = c->b->o->kind == VG_BENCH_PODS ? vg_bench_pod_write(&out->body, &o)
                                           : vg_bench_configmap_write(&out->body, &o);
    return r;
}

static void on_begin(void *arg)
{
    const struct create *c = arg;
    if (c->begin)
        c->begin(c->arg);
}

static int on_progress(void *arg, uint64_t done)
{
    const struct create *c = arg;
    vg_bench_say(c->b, "%u of %u objects made", (unsigned)done, c->total);
    return 0;
}

int vg_bench_create(struct vg_bench *b, enum vg_bench_room room, uint32_t n, uint32_t nodes,
                    const struct vg_bench_case *k, void (*begin)(void *arg), void *arg,
                    struct vg_bench_writers_result *ret)
{
    struct create c = {
        .b = b, .room = room, .nodes = nodes, .total = n, .begin = begin, .arg = arg};
    struct vg_bench_writers_plan plan = {
        .target = &b->target,
        .is_h2 = k && k->http == VG_BENCH_H2,
        .streams = b->o->streams,
        .clients = VG_MIN(b->o->clients, n),
        .first = b->filled[room],
        .count = n,
        .begin = on_begin,
        .make = make,
        .progress = on_progress,
        .arg = &c,
    };
    int r = vg_bench_writers_run(&plan, ret, &b->status);
    b->filled[room] += (uint32_t)ret->sent;
    b->filled_nodes[room] = nodes;
    if (r == 0 && ret->refused)
        r = vg_fail(&b->status, VIGIL_E_INVALID, "%u of %u creates were refused, the first %s",
                    (unsigned)ret->refused, (unsigned)ret->sent, ret->refusal);
    return r;
}

int vg_bench_stock(struct vg_bench *b, enum vg_bench_room room, uint32_t n, uint32_t nodes,
                   bool is_exact)
{
    static struct vg_bench_writers_result result; /* large, and nobody looks */
    int r = 0;
    if ((is_exact && b->filled[room] > n) || (b->filled[room] && b->filled_nodes[room] != nodes))
        r = vg_bench_clear(b, room);
    if (r == 0 && b->filled[room] < n)
        r = vg_bench_create(b, room, n - b->filled[room], nodes, NULL, NULL, NULL, &result);
    return r;
}

/* ---- removing ---- */

/* 1: nothing is left; 0: something is. */
static int is_empty(struct vg_bench *b, const char *collection)
{
    VG_AUTO(buf) path = {0};
    VG_AUTO(buf) text = {0};
    if (vg_buf_printf(&path, "%s?limit=1&labelSelector=app%%3Dvigil-bench", collection) < 0 ||
        vg_buf_append_byte(&path, 0) < 0)
        return vg_fail(&b->status, -ENOMEM, "out of memory");
    int r = vg_bench_call(b, &(struct vg_bench_ask){.method = "GET", .path = path.p}, &text);
    if (r < 0)
        return r;
    if (r == 404)
        return 1;
    return text.n &&
           memmem(text.p, text.n, VG_BENCH_MARK_KEY, sizeof VG_BENCH_MARK_KEY - 1) == NULL;
}

static int remove_collection(struct vg_bench *b, const char *collection)
{
    VG_AUTO(buf) path = {0};
    int r = vg_buf_printf(&path, "%s?gracePeriodSeconds=0&labelSelector=app%%3Dvigil-bench",
                          collection);
    if (r < 0 || vg_buf_append_byte(&path, 0) < 0)
        return vg_fail(&b->status, -ENOMEM, "out of memory");
    for (uint64_t begin = vg_bench_now(); (r = is_empty(b, collection)) == 0;) {
        vg_bench_say(b, "removing %s", collection);
        r = vg_bench_call(b, &(struct vg_bench_ask){.method = "DELETE", .path = path.p}, NULL);
        if (r < 0 && r != VIGIL_E_TIMEOUT)
            return r;
        if (vg_bench_now() - begin > CLEAR_LIMIT_NS)
            return vg_fail(&b->status, VIGIL_E_TIMEOUT, "%s cannot be emptied, answered %d",
                           collection, r);
    }
    return r < 0 ? r : 0;
}

int vg_bench_clear(struct vg_bench *b, enum vg_bench_room room)
{
    static const char *const collections[] = {"/api/v1/namespaces/%s/pods",
                                              "/api/v1/namespaces/%s/configmaps",
                                              "/apis/coordination.k8s.io/v1/namespaces/%s/leases"};
    int r = 0;
    for (size_t i = 0; r == 0 && i < VG_ARRAY_LEN(collections); i++) {
        char path[160];
        const char *at = strstr(collections[i], "%s");
        snprintf(path, sizeof path, "%.*s%s%s", (int)(at - collections[i]), collections[i],
                 b->ns[room], at + 2);
        r = remove_collection(b, path);
    }
    if (r == 0)
        b->filled[room] = 0;
    return r;
}

/* ---- versions ---- */

int vg_bench_version(struct vg_bench *b, enum vg_bench_room room, struct vg_buf *ret)
{
    VG_AUTO(buf) path = {0};
    VG_AUTO(buf) text = {0};
    int r = vg_bench_path(b, room, &path);
    if (r == 0)
        r = vg_buf_printf(&path, "?limit=1");
    if (r == 0)
        r = vg_buf_append_byte(&path, 0);
    if (r < 0)
        return vg_fail(&b->status, r, "out of memory");
    r = vg_bench_call(b, &(struct vg_bench_ask){.method = "GET", .path = path.p}, &text);
    if (r < 0)
        return r;
    struct vg_slice version = vg_bench_list_version(vg_buf_slice(&text), false);
    if (r != 200 || !version.n)
        return vg_fail(&b->status, VIGIL_E_UNSUPPORTED, "%s is answered %d: %.*s", path.p, r,
                       (int)VG_MIN(text.n, (size_t)200), text.p);
    vg_buf_clear(ret);
    r = vg_buf_append_slice(ret, version);
    if (r == 0)
        r = vg_buf_append_byte(ret, 0);
    return r < 0 ? vg_fail(&b->status, r, "out of memory") : 0;
}
