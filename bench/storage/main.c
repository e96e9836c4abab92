/* main.c - bench_storage: how the engine stands beside SQLite and beside the disk itself.
 * One run: rows of writers with interleaved contestants, writing without a pause, opening with many
 * objects, reading. docs/internals/bench.md says how the ratios are formed. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>

#include "results.h"

static const char usage[] =
    "usage: bench_storage [options]\n"
    "  --dir DIR      measure in a new directory below DIR (default: build, or where you are)\n"
    "  --quick        a rough answer in about 20 s\n"
    "  --check        exit 1 when a bar is missed or not measured\n"
    "  --json FILE    write the results to FILE too\n"
    "  --only PART    write, sustained or open (with reading)\n"
    "  --writers N    with write: only the rows with so many writers\n"
    "  --rounds N     of each row (default 5, at most 16)\n"
    "  --engine NAME  lmdb (default) or mem\n";

struct args {
    struct bench_settings settings;
    const char *only;
    uint32_t writers;
    size_t rounds;
};

static const char *word_arg(const char *text, const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        if (strcmp(text, words[i]) == 0)
            return text;
    bench_die("'%s' is not understood here; see --help", text);
}

static void take_arg(struct args *a, int letter)
{
    static const char *const parts[] = {"write", "sustained", "open", NULL};
    static const char *const engines[] = {"lmdb", "mem", NULL};
    switch (letter) {
    case 'd':
        a->settings.dir = optarg;
        break;
    case 'q':
        a->settings.quick = true;
        break;
    case 'c':
        a->settings.check = true;
        break;
    case 'j':
        a->settings.json = optarg;
        break;
    case 'o':
        a->only = word_arg(optarg, parts);
        break;
    case 'w':
        a->writers = (uint32_t)bench_number_arg(optarg, 4096);
        break;
    case 'r':
        a->rounds = bench_number_arg(optarg, BENCH_ROUNDS_MAX);
        break;
    case 'e':
        a->settings.engine = word_arg(optarg, engines);
        break;
    case 'h':
        fputs(usage, stdout);
        exit(0);
    default:
        fputs(usage, stderr);
        exit(2);
    }
}

static void parse_args(struct args *a, int argc, char **argv)
{
    static const struct option options[] = {
        {"dir", required_argument, NULL, 'd'},    {"quick", no_argument, NULL, 'q'},
        {"check", no_argument, NULL, 'c'},        {"json", required_argument, NULL, 'j'},
        {"only", required_argument, NULL, 'o'},   {"writers", required_argument, NULL, 'w'},
        {"rounds", required_argument, NULL, 'r'}, {"engine", required_argument, NULL, 'e'},
        {"help", no_argument, NULL, 'h'},         {0},
    };
    for (int c = getopt_long(argc, argv, "", options, NULL); c != -1;
         c = getopt_long(argc, argv, "", options, NULL))
        take_arg(a, c);
    if (optind < argc)
        bench_die("'%s' is not understood; see --help", argv[optind]);
}

static void choose_sizes(struct args *a)
{
    struct bench_settings *s = &a->settings;
    bool quick = s->quick;
    s->rounds = a->rounds ? a->rounds : quick ? 2 : 5;
    s->slice_ns = (quick ? 200 : 900) * VG_NS_PER_MS;
    s->floor_ns = (quick ? 100 : 450) * VG_NS_PER_MS;
    s->sustained_ns = (quick ? 2 : 10) * VG_NS_PER_S;
    s->read_ns = (quick ? 300 : 1000) * VG_NS_PER_MS;
    s->objects = quick ? 200000 : 1000000;
    s->opens = quick ? 2 : VIGIL_OPENS;
    if (!s->dir)
        s->dir = bench_default_dir();
}

static bool has_part(const struct args *a, const char *part)
{
    return !a->only || strcmp(a->only, part) == 0;
}

static void run_rows(const struct args *a, struct bench_results *results, const char *dir)
{
    static const struct {
        uint32_t writers;
        size_t value_len;
    } rows[] = {{1, 1024}, {8, 1024}, {64, 1024}, {512, 1024}, {64, 4096}};
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        if (a->writers && a->writers != rows[i].writers)
            continue;
        struct bench_row *row = &results->rows[results->n_rows++];
        row->writers = rows[i].writers;
        row->value_len = rows[i].value_len;
        bench_row_run(&results->settings, dir, row);
    }
}

static void run_open(struct bench_results *results, const char *dir)
{
    const struct bench_settings *s = &results->settings;
    char *store_dir = bench_path(dir, "many");
    vigil_open(s->engine, store_dir, s->objects, s->opens, &results->opens);
    bench_tree_warm(store_dir); /* the opens before dropped it from the cache */
    struct vigil_store store = {0};
    vigil_store_open(&store, s->engine, store_dir, false);
    vigil_read(&store, s->objects, s->read_ns, &results->reads);
    vigil_store_close(&store);
    vigil_open_killed(s->engine, store_dir, &results->opens);
    results->has_opens = true;
    bench_remove_tree(store_dir);
    free(store_dir);
}

static void save_json(const struct bench_results *results)
{
    FILE *out = fopen(results->settings.json, "we");
    if (out)
        bench_write_json(results, out);
    if (!out || fclose(out) != 0)
        bench_die("cannot write %s: %s", results->settings.json, strerror(errno));
}

static bool all_bars_met(const struct bench_results *results)
{
    struct bench_bar bars[BENCH_BARS];
    bench_bars(results, bars);
    for (size_t i = 0; i < BENCH_BARS; i++)
        if (!bench_bar_is_met(&bars[i]))
            return false;
    return true;
}

int main(int argc, char **argv)
{
    struct args args = {.settings = {.engine = "lmdb"}};
    parse_args(&args, argc, argv);
    choose_sizes(&args);
    bench_raise_files(); /* SQLite takes three for a writer */
    bench_catch_signals();
    struct bench_results *results = bench_alloc(1, sizeof *results);
    results->settings = args.settings;
    const char *dir = bench_scratch(args.settings.dir);
    if (has_part(&args, "write"))
        run_rows(&args, results, dir);
    if (has_part(&args, "sustained"))
        bench_sustained_run(results, dir);
    if (has_part(&args, "open") && strcmp(args.settings.engine, "mem") != 0)
        run_open(results, dir);
    bench_check_interrupt();
    bench_progress("%s", "");
    bench_print(results, stdout);
    if (args.settings.json)
        save_json(results);
    bool ok = !args.settings.check || all_bars_met(results);
    free(results);
    return ok ? 0 : 1;
}
