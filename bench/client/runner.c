/* runner.c - see runner.h. */
#include "runner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "measure.h"

static void become(const char *program, const char *kubeconfig, unsigned informers, int in, int out)
{
    char n[16];
    snprintf(n, sizeof n, "%u", informers);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* whatever ends the bench ends it */
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    execl(program, program, kubeconfig, n, (char *)NULL);
    fprintf(stderr, "bench_client: cannot run %s: %s\n", program, strerror(errno));
    _exit(127);
}

void runner_start(struct runner *r, const char *program, const char *kubeconfig, unsigned informers)
{
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        bench_die("no pipe: %s", strerror(errno));
    r->pid = fork();
    if (r->pid < 0)
        bench_die("cannot fork: %s", strerror(errno));
    if (r->pid == 0)
        become(program, kubeconfig, informers, in[0], out[1]);
    close(in[0]);
    close(out[1]);
    r->to = fdopen(in[1], "w");
    r->from = fdopen(out[0], "r");
    if (!r->to || !r->from)
        bench_die("no stream: %s", strerror(errno));
    runner_await(r, "ready");
}

void runner_stop(struct runner *r)
{
    fclose(r->to); /* the end of its input ends it */
    fclose(r->from);
    int status = 0;
    while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (status != 0)
        bench_die("a follower did not end well");
}

unsigned long runner_await(struct runner *r, const char *answer)
{
    char line[128];
    size_t n = strlen(answer);
    if (!fgets(line, sizeof line, r->from) || strncmp(line, answer, n) != 0)
        bench_die("a follower did not answer '%s'", answer);
    return strtoul(line + n, NULL, 10);
}

unsigned long runner_ask(struct runner *r, const char *line, const char *answer)
{
    if (fprintf(r->to, "%s\n", line) < 0 || fflush(r->to) != 0)
        bench_die("a follower is gone");
    return runner_await(r, answer);
}

uint64_t runner_cpu_ns(const struct runner *r)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(r->pid, &clock) != 0 || clock_gettime(clock, &t) < 0)
        bench_die("a follower is gone");
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A line "Name:  123 kB" of a file in /proc, in bytes. */
static uint64_t proc_bytes(const struct runner *r, const char *file, const char *name)
{
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)r->pid, file);
    FILE *f = fopen(path, "r");
    if (!f)
        bench_die("a follower is gone");
    uint64_t kib = 0;
    while (fgets(line, sizeof line, f))
        if (strncmp(line, name, strlen(name)) == 0)
            kib = strtoull(line + strlen(name), NULL, 10);
    fclose(f);
    return kib * 1024;
}

uint64_t runner_anonymous(const struct runner *r)
{
    return proc_bytes(r, "smaps_rollup", "Anonymous:");
}

uint64_t runner_peak(const struct runner *r)
{
    return proc_bytes(r, "status", "VmHWM:");
}
