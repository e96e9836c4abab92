/* main.c - vigil-bench, which `vigil bench` hands over to: read the arguments, run, tell. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "bench.h"
#include "cli/report/report.h"
#include "terminal.h"
#include "vigil/base.h"

enum { DONE = 0, FAILED = 1, USAGE = 2, NOT_EXACT = 3, INTERRUPTED = 130 };

static int complain(const struct vg_status *status, int err)
{
    fprintf(stderr, "vigil bench: %s\n", status->message[0] ? status->message : vg_err_text(err));
    return err == VIGIL_E_CANCELED ? INTERRUPTED : FAILED;
}

static int write_file(const char *path, const struct vg_buf *text)
{
    bool is_stdout = strcmp(path, "-") == 0;
    int fd = is_stdout ? STDOUT_FILENO : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int r = fd < 0 ? -errno : vg_write_all(fd, vg_buf_slice(text));
    if (fd >= 0 && !is_stdout && close(fd) < 0 && r == 0)
        r = -errno;
    if (r < 0)
        fprintf(stderr, "vigil bench: cannot write %s: %s\n", path, vg_err_text(r));
    return r;
}

static int write_made(const char *path, const struct vg_report *report,
                      int (*make)(const struct vg_report *r, struct vg_buf *out))
{
    VG_AUTO(buf) text = {0};
    int r = make(report, &text);
    if (r < 0)
        fprintf(stderr, "vigil bench: %s\n", vg_err_text(r));
    return r < 0 ? r : write_file(path, &text);
}

/* The JSON is what everything else is made from, here as by `vigil bench report`. */
static int tell(const struct vg_bench *b)
{
    const struct vg_bench_options *o = b->o;
    VG_AUTO(buf) json = {0};
    VG_AUTO(report) report = {0};
    int r = vg_bench_run_write(&b->run, &json);
    if (r == 0)
        r = vg_report_read(&report, vg_buf_slice(&json), NULL);
    if (r < 0) {
        fprintf(stderr, "vigil bench: %s\n", vg_err_text(r));
        return FAILED;
    }
    bool is_piped = o->json && strcmp(o->json, "-") == 0;
    if (o->json)
        r = write_file(o->json, &json);
    if (r == 0 && o->html)
        r = write_made(o->html, &report, vg_report_html);
    if (r == 0 && !o->is_quiet && !is_piped)
        r = write_made("-", &report, vg_report_table);
    return r < 0 ? FAILED : DONE;
}

/* The worst of the results. */
static int status_of(const struct vg_bench_run *run)
{
    int status = DONE;
    for (size_t i = 0; i < run->n; i++) {
        const struct vg_bench_result *r = &run->results[i];
        bool is_exact =
            vg_bench_metric_of(r, "lost", 0) == 0 && vg_bench_metric_of(r, "duplicates", 0) == 0;
        if (r->error[0])
            return FAILED;
        if (!is_exact)
            status = NOT_EXACT;
    }
    return status;
}

static int run(const struct vg_bench_options *o)
{
    struct vg_bench b;
    int r = vg_bench_open(&b, o);
    b.shows_progress = !o->is_quiet && isatty(STDERR_FILENO) == 1;
    if (r == 0)
        r = vg_bench_run_all(&b);
    int status = r < 0 ? complain(&b.status, r) : status_of(&b.run);
    r = vg_bench_close(&b);
    if (r < 0)
        status = complain(&b.status, r);
    int told = b.run.n ? tell(&b) : DONE;
    vg_bench_run_done(&b.run);
    return status ? status : told;
}

int main(int argc, char **argv)
{
    struct vg_bench_options options;
    struct vg_status status = {0};
    if (argc > 2 && strcmp(argv[1], "bench") == 0 && strcmp(argv[2], "report") == 0)
        return vg_report_main(argc - 2, argv + 2);
    int r = vg_bench_options_parse(argc, argv, &options, &status);
    if (r < 0) {
        fprintf(stderr, "vigil bench: %s\nvigil bench --help tells how it is used.\n",
                status.message);
        return USAGE;
    }
    if (options.is_help || options.is_version) {
        if (options.is_help)
            fputs(vg_bench_help, stdout);
        else
            printf("vigil-bench %s\n", vigil_version());
        return fflush(stdout) == 0 ? DONE : FAILED;
    }
    vg_bench_catch_signals();
    return run(&options);
}
