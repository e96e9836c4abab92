/* objects.c - see objects.h. */
#include "objects.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "events.h"

/* With what the server adds, managers and all, a pod is 4 KB as it is stored and sent. */
#define LABELS 12u
#define SETTINGS 6u

/* "metadata":{"name":...,"labels":{...},"annotations":{mark}} */
static int write_meta(struct vg_buf *b, const char *name, const struct vg_bench_object *o,
                      unsigned labels)
{
    char mark[VG_BENCH_MARK_SIZE];
    vg_bench_mark(mark, o->number, o->ns_sent);
    int r = vg_buf_printf(b,
                          "\"metadata\":{\"name\":\"%s-%06u\",\"namespace\":\"%s\",\"labels\":{"
                          "\"app\":\"vigil-bench\",\"group\":\"g-%u\"",
                          name, o->id, o->ns, o->node);
    for (unsigned i = 0; r == 0 && i < labels; i++)
        r = vg_buf_printf(b, ",\"team.example.com/label-%u\":\"value-%u-%u\"", i, o->id % 7, i);
    return r < 0 ? r
                 : vg_buf_printf(b, "},\"annotations\":{\"" VG_BENCH_MARK_KEY "\":\"%s\"}}", mark);
}

static int write_container(struct vg_buf *b, unsigned c, uint32_t id)
{
    int r = vg_buf_printf(
        b, "%s{\"name\":\"c%u\",\"image\":\"registry.example.com/team/web:%u\",\"env\":[",
        c ? "," : "", c, id % 100);
    for (unsigned i = 0; r == 0 && i < SETTINGS; i++)
        r = vg_buf_printf(b, "%s{\"name\":\"SETTING_%u\",\"value\":\"value-%08x-%u\"}",
                          i ? "," : "", i, id * 2654435761u, i);
    return r < 0 ? r : vg_buf_printf(b, "],\"resources\":{},\"imagePullPolicy\":\"IfNotPresent\"}");
}

int vg_bench_pod_write(struct vg_buf *b, const struct vg_bench_object *o)
{
    vg_buf_clear(b);
    int r = vg_buf_printf(b, "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",");
    if (r == 0)
        r = write_meta(b, "web", o, LABELS);
    if (r == 0)
        r = vg_buf_printf(b, ",\"spec\":{\"containers\":[");
    for (unsigned c = 0; r == 0 && c < 2; c++)
        r = write_container(b, c, o->id);
    return r < 0 ? r
                 : vg_buf_printf(b,
                                 "],\"automountServiceAccountToken\":false,"
                                 "\"restartPolicy\":\"Always\",\"nodeName\":\"%s-node-%u\"}}",
                                 o->ns, o->node);
}

int vg_bench_configmap_write(struct vg_buf *b, const struct vg_bench_object *o)
{
    vg_buf_clear(b);
    int r = vg_buf_printf(b, "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",");
    if (r == 0)
        r = write_meta(b, "cm", o, 0);
    if (r == 0)
        r = vg_buf_printf(b, ",\"data\":{\"k\":\"%08x", o->id * 2654435761u);
    if (r == 0)
        r = vg_buf_reserve(b, o->bytes + 4);
    if (r < 0)
        return r;
    memset(b->p + b->n, 'v', o->bytes);
    b->n += o->bytes;
    return vg_buf_printf(b, "\"}}");
}

/* "2026-11-16T08:00:00.123456Z" */
static void write_time(char text[40])
{
    struct timespec now;
    struct tm utc;
    char seconds[24] = "";
    clock_gettime(CLOCK_REALTIME, &now);
    if (gmtime_r(&now.tv_sec, &utc))
        (void)strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text, 40, "%s.%06ldZ", seconds, now.tv_nsec / 1000 % 1000000);
}

int vg_bench_lease_write(struct vg_buf *b, const struct vg_bench_object *o)
{
    char now[40];
    write_time(now);
    vg_buf_clear(b);
    int r = vg_buf_printf(b, "{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\",");
    if (r == 0)
        r = write_meta(b, "node", o, 0);
    return r < 0 ? r
                 : vg_buf_printf(b,
                                 ",\"spec\":{\"holderIdentity\":\"node-%u\","
                                 "\"leaseDurationSeconds\":40,\"renewTime\":\"%s\"}}",
                                 o->id, now);
}

int vg_bench_lease_patch(struct vg_buf *b)
{
    char now[40];
    write_time(now);
    vg_buf_clear(b);
    return vg_buf_printf(b, "{\"spec\":{\"renewTime\":\"%s\"}}", now);
}

int vg_bench_mark_patch(struct vg_buf *b, uint64_t number, uint64_t sent_ns)
{
    char mark[VG_BENCH_MARK_SIZE];
    vg_bench_mark(mark, number, sent_ns);
    vg_buf_clear(b);
    return vg_buf_printf(b, "{\"metadata\":{\"annotations\":{\"" VG_BENCH_MARK_KEY "\":\"%s\"}}}",
                         mark);
}

int vg_bench_status_patch(struct vg_buf *b, const char *phase)
{
    vg_buf_clear(b);
    return vg_buf_printf(b,
                         "{\"status\":{\"phase\":\"%s\",\"conditions\":[{\"type\":\"Ready\","
                         "\"status\":\"%s\"}]}}",
                         phase, strcmp(phase, "Running") == 0 ? "True" : "False");
}
