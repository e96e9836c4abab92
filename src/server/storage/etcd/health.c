/* health.c - does the cluster serve? A linearizable read every health_ms, which needs a leader and
 * a majority; what came of the last one is what vg_storage_health says. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "engine.h"

/* ---- versions ---- */

struct version {
    unsigned major, minor, patch;
};

static bool parse(const char *text, struct version *ret)
{
    *ret = (struct version){0};
    return sscanf(text, "%u.%u.%u", &ret->major, &ret->minor, &ret->patch) >= 2;
}

bool vg_etcd_orders_progress(const char *version)
{
    struct version v;
    if (!parse(version, &v))
        return false;
    if (v.major != 3)
        return v.major > 3;
    return v.minor > 5 || (v.minor == 5 && v.patch >= 13) || (v.minor == 4 && v.patch >= 31);
}

/* 3.4: progress requests, fragments and leases as they are used here. */
bool vg_etcd_is_too_old(const char *version)
{
    struct version v;
    return !parse(version, &v) || v.major < 3 || (v.major == 3 && v.minor < 4);
}

/* ---- looking ---- */

static void look(struct vg_timer *t);

/* What was said last, and since when it is so. */
static void note(struct vg_etcd_engine *e, int err, const struct vg_status *status)
{
    struct vg_etcd_health *h = &e->health;
    VG_AUTO(buf) each = {0};
    uint64_t now = vg_clock_mono_ns(vg_loop_clock(e->loop));
    if (err < 0 && (vg_grpc_pool_describe(vg_etcd_client_pool(e->client), &each) < 0 ||
                    vg_buf_append_byte(&each, '\0') < 0))
        vg_buf_clear(&each);
    vg_mutex_lock(&h->mu);
    bool was_well = h->status.err == 0;
    if (err < 0 && was_well)
        h->since_ns = now;
    h->status.err = err;
    if (err < 0)
        vg_fail(&h->status, err, "etcd has not served for %" PRIu64 " s: %s%s%s",
                (now - h->since_ns) / VG_NS_PER_S, status->message, each.n > 1 ? "; " : "",
                each.n > 1 ? each.p : "");
    vg_mutex_unlock(&h->mu);
    if (err < 0 && was_well)
        vg_warn(e->opts.log, "etcd_unhealthy", "why=%s", status->message);
    else if (err == 0 && !was_well)
        vg_info(e->opts.log, "etcd_healthy", "after_ms=%" PRIu64,
                (now - h->since_ns) / VG_NS_PER_MS);
}

static void on_look(struct vg_grpc_call *call)
{
    struct vg_etcd_engine *e = VG_CONTAINER_OF(call, struct vg_etcd_engine, health.call);
    struct vg_status status = {0};
    int err = vg_etcd_error(&call->status, false, &status);
    vg_buf_done(&call->answer);
    e->health.is_up = false;
    note(e, err, &status);
    vg_timer_start(e->loop, &e->health.timer, e->eo.health_ms * VG_NS_PER_MS, look);
}

static void look(struct vg_timer *t)
{
    struct vg_etcd_engine *e = VG_CONTAINER_OF(t, struct vg_etcd_engine, health.timer);
    Etcd__RangeRequest req = ETCD__RANGE_REQUEST__INIT;
    req.key = vg_etcd_data(e->space.prefix_s);
    req.count_only = true;
    e->health.call = (struct vg_grpc_call){.on_end = on_look, .timeout_ms = e->eo.health_ms};
    e->health.is_up = vg_etcd_start(e, &vg_etcd_range, &req.base, &e->health.call) == 0;
    if (!e->health.is_up)
        vg_timer_start(e->loop, t, e->eo.health_ms * VG_NS_PER_MS, look);
}

void vg_etcd_health_start(struct vg_etcd_engine *e)
{
    vg_timer_start(e->loop, &e->health.timer, e->eo.health_ms * VG_NS_PER_MS, look);
}

void vg_etcd_health_stop(struct vg_etcd_engine *e)
{
    vg_timer_stop(e->loop, &e->health.timer);
    vg_grpc_cancel(&e->health.call);
    vg_buf_done(&e->health.call.answer);
    e->health.is_up = false;
}

int vg_etcd_health_ask(struct vg_storage *s, struct vg_status *reterr_status)
{
    struct vg_etcd_health *h = &vg_etcd_engine_of(s)->health;
    vg_mutex_lock(&h->mu);
    int err = h->status.err;
    if (err < 0 && reterr_status)
        *reterr_status = h->status;
    vg_mutex_unlock(&h->mu);
    return err;
}
