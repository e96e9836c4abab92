/* report.c - the tables that a person reads, and the bars. */
#include <inttypes.h>
#include <stdlib.h>

#include "results.h"

static const struct bench_row *find_row(const struct bench_results *r, uint32_t writers)
{
    for (size_t i = 0; i < r->n_rows; i++)
        if (r->rows[i].writers == writers && r->rows[i].value_len == 1024)
            return &r->rows[i];
    return NULL;
}

static void set_bar(struct bench_bar *bar, const struct bench_row *row, enum bench_side_name other,
                    double limit)
{
    bar->bar = limit;
    bar->measured = row && row->sides[other].measured;
    if (bar->measured)
        bar->value = bench_ratio(row, other).median;
}

void bench_bars(const struct bench_results *results, struct bench_bar ret_bars[BENCH_BARS])
{
    struct bench_bar *b = ret_bars;
    memset(b, 0, BENCH_BARS * sizeof *b);
    snprintf(b[0].what, sizeof b[0].what, "times SQLite at 64 writers");
    set_bar(&b[0], find_row(results, 64), SIDE_SQLITE, BAR_SQLITE);
    snprintf(b[1].what, sizeof b[1].what, "of the grouped floor at 64 writers");
    set_bar(&b[1], find_row(results, 64), SIDE_APPEND, BAR_FLOOR);
    snprintf(b[2].what, sizeof b[2].what, "of the grouped floor at 512 writers");
    set_bar(&b[2], find_row(results, 512), SIDE_APPEND, BAR_FLOOR);
    const struct vigil_opens *o = &results->opens;
    snprintf(b[3].what, sizeof b[3].what, "s to open %" PRIu64 " objects, nothing cached",
             o->objects);
    b[3].bar = BAR_OPEN_S;
    b[3].at_most = true;
    b[3].measured = results->has_opens;
    if (b[3].measured)
        b[3].value = bench_spread(o->cold_s, o->n).median;
}

bool bench_bar_is_met(const struct bench_bar *bar)
{
    return bar->measured && (bar->at_most ? bar->value < bar->bar : bar->value >= bar->bar);
}

/* "123k", "1.23M": a rate in few characters. */
static const char *short_number(double n, char buf[16])
{
    if (n >= 1e6)
        snprintf(buf, 16, "%.2fM", n / 1e6);
    else if (n >= 1e5)
        snprintf(buf, 16, "%.0fk", n / 1e3);
    else if (n >= 1e4)
        snprintf(buf, 16, "%.1fk", n / 1e3);
    else
        snprintf(buf, 16, "%.0f", n);
    return buf;
}

static void print_side(const struct bench_row *row, enum bench_side_name side, FILE *out)
{
    const struct bench_side *s = &row->sides[side];
    char rate[16], p50[16], p99[16];
    if (!s->measured) {
        fprintf(out, " | %7s %7s %7s", "-", "-", "-");
        return;
    }
    fprintf(out, " | %7s %7s %7s", short_number(bench_side_rate(row, side).median, rate),
            short_number(bench_hist_us(&s->sum.latency, 0.5), p50),
            short_number(bench_hist_us(&s->sum.latency, 0.99), p99));
}

static void print_rate(const struct bench_row *row, enum bench_side_name side, FILE *out)
{
    char rate[16];
    fprintf(out, " | %7s", short_number(bench_side_rate(row, side).median, rate));
}

static void print_ratio(const struct bench_row *row, enum bench_side_name other, FILE *out)
{
    struct bench_spread r = bench_ratio(row, other);
    char text[48] = "-";
    if (row->sides[other].measured)
        snprintf(text, sizeof text, r.median < 10 ? "%.2f (%.2f-%.2f)" : "%.1f (%.1f-%.1f)",
                 r.median, r.min, r.max);
    fprintf(out, " | %-17s", text);
}

static void print_rates(const struct bench_results *r, FILE *out)
{
    fprintf(out,
            "\nWrites a second with the real sync; latencies in us. Medians of %zu interleaved "
            "rounds;\nratios are formed round by round: median (lowest-highest).\n\n",
            r->settings.rounds);
    fprintf(out, "%7s %6s | %7s %7s %7s | %7s %7s %7s | %7s | %7s | %-17s | %-17s | %-17s\n",
            "writers", "value", "vigil", "p50", "p99", "SQLite", "p50", "p99", "append", "overwr",
            "vigil/SQLite", "vigil/append", "vigil/overwrite");
    for (size_t i = 0; i < r->n_rows; i++) {
        const struct bench_row *row = &r->rows[i];
        fprintf(out, "%7u %6zu", row->writers, row->value_len);
        print_side(row, SIDE_VIGIL, out);
        print_side(row, SIDE_SQLITE, out);
        print_rate(row, SIDE_APPEND, out);
        print_rate(row, SIDE_OVERWRITE, out);
        print_ratio(row, SIDE_SQLITE, out);
        print_ratio(row, SIDE_APPEND, out);
        print_ratio(row, SIDE_OVERWRITE, out);
        fputc('\n', out);
    }
    fputs("append, overwr: the grouped floor, write and fdatasync of vigil's groups to a growing "
          "file\nand to space written before.\n",
          out);
}

static void print_way(const struct bench_results *r, FILE *out)
{
    if (!sqlite_is_there()) {
        fputs("SQLite: libsqlite3-dev was not there when this was built; not measured.\n", out);
        return;
    }
    fputs("SQLite: the faster of a connection per writer (own) and one connection (one):", out);
    for (size_t i = 0; i < r->n_rows; i++)
        fprintf(out, " %u:%s", r->rows[i].writers,
                r->rows[i].sqlite_way == SQLITE_WAY_OWN ? "own" : "one");
    fputs(".\n", out);
}

static double per_write(double value, const struct bench_side *s)
{
    return s->sum.total_writes ? value / (double)s->sum.total_writes : 0;
}

static void print_costs(const struct bench_results *r, FILE *out)
{
    fprintf(out, "\nWhat a write costs.\n\n");
    fprintf(out, "%7s %6s | %7s %9s | %9s %9s %9s | %9s %9s %9s\n", "writers", "value", "group",
            "syncs/wr", "cpu us", "engine us", "SQLite us", "disk/user", "SQLite", "log/user");
    for (size_t i = 0; i < r->n_rows; i++) {
        const struct bench_row *row = &r->rows[i];
        const struct bench_side *v = &row->sides[SIDE_VIGIL], *q = &row->sides[SIDE_SQLITE];
        double sqlite_bytes = q->measured ? (double)q->sum.written / q->sum.user_bytes : 0;
        fprintf(out, "%7u %6zu | %7.1f %9.3f | %9.2f %9.2f %9.2f | %9.2f %9.2f %9.2f\n",
                row->writers, row->value_len, bench_group(&v->sum),
                per_write((double)v->sum.syncs, v), 1e6 * per_write(v->sum.cpu_s, v),
                1e6 * per_write(v->sum.engine_s, v), 1e6 * per_write(q->sum.cpu_s, q),
                (double)v->sum.written / v->sum.user_bytes, sqlite_bytes,
                (double)v->sum.wal_bytes / v->sum.user_bytes);
    }
    fputs("cpu: of the process; engine: without the thread that makes the requests. disk: bytes "
          "written\nup to the end of closing; user: keys, headers and values; "
          "log: write-ahead log.\n",
          out);
    for (size_t i = 0; i < r->n_rows; i++)
        if (r->rows[i].sides[SIDE_VIGIL].sum.refused)
            fprintf(out, "At %u writers vigil answered busy %" PRIu64 " times.\n",
                    r->rows[i].writers, r->rows[i].sides[SIDE_VIGIL].sum.refused);
}

static int compare_counts(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void print_sustained(const struct bench_results *r, FILE *out)
{
    const struct bench_slice *s = &r->sustained;
    if (!s->writes)
        return;
    size_t n = VG_MIN((size_t)(s->secs * 4), (size_t)BENCH_QUARTERS_MAX);
    uint32_t sorted[BENCH_QUARTERS_MAX];
    memcpy(sorted, s->quarters, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_counts);
    char rate[16], low[16];
    fprintf(out,
            "\n64 writers for %.0f s without a pause: %s writes/s, slowest quarter second %s/s;",
            s->secs, short_number(bench_rate(s), rate), short_number(n ? 4.0 * sorted[0] : 0, low));
    fprintf(out, " p99 %.0f us, p99.9 %.0f us, longest %.1f ms;\n",
            bench_hist_us(&s->latency, 0.99), bench_hist_us(&s->latency, 0.999),
            (double)s->latency.max / 1e6);
    double live = (double)r->sustained_keys * s->user_bytes / (double)s->total_writes;
    fprintf(out,
            "%" PRIu64 " checkpoints, closing took %.2f s; bytes to disk per user byte %.2f; files "
            "%.2f of what was written\n(all history is kept), %.2f of what is live.\n",
            s->checkpoints, s->close_s, (double)s->written / s->user_bytes,
            (double)r->sustained_files / s->user_bytes, (double)r->sustained_files / live);
}

static void print_open_line(const char *what, const double *values, size_t n, FILE *out)
{
    struct bench_spread s = bench_spread(values, n);
    fprintf(out, "  %-34s %7.1f ms (%.1f-%.1f)\n", what, 1e3 * s.median, 1e3 * s.min, 1e3 * s.max);
}

static void print_opens(const struct bench_results *r, FILE *out)
{
    const struct vigil_opens *o = &r->opens;
    const struct vigil_reads *d = &r->reads;
    if (!r->has_opens)
        return;
    fprintf(out,
            "\n%" PRIu64 " objects of %u bytes (%.0f MB of files), built in %.1f s without sync, "
            "closed in %.2f s.\nFrom open to the first get answered:\n",
            o->objects, VIGIL_OPEN_VALUE, (double)o->file_bytes / 1e6, o->build_s,
            o->build_close_s);
    print_open_line("files in the page cache", o->warm_s, o->n, out);
    print_open_line("files not in the page cache", o->cold_s, o->n, out);
    char after[64];
    snprintf(after, sizeof after, "after SIGKILL, %.1f MiB to replay",
             (double)o->kill_overlay / (1 << 20));
    print_open_line(after, o->kill_s, o->n, out);
    char a[16], b[16], c[16], e[16];
    fprintf(out, "Reading it: gets/s %s (1 under way, p50 %.1f us), %s (64, p99 %.0f us);\n",
            short_number(d->gets_1, a), d->get_1_p50_us, short_number(d->gets_64, b),
            d->get_64_p99_us);
    fprintf(out,
            "objects/s in pages of 500: %s (%.0f MB/s), in spans of 10,000: %s (%.0f MB/s); "
            "counting all: %.1f ms.\n",
            short_number(d->page_objects, c), d->page_mb, short_number(d->span_objects, e),
            d->span_mb, d->count_ms);
}

static void print_bars(const struct bench_results *r, FILE *out)
{
    struct bench_bar bars[BENCH_BARS];
    bench_bars(r, bars);
    fputs("\nBars:\n", out);
    for (size_t i = 0; i < BENCH_BARS; i++) {
        const struct bench_bar *b = &bars[i];
        if (!b->measured) {
            fprintf(out, "  not measured: %s\n", b->what);
            continue;
        }
        fprintf(out, "  %-6s %8.2f %s (bar: %s %g)\n", bench_bar_is_met(b) ? "met" : "MISSED",
                b->value, b->what, b->at_most ? "below" : "at least", b->bar);
    }
}

void bench_print(const struct bench_results *results, FILE *out)
{
    if (results->n_rows) {
        print_rates(results, out);
        print_way(results, out);
        print_costs(results, out);
    }
    print_sustained(results, out);
    print_opens(results, out);
    print_bars(results, out);
}
