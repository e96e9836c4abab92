/* columns.c - NAMESPACE, NAME, what a kind has of a status, AGE. */
#include <stdio.h>

#include "age.h"
#include "columns.h"

static struct vg_slice slice_of(struct vigil_text t)
{
    return (struct vg_slice){t.p, t.n};
}

/* ---- status ---- */

static void put_phase(const struct vg_columns *c, const struct vigil_object *o, struct vg_table *t)
{
    (void)c;
    if (vigil_get(o, "metadata.deletionTimestamp").type == VIGIL_STRING)
        vg_table_put_str(t, "Terminating");
    else
        vg_table_put(t, slice_of(vigil_get_string(o, "status.phase")));
}

/* A node is ready when its condition says so; one that nobody hears of says nothing. */
static void put_node(const struct vg_columns *c, const struct vigil_object *o, struct vg_table *t)
{
    struct vigil_value v, conditions = vigil_get(o, "status.conditions");
    const char *text = "Unknown";
    (void)c;
    for (struct vigil_iter at = {0}; vigil_value_next(conditions, &at, NULL, &v);) {
        struct vigil_text is = vigil_value_string(vigil_value_get(v, "status"));
        if (!vigil_text_is(vigil_value_string(vigil_value_get(v, "type")), "Ready"))
            continue;
        text = vigil_text_is(is, "True")    ? "Ready"
               : vigil_text_is(is, "False") ? "NotReady"
                                            : "Unknown";
    }
    vg_table_put_str(t, text);
}

static void put_ready(const struct vg_columns *c, const struct vigil_object *o, struct vg_table *t)
{
    vg_table_printf(t, "%lld/%lld", (long long)vigil_get_int(o, c->ready, 0),
                    (long long)vigil_get_int(o, c->wanted, 0));
}

static const struct {
    const char *group, *plural;
    struct vg_columns columns;
} table[] = {
    {"", "pods", {.status_name = "STATUS", .status = put_phase}},
    {"", "namespaces", {.status_name = "STATUS", .status = put_phase}},
    {"", "persistentvolumes", {.status_name = "STATUS", .status = put_phase}},
    {"", "persistentvolumeclaims", {.status_name = "STATUS", .status = put_phase}},
    {"", "nodes", {.status_name = "STATUS", .status = put_node}},
    {"apps", "deployments", {false, "READY", put_ready, "status.readyReplicas", "spec.replicas"}},
    {"apps", "replicasets", {false, "READY", put_ready, "status.readyReplicas", "spec.replicas"}},
    {"apps", "statefulsets", {false, "READY", put_ready, "status.readyReplicas", "spec.replicas"}},
    {"apps",
     "daemonsets",
     {false, "READY", put_ready, "status.numberReady", "status.desiredNumberScheduled"}},
};

/* ---- rows ---- */

struct vg_columns vg_columns_of(const struct vigil_resource *r, bool has_namespace)
{
    struct vg_columns c = {0};
    for (size_t i = 0; i < VG_ARRAY_LEN(table); i++)
        if (strcmp(table[i].group, r->group) == 0 && strcmp(table[i].plural, r->plural) == 0)
            c = table[i].columns;
    c.has_namespace = has_namespace;
    return c;
}

unsigned vg_columns_count(const struct vg_columns *c)
{
    return 2u + c->has_namespace + (c->status_name != NULL);
}

void vg_columns_head(const struct vg_columns *c, struct vg_table *t)
{
    if (c->has_namespace)
        vg_table_put_str(t, "NAMESPACE");
    vg_table_put_str(t, "NAME");
    if (c->status_name)
        vg_table_put_str(t, c->status_name);
    vg_table_put_str(t, "AGE");
}

void vg_columns_age(struct vg_table *t, struct vigil_text time, int64_t now_s)
{
    char text[VG_AGE_SIZE] = "<unknown>";
    int64_t then_s;
    if (time.n && vg_age_parse(slice_of(time), &then_s))
        vg_age_text(now_s - then_s, text);
    vg_table_put_str(t, text);
}

void vg_columns_row(const struct vg_columns *c, struct vg_table *t, const struct vigil_object *o,
                    int64_t now_s)
{
    if (c->has_namespace)
        vg_table_put(t, slice_of(vigil_object_namespace(o)));
    vg_table_put(t, slice_of(vigil_object_name(o)));
    if (c->status_name)
        c->status(c, o, t);
    vg_columns_age(t, vigil_get_string(o, "metadata.creationTimestamp"), now_s);
}
