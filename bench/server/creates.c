/* creates.c - see creates.h. */
#include "creates.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "measure.h"
#include "pods.h"
#include "writers.h"

static uint64_t made; /* names that were used */

static int make(void *arg, uint64_t number, struct vg_bench_request *out)
{
    static char filler[900];
    (void)arg;
    if (!filler[0])
        memset(filler, 'v', sizeof filler - 1);
    out->method = "POST";
    int r = vg_buf_printf(&out->path, "/api/v1/namespaces/" PODS_NS "/configmaps");
    return r < 0 ? r
                 : vg_buf_printf(
                       &out->body,
                       "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
                       "\"c-%" PRIu64 "\",\"namespace\":\"" PODS_NS "\"},\"data\":{\"k\":\"%s\"}}",
                       number, filler);
}

void creates_run(const struct vg_bench_target *t, unsigned clients, uint64_t ms,
                 struct creates *ret)
{
    static struct vg_bench_writers_result r; /* large */
    struct vg_status status = {0};
    struct vg_bench_writers_plan plan = {
        .target = t, .clients = clients, .first = made, .for_ns = ms * VG_NS_PER_MS, .make = make};
    if (vg_bench_writers_run(&plan, &r, &status) < 0)
        bench_die("%s", status.message);
    made += r.sent;
    *ret = (struct creates){r.answers, r.refused + r.throttled, (double)r.took_ns / 1e9};
}
