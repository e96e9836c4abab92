/* watcher.c - watches: opening them, and what their ends mean. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "reflector_int.h"

#define MIN_WATCH_S 300u
/* Past the time that the server was given to end the watch. */
#define WATCH_GRACE_MS 30000u
/* Bookmarks come about every minute. */
#define BOOKMARK_MS 180000u
/* A watch that ends sooner and brought nothing is a sign of trouble. */
#define SHORT_NS VG_NS_PER_S
/* So many watches in a row may bring something and end at once, as when a server restarts. */
#define SHORT_WATCHES_MAX 3u
/* A state that streams in brings a new object, or its end, at least this often. */
#define GROWTH_NS (20 * VG_NS_PER_S)
/* ERROR 500 is counted anew after so long without one. */
#define FORGET_500_NS (60 * VG_NS_PER_S)

void vg_watcher_drop(struct vigil_reflector *r)
{
    vg_exchange_cancel(vg_steal(r->x));
    vg_timer_stop(r->loop, &r->growth);
    vg_initial_done(&r->initial);
    vg_buf_clear(&r->frame);
}

static int on_data(void *arg, struct vg_slice bytes)
{
    struct vigil_reflector *r = arg;
    bool had_bookmark = r->has_bookmark;
    int e = vg_watcher_bytes(r, bytes);
    if (e == VIGIL_E_CLOSED)
        return VIGIL_E_CLOSED; /* r may be gone, and its exchange is canceled then */
    if (r->has_bookmark && !had_bookmark)
        vg_exchange_set_stall(r->x, r->tuning.bookmark_ms ? r->tuning.bookmark_ms : BOOKMARK_MS);
    return e;
}

/* ---- ends ---- */

static bool is_too_short(const struct vigil_reflector *r)
{
    return r->events == 0 && vg_reflector_now(r) - r->opened_ns < SHORT_NS;
}

/* May an ERROR 500 be answered by watching again at once? */
static bool may_retry_500(struct vigil_reflector *r)
{
    uint64_t now = vg_reflector_now(r);
    if (!r->has_500 || now - r->last_500_ns >= FORGET_500_NS)
        r->first_500_ns = now;
    r->has_500 = true;
    r->last_500_ns = now;
    return r->tuning.retry_500_ns && now - r->first_500_ns <= r->tuning.retry_500_ns;
}

/* With a limit a server gives the very state of the version asked for, as long as it has it: the
 * same list, and a watch that fails the same way. The second time the newest state is asked for. */
static void note_expired(struct vigil_reflector *r)
{
    if (r->opts.page_size && strcmp(r->expired, r->version) == 0)
        r->is_unavailable = true;
    memcpy(r->expired, r->version, sizeof(r->expired));
}

/* An ERROR event, or a frame that could not be read, has ended the watch. */
static void ended_by_event(struct vigil_reflector *r)
{
    const struct vigil_error err = r->frame_error;
    if (vg_is_expired(&err))
        note_expired(r);
    if (err.code == VIGIL_E_INTERNAL && may_retry_500(r))
        vg_watcher_begin(r);
    else
        vg_reflector_failed(r, &err, VG_TELL_IF_REPEATED,
                            err.code == VIGIL_E_BUSY ? VG_NEXT_WATCH : VG_NEXT_ROUND);
}

/* A watch that was open ended without a word: it goes on where it was, unless it never lasts. */
static void watch_again(struct vigil_reflector *r)
{
    bool is_short = vg_reflector_now(r) - r->opened_ns < SHORT_NS;
    struct vigil_error err;
    r->short_watches = is_short ? r->short_watches + 1 : 0;
    if (r->short_watches <= SHORT_WATCHES_MAX) {
        vg_watcher_begin(r);
        return;
    }
    vg_error_set(&err, VIGIL_E_NETWORK, "watches of %s end as soon as they have brought something",
                 r->opts.resource->plural);
    vg_reflector_failed(r, &err, VG_TELL_IF_REPEATED, VG_NEXT_WATCH);
}

static void watch_ended(struct vigil_reflector *r, const struct vg_exchange_end *end)
{
    struct vigil_error err = end->err;
    if (end->was_open && vg_reflector_now(r) - r->opened_ns >= VG_LASTING_NS)
        r->fruitless = 0;
    if (r->has_frame_error) {
        ended_by_event(r);
    } else if (!end->was_open && end->is_unreached) {
        vg_reflector_failed(r, &err, VG_TELL_NEVER, VG_NEXT_WATCH);
    } else if (!end->was_open && err.code == VIGIL_E_BUSY) {
        vg_reflector_failed(r, &err, VG_TELL_IF_REPEATED, VG_NEXT_WATCH);
    } else if (!end->was_open) {
        vg_reflector_failed(r, &err, VG_TELL_NOW, VG_NEXT_ROUND);
    } else if (err.code == VIGIL_E_MEMORY) {
        vg_reflector_no_memory(r);
    } else if (is_too_short(r)) {
        vg_error_set(&err, VIGIL_E_NETWORK, "a watch of %s ended at once and brought nothing",
                     r->opts.resource->plural);
        vg_reflector_failed(r, &err, VG_TELL_NOW, VG_NEXT_ROUND);
    } else {
        watch_again(r);
    }
}

static void list_instead(struct vigil_reflector *r, const struct vigil_error *err)
{
    vg_info(r->log, "watch_list_refused", "resource=%s error=%s", r->opts.resource->plural,
            err->message);
    vg_watcher_drop(r);
    vg_lister_begin(r);
}

/* The state did not come whole. What was never answered would fail as a list, too. */
static void stream_ended(struct vigil_reflector *r, const struct vg_exchange_end *end)
{
    struct vigil_error err = r->has_frame_error ? r->frame_error : end->err;
    bool is_too_large = r->has_frame_error ? r->is_frame_too_large : end->is_version_too_large;
    bool is_closed = !r->has_frame_error && end->was_open && !is_too_short(r);
    bool is_unanswered = !r->has_frame_error && !end->was_open && err.http == 0;
    if (err.code == VIGIL_E_MEMORY) {
        vg_reflector_no_memory(r);
    } else if (end->is_unreached) {
        vg_reflector_failed(r, &err, VG_TELL_NEVER, VG_NEXT_STREAM);
    } else if (err.code == VIGIL_E_BUSY) {
        vg_reflector_failed(r, &err, VG_TELL_IF_REPEATED, VG_NEXT_STREAM);
    } else if (is_unanswered) {
        vg_reflector_failed(r, &err, VG_TELL_NOW, VG_NEXT_STREAM);
    } else if ((vg_is_expired(&err) || is_too_large) && !r->is_unavailable) {
        r->is_unavailable = true;
        vg_streamer_begin(r);
    } else if (is_closed && r->cut_streams++ == 0) {
        vg_streamer_begin(r);
    } else {
        list_instead(r, &err);
    }
}

/* A server that ignores sendInitialEvents sends what there is, then changes, and never says where
 * the one ends and the other begins. The state is listed then, in this round and later ones. */
static void on_growth(struct vg_timer *t)
{
    struct vigil_reflector *r = VG_CONTAINER_OF(t, struct vigil_reflector, growth);
    uint64_t since = vg_reflector_now(r) - r->grown_ns;
    struct vigil_error err;
    if (since < GROWTH_NS || !r->is_open) {
        vg_timer_start(r->loop, t, GROWTH_NS - VG_MIN(since, GROWTH_NS - 1), on_growth);
        return;
    }
    vg_error_set(&err, VIGIL_E_UNSUPPORTED,
                 "the server does not say where the state of %s ends; it is listed instead",
                 r->opts.resource->plural);
    r->no_stream = true;
    if (vg_reflector_complain(r, &err))
        list_instead(r, &err);
}

static void on_open(void *arg)
{
    struct vigil_reflector *r = arg;
    r->is_open = true;
    r->grown_ns = vg_reflector_now(r);
    vg_reflector_opened(r);
}

static void on_done(void *arg, const struct vg_exchange_end *end)
{
    struct vigil_reflector *r = arg;
    bool is_stream = r->state == VG_REFLECTOR_STREAMING;
    r->x = NULL;
    if (!vg_reflector_ended(r, end))
        return;
    if (!end->was_open && vg_reflector_now(r) - r->opened_ns < SHORT_NS)
        vg_debug(r->log, "watch_refused", "error=%s", end->err.message);
    if (is_stream)
        stream_ended(r, end);
    else
        watch_ended(r, end);
}

/* ---- opening ---- */

static int make_path(struct vigil_reflector *r, bool is_stream, uint64_t timeout_s,
                     struct vg_buf *out)
{
    char timeout[24];
    snprintf(timeout, sizeof(timeout), "%llu", (unsigned long long)timeout_s);
    const char *version = is_stream && (r->is_unavailable || !r->has_synced) ? "" : r->version;
    const char *const query[][2] = {
        {"watch", "true"},
        {"allowWatchBookmarks", "true"},
        {"resourceVersion", version},
        {"sendInitialEvents", is_stream ? "true" : NULL},
        {"resourceVersionMatch", is_stream ? "NotOlderThan" : NULL},
        {"labelSelector", r->opts.label_selector},
        {"fieldSelector", r->opts.field_selector},
        {"timeoutSeconds", timeout},
    };
    int e = vg_path_resource(out, r->opts.resource, r->opts.ns, NULL, NULL);
    for (size_t i = 0; e == 0 && i < VG_ARRAY_LEN(query); i++)
        e = vg_path_query(out, query[i][0], query[i][1]);
    return e < 0 ? e : vg_buf_append_byte(out, 0);
}

static void open_watch(struct vigil_reflector *r, bool is_stream)
{
    vg_lister_drop(r);
    vg_watcher_drop(r);
    r->state = is_stream ? VG_REFLECTOR_STREAMING : VG_REFLECTOR_WATCHING;
    r->events = 0;
    r->has_frame_error = r->has_bookmark = r->is_frame_too_large = false;
    r->is_frozen = !is_stream && (!r->version[0] || strcmp(r->version, "0") == 0);
    r->opened_ns = vg_reflector_now(r);
    r->is_open = false;
    r->n_watches++;
    if (is_stream)
        vg_timer_start(r->loop, &r->growth, GROWTH_NS, on_growth);
    uint64_t min = VG_MAX(r->tuning.min_watch_s, (uint64_t)MIN_WATCH_S);
    uint64_t timeout_s = min + vg_rng_below(&r->rng, min + 1);
    VG_AUTO(buf) path = {0};
    if (make_path(r, is_stream, timeout_s, &path) < 0) {
        vg_reflector_no_memory(r);
        return;
    }
    const struct vg_exchange_opts o = {.method = "GET",
                                       .path = path.p,
                                       .stall_ms = timeout_s * 1000 + WATCH_GRACE_MS,
                                       .head_ms = r->tuning.list_stall_ms ? r->tuning.list_stall_ms
                                                                          : VG_HEAD_MS,
                                       .is_watch = true,
                                       .on_open = on_open,
                                       .on_retry = vg_reflector_retried,
                                       .on_data = on_data,
                                       .on_done = on_done,
                                       .arg = r};
    if (vg_exchange_start(r->c, &o, &r->x) < 0)
        vg_reflector_no_memory(r);
    else if (r->is_full)
        vg_exchange_pause(r->x);
}

void vg_watcher_begin(struct vigil_reflector *r)
{
    open_watch(r, false);
}

void vg_streamer_begin(struct vigil_reflector *r)
{
    open_watch(r, true);
}
