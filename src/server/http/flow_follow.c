/* flow_follow.c - see flow_follow.h. Both kinds are watched; whatever changes, all objects are read
 * anew a moment later, since they refer to each other and are few. */
#include "flow_follow.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/log.h"

#define RETRY_NS (50 * VG_NS_PER_MS)
/* Changes that come together are read together. */
#define SETTLE_NS (5 * VG_NS_PER_MS)

enum { SCHEMAS, LEVELS, KINDS };
static const char *const resources[KINDS] = {"flowschemas", "prioritylevelconfigurations"};

struct watched {
    struct vg_sink sink; /* first */
    struct vg_flow_follow *f;
    const struct vg_kind *kind;
    struct vg_obj_predicate *all;
    struct vg_cache_watcher *watcher; /* NULL: none, the timer tries again */
    struct vg_timer retry;
    bool is_live;
};

struct vg_flow_follow {
    struct vg_flow_follow_opts opts;
    struct watched kinds[KINDS];
    struct vg_timer changed, tick;
    bool is_closed;
};

/* ---- reading all of them ---- */

struct objects {
    struct vg_cache_snapshot snapshot;
    bool has_snapshot;
    struct vg_slice *v;
    size_t n;
};

static void objects_done(struct objects *o)
{
    if (o->has_snapshot)
        vg_cache_snapshot_done(&o->snapshot);
    vg_free(o->v);
}

static int read_objects(struct vg_flow_follow *f, const struct watched *w, struct objects *o)
{
    size_t index = vg_kind_index(w->kind);
    struct vg_cache_walk walk;
    struct vg_obj_key key;
    o->v = vg_calloc(VG_FLOW_OBJECTS_MAX, sizeof(struct vg_slice));
    int r = o->v ? vg_cache_newest(f->opts.cacher, index, &o->snapshot) : -ENOMEM;
    if (r < 0)
        return r;
    o->has_snapshot = true;
    vg_cache_walk_init(&walk, f->opts.cacher, index, &o->snapshot, w->all, VG_SLICE_LIT(""), &key);
    for (const struct vg_rec *rec; (rec = vg_cache_walk_next(&walk));) {
        if (o->n == VG_FLOW_OBJECTS_MAX) {
            vg_error(f->opts.log, "flow_objects_ignored", "resource=%s max=%u", w->kind->resource,
                     VG_FLOW_OBJECTS_MAX);
            break;
        }
        o->v[o->n++] = vg_rec_value(rec);
    }
    return 0;
}

static void on_changed(struct vg_timer *t)
{
    struct vg_flow_follow *f = VG_CONTAINER_OF(t, struct vg_flow_follow, changed);
    struct objects o[KINDS] = {0};
    int r = 0;
    for (size_t i = 0; i < KINDS && r == 0; i++)
        r = read_objects(f, &f->kinds[i], &o[i]);
    if (r == 0)
        r = vg_flow_configure(f->opts.flow, o[SCHEMAS].v, o[SCHEMAS].n, o[LEVELS].v, o[LEVELS].n);
    for (size_t i = 0; i < KINDS; i++)
        objects_done(&o[i]);
    if (r == 0)
        return;
    vg_warn(f->opts.log, "flow_not_configured", "error=%s", vg_err_text(r));
    if (r == VIGIL_E_UNSUPPORTED) /* the operator has switched the cache of these kinds off */
        return;
    vg_timer_start(f->opts.loop, &f->changed, VG_NS_PER_S, on_changed);
}

static void changed(struct vg_flow_follow *f)
{
    bool are_live = f->kinds[SCHEMAS].is_live && f->kinds[LEVELS].is_live;
    if (are_live && !f->changed.armed && !f->is_closed)
        vg_timer_start(f->opts.loop, &f->changed, SETTLE_NS, on_changed);
}

/* ---- watching ---- */

static void watch(struct watched *w);

static void on_retry(struct vg_timer *t)
{
    watch(VG_CONTAINER_OF(t, struct watched, retry));
}

static int take_frame(struct vg_sink *sink, const struct vg_frame *frame)
{
    struct watched *w = VG_CONTAINER_OF(sink, struct watched, sink);
    if (frame->change != VG_OBJ_NONE)
        changed(w->f);
    return VG_SINK_OPEN;
}

static void on_live(struct vg_sink *sink)
{
    struct watched *w = VG_CONTAINER_OF(sink, struct watched, sink);
    w->is_live = true;
    changed(w->f);
}

static void on_end(struct vg_sink *sink, enum vg_watch_end why, uint64_t oldest)
{
    struct watched *w = VG_CONTAINER_OF(sink, struct watched, sink);
    (void)oldest;
    w->watcher = NULL;
    if (!w->f->is_closed && why != VG_END_DRAIN)
        vg_timer_start(w->f->opts.loop, &w->retry, RETRY_NS, on_retry);
}

static const struct vg_sink_ops sink_ops = {.write = take_frame, .end = on_end, .live = on_live};

static void watch(struct watched *w)
{
    struct vg_cache_watch_opts o = {.kind = vg_kind_index(w->kind),
                                    .predicate = w->all,
                                    .start = VG_WATCH_STATE,
                                    .sink = &w->sink};
    vg_rev oldest;
    if (vg_cache_watch(w->f->opts.port, &o, &w->watcher, &oldest) < 0)
        vg_timer_start(w->f->opts.loop, &w->retry, RETRY_NS, on_retry);
}

/* ---- life ---- */

static void on_tick(struct vg_timer *t)
{
    struct vg_flow_follow *f = VG_CONTAINER_OF(t, struct vg_flow_follow, tick);
    vg_timer_start(f->opts.loop, &f->tick, vg_flow_tick(f->opts.flow), on_tick);
}

int vg_flow_follow_open(const struct vg_flow_follow_opts *opts, struct vg_flow_follow **ret_follow)
{
    struct vg_flow_follow *f = vg_new(struct vg_flow_follow);
    struct vg_status status;
    int r = f ? 0 : -ENOMEM;
    for (size_t i = 0; i < KINDS && r == 0; i++) {
        struct watched *w = &f->kinds[i];
        f->opts = *opts;
        *w = (struct watched){.sink = {&sink_ops}, .f = f};
        w->kind = vg_kind_find(VG_SLICE_LIT("flowcontrol.apiserver.k8s.io"), VG_SLICE_LIT("v1"),
                               vg_slice_str(resources[i]));
        r = VG_NEVER(!w->kind)
                ? VIGIL_E_INTERNAL
                : vg_obj_predicate_new(&(struct vg_obj_predicate_opts){.fields = w->kind->fields},
                                       &w->all, &status);
    }
    if (r < 0) {
        vg_flow_follow_close(f);
        return r;
    }
    for (size_t i = 0; i < KINDS; i++)
        watch(&f->kinds[i]);
    vg_timer_start(opts->loop, &f->tick, 0, on_tick);
    *ret_follow = f;
    return 0;
}

void vg_flow_follow_close(struct vg_flow_follow *f)
{
    if (!f)
        return;
    f->is_closed = true;
    for (size_t i = 0; i < KINDS; i++) {
        struct watched *w = &f->kinds[i];
        vg_timer_stop(f->opts.loop, &w->retry);
        if (w->watcher)
            vg_cache_watcher_stop(vg_steal(w->watcher));
        vg_obj_predicate_unref(w->all);
    }
    vg_timer_stop(f->opts.loop, &f->changed);
    vg_timer_stop(f->opts.loop, &f->tick);
    vg_free(f);
}
