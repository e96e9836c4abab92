/* measure.c - see measure.h: clocks, latencies and the way out. Files are in scratch.c. */
#include "measure.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* Below 32 a bucket is a value; above, the highest set bit chooses a run of 32 buckets and the five
 * bits after it the place in the run. */
static size_t bucket_of(uint64_t ns)
{
    if (ns < 32)
        return (size_t)ns;
    unsigned top = 63u - (unsigned)__builtin_clzll(ns);
    return (size_t)(top - 4) * 32 + (size_t)((ns >> (top - 5)) & 31);
}

static double bucket_middle(size_t bucket)
{
    if (bucket < 32)
        return (double)bucket;
    unsigned shift = (unsigned)(bucket / 32 - 1);
    return ((double)(32 + bucket % 32) + 0.5) * (double)(UINT64_C(1) << shift);
}

void bench_hist_add(struct bench_hist *h, uint64_t ns)
{
    h->buckets[bucket_of(ns)]++;
    h->count++;
    h->max = VG_MAX(h->max, ns);
}

void bench_hist_merge(struct bench_hist *into, const struct bench_hist *from)
{
    for (size_t i = 0; i < BENCH_HIST_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
    into->count += from->count;
    into->max = VG_MAX(into->max, from->max);
}

double bench_hist_us(const struct bench_hist *h, double quantile)
{
    uint64_t rank = (uint64_t)(quantile * (double)h->count), seen = 0;
    for (size_t i = 0; i < BENCH_HIST_BUCKETS; i++) {
        seen += h->buckets[i];
        if (seen > rank)
            return VG_MIN(bucket_middle(i), (double)h->max) / 1e3;
    }
    return (double)h->max / 1e3;
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
