/* fault_model_int.h - what the files of the model share. */
#ifndef VG_TESTS_FAULT_MODEL_INT_H
#define VG_TESTS_FAULT_MODEL_INT_H

#include "fault_model.h"

/* Header and value of the i-th operation of a transaction. */
struct fm_content {
    char head[48];
    int head_len;
    char value[FM_VALUE_MAX];
};
void fm_content(const struct fm *m, uint64_t id, uint32_t i, size_t len, struct fm_content *c);

void *fm_alloc(void *old, size_t count, size_t size); /* does not fail */

/* What each key holds at a revision; borrowed from the truth. */
struct fm_state {
    const struct vg_rec *at[FM_KEYS];
};
void fm_state_at(const struct fm *m, vg_rev rev, struct fm_state *ret_state);
void fm_state_apply(struct fm_state *state, const struct vg_rec *rec);

bool fm_rec_equal(const struct vg_rec *a, const struct vg_rec *b);

#endif
