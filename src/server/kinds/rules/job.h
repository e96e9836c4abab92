/* job.h - what the rules of jobs and cron jobs share. Thread: one owner. */
#ifndef VG_RULES_JOB_H
#define VG_RULES_JOB_H

#include "workload.h"

/* The spec of a job but for its selector. */
void vg_check_job_spec(struct vg_check *c, const struct vg_at *spec);
/* Those two parts of it (job_policy.c). */
void vg_check_pod_failure_policy(struct vg_check *c, const struct vg_at *spec);
void vg_check_success_policy(struct vg_check *c, const struct vg_at *spec);
/* As Go prints them. */

/* ---- sets of indexes: "1,3-5" (job_indexes.c) ---- */

/* How many of 0..completions-1 there are. False: *ret_why says what is wrong, in the arena. */
bool vg_job_indexes(struct vg_check *c, struct vg_slice text, int64_t completions,
                    int64_t *ret_total, struct vg_slice *ret_why);
/* The first index that is in both; -1: none. What is no interval is passed over. */
int64_t vg_job_indexes_overlap(struct vg_slice a, struct vg_slice b, int64_t completions);

/* ---- updates (job_update.c) ---- */

void vg_check_job_update(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old);
void vg_check_job_status(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old);
/* Is there a condition of that type with that status? */
bool vg_job_has_condition(const struct vg_json *job, const char *type, const char *status);
void vg_warn_job_spec(struct vg_check *c, const struct vg_at *spec);

#endif
