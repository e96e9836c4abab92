/* watch.c - WATCH: a sink of the cacher that writes to an exchange.
 *
 *   options -> wait until fresh (state of now, or of N) -> vg_cache_watch -> head -> frames ... end
 *
 *   resourceVersion  sendInitialEvents   begins with
 *   unset            true (default)      the state, at least as new as storage; end bookmark
 *   0                true (default)      the state, of any age; end bookmark
 *   N                true                the state, at least N; end bookmark
 *   N                unset, false        what follows N, which may lie in the future
 *   unset, 0         false               what follows storage's revision, the cache's
 *   unset, 0         by a watch/ path    the state of any age, no end bookmark
 *
 * Once it has started, nothing of the request is kept but what is in struct watch: head, arena and
 * target go. An event costs no allocation: its frame is handed on as slices under the block's pin.
 * What goes wrong before the stream is an answer; later it is an ERROR event and the end.
 * Thread: the call's loop. */
#include <errno.h>

#include "base/alloc.h"
#include "metrics.h"
#include "options.h"
#include "respond_int.h"
#include "status_int.h"

/* 100 years, so that sums of nanoseconds stay far from their end. */
#define TIMEOUT_S_MAX (INT64_C(100) * 365 * 24 * 3600)

struct watch {
    struct vg_sink sink;
    struct vg_api_call *call;
    struct vg_cache_watcher *w; /* NULL: over */
    struct vg_list link;        /* in the loop's watches */
    const struct vg_kind *kind;
    struct vg_watch_count *count; /* NULL: not counted */
    uint64_t events, bytes;
    size_t pinned; /* told to the cacher, while full */
    vg_rev after;  /* where it started, for the message of a 410 */
    uint8_t form;
    bool is_full, is_settled;
    bool is_list;  /* begins with a state whose end is marked */
    uint8_t scope; /* enum vg_watch_scope */
    uint16_t ns_n, label_n, field_n;
    char texts[]; /* namespace, label selector, field selector: for the debug endpoint */
};

/* While it is being started; in the arena. */
struct starting {
    struct vg_api_call *call;
    struct vg_list_options opts;
    enum vg_watch_start start;
    vg_rev rev; /* to start after, or to wait for */
    bool with_end_bookmark;
    bool is_waiting;
    struct vg_cache_wait wait;
};

/* ---- the sink ---- */

/* A bookmark is an empty object, of whatever form the watch has. */
static bool is_bookmark(const struct vg_frame *f)
{
    return vg_slice_has_prefix(f->splice.v[0], VG_SLICE_LIT("{\"type\":\"BOOKMARK\""));
}

static int write_bookmark(struct watch *w, const struct vg_frame *f)
{
#define PARTIAL                                                                                    \
    "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":"
    static const struct vg_slice heads[VG_FORMS] = {
        [VG_FORM_PARTIAL] =
            VG_SLICE_LIT(PARTIAL "\"meta.k8s.io/v1\",\"metadata\":{\"resourceVersion\":\""),
        [VG_FORM_PARTIAL_V1BETA1] =
            VG_SLICE_LIT(PARTIAL "\"meta.k8s.io/v1beta1\",\"metadata\":{\"resourceVersion\":\""),
    };
    struct vg_slice v[4] = {heads[w->form], f->splice.v[1], f->splice.v[2], VG_SLICE_LIT("}}\n")};
    return vg_http_write(w->call->x, v, VG_ARRAY_LEN(v), NULL);
}

static void count(struct watch *w)
{
    vg_watch_count_add(&w->count->events);
    if (VG_UNLIKELY(!w->is_settled))
        vg_watch_count_add(&w->count->init_events);
}

static int on_write(struct vg_sink *sink, const struct vg_frame *f)
{
    struct watch *w = VG_CONTAINER_OF(sink, struct watch, sink);
    int r;
    if (VG_UNLIKELY(w->form && is_bookmark(f))) {
        r = write_bookmark(w, f);
    } else {
        struct vg_http_pin pin = {f->block, f->ref, f->unref};
        r = vg_http_write(w->call->x, f->splice.v, f->splice.n, f->block ? &pin : NULL);
    }
    w->events++;
    if (w->count)
        count(w);
    w->bytes += vg_frame_size(f);
    if (r == VG_HTTP_FULL) {
        w->is_full = true;
        w->pinned = vg_http_unsent(w->call->x);
        vg_cache_watcher_pins(w->w, (int64_t)w->pinned);
    }
    return r; /* open and full are the same numbers on both sides */
}
_Static_assert((int)VG_HTTP_OPEN == (int)VG_SINK_OPEN && (int)VG_HTTP_FULL == (int)VG_SINK_FULL,
               "answers of a sink and of an exchange");

static void settle(struct watch *w)
{
    if (w->is_settled)
        return;
    w->is_settled = true;
    if (w->is_list)
        vg_api_count_watch_list(w->call->loop->api->counters, vg_kind_index(w->kind), w->scope,
                                vg_clock_mono_ns(w->call->loop->api->clock) - w->call->started_ns);
    if (w->call->settled)
        w->call->settled(w->call);
}

static void on_live(struct vg_sink *sink)
{
    settle(VG_CONTAINER_OF(sink, struct watch, sink));
}

/* {"type":"ERROR","object":STATUS}, the last event. */
static void write_error(struct vg_api_call *call, const struct vg_api_status *status)
{
    VG_AUTO(buf) b = {0};
    int r = vg_buf_printf(&b, "{\"type\":\"ERROR\",\"object\":");
    if (r == 0)
        r = vg_api_status_write(&b, status);
    if (r == 0)
        r = vg_buf_append(&b, "}\n", 2);
    struct vg_slice text = vg_buf_slice(&b);
    if (r == 0)
        r = vg_http_write(call->x, &text, 1, NULL);
    if (r < 0)
        vg_http_abort(call->x);
}

static void say_expired(struct vg_arena *a, const struct vg_kind *kind, vg_rev after, vg_rev oldest,
                        struct vg_api_status *ret)
{
    if (vg_kind_is(kind, VG_KIND_UNCACHED))
        vg_status_expired(a, ret, "The resourceVersion for the provided watch is too old.");
    else
        vg_status_expired(a, ret, "too old resource version: %llu (%llu)",
                          (unsigned long long)after, (unsigned long long)oldest);
}

static void over(struct watch *w)
{
    struct vg_api_call *call = w->call;
    call->bytes_out = w->bytes;
    vg_list_remove(&w->link);
    vg_free(w);
    call->state = NULL;
    vg_call_finish(call);
}

static void on_end(struct vg_sink *sink, enum vg_watch_end why, uint64_t oldest)
{
    struct watch *w = VG_CONTAINER_OF(sink, struct watch, sink);
    struct vg_api_call *call = w->call;
    struct vg_api_status status;
    w->w = NULL;
    if (why == VG_END_EXPIRED) {
        say_expired(&call->arena, w->kind, w->after, oldest, &status);
        write_error(call, &status);
    } else if (why == VG_END_INTERNAL) {
        vg_status_internal(&call->arena, &status, "the watch cannot go on");
        write_error(call, &status);
    }
    if (why == VG_END_STALLED || why == VG_END_PINNED) {
        vg_api_count_terminated(call->loop->api->counters, vg_kind_index(w->kind));
        vg_http_abort(call->x); /* it takes nothing */
    } else if (why != VG_END_GONE) {
        vg_http_end(call->x);
    }
    over(w);
}

static const struct vg_sink_ops sink_ops = {.write = on_write, .end = on_end, .live = on_live};

/* ---- the exchange ---- */

static void unpin(struct watch *w, size_t left)
{
    if (left < w->pinned) {
        vg_cache_watcher_pins(w->w, (int64_t)left - (int64_t)w->pinned);
        w->pinned = left;
    }
}

static void on_drained(struct vg_api_call *call)
{
    struct watch *w = call->state;
    if (!w->is_full)
        return;
    w->is_full = false;
    unpin(w, 0);
    vg_cache_watcher_drained(w->w);
}

static void on_progress(struct vg_api_call *call, size_t n)
{
    struct watch *w = call->state;
    (void)n;
    if (!w->is_full)
        return;
    unpin(w, vg_http_unsent(call->x));
    vg_cache_watcher_progress(w->w);
}

static void on_closed(struct vg_api_call *call, int err)
{
    struct watch *w = call->state;
    (void)err;
    vg_cache_watcher_stop(vg_steal(w->w));
    over(w);
}

static const struct vg_api_op watch_op = {
    .drained = on_drained, .progress = on_progress, .closed = on_closed};

/* ---- starting ---- */

static void refuse(struct starting *s, const struct vg_api_status *status)
{
    vg_list_options_done(&s->opts);
    s->call->op = NULL;
    vg_respond_status(s->call, status);
}

static int open_stream(struct vg_api_call *call)
{
    struct vg_head_opts opts = {.code = 200,
                                .content_type = "application/json",
                                .length = VG_HTTP_STREAMED,
                                .is_watch = true};
    if (!vg_http_request(call->x)->wants_websocket)
        return vg_respond_head_opts(call, &opts);
    if (call->is_closed || call->is_answered)
        return VIGIL_E_CANCELED;
    call->is_answered = true;
    call->status_code = 101;
    return vg_http_accept_websocket(call->x, NULL, false);
}

/* The stream consists of this error, or of nothing. */
static void end_at_once(struct starting *s, const struct vg_api_status *status)
{
    struct vg_api_call *call = s->call;
    vg_list_options_done(&s->opts);
    call->op = NULL;
    if (open_stream(call) == 0) {
        if (status)
            write_error(call, status);
        vg_http_end(call->x);
    }
    vg_call_finish(call);
}

static struct watch *watch_new(struct starting *s)
{
    const struct vg_slice texts[] = {s->call->target->ns, s->opts.label_selector,
                                     s->opts.field_selector};
    size_t n[3], total = 0;
    for (size_t i = 0; i < 3; i++)
        total += n[i] = VG_MIN(texts[i].n, (size_t)1024);
    struct watch *w = vg_calloc(1, sizeof *w + total);
    if (!w)
        return NULL;
    char *at = w->texts;
    for (size_t i = 0; i < 3; i++) {
        if (n[i])
            memcpy(at, texts[i].p, n[i]);
        at += n[i];
    }
    w->ns_n = (uint16_t)n[0];
    w->label_n = (uint16_t)n[1];
    w->field_n = (uint16_t)n[2];
    w->sink.ops = &sink_ops;
    w->call = s->call;
    w->kind = s->call->target->kind;
    w->after = s->rev;
    w->count = s->call->loop->counts ? &s->call->loop->counts[vg_kind_index(w->kind)] : NULL;
    const struct vg_media *m = &s->call->media;
    if (m->transform == VG_AS_PARTIAL)
        w->form = m->is_v1beta1 ? VG_FORM_PARTIAL_V1BETA1 : VG_FORM_PARTIAL;
    w->is_list = s->opts.send_initial == VG_TRI_TRUE;
    w->scope = s->opts.is_name_pinned ? VG_SCOPE_RESOURCE
               : w->ns_n              ? VG_SCOPE_NAMESPACE
                                      : VG_SCOPE_CLUSTER;
    vg_list_init(&w->link);
    return w;
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
static void started(struct starting *s, struct watch *w)
{
    struct vg_api_call *call = s->call;
    bool is_settled = s->start != VG_WATCH_STATE || vg_kind_is(w->kind, VG_KIND_UNCACHED);
    vg_list_options_done(&s->opts);
    call->state = w;
    call->op = &watch_op;
    vg_list_push_back(&call->loop->watches, &w->link);
    if (open_stream(call) < 0) {
        on_closed(call, 0);
        return;
    }
    vg_http_release_request(call->x);
    vg_arena_done(&call->arena); /* with *s */
    call->warnings = NULL;
    call->n_warnings = 0;
    if (is_settled)
        settle(w);
}

static void start(struct starting *s)
{
    struct vg_api_call *call = s->call;
    struct vg_api_status status;
    struct watch *w = watch_new(s);
    vg_rev oldest = 0;
    if (!w) {
        vg_status_no_memory(&status);
        refuse(s, &status);
        return;
    }
    struct vg_cache_watch_opts opts = {
        .kind = vg_kind_index(w->kind),
        .predicate = s->opts.predicate,
        .start = s->start,
        .rev = s->rev,
        .with_bookmarks = s->opts.allow_bookmarks,
        .with_end_bookmark = s->with_end_bookmark,
        .timeout_ms = timeout_ms(s),
        .form = w->form,
        .sink = &w->sink,
    };
    int r = vg_cache_watch(call->loop->port, &opts, &w->w, &oldest);
    if (r == 0) {
        started(s, w);
        return;
    }
    const struct vg_kind *kind = w->kind;
    vg_free(w);
    if (r == VIGIL_E_COMPACTED) {
        say_expired(&call->arena, kind, s->rev, oldest, &status);
        end_at_once(s, &status);
    } else if (r == VIGIL_E_BUSY) {
        vg_status_too_many(&call->arena, &status, vg_cacher_retry_after_s(call->loop->api->cacher),
                           "storage is (re)initializing");
        refuse(s, &status);
    } else {
        vg_status_from_err(&call->arena, &status, r, NULL);
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
        start(s);
        return;
    }
    vg_status_too_large_rev(&s->call->arena, &status, s->rev,
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

static void start_when_fresh(struct starting *s)
{
    struct vg_cacher *c = s->call->loop->api->cacher;
    bool is_uncached = vg_kind_is(s->call->target->kind, VG_KIND_UNCACHED);
    if (is_uncached || !vg_cacher_is_ready(c) ||
        vg_cache_port_revision(s->call->loop->port) >= s->rev) {
        start(s);
        return;
    }
    s->is_waiting = true;
    s->call->state = s;
    s->call->op = &starting_op;
    vg_cache_wait_fresh(s->call->loop->port, s->rev, &s->wait, on_fresh);
}

/* ---- the request ---- */

static int read_rev(struct starting *s, struct vg_api_status *ret_status)
{
    struct vg_slice why;
    if (vg_rev_is_unset(s->opts.rev))
        return 0;
    int r = vg_rev_parse(&s->call->arena, s->opts.rev, &s->rev, &why);
    if (r == VIGIL_E_INVALID)
        vg_status_unknown(&s->call->arena, ret_status, "%.*s", VG_SLICE_ARG(why));
    else if (r < 0)
        vg_status_no_memory(ret_status);
    return r;
}

/* The table above. Says whether to wait for s->rev first. */
static bool plan(struct starting *s)
{
    bool is_unset = vg_rev_is_unset(s->opts.rev);
    bool is_of_path = s->call->target->is_legacy_watch && s->opts.send_initial == VG_TRI_UNSET;
    if (s->opts.send_initial == VG_TRI_TRUE) {
        s->start = VG_WATCH_STATE;
        s->with_end_bookmark = s->opts.allow_bookmarks;
        if (is_unset)
            s->rev = vg_cache_consistent_rev(s->call->loop->api->cacher);
        return s->rev > 0;
    }
    if (s->rev > 0)
        s->start = VG_WATCH_AFTER;
    else if (is_of_path)
        s->start = VG_WATCH_STATE;
    else if (is_unset) {
        s->start = VG_WATCH_AFTER;
        s->rev = vg_cache_consistent_rev(s->call->loop->api->cacher);
    } else {
        s->start = VG_WATCH_NOW;
    }
    return false;
}

static bool may_upgrade(struct vg_api_call *call, struct vg_api_status *ret_status)
{
    if (!vg_http_request(call->x)->wants_websocket || vg_http_field(call->x, "origin").n)
        return true;
    vg_status_forbidden(&call->arena, ret_status, NULL, VG_SLICE_LIT(""),
                        "a WebSocket needs an Origin");
    return false;
}

void vg_api_watch(struct vg_api_call *call)
{
    struct vg_api_status status;
    struct starting *s = vg_arena_new(&call->arena, struct starting);
    if (!s) {
        vg_status_no_memory(&status);
        vg_respond_status(call, &status);
        return;
    }
    memset(s, 0, sizeof *s);
    s->call = call;
    int r = vg_list_options_parse(call->target, &call->arena, &s->opts, &status);
    if (r == 0)
        r = read_rev(s, &status);
    if (r < 0 || !may_upgrade(call, &status)) {
        refuse(s, &status);
        return;
    }
    bool waits = plan(s);
    if (s->opts.timeout_s < 0)
        end_at_once(s, NULL);
    else if (waits)
        start_when_fresh(s);
    else
        start(s);
}

/* ---- looking at what runs ---- */

void vg_api_each_watch(struct vg_api_loop *l,
                       void (*each)(void *arg, const struct vg_api_watch_info *info), void *arg)
{
    VG_LIST_FOREACH (n, &l->watches) {
        const struct watch *w = VG_CONTAINER_OF(n, struct watch, link);
        const char *label = w->texts + w->ns_n, *field = label + w->label_n;
        struct vg_api_watch_info info = {
            .call = w->call,
            .kind = w->kind,
            .ns = vg_slice(w->texts, w->ns_n),
            .label_selector = vg_slice(label, w->label_n),
            .field_selector = vg_slice(field, w->field_n),
            .user = w->call->user ? w->call->user->name : VG_SLICE_LIT(""),
            .started_ns = w->call->started_ns,
            .events = w->events,
            .bytes = w->bytes,
            .unsent = vg_http_unsent(w->call->x),
            .rev = w->w ? vg_cache_watcher_revision(w->w) : 0,
        };
        each(arg, &info);
    }
}
