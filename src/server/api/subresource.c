/* subresource.c - what is posted to an object rather than put into it. A binding says once on which
 * node a pod runs; others have files of their own. */
#include <errno.h>

#include "status_int.h"
#include "update.h"

void vg_api_refuse_sub(struct vg_api_call *call)
{
    struct vg_api_status status = {.code = 501, .reason = "NotImplemented", .has_details = true};
    const struct vg_target *t = call->ask->target;
    status.kind = vg_slice_str(t->kind->resource);
    status.group = vg_slice_str(t->kind->group);
    status.name = t->name;
    if (vg_arena_printf(&call->ask->arena, &status.message, "%s/%s is not served yet",
                        vg_kind_qualified(t->kind), t->sub ? t->sub->name : "") < 0)
        vg_status_no_memory(&status);
    vg_respond_status(call, &status);
}

static void say_created(struct vg_api_call *call)
{
    struct vg_api_status status = {.code = 201, .is_success = true};
    vg_respond_status(call, &status);
}

/* ---- bindings ---- */

struct binding {
    struct vg_change change; /* first: vg_change_op */
    struct vg_body body;
    struct vg_slice node;
};

/* Such refusals name the subresource. */
static enum vg_verdict refuse_binding(struct vg_change *c, struct vg_slice why)
{
    struct vg_arena *a = &c->call->ask->arena;
    const struct vg_kind *kind = c->kind;
    c->status = (struct vg_api_status){
        .code = 409, .reason = "Conflict", .has_details = true, .name = c->name};
    int err = vg_arena_printf(a, &c->status.kind, "%s/binding", kind->resource);
    if (err == 0)
        err = vg_arena_printf(
            a, &c->status.message, "Operation cannot be fulfilled on %s/binding %.*s: %.*s",
            kind->resource, VG_SLICE_ARG(vg_api_quote(a, c->name)), VG_SLICE_ARG(why));
    if (err < 0)
        vg_status_no_memory(&c->status);
    return VG_CHANGE_FAIL;
}

/* Why it cannot be bound; empty: it can. p NULL: memory was short. */
static struct vg_slice why_not(struct binding *w, const struct vg_body *cur)
{
    struct vg_change *c = &w->change;
    struct vg_arena *a = &c->call->ask->arena;
    const struct vg_json *spec = vg_json_get_str(cur->root, "spec");
    const struct vg_json *gates = vg_json_get_str(spec, "schedulingGates");
    struct vg_slice node = vg_json_text(vg_json_get_str(spec, "nodeName"));
    struct vg_slice why = VG_SLICE_LIT("");
    int err = 0;
    if (cur->meta.deleted.n)
        err = vg_arena_printf(a, &why, "%s %.*s is being deleted, cannot be assigned to a host",
                              c->kind->singular, VG_SLICE_ARG(c->name));
    else if (node.n)
        err =
            vg_arena_printf(a, &why, "%s %.*s is already assigned to node %.*s", c->kind->singular,
                            VG_SLICE_ARG(c->name), VG_SLICE_ARG(vg_api_quote(a, node)));
    else if (vg_json_is(gates, VG_JSON_ARRAY) && gates->n)
        err = vg_arena_printf(a, &why, "%s %.*s has non-empty .spec.schedulingGates",
                              c->kind->singular, VG_SLICE_ARG(c->name));
    return err < 0 ? vg_slice(NULL, 0) : why;
}

/* A map with the members of another over it; both are sorted, and so is what comes out. */
static int overlay(struct vg_arena *a, struct vg_json **map, const struct vg_json *over)
{
    if (!over || over->n == 0)
        return 0;
    struct vg_json *out = vg_arena_new(a, struct vg_json);
    if (!out)
        return -ENOMEM;
    *out = vg_json_object();
    uint32_t i = 0, n = *map ? (*map)->n : 0;
    int err = 0;
    VG_JSON_FOREACH_MEMBER (y, over) {
        int c = -1;
        while (i < n && err == 0 &&
               (c = vg_slice_cmp(vg_json_key(&(*map)->members[i]), vg_json_key(y))) < 0) {
            const struct vg_json_member *x = &(*map)->members[i++];
            err = vg_json_object_add(a, out, vg_json_key(x), x->value);
        }
        i += i < n && c == 0;
        if (err == 0)
            err = vg_json_object_add(a, out, vg_json_key(y), y->value);
    }
    for (; i < n && err == 0; i++)
        err =
            vg_json_object_add(a, out, vg_json_key(&(*map)->members[i]), (*map)->members[i].value);
    *map = out;
    return err;
}

static int text_member(struct vg_arena *a, struct vg_json *obj, const char *name, struct vg_slice s)
{
    return vg_json_object_set(a, obj, vg_slice_str(name), vg_json_string_ref(s));
}

/* status.conditions with PodScheduled true. */
static int set_scheduled(struct vg_change *c, struct vg_json *root)
{
    struct vg_arena *a = &c->scratch;
    struct vg_json status = vg_json_object(), list = vg_json_array(), cond = vg_json_object();
    const struct vg_json *given = vg_json_get_str(root, "status");
    const struct vg_json *before = vg_json_get_str(given, "conditions");
    struct vg_slice now;
    int err = vg_stamp_time(c, 0, &now);
    if (err == 0 && vg_json_is(given, VG_JSON_OBJECT))
        err = vg_json_top_copy(a, given, &status);
    for (uint32_t i = 0; vg_json_is(before, VG_JSON_ARRAY) && i < before->n && err == 0; i++)
        if (!vg_slice_eq(vg_json_text(vg_json_get_str(&before->items[i], "type")),
                         VG_SLICE_LIT("PodScheduled")))
            err = vg_json_array_push(a, &list, before->items[i]);
    if (err == 0)
        err = text_member(a, &cond, "type", VG_SLICE_LIT("PodScheduled"));
    if (err == 0)
        err = text_member(a, &cond, "status", VG_SLICE_LIT("True"));
    if (err == 0)
        err = text_member(a, &cond, "lastTransitionTime", now);
    if (err == 0)
        err = vg_json_array_push(a, &list, cond);
    if (err == 0)
        err = vg_json_object_set(a, &status, VG_SLICE_LIT("conditions"), list);
    return err < 0 ? err : vg_json_object_set(a, root, VG_SLICE_LIT("status"), status);
}

static int set_node(struct vg_change *c, struct vg_json *root, struct vg_slice node)
{
    struct vg_json spec = vg_json_object();
    const struct vg_json *given = vg_json_get_str(root, "spec");
    int err = 0;
    if (vg_json_is(given, VG_JSON_OBJECT))
        err = vg_json_top_copy(&c->scratch, given, &spec);
    if (err == 0)
        err = text_member(&c->scratch, &spec, "nodeName", node);
    return err < 0 ? err : vg_json_object_set(&c->scratch, root, VG_SLICE_LIT("spec"), spec);
}

static enum vg_verdict make_bound(struct vg_change *c)
{
    struct binding *w = VG_CONTAINER_OF(c, struct binding, change);
    struct vg_body cur;
    struct vg_json root;
    if (!c->cur) {
        vg_status_not_found(&c->call->ask->arena, &c->status, c->kind, c->name);
        return VG_CHANGE_FAIL;
    }
    if (vg_change_load(c, &cur) < 0 || vg_update_check_rev(c, w->body.meta.rev) < 0)
        return VG_CHANGE_FAIL;
    struct vg_slice why = why_not(w, &cur);
    if (!why.p)
        return vg_change_refuse(c, -ENOMEM);
    if (why.n)
        return refuse_binding(c, why);
    int err = vg_json_top_copy(&c->scratch, cur.root, &root);
    if (err == 0)
        err = overlay(&c->scratch, &cur.meta.labels, w->body.meta.labels);
    if (err == 0)
        err = overlay(&c->scratch, &cur.meta.annotations, w->body.meta.annotations);
    if (err == 0)
        err = set_node(c, &root, w->node);
    if (err == 0)
        err = set_scheduled(c, &root);
    return err < 0 ? vg_change_refuse(c, err) : vg_change_seal(c, &root, &cur.meta, cur.root);
}

static void on_bound(struct vg_change *c)
{
    if (c->call->is_closed || c->verdict == VG_CHANGE_FAIL) {
        vg_change_answer(c, 201);
        return;
    }
    say_created(c->call);
    vg_change_release(c);
}

static int read_target(struct binding *w, struct vg_api_status *ret)
{
    struct vg_arena *a = &w->change.call->ask->arena;
    const struct vg_json *target = vg_json_get_str(w->body.root, "target");
    struct vg_slice kind = vg_json_text(vg_json_get_str(target, "kind"));
    w->node = vg_json_text(vg_json_get_str(target, "name"));
    if (kind.n && !vg_slice_eq(kind, VG_SLICE_LIT("Node")))
        vg_status_unknown(a, ret,
                          "target.kind: Unsupported value: %.*s: supported values: \"Node\", "
                          "\"<empty>\"",
                          VG_SLICE_ARG(vg_api_quote(a, kind)));
    else if (w->node.n == 0)
        vg_status_unknown(a, ret, "target.name: Required value");
    else
        return 0;
    return VIGIL_E_INVALID;
}

static int begin_binding(struct binding *w, struct vg_api_status *ret)
{
    struct vg_api_call *call = w->change.call;
    const struct vg_target *t = call->ask->target;
    struct vg_body_type type = {.group = "", .version = "v1", .kind = "Binding"};
    struct vg_write_opts opts;
    int err = vg_body_read_new(call, &type, &opts, &w->body, ret);
    if (err < 0)
        return err;
    w->change.is_dry_run = opts.is_dry_run;
    w->change.name = t->sub ? t->name : w->body.meta.name;
    if (!vg_slice_eq(w->change.name, w->body.meta.name)) {
        vg_status_bad_request(&call->ask->arena, ret,
                              "name in URL does not match name in Binding object");
        return VIGIL_E_INVALID;
    }
    return read_target(w, ret);
}

static void create_binding(struct vg_api_call *call, const struct vg_kind *kind)
{
    struct vg_api_status status;
    struct binding *w = vg_call_new(call, struct binding);
    if (!w)
        return;
    w->change = (struct vg_change){.call = call,
                                   .kind = kind,
                                   .ns = call->ask->target->ns,
                                   .make = make_bound,
                                   .done = on_bound};
    if (begin_binding(w, &status) < 0) {
        vg_respond_status(call, &status);
        return;
    }
    call->state = w;
    call->op = &vg_change_op;
    vg_change_start(&w->change);
}

/* ---- POST ---- */

/* Whom a binding at the top level binds: the kind of this version that has such a subresource. */
static const struct vg_kind *bound_kind(const struct vg_target *t)
{
    size_t n;
    const struct vg_kind *rows = vg_kinds_of(t->group, t->version, &n);
    for (size_t i = 0; rows && i < n; i++) {
        const struct vg_kind_sub *sub = vg_kind_sub(&rows[i], VG_SLICE_LIT("binding"));
        if (sub && sub->type == VG_SUB_BINDING)
            return &rows[i];
    }
    return NULL;
}

void vg_api_create_sub(struct vg_api_call *call)
{
    const struct vg_target *t = call->ask->target;
    const struct vg_kind *bound = t->sub ? NULL : bound_kind(t);
    if (bound)
        create_binding(call, bound);
    else if (t->sub && t->sub->type == VG_SUB_BINDING)
        create_binding(call, t->kind);
    else if (t->sub && t->sub->type == VG_SUB_EVICTION)
        vg_api_evict(call);
    else if (t->sub && t->sub->type == VG_SUB_TOKEN && call->loop->api->opts.issuer)
        vg_api_create_token(call);
    else if (t->sub || !vg_api_review(call))
        vg_api_refuse_sub(call);
}
