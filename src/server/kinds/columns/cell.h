/* cell.h - what functions of cells are written with.
 * A function looks at the object and puts text; errors stick to the cell. Values that are absent
 * are empty texts, zeros, lists without items: nothing here fails for an object that is odd.
 * Thread: one owner. */
#ifndef VG_COLUMNS_CELL_H
#define VG_COLUMNS_CELL_H

#include "server/kinds/columns.h"

/* A list that is looked through for each item of another is looked at up to here: far more than
 * real objects have, and few enough that an odd one costs no more than its size. */
#define VG_CELL_LOOK_MAX 256u

struct vg_cell {
    const struct vg_json *v; /* the object */
    int64_t now_ms;
    struct vg_arena *arena;
    struct vg_buf *text; /* what was put: a string, or as it is */
    bool is_bare;        /* a number */
    int err;
};

/* ---- looking ---- */

const struct vg_json *vg_cell_at(const struct vg_json *v, const char *dotted); /* NULL: absent */
struct vg_slice vg_cell_text(const struct vg_json *v, const char *dotted);
int64_t vg_cell_int(const struct vg_json *v, const char *dotted);
bool vg_cell_is(const struct vg_json *v, const char *dotted, const char *text);
bool vg_cell_is_set(const struct vg_json *v, const char *dotted); /* neither absent nor null */
/* Items of a list; 0 and NULL when it is none. */
const struct vg_json *vg_cell_items(const struct vg_json *v, const char *dotted, size_t *ret_n);
/* The first item of status.conditions with that type; NULL: none. */
const struct vg_json *vg_cell_condition(const struct vg_json *v, const char *type);
/* Seconds since 1970 times a thousand; false: there is no such time. */
bool vg_cell_time(const struct vg_json *v, const char *dotted, int64_t *ret_ms);
/* A value of an annotation; n 0 when absent. */
struct vg_slice vg_cell_annotation(const struct vg_json *v, const char *name);

/* ---- putting ---- */

void vg_cell_put(struct vg_cell *c, struct vg_slice s);
void vg_cell_puts(struct vg_cell *c, const char *s);
void vg_cell_printf(struct vg_cell *c, const char *fmt, ...) VG_PRINTF(2, 3);
/* With a separator before it, unless it is the first. */
void vg_cell_join(struct vg_cell *c, const char *separator, struct vg_slice s);
void vg_cell_put_age(struct vg_cell *c, int64_t since_ms);
void vg_cell_put_lower(struct vg_cell *c, struct vg_slice s); /* ASCII in lower case */
/* The age of a time, or what is said when there is none. */
void vg_cell_put_age_of(struct vg_cell *c, const char *dotted, const char *missing);
void vg_cell_put_labels(struct vg_cell *c, const struct vg_json *map);
void vg_cell_put_selector(struct vg_cell *c, const struct vg_json *selector);

/* ---- sets of texts ---- */

struct vg_texts {
    struct vg_slice *v;
    size_t n, room;
};
void vg_texts_add(struct vg_cell *c, struct vg_texts *t, struct vg_slice s);
void vg_texts_sort(struct vg_texts *t);   /* bytewise */
void vg_texts_unique(struct vg_texts *t); /* the same, and each stays once */

/* The functions that the notation names: `by pod_ready` is vg_cell_pod_ready. */
vg_cell_fn vg_cell_pod_ready, vg_cell_pod_status, vg_cell_pod_restarts, vg_cell_pod_gates;
vg_cell_fn vg_cell_job_status, vg_cell_job_completions, vg_cell_job_duration, vg_cell_suspend,
    vg_cell_controller;
vg_cell_fn vg_cell_service_addresses, vg_cell_service_ports, vg_cell_ingress_hosts,
    vg_cell_ingress_addresses, vg_cell_ingress_ports, vg_cell_class_parameters, vg_cell_parent,
    vg_cell_endpoints, vg_cell_slice_ports, vg_cell_slice_addresses;
vg_cell_fn vg_cell_node_status, vg_cell_node_roles, vg_cell_node_internal_ip,
    vg_cell_node_external_ip, vg_cell_node_kernel;
vg_cell_fn vg_cell_volume_phase, vg_cell_volume_modes, vg_cell_volume_class, vg_cell_claim_capacity,
    vg_cell_claim_modes, vg_cell_storage_class_name, vg_cell_ingress_class_name;
vg_cell_fn vg_cell_event_last, vg_cell_event_first, vg_cell_event_count, vg_cell_event_object,
    vg_cell_event_source, vg_cell_event_message;
vg_cell_fn vg_cell_quota_requests, vg_cell_quota_limits, vg_cell_targets, vg_cell_users,
    vg_cell_groups, vg_cell_service_accounts;
vg_cell_fn vg_cell_request_duration, vg_cell_request_condition, vg_cell_claim_state,
    vg_cell_missing_level, vg_cell_param_ref, vg_cell_service_available, vg_cell_component_status,
    vg_cell_component_message, vg_cell_component_error;

#endif
