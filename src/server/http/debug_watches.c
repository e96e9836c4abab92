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

/* 1 KiB of a selector tells whose it is; it may be 64 KiB long. */
#define SELECTOR_SHOWN 1024u

static void put_slice(struct vg_json_writer *w, const char *key, struct vg_slice s)
{
    if (s.n)
        vg_json_put_member(w, key, vg_slice(s.p, VG_MIN(s.n, (size_t)SELECTOR_SHOWN)));
}

/* A watch does not keep the texts that it came with: they are made of what it selects by. */
static int put_selection(struct vg_json_writer *w, const struct vg_obj_predicate *p)
{
    struct vg_slice ns;
    VG_AUTO(buf) labels = {0};
    VG_AUTO(buf) fields = {0};
    int r = vg_label_selector_append(&labels, vg_obj_predicate_labels(p));
    if (r == 0)
        r = vg_field_selector_append(&fields, vg_obj_predicate_fields(p));
    if (vg_obj_predicate_namespace(p, &ns))
        put_slice(w, "namespace", ns);
    put_slice(w, "labelSelector", vg_buf_slice(&labels));
    put_slice(w, "fieldSelector", vg_buf_slice(&fields));
    return r;
}

static void put_uint(struct vg_json_writer *w, const char *key, uint64_t n)
{
    vg_json_put_key(w, vg_slice_str(key));
    vg_json_put_uint(w, n);
}

static void write_watch(void *arg, const struct vg_api_watch_info *info)
{
    struct part *p = arg;
    const struct vg_api_call *call = info->call;
    struct vg_json_writer w;
    char id[VG_AUDIT_ID_SIZE];
    if (p->err < 0)
        return;
    uint64_t now = vg_clock_mono_ns(p->l->gate->clock);
    vg_rev newest = vg_cache_port_revision(vg_api_loop_port(p->l->api));
    vg_json_writer_init(&w, &p->out, 0);
    vg_json_put_begin_object(&w);
    vg_json_put_member(&w, "user", call->user ? call->user->name : VG_SLICE_LIT(""));
    vg_json_put_member(&w, "resource", vg_slice_str(vg_kind_qualified(info->kind)));
    int r = put_selection(&w, info->predicate);
    vg_json_put_member(&w, "auditID", vg_slice_str(vg_api_audit_id(call, id)));
    vg_json_put_member(&w, "peer", vg_slice_str(vg_http_peer(call->x)->address));
    put_uint(&w, "seconds", now > call->started_ns ? (now - call->started_ns) / VG_NS_PER_S : 0);
    put_uint(&w, "resourceVersion", info->rev);
    put_uint(&w, "lag", newest > info->rev ? newest - info->rev : 0);
    put_uint(&w, "events", info->events);
    put_uint(&w, "bytes", call->bytes_out);
    put_uint(&w, "unsent", info->unsent);
    vg_json_put_end_object(&w);
    p->err = vg_json_writer_end(&w);
    if (p->err == 0)
        p->err = r;
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
