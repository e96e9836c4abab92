/* discovery.c - /api, /apis and what is below them, down to the resources of a version; /version.
 * The documents follow from the table of kinds, which is constant: all are made at the start and
 * served as they are. Only /api differs from client to client, by the address it names. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "api_int.h"
#include "base/alloc.h"
#include "discovery.h"
#include "discovery_doc.h"
#include "discovery_write.h"
#include "openapi.h"
#include "respond_int.h"
#include "json/write.h"

#define AGGREGATED ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

/* /apis/G, and the versions below it. */
struct group_docs {
    const struct vg_group *group;
    struct vg_doc self; /* empty for the core group */
    struct vg_doc *versions;
    size_t n_versions;
};

struct vg_discovery {
    struct vg_openapi *openapi;
    struct vg_doc groups, aggregated_core, aggregated;
    size_t n; /* the core group is the last */
    struct group_docs v[];
};

/* ---- making ---- */

static int make_versions(struct group_docs *g)
{
    while (g->group->versions[g->n_versions])
        g->n_versions++;
    g->versions = vg_calloc(g->n_versions, sizeof *g->versions);
    int err = g->versions ? 0 : -ENOMEM;
    for (size_t i = 0; i < g->n_versions && err == 0; i++) {
        struct vg_doc *d = &g->versions[i];
        err = vg_discovery_write_resources(&d->compact, g->group, g->group->versions[i]);
        if (err == 0)
            err = vg_doc_finish(d);
    }
    return err;
}

static int make_group(struct group_docs *g)
{
    int err = 0;
    if (*g->group->name) {
        err = vg_discovery_write_group(&g->self.compact, g->group);
        if (err == 0)
            err = vg_doc_finish(&g->self);
    }
    return err < 0 ? err : make_versions(g);
}

static int make_lists(struct vg_discovery *d)
{
    int err = vg_discovery_write_groups(&d->groups.compact);
    if (err == 0)
        err = vg_doc_finish(&d->groups);
    if (err == 0)
        err = vg_discovery_write_aggregated(&d->aggregated_core.compact, true);
    if (err == 0)
        err = vg_doc_finish(&d->aggregated_core);
    if (err == 0)
        err = vg_discovery_write_aggregated(&d->aggregated.compact, false);
    if (err == 0)
        err = vg_doc_finish(&d->aggregated);
    if (err == 0)
        err = vg_doc_add_protobuf(&d->aggregated_core);
    return err < 0 ? err : vg_doc_add_protobuf(&d->aggregated);
}

int vg_discovery_new(const char *git_version, struct vg_discovery **ret_discovery)
{
    size_t n;
    const struct vg_group *groups = vg_groups(&n);
    struct vg_discovery *d = vg_calloc(1, sizeof *d + (n + 1) * sizeof d->v[0]);
    if (!d)
        return -ENOMEM;
    d->n = n + 1;
    for (size_t i = 0; i < d->n; i++)
        d->v[i].group = i < n ? &groups[i] : vg_group_find(VG_SLICE_LIT(""));
    int err = vg_openapi_new(git_version, &d->openapi);
    if (err == 0)
        err = make_lists(d);
    for (size_t i = 0; i < d->n && err == 0; i++)
        err = make_group(&d->v[i]);
    if (err < 0) {
        vg_discovery_free(d);
        return err;
    }
    *ret_discovery = d;
    return 0;
}

void vg_discovery_free(struct vg_discovery *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->n; i++) {
        for (size_t k = 0; d->v[i].versions && k < d->v[i].n_versions; k++)
            vg_doc_done(&d->v[i].versions[k]);
        vg_free(d->v[i].versions);
        vg_doc_done(&d->v[i].self);
    }
    vg_openapi_free(d->openapi);
    vg_doc_done(&d->groups);
    vg_doc_done(&d->aggregated_core);
    vg_doc_done(&d->aggregated);
    vg_free(d);
}

struct vg_openapi *vg_discovery_openapi(const struct vg_discovery *d)
{
    return d->openapi;
}

/* ---- finding ---- */

static const struct group_docs *find_group(const struct vg_discovery *d, struct vg_slice name)
{
    for (size_t i = 0; i < d->n; i++)
        if (vg_slice_eq(vg_slice_str(d->v[i].group->name), name))
            return &d->v[i];
    return NULL;
}

/* NULL: no such document. */
static const struct vg_doc *find_doc(const struct vg_discovery *d, const struct vg_target *t)
{
    if (t->type == VG_TARGET_APIS)
        return &d->groups;
    const struct group_docs *g = find_group(d, t->group);
    if (!g)
        return NULL;
    if (t->type == VG_TARGET_GROUP)
        return &g->self;
    for (size_t i = 0; i < g->n_versions; i++)
        if (vg_slice_eq(vg_slice_str(g->group->versions[i]), t->version))
            return &g->versions[i];
    return NULL;
}

/* ---- answering ---- */

static void answer_aggregated(struct vg_api_call *call, const struct vg_doc *doc)
{
    const struct vg_media *m = &call->ask->media;
    bool is_protobuf = m->type == VG_MEDIA_PROTOBUF;
    struct vg_head_opts opts = {.content_type = is_protobuf ? VG_PROTOBUF_TYPE AGGREGATED
                                                            : "application/json" AGGREGATED,
                                .etag = doc->etag,
                                .cache_control = "public"};
    vg_respond_constant(call, &opts,
                        vg_buf_slice(is_protobuf    ? &doc->protobuf
                                     : m->is_pretty ? &doc->pretty
                                                    : &doc->compact));
}

/* YAML and protobuf are rare: made anew each time. */
static void answer_otherwise(struct vg_api_call *call, struct vg_slice json)
{
    struct vg_buf copy;
    vg_buf_init(&copy, 0);
    if (vg_buf_append_slice(&copy, json) < 0) {
        vg_buf_done(&copy);
        vg_call_finish(call);
        return;
    }
    vg_respond_json(call, 200, &copy);
}

static void answer_doc(struct vg_api_call *call, const struct vg_doc *doc)
{
    struct vg_slice compact = vg_buf_slice(&doc->compact);
    if (call->ask->media.type != VG_MEDIA_JSON)
        answer_otherwise(call, vg_slice(compact.p, compact.n - 1));
    else
        vg_respond_constant(call, &(struct vg_head_opts){.content_type = "application/json"},
                            call->ask->media.is_pretty ? vg_buf_slice(&doc->pretty) : compact);
}

/* The client is told the address that it used. */
static void answer_core_versions(struct vg_api_call *call)
{
    struct vg_buf json;
    vg_buf_init(&json, 0);
    if (vg_discovery_write_versions(&json, vg_http_request(call->x)->authority) < 0) {
        vg_buf_done(&json);
        vg_call_finish(call);
        return;
    }
    vg_respond_json(call, 200, &json);
}

bool vg_discovery_admit(struct vg_api_call *call)
{
    enum vg_http_method method = vg_http_request(call->x)->method;
    if (method == VG_HTTP_GET || method == VG_HTTP_HEAD)
        return true;
    struct vg_api_status status;
    vg_status_method(&status);
    vg_respond_status(call, &status);
    return false;
}

void vg_api_discover(struct vg_api_call *call)
{
    const struct vg_discovery *d = call->loop->api->discovery;
    const struct vg_target *t = call->ask->target;
    struct vg_media_scope scope = {.is_discovery =
                                       t->type == VG_TARGET_API || t->type == VG_TARGET_APIS};
    struct vg_api_status status;
    if (!vg_discovery_admit(call))
        return;
    if (vg_media_negotiate(call->x, t, &scope, &call->ask->arena, &call->ask->media, &status) < 0) {
        call->ask->media = (struct vg_media){.type = VG_MEDIA_JSON, .is_pretty = true};
        vg_respond_status(call, &status);
        return;
    }
    const struct vg_doc *doc = t->type == VG_TARGET_API ? NULL : find_doc(d, t);
    if (call->ask->media.transform == VG_AS_DISCOVERY) {
        answer_aggregated(call, t->type == VG_TARGET_API ? &d->aggregated_core : &d->aggregated);
    } else if (t->type == VG_TARGET_API) {
        answer_core_versions(call);
    } else if (doc) {
        answer_doc(call, doc);
    } else {
        vg_status_no_resource(&status);
        vg_respond_status(call, &status);
    }
}

/* ---- /version ---- */

#if defined __x86_64__
#define PLATFORM "linux/amd64"
#elif defined __aarch64__
#define PLATFORM "linux/arm64"
#else
#define PLATFORM "linux/unknown"
#endif
#ifdef __clang__
#define COMPILER "clang"
#else
#define COMPILER "gcc"
#endif

/* The version of Kubernetes whose behaviour this is, from "v1.36.4+vigil". */
static void parse_version(const char *text, unsigned long *ret_major, unsigned long *ret_minor)
{
    char *end;
    *ret_major = strtoul(text + (*text == 'v'), &end, 10);
    *ret_minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
}

static void put_number(struct vg_json_writer *w, const char *key, unsigned long number)
{
    char text[32];
    snprintf(text, sizeof text, "%lu", number);
    vg_json_put_member(w, key, vg_slice_str(text));
}

/* What is Go's or a build machine's has no value here, but clients expect the keys. */
static int write_version(struct vg_buf *out, const char *git_version)
{
    unsigned long major, minor;
    parse_version(git_version, &major, &minor);
    struct vg_json_writer w;
    vg_json_writer_init(&w, out, VG_JSON_INDENT);
    vg_json_put_begin_object(&w);
    put_number(&w, "major", major);
    put_number(&w, "minor", minor);
    put_number(&w, "emulationMajor", major);
    put_number(&w, "emulationMinor", minor);
    put_number(&w, "minCompatibilityMajor", major);
    put_number(&w, "minCompatibilityMinor", minor ? minor - 1 : 0);
    vg_json_put_member(&w, "gitVersion", vg_slice_str(git_version));
    vg_json_put_member(&w, "gitCommit", VG_SLICE_LIT(""));
    vg_json_put_member(&w, "gitTreeState", VG_SLICE_LIT(""));
    vg_json_put_member(&w, "buildDate", VG_SLICE_LIT("1970-01-01T00:00:00Z"));
    vg_json_put_member(&w, "goVersion", VG_SLICE_LIT(""));
    vg_json_put_member(&w, "compiler", VG_SLICE_LIT(COMPILER));
    vg_json_put_member(&w, "platform", VG_SLICE_LIT(PLATFORM));
    vg_json_put_end_object(&w);
    return vg_json_writer_end(&w);
}

void vg_api_version(struct vg_api_call *call)
{
    struct vg_buf json;
    vg_buf_init(&json, 0);
    if (!vg_discovery_admit(call))
        return;
    if (write_version(&json, call->loop->api->opts.git_version) < 0) {
        vg_buf_done(&json);
        vg_call_finish(call);
    } else {
        vg_respond_bytes(call, 200, "application/json", &json);
    }
}
