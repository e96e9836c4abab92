/* negotiate.c - Accept, pretty and gzip, as kube-apiserver reads them.
 * Two parts look at Accept, one after the other, and refuse in different words: the router, for
 * which a clause without its parameters must be exactly one of the types that the route produces,
 * or anything; then the negotiation proper, by q and specificity, which skips clauses it cannot
 * use. A client that lists fallbacks gets the first that works. */
#include "negotiate.h"

#include <stdlib.h>
#include <strings.h>

#include "protobuf.h"
#include "status_int.h"
#include "write.h"

/* 64 clauses: kubectl sends three, browsers seven; what follows is not looked at. */
#define CLAUSES_MAX 64u

struct clause {
    struct vg_slice type, subtype;
    struct vg_slice as, group, version, stream, pretty;
    double q;
};

/* Cuts the piece before the separator off *rest; false when nothing is left. */
static bool next_piece(struct vg_slice *rest, char separator, struct vg_slice *ret)
{
    if (!rest->p)
        return false;
    const char *end = rest->n ? memchr(rest->p, separator, rest->n) : NULL;
    *ret = vg_trim(vg_slice(rest->p, end ? (size_t)(end - rest->p) : rest->n));
    *rest = end ? vg_slice(end + 1, (size_t)(rest->p + rest->n - end) - 1) : (struct vg_slice){0};
    return true;
}

static bool is(struct vg_slice s, const char *text)
{
    return vg_slice_eq(s, vg_slice_str(text));
}

/* ---- clauses ---- */

static double parse_q(struct vg_slice s)
{
    char text[16];
    size_t n = VG_MIN(s.n, sizeof text - 1);
    memcpy(text, s.p, n);
    text[n] = '\0';
    char *end;
    double q = strtod(text, &end);
    return end == text || *end || !(q >= 0) ? 1.0 : q;
}

static void parse_param(struct clause *c, struct vg_slice param)
{
    struct vg_slice name;
    if (!next_piece(&param, '=', &name) || !param.p)
        return;
    struct vg_slice value = vg_trim(param);
    if (is(name, "q"))
        c->q = parse_q(value);
    else if (is(name, "as"))
        c->as = value;
    else if (is(name, "g"))
        c->group = value;
    else if (is(name, "v"))
        c->version = value;
    else if (is(name, "stream"))
        c->stream = value;
    else if (is(name, "pretty"))
        c->pretty = value;
}

static bool parse_clause(struct vg_slice text, struct clause *ret)
{
    struct vg_slice piece;
    *ret = (struct clause){.q = 1.0};
    if (!next_piece(&text, ';', &piece) || piece.n == 0)
        return false;
    struct vg_slice subtype = piece;
    if (!next_piece(&subtype, '/', &ret->type))
        return false;
    ret->subtype = subtype.p ? vg_trim(subtype) : VG_SLICE_LIT("");
    if (!subtype.p && is(ret->type, "*"))
        ret->subtype = VG_SLICE_LIT("*");
    while (next_piece(&text, ';', &piece))
        parse_param(ret, piece);
    return true;
}

/* q first, then how much is said: a/b before a/ * before * / *. */
static bool comes_before(const struct clause *a, const struct clause *b)
{
    if (a->q != b->q)
        return a->q > b->q;
    if (is(a->type, "*") != is(b->type, "*"))
        return is(b->type, "*");
    return !is(a->subtype, "*") && is(b->subtype, "*");
}

static size_t parse_accept(struct vg_slice accept, struct clause *v)
{
    size_t n = 0;
    struct vg_slice text;
    while (n < CLAUSES_MAX && next_piece(&accept, ',', &text)) {
        struct clause c;
        if (!parse_clause(text, &c))
            continue;
        size_t at = n++;
        for (; at > 0 && comes_before(&c, &v[at - 1]); at--)
            v[at] = v[at - 1];
        v[at] = c;
    }
    return n;
}

/* ---- the router ---- */

#define TYPES "application/json, application/yaml, application/vnd.kubernetes.protobuf"
#define STREAMS "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"

static bool is_produced(struct vg_slice accept)
{
    static const char *const types[] = {"*/*", "application/json", "application/yaml",
                                        "application/vnd.kubernetes.protobuf"};
    struct vg_slice clause, type;
    while (next_piece(&accept, ',', &clause)) {
        if (!next_piece(&clause, ';', &type))
            continue;
        for (size_t i = 0; i < VG_ARRAY_LEN(types); i++)
            if (is(type, types[i]))
                return true;
    }
    return false;
}

static int refuse_route(const struct vg_target *t, struct vg_arena *a, struct vg_api_status *ret)
{
    /* A collection can be watched, so its route produces streams too. */
    bool is_collection =
        t->type == VG_TARGET_RESOURCE && (t->verb == VG_API_LIST || t->verb == VG_API_WATCH);
    vg_status_not_acceptable(
        a, ret,
        is_collection ? "406: Not Acceptable\n\nAvailable representations: " TYPES ", " STREAMS
                      : "406: Not Acceptable\n\nAvailable representations: " TYPES);
    ret->has_details = true;
    return VIGIL_E_UNSUPPORTED;
}

/* The groups' documents are not behind the router. */
static bool is_routed(const struct vg_target *t)
{
    return t->type != VG_TARGET_APIS && t->type != VG_TARGET_GROUP;
}

/* ---- negotiation ---- */

static bool use_table(const struct clause *c, const struct vg_media_scope *scope, bool is_meta,
                      struct vg_media *m)
{
    m->transform = VG_AS_TABLE;
    m->is_v1beta1 = is(c->version, "v1beta1");
    return scope->is_tabular && is_meta && m->type != VG_MEDIA_PROTOBUF;
}

/* May this clause be used? */
static bool use_transform(const struct clause *c, const struct vg_media_scope *scope,
                          struct vg_media *m, bool *ret_is_list)
{
    if (!c->as.p)
        return true;
    if (scope->is_discovery) {
        m->transform = VG_AS_DISCOVERY;
        return m->type != VG_MEDIA_YAML && is(c->as, "APIGroupDiscoveryList") &&
               is(c->group, "apidiscovery.k8s.io") && is(c->version, "v2");
    }
    bool is_meta =
        is(c->group, "meta.k8s.io") && (is(c->version, "v1") || is(c->version, "v1beta1"));
    if (is(c->as, "Table"))
        return use_table(c, scope, is_meta, m);
    *ret_is_list = is(c->as, "PartialObjectMetadataList");
    if (!scope->is_transformable || !is_meta ||
        !(*ret_is_list || is(c->as, "PartialObjectMetadata")))
        return false;
    m->transform = VG_AS_PARTIAL;
    m->is_v1beta1 = is(c->version, "v1beta1");
    return true;
}

static bool use_type(const struct clause *c, struct vg_media *m)
{
    bool is_any = is(c->subtype, "*") && (is(c->type, "*") || is(c->type, "application"));
    if (is_any || (is(c->type, "application") && is(c->subtype, "json")))
        m->type = VG_MEDIA_JSON;
    else if (is(c->type, "application") && is(c->subtype, "yaml"))
        m->type = VG_MEDIA_YAML;
    else if (is(c->type, "application") && is(c->subtype, "vnd.kubernetes.protobuf"))
        m->type = VG_MEDIA_PROTOBUF;
    else
        return false;
    /* A stream is asked for by name only where the type has one. */
    return !c->stream.p || (is(c->stream, "watch") && m->type != VG_MEDIA_YAML);
}

static int refuse_shape(const struct vg_target *t, struct vg_arena *a, bool wants_list,
                        struct vg_api_status *ret)
{
    /* kube-apiserver prints its Go type: the group's first word, and the kind. */
    const char *group = t->kind && *t->kind->group ? t->kind->group : "core";
    const char *kind = t->kind ? t->kind->kind : "";
    struct vg_slice text;
    *ret = (struct vg_api_status){.code = 406, .reason = "NotAcceptable"};
    int r = vg_arena_printf(a, &text,
                            wants_list ? "you requested PartialObjectMetadataList, but the "
                                         "requested object is not a list (*%.*s.%s)"
                                       : "you requested PartialObjectMetadata, but the requested "
                                         "object is a list (*%.*s.%sList)",
                            (int)strcspn(group, "."), group, kind);
    if (r < 0)
        vg_status_no_memory(ret);
    else
        ret->message = text;
    return VIGIL_E_UNSUPPORTED;
}

static int choose(const struct clause *v, size_t n, const struct vg_target *t,
                  const struct vg_media_scope *scope, struct vg_arena *a, struct vg_media *m,
                  struct vg_api_status *ret_status)
{
    for (size_t i = 0; i < n; i++) {
        struct vg_media found = *m;
        bool wants_list = false;
        if (!use_type(&v[i], &found) || !use_transform(&v[i], scope, &found, &wants_list))
            continue;
        if (found.transform == VG_AS_PARTIAL && !scope->is_watch && wants_list != scope->is_list)
            return refuse_shape(t, a, wants_list, ret_status);
        if (scope->is_watch && found.type == VG_MEDIA_YAML) {
            vg_status_not_acceptable(a, ret_status,
                                     "only the following media types are accepted: " STREAMS);
            return VIGIL_E_UNSUPPORTED;
        }
        found.is_pretty |= is(v[i].pretty, "1");
        found.is_pretty &= found.type != VG_MEDIA_PROTOBUF;
        *m = found;
        return 0;
    }
    vg_status_not_acceptable(a, ret_status, "only the following media types are accepted: " TYPES);
    return VIGIL_E_UNSUPPORTED;
}

static bool has_prefix(struct vg_slice s, const char *prefix)
{
    return vg_slice_has_prefix(s, vg_slice_str(prefix));
}

bool vg_media_is_pretty(const struct vg_http_exchange *x, const struct vg_target *t)
{
    struct vg_slice param = vg_query_get(t, "pretty");
    if (param.p)
        return vg_query_is_true(param);
    struct vg_slice agent = vg_http_field(x, "user-agent");
    return has_prefix(agent, "curl") || has_prefix(agent, "Wget") ||
           has_prefix(agent, "Mozilla/5.0");
}

bool vg_media_wants_gzip(const struct vg_http_exchange *x)
{
    struct vg_slice encodings = vg_http_field(x, "accept-encoding"), token;
    while (next_piece(&encodings, ',', &token))
        if (is(token, "gzip"))
            return true;
    return false;
}

int vg_media_negotiate(const struct vg_http_exchange *x, const struct vg_target *t,
                       const struct vg_media_scope *scope, struct vg_arena *a, struct vg_media *ret,
                       struct vg_api_status *ret_status)
{
    struct vg_media m = {.type = VG_MEDIA_JSON};
    m.is_pretty = !scope->is_watch && vg_media_is_pretty(x, t);
    m.wants_gzip = !scope->is_watch && vg_media_wants_gzip(x);
    struct vg_slice accept = vg_http_field(x, "accept");
    if (accept.n) {
        struct clause v[CLAUSES_MAX];
        if (is_routed(t) && !is_produced(accept))
            return refuse_route(t, a, ret_status);
        int r = choose(v, parse_accept(accept, v), t, scope, a, &m, ret_status);
        if (r < 0)
            return r;
    }
    *ret = m;
    return 0;
}

const char *vg_media_content_type(const struct vg_media *m)
{
    static const char *const types[] = {
        [VG_MEDIA_JSON] = "application/json",
        [VG_MEDIA_YAML] = "application/yaml",
        [VG_MEDIA_PROTOBUF] = VG_PROTOBUF_TYPE,
    };
    return types[m->type];
}
