/* meter.c - who used how much: the server's processes from /proc, the tool by its own clocks. */
#include <stdio.h>
#include <time.h>

#include "bench.h"

/* One of the tool's threads this busy: it may have been what the server waited for. */
#define BUSY_THREAD 0.9
/* All cores this busy, more than half of it by the tool: likewise. */
#define BUSY_MACHINE 0.95
/* Idle: less than this in a step. */
#define SETTLE_STEP_NS (250 * VG_NS_PER_MS)
#define SETTLE_CPU_NS (5 * VG_NS_PER_MS)

static uint64_t clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * VG_NS_PER_S + (uint64_t)t.tv_nsec;
}

static void add_process(struct vg_bench *b, pid_t pid)
{
    struct vg_bench_usage usage = {0};
    size_t *n = &b->run.server.n_processes;
    if (pid <= 0 || *n == VG_BENCH_PROCESSES_MAX || !vg_bench_proc_add_cpu(pid, &usage))
        return;
    struct vg_bench_process *p = &b->run.server.processes[(*n)++];
    p->pid = pid;
    vg_bench_proc_comm(pid, p->comm, sizeof p->comm);
}

void vg_bench_find_server(struct vg_bench *b)
{
    b->run.server.n_processes = 0;
    for (size_t i = 0; i < b->o->n_pids; i++)
        add_process(b, (pid_t)b->o->pids[i]);
    if (b->run.server.n_processes == 0 && b->target.is_loopback)
        add_process(b, vg_bench_proc_listener(b->target.port));
    if (b->run.server.n_processes && b->o->etcd_port)
        add_process(b, vg_bench_proc_listener((uint16_t)b->o->etcd_port));
}

static bool read_cpu(const struct vg_bench *b, struct vg_bench_usage *ret)
{
    bool is_there = b->run.server.n_processes > 0;
    *ret = (struct vg_bench_usage){0};
    for (size_t i = 0; i < b->run.server.n_processes; i++)
        is_there = vg_bench_proc_add_cpu(b->run.server.processes[i].pid, ret) && is_there;
    return is_there;
}

bool vg_bench_memory(const struct vg_bench *b, struct vg_bench_usage *ret)
{
    bool is_there = b->run.server.n_processes > 0;
    *ret = (struct vg_bench_usage){0};
    for (size_t i = 0; i < b->run.server.n_processes; i++)
        is_there = vg_bench_proc_add_memory(b->run.server.processes[i].pid, ret) && is_there;
    return is_there;
}

void vg_bench_meter_begin(struct vg_bench *b, struct vg_bench_meter *m)
{
    m->has_server = read_cpu(b, &m->server);
    m->wall_ns = clock_ns(CLOCK_MONOTONIC);
    m->tool_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    m->main_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void vg_bench_meter_end(struct vg_bench *b, struct vg_bench_meter *m, struct vg_bench_result *r)
{
    struct vg_bench_usage server;
    m->wall_ns = VG_MAX(clock_ns(CLOCK_MONOTONIC) - m->wall_ns, UINT64_C(1));
    m->tool_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - m->tool_ns;
    m->main_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - m->main_ns;
    m->has_server = read_cpu(b, &server) && m->has_server && server.cpu_ns >= m->server.cpu_ns;
    m->server.cpu_ns = m->has_server ? server.cpu_ns - m->server.cpu_ns : 0;
    if (!r)
        return;
    double wall = (double)m->wall_ns, all = wall * b->run.machine.cores;
    uint64_t busiest = VG_MAX(m->main_ns, m->tool_ns - VG_MIN(m->tool_ns, m->main_ns));
    bool is_full = m->has_server && m->tool_ns > m->server.cpu_ns &&
                   (double)(m->tool_ns + m->server.cpu_ns) > BUSY_MACHINE * all;
    double share = (double)m->tool_ns / all;
    r->tool_cpu_share = VG_MAX(r->tool_cpu_share, share);
    r->tool_was_the_limit =
        r->tool_was_the_limit || (double)busiest > BUSY_THREAD * wall || is_full;
}

void vg_bench_settle(struct vg_bench *b)
{
    struct vg_bench_usage before, after;
    uint64_t limit = (uint64_t)(b->o->settle * 1e9), begin = vg_bench_now();
    while (vg_bench_now() - begin < limit && !vg_bench_is_interrupted()) {
        vg_bench_say(b, "letting the server settle");
        bool is_known = read_cpu(b, &before);
        vg_bench_nap(VG_MIN(SETTLE_STEP_NS, limit));
        if (is_known && read_cpu(b, &after) && after.cpu_ns - before.cpu_ns < SETTLE_CPU_NS)
            return;
    }
}
