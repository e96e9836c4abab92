/* s_mixed.c - what a cluster of 5,000 nodes does, scaled: each node's kubelet watches the pods on
 * it and renews its lease every ten seconds; controllers watch all pods; twenty pods a second are
 * created, reported on twice and deleted. The nodes' own objects are left out: a cluster that is
 * measured would take them for nodes. Each part has its thread. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "bench.h"
#include "objects.h"

#define NODES 5000.0
#define PODS_PER_S 20.0
#define LEASE_S 10.0
#define INFORMERS 10u
#define REPORTS 2u /* of a pod's status */
/* Names apart from those of the stage's own objects. */
#define FIRST_ID 500000u
#define PODS_MAX 400000u
/* A pod's next step comes so long after the last was acknowledged. */
#define STEP_NS (300 * VG_NS_PER_MS)
#define PART_CLIENTS 8u

enum part { LEASES, CREATES, STATUSES, DELETES, PARTS };
static const char *const part_names[PARTS] = {"lease", "create", "status", "delete"};

struct mixed {
    struct vg_bench *b;
    const struct vg_bench_case *k;
    uint32_t nodes, pods;
    struct vg_buf version;
    struct vg_bench_bits written;
    _Atomic uint64_t *step_ns; /* of each pod: when its last step was acknowledged; 0: not yet */
    _Atomic uint32_t *steps;   /* of each pod: that were acknowledged */
    _Atomic bool must_end;
};

struct job {
    struct mixed *m;
    enum part part;
    uint64_t next; /* of those that wait for another part */
    pthread_t thread;
    bool is_running;
    int err;
    struct vg_status status;
    struct vg_bench_writers_result result;
};

/* ---- what each part sends ---- */

static int lease_path(const struct mixed *m, struct vg_buf *out)
{
    return vg_buf_printf(out, "/apis/coordination.k8s.io/v1/namespaces/%s/leases",
                         m->b->ns[VG_BENCH_STAGE]);
}

static int pod_path(const struct mixed *m, uint64_t pod, struct vg_buf *out)
{
    return vg_buf_printf(out, "/api/v1/namespaces/%s/pods/web-%06u", m->b->ns[VG_BENCH_STAGE],
                         FIRST_ID + (uint32_t)pod);
}

static int make_lease(const struct mixed *m, uint64_t number, struct vg_bench_request *q)
{
    q->method = "PATCH";
    q->type = "application/merge-patch+json";
    int r = lease_path(m, &q->path);
    if (r == 0)
        r = vg_buf_printf(&q->path, "/node-%06u", (unsigned)(number % m->nodes));
    return r < 0 ? r : vg_bench_lease_patch(&q->body);
}

static int make_pod(const struct mixed *m, uint64_t number, struct vg_bench_request *q)
{
    const char *ns = m->b->ns[VG_BENCH_STAGE];
    q->method = "POST";
    int r = vg_buf_printf(&q->path, "/api/v1/namespaces/%s/pods", ns);
    return r < 0 ? r
                 : vg_bench_pod_write(&q->body, &(struct vg_bench_object){
                                                    .ns = ns,
                                                    .id = FIRST_ID + (uint32_t)number,
                                                    .node = (uint32_t)number % m->nodes,
                                                    .number = number,
                                                    .ns_sent = vg_bench_now(),
                                                });
}

static int make_status(const struct mixed *m, uint64_t number, struct vg_bench_request *q)
{
    q->method = "PATCH";
    q->type = "application/merge-patch+json";
    int r = pod_path(m, number / REPORTS, &q->path);
    if (r == 0)
        r = vg_buf_printf(&q->path, "/status");
    return r < 0 ? r : vg_bench_status_patch(&q->body, number % REPORTS ? "Running" : "Pending");
}

static int make_delete(const struct mixed *m, uint64_t number, struct vg_bench_request *q)
{
    q->method = "DELETE";
    int r = pod_path(m, number, &q->path);
    return r < 0 ? r : vg_buf_printf(&q->path, "?gracePeriodSeconds=0");
}

static int make(void *arg, uint64_t number, struct vg_bench_request *q)
{
    static int (*const makers[PARTS])(const struct mixed *m, uint64_t number,
                                      struct vg_bench_request *q) = {make_lease, make_pod,
                                                                     make_status, make_delete};
    const struct job *j = arg;
    return makers[j->part](j->m, number, q);
}

/* ---- a pod's steps, one after the other ---- */

static void answered(void *arg, uint64_t number, int status, uint64_t at_ns)
{
    (void)at_ns;
    struct job *j = arg;
    struct mixed *m = j->m;
    if (j->part == LEASES || j->part == DELETES)
        return;
    uint64_t pod = j->part == CREATES ? number : number / REPORTS;
    if (j->part == CREATES && status == 201 && vg_bench_bits_add(&m->written, number) < 0)
        j->err = -ENOMEM; /* nobody else adds */
    atomic_store(&m->step_ns[pod], vg_bench_now());
    atomic_fetch_add(&m->steps[pod], 1);
}

/* The part's next request: has the step before it been done, long enough ago? */
static int gate(void *arg)
{
    struct job *j = arg;
    struct mixed *m = j->m;
    bool is_status = j->part == STATUSES;
    uint64_t pod = is_status ? j->next / REPORTS : j->next;
    uint32_t before = is_status ? 1 + (uint32_t)(j->next % REPORTS) : 1 + REPORTS;
    if (atomic_load(&m->must_end))
        return VIGIL_E_CANCELED;
    if (atomic_load(&m->steps[pod]) < before ||
        vg_bench_now() - atomic_load(&m->step_ns[pod]) < STEP_NS)
        return 0;
    j->next++;
    return 1;
}

static int check_end(void *arg, uint64_t done)
{
    struct job *j = arg;
    if (j->part == LEASES)
        vg_bench_say(j->m->b, "%u leases renewed", (unsigned)done);
    return atomic_load(&j->m->must_end) ? VIGIL_E_CANCELED : 0;
}

static void *run_job(void *arg)
{
    struct job *j = arg;
    const struct mixed *m = j->m;
    uint64_t limit = (uint64_t)(m->b->o->seconds * 1e9);
    bool waits = j->part == STATUSES || j->part == DELETES;
    double pods_rate = PODS_PER_S * m->b->o->scale;
    struct vg_bench_writers_plan plan = {
        .target = &m->b->target,
        .is_h2 = m->k->http == VG_BENCH_H2,
        .streams = m->b->o->streams,
        .clients = PART_CLIENTS,
        .count = j->part == LEASES     ? 0
                 : j->part == STATUSES ? (uint64_t)m->pods * REPORTS
                                       : m->pods,
        .for_ns = j->part == LEASES ? limit : 0,
        .rate = waits               ? 0
                : j->part == LEASES ? m->nodes / LEASE_S
                                    : pods_rate,
        .gate = waits ? gate : NULL,
        .make = make,
        .answered = answered,
        .progress = check_end,
        .arg = j,
    };
    int r = vg_bench_writers_run(&plan, &j->result, &j->status);
    j->err = j->err ? j->err : r;
    if (j->err < 0)
        atomic_store(&j->m->must_end, true); /* the others would wait for what does not come */
    return NULL;
}

/* ---- the watchers ---- */

static int watch_path(struct mixed *m, const char *selector, struct vg_buf *out)
{
    return vg_buf_printf(
        out, "/api/v1/namespaces/%s/pods?watch=1&timeoutSeconds=7200&resourceVersion=%s%s",
        m->b->ns[VG_BENCH_STAGE], m->version.p, selector);
}

static int kubelet_path(void *arg, uint32_t id, struct vg_buf *out)
{
    struct mixed *m = arg;
    char selector[128];
    snprintf(selector, sizeof selector, "&fieldSelector=spec.nodeName%%3D%s-node-%u",
             m->b->ns[VG_BENCH_STAGE], id);
    return watch_path(m, selector, out);
}

static int informer_path(void *arg, uint32_t id, struct vg_buf *out)
{
    (void)id;
    return watch_path(arg, "", out);
}

static int open_crowd(struct mixed *m, bool is_kubelets, struct vg_bench_crowd **ret)
{
    struct vg_bench_crowd_opts opts = {
        .target = &m->b->target,
        .n = is_kubelets ? m->nodes : INFORMERS,
        .modulus = is_kubelets ? m->nodes : 1,
        .streams = m->b->o->streams,
        .is_h2 = m->k->http == VG_BENCH_H2,
        .is_protobuf = m->k->media == VG_BENCH_PROTOBUF,
        .only_added = true,
        .path = is_kubelets ? kubelet_path : informer_path,
        .arg = m,
    };
    int r = vg_bench_crowd_open(&opts, ret, &m->b->status);
    if (r < 0)
        return r;
    vg_bench_crowd_measure_from(*ret, 0);
    r = vg_bench_crowd_start(*ret);
    return r < 0 ? vg_fail(&m->b->status, r, "no thread: %s", vg_err_text(r)) : 0;
}

/* ---- the run ---- */

static int make_new_lease(void *arg, uint64_t number, struct vg_bench_request *q)
{
    const struct mixed *m = arg;
    q->method = "POST";
    int r = lease_path(m, &q->path);
    return r < 0 ? r
                 : vg_bench_lease_write(&q->body, &(struct vg_bench_object){
                                                      .ns = m->b->ns[VG_BENCH_STAGE],
                                                      .id = (uint32_t)number,
                                                      .node = (uint32_t)number,
                                                  });
}

static int make_leases(struct mixed *m)
{
    static struct vg_bench_writers_result result;
    struct vg_bench_writers_plan plan = {
        .target = &m->b->target,
        .clients = VG_MIN(m->b->o->clients, m->nodes),
        .count = m->nodes,
        .make = make_new_lease,
        .arg = m,
    };
    int r = vg_bench_writers_run(&plan, &result, &m->b->status);
    /* An earlier run of the scenario may have made them. */
    if (r == 0 && result.refused && strncmp(result.refusal, "answered 409", 12) != 0)
        r = vg_fail(&m->b->status, VIGIL_E_INVALID, "a lease was refused, %s", result.refusal);
    return r;
}

static int run_jobs(struct mixed *m, struct job *jobs)
{
    int r = 0;
    for (enum part p = 0; p < PARTS; p++)
        jobs[p] = (struct job){.m = m, .part = p};
    for (enum part p = CREATES; r == 0 && p < PARTS; p++) {
        r = -pthread_create(&jobs[p].thread, NULL, run_job, &jobs[p]);
        jobs[p].is_running = r == 0;
    }
    if (r == 0)
        (void)run_job(&jobs[LEASES]);
    else
        atomic_store(&m->must_end, true);
    for (enum part p = CREATES; p < PARTS; p++)
        if (jobs[p].is_running)
            pthread_join(jobs[p].thread, NULL);
    if (r < 0)
        return vg_fail(&m->b->status, r, "no thread: %s", vg_err_text(r));
    if (vg_bench_is_interrupted())
        return vg_fail(&m->b->status, VIGIL_E_CANCELED, "interrupted");
    for (enum part p = 0; p < PARTS; p++)
        if (jobs[p].err < 0 && jobs[p].err != VIGIL_E_CANCELED)
            return vg_fail(&m->b->status, jobs[p].err, "%s: %s", part_names[p],
                           jobs[p].status.message);
    return 0;
}

static void put_part(struct vg_bench_result *r, const char *name, const struct vg_hist *h)
{
    char prefix[VG_BENCH_NAME_MAX];
    snprintf(prefix, sizeof prefix, "%s_", name);
    vg_bench_quantiles(r, prefix, h);
}

static void put_jobs(struct vg_bench_result *r, const struct job *jobs)
{
    double refused = 0, late = 0, requests = 0;
    for (enum part p = 0; p < PARTS; p++) {
        put_part(r, part_names[p], &jobs[p].result.latency);
        refused += (double)jobs[p].result.refused;
        late += (double)jobs[p].result.late;
        requests += (double)jobs[p].result.answers;
    }
    vg_bench_metric(r, "requests", requests);
    vg_bench_metric(r, "refused", refused);
    vg_bench_metric(r, "late", late);
}

static void put_crowds(struct mixed *m, struct vg_bench_crowd *kubelets,
                       struct vg_bench_crowd *informers, struct vg_bench_result *r)
{
    struct vg_bench_verdict a, b;
    vg_bench_crowd_judge(kubelets, &m->written, m->pods, &a);
    vg_bench_crowd_judge(informers, &m->written, m->pods, &b);
    put_part(r, "kubelet_event", vg_bench_crowd_latency(kubelets));
    put_part(r, "informer_event", vg_bench_crowd_latency(informers));
    vg_bench_metric(r, "lost", (double)(a.lost + b.lost));
    vg_bench_metric(r, "duplicates", (double)(a.duplicates + a.foreign + b.duplicates + b.foreign));
    vg_bench_metric(r, "ended", a.ended + b.ended);
}

static int measure(struct mixed *m, struct vg_bench_crowd *kubelets,
                   struct vg_bench_crowd *informers, struct vg_bench_result *r)
{
    static struct job jobs[PARTS];
    struct vg_bench_meter meter;
    struct vg_bench_usage memory;
    vg_bench_meter_begin(m->b, &meter);
    int err = run_jobs(m, jobs);
    if (err < 0)
        return err;
    uint64_t limit = (uint64_t)(m->b->o->patience * 1e9);
    bool has_all = vg_bench_crowd_await(kubelets, m->pods, limit) &&
                   vg_bench_crowd_await(informers, (uint64_t)m->pods * INFORMERS, limit);
    (void)has_all; /* what is missing is counted below */
    vg_bench_meter_end(m->b, &meter, r);
    put_jobs(r, jobs);
    if (meter.has_server)
        vg_bench_metric(r, "server_cpu_share", (double)meter.server.cpu_ns / (double)meter.wall_ns);
    if (vg_bench_memory(m->b, &memory))
        vg_bench_metric(r, "server_anon_bytes", (double)memory.anonymous_bytes);
    put_crowds(m, kubelets, informers, r);
    return 0;
}

static int prepare(struct mixed *m, struct vg_bench_result *r)
{
    double scale = m->b->o->scale;
    m->nodes = VG_MAX((uint32_t)(NODES * scale), 1u);
    double pods = PODS_PER_S * scale * m->b->o->seconds;
    m->pods = (uint32_t)VG_MIN(VG_MAX(pods, 1.0), (double)PODS_MAX);
    vg_bench_param_number(r, "scale", scale);
    vg_bench_param_number(r, "nodes", m->nodes);
    vg_bench_param_number(r, "informers", INFORMERS);
    vg_bench_param_number(r, "seconds", m->b->o->seconds);
    m->step_ns = vg_calloc(m->pods, sizeof *m->step_ns);
    m->steps = vg_calloc(m->pods, sizeof *m->steps);
    if (!m->step_ns || !m->steps)
        return vg_fail(&m->b->status, -ENOMEM, "out of memory");
    if (m->b->o->kind != VG_BENCH_PODS)
        return vg_fail(&m->b->status, VIGIL_E_INVALID, "mixed is about pods");
    int err = make_leases(m);
    return err < 0 ? err : vg_bench_version(m->b, VG_BENCH_STAGE, &m->version);
}

int vg_bench_mixed(struct vg_bench *b, const struct vg_bench_case *k, struct vg_bench_result *r)
{
    struct mixed m = {.b = b, .k = k};
    struct vg_bench_crowd *kubelets = NULL, *informers = NULL;
    int err = prepare(&m, r);
    if (err == 0)
        err = open_crowd(&m, true, &kubelets);
    if (err == 0)
        err = open_crowd(&m, false, &informers);
    if (err == 0)
        err = measure(&m, kubelets, informers, r);
    vg_bench_crowd_free(kubelets);
    vg_bench_crowd_free(informers);
    vg_bench_bits_done(&m.written);
    vg_buf_done(&m.version);
    vg_free(m.step_ns);
    vg_free(m.steps);
    return err;
}
