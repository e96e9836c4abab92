/* event.c - the rules of events. core/v1 takes what it always took; events.k8s.io/v1 is strict.
 * Both are checked as they are stored, as core events. */
#include "go_struct.h"
#include "rules.h"

#define SHORT_MAX 128u
#define NOTE_MAX 1024u

/* Too long texts are not shown. */
static void check_length(struct vg_check *c, const struct vg_at *at, size_t max)
{
    if (vg_at_text(at).n > max)
        vg_bad_value(c, at, VG_SLICE_LIT("\"\""), "can have at most %zu characters", max);
}

/* shown: what the controller is called. */
static void check_texts(struct vg_check *c, const struct vg_at *obj, const char *shown)
{
    struct vg_at controller = vg_at_of(obj, shown, vg_json_get_str(obj->v, "reportingComponent"));
    struct vg_at instance = vg_at(obj, "reportingInstance"), action = vg_at(obj, "action");
    struct vg_at reason = vg_at(obj, "reason"), note = vg_at(obj, "message");
    (void)vg_check_given(c, &controller);
    (void)vg_check_qualified(c, &controller);
    (void)vg_check_given(c, &instance);
    check_length(c, &instance, SHORT_MAX);
    (void)vg_check_given(c, &action);
    check_length(c, &action, SHORT_MAX);
    (void)vg_check_given(c, &reason);
    check_length(c, &reason, SHORT_MAX);
    check_length(c, &note, NOTE_MAX);
}

/* What holds for both. */
static void check_any(struct vg_check *c, const struct vg_at *obj, const char *shown)
{
    struct vg_slice ns = vg_json_text(vg_json_at_path(obj->v, "metadata.namespace"));
    struct vg_at involved = vg_at(obj, "involvedObject");
    struct vg_at its_ns = vg_at(&involved, "namespace"), time = vg_at(obj, "eventTime");
    struct vg_slice other = vg_at_text(&its_ns);
    bool is_default = vg_slice_eq(ns, VG_SLICE_LIT("default"));
    bool is_ok = other.n               ? vg_at_is_set(&time) || vg_slice_eq(ns, other)
                 : vg_at_is_set(&time) ? is_default || vg_slice_eq(ns, VG_SLICE_LIT("kube-system"))
                                       : is_default || ns.n == 0;
    if (!is_ok)
        vg_bad_text(c, &its_ns, "does not match event.namespace");
    if (vg_at_is_set(&time))
        check_texts(c, obj, shown);
    struct vg_at space = vg_at_of(obj, "namespace", vg_json_at_path(obj->v, "metadata.namespace"));
    (void)vg_check_dns_subdomain(c, &space);
}

/* ---- core ---- */

static void check_core(struct vg_check *c, const struct vg_at *obj)
{
    check_any(c, obj, "reportingComponent");
}

static void check_core_update(struct vg_check *c, const struct vg_at *obj,
                              const struct vg_json *old)
{
    (void)old;
    check_any(c, obj, "reportingComponent");
}

const struct vg_rules vg_rules_event = {.group = "",
                                        .kind = "Event",
                                        .prepare = vg_prepare_meta,
                                        .check = check_core,
                                        .check_update = check_core_update};

/* ---- events.k8s.io ---- */

static void check_series(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at series = vg_at(obj, "series"), count = vg_at(&series, "count");
    struct vg_at time = vg_at(&series, "lastObservedTime");
    if (!vg_at_is_set(&series))
        return;
    if (vg_at_int(&count) < 2)
        vg_bad_value(c, &count, VG_SLICE_LIT("\"\""), "should be at least 2");
    if (!vg_at_is_set(&time))
        vg_required(c, &time, NULL);
}

static void check_unset(struct vg_check *c, const struct vg_at *obj, const char *name)
{
    struct vg_at at = vg_at(obj, name);
    bool is_zero = vg_json_is(at.v, VG_JSON_NUMBER) && vg_at_int(&at) == 0;
    if (vg_at_is_set(&at) && !is_zero && (at.v->type != VG_JSON_OBJECT || at.v->n))
        vg_bad_value(c, &at, VG_SLICE_LIT("\"\""), "needs to be unset");
}

static void check_events(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at time = vg_at(obj, "eventTime"), type = vg_at(obj, "type");
    check_any(c, obj, "reportingController");
    check_series(c, obj);
    if (!vg_at_is_set(&time))
        vg_required(c, &time, NULL);
    if (!vg_at_is(&type, "Normal") && !vg_at_is(&type, "Warning"))
        vg_bad_value(c, &type, VG_SLICE_LIT("\"\""), "has invalid value: %.*s",
                     VG_SLICE_ARG(vg_at_text(&type)));
    check_unset(c, obj, "firstTimestamp");
    check_unset(c, obj, "lastTimestamp");
    check_unset(c, obj, "count");
    check_unset(c, obj, "source");
}

/* A text or number: absent is its zero. */
static void check_kept(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old,
                       const char *name)
{
    struct vg_at at = vg_at(obj, name);
    if (vg_slice_eq(vg_at_text(&at), vg_json_text(vg_json_get_str(old, name))))
        return;
    if (vg_json_is(at.v, VG_JSON_NUMBER))
        vg_bad_int(c, &at, "field is immutable");
    else
        vg_bad_text(c, &at, "field is immutable");
}

static void check_kept_object(struct vg_check *c, const struct vg_at *obj,
                              const struct vg_json *old, const char *name, const char *type)
{
    struct vg_at at = vg_at(obj, name);
    (void)vg_check_immutable_go(c, &at, vg_json_get_str(old, name), "", type);
}

static void check_kept_value(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old,
                             const char *name)
{
    struct vg_at at = vg_at(obj, name);
    (void)vg_check_immutable(c, &at, vg_json_get_str(old, name));
}

static void check_events_update(struct vg_check *c, const struct vg_at *obj,
                                const struct vg_json *old)
{
    check_any(c, obj, "reportingController");
    if (!vg_check_same(c, vg_json_get_str(obj->v, "series"), vg_json_get_str(old, "series")))
        check_series(c, obj);
    check_kept_object(c, obj, old, "involvedObject", "ObjectReference");
    check_kept(c, obj, old, "reason");
    check_kept(c, obj, old, "message");
    check_kept_object(c, obj, old, "source", "EventSource");
    check_kept_value(c, obj, old, "firstTimestamp");
    check_kept_value(c, obj, old, "lastTimestamp");
    check_kept(c, obj, old, "count");
    check_kept(c, obj, old, "reason"); /* twice, as there */
    check_kept(c, obj, old, "type");
    check_kept_value(c, obj, old, "eventTime");
    check_kept(c, obj, old, "action");
    if (vg_json_get_str(obj->v, "related"))
        check_kept_object(c, obj, old, "related", "ObjectReference");
    else
        check_kept_value(c, obj, old, "related");
    struct vg_at controller =
        vg_at_of(obj, "reportingController", vg_json_get_str(obj->v, "reportingComponent"));
    if (!vg_slice_eq(vg_at_text(&controller),
                     vg_json_text(vg_json_get_str(old, "reportingComponent"))))
        vg_bad_text(c, &controller, "field is immutable");
    check_kept(c, obj, old, "reportingInstance");
}

const struct vg_rules vg_rules_events_event = {.group = "events.k8s.io",
                                               .kind = "Event",
                                               .prepare = vg_prepare_meta,
                                               .check = check_events,
                                               .check_update = check_events_update};
