/* command.c - `vigil bench report`: read a file, write what is asked for. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "report_int.h"

#define PATH_SIZE 4096u
/* Written by a person: no page. */
#define NOTES_BYTES_MAX ((size_t)1 << 20)

static const char usage[] =
    "usage: vigil bench report [flags] RUN.json\n"
    "Shows what `vigil bench --json` or bench/peers found; without flags as a table.\n"
    "  --html FILE      one page with charts\n"
    "  --markdown FILE  a page whose charts are files; with --charts\n"
    "  --charts DIR     each chart as a file DIR/NAME.svg\n"
    "  --notes FILE     Markdown to put at the end of that page\n"
    "  --summary FILE   a Markdown table of the few figures that matter most\n"
    "FILE may be -, for standard output.\n";

struct wishes {
    const char *html, *markdown, *charts, *notes, *summary, *run;
};

static int complain(const char *path, const char *what)
{
    fprintf(stderr, "vigil: %s: %s\n", path, what);
    return -EIO;
}

static int read_file(const char *path, size_t max, struct vg_buf *out)
{
    char piece[16384];
    size_t n;
    int err = 0;
    FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (!f)
        return complain(path, strerror(errno));
    vg_buf_init(out, max);
    while (err == 0 && (n = fread(piece, 1, sizeof piece, f)) > 0)
        err = vg_buf_append(out, piece, n);
    if (err == 0 && ferror(f))
        err = -EIO;
    if (f != stdin)
        fclose(f);
    return err < 0 ? complain(path, vg_err_text(err)) : 0;
}

static int write_file(const char *path, const struct vg_buf *text)
{
    FILE *f = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");
    if (!f)
        return complain(path, strerror(errno));
    bool is_good = fwrite(text->p, 1, text->n, f) == text->n && fflush(f) == 0;
    if (f != stdout && fclose(f) != 0)
        is_good = false;
    return is_good ? 0 : complain(path, "cannot be written");
}

/* Text that was made, or could not be. */
static int write_made(const char *path, int err, const struct vg_buf *text)
{
    return err < 0 ? complain(path, vg_err_text(err)) : write_file(path, text);
}

static int write_charts(const struct vg_report *r, const char *dir)
{
    int err = 0;
    if (mkdir(dir, 0777) < 0 && errno != EEXIST)
        return complain(dir, strerror(errno));
    for (size_t i = 0; err == 0; i++) {
        struct vg_buf out;
        char path[PATH_SIZE];
        const char *name;
        vg_buf_init(&out, VG_REPORT_BYTES_MAX);
        int made = vg_report_chart(r, i, &out, &name);
        if (name)
            snprintf(path, sizeof path, "%s/%s.svg", dir, name);
        if (made != 0)
            err = write_made(path, made, &out);
        else if (name)
            (void)remove(path); /* an earlier run's: nothing shows it any more */
        vg_buf_done(&out);
        if (!name)
            break;
    }
    return err;
}

/* The folder as a page beside it names it. */
static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static int write_markdown(const struct vg_report *r, const struct wishes *w)
{
    struct vg_buf out, notes = {0};
    int err = w->notes ? read_file(w->notes, NOTES_BYTES_MAX, &notes) : 0;
    vg_buf_init(&out, VG_REPORT_BYTES_MAX);
    if (err == 0)
        err = write_made(w->markdown,
                         vg_report_markdown(r, w->charts ? last_part(w->charts) : ".",
                                            vg_buf_slice(&notes), &out),
                         &out);
    vg_buf_done(&notes);
    vg_buf_done(&out);
    return err;
}

static int write_with(int (*make)(const struct vg_report *r, struct vg_buf *out),
                      const struct vg_report *r, const char *path)
{
    struct vg_buf out;
    vg_buf_init(&out, VG_REPORT_BYTES_MAX);
    int err = write_made(path, make(r, &out), &out);
    vg_buf_done(&out);
    return err;
}

static int write_all(const struct vg_report *r, const struct wishes *w)
{
    int err = 0;
    if (!w->html && !w->markdown && !w->charts && !w->summary)
        return write_with(vg_report_table, r, "-");
    if (w->html)
        err = write_with(vg_report_html, r, w->html);
    if (err == 0 && w->charts)
        err = write_charts(r, w->charts);
    if (err == 0 && w->markdown)
        err = write_markdown(r, w);
    if (err == 0 && w->summary)
        err = write_with(vg_report_summary, r, w->summary);
    return err;
}

/* -1, or the exit status to end with. */
static int parse(int argc, char **argv, struct wishes *ret)
{
    static const struct option options[] = {
        {"html", required_argument, NULL, 'h'},
        {"markdown", required_argument, NULL, 'm'},
        {"charts", required_argument, NULL, 'c'},
        {"notes", required_argument, NULL, 'n'},
        {"summary", required_argument, NULL, 's'},
        {"help", no_argument, NULL, '?' + 128},
        {0},
    };
    int c;
    optind = 0; /* the flags before "report" were read already */
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        const char **wish = c == 'h'   ? &ret->html
                            : c == 'm' ? &ret->markdown
                            : c == 'c' ? &ret->charts
                            : c == 'n' ? &ret->notes
                            : c == 's' ? &ret->summary
                                       : NULL;
        if (!wish) {
            fputs(usage, c == '?' ? stderr : stdout);
            return c == '?' ? 2 : 0;
        }
        *wish = optarg;
    }
    if (argc - optind != 1) {
        fprintf(stderr, "vigil: bench report needs one file\n%s", usage);
        return 2;
    }
    ret->run = argv[optind];
    return -1;
}

int vg_report_main(int argc, char **argv)
{
    struct wishes w = {0};
    struct vg_status status = {0};
    struct vg_report r = {0};
    struct vg_buf text = {0};
    int exit_status = parse(argc, argv, &w);
    if (exit_status >= 0)
        return exit_status;
    int err = read_file(w.run, VG_JSON_BYTES_DEFAULT, &text);
    if (err == 0 && vg_report_read(&r, vg_buf_slice(&text), &status) < 0)
        err = complain(w.run, status.message);
    if (err == 0)
        err = write_all(&r, &w);
    vg_report_done(&r);
    vg_buf_done(&text);
    return err < 0 ? 1 : 0;
}
