/* rounds.c - lets the contestants of a row take turns. */
#include <stdlib.h>
#include <sys/stat.h>

#include "results.h"

struct contest {
    const struct bench_settings *settings;
    struct bench_row *row;
    char *dir;
    struct vigil_row *vigil;
    struct sqlite_row *sqlite;
    struct floor_row *append, *overwrite;
};

static void contest_start(struct contest *c, const char *dir)
{
    struct bench_row *row = c->row;
    c->dir = bench_path(dir, "row");
    if (mkdir(c->dir, 0700) < 0)
        bench_die("cannot make %s", c->dir);
    c->vigil = vigil_row_new(c->settings->engine, c->dir, row->writers, row->value_len);
    if (sqlite_is_there())
        c->sqlite = sqlite_row_new(c->dir, row->writers, row->value_len);
    c->append = floor_row_new(c->dir, FLOOR_APPEND);
    c->overwrite = floor_row_new(c->dir, FLOOR_OVERWRITE);
}

static void contest_end(struct contest *c)
{
    vigil_row_free(c->vigil);
    sqlite_row_free(c->sqlite);
    floor_row_free(c->append);
    floor_row_free(c->overwrite);
    bench_remove_tree(c->dir);
    bench_settle(c->settings->dir);
    free(c->dir);
}

static void add_slice(struct bench_side *side, size_t round, const struct bench_slice *s)
{
    struct bench_slice *sum = &side->sum;
    side->measured = true;
    side->rates[round] = bench_rate(s);
    sum->writes += s->writes;
    sum->secs += s->secs;
    sum->user_bytes += s->user_bytes;
    sum->cpu_s += s->cpu_s;
    sum->engine_s += s->engine_s;
    sum->close_s += s->close_s;
    sum->written += s->written;
    sum->commits += s->commits;
    sum->syncs += s->syncs;
    sum->wal_bytes += s->wal_bytes;
    sum->checkpoints += s->checkpoints;
    sum->refused += s->refused;
    sum->total_writes += s->total_writes;
    vg_hist_merge(&sum->latency, &s->latency);
}

static void say(const struct contest *c, const char *who, size_t round)
{
    bench_check_interrupt();
    bench_progress("%u writers, %zu byte values: round %zu of %zu, %s", c->row->writers,
                   c->row->value_len, round + 1, c->row->rounds, who);
}

/* A warm-up, and for SQLite the choice between its two ways. */
static void contest_warm_up(struct contest *c)
{
    struct bench_plan plan = {.writers = c->row->writers, .ns = c->settings->slice_ns / 3};
    struct bench_slice *s = bench_alloc(3, sizeof *s);
    bench_progress("%u writers: warming up", c->row->writers);
    vigil_row_fill(c->vigil);
    vigil_row_slice(c->vigil, &plan, &s[0]);
    if (c->sqlite) {
        sqlite_row_fill(c->sqlite);
        sqlite_row_slice(c->sqlite, &plan, SQLITE_WAY_QUEUE, &s[1]);
        sqlite_row_slice(c->sqlite, &plan, SQLITE_WAY_OWN, &s[2]);
        c->row->sqlite_way =
            bench_rate(&s[2]) > bench_rate(&s[1]) ? SQLITE_WAY_OWN : SQLITE_WAY_QUEUE;
    }
    free(s);
}

/* The floor writes what the engine has just written: as many bytes in as many groups. */
static void contest_round(struct contest *c, size_t round)
{
    struct bench_side *sides = c->row->sides;
    struct bench_plan plan = {.writers = c->row->writers, .ns = c->settings->slice_ns};
    struct bench_slice *s = bench_alloc(SIDE_COUNT, sizeof *s);
    say(c, "vigil", round);
    vigil_row_slice(c->vigil, &plan, &s[SIDE_VIGIL]);
    add_slice(&sides[SIDE_VIGIL], round, &s[SIDE_VIGIL]);
    if (c->sqlite) {
        say(c, "SQLite", round);
        sqlite_row_slice(c->sqlite, &plan, c->row->sqlite_way, &s[SIDE_SQLITE]);
        add_slice(&sides[SIDE_SQLITE], round, &s[SIDE_SQLITE]);
    }
    plan.ns = c->settings->floor_ns;
    plan.group = bench_group(&s[SIDE_VIGIL]);
    plan.group_bytes = plan.group * (double)workload_bytes(vigil_row_load(c->vigil));
    say(c, "floor", round);
    floor_row_slice(c->append, &plan, &s[SIDE_APPEND]);
    add_slice(&sides[SIDE_APPEND], round, &s[SIDE_APPEND]);
    floor_row_slice(c->overwrite, &plan, &s[SIDE_OVERWRITE]);
    add_slice(&sides[SIDE_OVERWRITE], round, &s[SIDE_OVERWRITE]);
    free(s);
}

void bench_row_run(const struct bench_settings *settings, const char *dir, struct bench_row *row)
{
    struct contest c = {.settings = settings, .row = row};
    row->rounds = settings->rounds;
    contest_start(&c, dir);
    contest_warm_up(&c);
    for (size_t i = 0; i < row->rounds; i++)
        contest_round(&c, i);
    contest_end(&c);
}

void bench_sustained_run(struct bench_results *results, const char *dir)
{
    const struct bench_settings *settings = &results->settings;
    struct bench_plan plan = {.writers = 64, .ns = settings->sustained_ns};
    char *row_dir = bench_path(dir, "sustained");
    if (mkdir(row_dir, 0700) < 0)
        bench_die("cannot make %s", row_dir);
    struct vigil_row *row = vigil_row_new(settings->engine, row_dir, plan.writers, 1024);
    bench_progress("64 writers without a pause");
    vigil_row_fill(row);
    vigil_row_slice(row, &plan, &results->sustained);
    results->sustained_keys = workload_keys(vigil_row_load(row));
    char *store_dir = bench_path(row_dir, "vigil");
    results->sustained_files = bench_tree_bytes(store_dir);
    vigil_row_free(row);
    bench_remove_tree(row_dir);
    bench_settle(dir);
    free(store_dir);
    free(row_dir);
}

double bench_group(const struct bench_slice *s)
{
    return s->commits ? (double)s->total_writes / (double)s->commits : 1;
}

struct bench_spread bench_ratio(const struct bench_row *row, enum bench_side_name other)
{
    double ratios[BENCH_ROUNDS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < row->rounds; i++)
        if (row->sides[other].rates[i] > 0)
            ratios[n++] = row->sides[SIDE_VIGIL].rates[i] / row->sides[other].rates[i];
    return bench_spread(ratios, n);
}

struct bench_spread bench_side_rate(const struct bench_row *row, enum bench_side_name side)
{
    return bench_spread(row->sides[side].rates, row->rounds);
}
