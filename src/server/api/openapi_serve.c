/* openapi_serve.c - /openapi/v2 and /openapi/v3: which form, which encoding, or "not modified". */
#include <errno.h>
#include <malloc.h>

#include "api_int.h"
#include "discovery.h"
#include "discovery_doc.h"
#include "openapi.h"
#include "respond_int.h"
#include "status_int.h"
#include "write.h"

struct media {
    const char *asked, *answered; /* of protobuf there are two spellings */
    enum vg_openapi_form form;
};

static const struct media v2_media[] = {
    {"application/json", "application/json", VG_OPENAPI_JSON},
    {"application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
     "application/com.github.proto-openapi.spec.v2.v1.0+protobuf", VG_OPENAPI_PROTO},
    {"application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
     "application/com.github.proto-openapi.spec.v2.v1.0+protobuf", VG_OPENAPI_PROTO},
};
static const struct media v3_media[] = {
    {"application/json", "application/json", VG_OPENAPI_JSON},
    {"application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
     "application/com.github.proto-openapi.spec.v3.v1.0+protobuf", VG_OPENAPI_PROTO},
    {"application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
     "application/com.github.proto-openapi.spec.v3.v1.0+protobuf", VG_OPENAPI_PROTO},
};
static_assert(VG_ARRAY_LEN(v2_media) == VG_ARRAY_LEN(v3_media), "the same forms in both");
#define N_MEDIA VG_ARRAY_LEN(v2_media)
#define IDLE_NS ((uint64_t)VG_OPENAPI_IDLE_MS * VG_NS_PER_MS)

/* ---- Accept ---- */

/* The first that a clause names; clauses are taken in the order in which they come. NULL: none. */
static const struct media *choose(struct vg_slice accept, const struct media v[N_MEDIA])
{
    if (accept.n == 0)
        return &v[0];
    while (accept.n) {
        struct vg_slice clause = vg_cut(&accept, ','), type = vg_trim(vg_cut(&clause, ';'));
        if (vg_slice_eq(type, VG_SLICE_LIT("*/*")) ||
            vg_slice_eq(type, VG_SLICE_LIT("application/*")))
            return &v[0];
        for (size_t i = 0; i < N_MEDIA; i++)
            if (vg_slice_eq(type, vg_slice_str(v[i].asked)))
                return &v[i];
    }
    return NULL;
}

/* ---- answers ---- */

static void answer_empty(struct vg_api_call *call, const struct vg_head_opts *opts)
{
    if (vg_respond_head_opts(call, opts) == 0)
        vg_http_end(call->x);
    vg_call_finish(call);
}

static void answer_text(struct vg_api_call *call, int code, const char *text)
{
    static const struct vg_http_field no_sniff[] = {
        {{"X-Content-Type-Options", 22}, {"nosniff", 7}}};
    struct vg_buf body = {0};
    call->ask->extra_fields = no_sniff;
    call->ask->n_extra_fields = VG_ARRAY_LEN(no_sniff);
    if (vg_buf_append(&body, text, strlen(text)) < 0)
        vg_call_finish(call);
    else
        vg_respond_bytes(call, code, "text/plain; charset=utf-8", &body);
}

static int64_t now_ms(const struct vg_api_loop *l)
{
    return (int64_t)(vg_clock_mono_ns(l->api->clock) / VG_NS_PER_MS);
}

/* Each loop that has served one looks through what is kept, until nothing is. */
static void tidy(struct vg_timer *timer)
{
    struct vg_api_loop *l = VG_CONTAINER_OF(timer, struct vg_api_loop, tidy);
    if (vg_openapi_sweep(vg_discovery_openapi(l->api->discovery), now_ms(l)))
        vg_timer_start(l->loop, &l->tidy, IDLE_NS, tidy);
    else
        malloc_trim(0); /* megabytes, once in a while: they go back to the system */
}

static void answer_doc(struct vg_api_call *call, struct vg_openapi *o, size_t doc,
                       const struct media *media, const char *cache_control)
{
    struct vg_head_opts opts = {.content_type = media->answered,
                                .etag = vg_openapi_etag(o, doc),
                                .cache_control = cache_control};
    if (opts.etag && vg_respond_not_modified(call, &opts))
        return;
    const struct vg_openapi_body *body =
        opts.etag ? vg_openapi_take(o, doc, media->form, vg_media_wants_gzip(call->x),
                                    now_ms(call->loop), &opts.is_gzip)
                  : NULL;
    if (!body) {
        vg_call_finish(call);
        return;
    }
    struct vg_http_pin pin = {body, vg_openapi_ref, vg_openapi_unref};
    vg_respond_pinned(call, &opts, vg_openapi_bytes(body), &pin);
    vg_openapi_unref(body);
    vg_timer_start(call->loop->loop, &call->loop->tidy, IDLE_NS, tidy);
}

/* The client has an old index: this is where the document is now. */
static void answer_moved(struct vg_api_call *call, const char *etag, const struct media *media)
{
    struct vg_slice location, path = call->ask->target->path;
    struct vg_http_field *field = vg_arena_new(&call->ask->arena, struct vg_http_field);
    if (!field || vg_arena_printf(&call->ask->arena, &location, "%.*s?hash=%.*s",
                                  VG_SLICE_ARG(path), (int)VG_DOC_HASH_CHARS, etag + 1) < 0) {
        vg_call_finish(call);
        return;
    }
    *field = (struct vg_http_field){VG_SLICE_LIT("Location"), location};
    call->ask->extra_fields = field;
    call->ask->n_extra_fields = 1;
    struct vg_head_opts opts = {.code = 301, .content_type = media->answered, .etag = etag};
    answer_empty(call, &opts);
}

/* ---- paths ---- */

static void serve_index(struct vg_api_call *call, struct vg_openapi *o)
{
    struct vg_buf json = {0};
    if (vg_openapi_index(o, &json) < 0) {
        vg_buf_done(&json);
        vg_call_finish(call);
        return;
    }
    vg_respond_bytes(call, 200, "text/plain; charset=utf-8", &json);
}

static void serve_v3(struct vg_api_call *call, struct vg_openapi *o, struct vg_slice path,
                     const struct media *media)
{
    size_t doc;
    if (vg_openapi_find(o, path, &doc) < 0) {
        answer_text(call, 404, "404 page not found\n");
        return;
    }
    struct vg_slice hash = vg_query_get(call->ask->target, "hash");
    const char *etag = hash.n ? vg_openapi_etag(o, doc) : NULL;
    if (hash.n == 0)
        answer_doc(call, o, doc, media, NULL);
    else if (!etag)
        vg_call_finish(call);
    else if (vg_slice_eq(hash, vg_slice(etag + 1, VG_DOC_HASH_CHARS)))
        answer_doc(call, o, doc, media, "public, immutable");
    else
        answer_moved(call, etag, media);
}

void vg_api_openapi(struct vg_api_call *call)
{
    static const struct vg_slice v2 = {"/openapi/v2", 11}, v3 = {"/openapi/v3", 11};
    struct vg_slice path = call->ask->target->path;
    struct vg_openapi *o = vg_discovery_openapi(call->loop->api->discovery);
    bool is_v2 = vg_slice_eq(path, v2);
    bool is_v3 = path.n > v3.n + 1 && vg_slice_has_prefix(path, v3) && path.p[v3.n] == '/';
    bool is_index =
        vg_slice_has_prefix(path, v3) && !is_v3 && (path.n == v3.n || path.p[v3.n] == '/');
    const struct media *media =
        choose(vg_http_field(call->x, "accept"), is_v2 ? v2_media : v3_media);
    if (!vg_discovery_admit(call))
        return;
    if (is_index)
        serve_index(call, o);
    else if (!is_v2 && !is_v3)
        answer_text(call, 404, "404 page not found\n");
    else if (!media)
        answer_empty(call, &(struct vg_head_opts){.code = 406});
    else if (is_v2)
        answer_doc(call, o, VG_OPENAPI_V2, media, NULL);
    else
        serve_v3(call, o, vg_slice(path.p + v3.n + 1, path.n - v3.n - 1), media);
}

/* Any other path that is not a resource: the caller knows of /version and /openapi alone. */
void vg_api_other(struct vg_api_call *call)
{
    struct vg_slice path = call->ask->target->path;
    if (vg_slice_eq(path, VG_SLICE_LIT("/version")) || vg_slice_eq(path, VG_SLICE_LIT("/version/")))
        vg_api_version(call);
    else if (!vg_api_openid(call))
        vg_api_openapi(call);
}
