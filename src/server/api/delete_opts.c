/* delete_opts.c - DeleteOptions, from a body or from the query.
 * A body may name its type as any group's DeleteOptions, as old clients do, or not at all. */
#include <errno.h>

#include "server/kinds/types.h"
#include "server/schema/gojson.h"
#include "server/schema/proto.h"
#include "server/schema/strconv.h"
#include "write.h"

#define UNREADABLE "ignoreStoreReadErrorWithClusterBreakingPotential"

struct reader {
    struct vg_api_call *call;
    struct vg_delete_opts *opts;
    struct vg_json dry_run;      /* array of strings */
    struct vg_slice propagation; /* p NULL: not given */
    struct vg_status why;
};

/* ---- from a body ---- */

static int refuse(struct reader *r, const struct vg_json *v, const char *field, const char *type)
{
    bool is_number = v->type == VG_JSON_NUMBER && strcmp(type, "int64") == 0;
    return vg_fail(&r->why, VIGIL_E_INVALID,
                   "json: cannot unmarshal %s%s%.*s into Go struct field %s of type %s",
                   vg_gojson_type(v), is_number ? " " : "",
                   VG_SLICE_ARG(is_number ? vg_json_text(v) : VG_SLICE_LIT("")), field, type);
}

static int read_text(struct reader *r, const struct vg_json *v, const char *field, const char *type,
                     bool *ret_has, struct vg_slice *ret)
{
    if (!v || v->type == VG_JSON_NULL)
        return 0;
    if (v->type != VG_JSON_STRING)
        return refuse(r, v, field, type);
    *ret_has = true;
    *ret = vg_json_text(v);
    return 0;
}

static int read_preconditions(struct reader *r, const struct vg_json *v)
{
    if (!v || v->type == VG_JSON_NULL)
        return 0;
    if (v->type != VG_JSON_OBJECT)
        return refuse(r, v, "DeleteOptions.preconditions", "v1.Preconditions");
    int err = read_text(r, vg_json_get_str(v, "uid"), "Preconditions.preconditions.uid",
                        "types.UID", &r->opts->has_uid, &r->opts->uid);
    return err < 0 ? err
                   : read_text(r, vg_json_get_str(v, "resourceVersion"),
                               "Preconditions.preconditions.resourceVersion", "string",
                               &r->opts->has_rev, &r->opts->rev);
}

static int read_grace(struct reader *r, const struct vg_json *v)
{
    if (!v || v->type == VG_JSON_NULL)
        return 0;
    r->opts->has_grace = true;
    return vg_json_to_int64(v, &r->opts->grace_s) < 0
               ? refuse(r, v, "DeleteOptions.gracePeriodSeconds", "int64")
               : 0;
}

static int read_bool(struct reader *r, const struct vg_json *v, const char *field, bool *ret_has,
                     bool *ret)
{
    if (!v || v->type == VG_JSON_NULL)
        return 0;
    if (v->type != VG_JSON_BOOL)
        return refuse(r, v, field, "bool");
    *ret_has = true;
    *ret = vg_json_is_true(v);
    return 0;
}

static int read_dry_run(struct reader *r, const struct vg_json *v)
{
    if (!v || v->type == VG_JSON_NULL)
        return 0;
    if (v->type != VG_JSON_ARRAY)
        return refuse(r, v, "DeleteOptions.dryRun", "[]string");
    VG_JSON_FOREACH_ITEM (it, v)
        if (it->type != VG_JSON_STRING)
            return refuse(r, it, "DeleteOptions.dryRun", "string");
    r->dry_run = *v;
    return 0;
}

/* Its type, which must be some DeleteOptions. */
static int check_type(struct reader *r, const struct vg_json *root)
{
    struct vg_slice kind, api_version;
    if (!root || root->type == VG_JSON_NULL)
        return 0;
    int err = vg_body_type_meta(root, &kind, &api_version, &r->why);
    if (err < 0 || kind.n == 0 || vg_slice_eq(kind, VG_SLICE_LIT("DeleteOptions")))
        return err;
    if (api_version.n == 0)
        api_version = VG_SLICE_LIT("meta.k8s.io/v1");
    return vg_fail(&r->why, VIGIL_E_INVALID,
                   "no kind \"%.*s\" is registered for version \"%.*s\" in scheme "
                   "\"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27\"",
                   VG_SLICE_ARG(kind), VG_SLICE_ARG(api_version));
}

static int read_tree(struct reader *r, const struct vg_json *root)
{
    int err = check_type(r, root);
    if (err == 0)
        err = read_grace(r, vg_json_get_str(root, "gracePeriodSeconds"));
    if (err == 0)
        err = read_preconditions(r, vg_json_get_str(root, "preconditions"));
    if (err == 0)
        err = read_bool(r, vg_json_get_str(root, "orphanDependents"),
                        "DeleteOptions.orphanDependents", &r->opts->has_orphan, &r->opts->orphans);
    bool has = false;
    if (err == 0)
        err = read_bool(r, vg_json_get_str(root, UNREADABLE), "DeleteOptions." UNREADABLE, &has,
                        &r->opts->takes_unreadable);
    if (err == 0)
        err = read_text(r, vg_json_get_str(root, "propagationPolicy"),
                        "DeleteOptions.propagationPolicy", "v1.DeletionPropagation", &has,
                        &r->propagation);
    return err < 0 ? err : read_dry_run(r, vg_json_get_str(root, "dryRun"));
}

static int read_protobuf(struct reader *r, struct vg_slice body)
{
    struct vg_proto_envelope x;
    struct vg_json *root = NULL;
    int err = vg_proto_open(body, &x, &r->why);
    if (err == 0)
        err = vg_body_of_protobuf(r->call->loop, &r->call->ask->arena, &x,
                                  vg_schema_find(VG_SLICE_LIT("meta.k8s.io"), VG_SLICE_LIT("v1"),
                                                 VG_SLICE_LIT("DeleteOptions")),
                                  &root, &r->why);
    return err < 0 ? err : read_tree(r, root);
}

static int read_body(struct reader *r, struct vg_slice body, enum vg_body_format format)
{
    struct vg_json *root = NULL;
    if (format == VG_BODY_PROTOBUF)
        return read_protobuf(r, body);
    int err =
        vg_body_parse(r->call->loop, &r->call->ask->arena, body, format, NULL, &root, &r->why);
    return err < 0 ? err : read_tree(r, root);
}

/* ---- from the query ---- */

static int read_query_grace(struct reader *r, struct vg_slice text)
{
    struct vg_slice why;
    if (text.n == 0)
        return 0;
    int err = vg_strconv_int(&r->call->ask->arena, text, &r->opts->grace_s, &why);
    r->opts->has_grace = err == 0;
    return err == VIGIL_E_INVALID ? vg_fail(&r->why, err, "%.*s", VG_SLICE_ARG(why)) : err;
}

static int read_query(struct reader *r)
{
    const struct vg_target *t = r->call->ask->target;
    struct vg_slice orphan = vg_query_get(t, "orphanDependents");
    r->opts->has_orphan = orphan.p != NULL;
    r->opts->orphans = vg_query_is_true(orphan);
    r->opts->takes_unreadable = vg_query_bool(t, UNREADABLE);
    r->propagation = vg_query_get(t, "propagationPolicy");
    r->opts->uid = vg_query_get(t, "uid");
    r->opts->has_uid = r->opts->uid.p != NULL;
    r->opts->rev = vg_query_get(t, "resourceVersion");
    /* Of a collection it is an option of the list. */
    r->opts->has_rev = r->opts->rev.p != NULL && t->verb == VG_API_DELETE;
    for (size_t i = 0; i < t->n_params; i++)
        if (vg_slice_eq(t->params[i].name, VG_SLICE_LIT("dryRun")) &&
            vg_json_array_push(&r->call->ask->arena, &r->dry_run,
                               vg_json_string_ref(t->params[i].value)) < 0)
            return -ENOMEM;
    return read_query_grace(r, vg_query_get(t, "gracePeriodSeconds"));
}

/* ---- checks ---- */

static void check_propagation(struct vg_field_errors *e, struct reader *r)
{
    static const char *const names[] = {"Foreground", "Background", "Orphan", "nil", NULL};
    static const enum vg_propagation values[] = {VG_FOREGROUND, VG_BACKGROUND, VG_ORPHAN};
    if (!r->propagation.p)
        return;
    struct vg_slice shown = vg_api_quote(e->arena, r->propagation);
    if (r->opts->has_orphan)
        vg_field_invalid(e, "propagationPolicy", shown,
                         "orphanDependents and deletionPropagation cannot be both set");
    for (size_t i = 0; i < VG_ARRAY_LEN(values); i++)
        if (vg_slice_eq(r->propagation, vg_slice_str(names[i])))
            r->opts->propagation = values[i];
    if (r->opts->propagation == VG_PROPAGATE_UNSET)
        vg_field_not_supported(e, "propagationPolicy", shown, names);
}

static void check_dry_run(struct vg_field_errors *e, struct reader *r)
{
    static const char *const supported[] = {"All", NULL};
    bool is_fine = true;
    VG_JSON_FOREACH_ITEM (it, &r->dry_run)
        is_fine = is_fine && vg_slice_eq(vg_json_text(it), VG_SLICE_LIT("All"));
    r->opts->is_dry_run = r->dry_run.n > 0;
    if (!is_fine)
        vg_field_not_supported(e, "dryRun", vg_api_json(e->arena, &r->dry_run), supported);
}

/* It is for one object and comes alone. */
static void check_unreadable(struct vg_field_errors *e, struct reader *r)
{
    const struct vg_delete_opts *o = r->opts;
    const struct {
        bool is_set;
        const char *why;
    } others[] = {
        {r->dry_run.n > 0, "cannot be set together with .dryRun"},
        {r->propagation.p, "cannot be set together with .propagationPolicy"},
        {o->has_orphan, "cannot be set together with .orphanDependents"},
        {o->has_grace, "cannot be set together with .gracePeriodSeconds"},
        {o->has_uid || o->has_rev, "cannot be set together with .preconditions"},
        {r->call->ask->target->verb == VG_API_DELETECOLLECTION,
         "is not allowed with DELETECOLLECTION, try again after removing the option"},
    };
    for (size_t i = 0; o->takes_unreadable && i < VG_ARRAY_LEN(others); i++)
        if (others[i].is_set)
            vg_field_invalid(e, UNREADABLE, VG_SLICE_LIT("true"), "%s", others[i].why);
}

/* What was read is checked; err: of reading. */
static int conclude(struct reader *r, int err, struct vg_api_status *ret_status)
{
    struct vg_arena *a = &r->call->ask->arena;
    if (err < 0) {
        vg_status_bad_request(a, ret_status, "%s", r->why.message);
        return VIGIL_E_INVALID;
    }
    struct vg_field_errors e = {.arena = a};
    check_propagation(&e, r);
    check_dry_run(&e, r);
    check_unreadable(&e, r);
    if (e.n == 0 && !e.failed)
        return 0;
    vg_status_invalid(a, ret_status, "meta.k8s.io", "DeleteOptions", VG_SLICE_LIT(""), &e);
    return VIGIL_E_INVALID;
}

int vg_delete_opts_read(struct vg_api_call *call, struct vg_delete_opts *ret,
                        struct vg_api_status *ret_status)
{
    struct reader r = {.call = call, .opts = ret, .dry_run = vg_json_array()};
    struct vg_slice body = vg_http_request(call->x)->body;
    enum vg_body_format format = VG_BODY_JSON;
    *ret = (struct vg_delete_opts){0};
    if (body.n && vg_body_format(call, &format, ret_status) < 0)
        return VIGIL_E_INVALID;
    return conclude(&r, body.n ? read_body(&r, body, format) : read_query(&r), ret_status);
}

int vg_delete_opts_of(struct vg_api_call *call, const struct vg_json *root,
                      struct vg_delete_opts *ret, struct vg_api_status *ret_bad,
                      struct vg_api_status *ret_status)
{
    struct reader r = {.call = call, .opts = ret, .dry_run = vg_json_array()};
    *ret = (struct vg_delete_opts){0};
    *ret_bad = (struct vg_api_status){0};
    int err = root ? read_tree(&r, root) : 0;
    if (err < 0)
        return conclude(&r, err, ret_status);
    (void)conclude(&r, 0, ret_bad);
    return 0;
}
