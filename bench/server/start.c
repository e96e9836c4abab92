/* start.c - from exec to the line that says ready. */
#include <stdlib.h>

#include "rows.h"

static double again_ms(const struct bench *b, struct server *s)
{
    server_stop(s);
    server_start_again(s, b->binary);
    return s->ready_ms;
}

static void full_store(const struct bench *b)
{
    double warm[ROUNDS_MAX], killed[ROUNDS_MAX];
    uint32_t n = b->quick ? 10000 : 100000;
    struct server s;
    server_start(&s, b->binary, b->dir);
    bench_progress("start: filling %u pods", n);
    pods_fill(&s, n, 100);
    for (size_t i = 0; i < b->rounds; i++)
        warm[i] = again_ms(b, &s);
    for (size_t i = 0; i < b->rounds; i++) {
        server_kill(&s);
        server_start_again(&s, b->binary);
        killed[i] = s.ready_ms;
    }
    report_row(b->report, "ms", warm, b->rounds, "exec to ready, %u pods of 4 KB", n);
    report_row(b->report, "ms", killed, b->rounds, "exec to ready, %u pods, after SIGKILL", n);
    report_bar(b->report, report_median(warm, b->rounds), 400, "ms to ready with 100k objects");
    server_stop(&s);
    bench_remove_tree(s.dir);
}

void rows_start(const struct bench *b)
{
    double first[ROUNDS_MAX], second[ROUNDS_MAX];
    for (size_t i = 0; i < b->rounds; i++) {
        struct server s;
        server_start(&s, b->binary, b->dir);
        first[i] = s.ready_ms;
        second[i] = again_ms(b, &s);
        server_stop(&s);
        bench_remove_tree(s.dir);
    }
    report_row(b->report, "ms", first, b->rounds,
               "exec to ready, first start (makes certificates)");
    report_row(b->report, "ms", second, b->rounds, "exec to ready, empty store");
    report_bar(b->report, report_median(second, b->rounds), 50, "ms to ready with an empty store");
    full_store(b);
}
