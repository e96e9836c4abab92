/* target.c - a request's method and URL, taken apart by kube-apiserver's rules.
 * The path is decoded first and split then, so that %2F is a slash, as its router has it. Nothing
 * is allocated; what cannot be a request is told apart from what merely is not served. */
#include "target.h"

#include <strings.h>

/* ---- percent escapes ---- */

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decode into *at, which moves on. Text without escapes is not copied. False: malformed. */
static bool decode(struct vg_slice in, bool plus_is_space, char **at, struct vg_slice *ret)
{
    if (!memchr(in.p, '%', in.n) && !(plus_is_space && memchr(in.p, '+', in.n))) {
        *ret = in;
        return true;
    }
    char *out = *at;
    for (size_t i = 0; i < in.n; i++) {
        char c = in.p[i];
        if (c == '%') {
            int high = in.n - i > 2 ? hex(in.p[i + 1]) : -1;
            int low = in.n - i > 2 ? hex(in.p[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = (char)(high << 4 | low);
            i += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        *out++ = c;
    }
    *ret = vg_slice(*at, (size_t)(out - *at));
    *at = out;
    return true;
}

/* ---- the query ---- */

static bool next_piece(struct vg_slice *rest, char separator, struct vg_slice *ret)
{
    if (!rest->p)
        return false;
    const char *end = rest->n ? memchr(rest->p, separator, rest->n) : NULL;
    *ret = vg_slice(rest->p, end ? (size_t)(end - rest->p) : rest->n);
    *rest = end ? vg_slice(end + 1, rest->n - ret->n - 1) : (struct vg_slice){0};
    return true;
}

/* A pair with a semicolon or a malformed escape is dropped, as by Go. */
static int parse_query(struct vg_slice query, char *decoded, struct vg_target *t,
                       struct vg_status *reterr_status)
{
    struct vg_slice pair;
    while (next_piece(&query, '&', &pair)) {
        if (pair.n == 0 || memchr(pair.p, ';', pair.n))
            continue;
        const char *eq = memchr(pair.p, '=', pair.n);
        size_t key_n = eq ? (size_t)(eq - pair.p) : pair.n;
        struct vg_slice name = vg_slice(pair.p, key_n);
        struct vg_slice value = eq ? vg_slice(eq + 1, pair.n - key_n - 1) : VG_SLICE_LIT("");
        if (!decode(name, true, &decoded, &name) || !decode(value, true, &decoded, &value))
            continue;
        if (t->n_params == VG_QUERY_PARAMS_MAX)
            return vg_fail(reterr_status, VIGIL_E_INVALID, "more than %u query parameters",
                           VG_QUERY_PARAMS_MAX);
        t->params[t->n_params++] = (struct vg_query_param){name, value};
    }
    return 0;
}

struct vg_slice vg_query_get(const struct vg_target *t, const char *name)
{
    struct vg_slice wanted = vg_slice_str(name);
    for (size_t i = 0; i < t->n_params; i++)
        if (vg_slice_eq(t->params[i].name, wanted))
            return t->params[i].value;
    return (struct vg_slice){0};
}

bool vg_query_is_true(struct vg_slice value)
{
    if (!value.p || vg_slice_eq(value, VG_SLICE_LIT("0")))
        return false;
    return value.n != 5 || strncasecmp(value.p, "false", 5) != 0;
}

bool vg_query_bool(const struct vg_target *t, const char *name)
{
    return vg_query_is_true(vg_query_get(t, name));
}

/* ---- the path ---- */

struct steps {
    struct vg_slice v[VG_TARGET_SEGMENTS_MAX];
    size_t n;
};

static bool is(struct vg_slice s, const char *text)
{
    return vg_slice_eq(s, vg_slice_str(text));
}

/* Slashes at both ends do not count. Empty steps inside stay, and fit no route. */
static int split(struct vg_slice path, struct steps *ret, struct vg_status *reterr_status)
{
    while (path.n && path.p[0] == '/')
        path = vg_slice(path.p + 1, path.n - 1);
    while (path.n && path.p[path.n - 1] == '/')
        path.n--;
    struct vg_slice step;
    if (path.n == 0)
        return 0;
    while (next_piece(&path, '/', &step)) {
        if (ret->n == VG_TARGET_SEGMENTS_MAX)
            return vg_fail(reterr_status, VIGIL_E_INVALID, "the path has more than %u segments",
                           VG_TARGET_SEGMENTS_MAX);
        ret->v[ret->n++] = step;
    }
    return 0;
}

static bool serves(const struct vg_group *g, struct vg_slice version)
{
    for (const char *const *v = g ? g->versions : NULL; v && *v; v++)
        if (is(version, *v))
            return true;
    return false;
}

/* Skips what names group and version; the rest is in *s. */
static enum vg_target_type parse_root(struct steps *s, struct vg_target *t)
{
    size_t skip;
    if (s->n && is(s->v[0], "api")) {
        if (s->n == 1)
            return VG_TARGET_API;
        t->group = VG_SLICE_LIT("");
        t->version = s->v[1];
        skip = 2;
    } else if (s->n && is(s->v[0], "apis")) {
        if (s->n == 1)
            return VG_TARGET_APIS;
        t->group = s->v[1];
        if (s->n == 2)
            return s->v[1].n && vg_group_find(t->group) ? VG_TARGET_GROUP : VG_TARGET_OTHER;
        t->version = s->v[2];
        skip = 3;
        if (t->group.n == 0)
            return VG_TARGET_OTHER;
    } else {
        return VG_TARGET_OTHER;
    }
    if (!serves(vg_group_find(t->group), t->version))
        return vg_group_find(t->group) ? VG_TARGET_NO_RESOURCE : VG_TARGET_OTHER;
    memmove(s->v, s->v + skip, (s->n - skip) * sizeof s->v[0]);
    s->n -= skip;
    return s->n ? VG_TARGET_RESOURCE : VG_TARGET_VERSION;
}

/* Is the third step of namespaces/X/STEP a subresource of the namespace and not a resource? */
static bool is_of_namespace(const struct steps *s, size_t at)
{
    return s->n > at + 2 && (is(s->v[at + 2], "status") || is(s->v[at + 2], "finalize"));
}

/* What follows the resource: name, subresource and its rest. */
static bool parse_object(const struct steps *s, size_t at, struct vg_target *t)
{
    if (at < s->n && (t->name = s->v[at++]).n == 0)
        return false;
    if (at == s->n)
        return true;
    t->sub = t->is_legacy_watch ? NULL : vg_kind_sub(t->kind, s->v[at++]);
    if (!t->sub)
        return false;
    if (at == s->n)
        return true;
    if (!is(vg_slice_str(t->sub->name), "proxy"))
        return false;
    const char *end = s->v[s->n - 1].p + s->v[s->n - 1].n;
    t->sub_rest = vg_slice(s->v[at].p, (size_t)(end - s->v[at].p));
    return true;
}

/* False: no such resource. */
static bool parse_resource(const struct steps *s, struct vg_target *t)
{
    size_t at = 0;
    if (is(s->v[0], "watch")) {
        t->is_legacy_watch = true;
        at = 1;
    }
    if (s->n > at + 2 && is(s->v[at], "namespaces") && !is_of_namespace(s, at)) {
        t->ns = s->v[at + 1];
        if (t->ns.n == 0)
            return false;
        at += 2;
    }
    if (at >= s->n)
        return false;
    t->kind = vg_kind_find(t->group, t->version, s->v[at]);
    if (!t->kind || !parse_object(s, at + 1, t))
        return false;
    unsigned of_objects = VG_VERB_GET | VG_VERB_UPDATE | VG_VERB_PATCH | VG_VERB_DELETE;
    if (t->name.n && !t->sub && !(t->kind->verbs & of_objects))
        return false; /* what is asked and not kept has no objects */
    bool is_namespaced = vg_kind_is(t->kind, VG_KIND_NAMESPACED);
    return is_namespaced ? t->ns.n || t->name.n == 0 : t->ns.n == 0;
}

/* ---- verbs ---- */

const char *vg_api_verb_name(enum vg_api_verb verb)
{
    static const char *const names[] = {
        [VG_API_NONE] = "",
        [VG_API_GET] = "get",
        [VG_API_LIST] = "list",
        [VG_API_WATCH] = "watch",
        [VG_API_CREATE] = "create",
        [VG_API_UPDATE] = "update",
        [VG_API_PATCH] = "patch",
        [VG_API_DELETE] = "delete",
        [VG_API_DELETECOLLECTION] = "deletecollection",
    };
    return (size_t)verb < VG_ARRAY_LEN(names) ? names[verb] : "";
}

static enum vg_api_verb verb_of_object(enum vg_http_method method)
{
    switch (method) {
    case VG_HTTP_GET:
        return VG_API_GET;
    case VG_HTTP_PUT:
        return VG_API_UPDATE;
    case VG_HTTP_PATCH:
        return VG_API_PATCH;
    case VG_HTTP_DELETE:
        return VG_API_DELETE;
    default:
        return VG_API_NONE;
    }
}

static enum vg_api_verb verb_of_collection(enum vg_http_method method, const struct vg_target *t)
{
    bool is_everywhere = vg_kind_is(t->kind, VG_KIND_NAMESPACED) && t->ns.n == 0;
    switch (method) {
    case VG_HTTP_GET:
        /* A list that cannot be watched says so itself. */
        return vg_query_bool(t, "watch") && (t->kind->verbs & VG_VERB_WATCH) ? VG_API_WATCH
                                                                             : VG_API_LIST;
    case VG_HTTP_POST:
        return is_everywhere ? VG_API_NONE : VG_API_CREATE;
    case VG_HTTP_DELETE:
        return is_everywhere ? VG_API_NONE : VG_API_DELETECOLLECTION;
    default:
        return VG_API_NONE;
    }
}

static enum vg_verb bit_of(enum vg_api_verb verb)
{
    static const enum vg_verb bits[] = {
        [VG_API_GET] = VG_VERB_GET,       [VG_API_LIST] = VG_VERB_LIST,
        [VG_API_WATCH] = VG_VERB_WATCH,   [VG_API_CREATE] = VG_VERB_CREATE,
        [VG_API_UPDATE] = VG_VERB_UPDATE, [VG_API_PATCH] = VG_VERB_PATCH,
        [VG_API_DELETE] = VG_VERB_DELETE, [VG_API_DELETECOLLECTION] = VG_VERB_DELETECOLLECTION,
    };
    return bits[verb];
}

static enum vg_api_verb find_verb(enum vg_http_method method, const struct vg_target *t)
{
    enum vg_api_verb verb;
    if (t->is_legacy_watch)
        verb = method == VG_HTTP_GET ? VG_API_WATCH : VG_API_NONE;
    else if (t->sub && method == VG_HTTP_POST)
        verb = VG_API_CREATE;
    else if (t->name.n)
        verb = verb_of_object(method);
    else
        verb = verb_of_collection(method, t);
    unsigned served = t->sub ? t->sub->verbs : t->kind->verbs;
    return verb != VG_API_NONE && (served & (unsigned)bit_of(verb)) ? verb : VG_API_NONE;
}

int vg_target_parse(enum vg_http_method method, struct vg_slice target, char *decoded,
                    struct vg_target *ret, struct vg_status *reterr_status)
{
    /* All but the parameters, of which only the first n_params are ever looked at. */
    memset(ret, 0, offsetof(struct vg_target, params));
    ret->n_params = 0;
    if (target.n == 0 || target.p[0] != '/')
        return vg_fail(reterr_status, VIGIL_E_INVALID, "the request target is not a path");
    const char *mark = memchr(target.p, '?', target.n);
    struct vg_slice path = vg_slice(target.p, mark ? (size_t)(mark - target.p) : target.n);
    if (!decode(path, false, &decoded, &ret->path))
        return vg_fail(reterr_status, VIGIL_E_INVALID, "malformed escape in the path");
    int r =
        mark ? parse_query(vg_slice(mark + 1, target.n - path.n - 1), decoded, ret, reterr_status)
             : 0;
    struct steps s = {.n = 0};
    if (r == 0)
        r = split(ret->path, &s, reterr_status);
    if (r < 0)
        return r;
    ret->type = parse_root(&s, ret);
    if (ret->type != VG_TARGET_RESOURCE)
        return 0;
    if (!parse_resource(&s, ret)) {
        ret->type = VG_TARGET_NO_RESOURCE;
        ret->kind = NULL;
        ret->sub = NULL;
        return 0;
    }
    ret->verb = find_verb(method, ret);
    return 0;
}
