/* main.c - bench_server: vigild over real sockets. The server is a process of its own, whose
 * processor time and memory are read from /proc; clients and floors run in this one. Beside each
 * part stands what kube-apiserver 1.36.4 with etcd was measured at on a machine of two cores. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "rows.h"

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

static void take_arg(struct settings *s, int letter)
{
    switch (letter) {
    case 'v':
        vigild = optarg;
        break;
    case 'k':
        kube = optarg;
        break;
    case 'd':
        s->dir = optarg;
        break;
    case 'q':
        s->quick = true;
        break;
    case 'c':
        s->check = true;
        break;
    case 'j':
        s->json = optarg;
        break;
    case 'o':
        s->only = optarg;
        break;
    case 'r':
        s->rounds = strtoul(optarg, NULL, 10);
        if (s->rounds == 0 || s->rounds > ROUNDS_MAX)
            bench_die("'%s' is not a number from 1 to %d", optarg, ROUNDS_MAX);
        break;
    case 'h':
        fputs(usage, stdout);
        exit(0);
    default:
        fputs(usage, stderr);
        exit(2);
    }
}

static void parse_args(struct settings *s, int argc, char **argv)
{
    static const struct option options[] = {
        {"vigild", required_argument, NULL, 'v'}, {"kube", required_argument, NULL, 'k'},
        {"dir", required_argument, NULL, 'd'},    {"quick", no_argument, NULL, 'q'},
        {"check", no_argument, NULL, 'c'},        {"json", required_argument, NULL, 'j'},
        {"only", required_argument, NULL, 'o'},   {"rounds", required_argument, NULL, 'r'},
        {"help", no_argument, NULL, 'h'},         {0},
    };
    for (int c = getopt_long(argc, argv, "", options, NULL); c != -1;
         c = getopt_long(argc, argv, "", options, NULL))
        take_arg(s, c);
    if (optind < argc)
        bench_die("'%s' is not understood; see --help", argv[optind]);
    struct stat st;
    if (!s->dir)
        s->dir = stat("build", &st) == 0 && S_ISDIR(st.st_mode) ? "build" : ".";
    if (!s->rounds)
        s->rounds = s->quick ? 3 : 5;
}

static void raise_files(void)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
        l.rlim_cur = l.rlim_max;
        setrlimit(RLIMIT_NOFILE, &l);
    }
}

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
    parse_args(&r->settings, argc, argv);
    bench_catch_signals();
    signal(SIGPIPE, SIG_IGN);
    raise_files();
    r->settings.dir = bench_scratch(r->settings.dir);
    printf("Medians (lowest - highest) of %zu rounds; times are processor time of the server "
           "unless said.\n",
           r->settings.rounds);
    run_parts(r);
    if (r->settings.json) {
        FILE *out = fopen(r->settings.json, "we");
        if (out)
            report_json(r, texts, out);
        if (!out || fclose(out) != 0)
            bench_die("cannot write %s: %s", r->settings.json, strerror(errno));
    }
    return r->settings.check && !report_is_met(r) ? 1 : 0;
}
