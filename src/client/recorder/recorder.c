/* recorder.c - vigil/recorder.h: the queue, and sending what is in it; see recorder_int.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "recorder_int.h"

static void send_next(struct vigil_recorder *r);

static void record_free(struct vg_record *rec)
{
    if (!rec)
        return;
    vigil_object_unref(rec->about);
    vg_free(rec);
}

/* ---- sending ---- */

static int send_now(struct vigil_recorder *r);

static void on_retry(struct vg_timer *t)
{
    struct vigil_recorder *r = VG_CONTAINER_OF(t, struct vigil_recorder, retry);
    if (send_now(r) < 0) {
        record_free(vg_steal(r->now));
        send_next(r);
    }
}

/* Worth another try? */
static bool may_heal(const struct vigil_error *err)
{
    return err->http == 0 || err->http == 429 || err->http >= 500;
}

static int on_data(void *arg, struct vg_slice bytes)
{
    (void)arg;
    (void)bytes;
    return 0;
}

static void on_done(void *arg, const struct vg_exchange_end *end)
{
    struct vigil_recorder *r = arg;
    r->x = NULL;
    if (end->err.code == 0) {
        vg_correlated(r);
    } else if (r->event && end->err.http == 404) { /* it has expired: write it anew */
        vg_correlator_forget_event(r);
        if (send_now(r) == 0)
            return;
    } else if (may_heal(&end->err) && ++r->tries < VG_RECORDER_TRIES) {
        vg_timer_start(r->loop, &r->retry, VG_RECORDER_RETRY_NS, on_retry);
        return;
    }
    record_free(vg_steal(r->now));
    send_next(r);
}

static int make_request(struct vigil_recorder *r, struct vg_buf *path, struct vg_buf *body)
{
    struct vg_slice ns = vg_object_namespace(r->now->about);
    char space[256];
    snprintf(space, sizeof(space), "%.*s", (int)ns.n, ns.n ? ns.p : "");
    const char *in = ns.n ? space : "default"; /* where events about cluster objects live */
    int e = vg_path_resource(path, &vigil_events, in, r->event ? r->event->name : NULL, NULL);
    e = e < 0 ? e : vg_buf_append_byte(path, 0);
    if (e < 0)
        return e;
    return r->event ? vg_event_write_count(r, body) : vg_event_write(r, body);
}

static int send_now(struct vigil_recorder *r)
{
    VG_AUTO(buf) path = {0};
    VG_AUTO(buf) body = {0};
    int e = make_request(r, &path, &body);
    if (e < 0)
        return e;
    return vg_exchange_start(
        r->c,
        &(struct vg_exchange_opts){.method = r->event ? "PATCH" : "POST",
                                   .path = path.p,
                                   .content_type = r->event ? "application/merge-patch+json"
                                                            : "application/json",
                                   .body = vg_slice(body.p, body.n),
                                   .timeout_ms = 60000,
                                   .on_data = on_data,
                                   .on_done = on_done,
                                   .arg = r},
        &r->x);
}

static struct vg_record *take(struct vigil_recorder *r)
{
    vg_mutex_lock(&r->mu);
    struct vg_list *n = vg_list_pop_front(&r->queue);
    r->n_queued -= n != NULL;
    vg_mutex_unlock(&r->mu);
    return n ? VG_CONTAINER_OF(n, struct vg_record, link) : NULL;
}

static void name_event(struct vigil_recorder *r)
{
    struct vigil_text about = vigil_object_name(r->now->about);
    unsigned long long id = 0;
    if (vg_random_bytes(&id, sizeof(id)) < 0)
        id = (unsigned long long)vg_clock_mono_ns(vg_loop_clock(r->loop));
    snprintf(r->name, sizeof(r->name), "%.*s.%016llx", (int)VG_MIN(about.n, 230), about.p, id);
}

/* Until one is under way, or there is none. */
static void send_next(struct vigil_recorder *r)
{
    while (!r->now && (r->now = take(r))) {
        r->tries = 0;
        name_event(r);
        if (vg_correlate(r) <= 0 || send_now(r) < 0)
            record_free(vg_steal(r->now)); /* too many, or no memory: an event is no promise */
    }
}

/* ---- recording ---- */

static void destroy(struct vigil_recorder *r)
{
    struct vg_record *rec;
    while ((rec = take(r)))
        record_free(rec);
    vg_correlator_done(&r->known);
    vg_buf_done(&r->key);
    vg_mutex_done(&r->mu);
    vg_free(r->component);
    vg_free(r);
}

static void on_mail(struct vg_mail *mail)
{
    struct vigil_recorder *r = VG_CONTAINER_OF(mail, struct vigil_recorder, mail);
    vg_mutex_lock(&r->mu);
    r->is_mail_posted = false;
    vg_mutex_unlock(&r->mu);
    if (r->is_freed)
        destroy(r);
    else
        send_next(r);
}

static char *add_text(char *at, struct vg_slice *ret, const char *s, size_t n)
{
    memcpy(at, s, n);
    *ret = vg_slice(at, n);
    return at + n;
}

static struct vg_record *make(const struct vigil_object *about, const char *type,
                              const char *reason, const char *message)
{
    size_t t = strlen(type), s = strlen(reason), m = strlen(message);
    struct vg_record *rec = vg_malloc(sizeof(*rec) + t + s + m);
    if (!rec)
        return NULL;
    char *at = add_text(rec->texts, &rec->type, type, t);
    at = add_text(at, &rec->reason, reason, s);
    add_text(at, &rec->message, message, m);
    rec->about = vigil_object_ref(about);
    return rec;
}

void vigil_record(struct vigil_recorder *r, const struct vigil_object *about, const char *type,
                  const char *reason, const char *message, ...)
{
    char text[VG_RECORDER_MESSAGE_MAX + 1];
    va_list ap;
    va_start(ap, message);
    vsnprintf(text, sizeof(text), message, ap);
    va_end(ap);
    struct vg_record *rec = make(about, type, reason, text);
    if (!rec)
        return;
    rec->wall_ms = vg_clock_wall_ms(vg_loop_clock(r->loop));
    vg_mutex_lock(&r->mu);
    bool has_room = r->n_queued < VG_RECORDER_QUEUE_MAX;
    if (has_room) {
        vg_list_push_back(&r->queue, &rec->link);
        r->n_queued++;
        if (!r->is_mail_posted)
            vg_loop_post(r->loop, &r->mail);
        r->is_mail_posted = true;
    }
    vg_mutex_unlock(&r->mu);
    if (!has_room)
        record_free(rec);
}

/* ---- life ---- */

int vigil_recorder_new(struct vigil_client *c, const char *component, struct vigil_recorder **ret,
                       struct vigil_error *err)
{
    struct vigil_recorder *r = vg_new(struct vigil_recorder);
    if (!r || !(r->component = vg_strdup(component))) {
        vg_free(r);
        return vg_error_set(err, -ENOMEM, "no memory for a recorder");
    }
    r->c = c;
    r->loop = vg_client_loop(c);
    r->mail.run = on_mail;
    vg_mutex_init(&r->mu, VG_RANK_CLIENT_WORK);
    vg_list_init(&r->queue);
    vg_map_init(&r->known.objects, VG_MAP_COPIES_KEYS);
    vg_map_init(&r->known.groups, VG_MAP_COPIES_KEYS);
    vg_map_init(&r->known.events, VG_MAP_COPIES_KEYS);
    *ret = r;
    return 0;
}

static void stop(void *arg)
{
    struct vigil_recorder *r = arg;
    vg_exchange_cancel(vg_steal(r->x));
    vg_timer_stop(r->loop, &r->retry);
    record_free(vg_steal(r->now));
    vg_mutex_lock(&r->mu);
    r->is_freed = r->is_mail_posted; /* then the mail finds it */
    bool is_last = !r->is_mail_posted;
    vg_mutex_unlock(&r->mu);
    if (is_last)
        destroy(r);
}

void vigil_recorder_free(struct vigil_recorder *r)
{
    if (r)
        vg_client_run(r->c, stop, r);
}
