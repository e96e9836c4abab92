/* create.c - POST of a collection: a new object, under its name or under one that we make up. */
#include <errno.h>

#include "admission.h"
#include "stamp.h"
#include "status_int.h"

/* What makes up a name: 58 bytes of the prefix and 5 of these, so that it is a label. */
#define GENERATED_PREFIX_MAX 58u
#define GENERATED_TRIES 8u
static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";

struct creation {
    struct vg_change change; /* first: vg_change_op */
    struct vg_admit admit;
    struct vg_body body;
    bool is_generated;
};

void vg_name_suffix(struct vg_rng *rng, char ret[VG_NAME_SUFFIX])
{
    for (size_t i = 0; i < VG_NAME_SUFFIX; i++)
        ret[i] = alphabet[vg_rng_below(rng, sizeof alphabet - 1)];
}

static int generate_name(struct creation *w)
{
    struct vg_change *c = &w->change;
    struct vg_slice prefix = w->body.meta.generate_name;
    size_t n = VG_MIN(prefix.n, GENERATED_PREFIX_MAX);
    char name[GENERATED_PREFIX_MAX + VG_NAME_SUFFIX];
    memcpy(name, prefix.p, n);
    vg_name_suffix(&c->call->loop->rng, name + n);
    w->is_generated = true;
    return vg_arena_keep(&c->call->ask->arena, vg_slice(name, n + VG_NAME_SUFFIX), &c->name);
}

static void say_exists(struct creation *w)
{
    static const char more[] = ", the server was not able to generate a unique name for the object";
    struct vg_change *c = &w->change;
    struct vg_api_status *s = &c->status;
    struct vg_obj_header h;
    vg_obj_header_read(vg_rec_header(c->cur), vg_rec_value(c->cur), &h);
    vg_status_exists(&c->call->ask->arena, s, c->kind, c->name, vg_obj_is_deleting(&h));
    if (w->is_generated && vg_arena_printf(&c->call->ask->arena, &s->message, "%.*s%s",
                                           VG_SLICE_ARG(s->message), more) < 0)
        vg_status_no_memory(s);
}

static enum vg_verdict make(struct vg_change *c)
{
    struct creation *w = VG_CONTAINER_OF(c, struct creation, change);
    bool wants_name = c->name.n == 0 && w->body.meta.generate_name.n;
    if (c->cur) { /* the name is taken */
        if (!w->is_generated || c->tries >= GENERATED_TRIES) {
            say_exists(w);
            return VG_CHANGE_FAIL;
        }
        c->cur = vg_rec_unref(c->cur);
        wants_name = true;
    }
    if (wants_name && generate_name(w) < 0)
        return vg_change_refuse(c, -ENOMEM);
    return vg_stamp_new(c, &w->body);
}

static void on_made(struct vg_change *c)
{
    vg_change_answer(c, 201);
}

static void on_admitted(struct vg_admit *a)
{
    struct creation *w = VG_CONTAINER_OF(a, struct creation, admit);
    struct vg_api_call *call = w->change.call;
    struct vg_api_status status;
    w->change.is_in_flight = false;
    if (call->is_closed)
        vg_call_finish(call);
    else if (vg_admit_verdict(a, w->change.kind, w->body.meta.name, &status) < 0)
        vg_respond_status(call, &status);
    else
        vg_change_start(&w->change);
}

/* The namespace of the body must be that of the URL; none means that one. */
int vg_body_match_namespace(struct vg_api_call *call, const struct vg_meta *m,
                            struct vg_api_status *ret_status)
{
    struct vg_slice ns = call->ask->target->ns;
    if (m->ns.n == 0 || ns.n == 0 || vg_slice_eq(m->ns, ns))
        return 0;
    vg_status_bad_request(&call->ask->arena, ret_status,
                          "the namespace of the provided object does not match the namespace sent "
                          "on the request");
    return VIGIL_E_INVALID;
}

int vg_body_read_new(struct vg_api_call *call, const struct vg_body_type *type,
                     struct vg_write_opts *ret_opts, struct vg_body *ret_body,
                     struct vg_api_status *ret_status)
{
    int err = vg_write_opts_read(call, "CreateOptions", ret_opts, ret_status);
    if (err == 0)
        err = vg_body_read(call, type, ret_opts->fields, ret_body, ret_status);
    return err < 0 ? err : vg_body_match_namespace(call, &ret_body->meta, ret_status);
}

int vg_meta_tell_owners(struct vg_api_call *call, struct vg_meta *m, bool is_late)
{
    struct vg_slice uids;
    int err = vg_meta_dedup_owners(&call->ask->arena, m, &uids);
    if (err == 0 && uids.n)
        vg_call_warn(call,
                     ".metadata.ownerReferences contains duplicate entries%s; API server dedups "
                     "owner references in 1.20+, and may reject such requests as early as 1.24; "
                     "please fix your requests; duplicate UID(s) observed: %.*s",
                     is_late ? " after mutating admission happens" : "", VG_SLICE_ARG(uids));
    return err;
}

static int begin(struct vg_api_call *call, struct creation *w, struct vg_api_status *ret_status)
{
    struct vg_target *t = call->ask->target;
    struct vg_write_opts opts;
    struct vg_body_type type = vg_body_type_of(t);
    int err = vg_body_read_new(call, &type, &opts, &w->body, ret_status);
    if (err < 0)
        return err;
    if (vg_meta_tell_owners(call, &w->body.meta, false) < 0) {
        vg_status_no_memory(ret_status);
        return -ENOMEM;
    }
    w->change = (struct vg_change){
        .call = call,
        .kind = t->kind,
        .ns = t->ns,
        .name = w->body.meta.name,
        .is_dry_run = opts.is_dry_run,
        .is_create = true,
        .make = make,
        .done = on_made,
    };
    return 0;
}

void vg_api_create(struct vg_api_call *call)
{
    struct vg_api_status status;
    if (call->ask->target->sub || vg_kind_is(call->ask->target->kind, VG_KIND_NOT_STORED)) {
        vg_api_create_sub(call);
        return;
    }
    struct creation *w = vg_call_new(call, struct creation);
    if (!w)
        return;
    if (begin(call, w, &status) < 0) {
        vg_respond_status(call, &status);
        return;
    }
    call->state = w;
    call->op = &vg_change_op;
    if (!vg_kind_is(call->ask->target->kind, VG_KIND_NAMESPACED) &&
        call->ask->target->kind != call->loop->api->admission->priority_classes) {
        vg_change_start(&w->change);
        return;
    }
    w->change.is_in_flight = true; /* of the admission, until it is done */
    w->admit = (struct vg_admit){.call = call, .ns = call->ask->target->ns, .done = on_admitted};
    vg_admit_start(&w->admit);
}
