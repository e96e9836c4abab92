/* quota.c - what quotas say is used. Creates count themselves in as they happen (the plugin
 * ResourceQuota, api/admission_quota.c); here a quota gets its first count when it is made or
 * changed, and is counted anew when something has gone that it limits.
 *
 * The count is exact while others create: it is written over the revision of the quota that was
 * looked at, and made from a state that is not older than that revision. Whoever was counted in
 * later has moved the quota, and the write fails. Objects that came in while nobody counted yet are
 * found by counting once more after the first write, which they cannot come behind. */
#include <errno.h>
#include <inttypes.h>

#include "control_int.h"
#include "server/kinds/rules/usage.h"
#include "json/scan.h"

/* Counted again: after the first count; when the cache or a write was behind. */
#define AGAIN_MS 100u
#define BEHIND_MS 10u
/* All of them, for what no event tells: pods that should be gone. As there. */
#define ALL_MS (5u * 60 * 1000)
#define ALL "*"

/* ---- when ---- */

static bool recount(void *arg, const struct vg_kind *kind, const struct vg_rec *quota)
{
    (void)kind;
    vg_control_add(arg, VG_CONTROL_QUOTA, vg_rec_key(quota));
    return true;
}

/* Quotas of a namespace, or with an empty one all. */
static void recount_all(struct vg_control *c, struct vg_slice ns)
{
    int r = vg_control_each(c, c->quotas, ns, recount, c);
    if (r < 0)
        vg_warn(c->log, "quotas_unreadable", "why=%s", vg_err_text(r));
}

static struct vg_slice part_of(const struct vg_rec *quota, const char *name)
{
    const struct vg_json_step path[] = {vg_json_step_key(name), vg_json_step_key("hard")};
    struct vg_slice text;
    return vg_json_find(vg_rec_value(quota), path, 2, &text) < 0 ? VG_SLICE_LIT("") : text;
}

static bool is_ended(const struct vg_control_event *e)
{
    const struct vg_json_step path[] = {vg_json_step_key("status"), vg_json_step_key("phase")};
    struct vg_slice phase;
    return vg_json_find(vg_rec_value(e->rec), path, 2, &phase) == 0 &&
           (vg_slice_eq(phase, VG_SLICE_LIT("\"Failed\"")) ||
            vg_slice_eq(phase, VG_SLICE_LIT("\"Succeeded\"")));
}

/* May quotas have more left than before? */
static bool is_less(const struct vg_control *c, const struct vg_control_event *e)
{
    if (e->change == VG_OBJ_DELETED)
        return true;
    if (e->change == VG_OBJ_ADDED)
        return false;
    return e->kind == c->pods ? is_ended(e) : e->kind == c->services || e->kind == c->claims;
}

static void on_event(struct vg_control *c, const struct vg_control_event *e)
{
    struct vg_slice ns = vg_obj_namespace(&e->h);
    if (e->kind == c->quotas && e->change != VG_OBJ_DELETED &&
        (e->change == VG_OBJ_ADDED ||
         !vg_slice_eq(part_of(e->rec, "spec"), part_of(e->rec, "status"))))
        (void)recount(c, e->kind, e->rec);
    if (ns.n && vg_cache_glance(c->cacher, vg_kind_index(c->quotas)).objects && is_less(c, e) &&
        vg_usage_counts(e->kind))
        recount_all(c, ns);
}

static void on_synced(struct vg_control *c)
{
    vg_control_add(c, VG_CONTROL_QUOTA, VG_SLICE_LIT(ALL));
}

/* ---- counting ---- */

struct count {
    struct vg_control *c;
    struct vg_work_item *item;
    const struct vg_rec *rec;
    struct vg_arena arena; /* of the quota and of the sums */
    struct vg_arena one;   /* of one object */
    struct vg_json *root;
    const struct vg_json *hard; /* of spec */
    struct vg_slice ns;
    bool has_scopes;
    struct vg_amounts used;
    int64_t now_s;
    int err;
};

/* Names and amounts of an object's usage live with it alone: those that count are kept. */
static int add_usage(struct count *n, const struct vg_kind *kind, const struct vg_amounts *usage)
{
    int r = 0;
    for (uint32_t i = 0; i < usage->n && r == 0; i++) {
        const struct vg_json_member *m = vg_json_member(n->hard, usage->v[i].name);
        struct vg_quantity q = usage->v[i].q;
        if (!m || !vg_usage_is_of(kind, usage->v[i].name))
            continue;
        q.written = VG_SLICE_LIT("");
        r = vg_amounts_add(&n->arena, &n->used, vg_json_key(m), &q);
    }
    return r;
}

static bool add_object(void *arg, const struct vg_kind *kind, const struct vg_rec *rec)
{
    struct count *n = arg;
    struct vg_json_opts opts = {.max_depth = VG_JSON_DEPTH_MAX};
    struct vg_amounts usage;
    struct vg_json *obj;
    vg_arena_reset(&n->one);
    n->err = vg_json_parse(&n->one, vg_rec_value(rec), &opts, &obj, NULL);
    if (n->err == 0 && !vg_usage_in_scope(kind, n->root, obj))
        return true;
    if (n->err == 0)
        n->err = vg_usage_of(&n->one, kind, obj, n->now_s, &usage);
    if (n->err == 0)
        n->err = add_usage(n, kind, &usage);
    return n->err == 0;
}

/* 0 of everything that is limited of the kind: what is not used is said too. False: nothing is. */
static bool begin_kind(struct count *n, const struct vg_kind *kind, bool *ret_is_plain, int *err)
{
    struct vg_quantity zero = vg_quantity_of(0, 0, VG_QUANTITY_DECIMAL);
    bool is = false;
    *ret_is_plain = !n->has_scopes;
    VG_JSON_FOREACH_MEMBER (m, n->hard) {
        if (!vg_usage_is_of(kind, vg_json_key(m)))
            continue;
        is = true;
        *ret_is_plain = *ret_is_plain && vg_usage_is_plain(kind, vg_json_key(m));
        if (*err == 0)
            *err = vg_amounts_add(&n->arena, &n->used, vg_json_key(m), &zero);
    }
    return is;
}

/* All of the same: each object is one. */
static int add_plain(struct count *n, const struct vg_kind *kind)
{
    struct vg_obj_key_range range;
    struct vg_cache_snapshot snap = {0};
    int r = vg_obj_key_range(vg_slice_str(kind->prefix), n->ns, &range);
    if (r == 0)
        r = vg_cache_newest(n->c->cacher, vg_kind_index(kind), &snap);
    if (r < 0)
        return r;
    struct vg_tree_key prefix = {.minor = vg_obj_key_slice(&range.start)};
    size_t objects = vg_root_count_prefix(snap.root, prefix);
    struct vg_quantity q = vg_quantity_of((int64_t)objects, 0, VG_QUANTITY_DECIMAL);
    vg_cache_snapshot_done(&snap);
    VG_JSON_FOREACH_MEMBER (m, n->hard)
        if (r == 0 && vg_usage_is_of(kind, vg_json_key(m)))
            r = vg_amounts_set(&n->arena, &n->used, vg_json_key(m), &q);
    return r;
}

static int count_kind(struct count *n, const struct vg_kind *kind)
{
    bool is_plain;
    int r = 0;
    if (kind->stored || !vg_usage_counts(kind) || !begin_kind(n, kind, &is_plain, &r) || r < 0)
        return r;
    if (is_plain)
        return add_plain(n, kind);
    r = vg_control_each(n->c, kind, n->ns, add_object, n);
    return r < 0 ? r : n->err;
}

static int count_all(struct count *n)
{
    size_t k;
    const struct vg_kind *kinds = vg_kinds(&k);
    int r = 0;
    for (size_t i = 0; i < k && r == 0; i++)
        r = count_kind(n, &kinds[i]);
    return r;
}

/* ---- writing ---- */

static bool is_as_counted(const struct count *n)
{
    const struct vg_json *status = vg_json_get_str(n->root, "status");
    const struct vg_json *used = vg_json_get_str(status, "used");
    struct vg_quantity q;
    if (!vg_slice_eq(part_of(n->rec, "spec"), part_of(n->rec, "status")) || !used ||
        used->n != n->used.n)
        return false;
    for (uint32_t i = 0; i < n->used.n; i++) {
        const struct vg_amount *x = &n->used.v[i];
        if (!vg_json_quantity(vg_json_get(used, x->name), &q) || vg_quantity_cmp(&q, &x->q) != 0)
            return false;
    }
    return true;
}

static int set_status(struct count *n)
{
    struct vg_arena *a = &n->arena;
    struct vg_json status = vg_json_object(), used = vg_json_object(), v;
    struct vg_json *meta = vg_json_get_str(n->root, "metadata");
    char room[VG_QUANTITY_TEXT_MAX];
    struct vg_slice rev;
    int r = vg_arena_printf(a, &rev, "%" PRIu64, n->rec->rev);
    if (r == 0)
        r = vg_json_object_set(a, meta, VG_SLICE_LIT("resourceVersion"), vg_json_string_ref(rev));
    for (uint32_t i = 0; i < n->used.n && r == 0; i++) {
        r = vg_json_make_string(a, vg_quantity_text(&n->used.v[i].q, room), &v);
        if (r == 0)
            r = vg_json_object_add(a, &used, n->used.v[i].name, v);
    }
    if (r == 0)
        r = vg_json_object_add(a, &status, VG_SLICE_LIT("hard"), *n->hard);
    if (r == 0)
        r = vg_json_object_add(a, &status, VG_SLICE_LIT("used"), used);
    return r < 0 ? r : vg_json_object_set(a, n->root, VG_SLICE_LIT("status"), status);
}

/* 409: it has moved. */
static void on_written(struct vg_errand *e)
{
    if (e->call.err == 0 && (e->call.status == 409 || vg_errand_ok(e)))
        vg_work_later(e->item, AGAIN_MS);
    else
        vg_errand_settle(e, 404);
}

static int write_count(struct count *n)
{
    struct vg_errand *e = vg_errand_new(n->c, "PUT", n->item, on_written);
    struct vg_slice name =
        vg_json_text(vg_json_get_str(vg_json_get_str(n->root, "metadata"), "name"));
    int r = e ? vg_errand_path(e, n->c->quotas, n->ns, name, "status") : -ENOMEM;
    if (r == 0)
        r = set_status(n);
    if (r == 0)
        r = vg_json_write(&e->body, n->root, 0);
    if (r == 0)
        (void)vg_errand_send(e, VG_TYPE_JSON);
    else
        vg_errand_free(e);
    return r;
}

/* 1: a write is under way, which ends the item; 0: all is as it should be; VIGIL_E_BUSY: the cache
 * may show what is older than the quota. */
static int look(struct count *n)
{
    struct vg_json_opts opts = {.max_depth = VG_JSON_DEPTH_MAX};
    if (vg_cacher_revision(n->c->cacher) < n->rec->rev)
        return VIGIL_E_BUSY;
    int r = vg_json_parse(&n->arena, vg_rec_value(n->rec), &opts, &n->root, NULL);
    if (r < 0)
        return r;
    const struct vg_json *spec = vg_json_get_str(n->root, "spec");
    n->hard = vg_json_get_str(spec, "hard");
    n->ns = vg_json_text(vg_json_get_str(vg_json_get_str(n->root, "metadata"), "namespace"));
    n->has_scopes = vg_json_get_str(spec, "scopes") || vg_json_get_str(spec, "scopeSelector");
    if (!vg_json_is(n->hard, VG_JSON_OBJECT))
        return 0;
    r = count_all(n);
    if (r < 0 || is_as_counted(n))
        return r;
    r = write_count(n);
    return r < 0 ? r : 1;
}

static void run(struct vg_work_item *item)
{
    struct vg_control *c = item->work->arg;
    if (vg_slice_eq(item->key, VG_SLICE_LIT(ALL))) {
        recount_all(c, VG_SLICE_LIT(""));
        vg_work_later(item, ALL_MS);
        return;
    }
    struct vg_rec *rec = vg_control_get_key(c, c->quotas, item->key);
    struct count n = {
        .c = c, .item = item, .rec = rec, .now_s = vg_clock_wall_ms(vg_loop_clock(c->loop)) / 1000};
    int r = rec ? look(&n) : 0;
    vg_arena_done(&n.arena);
    vg_arena_done(&n.one);
    vg_rec_unref(rec);
    if (r == 0)
        vg_work_done(item);
    else if (r == VIGIL_E_BUSY)
        vg_work_later(item, BEHIND_MS);
    else if (r < 0)
        vg_work_failed(item);
}

const struct vg_controller_ops vg_quota_controller = {
    .name = "resourcequota-controller",
    .follows_all = true,
    .event = on_event,
    .run = run,
    .synced = on_synced,
};
