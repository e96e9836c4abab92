/* session.c - the beginning and the end of a run: the server is found and asked for its version,
 * namespaces are made, and at the end everything that was made goes away. */
#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>

#include "base/rng.h"
#include "bench.h"
#include "call.h"
#include "events.h"

/* A namespace goes away: where controllers run it is theirs, and takes them a while; elsewhere it
 * is done here, unless the server does it at once. */
#define GONE_LIMIT_NS (90 * VG_NS_PER_S)
#define GONE_SOON_NS (300 * VG_NS_PER_MS) /* a server that sees to it itself */

/* ---- one request ---- */

static int try_call(struct vg_bench *b, const struct vg_bench_ask *ask, struct vg_bench_answer *ret)
{
    int r = 0;
    if (b->conn && vg_bench_conn_is_dead(b->conn)) {
        vg_bench_conn_free(b->conn);
        b->conn = NULL;
    }
    if (!b->conn)
        r = vg_bench_conn_new(&b->engine, &b->target, false, 0, &b->conn);
    return r < 0 ? r : vg_bench_call_on(b->conn, ask, ret);
}

int vg_bench_call(struct vg_bench *b, const struct vg_bench_ask *ask, struct vg_buf *ret)
{
    struct vg_bench_answer answer = {.body = ret};
    bool was_open = b->conn && !vg_bench_conn_is_dead(b->conn);
    int r = try_call(b, ask, &answer);
    if (r < 0 && r != VIGIL_E_CANCELED && was_open && answer.status == 0)
        r = try_call(b, ask, &answer); /* the server closes connections that were idle */
    if (r == 0)
        return answer.status;
    const char *why =
        b->conn && vg_bench_conn_is_dead(b->conn) ? vg_bench_conn_trouble(b->conn) : vg_err_text(r);
    (void)vg_fail(&b->status, r, "%s %s: %s", ask->method, ask->path,
                  r == VIGIL_E_CANCELED ? "interrupted" : why);
    vg_bench_conn_free(b->conn); /* a request may be under way on it */
    b->conn = NULL;
    return r;
}

/* ---- namespaces ---- */

static int make_namespace(struct vg_bench *b, enum vg_bench_room room)
{
    static const char account[] = "{\"kind\":\"ServiceAccount\",\"apiVersion\":\"v1\",\"metadata\":"
                                  "{\"name\":\"default\"}}";
    char text[256], path[128];
    VG_AUTO(buf) answer = {0};
    snprintf(text, sizeof text,
             "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\","
             "\"labels\":{\"app.kubernetes.io/created-by\":\"vigil-bench\"}}}",
             b->ns[room]);
    int r = vg_bench_call(b,
                          &(struct vg_bench_ask){.method = "POST",
                                                 .path = "/api/v1/namespaces",
                                                 .body = vg_slice_str(text)},
                          &answer);
    if (r < 0)
        return r;
    b->has_ns[room] = r == 201;
    if (r != 201)
        return vg_fail(&b->status, VIGIL_E_FORBIDDEN,
                       "a namespace cannot be made, answered %d: %.*s", r,
                       (int)VG_MIN(answer.n, (size_t)200), answer.p);
    /* Admission wants a pod's account to be there; where a controller makes it, it makes it later.
     */
    snprintf(path, sizeof path, "/api/v1/namespaces/%s/serviceaccounts", b->ns[room]);
    r = vg_bench_call(
        b, &(struct vg_bench_ask){.method = "POST", .path = path, .body = VG_SLICE_LIT(account)},
        NULL);
    return r < 0 ? r : 0;
}

static int ask_for(struct vg_bench *b, const char *method, const char *ns, const char *what)
{
    char path[200];
    snprintf(path, sizeof path, "/api/v1/namespaces/%s%s", ns, what);
    return vg_bench_call(b, &(struct vg_bench_ask){.method = method, .path = path}, NULL);
}

/* 1: it is gone; 0: it is not. */
static int await_gone(struct vg_bench *b, const char *ns, uint64_t limit_ns)
{
    for (uint64_t begin = vg_bench_now(); vg_bench_now() - begin < limit_ns;) {
        int r = ask_for(b, "GET", ns, "");
        if (r < 0 || r == 404)
            return r < 0 ? r : 1;
        vg_bench_nap(50 * VG_NS_PER_MS);
    }
    return 0;
}

/* The account that was made with it is all that is left in it. */
static int finalize(struct vg_bench *b, const char *ns)
{
    char path[160], body[256];
    int r = ask_for(b, "DELETE", ns, "/serviceaccounts/default");
    if (r < 0)
        return r;
    snprintf(path, sizeof path, "/api/v1/namespaces/%s/finalize", ns);
    snprintf(body, sizeof body,
             "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\"},"
             "\"spec\":{\"finalizers\":[]}}",
             ns);
    r = vg_bench_call(
        b, &(struct vg_bench_ask){.method = "PUT", .path = path, .body = vg_slice_str(body)}, NULL);
    return r < 0 ? r : await_gone(b, ns, GONE_LIMIT_NS);
}

/* It is told to go; whether controllers see to that. */
static int begin_removal(struct vg_bench *b, enum vg_bench_room room, bool *ret_has_controllers)
{
    int r = vg_bench_clear(b, room);
    if (r < 0)
        return r;
    /* Controllers put this into every namespace. */
    r = ask_for(b, "GET", b->ns[room], "/configmaps/kube-root-ca.crt");
    *ret_has_controllers = r == 200;
    return r < 0 ? r : VG_MIN(ask_for(b, "DELETE", b->ns[room], ""), 0);
}

static int end_removal(struct vg_bench *b, enum vg_bench_room room, bool has_controllers)
{
    const char *ns = b->ns[room];
    int r = await_gone(b, ns, has_controllers ? GONE_LIMIT_NS : GONE_SOON_NS);
    if (r == 0 && !has_controllers)
        r = finalize(b, ns);
    return r == 0 ? vg_fail(&b->status, VIGIL_E_TIMEOUT, "the namespace %s does not go away", ns)
                  : VG_MIN(r, 0);
}

static int remove_namespaces(struct vg_bench *b)
{
    bool has_controllers[VG_BENCH_ROOMS] = {0};
    int r[VG_BENCH_ROOMS] = {0}, err = 0;
    for (enum vg_bench_room room = 0; room < VG_BENCH_ROOMS; room++)
        if (b->has_ns[room])
            r[room] = begin_removal(b, room, &has_controllers[room]);
    for (enum vg_bench_room room = 0; room < VG_BENCH_ROOMS; room++) {
        if (b->has_ns[room] && r[room] == 0)
            r[room] = end_removal(b, room, has_controllers[room]);
        err = err ? err : r[room];
    }
    return err;
}

int vg_bench_close(struct vg_bench *b)
{
    vg_bench_forget_interrupt();
    snprintf(b->doing, sizeof b->doing, "cleaning up");
    vg_bench_say(b, "%s", b->ns[VG_BENCH_STOCK]);
    int err = b->o->keeps ? 0 : remove_namespaces(b);
    vg_bench_say_nothing(b);
    vg_bench_conn_free(b->conn);
    vg_bench_engine_done(&b->engine);
    vg_bench_target_close(&b->target);
    return err;
}

/* ---- opening ---- */

static int read_version(struct vg_bench *b)
{
    VG_AUTO(buf) text = {0};
    int r = vg_bench_call(b, &(struct vg_bench_ask){.method = "GET", .path = "/version"}, &text);
    if (r < 0)
        return r;
    if (r == 401 || r == 403)
        return vg_fail(&b->status, VIGIL_E_UNAUTHORIZED, "the server does not let us in (%d)", r);
    const char *at = text.n ? memmem(text.p, text.n, "\"gitVersion\"", 12) : NULL;
    const char *end = text.p + text.n,
               *from = at ? memchr(at + 12, '"', (size_t)(end - at - 12)) : NULL;
    const char *to = from ? memchr(from + 1, '"', (size_t)(end - from - 1)) : NULL;
    if (r != 200 || !to)
        return vg_fail(&b->status, VIGIL_E_UNSUPPORTED,
                       "%s does not look like a Kubernetes API server: /version is answered %d",
                       b->target.authority, r);
    snprintf(b->run.server.version, sizeof b->run.server.version, "%.*s", (int)(to - from - 1),
             from + 1);
    return 0;
}

static int may_touch(struct vg_bench *b)
{
    if (b->target.is_loopback || (b->o->really && strcmp(b->o->really, b->target.authority) == 0))
        return 0;
    return vg_fail(
        &b->status, VIGIL_E_FORBIDDEN,
        "%s is not on this machine: a bench is a heavy load on whoever uses it. If it is "
        "meant, say --yes-really-this-server %s",
        b->target.host, b->target.authority);
}

/* Thousands of sockets. */
static void raise_limits(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int vg_bench_open(struct vg_bench *b, const struct vg_bench_options *o)
{
    uint16_t id = 0;
    *b = (struct vg_bench){.o = o};
    vg_bench_run_init(&b->run);
    int r = vg_bench_target_open(&b->target, &o->place, &b->status);
    if (r == 0)
        r = may_touch(b);
    if (r < 0)
        return r;
    raise_limits();
    snprintf(b->run.server.name, sizeof b->run.server.name, "%.150s",
             o->name ? o->name : b->target.authority);
    r = vg_random_bytes(&id, sizeof id);
    if (r == 0)
        r = vg_bench_engine_init(&b->engine);
    if (r < 0)
        return vg_fail(&b->status, r, "%s", vg_err_text(r));
    snprintf(b->ns[VG_BENCH_STOCK], VG_BENCH_NS_SIZE, "vigil-bench-%04x", id);
    snprintf(b->ns[VG_BENCH_STAGE], VG_BENCH_NS_SIZE, "vigil-bench-%04x-w", id);
    r = read_version(b);
    for (enum vg_bench_room room = 0; r == 0 && room < VG_BENCH_ROOMS; room++)
        r = make_namespace(b, room);
    vg_bench_find_server(b);
    return r;
}
