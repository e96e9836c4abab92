/* measure.c - see measure.h: clocks, latencies and the way out. Files are in scratch.c. */
#include "measure.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;
static bool progress_shown;

static void clear_progress(void)
{
    if (progress_shown)
        fputs("\r\033[K", stderr);
    progress_shown = false;
}

void bench_die(const char *fmt, ...)
{
    clear_progress();
    fprintf(stderr, "%s: ", program_invocation_short_name);
    va_list ap;
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap); /* NOLINT(clang-analyzer-valist.Uninitialized): started above */
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

size_t bench_number_arg(const char *text, size_t max)
{
    char *end = NULL;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    if (errno || *end || end == text || n == 0 || n > max)
        bench_die("'%s' is not a number from 1 to %zu", text, max);
    return n;
}

void bench_raise_files(void)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) < 0)
        return;
    l.rlim_cur = l.rlim_max;
    setrlimit(RLIMIT_NOFILE, &l);
}

void *bench_alloc(size_t count, size_t size)
{
    void *p = calloc(count, size);
    if (!p)
        bench_die("out of memory");
    return p;
}

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

bool bench_interrupted(void)
{
    return interrupted != 0;
}

void bench_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

void bench_check_interrupt(void)
{
    if (!interrupted)
        return;
    clear_progress();
    fprintf(stderr, "%s: interrupted\n", program_invocation_short_name);
    exit(130);
}

void bench_progress(const char *fmt, ...)
{
    if (!isatty(STDERR_FILENO))
        return;
    clear_progress();
    if (!*fmt)
        return;
    va_list ap;
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap); /* NOLINT(clang-analyzer-valist.Uninitialized): started above */
    va_end(ap);
    fflush(stderr);
    progress_shown = true;
}

static uint64_t read_clock(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

uint64_t bench_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

void bench_usage_now(struct bench_usage *ret_usage)
{
    ret_usage->wall_ns = read_clock(CLOCK_MONOTONIC);
    ret_usage->cpu_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID);
    ret_usage->thread_ns = read_clock(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t bench_written(void)
{
    FILE *f = fopen("/proc/self/io", "re");
    if (!f)
        return 0;
    static const char label[] = "wchar: ";
    char line[128];
    uint64_t bytes = 0;
    while (fgets(line, sizeof line, f))
        if (strncmp(line, label, sizeof label - 1) == 0)
            bytes = strtoull(line + sizeof label - 1, NULL, 10);
    fclose(f);
    return bytes;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct bench_spread bench_spread(const double *values, size_t n)
{
    if (n == 0)
        return (struct bench_spread){0};
    double *sorted = bench_alloc(n, sizeof *sorted);
    memcpy(sorted, values, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_doubles);
    double median = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
    struct bench_spread s = {sorted[0], median, sorted[n - 1]};
    free(sorted);
    return s;
}
