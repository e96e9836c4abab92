/* frames.c - the bytes of a watch: cut into lines wherever they were cut before, each line an
 * event. Frames that lie whole in the bytes are not copied. */
#include <errno.h>
#include <string.h>

#include "reflector_int.h"
#include "json/scan.h"

enum event { ADDED, MODIFIED, DELETED, BOOKMARK, ERROR_EVENT, UNKNOWN };

static enum event event_of(struct vg_slice type)
{
    static const struct vg_slice NAMES[] = {
        {"ADDED", 5}, {"MODIFIED", 8}, {"DELETED", 7}, {"BOOKMARK", 8}, {"ERROR", 5}};
    for (size_t i = 0; i < VG_ARRAY_LEN(NAMES); i++)
        if (vg_slice_eq(type, NAMES[i]))
            return (enum event)i;
    return UNKNOWN;
}

/* The watch is over because of this frame. */
static int end_by(struct vigil_reflector *r, const struct vigil_error *err, bool is_too_large)
{
    r->frame_error = *err;
    r->has_frame_error = true;
    r->is_frame_too_large = is_too_large;
    return VIGIL_E_CLOSED;
}

/* As if the server had sent ERROR 500. */
static int end_unreadable(struct vigil_reflector *r, const char *what)
{
    struct vigil_error err;
    vg_error_set(&err, VIGIL_E_INTERNAL, "the watch sent %s", what);
    err.http = 500;
    return end_by(r, &err, false);
}

static struct vg_slice raw_at(struct vg_slice json, const char *a, const char *b, const char *c)
{
    const struct vg_json_step path[] = {vg_json_step_key(a), vg_json_step_key(b ? b : ""),
                                        vg_json_step_key(c ? c : "")};
    struct vg_slice raw;
    if (vg_json_find(json, path, c ? 3 : b ? 2 : 1, &raw) < 0 || raw.n < 2 || raw.p[0] != '"')
        return (struct vg_slice){"", 0};
    return vg_slice(raw.p + 1, raw.n - 2);
}

/* ---- the state that streams in ---- */

static void state_complete(struct vigil_reflector *r, struct vg_slice version, int *ret)
{
    size_t n = vg_initial_pack(&r->initial);
    struct vg_initial state = r->initial; /* the reflector may go away meanwhile */
    r->initial = (struct vg_initial){0};
    int e = vg_reflector_replace(r, state.v, n, version);
    vg_initial_done(&state);
    *ret = e;
    if (e == VIGIL_E_CLOSED)
        return;
    if (e < 0) {
        *ret = end_unreadable(r, "a state that the sink does not take");
        return;
    }
    r->state = VG_REFLECTOR_WATCHING;
    r->is_frozen = false;
    r->cut_streams = 0;
    vg_timer_stop(r->loop, &r->growth);
    vg_reflector_start_resync(r);
    *ret = r->is_full ? VG_SINK_FULL : 0;
}

/* A transform runs here so that what it drops is never kept, and again in the sink. */
static int initial_event(struct vigil_reflector *r, enum event event,
                         const struct vigil_object *take_o)
{
    if (event == DELETED) {
        vg_initial_remove(&r->initial, take_o);
        vigil_object_unref(take_o);
        return 0;
    }
    if (r->opts.transform) {
        vg_reflector_enter(r);
        const struct vigil_object *made = r->opts.transform(r->opts.arg, take_o);
        bool is_alive = vg_reflector_leave(r);
        vigil_object_unref(take_o);
        take_o = made;
        if (!is_alive || !take_o) {
            vigil_object_unref(take_o);
            return is_alive ? 0 : VIGIL_E_CLOSED;
        }
    }
    size_t before = r->initial.n;
    int e = vg_initial_put(&r->initial, take_o);
    if (r->initial.n > before)
        r->grown_ns = vg_reflector_now(r);
    return e;
}

/* ---- events ---- */

static int live_event(struct vigil_reflector *r, enum event event, const struct vigil_object *o)
{
    vg_reflector_enter(r);
    int e = event == DELETED ? r->sink.remove(r->sink.arg, o) : r->sink.put(r->sink.arg, o);
    if (!vg_reflector_leave(r))
        return VIGIL_E_CLOSED;
    if (e == -ENOMEM || e == VIGIL_E_MEMORY)
        return -ENOMEM; /* not lost: the version stays before it, and all is listed again */
    if (e < 0)
        vg_warn(r->log, "event_refused", "resource=%s error=%s", r->opts.resource->plural,
                vg_err_name(e));
    r->is_full = e == VG_SINK_FULL;
    r->is_frozen = r->is_frozen && event == ADDED;
    if (!r->is_frozen)
        vg_reflector_set_version(r, vg_object_version(o));
    return r->is_full ? VG_SINK_FULL : 0;
}

static bool is_wanted_kind(const struct vigil_reflector *r, const struct vigil_object *o)
{
    const struct vigil_resource *res = r->opts.resource;
    return !res->kind || vigil_text_is(vigil_object_kind(o), res->kind);
}

/* Something of another kind (a Table, say) is not ours: it is let pass, as client-go does. */
static int skip_object(struct vigil_reflector *r, struct vg_slice kind)
{
    vg_warn(r->log, "unexpected_kind", "want=%s got=%.*s", r->opts.resource->kind,
            VG_SLICE_ARG(kind));
    return 0;
}

static int made_event(struct vigil_reflector *r, enum event event,
                      const struct vigil_object *take_o)
{
    int e;
    if (is_wanted_kind(r, take_o)) {
        r->events++;
        if (r->state == VG_REFLECTOR_STREAMING)
            return initial_event(r, event, take_o);
        e = live_event(r, event, take_o);
    } else {
        e = skip_object(r, vg_slice_of(vigil_object_kind(take_o)));
    }
    vigil_object_unref(take_o);
    return e;
}

static int object_event(struct vigil_reflector *r, enum event event, struct vg_slice json)
{
    const struct vigil_object *o = NULL;
    int e = vg_object_make(json, NULL, &o);
    if (e == 0)
        return made_event(r, event, o);
    if (e == -ENOMEM)
        return e;
    struct vg_slice kind = raw_at(json, "kind", NULL, NULL);
    bool is_other = kind.n && r->opts.resource->kind &&
                    !vg_slice_eq(kind, vg_slice_str(r->opts.resource->kind));
    return is_other ? skip_object(r, kind) : end_unreadable(r, "an object without a name");
}

static int bookmark_event(struct vigil_reflector *r, struct vg_slice json)
{
    struct vg_slice version = raw_at(json, "metadata", "resourceVersion", NULL);
    struct vg_slice kind = raw_at(json, "kind", NULL, NULL);
    if (kind.n && r->opts.resource->kind &&
        !vg_slice_eq(kind, vg_slice_str(r->opts.resource->kind)))
        return skip_object(r, kind);
    if (!version.n || version.n > VG_OBJECT_VERSION_MAX)
        return end_unreadable(r, "a bookmark without resourceVersion");
    r->events++;
    r->has_bookmark = true;
    if (r->state == VG_REFLECTOR_STREAMING) {
        struct vg_slice end = raw_at(json, "metadata", "annotations", "k8s.io/initial-events-end");
        int e = 0;
        if (vg_slice_eq(end, VG_SLICE_LIT("true")))
            state_complete(r, version, &e);
        return e;
    }
    vg_reflector_enter(r);
    if (r->sink.bookmark)
        r->sink.bookmark(r->sink.arg, vg_text_of(version));
    if (!vg_reflector_leave(r))
        return VIGIL_E_CLOSED;
    r->is_frozen = false;
    vg_reflector_set_version(r, version);
    return 0;
}

static int error_event(struct vigil_reflector *r, struct vg_slice json)
{
    struct vigil_error err;
    bool is_too_large = vg_answer_error(json, 0, &err);
    return end_by(r, &err, is_too_large);
}

/* The frame as servers write it, {"type":"ADDED","object":{...}}: then it need not be scanned for
 * the object's end, which making the object finds. Anything that follows the object makes that
 * fail, and the frame is read as any other. 1: made. */
static int make_at_once(struct vg_slice line, enum event *ret_event,
                        const struct vigil_object **ret)
{
    static const struct vg_slice BEGIN = {"{\"type\":\"", 9}, NEXT = {"\",\"object\":", 11};
    if (!vg_slice_has_prefix(line, BEGIN) || line.p[line.n - 1] != '}')
        return 0;
    struct vg_slice rest = vg_slice(line.p + BEGIN.n, line.n - 1 - BEGIN.n);
    const char *quote = memchr(rest.p, '"', VG_MIN(rest.n, (size_t)16));
    size_t n = quote ? (size_t)(quote - rest.p) : rest.n;
    enum event event = event_of(vg_slice(rest.p, n));
    rest = vg_slice(rest.p + n, rest.n - n);
    if (event > DELETED || !vg_slice_has_prefix(rest, NEXT))
        return 0;
    int e = vg_object_make(vg_slice(rest.p + NEXT.n, rest.n - NEXT.n), NULL, ret);
    *ret_event = event;
    return e == 0 ? 1 : e == -ENOMEM ? e : 0;
}

static int frame(struct vigil_reflector *r, struct vg_slice line)
{
    struct vg_watch_frame f;
    enum event event;
    const struct vigil_object *o = NULL;
    int e = make_at_once(line, &event, &o);
    if (e != 0)
        return e < 0 ? e : made_event(r, event, o);
    size_t blank = 0;
    while (blank < line.n && (uint8_t)line.p[blank] <= ' ')
        blank++;
    if (blank == line.n)
        return 0;
    if (vg_watch_frame_read(line, &f) < 0)
        return end_unreadable(r, "something that is no event");
    event = event_of(f.type);
    switch (event) {
    case ADDED:
    case MODIFIED:
    case DELETED:
        return object_event(r, event, f.object);
    case BOOKMARK:
        return bookmark_event(r, f.object);
    case ERROR_EVENT:
        return error_event(r, f.object);
    default:
        return end_unreadable(r, "an event of a type that is not known");
    }
}

/* A frame that began in earlier bytes. */
static int joined_frame(struct vigil_reflector *r, struct vg_slice tail)
{
    int e = vg_buf_append_slice(&r->frame, tail);
    if (e < 0)
        return e == VIGIL_E_TOO_LARGE ? end_unreadable(r, "a frame that is too long") : e;
    struct vg_buf whole = r->frame; /* the reflector may go away while it is handled */
    r->frame = (struct vg_buf){.max = VG_FRAME_MAX};
    e = frame(r, vg_buf_slice(&whole));
    if (e == VIGIL_E_CLOSED || whole.cap > VG_FRAME_KEEP) {
        vg_buf_done(&whole);
        return e;
    }
    vg_buf_clear(&whole);
    r->frame = whole; /* its memory serves the next one */
    return e;
}

int vg_watcher_bytes(struct vigil_reflector *r, struct vg_slice bytes)
{
    const char *p = bytes.p, *end = bytes.p + bytes.n;
    int most = 0;
    while (p < end) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        if (!nl) {
            int e = vg_buf_append(&r->frame, p, (size_t)(end - p));
            if (e == VIGIL_E_TOO_LARGE)
                e = end_unreadable(r, "a frame that is too long");
            return e < 0 ? e : most;
        }
        struct vg_slice line = vg_slice(p, (size_t)(nl - p));
        int e = r->frame.n ? joined_frame(r, line) : frame(r, line);
        if (e < 0)
            return e;
        most = VG_MAX(most, e);
        p = nl + 1;
    }
    return most;
}
