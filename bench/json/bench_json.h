/* bench_json.h - what the parts of bench_json share: the documents and the contenders.
 * Every contender gets the same documents in memory and does the same three jobs; the job is one
 * pass over all documents of a set and returns a number derived from the results, so that nothing
 * can be optimised away, or SIZE_MAX when the library failed. */
#ifndef VG_BENCH_JSON_H
#define VG_BENCH_JSON_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One document; at least PADDING readable bytes follow it, which simdjson wants. */
struct doc {
    const char *p;
    size_t n;
};
#define PADDING 64

struct docs {
    const char *name;
    struct doc *v;
    size_t n;
    size_t bytes; /* of all documents */
};

enum job { JOB_PARSE, JOB_WRITE, JOB_SCAN, JOBS };

struct contender {
    const char *name;
    void *(*open)(const struct docs *docs); /* parses all once, for JOB_WRITE; NULL on failure */
    size_t (*run[JOBS])(void *state, const struct docs *docs); /* NULL: not offered */
    void (*close)(void *state);
};

extern const struct contender with_vigil;
extern const struct contender with_jansson;
extern const struct contender with_simdjson;

/* Passes of a job that take about `seconds`. */
size_t calibrate(const struct contender *c, void *state, enum job job, const struct docs *docs,
                 double seconds);
/* MB/s of `passes` passes; 0 when the job failed. */
double rate(const struct contender *c, void *state, enum job job, const struct docs *docs,
            size_t passes);

/* All sets, the last one being all documents together. Returns how many; 0 when out of memory. */
#define SETS_MAX 8
size_t generate(struct docs sets[SETS_MAX]);
void generate_free(struct docs *sets, size_t n);

#ifdef __cplusplus
}
#endif

#endif
