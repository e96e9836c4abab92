/* server_table.c - columns and cells of a server's Table. Columns of a priority other than 0 are
 * shown when it is to be wide. */
#include <ctype.h>
#include <stdio.h>

#include "server_table.h"

/* A cell is cut at this many bytes; those of kube-apiserver are names, counts and short lists. */
#define CELL_SIZE 1024u

bool vg_server_table_is(struct vigil_value answer)
{
    return vigil_text_is(vigil_value_string(vigil_value_get(answer, "kind")), "Table");
}

static bool is_shown(const struct vg_server_table *s, struct vigil_value definition)
{
    return s->is_wide || vigil_value_int(vigil_value_get(definition, "priority"), 0) == 0;
}

static void put_cell(struct vg_table *t, struct vigil_value v)
{
    char text[CELL_SIZE];
    if (v.type == VIGIL_STRING && vigil_value_copy(v, text, sizeof text) >= 0)
        vg_table_put_str(t, text);
    else if (v.type == VIGIL_NULL || v.type == VIGIL_NONE)
        vg_table_put_str(t, "<none>");
    else
        vg_table_put(t, vg_slice(v.raw.p, VG_MIN(v.raw.n, (size_t)CELL_SIZE)));
}

static void put_head(struct vg_server_table *s, struct vigil_value definitions, struct vg_table *t)
{
    struct vigil_value d;
    char name[128];
    if (s->has_namespace)
        vg_table_put_str(t, "NAMESPACE");
    for (struct vigil_iter at = {0};
         t->n < s->columns && vigil_value_next(definitions, &at, NULL, &d);) {
        if (!is_shown(s, d))
            continue;
        if (vigil_value_copy(vigil_value_get(d, "name"), name, sizeof name) < 0)
            name[0] = 0;
        for (char *p = name; *p; p++)
            *p = (char)toupper((unsigned char)*p);
        vg_table_put_str(t, name);
    }
}

/* As many cells as there are columns, whatever the row has. */
static void put_row(struct vg_server_table *s, struct vigil_value definitions,
                    struct vigil_value row, struct vg_table *t)
{
    struct vigil_value cells = vigil_value_get(row, "cells"), cell, d;
    struct vigil_iter at = {0}, def = {0};
    unsigned n = s->has_namespace;
    if (s->has_namespace)
        put_cell(t, vigil_value_get(row, "object.metadata.namespace"));
    while (n < s->columns && vigil_value_next(definitions, &def, NULL, &d)) {
        if (!vigil_value_next(cells, &at, NULL, &cell))
            cell = (struct vigil_value){0};
        if (!is_shown(s, d))
            continue;
        put_cell(t, cell);
        n++;
    }
    for (; n < s->columns; n++)
        vg_table_put_str(t, "");
}

static void begin(struct vg_server_table *s, struct vigil_value definitions, struct vg_table *t)
{
    struct vigil_value d;
    s->columns = s->has_namespace;
    for (struct vigil_iter at = {0}; vigil_value_next(definitions, &at, NULL, &d);)
        s->columns += is_shown(s, d);
    s->columns = VG_MIN(VG_MAX(s->columns, 1u), VG_TABLE_COLUMNS_MAX);
    vg_table_init(t, s->columns);
    put_head(s, definitions, t);
    while (t->err == 0 && t->n < s->columns)
        vg_table_put_str(t, "");
}

int vg_server_table_put(struct vg_server_table *s, struct vigil_value answer, struct vg_table *t)
{
    struct vigil_value row, rows = vigil_value_get(answer, "rows");
    struct vigil_value definitions = vigil_value_get(answer, "columnDefinitions");
    if (!s->columns)
        begin(s, definitions, t);
    for (struct vigil_iter at = {0}; vigil_value_next(rows, &at, NULL, &row);)
        put_row(s, definitions, row, t);
    return t->err;
}
