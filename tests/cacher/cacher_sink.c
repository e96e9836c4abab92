/* cacher_sink.c - see cacher_driver.h: the sink that remembers, and watching through it. */
#include <stdio.h>
#include <stdlib.h>

#include "cacher_driver.h"
#include "storage_driver_int.h"
#include "test_support.h"

static void *grow(void *v, size_t *cap, size_t n, size_t size)
{
    if (n < *cap)
        return v;
    *cap = *cap ? *cap * 2 : 16;
    v = realloc(v, *cap * size);
    if (!v)
        abort();
    return v;
}

static void look_at(struct vg_csink *s, const struct vg_frame *f)
{
    size_t n = vg_frame_size(f), at = 0;
    char *text = malloc(n + 1);
    if (!text)
        abort();
    for (uint32_t i = 0; i < f->splice.n; i++) {
        if (f->splice.v[i].n)
            memcpy(text + at, f->splice.v[i].p, f->splice.v[i].n);
        at += f->splice.v[i].n;
    }
    text[n] = 0;
    s->frames = grow(s->frames, &s->frames_cap, s->n, sizeof *s->frames);
    s->frames[s->n++] = text;
}

void vg_csink_look(struct vg_csink *s)
{
    int64_t pinned = 0;
    for (size_t i = 0; i < s->n_kept; i++) {
        look_at(s, s->kept[i]);
        pinned += (int64_t)vg_frame_size(s->kept[i]);
        vg_frame_done(s->kept[i]);
        free(s->kept[i]);
    }
    s->n_kept = 0;
    if (s->w && pinned)
        vg_cache_watcher_pins(s->w, -pinned);
}

static int keep(struct vg_csink *s, const struct vg_frame *f)
{
    s->kept = grow(s->kept, &s->kept_cap, s->n_kept, sizeof *s->kept);
    struct vg_frame *copy = malloc(sizeof *copy); /* of its own: it points into itself */
    if (!copy)
        abort();
    vg_frame_copy(copy, f);
    s->kept[s->n_kept++] = copy;
    vg_cache_watcher_pins(s->w, (int64_t)vg_frame_size(f));
    return s->n_kept >= s->full_after ? VG_SINK_FULL : VG_SINK_OPEN;
}

static int on_write(struct vg_sink *sink, const struct vg_frame *f)
{
    struct vg_csink *s = VG_CONTAINER_OF(sink, struct vg_csink, sink);
    if (s->on_write)
        s->on_write(s, s->arg);
    if (s->fails)
        return -1;
    if (s->stops)
        vg_cache_watcher_stop(vg_steal(s->w));
    if (s->full_after && s->w)
        return keep(s, f);
    look_at(s, f); /* after the stop: the bytes must still be there */
    return VG_SINK_OPEN;
}

static void on_end(struct vg_sink *sink, enum vg_watch_end why, uint64_t oldest)
{
    struct vg_csink *s = VG_CONTAINER_OF(sink, struct vg_csink, sink);
    assert_false(s->is_ended);
    s->w = NULL;
    s->is_ended = true;
    s->why = why;
    s->oldest = oldest;
}

static const struct vg_sink_ops ops = {.write = on_write, .end = on_end};

void vg_csink_init(struct vg_csink *s)
{
    *s = (struct vg_csink){.sink = {.ops = &ops}};
}

void vg_csink_drain(struct vg_csink *s)
{
    vg_csink_look(s);
    if (s->w)
        vg_cache_watcher_drained(s->w);
}

void vg_csink_clear(struct vg_csink *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->frames[i]);
    s->n = 0;
}

void vg_csink_done(struct vg_csink *s)
{
    if (s->w)
        vg_cache_watcher_stop(vg_steal(s->w));
    vg_csink_look(s);
    vg_csink_clear(s);
    free(s->kept);
    free(s->frames);
}

/* ---- what was seen, in short ---- */

static void copy_string(const char *text, const char *after, char *to, size_t room)
{
    const char *p = strstr(text, after);
    size_t n = 0;
    if (p)
        for (p += strlen(after); *p && *p != '"' && n + 1 < room; p++)
            to[n++] = *p;
    to[n] = 0;
}

static void summary(const char *frame, char *to, size_t room)
{
    char type[16], ns[64], name[64], rev[32];
    copy_string(frame, "\"type\":\"", type, sizeof type);
    copy_string(frame, "\"namespace\":\"", ns, sizeof ns);
    copy_string(frame, "\"name\":\"", name, sizeof name);
    copy_string(frame, "\"resourceVersion\":\"", rev, sizeof rev);
    snprintf(to, room, "%s%s%s%s%s@%s%s", type, *name ? " " : "", ns, *ns ? "/" : "", name, rev,
             strstr(frame, "initial-events-end") ? " end" : "");
}

void vg_csink_expect(struct vg_csink *s, const char *first, ...)
{
    va_list ap;
    size_t i = 0;
    char got[256];
    va_start(ap, first);
    for (const char *want = first; want; want = va_arg(ap, const char *), i++) {
        if (i >= s->n)
            fail_msg("frame %zu is missing: %s", i, want);
        summary(s->frames[i], got, sizeof got);
        assert_string_equal(got, want);
    }
    va_end(ap);
    if (s->n > i) {
        summary(s->frames[i], got, sizeof got);
        fail_msg("one frame too many: %s", got);
    }
}

/* ---- watching ---- */

int vg_cdrv_try_watch(struct vg_cdrv *d, size_t port, struct vg_csink *s,
                      struct vg_obj_predicate *take_p, struct vg_cache_watch_opts opts)
{
    vg_rev oldest = 0;
    opts.predicate = take_p;
    opts.sink = &s->sink;
    int err = vg_cache_watch(d->ports[port], &opts, &s->w, &oldest);
    vg_obj_predicate_unref(take_p);
    if (err == VIGIL_E_COMPACTED)
        s->oldest = oldest;
    return err;
}

void vg_cdrv_watch(struct vg_cdrv *d, struct vg_csink *s, struct vg_obj_predicate *take_p,
                   struct vg_cache_watch_opts opts)
{
    int err = vg_cdrv_try_watch(d, 0, s, take_p, opts);
    if (err < 0)
        vg_drv_die("watch", err);
}

void vg_cdrv_wait_frames(struct vg_cdrv *d, struct vg_csink *s, size_t n)
{
    vg_drv_watchdog("frames of a watch");
    while (s->n + s->n_kept < n && !s->is_ended)
        vg_loop_turn(d->loops[0], true);
    vg_drv_watchdog(NULL);
}

void vg_cdrv_wait_end(struct vg_cdrv *d, struct vg_csink *s)
{
    vg_drv_watchdog("the end of a watch");
    while (!s->is_ended)
        vg_loop_turn(d->loops[0], true);
    vg_drv_watchdog(NULL);
}

struct vg_cacher_stats vg_cdrv_stats(struct vg_cdrv *d)
{
    struct vg_cacher_stats stats;
    vg_cacher_stats(d->c, &stats);
    return stats;
}
