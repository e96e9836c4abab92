/* api.c - the life of the room and of a call.
 *
 * A call is over when two things are: its verb (is_finished) and its exchange (is_closed). Either
 * may come first: a client leaves while storage works, or an answer is still on its way out. done
 * comes once both are. A request that takes too long is answered with 504 while its verb goes on;
 * what the verb says later is dropped.
 * Thread: a vg_api_loop and its calls belong to their loop. */
#include "api.h"

#include <errno.h>

#include "admission.h"
#include "api_int.h"
#include "base/alloc.h"
#include "base/uuid.h"
#include "claims.h"
#include "respond_int.h"
#include "server/schema/strconv.h"
#include "status_int.h"

/* ---- the process ---- */

static int choose_ranges(struct vg_api *api)
{
    api->ranges = api->opts.ranges;
    if (api->ranges)
        return 0;
    api->ranges = api->own_ranges = vg_new(struct vg_claim_ranges);
    return api->ranges ? vg_claim_ranges_parse(NULL, NULL, api->ranges, NULL) : -ENOMEM;
}

int vg_api_new(const struct vg_api_opts *opts, struct vg_api **ret_api)
{
    struct vg_api *api = vg_new(struct vg_api);
    if (!api)
        return -ENOMEM;
    api->opts = *opts;
    struct vg_api_opts *o = &api->opts;
    o->request_timeout_ms = o->request_timeout_ms ? o->request_timeout_ms : 60000;
    o->min_request_timeout_s = o->min_request_timeout_s ? o->min_request_timeout_s : 1800;
    o->body_max = o->body_max ? o->body_max : 3145728;
    o->body_depth = o->body_depth ? o->body_depth : VG_JSON_DEPTH_DEFAULT;
    o->git_version = o->git_version ? o->git_version : "v1.36.4+vigil";
    api->clock = o->clock ? o->clock : vg_clock_system();
    api->log = o->log;
    api->storage = o->storage;
    api->cacher = o->cacher;
    int r = o->seed ? 0 : vg_random_bytes(&o->seed, sizeof o->seed);
    if (r == 0)
        r = choose_ranges(api);
    if (r == 0)
        r = (api->admission = vg_new(struct vg_admission)) ? 0 : -ENOMEM;
    if (r == 0)
        vg_admission_init(api->admission, o->admission);
    if (r == 0)
        r = vg_discovery_new(api->opts.git_version, &api->discovery);
    if (r == 0 && o->metrics)
        r = vg_api_metrics_new(o->metrics, o->cacher, &api->counters);
    if (r < 0) {
        vg_api_free(api);
        return r;
    }
    *ret_api = api;
    return 0;
}

void vg_api_free(struct vg_api *api)
{
    if (!api)
        return;
    vg_api_metrics_free(api->counters);
    vg_discovery_free(api->discovery);
    vg_free(api->own_ranges);
    vg_free(api->admission);
    vg_free(api);
}

/* ---- a loop ---- */

int vg_api_loop_open(struct vg_api *api, struct vg_loop *loop, struct vg_api_loop **ret_loop)
{
    struct vg_api_loop *l = vg_new(struct vg_api_loop);
    if (!l)
        return -ENOMEM;
    l->api = api;
    l->loop = loop;
    vg_rng_seed(&l->rng, api->opts.seed ^ (uint64_t)(uintptr_t)l);
    vg_obj_sealed_init(&l->sealed);
    vg_list_init(&l->watches);
    vg_list_init(&l->calls);
    l->counts = vg_api_metrics_shard(api->counters);
    int r = vg_cache_port_open(api->cacher, loop, &l->port);
    if (r < 0) {
        vg_free(l);
        return r;
    }
    *ret_loop = l;
    return 0;
}

void vg_api_loop_close(struct vg_api_loop *l)
{
    if (!l)
        return;
    assert(vg_api_loop_is_idle(l));
    vg_timer_stop(l->loop, &l->tidy);
    vg_cache_port_close(l->port);
    vg_json_scratch_done(&l->scratch);
    vg_arena_done(&l->trial);
    vg_obj_sealed_done(&l->sealed);
    vg_free(l);
}

void vg_api_loop_drain(struct vg_api_loop *l)
{
    vg_cache_port_drain(l->port);
}

bool vg_api_loop_is_idle(const struct vg_api_loop *l)
{
    return vg_list_is_empty(&l->calls) && vg_list_is_empty(&l->watches);
}

struct vg_cache_port *vg_api_loop_port(struct vg_api_loop *l)
{
    return l->port;
}

const char *vg_api_audit_id(const struct vg_api_call *call, char room[VG_AUDIT_ID_SIZE])
{
    if (call->has_given_id)
        return call->audit.given;
    vg_uuid_write(call->audit.uuid, room);
    room[VG_UUID_TEXT] = 0;
    return room;
}

bool vg_api_is_unreadable(struct vg_api_call *call, size_t kind, const struct vg_obj_predicate *p,
                          struct vg_api_status *ret_status)
{
    struct vg_obj_key key;
    if (VG_LIKELY(!vg_cache_unreadable(call->loop->api->cacher, kind, p, &key)))
        return false;
    vg_status_unreadable(&call->ask->arena, ret_status, vg_obj_key_slice(&key));
    return true;
}

/* ---- the end of a call ---- */

static void bring_done(struct vg_mail *mail)
{
    struct vg_api_call *call = VG_CONTAINER_OF(mail, struct vg_api_call, mail);
    vg_call_ops(call)->done(call);
}

static void leave(struct vg_api_call *call)
{
    if (call->link.next)
        vg_list_remove(&call->link);
    if (call->ask && call->ask->deadline)
        vg_timer_stop(call->loop->loop, vg_steal(call->ask->deadline));
    call->op = NULL;
}

void vg_call_finish(struct vg_api_call *call)
{
    if (call->is_finished)
        return;
    call->is_finished = true;
    leave(call);
    if (vg_call_ops(call)->finished)
        vg_call_ops(call)->finished(call);
    if (call->is_closed) {
        call->mail.run = bring_done;
        vg_loop_post(call->loop->loop, &call->mail);
    } else if (!call->is_answered) {
        call->is_answered = true;
        vg_http_abort(call->x);
    }
}

void *vg_call_work(struct vg_api_call *call, size_t n)
{
    void *work = vg_arena_alloc(&call->ask->arena, n, _Alignof(max_align_t));
    if (work)
        return memset(work, 0, n);
    struct vg_api_status status;
    vg_status_no_memory(&status);
    vg_respond_status(call, &status);
    return NULL;
}

void vg_api_on_closed(struct vg_api_call *call, int err)
{
    if (call->is_closed)
        return;
    call->is_closed = true;
    const struct vg_api_op *op = call->op;
    if (!call->is_finished && op && op->closed) {
        op->closed(call, err); /* which finishes it, now or later: then by mail */
        return;
    }
    if (!call->is_finished) {
        call->is_finished = true;
        leave(call);
    }
    vg_call_ops(call)->done(call);
}

void vg_api_on_drained(struct vg_api_call *call)
{
    if (call->op && call->op->drained)
        call->op->drained(call);
}

void vg_api_on_progress(struct vg_api_call *call, size_t n)
{
    if (call->op && call->op->progress)
        call->op->progress(call, n);
}

/* ---- deadlines ---- */

struct deadline {
    struct vg_timer timer;
    struct vg_api_call *call;
};

static void expire(struct vg_timer *timer)
{
    struct vg_api_call *call = VG_CONTAINER_OF(timer, struct deadline, timer)->call;
    struct vg_api_status status;
    if (call->is_answered)
        return; /* its body is on its way; how slowly is the connection's business */
    vg_status_timeout(&call->ask->arena, &status,
                      "request did not complete within the allotted timeout");
    vg_call_answer_early(call, &status);
}

static int start_deadline(struct vg_api_call *call, struct vg_api_status *ret_status)
{
    uint64_t ms = call->loop->api->opts.request_timeout_ms;
    struct vg_slice text = vg_query_get(call->ask->target, "timeout");
    if (text.n) {
        struct vg_slice why;
        int64_t ns;
        int r = vg_duration_parse(&call->ask->arena, text, &ns, &why);
        if (r == VIGIL_E_INVALID)
            vg_status_bad_request(&call->ask->arena, ret_status,
                                  "invalid timeout specified in the request URL - %.*s",
                                  VG_SLICE_ARG(why));
        else if (r < 0)
            vg_status_from_err(&call->ask->arena, ret_status, r, NULL);
        if (r < 0)
            return r;
        uint64_t wanted = ns > 0 ? (uint64_t)ns / VG_NS_PER_MS : ms;
        ms = VG_MIN(ms, VG_MAX(wanted, 1));
    }
    struct deadline *d = vg_arena_new(&call->ask->arena, struct deadline);
    if (!d) {
        vg_status_from_err(&call->ask->arena, ret_status, -ENOMEM, NULL);
        return -ENOMEM;
    }
    *d = (struct deadline){.call = call};
    call->ask->deadline = &d->timer;
    vg_timer_start(call->loop->loop, &d->timer, ms * VG_NS_PER_MS, expire);
    return 0;
}

/* ---- serving ---- */

static bool is_list(const struct vg_target *t)
{
    return t->verb == VG_API_LIST || t->verb == VG_API_DELETECOLLECTION;
}

static void serve_verb(struct vg_api_call *call)
{
    static void (*const verbs[])(struct vg_api_call *) = {
        [VG_API_GET] = vg_api_get,       [VG_API_LIST] = vg_api_list,
        [VG_API_WATCH] = vg_api_watch,   [VG_API_CREATE] = vg_api_create,
        [VG_API_UPDATE] = vg_api_update, [VG_API_PATCH] = vg_api_patch,
        [VG_API_DELETE] = vg_api_delete, [VG_API_DELETECOLLECTION] = vg_api_deletecollection,
    };
    verbs[call->ask->target->verb](call);
}

static bool is_transformable(const struct vg_target *t)
{
    return (!t->sub || t->sub->type != VG_SUB_SCALE) && !vg_kind_is(t->kind, VG_KIND_NOT_STORED);
}

/* What is only called has no columns. */
static bool is_tabular(const struct vg_target *t)
{
    return !vg_kind_is(t->kind, VG_KIND_NOT_STORED) || (t->kind->verbs & VG_VERB_GET);
}

/* What can be told from method, path and Accept alone. 0: go on. */
static int check(struct vg_api_call *call, struct vg_api_status *ret_status)
{
    const struct vg_target *t = call->ask->target;
    bool is_resource = t->type == VG_TARGET_RESOURCE;
    int r = is_resource && t->verb == VG_API_WATCH ? 0 : start_deadline(call, ret_status);
    if (r < 0)
        return r;
    if (t->type == VG_TARGET_NO_RESOURCE) {
        vg_status_no_resource(ret_status);
        return VIGIL_E_NOT_FOUND;
    }
    bool is_method =
        is_resource ? t->verb != VG_API_NONE : vg_http_request(call->x)->method == VG_HTTP_GET;
    if (!is_method) {
        vg_status_method(ret_status);
        return VIGIL_E_UNSUPPORTED;
    }
    if (!is_resource)
        return 0;
    struct vg_media_scope scope = {.is_list = is_list(t),
                                   .is_watch = t->verb == VG_API_WATCH,
                                   .is_transformable = is_transformable(t),
                                   .is_tabular = is_tabular(t)};
    return vg_media_negotiate(call->x, t, &scope, &call->ask->arena, &call->ask->media, ret_status);
}

/* A refusal is written as asked too, if it can be known how; else as indented JSON. */
static void choose_look(struct vg_api_call *call)
{
    struct vg_media_scope scope = {.is_list = false};
    struct vg_api_status ignored;
    if (vg_media_negotiate(call->x, call->ask->target, &scope, &call->ask->arena, &call->ask->media,
                           &ignored) < 0)
        call->ask->media = (struct vg_media){.type = VG_MEDIA_JSON, .is_pretty = true};
}

void vg_api_serve(struct vg_api_call *call)
{
    struct vg_api_status status;
    vg_list_push_back(&call->loop->calls, &call->link);
    if (call->ask->target->type == VG_TARGET_OTHER) {
        vg_api_other(call);
        return;
    }
    if (check(call, &status) < 0) {
        choose_look(call);
        vg_respond_status(call, &status);
        return;
    }
    if (call->ask->target->type != VG_TARGET_RESOURCE) {
        call->ask->media.is_pretty = vg_media_is_pretty(call->x, call->ask->target);
        vg_api_discover(call);
        return;
    }
    if (call->ask->target->sub && call->ask->target->sub->type == VG_SUB_CONNECT) {
        vg_api_connect(call);
        return;
    }
    if (call->ask->target->kind->deprecation)
        vg_call_warn(call, "%s", call->ask->target->kind->deprecation);
    serve_verb(call);
}
