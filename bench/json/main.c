/* main.c - bench_json: parse, write and skip-scan, side by side in one run.
 *
 *     bench_json [--rounds N] [--seconds S] [--set NAME] [--check] [--dump DIR]
 *
 * Rounds are interleaved (vigil, jansson, simdjson, vigil, ...), and ratios are taken within a
 * round: the machine may be shared and slow down as a whole, which a ratio of neighbours does not
 * see. The tables give the median and the range of the rounds. Exit code: 0; with --check 1 if a
 * bar is missed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_json.h"
#include "timing.h"

#define ROUNDS_MAX 101

struct run {
    const struct contender *c;
    void *state;
    size_t passes[JOBS];
    double rate[JOBS][ROUNDS_MAX];
};

struct options {
    size_t rounds;
    double seconds; /* per contender, job and round */
    const char *set;
    bool check;
};

static const struct contender *const contenders[] = {
    &with_vigil,
#if defined(HAVE_JANSSON)
    &with_jansson,
#endif
#if defined(HAVE_SIMDJSON)
    &with_simdjson,
#endif
};
#define CONTENDERS (sizeof contenders / sizeof contenders[0])

static const char *const job_names[JOBS] = {"parse", "write", "skip-scan"};

/* What design asks of us: job a of ours must be at least `least` times job b of `other`. */
static const struct bar {
    const char *text;
    enum job ours, theirs;
    const char *other;
    double least;
} bars[] = {
    {"parse >= 4 x jansson", JOB_PARSE, JOB_PARSE, "jansson", 4.0},
    {"parse >= 0.35 x simdjson DOM", JOB_PARSE, JOB_PARSE, "simdjson", 0.35},
    {"skip-scan >= 3 x own parse", JOB_SCAN, JOB_PARSE, "vigil", 3.0},
};

static bool open_all(struct run *runs, const struct docs *docs, const struct options *o)
{
    for (size_t i = 0; i < CONTENDERS; i++) {
        runs[i].c = contenders[i];
        runs[i].state = contenders[i]->open(docs);
        if (!runs[i].state)
            return false;
        for (int job = 0; job < JOBS; job++)
            if (contenders[i]->run[job])
                runs[i].passes[job] =
                    calibrate(contenders[i], runs[i].state, (enum job)job, docs, o->seconds);
    }
    return true;
}

static void close_all(struct run *runs)
{
    for (size_t i = 0; i < CONTENDERS; i++)
        if (runs[i].state)
            runs[i].c->close(runs[i].state);
}

static void measure(struct run *runs, const struct docs *docs, const struct options *o)
{
    for (size_t round = 0; round < o->rounds; round++)
        for (int job = 0; job < JOBS; job++)
            for (size_t i = 0; i < CONTENDERS; i++)
                if (runs[i].c->run[job])
                    runs[i].rate[job][round] =
                        rate(runs[i].c, runs[i].state, (enum job)job, docs, runs[i].passes[job]);
}

static const struct run *find_run(const struct run *runs, const char *name)
{
    for (size_t i = 0; i < CONTENDERS; i++)
        if (strcmp(runs[i].c->name, name) == 0)
            return &runs[i];
    return NULL;
}

/* Median, least and greatest of a[i] / b[i] (b NULL: of a[i]). */
static void spread(const double *a, const double *b, size_t n, double ret[3])
{
    double v[ROUNDS_MAX];
    for (size_t i = 0; i < n; i++)
        v[i] = b ? (b[i] > 0 ? a[i] / b[i] : 0) : a[i];
    ret[0] = bench_median(v, n);
    ret[1] = v[0];
    ret[2] = v[n - 1];
}

static void print_rates(const struct run *runs, const struct docs *docs, const struct options *o)
{
    printf("%-12s %5zu docs %8.1f KB\n", docs->name, docs->n, (double)docs->bytes / 1e3);
    for (int job = 0; job < JOBS; job++) {
        for (size_t i = 0; i < CONTENDERS; i++) {
            double own[3], ratio[3];
            if (!runs[i].c->run[job])
                continue;
            spread(runs[i].rate[job], NULL, o->rounds, own);
            spread(runs[0].rate[job], runs[i].rate[job], o->rounds, ratio);
            printf("  %-10s %-9s %8.0f MB/s  [%5.0f .. %5.0f]", job_names[job], runs[i].c->name,
                   own[0], own[1], own[2]);
            if (i > 0)
                printf("   vigil is %6.2f x  [%5.2f .. %5.2f]", ratio[0], ratio[1], ratio[2]);
            printf("\n");
        }
    }
}

/* Returns how many bars were missed. */
static int print_bars(const struct run *runs, const struct options *o)
{
    int missed = 0;
    for (size_t i = 0; i < sizeof bars / sizeof bars[0]; i++) {
        const struct run *other = find_run(runs, bars[i].other);
        double r[3];
        if (!other) {
            printf("  %-30s skipped: built without %s\n", bars[i].text, bars[i].other);
            continue;
        }
        spread(runs[0].rate[bars[i].ours], other->rate[bars[i].theirs], o->rounds, r);
        bool met = r[0] >= bars[i].least;
        missed += !met;
        printf("  %-30s %6.2f x  [%5.2f .. %5.2f]  %s\n", bars[i].text, r[0], r[1], r[2],
               met ? "met" : "MISSED");
    }
    return missed;
}

/* Returns bars missed, or -1. */
static int bench_set(const struct docs *docs, const struct options *o, bool judged)
{
    static struct run runs[CONTENDERS];
    memset(runs, 0, sizeof runs);
    int missed = -1;
    if (open_all(runs, docs, o)) {
        measure(runs, docs, o);
        print_rates(runs, docs, o);
        missed = 0;
        if (judged) {
            printf("bars, on the set \"%s\" (median of %zu rounds):\n", docs->name, o->rounds);
            missed = print_bars(runs, o);
        }
    } else {
        fprintf(stderr, "bench_json: a library failed on the set %s\n", docs->name);
    }
    close_all(runs);
    return missed;
}

static int dump(const struct docs *docs, const char *dir)
{
    for (size_t i = 0; i < docs->n; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%zu.json", dir, i);
        FILE *f = fopen(path, "wb");
        if (!f || fwrite(docs->v[i].p, 1, docs->v[i].n, f) != docs->v[i].n) {
            perror(path);
            if (f)
                fclose(f);
            return 1;
        }
        fclose(f);
    }
    return 0;
}

static int bench_all(const struct docs *sets, size_t n, const struct options *o)
{
#if !defined(HAVE_JANSSON)
    printf("jansson was not found when this was built: its column is skipped\n");
#endif
#if !defined(HAVE_SIMDJSON)
    printf("simdjson was not found when this was built: its column is skipped\n");
#endif
    printf("MB/s of CPU time, median [least .. greatest] of %zu interleaved rounds.\n"
           "Our parse: full tree in a reused arena, UTF-8 checked, duplicate keys refused.\n",
           o->rounds);
    int missed = 0;
    for (size_t i = 0; i < n; i++) {
        if (o->set && strcmp(o->set, sets[i].name) != 0)
            continue;
        int r = bench_set(&sets[i], o, i + 1 == n || o->set);
        if (r < 0)
            return 2;
        missed += r;
    }
    return o->check && missed ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct options o = {.rounds = 9, .seconds = 0.05};
    const char *dump_dir = NULL;
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--check") == 0)
            o.check = true;
        else if (strcmp(argv[i], "--rounds") == 0 && more)
            o.rounds = (size_t)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--seconds") == 0 && more)
            o.seconds = strtod(argv[++i], NULL);
        else if (strcmp(argv[i], "--set") == 0 && more)
            o.set = argv[++i];
        else if (strcmp(argv[i], "--dump") == 0 && more)
            dump_dir = argv[++i];
        else
            o.rounds = 0;
    }
    if (o.rounds < 1 || o.rounds > ROUNDS_MAX || !(o.seconds > 0)) {
        fprintf(stderr,
                "usage: bench_json [--rounds 1..%d] [--seconds S] [--set NAME] [--check] "
                "[--dump DIR]\n",
                ROUNDS_MAX);
        return 2;
    }
    struct docs sets[SETS_MAX];
    size_t n = generate(sets);
    if (n == 0) {
        fprintf(stderr, "bench_json: out of memory\n");
        return 2;
    }
    int r = dump_dir ? dump(&sets[n - 1], dump_dir) : bench_all(sets, n, &o);
    generate_free(sets, n);
    return r;
}
