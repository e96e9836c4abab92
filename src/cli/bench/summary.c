/* summary.c - the results as a table for people: a line for each scenario as it was run, and below
 * it what was found. */
#include "summary.h"

#include <math.h>
#include <stdio.h>

#include "table.h"

/* 12345.6 -> "12,346", 0.01234 -> "0.0123" */
static void put_number(struct vg_table *t, double v)
{
    char text[48];
    if (fabs(v) < 1000) {
        vg_table_printf(t, fabs(v) >= 100 || v == nearbyint(v) ? "%.0f" : "%.3g", v);
        return;
    }
    int n = snprintf(text, sizeof text, "%.0f", v);
    char grouped[64];
    size_t at = 0;
    for (int i = 0; i < n && at + 2 < sizeof grouped; i++) {
        grouped[at++] = text[i];
        if (text[i] != '-' && i + 1 < n && (n - 1 - i) % 3 == 0)
            grouped[at++] = ',';
    }
    vg_table_put(t, vg_slice(grouped, at));
}

static void put_params(struct vg_buf *out, const struct vg_bench_result *r, int *err)
{
    for (size_t i = 0; *err == 0 && i < r->n_params; i++) {
        const struct vg_bench_param *p = &r->params[i];
        if (p->type == VG_BENCH_TEXT)
            *err = vg_buf_printf(out, " %s=%s", p->name, p->text);
        else if (p->type == VG_BENCH_BOOL && p->number != 0)
            *err = vg_buf_printf(out, " %s", p->name);
        else if (p->type == VG_BENCH_NUMBER)
            *err = vg_buf_printf(out, " %s=%.10g", p->name, p->number);
    }
}

static int put_result(struct vg_buf *out, const struct vg_bench_result *r)
{
    struct vg_table t;
    int err = vg_buf_printf(out, "\n%s", r->scenario);
    put_params(out, r, &err);
    if (err == 0 && r->error[0])
        err = vg_buf_printf(out, "\n  failed: %s", r->error);
    if (err == 0)
        err = vg_buf_append_byte(out, '\n');
    vg_table_init(&t, 2);
    for (size_t i = 0; i < r->n_metrics; i++) {
        vg_table_put_str(&t, r->metrics[i].name);
        put_number(&t, r->metrics[i].value);
    }
    err = err ? err : t.err;
    for (size_t row = 0; err == 0 && row < vg_table_rows(&t); row++) {
        err = vg_buf_printf(out, "  ");
        if (err == 0)
            err = vg_table_line(&t, row, 0, out);
        if (err == 0)
            err = vg_buf_append_byte(out, '\n');
    }
    vg_table_done(&t);
    if (err == 0 && r->tool_was_the_limit)
        err = vg_buf_printf(out,
                            "  The tool itself was at its limit (%.0f%% of all cores): the server "
                            "may be better than this.\n",
                            r->tool_cpu_share * 100);
    return err;
}

int vg_bench_summary(const struct vg_bench_run *run, struct vg_buf *out)
{
    int err = vg_buf_printf(out, "%s (%s), %s, %u cores\n", run->server.name, run->server.version,
                            run->machine.cpu[0] ? run->machine.cpu : "unknown processor",
                            run->machine.cores);
    for (size_t i = 0; err == 0 && i < run->server.n_processes; i++)
        err =
            vg_buf_printf(out, "%s%s (%d)", i ? ", " : "accounted: ", run->server.processes[i].comm,
                          (int)run->server.processes[i].pid);
    if (err == 0)
        err = run->server.n_processes
                  ? vg_buf_append_byte(out, '\n')
                  : vg_buf_printf(out, "The server's processes are not known here: no figures of "
                                       "its processor time and memory.\n");
    for (size_t i = 0; err == 0 && i < run->n; i++)
        err = put_result(out, &run->results[i]);
    return err;
}
