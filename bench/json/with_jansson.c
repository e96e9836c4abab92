/* with_jansson.c - jansson, with its defaults: it checks UTF-8 and builds a hash table per object,
 * so that it finds duplicate keys anyway. Freeing a tree is part of parsing: it has no arena. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>

#include "bench_json.h"

struct state {
    json_t **trees;
    size_t n;
    char *out;
    size_t room;
};

static void close_jansson(void *p)
{
    struct state *s = p;
    for (size_t i = 0; s->trees && i < s->n; i++)
        json_decref(s->trees[i]);
    free(s->trees);
    free(s->out);
    free(s);
}

static void *open_jansson(const struct docs *docs)
{
    struct state *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->room = docs->bytes;
    s->out = malloc(s->room ? s->room : 1);
    s->trees = calloc(docs->n, sizeof(json_t *));
    s->n = docs->n;
    for (size_t i = 0; s->trees && i < docs->n; i++)
        s->trees[i] = json_loadb(docs->v[i].p, docs->v[i].n, JSON_REJECT_DUPLICATES, NULL);
    return s;
}

static size_t run_parse(void *p, const struct docs *docs)
{
    (void)p;
    size_t sum = 0;
    for (size_t i = 0; i < docs->n; i++) {
        json_t *root = json_loadb(docs->v[i].p, docs->v[i].n, JSON_REJECT_DUPLICATES, NULL);
        if (!root)
            return SIZE_MAX;
        sum += json_object_size(root);
        json_decref(root);
    }
    return sum;
}

static size_t run_write(void *p, const struct docs *docs)
{
    struct state *s = p;
    size_t sum = 0;
    for (size_t i = 0; i < docs->n; i++) {
        size_t n = json_dumpb(s->trees[i], s->out, s->room, JSON_COMPACT);
        if (n == 0)
            return SIZE_MAX;
        sum += n;
    }
    return sum;
}

const struct contender with_jansson = {.name = "jansson",
                                       .open = open_jansson,
                                       .run = {[JOB_PARSE] = run_parse, [JOB_WRITE] = run_write},
                                       .close = close_jansson};
