/* workload.h - what the rules of kinds that own pods share: selectors and the labels they match,
 * amounts that are numbers or percentages, counters of a status. Thread: one owner. */
#ifndef VG_RULES_WORKLOAD_H
#define VG_RULES_WORKLOAD_H

#include "check.h"

/* ---- label selectors as objects (selector.c); NULL or null: selects nothing ---- */

/* Could it select anything? False: it has an operator, key or value that is none. */
bool vg_selector_is_valid(const struct vg_json *selector);
/* It has neither labels nor expressions. */
bool vg_selector_is_empty(const struct vg_json *selector);
/* labels: a map of strings, or NULL. The selector is valid. */
bool vg_selector_matches(struct vg_check *c, const struct vg_json *selector,
                         const struct vg_json *labels);
/* The same of a plain map of labels. */
bool vg_labels_match(struct vg_check *c, const struct vg_json *wanted,
                     const struct vg_json *labels);
/* Required, well-formed, and not empty; "empty selector is invalid for <owner>". */
void vg_check_owner_selector(struct vg_check *c, const struct vg_at *selector, const char *owner);
/* Invalid value at template.metadata.labels when the selector, which is valid, does not match. */
void vg_check_selects_template(struct vg_check *c, const struct vg_json *selector,
                               const struct vg_at *template);

/* ---- numbers or percentages (amount.c) ---- */

/* Not negative, or digits and '%'. */
void vg_check_int_or_percent(struct vg_check *c, const struct vg_at *at);
/* must not be greater than 100% */
void vg_check_percent_max(struct vg_check *c, const struct vg_at *at);
/* The number before '%', the number in a text, or the number. */
int64_t vg_int_or_percent(const struct vg_json *v);

/* ---- many fields alike (amount.c); names end with NULL ---- */

void vg_check_not_negatives(struct vg_check *c, const struct vg_at *at, const char *const *names);
/* None may be greater than `limit`, another member of `at`. */
void vg_check_not_above(struct vg_check *c, const struct vg_at *at, const char *const *names,
                        const char *limit, const char *detail);
/* status.collisionCount only grows. */
void vg_check_collisions(struct vg_check *c, const struct vg_at *status, const struct vg_json *old);

/* ---- pod templates ---- */

/* What the server drops of the pods of spec.template; `prepare` of rules. */
int vg_prepare_template(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old);
/* Pods of a controller run for ever; `owner` is named in what is said. */
void vg_check_runs_always(struct vg_check *c, const struct vg_at *template, const char *owner);

/* The status of a ReplicaSet or ReplicationController. */
void vg_check_replicas_status(struct vg_check *c, const struct vg_at *obj,
                              const struct vg_json *old);

/* ---- warnings (workload_warn.c) ---- */

/* Of a new object whose name pods cannot go on with. */
void vg_warn_name(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old);
/* Of spec.template, when the spec is new. */
void vg_warn_template(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old);
/* Both. */
void vg_warn_owner(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old);
/* Of keys of a node selector that have other names by now. */
/* What to say of a label of nodes that has another name now; NULL: nothing. */
const char *vg_node_label_gone(struct vg_slice key);
void vg_warn_node_labels(struct vg_check *c, const struct vg_at *map);
/* Is it a create, or an update that changes this member of the object? */
bool vg_is_new(const struct vg_at *obj, const struct vg_json *old, const char *name);

#endif
