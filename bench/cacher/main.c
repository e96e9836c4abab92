/* main.c - bench_cacher: what the watch cache costs. Everything runs in this process tree, sinks
 * drop what they are handed, and times are processor time of the thread that did the work, so that
 * a busy machine changes little. Beside each part stands what kube-apiserver's own numbers imply.
 */
#include <stdlib.h>
#include <string.h>

#include "part.h"
#include "settings.h"

static const char usage[] =
    "usage: bench_cacher [options]\n"
    "  --dir DIR    keep stores in a new directory below DIR (default: build, or where you are)\n"
    "  --quick      a rough answer in about 15 s\n"
    "  --check      exit 1 when a bar is missed or a part could not be measured\n"
    "  --json FILE  write the results to FILE too\n"
    "  --only PART  dispatch, uninterested, resume, memory, watcher, tree, list or refill\n"
    "  --rounds N   of each measurement (default 5, at most 16)\n";

static const struct part_text texts[] = {
    {"dispatch", "Dispatching: every watcher is told of every event; pods of 4 KB",
     "8 updates/s of a 1 MB object to 5,000 watchers starved 64 cores before\n"
     "  bodies were shared: 1.6 ms of processor per delivered event (k#75294, k#58050)."},
    {"uninterested", "Not caring: node watchers, each event concerns one of them",
     "has the same index for spec.nodeName alone; a watcher with any other\n"
     "  selector is asked about every event."},
    {"resume", "Resuming: node watchers come back over a window of changes",
     "filters its ring for each watcher: 5,000 x 102,400 events looked at, 5,000\n"
     "  times what they get; its 5k-node test replays 0.83-2.77M events (perf-tests#4264)."},
    {"memory", "Memory of a cached pod, anonymous, everything that the cache takes",
     "a cached custom resource costs 5.2 times its JSON (k#142062); 10k of 1 KiB\n"
     "  take 1 GiB (k#124680)."},
    {"watcher", "Memory of an idle watcher",
     "50-100 KiB for each watch, 32 KiB of it stack (k#117777); etcd has 350 bytes\n"
     "  for a watch, beside 17 kB for its connection."},
    {"tree", "Writing to the state: one put, one published snapshot",
     "snapshots of its B-tree added 300 MB, 1.3% (KEP-4988)."},
    {"list", "Listing from the cache, and applying an event to it",
     "165k pods take 9.1 s to encode (k#138327): 55 us for each object."},
    {"refill", "Starting: from opening the cache over a store to ready, window refilled",
     "starts with an empty window, so every watcher lists anew (k#129194); 150k\n"
     "  pods need minutes where conversion takes part (k#136950)."},
};
static void (*const runs[])(struct report *r) = {
    part_dispatch, part_uninterested, part_resume, part_memory,
    part_watcher,  part_tree,         part_list,   part_refill,
};

static void run_part(struct report *r, void *arg)
{
    (void)arg;
    runs[r->part](r);
}

/* How many could not be measured. */
static int run_parts(struct report *r)
{
    int failed = 0;
    for (size_t i = 0; i < VG_ARRAY_LEN(texts); i++) {
        if (r->settings.only && strcmp(r->settings.only, texts[i].name) != 0)
            continue;
        bench_progress("%s", texts[i].name);
        r->part = (int)i;
        bool ok = part_in_child(run_part, r, NULL);
        bench_check_interrupt();
        bench_progress("%s", "");
        report_print(r, r->part, &texts[i], stdout);
        if (!ok)
            printf("  this part did not come to its end\n");
        failed += !ok;
    }
    return failed;
}

int main(int argc, char **argv)
{
    struct report *r = part_shared_report();
    settings_read(&r->settings, argc, argv, usage, texts, VG_ARRAY_LEN(texts), NULL, 0);
    bench_catch_signals();
    r->settings.dir = bench_scratch(r->settings.dir);
    printf(
        "Medians (lowest - highest) of %zu rounds; ns and us are processor time of the thread.\n",
        r->settings.rounds);
    int failed = run_parts(r);
    report_save(r, texts);
    return r->settings.check && (failed || !report_is_met(r)) ? 1 : 0;
}
