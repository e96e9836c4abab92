/* json_report.c - the same results for a program: plain numbers, no rounding to please the eye. */
#include <inttypes.h>

#include "results.h"

static const char *const side_names[SIDE_COUNT] = {"vigil", "sqlite", "append", "overwrite"};

static void put_array(FILE *out, const char *name, const double *values, size_t n)
{
    fprintf(out, "\"%s\":[", name);
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%s%.6g", i ? "," : "", values[i]);
    fputc(']', out);
}

static void put_slice(FILE *out, const struct bench_slice *s)
{
    fprintf(out, "\"writes\":%" PRIu64 ",\"secs\":%.4f,\"user_bytes\":%.0f,\"written\":%" PRIu64,
            s->writes, s->secs, s->user_bytes, s->written);
    fprintf(out, ",\"cpu_s\":%.4f,\"engine_cpu_s\":%.4f,\"close_s\":%.4f", s->cpu_s, s->engine_s,
            s->close_s);
    fprintf(out,
            ",\"commits\":%" PRIu64 ",\"syncs\":%" PRIu64 ",\"log_bytes\":%" PRIu64
            ",\"checkpoints\":%" PRIu64 ",\"refused\":%" PRIu64 ",\"group\":%.2f",
            s->commits, s->syncs, s->wal_bytes, s->checkpoints, s->refused, bench_group(s));
    fprintf(out, ",\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f,\"max_us\":%.1f",
            bench_hist_us(&s->latency, 0.5), bench_hist_us(&s->latency, 0.99),
            bench_hist_us(&s->latency, 0.999), (double)s->latency.max / 1e3);
}

static void put_row(FILE *out, const struct bench_row *row)
{
    const char *way = row->sqlite_way == SQLITE_WAY_OWN ? "own" : "one";
    fprintf(out, "{\"writers\":%u,\"value_bytes\":%zu,\"sqlite_connections\":\"%s\"", row->writers,
            row->value_len, way);
    for (int i = 0; i < SIDE_COUNT; i++) {
        const struct bench_side *side = &row->sides[i];
        if (!side->measured)
            continue;
        fprintf(out, ",\n   \"%s\":{", side_names[i]);
        put_array(out, "rates", side->rates, row->rounds);
        fputc(',', out);
        put_slice(out, &side->sum);
        struct bench_spread r = bench_ratio(row, (enum bench_side_name)i);
        fprintf(out, ",\"vigil_ratio\":{\"min\":%.4f,\"median\":%.4f,\"max\":%.4f}}", r.min,
                r.median, r.max);
    }
    fputc('}', out);
}

static void put_opens(FILE *out, const struct bench_results *r)
{
    const struct vigil_opens *o = &r->opens;
    const struct vigil_reads *d = &r->reads;
    fprintf(out, " \"open\":{\"objects\":%" PRIu64 ",\"file_bytes\":%" PRIu64 ",", o->objects,
            o->file_bytes);
    put_array(out, "warm_s", o->warm_s, o->n);
    fputc(',', out);
    put_array(out, "cold_s", o->cold_s, o->n);
    fputc(',', out);
    put_array(out, "killed_s", o->kill_s, o->n);
    fprintf(out, ",\"replayed_bytes\":%" PRIu64 "},\n", o->kill_overlay);
    fprintf(out, " \"read\":{\"gets_1\":%.0f,\"gets_64\":%.0f,", d->gets_1, d->gets_64);
    fprintf(out, "\"page_500_objects\":%.0f,\"page_500_mb\":%.1f,", d->page_objects, d->page_mb);
    fprintf(out, "\"span_10k_objects\":%.0f,\"span_10k_mb\":%.1f,\"count_ms\":%.2f},\n",
            d->span_objects, d->span_mb, d->count_ms);
}

static void put_bars(FILE *out, const struct bench_results *results)
{
    struct bench_bar bars[BENCH_BARS];
    bench_bars(results, bars);
    fputs(" \"bars\":[", out);
    for (size_t i = 0; i < BENCH_BARS; i++)
        fprintf(out, "%s\n  {\"what\":\"%s\",\"bar\":%g,\"value\":%.4f,\"result\":\"%s\"}",
                i ? "," : "", bars[i].what, bars[i].bar, bars[i].value,
                !bars[i].measured            ? "not measured"
                : bench_bar_is_met(&bars[i]) ? "met"
                                             : "missed");
    fputs("]}\n", out);
}

void bench_write_json(const struct bench_results *results, FILE *out)
{
    fprintf(out, "{\"engine\":\"%s\",\"rounds\":%zu,\"quick\":%s,\n \"writes\":[",
            results->settings.engine, results->settings.rounds,
            results->settings.quick ? "true" : "false");
    for (size_t i = 0; i < results->n_rows; i++) {
        fputs(i ? ",\n  " : "\n  ", out);
        put_row(out, &results->rows[i]);
    }
    fputs("],\n", out);
    if (results->sustained.writes) {
        fputs(" \"sustained\":{", out);
        put_slice(out, &results->sustained);
        fprintf(out, ",\"file_bytes\":%" PRIu64 ",\"keys\":%" PRIu64 "},\n",
                results->sustained_files, results->sustained_keys);
    }
    if (results->has_opens)
        put_opens(out, results);
    put_bars(out, results);
}
