/* policy.c - the rules of PodDisruptionBudget, and of conditions that metav1 describes. */
#include "go_struct.h"
#include "names.h"
#include "rules.h"
#include "workload.h"

static void check_amount(struct vg_check *c, const struct vg_at *at)
{
    if (!vg_at_is_set(at))
        return;
    vg_check_int_or_percent(c, at);
    vg_check_percent_max(c, at);
}

/* Who already has a value that is no label's may keep it. */
static void check_update(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    static const char *const policies[] = {"AlwaysAllow", "IfHealthyBudget", NULL};
    struct vg_at spec = vg_at(obj, "spec"), min = vg_at(&spec, "minAvailable");
    struct vg_at max = vg_at(&spec, "maxUnavailable"), selector = vg_at(&spec, "selector");
    struct vg_at policy = vg_at(&spec, "unhealthyPodEvictionPolicy");
    if (vg_at_is_set(&min) && vg_at_is_set(&max))
        vg_bad_value(c, &spec, vg_go_struct_of(c, "policy", "PodDisruptionBudgetSpec", spec.v),
                     "minAvailable and maxUnavailable cannot be both set");
    check_amount(c, &min);
    check_amount(c, &max);
    if (!old || vg_selector_is_valid(vg_json_at_path(old, "spec.selector")))
        vg_check_label_selector(c, &selector);
    if (vg_at_is_set(&policy))
        (void)vg_check_one_of(c, &policy, policies);
}

static void check(struct vg_check *c, const struct vg_at *obj)
{
    check_update(c, obj, NULL);
}

/* ---- conditions ---- */

#define REASON_MAX 1024u
#define MESSAGE_MAX ((size_t)32 << 10)

static bool is_word(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
           ch == '_';
}

static bool is_reason(struct vg_slice s)
{
    bool is_good = s.n && is_word(s.p[0]) && s.p[0] > '9' && s.p[0] != '_' && is_word(s.p[s.n - 1]);
    for (size_t i = 0; i < s.n && is_good; i++)
        is_good = is_word(s.p[i]) || s.p[i] == ',' || s.p[i] == ':';
    return is_good;
}

static void check_reason(struct vg_check *c, const struct vg_at *reason)
{
    if (!vg_check_given(c, reason))
        return;
    if (!is_reason(vg_at_text(reason)))
        vg_bad_text(c, reason,
                    "a condition reason must start with alphabetic character, optionally followed "
                    "by a string of alphanumeric characters or '_,:', and must end with an "
                    "alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  "
                    "or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is "
                    "'[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')");
    if (vg_at_text(reason).n > REASON_MAX)
        vg_too_long(c, reason, REASON_MAX);
}

static void check_condition(struct vg_check *c, const struct vg_at *at)
{
    static const char *const states[] = {"False", "True", "Unknown", NULL};
    struct vg_at type = vg_at(at, "type"), status = vg_at(at, "status");
    struct vg_at generation = vg_at(at, "observedGeneration"), reason = vg_at(at, "reason");
    struct vg_at time = vg_at(at, "lastTransitionTime"), message = vg_at(at, "message");
    (void)vg_check_qualified(c, &type);
    (void)vg_check_one_of(c, &status, states);
    if (vg_at_int(&generation) < 0)
        vg_bad_int(c, &generation, "must be greater than or equal to zero");
    if (!vg_at_is_set(&time))
        vg_required(c, &time, NULL);
    check_reason(c, &reason);
    if (vg_at_text(&message).n > MESSAGE_MAX)
        vg_too_long(c, &message, MESSAGE_MAX);
}

void vg_check_conditions(struct vg_check *c, const struct vg_at *list)
{
    VG_AUTO(names) seen = {0};
    VG_CHECK_EACH (c, condition, list) {
        struct vg_at type = vg_at(&condition, "type");
        if (!vg_names_add(c, &seen, vg_at_text(&type), NULL))
            vg_duplicate_value(c, &type, vg_json_quoted(c, vg_at_text(&type)));
        check_condition(c, &condition);
    }
}

static void check_status(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    static const char *const counts[] = {"disruptionsAllowed", "currentHealthy", "desiredHealthy",
                                         "expectedPods", NULL};
    struct vg_at status = vg_at(obj, "status"), conditions = vg_at(&status, "conditions");
    (void)old;
    vg_check_conditions(c, &conditions);
    vg_check_not_negatives(c, &status, counts);
}

const struct vg_rules vg_rules_pod_disruption_budget = {
    .group = "policy",
    .kind = "PodDisruptionBudget",
    .check = check,
    .check_update = check_update,
    .check_status = check_status,
};
