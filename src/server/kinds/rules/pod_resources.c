/* pod_resources.c - requests, limits and claims: of a container, of a pod as a whole, and of its
 * overhead. */
#include "pod_int.h"

#include <stdlib.h>

#include "base/buf.h"

/* Errors about one claim. */
#define PARTS_SAID_MAX 16u

/* ---- names ---- */

static void check_pod_name(struct vg_check *c, const struct vg_at *at, struct vg_slice name)
{
    static const char *const supported[] = {"cpu", "hugepages-", "memory", NULL};
    struct vg_json text = vg_json_string_ref(name);
    struct vg_at shown = *at;
    if (!vg_check_resource_name(c, at, name) || vg_resource_is_huge(name))
        return;
    shown.v = &text;
    (void)vg_check_one_of(c, &shown, supported);
}

/* ---- requests and limits ---- */

struct requirements {
    struct vg_check *c;
    void (*check_name)(struct vg_check *c, const struct vg_at *at, struct vg_slice name);
    struct vg_at limits, requests;
    bool has_compute, has_huge;
};

/* Huge pages come whole. What is beyond 64 bits passes, as it does in the original. */
static void check_huge(struct requirements *r, const struct vg_at *at)
{
    struct vg_quantity q, page;
    int64_t amount = 0, size = 0;
    bool is_exact = false;
    static const size_t prefix = sizeof "hugepages-" - 1;
    r->has_huge = true;
    bool is_fit =
        vg_quantity_parse(vg_slice(at->key.p + prefix, at->key.n - prefix), &page, NULL) == 0 &&
        vg_quantity_sign(&page) > 0 && vg_quantity_scaled(&page, 0, &size, &is_exact) == 0 &&
        is_exact && vg_at_quantity(at, &q) &&
        (vg_quantity_scaled(&q, 0, &amount, NULL) < 0 || amount % size == 0);
    if (!is_fit)
        vg_bad_text(r->c, at, "%.*s is not positive integer multiple of %.*s",
                    VG_SLICE_ARG(vg_at_text(at)), VG_SLICE_ARG(at->key));
}

static void check_amount(struct requirements *r, const struct vg_at *at)
{
    r->check_name(r->c, at, at->key);
    vg_check_resource_amount(r->c, at, at->key);
    r->has_compute = r->has_compute || vg_slice_eq(at->key, VG_SLICE_LIT("cpu")) ||
                     vg_slice_eq(at->key, VG_SLICE_LIT("memory"));
}

static void check_against_limit(struct requirements *r, const struct vg_at *at,
                                const struct vg_json *limit)
{
    struct vg_quantity q, max;
    bool may_overcommit = vg_resource_may_overcommit(at->key);
    if (!limit) {
        if (!may_overcommit)
            vg_required(r->c, &r->limits, "Limit must be set for non overcommitable resources");
        return;
    }
    if (vg_slice_eq(vg_at_text(at), vg_json_text(limit)))
        return;
    (void)vg_at_quantity(at, &q);
    (void)vg_json_quantity(limit, &max);
    int cmp = vg_quantity_cmp(&q, &max);
    if (cmp != 0 && !may_overcommit)
        vg_bad_value(r->c, &r->requests, vg_json_quoted(r->c, vg_at_text(at)),
                     "must be equal to %.*s limit of %.*s", VG_SLICE_ARG(at->key),
                     VG_SLICE_ARG(vg_json_text(limit)));
    else if (cmp > 0)
        vg_bad_value(r->c, &r->requests, vg_json_quoted(r->c, vg_at_text(at)),
                     "must be less than or equal to %.*s limit of %.*s", VG_SLICE_ARG(at->key),
                     VG_SLICE_ARG(vg_json_text(limit)));
}

static void check_requirements(struct requirements *r, const struct vg_at *at)
{
    if (r->limits.v)
        VG_JSON_FOREACH_MEMBER (m, r->limits.v) {
            struct vg_at limit = vg_at_key(&r->limits, m);
            check_amount(r, &limit);
            if (vg_resource_is_huge(limit.key))
                check_huge(r, &limit);
        }
    VG_AUTO(json_lookup) limits;
    vg_json_lookup_init(&limits, r->limits.v);
    for (uint32_t i = 0; i < vg_at_n(&r->requests); i++) {
        struct vg_at request = vg_at_key(&r->requests, &r->requests.v->members[i]);
        check_amount(r, &request);
        check_against_limit(r, &request, vg_check_find(r->c, &limits, request.key, i));
        if (vg_resource_is_huge(request.key))
            check_huge(r, &request);
    }
    if (r->has_huge && !r->has_compute)
        vg_forbidden(r->c, at, "HugePages require cpu or memory");
}

/* ---- claims ---- */

static int by_text(const void *a, const void *b)
{
    return vg_slice_cmp(*(const struct vg_slice *)a, *(const struct vg_slice *)b);
}

/* The names that would do, sorted. */
static void say_unknown_claim(struct vg_pod *p, const struct vg_at *at, struct vg_slice name)
{
    struct vg_at claims = vg_at(p->spec, "resourceClaims");
    if (vg_field_errors_is_full(p->c->errors))
        return;
    struct vg_slice *sorted = vg_arena_array(p->c->arena, struct vg_slice, vg_at_n(&claims) + 1);
    struct vg_json shown = vg_json_string_ref(name);
    struct vg_at it = *at;
    VG_AUTO(buf) b = {0};
    size_t n = 0;
    int err = sorted ? 0 : -1;
    if (sorted)
        VG_CHECK_EACH (p->c, claim, &claims) {
            sorted[n] = vg_json_text(vg_json_get_str(claim.v, "name"));
            n += sorted[n].n > 0;
        }
    if (n)
        qsort(sorted, n, sizeof *sorted, by_text);
    for (size_t i = 0; i < n && err == 0; i++)
        if (i == 0 || !vg_slice_eq(sorted[i], sorted[i - 1]))
            err = vg_buf_printf(&b, "%s%.*s", i ? ", " : "", VG_SLICE_ARG(sorted[i]));
    p->c->errors->failed |= err < 0;
    it.v = &shown;
    vg_not_found_because(p->c, &it, "must be one of the names in pod.spec.resourceClaims%s%.*s",
                         n ? ": " : " which is empty", VG_SLICE_ARG(vg_buf_slice(&b)));
}

/* Once for each request of the claim before it, as the original has it. */
static void say_parts(struct vg_pod *p, const struct vg_at *at, struct vg_slice name)
{
    VG_AUTO(names) seen = {0};
    size_t limit = p->c->errors->n + PARTS_SAID_MAX;
    for (uint32_t i = 0;
         i < at->index && p->c->errors->n < limit && !vg_field_errors_is_full(p->c->errors); i++) {
        const struct vg_json *other = &at->up->v->items[i];
        if (vg_slice_eq(vg_json_text(vg_json_get_str(other, "name")), name) &&
            vg_names_add(p->c, &seen, vg_json_text(vg_json_get_str(other, "request")), NULL))
            vg_duplicate_value(p->c, at, vg_json_quoted(p->c, name));
    }
}

/* A claim is used whole, or by its requests, and each of them once. */
static void check_use(struct vg_pod *p, const struct vg_at *at, struct vg_names *whole,
                      struct vg_names *parts, struct vg_names *keys)
{
    struct vg_at request = vg_at(at, "request");
    struct vg_slice name = vg_json_text(vg_json_get_str(at->v, "name")), key = name;
    if (name.n == 0) {
        vg_required(p->c, at, NULL);
        return;
    }
    if (vg_names_has(whole, name)) {
        vg_duplicate_value(p->c, at, vg_json_quoted(p->c, name));
    } else if (vg_at_text(&request).n == 0) {
        if (vg_names_has(parts, name))
            say_parts(p, at, name);
        (void)vg_names_add(p->c, whole, name, NULL);
    } else {
        (void)vg_check_dns_label(p->c, &request);
        if (vg_arena_printf(p->c->arena, &key, "%.*s/%.*s", VG_SLICE_ARG(name),
                            VG_SLICE_ARG(vg_at_text(&request))) < 0)
            p->c->errors->failed = true;
        if (!vg_names_add(p->c, keys, key, NULL))
            vg_duplicate_value(p->c, at, vg_json_quoted(p->c, key));
        (void)vg_names_add(p->c, parts, name, NULL);
    }
    if (!vg_names_has(&p->claims, name))
        say_unknown_claim(p, at, name);
}

static void check_claims(struct vg_pod *p, const struct vg_at *at)
{
    struct vg_at claims = vg_at(at, "claims");
    if (vg_at_n(&claims) == 0)
        return;
    VG_AUTO(names) whole = {0};
    VG_AUTO(names) parts = {0};
    VG_AUTO(names) keys = {0};
    VG_CHECK_EACH (p->c, use, &claims)
        check_use(p, &use, &whole, &parts, &keys);
}

void vg_pod_check_container_resources(struct vg_pod *p, const struct vg_at *at)
{
    struct requirements r = {.c = p->c,
                             .check_name = vg_check_container_resource_name,
                             .limits = vg_at(at, "limits"),
                             .requests = vg_at(at, "requests")};
    check_requirements(&r, at);
    check_claims(p, at);
}

void vg_pod_check_overhead(struct vg_pod *p, const struct vg_at *at)
{
    struct requirements r = {.c = p->c,
                             .check_name = vg_check_container_resource_name,
                             .limits = vg_at_of(at, "limits", at->v),
                             .requests = vg_at_of(at, "requests", NULL)};
    if (at->v)
        check_requirements(&r, at);
}

/* ---- of a pod as a whole ---- */

static void add(struct vg_quantity *sum, const struct vg_quantity *q)
{
    if (vg_quantity_add(sum, q) < 0)
        *sum = vg_quantity_cmp(sum, q) < 0 ? *q : *sum;
}

static struct vg_pod_sum *find_sum(struct vg_pod_sum *v, size_t n, struct vg_slice name)
{
    for (size_t i = 0; i < n; i++)
        if (vg_slice_eq(v[i].name, name))
            return &v[i];
    return NULL;
}

/* An init container that stays is one of those that run later, and beside the next ones. */
static void add_amount(struct vg_pod_sum *s, const struct vg_json *v, bool is_init, bool stays)
{
    struct vg_quantity q, now = s->beside;
    s->is_there = true;
    (void)vg_json_quantity(v, &q);
    if (!is_init || stays)
        add(&s->amount, &q);
    if (!is_init)
        return;
    add(&now, &q);
    if (stays)
        s->beside = now;
    if (vg_quantity_cmp(&now, &s->most) > 0)
        s->most = now;
}

static void add_containers(const struct vg_json *containers, bool is_init, const char *list,
                           struct vg_pod_sum *v, size_t n)
{
    for (uint32_t i = 0; vg_json_is(containers, VG_JSON_ARRAY) && i < containers->n; i++) {
        const struct vg_json *it = &containers->items[i];
        const struct vg_json *all = vg_json_get_str(vg_json_get_str(it, "resources"), list);
        if (!all)
            continue;
        bool stays =
            vg_slice_eq(vg_json_text(vg_json_get_str(it, "restartPolicy")), VG_SLICE_LIT("Always"));
        VG_JSON_FOREACH_MEMBER (m, all) {
            struct vg_pod_sum *s = find_sum(v, n, vg_json_key(m));
            if (s)
                add_amount(s, &m->value, is_init, stays);
        }
    }
}

void vg_pod_sums(const struct vg_json *spec, const char *list, struct vg_pod_sum *v, size_t n)
{
    const struct vg_quantity zero = vg_quantity_of(0, 0, VG_QUANTITY_DECIMAL);
    for (size_t i = 0; i < n; i++)
        v[i] = (struct vg_pod_sum){.name = v[i].name, .amount = zero, .beside = zero, .most = zero};
    add_containers(vg_json_get_str(spec, "containers"), false, list, v, n);
    add_containers(vg_json_get_str(spec, "initContainers"), true, list, v, n);
    for (size_t i = 0; i < n; i++)
        if (vg_quantity_cmp(&v[i].most, &v[i].amount) > 0)
            v[i].amount = v[i].most;
}

/* What the containers have together must fit into what the pod has. */
static void check_sums(struct vg_pod *p, const struct vg_at *at, const char *list)
{
    struct vg_at amounts = vg_at(at, list);
    bool is_limits = strcmp(list, "limits") == 0;
    char room[VG_QUANTITY_TEXT_MAX];
    struct vg_pod_sum sums[VG_POD_SUMS_MAX];
    size_t n = vg_at_n(&amounts);
    if (n == 0 || n > VG_POD_SUMS_MAX)
        return;
    for (size_t i = 0; i < n; i++)
        sums[i].name = vg_json_key(&amounts.v->members[i]);
    vg_pod_sums(p->spec->v, list, sums, n);
    for (size_t i = 0; i < n; i++) {
        struct vg_at amount = vg_at_key(&amounts, &amounts.v->members[i]);
        struct vg_quantity q;
        if ((is_limits && !vg_resource_is_huge(amount.key)) || !sums[i].is_there)
            continue;
        (void)vg_at_quantity(&amount, &q);
        if (vg_quantity_cmp(&sums[i].amount, &q) > 0)
            vg_bad_text(p->c, &amount,
                        "must be greater than or equal to aggregate container %s of %.*s", list,
                        VG_SLICE_ARG(vg_quantity_text(&sums[i].amount, room)));
    }
}

static void check_each_limit(struct vg_pod *p, const struct vg_at *at)
{
    const struct vg_json *of_pod = vg_json_get_str(at->v, "limits");
    struct vg_at containers = vg_at(p->spec, "containers");
    struct vg_at blamed = vg_at_of(at, "containers", containers.v);
    if (!of_pod || of_pod->n > VG_POD_SUMS_MAX)
        return;
    VG_CHECK_EACH (p->c, container, &blamed) {
        const struct vg_json *limits = vg_json_at_path(container.v, "resources.limits");
        if (!limits)
            continue;
        VG_JSON_FOREACH_MEMBER (m, limits) {
            const struct vg_json *max = vg_json_get(of_pod, vg_json_key(m));
            struct vg_at key = vg_at_key(&container, m);
            struct vg_at limit = vg_at_of(&key, "limits", &m->value);
            struct vg_quantity q, of_all;
            if (!max)
                continue;
            (void)vg_at_quantity(&limit, &q);
            (void)vg_json_quantity(max, &of_all);
            if (vg_quantity_cmp(&q, &of_all) > 0)
                vg_bad_text(p->c, &limit, "must be less than or equal to pod limits of %.*s",
                            VG_SLICE_ARG(vg_json_text(max)));
        }
    }
}

void vg_pod_check_resources(struct vg_pod *p)
{
    struct vg_at at = vg_at(p->spec, "resources"), claims = vg_at(&at, "claims");
    struct requirements r = {.c = p->c,
                             .check_name = check_pod_name,
                             .limits = vg_at(&at, "limits"),
                             .requests = vg_at(&at, "requests")};
    if (!vg_at_is_set(&at))
        return;
    if (vg_pod_is_windows(p)) {
        vg_forbidden(p->c, &at, "may not be set for a windows pod");
        return;
    }
    if (vg_at_is_set(&claims))
        vg_forbidden(p->c, &claims, "claims may not be set for Resources at pod-level");
    check_requirements(&r, &at);
    check_claims(p, &at);
    check_sums(p, &at, "requests");
    check_sums(p, &at, "limits");
    check_each_limit(p, &at);
}
