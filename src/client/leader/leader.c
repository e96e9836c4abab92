/* leader.c - vigil/leader.h: attempts, and what they lead to; see leader_int.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "leader_int.h"

#define LEASE_MS 15000u
#define RENEW_MS 10000u
#define RETRY_MS 2000u
#define IDENTITY_MAX 1000u
/* A Lease is a few hundred bytes; others may have written annotations on it. */
#define ANSWER_MAX ((size_t)4 << 20)

static void attempt(struct vigil_leader *l);
/* `releases`: the lease may be ours, and is given up if the options say so. */
static void end(struct vigil_leader *l, bool releases);

/* ---- the outcome of an attempt ---- */

static void on_next(struct vg_timer *t)
{
    attempt(VG_CONTAINER_OF(t, struct vigil_leader, next));
}

static uint64_t now_ns(const struct vigil_leader *l)
{
    return vg_clock_mono_ns(vg_loop_clock(l->loop));
}

static void on_deadline(struct vg_timer *t)
{
    end(VG_CONTAINER_OF(t, struct vigil_leader, deadline), true);
}

/* Candidates are spread over retry * [1, 2.2). A leader keeps its pace from request to request: an
 * answer that took long is followed by the next renewal at once. */
static void try_later(struct vigil_leader *l)
{
    uint64_t ns = l->opts.retry_ms * VG_NS_PER_MS;
    if (l->state == VG_LEADER_ACQUIRING)
        ns += vg_rng_below(&l->rng, ns + ns / 5);
    else
        ns -= VG_MIN(ns, now_ns(l) - l->begun_ns);
    vg_timer_start(l->loop, &l->next, ns, on_next);
}

/* The lease is ours. Others count its time from when they see it, which is after the request was
 * sent; so we count ours from before that, and not from the answer, which may be late. */
static void succeeded(struct vigil_leader *l)
{
    bool is_new = l->state == VG_LEADER_ACQUIRING;
    uint64_t now = now_ns(l), until = l->written_ns + l->opts.renew_ms * VG_NS_PER_MS;
    if (now >= until) { /* too late to lead by; a leader's deadline is due by now */
        try_later(l);
        return;
    }
    l->state = VG_LEADER_LEADING;
    vg_timer_start(l->loop, &l->deadline, until - now, on_deadline);
    try_later(l);
    atomic_store(&l->leads_until_ns, until);
    if (is_new && l->opts.on_started)
        l->opts.on_started(l->opts.arg);
}

static void finish(struct vigil_leader *l)
{
    l->state = VG_LEADER_ENDED;
    vg_timer_stop(l->loop, &l->deadline);
    vg_mutex_lock(&l->mu);
    l->has_ended = true;
    vg_cond_broadcast(&l->ended);
    vg_mutex_unlock(&l->mu);
}

/* ---- exchanges ---- */

static int on_data(void *arg, struct vg_slice bytes)
{
    struct vigil_leader *l = arg;
    return vg_buf_append(&l->answer, bytes.p, bytes.n);
}

static void on_done(void *arg, const struct vg_exchange_end *e);

/* 0 or -ENOMEM. body.n 0: none. */
static int ask(struct vigil_leader *l, enum vg_leader_step step, struct vg_slice body)
{
    VG_AUTO(buf) path = {0};
    bool creates = step == VG_STEP_CREATE;
    int r = vg_path_resource(&path, &vigil_leases, l->opts.ns, creates ? NULL : l->opts.name, NULL);
    if (r < 0 || (r = vg_buf_append_byte(&path, 0)) < 0)
        return r;
    bool reads = step == VG_STEP_READ || step == VG_STEP_RELEASE_READ;
    l->step = step;
    if (!reads)
        l->written_ns = now_ns(l);
    vg_buf_clear(&l->answer);
    return vg_exchange_start(
        l->c,
        &(struct vg_exchange_opts){.method = reads     ? "GET"
                                             : creates ? "POST"
                                                       : "PATCH",
                                   .path = path.p,
                                   .content_type = creates ? "application/json"
                                                           : "application/merge-patch+json",
                                   .body = body,
                                   .timeout_ms = VG_MAX(l->opts.renew_ms / 2, (uint64_t)1),
                                   .on_data = on_data,
                                   .on_done = on_done,
                                   .arg = l},
        &l->x);
}

static int write_lease(struct vigil_leader *l, enum vg_leader_step step)
{
    VG_AUTO(buf) body = {0};
    const struct vigil_object *base = step == VG_STEP_CREATE ? NULL : l->seen;
    int r = vg_lease_write(l, base, step == VG_STEP_RELEASE, &body);
    return r < 0 ? r : ask(l, step, vg_slice(body.p, body.n));
}

static void attempt(struct vigil_leader *l)
{
    l->begun_ns = now_ns(l);
    bool knows = l->state == VG_LEADER_LEADING && vg_lease_is_ours(l) && vg_lease_is_held(l);
    int r = knows ? write_lease(l, VG_STEP_RENEW) : ask(l, VG_STEP_READ, (struct vg_slice){0});
    if (r < 0)
        try_later(l);
}

/* The lease was read: take it, or wait. A leader that reads another holder, or none, stops leading
 * at once. */
static void consider(struct vigil_leader *l)
{
    bool is_others = vg_lease_is_held(l) && !vg_lease_is_ours(l);
    if (l->state == VG_LEADER_LEADING && !vg_lease_is_ours(l))
        end(l, false);
    else if (is_others || write_lease(l, VG_STEP_TAKE) < 0)
        try_later(l);
}

static void failed(struct vigil_leader *l, const struct vigil_error *err)
{
    bool is_missing = l->step == VG_STEP_READ && err->http == 404;
    bool is_outdated = l->step == VG_STEP_RENEW || (err->http == 409 && l->step != VG_STEP_READ);
    if (is_outdated && ask(l, VG_STEP_READ, (struct vg_slice){0}) == 0)
        return; /* somebody wrote, or we know an old state: look */
    if (is_missing && write_lease(l, VG_STEP_CREATE) == 0)
        return;
    try_later(l);
}

/* ---- giving the lease up ---- */

/* A renewal that was under way may reach the server after we stopped waiting for it. So the lease
 * is read first, and again when a write came between the reading and the giving up. */
static void read_to_release(struct vigil_leader *l)
{
    if (ask(l, VG_STEP_RELEASE_READ, (struct vg_slice){0}) < 0)
        finish(l);
}

static void released(struct vigil_leader *l, const struct vigil_object *o,
                     const struct vigil_error *err)
{
    if (l->step == VG_STEP_RELEASE && err->http == 409)
        read_to_release(l);
    else if (l->step == VG_STEP_RELEASE || !o || !vg_lease_is_ours(l) ||
             write_lease(l, VG_STEP_RELEASE) < 0)
        finish(l);
}

static void on_release_deadline(struct vg_timer *t)
{
    struct vigil_leader *l = VG_CONTAINER_OF(t, struct vigil_leader, deadline);
    vg_exchange_cancel(vg_steal(l->x));
    finish(l);
}

static void on_done(void *arg, const struct vg_exchange_end *e)
{
    struct vigil_leader *l = arg;
    const struct vigil_object *o = NULL;
    l->x = NULL;
    if (e->err.code == 0)
        o = vigil_object_parse((struct vigil_text){l->answer.p, l->answer.n}, NULL);
    if (o)
        vg_lease_see(l, o);
    if (l->state == VG_LEADER_RELEASING)
        released(l, o, &e->err);
    else if (!o)
        failed(l, &e->err);
    else if (l->step == VG_STEP_READ)
        consider(l);
    else
        succeeded(l);
}

/* ---- the end ---- */

/* Is the lease ours, or will it be if a request that is under way gets through? */
static bool may_hold(const struct vigil_leader *l)
{
    bool takes = l->x && (l->step == VG_STEP_TAKE || l->step == VG_STEP_CREATE);
    return l->state == VG_LEADER_LEADING || takes;
}

/* The work stops first: what follows may take long, and somebody else may lead by then. */
static void end(struct vigil_leader *l, bool releases)
{
    if (l->state >= VG_LEADER_RELEASING)
        return;
    releases = releases && l->opts.release && may_hold(l);
    vg_timer_stop(l->loop, &l->next);
    vg_timer_stop(l->loop, &l->deadline);
    vg_exchange_cancel(vg_steal(l->x));
    atomic_store(&l->leads_until_ns, 0);
    l->state = VG_LEADER_RELEASING;
    if (l->opts.on_stopped)
        l->opts.on_stopped(l->opts.arg);
    if (!releases) {
        finish(l);
        return;
    }
    vg_timer_start(l->loop, &l->deadline, l->opts.renew_ms * VG_NS_PER_MS, on_release_deadline);
    read_to_release(l);
}

static void end_now(void *arg)
{
    end(arg, true);
}

static void begin(void *arg)
{
    attempt(arg);
}

static void drop(void *arg)
{
    struct vigil_leader *l = arg;
    vg_exchange_cancel(vg_steal(l->x));
}

static void destroy(struct vigil_leader *l)
{
    vigil_object_unref(l->seen);
    vg_buf_done(&l->told);
    vg_buf_done(&l->answer);
    vg_cond_done(&l->ended);
    vg_mutex_done(&l->mu);
    vg_free(l->texts);
    vg_free(l);
}

static bool has_ended(struct vigil_leader *l)
{
    vg_mutex_lock(&l->mu);
    bool ended = l->has_ended;
    vg_mutex_unlock(&l->mu);
    return ended;
}

void vigil_leader_free(struct vigil_leader *l)
{
    if (!l)
        return;
    vg_client_run(l->c, end_now, l);
    if (vg_loop_is_current(l->loop)) {
        while (!has_ended(l) && vg_client_turn(l->c))
            continue;
    } else {
        vg_mutex_lock(&l->mu);
        while (!l->has_ended)
            vg_cond_wait(&l->ended, &l->mu);
        vg_mutex_unlock(&l->mu);
    }
    vg_client_run(l->c, drop, l);
    destroy(l);
}

bool vigil_leader_is_leading(const struct vigil_leader *l)
{
    return now_ns(l) < atomic_load(&l->leads_until_ns);
}

/* ---- making ---- */

static int make_texts(struct vigil_leader *l)
{
    VG_AUTO(buf) b = {0};
    char host[256] = "";
    struct vigil_leader_opts *o = &l->opts;
    if (gethostname(host, sizeof(host) - 1) < 0)
        host[0] = 0;
    int r = vg_buf_printf(&b, "%s%c%s%c", o->ns, 0, o->name, 0);
    if (r == 0 && o->identity)
        r = vg_buf_printf(&b, "%s%c", o->identity, 0);
    else if (r == 0)
        r = vg_buf_printf(&b, "%s_%016llx%c", host, (unsigned long long)vg_rng_u64(&l->rng), 0);
    if (r < 0 || !(l->texts = vg_malloc(b.n)))
        return -ENOMEM;
    memcpy(l->texts, b.p, b.n);
    o->ns = l->texts;
    o->name = o->ns + strlen(o->ns) + 1;
    o->identity = o->name + strlen(o->name) + 1;
    return 0;
}

static const char *check(struct vigil_leader_opts *o)
{
    o->lease_ms = o->lease_ms ? o->lease_ms : LEASE_MS;
    o->renew_ms = o->renew_ms ? o->renew_ms : RENEW_MS;
    o->retry_ms = o->retry_ms ? o->retry_ms : RETRY_MS;
    if (!o->ns || !*o->ns || !o->name || !*o->name)
        return "a lease has a namespace and a name";
    if (o->identity && (!*o->identity || strlen(o->identity) > IDENTITY_MAX))
        return "the identity is empty or longer than 1000 bytes";
    if (o->lease_ms > (uint64_t)INT32_MAX * 1000 || o->lease_ms <= o->renew_ms)
        return "the lease must last longer than the deadline to renew it";
    if (o->renew_ms <= o->retry_ms || o->renew_ms - o->retry_ms <= o->retry_ms / 5)
        return "the deadline to renew must be more than 1.2 times the time between tries";
    return NULL;
}

int vigil_leader_new(struct vigil_client *c, const struct vigil_leader_opts *opts,
                     struct vigil_leader **ret, struct vigil_error *err)
{
    uint64_t seed = 0;
    struct vigil_leader_opts o = {0};
    if (opts->size == 0)
        return vg_error_set(err, VIGIL_E_INVALID, VG_NO_SIZE);
    memcpy(&o, opts, VG_MIN(opts->size, sizeof(o))); /* of an older program: shorter */
    const char *wrong = check(&o);
    if (wrong)
        return vg_error_set(err, VIGIL_E_INVALID, "%s", wrong);
    struct vigil_leader *l = vg_new(struct vigil_leader);
    if (!l)
        return vg_error_set(err, -ENOMEM, "no memory for a candidate");
    l->c = c;
    l->loop = vg_client_loop(c);
    l->opts = o;
    vg_buf_init(&l->answer, ANSWER_MAX);
    vg_mutex_init(&l->mu, VG_RANK_CLIENT_CALL);
    vg_cond_init(&l->ended);
    int r = vg_random_bytes(&seed, sizeof(seed));
    vg_rng_seed(&l->rng, seed);
    r = r < 0 ? r : make_texts(l);
    if (r < 0) {
        destroy(l);
        return vg_error_set(err, r, "no candidate: %s", vg_err_text(r));
    }
    vg_client_run(c, begin, l);
    *ret = l;
    return 0;
}
