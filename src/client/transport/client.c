/* client.c - vigil/client.h: making and ending clients, their loop, those who wait for it. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/alloc.h"
#include "client_int.h"

#define DEFAULT_QPS 5.0
#define DEFAULT_BURST 10u
#define DEFAULT_TIMEOUT_MS 60000u
/* Fields of one line, for who logs; longer ones are cut. */
#define LOG_FIELDS_MAX 1024

static int global_result;
static void global_init(void)
{
    /* libcurl wants this once; it counts, so a program that does it too is fine. */
    global_result = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? 0 : -ENOMEM;
}

static void write_log(void *arg, const struct vg_log_record *rec)
{
    struct vigil_client *c = arg;
    char fields[LOG_FIELDS_MAX];
    size_t n = 0;
    fields[0] = 0;
    for (size_t i = 0; i < rec->field_count && n < sizeof(fields); i++) {
        const struct vg_log_field *f = &rec->fields[i];
        int r = snprintf(fields + n, sizeof(fields) - n, "%s%.*s=%.*s", i ? " " : "",
                         VG_SLICE_ARG(f->key), VG_SLICE_ARG(f->value));
        n += r > 0 ? (size_t)r : 0;
    }
    c->log_fn(c->log_arg, (enum vigil_level)rec->level, rec->component, rec->event, fields);
}

static char *make_user_agent(const char *given)
{
    struct utsname u = {0};
    VG_AUTO(buf) b = {0};
    if (given)
        return vg_strdup(given);
    uname(&u);
    if (vg_buf_printf(&b, "%s/%s (%s/%s) libvigil/%s", program_invocation_short_name,
                      vigil_version(), u.sysname, u.machine, vigil_version()) < 0)
        return NULL;
    return vg_strndup(b.p, b.n);
}

static int set_up(struct vigil_client *c, const struct vigil_client_opts *o,
                  const struct vg_clock *clock, struct vigil_error *err)
{
    c->mode = o->mode;
    c->timeout_ms = o->timeout_ms ? o->timeout_ms : DEFAULT_TIMEOUT_MS;
    c->log_fn = o->log;
    c->log_arg = o->log_arg;
    vg_log_init(&c->log, "client", o->log ? write_log : NULL, c,
                o->log ? (enum vg_log_level)o->log_level : VG_LOG_ERROR);
    double qps = o->qps < 0 ? 0 : o->qps > 0 ? o->qps : DEFAULT_QPS;
    vg_rate_init(&c->limit, qps, o->burst ? o->burst : DEFAULT_BURST, vg_clock_mono_ns(clock));
    c->user_agent = make_user_agent(o->user_agent);
    int r = c->user_agent ? vg_loop_new(clock, &c->loop) : -ENOMEM;
    if (r == 0)
        r = vg_mux_new(c->loop, vg_exchange_on_result, &c->mux);
    if (r < 0)
        return vg_error_set(err, r, "cannot make a loop: %s", vg_err_text(r));
    r = vg_creds_init(&c->creds, c->config, c->loop, &c->log, err);
    c->has_creds = true;
    if (r == 0 && c->mode == VIGIL_OWN_THREAD) {
        r = vg_loop_start(c->loop, "vigil-client");
        if (r < 0)
            return vg_error_set(err, r, "cannot start a thread: %s", vg_err_text(r));
    }
    return r;
}

/* Options as large as the caller knows them; what it does not know is zero. */
static struct vigil_client_opts full_opts(const struct vigil_client_opts *o)
{
    struct vigil_client_opts full = {0};
    if (o)
        memcpy(&full, o, VG_MIN(o->size, sizeof(full)));
    return full;
}

int vg_client_new(const struct vigil_config *config, const struct vigil_client_opts *opts,
                  const struct vg_clock *clock, struct vigil_client **ret, struct vigil_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, global_init);
    if (opts && opts->size == 0)
        return vg_error_set(err, VIGIL_E_INVALID, VG_NO_SIZE);
    struct vigil_client_opts full = full_opts(opts);
    if (!vg_is_header_text(full.user_agent))
        return vg_error_set(err, VIGIL_E_INVALID,
                            "the user agent has a line break or another control character");
    struct vigil_client *c = vg_new(struct vigil_client);
    if (!c || global_result < 0) {
        vg_free(c);
        return vg_error_set(err, VIGIL_E_MEMORY, "out of memory");
    }
    c->config = vg_config_ref(config);
    vg_list_init(&c->exchanges);
    vg_mutex_init(&c->mu, VG_RANK_CLIENT_CALL);
    vg_cond_init(&c->done);
    int r = set_up(c, &full, clock, err);
    if (r < 0)
        vigil_client_free(c);
    else
        *ret = c;
    return r;
}

int vigil_client_new(const struct vigil_config *config, const struct vigil_client_opts *opts,
                     struct vigil_client **ret, struct vigil_error *err)
{
    return vg_client_new(config, opts, vg_clock_system(), ret, err);
}

/* Mail may post mail: a `done` that cancels another request, say. What still comes after so many
 * turns belongs to something that should have been freed before the client. */
#define CLOSING_TURNS 64

static void run_what_is_left(struct vigil_client *c)
{
    for (int i = 0; i < CLOSING_TURNS && vg_loop_turn(c->loop, false); i++)
        continue;
}

/* The loop belongs to this thread by now, and no exchange begins any more: the callbacks that run
 * here cannot use what goes away. */
static void end_loop(struct vigil_client *c)
{
    run_what_is_left(c); /* requests that were posted and not begun */
    vg_exchange_cancel_all(c);
    if (c->has_creds)
        vg_creds_done(&c->creds);
    run_what_is_left(c); /* the mail of an exec that was ended, and of late cancels */
    assert(vg_list_is_empty(&c->exchanges));
    vg_mux_free(c->mux);
    vg_loop_free(c->loop);
}

void vigil_client_free(struct vigil_client *c)
{
    if (!c)
        return;
    atomic_store(&c->is_closing, true);
    if (c->loop) {
        vg_loop_stop(c->loop);
        end_loop(c);
    }
    vg_cond_done(&c->done);
    vg_mutex_done(&c->mu);
    vg_log_done(&c->log);
    vigil_config_free(c->config);
    vg_free(c->user_agent);
    vg_free(c);
}

/* ---- the loop ---- */

struct vg_loop *vg_client_loop(struct vigil_client *c)
{
    return c->loop;
}

const struct vg_log *vg_client_log(const struct vigil_client *c)
{
    return &c->log;
}

int vigil_client_fd(const struct vigil_client *c)
{
    return uv_backend_fd(vg_loop_uv(c->loop));
}

int vigil_client_timeout_ms(struct vigil_client *c)
{
    return vg_loop_timeout_ms(c->loop);
}

static void turn(struct vigil_client *c, bool wait)
{
    c->is_turning = true;
    vg_loop_turn(c->loop, wait);
    c->is_turning = false;
}

void vigil_client_step(struct vigil_client *c)
{
    if (!c->is_turning && c->mode == VIGIL_OWN_LOOP)
        turn(c, false);
}

bool vg_client_may_turn(const struct vigil_client *c)
{
    return c->mode == VIGIL_OWN_LOOP && vg_loop_is_current(c->loop) && !c->is_turning;
}

bool vg_client_turn(struct vigil_client *c)
{
    if (!vg_client_may_turn(c))
        return false;
    turn(c, true);
    return true;
}

struct run_mail {
    struct vg_mail mail;
    struct vigil_client *c;
    void (*fn)(void *arg);
    void *arg;
    bool is_done; /* under the client's mutex */
};

static void run_mailed(struct vg_mail *mail)
{
    struct run_mail *m = VG_CONTAINER_OF(mail, struct run_mail, mail);
    struct vigil_client *c = m->c;
    m->fn(m->arg);
    vg_mutex_lock(&c->mu);
    m->is_done = true; /* the waiting thread may go on and take its mail away */
    vg_cond_broadcast(&c->done);
    vg_mutex_unlock(&c->mu);
}

void vg_client_run(struct vigil_client *c, void (*fn)(void *arg), void *arg)
{
    if (vg_loop_is_current(c->loop)) {
        fn(arg);
        return;
    }
    struct run_mail m = {.mail.run = run_mailed, .c = c, .fn = fn, .arg = arg};
    vg_loop_post(c->loop, &m.mail);
    vg_mutex_lock(&c->mu);
    while (!m.is_done)
        vg_cond_wait(&c->done, &c->mu);
    vg_mutex_unlock(&c->mu);
}
