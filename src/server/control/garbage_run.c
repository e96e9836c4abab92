/* garbage_run.c - what becomes of one object, by its owners and its finalizers.
 *
 *   is being deleted, finalizer "orphan":             its dependents lose it as an owner, then the
 *                                                     finalizer goes
 *   is being deleted, finalizer "foregroundDeletion": its dependents are looked at; the finalizer
 *                                                     goes when none of them blocks it any more
 *   else, by its owners:  one is alive                -> the others are taken off its list
 *                         all are gone or wait        -> it is deleted
 * An owner that the cache does not have is asked for once more at the API before it counts as gone:
 * a cache may be late, a delete cannot be taken back. Owners of kinds that are not served count as
 * alive. Every change names the revision that was looked at; a conflict is looked at anew. */
#include "garbage.h"

#include <errno.h>
#include <inttypes.h>

#include "base/alloc.h"

/* While dependents block it: when to look again, though nothing was heard. */
#define BLOCKED_MS 1000u

struct ref {
    struct vg_owner o;
    struct vg_slice raw;
    bool is_alive, is_waiting;
};

struct look {
    struct vg_control *c;
    struct vg_work_item *item;
    struct vg_dependent what;
    struct vg_rec *rec;
    struct vg_obj_header h;
    struct vg_arena arena;
    struct ref *refs;
    size_t n_refs, at; /* at: the next to be judged */
    /* Of an orphaning: who still names it. */
    struct vg_dependent *dependents;
    size_t n_dependents, cap_dependents;
    bool blocked, no_memory;
};

static void judge_next(struct look *l);
static void orphan_next(struct look *l);

static void look_free(struct look *l)
{
    vg_rec_unref(l->rec);
    vg_free(l->dependents);
    vg_arena_done(&l->arena);
    vg_free(l);
}

static void end_done(struct look *l)
{
    vg_work_done(l->item);
    look_free(l);
}

static void end_failed(struct look *l)
{
    vg_work_failed(l->item);
    look_free(l);
}

/* The usual end of a last errand. */
static void on_settled(struct vg_errand *e)
{
    struct look *l = e->state;
    vg_errand_settle(e, 404);
    look_free(l);
}

static struct vg_errand *errand_about(struct look *l, const char *method,
                                      const struct vg_kind *kind, const struct vg_obj_header *h,
                                      void (*done)(struct vg_errand *e))
{
    struct vg_errand *e = vg_errand_new(l->c, method, l->item, done);
    if (!e)
        return NULL;
    e->state = l;
    if (vg_errand_path(e, kind, vg_obj_namespace(h), vg_obj_name(h), NULL) == 0)
        return e;
    vg_errand_free(e);
    return NULL;
}

static void ask(struct look *l, struct vg_errand *take_e, int written, const char *type)
{
    if (!take_e || written < 0) {
        vg_errand_free(take_e);
        end_failed(l);
    } else if (!vg_errand_send(take_e, type)) {
        look_free(l);
    }
}

/* ---- patches ---- */

/* {"metadata":{"uid":...,"resourceVersion":...,"LIST":[ */
static int open_patch(struct vg_buf *out, const struct vg_rec *rec, const struct vg_obj_header *h,
                      const char *list)
{
    return vg_buf_printf(
        out, "{\"metadata\":{\"uid\":\"%.*s\",\"resourceVersion\":\"%" PRIu64 "\",\"%s\":[",
        VG_SLICE_ARG(vg_obj_uid(h)), rec->rev, list);
}

static int close_patch(struct vg_buf *out)
{
    return vg_buf_append_slice(out, VG_SLICE_LIT("]}}"));
}

static int add_raw(struct vg_buf *out, struct vg_slice raw, size_t *n)
{
    int r = (*n)++ ? vg_buf_append_byte(out, ',') : 0;
    return r == 0 ? vg_buf_append_slice(out, raw) : r;
}

/* Without one finalizer. */
static int write_finalizers(struct look *l, struct vg_buf *out, const char *without)
{
    const struct vg_json_step path[] = {vg_json_step_key("metadata"),
                                        vg_json_step_key("finalizers")};
    struct vg_slice list, text;
    struct vg_json_iter it;
    struct vg_json_raw raw;
    size_t n = 0;
    int r = open_patch(out, l->rec, &l->h, "finalizers");
    if (r == 0)
        r = vg_json_find(vg_rec_value(l->rec), path, 2, &list);
    if (r == 0)
        r = vg_json_iter_init(&it, list);
    while (r == 0 && vg_json_iter_next(&it, &raw) > 0) {
        r = vg_json_raw_text(&l->arena, raw.value, &text);
        if (r == 0 && !vg_slice_eq(text, vg_slice_str(without)))
            r = add_raw(out, raw.value, &n);
    }
    return r == 0 ? close_patch(out) : r;
}

static void drop_finalizer(struct look *l, const char *name)
{
    struct vg_errand *e = errand_about(l, "PATCH", l->what.kind, &l->h, on_settled);
    ask(l, e, e ? write_finalizers(l, &e->body, name) : -ENOMEM, VG_TYPE_MERGE);
}

/* ---- by its owners ---- */

static bool has_any(void *arg, const struct vg_kind *kind, const struct vg_rec *rec,
                    const struct vg_owner *o)
{
    (void)kind, (void)rec, (void)o;
    *(bool *)arg = true;
    return false;
}

/* Also when it is not known: deleting in the foreground is then the careful way. */
static bool has_dependents(struct look *l)
{
    bool has = false;
    int r = vg_garbage_each(l->c, vg_obj_uid(&l->h), vg_obj_namespace(&l->h), has_any, &has);
    return has || r < 0;
}

static void delete_it(struct look *l, const char *policy)
{
    struct vg_errand *e = errand_about(l, "DELETE", l->what.kind, &l->h, on_settled);
    int r = e ? vg_buf_printf(&e->body,
                              "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"preconditions\":"
                              "{\"uid\":\"%.*s\",\"resourceVersion\":\"%" PRIu64
                              "\"},\"propagationPolicy\":\"%s\"}",
                              VG_SLICE_ARG(vg_obj_uid(&l->h)), l->rec->rev, policy)
              : -ENOMEM;
    ask(l, e, r, VG_TYPE_JSON);
}

static void keep_alive_owners(struct look *l)
{
    struct vg_errand *e = errand_about(l, "PATCH", l->what.kind, &l->h, on_settled);
    size_t n = 0;
    int r = e ? open_patch(&e->body, l->rec, &l->h, "ownerReferences") : -ENOMEM;
    for (size_t i = 0; i < l->n_refs && r == 0; i++) {
        if (l->refs[i].is_alive)
            r = add_raw(&e->body, l->refs[i].raw, &n);
    }
    if (r == 0)
        r = close_patch(&e->body);
    ask(l, e, r, VG_TYPE_MERGE);
}

static void conclude(struct look *l)
{
    size_t alive = 0, waiting = 0;
    for (size_t i = 0; i < l->n_refs; i++) {
        alive += l->refs[i].is_alive;
        waiting += l->refs[i].is_waiting;
    }
    if (alive == l->n_refs)
        end_done(l);
    else if (alive)
        keep_alive_owners(l);
    else if (vg_has_finalizer(l->rec, VG_FINALIZER_ORPHAN))
        delete_it(l, "Orphan");
    else if (vg_has_finalizer(l->rec, VG_FINALIZER_FOREGROUND) || (waiting && has_dependents(l)))
        delete_it(l, "Foreground");
    else
        delete_it(l, "Background");
}

/* The API has the last word on whether an owner is gone. */
static void on_owner(struct vg_errand *e)
{
    static const struct vg_json_step path[] = {{.key = {"metadata", 8}}, {.key = {"uid", 3}}};
    struct look *l = e->state;
    struct ref *ref = &l->refs[l->at];
    struct vg_slice raw, uid;
    if (e->call.err < 0 || (e->call.status != 200 && e->call.status != 404)) {
        end_failed(l);
        return;
    }
    ref->is_alive = e->call.status == 200 &&
                    vg_json_find(vg_buf_slice(&e->call.answer), path, 2, &raw) == 0 &&
                    vg_json_raw_text(&l->arena, raw, &uid) == 0 && vg_slice_eq(uid, ref->o.uid);
    if (!ref->is_alive)
        vg_garbage_note_absent(l->c->garbage, ref->o.uid);
    l->at++;
    judge_next(l);
}

static void ask_for_owner(struct look *l, const struct vg_kind *kind)
{
    const struct vg_owner *o = &l->refs[l->at].o;
    struct vg_errand *e = vg_errand_new(l->c, "GET", l->item, on_owner);
    struct vg_slice ns =
        vg_kind_is(kind, VG_KIND_NAMESPACED) ? vg_obj_namespace(&l->h) : VG_SLICE_LIT("");
    int r = e ? vg_errand_path(e, kind, ns, o->name, NULL) : -ENOMEM;
    if (e)
        e->state = l;
    ask(l, e, r, NULL);
}

/* False: the API must be asked. */
static bool judge(struct look *l, struct ref *ref, const struct vg_kind *kind)
{
    struct vg_obj_header h;
    bool is_lost = kind && vg_kind_is(kind, VG_KIND_NAMESPACED) && !vg_obj_namespace(&l->h).n;
    if (!kind || is_lost) { /* who can say? */
        ref->is_alive = true;
        return true;
    }
    struct vg_rec *owner = vg_owner_get(l->c, &ref->o, vg_obj_namespace(&l->h));
    if (!owner)
        return vg_garbage_is_absent(l->c->garbage, ref->o.uid);
    vg_obj_header_read(vg_rec_header(owner), vg_rec_value(owner), &h);
    ref->is_waiting = vg_obj_is_deleting(&h) && vg_has_finalizer(owner, VG_FINALIZER_FOREGROUND);
    ref->is_alive = !ref->is_waiting;
    vg_rec_unref(owner);
    return true;
}

static void judge_next(struct look *l)
{
    for (; l->at < l->n_refs; l->at++) {
        struct ref *ref = &l->refs[l->at];
        const struct vg_kind *kind = vg_owner_kind(&ref->o);
        if (!judge(l, ref, kind)) {
            ask_for_owner(l, kind);
            return;
        }
    }
    conclude(l);
}

static int read_refs(struct look *l)
{
    struct vg_owner_iter it;
    struct vg_owner o;
    struct vg_slice raw;
    size_t n = 0;
    vg_owners_begin(&it, &l->arena, l->rec);
    while (vg_owners_next(&it, &o, NULL))
        n++;
    l->refs = vg_arena_array(&l->arena, struct ref, n ? n : 1);
    if (!l->refs)
        return -ENOMEM;
    vg_owners_begin(&it, &l->arena, l->rec);
    while (l->n_refs < n && vg_owners_next(&it, &o, &raw))
        l->refs[l->n_refs++] = (struct ref){.o = o, .raw = raw};
    return 0;
}

/* ---- orphaning ---- */

static bool collect(void *arg, const struct vg_kind *kind, const struct vg_rec *rec,
                    const struct vg_owner *o)
{
    struct look *l = arg;
    (void)o;
    if (l->n_dependents == l->cap_dependents) {
        size_t cap = l->cap_dependents ? l->cap_dependents * 2 : 16;
        struct vg_dependent *v = vg_reallocarray(l->dependents, cap, sizeof *v);
        if (!v) {
            l->no_memory = true;
            return false;
        }
        l->dependents = v;
        l->cap_dependents = cap;
    }
    struct vg_dependent *d = &l->dependents[l->n_dependents];
    d->kind = kind;
    l->no_memory = vg_arena_keep(&l->arena, vg_rec_key(rec), &d->key) < 0;
    l->n_dependents += !l->no_memory;
    return !l->no_memory;
}

static void on_orphaned(struct vg_errand *e)
{
    struct look *l = e->state;
    if (!vg_errand_ok(e) && !(e->call.err == 0 && e->call.status == 404)) {
        end_failed(l); /* and begins anew */
        return;
    }
    orphan_next(l);
}

static int write_without_owner(struct look *l, struct vg_buf *out, const struct vg_rec *rec,
                               const struct vg_obj_header *h)
{
    struct vg_owner_iter it;
    struct vg_owner o;
    struct vg_slice raw;
    size_t n = 0;
    int r = open_patch(out, rec, h, "ownerReferences");
    vg_owners_begin(&it, &l->arena, rec);
    while (r == 0 && vg_owners_next(&it, &o, &raw)) {
        if (!vg_slice_eq(o.uid, vg_obj_uid(&l->h)))
            r = add_raw(out, raw, &n);
    }
    return r == 0 ? close_patch(out) : r;
}

static void orphan_next(struct look *l)
{
    struct vg_rec *rec = NULL;
    struct vg_obj_header h;
    const struct vg_kind *kind = NULL;
    while (!rec && l->n_dependents) {
        struct vg_dependent d = l->dependents[--l->n_dependents];
        kind = d.kind;
        rec = vg_control_get_key(l->c, d.kind, d.key);
    }
    if (!rec) {
        drop_finalizer(l, VG_FINALIZER_ORPHAN);
        return;
    }
    vg_obj_header_read(vg_rec_header(rec), vg_rec_value(rec), &h);
    struct vg_errand *e = errand_about(l, "PATCH", kind, &h, on_orphaned);
    int r = e ? write_without_owner(l, &e->body, rec, &h) : -ENOMEM;
    vg_rec_unref(rec);
    ask(l, e, r, VG_TYPE_MERGE);
}

static void orphan(struct look *l)
{
    int r = vg_garbage_each(l->c, vg_obj_uid(&l->h), vg_obj_namespace(&l->h), collect, l);
    if (r < 0 || l->no_memory)
        end_failed(l); /* there may be dependents that we cannot see */
    else
        orphan_next(l);
}

/* ---- foreground ---- */

static bool push(void *arg, const struct vg_kind *kind, const struct vg_rec *rec,
                 const struct vg_owner *o)
{
    struct look *l = arg;
    struct vg_obj_header h;
    vg_obj_header_read(vg_rec_header(rec), vg_rec_value(rec), &h);
    l->blocked |= o->blocks;
    if (!vg_obj_is_deleting(&h))
        vg_garbage_add(l->c, kind, vg_rec_key(rec));
    return true;
}

static void delete_dependents(struct look *l)
{
    if (vg_garbage_each(l->c, vg_obj_uid(&l->h), vg_obj_namespace(&l->h), push, l) < 0) {
        end_failed(l);
        return;
    }
    if (!l->blocked) {
        drop_finalizer(l, VG_FINALIZER_FOREGROUND);
        return;
    }
    vg_work_later(l->item, BLOCKED_MS);
    look_free(l);
}

/* ---- the run ---- */

void vg_garbage_run(struct vg_work_item *item)
{
    struct vg_control *c = item->work->arg;
    struct vg_dependent what = vg_garbage_of(item->key);
    struct vg_rec *rec = vg_control_get_key(c, what.kind, what.key);
    struct look *l = rec ? vg_new(struct look) : NULL;
    if (!rec) {
        vg_work_done(item);
        return;
    }
    if (!l) {
        vg_rec_unref(rec);
        vg_work_failed(item);
        return;
    }
    *l = (struct look){.c = c, .item = item, .what = what, .rec = rec};
    vg_arena_init(&l->arena, 0, 0);
    vg_obj_header_read(vg_rec_header(rec), vg_rec_value(rec), &l->h);
    if (vg_obj_is_deleting(&l->h)) {
        if (vg_has_finalizer(rec, VG_FINALIZER_ORPHAN))
            orphan(l);
        else if (vg_has_finalizer(rec, VG_FINALIZER_FOREGROUND))
            delete_dependents(l);
        else
            end_done(l);
    } else if (read_refs(l) < 0) {
        end_failed(l);
    } else {
        judge_next(l);
    }
}
