/* amount.c - numbers, percentages and counters of kinds that own pods; see workload.h. */
#include "pod.h"
#include "workload.h"

/* Digits, and nothing else; more than an int64_t holds is its maximum, as Go has it. */
static bool read_digits(struct vg_slice s, int64_t *ret)
{
    int64_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        int64_t digit = s.p[i] - '0';
        n = n > (INT64_MAX - digit) / 10 ? INT64_MAX : n * 10 + digit;
    }
    *ret = n;
    return s.n > 0;
}

static bool is_percent(const struct vg_json *v, int64_t *ret)
{
    struct vg_slice s = vg_json_text(v);
    return vg_json_is(v, VG_JSON_STRING) && s.n && s.p[s.n - 1] == '%' &&
           read_digits(vg_slice(s.p, s.n - 1), ret);
}

int64_t vg_int_or_percent(const struct vg_json *v)
{
    int64_t n = 0;
    if (is_percent(v, &n))
        return n;
    if (!vg_json_is(v, VG_JSON_STRING))
        return v && vg_json_to_int64(v, &n) == 0 ? n : 0;
    struct vg_slice s = vg_json_text(v);
    bool has_sign = s.n && (s.p[0] == '-' || s.p[0] == '+');
    if (!read_digits(has_sign ? vg_slice(s.p + 1, s.n - 1) : s, &n))
        return 0;
    return s.p[0] == '-' ? -n : n;
}

void vg_check_int_or_percent(struct vg_check *c, const struct vg_at *at)
{
    int64_t n;
    if (!vg_json_is(at->v, VG_JSON_STRING))
        (void)vg_check_not_negative(c, at);
    else if (!is_percent(at->v, &n))
        vg_bad(c, at,
               "a valid percent string must be a numeric string followed by an ending '%%' (e.g. "
               "'1%%',  or '93%%', regex used for validation is '[0-9]+%%')");
}

void vg_check_percent_max(struct vg_check *c, const struct vg_at *at)
{
    int64_t n;
    if (is_percent(at->v, &n) && n > 100)
        vg_bad(c, at, "must not be greater than 100%%");
}

void vg_check_not_negatives(struct vg_check *c, const struct vg_at *at, const char *const *names)
{
    for (const char *const *name = names; *name; name++) {
        struct vg_at field = vg_at(at, *name);
        (void)vg_check_not_negative(c, &field);
    }
}

void vg_check_not_above(struct vg_check *c, const struct vg_at *at, const char *const *names,
                        const char *limit, const char *detail)
{
    struct vg_at most = vg_at(at, limit);
    for (const char *const *name = names; *name; name++) {
        struct vg_at field = vg_at(at, *name);
        if (vg_at_int(&field) > vg_at_int(&most))
            vg_bad_int(c, &field, "%s", detail);
    }
}

void vg_check_collisions(struct vg_check *c, const struct vg_at *status, const struct vg_json *old)
{
    struct vg_at now = vg_at(status, "collisionCount");
    struct vg_at before = vg_at_of(status, "", vg_json_at_path(old, "status.collisionCount"));
    if (vg_at_is_set(&before) && vg_at_int(&now) < vg_at_int(&before))
        vg_bad_int(c, &now, "cannot be decremented");
}

int vg_prepare_template(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old)
{
    struct vg_json *template = vg_json_get_str(vg_json_get_str(obj, "spec"), "template");
    (void)a, (void)old;
    vg_pod_drop_disabled(vg_json_get_str(template, "spec"));
    return 0;
}

void vg_check_runs_always(struct vg_check *c, const struct vg_at *template, const char *owner)
{
    static const char *const always[] = {"Always", NULL};
    struct vg_at spec = vg_at(template, "spec"), policy = vg_at(&spec, "restartPolicy");
    struct vg_at deadline = vg_at(&spec, "activeDeadlineSeconds");
    (void)vg_check_one_of(c, &policy, always);
    if (vg_at_is_set(&deadline))
        vg_forbidden(c, &deadline, "activeDeadlineSeconds in %s is not Supported", owner);
}
