/* update.c - PUT: an object's new content, or that of its status or finalizers.
 * What belongs to the server stays: uid, creation, deletion, generation; main writes keep status,
 * status writes keep the rest. An update that changes nothing writes nothing. One that takes the
 * last finalizer of an object that is being deleted deletes it: the writer gets its object, those
 * who watch see it go as it was. */
#include "update.h"

#include <errno.h>

#include "admission.h"
#include "claims.h"
#include "server/fields/managers.h"
#include "server/kinds/rules/rules.h"
#include "server/schema/strconv.h"
#include "status_int.h"
#include "json/equal.h"

/* ---- checks ---- */

int vg_update_match_url(struct vg_api_call *call, const struct vg_meta *m,
                        struct vg_api_status *ret_status)
{
    const struct vg_target *t = call->ask->target;
    int err = vg_body_match_namespace(call, m, ret_status);
    if (err < 0)
        return err;
    if (m->name.n == 0)
        vg_status_bad_request(&call->ask->arena, ret_status,
                              "the name of the object (%.*s based on URL) was undeterminable: name "
                              "must be provided",
                              VG_SLICE_ARG(t->name));
    else if (!vg_slice_eq(m->name, t->name))
        vg_status_bad_request(&call->ask->arena, ret_status,
                              "the name of the object (%.*s) does not match the name on the URL "
                              "(%.*s)",
                              VG_SLICE_ARG(m->name), VG_SLICE_ARG(t->name));
    else
        return 0;
    return VIGIL_E_INVALID;
}

int vg_update_check_rev(struct vg_change *c, struct vg_slice text)
{
    struct vg_arena *a = &c->call->ask->arena;
    struct vg_slice why;
    uint64_t rev = 0;
    int err = text.n ? vg_strconv_uint(a, text, &rev, &why) : 0;
    if (err == VIGIL_E_INVALID)
        vg_status_unknown(a, &c->status, "%.*s", VG_SLICE_ARG(why));
    else if (err < 0)
        vg_status_no_memory(&c->status);
    if (err < 0)
        return VIGIL_E_INVALID;
    if (rev == 0 && vg_kind_is(c->kind, VG_KIND_UPDATE_NEEDS_REV)) {
        struct vg_field_errors e = {.arena = a};
        vg_field_invalid(&e, "metadata.resourceVersion", VG_SLICE_LIT("0"),
                         "must be specified for an update");
        vg_status_invalid(a, &c->status, c->kind->group, c->kind->resource, c->name, &e);
        return VIGIL_E_INVALID;
    }
    if (rev == 0 || rev == c->cur->rev)
        return 0;
    vg_status_modified(a, &c->status, c->kind, c->name);
    return VIGIL_E_INVALID;
}

/* A uid in the body of a PUT says which object is meant. */
static int check_uid(struct vg_change *c, struct vg_slice wanted, struct vg_slice is)
{
    if (wanted.n == 0 || vg_slice_eq(wanted, is))
        return 0;
    vg_status_conflict(&c->call->ask->arena, &c->status, c->kind, c->name,
                       "StorageError: invalid object, Code: 4, Key: %.*s, ResourceVersion: 0, "
                       "AdditionalErrorMsg: Precondition failed: UID in precondition: %.*s, UID in "
                       "object meta: %.*s",
                       VG_SLICE_ARG(vg_obj_key_slice(&c->key)), VG_SLICE_ARG(wanted),
                       VG_SLICE_ARG(is));
    return VIGIL_E_INVALID;
}

static enum vg_sub_type mode_of(const struct vg_change *c)
{
    const struct vg_kind_sub *sub = c->call->ask->target->sub;
    return sub ? sub->type : VG_SUB_NONE;
}

/* What this finds is told twice, as there: by every update and by the kind's own check. */
static void check_twice(struct vg_field_errors *e, const struct vg_meta *m,
                        const struct vg_meta *old)
{
    size_t before = e->n;
    vg_meta_check_update(e, m, old);
    if (e->n != before || e->failed)
        vg_meta_check_update(e, m, old);
}

/* NULL: it is the old one (share_meta), or a copy of that node. */
static struct vg_json *if_new(struct vg_json *v, const struct vg_json *old)
{
    return v && old && v->n == old->n && v->items == old->items ? NULL : v;
}

/* Metadata without what is as it was: that was checked when it was stored. */
static struct vg_meta what_is_new(const struct vg_meta *m, const struct vg_meta *old)
{
    struct vg_meta next = *m;
    next.labels = if_new(m->labels, old->labels);
    next.annotations = if_new(m->annotations, old->annotations);
    next.owners = if_new(m->owners, old->owners);
    return next;
}

/* The checks of every update, then those of the kind: what both find is told twice, as there. */
static enum vg_verdict check(struct vg_change *c, const struct vg_json *root,
                             const struct vg_meta *all, const struct vg_body *cur)
{
    const struct vg_meta *old = &cur->meta, next = what_is_new(all, old), *m = &next;
    struct vg_field_errors e = {.arena = &c->call->ask->arena};
    vg_meta_check(&e, m, c->kind, NULL, true);
    check_twice(&e, m, old);
    vg_meta_check_finalizers(&e, m, c->kind);
    if (vg_kind_is(c->kind, VG_KIND_UPDATE_CHECKS_ALL)) {
        vg_meta_check(&e, m, c->kind, root, false);
        vg_meta_check_finalizers(&e, m, c->kind);
    }
    if (mode_of(c) == VG_SUB_FINALIZE)
        vg_meta_check_spec_finalizers(&e,
                                      vg_json_get_str(vg_json_get_str(root, "spec"), "finalizers"));
    vg_change_check(c, &e, root, cur->root);
    if (e.n == 0 && !e.failed)
        return VG_CHANGE_PUT;
    return vg_change_invalid(c, m->name, &e);
}

/* ---- stamping ---- */

/* All but metadata: who may write what. */
static int merge(struct vg_change *c, const struct vg_body *next, const struct vg_body *cur,
                 struct vg_meta *m, struct vg_json *ret_root)
{
    static const struct vg_json nothing = {.type = VG_JSON_ARRAY};
    struct vg_arena *a = &c->scratch;
    bool is_status = mode_of(c) == VG_SUB_STATUS, is_finalize = mode_of(c) == VG_SUB_FINALIZE;
    const struct vg_json *status = vg_json_get_str(is_status ? next->root : cur->root, "status");
    int err = vg_json_top_copy(a, is_status ? cur->root : next->root, ret_root);
    if (mode_of(c) == VG_SUB_PART) /* the kind's rules say what is taken of it */
        return err;
    if (err == 0 && !is_status && vg_kind_is(c->kind, VG_KIND_FINALIZED_BY_SPEC)) {
        const struct vg_json *spec = vg_json_get_str(is_finalize ? next->root : cur->root, "spec");
        const struct vg_json *finalizers = vg_json_get_str(spec, "finalizers");
        bool is_list = vg_json_is(finalizers, VG_JSON_ARRAY);
        err = vg_stamp_namespace(a, ret_root, m, is_list ? finalizers : &nothing);
    }
    if (err == 0 && vg_kind_is(c->kind, VG_KIND_HAS_STRING_DATA))
        err = vg_stamp_string_data(a, ret_root);
    if (err == 0 && (is_status || vg_kind_is(c->kind, VG_KIND_HAS_STATUS)))
        err = vg_stamp_last(a, ret_root, "status", status);
    return err;
}

static void share(struct vg_json **v, struct vg_json *was)
{
    if (*v && was && vg_json_equal(*v, was) == 1)
        *v = was;
}

/* What is as it was becomes the old node, so that whoever compares again sees it at once. */
static void share_meta(struct vg_meta *m, const struct vg_meta *old)
{
    share(&m->labels, old->labels);
    share(&m->annotations, old->annotations);
    share(&m->owners, old->owners);
    share(&m->finalizers, old->finalizers);
}

static void keep_meta(struct vg_meta *m, const struct vg_meta *old)
{
    m->ns = old->ns;
    m->generation = old->generation;
    if (m->uid.n == 0)
        m->uid = old->uid;
    if (old->created.n)
        m->created = old->created;
    if (old->deleted.n)
        m->deleted = old->deleted;
    if (old->has_grace && !m->has_grace) {
        m->has_grace = true;
        m->grace_s = old->grace_s;
    }
}

/* A write of a part that stands alone says nothing about metadata. */
static void keep_all_meta(struct vg_meta *m, const struct vg_meta *old)
{
    m->deleted = old->deleted;
    m->labels = old->labels;
    m->annotations = old->annotations;
    m->finalizers = old->finalizers;
    m->owners = old->owners;
}

static bool differs(const struct vg_json *a, const struct vg_json *b)
{
    return vg_json_equal(a, b) != 1;
}

static void count_generation(const struct vg_change *c, const struct vg_json *root,
                             struct vg_meta *m, const struct vg_body *cur)
{
    const struct vg_kind *kind = c->kind;
    if (!vg_kind_is(kind, VG_KIND_HAS_GENERATION) || mode_of(c) == VG_SUB_STATUS)
        return;
    bool is_new = false;
    for (const char *const *key = kind->spec; key && *key && !is_new; key++)
        is_new = differs(vg_json_get_str(root, *key), vg_json_get_str(cur->root, *key));
    if (vg_kind_is(kind, VG_KIND_GENERATION_BY_ANNOTATIONS))
        is_new = is_new || differs(m->annotations, cur->meta.annotations);
    if (vg_kind_is(kind, VG_KIND_GENERATION_BY_LABELS))
        is_new = is_new || differs(m->labels, cur->meta.labels);
    m->generation += is_new;
}

/* Nothing holds it any more. */
static bool is_gone(const struct vg_change *c, const struct vg_json *root, const struct vg_meta *m,
                    const struct vg_meta *old)
{
    if (m->deleted.n == 0 || m->finalizers || (old->has_grace && old->grace_s > 0))
        return false;
    const struct vg_json *held = vg_json_get_str(vg_json_get_str(root, "spec"), "finalizers");
    return !vg_kind_is(c->kind, VG_KIND_FINALIZED_BY_SPEC) || !held || held->n == 0;
}

/* Is all as it was but for the times of managers? Members that are as they were are the old ones.
 */
static bool is_same_but_times(struct vg_change *c, const struct vg_json *root,
                              const struct vg_meta *m, const struct vg_body *cur)
{
    struct vg_meta copy = *m;
    struct vg_json meta;
    copy.managed = cur->meta.managed;
    if (!vg_managers_differ_in_time(m->managed, cur->meta.managed, vg_change_source(c)))
        return false;
    VG_JSON_FOREACH_MEMBER (x, root) {
        const struct vg_json *was = vg_json_get(cur->root, vg_json_key(x));
        bool is_shared = was && was->type == x->value.type && was->n == x->value.n &&
                         was->items == x->value.items;
        if (!is_shared && !vg_slice_eq(vg_json_key(x), VG_SLICE_LIT("metadata")) &&
            differs(&x->value, was))
            return false;
    }
    return vg_meta_write(&c->scratch, &copy, &meta) == 0 &&
           !differs(&meta, vg_json_get_str(cur->root, "metadata"));
}

/* Sealed; and then: is it to be written at all? */
static enum vg_verdict settle(struct vg_update *w, struct vg_json *root, struct vg_meta *m,
                              const struct vg_body *cur)
{
    struct vg_change *c = &w->change;
    if (is_same_but_times(c, root, m, cur))
        m->managed = cur->meta.managed;
    enum vg_verdict verdict = vg_change_seal(c, root, m, cur->root);
    if (verdict != VG_CHANGE_PUT)
        return verdict;
    if (is_gone(c, root, m, &cur->meta)) {
        const struct vg_obj_sealed *s = &c->call->loop->sealed;
        w->goodbye = vg_rec_unref(w->goodbye);
        int err = vg_rec_new(VG_REC_PUT, vg_obj_key_slice(&c->key), vg_buf_slice(&s->header),
                             vg_buf_slice(&s->value), &w->goodbye);
        return err < 0 ? vg_change_refuse(c, err) : VG_CHANGE_DELETE;
    }
    struct vg_slice value = vg_buf_slice(&c->call->loop->sealed.value);
    return vg_slice_eq(value, vg_rec_value(c->cur)) ? VG_CHANGE_NONE : VG_CHANGE_PUT;
}

enum vg_verdict vg_update_apply(struct vg_update *w, const struct vg_body *next,
                                const struct vg_body *cur)
{
    struct vg_change *c = &w->change;
    struct vg_body given = *next;
    struct vg_json root;
    if (vg_update_check_rev(c, next->meta.rev) < 0)
        return VG_CHANGE_FAIL;
    share_meta(&given.meta, &cur->meta);
    struct vg_meta m = given.meta;
    keep_meta(&m, &cur->meta);
    const struct vg_rules_part *part = vg_change_part(c);
    if (part && part->is_alone)
        keep_all_meta(&m, &cur->meta);
    int err = merge(c, &given, cur, &m, &root);
    if (err == 0)
        err = vg_change_prepare(c, &root, &given, cur, &m);
    if (err < 0)
        return vg_change_refuse(c, err);
    enum vg_verdict verdict =
        c->call->ask->target->sub ? VG_CHANGE_PUT : vg_change_claim(c, &root, cur->root);
    if (verdict != VG_CHANGE_PUT)
        return verdict;
    count_generation(c, &root, &m, cur);
    verdict = check(c, &root, &m, cur);
    if (verdict == VG_CHANGE_PUT)
        verdict = vg_admission_check(c, &root, cur->root);
    return verdict == VG_CHANGE_PUT ? settle(w, &root, &m, cur) : verdict;
}

/* ---- the verb ---- */

static enum vg_verdict make_new(struct vg_update *w)
{
    struct vg_change *c = &w->change;
    bool may_create = vg_kind_is(c->kind, VG_KIND_CREATE_ON_UPDATE) && !c->call->ask->target->sub;
    if (!may_create) {
        vg_status_not_found(&c->call->ask->arena, &c->status, c->kind, c->name);
        return VG_CHANGE_FAIL;
    }
    if (check_uid(c, w->body.meta.uid, VG_SLICE_LIT("")) < 0)
        return VG_CHANGE_FAIL;
    if (vg_kind_is(c->kind, VG_KIND_NAMESPACED) &&
        vg_admit_verdict(&w->admit, c->kind, c->name, &c->status) < 0)
        return VG_CHANGE_FAIL;
    w->was_created = true;
    return vg_stamp_new(c, &w->body);
}

static enum vg_verdict make(struct vg_change *c)
{
    struct vg_update *w = VG_CONTAINER_OF(c, struct vg_update, change);
    struct vg_body cur;
    w->was_created = false;
    if (!c->cur)
        return make_new(w);
    if (vg_change_load_closed(c, &cur) < 0)
        return VG_CHANGE_FAIL;
    if (check_uid(c, w->body.meta.uid, cur.meta.uid) < 0)
        return VG_CHANGE_FAIL;
    return vg_update_apply(w, &w->body, &cur);
}

void vg_update_done(struct vg_change *c)
{
    struct vg_update *w = VG_CONTAINER_OF(c, struct vg_update, change);
    if (c->verdict == VG_CHANGE_DELETE) {
        c->out = w->goodbye;
        c->rev = c->cur->rev;
    }
    vg_change_answer(c, w->was_created ? 201 : 200);
    w->goodbye = vg_rec_unref(w->goodbye);
}

struct vg_update *vg_update_new(struct vg_api_call *call)
{
    struct vg_update *w = vg_call_new(call, struct vg_update);
    if (!w)
        return NULL;
    w->change = (struct vg_change){
        .call = call,
        .kind = call->ask->target->kind,
        .ns = call->ask->target->ns,
        .name = call->ask->target->name,
        .done = vg_update_done,
    };
    call->state = w;
    return w;
}

static void on_admitted(struct vg_admit *a)
{
    struct vg_update *w = VG_CONTAINER_OF(a, struct vg_update, admit);
    struct vg_api_call *call = w->change.call;
    w->change.is_in_flight = false;
    if (call->is_closed)
        vg_call_finish(call);
    else
        vg_change_start(&w->change);
}

static int begin(struct vg_update *w, struct vg_api_status *ret_status)
{
    struct vg_api_call *call = w->change.call;
    struct vg_write_opts opts;
    struct vg_body_type type = vg_body_type_of(call->ask->target);
    int err = vg_write_opts_read(call, "UpdateOptions", &opts, ret_status);
    if (err == 0)
        err = vg_body_read(call, &type, opts.fields, &w->body, ret_status);
    if (err == 0)
        err = vg_update_match_url(call, &w->body.meta, ret_status);
    if (err < 0)
        return err;
    w->change.is_dry_run = opts.is_dry_run;
    w->change.make = make;
    if (vg_meta_tell_owners(call, &w->body.meta, false) == 0)
        return 0;
    vg_status_no_memory(ret_status);
    return -ENOMEM;
}

void vg_api_update(struct vg_api_call *call)
{
    struct vg_api_status status;
    const struct vg_target *t = call->ask->target;
    if (t->sub && t->sub->type == VG_SUB_SCALE) {
        vg_api_update_scale(call);
        return;
    }
    struct vg_update *w = vg_update_new(call);
    if (!w)
        return;
    if (begin(w, &status) < 0) {
        vg_respond_status(call, &status);
        return;
    }
    call->op = &vg_change_op;
    if (!vg_kind_is(t->kind, VG_KIND_CREATE_ON_UPDATE) ||
        !vg_kind_is(t->kind, VG_KIND_NAMESPACED)) {
        vg_change_start(&w->change);
        return;
    }
    w->change.is_in_flight = true; /* of the admission, until it is done */
    w->admit = (struct vg_admit){.call = call, .ns = t->ns, .done = on_admitted};
    vg_admit_start(&w->admit);
}
