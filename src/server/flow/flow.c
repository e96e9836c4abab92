/* flow.c - the configuration: levels by name, and tables of schemas. Rarely anything happens here:
 * only when an object changes, and when a loop sees that there is a newer table. */
#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/log.h"
#include "flow_int.h"

uint64_t vg_flow_hash(const struct vg_flow *f, struct vg_slice schema,
                      struct vg_slice distinguisher)
{
    uint64_t both[2] = {vg_hash(&f->hash_key, schema), vg_hash(&f->hash_key, distinguisher)};
    return vg_hash(&f->hash_key, vg_slice(both, sizeof both));
}

/* ---- levels ---- */

static void level_unref_locked(struct vg_flow_level *v)
{
    if (v && --v->refs == 0)
        vg_flow_level_free(v);
}

static struct vg_flow_level *find_level(struct vg_flow *f, struct vg_slice name)
{
    VG_LIST_FOREACH (n, &f->levels) {
        struct vg_flow_level *v = VG_CONTAINER_OF(n, struct vg_flow_level, link);
        if (vg_slice_eq(v->name, name))
            return v;
    }
    return NULL;
}

static int need_level(struct vg_flow *f, const struct vg_flow_level_spec *s)
{
    struct vg_flow_level *v = find_level(f, s->name);
    bool is_new = !v;
    if (is_new)
        v = vg_flow_level_new(s->name, s->is_exempt, f->opts.clock);
    if (!v)
        return -ENOMEM;
    int r = s->is_exempt ? 0 : vg_flow_level_set_queues(v, s->queues, s->hand, s->length);
    if (r < 0) {
        if (is_new)
            vg_flow_level_free(v);
        return r;
    }
    v->spec = *s;
    v->spec.name = v->spec.uid = VG_SLICE_LIT("");
    v->is_wanted = true;
    if (is_new)
        vg_list_push_back(&f->levels, &v->link);
    return 0;
}

/* Levels that nobody wants any more go when nothing runs in them. */
bool vg_flow_drop_unwanted(struct vg_flow *f)
{
    bool did_drop = false;
    VG_LIST_FOREACH_SAFE (n, &f->levels) {
        struct vg_flow_level *v = VG_CONTAINER_OF(n, struct vg_flow_level, link);
        if (v->is_wanted || !vg_flow_level_is_idle(v))
            continue;
        vg_list_remove(&v->link);
        level_unref_locked(v);
        did_drop = true;
    }
    return did_drop;
}

/* ---- tables ---- */

static void table_free_locked(struct vg_flow_table *t)
{
    for (size_t i = 0; i < t->n_levels; i++)
        level_unref_locked(t->levels[i]);
    vg_arena_done(&t->arena);
    vg_free(t);
}

void vg_flow_table_unref(struct vg_flow_table *t)
{
    if (!t || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1)
        return;
    struct vg_flow *f = t->flow;
    vg_mutex_lock(&f->mu);
    table_free_locked(t);
    vg_mutex_unlock(&f->mu);
}

struct vg_flow_table *vg_flow_table_newest(struct vg_flow *f)
{
    vg_mutex_lock(&f->mu);
    struct vg_flow_table *t = f->table;
    atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    vg_mutex_unlock(&f->mu);
    return t;
}

/* What is being configured. */
struct building {
    struct vg_flow_table *table;
    struct vg_flow_level_spec *specs;
    size_t n_specs, n_schemas;
};

#define SCHEMA_UID "X-Kubernetes-Pf-Flowschema-Uid"
#define LEVEL_UID "X-Kubernetes-Pf-Prioritylevel-Uid"

static int make_headers(struct vg_arena *a, struct vg_flow_schema *s, struct vg_slice level_uid)
{
    struct vg_http_block *b = &s->headers;
    b->fields[0] = (struct vg_http_field){VG_SLICE_LIT(SCHEMA_UID), s->uid};
    b->fields[1] = (struct vg_http_field){VG_SLICE_LIT(LEVEL_UID), level_uid};
    return vg_arena_printf(a, &b->lines, SCHEMA_UID ": %.*s\r\n" LEVEL_UID ": %.*s\r\n",
                           VG_SLICE_ARG(s->uid), VG_SLICE_ARG(level_uid));
}

static const struct vg_flow_level_spec *find_spec(const struct building *b, struct vg_slice name)
{
    for (size_t i = 0; i < b->n_specs; i++)
        if (vg_slice_eq(b->specs[i].name, name))
            return &b->specs[i];
    return NULL;
}

static int compare_schemas(const void *a, const void *b)
{
    const struct vg_flow_schema *x = a, *y = b;
    if (x->precedence != y->precedence)
        return x->precedence < y->precedence ? -1 : 1;
    return vg_slice_cmp(x->name, y->name);
}

static const struct vg_flow_schema *find_schema(const struct vg_flow_table *t, const char *name)
{
    for (size_t i = 0; i < t->n_schemas; i++)
        if (vg_slice_eq(t->schemas[i].name, vg_slice_str(name)))
            return &t->schemas[i];
    return NULL;
}

static int read_levels(struct vg_flow *f, struct building *b, const struct vg_slice *v, size_t n)
{
    static const char *const mandatory[] = {"exempt", "catch-all"};
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        r = vg_flow_read_level(&b->table->arena, v[i], &b->specs[b->n_specs]);
        b->n_specs += r == 0;
        if (r == VIGIL_E_INVALID) {
            vg_warn(f->opts.log, "priority_level_ignored", "object=%.*s",
                    (int)VG_MIN(v[i].n, (size_t)200), v[i].p);
            r = 0;
        }
    }
    for (size_t i = 0; i < VG_ARRAY_LEN(mandatory) && r == 0; i++) {
        if (find_spec(b, vg_slice_str(mandatory[i])))
            continue;
        r = vg_flow_default_level(&b->table->arena, mandatory[i], &b->specs[b->n_specs]);
        b->n_specs += r == 0;
    }
    return r;
}

static bool names_namespaces(const struct vg_flow_schema *s)
{
    for (size_t i = 0; i < s->n_rules; i++)
        for (size_t k = 0; k < s->rules[i].n_resources; k++) {
            const struct vg_flow_names *names = &s->rules[i].resources[k].namespaces;
            if (names->n && !names->is_all)
                return true;
        }
    return false;
}

static int read_schemas(struct vg_flow *f, struct building *b, const struct vg_slice *v, size_t n)
{
    struct vg_flow_table *t = b->table;
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        struct vg_flow_schema *s = &t->schemas[t->n_schemas];
        r = vg_flow_read_schema(&t->arena, v[i], s);
        if (r == 0 && find_spec(b, s->level_name))
            t->n_schemas++;
        if (r == VIGIL_E_INVALID) {
            vg_warn(f->opts.log, "flow_schema_ignored", "object=%.*s",
                    (int)VG_MIN(v[i].n, (size_t)200), v[i].p);
            r = 0;
        }
    }
    if (r == 0 && !find_schema(t, "exempt")) {
        r = vg_flow_default_schema(&t->arena, "exempt", &t->schemas[t->n_schemas]);
        t->n_schemas += r == 0;
    }
    if (r == 0 && !find_schema(t, "catch-all")) {
        r = vg_flow_default_schema(&t->arena, "catch-all", &t->schemas[t->n_schemas]);
        t->n_schemas += r == 0;
    }
    qsort(t->schemas, t->n_schemas, sizeof t->schemas[0], compare_schemas);
    t->catch_all = find_schema(t, "catch-all");
    for (size_t i = 0; i < VG_MIN(t->n_schemas, (size_t)64); i++)
        t->by_namespace |= (uint64_t)names_namespaces(&t->schemas[i]) << i;
    return r;
}

static int building_init(struct vg_flow *f, struct building *b, size_t n_schemas, size_t n_levels)
{
    struct vg_flow_table *t = vg_new(struct vg_flow_table);
    *b = (struct building){.table = t};
    if (!t)
        return -ENOMEM;
    atomic_init(&t->refs, 1);
    t->flow = f;
    b->specs = vg_arena_array(&t->arena, struct vg_flow_level_spec, n_levels + 2);
    t->schemas = vg_arena_array(&t->arena, struct vg_flow_schema, n_schemas + 2);
    t->levels = vg_arena_array(&t->arena, struct vg_flow_level *, n_levels + 2);
    return b->specs && t->schemas && t->levels ? 0 : -ENOMEM;
}

/* As kube-apiserver: 15 % of the level's seats, and no more than its seats for each queue of a
 * hand; at least 1. Levels without queues have no such limit. */
static uint32_t estimate_max(const struct vg_flow_level *v)
{
    uint32_t nominal = atomic_load_explicit(&v->nominal, memory_order_relaxed);
    if (!v->spec.queues)
        return 0;
    uint32_t part = (uint32_t)((nominal * UINT64_C(15) + 99) / 100);
    return VG_MAX(VG_MIN(part, nominal / VG_MAX(v->spec.hand, 1u)), 1u);
}

/* The levels exist: give each schema its own. */
static int link_schemas(struct vg_flow *f, struct building *b)
{
    struct vg_flow_table *t = b->table;
    int r = 0;
    for (size_t i = 0; i < t->n_schemas && r == 0; i++) {
        struct vg_flow_schema *s = &t->schemas[i];
        s->level = find_level(f, s->level_name);
        if (VG_NEVER(!s->level))
            return VIGIL_E_INTERNAL;
        s->seats_max = estimate_max(s->level);
        s->series = vg_flow_series_get(f->metrics, s->level_name, s->name);
        r = s->series ? make_headers(&t->arena, s, find_spec(b, s->level_name)->uid) : -ENOMEM;
    }
    for (size_t i = 0; i < b->n_specs && r == 0; i++) {
        struct vg_flow_level *v = find_level(f, b->specs[i].name);
        if (VG_NEVER(!v))
            return VIGIL_E_INTERNAL;
        v->refs++;
        t->levels[t->n_levels++] = v;
    }
    return r;
}

static int need_levels(struct vg_flow *f, const struct building *b)
{
    int r = 0;
    VG_LIST_FOREACH (n, &f->levels)
        VG_CONTAINER_OF(n, struct vg_flow_level, link)->is_wanted = false;
    for (size_t i = 0; i < b->n_specs && r == 0; i++)
        r = need_level(f, &b->specs[i]);
    return r;
}

/* The old table is the caller's, to be let go without the lock. */
static struct vg_flow_table *publish(struct vg_flow *f, struct vg_flow_table *t)
{
    struct vg_flow_table *old = f->table;
    t->generation = atomic_load(&f->generation) + 1;
    f->table = t;
    atomic_store_explicit(&f->generation, t->generation, memory_order_release);
    return old;
}

int vg_flow_configure(struct vg_flow *f, const struct vg_slice *schemas, size_t n_schemas,
                      const struct vg_slice *levels, size_t n_levels)
{
    struct vg_flow_table *old = NULL;
    struct building b;
    int r = building_init(f, &b, n_schemas, n_levels);
    if (r == 0)
        r = read_levels(f, &b, levels, n_levels);
    if (r == 0)
        r = read_schemas(f, &b, schemas, n_schemas);
    vg_mutex_lock(&f->mu);
    if (r == 0)
        r = need_levels(f, &b);
    if (r == 0) {
        (void)vg_flow_drop_unwanted(f);
        vg_flow_assign_nominal(f);
        r = link_schemas(f, &b);
    }
    if (r == 0)
        old = publish(f, b.table);
    else if (b.table)
        table_free_locked(b.table);
    vg_mutex_unlock(&f->mu);
    vg_flow_table_unref(old);
    if (r == 0)
        vg_debug(f->opts.log, "flow_configured", "schemas=%zu levels=%zu", b.table->n_schemas,
                 b.n_specs);
    return r;
}

/* ---- life ---- */

int vg_flow_new(const struct vg_flow_opts *opts, struct vg_flow **ret_flow)
{
    struct vg_flow *f = vg_new(struct vg_flow);
    if (!f)
        return -ENOMEM;
    f->opts = *opts;
    f->opts.clock = opts->clock ? opts->clock : vg_clock_system();
    vg_mutex_init(&f->mu, VG_RANK_FLOW);
    vg_list_init(&f->levels);
    f->rebalanced_ns = vg_clock_mono_ns(f->opts.clock);
    int r = vg_hash_key_make(&f->hash_key);
    if (r == 0)
        r = vg_flow_metrics_new(f, &f->metrics);
    if (r == 0)
        r = vg_flow_configure(f, NULL, 0, NULL, 0);
    if (r < 0) {
        vg_flow_free(f);
        return r;
    }
    *ret_flow = f;
    return 0;
}

void vg_flow_free(struct vg_flow *f)
{
    if (!f)
        return;
    vg_flow_metrics_stop(f->metrics);
    vg_flow_table_unref(f->table);
    VG_LIST_FOREACH_SAFE (n, &f->levels) {
        vg_list_remove(n);
        level_unref_locked(VG_CONTAINER_OF(n, struct vg_flow_level, link));
    }
    vg_flow_metrics_free(f->metrics);
    vg_mutex_done(&f->mu);
    vg_free(f);
}
