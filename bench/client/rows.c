/* rows.c - see rows.h. */
#include "rows.h"

#include <pthread.h>
#include <string.h>

#include "runner.h"

#define UPDATES 4000u
#define WRITERS 16u

/* What client-go 1.36 was measured at on a machine of two cores, and the bars set beside it: where
 * client-go runs too, the same ratios do. */
#define BAR_SYNC_MS 150.0
#define BAR_SYNC_RATIO (0.15 / 2.9)
#define BAR_UPDATE_US 15.0
#define BAR_UPDATE_RATIO (15.0 / 260.0)

enum { OURS, GO, SIDES };
static const char *const names[SIDES] = {"libvigil", "client-go"};

/* What one run of one side gave. */
struct seen {
    double wall_ms, cpu_ms, anonymous, rested, peak, update_us, busy_us;
};

static double mb(uint64_t bytes)
{
    return (double)bytes / 1e6;
}

static void sync_once(const struct rows *b, struct runner *r, struct seen *s)
{
    uint64_t cpu = runner_cpu_ns(r), at = bench_now_ns();
    unsigned long n = runner_ask(r, "start", "synced");
    s->wall_ms = (double)(bench_now_ns() - at) / 1e6;
    s->cpu_ms = (double)(runner_cpu_ns(r) - cpu) / 1e6;
    s->anonymous = mb(runner_anonymous(r));
    s->peak = mb(runner_peak(r));
    if (n != b->pods)
        bench_die("a follower has %lu pods of %u", n, b->pods);
}

/* Changes made by one of several writers, each after the answer to its last. */
struct writer {
    const struct rows *b;
    pthread_t thread;
    uint32_t first, step, version;
};

static void *write_some(void *arg)
{
    const struct writer *w = arg;
    struct client c;
    struct vg_buf scratch;
    vg_buf_init(&scratch, 0);
    client_open(&c, &w->b->server, H1_PLAIN);
    for (uint32_t i = w->first; i < UPDATES; i += w->step) {
        uint32_t id = i * 7919u % w->b->pods;
        pod_update(&c, &scratch, (struct pod){id, id % NODES, w->version});
    }
    client_done(&c);
    vg_buf_done(&scratch);
    return NULL;
}

/* Processor time that the follower needs for an update. */
static double update_us(const struct rows *b, struct runner *r, uint32_t writers)
{
    static uint32_t version;
    struct writer w[WRITERS];
    char line[32];
    snprintf(line, sizeof line, "until %u", UPDATES);
    uint64_t cpu = runner_cpu_ns(r);
    runner_ask(r, line, "waiting");
    version++;
    for (uint32_t i = 0; i < writers; i++) {
        w[i] = (struct writer){.b = b, .first = i, .step = writers, .version = version};
        if (pthread_create(&w[i].thread, NULL, write_some, &w[i]) != 0)
            bench_die("no thread");
    }
    for (uint32_t i = 0; i < writers; i++)
        pthread_join(w[i].thread, NULL);
    runner_await(r, "seen");
    return (double)(runner_cpu_ns(r) - cpu) / 1e3 / UPDATES;
}

static void run_side(const struct rows *b, int side, unsigned informers, struct seen *s)
{
    char kubeconfig[600];
    struct runner r;
    snprintf(kubeconfig, sizeof kubeconfig, "%s/data/admin.kubeconfig", b->server.dir);
    runner_start(&r, side == OURS ? b->ours : b->go, kubeconfig, informers);
    sync_once(b, &r, s);
    s->update_us = update_us(b, &r, 1);
    s->busy_us = update_us(b, &r, WRITERS);
    runner_ask(&r, "rest", "rested");
    s->rested = mb(runner_anonymous(&r));
    runner_stop(&r);
}

/* One row for each side; the medians to ret (NULL allowed). */
static void report_field(const struct rows *b, struct seen seen[][ROUNDS_MAX], size_t field,
                         const char *unit, const char *what, double *ret)
{
    for (int side = 0; side < (b->go ? SIDES : 1); side++) {
        double v[ROUNDS_MAX];
        for (size_t i = 0; i < b->rounds; i++)
            memcpy(&v[i], (const char *)&seen[side][i] + field, sizeof v[i]);
        report_row(b->report, unit, v, b->rounds, "%s: %s", names[side], what);
        if (ret)
            ret[side] = report_median(v, b->rounds);
    }
}

/* The greater one: a slow machine is not held to another's milliseconds. */
static double limit_of(double fixed, double rival, double ratio)
{
    return rival * ratio > fixed ? rival * ratio : fixed;
}

void rows_follow(const struct rows *b, unsigned informers, bool has_bars)
{
    static struct seen seen[SIDES][ROUNDS_MAX];
    int sides = b->go ? SIDES : 1;
    for (size_t i = 0; i < b->rounds; i++) {
        for (int side = 0; side < sides; side++) {
            bench_progress("%u pods, %u informers, round %zu: %s", b->pods, informers, i + 1,
                           names[side]);
            run_side(b, side, informers, &seen[side][i]);
            bench_check_interrupt();
        }
    }
    double cpu[SIDES] = {0}, memory[SIDES], update[SIDES] = {0}, busy[SIDES] = {0}, rest[SIDES];
    report_field(b, seen, offsetof(struct seen, wall_ms), "ms", "time until all is there", NULL);
    report_field(b, seen, offsetof(struct seen, cpu_ms), "ms", "processor time until then", cpu);
    report_field(b, seen, offsetof(struct seen, anonymous), "MB", "memory then", memory);
    report_field(b, seen, offsetof(struct seen, peak), "MB", "most until then, code included",
                 NULL);
    report_field(b, seen, offsetof(struct seen, update_us), "us",
                 "processor time of an update, one writer", update);
    report_field(b, seen, offsetof(struct seen, busy_us), "us",
                 "processor time of an update, 16 writers", busy);
    report_field(b, seen, offsetof(struct seen, rested), "MB", "memory after updates, trimmed",
                 rest);
    report_one(b->report, "bytes", rest[OURS] * 1e6 / b->pods - (double)b->bytes / b->pods,
               "libvigil: memory of a pod beside its %.0f bytes of JSON",
               (double)b->bytes / b->pods);
    if (b->go)
        report_one(b->report, "bytes", rest[GO] * 1e6 / b->pods, "client-go: memory of a pod");
    if (!has_bars)
        return;
    double scale = b->pods / 1e4;
    report_bar(b->report, cpu[OURS], limit_of(BAR_SYNC_MS * scale, cpu[GO], BAR_SYNC_RATIO),
               "processor time until all is there, ms");
    report_bar(b->report, memory[OURS], 1.3 * mb(b->bytes) + 5,
               "memory then, MB, against 1.3 times %.1f and 5", mb(b->bytes));
    report_bar(b->report, update[OURS], limit_of(BAR_UPDATE_US, update[GO], BAR_UPDATE_RATIO),
               "processor time of an update, one writer, us");
    report_bar(b->report, busy[OURS], limit_of(BAR_UPDATE_US, busy[GO], BAR_UPDATE_RATIO),
               "processor time of an update, 16 writers, us");
}
