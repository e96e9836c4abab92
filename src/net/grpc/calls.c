/* calls.c - where calls go, and what becomes of a try; see grpc.h and pool_int.h.
 *
 *   start --> waiting <-----------------------+ no endpoint is ready, or no token is there
 *                |  serve()                   |
 *                v                            | tried again: surely not carried out, or harmless
 *             active, on a session --ended--> decide --> on_end
 *
 * A call that waits in vain ends when every endpoint has failed (unless it said that it would
 * wait), or by its time. */
#include <errno.h>
#include <stdio.h>

#include "base/alloc.h"
#include "msg.h"
#include "pool_int.h"

/* 3 s: an endpoint that answered UNAVAILABLE, or nothing, is left alone for so long if there are
 * others. An election of etcd takes a second or two. */
#define AVOID_MS 3000
/* 1 s: after a login that failed, the next is tried no sooner. */
#define LOGIN_PAUSE_NS VG_NS_PER_S

static void on_call_timer(struct vg_timer *t);
static void on_kick(struct vg_timer *t);

/* ---- ends ---- */

static void leave(struct vg_grpc_call *c)
{
    vg_list_remove(&c->link);
    vg_timer_stop(c->pool->loop, &c->timer);
    c->pool->n_calls--;
    c->pool = NULL;
    c->msg = vg_grpc_msg_unref(c->msg);
}

static void end(struct vg_grpc_call *c)
{
    if (c->status.code != VG_GRPC_OK)
        c->pool->counts.failed++;
    leave(c);
    c->on_end(c);
}

static void end_with(struct vg_grpc_call *c, enum vg_grpc_code code, enum vg_grpc_fate fate,
                     const char *fmt, ...) VG_PRINTF(4, 5);
static void end_with(struct vg_grpc_call *c, enum vg_grpc_code code, enum vg_grpc_fate fate,
                     const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(c->status.message, sizeof c->status.message, fmt, ap);
    va_end(ap);
    c->status.code = code;
    c->status.fate = fate;
    end(c);
}

void vg_grpc_cancel(struct vg_grpc_call *c)
{
    if (!c->pool)
        return;
    if (c->stream)
        vg_grpc_session_drop(c);
    leave(c);
}

/* ---- where it goes ---- */

static bool fits(const struct vg_grpc_channel *ch, const struct vg_grpc_call *c)
{
    return ch->is_ready && (c->endpoint == 0 || c->endpoint == ch->index);
}

/* The current one while it is well, else the next that is; if all are to be avoided, the one that
 * has been for longest. */
static struct vg_grpc_channel *pick(struct vg_grpc_pool *pool, const struct vg_grpc_call *c)
{
    uint64_t now = vg_grpc_pool_now(pool);
    struct vg_grpc_channel *best = NULL;
    size_t first = pool->current ? (size_t)pool->current - 1 : 0;
    for (size_t i = 0; i < pool->n_channels; i++) {
        struct vg_grpc_channel *ch = &pool->channels[(first + i) % pool->n_channels];
        if (!fits(ch, c))
            continue;
        if (ch->avoid_ns <= now) {
            best = ch;
            break;
        }
        if (!best || ch->avoid_ns < best->avoid_ns)
            best = ch;
    }
    if (best && c->endpoint == 0)
        pool->current = best->index;
    return best;
}

static bool needs_token(const struct vg_grpc_pool *pool, const struct vg_grpc_call *c)
{
    return pool->token_state != VG_GRPC_TOKEN_NONE && !(c->flags & VG_GRPC_NO_TOKEN);
}

static struct vg_grpc_field token_of(const struct vg_grpc_pool *pool, const struct vg_grpc_call *c)
{
    struct vg_grpc_field f = {0};
    if (needs_token(pool, c) && pool->token_name)
        f = (struct vg_grpc_field){vg_slice_str(pool->token_name),
                                   vg_slice(pool->token_value, pool->token_size)};
    return f;
}

/* 1: it is on a session; 0: it has to wait; -ENOMEM. */
static int place(struct vg_grpc_call *c)
{
    struct vg_grpc_pool *pool = c->pool;
    if (needs_token(pool, c) && pool->token_state != VG_GRPC_TOKEN_THERE)
        return 0;
    struct vg_grpc_channel *ch = pick(pool, c);
    if (!ch)
        return 0;
    struct vg_grpc_field token = token_of(pool, c);
    uint64_t now = vg_grpc_pool_now(pool), left = 0;
    if (c->timer.armed)
        left = c->timer.due_ns > now ? c->timer.due_ns - now : 1;
    c->used = ch->index;
    c->tries++;
    c->token_age = pool->token_age;
    int r = vg_grpc_session_start(&ch->current->session, c, &token, left);
    if (r < 0)
        return r;
    vg_grpc_link_used(ch->current);
    vg_list_remove(&c->link);
    vg_list_push_back(&pool->active, &c->link);
    return 1;
}

/* ---- those who wait ---- */

static bool has_just_failed(const struct vg_grpc_pool *pool)
{
    return pool->token_state == VG_GRPC_TOKEN_WANTED && pool->token_failed_ns != 0 &&
           vg_grpc_pool_now(pool) < pool->token_failed_ns + LOGIN_PAUSE_NS;
}

/* The token cannot be had: whoever needs it hears why, but for those who wait for better times. */
static bool fails_for_token(const struct vg_grpc_pool *pool, const struct vg_grpc_call *c)
{
    enum vg_grpc_code code = pool->token_trouble.code;
    bool may_pass = code == VG_GRPC_UNAVAILABLE || code == VG_GRPC_DEADLINE_EXCEEDED;
    return needs_token(pool, c) && has_just_failed(pool) && !(may_pass && c->flags & VG_GRPC_WAIT);
}

static void end_hopeless(struct vg_grpc_pool *pool, struct vg_grpc_call *c)
{
    VG_AUTO(buf) why = {0};
    if (vg_grpc_pool_describe(pool, &why) < 0)
        vg_buf_clear(&why);
    end_with(c, VG_GRPC_UNAVAILABLE, VG_GRPC_NOT_SENT, "%.*s", VG_SLICE_ARG(vg_buf_slice(&why)));
}

static void serve_one(struct vg_grpc_pool *pool, struct vg_grpc_call *c, bool *ret_wants_token)
{
    int r = place(c);
    if (r < 0) {
        end_with(c, VG_GRPC_RESOURCE_EXHAUSTED, VG_GRPC_NOT_SENT, "out of memory");
    } else if (r == 0 && fails_for_token(pool, c)) {
        c->status = pool->token_trouble;
        end(c);
    } else if (r == 0) {
        *ret_wants_token |= needs_token(pool, c);
        if (!(c->flags & VG_GRPC_WAIT) && !vg_grpc_pool_has_hope(pool, c->endpoint))
            end_hopeless(pool, c);
    }
}

static void want_token(struct vg_grpc_pool *pool)
{
    if (pool->token_state != VG_GRPC_TOKEN_WANTED)
        return;
    if (has_just_failed(pool)) {
        vg_timer_start(pool->loop, &pool->kick, LOGIN_PAUSE_NS, on_kick);
        return;
    }
    pool->token_state = VG_GRPC_TOKEN_RENEWING;
    pool->opts.renew(pool, pool->opts.arg);
}

/* Callbacks may start, cancel and free calls meanwhile: who was there at first is moved to a list
 * of its own, and taken from there one by one. */
void vg_grpc_pool_serve(struct vg_grpc_pool *pool)
{
    struct vg_list round;
    bool wants_token = false;
    vg_list_init(&round);
    struct vg_list *n;
    while ((n = vg_list_pop_front(&pool->waiting)))
        vg_list_push_back(&round, n);
    while ((n = vg_list_pop_front(&round))) {
        vg_list_push_back(&pool->waiting, n);
        serve_one(pool, VG_CONTAINER_OF(n, struct vg_grpc_call, link), &wants_token);
    }
    if (wants_token)
        want_token(pool);
}

static void on_kick(struct vg_timer *t)
{
    vg_grpc_pool_serve(VG_CONTAINER_OF(t, struct vg_grpc_pool, kick));
}

void vg_grpc_pool_kick(struct vg_grpc_pool *pool)
{
    if (!pool->is_closing)
        vg_timer_start(pool->loop, &pool->kick, 0, on_kick);
}

static void wait_again(struct vg_grpc_call *c)
{
    vg_list_remove(&c->link);
    vg_list_push_back(&c->pool->waiting, &c->link);
    vg_grpc_pool_kick(c->pool);
}

/* ---- what becomes of a try ---- */

/* The server did nothing but find that the token is no good. */
static bool is_refused(struct vg_grpc_pool *pool, const struct vg_grpc_call *c)
{
    return pool->opts.is_refused && !(c->flags & VG_GRPC_NO_TOKEN) &&
           c->status.fate == VG_GRPC_ANSWERED && c->status.code != VG_GRPC_OK &&
           pool->opts.is_refused(&c->status, pool->opts.arg);
}

static bool try_new_token(struct vg_grpc_pool *pool, struct vg_grpc_call *c)
{
    if (!is_refused(pool, c))
        return false;
    if (c->token_age == pool->token_age)
        vg_grpc_pool_renew_token(pool);
    if (c->flags & VG_GRPC_STREAM || c->has_tried_token)
        return false;
    c->has_tried_token = true;
    c->status.fate = VG_GRPC_NOT_SENT; /* it was not carried out */
    return true;
}

static bool may_try_again(const struct vg_grpc_pool *pool, const struct vg_grpc_call *c)
{
    if (c->status.code != VG_GRPC_UNAVAILABLE || c->flags & VG_GRPC_STREAM)
        return false;
    if (c->status.fate != VG_GRPC_NOT_SENT && !(c->flags & VG_GRPC_REPEATABLE))
        return false;
    return c->tries <= pool->n_channels; /* each of them, and one once more */
}

/* The endpoint's own word that it did nothing, and cannot. */
static void read_elsewhere(const struct vg_grpc_pool *pool, struct vg_grpc_call *c)
{
    if (c->status.fate != VG_GRPC_ANSWERED || c->status.code == VG_GRPC_OK ||
        !pool->opts.is_elsewhere || !pool->opts.is_elsewhere(&c->status, pool->opts.arg))
        return;
    c->status.code = VG_GRPC_UNAVAILABLE;
    c->status.fate = VG_GRPC_NOT_SENT;
}

void vg_grpc_call_ended(struct vg_grpc_channel *ch, struct vg_grpc_call *c)
{
    struct vg_grpc_pool *pool = ch->pool;
    read_elsewhere(pool, c);
    if (c->status.code == VG_GRPC_UNAVAILABLE)
        vg_grpc_pool_avoid(pool, ch->index, AVOID_MS);
    if (!try_new_token(pool, c) && !may_try_again(pool, c)) {
        end(c);
        return;
    }
    pool->counts.retries++;
    vg_buf_done(&c->answer);
    wait_again(c);
}

/* Its time is up. A server that has not answered may be gone: calls go elsewhere meanwhile. */
static void on_call_timer(struct vg_timer *t)
{
    struct vg_grpc_call *c = VG_CONTAINER_OF(t, struct vg_grpc_call, timer);
    struct vg_grpc_pool *pool = c->pool;
    unsigned long long ms = (unsigned long long)c->timeout_ms;
    if (!c->stream) {
        enum vg_grpc_fate fate = c->tries ? c->status.fate : VG_GRPC_NOT_SENT;
        VG_AUTO(buf) why = {0};
        if (vg_grpc_pool_describe(pool, &why) < 0)
            vg_buf_clear(&why);
        end_with(c, VG_GRPC_DEADLINE_EXCEEDED, fate == VG_GRPC_ANSWERED ? VG_GRPC_MAYBE : fate,
                 "no endpoint took the call within %llu ms%s%.*s", ms, why.n ? ": " : "",
                 VG_SLICE_ARG(vg_buf_slice(&why)));
        return;
    }
    struct vg_grpc_channel *ch = &pool->channels[c->used - 1];
    enum vg_grpc_fate fate = vg_grpc_session_drop(c);
    vg_grpc_pool_avoid(pool, c->used, AVOID_MS);
    if (ch->current && ch->is_ready)
        vg_grpc_link_doubt(ch->current);
    end_with(c, VG_GRPC_DEADLINE_EXCEEDED, fate, "%s did not answer within %llu ms", ch->url, ms);
}

/* ---- starting ---- */

int vg_grpc_start(struct vg_grpc_pool *pool, struct vg_grpc_call *c)
{
    int r = 0;
    if (c->endpoint < 0 || (size_t)c->endpoint > pool->n_channels || !c->on_end)
        r = VIGIL_E_INVALID;
    else if (pool->n_calls >= VG_GRPC_CALLS_MAX)
        r = VIGIL_E_BUSY;
    if (r < 0) {
        c->msg = vg_grpc_msg_unref(c->msg);
        return r;
    }
    c->pool = pool;
    c->stream = NULL;
    c->used = 0;
    c->tries = 0;
    c->has_tried_token = false;
    c->status = (struct vg_grpc_status){0};
    pool->n_calls++;
    if (c->flags & VG_GRPC_STREAM)
        pool->counts.streams++;
    else
        pool->counts.calls++;
    vg_list_push_back(&pool->waiting, &c->link);
    c->timer = (struct vg_timer){0};
    if (c->timeout_ms)
        vg_timer_start(pool->loop, &c->timer, c->timeout_ms * VG_NS_PER_MS, on_call_timer);
    r = place(c);
    if (r < 0)
        leave(c);
    else if (r == 0)
        vg_grpc_pool_kick(pool);
    return VG_MIN(r, 0);
}
