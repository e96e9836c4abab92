/* fresh.c - waiting until a port has pulled a revision, or the cache is ready, and what is current.
 * A store that others write to has to be asked how new a state must be (vg_storage_fresh). A port
 * asks for all who wait on it: who comes while it is asking waits for the next question, since the
 * one under way may have been answered before. The question outlives a port that is closed. */
#include <errno.h>

#include "base/alloc.h"
#include "cacher_int.h"

struct vg_port_fresh {
    struct vg_store_req req;
    struct vg_cache_port *port; /* NULL: closed meanwhile */
    bool is_asking;
    struct vg_list asking;  /* waits that the question is for */
    struct vg_list wanting; /* and those that came since */
};

/* ---- waiting ---- */

static void finish(struct vg_cache_wait *w, int err)
{
    vg_cache_wait_cancel(w);
    w->done(w, err);
}

static void on_late(struct vg_timer *t)
{
    struct vg_cache_wait *w = VG_CONTAINER_OF(t, struct vg_cache_wait, timer);
    finish(w, w->is_for_ready ? VIGIL_E_BUSY : VIGIL_E_FUTURE);
}

void vg_port_serve_waits(struct vg_cache_port *p)
{
    VG_LIST_FOREACH_SAFE (n, &p->waits) {
        struct vg_cache_wait *w = VG_CONTAINER_OF(n, struct vg_cache_wait, link);
        if (w->is_for_ready ? vg_cacher_is_ready(p->c) : w->rev <= p->seen)
            finish(w, 0);
    }
    vg_port_awaited(p);
}

static void begin(struct vg_cache_port *p, struct vg_cache_wait *wait, uint64_t limit_ns,
                  void (*done)(struct vg_cache_wait *wait, int err))
{
    wait->port = p;
    wait->done = done;
    wait->is_for_ready = false;
    wait->timer = (struct vg_timer){0};
    vg_timer_start(p->loop, &wait->timer, limit_ns, on_late);
}

static uint64_t fresh_ns(const struct vg_cache_port *p)
{
    return p->c->opts.fresh_ms * VG_NS_PER_MS;
}

void vg_cache_wait_fresh(struct vg_cache_port *p, vg_rev rev, struct vg_cache_wait *wait,
                         void (*done)(struct vg_cache_wait *wait, int err))
{
    begin(p, wait, fresh_ns(p), done);
    wait->rev = rev;
    vg_list_push_back(&p->waits, &wait->link);
    vg_port_await(p); /* also when it is fresh already: never from within */
}

/* The feed publishes a batch once it is ready, which wakes. */
int vg_cache_wait_ready(struct vg_cache_port *p, struct vg_cache_wait *wait,
                        void (*done)(struct vg_cache_wait *wait, int err))
{
    uint64_t now = vg_cacher_now_ns(p->c);
    uint64_t end = atomic_load(&p->c->down_since_ns) + p->c->opts.ready_ms * VG_NS_PER_MS;
    if (now >= end)
        return VIGIL_E_BUSY;
    begin(p, wait, end - now, done);
    wait->is_for_ready = true;
    vg_list_push_back(&p->waits, &wait->link);
    vg_port_await(p);
    return 0;
}

void vg_cache_wait_cancel(struct vg_cache_wait *wait)
{
    vg_list_remove(&wait->link);
    vg_timer_stop(wait->port->loop, &wait->timer);
}

/* ---- asking ---- */

static void ask(struct vg_port_fresh *f);

static void take_answer(struct vg_port_fresh *f)
{
    struct vg_list *n;
    while ((n = vg_list_pop_front(&f->asking))) {
        struct vg_cache_wait *w = VG_CONTAINER_OF(n, struct vg_cache_wait, link);
        if (f->req.err < 0) {
            finish(w, f->req.err);
            continue;
        }
        w->rev = f->req.rev;
        vg_list_push_back(&f->port->waits, &w->link);
    }
    vg_port_await(f->port);
}

static void on_answer(struct vg_store_req *req)
{
    struct vg_port_fresh *f = VG_CONTAINER_OF(req, struct vg_port_fresh, req);
    f->is_asking = false;
    if (!f->port) {
        vg_free(f);
        return;
    }
    take_answer(f);
    if (!vg_list_is_empty(&f->wanting))
        ask(f);
}

static void ask(struct vg_port_fresh *f)
{
    struct vg_list *n;
    while ((n = vg_list_pop_front(&f->wanting)))
        vg_list_push_back(&f->asking, n);
    f->req = (struct vg_store_req){.loop = f->port->loop, .done = on_answer};
    int r = vg_storage_fresh(f->port->c->opts.storage, &f->req);
    f->is_asking = r == 0;
    /* Else their time will be over: never from within. */
}

void vg_cache_wait_consistent(struct vg_cache_port *p, struct vg_cache_wait *wait,
                              void (*done)(struct vg_cache_wait *wait, int err))
{
    struct vg_port_fresh *f = p->fresh;
    if (!vg_storage_is_shared(p->c->opts.storage)) {
        vg_cache_wait_fresh(p, vg_storage_revision(p->c->opts.storage), wait, done);
        return;
    }
    begin(p, wait, fresh_ns(p), done);
    vg_list_push_back(&f->wanting, &wait->link);
    if (!f->is_asking)
        ask(f);
}

/* ---- life ---- */

int vg_port_fresh_new(struct vg_cache_port *p)
{
    p->fresh = vg_new(struct vg_port_fresh);
    if (!p->fresh)
        return -ENOMEM;
    p->fresh->port = p;
    vg_list_init(&p->fresh->asking);
    vg_list_init(&p->fresh->wanting);
    return 0;
}

void vg_port_fresh_free(struct vg_cache_port *p)
{
    struct vg_port_fresh *f = p->fresh;
    assert(!f || (vg_list_is_empty(&f->asking) && vg_list_is_empty(&f->wanting)));
    p->fresh = NULL;
    if (f && f->is_asking)
        f->port = NULL;
    else
        vg_free(f);
}
