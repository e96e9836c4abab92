/* floors.c - bench_floors: what bare loops of send() and SSL_write() need for the bytes that a
 * server sends, as two results of vigil bench in JSON, one for each loop.
 *   bench_floors --fanout WATCHERS,... --event-bytes N --list OBJECTS:BYTES,...
 * A list is measured several times, and the median counts: it takes but milliseconds. */
#include <errno.h>
#include <getopt.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "floor.h"

#define ROWS_MAX 16u
#define REPEATS 3u
/* Events to send in all: some tenths of a second, with few sockets and with many. */
#define EVENTS_LEAST 40000u

struct row {
    size_t count; /* watchers or objects */
    size_t bytes;
};

struct plan {
    struct row fanouts[ROWS_MAX], lists[ROWS_MAX];
    size_t fanouts_n, lists_n, event_bytes;
};

static size_t number(const char *text, char **end)
{
    errno = 0;
    unsigned long n = strtoul(text, end, 10);
    if (*end == text || errno || n == 0 || n > 10ul * 1000 * 1000 * 1000)
        bench_die("'%s' is not understood; see the top of floors.c", text);
    return n;
}

/* COUNT[:BYTES],... */
static size_t rows(const char *text, struct row *ret)
{
    size_t n = 0;
    for (char *end; n < ROWS_MAX; text = end + 1) {
        ret[n].count = number(text, &end);
        if (*end == ':')
            ret[n].bytes = number(end + 1, &end);
        n++;
        if (*end != ',')
            break;
    }
    return n;
}

static void parse(int argc, char **argv, struct plan *p)
{
    static const struct option options[] = {{"fanout", required_argument, NULL, 'f'},
                                            {"event-bytes", required_argument, NULL, 'e'},
                                            {"list", required_argument, NULL, 'l'},
                                            {0}};
    char *end;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 'f')
            p->fanouts_n = rows(optarg, p->fanouts);
        else if (c == 'l')
            p->lists_n = rows(optarg, p->lists);
        else if (c == 'e')
            p->event_bytes = number(optarg, &end);
        else
            exit(2);
    }
    if (p->fanouts_n > 0 && p->event_bytes == 0)
        bench_die("--fanout needs --event-bytes");
}

/* Both ends of each socket are in this process. */
static size_t sockets_for(size_t watchers)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) < 0)
        return watchers;
    l.rlim_cur = l.rlim_max;
    setrlimit(RLIMIT_NOFILE, &l);
    size_t most = l.rlim_max > 256 ? (size_t)(l.rlim_max - 128) / 2 : 64;
    return VG_MIN(watchers, most);
}

static void put_fanout(const struct plan *p, size_t watchers, bool is_tls, const char *before)
{
    size_t sockets = sockets_for(watchers);
    struct floor_plan plan = {.sockets = sockets,
                              .bytes = p->event_bytes,
                              .batch = 1,
                              .writes = EVENTS_LEAST / sockets + 4,
                              .is_tls = is_tls,
                              .reads_later = true};
    printf("%s{\"scenario\": \"fanout\", \"params\": {\"watchers\": %zu, \"sockets\": %zu, "
           "\"selector\": \"all\", \"media\": \"json\", \"http\": \"1.1\", \"gzip\": false, "
           "\"event_bytes\": %zu}, \"metrics\": {\"server_cpu_us_per_event\": %.4f}, "
           "\"error\": null}",
           before, watchers, sockets, p->event_bytes, floor_fanout_ns(&plan) / 1000);
}

static void put_list(const struct row *row, bool is_tls, const char *before)
{
    double ms[REPEATS];
    for (size_t i = 0; i < REPEATS; i++)
        ms[i] = floor_bulk_ns(row->bytes, is_tls) / 1e6;
    printf("%s{\"scenario\": \"list\", \"params\": {\"objects\": %zu, \"selector\": \"all\", "
           "\"media\": \"json\", \"http\": \"1.1\", \"gzip\": false}, \"metrics\": "
           "{\"server_cpu_ms_per_list\": %.4f, \"bytes_per_list\": %zu}, \"error\": null}",
           before, row->count, bench_spread(ms, REPEATS).median, row->bytes);
}

static void put_results(const struct plan *p, bool is_tls)
{
    const char *before = "";
    for (size_t i = 0; i < p->fanouts_n; i++, before = ",\n ")
        put_fanout(p, p->fanouts[i].count, is_tls, before);
    for (size_t i = 0; i < p->lists_n; i++, before = ",\n ")
        if (p->lists[i].bytes > 0)
            put_list(&p->lists[i], is_tls, before);
}

int main(int argc, char **argv)
{
    static struct plan plan;
    struct utsname system = {0};
    signal(SIGPIPE, SIG_IGN);
    parse(argc, argv, &plan);
    uname(&system);
    printf("[{\"name\": \"SSL_write() loop\", \"version\": \"%s\", \"floor\": true, \"results\": [",
           OpenSSL_version(OPENSSL_VERSION));
    put_results(&plan, true);
    printf("]},\n{\"name\": \"send() loop\", \"version\": \"%s %s\", \"floor\": true, "
           "\"results\": [",
           system.sysname, system.release);
    put_results(&plan, false);
    printf("]}]\n");
    return 0;
}
