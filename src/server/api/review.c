/* review.c - questions that are posted and answered at once, and never stored: who am I, whose
 * token is this, may somebody do that. Each kind has a function that makes the answer's status;
 * reading the question and writing the answer is the same for all. What is asked goes to whoever
 * made the call (access.h). */
#include "review_int.h"
#include "stamp.h"

#include <errno.h>

#include "base/clock.h"
#include "server/kinds/rules/rules.h"
#include "server/schema/decode.h"
#include "status_int.h"
#include "json/write.h"

int vg_review_put(struct vg_review *r, struct vg_json *object, const char *name,
                  struct vg_slice text)
{
    return text.n ? vg_json_object_add(&r->call->ask->arena, object, vg_slice_str(name),
                                       vg_json_string_ref(text))
                  : 0;
}

static int put_extra(struct vg_arena *a, const struct vg_api_user *user, struct vg_json *info)
{
    struct vg_json all = vg_json_object();
    int err = 0;
    for (size_t i = 0; i < user->n_extra && err == 0; i++) {
        struct vg_json values = vg_json_array();
        err = vg_json_array_push(a, &values, vg_json_string_ref(user->extra[i].value));
        if (err == 0)
            err = vg_json_object_add(a, &all, user->extra[i].key, values);
    }
    return err < 0 ? err : vg_json_object_add(a, info, VG_SLICE_LIT("extra"), all);
}

int vg_review_user(struct vg_review *r, const struct vg_api_user *user, struct vg_json *ret)
{
    struct vg_arena *a = &r->call->ask->arena;
    struct vg_json info = vg_json_object(), groups = vg_json_array();
    int err = vg_review_put(r, &info, "username", user->name);
    if (err == 0)
        err = vg_review_put(r, &info, "uid", user->uid);
    for (size_t i = 0; i < user->n_groups && err == 0; i++)
        err = vg_json_array_push(a, &groups, vg_json_string_ref(user->groups[i]));
    if (err == 0 && groups.n)
        err = vg_json_object_add(a, &info, VG_SLICE_LIT("groups"), groups);
    if (err == 0 && user->n_extra)
        err = put_extra(a, user, &info);
    *ret = info;
    return err;
}

/* ---- authentication ---- */

static int no_memory(struct vg_api_status *ret_status)
{
    vg_status_no_memory(ret_status);
    return -ENOMEM;
}

static int review_self(struct vg_review *r, struct vg_api_status *ret_status)
{
    struct vg_arena *a = &r->call->ask->arena;
    char text[VG_TIME_TEXT_MAX];
    struct vg_slice now;
    struct vg_json user;
    size_t n = vg_time_format(vg_clock_wall_ms(r->call->loop->api->clock), text);
    int err = vg_arena_keep(a, vg_slice(text, n), &now);
    r->metadata = vg_json_object();
    if (err == 0)
        err = vg_review_put(r, &r->metadata, "creationTimestamp", now);
    if (err == 0)
        err = vg_review_user(r, r->call->user, &user);
    if (err == 0)
        err = vg_json_object_add(a, &r->status, VG_SLICE_LIT("userInfo"), user);
    r->spec = NULL;
    return err < 0 ? no_memory(ret_status) : 0;
}

static int tell_owner(struct vg_review *r, const struct vg_token_owner *owner)
{
    struct vg_arena *a = &r->call->ask->arena;
    struct vg_json user;
    int err = vg_review_user(r, &owner->user, &user);
    if (err == 0)
        err = vg_json_object_add(a, &r->status, VG_SLICE_LIT("authenticated"), vg_json_bool(true));
    if (err == 0)
        err = vg_json_object_add(a, &r->status, VG_SLICE_LIT("user"), user);
    return err < 0
               ? err
               : vg_json_object_add(a, &r->status, VG_SLICE_LIT("audiences"), *owner->audiences);
}

static int tell_refusal(struct vg_review *r, struct vg_slice why)
{
    static const char refusal[] = "invalid bearer token";
    struct vg_arena *a = &r->call->ask->arena;
    struct vg_slice text = vg_slice_str(refusal);
    int err = vg_json_object_add(a, &r->status, VG_SLICE_LIT("user"), vg_json_object());
    if (err == 0 && why.n)
        err = vg_arena_printf(a, &text, "[%s, %.*s]", refusal, VG_SLICE_ARG(why));
    return err < 0 ? err : vg_review_put(r, &r->status, "error", text);
}

static int review_token(struct vg_review *r, struct vg_api_status *ret_status)
{
    struct vg_arena *a = &r->call->ask->arena;
    struct vg_slice token = vg_json_text(vg_json_get_str(r->spec, "token"));
    struct vg_token_owner owner = {.audiences = NULL};
    if (token.n == 0) {
        vg_status_bad_request(a, ret_status, "token is required for TokenReview in authentication");
        return VIGIL_E_INVALID;
    }
    const struct vg_json *audiences = vg_json_get_str(r->spec, "audiences");
    int err = vg_call_ops(r->call)->access->identify(r->call, token, audiences, &owner);
    if (err == 0)
        err = tell_owner(r, &owner);
    else if (err == VIGIL_E_NOT_FOUND)
        err = tell_refusal(r, owner.why);
    return err < 0 ? no_memory(ret_status) : 0;
}

/* ---- all of them ---- */

static const struct reviewer {
    const char *kind;
    vg_review_fn *review;
} reviewers[] = {
    {"SelfSubjectReview", review_self},
    {"TokenReview", review_token},
    {"SubjectAccessReview", vg_review_subject_access},
    {"SelfSubjectAccessReview", vg_review_subject_access},
    {"LocalSubjectAccessReview", vg_review_subject_access},
    {"SelfSubjectRulesReview", vg_review_rules},
};

static vg_review_fn *reviewer_of(const struct vg_kind *kind)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(reviewers); i++)
        if (strcmp(reviewers[i].kind, kind->kind) == 0)
            return reviewers[i].review;
    return NULL;
}

/* Metadata as the client gave it, without what only a server sets. */
static int read_metadata(struct vg_review *r)
{
    struct vg_meta *m = &r->body.meta;
    m->ns = r->call->ask->target->ns;
    m->uid = m->created = m->deleted = vg_slice(NULL, 0);
    m->has_grace = false;
    return vg_meta_write(&r->call->ask->arena, m, &r->metadata);
}

/* What is asked has owners too, though it is not kept. */
static int manage(struct vg_review *r, const struct vg_json *asked)
{
    struct vg_arena *a = &r->call->ask->arena;
    struct vg_change c = {.call = r->call, .kind = r->call->ask->target->kind, .scratch = *a};
    struct vg_json *managed = NULL;
    int err = vg_change_manage(&c, asked, &r->body, NULL, &managed);
    *a = c.scratch;
    if (err == 0 && managed)
        err = vg_json_object_set(a, &r->metadata, VG_SLICE_LIT("managedFields"), *managed);
    return err;
}

static int check(struct vg_review *r, struct vg_api_status *ret_status)
{
    const struct vg_kind *kind = r->call->ask->target->kind;
    const struct vg_rules *rules = vg_rules_of(kind);
    struct vg_field_errors e = {.arena = &r->call->ask->arena};
    struct vg_check c = {.errors = &e, .arena = e.arena};
    struct vg_json *arranged = vg_arena_new(e.arena, struct vg_json);
    int err = arranged ? read_metadata(r) : -ENOMEM;
    if (err == 0)
        err = vg_json_object_set(e.arena, r->body.root, VG_SLICE_LIT("metadata"), r->metadata);
    if (err == 0)
        err = vg_schema_arrange(e.arena, kind->type, r->body.root, arranged);
    if (err < 0)
        return no_memory(ret_status);
    err = manage(r, arranged);
    if (err == 0)
        err = vg_json_object_set(e.arena, arranged, VG_SLICE_LIT("metadata"), r->metadata);
    if (err < 0)
        return no_memory(ret_status);
    r->body.root = arranged;
    struct vg_at root = vg_at_root(arranged);
    if (rules && rules->check)
        rules->check(&c, &root);
    if (e.n == 0 && !e.failed)
        return 0;
    /* The original leaves the kind out. */
    vg_status_invalid(e.arena, ret_status, kind->group, "", VG_SLICE_LIT(""), &e);
    return VIGIL_E_INVALID;
}

static int ask(struct vg_review *r, vg_review_fn *review, struct vg_api_status *ret_status)
{
    struct vg_write_opts opts;
    struct vg_body_type type = vg_body_type_of(r->call->ask->target);
    int err = vg_body_read_new(r->call, &type, &opts, &r->body, ret_status);
    if (err == 0)
        err = check(r, ret_status);
    if (err < 0)
        return err;
    r->spec = vg_json_get_str(r->body.root, "spec");
    r->status = vg_json_object();
    return review(r, ret_status);
}

static int write_answer(struct vg_review *r, struct vg_buf *out)
{
    const struct vg_kind *kind = r->call->ask->target->kind;
    struct vg_json_writer w;
    vg_json_writer_init(&w, out, VG_JSON_ESCAPE_HTML);
    vg_json_put_begin_object(&w);
    vg_json_put_member(&w, "kind", vg_slice_str(kind->kind));
    vg_json_put_member(&w, "apiVersion", vg_slice_str(vg_kind_api_version(kind)));
    vg_json_put_key(&w, VG_SLICE_LIT("metadata"));
    vg_json_put_value(&w, &r->metadata);
    if (r->spec) {
        vg_json_put_key(&w, VG_SLICE_LIT("spec"));
        vg_json_put_value(&w, r->spec);
    }
    vg_json_put_key(&w, VG_SLICE_LIT("status"));
    vg_json_put_value(&w, &r->status);
    vg_json_put_end_object(&w);
    return vg_json_writer_end(&w);
}

bool vg_api_review(struct vg_api_call *call)
{
    vg_review_fn *review = reviewer_of(call->ask->target->kind);
    struct vg_review r = {.call = call};
    struct vg_api_status status;
    struct vg_buf json = {0};
    if (!review || !vg_call_ops(call)->access)
        return false;
    if (ask(&r, review, &status) < 0) {
        vg_respond_status(call, &status);
    } else if (write_answer(&r, &json) < 0) {
        vg_buf_done(&json);
        vg_status_no_memory(&status);
        vg_respond_status(call, &status);
    } else {
        vg_respond_json(call, 201, &json);
    }
    return true;
}
