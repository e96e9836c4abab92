/* top.c - vigil top: kinds and watchers of a server, drawn anew every two seconds on a terminal,
 * printed once elsewhere. /metrics is what every Kubernetes server has for those who may read it;
 * /debug/vigil/watches is vigild's own. What a server does not offer is said in its place. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "print.h"
#include "top.h"

#define PERIOD_MS 2000

struct top {
    struct vg_cli *cli;
    struct vg_top data;
    struct vg_table head, kinds, watches; /* head: one cell */
    struct vg_buf frame, line, body;
    struct vigil_error no_metrics, no_watches; /* code 0: they are there */
    uint64_t looked_ns;
    size_t skip; /* watchers that are scrolled over */
};

/* ---- looking ---- */

static int look_at_metrics(struct top *t)
{
    vg_buf_clear(&t->body);
    int r = vg_cli_fetch(t->cli, "/metrics", NULL, &t->body, &t->no_metrics);
    uint64_t now = vg_clock_mono_ns(vg_clock_system());
    vg_table_clear(&t->kinds);
    if (r < 0)
        return r;
    vg_top_metrics(&t->data, vg_buf_slice(&t->body),
                   t->looked_ns ? (double)(now - t->looked_ns) / (double)VG_NS_PER_S : 0);
    t->looked_ns = now;
    return 0;
}

static int look_at_watches(struct top *t)
{
    vg_buf_clear(&t->body);
    int r = vg_cli_fetch(t->cli, "/debug/vigil/watches", NULL, &t->body, &t->no_watches);
    struct vigil_text json = {t->body.p, t->body.n};
    vg_table_clear(&t->watches);
    t->data.has_lags = false;
    if (r == 0)
        vg_top_lags(&t->data, json);
    if (t->no_metrics.code == 0)
        vg_top_put_kinds(&t->data, &t->kinds);
    return r < 0 ? r : vg_top_put_watches(json, &t->watches);
}

static bool is_final(int r)
{
    return r == VIGIL_E_CANCELED || r == VIGIL_E_UNAUTHORIZED || r == VIGIL_E_MEMORY ||
           r == VIGIL_E_NETWORK;
}

/* An exit status. One of the two may be missing. */
static int look(struct top *t)
{
    int r = look_at_metrics(t);
    if (is_final(r))
        return vg_cli_complain(t->cli, &t->no_metrics);
    int s = look_at_watches(t);
    if (is_final(s))
        return vg_cli_complain(t->cli, &t->no_watches);
    if (t->kinds.err < 0 || t->watches.err < 0)
        return vg_cli_no_memory();
    if (r < 0 && s < 0) {
        fprintf(stderr,
                "vigil: %s offers neither /metrics nor /debug/vigil/watches to you: %s\n"
                "vigil top needs vigild, or a Kubernetes server whose /metrics you may read.\n",
                vigil_config_server(t->cli->config), t->no_metrics.message);
        return VG_EXIT_FAILED;
    }
    return VG_EXIT_OK;
}

/* ---- showing ---- */

static void put_note(struct top *t, const char *path, const char *what,
                     const struct vigil_error *err)
{
    vg_table_clear(&t->head);
    if (err->code == VIGIL_E_NOT_FOUND)
        vg_table_printf(&t->head, "This server has no %s: %s not known.", path, what);
    else
        vg_table_printf(&t->head, "%s: %.150s", path, err->message);
}

static void note_metrics(struct top *t)
{
    put_note(t, "/metrics", "objects and events by kind are", &t->no_metrics);
}

static void note_watches(struct top *t)
{
    put_note(t, "/debug/vigil/watches, which vigild has", "who watches is", &t->no_watches);
}

static int print_once(struct top *t)
{
    int status;
    if (t->no_metrics.code < 0)
        note_metrics(t);
    status = vg_print_table(t->no_metrics.code < 0 ? &t->head : &t->kinds);
    putchar('\n');
    if (t->no_watches.code < 0)
        note_watches(t);
    return status ? status : vg_print_table(t->no_watches.code < 0 ? &t->head : &t->watches);
}

static int put_line(struct top *t, const struct vg_table *table, size_t row, enum vg_style style)
{
    vg_buf_clear(&t->line);
    int r =
        table->err ? table->err : vg_table_line(table, row, t->cli->terminal.columns - 1, &t->line);
    return r < 0 ? r : vg_frame_line(&t->frame, style, vg_buf_slice(&t->line), false);
}

/* The head and rows from `skip` on, `room` lines at most. */
static int put_part(struct top *t, const struct vg_table *table, size_t skip, size_t room)
{
    int r = put_line(t, table, 0, VG_HEAD);
    for (size_t i = 1; i < room && i + skip < vg_table_rows(table) && r == 0; i++)
        r = put_line(t, table, i + skip, VG_PLAIN);
    return r;
}

static int put_title(struct top *t)
{
    char clock[16] = "";
    time_t now = (time_t)(vg_clock_wall_ms(vg_clock_system()) / 1000);
    struct tm tm;
    if (localtime_r(&now, &tm))
        strftime(clock, sizeof clock, "%H:%M:%S", &tm);
    vg_table_clear(&t->head);
    vg_table_printf(&t->head, "%s  %s  %zu watchers  q ends", vigil_config_server(t->cli->config),
                    clock, vg_table_rows(&t->watches) ? vg_table_rows(&t->watches) - 1 : 0);
    return put_line(t, &t->head, 0, VG_DIM);
}

/* Title, kinds, a line between, watchers: kinds get half of the screen, and more when there are few
 * watchers. */
static int draw(struct top *t)
{
    size_t room = t->cli->terminal.rows > 6 ? t->cli->terminal.rows - 3 : 3;
    size_t kinds = t->no_metrics.code < 0 ? 1 : vg_table_rows(&t->kinds);
    size_t watches = t->no_watches.code < 0 ? 1 : vg_table_rows(&t->watches);
    size_t for_watches = VG_MIN(watches, VG_MAX(room / 2, kinds < room ? room - kinds : 0));
    size_t for_kinds = VG_MIN(kinds, room - for_watches);
    t->skip = VG_MIN(t->skip, watches - for_watches);
    int r = vg_frame_begin(&t->frame);
    if (r == 0)
        r = put_title(t);
    if (t->no_metrics.code < 0)
        note_metrics(t);
    if (r == 0)
        r = put_part(t, t->no_metrics.code < 0 ? &t->head : &t->kinds, 0, for_kinds);
    if (r == 0)
        r = vg_frame_line(&t->frame, VG_PLAIN, vg_slice("", 0), false);
    if (t->no_watches.code < 0)
        note_watches(t);
    if (r == 0)
        r = put_part(t, t->no_watches.code < 0 ? &t->head : &t->watches, t->skip, for_watches);
    if (r == 0)
        r = vg_frame_end(&t->frame);
    return r < 0 ? r : vg_write_all(STDOUT_FILENO, vg_buf_slice(&t->frame));
}

/* ---- running ---- */

/* Until the next look. An exit status, or -1: look again. */
static int wait_period(struct top *t)
{
    uint64_t end = vg_clock_mono_ns(vg_clock_system()) + PERIOD_MS * VG_NS_PER_MS;
    for (uint64_t now; (now = vg_clock_mono_ns(vg_clock_system())) < end;) {
        int ms = (int)((end - now) / VG_NS_PER_MS) + 1;
        unsigned saw = vg_terminal_turn(&t->cli->terminal, t->cli->client, ms);
        if (saw & VG_SAW_INTERRUPT)
            return VG_EXIT_INTERRUPTED;
        if (!vg_terminal_scroll(&t->cli->terminal, t->cli->terminal.rows / 2, SIZE_MAX, &t->skip))
            return VG_EXIT_OK;
        if ((saw & VG_SAW_CHANGE) && draw(t) < 0)
            return VG_EXIT_FAILED;
    }
    return -1;
}

static int run_live(struct top *t)
{
    int status = look(t); /* before the screen is taken: a refusal is read where it was asked */
    if (status != VG_EXIT_OK)
        return status;
    if (vg_terminal_enter(&t->cli->terminal) < 0)
        return print_once(t);
    do {
        status = draw(t) < 0 ? VG_EXIT_FAILED : wait_period(t);
        if (status < 0) {
            int r = look_at_metrics(t);
            int s = look_at_watches(t);
            if (r == VIGIL_E_CANCELED || s == VIGIL_E_CANCELED)
                status = VG_EXIT_INTERRUPTED;
        }
    } while (status < 0);
    vg_terminal_leave(&t->cli->terminal);
    return status;
}

static int run_once(struct top *t)
{
    int status = look(t);
    return status == VG_EXIT_OK ? print_once(t) : status;
}

int vg_cmd_top(struct vg_cli *cli)
{
    struct top t = {.cli = cli};
    t.data.kinds = vg_calloc(VG_TOP_KINDS_MAX, sizeof t.data.kinds[0]);
    if (!t.data.kinds || vg_terminal_catch() < 0) {
        vg_free(t.data.kinds);
        return vg_cli_no_memory();
    }
    vg_table_init(&t.head, 1);
    vg_table_init(&t.kinds, VG_TOP_KIND_COLUMNS);
    vg_table_init(&t.watches, VG_TOP_WATCH_COLUMNS);
    int status = vg_terminal_is_there() ? run_live(&t) : run_once(&t);
    vg_table_done(&t.head);
    vg_table_done(&t.kinds);
    vg_table_done(&t.watches);
    vg_buf_done(&t.frame);
    vg_buf_done(&t.line);
    vg_buf_done(&t.body);
    vg_free(t.data.kinds);
    return status;
}
