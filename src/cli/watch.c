/* watch.c - vigil watch where it is read by a program: a line for each change.
 *   + there or added   ~ changed   - deleted
 * An informer does the watching: lost connections, restarts and expired revisions are its business
 * and show as the changes that happened meanwhile. */
#include <stdio.h>

#include "base/clock.h"
#include "print.h"

struct watch {
    struct vg_cli *cli;
    const struct vg_kind *kind;
    struct vg_columns columns;
    struct vg_table table; /* one row at a time */
    struct vg_buf line;
    bool is_synced;
    int status;   /* of the end; -1: not yet */
    bool is_lost; /* the server; it was said */
    int said;     /* the code of the last error since then */
};

/* ---- lines ---- */

static int make_line(struct watch *w, char mark, const struct vigil_object *o)
{
    int r = vg_buf_printf(&w->line, "%c ", mark);
    vg_table_clear(&w->table);
    memset(w->table.widths, 0, sizeof w->table.widths); /* lines of their own: nothing to align */
    vg_columns_row(&w->columns, &w->table, o, vg_clock_wall_ms(vg_clock_system()) / 1000);
    if (w->table.err < 0)
        return w->table.err;
    return r < 0 ? r : vg_table_line(&w->table, 0, 0, &w->line);
}

static int make_json(struct watch *w, char mark, const struct vigil_object *o)
{
    const char *type = mark == '+' ? "ADDED" : mark == '~' ? "MODIFIED" : "DELETED";
    int r = vg_buf_printf(&w->line, "{\"type\":\"%s\",\"object\":", type);
    if (r == 0)
        r = vg_print_json_line(&w->line, vigil_object_json(o));
    return r < 0 ? r : vg_buf_append_byte(&w->line, '}');
}

/* A document of a stream of them, as --- parts them. */
static int make_yaml(struct watch *w, char mark, const struct vigil_object *o)
{
    const char *type = mark == '+' ? "ADDED" : mark == '~' ? "MODIFIED" : "DELETED";
    int r = vg_buf_printf(&w->line, "--- # %s\n", type);
    return r < 0 ? r : vg_print_yaml(&w->line, vigil_object_json(o), false);
}

static int make_text(struct watch *w, char mark, const struct vigil_object *o)
{
    switch (w->cli->args.output) {
    case VG_OUT_JSON:
        return make_json(w, mark, o);
    case VG_OUT_YAML:
        return make_yaml(w, mark, o);
    case VG_OUT_TABLE:
    case VG_OUT_WIDE:
    case VG_OUT_NAME:
        break;
    }
    return make_line(w, mark, o);
}

static void tell(struct watch *w, char mark, const struct vigil_object *o)
{
    int r = 0;
    if (w->status >= 0)
        return;
    vg_buf_clear(&w->line);
    if (w->cli->args.output == VG_OUT_NAME) {
        printf("%c ", mark);
        vg_print_name(w->kind, o);
    } else {
        r = make_text(w, mark, o);
        if (r == 0)
            printf("%.*s\n", VG_SLICE_ARG(vg_buf_slice(&w->line)));
    }
    if (r < 0)
        w->status = vg_cli_cannot_print(r);
    else if (vg_cli_flush() != VG_EXIT_OK)
        w->status = VG_EXIT_FAILED;
}

static void on_add(void *arg, const struct vigil_object *o, bool is_initial)
{
    (void)is_initial;
    tell(arg, '+', o);
}

static void on_update(void *arg, const struct vigil_object *before, const struct vigil_object *o)
{
    if (vg_cli_is_changed(before, o))
        tell(arg, '~', o);
}

static void on_delete(void *arg, const struct vigil_object *o, bool is_tombstone)
{
    (void)is_tombstone;
    tell(arg, '-', o);
}

static void on_synced(void *arg)
{
    struct watch *w = arg;
    w->is_synced = true;
}

/* A server that says no at the start will say so again. Later it is told once and waited for; lost
 * connections have their own words. */
static void on_error(void *arg, const struct vigil_error *err)
{
    struct watch *w = arg;
    bool is_told = err->code == w->said || w->is_lost;
    if (err->code == VIGIL_E_EXPIRED || w->status >= 0)
        return;
    if (!w->is_synced)
        w->status = vg_cli_complain(w->cli, err);
    else if (!is_told)
        (void)vg_cli_complain(w->cli, err);
    w->said = err->code;
}

static void on_lost(void *arg, const struct vigil_error *err)
{
    struct watch *w = arg;
    w->is_lost = true;
    w->said = 0;
    vg_cli_say_lost(NULL, err);
}

static void on_back(void *arg)
{
    struct watch *w = arg;
    w->is_lost = false;
    vg_cli_say_back(NULL);
}

/* ---- the watch ---- */

static int follow(struct watch *w)
{
    while (w->status < 0)
        if (vg_terminal_turn(&w->cli->terminal, w->cli->client, -1) & VG_SAW_INTERRUPT)
            w->status = VG_EXIT_INTERRUPTED;
    return w->status;
}

static int watch_lines(struct watch *w)
{
    char selector[VG_CLI_SELECTOR_SIZE];
    struct vigil_informer_opts opts;
    struct vigil_informer *informer = NULL;
    struct vigil_error err;
    struct vigil_handler h = {.size = sizeof h,
                              .on_add = on_add,
                              .on_update = on_update,
                              .on_delete = on_delete,
                              .on_synced = on_synced,
                              .arg = w};
    if (!vg_cli_informer_opts(w->cli, w->kind, selector, &opts)) {
        fputs("vigil: the name and the selector together are too long\n", stderr);
        return VG_EXIT_USAGE;
    }
    opts.on_error = on_error;
    opts.on_lost = on_lost;
    opts.on_back = on_back;
    opts.arg = w;
    if (vigil_informer_new(w->cli->client, &opts, &informer, &err) < 0)
        return vg_cli_complain(w->cli, &err);
    int status;
    if (vigil_informer_add_handler(informer, &h, NULL, &err) < 0)
        status = vg_cli_complain(w->cli, &err);
    else if (vigil_informer_start(informer) < 0)
        status = vg_cli_no_memory();
    else
        status = follow(w);
    vigil_informer_free(informer);
    return status;
}

int vg_cmd_watch(struct vg_cli *cli)
{
    struct watch w = {.cli = cli, .status = -1};
    int r = vg_terminal_catch();
    if (r < 0) {
        fprintf(stderr, "vigil: cannot catch signals: %s\n", strerror(-r));
        return VG_EXIT_FAILED;
    }
    int status = vg_cli_kind(cli, &w.kind);
    if (status != VG_EXIT_OK)
        return status;
    if (!w.kind->can_watch || !w.kind->can_list) {
        fprintf(stderr, "vigil: the server cannot watch %s\n", w.kind->r.plural);
        return VG_EXIT_FAILED;
    }
    if (vg_terminal_is_there() && vg_args_is_table(&cli->args))
        return vg_live_watch(cli, w.kind);
    w.columns = vg_columns_of(&w.kind->r, cli->args.all_namespaces && w.kind->r.namespaced,
                              cli->args.output == VG_OUT_WIDE);
    vg_table_init(&w.table, vg_columns_count(&w.columns));
    status = watch_lines(&w);
    vg_table_done(&w.table);
    vg_buf_done(&w.line);
    return status;
}
