/* lead.c - of several servers on one store, one runs the controllers: the holder of a lease.
 *
 *   every 2 s: read the lease --> free, ours or not renewed for 15 s: write our name and the time
 *                             --> another's: follow nobody, look again
 * client-go's rules and, for a lease of 15 s, its times: time is counted by our own clock from the
 * moment we saw the lease change, so that clocks need not agree; who could not renew for 10 s stops
 * before another may begin, whatever its requests wait for. Writes name the revision that was read,
 * so two cannot take it at once. */
#include <errno.h>
#include <inttypes.h>

#include "control_int.h"
#include "server/schema/gotime.h"

#define LEASE "vigild-controllers"
#define LEASE_NS "kube-system"

static void on_timer(struct vg_timer *t);

static uint64_t lease_ns(const struct vg_control *c)
{
    return c->opts.lease_ms * VG_NS_PER_MS;
}

static uint64_t renew_ns(const struct vg_control *c)
{
    return lease_ns(c) * 2 / 3;
}

static uint64_t retry_ns(const struct vg_control *c)
{
    return lease_ns(c) * 2 / 15;
}

static uint64_t now_ns(const struct vg_control *c)
{
    return vg_clock_mono_ns(vg_loop_clock(c->loop));
}

/* ---- outcome ---- */

static void stop_leading(struct vg_control *c)
{
    struct vg_lead *l = &c->lead;
    vg_timer_stop(c->loop, &l->deadline);
    if (!l->is_leading)
        return;
    l->is_leading = false;
    vg_warn(c->log, "lease_lost", "holder=%s", c->opts.identity);
    vg_control_follow(c, false);
}

/* Whatever a write of ours waits for: it may wait longer than the lease lasts. */
static void on_deadline(struct vg_timer *t)
{
    stop_leading(VG_CONTAINER_OF(t, struct vg_control, lead.deadline));
}

static void look_later(struct vg_control *c)
{
    if (!c->is_stopped)
        vg_timer_start(c->loop, &c->lead.timer, retry_ns(c), on_timer);
}

/* The lease began when we asked, at the latest. An answer that came too late renews nothing: the
 * next look will. */
static void renewed(struct vg_control *c)
{
    struct vg_lead *l = &c->lead;
    uint64_t passed = now_ns(c) - l->asked_ns;
    if (passed >= renew_ns(c) || c->is_stopped) {
        look_later(c);
        return;
    }
    vg_timer_start(c->loop, &l->deadline, renew_ns(c) - passed, on_deadline);
    if (!l->is_leading) {
        l->is_leading = true;
        vg_info(c->log, "lease_taken", "holder=%s", c->opts.identity);
        vg_control_follow(c, true);
    }
    look_later(c);
}

/* ---- writing ---- */

static void on_written(struct vg_errand *e)
{
    if (vg_errand_ok(e))
        renewed(e->c);
    else
        look_later(e->c);
}

static int write_lease(struct vg_control *c, struct vg_buf *out, struct vg_slice rev,
                       int64_t transitions, struct vg_slice acquired)
{
    char when[VG_TIME_TEXT_MAX];
    int64_t ms = vg_clock_wall_ms(vg_loop_clock(c->loop));
    struct vg_gotime now = {.s = ms / 1000, .ns = (int32_t)(ms % 1000) * (int32_t)VG_NS_PER_MS};
    size_t n = vg_gotime_format(now, true, when);
    struct vg_slice since = acquired.n ? acquired : vg_slice(when, n);
    return vg_buf_printf(out,
                         "{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\","
                         "\"metadata\":{\"name\":\"" LEASE "\",\"namespace\":\"" LEASE_NS
                         "\",\"resourceVersion\":\"%.*s\"},\"spec\":{\"holderIdentity\":\"%s\","
                         "\"leaseDurationSeconds\":%" PRIu64
                         ",\"acquireTime\":\"%.*s\",\"renewTime\":\"%.*s\","
                         "\"leaseTransitions\":%" PRId64 "}}",
                         VG_SLICE_ARG(rev), c->opts.identity, c->opts.lease_ms / 1000,
                         VG_SLICE_ARG(since), (int)n, when, transitions);
}

static void write_it(struct vg_control *c, struct vg_slice rev, int64_t transitions,
                     struct vg_slice acquired)
{
    struct vg_errand *e = vg_errand_new(c, rev.n ? "PUT" : "POST", NULL, on_written);
    int r = e ? vg_errand_path(e, c->leases, VG_SLICE_LIT(LEASE_NS),
                               rev.n ? VG_SLICE_LIT(LEASE) : VG_SLICE_LIT(""), NULL)
              : -ENOMEM;
    if (r == 0)
        r = write_lease(c, &e->body, rev, transitions, acquired);
    c->lead.asked_ns = now_ns(c);
    if (r < 0)
        vg_errand_free(e);
    if (r < 0 || !vg_errand_send(e, VG_TYPE_JSON))
        look_later(c);
}

/* ---- reading ---- */

static struct vg_slice text_at(const struct vg_json *o, const char *key)
{
    return vg_json_text(vg_json_get_str(o, key));
}

static void on_read(struct vg_errand *e)
{
    struct vg_control *c = e->c;
    struct vg_lead *l = &c->lead;
    VG_AUTO(arena) a = {0};
    struct vg_json *root;
    int64_t transitions = 0;
    if (e->call.err == 0 && e->call.status == 404) {
        write_it(c, VG_SLICE_LIT(""), 0, VG_SLICE_LIT(""));
        return;
    }
    if (!vg_errand_ok(e) ||
        vg_json_parse(&a, vg_buf_slice(&e->call.answer), NULL, &root, NULL) < 0) {
        look_later(c);
        return;
    }
    const struct vg_json *spec = vg_json_get_str(root, "spec");
    struct vg_slice rev = text_at(vg_json_get_str(root, "metadata"), "resourceVersion");
    struct vg_slice holder = text_at(spec, "holderIdentity");
    uint64_t hash = vg_hash(&l->hash_key, rev);
    if (hash != l->seen) { /* it changed: its time counts from now */
        l->seen = hash;
        l->seen_ns = now_ns(c);
    }
    bool is_ours = vg_slice_eq(holder, vg_slice_str(c->opts.identity));
    int64_t seconds = 0; /* as its holder has it */
    (void)!vg_json_to_int64(vg_json_get_str(spec, "leaseDurationSeconds"), &seconds);
    uint64_t held_ns = seconds > 0 ? (uint64_t)seconds * VG_NS_PER_S : lease_ns(c);
    bool is_free = holder.n == 0 || now_ns(c) - l->seen_ns >= held_ns;
    if (!is_ours && !is_free) {
        stop_leading(c); /* taken from us: at once */
        look_later(c);
        return;
    }
    (void)!vg_json_to_int64(vg_json_get_str(spec, "leaseTransitions"), &transitions);
    write_it(c, rev, transitions + !is_ours,
             is_ours ? text_at(spec, "acquireTime") : VG_SLICE_LIT(""));
}

static void on_timer(struct vg_timer *t)
{
    struct vg_control *c = VG_CONTAINER_OF(t, struct vg_control, lead.timer);
    struct vg_errand *e = vg_errand_new(c, "GET", NULL, on_read);
    int r = e ? vg_errand_path(e, c->leases, VG_SLICE_LIT(LEASE_NS), VG_SLICE_LIT(LEASE), NULL)
              : -ENOMEM;
    if (r < 0)
        vg_errand_free(e);
    if (r < 0 || !vg_errand_send(e, NULL))
        look_later(c);
}

int vg_lead_start(struct vg_control *c)
{
    int r = vg_hash_key_make(&c->lead.hash_key);
    if (r == 0)
        vg_timer_start(c->loop, &c->lead.timer, 0, on_timer);
    return r;
}

void vg_lead_stop(struct vg_control *c)
{
    vg_timer_stop(c->loop, &c->lead.timer);
    vg_timer_stop(c->loop, &c->lead.deadline);
}
