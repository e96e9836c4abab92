/* decode.c - bodies: by their Content-Type to a tree, of the right type, with what is odd in it
 * told. A body is parsed once, into the call's arena; strings and numbers of JSON stay where they
 * are in the request. */
#include <errno.h>
#include <stdio.h>

#include "object/quote.h"
#include "server/kinds/types.h"
#include "server/schema/decode.h"
#include "server/schema/default.h"
#include "server/schema/gojson.h"
#include "server/schema/proto.h"
#include "stamp.h"
#include "status_int.h"
#include "versions.h"
#include "write.h"
#include "yaml/yaml.h"
#include "json/tree_edit.h"

/* A thing of the original that no row of ours has, but that is a kind. */
static const char *const other_kinds[] = {"List",          "Status",        "DeleteOptions",
                                          "CreateOptions", "UpdateOptions", "WatchEvent",
                                          "PatchOptions",  "GetOptions",    "ListOptions",
                                          "Binding",       "APIGroup",      "SerializedReference"};

/* 64 MiB: what the tree of a protobuf body may take. Two bytes can stand for an object with several
 * members; bodies of real objects need 10 to 20 times their size. */
#define PROTOBUF_TREE_MAX ((size_t)64 << 20)
/* Bytes of a body that are shown when it is not understood. */
#define SUMMARY_MAX 30u

/* ---- texts to trees ---- */

static int parse_json(struct vg_api_loop *l, struct vg_arena *a, struct vg_slice text,
                      struct vg_json_dups *dups, struct vg_json **ret, struct vg_status *status)
{
    struct vg_json_opts opts = {.on_dup = dups ? VG_JSON_DUP_REPORT : VG_JSON_DUP_LAST_WINS,
                                .replace_bad_utf8 = true,
                                .max_depth = l->api->opts.body_depth,
                                .scratch = &l->scratch,
                                .ret_dups = dups};
    int err = vg_json_parse(a, text, &opts, ret, status);
    if (err == 0 || err == -ENOMEM)
        return err;
    struct vg_status why;
    if (!vg_gojson_complain(text, opts.max_depth, &why))
        why = *status;
    return vg_fail(status, VIGIL_E_INVALID, "couldn't get version/kind; json parse error: %s",
                   why.message);
}

static int parse_yaml(struct vg_api_loop *l, struct vg_arena *a, struct vg_slice text,
                      struct vg_json_dups *dups, struct vg_json **ret, struct vg_status *status)
{
    struct vg_yaml_opts opts = {.on_dup = dups ? VG_JSON_DUP_REPORT : VG_JSON_DUP_LAST_WINS,
                                .max_depth = l->api->opts.body_depth,
                                .ret_dups = dups};
    int err = vg_yaml_parse(a, text, &opts, ret, status);
    return err == 0 || err == -ENOMEM ? err : VIGIL_E_INVALID;
}

int vg_body_parse(struct vg_api_loop *l, struct vg_arena *a, struct vg_slice text,
                  enum vg_body_format format, struct vg_json_dups *dups, struct vg_json **ret,
                  struct vg_status *reterr_status)
{
    struct vg_json *root = NULL;
    if (dups)
        *dups = (struct vg_json_dups){0};
    int err = format == VG_BODY_YAML ? parse_yaml(l, a, text, dups, &root, reterr_status)
                                     : parse_json(l, a, text, dups, &root, reterr_status);
    if (err < 0)
        return err;
    *ret = root;
    return 0;
}

/* Messages have a cap of their own, which is within any limit that was not lowered. */
static int check_depth(const struct vg_json *root, uint32_t max, struct vg_status *status)
{
    struct vg_json_measure m;
    if (max >= 2 * VG_PROTO_DECODE_DEPTH_MAX)
        return 0;
    int err = vg_json_measure(root, &m);
    if (err < 0 || m.depth <= max)
        return err;
    return vg_fail(status, VIGIL_E_INVALID, "exceeded max depth");
}

int vg_body_of_protobuf(struct vg_api_loop *l, struct vg_arena *a,
                        const struct vg_proto_envelope *x, const struct vg_schema_type *type,
                        struct vg_json **ret, struct vg_status *reterr_status)
{
    struct vg_json *root = vg_arena_new(a, struct vg_json);
    if (!root)
        return -ENOMEM;
    size_t max = a->max;
    a->max = a->used + PROTOBUF_TREE_MAX;
    int err = vg_proto_decode(a, type, x, root, reterr_status);
    a->max = max;
    if (err == 0)
        err = check_depth(root, l->api->opts.body_depth, reterr_status);
    if (err == 0)
        *ret = root;
    return err == 0 || err == -ENOMEM ? err : VIGIL_E_INVALID;
}

/* ---- types ---- */

static int type_text(const struct vg_json *root, const char *name, struct vg_slice *ret,
                     struct vg_status *status)
{
    const struct vg_json *v = vg_json_get_str(root, name);
    *ret = vg_json_text(v);
    if (!v || v->type == VG_JSON_NULL || v->type == VG_JSON_STRING)
        return 0;
    return vg_fail(status, VIGIL_E_INVALID,
                   "couldn't get version/kind; json parse error: json: cannot unmarshal %s into Go "
                   "struct field .%s of type string",
                   vg_gojson_type(v), name);
}

int vg_body_type_meta(const struct vg_json *root, struct vg_slice *ret_kind,
                      struct vg_slice *ret_api_version, struct vg_status *reterr_status)
{
    if (root->type != VG_JSON_OBJECT)
        return vg_fail(reterr_status, VIGIL_E_INVALID,
                       "couldn't get version/kind; json parse error: json: cannot unmarshal %s "
                       "into Go value of type struct { APIVersion string "
                       "\"json:\\\"apiVersion,omitempty\\\"\"; Kind string "
                       "\"json:\\\"kind,omitempty\\\"\" }",
                       vg_gojson_type(root));
    int err = type_text(root, "apiVersion", ret_api_version, reterr_status);
    if (err == 0)
        err = type_text(root, "kind", ret_kind, reterr_status);
    if (err < 0)
        return err;
    struct vg_slice rest = *ret_api_version;
    (void)vg_cut(&rest, '/');
    if (rest.n && memchr(rest.p, '/', rest.n))
        return vg_fail(reterr_status, VIGIL_E_INVALID, "unexpected GroupVersion string: %.*s",
                       VG_SLICE_ARG(*ret_api_version));
    return 0;
}

struct vg_body_type vg_body_type_of(const struct vg_target *t)
{
    struct vg_body_type type = {.group = t->kind->group,
                                .version = t->kind->version,
                                .kind = t->kind->kind,
                                .row = t->kind};
    if (!t->sub)
        return type;
    type.row = NULL;
    type.kind = t->sub->kind;
    if (t->sub->version) {
        type.group = t->sub->group ? t->sub->group : "";
        type.version = t->sub->version;
    }
    return type;
}

static void split_api_version(struct vg_slice text, struct vg_slice *ret_group,
                              struct vg_slice *ret_version)
{
    bool has_group = text.n && memchr(text.p, '/', text.n);
    *ret_version = text;
    *ret_group = has_group ? vg_cut(ret_version, '/') : VG_SLICE_LIT("");
}

static bool is_kind(struct vg_slice group, struct vg_slice version, struct vg_slice kind)
{
    if (vg_kind_find_kind(group, version, kind))
        return true;
    size_t n;
    const struct vg_kind *rows = vg_kinds_of(group, version, &n);
    for (size_t i = 0; rows && i < n; i++)
        if (rows[i].list_kind && vg_slice_eq(kind, vg_slice_str(rows[i].list_kind)))
            return true;
    bool is_served = rows || vg_slice_eq(group, VG_SLICE_LIT("meta.k8s.io"));
    for (size_t i = 0; is_served && i < VG_ARRAY_LEN(other_kinds); i++)
        if (vg_slice_eq(kind, vg_slice_str(other_kinds[i])))
            return true;
    return false;
}

/* The package of a group's internal types: "core", "apps", "coordination". */
static struct vg_slice package_of(const char *group)
{
    struct vg_slice rest = vg_slice_str(*group ? group : "core");
    return vg_cut(&rest, '.');
}

/* Is this the type that is wanted? Empty parts are taken as such. */
static int check_type(struct vg_slice kind, struct vg_slice api_version,
                      const struct vg_body_type *want, struct vg_status *status)
{
    struct vg_slice group = vg_slice_str(want->group), version = vg_slice_str(want->version);
    if (api_version.n)
        split_api_version(api_version, &group, &version);
    if (kind.n == 0)
        kind = vg_slice_str(want->kind);
    if (vg_slice_eq(kind, vg_slice_str(want->kind)) &&
        vg_slice_eq(group, vg_slice_str(want->group)) &&
        (vg_slice_eq(version, vg_slice_str(want->version)) ||
         (want->also && vg_slice_eq(version, vg_slice_str(want->also)))))
        return 0;
    if (is_kind(group, version, kind))
        return vg_fail(status, VIGIL_E_INVALID,
                       "converting (%.*s.%.*s) to (%.*s.%s): unknown conversion",
                       VG_SLICE_ARG(version), VG_SLICE_ARG(kind),
                       VG_SLICE_ARG(package_of(want->group)), want->kind);
    return vg_fail(status, VIGIL_E_INVALID,
                   "no kind \"%.*s\" is registered for version \"%.*s%s%.*s\" in scheme "
                   "\"pkg/api/legacyscheme/scheme.go:30\"",
                   VG_SLICE_ARG(kind), VG_SLICE_ARG(group), group.n ? "/" : "",
                   VG_SLICE_ARG(version));
}

static int set_type(struct vg_arena *a, struct vg_json *root, const struct vg_body_type *type)
{
    struct vg_slice api_version = vg_slice_str(type->version);
    if (*type->group && vg_arena_printf(a, &api_version, "%s/%s", type->group, type->version) < 0)
        return -ENOMEM;
    int err = vg_json_object_set(a, root, VG_SLICE_LIT("kind"),
                                 vg_json_string_ref(vg_slice_str(type->kind)));
    return err < 0 ? err
                   : vg_json_object_set(a, root, VG_SLICE_LIT("apiVersion"),
                                        vg_json_string_ref(api_version));
}

static const struct vg_kind *kind_of(const struct vg_body_type *type)
{
    if (type->row)
        return type->row;
    return vg_kind_find_kind(vg_slice_str(type->group), vg_slice_str(type->version),
                             vg_slice_str(type->kind));
}

static const struct vg_schema_type *schema_of(const struct vg_body_type *type)
{
    const struct vg_kind *kind = kind_of(type);
    return kind ? vg_kind_type(kind)
                : vg_schema_find(vg_slice_str(type->group), vg_slice_str(type->version),
                                 vg_slice_str(type->kind));
}

/* Who owned what is told apart from the object, and written anew. Metadata may be shared: it is
 * copied. */
static int drop_managers(struct vg_arena *a, struct vg_json *root)
{
    struct vg_json *meta = vg_json_get_str(root, "metadata");
    struct vg_json copy;
    int err = vg_json_top_copy(a, meta, &copy);
    if (err < 0)
        return err;
    (void)vg_json_object_remove(&copy, VG_SLICE_LIT("managedFields"));
    *meta = copy;
    return 0;
}

/* A tree whose type is known to be right: its fields, its defaults, its metadata. */
static int read_parts(struct vg_arena *a, struct vg_json *root, const struct vg_body_type *type,
                      struct vg_json *unknown, struct vg_body *ret, struct vg_status *status)
{
    const struct vg_schema_type *schema = schema_of(type);
    int err = !schema        ? 0
              : type->is_map ? vg_schema_decode_map(a, schema, root, unknown, status)
                             : vg_schema_decode(a, schema, root, unknown, status);
    if (err == 0)
        err = set_type(a, root, type);
    if (err == 0 && schema)
        err = vg_schema_default(a, schema, root);
    if (err == 0)
        err = vg_version_store(a, kind_of(type), root);
    if (err == 0)
        err = vg_meta_read(a, vg_json_get_str(root, "metadata"), type->kind, &ret->meta,
                           schema ? NULL : unknown, status);
    if (err == 0 && ret->meta.managed)
        err = drop_managers(a, root);
    ret->root = root;
    ret->is_managed = false;
    return err;
}

int vg_body_check(struct vg_arena *a, struct vg_json *root, const struct vg_body_type *type,
                  struct vg_json *unknown, struct vg_body *ret, struct vg_status *reterr_status)
{
    struct vg_slice kind, api_version;
    int err = vg_body_type_meta(root, &kind, &api_version, reterr_status);
    if (err == 0)
        err = check_type(kind, api_version, type, reterr_status);
    return err < 0 ? err : read_parts(a, root, type, unknown, ret, reterr_status);
}

/* ---- the body of a request ---- */

struct decoding {
    struct vg_api_call *call;
    const struct vg_body_type *type;
    struct vg_slice text, kind, api_version;
    struct vg_json_dups dups;
    struct vg_json unknown; /* paths */
    bool is_yaml;
    struct vg_api_status *status;
};

/* What can be shown of a body: text that looks like JSON as it is, else in hexadecimal. */
static int summarize(struct vg_arena *a, struct vg_slice text, struct vg_slice *ret)
{
    struct vg_slice head = vg_slice(text.p, VG_MIN(text.n, SUMMARY_MAX));
    const char *more = text.n > SUMMARY_MAX ? " ..." : "";
    if (text.n == 0)
        return vg_arena_keep(a, VG_SLICE_LIT("<empty>"), ret);
    if (text.p[0] == '{')
        return vg_arena_printf(a, ret, "%.*s%s", VG_SLICE_ARG(head), more);
    char hex[2 * SUMMARY_MAX + 1];
    for (size_t i = 0; i < head.n; i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", (unsigned)(unsigned char)head.p[i]);
    return vg_arena_printf(a, ret, "%s%s", hex, more);
}

static int unrecognized(struct decoding *d, const char *why)
{
    struct vg_slice summary = VG_SLICE_LIT("");
    if (summarize(&d->call->ask->arena, d->text, &summary) < 0)
        summary = VG_SLICE_LIT("...");
    vg_status_bad_request(&d->call->ask->arena, d->status,
                          "the object provided is unrecognized (must be of type %s): %s (%.*s)",
                          d->type->kind, why, VG_SLICE_ARG(summary));
    return VIGIL_E_INVALID;
}

static int unhandled(struct decoding *d, const char *why)
{
    struct vg_slice group, version = vg_slice_str(d->type->version);
    if (d->api_version.n)
        split_api_version(d->api_version, &group, &version);
    struct vg_slice kind = d->kind.n ? d->kind : vg_slice_str(d->type->kind);
    vg_status_bad_request(&d->call->ask->arena, d->status,
                          "%.*s in version \"%.*s\" cannot be handled as a %s: %s",
                          VG_SLICE_ARG(kind), VG_SLICE_ARG(version), d->type->kind, why);
    return VIGIL_E_INVALID;
}

/* All oddities in one text, as strict decoding has them. */
static int list_oddities(const struct decoding *d, struct vg_buf *out)
{
    int err = 0;
    for (uint32_t i = 0; i < d->dups.n && err == 0; i++) {
        struct vg_slice path = d->dups.v[i].path;
        if (d->is_yaml)
            err = vg_buf_printf(out, "%s\n  %.*s",
                                i ? "" : "yaml: unmarshal errors:", VG_SLICE_ARG(path));
        else
            err =
                vg_buf_printf(out, "%sduplicate field \"%.*s\"", i ? ", " : "", VG_SLICE_ARG(path));
    }
    VG_JSON_FOREACH_ITEM (it, &d->unknown) {
        if (err == 0)
            err = vg_buf_printf(out, "%sunknown field \"%.*s\"", out->n ? ", " : "",
                                VG_SLICE_ARG(vg_json_text(it)));
    }
    return err < 0 ? err : vg_buf_append_byte(out, '\0');
}

static void warn_of_oddities(const struct decoding *d)
{
    for (uint32_t i = 0; i < d->dups.n; i++) {
        struct vg_slice path = d->dups.v[i].path;
        if (d->is_yaml)
            vg_call_warn(d->call, "%.*s", VG_SLICE_ARG(path));
        else
            vg_call_warn(d->call, "duplicate field \"%.*s\"", VG_SLICE_ARG(path));
    }
    VG_JSON_FOREACH_ITEM (it, &d->unknown)
        vg_call_warn(d->call, "unknown field \"%.*s\"", VG_SLICE_ARG(vg_json_text(it)));
}

static int tell_oddities(struct decoding *d, enum vg_fields_mode mode)
{
    if (d->dups.n == 0 && d->unknown.n == 0)
        return 0;
    if (mode == VG_FIELDS_WARN)
        warn_of_oddities(d);
    if (mode != VG_FIELDS_STRICT)
        return 0;
    VG_AUTO(buf) text = {0};
    VG_AUTO(buf) list = {0};
    int err = list_oddities(d, &list);
    if (err == 0)
        err = vg_buf_printf(&text, "strict decoding error: %s", list.p);
    if (err == 0)
        err = vg_buf_append_byte(&text, '\0');
    return unhandled(d, err < 0 ? "strict decoding error" : text.p);
}

static int read_tree(struct decoding *d, struct vg_json *root, enum vg_fields_mode mode,
                     struct vg_body *ret)
{
    struct vg_arena *a = &d->call->ask->arena;
    struct vg_status why;
    if (root->type == VG_JSON_NULL)
        *root = vg_json_object();
    int err = vg_body_type_meta(root, &d->kind, &d->api_version, &why);
    if (err < 0)
        return unrecognized(d, why.message);
    d->unknown = vg_json_array();
    err = check_type(d->kind, d->api_version, d->type, &why);
    if (err == 0)
        err =
            read_parts(a, root, d->type, mode == VG_FIELDS_IGNORE ? NULL : &d->unknown, ret, &why);
    if (err < 0 && err != -ENOMEM)
        return unhandled(d, why.message);
    if (err == 0)
        err = tell_oddities(d, mode);
    if (err == -ENOMEM)
        vg_status_no_memory(d->status);
    return err;
}

/* What is not known is dropped silently; nothing can be there twice. */
static int read_protobuf(struct decoding *d, struct vg_body *ret)
{
    struct vg_arena *a = &d->call->ask->arena;
    struct vg_status why;
    struct vg_proto_envelope x;
    struct vg_json *root = NULL;
    int err = vg_proto_open(d->text, &x, &why);
    if (err < 0)
        return unrecognized(d, why.message);
    d->kind = x.kind;
    d->api_version = x.api_version;
    err = check_type(d->kind, d->api_version, d->type, &why);
    const struct vg_schema_type *schema = schema_of(d->type);
    if (err == 0 && !schema)
        err = vg_fail(&why, VIGIL_E_INVALID, "there is no protobuf of this kind");
    if (err == 0)
        err = vg_body_of_protobuf(d->call->loop, a, &x, schema, &root, &why);
    if (err == 0)
        err = read_parts(a, root, d->type, NULL, ret, &why);
    if (err < 0 && err != -ENOMEM)
        return unhandled(d, why.message);
    if (err < 0)
        vg_status_no_memory(d->status);
    return err;
}

int vg_body_read(struct vg_api_call *call, const struct vg_body_type *type,
                 enum vg_fields_mode mode, struct vg_body *ret, struct vg_api_status *ret_status)
{
    struct decoding d = {
        .call = call, .type = type, .text = vg_http_request(call->x)->body, .status = ret_status};
    enum vg_body_format format;
    if (vg_body_format(call, &format, ret_status) < 0)
        return VIGIL_E_INVALID;
    if (format == VG_BODY_PROTOBUF)
        return read_protobuf(&d, ret);
    struct vg_status why;
    struct vg_json *root = NULL;
    d.is_yaml = format == VG_BODY_YAML;
    int err = vg_body_parse(call->loop, &call->ask->arena, d.text, format,
                            mode == VG_FIELDS_IGNORE ? NULL : &d.dups, &root, &why);
    if (err == -ENOMEM) {
        vg_status_no_memory(ret_status);
        return VIGIL_E_INVALID;
    }
    return err < 0 ? unrecognized(&d, why.message) : read_tree(&d, root, mode, ret);
}
