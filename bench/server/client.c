/* client.c - see client.h. */
#include "client.h"

#include <stdio.h>
#include <stdlib.h>

#include "call.h"
#include "measure.h"

const char *const carrier_names[CARRIERS] = {"plain", "TLS", "HTTP/2 plain", "HTTP/2 TLS"};

void client_open(struct client *c, const struct server *s, enum carrier carrier)
{
    const struct vg_bench_target *t = &s->targets[carrier_is_tls(carrier)];
    *c = (struct client){0};
    if (vg_bench_engine_init(&c->engine) < 0 ||
        vg_bench_conn_new(&c->engine, t, carrier_is_h2(carrier), 0, &c->conn) < 0)
        bench_die("cannot connect to port %u", t->port);
}

void client_done(struct client *c)
{
    vg_bench_conn_free(c->conn);
    vg_bench_engine_done(&c->engine);
    vg_buf_done(&c->in);
}

static void call(struct client *c, const struct vg_bench_ask *ask, struct vg_bench_answer *ret)
{
    int r = vg_bench_call_on(c->conn, ask, ret);
    if (r < 0)
        bench_die("%s %s: %s", ask->method, ask->path,
                  vg_bench_conn_is_dead(c->conn) ? vg_bench_conn_trouble(c->conn) : vg_err_text(r));
}

int client_ask(struct client *c, const struct vg_bench_ask *ask, uint64_t *ret_bytes)
{
    struct vg_bench_answer answer = {0};
    call(c, ask, &answer);
    if (ret_bytes)
        *ret_bytes = answer.bytes;
    return answer.status;
}

int client_ask_body(struct client *c, const struct vg_bench_ask *ask)
{
    struct vg_bench_answer answer = {.body = &c->in};
    vg_buf_clear(&c->in);
    call(c, ask, &answer);
    if (vg_buf_append_byte(&c->in, 0) < 0)
        bench_die("out of memory");
    return answer.status;
}

void client_must(struct client *c, const struct vg_bench_ask *ask)
{
    int status = client_ask(c, ask, NULL);
    if (status != 200 && status != 201)
        bench_die("%s %s was answered %d", ask->method, ask->path, status);
}

/* ---- watches ---- */

struct watch {
    struct vg_bench_reply reply;
    bool is_open, is_over;
    char *begin; /* of the first bytes; NULL: they are dropped */
    size_t begin_size;
};

static void on_head(struct vg_bench_reply *r)
{
    VG_CONTAINER_OF(r, struct watch, reply)->is_open = true;
}

static void on_data(struct vg_bench_reply *r, struct vg_slice bytes)
{
    struct watch *w = VG_CONTAINER_OF(r, struct watch, reply);
    if (w->begin && !w->begin[0])
        snprintf(w->begin, w->begin_size, "%.*s", (int)bytes.n, bytes.p);
}

static void on_end(struct vg_bench_reply *r, int err)
{
    (void)err;
    VG_CONTAINER_OF(r, struct watch, reply)->is_over = true;
}

static const struct vg_bench_reply_ops watch_ops = {on_head, on_data, on_end};

static void turn(struct client *c, int max_ms)
{
    if (vg_bench_engine_turn(&c->engine, max_ms) < 0)
        bench_die("no epoll");
    bench_check_interrupt();
}

static void open_watch(struct client *c, struct watch *w, const char *path, const char *accept)
{
    struct vg_bench_ask ask = {.method = "GET", .path = path, .accept = accept};
    w->reply.ops = &watch_ops;
    if (vg_bench_conn_ask(c->conn, &w->reply, &ask) < 0)
        bench_die("the watch %s cannot be asked for", path);
    while (!w->is_open && !w->is_over)
        turn(c, 100);
    if (w->reply.status != 200)
        bench_die("the watch %s was answered %d %s", path, w->reply.status,
                  vg_bench_conn_trouble(c->conn));
}

/* One after the other: the server limits streams until its settings have come. */
int client_watches(const struct server *s, enum carrier carrier, const struct watches *w)
{
    struct client c;
    struct watch *all = bench_alloc(w->n, sizeof *all);
    const char *at = strstr(w->path, "%u");
    client_open(&c, s, carrier);
    for (unsigned i = 0; i < w->n; i++) {
        char path[256];
        if (at)
            snprintf(path, sizeof path, "%.*s%u%s", (int)(at - w->path), w->path, w->first + i,
                     at + 2);
        else
            snprintf(path, sizeof path, "%s", w->path);
        open_watch(&c, &all[i], path, w->accept);
    }
    turn(&c, 0); /* what HTTP/2 has to say yet */
    int fd = vg_bench_conn_release(c.conn);
    if (fd < 0)
        bench_die("the server has ended a watch");
    c.conn = NULL;
    client_done(&c);
    free(all);
    return fd;
}

void client_watch_begin(const struct server *s, enum carrier carrier, const char *path, char *ret,
                        size_t size)
{
    struct client c;
    struct watch w = {.begin = ret, .begin_size = size};
    ret[0] = 0;
    client_open(&c, s, carrier);
    open_watch(&c, &w, path, NULL);
    while (!ret[0] && !w.is_over)
        turn(&c, 100);
    client_done(&c);
}
