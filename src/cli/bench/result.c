/* result.c - see result.h. */
#include "result.h"

#include <math.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "vigil/base.h"
#include "json/write.h"

/* ---- the machine ---- */

/* The value of the first line of a file that begins with `label`, behind its colon. */
static void find_line(const char *path, const char *label, char *ret, size_t size)
{
    char line[512];
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, label, strlen(label)) != 0 || !colon)
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        snprintf(ret, size, "%.*s", (int)strcspn(colon, "\n"), colon);
        break;
    }
    if (f)
        fclose(f);
}

void vg_bench_run_init(struct vg_bench_run *run)
{
    *run = (struct vg_bench_run){0};
    time_t now = time(NULL);
    struct tm utc;
    struct utsname system;
    if (gmtime_r(&now, &utc))
        (void)strftime(run->date, sizeof run->date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    if (uname(&system) == 0)
        snprintf(run->machine.kernel, sizeof run->machine.kernel, "%.40s %.60s %.40s",
                 system.sysname, system.release, system.machine);
    find_line("/proc/cpuinfo", "model name", run->machine.cpu, sizeof run->machine.cpu);
    long cores = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES),
         page = sysconf(_SC_PAGESIZE);
    run->machine.cores = cores > 0 ? (unsigned)cores : 1;
    run->machine.memory_bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}

void vg_bench_run_done(struct vg_bench_run *run)
{
    vg_free(run->results);
    *run = (struct vg_bench_run){0};
}

/* ---- results ---- */

struct vg_bench_result *vg_bench_run_add(struct vg_bench_run *run, const char *scenario)
{
    if (run->n == run->cap) {
        size_t cap = run->cap ? run->cap * 2 : 8;
        void *results = vg_reallocarray(run->results, cap, sizeof run->results[0]);
        if (!results)
            return NULL;
        run->results = results;
        run->cap = cap;
    }
    struct vg_bench_result *r = &run->results[run->n++];
    *r = (struct vg_bench_result){0};
    snprintf(r->scenario, sizeof r->scenario, "%s", scenario);
    return r;
}

static struct vg_bench_param *add_param(struct vg_bench_result *r, const char *name,
                                        enum vg_bench_param_type type)
{
    static struct vg_bench_param spare;
    if (VG_NEVER(r->n_params == VG_BENCH_PARAMS_MAX))
        return &spare;
    struct vg_bench_param *p = &r->params[r->n_params++];
    *p = (struct vg_bench_param){.type = type};
    snprintf(p->name, sizeof p->name, "%s", name);
    return p;
}

void vg_bench_param_text(struct vg_bench_result *r, const char *name, const char *value)
{
    struct vg_bench_param *p = add_param(r, name, VG_BENCH_TEXT);
    snprintf(p->text, sizeof p->text, "%s", value);
}

void vg_bench_param_number(struct vg_bench_result *r, const char *name, double value)
{
    add_param(r, name, VG_BENCH_NUMBER)->number = value;
}

void vg_bench_param_bool(struct vg_bench_result *r, const char *name, bool value)
{
    add_param(r, name, VG_BENCH_BOOL)->number = value;
}

void vg_bench_metric(struct vg_bench_result *r, const char *name, double value)
{
    if (VG_NEVER(r->n_metrics == VG_BENCH_METRICS_MAX) || !isfinite(value))
        return;
    struct vg_bench_metric *m = &r->metrics[r->n_metrics++];
    snprintf(m->name, sizeof m->name, "%s", name);
    m->value = value;
}

void vg_bench_quantiles(struct vg_bench_result *r, const char *prefix, const struct vg_hist *h)
{
    char name[VG_BENCH_NAME_MAX];
    snprintf(name, sizeof name, "%sp50_ms", prefix);
    vg_bench_metric(r, name, vg_hist_ns(h, 0.5) / 1e6);
    snprintf(name, sizeof name, "%sp99_ms", prefix);
    vg_bench_metric(r, name, vg_hist_ns(h, 0.99) / 1e6);
}

double vg_bench_metric_of(const struct vg_bench_result *r, const char *name, double otherwise)
{
    for (size_t i = 0; i < r->n_metrics; i++)
        if (strcmp(r->metrics[i].name, name) == 0)
            return r->metrics[i].value;
    return otherwise;
}

void vg_bench_fail(struct vg_bench_result *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r->error, sizeof r->error, fmt, ap);
    va_end(ap);
    r->n_metrics = 0;
}

/* ---- JSON ---- */

static void put_text(struct vg_json_writer *w, const char *name, const char *text)
{
    vg_json_put_member(w, name, vg_slice_str(text));
}

static void put_key(struct vg_json_writer *w, const char *name)
{
    vg_json_put_key(w, vg_slice_str(name));
}

/* Nobody measures to more than six digits; whole numbers stay whole. */
static void put_number(struct vg_json_writer *w, double value)
{
    char text[32];
    if (fabs(value) < 9e15 && value == nearbyint(value)) {
        vg_json_put_int(w, (int64_t)value);
        return;
    }
    snprintf(text, sizeof text, "%.6g", value);
    vg_json_put_raw(w, vg_slice_str(text));
}

static void put_params(struct vg_json_writer *w, const struct vg_bench_result *r)
{
    put_key(w, "params");
    vg_json_put_begin_object(w);
    for (size_t i = 0; i < r->n_params; i++) {
        const struct vg_bench_param *p = &r->params[i];
        put_key(w, p->name);
        if (p->type == VG_BENCH_TEXT)
            vg_json_put_string(w, vg_slice_str(p->text));
        else if (p->type == VG_BENCH_BOOL)
            vg_json_put_bool(w, p->number != 0);
        else
            put_number(w, p->number);
    }
    vg_json_put_end_object(w);
}

static void put_result(struct vg_json_writer *w, const struct vg_bench_result *r)
{
    vg_json_put_begin_object(w);
    put_text(w, "scenario", r->scenario);
    put_params(w, r);
    put_key(w, "metrics");
    vg_json_put_begin_object(w);
    for (size_t i = 0; i < r->n_metrics; i++) {
        put_key(w, r->metrics[i].name);
        put_number(w, r->metrics[i].value);
    }
    vg_json_put_end_object(w);
    put_key(w, "tool");
    vg_json_put_begin_object(w);
    put_key(w, "cpu_share");
    put_number(w, r->tool_cpu_share);
    put_key(w, "was_the_limit");
    vg_json_put_bool(w, r->tool_was_the_limit);
    vg_json_put_end_object(w);
    put_key(w, "error");
    if (r->error[0])
        vg_json_put_string(w, vg_slice_str(r->error));
    else
        vg_json_put_null(w);
    vg_json_put_end_object(w);
}

static void put_machine(struct vg_json_writer *w, const struct vg_bench_run *run)
{
    put_key(w, "machine");
    vg_json_put_begin_object(w);
    put_text(w, "cpu", run->machine.cpu);
    put_key(w, "cores");
    vg_json_put_uint(w, run->machine.cores);
    put_key(w, "memory_bytes");
    vg_json_put_uint(w, run->machine.memory_bytes);
    put_text(w, "kernel", run->machine.kernel);
    vg_json_put_end_object(w);
}

static void put_server(struct vg_json_writer *w, const struct vg_bench_run *run)
{
    put_key(w, "server");
    vg_json_put_begin_object(w);
    put_text(w, "name", run->server.name);
    put_text(w, "version", run->server.version);
    put_key(w, "processes");
    vg_json_put_begin_array(w);
    for (size_t i = 0; i < run->server.n_processes; i++) {
        vg_json_put_begin_object(w);
        put_key(w, "pid");
        vg_json_put_int(w, run->server.processes[i].pid);
        put_text(w, "comm", run->server.processes[i].comm);
        vg_json_put_end_object(w);
    }
    vg_json_put_end_array(w);
    vg_json_put_end_object(w);
}

int vg_bench_run_write(const struct vg_bench_run *run, struct vg_buf *out)
{
    struct vg_json_writer w;
    vg_json_writer_init(&w, out, VG_JSON_INDENT);
    vg_json_put_begin_object(&w);
    put_text(&w, "format", VG_BENCH_FORMAT);
    put_text(&w, "version", vigil_version());
    put_text(&w, "date", run->date);
    put_machine(&w, run);
    put_server(&w, run);
    put_key(&w, "results");
    vg_json_put_begin_array(&w);
    for (size_t i = 0; i < run->n; i++)
        put_result(&w, &run->results[i]);
    vg_json_put_end_array(&w);
    vg_json_put_end_object(&w);
    int r = vg_json_writer_end(&w);
    return r < 0 ? r : vg_buf_append_byte(out, '\n');
}
