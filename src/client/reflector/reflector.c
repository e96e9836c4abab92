/* reflector.c - vigil/informer.h: making, starting and ending reflectors; rounds, waits, resyncs,
 * and what is common to lists and watches. */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "reflector_int.h"

uint64_t vg_reflector_now(const struct vigil_reflector *r)
{
    return vg_clock_mono_ns(vg_loop_clock(r->loop));
}

struct vg_slice vg_reflector_version(const struct vigil_reflector *r)
{
    return vg_slice_str(r->version);
}

uint64_t vg_reflector_wait_ns(const struct vigil_reflector *r)
{
    return r->wait_ns;
}

bool vg_is_expired(const struct vigil_error *err)
{
    return err->code == VIGIL_E_COMPACTED; /* Expired, Gone, or 410 */
}

void vg_reflector_set_version(struct vigil_reflector *r, struct vg_slice version)
{
    if (!version.n || version.n > VG_OBJECT_VERSION_MAX)
        return;
    memcpy(r->version, version.p, version.n);
    r->version[version.n] = 0;
}

/* ---- calling others ---- */

static void destroy(struct vigil_reflector *r)
{
    vg_free(r->texts);
    vg_free(r);
}

void vg_reflector_enter(struct vigil_reflector *r)
{
    r->in_sink++;
}

bool vg_reflector_leave(struct vigil_reflector *r)
{
    if (--r->in_sink == 0 && r->must_free) {
        destroy(r);
        return false;
    }
    return !r->is_stopped;
}

bool vg_reflector_complain(struct vigil_reflector *r, const struct vigil_error *err)
{
    vg_warn(r->log, "reflector_failed", "resource=%s error=%s", r->opts.resource->plural,
            err->message);
    vg_reflector_enter(r);
    if (r->opts.on_error)
        r->opts.on_error(r->opts.arg, err);
    return vg_reflector_leave(r);
}

static bool set_lost(struct vigil_reflector *r, bool is_lost, const struct vigil_error *err)
{
    if (r->is_lost == is_lost)
        return true;
    r->is_lost = is_lost;
    vg_reflector_enter(r);
    if (is_lost && r->opts.on_lost)
        r->opts.on_lost(r->opts.arg, err);
    else if (!is_lost && r->opts.on_back)
        r->opts.on_back(r->opts.arg);
    return vg_reflector_leave(r);
}

bool vg_reflector_ended(struct vigil_reflector *r, const struct vg_exchange_end *end)
{
    if (end->is_lost || end->is_unreached)
        return set_lost(r, true, &end->err);
    return end->err.http > 0 ? set_lost(r, false, NULL) : true; /* a refusal is an answer, too */
}

void vg_reflector_opened(void *reflector)
{
    (void)set_lost(reflector, false, NULL); /* when it is gone, so is its exchange */
}

int vg_reflector_replace(struct vigil_reflector *r, const struct vigil_object *const *objects,
                         size_t n, struct vg_slice version)
{
    vg_reflector_enter(r);
    int e = r->sink.replace(r->sink.arg, objects, n, vg_text_of(version));
    if (!vg_reflector_leave(r))
        return VIGIL_E_CLOSED;
    if (e < 0)
        return e;
    r->is_full = e == VG_SINK_FULL;
    r->is_unavailable = false;
    r->has_synced = true;
    vg_reflector_set_version(r, version);
    return 0;
}

/* ---- rounds and waits ---- */

void vg_reflector_round(struct vigil_reflector *r)
{
    if (r->opts.no_watch_list || r->no_stream)
        vg_lister_begin(r);
    else
        vg_streamer_begin(r);
}

static void on_wait(struct vg_timer *t)
{
    struct vigil_reflector *r = VG_CONTAINER_OF(t, struct vigil_reflector, wait);
    r->wait_ns = 0;
    if (r->next_step == VG_NEXT_WATCH)
        vg_watcher_begin(r);
    else if (r->next_step == VG_NEXT_STREAM)
        vg_streamer_begin(r);
    else
        vg_reflector_round(r);
}

void vg_reflector_wait(struct vigil_reflector *r, enum vg_reflector_next next)
{
    vg_lister_drop(r);
    vg_watcher_drop(r);
    if (next == VG_NEXT_ROUND)
        vg_timer_stop(r->loop, &r->resync); /* the round's */
    r->state = VG_REFLECTOR_WAITING;
    r->next_step = next;
    r->wait_ns = vg_backoff_next(&r->backoff, &r->tuning, &r->rng, vg_reflector_now(r));
    vg_timer_start(r->loop, &r->wait, r->wait_ns, on_wait);
}

/* What the server asks for counts when it is longer than our own wait. */
static void wait_as_asked(struct vigil_reflector *r, enum vg_reflector_next next, uint32_t asked_s)
{
    uint64_t asked = VG_MIN(asked_s, VG_RETRY_AFTER_MAX_S) * VG_NS_PER_S;
    vg_reflector_wait(r, next);
    if (asked <= r->wait_ns)
        return;
    r->wait_ns = asked;
    vg_timer_start(r->loop, &r->wait, asked, on_wait);
}

void vg_reflector_failed(struct vigil_reflector *r, const struct vigil_error *err,
                         enum vg_reflector_tone tone, enum vg_reflector_next next)
{
    uint32_t asked_s = err->retry_after_s;
    r->fruitless++;
    bool is_quiet = r->fruitless <= VG_QUIET_FAILURES && asked_s <= VG_QUIET_WAIT_S;
    if (tone == VG_TELL_NEVER || (tone == VG_TELL_IF_REPEATED && is_quiet))
        vg_info(r->log, "reflector_waits", "resource=%s error=%s", r->opts.resource->plural,
                err->message);
    else if (!vg_reflector_complain(r, err))
        return;
    wait_as_asked(r, next, asked_s);
}

/* The first broken connection may have been an old one that the server had closed. */
void vg_reflector_retried(void *reflector, const struct vg_exchange_end *end)
{
    struct vigil_reflector *r = reflector;
    r->fruitless++;
    if (end->is_lost && (r->fruitless > 1 || end->err.code == VIGIL_E_TIMEOUT))
        (void)set_lost(r, true, &end->err); /* when it is gone, so is its exchange */
    else if (!end->is_lost && r->fruitless > VG_QUIET_FAILURES &&
             !vg_reflector_complain(r, &end->err))
        return;
}

void vg_reflector_no_memory(struct vigil_reflector *r)
{
    struct vigil_error err;
    vg_error_set(&err, VIGIL_E_MEMORY, "no memory to list or watch %s", r->opts.resource->plural);
    vg_reflector_failed(r, &err, VG_TELL_NOW, VG_NEXT_ROUND);
}

/* ---- resync ---- */

static void on_resync(struct vg_timer *t)
{
    struct vigil_reflector *r = VG_CONTAINER_OF(t, struct vigil_reflector, resync);
    vg_reflector_enter(r);
    int e = r->sink.resync(r->sink.arg);
    if (!vg_reflector_leave(r))
        return;
    if (e >= 0) {
        vg_reflector_start_resync(r);
        return;
    }
    struct vigil_error err; /* what the consumer has is in doubt */
    vg_error_set(&err, e, "a resync of %s failed: %s", r->opts.resource->plural, vg_err_text(e));
    vg_reflector_failed(r, &err, VG_TELL_IF_REPEATED, VG_NEXT_ROUND);
}

void vg_reflector_start_resync(struct vigil_reflector *r)
{
    if (r->opts.resync_ms && r->sink.resync)
        vg_timer_start(r->loop, &r->resync, r->opts.resync_ms * VG_NS_PER_MS, on_resync);
}

/* ---- resuming ---- */

static void on_resume(void *arg)
{
    struct vigil_reflector *r = arg;
    r->is_full = false;
    if (r->x)
        vg_exchange_resume(r->x);
}

void vg_reflector_resume(struct vigil_reflector *r)
{
    vg_client_run(r->c, on_resume, r);
}

/* ---- beginning and end ---- */

static void copy_text(char **p, const char **text)
{
    if (!*text)
        return;
    size_t n = strlen(*text) + 1;
    memcpy(*p, *text, n);
    *text = *p;
    *p += n;
}

static int copy_opts(struct vigil_reflector *r, const struct vigil_informer_opts *o)
{
    memcpy(&r->opts, o, VG_MIN(o->size, sizeof(r->opts)));
    const char **texts[] = {&r->opts.ns, &r->opts.label_selector, &r->opts.field_selector};
    size_t n = 1;
    for (size_t i = 0; i < VG_ARRAY_LEN(texts); i++)
        n += *texts[i] ? strlen(*texts[i]) + 1 : 0;
    char *p = r->texts = vg_malloc(n);
    for (size_t i = 0; p && i < VG_ARRAY_LEN(texts); i++)
        copy_text(&p, texts[i]);
    return p ? 0 : -ENOMEM;
}

int vg_reflector_new(struct vigil_client *c, const struct vigil_informer_opts *opts,
                     const struct vigil_sink *sink, const struct vg_reflector_tuning *tuning,
                     struct vigil_reflector **ret, struct vigil_error *err)
{
    if (opts->size == 0)
        return vg_error_set(err, VIGIL_E_INVALID, VG_NO_SIZE);
    if (!opts->resource || !sink->put || !sink->remove || !sink->replace)
        return vg_error_set(err, VIGIL_E_INVALID,
                            "a reflector needs a resource and a sink with put, remove, replace");
    struct vigil_reflector *r = vg_new(struct vigil_reflector);
    if (!r || copy_opts(r, opts) < 0) {
        vg_free(r);
        return vg_error_set(err, VIGIL_E_MEMORY, "out of memory");
    }
    r->c = c;
    r->loop = vg_client_loop(c);
    r->log = vg_client_log(c);
    r->sink = *sink;
    r->frame.max = VG_FRAME_MAX;
    if (tuning)
        r->tuning = *tuning;
    uint64_t seed = r->tuning.seed;
    if (!seed && vg_random_bytes(&seed, sizeof(seed)) < 0)
        seed = (uintptr_t)r ^ vg_reflector_now(r); /* jitter alone hangs on it */
    vg_rng_seed(&r->rng, seed);
    *ret = r;
    return 0;
}

int vigil_reflector_new(struct vigil_client *c, const struct vigil_informer_opts *opts,
                        const struct vigil_sink *sink, struct vigil_reflector **ret,
                        struct vigil_error *err)
{
    return vg_reflector_new(c, opts, sink, NULL, ret, err);
}

static void start(void *arg)
{
    struct vigil_reflector *r = arg;
    if (r->has_started)
        return;
    r->has_started = true;
    vg_reflector_round(r);
}

int vigil_reflector_start(struct vigil_reflector *r)
{
    vg_client_run(r->c, start, r);
    return 0;
}

static void stop(void *arg)
{
    struct vigil_reflector *r = arg;
    r->is_stopped = true;
    vg_timer_stop(r->loop, &r->wait);
    vg_timer_stop(r->loop, &r->resync);
    vg_lister_drop(r);
    vg_watcher_drop(r); /* its timer too */
    vg_buf_done(&r->next);
    vg_buf_done(&r->frame);
    vg_buf_done(&r->api_version);
    r->state = VG_REFLECTOR_IDLE;
    if (r->in_sink)
        r->must_free = true;
    else
        destroy(r);
}

void vigil_reflector_free(struct vigil_reflector *r)
{
    if (r)
        vg_client_run(r->c, stop, r);
}
