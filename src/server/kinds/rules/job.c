/* job.c - the rules of jobs: what the server sets, and the spec, which cron jobs share. Its
 * policies are in job_policy.c, updates in job_update.c. */
#include <inttypes.h>
#include <stdio.h>

#include "defaults.h"
#include "go_struct.h"
#include "job.h"
#include "pod.h"
#include "rules.h"

#define INDEXES_MAX 100000      /* pods at once of an indexed job, and failed indexes of one */
#define COMPLETIONS_MANY 100000 /* beyond, with a limit per index: */
#define AT_ONCE_OF_MANY 10000
#define MANAGED_BY_MAX 63u

#define CONTROLLER_UID "batch.kubernetes.io/controller-uid"
#define JOB_NAME "batch.kubernetes.io/job-name"

/* ---- what the server sets ---- */

/* Unless it is there; at its place among the others, which are sorted. */
static int add_label(struct vg_arena *a, struct vg_json *labels, const char *name,
                     const struct vg_json *value)
{
    if (!value || vg_json_get_str(labels, name))
        return 0;
    int err = vg_json_object_add(a, labels, vg_slice_str(name), *value);
    for (uint32_t i = labels->n; err == 0 && i-- > 1;) {
        struct vg_json_member *m = &labels->members[i], own = *m;
        if (vg_slice_cmp(vg_json_key(m - 1), vg_json_key(m)) <= 0)
            break;
        *m = m[-1];
        m[-1] = own;
    }
    return err;
}

/* The pods of a job are told from all others by its uid. */
static int select_by_uid(struct vg_arena *a, struct vg_json *obj, struct vg_json *spec)
{
    const struct vg_json *uid = vg_json_at_path(obj, "metadata.uid");
    const struct vg_json *name = vg_json_at_path(obj, "metadata.name");
    struct vg_json *template = NULL, *meta = NULL, *labels = NULL, *selector = NULL, *match = NULL;
    int err = vg_default_object(a, spec, "template", &template);
    if (err == 0)
        err = vg_default_object(a, template, "metadata", &meta);
    if (err == 0)
        err = vg_default_object(a, meta, "labels", &labels);
    if (err == 0)
        err = add_label(a, labels, "job-name", name);
    if (err == 0)
        err = add_label(a, labels, JOB_NAME, name);
    if (err == 0)
        err = add_label(a, labels, "controller-uid", uid);
    if (err == 0)
        err = add_label(a, labels, CONTROLLER_UID, uid);
    if (err == 0)
        err = vg_default_object(a, spec, "selector", &selector);
    if (err == 0)
        err = vg_default_object(a, selector, "matchLabels", &match);
    return err < 0 ? err : add_label(a, match, CONTROLLER_UID, uid);
}

/* A job without labels has those of its pods. Those that only the server gave to the pods it gets
 * when it was found valid: a name that is no label is not told twice. */
static int default_labels(struct vg_arena *a, struct vg_json *obj, bool had_labels)
{
    const struct vg_json *own = vg_json_at_path(obj, "metadata.labels");
    const struct vg_json *labels = vg_json_at_path(obj, "spec.template.metadata.labels");
    struct vg_slice name = vg_json_text(vg_json_at_path(obj, "metadata.name"));
    struct vg_json copy;
    if ((own && own->n) || !labels || labels->n == 0 ||
        (!had_labels && !vg_validate_label_value(name, NULL)))
        return 0;
    int err = vg_json_clone(a, labels, &copy);
    return err < 0 ? err
                   : vg_json_object_set(a, vg_json_get_str(obj, "metadata"), VG_SLICE_LIT("labels"),
                                        copy);
}

static int prepare(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old)
{
    struct vg_json *spec = vg_json_get_str(obj, "spec");
    const struct vg_json *labels = vg_json_at_path(spec, "template.metadata.labels");
    bool had_labels = labels && labels->n;
    int err = vg_prepare_template(a, obj, old);
    if (err == 0 && !old && !vg_json_is_true(vg_json_get_str(spec, "manualSelector")))
        err = select_by_uid(a, obj, spec);
    return err < 0 ? err : default_labels(a, obj, had_labels);
}

static int prepare_status(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old)
{
    (void)old;
    return default_labels(a, obj, true);
}

/* ---- the spec ---- */

static void check_managed_by(struct vg_check *c, const struct vg_at *at)
{
    struct vg_slice s = vg_at_text(at);
    if (!vg_at_is_set(at))
        return;
    if (s.n == 0)
        vg_required(c, at, NULL);
    else
        vg_check_domain_path(c, at);
    if (s.n > MANAGED_BY_MAX)
        vg_too_long(c, at, MANAGED_BY_MAX);
}

static void check_counts(struct vg_check *c, const struct vg_at *spec)
{
    static const char *const counts[] = {"parallelism",
                                         "completions",
                                         "activeDeadlineSeconds",
                                         "backoffLimit",
                                         "ttlSecondsAfterFinished",
                                         "backoffLimitPerIndex",
                                         "maxFailedIndexes",
                                         NULL};
    struct vg_at per_index = vg_at(spec, "backoffLimitPerIndex");
    struct vg_at failed = vg_at(spec, "maxFailedIndexes");
    vg_check_not_negatives(c, spec, counts);
    if (vg_at_is_set(&failed) && !vg_at_is_set(&per_index))
        vg_required(c, &per_index, "when maxFailedIndexes is specified");
}

/* An indexed job with very many indexes, and a limit for each of them. */
static void check_many(struct vg_check *c, const struct vg_at *parallelism,
                       const struct vg_at *failed)
{
    static const char detail[] = "must be less than or equal to %d when completions are above %d "
                                 "and used with backoff limit per index";
    if (!vg_at_is_set(failed))
        vg_required(c, failed, "must be specified when completions is above %d", COMPLETIONS_MANY);
    if (vg_at_int(parallelism) > AT_ONCE_OF_MANY)
        vg_bad_int(c, parallelism, detail, AT_ONCE_OF_MANY, COMPLETIONS_MANY);
    if (vg_at_int(failed) > AT_ONCE_OF_MANY)
        vg_bad_int(c, failed, detail, AT_ONCE_OF_MANY, COMPLETIONS_MANY);
}

static void check_indexed(struct vg_check *c, const struct vg_at *spec)
{
    struct vg_at completions = vg_at(spec, "completions"), failed = vg_at(spec, "maxFailedIndexes");
    struct vg_at parallelism = vg_at(spec, "parallelism");
    struct vg_at per_index = vg_at(spec, "backoffLimitPerIndex");
    bool has_completions = vg_at_is_set(&completions);
    if (!has_completions)
        vg_required(c, &completions, "when completion mode is Indexed");
    if (vg_at_int(&parallelism) > INDEXES_MAX)
        vg_bad_int(c, &parallelism,
                   "must be less than or equal to %d when completion mode is Indexed", INDEXES_MAX);
    if (has_completions && vg_at_is_set(&failed) && vg_at_int(&failed) > vg_at_int(&completions))
        vg_bad_int(c, &failed, "must be less than or equal to completions");
    if (vg_at_int(&failed) > INDEXES_MAX)
        vg_bad_int(c, &failed, "must be less than or equal to %d", INDEXES_MAX);
    if (vg_at_int(&completions) > COMPLETIONS_MANY && vg_at_is_set(&per_index))
        check_many(c, &parallelism, &failed);
}

static void check_mode(struct vg_check *c, const struct vg_at *spec)
{
    static const char *const modes[] = {"NonIndexed", "Indexed", NULL};
    static const char *const only_indexed[] = {"backoffLimitPerIndex", "maxFailedIndexes", NULL};
    struct vg_at mode = vg_at(spec, "completionMode");
    if (vg_at_is(&mode, "Indexed"))
        check_indexed(c, spec);
    else if (vg_at_is_set(&mode))
        (void)vg_check_one_of(c, &mode, modes);
    if (vg_at_is_set(&mode) && !vg_at_is(&mode, "NonIndexed"))
        return;
    for (const char *const *name = only_indexed; *name; name++) {
        struct vg_at field = vg_at(spec, *name);
        if (vg_at_is_set(&field))
            vg_bad_int(c, &field, "requires indexed completion mode");
    }
}

static void check_policies(struct vg_check *c, const struct vg_at *spec)
{
    static const char *const failed[] = {"Failed", NULL};
    static const char *const any[] = {"Failed", "TerminatingOrFailed", NULL};
    struct vg_at failure = vg_at(spec, "podFailurePolicy"), success = vg_at(spec, "successPolicy");
    struct vg_at mode = vg_at(spec, "completionMode");
    struct vg_at replacement = vg_at(spec, "podReplacementPolicy");
    if (vg_at_is_set(&failure))
        vg_check_pod_failure_policy(c, spec);
    if (vg_at_is_set(&success) && !vg_at_is(&mode, "Indexed"))
        vg_bad_value(c, &success, vg_go_struct_of(c, "batch", "SuccessPolicy", success.v),
                     "requires indexed completion mode");
    else if (vg_at_is_set(&success))
        vg_check_success_policy(c, spec);
    if (vg_at_is_set(&replacement))
        (void)vg_check_one_of(c, &replacement, vg_at_is_set(&failure) ? failed : any);
}

static void check_restarts(struct vg_check *c, const struct vg_at *spec)
{
    static const char *const known[] = {"OnFailure", "Never", NULL};
    struct vg_at template = vg_at(spec, "template"), pod = vg_at(&template, "spec");
    struct vg_at policy = vg_at(&pod, "restartPolicy"), failure = vg_at(spec, "podFailurePolicy");
    if (vg_at_text(&policy).n == 0 || vg_at_is(&policy, "Always"))
        vg_required(c, &policy, "valid values: \"OnFailure\", \"Never\"");
    else if (vg_check_one_of(c, &policy, known) && vg_at_is_set(&failure) &&
             !vg_at_is(&policy, "Never"))
        vg_bad_text(c, &policy, "only \"Never\" is supported when podFailurePolicy is specified");
}

void vg_check_job_spec(struct vg_check *c, const struct vg_at *spec)
{
    struct vg_at managed_by = vg_at(spec, "managedBy"), template = vg_at(spec, "template");
    check_counts(c, spec);
    check_managed_by(c, &managed_by);
    check_mode(c, spec);
    check_policies(c, spec);
    vg_check_pod_template(c, &template);
    check_restarts(c, spec);
}

/* ---- a job ---- */

static void check_spec(struct vg_check *c, const struct vg_at *spec)
{
    struct vg_at selector = vg_at(spec, "selector"), template = vg_at(spec, "template");
    vg_check_job_spec(c, spec);
    if (!vg_at_is_set(&selector))
        vg_required(c, &selector, NULL);
    else
        vg_check_label_selector(c, &selector);
    if (vg_selector_is_valid(selector.v))
        vg_check_selects_template(c, selector.v, &template);
}

static void check_label(struct vg_check *c, const struct vg_at *labels, const char *name,
                        struct vg_slice want)
{
    const struct vg_json *is = vg_json_get_str(labels->v, name);
    struct vg_at label = {
        .up = labels, .v = labels->v, .key = vg_slice_str(name), .step = VG_AT_KEY};
    if (!is)
        vg_required(c, &label, "must be '%.*s'", VG_SLICE_ARG(want));
    else if (!vg_slice_eq(vg_json_text(is), want))
        vg_bad(c, &label, "must be '%.*s'", VG_SLICE_ARG(want));
}

/* Would the selector match pods that have these labels and no other? */
static bool is_generated(struct vg_check *c, const struct vg_json *selector,
                         const struct vg_json *uid, const struct vg_json *name, bool has_prefixed)
{
    struct vg_json own = vg_json_object();
    int err = add_label(c->arena, &own, "controller-uid", uid);
    if (err == 0)
        err = add_label(c->arena, &own, "job-name", name);
    if (err == 0 && has_prefixed)
        err = add_label(c->arena, &own, CONTROLLER_UID, uid);
    if (err == 0 && has_prefixed)
        err = add_label(c->arena, &own, JOB_NAME, name);
    c->errors->failed |= err < 0;
    return vg_selector_matches(c, selector, &own);
}

/* Jobs of long ago lack the labels with a prefix. */
static bool has_prefixed_labels(const struct vg_json *old)
{
    const struct vg_json *labels = vg_json_at_path(old, "spec.template.metadata.labels");
    return !old || (vg_json_get_str(labels, CONTROLLER_UID) && vg_json_get_str(labels, JOB_NAME));
}

static void check_generated(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), manual = vg_at(&spec, "manualSelector");
    struct vg_at selector = vg_at(&spec, "selector"), template = vg_at(&spec, "template");
    struct vg_at meta = vg_at(&template, "metadata"), labels = vg_at(&meta, "labels");
    const struct vg_json *uid = vg_json_at_path(obj->v, "metadata.uid");
    const struct vg_json *name = vg_json_at_path(obj->v, "metadata.name");
    bool has_prefixed = has_prefixed_labels(old);
    if (vg_at_is_true(&manual) || !vg_at_is_set(&selector))
        return;
    check_label(c, &labels, "controller-uid", vg_json_text(uid));
    check_label(c, &labels, "job-name", vg_json_text(name));
    if (has_prefixed) {
        check_label(c, &labels, CONTROLLER_UID, vg_json_text(uid));
        check_label(c, &labels, JOB_NAME, vg_json_text(name));
    }
    if (vg_selector_is_valid(selector.v) && !is_generated(c, selector.v, uid, name, has_prefixed))
        vg_bad(c, &selector, "`selector` not auto-generated");
}

/* The pods of an indexed job are hosts named after it. */
static void check_host(struct vg_check *c, const struct vg_at *obj, const struct vg_at *spec)
{
    struct vg_at mode = vg_at(spec, "completionMode"), completions = vg_at(spec, "completions");
    struct vg_at meta = vg_at(obj, "metadata"), name = vg_at(&meta, "name");
    char host[VG_DNS_SUBDOMAIN_MAX + 16];
    if (!vg_at_is(&mode, "Indexed") || vg_at_int(&completions) <= 0 ||
        vg_at_text(&name).n > VG_DNS_SUBDOMAIN_MAX)
        return;
    int n = snprintf(host, sizeof host, "%.*s-%" PRId64, VG_SLICE_ARG(vg_at_text(&name)),
                     vg_at_int(&completions) - 1);
    if (!vg_validate_dns1123_label(vg_slice(host, (size_t)n), VG_NAME_CHARACTERS, NULL))
        vg_bad_text(c, &name, "will not able to create pod with invalid DNS label: %s", host);
}

static void check_job(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec");
    check_generated(c, obj, old);
    check_spec(c, &spec);
    check_host(c, obj, &spec);
}

static void check(struct vg_check *c, const struct vg_at *obj)
{
    check_job(c, obj, NULL);
}

/* What is wrong with the spec is told twice, as there: by the rules of a job, and of its update. */
static void check_update(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec");
    size_t before = c->errors->n;
    check_job(c, obj, old);
    if (c->errors->n > before)
        check_spec(c, &spec);
    vg_check_job_update(c, obj, old);
}

void vg_warn_job_spec(struct vg_check *c, const struct vg_at *spec)
{
    struct vg_at mode = vg_at(spec, "completionMode"), parallelism = vg_at(spec, "parallelism");
    struct vg_at completions = vg_at(spec, "completions"), template = vg_at(spec, "template");
    if (vg_at_is(&mode, "Indexed") && vg_at_int(&completions) > COMPLETIONS_MANY &&
        vg_at_int(&parallelism) > AT_ONCE_OF_MANY)
        vg_caution_at(c, spec,
                      "In Indexed Jobs with a number of completions higher than 10^5 and a "
                      "parallelism higher than 10^4, Kubernetes might not be able to track "
                      "completedIndexes when a big number of indexes fail");
    vg_warn_pod_template(c, &template);
}

static void warn(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec");
    vg_warn_name(c, obj, old);
    if (vg_is_new(obj, old, "spec"))
        vg_warn_job_spec(c, &spec);
}

const struct vg_rules vg_rules_job = {
    .group = "batch",
    .kind = "Job",
    .prepare = prepare,
    .prepare_status = prepare_status,
    .check = check,
    .check_update = check_update,
    .check_status = vg_check_job_status,
    .warn = warn,
};
