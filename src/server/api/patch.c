/* patch.c - PATCH: JSON Patch, merge patch and strategic merge patch of what is there.
 * The patch is applied to the newest object, and again when another write was faster, so that it
 * never meets a conflict of its own; one that names a resourceVersion asks for exactly that one,
 * which the check of every update sees to. */
#include <errno.h>
#include <stdlib.h>

#include "apply.h"
#include "patch_show.h"
#include "server/kinds/convert.h"
#include "server/kinds/merge.h"
#include "server/schema/gojson.h"
#include "status_int.h"
#include "update.h"
#include "json/patch.h"
#include "json/strategic.h"

#define JSON_PATCH "application/json-patch+json"
#define MERGE_PATCH "application/merge-patch+json"
#define STRATEGIC_PATCH "application/strategic-merge-patch+json"
#define APPLY_PATCH "application/apply-patch+yaml"
#define UNKNOWN_FORMAT                                                                             \
    "the body of the request was in an unknown format - accepted media types include: "

enum patch_type { PATCH_JSON, PATCH_MERGE, PATCH_STRATEGIC };

struct patching {
    struct vg_update update; /* first: vg_change_op */
    enum patch_type type;
    enum vg_fields_mode fields;
    struct vg_json *patch;
    bool has_warned;
    struct vg_slice odd; /* what strict decoding would say of the patch; empty: nothing */
    /* What is wrong with the patch itself; code 0: nothing. Told once the object is known to be
     * there: that it is not comes first. */
    struct vg_api_status bad;
};

/* ---- the type ---- */

static int refuse_type(struct vg_api_call *call, struct vg_api_status *ret, const char *message,
                       bool has_details)
{
    vg_status_unsupported_media(&call->ask->arena, ret, message);
    ret->has_details = has_details;
    return VIGIL_E_INVALID;
}

static int read_type(struct vg_api_call *call, enum patch_type *ret, struct vg_api_status *status)
{
    static const char *const names[] = {JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH};
    char buf[VG_MEDIA_TYPE_MAX];
    struct vg_slice text = vg_http_field(call->x, "content-type"), type;
    if (!vg_media_type_parse(text, buf, &type)) {
        /* A list that begins with a good one gets past the original's router. */
        bool is_list =
            vg_slice_has_prefix(text, VG_SLICE_LIT("application/")) && memchr(text.p, ',', text.n);
        return is_list ? refuse_type(call, status,
                                     UNKNOWN_FORMAT JSON_PATCH ", " MERGE_PATCH ", " STRATEGIC_PATCH
                                                               ", " APPLY_PATCH,
                                     false)
                       : refuse_type(call, status, "415: Unsupported Media Type", true);
    }
    /* Letter by letter: here, and only here, case counts. */
    for (size_t i = 0; i < VG_ARRAY_LEN(names); i++)
        if (vg_slice_eq(type, vg_slice_str(names[i])) && vg_slice_has_prefix(text, type)) {
            *ret = (enum patch_type)i;
            return 0;
        }
    if (vg_slice_eq(type, VG_SLICE_LIT(APPLY_PATCH)))
        return refuse_type(call, status,
                           UNKNOWN_FORMAT JSON_PATCH ", " MERGE_PATCH ", " STRATEGIC_PATCH, false);
    return refuse_type(call, status, "415: Unsupported Media Type", true);
}

/* ---- the patch ---- */

static int refuse_patch(struct patching *w, const char *what)
{
    /* Strategic patches are decoded elsewhere in the original, which then says less. */
    vg_status_bad_request(&w->update.change.call->ask->arena, &w->bad, "%s%s",
                          w->type == PATCH_STRATEGIC ? "" : "error decoding patch: ", what);
    return VIGIL_E_INVALID;
}

static int refuse_shape(struct patching *w, const struct vg_json *v, const char *type)
{
    struct vg_status text;
    (void)vg_fail(&text, VIGIL_E_INVALID, "json: cannot unmarshal %s into Go value of type %s",
                  vg_gojson_type(v), type);
    return refuse_patch(w, text.message);
}

static int check_shape(struct patching *w)
{
    const struct vg_json *p = w->patch;
    if (w->type == PATCH_MERGE && p->type == VG_JSON_NULL) {
        vg_status_bad_request(&w->update.change.call->ask->arena, &w->bad, "Invalid JSON Patch");
        return VIGIL_E_INVALID;
    }
    if (p->type == VG_JSON_NULL)
        return 0;
    if (w->type != PATCH_JSON)
        return p->type == VG_JSON_OBJECT ? 0 : refuse_shape(w, p, "map[string]interface {}");
    if (p->type != VG_JSON_ARRAY)
        return refuse_shape(w, p, "[]handlers.jsonPatchOp");
    VG_JSON_FOREACH_ITEM (op, p)
        if (op->type != VG_JSON_OBJECT && op->type != VG_JSON_NULL)
            return refuse_shape(w, op, "handlers.jsonPatchOp");
    return 0;
}

/* What is odd about a field of the patch: a warning, or part of a refusal. 0, -ENOMEM. */
static int tell(struct patching *w, struct vg_buf *all, const char *what, struct vg_slice path)
{
    const char *prefix = w->type == PATCH_JSON ? "json patch " : "";
    if (w->fields != VG_FIELDS_WARN)
        return vg_buf_printf(all, "%s%s%s field \"%.*s\"", all->n ? ", " : "", prefix, what,
                             VG_SLICE_ARG(path));
    vg_call_warn(w->update.change.call, "%s%s field \"%.*s\"", prefix, what, VG_SLICE_ARG(path));
    return 0;
}

/* Members of the operations of a JSON Patch that there are not. */
static int tell_members(struct patching *w, struct vg_buf *all)
{
    static const char *const known[] = {"op", "path", "from", "value"};
    int err = 0;
    for (uint32_t i = 0; w->patch->type == VG_JSON_ARRAY && i < w->patch->n; i++)
        VG_JSON_FOREACH_MEMBER (m, &w->patch->items[i]) {
            VG_AUTO(buf) path = {0};
            bool is_known = false;
            for (size_t k = 0; k < VG_ARRAY_LEN(known); k++)
                is_known = is_known || vg_slice_eq(vg_json_key(m), vg_slice_str(known[k]));
            if (is_known || err < 0)
                continue;
            err = vg_buf_printf(&path, "[%u].%.*s", i, VG_SLICE_ARG(vg_json_key(m)));
            if (err == 0)
                err = tell(w, all, "unknown", vg_buf_slice(&path));
        }
    return err;
}

/* Odd fields of the patch itself. */
static int tell_odd(struct patching *w, const struct vg_json_dups *dups)
{
    VG_AUTO(buf) all = {0};
    int err = 0;
    for (uint32_t i = 0; i < dups->n && err == 0; i++)
        err = tell(w, &all, "duplicate", dups->v[i].path);
    if (err == 0 && w->type == PATCH_JSON)
        err = tell_members(w, &all);
    return err < 0 ? err
                   : vg_arena_keep(&w->update.change.call->ask->arena, vg_buf_slice(&all), &w->odd);
}

/* What is wrong with it is in w->bad. */
static int read_patch(struct patching *w)
{
    static const char prefix[] = "couldn't get version/kind; json parse error: ";
    struct vg_api_call *call = w->update.change.call;
    struct vg_json_dups dups;
    struct vg_status why;
    bool tells = w->fields != VG_FIELDS_IGNORE;
    struct vg_slice body = vg_http_request(call->x)->body;
    int err = vg_body_parse(call->loop, &call->ask->arena, body, VG_BODY_JSON, tells ? &dups : NULL,
                            &w->patch, &why);
    if (err == VIGIL_E_INVALID) {
        const char *text = why.message;
        if (strncmp(text, prefix, sizeof prefix - 1) == 0)
            text += sizeof prefix - 1;
        return refuse_patch(w, text);
    }
    if (err == 0 && tells)
        err = tell_odd(w, &dups);
    if (err == 0)
        return check_shape(w);
    vg_status_no_memory(&w->bad);
    return err;
}

/* ---- applying ---- */

/* What a refusal shows: a strategic patch itself, as Go shows a map; of others the object as the
 * patch would have it. */
static struct vg_slice shown_of(struct patching *w, const struct vg_json *result)
{
    struct vg_arena *a = &w->update.change.call->ask->arena;
    VG_AUTO(buf) text = {0};
    struct vg_json shown;
    if (w->type != PATCH_STRATEGIC) {
        if (vg_patch_show(&w->update.change.scratch, result, w->patch, &shown) < 0)
            shown = *result;
        return vg_api_json(a, &shown);
    }
    if (vg_json_strategic_show(&text, w->patch) < 0)
        return VG_SLICE_LIT("");
    const char *copy = vg_arena_copy(a, text.p, text.n);
    return copy ? vg_slice(copy, text.n) : VG_SLICE_LIT("");
}

/* 422 that shows what was to be. */
static enum vg_verdict refuse_result(struct patching *w, const struct vg_json *result,
                                     const char *why)
{
    struct vg_change *c = &w->update.change;
    struct vg_arena *a = &c->call->ask->arena;
    struct vg_field_errors e = {.arena = a};
    vg_field_invalid(&e, "patch", vg_api_quote(a, shown_of(w, result)), "%s", why);
    vg_status_invalid(a, &c->status, "", "", VG_SLICE_LIT(""), &e);
    return VG_CHANGE_FAIL;
}

/* What the patch says cannot be done to this object. */
static enum vg_verdict refuse_apply(struct patching *w, int err, const char *why)
{
    struct vg_change *c = &w->update.change;
    struct vg_arena *a = &c->call->ask->arena;
    if (err == -ENOMEM)
        return vg_change_refuse(c, err);
    if (err == VIGIL_E_TOO_LARGE && w->type == PATCH_JSON &&
        w->patch->n > VG_JSON_PATCH_OPS_DEFAULT) {
        c->status = (struct vg_api_status){.code = 413, .reason = "RequestEntityTooLarge"};
        if (vg_arena_printf(a, &c->status.message,
                            "Request entity too large: The allowed maximum operations in a JSON "
                            "patch is %u, got %u",
                            VG_JSON_PATCH_OPS_DEFAULT, w->patch->n) < 0)
            vg_status_no_memory(&c->status);
    } else if (w->type == PATCH_JSON) {
        c->status = (struct vg_api_status){
            .code = 422,
            .reason = "Invalid",
            .message =
                VG_SLICE_LIT("the server rejected our request due to an error in our request"),
            .has_details = true};
    } else if (err == VIGIL_E_INTERNAL) {
        vg_status_unknown(a, &c->status, "%s", why);
    } else {
        vg_status_from_err(a, &c->status, err, why);
    }
    return VG_CHANGE_FAIL;
}

/* The stored object with its revision, which patches may name, where it is printed. */
static int with_rev(struct vg_change *c, const struct vg_body *cur, struct vg_json *ret)
{
    struct vg_arena *a = &c->scratch;
    struct vg_json meta = vg_json_object();
    struct vg_slice rev;
    bool is_told = false;
    int err = vg_json_top_copy(a, cur->root, ret);
    if (err == 0)
        err = vg_arena_printf(a, &rev, "%llu", (unsigned long long)c->cur->rev);
    VG_JSON_FOREACH_MEMBER (m, vg_json_get_str(cur->root, "metadata")) {
        if (err == 0)
            err = vg_json_object_add(a, &meta, vg_json_key(m), m->value);
        if (err == 0 && !is_told && vg_slice_eq(vg_json_key(m), VG_SLICE_LIT("uid"))) {
            err = vg_json_object_add(a, &meta, VG_SLICE_LIT("resourceVersion"),
                                     vg_json_string_ref(rev));
            is_told = true;
        }
    }
    return err < 0 ? err : vg_json_object_set(a, ret, VG_SLICE_LIT("metadata"), meta);
}

static bool is_scale(const struct vg_change *c)
{
    const struct vg_kind_sub *sub = c->call->ask->target->sub;
    return sub && sub->type == VG_SUB_SCALE;
}

/* The original's JSON Patch cannot add the whole document. */
static int check_paths(const struct vg_json *patch)
{
    VG_JSON_FOREACH_ITEM (op, patch) {
        const struct vg_json *path = vg_json_get_str(op, "path");
        bool is_add = vg_slice_eq(vg_json_text(vg_json_get_str(op, "op")), VG_SLICE_LIT("add"));
        if (vg_json_is(path, VG_JSON_STRING) && path->n == 0 && is_add)
            return VIGIL_E_PATCH_FAILED;
    }
    return 0;
}

static int apply_json(struct patching *w, const struct vg_json *doc, struct vg_json *ret,
                      struct vg_status *why)
{
    static const struct vg_json no_ops = {.type = VG_JSON_ARRAY};
    const struct vg_json *patch = w->patch->type == VG_JSON_NULL ? &no_ops : w->patch;
    int err = check_paths(patch);
    if (err < 0)
        return err;
    return vg_json_patch_apply(&w->update.change.scratch, doc, patch, NULL, ret, why);
}

/* The type is not a strategic patch's to change: it is left as it is. */
static int apply_strategic(struct patching *w, const struct vg_json *doc, struct vg_json *ret,
                           struct vg_status *why)
{
    static const char *const kept[] = {"kind", "apiVersion"};
    const struct vg_change *c = &w->update.change;
    struct vg_arena *a = &w->update.change.scratch;
    const struct vg_merge_schema *schema = is_scale(c) ? NULL : vg_kind_merge_schema(c->kind);
    int err = vg_json_strategic_apply(a, doc, w->patch, schema, ret, why);
    for (size_t i = 0; i < VG_ARRAY_LEN(kept) && err == 0; i++)
        err = vg_json_object_set(a, ret, vg_slice_str(kept[i]), *vg_json_get_str(doc, kept[i]));
    return err;
}

static int apply(struct patching *w, const struct vg_json *doc, struct vg_json *ret,
                 struct vg_status *why)
{
    switch (w->type) {
    case PATCH_JSON:
        return apply_json(w, doc, ret, why);
    case PATCH_STRATEGIC:
        return apply_strategic(w, doc, ret, why);
    case PATCH_MERGE:
        break;
    }
    return vg_json_merge_apply(&w->update.change.scratch, doc, w->patch, ret, why);
}

/* What the result has that is not known: told, or refused. */
static enum vg_verdict tell_unknown(struct patching *w, const struct vg_json *shown,
                                    const struct vg_json *unknown)
{
    struct vg_change *c = &w->update.change;
    VG_AUTO(buf) all = {0};
    int err = vg_buf_printf(&all, "strict decoding error: %.*s", VG_SLICE_ARG(w->odd));
    bool is_odd = w->odd.n > 0;
    VG_JSON_FOREACH_ITEM (it, unknown) {
        struct vg_slice path = vg_json_text(it);
        if (w->fields == VG_FIELDS_WARN && !w->has_warned)
            vg_call_warn(c->call, "unknown field \"%.*s\"", VG_SLICE_ARG(path));
        if (err == 0)
            err = vg_buf_printf(&all, "%sunknown field \"%.*s\"", is_odd ? ", " : "",
                                VG_SLICE_ARG(path));
        is_odd = true;
    }
    w->has_warned = true;
    if (w->fields != VG_FIELDS_STRICT || !is_odd)
        return VG_CHANGE_PUT;
    if (err == 0)
        err = vg_buf_append_byte(&all, '\0');
    return err < 0 ? vg_change_refuse(c, err) : refuse_result(w, shown, all.p);
}

/* The patched object, as what it is meant to be. */
static enum vg_verdict use(struct patching *w, struct vg_json *result, const struct vg_body *cur)
{
    struct vg_change *c = &w->update.change;
    struct vg_body_type type = vg_body_type_of(c->call->ask->target);
    struct vg_json unknown = vg_json_array(), shown = *result;
    type.is_map = w->type == PATCH_STRATEGIC;
    struct vg_body next;
    struct vg_status why;
    /* Reading drops what is not known; a refusal shows all that came. */
    if (shown.type == VG_JSON_OBJECT && vg_json_top_copy(&c->scratch, result, &shown) < 0)
        return vg_change_refuse(c, -ENOMEM);
    int err = vg_body_check(&c->scratch, result, &type, &unknown, &next, &why);
    if (err == -ENOMEM)
        return vg_change_refuse(c, err);
    if (err < 0)
        return refuse_result(w, &shown, why.message);
    if (tell_unknown(w, &shown, &unknown) == VG_CHANGE_FAIL)
        return VG_CHANGE_FAIL;
    if (vg_update_match_url(c->call, &next.meta, &c->status) < 0)
        return VG_CHANGE_FAIL;
    if (is_scale(c))
        return vg_scale_apply(&w->update, &next, cur);
    if (vg_meta_tell_owners(c->call, &next.meta, true) < 0)
        return vg_change_refuse(c, -ENOMEM);
    return vg_update_apply(&w->update, &next, cur);
}

static enum vg_verdict make(struct vg_change *c)
{
    struct patching *w = VG_CONTAINER_OF(c, struct patching, update.change);
    struct vg_body cur;
    struct vg_json doc, result;
    struct vg_status why;
    if (!c->cur) {
        vg_status_not_found(&c->call->ask->arena, &c->status, c->kind, c->name);
        return VG_CHANGE_FAIL;
    }
    if (w->bad.code) {
        c->status = w->bad;
        return VG_CHANGE_FAIL;
    }
    if (vg_change_load(c, &cur) < 0)
        return VG_CHANGE_FAIL;
    int err = is_scale(c) ? vg_scale_tree(&c->scratch, c->kind, &cur, c->cur->rev, &doc)
                          : with_rev(c, &cur, &doc);
    if (err < 0)
        return vg_change_refuse(c, err);
    if (c->kind->stored) { /* a patch is of what the client sees */
        struct vg_json seen;
        err = vg_kind_from_stored(&c->scratch, c->kind, &doc, &seen);
        if (err < 0)
            return vg_change_refuse(c, err);
        doc = seen;
    }
    err = apply(w, &doc, &result, &why);
    return err < 0 ? refuse_apply(w, err, why.message) : use(w, &result, &cur);
}

/* ---- the verb ---- */

static int begin(struct patching *w, struct vg_api_status *ret_status)
{
    struct vg_api_call *call = w->update.change.call;
    struct vg_write_opts opts;
    int err = read_type(call, &w->type, ret_status);
    if (err == 0)
        err = vg_write_opts_read(call, "PatchOptions", &opts, ret_status);
    if (err < 0)
        return err;
    w->fields = opts.fields;
    w->update.change.is_dry_run = opts.is_dry_run;
    (void)read_patch(w);
    return 0;
}

static bool is_apply(const struct vg_api_call *call)
{
    char buf[VG_MEDIA_TYPE_MAX];
    struct vg_slice text = vg_http_field(call->x, "content-type"), type;
    return vg_media_type_parse(text, buf, &type) && vg_slice_has_prefix(text, type) &&
           vg_slice_eq(type, VG_SLICE_LIT(APPLY_PATCH));
}

void vg_api_patch(struct vg_api_call *call)
{
    const struct vg_target *t = call->ask->target;
    struct vg_api_status status;
    if (is_apply(call)) {
        vg_api_apply(call);
        return;
    }
    struct patching *w = vg_call_new(call, struct patching);
    if (!w)
        return;
    w->update.change = (struct vg_change){
        .call = call,
        .kind = t->kind,
        .ns = t->ns,
        .name = t->name,
        .make = make,
        .done = t->sub && t->sub->type == VG_SUB_SCALE ? vg_scale_done : vg_update_done,
    };
    if (begin(w, &status) < 0) {
        vg_respond_status(call, &status);
        return;
    }
    call->state = w;
    call->op = &vg_change_op;
    vg_change_start(&w->update.change);
}
