/* token.c - POST of serviceaccounts/NAME/token: a TokenRequest, answered with a token.
 *
 *   the account --> what it is bound to, if anything (pod, secret, node) --> a pod's node --> sign
 *
 * The answer waits until this server's cache has seen all of them, which is where authentication
 * looks: a token that was given out is good at once. */
#include <errno.h>

#include "server/kinds/types.h"
#include "server/schema/decode.h"
#include "stamp.h"
#include "status_int.h"
#include "token_int.h"

#define LEAST_S 600

static struct vg_arena *arena(struct vg_token_request *w)
{
    return &w->look.call->ask->arena;
}

static void refuse(struct vg_token_request *w, const struct vg_api_status *status)
{
    vg_look_release(&w->look);
    vg_respond_status(w->look.call, status);
}

static void fail(struct vg_token_request *w, int err)
{
    struct vg_api_status status;
    vg_status_from_err(arena(w), &status, err, vg_err_text(err));
    refuse(w, &status);
}

/* ---- the answer ---- */

static void answer(struct vg_token_request *w)
{
    const struct vg_issuer *issuer = w->look.call->loop->api->opts.issuer;
    struct vg_buf json = {0};
    struct vg_slice token;
    int err = vg_token_claims(w, issuer);
    if (err == 0)
        err = vg_jwt_sign(issuer->keys.v[0], arena(w), &w->claims, &token);
    if (err == 0)
        err = vg_token_write(w, token, &json);
    if (err < 0) {
        vg_buf_done(&json);
        fail(w, err);
        return;
    }
    vg_look_release(&w->look);
    vg_respond_json(w->look.call, 201, &json);
}

static void on_fresh(struct vg_cache_wait *wait, int err)
{
    struct vg_token_request *w = VG_CONTAINER_OF(wait, struct vg_token_request, wait);
    (void)err; /* it will come: the token is as good */
    w->is_waiting = false;
    answer(w);
}

static void finish(struct vg_token_request *w)
{
    struct vg_api_loop *l = w->look.call->loop;
    if (vg_cacher_revision(l->api->cacher) >= w->newest) {
        answer(w);
        return;
    }
    w->is_waiting = true;
    vg_cache_wait_fresh(l->port, w->newest, &w->wait, on_fresh);
}

/* ---- what it is bound to ---- */

/* Is it the client's to wait for? False: the call has ended, or was refused. */
static bool take(struct vg_token_request *w, struct vg_json **ret, bool may_be_gone)
{
    struct vg_api_status status;
    struct vg_look *l = &w->look;
    *ret = NULL;
    if (l->call->is_closed) {
        vg_look_release(l);
        vg_call_finish(l->call);
        return false;
    }
    if (may_be_gone && l->err == 0 && !l->rec)
        return true;
    if (vg_look_tree(l, ret, &status) < 0) {
        refuse(w, &status);
        return false;
    }
    w->newest = VG_MAX(w->newest, l->rec->rev);
    return true;
}

static void look_at(struct vg_token_request *w, const char *resource, struct vg_slice ns,
                    struct vg_slice name, void (*done)(struct vg_look *))
{
    w->look.kind = vg_kind_find(VG_SLICE_LIT(""), VG_SLICE_LIT("v1"), vg_slice_str(resource));
    w->look.ns = ns;
    w->look.name = name;
    w->look.done = done;
    vg_look_start(&w->look);
}

static struct vg_slice uid_of(const struct vg_json *object)
{
    return vg_json_text(vg_json_get_str(vg_json_get_str(object, "metadata"), "uid"));
}

static void on_node_of_pod(struct vg_look *l)
{
    struct vg_token_request *w = VG_CONTAINER_OF(l, struct vg_token_request, look);
    struct vg_json *node;
    if (!take(w, &node, true))
        return;
    w->claims.node = (struct vg_jwt_ref){l->name, node ? uid_of(node) : VG_SLICE_LIT("")};
    finish(w);
}

static void say_other(struct vg_token_request *w, const char *group, const char *kind,
                      struct vg_slice name, struct vg_slice why)
{
    struct vg_arena *a = arena(w);
    struct vg_api_status status = {.code = 409,
                                   .reason = "Conflict",
                                   .has_details = true,
                                   .name = name,
                                   .group = vg_slice_str(group),
                                   .kind = vg_slice_str(kind)};
    if (vg_arena_printf(a, &status.message, "Operation cannot be fulfilled on %s%s%s %.*s: %.*s",
                        kind, *group ? "." : "", group, VG_SLICE_ARG(vg_api_quote(a, name)),
                        VG_SLICE_ARG(why)) < 0)
        vg_status_no_memory(&status);
    refuse(w, &status);
}

/* The kind of object that the token lives with, by its claim. */
static struct vg_jwt_ref *claim_of(struct vg_token_request *w)
{
    const char *kind = w->look.kind->kind;
    return strcmp(kind, "Pod") == 0      ? &w->claims.pod
           : strcmp(kind, "Secret") == 0 ? &w->claims.secret
                                         : &w->claims.node;
}

static void on_bound(struct vg_look *l)
{
    struct vg_token_request *w = VG_CONTAINER_OF(l, struct vg_token_request, look);
    const struct vg_json *ref = vg_json_get_str(w->spec, "boundObjectRef");
    struct vg_slice wanted = vg_json_text(vg_json_get_str(ref, "uid")), why = {0};
    struct vg_api_status status;
    struct vg_json *object;
    if (!take(w, &object, false))
        return;
    const struct vg_json *spec = vg_json_get_str(object, "spec");
    w->is_of_pod = strcmp(l->kind->kind, "Pod") == 0;
    if (w->is_of_pod &&
        !vg_slice_eq(vg_json_text(vg_json_get_str(spec, "serviceAccountName")), w->account)) {
        vg_status_bad_request(arena(w), &status,
                              "cannot bind token for serviceaccount %.*s to pod running with "
                              "different serviceaccount name.",
                              VG_SLICE_ARG(vg_api_quote(arena(w), w->account)));
        refuse(w, &status);
        return;
    }
    if (wanted.n && !vg_slice_eq(wanted, uid_of(object))) {
        if (vg_arena_printf(arena(w), &why,
                            "the UID in the bound object reference (%.*s) does not match the UID "
                            "in record. The object might have been deleted and then recreated",
                            VG_SLICE_ARG(wanted)) < 0)
            fail(w, -ENOMEM);
        else
            say_other(w, "", l->kind->kind, l->name, why);
        return;
    }
    *claim_of(w) = (struct vg_jwt_ref){l->name, uid_of(object)};
    struct vg_slice node = vg_json_text(vg_json_get_str(spec, "nodeName"));
    if (w->is_of_pod && node.n)
        look_at(w, "nodes", VG_SLICE_LIT(""), node, on_node_of_pod);
    else
        finish(w);
}

/* As schema.FromAPIVersionAndKind: a version without a group is core's. */
static void bind_to(struct vg_token_request *w, const struct vg_json *ref)
{
    static const struct {
        const char *kind, *resource;
        bool is_namespaced;
    } kinds[] = {{"Pod", "pods", true}, {"Secret", "secrets", true}, {"Node", "nodes", false}};
    struct vg_slice kind = vg_json_text(vg_json_get_str(ref, "kind"));
    struct vg_slice version = vg_json_text(vg_json_get_str(ref, "apiVersion"));
    struct vg_slice name = vg_json_text(vg_json_get_str(ref, "name")), group = VG_SLICE_LIT("");
    struct vg_api_status status;
    if (version.n && memchr(version.p, '/', version.n)) {
        struct vg_slice rest = version;
        group = vg_cut(&rest, '/');
        version = rest;
    }
    for (size_t i = 0; i < VG_ARRAY_LEN(kinds) && group.n == 0; i++)
        if (vg_slice_eq(kind, vg_slice_str(kinds[i].kind))) {
            look_at(w, kinds[i].resource, kinds[i].is_namespaced ? w->claims.ns : VG_SLICE_LIT(""),
                    name, on_bound);
            return;
        }
    vg_status_bad_request(arena(w), &status,
                          "cannot bind token to object of type %.*s/%.*s, Kind=%.*s",
                          VG_SLICE_ARG(group), VG_SLICE_ARG(version), VG_SLICE_ARG(kind));
    refuse(w, &status);
}

/* ---- the account ---- */

/* For whom it is: as was asked, else for this server. */
static int fill_audiences(struct vg_token_request *w)
{
    const struct vg_issuer *issuer = w->look.call->loop->api->opts.issuer;
    const struct vg_json *given = vg_json_get_str(w->spec, "audiences");
    struct vg_json list = vg_json_array();
    size_t n = vg_json_is(given, VG_JSON_ARRAY) ? given->n : 0;
    struct vg_slice *v = vg_arena_array(arena(w), struct vg_slice, n + 1);
    int err = v ? 0 : -ENOMEM;
    for (size_t i = 0; i < n && err == 0; i++)
        v[i] = vg_json_text(&given->items[i]);
    w->claims.audiences = n ? v : issuer->audiences;
    w->claims.n_audiences = n ? n : issuer->n_audiences;
    for (size_t i = 0; n == 0 && i < issuer->n_audiences && err == 0; i++)
        err = vg_json_array_push(arena(w), &list, vg_json_string_ref(issuer->audiences[i]));
    if (err == 0 && n == 0)
        err = vg_json_object_set(arena(w), w->spec, VG_SLICE_LIT("audiences"), list);
    return err;
}

/* 0, or VIGIL_E_INVALID with the 422. */
static int check_life(struct vg_token_request *w, struct vg_api_status *ret)
{
    const struct vg_json *seconds = vg_json_get_str(w->spec, "expirationSeconds");
    struct vg_field_errors e = {.arena = arena(w)};
    static const char field[] = "spec.expirationSeconds";
    if (vg_json_to_int64(seconds, &w->asked_s) < 0)
        w->asked_s = 0;
    struct vg_slice shown = vg_api_json(e.arena, seconds);
    if (w->asked_s < LEAST_S)
        vg_field_invalid(&e, field, shown, "may not specify a duration less than 10 minutes");
    if (w->asked_s > INT64_C(1) << 32)
        vg_field_invalid(&e, field, shown, "may not specify a duration larger than 2^32 seconds");
    if (e.n == 0 && !e.failed)
        return 0;
    vg_status_invalid(e.arena, ret, VG_TOKEN_GROUP, VG_TOKEN_KIND, VG_SLICE_LIT(""), &e);
    return VIGIL_E_INVALID;
}

/* No longer than the server allows; the client is told. */
static int shorten(struct vg_token_request *w)
{
    uint64_t max_s = w->look.call->loop->api->opts.issuer->max_s;
    struct vg_json number;
    if (max_s == 0 || (uint64_t)w->asked_s <= max_s)
        return 0;
    vg_call_warn(w->look.call, "requested expiration of %lld seconds shortened to %llu seconds",
                 (long long)w->asked_s, (unsigned long long)max_s);
    w->asked_s = (int64_t)max_s;
    int err = vg_json_make_int(arena(w), w->asked_s, &number);
    return err < 0
               ? err
               : vg_json_object_set(arena(w), w->spec, VG_SLICE_LIT("expirationSeconds"), number);
}

static void on_account(struct vg_look *l)
{
    struct vg_token_request *w = VG_CONTAINER_OF(l, struct vg_token_request, look);
    struct vg_slice wanted = w->body.meta.uid, why = {0};
    struct vg_api_status status;
    struct vg_json *account;
    if (!take(w, &account, false))
        return;
    w->claims.account = (struct vg_jwt_ref){w->account, uid_of(account)};
    if (wanted.n && !vg_slice_eq(wanted, w->claims.account.uid)) {
        if (vg_arena_printf(arena(w), &why,
                            "the UID in the token request (%.*s) does not match the UID of the "
                            "service account (%.*s)",
                            VG_SLICE_ARG(wanted), VG_SLICE_ARG(w->claims.account.uid)) < 0)
            fail(w, -ENOMEM);
        else
            say_other(w, VG_TOKEN_GROUP, VG_TOKEN_KIND, w->account, why);
        return;
    }
    int err = fill_audiences(w);
    if (err == 0 && check_life(w, &status) < 0) {
        refuse(w, &status);
        return;
    }
    if (err == 0)
        err = shorten(w);
    const struct vg_json *ref = vg_json_get_str(w->spec, "boundObjectRef");
    if (err < 0)
        fail(w, err);
    else if (vg_json_is(ref, VG_JSON_OBJECT))
        bind_to(w, ref);
    else
        finish(w);
}

/* ---- the request ---- */

/* What is asked has owners too, though it is not kept. */
static int manage(struct vg_token_request *w)
{
    struct vg_arena *a = arena(w);
    struct vg_json arranged;
    int err = vg_schema_arrange(a, w->kind.type, w->body.root, &arranged);
    struct vg_change c = {.call = w->look.call, .kind = &w->kind, .scratch = *a};
    if (err == 0)
        err = vg_change_manage(&c, &arranged, &w->body, NULL, &w->managed);
    *a = c.scratch;
    return err;
}

static int check_name(struct vg_token_request *w, struct vg_api_status *ret)
{
    struct vg_slice name = w->body.meta.name;
    struct vg_field_errors e = {.arena = arena(w)};
    if (name.n == 0 || vg_slice_eq(name, w->account))
        return 0;
    vg_field_invalid(&e, "metadata.name", vg_api_quote(e.arena, name),
                     "must match the service account name if specified");
    vg_status_invalid(e.arena, ret, VG_TOKEN_GROUP, VG_TOKEN_KIND, w->account, &e);
    return VIGIL_E_INVALID;
}

static int begin(struct vg_token_request *w, struct vg_api_status *ret)
{
    struct vg_api_call *call = w->look.call;
    struct vg_body_type type = vg_body_type_of(call->ask->target);
    struct vg_write_opts opts;
    int err = vg_body_read_new(call, &type, &opts, &w->body, ret);
    if (err == 0)
        err = check_name(w, ret);
    if (err < 0)
        return err;
    w->spec = vg_json_get_str(w->body.root, "spec");
    if (manage(w) == 0 && w->spec)
        return 0;
    vg_status_no_memory(ret);
    return -ENOMEM;
}

static void on_closed(struct vg_api_call *call, int err)
{
    struct vg_token_request *w = call->state;
    (void)err;
    if (w->look.is_in_flight)
        return;
    if (w->is_waiting)
        vg_cache_wait_cancel(&w->wait);
    vg_look_release(&w->look);
    vg_call_finish(call);
}

static const struct vg_api_op token_op = {.closed = on_closed};

void vg_api_create_token(struct vg_api_call *call)
{
    const struct vg_target *t = call->ask->target;
    struct vg_api_status status;
    struct vg_token_request *w = vg_call_new(call, struct vg_token_request);
    if (!w)
        return;
    w->kind =
        (struct vg_kind){.group = VG_TOKEN_GROUP,
                         .version = "v1",
                         .api_version = VG_TOKEN_GROUP "/v1",
                         .kind = VG_TOKEN_KIND,
                         .type = vg_schema_find(VG_SLICE_LIT(VG_TOKEN_GROUP), VG_SLICE_LIT("v1"),
                                                VG_SLICE_LIT(VG_TOKEN_KIND))};
    w->look.call = call;
    w->account = t->name;
    w->claims.ns = t->ns;
    w->now_s = vg_clock_wall_ms(call->loop->api->clock) / 1000;
    if (begin(w, &status) < 0) {
        vg_respond_status(call, &status);
        return;
    }
    call->state = w;
    call->op = &token_op;
    look_at(w, "serviceaccounts", t->ns, t->name, on_account);
}
