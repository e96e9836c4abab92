/* apply.c - PATCH with application/apply-patch+yaml: server-side apply.
 * The configuration is merged into the newest object (or into none, which makes one) and the result
 * goes the way of every update, with its managers told beforehand. What the merge is, is
 * server/fields' business; here are the request, the versions and the refusals. */
#include "apply.h"

#include <errno.h>
#include <stdlib.h>

#include "managed.h"
#include "server/fields/apply.h"
#include "server/kinds/convert.h"
#include "server/kinds/types.h"
#include "server/schema/gojson.h"
#include "status_int.h"
#include "update.h"
#include "json/write.h"

#define LAST_APPLIED VG_SLICE_LIT("kubectl.kubernetes.io/last-applied-configuration")

struct applying {
    struct vg_update update; /* first: vg_change_op */
    struct vg_apply_opts opts;
    const struct vg_schema_type *type; /* of the configuration */
    bool is_scale;
    struct vg_json *config;
    struct vg_json_dups dups;
    bool has_warned;
    /* What is wrong with the configuration itself; code 0: nothing. */
    struct vg_api_status bad;
};

/* ---- the configuration ---- */

static int refuse(struct applying *w, const char *what)
{
    vg_status_bad_request(&w->update.change.call->ask->arena, &w->bad, "error decoding YAML: %s",
                          what);
    return VIGIL_E_INVALID;
}

static int parse(struct applying *w)
{
    struct vg_api_call *call = w->update.change.call;
    struct vg_slice body = vg_http_request(call->x)->body;
    struct vg_status why;
    /* JSON is YAML, and faster to read; what is odd in it is told as YAML. */
    int err = VIGIL_E_INVALID;
    if (body.n && body.p[0] == '{')
        err = vg_body_parse(call->loop, &call->ask->arena, body, VG_BODY_JSON, &w->dups, &w->config,
                            &why);
    if (err == VIGIL_E_INVALID || (err == 0 && w->dups.n))
        err = vg_body_parse(call->loop, &call->ask->arena, body, VG_BODY_YAML, &w->dups, &w->config,
                            &why);
    if (err != VIGIL_E_INVALID)
        return err;
    struct vg_status text;
    (void)vg_fail(&text, err, "error converting YAML to JSON: %s", why.message);
    return refuse(w, text.message);
}

static int read_config(struct applying *w)
{
    int err = parse(w);
    if (err < 0) {
        if (err == -ENOMEM)
            vg_status_no_memory(&w->bad);
        return err;
    }
    if (w->config->type == VG_JSON_NULL)
        *w->config = vg_json_object();
    if (w->config->type == VG_JSON_OBJECT)
        return 0;
    struct vg_status text;
    (void)vg_fail(&text, VIGIL_E_INVALID,
                  "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal %s into Go "
                  "value of type map[string]interface {}",
                  vg_gojson_type(w->config));
    return refuse(w, text.message);
}

struct type_of {
    struct vg_slice group, version, kind;
};

static struct type_of type_of(const struct vg_json *config)
{
    struct type_of t = {.version = vg_json_text(vg_json_get_str(config, "apiVersion")),
                        .kind = vg_json_text(vg_json_get_str(config, "kind"))};
    struct vg_slice rest = t.version;
    t.group = VG_SLICE_LIT("");
    if (rest.n && memchr(rest.p, '/', rest.n)) {
        t.group = vg_cut(&rest, '/');
        t.version = rest;
        if (memchr(rest.p, '/', rest.n))
            t = (struct type_of){VG_SLICE_LIT(""), VG_SLICE_LIT(""), VG_SLICE_LIT("")};
    }
    return t;
}

/* The configuration as such: its type, and whether it is one of that. 0; negative with the status
 * set. */
static int check_config(struct applying *w)
{
    struct vg_change *c = &w->update.change;
    struct vg_arena *a = &c->call->ask->arena;
    struct type_of t = type_of(w->config);
    struct vg_body_type want = vg_body_type_of(c->call->ask->target);
    const struct vg_json *meta = vg_json_get_str(w->config, "metadata");
    const struct vg_json *managed = vg_json_get_str(meta, "managedFields");
    VG_AUTO(buf) why = {0};
    if (!vg_slice_eq(t.group, vg_slice_str(want.group)) ||
        !vg_slice_eq(t.version, vg_slice_str(want.version)) ||
        !vg_slice_eq(t.kind, vg_slice_str(want.kind))) {
        vg_status_bad_request(a, &c->status, "invalid object type: %.*s/%.*s, Kind=%.*s",
                              VG_SLICE_ARG(t.group), VG_SLICE_ARG(t.version), VG_SLICE_ARG(t.kind));
        return VIGIL_E_INVALID;
    }
    if (managed && managed->type != VG_JSON_NULL) {
        vg_status_bad_request(a, &c->status, "metadata.managedFields must be nil");
        return VIGIL_E_INVALID;
    }
    int err = vg_typed_check(&c->scratch, w->type, w->config, &why);
    if (err == VIGIL_E_INVALID)
        vg_status_unknown(a, &c->status,
                          "failed to create typed patch object (%.*s/%.*s; %.*s/%.*s, Kind=%.*s): "
                          "%.*s",
                          VG_SLICE_ARG(vg_json_text(vg_json_get_str(meta, "namespace"))),
                          VG_SLICE_ARG(vg_json_text(vg_json_get_str(meta, "name"))),
                          VG_SLICE_ARG(t.group), VG_SLICE_ARG(t.version), VG_SLICE_ARG(t.kind),
                          VG_SLICE_ARG(vg_buf_slice(&why)));
    else if (err < 0)
        (void)vg_change_refuse(c, err);
    return err;
}

/* Keys that are there twice. 0; VIGIL_E_INVALID with the status set. */
static int tell_dups(struct applying *w)
{
    struct vg_change *c = &w->update.change;
    VG_AUTO(buf) all = {0};
    int err = 0;
    if (w->opts.write.fields == VG_FIELDS_IGNORE || w->dups.n == 0)
        return 0;
    for (uint32_t i = 0; i < w->dups.n && err == 0; i++) {
        struct vg_slice text = w->dups.v[i].path;
        if (w->opts.write.fields == VG_FIELDS_WARN && !w->has_warned)
            vg_call_warn(c->call, "%.*s", VG_SLICE_ARG(text));
        err = vg_buf_printf(&all, "\n  %.*s", VG_SLICE_ARG(text));
    }
    w->has_warned = true;
    if (w->opts.write.fields == VG_FIELDS_WARN)
        return 0;
    vg_status_bad_request(&c->call->ask->arena, &c->status,
                          "error strict decoding YAML: error converting YAML to JSON: yaml: "
                          "unmarshal errors:%.*s",
                          VG_SLICE_ARG(vg_buf_slice(&all)));
    return VIGIL_E_INVALID;
}

/* ---- the object ---- */

/* What is stored, as the client sees it: with its revision, in its version, without managers. */
static int live_of(struct vg_change *c, const struct vg_body *cur, struct vg_json *ret)
{
    struct vg_arena *a = &c->scratch;
    const struct vg_kind_sub *sub = c->call->ask->target->sub;
    if (sub && sub->type == VG_SUB_SCALE)
        return vg_scale_tree(a, c->kind, cur, c->cur->rev, ret);
    struct vg_json meta = vg_json_object(), root;
    struct vg_slice rev;
    int err = vg_arena_printf(a, &rev, "%llu", (unsigned long long)c->cur->rev);
    VG_JSON_FOREACH_MEMBER (m, vg_json_get_str(cur->root, "metadata")) {
        bool is_uid = vg_slice_eq(vg_json_key(m), VG_SLICE_LIT("uid"));
        if (err == 0 && !vg_slice_eq(vg_json_key(m), VG_SLICE_LIT("managedFields")))
            err = vg_json_object_add(a, &meta, vg_json_key(m), m->value);
        if (err == 0 && is_uid)
            err = vg_json_object_add(a, &meta, VG_SLICE_LIT("resourceVersion"),
                                     vg_json_string_ref(rev));
    }
    if (err == 0)
        err = vg_json_top_copy(a, cur->root, &root);
    if (err == 0)
        err = vg_json_object_set(a, &root, VG_SLICE_LIT("metadata"), meta);
    if (err == 0 && c->kind->stored)
        return vg_kind_from_stored(a, c->kind, &root, ret);
    if (err == 0)
        *ret = root;
    return err;
}

struct versions {
    struct vg_change *change;
};

/* In another version of the kind: through the stored one. */
static int delta_in(void *arg, struct vg_slice api_version, const struct vg_json *old,
                    const struct vg_json *now, struct vg_fields_delta *ret)
{
    struct vg_change *c = ((struct versions *)arg)->change;
    struct vg_arena *a = &c->scratch;
    const struct vg_kind *stored = vg_kind_stored(c->kind);
    const struct vg_kind *kind = vg_managed_version(stored, api_version);
    const struct vg_json *from[2] = {old, now};
    struct vg_json to[2];
    struct vg_status why;
    int err = 0;
    if (!kind)
        return 0;
    for (int i = 0; i < 2 && err == 0; i++) {
        struct vg_json here;
        if (!from[i])
            continue;
        err = vg_json_clone(a, from[i], &here);
        if (err == 0 && c->kind->stored)
            err = vg_kind_to_stored(a, c->kind, &here, &to[i]);
        else if (err == 0)
            to[i] = here;
        if (err == 0 && kind->stored) {
            here = to[i];
            err = vg_kind_from_stored(a, kind, &here, &to[i]);
        }
    }
    if (err == 0)
        err =
            vg_fields_compare(a, vg_kind_type(kind), old ? &to[0] : NULL, &to[1],
                              vg_managed_left_alone(stored, c->call->ask->target->sub), ret, &why);
    return err < 0 ? err : 1;
}

static int by_key(const void *a, const void *b)
{
    return vg_slice_cmp(vg_json_key((const struct vg_json_member *)a),
                        vg_json_key((const struct vg_json_member *)b));
}

/* A tree with all members sorted, as Go writes maps. The tree is the caller's own. */
static void sort_all(struct vg_json *v)
{
    if (v->type == VG_JSON_OBJECT && v->n)
        qsort(v->members, v->n, sizeof *v->members, by_key);
    VG_JSON_FOREACH_MEMBER (m, v)
        sort_all(&m->value);
    VG_JSON_FOREACH_ITEM (it, v)
        sort_all(it);
}

/* kubectl's own annotation follows what it applies on the server too. root is the caller's own. */
static int follow_kubectl(struct applying *w, struct vg_json *root)
{
    struct vg_arena *a = &w->update.change.scratch;
    struct vg_json *notes = vg_json_get_str(vg_json_get_str(root, "metadata"), "annotations");
    const struct vg_json *was = notes ? vg_json_get(notes, LAST_APPLIED) : NULL;
    struct vg_json config, text;
    VG_AUTO(buf) out = {0};
    if (!vg_slice_eq(w->opts.manager, VG_SLICE_LIT("kubectl")) ||
        !vg_json_is(was, VG_JSON_STRING) || was->n == 0)
        return 0;
    int err = vg_json_clone(a, w->config, &config);
    if (err < 0)
        return err;
    struct vg_json *own = vg_json_get_str(vg_json_get_str(&config, "metadata"), "annotations");
    if (vg_json_is(own, VG_JSON_OBJECT))
        (void)vg_json_object_remove(own, LAST_APPLIED);
    sort_all(&config);
    err = vg_json_write(&out, &config, VG_JSON_ESCAPE_HTML);
    if (err == 0)
        err = vg_buf_append_byte(&out, '\n');
    if (err == 0)
        err = vg_json_make_string(a, vg_buf_slice(&out), &text);
    return err < 0 ? err : vg_json_object_set(a, notes, LAST_APPLIED, text);
}

/* ---- the change ---- */

static int check_uid(struct vg_change *c, struct vg_slice uid)
{
    if (c->cur || uid.n == 0)
        return 0;
    vg_status_conflict(&c->call->ask->arena, &c->status, c->kind, c->name,
                       "uid mismatch: the provided object specified uid %.*s, and no existing "
                       "object was found",
                       VG_SLICE_ARG(uid));
    return VIGIL_E_INVALID;
}

/* What the apply has made, as any other content. */
static enum vg_verdict use(struct applying *w, struct vg_apply *x, const struct vg_body *cur)
{
    struct vg_change *c = &w->update.change;
    struct vg_body_type type = vg_body_type_of(c->call->ask->target);
    struct vg_body next = {0};
    struct vg_status why;
    struct vg_json root, *managed = NULL;
    int err = vg_json_clone(&c->scratch, &x->result, &root);
    if (err == 0)
        err = follow_kubectl(w, &root);
    if (err == 0)
        err = vg_managers_write(&c->scratch, &x->managers, vg_change_source(c), &managed);
    if (err == 0)
        err = vg_body_check(&c->scratch, &root, &type, NULL, &next, &why);
    if (err == VIGIL_E_INVALID) {
        vg_status_unknown(&c->call->ask->arena, &c->status, "%s", why.message);
        return VG_CHANGE_FAIL;
    }
    if (err < 0)
        return vg_change_refuse(c, err);
    if (check_uid(c, next.meta.uid) < 0 || vg_update_match_url(c->call, &next.meta, &c->status) < 0)
        return VG_CHANGE_FAIL;
    if (vg_meta_tell_owners(c->call, &next.meta, true) < 0)
        return vg_change_refuse(c, -ENOMEM);
    next.meta.managed = managed;
    next.is_managed = true;
    if (w->is_scale)
        return vg_scale_apply(&w->update, &next, cur);
    if (cur)
        return vg_update_apply(&w->update, &next, cur);
    if (vg_kind_is(c->kind, VG_KIND_NAMESPACED) &&
        vg_admit_verdict(&w->update.admit, c->kind, c->name, &c->status) < 0)
        return VG_CHANGE_FAIL;
    w->update.was_created = true;
    return vg_stamp_new(c, &next);
}

static int read_managers(struct applying *w, const struct vg_body *cur, struct vg_managers *ret)
{
    struct vg_arena *a = &w->update.change.scratch;
    struct vg_managers of_object;
    struct vg_status why;
    int err = vg_managers_read(a, cur->meta.managed, true, &of_object, &why);
    if (err == 0 && w->is_scale)
        return vg_managers_to_scale(a, &of_object, ret);
    *ret = of_object;
    return err;
}

/* Those of a Scale become those of its object. */
static int return_managers(struct applying *w, const struct vg_body *cur, struct vg_managers *m)
{
    struct vg_change *c = &w->update.change;
    struct vg_managers was, scale = *m;
    struct vg_status why;
    int err = vg_managers_read(&c->scratch, cur->meta.managed, true, &was, &why);
    return err < 0 ? err
                   : vg_managers_from_scale(&c->scratch, &was, &scale,
                                            vg_slice_str(vg_kind_api_version(c->kind)), m);
}

static enum vg_verdict make(struct vg_change *c)
{
    struct applying *w = VG_CONTAINER_OF(c, struct applying, update.change);
    const struct vg_kind_sub *sub = c->call->ask->target->sub;
    struct versions versions = {c};
    struct vg_status why;
    struct vg_body cur;
    struct vg_json live;
    w->update.was_created = false;
    if (!c->cur && sub) {
        vg_status_not_found(&c->call->ask->arena, &c->status, c->kind, c->name);
        return VG_CHANGE_FAIL;
    }
    if (w->bad.code) {
        c->status = w->bad;
        return VG_CHANGE_FAIL;
    }
    struct vg_apply x = {
        .arena = &c->scratch,
        .type = w->type,
        .config = w->config,
        .who = {.name = w->opts.manager,
                .api_version =
                    w->is_scale ? VG_SCALE_VERSION : vg_slice_str(vg_kind_api_version(c->kind)),
                .subresource = vg_slice_str(sub ? sub->name : "")},
        .is_forced = w->opts.is_forced,
        .without = w->is_scale ? NULL : vg_managed_left_alone(vg_kind_stored(c->kind), sub),
        .other = delta_in,
        .arg = &versions,
    };
    if (c->cur && vg_change_load(c, &cur) < 0)
        return VG_CHANGE_FAIL;
    if (check_config(w) < 0)
        return VG_CHANGE_FAIL;
    int err = vg_stamp_time(c, 0, &x.who.time);
    if (err == 0 && c->cur)
        err = live_of(c, &cur, &live);
    if (err == 0 && c->cur) {
        x.live = &live;
        err = read_managers(w, &cur, &x.managers);
    }
    if (err == 0)
        err = vg_apply(&x, &why);
    if (err == 0 && w->is_scale)
        err = return_managers(w, &cur, &x.managers);
    if (err == VIGIL_E_CONFLICT)
        return vg_apply_refuse(c, &x);
    if (err == VIGIL_E_INVALID) {
        vg_status_unknown(&c->call->ask->arena, &c->status, "failed to merge config: %s",
                          why.message);
        return VG_CHANGE_FAIL;
    }
    if (err < 0)
        return vg_change_refuse(c, err);
    return tell_dups(w) < 0 ? VG_CHANGE_FAIL : use(w, &x, c->cur ? &cur : NULL);
}

/* ---- the verb ---- */

static void on_admitted(struct vg_admit *a)
{
    struct vg_update *u = VG_CONTAINER_OF(a, struct vg_update, admit);
    u->change.is_in_flight = false;
    if (u->change.call->is_closed)
        vg_call_finish(u->change.call);
    else
        vg_change_start(&u->change);
}

void vg_api_apply(struct vg_api_call *call)
{
    const struct vg_target *t = call->ask->target;
    struct vg_api_status status;
    struct applying *w = vg_arena_new(&call->ask->arena, struct applying);
    if (!w) {
        vg_status_no_memory(&status);
        vg_respond_status(call, &status);
        return;
    }
    memset(w, 0, sizeof *w);
    w->is_scale = t->sub && t->sub->type == VG_SUB_SCALE;
    w->type = w->is_scale ? vg_schema_find(VG_SLICE_LIT("autoscaling"), VG_SLICE_LIT("v1"),
                                           VG_SLICE_LIT("Scale"))
                          : vg_kind_type(t->kind);
    w->update.change = (struct vg_change){.call = call,
                                          .kind = t->kind,
                                          .ns = t->ns,
                                          .name = t->name,
                                          .make = make,
                                          .done = w->is_scale ? vg_scale_done : vg_update_done};
    if (vg_apply_opts_read(call, &w->opts, &status) < 0) {
        vg_respond_status(call, &status);
        return;
    }
    w->update.change.is_dry_run = w->opts.write.is_dry_run;
    (void)read_config(w);
    call->state = w;
    call->op = &vg_change_op;
    if (t->sub || !vg_kind_is(t->kind, VG_KIND_NAMESPACED)) {
        vg_change_start(&w->update.change);
        return;
    }
    w->update.change.is_in_flight = true; /* of the admission, until it is done */
    w->update.admit = (struct vg_admit){.call = call, .ns = t->ns, .done = on_admitted};
    vg_admit_start(&w->update.admit);
}
