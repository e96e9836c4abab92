/* admission.h - what webhooks, admission policies and conversions share. Thread: any. */
#ifndef VG_RULES_ADMISSION_H
#define VG_RULES_ADMISSION_H

#include "check.h"

/* All reasons in one message, behind `before`; text is what is shown. */
void vg_bad_reasons(struct vg_check *c, const struct vg_at *at, struct vg_slice text,
                    const char *before, const struct vg_name_reasons *why);

/* Where a webhook is: a url or a service. */
void vg_check_webhook_client(struct vg_check *c, const struct vg_at *at);
void vg_check_webhook_url(struct vg_check *c, const struct vg_at *at);
/* What the original takes for the name and the namespace of the service; see webhook.c. */
void vg_check_webhook_service(struct vg_check *c, const struct vg_at *at, const char *name,
                              const char *ns);

/* Versions of reviews that a webhook knows, at least one: ours among them, none twice. */
void vg_check_review_versions(struct vg_check *c, const struct vg_at *at);

/* Which requests: operations, groups, versions, resources, scope. */
void vg_check_admission_rule(struct vg_check *c, const struct vg_at *at);
/* Named conditions; their expressions are looked at only for being there. */
void vg_check_match_conditions(struct vg_check *c, const struct vg_at *at);
/* Text without the white space around it, as Go trims it (ASCII). */
struct vg_slice vg_trimmed(struct vg_slice text);

#endif
