/* debug_watches.c - /debug/vigil/watches: every watch that runs, on whatever loop, as JSON.
 * Each loop is asked by mail and writes down its own watches; the last answer to come back answers
 * the request. Meanwhile the request is held, whatever becomes of its connection. */
#include <errno.h>

#include "base/alloc.h"
#include "gate_int.h"
#include "json/write.h"

struct part {
    struct vg_mail mail;
    struct gather *gather;
    struct vg_gate_loop *l;
    struct vg_buf out; /* objects, each with a comma behind it */
    int err;
};

struct gather {
    struct vg_request *q;
    size_t pending, n;
    struct part parts[];
};

/* ---- on the asked loop ---- */

static void put_slice(struct vg_json_writer *w, const char *key, struct vg_slice s)
{
    if (s.n)
        vg_json_put_member(w, key, s);
}

static void put_uint(struct vg_json_writer *w, const char *key, uint64_t n)
{
    vg_json_put_key(w, vg_slice_str(key));
    vg_json_put_uint(w, n);
}

static void write_watch(void *arg, const struct vg_api_watch_info *info)
{
    struct part *p = arg;
    struct vg_json_writer w;
    if (p->err < 0)
        return;
    uint64_t now = vg_clock_mono_ns(p->l->gate->clock);
    vg_rev newest = vg_cache_port_revision(vg_api_loop_port(p->l->api));
    vg_json_writer_init(&w, &p->out, 0);
    vg_json_put_begin_object(&w);
    vg_json_put_member(&w, "user", info->user);
    vg_json_put_member(&w, "resource", vg_slice_str(vg_kind_qualified(info->kind)));
    put_slice(&w, "namespace", info->ns);
    put_slice(&w, "labelSelector", info->label_selector);
    put_slice(&w, "fieldSelector", info->field_selector);
    vg_json_put_member(&w, "auditID", vg_slice_str(info->call->audit_id));
    vg_json_put_member(&w, "peer", vg_slice_str(vg_http_peer(info->call->x)->address));
    put_uint(&w, "seconds", now > info->started_ns ? (now - info->started_ns) / VG_NS_PER_S : 0);
    put_uint(&w, "resourceVersion", info->rev);
    put_uint(&w, "lag", newest > info->rev ? newest - info->rev : 0);
    put_uint(&w, "events", info->events);
    put_uint(&w, "bytes", info->bytes);
    put_uint(&w, "unsent", info->unsent);
    vg_json_put_end_object(&w);
    p->err = vg_json_writer_end(&w);
    if (p->err == 0)
        p->err = vg_buf_append_byte(&p->out, ',');
}

static void part_back(struct vg_mail *mail);

static void part_run(struct vg_mail *mail)
{
    struct part *p = VG_CONTAINER_OF(mail, struct part, mail);
    vg_api_each_watch(p->l->api, write_watch, p);
    p->mail.run = part_back;
    vg_loop_post(p->gather->q->l->loop, &p->mail);
}

/* ---- on the asking loop ---- */

static int assemble(struct gather *g, struct vg_buf *body)
{
    int r = vg_buf_printf(body, "{\"watches\":[");
    for (size_t i = 0; i < g->n && r == 0; i++) {
        r = g->parts[i].err;
        if (r == 0)
            r = vg_buf_append_slice(body, vg_buf_slice(&g->parts[i].out));
    }
    if (r == 0 && body->p[body->n - 1] == ',')
        body->n--;
    return r < 0 ? r : vg_buf_printf(body, "]}\n");
}

static void gather_free(struct gather *g)
{
    for (size_t i = 0; i < g->n; i++)
        vg_buf_done(&g->parts[i].out);
    vg_free(g);
}

static void part_back(struct vg_mail *mail)
{
    struct gather *g = VG_CONTAINER_OF(mail, struct part, mail)->gather;
    struct vg_buf body = {0};
    if (--g->pending)
        return;
    struct vg_request *q = g->q;
    int r = assemble(g, &body);
    gather_free(g);
    if (!vg_request_unhold(q)) {
        vg_buf_done(&body);
    } else if (r < 0) {
        vg_buf_done(&body);
        vg_request_say(q, 503, "503 out of memory\n");
    } else {
        q->is_active = true;
        vg_respond_bytes(&q->call, 200, "application/json", &body);
    }
}

void vg_request_list_watches(struct vg_request *q)
{
    struct vg_gate *gate = q->l->gate;
    struct gather *g = vg_calloc(1, sizeof *g + gate->n_loops * sizeof g->parts[0]);
    if (!g) {
        vg_request_say(q, 503, "503 out of memory\n");
        return;
    }
    g->q = q;
    g->n = g->pending = gate->n_loops;
    q->is_held = true;
    for (size_t i = 0; i < g->n; i++) {
        g->parts[i] = (struct part){.gather = g, .l = gate->loops[i]};
        g->parts[i].mail.run = part_run;
        vg_loop_post(gate->loops[i]->loop, &g->parts[i].mail);
    }
}
