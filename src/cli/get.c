/* get.c - vigil get and vigil kinds: what is there now.
 * Tables are asked of the server, which knows its kinds best; one that makes none answers with
 * objects, and columns.c knows what to show of them. Other forms are made of objects. */
#include <stdio.h>

#include "base/clock.h"
#include "print.h"
#include "server_table.h"

/* As many objects are asked for at once. */
#define PAGE "500"

struct get {
    struct vg_cli *cli;
    const struct vg_kind *kind;
    const char *ns;
    struct vg_columns columns;
    struct vg_table table;
    struct vg_server_table server_table;
    struct vg_buf text;
    int64_t now_s;
    size_t n;
    int err;
};

static bool is_table(const struct get *g)
{
    return vg_args_is_table(&g->cli->args);
}

/* ---- JSON, YAML, names ---- */

static void put_json(struct get *g, const struct vigil_object *o)
{
    bool is_list = !g->cli->args.name;
    g->err = vg_print_json(&g->text, vigil_object_json(o), is_list ? 2 : 0);
    if (g->err == 0)
        printf("%s%.*s",
               !is_list ? ""
               : g->n   ? ",\n        "
                        : "\n        ",
               VG_SLICE_ARG(vg_buf_slice(&g->text)));
}

static void put_yaml(struct get *g, const struct vigil_object *o)
{
    g->err = vg_print_yaml(&g->text, vigil_object_json(o), !g->cli->args.name);
    if (g->err == 0)
        printf("%.*s", VG_SLICE_ARG(vg_buf_slice(&g->text)));
}

static bool on_object(void *arg, const struct vigil_object *o)
{
    struct get *g = arg;
    vg_buf_clear(&g->text);
    if (g->cli->args.output == VG_OUT_NAME)
        vg_print_name(g->kind, o);
    else if (g->cli->args.output == VG_OUT_JSON)
        put_json(g, o);
    else
        put_yaml(g, o);
    g->n++;
    return g->err == 0;
}

static void begin_list(const struct get *g)
{
    if (g->cli->args.output == VG_OUT_JSON)
        printf("{\n    \"apiVersion\": \"v1\",\n    \"kind\": \"List\",\n    \"items\": [");
    else if (g->cli->args.output == VG_OUT_YAML)
        printf("apiVersion: v1\nitems:");
}

static void end_list(const struct get *g)
{
    if (g->cli->args.output == VG_OUT_JSON)
        printf("%s]\n}\n", g->n ? "\n    " : "");
    else if (g->cli->args.output == VG_OUT_YAML)
        printf("%s\nkind: List\n", g->n ? "" : " []");
}

static int get_one(struct get *g, struct vigil_error *err)
{
    const struct vigil_object *o;
    int r = vigil_read(g->cli->client, &g->kind->r, g->ns, g->cli->args.name, &o, err);
    if (r < 0)
        return r;
    on_object(g, o);
    vigil_object_unref(o);
    if (g->cli->args.output != VG_OUT_NAME)
        putchar('\n');
    return 0;
}

static int get_all(struct get *g, struct vigil_error *err)
{
    struct vigil_list_opts opts = VIGIL_INIT(struct vigil_list_opts);
    opts.label_selector = g->cli->args.labels;
    opts.field_selector = g->cli->args.fields;
    begin_list(g);
    int r = vigil_list(g->cli->client, &g->kind->r, g->ns, &opts, on_object, g, err);
    if (r == 0 && g->err == 0)
        end_list(g);
    return r;
}

/* ---- tables ---- */

static int put_object(struct get *g, struct vigil_text json, struct vigil_error *err)
{
    const struct vigil_object *o = vigil_object_parse(json, err);
    if (!o)
        return err->code;
    vg_columns_row(&g->columns, &g->table, o, g->now_s);
    vigil_object_unref(o);
    g->n++;
    return 0;
}

static int put_objects(struct get *g, struct vigil_value answer, struct vigil_error *err)
{
    struct vigil_value v, items = vigil_value_get(answer, "items");
    int r = 0;
    if (g->table.columns == 0) {
        vg_table_init(&g->table, vg_columns_count(&g->columns));
        vg_columns_head(&g->columns, &g->table);
    }
    if (g->cli->args.name)
        return put_object(g, answer.raw, err);
    for (struct vigil_iter at = {0}; r == 0 && vigil_value_next(items, &at, NULL, &v);)
        r = put_object(g, v.raw, err);
    return r;
}

/* Pages are alike: tables or objects. */
static int put_answer(struct get *g, struct vigil_value answer, struct vigil_error *err)
{
    bool is_one = vg_server_table_is(answer), is_first = g->table.columns == 0;
    if (!is_first && is_one != (g->server_table.columns > 0)) {
        *err = (struct vigil_error){.code = VIGIL_E_INVALID};
        snprintf(err->message, sizeof err->message,
                 "the server answers with a table for one page and objects for another");
        return err->code;
    }
    if (!is_one)
        return put_objects(g, answer, err);
    g->err = vg_server_table_put(&g->server_table, answer, &g->table);
    g->n = vg_table_rows(&g->table) - 1;
    return 0;
}

/* Page after page; *ret_next is the token of the next, "" behind the last. */
static int ask_page(struct get *g, struct vg_buf *next, struct vigil_error *err)
{
    const struct vg_args *a = &g->cli->args;
    VG_AUTO(buf) path = {0};
    int r = vg_cli_path(&path, &g->kind->r, g->ns, a->name);
    const char *const query[][2] = {{"labelSelector", a->labels},
                                    {"fieldSelector", a->fields},
                                    {"limit", a->name ? NULL : PAGE},
                                    {"continue", next->n ? next->p : NULL}};
    for (size_t i = 0; r == 0 && i < VG_ARRAY_LEN(query); i++)
        r = vg_cli_path_query(&path, query[i][0], query[i][1]);
    if (r == 0)
        r = vg_buf_append_byte(&path, 0);
    if (r < 0)
        return g->err = r;
    vg_buf_clear(&g->text);
    r = vg_cli_fetch(g->cli, path.p, VG_SERVER_TABLE_ACCEPT, &g->text, err);
    if (r < 0)
        return r;
    struct vigil_value answer = {VIGIL_OBJECT, {g->text.p, g->text.n}};
    struct vigil_text token = vigil_value_string(vigil_value_get(answer, "metadata.continue"));
    vg_buf_clear(next);
    if (!a->name && token.n &&
        (vg_buf_append(next, token.p, token.n) < 0 || vg_buf_append_byte(next, 0) < 0))
        return g->err = VIGIL_E_MEMORY;
    return put_answer(g, answer, err);
}

static int get_table(struct get *g, struct vigil_error *err)
{
    VG_AUTO(buf) next = {0};
    int r;
    do
        r = ask_page(g, &next, err);
    while (r == 0 && g->err == 0 && next.n);
    return r;
}

/* ---- all of it ---- */

static void say_nothing_found(const struct get *g)
{
    if (g->ns)
        fprintf(stderr, "No %s found in namespace %s; -A looks in all.\n", g->kind->r.plural,
                g->ns);
    else
        fprintf(stderr, "No %s found.\n", g->kind->r.plural);
}

static int show(struct get *g)
{
    const struct vg_args *a = &g->cli->args;
    struct vigil_error err = {0};
    int r = is_table(g) ? get_table(g, &err) : a->name ? get_one(g, &err) : get_all(g, &err);
    if (g->err < 0)
        return vg_cli_cannot_print(g->err);
    if (r < 0)
        return vg_cli_complain(g->cli, &err);
    if (g->n == 0 && (is_table(g) || a->output == VG_OUT_NAME))
        say_nothing_found(g);
    else if (is_table(g))
        return vg_print_table(&g->table);
    return vg_cli_flush();
}

int vg_cmd_get(struct vg_cli *cli)
{
    struct get g = {.cli = cli};
    int status = vg_cli_kind(cli, &g.kind);
    if (status != VG_EXIT_OK)
        return status;
    if (cli->args.name && (cli->args.labels || cli->args.fields)) {
        fputs("vigil: a name needs no selector: leave out one of them\n", stderr);
        return VG_EXIT_USAGE;
    }
    bool has_namespace = cli->args.all_namespaces && g.kind->r.namespaced;
    bool is_wide = cli->args.output == VG_OUT_WIDE;
    g.ns = vg_cli_namespace(cli, g.kind);
    g.now_s = vg_clock_wall_ms(vg_clock_system()) / 1000;
    g.columns = vg_columns_of(&g.kind->r, has_namespace, is_wide);
    g.server_table = (struct vg_server_table){.has_namespace = has_namespace, .is_wide = is_wide};
    status = show(&g);
    vg_table_done(&g.table);
    vg_buf_done(&g.text);
    return status;
}

/* ---- kinds ---- */

int vg_cmd_kinds(struct vg_cli *cli)
{
    static const char *const heads[] = {"NAME", "SHORT", "APIVERSION", "NAMESPACED", "KIND"};
    struct vigil_error err;
    struct vg_table t;
    if (vg_kinds_all(cli, &err) < 0)
        return vg_cli_complain(cli, &err);
    vg_table_init(&t, VG_ARRAY_LEN(heads));
    for (size_t i = 0; i < VG_ARRAY_LEN(heads); i++)
        vg_table_put_str(&t, heads[i]);
    for (const struct vg_kind *k = cli->kinds.first; k; k = k->next) {
        if (!k->can_list)
            continue;
        vg_table_put_str(&t, k->r.plural);
        vg_table_put_str(&t, k->shorts);
        vg_table_printf(&t, "%s%s%s", k->r.group, *k->r.group ? "/" : "", k->r.version);
        vg_table_put_str(&t, k->r.namespaced ? "true" : "false");
        vg_table_put_str(&t, k->r.kind);
    }
    int status = vg_print_table(&t);
    vg_table_done(&t);
    if (cli->kinds.failed_groups)
        fprintf(stderr, "%u groups do not answer and are not listed.\n", cli->kinds.failed_groups);
    return status;
}
