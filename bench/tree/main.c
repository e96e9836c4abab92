/* main.c - bench_tree: what a change, a read, a walk and a count cost in a tree of many objects.
 *
 *     bench_tree [--objects N] [--changes N] [--rounds N]
 *
 * The tree pays for snapshots: its changes include publishing, letting the previous root go and
 * reclaiming it. tsearch changes in place. Rounds are interleaved and ratios are taken within a
 * round, since the machine may be shared. Exit code: 0, or 1 when something went wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_tree.h"
#include "timing.h"

#define ROUNDS_MAX 51

struct row {
    const char *name;
    enum job job;
    size_t batch;
    double ns[ROUNDS_MAX], instructions[ROUNDS_MAX];
    double other[ROUNDS_MAX], ratio[ROUNDS_MAX]; /* tsearch, and tsearch / tree */
};

static struct row rows[] = {
    {.name = "replace", .job = JOB_REPLACE, .batch = 1},
    {.name = "replace", .job = JOB_REPLACE, .batch = 16},
    {.name = "replace", .job = JOB_REPLACE, .batch = 256},
    {.name = "insert", .job = JOB_INSERT, .batch = 1},
    {.name = "remove", .job = JOB_REMOVE, .batch = 1},
    {.name = "insert", .job = JOB_INSERT, .batch = 16},
    {.name = "remove", .job = JOB_REMOVE, .batch = 16},
    {.name = "insert", .job = JOB_INSERT, .batch = 256},
    {.name = "remove", .job = JOB_REMOVE, .batch = 256},
    {.name = "get", .job = JOB_GET, .batch = 1},
    {.name = "count_range", .job = JOB_COUNT, .batch = 1},
    {.name = "walk", .job = JOB_WALK, .batch = 1},
};
#define ROWS (sizeof rows / sizeof rows[0])

struct options {
    size_t objects, changes, rounds;
};

static void prepare(struct work *w, enum job job)
{
    if (job == JOB_INSERT)
        work_insert(w);
    else if (job == JOB_REMOVE)
        work_shuffle(w); /* what the row before has inserted */
    else if (job != JOB_WALK)
        work_replace(w); /* keys that are there */
}

/* Who goes first finds the records cold: they take turns. */
static void run_row(struct row *row, struct work *w, void *const states[2], size_t round)
{
    static const struct contender *const contenders[2] = {&with_tree, &with_tsearch};
    struct sample samples[2] = {{0}};
    prepare(w, row->job);
    for (size_t i = 0; i < 2; i++) {
        size_t who = (i + round) % 2;
        if (contenders[who]->run[row->job])
            samples[who] = measure(contenders[who], states[who], row->job, w, row->batch);
    }
    row->ns[round] = samples[0].ns;
    row->instructions[round] = samples[0].instructions;
    row->other[round] = samples[1].ns;
    row->ratio[round] = samples[1].ns / samples[0].ns;
}

static void print_row(struct row *row, size_t rounds)
{
    double ns = bench_median(row->ns, rounds),
           instructions = bench_median(row->instructions, rounds);
    char batch[16] = "", counted[16] = "-";
    if (row->job <= JOB_REMOVE)
        snprintf(batch, sizeof batch, "%zu", row->batch);
    if (instructions > 0)
        snprintf(counted, sizeof counted, "%.0f", instructions);
    printf("  %-12s %5s %9.1f %13s", row->name, batch, ns, counted);
    if (with_tsearch.run[row->job])
        printf(" %12.1f %8.2f x", bench_median(row->other, rounds),
               bench_median(row->ratio, rounds));
    printf("\n");
}

static void print_bytes(void *tree, const char *when)
{
    struct tree_bytes b = with_tree_bytes(tree);
    printf("bytes of tree per object %-15s %6.1f   (nodes %2.0f%% full)\n", when, b.per_record,
           b.fill * 100);
}

static void bench(const struct options *o)
{
    struct work w;
    work_init(&w, o->objects, o->changes);
    void *states[2] = {with_tree.open(&w), with_tsearch.open(&w)};
    printf("%zu objects, %zu changes a row, median of %zu rounds\n", w.n_load, o->changes,
           o->rounds);
    print_bytes(states[0], "after the load:");
    for (size_t round = 0; round < o->rounds; round++)
        for (size_t i = 0; i < ROWS; i++)
            run_row(&rows[i], &w, states, round);
    print_bytes(states[0], "after changes:");
    printf("  %-12s %5s %9s %13s %12s %10s\n", "", "batch", "ns", "instructions", "tsearch ns",
           "tree is");
    for (size_t i = 0; i < ROWS; i++)
        print_row(&rows[i], o->rounds);
    with_tree.close(states[0]);
    with_tsearch.close(states[1]);
    work_done(&w);
}

int main(int argc, char **argv)
{
    struct options o = {.objects = 500000, .changes = 50000, .rounds = 8};
    for (int i = 1; i < argc; i++) {
        size_t *to = strcmp(argv[i], "--objects") == 0   ? &o.objects
                     : strcmp(argv[i], "--changes") == 0 ? &o.changes
                     : strcmp(argv[i], "--rounds") == 0  ? &o.rounds
                                                         : NULL;
        if (to && i + 1 < argc)
            *to = (size_t)strtoul(argv[++i], NULL, 10);
        else
            die("usage: bench_tree [--objects N] [--changes N] [--rounds 1..51]");
    }
    if (o.rounds < 1 || o.rounds > ROUNDS_MAX || o.changes < 2 || o.objects < o.changes)
        die("needs at least two changes, as many objects, and 1 to 51 rounds");
    bench(&o);
    return 0;
}
