/* watch.c - a watch that runs: a sink of the cacher that writes to an exchange.
 * An event costs no allocation: its frame is handed on as slices under the block's pin. What goes
 * wrong is an ERROR event and the end; how it starts is in watch_start.c. Thread: the call's loop.
 */
#include "watch_int.h"

/* ---- the sink ---- */

/* The length before a frame of protobuf; a WebSocket's messages have their own. */
#define LENGTH_BYTES 4u

static struct vg_api_call *call_of(struct vg_sink *sink)
{
    return VG_CONTAINER_OF(sink, struct vg_api_call, watch.sink);
}

static int write_slices(struct vg_api_call *call, const struct vg_slice *v, size_t n,
                        const struct vg_http_pin *pin)
{
    if (VG_LIKELY(!call->watch.is_without_length))
        return vg_http_write(call->x, v, n, pin);
    struct vg_slice own[VG_OBJ_SLICES_MAX];
    memcpy(own, v, n * sizeof *own);
    own[0] = vg_slice(own[0].p + LENGTH_BYTES, own[0].n - LENGTH_BYTES);
    return vg_http_write(call->x, own, n, pin);
}

/* A bookmark is an empty object, of whatever form the watch has. */
static bool is_bookmark(const struct vg_frame *f)
{
    return vg_slice_has_prefix(f->splice.v[0], VG_SLICE_LIT("{\"type\":\"BOOKMARK\""));
}

/* In the version of the watch: the frame has the revision and what closes the metadata. */
static int other_bookmark(const struct vg_api_watch *w, const struct vg_frame *f,
                          struct vg_buf *out)
{
    return vg_buf_printf(out,
                         "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{"
                         "\"resourceVersion\":\"%.*s%.*s%s}",
                         w->kind->kind, w->kind->api_version, VG_SLICE_ARG(f->splice.v[1]),
                         VG_SLICE_ARG(f->splice.v[2]), w->kind->bookmark_tail);
}

/* The frame's JSON is the kind's own bookmark: what stands between the event's head and tail. */
static int write_protobuf_bookmark(struct vg_api_call *call, const struct vg_frame *f)
{
    const struct vg_api_watch *w = &call->watch;
    static const struct vg_slice head = VG_SLICE_LIT("{\"type\":\"BOOKMARK\",\"object\":");
    VG_AUTO(buf) json = {0};
    VG_AUTO(buf) body = {0};
    struct vg_obj_splice s = {.n = 0};
    bool is_other = w->form >= VG_FORM_OTHER_VERSION;
    int r = is_other ? other_bookmark(w, f, &json) : vg_obj_splice_append(&json, &f->splice);
    struct vg_slice object = vg_buf_slice(&json);
    if (r == 0 && !is_other)
        object = vg_slice(json.p + head.n, json.n - head.n - strlen("}\n"));
    if (r == 0)
        r = vg_protobuf_of_value(
            object, 0, (enum vg_protobuf_as)(w->form % VG_FORMS - VG_FORM_PROTOBUF), &body);
    if (r == 0)
        r = vg_protobuf_frame(&s, "BOOKMARK", vg_buf_slice(&body));
    return r != 0 ? r : write_slices(call, s.v, s.n, NULL);
}

static int write_other_bookmark(struct vg_api_call *call, const struct vg_frame *f)
{
    VG_AUTO(buf) json = {0};
    int r = other_bookmark(&call->watch, f, &json);
    struct vg_slice v[] = {VG_SLICE_LIT("{\"type\":\"BOOKMARK\",\"object\":"), vg_buf_slice(&json),
                           VG_SLICE_LIT("}\n")};
    return r < 0 ? r : vg_http_write(call->x, v, VG_ARRAY_LEN(v), NULL);
}

static int write_bookmark(struct vg_api_call *call, const struct vg_frame *f)
{
    uint8_t form = call->watch.form;
    if (form % VG_FORMS >= VG_FORM_PROTOBUF)
        return write_protobuf_bookmark(call, f);
    if (form == VG_FORM_OTHER_VERSION)
        return write_other_bookmark(call, f);
#define PARTIAL                                                                                    \
    "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":"
    static const struct vg_slice heads[VG_FORMS] = {
        [VG_FORM_PARTIAL] =
            VG_SLICE_LIT(PARTIAL "\"meta.k8s.io/v1\",\"metadata\":{\"resourceVersion\":\""),
        [VG_FORM_PARTIAL_V1BETA1] =
            VG_SLICE_LIT(PARTIAL "\"meta.k8s.io/v1beta1\",\"metadata\":{\"resourceVersion\":\""),
    };
    struct vg_slice v[4] = {heads[form % VG_FORMS], f->splice.v[1], f->splice.v[2],
                            VG_SLICE_LIT("}}\n")};
    return vg_http_write(call->x, v, VG_ARRAY_LEN(v), NULL);
}

/* The frame is the JSON of the stored kind's watch. *ret_size: what was written. */
static int write_table(struct vg_api_call *call, const struct vg_frame *f, size_t *ret_size)
{
    struct vg_api_watch *w = &call->watch;
    VG_AUTO(buf) frame = {0};
    VG_AUTO(buf) out = {0};
    struct vg_table t = {.kind = w->kind,
                         .include = (enum vg_table_include)w->include,
                         .is_v1beta1 = w->is_v1beta1,
                         .now_ms = vg_clock_wall_ms(call->loop->api->clock),
                         .scratch = &call->loop->scratch};
    int r = vg_obj_splice_append(&frame, &f->splice);
    if (r == 0)
        r = vg_table_frame(&t, vg_buf_slice(&frame), !w->is_headed, &out);
    if (r < 0)
        return r;
    w->is_headed = true;
    *ret_size = out.n;
    struct vg_slice text = vg_buf_slice(&out);
    return vg_http_write(call->x, &text, 1, NULL);
}

/* At most a limit and a frame. */
static uint32_t unsent(const struct vg_api_call *call)
{
    return (uint32_t)VG_MIN(vg_http_unsent(call->x), (size_t)UINT32_MAX);
}

/* Tell the cacher what waits here; of a sink that is full. */
static void pin_unsent(struct vg_api_call *call)
{
    int64_t told = vg_cache_watcher_pinned(call->state);
    vg_cache_watcher_pins(call->state, (int64_t)unsent(call) - told);
}

static int on_write(struct vg_sink *sink, const struct vg_frame *f)
{
    struct vg_api_call *call = call_of(sink);
    struct vg_api_watch *w = &call->watch;
    size_t size = vg_frame_size(f);
    int r;
    if (VG_UNLIKELY(w->is_table)) {
        r = write_table(call, f, &size);
    } else if (VG_UNLIKELY(w->form && is_bookmark(f))) {
        r = write_bookmark(call, f);
    } else {
        struct vg_http_pin pin = {f->block, f->ref, f->unref};
        r = write_slices(call, f->splice.v, f->splice.n, f->block ? &pin : NULL);
    }
    struct vg_watch_count *counts = call->loop->counts;
    w->events++;
    call->bytes_out += size;
    if (counts)
        vg_watch_count_event(&counts[vg_kind_index(w->kind)], size, !w->is_settled);
    if (r == VG_HTTP_FULL) {
        w->is_full = true;
        pin_unsent(call);
    }
    return r; /* open and full are the same numbers on both sides */
}
_Static_assert((int)VG_HTTP_OPEN == (int)VG_SINK_OPEN && (int)VG_HTTP_FULL == (int)VG_SINK_FULL,
               "answers of a sink and of an exchange");

void vg_watch_settle(struct vg_api_call *call)
{
    struct vg_api_watch *w = &call->watch;
    struct vg_api *api = call->loop->api;
    if (w->is_settled)
        return;
    w->is_settled = true;
    if (w->is_list)
        vg_api_count_watch_list(api->counters, vg_kind_index(w->kind), w->scope,
                                vg_clock_mono_ns(api->clock) - call->started_ns);
    if (vg_call_ops(call)->settled)
        vg_call_ops(call)->settled(call);
}

static void on_live(struct vg_sink *sink)
{
    vg_watch_settle(call_of(sink));
}

static int write_json_error(struct vg_api_call *call, struct vg_slice status)
{
    struct vg_slice v[] = {VG_SLICE_LIT("{\"type\":\"ERROR\",\"object\":"), status,
                           VG_SLICE_LIT("}\n")};
    return vg_http_write(call->x, v, VG_ARRAY_LEN(v), NULL);
}

static int write_protobuf_error(struct vg_api_call *call, struct vg_slice status)
{
    VG_AUTO(buf) body = {0};
    struct vg_obj_splice s = {.n = 0};
    int r = vg_protobuf_of_json(status, &body);
    if (r == 0)
        r = vg_protobuf_frame(&s, "ERROR", vg_buf_slice(&body));
    return r != 0 ? r : write_slices(call, s.v, s.n, NULL);
}

void vg_watch_write_error(struct vg_api_call *call, const struct vg_api_status *status)
{
    VG_AUTO(buf) json = {0};
    int r = vg_api_status_write(&json, status);
    if (r == 0 && call->watch.form % VG_FORMS >= VG_FORM_PROTOBUF)
        r = write_protobuf_error(call, vg_buf_slice(&json));
    else if (r == 0)
        r = write_json_error(call, vg_buf_slice(&json));
    if (r < 0)
        vg_http_abort(call->x);
}

void vg_watch_say_expired(struct vg_arena *a, const struct vg_kind *kind, vg_rev after,
                          vg_rev oldest, struct vg_api_status *ret)
{
    if (vg_kind_is(kind, VG_KIND_UNCACHED))
        vg_status_expired(a, ret, "The resourceVersion for the provided watch is too old.");
    else
        vg_status_expired(a, ret, "too old resource version: %llu (%llu)",
                          (unsigned long long)after, (unsigned long long)oldest);
}

static void on_end(struct vg_sink *sink, enum vg_watch_end why, uint64_t oldest)
{
    struct vg_api_call *call = call_of(sink);
    const struct vg_cache_watcher *watcher = vg_steal(call->state);
    struct vg_api_status status;
    VG_AUTO(arena) a = {0};
    if (why == VG_END_EXPIRED) {
        vg_watch_say_expired(&a, call->watch.kind, vg_cache_watcher_revision(watcher), oldest,
                             &status);
        vg_watch_write_error(call, &status);
    } else if (why == VG_END_UNREADABLE) {
        struct vg_obj_key key = {.n = 0};
        (void)vg_cache_unreadable(call->loop->api->cacher, vg_kind_index(call->watch.kind),
                                  vg_cache_watcher_predicate(watcher), &key);
        vg_status_unreadable(&a, &status, vg_obj_key_slice(&key));
        vg_watch_write_error(call, &status);
    } else if (why == VG_END_INTERNAL) {
        vg_status_internal(&a, &status, "the watch cannot go on");
        vg_watch_write_error(call, &status);
    }
    if (why == VG_END_STALLED || why == VG_END_PINNED) {
        vg_api_count_terminated(call->loop->api->counters, vg_kind_index(call->watch.kind));
        vg_http_abort(call->x); /* it takes nothing */
    } else if (why != VG_END_GONE) {
        vg_http_end(call->x);
    }
    vg_call_finish(call);
}

const struct vg_sink_ops vg_watch_sink_ops = {.write = on_write, .end = on_end, .live = on_live};

/* ---- the exchange ---- */

static void on_drained(struct vg_api_call *call)
{
    struct vg_cache_watcher *watcher = call->state;
    if (!call->watch.is_full)
        return;
    call->watch.is_full = false;
    vg_cache_watcher_pins(watcher, -(int64_t)vg_cache_watcher_pinned(watcher));
    vg_cache_watcher_drained(watcher);
}

static void on_progress(struct vg_api_call *call, size_t n)
{
    (void)n;
    if (!call->watch.is_full)
        return;
    pin_unsent(call);
    vg_cache_watcher_progress(call->state);
}

static void on_closed(struct vg_api_call *call, int err)
{
    (void)err;
    vg_cache_watcher_stop(vg_steal(call->state));
    vg_call_finish(call);
}

const struct vg_api_op vg_watch_op = {
    .drained = on_drained, .progress = on_progress, .closed = on_closed};

/* ---- looking at what runs ---- */

void vg_api_each_watch(struct vg_api_loop *l,
                       void (*each)(void *arg, const struct vg_api_watch_info *info), void *arg)
{
    VG_LIST_FOREACH (n, &l->watches) {
        const struct vg_api_call *call = VG_CONTAINER_OF(n, struct vg_api_call, link);
        struct vg_api_watch_info info = {
            .call = call,
            .kind = call->watch.kind,
            .predicate = vg_cache_watcher_predicate(call->state),
            .events = call->watch.events,
            .unsent = vg_http_unsent(call->x),
            .rev = vg_cache_watcher_revision(call->state),
        };
        each(arg, &info);
    }
}
