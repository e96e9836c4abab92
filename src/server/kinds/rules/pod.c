/* pod.c - pods, and templates of pods: what is theirs beside the spec. */
#include "pod_int.h"
#include "rules.h"

static struct vg_pod pod_of(struct vg_check *c, const struct vg_at *spec)
{
    const struct vg_json *os = vg_json_get_str(spec->v, "os");
    return (struct vg_pod){.c = c,
                           .spec = spec,
                           .os = vg_json_text(vg_json_get_str(os, "name")),
                           .has_os = os != NULL};
}

/* ---- templates ---- */

void vg_check_pod_template(struct vg_check *c, const struct vg_at *at)
{
    const struct vg_json *meta = vg_json_get_str(at->v, "metadata");
    struct vg_at labels = vg_at_of(at, "labels", vg_json_get_str(meta, "labels"));
    struct vg_at annotations = vg_at_of(at, "annotations", vg_json_get_str(meta, "annotations"));
    struct vg_at spec = vg_at(at, "spec"), ephemeral = vg_at(&spec, "ephemeralContainers");
    struct vg_pod p = pod_of(c, &spec);
    vg_check_labels(c, &labels);
    vg_check_annotations(c, &annotations);
    vg_pod_check_annotations(&p, &annotations);
    vg_check_pod_spec(c, &spec, NULL);
    vg_pod_check_annotated_profiles(&p, annotations.v);
    if (vg_at_n(&ephemeral))
        vg_forbidden(c, &ephemeral, "ephemeral containers not allowed in pod template");
}

static void check_template(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at template = vg_at(obj, "template");
    vg_check_pod_template(c, &template);
}

static void check_template_update(struct vg_check *c, const struct vg_at *obj,
                                  const struct vg_json *old)
{
    (void)old;
    check_template(c, obj);
}

static int prepare_template(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old)
{
    (void)a;
    (void)old;
    vg_pod_drop_disabled(vg_json_get_str(vg_json_get_str(obj, "template"), "spec"));
    return 0;
}

static void warn_template(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at template = vg_at(obj, "template");
    (void)old;
    vg_warn_pod_template(c, &template);
}

const struct vg_rules vg_rules_pod_template = {.group = "",
                                               .kind = "PodTemplate",
                                               .prepare = prepare_template,
                                               .check = check_template,
                                               .check_update = check_template_update,
                                               .warn = warn_template};

/* ---- pods ---- */

/* Tokens are those of a service account. */
static void check_tokens(struct vg_check *c, const struct vg_at *spec)
{
    struct vg_at account = vg_at(spec, "serviceAccountName"), volumes = vg_at(spec, "volumes");
    if (vg_at_text(&account).n)
        return;
    VG_CHECK_EACH (c, volume, &volumes) {
        struct vg_at projected = vg_at(&volume, "projected");
        struct vg_at sources = vg_at(&projected, "sources");
        VG_CHECK_EACH (c, source, &sources) {
            struct vg_at token = vg_at(&source, "serviceAccountToken");
            if (vg_at_is_set(&token))
                vg_forbidden(c, &token, "must not be specified when serviceAccountName is not set");
        }
    }
}

void vg_pod_check_notes(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at meta = vg_at(obj, "metadata"), annotations = vg_at(&meta, "annotations");
    struct vg_at spec = vg_at(obj, "spec");
    struct vg_pod p = pod_of(c, &spec);
    vg_pod_check_annotations(&p, &annotations);
}

void vg_pod_check_all(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at meta = vg_at(obj, "metadata");
    struct vg_at spec = vg_at(obj, "spec"), regular = vg_at(&spec, "containers");
    struct vg_at init = vg_at(&spec, "initContainers");
    static const struct vg_json nameless = {.type = VG_JSON_OBJECT};
    vg_pod_check_notes(c, obj);
    vg_check_pod_spec(c, &spec, meta.v ? meta.v : &nameless);
    check_tokens(c, &spec);
    vg_pod_check_blanks(c, &regular);
    vg_pod_check_blanks(c, &init);
}

static void check_new(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at spec = vg_at(obj, "spec"), ephemeral = vg_at(&spec, "ephemeralContainers");
    struct vg_at node = vg_at(&spec, "nodeName"), gates = vg_at(&spec, "schedulingGates");
    struct vg_pod p = pod_of(c, &spec);
    vg_pod_check_all(c, obj);
    if (vg_at_n(&ephemeral))
        vg_forbidden(c, &ephemeral, "cannot be set on create");
    if (vg_at_text(&node).n && vg_at_n(&gates))
        vg_forbidden(c, &node, "cannot be set until all schedulingGates have been cleared");
    vg_pod_check_annotated_profiles(&p, vg_json_at_path(obj->v, "metadata.annotations"));
}

static const struct vg_rules_part parts[] = {
    {.sub = "ephemeralcontainers",
     .is_alone = true,
     .prepare = vg_pod_prepare_ephemeral,
     .check = vg_pod_check_ephemeral},
    {.sub = "resize",
     .is_alone = true,
     .prepare = vg_pod_prepare_resize,
     .check = vg_pod_check_resize},
    {.sub = NULL},
};

const struct vg_rules vg_rules_pod = {.group = "",
                                      .kind = "Pod",
                                      .parts = parts,
                                      .prepare = vg_pod_prepare,
                                      .prepare_status = vg_pod_prepare_status,
                                      .check = check_new,
                                      .check_update = vg_pod_check_update,
                                      .check_status = vg_pod_check_status,
                                      .warn = vg_pod_warn};
