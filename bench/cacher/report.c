/* report.c - see report.h. */
#include "report.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static struct row *new_row(struct report *r, const char *unit)
{
    if (r->n_rows == REPORT_ROWS)
        bench_die("the report is full");
    struct row *row = &r->rows[r->n_rows++];
    row->part = r->part;
    row->unit = unit;
    return row;
}

void report_row(struct report *r, const char *unit, const double *values, size_t n, const char *fmt,
                ...)
{
    struct row *row = new_row(r, unit);
    row->v = bench_spread(values, n);
    va_list ap;
    va_start(ap, fmt);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): started above */
    vsnprintf(row->what, sizeof row->what, fmt, ap);
    va_end(ap);
}

void report_one(struct report *r, const char *unit, double value, const char *fmt, ...)
{
    struct row *row = new_row(r, unit);
    row->v = (struct bench_spread){value, value, value};
    va_list ap;
    va_start(ap, fmt);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): started above */
    vsnprintf(row->what, sizeof row->what, fmt, ap);
    va_end(ap);
}

void report_bar(struct report *r, double value, double limit, const char *fmt, ...)
{
    if (r->n_bars == REPORT_BARS)
        bench_die("the report is full");
    struct bar *bar = &r->bars[r->n_bars++];
    *bar = (struct bar){.part = r->part, .value = value, .limit = limit};
    va_list ap;
    va_start(ap, fmt);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): started above */
    vsnprintf(bar->what, sizeof bar->what, fmt, ap);
    va_end(ap);
}

/* ---- for people ---- */

static void print_number(FILE *out, double v)
{
    fprintf(out, v < 10 ? " %9.2f" : v < 1000 ? " %9.1f" : " %9.0f", v);
}

static void print_row(const struct row *row, FILE *out)
{
    fprintf(out, "  %-62s", row->what);
    print_number(out, row->v.median);
    fprintf(out, " %-9s", row->unit);
    if (row->v.min < row->v.max) {
        fputc('(', out);
        print_number(out, row->v.min);
        fputs(" -", out);
        print_number(out, row->v.max);
        fputc(')', out);
    }
    fputc('\n', out);
}

static bool is_met(const struct bar *bar)
{
    return bar->value <= bar->limit;
}

void report_print(const struct report *r, int part, const struct part_text *text, FILE *out)
{
    fprintf(out, "\n%s\n", text->title);
    for (size_t i = 0; i < r->n_rows; i++)
        if (r->rows[i].part == part)
            print_row(&r->rows[i], out);
    for (size_t i = 0; i < r->n_bars; i++) {
        const struct bar *b = &r->bars[i];
        if (b->part == part)
            fprintf(out, "  bar: %s: %.2f, at most %g: %s\n", b->what, b->value, b->limit,
                    is_met(b) ? "met" : "MISSED");
    }
    if (text->peer)
        fprintf(out, "  kube-apiserver: %s\n", text->peer);
    fflush(out);
}

bool report_is_met(const struct report *r)
{
    for (size_t i = 0; i < r->n_bars; i++)
        if (!is_met(&r->bars[i]))
            return false;
    return true;
}

/* ---- for programs ---- */

static void write_json(const struct report *r, const struct part_text *parts, FILE *out)
{
    fprintf(out, "{\"quick\":%s,\"rounds\":%zu,\n \"rows\":[", r->settings.quick ? "true" : "false",
            r->settings.rounds);
    for (size_t i = 0; i < r->n_rows; i++) {
        const struct row *row = &r->rows[i];
        fprintf(out,
                "%s\n  {\"part\":\"%s\",\"what\":\"%s\",\"unit\":\"%s\",\"min\":%.4f,"
                "\"median\":%.4f,\"max\":%.4f}",
                i ? "," : "", parts[row->part].name, row->what, row->unit, row->v.min,
                row->v.median, row->v.max);
    }
    fputs("],\n \"bars\":[", out);
    for (size_t i = 0; i < r->n_bars; i++) {
        const struct bar *b = &r->bars[i];
        fprintf(out,
                "%s\n  {\"part\":\"%s\",\"what\":\"%s\",\"value\":%.4f,\"at_most\":%.4f,"
                "\"result\":\"%s\"}",
                i ? "," : "", parts[b->part].name, b->what, b->value, b->limit,
                is_met(b) ? "met" : "missed");
    }
    fputs("]}\n", out);
}

void report_save(const struct report *r, const struct part_text *parts)
{
    if (!r->settings.json)
        return;
    FILE *out = fopen(r->settings.json, "we");
    if (out)
        write_json(r, parts, out);
    if (!out || fclose(out) != 0)
        bench_die("cannot write %s: %s", r->settings.json, strerror(errno));
}
