/* delete.c - DELETE: at once, or marked first and gone later.
 *
 *   nothing holds it                        -> removed
 *   finalizers, its own or those that a propagation policy adds
 *                                           -> marked: deletionTimestamp now, grace 0
 *   a grace period (pods)                   -> marked: deletionTimestamp when it will be over;
 *                                              at 0 it is removed right after
 *   a namespace                             -> marked Terminating; removed once spec.finalizers and
 *                                              finalizers are empty
 * A later delete may only shorten what is under way. */
#include "delete.h"

#include <errno.h>

#include "status_int.h"
#include "json/equal.h"

#define FINALIZER_ORPHAN "orphan"
#define FINALIZER_FOREGROUND "foregroundDeletion"
/* What pods are given when they do not say. */
#define GRACE_DEFAULT_S 30

/* ---- preconditions ---- */

/* The original names the kind here, and the resource everywhere else. */
static void conflict(struct vg_change *c, const char *what, struct vg_slice wanted,
                     struct vg_slice is, const char *why)
{
    struct vg_arena *a = &c->call->ask->arena;
    const struct vg_kind *kind = c->kind;
    c->status = (struct vg_api_status){.code = 409,
                                       .reason = "Conflict",
                                       .has_details = true,
                                       .name = c->name,
                                       .group = vg_slice_str(kind->group),
                                       .kind = vg_slice_str(kind->kind)};
    if (vg_arena_printf(a, &c->status.message,
                        "Operation cannot be fulfilled on %s%s%s %.*s: the %s in the precondition "
                        "(%.*s) does not match the %s in record (%.*s). %s",
                        kind->kind, *kind->group ? "." : "", kind->group,
                        VG_SLICE_ARG(vg_api_quote(a, c->name)), what, VG_SLICE_ARG(wanted), what,
                        VG_SLICE_ARG(is), why) < 0)
        vg_status_no_memory(&c->status);
}

static int namespace_conflict(struct vg_change *c, const char *what, struct vg_slice wanted,
                              struct vg_slice is)
{
    vg_status_conflict(&c->call->ask->arena, &c->status, c->kind, c->name,
                       "Precondition failed: %s in precondition: %.*s, %s in object meta: %.*s",
                       what, VG_SLICE_ARG(wanted), what, VG_SLICE_ARG(is));
    return VIGIL_E_INVALID;
}

int vg_deletion_check(struct vg_change *c, const struct vg_delete_opts *opts,
                      const struct vg_meta *m)
{
    bool is_namespace = vg_kind_is(c->kind, VG_KIND_FINALIZED_BY_SPEC);
    struct vg_slice rev;
    if (opts->has_uid && !vg_slice_eq(opts->uid, m->uid)) {
        if (is_namespace)
            return namespace_conflict(c, "UID", opts->uid, m->uid);
        conflict(c, "UID", opts->uid, m->uid,
                 "The object might have been deleted and then recreated");
        return VIGIL_E_INVALID;
    }
    if (!opts->has_rev)
        return 0;
    if (vg_arena_printf(&c->scratch, &rev, "%llu", (unsigned long long)c->cur->rev) < 0) {
        vg_status_no_memory(&c->status);
        return -ENOMEM;
    }
    if (vg_slice_eq(rev, opts->rev))
        return 0;
    if (is_namespace)
        return namespace_conflict(c, "ResourceVersion", opts->rev, rev);
    conflict(c, "ResourceVersion", opts->rev, rev, "The object might have been modified");
    return VIGIL_E_INVALID;
}

/* ---- finalizers of garbage collection ---- */

static bool wants_orphans(const struct vg_deletion *d, const struct vg_meta *m)
{
    if (d->opts.has_orphan)
        return d->opts.orphans;
    if (d->opts.propagation != VG_PROPAGATE_UNSET)
        return d->opts.propagation == VG_ORPHAN;
    if (vg_meta_has_finalizer(m, FINALIZER_ORPHAN))
        return true;
    return !vg_meta_has_finalizer(m, FINALIZER_FOREGROUND) &&
           vg_kind_is(d->change.kind, VG_KIND_ORPHANS_BY_DEFAULT);
}

static bool wants_foreground(const struct vg_deletion *d, const struct vg_meta *m)
{
    if (d->opts.has_orphan)
        return false;
    if (d->opts.propagation != VG_PROPAGATE_UNSET)
        return d->opts.propagation == VG_FOREGROUND;
    return vg_meta_has_finalizer(m, FINALIZER_FOREGROUND);
}

/* The finalizers as the policy wants them: the two of garbage collection last. */
static int set_finalizers(struct vg_deletion *d, struct vg_meta *m)
{
    struct vg_arena *a = &d->change.scratch;
    bool orphan = wants_orphans(d, m), foreground = wants_foreground(d, m);
    if (orphan == vg_meta_has_finalizer(m, FINALIZER_ORPHAN) &&
        foreground == vg_meta_has_finalizer(m, FINALIZER_FOREGROUND))
        return 0;
    struct vg_json *list = vg_arena_new(a, struct vg_json);
    if (!list)
        return -ENOMEM;
    *list = vg_json_array();
    int err = 0;
    for (uint32_t i = 0; m->finalizers && i < m->finalizers->n && err == 0; i++) {
        struct vg_slice name = vg_json_text(&m->finalizers->items[i]);
        if (!vg_slice_eq(name, VG_SLICE_LIT(FINALIZER_ORPHAN)) &&
            !vg_slice_eq(name, VG_SLICE_LIT(FINALIZER_FOREGROUND)))
            err = vg_json_array_push(a, list, m->finalizers->items[i]);
    }
    if (err == 0 && orphan)
        err = vg_json_array_push(a, list, vg_json_string_ref(VG_SLICE_LIT(FINALIZER_ORPHAN)));
    if (err == 0 && foreground)
        err = vg_json_array_push(a, list, vg_json_string_ref(VG_SLICE_LIT(FINALIZER_FOREGROUND)));
    m->finalizers = list->n ? list : NULL;
    return err;
}

/* ---- marking ---- */

static enum vg_verdict write_mark(struct vg_change *c, struct vg_json *root,
                                  const struct vg_meta *m)
{
    enum vg_verdict verdict = vg_change_seal(c, root, m, root);
    if (verdict == VG_CHANGE_PUT &&
        vg_slice_eq(vg_buf_slice(&c->call->loop->sealed.value), vg_rec_value(c->cur)))
        return VG_CHANGE_NONE;
    return verdict;
}

static void begin_deletion(struct vg_meta *m)
{
    if (m->deleted.n == 0 && m->generation > 0)
        m->generation++;
}

/* Held by finalizers alone: it is being deleted from now on. */
static enum vg_verdict mark(struct vg_change *c, struct vg_body *cur)
{
    struct vg_meta *m = &cur->meta;
    struct vg_slice now;
    int err = vg_stamp_time(c, 0, &now);
    if (err < 0)
        return vg_change_refuse(c, err);
    begin_deletion(m);
    /* Both are RFC 3339 in UTC: their order is that of their bytes. */
    if (m->deleted.n == 0 || vg_slice_cmp(m->deleted, now) > 0)
        m->deleted = now;
    m->has_grace = true;
    m->grace_s = 0;
    return write_mark(c, cur->root, m);
}

/* ---- grace ---- */

static int64_t grace_of(const struct vg_deletion *d, const struct vg_json *root)
{
    const struct vg_json *spec = vg_json_get_str(root, "spec");
    struct vg_slice phase = vg_json_text(vg_json_get_str(vg_json_get_str(root, "status"), "phase"));
    int64_t s = GRACE_DEFAULT_S;
    if (d->opts.has_grace)
        s = d->opts.grace_s;
    else if (vg_json_to_int64(vg_json_get_str(spec, "terminationGracePeriodSeconds"), &s) < 0)
        s = GRACE_DEFAULT_S;
    bool is_unscheduled = vg_json_text(vg_json_get_str(spec, "nodeName")).n == 0;
    if (is_unscheduled || vg_slice_eq(phase, VG_SLICE_LIT("Failed")) ||
        vg_slice_eq(phase, VG_SLICE_LIT("Succeeded")))
        s = 0;
    return s < 0 ? 1 : s;
}

/* Bring the end nearer; NONE: there is nothing to bring nearer. */
static enum vg_verdict shorten(struct vg_deletion *d, struct vg_meta *m)
{
    int64_t end, wanted = d->opts.grace_s < 0 ? 1 : d->opts.grace_s;
    char text[VG_TIME_TEXT_MAX];
    if (!d->opts.has_grace || wanted >= m->grace_s)
        return VG_CHANGE_NONE;
    if (vg_time_parse(m->deleted, &end, NULL) < 0)
        return vg_change_refuse(&d->change, VIGIL_E_STORE_DAMAGED);
    size_t n = vg_time_format((end - m->grace_s + wanted) * 1000, text);
    if (vg_arena_keep(&d->change.scratch, vg_slice(text, n), &m->deleted) < 0)
        return vg_change_refuse(&d->change, -ENOMEM);
    m->grace_s = wanted;
    return VG_CHANGE_PUT;
}

/* A kind with grace: marks m. PUT: it is graceful; NONE: it is pending already; DELETE: grace does
 * not come into it. */
static enum vg_verdict give_grace(struct vg_deletion *d, const struct vg_json *root,
                                  struct vg_meta *m)
{
    if (!vg_kind_is(d->change.kind, VG_KIND_GRACEFUL))
        return VG_CHANGE_DELETE;
    if (m->deleted.n)
        return m->has_grace && m->grace_s > 0 ? shorten(d, m) : VG_CHANGE_DELETE;
    int64_t s = grace_of(d, root);
    begin_deletion(m);
    if (vg_stamp_time(&d->change, s, &m->deleted) < 0)
        return vg_change_refuse(&d->change, -ENOMEM);
    m->has_grace = true;
    m->grace_s = s;
    return VG_CHANGE_PUT;
}

/* ---- deciding ---- */

static enum vg_verdict decide(struct vg_deletion *d, struct vg_body *cur)
{
    struct vg_change *c = &d->change;
    struct vg_meta m = cur->meta;
    enum vg_verdict graceful = give_grace(d, cur->root, &m);
    if (graceful == VG_CHANGE_FAIL || graceful == VG_CHANGE_NONE)
        return graceful;
    if (set_finalizers(d, &m) < 0)
        return vg_change_refuse(c, -ENOMEM);
    if (graceful == VG_CHANGE_PUT) {
        d->drops_next = !m.finalizers && m.grace_s == 0;
        return write_mark(c, cur->root, &m);
    }
    if (!m.finalizers)
        return VG_CHANGE_DELETE;
    cur->meta = m;
    return mark(c, cur);
}

static int set_terminating(struct vg_arena *a, struct vg_json *root)
{
    struct vg_json status = vg_json_object(), copy;
    const struct vg_json *given = vg_json_get_str(root, "status");
    int err = vg_json_top_copy(a, root, &copy);
    if (err == 0 && vg_json_is(given, VG_JSON_OBJECT))
        err = vg_json_top_copy(a, given, &status);
    if (err == 0)
        err = vg_json_object_set(a, &status, VG_SLICE_LIT("phase"),
                                 vg_json_string_ref(VG_SLICE_LIT("Terminating")));
    if (err == 0)
        err = vg_json_object_set(a, &copy, VG_SLICE_LIT("status"), status);
    if (err == 0)
        *root = copy;
    return err;
}

static enum vg_verdict decide_namespace(struct vg_deletion *d, struct vg_body *cur)
{
    struct vg_change *c = &d->change;
    const struct vg_json *held = vg_json_get_str(vg_json_get_str(cur->root, "spec"), "finalizers");
    if (cur->meta.deleted.n)
        return held && held->n ? VG_CHANGE_NONE : decide(d, cur);
    int err = vg_stamp_time(c, 0, &cur->meta.deleted);
    if (err == 0)
        err = set_finalizers(d, &cur->meta);
    if (err == 0)
        err = set_terminating(&c->scratch, cur->root);
    return err < 0 ? vg_change_refuse(c, err) : write_mark(c, cur->root, &cur->meta);
}

/* Is this still the object that we marked? */
static bool is_marked(const struct vg_deletion *d)
{
    struct vg_obj_header a, b;
    vg_obj_header_read(vg_rec_header(d->marked), vg_rec_value(d->marked), &a);
    vg_obj_header_read(vg_rec_header(d->change.cur), vg_rec_value(d->change.cur), &b);
    return vg_slice_eq(vg_obj_uid(&a), vg_obj_uid(&b));
}

/* The original looks for an object that cannot be read, and takes none for one that can. */
static void refuse_readable(struct vg_change *c)
{
    struct vg_arena *a = &c->call->ask->arena;
    struct vg_field_errors e = {.arena = a};
    vg_field_invalid(&e, "ignoreStoreReadErrorWithClusterBreakingPotential", VG_SLICE_LIT("true"),
                     "is exclusively used to delete corrupt object(s), try again by removing this "
                     "option");
    vg_status_invalid(a, &c->status, c->kind->group, c->kind->resource, c->name, &e);
}

static enum vg_verdict make(struct vg_change *c)
{
    struct vg_deletion *d = VG_CONTAINER_OF(c, struct vg_deletion, change);
    struct vg_body cur;
    /* Somebody else was faster with what we had marked: that is fine too. */
    if (d->marked && (!c->cur || !is_marked(d))) {
        c->cur = vg_rec_unref(c->cur);
        return VG_CHANGE_NONE;
    }
    if (d->opts.takes_unreadable && (!c->cur || c->cur->header_len)) {
        refuse_readable(c);
        return VG_CHANGE_FAIL;
    }
    if (!c->cur) {
        vg_status_not_found(&c->call->ask->arena, &c->status, c->kind, c->name);
        return VG_CHANGE_FAIL;
    }
    d->drops_next = false;
    if (d->opts.takes_unreadable)
        return VG_CHANGE_DELETE;
    if (vg_change_load(c, &cur) < 0 || vg_deletion_check(c, &d->opts, &cur.meta) < 0)
        return VG_CHANGE_FAIL;
    bool is_namespace = vg_kind_is(c->kind, VG_KIND_FINALIZED_BY_SPEC);
    return is_namespace ? decide_namespace(d, &cur) : decide(d, &cur);
}

static void on_changed(struct vg_change *c)
{
    struct vg_deletion *d = VG_CONTAINER_OF(c, struct vg_deletion, change);
    if (d->drops_next && c->verdict == VG_CHANGE_PUT && !c->is_dry_run) {
        d->opts.has_rev = false; /* it held when the object was marked */
        vg_rec_unref(d->marked);
        d->marked = vg_rec_ref(c->cur);
        vg_change_drop(c); /* also when the client has left: a marked object shall not stay */
        return;
    }
    d->is_deleted = c->verdict == VG_CHANGE_DELETE;
    if (d->marked && c->verdict == VG_CHANGE_NONE && !c->cur) {
        d->is_deleted = true;
        c->out = d->marked;
        c->rev = d->marked->rev;
    }
    struct vg_rec *marked = vg_steal(d->marked);
    d->done(d);
    vg_rec_unref(marked);
}

void vg_deletion_start(struct vg_deletion *d, struct vg_api_call *call, const struct vg_kind *kind,
                       struct vg_slice ns, struct vg_slice name)
{
    d->change = (struct vg_change){
        .call = call,
        .kind = kind,
        .ns = ns,
        .name = name,
        .is_dry_run = d->opts.is_dry_run,
        .takes_unreadable = d->opts.takes_unreadable,
        .is_deletion = true,
        .make = make,
        .done = on_changed,
    };
    vg_change_start(&d->change);
}

/* ---- the verb ---- */

/* Of what could not be read there is nothing but its name to be told. */
static void say_unread(struct vg_change *c)
{
    struct vg_api_status status = {.code = 200,
                                   .is_success = true,
                                   .has_details = true,
                                   .name = c->name,
                                   .kind = vg_slice_str(c->kind->kind)};
    vg_respond_status(c->call, &status);
    vg_change_release(c);
}

static void say_deleted(struct vg_deletion *d)
{
    struct vg_change *c = &d->change;
    struct vg_obj_header h;
    vg_obj_header_read(vg_rec_header(c->cur), vg_rec_value(c->cur), &h);
    struct vg_api_status status = {.code = 200,
                                   .is_success = true,
                                   .has_details = true,
                                   .name = c->name,
                                   .group = vg_slice_str(c->kind->group),
                                   .kind = vg_slice_str(c->kind->resource),
                                   .uid = vg_obj_uid(&h)};
    vg_respond_status(c->call, &status);
    vg_change_release(c);
}

static void on_deleted(struct vg_deletion *d)
{
    struct vg_change *c = &d->change;
    bool says_object = !d->is_deleted || vg_kind_is(c->kind, VG_KIND_DELETE_ANSWERS_OBJECT);
    bool is_pending = !d->is_deleted && d->opts.has_orphan && !d->opts.orphans;
    bool is_refused = c->call->is_closed || c->verdict == VG_CHANGE_FAIL;
    if (!is_refused && d->opts.takes_unreadable)
        say_unread(c);
    else if (is_refused || (says_object && (c->out || c->is_dry_run)))
        vg_change_answer(c, is_pending ? 202 : 200);
    else
        say_deleted(d);
}

static bool is_immortal(const struct vg_target *t)
{
    static const char *const names[] = {"default", "kube-system", "kube-public"};
    if (!vg_kind_is(t->kind, VG_KIND_FINALIZED_BY_SPEC))
        return false;
    for (size_t i = 0; i < VG_ARRAY_LEN(names); i++)
        if (vg_slice_eq(t->name, vg_slice_str(names[i])))
            return true;
    return false;
}

void vg_api_delete(struct vg_api_call *call)
{
    const struct vg_target *t = call->ask->target;
    struct vg_api_status status;
    struct vg_deletion *d = vg_call_new(call, struct vg_deletion);
    if (!d)
        return;
    if (vg_delete_opts_read(call, &d->opts, &status) < 0) {
        vg_respond_status(call, &status);
        return;
    }
    if (is_immortal(t)) {
        vg_status_forbidden(&call->ask->arena, &status, t->kind, t->name,
                            "this namespace may not be deleted");
        vg_respond_status(call, &status);
        return;
    }
    if (t->kind->orphan_warning && !d->opts.has_orphan && d->opts.propagation == VG_PROPAGATE_UNSET)
        vg_call_warn(call, "%s", t->kind->orphan_warning);
    d->done = on_deleted;
    call->state = d;
    call->op = &vg_change_op;
    vg_deletion_start(d, call, t->kind, t->ns, t->name);
}
