/* charts.c - which charts there are, and their figures. A chart is a row of the table; what was not
 * measured is left out, and a chart without figures is not drawn. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report_int.h"

#define PLAIN_FANOUT "selector=all media=json http=1.1 tls=true gzip=false"
#define PLAIN_LIST "selector=all media=json http=1.1 tls=true gzip=false"

const struct vg_chart vg_charts[] = {
    {.name = "fanout",
     .title = "Fan-out: processor time per event and watcher",
     .about = "Every watcher gets every change of a 4 KB pod over TLS. Shown is the processor time "
              "that the server spends per delivered event, the write included: with few watchers "
              "the write is what it costs, with many the sending. The floor is a bare loop that "
              "sends the same bytes to as many sockets, one call per event.",
     .kind = VG_CHART_LINES,
     .x = "watchers",
     .x_label = "watchers",
     .headline_x = 1000,
     .is_less_better = true,
     .cases = {{"per event", "fanout", PLAIN_FANOUT, "server_cpu_us_per_event",
                "processor time per event, 1,000 watchers, TLS"}}},
    {.name = "memory",
     .title = "Memory with objects",
     .about = "Anonymous memory of the server's processes (etcd included where there is one) after "
              "so many pods of 4 KB were created by 32 clients. What is mapped from files can be "
              "dropped by the "
              "kernel and does not count.",
     .kind = VG_CHART_LINES,
     .x = "objects",
     .x_label = "pods of 4 KB",
     .headline_x = 10000,
     .is_less_better = true,
     .cases = {{"memory", "fill", "", "server_anon_bytes", "memory with 10,000 pods of 4 KB"}}},
    {.name = "list",
     .title = "LIST of everything: processor time of the server",
     .about = "One list of all pods as JSON over TLS, uncompressed. The floor is a bare loop that "
              "sends as many bytes to one socket.",
     .kind = VG_CHART_LINES,
     .x = "objects",
     .x_label = "pods of 4 KB",
     .headline_x = 10000,
     .is_less_better = true,
     .cases = {{"list", "list", PLAIN_LIST, "server_cpu_ms_per_list",
                "processor time of a LIST of 10,000, TLS"}}},
    {.name = "list-forms",
     .title = "LIST in other forms: processor time of the server",
     .about =
         "10,000 pods of 4 KB in the store. A page is a list of 500 with a continue token; the "
         "figure is for all pages together.",
     .kind = VG_CHART_BARS,
     .is_less_better = true,
     .cases = {{"JSON, gzip", "list", "selector=all media=json http=1.1 gzip=true objects=10000",
                "server_cpu_ms_per_list", "the same, gzip"},
               {"protobuf", "list", "selector=all media=protobuf http=1.1 gzip=false objects=10000",
                "server_cpu_ms_per_list", "the same, protobuf"},
               {"JSON over HTTP/2", "list",
                "selector=all media=json http=2 gzip=false objects=10000", "server_cpu_ms_per_list",
                NULL},
               {"in pages of 500", "page", "selector=all media=json http=1.1 objects=10000",
                "server_cpu_ms_per_list", NULL},
               {"100 of them, by node", "list",
                "selector=node media=json http=1.1 gzip=false objects=10000",
                "server_cpu_ms_per_list", "LIST of one node's pods"}}},
    {.name = "fanout-forms",
     .title = "Fan-out in other forms: processor time per event",
     .about = "1,000 watchers. With a selector by node, one watcher in all cares for a change: the "
              "figure is the cost of that one event.",
     .kind = VG_CHART_BARS,
     .is_less_better = true,
     .cases = {{"protobuf", "fanout", "selector=all media=protobuf http=1.1 watchers=1000",
                "server_cpu_us_per_event", NULL},
               {"JSON, HTTP/2 streams", "fanout",
                "selector=all media=json http=2 watchers=1000 gzip=false",
                "server_cpu_us_per_event", NULL},
               {"one of 1,000 node selectors", "fanout",
                "selector=node media=json http=1.1 watchers=1000", "server_cpu_us_per_update",
                "an update with 1,000 node watchers"}}},
    {.name = "start",
     .title = "Starting: from exec until it is ready",
     .about = "From the exec of the server to the first answer 200 of /readyz. Where there is an "
              "etcd it runs already; its own start is not counted.",
     .kind = VG_CHART_BARS,
     .is_less_better = true,
     .cases = {{"empty store", "start", "objects=0", "ready_ms", "exec to ready"},
               {"with 10,000 pods", "start", "objects=10000", "ready_ms", NULL},
               {"with 100,000 pods", "start", "objects=100000", "ready_ms", NULL}}},
    {.name = "idle",
     .title = "Memory of an idle server",
     .about = "Anonymous memory of the server's processes, etcd included where there is one, some "
              "seconds after the start with an empty store.",
     .kind = VG_CHART_BARS,
     .is_less_better = true,
     .cases = {{"idle", "start", "objects=0", "server_anon_bytes", "memory, idle"}}},
    {.name = "watchers",
     .title = "Memory of an idle watcher",
     .about =
         "Anonymous memory of the server's processes for each watch that waits for changes: how "
         "much it grows by 1,000 of them. Over HTTP/1.1 each has a connection with TLS, whose "
         "client shows a token or a certificate.",
     .kind = VG_CHART_BARS,
     .is_less_better = true,
     .cases = {{"HTTP/1.1, a TLS connection each, token", "idle", "http=1.1 tls=true login=token",
                "server_anon_bytes_per_watcher", "memory of an idle watcher, TLS"},
               {"HTTP/1.1, a TLS connection each, certificate", "idle",
                "http=1.1 tls=true login=certificate", "server_anon_bytes_per_watcher", NULL},
               {"HTTP/2, many streams on a connection", "idle", "http=2 tls=true",
                "server_anon_bytes_per_watcher", NULL}}},
    {.name = "latency",
     .title = "How soon: a write, and its event",
     .about =
         "Updates at a slow rate while watchers look on (make bench: 20 a second, 1,000 "
         "watchers over TLS): from sending a request to its answer, from sending it to the event "
         "at "
         "each of the watchers, and from the answer to the event; an event that is there before "
         "the "
         "answer counts as 0. When something came is what the kernel says. The floor is what the "
         "bare loop needs to send an event to half of the watchers, and to all but one in a "
         "hundred, on all cores at once.",
     .kind = VG_CHART_BARS,
     .is_less_better = true,
     .cases = {{"request to answer, p50", "latency", "", "ack_p50_ms", "request to answer, p50"},
               {"request to answer, p99", "latency", "", "ack_p99_ms", NULL},
               {"request to event, p50", "latency", "", "event_p50_ms", NULL},
               {"request to event, p99", "latency", "", "event_p99_ms",
                "request to event at each watcher, p99"},
               {"answer to event, p50", "latency", "", "after_ack_p50_ms", NULL},
               {"answer to event, p99", "latency", "", "after_ack_p99_ms",
                "answer to event at each watcher, p99"}}},
    {.name = "writes",
     .title = "Creates per second",
     .about = "Pods of 4 KB, each acknowledged before its client sends the next. An acknowledged "
              "create is durable on every peer.",
     .kind = VG_CHART_BARS,
     .cases = {{"1,000 pods", "fill", "objects=1000", "creates_per_s", NULL},
               {"10,000 pods", "fill", "objects=10000", "creates_per_s", "creates per second"},
               {"100,000 pods", "fill", "objects=100000", "creates_per_s", NULL}}},
    {.name = "writes-cost",
     .title = "Processor time of a write",
     .about = "Of the server's processes, etcd included where there is one: a create of a pod, and "
              "an update while ten watchers get every change.",
     .kind = VG_CHART_BARS,
     .is_less_better = true,
     .cases = {{"create", "fill", "objects=10000", "server_cpu_us_per_create",
                "processor time of a create"},
               {"update under load", "churn", "", "server_cpu_us_per_update", NULL}}},
    {.name = "relist",
     .title = "Restart under informers",
     .about = "The server is killed and started again under informers that hold all objects. Shown "
              "is how long it takes from the start until all are up to date, and the processor "
              "time that it costs the server. An informer that need not list anew costs little.",
     .kind = VG_CHART_BARS,
     .is_less_better = true,
     .cases = {{"until all are up to date", "relist", "", "s_until_all_caught_up",
                "restart until all informers are up to date"},
               {"processor time of the server", "relist", "", "server_cpu_s", NULL}}},
    {.name = "slow",
     .title = "Slow watchers: what the others notice",
     .about = "A share of the watchers stops reading. Shown is how soon the healthy ones get their "
              "events.",
     .kind = VG_CHART_BARS,
     .is_less_better = true,
     .cases = {{"update to event, p50", "slow", "", "healthy_p50_ms", NULL},
               {"update to event, p99", "slow", "", "healthy_p99_ms",
                "healthy watchers beside stalled, p99"}}},
    {.name = "mixed",
     .title = "A cluster's daily traffic, scaled down: share of one processor",
     .about = "Kubelets that watch their pods and renew their leases, controllers with informers, "
              "and pods that come and go, as in a cluster of 5,000 nodes, times the scale that the "
              "run used (see run.json).",
     .kind = VG_CHART_BARS,
     .is_less_better = true,
     .cases = {{"processors in use", "mixed", "", "server_cpu_share",
                "processors used by mixed traffic"}}},
    {.name = "ended",
     .title = "Who is ended, who must list anew",
     .about = "Counts; 0 is what a client wants.",
     .kind = VG_CHART_TABLE,
     .is_less_better = true,
     .cases = {{"events lost under load", "churn", "", "lost", NULL},
               {"watches ended under load", "churn", "", "ended", "watches ended under load"},
               {"informers that list anew after a restart", "relist", "", "relists", NULL},
               {"healthy watches ended beside stalled ones", "slow", "", "healthy_ended", NULL},
               {"stalled watches ended", "slow", "", "stalled_ended", NULL}}},
    {.name = NULL},
};

/* ---- figures ---- */

static void fill_point(struct vg_chart_data *d, const struct vg_chart_case *c,
                       const struct vg_query *q, const char *label)
{
    struct vg_chart_point *p = &d->points[d->n];
    double scale;
    bool any = false;
    *p = (struct vg_chart_point){.x = q->x_value, .query = *q, .from = c};
    p->unit = vg_unit_of(vg_slice_str(c->metric), &scale);
    snprintf(p->label, sizeof p->label, "%s", label);
    for (unsigned i = 0; i < d->report->peers_n; i++) {
        vg_query_spread(d->report, q, i, &p->by_peer[i]);
        d->is_used[i] |= p->by_peer[i].n > 0;
        any |= p->by_peer[i].n > 0;
    }
    d->n += any;
}

/* The least x above `above` that was measured; NAN: none. */
static double next_x(const struct vg_report *r, const struct vg_query *q, const char *name,
                     double above)
{
    double best = NAN, x, value;
    for (size_t i = 0; i < r->results_n; i++) {
        const struct vg_report_result *it = &r->results[i];
        if (vg_query_matches(q, it) && vg_query_param(it, name, &x) && x > above &&
            !(x >= best) && /* also when best is none */
            vg_json_to_double(vg_json_get_str(it->metrics, q->metric), &value) == 0)
            best = x;
    }
    return best;
}

static void fill_lines(struct vg_chart_data *d)
{
    const struct vg_chart_case *c = &d->chart->cases[0];
    struct vg_query q = {c->scenario, c->where, c->metric, NULL, 0};
    double x = next_x(d->report, &q, d->chart->x, 0); /* powers of ten have no 0 */
    while (!isnan(x) && d->n < VG_CHART_POINTS_MAX) {
        char label[VG_FIGURE_SIZE];
        struct vg_query at = {c->scenario, c->where, c->metric, d->chart->x, x};
        fill_point(d, c, &at, vg_figure(label, VG_UNIT_NONE, x));
        x = next_x(d->report, &q, d->chart->x, x);
    }
}

bool vg_chart_fill(const struct vg_report *r, const struct vg_chart *chart,
                   struct vg_chart_data *ret)
{
    *ret = (struct vg_chart_data){.report = r, .chart = chart};
    if (chart->kind == VG_CHART_LINES) {
        fill_lines(ret);
    } else {
        for (unsigned i = 0; i < VG_CHART_CASES_MAX && chart->cases[i].label; i++) {
            const struct vg_chart_case *c = &chart->cases[i];
            fill_point(ret, c, &(struct vg_query){c->scenario, c->where, c->metric, NULL, 0},
                       c->label);
        }
    }
    return ret->n > 0;
}
