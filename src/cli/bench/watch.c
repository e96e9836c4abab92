/* watch.c - the stage: watchers of its objects on one side, changes of them on the other. Each
 * change has a number; what was acknowledged is remembered, and in the end every watcher must have
 * seen exactly that. */
#include <errno.h>
#include <stdio.h>

#include "bench.h"
#include "objects.h"

#define OBJECTS_MIN 8u

static bool is_by_selector(const struct vg_bench_case *k)
{
    return k->selector != VG_BENCH_ALL;
}

static int watch_path(void *arg, uint32_t id, struct vg_buf *out)
{
    const struct vg_bench_stage *s = arg;
    const char *ns = s->b->ns[VG_BENCH_STAGE];
    uint32_t node = id % s->pods;
    int r = vg_bench_path(s->b, VG_BENCH_STAGE, out);
    if (r == 0)
        r = vg_buf_printf(out, "?watch=1&timeoutSeconds=7200&resourceVersion=%s", s->version.p);
    if (r == 0 && s->k->selector == VG_BENCH_NODE)
        r = vg_buf_printf(out, "&fieldSelector=spec.nodeName%%3D%s-node-%u", ns, node);
    if (r == 0 && s->k->selector == VG_BENCH_LABEL)
        r = vg_buf_printf(out, "&labelSelector=group%%3Dg-%u", node);
    return r;
}

static void on_opened(void *arg, uint32_t done)
{
    const struct vg_bench_stage *s = arg;
    vg_bench_say(s->b, "%u of %u watchers are open", done, s->k->watchers);
}

int vg_bench_stage_open(struct vg_bench_stage *s, struct vg_bench *b, const struct vg_bench_case *k,
                        uint32_t watchers, uint32_t stalled, struct vg_bench_crowd **ret)
{
    *s = (struct vg_bench_stage){.b = b, .k = k};
    s->pods = is_by_selector(k) ? watchers : VG_MAX(b->o->clients, OBJECTS_MIN);
    /* Object i is on node i, whatever is asked: what one scenario made serves the next. */
    int r = vg_bench_stock(b, VG_BENCH_STAGE, s->pods, UINT32_MAX, false);
    if (r == 0)
        r = vg_bench_version(b, VG_BENCH_STAGE, &s->version);
    if (r < 0)
        return r;
    struct vg_bench_crowd_opts opts = {
        .target = &b->target,
        .n = watchers,
        .modulus = is_by_selector(k) ? s->pods : 1,
        .stalled = stalled,
        .streams = b->o->streams,
        .is_h2 = k->http == VG_BENCH_H2,
        .is_protobuf = k->media == VG_BENCH_PROTOBUF,
        .path = watch_path,
        .arg = s,
        .progress = on_opened,
    };
    r = vg_bench_crowd_open(&opts, ret, &b->status);
    if (r < 0)
        return r;
    r = vg_bench_crowd_start(*ret);
    if (r < 0) {
        vg_bench_crowd_free(*ret);
        return vg_fail(&b->status, r, "no thread: %s", vg_err_text(r));
    }
    return 0;
}

void vg_bench_stage_done(struct vg_bench_stage *s)
{
    vg_buf_done(&s->version);
    vg_bench_bits_done(&s->written);
}

/* ---- writing ---- */

static int make(void *arg, uint64_t number, struct vg_bench_request *out)
{
    const struct vg_bench_stage *s = arg;
    out->method = "PATCH";
    out->type = "application/merge-patch+json";
    int r = vg_bench_object_path(s->b, VG_BENCH_STAGE, (uint32_t)(number % s->pods), &out->path);
    return r < 0 ? r : vg_bench_mark_patch(&out->body, number, vg_bench_now());
}

static void answered(void *arg, uint64_t number, int status, uint64_t at_ns)
{
    struct vg_bench_stage *s = arg;
    if (status == 200 && vg_bench_bits_add(&s->written, number) < 0)
        s->failed = -ENOMEM;
    if (s->seen)
        s->seen(s, at_ns);
}

static int on_progress(void *arg, uint64_t done)
{
    struct vg_bench_stage *s = arg;
    vg_bench_say(s->b, "%u changes made", (unsigned)done);
    return s->failed;
}

static void on_begin(void *arg)
{
    struct vg_bench_stage *s = arg;
    vg_bench_meter_begin(s->b, &s->meter);
}

/* The next change waits until everybody has seen the last. */
static int may_write(void *arg)
{
    struct vg_bench_stage *s = arg;
    return s->gate(s);
}

int vg_bench_stage_write(struct vg_bench_stage *s, struct vg_bench_writers_plan *plan,
                         struct vg_bench_writers_result *ret)
{
    plan->target = &s->b->target;
    plan->is_h2 = s->k->http == VG_BENCH_H2;
    plan->streams = s->b->o->streams;
    plan->first = s->numbers;
    plan->begin = on_begin;
    plan->make = make;
    plan->answered = answered;
    plan->progress = on_progress;
    plan->arg = s;
    if (s->gate)
        plan->gate = may_write;
    int r = vg_bench_writers_run(plan, ret, &s->b->status);
    s->numbers += ret->sent;
    if (r == 0 && ret->refused)
        r = vg_fail(&s->b->status, VIGIL_E_INVALID, "%u of %u changes were refused, the first %s",
                    (unsigned)ret->refused, (unsigned)ret->sent, ret->refusal);
    return r;
}

uint64_t vg_bench_stage_expected(const struct vg_bench_stage *s, uint32_t watchers, uint64_t n)
{
    if (!is_by_selector(s->k))
        return n * watchers;
    return n; /* an object for each watcher */
}

void vg_bench_stage_judge(struct vg_bench_stage *s, struct vg_bench_crowd *c,
                          struct vg_bench_result *r, struct vg_bench_verdict *ret)
{
    vg_bench_crowd_judge(c, &s->written, s->numbers, ret);
    vg_bench_metric(r, "lost", (double)ret->lost);
    vg_bench_metric(r, "duplicates", (double)(ret->duplicates + ret->foreign));
    vg_bench_metric(r, "ended", ret->ended);
}
