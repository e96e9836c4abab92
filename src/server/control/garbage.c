/* garbage.c - who is an owner, and whom its end concerns; see garbage.h. */
#include "garbage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/hash.h"

/* Owners that go together are looked for together. */
#define SWEEP_MS 10u
/* Owners that are worth counting anew. */
#define OWNERS_MIN 4096u
/* Uids that the API said are gone: beyond this they are asked for again. */
#define ABSENT_MAX 16384u

/* ---- a set of uids, by hash ---- */

/* A hash that two uids share costs a walk or a question too many, never a wrong answer: who acts on
 * one compares uids, or has asked for this very owner by name. */
struct uid_set {
    uint64_t *v; /* 0: empty */
    size_t cap, n;
};

static bool set_has(const struct uid_set *s, uint64_t h)
{
    for (size_t i = h & (s->cap - 1); s->cap && s->v[i]; i = (i + 1) & (s->cap - 1)) {
        if (s->v[i] == h)
            return true;
    }
    return false;
}

static void set_put(struct uid_set *s, uint64_t h)
{
    size_t i = h & (s->cap - 1);
    while (s->v[i] && s->v[i] != h)
        i = (i + 1) & (s->cap - 1);
    s->n += s->v[i] == 0;
    s->v[i] = h;
}

static int set_add(struct uid_set *s, uint64_t h)
{
    if (set_has(s, h))
        return 0;
    if (s->n * 2 >= s->cap) {
        struct uid_set larger = {.cap = s->cap ? s->cap * 2 : 64};
        larger.v = vg_calloc(larger.cap, sizeof *larger.v);
        if (!larger.v)
            return -ENOMEM;
        for (size_t i = 0; i < s->cap; i++) {
            if (s->v[i])
                set_put(&larger, s->v[i]);
        }
        vg_free(s->v);
        *s = larger;
    }
    set_put(s, h);
    return 0;
}

static void set_done(struct uid_set *s)
{
    vg_free(s->v);
    *s = (struct uid_set){0};
}

/* ---- state ---- */

struct vg_garbage {
    struct vg_control *c;
    struct vg_hash_key hash_key;
    struct uid_set owners, absent;
    size_t owners_max;  /* of owners: beyond it they are counted anew */
    bool *has_owned;    /* by kind index: some object of it has owners */
    bool is_synced;     /* the cache has told its state: who is not there is gone */
    bool owes_check;    /* not every kind could be looked at when the state had been told */
    struct vg_map gone; /* uid -> its namespace, a string; to be swept */
    struct vg_timer sweep;
};

int vg_garbage_new(struct vg_control *c, struct vg_garbage **ret_garbage)
{
    size_t n;
    (void)vg_kinds(&n);
    struct vg_garbage *g = vg_new(struct vg_garbage);
    if (!g)
        return -ENOMEM;
    g->c = c;
    g->owners_max = OWNERS_MIN;
    vg_map_init(&g->gone, VG_MAP_COPIES_KEYS);
    g->has_owned = vg_calloc(n, sizeof *g->has_owned);
    int r = g->has_owned ? vg_hash_key_make(&g->hash_key) : -ENOMEM;
    if (r < 0) {
        vg_garbage_free(g);
        return r;
    }
    *ret_garbage = g;
    return 0;
}

static void forget_gone(struct vg_garbage *g)
{
    VG_MAP_FOREACH (e, &g->gone)
        vg_free(e->value);
    vg_map_clear(&g->gone);
}

void vg_garbage_free(struct vg_garbage *g)
{
    if (!g)
        return;
    vg_timer_stop(g->c->loop, &g->sweep);
    forget_gone(g);
    vg_map_done(&g->gone);
    set_done(&g->owners);
    set_done(&g->absent);
    vg_free(g->has_owned);
    vg_free(g);
}

static uint64_t hash_of(const struct vg_garbage *g, struct vg_slice uid)
{
    uint64_t h = vg_hash(&g->hash_key, uid);
    return h ? h : 1;
}

bool vg_garbage_is_absent(const struct vg_garbage *g, struct vg_slice uid)
{
    return set_has(&g->absent, hash_of(g, uid));
}

void vg_garbage_note_absent(struct vg_garbage *g, struct vg_slice uid)
{
    if (g->absent.n >= ABSENT_MAX)
        set_done(&g->absent);
    (void)set_add(&g->absent, hash_of(g, uid)); /* else it is asked for again */
}

/* ---- keys of work ---- */

void vg_garbage_add(struct vg_control *c, const struct vg_kind *kind, struct vg_slice key)
{
    char text[VG_GARBAGE_KEY_MAX];
    int n = snprintf(text, sizeof text, "%zu:%.*s", vg_kind_index(kind), VG_SLICE_ARG(key));
    if (!VG_NEVER(n < 0 || (size_t)n >= sizeof text))
        vg_control_add(c, VG_CONTROL_GARBAGE, vg_slice(text, (size_t)n));
}

struct vg_dependent vg_garbage_of(struct vg_slice work_key)
{
    size_t n, at = 0, index = 0;
    const struct vg_kind *kinds = vg_kinds(&n);
    for (; at < work_key.n && work_key.p[at] != ':'; at++)
        index = index * 10 + (size_t)(work_key.p[at] - '0');
    return (struct vg_dependent){&kinds[index], vg_slice(work_key.p + at + 1, work_key.n - at - 1)};
}

/* ---- owners ---- */

void vg_owners_begin(struct vg_owner_iter *it, struct vg_arena *arena, const struct vg_rec *rec)
{
    const struct vg_json_step path[] = {vg_json_step_key("metadata"),
                                        vg_json_step_key("ownerReferences")};
    struct vg_slice list;
    it->arena = arena;
    it->is_open = vg_json_find(vg_rec_value(rec), path, 2, &list) == 0 &&
                  vg_json_iter_init(&it->at, list) == 0;
}

bool vg_owners_next(struct vg_owner_iter *it, struct vg_owner *ret, struct vg_slice *ret_raw)
{
    struct vg_json_raw entry, member;
    struct vg_json_iter in;
    if (!it->is_open || vg_json_iter_next(&it->at, &entry) <= 0 ||
        vg_json_iter_init(&in, entry.value) < 0)
        return false;
    *ret = (struct vg_owner){.blocks = false};
    while (vg_json_iter_next(&in, &member) > 0) {
        struct vg_slice *to = vg_slice_eq(member.key, VG_SLICE_LIT("uid"))    ? &ret->uid
                              : vg_slice_eq(member.key, VG_SLICE_LIT("name")) ? &ret->name
                              : vg_slice_eq(member.key, VG_SLICE_LIT("kind")) ? &ret->kind
                              : vg_slice_eq(member.key, VG_SLICE_LIT("apiVersion"))
                                  ? &ret->api_version
                                  : NULL;
        if (to && vg_json_raw_text(it->arena, member.value, to) < 0)
            return false;
        if (vg_slice_eq(member.key, VG_SLICE_LIT("blockOwnerDeletion")))
            ret->blocks = vg_slice_eq(member.value, VG_SLICE_LIT("true"));
    }
    if (ret_raw)
        *ret_raw = entry.value;
    return true;
}

const struct vg_kind *vg_owner_kind(const struct vg_owner *o)
{
    if (o->api_version.n == 0)
        return NULL; /* stored by others: we take no owner without one */
    const char *slash = memchr(o->api_version.p, '/', o->api_version.n);
    size_t n = slash ? (size_t)(slash - o->api_version.p) : 0;
    struct vg_slice group = vg_slice(o->api_version.p, n);
    size_t skip = slash ? n + 1 : 0;
    struct vg_slice version = vg_slice(o->api_version.p + skip, o->api_version.n - skip);
    const struct vg_kind *kind = vg_kind_find_kind(group, version, o->kind);
    return kind && !vg_kind_is(kind, VG_KIND_NOT_STORED) ? vg_kind_stored(kind) : NULL;
}

struct vg_rec *vg_owner_get(struct vg_control *c, const struct vg_owner *o, struct vg_slice ns)
{
    const struct vg_kind *kind = vg_owner_kind(o);
    struct vg_obj_header h;
    if (!kind)
        return NULL;
    struct vg_rec *rec = vg_control_get(
        c, kind, vg_kind_is(kind, VG_KIND_NAMESPACED) ? ns : VG_SLICE_LIT(""), o->name);
    if (!rec)
        return NULL;
    vg_obj_header_read(vg_rec_header(rec), vg_rec_value(rec), &h);
    return vg_slice_eq(vg_obj_uid(&h), o->uid) ? rec : vg_rec_unref(rec);
}

bool vg_has_finalizer(const struct vg_rec *rec, const char *name)
{
    struct vg_json_iter it;
    struct vg_json_raw raw;
    if (!vg_control_finalizers(rec, &it))
        return false;
    while (vg_json_iter_next(&it, &raw) > 0) {
        if (raw.value.n == strlen(name) + 2 && memcmp(raw.value.p + 1, name, strlen(name)) == 0)
            return true;
    }
    return false;
}

static bool is_waiting(const struct vg_rec *rec)
{
    struct vg_obj_header h;
    vg_obj_header_read(vg_rec_header(rec), vg_rec_value(rec), &h);
    return vg_obj_is_deleting(&h) && vg_has_finalizer(rec, VG_FINALIZER_FOREGROUND);
}

/* ---- walking ---- */

/* Every object of the kinds that have some with owners, in a namespace or in all. 0: those were
 * all; 1: each said no; negative: some could not be looked at, and nothing follows from what was
 * not found. */
VG_CHECK static int each_owned(struct vg_control *c, struct vg_slice ns, vg_control_each_fn *each,
                               void *arg)
{
    size_t n;
    const struct vg_kind *kinds = vg_kinds(&n);
    for (size_t i = 0; i < n; i++) {
        const struct vg_kind *kind = &kinds[i];
        bool may = c->garbage->has_owned[i] && (ns.n == 0 || vg_kind_is(kind, VG_KIND_NAMESPACED));
        int r = may ? vg_control_each(c, kind, ns, each, arg) : 0;
        if (r != 0)
            return r;
    }
    return 0;
}

struct search {
    struct vg_slice uid;
    bool (*each)(void *arg, const struct vg_kind *kind, const struct vg_rec *rec,
                 const struct vg_owner *o);
    void *arg;
};

static bool look_at(void *arg, const struct vg_kind *kind, const struct vg_rec *rec)
{
    struct search *s = arg;
    VG_AUTO(arena) arena = {0};
    struct vg_owner_iter it;
    struct vg_owner o;
    vg_owners_begin(&it, &arena, rec);
    while (vg_owners_next(&it, &o, NULL)) {
        if (vg_slice_eq(o.uid, s->uid))
            return s->each(s->arg, kind, rec, &o);
    }
    return true;
}

int vg_garbage_each(struct vg_control *c, struct vg_slice uid, struct vg_slice ns,
                    bool (*each)(void *arg, const struct vg_kind *kind, const struct vg_rec *rec,
                                 const struct vg_owner *o),
                    void *arg)
{
    struct search s = {uid, each, arg};
    return set_has(&c->garbage->owners, hash_of(c->garbage, uid)) ? each_owned(c, ns, look_at, &s)
                                                                  : 0;
}

/* ---- sweeping ---- */

struct sweep {
    struct vg_control *c;
    const char *ns; /* of the owners that are looked for */
};

static bool sweep_one(void *arg, const struct vg_kind *kind, const struct vg_rec *rec)
{
    struct sweep *s = arg;
    VG_AUTO(arena) arena = {0};
    struct vg_owner_iter it;
    struct vg_owner o;
    vg_owners_begin(&it, &arena, rec);
    while (vg_owners_next(&it, &o, NULL)) {
        const char *ns = vg_map_get(&s->c->garbage->gone, o.uid);
        if (ns && strcmp(ns, s->ns) == 0) {
            vg_garbage_add(s->c, kind, vg_rec_key(rec));
            break;
        }
    }
    return true;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Each namespace is walked once, whoever went in it. Negative: not all of them. */
static int sweep_all(struct vg_control *c, const char **namespaces, size_t n)
{
    int r = 0;
    qsort(namespaces, n, sizeof *namespaces, compare_texts);
    for (size_t i = 0; i < n; i++) {
        struct sweep s = {c, namespaces[i]};
        int err = 0;
        if (i == 0 || strcmp(namespaces[i], namespaces[i - 1]) != 0)
            err = each_owned(c, vg_slice_str(namespaces[i]), sweep_one, &s);
        r = err < 0 ? err : r;
    }
    return r;
}

static bool count_one(void *arg, const struct vg_kind *kind, const struct vg_rec *rec)
{
    struct vg_garbage *g = arg;
    VG_AUTO(arena) arena = {0};
    struct vg_owner_iter it;
    struct vg_owner o;
    (void)kind;
    vg_owners_begin(&it, &arena, rec);
    while (vg_owners_next(&it, &o, NULL)) {
        if (set_add(&g->owners, hash_of(g, o.uid)) < 0)
            return false;
    }
    return true;
}

/* Those that went are in the set still: when they may be more than half of it, it is made anew.
 * What has not been told to us yet is told afterwards, and added then. */
static void count_owners_anew(struct vg_garbage *g)
{
    struct uid_set old = g->owners;
    g->owners = (struct uid_set){0};
    if (each_owned(g->c, VG_SLICE_LIT(""), count_one, g) != 0) { /* it would lack some */
        set_done(&g->owners);
        g->owners = old;
    } else {
        set_done(&old);
    }
    g->owners_max = 2 * g->owners.n + OWNERS_MIN;
}

static int check_all(struct vg_control *c);

static void on_sweep(struct vg_timer *t)
{
    struct vg_garbage *g = VG_CONTAINER_OF(t, struct vg_garbage, sweep);
    const char **namespaces = vg_calloc(vg_map_count(&g->gone), sizeof *namespaces);
    size_t n = 0;
    int r = namespaces ? 0 : -ENOMEM;
    VG_MAP_FOREACH (e, &g->gone)
        if (namespaces)
            namespaces[n++] = e->value;
    if (r == 0)
        r = sweep_all(g->c, namespaces, n);
    if (r == 0 && g->owes_check)
        r = check_all(g->c);
    vg_free(namespaces);
    if (r < 0) { /* whom it concerns is not known: look again */
        vg_debug(g->c->log, "garbage_sweep_failed", "err=%s", vg_err_name(r));
        vg_timer_start(g->c->loop, &g->sweep, VG_NS_PER_S, on_sweep);
        return;
    }
    forget_gone(g);
    if (g->owners.n > g->owners_max)
        count_owners_anew(g);
}

static int note_gone(struct vg_garbage *g, struct vg_slice uid, struct vg_slice ns)
{
    void *old = NULL;
    char *text = vg_strndup(ns.p, ns.n);
    int r = text ? vg_map_put(&g->gone, uid, text, &old) : -ENOMEM;
    vg_free(r < 0 ? text : old);
    if (r >= 0 && !g->sweep.armed)
        vg_timer_start(g->c->loop, &g->sweep, SWEEP_MS * VG_NS_PER_MS, on_sweep);
    return r < 0 ? r : 0;
}

/* ---- events ---- */

/* True: one of its owners is gone, or waits for it to go. */
static bool note_owners(struct vg_control *c, const struct vg_control_event *e)
{
    struct vg_garbage *g = c->garbage;
    VG_AUTO(arena) arena = {0};
    struct vg_owner_iter it;
    struct vg_owner o;
    bool is_due = false;
    vg_owners_begin(&it, &arena, e->rec);
    while (vg_owners_next(&it, &o, NULL)) {
        g->has_owned[vg_kind_index(e->kind)] = true;
        if (set_add(&g->owners, hash_of(g, o.uid)) < 0)
            vg_error(c->log, "no_memory", "controller=garbage-collector-controller");
        struct vg_rec *owner =
            g->is_synced && !is_due ? vg_owner_get(c, &o, vg_obj_namespace(&e->h)) : NULL;
        is_due |= g->is_synced && (!owner || is_waiting(owner));
        vg_rec_unref(owner);
    }
    return is_due;
}

/* Its owners may have waited for it. */
static void tell_owners(struct vg_control *c, const struct vg_control_event *e)
{
    VG_AUTO(arena) arena = {0};
    struct vg_owner_iter it;
    struct vg_owner o;
    vg_owners_begin(&it, &arena, e->rec);
    while (vg_owners_next(&it, &o, NULL)) {
        struct vg_rec *owner = vg_owner_get(c, &o, vg_obj_namespace(&e->h));
        if (owner && is_waiting(owner))
            vg_garbage_add(c, vg_owner_kind(&o), vg_rec_key(owner));
        vg_rec_unref(owner);
    }
}

static void on_event(struct vg_control *c, const struct vg_control_event *e)
{
    struct vg_garbage *g = c->garbage;
    if (e->change == VG_OBJ_DELETED) {
        struct vg_slice uid = vg_obj_uid(&e->h);
        tell_owners(c, e);
        if (set_has(&g->owners, hash_of(g, uid)) && note_gone(g, uid, vg_obj_namespace(&e->h)) < 0)
            vg_error(c->log, "no_memory", "controller=garbage-collector-controller");
        return;
    }
    bool is_held = vg_obj_is_deleting(&e->h) && (vg_has_finalizer(e->rec, VG_FINALIZER_ORPHAN) ||
                                                 vg_has_finalizer(e->rec, VG_FINALIZER_FOREGROUND));
    if (note_owners(c, e) || is_held)
        vg_garbage_add(c, e->kind, vg_rec_key(e->rec));
}

/* The state has been told: who is named and not there went while nobody looked. */
static bool check_one(void *arg, const struct vg_kind *kind, const struct vg_rec *rec)
{
    struct vg_control *c = arg;
    struct vg_control_event e = {.change = VG_OBJ_ADDED, .kind = kind, .rec = rec};
    vg_obj_header_read(vg_rec_header(rec), vg_rec_value(rec), &e.h);
    if (note_owners(c, &e))
        vg_garbage_add(c, kind, vg_rec_key(rec));
    return true;
}

/* Negative: some kind could not be looked at, and the check is owed. */
static int check_all(struct vg_control *c)
{
    int r = each_owned(c, VG_SLICE_LIT(""), check_one, c);
    c->garbage->owes_check = r < 0;
    return r;
}

static void on_synced(struct vg_control *c)
{
    struct vg_garbage *g = c->garbage;
    g->is_synced = true;
    if (check_all(c) < 0)
        vg_timer_start(c->loop, &g->sweep, VG_NS_PER_S, on_sweep);
}

const struct vg_controller_ops vg_garbage_controller = {
    .name = "garbage-collector-controller",
    .follows_all = true,
    .event = on_event,
    .run = vg_garbage_run,
    .synced = on_synced,
};
