/* job_policy.c - when a job has failed, and when it has succeeded; see job.h. */
#include <inttypes.h>

#include "job.h"
#include "names.h"

#define RULES_MAX 20u
#define EXIT_CODES_MAX 255u
#define CONDITIONS_MAX 20u
#define INDEXES_MAX ((size_t)64 << 10)

/* ---- failure ---- */

static void gather_names(struct vg_check *c, const struct vg_json *pod, const char *list,
                         struct vg_names *names)
{
    const struct vg_json *containers = vg_json_get_str(pod, list);
    if (containers)
        VG_JSON_FOREACH_ITEM (it, containers)
            (void)vg_names_add(c, names, vg_json_text(vg_json_get_str(it, "name")), NULL);
}

/* At most a few hundred values count: the rest is told to be too many. */
static bool was_before(const struct vg_at *values, const struct vg_at *value)
{
    int64_t code = vg_at_int(value);
    for (uint32_t i = 0; i < value->index && i <= EXIT_CODES_MAX; i++) {
        struct vg_at other = vg_at_item(values, i);
        if (vg_at_int(&other) == code)
            return true;
    }
    return false;
}

static void check_exit_values(struct vg_check *c, const struct vg_at *values, bool is_in)
{
    bool is_ordered = true;
    int64_t last = INT64_MIN;
    if (vg_at_n(values) == 0)
        vg_bad_value(c, values,
                     values->v && values->v->type == VG_JSON_ARRAY ? VG_SLICE_LIT("[]")
                                                                   : VG_SLICE_LIT("null"),
                     "at least one value is required");
    else if (vg_at_n(values) > EXIT_CODES_MAX)
        vg_too_many(c, values, vg_at_n(values), EXIT_CODES_MAX);
    VG_CHECK_EACH (c, value, values) {
        int64_t code = vg_at_int(&value);
        if (is_in && code == 0)
            vg_bad_int(c, &value, "must not be 0 for the In operator");
        if (was_before(values, &value))
            vg_duplicate(c, &value);
        is_ordered = is_ordered && code >= last;
        last = code;
    }
    if (!is_ordered)
        vg_bad(c, values, "must be ordered");
}

static void check_exit_codes(struct vg_check *c, const struct vg_at *at,
                             const struct vg_names *containers)
{
    static const char *const operators[] = {"In", "NotIn", NULL};
    struct vg_at operator= vg_at(at, "operator"), name = vg_at(at, "containerName");
    struct vg_at values = vg_at(at, "values");
    if (vg_at_text(&operator).n == 0)
        vg_required(c, &operator, "valid values: [\"In\" \"NotIn\"]");
    else
        (void)vg_check_one_of(c, &operator, operators);
    if (vg_at_is_set(&name) && !vg_names_has(containers, vg_at_text(&name)))
        vg_bad_text(c, &name,
                    "must be one of the container or initContainer names in the pod template");
    check_exit_values(c, &values, vg_at_is(&operator, "In"));
}

static void check_conditions(struct vg_check *c, const struct vg_at *list)
{
    static const char *const known[] = {"False", "True", "Unknown", NULL};
    if (vg_at_n(list) > CONDITIONS_MAX)
        vg_too_many(c, list, vg_at_n(list), CONDITIONS_MAX);
    VG_CHECK_EACH (c, it, list) {
        struct vg_at type = vg_at(&it, "type"), status = vg_at(&it, "status");
        (void)vg_check_qualified(c, &type);
        if (vg_at_text(&status).n == 0)
            vg_required(c, &status, "valid values: [\"False\" \"True\" \"Unknown\"]");
        else
            (void)vg_check_one_of(c, &status, known);
    }
}

static void check_action(struct vg_check *c, const struct vg_at *action, const struct vg_at *spec)
{
    static const char *const actions[] = {"Count", "FailIndex", "FailJob", "Ignore", NULL};
    struct vg_at per_index = vg_at(spec, "backoffLimitPerIndex");
    if (vg_at_text(action).n == 0)
        vg_required(c, action, "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]");
    else if (!vg_at_is(action, "FailIndex"))
        (void)vg_check_one_of(c, action, actions);
    else if (!vg_at_is_set(&per_index))
        vg_bad_text(c, action, "requires the backoffLimitPerIndex to be set");
}

static void check_failure_rule(struct vg_check *c, const struct vg_at *rule,
                               const struct vg_at *spec, const struct vg_names *containers)
{
    struct vg_at action = vg_at(rule, "action"), codes = vg_at(rule, "onExitCodes");
    struct vg_at conditions = vg_at(rule, "onPodConditions");
    bool has_codes = vg_at_is_set(&codes), has_conditions = vg_at_n(&conditions) > 0;
    check_action(c, &action, spec);
    if (has_codes)
        check_exit_codes(c, &codes, containers);
    check_conditions(c, &conditions);
    if (has_codes && has_conditions)
        vg_bad_value(c, rule, (struct vg_slice){0},
                     "specifying both OnExitCodes and OnPodConditions is not supported");
    if (!has_codes && !has_conditions)
        vg_bad_value(c, rule, (struct vg_slice){0},
                     "specifying one of OnExitCodes and OnPodConditions is required");
}

void vg_check_pod_failure_policy(struct vg_check *c, const struct vg_at *spec)
{
    struct vg_at policy = vg_at(spec, "podFailurePolicy"), rules = vg_at(&policy, "rules");
    const struct vg_json *pod = vg_json_at_path(spec->v, "template.spec");
    VG_AUTO(names) containers = {0};
    if (vg_at_n(&rules) > RULES_MAX)
        vg_too_many(c, &rules, vg_at_n(&rules), RULES_MAX);
    gather_names(c, pod, "containers", &containers);
    gather_names(c, pod, "initContainers", &containers);
    VG_CHECK_EACH (c, rule, &rules)
        check_failure_rule(c, &rule, spec, &containers);
}

/* ---- success ---- */

static int64_t check_indexes(struct vg_check *c, const struct vg_at *indexes, int64_t completions)
{
    struct vg_slice why;
    int64_t total = 0;
    if (vg_at_text(indexes).n > INDEXES_MAX)
        vg_too_long(c, indexes, INDEXES_MAX);
    if (!vg_job_indexes(c, vg_at_text(indexes), completions, &total, &why))
        vg_bad_text(c, indexes, "error parsing succeededIndexes: %.*s", VG_SLICE_ARG(why));
    return total;
}

static void check_success_rule(struct vg_check *c, const struct vg_at *rule, int64_t completions)
{
    struct vg_at indexes = vg_at(rule, "succeededIndexes"), count = vg_at(rule, "succeededCount");
    int64_t total = 0;
    if (!vg_at_is_set(&indexes) && !vg_at_is_set(&count))
        vg_required(c, rule,
                    "at least one of succeededCount or succeededIndexes must be specified");
    if (vg_at_is_set(&indexes))
        total = check_indexes(c, &indexes, completions);
    if (!vg_at_is_set(&count))
        return;
    (void)vg_check_not_negative(c, &count);
    if (vg_at_int(&count) > completions)
        vg_bad_int(c, &count,
                   "must be less than or equal to %" PRId64
                   " (the number of specified completions)",
                   completions);
    if (vg_at_is_set(&indexes) && vg_at_int(&count) > total)
        vg_bad_int(c, &count,
                   "must be less than or equal to %" PRId64
                   " (the number of indexes in the specified succeededIndexes field)",
                   total);
}

void vg_check_success_policy(struct vg_check *c, const struct vg_at *spec)
{
    struct vg_at policy = vg_at(spec, "successPolicy"), rules = vg_at(&policy, "rules");
    struct vg_at completions = vg_at(spec, "completions");
    if (vg_at_n(&rules) == 0)
        vg_required(c, &rules,
                    "at least one rules must be specified when the successPolicy is specified");
    if (vg_at_n(&rules) > RULES_MAX)
        vg_too_many(c, &rules, vg_at_n(&rules), RULES_MAX);
    VG_CHECK_EACH (c, rule, &rules)
        check_success_rule(c, &rule, vg_at_int(&completions));
}
