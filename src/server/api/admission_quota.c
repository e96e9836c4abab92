/* admission_quota.c - the plugin ResourceQuota: what a new object uses must be left in every quota
 * of its namespace that is about it. The quota's status is written in the transaction that writes
 * the object, over the revision that was looked at, so that not even servers that do not know of
 * each other can give away more than there is, and what fails uses nothing. Who comes second is
 * told what the quota is now and counts anew.
 * status.hard counts, as there, which the resourcequota-controller sets; until it has counted what
 * is there already, an object must not slip in behind it: then the revision alone is checked. */
#include "admission.h"

#include <errno.h>

#include "claims.h"
#include "server/kinds/rules/usage.h"
#include "status_int.h"

/* Each time somebody else got through; with a hundred others in line it is our turn soon. */
#define MOVES_MAX 10000u

/* A quota that was not as the cache has it. */
struct vg_quota_seen {
    struct vg_quota_seen *next;
    struct vg_slice key;
    struct vg_rec *rec; /* reference; NULL: it is gone */
};

bool vg_quota_moved(struct vg_change *c, const struct vg_op *op)
{
    struct vg_arena *a = &c->call->ask->arena;
    struct vg_quota_seen *s = c->quotas;
    while (s && !vg_slice_eq(s->key, vg_rec_key(op->rec)))
        s = s->next;
    if (!s) {
        s = vg_arena_new(a, struct vg_quota_seen);
        if (!s || vg_arena_keep(a, vg_rec_key(op->rec), &s->key) < 0)
            return false;
        s->rec = NULL;
        s->next = c->quotas;
        c->quotas = s;
    }
    vg_rec_unref(s->rec);
    s->rec = op->prev ? vg_rec_ref(op->prev) : NULL;
    return ++c->quota_moves < MOVES_MAX;
}

void vg_quota_forget(struct vg_change *c)
{
    for (struct vg_quota_seen *s = c->quotas; s; s = s->next)
        s->rec = vg_rec_unref(s->rec);
    c->quotas = NULL;
}

/* The newer one of what the cache has and what was seen; NULL: it is gone. */
static const struct vg_rec *newest(const struct vg_change *c, const struct vg_rec *rec)
{
    for (const struct vg_quota_seen *s = c->quotas; s; s = s->next)
        if (vg_slice_eq(s->key, vg_rec_key(rec)))
            return !s->rec || s->rec->rev > rec->rev ? s->rec : rec;
    return rec;
}

/* ---- which quotas ---- */

/* A quota that is about the object. */
struct limit {
    struct limit *next;
    const struct vg_rec *rec;
    struct vg_json *root;
    const struct vg_json *hard;
    struct vg_json *used;
    struct vg_slice name;
};

struct charge {
    struct vg_change *c;
    const struct vg_kind *kind;
    const struct vg_json *obj, *old; /* old: NULL at a create */
    int64_t now_s;
    struct limit *first, **last;
};

static bool is_about(const struct charge *g, const struct vg_json *hard)
{
    if (hard)
        VG_JSON_FOREACH_MEMBER (m, hard)
            if (vg_usage_is_of(g->kind, vg_json_key(m)))
                return true;
    return false;
}

static int add_check(struct vg_change *c, const struct vg_rec *quota)
{
    struct vg_rec *rec = NULL;
    int r = vg_rec_new(VG_REC_DELETE, vg_rec_key(quota), VG_SLICE_LIT(""), VG_SLICE_LIT(""), &rec);
    return r < 0 ? r : vg_change_claim_op(c, VG_OP_CHECK, quota->rev, rec);
}

/* Something of the kind is limited that nobody has counted yet. */
static bool is_uncounted(const struct charge *g, const struct vg_json *quota,
                         const struct vg_json *hard)
{
    const struct vg_json *wanted = vg_json_get_str(vg_json_get_str(quota, "spec"), "hard");
    if (wanted)
        VG_JSON_FOREACH_MEMBER (m, wanted)
            if (vg_usage_is_of(g->kind, vg_json_key(m)) && !vg_json_get(hard, vg_json_key(m)))
                return true;
    return false;
}

/* Names of what is limited, as a list. */
static int names_of(const struct charge *g, const struct vg_json *hard, struct vg_slice *ret)
{
    int r = 0;
    *ret = VG_SLICE_LIT("");
    VG_JSON_FOREACH_MEMBER (m, hard)
        if (r == 0 && vg_usage_is_of(g->kind, vg_json_key(m)))
            r = vg_arena_printf(&g->c->scratch, ret, "%.*s%s%.*s", VG_SLICE_ARG(*ret),
                                ret->n ? "," : "", VG_SLICE_ARG(vg_json_key(m)));
    return r;
}

/* All that must hold before anything is counted. */
static int check_limit(const struct charge *g, const struct limit *l)
{
    struct vg_slice missing = VG_SLICE_LIT(""), names;
    int r = 0;
    if (g->kind == g->c->call->loop->api->admission->pods)
        r = vg_usage_missing(&g->c->scratch, g->obj, l->hard, &missing);
    if (r == 0 && missing.n)
        return vg_admission_refuse(g->c, g->c->name, "failed quota: %.*s: %.*s",
                                   VG_SLICE_ARG(l->name), VG_SLICE_ARG(missing));
    VG_JSON_FOREACH_MEMBER (m, l->hard) {
        if (r < 0 || !vg_usage_is_of(g->kind, vg_json_key(m)) ||
            vg_json_get(l->used, vg_json_key(m)))
            continue;
        r = names_of(g, l->hard, &names);
        return r < 0 ? r
                     : vg_admission_refuse(g->c, g->c->name,
                                           "status unknown for quota: %.*s, resources: %.*s",
                                           VG_SLICE_ARG(l->name), VG_SLICE_ARG(names));
    }
    return r;
}

static int look_at(struct charge *g, const struct vg_rec *rec)
{
    struct vg_json *root;
    int r = vg_admission_read(g->c, rec, &root);
    if (r < 0)
        return r;
    const struct vg_json *status = vg_json_get_str(root, "status");
    const struct vg_json *hard = vg_json_get_str(status, "hard");
    if (!is_about(g, hard) || !vg_usage_in_scope(g->kind, root, g->obj))
        return is_uncounted(g, root, hard) ? add_check(g->c, rec) : 0;
    struct limit *l = vg_arena_new(&g->c->scratch, struct limit);
    if (!l)
        return -ENOMEM;
    *l = (struct limit){.rec = rec, .root = root, .hard = hard};
    l->used = vg_json_get_str(status, "used");
    l->name = vg_json_text(vg_json_get_str(vg_json_get_str(root, "metadata"), "name"));
    *g->last = l;
    g->last = &l->next;
    return check_limit(g, l);
}

/* ---- counting ---- */

/* What the object needs beyond what it had, where it was counted before. */
static int delta_of(const struct charge *g, const struct limit *l, const struct vg_amounts *now,
                    const struct vg_amounts *before, struct vg_amounts *ret)
{
    bool was_counted = g->old && vg_usage_in_scope(g->kind, l->root, g->old);
    int r = 0;
    *ret = (struct vg_amounts){0};
    for (uint32_t i = 0; i < now->n && r == 0; i++) {
        struct vg_quantity q = now->v[i].q;
        const struct vg_amount *was = was_counted ? vg_amounts_find(before, now->v[i].name) : NULL;
        if (was && vg_quantity_sub(&q, &was->q) < 0)
            continue;
        if (vg_quantity_sign(&q) > 0 && vg_json_get(l->hard, now->v[i].name))
            r = vg_amounts_set(&g->c->scratch, ret, now->v[i].name, &q);
    }
    return r;
}

/* "cpu=2,pods=1": those of the names, with amounts out of a list or out of a map. */
static int say(struct vg_arena *a, const struct vg_amounts *names, const struct vg_json *map,
               struct vg_slice *ret)
{
    char room[VG_QUANTITY_TEXT_MAX];
    int r = 0;
    *ret = VG_SLICE_LIT("");
    for (uint32_t i = 0; i < names->n && r == 0; i++) {
        const struct vg_amount *x = &names->v[i];
        struct vg_slice text =
            map ? vg_json_text(vg_json_get(map, x->name)) : vg_quantity_text(&x->q, room);
        r = vg_arena_printf(a, ret, "%.*s%s%.*s=%.*s", VG_SLICE_ARG(*ret), ret->n ? "," : "",
                            VG_SLICE_ARG(x->name), VG_SLICE_ARG(text));
    }
    return r;
}

static int refuse(const struct charge *g, const struct limit *l, const struct vg_amounts *over)
{
    struct vg_arena *a = &g->c->scratch;
    struct vg_slice requested = {0}, used = {0}, limited = {0};
    int r = say(a, over, NULL, &requested);
    if (r == 0)
        r = say(a, over, l->used, &used);
    if (r == 0)
        r = say(a, over, l->hard, &limited);
    return r < 0 ? r
                 : vg_admission_refuse(
                       g->c, g->c->name,
                       "exceeded quota: %.*s, requested: %.*s, used: %.*s, limited: %.*s",
                       VG_SLICE_ARG(l->name), VG_SLICE_ARG(requested), VG_SLICE_ARG(used),
                       VG_SLICE_ARG(limited));
}

/* The quota with more used becomes a part of the change. */
static int write_quota(const struct charge *g, const struct limit *l)
{
    const struct vg_kind *kind = g->c->call->loop->api->admission->quotas;
    VG_AUTO(obj_sealed) sealed;
    struct vg_status why;
    struct vg_rec *rec = NULL;
    vg_obj_sealed_init(&sealed);
    int r = vg_obj_seal(kind->fields, l->root, &sealed, &why);
    if (r == 0)
        r = vg_rec_new(VG_REC_PUT, vg_rec_key(l->rec), vg_buf_slice(&sealed.header),
                       vg_buf_slice(&sealed.value), &rec);
    return r < 0 ? r : vg_change_claim_op(g->c, VG_OP_PUT, l->rec->rev, rec);
}

/* More is used, if there is so much left. */
static int use(const struct charge *g, struct limit *l, const struct vg_amounts *delta)
{
    struct vg_arena *a = &g->c->scratch;
    struct vg_amounts over = {0}, sums = {0};
    char room[VG_QUANTITY_TEXT_MAX];
    int r = 0;
    for (uint32_t i = 0; i < delta->n && r == 0; i++) {
        const struct vg_amount *x = &delta->v[i];
        struct vg_quantity sum, hard;
        (void)vg_json_quantity(vg_json_get(l->used, x->name), &sum);
        (void)vg_json_quantity(vg_json_get(l->hard, x->name), &hard);
        if (vg_quantity_add(&sum, &x->q) < 0 || vg_quantity_cmp(&sum, &hard) > 0)
            r = vg_amounts_set(a, &over, x->name, &x->q);
        else
            r = vg_amounts_set(a, &sums, x->name, &sum);
    }
    if (r == 0 && over.n)
        return refuse(g, l, &over);
    for (uint32_t i = 0; i < sums.n && r == 0; i++) {
        struct vg_json v;
        r = vg_json_make_string(a, vg_quantity_text(&sums.v[i].q, room), &v);
        if (r == 0)
            r = vg_json_object_set(a, l->used, sums.v[i].name, v);
    }
    return r;
}

static int count(struct charge *g)
{
    struct vg_amounts now, before = {0}, delta;
    int r = vg_usage_of(&g->c->scratch, g->kind, g->obj, g->now_s, &now);
    if (r == 0 && g->old)
        r = vg_usage_of(&g->c->scratch, g->kind, g->old, g->now_s, &before);
    for (struct limit *l = g->first; l && r == 0; l = l->next) {
        r = delta_of(g, l, &now, &before, &delta);
        if (r == 0 && delta.n)
            r = use(g, l, &delta);
        if (r == 0 && delta.n)
            r = write_quota(g, l);
    }
    return r;
}

int vg_quota_charge(struct vg_change *c, const struct vg_json *root, const struct vg_json *old)
{
    struct vg_api *api = c->call->loop->api;
    struct vg_admission_walk w;
    struct charge g = {.c = c, .kind = vg_kind_stored(c->kind), .obj = root, .old = old};
    const struct vg_rec *rec;
    bool is_resize = c->call->ask->target->sub;
    int r = 0;
    if (!vg_usage_counts(g.kind) ||
        (old && !is_resize && !vg_usage_may_change(g.kind, old, root)) ||
        !vg_admission_walk(&w, api->cacher, api->admission->quotas, c->ns))
        return 0;
    g.last = &g.first;
    g.now_s = vg_clock_wall_ms(api->clock) / 1000;
    while (r == 0 && (rec = vg_admission_next(&w))) {
        rec = newest(c, rec);
        if (rec)
            r = look_at(&g, rec);
    }
    if (r == 0 && g.first)
        r = count(&g);
    vg_admission_walk_end(&w);
    return r;
}
