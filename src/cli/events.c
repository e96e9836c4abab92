/* events.c - vigil events: what was reported about objects, by the time it was last seen. With
 * --watch it goes on, a line for each event that is new or seen again. */
#include <stdio.h>
#include <stdlib.h>

#include "base/age.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "print.h"

struct seen {
    const struct vigil_object *o;
    int64_t at_s;
};

struct events {
    struct vg_cli *cli;
    bool has_namespace;
    struct vg_table table;
    struct seen *seen;
    size_t n, cap;
    bool is_synced;
    int status; /* of the end; -1: not yet */
};

/* 1 KiB: the most that the server lets a message have. */
#define MESSAGE_SIZE 1025u

/* Old events have lastTimestamp, new ones eventTime, series of new ones a time of their own. */
static struct vigil_text time_of(const struct vigil_object *o)
{
    static const char *const paths[] = {"series.lastObservedTime", "lastTimestamp", "eventTime",
                                        "metadata.creationTimestamp"};
    struct vigil_text t = {"", 0};
    for (size_t i = 0; i < VG_ARRAY_LEN(paths) && !t.n; i++)
        t = vigil_get_string(o, paths[i]);
    return t;
}

/* ---- rows ---- */

static unsigned columns_of(const struct events *e)
{
    return 5u + e->has_namespace;
}

static void put_head(struct events *e)
{
    static const char *const heads[] = {"LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"};
    if (e->has_namespace)
        vg_table_put_str(&e->table, "NAMESPACE");
    for (size_t i = 0; i < VG_ARRAY_LEN(heads); i++)
        vg_table_put_str(&e->table, heads[i]);
}

static void put_row(struct events *e, const struct vigil_object *o)
{
    char message[MESSAGE_SIZE];
    struct vigil_text kind = vigil_get_string(o, "involvedObject.kind");
    struct vigil_text name = vigil_get_string(o, "involvedObject.name");
    if (vigil_value_copy(vigil_get(o, "message"), message, sizeof message) < 0)
        message[0] = 0;
    if (e->has_namespace)
        vg_table_put(&e->table, vg_cli_slice(vigil_object_namespace(o)));
    vg_columns_age(&e->table, time_of(o), vg_clock_wall_ms(vg_clock_system()) / 1000);
    vg_table_put(&e->table, vg_cli_slice(vigil_get_string(o, "type")));
    vg_table_put(&e->table, vg_cli_slice(vigil_get_string(o, "reason")));
    vg_table_printf(&e->table, "%.*s/%.*s", VIGIL_TEXT_ARG(kind), VIGIL_TEXT_ARG(name));
    vg_table_put_str(&e->table, message);
}

static int by_time(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;
    return (x->at_s > y->at_s) - (x->at_s < y->at_s);
}

static bool keep(void *arg, const struct vigil_object *o)
{
    struct events *e = arg;
    if (e->n == e->cap) {
        size_t cap = e->cap ? e->cap * 2 : 64;
        void *seen = vg_reallocarray(e->seen, cap, sizeof e->seen[0]);
        if (!seen) {
            e->table.err = VIGIL_E_MEMORY;
            return false;
        }
        e->seen = seen;
        e->cap = cap;
    }
    struct seen *s = &e->seen[e->n++];
    *s = (struct seen){.o = vigil_object_ref(o)};
    if (!vg_age_parse(vg_cli_slice(time_of(o)), &s->at_s))
        s->at_s = 0;
    return true;
}

/* What was kept, in order; then nothing is kept. */
static int print_kept(struct events *e)
{
    if (e->n)
        qsort(e->seen, e->n, sizeof e->seen[0], by_time);
    put_head(e);
    for (size_t i = 0; i < e->n; i++)
        put_row(e, e->seen[i].o);
    int status = vg_print_table(&e->table);
    vg_table_clear(&e->table);
    for (size_t i = 0; i < e->n; i++)
        vigil_object_unref(e->seen[i].o);
    e->n = 0;
    return status;
}

/* ---- now ---- */

static int list_events(struct events *e, const char *ns)
{
    struct vigil_error err;
    int r = vigil_list(e->cli->client, &vigil_events, ns, NULL, keep, e, &err);
    if (e->table.err < 0)
        return vg_cli_no_memory();
    if (r < 0)
        return vg_cli_complain(e->cli, &err);
    if (e->n == 0 && ns)
        fprintf(stderr, "No events in namespace %s; -A looks in all.\n", ns);
    else if (e->n == 0)
        fprintf(stderr, "No events.\n");
    return e->n ? print_kept(e) : VG_EXIT_OK;
}

/* ---- and from now on ---- */

static void print_one(struct events *e, const struct vigil_object *o)
{
    if (e->status >= 0)
        return;
    put_row(e, o);
    int status = vg_print_table(&e->table);
    vg_table_clear(&e->table);
    if (status != VG_EXIT_OK)
        e->status = status;
}

static void on_add(void *arg, const struct vigil_object *o, bool is_initial)
{
    struct events *e = arg;
    if (!is_initial || e->is_synced)
        print_one(e, o);
    else if (!keep(e, o))
        e->status = vg_cli_no_memory();
}

static void on_update(void *arg, const struct vigil_object *before, const struct vigil_object *o)
{
    if (vg_cli_is_changed(before, o))
        print_one(arg, o);
}

static void on_synced(void *arg)
{
    struct events *e = arg;
    e->is_synced = true;
    int status = print_kept(e);
    if (status != VG_EXIT_OK)
        e->status = status;
}

static void on_error(void *arg, const struct vigil_error *err)
{
    struct events *e = arg;
    if (!e->is_synced && e->status < 0)
        e->status = vg_cli_complain(e->cli, err);
}

static int follow(struct events *e, const char *ns)
{
    struct vigil_informer_opts opts = {.size = sizeof opts,
                                       .resource = &vigil_events,
                                       .ns = ns,
                                       .on_error = on_error,
                                       .on_lost = vg_cli_say_lost,
                                       .on_back = vg_cli_say_back,
                                       .arg = e};
    struct vigil_handler h = {.size = sizeof h,
                              .on_add = on_add,
                              .on_update = on_update,
                              .on_synced = on_synced,
                              .arg = e};
    struct vigil_informer *informer;
    struct vigil_error err;
    if (vg_terminal_catch() < 0 || vigil_informer_new(e->cli->client, &opts, &informer, &err) < 0)
        return vg_cli_no_memory();
    if (vigil_informer_add_handler(informer, &h, NULL, &err) < 0 ||
        vigil_informer_start(informer) < 0)
        e->status = vg_cli_no_memory();
    while (e->status < 0)
        if (vg_terminal_turn(&e->cli->terminal, e->cli->client, -1) & VG_SAW_INTERRUPT)
            e->status = VG_EXIT_INTERRUPTED;
    vigil_informer_free(informer);
    return e->status;
}

int vg_cmd_events(struct vg_cli *cli)
{
    struct events e = {.cli = cli, .has_namespace = cli->args.all_namespaces, .status = -1};
    const struct vg_kind kind = {.r = vigil_events};
    const char *ns = vg_cli_namespace(cli, &kind);
    vg_table_init(&e.table, columns_of(&e));
    int status = cli->args.follow ? follow(&e, ns) : list_events(&e, ns);
    for (size_t i = 0; i < e.n; i++)
        vigil_object_unref(e.seen[i].o);
    vg_free(e.seen);
    vg_table_done(&e.table);
    return status;
}
