/* options.h - what the command line of `vigil bench` asks for. Texts are borrowed from argv.
 * Everything is checked before the server is touched. Thread: main. */
#ifndef VG_CLI_BENCH_OPTIONS_H
#define VG_CLI_BENCH_OPTIONS_H

#include "base/err.h"
#include "place.h"

#define VG_BENCH_AXIS_MAX 8u
#define VG_BENCH_PIDS_MAX 8u

/* Scenarios in the order in which they run; see scenario.c. */
enum vg_bench_scenario {
    VG_BENCH_FILL,
    VG_BENCH_LIST,
    VG_BENCH_PAGE,
    VG_BENCH_FANOUT,
    VG_BENCH_IDLE,
    VG_BENCH_CHURN,
    VG_BENCH_LATENCY,
    VG_BENCH_SLOW,
    VG_BENCH_MIXED,
    VG_BENCH_RELIST,
    VG_BENCH_SCENARIOS
};
extern const char *const vg_bench_scenario_names[VG_BENCH_SCENARIOS];

enum vg_bench_media { VG_BENCH_JSON, VG_BENCH_PROTOBUF };
enum vg_bench_http { VG_BENCH_H1, VG_BENCH_H2 };
enum vg_bench_selector { VG_BENCH_ALL, VG_BENCH_NODE, VG_BENCH_LABEL };
enum vg_bench_kind { VG_BENCH_PODS, VG_BENCH_CONFIGMAPS };

/* A list of choices or numbers: every scenario that knows it is run for each of them. */
struct vg_bench_axis {
    uint32_t v[VG_BENCH_AXIS_MAX];
    size_t n;
};

struct vg_bench_options {
    bool wants[VG_BENCH_SCENARIOS];
    struct vg_cli_place place;
    const char *really; /* the host:port that may be touched though it is not loopback */
    const char *name, *json, *html, *restart;
    struct vg_bench_axis watchers, objects, media, http, gzip, selector;
    uint32_t kind; /* enum vg_bench_kind */
    uint32_t clients, streams, nodes, events, lists, page, bytes, stalled_percent;
    double rate, seconds, scale, settle, patience;
    uint32_t pids[VG_BENCH_PIDS_MAX];
    size_t n_pids;
    uint32_t etcd_port;
    bool is_quiet, is_help, is_version, keeps, quick;
};

/* argv[0] is the program; argv[1] may be "bench" or "help". VIGIL_E_INVALID with a sentence. */
VG_CHECK int vg_bench_options_parse(int argc, char **argv, struct vg_bench_options *ret,
                                    struct vg_status *reterr_status);
extern const char vg_bench_help[];

#endif
