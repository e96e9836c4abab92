/* evict.c - POST of an Eviction: a deletion that keeps to budgets of disruption.
 *
 *   pod --over, pending, going--------------------------------------> note --> delete
 *    |   running                                                        ^
 *    +-> budgets of its namespace --none, or it does not count on it----+
 *          | one                                                        |
 *          +-> take one disruption of it (compare and swap) ------------+
 *
 * The note is a condition of the pod that says why it goes. What was decided by the pod's state
 * holds for that revision alone: if it changed meanwhile, a pod without need of a budget is looked
 * at again, and one that a budget did not count on is told to come again. */
#include <errno.h>

#include "evict_int.h"
#include "status_int.h"

/* Times that a pod may change under our eyes. */
#define TRIES_MAX 20u

static void look_at_pod(struct vg_eviction *w);

static struct vg_arena *arena(struct vg_eviction *w)
{
    return &w->look.call->ask->arena;
}

static void let_go(struct vg_eviction *w)
{
    vg_look_release(&w->look);
    vg_change_release(&w->change);
    vg_change_release(&w->deletion.change);
}

static void answer(struct vg_eviction *w, const struct vg_api_status *status)
{
    struct vg_api_call *call = w->look.call;
    if (call->is_closed)
        vg_call_finish(call);
    else
        vg_respond_status(call, status); /* which may lie in the scratch of a change */
    let_go(w);
}

static void fail(struct vg_eviction *w, int err)
{
    struct vg_api_status status;
    vg_status_from_err(arena(w), &status, err, vg_err_text(err));
    answer(w, &status);
}

static void say_done(struct vg_eviction *w)
{
    struct vg_api_status status = {.code = 201, .is_success = true};
    answer(w, &status);
}

/* ---- the pod goes ---- */

/* It was another than the one that we looked at, and that was our own condition. */
static bool is_stale(const struct vg_eviction *w, const struct vg_api_status *status)
{
    return status->code == 409 && w->opts.has_rev && !w->was_rev_given;
}

static void refuse(struct vg_eviction *w, const struct vg_change *c)
{
    struct vg_api_status status;
    if (w->look.call->is_closed || !is_stale(w, &c->status)) {
        answer(w, &c->status);
        return;
    }
    if (w->budget.n == 0 && w->tries < TRIES_MAX) {
        look_at_pod(w);
        return;
    }
    vg_budget_say_busy(w, &status);
    answer(w, w->budget.n ? &status : &c->status);
}

static void on_deleted(struct vg_deletion *d)
{
    struct vg_eviction *w = VG_CONTAINER_OF(d, struct vg_eviction, deletion);
    if (d->change.verdict == VG_CHANGE_FAIL)
        refuse(w, &d->change);
    else
        say_done(w);
}

static void remove_pod(struct vg_eviction *w)
{
    const struct vg_target *t = w->look.call->ask->target;
    if (w->bad.code) {
        answer(w, &w->bad);
        return;
    }
    vg_change_release(&w->deletion.change);
    w->deletion = (struct vg_deletion){.opts = w->opts, .done = on_deleted};
    vg_deletion_start(&w->deletion, w->look.call, t->kind, t->ns, t->name);
}

/* ---- the note ---- */

static bool is_note(const struct vg_json *condition)
{
    return vg_slice_eq(vg_json_text(vg_json_get_str(condition, "type")),
                       VG_SLICE_LIT("DisruptionTarget"));
}

static int make_note(struct vg_change *c, const struct vg_json *was, struct vg_json *ret)
{
    static const struct {
        const char *name, *text;
    } parts[] = {{"type", "DisruptionTarget"},
                 {"status", "True"},
                 {"reason", "EvictionByEvictionAPI"},
                 {"message", "Eviction API: evicting"}};
    const struct vg_json *since = vg_json_get_str(was, "lastTransitionTime");
    bool is_same = vg_slice_eq(vg_json_text(vg_json_get_str(was, "status")), VG_SLICE_LIT("True"));
    struct vg_slice now;
    int err = vg_stamp_time(c, 0, &now);
    *ret = vg_json_object();
    for (size_t i = 0; i < VG_ARRAY_LEN(parts) && err == 0; i++)
        err = vg_json_object_add(&c->scratch, ret, vg_slice_str(parts[i].name),
                                 vg_json_string_ref(vg_slice_str(parts[i].text)));
    return err < 0 ? err
                   : vg_json_object_add(&c->scratch, ret, VG_SLICE_LIT("lastTransitionTime"),
                                        is_same && since ? *since : vg_json_string_ref(now));
}

static int put_note(struct vg_change *c, struct vg_json *root)
{
    struct vg_arena *a = &c->scratch;
    const struct vg_json *given = vg_json_get_str(root, "status");
    const struct vg_json *before = vg_json_get_str(given, "conditions");
    struct vg_json status = vg_json_object(), list = vg_json_array(), note;
    bool is_there = false;
    int err = vg_json_is(given, VG_JSON_OBJECT) ? vg_json_top_copy(a, given, &status) : 0;
    for (uint32_t i = 0; vg_json_is(before, VG_JSON_ARRAY) && i < before->n && err == 0; i++) {
        note = before->items[i];
        if (is_note(&before->items[i]) && !is_there) {
            is_there = true;
            err = make_note(c, &before->items[i], &note);
        }
        if (err == 0)
            err = vg_json_array_push(a, &list, note);
    }
    if (err == 0 && !is_there)
        err = make_note(c, NULL, &note);
    if (err == 0 && !is_there)
        err = vg_json_array_push(a, &list, note);
    if (err == 0)
        err = vg_json_object_set(a, &status, VG_SLICE_LIT("conditions"), list);
    return err < 0 ? err : vg_json_object_set(a, root, VG_SLICE_LIT("status"), status);
}

static enum vg_verdict make_noted(struct vg_change *c)
{
    struct vg_eviction *w = VG_CONTAINER_OF(c, struct vg_eviction, change);
    struct vg_delete_opts wanted = w->opts;
    struct vg_body cur;
    struct vg_json root;
    if (!c->cur) {
        vg_status_not_found(&c->call->ask->arena, &c->status, c->kind, c->name);
        return VG_CHANGE_FAIL;
    }
    wanted.has_uid = wanted.uid.n > 0; /* an empty one is none yet, for the deletion it is one */
    wanted.has_rev = wanted.rev.n > 0;
    if (vg_change_load(c, &cur) < 0 || vg_deletion_check(c, &wanted, &cur.meta) < 0)
        return VG_CHANGE_FAIL;
    int err = vg_json_top_copy(&c->scratch, cur.root, &root);
    if (err == 0)
        err = put_note(c, &root);
    return err < 0 ? vg_change_refuse(c, err) : vg_change_seal(c, &root, &cur.meta, cur.root);
}

static void on_noted(struct vg_change *c)
{
    struct vg_eviction *w = VG_CONTAINER_OF(c, struct vg_eviction, change);
    if (w->look.call->is_closed || c->verdict == VG_CHANGE_FAIL) {
        refuse(w, c);
        return;
    }
    /* The revision is ours now. */
    if (w->opts.has_rev &&
        vg_arena_printf(arena(w), &w->opts.rev, "%llu", (unsigned long long)c->rev) < 0) {
        fail(w, -ENOMEM);
        return;
    }
    remove_pod(w);
}

static void change_object(struct vg_eviction *w, const struct vg_kind *kind, struct vg_slice name,
                          vg_change_make_fn *make, void (*done)(struct vg_change *))
{
    vg_change_release(&w->change);
    w->change = (struct vg_change){.call = w->look.call,
                                   .kind = kind,
                                   .ns = w->look.ns,
                                   .name = name,
                                   .own_sub = vg_kind_sub(kind, VG_SLICE_LIT("status")),
                                   .is_dry_run = w->opts.is_dry_run,
                                   .make = make,
                                   .done = done};
    vg_change_start(&w->change);
}

static void evict(struct vg_eviction *w)
{
    if (w->opts.is_dry_run)
        remove_pod(w);
    else
        change_object(w, w->look.kind, w->look.name, make_noted, on_noted);
}

/* The pod has to be the one that was looked at, unless the client says which. */
static int hold_revision(struct vg_eviction *w)
{
    if (w->was_rev_given)
        return 0;
    w->opts.has_rev = true;
    return vg_arena_printf(arena(w), &w->opts.rev, "%llu", (unsigned long long)w->look.rec->rev);
}

/* ---- budgets ---- */

static const struct vg_kind *budgets(void)
{
    return vg_kind_find(VG_SLICE_LIT("policy"), VG_SLICE_LIT("v1"),
                        VG_SLICE_LIT("poddisruptionbudgets"));
}

static void on_taken(struct vg_change *c)
{
    struct vg_eviction *w = VG_CONTAINER_OF(c, struct vg_eviction, change);
    if (w->look.call->is_closed || c->verdict == VG_CHANGE_FAIL)
        answer(w, &c->status);
    else
        evict(w);
}

static void say_several(struct vg_eviction *w)
{
    struct vg_api_status status = {
        .code = 500,
        .message = VG_SLICE_LIT("This pod has more than one PodDisruptionBudget, which the "
                                "eviction subresource does not support.")};
    answer(w, &status);
}

static void decide(struct vg_eviction *w)
{
    struct vg_api_status status;
    struct vg_json *pod, *budget = NULL;
    size_t n = 0;
    if (vg_look_tree(&w->look, &pod, &status) < 0) {
        answer(w, &status);
        return;
    }
    int err = vg_budget_find(w, pod, &budget, &n);
    if (err == 0 && n == 1) {
        const struct vg_json *meta = vg_json_get_str(budget, "metadata");
        err = vg_arena_keep(arena(w), vg_json_text(vg_json_get_str(meta, "name")), &w->budget);
    }
    bool is_spared = n == 1 && vg_budget_spares(budget, pod);
    if (err == 0 && is_spared)
        err = hold_revision(w);
    if (err < 0)
        fail(w, err);
    else if (n > 1)
        say_several(w);
    else if (n == 1 && !is_spared)
        change_object(w, budgets(), w->budget, vg_budget_take, on_taken);
    else
        evict(w);
}

static void on_budgets(struct vg_store_req *req)
{
    struct vg_eviction *w = VG_CONTAINER_OF(req, struct vg_eviction, range.req);
    w->is_listing = false;
    if (w->look.call->is_closed || req->err < 0)
        fail(w, req->err);
    else
        decide(w);
    vg_range_done(&w->range);
}

static void list_budgets(struct vg_eviction *w)
{
    int err = vg_obj_key_range(vg_slice_str(budgets()->prefix), w->look.ns, &w->span);
    w->range = (struct vg_range){
        .req = {.loop = w->look.call->loop->loop, .done = on_budgets},
        .keys = {VG_KEYS_SPAN, vg_obj_key_slice(&w->span.start), vg_obj_key_slice(&w->span.end)},
    };
    w->is_listing = err == 0;
    if (err == 0)
        err = vg_storage_range(w->look.call->loop->api->storage, &w->range);
    if (err == 0)
        return;
    w->is_listing = false;
    fail(w, err);
}

/* ---- the pod ---- */

static void on_pod(struct vg_look *l)
{
    struct vg_eviction *w = VG_CONTAINER_OF(l, struct vg_eviction, look);
    struct vg_api_status status = {0};
    struct vg_json *pod;
    if (l->call->is_closed || vg_look_tree(l, &pod, &status) < 0)
        answer(w, &status);
    else if (!vg_budget_is_idle(pod))
        list_budgets(w);
    else if (vg_budget_may_race(pod) && hold_revision(w) < 0)
        fail(w, -ENOMEM);
    else
        evict(w);
}

static void look_at_pod(struct vg_eviction *w)
{
    w->tries++;
    w->opts.has_rev = w->was_rev_given;
    vg_look_start(&w->look);
}

/* ---- the request ---- */

static int read_options(struct vg_eviction *w, const struct vg_json *given,
                        struct vg_api_status *ret)
{
    const struct vg_json *ignores =
        vg_json_get_str(given, "ignoreStoreReadErrorWithClusterBreakingPotential");
    struct vg_field_errors e = {.arena = arena(w)};
    if (vg_json_is_true(ignores)) {
        vg_field_invalid(&e, "deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential",
                         VG_SLICE_LIT("true"),
                         "can not be set for pod eviction, try after removing the option");
        vg_status_invalid(arena(w), ret, "policy", "Eviction", w->look.name, &e);
        return VIGIL_E_INVALID;
    }
    return vg_delete_opts_of(w->look.call, given, &w->opts, &w->bad, ret);
}

static int begin(struct vg_eviction *w, struct vg_api_status *ret)
{
    struct vg_api_call *call = w->look.call;
    const struct vg_target *t = call->ask->target;
    struct vg_body_type type = vg_body_type_of(t);
    struct vg_write_opts opts = {0};
    struct vg_body body = {0};
    type.also = "v1beta1";
    int err = vg_body_read_new(call, &type, &opts, &body, ret);
    if (err < 0)
        return err;
    if (!vg_slice_eq(body.meta.name, t->name)) {
        vg_status_bad_request(arena(w), ret, "name in URL does not match name in Eviction object");
        return VIGIL_E_INVALID;
    }
    err = read_options(w, vg_json_get_str(body.root, "deleteOptions"), ret);
    w->opts.is_dry_run = w->opts.is_dry_run || opts.is_dry_run;
    w->was_rev_given = w->opts.has_rev;
    return err;
}

static void on_closed(struct vg_api_call *call, int err)
{
    struct vg_eviction *w = call->state;
    (void)err;
    if (w->look.is_in_flight || w->is_listing || w->change.is_in_flight ||
        w->deletion.change.is_in_flight)
        return;
    vg_call_finish(call);
    let_go(w);
}

static const struct vg_api_op evict_op = {.closed = on_closed};

void vg_api_evict(struct vg_api_call *call)
{
    const struct vg_target *t = call->ask->target;
    struct vg_api_status status;
    struct vg_eviction *w = vg_call_new(call, struct vg_eviction);
    if (!w)
        return;
    w->look = (struct vg_look){
        .call = call, .kind = t->kind, .ns = t->ns, .name = t->name, .done = on_pod};
    if (begin(w, &status) < 0) {
        vg_respond_status(call, &status);
        return;
    }
    call->state = w;
    call->op = &evict_op;
    look_at_pod(w);
}
