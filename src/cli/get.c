/* get.c - vigil get and vigil kinds: what is there now. */
#include <stdio.h>

#include "base/clock.h"
#include "print.h"

struct get {
    struct vg_cli *cli;
    const struct vg_kind *kind;
    struct vg_columns columns;
    struct vg_table table;
    struct vg_buf json;
    int64_t now_s;
    size_t n;
    int err;
};

static void put_json(struct get *g, const struct vigil_object *o)
{
    bool is_list = !g->cli->args.name;
    vg_buf_clear(&g->json);
    g->err = vg_print_json(&g->json, vigil_object_json(o), is_list ? 2 : 0);
    if (g->err == 0)
        printf("%s%.*s",
               !is_list ? ""
               : g->n   ? ",\n        "
                        : "\n        ",
               VG_SLICE_ARG(vg_buf_slice(&g->json)));
}

static bool on_object(void *arg, const struct vigil_object *o)
{
    struct get *g = arg;
    switch (g->cli->args.output) {
    case VG_OUT_TABLE:
        vg_columns_row(&g->columns, &g->table, o, g->now_s);
        g->err = g->table.err;
        break;
    case VG_OUT_NAME:
        vg_print_name(g->kind, o);
        break;
    case VG_OUT_JSON:
        put_json(g, o);
        break;
    }
    g->n++;
    return g->err == 0;
}

static int get_one(struct get *g, const char *ns, struct vigil_error *err)
{
    const struct vigil_object *o;
    int r = vigil_read(g->cli->client, &g->kind->r, ns, g->cli->args.name, &o, err);
    if (r < 0)
        return r;
    on_object(g, o);
    vigil_object_unref(o);
    return 0;
}

static int get_all(struct get *g, const char *ns, struct vigil_error *err)
{
    struct vigil_list_opts opts = VIGIL_INIT(struct vigil_list_opts);
    opts.label_selector = g->cli->args.labels;
    opts.field_selector = g->cli->args.fields;
    return vigil_list(g->cli->client, &g->kind->r, ns, &opts, on_object, g, err);
}

static void say_nothing_found(const struct get *g, const char *ns)
{
    if (ns)
        fprintf(stderr, "No %s found in namespace %s; -A looks in all.\n", g->kind->r.plural, ns);
    else
        fprintf(stderr, "No %s found.\n", g->kind->r.plural);
}

static int show(struct get *g, const char *ns)
{
    const struct vg_args *a = &g->cli->args;
    bool is_json = a->output == VG_OUT_JSON;
    struct vigil_error err;
    if (is_json && !a->name)
        printf("{\n    \"apiVersion\": \"v1\",\n    \"kind\": \"List\",\n    \"items\": [");
    int r = a->name ? get_one(g, ns, &err) : get_all(g, ns, &err);
    if (g->err < 0)
        return vg_cli_no_memory();
    if (r < 0)
        return vg_cli_complain(g->cli, &err);
    if (is_json)
        printf(a->name ? "\n" : "%s]\n}\n", g->n ? "\n    " : "");
    else if (g->n == 0)
        say_nothing_found(g, ns);
    else if (a->output == VG_OUT_TABLE)
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
    g.now_s = vg_clock_wall_ms(vg_clock_system()) / 1000;
    g.columns = vg_columns_of(&g.kind->r, cli->args.all_namespaces && g.kind->r.namespaced);
    vg_table_init(&g.table, vg_columns_count(&g.columns));
    vg_columns_head(&g.columns, &g.table);
    status = show(&g, vg_cli_namespace(cli, g.kind));
    vg_table_done(&g.table);
    vg_buf_done(&g.json);
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
