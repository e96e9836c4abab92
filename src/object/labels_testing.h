/* labels_testing.h - for tests: a label set from text such as "a=1,b=2". */
#ifndef VG_OBJECT_LABELS_TESTING_H
#define VG_OBJECT_LABELS_TESTING_H

#include "labels.h"

#define VG_TEST_LABELS_MAX 64u

struct vg_test_labels {
    struct vg_labels set;
    struct vg_label_ref v[VG_TEST_LABELS_MAX];
};

static inline int vg_test_compare_refs(const void *a, const void *b, void *base)
{
    const struct vg_label_ref *x = a, *y = b;
    return vg_slice_cmp(vg_slice((const char *)base + x->key, x->key_n),
                        vg_slice((const char *)base + y->key, y->key_n));
}

/* Insertion sort: qsort_r is not the same everywhere. */
static inline void vg_test_labels_add(struct vg_test_labels *t, struct vg_label_ref r)
{
    uint32_t i = t->set.n++;
    void *base = (void *)(uintptr_t)t->set.base;
    for (; i > 0 && vg_test_compare_refs(&t->v[i - 1], &r, base) > 0; i--)
        t->v[i] = t->v[i - 1];
    t->v[i] = r;
}

/* Fill t with the labels of text, which must outlive it; keys are unique. */
static inline const struct vg_labels *vg_test_labels(struct vg_test_labels *t, const char *text)
{
    t->set = (struct vg_labels){.base = text, .v = t->v};
    for (const char *at = text; *at;) {
        size_t key_n = strcspn(at, "="), value_n = strcspn(at + key_n + 1, ",");
        uint32_t key = (uint32_t)(at - text);
        vg_test_labels_add(t, (struct vg_label_ref){.key = key,
                                                    .value = key + (uint32_t)key_n + 1,
                                                    .key_n = (uint16_t)key_n,
                                                    .value_n = (uint16_t)value_n});
        at += key_n + 1 + value_n;
        at += *at == ',';
    }
    return &t->set;
}

#endif
