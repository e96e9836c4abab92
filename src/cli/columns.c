/* columns.c - NAMESPACE, NAME, what a kind is looked at for, AGE; the names are kubectl's. */
#include <stdio.h>

#include "base/age.h"
#include "columns.h"

static struct vg_slice slice_of(struct vigil_text t)
{
    return (struct vg_slice){t.p, t.n};
}

/* ---- cells of any kind ---- */

static void put_none(struct vg_table *t, struct vigil_text text)
{
    if (text.n)
        vg_table_put(t, slice_of(text));
    else
        vg_table_put_str(t, "<none>");
}

static void put_text(const struct vg_column *c, const struct vigil_object *o, struct vg_table *t)
{
    put_none(t, vigil_get_string(o, c->path));
}

static void put_int(const struct vg_column *c, const struct vigil_object *o, struct vg_table *t)
{
    vg_table_printf(t, "%lld", (long long)vigil_get_int(o, c->path, 0));
}

/* So many of so many. */
static void put_of(const struct vg_column *c, const struct vigil_object *o, struct vg_table *t)
{
    vg_table_printf(t, "%lld/%lld", (long long)vigil_get_int(o, c->path, 0),
                    (long long)vigil_get_int(o, c->path2, 0));
}

static unsigned members(struct vigil_value v)
{
    struct vigil_value each;
    unsigned n = 0;
    for (struct vigil_iter at = {0}; vigil_value_next(v, &at, NULL, &each);)
        n++;
    return n;
}

/* How many members one or two objects have. */
static void put_count(const struct vg_column *c, const struct vigil_object *o, struct vg_table *t)
{
    unsigned n = members(vigil_get(o, c->path));
    vg_table_printf(t, "%u", c->path2 ? n + members(vigil_get(o, c->path2)) : n);
}

static bool is_going(const struct vigil_object *o)
{
    return vigil_get(o, "metadata.deletionTimestamp").type == VIGIL_STRING;
}

static void put_phase(const struct vg_column *c, const struct vigil_object *o, struct vg_table *t)
{
    (void)c;
    if (is_going(o))
        vg_table_put_str(t, "Terminating");
    else
        put_none(t, vigil_get_string(o, "status.phase"));
}

/* ---- pods ---- */

static bool is_always(struct vigil_value container)
{
    return vigil_text_is(vigil_value_string(vigil_value_get(container, "restartPolicy")), "Always");
}

/* Init containers that go on beside the others count among them. */
static bool is_sidecar(const struct vigil_object *o, struct vigil_text name)
{
    struct vigil_value v, all = vigil_get(o, "spec.initContainers");
    for (struct vigil_iter at = {0}; vigil_value_next(all, &at, NULL, &v);) {
        struct vigil_text t = vigil_value_string(vigil_value_get(v, "name"));
        if (t.n == name.n && t.n && memcmp(t.p, name.p, t.n) == 0)
            return is_always(v);
    }
    return false;
}

struct pod_counts {
    unsigned containers, ready;
    int64_t restarts;
};

static void count_status(struct vigil_value v, struct pod_counts *n)
{
    int64_t restarts = vigil_value_int(vigil_value_get(v, "restartCount"), 0);
    n->ready += vigil_value_bool(vigil_value_get(v, "ready"), false);
    n->restarts += VG_MAX(VG_MIN(restarts, (int64_t)INT32_MAX), (int64_t)0);
}

static struct pod_counts count_pod(const struct vigil_object *o)
{
    struct pod_counts n = {.containers = members(vigil_get(o, "spec.containers"))};
    struct vigil_value v, init = vigil_get(o, "spec.initContainers");
    struct vigil_value statuses = vigil_get(o, "status.containerStatuses");
    struct vigil_value init_statuses = vigil_get(o, "status.initContainerStatuses");
    for (struct vigil_iter at = {0}; vigil_value_next(init, &at, NULL, &v);)
        n.containers += is_always(v);
    for (struct vigil_iter at = {0}; vigil_value_next(statuses, &at, NULL, &v);)
        count_status(v, &n);
    for (struct vigil_iter at = {0}; vigil_value_next(init_statuses, &at, NULL, &v);)
        if (is_sidecar(o, vigil_value_string(vigil_value_get(v, "name"))))
            count_status(v, &n);
    return n;
}

static void put_ready(const struct vg_column *c, const struct vigil_object *o, struct vg_table *t)
{
    struct pod_counts n = count_pod(o);
    (void)c;
    vg_table_printf(t, "%u/%u", n.ready, n.containers);
}

static void put_restarts(const struct vg_column *c, const struct vigil_object *o,
                         struct vg_table *t)
{
    (void)c;
    vg_table_printf(t, "%lld", (long long)count_pod(o).restarts);
}

/* Held back on purpose, not waiting for a place. */
static bool is_gated(const struct vigil_object *o)
{
    struct vigil_value v, conditions = vigil_get(o, "status.conditions");
    for (struct vigil_iter at = {0}; vigil_value_next(conditions, &at, NULL, &v);)
        if (vigil_text_is(vigil_value_string(vigil_value_get(v, "type")), "PodScheduled"))
            return vigil_text_is(vigil_value_string(vigil_value_get(v, "reason")),
                                 "SchedulingGated");
    return false;
}

/* What keeps a container from running says more than the phase. */
static void put_pod(const struct vg_column *c, const struct vigil_object *o, struct vg_table *t)
{
    struct vigil_value v, statuses = vigil_get(o, "status.containerStatuses");
    struct vigil_text text = vigil_get_string(o, "status.reason");
    if (!text.n)
        text = vigil_get_string(o, "status.phase");
    for (struct vigil_iter at = {0}; vigil_value_next(statuses, &at, NULL, &v);) {
        struct vigil_text why = vigil_value_string(vigil_value_get(v, "state.waiting.reason"));
        if (!why.n)
            why = vigil_value_string(vigil_value_get(v, "state.terminated.reason"));
        text = why.n ? why : text;
    }
    if (is_going(o))
        put_phase(c, o, t);
    else
        put_none(t, is_gated(o) ? vigil_text("SchedulingGated") : text);
}

/* ---- nodes, services ---- */

/* A node is ready when its condition says so; one that nobody hears of says nothing. */
static void put_node(const struct vg_column *c, const struct vigil_object *o, struct vg_table *t)
{
    struct vigil_value v, conditions = vigil_get(o, "status.conditions");
    const char *text = "Unknown";
    bool is_closed = vigil_value_bool(vigil_get(o, "spec.unschedulable"), false);
    (void)c;
    for (struct vigil_iter at = {0}; vigil_value_next(conditions, &at, NULL, &v);) {
        struct vigil_text is = vigil_value_string(vigil_value_get(v, "status"));
        if (!vigil_text_is(vigil_value_string(vigil_value_get(v, "type")), "Ready"))
            continue;
        text = vigil_text_is(is, "True")    ? "Ready"
               : vigil_text_is(is, "False") ? "NotReady"
                                            : "Unknown";
    }
    vg_table_printf(t, "%s%s", text, is_closed ? ",SchedulingDisabled" : "");
}

/* 80/TCP,443:30443/TCP; a text that does not fit is cut. */
static void put_ports(const struct vg_column *c, const struct vigil_object *o, struct vg_table *t)
{
    struct vigil_value v, ports = vigil_get(o, "spec.ports");
    char text[200] = "";
    int n = 0;
    (void)c;
    for (struct vigil_iter at = {0};
         n < (int)sizeof text && vigil_value_next(ports, &at, NULL, &v);) {
        struct vigil_text protocol = vigil_value_string(vigil_value_get(v, "protocol"));
        int64_t node = vigil_value_int(vigil_value_get(v, "nodePort"), 0);
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%lld", n ? "," : "",
                      (long long)vigil_value_int(vigil_value_get(v, "port"), 0));
        if (node && n < (int)sizeof text)
            n += snprintf(text + n, sizeof text - (size_t)n, ":%lld", (long long)node);
        if (n < (int)sizeof text)
            n += snprintf(text + n, sizeof text - (size_t)n, "/%.*s",
                          VIGIL_TEXT_ARG(protocol.n ? protocol : vigil_text("TCP")));
    }
    put_none(t, vigil_text(text));
}

/* ---- kinds ---- */

static const struct {
    const char *group, *plural;
    struct vg_column own[VG_COLUMNS_OWN_MAX], wide[VG_COLUMNS_OWN_MAX];
} table[] = {
    {"",
     "pods",
     {{"READY", put_ready, NULL, NULL},
      {"STATUS", put_pod, NULL, NULL},
      {"RESTARTS", put_restarts, NULL, NULL}},
     {{"IP", put_text, "status.podIP", NULL}, {"NODE", put_text, "spec.nodeName", NULL}}},
    {"", "namespaces", {{"STATUS", put_phase, NULL, NULL}}, {{0}}},
    {"",
     "nodes",
     {{"STATUS", put_node, NULL, NULL},
      {"VERSION", put_text, "status.nodeInfo.kubeletVersion", NULL}},
     {{"OS-IMAGE", put_text, "status.nodeInfo.osImage", NULL},
      {"CONTAINER-RUNTIME", put_text, "status.nodeInfo.containerRuntimeVersion", NULL}}},
    {"",
     "services",
     {{"TYPE", put_text, "spec.type", NULL},
      {"CLUSTER-IP", put_text, "spec.clusterIP", NULL},
      {"PORT(S)", put_ports, NULL, NULL}},
     {{0}}},
    {"", "configmaps", {{"DATA", put_count, "data", "binaryData"}}, {{0}}},
    {"", "secrets", {{"TYPE", put_text, "type", NULL}, {"DATA", put_count, "data", NULL}}, {{0}}},
    {"",
     "persistentvolumes",
     {{"CAPACITY", put_text, "spec.capacity.storage", NULL},
      {"STATUS", put_phase, NULL, NULL},
      {"STORAGECLASS", put_text, "spec.storageClassName", NULL}},
     {{0}}},
    {"",
     "persistentvolumeclaims",
     {{"STATUS", put_phase, NULL, NULL},
      {"VOLUME", put_text, "spec.volumeName", NULL},
      {"STORAGECLASS", put_text, "spec.storageClassName", NULL}},
     {{0}}},
    {"apps",
     "deployments",
     {{"READY", put_of, "status.readyReplicas", "spec.replicas"},
      {"UP-TO-DATE", put_int, "status.updatedReplicas", NULL},
      {"AVAILABLE", put_int, "status.availableReplicas", NULL}},
     {{0}}},
    {"apps",
     "replicasets",
     {{"DESIRED", put_int, "spec.replicas", NULL},
      {"CURRENT", put_int, "status.replicas", NULL},
      {"READY", put_int, "status.readyReplicas", NULL}},
     {{0}}},
    {"apps", "statefulsets", {{"READY", put_of, "status.readyReplicas", "spec.replicas"}}, {{0}}},
    {"apps",
     "daemonsets",
     {{"DESIRED", put_int, "status.desiredNumberScheduled", NULL},
      {"CURRENT", put_int, "status.currentNumberScheduled", NULL},
      {"READY", put_int, "status.numberReady", NULL}},
     {{0}}},
    {"batch", "jobs", {{"COMPLETIONS", put_of, "status.succeeded", "spec.completions"}}, {{0}}},
    {"batch", "cronjobs", {{"SCHEDULE", put_text, "spec.schedule", NULL}}, {{0}}},
    {"coordination.k8s.io", "leases", {{"HOLDER", put_text, "spec.holderIdentity", NULL}}, {{0}}},
};

struct vg_columns vg_columns_of(const struct vigil_resource *r, bool has_namespace, bool is_wide)
{
    struct vg_columns c = {.has_namespace = has_namespace, .is_wide = is_wide};
    for (size_t i = 0; i < VG_ARRAY_LEN(table); i++)
        if (strcmp(table[i].group, r->group) == 0 && strcmp(table[i].plural, r->plural) == 0) {
            memcpy(c.own, table[i].own, sizeof c.own);
            memcpy(c.wide, table[i].wide, sizeof c.wide);
        }
    return c;
}

/* ---- rows ---- */

static unsigned count_of(const struct vg_column *v)
{
    unsigned n = 0;
    while (n < VG_COLUMNS_OWN_MAX && v[n].name)
        n++;
    return n;
}

unsigned vg_columns_count(const struct vg_columns *c)
{
    return 2u + c->has_namespace + count_of(c->own) + (c->is_wide ? count_of(c->wide) : 0);
}

static void put_names(const struct vg_column *v, struct vg_table *t)
{
    for (unsigned i = 0; i < count_of(v); i++)
        vg_table_put_str(t, v[i].name);
}

static void put_cells(const struct vg_column *v, const struct vigil_object *o, struct vg_table *t)
{
    for (unsigned i = 0; i < count_of(v); i++)
        v[i].put(&v[i], o, t);
}

void vg_columns_head(const struct vg_columns *c, struct vg_table *t)
{
    if (c->has_namespace)
        vg_table_put_str(t, "NAMESPACE");
    vg_table_put_str(t, "NAME");
    put_names(c->own, t);
    vg_table_put_str(t, "AGE");
    if (c->is_wide)
        put_names(c->wide, t);
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
    put_cells(c->own, o, t);
    vg_columns_age(t, vigil_get_string(o, "metadata.creationTimestamp"), now_s);
    if (c->is_wide)
        put_cells(c->wide, o, t);
}
