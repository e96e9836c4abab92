/* scale.c - the subresource scale: an object's replicas under one shape for all kinds.
 * A Scale is made from the object and goes back into it; where its numbers lie is the kind's row's
 * knowledge. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "respond_int.h"
#include "server/kinds/types.h"
#include "server/schema/decode.h"
#include "server/schema/gojson.h"
#include "status_int.h"
#include "update.h"
#include "json/write.h"

/* Objects are stored as they were given; this is what the original makes of replicas left out. */
#define REPLICAS_DEFAULT 1

/* ---- paths ---- */

/* The first step of a path; *rest is what follows it. */
static struct vg_slice step_of(const char *path, const char **ret_rest)
{
    const char *dot = strchr(path, '.');
    *ret_rest = dot ? dot + 1 : NULL;
    return dot ? vg_slice(path, (size_t)(dot - path)) : vg_slice_str(path);
}

static const struct vg_json *value_at(const struct vg_json *v, const char *path)
{
    while (v && path)
        v = vg_json_get(v, step_of(path, &path));
    return v;
}

/* A copy of v with the value at a path of two steps replaced. */
static int with_value(struct vg_arena *a, const struct vg_json *v, const char *path,
                      struct vg_json value, struct vg_json *ret)
{
    const char *rest;
    struct vg_slice step = step_of(path, &rest);
    const struct vg_json *given = vg_json_get(v, step);
    struct vg_json inner = vg_json_object();
    if (VG_NEVER(!rest))
        return VIGIL_E_INTERNAL;
    int err = vg_json_top_copy(a, v, ret);
    if (err == 0 && vg_json_is(given, VG_JSON_OBJECT))
        err = vg_json_top_copy(a, given, &inner);
    if (err == 0)
        err = vg_json_object_set(a, &inner, vg_slice_str(rest), value);
    return err < 0 ? err : vg_json_object_set(a, ret, step, inner);
}

/* ---- selectors as text ---- */

struct terms {
    struct vg_slice *v; /* each a requirement, sorted by key */
    size_t n;
};

static int by_text(const void *a, const void *b)
{
    return vg_slice_cmp(*(const struct vg_slice *)a, *(const struct vg_slice *)b);
}

static int append_values(struct vg_arena *a, struct vg_buf *out, const struct vg_json *values)
{
    size_t n = vg_json_is(values, VG_JSON_ARRAY) ? values->n : 0;
    struct vg_slice *v = vg_arena_array(a, struct vg_slice, n ? n : 1);
    if (!v)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        v[i] = vg_json_text(&values->items[i]);
    if (n)
        qsort(v, n, sizeof *v, by_text);
    int err = vg_buf_append(out, " (", 2);
    for (uint32_t i = 0; i < n && err == 0; i++)
        err = vg_buf_printf(out, "%s%.*s", i ? "," : "", VG_SLICE_ARG(v[i]));
    return err < 0 ? err : vg_buf_append_byte(out, ')');
}

static int expression_text(struct vg_arena *a, const struct vg_json *e, struct vg_slice *ret)
{
    struct vg_slice key = vg_json_text(vg_json_get_str(e, "key"));
    struct vg_slice op = vg_json_text(vg_json_get_str(e, "operator"));
    bool is_in = vg_slice_eq(op, VG_SLICE_LIT("In"));
    if (vg_slice_eq(op, VG_SLICE_LIT("Exists")))
        return vg_arena_printf(a, ret, "%.*s", VG_SLICE_ARG(key));
    if (vg_slice_eq(op, VG_SLICE_LIT("DoesNotExist")))
        return vg_arena_printf(a, ret, "!%.*s", VG_SLICE_ARG(key));
    VG_AUTO(buf) b = {0};
    int err = vg_buf_printf(&b, "%.*s %s", VG_SLICE_ARG(key), is_in ? "in" : "notin");
    if (err == 0)
        err = append_values(a, &b, vg_json_get_str(e, "values"));
    return err < 0 ? err : vg_arena_keep(a, vg_buf_slice(&b), ret);
}

static int label_terms(struct vg_arena *a, const struct vg_json *labels, struct terms *t)
{
    if (!vg_json_is(labels, VG_JSON_OBJECT))
        return 0;
    VG_JSON_FOREACH_MEMBER (m, labels) {
        int err = vg_arena_printf(a, &t->v[t->n++], "%.*s=%.*s", VG_SLICE_ARG(vg_json_key(m)),
                                  VG_SLICE_ARG(vg_json_text(&m->value)));
        if (err < 0)
            return err;
    }
    return 0;
}

static uint32_t count_of(const struct vg_json *v, enum vg_json_type type)
{
    return v && v->type == (uint8_t)type ? v->n : 0;
}

static int selector_text(struct vg_arena *a, const struct vg_kind_scale *scale,
                         const struct vg_json *selector, struct vg_slice *ret)
{
    const struct vg_json *labels =
        scale->selector_is_map ? selector : vg_json_get_str(selector, "matchLabels");
    const struct vg_json *exprs =
        scale->selector_is_map ? NULL : vg_json_get_str(selector, "matchExpressions");
    uint32_t n_exprs = count_of(exprs, VG_JSON_ARRAY);
    size_t most = (size_t)count_of(labels, VG_JSON_OBJECT) + n_exprs;
    struct terms t = {.v = vg_arena_array(a, struct vg_slice, most ? most : 1)};
    int err = t.v ? label_terms(a, labels, &t) : -ENOMEM;
    for (uint32_t i = 0; i < n_exprs && err == 0; i++)
        err = expression_text(a, vg_json_at(exprs, i), &t.v[t.n++]);
    if (err < 0)
        return err;
    if (t.n)
        qsort(t.v, t.n, sizeof *t.v, by_text);
    VG_AUTO(buf) b = {0};
    for (size_t i = 0; i < t.n && err == 0; i++)
        err = vg_buf_printf(&b, "%s%.*s", i ? "," : "", VG_SLICE_ARG(t.v[i]));
    return err < 0 ? err : vg_arena_keep(a, vg_buf_slice(&b), ret);
}

/* ---- from the object ---- */

static int64_t number_at(const struct vg_json *root, const char *path, int64_t missing)
{
    int64_t n;
    return vg_json_to_int64(value_at(root, path), &n) < 0 ? missing : n;
}

static int add_number(struct vg_arena *a, struct vg_json *obj, const char *name, int64_t n)
{
    struct vg_json v;
    int err = vg_json_make_int(a, n, &v);
    return err < 0 ? err : vg_json_object_add(a, obj, vg_slice_str(name), v);
}

static int make_meta(struct vg_arena *a, const struct vg_meta *of, vg_rev rev, struct vg_json *ret)
{
    struct vg_slice text = VG_SLICE_LIT("");
    struct vg_meta m = {.name = of->name, .ns = of->ns, .uid = of->uid, .created = of->created};
    int err = vg_meta_write(a, &m, ret);
    if (err == 0)
        err = vg_arena_printf(a, &text, "%" PRIu64, rev);
    return err < 0 ? err
                   : vg_json_object_add(a, ret, VG_SLICE_LIT("resourceVersion"),
                                        vg_json_string_ref(text));
}

int vg_scale_tree(struct vg_arena *a, const struct vg_kind *kind, const struct vg_body *of,
                  vg_rev rev, struct vg_json *ret)
{
    const struct vg_kind_scale *s = kind->scale;
    struct vg_json root = vg_json_object(), meta, spec = vg_json_object(),
                   status = vg_json_object();
    struct vg_slice selector = VG_SLICE_LIT("");
    int64_t wanted = number_at(of->root, s->spec_replicas, REPLICAS_DEFAULT);
    int err = make_meta(a, &of->meta, rev, &meta);
    if (err == 0 && wanted)
        err = add_number(a, &spec, "replicas", wanted);
    if (err == 0)
        err = add_number(a, &status, "replicas", number_at(of->root, s->status_replicas, 0));
    if (err == 0)
        err = selector_text(a, s, value_at(of->root, s->selector), &selector);
    if (err == 0 && selector.n)
        err =
            vg_json_object_add(a, &status, VG_SLICE_LIT("selector"), vg_json_string_ref(selector));
    if (err == 0)
        err = vg_json_object_add(a, &root, VG_SLICE_LIT("kind"),
                                 vg_json_string_ref(VG_SLICE_LIT("Scale")));
    if (err == 0)
        err = vg_json_object_add(a, &root, VG_SLICE_LIT("apiVersion"),
                                 vg_json_string_ref(VG_SLICE_LIT("autoscaling/v1")));
    if (err == 0)
        err = vg_json_object_add(a, &root, VG_SLICE_LIT("metadata"), meta);
    if (err == 0)
        err = vg_json_object_add(a, &root, VG_SLICE_LIT("spec"), spec);
    if (err == 0)
        err = vg_json_object_add(a, &root, VG_SLICE_LIT("status"), status);
    if (err == 0)
        *ret = root;
    return err;
}

static int scale_write(const struct vg_kind *kind, const struct vg_rec *rec, vg_rev rev,
                       struct vg_buf *out)
{
    VG_AUTO(arena) a;
    vg_arena_init(&a, 0, 0);
    struct vg_body of;
    struct vg_json scale;
    int err = vg_json_parse(&a, vg_rec_value(rec), NULL, &of.root, NULL);
    if (err == 0)
        err = vg_meta_read(&a, vg_json_get_str(of.root, "metadata"), kind->kind, &of.meta, NULL,
                           NULL);
    if (err == 0)
        err = vg_scale_tree(&a, kind, &of, rev, &scale);
    if (err == 0)
        err = vg_schema_arrange(
            &a,
            vg_schema_find(VG_SLICE_LIT("autoscaling"), VG_SLICE_LIT("v1"), VG_SLICE_LIT("Scale")),
            &scale, &scale);
    return err < 0 ? err : vg_json_write(out, &scale, VG_JSON_ESCAPE_HTML);
}

/* ---- and back ---- */

/* spec.replicas as Go reads it. */
static int read_replicas(const struct vg_json *root, int64_t *ret, struct vg_status *why)
{
    const struct vg_json *spec = vg_json_get_str(root, "spec");
    *ret = 0;
    if (!spec || spec->type == VG_JSON_NULL)
        return 0;
    if (spec->type != VG_JSON_OBJECT)
        return vg_fail(why, VIGIL_E_INVALID,
                       "json: cannot unmarshal %s into Go struct field Scale.spec of type "
                       "v1.ScaleSpec",
                       vg_gojson_type(spec));
    const struct vg_json *n = vg_json_get_str(spec, "replicas");
    if (!n || n->type == VG_JSON_NULL)
        return 0;
    bool is_number = n->type == VG_JSON_NUMBER;
    if (vg_json_to_int64(n, ret) == 0 && *ret >= INT32_MIN && *ret <= INT32_MAX)
        return 0;
    return vg_fail(why, VIGIL_E_INVALID,
                   "json: cannot unmarshal %s%s%.*s into Go struct field ScaleSpec.spec.replicas "
                   "of type int32",
                   vg_gojson_type(n), is_number ? " " : "",
                   VG_SLICE_ARG(is_number ? vg_json_text(n) : VG_SLICE_LIT("")));
}

enum vg_verdict vg_scale_apply(struct vg_update *w, const struct vg_body *scale,
                               const struct vg_body *cur)
{
    struct vg_change *c = &w->change;
    struct vg_arena *a = &c->call->ask->arena;
    struct vg_status why;
    struct vg_json v, root;
    int64_t n;
    if (read_replicas(scale->root, &n, &why) < 0) {
        vg_status_bad_request(
            a, &c->status, "Scale in version \"v1\" cannot be handled as a Scale: %s", why.message);
        return VG_CHANGE_FAIL;
    }
    if (n < 0) {
        struct vg_field_errors e = {.arena = a};
        struct vg_slice shown;
        if (vg_arena_printf(a, &shown, "%" PRId64, n) < 0)
            return vg_change_refuse(c, -ENOMEM);
        vg_field_invalid(&e, "spec.replicas", shown, "must be greater than or equal to 0");
        vg_status_invalid(a, &c->status, "autoscaling", "Scale", c->name, &e);
        return VG_CHANGE_FAIL;
    }
    int err = vg_json_make_int(&c->scratch, n, &v);
    if (err == 0)
        err = with_value(&c->scratch, cur->root, c->kind->scale->spec_replicas, v, &root);
    if (err < 0)
        return vg_change_refuse(c, err);
    struct vg_body next = {.root = &root, .meta = cur->meta};
    next.meta.rev = scale->meta.rev;
    next.is_managed = scale->is_managed;
    if (next.is_managed)
        next.meta.managed = scale->meta.managed;
    return vg_update_apply(w, &next, cur);
}

/* As a table shows it. */
static const char *const name_path[] = {"metadata.name", NULL},
                         *const replicas_path[] = {"spec.replicas", NULL},
                         *const now_path[] = {"status.replicas", NULL},
                         *const created_path[] = {"metadata.creationTimestamp", NULL};
#define NUMBER .type = "integer", .format = "", .about = "", .rule = VG_CELL_AT, .missing = "0"
#define TEXT .type = "string", .format = "", .about = ""
static const struct vg_column scale_columns[] = {
    {.name = "Name", TEXT, .rule = VG_CELL_AT, .paths = name_path, .missing = "\"\""},
    {.name = "Desired", NUMBER, .paths = replicas_path},
    {.name = "Available", NUMBER, .paths = now_path},
    {.name = "Age",
     TEXT,
     .rule = VG_CELL_AGE,
     .paths = created_path,
     .missing = "\"\\u003cunknown\\u003e\""},
};

void vg_scale_respond(struct vg_api_call *call, int code, const struct vg_rec *rec, vg_rev rev)
{
    static const struct vg_columns columns = {scale_columns, VG_ARRAY_LEN(scale_columns), NULL};
    struct vg_buf json = {0};
    int err = scale_write(call->ask->target->kind, rec, rev, &json);
    if (err == 0 && call->ask->media.transform == VG_AS_TABLE) {
        vg_respond_table_of(call, code, &columns, &json);
        return;
    }
    if (err == 0) {
        vg_respond_json(call, code, &json);
        return;
    }
    struct vg_api_status status;
    vg_buf_done(&json);
    vg_status_from_err(&call->ask->arena, &status, err, vg_err_text(err));
    vg_respond_status(call, &status);
}

void vg_scale_done(struct vg_change *c)
{
    struct vg_api_call *call = c->call;
    const struct vg_obj_sealed *s = &call->loop->sealed;
    bool is_pretended = c->verdict == VG_CHANGE_PUT && !c->out;
    struct vg_rec *rec = NULL;
    int err = 0;
    if (is_pretended)
        err = vg_rec_new(VG_REC_PUT, vg_obj_key_slice(&c->key), vg_buf_slice(&s->header),
                         vg_buf_slice(&s->value), &rec);
    if (err < 0)
        c->verdict = vg_change_refuse(c, err);
    if (call->is_closed || c->verdict == VG_CHANGE_FAIL) {
        vg_update_done(c);
        return;
    }
    vg_scale_respond(call, 200, is_pretended ? rec : c->out, c->rev);
    vg_rec_unref(rec);
    vg_change_release(c);
}

/* ---- PUT ---- */

static enum vg_verdict make(struct vg_change *c)
{
    struct vg_update *w = VG_CONTAINER_OF(c, struct vg_update, change);
    struct vg_body cur;
    if (!c->cur) {
        vg_status_not_found(&c->call->ask->arena, &c->status, c->kind, c->name);
        return VG_CHANGE_FAIL;
    }
    return vg_change_load(c, &cur) < 0 ? VG_CHANGE_FAIL : vg_scale_apply(w, &w->body, &cur);
}

void vg_api_update_scale(struct vg_api_call *call)
{
    struct vg_api_status status;
    struct vg_write_opts opts;
    struct vg_body_type type = vg_body_type_of(call->ask->target);
    struct vg_update *w = vg_update_new(call);
    if (!w)
        return;
    int err = vg_write_opts_read(call, "UpdateOptions", &opts, &status);
    if (err == 0)
        err = vg_body_read(call, &type, opts.fields, &w->body, &status);
    if (err == 0)
        err = vg_update_match_url(call, &w->body.meta, &status);
    if (err < 0) {
        vg_respond_status(call, &status);
        return;
    }
    w->change.is_dry_run = opts.is_dry_run;
    w->change.make = make;
    w->change.done = vg_scale_done;
    call->op = &vg_change_op;
    vg_change_start(&w->change);
}
