/* control.c - the controllers' common life: following kinds, looking into the cache, and their
 * switches; see control.h. */
#include <errno.h>

#include "base/alloc.h"
#include "garbage.h"

/* They follow everything and are in no hurry: at most 50 wakes in a second. */
#define NAP_MS 20u
#define RETRY_MS 50u

static const struct vg_controller_ops *const controllers[VG_CONTROLLERS] = {
    [VG_CONTROL_BOOTSTRAP] = &vg_bootstrap_controller,
    [VG_CONTROL_NAMESPACE] = &vg_namespace_controller,
    [VG_CONTROL_SERVICE_ACCOUNT] = &vg_account_controller,
    [VG_CONTROL_ROOT_CA] = &vg_root_ca_controller,
    [VG_CONTROL_GARBAGE] = &vg_garbage_controller,
    [VG_CONTROL_QUOTA] = &vg_quota_controller,
    [VG_CONTROL_FLOW] = &vg_flow_controller,
};

static bool is_on(const struct vg_control *c, size_t i)
{
    return c->opts.set & (1u << i);
}

/* ---- switches ---- */

static unsigned find_by_name(struct vg_slice name)
{
    for (size_t i = 0; i < VG_CONTROLLERS; i++) {
        if (vg_slice_eq(name, vg_slice_str(controllers[i]->name)))
            return 1u << i;
    }
    return 0;
}

int vg_control_parse(const char *list, unsigned *ret_set, struct vg_status *reterr_status)
{
    unsigned set = 0, off = 0;
    for (const char *p = list ? list : ""; *p;) {
        size_t n = strcspn(p, ",");
        struct vg_slice word = vg_slice(p, n);
        bool is_off = n && *p == '-';
        if (is_off)
            word = vg_slice(p + 1, n - 1);
        unsigned bit =
            !is_off && vg_slice_eq(word, VG_SLICE_LIT("*")) ? VG_CONTROL_ALL : find_by_name(word);
        if (!bit)
            return vg_fail(reterr_status, VIGIL_E_INVALID,
                           "\"%.*s\" is not in the list of known controllers", VG_SLICE_ARG(word));
        if (is_off)
            off |= bit;
        else
            set |= bit;
        p += n;
        p += *p == ',';
    }
    *ret_set = set & ~off;
    return 0;
}

/* ---- looking ---- */

struct vg_rec *vg_control_get_key(struct vg_control *c, const struct vg_kind *kind,
                                  struct vg_slice key)
{
    struct vg_cache_snapshot snap;
    if (vg_cache_newest(c->cacher, vg_kind_index(kind), &snap) < 0)
        return NULL;
    const struct vg_rec *rec = vg_root_get(snap.root, (struct vg_tree_key){.minor = key});
    struct vg_rec *held = rec ? vg_rec_ref(rec) : NULL;
    vg_cache_snapshot_done(&snap);
    return held;
}

struct vg_rec *vg_control_get(struct vg_control *c, const struct vg_kind *kind, struct vg_slice ns,
                              struct vg_slice name)
{
    struct vg_obj_key key;
    if (vg_obj_key_make(vg_slice_str(kind->prefix), ns, name, &key) < 0)
        return NULL;
    return vg_control_get_key(c, kind, vg_obj_key_slice(&key));
}

bool vg_control_finalizers(const struct vg_rec *rec, struct vg_json_iter *ret)
{
    const struct vg_json_step path[] = {vg_json_step_key("metadata"),
                                        vg_json_step_key("finalizers")};
    struct vg_slice list;
    return vg_json_find(vg_rec_value(rec), path, 2, &list) == 0 &&
           vg_json_iter_init(ret, list) == 0;
}

int vg_control_each(struct vg_control *c, const struct vg_kind *kind, struct vg_slice ns,
                    vg_control_each_fn *each, void *arg)
{
    struct vg_obj_predicate_opts o = {.fields = kind->fields, .ns = ns};
    size_t index = vg_kind_index(kind);
    struct vg_cache_snapshot snap;
    struct vg_obj_predicate *p;
    struct vg_status status;
    struct vg_cache_walk walk;
    struct vg_obj_key key;
    bool goes_on = true;
    int r = vg_obj_predicate_new(&o, &p, &status);
    if (r < 0)
        return r;
    r = vg_cache_newest(c->cacher, index, &snap);
    if (r == 0 && vg_cache_unreadable(c->cacher, index, p, &key)) {
        vg_cache_snapshot_done(&snap);
        r = VIGIL_E_STORE_DAMAGED;
    }
    if (r == 0) {
        vg_cache_walk_init(&walk, c->cacher, index, &snap, p, VG_SLICE_LIT(""), &key);
        for (const struct vg_rec *rec; goes_on && (rec = vg_cache_walk_next(&walk));)
            goes_on = each(arg, kind, rec);
        vg_cache_snapshot_done(&snap);
    }
    vg_obj_predicate_unref(p);
    return r < 0 ? r : !goes_on;
}

void vg_control_add(struct vg_control *c, enum vg_controller which, struct vg_slice key)
{
    if (vg_work_add(&c->work[which], key) < 0)
        vg_error(c->log, "no_memory", "controller=%s", controllers[which]->name);
}

static const struct vg_kind *core_kind(const char *resource)
{
    return vg_kind_find(VG_SLICE_LIT(""), VG_SLICE_LIT("v1"), vg_slice_str(resource));
}

/* ---- following ---- */

static void follow_start(struct vg_follow *f);

static void on_retry(struct vg_timer *t)
{
    follow_start(VG_CONTAINER_OF(t, struct vg_follow, retry));
}

static void pause_work(struct vg_control *c, bool is_paused)
{
    for (size_t i = 0; i < VG_CONTROLLERS; i++)
        vg_work_pause(&c->work[i], is_paused);
}

/* S1: work runs only while every follow has told its whole state. What has not been told yet looks
 * like something that is not there: an owner without dependents, a namespace without pods. */
static void state_is_told(struct vg_follow *f)
{
    struct vg_control *c = f->c;
    assert(!f->is_told);
    f->is_told = true;
    if (++c->n_told < c->n_follows)
        return;
    for (size_t i = 0; i < VG_CONTROLLERS; i++) {
        if (is_on(c, i) && controllers[i]->synced)
            controllers[i]->synced(c);
    }
    pause_work(c, false);
}

/* It will tell its state anew: until then nothing may be concluded from what is missing. */
static void state_is_lost(struct vg_follow *f)
{
    f->c->n_told -= f->is_told;
    f->is_told = false;
    pause_work(f->c, true);
}

static int take_frame(struct vg_sink *sink, const struct vg_frame *frame)
{
    struct vg_follow *f = VG_CONTAINER_OF(sink, struct vg_follow, sink);
    struct vg_control *c = f->c;
    if (frame->change == VG_OBJ_NONE) { /* the bookmark at the end of the state */
        state_is_told(f);
        return VG_SINK_OPEN;
    }
    struct vg_control_event e = {.change = frame->change, .kind = f->kind, .rec = frame->block};
    vg_obj_header_read(vg_rec_header(e.rec), vg_rec_value(e.rec), &e.h);
    for (size_t i = 0; i < VG_CONTROLLERS; i++) {
        if (is_on(c, i))
            controllers[i]->event(c, &e);
    }
    return VG_SINK_OPEN;
}

static void follow_ended(struct vg_sink *sink, enum vg_watch_end why, uint64_t oldest)
{
    struct vg_follow *f = VG_CONTAINER_OF(sink, struct vg_follow, sink);
    (void)oldest;
    f->watcher = NULL;
    state_is_lost(f);
    if (f->c->is_stopped || why == VG_END_DRAIN)
        return;
    vg_timer_start(f->c->loop, &f->retry, RETRY_MS * VG_NS_PER_MS, on_retry);
}

static const struct vg_sink_ops sink_ops = {.write = take_frame, .end = follow_ended};

static void follow_start(struct vg_follow *f)
{
    struct vg_cache_watch_opts o = {.kind = vg_kind_index(f->kind),
                                    .predicate = f->all,
                                    .start = VG_WATCH_STATE,
                                    .with_end_bookmark = true,
                                    .sink = &f->sink};
    vg_rev oldest;
    if (!f->c->is_stopped && vg_cache_watch(f->c->opts.port, &o, &f->watcher, &oldest) < 0)
        vg_timer_start(f->c->loop, &f->retry, RETRY_MS * VG_NS_PER_MS, on_retry);
}

void vg_control_follow(struct vg_control *c, bool is_wanted)
{
    for (size_t i = 0; i < c->n_follows; i++) {
        struct vg_follow *f = &c->follows[i];
        if (is_wanted) {
            follow_start(f);
            continue;
        }
        vg_timer_stop(c->loop, &f->retry);
        if (f->watcher)
            vg_cache_watcher_stop(vg_steal(f->watcher));
        state_is_lost(f);
    }
}

static bool is_followed(const struct vg_control *c, const struct vg_kind *kind)
{
    if (kind->stored || vg_kind_is(kind, VG_KIND_NOT_STORED) || vg_kind_is(kind, VG_KIND_UNCACHED))
        return false;
    if (kind == c->namespaces)
        return true;
    for (size_t i = 0; i < VG_CONTROLLERS; i++) {
        const struct vg_controller_ops *k = controllers[i];
        if (!is_on(c, i))
            continue;
        if (k->follows_all)
            return true;
        for (const char *const *name = k->follows; name && *name; name++) {
            if (strcmp(*name, kind->resource) == 0)
                return true;
        }
    }
    return false;
}

static int add_follow(struct vg_control *c, const struct vg_kind *kind)
{
    struct vg_follow *f = &c->follows[c->n_follows];
    struct vg_status status;
    *f = (struct vg_follow){.sink = {&sink_ops}, .c = c, .kind = kind};
    int r = vg_obj_predicate_new(&(struct vg_obj_predicate_opts){.fields = kind->fields}, &f->all,
                                 &status);
    if (r == 0)
        c->n_follows++;
    return r;
}

static int add_follows(struct vg_control *c)
{
    size_t n;
    const struct vg_kind *kinds = vg_kinds(&n);
    int r = 0;
    c->follows = vg_calloc(n, sizeof *c->follows);
    if (!c->follows)
        return -ENOMEM;
    for (size_t i = 0; i < n && r == 0; i++) {
        if (is_followed(c, &kinds[i]))
            r = add_follow(c, &kinds[i]);
    }
    return r;
}

/* ---- life ---- */

int vg_control_open(const struct vg_control_opts *opts, struct vg_control **ret_control)
{
    struct vg_control *c = vg_new(struct vg_control);
    if (!c)
        return -ENOMEM;
    c->opts = *opts;
    c->loop = opts->loop;
    c->cacher = opts->cacher;
    c->log = opts->log;
    c->namespaces = core_kind("namespaces");
    c->pods = core_kind("pods");
    c->accounts = core_kind("serviceaccounts");
    c->config_maps = core_kind("configmaps");
    c->quotas = core_kind("resourcequotas");
    c->services = core_kind("services");
    c->claims = core_kind("persistentvolumeclaims");
    c->leases = vg_kind_find(VG_SLICE_LIT("coordination.k8s.io"), VG_SLICE_LIT("v1"),
                             VG_SLICE_LIT("leases"));
    for (size_t i = 0; i < VG_CONTROLLERS; i++)
        vg_work_init(&c->work[i], c->loop, controllers[i]->run, c);
    pause_work(c, true); /* S1 */
    int r = vg_inside_new(opts->server, "system:vigild-controllers", &c->inside);
    if (r == 0)
        r = vg_garbage_new(c, &c->garbage);
    if (r == 0)
        r = add_follows(c);
    if (r < 0) {
        vg_control_stop(c);
        vg_control_free(c);
        return r;
    }
    vg_cache_port_nap(opts->port, NAP_MS);
    *ret_control = c;
    return 0;
}

int vg_control_start(struct vg_control *c)
{
    if (c->opts.identity)
        return vg_lead_start(c);
    vg_control_follow(c, true);
    return 0;
}

void vg_control_stop(struct vg_control *c)
{
    if (c->is_stopped)
        return;
    c->is_stopped = true;
    vg_lead_stop(c);
    vg_control_follow(c, false);
    for (size_t i = 0; i < VG_CONTROLLERS; i++)
        vg_work_close(&c->work[i]);
}

void vg_control_free(struct vg_control *c)
{
    if (!c)
        return;
    vg_inside_free(c->inside); /* what is under way ends with it */
    for (size_t i = 0; i < VG_CONTROLLERS; i++)
        vg_work_free_all(&c->work[i]);
    vg_garbage_free(c->garbage);
    for (size_t i = 0; i < c->n_follows; i++)
        vg_obj_predicate_unref(c->follows[i].all);
    vg_free(c->follows);
    vg_free(c);
}
