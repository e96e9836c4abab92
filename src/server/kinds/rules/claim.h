/* claim.h - claims of volumes inside of other objects: templates of pods and stateful sets, and the
 * spec that all of them share. Thread: one owner. */
#ifndef VG_RULES_CLAIM_H
#define VG_RULES_CLAIM_H

#include "check.h"

/* The spec of a claim. */
void vg_check_claim_spec(struct vg_check *c, const struct vg_at *spec);
/* The modes that there are; one pod alone, or others. */
void vg_check_access_modes(struct vg_check *c, const struct vg_at *modes);
/* metadata with nothing but labels and annotations, and a spec. */
void vg_check_claim_template(struct vg_check *c, const struct vg_at *at);

#endif
