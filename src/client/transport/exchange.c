/* exchange.c - the life of an exchange: its turn, its credentials, its tries, its end.
 *
 *   WAITING  its turn has come        -> CREDS    on_turn()
 *   CREDS    credentials are there    -> ACTIVE   attempt()
 *   ACTIVE   to be tried again        -> WAITING  retry_later()
 *   any      the end                  -> gone     finish()
 *
 * on_done comes from the loop's mail, timers or after libcurl has returned: never from within a
 * call of the exchange's owner. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "client_int.h"

/* A broken connection is tried again after this, as client-go does. */
#define RETRY_LOST_NS VG_NS_PER_S

void vg_rate_init(struct vg_rate *l, double qps, double burst, uint64_t now_ns)
{
    *l = (struct vg_rate){.qps = qps, .burst = burst, .tokens = burst, .at_ns = now_ns};
}

uint64_t vg_rate_take(struct vg_rate *l, uint64_t now_ns)
{
    if (l->qps <= 0)
        return 0;
    l->tokens += (double)(now_ns - l->at_ns) / (double)VG_NS_PER_S * l->qps;
    l->tokens = VG_MIN(l->tokens, l->burst) - 1;
    l->at_ns = now_ns;
    return l->tokens >= 0 ? 0 : (uint64_t)(-l->tokens / l->qps * (double)VG_NS_PER_S);
}

static uint64_t now_ns(const struct vg_exchange *x)
{
    return vg_clock_mono_ns(vg_loop_clock(x->c->loop));
}

static void destroy(struct vg_exchange *x)
{
    struct vg_loop *loop = x->c->loop;
    vg_timer_stop(loop, &x->deadline);
    vg_timer_stop(loop, &x->wait);
    vg_timer_stop(loop, &x->stall);
    vg_creds_leave(&x->waiter);
    vg_list_remove(&x->link);
    vg_exchange_close(x);
    vg_buf_done(&x->error_body);
    vg_free(x->texts);
    vg_free(x);
}

static void finish(struct vg_exchange *x, const struct vg_exchange_end *end)
{
    void (*on_done)(void *arg, const struct vg_exchange_end *end) = x->opts.on_done;
    void *arg = x->opts.arg;
    destroy(x);
    on_done(arg, end);
}

static void finish_with(struct vg_exchange *x, const struct vigil_error *err)
{
    const struct vg_exchange_end end = {.err = *err};
    finish(x, &end);
}

/* ---- tries ---- */

static void on_turn(struct vg_timer *t);

static void take_turn(struct vg_exchange *x)
{
    bool is_free = x->opts.is_watch && x->tries == 0;
    uint64_t wait = is_free ? 0 : vg_rate_take(&x->c->limit, now_ns(x));
    if (wait > VG_NS_PER_S)
        vg_info(&x->c->log, "throttled", "path=%s ms=%llu", x->opts.path,
                (unsigned long long)(wait / VG_NS_PER_MS));
    vg_timer_start(x->c->loop, &x->wait, wait, on_turn);
}

static void on_again(struct vg_timer *t)
{
    take_turn(VG_CONTAINER_OF(t, struct vg_exchange, wait));
}

/* Will there be time for another try, before somebody waits for too long? */
static bool has_time(const struct vg_exchange *x, uint64_t delay_ns)
{
    uint64_t at = now_ns(x) + delay_ns;
    if (x->deadline.armed && at >= x->deadline.due_ns)
        return false;
    return at - x->begun_ns <= VG_EXCHANGE_RETRY_S * VG_NS_PER_S;
}

/* True: it goes on, or its owner has canceled it. */
static bool retry_later(struct vg_exchange *x, uint64_t delay_ns, const struct vg_exchange_end *end)
{
    if (x->tries > VG_EXCHANGE_RETRIES || !has_time(x, delay_ns))
        return false;
    if (x->opts.on_retry)
        x->opts.on_retry(x->opts.arg, end);
    if (x->is_canceled)
        return true; /* its job ends it */
    vg_debug(&x->c->log, "retry", "path=%s try=%u ms=%llu", x->opts.path, x->tries,
             (unsigned long long)(delay_ns / VG_NS_PER_MS));
    vg_exchange_close(x);
    vg_timer_stop(x->c->loop, &x->stall);
    vg_buf_clear(&x->error_body);
    x->state = VG_EXCHANGE_WAITING;
    vg_timer_start(x->c->loop, &x->wait, delay_ns, on_again);
    return true;
}

/* Watches that go by certificates which have changed, or by connections which nobody trusts any
 * more, are opened anew. */
static void on_outdated(struct vg_timer *t)
{
    struct vg_exchange *x = VG_CONTAINER_OF(t, struct vg_exchange, wait);
    struct vg_exchange_end end = {.is_lost = true, .was_open = true};
    vg_error_set(&end.err, VIGIL_E_NETWORK, "connecting anew");
    finish(x, &end);
}

static void end_outdated(struct vigil_client *c)
{
    VG_LIST_FOREACH (l, &c->exchanges) {
        struct vg_exchange *x = VG_CONTAINER_OF(l, struct vg_exchange, link);
        bool is_old = x->state == VG_EXCHANGE_ACTIVE &&
                      (x->generation != c->creds.generation || x->epoch != c->epoch);
        if (is_old && x->opts.is_watch && !x->is_canceled)
            vg_timer_start(c->loop, &x->wait, 0, on_outdated);
    }
}

/* A peer that says nothing would say nothing to the next request either, which HTTP/2 would send on
 * the same connection. All that are open are closed as soon as nobody uses them, and not used again
 * (vg_exchange_open). */
static void distrust_connections(struct vigil_client *c)
{
    c->epoch++;
    VG_LIST_FOREACH (l, &c->exchanges) {
        struct vg_exchange *x = VG_CONTAINER_OF(l, struct vg_exchange, link);
        if (x->easy)
            curl_easy_setopt(x->easy, CURLOPT_FORBID_REUSE, 1L);
    }
    end_outdated(c);
}

static uint64_t stall_ns(const struct vg_exchange *x)
{
    bool is_early = x->opts.head_ms && x->opts.on_open && !x->has_head;
    return (is_early ? x->opts.head_ms : x->opts.stall_ms) * VG_NS_PER_MS;
}

static void on_stall(struct vg_timer *t)
{
    struct vg_exchange *x = VG_CONTAINER_OF(t, struct vg_exchange, stall);
    uint64_t limit = stall_ns(x);
    uint64_t silent = now_ns(x) - x->heard_ns;
    if (x->is_paused)
        silent = 0;
    if (silent < limit) {
        vg_timer_start(x->c->loop, t, limit - silent, on_stall);
        return;
    }
    struct vg_exchange_end end = {.is_lost = true};
    long http = 0;
    curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &http);
    end.was_open = http / 100 == 2;
    vg_error_set(&end.err, VIGIL_E_TIMEOUT, "%s was silent for %llu s", x->c->config->server,
                 (unsigned long long)(limit / VG_NS_PER_S));
    distrust_connections(x->c);
    finish(x, &end);
}

static void arm_stall(struct vg_exchange *x)
{
    if (x->opts.stall_ms && x->state == VG_EXCHANGE_ACTIVE)
        vg_timer_start(x->c->loop, &x->stall, stall_ns(x), on_stall);
    else
        vg_timer_stop(x->c->loop, &x->stall);
}

static void attempt(struct vg_exchange *x)
{
    x->tries++;
    x->has_head = false;
    x->heard_ns = now_ns(x);
    x->generation = x->c->creds.generation;
    x->epoch = x->c->epoch;
    int r = vg_exchange_open(x);
    if (r == 0) {
        x->state = VG_EXCHANGE_ACTIVE;
        arm_stall(x);
        end_outdated(x->c);
        r = vg_mux_add(x->c->mux, x->easy) == 0 ? 0 : -ENOMEM;
    }
    if (r < 0) {
        struct vigil_error err;
        vg_error_set(&err, r, "out of memory");
        finish_with(x, &err);
    }
}

static void on_creds(struct vg_creds_waiter *w, const struct vigil_error *err)
{
    struct vg_exchange *x = VG_CONTAINER_OF(w, struct vg_exchange, waiter);
    if (err->code < 0)
        finish_with(x, err);
    else
        attempt(x);
}

static void on_turn(struct vg_timer *t)
{
    struct vg_exchange *x = VG_CONTAINER_OF(t, struct vg_exchange, wait);
    struct vigil_error err = {0};
    x->state = VG_EXCHANGE_CREDS;
    int r = vg_creds_prepare(&x->c->creds, &x->waiter, &err);
    if (r < 0)
        finish_with(x, &err);
    else if (r == 0)
        attempt(x);
}

/* ---- ends ---- */

/* An integer Retry-After, or -1. */
static long retry_after(CURL *easy)
{
    struct curl_header *h = NULL;
    if (curl_easy_header(easy, "Retry-After", 0, CURLH_HEADER, -1, &h) != CURLHE_OK)
        return -1;
    char *end = NULL;
    long v = strtol(h->value, &end, 10);
    return end == h->value || *end || v < 0 || v > 86400 ? -1 : v;
}

/* "Retry-After: 0" is not taken at its word for ever: 100 ms, doubled up to 1 s. */
static uint64_t least_delay(const struct vg_exchange *x)
{
    uint64_t ns = (100 * VG_NS_PER_MS) << VG_MIN(x->tries, 5u) >> 1;
    return x->tries <= 1 ? 0 : VG_MIN(ns, VG_NS_PER_S);
}

static void refused(struct vg_exchange *x, int http)
{
    struct vg_exchange_end end = {0};
    long after = retry_after(x->easy);
    if (http == 401)
        vg_creds_refused(&x->c->creds);
    end.is_version_too_large = vg_answer_error(vg_buf_slice(&x->error_body), http, &end.err);
    if (after > 0)
        end.err.retry_after_s = (uint32_t)after;
    uint64_t delay = VG_MAX((uint64_t)VG_MAX(after, 0L) * VG_NS_PER_S, least_delay(x));
    if ((http == 429 || http >= 500) && after >= 0 && retry_later(x, delay, &end))
        return;
    finish(x, &end);
}

static bool is_get(const struct vg_exchange *x)
{
    return strcmp(x->opts.method, "GET") == 0;
}

static void failed(struct vg_exchange *x, CURLcode result, bool was_open)
{
    struct vg_exchange_end end = {.was_open = was_open};
    vg_exchange_explain(x, result, &end);
    bool is_timeout = result == CURLE_OPERATION_TIMEDOUT;
    bool may_retry = !was_open && is_get(x) && end.is_lost && (!is_timeout || x->opts.is_watch);
    bool is_safe = !was_open && !is_get(x) && vg_exchange_is_not_processed(x, result);
    if (is_safe && retry_later(x, least_delay(x), &end))
        return;
    if (may_retry && retry_later(x, RETRY_LOST_NS, &end))
        return;
    if (may_retry && x->opts.is_watch)
        end.was_open = true; /* as a watch that ends at once: it is not a reason to list */
    finish(x, &end);
}

void vg_exchange_on_result(void *exchange, CURLcode result)
{
    struct vg_exchange *x = exchange;
    if (x->is_canceled)
        return; /* its job ends it */
    long http = 0;
    curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &http);
    if (x->data_error < 0) {
        struct vg_exchange_end end = {.was_open = true};
        vg_error_set(&end.err, x->data_error, "the answer cannot be read: %s",
                     vg_err_text(x->data_error));
        end.err.http = (int)http;
        finish(x, &end);
    } else if (http >= 300) {
        refused(x, (int)http);
    } else if (result != CURLE_OK) {
        failed(x, result, http / 100 == 2);
    } else {
        finish(x, &(struct vg_exchange_end){.was_open = true, .err.http = (int)http});
    }
}

static void on_deadline(struct vg_timer *t)
{
    struct vg_exchange *x = VG_CONTAINER_OF(t, struct vg_exchange, deadline);
    struct vigil_error err;
    unsigned long long ms = x->opts.timeout_ms;
    if (x->state == VG_EXCHANGE_CREDS)
        vg_error_set(&err, VIGIL_E_TIMEOUT,
                     "%s, which should give credentials, did not end within %llu ms",
                     x->c->config->exec.command, ms);
    else
        vg_error_set(&err, VIGIL_E_TIMEOUT, "%s did not answer within %llu ms",
                     x->c->config->server, ms);
    if (x->state == VG_EXCHANGE_ACTIVE && x->c->heard_ns < x->heard_ns) /* nobody heard anything */
        distrust_connections(x->c);
    finish_with(x, &err);
}

/* ---- for the owner ---- */

/* All texts in one block, the options pointing into it. */
static int copy_texts(struct vg_exchange *x, const struct vg_exchange_opts *o)
{
    const char *from[] = {o->method, o->path, o->accept ? o->accept : "application/json",
                          o->content_type};
    const char **to[] = {&x->opts.method, &x->opts.path, &x->opts.accept, &x->opts.content_type};
    size_t n = o->body.n + 1;
    for (size_t i = 0; i < VG_ARRAY_LEN(from); i++)
        n += from[i] ? strlen(from[i]) + 1 : 0;
    char *p = x->texts = vg_malloc(n);
    if (!p)
        return -ENOMEM;
    for (size_t i = 0; i < VG_ARRAY_LEN(from); i++) {
        size_t len = from[i] ? strlen(from[i]) + 1 : 0;
        if (len)
            memcpy(p, from[i], len);
        *to[i] = len ? p : NULL;
        p += len;
    }
    if (o->body.n)
        memcpy(p, o->body.p, o->body.n);
    x->opts.body = vg_slice(p, o->body.n);
    return 0;
}

int vg_exchange_start(struct vigil_client *c, const struct vg_exchange_opts *opts,
                      struct vg_exchange **ret)
{
    assert(vg_loop_is_current(c->loop));
    if (atomic_load(&c->is_closing))
        return VIGIL_E_CLOSED;
    struct vg_exchange *x = vg_new(struct vg_exchange);
    if (!x)
        return -ENOMEM;
    x->c = c;
    x->opts = *opts;
    x->begun_ns = now_ns(x);
    x->error_body.max = VG_ERROR_BODY_MAX;
    x->waiter.ready = on_creds;
    if (copy_texts(x, opts) < 0) {
        vg_free(x);
        return -ENOMEM;
    }
    vg_list_push_back(&c->exchanges, &x->link);
    if (opts->timeout_ms)
        vg_timer_start(c->loop, &x->deadline, opts->timeout_ms * VG_NS_PER_MS, on_deadline);
    take_turn(x);
    *ret = x;
    return 0;
}

static void run_cancel(struct vg_mux_job *job)
{
    destroy(VG_CONTAINER_OF(job, struct vg_exchange, job));
}

void vg_exchange_cancel(struct vg_exchange *x)
{
    if (!x || x->is_canceled)
        return;
    struct vg_loop *loop = x->c->loop;
    x->is_canceled = true;
    vg_timer_stop(loop, &x->deadline);
    vg_timer_stop(loop, &x->wait);
    vg_timer_stop(loop, &x->stall);
    vg_creds_leave(&x->waiter);
    x->job.run = run_cancel;
    vg_mux_defer(x->c->mux, &x->job);
}

void vg_exchange_cancel_all(struct vigil_client *c)
{
    for (struct vg_list *l; (l = c->exchanges.next) != &c->exchanges;) {
        struct vigil_error err;
        vg_error_set(&err, VIGIL_E_CANCELED, "the client is gone");
        finish_with(VG_CONTAINER_OF(l, struct vg_exchange, link), &err);
    }
}

void vg_exchange_pause(struct vg_exchange *x)
{
    x->is_paused = true; /* the next bytes are not taken from libcurl */
}

static void run_resume(struct vg_mux_job *job)
{
    struct vg_exchange *x = VG_CONTAINER_OF(job, struct vg_exchange, job);
    if (x->is_canceled)
        destroy(x);
    else if (x->easy)
        vg_mux_unpause(x->c->mux, x->easy);
}

void vg_exchange_resume(struct vg_exchange *x)
{
    if (!x->is_paused || x->is_canceled)
        return;
    x->is_paused = false;
    x->heard_ns = now_ns(x);
    if (x->state != VG_EXCHANGE_ACTIVE)
        return;
    x->job.run = run_resume;
    vg_mux_defer(x->c->mux, &x->job);
}

void vg_exchange_set_stall(struct vg_exchange *x, uint64_t stall_ms)
{
    x->opts.stall_ms = stall_ms;
    arm_stall(x);
}
