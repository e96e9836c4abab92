/* settings.c - see settings.h. */
#include "settings.h"

#include <assert.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define MORE_MAX 4u
#define FIRST_MORE 256 /* above every letter */

static const char *part_arg(const char *text, const struct part_text *parts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(text, parts[i].name) == 0)
            return parts[i].name;
    bench_die("there is no part '%s'; see --help", text);
}

/* False: it is none of those that all have. */
static bool take_arg(struct settings *s, int letter)
{
    switch (letter) {
    case 'd':
        s->dir = optarg;
        return true;
    case 'q':
        s->quick = true;
        return true;
    case 'c':
        s->check = true;
        return true;
    case 'j':
        s->json = optarg;
        return true;
    case 'o':
        s->only = optarg;
        return true;
    case 'r':
        s->rounds = bench_number_arg(optarg, ROUNDS_MAX);
        return true;
    default:
        return false;
    }
}

static void fill_defaults(struct settings *s)
{
    if (!s->dir)
        s->dir = bench_default_dir();
    if (!s->rounds)
        s->rounds = s->quick ? 3 : 5;
}

void settings_read(struct settings *s, int argc, char **argv, const char *usage,
                   const struct part_text *parts, size_t n_parts, const struct settings_text *more,
                   size_t n_more)
{
    struct option options[7 + MORE_MAX + 1] = {
        {"dir", required_argument, NULL, 'd'},  {"quick", no_argument, NULL, 'q'},
        {"check", no_argument, NULL, 'c'},      {"json", required_argument, NULL, 'j'},
        {"only", required_argument, NULL, 'o'}, {"rounds", required_argument, NULL, 'r'},
        {"help", no_argument, NULL, 'h'},
    };
    int c;
    assert(n_more <= MORE_MAX);
    for (size_t i = 0; i < n_more; i++)
        options[7 + i] =
            (struct option){more[i].name, required_argument, NULL, FIRST_MORE + (int)i};
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c >= FIRST_MORE) {
            *more[c - FIRST_MORE].to = optarg;
        } else if (!take_arg(s, c)) {
            fputs(usage, c == 'h' ? stdout : stderr);
            exit(c == 'h' ? 0 : 2);
        }
    }
    if (optind < argc)
        bench_die("'%s' is not understood; see --help", argv[optind]);
    if (s->only)
        s->only = part_arg(s->only, parts, n_parts);
    fill_defaults(s);
}
