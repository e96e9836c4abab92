/* watch_start.c - WATCH: how it begins.
 *
 *   options -> wait until fresh (state of now, or of N) -> vg_cache_watch -> head -> frames ... end
 *                        ^------- wait until ready -------------'
 *
 *   resourceVersion  sendInitialEvents   begins with
 *   unset            true (default)      the state, at least as new as storage; end bookmark
 *   0                true (default)      the state, of any age; end bookmark
 *   N                true                the state, at least N; end bookmark
 *   N                unset, false        what follows N, which may lie in the future
 *   unset, 0         false               what follows storage's revision, the cache's
 *   unset, 0         by a watch/ path    the state of any age, no end bookmark
 *
 * Once it has started, nothing of the request is kept but what is in struct vg_api_watch: head,
 * arena and target go. What goes wrong before the stream is an answer; later it is an ERROR event
 * and the end. Thread: the call's loop. */
#include "status_int.h"
#include "watch_int.h"

/* 100 years, so that sums of nanoseconds stay far from their end. */
#define TIMEOUT_S_MAX (INT64_C(100) * 365 * 24 * 3600)

/* While it is being started; in the arena. */
struct starting {
    struct vg_api_call *call;
    struct vg_list_options opts;
    enum vg_watch_start start;
    enum vg_table_include include;
    vg_rev rev; /* to start after, or to wait for */
    bool with_end_bookmark;
    bool from_newest; /* rev is the store's of now, as far as it is known here */
    bool is_waiting;
    bool was_held; /* until the cache was ready */
    struct vg_cache_wait wait;
};

/* ---- starting ---- */

static void refuse(struct starting *s, const struct vg_api_status *status)
{
    vg_list_options_done(&s->opts);
    s->call->op = NULL;
    vg_respond_status(s->call, status);
}

static uint8_t form_of(const struct vg_api_call *call)
{
    const struct vg_media *m = &call->ask->media;
    const struct vg_kind *kind = call->ask->target->kind;
    if (m->transform == VG_AS_TABLE)
        return 0; /* made of what is stored, for each watcher (watch.c) */
    unsigned form = m->type == VG_MEDIA_PROTOBUF
                        ? VG_FORM_PROTOBUF + (unsigned)vg_media_protobuf_as(m)
                    : m->transform != VG_AS_PARTIAL ? 0
                    : m->is_v1beta1                 ? VG_FORM_PARTIAL_V1BETA1
                                                    : VG_FORM_PARTIAL;
    return (uint8_t)(kind->stored ? VG_FORM_OTHER_VERSION + form : form);
}

static bool is_without_length(const struct vg_api_call *call)
{
    return call->ask->media.type == VG_MEDIA_PROTOBUF && vg_http_request(call->x)->wants_websocket;
}

static int open_stream(struct vg_api_call *call)
{
    bool is_protobuf = call->ask->media.type == VG_MEDIA_PROTOBUF;
    struct vg_head_opts opts = {.code = 200,
                                .content_type =
                                    is_protobuf ? VG_PROTOBUF_STREAM : "application/json",
                                .length = VG_HTTP_STREAMED,
                                .is_watch = true};
    if (!vg_http_request(call->x)->wants_websocket)
        return vg_respond_head_opts(call, &opts);
    if (call->is_closed || call->is_answered)
        return VIGIL_E_CANCELED;
    call->is_answered = true;
    call->status_code = 101;
    return vg_http_accept_websocket(call->x, NULL, is_protobuf);
}

/* The stream consists of this error, or of nothing. */
static void end_at_once(struct starting *s, const struct vg_api_status *status)
{
    struct vg_api_call *call = s->call;
    vg_list_options_done(&s->opts);
    call->op = NULL;
    if (open_stream(call) == 0) {
        if (status)
            vg_watch_write_error(call, status);
        vg_http_end(call->x);
    }
    vg_call_finish(call);
}

static struct vg_api_watch watch_of(const struct starting *s)
{
    const struct vg_target *target = s->call->ask->target;
    return (struct vg_api_watch){
        .sink.ops = &vg_watch_sink_ops,
        .kind = target->kind,
        .form = form_of(s->call),
        .is_without_length = is_without_length(s->call),
        .is_table = s->call->ask->media.transform == VG_AS_TABLE,
        .is_v1beta1 = s->call->ask->media.is_v1beta1,
        .include = (uint8_t)s->include,
        .is_list = s->opts.send_initial == VG_TRI_TRUE,
        .scope = s->opts.is_name_pinned ? VG_SCOPE_RESOURCE
                 : target->ns.n         ? VG_SCOPE_NAMESPACE
                                        : VG_SCOPE_CLUSTER,
    };
}

static uint64_t timeout_ms(struct starting *s)
{
    struct vg_api_loop *l = s->call->loop;
    if (s->opts.timeout_s > 0)
        return (uint64_t)VG_MIN(s->opts.timeout_s, TIMEOUT_S_MAX) * 1000;
    uint64_t min_ms = l->api->opts.min_request_timeout_s * 1000;
    return min_ms + vg_rng_below(&l->rng, min_ms);
}

/* The watcher is there; its first frame comes on a later turn. */
static void started(struct starting *s, struct vg_cache_watcher *watcher)
{
    struct vg_api_call *call = s->call;
    bool is_settled = s->start != VG_WATCH_STATE || vg_kind_is(call->watch.kind, VG_KIND_UNCACHED);
    vg_list_options_done(&s->opts);
    call->state = watcher;
    call->op = &vg_watch_op;
    vg_list_remove(&call->link);
    vg_list_push_back(&call->loop->watches, &call->link);
    if (open_stream(call) < 0) {
        vg_watch_op.closed(call, 0);
        return;
    }
    vg_http_release_request(call->x);
    vg_arena_done(&call->ask->arena); /* with *s */
    call->ask->warnings = NULL;
    call->ask->n_warnings = 0;
    if (is_settled)
        vg_watch_settle(call);
}

static void refuse_not_ready(struct starting *s)
{
    struct vg_api_status status;
    vg_status_too_many(&s->call->ask->arena, &status,
                       vg_cacher_retry_after_s(s->call->loop->api->cacher),
                       "storage is (re)initializing");
    refuse(s, &status);
}

static void hold(struct starting *s);

static void start(struct starting *s)
{
    struct vg_api_call *call = s->call;
    struct vg_api_status status;
    const struct vg_kind *kind = call->watch.kind;
    struct vg_cache_watcher *watcher;
    vg_rev oldest = 0;
    if (vg_api_is_unreadable(call, vg_kind_index(kind), s->opts.predicate, &status)) {
        refuse(s, &status);
        return;
    }
    struct vg_cache_watch_opts opts = {
        .kind = vg_kind_index(kind),
        .predicate = s->opts.predicate,
        .start = s->start,
        .rev = s->rev,
        .with_bookmarks = s->opts.allow_bookmarks,
        .with_end_bookmark = s->with_end_bookmark,
        .timeout_ms = timeout_ms(s),
        .form = call->watch.form,
        .sink = &call->watch.sink,
    };
    int r = vg_cache_watch(call->loop->port, &opts, &watcher, &oldest);
    if (r == 0) {
        started(s, watcher);
        return;
    }
    if (r == VIGIL_E_COMPACTED) {
        vg_watch_say_expired(&call->ask->arena, kind, s->rev, oldest, &status);
        end_at_once(s, &status);
    } else if (r == VIGIL_E_BUSY) {
        hold(s);
    } else {
        vg_status_from_err(&call->ask->arena, &status, r, NULL);
        refuse(s, &status);
    }
}

/* ---- waiting until fresh ---- */

static void on_fresh(struct vg_cache_wait *wait, int err)
{
    struct starting *s = VG_CONTAINER_OF(wait, struct starting, wait);
    struct vg_api_status status;
    s->is_waiting = false;
    if (err == 0) {
        s->rev = wait->rev;
        start(s);
        return;
    }
    if (err != VIGIL_E_FUTURE) {
        vg_status_from_err(&s->call->ask->arena, &status, err, NULL);
        refuse(s, &status);
        return;
    }
    vg_status_too_large_rev(&s->call->ask->arena, &status, s->rev,
                            vg_cacher_revision(s->call->loop->api->cacher), true);
    end_at_once(s, &status);
}

static void on_closed_early(struct vg_api_call *call, int err)
{
    struct starting *s = call->state;
    (void)err;
    if (s->is_waiting)
        vg_cache_wait_cancel(&s->wait);
    vg_list_options_done(&s->opts);
    vg_call_finish(call);
}

static const struct vg_api_op starting_op = {.closed = on_closed_early};

static void wait_here(struct starting *s)
{
    s->is_waiting = true;
    s->call->state = s;
    s->call->op = &starting_op;
}

static void start_when_fresh(struct starting *s)
{
    struct vg_cacher *c = s->call->loop->api->cacher;
    bool is_uncached = vg_kind_is(s->call->ask->target->kind, VG_KIND_UNCACHED);
    vg_rev newest;
    bool must_ask = s->from_newest && !vg_cache_knows_newest(c, &newest);
    bool is_there = is_uncached || vg_cache_port_revision(s->call->loop->port) >= s->rev;
    if (!vg_cacher_is_ready(c) || (is_there && !must_ask)) {
        start(s);
        return;
    }
    wait_here(s);
    if (must_ask)
        vg_cache_wait_consistent(s->call->loop->port, &s->wait, on_fresh);
    else
        vg_cache_wait_fresh(s->call->loop->port, s->rev, &s->wait, on_fresh);
}

/* ---- waiting until ready ---- */

static void on_ready(struct vg_cache_wait *wait, int err)
{
    struct starting *s = VG_CONTAINER_OF(wait, struct starting, wait);
    s->is_waiting = false;
    if (err < 0)
        refuse_not_ready(s);
    else
        start_when_fresh(s);
}

/* Once: what is lost again meanwhile is not there soon. */
static void hold(struct starting *s)
{
    bool is_again = s->was_held;
    s->was_held = true;
    if (is_again || vg_cache_wait_ready(s->call->loop->port, &s->wait, on_ready) < 0)
        refuse_not_ready(s);
    else
        wait_here(s);
}

/* ---- the request ---- */

static int read_rev(struct starting *s, struct vg_api_status *ret_status)
{
    struct vg_slice why;
    if (vg_rev_is_unset(s->opts.rev))
        return 0;
    int r = vg_rev_parse(&s->call->ask->arena, s->opts.rev, &s->rev, &why);
    if (r == VIGIL_E_INVALID)
        vg_status_unknown(&s->call->ask->arena, ret_status, "%.*s", VG_SLICE_ARG(why));
    else if (r < 0)
        vg_status_no_memory(ret_status);
    return r;
}

/* From what is current now. True: that has to be asked for. */
static bool set_newest(struct starting *s)
{
    s->from_newest = true;
    return !vg_cache_knows_newest(s->call->loop->api->cacher, &s->rev);
}

/* The table above. Says whether to wait for s->rev first. */
static bool plan(struct starting *s)
{
    bool is_unset = vg_rev_is_unset(s->opts.rev);
    bool is_of_path = s->call->ask->target->is_legacy_watch && s->opts.send_initial == VG_TRI_UNSET;
    if (s->opts.send_initial == VG_TRI_TRUE) {
        s->start = VG_WATCH_STATE;
        s->with_end_bookmark = s->opts.allow_bookmarks;
        if (is_unset)
            (void)set_newest(s);
        return s->rev > 0;
    }
    if (s->rev > 0)
        s->start = VG_WATCH_AFTER;
    else if (is_of_path)
        s->start = VG_WATCH_STATE;
    else if (is_unset) {
        s->start = VG_WATCH_AFTER;
        return set_newest(s);
    } else {
        s->start = VG_WATCH_NOW;
    }
    return false;
}

static bool may_upgrade(struct vg_api_call *call, struct vg_api_status *ret_status)
{
    if (!vg_http_request(call->x)->wants_websocket || vg_http_field(call->x, "origin").n)
        return true;
    vg_status_forbidden(&call->ask->arena, ret_status, NULL, VG_SLICE_LIT(""),
                        "a WebSocket needs an Origin");
    return false;
}

void vg_api_watch(struct vg_api_call *call)
{
    struct vg_api_status status;
    struct starting *s = vg_call_new(call, struct starting);
    if (!s)
        return;
    s->call = call;
    int r = vg_list_options_parse(call->ask->target, &call->ask->arena, &s->opts, &status);
    if (r == 0)
        r = read_rev(s, &status);
    if (r == 0 && call->ask->media.transform == VG_AS_TABLE)
        r = vg_table_include(call->ask->target, &call->ask->arena, &s->include, &status);
    if (r < 0 || !may_upgrade(call, &status)) {
        refuse(s, &status);
        return;
    }
    bool waits = plan(s);
    call->watch = watch_of(s);
    if (s->opts.timeout_s < 0)
        end_at_once(s, NULL);
    else if (waits)
        start_when_fresh(s);
    else
        start(s);
}
