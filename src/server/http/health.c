/* health.c - see health.h. */
#include "health.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const struct endpoint {
    const char *name;
    enum vg_health_endpoint bit;
} endpoints[] = {{"healthz", VG_HEALTHZ}, {"livez", VG_LIVEZ}, {"readyz", VG_READYZ}};

static const char *is_well(void *arg)
{
    (void)arg;
    return NULL;
}

void vg_health_init(struct vg_health *h)
{
    static const struct vg_health_check first[] = {
        {"ping", VG_LIVEZ | VG_READYZ | VG_HEALTHZ, is_well, NULL, false},
        {"log", VG_LIVEZ | VG_READYZ | VG_HEALTHZ, is_well, NULL, false}};
    *h = (struct vg_health){.n = VG_ARRAY_LEN(first)};
    memcpy(h->checks, first, sizeof first);
}

bool vg_health_add(struct vg_health *h, const struct vg_health_check *check)
{
    if (h->n == VG_HEALTH_CHECKS_MAX)
        return false;
    h->checks[h->n++] = *check;
    return true;
}

const char *vg_health_trouble(const struct vg_health *h, const char *name)
{
    for (size_t i = 0; i < h->n; i++)
        if (strcmp(h->checks[i].name, name) == 0)
            return h->checks[i].check(h->checks[i].arg);
    return NULL;
}

/* ---- all of an endpoint ---- */

static bool is_exclude(const struct vg_query_param *p)
{
    return vg_slice_eq(p->name, VG_SLICE_LIT("exclude")) && p->value.n > 0;
}

static bool is_excluded(const struct vg_target *t, const char *name)
{
    for (size_t i = 0; i < t->n_params; i++) {
        if (is_exclude(&t->params[i]) && vg_slice_eq(t->params[i].value, vg_slice_str(name)))
            return true;
    }
    return false;
}

static bool has_check(const struct vg_health *h, unsigned endpoint, struct vg_slice name)
{
    for (size_t i = 0; i < h->n; i++) {
        if ((h->checks[i].endpoints & endpoint) &&
            vg_slice_eq(name, vg_slice_str(h->checks[i].name)))
            return true;
    }
    return false;
}

static int compare_names(const void *a, const void *b)
{
    return vg_slice_cmp(*(const struct vg_slice *)a, *(const struct vg_slice *)b);
}

/* What was to be excluded and is not there: sorted, each once. */
static int append_unknown(const struct vg_health *h, unsigned endpoint, const struct vg_target *t,
                          struct vg_buf *out)
{
    struct vg_slice names[VG_QUERY_PARAMS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < t->n_params; i++) {
        if (is_exclude(&t->params[i]) && !has_check(h, endpoint, t->params[i].value))
            names[n++] = t->params[i].value;
    }
    if (n == 0)
        return 0;
    qsort(names, n, sizeof names[0], compare_names);
    int r = vg_buf_printf(out, "warn: some health checks cannot be excluded: no matches for ");
    for (size_t i = 0; i < n && r == 0; i++) {
        if (i == 0 || !vg_slice_eq(names[i - 1], names[i]))
            r = vg_buf_printf(out, "%s\"%.*s\"", i ? "," : "", VG_SLICE_ARG(names[i]));
    }
    return r < 0 ? r : vg_buf_append_byte(out, '\n');
}

static int append_checks(const struct vg_health *h, unsigned endpoint, const struct vg_target *t,
                         struct vg_buf *out, bool *ret_failed)
{
    for (size_t i = 0; i < h->n; i++) {
        const struct vg_health_check *c = &h->checks[i];
        int r;
        if (!(c->endpoints & endpoint))
            continue;
        const char *why = is_excluded(t, c->name) ? NULL : c->check(c->arg);
        if (is_excluded(t, c->name)) {
            r = vg_buf_printf(out, "[+]%s excluded: ok\n", c->name);
        } else if (!why) {
            r = vg_buf_printf(out, "[+]%s ok\n", c->name);
        } else if (c->is_notice) {
            r = vg_buf_printf(out, "[!]%s: %s\n", c->name, why);
        } else {
            *ret_failed = true;
            r = vg_buf_printf(out, "[-]%s failed: reason withheld\n", c->name);
        }
        if (r < 0)
            return r;
    }
    return append_unknown(h, endpoint, t, out);
}

static int answer_all(const struct vg_health *h, const struct endpoint *e,
                      const struct vg_target *t, struct vg_buf *out, struct vg_health_answer *ret)
{
    bool failed = false;
    size_t before = out->n;
    int r = append_checks(h, e->bit, t, out, &failed);
    if (r < 0)
        return r;
    *ret = (struct vg_health_answer){.code = failed ? 500 : 200};
    if (failed)
        return vg_buf_printf(out, "%s check failed\n", e->name);
    if (vg_query_get(t, "verbose").p)
        return vg_buf_printf(out, "%s check passed\n", e->name);
    out->n = before;
    return vg_buf_printf(out, "ok");
}

/* ---- one check ---- */

static int answer_one(const struct vg_health *h, const struct endpoint *e, struct vg_slice name,
                      struct vg_buf *out, struct vg_health_answer *ret)
{
    for (size_t i = 0; i < h->n; i++) {
        const struct vg_health_check *c = &h->checks[i];
        if (!(c->endpoints & e->bit) || !vg_slice_eq(name, vg_slice_str(c->name)))
            continue;
        const char *why = c->check(c->arg);
        *ret = (struct vg_health_answer){.code = why ? 500 : 200, .is_sniffable = !why};
        return why ? vg_buf_printf(out, "internal server error: %s\n", why)
                   : vg_buf_printf(out, "ok");
    }
    return VIGIL_E_NOT_FOUND;
}

int vg_health_answer(const struct vg_health *h, const struct vg_target *target, struct vg_buf *out,
                     struct vg_health_answer *ret)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(endpoints); i++) {
        const struct endpoint *e = &endpoints[i];
        size_t n = strlen(e->name) + 1;
        struct vg_slice path = target->path;
        if (path.n < n || path.p[0] != '/' || memcmp(path.p + 1, e->name, n - 1) != 0)
            continue;
        if (path.n == n)
            return answer_all(h, e, target, out, ret);
        if (path.p[n] == '/')
            return answer_one(h, e, vg_slice(path.p + n + 1, path.n - n - 1), out, ret);
    }
    return VIGIL_E_NOT_FOUND;
}

int vg_health_paths(const struct vg_health *h, int (*each)(void *arg, const char *path), void *arg)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(endpoints); i++) {
        char path[128];
        snprintf(path, sizeof path, "/%s", endpoints[i].name);
        int r = each(arg, path);
        for (size_t k = 0; k < h->n && r == 0; k++) {
            snprintf(path, sizeof path, "/%s/%s", endpoints[i].name, h->checks[k].name);
            if (h->checks[k].endpoints & endpoints[i].bit)
                r = each(arg, path);
        }
        if (r < 0)
            return r;
    }
    return 0;
}
