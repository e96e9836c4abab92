/* s_watch.c - the scenarios with watchers of one kind: fanout, idle, churn, latency, slow. */
#include <errno.h>
#include <stdio.h>

#include "bench.h"

/* Before measuring: what the first few need once is not counted. */
#define WARM_UP 3u

static struct vg_bench_writers_result result; /* large; scenarios run one after the other */

/* What has not come by then is lost, and counted when the crowd is judged. */
static int await(struct vg_bench_stage *s, struct vg_bench_crowd *c, uint32_t watchers)
{
    uint64_t wanted = vg_bench_stage_expected(s, watchers, s->numbers);
    bool hopes = !s->has_lost && vg_bench_crowd_ended(c) == 0;
    uint64_t limit = hopes ? (uint64_t)(s->b->o->patience * 1e9) : VG_NS_PER_S / 2;
    s->has_lost = !vg_bench_crowd_await(c, wanted, limit) || s->has_lost;
    return vg_bench_is_interrupted() ? vg_fail(&s->b->status, VIGIL_E_CANCELED, "interrupted") : 0;
}

static int write_and_await(struct vg_bench_stage *s, struct vg_bench_crowd *c, uint32_t watchers,
                           struct vg_bench_writers_plan plan)
{
    int r = vg_bench_stage_write(s, &plan, &result);
    return r < 0 ? r : await(s, c, watchers);
}

/* ---- changes one after the other, each awaited by all ---- */

struct paced {
    struct vg_bench_crowd *crowd;
    uint32_t watchers, warm_up; /* changes before measuring */
    uint64_t every_ns;          /* at least so long from one to the next */
    uint64_t sent, next_ns, acked_ns, since_ns;
    bool is_waiting; /* the last one has not been seen by all */
    struct vg_bench_meter meter;
    uint64_t marks, bytes; /* when measuring began */
    struct vg_hist after_ack;
};

static void begin_measuring(struct vg_bench_stage *s, struct paced *p)
{
    p->marks = vg_bench_crowd_marks(p->crowd);
    p->bytes = vg_bench_crowd_bytes(p->crowd);
    vg_bench_crowd_measure_from(p->crowd, s->numbers + p->sent);
    vg_bench_meter_begin(s->b, &p->meter);
}

static int gate(struct vg_bench_stage *s)
{
    struct paced *p = s->arg;
    uint64_t now = vg_bench_now(),
             wanted = vg_bench_stage_expected(s, p->watchers, s->numbers + p->sent);
    if (!s->has_lost && vg_bench_crowd_marks(p->crowd) < wanted) {
        p->since_ns = p->is_waiting ? p->since_ns : now;
        p->is_waiting = true;
        s->has_lost = (double)(now - p->since_ns) > s->b->o->patience * 1e9;
        return 0;
    }
    if (p->sent > p->warm_up && p->acked_ns)
        vg_bench_crowd_arrivals(p->crowd, p->acked_ns, &p->after_ack);
    p->acked_ns = 0;
    p->is_waiting = false;
    if (now < p->next_ns)
        return 0;
    if (p->sent == p->warm_up)
        begin_measuring(s, p);
    vg_bench_say(s->b, "event %u", (unsigned)p->sent + 1);
    p->next_ns = now + p->every_ns;
    p->sent++;
    return 1;
}

static void acknowledged(struct vg_bench_stage *s, uint64_t at_ns)
{
    ((struct paced *)s->arg)->acked_ns = at_ns;
}

static int write_paced(struct vg_bench_stage *s, struct paced *p, uint32_t events,
                       struct vg_bench_result *r)
{
    s->gate = gate;
    s->seen = acknowledged;
    s->arg = p;
    p->warm_up = WARM_UP;
    vg_bench_crowd_wait_for_lull(p->crowd, true);
    int err =
        write_and_await(s, p->crowd, p->watchers,
                        (struct vg_bench_writers_plan){.clients = 1, .count = events + p->warm_up});
    vg_bench_crowd_wait_for_lull(p->crowd, false);
    if (err == 0 && p->acked_ns)
        vg_bench_crowd_arrivals(p->crowd, p->acked_ns, &p->after_ack);
    vg_bench_meter_end(s->b, &p->meter, r);
    vg_bench_crowd_measure_from(p->crowd, UINT64_MAX);
    s->gate = NULL;
    s->seen = NULL;
    return err;
}

/* ---- fanout ---- */

static int fan_out_paced(struct vg_bench_stage *s, struct vg_bench_crowd *c,
                         struct vg_bench_result *r)
{
    static struct paced p;
    p = (struct paced){.crowd = c, .watchers = s->k->watchers};
    int err = write_paced(s, &p, s->b->o->events, r);
    double events = (double)(vg_bench_crowd_marks(c) - p.marks);
    if (err < 0 || events == 0)
        return err;
    vg_bench_metric(r, "bytes_per_event", (double)(vg_bench_crowd_bytes(c) - p.bytes) / events);
    vg_bench_metric(r, "tool_cpu_us_per_event", (double)p.meter.tool_ns / 1e3 / events);
    if (p.meter.has_server) {
        double us = (double)p.meter.server.cpu_ns / 1e3;
        vg_bench_metric(r, "server_cpu_us_per_event", us / events);
        vg_bench_metric(r, "server_cpu_us_per_update", us / s->b->o->events);
    }
    return 0;
}

/* As many changes, as fast as they are answered: how many events a second all together get. */
static int fan_out_burst(struct vg_bench_stage *s, struct vg_bench_crowd *c,
                         struct vg_bench_result *r)
{
    struct vg_bench *b = s->b;
    uint64_t before = vg_bench_crowd_marks(c);
    uint32_t clients = VG_MIN(VG_MIN(b->o->clients, b->o->events), 8u);
    int err =
        write_and_await(s, c, s->k->watchers,
                        (struct vg_bench_writers_plan){.clients = clients, .count = b->o->events});
    if (err < 0)
        return err;
    vg_bench_meter_end(b, &s->meter, r);
    double events = (double)(vg_bench_crowd_marks(c) - before);
    vg_bench_metric(r, "events_per_s", events / ((double)s->meter.wall_ns / 1e9));
    if (s->meter.has_server)
        vg_bench_metric(r, "burst_server_cpu_us_per_event",
                        (double)s->meter.server.cpu_ns / 1e3 / events);
    return 0;
}

int vg_bench_fanout(struct vg_bench *b, const struct vg_bench_case *k, struct vg_bench_result *r)
{
    struct vg_bench_stage s;
    struct vg_bench_crowd *c = NULL;
    struct vg_bench_verdict v;
    vg_bench_param_number(r, "events", b->o->events);
    int err = vg_bench_stage_open(&s, b, k, k->watchers, 0, &c);
    if (err == 0)
        err = fan_out_paced(&s, c, r);
    if (err == 0)
        err = fan_out_burst(&s, c, r);
    if (err == 0) {
        vg_bench_stage_judge(&s, c, r, &v);
        vg_bench_quantiles(r, "", vg_bench_crowd_latency(c));
    }
    vg_bench_crowd_free(c);
    vg_bench_stage_done(&s);
    return err;
}

/* ---- idle ---- */

int vg_bench_idle(struct vg_bench *b, const struct vg_bench_case *k, struct vg_bench_result *r)
{
    struct vg_bench_stage first, s = {0};
    struct vg_bench_crowd *warm = NULL, *c = NULL;
    struct vg_bench_usage before = {0}, after = {0};
    struct vg_bench_meter m;
    /* A server may keep the certificate of each connection. */
    vg_bench_param_text(r, "login",
                        b->target.shows_certificate ? "certificate"
                        : b->target.authorization.n ? "token"
                                                    : "none");
    int err = vg_bench_stage_open(&first, b, k, VG_MIN(k->watchers, 200u), 0, &warm);
    if (err == 0)
        vg_bench_settle(b);
    bool is_known = vg_bench_memory(b, &before);
    vg_bench_meter_begin(b, &m);
    if (err == 0)
        err = vg_bench_stage_open(&s, b, k, k->watchers, 0, &c);
    vg_bench_meter_end(b, &m, r);
    if (err == 0) {
        vg_bench_metric(r, "opens_per_s", k->watchers / ((double)m.wall_ns / 1e9));
        if (m.has_server)
            vg_bench_metric(r, "server_cpu_us_per_open",
                            (double)m.server.cpu_ns / 1e3 / k->watchers);
        vg_bench_settle(b);
        is_known = vg_bench_memory(b, &after) && is_known;
        vg_bench_metric(r, "ended", vg_bench_crowd_ended(c));
    }
    if (err == 0 && is_known) {
        double more = (double)after.anonymous_bytes - (double)before.anonymous_bytes;
        vg_bench_metric(r, "server_anon_bytes_per_watcher", more / k->watchers);
        vg_bench_metric(r, "server_anon_bytes", (double)after.anonymous_bytes);
    }
    vg_bench_crowd_free(c);
    vg_bench_crowd_free(warm);
    vg_bench_stage_done(&s);
    vg_bench_stage_done(&first);
    return err;
}

/* ---- churn ---- */

static struct vg_bench_writers_plan timed(const struct vg_bench *b, double rate)
{
    return (struct vg_bench_writers_plan){
        .clients = b->o->clients, .rate = rate, .for_ns = (uint64_t)(b->o->seconds * 1e9)};
}

/* Watchers that are ended see no more: then what is missing is not waited for. */
static int write_for_a_while(struct vg_bench_stage *s, struct vg_bench_crowd *c, uint32_t watchers,
                             double rate, struct vg_bench_result *r)
{
    struct vg_bench_writers_plan plan = timed(s->b, rate);
    int err = vg_bench_stage_write(s, &plan, &result);
    if (err < 0)
        return err;
    err = await(s, c, watchers);
    vg_bench_meter_end(s->b, &s->meter, r);
    return err;
}

int vg_bench_churn(struct vg_bench *b, const struct vg_bench_case *k, struct vg_bench_result *r)
{
    struct vg_bench_stage s;
    struct vg_bench_crowd *c = NULL;
    struct vg_bench_verdict v;
    vg_bench_param_number(r, "seconds", b->o->seconds);
    vg_bench_param_number(r, "clients", b->o->clients);
    vg_bench_param_number(r, "rate", b->o->rate);
    int err = vg_bench_stage_open(&s, b, k, k->watchers, 0, &c);
    if (err == 0) {
        vg_bench_crowd_measure_from(c, 0);
        err = write_for_a_while(&s, c, k->watchers, b->o->rate, r);
    }
    if (err == 0) {
        double updates = (double)result.answers;
        vg_bench_metric(r, "updates_per_s", updates / ((double)result.took_ns / 1e9));
        if (s.meter.has_server)
            vg_bench_metric(r, "server_cpu_us_per_update",
                            (double)s.meter.server.cpu_ns / 1e3 / updates);
        vg_bench_quantiles(r, "ack_", &result.latency);
        vg_bench_stage_judge(&s, c, r, &v);
        vg_bench_quantiles(r, "", vg_bench_crowd_latency(c));
    }
    vg_bench_crowd_free(c);
    vg_bench_stage_done(&s);
    return err;
}

/* ---- latency ---- */

#define LATENCY_RATE 10.0

int vg_bench_latency(struct vg_bench *b, const struct vg_bench_case *k, struct vg_bench_result *r)
{
    static struct paced p;
    struct vg_bench_stage s;
    struct vg_bench_crowd *c = NULL;
    struct vg_bench_verdict v;
    double rate = b->o->rate > 0 ? b->o->rate : LATENCY_RATE;
    vg_bench_param_number(r, "rate", rate);
    vg_bench_param_number(r, "events", b->o->events);
    int err = vg_bench_stage_open(&s, b, k, k->watchers, 0, &c);
    if (err == 0) {
        p = (struct paced){.crowd = c, .watchers = k->watchers, .every_ns = (uint64_t)(1e9 / rate)};
        err = write_paced(&s, &p, b->o->events, r);
    }
    if (err == 0) {
        vg_bench_quantiles(r, "ack_", &result.latency);
        vg_bench_stage_judge(&s, c, r, &v);
        vg_bench_quantiles(r, "event_", vg_bench_crowd_latency(c));
        if (k->selector == VG_BENCH_ALL)
            vg_bench_quantiles(r, "after_ack_", &p.after_ack);
        if (p.meter.has_server)
            vg_bench_metric(r, "server_cpu_us_per_update",
                            (double)p.meter.server.cpu_ns / 1e3 / b->o->events);
    }
    vg_bench_crowd_free(c);
    vg_bench_stage_done(&s);
    return err;
}

/* ---- slow ---- */

#define SLOW_RATE 100.0

/* A run with so many who stall: what the others notice. */
static int with_stalled(struct vg_bench *b, const struct vg_bench_case *k, uint32_t stalled,
                        struct vg_bench_result *r, struct vg_bench_verdict *v)
{
    struct vg_bench_stage s;
    struct vg_bench_crowd *c = NULL;
    double rate = b->o->rate > 0 ? b->o->rate : SLOW_RATE;
    int err = vg_bench_stage_open(&s, b, k, k->watchers, stalled, &c);
    if (err == 0) {
        vg_bench_crowd_measure_from(c, 0);
        err = write_for_a_while(&s, c, k->watchers - stalled, rate, r);
    }
    if (err == 0) {
        vg_bench_crowd_stop(c);
        vg_bench_quantiles(r, stalled ? "healthy_" : "alone_", vg_bench_crowd_latency(c));
        if (s.meter.has_server)
            vg_bench_metric(r, stalled ? "server_cpu_share" : "alone_server_cpu_share",
                            (double)s.meter.server.cpu_ns / (double)s.meter.wall_ns);
        vg_bench_crowd_judge(c, &s.written, s.numbers, v);
    }
    vg_bench_crowd_free(c);
    vg_bench_stage_done(&s);
    return err;
}

int vg_bench_slow(struct vg_bench *b, const struct vg_bench_case *k, struct vg_bench_result *r)
{
    struct vg_bench_verdict v = {0}, alone = {0};
    uint32_t stalled = VG_MAX(k->watchers * b->o->stalled_percent / 100, 1u);
    vg_bench_param_number(r, "stalled", stalled);
    vg_bench_param_number(r, "seconds", b->o->seconds);
    vg_bench_param_number(r, "rate", b->o->rate > 0 ? b->o->rate : SLOW_RATE);
    if (stalled >= k->watchers)
        return vg_fail(&b->status, VIGIL_E_INVALID, "slow needs at least two watchers");
    int err = with_stalled(b, k, 0, r, &alone);
    if (err == 0)
        err = with_stalled(b, k, stalled, r, &v);
    if (err < 0)
        return err;
    vg_bench_metric(r, "healthy_ended", v.ended);
    vg_bench_metric(r, "stalled_ended", v.stalled_ended);
    vg_bench_metric(r, "lost", (double)(v.lost + alone.lost));
    vg_bench_metric(r, "duplicates",
                    (double)(v.duplicates + v.foreign + alone.duplicates + alone.foreign));
    return 0;
}
