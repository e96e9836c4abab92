/* fanout.c - one event to 1,000 watchers, beside bare loops that write the same bytes to as many
 * sockets: one event in a write, and as many as the server put into one. */
#include <stdlib.h>

#include "crowd.h"
#include "floor.h"
#include "rows.h"

struct crowd *crowd_of_watches(const struct server *s, enum carrier carrier, const char *path,
                               unsigned n, unsigned streams)
{
    struct crowd *crowd = crowd_new(n);
    unsigned each = carrier_is_h2(carrier) ? streams : 1;
    for (unsigned i = 0; i < n; i += each) {
        struct watches w = {.path = path, .first = i, .n = VG_MIN(each, n - i)};
        crowd_add(crowd, client_watches(s, carrier, &w));
    }
    return crowd;
}

#define WATCHERS 1000u
#define WATCH                                                                                      \
    "/api/v1/"                                                                                     \
    "pods?watch=1&resourceVersion=0&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"

/* Updates one after the other, each awaited by all: processor time per event and watcher. */
static double fan_out_ns(const struct server *s, struct crowd *crowd, unsigned events,
                         size_t *ret_frame)
{
    struct client c;
    struct vg_buf scratch;
    vg_buf_init(&scratch, 0);
    client_open(&c, s, H1_PLAIN);
    pod_update(&c, &scratch, (struct pod){0, 0, 1000000});
    crowd_await_quiet(crowd, 200);
    uint64_t begin = crowd_bytes(crowd), cpu = server_cpu_ns(s);
    uint64_t each = 0; /* bytes of one event to all */
    for (unsigned i = 0; i < events; i++) {
        pod_update(&c, &scratch, (struct pod){0, 0, 1000001 + i});
        if (i == 0) {
            crowd_await_quiet(crowd, 100);
            each = crowd_bytes(crowd) - begin;
        }
        crowd_await(crowd, begin + (i + 1) * each);
    }
    double ns = (double)(server_cpu_ns(s) - cpu) / events / WATCHERS;
    *ret_frame = each / WATCHERS;
    client_done(&c);
    vg_buf_done(&scratch);
    return ns;
}

static void fan_out(const struct bench *b, const struct server *s, enum carrier carrier)
{
    double ours[ROUNDS_MAX], floors[ROUNDS_MAX], ratio[ROUNDS_MAX];
    unsigned events = b->quick ? 20 : 60;
    struct crowd *crowd = crowd_of_watches(s, carrier, WATCH, WATCHERS, 10);
    for (size_t i = 0; i < b->rounds; i++) {
        size_t frame;
        ours[i] = fan_out_ns(s, crowd, events, &frame) / 1e3;
        floors[i] = floor_fanout_ns(&(struct floor_plan){.sockets = WATCHERS,
                                                         .bytes = frame,
                                                         .batch = 1,
                                                         .writes = events / 2,
                                                         .is_tls = carrier_is_tls(carrier)}) /
                    1e3;
        ratio[i] = ours[i] / floors[i];
    }
    if (crowd_closed(crowd) > 0)
        bench_die("%zu watchers were ended", crowd_closed(crowd));
    crowd_free(crowd);
    report_row(b->report, "us", ours, b->rounds, "event to one of 1,000 watchers, %s",
               carrier_names[carrier]);
    report_row(b->report, "us", floors, b->rounds, "  floor: %s",
               carrier_is_tls(carrier) ? "SSL_write" : "send");
    report_bar(b->report, report_median(ratio, b->rounds), 1.5, "x floor: fan-out, %s",
               carrier_names[carrier]);
}

/* Every second watcher wants protobuf: one more body for each event, and shorter frames. */
static void fan_out_mixed(const struct bench *b, const struct server *s)
{
    double ours[ROUNDS_MAX];
    size_t frame;
    struct crowd *crowd = crowd_new(WATCHERS);
    for (unsigned i = 0; i < WATCHERS; i++) {
        struct watches w = {.path = WATCH, .accept = i % 2 ? ACCEPT_PROTOBUF : NULL, .n = 1};
        crowd_add(crowd, client_watches(s, H1_TLS, &w));
    }
    for (size_t i = 0; i < b->rounds; i++)
        ours[i] = fan_out_ns(s, crowd, b->quick ? 20 : 60, &frame) / 1e3;
    if (crowd_closed(crowd) > 0)
        bench_die("%zu watchers were ended", crowd_closed(crowd));
    crowd_free(crowd);
    report_row(b->report, "us", ours, b->rounds, "the same, half of them in protobuf, %s",
               carrier_names[H1_TLS]);
}

void rows_fanout(const struct bench *b)
{
    struct server s;
    server_start(&s, b->binary, b->dir);
    pods_fill(&s, 1, 1);
    for (enum carrier c = 0; c < CARRIERS; c++)
        fan_out(b, &s, c);
    fan_out_mixed(b, &s);
    server_stop(&s);
    bench_remove_tree(s.dir);
}
