/* local.c - paths that are no resource and not discovery: health, metrics, debug, the list of all
 * paths; and answers that are not the verbs'. Version and OpenAPI are the api's. */
#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "gate_int.h"
#include "json/write.h"

#define TEXT "text/plain; charset=utf-8"
#define FLOW_PATH "/debug/api_priority_and_fairness/"

static const struct vg_http_field no_sniff[] = {{{"X-Content-Type-Options", 22}, {"nosniff", 7}}};

/* ---- answering ---- */

/* How the caller likes its answer; whatever it says, there is one. */
static void choose_media(struct vg_request *q)
{
    static const struct vg_media_scope scope = {0};
    struct vg_api_status ignored;
    struct vg_media media = {0};
    if (vg_media_negotiate(q->call.x, &vg_request_text(q)->target, &scope, &q->call.ask->arena,
                           &media, &ignored) < 0)
        media = (struct vg_media){0};
    q->call.ask->media = media;
}

void vg_request_fail(struct vg_request *q, const struct vg_api_status *status)
{
    choose_media(q);
    q->is_active = true;
    vg_respond_status(&q->call, status);
}

static void answer(struct vg_request *q, int code, const char *type, struct vg_buf *take_body)
{
    q->is_active = true;
    vg_respond_bytes(&q->call, code, type, take_body);
}

void vg_request_say(struct vg_request *q, int code, const char *text)
{
    struct vg_buf body = {0};
    if (!q->call.ask->extra_fields) {
        q->call.ask->extra_fields = no_sniff;
        q->call.ask->n_extra_fields = VG_ARRAY_LEN(no_sniff);
    }
    if (vg_buf_append(&body, text, strlen(text)) < 0)
        vg_buf_clear(&body);
    answer(q, code, TEXT, &body);
}

void vg_request_refuse_busy(struct vg_request *q, uint32_t retry_after_s)
{
    struct vg_http_field *fields = vg_arena_array(&q->call.ask->arena, struct vg_http_field, 2);
    struct vg_slice seconds;
    if (fields && vg_arena_printf(&q->call.ask->arena, &seconds, "%u", retry_after_s) == 0) {
        fields[0] = (struct vg_http_field){VG_SLICE_LIT("Retry-After"), seconds};
        fields[1] = no_sniff[0];
        q->call.ask->extra_fields = fields;
        q->call.ask->n_extra_fields = 2;
    }
    vg_request_say(q, 429, "Too many requests, please try again later.\n");
}

static void out_of_memory(struct vg_request *q, struct vg_buf *body)
{
    vg_buf_done(body);
    vg_request_say(q, 503, "503 out of memory\n");
}

/* ---- paths ---- */

static void serve_health(struct vg_request *q)
{
    struct vg_buf body = {0};
    struct vg_health_answer a;
    int r = vg_health_answer(q->l->gate->opts.health, &vg_request_text(q)->target, &body, &a);
    if (r == VIGIL_E_NOT_FOUND) {
        vg_buf_done(&body);
        vg_request_say(q, 404, "404 page not found\n");
        return;
    }
    if (r < 0) {
        out_of_memory(q, &body);
        return;
    }
    if (!a.is_sniffable) {
        q->call.ask->extra_fields = no_sniff;
        q->call.ask->n_extra_fields = VG_ARRAY_LEN(no_sniff);
    }
    answer(q, a.code, TEXT, &body);
}

static void serve_metrics(struct vg_request *q)
{
    struct vg_metrics *m = q->l->gate->opts.metrics;
    struct vg_buf body = {0};
    if (!m)
        vg_request_say(q, 404, "404 page not found\n");
    else if (vg_metrics_write(m, &body) < 0)
        out_of_memory(q, &body);
    else
        answer(q, 200, "text/plain; version=0.0.4; charset=utf-8; escaping=underscores", &body);
}

static void serve_api(struct vg_request *q)
{
    q->is_active = true;
    vg_api_serve(&q->call);
}

static void serve_openid(struct vg_request *q)
{
    if (q->l->gate->opts.issuer)
        serve_api(q);
    else
        vg_request_say(q, 404, "404 page not found\n");
}

static void serve_flow(struct vg_request *q)
{
    struct vg_flow *f = q->l->gate->flow;
    const struct vg_target *t = &vg_request_text(q)->target;
    struct vg_slice path = t->path;
    struct vg_buf body = {0};
    int r = VIGIL_E_NOT_FOUND;
    if (f && vg_slice_eq(path, VG_SLICE_LIT(FLOW_PATH "dump_priority_levels")))
        r = vg_flow_dump_levels(f, &body);
    else if (f && vg_slice_eq(path, VG_SLICE_LIT(FLOW_PATH "dump_queues")))
        r = vg_flow_dump_queues(f, &body);
    else if (f && vg_slice_eq(path, VG_SLICE_LIT(FLOW_PATH "dump_requests")))
        r = vg_flow_dump_requests(f, vg_query_get(t, "includeRequestDetails").n > 0, &body);
    if (r == 0) {
        answer(q, 200, TEXT, &body);
        return;
    }
    vg_buf_done(&body);
    vg_request_say(q, r == VIGIL_E_NOT_FOUND ? 404 : 503,
                   r == VIGIL_E_NOT_FOUND ? "404 page not found\n" : "503 out of memory\n");
}

static void serve_paths(struct vg_request *q);

/* Paths by prefix: `path` itself, and what lies below it with below. */
static const struct route {
    const char *path;
    bool below;
    void (*serve)(struct vg_request *q);
} routes[] = {
    {"/", false, serve_paths},
    {"/.well-known/openid-configuration", false, serve_openid},
    {"/debug/api_priority_and_fairness", true, serve_flow},
    {"/debug/vigil/watches", false, vg_request_list_watches},
    {"/healthz", true, serve_health},
    {"/livez", true, serve_health},
    {"/metrics", false, serve_metrics},
    {"/openapi/v2", false, serve_api},
    {"/openapi/v3", true, serve_api},
    {"/openid/v1/jwks", false, serve_openid},
    {"/readyz", true, serve_health},
    {"/version", false, serve_api},
    {"/version/", false, serve_api}, /* as the Python client asks */
};

static bool fits(const struct route *r, struct vg_slice path)
{
    size_t n = strlen(r->path);
    if (path.n < n || memcmp(path.p, r->path, n) != 0)
        return false;
    return path.n == n || (r->below && path.p[n] == '/');
}

void vg_request_serve_local(struct vg_request *q)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(routes); i++) {
        if (fits(&routes[i], vg_request_text(q)->target.path)) {
            q->key.sub = routes[i].path;
            routes[i].serve(q);
            return;
        }
    }
    vg_request_say(q, 404, "404 page not found\n");
}

/* ---- the list of paths ---- */

/* 512: groups, versions, checks and routes, with room. */
#define PATHS_MAX 512u

struct path_list {
    struct vg_arena *arena;
    const char *v[PATHS_MAX];
    size_t n;
};

static int add_path(void *arg, const char *path)
{
    struct path_list *l = arg;
    const char *copy = vg_arena_copy(l->arena, path, strlen(path) + 1);
    if (!copy || l->n == PATHS_MAX)
        return copy ? VIGIL_E_TOO_LARGE : -ENOMEM;
    l->v[l->n++] = copy;
    return 0;
}

static int add_groups(struct path_list *l)
{
    size_t n;
    const struct vg_group *groups = vg_groups(&n);
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        VG_AUTO(buf) path = {0};
        r = vg_buf_printf(&path, "/apis/%s%c", groups[i].name, 0);
        if (r == 0)
            r = add_path(l, path.p);
        for (const char *const *v = groups[i].versions; *v && r == 0; v++) {
            vg_buf_clear(&path);
            r = vg_buf_printf(&path, "/apis/%s/%s%c", groups[i].name, *v, 0);
            if (r == 0)
                r = add_path(l, path.p);
        }
    }
    return r;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Health checks are listed one by one; a path that ends with a slash is another name of one; what
 * kube-apiserver does not list is not listed. */
static bool is_listed(const struct route *r)
{
    return r->serve != serve_health && r->serve != serve_flow &&
           r->path[strlen(r->path) - 1] != '/';
}

static int collect_paths(struct vg_request *q, struct path_list *l)
{
    static const char *const fixed[] = {"/api", "/api/v1", "/apis", "/apis/"};
    int r = 0;
    for (size_t i = 0; i < VG_ARRAY_LEN(fixed) && r == 0; i++)
        r = add_path(l, fixed[i]);
    for (size_t i = 0; i < VG_ARRAY_LEN(routes) && r == 0; i++) {
        if (is_listed(&routes[i]))
            r = add_path(l, routes[i].path);
    }
    if (r == 0)
        r = add_groups(l);
    if (r == 0)
        r = vg_health_paths(q->l->gate->opts.health, add_path, l);
    qsort(l->v, l->n, sizeof l->v[0], compare_paths);
    return r;
}

static void serve_paths(struct vg_request *q)
{
    struct path_list list = {.arena = &q->call.ask->arena};
    struct vg_buf body = {0};
    struct vg_json_writer w;
    int r = collect_paths(q, &list);
    vg_json_writer_init(&w, &body, VG_JSON_INDENT);
    vg_json_put_begin_object(&w);
    vg_json_put_key(&w, VG_SLICE_LIT("paths"));
    vg_json_put_begin_array(&w);
    for (size_t i = 0; i < list.n; i++)
        vg_json_put_string(&w, vg_slice_str(list.v[i]));
    vg_json_put_end_array(&w);
    vg_json_put_end_object(&w);
    if (r < 0 || vg_json_writer_end(&w) < 0)
        out_of_memory(q, &body);
    else
        answer(q, 200, "application/json", &body);
}
