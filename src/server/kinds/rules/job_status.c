/* job_status.c - what the status of a job may say, and become; see job.h. Most rules hold only for
 * a write that changes what they are about, so that what was stored before them can be kept. */
#include "go_struct.h"
#include "job.h"
#include "names.h"

/* A job now and before, and the conditions that many rules ask for. */
struct both {
    const struct vg_json *now, *old;
    struct vg_at status;
    bool is_complete, is_failed, is_finished, is_targeted, is_met;
    bool complete_changed, failed_changed, finished_changed, targeted_changed, met_changed;
};

static bool is_true(const struct vg_json *job, const char *type)
{
    return vg_job_has_condition(job, type, "True");
}

static bool has_changed(struct vg_check *c, const struct both *b, const char *name)
{
    return !vg_check_same(c, vg_json_get_str(vg_json_get_str(b->now, "status"), name),
                          vg_json_get_str(vg_json_get_str(b->old, "status"), name));
}

static void read_both(struct both *b, const struct vg_at *obj, const struct vg_json *old)
{
    const struct vg_json *now = obj->v;
    *b = (struct both){.now = now, .old = old, .status = vg_at(obj, "status")};
    b->is_complete = is_true(now, "Complete");
    b->is_failed = is_true(now, "Failed");
    b->is_finished = b->is_complete || b->is_failed;
    b->is_targeted = is_true(now, "FailureTarget");
    b->is_met = is_true(now, "SuccessCriteriaMet");
    b->complete_changed = b->is_complete != is_true(old, "Complete");
    b->failed_changed = b->is_failed != is_true(old, "Failed");
    b->finished_changed = b->is_finished != (is_true(old, "Complete") || is_true(old, "Failed"));
    b->targeted_changed = b->is_targeted != is_true(old, "FailureTarget");
    b->met_changed = b->is_met != is_true(old, "SuccessCriteriaMet");
}

/* Of the conditions as a whole, without showing them. */
static void bad_conditions(struct vg_check *c, const struct both *b, const char *detail)
{
    struct vg_at conditions = vg_at(&b->status, "conditions");
    vg_bad_value(c, &conditions, (struct vg_slice){0}, "%s", detail);
}

/* ---- counts ---- */

static void check_uncounted(struct vg_check *c, const struct vg_at *status)
{
    static const char *const lists[] = {"succeeded", "failed", NULL};
    struct vg_at pods = vg_at(status, "uncountedTerminatedPods");
    VG_AUTO(names) seen = {0};
    for (const char *const *name = lists; *name; name++) {
        struct vg_at list = vg_at(&pods, *name);
        VG_CHECK_EACH (c, uid, &list) {
            if (vg_at_text(&uid).n == 0)
                vg_bad_text(c, &uid, "must not be empty");
            else if (!vg_names_add(c, &seen, vg_at_text(&uid), NULL))
                vg_duplicate(c, &uid);
        }
    }
}

static void check_counts(struct vg_check *c, const struct both *b)
{
    static const char *const counts[] = {"active", "succeeded",   "failed",
                                         "ready",  "terminating", NULL};
    vg_check_not_negatives(c, &b->status, counts);
    check_uncounted(c, &b->status);
}

/* ---- how it ended ---- */

static void check_times(struct vg_check *c, const struct both *b)
{
    struct vg_at start = vg_at(&b->status, "startTime"), end = vg_at(&b->status, "completionTime");
    bool end_changed = has_changed(c, b, "completionTime");
    if ((b->complete_changed || end_changed) && vg_at_is_set(&end) && !b->is_complete)
        vg_bad(c, &end, "cannot set completionTime when there is no Complete=True condition");
    if ((b->complete_changed || end_changed) && !vg_at_is_set(&end) && b->is_complete)
        vg_required(c, &end, "completionTime is required for Complete jobs");
    /* Times are in UTC, so they compare as their texts. */
    if ((end_changed || has_changed(c, b, "startTime")) && vg_at_is_set(&start) &&
        vg_at_is_set(&end) && vg_slice_cmp(vg_at_text(&end), vg_at_text(&start)) < 0)
        vg_bad(c, &end, "must be equal to or after `startTime`");
}

static void check_ends(struct vg_check *c, const struct both *b)
{
    if ((b->complete_changed || b->failed_changed) && b->is_complete && b->is_failed)
        bad_conditions(c, b, "cannot set Complete=True and Failed=true conditions");
    if ((b->complete_changed || b->targeted_changed) && b->is_complete && b->is_targeted)
        bad_conditions(c, b, "cannot set Complete=True and FailureTarget=true conditions");
    check_times(c, b);
    if ((b->failed_changed || has_changed(c, b, "failedIndexes")) && b->is_failed &&
        !b->is_targeted)
        bad_conditions(c, b,
                       "cannot set Failed=True condition without the FailureTarget=true condition");
    if ((b->complete_changed || b->met_changed) && b->is_complete && !b->is_met)
        bad_conditions(
            c, b,
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition");
}

/* A job that ended has nothing that runs. */
static void check_finished(struct vg_check *c, const struct both *b)
{
    struct vg_at active = vg_at(&b->status, "active"), start = vg_at(&b->status, "startTime");
    struct vg_at pods = vg_at(&b->status, "uncountedTerminatedPods");
    struct vg_at succeeded = vg_at(&pods, "succeeded"), failed = vg_at(&pods, "failed");
    struct vg_at completions = vg_at_root(vg_json_at_path(b->now, "spec.completions"));
    bool is_nothing = vg_json_is_true(vg_json_at_path(b->now, "spec.suspend")) &&
                      vg_at_is_set(&completions) && vg_at_int(&completions) == 0;
    if ((b->finished_changed || has_changed(c, b, "active")) && vg_at_int(&active) > 0 &&
        b->is_finished)
        vg_bad_int(c, &active, "active>0 is invalid for finished job");
    if ((b->finished_changed || has_changed(c, b, "startTime")) && !is_nothing &&
        !vg_at_is_set(&start) && b->is_finished)
        vg_required(c, &start, "startTime is required for finished job");
    if ((b->finished_changed || has_changed(c, b, "uncountedTerminatedPods")) && b->is_finished &&
        vg_at_n(&succeeded) + vg_at_n(&failed) > 0) {
        vg_bad_value(c, &pods, vg_go_struct_of(c, "batch", "UncountedTerminatedPods", pods.v),
                     "must be empty for finished job");
    }
}

/* ---- indexes ---- */

static void check_set(struct vg_check *c, const struct vg_at *set, int64_t completions)
{
    struct vg_slice why;
    int64_t total;
    if (!vg_job_indexes(c, vg_at_text(set), completions, &total, &why))
        vg_bad_text(c, set, "error parsing %s: %.*s", set->name, VG_SLICE_ARG(why));
}

static void check_indexes(struct vg_check *c, const struct both *b)
{
    struct vg_at root = vg_at_root(b->now), spec = vg_at(&root, "spec");
    struct vg_at completions = vg_at(&spec, "completions"), mode = vg_at(&spec, "completionMode");
    struct vg_at per_index = vg_at(&spec, "backoffLimitPerIndex");
    struct vg_at done = vg_at(&b->status, "completedIndexes");
    struct vg_at failed = vg_at(&b->status, "failedIndexes");
    bool done_changed = has_changed(c, b, "completedIndexes");
    bool failed_changed = has_changed(c, b, "failedIndexes");
    bool has_limit = vg_at_is_set(&per_index), has_failed = vg_at_is_set(&failed);
    if (done_changed && vg_at_is_set(&completions))
        check_set(c, &done, vg_at_int(&completions));
    if (failed_changed && vg_at_is_set(&completions) && has_limit && has_failed)
        check_set(c, &failed, vg_at_int(&completions));
    if (done_changed && vg_at_text(&done).n && !vg_at_is(&mode, "Indexed"))
        vg_bad_text(c, &done,
                    "cannot set non-empty completedIndexes when non-indexed completion mode");
    if (failed_changed && !has_limit && has_failed)
        vg_bad_text(c, &failed,
                    "cannot set non-null failedIndexes when backoffLimitPerIndex is null");
    if ((!done_changed && !failed_changed) || !vg_at_is_set(&completions) || !has_failed)
        return;
    int64_t both =
        vg_job_indexes_overlap(vg_at_text(&done), vg_at_text(&failed), vg_at_int(&completions));
    if (both >= 0)
        vg_bad_text(c, &failed, "failedIndexes and completedIndexes overlap at index: %lld",
                    (long long)both);
}

/* ---- the rest of what it may say ---- */

static void check_success(struct vg_check *c, const struct both *b)
{
    struct vg_at terminating = vg_at(&b->status, "terminating");
    struct vg_at ready = vg_at(&b->status, "ready"), active = vg_at(&b->status, "active");
    struct vg_at policy = vg_at_root(vg_json_at_path(b->now, "spec.successPolicy"));
    if ((b->finished_changed || has_changed(c, b, "terminating")) && vg_at_int(&terminating) > 0 &&
        b->is_finished)
        vg_bad_int(c, &terminating, "terminating>0 is invalid for finished job");
    if ((has_changed(c, b, "ready") || has_changed(c, b, "active")) && vg_at_is_set(&ready) &&
        vg_at_int(&ready) > vg_at_int(&active))
        vg_bad_int(c, &ready, "cannot set more ready pods than active");
    if (b->is_met && b->is_failed)
        bad_conditions(c, b, "cannot set SuccessCriteriaMet=True and Failed=true conditions");
    if (b->is_met && b->is_targeted)
        bad_conditions(c, b,
                       "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
    if (vg_at_is_set(&policy) && !b->is_met && b->is_complete)
        bad_conditions(c, b,
                       "cannot set Complete=True for Job with SuccessPolicy unless "
                       "SuccessCriteriaMet=True");
}

/* ---- what it may become ---- */

static int64_t old_count(const struct both *b, const char *name)
{
    struct vg_at at = vg_at_root(vg_json_get_str(vg_json_get_str(b->old, "status"), name));
    return vg_at_int(&at);
}

static void check_counters(struct vg_check *c, const struct both *b)
{
    struct vg_at root = vg_at_root(b->now), spec = vg_at(&root, "spec");
    struct vg_at completions = vg_at(&spec, "completions"), mode = vg_at(&spec, "completionMode");
    struct vg_at parallelism = vg_at(&spec, "parallelism");
    struct vg_at failed = vg_at(&b->status, "failed"), succeeded = vg_at(&b->status, "succeeded");
    bool is_elastic = vg_at_is(&mode, "Indexed") && vg_at_is_set(&completions) &&
                      vg_at_int(&completions) == vg_at_int(&parallelism);
    if (vg_at_int(&failed) < old_count(b, "failed"))
        vg_bad_int(c, &failed, "cannot decrease the failed counter");
    if (!is_elastic && vg_at_int(&succeeded) < old_count(b, "succeeded"))
        vg_bad_int(c, &succeeded, "cannot decrease the succeeded counter");
}

static void check_times_stay(struct vg_check *c, const struct both *b)
{
    struct vg_at start = vg_at(&b->status, "startTime"), end = vg_at(&b->status, "completionTime");
    struct vg_at old_end = vg_at_root(vg_json_at_path(b->old, "status.completionTime"));
    struct vg_at old_start = vg_at_root(vg_json_at_path(b->old, "status.startTime"));
    bool is_resuming = vg_job_has_condition(b->old, "Suspended", "True") &&
                       vg_job_has_condition(b->now, "Suspended", "False");
    if (vg_at_is_set(&end) && vg_at_is_set(&old_end) && has_changed(c, b, "completionTime"))
        vg_bad(c, &end, "field is immutable");
    if (vg_at_is_set(&old_start) && has_changed(c, b, "startTime") && !is_resuming &&
        !vg_json_is_true(vg_json_at_path(b->now, "spec.suspend")))
        vg_bad(c, &start, "field is immutable for unsuspended job once set");
}

static void check_changes(struct vg_check *c, const struct both *b)
{
    static const char *const terminal[] = {"Failed", "Complete", "FailureTarget", NULL};
    struct vg_at conditions = vg_at(&b->status, "conditions");
    bool was_met = is_true(b->old, "SuccessCriteriaMet");
    for (const char *const *type = terminal; *type; type++)
        if (is_true(b->old, *type) && !is_true(b->now, *type))
            vg_bad_value(c, &conditions, (struct vg_slice){0},
                         "cannot disable the terminal %s=True condition", *type);
    check_counters(c, b);
    check_times_stay(c, b);
    if (was_met && !b->is_met)
        bad_conditions(c, b, "cannot disable the SuccessCriteriaMet=True condition");
    if (is_true(b->old, "Complete") && !was_met && b->is_met)
        bad_conditions(c, b,
                       "cannot set SuccessCriteriaMet=True for Job already has Complete=true "
                       "conditions");
}

void vg_check_job_status(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct both b;
    read_both(&b, obj, old);
    check_counts(c, &b);
    check_ends(c, &b);
    check_finished(c, &b);
    check_indexes(c, &b);
    check_success(c, &b);
    check_changes(c, &b);
}
