/* replication.c - the rules of ReplicationController. */
#include "pod.h"
#include "rules.h"
#include "workload.h"

static void check_controller_template(struct vg_check *c, const struct vg_at *template,
                                      const struct vg_at *selector)
{
    if (!vg_at_is_set(template)) {
        vg_required(c, template, NULL);
        return;
    }
    struct vg_at meta = vg_at(template, "metadata"), labels = vg_at(&meta, "labels");
    if (vg_at_n(selector) && !vg_labels_match(c, selector->v, labels.v))
        vg_bad(c, &labels, "`selector` does not match template `labels`");
    vg_check_pod_template(c, template);
    vg_check_runs_always(c, template, "ReplicationController");
}

static void check_controller(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at spec = vg_at(obj, "spec"), selector = vg_at(&spec, "selector");
    struct vg_at replicas = vg_at(&spec, "replicas"), wait = vg_at(&spec, "minReadySeconds");
    struct vg_at template = vg_at(&spec, "template");
    (void)vg_check_not_negative(c, &wait);
    if (vg_at_n(&selector) == 0)
        vg_required(c, &selector, NULL);
    (void)vg_check_not_negative(c, &replicas);
    check_controller_template(c, &template, &selector);
}

static void check_controller_update(struct vg_check *c, const struct vg_at *obj,
                                    const struct vg_json *old)
{
    (void)old;
    check_controller(c, obj);
}

/* An update is warned of what the template was, as there. */
static void warn_controller(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), template = vg_at(&spec, "template");
    vg_warn_name(c, obj, old);
    if (old)
        template.v = vg_json_at_path(old, "spec.template");
    if (vg_is_new(obj, old, "spec"))
        vg_warn_pod_template(c, &template);
}

const struct vg_rules vg_rules_replication_controller = {
    .group = "",
    .kind = "ReplicationController",
    .prepare = vg_prepare_template,
    .ignores_meta = true,
    .check = check_controller,
    .check_update = check_controller_update,
    .check_status = vg_check_replicas_status,
    .warn = warn_controller,
};
