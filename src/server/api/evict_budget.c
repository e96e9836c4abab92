/* evict_budget.c - budgets of disruption: whose pod it is, whether one more may go, and taking it.
 * A controller reckons how many may; here one is taken for each eviction, by compare-and-swap on
 * the budget, with the pod's name, so that the controller does not count on it any more. */
#include <errno.h>

#include "evict_int.h"
#include "server/kinds/rules/workload.h"
#include "server/kinds/types.h"
#include "server/schema/decode.h"
#include "status_int.h"

/* As many evictions may wait for the controller to see them. */
#define DISRUPTED_MAX 2000u

static struct vg_slice text_of(const struct vg_json *v, const char *name)
{
    return vg_json_text(vg_json_get_str(v, name));
}

static int64_t int_of(const struct vg_json *v, const char *name)
{
    int64_t i = 0;
    return vg_json_to_int64(vg_json_get_str(v, name), &i) < 0 ? 0 : i;
}

static bool is_text(const struct vg_json *v, const char *name, const char *text)
{
    return vg_slice_eq(text_of(v, name), vg_slice_str(text));
}

static const struct vg_json *condition_of(const struct vg_json *status, const char *type)
{
    const struct vg_json *list = vg_json_get_str(status, "conditions");
    if (list)
        VG_JSON_FOREACH_ITEM (it, list)
            if (is_text(it, "type", type))
                return it;
    return NULL;
}

/* ---- pods ---- */

static bool is_over(const struct vg_json *pod)
{
    const struct vg_json *status = vg_json_get_str(pod, "status");
    return is_text(status, "phase", "Succeeded") || is_text(status, "phase", "Failed") ||
           text_of(vg_json_get_str(pod, "metadata"), "deletionTimestamp").n;
}

bool vg_budget_is_idle(const struct vg_json *pod)
{
    return is_over(pod) || is_text(vg_json_get_str(pod, "status"), "phase", "Pending");
}

bool vg_budget_may_race(const struct vg_json *pod)
{
    return !is_over(pod);
}

bool vg_budget_spares(const struct vg_json *budget, const struct vg_json *pod)
{
    const struct vg_json *spec = vg_json_get_str(budget, "spec");
    const struct vg_json *status = vg_json_get_str(budget, "status");
    int64_t wanted = int_of(status, "desiredHealthy");
    if (is_text(condition_of(vg_json_get_str(pod, "status"), "Ready"), "status", "True"))
        return false;
    return is_text(spec, "unhealthyPodEvictionPolicy", "AlwaysAllow") ||
           (int_of(status, "currentHealthy") >= wanted && wanted > 0);
}

int vg_budget_find(struct vg_eviction *w, const struct vg_json *pod, struct vg_json **ret_budget,
                   size_t *ret_n)
{
    struct vg_api_call *call = w->look.call;
    struct vg_arena *a = &call->ask->arena;
    struct vg_json_opts opts = {.scratch = &call->loop->scratch, .max_depth = VG_JSON_DEPTH_MAX};
    const struct vg_json *labels = vg_json_get_str(vg_json_get_str(pod, "metadata"), "labels");
    struct vg_field_errors e = {.arena = a};
    struct vg_check check = {.errors = &e, .arena = a};
    *ret_n = 0;
    for (size_t i = 0; i < w->range.n_recs; i++) {
        const struct vg_rec *rec = w->range.recs[i];
        struct vg_json *budget;
        int err = rec->header_len == 0 ? VIGIL_E_STORE_DAMAGED
                                       : vg_json_parse(a, vg_rec_value(rec), &opts, &budget, NULL);
        if (err < 0)
            return err;
        const struct vg_json *selector =
            vg_json_get_str(vg_json_get_str(budget, "spec"), "selector");
        if (!vg_selector_is_valid(selector) || !vg_selector_matches(&check, selector, labels))
            continue;
        if ((*ret_n)++ == 0)
            *ret_budget = budget;
    }
    return e.failed ? -ENOMEM : 0;
}

/* ---- refusals ---- */

static void say_cause(struct vg_arena *a, struct vg_api_status *ret, uint32_t retry_after_s,
                      struct vg_slice why)
{
    struct vg_cause *cause = vg_arena_new(a, struct vg_cause);
    if (!cause || !why.p) {
        vg_status_no_memory(ret);
        return;
    }
    *cause = (struct vg_cause){.reason = "DisruptionBudget", .message = why};
    *ret = (struct vg_api_status){
        .code = 429,
        .reason = "TooManyRequests",
        .message =
            VG_SLICE_LIT("Cannot evict pod as it would violate the pod's disruption budget."),
        .has_details = true,
        .causes = cause,
        .n_causes = 1,
        .retry_after_s = retry_after_s};
}

void vg_budget_say_busy(struct vg_eviction *w, struct vg_api_status *ret)
{
    struct vg_arena *a = &w->look.call->ask->arena;
    struct vg_slice why = {0};
    if (vg_arena_printf(a, &why,
                        "The disruption budget %.*s is still being processed by the server.",
                        VG_SLICE_ARG(w->budget)) < 0)
        why = vg_slice(NULL, 0);
    say_cause(a, ret, 10, why);
}

static struct vg_slice why_none(struct vg_change *c, const struct vg_json *status)
{
    struct vg_arena *a = &c->call->ask->arena;
    const struct vg_json *condition = condition_of(status, "DisruptionAllowed");
    struct vg_slice why = {0}, message = text_of(condition, "message");
    bool is_false = is_text(condition, "status", "False") && message.n;
    int64_t wanted = int_of(status, "desiredHealthy"), is = int_of(status, "currentHealthy");
    int err;
    if (is_false && is_text(condition, "reason", "SyncFailed"))
        err = vg_arena_printf(a, &why,
                              "The disruption budget %.*s does not allow evicting pods currently "
                              "because it failed sync: %.*s",
                              VG_SLICE_ARG(c->name), VG_SLICE_ARG(message));
    else if (is <= wanted)
        err = vg_arena_printf(
            a, &why, "The disruption budget %.*s needs %lld healthy pods and has %lld currently",
            VG_SLICE_ARG(c->name), (long long)wanted, (long long)is);
    else if (is_false)
        err = vg_arena_printf(
            a, &why,
            "The disruption budget %.*s does not allow evicting pods currently (%.*s): %.*s",
            VG_SLICE_ARG(c->name), VG_SLICE_ARG(text_of(condition, "reason")),
            VG_SLICE_ARG(message));
    else
        err = vg_arena_printf(a, &why,
                              "The disruption budget %.*s does not allow evicting pods currently",
                              VG_SLICE_ARG(c->name));
    return err < 0 ? vg_slice(NULL, 0) : why;
}

static enum vg_verdict forbid(struct vg_change *c, const char *why)
{
    struct vg_arena *a = &c->call->ask->arena;
    c->status = (struct vg_api_status){.code = 403,
                                       .reason = "Forbidden",
                                       .has_details = true,
                                       .name = c->name,
                                       .group = vg_slice_str(c->kind->group),
                                       .kind = vg_slice_str(c->kind->singular)};
    if (vg_arena_printf(a, &c->status.message, "%s.%s %.*s is forbidden: %s", c->kind->singular,
                        c->kind->group, VG_SLICE_ARG(vg_api_quote(a, c->name)), why) < 0)
        vg_status_no_memory(&c->status);
    return VG_CHANGE_FAIL;
}

/* ---- one less ---- */

static int put_text(struct vg_arena *a, struct vg_json *object, const char *name, struct vg_slice s)
{
    return vg_json_object_set(a, object, vg_slice_str(name), vg_json_string_ref(s));
}

static int put_int(struct vg_arena *a, struct vg_json *object, const char *name, int64_t i)
{
    struct vg_json number;
    int err = vg_json_make_int(a, i, &number);
    return err < 0 ? err : vg_json_object_set(a, object, vg_slice_str(name), number);
}

/* The condition that says that none is left. */
static int fill_condition(struct vg_change *c, struct vg_json *condition, int64_t observed)
{
    struct vg_arena *a = &c->scratch;
    struct vg_slice now;
    int err = 0;
    if (!is_text(condition, "status", "False")) {
        err = vg_stamp_time(c, 0, &now);
        if (err == 0)
            err = put_text(a, condition, "lastTransitionTime", now);
    }
    if (err == 0)
        err = put_text(a, condition, "type", VG_SLICE_LIT("DisruptionAllowed"));
    if (err == 0)
        err = put_text(a, condition, "status", VG_SLICE_LIT("False"));
    if (err == 0)
        err = put_text(a, condition, "reason", VG_SLICE_LIT("InsufficientPods"));
    if (err == 0)
        err = put_text(a, condition, "message", VG_SLICE_LIT(""));
    return err < 0 ? err : put_int(a, condition, "observedGeneration", observed);
}

static int say_none_left(struct vg_change *c, struct vg_json *status)
{
    struct vg_arena *a = &c->scratch;
    const struct vg_json *given = vg_json_get_str(status, "conditions");
    struct vg_json list = vg_json_array(), fresh = vg_json_object();
    bool is_there = false;
    int err = 0;
    for (uint32_t i = 0; vg_json_is(given, VG_JSON_ARRAY) && i < given->n && err == 0; i++) {
        struct vg_json copy = given->items[i];
        if (is_text(&copy, "type", "DisruptionAllowed") && !is_there) {
            is_there = true;
            err = vg_json_clone(a, &given->items[i], &copy);
            if (err == 0)
                err = fill_condition(c, &copy, int_of(status, "observedGeneration"));
        }
        if (err == 0)
            err = vg_json_array_push(a, &list, copy);
    }
    if (err == 0 && !is_there) {
        err = fill_condition(c, &fresh, int_of(status, "observedGeneration"));
        if (err == 0)
            err = vg_json_array_push(a, &list, fresh);
    }
    return err < 0 ? err : vg_json_object_set(a, status, VG_SLICE_LIT("conditions"), list);
}

static int take(struct vg_change *c, struct vg_json *status, struct vg_slice pod)
{
    struct vg_arena *a = &c->scratch;
    struct vg_json disrupted = vg_json_object();
    const struct vg_json *given = vg_json_get_str(status, "disruptedPods");
    int64_t left = int_of(status, "disruptionsAllowed") - 1;
    struct vg_slice now;
    int err = vg_stamp_time(c, 0, &now);
    if (err == 0 && vg_json_is(given, VG_JSON_OBJECT))
        err = vg_json_top_copy(a, given, &disrupted);
    if (err == 0)
        err = vg_json_object_set(a, &disrupted, pod, vg_json_string_ref(now));
    if (err == 0)
        err = vg_json_object_set(a, status, VG_SLICE_LIT("disruptedPods"), disrupted);
    if (err == 0)
        err = put_int(a, status, "disruptionsAllowed", left);
    return err < 0 || left > 0 ? err : say_none_left(c, status);
}

/* The server is who writes it. */
static int manage(struct vg_change *c, const struct vg_json *root, struct vg_body *cur)
{
    struct vg_json now;
    int err = vg_schema_arrange(&c->scratch, vg_kind_type(c->kind), root, &now);
    struct vg_body was = *cur;
    return err < 0 ? err : vg_change_manage(c, &now, &was, &was, &cur->meta.managed);
}

enum vg_verdict vg_budget_take(struct vg_change *c)
{
    struct vg_eviction *w = VG_CONTAINER_OF(c, struct vg_eviction, change);
    struct vg_body cur;
    struct vg_json root, status = vg_json_object();
    if (!c->cur) {
        vg_status_not_found(&c->call->ask->arena, &c->status, c->kind, c->name);
        return VG_CHANGE_FAIL;
    }
    if (vg_change_load(c, &cur) < 0)
        return VG_CHANGE_FAIL;
    const struct vg_json *was = vg_json_get_str(cur.root, "status");
    const struct vg_json *disrupted = vg_json_get_str(was, "disruptedPods");
    if (int_of(was, "observedGeneration") < cur.meta.generation) {
        vg_budget_say_busy(w, &c->status);
        return VG_CHANGE_FAIL;
    }
    if (int_of(was, "disruptionsAllowed") < 0)
        return forbid(c, "pdb disruptions allowed is negative");
    if (disrupted && disrupted->n > DISRUPTED_MAX)
        return forbid(c, "DisruptedPods map too big - too many evictions not confirmed by PDB "
                         "controller");
    if (int_of(was, "disruptionsAllowed") == 0) {
        say_cause(&c->call->ask->arena, &c->status, 0, why_none(c, was));
        return VG_CHANGE_FAIL;
    }
    int err = vg_json_top_copy(&c->scratch, cur.root, &root);
    if (err == 0)
        err = vg_json_top_copy(&c->scratch, was, &status);
    if (err == 0)
        err = take(c, &status, w->look.name);
    if (err == 0)
        err = vg_json_object_set(&c->scratch, &root, VG_SLICE_LIT("status"), status);
    if (err == 0)
        err = manage(c, &root, &cur);
    return err < 0 ? vg_change_refuse(c, err) : vg_change_seal(c, &root, &cur.meta, cur.root);
}
