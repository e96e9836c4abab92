/* view.c - a loop's part: its view of the table, the tickets of its requests, and seats that stay
 * taken for a while after their request. */
#include <errno.h>

#include "base/alloc.h"
#include "flow_int.h"

void vg_flow_view_unref(struct vg_flow_view *v)
{
    if (!v || --v->refs)
        return;
    vg_flow_table_unref(v->table);
    vg_free(v);
}

int vg_flow_loop_open(struct vg_flow *f, struct vg_loop *loop, struct vg_flow_loop **ret_loop)
{
    struct vg_flow_loop *l = vg_new(struct vg_flow_loop);
    struct vg_flow_view *view = l ? vg_new(struct vg_flow_view) : NULL;
    if (!view) {
        vg_free(l);
        return -ENOMEM;
    }
    *view = (struct vg_flow_view){.refs = 1, .table = vg_flow_table_newest(f)};
    view->generation = view->table->generation;
    *l = (struct vg_flow_loop){.flow = f, .loop = loop, .view = view};
    vg_list_init(&l->lingering);
    *ret_loop = l;
    return 0;
}

/* A newer table is there. Without memory the old one will do. */
static void __attribute__((noinline)) renew_view(struct vg_flow_loop *l)
{
    struct vg_flow_view *view = vg_new(struct vg_flow_view);
    if (!view)
        return;
    *view = (struct vg_flow_view){.refs = 1, .table = vg_flow_table_newest(l->flow)};
    view->generation = view->table->generation;
    vg_flow_view_unref(l->view);
    l->view = view;
}

static uint64_t newest_generation(const struct vg_flow_loop *l)
{
    return atomic_load_explicit(&l->flow->generation, memory_order_acquire);
}

static void assign(struct vg_flow_loop *l, const struct vg_flow_schema *schema,
                   struct vg_flow_ticket *t)
{
    t->view = l->view;
    t->view->refs++;
    t->schema = schema;
    t->state = VG_FLOW_CLASSIFIED;
}

static bool is_like(const struct vg_flow_likeness *a, const struct vg_flow_likeness *b)
{
    return a->kind == b->kind && a->sub == b->sub && a->verb == b->verb &&
           a->has_namespace == b->has_namespace;
}

bool vg_flow_classify_again(struct vg_flow_loop *l, const struct vg_flow_likeness *like,
                            const struct vg_flow_subject_cache *cache, struct vg_flow_ticket *t)
{
    const struct vg_flow_memo *m = &cache->memos[like->verb % VG_FLOW_MEMOS];
    assert(t->state == VG_FLOW_NONE);
    if (!m->schema || !is_like(&m->like, like) || cache->generation != l->view->generation ||
        VG_UNLIKELY(cache->generation != newest_generation(l)))
        return false;
    assign(l, m->schema, t);
    return true;
}

void vg_flow_classify(struct vg_flow_loop *l, const struct vg_flow_attributes *a,
                      const struct vg_flow_likeness *like, struct vg_flow_subject_cache *cache,
                      struct vg_flow_ticket *t)
{
    assert(t->state == VG_FLOW_NONE);
    if (VG_UNLIKELY(newest_generation(l) != l->view->generation))
        renew_view(l);
    const struct vg_flow_schema *schema = vg_flow_table_match(l->view->table, a, cache);
    if (like->kind && !cache->is_by_namespace)
        cache->memos[like->verb % VG_FLOW_MEMOS] = (struct vg_flow_memo){*like, schema};
    assign(l, schema, t);
}

const struct vg_http_block *vg_flow_headers(const struct vg_flow_ticket *t)
{
    return t->schema ? &t->schema->headers : NULL;
}

bool vg_flow_is_exempt(const struct vg_flow_ticket *t)
{
    return t->schema->level->is_exempt;
}

uint32_t vg_flow_seats_max(const struct vg_flow_ticket *t, uint32_t limit)
{
    uint32_t max = t->schema->seats_max;
    return max == 0 || max > limit ? limit : max;
}

struct vg_slice vg_flow_schema_name(const struct vg_flow_ticket *t)
{
    return t->schema ? t->schema->name : VG_SLICE_LIT("");
}

struct vg_slice vg_flow_level_name(const struct vg_flow_ticket *t)
{
    return t->schema ? t->schema->level_name : VG_SLICE_LIT("");
}

/* ---- seats that linger ---- */

struct lingerer {
    struct vg_list link;
    struct vg_timer timer;
    struct vg_flow_loop *l;
    struct vg_flow_view *view; /* reference: holds the level */
    struct vg_flow_level *level;
    struct vg_flow_queue *queue;
    uint32_t seats;
};

static void linger_end(struct lingerer *g)
{
    vg_list_remove(&g->link);
    vg_flow_level_free_seats(g->level, g->queue, g->seats);
    vg_flow_view_unref(g->view);
    vg_free(g);
}

static void on_linger(struct vg_timer *timer)
{
    linger_end(VG_CONTAINER_OF(timer, struct lingerer, timer));
}

/* Without memory for a timer the seats are free at once. */
static void linger(struct vg_flow_loop *l, const struct vg_flow_ticket *t)
{
    struct lingerer *g = vg_new(struct lingerer);
    if (!g) {
        vg_flow_level_free_seats(t->schema->level, t->queue, t->seats);
        return;
    }
    *g = (struct lingerer){
        .l = l, .view = t->view, .level = t->schema->level, .queue = t->queue, .seats = t->seats};
    g->view->refs++;
    vg_list_push_back(&l->lingering, &g->link);
    vg_timer_start(l->loop, &g->timer, t->linger_us * VG_NS_PER_US, on_linger);
}

void vg_flow_give(struct vg_flow_loop *l, struct vg_flow_ticket *t)
{
    if (t->state != VG_FLOW_EXECUTING)
        return;
    t->state = VG_FLOW_CLASSIFIED;
    vg_flow_count_finish(t);
    vg_flow_level_give(t);
    if (VG_UNLIKELY(t->linger_us))
        linger(l, t);
    t->queue = NULL;
}

void vg_flow_ticket_done(struct vg_flow_loop *l, struct vg_flow_ticket *t)
{
    assert(t->state != VG_FLOW_WAITING);
    vg_flow_give(l, t);
    struct vg_flow_view *view = vg_steal(t->view);
    t->schema = NULL;
    t->state = VG_FLOW_NONE;
    vg_flow_view_unref(view);
}

void vg_flow_loop_close(struct vg_flow_loop *l)
{
    if (!l)
        return;
    VG_LIST_FOREACH_SAFE (n, &l->lingering) {
        struct lingerer *g = VG_CONTAINER_OF(n, struct lingerer, link);
        vg_timer_stop(l->loop, &g->timer);
        linger_end(g);
    }
    assert(l->view->refs == 1);
    vg_flow_view_unref(l->view);
    vg_free(l);
}
