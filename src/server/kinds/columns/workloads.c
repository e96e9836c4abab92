/* workloads.c - jobs, cron jobs, revisions. */
#include "base/age.h"
#include "cell.h"

static bool has_condition(const struct vg_cell *c, const char *type)
{
    const struct vg_json *condition = vg_cell_condition(c->v, type);
    return condition && vg_cell_is(condition, "status", "True");
}

void vg_cell_job_status(struct vg_cell *c)
{
    bool is_deleted = vg_cell_is_set(c->v, "metadata.deletionTimestamp");
    vg_cell_puts(c, has_condition(c, "Complete")             ? "Complete"
                    : has_condition(c, "Failed")             ? "Failed"
                    : is_deleted                             ? "Terminating"
                    : has_condition(c, "Suspended")          ? "Suspended"
                    : has_condition(c, "FailureTarget")      ? "FailureTarget"
                    : has_condition(c, "SuccessCriteriaMet") ? "SuccessCriteriaMet"
                                                             : "Running");
}

void vg_cell_job_completions(struct vg_cell *c)
{
    bool has_target = vg_cell_is_set(c->v, "spec.completions");
    int64_t at_once = vg_cell_int(c->v, "spec.parallelism");
    vg_cell_printf(c, "%lld/%lld", (long long)vg_cell_int(c->v, "status.succeeded"),
                   has_target ? (long long)vg_cell_int(c->v, "spec.completions") : 1);
    if (!has_target && at_once > 1)
        vg_cell_printf(c, " of %lld", (long long)at_once);
}

void vg_cell_job_duration(struct vg_cell *c)
{
    char text[VG_AGE_SIZE];
    int64_t from, to = c->now_ms;
    if (!vg_cell_time(c->v, "status.startTime", &from))
        return;
    (void)vg_cell_time(c->v, "status.completionTime", &to);
    vg_age_text((to - from) / 1000, text);
    vg_cell_puts(c, text);
}

/* A boolean in words. */
void vg_cell_suspend(struct vg_cell *c)
{
    const struct vg_json *v = vg_cell_at(c->v, "spec.suspend");
    vg_cell_puts(c, !v ? "<unset>" : vg_json_is_true(v) ? "True" : "False");
}

/* kind.group/name of the owner that controls it. */
void vg_cell_controller(struct vg_cell *c)
{
    size_t n;
    const struct vg_json *owners = vg_cell_items(c->v, "metadata.ownerReferences", &n);
    for (size_t i = 0; i < n; i++) {
        if (!vg_json_is_true(vg_cell_at(&owners[i], "controller")))
            continue;
        struct vg_slice version = vg_cell_text(&owners[i], "apiVersion");
        const char *slash = version.n ? memchr(version.p, '/', version.n) : NULL;
        vg_cell_put_lower(c, vg_cell_text(&owners[i], "kind"));
        if (slash) {
            vg_cell_puts(c, ".");
            vg_cell_put_lower(c, vg_slice(version.p, (size_t)(slash - version.p)));
        }
        vg_cell_puts(c, "/");
        vg_cell_put(c, vg_cell_text(&owners[i], "name"));
        return;
    }
    vg_cell_puts(c, "<none>");
}
