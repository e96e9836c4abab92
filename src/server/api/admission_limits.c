/* admission_limits.c - the plugin LimitRanger: what a namespace's limit ranges give to containers
 * that say nothing, and whom they refuse. Ranges are taken in the order of their names; of one that
 * refuses, all reasons are told. */
#include "admission.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/kinds/rules/amounts.h"
#include "server/schema/default.h"

#define ANNOTATION VG_SLICE_LIT("kubernetes.io/limit-ranger")

static const struct vg_json *items_of(const struct vg_json *range)
{
    const struct vg_json *list = vg_json_get_str(vg_json_get_str(range, "spec"), "limits");
    return vg_json_is(list, VG_JSON_ARRAY) ? list : NULL;
}

static bool is_of(const struct vg_json *item, struct vg_slice type)
{
    return vg_slice_eq(vg_json_text(vg_json_get_str(item, "type")), type);
}

/* ---- what is given ---- */

static int by_key(const void *a, const void *b)
{
    const struct vg_json_member *x = a, *y = b;
    return vg_slice_cmp(vg_json_key(x), vg_json_key(y));
}

/* One map of all items for containers; later ones win. Sorted. */
static int gather(struct vg_arena *a, const struct vg_json *range, const char *map,
                  struct vg_json *ret)
{
    const struct vg_json *items = items_of(range);
    int r = 0;
    *ret = vg_json_object();
    if (!items)
        return 0;
    VG_JSON_FOREACH_ITEM (item, items) {
        const struct vg_json *from = vg_json_get_str(item, map);
        if (!from || !is_of(item, VG_SLICE_LIT("Container")))
            continue;
        VG_JSON_FOREACH_MEMBER (m, from) {
            struct vg_json v;
            if (r == 0) /* the record may be gone before the object is written */
                r = vg_json_clone(a, &m->value, &v);
            struct vg_slice key = {0};
            if (r == 0)
                r = vg_arena_keep(a, vg_json_key(m), &key);
            v.begin = v.end = 0;
            if (r == 0)
                r = vg_json_object_set(a, ret, key, v);
        }
    }
    if (r == 0 && ret->n > 1)
        qsort(ret->members, ret->n, sizeof *ret->members, by_key);
    return r;
}

struct giving {
    struct vg_arena *a;
    struct vg_buf said; /* "cpu request for container x; ..." */
};

/* Members of `from` that the container's map lacks; they are said. */
static int give(struct giving *g, struct vg_json *container, const char *map,
                const struct vg_json *from, const char *what, const char *who)
{
    struct vg_json *resources, *to;
    bool is_first = true;
    int r = 0;
    for (uint32_t i = 0; i < from->n && r == 0; i++) {
        const struct vg_json_member *m = &from->members[i];
        r = vg_default_object(g->a, container, "resources", &resources);
        if (r < 0 || vg_json_get(vg_json_get_str(resources, map), vg_json_key(m)))
            continue;
        r = vg_default_object(g->a, resources, map, &to);
        if (r == 0)
            r = vg_json_object_add(g->a, to, vg_json_key(m), m->value);
        if (r == 0)
            r = vg_buf_printf(&g->said, "%s%.*s",
                              !is_first        ? ", "
                              : g->said.n == 0 ? ""
                                               : "; ",
                              VG_SLICE_ARG(vg_json_key(m)));
        is_first = false;
    }
    if (r == 0 && !is_first)
        r = vg_buf_printf(&g->said, " %s for %s %.*s", what, who,
                          VG_SLICE_ARG(vg_json_text(vg_json_get_str(container, "name"))));
    return r;
}

static int give_all(struct giving *g, struct vg_json *containers, const struct vg_json *requests,
                    const struct vg_json *limits, const char *who)
{
    int r = 0;
    if (!containers)
        return 0;
    VG_JSON_FOREACH_ITEM (it, containers) {
        if (r == 0)
            r = give(g, it, "requests", requests, "request", who);
        if (r == 0)
            r = give(g, it, "limits", limits, "limit", who);
    }
    return r;
}

/* The annotation at its place among the sorted ones. */
static int annotate(struct vg_arena *a, struct vg_meta *m, struct vg_slice said)
{
    struct vg_json *out = vg_arena_new(a, struct vg_json);
    struct vg_slice text;
    int r = out ? vg_arena_printf(a, &text, "LimitRanger plugin set: %.*s", VG_SLICE_ARG(said))
                : -ENOMEM;
    if (r < 0)
        return r;
    *out = vg_json_object();
    bool is_there = false;
    for (uint32_t i = 0; m->annotations && i < m->annotations->n && r == 0; i++) {
        const struct vg_json_member *x = &m->annotations->members[i];
        int c = vg_slice_cmp(vg_json_key(x), ANNOTATION);
        if (c >= 0 && !is_there) {
            r = vg_json_object_add(a, out, ANNOTATION, vg_json_string_ref(text));
            is_there = true;
        }
        if (c != 0 && r == 0)
            r = vg_json_object_add(a, out, vg_json_key(x), x->value);
    }
    if (r == 0 && !is_there)
        r = vg_json_object_add(a, out, ANNOTATION, vg_json_string_ref(text));
    m->annotations = out;
    return r;
}

static int set_by(struct vg_change *c, const struct vg_json *range, struct vg_json *spec,
                  struct vg_meta *m)
{
    struct giving g = {.a = &c->scratch};
    struct vg_json requests, limits;
    int r = gather(g.a, range, "defaultRequest", &requests);
    if (r == 0)
        r = gather(g.a, range, "default", &limits);
    if (r == 0)
        r = give_all(&g, vg_json_get_str(spec, "containers"), &requests, &limits, "container");
    if (r == 0)
        r = give_all(&g, vg_json_get_str(spec, "initContainers"), &requests, &limits,
                     "init container");
    if (r == 0 && g.said.n)
        r = annotate(g.a, m, vg_buf_slice(&g.said));
    vg_buf_done(&g.said);
    return r;
}

int vg_limits_set(struct vg_change *c, struct vg_json *root, struct vg_meta *m)
{
    struct vg_api *api = c->call->loop->api;
    struct vg_json *spec = vg_json_get_str(root, "spec"), *range;
    struct vg_admission_walk w;
    const struct vg_rec *rec;
    int r = 0;
    if (!spec || !vg_admission_walk(&w, api->cacher, api->admission->limit_ranges, c->ns))
        return 0;
    while (r == 0 && (rec = vg_admission_next(&w))) {
        r = vg_admission_read(c, rec, &range);
        if (r == 0)
            r = set_by(c, range, spec, m);
    }
    vg_admission_walk_end(&w);
    return r;
}

/* ---- who is refused ---- */

struct refusal {
    struct vg_arena *a;
    struct vg_slice *v;
    uint32_t n, room;
    int err;
};

/* Another reason, if it is not told yet. */
static void because(struct refusal *e, const char *fmt, ...) VG_PRINTF(2, 3);
static void because(struct refusal *e, const char *fmt, ...)
{
    struct vg_slice text;
    va_list ap;
    va_start(ap, fmt);
    int r = e->err < 0 ? e->err : vg_arena_printf_v(e->a, &text, fmt, ap);
    va_end(ap);
    for (uint32_t i = 0; i < e->n && r == 0; i++)
        if (vg_slice_eq(e->v[i], text))
            return;
    if (r == 0 && e->n == e->room) {
        size_t room = e->room ? (size_t)e->room * 2 : 8;
        struct vg_slice *v = vg_arena_array(e->a, struct vg_slice, room);
        r = v ? 0 : -ENOMEM;
        if (v && e->n)
            memcpy(v, e->v, e->n * sizeof *v);
        e->v = v ? v : e->v;
        e->room = v ? (uint32_t)room : e->room;
    }
    if (r == 0)
        e->v[e->n++] = text;
    e->err = r;
}

/* What is held against a limit. */
struct subject {
    const char *type;
    struct vg_amounts requests, limits;
    bool is_claim; /* has requests alone */
};

/* Resource, limit, and what there is of it. */
struct look {
    struct refusal *e;
    const struct subject *s;
    struct vg_slice name;
    const struct vg_quantity *limit, *request, *most; /* the latter two NULL: not given */
    char room[3][VG_QUANTITY_TEXT_MAX];
    struct vg_slice said, request_text, most_text;
};

static void check_min(const struct look *k)
{
    const char *type = k->s->type;
    if (!k->request)
        because(k->e, "minimum %.*s usage per %s is %.*s.  No request is specified",
                VG_SLICE_ARG(k->name), type, VG_SLICE_ARG(k->said));
    else if (vg_quantity_cmp(k->request, k->limit) < 0)
        because(k->e, "minimum %.*s usage per %s is %.*s, but request is %.*s",
                VG_SLICE_ARG(k->name), type, VG_SLICE_ARG(k->said), VG_SLICE_ARG(k->request_text));
    else if (k->most && vg_quantity_cmp(k->most, k->limit) < 0)
        because(k->e, "minimum %.*s usage per %s is %.*s, but limit is %.*s", VG_SLICE_ARG(k->name),
                type, VG_SLICE_ARG(k->said), VG_SLICE_ARG(k->most_text));
}

static void check_max(const struct look *k)
{
    const char *type = k->s->type;
    if (k->s->is_claim ? !k->request : !k->most)
        because(k->e, "maximum %.*s usage per %s is %.*s.  No %s is specified",
                VG_SLICE_ARG(k->name), type, VG_SLICE_ARG(k->said),
                k->s->is_claim ? "request" : "limit");
    else if (k->most && vg_quantity_cmp(k->most, k->limit) > 0)
        because(k->e, "maximum %.*s usage per %s is %.*s, but limit is %.*s", VG_SLICE_ARG(k->name),
                type, VG_SLICE_ARG(k->said), VG_SLICE_ARG(k->most_text));
    else if (k->request && vg_quantity_cmp(k->request, k->limit) > 0)
        because(k->e, "maximum %.*s usage per %s is %.*s, but request is %.*s",
                VG_SLICE_ARG(k->name), type, VG_SLICE_ARG(k->said), VG_SLICE_ARG(k->request_text));
}

/* As a number; thousandths where all three can be told so. */
static double number(const struct vg_quantity *q)
{
    int64_t n;
    if (vg_quantity_scaled(q, -3, &n, NULL) == 0)
        return (double)n / 1000;
    return vg_quantity_scaled(q, 0, &n, NULL) == 0 ? (double)n : (double)INT64_MAX;
}

static void check_ratio(const struct look *k)
{
    const char *type = k->s->type;
    if (!k->request || vg_quantity_sign(k->request) == 0) {
        because(k->e,
                "%.*s max limit to request ratio per %s is %.*s, but no request is specified or "
                "request is 0",
                VG_SLICE_ARG(k->name), type, VG_SLICE_ARG(k->said));
        return;
    }
    if (!k->most || vg_quantity_sign(k->most) == 0) {
        because(k->e,
                "%.*s max limit to request ratio per %s is %.*s, but no limit is specified or "
                "limit is 0",
                VG_SLICE_ARG(k->name), type, VG_SLICE_ARG(k->said));
        return;
    }
    double ratio = number(k->most) / number(k->request);
    if (ratio > number(k->limit))
        because(k->e, "%.*s max limit to request ratio per %s is %.*s, but provided ratio is %f",
                VG_SLICE_ARG(k->name), type, VG_SLICE_ARG(k->said), ratio);
}

static void check_map(struct refusal *e, const struct subject *s, const struct vg_json *map,
                      void (*check)(const struct look *k))
{
    struct vg_quantity limit;
    if (!map)
        return;
    VG_JSON_FOREACH_MEMBER (m, map) {
        struct look k = {.e = e, .s = s, .name = vg_json_key(m), .limit = &limit};
        const struct vg_amount *request = vg_amounts_find(&s->requests, k.name);
        const struct vg_amount *most = vg_amounts_find(&s->limits, k.name);
        if (!vg_json_quantity(&m->value, &limit))
            continue;
        k.request = request ? &request->q : NULL;
        k.most = most ? &most->q : NULL;
        k.said = vg_quantity_text(&limit, k.room[0]);
        k.request_text = request ? vg_quantity_text(k.request, k.room[1]) : VG_SLICE_LIT("");
        k.most_text = most ? vg_quantity_text(k.most, k.room[2]) : VG_SLICE_LIT("");
        check(&k);
    }
}

static void check_one(struct refusal *e, const struct subject *s, const struct vg_json *item)
{
    check_map(e, s, vg_json_get_str(item, "min"), check_min);
    check_map(e, s, vg_json_get_str(item, "max"), check_max);
    if (!s->is_claim)
        check_map(e, s, vg_json_get_str(item, "maxLimitRequestRatio"), check_ratio);
}

static int check_containers(struct refusal *e, const struct vg_json *list,
                            const struct vg_json *item)
{
    int r = 0;
    if (!list)
        return 0;
    VG_JSON_FOREACH_ITEM (it, list) {
        const struct vg_json *of = vg_json_get_str(it, "resources");
        struct subject s = {.type = "Container"};
        if (r == 0)
            r = vg_amounts_each_of(e->a, &s.requests, vg_json_get_str(of, "requests"),
                                   vg_amounts_set);
        if (r == 0)
            r = vg_amounts_each_of(e->a, &s.limits, vg_json_get_str(of, "limits"), vg_amounts_set);
        if (r == 0)
            check_one(e, &s, item);
    }
    return r;
}

static int check_pod(struct refusal *e, const struct vg_json *pod, const struct vg_json *item)
{
    const struct vg_json *spec = vg_json_get_str(pod, "spec");
    struct subject s = {.type = "Pod"};
    int r = 0;
    if (is_of(item, VG_SLICE_LIT("Container"))) {
        r = check_containers(e, vg_json_get_str(spec, "containers"), item);
        return r < 0 ? r : check_containers(e, vg_json_get_str(spec, "initContainers"), item);
    }
    if (!is_of(item, VG_SLICE_LIT("Pod")))
        return 0;
    r = vg_amounts_of_pod(e->a, pod, VG_REQUESTS, false, &s.requests);
    if (r == 0)
        r = vg_amounts_of_pod(e->a, pod, VG_LIMITS, false, &s.limits);
    if (r == 0)
        check_one(e, &s, item);
    return r;
}

static int check_claim(struct refusal *e, const struct vg_json *claim, const struct vg_json *item)
{
    struct subject s = {.type = "PersistentVolumeClaim", .is_claim = true};
    const struct vg_json *of = vg_json_get_str(vg_json_get_str(claim, "spec"), "resources");
    if (!is_of(item, VG_SLICE_LIT("PersistentVolumeClaim")))
        return 0;
    int r = vg_amounts_each_of(e->a, &s.requests, vg_json_get_str(of, "requests"), vg_amounts_set);
    if (r == 0)
        check_one(e, &s, item);
    return r;
}

static int tell(struct vg_change *c, const struct refusal *e)
{
    VG_AUTO(buf) all = {0};
    int r = e->n > 1 ? vg_buf_append_byte(&all, '[') : 0;
    for (uint32_t i = 0; i < e->n && r == 0; i++)
        r = vg_buf_printf(&all, "%s%.*s", i ? ", " : "", VG_SLICE_ARG(e->v[i]));
    if (r == 0 && e->n > 1)
        r = vg_buf_append_byte(&all, ']');
    return r < 0 ? r : vg_admission_refuse(c, c->name, "%.*s", VG_SLICE_ARG(vg_buf_slice(&all)));
}

static int check_by(struct vg_change *c, const struct vg_json *range, const struct vg_json *root)
{
    struct refusal e = {.a = &c->scratch};
    const struct vg_json *items = items_of(range);
    bool is_pod = vg_kind_stored(c->kind) == c->call->loop->api->admission->pods;
    int r = 0;
    if (items)
        VG_JSON_FOREACH_ITEM (item, items)
            if (r == 0)
                r = is_pod ? check_pod(&e, root, item) : check_claim(&e, root, item);
    if (r == 0)
        r = e.err;
    return r == 0 && e.n ? tell(c, &e) : r;
}

int vg_limits_check(struct vg_change *c, const struct vg_json *root)
{
    struct vg_api *api = c->call->loop->api;
    struct vg_admission_walk w;
    const struct vg_rec *rec;
    struct vg_json *range;
    int r = 0;
    if (!vg_admission_walk(&w, api->cacher, api->admission->limit_ranges, c->ns))
        return 0;
    while (r == 0 && (rec = vg_admission_next(&w))) {
        r = vg_admission_read(c, rec, &range);
        if (r == 0)
            r = check_by(c, range, root);
    }
    vg_admission_walk_end(&w);
    return r;
}
