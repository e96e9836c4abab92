/* settings.h - the command line of benches that fill a struct settings: the options that all of
 * them have, and texts of their own. What is wrong ends the process. Thread: main. */
#ifndef BENCH_CACHER_SETTINGS_H
#define BENCH_CACHER_SETTINGS_H

#include "report.h"

/* An option of one bench alone. */
struct settings_text {
    const char *name;
    const char **to;
};

/* --dir, --quick, --check, --json, --only (one of the parts), --rounds, --help, and up to 4 more;
 * what is not said gets its default. */
void settings_read(struct settings *s, int argc, char **argv, const char *usage,
                   const struct part_text *parts, size_t n_parts, const struct settings_text *more,
                   size_t n_more);

#endif
