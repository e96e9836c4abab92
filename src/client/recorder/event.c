/* event.c - the JSON of events. */
#include <stdio.h>
#include <time.h>

#include "recorder_int.h"
#include "json/write.h"

static int put(struct vg_buf *out, const char *before, struct vg_slice value)
{
    int r = vg_buf_append_slice(out, vg_slice_str(before));
    return r < 0 ? r : vg_json_write_string(out, value, 0);
}

static int put_time(struct vg_buf *out, const char *before, int64_t wall_ms)
{
    time_t s = (time_t)(wall_ms / 1000);
    struct tm tm;
    char text[40];
    gmtime_r(&s, &tm);
    size_t n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
    return put(out, before, vg_slice(text, n));
}

static int put_message(const struct vigil_recorder *r, struct vg_buf *out)
{
    VG_AUTO(buf) text = {0};
    if (!r->is_combined)
        return put(out, ",\"message\":", r->now->message);
    int e =
        vg_buf_printf(&text, "(combined from similar events): %.*s", VG_SLICE_ARG(r->now->message));
    size_t n = VG_MIN(text.n, VG_RECORDER_MESSAGE_MAX);
    return e < 0 ? e : put(out, ",\"message\":", vg_slice(text.p, n));
}

static int put_about(struct vg_buf *out, const struct vigil_object *o)
{
    int r = put(out, "},\"involvedObject\":{\"kind\":", vg_slice_of(vigil_object_kind(o)));
    r = r < 0 ? r : put(out, ",\"apiVersion\":", vg_slice_of(vigil_object_api_version(o)));
    if (r == 0 && vg_object_namespace(o).n)
        r = put(out, ",\"namespace\":", vg_object_namespace(o));
    r = r < 0 ? r : put(out, ",\"name\":", vg_slice_of(vigil_object_name(o)));
    r = r < 0 ? r : put(out, ",\"uid\":", vg_slice_of(vigil_object_uid(o)));
    r = r < 0 ? r : put(out, ",\"resourceVersion\":", vg_object_version(o));
    return r;
}

int vg_event_write(struct vigil_recorder *r, struct vg_buf *out)
{
    const struct vg_record *now = r->now;
    struct vg_slice component = vg_slice_str(r->component);
    int e = put(out, "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":",
                vg_slice_str(r->name));
    e = e < 0 ? e : put_about(out, now->about);
    e = e < 0 ? e : put(out, "},\"type\":", now->type);
    e = e < 0 ? e : put(out, ",\"reason\":", now->reason);
    e = e < 0 ? e : put_message(r, out);
    e = e < 0 ? e : put(out, ",\"source\":{\"component\":", component);
    e = e < 0 ? e : put(out, "},\"reportingComponent\":", component);
    e = e < 0 ? e : put_time(out, ",\"reportingInstance\":\"\",\"firstTimestamp\":", now->wall_ms);
    e = e < 0 ? e : put_time(out, ",\"count\":1,\"lastTimestamp\":", now->wall_ms);
    return e < 0 ? e : vg_buf_append_byte(out, '}');
}

int vg_event_write_count(struct vigil_recorder *r, struct vg_buf *out)
{
    int e = vg_buf_printf(out, "{\"count\":%llu", (unsigned long long)r->event->count + 1);
    e = e < 0 ? e : put_message(r, out);
    e = e < 0 ? e : put_time(out, ",\"lastTimestamp\":", r->now->wall_ms);
    return e < 0 ? e : vg_buf_append_byte(out, '}');
}
