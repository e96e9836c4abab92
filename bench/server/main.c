/* main.c - bench_server: vigild over real sockets. The server is a process of its own, whose
 * processor time and memory are read from /proc; clients and floors run in this one. Beside each
 * part stands what kube-apiserver 1.36.4 with etcd was measured at on a machine of two cores. */
#include <signal.h>
#include <stdlib.h>

#include "rows.h"
#include "settings.h"

static const char usage[] =
    "usage: bench_server [options]\n"
    "  --vigild FILE  the server to measure (default: build/vigild)\n"
    "  --dir DIR      keep stores in a new directory below DIR (default: build, or where you are)\n"
    "  --quick        a rough answer in about a minute\n"
    "  --check        exit 1 when a bar is missed\n"
    "  --json FILE    write the results to FILE too\n"
    "  --only PART    start, memory, list, fanout, node, writes, storm, kube or etcd\n"
    "  --kube DIR     where etcd and kube-apiserver lie, for the parts kube and etcd\n"
    "  --rounds N     of each measurement (default 5, at most 16)\n";

static const struct part_text texts[] = {
    {"start", "Starting: from exec to the line that says ready", "2,300 ms, etcd not counted."},
    {"memory", "Memory, anonymous",
     "307 MB idle and 683 MB with 10,000 pods, etcd included; an\n"
     "  idle watcher 48 KB over TLS, 19 KB as an HTTP/2 stream."},
    {"list", "Lists: processor time of the server, 10,000 pods of 4 KB",
     "380 to 475 ms a list, 387 ms with gzip, 860 ms a WatchList, 4.0 ms by node."},
    {"fanout", "Fan-out: processor time per event and watcher, events of 4 KB",
     "22 to 36 us over TLS."},
    {"node", "Telling one of many, and how soon", "2,500 us an update; 20 and 44 ms to an event."},
    {"writes", "Durable creates of 1 KB, each acknowledged before the next",
     "1,109/s, 32 clients."},
    {"storm", "Nobody is ended, nobody lists anew",
     "ends 15 watchers in four runs at 500 to 3,000 updates/s; 2 relists in 4 restarts."},
    {"kube", "Beside kube-apiserver and etcd, here", "as the rows tell."},
    {"etcd", "Creates of 1 KB in one etcd: by its engine alone, by vigild, by kube-apiserver",
     "as the rows tell."},
};
static void (*const runs[])(const struct bench *b) = {
    rows_start,  rows_memory, rows_list, rows_fanout, rows_node,
    rows_writes, rows_storm,  rows_kube, rows_etcd,
};

static const char *vigild = "build/vigild", *kube;

static void run_parts(struct report *r)
{
    struct bench b = {r, vigild, r->settings.dir, kube, r->settings.rounds, r->settings.quick};
    bool any = false;
    for (size_t i = 0; i < VG_ARRAY_LEN(texts); i++) {
        if (r->settings.only && strcmp(r->settings.only, texts[i].name) != 0)
            continue;
        any = true;
        bench_progress("%s", texts[i].name);
        r->part = (int)i;
        runs[i](&b);
        bench_check_interrupt();
        bench_progress("%s", "");
        report_print(r, r->part, &texts[i], stdout);
        fflush(stdout);
    }
    if (!any)
        bench_die("there is no part '%s'; see --help", r->settings.only);
}

int main(int argc, char **argv)
{
    static struct report report;
    struct report *r = &report;
    const struct settings_text more[] = {{"vigild", &vigild}, {"kube", &kube}};
    settings_read(&r->settings, argc, argv, usage, texts, VG_ARRAY_LEN(texts), more,
                  VG_ARRAY_LEN(more));
    bench_catch_signals();
    signal(SIGPIPE, SIG_IGN);
    bench_raise_files();
    r->settings.dir = bench_scratch(r->settings.dir);
    printf("Medians (lowest - highest) of %zu rounds; times are processor time of the server "
           "unless said.\n",
           r->settings.rounds);
    run_parts(r);
    report_save(r, texts);
    return r->settings.check && !report_is_met(r) ? 1 : 0;
}
