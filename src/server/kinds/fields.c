/* fields.c - what may be selected of each kind, and how selectors name it.
 * Two lists for a kind: where a field's value is found, and which labels are accepted for it; they
 * differ by metadata.name and metadata.namespace, which every header has, and by aliases. A default
 * that kube-apiserver writes into an object is what a missing value reads as. */
#include "object/predicate.h"
#include "rows.h"

/* clang-format off */
#define TEXT(s) {s, sizeof(s) - 1}
#define LABEL(name_, index_) {.name = TEXT(name_), .index = index_}
#define ALIAS(name_, of_, index_) {.name = TEXT(name_), .canonical = TEXT(of_), .index = index_}
#define META_NAME LABEL("metadata.name", VG_OBJ_FIELD_NAME)
#define META_NAMESPACE LABEL("metadata.namespace", VG_OBJ_FIELD_NAMESPACE)
/* clang-format on */

#define OWN_FIELDS(name_, trigger_)                                                                \
    const struct vg_obj_fields vg_fields_##name_ = {                                               \
        .v = name_##_defs, .n = VG_ARRAY_LEN(name_##_defs), .trigger = trigger_}
#define OWN_LABELS(name_, ...)                                                                     \
    const struct vg_field_labels vg_labels_##name_ = {                                             \
        .v = name_##_labels, .n = VG_ARRAY_LEN(name_##_labels), __VA_ARGS__}

/* ---- kinds without fields of their own ---- */

static const struct vg_field_label none_labels[] = {META_NAME, META_NAMESPACE};
const struct vg_obj_fields vg_fields_none = {.trigger = VG_OBJ_NO_TRIGGER};
OWN_LABELS(none, .refusal = VG_FIELD_NOT_KNOWN);

/* ---- Pod ---- */

static const struct vg_obj_field_def pod_defs[] = {
    {.label = "spec.nodeName", .path = {"spec", "nodeName"}},
    {.label = "spec.restartPolicy", .path = {"spec", "restartPolicy"}, .missing = "Always"},
    {.label = "spec.schedulerName",
     .path = {"spec", "schedulerName"},
     .missing = "default-scheduler"},
    {.label = "spec.serviceAccountName", .path = {"spec", "serviceAccountName"}},
    {.label = "spec.hostNetwork", .path = {"spec", "hostNetwork"}, .missing = "false"},
    {.label = "status.phase", .path = {"status", "phase"}},
    {.label = "status.podIP", .path = {"status", "podIP"}},
    {.label = "status.podIPs"}, /* accepted, always empty */
    {.label = "status.nominatedNodeName", .path = {"status", "nominatedNodeName"}},
};
static const struct vg_field_label pod_labels[] = {
    META_NAME,
    META_NAMESPACE,
    LABEL("spec.nodeName", 0),
    ALIAS("spec.host", "spec.nodeName", 0),
    LABEL("spec.restartPolicy", 1),
    LABEL("spec.schedulerName", 2),
    LABEL("spec.serviceAccountName", 3),
    LABEL("spec.hostNetwork", 4),
    LABEL("status.phase", 5),
    LABEL("status.podIP", 6),
    LABEL("status.podIPs", 7),
    LABEL("status.nominatedNodeName", 8),
};
OWN_FIELDS(pod, 0);
OWN_LABELS(pod, .refusal = VG_FIELD_NOT_SUPPORTED);

/* ---- Node, Namespace: no metadata.namespace ---- */

static const struct vg_obj_field_def node_defs[] = {
    {.label = "spec.unschedulable", .path = {"spec", "unschedulable"}, .missing = "false"},
};
static const struct vg_field_label node_labels[] = {META_NAME, LABEL("spec.unschedulable", 0)};
OWN_FIELDS(node, VG_OBJ_NO_TRIGGER);
OWN_LABELS(node, .refusal = VG_FIELD_NOT_SUPPORTED);

static const struct vg_obj_field_def namespace_defs[] = {
    {.label = "status.phase", .path = {"status", "phase"}},
};
static const struct vg_field_label namespace_labels[] = {META_NAME, LABEL("status.phase", 0)};
OWN_FIELDS(namespace, VG_OBJ_NO_TRIGGER);
OWN_LABELS(namespace, .refusal = VG_FIELD_NOT_SUPPORTED);

/* ---- Secret, Service, ReplicationController ---- */

static const struct vg_obj_field_def secret_defs[] = {
    {.label = "type", .path = {"type"}, .missing = "Opaque"},
};
static const struct vg_field_label secret_labels[] = {META_NAME, META_NAMESPACE, LABEL("type", 0)};
OWN_FIELDS(secret, VG_OBJ_NO_TRIGGER);
OWN_LABELS(secret, .refusal = VG_FIELD_NOT_SUPPORTED);

static const struct vg_obj_field_def service_defs[] = {
    {.label = "spec.clusterIP", .path = {"spec", "clusterIP"}},
    {.label = "spec.type", .path = {"spec", "type"}, .missing = "ClusterIP"},
};
static const struct vg_field_label service_labels[] = {
    META_NAME,
    META_NAMESPACE,
    LABEL("spec.clusterIP", 0),
    LABEL("spec.type", 1),
};
OWN_FIELDS(service, VG_OBJ_NO_TRIGGER);
OWN_LABELS(service, .refusal = VG_FIELD_NOT_SUPPORTED);

static const struct vg_obj_field_def replicationcontroller_defs[] = {
    {.label = "status.replicas", .path = {"status", "replicas"}, .missing = "0"},
};
static const struct vg_field_label replicationcontroller_labels[] = {META_NAME, META_NAMESPACE,
                                                                     LABEL("status.replicas", 0)};
OWN_FIELDS(replicationcontroller, VG_OBJ_NO_TRIGGER);
OWN_LABELS(replicationcontroller, .refusal = VG_FIELD_NOT_SUPPORTED);

/* ---- Event ---- */

static const struct vg_obj_field_def event_defs[] = {
    {.label = "involvedObject.kind", .path = {"involvedObject", "kind"}},
    {.label = "involvedObject.namespace", .path = {"involvedObject", "namespace"}},
    {.label = "involvedObject.name", .path = {"involvedObject", "name"}},
    {.label = "involvedObject.uid", .path = {"involvedObject", "uid"}},
    {.label = "involvedObject.apiVersion", .path = {"involvedObject", "apiVersion"}},
    {.label = "involvedObject.resourceVersion", .path = {"involvedObject", "resourceVersion"}},
    {.label = "involvedObject.fieldPath", .path = {"involvedObject", "fieldPath"}},
    {.label = "reason", .path = {"reason"}},
    {.label = "reportingComponent", .path = {"reportingComponent"}},
    {.label = "source", .path = {"source", "component"}, .instead = "reportingComponent"},
    {.label = "type", .path = {"type"}},
};
static const struct vg_field_label event_labels[] = {
    META_NAME,
    META_NAMESPACE,
    LABEL("involvedObject.kind", 0),
    LABEL("involvedObject.namespace", 1),
    LABEL("involvedObject.name", 2),
    LABEL("involvedObject.uid", 3),
    LABEL("involvedObject.apiVersion", 4),
    LABEL("involvedObject.resourceVersion", 5),
    LABEL("involvedObject.fieldPath", 6),
    LABEL("reason", 7),
    LABEL("reportingComponent", 8),
    LABEL("source", 9),
    LABEL("type", 10),
};
OWN_FIELDS(event, VG_OBJ_NO_TRIGGER);
OWN_LABELS(event, .refusal = VG_FIELD_NOT_SUPPORTED);

/* ---- Job ---- */

static const struct vg_obj_field_def job_defs[] = {
    {.label = "status.successful", .path = {"status", "succeeded"}, .missing = "0"},
};
static const struct vg_field_label job_labels[] = {META_NAME, META_NAMESPACE,
                                                   LABEL("status.successful", 0)};
OWN_FIELDS(job, VG_OBJ_NO_TRIGGER);
OWN_LABELS(job, .refusal = VG_FIELD_NOT_SUPPORTED_FOR, .kind = TEXT("Job"));
