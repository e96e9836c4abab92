/* cron_job.c - the rules of CronJob. */
#include "cron.h"
#include "job.h"
#include "pod.h"
#include "rules.h"

#define ZONE_PART_MAX 14u

static bool has_zone(const struct vg_json *schedule)
{
    struct vg_slice s = vg_json_text(schedule);
    return s.n && memmem(s.p, s.n, "TZ", 2);
}

/* Zones in schedules are an old habit: who had one may keep it. */
static void check_schedule(struct vg_check *c, const struct vg_at *spec, const struct vg_json *old)
{
    struct vg_at schedule = vg_at(spec, "schedule"), zone = vg_at(spec, "timeZone");
    struct vg_slice why;
    if (vg_at_text(&schedule).n == 0) {
        vg_required(c, &schedule, NULL);
        return;
    }
    int err = vg_cron_check(c->arena, vg_at_text(&schedule), &why);
    if (err == VIGIL_E_INVALID)
        vg_bad_text(c, &schedule, "%.*s", VG_SLICE_ARG(why));
    else if (err < 0)
        c->errors->failed = true;
    if (!has_zone(schedule.v))
        return;
    if (!has_zone(vg_json_at_path(old, "spec.schedule")))
        vg_bad_text(c, &schedule,
                    "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
    else if (vg_at_is_set(&zone))
        vg_bad_text(c, &schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule");
}

/* One part of a name between slashes. */
static bool is_zone_part(struct vg_slice s)
{
    if (s.n == 0 || s.n > ZONE_PART_MAX || s.p[0] == '-' || vg_slice_eq(s, VG_SLICE_LIT(".")) ||
        vg_slice_eq(s, VG_SLICE_LIT("..")))
        return false;
    for (size_t i = 0; i < s.n; i++) {
        char ch = s.p[i];
        bool is_plain =
            (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9');
        if (!is_plain && (ch == '\0' || !strchr(".-_+", ch)))
            return false;
    }
    return true;
}

static bool is_zone_name(struct vg_slice s)
{
    for (size_t from = 0, i = 0; i <= s.n; i++) {
        if (i < s.n && s.p[i] != '/')
            continue;
        if (!is_zone_part(vg_slice(s.p + from, i - from)))
            return false;
        from = i + 1;
    }
    return true;
}

static bool is_local(struct vg_slice s)
{
    static const char local[] = "local";
    for (size_t i = 0; i < s.n && s.n == 5; i++)
        if ((s.p[i] | 32) != local[i])
            return false;
    return s.n == 5;
}

static void check_zone(struct vg_check *c, const struct vg_at *zone)
{
    struct vg_slice name = vg_at_text(zone);
    if (!vg_at_is_set(zone))
        return;
    if (name.n == 0) {
        vg_bad(c, zone, "timeZone must be nil or non-empty string");
        return;
    }
    bool is_name = is_zone_name(name);
    if (is_name && is_local(name))
        vg_bad(c, zone,
               "timeZone must be an explicit time zone as defined in "
               "https://www.iana.org/time-zones");
    if (!is_name || !vg_zone_is_known(name))
        vg_bad(c, zone, "unknown time zone %.*s", VG_SLICE_ARG(name));
}

static void check_job_template(struct vg_check *c, const struct vg_at *template)
{
    static const char *const values[] = {"nil", "false", NULL};
    struct vg_at spec = vg_at(template, "spec"), selector = vg_at(&spec, "selector");
    struct vg_at manual = vg_at(&spec, "manualSelector");
    vg_check_job_spec(c, &spec);
    if (vg_at_is_set(&selector))
        vg_bad(c, &selector, "`selector` will be auto-generated");
    if (vg_at_is_true(&manual))
        vg_unsupported_value(c, &manual, VG_SLICE_LIT("true"), values);
}

static void check_spec(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    static const char *const policies[] = {"Allow", "Forbid", "Replace", NULL};
    static const char *const limits[] = {"successfulJobsHistoryLimit", "failedJobsHistoryLimit",
                                         NULL};
    struct vg_at spec = vg_at(obj, "spec"), deadline = vg_at(&spec, "startingDeadlineSeconds");
    struct vg_at zone = vg_at(&spec, "timeZone"), policy = vg_at(&spec, "concurrencyPolicy");
    struct vg_at template = vg_at(&spec, "jobTemplate");
    const struct vg_json *old_zone = vg_json_at_path(old, "spec.timeZone");
    check_schedule(c, &spec, old);
    (void)vg_check_not_negative(c, &deadline);
    if (!old_zone || !vg_slice_eq(vg_json_text(old_zone), vg_at_text(&zone)))
        check_zone(c, &zone);
    (void)vg_check_one_of(c, &policy, policies);
    check_job_template(c, &template);
    vg_check_not_negatives(c, &spec, limits);
}

static void check(struct vg_check *c, const struct vg_at *obj)
{
    check_spec(c, obj, NULL);
}

static int prepare(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old)
{
    struct vg_json *job = vg_json_get_str(vg_json_get_str(obj, "spec"), "jobTemplate");
    return vg_prepare_template(a, job, old);
}

static void warn(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), template = vg_at(&spec, "jobTemplate");
    struct vg_at job = vg_at(&template, "spec");
    vg_warn_name(c, obj, old);
    if (vg_is_new(obj, old, "spec"))
        vg_warn_job_spec(c, &job);
    if (old && has_zone(vg_json_get_str(spec.v, "schedule")))
        vg_caution(c, "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
                      "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for "
                      "more details");
}

const struct vg_rules vg_rules_cron_job = {
    .group = "batch",
    .kind = "CronJob",
    .prepare = prepare,
    .ignores_meta = true,
    .check = check,
    .check_update = check_spec,
    .warn = warn,
};
