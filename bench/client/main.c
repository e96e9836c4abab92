/* main.c - bench_client: what it costs to follow the pods of a vigild over TLS, with libvigil's
 * informer and, in the same run and in turn, with client-go's. vigild is a process of its own, and
 * so is each follower. client-go's program is built from bench/client/go when there is Go. */
#include <errno.h>
#include <libgen.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rows.h"
#include "settings.h"

static const char usage[] =
    "usage: bench_client [options]\n"
    "  --vigild FILE  the server (default: build/vigild)\n"
    "  --go DIR       where client-go's side lies (default: bench/client/go); \"\": leave it out\n"
    "  --dir DIR      keep stores in a new directory below DIR (default: build, or where you are)\n"
    "  --quick        10,000 pods only, fewer rounds\n"
    "  --check        exit 1 when a bar is missed\n"
    "  --json FILE    write the results to FILE too\n"
    "  --only PART    small, large or many\n"
    "  --rounds N     of each measurement (default 5, at most 16)\n";

static const struct part_text texts[] = {
    {"small", "One informer, 10,000 pods", NULL},
    {"large", "One informer, 100,000 pods", NULL},
    {"many", "100 informers in a process, each of the 100 pods of a node", NULL},
};

static const char *vigild = "build/vigild", *go_dir = "bench/client/go";

/* client-go's side, built now; NULL, having said why, when that cannot be. */
static const char *build_go(const char *dir)
{
    if (!go_dir[0])
        return NULL;
    char *program = realpath(dir, NULL);
    char *path = program ? bench_path(program, "client-go") : NULL;
    free(program);
    if (!path)
        bench_die("cannot find %s", dir);
    pid_t pid = fork();
    if (pid == 0) {
        if (chdir(go_dir) == 0)
            execlp("go", "go", "build", "-ldflags=-s -w", "-o", path, ".", (char *)NULL);
        _exit(127);
    }
    int status = -1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (status == 0)
        return path;
    free(path);
    printf("client-go is left out: %s\n", WIFEXITED(status) && WEXITSTATUS(status) == 127
                                              ? "there is no Go"
                                              : "it could not be built");
    return NULL;
}

/* A server with so many pods; the bytes of their list are counted. */
static void fill(struct rows *b, const char *dir, uint32_t pods)
{
    bench_progress("making %u pods", pods);
    server_start(&b->server, vigild, dir);
    pods_fill(&b->server, pods, NODES);
    b->pods = pods;
    struct client c;
    client_open(&c, &b->server, H1_PLAIN);
    if (client_ask(&c, &(struct vg_bench_ask){.method = "GET", .path = PODS_PATH}, &b->bytes) !=
        200)
        bench_die("the pods cannot be listed");
    client_done(&c);
}

static bool is_asked_for(const struct settings *s, int part)
{
    return s->only ? strcmp(s->only, texts[part].name) == 0 : part != 1 || !s->quick;
}

static void run_parts(struct report *r, struct rows *b)
{
    static const struct {
        uint32_t pods;
        unsigned informers;
    } parts[] = {{10000, 1}, {100000, 1}, {10000, 100}};
    for (r->part = 0; r->part < 3; r->part++) {
        if (!is_asked_for(&r->settings, r->part))
            continue;
        fill(b, r->settings.dir, parts[r->part].pods);
        b->rounds = r->part == 1 && r->settings.rounds > 3 ? 3 : r->settings.rounds;
        rows_follow(b, parts[r->part].informers, parts[r->part].informers == 1);
        server_stop(&b->server);
        bench_progress("%s", "");
        report_print(r, r->part, &texts[r->part], stdout);
    }
}

/* The follower lies beside this program. */
static const char *beside(const char *name)
{
    static char path[4096];
    char self[4000];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        bench_die("cannot find this program");
    self[n] = 0;
    snprintf(path, sizeof path, "%s/%s", dirname(self), name);
    return path;
}

int main(int argc, char **argv)
{
    static struct report report;
    struct report *r = &report;
    const struct settings_text more[] = {{"vigild", &vigild}, {"go", &go_dir}};
    settings_read(&r->settings, argc, argv, usage, texts, VG_ARRAY_LEN(texts), more,
                  VG_ARRAY_LEN(more));
    bench_catch_signals();
    signal(SIGPIPE, SIG_IGN);
    r->settings.dir = bench_scratch(r->settings.dir);
    struct rows b = {.report = r, .ours = beside("bench_client_follower")};
    b.go = build_go(r->settings.dir);
    printf("Medians (lowest - highest) of %zu rounds, pods of 4 KB as JSON over TLS.\n",
           r->settings.rounds);
    run_parts(r, &b);
    report_save(r, texts);
    return r->settings.check && !report_is_met(r) ? 1 : 0;
}
